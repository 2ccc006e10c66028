"""XPath expressions written by hand, on documents written by hand: lxml's answer is the truth for each pair."""

from __future__ import annotations

import pytest
from lxml import etree

from earshot import Event, Filter
from earshot.filters.language.matching import words_of
from earshot.filters.language.paths import LocationPath

DOCUMENTS = (
    "<r><a>1</a><a>2</a><b>2</b><b>3</b><c k='3' l='x'>jazz</c><d><a>4</a><e/></d></r>",
    "<r k='5'><a>word</a><b/><c k='4'>rock</c><c k='5'> jazz </c><d><d><a>1</a></d></d>tail</r>",
    "<r/>",
    "<s><a>2</a><b>1</b></s>",
    "<r><a>-1</a><b>-1</b><a>10</a><n>0</n><c l='y'>a b c</c></r>",
)
PREDICATES = (
    # Nodes compared with nodes: any pair counts, and without nodes nothing holds.
    "a = b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "b = a", "b < a", "b > a", "x = a", "a = x", "x != a",
    "a != x", "x < a", "a > x", "x = x", "c/@k = c/@k", "c/@k != c/@k", "a < c/@k", "c/@k <= a", "c/@l < a", "a >= c",
    # Nodes compared with values.
    "a = 1", "a != 1", "a = '1'", "a != 'word'", "1 < a", "a < 1", "a <= -1", "a = true()", "x = false()",
    "x != true()", "a != false()", "c = ' jazz '", "'2' >= a", "b = ''",
    # Values compared with values.
    "1 = 1", "1 < 1", "'a' = 'a'", "'a' != 'a'", "true() = 'x'", "true() > false()", "'2' < '10'", "'1' = 1",
    "false() = ''", "true() != 0", "string(a) = '1'", "string(x) = ''", "number(a) = 1", "number(x) = number(x)",
    "number(x) != number(x)",
    # Numbers.
    "a + 1 = 2", "a - 1 = 0", "a * 2 = 4", "a div 2 = 1", "a mod 2 = 1", "-a = 1", "-(-a) = -1", "n div n = n div n",
    "1 div n > 100", "-1 div n < -100", "n div 0 = 0", "5 mod 3 = 2", "-5 mod 3 = -2", "5 mod -3 = 2",
    "1.5 mod 0.5 = 0",
    "count(a) = 2", "count(a) > count(b)", "count(//a) = 3", "count(x) = 0", "sum(a) = 3", "sum(b) = 5", "sum(x) = 0",
    "floor(1.5) = 1", "ceiling(1.5) = 2", "round(1.5) = 2", "round(-1.5) = -1", "round(2.4) = 2", "floor(-0.5) = -1",
    # Texts.
    "contains(c, 'az')", "starts-with(c, 'ja')", "contains(c, '')", "starts-with(x, '')", "contains('jazz', c)",
    "string-length(c) = 4", "string-length() > 0", "normalize-space(c[2]) = 'jazz'", "concat(a, b) = '12'",
    "substring(c, 2) = 'azz'", "substring(c, 2, 2) = 'az'", "substring(c, 0, 2) = 'j'", "substring(c, 1.5) = 'azz'",
    "substring-before(c, 'z') = 'ja'", "substring-after(c, 'a') = 'zz'", "translate(c, 'jz', 'J') = 'Ja'",
    "substring-before(c, 'q') = ''", "translate(c, 'abc', 'xyz') = 'x y z'",
    # Truth.
    "not(a)", "not(x)", "boolean(a)", "boolean('')", "boolean(0)", "a and b", "a and x", "a or x", "x or x",
    "not(a = b) and c", "true()", "false()",
    # Positions.
    "a[1] = 1", "a[2] = 2", "a[3]", "a[last()] = 2", "a[position() = 2] = 2", "a[position() < 2] = 2", "a[-1]",
    "a[last() - 1] = 1", "a[position() = last()] = 10", "a[-position() = -2] = 2", "a[position() mod 2 = 0]",
    "c[@k][1] = ' jazz '", "c[@k = 5][1]", "c[2][@k = 5]", "a[. = 2][1]", "d/d/a[1]", "//a[1] = 4", "(//a)[1] = 1",
    "(//a)[last()] = 4", "a[string(position()) = '2']", "*[last()]/@k", "a[1.5]", "*[position() > 2]/@k = 4",
    # Paths.
    "//e", ".//a = 4", "d//a = 1", "d/*/a", "*/e", "c/@*", "c/@k = 5", "@k", "@k = c/@k", "//@k = 5", "text()",
    "c/text() = 'jazz'", "text() = 'tail'", "//text() = '4'", ".", "./a", "..", "a/..", "d/e/../a = 4", "a/../b = 3",
    "a | x", "x | y", "(a | b) = 3", "count(a | b) = 4", "count(a | a) = 2", "ancestor::r", "d/a/ancestor::d",
    "a/following-sibling::b = 3", "b/preceding-sibling::a = 1", "self::r", "self::s", "descendant::a = 4", "child::a",
    "attribute::k", "d/descendant-or-self::d/a = 1", "a/parent::r", "parent::r", "d[a]/e", "d[not(a)]", "d[a = 4]",
    "c[starts-with(., 'ja')]/@k", "name(*) = 'a'", "local-name(c/@*) = 'k'", "name() = 'r'", "*[name() = 'b'] = 2",
)  # fmt: skip


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_predicate_answers_as_lxml_does(predicate: str) -> None:
    trees = [etree.ElementTree(etree.fromstring(text)) for text in DOCUMENTS]
    for form in ("/r[{}]", "/*[not({})]", "//*[{}]", "/r[c][{}]"):
        text = form.format(predicate)
        filter = Filter.xpath(text)
        expected = [bool(tree.xpath(f"boolean({text})")) for tree in trees]
        assert [filter.matches(Event.from_xml(one)) for one in DOCUMENTS] == expected, text


def conditions(text: str) -> LocationPath:
    condition = Filter.xpath(text).condition
    assert isinstance(condition, LocationPath)
    return condition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/r/a", {"r", "a"}),
        ("/r/*/@k", {"r", "k"}),
        ("/r[@k = 'v']", {"r", "k", ("k", "v")}),
        ("/r[@k = 5]", {"r", "k", ("k", 5.0)}),
        ("/r[@k != 'v']", {"r", "k"}),
        ("/r[@* = 'v']", {"r"}),
        ("/r[a = 'v']", {"r", "a"}),
        ("/r[a and @k = 'v']/b", {"r", "a", "b", "k", ("k", "v")}),
        ("/r[a or b]", {"r"}),
        ("/r[not(a)]", {"r"}),
    ],
)
def test_a_path_needs_these_words_of_a_document(text: str, expected: set[object]) -> None:
    assert words_of(conditions(text)) == expected
