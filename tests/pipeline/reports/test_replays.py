"""Runs as worlds and runs: what a page shows is what the summary counts and what `why` says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from watched_lake import LABEL, NETWORK, live_records, put_batch, watched

from earshot.cli.simulate import simulate
from earshot.errors import LakeError, UsageError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.oracle.workloads import workload_tables
from earshot.pipeline.reports.lake_replays import MOST_RUNS, Chosen, LakeCatalogue, _fewer, _plain
from earshot.pipeline.reports.replays import FolderCatalogue, settings_of
from earshot.pipeline.watch.watch_replay import WatchCatalogue
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.view.runs import RunEntry, WorldEntry
from earshot.view.world import World, unpack

CHANGES = {"duration_s": 25, "warm_up_s": 5, "cool_down_s": 2, "nodes.car.count": 30, "nodes.walker.count": 20}


def scenario() -> Scenario:
    return load_scenario("city").with_(CHANGES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two protocols on one world, and one on another."""
    folder = tmp_path_factory.mktemp("runs")
    changes = [word for name, value in CHANGES.items() for word in ("--set", f"{name}={value}")]
    for name, more in (("steam", []), ("gossip", ["--setting", "probability=0.5"]), ("other", ["--seed", "2"])):
        protocol = "steam" if name == "other" else name
        arguments = ["city", "-p", protocol, *changes, *more, "--log", str(folder / name)]
        done = CliRunner().invoke(simulate, arguments)
        assert done.exit_code == 0, done.output
    return folder


def summary(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text())["summary"])


def counted(world: World, pairs: tuple[Any, ...]) -> set[tuple[int, int]]:
    """Of (event, node) pairs those whose event counts."""
    return {
        (int(event), int(node))
        for event, node in zip(pairs[0], pairs[1], strict=True)
        if world.events[event].time >= world.counted_from
    }


def test_runs_of_one_scenario_and_seed_stand_side_by_side(folder: Path) -> None:
    catalogue = FolderCatalogue([folder / "steam", folder / "other", folder / "gossip"])
    assert [(entry.title, [run.key for run in entry.runs]) for entry in catalogue.worlds()] == [
        ("city, seed 1", ["steam", "gossip"]),
        ("city, seed 2", ["other"]),
    ]
    titles = [run.title for entry in catalogue.worlds() for run in entry.runs]
    assert titles == ["steam (steam)", "gossip", "steam (other)"], "two runs of one protocol have their keys beside it"
    with pytest.raises(KeyError):
        catalogue.run("world-1", "steam")


@pytest.mark.parametrize("name", ["steam", "gossip"])
def test_a_world_and_a_play_count_what_the_summary_counts(folder: Path, name: str) -> None:
    catalogue = FolderCatalogue([folder / name])
    world, run, reported = catalogue.world("world-0"), catalogue.run("world-0", name), summary(folder / name)
    expected, got = counted(world, world.expected), counted(world, run.deliveries)
    assert (len(expected), len(got)) == (reported["expected"], reported["delivered"])
    assert len(expected & got) / len(expected) == reported["delivery_ratio"]
    assert world.range_m == 160.0
    assert int(sum(run.air[0]) + sum(run.air[1])) >= reported["transmissions"]


def test_answers_that_travel_with_a_page_are_those_the_server_gives(folder: Path) -> None:
    catalogue = FolderCatalogue([folder / "gossip"])
    world, kept = catalogue.world("world-0"), catalogue.answerable("world-0", "gossip").with_answers(10_000)
    missed = [one for one in kept.why if one.losses]
    assert len(missed) > 0
    for one in missed[:20]:
        asked = catalogue.why("world-0", "gossip", world.events[one.event].id, world.nodes[one.node])
        assert (asked["expected"], asked["delivered"]) == (True, False)
        assert (list(one.reasons), list(one.losses)) == (asked["reasons"], asked["losses"])
    with pytest.raises(KeyError):
        catalogue.why("world-0", "gossip", "nothing", world.nodes[0])


def test_a_path_in_an_answer_is_the_way_of_the_hops(folder: Path) -> None:
    catalogue = FolderCatalogue([folder / "steam"])
    world, run = catalogue.world("world-0"), catalogue.run("world-0", "steam")
    hops = run.hops
    for last in range(0, len(hops), 25):
        path = catalogue.why("world-0", "steam", world.events[hops.event[last]].id, world.nodes[hops.node[last]])[
            "path"
        ]
        way, k = [], last
        while k >= 0:
            way.append((world.nodes[hops.sender[k]], world.nodes[hops.node[k]]))
            k = int(hops.parent[k])
        assert [(hop["sender"], hop["receiver"]) for hop in path] == way[::-1]


