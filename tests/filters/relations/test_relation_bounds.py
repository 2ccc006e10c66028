"""Covering, merging and normal form at their bounds: where a proof, a range or a list of terms ends."""

from __future__ import annotations

from functools import reduce

import pytest

from earshot import Event, Filter
from earshot.documents import Element
from earshot.filters.language import where
from earshot.filters.language.paths import Memo
from earshot.filters.language.syntax import Compare, Comparison, Condition, Field, Within
from earshot.filters.relations.implying import Proof


def condition(text: str):  # type: ignore[no-untyped-def]
    return where.parse(text)


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        ("p in 1..2", "p in 5..6", 3),
        ("p < 2", "p > 2", 2),
        ("p <= 2", "p > 3", 2.5),
        ("p = 1", "p = 3", 2),
        ("p < 1", "p in 2..3", 1.5),
    ],
)
def test_ranges_with_a_gap_stay_apart_in_either_order(a: str, b: str, apart: float) -> None:
    for one, other in ((a, b), (b, a)):
        merged = Filter.where(one).merge(Filter.where(other))
        assert not merged.matches(Event("T", {"p": apart})), merged
        assert merged == Filter.where(f"{a} or {b}")


@pytest.mark.parametrize(
    ("a", "b", "together"),
    [
        ("p in 1..2", "p in 2..6", "p in 1..6"),
        ("p < 2", "p = 2", "p <= 2"),
        ("p <= 2", "p > 2 and p < 5", "p < 5"),
        ("p >= 2 and p < 5", "p > 1 and p <= 5", "p > 1 and p <= 5"),
        ("p > 2 and p < 5", "p >= 2 and p < 5", "p >= 2 and p < 5"),
        ("p > 2 and p <= 5", "p > 2 and p < 5", "p > 2 and p <= 5"),
    ],
)
def test_ranges_that_meet_become_one_in_either_order(a: str, b: str, together: str) -> None:
    assert Filter.where(a).merge(Filter.where(b)) == Filter.where(together)
    assert Filter.where(b).merge(Filter.where(a)) == Filter.where(together)


def test_what_many_filters_have_in_common_is_said_once() -> None:
    many = [Filter.where(f'n = "{number}" and p > 5 and p > 3 and q') for number in range(20)]
    assert reduce(Filter.merge, many) == Filter.where("p > 5 and q")


def test_of_many_common_terms_sixteen_are_kept() -> None:
    common = " and ".join(f"c{number:02}" for number in range(20))
    many = [Filter.where(f'n = "{number}" and {common}') for number in range(20)]
    kept = " and ".join(f"c{number:02}" for number in range(16))
    assert reduce(Filter.merge, many) == Filter.where(kept)


def test_sixteen_alternatives_are_kept_and_seventeen_are_loosened() -> None:
    some = [Filter.where(f'n = "{number}" and p > 5') for number in range(17)]
    sixteen = reduce(Filter.merge, some[:16])
    assert sixteen == Filter.where(f"p > 5 and ({' or '.join(f'n = {chr(34)}{n}{chr(34)}' for n in range(16))})")
    assert sixteen.merge(some[16]) == Filter.where("p > 5")


def test_the_longest_alternative_is_taken_apart() -> None:
    both = '(x = "1" or x = "2" or x = "3") and (y = "1" or y = "2")'
    assert Filter.where(both).merge(Filter.where('x = "4" and z')) == Filter.where(
        'x = "1" and (y = "1" or y = "2") or x = "2" and (y = "1" or y = "2") or x = "3" and (y = "1" or y = "2") '
        'or x = "4" and z'
    )


@pytest.mark.parametrize(("budget", "proved"), [(0, False), (1, True)])
def test_a_proof_has_as_many_comparisons_as_it_was_given(budget: int, proved: bool) -> None:
    assert Proof(budget).follows((condition("p > 5"),), condition("p > 3")) is proved


