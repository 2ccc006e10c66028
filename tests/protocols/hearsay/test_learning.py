"""What a node learns about the reach: from the numbers of hellos, and from the events that digests show or lack."""

from __future__ import annotations

from random import Random

import pytest

from earshot.events import Event
from earshot.geometry import Position
from earshot.protocols.hearsay.digest import make_digest, quarter_of, wrapped
from earshot.protocols.hearsay.machine import Hearsay
from earshot.protocols.hearsay.packets import HearsaySettings, Hello, Said
from earshot.protocols.hearsay.reach import Reach
from earshot.protocols.machine import FixedLocation

SETTLED_S = 20.0 * 3.0 * 3.0 * 0.003
"The longest wait of the default settings: wait_frames, crowd_stretch and patience, in packets of 3 ms."


class Watched(Reach):
    """A reach that notes what it observes."""

    def __init__(self) -> None:
        super().__init__(100.0, 4.0)
        self.observed: list[tuple[float, float, float]] = []

    def observe(self, distance_m: float, hits: float, misses: float) -> None:
        self.observed.append((round(distance_m, 6), hits, misses))
        super().observe(distance_m, hits, misses)

    def taken(self) -> list[tuple[float, float, float]]:
        found, self.observed = self.observed, []
        return found


def node(x: float = 0.0, y: float = 0.0, *, knows_place: bool = True) -> tuple[Hearsay, Watched]:
    settings = HearsaySettings(range_m=100.0, knows_place=knows_place)
    machine = Hearsay("a", settings, FixedLocation(Position(x, y)), Random("a"))
    machine.start(0.0)
    machine.reach = watched = Watched()
    return machine, watched


def hello(
    number: int,
    at: tuple[int, int] | None,
    velocity: tuple[int, int] = (0, 0),
    holds: tuple[str, ...] = (),
    since: float = 0.0,
    until: float | None = None,
) -> Hello:
    first = quarter_of(since)
    length = 0 if until is None else quarter_of(until) - first
    return Hello(number, at, velocity, 9, wrapped(first), length, 7, make_digest(holds, 7, 64) if holds else b"")


def said(name: str, at: tuple[int, int] | None, time: float = 10.0) -> Said:
    return Said(Event("CD", id=name, source="x", time=time), 1, at)


def test_a_hello_that_arrives_is_a_hit_at_its_distance() -> None:
    a, reach = node(10.0, 20.0)
    a.hear(hello(1, (40, 60)), "b", now=1.0)
    assert reach.taken() == [(50.0, 1.0, 0.0)]
    assert reach.chances(0.0, 0.0, a.neighbours.by_name.values(), 1.0, unplaced=0.5) == [1.0]


@pytest.mark.parametrize(
    ("before", "after", "skipped"),
    [(1, 2, 0), (1, 3, 1), (1, 5, 3), (1, 6, 0), (255, 1, 1), (254, 0, 1), (5, 5, 0), (5, 4, 0)],
)
def test_up_to_three_numbers_that_a_neighbour_skipped_are_misses(before: int, after: int, skipped: int) -> None:
    a, reach = node()
    a.hear(hello(before, (30, 40)), "b", now=1.0)
    reach.taken()
    a.hear(hello(after, (30, 40)), "b", now=9.0)
    assert reach.taken() == [(50.0, 1.0, 0.0), *([(50.0, 0.0, float(skipped))] if skipped else [])]


def test_a_skipped_hello_is_a_miss_where_the_neighbour_was_halfway_between_the_two_hellos() -> None:
    a, reach = node(10.0, 10.0)
    a.hear(hello(1, (10, 10)), "b", now=1.0)
    reach.taken()
    a.hear(hello(3, (90, 70), velocity=(80, 60)), "b", now=11.0)
    assert reach.taken() == [(100.0, 1.0, 0.0), (50.0, 0.0, 1.0)]


def test_nothing_is_learnt_where_a_place_is_unknown() -> None:
    a, reach = node(knows_place=False)
    a.hear(hello(1, (30, 40)), "b", now=1.0)
    a.hear(hello(3, (30, 40)), "b", now=9.0)
    b, other = node()
    b.hear(hello(1, None), "b", now=1.0)
    b.hear(hello(3, None), "b", now=9.0)
    assert (reach.taken(), other.taken()) == ([], [])
    b.hear(hello(5, (30, 40)), "b", now=12.0)
    assert other.taken() == [(50.0, 1.0, 0.0)], "nobody knows where it was when it was not heard"


def heard(a: Hearsay, *events: Said, now: float = 10.0) -> None:
    for event in events:
        a.hear(event, "s", now=now)


def test_an_event_that_a_neighbour_lacks_is_a_miss_at_the_distance_of_each_copy() -> None:
    a, reach = node()
    a.hear(hello(1, (90, 0)), "b", now=9.0)
    a.hear(hello(1, (0, 90)), "c", now=9.0)
    heard(a, said("e-0", (-10, 0)), said("e-0", (-30, 0)))
    assert [(one.time, one.x, one.y) for one in a.live.by_id["e-0"].copies] == [(10.0, -10.0, 0.0), (10.0, -30.0, 0.0)]
    reach.taken()
    a.hear(hello(2, (90, 0)), "b", now=12.0)
    assert reach.taken() == [(90.0, 1.0, 0.0), (100.0, 0.0, 1.0), (120.0, 0.0, 1.0)]


