"""Which format a file has, and what is read of it, without Spark."""

from __future__ import annotations

import gzip
import io
import math
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from earshot.errors import TraceError, UnknownName
from earshot.traces import files
from earshot.traces.files import (
    MOST_UNPACKED,
    UNPACKED_FREELY_BYTES,
    FilePiece,
    expanded,
    is_address,
    local_path,
    size_of,
)
from earshot.traces.formats import (
    FoundFormat,
    TraceFormat,
    _parsed,
    find_format,
    guess_format,
    read_trace,
    sightings_in,
)
from earshot.traces.sightings import Sighting, TraceOptions, degrees, epoch_seconds, named_columns
from earshot.traces.text_formats import Knot, SetDestination, parse_bonnmotion, path_of_destinations
from earshot.traces.xml_formats import _tracks_in


def written(folder: Path, name: str, content: bytes | str) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<fcd-export/>", ("sumo-fcd", "xml")),
        ("\ufeff  <?xml version='1.0'?><!-- <gpx> --><a:fcd-export>", ("sumo-fcd", "xml")),
        ("<!DOCTYPE gpx><gpx >", ("gpx", "xml")),
        ("<html>", None),
        ("$node_(0) set X_ 5\n", ("ns2", "text")),
        ('# setdest\n$ns_ at 2.0 "$node_(0) setdest 1 2 3"\n', ("ns2", "text")),
        ("0 9 0 9 0 9\n0 bus 1 2\n", ("one", "text")),
        ("0 9 0 9 0 9 0 1\n0 bus 1 2 3\n", ("one", "text")),
        ("0 9 0 9 0 9\n0 9 0 9 0 9\n", ("bonnmotion", "text")),
        ("# comment\n\n0 1 2\n", ("bonnmotion", "text")),
        ("0 1 2 3 4 5 6 7\n", ("bonnmotion", "text")),
        ("0 1 2 3\n", ("bonnmotion", "text")),
        ("0 1 2 3 4\n", None),
        ("0 1\n", None),
        ("node,time,x,y\na,0,1,2\n", ("csv", "csv")),
        ("node\ttime\n", ("csv", "csv")),
        ("timestep_time;vehicle_id\n", ("sumo-fcd", "csv")),
        ("words alone\n", None),
    ],
)
def test_a_files_first_bytes_show_its_format(tmp_path: Path, content: str, expected: tuple[str, str] | None) -> None:
    assert guess_format(written(tmp_path, "trace", content)) == expected


def test_an_empty_file_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is empty: there is no trace in it"):
        guess_format(written(tmp_path, "trace", " \n"))
    with pytest.raises(TraceError, match="cannot be unpacked"):
        guess_format(written(tmp_path, "trace.gz", gzip.compress(b"x" * 1000)[:10]))


def test_files_of_two_kinds_and_of_another_kind_are_refused(tmp_path: Path) -> None:
    table = written(tmp_path, "a.csv", "node,time,x,y\na,0,1,2\n")
    globe = written(tmp_path, "b.csv", "node,time,lat,lon\na,0,1,2\n")
    lines = written(tmp_path, "c.txt", "0 1 2\n")
    with pytest.raises(TraceError, match=r"several kinds, csv \(degrees, csv\) and csv \(metres, csv\)"):
        find_format([table, globe], None, TraceOptions())
    with pytest.raises(TraceError, match="looks like bonnmotion, not like ns2; try --format bonnmotion"):
        find_format([lines], "ns2", TraceOptions())
    with pytest.raises(TraceError, match="cannot detect the format"):
        find_format([written(tmp_path, "d", "words alone\n")], None, TraceOptions())
    assert [find_format([file], None, TraceOptions())[1:] for file in (table, globe, lines)] == [
        ("csv", False), ("csv", True), ("text", False),
    ]  # fmt: skip


