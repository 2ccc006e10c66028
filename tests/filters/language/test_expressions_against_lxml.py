"""XPath expressions written by hand, on documents written by hand: lxml's answer is the truth for each pair."""

from __future__ import annotations

import pytest
from lxml import etree
from xpath_predicates import DOCUMENTS, PREDICATES

from earshot import Event, Filter
from earshot.filters.language.matching import words_of
from earshot.filters.language.paths import LocationPath


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_predicate_answers_as_lxml_does(predicate: str) -> None:
    trees = [etree.ElementTree(etree.fromstring(text)) for text in DOCUMENTS]
    for form in ("/r[{}]", "/*[not({})]", "//*[{}]", "/r[c][{}]"):
        text = form.format(predicate)
        filter = Filter.xpath(text)
        expected = [bool(tree.xpath(f"boolean({text})")) for tree in trees]
        assert [filter.matches(Event.from_xml(one)) for one in DOCUMENTS] == expected, text


def conditions(text: str) -> LocationPath:
    condition = Filter.xpath(text).condition
    assert isinstance(condition, LocationPath)
    return condition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/r/a", {"r", "a"}),
        ("/r/*/@k", {"r", "k"}),
        ("/r[@k = 'v']", {"r", "k", ("k", "v")}),
        ("/r[@k = 5]", {"r", "k", ("k", 5.0)}),
        ("/r[@k != 'v']", {"r", "k"}),
        ("/r[@* = 'v']", {"r"}),
        ("/r[a = 'v']", {"r", "a"}),
        ("/r[a and @k = 'v']/b", {"r", "a", "b", "k", ("k", "v")}),
        ("/r[a or b]", {"r"}),
        ("/r[not(a)]", {"r"}),
    ],
)
def test_a_path_needs_these_words_of_a_document(text: str, expected: set[object]) -> None:
    assert words_of(conditions(text)) == expected
