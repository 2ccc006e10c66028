"""Which event types the subscriptions of one node could match: what a node joins groups for."""

from __future__ import annotations

from collections import Counter

from earshot.filters import Filter
from earshot.filters.language.syntax import And, Axis, Condition, LocationPath, NodeKind, Or


class WantedTypes:
    """Filters by subscription, asked for types. It may say yes too often, never no."""

    def __init__(self) -> None:
        self._typed: Counter[str] = Counter()
        self._untyped: dict[str, Filter] = {}

    def add(self, subscription: str, filter: Filter) -> None:
        if filter.type is None:
            self._untyped[subscription] = filter
        else:
            self._typed[filter.type] += 1

    def remove(self, subscription: str, filter: Filter) -> None:
        if filter.type is None:
            del self._untyped[subscription]
        elif self._typed[filter.type] == 1:
            del self._typed[filter.type]
        else:
            self._typed[filter.type] -= 1

    def __contains__(self, subject: str) -> bool:
        return subject in self._typed or any(could_match(filter, subject) for filter in self._untyped.values())


def could_match(filter: Filter, subject: str) -> bool:
    """Whether some event of this type might meet the filter. An XPath names the type in its first step."""
    if filter.type is not None:
        return filter.type == subject
    return _could_hold(filter.condition, subject)


def _could_hold(condition: Condition, subject: str) -> bool:
    match condition:
        case And(terms):
            return all(_could_hold(term, subject) for term in terms)
        case Or(terms):
            return any(_could_hold(term, subject) for term in terms)
        case LocationPath(absolute=True, steps=(first, *_)) if (
            first.axis is Axis.CHILD and first.kind is NodeKind.ELEMENT
        ):
            return first.name in ("*", subject)
        case _:
            return True
