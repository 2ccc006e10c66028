"""Parts of GeoRendezvous by themselves: beacons, edges of faces, what a cell keeps, and what is lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from earshot.geometry import Position
from earshot.protocols.georendezvous import rendezvous_table
from earshot.protocols.georendezvous.cell_hash_routing import Beacon, CellSettings, Heading
from earshot.protocols.georendezvous.cells import HOME, NEXT_EDGE, cells_apart
from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.protocols.georendezvous.rendezvous_table import Advertise, RendezvousTable, Subscribe, weight
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings
from earshot.protocols.georendezvous.shared_links import LinkBeacon, SharedLinks
from earshot.protocols.machine import Broadcast, StartTimer
from earshot.protocols.tuning import Surroundings

SETTINGS = CellSettings(
    range_m=160.0, cell_side_m=100.0, beacon_interval_s=4.0, neighbour_lifespan_s=9.0, home_memory_s=30.0
)


def links(settings: CellSettings = SETTINGS, seed: int = 1) -> SharedLinks:
    routing = SharedLinks("me", settings, Random(seed))
    routing.start(Position(50.0, 50.0), 0.0)
    routing.listened()
    return routing


def test_the_next_edge_is_the_first_counter_clockwise_and_the_one_it_came_by_last() -> None:
    for edges, after in product(range(256), range(8)):
        order = [*range(after + 1, 8), *range(after + 1)]
        assert NEXT_EDGE[edges][after] == next((one for one in order if edges >> one & 1), HOME)


def test_beacons_come_with_the_interval_a_tenth_earlier_or_later() -> None:
    waits = []
    for seed in range(200):
        packet, timer = links(seed=seed).on_beacon_timer(10.0)
        assert isinstance(packet, Broadcast)
        assert isinstance(packet.packet, Beacon)
        assert isinstance(timer, StartTimer)
        waits.append(timer.at - 10.0)
    assert 3.6 <= min(waits) < 3.62
    assert 4.38 < max(waits) <= 4.4


def test_a_neighbour_and_a_home_perimeter_are_forgotten_when_they_are_too_old() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((1, 0), False, 3), "n", 1.0)
    routing.homes[(5, 5)] = 1.0
    routing.on_beacon_timer(10.0)
    assert (list(routing.neighbours), routing.links) == (["n"], {"n": 3})
    routing.on_beacon_timer(10.1)
    assert (routing.neighbours, routing.links, list(routing.homes)) == ({}, {}, [(5, 5)])
    assert routing.lost_cells == {(1, 0): 1.0}
    routing.on_beacon_timer(30.9)
    assert list(routing.homes) == [(5, 5)]
    routing.on_beacon_timer(31.0)
    assert (routing.homes, routing.lost_cells) == ({}, {})


def test_what_was_lost_is_remembered_for_ten_seconds_and_only_in_the_same_cell() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((0, 0), False, 0), "member", 1.0)
    routing.on_beacon(LinkBeacon((1, 0), False, 0), "other", 1.0)
    routing.forget("member")
    routing.forget("other")
    routing.forget("stranger")
    assert (routing.lost_members, routing.lost_cells) == ({"member": 1.0}, {(0, 0): 1.0, (1, 0): 1.0})
    routing.on_beacon_timer(10.9)
    assert routing.lost_members == {"member": 1.0}
    assert routing.move_to(Position(60.0, 60.0)) is None
    assert routing.lost_members == {"member": 1.0}
    assert routing.move_to(Position(160.0, 60.0)) == (0, 0)
    assert (routing.lost_members, routing.lost_cells) == ({}, {})


def record(owner: str, at: float = 1.0, lifespan_s: float = 10.0, filters: tuple[str, ...] = ()) -> Subscribe:
    return Subscribe(Heading((0, 0)), 0, "cars", 0, owner, (0, 0), at=at, lifespan_s=lifespan_s, filters=filters)


def test_a_cell_keeps_records_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendezvous_table.MOST_BYTES == 8 * 1024 * 1024
    assert weight(record("a", filters=("x" * 100,))) == 1024 + 200
    assert weight(Advertise(Heading((0, 0)), 0, "cars", 0, "p", (0, 0), at=1.0, lifespan_s=1.0)) == 1024
    monkeypatch.setattr(rendezvous_table, "MOST_BYTES", 2048)
    table = RendezvousTable(35.0)
    assert [table.put(record(name), 0.0) for name in "abc"] == [True, True, False]
    assert (len(table), table.held_bytes) == (2, 2048)
    assert table.put(record("b", at=2.0), 1.0), "its owner's earlier record makes room"
    assert table.put(record("a", at=1.0), 1.0), "at the same time"
    assert table.put(record("a", at=2.0, lifespan_s=0.0), 1.0)
    assert (len(table), table.held_bytes, table.put(record("c"), 1.0)) == (1, 1024, True)


@pytest.mark.parametrize(("cells_away", "times"), [(0.0, 1), (3.9, 1), (4.0, 2), (11.9, 3)])
def test_records_at_far_points_skip_renewals(cells_away: float, times: int) -> None:
    assert GeoRendezvousSettings(renew_cells=4).renewals(cells_away) == times
    assert GeoRendezvousSettings(renew_cells=0).renewals(cells_away) == 1


AROUND = Surroundings(
    nodes=100, present=100.0, width_m=500.0, height_m=500.0, range_m=100.0, mean_neighbours=9.0, median_speed_m_s=1.0,
    link_lifetime_s=9.0, events_per_s=9.0,
)  # fmt: skip


def test_first_guesses_follow_the_ground_and_the_density() -> None:
    near = GeoRendezvous.tuning(AROUND)
    assert [(one.name, one.first, one.low, one.high) for one in near] == [
        ("rendezvous", 1, 1, 4), ("cell_side_m", 70.0, 25.0, 70.0),
    ]  # fmt: skip
    far = GeoRendezvous.tuning(replace(AROUND, width_m=800.1, height_m=0.1, mean_neighbours=99.0))
    assert [(one.name, one.first) for one in far] == [("rendezvous", 2), ("cell_side_m", 35.0)]
    middle = GeoRendezvous.tuning(replace(AROUND, mean_neighbours=20.0))
    assert middle[1].first == 55.0


def test_the_first_beacon_comes_within_the_first_interval() -> None:
    waits = []
    for seed in range(200):
        beacon, _ = SharedLinks("me", SETTINGS, Random(seed)).start(Position(50.0, 50.0), 10.0)
        assert isinstance(beacon, StartTimer)
        waits.append(beacon.at - 10.0)
    assert 0.0 <= min(waits) < 0.1
    assert 3.9 < max(waits) <= 4.0


@pytest.mark.parametrize(("other", "apart"), [((3, 5), 0), ((4, 5), 1), ((3, 4), 1), ((-2, 7), 5), ((4, -5), 10)])
def test_cells_lie_apart_along_the_longer_side(other: tuple[int, int], apart: int) -> None:
    assert cells_apart((3, 5), other) == cells_apart(other, (3, 5)) == apart


def test_what_expires_or_is_dropped_makes_room() -> None:
    table = RendezvousTable(35.0)
    table.put(record("a", lifespan_s=10.0), 0.0)
    table.put(record("b", lifespan_s=20.0), 0.0)
    advert = Advertise(Heading((0, 0)), 0, "news", 1, "p", (0, 0), at=1.0, lifespan_s=10.0)
    table.put(advert, 0.0)
    assert (table.expire(9.9), table.held_bytes) == ([], 3 * 1024)
    assert (table.expire(10.0), table.held_bytes) == ([("cars", 0)], 1024)
    table.drop(("cars", 0))
    table.drop(("unknown", 0))
    assert (table.held_bytes, len(table)) == (0, 0)


def test_of_several_peers_the_one_heard_last_is_asked() -> None:
    routing = links()
    for name, now in (("early", 1.0), ("late", 3.0), ("middle", 2.0)):
        routing.on_beacon(LinkBeacon((1, 0), False, 0), name, now)
    assert routing._latest(["early", "late", "middle"]) == "late"
