"""Hearsay, rule by rule: who speaks, who falls silent, and what is repaired."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Rectangle, Velocity
from earshot.protocols.hearsay.digest import make_digest, quarter_of, wrapped
from earshot.protocols.hearsay.machine import Hearsay, hello_interval_s, longest_wait_s, near_area, wait_share
from earshot.protocols.hearsay.packets import PLAIN, HearsaySettings, Hello, Relayed, Said
from earshot.protocols.machine import (
    NOTHING,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    Effects,
    FixedLocation,
    Send,
    StartTimer,
)
from earshot.protocols.tabletop import Tabletop
from earshot.records import DropReason
from earshot.simulation import Scenario, load_scenario, run, summarise

EVENT = Event(type="CD", content={"price": 18}, id="x-0", source="x", time=10.0, position=Position(0.0, 0.0))
RANGE = HearsaySettings(range_m=100.0)
SLOW = HearsaySettings(wait_frames=32.0, patience=10.0)


def node(x: float = 0.0, y: float = 0.0, settings: HearsaySettings = RANGE, name: str = "a") -> Hearsay:
    machine = Hearsay(name, settings, FixedLocation(Position(x, y)), Random(name))
    machine.start(0.0)
    machine.subscribe(Subscription(f"{name}/0", name, Filter.of_type("CD")), now=0.0)
    return machine


def hello(
    x: int | None, y: int = 0, *, velocity: tuple[int, int] = (0, 0), holds: list[str] | None = None, number: int = 1
) -> Hello:
    """Of a node at this place that holds these events and covers all times."""
    held = holds or []
    digest = make_digest(held, 7, 16) if held else b""
    return Hello(number, None if x is None else (x, y), velocity, 4, 0, 0, 7, digest)


def said(event: Event = EVENT, hops: int = 1, at: tuple[int, int] | None = (0, 0)) -> Said:
    return Said(event, hops, at)


def timer(effects: Effects) -> StartTimer:
    [found] = [effect for effect in effects if isinstance(effect, StartTimer)]
    return found


# Rules 1 and 2.


def test_a_publisher_broadcasts_at_once_and_ignores_the_echo() -> None:
    a = node(5.0, 7.0)
    assert a.publish(EVENT, now=10.0) == [Broadcast(Said(EVENT, 1, (5, 7)))]
    assert a.hear(said(), "b", now=10.1) is NOTHING


def test_a_node_that_knows_nobody_to_reach_delivers_and_stays_silent() -> None:
    a = node(50.0)
    a.hear(hello(20), "near", now=9.0)
    assert a.hear(said(), "s", now=10.1) == [Deliver(EVENT, "a/0", 1)]


def test_a_neighbour_beyond_the_senders_reach_is_spoken_for() -> None:
    a = node(80.0)
    a.hear(hello(150), "far", now=9.0)
    effects = a.hear(said(hops=3), "s", now=10.1)
    assert effects[0] == Deliver(EVENT, "a/0", 3)
    assert timer(effects).name == ("say", "x-0")
    assert 10.1 <= timer(effects).at <= 10.1 + 6 * 10 * 0.003
    assert a.wake(("say", "x-0"), timer(effects).at) == [Broadcast(Said(EVENT, 4, (80, 0)))]


def test_the_sender_and_the_source_are_not_spoken_for() -> None:
    a = node(80.0)
    a.hear(hello(150), "x", now=9.0)
    a.hear(hello(160), "s", now=9.0)
    assert a.hear(said(at=None), "s", now=10.1) == [Deliver(EVENT, "a/0", 1)]


def test_places_are_extrapolated() -> None:
    a = node(80.0)
    a.hear(hello(60, velocity=(300, 0)), "fast", now=7.0)
    assert timer(a.hear(said(), "s", now=10.1)).name == ("say", "x-0")


def test_only_those_in_the_area_at_publication_are_spoken_for() -> None:
    area = Area(Circle(140.0))
    inside, outside = (Event("CD", id=f"x-{k}", source="x", time=10.0, area=area) for k in range(2))
    a = node(80.0)
    a.hear(hello(142), "border", now=9.0)
    a.hear(said(inside), "s", now=10.1)
    assert set(a.waiting) == {"x-0"}
    b = node(80.0)
    b.hear(hello(155, velocity=(-200, 0)), "arrives", now=9.99)
    b.hear(said(outside), "s", now=11.0)
    assert b.waiting == {}


@pytest.mark.parametrize(
    ("gain", "nearness", "draw", "expected"),
    [
        (6.2, 0.0, 0.0, 0.0),
        (9.9, 0.0, 0.0, 0.0),
        (6.2, 0.0, 1.0, 0.05),
        (6.2, 1.0, 0.0, 0.35),
        (3.1, 0.0, 0.0, 0.3),
        (0.62, 0.0, 0.0, 0.54 * 10.0),
    ],
)
def test_the_best_placed_wait_least(gain: float, nearness: float, draw: float, expected: float) -> None:
    assert wait_share(gain, 6.2, nearness, draw, SLOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("neighbours", "priority", "expected"), [(10, 0, 0.096), (10, 2, 0.048), (24, 0, 0.192), (100, 0, 0.288)]
)
def test_crowds_wait_longer_and_urgent_events_less(neighbours: int, priority: int, expected: float) -> None:
    assert longest_wait_s(neighbours, 0.003, priority, SLOW) == pytest.approx(expected)


def test_on_a_road_nodes_learn_what_the_best_placed_reaches() -> None:
    a = node(90.0)
    for k in range(10):
        a.hear(hello(160 + k), f"far{k}", now=9.0)
        a.hear(hello(10 + k), f"near{k}", now=9.0)
        a.hear(hello(20 + k), f"nearer{k}", now=9.0)
    waits = []
    for k in range(60):
        event = Event("CD", id=f"x-{k}", source="x", time=10.0)
        waits.append(timer(a.hear(said(event), "s", now=10.1)).at - 10.1)
    assert a.best_share == pytest.approx(1 / 3)
    assert waits[-1] < waits[0] / 3


def test_waits_stretch_with_the_time_on_air_and_with_a_busy_channel() -> None:
    class Slow:
        busy = 0.0

        def busy_share(self, now: float) -> float:
            return self.busy

        def airtime_s(self, size_bytes: int) -> float:
            return 0.05

    ends = []
    for busy in (0.0, 0.5, 1.0):
        channel = Slow()
        channel.busy = busy
        a = Hearsay("a", RANGE, FixedLocation(Position(80.0, 0.0)), Random("a"), channel)
        a.start(0.0)
        for k in range(20):
            a.hear(hello(90, k), f"near{k}", now=9.0)
        a.hear(hello(150), "far", now=9.0)
        ends.append(timer(a.hear(said(), "s", now=10.0)).at - 10.0)
    assert ends[0] > 0.5
    assert ends == [pytest.approx(ends[0]), pytest.approx(2 * ends[0]), pytest.approx(4 * ends[0])]


def test_an_event_stops_at_the_hop_limit_and_after_its_lifespan() -> None:
    a = node(80.0, settings=HearsaySettings(range_m=100.0, hop_limit=3, lifespan_s=10.0))
    a.hear(hello(150), "far", now=9.0)
    assert a.hear(said(hops=3), "s", now=10.1) == [Deliver(EVENT, "a/0", 3), Drop("hop-limit", "x-0")]
    late = Event("CD", id="x-1", source="x", time=1.0)
    assert a.hear(said(late), "s", now=11.5) == [Drop("expired", "x-1")]


# Rule 3.


def test_a_copy_that_reaches_the_rest_silences_a_waiting_node() -> None:
    a = node(80.0)
    a.hear(hello(150), "far", now=9.0)
    a.hear(hello(80, 90), "other", now=9.0)
    a.hear(said(), "s", now=10.0)
    assert set(a.waiting["x-0"].lacking) == {"far", "other"}
    assert a.hear(said(at=(90, 0), hops=2), "b", now=10.001) == [CancelTimer(("say", "x-0"))]
    assert a.wake(("say", "x-0"), 10.01) == []


def test_a_copy_that_reaches_only_some_leaves_the_others() -> None:
    a = node(80.0)
    a.hear(hello(150), "far", now=9.0)
    a.hear(hello(80, 90), "other", now=9.0)
    a.hear(said(), "s", now=10.0)
    a.hear(said(at=(30, 60), hops=2), "b", now=10.001)
    assert a.waiting["x-0"].lacking == {"far": pytest.approx(0.3)}


def test_many_copies_silence_a_node_though_they_do_not_reach_the_rest() -> None:
    a = node(80.0)
    a.hear(hello(150), "far", now=9.0)
    a.hear(said(), "s", now=10.0)
    assert a.hear(said(at=(0, 10), hops=2), "b", now=10.001) == []
    assert a.hear(said(at=(0, 20), hops=2), "c", now=10.002) == [CancelTimer(("say", "x-0"))]


def test_on_a_busy_channel_a_node_waits_for_its_turn() -> None:
    class Busy:
        def busy_share(self, now: float) -> float:
            return 0.6

        def airtime_s(self, size_bytes: int) -> float:
            return 0.01

    each_alone = replace(RANGE, together_bytes=0.0)
    a = Hearsay("a", each_alone, FixedLocation(Position(80.0, 0.0)), Random("a"), Busy())
    a.start(0.0)
    a.hear(hello(150), "far", now=9.0)
    for k in range(2):
        a.hear(said(Event("CD", id=f"x-{k}", source="x", time=10.0)), "s", now=10.0)
    assert isinstance(a.wake(("say", "x-0"), 10.1)[0], Broadcast)
    later = timer(a.wake(("say", "x-1"), 10.11))
    assert later.name == ("say", "x-1")
    assert 10.14 <= later.at <= 10.18
    assert isinstance(a.wake(("say", "x-1"), later.at)[0], Broadcast)


# Rule 4.


def test_hellos_come_with_the_interval_and_early_when_the_node_turns() -> None:
    class Turning(FixedLocation):
        def position(self, time: float) -> Position:
            return Position(10.0 * min(time, 5.0), 0.0)

        def velocity(self, time: float) -> Velocity:
            return Velocity(10.0 if time < 5.0 else 0.0, 0.0)

    a = Hearsay("a", HearsaySettings(range_m=100.0, hello_interval_s=20.0), Turning(), Random(3))
    table = Tabletop([a], [])
    table.run(4.9)
    [(_, first)] = table.sent
    assert isinstance(first, Hello)
    assert first.velocity == (100, 0)
    table.run(8.0)
    [_, (_, second)] = table.sent
    assert isinstance(second, Hello)
    assert (second.at, second.velocity, second.number) == ((50, 0), (0, 0), 2)


def test_slow_radios_and_crowds_have_rarer_hellos() -> None:
    assert hello_interval_s(12, 0.001, 0.0, PLAIN) == 6.0
    assert hello_interval_s(24, 0.001, 0.0, PLAIN) == 12.0
    assert hello_interval_s(19, 0.1, 1.0, PLAIN) == pytest.approx(100.0)


def test_a_node_that_depends_on_repair_greets_more_often() -> None:
    assert [hello_interval_s(1, 0.001, late, PLAIN) for late in (0.0, 0.05, 0.1, 1.0)] == [6.0, 4.0, 3.0, 3.0]
    a = node(50.0)
    for k in range(10):
        a.hear(said(Event("CD", id=f"soon-{k}", source="x", time=10.0)), "s", now=10.1)
    assert a.late_share == 0.0
    for k in range(10):
        a.hear(said(Event("CD", id=f"late-{k}", source="x", time=10.0)), "s", now=14.0)
    assert a.late_share > 0.3


def test_a_silent_neighbour_is_forgotten() -> None:
    a = node()
    a.hear(hello(10), "b", now=1.0)
    a.wake("check", 11.7)
    assert len(a.neighbours) == 1
    a.wake("check", 13.9)
    a.wake("check", a.hello_due)
    assert len(a.neighbours) == 0


def test_a_neighbour_that_has_moved_out_of_reach_is_forgotten() -> None:
    a = node()
    a.hear(hello(10, velocity=(300, 0)), "b", now=1.0)
    a.wake("check", 2.1)
    assert len(a.neighbours) == 1
    a.wake("check", a.hello_due)
    assert len(a.neighbours) == 0


def test_neighbours_are_bounded() -> None:
    a = node(settings=HearsaySettings(neighbour_limit=3))
    for k in range(5):
        a.hear(hello(10), f"n{k}", now=1.0 + k)
    assert list(a.neighbours.by_name) == ["n2", "n3", "n4"]


# Rule 5.


def test_what_a_neighbour_lacks_is_said_again() -> None:
    a = node(80.0)
    a.hear(said(hops=2), "s", now=10.0)
    effects = a.hear(hello(150), "late", now=12.0)
    assert timer(effects).name == ("say", "x-0")
    assert a.wake(("say", "x-0"), 12.1) == [Broadcast(Said(EVENT, 3, (80, 0)))]


@pytest.mark.parametrize(
    ("greeting", "now"),
    [
        (hello(150, holds=["x-0"]), 12.0),
        (hello(150), 10.1),
        (Hello(1, (150, 0), (0, 0), 4, wrapped(quarter_of(11.0)), 0, 7, b""), 12.0),
        (Hello(1, (150, 0), (0, 0), 4, 0, 20, 7, b""), 12.0),
    ],
    ids=["it holds it", "too early", "before its span", "after its span"],
)
def test_no_repair_is_needed(greeting: Hello, now: float) -> None:
    a = node(80.0)
    a.hear(said(), "s", now=10.0)
    a.hear(greeting, "late", now=now)
    assert a.waiting == {}


def test_no_repair_for_a_neighbour_that_was_outside_the_area() -> None:
    a = node(80.0)
    a.hear(said(Event("CD", id="x-1", source="x", time=10.0, area=Area(Circle(100.0)))), "s", now=10.0)
    a.hear(hello(150), "late", now=12.0)
    assert a.waiting == {}


def test_a_repair_that_another_neighbour_makes_is_not_made_twice() -> None:
    a = node(80.0)
    a.hear(said(), "s", now=10.0)
    a.hear(hello(150), "late", now=12.0)
    assert a.hear(said(at=(120, 0), hops=2), "b", now=12.01) == [CancelTimer(("say", "x-0"))]


def test_a_hello_that_shows_the_event_ends_the_wait() -> None:
    a = node(80.0)
    a.hear(hello(150), "far", now=9.0)
    a.hear(said(), "s", now=10.0)
    assert CancelTimer(("say", "x-0")) in a.hear(hello(150, holds=["x-0"], number=2), "far", now=10.01)


def test_a_healed_partition_floods_itself() -> None:
    """A line of six; the link in the middle is down when the event is published, and up again later."""
    names = "abcdef"
    machines = [node(80.0 * k, name=name) for k, name in enumerate(names)]
    table = Tabletop(machines, pairwise(names))
    table.run(5.0)
    table.cut("c", "d")
    table.do("a", "publish", Event("CD", id="x-0", source="a", time=table.now))
    table.run(8.0)
    assert {name for name, _, _ in table.delivered} == {"b", "c"}
    table.link("c", "d")
    table.run(20.0)
    assert {name for name, _, _ in table.delivered} == {"b", "c", "d", "e", "f"}


def test_repairs_come_most_urgent_first_and_within_their_airtime() -> None:
    a = node(80.0)
    for k in range(40):
        a.hear(said(Event("CD", id=f"x-{k}", source="x", time=10.0, priority=k % 4)), "s", now=10.0)
    a.hear(hello(150), "late", now=12.0)
    assert len(a.waiting) == 32
    assert [a.waiting[key].live.event.priority for key in list(a.waiting)[:10]] == [3] * 10  # type: ignore[union-attr]
    for k in range(200):
        a.hear(hello(150), f"liar{k}", now=12.0)
    offers = sum(sum(live.offers.values()) for live in a.live.by_id.values())
    assert offers <= 40


# Rule 6.


def test_digests_take_turns_where_one_cannot_hold_all_events() -> None:
    a = node(settings=HearsaySettings(digest_bytes=16, digest_bits=8))
    for k in range(40):
        a.hear(said(Event("CD", id=f"x-{k}", source="x", time=10.0 + k)), "s", now=50.0)
    reported: set[str] = set()
    for _ in range(5):
        a.hellos += 1
        span, events = a.next_digest_span()
        assert len(events) <= 16
        quarters = [quarter_of(10.0 + k) for k in range(40)]
        until = span.until or max(quarters) + 1
        covered = [k for k, quarter in enumerate(quarters) if span.since <= quarter < until]
        assert events == [f"x-{k}" for k in covered]
        reported |= set(events)
    assert len(reported) == 40


# Without a place.


def test_without_a_place_copies_are_counted() -> None:
    blind = HearsaySettings(range_m=100.0, knows_place=False)
    a = node(settings=blind)
    a.hear(hello(None), "b", now=9.0)
    a.hear(said(at=None), "s", now=10.0)
    assert "x-0" in a.waiting
    assert a.hear(said(at=None), "t", now=10.001) == [CancelTimer(("say", "x-0"))]


def test_a_node_without_a_place_says_so() -> None:
    a = node(settings=HearsaySettings(knows_place=False))
    assert a.publish(EVENT, now=10.0) == [Broadcast(Said(EVENT, 1, None))]


# Geometry.


def test_near_area() -> None:
    area = Area(Rectangle(100.0, 50.0), Position(10.0, 0.0))
    assert near_area(area, 62.0, 0.0, 5.0)
    assert not near_area(area, 66.0, 0.0, 5.0)
    assert near_area(area, 10.0, 0.0, 5.0)
    assert near_area(Area(Circle(1.0)), 3.0, 0.0, 5.0)


# Rule 7.

GATEWAYS = HearsaySettings(range_m=100.0, gateways=("a", "b", "c"))


def test_a_gateway_relays_what_it_publishes_at_once() -> None:
    a = node(settings=GATEWAYS)
    effects = a.publish(EVENT, now=10.0)
    assert [effect for effect in effects if isinstance(effect, Send)] == [
        Send("b", Relayed(EVENT, 1)),
        Send("c", Relayed(EVENT, 1)),
    ]


def test_a_gateway_relays_what_it_hears_unless_another_comes_first() -> None:
    alone, second = node(settings=GATEWAYS), node(settings=GATEWAYS, name="b")
    for gateway in (alone, second):
        relay = timer(gateway.hear(said(hops=2), "s", now=10.1))
        assert relay.name == ("relay", "x-0")
        assert 10.1 <= relay.at <= 10.3
    sent = alone.wake(("relay", "x-0"), 10.2)
    assert sent == [Send("b", Relayed(EVENT, 3)), Send("c", Relayed(EVENT, 3))]
    assert second.hear(Relayed(EVENT, 3), "a", now=10.25) == [CancelTimer(("relay", "x-0"))]


def test_a_relayed_event_is_delivered_and_said_for_every_neighbour_but_not_relayed_again() -> None:
    b = node(settings=GATEWAYS, name="b")
    b.hear(hello(20), "near", now=9.0)
    effects = b.hear(Relayed(EVENT, 3), "a", now=10.1)
    assert Deliver(EVENT, "b/0", 3) in effects
    assert timer(effects).name == ("say", "x-0")
    assert b.wake(("say", "x-0"), timer(effects).at) == [Broadcast(Said(EVENT, 4, (0, 0)))]


def test_a_relayed_event_past_its_lifespan_is_dropped() -> None:
    b = node(settings=GATEWAYS, name="b")
    late = EVENT.time + GATEWAYS.lifespan_s + 1.0
    assert b.hear(Relayed(EVENT, 3), "a", now=late)[-1] == Drop(DropReason.EXPIRED, "x-0")


@pytest.mark.parametrize(("name", "sender"), [("b", "stranger"), ("ordinary", "a")])
def test_only_gateways_relay_and_only_to_gateways(name: str, sender: str) -> None:
    one = node(settings=GATEWAYS, name=name)
    assert one.hear(Relayed(EVENT, 1), sender, now=10.1) == [Drop(DropReason.NOT_A_GATEWAY, "x-0")]


def test_nodes_that_are_not_gateways_relay_nothing() -> None:
    ordinary = node(settings=GATEWAYS, name="ordinary")
    assert ordinary.publish(EVENT, now=10.0) == [Broadcast(Said(EVENT, 1, (0, 0)))]
    other = node(settings=GATEWAYS, name="other")
    assert other.hear(said(), "s", now=10.1) == [Deliver(EVENT, "other/0", 1)]


def two_towns(**changes: object) -> Scenario:
    """Two rows of ten nodes, 100 m apart, with 2 km between the rows."""
    places = [[100.0 * i + (2000.0 if i >= 10 else 0.0), 0.0] for i in range(20)]
    nodes = {"nodes.node.count": 20, "nodes.node.mobility": {"kind": "given", "at_m": places}}
    return load_scenario("base").with_({"area.width_m": 4000.0, "medium.range_m": 150.0, **nodes}).with_(changes)


def test_gateways_join_towns_that_no_radio_joins() -> None:
    apart = two_towns()
    joined = two_towns(infrastructure=True)
    two_gateways = {"gateways": ["node-02", "node-17"]}
    without, with_them = run(apart, "hearsay", {}, 1), run(joined, "hearsay", two_gateways, 1)
    assert 0.2 < (summarise(apart, without).delivery_ratio or 0.0) < 0.8
    assert summarise(joined, with_them).delivery_ratio == pytest.approx(1.0, abs=0.005)
    assert "far" not in without.counts.packets
    assert with_them.counts.packets["far"].sends == len(with_them.published)


def test_gateways_of_one_town_relay_an_event_once_for_all_of_them() -> None:
    """Three gateways hear each event of their town: about one of them relays it, to three others."""
    town = two_towns(infrastructure=True)
    gateways = ["node-02", "node-04", "node-06", "node-17"]
    result = run(town, "hearsay", {"gateways": gateways, "gateway_wait_s": 2.0}, 1)
    assert summarise(town, result).delivery_ratio == pytest.approx(1.0, abs=0.005)
    assert 3.0 <= result.counts.packets["far"].sends / len(result.published) < 3.5
