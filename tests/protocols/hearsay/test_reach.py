"""The reach is learnt: from a disk to what packets really do."""

from random import Random

from earshot.protocols.hearsay.neighbours import Neighbour
from earshot.protocols.hearsay.packets import Hello
from earshot.protocols.hearsay.reach import Reach


def neighbour(at: tuple[int, int] | None, velocity: tuple[int, int] = (0, 0)) -> Neighbour:
    return Neighbour(Hello(1, at, velocity, 4, 0, 0, 7, b""), 10.0, 20.0)


def chance_at(reach: Reach, distance_m: float) -> float:
    """The chance that a neighbour at that distance hears a packet."""
    return reach.chances(distance_m, 0.0, [neighbour((0, 0))], 10.0, unplaced=0.7)[0]


def test_it_begins_as_a_disk() -> None:
    reach = Reach(100.0, 4.0)
    assert [chance_at(reach, x) for x in (0.0, 99.0, 101.0, 1e9)] == [1.0, 1.0, 0.0, 0.0]


def test_it_learns_the_chance_at_each_distance() -> None:
    reach, chance = Reach(100.0, 4.0), Random(1)
    for _ in range(2000):
        distance = chance.uniform(0.0, 200.0)
        heard = chance.random() < 1.0 - (distance / 200.0) ** 2
        reach.observe(distance, float(heard), float(not heard))
    for distance in range(5, 200, 10):
        assert abs(chance_at(reach, float(distance)) - (1.0 - (distance / 200.0) ** 2)) < 0.2


def test_it_forgets_what_was_true_long_ago() -> None:
    reach = Reach(100.0, 4.0)
    for _ in range(1000):
        reach.observe(50.0, 0.0, 1.0)
    for _ in range(200):
        reach.observe(50.0, 1.0, 0.0)
    assert chance_at(reach, 50.0) > 0.9


def test_a_disk_that_is_trusted_stays() -> None:
    reach = Reach(100.0, 1e9)
    for _ in range(1000):
        reach.observe(50.0, 0.0, 1.0)
    assert chance_at(reach, 50.0) > 0.999


def test_a_distance_belongs_to_a_tenth_of_the_range_up_to_four_ranges() -> None:
    reach = Reach(100.0, 0.0)
    reach.observe(25.0, 1.0, 3.0)
    reach.observe(395.0, 1.0, 1.0)
    reach.observe(9_999.0, 1.0, 0.0)
    assert [chance_at(reach, x) for x in (19.9, 20.0, 29.9, 30.0, 390.0, 399.9, 400.0)] == [
        1.0, 0.25, 0.25, 1.0, 0.5, 0.5, 0.0,
    ]  # fmt: skip


def test_the_believed_disk_counts_as_so_many_observations() -> None:
    reach = Reach(100.0, 4.0)
    reach.observe(55.0, 0.0, 1.0)
    reach.observe(105.0, 1.0, 0.0)
    assert (chance_at(reach, 55.0), chance_at(reach, 105.0)) == (0.8, 0.2)


def test_beyond_sixty_four_observations_older_ones_count_half() -> None:
    reach = Reach(100.0, 0.0)
    reach.observe(55.0, 64.0, 0.0)
    reach.observe(55.0, 0.0, 64.0)
    assert chance_at(reach, 55.0) == 0.5
    reach.observe(55.0, 0.0, 64.0)
    assert chance_at(reach, 55.0) == 0.25
    trusted = Reach(100.0, 64.0)
    trusted.observe(55.0, 0.0, 64.0)
    trusted.observe(55.0, 0.0, 64.0)
    assert chance_at(trusted, 55.0) == 64.0 / 192.0


def test_the_chance_of_a_neighbour_is_that_at_its_distance_where_it_is_now() -> None:
    reach = Reach(100.0, 4.0)
    reach.observe(55.0, 0.0, 4.0)
    reach.observe(395.0, 12.0, 0.0)
    some = [
        neighbour((33, 144)),
        neighbour((0, 94), velocity=(150, 100)),
        neighbour(None),
        neighbour((3, 498)),
        neighbour((3, 504)),
    ]
    assert reach.chances(3.0, 104.0, some, 12.0, 0.7) == [0.5, 1.0, 0.7, 0.75, 0.0]
    assert reach.chances(3.0, 104.0, [neighbour((36, 60))], 10.0, 0.7) == [0.5]
    assert reach.chances(-35.0, 114.0, [neighbour((3, 94), velocity=(0, -200))], 11.0, 0.7) == [0.5]
    assert reach.chances(-35.0, 114.0, [neighbour((3, 94), velocity=(0, -200))], 10.0, 0.7) == [1.0]


def test_those_are_beyond_a_sender_that_miss_it_and_hear_us() -> None:
    reach = Reach(100.0, 4.0)
    reach.observe(55.0, 0.0, 4.0)
    near, edge, blind = neighbour((3, 94)), neighbour((0, 94), velocity=(150, 250)), neighbour(None)
    some = {"near": near, "edge": edge, "blind": blind, "far": neighbour((3, 504)), "west": neighbour((-150, 94))}
    here = (-60.0, 94.0)
    assert reach.beyond(3.0, 94.0, here, some, 12.0, 0.5) == [("west", some["west"], 1.0, 1.0)]
    assert reach.beyond(3.0, 94.0, here, some, 12.0, 0.4) == [
        ("blind", blind, 0.4, 0.4), ("west", some["west"], 1.0, 1.0),
    ]  # fmt: skip
    # The edge misses every second packet of the sender, and hears two of three of ours.
    reach.observe(105.0, 8.0, 0.0)
    assert reach.beyond(3.0, 94.0, here, {"edge": edge}, 12.0, 0.3) == [("edge", edge, 0.5, 0.5 * 8.0 / 12.0)]
    assert reach.beyond(3.0, 94.0, here, {"edge": edge}, 12.0, 0.34) == []


def test_a_neighbour_is_beyond_a_sender_by_its_chances_at_both_places() -> None:
    reach, chance = Reach(100.0, 4.0), Random(2)
    for _ in range(500):
        reach.observe(chance.uniform(0.0, 300.0), float(chance.random() < 0.5), 0.5)
    some = {f"n{k}": neighbour((chance.randrange(300), chance.randrange(300)), (k - 20, 9)) for k in range(40)}
    for worth in (0.0, 0.2, 0.5, 1.0):
        expected = []
        for name, one in some.items():
            hears_it, hears_us = (reach.chances(x, y, [one], 13.0, 0.6)[0] for x, y in ((50.0, 40.0), (120.0, 90.0)))
            if (1.0 - hears_it) * hears_us >= worth:
                expected.append((name, one, 1.0 - hears_it, (1.0 - hears_it) * hears_us))
        assert reach.beyond(50.0, 40.0, (120.0, 90.0), some, 13.0, worth) == expected


def test_nothing_is_heard_from_four_times_the_range_on() -> None:
    reach = Reach(100.0, 4.0)
    reach.observe(400.0, 12.0, 0.0)
    reach.observe(1e9, 12.0, 0.0)
    assert [chance_at(reach, x) for x in (399.0, 400.0, 401.0)] == [0.0, 0.0, 0.0]
    assert reach.chances(0.0, 0.0, [neighbour((400, 0)), neighbour((0, 401))], 10.0, 0.7) == [0.0, 0.0]
