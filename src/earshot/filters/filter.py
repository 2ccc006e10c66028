"""`Filter`: the predicate people write, match, explain, compare and index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from earshot.errors import UsageError
from earshot.events import Event
from earshot.filters.language import canonical_text, explaining, matching, where, xpath
from earshot.filters.language.matching import Viewer
from earshot.filters.language.syntax import Always, Condition, TypedCondition
from earshot.filters.relations import covering, overlapping
from earshot.filters.relations.normal_form import normal


class Statistics(Protocol):
    """What was seen of events so far, as `DataSummary` keeps it."""

    def overlap(self, a: Filter, b: Filter) -> float | None:
        """Of the events seen that meet either filter, the share that meets both; None where it is not known."""
        ...


@dataclass(frozen=True, slots=True)
class Filter:
    """A predicate over events: a condition, and the event type it is confined to (None: any).

    An XPath filter names its type in its first step, so `type` stays None there.
    """

    condition: Condition
    type: str | None = None
    _predicate: matching.Predicate | None = field(default=None, init=False, repr=False, compare=False)
    _plans: Any = field(default=None, init=False, repr=False, compare=False)
    "What an index looks up of the filter, made when it is first added to one."

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", normal(self.condition))

    def __reduce__(self) -> tuple[Any, ...]:
        return Filter, (self.condition, self.type)

    @classmethod
    def xpath(cls, expression: str, namespaces: Mapping[str, str] | None = None) -> Filter:
        """XPath 1.0: matches when it selects at least one node of the document, or gives a value that is true.

        Names are local names, so a prefix is read and left out. With `namespaces` (prefix to address), a prefix that
        is not declared there is refused."""
        return cls(xpath.parse(expression, namespaces))

    @classmethod
    def where(cls, expression: str, type: str | None = None) -> Filter:
        """Predicates over flat content and place: `category = "jazz" and price < 20 and within 200 m`."""
        return cls(where.parse(expression), type)

    @classmethod
    def of_type(cls, type: str) -> Filter:
        """Every event of one type. In a type with levels, `*` stands for one level and `**` for any number:
        `traffic/*/jam`, `traffic/**`."""
        if not isinstance(type, str) or not type:
            raise UsageError(f"an event type is a text that is not empty, got {type!r:.60}")
        return cls(Always(), type)

    @classmethod
    def parse(cls, expression: str) -> Filter:
        """Either language, as `str(filter)` writes it: an XPath begins with a slash; a `where` may be
        confined to a type in front, as in `Siren: speed > 10`. A bare word such as `Siren` asks whether the content
        has a value of that name; all events of a type are `Filter.of_type("Siren")`."""
        return cls(*canonical_text.parse(expression))

    def __str__(self) -> str:
        return canonical_text.write(self.condition, self.type)

    def matches(self, event: Event, viewer: Viewer | None = None) -> bool:
        """Whether the event meets the filter, seen from the consumer `viewer` where terms need one."""
        predicate = self._predicate
        if predicate is None:  # compiled when first asked
            predicate = matching.compiled(self.condition, self.type)
            object.__setattr__(self, "_predicate", predicate)
        return predicate(event, viewer)

    def explain(self, event: Event, viewer: Viewer | None = None) -> str:
        """Which term failed, or why it matched, in words."""
        return explaining.explanation(self.condition, self.type, event, viewer)

    @property
    def needs_viewer(self) -> bool:
        """Whether the answer depends on the consumer's position or movement."""
        return matching.needs_viewer(self.condition)

    @property
    def reach_m(self) -> float | None:
        """How far from the event's position a consumer may be at most; None where there is no bound."""
        return matching.reach_m(self.condition)

    def without_viewer_terms(self) -> Filter:
        """A filter that needs no consumer and matches everything that this one matches for some consumer."""
        if not self.needs_viewer:
            return self
        return replace(self, condition=matching.without_viewer_terms(self.condition))

    def covers(self, other: Filter) -> bool:
        """True only if every event that meets `other` meets this one. False where that cannot be proved."""
        return covering.covers(self._typed, other._typed)

    def overlap(self, other: Filter, statistics: Statistics | None = None) -> float:
        """An estimate, in 0..1, of how much of the two filters' events is common to both: extensional where
        `statistics` (a `DataSummary`) know the answer, structural elsewhere."""
        if statistics is not None and (seen := statistics.overlap(self, other)) is not None:
            return seen
        return overlapping.overlap(self._typed, other._typed)

    def merge(self, other: Filter) -> Filter:
        """A filter that covers both."""
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        return Filter(*covering.merge(self._typed, other._typed))

    @property
    def _typed(self) -> TypedCondition:
        return TypedCondition(self.condition, self.type)
