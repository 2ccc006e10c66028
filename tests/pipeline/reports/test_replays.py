"""Runs as scenes and plays: what a page shows is what the summary counts and what `why` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from watched_lake import live_records, watched

from earshot.cli.simulate import simulate
from earshot.errors import LakeError, UsageError
from earshot.pipeline.lake.local_tables import LocalTables
from earshot.pipeline.lake.task_commits import Outpost
from earshot.pipeline.oracle.workloads import facts
from earshot.pipeline.reports.lake_replays import Chosen, LakeShelf
from earshot.pipeline.reports.replays import FolderShelf
from earshot.pipeline.watch.watch_replay import WatchShelf
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.view.packing import unpack
from earshot.view.world import Scene

CHANGES = {"duration_s": 25, "warm_up_s": 5, "cool_down_s": 2, "nodes.car.count": 30, "nodes.walker.count": 20}


def scenario() -> Scenario:
    return load_scenario("city").with_(CHANGES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two protocols on one scene, and one on another."""
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


def counted(scene: Scene, pairs: tuple[Any, ...]) -> set[tuple[int, int]]:
    """Of (event, node) pairs those whose event counts."""
    return {
        (int(event), int(node))
        for event, node in zip(pairs[0], pairs[1], strict=True)
        if scene.events[event].time >= scene.counted_from
    }


def test_runs_of_one_scenario_and_seed_stand_side_by_side(folder: Path) -> None:
    shelf = FolderShelf([folder / "steam", folder / "other", folder / "gossip"])
    assert [(entry.title, [play.key for play in entry.plays]) for entry in shelf.scenes()] == [
        ("city, seed 1", ["steam", "gossip"]),
        ("city, seed 2", ["other"]),
    ]
    with pytest.raises(KeyError):
        shelf.play("scene-1", "steam")


@pytest.mark.parametrize("name", ["steam", "gossip"])
def test_a_scene_and_a_play_count_what_the_summary_counts(folder: Path, name: str) -> None:
    shelf = FolderShelf([folder / name])
    scene, play, told = shelf.scene("scene-0"), shelf.play("scene-0", name), summary(folder / name)
    expected, got = counted(scene, scene.expected), counted(scene, play.deliveries)
    assert (len(expected), len(got)) == (told["expected"], told["delivered"])
    assert len(expected & got) / len(expected) == told["delivery_ratio"]
    assert scene.range_m == 160.0
    assert int(sum(play.air[0]) + sum(play.air[1])) >= told["transmissions"]


def test_answers_that_travel_with_a_page_are_those_the_server_gives(folder: Path) -> None:
    shelf = FolderShelf([folder / "gossip"])
    scene, kept = shelf.scene("scene-0"), shelf.staged("scene-0", "gossip").with_answers(10_000)
    missed = [one for one in kept.why if one.losses]
    assert len(missed) > 0
    for one in missed[:20]:
        asked = shelf.why("scene-0", "gossip", scene.events[one.event].id, scene.nodes[one.node])
        assert (asked["expected"], asked["delivered"]) == (True, False)
        assert (list(one.reasons), list(one.losses)) == (asked["reasons"], asked["losses"])
    with pytest.raises(KeyError):
        shelf.why("scene-0", "gossip", "nothing", scene.nodes[0])


def test_a_path_in_an_answer_is_the_way_of_the_hops(folder: Path) -> None:
    shelf = FolderShelf([folder / "steam"])
    scene, play = shelf.scene("scene-0"), shelf.play("scene-0", "steam")
    hops = play.hops
    for last in range(0, len(hops), 25):
        path = shelf.why("scene-0", "steam", scene.events[hops.event[last]].id, scene.nodes[hops.node[last]])["path"]
        way, k = [], last
        while k >= 0:
            way.append((scene.nodes[hops.sender[k]], scene.nodes[hops.node[k]]))
            k = int(hops.parent[k])
        assert [(hop["sender"], hop["receiver"]) for hop in path] == way[::-1]


def test_a_run_whose_trace_is_gone_is_shown_by_its_log_alone(folder: Path, tmp_path: Path) -> None:
    told = json.loads((folder / "steam" / "run.json").read_text())
    told["scenario"]["nodes"]["car"]["mobility"] = {"kind": "playback", "file": "gone.csv"}
    (tmp_path / "run.json").write_text(json.dumps(told))
    (tmp_path / "log.parquet").symlink_to(folder / "steam" / "log.parquet")
    whole, alone = FolderShelf([folder / "steam"]).scene("scene-0"), FolderShelf([tmp_path]).scene("scene-0")
    assert (alone.nodes, alone.range_m) == (whole.nodes, 160.0)
    assert [event.id for event in alone.events] == [event.id for event in whole.events]
    nodes, times = np.arange(len(whole.nodes)), np.full(len(whole.nodes), 10.0)
    assert np.allclose(np.array(alone.ways.at(nodes, times)), np.array(whole.ways.at(nodes, times)), atol=1e-6)
    assert counted(alone, alone.expected) == counted(whole, whole.expected)


