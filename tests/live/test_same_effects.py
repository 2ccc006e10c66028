"""One script, two hosts: by hand on the tabletop, and over real sockets. The machines ask for the same."""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from desk import Desk, acquainted, until

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Circle, Position, Proximity
from earshot.live.node import Node
from earshot.protocols.catalogue import build_settings, protocol
from earshot.protocols.machine import (
    Announcement,
    Broadcast,
    Deliver,
    Drop,
    Effects,
    FixedLocation,
    Machine,
    Send,
)
from earshot.protocols.tabletop import Tabletop
from earshot.wire import tag_of

PLACES = {"a": 0.0, "b": 100.0, "c": 200.0}
LINKS = [("a", "b"), ("b", "c")]
SIREN = EventType("Siren", content={"speed": float})
ZONE = Proximity(Circle(1000.0), Position(0.0, 0.0))
SPEEDS = (5.0, 18.0, 30.0)
SETTINGS: dict[str, dict[str, Any]] = {
    "flooding": {},
    "gossip": {"probability": 1.0},
    "steam": {"range_m": 150.0, "beacon_interval_s": 0.3, "expiry_s": 1.2},
}
ENTRY_POINTS = ("start", "subscribe", "announce", "publish", "hear", "wake", "unreachable")


def described(effect: Any) -> tuple[Any, ...] | None:
    """An effect without what differs between two clocks; None for what depends on how long a run takes."""
    match effect:
        case Broadcast(packet) | Send(_, packet):
            event = getattr(packet, "event", None)
            if not isinstance(event, Event):
                return None
            return type(effect).__name__, tag_of(packet), event.content["speed"], getattr(packet, "hops", -1)
        case Deliver(event, subscription, hops):
            return "Deliver", event.content["speed"], subscription, hops
        case Drop(reason):
            return "Drop", reason
    return None


def overheard(machine: Machine, into: Counter[tuple[Any, ...]]) -> None:
    """Note every effect the machine returns."""

    def wrapped(entry_point: Any) -> Any:
        def call(*arguments: Any) -> Effects:
            effects: Effects = entry_point(*arguments)
            into.update((machine.node, *one) for one in map(described, effects) if one is not None)
            return effects

        return call

    for name in ENTRY_POINTS:
        setattr(machine, name, wrapped(getattr(machine, name)))


def on_the_tabletop(name: str) -> Counter[tuple[Any, ...]]:
    made = protocol(name)
    settings = build_settings(made.Settings, SETTINGS[name])
    machines = [made(node, settings, FixedLocation(Position(x, 0.0)), Random(node)) for node, x in PLACES.items()]
    found: Counter[tuple[Any, ...]] = Counter()
    for machine in machines:
        overheard(machine, found)
    table = Tabletop(machines, LINKS)
    for node in ("b", "c"):
        wanted = Filter.where("speed > 10", type="Siren")
        table.do(node, "subscribe", Subscription(f"{node}/1", node, wanted))
    table.do("a", "announce", Announcement(SIREN, ZONE))
    table.run(1.0)
    for number, speed in enumerate(SPEEDS):
        stamp = {"id": str(number), "source": "a", "time": table.now, "position": Position(0.0, 0.0)}
        table.do("a", "publish", SIREN.event({"speed": speed}, area=ZONE.area(), **stamp))
        table.run(table.now + 0.1)
    return found


async def between_hosts(name: str, expected: int) -> Counter[tuple[Any, ...]]:
    desk = Desk(protocol=name, emulate_range_m=150.0, settings=SETTINGS[name])
    found: Counter[tuple[Any, ...]] = Counter()
    async with desk.node("a", PLACES["a"]) as a, desk.node("b", PLACES["b"]) as b, desk.node("c", PLACES["c"]) as c:
        nodes: list[Node] = [a, b, c]
        for node in nodes:
            overheard(node.host.machine, found)
        await acquainted(a, b)
        await acquainted(b, c)
        streams = [node.subscribe("Siren", where="speed > 10") for node in (b, c)]
        siren = await a.announce(SIREN, within=ZONE)
        await until(lambda: name != "steam" or (b.host.transport.joined and c.host.transport.joined))
        for speed in SPEEDS:
            await siren.publish(speed=speed)
        await until(lambda: sum(found.values()) >= expected)
        assert [len(stream) for stream in streams] == [2, 2]
    return found


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_scripted_exchange_has_the_same_effects_on_both_hosts(name: str) -> None:
    by_hand = on_the_tabletop(name)
    assert sum(count for effect, count in by_hand.items() if effect[1] == "Deliver") == 4
    assert asyncio.run(between_hosts(name, sum(by_hand.values()))) == by_hand
