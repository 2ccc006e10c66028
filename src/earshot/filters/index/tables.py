"""A table of plans as rows of bits: an event costs one step for each of its values, however many plans there are.

Each plan has a slot. Each value that tests distinguish (a text, an interval between two bounds) has
a row with one bit for each slot: can the plan still hold when this is the value? An event selects one row for each of
its values; the slots that are set in all of these rows are the plans that hold. Ten thousand slots take
1.2 KB a row.

A slot whose plan is not exact is a candidate that its owner checks; one with a rounded bound is checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from operator import getitem, itemgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from earshot.events import Value
from earshot.filters.index.bits import (
    WORTH_COMPILING,
    Bits,
    Slots,
    and_all,
    or_all,
    slots_of,
)
from earshot.filters.index.columns import MOST_ROUNDED, RoundedRanges, ValueColumn, new_column
from earshot.filters.index.event_values import Between, EventValues, SimpleTest
from earshot.filters.index.plans import Plan
from earshot.filters.language.alternatives import InDocument, Source

MOST_SHAPES = 64
"Sets of names that events have, each with a row."

Owner = TypeVar("Owner")


class EventShape:
    """The sources an event has values from: the columns to look at, and the row of the slots that need no others."""

    def __init__(
        self,
        names: tuple[Source, ...],
        is_nested: bool,
        columns: list[ValueColumn],
        row: int,
    ) -> None:
        self.is_nested = is_nested
        "Whether plans need values of objects that events of this shape may have."
        self.columns = columns
        self.row = row
        asked = [column.source for column in columns]
        self.values: Callable[[Any], Iterable[Any]] = dict.values
        "An event's values in the order of the columns. (One more: of a single name, itemgetter would give no tuple.)"
        if asked != list(names):
            self.values = itemgetter(*asked, *asked[:1]) if asked else lambda _: ()


class AttributeTable(Generic[Owner]):
    """Plans and their owners. Collecting adds the keys of plans that hold, and returns owners that must check."""

    def __init__(self) -> None:
        self._bits = Bits()
        self._handles = self._bits.handles
        "Those that columns have remembered."
        self._alive = self._bits.new_row()
        self._bits.words[self._alive] = 0
        self._rounded = RoundedRanges()
        self._unsure: set[int] = set()
        "Slots that rows and ranges do not decide."
        self._columns: dict[tuple[type[SimpleTest], Source], ValueColumn] = {}
        self._without: dict[Source, int] = {}
        "For each source that plans need without a test, the row of the slots that do not need it."
        self._needed: Counter[Source] = Counter()
        self._sources: dict[Source, None] | None = None
        "All sources that plans ask for a value; None until it is asked for."
        self._shapes: dict[tuple[Source, ...], EventShape] = {}
        self._shape_rows: dict[frozenset[Source], int] = {}
        "The rows of shapes. Shapes that differ only in sources that no plan asks for share one."
        self._taken: list[tuple[Plan, Owner] | None] = []
        self._keys: NDArray[np.object_] = np.empty(0, object)
        self._free: list[int] = []

    def owners(self) -> Iterator[Owner]:
        return (taken[1] for taken in self._taken if taken is not None)

    def add(self, key: Hashable, plan: Plan, owner: Owner) -> int:
        """Give the plan a slot; its owner checks the tests for which the table has no room."""
        if self._bits.is_full:
            plan = self._what_fits(plan)
        if not self._free:
            self._add_slots()
        slot = self._free.pop()
        self._keys[slot] = key
        self._taken[slot] = (plan, owner)
        for source in plan.needs:
            if source not in self._without:
                self._without[source] = self._bits.new_row()
                self._drop_shapes()
            self._needed[source] += 1
        if plan.needs:
            self._bits.clear(slot, [self._without[source] for source in plan.needs])
        asked = [*plan.needs]
        rounded = []
        for test in plan.tests:
            source = test.source
            asked.append(source)
            column = self._columns.get((type(test), source))
            if column is None:
                column = self._add_column(test)
            column.users += 1
            if not column.add(slot, test):
                rounded.append(test)
        if not plan.exact or len(rounded) > MOST_ROUNDED:
            self._unsure.add(slot)
        elif rounded:
            self._rounded.add(slot, [test for test in rounded if isinstance(test, Between)])
        met = [self._alive]
        for sources, row in self._shape_rows.items():
            if sources.issuperset(asked):
                met.append(row)
        self._bits.set(slot, met)
        if self._handles is not self._bits.handles:
            self._follow_bits()
        return slot

    def remove(self, slot: int) -> None:
        """Free the slot."""
        plan, _ = self._at(slot)
        self._keys[slot] = self._taken[slot] = None
        self._unsure.discard(slot)
        self._rounded.remove(slot)
        self._bits.clear(slot, [self._alive, *self._shape_rows.values()])
        for test in plan.tests:
            column = self._columns[type(test), test.source]
            column.remove(slot, test)
            column.users -= 1
            if not column.users:
                self._drop_column(test)
        if plan.needs:
            self._bits.set(slot, [self._without[source] for source in plan.needs])
        for source in plan.needs:
            self._needed[source] -= 1
            if not self._needed[source]:
                del self._needed[source]
                self._bits.free_row(self._without.pop(source))
                self._drop_shapes()
        self._free.append(slot)

    def collect_flat(self, content: Mapping[str, Any], keys: set[Any]) -> list[Owner] | None:
        """Collect for an event whose content is one value a name; None where objects or lists matter."""
        names = tuple(content)
        shape = self._shapes.get(names) or self._new_shape(names)
        if shape.is_nested:
            return None
        others = map(getitem, shape.columns, shape.values(content))
        try:
            slots = self._bits.intersection(self._handles[shape.row], others)
        except TypeError:  # An object or a list has no row. To look costs less than to ask each value what it is.
            return None
        if self._rounded.count or self._unsure:
            return self._collect_slots(np.asarray(slots, np.intp), content.get, keys)
        keys.update(self._keys.take(slots).tolist())
        return []

    def collect(self, event_values: EventValues, keys: set[Any]) -> list[Owner]:
        """Collect for any event. Where a field has several values, the owners check all plans that may be met."""
        sources = tuple(source for source in self._asked_sources() if event_values.has(source))
        shape = self._shapes.get(sources) or self._new_shape(sources)
        rows = self._bits.bytes
        met = rows[shape.row].copy()
        single = True
        for column in shape.columns:
            values = event_values.values(column.source)
            if len(values) == 1:
                met &= rows[column.row_of(values[0])]
            else:
                met &= or_all(rows.take(list(column.rows_around(values)), 0))
                single = single and isinstance(column.source, InDocument)
        if single:
            return self._collect_slots(slots_of(met), event_values.value, keys)
        return [self._at(slot)[1] for slot in slots_of(met).tolist()]

    def _collect_slots(self, slots: Slots, value: Callable[[Any], Value | None], keys: set[Any]) -> list[Owner]:
        """Collect the slots whose rounded ranges hold; return the owners of those that are not decided."""
        if self._rounded.count:
            slots = self._rounded.holding(slots, value)
        if not self._unsure:
            keys.update(self._keys[slots].tolist())
            return []
        owners: list[Owner] = []
        for slot in slots.tolist():
            if slot in self._unsure:
                owners.append(self._at(slot)[1])
            else:
                keys.add(self._keys[slot])
        return owners

    def _at(self, slot: int) -> tuple[Plan, Owner]:
        taken = self._taken[slot]
        assert taken is not None
        return taken

    def _add_slots(self) -> None:
        """Add a word of new slots."""
        slot = len(self._taken)
        self._taken += [None] * 64
        if slot == self._bits.slots:
            self._bits.add_slots()
            for row in (self._alive, *self._shape_rows.values()):
                self._bits.words[row, slot // 64 :] = 0
        if slot == WORTH_COMPILING:
            self._bits.compile()
            self._rounded.compile()
        if slot == len(self._keys):
            self._keys.resize(self._bits.slots, refcheck=False)
            self._rounded.resize(self._bits.slots)
        self._free = list(range(slot + 63, slot - 1, -1))

    def _what_fits(self, plan: Plan) -> Plan:
        """The plan without the tests that have no row."""
        tests = [
            test
            for test in plan.tests
            if (column := self._columns.get((type(test), test.source))) is not None and column.has_rows_for(test)
        ]
        needs = [source for source in plan.needs if source in self._without]
        exact = plan.exact and len(tests) == len(plan.tests) and len(needs) == len(plan.needs)
        return Plan(None, tuple(tests), tuple(needs), exact)

    def _add_column(self, test: SimpleTest) -> ValueColumn:
        """The first column for tests like this."""
        column = self._columns[type(test), test.source] = new_column(test, self._bits)
        self._drop_shapes()
        return column

    def _drop_column(self, test: SimpleTest) -> None:
        for row in self._columns.pop((type(test), test.source)).rows.tolist():
            self._bits.free_row(row)
        self._drop_shapes()

    def _follow_bits(self) -> None:
        """Forget the handles of rows after the matrix has moved."""
        self._handles = self._bits.handles
        for column in self._columns.values():
            column.forget()

    def _asked_sources(self) -> dict[Source, None]:
        if self._sources is None:
            self._sources = dict.fromkeys([*self._without, *(column.source for column in self._columns.values())])
        return self._sources

    def _new_shape(self, sources: tuple[Source, ...]) -> EventShape:
        asked = self._asked_sources()
        present = frozenset(source for source in sources if source in asked)
        is_nested = any(_is_inside(source, sources) for source in asked)
        if len(self._shapes) >= MOST_SHAPES:
            self._drop_shapes()
        row = self._shape_rows.get(present)
        if row is None:
            row = self._shape_rows[present] = self._bits.new_row()
            absent = [row for source, row in self._without.items() if source not in present]
            absent += [column.nothing for column in self._columns.values() if column.source not in present]
            self._bits.words[row] = and_all(self._bits.words.take([self._alive, *absent], 0))
        places = {source: place for place, source in enumerate(sources)}
        columns = [column for column in self._columns.values() if column.source in present]
        columns.sort(key=lambda column: places[column.source])
        shape = self._shapes[sources] = EventShape(sources, is_nested, columns, row)
        if self._handles is not self._bits.handles:
            self._follow_bits()
        return shape

    def _drop_shapes(self) -> None:
        for row in self._shape_rows.values():
            self._bits.free_row(row)
        self._shape_rows.clear()
        self._shapes.clear()
        self._sources = None


def _is_inside(source: Source, names: tuple[Source, ...]) -> bool:
    """Whether a field would be found inside an object of one of these names."""
    return isinstance(source, str) and any(source[:end] in names for end, one in enumerate(source) if one == ".")
