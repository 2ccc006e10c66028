"""What a broker knows of subscribers: those of its own region, and those that other brokers reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, isfinite, nextafter

from msgspec import structs

from earshot.errors import FilterSyntaxError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex
from earshot.geometry import Position
from earshot.protocols.common.byte_budget import TableBudgets, text_bytes
from earshot.protocols.drip.packets import SubscriberRecord
from earshot.protocols.drip.region_interests import box_around, is_near

MOST_TEXT = 1 << 20
"A broker keeps at most this many bytes of subscriptions and names; the oldest are forgotten first."


@dataclass(slots=True)
class Subscriber:
    """One subscriber, as its latest registration describes it."""

    record: SubscriberRecord
    "Always with subscriptions; an empty tuple where it wants nothing."
    heard_at: float
    filters: tuple[Filter, ...]
    version: int = 0
    "The number of its latest change that other brokers must know."
    known_by: set[str] = field(default_factory=set)
    "The brokers known to have received that change."
    shared: SubscriberRecord | None = None
    "The record that was last shared with other brokers."
    position: Position | None = None
    "Where it was when it registered, if it said so."
    renew_s: float = 0.0
    "How often it registers."

    def may_be_near(self, event: Event, margin_m: float) -> bool:
        """Whether it registered near the event's area, or did not say where it was."""
        return is_near(event, box_around([self.position], 0.0), margin_m)

    def could_want(self, event: Event) -> bool:
        """Whether the subscriber may want an event of another node, published since it subscribed."""
        record = self.record
        if event.time < record.since or event.source == record.subscriber:
            return False
        return any(filter.matches(event) for filter in self.filters)


class Subscribers:
    """The table of subscribers, an index of their filters, and which changes other brokers lack."""

    def __init__(self, broker: str, capacity: int, renew_s: float, budgets: TableBudgets | None = None) -> None:
        self.broker = broker
        self.budgets = budgets or TableBudgets()
        self.capacity = capacity
        self.renew_s = renew_s
        self.table: dict[str, Subscriber] = {}
        "In the order of their versions."
        self.text = 0
        "Characters in the table, counting 64 more for each text."
        self.version = 0
        "The number of the latest change."
        self._index = FilterIndex()

    def learn(self, record: SubscriberRecord, now: float, source: str = "") -> Subscriber | None:
        """Enter a registration, or another broker's report of one (`source`); None if it changes nothing."""
        known = self.table.get(record.subscriber)
        if known is not None and record.stamp <= known.record.stamp:
            if known.shared is not None and record.stamp == known.shared.stamp:
                known.heard_at = now
                known.known_by.add(source)
            return None
        if not (isfinite(record.stamp) and isfinite(record.since)):
            return None
        if record.subscriptions is None:
            if known is None or known.record.since != record.since:
                return None
            record = structs.replace(record, subscriptions=known.record.subscriptions)
        if record_bytes(record) > self.budgets.of(MOST_TEXT) // 4:
            return None
        if known is not None and known.record.subscriptions == record.subscriptions:
            filters = known.filters
        else:
            parsed = parse_filters(record.subscriptions or ())
            if parsed is None:
                return None
            filters = parsed
            self._replace(record.subscriber, filters)
        one = Subscriber(record, now, filters)
        if known is not None:
            one.version, one.known_by, one.shared = known.version, known.known_by, known.shared
        elif len(self.table) >= self.capacity:
            self._forget_oldest()
        if self._concerns_others(one):
            self.version += 1
            one.version, one.known_by, one.shared = self.version, {source}, record
            self.table.pop(record.subscriber, None)
        self.table[record.subscriber] = one
        self.text += record_bytes(record) - (0 if known is None else record_bytes(known.record))
        while self.text > self.budgets.of(MOST_TEXT):
            self._forget_oldest()
        return one

    def _forget_oldest(self) -> None:
        oldest = next(iter(self.table))
        self._replace(oldest, ())
        self.text -= record_bytes(self.table.pop(oldest).record)

    def _concerns_others(self, one: Subscriber) -> bool:
        """The destinations of its events have changed: its broker is not among those it named last, or the
        last shared record is old."""
        shared, record = one.shared, one.record
        return (
            shared is None
            or record.since != shared.since
            or record.subscriptions != shared.subscriptions
            or record.broker not in shared.nearest
            or record.stamp - shared.stamp >= self.renew_s
        )

    def quit(self, subscriber: str, stamp: float) -> bool:
        """Section V.A.1: it has left this region; returns whether it was here."""
        known = self.table.get(subscriber)
        if known is None or known.record.broker != self.broker or stamp <= known.record.stamp:
            return False
        known.record = structs.replace(known.record, broker="")
        return True

    def expire(self, now: float, silent_s: float) -> list[str]:
        """Remove the registrations in this region that have not been renewed for `silent_s`, and return their
        subscribers. Clear the subscriptions of those that left the region four times as long ago and that no
        broker has reported since."""
        silent, lost = [], []
        for name, one in self.table.items():
            if name == self.broker:
                continue
            if one.record.broker == self.broker and one.heard_at < now - max(silent_s, 3 * one.renew_s):
                silent.append(name)
            elif not one.record.broker and one.filters and one.heard_at < now - 4 * silent_s:
                lost.append(name)
        for name in silent:
            self.quit(name, inf)
        for name in lost:
            after = nextafter(self.table[name].record.stamp, inf)
            self.learn(SubscriberRecord(name, after, "", (), (), after), now)
        return silent

    def matching(self, event: Event) -> list[Subscriber]:
        """The subscribers that may want the event, without its publisher, in order of names."""
        found = sorted({name for name, _ in self._index.match(event)} - {event.source})
        return [self.table[name] for name in found]

    def relation(self, event: Event) -> int:
        """Section V.A.2: how closely an event is related to the subscriptions: how many it matches."""
        return len(self._index.match(event))

    def updates_for(self, peer: str, after: int, limit: int) -> list[Subscriber]:
        """What changed after a version and is not known to that broker, oldest first."""
        found = []
        for one in reversed(self.table.values()):
            if one.version <= after:
                break
            if peer not in one.known_by:
                found.append(one)
        return found[::-1][:limit]

    def _replace(self, subscriber: str, filters: tuple[Filter, ...]) -> None:
        known = self.table.get(subscriber)
        for number in range(len(known.filters) if known is not None else 0):
            self._index.remove((subscriber, number))
        for number, filter in enumerate(filters):
            self._index.add((subscriber, number), filter)


def record_bytes(record: SubscriberRecord) -> int:
    """About how many bytes the texts of a record take."""
    return text_bytes((*record.nearest, *(record.subscriptions or ())))


def parse_filters(subscriptions: Iterable[str]) -> tuple[Filter, ...] | None:
    """The filters without conditions on the subscriber's position; None if a text is not a filter."""
    try:
        return tuple(Filter.parse(text).without_viewer_terms() for text in subscriptions)
    except FilterSyntaxError:
        return None
