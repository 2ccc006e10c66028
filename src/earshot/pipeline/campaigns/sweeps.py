"""Sweeps: a campaign's runs, one Spark task each, into `runs` and `log`.

A task simulates its run, streams the log to a file and commits it to the lake itself, so that what
is finished stays finished: Ctrl-C, a lost worker or a full disk costs only the runs that were not
finished. A run that raises is a row with its error and traceback. A run whose id is in the lake as
done is not run again.
"""

from __future__ import annotations

import json
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from earshot.pipeline.campaigns.campaigns import Run
from earshot.pipeline.lake.task_commits import TaskCommits
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

Progress = Callable[[int, int, int], None]
"Called with how many runs are done, are left and have failed."


@dataclass(frozen=True)
class Outcome:
    """One row of `runs`."""

    run: str
    campaign: str
    scenario: str
    point: str
    network: str
    range_m: float
    changed: str
    base: str
    trace: str
    window: str
    workload: str
    protocol: str
    variant: str
    settings: str
    seed: int
    duration_s: float
    warm_up_s: float
    status: str
    error: str | None
    traceback: str | None
    took_s: float


def sweep(lake: Lake, campaign: str, runs: Sequence[Run], progress: Progress | None = None) -> list[Outcome]:
    """Run what the lake does not have yet; the outcome of every run of the campaign, old or new."""
    runs = list({one.id: one for one in runs}.values())
    kept = _kept(lake, {one.id for one in runs})
    missing = [one for one in runs if one.id not in kept]
    with lake.task_commits() as commits:

        def show() -> None:
            if progress is not None:
                finished = [one for one in missing if commits.has("runs", run=one.id)]
                failed = sum(not commits.has("log", run=one.id) for one in finished)
                progress(len(kept) + len(finished) - failed, len(missing) - len(finished), failed)

        items = [(_planned(campaign, one), pickle.dumps(replace(one, named=None))) for one in missing]
        answers = each_in_a_task(lake.session, items, _Simulation(commits), show)
        show()
    new = [Outcome(**json.loads(answer)) for answer in answers]
    return [*kept.values(), *new]


def _kept(lake: Lake, wanted: set[str]) -> dict[str, Outcome]:
    """The runs that are in the lake and need not run again: those that did not fail."""
    there = {partition["run"] for partition in lake.partitions("runs")} & wanted
    if not there:
        return {}
    names = list(Outcome.__dataclass_fields__)
    rows = lake.read("runs").where("status = 'done'").select(*names).collect()
    return {row["run"]: Outcome(*row) for row in rows if row["run"] in there}


class _Simulation:
    """What a task does with one run; it is sent to the executors.

    The run travels as bytes and is restored where errors become rows: restoring a scenario reads its files
    again, and on an executor one may be missing.
    """

    def __init__(self, commits: TaskCommits) -> None:
        self.commits = commits

    def __call__(self, item: tuple[Outcome, bytes]) -> str:
        planned, packed = item
        started = time.perf_counter()
        status, error, trace = "done", None, None
        with self.commits.draft() as folder:
            try:
                one: Run = pickle.loads(packed)
                with Log(folder / "part-0.parquet") as log:
                    run(one.scenario, one.protocol, one.settings, one.seed, log)
            except Exception as failure:
                status, error, trace = "failed", f"{type(failure).__name__}: {failure}", traceback.format_exc()
            else:
                self.commits.commit("log", folder, run=planned.run)
        took_s = time.perf_counter() - started
        outcome = replace(planned, status=status, error=error, traceback=trace, took_s=took_s)
        self.commits.commit_rows("runs", [asdict(outcome)], run=planned.run)
        return json.dumps(asdict(outcome))


def _planned(campaign: str, one: Run) -> Outcome:
    """The row of a run before it has run."""
    changed, base = one.changes
    return Outcome(
        run=one.id,
        campaign=campaign,
        scenario=one.scenario.name,
        point=one.point,
        network=one.network,
        range_m=one.range_m,
        changed=json.dumps(changed, sort_keys=True),
        base=json.dumps(base, sort_keys=True),
        trace=one.trace,
        window=one.window,
        workload=one.workload,
        protocol=one.protocol,
        variant=one.variant,
        settings=json.dumps(dict(one.settings), sort_keys=True),
        seed=one.seed,
        duration_s=one.scenario.duration_s,
        warm_up_s=one.scenario.warm_up_s,
        status="planned",
        error=None,
        traceback=None,
        took_s=0.0,
    )
