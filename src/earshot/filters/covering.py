"""Does one filter include another? Their overlap, and a filter that covers both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earshot.filters.ast import Always, Or

if TYPE_CHECKING:
    from earshot.filters.filter import Filter


def covers(general: Filter, special: Filter) -> bool:
    """True only if every event that meets `special` meets `general`."""
    if general.type not in (None, special.type):
        return False
    return isinstance(general.condition, Always) or general.condition == special.condition


def overlap(a: Filter, b: Filter) -> float:
    """How much of the two filters' events is common to both, estimated in 0..1."""
    return 1.0 if a == b else 0.0


def merge(a: Filter, b: Filter) -> Filter:
    """A filter that covers both."""
    from earshot.filters.filter import Filter

    type = a.type if a.type == b.type else None
    if a.type != b.type:
        return Filter(Always(), type)
    return Filter(Or((a.condition, b.condition)), type)
