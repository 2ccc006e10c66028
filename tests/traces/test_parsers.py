"""Every trace format, from its bytes to sightings; no Spark session."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import TraceError
from earshot.pipeline.traces import sources
from earshot.traces.files import open_trace
from earshot.traces.formats import FORMATS, FoundFormat, read_trace
from earshot.traces.sightings import Parse, Sighting, TraceOptions, epoch_seconds
from earshot.traces.text_formats import (
    Knot,
    SetDestination,
    parse_bonnmotion,
    parse_ns2,
    parse_one,
    path_of_destinations,
)
from earshot.traces.xml_formats import parse_fcd, parse_gpx
from sizes import sized

FCD = b"""<?xml version="1.0"?>
<fcd-export>
  <timestep time="0.00"/>
  <timestep time="1.00">
    <vehicle id="car" x="1.5" y="2.5" angle="90.00" speed="3.00" lane="a_0"/>
    <person id="kim" x="4" y="5"/>
    <vehicle id="lost" lane="b_0"/>
  </timestep>
</fcd-export>
"""


def sightings(parse: Parse, content: bytes, **options: str) -> list[Sighting]:
    return list(parse(io.BytesIO(content), "trace", TraceOptions.of(options)))


def test_fcd_gives_vehicles_and_persons_with_their_lines() -> None:
    assert sightings(parse_fcd, FCD) == [
        Sighting("car", 1.0, 1.5, 2.5, speed_m_s=3.0, heading_deg=90.0, line=5),
        Sighting("kim", 1.0, 4.0, 5.0, line=6, type="person"),
        Sighting("lost", line=7, problem="no x"),
    ]


class Blocks(io.BytesIO):
    """A stream that gives its blocks one by one, however much is asked for."""

    def __init__(self, *blocks: bytes) -> None:
        super().__init__()
        self.blocks = list(blocks)

    def read(self, size: int | None = -1) -> bytes:
        return self.blocks.pop(0) if self.blocks else b""


@pytest.mark.parametrize(("most", "is_refused"), [(30, False), (29, True)])
def test_a_text_without_a_tag_may_have_exactly_the_most_bytes(
    most: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.traces.xml_formats.MAX_TAG_BYTES", most)
    blank, car = b" " * 15, b"<vehicle id='car' x='1' y='2'/>"
    blocks = [b"<fcd-export>", b"<timestep time='1'>", blank, blank, car, blank, blank, b"</timestep></fcd-export>"]
    if is_refused:
        with pytest.raises(TraceError, match="trace has a tag or text of more than 0 MB"):
            list(parse_fcd(Blocks(*blocks), "trace", TraceOptions()))
    else:
        assert list(parse_fcd(Blocks(*blocks), "trace", TraceOptions())) == [Sighting("car", 1.0, 1.0, 2.0, line=1)]


def test_what_else_fcd_says_is_kept_where_it_is_asked_for() -> None:
    car, kim, lost = sightings(parse_fcd, FCD, others="true")
    assert (car.others, kim.others, lost.others) == ('{"lane": "a_0"}', None, '{"lane": "b_0"}')


def test_fcd_in_degrees_has_longitude_in_x() -> None:
    document = b'<fcd-export><timestep time="7"><vehicle id="a" x="11.3" y="44.5"/></timestep></fcd-export>'
    assert sightings(parse_fcd, document, geo="true") == [Sighting("a", 7.0, lat_deg=44.5, lon_deg=11.3, line=1)]


def test_fcd_that_breaks_off_keeps_what_came_before() -> None:
    *kept, broken = sightings(parse_fcd, FCD[:232])
    assert kept == [
        Sighting("car", 1.0, 1.5, 2.5, speed_m_s=3.0, heading_deg=90.0, line=5),
        Sighting("kim", 1.0, 4.0, 5.0, line=6, type="person"),
    ]
    assert broken.problem is not None
    assert re.fullmatch(r"the file breaks off: [\w ]+: line \d+, column \d+", broken.problem)


def test_lines_are_counted_past_65535() -> None:
    rows = b"".join(b'<vehicle id="a%d" x="1" y="2"/>\n' % i for i in range(70_000))
    last = sightings(parse_fcd, b"<fcd-export><timestep time='0'>\n" + rows + b"</timestep></fcd-export>")[-1]
    assert (last.node, last.line) == ("a69999", 70_001)


def deep() -> bytes:
    return b"<fcd-export>" + b"<x>" * 300 + b"</x>" * 300 + b"</fcd-export>"


@pytest.mark.parametrize(
    ("parse", "content", "message"),
    [
        (parse_fcd, b"<routes/>", "is not SUMO FCD: its root element is <routes>"),
        (parse_fcd, b"node,time,x,y", "is not SUMO FCD"),
        (parse_fcd, b'<!DOCTYPE a [<!ENTITY b "c">]><fcd-export/>', "declares entities of its own"),
        (parse_fcd, deep(), "nested deeper than 250"),
        (parse_fcd, b'<fcd-export><timestep time="' + b"1" * (9 << 20), "a tag or text of more than 8 MB"),
        (parse_ns2, b"hello\nworld\n", "is not an ns-2 movement file"),
        (parse_bonnmotion, b"1,2,3\n", "is not BonnMotion"),
        (parse_bonnmotion, b"5 1 1 4 1 1\n", "is not BonnMotion"),
        (parse_one, b"0 a 1 2\n", "is not an external movement of The ONE"),
    ],
)
def test_another_format_is_refused_by_name(parse: Parse, content: bytes, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        sightings(parse, content)


GPX_POINT = (
    '<trkpt lat="53.4" lon="-2.9"><ele>7</ele><time>2026-01-26T15:57:02Z</time>'
    "<extensions><speed>3.5</speed></extensions></trkpt>"
)


def gpx(tmp_path: Path, *tracks: str) -> Path:
    path = tmp_path / "bus.gpx"
    body = "\n".join(f"<trk>{track}</trk>" for track in tracks)
    path.write_text(
        f'<gpx xmlns="http://www.topografix.com/GPX/1/1"><metadata><name>no</name></metadata>\n{body}</gpx>'
    )
    return path


def of_gpx(path: Path) -> list[Sighting]:
    with open_trace(str(path)) as stream:
        return list(parse_gpx(stream, str(path), TraceOptions()))


def test_a_gpx_file_with_one_track_is_one_node_named_after_it(tmp_path: Path) -> None:
    bad = '<trkpt lat="53.4" lon="-2.9"/><trkpt lat="95" lon="0"><time>2026-01-26T15:57:02Z</time></trkpt>'
    assert of_gpx(gpx(tmp_path, f"<name>x</name><trkseg>{GPX_POINT}{bad}</trkseg>")) == [
        Sighting("bus", 1769443022.0, lat_deg=53.4, lon_deg=-2.9, speed_m_s=3.5, line=2),
        Sighting("bus", line=2, problem="no time"),
        Sighting("bus", line=2, problem="latitude 95 is outside -90..90"),
    ]


def test_a_gpx_file_with_several_tracks_has_a_node_for_each(tmp_path: Path) -> None:
    path = gpx(tmp_path, f"<name>north</name><trkseg>{GPX_POINT}</trkseg>", f"<trkseg>{GPX_POINT}</trkseg>")
    assert [sighting.node for sighting in of_gpx(path)] == ["bus/north", "bus/2"]


def test_ns2_orders_become_the_knots_of_a_path() -> None:
    script = b"""# a comment
