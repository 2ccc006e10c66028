"""Running a study: one Spark task per case, finished cases kept and reused; and the report of its claims."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import math
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.errors import EarshotError, UsageError
from earshot.pipeline.campaigns.campaigns import code_digest
from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.reports.charts import ChartLine, Measure, line_chart
from earshot.pipeline.reports.page import PageFigure, PageSection, PageTable, ReportPage
from earshot.pipeline.reports.svg import Mark, marks_of
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.studies.figures import Row
from earshot.studies.study import RULE, Case, Claim, Finding, Judged, Study, tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int, int], None]
"Called with the number of cases that are done, are left and have failed."


class CaseFailed(EarshotError):
    """An experiment raised an error; the message names the case, so that it can be repeated."""


@dataclass(frozen=True)
class _Job:
    """One case for an executor."""

    experiment: str
    measure: Callable[[Case], Sequence[Row]]
    case: dict[str, Any]
    kept_at: Path


@dataclass(frozen=True)
class StudyRun:
    """What a study measured, and what that took."""

    rows: dict[str, list[Row]]
    "All rows by experiment; each row also holds the parameters of its case."
    cases: int
    processor_s: float
    "Of all cases together, those of earlier runs included."
    quick: bool

    @property
    def origin(self) -> str:
        """What the measurements come from, as one sentence."""
        sizes = "at smaller sizes (`--quick`)" if self.quick else "at the sizes stated on this page"
        return f"From {self.cases:,} cases {sizes}; they took {self.processor_s / 60:,.0f} minutes of processor time."


def run_study(
    spark: SparkSession, study: Study, folder: Path, quick: bool = False, progress: Progress | None = None
) -> StudyRun:
    """Run the cases of the study that have not been run.

    `folder` is where the lake keeps results: one small file per finished case, written atomically, so
    that an interrupted run continues where it stopped.
    """
    # Files from before a case kept its processor time have other names.
    code = f"{code_digest()} {_own_code(study)} processor_s"
    kept = folder / study.name
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {kept}: {error.strerror}; name another folder with --lake") from None
    jobs = [
        _Job(
            experiment.name,
            experiment.measure,
            dict(case),
            kept / experiment.name / f"{experiment.case_id(case, code)}.json",
        )
        for experiment in study.experiments
        for case in (experiment.quick if quick else experiment.cases)
    ]
    waiting = missing = [job for job in jobs if not job.kept_at.exists()]

    def show() -> None:
        nonlocal waiting
        if progress is not None:
            waiting = [job for job in waiting if not job.kept_at.exists()]
            progress(len(jobs) - len(waiting), len(waiting), 0)

    answers = each_in_a_task(spark, missing, _measure, show)
    show()
    for job, answer in zip(missing, answers, strict=True):
        answered = json.loads(answer)
        if answered["error"]:
            raise CaseFailed(f"{study.name}: the case {job.case} failed:\n{answered['error']}")
        _keep(job.kept_at, answer)
    rows: dict[str, list[Row]] = {experiment.name: [] for experiment in study.experiments}
    processor_s = 0.0
    for job in jobs:
        kept_case = json.loads(job.kept_at.read_text("utf-8"))
        rows[job.experiment] += [{**job.case, **row} for row in kept_case["rows"]]
        processor_s += kept_case["processor_s"]
    return StudyRun(rows, len(jobs), processor_s, quick)


def _own_code(study: Study) -> str:
    """A hash of the modules beside the experiments: a changed experiment, or what it uses, runs again. What judges
    the rows or lists the cases does not count."""
    # A decorated function would be found in its decorator's file.
    folders = {Path(inspect.getfile(inspect.unwrap(one.measure))).parent for one in study.experiments}
    sources = sorted(path for folder in folders for path in folder.glob("*.py"))
    decisive = [path for path in sources if path.name != "study.py" and not path.stem.endswith("claims")]
    text = "".join(path.read_text("utf-8") for path in decisive)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _measure(job: _Job) -> str:
    """In a Spark task: measure one case and return its rows and processor time, or its error, as text.

    The task also writes them to the lake, so that an interrupted study keeps its finished cases. If
    the executor does not share the driver's disk, the driver writes them again.
    """
    start = time.process_time()
    try:
        rows = [dict(row) for row in job.measure(job.case)]
        answer = json.dumps({"error": "", "rows": rows, "processor_s": time.process_time() - start})
    except Exception:
        return json.dumps({"error": traceback.format_exc()})
    with contextlib.suppress(OSError):
        _keep(job.kept_at, answer)
    return answer


def _keep(kept_at: Path, answer: str) -> None:
    if kept_at.exists():
        return
    kept_at.parent.mkdir(parents=True, exist_ok=True)
    draft = kept_at.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(answer, "utf-8")
    draft.replace(kept_at)


def studies_report(studies: Sequence[Study], judged: Sequence[Judged], quick: bool) -> ReportPage:
    """The report: for each study a table of claims, and figures with our numbers beside the paper's."""
    sections = [_section(study, [verdict for verdict in judged if verdict.study == study.name]) for study in studies]
    sizes = "smaller sizes of the experiments" if quick else "the papers' own sizes"
    return ReportPage("Earshot: the papers' claims", f"{tally(judged)}; {sizes}", sections)


