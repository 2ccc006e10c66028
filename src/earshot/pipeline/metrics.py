"""Metrics: what the records of a run amount to, against the oracle's expected receivers.

Long form: one row a run, a metric and a group. `by` says how the group was made (`all`, `type`,
`node`, `minute`, `reason`, `packet`), `key` which one it is. Only what is published and sent after
a scenario's warm-up counts.

==================  =========================================================================
delivery_ratio      expected (event, node) pairs that were delivered / all expected pairs
precision           delivered pairs that were expected / all delivered pairs
cost                transmissions that carry an event / events published
control_bytes       bytes of transmissions that carry none
data_bytes          bytes of transmissions that carry an event
bytes_per_delivery  all bytes / delivered pairs
overhead            receptions by nodes to which nothing of that event was delivered / receptions
duplicates          receptions of an event by a node beyond its first / events published
latency_p50_s ...   publication to delivery, over expected pairs that were delivered
hops                transmissions from publisher to subscriber, mean over deliveries that count them
drops               records of a drop, by reason
==================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATENCIES = {"latency_p50_s": 0.50, "latency_p95_s": 0.95, "latency_p99_s": 0.99}
GROUPS = ("all", "type", "node", "minute")


def run_metrics(runs: DataFrame, expected: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """`log.transform(run_metrics(runs, expected))` gives `metrics`."""

    def transform(log: DataFrame) -> DataFrame:
        finished = runs.where("status = 'done'").select("run", "workload", "warm_up_s")
        measured = log.join(F.broadcast(finished), "run").where("time >= warm_up_s")
        published = _publications(measured)
        pairs = _pairs(measured, published, finished, expected)
        return (
            _outcomes(pairs)
            .unionByName(_traffic(measured, published, pairs))
            .unionByName(_receptions(measured, published))
            .unionByName(_drops(measured))
        )

    return transform


def _publications(log: DataFrame) -> DataFrame:
    published = log.where("kind = 'publish'")
    return published.select(
        "run", "event", F.get_json_object("detail", "$.type").alias("type"), published["time"].alias("published_at")
    )


def _pairs(log: DataFrame, published: DataFrame, runs: DataFrame, expected: DataFrame) -> DataFrame:
    """(event, node) pairs that were expected, delivered or both."""
    wanted = expected.select("workload", "event", "node").distinct().join(F.broadcast(runs), "workload")
    wanted = wanted.select("run", "event", "node", F.lit(True).alias("expected"))
    delivered = (
        log.where("kind = 'deliver'")
        .groupBy("run", "event", "node")
        .agg(F.min("time").alias("delivered_at"), F.min(F.when(F.col("hops") >= 0, F.col("hops"))).alias("hops"))
    )
    return (
        wanted.join(delivered, ["run", "event", "node"], "full_outer")
        .join(published, ["run", "event"])
        .select(
            "run",
            "event",
            "node",
            "type",
            F.floor(F.col("published_at") / 60).cast("string").alias("minute"),
            F.coalesce("expected", F.lit(False)).alias("expected"),
            F.col("delivered_at").isNotNull().alias("delivered"),
            (F.col("delivered_at") - F.col("published_at")).alias("latency_s"),
            "hops",
        )
    )


def _outcomes(pairs: DataFrame) -> DataFrame:
    """What a subscriber notices, over everything and by type, node and minute of publication."""
    met = F.col("expected") & F.col("delivered")
    latency = F.when(met, F.col("latency_s"))
    measures = {
        "expected": F.count_if("expected"),
        "delivered": F.count_if("delivered"),
        "delivery_ratio": F.count_if(met) / F.nullif(F.count_if("expected"), F.lit(0)),
        "precision": F.count_if(met) / F.nullif(F.count_if("delivered"), F.lit(0)),
        "hops": F.avg("hops"),
    }
    shares = F.percentile(latency, F.array(*(F.lit(share) for share in LATENCIES.values())))
    tables = [
        _long(
            pairs.groupBy("run", key.alias("key"))
            .agg(*(column.cast("double").alias(name) for name, column in measures.items()), shares.alias("shares"))
            .withColumns({name: F.col("shares")[i] for i, name in enumerate(LATENCIES)}),
            [*measures, *LATENCIES],
            by,
        )
        for by, key in [("all", F.lit("")), *((by, F.col(by)) for by in GROUPS[1:])]
    ]
    whole = tables[0]
    for table in tables[1:]:
        whole = whole.unionByName(table)
    return whole


def _traffic(log: DataFrame, published: DataFrame, pairs: DataFrame) -> DataFrame:
    """What the network carried, whole and by packet."""
    carries = F.col("event") != ""
    sends = log.where("kind = 'send'")
    totals = sends.groupBy("run").agg(
        F.count_if(carries).alias("data_sends"),
        F.count_if(~carries).alias("control_sends"),
        F.sum(F.when(carries, F.col("bytes")).otherwise(0)).alias("data_bytes"),
        F.sum(F.when(~carries, F.col("bytes")).otherwise(0)).alias("control_bytes"),
    )
    events = published.groupBy("run").agg(F.count("*").alias("events"))
    delivered = pairs.groupBy("run").agg(F.count_if("delivered").alias("delivered"))
    wide = (
        events.join(totals, "run", "left")
        .join(delivered, "run", "left")
        .fillna(0)
        .select(
            "run",
            F.lit("").alias("key"),
            F.col("events").cast("double"),
            F.col("data_bytes").cast("double"),
            F.col("control_bytes").cast("double"),
            (F.col("data_sends") / F.col("events")).alias("cost"),
            (F.col("control_sends") / F.col("events")).alias("control_cost"),
            ((F.col("data_bytes") + F.col("control_bytes")) / F.nullif("delivered", F.lit(0))).alias(
                "bytes_per_delivery"
            ),
        )
    )
    by_packet = sends.groupBy("run", F.col("packet").alias("key")).agg(
        F.count("*").cast("double").alias("sends"), F.sum("bytes").cast("double").alias("bytes")
    )
    names = ["events", "data_bytes", "control_bytes", "cost", "control_cost", "bytes_per_delivery"]
    return _long(wide, names, "all").unionByName(_long(by_packet, ["sends", "bytes"], "packet"))


def _receptions(log: DataFrame, published: DataFrame) -> DataFrame:
    """Receptions of events: how many were repeats, how many were in vain."""
    heard = (
        log.where("kind in ('receive', 'deliver') and event != ''")
        .groupBy("run", "event", "node")
        .agg(
            F.count_if(F.col("kind") == "receive").alias("times"), F.bool_or(F.col("kind") == "deliver").alias("wanted")
        )
    )
    events = published.groupBy("run").agg(F.count("*").alias("events"))
    totals = heard.groupBy("run").agg(
        F.sum("times").alias("receptions"),
        F.sum(F.greatest(F.col("times") - 1, F.lit(0))).alias("repeats"),
        F.sum(F.when(~F.col("wanted"), F.col("times")).otherwise(0)).alias("in_vain"),
    )
    wide = totals.join(events, "run").select(
        "run",
        F.lit("").alias("key"),
        (F.col("repeats") / F.col("events")).alias("duplicates"),
        (F.col("in_vain") / F.nullif("receptions", F.lit(0))).alias("overhead"),
    )
    return _long(wide, ["duplicates", "overhead"], "all")


def _drops(log: DataFrame) -> DataFrame:
    by_reason = log.where("kind = 'drop'").groupBy("run", F.col("detail").alias("key"))
    return _long(by_reason.agg(F.count("*").cast("double").alias("drops")), ["drops"], "reason")


def _long(wide: DataFrame, names: list[str], by: str) -> DataFrame:
    """Columns to rows: run, metric, by, key, value; what is not known (no events, no deliveries) is left out."""
    unpivoted = wide.unpivot(["run", "key"], list(names), "metric", "value")
    return unpivoted.where("value is not null").select("run", "metric", F.lit(by).alias("by"), "key", "value")