def test_a_run_whose_trace_is_gone_is_shown_by_its_log_alone(folder: Path, tmp_path: Path) -> None:
    reported = json.loads((folder / "steam" / "run.json").read_text())
    reported["scenario"]["nodes"]["car"]["mobility"] = {"kind": "playback", "file": "gone.csv"}
    (tmp_path / "run.json").write_text(json.dumps(reported))
    (tmp_path / "log.parquet").symlink_to(folder / "steam" / "log.parquet")
    whole, alone = FolderCatalogue([folder / "steam"]).world("world-0"), FolderCatalogue([tmp_path]).world("world-0")
    assert (alone.nodes, alone.range_m) == (whole.nodes, 160.0)
    assert [event.id for event in alone.events] == [event.id for event in whole.events]
    nodes, times = np.arange(len(whole.nodes)), np.full(len(whole.nodes), 10.0)
    assert np.allclose(
        np.array(alone.trajectories.at(nodes, times)), np.array(whole.trajectories.at(nodes, times)), atol=1e-6
    )
    assert counted(alone, alone.expected) == counted(whole, whole.expected)


def test_settings_are_those_in_the_scenario_or_those_that_were_given_and_none_of_what_is_not_known() -> None:
    within = settings_of("georendezvous", scenario(), {"rendezvous": 3})
    assert (within.rendezvous, within.network_nodes) == (3, scenario().node_count)
    alone = settings_of("georendezvous", None, {"rendezvous": 3, "range_m": 50.0})
    assert (alone.rendezvous, alone.network_nodes) == (3, None)
    assert settings_of("georendezvous", None, {"rendezvous": 0, "range_m": 50.0}) is None
    assert settings_of("no such protocol", None, {}) is None


def test_folders_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run: it has no run"):
        FolderCatalogue([tmp_path])
    (tmp_path / "run.json").write_text('{"seed": 1}')
    with pytest.raises(UsageError, match="does not say what was run"):
        FolderCatalogue([tmp_path])


def lake(root: Path, *protocols: str) -> ArrowLake:
    """A lake with runs on one workload, as a sweep commits them."""
    commits = ArrowLake(root)
    drawn = workload_tables("w1", scenario(), 1)
    commits.write_rows("scenarios", [drawn.scenario], workload="w1")
    commits.write_rows("positions", drawn.positions, trace="w1")
    commits.write_rows("subscriptions", drawn.subscriptions, workload="w1")
    commits.write_rows("announcements", drawn.announcements, workload="w1")
    commits.write_rows("events", drawn.events, workload="w1")
    commits.write_rows("expected", [], workload="w1")
    for protocol in protocols:
        with commits.files.draft("log", run=f"run-{protocol}") as draft, Log(draft.path) as log:
            run(scenario(), protocol, {}, 1, log)
        assert draft.file is not None
        commits.commit([draft.file])
        row = {
            "campaign": "c",
            "scenario": "city",
            "workload": "w1",
            "protocol": protocol,
            "variant": protocol,
            "settings": "{}",
            "seed": 1,
            "duration_s": 25.0,
            "warm_up_s": 5.0,
            "status": "done",
            "took_s": 0.1,
        }
        commits.write_rows("runs", [row], run=f"run-{protocol}")
    return commits


def test_runs_in_a_lake_are_the_same_as_in_folders(folder: Path, tmp_path: Path) -> None:
    catalogue = LakeCatalogue(lake(tmp_path, "steam", "flooding"))
    assert [(entry.title, [run.key for run in entry.runs]) for entry in catalogue.worlds()] == [
        ("city, seed 1", ["run-flooding", "run-steam"])
    ]
    here, there = catalogue.run("w1", "run-steam"), FolderCatalogue([folder / "steam"]).run("world-0", "steam")
    world = catalogue.world("w1")
    assert (world.range_m, world.extent) == (160.0, (1000.0, 1000.0))
    assert np.array_equal(here.hops.time, there.hops.time)
    assert np.array_equal(here.deliveries[1], there.deliveries[1])
    assert unpack(here.packed(world))[0]["protocol"] == "steam"


def test_runs_in_a_lake_can_be_chosen(tmp_path: Path) -> None:
    tables = lake(tmp_path, "flooding")
    assert [run.key for run in LakeCatalogue(tables, chosen=Chosen(run="run-fl")).worlds()[0].runs] == ["run-flooding"]
    with pytest.raises(LakeError, match="no finished run of seed 9, of steam"):
        LakeCatalogue(tables, chosen=Chosen(seed=9, protocols=["steam"]))


