"""Groups of plans: few are asked one by one, many stand in a table, those with a rare value in a group of their own."""

from __future__ import annotations

from typing import Any

import pytest

from earshot import Event, Filter
from earshot.filters.index import groups
from earshot.filters.index.event_values import Between, EventValues, SameBoolean, SameNumber, SameText
from earshot.filters.index.groups import IndexedPlan, PlanGroup
from earshot.filters.index.plans import Plan, plans_of
from earshot.filters.index.tables import AttributeTable
from earshot.filters.language.alternatives import InDocument


def plan_of(where: str) -> IndexedPlan:
    """The only plan of a filter, whose key is its text."""
    filter = Filter.parse(where)
    (plan,) = plans_of(filter)
    return IndexedPlan(where, filter, plan)


def found_by(group: PlanGroup, content: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    group.collect(EventValues(Event("T", content)), None, found)
    return found


@pytest.fixture
def no_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group has a table, and a value is rare if fewer than a quarter of the plans ask for it."""
    monkeypatch.setattr(groups, "FEW", 0)
    monkeypatch.setattr(groups, "RARE", 4)


@pytest.mark.parametrize(
    ("tests", "text_test"),
    [
        ([SameText("a", "x")], ("a", "x")),
        ([SameNumber("n", 5.0), SameText("a", "x"), SameText("b", "y")], ("a", "x")),
        ([SameText("o.a", "x"), SameText("b", "y")], ("b", "y")),
        ([SameText("o.a", "x")], None),
        ([SameBoolean("on", True)], None),
        ([SameText(InDocument("a"), "x")], None),
    ],
)
def test_a_plan_knows_its_first_text_outside_of_objects(tests: list[Any], text_test: tuple[str, str] | None) -> None:
    plan = IndexedPlan("key", Filter.where("true"), Plan(tests=(*tests, Between("n", 1.0, 2.0))))
    assert (plan.text_test, plan.same_tests) == (text_test, tests)


def test_sixteen_plans_are_few_and_one_more_makes_a_table() -> None:
    group = PlanGroup(in_document=False)
    plans = [plan_of(f"v > {number}") for number in range(17)]
    for plan in plans[:16]:
        group.add(plan)
    assert ([plan.slot for plan in plans[:16]], group._few, group._table) == ([None] * 16, plans[:16], None)
    assert found_by(group, {"v": 2.5}) == {"v > 0", "v > 1", "v > 2"}
    group.add(plans[16])
    assert ([plan.slot for plan in plans], group._few, group.size) == (list(range(17)), [], 17)
    assert found_by(group, {"v": 2.5}) == {"v > 0", "v > 1", "v > 2"}
    assert {plan.group for plan in plans} == {group}
    for plan in plans:
        group.remove(plan)
    assert (group.size, group._table, group._asked, group._by_value) == (0, None, {}, {})


@pytest.mark.usefixtures("no_few")
def test_two_plans_with_one_value_are_not_rare() -> None:
    group = PlanGroup(in_document=False)
    first, second = plan_of("v = 1"), plan_of("v = 1 and w > 2")
    group.add(first)
    ((kind, by_value),) = group._by_value.items()
    assert (kind, list(by_value), first.group) == ((SameNumber, "v"), [1.0], by_value[1.0])
    group.add(second)
    assert (group._by_value, first.group, second.group) == ({}, group, group)
    assert (group._asked, group.size) == ({SameNumber("v", 1.0): 2}, 2)
    assert found_by(group, {"v": 1, "w": 3}) == {"v = 1", "v = 1 and w > 2"}
    assert found_by(group, {"v": 1, "w": 2}) == {"v = 1"}


@pytest.mark.usefixtures("no_few")
def test_a_value_that_a_quarter_of_the_plans_ask_for_is_no_longer_rare() -> None:
    group = PlanGroup(in_document=False)
    for number in range(10):
        group.add(plan_of(f"w > {number}"))
    plans = [plan_of(f"v = 1 and w > {number}") for number in range(3)]
    sizes = []
    for plan in plans:
        group.add(plan)
        sizes.append([one.size for by_value in group._by_value.values() for one in by_value.values()])
    assert sizes == [[1], [2], []], "of eleven and twelve plans two and three, of thirteen three"
    assert {plan.group for plan in plans} == {group}
    assert found_by(group, {"v": 1, "w": 1.5}) == {"w > 0", "w > 1", "v = 1 and w > 0", "v = 1 and w > 1"}


@pytest.mark.usefixtures("no_few")
def test_of_two_rare_values_the_rarer_one_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "FEW", 2)
    group = PlanGroup(in_document=False)
    for number in range(14):
        group.add(plan_of(f"w > {number}"))
    texts = ("color = 5", "color = 5 and v = 1", "v = 3", "color = 6 and v = 3")
    plans = [plan_of(text) for text in texts]
    for plan in plans:
        group.add(plan)
    color_5, color_6, v_1, v_3 = (SameNumber(*one) for one in (("color", 5.0), ("color", 6.0), ("v", 1.0), ("v", 3.0)))
    assert [plan.group._test for plan in plans] == [color_5, v_1, v_3, color_6]
    assert group._asked == {color_5: 2, v_1: 1, v_3: 2, color_6: 1}
    assert found_by(group, {"color": 5, "v": 1}) == set(texts[:2])
    assert found_by(group, {"color": 6, "v": 3}) == set(texts[2:])
    group.remove(plans[1])
    assert (group._asked, group.size) == ({color_5: 1, v_3: 2, color_6: 1}, 17)
    assert list(group._by_value[SameNumber, "v"]) == [3.0]
    group.remove(plans[2])
    assert ((SameNumber, "v") in group._by_value, group._asked[v_3]) == (False, 1)
    for plan in (plans[0], plans[3]):
        group.remove(plan)
    assert (group.size, group._asked, group._by_value) == (14, {}, {})
    assert found_by(group, {"color": 5, "v": 3, "w": 0.5}) == {"w > 0"}


@pytest.mark.usefixtures("no_few")
def test_a_group_within_a_group_leaves_out_the_tests_of_both() -> None:
    group = PlanGroup(in_document=False)
    for number in range(14):
        group.add(plan_of(f"w > {number}"))
    plan = plan_of("a = 1 and b = 2")
    group.add(plan)
    inner, outer = plan.group, plan.group._above
    assert outer is not None
    assert outer._above is group
    assert {inner._test, outer._test} == {SameNumber("a", 1.0), SameNumber("b", 2.0)}
    assert (inner._asked, outer._asked, outer.size, inner.size) == ({}, {inner._test: 1}, 1, 1)
    assert [found_by(group, content) for content in ({"a": 1, "b": 2}, {"a": 1}, {"b": 2})] == [
        {"a = 1 and b = 2"}, set(), set(),
    ]  # fmt: skip
    group.remove(plan)
    assert (group.size, group._asked, group._by_value, outer.size, outer._by_value) == (14, {}, {}, 0, {})


def test_a_plan_in_the_group_of_its_only_value_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "FEW", 2)
    group = PlanGroup(in_document=False)
    texts = ("w > 1", "w > 2", "w > 3", "v = 1", "u = 1 and w > 4", 'at = "2026-01-01T00:00:00Z" and s = 1')
    plans = {text: plan_of(text) for text in texts}
    for plan in plans.values():
        group.add(plan)
    sure = {text: plan.sure for text, plan in plans.items()}
    assert [sure[text] for text in texts] == [False, False, False, True, False, False]
    assert [plans[text].group is group for text in texts] == [True, True, True, False, False, False]
    assert found_by(group, {"v": 1, "u": 1, "s": 1, "w": 4.5}) == {
        "w > 1", "w > 2", "w > 3", "v = 1", "u = 1 and w > 4",
    }  # fmt: skip


class Asked:
    """A filter that counts how often it is asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.count = 0

    def matches(self, *_: object) -> bool:
        self.count += 1
        return self.answer


def test_a_filter_is_asked_only_if_its_plan_may_hold_and_it_was_not_found_yet() -> None:
    document = EventValues(Event.from_xml("<T><a>1</a><b>2</b></T>"))
    plans = {
        where: plans_of(Filter.xpath(where))[0] for where in ("/T[a = 1]", "/T[a = 2]", "/T[b]", "/T[c]", "/T[b = 2]")
    }
    group, asked = PlanGroup(in_document=True), {where: Asked(True) for where in plans}
    for where, plan in plans.items():
        group.add(IndexedPlan(where, asked[where], plan))  # type: ignore[arg-type]
    found = {"/T[b]"}
    group.collect(document, None, found)
    assert found == {"/T[b]", "/T[a = 1]", "/T[b = 2]"}
    assert [one.count for one in asked.values()] == [1, 0, 0, 0, 1]


def test_a_filter_on_a_text_is_asked_unless_the_field_has_another_text_or_is_absent() -> None:
    (plan,) = plans_of(Filter.where('a = "5" and not b = 1'))
    counts = []
    for content in ({"a": "5"}, {"a": "6"}, {}, {"a": 5}, {"a": ["6", "5"]}):
        asked, group = Asked(False), PlanGroup(in_document=False)
        group.add(IndexedPlan("key", asked, plan))  # type: ignore[arg-type]
        assert found_by(group, content) == set()
        counts.append(asked.count)
    assert counts == [1, 0, 0, 1, 1]


def test_a_plan_is_asked_after_one_whose_text_the_field_does_not_have() -> None:
    group = PlanGroup(in_document=False)
    for text in ("x", "y"):
        group.add(plan_of(f'a = "{text}"'))
    assert found_by(group, {"a": "y"}) == {'a = "y"'}


@pytest.mark.usefixtures("no_few")
def test_an_event_is_looked_up_flat_where_it_has_neither_objects_nor_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def note(name: str) -> None:
        really = getattr(AttributeTable, name)

        def noted(*asked: Any) -> Any:
            looked.append(name)
            return really(*asked)

        monkeypatch.setattr(AttributeTable, name, noted)

    note("collect")
    note("collect_flat")
    nested = Event("T", {"o": {"v": 9}})
    document = Event.from_xml("<T><v>9</v></T>")
    for in_document, where, event, ways in (
        (False, "v > 5", Event("T", {"v": 9}), ["collect_flat"]),
        (False, "o.v > 5", nested, ["collect_flat", "collect"]),
        (False, "v > 5", document, ["collect"]),
        (True, "/T[v > 5]", Event("T", {"v": 9}), ["collect"]),
        (True, "/T[v > 5]", document, ["collect"]),
    ):
        group, found = PlanGroup(in_document), set[str]()
        group.add(plan_of(where))
        group.collect(EventValues(event), None, found)
        assert (found, looked) == ({where}, ways)
        looked.clear()
