"""Ingest without Spark: what the lake says of a trace, doubts, sizes, and what is not read again."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_on_duckdb import Session

from earshot.errors import LakeError, TraceError
from earshot.geometry import LocalPlane
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.traces import ingest as ingest_module
from earshot.pipeline.traces.ingest import (
    IngestSettings,
    _in_files,
    _kept,
    _rows_about,
    _share_moments,
    _speeds,
    check_files,
    ingest,
    read_trace,
    source_of,
    trace_in_lake,
)

CSV = "node,time,x,y\n"


@pytest.fixture
def lake(quick_spark: Session, tmp_path: Path) -> Lake:
    return Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, *rows: str, header: str = CSV) -> str:
        (tmp_path / name).write_text(header + "".join(f"{row}\n" for row in rows))
        return str(tmp_path / name)

    return write


def table(lake: Lake, name: str, trace: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(row[column] for column in columns) for row in lake.read(name, trace=trace).collect()), key=repr
    )


def test_the_row_of_a_trace_says_what_was_read(lake: Lake, written: Callable[..., str]) -> None:
    """Two nodes a second apart; b is there for one second."""
    file = written("walk.csv", "a,0,1,500", "a,1,2,501", "a,2,3,502", "b,0,10,-4", "b,1,10,-4", "b,1,10,-4", "b,x,0,0")
    summary = ingest(lake, [file])
    assert (summary.rows_read, summary.rows_kept, summary.rejected) == (7, 5, {"unparsable": 1, "duplicate": 1})
    (row,) = lake.arrow.rows("traces", {}, trace="walk")
    assert {name: row[name] for name in row if name not in ("content", "source")} == {
        "trace": "walk", "format": "csv", "files": [file], "motion": "samples", "nodes": 2, "rows": 5, "rejected": 2,
        "start": 0.0, "end": 2.0, "interval_s": 1.0, "common_times": True, "origin_lat_deg": None,
        "origin_lon_deg": None, "west_m": 1.0, "south_m": -4.0, "east_m": 10.0, "north_m": 502.0, "doubts": [],
    }  # fmt: skip
    assert (row["content"], row["source"]) == (summary.content, source_of([file], IngestSettings()))
    assert table(lake, "positions", "walk", "node", "time", "x_m", "y_m", "until", "x_m_s", "y_m_s") == [
        ("a", 0.0, 1.0, 500.0, 1.0, 1.0, 1.0),
        ("a", 1.0, 2.0, 501.0, 2.0, 1.0, 1.0),
        ("a", 2.0, 3.0, 502.0, 2.0, 1.0, 1.0),
        ("b", 0.0, 10.0, -4.0, 1.0, 0.0, 0.0),
        ("b", 1.0, 10.0, -4.0, 1.0, 0.0, 0.0),
    ]
    assert table(lake, "rejects", "walk", "file", "line", "node", "reason") == [
        (file, 7, "b", "duplicate"), (file, 8, "b", "unparsable"),
    ]  # fmt: skip


def test_the_content_of_a_trace_changes_with_a_place_and_not_with_its_file(
    lake: Lake, written: Callable[..., str]
) -> None:
    rows = ["a,0,1,5", "a,1,2,6"]
    first, same = ingest(lake, [written("one.csv", *rows)]), ingest(lake, [written("two.csv", *rows)])
    other = ingest(lake, [written("three.csv", "a,0,1,5", "a,1,2,6.5")])
    assert first.content == same.content != other.content
    assert len(first.content) == 16


def test_a_trace_that_was_mended_has_no_rejects(lake: Lake, written: Callable[..., str]) -> None:
    ingest(lake, [written("walk.csv", "a,0,0,0", "a,x,5,0", "a,1,5,0")])
    assert len(lake.arrow.rows("rejects", {}, trace="walk")) == 1
    ingest(lake, [written("walk.csv", "a,0,0,0", "a,1,5,0")])
    assert lake.arrow.has("rejects", trace="walk")
    assert lake.arrow.rows("rejects", {}, trace="walk") == []


def test_positions_are_interpolated_at_an_interval_between_samples_that_are_close(
    lake: Lake, written: Callable[..., str]
) -> None:
    """A sample every 2 s; a gap of 60 s is not bridged."""
    file = written("walk.csv", *(f"a,{t},{t},0,bus" for t in (0, 2, 4, 6, 66, 68)), header="node,time,x,y,type\n")
    summary = ingest(lake, [file], settings=IngestSettings(interval_s=1.0))
    times = [0, 1, 2, 3, 4, 5, 6, 66, 67, 68]
    assert table(lake, "positions", "walk", "node", "time", "x_m", "type") == sorted(
        [("a", float(t), float(t), "bus") for t in times], key=repr
    )
    assert (summary.rows_kept, summary.positions, summary.interval_s) == (6, 10, 1.0)
    assert (summary.common_times, summary.motion) == (True, "samples")


def test_waypoints_have_no_common_times_and_are_samples_once_interpolated(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "walk.movements"
    path.write_text("0 0 0 10 10 0\n")
    own = ingest(lake, [str(path)], "own", IngestSettings(format="bonnmotion"))
    assert (own.motion, own.common_times, own.interval_s, own.positions) == ("waypoints", False, 10.0, 2)
    made = ingest(lake, [str(path)], "made", IngestSettings(format="bonnmotion", interval_s=5.0))
    assert (made.motion, made.common_times, made.interval_s, made.positions) == ("samples", True, 5.0, 3)


def test_lengths_and_times_are_read_in_the_units_given(lake: Lake, tmp_path: Path) -> None:
    """BonnMotion's columns: time, x, y."""
    path = tmp_path / "walk.movements"
    path.write_text("0 1 2 10000 1.01 2\n")
    ingest(lake, [str(path)], "walk", IngestSettings(format="bonnmotion", units="ms,km"))
    assert table(lake, "positions", "walk", "time", "x_m", "y_m") == [(0.0, 1000.0, 2000.0), (10.0, 1010.0, 2000.0)]


