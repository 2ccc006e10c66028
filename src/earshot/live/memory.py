"""How many bytes of heard events are alive: in the machine's tables, in queues of subscribers, or with the application.

The host counts the events that it accepts, and a weak reference shows when an event is gone: its bytes count while
anything holds it, and no table has to count. Of small packets, about one in sixteen is chosen at random and its events
count sixteen times: that is an estimate of all of them at a fraction of the work.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from random import Random
from sys import getsizeof
from typing import Any

from earshot.documents import Element
from earshot.events import Event
from earshot.protocols.common.packet_events import events_in
from earshot.wire import Packet

SMALL_BYTES = 1024
"Packets of fewer bytes are small."
SAMPLE = 16
"On average one in this many small packets is counted."
EVENT_BYTES = 900
"About how many bytes an event takes beside its content and its texts, with its entry in a table of live events."
ENTRY_BYTES = 150
"About how many bytes one value or element takes beside its texts."
_NESTED = frozenset({dict, list, Element})


def weight(event: Event) -> int:
    """About how many bytes the event takes in memory."""
    total = EVENT_BYTES + getsizeof(event.id) + getsizeof(event.type) + getsizeof(event.source)
    waiting: list[Any] = [event.content]
    while waiting:
        part = waiting.pop()
        inner: Collection[Any]
        if isinstance(part, dict):
            total += ENTRY_BYTES * len(part) + sum(map(getsizeof, part))
            inner = part.values()
        elif isinstance(part, list):
            inner = part
        else:
            total += 2 * ENTRY_BYTES + getsizeof(part.name) + getsizeof(part.attributes)
            total += sum(map(getsizeof, part.attributes)) + sum(map(getsizeof, part.attributes.values()))
            inner = part.children
        total += sum(map(getsizeof, inner))
        if not _NESTED.isdisjoint(map(type, inner)):
            waiting += [one for one in inner if type(one) in _NESTED]
    return total


class EventBytes:
    """Counts the bytes of the events that are alive."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._alive: dict[int, tuple[weakref.ref[Event], int]] = {}
        self._random = Random()
        self._uncounted = 0
        "How many more small packets are not counted. The number is random, so that no sender can foresee it."

    def admits(self, packet: Packet, size_bytes: int) -> bool:
        """Count the packet's events until they are gone; False if there is no room for them."""
        if self._uncounted and size_bytes < SMALL_BYTES and self.held_bytes < self.limit_bytes:
            self._uncounted -= 1
            return True
        full, times = self.held_bytes >= self.limit_bytes, 1
        if size_bytes < SMALL_BYTES:
            self._uncounted = int(self._random.random() * (2 * SAMPLE - 1))
            times = SAMPLE
        # What a packet carries besides its event is held as long as the event.
        weights = [(event, max(weight(event), size_bytes) * times) for event in events_in(packet)]
        if not weights:
            return True
        # A small packet may exceed the limit: otherwise those that are not chosen would still be let in.
        if full or (times == 1 and self.held_bytes + sum(size for _, size in weights) > self.limit_bytes):
            return False
        for event, size in weights:
            reference = weakref.ref(event, self._release)
            self._alive[id(reference)] = reference, size
            self.held_bytes += size
        return True

    def _release(self, reference: weakref.ref[Event]) -> None:
        _, size = self._alive.pop(id(reference))
        self.held_bytes -= size
