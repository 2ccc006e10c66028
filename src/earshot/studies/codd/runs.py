"""Runs of CoDD and Siena over the paper's streams of documents, and what the paper measures of them.

Streams: the synthetic data of section 4, and the XML data of section 4.2. The systems of a case run side by side on
the same documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.catalogue import build_settings
from earshot.protocols.codd.machine import Codd
from earshot.protocols.machine import Announcement, FixedLocation, Machine
from earshot.protocols.siena.machine import Siena
from earshot.simulation.draws import Span
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.workload.codd_workload import CoddDocuments
from earshot.studies.codd.pipe_host import Pipes, SharedIndex
from earshot.studies.study import Case, Row

SOURCE = "source"
SNAPSHOT = 50
"Documents from one snapshot of all nodes to the next."
PERIOD = 200
"Documents over which a node's overhead after a reorganisation is counted."
NEVER_S = 1e12
QUIET = {"keep_alive_s": NEVER_S, "silence_s": 2 * NEVER_S, "directory_s": NEVER_S, "held_documents": 400}
"No node fails in these runs: keep-alives, and documents kept for orphans, would only take time."

AS_READ = "as read"
READINGS: dict[str, dict[str, Any]] = {
    AS_READ: {},
    "subscriptions follow the shuffle": {"shuffle": "subscriptions"},
    "a node in 1 bucket, a document in 4": {"query_buckets": [1, 1], "document_buckets": 4},
    "a node in 1 to 7 buckets, a document in 1": {"query_buckets": [1, 7], "document_buckets": 1},
    "no shuffle": {"shuffle_every": 0},
    "shuffles half way between reorganisations": {"shuffle_from": 100},
    "nodes join during the first fifth": {"joining": "during"},
    "the same, by the child's own query": {"join_against": "query", "joining": "during"},
    "overhead against the aggregate": {"overhead_against": "aggregate"},
    "the high-overhead node itself moves": {"mover": "self"},
    "figure 6 as printed, no gain asked": {"delta": None},
    "a move must gain 5 % of the documents": {"delta": 0.05},
    "only the 5 highest requests at a time": {"top": 5, "gather_s": 40.0},
    "overlaps from the last 50 documents": {"window_documents": 50},
    "overlaps from the last 800 documents": {"window_documents": 800},
}
"The readings of docs/papers/codd.md: in each, what differs from the paper as we read it."
SIENA_READINGS: dict[str, dict[str, Any]] = {
    AS_READ: {},
    "brokers' tree as wide as f": {"broker_fan_out": 0},
    "a broker subscribes for itself alone": {"broker_interest": "own"},
    "both": {"broker_fan_out": 0, "broker_interest": "own"},
}
_WORKLOAD = ("shuffle", "query_buckets", "document_buckets", "shuffle_every", "shuffle_from")


class SyntheticStream:
    """Section 4's synthetic data: queries in category buckets that are shuffled."""

    def __init__(self, nodes: int, documents: int, seed: int, changed: dict[str, Any]) -> None:
        own = {name: value for name, value in changed.items() if name in _WORKLOAD}
        if "query_buckets" in own:
            own["query_buckets"] = Span(*map(float, own["query_buckets"]))
        self.generator = CoddDocuments(queries=nodes, draw_seed=seed, **own)
        self.count = documents
        self.joining: str = changed.get("joining", "before")
        '"before" the first document, or "during" the first fifth of them.'
        self.type = self.generator.types()[0]
        self.nodes: Sequence[str] = [f"n{i:05}" for i in range(nodes)]
        self._seed = seed

    def filters(self, node: int) -> Sequence[Filter]:
        """What a node asks for at first."""
        return self.generator.filters_in(node, 0)

    def documents(self) -> Iterator[Event]:
        random = Random(f"{self._seed}:documents")
        return (self.generator.draw(random, number) for number in range(self.count))

    def changes(self, number: int) -> Iterator[tuple[int, Sequence[Filter]]]:
        """The nodes that ask for something else from this document on, and for what."""
        epoch = self.generator.epoch(number)
        if self.generator.shuffle == "data" or number == 0 or epoch == self.generator.epoch(number - 1):
            return
        for node in range(len(self.nodes)):
            after = self.generator.filters_in(node, epoch)
            if after != self.generator.filters_in(node, epoch - 1):
                yield node, after


