"""`FilterIndex`: many filters, one event, who matches."""

from __future__ import annotations

from collections.abc import Hashable

from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.matching import Viewer


class FilterIndex:
    """Filters by key. Adding under a key that is taken raises; removing an unknown key is a KeyError."""

    def __init__(self) -> None:
        self._filters: dict[Hashable, Filter] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._filters

    def add(self, key: Hashable, filter: Filter) -> None:
        if key in self._filters:
            raise KeyError(f"{key!r} is in the index already; remove it first")
        self._filters[key] = filter

    def remove(self, key: Hashable) -> None:
        del self._filters[key]

    def match(self, event: Event, viewer: Viewer | None = None) -> set[Hashable]:
        """The keys of all filters the event meets, seen from `viewer`."""
        return {key for key, filter in self._filters.items() if filter.matches(event, viewer)}
