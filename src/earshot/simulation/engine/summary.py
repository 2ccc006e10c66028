"""The summary of a run: how many of the expected deliveries happened, and at which cost.

Only what is published and sent after the warm-up counts.

========================  ====================================================================
delivery ratio            expected (event, node) pairs that were delivered / all expected pairs
precision                 delivered pairs that were expected / all delivered pairs
cost                      transmissions that carry an event / events published
bytes per delivery        all bytes sent / delivered pairs
latency                   publication to delivery, over expected pairs that were delivered
drops                     what was dropped or lost, by reason
========================  ====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from earshot.simulation.engine.oracle import RunOracle, up_intervals
from earshot.simulation.engine.result import RunResult
from earshot.simulation.faults import FaultPlan, plan
from earshot.simulation.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in figures. None: the figure is undefined, because no event was expected or delivered."""

    scenario: str
    protocol: str
    seed: int
    nodes: int
    measured_s: float
    "The duration without the warm-up."
    events: int
    expected: int
    "(event, node) pairs."
    delivered: int
    "(event, node) pairs, expected or not."
    delivery_ratio: float | None
    precision: float | None
    transmissions: int
    "All transmissions; those that carry an event are data, the others control."
    cost: float | None
    "Data transmissions per event."
    data_bytes: int
    control_bytes: int
    bytes_per_delivery: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_p99_s: float | None
    hops_mean: float | None
    "Over expected deliveries whose packets count hops."
    drops: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def summarise(scenario: Scenario, result: RunResult) -> RunSummary:
    """The figures of a finished run of this scenario."""
    trajectories = result.trajectories
    if trajectories is None:
        trajectories = scenario.trajectories(result.seed)
    faults = plan(scenario.faults, trajectories.names, scenario.duration_s, result.seed)
    oracle = RunOracle(result.subscriptions, trajectories, up_intervals(trajectories, faults))
    published_at = _true_times(result, faults)
    counted = {i: time for i, time in enumerate(published_at) if time >= result.warm_up_s}
    nodes = len(result.nodes)
    # A pair of event and node is one number, because there may be millions of pairs.
    expected = {i * nodes + node for i, time in counted.items() for node in oracle.receivers(result.published[i], time)}
    first = _first_deliveries(result, counted)
    right = expected & first.keys()
    latencies = sorted(first[pair][0] - counted[pair // nodes] for pair in right)
    hops = [first[pair][1] for pair in right if first[pair][1] >= 0]
    packets = list(result.counts.since(result.warm_up).packets.values())
    data_bytes = sum(packet.bytes_sent for packet in packets if packet.carries_event)
    control_bytes = sum(packet.bytes_sent for packet in packets if not packet.carries_event)
    data = sum(packet.sends for packet in packets if packet.carries_event)
    return RunSummary(
        scenario=result.scenario,
        protocol=result.protocol,
        seed=result.seed,
        nodes=nodes,
        measured_s=result.duration_s - result.warm_up_s,
        events=len(counted),
        expected=len(expected),
        delivered=len(first),
        delivery_ratio=_ratio(len(right), len(expected)),
        precision=_ratio(len(right), len(first)),
        transmissions=sum(packet.sends for packet in packets),
        cost=_ratio(data, len(counted)),
        data_bytes=data_bytes,
        control_bytes=control_bytes,
        bytes_per_delivery=_ratio(data_bytes + control_bytes, len(first)),
        latency_p50_s=quantile(latencies, 0.50),
        latency_p95_s=quantile(latencies, 0.95),
        latency_p99_s=quantile(latencies, 0.99),
        hops_mean=_ratio(sum(hops), len(hops)),
        drops=dict(sorted(result.counts.since(result.warm_up).drops.items())),
    )


def _true_times(result: RunResult, faults: FaultPlan) -> list[float]:
    """When each event was published. Its own time stamp is from the publisher's clock, which may be wrong."""
    offsets = dict(zip(result.nodes, faults.clock_offsets_s, strict=True))
    return [event.time - offsets[event.source] for event in result.published]


def _first_deliveries(result: RunResult, counted: Mapping[int, float]) -> dict[int, tuple[float, int]]:
    """event * nodes + node -> time and hops of the first delivery, for the counted events."""
    deliveries, nodes = result.deliveries, len(result.nodes)
    found: dict[int, tuple[float, int]] = {}
    for time, node, event, hops in zip(
        deliveries.time, deliveries.node, deliveries.event, deliveries.hops, strict=True
    ):
        if event in counted:
            found.setdefault(event * nodes + node, (time, hops))
    return found


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The value that this share of the ordered values does not exceed; None if there are no values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
