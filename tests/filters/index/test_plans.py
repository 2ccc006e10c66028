"""What the index looks up of a filter: each alternative a path and simple tests, and whether these say all."""

from __future__ import annotations

from math import inf, nextafter

import pytest

from earshot import Event, Filter
from earshot.errors import FilterTooCostly
from earshot.filters.index.event_values import Between, EventValues, SameBoolean, SameNumber, SameText
from earshot.filters.index.path_moves import TEXT, Guard, PathMove, attribute
from earshot.filters.index.plans import Plan, plans_of
from earshot.filters.language.alternatives import InDocument
from earshot.filters.language.syntax import Comparison

JUST_BELOW_20, JUST_ABOVE_10 = nextafter(20.0, -inf), nextafter(10.0, inf)


@pytest.mark.parametrize(
    ("text", "plans"),
    [
        (
            'category = "jazz" and price < 20',
            [
                Plan(
                    tests=(SameText("category", "jazz"), Between("price", -inf, JUST_BELOW_20)),
                )
            ],
        ),
        (
            "alarm = true or speed > 10",
            [
                Plan(tests=(SameBoolean("alarm", True),)),
                Plan(tests=(Between("speed", JUST_ABOVE_10, inf),)),
            ],
        ),
        (
            "price <= 20 and not approaching",
            [Plan(tests=(Between("price", -inf, 20.0),), exact=False)],
        ),
        ("v > 10 and v < 20", [Plan(tests=(Between("v", JUST_ABOVE_10, JUST_BELOW_20),))]),
        ("v >= 5 and v <= 5", [Plan(tests=(Between("v", 5.0, 5.0),))]),
        # No one number is above 20 and below 10, but a field may have two numbers.
        ("v >= 20 and v <= 10", [Plan(tests=(Between("v", 10.0, 20.0),), exact=False)]),
        ("v = 1 and v = 2", [Plan(tests=(SameNumber("v", 1.0),), exact=False)]),
        ("v = 1 and w >= 2 and w >= 3", [Plan(tests=(SameNumber("v", 1.0), Between("w", 3.0, inf)))]),
        # A test asks for a value by itself; one that only the filter can judge needs some value.
        ("v = 1 and w != 2", [Plan(tests=(SameNumber("v", 1.0),), needs=("w",), exact=False)]),
        # What is compared as a time, or must differ, is left to the filter.
        ('at = "2026-01-01T00:00:00Z"', [Plan(needs=("at",), exact=False)]),
        ("v != 3", [Plan(needs=("v",), exact=False)]),
        ("alarm != true", [Plan(needs=("alarm",), exact=False)]),
        ('kind < "x"', [Plan(needs=("kind",), exact=False)]),
        ('kind contains "x"', [Plan(needs=("kind",), exact=False)]),
        # What fails where something holds: of a conjunction one of its terms, of a disjunction all.
        (
            "not (not v = 1 and not w = 1)",
            [Plan(tests=(SameNumber(name, 1.0),)) for name in ("v", "w")],
        ),
        ("not (v = 1 or not w = 2)", [Plan(tests=(SameNumber("w", 2.0),), exact=False)]),
        # An item's fields are looked up, and the filter says whether one item has them all.
        ("any(lanes, v <= 3)", [Plan(tests=(Between("lanes.v", -inf, 3.0),), exact=False)]),
        # A path and a field say all together.
        ("/A/b and v = 1", [Plan((PathMove(False, "A"), PathMove(False, "b")), (SameNumber("v", 1.0),))]),
        ("v = 1 and /A/b", [Plan((PathMove(False, "A"), PathMove(False, "b")), (SameNumber("v", 1.0),))]),
        # Two alternatives that need the same are one.
        ("v != 3 or v != 4", [Plan(needs=("v",), exact=False)]),
        ("true", [Plan()]),
        ("not true", []),
    ],
)
def test_a_condition_on_fields_is_tests_on_their_values(text: str, plans: list[Plan]) -> None:
    assert list(plans_of(Filter.where(text))) == plans


def child(label: str | tuple[str, str], *guards: Guard) -> PathMove:
    return PathMove(False, label, guards)


def below(label: str, *guards: Guard) -> PathMove:
    return PathMove(True, label, guards)


