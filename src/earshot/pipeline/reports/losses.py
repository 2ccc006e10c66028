"""Lost deliveries: each expected (event, node) pair without a delivery, with its cause and where it was published.

A cause is `impossible` (no path in time), `needed carrying` (reachable only by a node that carries the event), or
`lost` (reachable at once). Where nobody asked what is reachable, every loss counts as `lost`. A loss has one reason:
what the log says about the receiver, and where it says nothing, what was dropped most on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from earshot.pipeline.campaigns.metrics import pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CAUSES = {"impossible": "impossible", "needed carrying": "needed carrying", "lost": "lost by the protocol"}
"The causes as tables hold them, and as people read them."
NEVER_SENT = "never sent"
NEVER_HEARD = "never heard"
HEARD = "heard, not delivered"
DROPPED = "dropped by the receiver"
CELLS = 8
"About how many squares a map has side by side."


@dataclass(frozen=True, slots=True)
class LossCount:
    """Pairs of one run that agree in everything here."""

    run: str
    x_m: float | None
    "The south-west corner of the square it was published in; None where that is not known."
    y_m: float | None
    cause: str | None
    "None: the pairs were delivered."
    reason: str
    pairs: int


def count_losses(
    runs: DataFrame, expected: DataFrame, reachable: DataFrame, side_m: float
) -> Callable[[DataFrame], DataFrame]:
    """From the log of runs to the columns of `LossCount`; `reachable` holds run, event, node and reach."""

    def transform(log: DataFrame) -> DataFrame:
        finished = F.broadcast(runs.where("status = 'done'").select("run", "workload", "warm_up_s"))
        measured = log.join(finished, "run").where("time >= warm_up_s")
        wanted = (
            pairs(measured, finished, expected)
            .where("wanted")
            .select("run", "event", "node", "got", "receptions", "sent", "x_m", "y_m")
            .join(reachable, ["run", "event", "node"], "left")
        )
        at_receiver = _most_frequent(measured, ["run", "event", "node"], "dropped")
        on_the_way = _most_frequent(measured, ["run", "event"], "dropped_on_the_way")
        told = wanted.join(at_receiver, ["run", "event", "node"], "left").join(on_the_way, ["run", "event"], "left")
        cause = (
            F.when(F.col("got"), None)
            .when(F.col("reach") == "no", "impossible")
            .when(F.col("reach") == "by carrying", "needed carrying")
            .otherwise("lost")
        )
        reason = (
            F.when(F.col("got"), "")
            .when(F.col("dropped").isNotNull(), F.concat(F.lit(f"{DROPPED}: "), "dropped"))
            .when(F.col("receptions") > 0, HEARD)
            .when(~F.col("sent"), NEVER_SENT)
            .when(F.col("dropped_on_the_way").isNotNull(), F.concat(F.lit(f"{NEVER_HEARD}: "), "dropped_on_the_way"))
            .otherwise(NEVER_HEARD)
        )
        squares = [
            F.when(~F.isnan(name), F.floor(F.col(name) / side_m) * side_m).cast("double").alias(name)
            for name in ("x_m", "y_m")
        ]
        return (
            told.select("run", *squares, cause.alias("cause"), reason.alias("reason"))
            .groupBy("run", "x_m", "y_m", "cause", "reason")
            .agg(F.count("*").alias("pairs"))
        )

    return transform


def _most_frequent(log: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """The drop reason that occurs most for each key."""
    counted = log.where("kind = 'drop' and event != ''").groupBy(*keys, "detail").count()
    order = Window.partitionBy(*keys).orderBy(F.col("count").desc(), "detail")
    return (
        counted.withColumn("place", F.row_number().over(order))
        .where("place = 1")
        .select(*keys, F.col("detail").alias(name))
    )


def loss_counts(counted: DataFrame) -> list[LossCount]:
    """The rows as plain values."""
    names = ("run", "x_m", "y_m", "cause", "reason", "pairs")
    return [LossCount(**{name: row[name] for name in names}) for row in counted.select(*names).collect()]


def square_side_m(extents: Iterable[tuple[float, float]]) -> float:
    """A round side, so that a map of this width and height has about `CELLS` squares in a row."""
    longest = max((max(one) for one in extents), default=0.0)
    rough = max(longest / CELLS, 1.0)
    sides = [factor * 10.0**power for power in range(7) for factor in (1, 2, 2.5, 5)]
    return min(sides, key=lambda side: abs(side - rough))
