"""The columns of a table: which row an event's value selects, for one kind of test.

A column of ranges has a limited number of bounds. Ranges between them are rounded outwards, and `RoundedRanges`
checks them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from math import inf, isnan, nan, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot.events import Value
from earshot.filters.index.bits import Bits, Handle, Slots, compiled
from earshot.filters.index.event_values import SAME_AS, Between, Same, SameText, SimpleTest
from earshot.filters.language.alternatives import Source
from earshot.filters.language.values import number_of

MOST_BOUNDS = 256
"Bounds that cut the numbers of one source into cells; other bounds are rounded outwards and checked."
MOST_ROUNDED = 3
"Rounded ranges that are kept for a slot."
NO_BOUND = -inf
"Stands for the bound of a range that is open on one side: all numbers are above it, so it cuts none of them off."
MOST_REMEMBERED = 4096
"Values whose row a column remembers."


class ValueColumn(ABC, dict[Any, Handle]):
    """The rows of one kind of test on one source: value -> handle of its row, filled when a value is first seen."""

    def __init__(self, source: Source, bits: Bits) -> None:
        super().__init__()
        self.source = source
        self.users = 0
        self._bits = bits
        self.nothing = bits.new_row()
        "The row of values that meet no test, and of events without a value."
        self._cells: list[int] = []
        "The rows of values that meet tests."
        self.rows: NDArray[np.intp] = np.array([self.nothing], np.intp)
        "Those of the cells, and the one above."

    def __missing__(self, value: Value) -> Handle:
        handle = self._bits.handles[self.row_of(value)]
        if len(self) >= MOST_REMEMBERED:
            self.clear()
        self[value] = handle
        return handle

    @abstractmethod
    def row_of(self, value: Value) -> int:
        """The row for this value."""

    @abstractmethod
    def add(self, slot: int, test: Any) -> bool:
        """Enter the slot's test; True where the rows are exact, False where it was rounded."""

    @abstractmethod
    def remove(self, slot: int, test: Any) -> None:
        """Remove the slot's test."""

    def has_rows_for(self, test: Any) -> bool:
        """Whether the test needs no new row."""
        return True

    def rows_around(self, values: tuple[Value, ...]) -> Iterable[int]:
        """Rows for several values of one source, any of which may hold."""
        return {self.row_of(value): None for value in values}

    def forget(self) -> None:
        """Forget the handles of values: the matrix has moved."""
        self.clear()

    def _insert_cell(self, place: int, row: int) -> None:
        """Insert a cell with this row. (To make the array anew from the list takes ten times as long.)"""
        self._cells.insert(place, row)
        self.rows = np.concatenate((self.rows[:place], (row,), self.rows[place:]))
        self.clear()

    def _delete_cell(self, place: int) -> None:
        """Delete a cell and free its row."""
        self._bits.free_row(self._cells.pop(place))
        self.rows = np.concatenate((self.rows[:place], self.rows[place + 1 :]))
        self.clear()


class SameColumn(ValueColumn):
    """Tests for one value. A value that no test names meets none."""

    def __init__(self, kind: type[Same], source: Source, bits: Bits) -> None:
        super().__init__(source, bits)
        self._same_as = SAME_AS[kind]
        self._is_of_texts = kind is SameText
        self._wanted: list[Any] = []
        "The value of each cell."
        self._places: dict[Any, int] = {}
        "The place of each wanted value's cell."
        self._uses: dict[Any, int] = {}

    def __missing__(self, value: Value) -> Handle:
        # true, 1 and 1.0 are one dictionary key but three texts: a column of texts remembers only texts.
        if self._is_of_texts and not isinstance(value, str):
            return self._bits.handles[self.row_of(value)]
        return super().__missing__(value)

    def row_of(self, value: Value) -> int:
        place = self._places.get(self._same_as(value))
        return self.nothing if place is None else self._cells[place]

    def has_rows_for(self, test: Same) -> bool:
        return test.wanted in self._places

    def add(self, slot: int, test: Same) -> bool:
        wanted = test.wanted
        place = self._places.get(wanted)
        if place is None:
            place = self._add_cell(wanted)
        self._uses[wanted] += 1
        self._bits.set_in(self.rows, slot, place, place + 1)
        return True

    def remove(self, slot: int, test: Same) -> None:
        rows = self.rows
        self._bits.set_in(rows, slot, 0, len(rows))
        wanted = test.wanted
        others = self._uses[wanted] - 1
        if others:
            self._uses[wanted] = others
        else:
            self._drop_cell(wanted)

    def _add_cell(self, wanted: Any) -> int:
        place = self._places[wanted] = len(self._cells)
        self._wanted.append(wanted)
        self._insert_cell(place, self._bits.new_row(like=self.nothing))
        self._uses[wanted] = 0
        return place

    def _drop_cell(self, wanted: Any) -> None:
        """Drop the cell of a value that no test names any longer; the last cell takes its place."""
        del self._uses[wanted]
        place = self._places[wanted]
        last = self._wanted.pop()
        end = len(self._wanted)
        self._places[last] = place
        del self._places[wanted]
        if place < end:
            self._wanted[place] = last
            for rows in (self._cells, self.rows):
                rows[place], rows[end] = rows[end], rows[place]
        self._delete_cell(end)


