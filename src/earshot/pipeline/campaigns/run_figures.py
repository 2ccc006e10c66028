"""The metrics of one run, from its condensed records: sums over groups of pairs, and shares of them.

What each metric means: `metrics`. What is not known (a ratio of nothing) has no row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from earshot.pipeline.campaigns.run_pairs import Flags, Floats, Numbers, RunPairs, pairs_of
from earshot.pipeline.lake.tables import arrow_schema
from earshot.records import Kind
from earshot.records.details import read_airtime

AREA_M = 250.0
"The side of the squares of `by = 'area'`."
SHORTEST_WINDOW_S = 5.0
"A node that leaves ends its airtime window early; shorter ones do not count as the busiest."
LATENCIES = {"latency_p50_s": 0.50, "latency_p95_s": 0.95, "latency_p99_s": 0.99}
CEILING = (
    "ceiling",
    "ceiling_at_once",
    "delivery_of_reachable",
    "missed_impossible",
    "missed_needed_carrying",
    "missed_lost",
)
"Metrics that need the table `reachable`; a run without it has none of them."
OUTCOMES = ("expected", "delivered", "lost", "delivery_ratio", "precision", "hops", *LATENCIES, *CEILING)
"Metrics of what subscribers receive: also by event type, node, minute of publication and area."
TRAFFIC = (
    "events",
    "data_bytes",
    "control_bytes",
    "cost",
    "control_cost",
    "bytes_per_delivery",
    "duplicates",
    "overhead",
    "airtime_mean",
    "airtime_busiest",
)
"Metrics of what the network carries: only of the whole run."
RECEIVERS = ("age_of_information_s", "inter_reception_s", "inter_reception_p95_s", "fairness")
"Metrics of receivers: only of the whole run."
METRICS_BY = {
    "all": (*OUTCOMES, *TRAFFIC, *RECEIVERS),
    "type": OUTCOMES,
    "node": OUTCOMES,
    "minute": OUTCOMES,
    "area": OUTCOMES,
    "cause": ("lost",),
    "packet": ("sends", "bytes"),
    "reason": ("drops",),
}
Row = tuple[str, str, str, float]
"metric, by, key, value"


def figures_table(run: str, rows: Sequence[Row]) -> pa.Table:
    """The rows of `metrics` of one run."""
    columns = list(zip(*rows, strict=True)) or [()] * 4
    named = dict(zip(("metric", "by", "key", "value"), columns, strict=True))
    table = {"run": [run] * len(rows), **named}
    schema = arrow_schema("metrics", with_partitions=True)
    return pa.table([pa.array(table[name], schema.field(name).type) for name in schema.names], schema=schema)


def figures_of(records: pa.Table, area_m: float = AREA_M) -> Iterator[Row]:
    """metric, by, key and value, for the condensed records of one run."""
    if not records.num_rows:
        return
    pairs = pairs_of(records)
    for by, groups in _groups(pairs, area_m).items():
        for key, figures in _outcomes(pairs, groups).items():
            yield from ((name, by, key, value) for name, value in figures.items() if name in METRICS_BY[by])
    yield from (
        ("drops", "reason", key, value) for key, value in _sums(records, Kind.DROP, "detail", "records").items()
    )
    for name, column in (("sends", "records"), ("bytes", "bytes")):
        yield from ((name, "packet", key, value) for key, value in _sums(records, Kind.SEND, "packet", column).items())
    for name, value in {**_traffic(pairs, records), **receiver_figures(pairs)}.items():
        if value is not None:
            yield name, "all", "", value


def area_of(x_m: float, y_m: float, cell_m: float) -> str:
    """The square a place lies in, by its south-west corner, as in `2000,-1000`; "" where the place is not known."""
    if math.isnan(x_m) or math.isnan(y_m):
        return ""
    return ",".join(f"{math.floor(part / cell_m) * cell_m:.0f}" for part in (x_m, y_m))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Which group each pair counts in."""

    names: list[str]
    number: Numbers
    "Of each pair; -1 where it counts in none."

    @classmethod
    def of(cls, keys: Sequence[str | None], pairs: Numbers) -> _Groups:
        """By a key for each of some things, and which of them each pair is about."""
        names = sorted({key for key in keys if key is not None})
        numbers = {name: i for i, name in enumerate(names)}
        return cls(names, np.array([-1 if key is None else numbers[key] for key in keys], dtype=np.int64)[pairs])

    def counts(self, flags: Flags) -> Floats:
        """How many pairs of each group have the flag."""
        return np.bincount(self.number[flags & (self.number >= 0)], minlength=len(self.names)).astype(np.float64)


