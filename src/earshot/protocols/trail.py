"""Where this node has been lately: enough to say whether it was inside an area when an event was raised."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from earshot.geometry import Area, Position


class Trail:
    """Positions in order of time, the oldest forgotten; straight lines between them."""

    def __init__(self, length: int) -> None:
        self._times: deque[float] = deque(maxlen=length)
        self._positions: deque[Position] = deque(maxlen=length)

    def add(self, now: float, position: Position) -> None:
        """The node is there now. A second look at the same moment replaces the first."""
        if self._times and now <= self._times[-1]:
            self._positions[-1] = position
            return
        self._times.append(now)
        self._positions.append(position)

    @property
    def start(self) -> float | None:
        """The earliest time it still knows of."""
        return self._times[0] if self._times else None

    def at(self, time: float) -> Position | None:
        """Where the node was then; None where the trail does not reach."""
        if not self._times or not self._times[0] <= time <= self._times[-1]:
            return None
        after = bisect_right(self._times, time)
        before = self._positions[after - 1]
        if after == len(self._times):
            return before
        share = (time - self._times[after - 1]) / (self._times[after] - self._times[after - 1])
        ahead = self._positions[after]
        return before.moved((ahead.x_m - before.x_m) * share, (ahead.y_m - before.y_m) * share)

    def inside_since(self, area: Area) -> float | None:
        """When the node last came into the area, to a millisecond and never too late; the start where it was
        always inside, None where it is outside now."""
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
