"""A filter without its consumer: which terms need to know where the consumer is, and what is left.

The oracle first finds who could want an event by content alone, then asks where they were.
"""

from __future__ import annotations

from dataclasses import replace

from earshot.filters.filter import Filter
from earshot.filters.language.syntax import Always, And, Approaching, Condition, Not, Or, Receding, Within


def needs_viewer(filter: Filter) -> bool:
    """Whether the answer depends on the consumer's position or movement."""
    return _needs_viewer(filter.condition)


def _needs_viewer(condition: Condition) -> bool:
    match condition:
        case Within() | Approaching() | Receding():
            return True
        case And(terms) | Or(terms):
            return any(_needs_viewer(term) for term in terms)
        case Not(term):
            return _needs_viewer(term)
        case _:
            return False


def relaxed(filter: Filter) -> Filter:
    """A filter that needs no consumer and matches whatever the given one matches for some consumer."""
    return replace(filter, condition=_relaxed(filter.condition)) if needs_viewer(filter) else filter


def _relaxed(condition: Condition) -> Condition:
    if not _needs_viewer(condition):
        return condition
    match condition:
        case And(terms):
            kept = tuple(term for term in map(_relaxed, terms) if term != Always())
            return And(kept) if len(kept) > 1 else kept[0] if kept else Always()
        case Or(terms):
            loose = tuple(_relaxed(term) for term in terms)
            return Always() if Always() in loose else Or(loose)
        case _:
            return Always()
