"""Metrics of the user's own, measured in a lake without a JVM: DuckDB runs the queries in place of Spark."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_on_duckdb import Session
from tiny_campaign import SCENARIO, fill

from earshot.errors import UsageError
from earshot.pipeline.campaigns import outside_metrics
from earshot.pipeline.campaigns.campaigns import campaign
from earshot.pipeline.campaigns.flow import lake_rows, measure, measure_all, run_campaign, whole_run_figures
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import METRICS


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("kept") / "lake")


@pytest.fixture
def measured(kept: Path, quick_spark: Session, tmp_path: Path) -> Lake:
    """A lake with one seed of two protocols."""
    shutil.copytree(kept, tmp_path / "lake")
    return Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]


@pytest.fixture
def lake(quick_spark: Session, tmp_path: Path) -> Lake:
    return Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]


def version(lake: Lake) -> int:
    return next(int(table["version"]) for table in lake.arrow.tables() if table["table"] == "metrics")


def figures(lake: Lake) -> dict[tuple[str, ...], float]:
    rows = lake.read("metrics").collect()
    return {tuple(row[name] for name in ("run", "metric", "by", "key")): row["value"] for row in rows}


MINE = """
from earshot.pipeline import Metric

def sent(log):
    return log.where("kind = 'send'").groupBy("run").count().withColumnRenamed("count", "value")

def wanted(pairs):
    return pairs.where("wanted").groupBy("run", "type").count().withColumnRenamed("count", "value")

SENT = Metric("sent", sent, title="packets", unit="p", better=-1, most=1e9)
WANTED = Metric("wanted_by_type", wanted, takes="pairs")
LACKING = Metric("lacking", lambda log: log.select("run", "time"))
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(outside_metrics, "_outside", {})
    monkeypatch.setattr(outside_metrics, "COLUMN", dict(outside_metrics.COLUMN))
    (tmp_path / "mine.py").write_text(MINE)
    return str(tmp_path / "mine.py")


def own_rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    rows = lake.read("metrics").where(f"metric = '{name}'").collect()
    return sorted((row["run"], row["by"], row["key"], row["value"]) for row in rows)


def test_own_metrics_lie_beside_those_that_are_built_in(measured: Lake, mine: str) -> None:
    before = figures(measured)
    runs = sorted(row["run"] for row in measured.read("runs").collect())
    measure(measured, runs, names=[f"{mine}:SENT", f"{mine}:WANTED"])
    after = figures(measured)
    assert {key: value for key, value in after.items() if key in before} == before
    whole = whole_run_figures(measured, runs, ["expected", "sent"])
    counts = {name: measured.read("log", run=name).where("kind = 'send' and time >= 3").count() for name in runs}
    assert {name: some["sent"] for name, some in whole.items()} == counts
    sent = own_rows(measured, "sent")
    abouts = [json.loads(key) for _, by, key, _ in sent if by == "about"]
    assert [(one["title"], one["unit"], one["better"], one["most"]) for one in abouts] == [
        ("packets", "p", -1, 1e9)
    ] * 2
    assert [(run, by) for run, by, *_ in sent] == [(name, by) for name in runs for by in ("about", "all")]
    (total,) = {
        sum(row[3] for row in own_rows(measured, "wanted_by_type") if row[:2] == (name, "all")) for name in runs
    }
    assert total == whole[runs[0]]["expected"] == whole[runs[1]]["expected"]
    before_again = version(measured)
    measure(measured, runs, names=[f"{mine}:SENT"])
    assert version(measured) == before_again, "it is measured"
    rows = lake_rows(measured)
    assert "sent" in {row["metric"] for row in rows.metrics["all"]}
    assert outside_metrics.COLUMN["sent"].title == "packets"