def test_a_proof_counts_each_fact_that_it_compares() -> None:
    proof = Proof(10)
    known = tuple(condition(text) for text in ('a = "x"', 'b = "y"', "p > 5"))
    assert proof.follows(known, condition("p > 3"))
    assert proof.left == 7
    assert proof.follows(known, condition("p > 5")), "what is known needs no comparison"
    assert proof.left == 7


def test_what_lies_further_down_a_path_is_known_of_the_first_step() -> None:
    proof = Proof(10)
    assert proof.follows((condition("/a/b/c"),), condition("/a[b/c]"))
    assert proof.left == 9, "one path is compared with the other, and the rest of it is the predicate"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Compare(Field("p"), Comparison.EQ, -0.0), "p = 0"),
        (Compare(Field("p"), Comparison.LT, 20), "p < 20"),
        (Compare(Field("p"), Comparison.LT, "-0"), "p < 0"),
        (Compare(Field("p"), Comparison.LT, "1e1"), "p < 10"),
        (Compare(Field("p"), Comparison.LT, "x"), 'p < "x"'),
        (Compare(Field("p"), Comparison.EQ, "-0"), 'p = "-0"'),
        (Compare(Field("p"), Comparison.EQ, True), "p = true"),
        (Compare(Field("p"), Comparison.LT, "2004-03-01"), 'p < "2004-03-01"'),
        (Within(5), "within 5 m"),
    ],
)
def test_a_condition_that_was_not_parsed_is_written_as_one_that_was(made: Condition, text: str) -> None:
    filter = Filter(made)
    assert (str(filter), Filter.parse(text), repr(filter)) == (text, filter, repr(Filter.parse(text)))