def test_faster_rows_than_the_limit_are_impossible(lake: Lake, written: Callable[..., str]) -> None:
    file = written("walk.csv", "a,0,0,0", "a,1,50,0", "a,2,60,0", "a,3,65,0", "a,4,70,0")
    assert ingest(lake, [file]).rejected == {}
    assert ingest(lake, [file], settings=IngestSettings(max_speed_m_s=30.0)).rejected == {"impossible": 1}


GEO = "node,time,lat,lon\n"


def test_degrees_are_laid_on_a_plane_around_their_median_or_a_given_origin(
    lake: Lake, written: Callable[..., str]
) -> None:
    places = [(47.0000001, 8.0), (47.001, 8.001), (47.002, 8.003)]
    rows = [f"a,{10 * i},{lat},{lon}" for i, (lat, lon) in enumerate(places)]
    file = written("walk.csv", *rows, "a,x,1,1", header=GEO)
    summary = ingest(lake, [file])
    assert summary.origin == (47.001, 8.001)
    (row,) = lake.arrow.rows("traces", {}, trace="walk")
    assert (row["origin_lat_deg"], row["origin_lon_deg"]) == (47.001, 8.001)
    plane = LocalPlane(47.001, 8.001)
    on_plane = [plane.position(*place) for place in places]
    expected = [(10.0 * i, place.x_m, place.y_m) for i, place in enumerate(on_plane)]
    assert table(lake, "positions", "walk", "time", "x_m", "y_m") == [pytest.approx(one) for one in expected]
    given = ingest(lake, [file], settings=IngestSettings(origin=(46.5, 7.5)))
    assert given.origin == (46.5, 7.5)


def test_the_good_positions_of_files_are_read_without_a_lake(quick_spark: Session, written: Callable[..., str]) -> None:
    file = written("walk.csv", "a,0,1,5", "a,x,2,6", "a,2,3,7")
    frame = read_trace(quick_spark, file)  # type: ignore[arg-type]
    assert frame.columns == ["node", "time", "x_m", "y_m", "speed_m_s", "heading_deg", "file", "line"]
    assert [tuple(row) for row in frame.collect()] == [
        ("a", 0.0, 1.0, 5.0, None, None, file, 2), ("a", 2.0, 3.0, 7.0, None, None, file, 4),
    ]  # fmt: skip
    faster = read_trace(quick_spark, [file], IngestSettings(max_speed_m_s=1.0))  # type: ignore[arg-type]
    assert faster.count() == 1