def test_a_watched_network_is_followed_batch_by_batch(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="has no watch"):
        WatchCatalogue(ArrowLake(tmp_path))
    first, second = live_records(folder / "steam", 0.0), live_records(folder / "steam", 8.0)
    watched(tmp_path, 0, first, [])
    catalogue = WatchCatalogue(ArrowLake(tmp_path))
    assert [(entry.key, [run.key for run in entry.runs]) for entry in catalogue.worlds()] == [("live", [LABEL])]
    before = catalogue.world("live")
    event = next(row for row in second if row["kind"] == "publish")
    pair = {
        "network": NETWORK,
        "protocol": "steam",
        "event": event["event"],
        "node": "car-01",
        "published_at": event["time"],
        "wanted": True,
    }
    watched(tmp_path, 1, second, [{**pair, "got": False}, {**pair, "node": "car-02", "wanted": False, "got": True}])
    now = math.floor(max(row["time"] for row in second) / 60.0)
    minutes = [{"minute": minute, "expected": 0, "met": 0} for minute in range(now - 29, now + 1)]
    network = {"name": LABEL, "figures": [{"name": "delivered", "value": "50.0 %"}], "minutes": minutes}
    nodes = [{"name": "nodes", "value": "2"}]
    assert catalogue.updates() == {
        "batch": 1, "figures": nodes, "networks": [{**network, "has_alert": False}], "alerts": []
    }  # fmt: skip
    alert = {"alert": "lost > 1 for 2m", "network": NETWORK, "protocol": "steam", "by": "network", "key": ""}
    ArrowLake(tmp_path).write_rows("watched_alerts", [{**alert, "value": 3.0, "time": 9.0}], watch="live")
    assert catalogue.updates() == {
        "batch": 1, "figures": nodes, "networks": [{**network, "has_alert": True}],
        "alerts": [{"text": "lost > 1 for 2m", "about": LABEL, "value": "3", "since": 9.0}],
    }  # fmt: skip
    after = catalogue.world("live")
    published = [row["event"] for row in (*first, *second) if row["kind"] == "publish"]
    assert sorted(one.id for one in after.events) == sorted(published)
    assert len(after.events) > len(before.events)
    expected = [(after.events[e].id, after.nodes[n]) for e, n in zip(*after.expected, strict=True)]
    assert expected == [(event["event"], "car-01")]
    assert len(catalogue.run("live", LABEL).hops) > 0
    assert catalogue.why("live", LABEL, event["event"], "car-01")["event"] == event["event"]


def test_a_batch_that_is_not_committed_yet_is_not_shown(folder: Path, tmp_path: Path) -> None:
    watched(tmp_path, 0, live_records(folder / "steam", 0.0), [])
    commits = ArrowLake(tmp_path)
    put_batch(commits, "watched_log", live_records(folder / "steam", 8.0), 1)
    assert WatchCatalogue(ArrowLake(tmp_path)).world("live").end < 8.0


def test_a_report_shows_the_first_twelve_runs_of_a_world() -> None:
    runs = [RunEntry(f"run {number}", "steam") for number in range(14)]
    assert MOST_RUNS == 12
    assert _fewer(WorldEntry("key", "title", runs)) == WorldEntry("key", "title", runs[:12])
    assert _fewer(WorldEntry("key", "title", runs[:12])) == WorldEntry("key", "title", runs[:12])


@pytest.mark.parametrize(
    ("text", "name"), [("city, seed 1", "city-seed-1"), ("../Ärger/", "rger"), ("a__b", "a-b"), ("...", "world")]
)
def test_a_file_of_a_world_has_a_name_that_every_system_allows(text: str, name: str) -> None:
    assert _plain(text) == name


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (Chosen(), ""),
        (Chosen(run="ab"), " whose id begins with ab"),
        (Chosen(seed=0, scenario="city"), " of scenario city, of seed 0"),
        (Chosen(protocols=["steam", "cbf"]), " of steam or cbf"),
    ],
)
def test_a_choice_of_runs_is_said_in_words(chosen: Chosen, words: str) -> None:
    assert chosen.in_words == words


def test_a_run_is_taken_that_has_all_that_is_asked_for() -> None:
    row = {"run": "abc", "scenario": "city", "seed": 0, "protocol": "steam"}
    right = [Chosen(), Chosen(run="ab"), Chosen(scenario="city", seed=0), Chosen(protocols=["cbf", "steam"])]
    wrong = [Chosen(run="bc"), Chosen(scenario="town"), Chosen(seed=1), Chosen(protocols=[]), Chosen("ab", seed=2)]
    assert [one.takes(row) for one in right] == [True] * 4
    assert [one.takes(row) for one in wrong] == [False] * 5
