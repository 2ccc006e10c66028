"""Recent documents that nobody of a query wants say nothing about its overlap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from earshot import Event
from earshot.filters.summaries.data_summary import DataSummary
from earshot.protocols.codd.overlap import _recent_matches


def test_recent_documents_count_that_the_query_wants() -> None:
    summary = DataSummary(least_documents=2)
    held = [SimpleNamespace(number=number, event=Event("CD", {"price": number})) for number in (7, 8, 9)]
    tree: Any = SimpleNamespace(summary=summary, held=SimpleNamespace(since=lambda _first: held))
    assert _recent_matches(tree, ["CD: price > 100"], 7) == 0
    assert _recent_matches(tree, ["CD: price > 8", "CD: price = 7"], 7) == 0b101
    assert _recent_matches(tree, ["not a filter ("], 7) == 0
    thin: Any = SimpleNamespace(summary=DataSummary(), held=SimpleNamespace(since=lambda _first: held))
    assert _recent_matches(thin, ["CD: price > 0"], 7) == 0
