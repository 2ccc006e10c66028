"""What the content-based ODMRP study runs: one function a kind of measurement, one case at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from statistics import median
from typing import Any

from earshot.events import Element, Event
from earshot.filters import Filter
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.records import Kind
from earshot.simulation.engine.engine import rare_collections
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.scenario import Scenario
from earshot.studies.content_odmrp import worlds as worlds
from earshot.studies.study import Case, Row


def _run(scenario: Scenario, case: Case, **settings: Any) -> tuple[RunResult, Log]:
    protocol, own = worlds.SYSTEMS[case["system"]]
    log = Log()
    return run(scenario, protocol, {**own, **settings}, seed=case["seed"], log=log), log


def _received(log: Log, node: int | None = None) -> Iterator[tuple[int, str, str]]:
    """Bytes, event and packet of all that was received, or that one node received, in order."""
    for chunk in log.chunks():
        columns, words = chunk.columns, chunk.words
        rows = columns["kind"] == words["kind"].index(Kind.RECEIVE)
        if node is not None:
            rows &= columns["node"] == node
        sizes, events, packets = (columns[name][rows].tolist() for name in ("bytes", "event", "packet"))
        for size, event, packet in zip(sizes, events, packets, strict=True):
            yield size, words["event"][event], words["packet"][packet]


def traffic(case: Case) -> list[Row]:
    """Figure 7: what comes in at each broker, and what it delivers. One row a broker."""
    scenario = worlds.tree(case["subscribers"])
    result, log = _run(scenario, case)
    figures = summarise(scenario, result)
    bytes_in: Counter[str] = Counter()
    for row in log.rows():
        if row["kind"] == Kind.RECEIVE:
            bytes_in[row["node"]] += row["bytes"]
    delivered = Counter(result.nodes[node] for node in result.deliveries.node)
    expected = Counter(
        name
        for number, name in enumerate(result.nodes)
        for event in result.published
        for wish in result.wishes
        if wish.node == number and wish.subscription.filter.matches(event)
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
    """Figures 6 and 8: messages that arrive, a second from the first to the last sent or arrived, over a
    radio channel of 2 Mbit/s."""
    scenario = worlds.on_one_channel(worlds.tree(case["subscribers"], case["interval_s"]))
    careful = {"acknowledged": True} if case["system"] == "extended" else {}
    result, log = _run(scenario, case, jitter_s=0.01, **careful)
    figures = summarise(scenario, result)
    first = result.published[0].time
    last = max((*result.deliveries.time, result.published[-1].time))
    arrived = len(set(result.deliveries.event))
    bytes_in = sum(size for size, _, _ in _received(log))
    return [
        {
            "throughput_per_s": arrived / (last - first),
            "delivery_ratio": figures.delivery_ratio,
            "bytes_in": bytes_in,
            "transmissions": figures.transmissions,
        }
    ]


def conversion(case: Case) -> list[Row]:
    """Section IV.A: the time to turn an event of so many nested elements into a digest, a subscription
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


MOVING: dict[str, Callable[[float, float], Scenario]] = {
    "alternating": worlds.alternating,
    "flapping": worlds.flapping,
    "flapping mesh": worlds.flapping_mesh,
    "walking": worlds.walking,
}


def moving(case: Case) -> list[Row]:
    """Figures 10 to 12: how much reaches a moving receiver, by which kind of packet, over how many hops.

    The seed decides where in its walk the receiver is when the first message is sent, and its exact
    pace within a fifth: else steps, messages and refreshes beat against each other.
    """
    random = Random(f"pace:{case['seed']}")
    step_s = case["step_s"] * random.uniform(0.8, 1.2)
    scenario = MOVING[case["world"]](step_s, random.uniform(0.0, 9 * step_s))
    result, log = _run(scenario, case)
    ids = [event.id for event in result.published]
    receiver = result.nodes.index("R1")
    mine = [place for place, node in enumerate(result.deliveries.node) if node == receiver]
    by_packet: dict[str, str] = {}
    bytes_in = 0
    for size, event, packet in _received(log, receiver):
        bytes_in += size
        if event:
            by_packet.setdefault(event, packet)
    delivered = [ids[result.deliveries.event[place]] for place in mine]
    on_requests = sum(by_packet[event].endswith("join-request") for event in delivered)
    hops = [result.deliveries.hops[place] for place in mine]
    return [
        {
            "delivery_ratio": len(delivered) / len(ids),
            "share_on_requests": on_requests / len(delivered) if delivered else None,
            "on_requests": on_requests,
            "on_data": len(delivered) - on_requests,
            "delivered": len(delivered),
            "detours": sum(one > min(hops) for one in hops),
            "share_of_detours": sum(one > min(hops) for one in hops) / len(hops) if hops else None,
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
