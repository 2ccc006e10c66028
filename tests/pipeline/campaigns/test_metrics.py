"""Metrics of a run small enough to count by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hand_log import airtime, publish, record
from pyspark.sql import DataFrame, SparkSession

from earshot.pipeline.campaigns.metrics import metrics
from earshot.pipeline.campaigns.run_figures import area_of, figures_of
from earshot.pipeline.campaigns.run_pairs import READ, asked_rows, condensed, condensed_log
from earshot.pipeline.lake.tables import EXPECTED, LOG, RUNS, arrow_schema

pytestmark = pytest.mark.spark

LOG_ROWS = [
    publish(1.0, "a", "early", "Siren"),  # in the warm-up: does not count
    record(1.0, "a", "send", event="early", bytes=100, packet="flood"),
    record(1.1, "b", "deliver", event="early", subscription="b/1", hops=1),
    publish(10.0, "a", "e1", "Siren", x_m=260.0, y_m=-1.0),
    record(10.0, "a", "send", event="e1", bytes=100, packet="flood"),
    record(10.1, "b", "receive", event="e1"),
    record(10.1, "b", "deliver", event="e1", subscription="b/1", hops=1),
    record(10.1, "b", "deliver", event="e1", subscription="b/2", hops=1),  # the same pair again
    record(10.1, "b", "send", event="e1", bytes=100, packet="flood"),
    record(10.2, "c", "receive", event="e1"),
    record(10.3, "c", "receive", event="e1"),  # a duplicate, and in vain
    publish(70.0, "a", "e2", "Fire"),
    record(70.0, "a", "send", event="e2", bytes=50, packet="flood"),
    record(70.5, "b", "receive", event="e2"),
    record(70.5, "b", "deliver", event="e2", subscription="b/2", hops=3),  # nobody expected it
    record(71.0, "a", "send", bytes=30, packet="hello"),
    record(72.0, "c", "drop", detail="expired", event="e1"),
    record(73.0, "d", "drop", detail="expired", event="e1"),
    record(73.5, "d", "drop", detail="malformed"),
    airtime(5.0, "a", 5.0, 5.0),  # ends with the warm-up: does not count
    airtime(15.0, "a", 10.0, 1.0),
    airtime(15.0, "b", 10.0, 3.0),
    airtime(15.5, "b", 0.5, 0.5),  # too short to be the busiest
]
EXPECTED_ROWS = [
    {"workload": "w", "event": "early", "node": "b", "subscription": "b/1", "why": "content"},
    {"workload": "w", "event": "e1", "node": "b", "subscription": "b/1", "why": "content"},
    {"workload": "w", "event": "e1", "node": "b", "subscription": "b/2", "why": "content"},
    {"workload": "w", "event": "e1", "node": "d", "subscription": "d/1", "why": "content"},
    {"workload": "w", "event": "unpublished", "node": "d", "subscription": "d/1", "why": "content"},
    {"workload": "another", "event": "e2", "node": "b", "subscription": "b/2", "why": "content"},
]


REACHABLE_DDL = "workload string, range_m double, event string, node string, reach string"
REACHABLE_ROWS = [
    ("w", 100.0, "early", "b", "at once"),
    ("w", 100.0, "e1", "b", "by carrying"),
    ("w", 100.0, "e1", "d", "at once"),
    ("w", 50.0, "e1", "b", "no"),  # at another range than the run's
]


def run_row(run: str, status: str = "done", **values: Any) -> dict[str, Any]:
    row = dict.fromkeys(RUNS.columns)
    row |= {"run": run, "scenario": "hand", "variant": "flooding", "workload": "w", "warm_up_s": 5.0, "range_m": 100.0}
    row["status"] = status
    return {**row, **values}


Found = dict[tuple[str, str, str], float]


def measured_with(spark: SparkSession, reachable: list[Any] | None, **options: Any) -> Found:
    runs = spark.createDataFrame([run_row("r"), run_row("broken", "failed")], RUNS.ddl)
    expected = spark.createDataFrame(EXPECTED_ROWS, EXPECTED.ddl)
    reach = None if reachable is None else spark.createDataFrame(reachable, REACHABLE_DDL)
    log = spark.createDataFrame(LOG_ROWS, LOG.ddl)
    rows = log.transform(metrics(runs, expected, reach, **options)).collect()
    found = {(row["metric"], row["by"], row["key"]): row["value"] for row in rows}
    assert len(found) == len(rows), "one row a figure"
    assert {row["run"] for row in rows} == {"r"}
    return found


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> Found:
    return measured_with(spark, None)


@pytest.fixture(scope="module")
def with_ceiling(spark: SparkSession) -> Found:
    return measured_with(spark, REACHABLE_ROWS)


def test_the_whole_run_is_measured(measured: dict[tuple[str, str, str], float]) -> None:
    whole = {metric: value for (metric, by, _), value in measured.items() if by == "all"}
    assert whole == pytest.approx(
        {
            "expected": 2,  # e1 to b and to d
            "delivered": 2,  # e1 and e2 to b
            "lost": 1,
            "delivery_ratio": 1 / 2,
            "precision": 1 / 2,
            "hops": 2,
            "latency_p50_s": 0.1,
            "latency_p95_s": 0.1,
            "latency_p99_s": 0.1,
            "events": 2,
            "data_bytes": 250,
            "control_bytes": 30,
            "cost": 3 / 2,
            "control_cost": 1 / 2,
            "bytes_per_delivery": 280 / 2,
            "duplicates": 1 / 2,
            "overhead": 2 / 4,
            "airtime_mean": 4.5 / 20.5,
            "airtime_busiest": 0.3,
            "fairness": 1 / 2,  # b gets all, d nothing
        }
    )


def test_groups_are_measured_by_type_node_minute_packet_and_reason(
    measured: dict[tuple[str, str, str], float],
) -> None:
    assert measured["delivery_ratio", "type", "Siren"] == pytest.approx(0.5)
    assert ("delivery_ratio", "type", "Fire") not in measured, "nothing was expected: a ratio of nothing has no row"
    assert measured["precision", "type", "Fire"] == 0
    assert measured["delivery_ratio", "node", "d"] == 0
    assert measured["delivery_ratio", "node", "b"] == 1
    assert measured["delivered", "minute", "0"] == 1
    assert measured["delivered", "minute", "1"] == 1
    assert measured["sends", "packet", "flood"] == 3
    assert measured["bytes", "packet", "hello"] == 30
    assert {key: value for key, value in measured.items() if key[1] == "reason"} == {
        ("drops", "reason", "expired"): 2,
        ("drops", "reason", "malformed"): 1,
    }
    assert measured["delivery_ratio", "area", "250,-250"] == pytest.approx(0.5)
    assert {key for _, by, key in measured if by == "area"} == {"250,-250"}, "e2 has no place"
    assert {key: value for key, value in measured.items() if key[1] == "cause"} == {
        ("lost", "cause", "dropped: expired"): 1
    }


def test_what_is_missed_is_split_by_what_was_reachable(measured: Found, with_ceiling: Found) -> None:
    whole = {metric: value for (metric, by, _), value in with_ceiling.items() if by == "all"}
    without = {metric: value for (metric, by, _), value in measured.items() if by == "all"}
    assert {metric: value for metric, value in whole.items() if metric not in without} == pytest.approx(
        {
            "ceiling": 1.0,
            "ceiling_at_once": 1 / 2,
            "delivery_of_reachable": 1 / 2,
            "missed_impossible": 0.0,
            "missed_needed_carrying": 0.0,
            "missed_lost": 1 / 2,
        }
    )
    assert {metric: value for metric, value in whole.items() if metric in without} == pytest.approx(without), (
        "the ceiling changes nothing else"
    )


def test_an_impossible_delivery_lowers_the_ceiling_and_not_the_delivery_of_the_reachable(spark: SparkSession) -> None:
    found = measured_with(spark, [("w", 100.0, "e1", "b", "at once"), ("w", 100.0, "e1", "d", "no")])
    assert found["ceiling", "all", ""] == pytest.approx(0.5)
    assert found["delivery_of_reachable", "all", ""] == 1.0
    assert found["missed_impossible", "all", ""] == pytest.approx(0.5)
    assert found["lost", "cause", "impossible"] == 1


def test_the_log_is_scanned_once(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(LOG_ROWS, LOG.ddl).write.parquet(str(tmp_path / "the-log"))
    log = spark.read.parquet(str(tmp_path / "the-log"))
    runs = spark.createDataFrame([run_row("r")], RUNS.ddl)
    expected = spark.createDataFrame(EXPECTED_ROWS, EXPECTED.ddl)
    reachable = spark.createDataFrame(REACHABLE_ROWS, REACHABLE_DDL)
    assert scans_in(log) == 1
    assert scans_in(log.transform(metrics(runs, expected, reachable))) == 1


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_log_read_piece_by_piece_has_the_same_figures(size: int, with_ceiling: Found) -> None:
    chance = random.Random(size)
    log = pa.Table.from_pylist(chance.sample(LOG_ROWS, len(LOG_ROWS)), schema=arrow_schema("log"))
    expected = pa.Table.from_pylist([row for row in EXPECTED_ROWS if row["workload"] == "w"])
    reach = pa.Table.from_pylist(
        [{"event": row[2], "node": row[3], "reach": row[4]} for row in REACHABLE_ROWS if row[1] == 100.0]
    )
    records = condensed_log(log.select(READ).to_batches(max_chunksize=size), 5.0)
    rows = list(figures_of(condensed([records, asked_rows(expected, reach)])))
    found = {(metric, by, key): value for metric, by, key, value in rows}
    assert len(found) == len(rows)
    assert found == pytest.approx(with_ceiling)


def scans_in(frame: DataFrame) -> int:
    """How often files are read, by the plan that Spark would run."""
    return str(frame._jdf.queryExecution().executedPlan().toString()).count("FileScan parquet")


def test_areas_are_squares_named_by_their_corner() -> None:
    assert area_of(2500.0, -1.0, 1000.0) == "2000,-1000"
    assert area_of(0.0, 999.9, 1000.0) == "0,0"
    assert area_of(249.99999999999997, -250.0, 250.0) == "0,-250"
    assert area_of(float("nan"), 1.0, 1000.0) == ""
