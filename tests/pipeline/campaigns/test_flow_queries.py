"""From a scenario to its leaderboard, stage by stage, without a JVM: DuckDB runs the queries in place of Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from spark_on_duckdb import Session
from tiny_campaign import SCENARIO, fill, tiny

from earshot.errors import LakeError, ScenarioError
from earshot.pipeline.campaigns import flow
from earshot.pipeline.campaigns.campaigns import Run, campaign
from earshot.pipeline.campaigns.flow import (
    LakeRows,
    ask_oracle,
    compare,
    draw_scenario,
    draw_workloads,
    expected_counts,
    find_reachable,
    keep_own_workload,
    lake_ceiling,
    lake_leaderboard,
    lake_rows,
    measure,
    run_campaign,
    whole_run_figures,
    workload_ceiling,
)
from earshot.pipeline.campaigns.metrics import metrics, pairs
from earshot.pipeline.campaigns.run_pairs import PAIRS
from earshot.pipeline.campaigns.swept_keys import swept_runs
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import TABLES
from earshot.pipeline.oracle.reachable import Ceiling
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("kept") / "lake")


@pytest.fixture
def measured(kept: Path, quick_spark: Session, tmp_path: Path) -> Lake:
    """A lake with one seed of two protocols."""
    shutil.copytree(kept, tmp_path / "lake")
    return Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]


@pytest.fixture
def lake(quick_spark: Session, tmp_path: Path) -> Lake:
    return Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]


def versions(lake: Lake) -> dict[str, int]:
    return {table["table"]: table["version"] for table in lake.arrow.tables()}


def content(lake: Lake, *tables: str) -> dict[str, list[str]]:
    return {table: sorted(map(repr, lake.arrow.read(table).to_pylist())) for table in tables}


RESULTS = ("expected", "reachable", "metrics")


def test_a_campaign_goes_from_its_scenarios_to_its_metrics(lake: Lake) -> None:
    """The simulator's own summary of a run is an independent truth."""
    said: list[str] = []
    seen: list[tuple[int, int, int, str]] = []
    wanted = tiny(1)
    outcomes = run_campaign(lake, wanted, said.append, lambda *counts: seen.append(counts))
    assert said == [
        "simulating",
        "drawing the workloads",
        "asking the oracle",
        "finding what is reachable",
        "measuring",
    ]
    assert [(one.status, one.seed, one.protocol) for one in outcomes] == [
        ("done", 1, name) for name in ("flooding", "gossip")
    ]
    assert seen[-1] == (2, 0, 0, "")
    found = whole_run_figures(lake, [one.run for one in outcomes], ["expected", "delivered", "delivery_ratio"])
    for one in wanted.runs:
        summary = summarise(SCENARIO, run(SCENARIO, one.protocol, one.settings, one.seed))
        figures = found[one.id]
        assert (figures["expected"], figures["delivery_ratio"]) == (
            summary.expected,
            summary.delivered / summary.expected,
        )
    assert {table["table"]: table["partitions"] for table in lake.arrow.tables()} == {
        "scenarios": 1, "events": 1, "subscriptions": 1, "announcements": 1, "sessions": 1, "positions": 1,
        "expected": 1, "reachable": 1, "runs": 2, "log": 2, "metrics": 2,
    }  # fmt: skip
    before = versions(lake)
    again = run_campaign(lake, wanted)
    assert {one.run: one.took_s for one in again} == {one.run: one.took_s for one in outcomes}
    assert versions(lake) == before, "nothing is computed again"


def test_a_run_that_fails_goes_no_further_and_too_slow_a_run_fails(lake: Lake) -> None:
    broken = replace(campaign("tiny", [SCENARIO], {"flooding": {}}, [1]), runs=[Run(SCENARIO, "flooding", {"x": 1}, 1)])
    (failed,) = run_campaign(lake, broken)
    assert failed.status == "failed"
    assert [table["table"] for table in lake.arrow.tables()] == ["runs"]
    (slow,) = run_campaign(lake, campaign("tiny", [SCENARIO], {"flooding": {}}, [1]), most_s=-1.0)
    assert (slow.status, "processor time" in str(slow.error)) == ("failed", True)
    assert sorted(one.run for one in flow.outcomes_in(lake, "failed")) == sorted([failed.run, slow.run])