def test_a_parquet_file_of_sumo_is_known_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"timestep_time": [0.0], "vehicle_id": ["a"], "vehicle_x": [1.0], "vehicle_y": [2.0]}
    pq.write_table(pa.table(columns), path)
    found = find_format([str(path)], None, TraceOptions())
    assert (found.format.name, found.form) == ("sumo-fcd", "parquet")
    pq.write_table(pa.table({"time": [0.0], "node": ["a"], "x": [1.0], "y": [2.0]}), path)
    assert find_format([str(path)], None, TraceOptions()).format.name == "csv"
    whole = read_trace(tmp_path)
    assert (list(whole.node), list(whole.time), list(whole.x_m), whole.geo) == (["a"], [0.0], [1.0], False)


def test_a_trace_is_read_whole_and_its_bad_rows_are_problems(tmp_path: Path) -> None:
    written(tmp_path, "a.csv", "node,time,lat,lon\na,0,1,2\nb,1,95,2\nc,2,3,4\n")
    found = read_trace(tmp_path / "a.csv")
    assert (list(found.node), list(found.time), list(found.lat_deg), list(found.lon_deg)) == (
        ["a", "c"], [0.0, 2.0], [1.0, 3.0], [2.0, 4.0],
    )  # fmt: skip
    assert (found.geo, found.motion, np.isnan(found.x_m).all()) == (True, "samples", True)
    assert [(problem.file, problem.line) for problem in found.problems] == [(str(tmp_path / "a.csv"), 3)]
    waypoints = read_trace(written(tmp_path, "b.txt", "0 1 2 5 4 6\n"))
    assert (waypoints.motion, waypoints.geo, waypoints.problems) == ("waypoints", False, ())


