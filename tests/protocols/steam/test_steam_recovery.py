"""STEAM: events that a consumer missed during a partition, or before it heard a beacon."""

from __future__ import annotations

from dataclasses import replace

import pytest
from steam_table import SteamTable, goes, stays

from earshot import Circle, EventType, Position, Proximity
from earshot.protocols.machine import Drop, Send
from earshot.protocols.steam.packets import PAPER, RECOVERING, Recovered, RecoveryRequest, SteamSettings

STEADY = replace(RECOVERING, beacon_jitter=0.0)
HERE = Position(0.0, 0.0)
SIREN = EventType("Siren", {"speed": float})
WIDE = Proximity(Circle(500), HERE)


def chain(settings: SteamSettings = STEADY) -> SteamTable:
    """A producer, a relay and a consumer two hops away that has joined the group."""
    table = SteamTable({"p": stays(0.0), "r": stays(150.0), "c": stays(300.0)}, settings)
    table.announce("p", SIREN, WIDE)
    table.subscribe(["r", "c"], "Siren")
    table.run(0.5)
    return table


def raised(table: SteamTable, times: list[float]) -> list[str]:
    events = []
    for time in times:
        table.run(time)
        events.append(table.publish("p", "Siren", {"speed": time}))
        table.run(time + 0.05)
    return events


def test_a_consumer_asks_for_events_it_missed_while_a_link_was_broken() -> None:
    table = chain()
    before = raised(table, [0.6])
    table.severed.add(frozenset(("r", "c")))
    during = raised(table, [1.1, 1.2, 1.3])
    table.severed.clear()
    table.run(4.0)
    assert [table.receivers(event) for event in before + during] == [["c", "r"]] * 4
    requests = [(node, packet) for node, packet in table.table.sent if isinstance(packet, RecoveryRequest)]
    assert [(node, packet.sequences, packet.route) for node, packet in requests] == [
        ("c", (2, 3, 4), ("c",)),
        ("r", (2, 3, 4), ("c", "r")),
    ]
    answers = [(node, packet.sequence, packet.route) for node, packet in table.table.sent if type(packet) is Recovered]
    assert answers == [(node, k, route) for node, route in (("p", ("c",)), ("r", ())) for k in (2, 3, 4)]


def test_a_consumer_that_forgot_the_proximity_while_it_was_cut_off_still_catches_up() -> None:
    table = chain()
    table.severed.add(frozenset(("r", "c")))
    missed = raised(table, [float(second) for second in range(1, 10)])
    table.run(10.0)
    forgotten = len(table.machines["c"].relevant)
    table.severed.clear()
    table.run(13.0)
    assert (forgotten, [table.receivers(event) for event in missed]) == (0, [["c", "r"]] * 9)


def test_events_that_the_producer_no_longer_holds_are_not_requested() -> None:
    table = chain(replace(STEADY, cache_size=2))
    table.severed.add(frozenset(("r", "c")))
    missed = raised(table, [1.1, 1.2, 1.3, 1.4])
    table.severed.clear()
    table.run(6.0)
    assert [table.receivers(event) for event in missed] == [["r"], ["r"], ["c", "r"], ["c", "r"]]
    assert table.table.drops == []


def test_expired_events_are_not_requested() -> None:
    table = chain(replace(STEADY, lifespan_s=5.0))
    table.severed.add(frozenset(("r", "c")))
    missed = raised(table, [1.0, 2.0, 9.0])
    table.run(10.5)
    table.severed.clear()
    table.run(13.0)
    assert [table.receivers(event) for event in missed] == [["r"], ["r"], ["c", "r"]]


def test_a_request_that_reaches_no_producer_is_given_up_with_its_reason() -> None:
    table = chain()
    table.severed.add(frozenset(("r", "c")))
    (missed,) = raised(table, [1.1])
    table.run(1.5)
    table.severed.clear()
    table.run(2.05)  # the beacon at 2 s shows the gap
    table.severed.add(frozenset(("p", "r")))
    table.run(9.0)
    assert (table.receivers(missed), table.reasons("c")) == (["r"], ["missed-not-recovered"])
    assert table.reasons("r") == ["route-to-producer-broken"] * 3