def test_protocols_are_compared_on_some_seeds(lake: Lake) -> None:
    board = compare(lake, SCENARIO, {"flooding": {"hop_limit": 9}}, seeds=2)
    assert [(row.variant, row.figures["delivery_ratio"].seeds) for row in board.rows] == [("flooding hop_limit=9", 2)]
    assert {row["campaign"] for row in lake_rows(lake).runs} == {"compare-base"}
    assert [row.variant for row in compare(lake, SCENARIO, ["gossip"], seeds=1).rows] == ["gossip"]


# What tasks hold and what queries join give the same.


def test_queries_and_tasks_give_the_same_tables(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Run(SCENARIO, "flooding", {}, 1)]
    near = [replace(one, scenario=SCENARIO.with_({"medium.range_m": 90.0})) for one in runs]
    runs += near
    draw_workloads(lake, runs)
    ask_oracle(lake, [one.workload for one in runs])
    find_reachable(lake, runs)
    by_tasks = content(lake, "expected", "reachable")
    assert min(map(len, by_tasks.values())) > 10
    lake.drop("reachable")
    monkeypatch.setattr(flow, "fits_one_task", lambda *_: False)
    ask_oracle(lake, [one.workload for one in runs], again=True)
    find_reachable(lake, runs)
    assert content(lake, "expected", "reachable") == by_tasks
    before = versions(lake)
    ask_oracle(lake, [one.workload for one in runs])
    find_reachable(lake, runs)
    assert versions(lake) == before


def test_a_workload_of_which_nobody_wants_anything_has_empty_answers(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Run(SCENARIO, "flooding", {}, seed) for seed in (1, 2))
    draw_workloads(lake, [one, other])
    nothing = lake.read("subscriptions", workload=one.workload).limit(0)
    lake.write(nothing, "subscriptions", workload=one.workload)
    for fits in (True, False):
        monkeypatch.setattr(flow, "fits_one_task", lambda *_, fits=fits: fits)
        ask_oracle(lake, [one.workload, other.workload], again=True)
        assert lake.has("expected", workload=one.workload)
        assert lake.read("expected", workload=one.workload).count() == 0
        assert lake.read("expected", workload=other.workload).count() > 0
        find_reachable(lake, [one, other])
        assert lake.has("reachable", workload=one.workload, range_m=300.0)
        assert lake.read("reachable", workload=one.workload).count() == 0
        lake.drop("reachable")


def test_an_oracle_without_events_says_what_to_run(lake: Lake) -> None:
    ask_oracle(lake, [])
    assert versions(lake) == {}
    with pytest.raises(LakeError, match=r"run: earshot workload nobody --lake"):
        ask_oracle(lake, ["nobody"])
    with pytest.raises(LakeError, match=r"run: earshot workload nobody --lake"):
        expected_counts(lake, "nobody")
    one = Run(SCENARIO, "flooding", {}, 1)
    draw_workloads(lake, [one])
    run_campaign(lake, campaign("tiny", [SCENARIO], {"flooding": {}}, [1]))
    lake.drop("expected")
    with pytest.raises(LakeError, match=rf"run: earshot oracle {one.workload} --lake"):
        measure(lake, [one.id], again=True)


# One workload by itself.


def test_a_scenario_is_drawn_once_and_counted(lake: Lake) -> None:
    name, counts = draw_scenario(lake, SCENARIO, 3)
    assert name == Run(SCENARIO, "", {}, 3).workload
    assert counts == {table: lake.arrow.read(table, workload=name).num_rows for table in ("events", "subscriptions")}
    assert min(counts.values()) > 1
    (described,) = lake.arrow.read("scenarios").to_pylist()
    assert (described["workload"], described["scenario"], described["seed"]) == (name, "base", 3)
    assert json.loads(described["described"])["duration_s"] == 14.0
    before = versions(lake)
    assert draw_scenario(lake, SCENARIO, 3) == (name, counts)
    assert versions(lake) == before
    reacting: Any = SimpleNamespace(reacts=True, name="busy")
    with pytest.raises(ScenarioError, match=r"^busy: drivers react to events, so that each protocol has a workload"):
        draw_scenario(lake, reacting, 1)


