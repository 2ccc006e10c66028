"""Workloads as rows of the lake: what a scenario draws, and what rows say again."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from earshot import Area, Circle, Event, EventType, Position, Velocity
from earshot.errors import ScenarioError
from earshot.geometry import Proximity
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.tables import ANNOUNCEMENTS, EVENTS, SESSIONS, SUBSCRIPTIONS
from earshot.pipeline.oracle import whole_workloads
from earshot.pipeline.oracle.reachable import ContactNetwork
from earshot.pipeline.oracle.whole_workloads import _in_tasks, _legs_at, _reach
from earshot.pipeline.oracle.workloads import (
    EVENTS_ARROW,
    announcement_of,
    announcement_row,
    area_json,
    event_of,
    event_row,
    events_of,
    knot_rows,
    reacting_tables,
    span_of,
    subscription_row,
    workload_tables,
)
from earshot.protocols.machine import Announcement
from earshot.records.sessions import AnnouncementSpan, SubscriptionSpan
from earshot.records.trajectories import Trajectories, Trajectory
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.actions import Action, Unannounce, Workload

HERE = Area(Circle(5.0), Position(1.0, 2.0))


@pytest.mark.parametrize(
    "event",
    [
        Event("A", {"a": 1, "b": 2.5, "c": "x", "d": True}, id="1", source="n", time=3.0),
        Event("A", {"p": Position(1, 2)}, position=Position(1, 1), velocity=Velocity(0, 1)),
        Event("A", {"when": 3}, position=Position(1, 1)),
        Event.from_xml("<A b='1'><c>d</c>e</A>", id="2", area=HERE, lifespan_s=4.0, priority=2),
    ],
)
def test_an_event_survives_its_row(event: Event) -> None:
    row = event_row("w", event)
    assert list(row) == list(EVENTS.columns)
    assert event_of(row) == event
    assert list(events_of(pa.RecordBatch.from_pylist([row, row], schema=EVENTS_ARROW))) == [event, event]


@pytest.mark.parametrize("name", ["x_m", "y_m", "x_m_s", "y_m_s"])
def test_half_a_place_or_half_a_velocity_is_none(name: str) -> None:
    row = event_row("w", Event("A", {}, position=Position(1, 2), velocity=Velocity(3, 4)))
    event = event_of({**row, name: None})
    assert (event.position is None, event.velocity is None) == (not name.endswith("_s"), name.endswith("_s"))


def test_an_events_row_says_everything() -> None:
    event = Event("A", {"a": 1}, "e", "n", Position(1, 2), Velocity(3, 4), 5.0, HERE, 6.0, 7)
    assert event_row("w", event) == {
        "workload": "w", "event": "e", "type": "A", "source": "n", "time": 5.0, "x_m": 1, "y_m": 2, "x_m_s": 3,
        "y_m_s": 4, "area": area_json(HERE), "lifespan_s": 6.0, "priority": 7, "format": "json", "content": '{"a":1}',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("end", "until", "kept"),
    [(9.0, math.inf, 9.0), (math.inf, math.inf, None), (9.0, 9.0, 9.0), (9.1, 9.0, None), (math.inf, 9.0, None)],
)
def test_a_subscription_that_lasts_beyond_the_scenario_has_no_end(end: float, until: float, kept: float | None) -> None:
    span = SubscriptionSpan("n", "n/1", "A: true", HERE, 2.0, end)
    row = subscription_row("w", span, until)
    assert row == dict(
        zip(SUBSCRIPTIONS.columns, ("w", "n/1", "n", "A: true", area_json(HERE), 2.0, kept), strict=True)
    )
    again = SubscriptionSpan("n", "n/1", "A: true", HERE, 2.0, math.inf if kept is None else kept)
    assert span_of(row) == again
    assert span_of({**row, "region": None}).region is None


@pytest.mark.parametrize("proximity", [None, Proximity(Circle(50.0), Position(1.0, 2.0))])
@pytest.mark.parametrize("end", [9.0, math.inf])
def test_an_announcement_survives_its_row(proximity: Proximity | None, end: float) -> None:
    span = AnnouncementSpan("n", "A", proximity, 2.0, end)
    row = announcement_row("w", span)
    assert list(row) == list(ANNOUNCEMENTS.columns)
    assert (row["workload"], row["node"], row["type"], row["start"], row["end"]) == (
        "w", "n", "A", 2.0, None if end == math.inf else 9.0,
    )  # fmt: skip
    assert announcement_of(row) == span


def test_a_trajectory_is_a_row_at_the_beginning_at_each_knot_and_at_the_end() -> None:
    ways = Trajectories([Trajectory.through("a", [(0.0, 0.0, 0.0), (4.0, 8.0, 4.0), (20.0, 8.0, 36.0)])])
    rows = list(knot_rows("t", ways, 10.0))
    assert rows[0] == {
        "trace": "t", "node": "a", "time": 0.0, "x_m": 0.0, "y_m": 0.0, "until": 4.0, "x_m_s": 2.0, "y_m_s": 1.0,
        "speed_m_s": None, "heading_deg": None,
    }  # fmt: skip
    known = [tuple(row[name] for name in ("time", "x_m", "y_m", "until", "x_m_s", "y_m_s")) for row in rows]
    assert known[1:] == [(4.0, 8.0, 4.0, 10.0, 0.0, 2.0), (10.0, 8.0, 16.0, 10.0, 0.0, 2.0)]


# Scenarios.


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("base").with_(
        {
            "duration_s": 60.0,
            "warm_up_s": 0.0,
            "cool_down_s": 10.0,
            "nodes.node.count": 12,
            "faults": {"churn": {"mean_presence_s": 40.0, "mean_absence_s": 8.0}},
        }
    )


def test_a_workload_is_what_any_protocols_run_has(scenario: Scenario) -> None:
    """The engine's own record of a run is an independent truth."""
    drawn = workload_tables("w", scenario, 3)
    done = run(scenario, "flooding", {}, 3)
    assert len(drawn.events) > 3
    assert sorted((row["event"], row["time"], row["source"]) for row in drawn.events) == sorted(
        (event.id, event.time, event.source) for event in done.published
    )
    place = {event.id: (event.position, event.velocity) for event in done.published}
    assert {row["event"]: (event_of(row).position, event_of(row).velocity) for row in drawn.events} == place
    assert {(row["subscription"], row["node"], row["filter"]) for row in drawn.subscriptions} == {
        (span.subscription, span.node, span.filter) for span in done.subscriptions
    }
    names = {f"{row['node']}" for row in drawn.sessions}
    assert names == {*scenario.names()}
    assert {row["workload"] for row in (*drawn.sessions, *drawn.subscriptions, *drawn.events)} == {"w"}
    assert {row["trace"] for row in drawn.positions} == {"w"}
    assert (drawn.scenario["workload"], drawn.scenario["scenario"], drawn.scenario["seed"]) == ("w", "base", 3)


