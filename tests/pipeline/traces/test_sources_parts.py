"""Trace files as frames, without Spark: pieces of files, options of the data source, file numbers, Parquet's rows."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_on_duckdb import Session, schema_of

from earshot.errors import TraceError
from earshot.pipeline.traces import sources
from earshot.pipeline.traces.sources import (
    DDL,
    FilePart,
    Gpx,
    SumoFcd,
    TraceCsv,
    TraceReader,
    _check_parquet,
    csv_parts,
    read_sightings,
)
from earshot.traces.formats import FORMATS, FoundFormat, find_format
from earshot.traces.sightings import TraceOptions
from earshot.traces.tables import find_columns


def rows_of(batches: Any) -> list[tuple[Any, ...]]:
    """Node, time, place, line, problem, type."""
    return [
        tuple(row[name] for name in ("node", "time", "x_m", "y_m", "line", "problem", "type"))
        for batch in batches
        for row in batch.to_pylist()
    ]


def test_unknown_numbers_are_null_and_each_row_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("node,time,x,y,type,colour\na,0,1,2,bus,red\nb,1,,4,,\n")
    reader = TraceCsv({"path": str(path), "others": "true"}).reader(schema_of(DDL))  # type: ignore[arg-type]
    (part,) = reader.partitions()
    (batch,) = reader.read(part)  # type: ignore[attr-defined]
    assert batch.schema == schema_of(DDL)
    unknown = {"lat_deg": None, "lon_deg": None, "speed_m_s": None, "heading_deg": None, "file": str(path)}
    assert batch.to_pylist() == [
        {"node": "a", "time": 0.0, "x_m": 1.0, "y_m": 2.0, "line": 2, "problem": None, "type": "bus",
         "others": '{"colour": "red"}', **unknown},
        {"node": "b", "time": 1.0, "x_m": None, "y_m": 4.0, "line": 3, "problem": "no x", "type": None,
         "others": None, **unknown},
    ]  # fmt: skip


class Slow(io.BytesIO):
    """A stream that gives at most 15 bytes at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(15 if size is None or size < 0 else min(size, 15))


LINES = b"".join(b"%09d\n" % number for number in range(10))
"Of 10 bytes each."


