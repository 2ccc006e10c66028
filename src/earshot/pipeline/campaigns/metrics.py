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

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LATENCIES = {"latency_p50_s": 0.50, "latency_p95_s": 0.95, "latency_p99_s": 0.99}
OUTCOMES = ("expected", "delivered", "delivery_ratio", "precision", "hops", *LATENCIES)
"Metrics of what subscribers receive: also by event type, by node and by minute of publication."
TRAFFIC = (
    "events",
    "data_bytes",
    "control_bytes",
    "cost",
    "control_cost",
    "bytes_per_delivery",
    "duplicates",
    "overhead",
)
"Metrics of what the network carries: only of the whole run."
GROUPS = ("type", "node", "minute")


def metrics(runs: DataFrame, expected: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """From the log of runs to their metrics: `log.transform(metrics(runs, expected))`."""

    def transform(log: DataFrame) -> DataFrame:
        finished = F.broadcast(runs.where("status = 'done'").select("run", "workload", "warm_up_s"))
        measured = log.join(finished, "run").where("time >= warm_up_s")
        published = publications(measured)
        counted = (
            pairs(measured, published, finished, expected)
            .unionByName(_transmissions(measured), allowMissingColumns=True)
            .unionByName(published.select("run", F.lit(1).alias("events")), allowMissingColumns=True)
        )
        by_packet = measured.where("kind = 'send'").groupBy("run", F.col("packet").alias("key"))
        by_reason = measured.where("kind = 'drop'").groupBy("run", F.col("detail").alias("key"))
        return (
            _figures(counted)
            .unionByName(_long(by_packet.agg(F.count("*").alias("sends"), F.sum("bytes").alias("bytes")), "packet"))
            .unionByName(_long(by_reason.agg(F.count("*").alias("drops")), "reason"))
        )

    return transform


def publications(log: DataFrame) -> DataFrame:
    """What was published, of which type and when."""
    type_of_event = F.get_json_object("detail", "$.type").alias("type")
    return log.where("kind = 'publish'").select("run", "event", type_of_event, F.col("time").alias("published_at"))


def pairs(log: DataFrame, published: DataFrame, runs: DataFrame, expected: DataFrame) -> DataFrame:
    """One row for each published (event, node) that was expected, delivered or at least heard, with what
    else `published` says of the event."""
    wanted = expected.select("workload", "event", "node").distinct().join(runs, "workload")
    wanted = wanted.select("run", "event", "node", F.lit(True).alias("wanted"))
    is_delivery = F.col("kind") == "deliver"
    heard = (
        log.where("kind in ('receive', 'deliver') and event != ''")
        .groupBy("run", "event", "node")
        .agg(
            F.count_if(~is_delivery).alias("receptions"),
            F.min(F.when(is_delivery, F.col("time"))).alias("delivered_at"),
            F.min(F.when(is_delivery & (F.col("hops") >= 0), F.col("hops"))).alias("hops"),
        )
    )
    return (
        wanted.join(heard, ["run", "event", "node"], "full_outer")
        .join(published, ["run", "event"])
        .select(
            *published.columns,
            "node",
            F.floor(F.col("published_at") / 60).cast("string").alias("minute"),
            F.coalesce("wanted", F.lit(False)).alias("wanted"),
            F.col("delivered_at").isNotNull().alias("got"),
            "delivered_at",
            (F.col("delivered_at") - F.col("published_at")).alias("latency_s"),
            "hops",
            F.coalesce("receptions", F.lit(0)).alias("receptions"),
        )
    )


def _transmissions(log: DataFrame) -> DataFrame:
    """How much was sent, with and without an event in it."""
    return (
        log.where("kind = 'send'")
        .groupBy("run", (F.col("event") != "").alias("carries"))
        .agg(F.count("*").alias("sends"), F.sum("bytes").alias("bytes"))
    )


def _figures(counted: DataFrame) -> DataFrame:
    """Everything in one pass: by run, and by run with each of the groups."""
    run, *keys = (F.col(name) for name in ("run", *GROUPS))
    met = F.col("wanted") & F.col("got")
    some = {
        "expected": F.count_if("wanted"),
        "delivered": F.count_if("got"),
        "met": F.count_if(met),
        "hops": F.avg("hops"),
        "latencies": F.percentile(F.when(met, F.col("latency_s")), [*LATENCIES.values()]),
        "receptions": F.sum("receptions"),
        "repeats": F.sum(F.greatest(F.col("receptions") - 1, F.lit(0))),
        "undelivered": F.sum(F.when(~F.col("got"), F.col("receptions"))),
        "events": F.sum("events"),
        "data_sends": F.sum(F.when(F.col("carries"), F.col("sends"))),
        "control_sends": F.sum(F.when(~F.col("carries"), F.col("sends"))),
        "data_bytes": F.coalesce(F.sum(F.when(F.col("carries"), F.col("bytes"))), F.lit(0)),
        "control_bytes": F.coalesce(F.sum(F.when(~F.col("carries"), F.col("bytes"))), F.lit(0)),
    }
    sums = counted.groupingSets([[run], *([run, key] for key in keys)], run, *keys).agg(
        F.grouping_id().alias("level"), *(column.alias(name) for name, column in some.items())
    )

    def share(part: str, whole: str) -> Column:
        return F.coalesce(part, F.lit(0)) / F.nullif(F.col(whole), F.lit(0))

    wide = sums.withColumns(
        {
            "delivery_ratio": share("met", "expected"),
            "precision": share("met", "delivered"),
            **{name: F.col("latencies")[number] for number, name in enumerate(LATENCIES)},
            "cost": share("data_sends", "events"),
            "control_cost": share("control_sends", "events"),
            "duplicates": share("repeats", "events"),
            "overhead": share("undelivered", "receptions"),
            "bytes_per_delivery": (F.col("data_bytes") + F.col("control_bytes")) / F.nullif("delivered", F.lit(0)),
        }
    )
    # grouping_id has a bit for each key that was left out: type 4, node 2, minute 1.
    by = F.when(F.col("level") == 7, "all").when(F.col("level") == 3, "type").when(F.col("level") == 5, "node")
    named = wide.withColumn("by", by.otherwise("minute")).withColumn("key", F.coalesce(*keys, F.lit("")))
    whole_run = F.col("by") == "all"
    figures = _long(named.where(whole_run | F.coalesce(*keys).isNotNull()), None, OUTCOMES + TRAFFIC)
    return figures.where(whole_run | F.col("metric").isin(*OUTCOMES))


def _long(wide: DataFrame, by: str | None, names: Sequence[str] = ()) -> DataFrame:
    """Columns to rows: run, metric, by, key, value; what is not known (no events, no deliveries) is left out."""
    if by is not None:
        wide = wide.withColumn("by", F.lit(by))
    names = names or [name for name in wide.columns if name not in ("run", "by", "key")]
    doubles = wide.select("run", "by", "key", *(F.col(name).cast("double").alias(name) for name in names))
    return doubles.unpivot(["run", "by", "key"], list(names), "metric", "value").where("value is not null")
