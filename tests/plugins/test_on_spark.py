"""Plug-ins in Spark tasks: they run there, and their code decides which runs are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from outside import SHOUT
from pyspark.sql import SparkSession

from earshot.cli import earshot
from earshot.pipeline.campaigns.campaigns import Run, read_campaign
from earshot.pipeline.campaigns.sweeps import sweep
from earshot.pipeline.lake.lake import Lake
from earshot.simulation import load_scenario

pytestmark = pytest.mark.spark

SMALL = {"duration_s": 30, "warm_up_s": 5, "cool_down_s": 5, "medium.kind": "unit-disk"}


def sends(lake: Lake, run: str) -> int:
    return lake.read("log", run=run).where("kind = 'send'").count()


def test_changed_code_is_another_run_and_runs_in_the_same_workers(spark: SparkSession, tmp_path: Path) -> None:
    lake, city = Lake(spark, tmp_path / "lake"), load_scenario("city").with_(**SMALL)
    file = tmp_path / "shout.py"
    file.write_text(SHOUT)
    name = f"{file}:Shout"
    from earshot.protocols import protocol

    protocol(name)
    (first,) = sweep(lake, "shouts", [Run(city, name)])
    assert (first.status, first.error, first.protocol) == ("done", None, name)
    (again,) = sweep(lake, "shouts", [Run(city, name)])
    assert again == first
    twice = "        self.broadcast(Shouted(event, 1))\n"
    file.write_text(SHOUT.replace(twice, twice + twice))
    protocol(name)
    (changed,) = sweep(lake, "shouts", [Run(city, name)])
    assert changed.run != first.run
    assert sends(lake, changed.run) == 2 * sends(lake, first.run) > 0


@pytest.mark.usefixtures("spark")
def test_a_campaign_names_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "shout.py").write_text(SHOUT)
    campaign = tmp_path / "mine" / "campaign.toml"
    campaign.write_text(
        'scenarios = ["city"]\nprotocols = ["./shout.py:Shout", "flooding"]\nseeds = 1\n'
        '[set]\nduration_s = 30\nwarm_up_s = 5\ncool_down_s = 5\n[settings."./shout.py:Shout"]\ndelay_s = [0.0, 0.1]\n'
    )
    assert {run.protocol for run in read_campaign(campaign).runs} == {f"{tmp_path}/mine/shout.py:Shout", "flooding"}
    done = CliRunner().invoke(earshot, ["sweep", str(campaign), "--lake", str(tmp_path / "lake"), "--json"])
    assert done.exit_code == 0, done.output
    assert [one["status"] for one in json.loads(done.stdout)["runs"]] == ["done"] * 3
