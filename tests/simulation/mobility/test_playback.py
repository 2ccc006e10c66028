"""Playback of traces of any format, on a plane or in degrees, with gaps."""

from pathlib import Path

import numpy as np
import pytest

from earshot.errors import ScenarioError, TraceError
from earshot.geometry import LocalPlane
from earshot.simulation.extent import Extent
from earshot.simulation.mobility import Playback, Trajectories, playback
from earshot.traces.lake_tables import TraceAbout, ordered_rows

ROWS = """node,time,x_m,y_m,speed
b,100,0,0,10
a,101,5,5,0
b,110,100,0,10
a,103,7,5,1
b,200,500,50,0
b,210,500,60,1
c,104,9,9,0
"""


def csv(folder: Path, text: str = ROWS, name: str = "trace.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def play(playback: Playback, until_s: float = 1000.0, names: tuple[str, ...] | None = None) -> Trajectories:
    names = playback.names() if names is None else names
    return Trajectories(playback.paths(names, Extent(), [], until_s))


def test_nodes_go_where_their_rows_say_and_come_and_go_with_them(tmp_path: Path) -> None:
    trace = play(Playback(csv(tmp_path)))
    assert trace.names == ("a", "b", "c")
    assert trace.presence == (((1.0, 3.0),), ((0.0, 10.0), (100.0, 110.0)), ())
    assert trace.position(0, 2.0) == (6.0, 5.0)
    assert trace.position(1, 5.0) == (50.0, 0.0)
    # Through the gap it stands where it was last seen, and jumps when it is seen again.
    assert trace.position(1, 99.9) == (100.0, 0.0)
    assert trace.position(1, 100.0) == (500.0, 50.0)
    assert trace.jump_times.tolist() == [100.0]
    assert trace.max_speed_m_s == 10.0


def test_the_span_is_that_of_the_whole_trace_whatever_part_is_played(tmp_path: Path) -> None:
    assert Playback(csv(tmp_path)).span() == (100.0, 210.0)
    assert Playback(csv(tmp_path), start_s=102.0, end_s=103.0).span() == (100.0, 210.0)


def test_a_longer_gap_may_be_bridged(tmp_path: Path) -> None:
    trace = play(Playback(csv(tmp_path), max_gap_s=100.0))
    assert trace.presence[1] == ((0.0, 110.0),)
    assert trace.position(1, 55.0) == pytest.approx((300.0, 25.0))


@pytest.mark.parametrize(("max_gap_s", "expected"), [(90.0, ((0.0, 110.0),)), (89.9, ((0.0, 10.0), (100.0, 110.0)))])
def test_a_gap_of_exactly_the_most_is_bridged(
    max_gap_s: float, expected: tuple[tuple[float, float], ...], tmp_path: Path
) -> None:
    assert play(Playback(csv(tmp_path), max_gap_s=max_gap_s)).presence[1] == expected


def test_the_run_may_start_later_in_the_trace_and_end_before_it(tmp_path: Path) -> None:
    trace = play(Playback(csv(tmp_path), start_s=105.0, shift_m=(1000.0, 0.0)), until_s=50.0)
    assert trace.presence == ((), ((-5.0, 5.0),), ())
    assert trace.position(1, 0.0) == (1050.0, 0.0)


def test_parquet_plays_like_csv(tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    source = csv(tmp_path)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(source), tmp_path / "trace.parquet")
    (tmp_path / "positions").mkdir()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(source), tmp_path / "positions" / "part-0.parquet")
    from_csv = play(Playback(source))
    for other in ("trace.parquet", "positions"):
        trace = play(Playback(tmp_path / other))
        assert trace.names == from_csv.names
        assert trace.presence == from_csv.presence
        for t in np.linspace(0, 120, 50):
            assert trace.positions(t).tolist() == from_csv.positions(t).tolist()


