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
from earshot.geometry import Area, Position, Proximity
from earshot.protocols.common.local_subscriptions import has_expired
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.beacon_pace import Pace
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.packets import Advert, SteamSettings


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

    def advert(self, producer: str, position: Position, settings: SteamSettings) -> Advert:
        """The content of its next beacon."""
        return Advert(
            producer,
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
    """The announcements of one node, one for each subject."""

    def __init__(self, producer: str, settings: SteamSettings) -> None:
        self.producer = producer
        self.settings = settings
        self.by_subject: dict[str, LocalAnnouncement] = {}

    def add(self, announcement: Announcement, position: Position, now: float) -> LocalAnnouncement:
        """Announce an event type, or announce it again with another proximity."""
        event_type, proximity = announcement.event_type, announcement.proximity
        subject = event_type.subject
        known = self.by_subject.get(subject)
        if known is not None and known.event_type != event_type:
            raise ContentMismatch(
                f"{subject!r} is announced here with {dict(known.event_type.content)}; events of one type have one "
                f"structure: unannounce it before announcing it with {dict(event_type.content)}"
            )
        limit = self.settings.announcement_limit
        if known is None and len(self.by_subject) >= limit:
            raise UsageError(f"this node announces {limit} event types already: increase announcement_limit")
        if proximity is not None and not all(map(math.isfinite, (proximity.naval.x_m, proximity.naval.y_m))):
            raise GeometryError(f"the naval of {subject!r} must be a point in metres, got {proximity.naval}")
        reach_m = math.inf if proximity is None else proximity.shape.reach_m
        group = group_id(subject, proximity)
        announced = LocalAnnouncement(event_type, proximity, group, now, EventCache(self.settings.cache_size), reach_m)
        if fault := announced.advert(self.producer, position, self.settings).fault():
            raise UsageError(f"{subject[:80]!r}: {fault.sentence} Use a simpler shape or fewer parameters")
        self.by_subject[subject] = announced
        return announced

    def remove(self, subject: str) -> None:
        """Unannounce."""
        if self.by_subject.pop(subject, None) is None:
            raise UnknownName("announced event type", subject, self.by_subject)

    def for_raising(self, event: Event, position: Position) -> tuple[LocalAnnouncement, Event]:
        """The event's announcement, and the event checked against it, with its area. The content is not
        checked if the type was announced without content."""
        announced = self.by_subject.get(event.type)
        if announced is None:
            raise EventError(
                f"events of type {event.type!r} are not announced on this node; "
                "announce the type and its proximity before publishing"
            )
        if announced.event_type.content:
            event = announced.event_type.read(event)
        if event.area != (area := announced.area(position)):
            event = msgspec.structs.replace(event, area=area)
        return announced, event
