"""Circles joined with legs on time and cell, against every circle and every node, one at a time."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from earshot.pipeline.oracle.place_join import legs, level_of, node_places, places_in
from earshot.records.trajectories import Trajectory, legs_from
from sizes import sized

pytestmark = pytest.mark.spark

CIRCLES = sized(40, 300)


def border(random: Random, most: float, step: float) -> float:
    """A number up to `most`, half of the time exactly on a border of buckets or cells."""
    return random.choice([random.uniform(-most, most), step * random.randrange(int(most / step))])


def wanderer(random: Random, name: str) -> Trajectory:
    """A node with short and long legs, slow and fast ones, which begin on both sides of borders."""
    time, x, y = border(random, 40.0, 4.0), border(random, 2000.0, 32.0), border(random, 2000.0, 32.0)
    knots = [(time, x, y)]
    for _ in range(random.randint(0, 12)):
        time += random.choice([0.25, 1.0, 4.0, random.uniform(0.1, 30.0)])
        step_m = random.choice([0.0, 5.0, 128.0, 3000.0])
        x, y = x + random.uniform(-step_m, step_m), y + random.uniform(-step_m, step_m)
        knots.append((time, x, y))
    return Trajectory.through(name, knots)


def test_of_rows_at_one_time_the_one_furthest_east_counts_in_any_order(spark: SparkSession) -> None:
    rows = [(0.0, 0.0, 0.0), (4.0, 20.0, 1.0), (4.0, 40.0, -1.0), (4.0, 40.0, 8.0), (8.0, 10.0, 0.0), (8.0, 60.0, 8.0)]
    random = Random(3)
    for _ in range(3):
        random.shuffle(rows)
        positions = spark.createDataFrame(
            [("w", "n", *row) for row in rows], "trace string, node string, time double, x_m double, y_m double"
        ).repartition(random.randint(1, 4))
        found = legs(positions).select("time", "until", "x_m", "y_m", "x_m_s", "y_m_s").orderBy("time").collect()
        assert [tuple(row) for row in found] == [
            (0.0, 4.0, 0.0, 0.0, 10.0, 2.0),
            (4.0, 8.0, 40.0, 8.0, 5.0, 0.0),
            (8.0, 8.0, 60.0, 8.0, 5.0, 0.0),
        ]


def test_who_was_in_a_circle_is_what_trying_all_nodes_says(spark: SparkSession) -> None:
    random = Random(5)
    nodes = [wanderer(random, f"n{number}") for number in range(60)]
    circles = []
    for number in range(CIRCLES):
        near = random.choice(nodes)
        place = random.randrange(len(near.times))
        at = random.choice([float(near.times[place]), border(random, 60.0, 4.0)])
        x, y = float(near.xs[place]) + border(random, 200.0, 32.0), float(near.ys[place])
        circles.append((f"e{number}", at, x, y, random.choice([5.0, 32.0, 150.0, 900.0, 1e9])))
    truth, where = set(), set()
    for event, at, x, y, radius in circles:
        for node in nodes:
            if (known := node.recorded_at(at)) is not None:
                where.add((event, node.name))
                if math.hypot(known[0].x_m - x, known[0].y_m - y) <= radius:
                    truth.add((event, node.name))
    assert CIRCLES < len(truth) < len(where) - CIRCLES
    rows = []
    for node in nodes:
        kept = legs_from(np.zeros(len(node.times), dtype=np.int64), node.times, node.xs, node.ys)
        rows += [("w", node.name, *row) for row in np.stack([node.times, node.xs, node.ys, *kept], axis=1).tolist()]
    columns = "trace string, node string, time double, x_m double, y_m double, until double, x_m_s double, y_m_s double"
    positions = spark.createDataFrame(rows, columns)
    stored, found = legs(positions), legs(positions.drop("until", "x_m_s", "y_m_s"))
    # Equal legs have equal answers, so one of the two is asked.
    assert sorted(map(tuple, stored.collect())) == sorted(map(tuple, found.collect()))
    asked = spark.createDataFrame(
        [("w", *circle) for circle in circles],
        "workload string, event string, time double, x_m double, y_m double, radius_m double",
    ).withColumn("level", level_of(F.col("radius_m")))
    inside = [(row["event"], row["node"]) for row in places_in(asked, found).collect()]
    assert set(inside) == truth
    assert len(inside) == len(truth), "no node is found twice"
    names = spark.createDataFrame([("w", node.name) for node in nodes], "workload string, node string")
    placed = [(row["event"], row["node"]) for row in node_places(
        asked.select("workload", "event", "time").join(names, "workload"), found
    ).collect()]  # fmt: skip
    assert (set(placed), len(placed)) == (where, len(where))
