"""The oracle's queries and its one-task answer against brute force; DuckDB runs the queries in place of Spark."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from oracle_cases import Case, with_legs
from spark_on_duckdb import Session

from earshot import Area, Circle, Event, Position, Velocity
from earshot.errors import LakeError
from earshot.geometry import Rectangle
from earshot.pipeline.lake.tables import EVENTS, POSITIONS, SUBSCRIPTIONS, arrow_schema
from earshot.pipeline.oracle import content_join
from earshot.pipeline.oracle import oracle as oracle_module
from earshot.pipeline.oracle.content_join import candidates_by_content
from earshot.pipeline.oracle.oracle import _circles, expected_receivers, with_demands
from earshot.pipeline.oracle.whole_workloads import expected_of
from earshot.pipeline.oracle.workloads import area_json, event_row

TABLES = (EVENTS, SUBSCRIPTIONS, POSITIONS)
CASES = [Case(seed) for seed in range(12)]
TRUTH = set().union(*(case.brute_force for case in CASES))


def frames(session: Session, cases: list[Case]) -> list[Any]:
    rows = [[row for case in cases for row in case.rows()[k]] for k in range(3)]
    return [session.createDataFrame(some, table.ddl) for some, table in zip(rows, TABLES, strict=True)]


def found_in(rows: list[Any]) -> list[tuple[str, str, str, str]]:
    return [tuple(row[name] for name in ("workload", "event", "node", "subscription")) for row in rows]  # type: ignore[misc]


@pytest.mark.parametrize(("counts", "size"), [((None, None), 2), ((1_000, None), 1_000), ((1_000, 1_000), 1_000)])
def test_the_queries_agree_with_brute_force_however_rows_are_dealt(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch, counts: tuple[int | None, int | None], size: int
) -> None:
    monkeypatch.setattr(content_join, "EVENTS_A_SLICE", size)
    monkeypatch.setattr(content_join, "SUBSCRIPTIONS_A_PART", size + 1)
    events, wishes, positions = frames(quick_spark, CASES)
    rows = events.transform(expected_receivers(wishes, positions, *counts)).collect()
    assert len(TRUTH) > 12
    assert set(found_in(rows)) == TRUTH
    assert len(rows) == len(TRUTH), "no pair is reported twice"
    asks = {case.workload: {wish["subscription"] for wish in case.wishes if asks_for_place(wish)} for case in CASES}
    has_area = {(case.workload, event.id): event.area is not None for case in CASES for event in case.events}
    assert {row["why"] for row in rows} == {"content", "content and place"}
    for row in rows:
        by_place = row["subscription"] in asks[row["workload"]] or has_area[row["workload"], row["event"]]
        assert row["why"] == ("content and place" if by_place else "content")


def asks_for_place(wish: dict[str, Any]) -> bool:
    """Of its node; `inside` is about where the event is."""
    words = ("within", "approaching", "receding")
    return wish["region"] is not None or any(word in wish["filter"] for word in words)


def test_wishes_whose_demands_are_known_are_not_parsed_again(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, wishes, positions = frames(quick_spark, CASES[:8])
    asked = wishes.transform(with_demands)
    monkeypatch.setattr(oracle_module, "with_demands", None)
    rows = events.transform(expected_receivers(asked, positions)).collect()
    assert set(found_in(rows)) == set().union(*(case.brute_force for case in CASES[:8]))


@pytest.mark.parametrize("few", [True, False])
def test_few_events_are_sent_to_where_the_positions_are(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    asked: list[bool] = []
    places_in = oracle_module.places_in
    monkeypatch.setattr(
        oracle_module, "places_in", lambda circles, found, are_few: asked.append(are_few) or places_in(circles, found)
    )
    events, wishes, positions = frames(quick_spark, CASES[:2])
    events.transform(expected_receivers(wishes, positions, 5_000 if few else 5_001))
    events.transform(expected_receivers(wishes, positions))
    assert asked == [few, False]


@pytest.mark.parametrize("has_legs", [False, True])
def test_a_task_that_holds_a_workload_agrees_with_brute_force(has_legs: bool) -> None:
    for case in CASES:
        events, wishes, positions = case.rows()
        if has_legs:
            positions = [row for node in case.ways for row in with_legs([r for r in positions if r["node"] == node])]
        Random(1).shuffle(positions)
        tables = [
            pa.Table.from_pylist(rows, schema=arrow_schema(table.name, with_partitions=True))
            for table, rows in zip(TABLES, (events, wishes, positions), strict=True)
        ]
        rows = expected_of(*tables).to_pylist()
        assert set(found_in(rows)) == case.brute_force
        assert len(rows) == len(case.brute_force)
        no_places = expected_of(tables[0], tables[1], tables[2].slice(0, 0))
        assert no_places.to_pylist() == [row for row in rows if row["why"] == "content"]


def test_with_only_those_there_nobody_receives_before_its_first_position_or_after_its_last() -> None:
    case = next(case for case in CASES if case.brute_force)
    _, wishes, positions = case.rows()
    wishes = [{**wish, "filter": "true", "region": None, "start": -9.0, "end": None} for wish in wishes]
    events = [Event(type="A", id=f"at {time}", source="x", time=time) for time in (-1.0, 0.0, 5.0, 10.0, 11.0)]
    tables = [
        pa.Table.from_pylist(rows, schema=arrow_schema(table.name, with_partitions=True))
        for table, rows in zip(TABLES, ([event_row("w", one) for one in events], wishes, positions), strict=True)
    ]
    everybody = {row["event"] for row in expected_of(*tables).to_pylist()}
    there = {row["event"] for row in expected_of(*tables, only_placed=True).to_pylist()}
    assert (everybody, there) == ({one.id for one in events}, {"at 0.0", "at 5.0", "at 10.0"})


def test_a_node_is_there_from_its_first_moment_to_its_last(quick_spark: Session) -> None:
    rows = [("n", 0.0, 0.0), ("n", 10.0, 30.0), ("once", 10.0, 5.0)]
    positions = [{"trace": "w", "node": node, "time": time, "x_m": x, "y_m": 0.0} for node, time, x in rows]
    moments = [("first", 0.0, 0.0), ("last", 10.0, 30.0), ("later", 10.001, 30.0), ("once", 10.0, 5.0)]
    events = [
        event_row("w", Event(type="A", id=id, source="x", time=time, area=Area(Circle(4.0), Position(x, 0.0))))
        for id, time, x in moments
    ]
    wish = {"workload": "w", "filter": "A: true", "region": None, "start": 0.0, "end": None}
    wishes = [{**wish, "subscription": node, "node": node} for node in ("n", "once")]
    made = [
        quick_spark.createDataFrame(some, table.ddl)
        for some, table in zip((events, wishes, positions), TABLES, strict=True)
    ]
    found = made[0].transform(expected_receivers(made[1], made[2])).collect()
    there = [("first", "n"), ("last", "n"), ("once", "once")]
    assert sorted((row["event"], row["node"]) for row in found) == there
    whole = [frame.toArrow() for frame in made]
    assert sorted((row["event"], row["node"]) for row in expected_of(*whole).to_pylist()) == there


@pytest.mark.parametrize(
    ("area", "filter", "needed"),
    [(None, "A: true", False), (Area(Circle(10)), "A: true", True), (None, "A: within 9 m", True)],
)
def test_positions_are_needed_where_an_event_or_a_wish_asks_for_places(
    quick_spark: Session, area: Area | None, filter: str, needed: bool
) -> None:
    event = Event(type="A", id="e", source="x", area=area)
    wish = {"workload": "w", "subscription": "s", "node": "n", "filter": filter, "start": 0.0}
    events = quick_spark.createDataFrame([event_row("w", event)], EVENTS.ddl)
    wishes = quick_spark.createDataFrame([wish], SUBSCRIPTIONS.ddl)
    if needed:
        with pytest.raises(LakeError, match="needs the positions table"):
            events.transform(expected_receivers(wishes)).collect()
    else:
        found = events.transform(expected_receivers(wishes)).collect()
        assert [tuple(row) for row in found] == [("w", "e", "n", "s", "content")]


def test_an_event_with_an_area_is_asked_about_in_a_circle_around_it() -> None:
    turned = Area(Rectangle(30, 40, 20), Position(40, 60))
    batch = pa.RecordBatch.from_pylist(
        [
            {"workload": "w", "event": "e", "time": 1.0, "area": area_json(Area(Circle(8), Position(1, 2)))},
            {"workload": "w", "event": "f", "time": 2.0, "area": area_json(turned)},
        ]
    )
    (found,) = _circles([batch])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("w", "e", 1.0, 1.0, 2.0, 8.0), ("w", "f", 2.0, 40.0, 60.0, turned.shape.reach_m),
    ]  # fmt: skip


def test_a_wish_has_the_level_of_its_filters_distance(quick_spark: Session) -> None:
    filters = {"A: within 32 m": (32.0, 0), "A: within 100 m": (100.0, 1), "A: true": (None, None)}
    rows = [{"workload": "w", "subscription": one, "node": "n", "filter": one, "start": 0.0} for one in filters]
    found = quick_spark.createDataFrame(rows, SUBSCRIPTIONS.ddl).transform(with_demands)
    assert found.columns == [*SUBSCRIPTIONS.columns, "types", "asks_for_place", "reach_m", "reach_level"]
    assert {row["filter"]: (row["reach_m"], row["reach_level"]) for row in found.collect()} == filters


@pytest.mark.parametrize("one_group", [True, False])
def test_events_meet_the_wishes_of_their_own_workload(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch, one_group: bool
) -> None:
    """However few share a slice or a part, each pair meets once."""
    monkeypatch.setattr(content_join, "EVENTS_A_SLICE", 2)
    monkeypatch.setattr(content_join, "SUBSCRIPTIONS_A_PART", 3)
    groups: list[tuple[int, int]] = []
    matched = content_join._matched
    monkeypatch.setattr(content_join, "_matched", lambda a, b: groups.append((a.num_rows, b.num_rows)) or matched(a, b))
    events = [
        event_row(workload, Event(type="A", id=f"{workload}{number}", source="x", time=1.0, velocity=Velocity(0, 1)))
        for workload, count in (("v", 3), ("w", 5)) for number in range(count)
    ]  # fmt: skip
    wish = {"filter": "A: true", "region": None, "start": 0.0, "end": None}
    wishes = [
        {**wish, "workload": workload, "subscription": f"s{number}", "node": f"n{number}"}
        for workload, count in (("v", 7), ("w", 2)) for number in range(count)
    ]  # fmt: skip
    made = quick_spark.createDataFrame(events, EVENTS.ddl), quick_spark.createDataFrame(wishes, SUBSCRIPTIONS.ddl)
    rows = made[0].transform(candidates_by_content(made[1], one_group)).collect()
    assert sorted((row["workload"], row["event"], row["node"]) for row in rows) == sorted(
        [("v", f"v{e}", f"n{s}") for e in range(3) for s in range(7)]
        + [("w", f"w{e}", f"n{s}") for e in range(5) for s in range(2)]
    )
    assert {len(row) for row in rows} == {7}
    # Two slices by three parts, and three by one; some may be empty.
    assert len(groups) == 2 if one_group else 4 < len(groups) <= 9
