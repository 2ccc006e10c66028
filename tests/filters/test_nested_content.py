"""Content that nests as JSON does, and event types with levels, wherever filters meet them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from where_cases import TYPE_FILTERS, events, viewers, wheres

from earshot import DataSummary, Event, EventType, Filter, FilterIndex
from earshot.errors import EventError, FilterSyntaxError
from earshot.filters.language.event_types import type_includes, type_matches
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.protocols.common.local_subscriptions import could_match, event_types_of
from earshot.protocols.flooding import Flood
from earshot.wire import decode, encode
from sizes import sized

JAM = Event(
    type="traffic/a9/jam",
    content={
        "vehicle": {"speed": 18, "driver": {"name": "Ann"}},
        "tags": ["icy", "dark"],
        "lanes": [{"number": 1, "closed": True, "speed": 0}, {"number": 2, "closed": False, "speed": 40}],
        "depths": [[1, 2, 3], [4]],
        "empty": [],
    },
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("vehicle.speed > 10", True),
        ("vehicle.speed > 20", False),
        ('vehicle.driver.name = "Ann"', True),
        ("vehicle.driver", False),
        ('tags contains "icy"', True),
        ('tags = "icy" and tags = "dark"', True),
        ('tags contains "wet"', False),
        ("depths = 4", True),
        ("empty", False),
        ("lanes.closed = true and lanes.speed > 30", True),
        ("any(lanes, closed = true)", True),
        ("any(lanes, closed = true and speed > 30)", False),
        ("any(lanes, closed = false and speed > 30)", True),
        ("any(lanes, not closed = true)", True),
        ("not any(lanes, speed > 100)", True),
        ("any(empty, true)", False),
        ("any(nothing, true)", False),
        ('any(tags, value starts with "da")', True),
        ("any(vehicle, speed = 18 and any(driver, name = 'Ann'))", True),
        ("any(vehicle.driver, name = 'Ann')", True),
        ("traffic/a9/jam: vehicle.speed > 10", True),
        ("traffic/*/jam: any(lanes, number = 2)", True),
        ("traffic/**: true", True),
        ("**/jam: true", True),
        ("traffic/*: true", False),
        ("traffic/*/accident: true", False),
        ("/`traffic` or true", None),
    ],
)
def test_examples(text: str, holds: bool | None) -> None:
    if holds is None:
        with pytest.raises(FilterSyntaxError):
            Filter.parse(text)
        return
    filter = Filter.parse(text)
    assert filter.matches(JAM) is holds
    assert Filter.parse(str(filter)) == filter
    assert filter.explain(JAM).startswith("it matches" if holds else "it does not match")
    index = FilterIndex()
    index.add(0, filter)
    assert index.match(JAM) == ({0} if holds else set())
    index.remove(0)
    assert index.match(JAM) == set()


def test_an_xpath_filter_sees_nested_content_as_elements() -> None:
    event = Event(type="Jam", content=JAM.content)
    assert Filter.xpath('/Jam/lanes[closed = "true"][speed = 0]').matches(event)
    assert Filter.xpath("/Jam/vehicle/driver/name").matches(event)
    assert Filter.xpath("count(/Jam/tags) = 2").matches(event)


def test_an_element_is_an_item_too() -> None:
    event = Event.from_xml("<Jam><lane n='1'><closed>true</closed></lane><lane n='2'>x</lane></Jam>")
    assert Filter.where('any(lane, n = "1" and closed = "true")').matches(event)
    assert Filter.where('any(lane, n = "2" and value = "x")').matches(event)
    assert not Filter.where('any(lane, n = "2" and closed)').matches(event)


_lanes = st.lists(
    st.fixed_dictionaries({}, optional={"number": st.integers(1, 3), "closed": st.booleans(), "name": st.just("a")}),
    max_size=4,
)


@settings(max_examples=sized(200, 5_000))
@given(
    _lanes,
    st.lists(
        st.sampled_from(['closed = "true"', "number > 1", "number = 2", "not(number)", 'contains(name, "a")']),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from([" and ", " or "]),
)
def test_any_item_means_what_a_predicate_means_to_lxml(
    lanes: list[dict[str, object]], terms: list[str], word: str
) -> None:
    event = Event(type="Jam", content={"lanes": lanes})
    inner = word.join(terms)
    selected = etree.XPath(f"boolean(/Jam/lanes[{inner}])")(etree.fromstring(event.to_xml()))
    assert Filter.where(f"any(lanes, {inner})").matches(event) == selected


def test_places_and_paths_stay_outside_of_any() -> None:
    for inner in ("within 200 m", "approaching", "/a", "not /a", "inside circle(0, 0, 5)"):
        with pytest.raises(FilterSyntaxError, match="outside of it"):
            Filter.where(f"any(lanes, {inner})")


@pytest.mark.parametrize(
    ("general", "special", "covered"),
    [
        ("any(lanes, speed > 3)", "any(lanes, speed > 5 and closed = true)", True),
        ("lanes.speed > 3", "any(lanes, speed > 5 and closed = true)", True),
        ("any(lanes, speed > 5 and closed = true)", "lanes.speed > 5 and lanes.closed = true", False),
        ("lanes.speed > 3", "any(lanes, not speed <= 3)", False),
        ("any(lanes, speed > 3)", "any(roads, speed > 3)", False),
        ("traffic/**: true", "traffic/*/jam: speed > 3", True),
        ("traffic/*/jam: true", "traffic/a9/jam: true", True),
        ("traffic/*/jam: true", "traffic/**: true", False),
        ("traffic/*/jam: true", "traffic/*: true", False),
        ("*/*: true", "traffic/**: true", False),
        ("traffic/a9/jam: true", "traffic/*/jam: true", False),
        ("traffic/**: true", "/traffic", False),
    ],
)
def test_what_covers_what(general: str, special: str, covered: bool) -> None:
    assert Filter.parse(general).covers(Filter.parse(special)) is covered


_levels = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=2, max_size=4).map("/".join)
_types = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=5).map("/".join)


def _plainly(pattern: list[str], levels: list[str]) -> bool:
    """The same by definition."""
    if not pattern:
        return not levels
    if pattern[0] == "**":
        return any(_plainly(pattern[1:], levels[skipped:]) for skipped in range(len(levels) + 1))
    return bool(levels) and pattern[0] in ("*", levels[0]) and _plainly(pattern[1:], levels[1:])


@settings(max_examples=sized(500, 20_000))
@given(_levels, _levels, _types)
def test_levels_match_by_definition_and_inclusion_is_true(one: str, other: str, type: str) -> None:
    if "*" in one:
        assert type_matches(one, type) == _plainly(one.split("/"), type.split("/"))
    if type_includes(one, other) and type_matches(other, type):
        assert type_matches(one, type)


@settings(max_examples=sized(200, 5_000))
@given(st.lists(st.tuples(wheres, st.sampled_from([None, *TYPE_FILTERS])), min_size=1, max_size=4), events, viewers)
def test_summaries_never_lose_a_match(texts: list[tuple[str, str | None]], event: Event, viewer: object) -> None:
    filters = [Filter.where(text, type) for text, type in texts]
    summary = Summary.of(filters)
    recent = DataSummary(least_documents=1)
    recent.add(0, event)
    for filter in filters:
        if not filter.needs_viewer:
            assert recent.matching(filter) == int(filter.matches(event))
        if filter.matches(event, viewer):
            assert summary.may_match(event)
            assert summary.may_match_digest(Digest.of(event))
            assert could_match(filter, event.type)
            assert event.type in (event_types_of(filter) or [event.type])


@settings(max_examples=sized(200, 3_000))
@given(events)
def test_nested_content_survives_the_wire_and_json(event: Event) -> None:
    packet = Flood(event, 3)
    assert repr(decode(encode(packet))) == repr(packet)
    assert repr(Event.from_json(event.to_json())) == repr(event)


def test_content_nests_only_so_deep() -> None:
    deep: object = 1
    for _ in range(40):
        deep = {"a": deep}
    with pytest.raises(EventError, match="nests deeper than 16 levels"):
        Event(type="a", content=deep)  # type: ignore[arg-type]
    with pytest.raises(EventError, match="nests deeper than 16 levels"):
        Event.from_json(json.dumps({"type": "a", "content": {"b": deep}}))
    with pytest.raises(EventError, match="an object or a list of these"):
        Event(type="a", content={"b": [None]})


def test_a_schema_types_nested_content_by_its_dotted_names() -> None:
    schema = EventType("Jam", {"vehicle.speed": float, "tags": str})
    event = schema.event({"vehicle": {"speed": 18}, "tags": ["icy", "dark"]})
    assert event.fields == {"vehicle.speed": (18.0,), "tags": ("icy", "dark")}
