"""The report in a real browser: nothing of it lies beyond the window's edge."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")

from playwright.sync_api import Page

from earshot.pipeline.reports.report import PageSection, PageTable, ReportPage, figure_html, line_figure

CLAIM = [
    "Brokers chosen by ability give less delay than brokers chosen at random",
    "does not hold",
    "beyond the paper: delivery ratio",
    "m and l fixed and k growing, the broker coverage is generally reduced",
    "k = 10: 2.97 [2.94, 3], 20: 9.86 [6.17, 13.6], 30: 14.9 [13.1, 16.7]; " * 3,
    "the way that is saved, publisher to broker, is a few hops of milliseconds, of a delay of seconds " * 2,
]
HEADER = ["claim", "verdict", "where", "the paper", "measured", "why"]
TITLE = "A study: Somebody and Somebody Else, A Protocol with a Long Name for Networks that Move, Proceedings 2007"


def test_a_report_stays_within_the_window(page: Page, tmp_path: Path) -> None:
    lines = [{"name": "ours", "x": [1, 2], "y": [1.0, 2.0]}]
    figure = figure_html(line_figure("delay", "k", "s", lines, False))
    sections = [
        PageSection(TITLE, "words", [figure], [PageTable("claims", HEADER, [CLAIM], "a note")]) for _ in range(5)
    ]
    place = tmp_path / "report.html"
    place.write_text(ReportPage("The papers' claims", "some hold", sections).html(), "utf-8")
    page.goto(place.as_uri())
    for width in (1100, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.set_viewport_size({"width": 1100, "height": 800})
    hidden = "[...document.querySelectorAll('.scroll')].map(one => one.scrollWidth - one.clientWidth)"
    assert page.evaluate(hidden) == [0] * 5
