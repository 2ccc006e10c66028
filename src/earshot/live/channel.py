"""The live channel service: which share of the last seconds the packets sent and heard took, at the radio's bit rate.

A program cannot sense a carrier: packets of other programs, and of nodes that are not heard, are not counted, so the
share is a lower bound. Without a bit rate the share is unknown, and the channel counts as quiet.
"""

from __future__ import annotations

from collections import deque
from math import floor

RECENT_SECONDS = 5
HEADER_BYTES = 64
"MAC, LLC, IP and UDP headers and checksum around a packet, as the simulator's radios have them."


class MeasuredChannel:
    """How busy this node's packets keep the channel."""

    def __init__(self, bit_rate_bps: float | None) -> None:
        self._bit_rate_bps = bit_rate_bps
        self._seconds: deque[list[float]] = deque(maxlen=RECENT_SECONDS + 1)
        "Each second that had packets, and their time on air."

    def airtime_s(self, size_bytes: int) -> float:
        return 0.0 if self._bit_rate_bps is None else (size_bytes + HEADER_BYTES) * 8 / self._bit_rate_bps

    def count(self, size_bytes: int, now: float) -> None:
        """A packet of that size was sent or heard."""
        if self._bit_rate_bps is None:
            return
        second = floor(now)
        if not self._seconds or self._seconds[-1][0] < second:
            self._seconds.append([second, 0.0])
        self._seconds[-1][1] += self.airtime_s(size_bytes)

    def busy_share(self, now: float) -> float:
        second = floor(now)
        busy_s = sum(on_air_s for whole, on_air_s in self._seconds if second - RECENT_SECONDS <= whole < second)
        return min(busy_s / RECENT_SECONDS, 1.0)
