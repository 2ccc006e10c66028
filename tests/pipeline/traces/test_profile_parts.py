"""The parts of a trace's profile by themselves, without Spark: where it looks, and what it makes of what it finds."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from earshot.pipeline.traces import trace_profile
from earshot.pipeline.traces.contact_statistics import Spread
from earshot.pipeline.traces.snapshots import FoundRow, Stretch
from earshot.pipeline.traces.trace_profile import (
    DensityCell,
    NetworkMoment,
    Profile,
    RangeProfile,
    _cells,
    _density,
    _lengths,
    _measure,
    _range_profile,
    _reachable_within,
    _round_up,
    _spread,
    kept_profiles,
    profile_of_json,
    profile_trace,
    stretches_of,
)
from earshot.records.trajectories import Legs
from earshot.traces.lake_tables import TraceAbout


def about(span_s: float, motion: str = "waypoints", interval_s: float | None = None) -> TraceAbout:
    return TraceAbout(motion, 100.0, 100.0 + span_s, interval_s, None, "digest")


@pytest.mark.parametrize(
    ("given", "present", "starts", "steps", "step_s", "every"),
    [
        (about(3000.0), 10.0, [100.0, 900.0, 1700.0, 2500.0], 601, 1.0, 1),
        (about(3000.0, "samples", 5.0), 10.0, [100.0, 900.0, 1700.0, 2500.0], 121, 5.0, 1),
        (about(3000.0, "waypoints", 5.0), 10.0, [100.0, 900.0, 1700.0, 2500.0], 601, 1.0, 1),
        (about(3000.0, "samples", 0.2), 10.0, [100.0, 900.0, 1700.0, 2500.0], 601, 1.0, 1),
        (about(3000.0, "samples", 30.0), 10.0, [100.0, 900.0, 1700.0, 2500.0], 21, 30.0, 1),
        (about(3000.0), 10_000.0, [100.0, 900.0, 1700.0, 2500.0], 151, 4.0, 2),  # a task holds 1.5 million rows
        (about(3000.0), 500.0, [100.0, 900.0, 1700.0, 2500.0], 601, 1.0, 2),  # 600,000 positions altogether
        (about(600.0), 10.0, [100.0], 601, 1.0, 1),
        (about(400.0), 10.0, [100.0, 100.0 + 200.0 / 3, 100.0 + 400.0 / 3, 300.0], 201, 1.0, 1),
        (about(100.0), 10.0, [100.0, 100.0 + 40.0 / 3, 100.0 + 80.0 / 3, 140.0], 61, 1.0, 1),
        (about(40.0), 10.0, [100.0], 41, 1.0, 1),
    ],
)
def test_four_stretches_of_ten_minutes_are_looked_at_or_of_half_a_shorter_trace(
    given: TraceAbout, present: float, starts: list[float], steps: int, step_s: float, every: int
) -> None:
    found = stretches_of(given, present)
    assert [one.start for one in found] == pytest.approx(starts)
    assert {(one.steps, one.step_s, one.network_every, one.spreads) for one in found} == {(steps, step_s, every, True)}


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1.0, 1.0), (1.01, 2.0), (2.0, 2.0), (3.0, 5.0), (7.0, 10.0), (0.03, 0.05), (100.0, 100.0), (250.0, 500.0)],
)
def test_the_side_of_a_square_is_a_round_number(value: float, rounded: float) -> None:
    assert _round_up(value) == pytest.approx(rounded)


def rows(name: str, range_m: float, *values: tuple[float, float, float]) -> list[FoundRow]:
    """Of time, value and weight."""
    return [FoundRow(name, range_m, time, value, weight) for time, value, weight in values]


AT_MOMENTS = [
    *rows("present", 0.0, (10.0, 4.0, 1.0), (20.0, 6.0, 1.0)),
    *rows("neighbours", 100.0, (10.0, 0.0, 1.0), (10.0, 2.0, 3.0), (20.0, 5.0, 6.0)),
    *rows("components", 100.0, (20.0, 1.0, 1.0), (10.0, 2.0, 1.0)),
    *rows("largest", 100.0, (10.0, 0.75, 1.0), (20.0, 1.0, 1.0)),
    *rows("at once", 100.0, (10.0, 0.5, 12.0), (20.0, 1.0, 30.0)),
    *rows("neighbours", 50.0, (10.0, 0.0, 10.0)),
]


def test_what_is_found_at_moments_is_averaged_over_nodes_moments_and_pairs() -> None:
    found = _range_profile(100.0, AT_MOMENTS, [])
    assert found == RangeProfile(
        range_m=100.0,
        mean_neighbours=pytest.approx((2.0 * 3 + 5.0 * 6) / 10),
        median_neighbours=5.0,
        isolated_share=0.1,
        components=1.5,
        largest_share=0.875,
        contact_s=None,
        inter_contact_s=None,
        reachable_at_once=pytest.approx((6.0 + 30.0) / 42.0),
        reachable_within={},
        over_time=(NetworkMoment(10.0, 4, 2, 0.75), NetworkMoment(20.0, 6, 1, 1.0)),
    )
    assert found.partitioned
    alone = _range_profile(50.0, AT_MOMENTS, [])
    assert (alone.mean_neighbours, alone.median_neighbours, alone.isolated_share, alone.components) == (
        0.0,
        0.0,
        1.0,
        0.0,
    )
    nobody = _range_profile(300.0, AT_MOMENTS, [])
    assert (nobody.mean_neighbours, nobody.isolated_share, nobody.reachable_at_once) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("share", "partitioned"), [(0.89, True), (0.9, False)])
def test_a_network_is_partitioned_where_the_largest_part_has_less_than_nine_tenths(
    share: float, partitioned: bool
) -> None:
    moments = rows("largest", 100.0, (10.0, share, 1.0))
    assert _range_profile(100.0, moments, []).partitioned is partitioned


def test_contacts_and_the_time_between_them_come_from_the_stretches_of_their_range() -> None:
    stretches = [
        *rows("contact", 100.0, (0.0, 4.0, 1.0), (0.0, 8.0, 1.0)),
        *rows("between", 100.0, (0.0, 30.0, 3.0), (0.0, 10.0, 1.0)),
        *rows("contact", 50.0, (0.0, 99.0, 1.0)),
    ]
    found = _range_profile(100.0, AT_MOMENTS, stretches)
    assert found.contact_s is not None
    assert found.inter_contact_s is not None
    assert (found.contact_s.mean, found.contact_s.p50, found.contact_s.most) == (6.0, 4.0, 8.0)
    assert (found.inter_contact_s.mean, found.inter_contact_s.p50, found.inter_contact_s.most) == (25.0, 30.0, 30.0)
    assert _lengths([]) is None
    assert _spread([]) is None


def test_each_horizon_adds_its_share_of_the_pairs_that_are_still_out_of_reach() -> None:
    stretches = [
        *rows("carried 10", 100.0, (0.0, 0.5, 1.0), (0.0, 0.1, 3.0)),
        *rows("carried 600", 100.0, (0.0, 0.25, 2.0)),
    ]
    first = 1.0 - 0.6 * 0.8
    assert _reachable_within(0.4, stretches) == {
        "10": pytest.approx(first), "600": pytest.approx(1.0 - (1.0 - first) * 0.75),
    }  # fmt: skip
    nobody = rows("carried 10", 100.0, (0.0, 0.5, 0.0))
    assert _reachable_within(0.4, nobody) == {"10": pytest.approx(0.4)}


def test_a_square_of_the_map_has_its_mean_over_the_moments_and_its_corner() -> None:
    found = rows("cell", 0.0, (10.0, 0.0, 3.0), (20.0, 0.0, 1.0), (10.0, 2003.0, 5.0))
    assert _density([*found, *AT_MOMENTS], 4, 100.0, -50.0, 20.0) == (
        DensityCell(100.0, -50.0, 1.0), DensityCell(160.0, -10.0, 1.25),
    )  # fmt: skip


def legs(*given: tuple[int, float, float, float, float, float, float]) -> Legs:
    return Legs(*(np.array(column, dtype=float) for column in zip(*given, strict=True)))


def test_nodes_are_counted_in_the_square_where_they_are_at_the_moment() -> None:
    moving = legs((1, 0.0, 10.0, 100.0, 0.0, 5.0, 9.0), (2, 0.0, 10.0, 125.0, 45.0, 0.0, 0.0), (3, 0, 10, 100, 0, 0, 0))
    found = list(_cells(moving, Stretch(5.0, 1, 1.0), 60.0, (100.0, 0.0, 20.0)))
    assert found == [FoundRow("cell", 0.0, 5.0, 0.0, 1.0), FoundRow("cell", 0.0, 5.0, 2001.0, 2.0)]


def test_a_task_measures_the_stretch_that_its_rows_are_of() -> None:
    table = pa.table(
        {
            "key": [1, 1], "node": [7, 8], "time": [0.0, 0.0], "until": [100.0, 100.0], "x_m": [0.0, 30.0],
            "y_m": [0.0, 0.0], "x_m_s": [0.0, 0.0], "y_m_s": [0.0, 0.0],
        }
    )  # fmt: skip
    stretches = [Stretch(10.0, 1, 1.0), Stretch(50.0, 1, 1.0)]
    found = _measure(stretches, [40.0], 1000.0, (0.0, 0.0, 20.0), table).to_pylist()
    assert {row["time"] for row in found} == {50.0}
    cells = [(row["value"], row["weight"]) for row in found if row["name"] == "cell"]
    assert cells == [(0.0, 1.0), (1.0, 1.0)]
    without = _measure(stretches, [40.0], 1000.0, None, table).to_pylist()
    assert without == [row for row in found if row["name"] != "cell"]
    assert {row["name"]: row["value"] for row in without if row["name"] in ("present", "components")} == {
        "present": 2.0, "components": 1.0,
    }  # fmt: skip


PROFILE = Profile(
    "town", "digest", 80, 4, 0.0, 60.0, 1.0, "samples", (10.0, 20.0, 110.0, 220.0), 3.5, 4, ((30.0, 4),), 1.0, 2.0,
    Spread(1, 2, 3, 4, 5, 6), Spread(1, 2, 3, 4, 5, 6), 1.0, 5.0, (DensityCell(0.0, 0.0, 1.0),),
    (_range_profile(100.0, AT_MOMENTS, []), _range_profile(50.0, AT_MOMENTS, [])),
)  # fmt: skip


def test_a_profile_knows_its_size_and_the_nearest_range() -> None:
    assert (PROFILE.span_s, PROFILE.width_m, PROFILE.height_m) == (60.0, 100.0, 200.0)
    assert [PROFILE.at(range_m).range_m for range_m in (1.0, 74.0, 76.0, 999.0)] == [50.0, 50.0, 100.0, 100.0]
    assert profile_of_json(json.dumps(PROFILE.as_json())) == PROFILE


class Kept:
    """A lake that keeps profiles, without Spark."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, content: str = "digest") -> None:
        self.rows: list[dict[str, Any]] = []
        self.profiled: list[tuple[Any, ...]] = []
        self.folder = SimpleNamespace(root="lake")
        self.arrow = SimpleNamespace(
            read=lambda _table, **where: SimpleNamespace(
                to_pylist=lambda: [row for row in self.rows if row["trace"] == where.get("trace", row["trace"])]
            ),
            write_rows=lambda _table, rows: self.rows.extend(rows),
        )
        monkeypatch.setattr(trace_profile, "trace_about", lambda *_: SimpleNamespace(content=content))
        monkeypatch.setattr(trace_profile, "_profiled", self.profile)

    def has(self, _table: str, trace: str | None = None) -> bool:
        return any(trace in (None, row["trace"]) for row in self.rows)

    def read(self, table: str, trace: str) -> tuple[str, str]:
        return table, trace

    def profile(self, positions: object, trace: str, about: Any, ranges_m: tuple[float, ...], _say: object) -> Profile:
        self.profiled.append((positions, trace, about.content, ranges_m))
        return PROFILE


