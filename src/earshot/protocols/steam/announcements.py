"""A producer's announcements: event types with their proximities, valid wherever the producer goes.

STEAM, section 3.2. Mistakes of the application are reported here, before anything is sent. Section
4.3: the producer keeps the events it raised, so that consumers can recover those they missed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from earshot.errors import ContentMismatch, EventError, GeometryError, UnknownName, UsageError
from earshot.events import Event, EventType
from earshot.geometry import Area, Position, Proximity, is_area_of
from earshot.protocols.common.local_subscriptions import has_expired
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.beacon_pace import Pace
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.packets import Advert, Key, SteamSettings, producer_name


class EventCache:
    """The latest events of one announcement, at most `capacity`: the oldest are forgotten first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.latest = 0
        self._events: OrderedDict[int, Event] = OrderedDict()

    def add(self, event: Event) -> int:
        """Keep the event; returns its sequence number."""
        self.latest += 1
        if self.capacity:
            if len(self._events) == self.capacity:
                self._events.popitem(last=False)
            self._events[self.latest] = event
        return self.latest

    def forget_expired(self, lifespan_s: float, now: float) -> None:
        """Forget expired events, from the oldest up to the first that is still valid."""
        while self._events and has_expired(next(iter(self._events.values())), lifespan_s, now):
            self._events.popitem(last=False)

    @property
    def oldest(self) -> int:
        """The sequence number of the oldest event held; one past the latest if none is held."""
        return next(iter(self._events), self.latest + 1)

    def held(self, sequences: Iterable[int], since: float) -> list[tuple[int, Event]]:
        """The events with these numbers that are held and were not raised before `since`, in order."""
        found = [(number, self._events[number]) for number in sorted(set(sequences)) if number in self._events]
        return [(number, event) for number, event in found if event.time >= since]


@dataclass(slots=True)
class LocalAnnouncement:
    """One announcement of this node, with the events raised under it."""

    producer: str
    "The node, or one of several producers on it (`producer_name`)."
    event_type: EventType
    proximity: Proximity | None
    group: int
    epoch: float
    cache: EventCache
    reach_m: float
    "How far the shape's farthest point lies from the naval; infinite for everywhere."
    beacon: int = 0
    pace: Pace = Pace(1, 0.0)
    rounds_left: int = 0
    "Its next beacon is due in the round after this many."
    raised_at: float = 0.0

    def naval(self, position: Position) -> Position:
        """Where the proximity is pinned while its producer is at this position."""
        return position if self.proximity is None or self.proximity.mobile else self.proximity.naval

    def area(self, position: Position) -> Area | None:
        """Where its events are relevant while its producer is at this position."""
        return None if self.proximity is None else self.proximity.area(position)

    def slack_m(self, position: Position, range_m: float) -> float:
        """How far the radio reaches beyond the proximity from this position; negative if it does not cover it."""
        return range_m - (self.naval(position).distance_to(position) + self.reach_m)

    def multi_hop(self, position: Position, range_m: float) -> bool:
        """Section 4.3: whether part of the proximity may lie beyond the radio's range from this position."""
        return self.slack_m(position, range_m) < 0.0

    def out_of_reach(self, position: Position, range_m: float) -> bool:
        """Whether the radio reaches no point of the proximity from this position."""
        return self.naval(position).distance_to(position) > self.reach_m + range_m

    def advert(self, position: Position, settings: SteamSettings) -> Advert:
        """The content of its next beacon."""
        return Advert(
            self.producer,
            self.event_type.subject,
            dict(self.event_type.content),
            dict(self.event_type.attributes),
            self.proximity,
            self.naval(position),
            self.epoch,
            self.beacon,
            self.slack_m(position, settings.range_m) < self.pace.margin_m,
            self.cache.oldest,
            self.cache.latest,
            self.raised_at,
            interval_s=self.pace.rounds * settings.beacon_interval_s,
            margin_m=self.pace.margin_m,
        )


