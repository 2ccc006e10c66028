"""Sweeps: a campaign's runs, one Spark task each, into `runs` and `log`.

A task simulates its run, streams the log to a file in the lake and leaves a receipt: the row of the run and
what it wrote. While the tasks run, the driver commits the runs that have a receipt, many at a time, so that
what is finished stays finished: Ctrl-C, a lost worker or a full disk costs only the runs that were not
finished. A run that raises is a row with its error and traceback. A run whose id is in the lake as done is
not run again.
"""

from __future__ import annotations

import json
import pickle
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from earshot.errors import RunTooSlow, UsageError
from earshot.pipeline.campaigns.campaigns import Run
from earshot.pipeline.lake.data_files import DataFile, DataFiles
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

Progress = Callable[[int, int, int, str], None]
"Called with how many runs are done, are left and have failed, and in words which protocols are slow."
SLOW = 3.0
"A protocol is called slow where its runs take this multiple of the median protocol's time."
COMMIT_EVERY_S = 2.0
"The least time between two commits. Over a long sweep it grows to a twentieth of the time so far: few commits."


@dataclass(frozen=True)
class Outcome:
    """One row of `runs`."""

    run: str
    campaign: str
    scenario: str
    point: str
    network: str
    assumes: str
    range_m: float | None
    "Of its radios; None of live runs, where nobody knows it."
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
    "By the clock."
    processor_s: float | None = None
    "None in rows of older versions."


def sweep(
    lake: Lake, campaign: str, runs: Sequence[Run], progress: Progress | None = None, most_s: float | None = None
) -> list[Outcome]:
    """Run what the lake does not have yet; the outcome of every run of the campaign, old or new. A run that takes
    more than `most_s` of processor time fails with `RunTooSlow`."""
    runs = list({one.id: one for one in runs}.values())
    kept = _kept(lake, {one.id for one in runs})
    missing = [one for one in runs if one.id not in kept]
    lake.check_shared()
    receipts = _Receipts(lake, f"_receipts/{uuid.uuid4().hex}")

    def show() -> None:
        receipts.commit_some()
        if progress is not None:
            failed = sum(one.status == "failed" for one in receipts.outcomes.values())
            done, left = len(kept) + len(receipts.outcomes) - failed, len(missing) - len(receipts.outcomes)
            progress(done, left, failed, slow_words(receipts.outcomes.values()))

    items = [(_planned(campaign, one), pickle.dumps(replace(one, named=None))) for one in missing]
    try:
        each_in_a_task(lake.session, items, partial(_simulate, lake.arrow.files, receipts.path, most_s), show)
    finally:
        receipts.commit()
        lake.folder.delete(receipts.path)
    show()
    return [*kept.values(), *(receipts.outcomes[one.id] for one in missing)]


def slow_words(outcomes: Iterable[Outcome]) -> str:
    """Which protocols take much longer than the others, and how long; empty where none does."""
    times: dict[str, list[float]] = {}
    for one in outcomes:
        times.setdefault(one.protocol, []).append(one.took_s)
    means = {name: sum(some) / len(some) for name, some in times.items()}
    usual_s = median(means.values()) if means else 0.0
    slow = sorted((mean, name) for name, mean in means.items() if mean > max(1.0, SLOW * usual_s))
    return "slow: " + ", ".join(f"{name} {mean:.0f} s a run" for mean, name in reversed(slow)) if slow else ""


class _Receipts:
    """What the tasks of a sweep have finished, and the commits of it."""

    def __init__(self, lake: Lake, path: str) -> None:
        self.lake = lake
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        "The runs that are committed."
        self._started = self._committed_at = time.monotonic()

    def commit_some(self) -> None:
        """Commit what is finished, if the last commit is long enough ago."""
        now = time.monotonic()
        if now - self._committed_at >= max(COMMIT_EVERY_S, (now - self._started) / 20.0):
            self.commit()

    def commit(self) -> None:
        """Commit what is finished: first the logs, then the rows of the runs."""
        outcomes, logs = [], []
        for path in self.lake.folder.files(self.path):
            name, _, ending = path.rpartition("/")[2].partition(".")
            content = self.lake.folder.read(path) if ending == "json" and name not in self.outcomes else None
            if content is not None:
                receipt = json.loads(content)
                outcomes.append(Outcome(**receipt["outcome"]))
                logs += [DataFile(**receipt["log"])] if receipt["log"] else []
        if outcomes:
            self.lake.arrow.commit(logs)
            self.lake.arrow.write_rows("runs", [asdict(one) for one in outcomes])
        self.outcomes |= {one.run: one for one in outcomes}
        self._committed_at = time.monotonic()


def outcomes_in(lake: Lake, status: str) -> list[Outcome]:
    """The runs in the lake with that status."""
    rows = lake.arrow.read("runs")
    some = rows.filter(pc.equal(rows.column("status"), status)).select(list(Outcome.__dataclass_fields__))
    return [Outcome(**row) for row in some.to_pylist()]


def _kept(lake: Lake, wanted: set[str]) -> dict[str, Outcome]:
    """The runs that are in the lake and need not run again: those that did not fail."""
    return {one.run: one for one in outcomes_in(lake, "done") if one.run in wanted}


def _simulate(files: DataFiles, receipts: str, most_s: float | None, item: tuple[Outcome, bytes]) -> str:
    """In a task: simulate one run.

    The run travels as bytes and is restored where errors become rows: restoring a scenario reads its files
    again, and on an executor one may be missing.
    """
    planned, packed = item
    started, processor_started = time.perf_counter(), time.process_time()
    status, error, trace, log_file = "done", None, None, None
    try:
        one: Run = pickle.loads(packed)
        with files.draft("log", run=planned.run) as draft, Log(draft.path) as log:
            run(one.scenario, one.protocol, one.settings, one.seed, log, _limit(most_s))
        log_file = draft.file
    except Exception as failure:
        # What a user can correct says so in a sentence; of anything else the kind may be all that helps.
        words = str(failure) if isinstance(failure, UsageError) else f"{type(failure).__name__}: {failure}"
        status, error, trace = "failed", words, traceback.format_exc()
    took_s = time.perf_counter() - started
    processor_s = time.process_time() - processor_started
    outcome = replace(planned, status=status, error=error, traceback=trace, took_s=took_s, processor_s=processor_s)
    receipt = {"outcome": asdict(outcome), "log": asdict(log_file) if log_file else None}
    files.folder.write(f"{receipts}/{planned.run}.json", json.dumps(receipt).encode())
    return planned.run


def _limit(most_s: float | None) -> Callable[[float], None] | None:
    """Ends a run that takes too much processor time."""
    if most_s is None:
        return None
    ends_at = time.process_time() + most_s

    def check(now_s: float) -> None:
        if time.process_time() > ends_at:
            raise RunTooSlow(f"stopped at {now_s:.3g} s after {most_s:.3g} s of processor time")

    return check


def _planned(campaign: str, one: Run) -> Outcome:
    """The row of a run before it has run."""
    changed, base = one.changes
    return Outcome(
        run=one.id,
        campaign=campaign,
        scenario=one.scenario.name,
        point=one.point,
        network=one.network,
        assumes=one.assumes,
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
