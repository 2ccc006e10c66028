"""From a scenario to its leaderboard, on Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from earshot.cli import earshot
from earshot.pipeline.campaigns.campaigns import Run, campaign
from earshot.pipeline.campaigns.flow import (
    ask_oracle,
    draw_workloads,
    lake_leaderboard,
    measure,
    run_campaign,
)
from earshot.pipeline.campaigns.sweeps import sweep
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.oracle.why import ask_why
from earshot.pipeline.reports.report import write_report
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario

pytestmark = pytest.mark.spark

SMALL = {"duration_s": 30, "warm_up_s": 5, "cool_down_s": 5, "medium.kind": "unit-disk"}
"A short run over a radio that loses nothing."


@pytest.fixture(scope="module")
def city() -> Scenario:
    return load_scenario("city").with_(**SMALL)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, city: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with two seeds of two protocols, measured."""
    lake = Lake(spark, tmp_path_factory.mktemp("flow") / "lake")
    seen: list[tuple[int, int, int, str]] = []
    wanted = campaign("small", [city], {"flooding": {}, "gossip": {}}, [0, 1], [load_scenario("city")])
    outcomes = run_campaign(lake, wanted, progress=lambda *counts: seen.append(counts))
    assert [outcome.status for outcome in outcomes] == ["done"] * 4
    assert seen[-1][:3] == (4, 0, 0)
    return lake


def test_an_ideal_flood_delivers_exactly_what_the_oracle_expects(lake: Lake) -> None:
    flooding = next(row for row in lake_leaderboard(lake).rows if row.protocol == "flooding")
    assert flooding.figures["expected"].mean > 50
    assert flooding.figures["delivery_ratio"].mean == 1.0
    assert flooding.figures["precision"].mean == 1.0


def test_the_lakes_oracle_agrees_with_the_simulators_own(lake: Lake, city: Scenario) -> None:
    from earshot.simulation.engine.run import run
    from earshot.simulation.engine.summary import summarise

    for seed in (0, 1):
        summary = summarise(city, run(city, "flooding", {}, seed))
        workload = Run(city, "flooding", {}, seed).workload
        rows = lake.read("expected", workload=workload).select("event", "node").distinct()
        assert rows.count() == summary.expected


def test_finished_runs_are_not_run_again(lake: Lake, city: Scenario) -> None:
    runs = campaign("small", [city], {"flooding": {}, "gossip": {}}, [0, 1]).runs
    before = {row["run"]: row["took_s"] for row in lake.read("runs").collect()}
    outcomes = sweep(lake, "again", runs)
    assert {outcome.run: outcome.took_s for outcome in outcomes} == before


def test_rerunning_a_stage_gives_equal_tables(lake: Lake, city: Scenario) -> None:
    runs = [Run(city, "flooding", {}, 0), Run(city, "gossip", {}, 0)]

    def content(table: str) -> list[tuple[object, ...]]:
        return sorted((tuple(row) for row in lake.read(table).collect()), key=repr)

    before = {table: content(table) for table in ("expected", "metrics", "events", "subscriptions")}
    lake.drop("events", workload=runs[0].workload)
    draw_workloads(lake, runs)
    ask_oracle(lake, [run.workload for run in runs], again=True)
    measure(lake, [run.id for run in runs], again=True)
    assert {table: content(table) for table in before} == before


def test_a_run_that_fails_is_a_row_with_its_error(lake: Lake, city: Scenario) -> None:
    # A campaign would refuse the setting; a run that is made by hand fails in its task.
    outcomes = sweep(lake, "broken", [Run(city, "flooding", {"nobody": 1}), Run(city, "flooding")])
    by_status = {outcome.status: outcome for outcome in outcomes}
    assert by_status["failed"].error == "nobody: no such key; there are: hop_limit, jitter_s, lifespan_s, memory"
    assert "Traceback" in (by_status["failed"].traceback or "")
    row = lake.read("runs").where("status = 'failed'").collect()[0]
    assert row["error"] == by_status["failed"].error
    lake.drop("runs", run=by_status["failed"].run)


