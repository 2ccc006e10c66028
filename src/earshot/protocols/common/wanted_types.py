"""Which event types a filter could match. It may include too many types, never too few."""

from __future__ import annotations

from earshot.filters import Filter
from earshot.filters.language.event_types import is_type_pattern, type_matches
from earshot.filters.language.lowering import loosened
from earshot.filters.language.syntax import And, AnyItem, Axis, Condition, Holds, LocationPath, NodeKind, Or


def could_match(filter: Filter, subject: str) -> bool:
    """Whether some event of this type might meet the filter."""
    if filter.type is not None and is_type_pattern(filter.type):
        return type_matches(filter.type, subject)
    types = event_types_of(filter)
    return types is None or subject in types


def event_types_of(filter: Filter) -> frozenset[str] | None:
    """The event types that a filter could match; None: any. An XPath names the type in its first step."""
    if filter.type is None or is_type_pattern(filter.type):
        return _types_of(filter.condition)
    return frozenset((filter.type,))


def _types_of(condition: Condition) -> frozenset[str] | None:
    match condition:
        case LocationPath(absolute=True, steps=(first, *_)) if (
            first.axis is Axis.CHILD and first.kind is NodeKind.ELEMENT and first.name != "*"
        ):
            return frozenset((first.name,))
        case Holds() | AnyItem():
            return _types_of(loosened(condition))
        case And(terms):
            named = [types for types in map(_types_of, terms) if types is not None]
            return frozenset.intersection(*named) if named else None
        case Or(terms):
            found = [_types_of(term) for term in terms]
            named = [types for types in found if types is not None]
            return frozenset().union(*named) if len(named) == len(found) else None
        case _:
            return None
