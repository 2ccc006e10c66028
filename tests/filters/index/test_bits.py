"""The loops over a matrix of bits, compiled and plain, against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.filters.index.bits import Bits, Loops, compiled_loops, plain_loops, slots_of

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