CATEGORY = InDocument("category")


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("/CD/track", Plan((child("CD"), child("track")))),
        ("/CD//track", Plan((child("CD"), below("track")))),
        ("//track/@id", Plan((below("track"), child(attribute("id"))))),
        ("//@*", Plan((PathMove(True, attribute("*")),))),
        ("/a/text()", Plan((child("a"), child(TEXT)))),
        (
            '/CD[category="jazz"]/track',
            Plan((child("CD"), child("track")), (SameText(CATEGORY, "jazz"),), (CATEGORY,), exact=False),
        ),
        (
            "/CD[price >= 3]",
            Plan((child("CD"),), (Between(InDocument("price"), 3.0, inf),), (InDocument("price"),), False),
        ),
        ('/CD[@id="5"]', Plan((child("CD", Guard("id", "5")),))),
        ("/CD[@id=5]", Plan((child("CD", Guard("id", 5.0)),))),
        ("/CD[@id]", Plan((child("CD", Guard("id")),))),
        ("/CD[@*]", Plan((child("CD"),), exact=False)),
        ('/a[text()="x"]/b[text()]', Plan((child("a", Guard("", "x")), child("b", Guard(""))))),
        ("//b[2]", Plan((below("b", Guard("[name]", 2.0)),))),
        ("//*[2]", Plan((below("*", Guard("[*]", 2.0)),))),
        ("/a/b[position() < 3]", Plan((child("a"), child("b", Guard("[name]", 3.0, Comparison.LT))))),
        # The second predicate counts only what passed the first.
        ('/a[@id="5"][2]', Plan((child("a", Guard("id", "5")),), exact=False)),
        ('/a[2][@id="5"]', Plan((child("a", Guard("[name]", 2.0), Guard("id", "5")),))),
        ("/a[@id != 5]", Plan((child("a"),), (), (InDocument("a", "id"),), exact=False)),
        ('/a[contains(b, "x")]', Plan((child("a"),), (), (InDocument("b"),), exact=False)),
        ('/a[contains(b, "")]', Plan((child("a"),))),
        (
            "/a[b[c = 1]/d >= 2]",
            Plan(
                (child("a"),),
                (SameNumber(InDocument("c"), 1.0), Between(InDocument("d"), 2.0, inf)),
                (InDocument("b"), InDocument("c"), InDocument("d")),
                exact=False,
            ),
        ),
        # One path of two is looked up.
        ("/a and /b", Plan((child("a"),), exact=False)),
    ],
)
def test_a_path_is_its_moves_and_the_guards_on_each_element(text: str, plan: Plan) -> None:
    assert plans_of(Filter.xpath(text)) == (plan,)


@pytest.mark.parametrize(
    ("plan", "alone"),
    [
        (Plan((child("a"),)), True),
        (Plan(), False),
        (Plan((child("a"),), exact=False), False),
        (Plan((child("a"),), needs=("b",)), False),
    ],
)
def test_a_plan_may_be_a_path_alone(plan: Plan, alone: bool) -> None:
    assert plan.is_path_alone is alone


@pytest.mark.parametrize(("count", "plans"), [(16, 16), (17, 1)])
def test_sixteen_alternatives_are_looked_up_and_more_are_left_to_the_filter(count: int, plans: int) -> None:
    found = plans_of(Filter.where(" or ".join(f"v{number:02} = 1" for number in range(count))))
    assert (len(found), found[0].exact) == (plans, plans == 16)


def test_of_parts_whose_alternatives_would_multiply_too_often_the_longest_is_left_to_the_filter() -> None:
    """Two times eight are sixteen; with three more choices the eight are left out."""
    eight = " or ".join(f"v{number} = 1" for number in range(8))
    two, three = "a = 1 or b = 1", "c = 1 or d = 1 or e = 1"
    assert len(plans_of(Filter.where(f"({two}) and ({eight})"))) == 16
    found = plans_of(Filter.where(f"({two}) and ({eight}) and ({three})"))
    assert len(found) == 6
    named = {tuple(test.source for test in plan.tests) for plan in found}
    assert named == {(one, other) for one in "ab" for other in "cde"}
    assert not any(plan.exact for plan in found)
    again = plans_of(Filter.where(f"({two}) and ({eight}) and ({eight.replace('v', 'w')})"))
    assert len(again) == 16, "two times the first eight are just not too many"


# An event's values.


def test_values_of_a_document_are_those_of_all_its_elements_of_a_name_each_once() -> None:
    event = Event.from_xml('<a id="1"><b id="2">x</b><c><b id="2">y</b><b>x</b></c></a>')
    values = EventValues(event)
    assert set(values.values(InDocument("b"))) == {"x", "y"}
    assert values.values(InDocument("b", "id")) == ("2",)
    assert set(values.values(InDocument("*", "id"))) == {"1", "2"}
    assert values.values(InDocument("d", "id")) == values.values(InDocument("d")) == ()
    assert [values.has(InDocument(name)) for name in ("a", "b", "d")] == [True, True, False]
    assert [values.has(InDocument("b", name)) for name in ("id", "no")] == [True, False]
    assert (values.value(InDocument("b", "id")), values.value(InDocument("d"))) == ("2", None)


@pytest.mark.parametrize(
    ("needs", "tests", "allowed"),
    [
        ((), (), True),
        (("v",), (), True),
        (("w",), (), False),
        (("v", "w"), (), False),
        ((), (SameNumber("v", 5.0), SameText("kind", "x")), True),
        ((), (SameNumber("v", 5.0), SameText("kind", "y")), False),
        (("v",), (SameBoolean("on", True),), True),
        ((), (SameBoolean("on", False),), False),
        ((), (SameNumber("v", 6.0), SameNumber("v", 5.0)), False),
    ],
)
def test_an_event_allows_what_it_has_values_for(needs: tuple[str, ...], tests: tuple, allowed: bool) -> None:  # type: ignore[type-arg]
    values = EventValues(Event("T", {"v": 5, "kind": "x", "on": True}))
    assert values.allow(needs, tests) is allowed


class Costly:
    """A filter that is too costly for every event."""

    asked = 0

    def matches(self, *_: object) -> bool:
        self.asked += 1
        raise FilterTooCostly("too many nodes")


def test_a_filter_that_was_too_costly_is_noted_and_not_asked_again_for_the_event() -> None:
    values, costly = EventValues(Event("T", {"v": 5})), Costly()
    cheap, wrong = Filter.where("v = 5"), Filter.where("v = 6")
    assert [values.meet(key, one, None) for key, one in (("a", cheap), ("b", wrong))] == [True, False]
    assert [values.meet("c", costly, None) for _ in range(2)] == [False, False]  # type: ignore[arg-type]
    assert (costly.asked, values.given_up) == (1, {"c"})
    assert values.meet("a", cheap, None)