def test_the_papers_prototype_recovers_nothing() -> None:
    table = chain(replace(PAPER, beacon_jitter=0.0))
    table.severed.add(frozenset(("r", "c")))
    (missed,) = raised(table, [1.1])
    table.severed.clear()
    table.run(6.0)
    assert (table.receivers(missed), table.senders("steam-request")) == (["r"], [])


def test_a_consumer_that_came_in_between_two_beacons_receives_events_raised_since() -> None:
    table = SteamTable({"p": stays(0.0), "c": goes(-205.0, 10.0)}, STEADY)
    table.announce("p", SIREN, Proximity(Circle(200), HERE))
    table.subscribe(["c"], "Siren")
    before = raised(table, [0.2])
    since = raised(table, [0.8])
    table.run(3.0)
    assert [table.receivers(event) for event in before + since] == [[], ["c"]]


def test_a_consumer_that_came_in_later_does_not_receive_earlier_events() -> None:
    table = SteamTable({"p": stays(0.0), "c": goes(-180.0, 20.0)}, STEADY)
    table.announce("p", SIREN, Proximity(Circle(100), HERE))
    table.subscribe(["c"], "Siren")
    events = raised(table, [0.5, 1.5, 2.5, 3.5])
    table.run(8.0)
    assert [table.receivers(event) for event in events] == [[], [], [], []]
    assert table.senders("steam-request") == []


def test_a_later_subscription_does_not_receive_earlier_events() -> None:
    table = SteamTable({"p": stays(0.0), "c": stays(50.0)}, STEADY)
    table.announce("p", SIREN, Proximity(Circle(100), HERE))
    table.run(0.5)
    earlier = raised(table, [0.6])
    table.run(0.7)
    table.subscribe(["c"], "Siren")
    table.run(4.0)
    assert table.receivers(earlier[0]) == []


def test_a_recovered_event_of_a_mobile_proximity_goes_only_to_nodes_that_were_inside() -> None:
    table = SteamTable({"p": goes(0.0, 30.0), "c": stays(140.0)}, STEADY)
    table.announce("p", SIREN, Proximity(Circle(100), HERE, mobile=True))
    table.subscribe(["c"], "Siren")
    events = raised(table, [0.5, 1.1, 1.4])  # at 15, 33 and 42 m: c comes inside at 1.33 s
    table.run(4.0)
    assert [table.receivers(event) for event in events] == [[], [], ["c"]]


def test_a_lossless_run_sends_no_requests() -> None:
    table = chain()
    raised(table, [0.5 + 0.07 * k for k in range(100)])
    table.run(12.0)
    assert (table.senders("steam-request"), table.table.drops) == ([], [])


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ((), "request-misrouted"),
        (tuple(map(str, range(99))), "request-misrouted"),
        (("c", "r"), "request-misrouted"),
    ],
)
def test_a_request_with_an_impossible_route_is_dropped(route: tuple[str, ...], reason: str) -> None:
    table = chain()
    request = RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, route)
    assert table.machines["r"].hear(request, "c", 1.0) == [Drop(reason)]


def test_a_request_for_a_type_not_announced_or_an_event_not_held_is_dropped() -> None:
    table = chain()
    producer, relay = table.machines["p"], table.machines["r"]
    assert relay.hear(RecoveryRequest("q", "Siren", 0.0, (1,), 0.0, ("c",)), "c", 1.0) == [Drop("no-route-to-producer")]
    assert producer.hear(RecoveryRequest("p", "News", 0.0, (1,), 0.0, ("c",)), "c", 1.0) == [
        Drop("no-longer-announced")
    ]
    assert producer.hear(RecoveryRequest("p", "Siren", 0.0, (7,), 0.0, ("c",)), "c", 1.0) == [Drop("no-longer-held")]


def test_a_producer_answers_one_consumer_once_in_half_a_period_however_often_it_asks() -> None:
    table = chain()
    raised(table, [0.6])
    producer = table.machines["p"]
    request = RecoveryRequest("p", "Siren", 0.0, (1,) * 50, 0.0, ("c", "r"))
    answers = [len([e for e in producer.hear(request, "r", 1.1) if type(e) is Send]) for _ in range(20)]
    assert answers == [1] + [0] * 19
