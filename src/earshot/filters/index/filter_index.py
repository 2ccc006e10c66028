"""`FilterIndex`: many filters, one event: which filters match?

A filter is split into plans (`plans.py`): a path, simple tests on values, and whether these are exact.

- Paths are walked together in one automaton (`automaton.py`); a path alone is answered there.
- Tests on values are answered by tables of bits, one for each event type and one for each path that
  carries predicates (`groups.py`, `tables.py`).
- What neither can answer (`not`, places, which element a predicate is about) is left to the filter
  itself, and only where everything else in one of its plans holds.

So the cost of an event follows its values, its names and its matches; adding and removing a filter
changes only the filter's own rows and paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

from msgspec.structs import replace

from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.index.automaton import PathAutomaton
from earshot.filters.index.event_values import EventValues
from earshot.filters.index.groups import IndexedPlan, PlanGroup
from earshot.filters.index.path_moves import PathMoves
from earshot.filters.index.plans import Plan, plans_of
from earshot.filters.language.event_types import is_type_pattern, type_matches
from earshot.filters.language.matching import Viewer

MOST_TYPES = 4096
"Event types whose groups with wildcards are remembered."


class FilterIndex:
    """Filters by key. `match` gives the keys of exactly those filters that match the event."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, list[IndexedPlan | PathMoves]] = {}
        "The parts of each filter: paths that answer for it, and plans in groups."
        self._by_type: dict[str | None, PlanGroup] = {}
        self._patterns: set[str] = set()
        "The types with wildcards among those by type."
        self._pattern_groups: dict[str, tuple[PlanGroup, ...]] = {}
        "By an event's type, the groups of the types with wildcards that stand for it; made when first asked."
        self._by_path: dict[PathMoves, PlanGroup] = {}
        self._paths: PathAutomaton | None = None
        "Made with the first path: a simulated node has an index of its own, most often without paths."
        self.given_up: Counter[Hashable] = Counter()
        "By key, how often a filter was too costly for an event and counted as not met; other filters are answered."

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._parts

    def add(self, key: Hashable, filter: Filter) -> None:
        """Add a filter; it replaces one with the same key."""
        parts = [_part(key, filter, plan) for plan in plans_of(filter)]
        if key in self._parts:
            self.remove(key)
        self._parts[key] = parts
        for part in parts:
            if isinstance(part, IndexedPlan):
                self._group_for(part).add(part)
            else:
                self._add_path(part, key, is_answer=True)

    def remove(self, key: Hashable) -> None:
        """Remove a filter; KeyError if the key is unknown."""
        self.given_up.pop(key, None)
        for part in self._parts.pop(key):
            if not isinstance(part, IndexedPlan):
                self._remove_path(part, key, is_answer=True)
                continue
            group = self._group_for(part)
            group.remove(part)
            if not group.size:
                self._drop_group(part)

    def match(self, event: Event, viewer: Viewer | None = None) -> set[Any]:
        """The keys of all filters the event meets, seen from the consumer `viewer` where terms need one."""
        found: set[Any] = set()
        event_values = EventValues(event)
        if self._paths is not None and self._paths.count:
            found, groups = self._paths.reached(event.root)
            for group in groups:
                group.collect(event_values, viewer, found)
        if (group := self._by_type.get(None)) is not None:
            group.collect(event_values, viewer, found)
        if (group := self._by_type.get(event.type)) is not None:
            group.collect(event_values, viewer, found)
        for group in self._groups_with_wildcards(event.type) if self._patterns else ():
            group.collect(event_values, viewer, found)
        if event_values.given_up:
            self.given_up.update(event_values.given_up)
        return found

    def _groups_with_wildcards(self, type: str) -> tuple[PlanGroup, ...]:
        found = self._pattern_groups.get(type)
        if found is None:
            if len(self._pattern_groups) >= MOST_TYPES:
                self._pattern_groups.clear()
            found = tuple(self._by_type[wanted] for wanted in self._patterns if type_matches(wanted, type))
            self._pattern_groups[type] = found
        return found

    def _group_for(self, indexed: IndexedPlan) -> PlanGroup:
        moves, type = indexed.plan.moves, indexed.filter.type
        if moves is None:
            group = self._by_type.get(type)
            if group is None:
                group = self._by_type[type] = PlanGroup(in_document=False)
                if type is not None and is_type_pattern(type):
                    self._patterns.add(type)
                    self._pattern_groups.clear()
            return group
        group = self._by_path.get(moves)
        if group is None:
            group = self._by_path[moves] = PlanGroup(in_document=True)
            self._add_path(moves, group, is_answer=False)
        return group

    def _drop_group(self, indexed: IndexedPlan) -> None:
        moves = indexed.plan.moves
        if moves is None:
            del self._by_type[indexed.filter.type]
            if indexed.filter.type in self._patterns:
                self._patterns.remove(indexed.filter.type)
                self._pattern_groups.clear()
        else:
            self._remove_path(moves, self._by_path.pop(moves), is_answer=False)

    def _add_path(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        if self._paths is None:
            self._paths = PathAutomaton()
        self._paths.add(moves, result, is_answer)

    def _remove_path(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        assert self._paths is not None, "a path is removed that was never added"
        self._paths.remove(moves, result, is_answer)


def _part(key: Hashable, filter: Filter, plan: Plan) -> IndexedPlan | PathMoves:
    if plan.moves is None:
        return IndexedPlan(key, filter, plan)
    if filter.type is not None:
        # A group has one path or one type; where a filter has both, the type is left to be checked.
        return IndexedPlan(key, filter, replace(plan, exact=False))
    return plan.moves if plan.is_path_alone else IndexedPlan(key, filter, plan)
