"""The live events of a node: those it holds for others, and those it only knows to have heard.

Events are held within a budget of bytes. Beyond it the least useful go first: low priority, little time left to
live, many bytes. A node still knows such an event, and claims it in its digests: it needs no second copy.
"""

from __future__ import annotations

from heapq import heappop, heappush

from earshot.events import Event
from earshot.protocols.hearsay.digest import mask_of, mask_of_all, quarter_of

MOST_MASKS = 16


class Copy:
    """An event said at some place, which this node heard or said itself."""

    __slots__ = ("time", "x", "y")

    def __init__(self, time: float, x: float, y: float) -> None:
        self.time = time
        self.x = x
        self.y = y


class LiveEvent:
    """An event whose lifespan has not ended."""

    __slots__ = ("copies", "event", "expires", "heard_at", "hops", "id", "offers", "quarter", "size_bytes")

    def __init__(self, event: Event, hops: int, heard_at: float, expires: float, size_bytes: int) -> None:
        self.id = event.id
        self.event: Event | None = event
        "None: its bytes are no longer held."
        self.hops = hops
        self.heard_at = heard_at
        self.expires = expires
        self.size_bytes = size_bytes
        self.quarter = quarter_of(event.time)
        self.copies: list[Copy] = []
        "The first few."
        self.offers: dict[str, int] = {}
        "How often it was offered to each neighbour that lacked it."


class LiveEvents:
    """All live events of a node, by id; at most `memory`, and `carry_bytes` of them held."""

    def __init__(self, memory: int, carry_bytes: int) -> None:
        self.memory = memory
        self.carry_bytes = carry_bytes
        self.held_bytes = 0
        self.by_id: dict[str, LiveEvent] = {}
        self._ends: list[tuple[float, str]] = []
        self._masks: dict[tuple[int, int], int] = {}
        "Masks of all live events by salt and size: most hellos lack nothing, and one comparison shows it."

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, live: LiveEvent, now: float) -> None:
        """Hold a new event, and make room for it."""
        if len(self.by_id) >= self.memory:
            self._remove(next(iter(self.by_id)))
        self.by_id[live.id] = live
        for salt, size_bytes in self._masks:
            self._masks[salt, size_bytes] |= mask_of(live.id, salt, size_bytes)
        self.held_bytes += live.size_bytes
        heappush(self._ends, (live.expires, live.id))
        if len(self._ends) > 2 * self.memory:
            self._ends = sorted((one.expires, one.id) for one in self.by_id.values())
        if self.held_bytes > self.carry_bytes:
            self._drop_least_useful(now)

    def mask(self, salt: int, size_bytes: int) -> int:
        """The bits of all live events in a digest of this salt and size."""
        if not size_bytes:
            return 0
        known = self._masks.get((salt, size_bytes))
        if known is None:
            if len(self._masks) >= MOST_MASKS:
                self._masks.clear()
            known = mask_of_all(self.by_id, salt, size_bytes)
            self._masks[salt, size_bytes] = known
        return known

    def forget(self, now: float) -> None:
        """Forget the events whose lifespan has ended."""
        while self._ends and self._ends[0][0] <= now:
            _, event_id = heappop(self._ends)
            live = self.by_id.get(event_id)
            if live is not None and live.expires <= now:
                self._remove(event_id)

    def _remove(self, event_id: str) -> None:
        live = self.by_id.pop(event_id)
        self._masks.clear()
        if live.event is not None:
            self.held_bytes -= live.size_bytes

    def _drop_least_useful(self, now: float) -> None:
        """Go an eighth below the budget, so that this is rare."""

        def usefulness(live: LiveEvent) -> float:
            assert live.event is not None
            return (1 + max(live.event.priority, 0)) * (live.expires - now) / live.size_bytes

        held = [live for live in self.by_id.values() if live.event is not None]
        for live in sorted(held, key=usefulness):
            if self.held_bytes <= self.carry_bytes * 7 // 8:
                return
            live.event = None
            self.held_bytes -= live.size_bytes