class XmlStream:
    """Section 4.2's XML data: queries and documents as the scenario `codd-<dtd>` draws them."""

    joining = "before"

    def __init__(self, dtd: str, nodes: int, documents: int, seed: int) -> None:
        scenario = load_scenario(f"codd-{dtd}")
        (publish,), (subscribe,) = scenario.publish.values(), scenario.subscribe.values()
        sources = {name: one.events for name, one in scenario.publish.items()}
        random = Random(f"{seed}:queries")
        self.count = documents
        self.type = publish.events.types()[0]
        self.nodes: Sequence[str] = [f"n{i:05}" for i in range(nodes)]
        self._filters = [subscribe.filters.draw(random, number, sources) for number in range(nodes)]
        self._events = publish.events
        self._seed = seed

    def filters(self, node: int) -> Sequence[Filter]:
        return (self._filters[node],)

    def documents(self) -> Iterator[Event]:
        random = Random(f"{self._seed}:documents")
        return (self._events.draw(random, number) for number in range(self.count))

    def changes(self, number: int) -> Iterator[tuple[int, Sequence[Filter]]]:
        return iter(())


@dataclass
class Reorganisation:
    """A reorganisation that a node asked for."""

    document: int
    "The number of the last document."
    node: str
    before: float
    "The node's overhead."
    mover: str
    "The node that was asked to move."
    counted: tuple[int, int]
    "The node's transfers and extraneous ones at that time."
    moved: bool = False
    after: float | None = None
    "The node's overhead afterwards."


class SystemRun:
    """The run of one system over a stream."""

    def __init__(self, system: str, machines: Sequence[Machine]) -> None:
        """The first machine is the source."""
        self.system = system
        self.pipes = Pipes(machines, self._on_note)
        self.names = [machine.node for machine in machines[1:]]
        self.number = 0
        self.series: list[tuple[int, float]] = []
        "At each snapshot, the mean overhead since the last one, of the nodes that had any."
        self.interior: list[float] = []
        "At each snapshot, for each node with children, its overhead since the last one."
        self.reorganisations: list[Reorganisation] = []
        self._movers: dict[str, Reorganisation] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        "By node, its counts at the last snapshot."

    def announce(self, type: EventType) -> None:
        self.pipes.call(SOURCE, "announce", Announcement(type))
        self.pipes.run(self.pipes.now + 1.0)

    def subscribe(self, node: int, filters: Sequence[Filter]) -> None:
        """The node asks for these, and for nothing else, from now on."""
        name = self.names[node]
        machine: Any = self.pipes.machines[name]
        ids = {f"{name}/{filter}": filter for filter in filters}
        for id in [id for id in machine.local.by_id if id not in ids]:
            self.pipes.call(name, "unsubscribe", id)
        for id, filter in ids.items():
            if id not in machine.local.by_id:
                self.pipes.call(name, "subscribe", Subscription(id, name, filter))

    def publish(self, event: Event, number: int) -> None:
        self.number = number
        self.pipes.call(SOURCE, "publish", event)
        self.pipes.run(self.pipes.now + 1.0)
        if (number + 1) % SNAPSHOT == 0:
            self._take_snapshot(number + 1)

    def _on_note(self, node: str, topic: str, detail: str) -> None:
        if topic == "reorganise":
            _, overhead, mover = detail.rsplit(" ", 2)
            counts = self._counts(node)
            found = Reorganisation(self.number, node, float(overhead), mover, counts)
            self.reorganisations.append(found)
            self._movers[mover] = found
        elif topic == "moved" and node in self._movers:
            self._movers[node].moved = True

    def _counts(self, node: str) -> tuple[int, int]:
        """The node's transfers and extraneous ones."""
        machine = self.pipes.machines[node]
        if isinstance(machine, Codd):
            tree = next(iter(machine.trees.values()), None)
            return (tree.transfers, tree.extraneous) if tree is not None else (0, 0)
        assert isinstance(machine, Siena)
        return machine.transfers, machine.extraneous

    def _since(self, node: str, counted: tuple[int, int]) -> tuple[int, float]:
        """The node's transfers, and its overhead, since its counts were these."""
        transfers, extraneous = (now - then for now, then in zip(self._counts(node), counted, strict=True))
        return transfers, extraneous / transfers if transfers else 0.0

    def _take_snapshot(self, number: int) -> None:
        """Every node's overhead since the last snapshot, and the results of reorganisations."""
        positive = []
        for name in self.names:
            transfers, overhead = self._since(name, self._counted.get(name, (0, 0)))
            self._counted[name] = self._counts(name)
            if transfers and _is_interior(self.pipes.machines[name]):
                self.interior.append(overhead)
            if overhead:
                positive.append(overhead)
        self.series.append((number, _mean(positive)))
        for one in reversed(self.reorganisations):
            if number - one.document > PERIOD + SNAPSHOT:
                break
            if one.after is None and number - one.document >= PERIOD:
                _, one.after = self._since(one.node, one.counted)

    def figures(self, documents: int) -> dict[str, Any]:
        """What the paper's figures show of the run."""
        counts = {name: self._counts(name) for name in self.names}
        received = {name: transfers for name, (transfers, _) in counts.items() if transfers}
        overheads = sorted((counts[name][1] / transfers for name, transfers in received.items()), reverse=True)
        depths = sorted(self.pipes.depth_sums[name] / transfers for name, transfers in received.items())
        transfers = sum(received.values())
        moves = [one for one in self.reorganisations if one.moved]
        return {
            "system": self.system,
            "system_overhead": sum(extraneous for _, extraneous in counts.values()) / transfers,
            "interior_overhead": _mean(self.interior),
            "top_100": [round(overhead, 4) for overhead in overheads[:100]],
            "with_overhead": sum(overhead > 0 for overhead in overheads),
            "depths": [round(depth, 3) for depth in depths],
            "depth": _mean(depths),
            "series": [[number, round(overhead, 4)] for number, overhead in self.series],
            "ratios": [[one.document, round(one.after / one.before, 4)] for one in moves if one.after is not None],
            "requests": len(self.reorganisations),
            "moves": len(moves),
            "transfers": transfers,
            "control": self.pipes.control,
            "deliveries": self.pipes.deliveries,
            "selectivity": self.pipes.deliveries / (documents * len(self.names)),
        }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _is_interior(machine: Machine) -> bool:
    """Whether the node passes documents on; in Siena, whether it is a broker with brokers below it."""
    if isinstance(machine, Siena):
        return any(link.broker for name, link in machine.links.items() if name != machine.above)
    return isinstance(machine, Codd) and any(tree.children for tree in machine.trees.values())