class Announcements:
    """The announcements of one node: one for each subject and producer."""

    def __init__(self, node: str, settings: SteamSettings) -> None:
        self.node = node
        self.settings = settings
        self.by_name: dict[str, LocalAnnouncement] = {}
        self.by_subject: dict[str, dict[str, LocalAnnouncement]] = {}
        "Those of one subject, by their producer."

    def add(self, announcement: Announcement, position: Position, now: float) -> LocalAnnouncement:
        """Announce an event type, or announce it again with another proximity."""
        event_type, proximity = announcement.event_type, announcement.proximity
        subject, producer = event_type.subject, producer_name(self.node, announcement.producer)
        of_subject = self.by_subject.get(subject, {})
        known = next(iter(of_subject.values()), None)
        if known is not None and known.event_type != event_type:
            raise ContentMismatch(
                f"{subject!r} is announced here with {dict(known.event_type.content)}; events of one type have one "
                f"structure: unannounce it before announcing it with {dict(event_type.content)}"
            )
        limit = self.settings.announcement_limit
        if producer not in of_subject and len(self.by_name) >= limit:
            raise UsageError(f"this node announces {limit} event types already: increase announcement_limit")
        if proximity is not None and not all(map(math.isfinite, (proximity.naval.x_m, proximity.naval.y_m))):
            raise GeometryError(f"the naval of {subject!r} must be a point in metres, got {proximity.naval}")
        reach_m = math.inf if proximity is None else proximity.shape.reach_m
        group = group_id(subject, proximity)
        cache = EventCache(self.settings.cache_size)
        epoch = now
        while any(one.epoch == epoch for one in of_subject.values() if one.producer != producer):
            epoch = math.nextafter(epoch, math.inf)  # the epoch tells the producers of one subject apart
        announced = LocalAnnouncement(producer, event_type, proximity, group, epoch, cache, reach_m)
        if fault := announced.advert(position, self.settings).fault():
            raise UsageError(f"{subject[:80]!r}: {fault.sentence} Use a simpler shape or fewer parameters")
        self.by_name[announcement.name] = announced
        self.by_subject.setdefault(subject, {})[producer] = announced
        return announced

    def remove(self, name: str) -> LocalAnnouncement:
        """Unannounce; other producers' announcements of the same type remain."""
        announced = self.by_name.pop(name, None)
        if announced is None:
            raise UnknownName("announced event type", name, self.by_name)
        subject = announced.event_type.subject
        del self.by_subject[subject][announced.producer]
        if not self.by_subject[subject]:
            del self.by_subject[subject]
        return announced

    def of(self, key: Key) -> LocalAnnouncement | None:
        """The announcement that beacons show under this key."""
        producer, subject = key
        return self.by_subject.get(subject, {}).get(producer)

    def type_of(self, subject: str) -> EventType | None:
        """The event type of this subject, which all its producers here share; None if there is none."""
        return next((announced.event_type for announced in self.by_subject.get(subject, {}).values()), None)

    def for_raising(self, event: Event, position: Position) -> tuple[LocalAnnouncement, Event]:
        """The event's announcement, and the event checked against it, with its area. The content is not
        checked if the type was announced without content.

        `raise` names a type and no producer. Where several producers have announced it here, the event's area tells
        them apart: section 4.4 holds each pair of a type and a proximity to be unique.
        """
        of_type = self.by_subject.get(event.type, {})
        announced = of_type.get(self.node) if len(of_type) <= 1 else None
        if announced is None:
            announced = next((one for one in of_type.values() if is_area_of(event.area, one.proximity)), None)
        if announced is None:
            raise EventError(
                f"events of type {event.type!r} are not announced on this node; "
                "announce the type and its proximity before publishing"
                if not of_type
                else f"producers announce {event.type!r} on this node, but none of them with this event's area; "
                "publish it as one of them"
            )
        if announced.event_type.content:
            event = announced.event_type.read(event)
        if event.area != (area := announced.area(position)):
            event = msgspec.structs.replace(event, area=area)
        return announced, event
