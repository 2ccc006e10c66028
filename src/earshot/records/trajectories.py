"""Trajectories: where nodes are over time.

A `Trajectory` is one node's knots (time, x, y) with straight and even motion between two of them; two
knots at one time are a jump. `Trajectories` holds those of all nodes for fast questions about many of
them. A simulated node stands still before its first and after its last knot, and its `presence` says
when it is there; a recorded node is known only between its first and its last sample (`recorded_at`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.geometry import STILL, Position, Velocity
from earshot.records.sessions import Interval as Interval

Floats = npt.NDArray[np.float64]
ALWAYS: tuple[Interval, ...] = ((-math.inf, math.inf),)

_LONG_AGO = -1e300
"The time of a knot before each first knot: between them the node stands still. Finite, so that 0 m/s times it is 0."


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """One node's knots in order of time, and the intervals [from, until) in which the node is present."""

    name: str
    times: Floats
    xs: Floats
    ys: Floats
    presence: tuple[Interval, ...] = ALWAYS

    @classmethod
    def through(
        cls, name: str, knots: Sequence[tuple[float, float, float]], presence: tuple[Interval, ...] = ALWAYS
    ) -> Trajectory:
        """A trajectory through these (time, x, y)."""
        times, xs, ys = (np.array(column, dtype=np.float64) for column in zip(*knots, strict=True))
        return cls(name, times, xs, ys, presence)

    @classmethod
    def standing(cls, name: str, x_m: float, y_m: float) -> Trajectory:
        """A node that never moves."""
        return cls.through(name, [(0.0, x_m, y_m)])

    def __post_init__(self) -> None:
        if not len(self.times) == len(self.xs) == len(self.ys) or not len(self.times):
            raise ValueError(f"{self.name}: a trajectory needs as many x and y as times, and at least one")
        if not (np.isfinite(self.times).all() and np.isfinite(self.xs).all() and np.isfinite(self.ys).all()):
            raise ValueError(f"{self.name}: a trajectory's knots must be finite numbers")
        if np.any(np.diff(self.times) < 0):
            raise ValueError(f"{self.name}: a trajectory's times must not decrease")

    def recorded_at(self, time: float) -> tuple[Position, Velocity] | None:
        """Where a recorded node was and how it moved; None before its first and after its last sample.

        At the last sample the velocity is that of the last leg.
        """
        times = self.times
        if not times[0] <= time <= times[-1]:
            return None
        k = int(np.searchsorted(times, time, side="right")) - 1
        x_m, y_m = float(self.xs[k]), float(self.ys[k])
        if k == len(times) - 1:
            return Position(x_m, y_m), self._velocity(k - 1)
        velocity, passed = self._velocity(k), time - float(times[k])
        return Position(x_m + velocity.x_m_s * passed, y_m + velocity.y_m_s * passed), velocity

    def _velocity(self, k: int) -> Velocity:
        """The velocity on leg k; zero if there is no such leg, or it takes no time."""
        if k < 0 or (passed := float(self.times[k + 1] - self.times[k])) == 0.0:
            return STILL
        return Velocity(float(self.xs[k + 1] - self.xs[k]) / passed, float(self.ys[k + 1] - self.ys[k]) / passed)


def legs_from(node: npt.NDArray[np.int64], time: Floats, x_m: Floats, y_m: Floats) -> tuple[Floats, Floats, Floats]:
    """For rows in order of node, then time: the end of the leg that begins at each row, and its velocity
    east and north. A node's last row is a leg without duration, with the velocity of the leg before."""
    until, x_m_s, y_m_s = time.copy(), np.zeros(len(time)), np.zeros(len(time))
    goes_on = np.flatnonzero(node[1:] == node[:-1])
    until[goes_on] = time[goes_on + 1]
    passed = until[goes_on] - time[goes_on]
    for velocity, place in ((x_m_s, x_m), (y_m_s, y_m)):
        velocity[goes_on] = np.divide(place[goes_on + 1] - place[goes_on], passed, out=passed * 0.0, where=passed > 0)
        last = goes_on + 1
        last = last[until[last] == time[last]]
        velocity[last] = velocity[last - 1]
    return until, x_m_s, y_m_s


