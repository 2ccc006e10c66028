"""A scenario of a trace in a lake, without Spark: its window, area, groups and workload, and what is doubted of it."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from earshot.errors import ScenarioError, TraceError
from earshot.pipeline.traces import snapshots
from earshot.pipeline.traces.motion import _resample_nodes
from earshot.pipeline.traces.snapshots import Stretch, lifetimes, measured, quantiles, thinned
from earshot.pipeline.traces.trace_scenario import (
    COOL_DOWN_S,
    WARM_UP_S,
    EmptyWindow,
    TraceAdditions,
    TraceWindow,
    _area_doubts,
    _nodes,
    _presence_doubts,
    _publisher_doubts,
    _window_doubts,
    check_workload,
    mean_present,
    relative_window,
    scenario_doubts,
    scenario_from_trace,
    window_of,
)
from earshot.records.trajectories import Legs, Trajectories, Trajectory
from earshot.simulation.mobility.playback import Playback
from earshot.traces.lake_tables import TraceAbout, TraceRows

ABOUT = TraceAbout("samples", 100.0, 400.0, 2.0, (0.0, 0.0, 90.0, 50.0), "abc")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((None, None), (190.0, 310.0)),  # two minutes in the middle
        ((150.0, None), (150.0, 400.0)),
        ((None, 150.0), (100.0, 150.0)),
        ((50.0, 9000.0), (100.0, 400.0)),
        ((399.0, 400.0), (399.0, 400.0)),
    ],
)
def test_a_window_is_cut_to_the_trace(asked: tuple[float | None, float | None], found: tuple[float, float]) -> None:
    window = window_of("lake", "town", ABOUT, *asked)
    assert (window.lake, window.trace, window.start_s, window.end_s) == ("lake", "town", *found)
    assert window.duration_s == found[1] - found[0]


def test_a_short_trace_is_its_own_window_and_one_outside_is_refused() -> None:
    short = TraceAbout("samples", 100.0, 160.0, 2.0, None, "abc")
    assert window_of("lake", "town", short, None, None) == TraceWindow("lake", "town", 100.0, 160.0)
    for asked, words in (
        ((400.0, 500.0), "400 to 500 s"),
        ((None, 100.0), "100 to 100 s"),
        ((600.0, None), "600 to 400 s"),
    ):
        with pytest.raises(
            TraceError, match=f"the window {words} is outside of trace town, which lasts from 100 to 400 s"
        ):
            window_of("lake", "town", ABOUT, *asked)
    assert (relative_window(ABOUT, None), relative_window(ABOUT, (10.0, 20.0))) == ((None, None), (110.0, 120.0))


def rows(motion: str, *nodes: tuple[str, list[float]], types: dict[str, str] | None = None) -> TraceRows:
    first = np.cumsum([0, *(len(times) for _, times in nodes)])
    time = np.array([time for _, times in nodes for time in times], dtype=float)
    given: Any = SimpleNamespace(
        names=[name for name, _ in nodes], first=first, time=time, x_m=time, y_m=time, motion=motion, types=types or {}
    )
    return given


@pytest.mark.parametrize(
    ("motion", "nodes", "present"),
    [
        ("samples", [("a", [0.0, 5.0, 10.0])], 1.0),
        ("samples", [("a", [0.0, 5.0]), ("b", [8.0, 10.0])], 0.7),
        ("samples", [("a", [0.0, 4.9, 10.1])], 0.49),  # away where it has no row for more than five seconds
        ("samples", [("a", [0.0, 5.0, 10.0]), ("b", [4.5, 5.0])], 1.05),
        ("waypoints", [("a", [0.0, 10.0])], 1.0),
        ("samples", [("a", [-4.0, 1.0]), ("b", [9.5, 14.0])], 0.15),
    ],
)
def test_how_many_nodes_are_there_on_average(motion: str, nodes: list[tuple[str, list[float]]], present: float) -> None:
    assert mean_present(rows(motion, *nodes), TraceWindow("l", "t", 0.0, 10.0), 5.0) == pytest.approx(present)


def test_nodes_have_a_group_for_each_type_where_all_have_one_and_there_are_few() -> None:
    window = TraceWindow("l", "t", 0.0, 10.0)
    both = [("a", [0.0]), ("b", [0.0])]

    def groups(types: dict[str, str], nodes: list[tuple[str, list[float]]] = both) -> list[str]:
        return sorted(_nodes(rows("samples", *nodes, types=types), window, 5.0))

    assert groups({"a": "bus", "b": "car"}) == ["bus", "car"]
    assert groups({"a": "bus", "b": "bus"}) == groups({"a": "bus"}) == groups({}) == ["node"]
    assert groups({"a": "b", "b": "car"}) == groups({"a": "all", "b": "car"}) == ["node"], "a type named like a node"
    assert groups({"a": "bus", "b": "car"}, [*both, ("c", [0.0])]) == ["node"], "a node without a type"
    for count, expected in ((12, 12), (13, 1)):
        many: list[tuple[str, list[float]]] = [(f"n{k}", [0.0]) for k in range(count)]
        assert len(groups({f"n{k}": f"t{k}" for k in range(count)}, many)) == expected
    mobility = _nodes(rows("samples", *both, types={"a": "bus", "b": "car"}), window, 5.0)["bus"]["mobility"]
    assert mobility == {
        "kind": "playback", "lake": "l", "trace": "t", "start_s": 0.0, "end_s": 10.0, "max_gap_s": 5.0, "type": "bus",
    }  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two nodes go 1 m/s east from 0 to 60 s, with a row every two seconds."""
    folder = tmp_path_factory.mktemp("lake")
    times = [float(time) for time in range(0, 61, 2)]
    count = len(times)
    table = {
        "trace": ["town"] * 2 * count, "node": ["a"] * count + ["b"] * count, "time": times * 2, "x_m": times * 2,
        "y_m": [0.0] * count + [30.5] * count, "until": [*times[1:], 60.0] * 2,
        "x_m_s": ([1.0] * (count - 1) + [0.0]) * 2, "y_m_s": [0.0] * 2 * count,
        "type": pa.nulls(2 * count, pa.string()),
    }  # fmt: skip
    write_deltalake(str(folder / "positions"), pa.table(table), partition_by=["trace"])
    about = {
        "trace": ["town"], "motion": ["samples"], "start": [0.0], "end": [60.0], "interval_s": [2.0], "west_m": [0.0],
        "south_m": [0.0], "east_m": [60.0], "north_m": [30.5], "content": ["abc"],
    }  # fmt: skip
    write_deltalake(str(folder / "traces"), pa.table(about))
    return str(folder)


