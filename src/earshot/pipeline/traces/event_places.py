"""Where events were published: filled in from a trace where a workload does not say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILLED = ("x_m", "y_m", "x_m_s", "y_m_s")


def placed_from(positions: DataFrame, max_gap_s: float = math.inf) -> Callable[[DataFrame], DataFrame]:
    """Events without a position get their publisher's place and velocity at that time: an as-of join with its last
    row before. An event of a node that is not there at that time stays without."""
    from pyspark.sql import functions as F

    goes_on = (F.col("time") < F.col("leg_until")) & (F.col("leg_until") - F.col("leg_time") <= max_gap_s)
    legs = positions.select(
        F.col("node").alias("source"),
        F.col("time").alias("leg_time"),
        F.coalesce("until", "time").alias("leg_until"),
        *(F.col(name).alias(f"leg_{name}") for name in _FILLED),
    )

    def transform(events: DataFrame) -> DataFrame:
        known = events.where("x_m is not null and y_m is not null")
        unknown = events.where("x_m is null or y_m is null")
        there = (F.col("time") >= F.col("leg_time")) & (goes_on | (F.col("time") == F.col("leg_time")))
        found = unknown.join(legs, "source").where(there)
        passed_s = F.col("time") - F.col("leg_time")
        places = found.select(
            "workload",
            "event",
            (F.col("leg_x_m") + F.col("leg_x_m_s") * passed_s).alias("at_x_m"),
            (F.col("leg_y_m") + F.col("leg_y_m_s") * passed_s).alias("at_y_m"),
            F.col("leg_x_m_s").alias("at_x_m_s"),
            F.col("leg_y_m_s").alias("at_y_m_s"),
        )
        filled = unknown.join(places, ["workload", "event"], "left").select(
            *(F.coalesce(f"at_{name}", name).alias(name) if name in _FILLED else F.col(name) for name in events.columns)
        )
        return known.unionByName(filled)

    return transform
