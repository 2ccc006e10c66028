"""Tallies: running figures that can be added to for ever and kept in little.

Pairs of (event, node) are counted by protocol, and for each by event type, by area and by minute of
publication. Latencies are counted by their first three digits, so percentiles are right to half a
percent however many there are. Of minutes only the last ones are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec

from earshot.pipeline.campaigns.metrics import LATENCIES

MINUTES = 180
Group = tuple[str, str, str]
"Protocol, `by` and key."
Loss = tuple[str, str, str, str]
"Protocol, event type, area and reason."


def three_digits(latency_s: float) -> float:
    """A number by its first three digits."""
    return float(f"{latency_s:.3g}")


@dataclass(slots=True)
class Tally:
    """What a group's pairs amount to."""

    events: int = 0
    expected: int = 0
    delivered: int = 0
    met: int = 0
    hops: int = 0
    "Summed over the deliveries that count them."
    hops_told: int = 0
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
        if self.hops_told:
            yield "hops", self.hops / self.hops_told
        if self.latencies:
            yield from zip(LATENCIES, percentiles(self.latencies, [*LATENCIES.values()]), strict=True)


def percentiles(counts: Mapping[float, int], shares: Iterable[float]) -> list[float]:
    """Percentiles of counted numbers, straight between two neighbours, as Spark's `percentile` gives them."""
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


class Tallies:
    """All groups' tallies, and the losses by reason."""

    def __init__(self, groups: dict[Group, Tally] | None = None, losses: Counter[Loss] | None = None) -> None:
        self.groups = groups or {}
        self.losses = losses or Counter[Loss]()

    def add(self, counted: Iterable[Mapping[str, Any]]) -> None:
        """Rows of counts: `protocol`, `type`, `area`, `minute`; of publications `events`; of pairs `pairs` many
        alike in `wanted`, `got`, `latency_s` and `reason`, with `hops` and `hops_told` summed."""
        for row in counted:
            protocol = row["protocol"]
            for by, key in (("all", ""), ("type", row["type"]), ("area", row["area"]), ("minute", row["minute"])):
                _count(self.groups.setdefault((protocol, by, key), Tally()), row)
            if row["reason"] is not None:
                self.losses[protocol, row["type"], row["area"], row["reason"]] += row["pairs"]

    def copy(self) -> Tallies:
        """To be added to apart."""
        return Tallies(deepcopy(self.groups), Counter(self.losses))

    def forget_minutes(self) -> None:
        """Keep the last minutes only."""
        minutes = {int(key) for _, by, key in self.groups if by == "minute"}
        oldest = max(minutes, default=0) - MINUTES
        for group in [group for group in self.groups if group[1] == "minute" and int(group[2]) <= oldest]:
            del self.groups[group]

    def figure_rows(self, batch: int) -> list[dict[str, Any]]:
        """Rows of `watched_figures`."""
        return [
            {"batch": batch, "protocol": protocol, "by": by, "key": key, "metric": metric, "value": float(value)}
            for (protocol, by, key), tally in sorted(self.groups.items())
            for metric, value in tally.figures()
        ]

    def loss_rows(self, batch: int) -> list[dict[str, Any]]:
        """Rows of `watched_losses`."""
        names = ("protocol", "type", "area", "reason")
        return [
            {"batch": batch, **dict(zip(names, loss, strict=True)), "lost": count}
            for loss, count in sorted(self.losses.items())
        ]

    def kept(self) -> KeptTallies:
        """As JSON can hold them."""
        return KeptTallies(list(self.groups.items()), list(self.losses.items()))


class KeptTallies(msgspec.Struct):
    """Tallies between two batches."""

    groups: list[tuple[Group, Tally]] = []
    losses: list[tuple[Loss, int]] = []

    def tallies(self) -> Tallies:
        """To be added to."""
        return Tallies(dict(self.groups), Counter(dict(self.losses)))


def _count(tally: Tally, row: Mapping[str, Any]) -> None:
    tally.events += row["events"]
    count = row["pairs"]
    if not count:
        return
    tally.expected += count * row["wanted"]
    tally.delivered += count * row["got"]
    tally.hops += row["hops"]
    tally.hops_told += row["hops_told"]
    if row["wanted"] and row["got"]:
        tally.met += count
        latency = three_digits(row["latency_s"])
        tally.latencies[latency] = tally.latencies.get(latency, 0) + count
