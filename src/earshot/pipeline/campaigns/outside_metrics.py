"""Metrics of the user's own: a function DataFrame -> DataFrame with a name.

A plug-in of the kind `metrics` is a `Metric`. What it measured lies in the table `metrics` beside what is built in;
a row with `by = 'about'` says how the metric is read and which code measured it, so that a changed one is measured
again, and a report written elsewhere shows it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from earshot.pipeline.campaigns.leaderboard import COLUMN, BoardColumn
from earshot.plugins import PluginError, named, plugin_digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ABOUT = "about"
"The `by` of rows that describe a metric."
TAKES = ("log", "pairs")


@dataclass(frozen=True)
class Metric:
    """A metric of the user's own."""

    name: str
    "As tables and JSON have it."
    measure: Callable[[DataFrame], DataFrame]
    "From the records of runs, or from pairs, to rows with the columns run and value, and perhaps by and key."
    takes: str = "log"
    "`log`: the records after the warm-up; `pairs`: one row for each (run, event, node), as docs/extending.md says."
    title: str = ""
    "As people read it; by default the name."
    unit: str = ""
    better: int = 0
    "1 where more is better, -1 where less is, 0 where it depends."
    most: float | None = None
    "The largest value it can have; 1 for a share."

    @property
    def column(self) -> BoardColumn:
        """As the leaderboard has it."""
        most = float("inf") if self.most is None else self.most
        return BoardColumn(self.name, self.title or self.name.replace("_", " "), self.unit, self.better, (0.0, most))


def named_metrics(names: Iterable[str]) -> dict[str, Metric]:
    """The metrics of these names, by the name each was asked for."""
    found = {name: named("metrics", name, {}, _checked) for name in names}
    if found:
        from pyspark import cloudpickle

        for metric in found.values():
            # Functions of the plug-in that run on executors travel with the query.
            cloudpickle.register_pickle_by_value(sys.modules[metric.measure.__module__])  # type: ignore[no-untyped-call]
    return found


def _checked(name: str, value: Any) -> Metric:
    if not isinstance(value, Metric):
        raise PluginError(f"{name} is not a metric: make a Metric of it (from earshot.pipeline import Metric)")
    if value.takes not in TAKES:
        raise PluginError(f"{name}: takes must be one of {', '.join(TAKES)}, got {value.takes!r}")
    if value.name in COLUMN and value.name not in _outside:
        raise PluginError(f"{name}: {value.name} is a metric of Earshot; give yours another name")
    return value


def measured(metrics: Mapping[str, Metric], log: DataFrame, of_pairs: Callable[[], DataFrame]) -> DataFrame | None:
    """The rows of these metrics (run, metric, by, key, value) for the runs of the log; None: there are none."""
    from pyspark.sql import functions as F

    parts: list[DataFrame] = []
    for asked, metric in metrics.items():
        given = of_pairs() if metric.takes == "pairs" else log
        found = metric.measure(given)
        if missing := {"run", "value"} - set(getattr(found, "columns", ())):
            raise PluginError(
                f"{asked}: its rows lack {', '.join(sorted(missing))}; return a DataFrame with run and value"
            )
        by = F.col("by") if "by" in found.columns else F.lit("all")
        key = F.col("key") if "key" in found.columns else F.lit("")
        value = F.col("value").cast("double")
        rows = found.select(
            "run", F.lit(metric.name).alias("metric"), by.alias("by"), key.alias("key"), value.alias("value")
        )
        about = log.select("run").distinct()
        note = F.lit(about_text(asked, metric)).alias("key")
        parts.append(rows.where("value is not null and not isnan(value)"))
        parts.append(
            about.select(
                "run", F.lit(metric.name).alias("metric"), F.lit(ABOUT).alias("by"), note, F.lit(0.0).alias("value")
            )
        )
    if not parts:
        return None
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole


def about_text(asked: str, metric: Metric) -> str:
    """How a metric is read and what code measures it, as a row of `metrics` holds it."""
    about = {
        "title": metric.column.title,
        "unit": metric.unit,
        "better": metric.better,
        "most": metric.most,
        "code": plugin_digest("metrics", asked),
    }
    return json.dumps(about, sort_keys=True)


_outside: dict[str, BoardColumn] = {}


def learn_columns(rows: Sequence[Mapping[str, Any]]) -> None:
    """From rows with `by = 'about'`: the leaderboard shows these metrics too."""
    for row in rows:
        about = json.loads(row["key"])
        metric = Metric(
            row["metric"], lambda rows: rows, "log", about["title"], about["unit"], about["better"], about["most"]
        )
        if metric.name not in COLUMN or metric.name in _outside:
            _outside[metric.name] = COLUMN[metric.name] = metric.column
