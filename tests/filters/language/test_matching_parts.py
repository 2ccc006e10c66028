"""How far a filter reaches, what it asks of the consumer, and what is kept of an event that many filters ask."""

from __future__ import annotations

import pytest

from earshot import Event, Filter, Position, Velocity, Viewer
from earshot.filters.language.matching import DocumentWords, closing_m_s, nodes_of, words_of
from earshot.filters.language.nodes import ATTRIBUTE, DOCUMENT, ELEMENT, TEXT_NODE
from earshot.filters.language.syntax import LocationPath


@pytest.mark.parametrize(
    ("filter", "reach_m"),
    [
        ("within 200 m", 200.0),
        ("within 2 km", 2000.0),
        ("within 200 m and within 50 m and v = 1", 50.0),
        ("within 200 m or within 50 m", 200.0),
        ("within 200 m or v = 1", None),
        ("(within 200 m or within 50 m) and within 100 m", 100.0),
        ("(within 200 m or v = 1) and approaching", None),
        ("v = 1", None),
        ("not within 200 m", None),
        ("place within 200 m", None),
        ("approaching", None),
    ],
)
def test_a_filter_reaches_as_far_as_its_distances_allow(filter: str, reach_m: float | None) -> None:
    assert Filter.where(filter).reach_m == reach_m


@pytest.mark.parametrize(
    ("filter", "without"),
    [
        ("v = 1 and within 200 m", "v = 1"),
        ("v = 1 and (w = 2 and approaching)", "v = 1 and w = 2"),
        ("v = 1 or approaching", "true"),
        ("v = 1 or (w = 2 and receding)", "v = 1 or w = 2"),
        ("v = 1 and not within 200 m", "v = 1"),
        ("v = 1 and not (w = 2 and within 5 m)", "v = 1"),
        ("v = 1 and not w = 2 and within 5 m", "v = 1 and not w = 2"),
        ("v = 1 and place within 5 m", "v = 1"),
        ("place inside circle(0, 0, 5) and within 5 m", "place inside circle(0, 0, 5)"),
        ("inside circle(0, 0, 5) and approaching place", "inside circle(0, 0, 5)"),
    ],
)
def test_a_filter_without_its_terms_about_the_consumer_keeps_the_others(filter: str, without: str) -> None:
    asked, expected = Filter.where(filter), Filter.where(without)
    assert (asked.needs_viewer, asked.without_viewer_terms()) == (True, expected)
    assert (expected.needs_viewer, expected.without_viewer_terms() is expected) == (False, True)


EAST = Velocity(3.0, 0.0)


@pytest.mark.parametrize(
    ("position", "velocity", "viewer", "closing"),
    [
        (Position(0.0, 0.0), EAST, Viewer(Position(90.0, 0.0)), 3.0),
        (Position(0.0, 0.0), EAST, Viewer(Position(-90.0, 0.0)), -3.0),
        (Position(0.0, 0.0), EAST, Viewer(Position(90.0, 0.0), Velocity(5.0, 0.0)), -2.0),
        (Position(0.0, 0.0), None, Viewer(Position(90.0, 0.0), Velocity(5.0, 0.0)), -5.0),
        (Position(0.0, 0.0), EAST, Viewer(Position(0.0, 90.0)), 0.0),
        (None, EAST, Viewer(Position(90.0, 0.0)), 0.0),
        (Position(0.0, 0.0), EAST, None, 0.0),
    ],
)
def test_a_consumer_and_a_source_close_in_by_both_their_movements(
    position: Position | None, velocity: Velocity | None, viewer: Viewer | None, closing: float
) -> None:
    event = Event("T", position=position, velocity=velocity)
    assert closing_m_s(event, viewer) == pytest.approx(closing)
    assert Filter.where("approaching").matches(event, viewer) is (closing > 0)
    assert Filter.where("receding").matches(event, viewer) is (closing < 0)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/a/b", {"a", "b"}),
        ("//a/*/@id", {"a", "id"}),
        ("/a/text()", {"a"}),
        ("/a[b]/c", {"a", "b", "c"}),
        ('/a[@id = "5"]', {"a", "id", ("id", "5")}),
        ("/a[@id = 5]", {"a", "id", ("id", 5.0)}),
        ('/a[b/@id = "5"]', {"a", "b", "id", ("id", "5")}),
        ("/a[@id > 5]", {"a", "id"}),
        ('/a[@* = "5"]', {"a"}),
        ('/a[b = "5"]', {"a", "b"}),
        ("/a[b or c]", {"a"}),
        ("/a[not(b)]", {"a"}),
        ('/a[contains(b, "x")]', {"a"}),
        ("/a/b[2]", {"a", "b"}),
    ],
)
def test_a_path_needs_its_names_and_the_attributes_it_compares(path: str, words: set[object]) -> None:
    condition = Filter.xpath(path).condition
    assert isinstance(condition, LocationPath)
    assert words_of(condition) == words


