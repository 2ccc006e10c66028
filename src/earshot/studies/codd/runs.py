"""Runs of CoDD and Siena over one stream of documents, and what the paper measures of them.

The systems of a case run side by side, document by document, so that a document's filters are
evaluated once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.catalogue import build_settings
from earshot.protocols.codd.machine import Codd
from earshot.protocols.machine import Announcement, FixedLocation, Machine
from earshot.protocols.siena.machine import Siena
from earshot.simulation.engine.engine import rare_collections
from earshot.studies.codd.pipes import Pipes, SharedIndex
from earshot.studies.study import Row

SOURCE = "source"
SNAPSHOT = 50
"Documents from one look at all nodes to the next."
PERIOD = 200
"Documents over which a node's overhead after a reorganisation is counted."
NEVER_S = 1e12
QUIET = {"keep_alive_s": NEVER_S, "silence_s": 2 * NEVER_S, "directory_s": NEVER_S, "held_documents": 400}
"Nobody fails in these runs: keep-alives, and documents kept for orphans, would only take time."


class Stream(Protocol):
    """Nodes, what they ask for, and documents."""

    count: int
    type: EventType
    nodes: Sequence[str]
    joining: str
    '"before" the first document, or "during" the first fifth of them.'

    def filters(self, node: int) -> Sequence[Filter]:
        """What a node asks for at first."""
        ...

    def documents(self) -> Iterator[Event]: ...

    def changes(self, number: int) -> Iterator[tuple[int, Sequence[Filter]]]:
        """Before this document: which nodes ask for something else."""
        ...


@dataclass
class Reorganisation:
    """One that a node asked for: at which document, with which overhead, who was to move."""

    document: int
    node: str
    before: float
    mover: str
    counted: tuple[int, int]
    "The node's transfers and extraneous ones at that time."
    moved: bool = False
    after: float | None = None


class SystemRun:
    """One system over the stream."""

    def __init__(self, system: str, fan_out: int, settings: dict[str, Any], names: Sequence[str], seed: int) -> None:
        self.system = system
        self.pipes = Pipes(_machines(system, fan_out, settings, [SOURCE, *names], seed), self._watch)
        self.names = names
        self.number = 0
        self.series: list[tuple[int, float]] = []
        "At each look the mean overhead since the last, of the nodes that had any."
        self.interior: list[float] = []
        "At each look, of each node with children, its overhead since the last."
        self.reorganisations: list[Reorganisation] = []
        self._movers: dict[str, Reorganisation] = {}
        self._seen: dict[str, tuple[int, int]] = {}

    def announce(self, type: EventType) -> None:
        self.pipes.do(SOURCE, "announce", Announcement(type))
        self.pipes.let_pass(1.0)

    def subscribe(self, node: int, filters: Sequence[Filter]) -> None:
        """The node asks for these, and for nothing else, from now on."""
        name = self.names[node]
        machine: Any = self.pipes.machines[name]
        ids = {f"{name}/{filter}": filter for filter in filters}
        for id in [id for id in machine.local.by_id if id not in ids]:
            self.pipes.do(name, "unsubscribe", id)
        for id, filter in ids.items():
            if id not in machine.local.by_id:
                self.pipes.do(name, "subscribe", Subscription(id, name, filter))

    def publish(self, event: Event, number: int) -> None:
        self.number = number
        self.pipes.do(SOURCE, "publish", event)
        self.pipes.let_pass(1.0)
        if (number + 1) % SNAPSHOT == 0:
            self._look(number + 1)

    def _watch(self, node: str, topic: str, detail: str) -> None:
        if topic == "reorganise":
            _, overhead, mover = detail.rsplit(" ", 2)
            counts = self._counts(node)
            found = Reorganisation(self.number, node, float(overhead), mover, counts)
            self.reorganisations.append(found)
            self._movers[mover] = found
        elif topic == "moved" and node in self._movers:
            self._movers[node].moved = True

    def _counts(self, node: str) -> tuple[int, int]:
        machine = self.pipes.machines[node]
        if isinstance(machine, Codd):
            tree = next(iter(machine.trees.values()), None)
            return (tree.transfers, tree.extraneous) if tree is not None else (0, 0)
        assert isinstance(machine, Siena)
        return machine.transfers, machine.extraneous

    def _look(self, number: int) -> None:
        """Every node's overhead since the last look; and what became of reorganisations."""
        positive = []
        for name in self.names:
            before, counts = self._seen.get(name, (0, 0)), self._counts(name)
            self._seen[name] = counts
            came, vain = counts[0] - before[0], counts[1] - before[1]
            if came and _is_interior(self.pipes.machines[name]):
                self.interior.append(vain / came)
            if vain:
                positive.append(vain / came)
        self.series.append((number, _mean(positive)))
        for one in reversed(self.reorganisations):
            if number - one.document > PERIOD + SNAPSHOT:
                break
            if one.after is None and number - one.document >= PERIOD:
                came, vain = (now - then for now, then in zip(self._counts(one.node), one.counted, strict=True))
                one.after = vain / came if came else 0.0

    def figures(self, documents: int) -> dict[str, Any]:
        """What the paper's figures show of the run."""
        counts = {name: self._counts(name) for name in self.names}
        transfers = sum(came for came, _ in counts.values())
        overheads = sorted((vain / came for came, vain in counts.values() if came), reverse=True)
        depths = sorted(self.pipes.depth_sums[name] / came for name, (came, _) in counts.items() if came)
        met = [one for one in self.reorganisations if one.moved and one.after is not None]
        return {
            "system": self.system,
            "system_overhead": sum(vain for _, vain in counts.values()) / transfers,
            "interior_overhead": _mean(self.interior),
            "top_100": [round(overhead, 4) for overhead in overheads[:100]],
            "with_overhead": sum(overhead > 0 for overhead in overheads),
            "depths": [round(depth, 3) for depth in depths],
            "depth": _mean(depths),
            "series": [[number, round(overhead, 4)] for number, overhead in self.series],
            "ratios": [[one.document, round((one.after or 0.0) / one.before, 4)] for one in met],
            "requests": len(self.reorganisations),
            "moves": sum(one.moved for one in self.reorganisations),
            "transfers": transfers,
            "control": self.pipes.sent,
            "deliveries": self.pipes.deliveries,
            "selectivity": self.pipes.deliveries / (documents * len(self.names)),
        }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _is_interior(machine: Machine) -> bool:
    """A node that passes documents on: in Siena, a broker with brokers below it."""
    if isinstance(machine, Siena):
        return any(link.broker for name, link in machine.links.items() if name != machine.above)
    return isinstance(machine, Codd) and any(tree.children for tree in machine.trees.values())


