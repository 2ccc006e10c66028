"""The fault harness: processes with a node of every protocol, and a seeded schedule of what goes wrong.

Each process runs one node of each network, so that one `kill -9` tests all protocols at once. The harness kills,
pauses, sets clocks, loses datagrams, parts the network and fills the disk; it publishes meanwhile, and collects
what the processes journal and spool.
"""

from __future__ import annotations

import asyncio
import json
import math
import resource
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from accounting import Fault, Published, Run, Session

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.live.spool import read_records
from earshot.protocols.catalogue import protocol as machine_named
from earshot.records import Kind

PROGRAM = Path(__file__).with_name("node_process.py")
TYPES = {"Tick": 500.0, "Near": 90.0}
"Event types, and within how many metres they are of interest."
ROOM_BYTES = 1 << 40


def repair_s(protocol: str) -> float:
    """How long the protocol may take to repair its state, from its own settings: to notice that a node is silent, to
    replace it, and until the nodes have registered again."""
    given = machine_named(protocol).Settings()
    match protocol:
        case "cbf" | "flooding" | "gossip":
            return 0.0  # Without state, whatever is lost needs another reason.
        case "steam":
            return float(given.expiry_s + given.beacon_interval_s)
        case "hearsay":
            return float(given.neighbour_hellos * given.hello_interval_s)
        case "odmrp":
            return float(given.refresh_interval_s)
        case "content-odmrp":
            return float(given.refresh_max_s)
        case "georendezvous":
            return float(given.neighbour_lifespan_s + given.choose_after_s + given.renew_interval_s)
        case "siena":
            return float(given.patience_s + given.retry_s)
        case "codd":
            return float(given.silence_s + given.candidate_wait_s + given.retry_s)
        case "drip" | "drip-sf":
            return float(given.replace_after_s + given.election_wait_s + given.announce_interval_s) + float(
                given.register_interval_s
            )
    raise AssertionError(f"say how long {protocol} may take to repair its state")


THROUGH_OTHERS = frozenset({"siena", "codd", "drip", "drip-sf", "georendezvous"})
"""Protocols whose events pass brokers or home cells: a fault of any node may concern them. In the others every node
hears every other one here, and only the faults of publisher and receiver do."""
MOST_WAITING = 40
"At most this many commands to publish wait for one process: a busy machine publishes more slowly."


@dataclass(frozen=True)
class Plan:
    """The size of a run."""

    protocols: tuple[str, ...]
    nodes: int
    events: int
    "In each network."
    calm_s: float
    "Without faults, before the first and after the last."
    faulty_s: float
    rounds: int
    "How often each kind of fault is done."
    seed: int = 1
    kinds: tuple[str, ...] = ("kill", "pause", "clock", "partition", "lose", "disk")


@dataclass
class Member:
    """One process through its lives."""

    name: str
    process: asyncio.subprocess.Process | None = None
    started: float = 0.0
    reading: asyncio.Task[None] | None = None
    busy: bool = False
    "Whether a fault is being done to it."


