"""Neighbours: who is within range of whom, exactly, at any time, and never by all pairs.

Nodes that stand still get their lists once, from a grid. For nodes that move the index works in
windows of time: a grid gives the pairs that can come within range during the window, and where
two straight legs of their paths run side by side a quadratic gives the times at which the pair
comes within range and leaves it. A query then applies what has changed up to its time. Windows
start where they are asked for, grow or shrink with how long they are used, and end at a jump.

Times of queries never go back: a simulation's clock does not.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot.simulation.mobility.trajectories import Legs, Trajectories

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Neighbours(Protocol):
    """Where media ask who hears whom."""

    def of(self, i: int, t: float) -> list[int]:
        """The nodes node i reaches at time t, in order. The list may be kept, never changed."""
        ...


def neighbours_within(trajectories: Trajectories, range_m: float) -> Neighbours:
    """The neighbours of these nodes at this range."""
    if trajectories.static:
        return StillNeighbours(trajectories.positions(0.0), range_m)
    return MovingNeighbours(trajectories, range_m)


def pairs_within(points: Floats, distance_m: float) -> tuple[Ints, Ints, Floats]:
    """All pairs of points at most that far apart, each once, and their squared distances: from a
    grid of cells of that size."""
    x, y = points[:, 0], points[:, 1]
    if len(x) < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    column = np.floor((x - x.min()) / distance_m).astype(np.int64)
    row = np.floor((y - y.min()) / distance_m).astype(np.int64)
    rows = int(row.max()) + 3
    cell = column * rows + row
    order = np.argsort(cell, kind="stable")
    cell, x, y = cell[order], x[order], y[order]
    # Partners behind in the own cell and in the one above; then those in the three cells to the right.
    own = np.arange(1, len(x) + 1), np.searchsorted(cell, cell + 1, "right")
    right = np.searchsorted(cell, cell + (rows - 1), "left"), np.searchsorted(cell, cell + (rows + 1), "right")
    parts = _ranges(*own), _ranges(*right)
    first, second = np.concatenate((parts[0][0], parts[1][0])), np.concatenate((parts[0][1], parts[1][1]))
    dx, dy = x[first] - x[second], y[first] - y[second]
    squared = dx * dx + dy * dy
    near = np.flatnonzero(squared <= distance_m * distance_m)
    return order[first[near]], order[second[near]], squared[near]


def _ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """For each k every number of range(low[k], high[k]): as two columns, k and the number."""
    counts = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(low)), counts)
    ends = np.cumsum(counts)
    number = np.arange(len(owner)) + np.repeat(low - (ends - counts), counts)
    return owner, number


def _lists(n: int, a: Ints, b: Ints) -> list[list[int]]:
    """Sorted lists of neighbours from pairs."""
    small = np.int32 if n < 46_340 else np.int64  # n * n must fit; the smaller sorts faster
    keys = np.concatenate((a * n + b, b * n + a)).astype(small)
    keys.sort()
    flat = (keys % n).tolist() if n else []
    bounds = np.searchsorted(keys, np.arange(n + 1, dtype=small) * n).tolist()
    return [flat[low:high] for low, high in pairwise(bounds)]


class StillNeighbours:
    """Nodes that never move."""

    def __init__(self, points: Floats, range_m: float) -> None:
        a, b, _ = pairs_within(points, range_m)
        self._lists = _lists(len(points), a, b)

    def of(self, i: int, t: float) -> list[int]:
        return self._lists[i]


class MovingNeighbours:
    """Nodes on piecewise linear paths."""

    LONGEST_STRETCH = 0.5
    "A window is short enough that no pair closes in by more than this share of the range."

    def __init__(self, trajectories: Trajectories, range_m: float) -> None:
        self._trajectories = trajectories
        self._range_m = range_m
        self._closing_m_s = 2.0 * trajectories.max_speed_m_s
        self._jumps = [math.inf, *reversed(trajectories.jump_times.tolist())]
        self._longest_s = self.LONGEST_STRETCH * range_m / max(self._closing_m_s, 1.0)
        self._shortest_s = self._longest_s / 100
        self._length_s = self._shortest_s
        self._opened = self._asked = 0.0
        self._until = self._next_time = -math.inf
        self._lists: list[list[int]] = []
        self._times: list[float] = []
        "When the changes of this window come; ends with infinity."
        self._changes: list[tuple[int, int, bool]] = []
        self._next = 0

    def of(self, i: int, t: float) -> list[int]:
        if t >= self._next_time:
            self._advance(t)
        self._asked = t
        return self._lists[i]

    def _advance(self, t: float) -> None:
        idle_s, used_s = t - self._asked, self._asked - self._opened
        if idle_s > self._longest_s / 4:
            # A burst is over, and the next will be as short: changes in the idle time are nobody's concern.
            self._length_s = min(max(2.0 * used_s, self._shortest_s), self._longest_s)
            self._open_window(t)
        elif t >= self._until:
            self._length_s = min(2.0 * self._length_s, self._longest_s)
            self._open_window(t)
        times, changes, k = self._times, self._changes, self._next
        while times[k] <= t:
            a, b, comes = changes[k]
            self._change(a, b, comes)
            self._change(b, a, comes)
            k += 1
        self._next, self._next_time = k, min(times[k], self._until)

    def _change(self, a: int, b: int, comes: bool) -> None:
        near = self._lists[a].copy()  # whoever asked before keeps the old list
        if comes:
            insort(near, b)
        else:
            del near[bisect_left(near, b)]
        self._lists[a] = near

    def _open_window(self, start: float) -> None:
        """Find the pairs within range at `start`, and all changes until the window's end."""
        end = min(start + self._length_s, self._next_jump(start))
        closing_m = self._closing_m_s * (end - start) * (1 + 1e-9) + 1e-6
        points = self._trajectories.positions(start)
        a, b, squared = pairs_within(points, self._range_m + closing_m)
        # Only pairs near the border of the range can cross it before the window ends.
        crossing = squared > max(self._range_m - closing_m, 0.0) ** 2
        staying = ~crossing
        at_border_a, at_border_b = a[crossing], b[crossing]
        legs = self._trajectories.legs(start, end)
        pair, comes_at, goes_at = contacts(legs, at_border_a, at_border_b, self._range_m)
        there, comes, goes = pair[comes_at == start], comes_at > start, goes_at < end
        self._lists = _lists(
            len(points),
            np.concatenate((a[staying], at_border_a[there])),
            np.concatenate((b[staying], at_border_b[there])),
        )
        times = np.concatenate((comes_at[comes], goes_at[goes]))
        pair = np.concatenate((pair[comes], pair[goes]))
        coming = np.arange(len(times)) < np.count_nonzero(comes)
        order = np.lexsort((at_border_b[pair], at_border_a[pair], times))
        pair = pair[order]
        self._times = [*times[order].tolist(), math.inf]
        self._changes = list(
            zip(at_border_a[pair].tolist(), at_border_b[pair].tolist(), coming[order].tolist(), strict=True)
        )
        self._next, self._opened, self._until = 0, start, end

    def _next_jump(self, t: float) -> float:
        while self._jumps[-1] <= t:
            self._jumps.pop()
        return self._jumps[-1]