$node_(0) set X_ 0.0
$node_(0) set Y_ 0.0
$node_(1) set X_ 5
$node_(1) set Y_ 5
$ns_ at 10.0 "$node_(0) setdest 30.0 40.0 5.0"
$god_ set-dist 0 1 2
$ns_ at 2.0 "$node_(0) setdest 30.0 0.0 5.0"
$ns_ at 3.0 "$node_(7) setdest 1.0 1.0 1.0"
$ns_ at 4.0 "$node_(1) setdest here
"""
    north = 0.0
    assert sightings(parse_ns2, script) == [
        Sighting("0", 0.0, 0.0, 0.0, speed_m_s=0.0, line=2),
        Sighting("0", 2.0, 0.0, 0.0, speed_m_s=5.0, heading_deg=90.0, line=8),
        Sighting("0", 8.0, 30.0, 0.0, speed_m_s=0.0, line=8),
        Sighting("0", 10.0, 30.0, 0.0, speed_m_s=5.0, heading_deg=north, line=6),
        Sighting("0", 18.0, 30.0, 40.0, speed_m_s=0.0, line=6),
        Sighting("1", 0.0, 5.0, 5.0, speed_m_s=0.0, line=4),
        Sighting("1", 18.0, 5.0, 5.0, speed_m_s=0.0, line=4),
        Sighting(line=10, problem='not an order of motion: $ns_ at 4.0 "$node_(1) setdest here'),
        Sighting("7", line=9, problem="node 7 has no starting place"),
    ]


def test_a_new_order_takes_effect_where_the_node_is_and_speed_zero_stops_it() -> None:
    start = Knot(0.0, 0.0, 0.0, line=1)
    orders = [SetDestination(0.0, 100.0, 0.0, 10.0, 2), SetDestination(4.0, 0.0, 0.0, 0.0, 3)]
    assert path_of_destinations("a", start, orders).knots == [
        Knot(0.0, 0.0, 0.0, 2, 10.0, 90.0),
        Knot(4.0, 40.0, 0.0, 3),
    ]


def test_ns3s_own_file_arrives_when_its_comments_say(shared_data: Path) -> None:
    """The file's comments hold the arrivals BonnMotion computed: `# $ns_ at TIME ... setdest x y 0.0`."""
    path = shared_data / "ns2-mobility" / "bonnmotion.ns_movements"
    noted = [line.split() for line in path.read_text().splitlines() if line.startswith("# ")]
    arrivals = [(float(words[3]), float(words[6]), float(words[7])) for words in noted]
    with path.open("rb") as stream:
        way = [(knot.time, knot.x_m, knot.y_m) for knot in parse_ns2(stream, "trace", TraceOptions())]
    assert len(arrivals) == 5
    for time, x, y in arrivals:
        nearest = min(way, key=lambda knot: abs((knot[0] or 0.0) - time))
        assert nearest == pytest.approx((time, x, y), abs=1e-9)