def test_a_metric_whose_code_changed_is_measured_again_of_all_runs(measured: Lake, mine: str) -> None:
    runs = sorted(row["run"] for row in measured.read("runs").collect())
    measure(measured, runs[:1], names=[f"{mine}:SENT"])
    assert {row[0] for row in own_rows(measured, "sent")} == {runs[0]}
    measure_all(measured, [f"{mine}:SENT"])
    first = own_rows(measured, "sent")
    assert {row[0] for row in first} == {*runs}
    Path(mine).write_text(MINE.replace("kind = 'send'", "kind = 'receive'"))
    measure_all(measured, [f"{mine}:SENT"])
    second = own_rows(measured, "sent")
    assert len(second) == len(first)
    assert not {row[2:] for row in first} & {row[2:] for row in second}


def test_a_campaign_measures_its_own_metrics_and_those_of_the_call(lake: Lake, mine: str) -> None:
    wanted = replace(campaign("tiny", [SCENARIO], {"flooding": {}}, [1]), metrics=[f"{mine}:SENT"])
    run_campaign(lake, wanted, own_metrics=[f"{mine}:WANTED", f"{mine}:SENT"])
    assert [len(own_rows(lake, name)) > 0 for name in ("sent", "wanted_by_type")] == [True, True]


def test_a_metric_that_is_wrong_is_named(lake: Lake, mine: str) -> None:
    with pytest.raises(UsageError, match="NOBODY"):
        run_campaign(lake, campaign("tiny", [SCENARIO], {"flooding": {}}, [1]), own_metrics=[f"{mine}:NOBODY"])
    assert lake.arrow.tables() == [], "before anything runs"
    wanted = campaign("tiny", [SCENARIO], {"flooding": {}}, [1])
    with pytest.raises(UsageError, match=r":LACKING: its rows lack value; return a DataFrame with run and value$"):
        run_campaign(lake, wanted, own_metrics=[f"{mine}:LACKING"])


def test_values_that_are_none_are_left_out_and_groups_are_kept(quick_spark: Session, mine: str) -> None:
    log = quick_spark.createDataFrame([("a",), ("a",), ("b",)], "run string")
    rows = quick_spark.createDataFrame(
        [("a", 1, "type", "T"), ("a", None, "all", ""), ("b", math.nan, "all", "")],
        "run string, value double, by string, key string",
    )
    odd = outside_metrics.Metric("odd", lambda _: rows)  # type: ignore[arg-type,return-value]
    asked: list[Any] = []
    of_pairs = outside_metrics.Metric(
        "of_pairs", lambda given: asked.append(given) or rows.select("run", "value"), "pairs"
    )  # type: ignore[arg-type,func-returns-value]
    names = {f"{mine}:SENT": odd, f"{mine}:WANTED": of_pairs}
    found: Any = outside_metrics.measured(names, log, lambda: "pairs")  # type: ignore[arg-type,return-value]
    assert asked == ["pairs"]
    assert found.columns == list(METRICS.columns)
    known = sorted(
        (row["run"], row["metric"], row["by"], row["key"], row["value"])
        for row in found.collect()
        if row["by"] != "about"
    )
    assert known == [("a", "odd", "type", "T", 1.0), ("a", "of_pairs", "all", "", 1.0)]
    notes = sorted((row["run"], row["metric"], row["value"]) for row in found.collect() if row["by"] == "about")
    assert notes == [(run, name, 0.0) for run in "ab" for name in ("odd", "of_pairs")]
    assert outside_metrics.measured({}, log, lambda: rows) is None  # type: ignore[arg-type,return-value]


def test_a_metric_is_a_column_as_it_says_or_by_its_name() -> None:
    def same(rows: Any) -> Any:
        return rows

    assert outside_metrics.Metric("mean_delay_s", same).column == outside_metrics.BoardColumn(
        "mean_delay_s", "mean delay s", "", 0, (0.0, math.inf)
    )
    assert outside_metrics.Metric("a_b", same, "pairs", "x_y", "s", -1, 1.0).column == outside_metrics.BoardColumn(
        "a_b", "x_y", "s", -1, (0.0, 1.0)
    )
