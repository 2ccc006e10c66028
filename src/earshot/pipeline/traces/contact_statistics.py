"""Statistics of contacts: how many, how long, how often, between which nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from earshot.pipeline.spark.tasks import in_one_task
from earshot.pipeline.traces.contacts import contacts_within
from earshot.pipeline.traces.motion import rows_at_steps
from earshot.traces.lake_tables import longest_gap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake


SHARES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a quantity: its mean, its percentiles (of `SHARES`) and its maximum."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, mean: float, percentiles: Sequence[float], most: float) -> Spread:
        p50, p90, p95, p99 = percentiles
        return cls(mean, p50, p90, p95, p99, most)


@dataclass(frozen=True, slots=True)
class ContactStatistics:
    """Statistics of a trace's contacts at one range."""

    trace: str
    range_m: float
    interval_s: float
    step_s: float | None
    contacts: int
    pairs: int
    nodes: int
    nodes_met: int
    mean_degree: float
    "Neighbours a node has at once, over all nodes and the whole trace."
    contact_s: Spread | None
    inter_contact_s: Spread | None
    "From the end of a pair's contact to the start of its next."
    peers: Spread | None
    "How many other nodes a node meets, over nodes that meet any."

    def as_json(self) -> dict[str, Any]:
        """The statistics as plain values."""
        return asdict(self)


def find_contacts(
    lake: Lake, trace: str, range_m: float, step_s: float | None = None, max_gap_s: float | None = None
) -> ContactStatistics:
    """Write a trace's contacts at a range into the lake and return their statistics.

    Without a step, positions are compared at the trace's own moments where all nodes share them, else
    they are interpolated once an interval (for a trace of waypoints: once a second).
    """
    (about,) = lake.arrow.rows("traces", {}, trace=trace)
    interval_s = float(about["interval_s"] or 1.0)
    waypoints = about["motion"] == "waypoints"
    if step_s is None and not about["common_times"]:
        step_s = 1.0 if waypoints else interval_s
    if max_gap_s is None:
        max_gap_s = longest_gap(about["motion"], about["interval_s"])
    positions = lake.read("positions", trace=trace).drop("trace")
    rows = about["rows"]
    if step_s is not None:
        rows = rows_at_steps(rows, about["nodes"], about["end"] - about["start"], step_s, max_gap_s)
    found = positions.transform(
        contacts_within(
            range_m, interval_s=interval_s, step_s=step_s, max_gap_s=max_gap_s, rows=rows, nodes=about["nodes"]
        )
    )
    lake.write(found, "contacts", trace=trace, range_m=range_m)
    return _statistics(lake, about, range_m, interval_s, step_s)


def _statistics(lake: Lake, about: Any, range_m: float, interval_s: float, step_s: float | None) -> ContactStatistics:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    trace = about["trace"]
    contacts = in_one_task(
        lake.read("contacts", trace=trace, range_m=range_m),
        lake.arrow.count_rows("contacts", trace=trace, range_m=range_m),
    )
    positions = in_one_task(lake.read("positions", trace=trace), about["rows"])
    before = F.lag("end").over(Window.partitionBy("a", "b").orderBy("start"))
    lengths = contacts.select(
        "a",
        "b",
        (F.col("end") - F.col("start")).alias("contact_s"),
        (F.col("start") - before).alias("inter_contact_s"),
    )
    whole = lengths.agg(
        F.count("*").alias("contacts"),
        F.count_if(F.col("inter_contact_s").isNull()).alias("pairs"),
        # Each sample counts as one step: a contact of one meeting lasted one step.
        F.sum(F.col("contact_s") + F.lit(step_s or interval_s)).alias("together_s"),
        *_spread_columns("contact_s"),
        *_spread_columns("inter_contact_s"),
    )
    ends = lengths.select(
        F.explode(F.array(F.struct("a", "b"), F.struct(F.col("b").alias("a"), F.col("a").alias("b")))).alias("end")
    ).select("end.*")
    peers = ends.groupBy("a").agg(F.count_distinct("b").cast("double").alias("peers"))
    met = peers.agg(F.count("*").alias("nodes_met"), *_spread_columns("peers"))
    present = _presence(positions, step_s or interval_s)
    seen = _in_one_row(whole, met, present)
    return ContactStatistics(
        trace=trace,
        range_m=range_m,
        interval_s=interval_s,
        step_s=step_s,
        contacts=seen["contacts"],
        pairs=seen["pairs"],
        nodes=about["nodes"],
        nodes_met=seen["nodes_met"],
        mean_degree=2.0 * seen.get("together_s", 0.0) / (seen.get("presence_s") or step_s or interval_s),
        contact_s=_spread(seen, "contact_s"),
        inter_contact_s=_spread(seen, "inter_contact_s"),
        peers=_spread(seen, "peers"),
    )


def _presence(positions: DataFrame, step_s: float) -> DataFrame:
    """One row: the sum over all nodes of the time from first to last sample, as `presence_s`."""
    from pyspark.sql import functions as F

    presences = positions.groupBy("node").agg((F.max("time") - F.min("time") + F.lit(step_s)).alias("present_s"))
    return presences.agg(F.sum("present_s").alias("presence_s"))


def _in_one_row(first: DataFrame, *others: DataFrame) -> dict[str, Any]:
    """The values of frames of one row, without those that are null, by one Spark job."""
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    return {name: value for row in first.collect() for name, value in row.asDict().items() if value is not None}


def _spread_columns(name: str) -> list[Any]:
    from pyspark.sql import functions as F

    return [
        F.avg(name).alias(f"{name} mean"),
        F.percentile(name, F.array(*(F.lit(share) for share in SHARES))).alias(f"{name} shares"),
        F.max(name).alias(f"{name} most"),
    ]


def _spread(row: Mapping[str, Any], name: str) -> Spread | None:
    if f"{name} mean" not in row:
        return None
    return Spread.of(row[f"{name} mean"], row[f"{name} shares"], row[f"{name} most"])
