"""What a rendezvous cell keeps: who publishes and who subscribes at each of its points.

Every member of the cell holds the same table. Its records are the owners' own packets, so that a member can
share a record, hand it to a newcomer or send it on to another home cell unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from earshot.events import Event
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.common.filter_texts import read_filter
from earshot.protocols.georendezvous.cell_hash_routing import RoutedPacket
from earshot.protocols.georendezvous.cells import Cell
from earshot.wire import FilterText, NodeName, Whole, Word

PointKey = tuple[str, int]
"A rendezvous point: topic and index."


class RendezvousRecord(RoutedPacket, frozen=True):
    """What a rendezvous cell keeps for its owner at one point, until the owner renews it."""

    topic: Word
    index: Whole
    owner: NodeName
    cell: Cell
    "Where the owner is."
    at: float
    "The owner's clock when it sent this: a later one replaces an earlier one."
    lifespan_s: float
    "From now on; 0: the owner withdraws it."

    @property
    def key(self) -> PointKey:
        return self.topic, self.index

    @property
    def slot(self) -> tuple[bool, str]:
        """Its place at the point: an owner has one advertisement and one subscription there."""
        return isinstance(self, Subscribe), self.owner


class Advertise(RendezvousRecord, frozen=True, tag="gr-advertise"):
    """The owner publishes this topic. `asked`: the rendezvous cell has asked it for notifications."""

    asked: bool = False


class Subscribe(RendezvousRecord, frozen=True, tag="gr-subscribe"):
    """The owner wants this topic: what one of the `filters` matches, if there are any, and nothing from `pruned`
    publishers through this point."""

    filters: tuple[FilterText, ...] = ()
    pruned: tuple[Word, ...] = ()

    def wants(self, publisher: str) -> bool:
        """Whether the owner wants this publisher's notifications through this point."""
        return publisher != self.owner and publisher not in self.pruned

    @property
    def readable(self) -> bool:
        """Whether its filters can be parsed: they came over the air."""
        return all(read_filter(text) is not None for text in self.filters)

    def accepts(self, event: Event) -> bool:
        """Whether some filter matches; without filters every event of the topic does."""
        filters = (read_filter(text) for text in self.filters)
        return not self.filters or any(filter is not None and filter.matches(event) for filter in filters)


Record = Advertise | Subscribe


@dataclass(slots=True)
class StoredRecord:
    """A record, when this node got it, and when it expires unless it is renewed."""

    record: Record
    put_at: float
    expires_at: float

    def remaining(self, now: float) -> Record:
        """The record as it is sent on: with the rest of its lifespan."""
        return msgspec.structs.replace(self.record, lifespan_s=max(self.expires_at - now, 0.0))


MOST_BYTES = 8 << 20
"A cell usually keeps records of about this size in all; new ones wait until others have expired."


def weight(record: Record) -> int:
    """About how many bytes a record takes."""
    texts = (*record.filters, *record.pruned) if isinstance(record, Subscribe) else ()
    return 1024 + 2 * sum(map(len, texts))


class RendezvousTable:
    """The records of all points this cell is home to."""

    def __init__(self, longest_s: float, budgets: TableBudgets | None = None) -> None:
        self.longest_s = longest_s
        "No record is kept longer than this without being renewed, even if it states a longer lifespan."
        self._points: dict[PointKey, dict[tuple[bool, str], StoredRecord]] = {}
        "By point, then by kind of record, advertisements first, and owner."
        self.held_bytes = 0
        self.budgets = budgets or TableBudgets()

    def __len__(self) -> int:
        return sum(map(len, self._points.values()))

    def __contains__(self, key: PointKey) -> bool:
        return key in self._points

    def put(self, record: Record, now: float) -> bool:
        """Keep the record, or remove the owner's earlier one where it withdraws it.

        False where a later one is kept already, or where the table is full.
        """
        is_new = record.slot not in self._points.get(record.key, {})
        if is_new and self.held_bytes + weight(record) > self.budgets.of(MOST_BYTES):
            return False
        kept = self._points.setdefault(record.key, {})
        known = kept.get(record.slot)
        is_latest = known is None or record.at >= known.record.at
        if is_latest:
            if known is not None:
                del kept[record.slot]
                self.held_bytes -= weight(known.record)
            expires_at = now + min(record.lifespan_s, self.longest_s)
            if expires_at > now:
                kept[record.slot] = StoredRecord(record, now, expires_at)
                self.held_bytes += weight(record)
        if not kept:
            del self._points[record.key]
        return is_latest

    def mark_asked(self, advert: Advertise, asked: bool, now: float) -> Record:
        """Note whether the publisher has been asked; its record, ready to be sent on."""
        stored = self._points[advert.key][advert.slot]
        stored.record = msgspec.structs.replace(advert, asked=asked)
        return stored.remaining(now)

    def subscription(self, key: PointKey, owner: str, now: float) -> Subscribe | None:
        """The owner's subscription at that point, ready to be sent on."""
        found = (record for record in self.records(key, now) if isinstance(record, Subscribe) and record.owner == owner)
        return next(found, None)

    def _live(self, key: PointKey, now: float) -> list[Record]:
        stored = sorted(self._points.get(key, {}).items())
        return [one.record for _, one in stored if one.expires_at > now]

    def advertised(self, key: PointKey, now: float) -> list[Advertise]:
        """Who publishes there, by name."""
        return [record for record in self._live(key, now) if isinstance(record, Advertise)]

    def subscribed(self, key: PointKey, now: float) -> list[Subscribe]:
        """Who subscribes there, by name."""
        return [record for record in self._live(key, now) if isinstance(record, Subscribe)]

    def wanted(self, key: PointKey, publisher: str, now: float) -> bool:
        """Whether any subscriber wants this publisher's notifications through this point."""
        return any(subscription.wants(publisher) for subscription in self.subscribed(key, now))

    def points(self) -> list[PointKey]:
        """The points with at least one record, in order."""
        return sorted(self._points)

    def records(self, key: PointKey, now: float) -> list[Record]:
        """All that is kept at one point, ready to be sent on."""
        return [stored.remaining(now) for _, stored in sorted(self._points.get(key, {}).items())]

    def all_records(self, now: float, since: float = -math.inf) -> list[Record]:
        """The records of all points that have come or were renewed since then, ready to be sent on."""
        stored = (one for key in self.points() for _, one in sorted(self._points[key].items()))
        return [one.remaining(now) for one in stored if one.put_at >= since]

    def drop(self, key: PointKey) -> None:
        """Remove a point."""
        self.held_bytes -= sum(weight(stored.record) for stored in self._points.pop(key, {}).values())

    def expire(self, now: float) -> list[PointKey]:
        """Remove what its owner has stopped renewing; the points where that was a subscription."""
        ended = [one.record for kept in self._points.values() for one in kept.values() if one.expires_at <= now]
        for record in ended:
            kept = self._points[record.key]
            del kept[record.slot]
            self.held_bytes -= weight(record)
            if not kept:
                del self._points[record.key]
        return sorted({record.key for record in ended if isinstance(record, Subscribe)})
