"""What a broker reports of its local subscriptions: their summary, in parts by event types (section III.C).

A source gets only the part about the types it offers, within a packet's budget. A broker that wants nearly
every event of a type reports just that, in a few bytes: it gets a few more unwanted events, and the network
carries less.
"""

from __future__ import annotations

from typing import NamedTuple

from earshot.events import Event
from earshot.filters.summaries.bloom import BloomShape, type_key
from earshot.filters.summaries.summary import Summary
from earshot.protocols.common.local_subscriptions import LocalSubscriptions
from earshot.protocols.content_odmrp.reports import SummaryReport, full_report

ENOUGH = 12
"A pass rate counts from this many events on."
WINDOW = 64
"After this many events, earlier ones count half."
SLACK = 0.2
"A greedy broker becomes choosy again when its pass rate falls this far below the limit."


class LocalSummary(NamedTuple):
    """What local subscribers want of some event types."""

    exact: Summary
    "As fine as the budget allows."
    stated: Summary
    "With greedy types widened."
    report: SummaryReport


class LocalSummaries:
    """One broker's summaries, made when first needed and kept until its subscriptions change."""

    def __init__(
        self,
        node: str,
        subscriptions: LocalSubscriptions,
        shape: BloomShape,
        budget_bytes: int,
        combinations: bool,
        pass_rates: PassRates,
    ) -> None:
        self.node = node
        self.subscriptions = subscriptions
        self.shape = shape
        self.budget_bytes = budget_bytes
        self.combinations = combinations
        self.pass_rates = pass_rates
        self.whole: Summary | None = None
        "Of all subscriptions; None where they have changed since it was made."
        self.by_types: dict[frozenset[int], LocalSummary] = {}

    def changed(self) -> None:
        """The subscriptions have changed."""
        self.whole = None
        self.by_types.clear()
        self.pass_rates.clear()

    def about(self, types: frozenset[int]) -> LocalSummary:
        """What local subscribers want of these types."""
        if self.whole is None:
            self.whole = Summary.of((one.filter for one in self.subscriptions.by_id.values()), self.shape)
            if not self.combinations:
                self.whole = self.whole.without_combinations()
        if types not in self.by_types:
            if len(self.by_types) >= self.pass_rates.capacity:
                self.by_types.clear()
            exact = self.whole.about(types).within(self.budget_bytes)
            stated = exact.wanting_all(key for key in types if self.pass_rates.greedy(key))
            self.by_types[types] = LocalSummary(exact, stated, full_report(self.node, stated.to_bytes()))
        return self.by_types[types]

    def count(self, event: Event) -> None:
        """A flooded event: would the summary have let it pass? Events that the mesh brings are not counted,
        because the summary itself has chosen them."""
        key = type_key(event.type)
        exact = self.about(frozenset((key,))).exact
        if exact and self.pass_rates.count(key, exact.may_match(event)):
            self.by_types.clear()


class PassRates:
    """By event type, the share of events that a broker's summary lets pass; at most `capacity` types.

    A broker is greedy for a type while that share reaches the limit.
    """

    def __init__(self, limit: float, capacity: int) -> None:
        self.limit = limit
        self.capacity = capacity
        self._counts: dict[int, tuple[float, float]] = {}
        "Events heard, and those that passed."
        self._greedy: set[int] = set()

    def count(self, type: int, passes: bool) -> bool:
        """An event of this type was heard; True where that changes whether the broker is greedy for it."""
        if type not in self._counts and len(self._counts) >= self.capacity:
            return False
        heard, passed = self._counts.get(type, (0.0, 0.0))
        heard, passed = heard + 1, passed + passes
        if heard >= WINDOW:
            heard, passed = heard / 2, passed / 2
        self._counts[type] = heard, passed
        if heard < ENOUGH:
            return False
        limit = self.limit - SLACK if self.greedy(type) else self.limit
        changes = self.greedy(type) != (passed >= limit * heard)
        if changes:
            self._greedy ^= {type}
        return changes

    def greedy(self, type: int) -> bool:
        """Whether the broker wants nearly every event of this type."""
        return type in self._greedy

    def clear(self) -> None:
        """The subscriptions have changed: start again."""
        self._counts.clear()
        self._greedy.clear()