# -- Doubts


def test_a_clock_that_is_wrong_is_reported_with_the_first_of_its_rows(lake: Lake, written: Callable[..., str]) -> None:
    """Two nodes for a minute, and two rows in 1975: the first in the order of lines counts."""
    good = [f"{node},{t},{5 * t},0" for node in "ab" for t in range(1000, 1060)]
    file = written("walk.csv", *good, "b,170000001,5295,0", "a,170000000,5295,0")
    summary = ingest(lake, [file])
    assert summary.doubts == [
        f"2 of 122 rows lie far from all others in time: first node b at 1975-05-22 14:13:21 ({file}, line 122); all "
        "others lie between 1000 s and 1059 s; their clock may have been wrong: correct or remove them"
    ]
    assert (summary.start, summary.end) == (1000.0, 170000001.0)


def test_a_trace_that_is_doubted_is_refused_if_asked(lake: Lake, written: Callable[..., str]) -> None:
    rows = [f"{node},{1000 * t},{t},0" for node in "ab" for t in range(60)]
    file = written("walk.csv", *rows)
    doubts = ingest(lake, [file]).doubts
    assert doubts
    with pytest.raises(TraceError) as caught:
        ingest(lake, [file], "strict", IngestSettings(strict=True))
    assert str(caught.value) == "; ".join(doubts)
    assert not lake.has("traces", trace="strict")
    assert ingest(lake, [file], "ms", IngestSettings(units="ms", strict=True)).doubts == []


def test_a_trace_that_replaces_another_one_says_so(lake: Lake, written: Callable[..., str]) -> None:
    first, other = written("one.csv", "a,0,1,500", "a,1,2,501", "b,0,1,1"), written("two.csv", "a,0,1,5")
    assert ingest(lake, [first], "walk").doubts == []
    assert ingest(lake, [first], "walk").doubts == []
    assert ingest(lake, [other], "walk").doubts[-1:] == [
        f"this replaces the trace walk of 2 nodes, which was read from {first}; `earshot ingest --trace NAME` keeps "
        "both"
    ]


def test_most_rows_rejected_comes_first_of_all_doubts(lake: Lake, written: Callable[..., str]) -> None:
    file = written("walk.csv", "a,0,1,5", "a,1,2,6", *["a,1,2,6"] * 6)
    ingest(lake, [written("other.csv", "a,0,1,5", "a,1,2,6")], "walk")
    doubts = ingest(lake, [file], "walk").doubts
    assert len(doubts) == 2
    assert doubts[1].startswith("this replaces the trace walk of 1 nodes")


def test_a_file_that_breaks_off_is_doubted(lake: Lake, tmp_path: Path) -> None:
    whole = gzip.compress((CSV + "".join(f"a,{t},{t},0\n" for t in range(9_000))).encode())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    summary = ingest(lake, [str(path)])
    assert summary.rejected == {"unparsable": 1}
    assert [str(path) in doubt for doubt in summary.doubts] == [True]


@pytest.mark.parametrize(
    ("origin", "swapped"), [(None, 5.0), ((60.0, 0.0), math.hypot(3 / 0.5, 4)), ((0.0, 60.0), math.hypot(3, 4 * 0.5))]
)
def test_speeds_are_those_of_legs_that_move(
    origin: tuple[float, float] | None, swapped: float, quick_spark: Session
) -> None:
    """Of three legs that last, one of a node that stands, the lower median of two; a leg of a moment does not count."""
    rows = [(0.0, 1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 3.0, 4.0, 6.0), (0.0, 1.0, 6.0, 8.0, 9.0), (1.0, 1.0, 0.3, 0.4, 2.0)]
    frame = quick_spark.createDataFrame(rows, "time double, until double, x_m_s double, y_m_s double, speed_m_s double")
    (found,) = frame.agg(*_speeds(LocalPlane(*origin) if origin else None)).collect()
    assert found.asDict() == {"speed": 5.0, "given_speed": 6.0, "swapped_speed": pytest.approx(swapped)}


