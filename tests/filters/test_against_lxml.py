"""Expressions times documents: what lxml says of each pair, and what a filter, the index, covers and summaries say.

`make test-long` asks ten million pairs.
"""

from __future__ import annotations

from random import Random

from lxml import etree
from xpath_grid import DocumentMaker, ExpressionMaker

from earshot import DataSummary, Event, Filter, FilterIndex
from earshot.errors import FilterSyntaxError
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from sizes import sized

DOCUMENTS, EXPRESSIONS = 100, 50
"In one grid."


class Grid:
    """Documents, filters, and for every filter the set of documents in which lxml finds something."""

    def __init__(self, seed: int) -> None:
        chance = Random(seed)
        maker = DocumentMaker(chance)
        texts = [maker.document() for _ in range(DOCUMENTS)]
        self.events = [Event.from_xml(text) for text in texts]
        self.texts, trees = texts, [etree.ElementTree(etree.fromstring(text)) for text in texts]
        self.filters: dict[str, Filter] = {}
        self.selected: dict[str, frozenset[int]] = {}
        written = ExpressionMaker(chance)
        while len(self.filters) < EXPRESSIONS:
            text = written.expression()
            filter = read(text)
            if filter is None:
                continue
            self.filters[text] = filter
            holds = etree.XPath(f"boolean({text})")
            self.selected[text] = frozenset(number for number, tree in enumerate(trees) if holds(tree))


def read(text: str) -> Filter | None:
    """The filter. None where a path asks for something below an attribute or a text: that alone is refused."""
    try:
        return Filter.xpath(text)
    except FilterSyntaxError as error:
        if "has nothing below it" in error.reason:
            return None
        raise


def test_filters_and_the_index_answer_as_lxml_does() -> None:
    for seed in range(sized(8, 2_000)):
        grid = Grid(seed)
        index = FilterIndex()
        for text, filter in grid.filters.items():
            index.add(text, filter)
            matched = frozenset(number for number, event in enumerate(grid.events) if filter.matches(event))
            assert matched == grid.selected[text], wrong(grid, text, matched)
        for number, event in enumerate(grid.events):
            expected = {text for text, selected in grid.selected.items() if number in selected}
            assert index.match(event) == expected, grid.texts[number]


def wrong(grid: Grid, text: str, matched: frozenset[int]) -> str:
    """The expression and a document on which the two disagree."""
    return f"{text!r} on {grid.texts[min(matched ^ grid.selected[text])]!r}"


def test_a_filter_covers_no_other_that_selects_more() -> None:
    covered = 0
    for seed in range(sized(3, 200)):
        grid = Grid(seed)
        for text, filter in grid.filters.items():
            assert Filter.parse(str(filter)) == filter, text
            assert filter.covers(filter)
            for other, special in grid.filters.items():
                if filter.covers(special):
                    covered += text != other
                    assert grid.selected[other] <= grid.selected[text], (text, other)
    assert covered


def test_a_merged_filter_misses_nothing_that_either_selects() -> None:
    for seed in range(sized(2, 50)):
        grid = Grid(seed)
        texts = list(grid.filters)
        for one, other in zip(texts[::2], texts[1::2], strict=True):
            both = grid.filters[one].merge(grid.filters[other])
            for number in grid.selected[one] | grid.selected[other]:
                assert both.matches(grid.events[number]), (one, other, grid.texts[number])


def test_summaries_let_everything_pass_that_is_selected() -> None:
    shape = BloomShape(64, 2)
    refused = 0
    for seed in range(sized(3, 200)):
        grid = Grid(seed)
        for text, filter in grid.filters.items():
            summary = Summary.of([filter], shape)
            for number, event in enumerate(grid.events):
                passes = summary.may_match(event)
                assert passes or number not in grid.selected[text], (text, grid.texts[number])
                assert summary.may_match_digest(Digest.of(event)) or not passes
                refused += not passes
    assert refused


def test_a_data_summary_finds_exactly_the_documents_that_are_selected() -> None:
    for seed in range(sized(2, 50)):
        grid = Grid(seed)
        summary = DataSummary(documents=DOCUMENTS)
        for number, event in enumerate(grid.events):
            summary.add(number, event)
        for text, filter in grid.filters.items():
            found = summary.matching(filter)
            assert found is not None
            assert frozenset(summary.ids(found)) == grid.selected[text], text


def test_an_explanation_is_one_line_that_agrees() -> None:
    grid = Grid(7)
    for text, filter in grid.filters.items():
        for number, event in enumerate(grid.events[:20]):
            stated = filter.explain(event)
            assert stated.startswith("it matches" if number in grid.selected[text] else "it does not match")
            assert "\n" not in stated
