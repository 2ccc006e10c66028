"""XPath expressions written by hand, on documents written by hand: lxml's answer is the truth for each pair."""

from __future__ import annotations

import math
from random import Random

import pytest
from lxml import etree
from xpath_predicates import DOCUMENTS, PREDICATES

from earshot import Event, Filter
from earshot.filters.language.evaluation import number_as_text
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


NUMBERS = [
    0.0, 1.0, 0.1, 1 / 3, 2 / 3, math.pi, 9.5, 10.25, 100.5, 99.99999999999999, 123456.789, 12345678.123456789,
    1e-4, 1.5e-5, 1e-5, 9.99e-6, 3e-7, 1e-300, 999999999.75, 1e9, 1e9 + 0.5, 1e10 + 0.25, 1e15, 1.5e16, 1.7e308,
    2.0**31 - 2, 2.0**31 - 1, 2.0**31, 2.0**53, math.inf, math.nan,
]  # fmt: skip


def test_a_number_becomes_the_text_that_lxml_writes() -> None:
    chance = Random(1)
    drawn = [chance.uniform(0.0, 1.0) * 10.0 ** chance.randint(-12, 16) for _ in range(300)]
    text_of = etree.XPath("string($number)")
    here = etree.Element("r")
    for number in (*NUMBERS, *drawn):
        for one in (number, -number):
            assert number_as_text(one) == text_of(here, number=one)


@pytest.mark.parametrize(
    "text",
    [
        "string(sum(//a)) = '0.333333333333333'",
        "string(sum(//b)) = '1.0000000005e+09'",
        "concat(1 div 3, '') = '0.333333333333333'",
        "concat(-2147483647, '') = '-2147483647'",
    ],
)
def test_a_number_that_was_computed_is_compared_as_lxml_compares_it(text: str) -> None:
    document = f"<r><a>{1 / 3!r}</a><b>1000000000.5</b></r>"
    assert bool(etree.fromstring(document).xpath(text)) is True
    assert Filter.xpath(f"/r[{text}]").matches(Event.from_xml(document))
