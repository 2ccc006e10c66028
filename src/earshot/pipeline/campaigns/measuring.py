"""Measuring the runs of a lake: one Spark task a run, which reads the run's own files piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from earshot.pipeline.campaigns.run_figures import Row, figures_of, figures_table
from earshot.pipeline.campaigns.run_pairs import READ, asked_rows, condensed, condensed_log
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.spark.tasks import each_in_a_task

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

RUNS_A_COMMIT = 64
"The driver holds the metrics of at most this number of runs at once."


@dataclass(frozen=True, slots=True)
class _FinishedRun:
    run: str
    workload: str
    range_m: float | None
    warm_up_s: float


class _Measuring:
    """What a task does with one run; it is sent to the executors."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def __call__(self, one: _FinishedRun) -> str:
        lake = ArrowLake(self.folder)
        log = condensed_log(lake.batches("log", READ, run=one.run), one.warm_up_s)
        if not log.num_rows:
            return "[]"
        expected = lake.read("expected", workload=one.workload)
        reachable = None
        if one.range_m is not None:
            reachable = lake.read("reachable", workload=one.workload, range_m=one.range_m)
        records = condensed([log, asked_rows(expected, reachable)])
        return msgspec.json.encode(list(figures_of(records))).decode()


def measure_runs(lake: Lake, runs: Sequence[str]) -> None:
    """`metrics` of those runs that are done, in place of what the lake has of them."""
    rows = lake.arrow.read("runs").select([*_FinishedRun.__dataclass_fields__, "status"])
    chosen = pc.and_(pc.equal(rows.column("status"), "done"), pc.is_in(rows.column("run"), pa.array(runs, pa.string())))
    done = [_FinishedRun(**row) for row in rows.filter(chosen).drop_columns("status").to_pylist()]
    for workload in dict.fromkeys(one.workload for one in done):
        if not lake.has("expected", workload=workload):
            lake.read("expected", workload=workload)  # raises an error that says what to do
    lake.check_shared()
    for first in range(0, len(done), RUNS_A_COMMIT):
        some = done[first : first + RUNS_A_COMMIT]
        answers = each_in_a_task(lake.session, some, _Measuring(lake.folder))
        tables = [
            figures_table(one.run, msgspec.json.decode(answer, type=list[Row]))
            for one, answer in zip(some, answers, strict=True)
        ]
        lake.arrow.write_table(pa.concat_tables(tables), "metrics")
