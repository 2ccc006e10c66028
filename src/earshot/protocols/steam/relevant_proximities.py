"""The list of proximities that are relevant at this node's position, and its membership in their groups.

STEAM, section 4.5: the list depends on geography only; which groups are joined depends on
subscriptions too. The list is bounded: each producer gets a share of it, and an announcement that
no local subscription matches makes room for one that a subscription matches.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum

from earshot.errors import ContentMismatch
from earshot.events import Event, EventType
from earshot.geometry import Position
from earshot.protocols.machine import JoinGroup, LeaveGroup
from earshot.protocols.steam.packets import Advert, Key, node_of
from earshot.records import DropReason


class Membership(Enum):
    """This node's relation to a proximity. Section 4.2: a member of its group is inside it and interested in it."""

    UNLISTED = "unlisted"
    "This node is outside the proximity, or has not heard of it."
    RELEVANT = "relevant"
    "This node is inside, but no local subscription matches the event type."
    MEMBER = "member"
    "This node is inside and a local subscription matches the event type."


class Change(Enum):
    """What can happen to a membership."""

    DISCOVERED = "discovered"
    "A beacon arrived, and this node is inside."
    WANTED = "wanted"
    "A local subscription matches the event type."
    UNWANTED = "unwanted"
    "No local subscription matches the event type any longer."
    LOST = "lost"
    "This node left the proximity, its beacons stopped, or it is no longer announced."


TRANSITIONS: dict[tuple[Membership, Change], Membership] = {
    (Membership.UNLISTED, Change.DISCOVERED): Membership.RELEVANT,
    (Membership.RELEVANT, Change.WANTED): Membership.MEMBER,
    (Membership.RELEVANT, Change.LOST): Membership.UNLISTED,
    (Membership.MEMBER, Change.UNWANTED): Membership.RELEVANT,
    (Membership.MEMBER, Change.LOST): Membership.UNLISTED,
}
"Section 4.5.1, steps 4 to 6. No other change is possible."


@dataclass(slots=True)
class RelevantProximity:
    """A proximity this node is inside of, as its producer last advertised it."""

    advert: Advert
    event_type: EventType
    group: int
    via: str
    "The neighbour from which the latest beacon came first: the next hop towards the producer."
    expires_at: float
    "It is forgotten then, unless a beacon comes first."
    forwarded_at: float = -math.inf
    membership: Membership = Membership.UNLISTED

    @property
    def key(self) -> Key:
        return self.advert.key

    @property
    def node(self) -> str:
        """The node that hosts its producer."""
        return node_of(self.advert.producer)

    @property
    def member(self) -> bool:
        """Whether this node is a member of its group."""
        return self.membership is Membership.MEMBER

    @property
    def mobile(self) -> bool:
        """Section 4.5.2: only the updates of a mobile proximity say where it is."""
        return self.advert.proximity is not None and self.advert.proximity.mobile

    @property
    def stationary(self) -> bool:
        """Whether it is a place that stays; everywhere is none."""
        return self.advert.proximity is not None and not self.advert.proximity.mobile

    def announced(self, event: Event, epoch: float) -> bool:
        """Whether the event was raised under its announcement of that time."""
        advert = self.advert
        return advert.epoch == epoch and advert.subject == event.type and self.node == event.source

    def typed(self, event: Event) -> Event | None:
        """The event with its values converted to the announced type; None if they do not fit."""
        if not self.event_type.content:
            return event
        try:
            return self.event_type.read(event)
        except ContentMismatch:
            return None

    def was_raised_around(self, event: Event, position: Position) -> bool:
        """Whether the position lies in the proximity in which the event was raised. For a mobile proximity the
        event's own area is fresher than the last beacon."""
        proximity = self.advert.proximity
        if proximity is None:
            return True
        return proximity.contains(position, self.advert.at if event.area is None else event.area.at)


class RelevantProximities:
    """The list, and the groups of which this node is a member."""

    def __init__(self, capacity: int, producer_capacity: int) -> None:
        self.capacity = capacity
        self.producer_capacity = producer_capacity
        self.by_key: dict[Key, RelevantProximity] = {}
        self.groups: dict[int, dict[Key, RelevantProximity]] = {}
        "Of the groups of which this node is a member, the entries that it is a member for."
        self.by_group: dict[int, dict[Key, RelevantProximity]] = {}
        self._unwanted: dict[Key, None] = {}
        self._per_producer: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.by_key)

    def key_of(self, event: Event, epoch: float) -> Key:
        """The key of the announcement under which the event was raised. An event names its node: where several
        producers there announce its type, the time of their announcement tells them apart."""
        of_node = (event.source, event.type)
        entry = self.by_key.get(of_node)
        if entry is not None and entry.advert.epoch == epoch:
            return of_node
        return next((one.key for one in self.by_key.values() if one.announced(event, epoch)), of_node)

    def no_room_for(self, producer: str, wanted: bool) -> DropReason | None:
        """Why another proximity of this producer cannot be listed; None if it can."""
        if self._per_producer[producer] >= self.producer_capacity:
            return DropReason.TOO_MANY_ANNOUNCEMENTS
        if len(self.by_key) >= self.capacity and not (wanted and self._unwanted):
            return DropReason.PROXIMITY_LIST_FULL
        return None

    def add(self, entry: RelevantProximity) -> RelevantProximity | None:
        """List a proximity. If the list is full, the oldest unwanted entry is removed and returned."""
        evicted = None
        if len(self.by_key) >= self.capacity:
            evicted = self.by_key[next(iter(self._unwanted))]
            self.change(evicted, Change.LOST)
        self.by_key[entry.key] = entry
        self.by_group.setdefault(entry.group, {})[entry.key] = entry
        self._per_producer[entry.advert.producer] += 1
        self.change(entry, Change.DISCOVERED)
        return evicted

    def change(self, entry: RelevantProximity, change: Change) -> JoinGroup | LeaveGroup | None:
        """Take the entry to its next state. Returns what this means for its group: several proximities may
        share one, so only the first member joins it and only the last one leaves it."""
        before, entry.membership = entry.membership, TRANSITIONS[entry.membership, change]
        self._unwanted.pop(entry.key, None)
        if entry.membership is Membership.RELEVANT:
            self._unwanted[entry.key] = None
        elif entry.membership is Membership.UNLISTED:
            del self.by_key[entry.key]
            del self.by_group[entry.group][entry.key]
            if not self.by_group[entry.group]:
                del self.by_group[entry.group]
            self._per_producer[entry.advert.producer] -= 1
            if not self._per_producer[entry.advert.producer]:
                del self._per_producer[entry.advert.producer]
        if entry.member:
            members = self.groups.setdefault(entry.group, {})
            members[entry.key] = entry
            return JoinGroup(entry.group) if len(members) == 1 else None
        if before is Membership.MEMBER:
            del self.groups[entry.group][entry.key]
            if not self.groups[entry.group]:
                del self.groups[entry.group]
                return LeaveGroup(entry.group)
        return None