def test_a_run_whose_scenario_cannot_be_restored_is_a_failed_row_too(lake: Lake, city: Scenario) -> None:
    broken = city.with_(**{"nodes.car.count": 3, "faults.crashes": [{"node": "car-0", "time_s": 1}]})
    msgspec.structs.force_setattr(broken.faults.crashes[0], "node", "nobody")
    outcomes = sweep(lake, "broken", [Run(broken, "flooding"), Run(city, "flooding")])
    by_status = {outcome.status: outcome for outcome in outcomes}
    assert "nobody" in (by_status["failed"].error or "")
    lake.drop("runs", run=by_status["failed"].run)


def test_why_tells_the_path_of_a_delivery(lake: Lake, city: Scenario) -> None:
    run = Run(city, "flooding", {}, 0)
    pair = lake.read("expected", workload=run.workload).orderBy("event", "node").first()
    assert pair is not None
    answer = ask_why(lake.arrow, run.id[:8], pair["event"], pair["node"])
    assert (answer.expected, answer.delivered, answer.losses) == (True, True, [])
    source = pair["event"].rpartition("-")[0]
    assert (answer.path[0].sender, answer.path[-1].receiver) == (source, pair["node"])
    for before, after in zip(answer.path, answer.path[1:], strict=False):
        assert before.receiver == after.sender
        assert before.time < after.time


def call(*arguments: str) -> Result:
    return CliRunner().invoke(earshot, list(arguments), catch_exceptions=False, standalone_mode=False)


def test_compare_prints_the_leaderboard_and_writes_a_report(lake: Lake, city: Scenario, tmp_path: Path) -> None:
    changes = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    page = tmp_path / "report.html"
    done = call("compare", "city", "--protocols", "flooding,gossip", "--seeds", "2", *changes,
                "--lake", lake.name, "--report", str(page), "--json")  # fmt: skip
    board = json.loads(done.stdout)["rankings"][0]
    assert sorted(row["protocol"] for row in board["rows"]) == ["flooding", "gossip"]
    assert board["rows"][0]["metrics"]["delivery_ratio"]["seeds"] == 2
    assert board["verdict"]["seeds"] == 2
    assert board["keys"].items() >= {"duration_s": 30, "warm_up_s": 5}.items(), "what differs from the city"
    assert "cool_down_s" not in board["keys"], "it is the city's own"
    assert board["network"] == Run(city, "flooding").network
    html = page.read_text()
    assert 'data-name="flooding"' in html
    assert "http" not in html, "the page asks for nothing from outside"


def test_why_on_the_command_line(lake: Lake, city: Scenario) -> None:
    run = Run(city, "flooding", {}, 0)
    pair = lake.read("expected", workload=run.workload).first()
    assert pair is not None
    reported = json.loads(call("why", run.id, pair["event"], pair["node"], "--lake", lake.name, "--json").stdout)
    assert (reported["expected"], reported["delivered"]) == (True, True)


def test_the_report_leads_to_a_replay_of_each_run(lake: Lake, tmp_path: Path) -> None:
    report = write_report(lake, tmp_path / "the report.html")
    links = dict(re.findall(r'data-sort="([0-9a-f]{16})".*?<a href="([^"]+)">replay</a>', report.read_text(), re.S))
    runs = {row["run"]: row["seed"] for row in lake.read("runs").where("status = 'done'").collect()}
    assert links.keys() == runs.keys()
    files = sorted(path.name for path in (tmp_path / "the report-replays").iterdir())
    assert [re.sub("-[0-9a-f]{8}[.]", ".", name) for name in files] == ["city-seed-0.html", "city-seed-1.html"]
    for run, link in links.items():
        path, _, choice = unquote(link).partition("#")
        assert choice == f"run={run}"
        assert f"seed-{runs[run]}" in path
        assert (tmp_path / path).is_file()
