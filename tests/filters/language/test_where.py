from datetime import UTC, datetime, timedelta, timezone

import pytest

from earshot import Circle, Event, EventType, Filter, Polygon, Position, Rectangle, Velocity, Viewer
from earshot.errors import FilterSyntaxError
from earshot.events import Value
from earshot.filters.language.parser import MAX_DEPTH
from earshot.filters.language.syntax import (
    Always,
    And,
    Approaching,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    Inside,
    Not,
    Or,
    Receding,
    StartsWith,
    Within,
)
from earshot.geometry import Area

PRICE, NAME = Field("price"), Field("name")
LT, GE, LE, EQ, NE = Comparison.LT, Comparison.GE, Comparison.LE, Comparison.EQ, Comparison.NE


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("price < 20", Compare(PRICE, LT, 20.0)),
        ("20 > price", Compare(PRICE, LT, 20.0)),
        ("price=-.5", Compare(PRICE, EQ, -0.5)),
        ('name = "jazz"', Compare(NAME, EQ, "jazz")),
        ("'jazz' != name", Compare(NAME, NE, "jazz")),
        ('name = "say ""hi"""', Compare(NAME, EQ, 'say "hi"')),
        ("name = 'it''s'", Compare(NAME, EQ, "it's")),
        ("live = true", Compare(Field("live"), EQ, True)),
        ("false != live", Compare(Field("live"), NE, False)),
        ("price in 10..20", And((Compare(PRICE, LE, 20.0), Compare(PRICE, GE, 10.0)))),
        ("price in -2.5 .. .5", And((Compare(PRICE, LE, 0.5), Compare(PRICE, GE, -2.5)))),
        ('name contains "x"', Contains(NAME, "x")),
        ('contains(name, "x")', Contains(NAME, "x")),
        ('name starts with "x"', StartsWith(NAME, "x")),
        ('name starts-with "x"', StartsWith(NAME, "x")),
        ('starts-with(name, "x")', StartsWith(NAME, "x")),
        ("price", Exists(PRICE)),
        ("change.date", Exists(Field("change.date"))),
        ("wind-speed", Exists(Field("wind-speed"))),
        ("`within`", Exists(Field("within"))),
        ("`air temp ``C```", Exists(Field("air temp `C`"))),
        ("true", Always()),
        ("false", Not(Always())),
        ("not price", Not(Exists(PRICE))),
        ("not(price)", Not(Exists(PRICE))),
        ("not not price", Exists(PRICE)),
        ("a or b and not c", Or((Exists(Field("a")), And((Exists(Field("b")), Not(Exists(Field("c")))))))),
        ("(a or b) and c", And((Or((Exists(Field("a")), Exists(Field("b")))), Exists(Field("c"))))),
        ("within 200 m", Within(200.0)),
        ("within 0.2 km", Within(200.0)),
        ("approaching", Approaching()),
        ("receding", Receding()),
        ("inside circle(10, -20, 300)", Inside(Area(Circle(300.0), Position(10.0, -20.0)))),
        ("inside rectangle(0, 0, 100, 50)", Inside(Area(Rectangle(100.0, 50.0)))),
        ("inside rectangle(0, 0, 100, 50, 30)", Inside(Area(Rectangle(100.0, 50.0, 30.0)))),
        (
            "inside polygon(0 0, 9 0, 9 9 / 5 1, 6 1, 6 2)",
            Inside(Area(Polygon(((0, 0), (9, 0), (9, 9)), (((5, 1), (6, 1), (6, 2)),)))),
        ),
        ("/CD[price < 20]", Filter.xpath("/CD[price < 20]").condition),
        ("price < 20 and /CD", And((Filter.xpath("/CD").condition, Compare(PRICE, LT, 20.0)))),
    ],
)
def test_a_text_is_read_as_a_condition(text: str, condition: Condition) -> None:
    assert Filter.where(text).condition == condition


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "the filter is empty"),
        ("   ", 4, "the filter is empty"),
        ("price <", 8, "expected a quoted text, a number, true or false"),
        ("price < cost", 9, "expected a quoted text"),
        ("price 20", 7, "expected and, or or the end"),
        ("price < 20 and", 15, "expected a term"),
        ("price < 20 &", 12, "expected and, or or the end"),
        ("and", 1, "as a name it is written in backquotes"),
        ("within < 3", 8, "within takes a distance"),
        ("within -3 m", 8, "within takes a distance"),
        ("within 3", 9, "in m or km"),
        ("within 3 miles", 10, "in m or km"),
        ("live < true", 1, "by = and != only"),
        ("price in 20..10", 10, "the range is empty"),
        ("price in 20", 10, "in takes a range"),
        ("price in 'a'..'b'", 10, "in takes a range"),
        ("price in 1..x", 10, "in takes a range"),
        ("20", 1, "a literal alone"),
        ("1 < 2", 5, "expected a term"),
        ("(price", 7, "expected ')'"),
        ("name contains 5", 15, "looks for a quoted text"),
        ("name starts 'x'", 13, "expected with"),
        ("length(name) > 3", 7, "length() is not supported"),
        ("name = 'x", 8, "no closing '"),
        ("`name = 3", 1, "no closing backquote"),
        ("`` = 3", 1, "no closing backquote"),
        ("inside blob(3)", 8, "inside takes circle"),
        ("inside circle(0, 0)", 8, "circle has the wrong number of values"),
        ("inside circle(0, 0, -1)", 8, "must be a positive number"),
        ("inside circle(0, 0, x)", 21, "expected a number of metres"),
        ("inside polygon(0 0, 9 0)", 8, "at least 3 corners"),
        ("inside polygon(0 0, 9 9, 9 0, 0 9)", 8, "not a polygon"),
        ("inside circle(0, 0, 1", 22, "expected ')'"),
        ("price < 20 and /CD[", 20, "expected a condition"),
        ("price < 1e999", 9, "too large"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_column(text: str, column: int, reason: str) -> None:
    with pytest.raises(FilterSyntaxError) as refused:
        Filter.where(text)
    assert refused.value.column == column
    assert reason in refused.value.reason


def test_a_distance_too_large_for_a_number_is_refused() -> None:
    with pytest.raises(FilterSyntaxError, match="too large"):
        Filter.where("within 1e308 km")


def test_a_condition_may_nest_so_deep_and_no_deeper() -> None:
    deep = "(a or b and " * (MAX_DEPTH - 1) + "c" + ")" * (MAX_DEPTH - 1)
    filter = Filter.where(deep)
    assert Filter.parse(str(filter)) == filter
    assert filter.covers(filter)
    for too_deep in ("(" * 5_000, "not " * 4_000, f"({deep})"):
        with pytest.raises(FilterSyntaxError, match="nests at most"):
            Filter.where(too_deep)


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        # numbers, as XPath's number() has them
        ("x < 20", 18, True),
        ("x < 20", 18.5, True),
        ("x < 20", "18", True),
        ("x < 20", " 18.0\n", True),
        ("x = 18", "18.00", True),
        ("x < 20", "cheap", False),
        ("x >= 20", "cheap", False),
        ("x != 20", "cheap", True),
        ("x = 1", True, True),
        ("x < 1", False, True),
        ("x < 20", NOON, False),
        ("x != 20", Position(1, 2), True),
        ("x = 9223372036854775808", 2**63, True),
        ("x > 5", "1e400", True),
        ("x < 5", float("-inf"), True),
        ("x < 5", "٣", False),
        ("x < 5", "1_0", False),
        ("x < 5", "+3", False),
        # texts
        ('x = "18"', 18.0, True),
        ('x = "18.0"', 18.0, False),
        ('x = "true"', True, True),
        ('x = "1,2"', Position(1, 2), True),
        ('x != "jazz"', "pop", True),
        ('x < "20"', "18", True),
        ('x < "b"', "a", False),
        ('x contains "az"', "jazz", True),
        ('x contains ""', "", True),
        ('x starts with "1"', 18, True),
        ('x starts with "az"', "jazz", False),
        # times
        ('x = "2026-01-31T12:00:00Z"', NOON, True),
        ('x = "2026-01-31T13:00:00+01:00"', NOON, True),
        ('x = "2026-01-31T12:00"', NOON, True),
        ('x < "2026-02-01"', NOON, True),
        ('x >= "2026-02-01"', NOON, False),
        ('x != "2026-02-01"', NOON, True),
        ('x < "2026-02-01"', NOON.replace(tzinfo=None), True),
        ('x < "20260201"', NOON, True),
        ('x < "2026-01-31T12:30:00+01:00"', NOON.astimezone(timezone(timedelta(hours=5))), False),
        ('x < "2026-02-01"', "2026-01-31", False),
        ('x = "2026-01-31"', "2026-01-31", True),
        # booleans
        ("x = true", True, True),
        ("x = true", "true", True),
        ("x = true", "1", True),
        ("x = true", 1.0, True),
        ("x = false", 0, True),
        ("x = true", "yes", False),
        ("x != true", "yes", True),
        ("x = false", "yes", False),
        # a name alone
        ("x", 0, True),
        ("x", "", True),
        ("x", True, True),
        ("x", False, False),
        ("not x", False, True),
    ],
)
def test_a_value_is_compared_as_the_literal_asks(text: str, value: Value, holds: bool) -> None:
    assert Filter.where(text).matches(Event(type="CD", content={"x": value})) is holds


