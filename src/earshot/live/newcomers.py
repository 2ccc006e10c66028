"""Newcomers' datagrams wait here for their turn, and then for the proof of their senders.

For their turn, so that datagrams of proven peers never wait behind them. The host takes them one slice of time at a
time, as far as the newcomers' allowance goes, and receives what has come from proven peers between two slices. What
does not fit is refused unread; then the gate (see `sockets.py`) lets the kernel discard more of it until the host has
worked off half of what waits.

For a proof, where the protocol hears only proven peers. A node that starts sends its first packets at once, before
its peers can have proved themselves; they are heard when the sender has answered the challenge, milliseconds later.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from earshot.live.trust import Address

WAITING_BYTES = 256
"About what a waiting datagram takes beside its bytes: it, its address and its place."


PROOF_S = 2.0
"A datagram waits at most this long until its sender has answered a challenge."
MOST_UNPROVEN = 16
"At most this many datagrams of one sender wait for its proof."


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


class UnprovenDatagrams:
    """Datagrams of senders that have been challenged and have not answered yet, by address."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: OrderedDict[Address, tuple[float, list[bytes]]] = OrderedDict()
        "With the time since when the sender's first one waits; the sender that has waited longest comes first."
        self._bytes = 0

    def __len__(self) -> int:
        """How many senders' datagrams wait."""
        return len(self._waiting)

    def put(self, datagram: memoryview, address: Address, now: float) -> int:
        """Let a copy wait for the proof of its sender; returns how many datagrams are given up for it, itself among
        them if its sender has too many."""
        size = len(datagram) + WAITING_BYTES
        _, own = self._waiting.get(address, (now, []))
        if len(own) >= MOST_UNPROVEN or size > self._most_bytes:
            return 1
        given_up = 0
        while self._bytes + size > self._most_bytes:
            given_up += len(self.take(next(iter(self._waiting))))
        self._waiting.setdefault(address, (now, []))[1].append(bytes(datagram))
        self._bytes += size
        return given_up

    def take(self, address: Address) -> list[bytes]:
        """The datagrams from this address, in the order in which they came."""
        _, datagrams = self._waiting.pop(address, (0.0, []))
        self._bytes -= sum(len(datagram) + WAITING_BYTES for datagram in datagrams)
        return datagrams

    def expire(self, now: float) -> int:
        """Give up those that have waited too long; returns how many."""
        given_up = 0
        while self._waiting:
            address, (since, _) = next(iter(self._waiting.items()))
            if now - since <= PROOF_S:
                break
            given_up += len(self.take(address))
        return given_up
