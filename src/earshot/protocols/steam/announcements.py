"""A producer's announcements: event types with their proximities, standing wherever the producer goes.

STEAM, section 3.2. What the application gets wrong is said here, before anything is sent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from earshot.errors import ContentMismatch, EventError, GeometryError, UnknownName, UsageError
from earshot.events import Event, EventType
from earshot.geometry import Area, Position, Proximity
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.missed_events import EventCache
from earshot.protocols.steam.relevant_proximities import Advert


@dataclass(slots=True)
class Announced:
    """One of them, with what has been raised under it."""

    event_type: EventType
    proximity: Proximity | None
    group: int
    epoch: float
    cache: EventCache
    reach_m: float
    "How far the shape's farthest point lies from the naval; infinite for everywhere."
    beacon: int = 0
    raised_at: float = 0.0

    def naval(self, position: Position) -> Position:
        """Where the proximity is pinned while its producer is there."""
        return position if self.proximity is None or self.proximity.mobile else self.proximity.naval

    def area(self, position: Position) -> Area | None:
        """Where its events are of interest while its producer is there."""
        return None if self.proximity is None else self.proximity.area(position)

    def multi_hop(self, position: Position, range_m: float) -> bool:
        """Section 4.3: whether part of the proximity may lie beyond the radio's range from there."""
        return self.naval(position).distance_to(position) + self.reach_m > range_m

    def out_of_reach(self, position: Position, range_m: float) -> bool:
        """Whether the radio reaches no point of the proximity from there."""
        return self.naval(position).distance_to(position) > self.reach_m + range_m

    def advert(self, producer: str, position: Position, range_m: float) -> Advert:
        """What its next beacon says."""
        return Advert(
            producer,
            self.event_type.subject,
            dict(self.event_type.content),
            dict(self.event_type.attributes),
            self.proximity,
            self.naval(position),
            self.epoch,
            self.beacon,
            self.multi_hop(position, range_m),
            self.cache.oldest,
            self.cache.latest,
            self.raised_at,
        )


class Announcements:
    """One for each subject."""

    def __init__(self, producer: str, limit: int, cache_size: int) -> None:
        self.producer = producer
        self.limit = limit
        self.cache_size = cache_size
        self.by_subject: dict[str, Announced] = {}

    def add(self, announcement: Announcement, position: Position, now: float) -> Announced:
        """Announce, or announce anew with another proximity."""
        event_type, proximity = announcement.event_type, announcement.proximity
        subject = event_type.subject
        known = self.by_subject.get(subject)
        if known is not None and known.event_type != event_type:
            raise ContentMismatch(
                f"{subject!r} is announced here with {dict(known.event_type.content)}; events of one type have one "
                f"structure: unannounce it before announcing it with {dict(event_type.content)}"
            )
        if known is None and len(self.by_subject) >= self.limit:
            raise UsageError(f"this node announces {self.limit} event types already: raise announcement_limit")
        if proximity is not None and not all(map(math.isfinite, (proximity.naval.x_m, proximity.naval.y_m))):
            raise GeometryError(f"the naval of {subject!r} must be a point in metres, got {proximity.naval}")
        announced = Announced(
            event_type,
            proximity,
            group_id(subject, proximity),
            now,
            EventCache(self.cache_size),
            math.inf if proximity is None else proximity.shape.reach_m,
        )
        if fault := announced.advert(self.producer, position, math.inf).fault():
            raise UsageError(f"{subject[:80]!r}: {fault.sentence} Use a simpler shape or fewer parameters")
        self.by_subject[subject] = announced
        return announced

    def remove(self, subject: str) -> None:
        """Unannounce."""
        if self.by_subject.pop(subject, None) is None:
            raise UnknownName("announced event type", subject, self.by_subject)

    def for_raising(self, event: Event, position: Position) -> tuple[Announced, Event]:
        """The event's announcement, and the event checked against it, with its area. A type announced
        without content promises nothing about it."""
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