def _groups(pairs: RunPairs, area_m: float) -> dict[str, _Groups]:
    """The ways to group pairs."""
    places = zip(pairs.x_m.tolist(), pairs.y_m.tolist(), strict=True)
    takes_part = pairs.wanted | pairs.got | (pairs.receptions > 0)
    partners = {*pairs.node[takes_part].tolist()}
    by_node = _Groups.of([name if i in partners else None for i, name in enumerate(pairs.nodes)], pairs.node)
    causes = pairs.cause.tolist()
    return {
        "all": _Groups([""], np.zeros(len(pairs.event), dtype=np.int64)),
        "type": _Groups.of(pairs.type, pairs.event),
        "minute": _Groups.of(pairs.minute, pairs.event),
        "area": _Groups.of([area_of(x, y, area_m) or None for x, y in places], pairs.event),
        "node": _Groups(by_node.names, np.where(takes_part, by_node.number, -1)),
        "cause": _Groups.of(causes, np.arange(len(causes))),
    }


def _outcomes(pairs: RunPairs, groups: _Groups) -> dict[str, dict[str, float]]:
    """`OUTCOMES` of each group."""
    counts, number, size = groups.counts, groups.number, len(groups.names)
    met, missed = pairs.met, pairs.wanted & ~pairs.got
    judged = pairs.wanted & np.array([one is not None for one in pairs.reach.tolist()], dtype=bool)
    reachable, at_once, carried = judged & (pairs.reach != "no"), pairs.reach == "at once", pairs.reach == "by carrying"
    sums = {
        "expected": counts(pairs.wanted),
        "delivered": counts(pairs.got),
        "lost": counts(missed),
        "met": counts(met),
        "judged": counts(judged),
        "reachable": counts(reachable),
    }
    has_hops = ~np.isnan(pairs.hops)
    counted, late = has_hops & (number >= 0), met & (number >= 0)
    hops = np.bincount(number[counted], weights=pairs.hops[counted], minlength=size)
    latencies = _percentiles(number[late], pairs.latency_s[late], size)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            **{name: sums[name] for name in ("expected", "delivered", "lost")},
            "delivery_ratio": sums["met"] / sums["expected"],
            "precision": sums["met"] / sums["delivered"],
            "hops": hops / counts(has_hops),
            **dict(zip(LATENCIES, latencies, strict=True)),
            "ceiling": sums["reachable"] / sums["judged"],
            "ceiling_at_once": counts(judged & at_once) / sums["judged"],
            "delivery_of_reachable": counts(reachable & met) / sums["reachable"],
            "missed_impossible": counts(judged & ~reachable & missed) / sums["judged"],
            "missed_needed_carrying": counts(judged & carried & missed) / sums["judged"],
            "missed_lost": counts(judged & at_once & missed) / sums["judged"],
        }
    return {
        key: {name: float(column[at]) for name, column in values.items() if not math.isnan(column[at])}
        for at, key in enumerate(groups.names)
    }


def _percentiles(group: Numbers, values: Floats, size: int) -> list[Floats]:
    """The percentiles `LATENCIES` of each group's values, interpolated; not a number where a group has none."""
    order = np.lexsort((values, group))
    ordered = np.append(values[order], math.nan)
    first = np.searchsorted(group[order], np.arange(size + 1))
    count = np.diff(first)
    found = []
    for share in LATENCIES.values():
        place = np.where(count > 0, (count - 1) * share, 0.0)
        low, high = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
        base = np.where(count > 0, first[:-1], len(values))
        low_value, high_value = ordered[base + low], ordered[base + high]
        between = (high - place) * low_value + (place - low) * high_value
        found.append(np.where(low == high, low_value, between))
    return found


def _sums(records: pa.Table, kind: str, key: str, value: str) -> dict[str, float]:
    some = records.filter(pc.equal(records.column("kind"), kind)).group_by(key).aggregate([(value, "sum")])
    rows = zip(some.column(key).to_pylist(), some.column(f"{value}_sum").to_pylist(), strict=True)
    return {name: float(amount) for name, amount in sorted(rows)}