def test_latitudes_and_longitudes_are_projected(tmp_path: Path) -> None:
    degrees = "node;time;lat_deg;lon_deg\na;0;53.40;-2.98\na;10;53.41;-2.98\n"
    given = play(Playback(csv(tmp_path, degrees), origin_lat_deg=53.4, origin_lon_deg=-3.0))
    plane = LocalPlane(53.4, -3.0)
    for t, place in ((0.0, plane.position(53.40, -2.98)), (10.0, plane.position(53.41, -2.98))):
        assert given.position(0, t) == pytest.approx((place.x_m, place.y_m))
    # Without an origin, the trace's median place is it, as for `earshot ingest`.
    assert play(Playback(csv(tmp_path, degrees))).position(0, 5.0) == pytest.approx((0.0, 0.0), abs=1e-3)
    assert play(Playback(csv(tmp_path, degrees))).position(0, 10.0) == pytest.approx((0.0, 556.4), abs=1.0)


def test_a_window_has_only_the_nodes_that_are_there(tmp_path: Path) -> None:
    window = Playback(csv(tmp_path), start_s=102.0, end_s=103.5)
    assert window.names() == ("a", "b")
    assert play(window, until_s=1.5).position(0, 0.5) == (6.5, 5.0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("node,time,z,y\na,0,1,1\n", "has no column that could be the place among node, time, z, y"),
        ("node,time,x_m,y_m\n", "the trace has no rows"),
        ("", "is empty: there is no trace in it"),
        ("node,time,x_m,y_m\na,zero,1,1\n", "line 2: time 'zero' is not a time"),
        ("node,time,x_m,y_m\na,0,1,1\na,1,nan,1\n", "line 3: x 'nan' is not a number"),
        ("node,time,x_m,y_m\na,0,1\n", "line 2: 3 values for 4 columns"),
        ("node,time,x_m,y_m\na,0,1,1\na,0,2,2\n", "node 'a' is at two places 0 s after the trace's start"),
        ("node,time,lat_deg,lon_deg\na,0,91,1\n", "line 2: latitude 91 is outside -90..90"),
    ],
)
def test_a_bad_trace_is_refused_with_the_reason(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(TraceError, match=f"trace.csv.*{problem}"):
        play(Playback(csv(tmp_path, text)))


def test_other_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "trace.xml").write_text("<fcd/>")
    with pytest.raises(TraceError, match="cannot detect the format"):
        Playback(tmp_path / "trace.xml").names()
    with pytest.raises(TraceError, match="there is no such trace"):
        Playback(tmp_path / "none.csv").names()
    (tmp_path / "trace.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(TraceError, match="not a whole Parquet file"):
        Playback(tmp_path / "trace.parquet").names()
    (tmp_path / "binary.csv").write_bytes(b"node,time,x_m,y_m\n\xff\xfe\n")
    with pytest.raises(TraceError, match="line 2: 1 values for 4 columns"):
        Playback(tmp_path / "binary.csv").names()


def test_every_format_plays_back(tmp_path: Path) -> None:
    files = {
        "walk.fcd.xml": '<fcd-export><timestep time="1"><vehicle id="0" x="0" y="0"/></timestep>'
        '<timestep time="5"><vehicle id="0" x="4" y="0"/></timestep></fcd-export>',
        "walk.fcd.csv": "timestep_time;vehicle_id;vehicle_x;vehicle_y\n1;0;0;0\n5;0;4;0\n",
        "walk.ns_movements": '$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$ns_ at 0.0 "$node_(0) setdest 4.0 0.0 1.0"\n',
        "walk.movements": "0 0 0 4 4 0\n",
        "walk.txt": "0 9 0 9 0 9 0 0\n1 0 0 0\n5 0 4 0\n",
        "walk.csv": "\nnode|Timestamp|X|Y\n0|1|0|0\n\n0|5|4|0\n".lstrip(),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        trace = play(Playback(tmp_path / name))
        assert (name, trace.names, trace.position(0, 1.0)) == (name, ("0",), (1.0, 0.0))


def test_a_trace_of_waypoints_has_no_gaps(tmp_path: Path) -> None:
    (tmp_path / "walk.movements").write_text("0 0 0 100 50 0\n")
    trace = play(Playback(tmp_path / "walk.movements"))
    assert trace.presence == (((0.0, 100.0),),)
    assert trace.position(0, 50.0) == (25.0, 0.0)


def test_impossible_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="max_gap_s must be a positive number of seconds, got 0"):
        Playback(csv(tmp_path), max_gap_s=0)
    with pytest.raises(ScenarioError, match="write both or neither"):
        Playback(csv(tmp_path), origin_lat_deg=1.0)
    with pytest.raises(ScenarioError, match="write one of file"):
        Playback()
    with pytest.raises(ScenarioError, match="lake and trace belong together"):
        Playback(lake="lake")
    with pytest.raises(ScenarioError, match="end_s must come after start_s"):
        Playback(csv(tmp_path), start_s=5.0, end_s=4.0)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    playback = Playback(csv(tmp_path))
    assert playback.names() == ("a", "b", "c")
    import os

    file = csv(tmp_path, ROWS.replace("c,104", "d,104"))
    os.utime(file, ns=(1, 1))
    assert playback.names() == ("a", "b", "d")


def test_a_city_of_real_traffic_plays_back(shared_data: Path, tmp_path: Path) -> None:
    """300 s of Bologna as SUMO drove it: 1,305 vehicles that come and go."""
    import gzip

    source = shared_data / "sumo-bologna" / "acosta_1800_2100.fcd.csv.gz"
    if not source.exists():
        pytest.skip(f"no trace at {source}")
    with gzip.open(source, "rt") as lines, (tmp_path / "bologna.csv").open("w") as rows:
        next(lines)
        rows.write("time;node;x_m;y_m;angle;speed;lane\n")
        rows.writelines(line for line in lines if line.split(";")[1])
    trace = play(Playback(tmp_path / "bologna.csv"), until_s=300.0)
    assert len(trace) == 1305
    at: dict[float, dict[str, tuple[float, float]]] = {}
    for line in (tmp_path / "bologna.csv").read_text().splitlines()[1:]:
        time, node, x, y, *_ = line.split(";")
        at.setdefault(float(time) - 1800.0, {})[node] = (float(x), float(y))
    for t in range(0, 290, 29):
        seen_twice = at[t].keys() & at[t + 1].keys()
        half_way = {name for i, name in enumerate(trace.names) if trace.present(i, t + 0.5)}
        assert half_way == seen_twice
        for name in list(seen_twice)[:50]:
            middle = np.mean([at[t][name], at[t + 1][name]], axis=0)
            assert trace.position(trace.names.index(name), t + 0.5) == pytest.approx(tuple(middle))
    assert 10 < trace.max_speed_m_s < 40
    places = trace.positions(150.0)
    assert (places.min(axis=0) > -50).all()
    assert (places.max(axis=0) < (1900, 1450)).all()


def test_time_in_the_network_leaves_out_gaps_and_what_lies_outside_of_the_run(tmp_path: Path) -> None:
    playback = Playback(csv(tmp_path))
    assert playback.time_present_s(1000.0) == {"a": 2.0, "b": 20.0, "c": 0.0}
    assert Playback(csv(tmp_path), start_s=102.0).time_present_s(100.0) == {"a": 1.0, "b": 10.0, "c": 0.0}


@pytest.mark.parametrize("end_s", [9.9, 10.0])
def test_a_part_of_a_trace_ends_after_it_begins(end_s: float) -> None:
    assert Playback(file=Path("trace.csv"), start_s=10.0, end_s=10.1).end_s == 10.1
    with pytest.raises(ScenarioError, match=f"end_s must come after start_s, got {end_s:g} and 10"):
        Playback(file=Path("trace.csv"), start_s=10.0, end_s=end_s)


def test_a_part_from_the_begin_has_the_nodes_that_are_there_before_its_end(tmp_path: Path) -> None:
    path = csv(tmp_path, "node,time,x_m,y_m\na,100,0,0\na,101,1,0\nb,104,0,0\nb,105,1,0\nc,104.1,0,0\nc,105,1,0\n")
    assert Playback(path, end_s=104.0).names() == ("a", "b")
    assert Playback(path, start_s=101.0, end_s=104.0).names() == ("a", "b")
    assert Playback(path, start_s=101.1, end_s=104.0).names() == ("b",)
    assert Playback(path).names() == ("a", "b", "c")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"lake": "l", "trace": "t", "origin_lat_deg": 1.0, "origin_lon_deg": 2.0}, "origin_lat_deg is for a file"),
        ({"file": Path("t.csv"), "type": "bus"}, "type is for a trace in a lake"),
        ({"file": Path("t.csv"), "origin_lon_deg": 1.0}, "write both or neither"),
        ({"file": Path("t.csv"), "trace": "t"}, "lake and trace belong together"),
        ({"file": Path("t.csv"), "lake": "l", "trace": "t"}, "write one of file"),
    ],
)
def test_settings_that_belong_to_a_file_or_to_a_lake_are_not_mixed(given: dict[str, object], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        Playback(**given)  # type: ignore[arg-type]


def test_a_trace_is_called_by_its_name_or_by_that_of_its_file() -> None:
    assert (Playback(lake="l", trace="t").source, Playback(Path("a/b.csv")).source) == ("t", "b.csv")
    assert Playback(Path("a/b.csv")).content() == {}


def test_a_trace_of_a_lake_is_asked_for_by_its_name_and_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content stands for it: not the lake's path, nor the trace's name."""
    about = TraceAbout("samples", 7.0, 99.0, None, None, "digest")
    rows = ordered_rows(
        ["a", "b"], np.array([0, 0, 1, 1]), np.array([10.0, 12.0, 11.0, 14.0]), np.arange(4.0), np.arange(4.0),
        motion="samples", start=7.0, types={"a": "bus", "b": "car"},
    )  # fmt: skip
    monkeypatch.setattr(playback, "trace_about", lambda *asked: {("lake", "town"): about}[asked])
    monkeypatch.setattr(playback, "trace_rows", lambda *asked: {("lake", "town", 10.0, 90.0): rows}[asked])
    town = Playback(lake="lake", trace="town", start_s=10.0, end_s=90.0)
    assert (town.span(), town.content()) == ((7.0, 99.0), {"lake": None, "trace": None, "content": "digest"})
    assert (town.names(), town.types()) == (("a", "b"), {"a": "bus", "b": "car"})
    assert Playback(lake="lake", trace="town", start_s=10.0, end_s=90.0, type="car").names() == ("b",)
    assert play(town).presence == (((0.0, 2.0),), ((1.0, 4.0),))


def test_a_node_without_a_row_for_more_than_half_a_minute_has_left(tmp_path: Path) -> None:
    rows = "node,time,x_m,y_m\na,0,0,0\na,30,1,0\na,60.5,2,0\na,61,3,0\n"
    assert play(Playback(csv(tmp_path, rows))).presence == (((0.0, 30.0), (60.5, 61.0)),)


@pytest.mark.parametrize(("start_s", "presence"), [(9.9, ((-9.9, pytest.approx(0.1)),)), (10.0, ()), (10.1, ())])
def test_a_node_that_leaves_as_the_run_begins_is_not_in_it(start_s: float, presence: object, tmp_path: Path) -> None:
    rows = "node,time,x_m,y_m\na,0,0,0\na,10,1,0\nb,10,0,0\nb,30,0,0\n"
    trace = play(Playback(csv(tmp_path, rows), start_s=start_s), until_s=10.0)
    assert trace.presence[0] == presence


@pytest.mark.parametrize(("until_s", "count"), [(10.0, 0), (10.1, 1)])
def test_a_node_that_comes_as_the_run_ends_is_not_in_it(until_s: float, count: int, tmp_path: Path) -> None:
    rows = "node,time,x_m,y_m\na,0,0,0\na,9,1,0\nb,10,0,0\nb,30,0,0\n"
    assert len(play(Playback(csv(tmp_path, rows)), until_s=until_s).presence[1]) == count