def test_a_scenario_plays_the_window_on_the_traces_area_with_a_short_warm_up(lake: str) -> None:
    found = scenario_from_trace(lake, "town", start_s=12.0, end_s=36.0, workload="news", range_m=50.0)
    assert (found.name, found.duration_s, found.warm_up_s, found.cool_down_s) == ("town", 24.0, 4.0, 1.0)
    assert (WARM_UP_S, COOL_DOWN_S) == (120.0 / 6.0, 120.0 / 24.0), "of a window of two minutes and more"
    assert (found.area.width_m, found.area.height_m) == (60.0, 31.0)
    assert found.area.box == (0.0, 0.0, 60.0, 31.0)
    assert found.node_count == 2
    assert getattr(found.medium, "range_m", None) == 50.0
    assert TraceAdditions(workload="news").scenario(lake, "town", 12.0, 36.0).description == (
        "2 nodes of trace town, 12 to 36 s"
    )
    with pytest.raises(EmptyWindow, match=r"has no node between 61 and 62 s"):
        TraceAdditions(workload="news").scenario(_shifted(lake), "late", 61.0, 62.0)


def _shifted(lake: str) -> str:
    """The same lake with a trace that lasts longer than its rows."""
    about = {
        "trace": ["late"], "motion": ["samples"], "start": [0.0], "end": [90.0], "interval_s": [2.0], "west_m": [0.0],
        "south_m": [0.0], "east_m": [60.0], "north_m": [30.5], "content": ["def"],
    }  # fmt: skip
    write_deltalake(f"{lake}/traces", pa.table(about), mode="append")
    one = {
        "trace": ["late"], "node": ["a"], "time": [0.0], "x_m": [0.0], "y_m": [0.0], "until": [0.0], "x_m_s": [0.0],
        "y_m_s": [0.0], "type": pa.nulls(1, pa.string()),
    }  # fmt: skip
    write_deltalake(f"{lake}/positions", pa.table(one), mode="append", partition_by=["trace"])
    return lake


