"""Who was where when, by the queries themselves: DuckDB runs them in place of Spark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as F
from spark_on_duckdb import Frame, Session

from earshot.pipeline.oracle import place_join
from earshot.pipeline.oracle.place_join import LEG_COLUMNS, legs, level_of, node_places, places_in, radius_of
from earshot.records.trajectories import Trajectory, legs_from

POSITIONS = "trace string, node string, time double, x_m double, y_m double"
CIRCLES = "workload string, event string, time double, x_m double, y_m double, radius_m double"


def tuples(frame: Frame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*names).collect())


def numbers(session: Session, name: str, values: Sequence[float]) -> Frame:
    return session.createDataFrame([(one,) for one in values], f"{name} double")


# Levels and classes.


def test_a_circles_level_is_the_first_whose_cells_are_as_wide_as_its_radius(quick_spark: Session) -> None:
    known = [
        (0.0, 0, 32.0), (1.0, 0, 32.0), (32.0, 0, 32.0), (32.1, 1, 128.0), (128.0, 1, 128.0), (128.1, 2, 512.0),
        (512.0, 2, 512.0), (32.0 * 4**10, 10, 32.0 * 4**10), (32.0 * 4**10 + 100.0, 11, 1e300), (1e15, 11, 1e300),
        (1e300, 11, 1e300),
    ]  # fmt: skip
    frame = numbers(quick_spark, "radius_m", [one[0] for one in known]).withColumn("level", level_of(F.col("radius_m")))
    assert tuples(frame.withColumn("most", radius_of(F.col("level"))), "radius_m", "level", "most") == known


def test_a_legs_classes_bound_how_long_it_lasts_and_how_far_it_goes(quick_spark: Session) -> None:
    known = [
        (0.0, 0.0, -4, 0), (1 / 256, 0.0, -4, 0), (0.0040, 0.0, -3, 0), (1 / 64, 0.0, -3, 0), (1.0, 0.0, 0, 0),
        (1.1, 0.0, 1, 0), (4.0, 8.0, 1, 0), (4.0, 8.1, 1, 1), (4.1, 32.0, 2, 2), (16.0, 8.0, 2, 1),
        (4.0**20, 0.0, 20, 0), (4.0**20 * 1.001, 0.0, 21, 0), (1.0, 32.0 * 4**10, 0, 10), (1.0, 33.0 * 4**10, 0, 11),
    ]  # fmt: skip
    legs_of = [(lasting, speed, 0.0, lasting, 0.6 * speed, -0.8 * speed) for lasting, speed, *_ in known]
    columns = "lasting double, speed double, time double, until double, x_m_s double, y_m_s double"
    found = place_join._classed(quick_spark.createDataFrame(legs_of, columns))  # type: ignore[arg-type]
    assert tuples(found, "lasting", "speed", "length", "going") == sorted(known)  # type: ignore[arg-type]


def test_a_bucket_is_as_wide_as_its_classes_longest_leg(quick_spark: Session) -> None:
    known = [(-4, 1 / 256), (-1, 0.25), (0, 1.0), (2, 16.0), (20, 4.0**20), (21, 1e300)]
    frame = quick_spark.createDataFrame([one[:1] for one in known], "length int")
    assert tuples(frame.withColumn("wide", place_join._seconds(F.col("length"))), "length", "wide") == known


def test_different_keys_have_different_numbers(quick_spark: Session) -> None:
    """All that are near each other do; those far apart may share one."""
    columns = "length int, going int, level int, bucket long, cell_x long, cell_y long"
    keys = [
        (length, going, level, bucket, x, y)
        for length in (-4, 1, 21) for going in (0, 1, 11) for level in (0, 2, 11) for bucket in (-1, 0, 5)
        for x in (-2, 0, 1) for y in (-1, 0, 3)
    ]  # fmt: skip
    frame = quick_spark.createDataFrame(keys, columns).withColumn("number", place_join._number())
    found = [row["number"] for row in frame.collect()]
    assert len({*found}) == len(keys)
    assert None not in found
    nothing = quick_spark.createDataFrame([(None,) * 6], columns).withColumn("number", place_join._number())
    assert [row["number"] for row in nothing.collect()] == [0]


# Legs.


def test_of_rows_at_one_time_the_one_furthest_east_and_then_north_counts(quick_spark: Session) -> None:
    rows = [(4.0, 40.0, 8.0), (0.0, 0.0, 0.0), (4.0, 20.0, 9.0), (8.0, 60.0, 8.0), (4.0, 40.0, -1.0), (8.0, 10.0, 0.0)]
    positions = quick_spark.createDataFrame([("w", "n", *row) for row in rows], POSITIONS)
    assert tuples(legs(positions), "workload", "node", "time", "until", "x_m", "y_m", "x_m_s", "y_m_s") == [
        ("w", "n", 0.0, 4.0, 0.0, 0.0, 10.0, 2.0),
        ("w", "n", 4.0, 8.0, 40.0, 8.0, 5.0, 0.0),
        ("w", "n", 8.0, 8.0, 60.0, 8.0, 5.0, 0.0),
    ]


def test_nodes_and_traces_have_legs_of_their_own_and_one_row_stands_still(quick_spark: Session) -> None:
    rows = [("v", "n", 0.0, 1.0, 2.0), ("w", "m", 1.0, 5.0, 5.0), ("w", "n", 2.0, 9.0, 9.0), ("w", "n", 3.0, 9.5, 8.0)]
    found = legs(quick_spark.createDataFrame(rows, POSITIONS))
    assert tuples(found, "workload", "node", "time", "until", "x_m_s", "y_m_s") == [
        ("v", "n", 0.0, 0.0, 0.0, 0.0),
        ("w", "m", 1.0, 1.0, 0.0, 0.0),
        ("w", "n", 2.0, 3.0, 0.5, -1.0),
        ("w", "n", 3.0, 3.0, 0.5, -1.0),
    ]


def test_rows_that_know_their_leg_keep_it_and_the_others_find_theirs(quick_spark: Session) -> None:
    rows = [
        ("w", "known", 0.0, 0.0, 0.0, 7.0, 3.0, 4.0), ("w", "known", 9.0, 0.0, 0.0, 9.0, 1.0, 1.0),
        ("w", "old", 0.0, 0.0, 0.0, None, None, None), ("w", "old", 2.0, 4.0, 6.0, None, None, None),
    ]  # fmt: skip
    frame = quick_spark.createDataFrame(rows, f"{POSITIONS}, until double, x_m_s double, y_m_s double")
    assert tuples(legs(frame), "node", "time", "until", "x_m_s", "y_m_s") == [
        ("known", 0.0, 7.0, 3.0, 4.0),
        ("known", 9.0, 9.0, 1.0, 1.0),
        ("old", 0.0, 2.0, 2.0, 3.0),
        ("old", 2.0, 2.0, 2.0, 3.0),
    ]


# Circles and nodes.


def wanderers(rng: np.random.Generator, count: int) -> list[Trajectory]:
    """Nodes with short and long legs, slow and fast ones, half of which begin on borders of buckets and cells."""
    found = []
    for number in range(count):
        knots = int(rng.integers(1, 9))
        times = -20.0 + 4.0 * rng.integers(0, 8) + np.cumsum(rng.choice([0.25, 1.0, 4.0, 7.3, 30.0], knots))
        steps = rng.uniform(-1, 1, (knots, 2)) * rng.choice([0.0, 5.0, 128.0, 3000.0], (knots, 1))
        places = 32.0 * rng.integers(-20, 20, 2) + np.cumsum(steps, axis=0)
        found.append(
            Trajectory.through(f"n{number}", [(float(t), *map(float, p)) for t, p in zip(times, places, strict=True)])
        )
    return found


@pytest.fixture
def nodes() -> list[Trajectory]:
    return wanderers(np.random.default_rng(5), 30)


def legs_of_all(session: Session, nodes: Sequence[Trajectory], workload: str = "w") -> Frame:
    rows = []
    for node in nodes:
        kept = legs_from(np.zeros(len(node.times), dtype=np.int64), node.times, node.xs, node.ys)
        whole = np.stack([node.times, node.xs, node.ys, *kept], axis=1).tolist()
        rows += [(workload, node.name, *row) for row in whole]
    return legs(session.createDataFrame(rows, f"{POSITIONS}, until double, x_m_s double, y_m_s double"))


@pytest.mark.parametrize("are_few", [False, True])
def test_who_was_in_a_circle_is_what_trying_all_nodes_says(
    quick_spark: Session, nodes: list[Trajectory], are_few: bool
) -> None:
    rng = np.random.default_rng(6)
    circles = []
    for number in range(40):
        near = nodes[int(rng.integers(len(nodes)))]
        knot = int(rng.integers(len(near.times)))
        at = float(rng.choice([near.times[knot], rng.uniform(-20, 60), 4.0 * rng.integers(-5, 15)]))
        x, y = float(near.xs[knot]) + 32.0 * int(rng.integers(-3, 4)), float(near.ys[knot])
        circles.append((f"e{number}", at, x, y, float(rng.choice([5.0, 32.0, 150.0, 900.0, 1e9]))))
    truth = {}
    for event, at, x, y, radius_m in circles:
        for node in nodes:
            known = node.recorded_at(at)
            if known is not None and (far := math.hypot(known[0].x_m - x, known[0].y_m - y)) <= radius_m:
                truth[event, node.name] = far
    assert 40 < len(truth) < 600
    found = legs_of_all(quick_spark, nodes).unionByName(legs_of_all(quick_spark, nodes, "another"))
    asked = quick_spark.createDataFrame([("w", *circle) for circle in circles], CIRCLES)
    asked = asked.withColumn("level", level_of(F.col("radius_m")))
    rows = places_in(asked, found, are_few).select("event", "node", "distance_m").collect()
    assert len(rows) == len(truth), "no node is found twice"
    assert {(row["event"], row["node"]): row["distance_m"] for row in rows} == pytest.approx(truth, abs=1e-6)


def test_an_answer_says_on_which_leg_the_node_was_and_keeps_what_the_asker_gave(quick_spark: Session) -> None:
    positions = quick_spark.createDataFrame([("w", "n", 0.0, 10.0, 0.0), ("w", "n", 4.0, 18.0, -12.0)], POSITIONS)
    circle = [("w", "e", 1.0, 12.0, 1.0, 5.0, 0, "mine"), ("w", "far", 1.0, 12.0, 1.0, 3.9, 0, "too small")]
    asked = quick_spark.createDataFrame(circle, f"{CIRCLES}, level int, note string")
    found = places_in(asked, legs(positions))
    assert found.columns == [*asked.columns, "node", *LEG_COLUMNS, "distance_m"]
    assert [tuple(row) for row in found.collect()] == [(*circle[0], "n", 0.0, 10.0, 0.0, 2.0, -3.0, 4.0)]


def test_at_a_circles_border_the_predicate_decides(quick_spark: Session) -> None:
    over = {"on it": 0.0, "rounded": 0.9e-6, "out": 2e-6, "in": -1.0, "far": 0.01}
    positions = [("w", node, 0.0, 100.0 + more, 0.0) for node, more in over.items()]
    asked = quick_spark.createDataFrame([("w", "e", 0.0, 0.0, 0.0, 100.0, 1)], f"{CIRCLES}, level int")
    found = places_in(asked, legs(quick_spark.createDataFrame(positions, POSITIONS)))
    assert tuples(found, "node") == [("in",), ("on it",), ("rounded",)]


def test_a_node_is_there_from_its_first_row_to_its_last(quick_spark: Session) -> None:
    positions = quick_spark.createDataFrame([("w", "n", 0.0, 0.0, 0.0), ("w", "n", 4.0, 8.0, 0.0)], POSITIONS)
    asked = [("w", "n", time, f"at {time}") for time in (-0.1, 0.0, 3.9, 4.0, 4.1)]
    rows = node_places(
        quick_spark.createDataFrame(asked, "workload string, node string, time double, note string"), legs(positions)
    )
    assert sorted(tuple(row) for row in rows.collect()) == [
        ("w", "n", 0.0, "at 0.0", 0.0, 0.0, 0.0, 2.0, 0.0), ("w", "n", 3.9, "at 3.9", 0.0, 0.0, 0.0, 2.0, 0.0),
        ("w", "n", 4.0, "at 4.0", 4.0, 8.0, 0.0, 2.0, 0.0),
    ]  # fmt: skip


def test_where_each_node_was_is_what_its_trajectory_says(quick_spark: Session, nodes: list[Trajectory]) -> None:
    rng = np.random.default_rng(7)
    borders = [4.0 * float(number) for number in range(-5, 15)]
    times = sorted({*borders, *map(float, rng.uniform(-20, 60, 20)), *(float(node.times[-1]) for node in nodes[:9])})
    asked = quick_spark.createDataFrame(
        [("w", node.name, time) for node in nodes for time in times], "workload string, node string, time double"
    )
    truth = {}
    for node in nodes:
        for time in times:
            if (known := node.recorded_at(time)) is not None:
                truth[node.name, time] = (known[0].x_m, known[0].y_m)
    rows = node_places(asked, legs_of_all(quick_spark, nodes)).collect()
    found = {
        (row["node"], row["time"]): (
            row["leg_x_m"] + row["leg_x_m_s"] * (row["time"] - row["leg_time"]),
            row["leg_y_m"] + row["leg_y_m_s"] * (row["time"] - row["leg_time"]),
        )
        for row in rows
    }
    assert len(rows) == len(found) == len(truth)
    assert [found[key] == pytest.approx(place, abs=1e-6) for key, place in truth.items()] == [True] * len(truth)


def test_only_legs_of_the_workloads_asked_for_are_looked_at(quick_spark: Session) -> None:
    rows = [(workload, "n", 0.0, 0.0, 0.0) for workload in "vw"]
    found = legs(quick_spark.createDataFrame(rows, POSITIONS))
    columns = "workload string, node string, time double"
    asked = quick_spark.createDataFrame([("v", "n", 0.0), ("w", "n", 0.0)], columns)
    only = quick_spark.createDataFrame([("w",)], "workload string")
    assert tuples(node_places(asked, found), "workload") == [("v",), ("w",)]
    assert tuples(node_places(asked, found, only), "workload") == [("w",)]