class RangeColumn(ValueColumn):
    """Ranges of numbers. Bounds cut the numbers into cells, each with a row: cell i holds the numbers
    from bound i - 1 up to, but not including, bound i. A value that is not a number meets no test."""

    def __init__(self, source: Source, bits: Bits) -> None:
        super().__init__(source, bits)
        self._bounds: list[float] = []
        self._uses = {NO_BOUND: 1}
        "How many ranges start or end at a bound."
        self._handles: list[Handle] = []
        "Those of the cells; none until a value asks, since the matrix moves often while filters are added."
        self._insert_cell(0, bits.new_row())
        self._rounded: dict[int, int] = {}
        "By slot, the bounds that were rounded: bit i for bound i."

    def __missing__(self, value: Value) -> Handle:
        # Fractions seldom repeat: looking them up costs less than remembering them.
        if type(value) is float and value == value:
            place = bisect_right(self._bounds, value)
            try:
                return self._handles[place]
            except IndexError:
                self._handles = [self._bits.handles[row] for row in self._cells]
                return self._handles[place]
        return super().__missing__(value)

    def row_of(self, value: Value) -> int:
        number = number_of(value)
        return self.nothing if isnan(number) else self._cells[bisect_right(self._bounds, number)]

    def rows_around(self, values: tuple[Value, ...]) -> Iterable[int]:
        """Two values may meet the two bounds of one range, so all cells between the values count."""
        numbers = [number for number in map(number_of, values) if not isnan(number)]
        if not numbers:
            return [self.nothing]
        first, last = bisect_right(self._bounds, min(numbers)), bisect_right(self._bounds, max(numbers))
        return self._cells[first : last + 1]

    def forget(self) -> None:
        super().forget()
        self._handles = []

    def _insert_cell(self, place: int, row: int) -> None:
        if self._handles:  # If the new row moved the matrix, all of them are forgotten before an event comes.
            self._handles.insert(place, self._bits.handles[row])
        super()._insert_cell(place, row)

    def _delete_cell(self, place: int) -> None:
        del self._handles[place : place + 1]
        super()._delete_cell(place)

    def add(self, slot: int, test: Between) -> bool:
        rounded = 0
        uses = self._uses
        for i, bound in enumerate(_bounds(test)):
            if bound in uses or self._split_at(bound):
                uses[bound] += 1
            else:
                rounded |= 1 << i
        if rounded:
            self._rounded[slot] = rounded
        first, last = bisect_right(self._bounds, test.low), bisect_right(self._bounds, test.high)
        self._bits.set_in(self.rows, slot, first, last + 1)
        return not rounded

    def remove(self, slot: int, test: Between) -> None:
        rows = self.rows
        self._bits.set_in(rows, slot, 0, len(rows))
        uses = self._uses
        rounded = self._rounded.pop(slot, 0)
        for i, bound in enumerate(_bounds(test)):
            if not rounded & 1 << i:
                others = uses[bound] - 1
                if others:
                    uses[bound] = others
                else:
                    self._join_at(bound)

    def _split_at(self, bound: float) -> bool:
        """Split the cell that holds the bound; False where there is no room for more cells."""
        if len(self._bounds) >= MOST_BOUNDS or self._bits.is_full:
            return False
        self._uses[bound] = 0
        place = bisect_left(self._bounds, bound)
        self._bounds.insert(place, bound)
        self._insert_cell(place, self._bits.new_row(like=self._cells[place]))
        return True

    def _join_at(self, bound: float) -> None:
        """Join the two cells beside a bound that is no longer used. They differ where ranges were rounded to it."""
        del self._uses[bound]
        place = bisect_left(self._bounds, bound)
        del self._bounds[place]
        words = self._bits.words
        words[self._cells[place]] |= words[self._cells[place + 1]]
        self._delete_cell(place + 1)