def _section(study: Study, judged: Sequence[Judged]) -> PageSection:
    pairs = [(verdict.claim, verdict.finding) for verdict in judged]
    rows = [
        (
            *(claim.claim, reading.verdict, reading.reading, claim.where, claim.paper),
            *(reading.measured, reading.seeds, reading.interval_text, reading.bound_text),
            *(reading.reason, claim.fails_if),
        )
        for claim, finding in pairs
        for reading in finding.readings
    ]
    table = PageTable(
        f"claims-{study.name}",
        [
            *("claim", "verdict", "reading", "where", "the paper"),
            *("measured", "seeds", "95 % interval", "bound", "why", "fails if"),
        ],
        rows,
        "Intervals are 95 % confidence intervals over seeds, of the figure that is compared with the bound. "
        f"{RULE} Seeds 0: chance plays no part. Fails if: a change of the protocol by which the claim would fail.",
        more=(3, 4, 10),
        less=(9,),
    )
    marks = marks_of(line.name for _, finding in pairs for line in finding.series)
    figures = [_figure(claim, finding, marks) for claim, finding in pairs if finding.series]
    return PageSection(f"{study.name}: {study.paper}", study.notes, [table, *figures])


def _figure(claim: Claim, finding: Finding, marks: Mapping[str, Mark]) -> PageFigure:
    """A claim's lines; numbers from the paper's text are hollow marks."""
    lines = []
    for series in finding.series:
        low, high = (ends if ends else [math.nan] * len(series.y) for ends in (series.low, series.high))
        figures = [Figure(*figure, 0) for figure in zip(series.y, low, high, strict=True)]
        points = list(zip(series.x, figures, strict=True))
        lines.append(ChartLine(series.name, marks[series.name], points, connected=not series.paper))
    x, y = Measure(claim.x_label, ""), Measure(claim.y_label, "")
    rows = [[line.name, at, figure.mean, figure.low, figure.high] for line in lines for at, figure in line.points]
    return PageFigure(
        claim.claim,
        line_chart(lines, x, y, log_x=claim.log_x),
        keys=[(line.name, line.mark, "" if line.connected else "open") for line in lines],
        table=PageTable(claim.claim, ["line", claim.x_label, claim.y_label, "low", "high"], rows),
    )


# The claims as Markdown, written into the paper's page between two marks: no number in it is copied by hand.


BEGIN, END = "<!-- claims: written by `earshot reproduce --pages` -->", "<!-- end of claims -->"
COLUMNS = ("the paper says", "where", "reading", "measured", "seeds", "95 % interval", "bound", "verdict")


def claims_text(judged: Sequence[Judged], origin: str) -> str:
    """What the table comes from, and one row a reading; then why something does not hold, and what would make the
    claims that hold fail."""
    lines = [
        f"{tally(judged)}. {origin}",
        "",
        _row(COLUMNS),
        _row(["---"] * len(COLUMNS)),
    ]
    reasons, mutations = [], []
    for number, verdict in enumerate(judged, 1):
        claim = verdict.claim
        for place, reading in enumerate(verdict.finding.readings):
            head = (f"{number}. {claim.claim}: {claim.paper}", claim.where) if place == 0 else ("", "")
            seeds = str(reading.seeds) if reading.seeds else "-"
            lines.append(
                _row(
                    [
                        *(*head, reading.reading, reading.measured, seeds),
                        *(reading.interval_text, reading.bound_text, reading.verdict),
                    ]
                )
            )
            if reading.reason:
                reasons.append(f"- {number}, {reading.reading}: {reading.reason}.")
        if claim.fails_if and any(reading.holds for reading in verdict.finding.readings):
            mutations.append(f"- {number} fails if {claim.fails_if}.")
    if reasons:
        lines += ["", "Why:", "", *reasons]
    if mutations:
        lines += ["", "What would make those that hold fail:", "", *mutations]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def pages_of(folder: Path, studies: Iterable[str]) -> dict[str, Path | None]:
    """The page of each study; None for a page without marks, which is left as it is."""
    pages = {name: folder / f"{name}.md" for name in studies}
    found = {name: page if _around_claims(page) else None for name, page in pages.items()}
    if not any(found.values()):
        named = ", ".join(map(str, pages.values()))
        raise UsageError(f"no place for the claims in {named}: write {BEGIN!r} and {END!r} where they belong")
    return found


def write_claims(page: Path, judged: Sequence[Judged], origin: str) -> None:
    """Replace what stands between the page's marks."""
    around = _around_claims(page)
    if around is None:
        raise UsageError(f"{page} has no place for the claims: write {BEGIN!r} and {END!r} where they belong")
    before, after = around
    page.write_text(f"{before}{BEGIN}\n{claims_text(judged, origin)}\n{END}{after}", "utf-8")


def _around_claims(page: Path) -> tuple[str, str] | None:
    """The text before and after the marks; None if the page or one of its marks is missing."""
    text = page.read_text("utf-8") if page.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return (before, after) if begin and end else None