# -- What cannot be read


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        ([], CSV, "there are no positions in {file}: the trace is empty"),
        (
            ["a,1,oops,2", "a,2,oops,2"],
            CSV,
            "there is no good position in {file}; the first problem is in line 2: x 'oops' is not a number; "
            "if it is of another format, name it with --format",
        ),
        (
            ["a,noon,1,2"],
            CSV,
            "there is no good position in {file}; the first problem is in line 2: time 'noon' is not a time; write "
            "times in seconds or as 2026-03-29T08:50:00Z, or give `earshot ingest` their format, as in --time-format "
            "'%d.%m.%Y %H:%M:%S'",
        ),
        (["a,noon,1,2"], GEO, "the first problem is in line 2: time 'noon' is not a time"),
        ([], GEO, "there are no positions in {file}: the trace is empty"),
        (["a,0,147,8", "a,1,148,8"], GEO, "there is no good position in {file}; in line 2 "),
    ],
)
def test_a_trace_without_a_good_position_says_why(
    rows: list[str], header: str, words: str, lake: Lake, written: Callable[..., str]
) -> None:
    file = written("walk.csv", *rows, header=header)
    with pytest.raises(TraceError) as caught:
        ingest(lake, [file])
    assert words.format(file=file) in str(caught.value)
    assert not lake.has("traces")


def test_several_files_without_a_good_position_are_counted(lake: Lake, written: Callable[..., str]) -> None:
    files = [written("one.csv", "a,1,oops,2"), written("two.csv", "a,1,1,oops")]
    with pytest.raises(TraceError, match=r"^there is no good position in any of the 2 files; the first"):
        ingest(lake, files)


def test_files_are_looked_at_before_spark_is_started(written: Callable[..., str]) -> None:
    good, bad = written("one.csv", "a,1,2,3"), written("two.csv", "a,1,2,3", header="who,when,x,y\n")
    check_files([good], IngestSettings())
    check_files([bad], IngestSettings(columns="node=who,time=when"))
    with pytest.raises(TraceError, match="no column that could be the time"):
        check_files([bad], IngestSettings())


# -- What is in the lake already


