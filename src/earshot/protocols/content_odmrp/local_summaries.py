"""What a broker reports of its local subscriptions: their summary, in parts by event types (section III.C).

A source gets only the part about the types it offers, within a packet's budget. A broker that wants nearly
every event of a type reports just that, in a few bytes: it gets a few more unwanted events, and the network
carries less.
"""

from __future__ import annotations

from dataclasses import dataclass

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


class LocalSummaries:
    """One broker's summaries, made when first needed and kept until its subscriptions change."""

    def __init__(
        self, node: str, subscriptions: LocalSubscriptions, shape: BloomShape, budget_bytes: int, pass_rates: PassRates
    ) -> None:
        self.node = node
        self.subscriptions = subscriptions
        self.shape = shape
        self.budget_bytes = budget_bytes
        self.pass_rates = pass_rates
        self.whole: Summary | None = None
        "Of all subscriptions; None where they have changed since it was made."
        self.parts: dict[frozenset[int], Summary] = {}
        "By event types, within the budget."
        self.reports: dict[frozenset[int], tuple[Summary, SummaryReport]] = {}
        "By event types, with greedy types widened."

    def changed(self) -> None:
        """The subscriptions have changed."""
        self.whole = None
        self.parts.clear()
        self.reports.clear()
        self.pass_rates.clear()

    def report(self, types: frozenset[int]) -> tuple[Summary, SummaryReport]:
        """What local subscribers want of these types, and the report that states it."""
        if types not in self.reports:
            part = self.about(types).wanting_all(key for key in types if self.pass_rates.greedy(key))
            self.reports[types] = part, full_report(self.node, part.to_bytes())
        return self.reports[types]

    def about(self, types: frozenset[int]) -> Summary:
        """What local subscribers want of these types, as fine as the budget allows."""
        if self.whole is None:
            self.whole = Summary.of((one.filter for one in self.subscriptions.by_id.values()), self.shape)
        if types not in self.parts:
            if len(self.parts) >= self.pass_rates.capacity:
                self.parts.clear()
                self.reports.clear()
            self.parts[types] = self.whole.about(types).within(self.budget_bytes)
        return self.parts[types]

    def count(self, event: Event) -> None:
        """A flooded event: would the summary have let it pass? Events that the mesh brings are not counted,
        because the summary itself has chosen them."""
        key = type_key(event.type)
        part = self.about(frozenset((key,)))
        if part and self.pass_rates.count(key, part.may_match(event)):
            self.reports.clear()


@dataclass(slots=True)
class _Share:
    heard: float = 0.0
    passed: float = 0.0
    greedy: bool = False


class PassRates:
    """By event type, the share of events that a broker's summary lets pass; at most `capacity` types.

    A broker is greedy for a type while that share reaches the limit.
    """

    def __init__(self, limit: float, capacity: int) -> None:
        self.limit = limit
        self.capacity = capacity
        self._types: dict[int, _Share] = {}

    def count(self, type: int, passes: bool) -> bool:
        """An event of this type was heard; True where that changes whether the broker is greedy for it."""
        share = self._types.get(type)
        if share is None:
            if len(self._types) >= self.capacity:
                return False
            share = self._types[type] = _Share()
        share.heard += 1
        share.passed += passes
        if share.heard >= WINDOW:
            share.heard /= 2
            share.passed /= 2
        if share.heard < ENOUGH:
            return False
        was = share.greedy
        share.greedy = share.passed >= (self.limit - SLACK if was else self.limit) * share.heard
        return share.greedy != was

    def greedy(self, type: int) -> bool:
        """Whether the broker wants nearly every event of this type."""
        share = self._types.get(type)
        return share is not None and share.greedy

    def clear(self) -> None:
        """The subscriptions have changed: start again."""
        self._types.clear()
