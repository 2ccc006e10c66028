"""The parts of a leaderboard's page by themselves: headlines, answers, the picture, bars, tables and sweeps."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.pipeline.advice.search import Measured, Round, TunedProtocol, standing_of
from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.campaigns.leaderboard import (
    BoardRow,
    BoardVerdict,
    Ranking,
    ScenarioPoint,
    SweepChart,
    SweepLine,
)
from earshot.pipeline.reports import board_page
from earshot.pipeline.reports.board_page import (
    RankingView,
    _round,
    answers,
    common_keys,
    figure_cell,
    figures_table,
    headline,
    measure_of,
    picture,
    plain,
    ranked_bars,
    sweep_figures,
    types_table,
    verdict_block,
)
from earshot.pipeline.reports.charts import Measure
from earshot.pipeline.reports.page import PageFigure, PageFold, PageTable, PageVerdict, PageWords
from earshot.pipeline.reports.svg import marks_of

NAMES = ("steam", "codd", "cbf", "drip", "siena")
MARKS = marks_of(NAMES)
POINT = ScenarioPoint("p 802.11b", "city", {"nodes": 50, "speed": 3.0}, "802.11b", "", "")


def exact(mean: float, seeds: int = 5) -> Figure:
    return Figure(mean, mean, mean, seeds)


def row(name: str, rank: int = 1, ties: dict[str, tuple[str, ...]] | None = None, **figures: float) -> BoardRow:
    return BoardRow(POINT, name, name, {}, {one: exact(value) for one, value in figures.items()}, rank=rank,
                    ties=ties or {})  # fmt: skip


def verdict(winner: str = "steam", delivery: float = 0.9, **more: Any) -> BoardVerdict:
    given = {"cost_metric": "airtime_mean", "cost": exact(0.1), **more}
    return BoardVerdict(winner, "delivery_ratio", exact(delivery), seeds=5, **given)


def view(*rows: BoardRow, stated: BoardVerdict | None = None, **more: Any) -> RankingView:
    return RankingView(Ranking(POINT, rows, stated, **more), MARKS)


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("delivery_ratio", "share"), ("airtime_mean", "percent"), ("airtime_busiest", "percent"), ("latency_p95_s", "s"),
     ("bytes_per_delivery", "B"), ("hops", "")],
)  # fmt: skip
def test_a_metric_is_written_in_its_unit(metric: str, unit: str) -> None:
    assert measure_of(metric).unit == unit


def test_a_keys_value_has_no_needless_decimals() -> None:
    assert [plain(value) for value in (50.0, 0.25, 7, "free")] == ["50", "0.25", "7", "free"]


OTHERS = ("codd", "cbf", "drip", "siena")


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (verdict(delivery=0.0), "no protocol delivered anything"),
        (verdict(), "steam delivers most"),
        (verdict(ties=("codd",), cost_metric=None), "steam and codd deliver most"),
        (verdict(ties=("codd", "cbf")), "steam, codd and cbf deliver most; of these, steam costs least"),
        (verdict(ties=("codd",), cost_ties=("codd",)), "steam and codd deliver most, at costs that do not differ"),
        (verdict(ties=("codd", "cbf"), cost_ties=("cbf",)),
         "steam, codd and cbf deliver most; of these, steam and cbf cost least"),
        (verdict(ties=OTHERS[:3]), "steam, codd, cbf and drip deliver most; of these, steam costs least"),
        (verdict(ties=OTHERS), "steam and 4 others deliver most; of these, steam costs least"),
    ],
)  # fmt: skip
def test_a_headline_names_the_winner_its_ties_and_who_costs_least(stated: BoardVerdict, words: str) -> None:
    assert headline(stated).lower() == words.lower()


def test_a_protocol_that_ran_alone_has_no_rivals_to_win_against() -> None:
    alone = view(row("steam", delivery_ratio=0.9), stated=verdict())
    assert verdict_block(alone, "city").headline == "steam ran alone on this network"
    both = view(row("steam", delivery_ratio=0.9), row("codd", delivery_ratio=0.5), stated=verdict())
    block = verdict_block(both, "city", ["More."])
    assert (block.heading, block.headline, block.mark) == ("city", "steam delivers most", MARKS["steam"])
    assert block.words.endswith(" More.")
    unjudged = verdict_block(view(row("steam")), "city")
    assert (unjudged.headline, unjudged.mark, unjudged.parts) == ("", None, ())


def of_type(name: str, stated: BoardVerdict | None) -> Ranking:
    return Ranking(POINT, (), stated, name)


def test_each_event_type_is_a_word_of_its_winner_unless_there_are_too_many() -> None:
    rankings = (
        of_type("News", verdict(delivery=0.5)), of_type("Alert", verdict("codd", 0.75, ties=("cbf",))),
        of_type("Chat", verdict(ties=("cbf", "codd"))), of_type("None", verdict(delivery=0.0)), of_type("Odd", None),
    )  # fmt: skip
    rows = (row("steam", delivery_ratio=0.9), row("codd", delivery_ratio=0.5))
    parts = verdict_block(view(*rows, stated=verdict(), by_type=rankings), "").parts
    assert parts == [
        ("News: steam 0.50", MARKS["steam"]), ("Alert: codd 0.75 ≈ cbf", MARKS["codd"]),
        ("Chat: steam 0.90 ≈ 2 others", MARKS["steam"]), ("None: nothing delivered", MARKS["steam"]),
    ]  # fmt: skip
    assert verdict_block(view(rows[0], stated=verdict(), by_type=rankings), "").parts == [], "alone it wins nothing"
    for count, shown in ((12, 12), (13, 0)):
        many = tuple(of_type(f"T{n}", verdict()) for n in range(count))
        assert len(verdict_block(view(*rows, stated=verdict(), by_type=many), "").parts) == shown


def test_the_table_of_event_types_has_what_is_reachable_where_it_is_known() -> None:
    lead = verdict(ties=("cbf",), next="codd", lead=exact(0.123), ceiling=exact(0.8))
    (table,) = types_table(
        view(by_type=(of_type("News", lead), of_type("Alert", verdict("codd")), of_type("Odd", None)))
    )
    assert isinstance(table, PageTable)
    assert [[str(cell) for cell in line] for line in table.rows] == [
        ["News", "steam", "0.9", "cbf", "codd, 12.3 points less", "0.8"],
        ["Alert", "codd", "0.9", "none", "none", ""],
    ]
    assert table.rows[0][5].words == "80 %"
    (short,) = types_table(view(by_type=(of_type("News", verdict()), of_type("Odd", None))))
    assert isinstance(short, PageTable)
    assert (len(short.header), len(short.rows[0])) == (5, 5)
    assert types_table(view(by_type=(of_type("Odd", None),))) == []


def test_many_verdicts_count_who_wins_and_name_each_point_by_what_differs() -> None:
    other = replace(POINT, id="q", keys={"nodes": 100, "speed": 3.0})
    views = [
        view(stated=verdict(ties=("cbf",), ceiling=exact(0.7))),
        RankingView(Ranking(other, (), verdict("codd")), MARKS),
        RankingView(Ranking(replace(other, keys={"nodes": 200, "speed": 3.0}), (), verdict("codd")), MARKS),
        view(),
    ]
    assert common_keys(views) == {"speed": 3.0}
    assert common_keys([]) == {}
    first, table = answers(views)
    assert isinstance(first, PageVerdict)
    assert (first.headline, first.mark) == ("codd leads at 2 of 3 points", MARKS["codd"])
    assert first.words == (
        "Delivers most, or as much as the best for the least cost: codd at 2 of 3 points and steam at 1 of 3 points."
    )
    assert isinstance(table, PageTable)
    assert table.header[-2:] == ["airtime", "reachable at all"]
    assert [str(line[4]) for line in table.rows] == ["cbf", "none", "none"]
    assert ["50" in str(line[0]) and "speed" not in str(line[0]) for line in table.rows] == [True, False, False]
    assert [str(line[6]) for line in table.rows] == ["0.7", "", ""]
    bytes_too = view(stated=verdict(cost_metric="bytes_per_delivery"))
    _, mixed = answers([views[1], bytes_too, view(stated=verdict(cost_metric=None, cost=None))])
    assert isinstance(mixed, PageTable)
    assert mixed.header[-1] == "its cost"
    assert str(mixed.rows[2][5]) == ""
    nobody, _ = answers([view()])
    assert isinstance(nobody, PageVerdict)
    assert (nobody.headline, nobody.mark) == ("", None)


def test_a_figure_in_a_cell_has_its_interval_in_small() -> None:
    share = Measure("delivery", "share")
    cell = figure_cell(Figure(0.5, 0.4, 0.6, 5), share, " ≈")
    assert (cell.value, cell.words, cell.note, cell.css) == (0.5, "0.50 ≈", "0.40 to 0.60", "number")
    assert figure_cell(exact(0.5), share).note == ""
    missing = figure_cell(None, share, css="number best")
    assert (missing.value, missing.words, missing.css) == (None, "–", "number best")


def test_the_picture_needs_two_rows_with_delivery_and_one_cost() -> None:
    two = (
        row("steam", delivery_ratio=0.9, airtime_mean=0.1, cost=2.0),
        row("codd", delivery_ratio=0.5, airtime_mean=0.2),
    )
    (figure,) = picture(view(*two))
    assert isinstance(figure, PageFigure)
    assert "airtime (share of the channel" in figure.drawing
    assert "airtime (share of the channel" not in figure.phone
    assert 'viewBox="0 0 1080 430"' in figure.drawing
    assert 'viewBox="0 0 366 400"' in figure.phone
    assert figure.wide
    assert picture(view(two[0], row("codd", delivery_ratio=0.5))) == []
    assert picture(view(row("steam", delivery_ratio=0.9), row("codd", delivery_ratio=0.5))) == []
    (by_bytes,) = picture(
        view(*(row(name, delivery_ratio=0.9, bytes_per_delivery=5.0, latency_p95_s=0.5) for name in ("steam", "codd")))
    )
    assert isinstance(by_bytes, PageFigure)
    assert "bytes" in by_bytes.drawing
    assert "latency p95 500 ms" in by_bytes.drawing
    assert "latency" not in figure.drawing


def bars(*rows: BoardRow, **more: Any) -> dict[str, Any]:
    found = {}
    for figure in ranked_bars(view(*rows, **more)):
        assert isinstance(figure, PageFigure)
        assert figure.shown is not None
        found[figure.title] = figure.shown
    return found


def widths(table: PageTable) -> list[float]:
    return [float(line[1].drawing.partition('width="')[2].partition('"')[0]) for line in table.rows]


def test_bars_stand_best_first_and_end_at_one_or_a_little_beyond_the_largest() -> None:
    rows = (
        row("steam", 1, delivery_ratio=0.5, latency_p95_s=2.0, ceiling=0.8),
        row("codd", 2, {"delivery_ratio": ("steam",)}, delivery_ratio=0.5, latency_p95_s=1.0),
        row("cbf", 3, delivery_ratio=0.25),
    )
    wide = replace(rows[1], figures={**rows[1].figures, "latency_p95_s": Figure(1.0, 0.5, 2.4, 5)})
    found = bars(rows[0], wide, rows[2])
    assert list(found) == ["delivery ratio: more is better", "latency p95: less is better"]
    delivery, latency = found.values()
    assert [str(line[0]) for line in delivery.rows] == ["steam", "codd", "cbf"]
    assert widths(delivery) == [500.0, 500.0, 250.0]
    assert [line[2].words for line in delivery.rows] == ["0.50", "0.50 ≈", "0.25"]
    assert ["ceiling" in line[1].drawing for line in delivery.rows] == [True, False, False]
    assert [str(line[0]) for line in latency.rows] == ["codd", "steam"]
    assert widths(latency) == pytest.approx([1000 / 2.4, 2000 / 2.4], abs=0.06), "up to the longest interval"
    wider = replace(wide, figures={**wide.figures, "latency_p95_s": Figure(1.0, 0.5, 99.0, 5)})
    assert widths(bars(rows[0], wider)["latency p95: less is better"]) == pytest.approx([357.1, 714.3], abs=0.06)
    assert [str(line[1]) for line in latency.data.rows] == ["1.0", "2.0"]


def test_the_table_marks_the_best_of_each_column_and_says_over_how_many_seeds() -> None:
    rows = (
        row("steam", 1, delivery_ratio=0.9, airtime_mean=0.2, events=30.0),
        row("codd", 2, delivery_ratio=0.5, airtime_mean=0.1, events=30.0),
    )
    table = figures_table(view(*rows))
    assert table.header[:4] == ["#", "protocol", "delivery ratio", "airtime"]
    assert [[cell.css for cell in line[2:4]] for line in table.rows] == [
        ["number best", "number"],
        ["number", "number best"],
    ]
    assert table.note.startswith("Means over 5 seeds, below them 95 % confidence intervals.")
    assert [cell.css for cell in figures_table(view(rows[0])).rows[0][2:4]] == ["number", "number"], (
        "alone none is best"
    )
    few = replace(rows[1], figures={"delivery_ratio": exact(0.5, 3)})
    mixed = figures_table(view(rows[0], few))
    assert mixed.note.startswith("Means over 3 to 5 seeds")
    assert mixed.rows[1][3].words == "–"
    once = replace(rows[0], figures={"delivery_ratio": exact(0.5, 1)})
    assert figures_table(view(once)).note == "One seed: no intervals, and differences may be chance."


def test_columns_that_do_not_decide_stand_behind_a_click_and_a_phone_shows_three() -> None:
    figures = {"delivery_ratio": 0.9, "precision": 1.0, "airtime_mean": 0.1, "latency_p50_s": 0.1, "latency_p95_s": 0.2,
               "hops": 2.0}  # fmt: skip
    table = figures_table(view(row("steam", **figures)))
    assert [table.header[number] for number in table.more] == ["hops"]
    assert [table.header[number] for number in table.less] == ["#", "precision", "latency p50"]


def test_a_sweep_has_a_figure_a_metric_and_dashes_for_what_is_fixed() -> None:
    def line(name: str, cars: float, delivery: str = "delivery_ratio") -> SweepLine:
        rows = tuple(
            (x, row(name, **{delivery: 0.5 + x / 100, "delivery_ratio": 0.4, "hops": 3.0})) for x in (10.0, 20.0)
        )
        return SweepLine(name, name, {"cars": cars}, rows)

    def drawn(*lines: SweepLine) -> list[PageFigure]:
        chart = SweepChart("range_m", "city", "", "", ("802.11b",), lines)
        return [one for one in sweep_figures(chart, MARKS) if isinstance(one, PageFigure)]

    (figure,) = drawn(line("steam", 50.0), line("codd", 50.0), line("steam", 100.0))
    assert figure.title == "delivery ratio by range_m"
    assert [name for name, *_ in figure.keys] == ["steam", "codd"]
    assert ("cars = 50" in figure.extra, "cars = 100" in figure.extra) == (True, True)
    assert [figure.drawing.count(f"line dash-{number}") for number in range(3)] == [2, 1, 0]
    assert figure.table is not None
    assert figure.table.rows[5] == ["steam", "cars = 100", 20.0, 0.4, 0.4, 0.4, 5]
    reachable = drawn(line("steam", 50.0, "delivery_of_reachable"))
    assert [one.title for one in reachable] == ["delivery of the reachable by range_m"], "the one that counts alone"


def test_a_round_of_the_search_names_its_windows_and_who_was_not_judged() -> None:
    fast, slow, odd = TunedProtocol("steam", (("wait", 2.0),)), TunedProtocol("codd"), TunedProtocol("cbf")
    standing = standing_of(fast, {"0 to 9 s": Measured(0.91234, 0.123456, 1.23456)})
    rounds = (Round(("w",), (), ()), Round(("0 to 9 s", "9 to 18 s"), (standing,), (slow, odd, TunedProtocol("drip"))))
    advice: Any = SimpleNamespace(
        search=SimpleNamespace(rounds=rounds), failed={odd: "it broke"}, left_out={"codd": "too slow", "cbf": "no"}
    )
    table = _round(1, advice)
    assert (table.title, table.note) == (
        "round-2",
        "Round 2: 0 to 9 s and 9 to 18 s. Not judged: codd (too slow), cbf (it broke) and drip.",
    )
    place, name, *figures = table.rows[0]
    assert (place, name, [cell.words for cell in figures]) == (1, "steam wait=2", ["0.912", "0.1235", "1.23"])
    assert [cell.value for cell in figures] == [0.91234, 0.123456, 1.23456]
    assert _round(0, advice).note == "Round 1: w."


def test_the_recommendation_is_a_verdict_a_table_and_three_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = TunedProtocol("steam", (), {"wait_s": 2.0, "again": True})
    advice: Any = SimpleNamespace(chosen=chosen, names={chosen: "steam"}, search=SimpleNamespace(rounds=()))
    for name, answer in {
        "candidate_words": "steam", "advice_words": ["Use steam: it arrives.", "More."], "reasons_words": ["wait: so"],
        "judged_table": (["protocol"], [["steam"]]), "network_facts": {"range_m": 90.0},
    }.items():  # fmt: skip
        monkeypatch.setattr(board_page.text, name, lambda _, answer=answer: answer)
    verdict, words, table, why, file, search = board_page.advice_blocks(advice, MARKS)
    assert isinstance(verdict, PageVerdict)
    assert (verdict.headline, verdict.mark, verdict.words) == ("Use steam", MARKS["steam"], "It arrives.")
    assert words == PageWords("More.")
    assert isinstance(table, PageTable)
    assert (table.title, table.rows) == ("judged", [["steam"]])
    assert why == PageFold("Why these settings", [PageWords("wait: so")])
    assert isinstance(file, PageFold)
    (settings,) = file.blocks
    assert isinstance(settings, PageTable)
    assert settings.rows == [["protocol", "steam"], ["again", True], ["wait_s", 2.0], ["network: range_m", 90.0]]
    assert search == PageFold("How the search went", [])
    monkeypatch.setattr(board_page.text, "reasons_words", lambda _: [])
    assert len(board_page.advice_blocks(advice, MARKS)) == 5


def test_event_types_after_one_of_which_nothing_was_delivered_are_named_too() -> None:
    """The unjudged ones have no word and no line."""
    rankings = (
        of_type("None", verdict(delivery=0.0)), of_type("Odd", None), of_type("News", verdict("codd", 0.5)),
    )  # fmt: skip
    both = view(row("steam", delivery_ratio=0.9), row("codd", delivery_ratio=0.5), stated=verdict(), by_type=rankings)
    assert [words for words, _ in verdict_block(both, "").parts] == ["None: nothing delivered", "News: codd 0.50"]
    (table,) = types_table(both)
    assert isinstance(table, PageTable)
    assert [str(line[0]) for line in table.rows] == ["None", "News"]


def test_the_picture_names_its_cost_in_full_and_in_one_word_on_a_phone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def drawn(spots: Any, delivery: Measure, cost: Measure, width: float, height: float) -> str:
        asked.append((len(spots), delivery.title, cost.title, cost.unit, width, height))
        return "<svg/>"

    monkeypatch.setattr(board_page, "delivery_against_cost", drawn)
    for cost, long, short, unit in (
        ("airtime_mean", "airtime (share of the channel's time, mean over nodes)", "airtime", "percent"),
        ("bytes_per_delivery", "bytes a delivery", "bytes a delivery", "B"),
    ):
        rows = [row(name, **{"delivery_ratio": 0.9, cost: 2.0}) for name in ("steam", "codd")]
        picture(view(*rows, stated=verdict()))
        assert asked == [(2, "delivery ratio", long, unit, 1080, 430), (2, "delivery ratio", short, unit, 366, 400)]
        asked.clear()
