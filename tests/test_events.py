from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot import Area, Circle, Element, Event, EventType, Position, Velocity
from earshot.errors import ContentMismatch, EventError
from earshot.events import _JSON_EXAMPLE, _JSON_EXAMPLES, Value, value_of, value_text, with_quality
from earshot.quality import Quality
from sizes import sized

CD = EventType("CD", {"title": str, "price": float, "tracks": int, "live": bool, "at": datetime, "shop": Position})
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CONTENT: dict[str, Value] = {
    "title": "Kind of Blue",
    "price": 18.0,
    "tracks": 5,
    "live": False,
    "at": NOON,
    "shop": Position(1.0, 2.5),
}


def test_flat_content_is_seen_as_fields_and_as_a_tree() -> None:
    event = Event(type="CD", content=CONTENT)
    assert event.fields == {name: (value,) for name, value in CONTENT.items()}
    assert event.root == Element(
        "CD",
        {},
        (
            Element("title", {}, ("Kind of Blue",)),
            Element("price", {}, ("18",)),
            Element("tracks", {}, ("5",)),
            Element("live", {}, ("false",)),
            Element("at", {}, ("2026-01-31T12:00:00+00:00",)),
            Element("shop", {}, ("1,2.5",)),
        ),
    )


def test_an_empty_text_is_an_empty_element() -> None:
    assert Event(type="CD", content={"title": ""}).root == Element("CD", {}, (Element("title"),))


def test_a_documents_fields_are_its_attributes_and_leaves() -> None:
    event = Event.from_xml("<CD id='7' n='1'><n>2</n><track><n>9</n></track><n>3</n><empty/>text</CD>")
    assert event.fields == {"id": ("7",), "n": ("1", "2", "3"), "empty": ("",)}


def test_a_documents_many_leaves_of_one_name_are_read_in_one_go() -> None:
    event = Event.from_xml("<CD>" + "<n/>" * 90_000 + "</CD>")
    assert len(event.fields["n"]) == 90_000


def test_an_elements_text_is_all_the_text_below_it_in_order() -> None:
    tree = Element("a", {}, ("1", Element("b", {}, ("2", Element("c", {}, ("3",)), "4")), "5"))
    assert tree.text == "12345"
    assert tree.elements == (tree.children[1],)
    assert Element("a").text == ""


@pytest.mark.parametrize("content", [{}, {"x": 1}, Element("CD", {"id": "7"}, ("text", Element("x")))])
def test_an_event_comes_back_from_the_wire(content: dict[str, Value] | Element) -> None:
    event = Event(type="CD", content=content, id="e1", position=Position(1, 2), area=Area(Circle(5), Position(3, 4)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=Event) == event


def test_typed_content_comes_back_from_the_wire() -> None:
    event = Event(type="CD", content=CONTENT)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=Event).content == CONTENT


def test_a_time_without_a_zone_is_in_utc() -> None:
    given_content = {"at": datetime(2026, 1, 31, 12)}
    assert Event(type="CD", content=given_content).content == {"at": NOON}
    assert given_content == {"at": datetime(2026, 1, 31, 12)}


def test_a_value_of_a_derived_type_is_a_plain_one() -> None:
    class Level(IntEnum):
        HIGH = 3

    (value,) = Event(type="Alarm", content={"level": Level.HIGH}).fields["level"]
    assert (value, type(value)) == (3, int)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"x": None}, "'x' must be one of integer, float, string"),
        ({"x": b"bytes"}, "'x' must be one of"),
        ({"x": [1, 2, None]}, "'x' must be one of"),
        ({"x": {"y": b"1"}}, "'y' must be one of"),
        ({"x": {5: 1}}, "names in content must be texts"),
        ({"x": 2**64}, "'x' must be an integer of at most 64 bits"),
        ({"x": -(10**400)}, "'x' must be an integer of at most 64 bits"),
        ({5: 1}, "names in content must be texts"),
        (["x"], "a dict of named values or an Element"),
        (Element("DVD"), "the root element 'DVD' must name the event type 'CD'"),
    ],
)
def test_content_that_cannot_be_is_refused(content: object, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        Event(type="CD", content=content)  # type: ignore[arg-type]


@pytest.mark.parametrize("type", ["", None, 5])
def test_an_event_needs_a_type(type: object) -> None:
    with pytest.raises(EventError, match="needs a type"):
        Event(type=type)  # type: ignore[arg-type]


def test_stamping_fills_in_what_the_node_knows() -> None:
    event = Event(type="CD", content={"x": 1}, lifespan_s=3.0)
    stamped = event.stamped(id="n1-1", source="n1", time=7.5, position=Position(1, 2), velocity=Velocity(3, 4))
    assert stamped == Event(
        type="CD",
        content={"x": 1},
        id="n1-1",
        source="n1",
        time=7.5,
        position=Position(1, 2),
        velocity=Velocity(3, 4),
        lifespan_s=3.0,
    )


# JSON.

values = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(),
    st.booleans(),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=30))])).map(
        lambda time: time.replace(fold=0)
    ),
    st.builds(Position, st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e9, 1e9)),
)


