"""`FilterIndex`: many filters, one event, who matches.

A filter is taken apart into plans (`plans.py`): a path, simple tests on values, and whether that is all.

- Paths are walked together in one automaton (`automaton.py`); a path alone is answered there.
- Tests on values are answered by tables of bits, one for each event type and one for each path that
  carries predicates (`groups.py`, `attributes.py`).
- What neither can answer (`not`, places, which element a predicate is about) is left to the filter
  itself, and only where everything else in one of its plans holds.

So an event costs what its values and names cost, and then what matches; adding and removing a filter
touches the filter's own rows and paths.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from earshot.events import Event
from earshot.filters.automaton import Moves, PathAutomaton
from earshot.filters.filter import Filter
from earshot.filters.groups import Clause, Group
from earshot.filters.matching import Viewer
from earshot.filters.plans import Plan, plans_of
from earshot.filters.reading import Reading


class FilterIndex:
    """Filters by key. `match` gives the keys of those that `filter.matches` the event, no more and no less."""

    def __init__(self) -> None:
        self._filters: dict[Hashable, Filter] = {}
        self._clauses: dict[Hashable, list[Clause]] = {}
        self._by_type: dict[str | None, Group] = {}
        self._by_path: dict[Moves, Group] = {}
        self._paths = PathAutomaton()

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._filters

    def add(self, key: Hashable, filter: Filter) -> None:
        """Add a filter; one that is there under the same key is replaced."""
        plans = _plans(filter)
        if key in self._filters:
            self.remove(key)
        self._filters[key] = filter
        for plan in plans:
            if plan.moves is not None and plan.is_path_alone:
                self._paths.add(plan.moves, key, is_answer=True)
            else:
                clause = Clause(key, filter, plan)
                self._group_for(clause).add(clause)
                self._clauses.setdefault(key, []).append(clause)

    def remove(self, key: Hashable) -> None:
        """Remove a filter; KeyError where there is none under the key."""
        filter = self._filters.pop(key)
        for plan in _plans(filter):
            if plan.moves is not None and plan.is_path_alone:
                self._paths.remove(plan.moves, key, is_answer=True)
        for clause in self._clauses.pop(key, ()):
            group = self._group_for(clause)
            group.remove(clause)
            if not group.size:
                self._drop_group(clause)

    def match(self, event: Event, viewer: Viewer | None = None) -> set[Any]:
        """The keys of all filters the event meets, seen from the consumer `viewer` where terms need one."""
        found: set[Any] = set()
        reading = Reading(event)
        if self._paths:
            answers, groups = self._paths.reached(event.root)
            found.update(*answers)
            for group in groups:
                group.collect(reading, viewer, found)
        for type in (None, event.type):
            if type in self._by_type:
                self._by_type[type].collect(reading, viewer, found)
        return found

    def _group_for(self, clause: Clause) -> Group:
        moves, type = clause.plan.moves, clause.filter.type
        if moves is None:
            return self._by_type.get(type) or self._by_type.setdefault(type, Group(in_document=False))
        group = self._by_path.get(moves)
        if group is None:
            group = self._by_path[moves] = Group(in_document=True)
            self._paths.add(moves, group, is_answer=False)
        return group

    def _drop_group(self, clause: Clause) -> None:
        moves = clause.plan.moves
        if moves is None:
            del self._by_type[clause.filter.type]
        else:
            self._paths.remove(moves, self._by_path.pop(moves), is_answer=False)


def _plans(filter: Filter) -> list[Plan]:
    """The filter's plans. Groups are of one type or of one path: of both, the type is left to be checked."""
    plans = plans_of(filter.condition)
    if filter.type is None:
        return plans
    return [replace(plan, exact=plan.exact and plan.moves is None) for plan in plans]
