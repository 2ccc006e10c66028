"""How many bytes of heard events are alive: in the machine's tables, in queues of subscribers, or with the application.

The host counts each event that it accepts, and a weak reference shows when the event is gone: its bytes count while
anything holds it, and no table has to count. Small events are not counted, because every table has a limited number of
entries.
"""

from __future__ import annotations

import sys
import weakref

from earshot.documents import Element
from earshot.events import Event

COUNTED_BYTES = 1024
"Events in smaller packets are not counted."
ENTRY_BYTES = 150
"About how many bytes one value or element takes beside its texts."


def weight(event: Event) -> int:
    """About how many bytes the event's content takes in memory."""
    if not isinstance(event.content, Element):
        texts = sum(sys.getsizeof(name) + sys.getsizeof(value) for name, value in event.content.items())
        return texts + ENTRY_BYTES * len(event.content)
    total = 0
    waiting: list[Element | str] = [event.content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            total += sys.getsizeof(part)
        else:
            total += 2 * ENTRY_BYTES + sys.getsizeof(part.name) + sys.getsizeof(part.attributes)
            total += sum(sys.getsizeof(name) + sys.getsizeof(text) for name, text in part.attributes.items())
            waiting += part.children
    return total


class EventBytes:
    """Counts the bytes of large events that are alive."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._alive: dict[int, tuple[weakref.ref[Event], int]] = {}

    def admits(self, event: Event) -> bool:
        """Count the event until it is gone; False if there is no room for it."""
        size = weight(event)
        if self.held_bytes + size > self.limit_bytes:
            return False
        reference = weakref.ref(event, self._release)
        self._alive[id(reference)] = reference, size
        self.held_bytes += size
        return True

    def _release(self, reference: weakref.ref[Event]) -> None:
        _, size = self._alive.pop(id(reference))
        self.held_bytes -= size
