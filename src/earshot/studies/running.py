"""Running a study: its cases one Spark task each, finished ones kept and reused."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.errors import EarshotError
from earshot.pipeline.campaigns.campaigns import code_digest
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.studies.study import Case, Experiment, Row, Study

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int, int], None]
"Called with how many cases are done, are left and have failed."


class CaseFailed(EarshotError):
    """An experiment raised; the message says which case, so that it can be repeated."""


@dataclass(frozen=True)
class _Job:
    """One case, on its way to an executor."""

    measure: Callable[[Case], Sequence[Row]]
    case: dict[str, Any]
    kept_at: str


def run_study(
    spark: SparkSession, study: Study, folder: Path, quick: bool = False, progress: Progress | None = None
) -> dict[str, list[Row]]:
    """All rows of the study by experiment; each row holds its case's parameters too.

    `folder` is the lake's place for results, one small file a finished case, made whole or not at
    all, so a run that was stopped goes on where it was.
    """
    code = f"{code_digest()} {_own_code(study)}"
    jobs = [
        (experiment, _Job(experiment.measure, dict(case), str(_kept(folder, study, experiment, case, code))))
        for experiment in study.experiments
        for case in (experiment.quick if quick else experiment.cases)
    ]
    missing = [job for _, job in jobs if not Path(job.kept_at).exists()]

    waiting = missing

    def show() -> None:
        nonlocal waiting
        if progress is not None:
            waiting = [job for job in waiting if not os.path.exists(job.kept_at)]
            progress(len(jobs) - len(waiting), len(waiting), 0)

    answers = each_in_a_task(spark, missing, _measure, show)
    show()
    for job, answer in zip(missing, answers, strict=True):
        told = json.loads(answer)
        if told["error"]:
            raise CaseFailed(f"{study.name}: the case {job.case} failed:\n{told['error']}")
        _keep(Path(job.kept_at), told["rows"])
    rows: dict[str, list[Row]] = {experiment.name: [] for experiment in study.experiments}
    for experiment, job in jobs:
        measured: list[Mapping[str, Any]] = json.loads(Path(job.kept_at).read_text("utf-8"))
        rows[experiment.name] += [{**job.case, **row} for row in measured]
    return rows


def _kept(folder: Path, study: Study, experiment: Experiment, case: Case, code: str) -> Path:
    return folder / study.name / experiment.name / f"{experiment.case_id(case, code)}.json"


def _own_code(study: Study) -> str:
    """The code of the modules whose functions measure: a changed experiment runs again."""
    modules = sorted({experiment.measure.__module__ for experiment in study.experiments})
    text = "".join(inspect.getsource(sys.modules[module]) for module in modules)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _measure(job: _Job) -> str:
    """In a Spark task: measure one case; its rows, or its error, come back as text.

    They are also kept from here, so that a study that is stopped has lost nothing that was finished;
    an executor that does not share the driver's disk keeps them for itself, and the driver does it again.
    """
    try:
        rows = [dict(row) for row in job.measure(job.case)]
        answer = json.dumps({"error": "", "rows": rows})
    except Exception:
        return json.dumps({"error": traceback.format_exc(), "rows": []})
    with contextlib.suppress(OSError):
        _keep(Path(job.kept_at), rows)
    return answer


def _keep(kept_at: Path, rows: Sequence[Row]) -> None:
    if kept_at.exists():
        return
    kept_at.parent.mkdir(parents=True, exist_ok=True)
    draft = kept_at.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(json.dumps(rows), "utf-8")
    draft.replace(kept_at)