@pytest.mark.parametrize(
    ("general", "special", "covered"),
    [
        # A bare name is met by everything but false.
        ("p", "p = true", True),
        ("p", "p != false", True),
        ("p", "p = false", False),
        ("p", "p != true", False),
        ("p", 'p = "x"', True),
        ("p", "p > 0", True),
        ("p", "p >= 0", False),
        ("p", 'p starts with "t"', True),
        ("p", 'p contains "als"', False),
        # What follows from each of several alternatives.
        ("p", "(p > 5 or p = 7) and q", True),
        ("p", "(p > 5 or r = 7) and q", False),
        ('p contains "x"', '(p = "ax" or p = "bx") and q', True),
        ('p contains "x"', '(p = "ax" or p = "b") and q', False),
        ('p starts with "a"', '(p = "ax" or p starts with "ab") and q', True),
        ("p != 3", "(p = 4 or p > 5) and q", True),
        ("not p < 3", "(not p < 5 or not p < 4) and q", True),
        ("/a/b", '(/a[contains(b, "x")] or /a/b[c]) and q', True),
        ("within 10 m", "(within 5 m or within 3 m) and q", True),
        ("inside circle(0, 0, 9)", "(inside circle(0, 0, 1) or inside circle(1, 0, 2)) and q", True),
        # A number is not its text.
        ("/r[a != 5]", '/r[a != "5"]', False),
        ('/r[a != "5"]', "/r[a != 5]", True),
        ('/r[. != "5"]', "/r[. != 5]", True),
        ("/r[a < 9]", '/r[a = "5"]', True),
        ("/r[a = 5]", '/r[a = "5"]', True),
        ('/r[a = "5"]', "/r[a = 5]", False),
        # What an expression needs.
        ("/r", "/r[count(a) = 2]", True),
        ("/r/b", "/r[count(a) = 2]", False),
        ("/r[count(a) = 2]", "/r[count(a) = 2]", True),
        ("/r[count(a) = 2]", "/r[count(a) = 3]", False),
        # A position counts what precedes it.
        ("/r/a[1]", "/r/a[1][@k]", True),
        ("/r/a[1]", "/r/a[@k][1]", False),
        ("/r/a[@k][1]", "/r/a[@k][1]", True),
        ("/r/a[@k]", "/r/a[@k][1]", True),
        ("/r/*[1]", "/r/a[1]", False),
        # Distances and areas.
        ("within 200 m", "within 200 m and p", True),
        ("within 200 m", "within 100 m", True),
        ("within 100 m", "within 200 m", False),
        ("inside circle(0, 0, 10)", "inside circle(0, 0, 5)", True),
        ("inside circle(0, 0, 5)", "inside circle(0, 0, 10)", False),
        # Times in order.
        ('p < "2004-03-02"', 'p < "2004-03-01"', True),
        ('p < "2004-03-01"', 'p < "2004-03-02"', False),
        ('p >= "2004-03-01"', 'p > "2004-03-01"', True),
        ('p > "2004-03-01"', 'p >= "2004-03-01"', False),
        ('p != "2004-03-01"', 'p < "2004-03-01"', True),
        ('p < "2004-03-02"', 'p = "2004-03-01"', False),
    ],
)
def test_what_covers_what(general: str, special: str, covered: bool) -> None:
    assert Filter.parse(general).covers(Filter.parse(special)) is covered


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/r[.]", "/r"),
        ("/r[a][.]", "/r[a]"),
        ("p = -0.0", "p = 0"),
        ("p < -0.0", "p < 0"),
        ('p < "20"', "p < 20"),
        ('/r[a < "20"]', "/r[a < 20]"),
        ("/r[a[2]]", "/r[a[2.0]]"),
        ("not not p", "p"),
        ("p and p", "p"),
        ("p or true", "true"),
        ("p and false", "false"),
        ("/r[a and b]", "/r[b][a]"),
        ("/r/a[@k][1][@l][@m]", "/r/a[@k][1][@m][@l]"),
        ("inside rectangle(0, 0, 10, 10)", "inside rectangle(0, 0, 10, 10)"),
    ],
)
def test_filters_that_mean_the_same_have_one_text(one: str, other: str) -> None:
    a, b = Filter.parse(one), Filter.parse(other)
    assert (a, str(a), hash(a)) == (b, str(b), hash(b))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('p < "abc"', 'p < "abd"'),
        ('p < "2004-03-01"', 'p < "2004-03-02"'),
        ('p = "20"', "p = 20"),
        ("/r/a[@k][1]", "/r/a[1][@k]"),
        ("/r/a[1]", "/r/a[2]"),
    ],
)
def test_filters_that_mean_something_else_stay_apart(one: str, other: str) -> None:
    a, b = Filter.parse(one), Filter.parse(other)
    assert a != b
    assert str(a) != str(b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # An open end extends as far as the bounds are large, and as they are apart.
        ("T: p > -10", "T: p < 10", 2 / 6),
        ("T: p > 10", "T: p > 20", 2 / 3),
        ("T: p < -10", "T: p < -20", 2 / 3),
        ("T: p > 0", "T: p < 0", 0.2),
        ("T: p in 0..10", "T: p > 5", 5 / 20),
        ("T: p in -4..4", "T: p in -2..2", 0.5),
        ("T: p = 3", "T: p = 3 and p < 9", 1.0),
    ],
)
def test_the_share_of_open_ranges(a: str, b: str, expected: float) -> None:
    assert Filter.parse(a).overlap(Filter.parse(b)) == pytest.approx(expected)
    assert Filter.parse(b).overlap(Filter.parse(a)) == pytest.approx(expected)


def test_places_in_a_document_are_in_its_order() -> None:
    first, second = Element("b", {"k": "1"}, ("text",)), Element("c")
    root = Element("a", {"x": "1", "y": "2"}, (first, second))
    memo = Memo(root)
    assert memo.place(root) == (0, 0)
    assert [memo.place_below(root, index) for index in (-2, -1)] == [(0, 1), (0, 2)], "attributes follow their element"
    assert [memo.place_below(root, index) for index in (0, 1)] == [(1, 0), (3, 0)]
    assert [memo.place_below(first, index) for index in (-1, 0)] == [(1, 1), (2, 0)]
