"""The last events of publishers whose types promise a history or reliability.

Every node keeps the last events that it published or heard, whether it wanted them or not. A late subscriber asks its
neighbours, gathers what they have, and takes the last ones. A reliable publisher states which events are its last; who
lacks one asks for it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from earshot.events import Event
from earshot.protocols.services.announced_types import MOST_RECENT, Key
from earshot.quality import MOST_HISTORY, Quality
from earshot.wire import NodeName, Packet, Word

MOST_PUBLISHERS = 1024
"Publishers and types whose events are kept; those that were silent longest are forgotten."
ROUNDS = 3
"A late subscriber asks at most this many times."
ROUND_S = 0.5
"A late subscriber waits this long for answers."
ANSWER_S = 0.2
"Neighbours answer within this time, and leave out what they hear another answer with."
MOST_ASKING = 256
RECOVER_S = 1.0
"Who lacks a reliable event waits up to this long for it, and then asks, and again after each such time."


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


class DeliverPast(msgspec.Struct, frozen=True, gc=False):
    """Hand the event to the application: it was published before this subscription began."""

    event: Event
    subscription: str


@dataclass(slots=True)
class Asking:
    """A late subscription that asks for the past events of one publisher."""

    subscription: str
    before: float
    depth: int
    rounds: int = 0
    gathered: dict[str, Event] = field(default_factory=dict)
    before_round: int = -1
    "How many were gathered when the last round began."

    def over(self) -> bool:
        """Whether another round would bring nothing."""
        return self.rounds >= ROUNDS or (self.rounds > 1 and len(self.gathered) == self.before_round)

    def last_events(self) -> list[Event]:
        """The last events before the subscription began, the oldest first."""
        return sorted(self.gathered.values(), key=_by_time)[-self.depth :]


class History:
    """The events that this node keeps, by publisher and type, in order of time."""

    def __init__(self) -> None:
        self.kept: dict[Key, list[Event]] = {}

    def keep(self, event: Event, quality: Quality) -> None:
        """Keep one more event of its publisher and type, if its quality asks for that."""
        depth = max(quality.history, MOST_RECENT if quality.reliability == "reliable" else 0)
        if not depth:
            return
        key = (event.source, event.type)
        events = self.kept.pop(key, [])
        self.kept[key] = events
        if all(known.id != event.id for known in events):
            insort(events, event, key=_by_time)
            del events[:-depth]
        if len(self.kept) > MOST_PUBLISHERS:
            del self.kept[next(iter(self.kept))]

    def oldest(self, key: Key, depth: int) -> float | None:
        """When the oldest of the last events was published."""
        events = self.kept.get(key, ())[-depth:] if depth else ()
        return events[0].time if events else None

    def recent(self, key: Key, now: float) -> list[str]:
        """The last events that still live."""
        return [event.id for event in self.kept.get(key, ())[-MOST_RECENT:] if not expired(event, now)]

    def missing(self, key: Key, recent: Iterable[str]) -> list[str]:
        """Those of the publisher's last events that this node has not heard."""
        known = {event.id for event in self.kept.get(key, ())}
        return [id for id in recent if id not in known]

    def before(self, key: Key, time: float, now: float) -> list[Event]:
        """The events kept that were published before that time and still live."""
        return [event for event in self.kept.get(key, ()) if event.time < time and not expired(event, now)]


def expired(event: Event, now: float) -> bool:
    """Whether the event's own lifespan has ended."""
    return event.lifespan_s is not None and now - event.time > event.lifespan_s


def _by_time(event: Event) -> tuple[float, str]:
    return event.time, event.id
