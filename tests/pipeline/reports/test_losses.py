"""Lost deliveries of a run small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from earshot.pipeline.lake.tables import EXPECTED, LOG, RUNS
from earshot.pipeline.reports.losses import LossCount, count_losses, loss_counts
from earshot.records import COLUMNS

pytestmark = pytest.mark.spark

BLANK: dict[str, Any] = {
    name: {"float64": float("nan"), "int64": -1, "int32": -1, "string": ""}[kind] for name, kind in COLUMNS.items()
}


def record(time: float, node: str, kind: str, event: str, **values: Any) -> dict[str, Any]:
    return {"run": "r", **BLANK, "time": time, "node": node, "kind": kind, "event": event, **values}


def publish(time: float, event: str, x_m: float, y_m: float) -> dict[str, Any]:
    return record(time, "a", "publish", event, detail='{"type":"Siren","content":{}}', x_m=x_m, y_m=y_m)


LOG_ROWS = [
    publish(1.0, "early", 0.0, 0.0),  # in the warm-up: does not count
    publish(10.0, "e1", 120.0, -30.0),
    record(10.0, "a", "send", "e1"),
    record(10.1, "b", "receive", "e1"),
    record(10.1, "b", "deliver", "e1"),
    record(10.2, "c", "receive", "e1"),  # heard, and never delivered
    record(10.2, "d", "drop", "e1", detail="collision"),
    record(10.3, "d", "drop", "e1", detail="collision"),
    record(10.4, "d", "drop", "e1", detail="expired"),  # the receiver's most frequent reason counts
    publish(20.0, "e2", 20.0, 30.0),
    record(20.0, "a", "send", "e2"),  # nobody heard it, and no drop was recorded
    publish(30.0, "e3", 20.0, 30.0),  # nobody sent it
    publish(40.0, "e4", float("nan"), float("nan")),
    record(40.0, "a", "send", "e4"),
    record(40.1, "z", "drop", "e4", detail="hop-limit"),  # a relay dropped it, before any receiver heard it
]
PAIRS = ["early b", "e1 b", "e1 c", "e1 d", "e1 g", "e2 c", "e2 f", "e3 b", "e4 b"]
EXPECTED_ROWS = [
    {"workload": "w", "event": event, "node": node, "subscription": subscription, "why": ""}
    for event, node in map(str.split, PAIRS)
    for subscription in ("1", "2")  # two subscriptions of a node make one delivery
]
REACH = {"e1 g": "no", "e2 f": "by carrying", "e2 c": "at once", "e1 c": "at once"}


def counted(spark: SparkSession, reach: dict[str, str]) -> list[LossCount]:
    row = dict.fromkeys(RUNS.columns) | {"run": "r", "workload": "w", "warm_up_s": 5.0, "status": "done"}
    runs = spark.createDataFrame([row], RUNS.schema)
    log = spark.createDataFrame(LOG_ROWS, LOG.schema)
    expected = spark.createDataFrame(EXPECTED_ROWS, EXPECTED.schema)
    reachable = spark.createDataFrame(
        [("r", *pair.split(), how) for pair, how in reach.items()],
        "run string, event string, node string, reach string",
    )
    found = loss_counts(log.transform(count_losses(runs, expected, reachable, 100.0)))
    return sorted(found, key=lambda one: (one.reason, one.cause or "", one.x_m or 0.0))


def test_each_lost_pair_has_one_cause_one_reason_and_its_square(spark: SparkSession) -> None:
    assert counted(spark, REACH) == [
        LossCount("r", 100.0, -100.0, None, "", 1),
        LossCount("r", 100.0, -100.0, "lost", "dropped by the receiver: collision", 1),
        LossCount("r", 100.0, -100.0, "lost", "heard, not delivered", 1),
        LossCount("r", 0.0, 0.0, "lost", "never heard", 1),
        LossCount("r", 0.0, 0.0, "needed carrying", "never heard", 1),
        LossCount("r", 100.0, -100.0, "impossible", "never heard: collision", 1),
        LossCount("r", None, None, "lost", "never heard: hop-limit", 1),
        LossCount("r", 0.0, 0.0, "lost", "never sent", 1),
    ]


def test_without_a_ceiling_every_loss_is_the_protocols(spark: SparkSession) -> None:
    found = counted(spark, {})
    assert {one.cause for one in found} == {None, "lost"}
    assert sum(one.pairs for one in found) == len(PAIRS) - 1
