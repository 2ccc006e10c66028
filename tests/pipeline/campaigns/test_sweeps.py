"""Sweeps on Spark, as people call them: each value of a swept key is a point of its own, and nothing is averaged
but seeds."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from earshot.cli import earshot
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.library import load_scenario

pytestmark = pytest.mark.spark

SHORT = {"duration_s": 12, "warm_up_s": 2, "cool_down_s": 2, "nodes.walker.count": 20, "nodes.sign.count": 10}
RANGES_M, COUNTS, SEEDS = (80, 160, 250), (30, 70), (0, 1)
"160 m and 70 cars are the city's own: such a point changes one key less."


def call(*arguments: str) -> Result:
    return CliRunner().invoke(earshot, list(arguments), catch_exceptions=False, standalone_mode=False)


def simulated_alone(range_m: float, count: int) -> list[float]:
    """The delivery ratio of each seed by the simulator's own summary, without lake, oracle and Spark."""
    scenario = load_scenario("city").with_({"medium.range_m": range_m, "nodes.car.count": count, **SHORT})
    ratios = [summarise(scenario, run(scenario, "flooding", {}, seed)).delivery_ratio for seed in SEEDS]
    return [ratio for ratio in ratios if ratio is not None]


def test_a_sweep_shows_a_point_for_each_value_equal_to_separate_runs(spark: SparkSession, tmp_path: Path) -> None:
    del spark  # the command finds the session that runs
    campaign = tmp_path / "campaign.toml"
    short = "\n".join(f'"{key}" = {value}' for key, value in SHORT.items())
    campaign.write_text(
        f"""
        scenarios = ["city"]
        protocols = ["flooding"]
        seeds = {len(SEEDS)}
        [set]
        "medium.range_m" = {list(RANGES_M)}
        "nodes.car.count" = {list(COUNTS)}
        {short}
        """
    )
    lake = str(tmp_path / "lake")
    reported = json.loads(call("sweep", str(campaign), "--lake", lake, "--json").stdout)
    (chart,) = (one for one in reported["charts"] if one["axis"] == "medium.range_m")
    shown = {
        (point["value"], line["fixed"]["nodes.car.count"]): point["metrics"]["delivery_ratio"]
        for line in chart["lines"]
        for point in line["points"]
    }
    assert shown.keys() == {(range_m, count) for range_m in RANGES_M for count in COUNTS}
    assert len(chart["lines"]) == len(COUNTS)
    assert len(reported["rankings"]) == 6
    for (range_m, count), figure in shown.items():
        assert figure == pytest.approx(interval(simulated_alone(range_m, count)))
    table = call("sweep", str(campaign), "--lake", lake).stdout
    lines = [line.split() for line in table.splitlines() if " flooding " in line]
    assert [(line[0], line[1]) for line in lines if line[0].isdigit()] == [
        (str(range_m), str(count)) for range_m in RANGES_M for count in COUNTS
    ]
    assert max(len(line) for line in table.splitlines() if lake not in line) <= 100


def interval(values: list[float]) -> dict[str, Any]:
    """What the leaderboard should say of these seeds."""
    from scipy import stats

    error = float(stats.sem(values))
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=error) if error else (values[0],) * 2
    return {"mean": np.mean(values), "low": max(0.0, low), "high": min(1.0, high), "seeds": len(values)}


def test_two_comparisons_with_other_keys_in_one_lake_are_two_rows(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    lake = str(tmp_path / "lake")
    changes = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
    for range_m in (80, 160):
        done = call("compare", "city", "--protocols", "flooding", "--seeds", "2", *changes, "--lake", lake,
                    "--set", f"medium.range_m={range_m}", "--report", str(tmp_path / "page.html"))  # fmt: skip
        assert done.stdout.startswith("flooding delivers ")
    rankings = json.loads(call("report", lake, "--json").stdout)["rankings"]
    assert [(one["keys"]["medium.range_m"], len(one["rows"])) for one in rankings] == [(80, 1), (160, 1)]
    lines = list(csv.DictReader(io.StringIO(call("report", lake, "--csv").stdout)))
    whole = [line for line in lines if line["metric"] == "delivery_ratio" and not line["event_type"]]
    assert [json.loads(line["keys"])["medium.range_m"] for line in whole] == [80, 160]
