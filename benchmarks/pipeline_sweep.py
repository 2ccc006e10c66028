"""A sweep of 64 runs on Spark local[2] against the same runs in a plain loop.

Both simulate the same runs and stream the same logs to Parquet files; session start is not counted.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from earshot.pipeline.campaigns.campaigns import Run, campaign
from earshot.pipeline.campaigns.sweeps import sweep
from earshot.pipeline.lake.lake import Lake
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario


def plain_loop(runs: list[Run], folder: Path) -> float:
    started = time.perf_counter()
    for one in runs:
        with Log(folder / f"{one.id}.parquet") as log:
            run(one.scenario, one.protocol, one.settings, one.seed, log)
    return time.perf_counter() - started


def measure(spark: SparkSession, quick: bool) -> None:
    count = 16 if quick else 64
    scenario = load_scenario("city")
    runs = list(campaign("benchmark", [scenario], {"flooding": {}, "gossip": {}}, range(count // 2)).runs)
    with TemporaryDirectory() as folder:
        warm = Lake(spark, Path(folder) / "warm")
        sweep(warm, "warm", list(campaign("warm", [scenario], {"flooding": {}}, [10_001, 10_002]).runs))
        started = time.perf_counter()
        outcomes = sweep(Lake(spark, Path(folder) / "lake"), "benchmark", runs)
        ours = time.perf_counter() - started
        assert [outcome.status for outcome in outcomes] == ["done"] * count
        plain = plain_loop(runs, Path(folder))
    print("\na sweep (asked: 1.7 x a plain loop)")
    print("runs   plain loop (s)   local[2] (s)   ratio")
    print(f"{count:>4}  {plain:>15.2f}  {ours:>13.2f}  {plain / ours:>5.2f}x", flush=True)
