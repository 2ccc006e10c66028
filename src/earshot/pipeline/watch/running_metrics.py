"""Running metrics: figures of an endless stream, in bounded memory.

Pairs of (event, node) are counted by network and protocol, and for each by event type, by area and by minute of
publication. Latencies are counted by their first three digits, so percentiles are exact to half a
percent. Only the last minutes are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from earshot.pipeline.campaigns.run_figures import LATENCIES

MINUTES = 180
Group = tuple[str, str, str, str]
"Network, protocol, `by` and key."
Loss = tuple[str, str, str, str, str]
"Network, protocol, event type, area and reason."


GROUPED_BY = ("network", "protocol", "by", "key")


def three_digits(latency_s: float) -> float:
    """A number by its first three digits."""
    return float(f"{latency_s:.3g}")


@dataclass(slots=True)
class MetricSums:
    """The sums over a group's pairs."""

    events: int = 0
    expected: int = 0
    delivered: int = 0
    met: int = 0
    hops: int = 0
    "Summed over the deliveries that count them."
    hops_counted: int = 0
    latencies: dict[float, int] = field(default_factory=dict)
    "Of met pairs: how many of each."

    def figures(self) -> Iterator[tuple[str, float]]:
        """(metric, value), named as in `metrics`; what cannot be measured is left out."""
        yield "events", self.events
        yield "expected", self.expected
        yield "delivered", self.delivered
        yield "met", self.met
        yield "lost", self.expected - self.met
        if self.expected:
            yield "delivery_ratio", self.met / self.expected
        if self.delivered:
            yield "precision", self.met / self.delivered
        if self.hops_counted:
            yield "hops", self.hops / self.hops_counted
        if self.latencies:
            yield from zip(LATENCIES, percentiles(self.latencies, [*LATENCIES.values()]), strict=True)


def percentiles(counts: Mapping[float, int], shares: Iterable[float]) -> list[float]:
    """Percentiles of counted numbers, interpolated between neighbours, as Spark's `percentile` gives them."""
    values = sorted(counts)
    ends: list[int] = []
    total = 0
    for value in values:
        total += counts[value]
        ends.append(total)

    def at(rank: int) -> float:
        return values[next(number for number, end in enumerate(ends) if rank < end)]

    found = []
    for share in shares:
        place = (total - 1) * share
        low, high = at(math.floor(place)), at(math.ceil(place))
        found.append(low + (high - low) * (place - math.floor(place)))
    return found


class RunningMetrics:
    """The sums of all groups, and the losses by reason."""

    def __init__(self, groups: dict[Group, MetricSums] | None = None, losses: Counter[Loss] | None = None) -> None:
        self.groups = groups or {}
        self.losses = losses or Counter[Loss]()

    def add(self, counted: Iterable[Mapping[str, Any]]) -> None:
        """Add rows of counts: `network`, `protocol`, `type`, `area`, `minute`, and either `events` publications or
        `pairs` pairs that agree in `wanted`, `got`, `latency_s` and `reason`, with `hops` and `hops_counted` summed."""
        for row in counted:
            community = row["network"], row["protocol"]
            for by, key in (("all", ""), ("type", row["type"]), ("area", row["area"]), ("minute", row["minute"])):
                _count(self.groups.setdefault((*community, by, key), MetricSums()), row)
            if row["reason"] is not None:
                self.losses[*community, row["type"], row["area"], row["reason"]] += row["pairs"]

    def copy(self) -> RunningMetrics:
        """A copy; adding to it does not change this one."""
        return RunningMetrics(deepcopy(self.groups), Counter(self.losses))

    def forget_minutes(self) -> None:
        """Drop all but the last minutes."""
        minutes = {int(key) for *_, by, key in self.groups if by == "minute"}
        oldest = max(minutes, default=0) - MINUTES
        for group in [group for group in self.groups if group[2] == "minute" and int(group[3]) <= oldest]:
            del self.groups[group]

    def figure_rows(self, batch: int) -> list[dict[str, Any]]:
        """Rows of `watched_figures`."""
        return [
            {"batch": batch, **dict(zip(GROUPED_BY, group, strict=True)), "metric": metric, "value": float(value)}
            for group, sums in sorted(self.groups.items())
            for metric, value in sums.figures()
        ]

    def loss_rows(self, batch: int) -> list[dict[str, Any]]:
        """Rows of `watched_losses`."""
        names = ("network", "protocol", "type", "area", "reason")
        return [
            {"batch": batch, **dict(zip(names, loss, strict=True)), "lost": count}
            for loss, count in sorted(self.losses.items())
        ]


def _count(sums: MetricSums, row: Mapping[str, Any]) -> None:
    sums.events += row["events"]
    count = row["pairs"]
    if not count:
        return
    sums.expected += count * row["wanted"]
    sums.delivered += count * row["got"]
    sums.hops += row["hops"]
    sums.hops_counted += row["hops_counted"]
    if row["wanted"] and row["got"]:
        sums.met += count
        latency = three_digits(row["latency_s"])
        sums.latencies[latency] = sums.latencies.get(latency, 0) + count