@settings(max_examples=sized(200, 5_000))
@given(
    st.text(min_size=1),
    st.dictionaries(st.text(), values, max_size=4),
    st.one_of(st.none(), st.builds(Position, st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))),
    st.floats(0, 1e12),
)
def test_json_gives_the_same_event_back(
    type: str, content: dict[str, Value], position: Position | None, time: float
) -> None:
    event = Event(type=type, content=content, position=position, time=time, area=position and Area(Circle(9), position))
    again = Event.from_json(event.to_json())
    assert repr(again.content) == repr(event.content)  # NaN is not equal to itself
    assert msgspec.structs.replace(again, content={}) == msgspec.structs.replace(event, content={})


def test_a_document_travels_in_json_as_xml() -> None:
    event = Event.from_xml("<CD id='7'>a<b>c</b>d<!-- x -->e</CD>", id="e1", lifespan_s=3.0)
    assert Event.from_json(event.to_json()) == event


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "there is no event: the text is empty"),
        (b"\xef\xbb\xbf \n", "there is no event: the text is empty"),
        ("[]", "Expected `object`, got `array`"),
        ("[" * 100_000, "not an event in JSON"),
        ("{}", "missing required field `type`"),
        ('{"type": ""}', "needs a type"),
        ('{"type": 5}', "Expected `str`"),
        (
            '{"type": "CD", "colour": 1}',
            "unknown field `colour`; there are: type, content, xml, id, source, ",
        ),
        ('{"type": "CD", "position": [0, 0]}', r'as in {"type": "CD", "position": {"x_m": 0, "y_m": 0}}: Expected'),
        (
            '{"type": "CD", "position": {"x": 0}}',
            r'{"x_m": 0, "y_m": 0}}: Object contains unknown field `x`',
        ),
        ('{"type": "CD", "velocity": 3}', r'as in {"type": "CD", "velocity": {"x_m_s": 3, "y_m_s": 0}}: Expected'),
        ('{"type": "CD", "area": "circle"}', r'"area": {"shape": "circle:300m", "x_m": 0, "y_m": 0}}: Expected'),
        ('{"type": "CD", "content": {"x": null}}', "'x' is null, which content cannot hold: leave the name out"),
        ('{"type": "CD", "content": {"x": [null]}}', "'x' is null"),
        ('{"type": "CD", "content": {"x": {"time": "noon"}}}', "'x' is not a time: 'noon'"),
        ('{"type": "CD", "content": {"x": 1e999}}', "out of range"),
        ('{"type": "CD", "content": {}, "xml": "<CD/>"}', "not both"),
        ('{"type": "CD", "xml": "<DVD/>"}', "must name the event type"),
        ('{"type": "CD", "position": {"x_m": "east", "y_m": 0}}', "Expected `float`"),
        ('{"type": "CD", "area": {"shape": "blob:3m"}}', "cannot read the shape"),
        (b"\xff\xfe", "not an event in JSON"),
    ],
)
def test_json_that_is_no_event_is_refused(document: str | bytes, reason: str) -> None:
    with pytest.raises(Exception, match=reason) as refused:
        Event.from_json(document)
    assert isinstance(refused.value, EventError) or "shape" in reason


def test_json_may_begin_with_a_byte_order_mark_and_its_examples_are_events() -> None:
    plain = '{"type": "CD", "content": {"price": 18}}'
    for document in ("\ufeff" + plain, ("\ufeff" + plain).encode()):
        assert Event.from_json(document) == Event("CD", {"price": 18})
    for example in (_JSON_EXAMPLE, *_JSON_EXAMPLES.values()):
        assert Event.from_json(example).type == "CD"


# Event types.


def test_a_type_reads_texts_as_its_content_types() -> None:
    texts = {"title": "1", "price": " 18 ", "tracks": "5", "live": "TRUE", "at": "2026-01-31T12:00", "shop": "1, 2.5"}
    assert CD.event(texts).content == {
        "title": "1",
        "price": 18.0,
        "tracks": 5,
        "live": True,
        "at": NOON,
        "shop": Position(1.0, 2.5),
    }


def test_a_type_takes_a_whole_number_for_a_float() -> None:
    (price,) = CD.event(CONTENT | {"price": 18}).fields["price"]
    assert (price, type(price)) == (18.0, float)


