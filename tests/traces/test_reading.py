"""What single lines, headers, folders and plug-ins of each format are read as."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from earshot.errors import TraceError
from earshot.plugins import PluginError
from earshot.traces import files
from earshot.traces.formats import FORMATS, TraceFormat, _checked, _holds_parquet, find_format, read_trace
from earshot.traces.lake_tables import LakeTable, TraceAbout, _trace_rows, trace_about
from earshot.traces.sightings import Sighting, TraceOptions
from earshot.traces.text_formats import parse_bonnmotion, parse_ns2, parse_one
from earshot.traces.xml_formats import header_of, parse_fcd, parse_gpx, says_geo


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


# -- Folders and formats


def rows_of(*nodes: str) -> pa.Table:
    return pa.table({"node": list(nodes), "time": [0.0] * len(nodes), "x": [1.0] * len(nodes), "y": [2.0] * len(nodes)})


def test_a_folder_with_parquet_files_is_one_table_whatever_else_lies_there(tmp_path: Path) -> None:
    assert not _holds_parquet(str(tmp_path))
    (tmp_path / "day=1").mkdir()
    pq.write_table(rows_of("a", "b"), tmp_path / "day=1" / "t.parquet")
    assert _holds_parquet(str(tmp_path))
    assert sorted(read_trace(tmp_path).node) == ["a", "b"]
    assert sorted(read_trace(tmp_path, "csv").node) == ["a", "b"]
    written(tmp_path / "day=1", "_SUCCESS", "")
    assert _holds_parquet(str(tmp_path))
    with pytest.raises(TraceError):
        read_trace(tmp_path, "ns2")


def test_a_named_format_keeps_the_form_that_the_file_has(tmp_path: Path) -> None:
    pq.write_table(rows_of("a"), tmp_path / "t.parquet")
    table = written(tmp_path, "t.csv", "timestep_time;vehicle_id;vehicle_x;vehicle_y\n0;a;1;2\n")
    document = written(tmp_path, "t.xml", "<fcd-export/>")
    for file, name, form in (
        (str(tmp_path / "t.parquet"), "csv", "parquet"),
        (table, "sumo-fcd", "csv"),
        (document, "sumo-fcd", "xml"),
        (written(tmp_path, "t.txt", "words alone\n"), "ns2", "text"),
    ):
        assert find_format([file], name, TraceOptions())[:2] == (FORMATS[name], form)


def test_fcd_is_in_degrees_where_sumo_or_the_user_says_so(tmp_path: Path) -> None:
    head = (
        '<?xml version="1.0"?>\n<!-- generated\n<fcd-output.geo value="true"/> <other value="5"/>\n-->\n<fcd-export/>'
    )
    file = written(tmp_path, "t.xml", head)
    assert header_of(file) == {"fcd-output.geo": "true", "other": "5"}
    assert find_format([file], None, TraceOptions()).geo
    plain = written(tmp_path, "u.xml", '<fcd-export><a value="true"/></fcd-export>')
    assert (header_of(plain), find_format([plain], None, TraceOptions()).geo) == ({}, False)
    assert find_format([plain], None, TraceOptions(geo=True)).geo
    stated = {
        text: says_geo({"fcd-output.geo": text}) for text in ("true", " YES ", "1", "x", "on", "t", "false", "0", "")
    }
    assert [text for text, geo in stated.items() if geo] == ["true", " YES ", "1", "x", "on", "t"]
    assert not says_geo({})


def test_a_plug_in_is_a_format_of_text_or_xml_with_a_parser() -> None:
    good = TraceFormat("mine", "my format", ("text",), parse_one)
    assert _checked("mine", good) is good
    for wrong in (object(), TraceFormat("mine", "no parser", ("text",))):
        with pytest.raises(PluginError, match="is not a trace format"):
            _checked("mine", wrong)
    with pytest.raises(PluginError, match="forms must be"):
        _checked("mine", TraceFormat("mine", "two forms", ("text", "xml"), parse_one))


# -- Text


def ns2(*orders: str) -> list[Sighting]:
    start = "$node_(0) set X_ 1\n$node_(0) set Y_ 2\n"
    return list(parse_ns2(io.BytesIO((start + "\n".join(orders)).encode()), "t", TraceOptions()))


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ('$ns_ at -1.0 "$node_(0) setdest 5 6 7"', "a time below zero"),
        ('$ns_ at 1.0 "$node_(0) setdest 5 6 -7"', "a speed below zero"),
        ('$ns_ at 1.0 "$node_(0) setdest 1e999 6 7"', "a "),
        ('$ns_ at 0.0 "$node_(0) setdest 5 6 7"', None),
        ('$ns_ at 1.0 "$node_(0) setdest 5 6 0"', None),
        ("puts nothing", None),
    ],
)
def test_an_order_of_ns2_that_cannot_be_followed_is_a_problem_of_its_line(order: str, problem: str | None) -> None:
    found = [(one.line, one.problem[: len(problem or "")]) for one in ns2(order) if one.problem]
    assert found == ([] if problem is None else [(3, problem)])


def test_a_line_of_bonnmotion_that_fits_both_widths_is_on_the_plane() -> None:
    found = list(parse_bonnmotion(io.BytesIO(b"0 1 2 3 4 5 6 7 8 9 10 11\n"), "t", TraceOptions()))
    assert [(one.time, one.x_m, one.y_m) for one in found] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]


def test_most_lines_decide_about_the_width_and_the_plane_wins_a_tie() -> None:
    def times(text: bytes) -> list[float | None]:
        return [one.time for one in parse_bonnmotion(io.BytesIO(text), "t", TraceOptions()) if not one.problem]

    assert times(b"0 1 1\n0 1 1 9\n0 2 2 9\n") == [0.0, 0.0]
    assert times(b"0 1 1 5 2 2\n0 1 1 9\n") == [0.0, 5.0]


def test_a_line_of_the_one_without_a_node_is_a_problem_of_nobody() -> None:
    found = list(parse_one(io.BytesIO(b"0 1 0 1 0 1\n# note\n5\n5 bus 1 2 3\n5 bus 1 2 3 4\n"), "t", TraceOptions()))
    assert found == [
        Sighting(line=3, problem="1 words, not 'time id x y'"),
        Sighting("bus", 5.0, 1.0, 2.0, line=4),
        Sighting("bus", line=5, problem="6 words, not 'time id x y'"),
    ]


@pytest.mark.parametrize(("header", "right"), [("0 1 0 1 0 1", True), ("0 1 0 1 0 1 0 1", True), ("0 1 0 1 0", False)])
def test_the_header_of_the_one_has_six_or_eight_bounds(header: str, right: bool) -> None:
    text = io.BytesIO(f"{header}\n0 bus 1 2\n".encode())
    if right:
        assert len(list(parse_one(text, "t", TraceOptions()))) == 1
    else:
        with pytest.raises(TraceError, match="is not an external movement of The ONE"):
            list(parse_one(text, "t", TraceOptions()))


# -- XML


def fcd(step: str, **options: object) -> list[Sighting]:
    document = f"<fcd-export><timestep {step}><vehicle id='a' x='1' y='2' type='bus'/></timestep></fcd-export>"
    return list(parse_fcd(io.BytesIO(document.encode()), "t", TraceOptions(**options)))  # type: ignore[arg-type]


def test_times_of_fcd_are_in_the_given_unit() -> None:
    assert fcd("time='6'", time_factor=0.5) == [Sighting("a", 3.0, 1.0, 2.0, line=1, type="bus")]
    assert fcd("begin='6'") == [Sighting("a", line=1, problem="no time", type="bus")]
    assert fcd("time='6'", geo=True, swapped=True) == [
        Sighting("a", 6.0, lat_deg=1.0, lon_deg=2.0, line=1, type="bus")
    ]  # fmt: skip


def test_a_gpx_file_that_breaks_off_keeps_its_points_and_one_without_any_is_refused(tmp_path: Path) -> None:
    point = '<trkpt lat="1" lon="2"><time>1970-01-01T00:00:05Z</time><course>90</course><sat>7</sat></trkpt>'
    text = f"<gpx>\n<trk><trkseg>\n{point}\n<trkpt"
    file = written(tmp_path, "bus.gpx", text)
    kept, broken = parse_gpx(io.BytesIO(text.encode()), file, TraceOptions(others=True))
    assert kept == Sighting("bus", 5.0, lat_deg=1.0, lon_deg=2.0, heading_deg=90.0, line=3, others='{"sat": "7"}')
    assert (broken.line, str(broken.problem)[:19]) == (4, "the file breaks off")
    with pytest.raises(TraceError, match="is not GPX"):
        list(parse_gpx(io.BytesIO(b"<gpx><trk>"), file, TraceOptions()))


# -- A lake


def test_a_leg_that_goes_on_after_the_window_ends_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({
        "node": ["a"], "time": [4.0], "x_m": [10.0], "y_m": [20.0], "until": [10.0], "x_m_s": [2.0], "y_m_s": [-3.0],
    })  # fmt: skip
    monkeypatch.setattr(LakeTable, "read", lambda *_: rows)
    table = LakeTable("lake", "positions", "trace", "one leg", ())
    found = _trace_rows(table, TraceAbout("samples", 0.0, 20.0, None, None, "x"), None, 5.0)
    assert (found.time.tolist(), found.x_m.tolist(), found.y_m.tolist()) == ([4.0, 10.0], [10.0, 22.0], [20.0, 2.0])
    whole = _trace_rows(table, TraceAbout("samples", 0.0, 20.0, None, None, "x"), None, 10.0)
    assert np.array_equal(whole.time, [4.0])


def test_every_format_is_found_by_its_name() -> None:
    assert list(FORMATS) == ["sumo-fcd", "ns2", "bonnmotion", "one", "gpx", "csv"]
    assert all(name == one.name for name, one in FORMATS.items())


def test_a_folder_of_parquet_files_in_degrees_is_on_the_globe(tmp_path: Path) -> None:
    table = pa.table({"node": ["a"], "time": [0.0], "lat": [53.4], "lon": [-2.9]})
    pq.write_table(table, tmp_path / "t.parquet")
    found = read_trace(tmp_path)
    assert (found.geo, list(found.lat_deg), list(found.lon_deg)) == (True, [53.4], [-2.9])


def test_a_file_at_an_address_is_read_from_its_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = written(tmp_path, "t.csv", "node,time,x,y\n")
    asked = []

    def system(address: str) -> tuple[fs.FileSystem, str]:
        asked.append(address)
        return fs.LocalFileSystem(), local

    monkeypatch.setattr(files, "_system", system)
    for path, addresses in (("s3a://bucket/t.csv", ["s3a://bucket/t.csv"]), (local, [])):
        asked.clear()
        with files.opened(path) as stream:
            assert stream.read() == b"node,time,x,y\n"
        assert asked == addresses


def test_a_lake_without_traces_is_named_with_the_table_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=f"cannot read the table traces of the lake {tmp_path}"):
        trace_about(str(tmp_path), "t")


@pytest.mark.parametrize(
    ("address", "host", "inside"),
    [
        ("hdfs://names:9000/day/a.csv", "hdfs://names:9000/", "day/a.csv"),
        ("hdfs:///day/a.csv", "hdfs:///", "day/a.csv"),
        ("hdfs://names", "hdfs://names/", ""),
    ],
)
def test_a_file_in_hdfs_is_read_through_its_host(
    address: str, host: str, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalake.fs.DeltaStorageHandler", lambda root: ("handler of", root))
    monkeypatch.setattr("pyarrow.fs.PyFileSystem", lambda handler: ("system of", handler))
    assert files._system(address) == (("system of", ("handler of", host)), inside)


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("s3a://bucket/town.csv", "s3://bucket/town.csv"),
        ("s3n://bucket/town.csv", "s3://bucket/town.csv"),
        ("s3://bucket/s3a:x", "s3://bucket/s3a:x"),
        ("gs://bucket/town.csv", "gs://bucket/town.csv"),
    ],
)
def test_hadoops_names_for_s3_are_those_of_arrow(address: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class System:
        @staticmethod
        def from_uri(uri: str) -> tuple[str, str]:
            return "system", uri

    monkeypatch.setattr(fs, "FileSystem", System)
    assert files._system(address) == ("system", asked)


def test_a_path_in_hdfs_is_asked_of_its_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltalake.fs.DeltaStorageHandler", lambda root: f"handler of {root}")
    monkeypatch.setattr(fs, "PyFileSystem", lambda handler: handler)
    assert files._system("hdfs://name:9000/town/a.csv") == ("handler of hdfs://name:9000/", "town/a.csv")
    assert files._system("hdfs://name") == ("handler of hdfs://name/", "")
