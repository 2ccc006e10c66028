"""Metrics of a run small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from earshot.pipeline.campaigns.metrics import metrics
from earshot.pipeline.lake.tables import EXPECTED, LOG, RUNS
from earshot.records import COLUMNS

pytestmark = pytest.mark.spark

BLANK: dict[str, Any] = {
    name: {"float64": float("nan"), "int64": -1, "int32": -1, "string": ""}[kind] for name, kind in COLUMNS.items()
}


def record(time: float, node: str, kind: str, **values: Any) -> dict[str, Any]:
    return {"run": "r", **BLANK, "time": time, "node": node, "kind": kind, **values}


def publish(time: float, node: str, event: str, type: str) -> dict[str, Any]:
    return record(time, node, "publish", event=event, detail=f'{{"type":"{type}","content":{{}}}}')


LOG_ROWS = [
    publish(1.0, "a", "early", "Siren"),  # in the warm-up: does not count
    record(1.0, "a", "send", event="early", bytes=100, packet="flood"),
    record(1.1, "b", "deliver", event="early", subscription="b/1", hops=1),
    publish(10.0, "a", "e1", "Siren"),
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
]
EXPECTED_ROWS = [
    {"workload": "w", "event": "early", "node": "b", "subscription": "b/1", "why": "content"},
    {"workload": "w", "event": "e1", "node": "b", "subscription": "b/1", "why": "content"},
    {"workload": "w", "event": "e1", "node": "b", "subscription": "b/2", "why": "content"},
    {"workload": "w", "event": "e1", "node": "d", "subscription": "d/1", "why": "content"},
    {"workload": "w", "event": "unpublished", "node": "d", "subscription": "d/1", "why": "content"},
    {"workload": "another", "event": "e2", "node": "b", "subscription": "b/2", "why": "content"},
]


def run_row(run: str, status: str = "done", **values: Any) -> dict[str, Any]:
    row = dict.fromkeys(RUNS.columns)
    row |= {"run": run, "scenario": "hand", "variant": "flooding", "workload": "w", "warm_up_s": 5.0, "status": status}
    return {**row, **values}


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> dict[tuple[str, str, str], float]:
    runs = spark.createDataFrame([run_row("r"), run_row("broken", "failed")], RUNS.ddl)
    expected = spark.createDataFrame(EXPECTED_ROWS, EXPECTED.ddl)
    log = spark.createDataFrame(LOG_ROWS, LOG.ddl)
    rows = log.transform(metrics(runs, expected)).collect()
    found = {(row["metric"], row["by"], row["key"]): row["value"] for row in rows}
    assert len(found) == len(rows), "one row a figure"
    assert {row["run"] for row in rows} == {"r"}
    return found


def test_the_whole_run_is_measured(measured: dict[tuple[str, str, str], float]) -> None:
    whole = {metric: value for (metric, by, _), value in measured.items() if by == "all"}
    assert whole == pytest.approx(
        {
            "expected": 2,  # e1 to b and to d
            "delivered": 2,  # e1 and e2 to b
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
    assert measured["drops", "reason", "expired"] == 1