def test_a_trace_that_was_read_from_the_same_files_is_not_read_again(
    lake: Lake, written: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(*given: Any) -> Any:
        read.append(given[2])
        return ingest(*given)

    monkeypatch.setattr(ingest_module, "ingest", counted)
    file = written("walk.csv", "a,0,1,5", "a,1,2,6")
    assert [trace_in_lake(lake, one) for one in (file, file, [file], "walk")] == ["walk"] * 4
    assert read == ["walk"]
    assert trace_in_lake(lake, file, IngestSettings(strict=True)) == "walk"
    assert read == ["walk"]
    assert trace_in_lake(lake, file, IngestSettings(max_speed_m_s=50.0)) == "walk"
    assert trace_in_lake(lake, file) == "walk"
    assert len(read) == 3
    written("walk.csv", "a,0,1,5", "a,1,2,6", "a,2,3,7")
    assert trace_in_lake(lake, file) == "walk"
    assert len(read) == 4


def test_a_name_that_is_no_trace_offers_those_there_are_and_a_path_says_that_it_is_none(
    lake: Lake, written: Callable[..., str], tmp_path: Path
) -> None:
    ingest(lake, [written("walk.csv", "a,0,1,5", "a,1,2,6")])
    with pytest.raises(LakeError, match="walk"):
        trace_in_lake(lake, "town")
    for path in ("town.csv", str(tmp_path / "town")):
        with pytest.raises(TraceError, match=f"there is no trace file {path}"):
            trace_in_lake(lake, path)
    with pytest.raises(TraceError, match="there is no trace file town"):
        trace_in_lake(lake, ["town", "city"])


def test_the_source_of_a_trace_is_its_files_their_times_and_how_they_are_read(written: Callable[..., str]) -> None:
    file = written("walk.csv", "a,0,1,5")
    os.utime(file, ns=(10**9, 10**9))
    own = IngestSettings()
    whole = source_of([file], own)
    assert len(whole) == 16
    assert source_of([file], replace(own, strict=True)) == whole == source_of([os.path.relpath(file)], own)
    assert source_of([f"file:{file}"], own) == whole
    assert source_of([file], replace(own, units="ms")) != whole
    address = source_of(["s3a://bucket/walk.csv"], own)
    assert address == source_of(["s3a://bucket/walk.csv"], own) != source_of(["s3a://bucket/walk"], own)
    os.utime(file, ns=(10**9, 10**9 + 1))
    assert source_of([file], own) != whole
    os.utime(file, ns=(10**9, 10**9))
    assert source_of([file], own) == whole
    written("walk.csv", "a,0,1,55")
    os.utime(file, ns=(10**9, 10**9))
    assert source_of([file], own) != whole


# -- Sizes and settings


def test_rows_are_guessed_from_the_sizes_of_files(tmp_path: Path) -> None:
    """A row of text has about 20 bytes, one that is compressed or of Parquet about 4."""
    for name, size in (("a.csv", 4019), ("b.csv.gz", 43), ("c.csv.bz2", 40), ("d.csv.xz", 40)):
        (tmp_path / name).write_bytes(b"x" * size)
    text, *packed = (str(tmp_path / name) for name in ("a.csv", "b.csv.gz", "c.csv.bz2", "d.csv.xz"))
    assert _rows_about([text, *packed], "csv") == 200 + 10 + 10 + 10
    assert _rows_about([text], "parquet") == 1004
    assert _rows_about([text, str(tmp_path)], "csv") is None
    assert _rows_about([], "csv") == 0


class Steps:
    """A frame that notes how its rows are dealt."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Steps]:
        def step(*given: Any) -> Steps:
            self.steps.append((name, *given))
            return self

        return step


@pytest.mark.parametrize(
    ("count", "among", "steps"),
    [
        (0, 250_000, [("coalesce", 1)]),
        (250_000, 250_000, [("coalesce", 1)]),
        (250_000, 250_001, [("repartition", 1)]),
        (250_001, 250_001, [("repartitionByRange", 2, "time", "node")]),
        (750_001, 750_001, [("repartitionByRange", 4, "time", "node")]),
    ],
)
def test_a_file_has_a_quarter_of_a_million_rows_in_order(count: int, among: int, steps: list[Any]) -> None:
    frame: Any = Steps()
    _in_files(frame, count, among, "time", "node")
    assert frame.steps == [*steps, ("sortWithinPartitions", "time", "node")]


@pytest.mark.parametrize(("rows", "steps"), [(20_000, []), (20_001, [("persist",)]), (None, [("persist",)])])
def test_many_rows_are_kept_for_the_next_job(rows: int | None, steps: list[Any]) -> None:
    frame: Any = Steps()
    assert _kept(frame, rows) is frame
    assert frame.steps == steps


@pytest.mark.parametrize(
    ("interval_s", "moments", "end", "common"),
    [(2.0, 6, 20.0, True), (2.0, 7, 20.0, False), (2.0, 6, 18.9, False), (2.0, 6, 19.1, True), (None, 1, 10.0, False),
     (0.0, 1, 10.0, False)],
)  # fmt: skip
def test_moments_are_common_where_there_are_no_more_than_intervals(
    interval_s: float | None, moments: int, end: float, common: bool
) -> None:
    assert _share_moments({"interval_s": interval_s, "moments": moments, "start": 10.0, "end": end}) is common


def test_settings_become_the_options_of_the_reader() -> None:
    assert IngestSettings().options() == {"others": "true"}
    assert IngestSettings(columns="node=bus", geo=True, time_format="%H").options() == {
        "columns": "node=bus", "geo": "true", "timeFormat": "%H", "others": "true",
    }  # fmt: skip
    assert IngestSettings(units="ms,lonlat,degrees").options() == {
        "geo": "true", "swapped": "true", "timeFactor": "0.001", "others": "true",
    }  # fmt: skip
    assert IngestSettings(units="km,s").options() == {"timeFactor": "1.0", "others": "true"}


def test_a_summary_is_plain_values(lake: Lake, written: Callable[..., str]) -> None:
    summary = ingest(lake, [written("walk.csv", "a,0,1,5", "a,1,2,6")])
    found = json.loads(json.dumps(summary.as_json()))
    assert {**found, "box": tuple(found["box"])} == summary.as_json()
