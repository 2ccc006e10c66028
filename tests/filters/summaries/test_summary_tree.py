"""The tree of a data summary: what its vertices know of each document, what they count, and what they forget."""

from __future__ import annotations

import pytest

from earshot import Event, Filter
from earshot.filters.summaries.data_summary import DataSummary
from earshot.filters.summaries.summary_tree import Bounds, SummaryTree, TextBitmaps, Vertex, _Descendants, union

LONG = "x" * 65
DOCUMENTS = (
    "<a k='x'><b>t</b><b/></a>",
    "<a k='y'><b>t</b><c/><c/></a>",
    f"<a k='{LONG}'/>",
)


def test_the_size_of_a_tree_counts_places_names_of_attributes_and_kept_texts() -> None:
    tree = SummaryTree()
    sizes = []
    for number, text in enumerate(DOCUMENTS):
        tree.add(Event.from_xml(text), 1 << number)
        sizes.append(tree.size)
    # a, its k and x, b and its two texts; then y, c and its empty text; then the empty text of a.
    assert sizes == [6, 9, 10]


def test_a_tree_forgets_the_documents_beside_the_mask_and_renumbers_all_it_knows_of_the_others() -> None:
    tree = SummaryTree()
    for number, text in enumerate(DOCUMENTS):
        tree.add(Event.from_xml(text), 1 << number)
    before = tree.places
    tree.retain(0b110, 1)
    assert tree.places is not before
    a = tree.document.children["a"]
    b, c = a.children["b"], a.children["c"]
    assert (a.documents, a.repeated, a.texts.documents, a.texts.unread) == (0b11, 0, 0b11, 0b01)
    assert (a.texts.by_text, a.attributes["k"].by_text) == ({"": 0b10}, {"y": 0b01})
    assert (a.attributes["k"].documents, a.attributes["k"].unread) == (0b11, 0b10)
    assert (b.documents, b.repeated, b.texts.by_text) == (0b01, 0, {"t": 0b01})
    assert (c.documents, c.repeated) == (0b01, 0b01)
    assert tree.size == 8, "a, k, y and the empty text; b and its text; c and its text"
    tree.retain(0b10, 1)
    assert (list(a.children), list(a.attributes), tree.size) == ([], ["k"], 3)


def test_texts_know_which_documents_have_them_and_which_have_one_that_was_not_kept() -> None:
    texts = TextBitmaps()
    grown = [texts.note(*one) for one in (("x", 1, True), ("y", 1, True), ("x", 2, True), (LONG, 4, False))]
    assert (grown, texts.documents, texts.unread) == ([True, True, False, 0], 0b111, 0b100)
    assert texts.passing(lambda text: text == "x") == Bounds(0b011, 0b111)
    assert texts.passing(lambda text: text == "y") == Bounds(0b001, 0b101)
    assert texts.passing(lambda text: text == "z") == Bounds(0, 0b100)
    assert texts.retain(0b110, 1) == 1
    assert (texts.by_text, texts.documents, texts.unread) == ({"x": 0b01}, 0b11, 0b10)


def test_either_of_several_bounds_may_hold() -> None:
    assert union([Bounds(0b001, 0b011), Bounds(0b100, 0b100), Bounds(0, 0b001)]) == Bounds(0b101, 0b111)
    assert union([]) == Bounds(0, 0)


def test_the_places_below_a_place_are_a_range_whatever_their_names() -> None:
    tree = SummaryTree()
    tree.add(Event.from_xml("<a><b><c/><b><c/></b></b><d/></a>"), 1)
    places = tree.places
    a = tree.document.children["a"]
    outer, d = a.children["b"], a.children["d"]
    inner, first_c = outer.children["b"], outer.children["c"]
    last_c = inner.children["c"]

    def below(vertex: Vertex, name: str) -> set[Vertex]:
        return set(places.below(vertex, name))

    assert [below(one, "c") for one in (tree.document, a, outer, inner, d)] == [
        {first_c, last_c}, {first_c, last_c}, {first_c, last_c}, {last_c}, set(),
    ]  # fmt: skip
    assert [below(one, "b") for one in (a, outer, inner)] == [{outer, inner}, {inner}, set()]
    assert [below(one, "*") for one in (a, outer, inner, last_c)] == [
        {outer, d, inner, first_c, last_c}, {inner, first_c, last_c}, {last_c}, set(),
    ]  # fmt: skip
    assert below(a, "z") == set()
    assert (tree.document.start, tree.document.end) == (0, len(places.all)) == (0, 7)
    assert tree.places is places, "they are found once"


@pytest.mark.parametrize(("name", "and_self"), [("*", False), ("a", False), ("b", False), ("z", False), ("*", True)])
@pytest.mark.parametrize("upwards", [False, True])
def test_what_is_found_below_many_places_is_asked_of_each_once(name: str, and_self: bool, upwards: bool) -> None:
    """First places are gathered one by one; there are more of them than a budget of all places allows."""
    tree = SummaryTree()
    tree.add(Event.from_xml("<a><b>" * 6 + "<c/><d><a/></d>" + "</b></a>" * 6), 1)
    places = tree.places
    named = places.by_name.get(name, []) if name != "*" else places.all
    asked: list[int] = []

    def look(vertex: Vertex) -> Bounds:
        asked.append(vertex.start)
        return Bounds(0, 1 << vertex.start)

    found = _Descendants(places, name, look, and_self)
    for vertex in reversed(places.all) if upwards else places.all:
        below = [one.start for one in named if vertex.start + (not and_self) <= one.start < vertex.end]
        assert found(vertex) == Bounds(0, sum(1 << start for start in below))
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    ("texts", "filter", "size"),
    [
        ([f"<a><e{number}/></a>" for number in range(8)], "/a", 1 + 8 * 2),
        ([f"<a k='{number}'/>" for number in range(8)], "/a", 1 + 1 + 1 + 8),
    ],
)
def test_documents_are_dropped_by_quarters_once_a_tree_has_more_than_its_places_and_values(
    texts: list[str], filter: str, size: int
) -> None:
    for vertices, kept in ((size, 8), (size - 1, 6)):
        summary = DataSummary(vertices=vertices)
        for number, text in enumerate(texts):
            summary.add(number, Event.from_xml(text))
        found = summary.matching(Filter.parse(filter))
        assert found is not None
        assert (summary.ids(found), len(summary)) == (tuple(range(8 - kept, 8)), kept)


def test_documents_are_dropped_by_quarters_once_there_are_more_fields_and_values_than_places() -> None:
    for vertices, kept in ((16, 8), (15, 6), (11, 5), (8, 4), (7, 3), (5, 2)):
        summary = DataSummary(vertices=vertices)
        for number in range(8):
            summary.add(number, Event("T", {f"n{number}": number}))
        found = summary.matching(Filter.where("n7 = 7"))
        assert found is not None
        assert (summary.ids(found), len(summary)) == ((7,), kept), vertices


def test_a_thousand_and_twenty_four_answers_are_remembered() -> None:
    summary = DataSummary()
    summary.add(0, Event("T"))
    filters = [Filter.of_type(f"T{number}") for number in range(1025)]
    counts = []
    for filter in filters:
        summary.matching(filter)
        counts.append(len(summary._answers))
    assert counts == [*range(1, 1025), 1]
