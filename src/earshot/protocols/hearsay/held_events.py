"""The live events of a node: those it holds for others, and those it only knows to have heard.

Events are held within a budget of bytes. Beyond it the least useful go first: low priority, little time left to
live, many bytes. A node still knows such an event, and claims it in its digests: it needs no second copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from earshot.events import Event
from earshot.protocols.hearsay.digest import HeldDigest, make_digest, mask_of, quarter_of

MOST_MASKS = 3
"Neighbours share the salt of these seconds and nearly the size: few kinds of digests are about at a time."


class Copy(NamedTuple):
    """An event said at some place, which this node heard or said itself."""

    time: float
    x: float
    y: float


class DigestMasks:
    """The bits of every live event in digests of one salt and size, computed when they are asked for."""

    __slots__ = ("_all", "_by_id", "_new", "salt", "size_bytes")

    def __init__(self, event_ids: Iterable[str], salt: int, size_bytes: int) -> None:
        self.salt, self.size_bytes = salt, size_bytes
        self._by_id: dict[str, int] = {}
        self._new = list(event_ids)
        self._all: int | None = 0

    def add(self, event_id: str) -> None:
        self._new.append(event_id)

    def remove(self, event_id: str) -> None:
        if self._by_id.pop(event_id, None) is None:
            self._new.remove(event_id)
        else:
            self._all = None

    @property
    def by_id(self) -> dict[str, int]:
        """The bits of each event."""
        for event_id in self._new:
            self._by_id[event_id] = mask = mask_of(event_id, self.salt, self.size_bytes)
            if self._all is not None:
                self._all |= mask
        self._new.clear()
        return self._by_id

    @property
    def of_all(self) -> int:
        """The bits of all events together: most hellos lack nothing, and one comparison shows it."""
        by_id = self.by_id
        if self._all is None:
            self._all = 0
            for mask in by_id.values():
                self._all |= mask
        return self._all


class LiveEvent:
    """An event whose lifespan has not ended."""

    __slots__ = ("copies", "event", "expires", "heard_at", "hops", "id", "offers", "quarter", "size_bytes", "unsaid")

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
        self.unsaid = False
        "Published while nobody was near, and not said yet."


class LiveEvents:
    """All live events of a node, by id; at most `memory`, and `carry_bytes` of them held."""

    def __init__(self, memory: int, carry_bytes: int) -> None:
        self.memory = memory
        self.carry_bytes = carry_bytes
        self.held_bytes = 0
        self.by_id: dict[str, LiveEvent] = {}
        self._ends: list[tuple[float, str]] = []
        self._masks: dict[tuple[int, int], DigestMasks] = {}
        "By salt and size of a digest."

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, live: LiveEvent, now: float) -> None:
        """Hold a new event, and make room for it."""
        if len(self.by_id) >= self.memory:
            self._remove(next(iter(self.by_id)))
        self.by_id[live.id] = live
        for masks in self._masks.values():
            masks.add(live.id)
        self.held_bytes += live.size_bytes
        heappush(self._ends, (live.expires, live.id))
        if len(self._ends) > 2 * self.memory:
            self._ends = sorted((one.expires, one.id) for one in self.by_id.values())
        if self.held_bytes > self.carry_bytes:
            self._drop_least_useful(now)

    def masks(self, salt: int, size_bytes: int) -> DigestMasks:
        """The bits of the live events in a digest of this salt and size."""
        known = self._masks.get((salt, size_bytes))
        if known is None:
            if len(self._masks) >= MOST_MASKS:
                del self._masks[next(iter(self._masks))]
            known = self._masks[salt, size_bytes] = DigestMasks(self.by_id, salt, size_bytes)
        return known

    def digest(self, event_ids: Collection[str], salt: int, size_bytes: int) -> bytes:
        """The digest of these live events. Of all of them it is known already where a neighbour's digest was alike."""
        if len(event_ids) == len(self.by_id):
            return self.masks(salt, size_bytes).of_all.to_bytes(size_bytes, "big")
        return make_digest(event_ids, salt, size_bytes)

    def lacked(self, digest: HeldDigest) -> list[LiveEvent]:
        """The live events in the digest's span that its node surely lacks."""
        if not self.by_id:
            return []
        by_id, bits, (since, until) = self.by_id, digest.bits, digest.span
        masks = self.masks(digest.salt, digest.size_bytes)
        of_all = masks.of_all
        if bits & of_all == of_all and digest.size_bytes:
            return []
        absent = [by_id[event_id] for event_id, mask in masks.by_id.items() if bits & mask != mask or not mask]
        return [live for live in absent if since <= live.quarter < until]

    def forget(self, now: float) -> None:
        """Forget the events whose lifespan has ended."""
        while self._ends and self._ends[0][0] <= now:
            _, event_id = heappop(self._ends)
            live = self.by_id.get(event_id)
            if live is not None and live.expires <= now:
                self._remove(event_id)

    def _remove(self, event_id: str) -> None:
        live = self.by_id.pop(event_id)
        for masks in self._masks.values():
            masks.remove(event_id)
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