def test_a_type_gives_a_documents_values_their_types() -> None:
    event = Event.from_xml("<P x='1'><y>2.5</y><y>3</y></P>", EventType("P", {"x": "integer", "y": "float"}))
    assert event.fields == {"x": (1,), "y": (2.5, 3.0)}
    assert event.root == Event.from_xml("<P x='1'><y>2.5</y><y>3</y></P>").root


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"price": "cheap"}, "'price' must be float, got 'cheap'"),
        ({"price": "nan"}, "'price' must be float"),
        ({"price": "1_0"}, "'price' must be float"),
        ({"tracks": "5.0"}, "'tracks' must be integer"),
        ({"tracks": "٣"}, "'tracks' must be integer"),
        ({"tracks": 5.0}, "'tracks' must be integer, got float 5.0"),
        ({"tracks": True}, "'tracks' must be integer, got boolean True"),
        ({"live": "yes"}, "'live' must be boolean"),
        ({"at": "noon"}, "'at' must be time"),
        ({"shop": "1"}, "'shop' must be position"),
        ({"shop": "1,2,3"}, "'shop' must be position"),
        ({"shop": "1,inf"}, "'shop' must be position"),
        ({"title": 5}, "'title' must be string, got integer 5"),
        ({"colour": "red"}, "has an unknown 'colour'"),
    ],
)
def test_content_that_differs_from_its_type_is_refused(change: dict[str, Value], reason: str) -> None:
    with pytest.raises(ContentMismatch, match=reason):
        CD.event(CONTENT | change)


def test_content_that_lacks_a_value_is_refused() -> None:
    with pytest.raises(ContentMismatch, match="the event lacks 'title' and lacks 'live'"):
        CD.event({name: value for name, value in CONTENT.items() if name not in ("title", "live")})


def test_an_event_of_another_type_is_refused() -> None:
    with pytest.raises(ContentMismatch, match="an event of type 'DVD' is not of type 'CD'"):
        CD.read(Event(type="DVD", content=CONTENT))


def test_types_are_equal_by_what_they_say() -> None:
    same = EventType("CD", {**CD.content})
    assert (same, hash(same)) == (CD, hash(CD))
    assert EventType("CD", {"title": "string"}) == EventType("CD", {"title": str})
    assert EventType("CD") != CD


@pytest.mark.parametrize("content", [{"x": "number"}, {"x": list}, {"x": None}])
def test_a_type_knows_six_content_types(content: dict[str, object]) -> None:
    with pytest.raises(EventError, match="a content type is one of integer, float, string, boolean, time, position"):
        EventType("CD", content)


def test_a_type_needs_a_subject() -> None:
    with pytest.raises(EventError, match="needs a subject"):
        EventType("")


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (3, "3"), (3.0, "3"), (0.1, "0.1"), (1e300, "1e+300"), (NOON, NOON.isoformat()), ("x", "x")],
)
def test_a_value_is_written_as_text(value: Value, text: str) -> None:
    assert value_text(value) == text


@given(
    st.one_of(
        st.tuples(st.just("float"), st.floats(allow_nan=False, allow_infinity=False)),
        st.tuples(st.just("integer"), st.integers()),
        st.tuples(st.just("boolean"), st.booleans()),
        st.tuples(st.just("time"), st.datetimes(timezones=st.just(UTC))),
    )
)
def test_a_values_text_reads_back_as_the_value(typed: tuple[str, Value]) -> None:
    type_name, value = typed
    assert value_of(type_name, value_text(value)) == value


# Nested content.

ORDER: dict[str, object] = {
    "customer": {"name": "Ada", "address": {"city": "Vienna"}},
    "lines": [{"article": "tea", "count": 2}, {"article": "milk", "count": 1}],
    "codes": [3, [5, 7]],
    "total": 9.5,
}


def test_nested_content_has_names_with_dots_and_lists_give_several_values() -> None:
    event = Event("Order", ORDER)
    assert event.is_nested
    assert event.fields == {
        "customer.name": ("Ada",),
        "customer.address.city": ("Vienna",),
        "lines.article": ("tea", "milk"),
        "lines.count": (2, 1),
        "codes": (3, Position(5.0, 7.0)),
        "total": (9.5,),
    }
    assert event.root.elements[1] == Element(
        "lines", {}, (Element("article", {}, ("tea",)), Element("count", {}, ("2",)))
    )
    assert [child.name for child in event.root.elements] == ["customer", "lines", "lines", "codes", "codes", "total"]


def test_flat_content_and_documents_are_not_nested() -> None:
    assert [Event("CD", content).is_nested for content in ({}, {"price": 3}, Element("CD"))] == [False, False, False]
    assert [Event("CD", {"a": value}).is_nested for value in ({"b": 1}, ["b"])] == [True, True]


