"""Runs of CoDD and Siena over the paper's streams of documents, and what the paper measures of them.

Streams: the synthetic data of section 4, and the XML data of section 4.2. The systems of a case run side by side on
the same documents. Last, section 3: how long it takes to compare two queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any

from earshot.documents import write_xml
from earshot.events import Element, Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.catalogue import build_settings
from earshot.protocols.codd.machine import Codd
from earshot.protocols.codd.overlap import overhead_of
from earshot.protocols.codd.recent_documents import bitmap
from earshot.protocols.machine import Announcement, FixedLocation, Machine
from earshot.protocols.siena.machine import Siena
from earshot.simulation.draws import Span
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.workload.codd_workload import CoddDocuments
from earshot.simulation.workload.dtd import built_in_dtd, load_dtd
from earshot.studies.codd.pipe_host import Pipes, SharedIndex, SharedLocal
from earshot.studies.figures import Row
from earshot.studies.study import Case

SOURCE = "source"
SNAPSHOT = 50
"Documents from one snapshot of all nodes to the next."
PERIOD = 200
"Documents over which a node's overhead after a reorganisation is counted."
NEVER_S = 1e12
QUIET = {"keep_alive_s": NEVER_S, "silence_s": 2 * NEVER_S, "directory_s": NEVER_S, "held_documents": 400}
"No node fails in these runs: keep-alives, and documents kept for orphans, would only take time."

AS_READ = "as read"
AS_PRINTED = "figure 6 as printed, no gain asked"
READINGS: dict[str, dict[str, Any]] = {
    AS_READ: {},
    "all nodes join before the first document": {"joining": "before"},
    "categories are the query text": {"shuffle": "subscriptions"},
    "the same, all join before the first document": {"shuffle": "subscriptions", "joining": "before"},
    "a node in 1 bucket, a document in 4": {"query_buckets": [1, 1], "document_buckets": 4},
    "a node in 1 to 7 buckets, a document in 1": {"query_buckets": [1, 7], "document_buckets": 1},
    "no shuffle": {"shuffle_every": 0},
    "shuffles half way between reorganisations": {"shuffle_from": 100},
    "newcomers are compared with the child's own query": {"join_against": "query"},
    "three seeds": {"seeds": 3},
    "overhead against the aggregate": {"overhead_against": "aggregate"},
    "the high-overhead node itself moves": {"mover": "self"},
    AS_PRINTED: {"delta": None},
    "overlaps from the last 800 documents": {"window_documents": 800},
}
"The readings of docs/papers/codd.md: in each, what differs from the paper as we read it."
POLICIES: dict[str, dict[str, Any]] = {
    "top-c, c = 5": {"top": 5, "gather_s": 40.0},
    "top-c, c = 20": {"top": 20, "gather_s": 40.0},
    "delta-threshold, any gain": {"delta": 0.0},
    "delta-threshold, a gain of 0.05": {"delta": 0.05},
    "delta-threshold, a gain of 0.1": {"delta": 0.1},
    "frequency, every 400 documents": {"reorganise_every": 400},
    "overhead threshold, 0.4 instead of 0.2": {"overhead_threshold": 0.4},
}
"""Section 3.3's ways to limit reorganisation. The paper gives no c and no threshold: a gain is a share of the recent
documents, and 0.05 of them are 10 of 200."""
_WORKLOAD = ("shuffle", "query_buckets", "document_buckets", "shuffle_every", "shuffle_from")
BINARY = {"siena": 0, "siena-binary": 2}
"The brokers' tree is as wide as f, or binary."


class SyntheticStream:
    """Section 4's synthetic data: queries in category buckets that are shuffled."""

    def __init__(self, nodes: int, documents: int, seed: int, changed: dict[str, Any]) -> None:
        own = {name: value for name, value in changed.items() if name in _WORKLOAD}
        if "query_buckets" in own:
            own["query_buckets"] = Span(*map(float, own["query_buckets"]))
        self.generator = CoddDocuments(queries=nodes, draw_seed=seed, **own)
        self.count = documents
        self.joining: str = changed.get("joining", "flowing")
        "Whether documents flow before and while nodes join, or all nodes join before the first document."
        self.types = self.generator.types()
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
    """Section 4.2's XML data: queries and documents as the scenarios `codd-<dtd>` draw them. With two DTDs, every node
    asks for documents of both, and the source changes from the first to the second half way."""

    joining = "flowing"

    def __init__(self, dtds: Sequence[str], nodes: int, documents: int, seed: int) -> None:
        self.count = documents
        self.nodes: Sequence[str] = [f"n{i:05}" for i in range(nodes)]
        self.types: tuple[EventType, ...] = ()
        self._filters: list[tuple[Filter, ...]] = [() for _ in self.nodes]
        self._events = []
        self._seed = seed
        for dtd in dtds:
            scenario = load_scenario(f"codd-{dtd}")
            (publish,), (subscribe,) = scenario.publish.values(), scenario.subscribe.values()
            sources = {name: published.events for name, published in scenario.publish.items()}
            random = Random(f"{seed}:queries")
            self.types += publish.events.types()[:1]
            self._events.append(publish.events)
            drawn = [subscribe.filters.draw(random, number, sources) for number in range(nodes)]
            self._filters = [(*known, new) for known, new in zip(self._filters, drawn, strict=True)]

    def filters(self, node: int) -> Sequence[Filter]:
        return self._filters[node]

    def documents(self) -> Iterator[Event]:
        random = Random(f"{self._seed}:documents")
        for number in range(self.count):
            yield self._events[number * len(self._events) // self.count].draw(random, number)

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
        self.ever_interior: set[str] = set()
        "The nodes that had children at a snapshot."
        self.leaf_shares: list[float] = []
        "At each snapshot with all nodes in the tree, the share without children; of Siena's tree of brokers."
        self.client_leaf_shares: list[float] = []
        "The same of Siena's whole tree, whose leaves are mainly its clients."
        self.halfway: tuple[int, int] = (0, 0)
        "All transfers and extraneous ones in the first half of the documents."
        self.joins: list[tuple[int, int, int]] = []
        "For each join of a node: TYPE_ADD messages, all messages, and the levels of the tree after it."
        self.reorganisations: list[Reorganisation] = []
        self._movers: dict[str, Reorganisation] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        "By node, its counts at the last snapshot."

    def announce(self, types: Sequence[EventType]) -> None:
        for type in types:
            self.pipes.call(SOURCE, "announce", Announcement(type))
        self.pipes.run(self.pipes.now + 1.0)

    def subscribe(self, node: int, filters: Sequence[Filter]) -> None:
        """The node asks for these, and for nothing else, from now on."""
        name = self.names[node]
        machine: Any = self.pipes.machines[name]
        before = None if machine.local.by_id else (self.pipes.adds, self.pipes.control)
        ids = {f"{name}/{filter}": filter for filter in filters}
        for id in [id for id in machine.local.by_id if id not in ids]:
            self.pipes.call(name, "unsubscribe", id)
        for id, filter in ids.items():
            if id not in machine.local.by_id:
                self.pipes.call(name, "subscribe", Subscription(id, name, filter))
        if before is not None and isinstance(machine, Codd):
            self.pipes.run(self.pipes.now)
            self.joins.append((self.pipes.adds - before[0], self.pipes.control - before[1], self._levels()))

    def _levels(self) -> int:
        """The levels of CoDD's tree, the root's among them."""
        trees = (
            tree
            for machine in self.pipes.machines.values()
            if isinstance(machine, Codd)
            for tree in machine.trees.values()
        )
        return 1 + max((len(tree.ancestors) for tree in trees if tree.parent), default=0)

    def publish(self, event: Event, number: int) -> None:
        self.number = number
        self.pipes.call(SOURCE, "publish", event)
        self.pipes.run(self.pipes.now + 1.0)
        if (number + 1) % SNAPSHOT == 0:
            self._take_snapshot(number + 1)

    def pass_half(self) -> None:
        """Half of the documents have been published."""
        counts = [self._counts(name) for name in self.names]
        self.halfway = (sum(transfers for transfers, _ in counts), sum(extraneous for _, extraneous in counts))

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
            if _is_interior(self.pipes.machines[name]):
                self.ever_interior.add(name)
                if transfers:
                    self.interior.append(overhead)
            if overhead:
                positive.append(overhead)
        self.series.append((number, _mean(positive)))
        self._count_leaves()
        for change in reversed(self.reorganisations):
            if number - change.document > PERIOD + SNAPSHOT:
                break
            if change.after is None and number - change.document >= PERIOD:
                _, change.after = self._since(change.node, change.counted)

    def _count_leaves(self) -> None:
        machines = [self.pipes.machines[name] for name in self.names]
        if not all(isinstance(machine, Codd | Siena) and machine.local.by_id for machine in machines):
            return
        tree = [machine for machine in machines if not isinstance(machine, Siena) or machine.broker]
        self.leaf_shares.append(_mean([not _is_interior(machine) for machine in tree]))
        above = [
            machine
            for machine in tree
            if isinstance(machine, Siena) and any(name != machine.above for name in machine.links)
        ]
        self.client_leaf_shares.append(1 - len(above) / len(machines))

    def figures(self, offered: int) -> dict[str, Any]:
        """What the paper's figures show of the run. `offered` counts each document once for each joined node."""
        counts = {name: self._counts(name) for name in self.names}
        received = {name: transfers for name, (transfers, _) in counts.items() if transfers}
        overhead = {name: counts[name][1] / transfers for name, transfers in received.items()}
        ranked = sorted(overhead.values(), reverse=True)
        depths = sorted(self.pipes.depth_sums[name] / self.pipes.sent_to[name] for name in received)
        transfers, extraneous = sum(received.values()), sum(extraneous for _, extraneous in counts.values())
        halves = (self.halfway, (transfers - self.halfway[0], extraneous - self.halfway[1]))
        moves = [change for change in self.reorganisations if change.moved]
        return {
            "system": self.system,
            "system_overhead": extraneous / transfers,
            "halves": [round(bad / all, 4) if all else 0.0 for all, bad in halves],
            "node_overhead": _mean([overhead[name] for name in sorted(self.ever_interior) if name in overhead]),
            "interior_overhead": _mean(self.interior),
            "top_100": [round(overhead, 4) for overhead in ranked[:100]],
            "with_overhead": sum(overhead > 0 for overhead in ranked),
            "leaf_share": _mean(self.leaf_shares),
            **self._of_brokers(),
            "depths": [round(depth, 3) for depth in depths],
            "depth": _mean(depths),
            "joins": self.joins,
            "series": [[number, round(overhead, 4)] for number, overhead in self.series],
            "ratios": [[move.document, round(move.after / move.before, 4)] for move in moves if move.after is not None],
            "requests": len(self.reorganisations),
            "moves": len(moves),
            "transfers": transfers,
            "control": self.pipes.control,
            "deliveries": self.pipes.deliveries,
            "selectivity": self.pipes.deliveries / offered,
        }

    def _of_brokers(self) -> dict[str, Any]:
        """The overheads of Siena's brokers, against their own queries, and against those of their clients too."""
        machines = [self.pipes.machines[name] for name in self.names]
        brokers = [machine for machine in machines if isinstance(machine, Siena) and machine.broker]
        if not brokers:
            return {}
        kinds = {"own": [broker.extraneous for broker in brokers], "clients": [broker.unwanted for broker in brokers]}
        shares = {
            kind: [count / max(1, broker.transfers) for count, broker in zip(counts, brokers, strict=True)]
            for kind, counts in kinds.items()
        }
        above = [_is_interior(broker) for broker in brokers]
        found: dict[str, Any] = {"brokers": len(brokers), "interior_brokers": sum(above)}
        found["leaf_share_with_clients"] = _mean(self.client_leaf_shares)
        for kind, values in shares.items():
            found[f"{kind}, all brokers"] = _mean(values)
            interior = [value for value, is_above in zip(values, above, strict=True) if is_above]
            found[f"{kind}, interior brokers"] = _mean(interior)
            found[f"{kind}, with overhead"] = sum(value > 0 for value in values)
            found[f"{kind}, ranked"] = [round(value, 4) for value in sorted(values, reverse=True)]
        return found


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
    is_siena = system in BINARY
    given = {} if is_siena else settings
    made: type[Siena] | type[Codd] = Siena if is_siena else Codd
    if is_siena:
        known = {"agents": [SOURCE], "clients": fan_out, "broker_fan_out": BINARY[system]}
    else:
        known = {"agents": [SOURCE], "fan_out": fan_out, "reorganise": system == "codd-r", **QUIET}
        known["held_documents"] = max(400, settings.get("window_documents", 0))
    built: Any = build_settings(made.Settings, {**known, **given})
    machines = [made(name, built, FixedLocation(), Random(f"{seed}:{name}"), new_index=lambda: index) for name in names]
    for machine in machines:
        machine.local = SharedLocal(index)
    return list(machines)


def run_systems(
    systems: Sequence[tuple[str, int]], settings: dict[str, Any], stream: SyntheticStream | XmlStream, seed: int
) -> list[Row]:
    """Run systems, each a name and a fan-out, side by side. One row for each."""
    names, index = [SOURCE, *stream.nodes], SharedIndex()
    runs = [SystemRun(system, _machines(system, fan_out, settings, names, seed, index)) for system, fan_out in systems]
    for run in runs:
        run.announce(stream.types)
    order = list(range(len(stream.nodes)))
    Random(f"{seed}:order").shuffle(order)
    first, last = joining_from(stream.count) if stream.joining == "flowing" else (0, 1)
    joined = offered = 0
    for number, event in enumerate(stream.documents()):
        due = min(len(order), math.ceil(len(order) * max(0, number + 1 - first) / (last - first)))
        changes = [*((node, stream.filters(node)) for node in order[joined:due]), *stream.changes(number)]
        joined = due
        offered += joined
        stamped = event.stamped(id=f"d{number}", source=SOURCE, time=runs[0].pipes.now)
        for run in runs:
            for node, filters in changes:
                run.subscribe(node, filters)
        for run in runs:
            run.publish(stamped, number)
            if number + 1 == stream.count // 2:
                run.pass_half()
    return [run.figures(offered) for run in runs]


def joining_from(documents: int) -> tuple[int, int]:
    """The first node joins after this many documents, and all have joined after a fifth of them. The source has then
    seen enough documents to compare newcomers by, as section 3.1 has it."""
    return max(25, documents // 50), max(50, documents // 5)


def synthetic(case: Case) -> Sequence[Row]:
    """Section 4's synthetic data; the case names the systems: "codd-r", "codd-nr", "siena", "siena-binary"."""
    changed = {**POLICIES, **READINGS}[case["reading"]]
    stream = SyntheticStream(case["nodes"], case["documents"], case["seed"], changed)
    settings = {name: value for name, value in changed.items() if name not in (*_WORKLOAD, "joining")}
    return run_systems([(system, case["fan_out"]) for system in case["systems"]], settings, stream, case["seed"])


def xml(case: Case) -> Sequence[Row]:
    """Section 4.2: documents and XPath queries of one of three DTDs, or of one after the other, at several fan-outs."""
    stream = XmlStream(case["dtds"], case["nodes"], case["documents"], case["seed"])
    systems = [(system, fan_out) for fan_out in case["fan_outs"] for system in ("codd-r", "codd-nr")]
    rows = run_systems(systems, {}, stream, case["seed"])
    return [{**row, "fan_out": fan_out} for (_, fan_out), row in zip(systems, rows, strict=True)]


def shapes(case: Case) -> Sequence[Row]:
    """Figure 13: what documents of a DTD look like. A document's root is its first level."""
    (publish,) = load_scenario(f"codd-{case['dtd']}").publish.values()
    random = Random(f"{case['seed']}:shape")
    events = [publish.events.draw(random, number) for number in range(case["documents"])]
    levels = [list(_element_levels(event.root)) for event in events]
    return [
        {
            "elements": len(load_dtd(built_in_dtd(case["dtd"])).elements),
            "depth": max(map(max, levels)),
            "mean_depth": _mean([level for run in levels for level in run]),
            "size_kb": _mean([len(write_xml(event.root)) / 1000.0 for event in events]),
        }
    ]


def _element_levels(element: Element, level: int = 1) -> Iterator[int]:
    """The level of the element, and of all below it."""
    yield level
    for child in element.elements:
        yield from _element_levels(child, level + 1)


def overlap_times(case: Case) -> Sequence[Row]:
    """One row a pair of queries: by the bitmaps of their documents, by structural overlap, by query containment."""
    stream = XmlStream([case["dtd"]], case["queries"], case["documents"], case["seed"])
    queries = [stream.filters(node)[0] for node in range(case["queries"])]
    documents = list(stream.documents())
    met = [
        bitmap((number for number, document in enumerate(documents) if query.matches(document)), 0) for query in queries
    ]
    random = Random(f"{case['seed']}:pairs")
    rows = []
    for _ in range(case["pairs"]):
        a, b = random.sample(range(len(queries)), 2)
        rows.append(
            {
                "extensional_us": _median_us(partial(overhead_of, met[a], met[b])),
                "structural_us": _median_us(partial(queries[a].overlap, queries[b])),
                "containment_us": _median_us(partial(queries[a].covers, queries[b])),
            }
        )
    return rows


def _median_us(operation: Callable[[], object], times: int = 5) -> float:
    took = []
    for _ in range(times):
        started = perf_counter_ns()
        operation()
        took.append(perf_counter_ns() - started)
    return median(took) / 1000
