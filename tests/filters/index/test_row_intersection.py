"""The compiled intersection of rows against the plain one, and both against sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.filters.index.bits import Bits, RowIntersection, compiled_row_intersection, row_intersection

SLOTS = 200


def compiled() -> RowIntersection:
    intersect = compiled_row_intersection()
    if intersect is None:
        pytest.skip("no compiler: pip install 'earshot[fast]'")
    return intersect


@pytest.mark.parametrize("intersect", [lambda: row_intersection, compiled], ids=["plain", "compiled"])
@given(
    wanted=st.lists(
        st.sets(st.integers(0, SLOTS - 1)) | st.just(set(range(SLOTS))) | st.just({0, 63, 64, SLOTS - 1}), min_size=1
    )
)
def test_the_slots_of_all_rows_are_those_of_all_sets(intersect, wanted: list[set[int]]) -> None:
    bits = Bits()
    while bits.slots < SLOTS:
        bits.add_slots()
    rows = [bits.new_row() for _ in wanted]
    for row, slots in zip(rows, wanted, strict=True):
        bits.words[row] = 0
        for slot in slots:
            bits.set(row, slot)
    assert intersect()(bits, rows).tolist() == sorted(set.intersection(*wanted))
