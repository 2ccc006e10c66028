"""Traces of every format into the lake, on Spark."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from earshot.errors import TraceError, UnknownName
from earshot.geometry import LocalPlane
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.spark import tasks
from earshot.pipeline.spark.session import parallelism
from earshot.pipeline.spark.tasks import tasks_for
from earshot.pipeline.traces import ingest as ingest_module
from earshot.pipeline.traces.contacts import contacts_within
from earshot.pipeline.traces.ingest import IngestSettings, ingest, read_trace
from earshot.pipeline.traces.motion import resampled

pytestmark = pytest.mark.spark

NO_LIMIT = IngestSettings(max_speed_m_s=math.inf)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("ingest") / "lake")


def positions(lake: Lake, trace: str) -> list[tuple[object, ...]]:
    rows = lake.read("positions", trace=trace).select("node", "time", "x_m", "y_m", "speed_m_s", "heading_deg")
    return sorted(tuple(row) for row in rows.collect())


def test_bad_rows_go_to_rejects_and_none_is_lost(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "fleet.csv"
    path.write_text(
        "node,time,x,y\na,0,0,0\na,1,5,0\na,1,5,0\nb,0,0,0\na,0.5,2,0\na,2,9999,0\na,x,1,1\na,3,12,0\nb,1\n"
    )
    summary = ingest(lake, [str(path)])
    assert summary.rejected == {"unparsable": 2, "duplicate": 1, "unordered": 1, "impossible": 1}
    assert (summary.rows_read, summary.rows_kept, summary.nodes, summary.trace) == (9, 4, 2, "fleet")
    assert positions(lake, "fleet") == [
        ("a", 0.0, 0.0, 0.0, None, None),
        ("a", 1.0, 5.0, 0.0, None, None),
        ("a", 3.0, 12.0, 0.0, None, None),
        ("b", 0.0, 0.0, 0.0, None, None),
    ]
    rejects = lake.read("rejects", trace="fleet").select("file", "line", "node", "reason", "detail")
    assert sorted(tuple(row) for row in rejects.collect()) == [
        (str(path), 4, "a", "duplicate", "at 5.0,0.0 m"),
        (str(path), 6, "a", "unordered", "at 2.0,0.0 m"),
        (str(path), 7, "a", "impossible", "at 9999.0,0.0 m"),
        (str(path), 8, "a", "unparsable", "time 'x' is not a time"),
        (str(path), 10, None, "unparsable", "2 values for 4 columns"),
    ]


def test_many_rejects_are_written_in_order_in_several_files(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "ROWS_A_FILE", 100)
    path = tmp_path / "twice.csv"
    rows = [f"{node},{t},{t},0" for t in range(50) for node in "abcd"]
    path.write_text("\n".join(["node,time,x,y", *rows, *rows]) + "\n")
    assert ingest(lake, [str(path)]).rejected == {"duplicate": 200}
    rejects = lake.read("rejects", trace="twice").selectExpr("_metadata.file_path as part", "line").collect()
    assert sorted(row["line"] for row in rejects) == list(range(202, 402))
    parts: dict[str, list[int]] = {}
    for row in rejects:
        parts.setdefault(row["part"], []).append(row["line"])
    assert len(parts) == 2
    first, second = sorted(parts.values())
    assert max(first) < min(second), "a file holds a range of lines"


def test_tasks_grow_with_the_rows_and_not_with_the_cores(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = parallelism(spark)
    counts = (None, 0, tasks.FEW_ROWS + 1, 1_000_000_000)
    assert [tasks_for(spark, rows) for rows in counts] == [4 * cores, 1, cores, 1000]
    monkeypatch.setattr(tasks, "ROWS_A_TASK", 100)
    monkeypatch.setattr(tasks, "FEW_ROWS", 100)
    path = tmp_path / "long.csv"
    path.write_text("node,time,x,y\n" + "".join(f"n{t % 90},{t},{t},0.125\n" for t in range(2000)))
    read = read_trace(spark, str(path))
    sized = [
        read,
        read.transform(resampled(1.0, rows=2000)),
        read.transform(contacts_within(1.0, interval_s=1.0, rows=2000)),
    ]
    assert [frame.rdd.getNumPartitions() for frame in sized] == [math.ceil(path.stat().st_size / 20 / 100), 20, 20]
    assert read.count() == 2000


def test_ingesting_again_replaces_the_trace_and_leaves_the_others(lake: Lake, tmp_path: Path) -> None:
    first, second = tmp_path / "one.csv", tmp_path / "two.csv"
    first.write_text("node,time,x,y\na,0,0,0\na,1,1,0\n")
    second.write_text("node,time,x,y\nz,5,5,5\nz,6,5,5\n")
    ingest(lake, [str(first)])
    ingest(lake, [str(second)], "two")
    before = positions(lake, "one"), positions(lake, "two")
    ingest(lake, [str(first)])
    assert (positions(lake, "one"), positions(lake, "two")) == before
    ingest(lake, [str(second)], "one")
    assert positions(lake, "one") == before[1]


def test_a_trace_that_was_mended_has_no_rejects_any_more(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "fleet.csv"
    path.write_text("node,time,x,y\na,0,0,0\na,x,5,0\na,1,5,0\n")
    ingest(lake, [str(path)])
    assert lake.read("rejects", trace="fleet").count() == 1
    path.write_text("node,time,x,y\na,0,0,0\na,1,5,0\n")
    ingest(lake, [str(path)])
    assert lake.has("rejects", trace="fleet")
    assert lake.read("rejects", trace="fleet").count() == 0


def test_few_rows_go_through_one_task_without_a_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for number, path in enumerate(paths):
        path.write_text(f"node,time,x,y\na,{number},0,0\nb,{number},0.125,0\n")
    read = read_trace(spark, [str(path) for path in paths])
    for frame in (
        read,
        read.transform(resampled(1.0, rows=4)),
        read.transform(contacts_within(1.0, interval_s=1.0, rows=4)),
    ):
        assert frame.rdd.getNumPartitions() == 1
        assert "Exchange" not in plan_of(frame)
    assert "Exchange" in plan_of(read.transform(resampled(1.0)))


def plan_of(frame: DataFrame) -> str:
    """As Spark will run it."""
    return str(frame._jdf.queryExecution().executedPlan())  # type: ignore[operator]


def test_several_files_are_one_trace_in_the_order_given(lake: Lake, tmp_path: Path) -> None:
    morning, evening = tmp_path / "b-morning.csv", tmp_path / "a-evening.csv"
    morning.write_text("node,time,x,y\na,0,0,0\n")
    evening.write_text("node,time,x,y\na,10,5,0\n")
    assert ingest(lake, [str(morning), str(evening)], "day").rejected == {}
    assert ingest(lake, [str(evening), str(morning)], "wrong way round").rejected == {"unordered": 1}


def test_parquet_files_have_no_order_so_their_rows_are_put_in_order_of_time(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "buses"
    folder.mkdir()
    for name, times in (("part-0.parquet", [30.0, 10.0]), ("part-1.parquet", [0.0, 20.0, 10.0])):
        x_m, y_m = [2.0 * time for time in times], [0.0] * len(times)
        pq.write_table(pa.table({"node": ["a"] * len(times), "time": times, "x": x_m, "y": y_m}), folder / name)
    summary = ingest(lake, [str(folder)], "buses")
    assert (summary.rows_kept, summary.rejected) == (4, {"duplicate": 1})
    rows = lake.read("positions", trace="buses").orderBy("time").collect()
    assert [(row["time"], row["x_m"], row["until"], row["x_m_s"]) for row in rows][:2] == [
        (0.0, 0.0, 10.0, 2.0),
        (10.0, 20.0, 20.0, 2.0),
    ]
    rejected = lake.read("rejects", trace="buses").collect()
    assert [(Path(row["file"]).name, row["line"]) for row in rejected] == [("part-1.parquet", 3)]


VEHICLE = '<vehicle id="a" x="1" y="2" angle="45" speed="3" slope="0.5"/>'
FCD = f'<fcd-export><timestep time="0">{VEHICLE}</timestep></fcd-export>'
ROW = ("a", 0.0, 1.0, 2.0, 3.0, 45.0)


def test_sumo_fcd_is_the_same_as_xml_csv_and_parquet(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "fcd.xml.gz").write_bytes(gzip.compress(FCD.encode()))
    table = {
        "timestep_time": 0.0,
        "vehicle_id": "a",
        "vehicle_x": 1.0,
        "vehicle_y": 2.0,
        "vehicle_angle": 45.0,
        "vehicle_speed": 3.0,
        "vehicle_slope": 0.5,
    }
    (tmp_path / "fcd.csv").write_text(";".join(table) + "\n" + ";".join(map(str, table.values())) + "\n")
    pq.write_table(pa.table({name: [value] for name, value in table.items()}), tmp_path / "fcd.parquet")
    for name in ("fcd.xml.gz", "fcd.csv", "fcd.parquet"):
        summary = ingest(lake, [str(tmp_path / name)], name)
        assert (summary.format, positions(lake, name)) == ("sumo-fcd", [ROW])
        (row,) = lake.read("positions", trace=name).select("others").collect()
        assert list(json.loads(row["others"]).values()) == ["0.5"], "what else the trace says is kept"


def test_parquet_rows_that_do_not_read_are_rejected_by_their_number(lake: Lake, tmp_path: Path) -> None:
    columns = {
        "id": ["a", None, "b"],
        "time": ["2026-01-26T15:57:02Z", "1", "soon"],
        "lat": [1.0, 2.0, 3.0],
        "lon": [1.0, 2.0, 3.0],
    }
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    summary = ingest(lake, [str(tmp_path / "odd.parquet")], settings=IngestSettings(origin=(1.0, 1.0)))
    assert (summary.rows_kept, summary.start, summary.origin) == (1, 1769443022.0, (1.0, 1.0))
    rejects = lake.read("rejects", trace="odd").select("line", "reason", "detail")
    assert sorted(tuple(row) for row in rejects.collect()) == [
        (2, "unparsable", "no node"),
        (3, "unparsable", "time 'soon' is not a time"),
    ]


def test_liverpools_buses_are_laid_on_a_plane_around_their_middle(lake: Lake, shared_data: Path) -> None:
    summary = ingest(lake, [str(shared_data / "liverpool-bus" / "route14_outbound.csv")], "liverpool")
    assert (summary.rows_read, summary.rows_kept, summary.nodes, summary.common_times) == (1533, 1533, 8, False)
    assert summary.origin is not None
    about = lake.read("traces", trace="liverpool").first()
    assert about is not None
    assert (about["origin_lat_deg"], about["origin_lon_deg"]) == summary.origin
    first = lake.read("positions", trace="liverpool").where("node = '4716'").orderBy("time").first()
    assert first is not None
    there = LocalPlane(*summary.origin).position(53.44451, -2.925173)
    assert (first["x_m"], first["y_m"]) == pytest.approx((there.x_m, there.y_m), abs=1e-6)


def test_a_trace_of_waypoints_is_exact_and_may_be_read_off_at_an_interval(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "walk.ns_movements"
    path.write_text('$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$ns_ at 1.0 "$node_(0) setdest 0.0 4.0 2.0"\n')
    summary = ingest(lake, [str(path)])
    assert (summary.format, summary.motion, summary.common_times) == ("ns2", "waypoints", False)
    assert positions(lake, "walk") == [
        ("0", 0.0, 0.0, 0.0, 0.0, None),
        ("0", 1.0, 0.0, 0.0, 2.0, 0.0),
        ("0", 3.0, 0.0, 4.0, 0.0, None),
    ]
    summary = ingest(lake, [str(path)], "steps", IngestSettings(interval_s=0.5))
    assert (summary.positions, summary.rows_read, summary.motion, summary.common_times) == (7, 3, "samples", True)
    assert [(time, y) for _, time, _, y, _, _ in positions(lake, "steps")] == [
        (0.0, 0.0),
        (0.5, 0.0),
        (1.0, 0.0),
        (1.5, 1.0),
        (2.0, 2.0),
        (2.5, 3.0),
        (3.0, 4.0),
    ]


def test_bonnmotion_one_and_gpx_are_known_by_their_look(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "bonn.movements.gz").write_bytes(gzip.compress(b"0 1 2 5 4 6\n0 9 9 8 9 9\n"))
    (tmp_path / "one.txt").write_text("0 1 0 9 0 9 0 0\n0 p 1 2\n1 p 2 2\n")
    point = '<trkpt lat="53.4" lon="{}"><time>2026-01-26T15:57:0{}Z</time></trkpt>'
    points = "".join(point.format(-2.9 + i * 1e-4, i) for i in range(3))
    (tmp_path / "walk.gpx").write_text(f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>")
    found = [ingest(lake, [str(tmp_path / name)]) for name in ("bonn.movements.gz", "one.txt", "walk.gpx")]
    assert [(one.trace, one.format, one.positions) for one in found] == [
        ("bonn", "bonnmotion", 5),
        ("one", "one", 2),
        ("walk", "gpx", 3),
    ]
    assert found[2].origin == (53.4, -2.8999)


def test_anyone_may_read_a_trace_by_its_formats_name(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "walk.ns_movements"
    path.write_text("$node_(7) set X_ 1\n$node_(7) set Y_ 2\n")
    rows = spark.read.format("ns2-mobility").load(str(path)).select("node", "time", "x_m", "y_m", "line", "problem")
    assert [tuple(row) for row in rows.collect()] == [("7", 0.0, 1.0, 2.0, 1, None)]


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (None, {}, "there is no trace file .*nothing.txt; check the path"),
        ("", {}, "is empty: there is no trace in it"),
        ("node,time,x,y\n", {}, "there are no positions in .*: the trace is empty"),
        ("node,time,x,y\na,soon,1,1\n", {}, "no good position in .*; the first problem is in line 2: time 'soon'"),
        ("node,time,x,y\na,29.03.2026 08:50:00,1,1\n", {}, "is not a time; write times in seconds .* --time-format"),
        ('{"type": "FeatureCollection"}\n', {}, "looks like JSON, which is no trace format here; .* as CSV"),
        ("node,time,lat,lon\na,0,95,1\n", {}, "no good position in .*latitude 95 is outside"),
        ("hello world\n", {}, "cannot detect the format of .*; name it with --format: sumo-fcd, ns2"),
        ("node,time,x,y\na,0,1,1\n", {"format": "ns2"}, "looks like csv, not like ns2; try --format csv"),
        ("hello world\n", {"format": "ns2"}, "is not an ns-2 movement file"),
        ("node,time,x,y\na,0,1,1\n", {"columns": "node=bus"}, "has no column 'bus'; it has node, time, x, y"),
        ("node,time,x,y\na,0,1,1\n", {"columns": "bus"}, "columns are given as role=name"),
    ],
)
def test_a_trace_that_cannot_be_read_says_what_to_do(
    lake: Lake, tmp_path: Path, content: str | None, settings: dict[str, str], message: str
) -> None:
    path = tmp_path / "nothing.txt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TraceError, match=message):
        ingest(lake, [str(path)], "nothing", IngestSettings(**settings))  # type: ignore[arg-type]
    assert not lake.has("positions", trace="nothing")


def test_an_unknown_format_or_role_offers_the_nearest(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("node,time,x,y\na,0,1,1\n")
    with pytest.raises(UnknownName, match="did you mean 'gpx'"):
        ingest(lake, [str(path)], settings=IngestSettings(format="gpxx"))
    with pytest.raises(UnknownName, match="did you mean 'heading'"):
        ingest(lake, [str(path)], settings=IngestSettings(columns="headin=x"))