def test_a_workload_is_a_preset_one_of_the_lake_or_two_files(lake: str, tmp_path: Path) -> None:
    events, wanted = tmp_path / "events.jsonl", tmp_path / "wanted.jsonl"
    for file in (events, wanted):
        file.write_text("")
    check_workload(lake, None, None, None)
    check_workload(lake, "news", None, None)
    check_workload(lake, None, events, wanted)
    for given, says in (
        ((None, events, None), "needs both events and subscriptions"),
        ((None, None, wanted), "needs both events and subscriptions"),
        (("news", events, wanted), "not both"),
        ((None, tmp_path / "events.xml", wanted), "a scenario reads .jsonl"),
        ((None, events, tmp_path / "gone.jsonl"), "no such file"),
        (("mine", None, None), "there is no workload 'mine'"),
    ):
        with pytest.raises(ScenarioError, match=says):
            check_workload(lake, *given)
    with pytest.raises(ScenarioError, match="radio: there is no 'wifi'"):
        TraceAdditions(radio="wifi").check(lake)


# Doubts.


def playback(start_s: float | None, **more: Any) -> Any:
    return SimpleNamespace(start_s=start_s, file=None, source="town", span=lambda: (100.0, 400.0), **more)


@pytest.mark.parametrize(
    ("start_s", "duration_s", "idle"),
    [(None, 300.0, None), (None, 301.0, "1"), (100.0, 300.0, None), (99.0, 300.0, "1"), (50.0, 400.0, "100"),
     (150.0, 260.0, "10"), (500.0, 60.0, "60")],
)  # fmt: skip
def test_a_window_that_reaches_beyond_the_trace_says_for_how_long_nobody_moves(
    start_s: float | None, duration_s: float, idle: str | None
) -> None:
    found = _window_doubts(playback(start_s), duration_s)
    assert [words.endswith(f": for {idle} s nobody moves") for words in found] == ([] if idle is None else [True])


def test_a_file_that_reaches_beyond_the_year_2200_is_doubted() -> None:
    odd = SimpleNamespace(start_s=None, file="a.csv", source="a", span=lambda: (0.0, 7_258_118_400.0))
    (words,) = _window_doubts(odd, 10.0)  # type: ignore[arg-type]
    assert "after the year 2200" in words
    assert _window_doubts(SimpleNamespace(**{**vars(odd), "span": lambda: (0.0, 7_258_118_399.0)}), 10.0) == []  # type: ignore[arg-type]


def paths(*nodes: tuple[str, float, float, float, float]) -> Trajectories:
    """Of name, x, y, and from when until when each is there; nobody moves."""
    return Trajectories(
        [Trajectory.through(name, [(0.0, x, y)], ((comes, goes),)) for name, x, y, comes, goes in nodes]
    )


def scenario(**more: Any) -> Any:
    given = {"warm_up_s": 20.0, "cool_down_s": 10.0, "duration_s": 100.0}
    return SimpleNamespace(**{**given, **more})


def test_two_nodes_must_be_there_while_events_are_published() -> None:
    everybody = ("a", 0.0, 0.0, 0.0, math.inf)
    assert _presence_doubts(scenario(), paths(everybody, ("b", 0.0, 0.0, 89.0, 95.0))) == []
    for comes, goes in ((0.0, 20.0), (90.0, 95.0)):
        (words,) = _presence_doubts(scenario(), paths(everybody, ("b", 0.0, 0.0, comes, goes)))
        assert words == (
            "only node a is there while events are published, from 20 to 90 s of the run: nobody else can receive them"
        )
    (nobody,) = _presence_doubts(scenario(), paths(("b", 0.0, 0.0, 95.0, 99.0)))
    assert nobody.startswith(
        "no node is there while events are published, from 20 to 90 s of the run: change duration_s"
    )


