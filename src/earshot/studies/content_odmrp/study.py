"""The content-based ODMRP study: section IV's experiments, figures 6 to 12, and larger networks.

One function per kind of measurement, for one case at a time; then the cases of each experiment. The
networks are in `worlds`, the claims in `claims`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import median
from typing import Any

from earshot.events import Element, Event
from earshot.filters import Filter, parsed
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.records import Kind
from earshot.simulation.engine.engine import rare_collections
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.scenario import Scenario
from earshot.studies.content_odmrp import worlds
from earshot.studies.content_odmrp.claims import CLAIMS, THREE
from earshot.studies.study import Case, Experiment, Row, Study, cases


def _run(scenario: Scenario, case: Case, **settings: Any) -> tuple[RunResult, Log]:
    protocol, own = worlds.SYSTEMS[case["system"]]
    log = Log()
    return run(scenario, protocol, {**own, **settings}, seed=case["seed"], log=log), log


def _received(log: Log) -> Iterator[Row]:
    """The records of what nodes received, in order."""
    return (row for row in log.rows() if row["kind"] == Kind.RECEIVE)


def traffic(case: Case) -> list[Row]:
    """Figure 7: what comes in at each broker, and what it delivers. One row per broker."""
    scenario = worlds.tree(case["subscribers"])
    result, log = _run(scenario, case)
    figures = summarise(scenario, result)
    bytes_in: Counter[str] = Counter()
    for row in _received(log):
        bytes_in[row["node"]] += row["bytes"]
    delivered = Counter(result.nodes[node] for node in result.deliveries.node)
    expected = Counter(
        name
        for name in result.nodes
        for event in result.published
        for span in result.subscriptions
        if span.node == name and parsed(span.filter).matches(event)
    )
    return [
        {
            "broker": name,
            "bytes_in": bytes_in[name],
            "delivered": delivered[name],
            "expected": expected[name],
            "delivery_ratio": figures.delivery_ratio,
            "precision": figures.precision,
        }
        for name in result.nodes
    ]


def throughput(case: Case) -> list[Row]:
    """Figures 6 and 8: messages per second, from the first to the last sent or delivered, over a
    radio channel of 2 Mbit/s."""
    scenario = worlds.on_one_channel(worlds.tree(case["subscribers"], case["interval_s"]))
    acknowledged = {"acknowledged": True} if case["system"] == "extended" else {}
    result, log = _run(scenario, case, jitter_s=0.01, **acknowledged)
    figures = summarise(scenario, result)
    first = result.published[0].time
    last = max((*result.deliveries.time, result.published[-1].time))
    arrived = len(set(result.deliveries.event))
    bytes_in = sum(row["bytes"] for row in _received(log))
    return [
        {
            "throughput_per_s": arrived / (last - first),
            "delivery_ratio": figures.delivery_ratio,
            "bytes_in": bytes_in,
            "transmissions": figures.transmissions,
        }
    ]


def conversion(case: Case) -> list[Row]:
    """Section IV.A: the time to turn an event with this many nested elements into a digest, a subscription
    to its innermost one into a summary, and to compare the two. Medians, in microseconds."""
    names = [f"e{index}" for index in range(case["elements"])]
    wanted = Filter.xpath(f"/e0[.//{names[-1]} = 'x' or . = 'x']")
    digest = Digest.of(_nested(names))
    summary = Summary.of([wanted])
    return [
        {
            "event_us": _median_us(lambda: _nested(names), Digest.of),
            "subscription_us": _median_us(lambda: wanted, lambda filter: Summary.of([filter])),
            "comparison_us": _median_us(lambda: digest, summary.may_match_digest),
            "matches": summary.may_match_digest(digest),
        }
    ]


def _nested(names: list[str]) -> Event:
    element = Element(names[-1], {}, ("x",))
    for name in reversed(names[:-1]):
        element = Element(name, {}, (element,))
    return Event(element.name, element)


def _median_us(make: Callable[[], Any], convert: Callable[[Any], object], repeats: int = 51) -> float:
    spent = []
    for _ in range(repeats):
        thing = make()
        start = time.perf_counter()
        convert(thing)
        spent.append(time.perf_counter() - start)
    return median(spent) * 1e6


def moving(case: Case) -> list[Row]:
    """Figures 10 to 12: how much reaches a moving receiver, by which kind of packet, over how many hops.

    The seed decides where on its path the receiver is when the first message is sent, and its exact
    pace within a fifth: otherwise moves, messages and refreshes would stay in step.
    """
    random = Random(f"pace:{case['seed']}")
    step_s = case["step_s"] * random.uniform(0.8, 1.2)
    scenario = worlds.moving(case["world"], step_s, random.uniform(0.0, 9 * step_s))
    result, log = _run(scenario, case)
    ids = [event.id for event in result.published]
    deliveries = [place for place, node in enumerate(result.deliveries.node) if result.nodes[node] == "R1"]
    by_packet: dict[str, str] = {}
    bytes_in = 0
    for row in _received(log):
        if row["node"] == "R1":
            bytes_in += row["bytes"]
            if row["event"]:
                by_packet.setdefault(row["event"], row["packet"])
    delivered = [ids[result.deliveries.event[place]] for place in deliveries]
    on_requests = sum(by_packet[event].endswith("join-request") for event in delivered)
    hops = [result.deliveries.hops[place] for place in deliveries]
    detours = sum(one > min(hops) for one in hops)
    return [
        {
            "delivery_ratio": len(delivered) / len(ids),
            "share_on_requests": on_requests / len(delivered) if delivered else None,
            "on_requests": on_requests,
            "on_data": len(delivered) - on_requests,
            "delivered": len(delivered),
            "detours": detours,
            "share_of_detours": detours / len(hops) if hops else None,
            "bytes_in": bytes_in,
        }
    ]


@rare_collections()
def growing(case: Case) -> list[Row]:
    """Beyond the paper: many brokers that move, many subscriptions each."""
    scenario = worlds.city(case["brokers"], case["subscriptions"])
    protocol, own = worlds.SYSTEMS[case["system"]]
    settings = {name: case[name] for name in ("summary_bytes", "packet_bytes", "predict") if name in case}
    result = run(scenario, protocol, {**own, **settings}, seed=case["seed"])
    figures = summarise(scenario, result)
    data = [packet for tag, packet in result.counts.packets.items() if tag.endswith("-data")]
    return [
        {
            "delivery_ratio": figures.delivery_ratio,
            "precision": figures.precision,
            "expected": figures.expected,
            "events": figures.events,
            "transmissions": figures.transmissions,
            "bytes": figures.data_bytes + figures.control_bytes,
            "control_bytes": figures.control_bytes,
            "mesh_bytes": sum(packet.bytes_sent for packet in data),
            "latency_p95_s": figures.latency_p95_s,
        }
    ]


INTERVALS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
"Time between two moves of the receiver: the shorter, the faster it is."
SEEDS = range(20)
SMALLER = [(100, 1), (100, 10), (100, 100), (300, 1), (300, 10)]
LARGER = [(100, 1000), (300, 100), (1000, 1), (1000, 10)]
"Brokers, and subscriptions of each."
BUDGETS = (32, 64, 128, 256, 512, 1000)


def _sizes(chosen: Sequence[tuple[int, int]], seeds: Sequence[int]) -> list[dict[str, object]]:
    return [
        {**case, "brokers": brokers, "subscriptions": each}
        for brokers, each in chosen
        for case in cases(system=["extended", "one channel", "flooding"], seed=seeds)
    ]


def _budgets(budgets: Sequence[int], seeds: Sequence[int]) -> list[dict[str, object]]:
    found = cases(system=["extended"], brokers=[100], subscriptions=[30], summary_bytes=budgets, seed=seeds)
    return [{**case, "packet_bytes": case["summary_bytes"] + 400} for case in found]


TRAFFIC = cases(system=THREE, subscribers=[5], seed=[0])
EXPERIMENTS = [
    Experiment("traffic", traffic, TRAFFIC, TRAFFIC),
    Experiment(
        "throughput",
        throughput,
        cases(system=[*THREE, "extended, broadcast"], subscribers=[5], interval_s=INTERVALS_S, seed=SEEDS)
        + cases(system=["extended"], subscribers=[10, 20, 40, 80], interval_s=[0.5], seed=SEEDS),
        cases(system=[*THREE, "extended, broadcast"], subscribers=[5], interval_s=[0.02, 0.1, 0.5], seed=range(2))
        + cases(system=["extended"], subscribers=[10, 20], interval_s=[0.5], seed=range(2)),
    ),
    Experiment(
        "conversion",
        conversion,
        cases(elements=[1, 10, 25, 50, 100, 150, 200], seed=range(3)),
        cases(elements=[10, 50, 200], seed=range(1)),
    ),
    Experiment(
        "moving",
        moving,
        cases(world=worlds.MOVING, system=["extended", "one channel"], step_s=STEPS_S, seed=range(20)),
        cases(world=worlds.MOVING, system=["extended", "one channel"], step_s=[0.2, 1.0, 10.0, 30.0], seed=range(3)),
    ),
    Experiment(
        "growing",
        growing,
        _sizes(LARGER, range(1)) + _sizes(SMALLER, range(3)),
        _sizes([(100, 1), (100, 10)], range(1)),
    ),
    Experiment("budgets", growing, _budgets(BUDGETS, range(3)), _budgets((32, 1000), range(1))),
    Experiment(
        "prediction",
        growing,
        cases(system=["extended"], brokers=[100], subscriptions=[10], predict=[True, False], seed=range(5)),
        cases(system=["extended"], brokers=[100], subscriptions=[1], predict=[True, False], seed=range(1)),
    ),
]

STUDY = Study(
    name="content-odmrp",
    paper="Yoneki, Bacon: An Adaptive Approach to Content-Based Subscription in Mobile Ad Hoc Networks (2004)",
    experiments=EXPERIMENTS,
    claims=CLAIMS,
    notes="The paper's topologies are pictures; how they are read: docs/papers/content-odmrp.md.",
)
