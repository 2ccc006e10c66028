"""The oracle: who should receive an event, by a plain and exact rule apart from every protocol.

A node is expected to receive an event when one of its subscriptions is in force at the time of
publication and accepts it, seen from where the node is then: type, content and place all agree. The
publisher itself is never a receiver.

Content comes first: every distinct filter, without the terms that ask where the consumer is, is in one
index. Place is asked only of those whose filter the event meets by content. The simulator, the replay
page and each Spark task of the pipeline ask this one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.index.filter_index import FilterIndex
from earshot.filters.language.matching import Viewer
from earshot.filters.subscription import Subscription, agrees_in_place, subscription_of
from earshot.records.sessions import SubscriptionSpan

Numbers = npt.NDArray[np.int64]


class Oracle:
    """Answers for some subscription spans; a span is known by its number among them."""

    def __init__(self, spans: Iterable[SubscriptionSpan]) -> None:
        self.spans = list(spans)
        self.subscriptions: list[Subscription] = [subscription_of(span) for span in self.spans]
        self._index = FilterIndex()
        numbers: dict[Filter, int] = {}
        filter_of = np.zeros(len(self.spans), dtype=np.int64)
        for number, subscription in enumerate(self.subscriptions):
            by_content = subscription.filter.without_viewer_terms()
            if by_content not in numbers:
                self._index.add(len(numbers), by_content)
            filter_of[number] = numbers.setdefault(by_content, len(numbers))
        self._by_filter = np.argsort(filter_of, kind="stable")
        "The spans in order of their distinct filter; those of filter k are `first[k]:first[k + 1]`."
        self._first = np.searchsorted(filter_of[self._by_filter], np.arange(len(numbers) + 1))
        self._codes = {name: code for code, name in enumerate(dict.fromkeys(span.node for span in self.spans))}
        self._node = np.array([self._codes[span.node] for span in self.spans], dtype=np.int64)
        self._start = np.array([span.start for span in self.spans], dtype=np.float64)
        self._end = np.array([span.end for span in self.spans], dtype=np.float64)

    def candidates(self, events: Sequence[Event], times: Sequence[float]) -> tuple[Numbers, Numbers]:
        """(event, span), by number, for events published at those times: the spans in force then that agree
        with the event's type and content and are not its publisher's own."""
        found: list[int] = []
        counts: list[int] = []
        for event in events:
            matching = self._index.match(event)
            found += matching
            counts.append(len(matching))
        filters = np.array(found, dtype=np.int64)
        sizes = self._first[filters + 1] - self._first[filters]
        rows = np.repeat(np.repeat(np.arange(len(counts), dtype=np.int64), counts), sizes)
        ends = np.cumsum(sizes)
        spans = self._by_filter[np.arange(len(rows)) + np.repeat(self._first[filters] - (ends - sizes), sizes)]
        when = np.array(times, dtype=np.float64)[rows]
        own = np.array([self._codes.get(event.source, -1) for event in events], dtype=np.int64)[rows]
        kept = (self._start[spans] <= when) & (when < self._end[spans]) & (own != self._node[spans])
        return rows[kept], spans[kept]

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
        for number in self.candidates([event], [time])[1].tolist():
            node = self.spans[number].node
            if node in found:
                continue
            if self.asks_for_place(event, number):
                viewer = viewer_at(node, time)
                if viewer is None or not self.agrees_in_place(event, number, viewer):
                    continue
            found.add(node)
        return found
