"""The oracle: who should receive an event, by a plain and exact rule apart from every protocol.

A node is expected to receive an event when one of its subscriptions is in force at the time of
publication and accepts it, seen from where the node is then: type, content and place all agree. The
publisher itself is never a receiver.

Content comes first: every distinct filter, without the terms that ask where the consumer is, is in one
index. Place is asked only of those whose filter the event meets by content. The simulator, the replay
page and each Spark task of the pipeline ask this one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.index.filter_index import FilterIndex
from earshot.filters.language.matching import Viewer
from earshot.filters.subscription import Subscription, agrees_in_place, subscription_of
from earshot.records.sessions import SubscriptionSpan


class Oracle:
    """Answers for some subscription spans; a span is known by its number among them."""

    def __init__(self, spans: Iterable[SubscriptionSpan]) -> None:
        self.spans = list(spans)
        self.subscriptions: list[Subscription] = [subscription_of(span) for span in self.spans]
        self._index = FilterIndex()
        self._spans_of: list[list[tuple[float, float, str, int]]] = []
        "Of each distinct filter in the index: start, end, node and number of its spans."
        numbers: dict[Filter, int] = {}
        for number, (span, subscription) in enumerate(zip(self.spans, self.subscriptions, strict=True)):
            by_content = subscription.filter.without_viewer_terms()
            place = numbers.setdefault(by_content, len(self._spans_of))
            if place == len(self._spans_of):
                self._index.add(place, by_content)
                self._spans_of.append([])
            self._spans_of[place].append((span.start, span.end, span.node, number))

    def candidates(self, event: Event, time: float) -> list[int]:
        """The spans in force at that time that agree with the event's type and content and are not its
        publisher's own."""
        source = event.source
        return [
            number
            for place in self._index.match(event)
            for start, end, node, number in self._spans_of[place]
            if start <= time < end and node != source
        ]

    def asks_for_place(self, event: Event, number: int) -> bool:
        """Whether a candidate's answer depends on where its node or the event is."""
        subscription = self.subscriptions[number]
        return event.area is not None or subscription.region is not None or subscription.filter.needs_viewer

    def agrees_in_place(self, event: Event, number: int, viewer: Viewer) -> bool:
        """Whether a candidate accepts the event, seen from its node: what is left of `accepts`."""
        subscription = self.subscriptions[number]
        if not agrees_in_place(event, subscription.region, viewer):
            return False
        return not subscription.filter.needs_viewer or subscription.filter.matches(event, viewer)

    def receivers(self, event: Event, time: float, viewer_at: Callable[[str, float], Viewer | None]) -> set[str]:
        """The nodes that should receive an event published at that time. `viewer_at` says where a node is;
        where it answers None, the node receives only what does not depend on places."""
        found: set[str] = set()
        for number in self.candidates(event, time):
            node = self.spans[number].node
            if node in found:
                continue
            if self.asks_for_place(event, number):
                viewer = viewer_at(node, time)
                if viewer is None or not self.agrees_in_place(event, number, viewer):
                    continue
            found.add(node)
        return found
