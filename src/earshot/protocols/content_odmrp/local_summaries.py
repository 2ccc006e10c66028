"""What a broker tells of its own people's subscriptions: their summary, in parts by event types.

A source hears only of the types it offers, within a packet's budget; a broker that wants nearly every event of
a type says just that (`appetite.py`).
"""

from __future__ import annotations

from earshot.events import Event
from earshot.filters.summaries.bloom import type_key
from earshot.filters.summaries.summary import Summary
from earshot.protocols.common.local_subscriptions import LocalSubscriptions
from earshot.protocols.content_odmrp.pass_rate import Appetite
from earshot.protocols.content_odmrp.reports import Report, full_report
from earshot.protocols.content_odmrp.settings import ContentOdmrpSettings


class OwnSummaries:
    """Made when first asked for, kept until the subscriptions change."""

    def __init__(self, node: str, settings: ContentOdmrpSettings, subscriptions: LocalSubscriptions) -> None:
        self.node = node
        self.settings = settings
        self.subscriptions = subscriptions
        self.whole: Summary | None = None
        "Of all subscriptions; None where they changed since it was made."
        self.parts: dict[frozenset[int], Summary] = {}
        "By event types, within their budget."
        self.reports: dict[frozenset[int], tuple[Summary, Report]] = {}
        "What is told of them."
        self.appetite = Appetite(settings.greedy_share, settings.sources_limit)

    def changed(self) -> None:
        """The subscriptions are others than before."""
        self.whole = None
        self.parts.clear()
        self.reports.clear()
        self.appetite.clear()

    def report(self, types: frozenset[int]) -> tuple[Summary, Report]:
        """What our own people want of these types, and the report that says so."""
        if types not in self.reports:
            greedy = [key for key in types if self.appetite.greedy(key)]
            part = self.about(types).wanting_all(greedy)
            self.reports[types] = (part, full_report(self.node, part.to_bytes()))
        return self.reports[types]

    def about(self, types: frozenset[int]) -> Summary:
        """Our people's wishes for these types, as fine as the budget allows."""
        if self.whole is None:
            filters = (one.filter for one in self.subscriptions.by_id.values())
            self.whole = Summary.of(filters, self.settings.shape)
        if types not in self.parts:
            if len(self.parts) >= self.settings.sources_limit:
                self.parts.clear()
                self.reports.clear()
            self.parts[types] = self.whole.about(types).within(self.settings.summary_bytes)
        return self.parts[types]

    def note(self, event: Event) -> None:
        """An event came to everybody: would our summary have let it pass? One that lets nearly
        everything pass is not worth its bytes."""
        key = type_key(event.type)
        part = self.about(frozenset((key,)))
        if part and self.appetite.note(key, part.may_match(event)):
            self.reports.clear()
