"""The report's page: the answer first, and every fact where a reader looks for it."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html import unescape

from earshot.pipeline.campaigns.capacity import CapacityComparison, LoadPoint, ProtocolCapacity
from earshot.pipeline.reports.board_page import RankingView, figures_table, headline, ranked_bars
from earshot.pipeline.reports.charts import AreaCell
from earshot.pipeline.reports.loss_page import merged_cells
from earshot.pipeline.reports.page import PageFigure, PageFold, PageTable, ReportPage
from earshot.pipeline.reports.report import ReportFacts, facts_json, lake_page
from earshot.pipeline.reports.svg import marks_of
from pipeline.reports.board import FIGURES, keyed, made_board, run_rows

SMALL = ("flooding", "steam", "codd")


def words(page: ReportPage) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.html().split("<body>")[1])))


def sections(page: ReportPage) -> list[str]:
    return [section.title for section in page.sections]


def test_the_answer_stands_first_then_the_picture_and_drops_come_after_losses() -> None:
    rows = run_rows()
    board = made_board(rows)
    causes, drops = keyed(board, {"never heard": {"lost": 3.0}}), keyed(board, {"collision": {"drops": 9.0}})
    page = lake_page(ReportFacts(board, rows, causes=causes, drops=drops), {})
    details = ["By event type", "Ranked", "All figures", "Lost deliveries", "Packet drops", "Runs"]
    assert sections(page) == ["The answer", *details]
    answer = page.sections[0]
    assert [block.kind for block in answer.blocks] == ["verdict", "figure"]
    reported = words(page)
    assert "deliver most; of these, steam costs least" in reported
    assert "Reachable at all: 96." in reported
    assert "protocol reason meaning drops a run" in reported
    assert re.search("flooding collision .{5,120} 9", reported)


def test_a_run_that_failed_is_named_beside_the_answer() -> None:
    rows = run_rows(SMALL)
    failed = {**rows[0], "run": "broken", "seed": 7, "status": "failed", "error": "SettingsError: nobody"}
    reported = words(lake_page(ReportFacts(made_board(rows), [*rows, failed]), {}))
    assert "1 run failed, in no figure: flooding seed 7 (SettingsError: nobody)." in reported
    assert "15 runs, 5 seeds, 1 failed" in reported


def test_protocols_with_routing_are_ranked_beside_the_others_and_what_they_were_given_is_said() -> None:
    rows = run_rows(SMALL, assumes={"codd": "ideal routing"})
    page = lake_page(ReportFacts(made_board(rows), rows), {})
    assert "codd had ideal routing (the most favourable case: shortest paths, known to all nodes at no cost)." in words(
        page
    )
    table = next(
        block for section in page.sections for block in section.blocks if getattr(block, "title", "") == "leaderboard"
    )
    assert isinstance(table, PageTable)
    assert sorted(str(row[1]) for row in table.rows) == ["codd", "flooding", "steam"]


def test_networks_are_never_ranked_together() -> None:
    rows = run_rows(SMALL, networks={"codd": "802.11b-2M 160 m + infrastructure"})
    page = lake_page(ReportFacts(made_board(rows), rows), {})
    assert sections(page) == [
        "The answer",
        "city over 802.11b-2M 160 m",
        "city over 802.11b-2M 160 m + infrastructure",
        "Runs",
    ]
    tables = [
        block
        for section in page.sections[1:3]
        for block in section.blocks
        if getattr(block, "title", "") == "leaderboard"
    ]
    names = [[str(row[1]) for row in table.rows] for table in tables if isinstance(table, PageTable)]
    assert names == [["steam", "flooding"], ["codd"]]


def test_a_sweep_has_a_line_a_protocol_and_fixed_key_and_each_point_behind_a_click() -> None:
    points = [{"medium.range_m": range_m, "nodes.car.count": cars} for range_m in (80, 150, 250) for cars in (50, 100)]
    rows = run_rows(SMALL, points)
    page = lake_page(ReportFacts(made_board(rows), rows), {})
    assert sections(page) == [
        "The answer",
        "city over medium.range_m",
        "city over nodes.car.count",
        "Each point",
        "Runs",
    ]
    delivery = page.sections[1].blocks[0]
    assert isinstance(delivery, PageFigure)
    assert delivery.title == "delivery of the reachable by medium.range_m"
    assert delivery.drawing.count("<polyline") == len(SMALL) * 2
    assert delivery.table is not None
    assert len(delivery.table.rows) == len(SMALL) * 2 * 3
    assert len(page.sections[3].blocks) == 6
    assert "steam leads at" in words(page)


def test_a_protocol_has_one_colour_in_every_chart_and_table() -> None:
    rows = run_rows()
    html = lake_page(ReportFacts(made_board(rows), rows), {}).html()
    marks = marks_of(FIGURES)
    for name, mark in marks.items():
        drawn = re.findall(rf'class="(?:spot|series) (m\d+)" data-name="{name}"', html)
        named = re.findall(rf'data-name="{name}"[^>]*><svg class="key (m\d+)"', html)
        assert set(drawn) | set(named) == {mark.css}
        assert len(named) >= 5


def test_bars_are_ranked_by_their_own_metric_and_ties_are_marked() -> None:
    board = made_board(run_rows())
    view = RankingView(board.rankings[0], marks_of(FIGURES))
    delivery, airtime, *_ = [figure.shown for figure in ranked_bars(view) if isinstance(figure, PageFigure)]
    assert delivery is not None
    assert airtime is not None
    assert [str(row[0]) for row in delivery.rows][-2:] == ["drip-sf", "georendezvous"]
    assert str(airtime.rows[0][0]) == "codd"
    means = [float(str(row[2])) for row in airtime.rows]
    assert means == sorted(means)
    tied = board.rankings[0].rows[0].ties["delivery_of_reachable"]
    assert [str(row[0]) for row in delivery.rows if "≈" in row[2].words] == [
        str(row[0]) for row in delivery.rows if str(row[0]) in tied
    ]


def test_the_table_hides_columns_but_its_download_has_every_figure() -> None:
    board = made_board(run_rows())
    table = figures_table(RankingView(board.rankings[0], marks_of(FIGURES)))
    assert {table.header[column] for column in table.more} == {"delivery ratio", "hops", "reachable at all"}
    text = base64.b64decode(table.download.partition(",")[2]).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    ranking = board.rankings[0]
    assert len(lines) == sum(len(row.figures) for row in ranking.rows)
    steam = next(line for line in lines if line["protocol"] == "steam" and line["metric"] == "airtime_mean")
    figure = next(row for row in ranking.rows if row.variant == "steam").figures["airtime_mean"]
    assert (float(steam["mean"]), float(steam["low"]), float(steam["high"])) == (figure.mean, figure.low, figure.high)


def test_losses_are_split_by_cause_with_the_reasons_in_words() -> None:
    rows = run_rows(("codd", "steam"))
    board = made_board(rows)
    counts = {"impossible": 10.0, "needed carrying": 4.0, "dropped: collision": 6.0}
    causes = keyed(board, {cause: {"lost": count} for cause, count in counts.items()}, "codd")
    areas = keyed(board, {"0,0": {"expected": 90.0, "lost": 10.0}, "250,0": {"expected": 10.0, "lost": 10.0}}, "codd")
    page = lake_page(ReportFacts(board, rows, causes=causes, areas=areas), {})
    lost = next(section for section in page.sections if section.title == "Lost deliveries")
    bars = lost.blocks[0]
    assert isinstance(bars, PageTable)
    assert [(str(row[0]), row[2].words, row[3].words) for row in bars.rows] == [
        ("steam", "0 %", "nothing"),
        (
            "codd",
            "20 %",
            "no path in time 10 %; at the receiver: two transmissions collided at the receiver 6.0 %; "
            "somebody had to carry it 4.0 %",
        ),
    ]
    html = page.html()
    for part in ("lost by the protocol: 6.0 %", "needed carrying: 4.0 %", "impossible: 10 %"):
        assert f"<title>{part}</title>" in html
    assert "codd, 250 to 500 m east, 0 to 250 m north: lost 10 of 10 expected" in html


def test_squares_of_a_large_network_are_merged_without_losing_a_count() -> None:
    cells = [AreaCell(250.0 * x, 250.0 * y, 2.0, 1.0) for x in range(-3, 5) for y in range(4)]
    merged = merged_cells(cells, 500.0)
    assert [(cell.x_m, cell.y_m) for cell in merged][:2] == [(-1000.0, 0.0), (-1000.0, 500.0)]
    assert (sum(cell.expected for cell in merged), sum(cell.lost for cell in merged)) == (64.0, 32.0)


def test_capacity_is_reported_with_the_answer_and_drawn_over_the_load() -> None:
    rows = run_rows(SMALL)
    points = tuple(LoadPoint(2.0**step, 2.0**step, 1 - 0.02 * step, 0.9, 0.1 * step, None, 2) for step in range(4))
    able = ProtocolCapacity("steam", 4.0, False, points)
    none = ProtocolCapacity("codd", None, False, points[:1], "a run failed")
    facts = ReportFacts(made_board(rows), rows, capacity=CapacityComparison("city", 0.95, 2, 64.0, (able, none)))
    page = lake_page(facts, {})
    reported = words(page)
    assert "steam carries 4 × the event rate with 95.0 % of the reachable delivered." in reported
    assert "not known" in reported
    capacity = next(section for section in page.sections if section.title == "Capacity")
    delivery = capacity.blocks[2]
    assert isinstance(delivery, PageFigure)
    assert delivery.drawing.count('<path class="mark"') == 5
    assert delivery.table is not None
    assert (delivery.table.title, delivery.table.header[:2]) == ("capacity", ["protocol", "multiple"])
    assert [row[:3] for row in delivery.table.rows] == [
        *(["steam", 2.0**step, 2.0**step] for step in range(4)),
        ["codd", 1.0, 1.0],
    ]
    assert facts_json(facts)["capacity"]["protocols"][0]["capacity"] == 4.0


def test_programs_get_what_the_page_shows() -> None:
    rows = run_rows(("codd", "steam"))
    board = made_board(rows)
    failed = {**rows[0], "run": "broken", "status": "failed", "error": "SettingsError: nobody"}
    causes = keyed(board, {"never heard": {"lost": 3.0}}, "codd")
    areas = keyed(board, {"0,0": {"expected": 90.0, "lost": 3.0}}, "codd")
    reported = json.loads(json.dumps(facts_json(ReportFacts(board, [*rows, failed], causes=causes, areas=areas))))
    assert [row["variant"] for row in reported["rankings"][0]["rows"]] == ["steam", "codd"]
    (cause,) = reported["lost_by_cause"]
    assert (cause["variant"], cause["network"], cause["key"]) == ("codd", "802.11b-2M 160 m", "never heard")
    assert cause["lost"] == {"mean": 3.0, "low": 3.0, "high": 3.0, "seeds": 5}
    assert reported["lost_by_area"][0]["expected"]["mean"] == 90.0
    assert [run["error"] for run in reported["failed"]] == ["SettingsError: nobody"]


def test_many_ties_are_counted_in_the_headline() -> None:
    board = made_board(run_rows())
    verdict = board.rankings[0].verdict
    assert verdict is not None
    few, many = replace(verdict, ties=("codd", "drip")), replace(verdict, ties=("codd", "drip", "siena", "odmrp"))
    assert headline(few) == "steam, codd and drip deliver most; of these, steam costs least"
    assert headline(many) == "steam and 4 others deliver most; of these, steam costs least"
    assert headline(replace(few, cost_metric=None)) == "steam, codd and drip deliver most"
    assert headline(replace(verdict, ties=())) == "steam delivers most"
    dear = replace(few, cost_ties=("drip",))
    assert headline(dear) == "steam, codd and drip deliver most; of these, steam and drip cost least"
    assert (
        headline(replace(few, cost_ties=few.ties)) == "steam, codd and drip deliver most, at costs that do not differ"
    )
    assert headline(replace(few, delivery=replace(few.delivery, mean=0.0))) == "No protocol delivered anything"


def test_many_runs_stand_behind_a_click() -> None:
    rows = run_rows(seeds=7)
    (fold,) = next(section.blocks for section in lake_page(ReportFacts(made_board(rows), rows), {}).sections[-1:])
    assert isinstance(fold, PageFold)
    assert fold.title == "All 70 runs"


def test_an_empty_lake_has_a_page_too() -> None:
    assert lake_page(ReportFacts(made_board([])), {}).sections == []


def test_windows_of_a_trace_that_are_one_point_are_not_called_seeds() -> None:
    rows = [{**row, "point": "2 unseen windows", "window": "2 unseen windows"} for row in run_rows(SMALL, seeds=2)]
    reported = words(lake_page(ReportFacts(made_board(rows), rows), {}))
    assert "Means over 2 windows" in reported
    assert "2 windows are too few to order what ties; more may order it." in reported
    assert "Means over 2 seeds" not in reported
