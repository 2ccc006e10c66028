"""Neighbours: which nodes are within range of each other, exactly, at any time, without testing all pairs.

Nodes that stand still get their lists once, from a grid. For nodes that move the index works in
windows of time: a grid gives the pairs that can come within range during the window, and where
two straight legs of their paths run side by side a quadratic gives the times at which the pair
comes within range and leaves it. A query then applies what has changed up to its time. Windows
start where they are asked for, grow or shrink with how long they are used, and end at a jump.

Query times never decrease, like the simulation's clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Hashable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from earshot.pairs import index_ranges, pairs_within, times_within
from earshot.records.trajectories import Legs, Trajectories

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Neighbours(Protocol):
    """Which nodes hear which."""

    def of(self, i: int, t: float) -> list[int]:
        """The nodes that node i reaches at time t, in order. Callers must not change the list."""
        ...

    def version(self, t: float) -> Hashable:
        """Another value whenever a list has changed."""
        ...


def neighbours_within(trajectories: Trajectories, range_m: float) -> Neighbours:
    """The neighbours of these nodes at this range."""
    if trajectories.static:
        x, y = trajectories.positions(0.0).T
        a, b, _ = pairs_within(x, y, range_m)
        return FixedNeighbours(_lists(len(x), a, b))
    return MovingNeighbours(trajectories, range_m)


def _lists(n: int, a: Ints, b: Ints) -> list[list[int]]:
    """Sorted lists of neighbours from pairs."""
    bits = n.bit_length()
    # One number a direction, node above neighbour; smaller types sort faster, 16 bits without comparing.
    keys: npt.NDArray[Any] = np.empty(2 * len(a), dtype=np.uint16 if bits <= 8 else np.int32 if bits < 16 else np.int64)
    keys[: len(a)] = (a << bits) | b
    keys[len(a) :] = (b << bits) | a
    keys.sort(kind="stable" if bits <= 8 else None)
    bounds = [0, *np.bincount(keys >> bits, minlength=n).cumsum().tolist()]
    flat = (keys & ((1 << bits) - 1)).tolist()
    return [flat[low:high] for low, high in pairwise(bounds)]


class FixedNeighbours:
    """Lists of neighbours that never change."""

    def __init__(self, lists: list[list[int]]) -> None:
        self._lists = lists

    def of(self, i: int, t: float) -> list[int]:
        return self._lists[i]

    def version(self, t: float) -> Hashable:
        return 0


class MovingNeighbours:
    """Nodes on piecewise linear paths."""

    LONGEST_STRETCH = 0.5
    "A window is short enough that no pair closes in by more than this share of the range."

    def __init__(self, trajectories: Trajectories, range_m: float) -> None:
        self._trajectories = trajectories
        self._nodes = len(trajectories)
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
        self._next = self._version = 0

    def of(self, i: int, t: float) -> list[int]:
        if t >= self._next_time:
            self._advance(t)
        self._asked = t
        return self._lists[i]

    def version(self, t: float) -> Hashable:
        if t >= self._next_time:
            self._advance(t)
        self._asked = t
        return self._version

    def _advance(self, t: float) -> None:
        idle_s, used_s = t - self._asked, self._asked - self._opened
        if idle_s > self._longest_s / 4:
            # A burst of queries is over; the next one will be as short. No query is about the idle time between.
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
        self._version += 1

    def _change(self, a: int, b: int, comes: bool) -> None:
        near = self._lists[a].copy()  # earlier callers keep the old list
        if comes:
            insort(near, b)
        else:
            del near[bisect_left(near, b)]
        self._lists[a] = near

    def _open_window(self, start: float) -> None:
        """Find the pairs within range at `start`, and all changes until the window's end."""
        end = min(start + self._length_s, self._next_jump(start))
        closing_m = self._closing_m_s * (end - start) * (1 + 1e-9) + 1e-6
        legs = self._trajectories.legs(start, end)
        x, y = legs.x_m, legs.y_m
        if len(x) > self._nodes:
            first = np.diff(legs.node, prepend=-1).nonzero()[0]
            x, y = x[first], y[first]
        a, b, squared = pairs_within(x, y, self._range_m + closing_m)
        # Only pairs near the border of the range can cross it before the window ends.
        crossing = squared > max(self._range_m - closing_m, 0.0) ** 2
        border = crossing.nonzero()[0]
        border_a, border_b = a[border], b[border]
        pair, comes_at, goes_at = contacts(legs, self._nodes, border_a, border_b, self._range_m)
        comes, goes = comes_at > start, goes_at < end
        crossing[border[pair[~comes]]] = False
        within = ~crossing
        self._lists = _lists(self._nodes, a[within], b[within])
        times = np.concatenate((comes_at[comes], goes_at[goes]))
        pair = np.concatenate((pair[comes], pair[goes]))
        coming = np.arange(len(times)) < np.count_nonzero(comes)
        border_a, border_b = border_a[pair], border_b[pair]
        order = np.lexsort((border_b, border_a, times))
        self._times = [*times[order].tolist(), math.inf]
        self._changes = list(
            zip(border_a[order].tolist(), border_b[order].tolist(), coming[order].tolist(), strict=True)
        )
        self._next, self._opened, self._until = 0, start, end

    def _next_jump(self, t: float) -> float:
        while self._jumps[-1] <= t:
            self._jumps.pop()
        return float(self._jumps[-1])


