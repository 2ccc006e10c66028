"""Where this node has been: enough to say whether it was inside an area when an event was raised."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from earshot.geometry import Area, Position, Velocity

JUMP_M_S = 10.0
"A node that moved faster than this plus 1.5 times its stated speed has jumped."


class PositionHistory:
    """Timed positions of the node, at most `length`, with straight lines between them. Between the two ends
    of a jump (a corrected position, a vehicle put back to the start of its lane) nothing is known."""

    def __init__(self, length: int, spacing_s: float = 0.0) -> None:
        self._spacing_s = spacing_s
        "Positions closer together in time replace each other, so that many of them do not shorten the history."
        self._times: deque[float] = deque(maxlen=length)
        self._positions: deque[Position] = deque(maxlen=length)
        self._jumped: deque[bool] = deque(maxlen=length)
        "Whether the node jumped here from the position before."
        self._speed_m_s = 0.0

    def add(self, now: float, position: Position, velocity: Velocity) -> None:
        """The node is there now, with this velocity."""
        jumped = False
        if self._times and (now <= self._times[-1] or self._too_close(now)):
            self._times.pop()
            self._positions.pop()
            jumped = self._jumped.pop()
        speed_m_s = velocity.speed_m_s
        self._jumped.append(jumped or self._jumps_to(now, position, speed_m_s))
        self._times.append(now)
        self._positions.append(position)
        self._speed_m_s = speed_m_s

    def _too_close(self, now: float) -> bool:
        return len(self._times) > 1 and now - self._times[-2] < self._spacing_s

    def _jumps_to(self, now: float, position: Position, speed_m_s: float) -> bool:
        if not self._times:
            return False
        possible_m_s = 1.5 * max(speed_m_s, self._speed_m_s) + JUMP_M_S
        return self._positions[-1].distance_to(position) > possible_m_s * (now - self._times[-1])

    @property
    def start(self) -> float | None:
        """The earliest time in the history; None if it is empty."""
        return self._times[0] if self._times else None

    def at(self, time: float) -> Position | None:
        """Where the node was at that time; None if unknown."""
        if not self._times or not self._times[0] <= time <= self._times[-1]:
            return None
        after = bisect_right(self._times, time)
        before = self._positions[after - 1]
        if after == len(self._times) or time == self._times[after - 1]:
            return before
        if self._jumped[after]:
            return None
        share = (time - self._times[after - 1]) / (self._times[after] - self._times[after - 1])
        ahead = self._positions[after]
        return before.moved((ahead.x_m - before.x_m) * share, (ahead.y_m - before.y_m) * share)

    def inside_since(self, area: Area) -> float | None:
        """When the node last entered the area, exact to a millisecond and never too late. The start of the
        history if it was always inside; None if it is outside now."""
        since: float | None = None
        for time, position in zip(reversed(self._times), reversed(self._positions), strict=True):
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
