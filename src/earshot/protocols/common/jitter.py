"""Packets that wait a random time, so that neighbours who heard the same packet do not all send at once."""

from __future__ import annotations

from random import Random

from earshot.protocols.machine import Broadcast, Drop, Effect, Send, StartTimer, Timer
from earshot.records import DropReason
from earshot.wire import Packet


class Jitter:
    """Each packet goes after a uniform random time between 0 and `jitter_s`; at once if that is 0.

    Methods return effects for the machine to carry out.
    """

    def __init__(self, jitter_s: float, random: Random, capacity: int) -> None:
        self._jitter_s = jitter_s
        self._random = random
        self._capacity = capacity
        self._waiting: dict[Timer, tuple[Packet, str | None]] = {}
        self._numbers = 0

    def send(self, packet: Packet, now: float, peer: str | None = None) -> Effect:
        """Send the packet after its random time, to one peer or to all."""
        if self._jitter_s == 0.0:
            return _sent(packet, peer)
        if len(self._waiting) >= self._capacity:
            return Drop(DropReason.TOO_MANY_PACKETS_WAITING)
        self._numbers += 1
        timer = ("jitter", self._numbers)
        self._waiting[timer] = (packet, peer)
        return StartTimer(timer, at=now + self._jitter_s * self._random.random())

    def wake(self, timer: Timer) -> list[Effect]:
        """Send the packet that waited for this timer, if one did."""
        waiting = self._waiting.pop(timer, None)
        return [_sent(*waiting)] if waiting is not None else []


def _sent(packet: Packet, peer: str | None) -> Effect:
    return Broadcast(packet) if peer is None else Send(peer, packet)
