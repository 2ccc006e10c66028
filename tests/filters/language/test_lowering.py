"""Which expressions are tree patterns, written differently, and what the others need of a document."""

from __future__ import annotations

import pytest

from earshot import Event, Filter
from earshot.filters.language.lowering import loosened
from earshot.filters.language.syntax import AnyItem, Holds


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        # How many there are, where it only matters whether there are any.
        ("count(/a/b) >= 1", "/a/b"),
        ("0 < count(/a/b)", "/a/b"),
        ("count(/a/b) != 0", "/a/b"),
        ("count(/a/b) > 0.5", "/a/b"),
        ("1 > count(/a/b)", "not(/a/b)"),
        ("count(/a/b) <= 0", "not(/a/b)"),
        ("count(/a/b) < 1", "not(/a/b)"),
        # A step back to where the last one came from.
        ("/a/b/../c", "/a[b]/c"),
        ("/a/b/c/..", "/a/b[c]"),
        ("/a/b/c/../..", "/a[b[c]]"),
        ("//a/b[c]/..", "//a[b[c]]"),
        ("/a[d]/b/..", "/a[b][d]"),
        # Axes by their names.
        ("/a/descendant::b/child::c", "/a//b/c"),
        ("/a/descendant::text()", "/a//text()"),
        ("/a/attribute::id", "/a/@id"),
        # Names that a predicate asks for.
        ("/*['a' = name()][b]", "/a[b]"),
        ("/*[name() = 'a'][1]", "/a[1]"),
        ("/*[b and name() = 'a' and c]", "/a[b][c]"),
        ("/r/*[self::a]/@id", "/r/a/@id"),
        # Values that ask nothing of the document.
        ("boolean(1)", "true"),
        ('boolean("")', "false"),
        ("0", "false"),
        ('"x" = "x"', "true"),
        ("3 < 2", "false"),
        ("/a[3 > 2 and b]", "/a[b]"),
        ("/a[1 = 2]", "false"),
        # Positions.
        ("/a/b[2 <= position()]", "/a/b[position() >= 2]"),
        ("/a/b[position() = 2]", "/a/b[2]"),
        ("/a/text()[2]", "/a/text()[2]"),
        # Comparisons with the document's nodes.
        ("20 > //b", "//b[. < 20]"),
        ("not(//b < 20)", "not(//b[. < 20])"),
        ('"x" = //a[b = 5]', '//a[. = "x"][b = 5]'),
        # Logic, in functions and between paths.
        ("not(not(/a))", "/a"),
        ("/a | /b[c]", "/a or /b[c]"),
        ("/a[b | c]", "/a[b or c]"),
        ("/a[boolean(b)]", "/a[b]"),
        ("/a[(b)]", "/a[b]"),
        ("/a[self::node()]", "/a"),
        ("/self::node()[/a/b]", "/a/b"),
        ("/self::node()[1 = 1]", "true"),
    ],
)
def test_an_expression_that_leads_downwards_is_a_tree_pattern(written: str, pattern: str) -> None:
    filter = Filter.xpath(written)
    assert str(filter) == pattern
    assert not isinstance(filter.condition, Holds)


@pytest.mark.parametrize(
    ("written", "needed"),
    [
        ("count(/a) > 1", "/a"),
        ("count(/a) = 1", "/a"),
        ("count(/a) >= 0", "true"),
        ("count(/a) < 2", "true"),
        ("boolean(count(/a))", "true"),
        ("string-length(/a/b) > 2", "/a/b"),
        ("string-length(/a/b) < 2", "true"),
        ("-count(/a/b) < -1", "/a/b"),
        ("count(/a) + 1 > 2", "/a"),
        ("count(/a) + count(/b) > 2", "true"),
        # Ways that lead elsewhere than down.
        ("/a/..", "/a"),
        ("/a//b/..", "/a//b"),
        ("/a/descendant::b[1]", "/a//b"),
        ("/a/following-sibling::b/@id", "/a and //b and //@id"),
        ("//a/ancestor::*/c", "//a and //c"),
        ("/a/node()", "/a"),
        ("/a/node()/c", "/a and //c"),
        ("(/a/b)[1]", "/a/b"),
        ("(/a/b)[c]/d", "/a/b and //c and //d"),
        # Names.
        ("/*[1][name() = 'a']", "/a"),
        ("/*[self::a[b]]", "/* and //a[b]"),
        ("/*[position() = 1 and name() = 'a']", "/*"),
        ("/r/@*[name() = 'a']", "/r/@*"),
        ("/*[name() = '1x']", "/*"),
        # Positions.
        ("/a/@*[1]", "/a/@*"),
        ("/a/b[last()]", "/a/b"),
        ("/a/b[position() = '2']/c", "/a/b/c"),
        # Comparisons: with a boolean, no nodes count as false.
        ("/a = /b", "/a and /b"),
        ("//a = true()", "true"),
        ("//a = (/b = /c)", "true"),
        ("//a = not(/b)", "true"),
        ("//a = string(/b)", "//a"),
        # The document asked from within.
        ("/a[/b]", "/a and /b"),
        ("/a[not(/b)]", "/a"),
        ("/a[b = /c]", "/a and /c and //b"),
        ("/a[/b and /c]", "/a and /b and /c"),
        ("/a[/b or /c]", "/a"),
        ('/a[contains(/b, "x")]', "/a and /b"),
        ("/a[boolean(/b)]", "/a and /b"),
    ],
)
def test_an_expression_that_is_no_pattern_needs_the_patterns_within_it(written: str, needed: str) -> None:
    condition = Filter.xpath(written).condition
    assert isinstance(condition, Holds)
    assert Filter(loosened(condition)) == Filter.parse(needed)


@pytest.mark.parametrize(
    ("written", "needed"),
    [
        ("any(l, a = 1 and b < 3)", "l.a = 1 and l.b < 3"),
        ("any(l, a or b contains 'x')", "l.a or l.b contains 'x'"),
        ("any(l, starts-with(a, 'x'))", "starts-with(l.a, 'x')"),
        ("any(l, value = 'x')", "l.value = 'x' or l = 'x'"),
        ("any(l, value)", "l.value or l"),
        ("any(l, not a = 1)", "true"),
        ("any(l, a = 1 and not b = 1)", "l.a = 1"),
        ("any(l, any(m, a = 1))", "l.m.a = 1"),
        ("any(l, any(m, value = 1))", "l.m.value = 1 or l.m = 1"),
        ("any(l, any(value, a = 1))", "l.value.a = 1 or l.a = 1"),
        ("any(l, true)", "true"),
    ],
)
def test_a_condition_on_one_item_needs_its_values_outside(written: str, needed: str) -> None:
    condition = Filter.where(written).condition
    assert isinstance(condition, AnyItem)
    assert Filter(loosened(condition)) == Filter.parse(needed)


def test_no_item_meets_what_never_holds() -> None:
    assert Filter.where("any(l, false)") == Filter.where("false")
    assert not Filter.where("any(l, false)").matches(Event("T", {"l": [{"a": 1}]}))