def test_a_document_has_its_names_and_its_attributes_with_their_texts_and_numbers() -> None:
    words = DocumentWords(Event.from_xml('<a id="5.0"><b k="x"/><c><b id="7"/></c></a>').root)
    assert words.words == {
        *("a", "b", "c", "id", "k", ("id", "5.0"), ("id", 5.0), ("k", "x"), ("id", "7"), ("id", 7.0)),
    }
    assert {name: len(found) for name, found in words.by_name.items()} == {"a": 1, "b": 2, "c": 1}


def test_the_words_of_a_document_are_gathered_when_the_sixteenth_path_asks() -> None:
    event = Event.from_xml("<a><b/><c><b>x</b></c></a>")
    gathered = []
    for number in range(20):
        assert Filter.xpath(f'//b[. = "x" or . = "{number}"]').matches(event)
        gathered.append("_words" in event.__dict__)
    assert gathered == [False] * 15 + [True] * 5


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("//b", True),
        ("//b/d", False),
        ("//b[2]", False),
        ("//b[. = 'x']", True),
        ("//b[. = 'z']", False),
        ("//@k", True),
        ("//*[@k = 'y']/b", False),
        ("//*[@k = 'v']/b", True),
        ("//c//b", True),
        ("/a/c/b", True),
        ("/a/b/c", False),
        ("//z", False),
        ("//*/b[1]", True),
    ],
)
def test_a_path_is_answered_alike_before_and_after_the_words_are_gathered(path: str, expected: bool) -> None:
    event = Event.from_xml("<a><b/><c k='v'><b>x</b></c></a>")
    filter = Filter.xpath(path)
    assert [filter.matches(event) for _ in range(20)] == [expected] * 20


# The numbered nodes of a document.


def test_nodes_are_numbered_in_document_order_attributes_after_their_element() -> None:
    event = Event.from_xml('<a i="1" j="2">t<b k="3"><c/></b><b>u</b></a>')
    nodes = nodes_of(event)
    assert nodes.kinds == [
        DOCUMENT, ELEMENT, ATTRIBUTE, ATTRIBUTE, TEXT_NODE, ELEMENT, ATTRIBUTE, ELEMENT, ELEMENT, TEXT_NODE,
    ]  # fmt: skip
    assert nodes.names == ["", "a", "i", "j", "", "b", "k", "c", "b", ""]
    assert nodes.parents == [-1, 0, 1, 1, 1, 1, 5, 5, 1, 8]
    assert nodes.ends == [9, 9, 2, 3, 4, 7, 6, 7, 9, 9]
    assert nodes.by_name == {"a": [1], "b": [5, 8], "c": [7]}
    assert [nodes.text(node) for node in (0, 2, 4, 5, 8)] == ["tu", "1", "t", "", "u"]
    assert nodes_of(event) is nodes
