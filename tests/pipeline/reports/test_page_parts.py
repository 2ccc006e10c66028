"""The parts of a report's page by themselves: tables, capacities, losses and the user's own figures."""

from __future__ import annotations

import re
from base64 import b64decode
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.pipeline.campaigns.capacity import CapacityComparison, LoadPoint, ProtocolCapacity
from earshot.pipeline.reports import loss_page
from earshot.pipeline.reports.capacity_page import capacity_blocks, capacity_text, capacity_words
from earshot.pipeline.reports.charts import AreaCell
from earshot.pipeline.reports.loss_page import (
    RowLosses,
    cause_words,
    causes_table,
    loss_blocks,
    losses_of,
    merged_cells,
    style_of,
)
from earshot.pipeline.reports.outside_figures import ReportFigure, drawn_figures
from earshot.pipeline.reports.page import (
    PageCell,
    PageFigure,
    PageFold,
    PageLink,
    PageSection,
    PageTable,
    PageVerdict,
    PageWords,
    ReportPage,
)
from earshot.pipeline.reports.svg import marks_of
from earshot.plugins import PluginError
from earshot.records import DropReason
from earshot.records.drop_reasons import sentence_of

# Tables.


def test_a_download_holds_values_and_addresses_and_nothing_for_what_is_missing() -> None:
    rows = [[PageCell(0.5, "50 %"), PageLink("here", "a.html"), 'say "x"'], [PageCell(None, "none"), "", 3]]
    table = PageTable("t", ["a", "b", "c"], rows)
    expected = 'a,b,c\r\n0.5,a.html,"say ""x"""\r\n,,3\r\n'
    assert table.csv() == expected
    head, _, data = table.download.partition(",")
    assert (head, b64decode(data).decode()) == ("data:text/csv;base64", expected)
    more = PageTable("t", ["only"], [[1]], data=table)
    assert (more.download, more.csv()) == (table.download, "only\r\n1\r\n")


def test_nothing_from_outside_becomes_part_of_the_page_itself() -> None:
    odd = "<i>&\"'</i>"
    blocks = [
        PageTable(odd, [odd], [[odd], [PageCell(odd, odd)], [PageLink(odd, odd)]], odd), PageWords(odd),
        PageVerdict(odd, odd, marks_of(["a"])["a"], odd), PageFold(odd, [PageWords(odd)]),
        PageFigure(odd, "<svg></svg>", keys=[(odd, marks_of(["a"])["a"], odd)]),
    ]  # fmt: skip
    html = ReportPage(odd, odd, [PageSection(odd, odd, blocks, odd)]).html()
    assert "<svg></svg>" in html, "drawings are ours"
    assert "&lt;i&gt;&amp;" in html
    assert "<i>" not in html


# Capacity.


def point(multiple: float, delivery: float, airtime: float | None = 0.25) -> LoadPoint:
    return LoadPoint(multiple, 3.0 * multiple, delivery, delivery / 2, airtime, airtime, 5)


def carrying(name: str, capacity: float | None, exceeds: bool = False, error: str | None = None) -> ProtocolCapacity:
    points = (point(1.0, 0.99), point(2.0, 0.5, None)) if capacity else (point(1.0, 0.4),)
    return ProtocolCapacity(name, capacity, exceeds, points, error)


def compared(*rows: ProtocolCapacity) -> CapacityComparison:
    return CapacityComparison("town", 0.9, 5, 16.0, rows)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (carrying("a", 4.0), "4 ×"),
        (carrying("a", 16.0, exceeds=True), "16 × or more"),
        (carrying("a", None), "none"),
        (carrying("a", None, error="KeyError"), "not known"),
    ],
)
def test_a_capacity_in_words(row: ProtocolCapacity, words: str) -> None:
    assert capacity_text(row) == words


def test_the_best_and_the_next_that_carry_anything_are_reported() -> None:
    best, next_best, third = carrying("a", 8.0), carrying("b", 2.0, exceeds=True), carrying("c", 1.0)
    assert capacity_words(compared(best, next_best, third)) == (
        "a carries 8 × the event rate with 90 % of the reachable delivered, the next, b, 2 × or more."
    )
    assert capacity_words(compared(carrying("x", None), best)) == (
        "a carries 8 × the event rate with 90 % of the reachable delivered."
    )


