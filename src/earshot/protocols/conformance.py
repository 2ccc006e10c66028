"""What every protocol holds, checked on any machine: `earshot check module:Class`, or in a test:

    @pytest.mark.parametrize("name", PROPERTIES)
    def test_it_holds_what_every_protocol_holds(name: str) -> None:
        check_property(Frugal, name)

Each property is a function that raises `Nonconforming` with what it saw.
"""

from __future__ import annotations

import ast
import gc
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from earshot.errors import EarshotError, MalformedPacket
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.catalogue import build_settings
from earshot.protocols.machine import Announcement, Broadcast, Deliver, FixedLocation, Machine
from earshot.protocols.machine_failures import short, wrong_effects
from earshot.protocols.tabletop import Tabletop
from earshot.wire import Packet, decode, encode

NODES = tuple("abcdef")
SPACING_M = 80.0
FACTS = {"medium.range_m": 100.0, "node_count": len(NODES), "first_nodes": NODES[:3]}
"What a scenario would say of the six nodes in a row."
SIREN = EventType("Siren", {"n": "integer"})
FLOOD = 6000
"Distinct events that a neighbour sends to fill a node's memory."
MUTATIONS = 400
"Broken copies of each kind of packet."


class Nonconforming(EarshotError):
    """A protocol that does not hold a property, and what was seen."""


def machine_on(cls: type[Machine], name: str, seed: int = 1) -> Machine:
    """A node in the row."""
    facts = {
        setting.name: FACTS[path]
        for setting in fields(cls.Settings)
        if (path := setting.metadata.get("scenario")) in FACTS
    }
    at = FixedLocation(Position(SPACING_M * NODES.index(name), 0.0))
    return cls(name, build_settings(cls.Settings, facts), at, Random(f"{seed}:{name}"))


def exchange(cls: type[Machine], seed: int = 1) -> Tabletop:
    """Six nodes in a row: all subscribe, the first announces and publishes three events, 40 s pass."""
    table = Tabletop([machine_on(cls, name, seed) for name in NODES], pairwise(NODES))
    for name in NODES:
        table.do(name, "subscribe", Subscription(f"{name}/s", name, Filter.where("n > 0", "Siren")))
    table.do("a", "announce", Announcement(SIREN))
    for number in range(1, 4):
        table.run(10.0 * number)
        event = Event("Siren", {"n": number}, f"a-{number}", "a", Position(0.0, 0.0), time=table.now)
        table.do("a", "publish", event)
    table.run(40.0)
    table.do("f", "unsubscribe", "f/s")
    table.do("a", "stop")
    return table


def repeats(cls: type[Machine]) -> None:
    """The same seed gives the same packets and deliveries."""
    first, second = exchange(cls), exchange(cls)
    for mine, other in zip(_bytes_sent(first), _bytes_sent(second), strict=False):
        if mine != other:
            both = f"{short(decode(mine))}, the other {short(decode(other))}"
            raise Nonconforming(f"with the same seed one run sent {both}")
    if (len(first.sent), first.delivered) != (len(second.sent), second.delivered):
        raise Nonconforming("two runs with the same seed sent or delivered differently")


def _bytes_sent(table: Tabletop) -> list[bytes]:
    return [encode(packet) for _, packet in table.sent]


def delivers(cls: type[Machine]) -> None:
    """A neighbour that subscribed receives what is published, once, and a packet survives the wire."""
    found = exchange(cls).delivered
    if not any(node == "b" for node, _, _ in found):
        raise Nonconforming("the publisher's neighbour subscribed and received none of three events")
    if twice := next((delivery for number, delivery in enumerate(found) if delivery in found[:number]), None):
        raise Nonconforming(f"{twice[1]} was delivered twice to {twice[0]} for the subscription {twice[2]}")


def duplicates(cls: type[Machine]) -> None:
    """A packet that is heard for the third time is neither delivered nor passed on."""
    for sender, packet in _heard(cls):
        node = machine_on(cls, "b", seed=2)
        node.start(0.0)
        node.subscribe(Subscription("b/s", "b", Filter.where("n > 0", "Siren")), 0.0)
        for _ in range(3):
            effects = node.hear(packet, sender, 50.0)
        again = [effect for effect in effects if isinstance(effect, Deliver | Broadcast) and _passes_on(effect)]
        if again:
            raise Nonconforming(f"on hearing {short(packet)} for the third time it asked for {short(again[0])}")


def _heard(cls: type[Machine]) -> list[tuple[str, Packet]]:
    """One packet of each kind with the node that sent it."""
    kinds = {type(packet): (sender, packet) for sender, packet in reversed(exchange(cls).sent) if sender != "b"}
    return list(kinds.values())


def _passes_on(effect: Deliver | Broadcast) -> bool:
    return isinstance(effect, Deliver) or _event(effect.packet) is not None


def _event(packet: Packet) -> Any:
    return getattr(packet, "event", None)


