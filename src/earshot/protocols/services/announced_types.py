"""The event types that nodes announce, with their attributes: stated to all, and compared on both sides.

STEAM, section 3.2: event types of one subject must have an identical list of attributes. A node states each announced
type that has attributes, every few seconds, and nodes inside its proximity pass the statement on.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from earshot.errors import EventError, QualityError
from earshot.events import EventType
from earshot.geometry import Area, Polygon, Position, Proximity, Velocity
from earshot.protocols.common.byte_budget import SMALL_TABLE_BYTES, BoundedTable, TableBudgets, text_bytes
from earshot.protocols.machine import Announcement
from earshot.quality import Quality, check_kept, difference
from earshot.wire import NodeName, Packet, Whole, Word

STATE_EVERY_S = 5.0
FORGET_S = 3.2 * STATE_EVERY_S
"A statement that is not renewed for this long expires."
MOST_STATEMENTS = 4096
MOST_BYTES = 4_000_000
"The usual budget of the statements that were heard."
CORNER_BYTES = 200
MOST_ATTRIBUTES = 32
MOST_RECENT = 32
"Events that a statement of a reliable type names."
HOP_LIMIT = 32

Key = tuple[str, str]
"Source and subject."
Words = Annotated[dict[Word, Word], msgspec.Meta(max_length=MOST_ATTRIBUTES)]


class Announced(Packet, frozen=True, tag="announced"):
    """A node states an event type that it announces; passed on within the type's proximity."""

    source: NodeName
    time: float
    "By the source's clock; a later statement replaces an earlier one."
    subject: Word
    content: Words
    attributes: Words
    proximity: Proximity | None
    at: Position
    "Where the source is."
    velocity: Velocity
    "How the source moves."
    past_since: float
    "When the oldest event was published that a late subscriber may still get."
    recent: Annotated[tuple[Word, ...], msgspec.Meta(max_length=MOST_RECENT)]
    "Of a reliable type, the last events that it published and that still live."
    ended: bool
    "The type is no longer announced."
    hops: Whole


class Statement:
    """The last statement of a source about a type."""

    __slots__ = ("bytes", "copies", "event_type", "heard_at", "refused", "stated")

    def __init__(self, stated: Announced, event_type: EventType, heard_at: float) -> None:
        self.stated = stated
        self.bytes = statement_bytes(stated)
        self.event_type = event_type
        self.heard_at = heard_at
        self.copies = 0
        "How often it was heard again."
        self.refused = ""
        "Why this node does not take the source's events for its own type; empty where it does."

    @property
    def is_reliable(self) -> bool:
        """Whether who missed its events asks for them."""
        return self.event_type.quality.reliability == "reliable"

    def passed_on_from(self, position: Position) -> bool:
        """Whether a node there passes it on: it is inside the area, or the source is outside of it."""
        area = self.area(self.heard_at)
        return area is None or area.contains(position) or not area.contains(self.stated.at)

    def area(self, now: float) -> Area | None:
        """Where the announced proximity is now, if its source has moved on as it said."""
        proximity, stated = self.stated.proximity, self.stated
        if proximity is None:
            return None
        since_s = now - self.heard_at
        at = stated.at.moved(stated.velocity.x_m_s * since_s, stated.velocity.y_m_s * since_s)
        return proximity.area(at)


