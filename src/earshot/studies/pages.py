"""The studies' report: a claims table and figures, ours beside the paper's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from earshot.pipeline.reports.report import PageSection, PageTable, ReportPage, figure_html, line_figure
from earshot.studies.study import Judged, Study

_VERDICTS = {True: "holds", False: "does not hold", None: "not measurable"}


def studies_report(studies: Sequence[Study], judged: Sequence[Judged], quick: bool) -> ReportPage:
    """One section a study."""
    sections = [_section(study, [one for one in judged if one.study == study.name]) for study in studies]
    held = sum(one.finding.holds is True for one in judged)
    sizes = "smaller sizes of the experiments" if quick else "the papers' own sizes"
    return ReportPage("Earshot: the papers' claims", f"{held} of {len(judged)} claims hold; {sizes}", sections)


def _section(study: Study, judged: Sequence[Judged]) -> PageSection:
    rows = [
        [
            one.claim.claim,
            _VERDICTS[one.finding.holds],
            one.claim.where,
            one.claim.paper,
            one.finding.measured,
            one.finding.reason,
        ]
        for one in judged
    ]
    table = PageTable(
        f"claims-{study.name}",
        ["claim", "verdict", "where", "the paper", "measured", "why"],
        rows,
        "Intervals are 95 % confidence intervals over seeds.",
    )
    figures = [
        figure_html(
            line_figure(
                one.claim.claim,
                one.claim.x_label,
                one.claim.y_label,
                [vars(line) for line in one.finding.series],
                one.claim.log_x,
            )
        )
        for one in judged
        if one.finding.series
    ]
    return PageSection(f"{study.name}: {study.paper}", study.notes, figures, [table])
