"""A trace's profile: what it says about a network, before any protocol runs.

The trace is scanned three times. Once by node: who comes, stays and goes. Once at moments that are spread over
the whole trace: how many nodes, how fast, how many neighbours, which components, where. And once for a few
stretches of up to ten minutes: how long contacts last, and what reaches whom when nodes carry it. The cost is
bounded: a large trace is looked at less often, never at fewer nodes (but for crowds in which millions of pairs
are in range at once).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.traces.contact_statistics import SHARES, Spread
from earshot.pipeline.traces.snapshots import (
    HORIZONS_S,
    FoundRow,
    Stretch,
    lifetimes,
    measured,
    places_at_steps,
    quantiles,
)
from earshot.records.trajectories import Legs
from earshot.traces.lake_tables import TraceAbout, trace_about

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake

RANGES_M = (50.0, 100.0, 150.0, 200.0, 300.0)
MOMENTS = 60
FEWEST_MOMENTS = 12
NODE_MOMENTS = 600_000
"About this number of positions is looked at in all moments together, and in all stretches together."
STRETCHES = 4
STRETCH_ROWS = 1_500_000
"Of one stretch: a task holds them."
LONGEST_STEP_S = 10.0
CELLS = 40
"Of the map of density, on its longer side."
PARTITIONED_BELOW = 0.9
"A network is called partitioned where its largest component has a smaller share of the nodes, on average."

_FOUND = "name string, range_m double, time double, value double, weight double"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class NetworkMoment:
    """The network at one moment, at one range."""

    time: float
    nodes: int
    components: int
    largest_share: float


@dataclass(frozen=True, slots=True)
class RangeProfile:
    """What the trace says about radios of one range."""

    range_m: float
    mean_neighbours: float
    median_neighbours: float
    isolated_share: float
    "The share of nodes that have no neighbour at all."
    components: float
    "Connected components at a moment, on average."
    largest_share: float
    "The share of nodes in the largest one, on average."
    contact_s: Spread | None
    "How long two nodes stay in range. Contacts that outlast a stretch count as such (Kaplan and Meier)."
    inter_contact_s: Spread | None
    "From the end of a pair's contact to its next one, where both were seen."
    reachable_at_once: float
    "The share of pairs of nodes that a path of any number of hops connects."
    reachable_within: dict[str, float]
    "The share of pairs where the one gets what the other has by carrying, by the seconds it may take; as texts: `10`."
    over_time: tuple[NetworkMoment, ...]

    @property
    def partitioned(self) -> bool:
        """Whether much of the network is out of reach of the rest."""
        return self.largest_share < PARTITIONED_BELOW


@dataclass(frozen=True, slots=True)
class DensityCell:
    """A square of the map: its south-west corner, and how many nodes are in it on average."""

    x_m: float
    y_m: float
    nodes: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What a trace says about a network."""

    trace: str
    content: str
    rows: int
    nodes: int
    start: float
    end: float
    interval_s: float | None
    "Between two rows of a node, the median."
    motion: str
    box: tuple[float, float, float, float]
    "Least x, least y, most x, most y in metres."
    mean_present: float
    most_present: int
    present_over_time: tuple[tuple[float, int], ...]
    arrivals_per_min: float
    departures_per_min: float
    stay_s: Spread
    "From a node's arrival until it leaves."
    speed_m_s: Spread
    "Over nodes and time; nodes that stand included."
    step_s: float
    "How far apart the moments of a stretch are at which contacts and spreading are looked at."
    cell_m: float
    density: tuple[DensityCell, ...]
    ranges: tuple[RangeProfile, ...]

    @property
    def span_s(self) -> float:
        return self.end - self.start

    @property
    def width_m(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def height_m(self) -> float:
        return self.box[3] - self.box[1]

    def at(self, range_m: float) -> RangeProfile:
        """The figures at that range; of a range that was not looked at, those of the nearest."""
        return min(self.ranges, key=lambda one: abs(one.range_m - range_m))

    def as_json(self) -> dict[str, Any]:
        """The profile as plain values."""
        return asdict(self)


def profile_of_json(text: str) -> Profile:
    """What `as_json` wrote."""
    import msgspec

    return msgspec.json.decode(text, type=Profile)


def profile_trace(
    lake: Lake, trace: str, ranges_m: Sequence[float] = RANGES_M, say: Say | None = None, again: bool = False
) -> Profile:
    """The profile of a trace in the lake, which keeps it: it is not computed again while the trace is the same."""
    about = trace_about(lake.folder.root, trace)
    wanted = tuple(sorted(set(ranges_m)))
    if not again and lake.has("profiles", trace=trace):
        (row,) = lake.arrow.read("profiles", trace=trace).to_pylist()
        kept = profile_of_json(row["described"])
        if row["content"] == about.content and {*wanted} <= {one.range_m for one in kept.ranges}:
            return kept
    with named_errors():
        found = _profiled(lake.read("positions", trace=trace), trace, about, wanted, say or (lambda _: None))
    described = json.dumps(found.as_json())
    lake.arrow.write_rows("profiles", [{"trace": trace, "content": about.content, "described": described}])
    return found


def kept_profiles(lake: Lake, traces: Sequence[str]) -> list[Profile]:
    """The profiles that the lake keeps of those traces."""
    rows = lake.arrow.read("profiles").to_pylist() if lake.has("profiles") else []
    return [profile_of_json(row["described"]) for row in rows if row["trace"] in traces]


def _profiled(positions: DataFrame, trace: str, about: TraceAbout, ranges_m: Sequence[float], say: Say) -> Profile:
    max_gap_s = about.longest_gap_s
    say("who comes and goes")
    stays = _stays(positions, about, max_gap_s)
    span_s = max(about.end - about.start, 1e-9)
    mean_present = max(1.0, stays["present_s"] / span_s)
    box = about.box or tuple(stays[name] for name in ("west", "south", "east", "north"))
    west, south, east, north = box
    cell_m = _round_up(max(east - west, north - south, 1.0) / CELLS)
    say("neighbours and components")
    moments = int(min(MOMENTS, max(FEWEST_MOMENTS, NODE_MOMENTS / mean_present)))
    spacing_s = span_s / moments
    offset = about.start + spacing_s / 2.0  # in the middle of its part: nobody has left yet at the last one
    one_each = [Stretch(offset + k * spacing_s, 1, spacing_s) for k in range(moments)]
    at_moments = _found(positions, one_each, ranges_m, max_gap_s, cell=(west, south, cell_m))
    say("contacts and what is carried")
    stretches = stretches_of(about, mean_present)
    spread = _found(positions, stretches, ranges_m, max_gap_s)
    return Profile(
        trace=trace,
        content=about.content,
        rows=stays["rows"],
        nodes=stays["nodes"],
        start=about.start,
        end=about.end,
        interval_s=about.interval_s,
        motion=about.motion,
        box=(west, south, east, north),
        mean_present=mean_present,
        most_present=int(max((row.value for row in at_moments if row.name == "present"), default=0)),
        present_over_time=tuple(sorted((row.time, int(row.value)) for row in at_moments if row.name == "present")),
        arrivals_per_min=60.0 * stays["arrivals"] / span_s,
        departures_per_min=60.0 * stays["departures"] / span_s,
        stay_s=Spread.of(stays["mean"], stays["shares"], stays["most"]),
        speed_m_s=_spread([row for row in at_moments if row.name == "speed"]) or Spread(0, 0, 0, 0, 0, 0),
        step_s=stretches[0].step_s,
        cell_m=cell_m,
        density=_density(at_moments, moments, west, south, cell_m),
        ranges=tuple(_range_profile(range_m, at_moments, spread) for range_m in ranges_m),
    )


# -- Spark


def _stays(positions: DataFrame, about: TraceAbout, max_gap_s: float) -> dict[str, Any]:
    """Who comes, stays and goes. A node that is there at the trace's start has not arrived, one that is there at its
    end has not left."""
    from pyspark.sql import functions as F

    gap_s = F.col("until") - F.col("time")
    gap = gap_s > F.lit(max_gap_s)
    by_node = positions.groupBy("node").agg(
        F.min("time").alias("first"),
        F.max("time").alias("last"),
        F.count("*").alias("rows"),
        F.count_if(gap).alias("gaps"),
        F.sum(F.when(gap, gap_s).otherwise(0.0)).alias("away_s"),
        F.min("x_m").alias("west"),
        F.min("y_m").alias("south"),
        F.max("x_m").alias("east"),
        F.max("y_m").alias("north"),
    )
    near_s = about.interval_s or 0.0
    stay_s = (F.col("last") - F.col("first") - F.col("away_s")) / (F.col("gaps") + 1)
    row = by_node.agg(
        F.count("*").alias("nodes"),
        F.sum("rows").alias("rows"),
        F.sum(F.col("last") - F.col("first") - F.col("away_s")).alias("present_s"),
        (F.count_if(F.col("first") > about.start + near_s) + F.sum("gaps")).alias("arrivals"),
        (F.count_if(F.col("last") < about.end - near_s) + F.sum("gaps")).alias("departures"),
        F.avg(stay_s).alias("mean"),
        F.percentile_approx(stay_s, list(SHARES), 10_000).alias("shares"),
        F.max(stay_s).alias("most"),
        F.min("west").alias("west"),
        F.min("south").alias("south"),
        F.max("east").alias("east"),
        F.max("north").alias("north"),
    ).first()
    assert row is not None
    return dict(row.asDict())


def stretches_of(about: TraceAbout, mean_present: float) -> list[Stretch]:
    """Up to four stretches, evenly spread over the trace: of ten minutes, or of half the trace where it is shorter."""
    span_s = about.end - about.start
    longest_s = HORIZONS_S[-1]
    lasts_s = longest_s if span_s >= longest_s else max(min(span_s, 60.0), span_s / 2.0)
    count = STRETCHES if span_s > lasts_s else 1
    step_s = 1.0 if about.motion == "waypoints" or not about.interval_s else max(1.0, about.interval_s)
    step_s = max(step_s, math.ceil(mean_present * lasts_s / STRETCH_ROWS))
    samples = mean_present * lasts_s / step_s * count
    every = max(1, min(math.ceil(samples / NODE_MOMENTS), int(LONGEST_STEP_S / step_s) or 1))
    between_s = (span_s - lasts_s) / max(1, count - 1)
    steps = int(lasts_s / step_s + 1e-9) + 1
    return [Stretch(about.start + k * between_s, steps, step_s, every, spreads=True) for k in range(count)]


def _found(
    positions: DataFrame,
    stretches: Sequence[Stretch],
    ranges_m: Sequence[float],
    max_gap_s: float,
    cell: Corner | None = None,
) -> list[FoundRow]:
    """What is found in each of the stretches, which are as long as each other and as far apart."""
    from pyspark.sql import functions as F

    first, one = stretches[0], stretches[0]
    lasts_s = (one.steps - 1) * one.step_s
    between_s = stretches[1].start - one.start if len(stretches) > 1 else math.inf
    # The stretches that a leg overlaps, by their numbers.
    last = F.floor((F.col("until") - first.start) / between_s + 1e-9)
    begins = F.ceil((F.col("time") - first.start - lasts_s) / between_s - 1e-9)
    low = F.greatest(begins.cast("long"), F.lit(0))
    high = F.least(F.greatest(last, begins).cast("long"), F.lit(len(stretches) - 1))
    high = F.when(F.col("until") < first.start, F.lit(-1)).otherwise(high)
    legs = positions.where(F.col("until").isNotNull()).withColumn("low", low).withColumn("high", high)
    legs = legs.where("low <= high").select(
        F.explode(F.sequence("low", "high")).alias("key"),
        F.xxhash64("node").alias("node"),
        *("time", "until", "x_m", "y_m", "x_m_s", "y_m_s"),
    )
    work = partial(_measure, list(stretches), list(ranges_m), max_gap_s, cell)
    found = legs.groupBy("key").applyInArrow(lambda table: work(table), _FOUND).toArrow()
    columns = [found.column(name).to_pylist() for name in FoundRow._fields]
    return [FoundRow(*row) for row in zip(*columns, strict=True)]


Corner = tuple[float, float, float]
"West, south and the side of a square."


def _measure(
    stretches: list[Stretch], ranges_m: list[float], max_gap_s: float, cell: Corner | None, table: pa.Table
) -> pa.Table:
    """In a task: what is found in one stretch."""
    import pyarrow as pa

    stretch = stretches[table.column("key")[0].as_py()]
    names = ("node", "time", "until", "x_m", "y_m", "x_m_s", "y_m_s")
    legs = Legs(*(table.column(name).to_numpy() for name in names))
    rows = list(measured(legs, stretch, ranges_m, max_gap_s))
    if cell is not None:
        rows += _cells(legs, stretch, max_gap_s, cell)
    columns = zip(*rows, strict=True) if rows else [[]] * len(FoundRow._fields)
    return pa.table(
        {
            name: pa.array(column, pa.string() if name == "name" else pa.float64())
            for name, column in zip(FoundRow._fields, columns, strict=True)
        }
    )


def _cells(legs: Legs, stretch: Stretch, max_gap_s: float, cell: Corner) -> Iterator[FoundRow]:
    """How many nodes are in each square of the map, by number: `value` is column + row * 1000."""
    west, south, cell_m = cell
    rows, _ = places_at_steps(legs, stretch, max_gap_s)
    passed = stretch.start - legs.start[rows]
    x, y = legs.x_m[rows] + legs.x_m_s[rows] * passed, legs.y_m[rows] + legs.y_m_s[rows] * passed
    square = np.floor((x - west) / cell_m) + 1000.0 * np.floor((y - south) / cell_m)
    for value, count in zip(*np.unique(square, return_counts=True), strict=True):
        yield FoundRow("cell", 0.0, stretch.start, float(value), float(count))


# -- figures


def _range_profile(range_m: float, at_moments: Sequence[FoundRow], spread: Sequence[FoundRow]) -> RangeProfile:
    moments = [row for row in at_moments if row.range_m == range_m]
    stretches = [row for row in spread if row.range_m == range_m]
    neighbours = [row for row in moments if row.name == "neighbours"]
    nodes = sum(row.weight for row in neighbours) or 1.0
    present = {row.time: int(row.value) for row in at_moments if row.name == "present"}
    components = {row.time: int(row.value) for row in moments if row.name == "components"}
    largest = {row.time: row.value for row in moments if row.name == "largest"}
    at_once = _mean([row for row in moments if row.name == "at once"]) or 0.0
    spread_of = _spread(neighbours)
    return RangeProfile(
        range_m=range_m,
        mean_neighbours=sum(row.value * row.weight for row in neighbours) / nodes,
        median_neighbours=spread_of.p50 if spread_of else 0.0,
        isolated_share=sum(row.weight for row in neighbours if row.value == 0) / nodes,
        components=sum(components.values()) / max(1, len(components)),
        largest_share=sum(largest.values()) / max(1, len(largest)),
        contact_s=_lengths([row for row in stretches if row.name == "contact"]),
        inter_contact_s=_spread([row for row in stretches if row.name == "between"]),
        reachable_at_once=at_once,
        reachable_within=_reachable_within(at_once, stretches),
        over_time=tuple(
            NetworkMoment(time, present[time], components[time], largest[time]) for time in sorted(components)
        ),
    )


def _reachable_within(at_once: float, stretches: Sequence[FoundRow]) -> dict[str, float]:
    """The share of pairs that carrying reaches, by horizon. Moments are spread over the trace and stretches are not, so
    the stretches only say which share of the pairs that are still out of reach each horizon adds."""
    found, unreached = {}, 1.0 - at_once
    for horizon_s in HORIZONS_S:
        rows = [row for row in stretches if row.name == f"carried {horizon_s:g}"]
        if rows:
            unreached *= 1.0 - (_mean(rows) or 0.0)
            found[f"{horizon_s:g}"] = 1.0 - unreached
    return found


def _mean(rows: Sequence[FoundRow]) -> float | None:
    total = sum(row.weight for row in rows)
    return sum(row.value * row.weight for row in rows) / total if total else None


def _spread(rows: Sequence[FoundRow]) -> Spread | None:
    if not rows:
        return None
    values, counts = (np.array(column) for column in zip(*((row.value, row.weight) for row in rows), strict=True))
    mean = float((values * counts).sum() / counts.sum())
    return Spread.of(mean, quantiles(values, counts, SHARES), float(values.max()))


def _lengths(rows: Sequence[FoundRow]) -> Spread | None:
    if not rows:
        return None
    lengths, seen = (np.array(column) for column in zip(*((row.value, row.weight) for row in rows), strict=True))
    mean, shares = lifetimes(lengths, seen > 0, SHARES)
    return Spread.of(mean, shares, float(lengths.max()))


def _density(
    rows: Sequence[FoundRow], moments: int, west: float, south: float, cell_m: float
) -> tuple[DensityCell, ...]:
    counts: dict[float, float] = {}
    for row in rows:
        if row.name == "cell":
            counts[row.value] = counts.get(row.value, 0.0) + row.weight
    return tuple(
        DensityCell(west + (square % 1000) * cell_m, south + (square // 1000) * cell_m, count / moments)
        for square, count in sorted(counts.items())
    )


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, ..."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 2, 5, 10) if unit * step >= value * (1 - 1e-9))