def test_an_event_that_a_neighbour_holds_is_a_hit_at_the_distance_of_the_nearest_copy() -> None:
    a, reach = node()
    a.hear(hello(1, (0, 90)), "c", now=9.0)
    a.hear(hello(1, (90, 0)), "b", now=9.0)
    heard(a, said("e-0", (-10, 0)), said("e-0", (-30, 0)))
    reach.taken()
    a.hear(hello(2, (90, 0), holds=("e-0",)), "b", now=12.0)
    assert reach.taken() == [(90.0, 1.0, 0.0), (100.0, 1.0, 0.0)]


def test_distances_are_those_at_the_time_of_the_copy() -> None:
    a, reach = node()
    a.hear(hello(1, (90, 0)), "b", now=9.0)
    heard(a, said("e-0", (20, 30)))
    reach.taken()
    a.hear(hello(2, (80, 20), velocity=(100, 100), holds=("e-0",)), "b", now=12.0)
    assert reach.taken()[1:] == [(50.0, 1.0, 0.0)], "it was at (60, 0)"


def test_a_node_learns_from_the_last_two_events_of_the_span_since_the_hello_before() -> None:
    a, reach = node()
    heard(a, said("early", (11, 0)), now=8.0)
    a.hear(hello(1, (50, 0)), "b", now=8.0)
    for number, at in ((1, 12), (2, 13), (3, 14)):
        heard(a, said(f"e-{number}", (at, 0), time=9.0 + number / 2.0), now=9.0 + number / 2.0)
    heard(a, said("nowhere", None), now=11.0)
    reach.taken()
    a.hear(hello(2, (50, 0)), "b", now=13.0)
    assert reach.taken()[1:] == [(36.0, 0.0, 1.0), (37.0, 0.0, 1.0)], "the newest first, and those with a place"
    a.hear(hello(3, (50, 0)), "b", now=14.0)
    assert reach.taken() == [(50.0, 1.0, 0.0)], "nothing was heard since"
    b, other = node()
    b.hear(hello(1, (50, 0)), "b", now=8.0)
    for number, at in ((1, 12), (2, 13), (3, 14)):
        heard(b, said(f"e-{number}", (at, 0), time=9.0 + number), now=9.0 + number)
    other.taken()
    b.hear(hello(2, (50, 0), since=10.0, until=12.0), "b", now=14.0)
    assert other.taken()[1:] == [(37.0, 0.0, 1.0), (38.0, 0.0, 1.0)], "the third is after the span"


def test_only_what_came_after_the_hello_before_counts() -> None:
    a, reach = node()
    a.hear(hello(1, (50, 0)), "b", now=8.0)
    heard(a, said("e-0", (12, 0), time=8.0), now=8.0)
    heard(a, said("e-1", (13, 0), time=8.0), now=8.01)
    reach.taken()
    a.hear(hello(2, (50, 0)), "b", now=12.0)
    assert reach.taken()[1:] == [(37.0, 0.0, 1.0)]


def test_an_event_that_may_still_be_on_its_way_teaches_nothing() -> None:
    a, reach = node()
    a.hear(hello(1, (50, 0)), "b", now=8.0)
    heard(a, said("old", (12, 0), time=9.0), now=9.0)
    heard(a, said("new", (13, 0), time=10.0), now=10.0)
    reach.taken()
    a.hear(hello(2, (50, 0)), "b", now=10.0 + SETTLED_S - 0.01)
    assert reach.taken()[1:] == [(38.0, 0.0, 1.0)]
    b, other = node()
    b.hear(hello(1, (50, 0)), "b", now=8.0)
    heard(b, said("new", (13, 0), time=10.0), now=10.0)
    other.taken()
    b.hear(hello(2, (50, 0)), "b", now=10.0 + SETTLED_S + 0.01)
    assert other.taken()[1:] == [(37.0, 0.0, 1.0)]


def test_the_first_three_places_of_an_event_are_remembered_and_our_own_is_one_of_them() -> None:
    a, _ = node(7.0, 8.0)
    for k in range(8):
        a.hear(hello(1, (80, 10 * k)), f"n{k}", now=9.0)
    heard(a, said("e-0", (-90, 0)))
    a.hear(said("e-0", (-91, 0)), "t", now=10.001)
    a.wake(("say", "e-0"), 10.002)
    a.hear(said("e-0", (-92, 0)), "u", now=10.003)
    copies = a.live.by_id["e-0"].copies
    assert [(one.time, one.x, one.y) for one in copies] == [
        (10.0, -90.0, 0.0), (10.001, -91.0, 0.0), (10.002, 7.0, 8.0),
    ]  # fmt: skip
    a.publish(Event("CD", id="own", source="a", time=11.0), now=11.0)
    assert [(one.time, one.x, one.y) for one in a.live.by_id["own"].copies] == [(11.0, 7.0, 8.0)]
    for k in range(5):
        a.remember_copy(a.live.by_id["own"], (k, 0), 12.0)
    assert len(a.live.by_id["own"].copies) == 3
