"""Packets that wait a random time, so that neighbours who heard the same packet do not all send at once."""

from __future__ import annotations

from random import Random

from earshot.protocols.machine import Machine, Timer
from earshot.records import DropReason
from earshot.wire import Packet


class Jitter:
    """Sends for a machine, each packet after a uniform random time between 0 and `jitter_s`; at once if that is 0."""

    def __init__(self, machine: Machine, jitter_s: float, random: Random, capacity: int) -> None:
        self._machine = machine
        self._jitter_s = jitter_s
        self._random = random
        self._capacity = capacity
        self._waiting: dict[Timer, tuple[Packet, str | None]] = {}
        self._numbers = 0

    def send(self, packet: Packet, now: float, peer: str | None = None) -> None:
        """Send the packet after its random time, to one peer or to all."""
        if self._jitter_s == 0.0:
            self._send(packet, peer)
        elif len(self._waiting) >= self._capacity:
            self._machine.drop(DropReason.TOO_MANY_PACKETS_WAITING)
        else:
            self._numbers += 1
            timer = ("jitter", self._numbers)
            self._waiting[timer] = (packet, peer)
            self._machine.start_timer(timer, at=now + self._jitter_s * self._random.random())

    def wake(self, timer: Timer) -> None:
        """Send the packet that waited for this timer."""
        if waiting := self._waiting.pop(timer, None):
            self._send(*waiting)

    def _send(self, packet: Packet, peer: str | None) -> None:
        if peer is None:
            self._machine.broadcast(packet)
        else:
            self._machine.send(peer, packet)
