"""The oracle against brute force: every event, every subscription, one at a time."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from oracle_cases import Case, with_legs
from pyspark.sql import DataFrame, SparkSession

from earshot import Area, Circle, Event, Position, Velocity
from earshot.errors import LakeError
from earshot.geometry import closing_speed_m_s
from earshot.pipeline.lake.tables import EVENTS, POSITIONS, SUBSCRIPTIONS, arrow_schema
from earshot.pipeline.oracle.content_join import EVENTS_A_SLICE, SUBSCRIPTIONS_A_PART, fit_one_group
from earshot.pipeline.oracle.oracle import expected_receivers
from earshot.pipeline.oracle.whole_workloads import expected_of
from earshot.pipeline.oracle.workloads import event_of, event_row
from earshot.pipeline.spark.failures import named_errors

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [Case(seed) for seed in range(200)]


@pytest.fixture(scope="module")
def frames(spark: SparkSession, cases: list[Case]) -> list[DataFrame]:
    """Events, subscriptions and positions of most cases."""
    rows = [[row for case in cases[:150] for row in case.rows()[k]] for k in range(3)]
    tables = (EVENTS, SUBSCRIPTIONS, POSITIONS)
    return [spark.createDataFrame(rows, table.ddl) for rows, table in zip(rows, tables, strict=True)]


@pytest.mark.parametrize("counts", [(None, None), (1_000, None), (1_000, 1_000)])
def test_the_oracle_agrees_with_brute_force_on_random_cases(
    cases: list[Case], frames: list[DataFrame], counts: tuple[int | None, int | None]
) -> None:
    events, wishes, positions = frames
    rows = events.transform(expected_receivers(wishes, positions, *counts)).collect()
    found = [(row["workload"], row["event"], row["node"], row["subscription"]) for row in rows]
    truth = set().union(*(case.brute_force for case in cases[:150]))
    assert len(truth) > 200
    assert set(found) == truth
    assert len(found) == len(truth), "no pair is reported twice"


def test_few_events_and_subscriptions_are_not_counted_first() -> None:
    assert fit_one_group(EVENTS_A_SLICE, SUBSCRIPTIONS_A_PART)
    assert not fit_one_group(EVENTS_A_SLICE + 1, 1)
    assert not fit_one_group(1, SUBSCRIPTIONS_A_PART + 1)
    assert not fit_one_group(None, 1)
    assert not fit_one_group(1, None)


@pytest.mark.parametrize("has_legs", [False, True])
def test_a_task_that_holds_a_workload_agrees_with_brute_force_on_random_cases(
    cases: list[Case], has_legs: bool
) -> None:
    truths = 0
    for case in cases:
        events, wishes, positions = case.rows()
        if has_legs:
            positions = [row for node in case.ways for row in with_legs([r for r in positions if r["node"] == node])]
        Random(1).shuffle(positions)
        tables = [
            pa.Table.from_pylist(rows, schema=arrow_schema(table, with_partitions=True))
            for table, rows in (("events", events), ("subscriptions", wishes), ("positions", positions))
        ]
        rows = expected_of(*tables).to_pylist()
        found = [(row["workload"], row["event"], row["node"], row["subscription"]) for row in rows]
        assert set(found) == case.brute_force
        assert len(found) == len(set(found)), "no pair is reported twice"
        truths += len(found)
        no_places = expected_of(tables[0], tables[1], tables[2].slice(0, 0))
        assert no_places.to_pylist() == [row for row in rows if row["why"] == "content"]
    assert truths > 200


def test_a_node_is_there_from_its_first_moment_to_its_last(spark: SparkSession) -> None:
    rows = [("n", 0.0, 0.0), ("n", 10.0, 30.0), ("once", 10.0, 5.0)]
    about = {"trace": "w", "y_m": 0.0, "speed_m_s": None, "heading_deg": None}
    positions = [{**about, "node": node, "time": time, "x_m": x} for node, time, x in rows]
    moments = [("first", 0.0, 0.0), ("last", 10.0, 30.0), ("later", 10.001, 30.0), ("once", 10.0, 5.0)]
    events = [
        event_row("w", Event(type="A", id=id, source="x", time=time, area=Area(Circle(4.0), Position(x, 0.0))))
        for id, time, x in moments
    ]
    wish = {"workload": "w", "filter": "A: true", "region": None, "start": 0.0, "end": None}
    wishes = [{**wish, "subscription": node, "node": node} for node in ("n", "once")]
    transform = expected_receivers(
        spark.createDataFrame(wishes, SUBSCRIPTIONS.ddl), spark.createDataFrame(positions, POSITIONS.ddl)
    )
    found = spark.createDataFrame(events, EVENTS.ddl).transform(transform).collect()
    assert sorted((row["event"], row["node"]) for row in found) == [("first", "n"), ("last", "n"), ("once", "once")]


def test_brute_force_itself_knows_who_approaches() -> None:
    case = Case(3)
    (node, *_) = sorted(case.ways)
    viewer = case.viewer(node, 2.0)
    later = case.viewer(node, 2.001)
    target = Position(500.0, 500.0)
    shrinks = viewer.position.distance_to(target) > later.position.distance_to(target)
    assert (closing_speed_m_s(viewer.position, viewer.velocity, target, Velocity(0, 0)) > 0) == shrinks


def test_events_with_areas_need_positions(spark: SparkSession) -> None:
    event = Event(type="A", id="e", source="x", area=Area(Circle(10)))
    wish = {
        "workload": "w",
        "subscription": "s",
        "node": "n",
        "filter": "A: true",
        "region": None,
        "start": 0.0,
        "end": None,
    }
    events = spark.createDataFrame([event_row("w", event)], EVENTS.ddl)
    wishes = spark.createDataFrame([wish], SUBSCRIPTIONS.ddl)
    with pytest.raises(LakeError, match="needs the positions table"), named_errors():
        events.transform(expected_receivers(wishes)).collect()


@pytest.mark.parametrize(
    "event",
    [
        Event(type="A", content={"a": 1, "b": 2.5, "c": "x", "d": True}, id="1", source="n", time=3.0),
        Event(type="A", content={"p": Position(1, 2)}, position=Position(1, 1), velocity=Velocity(0, 1)),
        Event.from_xml(
            "<A b='1'><c>d</c>e</A>", id="2", area=Area(Circle(3), Position(0, 1)), lifespan_s=4.0, priority=2
        ),
    ],
)
def test_an_event_survives_its_row(event: Event) -> None:
    assert event_of(event_row("w", event)) == event
