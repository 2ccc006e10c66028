"""The list of proximities that are relevant where this node stands, and what a beacon says of each.

STEAM, section 4.5: the list is kept by geography, whatever anybody subscribed to; only which of its
groups are joined depends on subscriptions. It is bounded: one producer gets a share of it, and an
announcement nobody here asked for makes room for one that somebody did.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import msgspec

from earshot.events import Event, EventType
from earshot.geometry import Area, Position, Proximity
from earshot.protocols.steam.group_ids import description
from earshot.records import DropReason

MAX_DESCRIPTION = 4096
"Characters: a polygon of about a hundred corners. A longer description is refused, not listed."

MAX_NAME = 256
"Characters: of a producer's name, and of an event's id. Both are remembered."

Key = tuple[str, str]
"(producer, subject): a producer has one proximity for each of its event types."


class Advert(msgspec.Struct, frozen=True, array_like=True):
    """One event type and its proximity, as a beacon carries it."""

    producer: str
    subject: str
    content: dict[str, str]
    attributes: dict[str, str]
    proximity: Proximity | None
    "A mobile one with its first naval, which identifies it; None for everywhere."
    at: Position
    "Where the naval is now."
    epoch: float
    "When it was announced: a later announcement of the same type replaces this one."
    beacon: int
    multi_hop: bool
    oldest: int
    "The sequence number of the oldest event the producer still holds."
    latest: int
    "The sequence number of the latest event raised; 0 before the first."
    raised_at: float
    "When that was."
    hops: int = 0
    "How often it has been passed on."

    @property
    def key(self) -> Key:
        return self.producer, self.subject

    def area(self) -> Area | None:
        """Where the proximity lies now; None for everywhere."""
        return None if self.proximity is None else self.proximity.area(self.at)

    def contains(self, position: Position) -> bool:
        """Whether that position is inside the proximity where it lies now."""
        return self.proximity is None or self.proximity.contains(position, self.at)

    def newer_than(self, other: Advert) -> bool:
        """Whether this says something that the other does not say yet."""
        return self.beacon > other.beacon if self.epoch == other.epoch else self.epoch > other.epoch

    def same_announcement(self, other: Advert) -> bool:
        """Whether both advertise one announcement."""
        return (
            self.epoch == other.epoch
            and self.proximity == other.proximity
            and self.content == other.content
            and self.attributes == other.attributes
        )

    def fault(self) -> DropReason | None:
        """Why a node cannot list it; None where it can."""
        if not self.subject or len(self.producer) > MAX_NAME:
            return DropReason.ANNOUNCEMENT_INCOMPLETE
        if not all(map(math.isfinite, (self.epoch, self.raised_at, self.at.x_m, self.at.y_m))):
            return DropReason.ANNOUNCEMENT_IMPOSSIBLE_NUMBERS
        words = sum(len(name) + len(value) for name, value in (*self.content.items(), *self.attributes.items()))
        if words + len(description(self.subject, self.proximity)) > MAX_DESCRIPTION:
            return DropReason.ANNOUNCEMENT_TOO_LONG
        return None


@dataclass(slots=True)
class Relevant:
    """A proximity this node is inside of, as its producer last advertised it."""

    advert: Advert
    event_type: EventType
    group: int
    via: str
    "The neighbour the latest beacon came from first: the way back to the producer."
    heard_at: float
    forwarded_at: float = -math.inf
    wanted: bool = False
    "A subscription here matches its type: this node is a member of its group."

    @property
    def key(self) -> Key:
        return self.advert.key

    @property
    def mobile(self) -> bool:
        """Then only its own updates tell where it is, section 4.5.2."""
        return self.advert.proximity is not None and self.advert.proximity.mobile

    def was_raised_around(self, event: Event, position: Position) -> bool:
        """Whether the position lies in the proximity the event was raised in. An event tells where a mobile
        proximity was more freshly than the last beacon."""
        proximity = self.advert.proximity
        if proximity is None:
            return True
        return proximity.contains(position, self.advert.at if event.area is None else event.area.at)


class RelevantProximities:
    """The list, and the groups of those entries that are wanted here."""

    def __init__(self, capacity: int, producer_capacity: int) -> None:
        self.capacity = capacity
        self.producer_capacity = producer_capacity
        self.by_key: dict[Key, Relevant] = {}
        self.by_subject: dict[str, dict[Key, Relevant]] = {}
        self.groups: dict[int, dict[Key, Relevant]] = {}
        self._unwanted: dict[Key, None] = {}
        self._of_producer: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.by_key)

    def no_room_for(self, producer: str, wanted: bool) -> DropReason | None:
        """Why another entry of this producer cannot be listed; None where it can."""
        if self._of_producer[producer] >= self.producer_capacity:
            return DropReason.TOO_MANY_ANNOUNCEMENTS
        if len(self.by_key) >= self.capacity and not (wanted and self._unwanted):
            return DropReason.PROXIMITY_LIST_FULL
        return None

    def add(self, entry: Relevant) -> Relevant | None:
        """List it. Where the list is full, the unwanted entry listed longest is returned: it had to go."""
        evicted = None
        if len(self.by_key) >= self.capacity:
            evicted = self.by_key[next(iter(self._unwanted))]
            self.remove(evicted)
        self.by_key[entry.key] = entry
        self.by_subject.setdefault(entry.advert.subject, {})[entry.key] = entry
        self._unwanted[entry.key] = None
        self._of_producer[entry.advert.producer] += 1
        return evicted

    def remove(self, entry: Relevant) -> bool:
        """Take it off the list; True where its group is to be left."""
        left = self.unwant(entry)
        del self.by_key[entry.key]
        del self._unwanted[entry.key]
        of_subject = self.by_subject[entry.advert.subject]
        del of_subject[entry.key]
        if not of_subject:
            del self.by_subject[entry.advert.subject]
        producer = entry.advert.producer
        self._of_producer[producer] -= 1
        if not self._of_producer[producer]:
            del self._of_producer[producer]
        return left

    def want(self, entry: Relevant) -> bool:
        """A subscription matches it now; True where its group is to be joined."""
        entry.wanted = True
        self._unwanted.pop(entry.key, None)
        members = self.groups.setdefault(entry.group, {})
        members[entry.key] = entry
        return len(members) == 1

    def unwant(self, entry: Relevant) -> bool:
        """No subscription matches it any more; True where its group is to be left."""
        self._unwanted[entry.key] = None
        if not entry.wanted:
            return False
        entry.wanted = False
        members = self.groups[entry.group]
        del members[entry.key]
        if members:
            return False
        del self.groups[entry.group]
        return True
