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
from typing import Any

from msgspec.structs import replace

from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.index.automaton import Moves, PathAutomaton
from earshot.filters.index.event_values import Reading
from earshot.filters.index.groups import Clause, Group
from earshot.filters.index.plans import Plan, plans_of
from earshot.filters.language.matching import Viewer


class FilterIndex:
    """Filters by key. `match` gives the keys of those that `filter.matches` the event, no more and no less."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, tuple[Clause | Moves, ...]] = {}
        "What each filter was taken apart into: paths that answer for it, and clauses in groups."
        self._by_type: dict[str | None, Group] = {}
        self._by_path: dict[Moves, Group] = {}
        self._paths = PathAutomaton()

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._parts

    def add(self, key: Hashable, filter: Filter) -> None:
        """Add a filter; one that is there under the same key is replaced."""
        parts = tuple(_part(key, filter, plan) for plan in plans_of(filter))
        if key in self._parts:
            self.remove(key)
        self._parts[key] = parts
        for part in parts:
            if isinstance(part, Clause):
                self._group_for(part).add(part)
            else:
                self._paths.add(part, key, is_answer=True)

    def remove(self, key: Hashable) -> None:
        """Remove a filter; KeyError where there is none under the key."""
        for part in self._parts.pop(key):
            if not isinstance(part, Clause):
                self._paths.remove(part, key, is_answer=True)
                continue
            group = self._group_for(part)
            group.remove(part)
            if not group.size:
                self._drop_group(part)

    def match(self, event: Event, viewer: Viewer | None = None) -> set[Any]:
        """The keys of all filters the event meets, seen from the consumer `viewer` where terms need one."""
        found: set[Any] = set()
        reading = Reading(event)
        if self._paths.count:
            answers, groups = self._paths.reached(event.root)
            found.update(answers)
            for group in groups:
                group.collect(reading, viewer, found)
        if (group := self._by_type.get(None)) is not None:
            group.collect(reading, viewer, found)
        if (group := self._by_type.get(event.type)) is not None:
            group.collect(reading, viewer, found)
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


def _part(key: Hashable, filter: Filter, plan: Plan) -> Clause | Moves:
    if plan.moves is None:
        return Clause(key, filter, plan)
    if filter.type is not None:
        # Groups are of one path or of one type: of both, the type is left to be checked.
        return Clause(key, filter, replace(plan, exact=False))
    return plan.moves if plan.is_path_alone else Clause(key, filter, plan)