def test_folders_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run: it has no run"):
        FolderShelf([tmp_path])
    (tmp_path / "run.json").write_text('{"seed": 1}')
    with pytest.raises(UsageError, match="does not say what was run"):
        FolderShelf([tmp_path])


def lake(root: Path, *protocols: str) -> LocalTables:
    """A lake with runs on one workload, as a sweep commits them."""
    (root / "_staging" / "t").mkdir(parents=True)
    outpost = Outpost(str(root), local=True, staging="_staging/t")
    drawn = facts("w1", scenario(), 1)
    outpost.commit_rows("scenarios", [drawn.scenario], workload="w1")
    outpost.commit_rows("positions", drawn.positions, trace="w1")
    outpost.commit_rows("subscriptions", drawn.subscriptions, workload="w1")
    outpost.commit_rows("announcements", drawn.announcements, workload="w1")
    outpost.commit_rows("events", drawn.events, workload="w1")
    outpost.commit_rows("expected", [], workload="w1")
    for protocol in protocols:
        with outpost.draft() as draft:
            with Log(draft / "part-0.parquet") as log:
                run(scenario(), protocol, {}, 1, log)
            outpost.commit("log", draft, run=f"run-{protocol}")
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
        outpost.commit_rows("runs", [row], run=f"run-{protocol}")
    return LocalTables(root)


def test_runs_in_a_lake_are_the_same_plays_as_in_folders(folder: Path, tmp_path: Path) -> None:
    shelf = LakeShelf(lake(tmp_path, "steam", "flooding"))
    assert [(entry.title, [play.key for play in entry.plays]) for entry in shelf.scenes()] == [
        ("city, seed 1", ["run-flooding", "run-steam"])
    ]
    here, there = shelf.play("w1", "run-steam"), FolderShelf([folder / "steam"]).play("scene-0", "steam")
    scene = shelf.scene("w1")
    assert (scene.range_m, scene.ground) == (160.0, (1000.0, 1000.0))
    assert np.array_equal(here.hops.time, there.hops.time)
    assert np.array_equal(here.deliveries[1], there.deliveries[1])
    assert unpack(here.packed(scene))[0]["protocol"] == "steam"


def test_runs_in_a_lake_can_be_chosen(tmp_path: Path) -> None:
    tables = lake(tmp_path, "flooding")
    assert [play.key for play in LakeShelf(tables, chosen=Chosen(run="run-fl")).scenes()[0].plays] == ["run-flooding"]
    with pytest.raises(LakeError, match="no finished run of seed 9, of steam"):
        LakeShelf(tables, chosen=Chosen(seed=9, protocols=["steam"]))


def test_a_watched_network_is_followed_batch_by_batch(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="has no watch"):
        WatchShelf(LocalTables(tmp_path))
    first, second = live_records(folder / "steam", 0.0), live_records(folder / "steam", 8.0)
    watched(tmp_path, 0, first, [])
    shelf = WatchShelf(LocalTables(tmp_path))
    assert [(entry.key, [play.key for play in entry.plays]) for entry in shelf.scenes()] == [("live", ["steam"])]
    before = shelf.scene("live")
    event = next(row for row in second if row["kind"] == "publish")
    pair = {
        "protocol": "steam",
        "event": event["event"],
        "node": "car-01",
        "published_at": event["time"],
        "wanted": True,
    }
    watched(tmp_path, 1, second, [{**pair, "got": False}, {**pair, "node": "car-02", "wanted": False, "got": True}])
    assert shelf.news() == {
        "batch": 1,
        "figures": [{"name": "nodes", "value": "2"}, {"name": "delivered", "value": "50.0 %"}],
    }
    after = shelf.scene("live")
    published = [row["event"] for row in (*first, *second) if row["kind"] == "publish"]
    assert sorted(one.id for one in after.events) == sorted(published)
    assert len(after.events) > len(before.events)
    expected = [(after.events[e].id, after.nodes[n]) for e, n in zip(*after.expected, strict=True)]
    assert expected == [(event["event"], "car-01")]
    assert len(shelf.play("live", "steam").hops) > 0
    assert shelf.why("live", "steam", event["event"], "car-01")["event"] == event["event"]


def test_a_batch_that_is_not_committed_yet_is_not_shown(folder: Path, tmp_path: Path) -> None:
    watched(tmp_path, 0, live_records(folder / "steam", 0.0), [])
    outpost = Outpost(str(tmp_path), local=True, staging="_staging/t")
    outpost.commit_rows("watched_log", live_records(folder / "steam", 8.0), watch="live", batch=1)
    assert WatchShelf(LocalTables(tmp_path)).scene("live").end < 8.0
