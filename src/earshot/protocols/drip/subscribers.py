"""What a broker knows of subscribers: those of its own region, and those the other brokers told of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite

from earshot.errors import FilterSyntaxError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex
from earshot.protocols.drip.packets import Record


@dataclass(slots=True)
class Subscriber:
    """One subscriber, as its latest registration has it."""

    record: Record
    "With its subscriptions, always; none left where it wants nothing any more."
    heard_at: float
    filters: tuple[Filter, ...]
    version: int = 0
    "The number of its latest change that other brokers must know of."
    known_by: set[str] = field(default_factory=set)
    "The brokers known to have heard of that change."
    spread: Record | None = None
    "What the other brokers were told last."

    def could_want(self, event: Event) -> bool:
        """Whether the subscriber may want an event of another's, published since it subscribed, wherever it is."""
        record = self.record
        if event.time < record.since or event.source == record.subscriber:
            return False
        return any(filter.matches(event) for filter in self.filters)


class Subscribers:
    """The table, an index over what everybody wants, and what has changed for whom."""

    def __init__(self, broker: str, capacity: int, renew_s: float) -> None:
        self.broker = broker
        self.capacity = capacity
        self.renew_s = renew_s
        self.table: dict[str, Subscriber] = {}
        "In the order of their versions."
        self._index = FilterIndex()
        self._versions = 0

    def learn(self, record: Record, now: float, told_by: str = "") -> Subscriber | None:
        """Take in a registration, or what another broker tells of one; None where it is not news."""
        known = self.table.get(record.subscriber)
        if known is not None and record.stamp <= known.record.stamp:
            if known.spread is not None and record.stamp == known.spread.stamp:
                known.heard_at = now
                known.known_by.add(told_by)
            return None
        if not (isfinite(record.stamp) and isfinite(record.since)):
            return None
        if record.subscriptions is None:
            if known is None or known.record.since != record.since:
                return None
            subscriptions, filters = known.record.subscriptions, known.filters
        elif known is not None and known.record.subscriptions == record.subscriptions:
            subscriptions, filters = record.subscriptions, known.filters
        else:
            read = read_filters(record.subscriptions)
            if read is None:
                return None
            subscriptions, filters = record.subscriptions, read
            self._replace(record.subscriber, filters)
        whole = Record(record.subscriber, record.stamp, record.broker, record.nearest, subscriptions, record.since)
        one = Subscriber(whole, now, filters)
        if known is not None:
            one.version, one.known_by, one.spread = known.version, known.known_by, known.spread
        elif len(self.table) >= self.capacity:
            self._forget(next(iter(self.table)))
        if self._concerns_others(one):
            self._versions += 1
            one.version, one.known_by, one.spread = self._versions, {told_by}, whole
            self.table.pop(record.subscriber, None)
        self.table[record.subscriber] = one
        return one

    def _concerns_others(self, one: Subscriber) -> bool:
        """Where its events go has changed: its broker is none of those it was near to, or that is long ago."""
        last, record = one.spread, one.record
        return (
            last is None
            or record.since != last.since
            or record.subscriptions != last.subscriptions
            or record.broker not in last.nearest
            or record.stamp - last.stamp >= self.renew_s
        )

    def quit(self, subscriber: str, stamp: float) -> bool:
        """Section V.A.1: it has left this region; whether it was here."""
        known = self.table.get(subscriber)
        if known is None or known.record.broker != self.broker or stamp <= known.record.stamp:
            return False
        old = known.record
        known.record = Record(subscriber, old.stamp, "", old.nearest, old.subscriptions, old.since)
        return True

    def silent(self, since: float) -> list[str]:
        """Those of this region who have not renewed their registration."""
        return [
            name
            for name, one in self.table.items()
            if one.record.broker == self.broker and one.heard_at < since and name != self.broker
        ]

    def lost(self, since: float) -> list[str]:
        """Those who left this region and of whom nobody has told since."""
        return [
            name
            for name, one in self.table.items()
            if not one.record.broker and one.filters and one.heard_at < since and name != self.broker
        ]

    def matching(self, event: Event) -> list[Subscriber]:
        """Whoever may want the event, its publisher apart, in order of names."""
        found = sorted({name for name, _ in self._index.match(event)} - {event.source})
        return [self.table[name] for name in found]

    def relation(self, event: Event) -> int:
        """Section V.A.2: how much an event has to do with the subscriptions: how many it matches."""
        return len(self._index.match(event))

    def news_for(self, peer: str, after: int, limit: int) -> list[Subscriber]:
        """What changed after a version and is not known to that broker, oldest first."""
        found = []
        for one in reversed(self.table.values()):
            if one.version <= after:
                break
            if peer not in one.known_by:
                found.append(one)
        return found[::-1][:limit]

    @property
    def version(self) -> int:
        """The latest change's number."""
        return self._versions

    def _replace(self, subscriber: str, filters: tuple[Filter, ...]) -> None:
        known = self.table.get(subscriber)
        for number in range(len(known.filters) if known is not None else 0):
            self._index.remove((subscriber, number))
        for number, filter in enumerate(filters):
            self._index.add((subscriber, number), filter)

    def _forget(self, subscriber: str) -> None:
        self._replace(subscriber, ())
        del self.table[subscriber]


def read_filters(subscriptions: Iterable[str]) -> tuple[Filter, ...] | None:
    """The filters, without what needs to know where the subscriber is; None where one is no filter."""
    try:
        return tuple(_read_filter(text) for text in subscriptions)
    except FilterSyntaxError:
        return None


@lru_cache(maxsize=1024)
def _read_filter(text: str) -> Filter:
    """Brokers read the same subscriptions again and again, as their subscribers move between them."""
    return Filter.parse(text).without_viewer_terms()
