"""The ground at its bounds: places in and on shapes, events in JSON, the largest packet."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, datetime

import pytest

from earshot import Area, Circle, Ellipse, Event, EventType, Position, Rectangle, Velocity
from earshot.documents import XmlLimits, read_xml
from earshot.errors import (
    EventError,
    FilterSyntaxError,
    MalformedPacket,
    QualityError,
    SettingsError,
    UnknownName,
    XmlTooLarge,
    listed,
    nearest_name,
)
from earshot.quality import NAMES, PLAIN, Quality, attribute_text, check_kept, difference, quality_of
from earshot.wire import MAX_PACKET_BYTES, decode


@pytest.mark.parametrize(
    ("x_m", "y_m", "inside"),
    [
        (20.0, 0.0, True),
        (-20.0, 0.0, True),
        (20.1, 0.0, False),
        (0.0, 10.0, True),
        (0.0, 10.1, False),
        (10.0, 8.6, True),  # 10 sqrt(3) / 2 is 8.66
        (10.0, 8.7, False),
        (12.0, 8.0, True),
    ],
)
def test_an_ellipse_holds_what_lies_within_its_half_axes(x_m: float, y_m: float, inside: bool) -> None:
    assert Area(Ellipse(20, 10)).contains(Position(x_m, y_m)) is inside
    assert Area(Ellipse(10, 20, 90)).contains(Position(x_m * (1 - 1e-9), y_m * (1 - 1e-9))) is inside


def test_an_event_is_written_and_read_in_json_name_by_name() -> None:
    event = Event(
        "CD",
        {"price": 18, "at": Position(1.0, 2.0), "when": datetime(2004, 3, 1, tzinfo=UTC), "odd": float("inf")},
        id="e", source="s", time=7.5, position=Position(3.0, 4.0), velocity=Velocity(5.0, 6.0),
        area=Area(Circle(30.0), Position(7.0, 8.0)), lifespan_s=9.0, priority=2,
    )  # fmt: skip
    written = json.loads(event.to_json())
    assert written["position"] == {"x_m": 3.0, "y_m": 4.0}
    assert written["velocity"] == {"x_m_s": 5.0, "y_m_s": 6.0}
    assert (written["area"]["x_m"], written["area"]["y_m"]) == (7.0, 8.0)
    assert written["content"]["at"] == {"x_m": 1.0, "y_m": 2.0}
    read = Event.from_json(event.to_json())
    assert (read, read.position, read.velocity, read.area) == (event, event.position, event.velocity, event.area)
    assert (read.content, read.lifespan_s, read.priority) == (event.content, 9.0, 2)


def test_a_quality_that_cannot_be_names_its_event_type() -> None:
    with pytest.raises(EventError, match=r"^Siren: "):
        EventType("Siren", {}, {"lifespan_s": "soon"})
    assert EventType("Siren", {}, {"lifespan_s": 5, "lane": "left"}).quality.lifespan_s == 5.0


def test_the_largest_packet_is_decoded_and_one_byte_more_is_refused_unread() -> None:
    with pytest.raises(MalformedPacket, match="are more than a packet's"):
        decode(bytes(MAX_PACKET_BYTES + 1))
    with pytest.raises(MalformedPacket) as caught:
        decode(bytes(MAX_PACKET_BYTES))
    assert "more than" not in str(caught.value)


# Quality of service.


def test_a_type_without_attributes_promises_nothing() -> None:
    nothing = {"reliability": "best_effort", "lifespan_s": None, "priority": 0, "deadline_s": None, "history": 0}
    assert {name: getattr(Quality(), name) for name in NAMES} == nothing
    assert Quality().attributes() == {}
    assert [quality_of("Siren", {}), quality_of("Siren", {"lane": "left"})] == [PLAIN, PLAIN]


def test_the_attributes_of_a_quality_are_what_it_promises() -> None:
    given = {"reliability": "reliable", "lifespan_s": "30", "priority": "-7", "deadline_s": "0.5", "history": "100"}
    quality = quality_of("Siren", {**given, "lane": "left"})
    assert quality == Quality("reliable", 30.0, -7, 0.5, 100)
    assert quality.attributes() == given


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [("priority", "7", "8"), ("priority", "-7", "-8"), ("history", "100", "101"), ("history", "0", "-1"),
     ("lifespan_s", "0.001", "0"), ("deadline_s", "0.001", "0"), ("reliability", "reliable", "sure")],
)  # fmt: skip
def test_a_quality_is_bounded(name: str, right: str, wrong: str) -> None:
    kind = {"reliability": str, "priority": int, "history": int}.get(name, float)
    assert getattr(Quality(**{name: kind(right)}), name) == kind(right)
    with pytest.raises(SettingsError, match=rf"^{name}"):
        Quality(**{name: kind(wrong)})
    assert str(getattr(quality_of("Siren", {name: right}), name)) == right
    with pytest.raises(EventError, match=rf"^Siren: {name}"):
        quality_of("Siren", {name: wrong})


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (3.0, "3"), (-3.0, "-3"), (0.0, "0"), (2.5, "2.5"), (1e300, "1e+300"),
     (999_999_999_999_999.0, "999999999999999"),
     (-1e15, "-1000000000000000.0"), (1e15, "1000000000000000.0"), (math.inf, "inf"),
     (True, "True"), ("left", "left")],
)  # fmt: skip
def test_equal_values_have_equal_texts(value: object, text: str) -> None:
    assert attribute_text(value) == text


def test_a_protocol_refuses_what_it_cannot_keep_and_what_nobody_knows() -> None:
    check_kept("Siren", {"priority": "2", "history": "0"}, "flooding", frozenset({"priority"}))
    with pytest.raises(QualityError, match=r"^Siren: flooding cannot keep history = 3: its nodes have no neighbours"):
        check_kept("Siren", {"priority": "2", "history": "3"}, "flooding", frozenset({"priority"}))
    with pytest.raises(QualityError, match=r"^Siren: there is no attribute 'prioity'; did you mean 'priority'"):
        check_kept("Siren", {"prioity": "2"}, "flooding", frozenset({"priority"}))


def test_two_lists_of_attributes_differ_in_words() -> None:
    assert difference("Siren", {"a": 1, "b": 2}, {"b": 2, "a": 1}, "n7") == ""
    assert difference("Siren", {}, {"b": 2, "a": 1}, "n7") == (
        "Siren: n7 has a = 1, b = 2, this node no attributes; all nodes must use one list of attributes for a type"
    )


# Errors, documents and shapes.


def test_a_syntax_error_points_at_its_column_in_the_text_around_it() -> None:
    assert str(FilterSyntaxError("odd", "a < b", 3)) == "odd (column 3)\n  a < b\n    ^"
    text = "".join(chr(ord("a") + n % 26) for n in range(200))
    reason, shown, pointer = str(FilterSyntaxError("odd", text, 101)).split("\n")
    assert (reason, shown) == ("odd (column 101)", f"  ...{text[40:140]}...")
    assert shown[pointer.index("^")] == text[100]
    whole = str(FilterSyntaxError("odd", text[:100], 61)).split("\n")[1]
    assert whole == f"  {text[:100]}", "sixty signs before it and forty from it on"
    assert str(FilterSyntaxError("odd", text[:101], 62)).split("\n")[1] == f"  ...{text[1:101]}"
    assert str(FilterSyntaxError("odd", "a\tb\n", 2)).split("\n")[1:] == ["  a b ", "   ^"]
    again = pickle.loads(pickle.dumps(FilterSyntaxError("odd", text, 101)))
    assert (str(again), again.reason, again.text, again.column) == (f"{reason}\n{shown}\n{pointer}", "odd", text, 101)


def test_an_unknown_name_is_reported_with_the_nearest_or_with_thirty_of_them() -> None:
    error = UnknownName("protocol", "steem", ["steam", "steams", "cbf"])
    assert (str(error), error.name) == ("no protocol named 'steem'; did you mean 'steam'?", "steem")
    assert str(UnknownName("protocol", "x", ["b", "a"])) == "no protocol named 'x'; there are: a, b"
    names = [f"name-{n:02}" for n in range(31)]
    assert listed(names[:30]) == ", ".join(names[:30])
    assert listed(names) == f"{', '.join(names[:30])} and 1 more"
    assert nearest_name("x", names, most=2) == "there are: name-00, name-01 and 29 more"


def test_a_document_may_have_exactly_the_most_bytes() -> None:
    text = "<a>é</a>"
    size = len(text.encode())
    for document in (text, text.encode()):
        assert read_xml(document, XmlLimits(bytes=size)).text == "é"
        with pytest.raises(XmlTooLarge):
            read_xml(document, XmlLimits(bytes=size - 1))


def test_a_type_keeps_what_is_promised_and_what_is_the_applications_own() -> None:
    made = EventType("Siren", {}, {"priority": 2.0, "history": 0, "lane": "left"})
    assert made.attributes == {"lane": "left", "priority": "2"}, "a promise of nothing is none"
    assert made == EventType("Siren", {}, {"lane": "left", "priority": 2})
    assert hash(made) == hash(EventType("Siren", {}, {"lane": "left", "priority": 2}))


def test_a_shape_lies_around_its_reference_point() -> None:
    """The shape's point (5, 3) stands at (100, 50): its middle is at (95, 47)."""
    shape = Rectangle(20, 10, reference=Position(5, 3))
    area = Area(shape, Position(100, 50))
    inside = [(95 - 9.9, 47), (95 + 9.9, 47), (95, 47 - 4.9), (95, 47 + 4.9)]
    outside = [(95 - 10.1, 47), (95 + 10.1, 47), (95, 47 - 5.1), (95, 47 + 5.1)]
    assert [area.contains(Position(*place)) for place in inside] == [True] * 4
    assert [area.contains(Position(*place)) for place in outside] == [False] * 4


def test_a_circle_is_not_inside_of_a_square_that_it_leaves_between_its_drawn_corners() -> None:
    """Drawn with 64 corners, a circle reaches less far half-way between two of them: 0.9988 of its radius."""
    square = Area(Rectangle(20, 20, 360 / 128))
    assert not square.includes(Area(Circle(10.005)))
    assert square.includes(Area(Circle(9.98)))
