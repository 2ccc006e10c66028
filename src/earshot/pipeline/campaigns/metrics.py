"""Metrics: what the records of a run amount to, against the oracle's expected receivers.

Long form: one row a run, a metric and a group. `by` says how the group was made (`all`, `type`, `node`,
`minute`, `area`, `cause`, `reason`, `packet`), `key` which one it is. Only what is published and sent after
a scenario's warm-up counts. The log is scanned twice: once for events and once for traffic.

=======================  ====================================================================
delivery_ratio           expected (event, node) pairs that were delivered / all expected pairs
delivery_of_reachable    the same of the pairs that are reachable at all
ceiling                  expected pairs that are reachable at all / all expected pairs
ceiling_at_once          expected pairs that are reachable without carrying / all expected pairs
missed_impossible        expected pairs without delivery that are not reachable / all expected pairs
missed_needed_carrying   ... that are reachable only by carrying
missed_lost              ... that are reachable at once
lost                     expected pairs without delivery; by cause, by area, ...
precision                delivered pairs that were expected / all delivered pairs
cost                     transmissions that carry an event / events published
control_bytes            bytes of transmissions that carry none
data_bytes               bytes of transmissions that carry an event
bytes_per_delivery       all bytes / delivered pairs
airtime_mean             share of time in which the channel was busy, over all nodes
airtime_busiest          the largest such share of one node in one window (about 10 s)
overhead                 receptions by nodes to which nothing of that event was delivered / receptions
duplicates               receptions of an event by a node beyond its first / events published
latency_p50_s ...        publication to delivery, over expected pairs that were delivered
receivers                age of information, time between receptions, fairness: `receivers.py`
hops                     transmissions from publisher to subscriber, mean over deliveries that count them
drops                    records of a drop, by reason
=======================  ====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from earshot.pipeline.campaigns.receivers import GAPS, RECEIVERS, gap_sums, receiver_figures, with_gaps

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AREA_M = 250.0
"The side of the squares of `by = 'area'`."
EXACT_PAIRS = 250_000
"Percentiles are exact where a run expects at most this many deliveries: an exact one holds every latency in memory."
SKETCH_ACCURACY = 10_000
"Above, a percentile's rank is wrong by at most the number of latencies / this."
SHORTEST_WINDOW_S = 5.0
"A node that leaves ends its airtime window early; shorter ones do not count as the busiest."
LATENCIES = {"latency_p50_s": 0.50, "latency_p95_s": 0.95, "latency_p99_s": 0.99}
CEILING = (
    "ceiling",
    "ceiling_at_once",
    "delivery_of_reachable",
    "missed_impossible",
    "missed_needed_carrying",
    "missed_lost",
)
"Metrics that need the table `reachable`; a run without it has none of them."
OUTCOMES = ("expected", "delivered", "lost", "delivery_ratio", "precision", "hops", *LATENCIES, *CEILING)
"Metrics of what subscribers receive: also by event type, node, minute of publication and area."
TRAFFIC = (
    "events",
    "data_bytes",
    "control_bytes",
    "cost",
    "control_cost",
    "bytes_per_delivery",
    "duplicates",
    "overhead",
    "airtime_mean",
    "airtime_busiest",
)
"Metrics of what the network carries: only of the whole run."
METRICS_BY = {
    "all": (*OUTCOMES, *TRAFFIC, *RECEIVERS),
    "type": OUTCOMES,
    "node": OUTCOMES,
    "minute": OUTCOMES,
    "area": OUTCOMES,
    "cause": ("lost",),
    "packet": ("sends", "bytes"),
    "reason": ("drops",),
}


def metrics(
    runs: DataFrame,
    expected: DataFrame,
    reachable: DataFrame | None = None,
    exact: bool = True,
    area_m: float = AREA_M,
) -> Callable[[DataFrame], DataFrame]:
    """From the log of runs to their metrics: `log.transform(metrics(runs, expected, reachable))`.

    Without `exact`, percentiles are those of a sketch (`SKETCH_ACCURACY`) of bounded size.
    """

    def transform(log: DataFrame) -> DataFrame:
        finished = F.broadcast(runs.where("status = 'done'").select("run", "workload", "range_m", "warm_up_s"))
        measured = log.join(finished.select("run", "warm_up_s"), "run").where("time >= warm_up_s")
        of_pairs = pairs(measured, finished, expected, reachable)
        of_events = of_pairs.transform(with_gaps).transform(_by_groups(area_m))
        counted = of_events.unionByName(measured.transform(_traffic), allowMissingColumns=True)
        return counted.transform(_sums(exact)).transform(_figures)

    return transform


def area_of(x_m: float, y_m: float, cell_m: float) -> str:
    """The square a place lies in, by its south-west corner, as in `2000,-1000`; "" where the place is not known."""
    if math.isnan(x_m) or math.isnan(y_m):
        return ""
    return ",".join(f"{math.floor(part / cell_m) * cell_m:.0f}" for part in (x_m, y_m))


def area_column(x_m: Column, y_m: Column, cell_m: float) -> Column:
    """`area_of` as a column, null where the place is not known."""
    corner = [(F.floor(part / cell_m) * cell_m).cast("double") for part in (x_m, y_m)]
    known = ~(F.isnan(x_m) | F.isnan(y_m))
    return F.when(known, F.format_string("%.0f,%.0f", *corner))


def pairs(
    log: DataFrame,
    runs: DataFrame,
    expected: DataFrame,
    reachable: DataFrame | None = None,
) -> DataFrame:
    """One row for each (run, event, node) of a published event that the node was expected to get, got, heard or
    published, with what is known of both. `runs` holds run, workload and range_m."""
    known = "publish", "receive", "deliver", "send", "drop"
    about = log.where(F.col("event") != "").where(F.col("kind").isin(*known))
    rows = about.unionByName(_wanted(runs, expected), allowMissingColumns=True)
    if reachable is not None:
        rows = rows.unionByName(_reach(runs, reachable), allowMissingColumns=True)
    of_pair = (
        rows.transform(_by_kind)
        .groupBy("run", "event", "node")
        .agg(
            F.min(_if_kind("publish", "time")).alias("published_at"),
            F.max(_if_kind("publish", "label")).alias("type"),
            F.max(_if_kind("publish", "node")).alias("source"),
            F.max(_if_kind("publish", "x_m")).alias("x_m"),
            F.max(_if_kind("publish", "y_m")).alias("y_m"),
            F.coalesce(F.sum(_if_kind("send", "records")), F.lit(0)).alias("sends_of_event"),
            F.coalesce(F.sum(_if_kind("receive", "records")), F.lit(0)).alias("receptions"),
            F.min(_if_kind("deliver", "time")).alias("delivered_at"),
            F.min(_if_kind("deliver", "hops")).alias("hops"),
            F.max(_if_kind("drop", "label")).alias("dropped"),
            (F.count_if(F.col("kind") == "expected") > 0).alias("wanted"),
            F.max(_if_kind("reachable", "label")).alias("reach"),
        )
    )
    event = Window.partitionBy("run", "event")
    return (
        of_pair.withColumn("publishes", F.col("published_at").isNotNull())
        .withColumns(
            {
                "published_at": F.min("published_at").over(event),
                "type": F.max("type").over(event),
                "source": F.max("source").over(event),
                "x_m": F.max("x_m").over(event),
                "y_m": F.max("y_m").over(event),
                "sent": F.max("sends_of_event").over(event) > 0,
                "got": F.col("delivered_at").isNotNull(),
            }
        )
        .where("published_at is not null and (publishes or wanted or got or receptions > 0)")
        .withColumns(
            {
                "minute": F.floor(F.col("published_at") / 60).cast("string"),
                "latency_s": F.col("delivered_at") - F.col("published_at"),
                "cause": _cause(),
            }
        )
        .drop("sends_of_event")
    )


def _by_kind(rows: DataFrame) -> DataFrame:
    """The records of one kind about one pair as one row. Texts are keys here: Spark sorts all the records where a
    text is aggregated, and these are far more than the pairs."""
    kind = F.col("kind")
    label = F.when(kind == "publish", F.get_json_object("detail", "$.type")).when(
        kind.isin("drop", "reachable"), F.col("detail")
    )
    hops = F.when(F.col("hops") >= 0, F.col("hops"))
    return rows.groupBy("run", "event", "node", "kind", label.alias("label")).agg(
        F.count("*").alias("records"),
        F.min("time").alias("time"),
        F.min(hops).alias("hops"),
        F.max("x_m").alias("x_m"),
        F.max("y_m").alias("y_m"),
    )


def _if_kind(kind: str, column: str) -> Column:
    return F.when(F.col("kind") == kind, F.col(column))


def _wanted(runs: DataFrame, expected: DataFrame) -> DataFrame:
    """The expected pairs, as if they were records."""
    wanted = expected.select("workload", "event", "node").join(runs, "workload")
    return wanted.select("run", "event", "node", F.lit("expected").alias("kind"))


def _reach(runs: DataFrame, reachable: DataFrame) -> DataFrame:
    """How far a pair is reachable at the range of the run, as if it were a record."""
    found = reachable.join(runs, ["workload", "range_m"])
    return found.select("run", "event", "node", F.lit("reachable").alias("kind"), F.col("reach").alias("detail"))


def _cause() -> Column:
    """Why an expected pair was not delivered, in the words of `earshot watch`; null where it was."""
    lost = (
        F.when(F.col("dropped").isNotNull(), F.concat(F.lit("dropped: "), "dropped"))
        .when(F.col("receptions") > 0, "heard, not delivered")
        .when(F.col("sent"), "never heard")
        .otherwise("never sent")
    )
    cause = F.when(F.col("reach") == "no", "impossible").when(F.col("reach") == "by carrying", "needed carrying")
    return F.when(F.col("wanted") & ~F.col("got"), cause.otherwise(lost))


def _by_groups(area_m: float) -> Callable[[DataFrame], DataFrame]:
    """Each pair once for each group that it counts in."""
    is_pair = F.col("wanted") | F.col("got") | (F.col("receptions") > 0)
    keys = {
        "all": F.lit(""),
        "type": F.col("type"),
        "minute": F.col("minute"),
        "area": area_column(F.col("x_m"), F.col("y_m"), area_m),
        "node": F.when(is_pair, F.col("node")),
        "cause": F.col("cause"),
    }
    groups = F.array(*(_group(by, key) for by, key in keys.items()))
    counted = ("wanted", "got", "reach", "latency_s", "hops", "receptions", "publishes", *GAPS)

    def transform(of_events: DataFrame) -> DataFrame:
        grouped = of_events.select("run", *counted, F.explode(groups).alias("group"))
        return grouped.select("run", "group.*", *counted).where("key is not null")

    return transform


def _traffic(log: DataFrame) -> DataFrame:
    """How much was sent, with and without an event in it, what was dropped, and how busy the channel was."""
    kind = F.col("kind")
    is_airtime = (kind == "airtime") & (F.col("time") > F.col("warm_up_s"))
    window = F.from_json(F.when(is_airtime, F.col("detail")), "span_s double, busy_s double")
    label = F.when(kind == "send", F.col("packet")).when(kind == "drop", F.col("detail")).otherwise("")
    share = F.when(F.col("span_s") >= SHORTEST_WINDOW_S, F.col("busy_s") / F.col("span_s"))
    sums = (
        log.where(kind.isin("send", "drop", "airtime"))
        .select(
            "run", "kind", label.alias("label"), (F.col("event") != "").alias("carries"), "bytes", window.alias("w")
        )
        .select("run", "kind", "label", "carries", "bytes", "w.span_s", "w.busy_s")
        .groupBy("run", "kind", "label", "carries")
        .agg(
            F.count_if(kind == "send").alias("sends"),
            F.count_if(kind == "drop").alias("drops"),
            F.sum(F.when(kind == "send", F.col("bytes"))).alias("bytes"),
            F.sum("span_s").alias("span_s"),
            F.sum("busy_s").alias("busy_s"),
            F.max(share).alias("busiest"),
        )
    )
    groups = (
        F.when(kind == "send", F.array(_group("all", F.lit("")), _group("packet", F.col("label"))))
        .when(kind == "drop", F.array(_group("reason", F.col("label"))))
        .otherwise(F.array(_group("all", F.lit(""))))
    )
    return sums.select("*", F.explode(groups).alias("group")).select(
        "run", "group.*", "carries", "sends", "drops", "bytes", "span_s", "busy_s", "busiest"
    )


def _group(by: str, key: Column) -> Column:
    return F.struct(F.lit(by).alias("by"), key.alias("key"))


def _sums(exact: bool) -> Callable[[DataFrame], DataFrame]:
    met = F.col("wanted") & F.col("got")
    missed = F.col("wanted") & ~F.col("got")
    latency = F.when(met, F.col("latency_s"))
    shares = [*LATENCIES.values()]
    carries = F.col("carries")
    judged = F.when(F.col("wanted"), F.col("reach"))
    sums = {
        "expected": F.count_if("wanted"),
        "delivered": F.count_if("got"),
        "lost": F.count_if(missed),
        "met": F.count_if(met),
        "hops": F.avg("hops"),
        "latencies": F.percentile(latency, shares) if exact else F.percentile_approx(latency, shares, SKETCH_ACCURACY),
        "judged": F.count(judged),
        "reachable": F.count_if(judged != "no"),
        "at_once": F.count_if(judged == "at once"),
        "met_reachable": F.count_if((judged != "no") & met),
        "impossible": F.count_if((judged == "no") & missed),
        "needed_carrying": F.count_if((judged == "by carrying") & missed),
        "lost_at_once": F.count_if((judged == "at once") & missed),
        "receptions": F.sum("receptions"),
        "repeats": F.sum(F.greatest(F.col("receptions") - 1, F.lit(0))),
        "undelivered": F.sum(F.when(~F.col("got"), F.col("receptions"))),
        "events": F.count_if("publishes"),
        **gap_sums(),
        "sends": F.sum("sends"),
        "drops": F.sum("drops"),
        "bytes": F.sum("bytes"),
        "data_sends": F.sum(F.when(carries, F.col("sends"))),
        "control_sends": F.sum(F.when(~carries, F.col("sends"))),
        "data_bytes": F.coalesce(F.sum(F.when(carries, F.col("bytes"))), F.lit(0)),
        "control_bytes": F.coalesce(F.sum(F.when(~carries, F.col("bytes"))), F.lit(0)),
        "span_s": F.sum("span_s"),
        "busy_s": F.sum("busy_s"),
        "airtime_busiest": F.max("busiest"),
    }

    def transform(counted: DataFrame) -> DataFrame:
        return counted.groupBy("run", "by", "key").agg(*(column.alias(name) for name, column in sums.items()))

    return transform


def _figures(sums: DataFrame) -> DataFrame:
    """Sums to rows: run, metric, by, key, value; what is not known (a ratio of nothing) is left out."""

    def share(part: str, whole: str) -> Column:
        return F.coalesce(part, F.lit(0)) / F.nullif(F.col(whole), F.lit(0))

    wide = sums.withColumns(
        {
            "delivery_ratio": share("met", "expected"),
            "precision": share("met", "delivered"),
            "ceiling": share("reachable", "judged"),
            "ceiling_at_once": share("at_once", "judged"),
            "delivery_of_reachable": share("met_reachable", "reachable"),
            "missed_impossible": share("impossible", "judged"),
            "missed_needed_carrying": share("needed_carrying", "judged"),
            "missed_lost": share("lost_at_once", "judged"),
            **{name: F.col("latencies")[number] for number, name in enumerate(LATENCIES)},
            "cost": share("data_sends", "events"),
            "control_cost": share("control_sends", "events"),
            "duplicates": share("repeats", "events"),
            "overhead": share("undelivered", "receptions"),
            "bytes_per_delivery": (F.col("data_bytes") + F.col("control_bytes")) / F.nullif("delivered", F.lit(0)),
            "airtime_mean": F.col("busy_s") / F.nullif("span_s", F.lit(0.0)),
            **receiver_figures(),
        }
    )
    names = list(dict.fromkeys(name for some in METRICS_BY.values() for name in some))
    doubles = wide.select("run", "by", "key", *(F.col(name).cast("double").alias(name) for name in names))
    rows = doubles.unpivot(["run", "by", "key"], tuple(names), "metric", "value").where("value is not null")
    kept = [(F.col("by") == by) & F.col("metric").isin(*some) for by, some in METRICS_BY.items()]
    wanted = kept[0]
    for one in kept[1:]:
        wanted = wanted | one
    return rows.where(wanted)
