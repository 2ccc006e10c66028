"""Table by table: how many bytes each table of a node holds after the worst that its protocol accepts, and later."""

import asyncio
import gc
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec
import pytest
from desk import Desk
from packets import Worst, longest_name, packet, packet_classes

from earshot import wire
from earshot.events import Event
from earshot.geometry import Position
from earshot.live.datagrams import Challenge, Frame
from earshot.live.host import TIMER_BYTES, Host
from earshot.live.peers import PEER_BYTES, PeerLimits, Peers
from earshot.live.transport import FINISHED_BYTES
from earshot.protocols import machine as machines
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.services.served import SERVICE_PACKETS
from sizes import sized

MEMORY_BYTES = 16_000_000
"The least that `--memory` takes."
SHARE = 4
"No table holds more than the whole divided by this."
RELEASED_BYTES = 64_000
"What a table may hold after an hour of silence,"
REMEMBERED = (
    *("keys", "_order", "_delivered", "_delivered_before", "_could_match", "known"),  # ids and names
    *("held", "stranded", "by_id", "_masks", "_ends"),  # events that are still alive by what they say
    *("early", "links", "strangers._entries"),  # what may still get its turn
    *("table", "_parts", "_by_type"),  # what brokers report of subscribers elsewhere, bounded by its texts
)
"unless it remembers a bounded number of things that do not expire."
WORST: tuple[Worst, ...] = (True, False, "names", "names")
"What each quarter of the flood is."
TABLES = (dict, list, set, deque, OrderedDict)
WITHOUT_TABLES = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Random, msgspec.Struct)


def attributes(thing: Any) -> dict[str, Any]:
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
    return {**found, **getattr(thing, "__dict__", {})}


