"""Overlap and overhead by recent documents, and by structure while there are few."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from earshot import Event
from earshot.filters import FilterIndex
from earshot.filters.summaries.data_summary import DataSummary
from earshot.protocols.codd.dissemination_tree import DisseminationTree
from earshot.protocols.codd.overlap import (
    _recent_matches,
    least_overlap_child,
    max_overlap_child,
    overhead_for,
    window,
)
from earshot.protocols.codd.settings import CoddSettings

SETTINGS = CoddSettings(window_documents=40, enough_documents=4)
PRICES = {"low": "Document: price < 10", "high": "Document: price > 100"}


def tree_with(*children: str, is_root: bool = False, wanted: tuple[int, ...] = (), **received: tuple[int, ...]) -> Any:
    """A node `n` with these children; each may have been sent documents of these numbers."""
    tree = DisseminationTree("s#1", "n", is_root, SETTINGS, FilterIndex())
    for name in (*children, *received):
        child = tree.take(name, [], [], 0.0)
        for number in received.get(name, ()):
            child.send(number)
    for number in wanted:
        tree.wanted.add(number)
    tree.number = max([-1, *wanted, *(number for numbers in received.values() for number in numbers)])
    return tree


def test_recent_documents_count_that_the_query_wants() -> None:
    summary = DataSummary(least_documents=2)
    held = [SimpleNamespace(number=number, event=Event("CD", {"price": number})) for number in (7, 8, 9)]
    tree: Any = SimpleNamespace(summary=summary, held=SimpleNamespace(since=lambda _first: held))
    assert _recent_matches(tree, ["CD: price > 100"], 7) == 0
    assert _recent_matches(tree, ["CD: price > 8", "CD: price = 7"], 7) == 0b101
    assert _recent_matches(tree, ["not a filter ("], 7) == 0
    thin: Any = SimpleNamespace(summary=DataSummary(), held=SimpleNamespace(since=lambda _first: held))
    assert _recent_matches(thin, ["CD: price > 0"], 7) == 0


def test_the_last_documents_of_the_window_count_as_recent() -> None:
    tree = tree_with()
    found = []
    for tree.number in (-1, 0, 39, 40, 41):
        found.append(window(tree, SETTINGS))
    assert found == [0, 0, 0, 1, 2]


def test_the_child_that_was_sent_most_that_the_node_itself_does_not_want_contributes_most() -> None:
    tree = tree_with(wanted=(1, 2, 3, 4, 5), a=(1, 2, 3, 4, 5), b=(1, 6, 7), c=(8,))
    assert least_overlap_child(tree, SETTINGS) == "b"


def test_what_was_sent_before_the_window_does_not_count_and_of_equals_the_first_name_does() -> None:
    tree = tree_with(a=(1, 2, 3, 50), b=(49, 50), c=(48, 50))
    assert least_overlap_child(tree, SETTINGS) == "b"


def test_guests_contribute_nothing() -> None:
    tree = tree_with(wanted=(1,), a=(1, 2))
    tree.take("guest", [], [], 0.0, guest=True).received.add(3)
    tree.children["guest"].received.add(4)
    assert least_overlap_child(tree, SETTINGS) == "a"


def bits(*numbers: int) -> bytes:
    return sum(1 << number for number in numbers).to_bytes(40, "little")


def test_a_movers_overhead_is_what_it_needs_and_the_node_does_not_get_for_itself_or_for_other_children() -> None:
    tree = tree_with(wanted=(3, 4), a=(5,), mover=(6, 7))
    needs = bits(3, 4, 5, 6)
    by_query, by_aggregate = (replace(SETTINGS, overhead_against=how) for how in ("query", "aggregate"))
    assert overhead_for(tree, "mover", needs, 0, by_query) == 2
    assert overhead_for(tree, "mover", needs, 0, by_aggregate) == 1
    assert overhead_for(tree, "another", needs, 0, by_aggregate) == 0
    assert overhead_for(tree, "mover", bits(0, 1, 2, 3), 3, by_aggregate) == 1, "the first bit is document 3"


def test_nothing_is_overhead_for_the_root_which_gets_every_document() -> None:
    assert overhead_for(tree_with(is_root=True), "mover", bits(1, 2), 0, SETTINGS) == 0


def with_documents(*prices: int) -> DisseminationTree:
    """A node that holds documents of these prices and has a child for the low ones and one for the high ones."""
    tree: DisseminationTree = tree_with()
    for name, text in PRICES.items():
        tree.take(name, [text], [text], 0.0)
    for number, price in enumerate(prices):
        event = Event("Document", {"price": price}, f"d{number}", "s")
        tree.held.add(number, event, 1)
        tree.number = number
        for name in ("low",) if price < 10 else ("high",) if price > 100 else ():
            tree.children[name].send(number)
    return tree


@pytest.mark.parametrize("against", ["query", "aggregate"])
def test_a_newcomer_goes_to_the_child_that_gets_most_of_the_recent_documents_it_wants(against: Any) -> None:
    settings = replace(SETTINGS, join_against=against)
    tree = with_documents(1, 2, 50, 101, 102, 103)
    for query, child in (("Document: price < 3", "low"), ("Document: price > 101", "high")):
        assert {max_overlap_child(tree, [query, "not a filter ("], settings, Random(seed)) for seed in range(9)} == {
            child
        }


def test_with_few_documents_the_child_whose_filters_are_most_like_the_newcomers_is_chosen() -> None:
    tree = with_documents(1, 2)
    for query, child in ((PRICES["low"], "low"), (PRICES["high"], "high")):
        assert {max_overlap_child(tree, [query], SETTINGS, Random(seed)) for seed in range(9)} == {child}


def test_chance_decides_between_children_that_are_alike() -> None:
    tree = tree_with("a", "b", "c")
    assert {max_overlap_child(tree, ["Document"], SETTINGS, Random(seed)) for seed in range(30)} == {"a", "b", "c"}
