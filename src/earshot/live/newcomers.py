"""Newcomers' datagrams wait here for their turn, so that those of proven peers never wait behind them.

The host takes them one slice of time at a time, as far as the newcomers' allowance goes, and receives what has come
from proven peers between two slices. What does not fit is refused unread; then the gate (see `sockets.py`) lets the
kernel discard more of it until the host has worked off half of what waits.
"""

from __future__ import annotations

from collections import deque

from earshot.live.trust import Address

WAITING_BYTES = 256
"About what a waiting datagram takes beside its bytes."


class NewcomerQueue:
    """Datagrams of newcomers, in the order in which they came."""

    def __init__(self, most: float, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._waiting: deque[tuple[bytes, Address]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, datagram: memoryview, address: Address) -> bool:
        """Let a copy of this datagram wait; False if there is no room for it."""
        bytes_after = self._bytes + len(datagram) + WAITING_BYTES
        if self._waiting and (len(self._waiting) + 1 > self._most or bytes_after > self._most_bytes):
            return False
        self._waiting.append((bytes(datagram), address))
        self._bytes = bytes_after
        return True

    def take(self) -> tuple[bytes, Address]:
        """The datagram that has waited longest."""
        taken = self._waiting.popleft()
        self._bytes -= len(taken[0]) + WAITING_BYTES
        return taken

    @property
    def is_half_empty(self) -> bool:
        """Whether there is room for half as much as fits."""
        return 2 * len(self._waiting) <= self._most and 2 * self._bytes <= self._most_bytes

    def clear(self) -> None:
        self._waiting.clear()
        self._bytes = 0