def test_the_items_of_a_list_are_events_with_their_own_content() -> None:
    event = Event("Order", ORDER)
    assert event.items("lines") == (
        Event("Order", {"article": "tea", "count": 2}), Event("Order", {"article": "milk", "count": 1}),
    )  # fmt: skip
    assert event.items("customer.address") == (Event("Order", {"city": "Vienna"}),)
    assert event.items("customer.name") == (Event("Order", {"value": "Ada"}),)
    assert [one.content["value"] for one in event.items("codes")] == [3, Position(5.0, 7.0)]  # type: ignore[index]
    assert (event.items("line"), event.items("lines.article.x"), event.items("custom.er")) == ((), (), ())
    assert event.items("lines") is event.items("lines"), "they are made once"


def test_the_items_of_a_document_are_its_elements() -> None:
    event = Event.from_xml("<Order><line n='1'>tea</line><line><article>milk</article></line><to><x>1</x></to></Order>")
    tea, milk = event.items("line")
    assert tea == Event("Order", {"n": "1", "value": "tea"})
    assert milk == Event("line", Element("line", {}, (Element("article", {}, ("milk",)),)))
    assert event.items("to.x") == (Event("Order", {"value": "1"}),)


def nested(levels: int) -> dict[str, object]:
    """Content with so many levels."""
    return {"x": nested(levels - 1)} if levels > 1 else {"x": 1}


def test_content_nests_sixteen_levels_deep() -> None:
    deepest = Event("A", nested(16))
    assert list(deepest.fields) == [".".join("x" * 16)]
    assert Event.from_json(deepest.to_json()) == deepest
    with pytest.raises(EventError, match="'x' nests deeper than 16 levels"):
        Event("A", nested(17))
    with pytest.raises(EventError, match="'x' nests deeper than 16 levels"):
        Event.from_json(msgspec.json.encode({"type": "A", "content": nested(17)}))


def test_lists_count_as_levels_too() -> None:
    def inside(lists: int) -> object:
        return [inside(lists - 1)] if lists else "deep"

    assert Event("A", {"x": inside(15)}).fields == {"x": ("deep",)}
    assert Event.from_json(msgspec.json.encode({"type": "A", "content": {"x": inside(15)}})).fields == {"x": ("deep",)}
    with pytest.raises(EventError, match="'x' nests deeper than 16 levels"):
        Event("A", {"x": inside(16)})
    with pytest.raises(EventError, match="'x' nests deeper than 16 levels"):
        Event.from_json(msgspec.json.encode({"type": "A", "content": {"x": inside(16)}}))


@pytest.mark.parametrize("value", [-(2**63), 2**64 - 1])
def test_the_largest_whole_numbers_of_the_wire_are_content(value: int) -> None:
    assert Event("A", {"n": value}).fields == {"n": (value,)}
    assert Event("A", {"n": [value, 0, 0]}).fields == {"n": (value, 0, 0)}
    with pytest.raises(EventError, match="at most 64 bits"):
        Event("A", {"n": value - 1 if value < 0 else value + 1})
    with pytest.raises(EventError, match="at most 64 bits"):
        Event("A", {"n": [value - 1 if value < 0 else value + 1, 0, 0]})


def test_an_area_in_json_lies_at_the_origin_if_it_does_not_say_where() -> None:
    read = Event.from_json('{"type": "A", "area": {"shape": "circle:5m"}}')
    assert read == Event("A", area=Area(Circle(5.0), Position(0.0, 0.0)))
    assert Event.from_json('{"type": "A"}') == Event("A")


def test_an_event_takes_the_quality_of_its_type_unless_it_has_its_own() -> None:
    quality = Quality(lifespan_s=30.0, priority=2)
    plain, own = Event("A"), Event("A", lifespan_s=0.0, priority=-1)
    assert with_quality(plain, quality) == Event("A", lifespan_s=30.0, priority=2)
    assert with_quality(own, quality) == own
    assert with_quality(own, Quality()) == own


def test_a_verified_event_stays_verified_when_its_type_reads_it() -> None:
    event = Event("CD", {"price": 3})
    schema = EventType("CD", {"price": float})
    assert (schema.read(event).content, schema.read(event).verified) == ({"price": 3.0}, False)
    event.__dict__["verified"] = True
    assert schema.read(event).verified is True
    typed = schema.read(event)
    assert schema.read(typed) is typed, "nothing has to be changed"


@pytest.mark.parametrize(
    ("value", "text"), [(1e15, "1000000000000000"), (1e16, "1e+16"), (-2.0, "-2"), (2.5, "2.5"), (-1e16, "-1e+16")]
)
def test_a_whole_number_in_a_float_is_written_without_a_point_while_its_digits_are_its_own(
    value: float, text: str
) -> None:
    assert value_text(value) == text
    assert float(text) == value
