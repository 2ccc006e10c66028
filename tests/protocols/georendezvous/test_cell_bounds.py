"""GeoRendezvous' intervals and bounds that no setting states, as numbers."""

from __future__ import annotations

from random import Random

import pytest

from earshot.events import EventType
from earshot.geometry import Position
from earshot.protocols.georendezvous.cell_hash_routing import CellHashRouting, CellSettings, Heading
from earshot.protocols.georendezvous.cells import CellGrid
from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.protocols.georendezvous.rendezvous_cell import Prune
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings
from earshot.protocols.machine import Announcement, Drop, FixedLocation, StartTimer
from earshot.records import DropReason

PRUNE = Prune(Heading((9, 9), "far"), 2, "cars", 0, "p", "", 1.0)


def test_a_node_beacons_within_its_first_interval_and_listens_for_a_fifth_more() -> None:
    firsts = []
    for seed in range(100):
        routing = CellHashRouting("me", CellSettings(beacon_interval_s=2.0), Random(seed))
        beacon, listened = routing.start(Position(50.0, 50.0), 10.0)
        assert isinstance(beacon, StartTimer)
        assert (beacon.name, listened) == ("beacon", StartTimer("listened", 12.4))
        firsts.append(beacon.at)
    assert 10.0 <= min(firsts) < 10.1
    assert 11.9 < max(firsts) <= 12.0


def test_4096_packets_wait_while_a_node_listens() -> None:
    routing = CellHashRouting("me", CellSettings(), Random(1))
    routing.start(Position(50.0, 50.0), 0.0)
    assert [routing.route(PRUNE, 0.5) for _ in range(4096)] == [None] * 4096
    assert routing.route(PRUNE, 0.5) == Drop(DropReason.TOO_MANY_PACKETS_WAITING)
    assert routing.listened() == [PRUNE] * 4096


def test_cells_may_be_smaller_than_a_metre() -> None:
    assert CellGrid(0.25).cell_of(Position(1.0, -0.1)) == (4, -1)


def machine(**changes: object) -> GeoRendezvous:
    settings = GeoRendezvousSettings(**changes)  # type: ignore[arg-type]
    found = GeoRendezvous("me", settings, FixedLocation(Position(50.0, 50.0)), Random(1))
    found.start(0.0)
    return found


@pytest.mark.parametrize(("before", "effects"), [(7, []), (8, [Drop(DropReason.HOP_LIMIT)])])
def test_eight_packets_in_a_row_may_arrive_at_one_node(before: int, effects: list[Drop]) -> None:
    node = machine()
    node.wake("listened", 1.2)
    node._arrivals = before
    arriving = Prune(Heading((0, 0), "me"), 2, "cars", 0, "p", "", 1.0)
    assert node.hear(arriving, "x", 2.0) == effects


def test_records_wait_up_to_a_twentieth_of_a_second_for_their_turn_and_as_long_between_turns() -> None:
    waits = []
    for seed in range(100):
        node = GeoRendezvous("me", GeoRendezvousSettings(), FixedLocation(), Random(seed))
        node.start(0.0)
        burst = node.announce(Announcement(EventType("cars")), 1.0)[0]
        assert isinstance(burst, StartTimer)
        waits.append(burst.at - 1.0)
        assert node.wake("burst", 1.05) == [StartTimer("burst", 1.1)]
    assert 0.0 <= min(waits) < 0.002
    assert 0.048 < max(waits) <= 0.05
