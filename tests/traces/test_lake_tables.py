"""A trace in a lake, read without Spark: the rows that say where nodes are in a window of time."""

import math
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from earshot.errors import TraceError
from earshot.traces import lake_tables
from earshot.traces.lake_tables import TraceAbout, longest_gap, open_table, trace_about, trace_rows


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Node b goes 2 m/s east from 0 to 10 s, stands until 20 s; node a has one row."""
    folder = tmp_path_factory.mktemp("lake")
    rows = {
        "trace": ["t", "t", "t", "t"], "node": ["b", "b", "a", "b"], "time": [0.0, 10.0, 4.0, 20.0],
        "x_m": [0.0, 20.0, 7.0, 20.0], "y_m": [5.0, 5.0, 8.0, 5.0], "until": [10.0, 20.0, 4.0, 20.0],
        "x_m_s": [2.0, 0.0, 0.0, 0.0], "y_m_s": [0.0, 0.0, 0.0, 0.0], "type": ["bus", "bus", None, "bus"],
    }  # fmt: skip
    write_deltalake(str(folder / "positions"), pa.table(rows), partition_by=["trace"])
    many = pa.table({name: values * 6 for name, values in rows.items()} | {"trace": [f"u{k}" for k in range(6)] * 4})
    write_deltalake(str(folder / "positions"), many, mode="append", partition_by=["trace"])
    about = {
        "trace": ["t"], "motion": ["waypoints"], "start": [0.0], "end": [20.0], "interval_s": [10.0],
        "west_m": [0.0], "south_m": [5.0], "east_m": [20.0], "north_m": [8.0], "content": ["abc"],
    }  # fmt: skip
    write_deltalake(str(folder / "traces"), pa.table(about))
    return str(folder)


def test_positions_are_interpolated_over_five_intervals_and_between_waypoints_over_any_time() -> None:
    assert longest_gap("samples", 2.0) == 10.0
    assert longest_gap("samples", None) == longest_gap("waypoints", 2.0) == math.inf
    assert TraceAbout("samples", 0.0, 20.0, 3.0, None, "abc").longest_gap_s == 15.0


def test_a_lake_says_what_a_trace_is(lake: str) -> None:
    assert trace_about(lake, "t") == TraceAbout("waypoints", 0.0, 20.0, 10.0, (0.0, 5.0, 20.0, 8.0), "abc")
    other = trace_about(lake, "u1")
    assert (other.motion, other.interval_s, other.box, len(other.content)) == ("samples", None, None, 16)
    assert other.start <= other.end


def rows(lake: str, start_s: float | None = None, end_s: float | None = None) -> list[tuple[str, float, float, float]]:
    found = trace_rows(lake, "t", start_s, end_s)
    return [
        (name, float(found.time[k]), float(found.x_m[k]), float(found.y_m[k]))
        for i, name in enumerate(found.names)
        for k in range(found.first[i], found.first[i + 1])
    ]


def test_rows_come_by_node_and_time(lake: str) -> None:
    assert rows(lake) == [("a", 4, 7, 8), ("b", 0, 0, 5), ("b", 10, 20, 5), ("b", 20, 20, 5)]
    found = trace_rows(lake, "t")
    assert (found.motion, found.start, found.types) == ("waypoints", 0.0, {"b": "bus"})


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [
        (4.0, None, [("a", 4, 7, 8), ("b", 0, 0, 5), ("b", 10, 20, 5), ("b", 20, 20, 5)]),
        (4.1, None, [("b", 0, 0, 5), ("b", 10, 20, 5), ("b", 20, 20, 5)]),
        (10.1, None, [("b", 10, 20, 5), ("b", 20, 20, 5)]),
        (None, 4.0, [("a", 4, 7, 8), ("b", 0, 0, 5), ("b", 10, 20, 5)]),
        (None, 3.9, [("b", 0, 0, 5), ("b", 10, 20, 5)]),
        (5.0, 10.0, [("b", 0, 0, 5), ("b", 10, 20, 5), ("b", 20, 20, 5)]),
        (11.0, 12.0, [("b", 10, 20, 5), ("b", 20, 20, 5)]),
    ],
)
def test_a_window_has_the_legs_that_reach_into_it_to_their_ends(
    lake: str, start_s: float | None, end_s: float | None, expected: list[tuple[str, float, float, float]]
) -> None:
    assert rows(lake, start_s, end_s) == expected


def test_a_trace_that_is_not_there_is_named_beside_those_that_are(lake: str) -> None:
    with pytest.raises(TraceError, match=r"has no trace 'v', only t, u0, u1, u2, u3 and 2 more; run: make v"):
        open_table(lake, "positions", "trace", "v", "make v")
    with pytest.raises(TraceError, match="cannot read the table nothing"):
        open_table(lake, "nothing", "trace", "t", "make it")


def test_a_lake_may_be_named_by_a_local_address(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows(f"file://{lake}") == rows(lake)
    monkeypatch.setenv("HOME", str(Path(lake).parent))
    assert rows(f"~/{Path(lake).name}") == rows(lake)


def test_a_table_that_vanished_is_named_beside_its_lake(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(lake, "positions", "trace", "t", "make t")

    def away(*_: str) -> None:
        raise OSError("away")

    monkeypatch.setattr(lake_tables, "_delta", away)
    with pytest.raises(TraceError, match=f"cannot read the table positions of the lake {lake}: away"):
        table.read(["time"])


@pytest.mark.parametrize(
    ("lake", "opened"),
    [("s3a://bucket/lake", "s3://bucket/lake/positions"), ("s3://bucket/lake", "s3://bucket/lake/positions")],
)
def test_a_lake_in_a_bucket_has_the_address_that_is_read_without_spark(
    lake: str, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalake.DeltaTable", lambda address: address)
    assert lake_tables._delta(lake, "positions") == opened


def test_a_lake_in_a_folder_is_found_from_where_the_program_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("deltalake.DeltaTable", lambda address: address)
    monkeypatch.chdir(tmp_path)
    assert lake_tables._delta("lake", "positions") == f"{tmp_path}/lake/positions"
    monkeypatch.setenv("HOME", "/home/ann")
    assert lake_tables._delta("~/lake", "positions") == "/home/ann/lake/positions"