@pytest.mark.parametrize(
    "text",
    ["x < 5", "x != 5", 'x = ""', 'x != "a"', 'x contains ""', 'x starts with ""', "x", "x = true", "x in 1..2"],
)
def test_a_term_about_a_value_that_is_not_there_is_false_and_its_negation_true(text: str) -> None:
    event = Event(type="CD", content={"y": 1})
    assert not Filter.where(text).matches(event)
    assert Filter.where(f"not ({text})").matches(event)


def test_of_values_that_repeat_any_will_do() -> None:
    event = Event.from_xml("<CD price='30'><price>5</price><track><price>99</price></track><price>15</price></CD>")
    matched = {text: Filter.where(text).matches(event) for text in ("price = 30", "price in 10..12", "price = 99")}
    assert matched == {"price = 30": True, "price in 10..12": True, "price = 99": False}


def test_a_schema_gives_an_xml_events_values_their_types() -> None:
    document = "<Alarm><at>2026-01-31T12:00:00Z</at><live>false</live></Alarm>"
    schema = EventType("Alarm", {"at": datetime, "live": bool})
    later = Filter.where('at > "2026-01-31" and not live')
    assert later.matches(Event.from_xml(document, schema))
    assert not later.matches(Event.from_xml(document))


def test_a_filter_may_be_confined_to_a_type() -> None:
    siren, alarm = Event(type="Siren", content={"speed": 5}), Event(type="Alarm", content={"speed": 5})
    filters = [Filter.where("speed", type="Siren"), Filter.parse("Siren: speed"), Filter.parse("`Siren`: speed")]
    assert [(filter.matches(siren), filter.matches(alarm)) for filter in filters] == [(True, False)] * 3
    assert Filter.of_type("Siren").matches(siren)
    assert not Filter.of_type("Siren").matches(alarm)


