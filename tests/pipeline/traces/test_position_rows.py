"""The work of a task on positions, row by row: what is kept and why not, legs, gaps, and steps between rows."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from earshot.errors import TraceError
from earshot.geometry import LocalPlane
from earshot.pipeline.traces.contacts import ROWS_A_STRETCH, SLICES_A_STRETCH, _search, contacts_within, whole_stretches
from earshot.pipeline.traces.motion import _resample_nodes, resampled, rows_at_steps
from earshot.pipeline.traces.positions import _check, checked
from pipeline.traces.test_positions import KEPT, verdicts

NUMBERS = ("time", "x_m", "y_m", "lat_deg", "lon_deg", "speed_m_s", "heading_deg")
SIGHTINGS = pa.schema(
    [("node", pa.string()), *((name, pa.float64()) for name in NUMBERS), ("file", pa.string()), ("line", pa.int64()),
     ("problem", pa.string()), ("type", pa.string()), ("others", pa.string()), ("file_number", pa.int64())]
)  # fmt: skip


def sighting(node: str | None, time: float | None, x_m: float | None = 0.0, **more: Any) -> dict[str, Any]:
    row = {"node": node, "time": time, "x_m": x_m, "y_m": 0.0, "file": "f", "line": 1, "file_number": 0}
    return row | more


def check(
    *rows: dict[str, Any], max_speed_m_s: float = 10.0, plane: LocalPlane | None = None, sort_by_time: bool = False
) -> list[dict[str, Any]]:
    batches = [pa.RecordBatch.from_pylist([row], schema=SIGHTINGS) for row in rows]
    found = _check(max_speed_m_s, plane, sort_by_time, batches)
    return [row for batch in found for row in batch.to_pylist()]


def test_rows_of_whole_nodes_have_verdicts_legs_and_gaps_in_the_order_of_their_files() -> None:
    """b comes first; a's second file begins before its first one ends; one of a's rows has no time."""
    found = check(
        sighting("b", 5.0, 1.0, line=1), sighting("b", 7.0, 5.0, line=2),
        sighting("a", 3.0, 30.0, line=1, file="g", file_number=1), sighting("a", 0.0, 0.0, line=3),
        sighting("a", None, None, line=4, problem="no time"), sighting("a", 2.0, 8.0, line=5, type="bus", others="{}"),
        sighting("a", 4.0, 16.0, line=6), sighting(None, 4.0, line=7, problem="no node"),
    )  # fmt: skip
    names = ("node", "time", "x_m", "until", "x_m_s", "gap_s", "file", "line", "reason", "detail", "type", "others")
    assert [tuple(row[name] for name in names) for row in found] == [
        (None, 4.0, 0.0, None, None, None, "f", 7, "unparsable", "no node", None, None),
        ("a", 0.0, 0.0, 2.0, 4.0, None, "f", 3, None, None, None, None),
        ("a", None, None, None, None, None, "f", 4, "unparsable", "no time", None, None),
        ("a", 2.0, 8.0, 4.0, 4.0, 2.0, "f", 5, None, None, "bus", "{}"),
        ("a", 4.0, 16.0, 4.0, 4.0, 2.0, "f", 6, None, None, None, None),
        ("a", 3.0, 30.0, None, None, None, "g", 1, "unordered", "at 30.0,0.0 m", None, None),
        ("b", 5.0, 1.0, 7.0, 2.0, None, "f", 1, None, None, None, None),
        ("b", 7.0, 5.0, 7.0, 2.0, 2.0, "f", 2, None, None, None, None),
    ]
    assert check() == []


def test_rows_in_any_order_are_sorted_by_time_if_asked_and_then_by_file_and_line() -> None:
    rows = [
        sighting("a", 2.0, 8.0, line=1), sighting("a", 0.0, 0.0, line=9), sighting("a", 2.0, 7.0, line=2),
        sighting("a", 2.0, 6.0, line=5, file_number=-1), sighting("a", 1.0, 4.0, line=4),
    ]  # fmt: skip
    found = check(*rows, sort_by_time=True)
    assert [(row["time"], row["x_m"], row["reason"]) for row in found] == [
        (0.0, 0.0, None), (1.0, 4.0, None), (2.0, 6.0, None), (2.0, 8.0, "duplicate"), (2.0, 7.0, "duplicate"),
    ]  # fmt: skip
    reasons = {row["line"]: row["reason"] for row in check(*rows)}
    assert (reasons[5], reasons[1], reasons[4], reasons[9]) == (None, "duplicate", "unordered", "unordered")


def test_degrees_are_laid_on_the_plane_where_both_are_known() -> None:
    plane = LocalPlane(47.0, 8.0)
    place = plane.position(47.001, 8.002)
    rows = [
        sighting("a", 0.0, None, y_m=None, lat_deg=47.001, lon_deg=8.002),
        sighting("a", 1.0, None, y_m=None, lat_deg=47.001, problem="no longitude"),
        sighting("a", 2.0, None, y_m=None, lon_deg=8.002, problem="no latitude"),
    ]
    found = check(*rows, plane=plane)
    assert [(row["x_m"], row["y_m"]) for row in found] == [
        (pytest.approx(place.x_m), pytest.approx(place.y_m)), (None, None), (None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Exactly as fast as may be, and a little faster, with and without another impossible row.
        ([(0, 0), (1, 10.0000000099)], [KEPT, KEPT]),
        ([(0, 0), (1, 10.00000002)], [KEPT, "impossible"]),
        ([(0, 0), (1, 900), (2, 20.0000000198)], [KEPT, "impossible", KEPT]),
        ([(0, 0), (1, 900), (2, 20.00000003)], [KEPT, "impossible", "impossible"]),
        # The first row is only impossible where the next two follow it and each other in time, and fit.
        ([(0, 900), (0, 0), (1, 5)], [KEPT, "duplicate", "impossible"]),
        ([(0, 900), (1, 0), (1, 5)], [KEPT, "impossible", "impossible"]),
        ([(0, 900), (1, 0), (2, 900)], [KEPT, "impossible", KEPT]),
        ([(0, 900), (1, 895), (2, 0)], [KEPT, KEPT, "impossible"]),
        ([(0, 900), (1, 0), (2, 99)], [KEPT, "impossible", "impossible"]),
        ([(0, 900), (1, 0)], [KEPT, "impossible"]),
        # A row is only of a wrong clock where the next two rows go on after the row before.
        ([(1, 0), (5, 0), (1, 0), (2, 0)], [KEPT, KEPT, "duplicate", "unordered"]),
        ([(0, 0), (5, 0), (1, 0), (1, 0)], [KEPT, KEPT, "unordered", "unordered"]),
        ([(0, 0), (2, 0), (1, 0), (2, 0)], [KEPT, KEPT, "unordered", "duplicate"]),
        ([(0, 0), (5, 0), (1, 0), (2, 0)], [KEPT, "unordered", KEPT, KEPT]),
    ],
)
def test_rows_are_judged_at_the_bounds(rows: list[tuple[float, float]], expected: list[str]) -> None:
    assert verdicts(rows) == expected


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_speed_that_cannot_be_is_refused(wrong: float) -> None:
    with pytest.raises(TraceError, match="max_speed_m_s must be positive, got"):
        checked(wrong)
    with pytest.raises(TraceError, match="max_gap_s must be a positive number"):
        resampled(1.0, wrong)
    with pytest.raises(TraceError, match="step_s must be a positive number"):
        resampled(wrong)
    resampled(0.5, 0.5)
    checked(0.5)


def test_places_between_rows_that_are_half_a_second_apart() -> None:
    table = pa.table({"node": ["a"] * 3, "time": [0.0, 0.5, 1.0], "x_m": [0.0, 3.0, 3.0], "y_m": [0.0, 4.0, 4.0]})
    rows = [row for batch in _resample_nodes(0.25, 60.0, ["node"], table.to_batches()) for row in batch.to_pylist()]
    assert [(row["time"], row["x_m"], row["y_m"], row["speed_m_s"]) for row in rows] == [
        (0.0, 0.0, 0.0, 10.0), (0.25, 1.5, 2.0, 10.0), (0.5, 3.0, 4.0, 0.0), (0.75, 3.0, 4.0, 0.0),
        (1.0, 3.0, 4.0, 0.0),
    ]  # fmt: skip
    heading = math.degrees(math.atan2(3.0, 4.0))
    assert [row["heading_deg"] for row in rows] == [pytest.approx(heading), pytest.approx(heading), None, None, None]


def test_a_leg_after_the_epoch_is_as_long_as_one_from_zero_on() -> None:
    for start in (0.0, 1e9):
        table = pa.table({"node": ["a"] * 2, "time": [start, start + 4.0], "x_m": [0.0, 8.0], "y_m": [0.0, 0.0]})
        rows = [row for batch in _resample_nodes(2.0, 4.0, ["node"], table.to_batches()) for row in batch.to_pylist()]
        assert [(row["time"] - start, row["x_m"]) for row in rows] == [(0.0, 0.0), (2.0, 4.0), (4.0, 8.0)]


def test_rows_at_steps_are_at_most_those_of_nodes_that_stay_or_of_gaps_that_are_bridged() -> None:
    """A hundred rows of two nodes in 1,000 s; one node each second makes 1,001."""
    assert rows_at_steps(100, 2, 1000.0, 1.0, math.inf) == 2002
    assert rows_at_steps(100, 2, 1000.0, 1.0, 4.0) == 500
    assert rows_at_steps(100, 2, 1000.0, 500.0, 4.0) == 100
    assert rows_at_steps(10, 2, 1000.0, 300.0, 600.0) == 10
    assert rows_at_steps(3, 2, 1000.0, 400.0, 1000.0) == 7


# -- the search for contacts, in a task


def together(moments: int) -> pa.Table:
    """Two nodes a metre apart, once a second."""
    rows = [(node, float(t), x) for t in range(moments) for node, x in (("a", 0.0), ("b", 1.0))]
    node, time, x = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"node": node, "time": time, "x_m": x, "y_m": [0.0] * len(rows)})


def test_a_stretch_has_as_many_moments_as_it_should() -> None:
    """Twelve seconds in stretches of four: a run of each, which touches both ends."""
    found = [row for batch in _search(5.0, 1.0, 4, 3, together(12).to_batches()) for row in batch.to_pylist()]
    assert (len(found), len({row["task"] for row in found})) == (3, 1)
    assert {row["gap_s"] for row in found} == {1.0 + 1e-6}
    runs = [pa.ipc.open_stream(row["runs"]).read_all().to_pylist() for row in found]
    assert [(run["a"], run["b"], run["start"], run["end"], run["touching"]) for (run,) in runs] == [
        ("a", "b", 0.0, 3.0, True), ("a", "b", 4.0, 7.0, True), ("a", "b", 8.0, 11.0, True),
    ]  # fmt: skip
    measured = together(12).append_column("interval_s", pa.array([1.0] * 24))
    assert len(list(_search(5.0, None, 4, 3, measured.to_batches()))) == 3


def test_samples_a_rounding_apart_from_the_interval_are_one_contact() -> None:
    table = together(5).set_column(1, "time", pa.array([t * (1.0 + 5e-7) for t in range(5) for _ in "ab"]))
    (row,) = (row for batch in _search(5.0, 1.0, 32, 1, table.to_batches()) for row in batch.to_pylist())
    assert len(pa.ipc.open_stream(row["runs"]).read_all()) == 1


def test_a_run_in_the_middle_of_a_stretch_touches_no_end() -> None:
    rows = together(9).filter(pa.array([2.0 <= t <= 5.0 for t in range(9) for _ in "ab"]))
    (row,) = (row for batch in _search(5.0, 1.0, 9, 2, rows.to_batches()) for row in batch.to_pylist())
    (run,) = pa.ipc.open_stream(row["runs"]).read_all().to_pylist()
    assert (run["start"], run["end"], run["touching"], row["task"]) == (2.0, 5.0, False, 0)


def test_a_task_holds_whole_stretches_up_to_a_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten moments of two rows, two moments a stretch, in batches of three rows."""
    monkeypatch.setattr("earshot.pipeline.traces.contacts.ROWS_HELD", 6)
    batches = together(10).to_batches(max_chunksize=3)
    found = [table.column("time").to_pylist() for table in whole_stretches(batches, 2.0)]
    assert found == [[float(t) for t in some for _ in "ab"] for some in ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9))]
    assert list(whole_stretches([], 2.0)) == []


