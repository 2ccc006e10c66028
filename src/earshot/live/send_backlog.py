"""Datagrams wait here for a socket that takes no more at the moment.

Those of the highest priority go first, and of these the oldest. Where there are too many bytes, the latest of the
lowest priority is given up.
"""

from __future__ import annotations

from collections import deque

from earshot.live.newcomers import WAITING_BYTES
from earshot.live.trust import Address


class SendBacklog:
    """One host's datagrams that wait for its socket, which take at most `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        "Of the datagrams alone."
        self._count = 0
        self._waiting: dict[int, deque[tuple[bytes, Address]]] = {}
        "By priority."

    def __len__(self) -> int:
        return self._count

    def put(self, datagram: bytes, address: Address, priority: int) -> int:
        """Let the datagram wait; returns how many datagrams were given up, this one perhaps among them."""
        given_up = 0
        while self.bytes + len(datagram) + WAITING_BYTES * (self._count + 1) > self.limit_bytes:
            given_up += 1
            lowest = min(self._waiting, default=priority)
            if lowest >= priority:
                return given_up
            self._remove(lowest, last=True)
        self._waiting.setdefault(priority, deque()).append((datagram, address))
        self.bytes += len(datagram)
        self._count += 1
        return given_up

    def first(self) -> tuple[bytes, Address, int]:
        """The datagram that goes next, its address and its priority."""
        priority = max(self._waiting)
        return *self._waiting[priority][0], priority

    def remove_first(self) -> None:
        """Remove that datagram: it was sent, or cannot be."""
        self._remove(max(self._waiting), last=False)

    def _remove(self, priority: int, last: bool) -> None:
        waiting = self._waiting[priority]
        datagram, _ = waiting.pop() if last else waiting.popleft()
        self.bytes -= len(datagram)
        self._count -= 1
        if not waiting:
            del self._waiting[priority]
