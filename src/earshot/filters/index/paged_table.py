"""A table of which an event reads only some pages: those of the values it has.

A table's rows grow with the number of its slots, and all of a row is read. Here the plans that ask for
one value, each by the one of its values that fewest others ask for, share pages of 64 slots, a shelf.
An event reads the shelves of its own values and no others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from operator import getitem
from typing import Any

import numpy as np

from earshot.filters.index.attributes import AttributeTable, Owner, and_all
from earshot.filters.index.bits import slots_of
from earshot.filters.index.columns import SameColumn
from earshot.filters.index.plans import Between, Plan, Same


class _ValuePages:
    """Pages for plans that ask for one value."""

    __slots__ = ("free", "pages", "row", "test", "used")

    def __init__(self, test: Same | None) -> None:
        self.test = test
        self.row: int | None = None
        "The row of the value."
        self.pages: list[int] = []
        self.free: list[int] = []
        self.used = 0


class PagedTable(AttributeTable[Owner]):
    """A table for very many plans that ask for some value."""

    def __init__(self) -> None:
        super().__init__()
        self._shelves: dict[Same | None, _ValuePages] = {}
        self._by_row: dict[int, _ValuePages] = {}
        self._by_page: list[_ValuePages | None] = []
        self._free_pages: list[list[int]] = []

    def add(self, key: Hashable, plan: Plan, owner: Owner) -> int:
        slot = super().add(key, plan, owner)
        shelf = self._by_page[slot >> 6]
        assert shelf is not None
        if shelf.row is None and shelf.test is not None:
            column = self._columns[type(shelf.test), shelf.test.source]
            assert isinstance(column, SameColumn)
            shelf.row = column.row_for(shelf.test)
            self._by_row[shelf.row] = shelf
        return slot

    def collect_flat(self, content: Mapping[str, Any], keys: set[Any]) -> list[Owner]:
        shape = self._shapes.get(tuple(content))
        if shape is None:
            shape = self._new_shape(tuple(content))
        rows = [shape.row, *map(getitem, shape.columns, shape.values(content))]
        read = [page for shelf in map(self._by_row.get, rows) if shelf is not None for page in shelf.pages]
        if None in self._shelves:
            read += self._shelves[None].pages
        if not read:
            return []
        words = self._bits.words
        pages = np.array(read)
        met = and_all(words.ravel().take(np.array(rows)[:, None] * words.shape[1] + pages))
        bits = slots_of(met.view(np.uint8))
        return self._collect_slots((pages[bits >> 6] << 6) + (bits & 63), content.get, keys)

    def _new_slot(self, plan: Plan) -> int:
        tests = [test for test in plan.tests if not isinstance(test, Between)]
        test = min(tests, key=self._use_of, default=None)
        shelf = self._shelves.get(test)
        if shelf is None:
            shelf = self._shelves[test] = _ValuePages(test)
        if not shelf.free:
            shelf.free = self._free_pages.pop() if self._free_pages else self._new_slots()
            page = shelf.free[0] >> 6
            shelf.pages.append(page)
            self._by_page += [None] * (page + 1 - len(self._by_page))
            self._by_page[page] = shelf
        shelf.used += 1
        return shelf.free.pop()

    def _free_slot(self, slot: int) -> None:
        shelf = self._by_page[slot >> 6]
        assert shelf is not None
        shelf.free.append(slot)
        shelf.used -= 1
        if not shelf.used:
            del self._shelves[shelf.test]
            if shelf.row is not None:
                del self._by_row[shelf.row]
            for page in shelf.pages:
                self._by_page[page] = None
                self._free_pages.append(list(range(page << 6, (page + 1) << 6)))

    def _use_of(self, test: Same) -> int:
        shelf = self._shelves.get(test)
        return 0 if shelf is None else shelf.used
