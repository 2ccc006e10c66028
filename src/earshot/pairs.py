"""Pairs of points within range, found with a grid of cells and never by trying all pairs; and from when until when two
moving points are within range.

A point's partners lie in its own cell or the eight around it. The simulator asks for the pairs of one
moment; the pipeline asks for many moments at once, with the moment as a third coordinate of the cell.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CANDIDATES_AT_ONCE = 2_000_000
"At most this many candidate pairs are in memory while their distances are computed."
WIDEST_GRID = 1_000_000
"The most cells along one side: more would overflow the cell numbers, so cells get larger instead."


def pairs_within(x_m: Floats, y_m: Floats, range_m: float, slices: Ints | None = None) -> tuple[Ints, Ints, Floats]:
    """All pairs of points at most `range_m` apart, each once, and their squared distances.

    With `slices` (numbers from 0), only pairs whose points have the same number.
    """
    n = len(x_m)
    if n < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    left, low_m = np.minimum.reduce(x_m), np.minimum.reduce(y_m)
    widest_m = max(np.maximum.reduce(x_m) - left, np.maximum.reduce(y_m) - low_m)
    cell_m = max(range_m, float(widest_m) / WIDEST_GRID)
    column = ((x_m - left) / cell_m).astype(np.int64)
    row = ((y_m - low_m) / cell_m).astype(np.int64)
    rows = int(np.maximum.reduce(row)) + 3  # empty cells at the border, so that neighbours do not wrap around
    if slices is not None:
        column += slices * (int(np.maximum.reduce(column)) + 2)
    cell = column * rows + row
    order = stable_order(cell)
    cell, x, y = cell[order], x_m[order], y_m[order]
    # Partners of a point come later in its own cell, in the cell above, and in the three cells to the right.
    own, low, high = (np.empty(2 * n, dtype=np.int64) for _ in range(3))
    own[:n] = own[n:] = np.arange(n)
    low[:n] = own[:n] + 1
    high[:n] = cell.searchsorted(cell + 1, "right")
    low[n:] = cell.searchsorted(cell + (rows - 1), "left")
    high[n:] = cell.searchsorted(cell + (rows + 1), "right")
    found = []
    for part in _parts(high - low):
        first, second = index_ranges(own[part], low[part], high[part])
        dx, dy = x[first] - x[second], y[first] - y[second]
        squared = dx * dx + dy * dy
        near = (squared <= range_m * range_m).nonzero()[0]
        found.append((order[first[near]], order[second[near]], squared[near]))
    if len(found) == 1:
        return found[0]
    a, b, distances = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return a, b, distances


def _parts(counts: Ints) -> list[slice]:
    """Slices of the counts, each with a sum of at most CANDIDATES_AT_ONCE, or with one larger count."""
    totals = np.maximum(counts, 0).cumsum()
    if totals[-1] <= CANDIDATES_AT_ONCE:
        return [slice(0, len(counts))]
    parts, start, done = [], 0, 0
    while start < len(counts):
        stop = max(start + 1, int(totals.searchsorted(done + CANDIDATES_AT_ONCE, side="right")))
        parts.append(slice(start, stop))
        start, done = stop, int(totals[stop - 1])
    return parts


def index_ranges(own: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """All numbers in range(low[k], high[k]) for each k, as two columns: own[k] and the number. A range with
    low >= high is empty."""
    counts = np.maximum(high - low, 0)
    number = (low - counts.cumsum() + counts).repeat(counts)
    number += np.arange(len(number))
    return own.repeat(counts), number


def stable_order(keys: Ints) -> Ints:
    """The stable order of numbers from 0. NumPy sorts 16 bits at a time without comparing, five times as fast."""
    order = (keys & 0xFFFF).astype(np.uint16).argsort(kind="stable")
    highest, shift = int(keys.max(initial=0)), 16
    while highest >> shift:
        digit = ((keys >> shift) & 0xFFFF).astype(np.uint16)
        order = order[digit[order].argsort(kind="stable")]
        shift += 16
    return order


def times_within(
    dx_m: Floats, dy_m: Floats, dx_m_s: Floats, dy_m_s: Floats, start: Floats, end: Floats, range_m: float
) -> tuple[npt.NDArray[np.bool_], Floats, Floats]:
    """When two points in straight and even motion are within range, both ends included. They are (dx, dy) apart at
    `start`, and that changes at a constant rate until `end`. Returns whether they are within range at all, from when
    and until when."""
    # |d + v s| = range, solved for s.
    speed2 = dx_m_s * dx_m_s + dy_m_s * dy_m_s
    approach = dx_m * dx_m_s + dy_m * dy_m_s
    beyond = dx_m * dx_m + dy_m * dy_m - range_m * range_m
    reached = approach * approach - speed2 * beyond
    still = speed2 == 0
    speed2[still] = 1.0
    root = np.sqrt(np.maximum(reached, 0.0))
    comes = np.where(beyond <= 0, start, np.maximum(start + (-approach - root) / speed2, start))
    goes = np.where(still, end, np.minimum(start + (-approach + root) / speed2, end))
    # Within range at the start it stays so for that moment, whatever the rounding of the root.
    goes = np.where(beyond <= 0, np.maximum(goes, start), goes)
    return (comes <= goes) & (reached >= 0) & ~(still & (beyond > 0)), comes, goes