# Places. The event's source is at the origin and drives east.

EVENT = Event(type="Siren", position=Position(0, 0), velocity=Velocity(10, 0))


@pytest.mark.parametrize(
    ("text", "viewer", "holds"),
    [
        ("within 200 m", Viewer(Position(200, 0)), True),
        ("within 200 m", Viewer(Position(200.1, 0)), False),
        ("within 0 m", Viewer(Position(0, 0)), True),
        ("approaching", Viewer(Position(100, 0)), True),
        ("receding", Viewer(Position(100, 0)), False),
        ("approaching", Viewer(Position(-100, 0)), False),
        ("receding", Viewer(Position(-100, 0)), True),
        ("approaching", Viewer(Position(100, 0), Velocity(20, 0)), False),
        ("receding", Viewer(Position(100, 0), Velocity(20, 0)), True),
        ("approaching or receding", Viewer(Position(100, 0), Velocity(10, 0)), False),
        ("approaching or receding", Viewer(Position(0, 0)), False),
        ("inside circle(30, 40, 50)", Viewer(Position(0, 0)), True),
        ("inside circle(30, 40, 50)", None, True),
        ("inside circle(30, 40, 49)", None, False),
        ("inside polygon(-5 -5, 5 -5, 5 5, -5 5 / -1 -1, 1 -1, 1 1, -1 1)", None, False),
        ("within 200 m", None, False),
        ("approaching", None, False),
        ("receding", None, False),
        ("not approaching", None, True),
        ("not within 200 m", None, True),
    ],
)
def test_place_terms(text: str, viewer: Viewer | None, holds: bool) -> None:
    assert Filter.where(text).matches(EVENT, viewer) is holds


def test_an_event_without_a_position_is_nowhere() -> None:
    viewer = Viewer(Position(0, 0), Velocity(1, 0))
    nowhere = Event(type="Siren")
    terms = ("within 200 m", "approaching", "receding", "inside circle(0, 0, 100)")
    assert [Filter.where(term).matches(nowhere, viewer) for term in terms] == [False] * 4
    assert [Filter.where(f"not {term}").matches(nowhere, viewer) for term in terms] == [True] * 4


def test_a_source_whose_velocity_is_unknown_counts_as_still() -> None:
    event = Event(type="Siren", position=Position(0, 0))
    assert Filter.where("approaching").matches(event, Viewer(Position(100, 0), Velocity(-1, 0)))
    assert not Filter.where("approaching").matches(event, Viewer(Position(100, 0)))