def _bounds(test: Between) -> tuple[float, float]:
    """Where the range starts, and where it has just ended."""
    return test.low, nextafter(test.high, inf) if test.high < inf else NO_BOUND


def new_column(test: SimpleTest, bits: Bits) -> ValueColumn:
    """An empty column for tests like this one."""
    if isinstance(test, Between):
        return RangeColumn(test.source, bits)
    return SameColumn(type(test), test.source, bits)


class RoundedRanges:
    """Up to three rounded ranges for each slot; where there are fewer, the others hold for every event."""

    def __init__(self) -> None:
        self.count = 0
        "How many slots have ranges."
        self._places: dict[Source, int] = {}
        "The place of a source's number among an event's numbers; place 0 always holds 0."
        self._which = np.zeros((0, MOST_ROUNDED), np.uint32)
        self._lows = np.zeros((0, MOST_ROUNDED))
        self._highs = np.zeros((0, MOST_ROUNDED))
        self._holding: Callable[..., Slots] = _holding

    def compile(self) -> None:
        """Use compiled code from now on, where there is a compiler."""
        self._holding = _compiled_holding() or _holding

    def resize(self, slots: int) -> None:
        """Make room for this many slots."""
        more = slots - len(self._which)
        self._which = np.concatenate([self._which, np.zeros((more, MOST_ROUNDED), np.uint32)])
        self._lows = np.concatenate([self._lows, np.full((more, MOST_ROUNDED), -inf)])
        self._highs = np.concatenate([self._highs, np.full((more, MOST_ROUNDED), inf)])

    def add(self, slot: int, ranges: list[Between]) -> None:
        """Keep the ranges of a slot."""
        self.count += 1
        for i, test in enumerate(ranges):
            self._which[slot, i] = self._places.setdefault(test.source, len(self._places) + 1)
            self._lows[slot, i], self._highs[slot, i] = test.low, test.high

    def remove(self, slot: int) -> None:
        """Drop the ranges of the slot, if it has any."""
        if self.count and self._which[slot, 0]:
            self.count -= 1
            self._which[slot], self._lows[slot], self._highs[slot] = 0, -inf, inf

    def holding(self, slots: Slots, value: Callable[[Source], Value | None]) -> Slots:
        """The slots all of whose ranges hold for the event."""
        numbers = [0.0]
        for source in self._places:
            found = value(source)
            numbers.append(found if type(found) is float else nan if found is None else number_of(found))
        return self._holding(slots, self._which, self._lows, self._highs, np.array(numbers))


def _holding(slots: Any, which: Any, lows: Any, highs: Any, numbers: Any) -> Any:
    asked = numbers.take(which.take(slots, 0))
    held = (lows.take(slots, 0) <= asked) & (asked <= highs.take(slots, 0))
    return slots[held.all(axis=1)]


@cache
def _compiled_holding() -> Callable[..., Slots] | None:
    """The same, compiled; None without a compiler."""
    ranges = np.zeros((1, MOST_ROUNDED))
    return compiled(_holding_loop, np.zeros(1, np.intp), ranges.astype(np.uint32), ranges, ranges, np.zeros(1))


def _holding_loop(slots: Any, which: Any, lows: Any, highs: Any, numbers: Any) -> Any:
    kept = np.empty_like(slots)
    count = 0
    for slot in slots:
        holds = True
        for i in range(which.shape[1]):
            asked = numbers[which[slot, i]]
            if not lows[slot, i] <= asked <= highs[slot, i]:
                holds = False
                break
        if holds:
            kept[count] = slot
            count += 1
    return kept[:count]
