"""The loops over a matrix of bits, compiled and plain, against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.filters.index.bits import (
    Bits,
    Loops,
    _intersection_loop,
    _set_in_loop,
    compiled_loops,
    plain_loops,
    slots_of,
)
from earshot.filters.index.columns import RoundedRanges
from earshot.filters.index.event_values import Between

SLOTS = 200


def compiled(bits: Bits) -> Loops:
    loops_over = compiled_loops()
    if loops_over is None:
        pytest.skip("no compiler: pip install 'earshot[fast]'")
    return loops_over(bits)


def bits_of(wanted: list[set[int]]) -> tuple[Bits, list[int]]:
    """A matrix with one row for each set of slots, and the numbers of these rows."""
    bits = Bits()
    while bits.slots < SLOTS:
        bits.add_slots()
    rows = [bits.new_row() for _ in wanted]
    for row, slots in zip(rows, wanted, strict=True):
        bits.words[row] = 0
        for slot in slots:
            bits.set(slot, [row])
    return bits, rows


def intersection(loops: Loops, rows: list[int]) -> list[int]:
    first, *others = map(loops.handles.__getitem__, rows)
    return list(loops.intersection(first, others))


both_loops = pytest.mark.parametrize("loops_over", [plain_loops, compiled], ids=["plain", "compiled"])


@both_loops
@given(
    wanted=st.lists(
        st.sets(st.integers(0, SLOTS - 1)) | st.just(set(range(SLOTS))) | st.just({0, 63, 64, SLOTS - 1}), min_size=1
    )
)
def test_the_slots_of_all_rows_are_those_of_all_sets(loops_over, wanted: list[set[int]]) -> None:
    bits, rows = bits_of(wanted)
    assert intersection(loops_over(bits), rows) == sorted(set.intersection(*wanted))
    assert [set(slots_of(bits.bytes[row]).tolist()) for row in rows] == wanted  # the rows stay as they were


@both_loops
@pytest.mark.parametrize("count", range(1, 11))
def test_every_row_counts(loops_over, count: int) -> None:
    bits, rows = bits_of([set(range(SLOTS)) - {number} for number in range(count)])
    slots = intersection(loops_over(bits), rows)
    assert [slot for slot in slots if slot < SLOTS] == list(range(count, SLOTS))


@both_loops
@given(
    wanted=st.lists(st.sets(st.integers(0, SLOTS - 1)), min_size=1),
    slot=st.integers(0, SLOTS - 1),
    first=st.integers(0, 5),
    count=st.integers(0, 5),
)
def test_a_slot_is_set_in_the_rows_of_a_range_and_cleared_in_the_others(
    loops_over, wanted: list[set[int]], slot: int, first: int, count: int
) -> None:
    bits, rows = bits_of(wanted)
    loops_over(bits).set_in(np.array(rows), slot, first, first + count)
    for place, (row, slots) in enumerate(zip(rows, wanted, strict=True)):
        expected = slots | {slot} if first <= place < first + count else slots - {slot}
        assert slots_of(bits.bytes[row]).tolist() == sorted(expected)


def test_a_row_that_was_freed_is_used_again_and_begins_with_ones() -> None:
    bits = Bits()
    first, second = bits.new_row(), bits.new_row()
    bits.clear(5, [first])
    bits.free_row(first)
    again = bits.new_row()
    assert (again, second) == (first, 1)
    assert slots_of(bits.bytes[again]).tolist() == list(range(bits.slots))
    like = bits.new_row(like=second)
    assert slots_of(bits.bytes[like]).tolist() == slots_of(bits.bytes[second]).tolist()


def test_a_matrix_is_full_by_the_rows_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.filters.index.bits.MOST_ROWS", 2)
    bits = Bits()
    rows = [bits.new_row(), bits.new_row()]
    assert bits.is_full
    bits.free_row(rows[0])
    assert not bits.is_full


def test_where_there_is_a_compiler_loops_are_compiled() -> None:
    pytest.importorskip("numba")
    assert compiled_loops() is not None
    bits = Bits()
    bits.compile()
    assert bits.handles[:3] == [b"\x00\x00", b"\x01\x00", b"\x02\x00"]
    first, second = bits.new_row(), bits.new_row()
    bits.clear(5, [first])
    bits.clear(9, [second])
    bits.add_slots()
    slots = bits.intersection(bits.handles[first], [bits.handles[second]])
    assert list(slots) == [slot for slot in range(128) if slot not in (5, 9)]


@both_loops
def test_rows_beyond_the_first_256_have_handles_of_their_own(loops_over) -> None:
    bits, rows = bits_of([{number % 7, 100 + number % 5} for number in range(600)])
    loops = loops_over(bits)
    for several in ([255, 256], [3, 259], [520, 8, 264], [599, 300], [513, 257, 1]):
        expected = set.intersection(*({number % 7, 100 + number % 5} for number in several))
        assert intersection(loops, [rows[number] for number in several]) == sorted(expected)


def test_the_loops_before_they_are_compiled_find_the_same_slots() -> None:
    chance = np.random.default_rng(4)
    words = np.full((600, 4), ~np.uint64(0), "<u8")
    words[[7, 300, 301, 302, 599]] = chance.integers(0, 2**63, (5, 4), np.uint64) << np.uint64(1) | np.uint64(1)
    for several in ([7], [300, 7], [7, 300, 301], [7, 300, 301, 302, 599], [599, 7, 7, 7, 7, 7, 7, 7, 302], [0, 1]):
        expected = words[several[0]]
        for row in several:
            expected = expected & words[row]
        with np.errstate(over="ignore"):
            found = _intersection_loop(words, b"".join(row.to_bytes(2, "little") for row in several))
        assert found.tolist() == slots_of(expected.view(np.uint8)).tolist()


def test_the_loop_before_it_is_compiled_sets_and_clears_one_slot() -> None:
    matrix = np.tile(np.array([0b10101010, 0b01010101], np.uint8), (5, 1))
    _set_in_loop(matrix, np.array([4, 0, 2, 1]), 9, 1, 3)
    # Bit 1 of the second byte: set in the second and third of the rows, clear in the others; row 3 is not named.
    assert matrix[:, 0].tolist() == [0b10101010] * 5
    assert matrix[:, 1].tolist() == [0b01010111, 0b01010101, 0b01010111, 0b01010101, 0b01010101]
    _set_in_loop(matrix, np.array([0, 3]), 8, 0, 0)
    assert matrix[:, 1].tolist() == [0b01010110, 0b01010101, 0b01010111, 0b01010100, 0b01010101]


def test_rounded_ranges_hold_alike_when_they_are_compiled() -> None:
    pytest.importorskip("numba")
    plain, fast = RoundedRanges(), RoundedRanges()
    fast.compile()
    assert fast._holding is not plain._holding
    values = {"a": 2.0, "b": 7.0}
    for ranges in (plain, fast):
        ranges.resize(8)
        ranges.add(1, [Between("a", 1.0, 2.0), Between("b", 7.0, 9.0)])
        ranges.add(2, [Between("a", 1.0, 2.0), Between("b", 7.5, 9.0)])
        ranges.add(3, [Between("c", 0.0, 1.0)])
        assert ranges.holding(np.array([0, 1, 2, 3]), values.get).tolist() == [0, 1]  # type: ignore[arg-type]