@given(
    orders=st.lists(
        st.tuples(st.floats(0, 50), st.floats(-100, 100), st.floats(-100, 100), st.floats(0.1, 30)), max_size=8
    )
)
@settings(max_examples=sized(200, 2000))
def test_a_path_never_moves_faster_than_its_orders(orders: list[tuple[float, float, float, float]]) -> None:
    path = path_of_destinations(
        "a", Knot(0.0, 0.0, 0.0, 1), [SetDestination(*order, line=i) for i, order in enumerate(orders)]
    )
    knots = path.knots
    assert all(before.time < after.time for before, after in itertools.pairwise(knots))
    for before, after in itertools.pairwise(knots):
        moved = ((after.x_m - before.x_m) ** 2 + (after.y_m - before.y_m) ** 2) ** 0.5
        assert moved == pytest.approx(before.speed_m_s * (after.time - before.time), abs=1e-6)


@pytest.mark.parametrize(
    "content", [b"0 1 2 5 4 6\n0 9 9 8 9 9\n", b"#3D\n0 1 2 7 5 4 6 7\n0 9 9 7 8 9 9 7\n"], ids=["plane", "space"]
)
def test_bonnmotion_lines_are_paths_that_last_to_the_traces_end(content: bytes) -> None:
    found = [(r.node, r.time, r.x_m, r.y_m, r.speed_m_s) for r in sightings(parse_bonnmotion, content)]
    assert found == [
        ("0", 0.0, 1.0, 2.0, 1.0),
        ("0", 5.0, 4.0, 6.0, 0.0),
        ("0", 8.0, 4.0, 6.0, 0.0),
        ("1", 0.0, 9.0, 9.0, 0.0),
        ("1", 8.0, 9.0, 9.0, 0.0),
    ]


def test_of_two_bonnmotion_places_at_one_time_the_later_one_counts() -> None:
    found = [(r.time, r.x_m, r.speed_m_s, r.line) for r in sightings(parse_bonnmotion, b"0 0 0 5 10 0 5 90 0 6 90 0\n")]
    assert found == [(0.0, 0.0, 2.0, 1), (5.0, 90.0, 0.0, 1), (6.0, 90.0, 0.0, 1)]
    assert Sighting().line == 0, "it comes from no line"


