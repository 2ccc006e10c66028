"""Trajectories that become known step by step, because what happens in a run changes where nodes go."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from earshot.records.trajectories import Floats, Interval, Legs, Trajectories, Trajectory

Place = tuple[float, float]

AWAY_M = -1e7
"Nodes that are not there stand this far south, away from all others."
APART_M = 1e4
"Nodes that are not there stand this far from each other: they are nobody's neighbours."
JUMP_M = 1e-6
"A leg that ends farther than this from where the next begins ends with a jump; less is rounding."


def away(number: int) -> Place:
    """Where a node is while it is not there."""
    return number * APART_M, AWAY_M


class StepHistory:
    """One node's legs, in order of time: where each begins and how the node moves on it."""

    __slots__ = ("begin", "presence", "x_m", "x_m_s", "y_m", "y_m_s")

    def __init__(self, number: int) -> None:
        x_m, y_m = away(number)
        self.begin, self.x_m, self.y_m = array("d", [-math.inf]), array("d", [x_m]), array("d", [y_m])
        self.x_m_s, self.y_m_s = array("d", [0.0]), array("d", [0.0])
        self.presence: list[Interval] = []

    def add(self, begin: float, at: Place, velocity: Place = (0.0, 0.0)) -> None:
        self.begin.append(begin)
        self.x_m.append(at[0])
        self.y_m.append(at[1])
        self.x_m_s.append(velocity[0])
        self.y_m_s.append(velocity[1])

    def knots(self, end: float, last: Place | None) -> list[tuple[float, float, float]]:
        """(time, x, y) in order of time, and the `last` place, at `end`; two at one time are a jump. While it is
        away, the node is said to stand where it came or went."""
        found: list[tuple[float, float, float]] = []
        legs = list(zip(self.begin, self.x_m, self.y_m, self.x_m_s, self.y_m_s, strict=True))
        for before, after in pairwise([*legs, (end, *last, 0.0, 0.0)] if last is not None else legs):
            time, here, arrived = after[0], after[1:3], before[1:3]
            if here[1] == AWAY_M:
                continue
            if any(before[3:]):
                passed = time - before[0]
                arrived = before[1] + before[3] * passed, before[2] + before[4] * passed
            if arrived[1] != AWAY_M and math.dist(arrived, here) > JUMP_M:
                found.append((time, *arrived))
            found.append((time, *here))
        return found or [(0.0, 0.0, 0.0)]


