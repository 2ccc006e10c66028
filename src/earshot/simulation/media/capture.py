"""Capture: of frames that overlap, a node reads the one that is stronger than the others together by a margin.

- The frame that a node reads survives while its power is at least `capture_db` above the sum of the others.
- A later frame that is stronger than everything else by as much is read instead, if it begins while the node still
  reads the earlier one's preamble, or reads nothing.
"""

from __future__ import annotations

from typing import Any

from earshot.simulation.media.contention import ContentionRadio, OnAir
from earshot.simulation.media.medium_settings import Contention

Arriving = tuple[int, float, float]
"A frame that a node senses: its number, its end, its power."


class CapturingRadio(ContentionRadio):
    """The shared channel, with capture."""

    def __init__(self, settings: Contention, nodes: int, *others: Any) -> None:
        super().__init__(settings, nodes, *others)
        assert settings.capture_db is not None
        self._ratio = 10 ** (settings.capture_db / 10)
        self._arriving: list[list[Arriving]] = [[] for _ in range(nodes)]
        self._sending_until = [-1.0] * nodes
        self._reading_since = [-1.0] * nodes

    def _reach(self, air: OnAir, now: float) -> None:
        number, ends_at, readable = air.number, air.ends_at, set(air.in_range)
        for node, power in zip(air.sensed_by, air.powers, strict=False):  # without the sender, which comes last
            others = [one for one in self._arriving[node] if one[1] > now]
            self._choose(node, now, number, power, others, node in readable)
            self._arriving[node] = [*others, (number, ends_at, power)]
            self._keep_busy(node, now, ends_at)
        sender = air.sender
        self._keep_busy(sender, now, ends_at)
        self._reading[sender] = 0
        self._sending_until[sender] = ends_at

    def _choose(self, node: int, now: float, number: int, power: float, others: list[Arriving], readable: bool) -> None:
        """Which frame the node reads from now on."""
        reading = self._reading
        sends = self._sending_until[node] > now
        if not others and not sends:
            reading[node] = number if readable else 0
            self._reading_since[node] = now
            return
        self._disturbance = number
        if sends:
            reading[node] = 0
            return
        noise = sum(one[2] for one in others)
        own = next((one[2] for one in others if one[0] == reading[node]), None)
        if own is not None and own >= self._ratio * (noise - own + power):
            return
        in_preamble = own is None or now - self._reading_since[node] < self._preamble_s
        if readable and in_preamble and power >= self._ratio * noise:
            reading[node], self._reading_since[node] = number, now
            return
        reading[node] = 0
        if own is not None and not in_preamble:
            self._held_until[node] = self._busy_until[node] + self._error_s

    def _keep_busy(self, node: int, now: float, ends_at: float) -> None:
        busy_until = self._busy_until[node]
        if busy_until <= now:
            self._idle_since[node], self._busy_since[node], self._busy_until[node] = busy_until, now, ends_at
        elif ends_at > busy_until:
            self._busy_until[node] = ends_at