def contacts(legs: Legs, nodes: int, a: Ints, b: Ints, range_m: float) -> tuple[Ints, Floats, Floats]:
    """When the nodes a[p] and b[p] of each pair p are within range: columns pair, from, until, in order."""
    if len(legs.node) == nodes:
        pair, start, end = np.arange(len(a)), legs.start[a], legs.end[a]
        dx, dy = legs.x_m[a] - legs.x_m[b], legs.y_m[a] - legs.y_m[b]
        vx, vy = legs.x_m_s[a] - legs.x_m_s[b], legs.y_m_s[a] - legs.y_m_s[b]
    else:
        pair, start, end, leg_a, leg_b = _legs_side_by_side(legs, nodes, a, b)
        dx, vx = _difference(legs.x_m, legs.x_m_s, legs.start, leg_a, leg_b, start)
        dy, vy = _difference(legs.y_m, legs.y_m_s, legs.start, leg_a, leg_b, start)
    within, comes_at, goes_at = times_within(dx, dy, vx, vy, start, end, range_m)
    within &= comes_at < goes_at
    pair, comes_at, goes_at = pair[within], comes_at[within], goes_at[within]
    if len(legs.node) == nodes:
        return pair, comes_at, goes_at
    # Where one leg ends in range and the next begins there, it is one contact.
    breaks = (pair[1:] != pair[:-1]) | (comes_at[1:] != goes_at[:-1])
    edge = np.ones(min(len(pair), 1), dtype=bool)
    first, last = np.concatenate((edge, breaks)), np.concatenate((breaks, edge))
    return pair[first], comes_at[first], goes_at[last]


def _legs_side_by_side(legs: Legs, nodes: int, a: Ints, b: Ints) -> tuple[Ints, Floats, Floats, Ints, Ints]:
    """Columns pair, from, until, leg of a[pair], leg of b[pair]: all legs that share some time, in order of time."""
    counts = np.bincount(legs.node, minlength=nodes)
    first = np.cumsum(counts) - counts
    combinations = counts[a] * counts[b]
    pair, k = index_ranges(np.arange(len(a)), np.zeros_like(combinations), combinations)
    of_b = counts[b][pair]
    leg_a, leg_b = first[a][pair] + k // of_b, first[b][pair] + k % of_b
    start = np.maximum(legs.start[leg_a], legs.start[leg_b])
    end = np.minimum(legs.end[leg_a], legs.end[leg_b])
    shared = start < end
    return pair[shared], start[shared], end[shared], leg_a[shared], leg_b[shared]


def _difference(at: Floats, speed: Floats, since: Floats, a: Ints, b: Ints, t: Floats) -> tuple[Floats, Floats]:
    """Along one axis: the difference of place and of speed between a and b, at t."""
    at_a, at_b = at[a] + speed[a] * (t - since[a]), at[b] + speed[b] * (t - since[b])
    return at_a - at_b, speed[a] - speed[b]