def test_where_nobody_carries_enough_what_arrives_is_reported() -> None:
    assert capacity_words(compared(carrying("a", None), carrying("b", None))) == (
        "a never reaches 90 %: at the base rate 40.0 % of the reachable arrives. "
        "b never reaches 90 %: at the base rate 40.0 % of the reachable arrives."
    )
    failed = carrying("a", None, error="KeyError")
    assert capacity_words(compared(failed)) == "No protocol delivers 90 % of the reachable at any load."


def test_capacities_are_bars_a_line_of_delivery_and_one_of_airtime_where_it_is_known() -> None:
    rows = compared(carrying("siena", None), carrying("steam", 8.0))
    marks = marks_of(["siena", "steam"])
    verdict, bars, delivery, airtime = capacity_blocks(rows, marks)
    assert isinstance(verdict, PageVerdict)
    assert (verdict.headline, verdict.mark) == ("steam carries most: 8 × the event rate", marks["steam"])
    assert isinstance(bars, PageFigure)
    assert bars.shown is not None
    assert (bars.shown.title, list(bars.shown.header)) == ("capacity", ["protocol", "", "capacity"])
    assert bars.shown.data is not None
    assert bars.shown.data.title == "capacity"
    assert [[cell.value for cell in line] for line in bars.shown.rows] == [["siena", None, None], ["steam", 8.0, 8.0]]
    assert [line[2].words for line in bars.shown.rows] == ["none", "8 ×"]
    assert isinstance(delivery, PageFigure)
    assert delivery.table is not None
    assert delivery.table.rows == [
        ["siena", 1.0, 3.0, 0.4, 0.2, 0.25, 0.25, 5],
        ["steam", 1.0, 3.0, 0.99, 0.495, 0.25, 0.25, 5],
        ["steam", 2.0, 6.0, 0.5, 0.25, "", "", 5],
    ]
    assert [name for name, *_ in delivery.keys] == ["siena", "steam"]
    assert isinstance(airtime, PageFigure)
    assert airtime.title == "airtime against load"
    silent = ProtocolCapacity("siena", 1.0, False, (point(1.0, 0.95, None),))
    assert len(capacity_blocks(compared(silent), marks)) == 3, "media without a channel have no airtime"


def widths(*rows: ProtocolCapacity) -> list[str]:
    """Of the bars, in thousandths of the longest."""
    _, bars, *_ = capacity_blocks(compared(*rows), marks_of([row.protocol for row in rows]))
    assert isinstance(bars, PageFigure)
    assert bars.shown is not None
    return [re.findall(r'<rect [^>]*width="([^"]*)"', line[1].drawing)[0] for line in bars.shown.rows]


def test_a_protocol_that_never_carries_enough_has_a_bar_of_no_length() -> None:
    assert widths(carrying("steam", 8.0), carrying("gossip", 2.0), carrying("siena", None)) == ["1000", "250", "0"]


def test_the_longest_bar_is_of_the_most_that_is_carried_also_below_the_base_rate() -> None:
    assert widths(carrying("steam", 0.5), carrying("siena", None)) == ["1000", "0"]


# Losses.


def board_row(variant: str, rank: int = 1, **figures: float) -> Any:
    return SimpleNamespace(
        point=SimpleNamespace(id="a point"), variant=variant, rank=rank,
        figures={name: SimpleNamespace(mean=value) for name, value in figures.items()},
    )  # fmt: skip


def keyed(row: Any, key: str, **figures: float) -> Any:
    return SimpleNamespace(
        point=row.point, variant=row.variant, key=key,
        figures={name: SimpleNamespace(mean=value) for name, value in figures.items()},
    )  # fmt: skip


STEAM, SIENA, EMPTY = board_row("steam", 1, expected=100.0), board_row("siena", 2, expected=50.0), board_row("cbf", 3)