def test_drivers_that_react_are_simulated_with_the_runs_protocol(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    drawn = flow.workload_tables("w", SCENARIO, 1)
    monkeypatch.setattr(flow, "reacting_tables", lambda *given: asked.append(given) or drawn)
    reacting: Any = SimpleNamespace(reacts=True)
    one: Any = SimpleNamespace(workload="w1", scenario=reacting, seed=4, protocol="cbf", settings={"a": 1})
    answer = json.loads(flow._draw(lake.arrow.files, one))
    assert asked == [("w1", reacting, 4, "cbf", {"a": 1})]
    assert answer["scenario"]["workload"] == "w1"
    assert {name: file["partition"] for name, file in answer["files"].items()} == {
        "positions": {"trace": "w1"},
        **{name: {"workload": "w1"} for name in ("sessions", "subscriptions", "announcements", "events")},
    }


OWN = """{"type": "Siren", "content": {"speed": 18}, "id": "e1", "node": "a", "time_s": 5}
{"type": "Siren", "content": {"speed": 4}, "id": "e2", "node": "a", "time_s": 6}
{"type": "Siren", "content": {"speed": 30}, "id": "e3", "node": "b", "time_s": 95}
"""
WANTED = (
    '{"node": "a", "filter": "Siren: speed > 1"}\n{"node": "b", "filter": "Siren: within 50 m"}\n'
    '{"node": "c", "filter": "Siren: speed > 10"}\n{"node": "c", "filter": "Siren: speed > 20"}\n'
)


@pytest.fixture
def own(lake: Lake, tmp_path: Path) -> Lake:
    """A workload of somebody's own, and a trace: a stands still, b comes near it, c is there until 50 s."""
    for name, text in (("own.jsonl", OWN), ("wanted.jsonl", WANTED)):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / "own.jsonl")], str(tmp_path / "wanted.jsonl")
    assert keep_own_workload(lake, "mine", *files) == {"events": 3, "subscriptions": 4}
    places = {"a": [(0.0, 0.0), (90.0, 0.0)], "b": [(0.0, 20.0), (100.0, 20.0)], "c": [(0.0, 500.0), (50.0, 500.0)]}
    rows = [{"node": node, "time": time, "x_m": x, "y_m": 0.0} for node, some in places.items() for time, x in some]
    legs = {"a": (90.0, 0.0), "b": (100.0, 0.0), "c": (50.0, 0.0)}
    known = [
        {**row, "until": legs[row["node"]][0], "x_m_s": 0.0, "y_m_s": 0.0}
        for row in rows  # type: ignore[index]
    ]
    lake.arrow.write_rows("positions", known, trace="town")
    lake.arrow.write_rows("traces", [{"trace": "town", "motion": "waypoints", "interval_s": 100.0}])
    return lake


