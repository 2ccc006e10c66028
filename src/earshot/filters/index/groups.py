"""Plans that are looked at together: few one by one, many in a table, rare values through a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

from msgspec.structs import replace

from earshot.filters.filter import Filter
from earshot.filters.index.event_values import SAME_AS, Between, EventValues, Same, SameText, SimpleTest, Source
from earshot.filters.index.plans import Plan
from earshot.filters.index.tables import AttributeTable, PagedTable
from earshot.filters.language.matching import Viewer

FEW = 16
"Checking this many plans one by one takes as long as a table does."
CROWDED = 16_384
"Beyond this many plans, those that ask for a value go to a table of pages."
RARE = 2048
"A value is rare if fewer than one in this many plans ask for it."


_Kind = tuple[type[Same], Source]


class IndexedPlan:
    """One plan of one filter, and where it is kept."""

    __slots__ = ("filter", "group", "key", "plan", "slot", "sure", "table", "text_test")

    def __init__(self, key: Hashable, filter: Filter, plan: Plan) -> None:
        self.key = key
        self.filter = filter
        self.plan = plan
        self.text_test = _text_test(plan)
        "A field and the text it must have, where the plan asks for one: the cheapest test."
        self.group: PlanGroup | None = None
        self.table: AttributeTable[IndexedPlan] | None = None
        self.slot = -1
        self.sure = False
        "Whether the group's own test is all that the plan asks for."


def _text_test(plan: Plan) -> tuple[str, str] | None:
    for test in plan.tests:
        if type(test) is SameText and isinstance(test.source, str):
            return test.source, test.wanted
    return None


class PlanGroup:
    """Plans of one event type or one path and, within such a group, of one rare value.

    A value gets a row in the table, one bit for every plan, only when a fair share of the plans ask for
    it; until then plans that do are a group of their own, found in a dictionary.
    """

    __slots__ = ("_above", "_asked", "_by_value", "_few", "_in_document", "_overflow", "_table", "_test", "size")

    def __init__(self, in_document: bool, above: PlanGroup | None = None, test: Same | None = None) -> None:
        self.size = 0
        self._in_document = in_document
        "Whether plans may ask for values in the document, and not for fields alone."
        self._above = above
        self._test = test
        "What the plans of a group within another have in common."
        self._few: list[IndexedPlan] = []
        self._table: AttributeTable[IndexedPlan] | None = None
        self._overflow: PagedTable[IndexedPlan] | None = None
        self._asked: Counter[Same] = Counter()
        "How many plans ask for a value, where there is a table."
        self._by_value: dict[_Kind, dict[Any, PlanGroup]] = {}

    def add(self, indexed: IndexedPlan) -> None:
        self.size += 1
        if self._table is None and len(self._few) < FEW:
            self._few.append(indexed)
            indexed.group, indexed.table = self, None
            indexed.sure = self._is_all(indexed.plan)
            return
        if self._table is None:
            self._table = AttributeTable()
            few, self._few = self._few, []
            for one in few:
                self._place_new(one)
        self._place_new(indexed)

    def remove(self, indexed: IndexedPlan) -> None:
        """Remove a plan of this group or of one within it."""
        home = indexed.group
        assert home is not None
        if indexed.table is None:
            home._few.remove(indexed)
        else:
            indexed.table.remove(indexed.slot)
        group: PlanGroup | None = home
        while group is not None:
            group._discount(indexed)
            group = group._above

    def collect(self, event_values: EventValues, viewer: Viewer | None, found: set[Any]) -> None:
        """Add the keys of the filters the event meets."""
        if self._table is None:
            self._check(self._few, event_values, viewer, found)
            return
        candidates = self._ask(self._table, event_values, found)
        if self._overflow is not None:
            candidates += self._ask(self._overflow, event_values, found)
        if candidates:
            self._check(candidates, event_values, viewer, found)
        if self._by_value:
            for group in self._groups_for(event_values):
                group.collect(event_values, viewer, found)

    def _ask(self, table: AttributeTable[IndexedPlan], event_values: EventValues, found: set[Any]) -> list[IndexedPlan]:
        """Add the keys a table is sure of; the plans it is not sure of."""
        if event_values.flat is None or self._in_document:
            return table.collect(event_values, found)
        return table.collect_flat(event_values.flat, found)

    def _check(
        self, plans: list[IndexedPlan], event_values: EventValues, viewer: Viewer | None, found: set[Any]
    ) -> None:
        """Ask the filters themselves."""
        flat = event_values.flat
        for indexed in plans:
            if flat is not None and indexed.text_test is not None:
                name, wanted = indexed.text_test  # where the value is no text, it is the filter that knows its text
                value = flat.get(name)
                if value != wanted and (value is None or type(value) is str):
                    continue
            if indexed.key in found or (
                self._in_document and not event_values.allow(indexed.plan.needs, indexed.plan.tests)
            ):
                continue
            if indexed.sure or indexed.filter.matches(event_values.event, viewer):
                found.add(indexed.key)

    def _groups_for(self, event_values: EventValues) -> Iterator[PlanGroup]:
        for (kind, source), by_value in self._by_value.items():
            for value in event_values.values(source):
                group = by_value.get(SAME_AS[kind](value))
                if group is not None:
                    yield group

    def _place_new(self, indexed: IndexedPlan) -> None:
        tests = self._same_tests(indexed)
        self._asked.update(tests)
        self._place(indexed)
        for test in tests:
            group = self._by_value.get((type(test), test.source), {}).get(test.wanted)
            if group is not None and not self._is_rare(test):
                self._forget(test)
                for one in group._plans():
                    self._place(one)

    def _place(self, indexed: IndexedPlan) -> None:
        tests = self._same_tests(indexed)
        rare = [test for test in tests if self._is_rare(test)]
        if not rare:
            plan = indexed.plan
            if self._test is not None:
                plan = replace(plan, tests=tuple(test for test in plan.tests if not self._assures(test)))
            indexed.group, indexed.table, indexed.sure = self, self._table_for(tests), False
            indexed.slot = indexed.table.add(indexed.key, plan, indexed)
            return
        rarest = min(rare, key=self._asked.__getitem__)
        by_value = self._by_value.setdefault((type(rarest), rarest.source), {})
        group = by_value.get(rarest.wanted)
        if group is None:
            group = by_value[rarest.wanted] = PlanGroup(self._in_document, self, rarest)
        group.add(indexed)

    def _same_tests(self, indexed: IndexedPlan) -> list[Same]:
        return [test for test in indexed.plan.tests if not (isinstance(test, Between) or self._assures(test))]

    def _is_rare(self, test: Same) -> bool:
        return self._asked[test] < max(2, self.size // RARE)

    def _table_for(self, tests: list[Same]) -> AttributeTable[IndexedPlan]:
        assert self._table is not None
        if not tests or self._table.size < CROWDED:
            return self._table
        if self._overflow is None:
            self._overflow = PagedTable()
        return self._overflow

    def _discount(self, indexed: IndexedPlan) -> None:
        """Count one plan less."""
        self.size -= 1
        if not self.size:
            self._close()
        elif self._asked:
            for test in self._same_tests(indexed):
                _discount(self._asked, test)

    def _is_all(self, plan: Plan) -> bool:
        """Whether an event that has the group's value has all that the plan asks for."""
        if not plan.exact or plan.moves is not None or not all(map(self._assures, plan.tests)):
            return False
        return {test.source for test in plan.tests}.issuperset(plan.needs)

    def _assures(self, test: SimpleTest) -> bool:
        group: PlanGroup | None = self
        while group is not None:
            if group._test == test:
                return True
            group = group._above
        return False

    def _plans(self) -> Iterator[IndexedPlan]:
        yield from self._few
        for table in (self._table, self._overflow):
            if table is not None:
                yield from table.owners()
        for by_value in self._by_value.values():
            for group in by_value.values():
                yield from group._plans()

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