def losses() -> list[RowLosses]:
    causes = [
        keyed(STEAM, "never heard", lost=4.0), keyed(STEAM, "impossible", lost=10.0), keyed(STEAM, "a", lost=4.0),
        keyed(STEAM, "needed carrying", lost=6.0), keyed(SIENA, "never sent", lost=5.0),
    ]  # fmt: skip
    areas = [
        keyed(STEAM, "0,-1000", expected=40.0, lost=20.0), keyed(STEAM, "elsewhere", expected=1.0, lost=1.0),
        keyed(STEAM, "1000,0", expected=60.0), keyed(SIENA, "2000,500", expected=50.0, lost=5.0),
    ]  # fmt: skip
    return losses_of([STEAM, SIENA, EMPTY], causes, areas)


def test_a_row_has_its_own_losses_the_largest_first_and_its_own_squares() -> None:
    steam, siena = losses()
    assert list(steam.causes.items()) == [
        ("impossible", 10.0),
        ("needed carrying", 6.0),
        ("a", 4.0),
        ("never heard", 4.0),
    ]
    assert (steam.expected, steam.cells) == (100.0, [AreaCell(0.0, -1000.0, 40.0, 20.0)])
    assert (dict(siena.causes), siena.cells) == ({"never sent": 5.0}, [AreaCell(2000.0, 500.0, 50.0, 5.0)])


def test_the_share_of_a_part_of_the_bar_and_of_all() -> None:
    steam, siena = losses()
    assert [steam.share(style) for style in (None, "lost", "carrying", "impossible")] == [0.24, 0.08, 0.06, 0.1]
    assert (siena.share(), siena.share("impossible")) == (0.1, 0.0)
    assert RowLosses(STEAM, 0.0, {"never heard": 3.0}, []).share() == 0.0


@pytest.mark.parametrize(
    ("cause", "style", "words"),
    [
        ("impossible", "impossible", "no path in time"),
        ("needed carrying", "carrying", "somebody had to carry it"),
        ("never heard", "lost", "it never came near the receiver"),
        ("never sent", "lost", "nobody sent it"),
        ("heard, not delivered", "lost", "the receiver heard it and did not deliver it"),
        ("something new", "lost", "something new"),
        ("dropped: ", "lost", "dropped: "),
    ],
)
def test_a_cause_in_words(cause: str, style: str, words: str) -> None:
    assert (style_of(cause), cause_words(cause)) == (style, words)


def test_a_drop_is_reported_as_a_sentences_part() -> None:
    sentence = sentence_of(DropReason.EXPIRED)
    assert cause_words(f"dropped: {DropReason.EXPIRED}") == (
        f"at the receiver: {sentence[0].lower()}{sentence[1:].rstrip('.')}"
    )


def test_bars_of_losses_stand_from_the_least_to_the_most_with_three_reasons() -> None:
    marks = marks_of(["steam", "siena"])
    bars, where, first, second, fold = loss_blocks(losses(), marks, [])
    assert isinstance(bars, PageTable)
    assert [[cell.value for cell in line[:3]] for line in bars.rows] == [["siena", 0.1, 0.1], ["steam", 0.24, 0.24]]
    assert bars.rows[1][3].words == "no path in time 10 %; somebody had to carry it 6.0 %; a 4.0 %"
    assert bars.note.endswith("Dashed frame: impossible for any protocol.")
    assert isinstance(where, PageWords)
    assert [one.keys[0][0] for one in (first, second) if isinstance(one, PageFigure)] == ["steam", "siena"]
    assert isinstance(fold, PageFold)
    table = causes_table(losses(), marks)
    assert (bars.title, table.title, list(bars.header)) == ("lost-deliveries",) * 2 + (["protocol", "", "lost", "why"],)
    assert [[str(cell) for cell in line] for line in table.rows] == [
        ["steam", "impossible", "impossible", "10.0", "0.1"],
        ["steam", "needed carrying", "needed carrying", "6.0", "0.06"],
        ["steam", "lost by the protocol", "a", "4.0", "0.04"],
        ["steam", "lost by the protocol", "never heard", "4.0", "0.04"],
        ["siena", "lost by the protocol", "never sent", "5.0", "0.1"],
    ]


