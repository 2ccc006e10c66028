"""XPath expressions by the rules of the recommendation: its own examples, and comparisons worked out by hand."""

from __future__ import annotations

import pytest

from earshot import Event, Filter
from earshot.filters.language.evaluation import number_as_text

DOCUMENT = Event.from_xml("<r><a>1</a><a>5</a><b>5</b><b>9</b><t>x</t><e/></r>")


def holds(expression: str) -> bool:
    return Filter.xpath(f"/r[{expression}]").matches(DOCUMENT)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # XPath 1.0, section 4.2.
        ('substring("12345", 2, 3)', '"234"'),
        ('substring("12345", 2)', '"2345"'),
        ('substring("12345", 1.5, 2.6)', '"234"'),
        ('substring("12345", 0, 3)', '"12"'),
        ('substring("12345", 0 div 0, 3)', '""'),
        ('substring("12345", 1, 0 div 0)', '""'),
        ('substring("12345", -42, 1 div 0)', '"12345"'),
        ('substring("12345", -1 div 0, 1 div 0)', '""'),
        ('substring("12345", 5, 9)', '"5"'),
        ('substring("12345", 6)', '""'),
        ('substring-before("1999/04/01", "/")', '"1999"'),
        ('substring-before("1999/04/01", "x")', '""'),
        ('substring-before("1999/04/01", "")', '""'),
        ('substring-after("1999/04/01", "/")', '"04/01"'),
        ('substring-after("1999/04/01", "19")', '"99/04/01"'),
        ('substring-after("1999/04/01", "x")', '""'),
        ('substring-after("1999/04/01", "")', '"1999/04/01"'),
        ('translate("bar", "abc", "ABC")', '"BAr"'),
        ('translate("--aaa--", "abc-", "ABC")', '"AAA"'),
        ('translate("aa", "aa", "xy")', '"xx"'),
        ('normalize-space("  a  b ")', '"a b"'),
        ('string-length("abc")', "3"),
        ('concat("a", "b", "c")', '"abc"'),
        # Section 4.4: half a number is rounded up.
        ("round(2.5)", "3"),
        ("round(-2.5)", "-2"),
        ("round(-2.6)", "-3"),
        ("round(2.4)", "2"),
        ("floor(2.6)", "2"),
        ("floor(-2.4)", "-3"),
        ("ceiling(2.4)", "3"),
        ("ceiling(-2.6)", "-2"),
        ("sum(a)", "6"),
        ("sum(no)", "0"),
        ("count(a)", "2"),
        ("count(a | b | a)", "4"),
        ("number(t) = number(t)", "false()"),
        # Section 3.5: the remainder has the sign of the dividend.
        ("5 mod 2", "1"),
        ("5 mod -2", "1"),
        ("-5 mod 2", "-1"),
        ("1.5 mod 0.5", "0"),
        ("7 div 2", "3.5"),
        ("1 div 0", "-(-1 div 0)"),
        ("2 + 3 * 4 - 1", "13"),
        ("-(a)", "-1"),
        ("name(*[3])", '"b"'),
        ("name(no)", '""'),
        ("local-name()", '"r"'),
    ],
)
def test_an_expression_has_the_value_of_the_recommendation(expression: str, value: str) -> None:
    assert (holds(f"{expression} = {value}"), holds(f"not({expression} = {value})")) == (True, False)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # Two sets of nodes: whether any pair of them compares so. a is 1 and 5, b is 5 and 9, t is no number.
        ("a = b", True),
        ("a = t", False),
        ("a != b", True),
        ("t != t", False),
        ("a < b", True),
        ("b < a", False),
        ("b <= a", True),
        ("a > b", False),
        ("a >= b", True),
        ("b > a", True),
        ("a < t", False),
        ("t < a", False),
        ("a = no", False),
        ("a != no", False),
        # A set and a value.
        ("a = 5", True),
        ("5 = a", True),
        ("a = 2", False),
        ('a = "5"', True),
        ('a = "5.0"', False),
        ('"5" != a', True),
        ("a > 4", True),
        ("a > 5", False),
        ("5 > a", True),
        ("1 > a", False),
        ("1 >= a", True),
        ('a < "2"', True),
        # A boolean is compared with whether there are nodes.
        ("e = true()", True),
        ("no = false()", True),
        ("no = true()", False),
        # Two values: a boolean first, then a number, then texts.
        ('true() = "x"', True),
        ('true() = ""', False),
        ('1 = "1.0"', True),
        ('"1" = "1.0"', False),
        ('"a" != "b"', True),
        ('"2" < "10"', True),
        ('"x" < 1', False),
        ('"x" >= 1', False),
    ],
)
def test_values_and_sets_of_nodes_are_compared_by_their_kinds(expression: str, expected: bool) -> None:
    assert holds(expression) is expected


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("*[2]", "a"),
        ("*[last()]", "e"),
        ("*[position() = last() - 1]", "t"),
        ("*[. = 5][2]", "b"),
        ("*[2][. = 5]", "a"),
        ("(a | b)[3]", "b"),
        ("b/preceding-sibling::*[1]", "a"),
        ("a/following-sibling::*[last()]", "e"),
    ],
)
def test_a_position_counts_what_passed_before_along_its_axis(expression: str, names: str) -> None:
    assert holds(f'name({expression}) = "{names}"')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (12.0, "12"),
        (-3.0, "-3"),
        (0.5, "0.5"),
        (1234.25, "1234.25"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (2.5e-7, "2.5e-07"),
        (1e15, "1e+15"),
    ],
)
def test_a_number_has_a_text(value: float, text: str) -> None:
    assert number_as_text(value) == text
