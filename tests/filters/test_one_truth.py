"""An index, a summary and statistics answer as the filter itself does, for predicates written by hand."""

from __future__ import annotations

import pytest
from xpath_predicates import DOCUMENTS, PREDICATES

from earshot import Event, Filter, FilterIndex
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.data_summary import DataSummary
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary

EVENTS = [Event.from_xml(text) for text in DOCUMENTS]
FORMS = ("/r[{}]", "/*[not({})]", "//*[{}]", "/r[c][{}]", "/r/*[{}]", "//d[{}]/a")
FILTERS = {text: Filter.xpath(text) for predicate in PREDICATES for text in (form.format(predicate) for form in FORMS)}
FLAT = (
    "price < 20", "price <= 20", "price > 5 and price < 9", "price = 7", "price != 7", "category = 'jazz'",
    "live = true", "category != 'jazz'", "category contains 'az'", "category starts with 'ja'", "live", "not live",
    "price in 3..8",
    "price < 9 or category = 'pop'", "(price = 7 or live = true) and category = 'jazz'", "price = '7'", "live != false",
    "not (price < 9 and category = 'jazz')", "CD: price < 20", "Tape: true", "CD/**: price = 7", "CD: false",
)  # fmt: skip
FLAT_EVENTS = [
    Event(kind, content)
    for kind in ("CD", "Tape")
    for content in (
        {}, {"price": 7}, {"price": 20, "category": "jazz"}, {"price": 8.5, "category": "pop", "live": True},
        {"category": "jazz", "live": False}, {"price": "7", "category": "razz", "live": True}, {"live": "true"},
    )
]  # fmt: skip


def test_an_index_of_all_predicates_finds_those_that_hold() -> None:
    index = FilterIndex()
    for text, filter in FILTERS.items():
        index.add(text, filter)
    for event in EVENTS:
        assert set(index.match(event)) == {text for text, filter in FILTERS.items() if filter.matches(event)}
    for text in list(FILTERS)[::2]:
        index.remove(text)
    for event in EVENTS:
        assert set(index.match(event)) == {text for text in list(FILTERS)[1::2] if FILTERS[text].matches(event)}


def test_an_index_of_flat_filters_finds_those_that_hold() -> None:
    index = FilterIndex()
    for text in FLAT:
        index.add(text, Filter.parse(text))
    for event in FLAT_EVENTS:
        assert set(index.match(event)) == {text for text in FLAT if Filter.parse(text).matches(event)}


@pytest.mark.parametrize(
    ("filters", "events"),
    [(list(FILTERS.values()), EVENTS), ([Filter.parse(text) for text in FLAT], FLAT_EVENTS)],
    ids=["documents", "flat"],
)
def test_summaries_and_digests_miss_nothing(filters: list[Filter], events: list[Event]) -> None:
    """False positives are allowed, false negatives never; most filters that do not hold are told apart."""
    shape = BloomShape(256, 3)
    wrong = 0
    for filter in filters:
        summary = Summary.of([filter], shape)
        for event in events:
            may_match = summary.may_match(event)
            assert may_match or not filter.matches(event), f"{filter} of {event}"
            assert summary.may_match_digest(Digest.of(event)) or not filter.matches(event), f"{filter} of {event}"
            wrong += may_match and not filter.matches(event)
    assert wrong < len(filters) * len(events) / 2


@pytest.mark.parametrize(
    ("filters", "events"),
    [(list(FILTERS.values()), EVENTS), ([Filter.parse(text) for text in FLAT], FLAT_EVENTS)],
    ids=["documents", "flat"],
)
def test_statistics_count_the_documents_that_hold(filters: list[Filter], events: list[Event]) -> None:
    statistics = DataSummary(least_documents=1)
    for number, event in enumerate(events):
        statistics.add(number, event)
    for filter in filters:
        matching = statistics.matching(filter)
        assert matching is not None
        expected = tuple(number for number, event in enumerate(events) if filter.matches(event))
        assert statistics.ids(matching) == expected, str(filter)
        assert set(expected) <= set(statistics.ids(statistics.candidates(filter)))