@pytest.mark.parametrize("fits", [True, False])
def test_the_oracle_of_a_trace_places_events_and_leaves_out_who_is_not_there(
    own: Lake, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    monkeypatch.setattr(flow, "fits_one_task", lambda *_: fits)
    assert expected_counts(own, "mine", "town") == {"pairs": 3, "events": 2, "nodes": 2}
    found = own.arrow.read("expected", workload="mine").to_pylist()
    assert sorted((row["event"], row["node"], row["why"]) for row in found) == [
        ("e1", "b", "content and place"), ("e1", "c", "content"), ("e2", "b", "content and place"),
    ]  # fmt: skip
    assert expected_counts(own, "mine") == {"pairs": 3, "events": 2, "nodes": 2}
    found = own.arrow.read("expected", workload="mine").to_pylist()
    assert sorted((row["event"], row["node"], row["subscription"]) for row in found) == [
        ("e1", "c", "c/2"), ("e3", "a", "a/0"), ("e3", "c", "c/2"), ("e3", "c", "c/3"),
    ]  # fmt: skip


def test_a_trace_of_samples_has_gaps_in_which_nobody_is_placed(own: Lake) -> None:
    own.arrow.write_rows("traces", [{"trace": "town", "motion": "samples", "interval_s": 1.0}])
    assert expected_counts(own, "mine", "town") == {"pairs": 1, "events": 1, "nodes": 1}
    own.arrow.write_rows("traces", [{"trace": "town"}])
    own.arrow.drop("traces")
    assert expected_counts(own, "mine", "town")["pairs"] >= 1, "a recorded run has no row among the traces"


@pytest.mark.parametrize("fits", [False])
def test_the_ceiling_of_a_trace_is_at_the_range_that_is_given(
    own: Lake, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    monkeypatch.setattr(flow, "fits_one_task", lambda *_: fits)
    expected_counts(own, "mine", "town")
    monkeypatch.setattr(flow, "trace_about", lambda _, name: SimpleNamespace(longest_gap_s={"town": 200.0}[name]))
    assert workload_ceiling(own, "mine", "town", None) is None
    assert workload_ceiling(own, "mine", "town", 30.0) == Ceiling(3, 2, 0)
    assert workload_ceiling(own, "mine", "town", 600.0) == Ceiling(3, 3, 0)
    assert lake_ceiling(own, ["mine"], 30.0) == Ceiling(3, 2, 0)
    assert lake_ceiling(own, ["mine"]) == Ceiling(6, 5, 0)
    assert lake_ceiling(own, ["other"]) == Ceiling(0, 0, 0)
    monkeypatch.setattr(flow, "trace_about", lambda *_: SimpleNamespace(longest_gap_s=60.0))
    assert workload_ceiling(own, "mine", "town", 30.0) == Ceiling(3, 0, 0), "a and b are away in their long gaps"


@pytest.mark.parametrize("fits", [True])
def test_the_ceiling_of_a_scenario_is_at_the_range_of_its_radio(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    one = Run(SCENARIO, "flooding", {}, 1)
    draw_workloads(lake, [one])
    ask_oracle(lake, [one.workload])
    find_reachable(lake, [one])
    truth = lake_ceiling(lake, [one.workload], 300.0)
    assert 0 < truth.at_once < truth.expected
    rows = content(lake, "reachable")
    lake.drop("reachable")
    monkeypatch.setattr(flow, "fits_one_task", lambda *_: fits)
    assert workload_ceiling(lake, one.workload, None, None) == truth
    assert content(lake, "reachable") == rows
    assert workload_ceiling(lake, one.workload, None, 1e6) == Ceiling(truth.expected, truth.expected, 0)


def test_a_workload_that_is_kept_again_loses_its_answers(own: Lake, tmp_path: Path) -> None:
    expected_counts(own, "mine", "town")
    own.arrow.write_rows("reachable", [], workload="mine", range_m=1.0)
    keep_own_workload(own, "mine", [str(tmp_path / "own.jsonl")], str(tmp_path / "wanted.jsonl"))
    assert (own.has("expected", workload="mine"), own.has("reachable", workload="mine")) == (False, False)


# Metrics.


def figures(rows: Any) -> dict[tuple[str, ...], float]:
    return {tuple(row[name] for name in ("run", "metric", "by", "key")): row["value"] for row in rows}


def test_the_query_of_metrics_gives_what_each_runs_task_does(measured: Lake) -> None:
    tables = [measured.read(name) for name in ("log", "runs", "expected", "reachable")]
    stored = figures(measured.read("metrics").collect())
    assert figures(tables[0].transform(metrics(*tables[1:])).collect()) == pytest.approx(stored)  # type: ignore[arg-type]
    bare = figures(tables[0].transform(metrics(*tables[1:3])).collect())  # type: ignore[arg-type]
    assert {key[1] for key in stored} - {key[1] for key in bare} >= {"ceiling", "missed_lost"}
    assert {key: value for key, value in stored.items() if key[1] == "delivery_ratio"} == {
        key: value for key, value in bare.items() if key[1] == "delivery_ratio"
    }
    assert {*bare} < {*stored} | {key for key in bare if key[2] == "cause"}
    wide = figures(tables[0].transform(metrics(*tables[1:], area_m=1e6)).collect())  # type: ignore[arg-type]
    assert len({key[3] for key in wide if key[2] == "area"}) < len({key[3] for key in stored if key[2] == "area"})


def test_the_query_of_pairs_has_a_row_for_each_receiver_of_each_run(measured: Lake) -> None:
    tables = [measured.read(name) for name in ("log", "runs", "expected", "reachable")]
    found = tables[0].transform(pairs(*tables[1:]))  # type: ignore[arg-type]
    assert found.columns == [part.split()[0] for part in PAIRS.replace("`", "").split(", ")]
    rows = found.collect()
    whole = whole_run_figures(measured, [row["run"] for row in rows], ["expected", "delivered"])
    for name in whole:
        ours = [row for row in rows if row["run"] == name]
        assert sum(row["wanted"] for row in ours) == whole[name]["expected"]
        assert sum(row["wanted"] and row["got"] for row in ours) <= whole[name]["delivered"]
    runs = tables[1].where("protocol = 'gossip'")
    failed = tables[1].where("protocol = 'flooding'").drop("status").withColumn("status", F.lit("failed"))
    only = tables[0].transform(pairs(runs.unionByName(failed), *tables[2:]))  # type: ignore[arg-type]
    assert {row["run"] for row in only.collect()} == {row["run"] for row in runs.collect()}


def test_figures_are_asked_of_some_runs_by_name(measured: Lake) -> None:
    one, other = sorted(row["run"] for row in measured.read("runs").collect())
    found = whole_run_figures(measured, [one], ["expected", "delivery_ratio", "nothing"])
    assert {name: {*some} for name, some in found.items()} == {one: {"expected", "delivery_ratio"}}
    assert whole_run_figures(measured, [other], []) == {}
    stored = figures(measured.read("metrics").collect())
    assert found[one]["expected"] == stored[one, "expected", "all", ""]


def test_rows_of_a_lake_are_those_of_its_runs_by_grouping(measured: Lake) -> None:
    stored = measured.read("metrics").collect()
    one, other = sorted(row["run"] for row in measured.read("runs").collect())
    whole = lake_rows(measured, groupings={"type": (), "all": ("expected", "lost"), "node": ("expected",)})
    assert [row["variant"] for row in whole.runs] == ["flooding", "gossip probability=0.5"]
    assert {by: len(rows) for by, rows in whole.metrics.items()} == {
        "type": sum(row["by"] == "type" for row in stored),
        "all": sum(row["by"] == "all" and row["metric"] in ("expected", "lost") for row in stored),
        "node": sum(row["by"] == "node" and row["metric"] == "expected" for row in stored),
    }
    part = lake_rows(measured, [one])
    assert ([row["run"] for row in part.runs], {row["run"] for row in part.metrics["all"]}) == ([one], {one})
    assert len(lake_leaderboard(measured).rows) == 2
    assert [row.runs for row in lake_leaderboard(measured, [other]).rows] == [{1: other}]


def test_rows_are_in_the_order_of_scenario_variant_seed_and_run() -> None:
    runs = [
        {"scenario": scenario, "variant": variant, "seed": seed, "run": run, "status": status}
        for scenario, variant, seed, run, status in (
            ("b", "a", 1, "z", "done"), ("a", "b", 1, "y", "failed"), ("a", "a", 2, "x", "done"),
            ("a", "a", 1, "w", "done"), ("a", "a", 1, "v", "done"),
        )
    ]  # fmt: skip
    assert [row["run"] for row in LakeRows(runs, {}).finished] == ["z", "x", "w", "v"]


def test_many_runs_are_measured_by_several_commits(measured: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    before, version = content(measured, "metrics"), versions(measured)["metrics"]
    monkeypatch.setattr(flow, "RUNS_A_COMMIT", 1)
    runs = [row["run"] for row in measured.read("runs").collect()]
    measure(measured, [*runs, "unknown"])
    assert versions(measured)["metrics"] == version, "they are measured"
    measure(measured, [*runs, *runs], again=True)
    assert (content(measured, "metrics"), versions(measured)["metrics"]) == (before, version + 2)


def test_a_run_without_records_has_no_figures(measured: Lake) -> None:
    (one, *_) = flow.outcomes_in(measured, "done")
    assert flow._figures(measured.folder, replace(one, run="nothing")) == "[]"
    known = json.loads(flow._figures(measured.folder, one))
    assert {row[0] for row in known} >= {"ceiling", "delivery_ratio"}
    bare = json.loads(flow._figures(measured.folder, replace(one, range_m=None)))
    assert "ceiling" not in {row[0] for row in bare}


# Swept keys.


def test_swept_keys_and_settings_are_columns_of_the_runs(lake: Lake) -> None:
    def row(run: str, changed: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
        base = {"medium.range_m": 100, "text": "x", "flag": False}
        return {"run": run, "scenario": "s", "changed": json.dumps(changed), "base": json.dumps(base),
                "settings": json.dumps(settings), "seed": 1}  # fmt: skip

    lake.arrow.write_rows("runs", [
        row("a", {"medium.range_m": 160, "text": "y"}, {"probability": 0.5}),
        row("b", {"flag": True}, {"probability": 1}),
        row("c", {}, {"kind": [1]}),
    ])  # fmt: skip
    found = swept_runs(lake)
    added = ["flag", "medium.range_m", "settings.kind", "settings.probability", "text"]
    assert {*found.columns} == {*TABLES["runs"].columns, *added}
    known = {row["run"]: tuple(row[name] for name in added) for row in found.collect()}
    assert known == {
        "a": (False, 160.0, None, 0.5, "y"), "b": (True, 100.0, None, 1.0, "x"), "c": (False, 100.0, "[1]", None, "x"),
    }  # fmt: skip
    assert [row["run"] for row in found.where("`medium.range_m` > 100 and `settings.probability` < 1").collect()] == [
        "a"
    ]
    assert pa.types.is_boolean(found.toArrow().schema.field("flag").type)