@dataclass
class Harness:
    """Runs a plan."""

    plan: Plan
    folder: Path
    journal: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    spawned: dict[int, float] = field(default_factory=dict)
    ended: dict[int, tuple[float, bool]] = field(default_factory=dict)
    up: set[int] = field(default_factory=set)
    "The lives of processes whose nodes are all in place."
    clocks_set: Counter[str] = field(default_factory=Counter)
    "How often each node's clock was set."
    waiting: Counter[int] = field(default_factory=Counter)
    "How many commands to publish each process has not answered yet."

    def __post_init__(self) -> None:
        plan = self.plan
        self.random = Random(plan.seed)
        names = [f"n{number}" for number in range(plan.nodes)]
        self.members = {name: Member(name) for name in names}
        turn = 2 * math.pi / plan.nodes
        self.positions = {
            name: (round(60 * math.cos(turn * number), 1), round(60 * math.sin(turn * number), 1))
            for number, name in enumerate(names)
        }
        self.wanted = {
            name: [("Tick", None if number % 2 else "kind = 'a'"), ("Near", None)] for number, name in enumerate(names)
        }
        ports = iter(free_ports(len(plan.protocols) * (plan.nodes + 1)))
        self.groups = {protocol: f"239.255.69.83:{next(ports)}" for protocol in plan.protocols}
        self.ports = [(protocol, name, next(ports)) for protocol in plan.protocols for name in names]
        self.blocked: dict[str, frozenset[str]] = {name: frozenset() for name in names}
        self.loss = dict.fromkeys(names, 0.0)

    # Processes.

    async def start(self, member: Member) -> None:
        config = {
            "node": member.name,
            "seed": self.plan.seed,
            "position": self.positions[member.name],
            "ports": self.ports,
            "groups": self.groups,
            "types": TYPES,
            "subscriptions": self.wanted[member.name],
            "spools": str(self.folder),
        }
        member.started = time.time()
        pipe = asyncio.subprocess.PIPE
        with (self.folder / f"{member.name}.log").open("ab") as log:
            member.process = await asyncio.create_subprocess_exec(
                sys.executable, str(PROGRAM), json.dumps(config), stdin=pipe, stdout=pipe, stderr=log
            )
        self.spawned[member.process.pid] = member.started
        member.reading = asyncio.create_task(self.read(member.process))
        await self.until(lambda: self.is_up(member))
        self.command(member, do="network", loss=self.loss[member.name], blocked=sorted(self.blocked[member.name]))

    async def read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if line.endswith(b"\n"):
                row = json.loads(line)
                self.journal.append(row)
                if row["what"] == "up":
                    self.up.add(row["life"])
                self.clocks_set[row["node"]] += row["what"] == "clock"
                if row["what"] in ("published", "failed"):
                    self.waiting[process.pid] -= 1

    def is_up(self, member: Member) -> bool:
        assert member.process is not None
        if member.process.returncode is not None:
            raise AssertionError(f"{member.name} ended: {(self.folder / f'{member.name}.log').read_text()[-2000:]}")
        return member.process.pid in self.up

    async def until(self, condition: Callable[[], bool], patience_s: float = 600.0) -> None:
        async with asyncio.timeout(patience_s):
            while not condition():
                await asyncio.sleep(0.02)

    def command(self, member: Member, **command: Any) -> None:
        if member.process is not None and member.process.stdin is not None:
            member.process.stdin.write(json.dumps(command).encode() + b"\n")

    async def end(self, member: Member, by: signal.Signals | None = None) -> None:
        """Kill a process, or let it stop in good order."""
        process, member.process = member.process, None
        assert process is not None
        assert process.stdin is not None
        if by is None:
            process.stdin.write(b'{"do": "stop"}\n')
        else:
            process.send_signal(by)
        at = time.time()
        await process.wait()
        if member.reading is not None:
            await member.reading
        self.ended[process.pid] = (at, by is not None)

    # Faults.

    async def do(self, kind: str, lasting_s: float) -> None:
        """Do one fault to nodes that have none, and end it."""
        await self.until(lambda: len(self.free()) > 1)
        free = self.free()
        touched = self.random.sample(free, max(1, len(free) // 2) if kind in ("partition", "lose") else 1)
        names = frozenset(member.name for member in touched)
        for member in touched:
            member.busy = True
        started = time.time()
        await getattr(self, kind)(touched, names, lasting_s)
        self.faults.append(Fault(kind, names, started, time.time()))
        for member in touched:
            member.busy = False

    def free(self) -> list[Member]:
        return [member for member in self.members.values() if not member.busy and member.process is not None]

    async def kill(self, touched: list[Member], names: frozenset[str], lasting_s: float) -> None:
        for member in touched:
            await self.end(member, signal.SIGKILL)
        await asyncio.sleep(lasting_s)
        for member in touched:
            await self.start(member)

    async def pause(self, touched: list[Member], names: frozenset[str], lasting_s: float) -> None:
        for signal_number in (signal.SIGSTOP, signal.SIGCONT):
            for member in touched:
                assert member.process is not None
                member.process.send_signal(signal_number)
            if signal_number == signal.SIGSTOP:
                await asyncio.sleep(lasting_s)

    async def clock(self, touched: list[Member], names: frozenset[str], lasting_s: float) -> None:
        step_s = self.random.choice([-3600.0, -20.0, 20.0, 3600.0])
        for step in (step_s, -step_s):
            for member in touched:
                self.command(member, do="clock", step_s=step)
                # The fault lasts until the clock is right again, which a busy machine may delay.
                done = self.clocks_set[member.name] + 1
                await self.until(lambda member=member, done=done: self.clocks_set[member.name] >= done)
            await asyncio.sleep(lasting_s if step == step_s else 0)

    async def partition(self, touched: list[Member], names: frozenset[str], lasting_s: float) -> None:
        others = frozenset(self.members) - names
        for blocked in (True, False):
            for name in self.members:
                parted = (others if name in names else names) if blocked else frozenset()
                self.blocked[name] = parted
            self.set_network()
            await asyncio.sleep(lasting_s if blocked else 0)

    async def lose(self, touched: list[Member], names: frozenset[str], lasting_s: float) -> None:
        for share in (0.3, 0.0):
            for name in names:
                self.loss[name] = share
            self.set_network()
            await asyncio.sleep(lasting_s if share else 0)

    async def disk(self, touched: list[Member], names: frozenset[str], lasting_s: float) -> None:
        for limit in (1, ROOM_BYTES):
            for member in touched:
                assert member.process is not None
                resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            await asyncio.sleep(lasting_s if limit == 1 else 0)

    def set_network(self) -> None:
        for member in self.members.values():
            self.command(member, do="network", loss=self.loss[member.name], blocked=sorted(self.blocked[member.name]))

    # The run.

    async def run(self) -> None:
        """Start all, publish and do faults, wait for the rest, and stop all."""
        await asyncio.gather(*(self.start(member) for member in self.members.values()))
        plan = self.plan
        publishing = asyncio.create_task(self.publish_all(plan.calm_s * 2 + plan.faulty_s))
        await asyncio.sleep(plan.calm_s)
        running: list[asyncio.Task[None]] = []
        for _ in range(plan.rounds):
            for kind in self.random.sample(plan.kinds, len(plan.kinds)):
                running.append(asyncio.create_task(self.do(kind, self.random.uniform(1.0, 2.5))))
                await asyncio.sleep(plan.faulty_s / plan.rounds / len(plan.kinds))
        await asyncio.gather(*running)
        await publishing
        await self.quiet()
        await asyncio.gather(*(self.end(member) for member in self.members.values()))

    async def publish_all(self, lasting_s: float) -> None:
        numbers = [(protocol, number) for number in range(self.plan.events) for protocol in self.plan.protocols]
        start = time.time()
        for sent, (protocol, number) in enumerate(numbers):
            await asyncio.sleep(max(0.0, start + lasting_s * sent / len(numbers) - time.time()))
            up = [member for member in self.members.values() if member.process is not None and self.seems_up(member)]
            if up:
                content = {"n": number, "kind": self.random.choice("ab")}
                subject = self.random.choice(list(TYPES))
                await self.publish(self.random.choice(up), protocol=protocol, type=subject, content=content)

    async def publish(self, member: Member, **what: Any) -> None:
        """Let a process publish, once it has answered most of what it was asked before."""
        process = member.process
        assert process is not None
        await self.until(lambda: process.returncode is not None or self.waiting[process.pid] < MOST_WAITING)
        if member.process is process:
            self.waiting[process.pid] += 1
            self.command(member, do="publish", **what)

    def seems_up(self, member: Member) -> bool:
        return member.process is not None and member.process.returncode is None and self.is_up(member)

    async def quiet(self) -> None:
        """Wait until nothing has been delivered for two seconds."""
        for _ in range(10):
            before = len(self.journal)
            await asyncio.sleep(2.0)
            if len(self.journal) == before:
                return

    # What happened.

    def stalls(self) -> list[Fault]:
        """The pauses that nobody asked for: a busy machine did not run a process."""
        rows = [row for row in self.journal if row["what"] == "stalled"]
        return [Fault("pause", frozenset([row["node"]]), row["since"], row["at"]) for row in rows]

    def result(self, protocol: str) -> Run:
        rows = [row for row in self.journal if row.get("protocol") == protocol]
        ups = {row["life"]: (row["node"], row["at"]) for row in self.journal if row["what"] == "up"}
        sessions = [Session(node, life, self.spawned[life], up, *self.ended[life]) for life, (node, up) in ups.items()]
        asked = {row["number"]: row for row in rows if row["what"] == "publishing"}
        events = {row["number"]: Event.from_json(row["event"]) for row in rows if row["what"] == "published"}
        spooled, dropped = set(), {}
        for record in read_records(self.folder / protocol):
            if record.kind == Kind.PUBLISH:
                event = Event.from_json(record.detail)
                events.setdefault(event.fields["n"][0], event)  # type: ignore[arg-type]
            elif record.kind == Kind.DELIVER:
                spooled.add((record.event, record.node))
            elif record.kind == Kind.DROP and record.event:
                dropped[record.event, record.node] = record.detail
        return Run(
            positions={name: Position(*at) for name, at in self.positions.items()},
            subscriptions={
                name: [
                    Subscription(
                        f"{name}/{number}",
                        name,
                        Filter.of_type(subject) if where is None else Filter.where(where, type=subject),
                    )
                    for number, (subject, where) in enumerate(wanted)
                ]
                for name, wanted in self.wanted.items()
            },
            sessions=sessions,
            faults=[*self.faults, *self.stalls()],
            published=[
                Published(event, asked[number]["node"], asked[number]["at"]) for number, event in sorted(events.items())
            ],
            delivered=Counter(
                (row["event"], row["node"], row["life"], row["subscription"])
                for row in rows
                if row["what"] == "deliver"
            ),
            delivered_at={(row["event"], row["node"]): row["at"] for row in reversed(rows) if row["what"] == "deliver"},
            spooled=spooled,
            lost={(event, row["node"]): row["why"] for row in rows if row["what"] == "lost" for event in row["events"]},
            dropped=dropped,
            repair_s=repair_s(protocol),
            through_others=protocol in THROUGH_OTHERS,
        )


def free_ports(count: int) -> list[int]:
    probes = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