class Legs(NamedTuple):
    """The straight pieces of all trajectories in one interval of time, as columns: node by node, in
    order of time, without gaps. Leg k starts at (x_m, y_m)[k] and has a constant velocity."""

    node: npt.NDArray[np.int64]
    start: Floats
    end: Floats
    x_m: Floats
    y_m: Floats
    x_m_s: Floats
    y_m_s: Floats


class Trajectories:
    """The trajectories of all nodes; node i is `names[i]`.

    `positions(t)` is made for hundreds of thousands of calls with growing t: each node keeps a
    cursor on its present leg, and only the nodes whose leg has ended are looked at again. Any t
    may be asked for, in any order, with the same answer.
    """

    def __init__(self, nodes: Sequence[Trajectory]) -> None:
        self.names: tuple[str, ...] = tuple(node.name for node in nodes)
        self.presence: tuple[tuple[Interval, ...], ...] = tuple(node.presence for node in nodes)
        "For each node the intervals [from, until) in which it is present, in order."
        n = len(nodes)
        lengths = np.array([len(node.times) + 1 for node in nodes], dtype=np.int64)
        ends = np.cumsum(lengths) if n else np.zeros(0, dtype=np.int64)
        self._first = ends - lengths
        self._last = ends - 1
        self._time = _joined([np.concatenate(([_LONG_AGO], node.times)) for node in nodes])
        self._x = _joined([np.concatenate((node.xs[:1], node.xs)) for node in nodes])
        self._y = _joined([np.concatenate((node.ys[:1], node.ys)) for node in nodes])
        self._until = np.append(self._time[1:], math.inf)
        self._until[self._last] = math.inf
        lasting = self._until - self._time
        moving = np.isfinite(lasting) & (lasting > 0)
        self._vx, self._vy = np.zeros_like(self._x), np.zeros_like(self._y)
        legs = np.flatnonzero(moving)
        self._vx[legs] = (self._x[legs + 1] - self._x[legs]) / lasting[legs]
        self._vy[legs] = (self._y[legs + 1] - self._y[legs]) / lasting[legs]
        jumps = (lasting == 0) & ((np.append(self._x[1:], 0.0) != self._x) | (np.append(self._y[1:], 0.0) != self._y))
        self.jump_times: Floats = np.unique(self._time[jumps])
        "The times at which a node jumps: no speed bounds its distance then."
        self.max_speed_m_s: float = float(np.sqrt(self._vx**2 + self._vy**2).max(initial=0.0))
        "The speed of the fastest leg; jumps do not count."
        self.static: bool = self.max_speed_m_s == 0.0 and not len(self.jump_times)
        "Whether no node ever moves."
        self._all = np.arange(n)
        self._cursor = self._first.copy()
        self._here = np.zeros((n, 2))
        self._velocity = np.zeros((n, 2))
        self._since = np.zeros(n)
        self._legs: list[tuple[float, float, float, float, float, float]] = [(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)] * n
        self._settle()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def spans(self) -> Floats:
        """(n, 2): the first and the last time at which each node is present."""
        spans = [
            (intervals[0][0], intervals[-1][1]) if intervals else (math.inf, math.inf) for intervals in self.presence
        ]
        return np.array(spans, dtype=np.float64).reshape(len(self), 2)

    def positions(self, t: float) -> Floats:
        """(n, 2): where all nodes are, in metres."""
        if not self._valid_from <= t < self._valid_until:
            self._seek(t)
        return self._here + self._velocity * (t - self._since)[:, None]

    def velocities(self, t: float) -> Floats:
        """(n, 2): how all nodes move, in metres a second."""
        if not self._valid_from <= t < self._valid_until:
            self._seek(t)
        return self._velocity.copy()

    def position(self, i: int, t: float) -> tuple[float, float]:
        """Where node i is: the same numbers as in `positions(t)`."""
        leg = self._legs[i]
        if not leg[0] <= t < leg[1]:
            leg = self._leg(i, t)
        elapsed = t - leg[0]
        return leg[2] + leg[4] * elapsed, leg[3] + leg[5] * elapsed

    def velocity(self, i: int, t: float) -> tuple[float, float]:
        """How node i moves, in metres a second east and north."""
        leg = self._legs[i]
        if not leg[0] <= t < leg[1]:
            leg = self._leg(i, t)
        return leg[4], leg[5]

    def legs(self, start: float, end: float) -> Legs:
        """Every node's legs from `start` until `end`, cut to that interval."""
        if not self._valid_from <= start < self._valid_until:
            self._seek(start)
        first = self._cursor
        if end <= self._valid_until:
            here = self._here + self._velocity * (start - self._since)[:, None]
            x, y, (vx, vy) = here[:, 0], here[:, 1], self._velocity.T.copy()
            return Legs(self._all, np.full(len(self), start), np.full(len(self), end), x, y, vx, vy)
        last = first.copy()
        late = np.flatnonzero(self._until[last] < end)
        while late.size:
            last[late] += 1
            late = late[self._until[last[late]] < end]
        counts = last - first + 1
        node = np.repeat(np.arange(len(self)), counts)
        ends = np.cumsum(counts)
        leg = np.arange(len(node)) + np.repeat(first - (ends - counts), counts)
        begin, until = np.maximum(self._time[leg], start), np.minimum(self._until[leg], end)
        real = begin < until  # a jump is two knots at one time: a leg of no length
        node, leg, begin, until = node[real], leg[real], begin[real], until[real]
        vx, vy, since = self._vx[leg], self._vy[leg], begin - self._time[leg]
        return Legs(node, begin, until, self._x[leg] + vx * since, self._y[leg] + vy * since, vx, vy)

    def knots(self, i: int, start: float, until: float) -> list[tuple[float, float, float]]:
        """Node i's trajectory from start to until as (time, x, y), with strictly increasing times: its positions at
        both ends and at each knot between. The position before a jump gets a slightly earlier time."""
        first, end = int(self._first[i]) + 1, int(self._last[i]) + 1
        found = [(start, *self.position(i, start))]
        for k in range(first, end):
            time = float(self._time[k])
            if start < time < until:
                if found[-1][0] == time:
                    before = found.pop()
                    found.append((math.nextafter(time, -math.inf), before[1], before[2]))
                found.append((time, float(self._x[k]), float(self._y[k])))
        return [*found, (until, *self.position(i, until))] if until > start else found

    def present(self, i: int, t: float) -> bool:
        """Whether node i is present."""
        return any(start <= t < end for start, end in self.presence[i])

    def _leg(self, i: int, t: float) -> tuple[float, float, float, float, float, float]:
        first, end = int(self._first[i]), int(self._last[i]) + 1
        k = max(bisect_right(self._time, t, first, end) - 1, first)
        row = (self._time[k], self._until[k], self._x[k], self._y[k], self._vx[k], self._vy[k])
        leg = self._legs[i] = tuple(float(value) for value in row)  # type: ignore[assignment]
        return leg  # type: ignore[return-value]

    def _seek(self, t: float) -> None:
        """Move every node's cursor to its leg at t."""
        if t < self._valid_from:
            self._cursor = self._first.copy()
        late = np.flatnonzero(self._until[self._cursor] <= t)
        steps = 0
        while late.size and steps < 4:
            self._cursor[late] += 1
            late = late[self._until[self._cursor[late]] <= t]
            steps += 1
        if late.size:
            self._halve(late, t)
        self._settle()

    def _halve(self, nodes: npt.NDArray[np.int64], t: float) -> None:
        """Move the cursors of nodes whose legs are far ahead: a binary search for all of them at once."""
        low, high = self._cursor[nodes], self._last[nodes]
        while np.any(low < high):
            middle = (low + high + 1) // 2
            passed = self._time[middle] <= t
            low, high = np.where(passed, middle, low), np.where(passed, high, middle - 1)
        self._cursor[nodes] = low

    def _settle(self) -> None:
        """Copy the present legs into one array, so that one expression moves all nodes."""
        at = self._cursor
        self._here[:, 0], self._here[:, 1] = self._x[at], self._y[at]
        self._velocity[:, 0], self._velocity[:, 1] = self._vx[at], self._vy[at]
        self._since = self._time[at]
        self._valid_from = float(self._since.max(initial=_LONG_AGO))
        self._valid_until = float(self._until[at].min(initial=math.inf))


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)