def test_a_bad_bonnmotion_line_is_a_problem_of_its_own_node() -> None:
    problems = [r for r in sightings(parse_bonnmotion, b"0 1 2 5 4 6\n0 x 2\n0 1\n9 1 1 3 1 1\n") if r.problem]
    assert [(r.node, r.line) for r in problems] == [("1", 2), ("2", 3), ("3", 4)]


def test_one_movement_is_read_below_its_header() -> None:
    assert sightings(parse_one, b"0 10 0 90 0 90 0 0\n0 bus1 1 2\n1 bus1 2\n1.5 bus2 3 nan\n") == [
        Sighting("bus1", 0.0, 1.0, 2.0, line=2),
        Sighting("bus1", line=3, problem="3 words, not 'time id x y'"),
        Sighting("bus2", line=4, problem="y is nan"),
    ]


def csv_rows(path: Path, **options: str) -> list[dict[str, object]]:
    reader = sources.TraceReader([str(path)], FoundFormat(FORMATS["csv"], "csv", False), TraceOptions.of(options))
    table = pa.Table.from_batches([batch for part in reader.partitions() for batch in reader.read(part)])
    return sorted(table.drop_columns(["file"]).to_pylist(), key=lambda row: row["line"])


def kept(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value is not None}


def test_what_else_a_csv_says_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "buses.csv"
    path.write_text('node,time,x,y,line,driver,\na,1,0,0,"14 ""express""",Zoë,1\na,2,0,0, ,,\n')
    assert [kept(row).get("others") for row in csv_rows(path)] == [None, None]
    first, second = (kept(row).get("others") for row in csv_rows(path, others="true"))
    assert json.loads(str(first)) == {"line": '14 "express"', "driver": "Zoë"}
    assert second is None


def test_csv_columns_are_guessed_and_every_bad_row_says_why(tmp_path: Path) -> None:
    path = tmp_path / "buses.csv"
    path.write_text(
        "\ufeffID,Vehicle ID,timestamp,lat,lng,speed_kmh\n"
        "1,a,2026-01-26 15:57:02,53.4,-2.9,36\n"
        "2,a,1769443023,53.4,-2.9,\n"
        "3,a,1769443024000,53.4,-2.9,x\n"
        "\n"
        "5,,1,53.4,-2.9,1\n"
        "6,b,soon,53.4,-2.9,1\n"
        "7,b,1,north,-2.9,1\n"
        "8,b,1,53.4,190,1\n"
        "9,b,1\n"
    )
    assert [kept(row) for row in csv_rows(path)] == [
        {"node": "a", "time": 1769443022.0, "lat_deg": 53.4, "lon_deg": -2.9, "speed_m_s": 10.0, "line": 2},
        {"node": "a", "time": 1769443023.0, "lat_deg": 53.4, "lon_deg": -2.9, "line": 3},
        {"node": "a", "time": 1769443024.0, "lat_deg": 53.4, "lon_deg": -2.9, "line": 4},
        {"line": 5, "problem": "an empty line"},
        {"time": 1.0, "lat_deg": 53.4, "lon_deg": -2.9, "speed_m_s": 1 / 3.6, "line": 6, "problem": "no node"},
        {
            "node": "b",
            "lat_deg": 53.4,
            "lon_deg": -2.9,
            "speed_m_s": 1 / 3.6,
            "line": 7,
            "problem": "time 'soon' is not a time",
        },
        {
            "node": "b",
            "time": 1.0,
            "lon_deg": -2.9,
            "speed_m_s": 1 / 3.6,
            "line": 8,
            "problem": "latitude 'north' is not a number",
        },
        {
            "node": "b",
            "time": 1.0,
            "lat_deg": 53.4,
            "lon_deg": 190.0,
            "speed_m_s": 1 / 3.6,
            "line": 9,
            "problem": "longitude 190 is outside -180..180",
        },
        {"line": 10, "problem": "3 values for 6 columns"},
    ]


