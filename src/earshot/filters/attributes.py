"""Conjunctions of tests over named values, as columns of bits: one step a value, whatever their number.

Each conjunction has a slot. Each value that tests can tell from others (a text, a stretch between two
bounds) has a row with one bit a slot: may the conjunction still hold when the value is this? An event
takes one row for each of its values, and what is left when all are and-ed are the conjunctions that
hold. Ten thousand slots are 1.2 KB a row.

Rows have two planes where they are needed: `possible`, and `certain` below it. A slot that is possible
but not certain is a candidate for its owner to check: its plan was not exact, or a bound of it fell
between the bounds that got rows of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import getitem, itemgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from earshot.filters.bits import Bits, slots_in
from earshot.filters.columns import Column, SameColumn, new_column
from earshot.filters.plans import InDocument, Plan, Same, SimpleTest, Source
from earshot.filters.reading import Reading

MOST_SHAPES = 64
"Sets of names that events come with, each with a row."

_and_all = np.bitwise_and.reduce
_or_all = np.bitwise_or.reduce

Owner = TypeVar("Owner")


class _Shape:
    """The sources an event has values from: the slots that need no others, and the columns to look at."""

    def __init__(self, sources: frozenset[Source], columns: list[Column], row: int) -> None:
        self.sources = sources
        self.columns = columns
        self.row = row
        names = [column.source for column in columns]
        self.values: Callable[[Any], tuple[Any, ...]] = itemgetter(*names, *names[:1]) if names else _no_values
        "One more than columns, so that a single one comes in a tuple too."


def _no_values(_: Any) -> tuple[Any, ...]:
    return ()


class AttributeTable(Generic[Owner]):
    """Plans and whose they are. What an event meets comes in two lists: keys, and owners yet to be checked."""

    def __init__(self) -> None:
        self._bits = Bits()
        self._alive = self._bits.new_row()
        self._bits.words[self._alive] = 0
        self._columns: dict[tuple[type[SimpleTest], Source], Column] = {}
        self._without: dict[Source, int] = {}
        "For each source that is needed, the row of the slots that do not need it."
        self._needed: Counter[Source] = Counter()
        self._shapes: dict[tuple[Source, ...], _Shape] = {}
        self._free: list[int] = []
        self._plans: list[Plan | None] = []
        self._owners: list[Owner | None] = []
        self._keys: NDArray[np.object_] = np.empty(self._bits.slots, object)

    def __len__(self) -> int:
        return len(self._plans) - len(self._free)

    @property
    def is_full(self) -> bool:
        """Whether there may be no more rows."""
        return self._bits.is_full

    @property
    def same_columns(self) -> int:
        """How many sources are compared with single values."""
        return sum(isinstance(column, SameColumn) for column in self._columns.values())

    def has_row(self, test: Same) -> bool:
        """Whether the value it asks for has a row."""
        column = self._columns.get((type(test), test.source))
        return isinstance(column, SameColumn) and column.has_row(test)

    def owners(self) -> Iterator[Owner]:
        return (owner for owner in self._owners if owner is not None)

    def add(self, key: Hashable, plan: Plan, owner: Owner) -> int:
        """Give the plan a slot; tests that find no room in the table are left to be checked."""
        tests = tuple(test for test in plan.tests if self._has_place(test))
        needs = tuple(source for source in plan.needs if source in self._without or not self.is_full)
        exact = plan.exact and len(tests) == len(plan.tests) and len(needs) == len(plan.needs)
        slot = self._new_slot()
        self._keys[slot], self._owners[slot] = key, owner
        self._plans[slot] = plan = Plan(None, tests, needs, exact)
        for source in needs:
            self._need(source, slot)
        for test in tests:
            column = self._columns.get((type(test), test.source))
            if column is None:
                column = self._new_column(test)
            column.users += 1
            column.add(slot, test)
        self._bits.set(self._alive, slot)
        if not exact:
            self._bits.clear_certain(self._alive, slot)
        for shape in self._shapes.values():
            if shape.sources.issuperset(needs):
                self._bits.set(shape.row, slot)
                if not exact:
                    self._bits.clear_certain(shape.row, slot)
        return slot

    def remove(self, slot: int) -> None:
        """Take the slot back."""
        plan = self._plans[slot]
        assert plan is not None
        self._plans[slot] = self._owners[slot] = self._keys[slot] = None
        self._free.append(slot)
        self._bits.clear(self._alive, slot)
        for shape in self._shapes.values():
            self._bits.clear(shape.row, slot)
        for test in plan.tests:
            column = self._columns[type(test), test.source]
            column.remove(slot, test)
            column.users -= 1
            if not column.users:
                self._drop_column(test)
        for source in plan.needs:
            self._need_not(source, slot)

    def met_by_flat(self, content: Mapping[str, Any]) -> tuple[list[Any], list[Owner]]:
        """What an event meets whose content is one value a name."""
        shape = self._shapes.get(tuple(content))
        if shape is None:
            shape = self._new_shape(tuple(content))
        rows = list(map(getitem, shape.columns, shape.values(content)))
        rows.append(shape.row)
        return self._split(_and_all(self._bits.words.take(rows, 0)))

    def met_by(self, reading: Reading) -> tuple[list[Any], list[Owner]]:
        """What any event meets. Where a field has several values, everything found is yet to be checked."""
        sources = tuple(source for source in self._without if reading.has(source))
        shape = self._shapes.get(sources) or self._new_shape(sources)
        words = self._bits.words
        found = words[shape.row].copy()
        single = True
        for column in shape.columns:
            values = reading.values(column.source)
            if len(values) == 1:
                found &= words[column[values[0]]]
            else:
                found &= _or_all(words.take(list(column.rows_around(values)), 0))
                single = single and isinstance(column.source, InDocument)
        if single:
            return self._split(found)
        return [], self._owners_in(found[0])

    def _split(self, found: NDArray[np.uint64]) -> tuple[list[Any], list[Owner]]:
        if len(found) == 1:
            return self._keys_in(found[0]), []
        doubtful = found[0] & ~found[1]
        return self._keys_in(found[1]), self._owners_in(doubtful)

    def _keys_in(self, words: NDArray[np.uint64]) -> list[Any]:
        if len(words) > 512:
            return self._keys[slots_in(words)].tolist()
        return self._keys[np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)].tolist()

    def _owners_in(self, words: NDArray[np.uint64]) -> list[Owner]:
        owners = map(self._owners.__getitem__, slots_in(words).tolist())
        return [owner for owner in owners if owner is not None]

    def _new_slot(self) -> int:
        if self._free:
            return self._free.pop()
        slot = len(self._plans)
        if slot == self._bits.slots:
            self._bits.add_slots()
            self._keys.resize(self._bits.slots, refcheck=False)
            self._bits.words[self._alive, :, slot >> 6 :] = 0
            for shape in self._shapes.values():
                self._bits.words[shape.row, :, slot >> 6 :] = 0
        self._plans.append(None)
        self._owners.append(None)
        return slot

    def _has_place(self, test: SimpleTest) -> bool:
        column = self._columns.get((type(test), test.source))
        return column.has_place(test) if column is not None else not self.is_full

    def _new_column(self, test: SimpleTest) -> Column:
        column = self._columns[type(test), test.source] = new_column(test, self._bits)
        self._drop_shapes()
        return column

    def _drop_column(self, test: SimpleTest) -> None:
        for row in self._columns.pop((type(test), test.source)).rows().tolist():
            self._bits.free_row(row)
        self._drop_shapes()

    def _need(self, source: Source, slot: int) -> None:
        if source not in self._without:
            self._without[source] = self._bits.new_row()
            self._drop_shapes()
        self._needed[source] += 1
        self._bits.clear(self._without[source], slot)

    def _need_not(self, source: Source, slot: int) -> None:
        self._bits.set(self._without[source], slot)
        self._needed[source] -= 1
        if not self._needed[source]:
            del self._needed[source]
            self._bits.free_row(self._without.pop(source))
            self._drop_shapes()

    def _new_shape(self, sources: tuple[Source, ...]) -> _Shape:
        """Names that nothing needs make no difference; shapes that differ in them alone share a row."""
        present = frozenset(source for source in sources if source in self._without)
        if len(self._shapes) >= MOST_SHAPES:
            self._drop_shapes()
        for shape in self._shapes.values():
            if shape.sources == present:
                self._shapes[sources] = shape
                return shape
        row = self._bits.new_row()
        absent = [row for source, row in self._without.items() if source not in present]
        self._bits.words[row] = _and_all(self._bits.words.take([self._alive, *absent], 0))
        columns = [column for column in self._columns.values() if column.source in present]
        shape = self._shapes[sources] = _Shape(present, columns, row)
        return shape

    def _drop_shapes(self) -> None:
        for row in {shape.row for shape in self._shapes.values()}:
            self._bits.free_row(row)
        self._shapes.clear()
