"""Metrics of receivers: how fresh what they know is, how steadily they hear, and how fairly they are served.

A stream is what one receiver gets of one publisher and event type, of the deliveries that were expected.

======================  ===========================================================================================
age_of_information_s    the age of the newest event a receiver has, averaged over time from its first delivery to its
                        last (Kaul, Yates and Gruteser, INFOCOM 2012), over all streams
inter_reception_s       the time between two deliveries of a stream, mean
inter_reception_p95_s   its 95th percentile
fairness                Jain's index of the receivers' delivery ratios: 1 where all are served equally, 1/n where one
                        of n gets everything (Jain, Chiu and Hawe, DEC TR-301, 1984)
======================  ===========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECEIVERS = ("age_of_information_s", "inter_reception_s", "inter_reception_p95_s", "fairness")
GAPS = ("gap_s", "aged")
"Columns of a delivery: the time until the next one of its stream, and the age summed over that time."
DIGITS = 9
"""Decimals that count. Below them a sum depends on the order in which Spark's tasks end, and the same runs would
have two figures."""


def with_gaps(of_pairs: DataFrame) -> DataFrame:
    """Pairs of (event, node), as `metrics.pairs` has them, each delivered one with the gap that follows it."""
    met = F.col("wanted") & F.col("got")
    stream = Window.partitionBy("run", "source", "type", "node", met).orderBy("delivered_at", "published_at", "event")
    newest = F.max("published_at").over(stream.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    until = F.lead("delivered_at").over(stream)
    # The age grows by a second a second: over a gap its sum is the area of a trapezium.
    gap_s = until - F.col("delivered_at")
    aged = gap_s * ((F.col("delivered_at") + until) / 2 - newest)
    return of_pairs.withColumns({"gap_s": F.when(met, gap_s), "aged": F.when(met, aged)})


def gap_sums() -> dict[str, Column]:
    """What is added up over the gaps of a group."""
    return {
        "gaps_s": F.sum("gap_s"),
        "aged": F.sum("aged"),
        "inter_reception_s": F.round(F.avg("gap_s"), DIGITS),
        "inter_reception_p95_s": F.percentile_approx("gap_s", 0.95, 10_000),
    }


def receiver_figures() -> dict[str, Column]:
    """The metrics of a whole run, from sums by run, by and key that hold those of every node too."""
    run = Window.partitionBy("run")
    share = F.when(F.col("by") == "node", F.col("met") / F.nullif("expected", F.lit(0)))
    total, squares, nodes = (F.sum(share).over(run), F.sum(share**2).over(run), F.count(share).over(run))
    return {
        "age_of_information_s": F.round(F.col("aged") / F.nullif("gaps_s", F.lit(0.0)), DIGITS),
        "fairness": F.round(total**2 / F.nullif(nodes * squares, F.lit(0.0)), DIGITS),
    }