def test_sumo_csv_has_columns_for_each_kind_of_traveller(tmp_path: Path) -> None:
    path = tmp_path / "fcd.csv.gz"
    header = "timestep_time;vehicle_id;vehicle_x;vehicle_y;vehicle_speed;person_id;person_x;person_y"
    path.write_bytes(gzip.compress(f"{header}\n0.5;car;1;2;3;;;\n0.5;;;;;kim;4;5\n".encode()))
    assert [kept(row) for row in csv_rows(path)] == [
        {"node": "car", "time": 0.5, "x_m": 1.0, "y_m": 2.0, "speed_m_s": 3.0, "line": 2},
        {"node": "kim", "time": 0.5, "x_m": 4.0, "y_m": 5.0, "line": 3},
    ]


def test_columns_and_the_writing_of_times_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("when|east|north|who\n26/01/2026 15:57|1|2|a\n")
    given_columns = {"columns": "time=when,x=east,y=north,node=who", "timeFormat": "%d/%m/%Y %H:%M"}
    assert [kept(row) for row in csv_rows(path, **given_columns)] == [
        {"node": "a", "time": 1769443020.0, "x_m": 1.0, "y_m": 2.0, "line": 2}
    ]


def test_a_large_csv_is_read_in_pieces_with_the_same_rows_and_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.csv"
    lines = [f"n{i % 7},{i},{i}.5,{'oops' if i % 50 == 0 else i}" + (",9" if i % 61 == 0 else "") for i in range(900)]
    path.write_text("node,time,x,y\n" + "\n".join(lines) + "\n")
    whole = csv_rows(path)
    monkeypatch.setattr(sources, "SPLIT_BYTES", 2_000)
    assert len(sources.csv_parts(str(path))) > 5
    assert csv_rows(path) == whole
    assert [row["line"] for row in whole] == list(range(2, 902))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("1,2,3,4\n", "has no column names in its first line"),
        ("node,when,x,y\n", "no column that could be the time among node, when, x, y"),
        ("node,time,x,z\n", "no column that could be the place"),
    ],
)
def test_a_csv_that_does_not_name_what_is_needed_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(TraceError, match=message):
        csv_rows(path)


def test_a_file_with_semicolons_may_write_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "german.csv"
    path.write_text("Zeit;Bus;Breite;Länge\n2026-05-03T08:00:00,5Z;7;53,55;9,99\n0;8;1.053,55;9,99\n")
    columns = {"time": "Zeit", "node": "Bus", "lat": "Breite", "lon": "Länge"}
    trace = read_trace(path, options=TraceOptions(columns=columns))
    assert (trace.lat_deg.tolist(), trace.lon_deg.tolist()) == ([53.55], [9.99])
    assert trace.time.tolist() == [epoch_seconds("2026-05-03T08:00:00.5Z", None)]
    assert [problem.problem for problem in trace.problems] == ["latitude '1.053.55' is not a number"]


def test_a_file_without_names_has_its_columns_numbered(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_bytes(b"\xef\xbb\xbf0,v0,-3.5,2\r\n1,v0,-3,2.5\r\n")
    with pytest.raises(TraceError, match=r"no column names in its first line.*--columns node=1,time=2"):
        csv_rows(path)
    options = TraceOptions(columns={"time": "1", "node": "2", "x": "3", "y": "4"})
    trace = read_trace(path, options=options)
    assert list(zip(trace.time, trace.node, trace.x_m, trace.y_m, strict=True)) == [
        (0.0, "v0", -3.5, 2.0),
        (1.0, "v0", -3.0, 2.5),
    ]


def test_a_compressed_file_cut_short_keeps_its_rows_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv.gz"
    whole = gzip.compress("".join(["node,time,x,y\n", *(f"a,{i},{i * 7919 % 1000},0\n" for i in range(5000))]).encode())
    path.write_bytes(whole[: len(whole) // 2])
    rows = csv_rows(path)
    problems = [row for row in rows if row["problem"]]
    assert len(rows) > 1000
    assert len(problems) == 1
    assert "breaks off" in str(problems[0]["problem"])


@given(junk=st.binary(max_size=300))
@settings(max_examples=sized(200, 5000))
@pytest.mark.parametrize("parse", [parse_fcd, parse_ns2, parse_bonnmotion, parse_one])
def test_junk_is_refused_or_rejected_and_never_anything_else(parse: Parse, junk: bytes) -> None:
    with contextlib.suppress(TraceError):
        list(parse(io.BytesIO(junk), "junk", TraceOptions()))
