"""What a rendezvous cell keeps: who publishes and who subscribes at each of its points.

Every member of the cell holds the same table. Its records are the owners' own packets, so that a member can
share a record, hand it to a newcomer or send it on to another home cell unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import msgspec

from earshot.errors import UsageError
from earshot.events import Event
from earshot.filters import Filter
from earshot.protocols.georendezvous.cell_hash_routing import RoutedPacket
from earshot.protocols.georendezvous.cells import Cell

PointKey = tuple[str, int]
"A rendezvous point: topic and index."


class RendezvousRecord(RoutedPacket, frozen=True):
    """What a rendezvous cell keeps for its owner at one point, until the owner renews it."""

    topic: str
    index: int
    owner: str
    cell: Cell
    "Where the owner is."
    at: float
    "The owner's clock when it sent this: a later one replaces an earlier one."
    lifespan_s: float
    "From now on; 0: the owner withdraws it."

    @property
    def key(self) -> PointKey:
        return self.topic, self.index


class Advertise(RendezvousRecord, frozen=True, tag="gr-advertise"):
    """The owner publishes this topic. `asked`: the rendezvous cell has asked it for notifications."""

    asked: bool = False


class Subscribe(RendezvousRecord, frozen=True, tag="gr-subscribe"):
    """The owner wants this topic: what one of the `filters` matches, if there are any, and nothing from `pruned`
    publishers through this point."""

    filters: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()

    def wants(self, publisher: str) -> bool:
        """Whether the owner wants this publisher's notifications through this point."""
        return publisher != self.owner and publisher not in self.pruned

    @property
    def readable(self) -> bool:
        """Whether its filters can be parsed: they came over the air."""
        try:
            for text in self.filters:
                _filter(text)
        except UsageError:
            return False
        return True

    def accepts(self, event: Event) -> bool:
        """Whether some filter matches; without filters every event of the topic does."""
        return not self.filters or any(_filter(text).matches(event) for text in self.filters)


@lru_cache(maxsize=4096)
def _filter(text: str) -> Filter:
    return Filter.parse(text)


R = TypeVar("R", bound=RendezvousRecord)


@dataclass(slots=True)
class StoredRecord(Generic[R]):
    """A record and when it expires unless it is renewed."""

    record: R
    expires_at: float

    def remaining(self, now: float) -> R:
        """The record as it is sent on: with the rest of its lifespan."""
        return msgspec.structs.replace(self.record, lifespan_s=max(self.expires_at - now, 0.0))


class RendezvousTable:
    """The records of all points this cell is home to."""

    def __init__(self, longest_s: float) -> None:
        self.longest_s = longest_s
        "No record is kept longer than this without being renewed, whatever lifespan it states."
        self.adverts: dict[PointKey, dict[str, StoredRecord[Advertise]]] = {}
        self.subscriptions: dict[PointKey, dict[str, StoredRecord[Subscribe]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.adverts.values())) + sum(map(len, self.subscriptions.values()))

    def __contains__(self, key: PointKey) -> bool:
        return key in self.adverts or key in self.subscriptions

    def put(self, record: Advertise | Subscribe, now: float) -> bool:
        """Keep the record, or remove the owner's earlier one where it withdraws it.

        False where a later one is kept already.
        """
        expires_at = now + min(record.lifespan_s, self.longest_s)
        if isinstance(record, Advertise):
            return _put(self.adverts, record, now, expires_at)
        return _put(self.subscriptions, record, now, expires_at)

    def advertised(self, key: PointKey, now: float) -> list[Advertise]:
        """Who publishes there, by name."""
        return _live(self.adverts, key, now)

    def subscribed(self, key: PointKey, now: float) -> list[Subscribe]:
        """Who subscribes there, by name."""
        return _live(self.subscriptions, key, now)

    def wanted(self, key: PointKey, publisher: str, now: float) -> bool:
        """Whether any subscriber wants this publisher's notifications through this point."""
        return any(subscription.wants(publisher) for subscription in self.subscribed(key, now))

    def points(self) -> list[PointKey]:
        """The points with at least one record, in order."""
        return sorted({*self.adverts, *self.subscriptions})

    def records(self, key: PointKey, now: float) -> list[Advertise | Subscribe]:
        """All that is kept at one point, ready to be sent on."""
        return [
            *(held.remaining(now) for _, held in sorted(self.adverts.get(key, {}).items())),
            *(held.remaining(now) for _, held in sorted(self.subscriptions.get(key, {}).items())),
        ]

    def all_records(self, now: float) -> list[Advertise | Subscribe]:
        """The records of all points, ready to be sent on."""
        return [record for key in self.points() for record in self.records(key, now)]

    def drop(self, key: PointKey) -> None:
        """Remove a point."""
        self.adverts.pop(key, None)
        self.subscriptions.pop(key, None)

    def expire(self, now: float) -> list[PointKey]:
        """Remove what its owner has stopped renewing; the points where that was a subscription."""
        _expire(self.adverts, now)
        return _expire(self.subscriptions, now)


def _put(kept: dict[PointKey, dict[str, StoredRecord[R]]], record: R, now: float, expires_at: float) -> bool:
    owners = kept.get(record.key, {})
    known = owners.get(record.owner)
    if known is not None and record.at < known.record.at:
        return False
    if expires_at > now:
        kept.setdefault(record.key, owners)[record.owner] = StoredRecord(record, expires_at)
    elif known is not None:
        del owners[record.owner]
        if not owners:
            del kept[record.key]
    return True


def _live(kept: dict[PointKey, dict[str, StoredRecord[R]]], key: PointKey, now: float) -> list[R]:
    return [held.record for _, held in sorted(kept.get(key, {}).items()) if held.expires_at > now]


def _expire(kept: dict[PointKey, dict[str, StoredRecord[R]]], now: float) -> list[PointKey]:
    ended = [(key, owner) for key, owners in kept.items() for owner, held in owners.items() if held.expires_at <= now]
    for key, owner in ended:
        del kept[key][owner]
        if not kept[key]:
            del kept[key]
    return sorted({key for key, _ in ended})
