"""Clauses that are looked at together: few one by one, many in a table, rare values through a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

from msgspec.structs import replace

from earshot.filters.filter import Filter
from earshot.filters.index.attributes import AttributeTable
from earshot.filters.index.event_values import Reading
from earshot.filters.index.paged_table import PagedTable
from earshot.filters.index.plans import SAME_AS, Between, Plan, Same, SameText, SimpleTest, Source
from earshot.filters.language.matching import Viewer

FEW = 16
"So many clauses are checked one by one in the time a table takes."
CROWDED = 16_384
"Past so many clauses, those that ask for a value go to a table of pages."
RARE = 2048
"A value that fewer than one in so many clauses ask for is rare."


_Kind = tuple[type[Same], Source]


class Clause:
    """One plan of one filter, and where it is kept."""

    __slots__ = ("filter", "group", "key", "plan", "slot", "sure", "table", "word")

    def __init__(self, key: Hashable, filter: Filter, plan: Plan) -> None:
        self.key = key
        self.filter = filter
        self.plan = plan
        self.word = _word(plan)
        "A field and the text it must have, where the plan asks for one: the quickest test to fail."
        self.group: Group | None = None
        self.table: AttributeTable[Clause] | None = None
        self.slot = -1
        self.sure = False
        "Whether being found in its group is all that it asks for."


def _word(plan: Plan) -> tuple[str, str] | None:
    for test in plan.tests:
        if type(test) is SameText and isinstance(test.source, str):
            return test.source, test.wanted
    return None


class Group:
    """Clauses of one event type or one path and, within such a group, of one rare value.

    A value gets a row in the table, a bit of every clause, only when a fair share of the clauses ask for
    it; until then clauses that do are a group of their own, found in a dictionary.
    """

    __slots__ = ("_above", "_asked", "_by_value", "_few", "_in_document", "_overflow", "_table", "_test", "size")

    def __init__(self, in_document: bool, above: Group | None = None, test: Same | None = None) -> None:
        self.size = 0
        self._in_document = in_document
        "Whether clauses may ask for values in the document, and not for fields alone."
        self._above = above
        self._test = test
        "What the clauses of a group within another have in common."
        self._few: list[Clause] = []
        self._table: AttributeTable[Clause] | None = None
        self._overflow: PagedTable[Clause] | None = None
        self._asked: Counter[Same] = Counter()
        "How many clauses ask for a value, where there is a table."
        self._by_value: dict[_Kind, dict[Any, Group]] = {}

    def add(self, clause: Clause) -> None:
        self.size += 1
        if self._table is None and len(self._few) < FEW:
            self._few.append(clause)
            clause.group, clause.table = self, None
            clause.sure = self._is_all(clause.plan)
            return
        if self._table is None:
            self._table = AttributeTable()
            few, self._few = self._few, []
            for one in few:
                self._place_new(one)
        self._place_new(clause)

    def remove(self, clause: Clause) -> None:
        """Remove a clause of this group or of one within it."""
        home = clause.group
        assert home is not None
        if clause.table is None:
            home._few.remove(clause)
        else:
            clause.table.remove(clause.slot)
        group: Group | None = home
        while group is not None:
            group._discount(clause)
            group = group._above

    def collect(self, reading: Reading, viewer: Viewer | None, found: set[Any]) -> None:
        """Add the keys of the filters the event meets."""
        if self._table is None:
            self._check(self._few, reading, viewer, found)
            return
        candidates = self._ask(self._table, reading, found)
        if self._overflow is not None:
            candidates += self._ask(self._overflow, reading, found)
        if candidates:
            self._check(candidates, reading, viewer, found)
        if self._by_value:
            for group in self._groups_for(reading):
                group.collect(reading, viewer, found)

    def _ask(self, table: AttributeTable[Clause], reading: Reading, found: set[Any]) -> list[Clause]:
        """Add the keys a table is sure of; the clauses it is not sure of."""
        if reading.flat is None or self._in_document:
            return table.collect(reading, found)
        return table.collect_flat(reading.flat, found)

    def _check(self, clauses: list[Clause], reading: Reading, viewer: Viewer | None, found: set[Any]) -> None:
        """Ask the filters themselves."""
        flat = reading.flat
        for clause in clauses:
            if flat is not None and clause.word is not None:
                name, wanted = clause.word  # where the value is no text, it is the filter that knows its text
                value = flat.get(name)
                if value != wanted and (value is None or type(value) is str):
                    continue
            if clause.key in found or (self._in_document and not reading.allows(clause.plan)):
                continue
            if clause.sure or clause.filter.matches(reading.event, viewer):
                found.add(clause.key)

    def _groups_for(self, reading: Reading) -> Iterator[Group]:
        for (kind, source), by_value in self._by_value.items():
            for value in reading.values(source):
                group = by_value.get(SAME_AS[kind](value))
                if group is not None:
                    yield group

    def _place_new(self, clause: Clause) -> None:
        tests = self._same_tests(clause)
        self._asked.update(tests)
        self._place(clause)
        for test in tests:
            group = self._by_value.get((type(test), test.source), {}).get(test.wanted)
            if group is not None and not self._is_rare(test):
                self._forget(test)
                for one in group._clauses():
                    self._place(one)

    def _place(self, clause: Clause) -> None:
        tests = self._same_tests(clause)
        rare = [test for test in tests if self._is_rare(test)]
        if not rare:
            plan = clause.plan
            if self._test is not None:
                plan = replace(plan, tests=tuple(test for test in plan.tests if not self._assures(test)))
            clause.group, clause.table, clause.sure = self, self._table_for(tests), False
            clause.slot = clause.table.add(clause.key, plan, clause)
            return
        rarest = min(rare, key=self._asked.__getitem__)
        by_value = self._by_value.setdefault((type(rarest), rarest.source), {})
        group = by_value.get(rarest.wanted)
        if group is None:
            group = by_value[rarest.wanted] = Group(self._in_document, self, rarest)
        group.add(clause)

    def _same_tests(self, clause: Clause) -> list[Same]:
        return [test for test in clause.plan.tests if not (isinstance(test, Between) or self._assures(test))]

    def _is_rare(self, test: Same) -> bool:
        return self._asked[test] < max(2, self.size // RARE)

    def _table_for(self, tests: list[Same]) -> AttributeTable[Clause]:
        assert self._table is not None
        if not tests or self._table.size < CROWDED:
            return self._table
        if self._overflow is None:
            self._overflow = PagedTable()
        return self._overflow

    def _discount(self, clause: Clause) -> None:
        """Count one clause less."""
        self.size -= 1
        if not self.size:
            self._close()
        elif self._asked:
            for test in self._same_tests(clause):
                _discount(self._asked, test)

    def _is_all(self, plan: Plan) -> bool:
        """Whether an event that has the group's value has all that the plan asks for."""
        if not plan.exact or plan.moves is not None or not all(map(self._assures, plan.tests)):
            return False
        return {test.source for test in plan.tests}.issuperset(plan.needs)

    def _assures(self, test: SimpleTest) -> bool:
        group: Group | None = self
        while group is not None:
            if group._test == test:
                return True
            group = group._above
        return False

    def _clauses(self) -> Iterator[Clause]:
        yield from self._few
        for table in (self._table, self._overflow):
            if table is not None:
                yield from table.owners()
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
        self._table = self._overflow = None
        self._asked.clear()
        self._by_value = {}
        if self._above is not None and self._test is not None:
            self._above._forget(self._test)


def _discount(counts: Counter[Any], key: Any) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
