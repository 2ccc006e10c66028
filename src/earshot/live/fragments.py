"""Fragments: packets larger than a datagram, taken apart and put together again in bounded buffers."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from earshot.live.datagrams import MAX_PACKETS, Fragment
from earshot.records import DropReason
from earshot.wire import MAX_PACKET_BYTES

Key = tuple[str, int, int]
"The sender, its life and the number of the packet."


def split(packet: bytes, piece_bytes: int) -> list[bytes]:
    """The packet in pieces, in order."""
    return [packet[start : start + piece_bytes] for start in range(0, len(packet), piece_bytes)]


@dataclass(slots=True)
class _Partial:
    started_at: float
    count: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    bytes: int = 0


class Reassembly:
    """Pieces waiting for the rest. One sender holds no more than `sender_bytes`, all together no more
    than `total_bytes`; where it gets tight, whoever holds most loses its oldest."""

    def __init__(
        self,
        dropped: Callable[[DropReason], None],
        *,
        sender_bytes: int = 2 * MAX_PACKET_BYTES,
        total_bytes: int = 16 * MAX_PACKET_BYTES,
        partial_limit: int = 256,
        patience_s: float = 5.0,
    ) -> None:
        self._dropped = dropped
        self._sender_bytes = sender_bytes
        self._total_bytes = total_bytes
        self._partial_limit = partial_limit
        self._patience_s = patience_s
        self._partials: OrderedDict[Key, _Partial] = OrderedDict()
        self._held: Counter[str] = Counter()
        self._finished: OrderedDict[Key, None] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._partials)

    def add(self, sender: str, life: int, fragment: Fragment, now: float) -> bytes | None:
        """The whole packet, where this was its last missing piece."""
        key = (sender, life, fragment.number)
        self.expire(now)
        partial = self._partials.get(key)
        if partial is None:
            if key in self._finished:
                return None
            partial = self._partials[key] = _Partial(now, fragment.count)
        if partial.count != fragment.count or fragment.index in partial.pieces:
            return None
        size = len(fragment.piece)
        if partial.bytes + size > MAX_PACKET_BYTES:
            self._forget(key)
            self._dropped(DropReason.PACKET_TOO_LARGE)
            return None
        partial.pieces[fragment.index] = fragment.piece
        partial.bytes += size
        self._held[sender] += size
        self.bytes += size
        if len(partial.pieces) == partial.count:
            self._forget(key)
            self._finished[key] = None
            if len(self._finished) > MAX_PACKETS:
                self._finished.popitem(last=False)
            return b"".join(partial.pieces[index] for index in range(partial.count))
        self._make_room(sender)
        return None

    def expire(self, now: float) -> None:
        """Give up what has waited too long."""
        while self._partials:
            key, partial = next(iter(self._partials.items()))
            if now - partial.started_at <= self._patience_s:
                return
            self._forget(key)
            self._dropped(DropReason.FRAGMENTS_MISSING)

    def _make_room(self, sender: str) -> None:
        while self._held[sender] > self._sender_bytes:
            self._drop_oldest_of(sender)
        while self.bytes > self._total_bytes or len(self._partials) > self._partial_limit:
            count = Counter(name for name, _, _ in self._partials)
            self._drop_oldest_of(max(count, key=lambda name: (self._held[name], count[name])))

    def _drop_oldest_of(self, sender: str) -> None:
        self._forget(next(key for key in self._partials if key[0] == sender))
        self._dropped(DropReason.FRAGMENT_BUFFER_FULL)

    def _forget(self, key: Key) -> None:
        partial = self._partials.pop(key)
        self.bytes -= partial.bytes
        self._held[key[0]] -= partial.bytes
        if not self._held[key[0]]:
            del self._held[key[0]]