def bounded(cls: type[Machine]) -> None:
    """A neighbour that sends ever new events does not fill the node's memory."""
    packets = [(sender, packet) for sender, packet in _heard(cls) if isinstance(_event(packet), Event)]
    for sender, packet in packets:
        node = machine_on(cls, "b", seed=3)
        node.start(0.0)
        sizes = []
        for third in range(3):
            for number in range(FLOOD):
                id = f"z-{third}-{number}"
                event = msgspec.structs.replace(_event(packet), id=id, time=50.0, source=f"s{number}")
                node.hear(msgspec.structs.replace(packet, event=event), sender, 50.0)
            sizes.append(_objects_in(node))
        if sizes[2] > 1.2 * sizes[1]:
            raise Nonconforming(
                f"after {2 * FLOOD:,} events it held {sizes[1]:,} objects, after {3 * FLOOD:,} {sizes[2]:,}: "
                "bound what it remembers, as RecentKeys does"
            )


def _objects_in(node: Machine) -> int:
    """How many objects the machine holds, without code."""
    seen: set[int] = set()
    waiting: list[Any] = list(vars(node).values())
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    while waiting:
        held = waiting.pop()
        if id(held) in seen or isinstance(held, code):
            continue
        seen.add(id(held))
        waiting.extend(gc.get_referents(held))
        if isinstance(held, msgspec.Struct):
            waiting.extend(getattr(held, name) for name in held.__struct_fields__)
    return len(seen)


def hostile(cls: type[Machine]) -> None:
    """Broken copies of its packets, and packets of others, raise nothing and ask for nothing impossible."""
    random = Random(1)
    lasting = _subscribed(cls)
    for sender, packet in _heard(cls):
        for broken in _broken(encode(packet), random):
            for node in (lasting, _subscribed(cls)):
                _contains(node, broken, sender)


def _contains(node: Machine, broken: Packet, sender: str) -> None:
    try:
        effects = node.hear(broken, sender, 50.0)
    except Exception as error:
        raise Nonconforming(f"hearing {short(broken)} raised {type(error).__name__}: {error}") from error
    if problem := wrong_effects(node, effects, {"b/s"}):
        raise Nonconforming(f"hearing {short(broken)}: {problem}")


def _subscribed(cls: type[Machine]) -> Machine:
    node = machine_on(cls, "b", seed=4)
    node.start(0.0)
    node.subscribe(Subscription("b/s", "b", Filter.where("n > 0", "Siren")), 0.0)
    return node


def _broken(data: bytes, random: Random) -> Iterator[Packet]:
    """The packet, then copies that still decode: every value at an extreme, then bytes changed at random."""
    yield decode(data)
    version, values = data[:1], msgspec.msgpack.decode(data[1:])
    for changed in _with_extremes(values):
        yield from _decoded(version + msgspec.msgpack.encode(changed))
    for _ in range(MUTATIONS):
        bytes_ = bytearray(data)
        for _ in range(random.randint(1, 3)):
            bytes_[random.randrange(1, len(bytes_))] = random.randrange(256)
        yield from _decoded(bytes(bytes_))


EXTREMES: tuple[Any, ...] = (0, -1, 2**62, -0.5, 1e308, float("nan"), float("inf"), "", "x" * 2000, None, [], {}, True)


def _with_extremes(value: Any) -> Iterator[Any]:
    """Copies of the value in which one inner value is an extreme one."""
    if isinstance(value, list | dict):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            for changed in (*EXTREMES, *_with_extremes(inner)):
                copy: Any = value.copy()
                copy[key] = changed
                yield copy


def _decoded(data: bytes) -> Iterator[Packet]:
    try:
        yield decode(data)
    except MalformedPacket:
        return


FORBIDDEN = {"time", "random", "secrets", "socket", "threading", "asyncio", "datetime", "uuid"}


def no_clock(cls: type[Machine]) -> None:
    """No clock, no global chance, no socket or thread: time, place and chance come in."""
    file = inspect.getsourcefile(cls)
    if file is None:
        raise Nonconforming("its source cannot be read")
    source = inspect.getsource(inspect.getmodule(cls) or cls)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
        elif node.module:
            allowed = node.module == "random" and {alias.name for alias in node.names} == {"Random"}
            names = [] if allowed else [node.module.partition(".")[0]]
        for name in names:
            if name in FORBIDDEN:
                raise Nonconforming(
                    f"{Path(file).name}, line {node.lineno} imports {name}: use `now`, self.random and self.location"
                )


PROPERTIES: dict[str, Callable[[type[Machine]], None]] = {
    "repeats": repeats,
    "delivers": delivers,
    "duplicates": duplicates,
    "bounded": bounded,
    "hostile": hostile,
    "no-clock": no_clock,
}
"By name: what each checks is its docstring."


def check_property(cls: type[Machine], name: str) -> None:
    """Raise `Nonconforming`, or the failure of the machine, where the protocol does not hold the property."""
    PROPERTIES[name](cls)
