"""Several producers of one subject on a device (section 4.1), each with its own proximity."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from steam_table import SteamTable, goes, stays

from earshot import Circle, Event, EventType, Position, Proximity
from earshot.errors import ContentMismatch, EventError, UnknownName
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.packets import PAPER, RECOVERING, ProximityBeacon, RecoveryRequest, SteamSettings

NORTH = Proximity(Circle(60.0), Position(80.0, 0.0))
SOUTH = Proximity(Circle(60.0), Position(-80.0, 0.0))
STEADY = replace(PAPER, beacon_jitter=0.0, keep_stationary=False)


def crossing(settings: SteamSettings = STEADY) -> SteamTable:
    """A device with two traffic lights, and a vehicle at each of them."""
    table = SteamTable({"lights": stays(0.0), "northern": stays(80.0), "southern": stays(-80.0)}, settings)
    table.announce("lights", "Light", NORTH, producer="north")
    table.announce("lights", "Light", SOUTH, producer="south")
    table.subscribe(["northern", "southern"], "Light")
    table.run(1.5)
    return table


def receivers(table: SteamTable, event: str) -> list[str]:
    return sorted(node for node, delivered, _ in table.table.delivered if delivered == event)


def test_each_producer_raises_within_its_own_proximity() -> None:
    table = crossing()
    to_north = table.publish("lights", "Light", producer="north")
    to_south = table.publish("lights", "Light", producer="south")
    table.run(2.0)
    assert (receivers(table, to_north), receivers(table, to_south)) == (["northern"], ["southern"])
    assert [list(table.machines[node].relevant.by_key) for node in ("northern", "southern")] == [
        [("lights#north", "Light")],
        [("lights#south", "Light")],
    ]


def test_one_producer_unannounces_and_the_other_one_goes_on() -> None:
    table = crossing()
    table.table.do("lights", "unannounce", "Light#north")
    table.run(8.0)
    event = table.publish("lights", "Light", producer="south")
    table.run(9.0)
    assert receivers(table, event) == ["southern"]
    assert [len(table.machines[node].relevant) for node in ("northern", "southern")] == [0, 1]
    with pytest.raises(UnknownName, match="Light#north"):
        table.table.do("lights", "unannounce", "Light#north")


def test_a_producer_that_announces_again_replaces_its_own_proximity_only() -> None:
    table = crossing()
    table.announce("lights", "Light", Proximity(Circle(60.0), Position(80.0, -150.0)), producer="north")
    table.run(2.6)
    assert [len(table.machines[node].relevant) for node in ("northern", "southern")] == [0, 1]


def test_a_mobile_and_a_stationary_producer_share_a_device() -> None:
    table = SteamTable({"p": goes(0.0, 10.0), "c": goes(5.0, 10.0), "d": stays(0.0)}, STEADY)
    table.announce("p", "Light", Proximity(Circle(30.0), Position(0.0, 0.0), mobile=True))
    table.announce("p", "Light", Proximity(Circle(20.0), Position(0.0, 0.0)), producer="lamp")
    table.subscribe(["c", "d"], "Light")
    table.run(6.5)
    around, there = table.publish("p", "Light"), table.publish("p", "Light", producer="lamp")
    table.run(7.0)
    assert (receivers(table, around), receivers(table, there)) == (["c"], ["d"])


def test_an_event_that_belongs_to_none_of_several_producers_is_refused() -> None:
    table = crossing()
    with pytest.raises(EventError, match="none of them with this event's area"):
        table.machines["lights"].publish(Event("Light", id="e", source="lights"), 2.0)


def test_producers_of_one_subject_on_a_device_have_one_content() -> None:
    table = crossing()
    described = Announcement(EventType("Light", {"colour": "string"}), NORTH, "east")
    with pytest.raises(ContentMismatch):
        table.machines["lights"].announce(described, 2.0)


@pytest.mark.parametrize(("node", "producer"), [("p", "north"), ("p", "south"), ("q", "north")])
def test_what_a_producer_raised_is_recovered_from_it_at_once(node: str, producer: str) -> None:
    """All announce at the same time, and the northern ones the same pair: names and epochs tell them apart. The gap in
    the producer's sequence shows before its next beacon, and one request is enough."""
    near = {"north": Proximity(Circle(100.0), Position(0.0, 0.0)), "south": Proximity(Circle(99.0), Position(0.0, 0.0))}
    table = SteamTable({"p": stays(0.0), "q": stays(5.0), "c": stays(10.0)}, replace(RECOVERING, beacon_jitter=0.0))
    for each, name in (("p", "north"), ("p", "south"), ("q", "north")):
        table.announce(each, "Light", near[name], producer=name)
    table.subscribe(["c"], "Light")
    table.run(1.1)
    table.severed.add(frozenset((node, "c")))
    missed = table.publish(node, "Light", producer=producer)
    table.run(1.15)
    table.severed.clear()
    next_one = table.publish(node, "Light", producer=producer)
    table.run(1.9)
    assert [event for receiver, event, _ in table.table.delivered if receiver == "c"] == [next_one, missed]
    table.run(6.0)
    assert [sender for sender, packet in table.table.sent if isinstance(packet, RecoveryRequest)] == ["c"]


def test_a_peer_cannot_beacon_for_a_producer_of_this_node() -> None:
    table = crossing()
    lights = table.machines["lights"]
    (listed,) = table.machines["northern"].relevant.by_key.values()
    forged = msgspec.structs.replace(listed.advert, epoch=9.0, proximity=Proximity(Circle(500.0), Position(0.0, 0.0)))
    lights.hear(ProximityBeacon((forged,)), "southern", 2.0)
    assert list(lights.relevant.by_key) == []