@pytest.mark.parametrize(
    ("split_bytes", "slow", "cuts"),
    [
        (100, False, [(0, None, 1)]),
        (99, False, [(0, 90, 1), (90, 100, 10)]),
        (30, False, [(0, 30, 1), (30, 60, 4), (60, 90, 7), (90, 100, 10)]),
        (25, False, [(0, 20, 1), (20, 50, 3), (50, 70, 6), (70, 100, 8)]),
        # Blocks end at 15, 30, 45, 60, 75, 90 and 100: a piece ends with the block in which it is long enough.
        (40, True, [(0, 40, 1), (40, 90, 5), (90, 100, 10)]),
        (45, True, [(0, 40, 1), (40, 90, 5), (90, 100, 10)]),
        (46, True, [(0, 60, 1), (60, 100, 7)]),
    ],
)
def test_a_large_plain_table_is_cut_after_whole_lines_which_keep_their_numbers(
    split_bytes: int,
    slow: bool,
    cuts: list[tuple[int, int | None, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "large.csv"
    path.write_bytes(LINES)
    monkeypatch.setattr(sources, "SPLIT_BYTES", split_bytes)
    if slow:
        monkeypatch.setattr(sources, "opened", lambda _: Slow(LINES))
    assert csv_parts(str(path)) == [FilePart(str(path), *cut) for cut in cuts]


def test_a_line_that_is_longer_than_a_piece_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes(b"x" * 25 + b"\n" + LINES[:14])
    monkeypatch.setattr(sources, "SPLIT_BYTES", 10)
    assert csv_parts(str(path)) == [
        FilePart(str(path), 0, 26, 1), FilePart(str(path), 26, 36, 2), FilePart(str(path), 36, 40, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_table_is_one_piece(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "packed.csv"
    path.write_bytes(pack(LINES))
    monkeypatch.setattr(sources, "SPLIT_BYTES", 10)
    assert csv_parts(str(path)) == [FilePart(str(path))]


def read(source: Any, given: dict[str, str]) -> tuple[TraceReader, list[tuple[Any, ...]]]:
    reader = source(given).reader(schema_of(DDL))
    return reader, rows_of(batch for part in reader.partitions() for batch in reader.read(part))


def test_a_piece_is_read_with_the_options_and_the_numbers_of_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in ("one.csv", "two.csv")]
    for path, node in zip(paths, "ab", strict=True):
        path.write_text("who,time,x,y\n" + "".join(f"{node},{time},1,2\n" for time in range(5)))
    monkeypatch.setattr(sources, "SPLIT_BYTES", 20)
    given = {"paths": json.dumps([str(path) for path in paths]), "columns": "node=who"}
    reader, found = read(TraceCsv, given)
    assert len(reader.partitions()) == 6
    assert found == [(node, float(time), 1.0, 2.0, time + 2, None, None) for node in "ab" for time in range(5)]


FCD = """<fcd-export>{header}<timestep time="1.0"><vehicle id="car" x="8.5" y="47.25" speed="3" type="bus"/></timestep>
</fcd-export>
"""
GEO = '<!-- <configuration><output><fcd-output.geo value="true"/></output></configuration> -->'


@pytest.mark.parametrize(("header", "geo"), [("", False), (GEO, True)])
def test_sumos_header_says_whether_places_are_degrees(header: str, geo: bool, tmp_path: Path) -> None:
    path = tmp_path / "fcd.xml"
    path.write_text(f'<?xml version="1.0"?>\n{header}\n' + FCD.format(header=""))
    reader, found = read(SumoFcd, {"path": str(path)})
    assert (reader.found, reader.files) == (FoundFormat(FORMATS["sumo-fcd"], "xml", geo), [str(path)])
    assert reader.partitions() == [FilePart(str(path))]
    place = (None, None) if geo else (8.5, 47.25)
    assert [row[:4] for row in found] == [("car", 1.0, *place)]
    assert [row[6] for row in found] == ["bus"]


def test_only_sumos_header_is_asked_for_degrees(tmp_path: Path) -> None:
    path = tmp_path / "walk.gpx"
    path.write_text(
        f'<?xml version="1.0"?>\n{GEO}\n<gpx><trk><trkseg>'
        '<trkpt lat="47.25" lon="8.5"><time>1970-01-01T00:00:09Z</time></trkpt></trkseg></trk></gpx>'
    )
    reader, found = read(Gpx, {"path": str(path)})
    assert reader.found == FoundFormat(FORMATS["gpx"], "xml", False)
    assert [row[:2] for row in found] == [("walk", 9.0)]


def test_a_source_needs_a_path() -> None:
    with pytest.raises(TraceError, match="no trace file was named"):
        TraceCsv({}).reader(schema_of(DDL))  # type: ignore[arg-type]


# -- all of a trace's files


def sightings(session: Any, files: list[str], name: str | None = None, **options: str) -> list[tuple[Any, ...]]:
    found = find_format(files, name, TraceOptions.of(options))
    frame = read_sightings(session, files, found, options, name)
    return [
        tuple(row)
        for row in frame.select("node", "time", "x_m", "y_m", "file", "file_number", "line", "problem").collect()
    ]


def test_rows_have_the_number_of_their_file_in_the_order_given(
    quick_spark: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.csv").write_text(f"node,time,x,y\n{name},0,1,2\n")
    monkeypatch.chdir(tmp_path)
    second, first = str(tmp_path / "second.csv"), str(tmp_path / "first.csv")
    for files in (["second.csv", "first.csv"], [f"file:{second}", f"file://{first}"]):
        assert sightings(quick_spark, files) == [
            ("second", 0.0, 1.0, 2.0, second, 0, 2, None), ("first", 0.0, 1.0, 2.0, first, 1, 2, None),
        ]  # fmt: skip


def test_a_text_format_is_read_as_the_source_of_its_name_would(quick_spark: Session, tmp_path: Path) -> None:
    path = tmp_path / "walk.one"
    path.write_text("0 10 0 100 0 100\n1 kim 4 5\n")
    assert sightings(quick_spark, [str(path)]) == [("kim", 1.0, 4.0, 5.0, str(path), 0, 2, None)]


def test_a_table_of_sumos_is_read_as_any_table(quick_spark: Session, tmp_path: Path) -> None:
    path = tmp_path / "fcd.csv"
    path.write_text("timestep_time;vehicle_id;vehicle_x;vehicle_y\n1.00;car;2;3\n")
    found = find_format([str(path)], None, TraceOptions())
    assert (found.format.name, found.form) in {("sumo-fcd", "csv"), ("csv", "csv")}
    assert sightings(quick_spark, [str(path)]) == [("car", 1.0, 2.0, 3.0, str(path), 0, 2, None)]


PLUGIN = """
from earshot.traces.formats import TraceFormat
from earshot.traces.sightings import Sighting


def parse(stream, file, options):
    for line, text in enumerate(stream, 1):
        node, time, x, y = text.decode().split()
        yield Sighting(node, float(time), float(x), float(y), line=line, problem="geo" if options.geo else None)


STEPS = TraceFormat("steps", "steps", ("text",), parse)
"""


def test_a_format_that_is_a_plug_in_is_loaded_by_the_name_the_user_gave(quick_spark: Session, tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(PLUGIN)
    path = tmp_path / "walk.steps"
    path.write_text("kim 1 2 3\n")
    name = f"{tmp_path}/steps.py:STEPS"
    assert sightings(quick_spark, [str(path)], name) == [("kim", 1.0, 2.0, 3.0, str(path), 0, 1, None)]
    assert sightings(quick_spark, [str(path)], name, geo="true")[0][-1] == "geo"


# -- Parquet


def test_rows_of_parquet_files_are_named_by_file_and_number(quick_spark: Session, tmp_path: Path) -> None:
    paths = [tmp_path / "a b.parquet", tmp_path / "c.parquet"]
    for path, node in zip(paths, "ac", strict=True):
        rows = {"node": [node, node], "time": [1.0, None], "x": [2.0, 3.0], "y": [4.0, 5.0]}
        pq.write_table(pa.table(rows), path)
    one, other = map(str, paths)
    assert sightings(quick_spark, [one, other]) == [
        ("a", 1.0, 2.0, 4.0, one, 0, 1, None), ("a", None, 3.0, 5.0, one, 0, 2, "no time"),
        ("c", 1.0, 2.0, 4.0, other, 1, 1, None), ("c", None, 3.0, 5.0, other, 1, 2, "no time"),
    ]  # fmt: skip


def test_a_task_reads_rows_of_several_files_and_addresses() -> None:
    batch = pa.record_batch(
        {
            "node": ["a", "b", "a"], "time": ["1", "2", "3"], "x": [1.0, 2.0, 3.0], "y": [0.0, 0.0, 0.0],
            "file path": ["file:/data/a%20b.parquet", "s3a://bucket/a%20b.parquet", "file:/data/a%20b.parquet"],
            "row number": pa.array([1, 1, 2], pa.int64()),
        }
    )  # fmt: skip
    columns = find_columns("x", ["node", "time", "x", "y"], TraceOptions())
    found = [row for part in _check_parquet(columns, None, [batch]) for row in part.to_pylist()]
    assert [(row["node"], row["time"], row["file"], row["line"]) for row in found] == [
        ("a", 1.0, "/data/a b.parquet", 1),
        ("a", 3.0, "/data/a b.parquet", 2),
        ("b", 2.0, "s3a://bucket/a%20b.parquet", 1),
    ]
