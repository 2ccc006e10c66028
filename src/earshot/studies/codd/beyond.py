"""Beyond the CoDD paper, in the simulator: churn, ten thousand nodes, and a network that loses messages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from earshot.records import Kind
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import quantile, summarise
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.studies.figures import Row
from earshot.studies.study import Case

DOWN_S = 20.0
"How long a node that has crashed stays away."
JOINING_S = 40.0


def churning(case: Case) -> Sequence[Row]:
    """Every node but the source crashes at random times, and comes back with an empty memory."""
    scenario = _scenario(case["nodes"], case["documents"])
    random = Random(f"{case['seed']}:crashes")
    crashes = []
    for name in scenario.names():
        time = scenario.warm_up_s
        while name != "source":
            time += random.expovariate(case["rate_per_min"] / 60.0)
            if time >= scenario.duration_s:
                break
            crashes.append(Crash(name, time, DOWN_S))
            time += DOWN_S
    scenario = msgspec.structs.replace(scenario, faults=FaultSettings(crashes=tuple(crashes)))
    log = _Recoveries()
    result = run(scenario, "codd", {}, case["seed"], log)
    recoveries = sorted(log.took_s)
    return [
        {
            **_summary(scenario, result),
            "crashes": len(crashes),
            "orphans": len(recoveries),
            "recovery_median_s": quantile(recoveries, 0.5),
            "recovery_95_s": quantile(recoveries, 0.95),
        }
    ]


class _Recoveries(Log):
    """A log that keeps only the times from a parent's crash until its orphan has another parent."""

    keeps_transmissions = False

    def __init__(self) -> None:
        super().__init__()
        self.took_s: list[float] = []
        self._node_names: Sequence[str] = ()
        self._crashed: dict[str, float] = {}
        self._waiting: dict[tuple[int, str], float] = {}
        "By orphan and tree, when the parent crashed."

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        self._node_names = names

    def row(self, kind: Kind, time: float, node: int, **columns: Any) -> None:
        if kind is Kind.LEAVE:
            self._crashed[self._node_names[node]] = time
            self._waiting = {key: since for key, since in self._waiting.items() if key[0] != node}
        elif kind is Kind.NOTE:
            topic, _, detail = columns["detail"].partition(": ")
            tree, _, peer = detail.partition(" ")
            if topic == "orphan" and peer in self._crashed:
                self._waiting.setdefault((node, tree), self._crashed[peer])
            elif topic == "parent" and (node, tree) in self._waiting:
                self.took_s.append(time - self._waiting.pop((node, tree)))


def losing(case: Case) -> Sequence[Row]:
    """A share of all messages is lost, and the sender does not notice."""
    scenario = _scenario(case["nodes"], case["documents"]).with_({"infrastructure.loss": case["loss"]})
    runs = {protocol: run(scenario, protocol, {}, case["seed"]) for protocol in ("codd", "siena")}
    return [{"protocol": protocol, **_summary(scenario, result)} for protocol, result in runs.items()]


def large(case: Case) -> Sequence[Row]:
    """Many nodes, and documents of twenty categories: documents that name their readers would grow too long."""
    changes = {
        "nodes.node.count": case["nodes"],
        "publish.documents.nodes": f"node-{0:0{len(str(case['nodes'] - 1))}}",
        "duration_s": 30.0 + case["documents"] / 4.0,
    }
    scenario = load_scenario("overlay").with_(changes)
    return [_summary(scenario, run(scenario, "codd", {"held_documents": 200}, case["seed"]))]


def _scenario(nodes: int, documents: int) -> Scenario:
    """The built-in scenario with this many nodes, and this many documents at ten a second."""
    changes: dict[str, Any] = {
        "nodes.node.count": nodes,
        "publish.documents.events.queries": nodes,
        "subscribe.documents.at_s": [1.0, JOINING_S],
        "warm_up_s": JOINING_S + 10.0,
        "cool_down_s": 5.0,
        "duration_s": JOINING_S + 15.0 + documents / 10.0,
    }
    return load_scenario("codd").with_(changes)


def _summary(scenario: Scenario, result: RunResult) -> dict[str, Any]:
    found = summarise(scenario, result)
    rows = result.deliveries
    deliveries = list(zip(rows.event, rows.node, rows.subscription, strict=True))
    return {
        "delivery_ratio": found.delivery_ratio,
        "precision": found.precision,
        "expected": found.expected,
        "pairs_once": len(set(deliveries)) == len(deliveries),
        "cost": found.cost,
        "hops": found.hops_mean,
        "latency_median_s": found.latency_p50_s,
        "latency_99_s": found.latency_p99_s,
        "control_share": found.control_bytes / max(1, found.control_bytes + found.data_bytes),
    }
