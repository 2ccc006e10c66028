"""Flooding: each event once, within its limits, to the subscriptions that accept it."""

from random import Random

import pytest

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.machine import NOTHING, Broadcast, Deliver, Drop, FixedLocation, StartTimer
from earshot.protocols.tabletop import Tabletop

EVENT = Event(type="CD", content={"price": 18}, id="x-0", source="x", time=1.0, position=Position(0.0, 0.0))


PLAIN = FloodingSettings()


def node(settings: FloodingSettings = PLAIN, name: str = "a", *filters: Filter) -> Flooding:
    machine = Flooding(name, settings, FixedLocation(Position(30.0, 40.0)), Random(name))
    for k, wanted in enumerate(filters):
        assert machine.subscribe(Subscription(f"{name}/{k}", name, wanted), now=0.0) is NOTHING
    return machine


def test_a_new_event_is_delivered_and_passed_on() -> None:
    a = node(PLAIN, "a", Filter.where("price < 20"), Filter.where("price > 20"), Filter.of_type("CD"))
    assert a.hear(Flood(EVENT, hops=3), "b", now=1.5) == [
        Deliver(EVENT, "a/0", 3),
        Deliver(EVENT, "a/2", 3),
        Broadcast(Flood(EVENT, hops=4)),
    ]


def test_a_duplicate_has_no_effect() -> None:
    a = node()
    a.hear(Flood(EVENT, hops=3), "b", now=1.5)
    assert a.hear(Flood(EVENT, hops=1), "c", now=1.6) is NOTHING


def test_a_publisher_sends_once_and_ignores_the_echo() -> None:
    a = node(PLAIN, "a", Filter.of_type("CD"))
    assert a.publish(EVENT, now=1.0) == [Broadcast(Flood(EVENT, hops=1))]
    assert a.hear(Flood(EVENT, hops=2), "b", now=1.1) is NOTHING


def test_an_event_stops_at_the_hop_limit_but_is_still_delivered_there() -> None:
    a = node(FloodingSettings(hop_limit=3), "a", Filter.of_type("CD"))
    assert a.hear(Flood(EVENT, hops=3), "b", now=1.5) == [Deliver(EVENT, "a/0", 3), Drop("hop-limit", "x-0")]


def test_an_event_beyond_its_lifespan_is_dropped() -> None:
    own = Event(type="CD", id="x-1", source="x", time=1.0, lifespan_s=0.5)
    settings = FloodingSettings(lifespan_s=10.0)
    wanted = Filter.of_type("CD")
    assert node(settings, "a", wanted).hear(Flood(EVENT, 1), "b", now=11.5) == [Drop("expired", "x-0")]
    assert node(settings, "a", wanted).hear(Flood(own, 1), "b", now=1.6) == [Drop("expired", "x-1")]
    assert node(settings, "a", wanted).hear(Flood(own, 1), "b", now=1.5) == [
        Deliver(own, "a/0", 1),
        Broadcast(Flood(own, 2)),
    ]


def test_an_event_is_delivered_only_inside_its_area() -> None:
    near, far = (
        Event(type="CD", id=f"x-{radius}", source="x", position=Position(0, 0), area=Area(Circle(radius)))
        for radius in (51.0, 49.0)
    )
    a = node(PLAIN, "a", Filter.of_type("CD"))
    assert a.hear(Flood(near, 1), "b", now=0.0) == [Deliver(near, "a/0", 1), Broadcast(Flood(near, 2))]
    assert a.hear(Flood(far, 1), "b", now=0.0) == [Broadcast(Flood(far, 2))]


def test_memory_is_bounded_and_the_oldest_forgotten_first() -> None:
    a = node(FloodingSettings(memory=2))
    events = [Event(type="CD", id=f"x-{k}", source="x") for k in range(3)]
    for event in events:
        a.hear(Flood(event, 1), "b", now=0.0)
    heard_again = [list(a.hear(Flood(event, 1), "c", now=0.0)) for event in (events[1], events[2], events[0])]
    assert heard_again == [[], [], [Broadcast(Flood(events[0], 2))]]
    assert len(a.heard) == 2


def test_with_jitter_an_event_waits_a_random_time() -> None:
    a = node(FloodingSettings(jitter_s=0.5))
    at = 2.0 + Random("a").uniform(0.0, 0.5)
    assert a.hear(Flood(EVENT, 1), "b", now=2.0) == [StartTimer(("jitter", 1), at)]
    assert a.wake(("jitter", 1), now=at) == [Broadcast(Flood(EVENT, 2))]
    assert a.wake(("jitter", 1), now=at) == []


def test_a_withdrawn_subscription_receives_nothing() -> None:
    a = node(PLAIN, "a", Filter.of_type("CD"))
    assert a.unsubscribe("a/0", now=0.5) is NOTHING
    assert a.hear(Flood(EVENT, 1), "b", now=1.5) == [Broadcast(Flood(EVENT, 2))]


def test_a_flood_on_the_tabletop_reaches_every_node_once() -> None:
    names = "abcdef"
    machines = [node(PLAIN, name, Filter.of_type("CD")) for name in names]
    table = Tabletop(machines, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "e")])
    table.do("a", "publish", Event(type="CD", id="a-0", source="a"))
    table.run(until=1.0)
    assert sorted(table.delivered) == [(name, "a-0", f"{name}/0") for name in "bcde"]
    assert sorted(name for name, _ in table.sent) == list("abcde")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hop_limit": 0}, "hop_limit must be at least 1, got 0"),
        ({"lifespan_s": 0.0}, "lifespan_s must be a positive number of seconds, got 0.0"),
        ({"memory": 0}, "memory must be at least 1, got 0"),
        ({"jitter_s": -0.1}, "jitter_s must not be negative, got -0.1"),
    ],
)
def test_settings_check_themselves(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        FloodingSettings(**wrong)  # type: ignore[arg-type]
