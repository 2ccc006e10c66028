"""A sweep of 64 runs on Spark local[2] against the same runs in a plain loop.

    python benchmarks/pipeline_sweep.py [--quick]

Both simulate the same runs and stream the same logs to Parquet files; session start is not counted.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from earshot.pipeline.campaigns import Run, campaign
from earshot.pipeline.lake import Lake
from earshot.pipeline.session import spark_session
from earshot.pipeline.sweeps import sweep
from earshot.simulation.library import load_scenario
from earshot.simulation.log import Log
from earshot.simulation.run import run


def plain_loop(runs: list[Run], folder: Path) -> float:
    started = time.perf_counter()
    for one in runs:
        with Log(folder / f"{one.id}.parquet") as log:
            run(one.scenario, one.protocol, one.settings, one.seed, log)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="16 runs instead of 64")
    count = 16 if parser.parse_args().quick else 64
    scenario = load_scenario("city")
    runs = list(campaign("benchmark", [scenario], {"flooding": {}, "gossip": {}}, range(count // 2)).runs)
    spark = spark_session("local[2]")
    with TemporaryDirectory() as folder:
        warm = Lake(spark, Path(folder) / "warm")
        sweep(warm, "warm", list(campaign("warm", [scenario], {"flooding": {}}, [10_001, 10_002]).runs))
        started = time.perf_counter()
        outcomes = sweep(Lake(spark, Path(folder) / "lake"), "benchmark", runs)
        ours = time.perf_counter() - started
        assert [outcome.status for outcome in outcomes] == ["done"] * count
        plain = plain_loop(runs, Path(folder))
    print("runs   plain loop (s)   local[2] (s)   ratio")
    print(f"{count:>4}  {plain:>15.2f}  {ours:>13.2f}  {plain / ours:>6.2f}")


if __name__ == "__main__":
    main()
