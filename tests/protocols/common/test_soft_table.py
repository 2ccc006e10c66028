"""Soft state: an entry lives until its end, and the one that ends first makes room."""

from earshot.protocols.common.byte_budget import TableBudgets, key_bytes
from earshot.protocols.common.soft_table import VALUE_BYTES, SoftTable


def table() -> SoftTable[str, int]:
    found: SoftTable[str, int] = SoftTable(2)
    assert (found.put("late", 1, until=9.0), found.put("soon", 2, until=5.0)) == (None, None)
    return found


def test_an_entry_ends_at_its_time() -> None:
    held = table()
    assert [(held.get("soon", now), held.holds("soon", now)) for now in (4.9, 5.0)] == [(2, True), (None, False)]
    assert (held.get("unknown", 0.0), held.holds("unknown", 0.0)) == (None, False)
    assert [list(held.items(now)) for now in (4.9, 5.0, 9.0)] == [[("late", 1), ("soon", 2)], [("late", 1)], []]


def test_a_new_entry_replaces_the_one_that_ends_first() -> None:
    held = table()
    assert (held.put("new", 3, until=7.0), len(held)) == ("soon", 2)
    assert list(held.items(0.0)) == [("late", 1), ("new", 3)]


def test_a_renewed_entry_replaces_no_other() -> None:
    held = table()
    assert (held.put("soon", 4, until=12.0), len(held)) == (None, 2)
    assert list(held.items(9.0)) == [("soon", 4)]


def test_expired_entries_are_removed_when_asked() -> None:
    held = table()
    held.forget(5.0)
    assert (len(held), held.first_end) == (1, 9.0)
    held.pop("late")
    held.pop("late")
    assert (len(held), held.first_end) == (0, float("inf"))


def test_the_first_end_is_the_earliest() -> None:
    assert table().first_end == 5.0


def test_entries_may_take_all_bytes_of_a_table_and_no_byte_more() -> None:
    one = key_bytes("x") + VALUE_BYTES

    def held_in(table_bytes: int) -> list[str]:
        budgets = TableBudgets()
        budgets.table_bytes = table_bytes
        held: SoftTable[str, int] = SoftTable(99, budgets)
        for number, name in enumerate("abc"):
            held.put(name, number, until=5.0 + number)
        assert held.bytes == one * len(held)
        return [name for name, _ in held.items(0.0)]

    assert [held_in(limit) for limit in (3 * one, 3 * one - 1, one)] == [["a", "b", "c"], ["b", "c"], ["c"]]
    assert held_in(1) == ["c"], "the newest is kept however small the table"


def test_an_entry_counts_its_key_and_256_bytes_for_its_value() -> None:
    held = table()
    assert held.bytes == (64 + len("late") + 256) + (64 + len("soon") + 256)
    held.put("soon", 3, until=6.0)
    held.pop("late")
    assert held.bytes == 64 + len("soon") + 256


def test_a_key_has_room_as_long_as_the_budget_is_not_exceeded() -> None:
    budgets = TableBudgets()
    held: SoftTable[str, int] = SoftTable(9, budgets)
    one_entry = key_bytes("a") + VALUE_BYTES
    budgets.table_bytes = 2 * one_entry
    assert held.has_bytes_for("a", "b")
    assert not held.has_bytes_for("a", "b", "c")
    held.put("a", 1, 10.0)
    assert held.has_bytes_for("b"), "exactly as much as the budget allows"
    assert held.has_bytes_for("a", "b"), "a key of the table needs no more room"
    assert not held.has_bytes_for("bb" * 50)
