"""Data summaries: what recent documents say about filters, held to matching every one of them."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from where_cases import events, wheres
from xpath_cases import documents, queries

from earshot.errors import SettingsError
from earshot.events import Element, Event
from earshot.filters import Filter
from earshot.filters.summaries.data_summary import DataSummary
from earshot.geometry import Position
from sizes import sized


def summary_of(*texts: str, **bounds: int) -> DataSummary:
    summary = DataSummary(**{"least_documents": 1, **bounds})
    for number, text in enumerate(texts):
        summary.add(number, Event.from_xml(text))
    return summary


def found(summary: DataSummary, filter: str) -> tuple[Any, ...]:
    bitmap = summary.matching(Filter.parse(filter))
    assert bitmap is not None
    return summary.ids(bitmap)


TREES = (
    "<a><b><c/><d/></b></a>",
    "<a><b><c/></b><b><d/></b></a>",
    "<a><b><c/></b></a>",
    '<a><e id="1">x</e><e id="2">y</e></a>',
    "<f>x</f>",
)


@pytest.mark.parametrize(
    ("filter", "matching", "candidates"),
    [
        ("/a", (0, 1, 2, 3), (0, 1, 2, 3)),
        ("/a/b/c", (0, 1, 2), (0, 1, 2)),
        ("//d", (0, 1), (0, 1)),
        ("/a/*/c", (0, 1, 2), (0, 1, 2)),
        ("//*//d", (0, 1), (0, 1)),
        ("/a/b[c][d]", (0,), (0, 1)),
        ("/a[b/c][b/d]", (0, 1), (0, 1)),
        ("/a/b[not(d)]", (1, 2), (1, 2)),
        ("/a[not(b)]", (3,), (3,)),
        ("/a/e[@id]", (3,), (3,)),
        ("//@id", (3,), (3,)),
        ("/a/@id", (), ()),
        ("/f/text()", (4,), (4,)),
        ('/a/e[@id="1"]', (3,), (3,)),
        ('/a/e[@id="1"][.="y"]', (), (3,)),
        ('/*[.="x"]', (4,), (0, 1, 2, 3, 4)),
        ('//*[text()="x"]', (3, 4), (0, 1, 2, 3, 4)),
        ("/a/e[2]", (3,), (3,)),
        ("/a/e[3]", (), (3,)),
        ('/a[contains(e, "y")]', (), (3,)),
        ("/a/g", (), ()),
        ("a: //d", (0, 1), (0, 1)),
        ("f: //d", (), ()),
    ],
)
def test_a_twig_is_traced_over_the_places_of_all_documents(filter: str, matching: Any, candidates: Any) -> None:
    summary = summary_of(*TREES)
    assert found(summary, filter) == matching
    assert summary.ids(summary.candidates(Filter.parse(filter))) == candidates


@settings(max_examples=sized(150, 3_000))
@given(st.lists(documents, max_size=9), st.lists(queries, min_size=1, max_size=4), st.integers(1, 9))
def test_what_matches_is_what_every_kept_document_says_itself(
    texts: list[str], filters: list[str], capacity: int
) -> None:
    summary = DataSummary(documents=capacity)
    kept: list[tuple[int, Event]] = []
    for number, text in enumerate(texts):
        summary.add(number, event := Event.from_xml(text))
        kept = [*kept, (number, event)][-capacity:]
        if number % 3 == 0:
            summary.matching(Filter.xpath(filters[0]))
    for expression in filters:
        filter = Filter.xpath(expression)
        truth = tuple(number for number, event in kept if filter.matches(event))
        assert found(summary, str(filter)) == truth
        assert set(truth) <= set(summary.ids(summary.candidates(filter)))
        assert summary.selectivity(filter) == (len(truth) / len(kept) if kept else None)


@settings(max_examples=sized(150, 3_000))
@given(st.lists(events, max_size=9), wheres, st.sampled_from([None, "CD", "road/**"]))
def test_what_matches_of_typed_values_is_what_every_event_says_itself(
    drawn: list[Event], where: str, type: str | None
) -> None:
    summary = DataSummary()
    for number, event in enumerate(drawn):
        summary.add(number, event)
    filter = Filter.where(where, type)
    bitmap = summary.matching(filter)
    if any(word in str(filter) for word in ("within ", "approaching", "receding")):
        assert bitmap is None
    else:
        assert bitmap is not None
        assert summary.ids(bitmap) == tuple(n for n, event in enumerate(drawn) if filter.matches(event))


def test_overlap_is_the_share_of_the_documents_of_either_that_are_of_both() -> None:
    tangerine, imac = Filter.xpath('//computer[color="tangerine"]'), Filter.xpath('//computer[model="iMac"]')
    summary = DataSummary(least_documents=4)
    for number in range(3):
        summary.add(number, Event.from_xml("<computer><model>iMac</model><color>tangerine</color></computer>"))
    assert summary.overlap(tangerine, imac) is None
    assert tangerine.overlap(imac, summary) == tangerine.overlap(imac) < 1.0
    summary.add(3, Event.from_xml("<computer><model>iMac</model><color>lime</color></computer>"))
    assert summary.overlap(tangerine, imac) == 0.75
    assert tangerine.overlap(imac, summary) == imac.overlap(tangerine, summary) == 0.75
    assert summary.overlap(tangerine, Filter.xpath('//computer[color="lime"]')) == 0.0


def test_what_nobody_has_seen_or_depends_on_the_viewer_has_no_extensional_overlap() -> None:
    summary = summary_of(*TREES)
    assert summary.overlap(Filter.xpath("/g"), Filter.xpath("/h")) is None
    near = Filter.where("within 200 m")
    assert (summary.matching(near), summary.selectivity(near)) == (None, None)
    assert summary.overlap(near, Filter.xpath("/a")) is None
    assert summary.candidates(near) == summary.all
    assert near.overlap(near, summary) == 1.0


def test_the_oldest_documents_go_first_and_bits_name_the_rest() -> None:
    summary = DataSummary(documents=3, least_documents=3)
    assert (len(summary), summary.is_thin, summary.all) == (0, True, 0)
    for number in range(40):
        summary.add(f"d{number}", Event("Number", {"value": number}))
        kept = range(max(0, number - 2), number + 1)
        assert summary.ids(summary.all) == tuple(f"d{one}" for one in kept)
        assert found(summary, "value >= 0") == tuple(f"d{one}" for one in kept)
        assert found(summary, f"/Number[value = {number}]") == (f"d{number}",)
        assert summary.all.bit_length() <= 6
    assert ("d37" in summary, "d36" in summary) == (True, False)


def test_a_document_that_is_kept_already_changes_nothing() -> None:
    summary = summary_of("<a/>", "<b/>")
    summary.add(0, Event.from_xml("<c/>"))
    assert (len(summary), found(summary, "/a"), found(summary, "/c")) == (2, (0,), ())


def test_an_answer_is_given_anew_after_another_document() -> None:
    summary, filter = summary_of("<a/>"), Filter.xpath("/a")
    assert summary.matching(filter) == 0b1
    summary.add(1, Event.from_xml("<a/>"))
    assert summary.matching(filter) == 0b11


def test_many_places_and_values_cost_the_oldest_documents() -> None:
    wide = [Event("a", Element("a", {}, tuple(Element(f"e{n}-{k}") for k in range(30)))) for n in range(8)]
    summary = DataSummary(documents=8, vertices=130, least_documents=1)
    for number, event in enumerate(wide):
        summary.add(number, event)
    assert len(summary) == 8
    assert found(summary, "/a") == (6, 7)
    assert found(summary, "/a/e0-1") == ()
    assert found(summary, "/a/e7-1") == (7,)
    summary.add(8, Event("a", Element("a", {}, tuple(Element(f"f{k}") for k in range(200)))))
    assert found(summary, "/a") == ()
    summary.add(9, Event.from_xml("<a/>"))
    assert found(summary, "/a") == (9,)


def test_long_texts_are_not_kept_and_yet_found() -> None:
    long = "x" * 100
    summary = summary_of(f'<a k="{long}">{long}</a>', f"<a>{'y' * 100}</a>", "<a>z</a>")
    assert found(summary, f'/a[.="{long}"]') == (0,)
    assert found(summary, f'/a[@k="{long}"]') == (0,)
    assert found(summary, "/a/@k") == (0,)
    assert found(summary, '/a[.!="z"]') == (0, 1)
    flat = DataSummary()
    flat.add("one", Event("A", {"text": long}))
    assert found(flat, f'text = "{long}"') == ("one",)


def thicket(random: Random, levels: int) -> Element:
    inside = tuple(thicket(random, levels - 1) for _ in range(random.randint(0, 3))) if levels else ()
    attributes = {"id": str(random.randint(0, 40))} if random.random() < 0.3 else {}
    return Element(random.choice("abcd"), attributes, inside)


@pytest.mark.parametrize("first", ["//*//*", "//a//b", "//*", "//d", "//*[.//a]//*"])
def test_descendants_of_many_places_are_found_like_those_of_one(first: str) -> None:
    random = Random("thicket")
    roots = [thicket(random, 6) for _ in range(12)]
    summary = DataSummary()
    for number, root in enumerate(roots):
        summary.add(number, Event(root.name, root))
    for last in (
        "//a",
        "//c//d[not(*)]",
        "//*[a][b][c]",
        "//@id",
        '//@id[. = "7"]',
        "//b[@id > 20]",
        "//d/d/d/d",
        "//e",
    ):
        filter = Filter.xpath(first + last)
        truth = tuple(number for number, root in enumerate(roots) if filter.matches(Event(root.name, root)))
        assert found(summary, first + last) == truth, first + last


def test_deep_documents_and_many_descendant_steps_end() -> None:
    deep = "<a>" * 200 + "</a>" * 200
    summary = summary_of(deep)
    assert found(summary, "//*" * 12 + "//b") == ()
    assert found(summary, "//*" * 12) == (0,)


@pytest.mark.parametrize("name", ["documents", "vertices", "least_documents"])
def test_bounds_below_one_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be at least 1, got 0"):
        DataSummary(**{name: 0})


def test_a_condition_on_an_events_place_is_asked_of_each_document() -> None:
    summary = DataSummary(least_documents=1)
    for number, x_m in enumerate((500.0, 5.0, 50.0)):
        summary.add(number, Event("Car", {"speed": number}, position=Position(x_m, 0.0)))
    assert found(summary, "Car: inside circle(0, 0, 10)") == (1,)
    assert found(summary, "Car: not inside circle(0, 0, 10)") == (0, 2)
    assert found(summary, "Car: inside circle(0, 0, 100) and speed > 1") == (2,)
    assert found(summary, "Car: inside circle(0, 0, 10) or speed = 0") == (0, 1)
    assert summary.ids(summary.candidates(Filter.parse("Car: inside circle(0, 0, 10)"))) == (0, 1, 2)
    assert summary.matching(Filter.parse("Car: within 10 m")) is None


def test_answers_are_kept_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.filters.summaries.data_summary.MOST_ANSWERS", 2)
    summary = summary_of("<a><b/></a>", "<a/>")
    filters = [Filter.parse(text) for text in ("/a", "/a/b", "/c")]
    kept = []
    for filter in (*filters[:2], filters[0], filters[2]):
        assert summary.matching(filter) is not None
        kept.append(len(summary._answers))
    assert kept == [1, 2, 2, 1], "a known filter takes no place; one too many begins anew"
    assert [summary.matching(filter) for filter in filters] == [0b11, 0b01, 0]


def test_renumbered_documents_keep_their_own_values_and_places() -> None:
    """Bits are used again for later documents; what the earlier ones had there must not remain."""
    summary = DataSummary(documents=3, least_documents=1)
    kept: list[tuple[int, Event]] = []
    for number in range(30):
        kind = f"k{number * number % 7 % 4}"
        event = Event.from_xml(f'<N><{kind} at="{kind}">{kind}</{kind}><{kind}/></N>')
        summary.add(number, event)
        kept = [*kept, (number, event)][-3:]
        for each in ("k0", "k1", "k2", "k3"):
            for text in (f"/N/{each}", f'/N/{each}[@at="{each}"]', f'/N/{each}[. = "{each}"]', f"N: {each}"):
                filter = Filter.parse(text)
                assert found(summary, text) == tuple(one for one, event in kept if filter.matches(event)), text
                assert summary.ids(summary.candidates(filter)) == found(summary, text), text


def test_conditions_on_fields_are_combined_for_every_document() -> None:
    summary = DataSummary(least_documents=1)
    for number, (a, b) in enumerate(((1, 2), (1, 3), (0, 2))):
        summary.add(number, Event("T", {"a": a, "b": b}, position=Position(0.0, 0.0)))
    for text, matching, candidates in (
        ("T: true", (0, 1, 2), (0, 1, 2)),
        ("true", (0, 1, 2), (0, 1, 2)),
        ("T: a = 1 and b = 2", (0,), (0,)),
        ("T: a = 1 or b = 2", (0, 1, 2), (0, 1, 2)),
        ("T: not a = 1", (2,), (2,)),
        ("T: a = 1 and inside circle(9, 9, 1)", (), (0, 1)),
        ("T: a = 1 and not inside circle(9, 9, 1)", (0, 1), (0, 1)),
        ("T: a = 0 or inside circle(9, 9, 1)", (2,), (0, 1, 2)),
        ("U: true", (), ()),
        ("U/**: true", (), ()),
    ):
        assert found(summary, text) == matching, text
        assert summary.ids(summary.candidates(Filter.parse(text))) == candidates, text


def test_by_default_two_hundred_documents_are_kept_and_twenty_are_enough_to_judge_by() -> None:
    summary = DataSummary()
    thin = []
    for number in range(205):
        summary.add(number, Event("T", {"a": number}))
        thin.append(summary.is_thin)
    assert (len(summary), thin.index(False)) == (200, 19), "the twentieth document"


def test_what_an_element_has_twice_is_certain_only_for_single_conditions() -> None:
    summary = summary_of("<a><b x='1'/><b y='1'/></a>", "<a><b x='1' y='1'/></a>", "<a><b/></a>", "<a/>")
    for text, matching, candidates in (
        ("/a/b[@x]", (0, 1), (0, 1)),
        ("/a/b[@x][@y]", (1,), (0, 1)),
        ("/a/b[not(@x)]", (0, 2), (0, 2)),
        ("/a[not(b/@x)]", (2, 3), (2, 3)),
        ("/a/b[not(@x)][not(@y)]", (2,), (0, 2)),
        ("/a/b[@*]", (0, 1), (0, 1)),
        ("//@x", (0, 1), (0, 1)),
        ("/a/b/@x/.", (0, 1), (0, 1)),
    ):
        assert found(summary, text) == matching, text
        assert summary.ids(summary.candidates(Filter.parse(text))) == candidates, text


def test_texts_of_sixty_four_characters_are_kept_and_longer_ones_are_not() -> None:
    for size, certain in ((64, True), (65, False)):
        summary = summary_of(f"<a k='{'x' * size}'>{'x' * size}</a>", "<a k='y'>y</a>")
        for text in ('/a[. = "z"]', '/a[@k = "z"]'):
            assert found(summary, text) == ()
            assert summary.ids(summary.candidates(Filter.parse(text))) == (() if certain else (0,)), (text, size)
        flat = DataSummary()
        flat.add(0, Event("A", {"text": "x" * size}))
        assert flat.ids(flat.candidates(Filter.parse('text = "z"'))) == (() if certain else (0,))


def test_an_expression_is_certain_of_nothing_and_its_candidates_are_matched_one_by_one() -> None:
    summary = summary_of("<a><b/><b/></a>", "<a><b/></a>", "<c/>")
    assert found(summary, "/a[count(b) = 2]") == (0,)
    assert summary.ids(summary.candidates(Filter.parse("/a[count(b) = 2]"))) in ((0, 1), (0, 1, 2))


def test_what_only_dropped_documents_had_takes_no_room() -> None:
    summary = DataSummary(documents=2, least_documents=1)
    for number in range(40):
        summary.add(number, Event("N", {f"name{number}": f"text{number}", "same": f"text{number}"}))
        assert found(summary, f"N: name{number}") == (number,)
        assert found(summary, f"/N/name{number}") == (number,)
        assert found(summary, f'/N[same = "text{number}"]') == (number,)
    # Four documents, some of them dropped already: a name and its text for each, and a text of the name that all have.
    assert summary._fields.size <= 4 * 2 + 1 + 4
    assert summary._tree.size <= 1 + 4 * 2 + 1 + 4


def test_an_attribute_or_a_text_that_only_a_later_document_has_is_not_found_in_the_first() -> None:
    summary = summary_of("<a/>", '<a k="1"/>', "<a>x</a>")
    assert [found(summary, path) for path in ("/a", "/a/@k", "/a[@k]", "/a/text()", '/a[. = "x"]', "/a[not(@k)]")] == [
        (0, 1, 2), (1,), (1,), (2,), (2,), (0, 2),
    ]  # fmt: skip
    numbers = DataSummary(least_documents=1)
    for number, content in enumerate(({}, {"speed": 3}, {"speed": 9})):
        numbers.add(number, Event("Car", content))
    wheres = ("Car: true", "Car: speed", "Car: speed > 5", "Car: not speed")
    assert [found(numbers, where) for where in wheres] == [(0, 1, 2), (1, 2), (2,), (0,)]
