"""Plans that are looked at together: few one by one, many in a table, rare values through a dictionary."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from msgspec.structs import replace

from earshot.filters.filter import Filter
from earshot.filters.index.event_values import SAME_AS, Between, EventValues, Same, SameText, SimpleTest
from earshot.filters.index.plans import Plan
from earshot.filters.index.tables import AttributeTable
from earshot.filters.language.alternatives import Source
from earshot.filters.language.matching import Viewer

FEW = 16
"Checking this many plans one by one takes as long as a table does."
RARE = 2048
"A value is rare if fewer than one in this many plans ask for it."


class IndexedPlan:
    """One plan of one filter, and where it is kept."""

    __slots__ = ("filter", "group", "key", "plan", "same_tests", "slot", "sure", "text_test")

    group: PlanGroup
    slot: int | None
    "In the group's table; None where the plan is one of few."
    sure: bool
    "Whether the group's own test is all that the plan asks for."

    def __init__(self, key: Hashable, filter: Filter, plan: Plan) -> None:
        self.key = key
        self.filter = filter
        self.plan = plan
        self.same_tests = [test for test in plan.tests if not isinstance(test, Between)]
        self.text_test: tuple[str, str] | None = None
        "A field outside of objects and the text it must have, where the plan asks for one: the cheapest test."
        for test in self.same_tests:
            if isinstance(test, SameText) and isinstance(test.source, str) and "." not in test.source:
                self.text_test = (test.source, test.wanted)
                break


class PlanGroup:
    """Plans of one event type or one path; inside such a group, plans that ask for one rare value.

    A value gets a row in the table, one bit for every plan, only when a fair share of the plans ask for it.
    Until then the plans that ask for it are a group of their own, found in a dictionary.
    """

    __slots__ = ("_above", "_asked", "_by_value", "_few", "_in_document", "_table", "_test", "size")

    def __init__(self, in_document: bool, above: PlanGroup | None = None, test: Same | None = None) -> None:
        self.size = 0
        self._in_document = in_document
        "Whether plans may ask for values in the document, not only for fields."
        self._above = above
        self._test = test
        "The test that the plans of an inner group have in common."
        self._few: list[IndexedPlan] = []
        self._table: AttributeTable[IndexedPlan] | None = None
        self._asked: dict[Same, int] = {}
        "How many plans ask for a value, where there is a table."
        self._by_value: dict[tuple[type[Same], Source], dict[Any, PlanGroup]] = {}

    def add(self, indexed: IndexedPlan) -> None:
        self.size += 1
        if self._table is None and len(self._few) < FEW:
            self._few.append(indexed)
            indexed.group, indexed.slot = self, None
            indexed.sure = self._is_all(indexed.plan)
            return
        if self._table is None:
            self._table = AttributeTable()
            few, self._few = self._few, []
            for one in few:
                self._place_new(one)
        self._place_new(indexed)

    def remove(self, indexed: IndexedPlan) -> None:
        """Remove a plan of this group or of an inner one."""
        kept_in = indexed.group
        if indexed.slot is None:
            kept_in._few.remove(indexed)
        else:
            assert kept_in._table is not None
            kept_in._table.remove(indexed.slot)
        group: PlanGroup | None = kept_in
        while group is not None:
            group._discount(indexed)
            group = group._above

    def collect(self, event_values: EventValues, viewer: Viewer | None, found: set[Any]) -> None:
        """Add the keys of the filters that the event meets."""
        if self._table is None:
            self._check(self._few, event_values, viewer, found)
            return
        candidates = None
        if event_values.named is not None and not self._in_document:
            candidates = self._table.collect_flat(event_values.named, found)
        if candidates is None:
            candidates = self._table.collect(event_values, found)
        if candidates:
            self._check(candidates, event_values, viewer, found)
        for (kind, source), by_value in self._by_value.items():
            for value in event_values.values(source):
                group = by_value.get(SAME_AS[kind](value))
                if group is not None:
                    group.collect(event_values, viewer, found)

    def _check(
        self, plans: list[IndexedPlan], event_values: EventValues, viewer: Viewer | None, found: set[Any]
    ) -> None:
        """Ask the filters themselves."""
        named = event_values.named
        for indexed in plans:
            if named is not None and indexed.text_test is not None:
                name, wanted = indexed.text_test
                value = named.get(name)
                if value != wanted and (value is None or type(value) is str):  # the filter converts other values
                    continue
            plan = indexed.plan
            if indexed.key in found or (self._in_document and not event_values.allow(plan.needs, plan.tests)):
                continue
            if indexed.sure or event_values.meet(indexed.key, indexed.filter, viewer):
                found.add(indexed.key)

    def _place_new(self, indexed: IndexedPlan) -> None:
        tests = self._same_tests(indexed)
        for test in tests:
            self._asked[test] = self._asked.get(test, 0) + 1
        self._place(indexed, tests)
        for test in tests if self._by_value else ():
            group = self._by_value.get((type(test), test.source), {}).get(test.wanted)
            if group is not None and not self._rare([test]):
                self._forget(test)
                for one in group._plans():
                    self._place(one, self._same_tests(one))

    def _place(self, indexed: IndexedPlan, tests: list[Same]) -> None:
        rare = self._rare(tests)
        if not rare:
            assert self._table is not None
            plan = indexed.plan
            if self._test is not None:
                plan = replace(plan, tests=tuple(test for test in plan.tests if not self._assures(test)))
            indexed.group, indexed.sure = self, False
            indexed.slot = self._table.add(indexed.key, plan, indexed)
            return
        rarest = min(rare, key=self._asked.__getitem__)
        by_value = self._by_value.setdefault((type(rarest), rarest.source), {})
        group = by_value.get(rarest.wanted)
        if group is None:
            group = by_value[rarest.wanted] = PlanGroup(self._in_document, self, rarest)
        group.add(indexed)

    def _same_tests(self, indexed: IndexedPlan) -> list[Same]:
        tests = indexed.same_tests
        return tests if self._test is None else [test for test in tests if not self._assures(test)]

    def _rare(self, tests: list[Same]) -> list[Same]:
        """The tests that few plans ask for."""
        enough = max(2, self.size // RARE)
        return [test for test in tests if self._asked[test] < enough]

    def _discount(self, indexed: IndexedPlan) -> None:
        """Count one plan less."""
        self.size -= 1
        if not self.size:
            self._table = None
            self._asked.clear()
            self._by_value = {}
            if self._above is not None and self._test is not None:
                self._above._forget(self._test)
        elif self._asked:
            for test in self._same_tests(indexed):
                others = self._asked[test] - 1
                if others:
                    self._asked[test] = others
                else:
                    del self._asked[test]

    def _is_all(self, plan: Plan) -> bool:
        """Whether an event that meets the group's test meets the whole plan."""
        return plan.exact and plan.moves is None and all(map(self._assures, plan.tests))

    def _assures(self, test: SimpleTest) -> bool:
        """Whether this group or one above it has the test in common."""
        group: PlanGroup | None = self
        while group is not None:
            if group._test == test:
                return True
            group = group._above
        return False

    def _plans(self) -> Iterator[IndexedPlan]:
        yield from self._few
        if self._table is not None:
            yield from self._table.owners()
        for by_value in self._by_value.values():
            for group in by_value.values():
                yield from group._plans()

    def _forget(self, test: Same) -> None:
        by_value = self._by_value[type(test), test.source]
        del by_value[test.wanted]
        if not by_value:
            del self._by_value[type(test), test.source]
