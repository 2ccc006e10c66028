"""The leaderboard: each protocol's metrics, averaged over seeds, with confidence intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class BoardColumn:
    """A metric as people read it."""

    metric: str
    title: str
    unit: str
    better: int
    "1 where more is better, -1 where less is, 0 where it depends."


COLUMNS = (
    BoardColumn("delivery_ratio", "delivery ratio", "", 1),
    BoardColumn("precision", "precision", "", 1),
    BoardColumn("cost", "transmissions an event", "", -1),
    BoardColumn("latency_p50_s", "latency p50", "s", -1),
    BoardColumn("latency_p95_s", "latency p95", "s", -1),
    BoardColumn("latency_p99_s", "latency p99", "s", -1),
    BoardColumn("bytes_per_delivery", "bytes a delivery", "B", -1),
    BoardColumn("data_bytes", "data bytes", "B", -1),
    BoardColumn("control_bytes", "control bytes", "B", -1),
    BoardColumn("overhead", "receptions without delivery", "", -1),
    BoardColumn("duplicates", "duplicates an event", "", -1),
    BoardColumn("hops", "hops", "", 0),
)


@dataclass(frozen=True)
class Figure:
    """A mean over seeds with its 95 % confidence interval; `half` is NaN for a single seed."""

    mean: float
    half: float
    seeds: int


@dataclass(frozen=True)
class Entry:
    """One line of the leaderboard."""

    scenario: str
    protocol: str
    figures: dict[str, Figure]


def t_interval(mean: float, deviation: float, count: int) -> Figure:
    """Student's interval from a sample's mean and standard deviation."""
    from scipy.stats import t

    if count < 2 or deviation is None or math.isnan(deviation):
        return Figure(mean, math.nan, count)
    return Figure(mean, float(t.ppf(0.975, count - 1)) * deviation / math.sqrt(count), count)


def averaged(runs: DataFrame, metrics: DataFrame, by: str = "all") -> DataFrame:
    """Mean, deviation and count over seeds of each metric, by scenario, protocol variant and key."""
    return (
        metrics.where(F.col("by") == by)
        .join(F.broadcast(runs.select("run", "scenario", "variant")), "run")
        .groupBy("scenario", "variant", "metric", "key")
        .agg(F.avg("value").alias("mean"), F.stddev_samp("value").alias("deviation"), F.count("*").alias("seeds"))
    )


def leaderboard(runs: DataFrame, metrics: DataFrame) -> list[Entry]:
    """Best first within each scenario: by delivery ratio, then by bytes a delivery."""
    figures: dict[tuple[str, str], dict[str, Figure]] = defaultdict(dict)
    for row in averaged(runs, metrics).collect():
        figures[row["scenario"], row["variant"]][row["metric"]] = t_interval(
            row["mean"], row["deviation"], row["seeds"]
        )
    return ranked(Entry(scenario, variant, found) for (scenario, variant), found in figures.items())


def ranked(entries: Iterable[Entry]) -> list[Entry]:
    """Scenarios in order of name; in each, what delivers most for the fewest bytes first."""

    def merit(entry: Entry) -> tuple[Any, ...]:
        ratio = entry.figures.get("delivery_ratio")
        price = entry.figures.get("bytes_per_delivery")
        return (
            entry.scenario,
            -round(ratio.mean, 3) if ratio else 1.0,
            price.mean if price else math.inf,
            entry.protocol,
        )

    return sorted(entries, key=merit)


def number(figure: Figure | None) -> str:
    """A figure with its interval, as a table shows it."""
    if figure is None:
        return "-"
    value = _short(figure.mean)
    if math.isnan(figure.half):
        return value
    half = 0.0 if figure.half < 1e-9 * abs(figure.mean) else figure.half
    return f"{value} ± {_short(half)}"


def _short(value: float) -> str:
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.2e}"


def columns_with_figures(entries: Sequence[Entry]) -> list[BoardColumn]:
    """The columns that have a figure in some entry."""
    return [column for column in COLUMNS if any(column.metric in entry.figures for entry in entries)]