def _machines(
    system: str, fan_out: int, settings: dict[str, Any], names: Sequence[str], seed: int, index: SharedIndex
) -> list[Machine]:
    is_siena = system == "siena"
    given = {name: value for name, value in settings.items() if name.startswith("broker") is is_siena}
    made: type[Siena] | type[Codd] = Siena if is_siena else Codd
    if is_siena:
        known = {"agents": [SOURCE], "clients": fan_out}
    else:
        known = {"agents": [SOURCE], "fan_out": fan_out, "reorganise": system == "codd-r", **QUIET}
        known["held_documents"] = max(400, settings.get("window_documents", 0))
    built: Any = build_settings(made.Settings, {**known, **given})
    return [made(name, built, FixedLocation(), Random(f"{seed}:{name}"), new_index=lambda: index) for name in names]


def run_systems(
    systems: Sequence[tuple[str, int]], settings: dict[str, Any], stream: SyntheticStream | XmlStream, seed: int
) -> list[Row]:
    """Run systems, each a name and a fan-out, side by side. One row for each."""
    names, index = [SOURCE, *stream.nodes], SharedIndex()
    runs = [SystemRun(system, _machines(system, fan_out, settings, names, seed, index)) for system, fan_out in systems]
    for run in runs:
        run.announce(stream.type)
    order = list(range(len(stream.nodes)))
    Random(f"{seed}:order").shuffle(order)
    joining = 1 if stream.joining == "before" else max(1, stream.count // 5)
    joined = 0
    for number, event in enumerate(stream.documents()):
        due = min(len(order), math.ceil(len(order) * (number + 1) / joining))
        changes = [*((node, stream.filters(node)) for node in order[joined:due]), *stream.changes(number)]
        joined = due
        stamped = event.stamped(id=f"d{number}", source=SOURCE, time=runs[0].pipes.now)
        for run in runs:
            for node, filters in changes:
                run.subscribe(node, filters)
        for run in runs:
            run.publish(stamped, number)
    return [run.figures(stream.count) for run in runs]


def synthetic(case: Case) -> Sequence[Row]:
    """Section 4's synthetic data; the case names the systems: "codd-r", "codd-nr", "siena"."""
    changed = {**READINGS, **SIENA_READINGS}[case["reading"]]
    stream = SyntheticStream(case["nodes"], case["documents"], case["seed"], changed)
    settings = {name: value for name, value in changed.items() if name not in (*_WORKLOAD, "joining")}
    return run_systems([(system, case["fan_out"]) for system in case["systems"]], settings, stream, case["seed"])


def xml(case: Case) -> Sequence[Row]:
    """Section 4.2: documents and XPath queries of one of three DTDs, at several fan-outs."""
    stream = XmlStream(case["dtd"], case["nodes"], case["documents"], case["seed"])
    systems = [(system, fan_out) for fan_out in case["fan_outs"] for system in ("codd-r", "codd-nr")]
    rows = run_systems(systems, {}, stream, case["seed"])
    return [{**row, "fan_out": fan_out} for (_, fan_out), row in zip(systems, rows, strict=True)]
