"""The rows of a table: which slots a value's row has, what a column remembers, and how a table grows."""

from __future__ import annotations

from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest

from earshot import Event
from earshot.filters.index import bits, columns, tables
from earshot.filters.index.bits import Bits, slots_of
from earshot.filters.index.columns import RangeColumn, RoundedRanges, SameColumn, new_column
from earshot.filters.index.event_values import Between, EventValues, SameBoolean, SameNumber, SameText
from earshot.filters.index.plans import Plan
from earshot.filters.index.tables import AttributeTable, _is_inside
from earshot.filters.language.alternatives import InDocument, Source

# Rows of bits.


def test_rows_and_slots_grow_by_a_sixteenth_and_one() -> None:
    matrix = Bits()
    rows, slots = [], []
    for _ in range(36):
        matrix.new_row()
        rows.append(matrix.words.shape[0])
    for _ in range(18):
        matrix.add_slots()
        slots.append(matrix.slots // 64)
    assert rows == [32] * 32 + [35] * 3 + [38]
    assert slots == [*range(2, 17), 18, 20, 22]


def test_a_matrix_that_grows_keeps_its_rows_and_knows_nothing_of_the_new_ones() -> None:
    matrix = Bits()
    first = matrix.new_row()
    matrix.clear(5, [first])
    for _ in range(33):
        last = matrix.new_row()
    before = matrix.handles
    matrix.add_slots()
    assert matrix.handles is not before
    assert slots_of(matrix.bytes[first]).tolist() == [slot for slot in range(128) if slot != 5]
    assert slots_of(matrix.bytes[last]).tolist() == list(range(128))
    matrix.clear(100, [first, last])
    assert list(matrix.intersection(matrix.handles[first], [matrix.handles[last]])) == [
        slot for slot in range(128) if slot not in (5, 100)
    ]


@pytest.mark.parametrize("size", [8, 3192, 3200, 3208, 4000])
def test_the_slots_of_long_and_short_rows_are_those_of_their_bits(size: int) -> None:
    slots = [0, 1, 7, 8, 63, *(size * 8 - end for end in (1, 2, 64))]
    row = np.zeros(size, np.uint8)
    for slot in slots:
        row[slot // 8] |= 1 << slot % 8
    assert slots_of(row).tolist() == sorted({*slots})


# Columns.


def matrix_of(slots: int) -> Bits:
    matrix = Bits()
    while matrix.slots < slots:
        matrix.add_slots()
    return matrix


def used_rows(matrix: Bits) -> int:
    return matrix._used - len(matrix._free)


def members(matrix: Bits, column: Any, value: Any, slots: int) -> set[int]:
    """The first slots that are set in the value's row, by its number and by its handle."""
    by_number = {slot for slot in slots_of(matrix.bytes[column.row_of(value)]).tolist() if slot < slots}
    handle = column[value]
    assert {slot for slot in matrix.intersection(handle, []) if slot < slots} == by_number
    return by_number


def test_a_column_of_ranges_has_a_row_for_the_numbers_between_two_bounds() -> None:
    matrix = Bits()
    column = RangeColumn("v", matrix)
    tests = [Between("v", 3.0, 5.0), Between("v", 5.0, inf), Between("v", -inf, 3.0), Between("v", 4.0, 4.0)]
    assert [column.add(slot, test) for slot, test in enumerate(tests)] == [True] * 4

    def found(*values: Any) -> list[set[int]]:
        return [members(matrix, column, value, 4) for value in values]

    assert found(2.9, 3.0, 3.5, 4, 4.5, 5.0, nextafter(5.0, inf), "4", "x", nan, inf, -inf) == [
        {2}, {0, 2}, {0}, {0, 3}, {0}, {0, 1}, {1}, {0, 3}, set(), set(), {1}, {2},
    ]  # fmt: skip
    assert column._bounds == [3.0, nextafter(3.0, inf), 4.0, nextafter(4.0, inf), 5.0, nextafter(5.0, inf)]
    assert column._uses == {-inf: 3, 3.0: 1, 5.0: 1, 4.0: 1, **{nextafter(end, inf): 1 for end in (3.0, 4.0, 5.0)}}
    column.remove(0, tests[0])
    assert found(2.9, 3.0, 3.5, 4, 4.5, 5.0, 6, "x") == [{0, 2}, {0, 2}, {0}, {0, 3}, {0}, {0, 1}, {0, 1}, {0}]
    assert column._bounds == [nextafter(3.0, inf), 4.0, nextafter(4.0, inf), 5.0]
    for slot in (1, 2, 3):
        column.remove(slot, tests[slot])
    assert (found(1, "x"), column._bounds, column._uses) == ([{0, 1, 2, 3}] * 2, [], {-inf: 1})
    assert len(column.rows) == used_rows(matrix) == 2, "all numbers, and what is no number"


def test_a_column_of_ranges_has_rows_for_all_numbers_between_several_values() -> None:
    matrix = Bits()
    column = RangeColumn("v", matrix)
    column.add(0, Between("v", 3.0, 5.0))
    below, within, above = (column.row_of(value) for value in (0, 4, 9))
    assert [list(column.rows_around(values)) for values in ((9, 0), (4, "x", 0), ("4", 5), ("x", "y"), (9, nan))] == [
        [below, within, above], [below, within], [within], [column.nothing], [above],
    ]  # fmt: skip


def test_a_bound_for_which_there_is_no_room_is_rounded_outwards(monkeypatch: pytest.MonkeyPatch) -> None:
    assert columns.MOST_BOUNDS == 256
    monkeypatch.setattr(columns, "MOST_BOUNDS", 2)
    matrix = Bits()
    column = RangeColumn("v", matrix)
    tests = [Between("v", 3.0, 5.0), Between("v", 3.0, 9.0), Between("v", 4.0, 5.0), Between("v", 1.0, 2.0)]
    assert [column.add(slot, test) for slot, test in enumerate(tests)] == [True, False, False, False]
    assert [members(matrix, column, value, 4) for value in (0, 3, 4, 5, 6)] == [
        {3}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {1},
    ]  # fmt: skip
    assert column._rounded == {1: 0b10, 2: 0b01, 3: 0b11}
    assert column._uses == {-inf: 1, 3.0: 2, nextafter(5.0, inf): 2}
    column.remove(1, tests[1])
    assert (column._uses[3.0], column._rounded) == (1, {2: 0b01, 3: 0b11})
    column.remove(0, tests[0])
    assert column._bounds == [nextafter(5.0, inf)]
    assert [members(matrix, column, value, 4) for value in (0, 3, 6)] == [{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1}]


def test_a_full_matrix_has_no_room_for_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = Bits()
    column = RangeColumn("v", matrix)
    monkeypatch.setattr(bits, "MOST_ROWS", 3)
    assert [column.add(0, Between("v", 3.0, inf)), column.add(1, Between("v", 4.0, inf))] == [True, False]
    assert members(matrix, column, 3.5, 2) == {0, 1}


def test_a_column_of_values_has_a_row_for_each_and_one_for_all_others() -> None:
    matrix = Bits()
    column = SameColumn(SameNumber, "v", matrix)
    tests = [SameNumber("v", number) for number in (1.0, 2.0, 1.0, 3.0)]
    assert [column.has_rows_for(tests[0]), *(column.add(slot, test) for slot, test in enumerate(tests))] == [
        False, True, True, True, True,
    ]  # fmt: skip
    assert [column.has_rows_for(SameNumber("v", number)) for number in (1.0, 4.0)] == [True, False]

    def found(*values: Any) -> list[set[int]]:
        return [members(matrix, column, value, 4) for value in values]

    assert found(1, "1", 2.0, 3, 4, "x") == [{0, 2}, {0, 2}, {1}, {3}, set(), set()]
    assert list(column.rows_around((1, "1.0", 9))) == [column.row_of(1), column.nothing]
    column.remove(0, tests[0])
    assert found(1, 2, 3, 4) == [{0, 2}, {0, 1}, {0, 3}, {0}], "nothing is known of a slot that is free"
    column.remove(2, tests[2])
    assert found(1, 2, 3, 4) == [{0, 2}, {0, 1, 2}, {0, 2, 3}, {0, 2}]
    assert (column._wanted, column._places, column._uses) == ([3.0, 2.0], {3.0: 0, 2.0: 1}, {2.0: 1, 3.0: 1})
    assert len(column.rows) == used_rows(matrix) == 3


def test_a_column_of_texts_remembers_texts_and_others_remember_any_value() -> None:
    matrix = Bits()
    texts, numbers = SameColumn(SameText, "v", matrix), SameColumn(SameNumber, "v", matrix)
    ranges = RangeColumn("v", matrix)
    for test, column in (
        (SameText("v", "1"), texts),
        (SameNumber("v", 1.0), numbers),
        (Between("v", 1.0, 2.0), ranges),
    ):
        column.add(0, test)
        for value in ("1", 1, True, "x", 2.5):
            assert column[value] is matrix.handles[column.row_of(value)]
    assert [list(column) for column in (texts, numbers, ranges)] == [["1", "x"], ["1", 1, "x", 2.5], ["1", 1, "x"]]
    for column in (texts, numbers, ranges):
        column.forget()
        assert not column


def test_a_column_that_remembers_too_many_values_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert columns.MOST_REMEMBERED == 4096
    monkeypatch.setattr(columns, "MOST_REMEMBERED", 2)
    column = SameColumn(SameText, "v", Bits())
    remembered = []
    for value in ("a", "b", "a", "c", "d"):
        assert column[value] is not None
        remembered.append(list(column))
    assert remembered == [["a"], ["a", "b"], ["a", "b"], ["c"], ["c", "d"]]


def test_a_column_is_made_for_a_kind_of_test() -> None:
    matrix = Bits()
    made = [new_column(test, matrix) for test in (Between("v", 1.0, 2.0), SameText("w", "x"), SameBoolean("on", True))]
    assert [(type(column), column.source, column.users) for column in made] == [
        (RangeColumn, "v", 0), (SameColumn, "w", 0), (SameColumn, "on", 0),
    ]  # fmt: skip
    made[2].add(0, SameBoolean("on", True))
    assert [made[2].row_of(value) == made[2].nothing for value in (True, "true", False, 0)] == [
        False,
        False,
        True,
        True,
    ]


# Ranges that were rounded.


def test_rounded_ranges_hold_for_slots_all_of_whose_numbers_lie_in_them() -> None:
    ranges = RoundedRanges()
    ranges.resize(8)
    ranges.add(2, [Between("a", 1.0, 3.0), Between("b", 5.0, 6.0)])
    ranges.resize(16)
    ranges.add(9, [Between("b", 0.0, 5.0)])
    ranges.add(10, [Between("c", -inf, 0.0)])
    slots = np.array([0, 2, 9, 10, 15])

    def holding(**values: Any) -> list[int]:
        return ranges.holding(slots, values.get).tolist()  # type: ignore[arg-type]

    assert ranges.count == 3
    assert [holding(a=3, b=5, c=1), holding(a="1", b=6.0), holding(a=4, b=5.5), holding(b=0.0, c=0), holding()] == [
        [0, 2, 9, 15], [0, 2, 15], [0, 15], [0, 9, 10, 15], [0, 15],
    ]  # fmt: skip
    for slot, count in ((0, 3), (2, 2), (2, 2), (10, 1)):
        ranges.remove(slot)
        assert ranges.count == count
    assert holding() == [0, 2, 10, 15]
    ranges.add(0, [Between("c", 7.0, 8.0)])
    assert (holding(c=7), holding(c=9)) == ([0, 2, 10, 15], [2, 10, 15])


# Tables.


def found_flat(table: AttributeTable[str], **content: Any) -> tuple[set[Any], list[str] | None]:
    keys: set[Any] = set()
    owners = table.collect_flat(content, keys)
    return keys, owners


def test_slots_are_given_in_order_and_again_when_they_are_free() -> None:
    table: AttributeTable[str] = AttributeTable()
    slots = [table.add(number, Plan(tests=(Between("v", number, inf),)), "owner") for number in range(130)]
    assert (slots, table._bits.slots) == (list(range(130)), 192)
    assert found_flat(table, v=127.5) == (set(range(128)), [])
    table.remove(70)
    assert found_flat(table, v=127.5)[0] == {*range(128)} - {70}
    assert table.add("again", Plan(tests=(Between("v", 70.0, inf),)), "owner") == 70
    assert found_flat(table, v=127.5)[0] == {*range(128), "again"} - {70}
    assert found_flat(table) == found_flat(table, w=1) == (set(), [])


def test_from_so_many_slots_on_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tables.WORTH_COMPILING == 4096
    monkeypatch.setattr(tables, "WORTH_COMPILING", 64)
    compiled: list[type] = []
    for part in (Bits, RoundedRanges):
        monkeypatch.setattr(part, "compile", lambda self: compiled.append(type(self)))
    table: AttributeTable[str] = AttributeTable()
    for number in range(129):
        table.add(number, Plan(), "owner")
        assert compiled == ([] if number < 64 else [Bits, RoundedRanges]), number


def test_three_rounded_ranges_are_checked_by_the_table_and_four_by_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_BOUNDS", 0)
    for names, sure in (("a", True), ("abc", True), ("abcd", False)):
        table: AttributeTable[str] = AttributeTable()
        slot = table.add("key", Plan(tests=tuple(Between(name, 1.0, 2.0) for name in names)), "owner")
        content = dict.fromkeys(names, 1)
        assert found_flat(table, **content) == (({"key"}, []) if sure else (set(), ["owner"]))
        assert found_flat(table, **content | {"a": 3}) == ((set(), []) if sure else (set(), ["owner"]))
        table.remove(slot)
        assert (table._rounded.count, table._unsure) == (0, set())


def test_a_full_table_keeps_the_tests_that_need_no_new_row(monkeypatch: pytest.MonkeyPatch) -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("first", Plan(tests=(SameText("a", "x"), Between("v", 1.0, inf)), needs=("n",)), "one")
    monkeypatch.setattr(bits, "MOST_ROWS", 1)
    for plan, kept in (
        (Plan(tests=(SameText("a", "x"),), needs=("n",)), Plan(tests=(SameText("a", "x"),), needs=("n",))),
        (Plan(tests=(SameText("a", "y"), SameText("a", "x"))), Plan(tests=(SameText("a", "x"),), exact=False)),
        (Plan(tests=(SameText("b", "x"),)), Plan(exact=False)),
        (Plan(tests=(SameNumber("a", 1.0),)), Plan(exact=False)),
        (Plan(needs=("n", "m")), Plan(needs=("n",), exact=False)),
        (Plan(tests=(SameText("a", "x"),), exact=False), Plan(tests=(SameText("a", "x"),), exact=False)),
    ):
        assert table._what_fits(plan) == kept
    table.add("second", Plan(tests=(SameText("b", "x"),)), "two")
    assert found_flat(table, a="x", v=1, n=0) == ({"first"}, ["two"]), "its owner checks what has no row"


@pytest.mark.parametrize(
    ("source", "names", "inside"),
    [
        ("a.b", ("a",), True),
        ("a.b.c", ("x", "a.b"), True),
        ("a.b.c", ("a",), True),
        ("a", ("a",), False),
        ("a.b", ("a.b", "b", "a."), False),
        ("a.b", (), False),
        (InDocument("a.b"), ("a",), False),
    ],
)
def test_a_field_may_be_inside_an_object_of_a_name_before_one_of_its_dots(
    source: Source, names: tuple[str, ...], inside: bool
) -> None:
    assert _is_inside(source, names) is inside


def test_events_with_the_same_names_share_a_shape_and_those_with_the_same_asked_names_a_row() -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("v", Plan(tests=(SameNumber("v", 1.0),)), "owner")
    table.add("n", Plan(needs=("n",)), "owner")
    contents = ({"v": 1}, {"v": 2}, {"v": 1, "x": 1}, {"x": 1, "n": 1}, {"n": 1, "v": 1})
    found = [found_flat(table, **content)[0] for content in contents]
    assert found == [{"v"}, set(), {"v"}, {"n"}, {"n", "v"}]
    assert set(table._shapes) == {("v",), ("v", "x"), ("x", "n"), ("n", "v")}
    assert set(table._shape_rows) == {frozenset("v"), frozenset("n"), frozenset("nv")}
    used = used_rows(table._bits)
    table.add("w", Plan(tests=(SameNumber("w", 1.0),)), "owner")
    assert (table._shapes, table._shape_rows) == ({}, {})
    # The rows of three shapes are free; there is one for w and one for what is not w.
    assert used_rows(table._bits) == used - 3 + 2


def test_shapes_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tables.MOST_SHAPES == 64
    monkeypatch.setattr(tables, "MOST_SHAPES", 2)
    table: AttributeTable[str] = AttributeTable()
    table.add("v", Plan(tests=(SameNumber("v", 1.0),)), "owner")
    counts = []
    for name in ("a", "b", "a", "c", "d", "e"):
        assert found_flat(table, **{"v": 1, name: 1})[0] == {"v"}
        counts.append((len(table._shapes), len(table._shape_rows)))
    assert counts == [(1, 1), (2, 1), (2, 1), (1, 1), (2, 1), (1, 1)]


def test_a_plan_that_comes_after_events_were_seen_is_set_in_the_rows_of_their_shapes() -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("v", Plan(tests=(SameNumber("v", 1.0), SameNumber("w", 1.0))), "owner")
    for content in ({"v": 1}, {"v": 1, "w": 1}):
        found_flat(table, **content)
    shapes = dict(table._shapes)
    slot = table.add("also", Plan(tests=(SameNumber("v", 1.0),)), "owner")
    table.add("both", Plan(tests=(SameNumber("v", 1.0), SameNumber("w", 1.0))), "owner")
    assert table._shapes == shapes
    assert [found_flat(table, **content)[0] for content in ({"v": 1}, {"v": 1, "w": 1}, {"v": 2, "w": 1})] == [
        {"also"}, {"v", "also", "both"}, set(),
    ]  # fmt: skip
    table.remove(slot)
    assert [found_flat(table, **content)[0] for content in ({"v": 1}, {"v": 1, "w": 1})] == [set(), {"v", "both"}]


def test_of_fields_with_several_values_the_owners_check_all_plans_that_may_hold() -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("one", Plan(tests=(SameNumber("v", 1.0),)), "owner of one")
    table.add("two", Plan(tests=(SameNumber("v", 2.0),)), "owner of two")
    table.add("range", Plan(tests=(Between("v", 2.0, 3.0),)), "owner of range")

    def found(event: Event) -> tuple[set[Any], set[str]]:
        keys: set[Any] = set()
        owners = table.collect(EventValues(event), keys)
        return keys, set(owners)

    assert found(Event("T", {"v": 2})) == ({"two", "range"}, set())
    assert found(Event("T", {"v": [1, 4, 9]})) == (set(), {"owner of one", "owner of range"})
    assert found(Event("T", {"w": 1})) == (set(), set())


def test_of_an_element_with_several_values_the_table_decides_what_one_of_them_meets() -> None:
    table: AttributeTable[str] = AttributeTable()
    table.add("b", Plan(tests=(SameText(InDocument("b"), "x"),)), "owner")
    table.add("c", Plan(tests=(SameText(InDocument("c"), "x"),), exact=False), "owner of c")
    keys: set[Any] = set()
    assert table.collect(EventValues(Event.from_xml("<T><b>y</b><b>x</b><c>x</c></T>")), keys) == ["owner of c"]
    assert keys == {"b"}


def test_a_table_gives_back_the_rows_of_plans_that_are_gone() -> None:
    table: AttributeTable[str] = AttributeTable()
    slots = [
        table.add("a", Plan(tests=(SameText("a", "x"), Between("v", 1.0, 2.0)), needs=("n", "m")), "owner"),
        table.add("b", Plan(tests=(SameText("a", "y"), Between("v", 2.0, 3.0)), needs=("n",)), "owner"),
    ]
    # All slots; n, m; what is x, y or neither; the numbers between 1, 2, 3 and the ends, and what is no number.
    assert used_rows(table._bits) == 1 + 2 + 3 + (5 + 1)
    found_flat(table, a="x", v=1, n=0)
    assert used_rows(table._bits) == 12 + 1
    table.remove(slots[0])
    assert used_rows(table._bits) == 1 + 1 + 2 + (3 + 1)
    assert (found_flat(table, a="y", v=2, n=0)[0], found_flat(table, a="x", v=1, n=0)[0]) == ({"b"}, set())
    table.remove(slots[1])
    assert (used_rows(table._bits), table._columns, table._without, table._needed) == (1, {}, {}, {})
