"""`Filter`: the predicate people write, match, explain, compare and index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from earshot.events import Event
from earshot.filters.index import plans
from earshot.filters.language import canonical_text as text
from earshot.filters.language import explaining, matching, xpath
from earshot.filters.language import where as terms
from earshot.filters.language.matching import Viewer
from earshot.filters.language.syntax import Always, Condition
from earshot.filters.relations import covering, overlapping
from earshot.filters.relations.normal_form import normal


@dataclass(frozen=True, slots=True)
class Filter:
    """A predicate over events: a condition, and the event type it is confined to (None: any).

    An XPath filter names its type in its first step, so `type` stays None there.
    """

    condition: Condition
    type: str | None = None
    _predicate: matching.Predicate | None = field(default=None, init=False, repr=False, compare=False)
    _plans: tuple[plans.Plan, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", normal(self.condition))

    def __reduce__(self) -> tuple[Any, ...]:
        return Filter, (self.condition, self.type)

    @classmethod
    def xpath(cls, expression: str) -> Filter:
        """An XPath 1.0 subset: matches when XPath would select at least one node of the document."""
        return cls(xpath.parse(expression))

    @classmethod
    def where(cls, expression: str, type: str | None = None) -> Filter:
        """Predicates over flat content and place: `category = "jazz" and price < 20 and within 200 m`."""
        return cls(terms.parse(expression), type)

    @classmethod
    def of_type(cls, type: str) -> Filter:
        """Every event of one type."""
        return cls(Always(), type)

    @classmethod
    def parse(cls, expression: str) -> Filter:
        """Either language, as `str(filter)` writes it: an XPath begins with a slash; a `where` may be
        confined to a type in front, as in `Siren: speed > 10`."""
        return cls(*text.parse(expression))

    def __str__(self) -> str:
        return text.write(self)

    def matches(self, event: Event, viewer: Viewer | None = None) -> bool:
        """Whether the event meets the filter, seen from the consumer `viewer` where terms need one."""
        predicate = self._predicate
        if predicate is None:  # compiled when first asked
            predicate = matching.compiled(self.condition, self.type)
            object.__setattr__(self, "_predicate", predicate)
        return predicate(event, viewer)

    def plans(self) -> tuple[plans.Plan, ...]:
        """What an index looks up of it: taken apart once, for all the indexes it comes into."""
        known = self._plans
        if known is None:
            known = tuple(plans.plans_of(self.condition))
            object.__setattr__(self, "_plans", known)
        return known

    def explain(self, event: Event, viewer: Viewer | None = None) -> str:
        """Which term failed, or why it matched, in words."""
        return explaining.explanation(self, event, viewer)

    def covers(self, other: Filter) -> bool:
        """True only if every event that meets `other` meets this one. May say no where it cannot tell."""
        return covering.covers(self, other)

    def overlap(self, other: Filter, statistics: overlapping.Statistics | None = None) -> float:
        """An estimate, in 0..1, of how much of the two filters' events is common to both: extensional where
        `statistics` (a `DataSummary`) can tell, structural elsewhere."""
        return overlapping.overlap(self, other, statistics)

    def merge(self, other: Filter) -> Filter:
        """A filter that covers both."""
        return covering.merge(self, other)