def test_positions_outside_of_the_area_are_doubted_from_a_metre_on() -> None:
    area = SimpleNamespace(box=(0.0, 0.0, 100.0, 50.0), width_m=100.0, height_m=50.0)
    around = [("w", -1.0, 0.0), ("e", 101.0, 0.0), ("s", 0.0, -1.0), ("n", 0.0, 51.0)]
    fits = paths(*((name, x, y, -1.0, math.inf) for name, x, y in around))
    assert _area_doubts(scenario(area=area), fits) == []
    for name, x, y in (("w", -1.1, 0.0), ("e", 101.1, 0.0), ("s", 0.0, -1.1), ("n", 0.0, 51.1)):
        both = paths((name, x, y, -1.0, math.inf), ("in", 5.0, 5.0, -1.0, math.inf), ("gone", 999.0, 0.0, 200.0, 300.0))
        (words,) = _area_doubts(scenario(area=area), both)
        assert words.startswith(
            "the area is smaller than the trace: 50% of the positions lie outside of 100 x 50 m from (0, 0)"
        )
    late = paths(("late", 999.0, 0.0, 97.0, math.inf), ("in", 5.0, 5.0, -1.0, math.inf))
    assert "5% of the positions" in _area_doubts(scenario(area=area), late)[0], "at one of twenty moments"


def test_where_nodes_come_and_go_by_chance_those_of_seed_0_are_doubted(tmp_path: Path) -> None:
    """Beside the trace's node a there is b, which under this seed never enters and under any other is always there."""
    file = tmp_path / "street.csv"
    file.write_text("node,time,x,y\na,0,5,5\na,100,5,5\n")
    always = [(name, 5.0, 5.0, -1.0, math.inf) for name in "ab"]
    by_chance = scenario(
        nodes={"car": SimpleNamespace(mobility=Playback(file=file))},
        trajectories=lambda seed: paths(*always[:1]) if seed == 0 else paths(*always),
        area=SimpleNamespace(box=(0.0, 0.0, 100.0, 50.0)),
        own=SimpleNamespace(rows=lambda: ([], []), start_s=None),
    )
    assert scenario_doubts(by_chance) == [
        "only node a is there while events are published, from 20 to 90 s of the run: nobody else can receive them"
    ]


def test_events_of_publishers_that_are_not_there_are_reported() -> None:
    there = paths(("a", 0.0, 0.0, 10.0, 50.0))

    def doubts(*events: tuple[str, float], start_s: float | None = 1000.0) -> list[str]:
        own = SimpleNamespace(
            rows=lambda: ([SimpleNamespace(node=n, time_s=t) for n, t in events], []), start_s=start_s
        )
        return _publisher_doubts(scenario(own=own), there)

    assert doubts() == []
    assert doubts(("a", 1010.0), ("a", 1049.0)) == []
    assert doubts(("a", 1009.0), ("a", 1049.0), ("z", 1020.0), ("a", 1100.0)) == [
        "2 of 3 events are left out: their publishers are not there at that time, as a at 1009 s"
    ]
    assert doubts(("a", 999.0), ("a", 1100.0)) == ["none of the 2 events is published in the window"]
    assert doubts(("a", 20.0), start_s=None) == []


# At even steps.


