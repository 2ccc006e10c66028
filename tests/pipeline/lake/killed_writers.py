"""Writers that are killed at random moments while others write and the caller reads.

    killed_writers.py LAKE KILLS SEED

Each writer replaces whole partitions of `events` (several files a commit) and rows of the clustered `runs`, one
generation after the other. Every partition of a generation has the same rows, so a reader can tell whether it
is whole. Writers are forked from this process, which itself never commits: a fork must not inherit delta-rs'
threads. Prints a line for each kill.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterable

import deltalake.exceptions
import deltalake.fs
import deltalake.transaction
import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
import pyarrow.parquet

from earshot.pipeline.lake.arrow_lake import ArrowLake

LOADED_FOR_ALL = (deltalake, pyarrow)
FILES, ROWS, RUNS = 3, 40, 6


def write_for_ever(root: str, writer: int, ready: int) -> None:
    """Generations of this writer, in the partition that both writers replace and in its own. Says when the first is
    there: what comes before would be killed too often."""
    lake = ArrowLake(root)
    generation = 0
    while True:
        generation += 1
        name = f"{writer}.{os.getpid()}.{generation}"
        for workload in ("shared", f"own-{writer}"):
            rows = [{"event": name} for _ in range(ROWS)]
            lake.commit([lake.files.write_rows("events", rows, workload=workload) for _ in range(FILES)])
        runs = [f"shared-{number}" for number in range(RUNS)] + [f"own-{writer}-{number}" for number in range(RUNS)]
        lake.write_rows("runs", [{"run": run, "campaign": name} for run in runs])
        if generation == 1:
            os.write(ready, b"1")


def broken_parts(events: pa.Table, runs: pa.Table, seen: set[str]) -> list[str]:
    """What a reader would not see if every commit were whole. `seen` is what it saw before: that never goes away."""
    problems = []
    there = zip(events["workload"].to_pylist(), events["event"].to_pylist(), strict=True)
    by_run = zip(runs["run"].to_pylist(), runs["campaign"].to_pylist(), strict=True)
    groups: dict[str, list[str]] = {}
    for name, generation in (*((f"events {one}", generation) for one, generation in there), *_grouped(by_run)):
        groups.setdefault(name, []).append(generation)
    for name, generations in groups.items():
        rows = FILES * ROWS if name.startswith("events") else RUNS
        if len(generations) != rows or len(set(generations)) != 1:
            problems.append(f"{name}: {len(generations)} rows of {sorted(set(generations))}")
    problems += [f"{name} is gone" for name in seen - groups.keys()]
    seen.update(groups)
    return problems


def _grouped(by_run: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"runs {run.rpartition('-')[0]}", generation) for run, generation in by_run]


def main(root: str, kills: int, seed: int) -> None:
    draw = random.Random(seed)

    def start(writer: int) -> tuple[int, int]:
        stated, ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(root, writer, ready)
            finally:
                os._exit(1)
        os.close(ready)
        return child, stated

    def end(child: int, stated: int) -> None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(stated)
        assert os.WIFSIGNALED(status), f"the writer ended by itself: {status}"

    children = [start(0), start(1)]
    for kill in range(kills):
        victim = draw.randrange(2)
        assert os.read(children[victim][1], 1) == b"1", "a writer ended by itself"
        time.sleep(draw.uniform(0.0, 0.1))
        end(*children[victim])
        print(kill, flush=True)
        children[victim] = start(victim)
    for child in children:
        end(*child)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