def test_a_profile_is_kept_until_the_trace_changes_or_another_range_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake: Any = Kept(monkeypatch)
    assert profile_trace(lake, "town", [100.0, 50.0, 100.0]) == PROFILE
    assert lake.profiled == [(("positions", "town"), "town", "digest", (50.0, 100.0))]
    assert [(row["trace"], row["content"]) for row in lake.rows] == [("town", "digest")]
    assert profile_trace(lake, "town", [50.0]) == PROFILE
    assert len(lake.profiled) == 1
    assert kept_profiles(lake, ["town", "other"]) == [PROFILE]
    assert kept_profiles(lake, ["other"]) == []
    changed: Any = Kept(monkeypatch, "another")
    assert kept_profiles(changed, ["town"]) == []
    for more, content in (({"again": True}, "digest"), ({"ranges_m": [50.0, 70.0]}, "digest"), ({}, "another")):
        other: Any = Kept(monkeypatch, content)
        other.rows = [{"trace": "town", "content": "digest", "described": json.dumps(PROFILE.as_json())}]
        profile_trace(other, "town", **{"ranges_m": [50.0], **more})
        assert len(other.profiled) == 1


@pytest.mark.parametrize(
    ("present", "mean", "moments"),
    [(0.1, 1.0, 60), (10_000.0, 10_000.0, 60), (20_000.0, 20_000.0, 30), (60_000.0, 60_000.0, 12)],
)
def test_a_trace_is_looked_at_in_the_middle_of_equal_parts_fewer_where_many_are_there(
    present: float, mean: float, moments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 120 s, nobody is there at any of the moments."""
    stays = {
        "present_s": 120.0 * present, "west": 5.0, "south": 6.0, "east": 405.0, "north": 106.0, "rows": 7, "nodes": 2,
        "arrivals": 4, "departures": 6, "mean": 1.0, "shares": [2.0, 3.0, 4.0, 5.0], "most": 6.0,
    }  # fmt: skip
    asked: list[Any] = []
    monkeypatch.setattr(trace_profile, "_stays", lambda *_: stays)
    monkeypatch.setattr(trace_profile, "_found", lambda *given, cell=None: asked.append((given, cell)) or [])
    positions: Any = object()
    given = TraceAbout("samples", 100.0, 220.0, 1.0, None, "digest")
    found = trace_profile._profiled(positions, "town", given, [50.0], lambda _: None)
    ((_, at, ranges_m, max_gap_s), cell), ((_, stretches, *_), no_cell) = asked
    spacing_s = 120.0 / moments
    assert at == [Stretch(pytest.approx(100.0 + (k + 0.5) * spacing_s), 1, spacing_s) for k in range(moments)]
    assert (ranges_m, max_gap_s, cell, no_cell) == ([50.0], given.longest_gap_s, (5.0, 6.0, 10.0), None)
    assert stretches == stretches_of(given, mean)
    assert (found.mean_present, found.most_present, found.arrivals_per_min, found.departures_per_min) == (
        mean, 0, 2.0, 3.0,
    )  # fmt: skip
    assert found.speed_m_s == Spread(0, 0, 0, 0, 0, 0)
    assert found.stay_s == Spread(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert (found.box, found.cell_m, found.density) == ((5.0, 6.0, 405.0, 106.0), 10.0, ())
    short = trace_profile._profiled(positions, "town", about(40.0), [50.0], lambda _: None)
    (only,) = stretches_of(about(40.0), short.mean_present)
    assert short.step_s == only.step_s