@pytest.mark.parametrize(
    ("nodes", "slices"), [(None, 32), (0, 32), (15_625, 32), (15_626, 31), (250_001, 1), (500_001, 1)]
)
def test_a_stretch_has_fewer_moments_where_there_are_many_nodes(
    nodes: int | None, slices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (SLICES_A_STRETCH, ROWS_A_STRETCH) == (32, 500_000)
    given: list[Any] = []
    monkeypatch.setattr("earshot.pipeline.traces.contacts._contacts", lambda *some: given.append(some))
    monkeypatch.setattr("earshot.pipeline.traces.contacts.tasks_for", lambda session, rows: (session, rows))
    frame: Any = type("Frame", (), {"sparkSession": "session"})()
    contacts_within(30, interval_s=2.0, rows=7, nodes=nodes)(frame)
    assert given == [(frame, 30.0, 2.0, ("session", 7), slices)]


@pytest.mark.parametrize("name", ["range_m", "interval_s", "step_s"])
@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_a_range_interval_or_step_that_cannot_be_is_refused(name: str, wrong: float) -> None:
    with pytest.raises(TraceError, match=f"{name} must be a positive number of"):
        contacts_within(**{"range_m": 1.0, name: wrong})  # type: ignore[arg-type]
    contacts_within(**{"range_m": 1.0, name: 0.5})  # type: ignore[arg-type]
