"""Parts of the index: sets of nodes, the loop that is compiled, and the tests on an event's values."""

from __future__ import annotations

import numpy as np
import pytest

from earshot import Event, Filter, FilterIndex
from earshot.filters.index.columns import _holding, _holding_loop
from earshot.filters.index.event_values import Between, EventValues, SameText
from earshot.filters.index.filter_index import MOST_TYPES, _part
from earshot.filters.index.groups import IndexedPlan
from earshot.filters.index.path_moves import PathMove
from earshot.filters.index.plans import Plan, _plans, plans_of
from earshot.filters.index.prefix_tree import NO_NODES, sorted_nodes, union, with_node
from earshot.filters.index.tables import AttributeTable
from earshot.filters.language.alternatives import InDocument
from earshot.filters.language.syntax import Axis, LocationPath, NodeKind, PathStep


def test_nodes_are_ascending_and_each_is_there_once() -> None:
    assert sorted_nodes({5, 1, 3}).tolist() == [1, 3, 5]
    several = [sorted_nodes(nodes) for nodes in ((1, 3), (3, 5), (1,), (), (5, 9))]
    assert union(several).tolist() == [1, 3, 5, 9]
    assert union([]).tolist() == union([NO_NODES]).tolist() == []
    for node, expected in ((0, [0, 2, 4]), (2, [2, 4]), (3, [2, 3, 4]), (4, [2, 4]), (9, [2, 4, 9])):
        assert with_node(sorted_nodes((2, 4)), node).tolist() == expected


def test_the_loop_that_is_compiled_answers_as_the_plain_one_does() -> None:
    chance = np.random.default_rng(3)
    which = chance.integers(0, 4, (200, 3)).astype(np.uint32)
    lows = chance.integers(0, 5, (200, 3)).astype(float)
    highs = lows + chance.integers(0, 5, (200, 3))
    for _ in range(20):
        numbers = chance.integers(0, 9, 4).astype(float)
        numbers[chance.integers(0, 4)] = np.nan if chance.random() < 0.2 else 3.0
        slots = np.flatnonzero(chance.random(200) < 0.5)
        expected = [
            slot
            for slot in slots.tolist()
            if all(lows[slot, i] <= numbers[which[slot, i]] <= highs[slot, i] for i in range(3))
        ]
        assert _holding_loop(slots, which, lows, highs, numbers).tolist() == expected
        assert _holding(slots, which, lows, highs, numbers).tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"), [([5], True), ([10], True), ([4], False), ([11], False), ([4, 11], True), ([], False)]
)
def test_a_range_is_met_at_its_ends(values: list[int], expected: bool) -> None:
    """Values on both sides meet it as well: the filter itself has the last word."""
    event = Event.from_xml(f"<CD>{''.join(f'<price>{value}</price>' for value in values)}</CD>")
    assert EventValues(event).allow((), [Between("price", 5.0, 10.0)]) is expected


def test_a_table_has_room_again_when_plans_that_need_a_field_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.filters.index.bits.MOST_ROWS", 8)
    table: AttributeTable[str] = AttributeTable()
    for number in range(20):
        field = f"field {number}"
        slot = table.add(number, Plan(needs=(field,)), "its owner")
        found: set[int] = set()
        assert table.collect_flat({field: 1}, found) == [], "the table itself decides"
        assert found == {number}
        table.remove(slot)


def test_a_field_that_two_plans_need_is_asked_for_until_both_are_gone() -> None:
    table: AttributeTable[str] = AttributeTable()
    slots = [table.add(key, Plan(needs=("speed",)), key) for key in ("one", "two")]

    def found(**content: int) -> set[str]:
        keys: set[str] = set()
        assert table.collect_flat(content, keys) == []
        return keys

    assert (found(speed=1), found(weight=1)) == ({"one", "two"}, set())
    table.remove(slots[0])
    assert (found(speed=1), found(weight=1)) == ({"two"}, set())
    assert list(table.owners()) == ["two"]
    table.remove(slots[1])
    assert (found(speed=1), list(table.owners())) == (set(), [])


