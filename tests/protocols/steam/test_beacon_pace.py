"""How beacons are kept few: their pace, their margin, one a group, questions, and relays for events."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steam_table import SteamTable, goes, stays

from earshot import Circle, Event, EventType, Position, Proximity
from earshot.protocols.machine import Announcement, Broadcast, FixedLocation, StartTimer
from earshot.protocols.steam.beacon_pace import Pace, pace
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import PAPER, ProximityBeacon, ProximityQuestion, Raised, SteamSettings
from sizes import sized

STEADY = SteamSettings(beacon_jitter=0.0)
HERE = Position(0.0, 0.0)
MANY = 30
"Beacons after which an announcement is no longer new."


@pytest.mark.parametrize(
    ("interval_s", "expected_s"), [(0.1, 7.0), (2.0, 7.0), (3.0, 10.5), (8.0, 28.0), (9.0, 28.0), (math.inf, 28.0)]
)
def test_a_proximity_with_rare_beacons_stays_listed_for_longer_within_the_stretch(
    interval_s: float, expected_s: float
) -> None:
    rare = SteamSettings(beacon_interval_s=2.0, beacon_stretch=4.0, expiry_s=7.0)
    assert rare.expires_after_s(interval_s) == expected_s


@pytest.mark.parametrize(
    ("reach_m", "slack_m", "naval_m_s", "beacons", "busy_share", "expected"),
    [
        (300.0, -100.0, 0.0, MANY, 0.0, Pace(5, 75.0)),
        (300.0, -100.0, 10.0, MANY, 0.0, Pace(3, 75.0)),
        (300.0, -100.0, 0.0, 0, 0.0, Pace(1, 15.0)),
        (300.0, -100.0, 0.0, 2, 0.0, Pace(4, 60.0)),
        (300.0, -100.0, 0.0, MANY, 0.5, Pace(10, 150.0)),
        (300.0, -100.0, 0.0, MANY, 1.0, Pace(32, 480.0)),
        (100.0, 100.0, 0.0, MANY, 0.0, Pace(1, 15.0)),
        (190.0, 10.0, 0.0, MANY, 0.0, Pace(1, 10.0)),
        (200.0, 0.0, 0.0, MANY, 0.0, Pace(1, 0.0)),
        (math.inf, -math.inf, 0.0, 0, 0.0, Pace(1, 0.0)),
        (math.inf, -math.inf, 0.0, 3, 0.0, Pace(8, 0.0)),
        (math.inf, -math.inf, 0.0, MANY, 0.0, Pace(32, 0.0)),
    ],
)
def test_the_pace_follows_reach_speed_age_and_channel(
    reach_m: float, slack_m: float, naval_m_s: float, beacons: int, busy_share: float, expected: Pace
) -> None:
    found = pace(reach_m, slack_m, naval_m_s, beacons, busy_share, STEADY)
    assert (found.rounds, found.margin_m) == (expected.rounds, pytest.approx(expected.margin_m))
    assert pace(reach_m, slack_m, naval_m_s, beacons, busy_share, PAPER) == Pace(1, 0.0)


@settings(max_examples=sized(40, 1000), deadline=None)
@given(
    radius_m=st.floats(20.0, 165.0),
    speed_m_s=st.floats(1.0, 15.0),
    producer_m_s=st.sampled_from([0.0, 5.0, 10.0]),
    start_m=st.floats(0.0, 60.0),
    seed=st.integers(0, 100),
)
def test_a_consumer_learns_of_a_proximity_before_it_is_inside(
    radius_m: float, speed_m_s: float, producer_m_s: float, start_m: float, seed: int
) -> None:
    """The producer drives east, the consumer comes to meet it. The beacons begin at a random phase, well before."""
    closing_m_s = speed_m_s + producer_m_s
    meeting_m = 200.0 + start_m + 20.0 * closing_m_s
    table = SteamTable({"p": goes(0.0, producer_m_s), "c": goes(meeting_m, -speed_m_s)}, SteamSettings())
    table.machines["p"].random = Random(seed)
    table.announce("p", "Siren", Proximity(Circle(radius_m), HERE, mobile=True))
    table.subscribe(["c"], "Siren")
    table.run((meeting_m - radius_m) / closing_m_s + 0.01)
    assert table.where("c").distance_to(table.where("p")) <= radius_m
    assert table.machines["c"].relevant.groups


def test_a_consumer_in_the_margin_is_a_member_but_delivers_nothing_yet() -> None:
    table = SteamTable({"p": stays(0.0), "c": goes(110.0, -5.0)}, STEADY)
    table.announce("p", "Siren", Proximity(Circle(100), HERE))
    table.subscribe(["c"], "Siren")
    table.run(1.5)  # at 102.5 m
    outside = table.publish("p", "Siren")
    table.run(2.5)  # at 97.5 m
    inside = table.publish("p", "Siren")
    table.run(6.0)
    assert (table.receivers(outside), table.receivers(inside)) == ([], ["c"])
    assert table.senders("steam-request") == []


def test_what_is_announced_for_everywhere_is_beaconed_ever_more_rarely() -> None:
    table = SteamTable({"p": stays(0.0)}, STEADY)
    table.announce("p", "News", None)
    table.run(180.0)
    beacons = [packet.adverts[0] for _, packet in table.table.sent if isinstance(packet, ProximityBeacon)]
    assert [one.interval_s for one in beacons] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0, 32.0]


def test_of_many_producers_of_one_type_everywhere_the_nearest_is_passed_on() -> None:
    chain = {f"n{k:02d}": stays(150.0 * k) for k in range(21)}
    table = SteamTable(chain, STEADY)
    for k in (0, 10, 20):
        table.announce(f"n{k:02d}", "News", None)
    table.subscribe(chain, "News")
    table.run(100.0)
    known = {node: sorted(name for name, _ in machine.relevant.by_key) for node, machine in table.machines.items()}
    table.table.sent.clear()
    table.run(140.0)
    adverts = [
        one.producer for _, packet in table.table.sent if isinstance(packet, ProximityBeacon) for one in packet.adverts
    ]
    assert (known["n01"], known["n11"], known["n19"]) == (["n00"], ["n10"], ["n20"])
    assert len(adverts) <= 21 + 4, "about one beacon a node and period, not three"
    event = table.publish("n20", "News")
    table.run(150.0)
    assert len(table.receivers(event)) == 20, "also from a producer whose beacons they do not know"


def test_a_newcomer_asks_its_neighbours_instead_of_waiting_for_the_next_beacon() -> None:
    table = SteamTable({"p": stays(0.0), "r": stays(150.0), "c": stays(300.0)}, STEADY)
    table.announce("p", "News", None)
    table.run(70.0)  # the next beacon is due at 95 s
    table.table.sent.clear()
    table.subscribe(["c"], "Weather")
    table.machines["c"].forget(table.machines["c"].relevant.by_key["p", "News"])
    table.subscribe(["c"], "News")
    table.run(72.0)
    assert table.machines["c"].relevant.groups
    assert table.senders("steam-question") == ["c"]
    event = table.publish("p", "News")
    table.run(74.0)
    assert table.receivers(event) == ["c"]


def test_a_consumer_of_a_type_that_nobody_announces_asks_twice() -> None:
    table = SteamTable({"p": stays(0.0), "c": stays(100.0)}, STEADY)
    table.announce("p", "News", None)
    table.subscribe(["c"], "Weather")
    table.run(100.0)
    assert table.senders("steam-question") == ["c", "c"]


def test_however_many_ask_the_answers_are_bounded() -> None:
    answering = Steam("p", STEADY, FixedLocation(HERE), Random(1))
    for k in range(100):
        answering.announce(Announcement(EventType(f"Type {k}")), 0.0)
    sent = 0
    for k in range(1000):
        question = ProximityQuestion(HERE, tuple(f"Type {n}" for n in range(1000)) if k % 2 else ())
        effects = [*answering.hear(question, "x", 2.0 + k * 1e-4), *answering.wake("onward", 2.0 + k * 1e-4)]
        sent += sum(isinstance(effect, Broadcast) for effect in effects)
    assert sent <= math.ceil(100 / 16) + 1


def test_nodes_that_do_not_want_an_event_pass_it_on_inside_its_proximity() -> None:
    chain = {f"n{k}": stays(150.0 * k) for k in range(6)}
    table = SteamTable(chain, STEADY)
    table.announce("n0", "Siren", Proximity(Circle(460), HERE))
    table.subscribe(["n3", "n5"], "Siren")
    table.run(5.0)
    event = table.publish("n0", "Siren")
    table.run(6.0)
    assert table.receivers(event) == ["n3"]
    assert table.senders("steam-event") == ["n0", "n1", "n2", "n3"]


def test_an_event_that_enough_neighbours_passed_on_is_not_passed_on_again() -> None:
    wide = Proximity(Circle(700), HERE)
    producer = Steam("p", STEADY, FixedLocation(HERE), Random(1))
    beacon = next(e for e in producer.announce(Announcement(EventType("Siren"), wide), 0.0) if isinstance(e, Broadcast))
    event = Event("Siren", {}, "p:1", "p", HERE, None, 1.0, wide.area())
    raised = next(e for e in producer.publish(event, 1.0) if isinstance(e, Broadcast)).packet
    assert isinstance(raised, Raised)
    for copies, passed_on in ((3, 1), (4, 0)):
        relay = Steam("r", STEADY, FixedLocation(HERE), Random(1))
        relay.hear(beacon.packet, "p", 0.1)
        (timer,) = relay.hear(raised, "p", 1.0)
        assert isinstance(timer, StartTimer)
        for k in range(copies):
            assert relay.hear(raised, f"n{k}", 1.01) == []
        assert len(relay.wake(timer.name, timer.at)) == passed_on


def test_a_busy_channel_makes_beacons_rarer() -> None:
    class Busy:
        def busy_share(self, now: float) -> float:
            return 0.75

        def airtime_s(self, size_bytes: int) -> float:
            return 0.0

    sent = {}
    for name, channel in (("quiet", None), ("busy", Busy())):
        table = SteamTable({"p": stays(0.0)}, replace(STEADY, beacon_stretch=64.0))
        if channel is not None:
            table.machines["p"].channel = channel
        table.announce("p", "Siren", Proximity(Circle(700), HERE))
        table.run(400.0)
        sent[name] = len(table.senders("steam-beacon"))
    assert 3.0 < sent["quiet"] / sent["busy"] < 5.0
