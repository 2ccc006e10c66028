"""What the paper describes and the defaults do not do: stationary proximities kept, own consumers, slow location."""

from __future__ import annotations

from dataclasses import replace

from steam_table import SteamTable, Walk, goes, stays

from earshot import Circle, EventType, Position, Proximity
from earshot.protocols.steam.location_updates import UpdatedLocation
from earshot.protocols.steam.packets import PAPER, SteamSettings

LIGHT = EventType("Light")
STILL = Proximity(Circle(100.0), Position(0.0, 0.0))
MOBILE = Proximity(Circle(100.0), Position(0.0, 0.0), mobile=True)
STEADY = replace(PAPER, beacon_jitter=0.0)


def listed_after_silence(proximity: Proximity, settings: SteamSettings) -> int:
    table = SteamTable({"p": stays(0.0), "c": stays(10.0)}, settings)
    table.announce("p", LIGHT, proximity)
    table.subscribe(["c"], "Light")
    table.run(2.5)
    table.table.do("p", "unannounce", "Light")
    table.run(20.0)
    return len(table.machines["c"].relevant)


def test_a_stationary_proximity_is_kept_while_inside() -> None:
    assert listed_after_silence(STILL, STEADY) == 1
    assert listed_after_silence(MOBILE, STEADY) == 0
    assert listed_after_silence(STILL, replace(STEADY, keep_stationary=False)) == 0


def test_a_stationary_proximity_is_left_when_the_node_leaves_it() -> None:
    table = SteamTable({"p": stays(0.0), "c": goes(0.0, 10.0)}, STEADY)
    table.announce("p", LIGHT, STILL)
    table.subscribe(["c"], "Light")
    table.run(5.0)
    inside = len(table.machines["c"].relevant)
    table.run(15.0)
    assert (inside, len(table.machines["c"].relevant)) == (1, 0)


def test_a_consumer_on_the_producers_device_receives_if_it_is_asked_for() -> None:
    for deliver_own, expected in ((False, []), (True, ["p"])):
        table = SteamTable({"p": stays(0.0)}, replace(STEADY, deliver_own=deliver_own))
        table.announce("p", LIGHT, STILL)
        table.subscribe(["p"], "Light")
        table.run(1.5)
        table.publish("p", "Light")
        table.run(2.0)
        assert [node for node, _, _ in table.table.delivered] == expected


def test_a_location_that_updates_once_a_second_lags_by_up_to_a_second() -> None:
    slow = UpdatedLocation(Walk(goes(0.0, 10.0)), 1.0)
    assert [slow.position(time).x_m for time in (0.0, 0.9, 1.0, 2.5)] == [0.0, 0.0, 10.0, 20.0]
