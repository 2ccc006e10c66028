"""The CoDD paper's streams of documents: its synthetic data, and XML after three DTDs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from earshot.events import Event
from earshot.filters import Filter
from earshot.simulation.draws import Span
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.workload.codd_workload import Buckets
from earshot.studies.codd.runs import run_systems
from earshot.studies.study import Case, Row

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
"The readings of docs/papers/codd.md, changed one at a time."
SIENA_READINGS: dict[str, dict[str, Any]] = {
    AS_READ: {},
    "brokers' tree as wide as f": {"broker_fan_out": 0},
    "a broker subscribes for itself alone": {"broker_interest": "own"},
    "both": {"broker_fan_out": 0, "broker_interest": "own"},
}
_WORKLOAD = ("shuffle", "query_buckets", "document_buckets", "shuffle_every", "shuffle_from")


def synthetic(case: Case) -> Sequence[Row]:
    """Section 4's synthetic data; the case names the systems: "codd-r", "codd-nr", "siena"."""
    changed = {**READINGS, **SIENA_READINGS}[case["reading"]]
    stream = Synthetic(case["nodes"], case["documents"], case["seed"], changed)
    settings = {name: value for name, value in changed.items() if name not in (*_WORKLOAD, "joining")}
    return run_systems([(system, case["fan_out"]) for system in case["systems"]], settings, stream, case["seed"])


class Synthetic:
    """Queries in buckets that are shuffled."""

    def __init__(self, nodes: int, documents: int, seed: int, changed: dict[str, Any]) -> None:
        own = {name: value for name, value in changed.items() if name in _WORKLOAD}
        if "query_buckets" in own:
            own["query_buckets"] = Span(*map(float, own["query_buckets"]))
        self.generator = Buckets(queries=nodes, draw_seed=seed, **own)
        self.count = documents
        self.joining: str = changed.get("joining", "before")
        self.type = self.generator.types()[0]
        self.nodes: Sequence[str] = [f"n{i:05}" for i in range(nodes)]
        self._seed = seed

    def filters(self, node: int) -> Sequence[Filter]:
        return self.generator.filters_in(node, 0)

    def documents(self) -> Iterator[Event]:
        random = Random(f"{self._seed}:documents")
        return (self.generator.draw(random, number) for number in range(self.count))

    def changes(self, number: int) -> Iterator[tuple[int, Sequence[Filter]]]:
        epoch = self.generator.epoch(number)
        if self.generator.shuffle == "data" or number == 0 or epoch == self.generator.epoch(number - 1):
            return
        for node in range(len(self.nodes)):
            after = self.generator.filters_in(node, epoch)
            if after != self.generator.filters_in(node, epoch - 1):
                yield node, after


def xml(case: Case) -> Sequence[Row]:
    """Section 4.2: documents and XPath queries after one of three DTDs, at several fan-outs."""
    stream = Xml(case["dtd"], case["nodes"], case["documents"], case["seed"])
    systems = [(system, fan_out) for fan_out in case["fan_outs"] for system in ("codd-r", "codd-nr")]
    rows = run_systems(systems, {}, stream, case["seed"])
    return [{**row, "fan_out": fan_out} for (_, fan_out), row in zip(systems, rows, strict=True)]


class Xml:
    """Queries and documents as the scenario `codd-<dtd>` draws them."""

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