@pytest.mark.parametrize(("exact", "sure"), [(True, True), (False, False)])
def test_the_owner_of_a_plan_that_is_not_exact_checks_it(exact: bool, sure: bool) -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("key", Plan(tests=(SameText("name", "x"),), exact=exact), "owner")
    keys: set[str] = set()
    assert table.collect_flat({"name": "x"}, keys) == ([] if sure else ["owner"])
    assert keys == ({"key"} if sure else set())
    assert table.collect_flat({"name": "y"}, keys) == []


def test_a_field_inside_an_object_is_not_looked_up_flat() -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("key", Plan(needs=("car.speed",)), "owner")
    keys: set[str] = set()
    assert table.collect_flat({"car": 1}, keys) is None
    assert table.collect_flat({"car.speed": 1, "cart": 2}, keys) == []
    assert keys == {"key"}


def parts_of(filter: Filter) -> list[tuple[bool, bool] | str]:
    """Of each plan the path that answers for it, or whether it has moves and whether it is exact."""
    parts = [_part("key", filter, plan) for plan in plans_of(filter)]
    return [
        (part.plan.moves is not None, part.plan.exact) if isinstance(part, IndexedPlan) else str(part[-1].label)
        for part in parts
    ]


@pytest.mark.parametrize(
    ("filter", "parts"),
    [
        (Filter.xpath("/a/b"), ["b"]),
        (Filter.parse("T: /a/b"), [(True, False)]),
        (Filter.xpath("/a[b]"), [(True, False)]),
        (Filter.parse("/a/b and v = 1"), [(True, True)]),
        (Filter.where("v = 1"), [(False, True)]),
        (Filter.where("v = 1", "T"), [(False, True)]),
        (Filter.parse("/a or v = 1"), ["a", (False, True)]),
    ],
    ids=str,
)
def test_a_path_alone_answers_for_its_filter_and_other_plans_are_kept_in_groups(
    filter: Filter, parts: list[tuple[bool, bool] | str]
) -> None:
    assert sorted(parts_of(filter), key=str) == sorted(parts, key=str)


def test_a_path_with_a_step_to_itself_is_not_walked() -> None:
    a = PathStep(Axis.CHILD, NodeKind.ELEMENT, "a", ())
    itself = PathStep(Axis.CHILD, NodeKind.SELF, "", ())
    needs_a = Plan(needs=(InDocument("a"),), exact=False)
    assert _plans.of(LocationPath(True, (a,))) == [Plan(moves=(PathMove(False, "a"),))]
    assert _plans.of(LocationPath(True, (a, itself))) == _plans.of(LocationPath(False, (a,))) == [needs_a]


def test_how_often_a_filter_was_given_up_is_forgotten_with_the_filter() -> None:
    index = FilterIndex()
    for key in "ab":
        index.add(key, Filter.where("v = 1"))
        index.given_up[key] = 3
    index.remove("a")
    assert index.given_up == {"b": 3}
    index.add("b", Filter.where("v = 2"))
    assert index.given_up == {}


def test_groups_and_paths_are_dropped_with_their_last_filter() -> None:
    index = FilterIndex()
    filters = {text: Filter.parse(text) for text in ("T: v = 1", "T: w = 1", "a/*: v = 1", "/a[b]", "/a[c]", "/a")}
    for key, filter in filters.items():
        index.add(key, filter)
    sizes = []
    for key in filters:
        sizes.append((sorted(map(str, index._by_type)), len(index._by_path), index._paths.count, len(index._patterns)))
        index.remove(key)
    assert sizes == [
        (["T", "a/*"], 1, 2, 1), (["T", "a/*"], 1, 2, 1), (["a/*"], 1, 2, 1),
        ([], 1, 2, 0), ([], 1, 2, 0), ([], 0, 1, 0),
    ]  # fmt: skip
    assert (index._paths.count, len(index), MOST_TYPES) == (0, 0, 4096)
