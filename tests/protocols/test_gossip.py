"""GOSSIP(d, p): always near the source, by chance farther away."""

from random import Random

import pytest

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.gossip import Gossip, GossipSettings, Rumour
from earshot.protocols.machine import NOTHING, Broadcast, Deliver, Drop, FixedLocation, StartTimer

EVENT = Event(type="CD", id="x-0", source="x", time=1.0, position=Position(0.0, 0.0))


def node(settings: GossipSettings, x_m: float, name: str = "a") -> Gossip:
    machine = Gossip(name, settings, FixedLocation(Position(x_m, 0.0)), Random(name))
    assert machine.subscribe(Subscription("s", name, Filter.of_type("CD")), now=0.0) is NOTHING
    return machine


def test_the_papers_parameters_are_the_defaults() -> None:
    assert (GossipSettings().distance_m, GossipSettings().probability) == (200.0, 0.8)


def test_within_the_distance_every_node_passes_it_on() -> None:
    sure = GossipSettings(distance_m=200.0, probability=0.0)
    assert node(sure, 200.0).hear(Rumour(EVENT, 1), "b", now=1.0) == [
        Deliver(EVENT, "s", 1),
        Broadcast(Rumour(EVENT, 2)),
    ]


def test_beyond_it_no_node_does_with_probability_0_and_every_node_with_1() -> None:
    never, always = (GossipSettings(distance_m=200.0, probability=p) for p in (0.0, 1.0))
    assert node(never, 201.0).hear(Rumour(EVENT, 1), "b", now=1.0) == [Deliver(EVENT, "s", 1), Drop("gossip", "x-0")]
    assert node(always, 201.0).hear(Rumour(EVENT, 1), "b", now=1.0) == [
        Deliver(EVENT, "s", 1),
        Broadcast(Rumour(EVENT, 2)),
    ]


def test_beyond_it_the_share_that_does_is_the_probability() -> None:
    settings = GossipSettings(distance_m=10.0, probability=0.8)
    passed = sum(
        any(isinstance(effect, Broadcast) for effect in node(settings, 50.0, f"n{k}").hear(Rumour(EVENT, 1), "b", 1.0))
        for k in range(2000)
    )
    assert passed / 2000 == pytest.approx(0.8, abs=0.03)


def test_an_event_without_a_position_counts_as_far_away() -> None:
    lost = Event(type="CD", id="x-1", source="x")
    assert node(GossipSettings(probability=0.0), 0.0).hear(Rumour(lost, 1), "b", now=0.0) == [
        Deliver(lost, "s", 1),
        Drop("gossip", "x-1"),
    ]


def test_the_coin_is_tossed_once_per_event() -> None:
    a = node(GossipSettings(probability=0.0), 201.0)
    a.hear(Rumour(EVENT, 1), "b", now=1.0)
    assert a.hear(Rumour(EVENT, 1), "c", now=1.0) is NOTHING


def test_a_publisher_always_sends_and_ignores_the_echo() -> None:
    a = node(GossipSettings(probability=0.0), 999.0)
    assert a.publish(EVENT, now=1.0) == [Broadcast(Rumour(EVENT, 1))]
    assert a.hear(Rumour(EVENT, 2), "b", now=1.1) is NOTHING


def test_hop_limit_and_lifespan_hold() -> None:
    settings = GossipSettings(hop_limit=2, lifespan_s=5.0)
    assert node(settings, 0.0).hear(Rumour(EVENT, 2), "b", now=1.0) == [
        Deliver(EVENT, "s", 2),
        Drop("hop-limit", "x-0"),
    ]
    assert node(settings, 0.0).hear(Rumour(EVENT, 1), "b", now=6.1) == [Drop("expired", "x-0")]


def test_memory_is_bounded() -> None:
    a = node(GossipSettings(memory=1), 0.0)
    other = Event(type="Other", id="x-1", source="x")
    for event in (EVENT, other):
        a.hear(Rumour(event, 1), "b", now=1.0)
    assert a.hear(Rumour(other, 1), "c", now=1.0) is NOTHING
    assert a.hear(Rumour(EVENT, 1), "c", now=1.0) == [Deliver(EVENT, "s", 1), Broadcast(Rumour(EVENT, 2))]


def test_with_jitter_an_event_waits_a_random_time() -> None:
    a = node(GossipSettings(jitter_s=0.5), 0.0)
    at = 2.0 + Random("a").uniform(0.0, 0.5)
    assert a.hear(Rumour(EVENT, 1), "b", now=2.0) == [Deliver(EVENT, "s", 1), StartTimer(("jitter", 1), at)]
    assert a.wake(("jitter", 1), now=at) == [Broadcast(Rumour(EVENT, 2))]
    assert a.wake(("jitter", 1), now=at) == []


def test_a_withdrawn_subscription_receives_nothing() -> None:
    a = node(GossipSettings(), 0.0)
    a.unsubscribe("s", now=0.5)
    assert a.hear(Rumour(EVENT, 1), "b", now=1.5) == [Broadcast(Rumour(EVENT, 2))]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"distance_m": -1.0}, "distance_m must not be negative, got -1.0"),
        ({"probability": 1.1}, "probability must be from 0 to 1, got 1.1"),
        ({"hop_limit": 0}, "hop_limit must be at least 1, got 0"),
        ({"lifespan_s": 0.0}, "lifespan_s must be a positive number of seconds, got 0.0"),
        ({"memory": 0}, "memory must be at least 1, got 0"),
        ({"jitter_s": -0.1}, "jitter_s must not be negative, got -0.1"),
    ],
)
def test_settings_check_themselves(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        GossipSettings(**wrong)  # type: ignore[arg-type]