class AnnouncedTypes:
    """The types that this node announces or has declared, and those that others state."""

    def __init__(self, protocol: str, kept: frozenset[str], budgets: TableBudgets | None = None) -> None:
        self.protocol = protocol
        self.budgets = budgets or TableBudgets()
        self.kept = kept
        self.own: dict[str, Announcement] = {}
        self.declared: dict[str, EventType] = {}
        "By subscription, the type that the subscriber expects."
        self.heard: dict[Key, Statement] = {}
        "The latest last."
        self.bytes = 0
        "Of what was heard."
        self.ended: BoundedTable[Key, tuple[float, float]]
        self.ended = BoundedTable(MOST_STATEMENTS, self.budgets, SMALL_TABLE_BYTES)
        "When the sources ended their announcements, by their clocks and by this node's."

    def check(self, event_type: EventType) -> None:
        """Refuse a type that this node cannot keep, or that another uses with other attributes."""
        check_kept(event_type.subject, event_type.attributes, self.protocol, self.kept)
        self.check_agreement(event_type)

    def check_agreement(self, event_type: EventType) -> None:
        """Refuse a type that is used with other attributes here or by a node in reach."""
        subject, here = event_type.subject, event_type.attributes
        for id, declared in self.declared.items():
            if declared.subject == subject and (why := difference(subject, here, declared.attributes, f"{id} here")):
                raise QualityError(why)
        others = {source: statement.event_type for (source, about), statement in self.heard.items() if about == subject}
        if subject in self.own:
            others["the announcement here"] = self.own[subject].event_type
        for who, other in others.items():
            if why := difference(subject, here, other.attributes, who):
                raise QualityError(why)

    def hear(self, stated: Announced, now: float) -> Statement | None:
        """What the statement says, if it is new; None where it is known or impossible."""
        key = (stated.source, stated.subject)
        known = self.heard.get(key)
        if known is not None and stated.time <= known.stated.time:
            known.copies += stated.time == known.stated.time
            return None
        if not math.isfinite(stated.time) or not _finite(stated):
            return None
        ended = self.ended.get(key)
        if ended is not None and stated.time <= ended[0]:
            return None
        if stated.ended:
            self._remove(key)
            self.ended.put(key, (stated.time, now))
        try:
            event_type = EventType(stated.subject, stated.content, stated.attributes)
        except EventError:
            return None
        statement = Statement(stated, event_type, now)
        if stated.ended:
            return statement
        self._remove(key)
        self.heard[key] = statement
        self.bytes += statement.bytes
        while len(self.heard) > MOST_STATEMENTS or self.bytes > self.budgets.of(MOST_BYTES):
            self._remove(next(iter(self.heard)))
        mine = self.own.get(stated.subject)
        mine_type = mine.event_type if mine is not None else self.declared_as(stated.subject)
        if mine_type is not None:
            statement.refused = difference(stated.subject, mine_type.attributes, event_type.attributes, stated.source)
        return statement

    def _remove(self, key: Key) -> None:
        known = self.heard.pop(key, None)
        self.bytes -= 0 if known is None else known.bytes

    def declared_as(self, subject: str) -> EventType | None:
        """The type that a subscriber here expects under this subject."""
        return next((declared for declared in self.declared.values() if declared.subject == subject), None)

    def quality(self, source: str, subject: str) -> Quality | None:
        """What the publisher promises, as far as this node knows."""
        statement = self.heard.get((source, subject))
        if statement is not None:
            return statement.event_type.quality
        declared = self.declared_as(subject) if self.declared else None
        return None if declared is None else declared.quality

    def refuses(self, source: str, subject: str, subscription: str) -> bool:
        """Whether this subscription expects other attributes than the source announces."""
        statement = self.heard.get((source, subject)) if subscription in self.declared else None
        return statement is not None and bool(statement.refused)

    def forget(self, now: float) -> list[Key]:
        """Forget the statements that were not renewed, and those that have ended."""
        self.ended.forget(lambda times: now - times[1] > FORGET_S)
        gone = [key for key, statement in self.heard.items() if now - statement.heard_at > FORGET_S]
        for key in gone:
            self._remove(key)
        return gone


def statement_bytes(stated: Announced) -> int:
    """About how many bytes a statement takes in memory."""
    texts = (stated.source, stated.subject, *stated.content, *stated.attributes, *stated.attributes.values())
    shape = None if stated.proximity is None else stated.proximity.shape
    rings = (shape.corners, *shape.holes) if isinstance(shape, Polygon) else ()
    return 1024 + text_bytes(texts) + text_bytes(stated.recent) + CORNER_BYTES * sum(map(len, rings))


def _finite(stated: Announced) -> bool:
    numbers = [stated.at.x_m, stated.at.y_m, stated.velocity.x_m_s, stated.velocity.y_m_s, stated.past_since]
    if stated.proximity is not None:
        numbers += [stated.proximity.naval.x_m, stated.proximity.naval.y_m]
    return all(map(math.isfinite, numbers))
