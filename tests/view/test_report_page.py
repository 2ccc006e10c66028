"""The report in a real browser: it fits every window, its clicks work, and it asks for nothing from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("pyspark", reason="the pipeline is not installed")

from playwright.sync_api import Browser, Page

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.reports.charts import ChartLine, Measure, line_chart
from earshot.pipeline.reports.page import PageFigure, PageSection, PageTable, ReportPage
from earshot.pipeline.reports.report import ReportFacts, lake_page
from earshot.pipeline.reports.svg import Mark
from pipeline.reports.board import FIGURES, keyed, made_board, run_rows

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
WIDTHS = (1400, 1100, 390)
HIDDEN = """[...document.querySelectorAll('.scroll')].filter(one => one.checkVisibility())
.map(one => one.scrollWidth - one.clientWidth)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All protocols on one scenario, with losses on a map."""
    rows = run_rows()
    board = made_board(rows)
    counts = {
        "never heard": 4.0,
        "needed carrying": 3.0,
        "impossible": 3.0,
        "dropped: too-many-packets-waiting": 2.0,
    }
    causes = keyed(board, {cause: {"lost": count} for cause, count in counts.items()})
    squares = [f"{250 * column},{250 * line}" for column in range(4) for line in range(4)]
    areas = keyed(board, {key: {"expected": 90.0, "lost": float(number)} for number, key in enumerate(squares)})
    tracks = {board.rankings[0].point.id: [[(0.0, 0.0), (1000.0, 900.0)], [(100.0, 800.0)]]}
    place = tmp_path_factory.mktemp("report") / "report.html"
    facts = ReportFacts(board, rows, causes=causes, areas=areas, tracks=tracks)
    place.write_text(lake_page(facts, {}).html(), "utf-8")
    return place


@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_fits_the_window(page: Page, report: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert set(page.evaluate(HIDDEN)) == {0}, "a table lies beyond the page's edge"
    headline = page.locator(".verdict .headline").bounding_box()
    picture = page.locator("figure.wide svg.chart:visible").bounding_box()
    assert headline is not None
    assert picture is not None
    assert headline["y"] < 300, "the answer stands on the first screen"
    assert picture["y"] < 700
    assert picture["x"] + picture["width"] <= width


def test_all_columns_show_after_a_click(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    table = page.locator("section", has=page.get_by_role("heading", name="All figures")).locator("table")
    hops = table.get_by_role("columnheader", name="hops")
    assert not hops.is_visible()
    table.get_by_role("button", name="show all columns").click()
    assert hops.is_visible()
    table.get_by_role("columnheader", name="protocol").click()
    assert table.locator("tbody button.name").all_text_contents() == sorted(FIGURES)


def test_a_click_on_a_name_highlights_it_everywhere(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    page.locator("button.name[data-name=steam]").first.click()
    opacity = "name => getComputedStyle(document.querySelector(`g.spot[data-name=${name}]`)).opacity"
    assert [page.evaluate(opacity, name) for name in ("steam", "codd")] == ["1", "0.18"]
    page.locator("button.name[data-name=steam]").first.click()
    assert page.evaluate(opacity, "codd") == "1"


def test_light_and_dark_pages_differ_and_need_no_network(browser: Browser, report: Path) -> None:
    asked: list[str] = []
    colours = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        read = "name => getComputedStyle(document.body)[name]"
        mark = "getComputedStyle(document.querySelector('.spot.m0 .mark')).fill"
        colours.append((page.evaluate(read, "backgroundColor"), page.evaluate(read, "color"), page.evaluate(mark)))
        page.close()
    assert asked == [report.as_uri()] * 2
    assert all(light != dark for light, dark in zip(*colours, strict=True))


def test_a_studies_report_stays_within_the_window(page: Page, tmp_path: Path) -> None:
    points = [(1.0, Figure(1.0, 0.5, 1.5, 3)), (2.0, Figure(2.0, 1.5, 2.5, 3))]
    drawn = line_chart([ChartLine("ours", Mark(0, 0), points)], Measure("k", ""), Measure("s", ""))
    blocks = [PageTable("claims", HEADER, [CLAIM], "a note", less=(2, 3, 5)), PageFigure("delay", drawn)]
    sections = [PageSection(TITLE, "words", blocks) for _ in range(5)]
    place = tmp_path / "report.html"
    place.write_text(ReportPage("The papers' claims", "some hold", sections).html(), "utf-8")
    page.goto(place.as_uri())
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(HIDDEN) == [0] * 5
