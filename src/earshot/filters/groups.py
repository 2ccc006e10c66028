"""Clauses that are looked at together: few one by one, many in a table, rare values through a dictionary."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from earshot.filters.attributes import AttributeTable
from earshot.filters.matching import Viewer
from earshot.filters.plans import SAME_AS, Between, Plan, Same, SimpleTest, Source
from earshot.filters.reading import Reading

if TYPE_CHECKING:
    from earshot.filters.filter import Filter

FEW = 16
"So many clauses are checked one by one in the time a table takes."
CROWDED = 32_768
"A table with more slots than this, for each source compared with values, is slower than one group a value."


class Clause:
    """One plan of one filter, and where it is kept."""

    __slots__ = ("filter", "group", "key", "plan", "slot")

    def __init__(self, key: Hashable, filter: Filter, plan: Plan) -> None:
        self.key = key
        self.filter = filter
        self.plan = plan
        self.group: Group | None = None
        self.slot = -1


class Group:
    """Clauses of one event type or one path and, within such a group, of one rare value.

    A value gets a row in the table, a bit of every clause, only when a fair share of the clauses ask for
    it; until then its clauses are a group of their own, found in a dictionary.
    """

    __slots__ = ("_above", "_by_value", "_few", "_in_document", "_table", "_test", "size")

    def __init__(self, in_document: bool, above: Group | None = None, test: Same | None = None) -> None:
        self.size = 0
        self._in_document = in_document
        "Whether clauses may ask for values in the document, and not for fields alone."
        self._above = above
        self._test = test
        "What the clauses of a group within another have in common."
        self._few: list[Clause] = []
        self._table: AttributeTable[Clause] | None = None
        self._by_value: dict[tuple[type[Same], Source], dict[Any, Group]] = {}

    def add(self, clause: Clause) -> None:
        self.size += 1
        if self._table is None and len(self._few) < FEW:
            self._few.append(clause)
            clause.group = self
            return
        if self._table is None:
            self._table = AttributeTable()
            few, self._few = self._few, []
            for one in few:
                self._place(one, self._table)
        self._place(clause, self._table)

    def remove(self, clause: Clause) -> None:
        """Remove a clause of this group or of one within it."""
        home = clause.group
        assert home is not None
        if home._table is None:
            home._few.remove(clause)
        else:
            home._table.remove(clause.slot)
        group: Group | None = home
        while group is not None:
            group.size -= 1
            if not group.size:
                group._close()
            group = group._above

    def collect(self, reading: Reading, viewer: Viewer | None, found: set[Any]) -> None:
        """Add the keys of the filters the event meets."""
        candidates = self._few
        if self._table is not None:
            if self._in_document or reading.flat is None:
                keys, candidates = self._table.met_by(reading)
            else:
                keys, candidates = self._table.met_by_flat(reading.flat)
            found.update(keys)
            if self._by_value:
                for group in self._groups_for(reading):
                    group.collect(reading, viewer, found)
        for clause in candidates:
            if clause.key in found or (self._in_document and not reading.allows(clause.plan)):
                continue
            if clause.filter.matches(reading.event, viewer):
                found.add(clause.key)

    def _groups_for(self, reading: Reading) -> Iterator[Group]:
        for (kind, source), by_value in self._by_value.items():
            for value in reading.values(source):
                group = by_value.get(SAME_AS[kind](value))
                if group is not None:
                    yield group

    def _place(self, clause: Clause, table: AttributeTable[Clause]) -> None:
        rare = self._rare_test(clause, table)
        if rare is None:
            self._tabulate(clause, table)
            return
        by_value = self._by_value.setdefault((type(rare), rare.source), {})
        group = by_value.get(rare.wanted)
        if group is None:
            group = by_value[rare.wanted] = Group(self._in_document, self, rare)
        group.add(clause)
        if group.size >= max(FEW, len(table) // 1024) and not (self._is_crowded(table) or table.is_full):
            clauses = list(group._clauses())
            self._forget(rare)
            for one in clauses:
                self._tabulate(one, table)

    def _tabulate(self, clause: Clause, table: AttributeTable[Clause]) -> None:
        tests = tuple(test for test in clause.plan.tests if not self._assures(test))
        clause.slot = table.add(clause.key, replace(clause.plan, tests=tests), clause)
        clause.group = self

    def _rare_test(self, clause: Clause, table: AttributeTable[Clause]) -> Same | None:
        """The test by whose value the clause is best found in a dictionary; None where in the table."""
        tests = [test for test in clause.plan.tests if not (isinstance(test, Between) or self._assures(test))]
        if not self._is_crowded(table):
            tests = [test for test in tests if not table.has_row(test)]
        return min(tests, key=self._size_of, default=None)

    def _size_of(self, test: Same) -> int:
        group = self._by_value.get((type(test), test.source), {}).get(test.wanted)
        return 0 if group is None else group.size

    def _is_crowded(self, table: AttributeTable[Clause]) -> bool:
        return len(table) > CROWDED * max(1, table.same_columns)

    def _assures(self, test: SimpleTest) -> bool:
        group: Group | None = self
        while group is not None:
            if group._test == test:
                return True
            group = group._above
        return False

    def _clauses(self) -> Iterator[Clause]:
        yield from self._few
        if self._table is not None:
            yield from self._table.owners()
        for by_value in self._by_value.values():
            for group in by_value.values():
                yield from group._clauses()

    def _forget(self, test: Same) -> None:
        by_value = self._by_value[type(test), test.source]
        del by_value[test.wanted]
        if not by_value:
            del self._by_value[type(test), test.source]

    def _close(self) -> None:
        """Nothing is left in it."""
        self._table = None
        self._by_value = {}
        if self._above is not None and self._test is not None:
            self._above._forget(self._test)