def tables(thing: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """All tables that an object of ours holds, with the path to each."""
    if id(thing) in seen or not type(thing).__module__.startswith("earshot.") or isinstance(thing, WITHOUT_TABLES):
        return
    seen.add(id(thing))
    for name, inner in attributes(thing).items():
        if isinstance(inner, TABLES):
            yield f"{path}.{name}", inner
        elif not isinstance(inner, Host):
            yield from tables(inner, f"{path}.{name}", seen)


def parts(thing: Any) -> list[Any]:
    """A table and all that it holds, each object once."""
    found, waiting, seen = [], [thing], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(
            part, type | ModuleType | FunctionType | MethodType | Random | asyncio.Handle
        ):
            continue
        seen.add(id(part))
        found.append(part)
        if isinstance(part, Mapping):
            waiting += part.keys()
            waiting += part.values()
        elif isinstance(part, list | tuple | set | frozenset | deque):
            waiting += part
        elif isinstance(part, msgspec.Struct):
            waiting += [getattr(part, name) for name in part.__struct_fields__]
            waiting += getattr(part, "__dict__", {}).values()
        elif type(part).__module__.startswith("earshot."):
            waiting += attributes(part).values()
    return found


@dataclass
class Clock:
    """A clock that the test sets, and the timers of a host by it."""

    now: float = 1.8e9
    timers: dict[Any, float] = field(default_factory=dict)

    def drive(self, host: Host) -> None:
        host._actions[machines.StartTimer] = lambda effect: self.timers.__setitem__(effect.name, effect.at)
        host._actions[machines.CancelTimer] = lambda effect: self.timers.pop(effect.name, None)
        for name, handle in host._timers.items():
            handle.cancel()
            self.timers[name] = self.now
        host._timers.clear()

    def advance(self, host: Host, until: float) -> None:
        while self.timers:
            name = min(self.timers, key=lambda name: self.timers[name])
            if self.timers[name] > until:
                break
            self.now = max(self.now, self.timers.pop(name))
            host._guarded(host.served.wake, name)
        self.now = until
        assert host._ticking is not None
        host._ticking.cancel()
        host._tick()


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_each_table_holds_its_share_at_most_and_releases_it(protocol: str) -> None:
    async def run() -> None:
        random, clock = Random(protocol), Clock()
        classes = [*packet_classes(protocol), *sorted(SERVICE_PACKETS, key=lambda kind: kind.__name__)]
        desk = Desk(memory_bytes=MEMORY_BYTES, clock=lambda: clock.now)
        async with desk.node("target", protocol=protocol) as target:
            host = target.host
            clock.drive(host)
            target.call(id, "Siren")
            packets = sized(4000, 60_000)
            for number in range(packets):
                made = packet(random, random.choice(classes), WORST[number * 4 // packets])
                try:
                    data = wire.encode(made)
                except wire.MalformedPacket:
                    continue
                sender = random.choice(("m0", "m1", longest_name(number)))
                frame = Frame(sender, 1, number, clock.now, "", Position(0.0, 0.0), None, "", [], [data])
                host.heard([data], frame, clock.now)
                if number % 40 == 0:
                    clock.advance(host, clock.now + 0.05)
                    await asyncio.sleep(0)
            full = sizes(host)
            assert {path: size for path, size in full.items() if size > MEMORY_BYTES // SHARE} == {}
            assert held_bytes(host) < MEMORY_BYTES // 2
            for _ in range(30):
                clock.advance(host, clock.now + 120.0)
                await asyncio.sleep(0)
            gc.collect()
            after = sizes(host)
            held = {
                path: size for path, size in after.items() if size > RELEASED_BYTES and not path.endswith(REMEMBERED)
            }
            assert held == {}
            assert target.drops["machine-failure"] == 0
            left = [event for _, table in tables(host, "", set()) for event in parts(table) if isinstance(event, Event)]
            assert [event for event in left if event.time + (event.lifespan_s or 60.0) < clock.now] == []

    asyncio.run(run())


def test_what_the_tables_of_a_machine_leave_is_enough_for_all_else() -> None:
    """The machine's tables and events take at most half: see above."""

    async def run() -> None:
        for memory_bytes in (MEMORY_BYTES, 64_000_000, 1_000_000_000):
            async with Desk(memory_bytes=memory_bytes).node("target") as target:
                host, transport = target.host, target.host.transport
                buffers = transport.reassembly
                waiting = transport._pending_limit_bytes + transport._backlog.limit_bytes + buffers.total_bytes
                waiting += transport._newcomers._most_bytes + transport._unproven._most_bytes
                remembered = buffers.finished_limit * FINISHED_BYTES + sum(transport.peers._limits) * PEER_BYTES
                assert waiting + remembered + host._most_timers * TIMER_BYTES <= memory_bytes // 2
                assert host.machine.budgets.table_bytes == memory_bytes // 64
                assert host.served.budgets is host.machine.budgets
                assert host._delivered_limit == memory_bytes // 128

    asyncio.run(run())


def test_a_peer_takes_no_more_than_it_counts_for() -> None:
    sent: list[Challenge] = []
    peers = Peers(5.0, lambda _, challenge: sent.append(challenge), PeerLimits.within(MEMORY_BYTES))
    for number in range(1000):
        at, now = Position(number / 3, number / 7), number / 999
        frame = Frame(longest_name(number), 1 << 60, 1, 1e9, "", at, None, "", [], [])
        peer = peers.find(frame, ("127.0.0.1", 1024 + number), number / 9, now)
        for sequence in range(1, 2000, 3):
            peer.window.fresh(sequence)
        peers.heard(peer, at, now)
        if number % 3:
            peers.echo(sent[-1].cookie, peer.address, now)
    full = {id(part): part for _, table in tables(peers, "", set()) for part in parts(table)}
    count = sum(peers._limits)
    assert peers._limits == (666, 166, 333)
    assert len(peers) == 666 + 166
    assert 0.3 * count * PEER_BYTES < sum(map(sys.getsizeof, full.values())) < count * PEER_BYTES


def held_bytes(host: Host) -> int:
    """How many bytes all tables of a host hold together, each object once."""
    held = {id(part): part for _, table in tables(host, "host", set()) for part in parts(table)}
    return sum(map(sys.getsizeof, held.values()))


def sizes(host: Host) -> dict[str, int]:
    """How many bytes each table of a host holds."""
    return {path: sum(map(sys.getsizeof, parts(table))) for path, table in tables(host, "host", set())}
