"""Where this node has been: enough to say whether it was inside an area when an event was raised."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from earshot.geometry import Area, Position, Velocity

JUMP_M_S = 10.0
"A node that moved faster than this plus 1.5 times its stated speed has jumped."


class TimedPosition(NamedTuple):
    """Where the node was at a time, and whether it jumped there from the position before."""

    time: float
    position: Position
    jumped: bool


class PositionHistory:
    """Timed positions of the node, at most `length`, with straight lines between them. Between the two ends
    of a jump (a corrected position, a vehicle put back to the start of its lane) nothing is known."""

    def __init__(self, length: int, spacing_s: float = 0.0) -> None:
        self._spacing_s = spacing_s
        "Positions closer together in time replace each other, so that many of them do not shorten the history."
        self._entries: deque[TimedPosition] = deque(maxlen=length)
        self._speed_m_s = 0.0

    def add(self, now: float, position: Position, velocity: Velocity) -> None:
        """The node is there now, with this velocity."""
        entries, jumped = self._entries, False
        too_close = len(entries) > 1 and now - entries[-2].time < self._spacing_s
        if entries and (now <= entries[-1].time or too_close):
            jumped = entries.pop().jumped
        possible_m_s = 1.5 * max(velocity.speed_m_s, self._speed_m_s) + JUMP_M_S
        if entries and entries[-1].position.distance_to(position) > possible_m_s * (now - entries[-1].time):
            jumped = True
        entries.append(TimedPosition(now, position, jumped))
        self._speed_m_s = velocity.speed_m_s

    @property
    def start(self) -> float | None:
        """The earliest time in the history; None if it is empty."""
        return self._entries[0].time if self._entries else None

    def at(self, time: float) -> Position | None:
        """Where the node was at that time; None if unknown."""
        if not self._entries or not self._entries[0].time <= time <= self._entries[-1].time:
            return None
        after = bisect_right(self._entries, time, key=lambda entry: entry.time)
        before = self._entries[after - 1]
        if time == before.time:
            return before.position
        ahead = self._entries[after]
        if ahead.jumped:
            return None
        share = (time - before.time) / (ahead.time - before.time)
        here, there = before.position, ahead.position
        return here.moved((there.x_m - here.x_m) * share, (there.y_m - here.y_m) * share)

    def inside_since(self, area: Area) -> float | None:
        """When the node last entered the area, exact to a millisecond and never too late. The start of the
        history if it was always inside; None if it is outside now."""
        since: float | None = None
        for time, position, _ in reversed(self._entries):
            if not area.contains(position):
                return None if since is None else self._entered(area, time, since)
            since = time
        return since

    def _entered(self, area: Area, outside_at: float, inside_at: float) -> float:
        while inside_at - outside_at > 0.001:
            middle = (outside_at + inside_at) / 2
            position = self.at(middle)
            if position is not None and area.contains(position):
                inside_at = middle
            else:
                outside_at = middle
        return outside_at