def _traffic(pairs: RunPairs, records: pa.Table) -> Mapping[str, float | None]:
    """`TRAFFIC`: how much was sent, with and without an event in it, how often heard, how busy the channel was."""
    sends = records.filter(pc.equal(records.column("kind"), Kind.SEND))
    carries = pc.not_equal(sends.column("event"), "")
    data, control = (
        tuple(pc.sum(some.column(name)).as_py() or 0 for name in ("records", "bytes"))
        for some in (sends.filter(carries), sends.filter(pc.invert(carries)))
    )
    windows = records.filter(pc.equal(records.column("kind"), Kind.AIRTIME)).sort_by(
        [("time", "ascending"), ("node", "ascending")]
    )
    details = map(read_airtime, windows.column("detail").to_pylist())
    busy = [(one, count) for one, count in zip(details, windows.column("records").to_pylist(), strict=True) if one]
    span_s = math.fsum(one.span_s * count for one, count in busy)
    busy_s = math.fsum(one.busy_s * count for one, count in busy)
    events = int(pairs.publishes.sum())
    receptions = int(pairs.receptions.sum())
    repeats = int(np.maximum(pairs.receptions - 1, 0).sum())
    return {
        "events": float(events),
        "data_bytes": float(data[1]),
        "control_bytes": float(control[1]),
        "cost": _share(data[0], events),
        "control_cost": _share(control[0], events),
        "bytes_per_delivery": _share(data[1] + control[1], int(pairs.got.sum())),
        "duplicates": _share(repeats, events),
        "overhead": _share(int(pairs.receptions[~pairs.got].sum()), receptions),
        "airtime_mean": _share(busy_s, span_s),
        "airtime_busiest": max(
            (one.busy_s / one.span_s for one, _ in busy if one.span_s >= SHORTEST_WINDOW_S), default=None
        ),
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def receiver_figures(pairs: RunPairs) -> dict[str, float]:
    """`RECEIVERS`: how fresh what they know is, how steadily they hear, and how fairly they are served. A stream is
    what one receiver gets of one publisher and event type, of the deliveries that were expected."""
    found = {}
    gaps = list(delivery_gaps(pairs))
    if gaps:
        lengths = sorted(gap_s for gap_s, _ in gaps)
        whole_s = math.fsum(lengths)
        found["inter_reception_s"] = whole_s / len(lengths)
        found["inter_reception_p95_s"] = lengths[math.ceil(0.95 * len(lengths)) - 1]
        if whole_s > 0.0:
            found["age_of_information_s"] = math.fsum(aged for _, aged in gaps) / whole_s
    if (index := fairness(pairs)) is not None:
        found["fairness"] = index
    return found


def delivery_gaps(pairs: RunPairs) -> Iterator[tuple[float, float]]:
    """For each delivery that another one of its stream follows: the time until then, and the age of the newest event
    summed over that time."""
    streams: dict[tuple[str, str, int], list[tuple[float, float, str]]] = {}
    for at in np.flatnonzero(pairs.met).tolist():
        event = int(pairs.event[at])
        stream = pairs.source[event], pairs.type[event] or "", int(pairs.node[at])
        moment = float(pairs.delivered_at[at]), float(pairs.published_at[event]), pairs.events[event]
        streams.setdefault(stream, []).append(moment)
    for stream in sorted(streams):
        newest = -math.inf
        for (delivered_at, published_at, _), (until, *_) in pairwise(sorted(streams[stream])):
            newest = max(newest, published_at)
            # The age grows by a second a second: over a gap its sum is the area of a trapezium.
            gap_s = until - delivered_at
            yield gap_s, gap_s * ((delivered_at + until) / 2.0 - newest)


def fairness(pairs: RunPairs) -> float | None:
    """Jain's index of the delivery ratios of the nodes that were to receive anything."""
    size = len(pairs.nodes)
    wanted, met = (np.bincount(pairs.node[flags], minlength=size) for flags in (pairs.wanted, pairs.met))
    shares = (met[wanted > 0] / wanted[wanted > 0]).tolist()
    squares = math.fsum(share**2 for share in shares)
    return math.fsum(shares) ** 2 / (len(shares) * squares) if squares else None
