"""The packets that hosts exchange beside their protocol, and what the services ask of a host."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from earshot.events import Event
from earshot.geometry import Position, Proximity, Velocity
from earshot.quality import MOST_HISTORY
from earshot.wire import NodeName, Packet, Whole, Word

MOST_ATTRIBUTES = 32
MOST_RECENT = 32
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
    "Where the source is,"
    velocity: Velocity
    "and how it moves."
    past_since: float
    "When the oldest event was published that a late subscriber may still get."
    recent: Annotated[tuple[Word, ...], msgspec.Meta(max_length=MOST_RECENT)]
    "Of a reliable type, the last events that it published and that still live."
    ended: bool
    "The type is no longer announced."
    hops: Whole


class AreasWanted(Packet, frozen=True, tag="areas-wanted"):
    """A node has fences: all that announce a type with a proximity state it for a while."""

    source: NodeName
    number: Whole
    hops: Whole


class PastWanted(Packet, frozen=True, tag="past-wanted"):
    """A node asks its neighbours for events of a publisher: a late subscriber, or one that missed reliable events."""

    source: NodeName
    subject: Word
    missed: Annotated[tuple[Word, ...], msgspec.Meta(max_length=MOST_RECENT)]
    "The events it wants; empty: all that it does not hold, from before its subscription."
    before: float
    "The subscription began then."
    held: Annotated[tuple[Word, ...], msgspec.Meta(max_length=2 * MOST_HISTORY)]
    "Events that it has."


class PastEvent(Packet, frozen=True, tag="past-event"):
    """A past event, for the nodes around that asked for it."""

    event: Event


class Here(Packet, frozen=True, tag="here"):
    """Where its sender is, for hosts whose frames do not say it."""

    at: Position


SERVICE_PACKETS = frozenset({Announced, AreasWanted, PastWanted, PastEvent, Here})


class Crossing(StrEnum):
    """What a fence reports."""

    ENTER = "enter"
    "This node is inside the announced area."
    LEAVE = "leave"
    "It is outside again, or the area has ended."
    NEARBY = "nearby"
    "Another node is near."
    FARAWAY = "faraway"
    "It is not, or is no longer heard."


# Effects beside those of machines.


class DeliverPast(msgspec.Struct, frozen=True, gc=False):
    """Hand the event to the application: it was published before this subscription began."""

    event: Event
    subscription: str


class Late(msgspec.Struct, frozen=True, gc=False):
    """The event, delivered next, missed its deadline by this time."""

    event: Event
    subscription: str
    late_s: float


class Crossed(msgspec.Struct, frozen=True, gc=False):
    """Tell the application that it crossed this fence."""

    fence: str
    crossing: Crossing
    peer: str
    "Who announced the area, or came near."
    subject: str = ""
    "The type that the area was announced with."


class Warn(msgspec.Struct, frozen=True, gc=False):
    """Tell the user of a mistake that two nodes made together."""

    message: str