def _machines(system: str, fan_out: int, settings: dict[str, Any], names: Sequence[str], seed: int) -> list[Machine]:
    mine = {name: value for name, value in settings.items() if name.startswith("broker") is (system == "siena")}
    made: type[Siena] | type[Codd] = Siena if system == "siena" else Codd
    shared = SharedIndex()
    if system == "siena":
        known = {"agents": [SOURCE], "clients": fan_out}
    else:
        known = {"agents": [SOURCE], "fan_out": fan_out, "reorganise": system == "codd-r", **QUIET}
        known["held_documents"] = max(400, settings.get("window_documents", 0))
    built: Any = build_settings(made.Settings, {**known, **mine})
    return [made(name, built, FixedLocation(), Random(f"{seed}:{name}"), lambda: shared) for name in names]


@rare_collections()
def run_systems(systems: Sequence[tuple[str, int]], settings: dict[str, Any], stream: Stream, seed: int) -> list[Row]:
    """One row a system, which is a name and its fan-out."""
    runs = [SystemRun(system, fan_out, settings, stream.nodes, seed) for system, fan_out in systems]
    for run in runs:
        run.announce(stream.type)
    order = list(range(len(stream.nodes)))
    Random(f"{seed}:order").shuffle(order)
    joining = 1 if stream.joining == "before" else max(1, stream.count // 5)
    joined = 0
    for number, event in enumerate(stream.documents()):
        due = min(len(order), math.ceil(len(order) * (number + 1) / joining))
        for node in order[joined:due]:
            for run in runs:
                run.subscribe(node, stream.filters(node))
        joined = due
        for node, filters in stream.changes(number):
            for run in runs:
                run.subscribe(node, filters)
        stamped = event.stamped(id=f"d{number}", source=SOURCE, time=float(number))
        for run in runs:
            run.publish(stamped, number)
    return [run.figures(stream.count) for run in runs]