class SteppedTrajectories(Trajectories):
    """Trajectories of which some nodes' are known until the end of the present step only.

    `advance` adds a step. Questions about all nodes are for times within the present step; questions about one
    node may also be about earlier times. Every step counts as a jump, so that nobody looks beyond it.
    """

    def __init__(
        self, known: Sequence[Trajectory], stepped: Sequence[int], step_times: Floats, fastest_m_s: float
    ) -> None:
        """`known[i]` is ignored where i is among the `stepped` nodes, apart from its name."""
        moving = set(stepped)
        super().__init__(
            [
                Trajectory.standing(trajectory.name, *away(i)) if i in moving else trajectory
                for i, trajectory in enumerate(known)
            ]
        )
        self.jump_times = np.union1d(self.jump_times, step_times)
        self.max_speed_m_s = max(self.max_speed_m_s, fastest_m_s)
        self.static = False
        self._fastest_m_s = fastest_m_s
        self._stepped: npt.NDArray[np.int64] = np.array(sorted(moving), dtype=np.int64)
        self._histories = {i: StepHistory(i) for i in sorted(moving)}
        self._column = {i: column for column, i in enumerate(self._histories)}
        self._begin = self._end = 0.0
        self._places: dict[int, Place] = {}
        "Where the nodes that are there will be at the end of the present step."
        self._leaving: list[int] = []
        "Who has left at the begin of the present step."
        self._now = np.array([(*away(i), 0.0, 0.0) for i in self._histories], dtype=np.float64).reshape(-1, 4).T.copy()
        "Columns: x, y and velocity of the stepped nodes at the begin of the present step."
        self.presence = tuple(() if i in moving else trajectory.presence for i, trajectory in enumerate(known))

    def advance(self, end: float, places: Mapping[int, Place]) -> tuple[list[int], list[int]]:
        """The step that begins now ends at `end`, with the nodes at these places.

        Returns the nodes that leave at the begin of the step, and those that come at its end.
        """
        begin, before, passed = self._end, self._places, end - self._end
        gone = [i for i in before if i not in places]
        new = [i for i in places if i not in before]
        for i in self._leaving:
            self._now[:, self._column[i]] = (*away(i), 0.0, 0.0)
        for i, here in before.items():
            velocity = (0.0, 0.0)
            # A vehicle that leaves, or that SUMO moves by force, stands until the end of the step.
            if i in places and math.dist(here, places[i]) <= self._fastest_m_s * passed:
                velocity = (places[i][0] - here[0]) / passed, (places[i][1] - here[1]) / passed
            self._histories[i].add(begin, here, velocity)
            self._now[:, self._column[i]] = (*here, *velocity)
        for i in gone:
            history = self._histories[i]
            history.add(end, away(i))
            history.presence[-1] = (history.presence[-1][0], begin)
        for i in new:
            self._histories[i].presence.append((end, math.inf))
        self._begin, self._end, self._places, self._leaving = begin, end, dict(places), gone
        if gone or new:
            changed = list(self.presence)
            for i in (*gone, *new):
                changed[i] = tuple(self._histories[i].presence)
            self.presence = tuple(changed)
        return gone, new

    def positions(self, t: float) -> Floats:
        found = super().positions(t)
        if self._begin <= t <= self._end:
            x_m, y_m, x_m_s, y_m_s = self._now
            found[self._stepped, 0] = x_m + x_m_s * (t - self._begin)
            found[self._stepped, 1] = y_m + y_m_s * (t - self._begin)
        else:
            for i in self._histories:
                found[i] = self.position(i, t)
        return found

    def velocities(self, t: float) -> Floats:
        found = super().velocities(t)
        for i in self._histories:
            found[i] = self.velocity(i, t)
        return found

    def legs(self, start: float, end: float) -> Legs:
        assert self._begin <= start <= end <= self._end, f"{start} to {end} s is not within the present step"
        legs = super().legs(start, end)
        rows = legs.node.searchsorted(self._stepped)
        x_m, y_m, x_m_s, y_m_s = self._now
        legs.x_m[rows], legs.y_m[rows] = x_m + x_m_s * (start - self._begin), y_m + y_m_s * (start - self._begin)
        legs.x_m_s[rows], legs.y_m_s[rows] = x_m_s, y_m_s
        return legs

    def knots(self, i: int, start: float, until: float) -> list[tuple[float, float, float]]:
        return self.finished().knots(i, start, until)

    def finished(self) -> Trajectories:
        """All that is known, as trajectories that no longer grow."""
        return Trajectories([self.trajectory(i) for i in range(len(self))])

    def trajectory(self, i: int) -> Trajectory:
        """What is known of node i."""
        if i not in self._histories:
            first, end = int(self._first[i]) + 1, int(self._last[i]) + 1
            columns = (self._time[first:end], self._x[first:end], self._y[first:end])
            return Trajectory(self.names[i], *columns, self.presence[i])
        knots = self._histories[i].knots(self._end, self._places.get(i))
        return Trajectory.through(self.names[i], knots, self.presence[i])

    def _leg(self, i: int, t: float) -> tuple[float, float, float, float, float, float]:
        history = self._histories.get(i)
        if history is None:
            return super()._leg(i, t)
        k = bisect_right(history.begin, t) - 1
        begin = history.begin[k]
        until = history.begin[k + 1] if k + 1 < len(history.begin) else self._end
        if math.isinf(begin):
            begin = 0.0 if until > 0 else until  # it stands: any begin gives the same place
        leg = (begin, until, history.x_m[k], history.y_m[k], history.x_m_s[k], history.y_m_s[k])
        self._legs[i] = leg
        return leg