def test_nodes_publish_and_subscribe_while_they_are_there(scenario: Scenario) -> None:
    drawn = workload_tables("w", scenario, 3)
    assert all(list(row) == list(SESSIONS.columns) for row in drawn.sessions)
    present: dict[str, list[tuple[float, float]]] = {}
    for row in drawn.sessions:
        present.setdefault(row["node"], []).append((row["start"], math.inf if row["end"] is None else row["end"]))
    assert max(map(len, present.values())) > 1, "somebody comes back"
    for row in drawn.events:
        assert any(start <= row["time"] < end for start, end in present[row["source"]])
    for row in drawn.subscriptions:
        end = math.inf if row["end"] is None else row["end"]
        assert any(start <= row["start"] and end <= after for start, after in present[row["node"]])


def test_an_announcement_ends_when_it_is_taken_back(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two announcements of the first node, the second lasts."""
    siren, jam = (Announcement(EventType(name, {})) for name in ("Siren", "Jam"))
    actions = Workload([Action(5.0, 0, siren), Action(6.0, 0, jam), Action(20.0, 0, Unannounce("Siren"))])
    monkeypatch.setattr(Scenario, "workload", lambda *_: actions)
    calm = scenario.with_({"faults.churn": None})
    assert [(row["type"], row["start"], row["end"]) for row in workload_tables("w", calm, 3).announcements] == [
        ("Siren", 5.0, 20.0), ("Jam", 6.0, None),
    ]  # fmt: skip


def test_a_run_in_which_drivers_may_react_gives_its_own_workload(scenario: Scenario) -> None:
    """Where nobody does react, it is the workload of all protocols."""
    wrong_clocks = scenario.with_({"faults.clock_skew_s": 2.0})
    drawn = workload_tables("w", wrong_clocks, 3)
    found = reacting_tables("w", wrong_clocks, 3, "flooding", {})
    by_time = [sorted(one.events, key=lambda row: str(row["event"])) for one in (drawn, found)]
    times = [[row.pop("time") for row in rows] for rows in by_time]
    assert times[1] == pytest.approx(times[0])
    assert by_time[0] == by_time[1]
    for name in ("positions", "sessions"):
        assert getattr(found, name) == getattr(drawn, name)
    for name in ("subscriptions", "announcements"):
        assert sorted(map(str, getattr(found, name))) == sorted(map(str, getattr(drawn, name)))
    assert found.scenario == drawn.scenario


def test_drivers_that_react_have_no_workload_apart_from_a_protocol() -> None:
    reacting: Any = SimpleNamespace(reacts=True, name="busy")
    with pytest.raises(ScenarioError, match=r"^busy: drivers react to events, so that events and positions depend on"):
        workload_tables("w", reacting, 1)


# One task for a workload.


POSITIONS = pa.schema(
    [("node", pa.string()), *((name, pa.float64()) for name in ("time", "x_m", "y_m", "until", "x_m_s", "y_m_s"))]
)


@pytest.mark.parametrize("has_legs", [True, False])
def test_a_node_is_where_its_leg_takes_it(has_legs: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"node": "b", "time": 4.0, "x_m": 40.0, "y_m": 8.0, "until": 4.0, "x_m_s": 10.0, "y_m_s": 2.0},
        {"node": "a", "time": 1.0, "x_m": 5.0, "y_m": 5.0, "until": 1.0, "x_m_s": 0.0, "y_m_s": 0.0},
        {"node": "b", "time": 4.0, "x_m": 20.0, "y_m": 9.0, "until": 4.0, "x_m_s": 7.0, "y_m_s": 7.0},
        {"node": "b", "time": 0.0, "x_m": 0.0, "y_m": 0.0, "until": 4.0, "x_m_s": 10.0, "y_m_s": 2.0},
    ]
    if not has_legs:
        rows = [{**row, "until": None if row["node"] == "b" else row["until"]} for row in rows]
    asked = [("b", -1.0), ("b", 0.0), ("b", 1.0), ("b", 4.0), ("b", 4.1), ("a", 1.0), ("a", 1.1), ("c", 1.0)]
    nodes, times = [node for node, _ in asked], np.array([time for _, time in asked])
    is_there, x_m, y_m, x_m_s, y_m_s = _legs_at(nodes, times, pa.Table.from_pylist(rows, schema=POSITIONS))
    assert is_there.tolist() == [False, True, True, True, False, True, False, False]
    places = list(zip(x_m.tolist(), y_m.tolist(), x_m_s.tolist(), y_m_s.tolist(), strict=True))
    assert [places[at] for at in (1, 2, 3, 5)] == [
        (0.0, 0.0, 10.0, 2.0), (10.0, 2.0, 10.0, 2.0), (40.0, 8.0, 10.0, 2.0), (5.0, 5.0, 0.0, 0.0),
    ]  # fmt: skip


def test_nobody_is_anywhere_without_positions() -> None:
    found = _legs_at(["a", "b"], np.array([1.0, 2.0]), POSITIONS.empty_table())
    assert [one.tolist() for one in found] == [[False, False], *[[0.0, 0.0]] * 4]


def test_a_task_finds_what_is_reachable_with_or_without_a_trace_and_sessions(tmp_path: Any) -> None:
    lake = ArrowLake(tmp_path)
    event = Event("A", {}, id="e", source="a", time=5.0)
    lake.write_rows("events", [event_row("w", event)], workload="w")
    lake.write_rows("expected", [{"event": "e", "node": "b"}], workload="w")
    lake.write_rows("sessions", [{"node": "a", "start": 0.0}, {"node": "b", "start": 6.0}], workload="w")
    for trace, x_m in (("w", 10.0), ("t", 99.0)):
        rows = [
            {"node": node, "time": time, "x_m": x, "y_m": 0.0}
            for node, x in (("a", 0.0), ("b", x_m))
            for time in (0.0, 9.0)
        ]
        lake.write_rows("positions", rows, trace=trace)
    network = ContactNetwork(20.0)
    reach = {}
    for trace in (None, "t"):
        for has_sessions in (True, False):
            answer = json.loads(_reach(lake.folder, trace, has_sessions, ("w", network)))
            assert (answer["table"], answer["partition"]) == ("reachable", {"workload": "w", "range_m": "20.0"})
            lake.commit([DataFile(**answer)])
            reach[trace, has_sessions] = lake.read("reachable")["reach"].to_pylist()
    assert reach == {
        (None, True): ["by carrying"], (None, False): ["at once"], ("t", True): ["no"], ("t", False): ["no"],
    }  # fmt: skip


def test_workers_that_do_not_share_the_lake_are_given_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_workloads, "each_in_a_task", None)

    class Unshared:
        session = None

        def check_shared(self) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _in_tasks(Unshared(), ["w"], str)  # type: ignore[arg-type]