def test_nodes_are_read_off_at_the_steps_between_their_rows() -> None:
    table = pa.table(
        {
            "trace": ["t", "t", "u", "t", "t", "t"], "node": ["a", "a", "a", "b", "b", "b"],
            "time": [5.0, 0.0, 1.0, 0.0, 2.0, 20.0], "x_m": [50.0, 0.0, 7.0, 3.0, 3.0, math.nan],
            "y_m": [0.0, 0.0, 7.0, 3.0, 9.0, 0.0],
        }
    )  # fmt: skip
    found = [
        row for batch in _resample_nodes(2.0, 5.0, ["trace", "node"], table.to_batches()) for row in batch.to_pylist()
    ]
    assert [(row["trace"], row["node"], row["time"], row["x_m"], row["y_m"]) for row in found] == [
        ("t", "a", 0.0, 0.0, 0.0), ("t", "a", 2.0, 20.0, 0.0), ("t", "a", 4.0, 40.0, 0.0), ("t", "b", 0.0, 3.0, 3.0),
        ("t", "b", 2.0, 3.0, 9.0),
    ]  # fmt: skip
    first, last = found[0], found[-1]
    assert (first["speed_m_s"], first["heading_deg"], first["until"], first["x_m_s"]) == (10.0, 90.0, 2.0, 10.0)
    assert (found[3]["speed_m_s"], found[3]["heading_deg"]) == (3.0, 0.0)
    assert (last["speed_m_s"], last["heading_deg"]) == (0.0, None), "a node that stands looks nowhere"
    gap = next(iter(_resample_nodes(2.0, 4.9, ["trace", "node"], table.to_batches()))).to_pylist()
    assert [(row["time"], row["x_m"], row["speed_m_s"]) for row in gap if row["node"] == "a"] == [(0.0, 0.0, 0.0)]
    assert list(_resample_nodes(2.0, 5.0, ["node"], [])) == []


# Moments.


def test_a_crowd_is_thinned_only_where_too_many_pairs_are_in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_LINKS", 45)
    x = np.zeros(20)
    apart = np.arange(20) * 100.0
    assert thinned(x[:10], x[:10], 50.0, 1)[1] == 1.0, "45 pairs at most, wherever they are"
    assert thinned(apart, np.zeros(20), 50.0, 1)[1] == 1.0, "nobody is in range"
    chosen, share = thinned(x, x, 50.0, 1)
    assert share == pytest.approx(math.sqrt(45 / 190))
    assert len(chosen) == int(share * 20) == 9
    assert sorted(set(chosen.tolist())) == chosen.tolist()
    assert set(chosen.tolist()) <= set(range(20))
    monkeypatch.setattr(snapshots, "MOST_LINKS", 0.1)
    assert len(thinned(x, x, 50.0, 1)[0]) == 2


def test_two_nodes_exactly_at_the_range_are_neighbours() -> None:
    legs = Legs(
        *(np.array(column, dtype=float) for column in ([1, 2], [0, 0], [9, 9], [0, 100], [0, 0], [0, 0], [0, 0]))
    )
    found = {
        (row.name, row.range_m): row.value for row in measured(legs, Stretch(1.0, 1, 1.0), [99.9, 100.0, 150.0], 60.0)
    }
    assert [found["neighbours", range_m] for range_m in (99.9, 100.0, 150.0)] == [0.0, 1.0, 1.0]
    assert [found["components", range_m] for range_m in (99.9, 100.0)] == [2.0, 1.0]
    nobody = measured(legs, Stretch(20.0, 2, 5.0), [100.0], 60.0)
    assert [(row.name, row.time, row.value) for row in nobody] == [("present", 20.0, 0.0), ("present", 25.0, 0.0)]


def test_quantiles_and_lifetimes_end_with_the_largest() -> None:
    values, counts = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    assert quantiles(values, counts, (0.5, 0.51, 0.75, 1.0, 1.1)) == [1.0, 2.0, 2.0, 3.0, 3.0]
    # Of three contacts one ends at 2 s, one is seen for 4 s, and one ends at 6 s.
    mean, shares = lifetimes(np.array([4.0, 2.0, 6.0]), np.array([False, True, True]), (0.3, 0.5, 1.0))
    assert mean == pytest.approx(2.0 + 2.0 * 2 / 3 + 2.0 * 2 / 3)
    assert shares == [2.0, 6.0, 6.0]
    assert lifetimes(np.array([4.0]), np.array([False]), (0.5,)) == (4.0, [4.0])