def test_a_text_that_was_cut_short_says_where(tmp_path: Path) -> None:
    lines = "0 10 0 90 0 90 0 0\n" + "".join(f"{k} bus{k * 7919 % 1000} {k * 31 % 97} 2\n" for k in range(3000))
    whole = gzip.compress(lines.encode())
    found = read_trace(written(tmp_path, "t.one.gz", whole[: len(whole) // 2]), "one")
    assert 0 < len(found.node) < 3000
    assert [problem.line for problem in found.problems] == [len(found.node) + 2]
    assert "breaks off" in found.problems[0].problem


def test_a_text_that_was_cut_before_its_first_row_breaks_off_in_its_first_line(tmp_path: Path) -> None:
    file = written(tmp_path, "a.movements.gz", gzip.compress(b"0 0 0 1 1 1 \n" * 4000)[:14])
    (row,) = _parsed(file, lambda stream, *_: stream.readlines()[:0], True, TraceOptions())
    assert (row.line, row.problem) == (
        1,
        "the file breaks off: Compressed file ended before the end-of-stream marker was reached",
    )


def test_a_packed_file_is_closed_with_its_stream(tmp_path: Path) -> None:
    stream = files.open_trace(written(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n")))
    unpacked = stream.raw  # type: ignore[attr-defined]
    assert stream.read() == b"a,b\n"
    stream.close()
    assert (unpacked.closed, unpacked.packed.closed, unpacked.raw_file.closed) == (True, True, True)


def test_every_path_must_be_named(tmp_path: Path) -> None:
    file = written(tmp_path, "a.csv", "")
    for paths in ([], [""], [file, ""]):
        with pytest.raises(TraceError, match="no trace file was named"):
            expanded(paths)
    assert expanded([file]) == [file]


def test_paths_stand_for_files_in_order(tmp_path: Path) -> None:
    names = [written(tmp_path, name, "x") for name in ("b", "a", ".hidden", "_made")]
    assert expanded([str(tmp_path)]) == [names[1], names[0]] == expanded([f"file:{tmp_path}/[ab]"])
    assert expanded([names[0], f"file://{names[1]}"]) == names[:2]
    for wrong in ([], [""], [names[0], ""], [str(tmp_path / "none")]):
        with pytest.raises(TraceError):
            expanded(wrong)


@pytest.mark.parametrize(
    ("path", "away"),
    [("s3a://b/k", True), ("file:///a", False), ("file:/a", False), ("/a://b", False), ("c:/a", False)],
)
def test_an_address_names_another_file_system(path: str, away: bool) -> None:
    assert is_address(path) == away
    assert local_path("file:///a") == local_path("file:/a") == "/a"


def test_a_piece_of_a_file_ends_where_it_says(tmp_path: Path) -> None:
    path = written(tmp_path, "t", "0123456789")
    with io.BufferedReader(FilePiece(path, 2, 7)) as piece:
        assert piece.read() == b"23456"
    assert (size_of(path), size_of(str(tmp_path)), size_of(f"file://{path}")) == (10, None, 10)


def test_what_unpacks_to_more_than_400_times_its_size_is_an_attack() -> None:
    assert (MOST_UNPACKED, UNPACKED_FREELY_BYTES) == (400, 64 * 1024 * 1024)


def test_columns_are_named_by_role_and_empty_parts_are_skipped() -> None:
    assert named_columns(" node = bus ,, time=when,") == {"node": "bus", "time": "when"}
    assert named_columns(None) == {}
    for wrong in ("node", "node="):
        with pytest.raises(TraceError, match="columns are given as role=name"):
            named_columns(wrong)
    with pytest.raises(UnknownName, match="no column role named 'bus'"):
        named_columns("bus=node")


@pytest.mark.parametrize(("lat", "lon"), [("90", "180"), ("-90", "-180"), ("0", "0")])
def test_the_globe_includes_its_edges(lat: str, lon: str) -> None:
    assert degrees(lat, lon) == (float(lat), float(lon))


@pytest.mark.parametrize(
    ("lat", "lon", "why"),
    [("90.1", "0", "latitude"), ("-90.1", "0", "latitude"), ("0", "180.1", "longitude"), ("0", "-180.1", "longitude")],
)
def test_outside_the_globe_is_no_place(lat: str, lon: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"{why} .* is outside"):
        degrees(lat, lon)


def test_a_time_without_a_zone_is_utc() -> None:
    assert epoch_seconds("1970-01-02") == epoch_seconds("1970-01-02T02:00:00+02:00") == 86400.0
    assert epoch_seconds("03/01/1970 00:00", "%d/%m/%Y %H:%M") == 2 * 86400.0
    with pytest.raises(ValueError, match="is not a date and time"):
        epoch_seconds("yesterday")


@pytest.mark.parametrize(
    ("content", "several"),
    [
        (b"<gpx><trk>" + b" " * (3 << 20), False),
        (b"<gpx><trk>" + b" " * ((1 << 20) - 13) + b"<trk a='1'>", True),
        (b"<gpx><trk><trk>", True),
        (b"<gpx><trkpt><trkseg>", False),
    ],
    ids=["one in three blocks", "the second on the border of two blocks", "two", "none"],
)
def test_tracks_are_counted_over_blocks(content: bytes, several: bool) -> None:
    assert (_tracks_in(io.BytesIO(content)) > 1) == several


def test_an_order_to_where_the_node_is_lets_it_stand() -> None:
    start = Knot(0.0, 1.0, 2.0, line=1)
    assert path_of_destinations("a", start, [SetDestination(5.0, 1.0, 2.0, 3.0, 2)]).knots[-1] == Knot(5.0, 1.0, 2.0, 2)


def test_an_order_at_the_time_of_arrival_begins_at_the_destination() -> None:
    orders = [SetDestination(0.0, 10.0, 0.0, 5.0, 2), SetDestination(2.0, 10.0, 8.0, 4.0, 3)]
    knots = path_of_destinations("a", Knot(0.0, 0.0, 0.0, line=1), orders).knots
    assert [(knot.time, knot.x_m, knot.y_m) for knot in knots] == [(0.0, 0.0, 0.0), (2.0, 10.0, 0.0), (4.0, 10.0, 8.0)]
    assert math.isclose(knots[1].speed_m_s or 0.0, 4.0)


def test_an_address_stands_for_the_files_of_its_folder_or_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bucket" / "day" / "deep").mkdir(parents=True)
    for name in ("day/b.csv", "day/a.csv", "day/c.txt", "day/.hidden", "day/_made", "day/deep/d.csv"):
        written(tmp_path / "bucket", name, "12345")

    def local(address: str) -> tuple[fs.FileSystem, str]:
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), address.removeprefix("s3a://")

    monkeypatch.setattr(files, "_system", local)
    folder = "s3a://bucket"
    listed = {
        "": [],
        "/night": [],
        "/day": ["a.csv", "b.csv", "c.txt"],
        "/day/": ["a.csv", "b.csv", "c.txt"],
        "/day/*.csv": ["a.csv", "b.csv"],
        "/da?/a*": ["a.csv"],
        "/day/deep/d.csv": ["d.csv"],
    }
    for path, names in listed.items():
        if names:
            found = expanded([folder + path])
            assert [name.rpartition("/")[2] for name in found] == names
            assert all(size_of(name) == 5 for name in found)
        else:
            with pytest.raises(TraceError, match="there is no trace file"):
                expanded([folder + path])
    assert (size_of(f"{folder}/day/a.csv"), size_of(f"{folder}/day")) == (5, None)


def test_an_order_one_metre_away_is_followed() -> None:
    knots = path_of_destinations("a", Knot(0.0, 1.0, 2.0, line=1), [SetDestination(5.0, 2.0, 2.0, 0.5, 2)]).knots
    assert [(knot.time, knot.x_m) for knot in knots] == [(0.0, 1.0), (5.0, 1.0), (7.0, 2.0)]


def test_a_line_with_one_number_that_is_not_finite_is_a_problem() -> None:
    found = list(parse_bonnmotion(io.BytesIO(b"0 1 2 5 4 6\n0 nan 2\n"), "trace", TraceOptions()))
    assert [(one.node, one.line) for one in found if one.problem] == [("1", 2)]


def test_options_are_read_from_texts_in_any_case() -> None:
    assert TraceOptions.of({}) == TraceOptions()
    given = {"Columns": "node=bus", "GEO": "True", "timeFormat": "%d", "swapped": "true", "others": "TRUE"}
    given["timefactor"] = "0.1"
    assert TraceOptions.of(given) == TraceOptions({"node": "bus"}, True, "%d", True, 0.1, True)
    for name in ("geo", "swapped", "others"):
        assert TraceOptions.of({name: "false"}) == TraceOptions()


def test_moments_of_a_parquet_file_are_seconds_since_the_epoch(tmp_path: Path) -> None:
    moments = pa.array([1_500_000, None], pa.timestamp("us", "UTC"))
    rows = {"node": [7, 8], "time": moments, "x": [1, 2], "y": [3.0, 4.0]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    found = read_trace(tmp_path / "t.parquet")
    assert (list(found.node), list(found.time), list(found.x_m)) == (["7"], [1.5], [1.0])
    assert len(found.problems) == 1


def test_a_bad_line_of_numbers_says_what_is_wrong() -> None:
    found = list(parse_bonnmotion(io.BytesIO(b"0 1 2 5 4 6\n5 1 2 0 4 6\n0 1\n"), "trace", TraceOptions()))
    assert [one.problem for one in found if one.problem] == ["times go back", "2 numbers are not 'time x y' each"]


@pytest.mark.parametrize(
    ("found_geo", "given_geo", "geo"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_a_parser_is_given_what_a_files_header_says_of_degrees(
    tmp_path: Path, found_geo: bool, given_geo: bool, geo: bool
) -> None:
    asked: list[bool] = []

    def parse(stream: IO[bytes], _file: str, options: TraceOptions) -> list[Sighting]:
        asked.append(options.geo)
        return [Sighting(node=stream.read().decode(), line=1)]

    found = FoundFormat(TraceFormat("mine", "", ("text",), parse), "text", found_geo)
    (block,) = sightings_in(written(tmp_path, "t.txt", "a"), found, TraceOptions(geo=given_geo))
    assert (list(block.node), asked) == (["a"], [geo])