def test_without_losses_nothing_is_drawn_and_without_impossible_ones_nothing_is_said_of_them() -> None:
    marks = marks_of(["steam", "siena"])
    assert loss_blocks([RowLosses(STEAM, 100.0, {}, [])], marks, []) == []
    assert loss_blocks([], marks, []) == []
    bars, fold = loss_blocks([RowLosses(SIENA, 50.0, {"never sent": 5.0}, [])], marks, [])
    assert isinstance(bars, PageTable)
    assert "impossible" not in bars.note
    assert isinstance(fold, PageFold)


def test_small_squares_are_added_up_in_larger_ones() -> None:
    cells = [AreaCell(0.0, 0.0, 4.0, 1.0), AreaCell(500.0, 500.0, 6.0, 2.0), AreaCell(-500.0, 0.0, 1.0, 1.0)]
    cells.append(AreaCell(1000.0, 500.0, 3.0, 0.0))
    assert merged_cells(cells, 1000.0) == [
        AreaCell(-1000.0, 0.0, 1.0, 1.0), AreaCell(0.0, 0.0, 10.0, 3.0), AreaCell(1000.0, 0.0, 3.0, 0.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("east_m", "side_m"), [(3750.0, 250.0), (4000.0, 500.0), (7750.0, 500.0), (8000.0, 750.0)])
def test_maps_share_one_ground_of_at_most_sixteen_squares_and_the_largest_share(
    east_m: float, side_m: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second row lost half of four in a square at the eastern end; nobody published in one of the others."""
    drawn: list[Any] = []
    monkeypatch.setattr(loss_page, "area_map", lambda *given, first: drawn.append((*given, first)) or "<svg/>")
    marks = marks_of(["steam", "siena", "cbf"])
    tracks = [[(0.0, 0.0), (100.0, 100.0)]]
    steam = RowLosses(
        STEAM, 100.0, {"never sent": 3.0}, [AreaCell(0.0, 0.0, 30.0, 3.0), AreaCell(250.0, 0.0, 0.0, 0.0)]
    )
    siena = RowLosses(SIENA, 50.0, {"never sent": 2.0}, [AreaCell(east_m, 0.0, 4.0, 2.0)])
    unlost = RowLosses(EMPTY, 9.0, {}, [AreaCell(0.0, 0.0, 1.0, 1.0)])
    loss_blocks([steam, siena, unlost], marks, tracks)
    assert [(name, side, most, mark, first) for _, side, _, mark, name, most, first in drawn] == [
        ("steam", side_m, 0.5, marks["steam"], True), ("siena", side_m, 0.5, marks["siena"], False),
    ]  # fmt: skip
    (one, _, ground, *_), (other, _, same, *_) = drawn
    assert (ground.left_m, ground.bottom_m, ground.wide_m, ground.high_m) == (0.0, 0.0, east_m + 250.0, 250.0)
    assert (ground.tracks, ground.id, same is ground) == (tracks, "tracks-a-point", True)
    assert sum(cell.expected for cell in one) == 30.0
    assert [(cell.expected, cell.lost) for cell in other] == [(4.0, 2.0)]


# Figures of the user's own.


def test_a_figure_is_drawn_from_its_svg_on_and_one_without_anything_is_left_out() -> None:
    asked = []

    def draw(rows: Any) -> str:
        asked.append(rows)
        return "<?xml?><svg>x</svg>"

    drawn, empty = ReportFigure("a", draw), ReportFigure("b", lambda _: "")
    assert drawn_figures({"a": drawn, "b": empty}, [{"run": 1}]) == [(drawn, "<svg>x</svg>")]
    assert asked == [[{"run": 1}]]


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda _: 1 / 0, r"^mine could not be drawn: ZeroDivisionError: division by zero$"),
        (lambda _: None, r"^mine: draw\(\) must return an SVG text, got a NoneType$"),
        (lambda _: "words", r"^mine: draw\(\) must return an SVG text, got a str$"),
        (lambda _: 2000 * " " + "<svg/>", "must return an SVG text"),
    ],
)
def test_a_figure_that_cannot_be_drawn_says_why(draw: Any, says: str) -> None:
    with pytest.raises(PluginError, match=says):
        drawn_figures({"mine": ReportFigure("mine", draw)}, [])
