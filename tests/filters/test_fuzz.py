"""Whatever text comes, the parsers give a filter or a FilterSyntaxError, and nothing else."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from near_cases import neighbours
from where_cases import wheres
from xpath_cases import documents, queries

from earshot import Event, Filter, FilterIndex, Position
from earshot.errors import FilterSyntaxError
from sizes import sized

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PIECES = st.sampled_from(
    [
        *(
            "/",
            "//",
            "a",
            "b",
            "@id",
            "*",
            ".",
            "..",
            "[",
            "]",
            "(",
            ")",
            "=",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            ",",
            ":",
            "::",
        ),
        *("::", "and", "or", "not", "not(", "contains(", "starts-with(", "text()", "position()", "|", "+", "-", "$x"),
        *("1", "2.5", "-3", "'x'", '"', "'", "`", "#", "é", "\0", "\n", "price", "in", "1..2", "true", "false"),
        *("within", "200", "m", "km", "approaching", "inside", "circle(", "polygon("),
    ]
)
noise = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(PIECES, max_size=12).map(" ".join),
)


EVENTS = (
    Event(type="a", content={"price": 1}),
    Event(type="b", content={"a": "x", "in": 2.5, "m": True}, position=Position(0.0, 0.0)),
    Event.from_xml("<a id='1'><b>x</b><a><b id='x'>2.5</b></a></a>"),
)


def read(text: str, language: Callable[[str], Filter] = Filter.parse) -> Filter | None:
    """The filter, or None where the text is refused: with a column inside the text."""
    refused: FilterSyntaxError | None = None
    try:
        filter = language(text)
    except FilterSyntaxError as error:
        refused = error
    if refused is not None:
        assert 1 <= refused.column <= len(text) + 1
        assert refused.reason in str(refused)
        return None
    again = Filter.parse(str(filter))
    assert again == filter
    index = FilterIndex()
    index.add("it", again)
    for event in EVENTS:
        assert index.match(event) == ({"it"} if filter.matches(event) else set()), text
    return filter


@settings(max_examples=sized(500, 20_000))
@given(noise)
def test_noise(text: str) -> None:
    read(text)
    read(f"/a[{text}]")
    read(text, Filter.xpath)
    read(text, Filter.where)


@settings(max_examples=sized(300, 10_000))
@given(st.one_of(queries, wheres), st.data())
def test_a_filter_with_a_hole_or_a_splinter_in_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 5)))
    read(text[:start] + data.draw(st.one_of(st.just(""), PIECES, st.characters())) + text[end:])


REFUSED = ("has nothing below it", "is not supported", "is not a step")
"What lxml reads all the same: paths below an attribute, and functions that do not exist until they are called."


def is_xpath(text: str) -> bool:
    """Whether lxml reads it."""
    try:
        etree.XPath(text)
    except etree.XPathSyntaxError:
        return False
    return True


@settings(max_examples=sized(300, 10_000))
@given(neighbours(queries), documents)
def test_a_mutated_path_that_is_read_means_what_lxml_says(texts: tuple[str, str], document: str) -> None:
    for text in texts:
        refused = ""
        try:
            filter = Filter.xpath(text)
        except FilterSyntaxError as error:
            refused = error.reason
        if refused:
            assert any(reason in refused for reason in REFUSED) or not is_xpath(text), text
            continue
        assert filter.matches(Event.from_xml(document)) == bool(
            etree.ElementTree(etree.fromstring(document)).xpath(text)
        )
