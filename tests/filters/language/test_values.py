import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from lxml import etree

from earshot import Event, Filter, Position
from earshot.filters.language.syntax import Comparison
from earshot.filters.language.values import (
    aware,
    boolean_of,
    interval,
    moment,
    number,
    number_of,
    string_test,
    value_test,
)

TEXTS = [
    *(
        "5",
        "-5",
        "5.",
        ".5",
        "-.5",
        "0.10",
        "1e3",
        "1E3",
        "1e+3",
        "1e-3",
        "1e",
        "5e",
        "1e+",
        "1.e2",
        " 5 ",
        "\n5\t",
        "\r5",
    ),
    *(
        "\n5\t",
        "\r5",
        "",
        " ",
        "+5",
        "- 5",
        ".",
        "-",
        "--5",
        "1.5e2x",
        "5 6",
        "inf",
        "Infinity",
        "NaN",
        "nan",
        "0x10",
        "1_0",
        "1,5",
    ),
    *(
        "\u00a05",
        "5\u2003",
        "٣",
        "²",
        "e5",
        ".e2",
        "1e400",
        "-0",
        "1e1e",
        "1e1e+",
        "1e1e1",
        "1e",
        "1e-",
        "1.e2",
        "1e+",
        "-1e1E-",
    ),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_the_number_libxml2_says(text: str) -> None:
    element = etree.Element("a")
    element.text = text
    expected = element.xpath("number(.)")
    assert number(text) == expected or (math.isnan(number(text)) and math.isnan(expected))


NOON = datetime(2020, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True), (False, False), (1, True), (0, False), (1.0, True), (0.0, False), (2, None), (-1, None),
        (0.5, None), ("true", True), ("false", False), ("1", True), ("0", False), (" true\n", True), ("True", None),
        ("yes", None), ("", None), ("2", None), (NOON, None), (Position(1.0, 0.0), None),
    ],
)  # fmt: skip
def test_what_counts_as_true_and_as_false(value: Any, expected: bool | None) -> None:
    assert boolean_of(value) is expected
    for literal in (True, False):
        assert value_test(Comparison.EQ, literal)(value) is (expected is literal)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, 1.0), (False, 0.0), (7, 7.0), ("7.5", 7.5), (10**400, math.inf), (-(10**400), -math.inf)],
)
def test_a_value_as_a_number(value: Any, expected: float) -> None:
    assert number_of(value) == expected


@pytest.mark.parametrize("value", ["seven", NOON, Position(1.0, 2.0), math.nan])
def test_other_values_are_no_numbers(value: Any) -> None:
    assert math.isnan(number_of(value))
    assert not value_test(Comparison.LE, 5.0)(value)
    assert value_test(Comparison.NE, 5.0)(value), "as XPath says"


def test_a_long_text_is_read_as_a_short_one_is() -> None:
    for text in ("1" + 22 * "0", "1" + 23 * "0", "1" + 24 * "0", " " * 30 + "5" + " " * 30):
        assert number(text) == float(text)
    assert math.isnan(number(30 * "x"))


def test_times_are_compared_as_moments_and_without_a_zone_they_are_in_utc() -> None:
    later = datetime(2020, 5, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))  # half an hour after noon in UTC
    assert (moment("2020-05-01T12:00"), moment(" 2020-05-01T14:00+02:00 "), moment("noon")) == (NOON, NOON, None)
    assert (aware(datetime(2020, 5, 1, 12)), aware(later)) == (NOON, later)
    tests = [value_test(op, "2020-05-01T12:00") for op in Comparison]
    expected = {"=": [False, True], "!=": [True, False], "<": [False, False], "<=": [False, True], ">": [True, False]}
    expected[">="] = [True, True]
    assert {op.value: [test(later), test(NOON)] for op, test in zip(Comparison, tests, strict=True)} == expected


def test_texts_are_compared_as_texts_for_equality_and_as_numbers_for_order() -> None:
    assert [value_test(op, "10")(value) for op in (Comparison.EQ, Comparison.NE) for value in ("10", "10.0", 10)] == [
        True, False, True, False, True, False,
    ]  # fmt: skip
    assert [value_test(Comparison.LT, "10")(value) for value in ("9", "10", 9.5, "x")] == [True, False, True, False]
    assert [string_test(Comparison.EQ, literal)("10.0") for literal in ("10", "10.0", 10.0)] == [False, True, True]
    assert [string_test(Comparison.NE, literal)("10.0") for literal in ("10", "10.0", 10.0)] == [True, False, False]
    assert [string_test(Comparison.GE, literal)("9") for literal in ("10", "9", 8.5)] == [False, True, True]


@pytest.mark.parametrize("op", [one for one in Comparison if one is not Comparison.NE])
@pytest.mark.parametrize("limit", [0.0, 2.5, -1e300])
def test_an_interval_holds_exactly_the_numbers_that_compare_so(op: Comparison, limit: float) -> None:
    found = interval(op, limit)
    assert found is not None
    for value in (-math.inf, math.nextafter(limit, -math.inf), limit, math.nextafter(limit, math.inf), math.inf):
        assert (found[0] <= value <= found[1]) is value_test(op, limit)(value)


def test_numbers_that_differ_from_one_are_no_interval() -> None:
    assert interval(Comparison.NE, 5.0) is None


def test_a_filter_on_a_truth_does_not_match_other_numbers() -> None:
    asked = Filter.where("live = true")
    assert [asked.matches(Event("CD", {"live": value})) for value in (True, 1, 5, "true", "5", False)] == [
        True, True, False, True, False, False,
    ]  # fmt: skip
