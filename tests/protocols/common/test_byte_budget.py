"""Tables of machines hold a number of entries and a number of bytes, whichever is reached first."""

import pytest

from earshot.protocols.common.byte_budget import (
    SMALL_TABLE_BYTES,
    TABLE_BYTES,
    BoundedTable,
    TableBudgets,
    key_bytes,
    text_bytes,
)
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.common.soft_table import SoftTable

WIDE = "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", 64),
        ("abc", 67),
        (WIDE * 3, 76),
        ("abc\N{LATIN SMALL LETTER E WITH ACUTE}", 80),
        (7, 64),
        (("abc", "d"), 196),
    ],
)
def test_a_key_counts_its_texts(key: object, expected: int) -> None:
    assert key_bytes(key) == expected


def test_texts_count_their_characters_and_64_each() -> None:
    assert (text_bytes(()), text_bytes(("abc", "d")), text_bytes([WIDE * 3])) == (0, 132, 76)


@pytest.mark.parametrize(("key", "kept"), [(f"{{:0252d}}{WIDE * 4}", 1838), ("{:030d}", 5000)])
def test_recent_keys_hold_their_budget_of_bytes_and_forget_the_oldest(key: str, kept: int) -> None:
    recent = RecentKeys(5000)
    made = [key.format(number) for number in range(6000)]
    assert all(recent.add(one) for one in made)
    assert (len(recent), list(recent._order)) == (kept, made[-kept:])
    assert recent.keys == set(made[-kept:])
    assert recent.bytes == sum(map(key_bytes, made[-kept:])) <= TABLE_BYTES
    assert not recent.add(made[-1])
    assert recent.add(made[-kept - 1])


def test_tables_have_the_share_that_their_machine_has() -> None:
    budgets = TableBudgets()
    assert (budgets.table_bytes, budgets.of(1000), budgets.names(4096)) == (TABLE_BYTES, 1000, 4096)
    recent = RecentKeys(5000, budgets)
    small = RecentKeys(5000, budgets, 1000)
    table: BoundedTable[str, int] = BoundedTable(5000, budgets)
    soft: SoftTable[str, int] = SoftTable(5000, budgets)
    budgets.limit(0.125)
    assert (budgets.table_bytes, budgets.of(1000), budgets.names(4096)) == (250_000, 125, 535)
    for number in range(3000):
        for key in (f"{number:036d}", f"{number}{WIDE * 100}"):
            recent.add(key)
            small.add(key)
            table.put(key, number)
            soft.put(key, number, float(number))
    assert 249_000 < recent.bytes <= 250_000
    assert (len(small), list(small.keys)) == (0, [])
    assert 249_000 < table.bytes <= 250_000
    assert 249_000 < soft.bytes <= 250_000
    assert f"2999{WIDE * 100}" in recent
    assert soft.get(f"2999{WIDE * 100}", 0.0) == 2999
    soft.forget(1e9)
    assert (len(soft), soft.bytes) == (0, 0)


def test_recent_keys_count_bytes_from_the_first_long_key_on() -> None:
    recent = RecentKeys(4096)
    short = [f"{number:030d}" for number in range(4000)]
    assert all(map(recent.add, short))
    assert recent._bytes is None
    assert recent.bytes == 4000 * 94
    assert recent.add(WIDE * 256)
    assert recent._bytes == recent.bytes == 4000 * 94 + 64 + 1024
    for number in range(3000):
        recent.add(f"{number}{WIDE * 250}")
    assert recent.bytes == sum(map(key_bytes, recent._order)) <= TABLE_BYTES


def test_a_bounded_table_forgets_the_oldest_by_number() -> None:
    table: BoundedTable[str, tuple[str, float]] = BoundedTable(2)
    for key in ("a", "b", "a", "c"):
        table.put(key, (f"by-{key}", 1.0))
    assert (list(table), table.get("b"), table.get("c")) == (["a", "c"], None, ("by-c", 1.0))
    table.pop("a")
    table.pop("a")
    assert (len(table), table.bytes) == (1, key_bytes("c") + key_bytes(("by-c", 1.0)))


def test_a_bounded_table_forgets_what_is_over_up_to_the_first_that_is_not() -> None:
    table: BoundedTable[str, float] = BoundedTable(9)
    for at, key in enumerate("abcd"):
        table.put(key, float(at % 3))
    table.forget(lambda at: at < 2.0)
    assert (list(table), table.bytes) == (["c", "d"], 2 * (65 + 64))


def test_a_bounded_table_forgets_the_oldest_by_bytes() -> None:
    table: BoundedTable[str, tuple[str, float]] = BoundedTable(10**6)
    for number in range(3000):
        table.put(f"{number:0252d}{WIDE}", (WIDE * 128, 1.0))
    assert table.bytes <= TABLE_BYTES < table.bytes + 2500
    assert list(table)[-1] == f"{2999:0252d}{WIDE}"


def test_a_bounded_table_may_be_exactly_full() -> None:
    table: BoundedTable[str, str] = BoundedTable(10**6)
    table.put("a", "x" * (TABLE_BYTES - 2 * key_bytes("a") - 2 * key_bytes("")))
    table.put("b", "")
    assert (list(table), table.bytes) == (["a", "b"], TABLE_BYTES)
    table.put("b", "y")
    assert (list(table), table.bytes) == (["b"], 2 * key_bytes("b"))


@pytest.mark.parametrize(("budget", "limit"), [(TABLE_BYTES, 2_000_000), (SMALL_TABLE_BYTES, 500_000)])
def test_a_table_usually_holds_two_million_bytes_and_a_small_one_a_quarter_of_them(budget: int, limit: int) -> None:
    table: BoundedTable[str, str] = BoundedTable(9, usual_bytes=budget)
    for more, kept in ((0, ["a"]), (1, [])):
        table.put("a", "x" * (limit - key_bytes("a") - key_bytes("") + more))
        assert list(table) == kept


def test_a_machine_of_usual_memory_holds_4285_names() -> None:
    assert [TableBudgets().names(usual) for usual in (4285, 4286, 9999)] == [4285, 4285, 4285]


@pytest.mark.parametrize(("length", "kept"), [(36, 4), (37, 3)])
def test_short_keys_count_too_where_their_number_alone_would_exceed_the_bytes(length: int, kept: int) -> None:
    recent = RecentKeys(4, usual_bytes=4 * (36 + 64))
    made = [f"{number:036d}" for number in range(2)] + [f"{number:0{length}d}" for number in range(2, 9)]
    assert all(recent.add(key) for key in made)
    assert list(recent._order) == made[-kept:]
