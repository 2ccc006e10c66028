"""From a trace in a lake to a run: one way, in the trace's own coordinates."""

from __future__ import annotations

import json
import pickle
import tomllib
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from earshot.cli import main
from earshot.errors import ScenarioError, TraceError
from earshot.pipeline.campaigns.campaigns import Run
from earshot.pipeline.campaigns.flow import draw_workloads, keep_own_workload
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.traces.ingest import IngestSettings, ingest, trace_in_lake
from earshot.pipeline.traces.trace_scenario import scenario_from_trace
from earshot.simulation import run, summarise
from earshot.simulation.scenario.library import load_scenario

pytestmark = pytest.mark.spark

START = 1_700_000_000
"Vehicles with degrees and dates: neither times nor places begin at 0."


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve buses, two minutes; the last four come after a minute."""
    random = np.random.default_rng(4)
    lines = ["node,time,lat,lon"]
    for number in range(12):
        lat, lon = 53.4 + 0.002 * random.random(), -2.98 + 0.004 * random.random()
        for second in range(0 if number < 8 else 60, 121, 5):
            lat, lon = lat + 2e-5 * random.standard_normal(), lon + 3e-5 * random.standard_normal()
            lines.append(f"bus-{number:02},{START + second},{lat:.7f},{lon:.7f}")
    path = tmp_path_factory.mktemp("trace") / "buses.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def lake(spark: SparkSession, trace_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    opened = Lake(spark, tmp_path_factory.mktemp("scenario") / "lake")
    ingest(opened, [str(trace_file)])
    return opened


def test_a_run_plays_back_the_positions_of_the_lake(lake: Lake) -> None:
    scenario = scenario_from_trace(lake.name, "buses")
    trajectories = scenario.trajectories(seed=1)
    rows = lake.read("positions", trace="buses").collect()
    assert len(rows) > 200
    for row in rows:
        node = trajectories.names.index(row["node"])
        assert trajectories.position(node, row["time"] - START) == pytest.approx((row["x_m"], row["y_m"]), abs=1e-9)
    box = scenario.area.box
    assert box[0] == min(row["x_m"] for row in rows) < 0 < box[2]
    assert max(row["y_m"] for row in rows) <= box[3] < max(row["y_m"] for row in rows) + 1


def test_a_file_plays_back_at_the_places_that_ingest_gives_it(lake: Lake, trace_file: Path) -> None:
    scenario = scenario_from_trace(lake.name, "buses")
    nodes = {"file": str(trace_file), "lake": None, "trace": None}
    same = scenario.with_({f"nodes.node.mobility.{key}": value for key, value in nodes.items()})
    for second in (0.0, 33.0, 119.0):
        there = scenario.trajectories(1).positions(second)
        assert same.trajectories(1).positions(second) == pytest.approx(there, abs=1e-6)


def test_a_window_has_the_nodes_that_are_there_in_it(lake: Lake) -> None:
    early = scenario_from_trace(lake.name, "buses", start_s=START + 12.5, end_s=START + 42.5)
    assert early.names() == tuple(f"bus-{number:02}" for number in range(8))
    assert early.duration_s == 30.0
    whole = scenario_from_trace(lake.name, "buses")
    assert len(whole.names()) == 12
    paths, longer = early.trajectories(1), whole.trajectories(1)
    for second in (0.0, 7.3, 29.9, 30.0):
        assert paths.positions(second) == pytest.approx(longer.positions(second + 12.5)[:8], abs=1e-6)
    assert all(presence[0][0] <= 0.0 and presence[-1][1] >= 30.0 for presence in paths.presence)


def test_a_window_outside_of_the_trace_is_refused(lake: Lake) -> None:
    with pytest.raises(TraceError, match="the window 5 to 9 s is outside of trace buses, which lasts from 1700000000 "):
        scenario_from_trace(lake.name, "buses", start_s=5, end_s=9)


def test_a_trace_that_is_not_there_is_named_with_those_that_are(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no trace 'busses', only buses; run: earshot ingest FILE --trace busses"):
        scenario_from_trace(lake.name, "busses")
    with pytest.raises(TraceError, match=r"cannot read the table traces of the lake .*none"):
        scenario_from_trace(tmp_path / "none", "buses")


def test_a_run_is_known_by_what_its_trace_holds(
    lake: Lake, spark: SparkSession, trace_file: Path, tmp_path: Path
) -> None:
    first = Run(scenario_from_trace(lake.name, "buses"), "flooding")
    other = Lake(spark, tmp_path / "other")
    ingest(other, [str(trace_file)], "again")
    assert Run(scenario_from_trace(other.name, "again"), "flooding").id == first.id
    assert (first.trace, first.window) == ("buses", f"{START} to {START + 120} s")
    (tmp_path / "moved.csv").write_text(trace_file.read_text().replace("bus-03,", "bus-33,"))
    ingest(other, [str(tmp_path / "moved.csv")], "again")
    assert Run(scenario_from_trace(other.name, "again"), "flooding").id != first.id


def test_the_scenario_runs_here_and_in_a_task(lake: Lake, spark: SparkSession) -> None:
    scenario = scenario_from_trace(lake.name, "buses", workload="alerts-nearby", range_m=150.0)
    here = summarise(scenario, run(scenario, "flooding", seed=2)).as_dict()
    assert here["expected"] > 0
    packed = pickle.dumps(scenario)

    def in_a_task(rows: object) -> object:
        del rows
        again = pickle.loads(packed)
        yield json.dumps(summarise(again, run(again, "flooding", seed=2)).as_dict())

    (there,) = spark.sparkContext.parallelize([0], 1).mapPartitions(in_a_task).collect()
    assert json.loads(there) == json.loads(json.dumps(here))


def test_a_workload_of_the_lake_is_published_at_the_times_of_the_trace(lake: Lake, tmp_path: Path) -> None:
    events = [
        {"type": "Siren", "content": {"speed": 18}, "node": "bus-01", "time_s": START + 50, "id": "one"},
        {"type": "Siren", "content": {"speed": 3}, "node": "bus-02", "time_s": START + 70, "id": "two"},
        {"type": "Siren", "content": {"speed": 20}, "node": "bus-11", "time_s": START + 110, "id": "three"},
    ]
    wanted = [{"node": f"bus-{number:02}", "filter": "Siren: speed > 10"} for number in (0, 3, 9)]
    files = tmp_path / "events.jsonl", tmp_path / "wanted.jsonl"
    for file, rows in zip(files, (events, wanted), strict=True):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keep_own_workload(lake, "rounds", [str(files[0])], str(files[1]))
    kept = scenario_from_trace(lake.name, "buses", workload="rounds")
    own = scenario_from_trace(lake.name, "buses", events=files[0], subscriptions=files[1])
    for scenario in (kept, own):
        summary = summarise(scenario, run(scenario, "flooding", seed=1))
        assert (summary.events, summary.expected) == (3, 5)  # bus-09 is not there yet when the first is published
    late = scenario_from_trace(lake.name, "buses", start_s=START + 60, end_s=START + 100, workload="rounds")
    assert summarise(late, run(late, "flooding", seed=1)).events == 1
    with pytest.raises(ScenarioError, match="put other files into the lake"):
        scenario_from_trace(lake.name, "buses", events=tmp_path / "e.parquet", subscriptions=files[1])


def test_a_campaign_reads_the_trace_and_draws_its_workload(lake: Lake) -> None:
    run_of = Run(scenario_from_trace(lake.name, "buses", workload="news"), "flooding", {}, 3)
    draw_workloads(lake, [run_of])
    assert lake.read("events", workload=run_of.workload).count() > 0
    at_60 = lake.read("positions", trace=run_of.workload).where("node = 'bus-09' and time = 60").collect()
    there = lake.read("positions", trace="buses").where(f"node = 'bus-09' and time = {START + 60}").collect()
    assert [row["x_m"] for row in at_60] == pytest.approx([row["x_m"] for row in there])


def test_vehicles_keep_their_types_and_persons_are_nodes(lake: Lake, tmp_path: Path) -> None:
    text = "<fcd-export>"
    for time in range(0, 41, 10):
        moving = "".join(
            f'<vehicle id="{kind}{i}" x="{10 * i}" y="{time}" type="{kind}" speed="1" angle="0" pos="0" lane="a"/>'
            for kind in ("bus", "car")
            for i in range(3)
        )
        text += f'<timestep time="{time}">{moving}<person id="ann" x="5" y="5" type="DEFAULT_PEDTYPE"/></timestep>'
    (tmp_path / "types.xml").write_text(text + "</fcd-export>")
    ingest(lake, [str(tmp_path / "types.xml")])
    scenario = scenario_from_trace(lake.name, "types", workload="news")
    names = {group: nodes.node_names(group, scenario.duration_s) for group, nodes in scenario.nodes.items()}
    assert {group: len(some) for group, some in names.items()} == {
        "bus": 3,
        "car": 3,
        "person": 1,
    }
    buses = scenario.with_(
        {"publish.news.nodes": "type:bus", "publish.news.count": 2, "subscribe.news.nodes": "person"}
    )
    sources = {action.node for action in buses.workload(1)}
    assert {buses.names()[node] for node in sources} <= {"bus0", "bus1", "bus2", "ann"}
    with pytest.raises(ScenarioError, match="no node or group is called 'type:tram'; did you mean 'type:car'"):
        scenario.with_({"publish.news.nodes": "type:tram"})
    steps = IngestSettings(interval_s=5.0)
    ingest(lake, [str(tmp_path / "types.xml")], "steps", steps)
    rows = lake.read("positions", trace="steps").where("time = 5").select("node", "type").collect()
    assert {row["node"]: row["type"] for row in rows}["bus1"] == "bus"
    assert scenario_from_trace(lake.name, "steps").trajectories(1).position(0, 5.0) == (0.0, 5.0)


def test_files_are_read_once_and_again_when_they_change(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "walk.csv"
    file.write_text("node,time,x_m,y_m\nann,0,0,0\nann,10,50,0\n")
    assert trace_in_lake(lake, str(file)) == "walk"
    version = lake.arrow.tables()
    assert trace_in_lake(lake, str(file)) == trace_in_lake(lake, "walk") == "walk"
    assert lake.arrow.tables() == version
    file.write_text("node,time,x_m,y_m\nann,0,0,0\nann,10,50,0\nbob,0,9,9\n")
    assert trace_in_lake(lake, str(file)) == "walk"
    assert lake.read("positions", trace="walk").count() == 3


def test_the_commands_take_a_trace(lake: Lake, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        return int(str(ended.value.code)), *capfd.readouterr()

    place = ("--lake", lake.name)
    code, out, _ = call("scenario", "from-trace", "buses", "--window", "30-60s", "--range", "120m", *place)
    assert code == 0
    assert tomllib.loads(out)["nodes"]["node"]["mobility"]["start_s"] == START + 30
    (tmp_path / "mine.toml").write_text(out)
    assert load_scenario(tmp_path / "mine.toml").medium.label == "802.11p-6M 120 m"
    code, out, _ = call("simulate", "--trace", "buses", "--window", "30s-1min", "-p", "flooding", "--json", *place)
    assert (code, json.loads(out)["nodes"]) == (0, 12)
    code, _, err = call("simulate", "--trace", "buses", "--window", "2h-3h", "-p", "flooding", *place)
    assert (code, "outside of trace buses" in err) == (2, True)
    for arguments, words in (
        (("simulate", "city", "--trace", "buses", "-p", "gossip"), "name a scenario or --trace, not both"),
        (("simulate", "-p", "gossip"), "name a scenario"),
        (("simulate", "city", "--range", "100m", "-p", "gossip"), "need --trace"),
        (("simulate", "--trace", "buses", "--window", "9", "-p", "gossip"), "'9' is not a window"),
        (("simulate", "--trace", "buses", "--workload", "nws", "-p", "gossip", *place), "there is no workload 'nws'"),
        # These come before a trace is looked for, which may take minutes to read.
        (("advise", "far.csv", "--workload", "nws", *place), "there are alerts-nearby, parking, convoy, news, mixed"),
        (("advise", "far.csv", "--radio", "wifi", *place), "there is no 'wifi'; there are: 802.11p-6M"),
        (("advise", "far.csv", "--events", "a.jsonl", *place), "needs both events and subscriptions"),
        (("advise", "far.csv", "--events", "a.jsonl", "--subscriptions", "b.jsonl", *place), "no such file: a.jsonl"),
        (("advise", "far.csv", *place), "there is no trace file far.csv"),
    ):
        code, _, err = call(*arguments)
        assert (code, words in err) == (2, True), err
    code, out, _ = call(
        "compare", "--trace", "buses", "--window", "30s-60s", "--workload", "convoy", "--protocols", "flooding,gossip",
        "--seeds", "1", "--json", *place,
    )  # fmt: skip
    assert code == 0
    assert {row["protocol"] for row in json.loads(out)["rankings"][0]["rows"]} == {"flooding", "gossip"}