def contacts(legs: Legs, a: Ints, b: Ints, range_m: float) -> tuple[Ints, Floats, Floats]:
    """When the nodes a[p] and b[p] of each pair p are within range: columns pair, from, until, in order."""
    pair, leg_a, leg_b = _legs_side_by_side(legs, a, b)
    start = np.maximum(legs.start[leg_a], legs.start[leg_b])
    end = np.minimum(legs.end[leg_a], legs.end[leg_b])
    dx, vx = _difference(legs.x_m, legs.x_m_s, legs.start, leg_a, leg_b, start)
    dy, vy = _difference(legs.y_m, legs.y_m_s, legs.start, leg_a, leg_b, start)
    # |d + v s| = range, solved for s.
    speed2 = vx * vx + vy * vy
    approach = dx * vx + dy * vy
    beyond = dx * dx + dy * dy - range_m * range_m
    reached = approach * approach - speed2 * beyond
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(reached)
        comes_at = np.where(beyond <= 0, start, start + (-approach - root) / speed2)
        goes_at = start + (-approach + root) / speed2
    goes_at = np.where((speed2 == 0) & (beyond <= 0), end, np.minimum(goes_at, end))
    comes_at = np.maximum(comes_at, start)
    within = (comes_at < goes_at) & (reached >= 0)
    pair, comes_at, goes_at = pair[within], comes_at[within], goes_at[within]
    # Where one leg ends in range and the next begins there, it is one contact.
    goes_on = (pair[1:] == pair[:-1]) & (comes_at[1:] == goes_at[:-1])
    first, last = np.append(True, ~goes_on), np.append(~goes_on, True)
    if not len(pair):
        return pair, comes_at, goes_at
    return pair[first], comes_at[first], goes_at[last]


def _legs_side_by_side(legs: Legs, a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """Columns pair, leg of a[pair], leg of b[pair]: all that share some time, in order of time."""
    nodes = int(legs.node[-1]) + 1 if len(legs.node) else 0
    if len(legs.node) == nodes:
        return np.arange(len(a)), a, b
    counts = np.bincount(legs.node, minlength=nodes)
    first = np.cumsum(counts) - counts
    pair, k = _ranges(np.zeros(len(a), dtype=np.int64), counts[a] * counts[b])
    of_b = counts[b][pair]
    leg_a, leg_b = first[a][pair] + k // of_b, first[b][pair] + k % of_b
    shared = np.maximum(legs.start[leg_a], legs.start[leg_b]) < np.minimum(legs.end[leg_a], legs.end[leg_b])
    return pair[shared], leg_a[shared], leg_b[shared]


def _difference(at: Floats, speed: Floats, since: Floats, a: Ints, b: Ints, t: Floats) -> tuple[Floats, Floats]:
    """Along one axis: a's place and speed less b's, at t."""
    at_a, at_b = at[a] + speed[a] * (t - since[a]), at[b] + speed[b] * (t - since[b])
    return at_a - at_b, speed[a] - speed[b]
