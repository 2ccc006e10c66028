"""Who is within range of whom, in numpy: pairs in one time slice, and runs of pairs over slices.

Pairs come from a grid of cells at least as wide as the range: a node's partners stand in its own
cell or the eight around it, never further. Many slices are searched at once (the slice is one more
coordinate of the cell), so there is no loop over them in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROWS_AT_ONCE = 32_768
"Small enough to stay in the processor's cache, large enough for numpy."
CANDIDATES_AT_ONCE = 2_000_000
WIDEST_GRID = 1_000_000
"Cells along one side: more would overflow the cell's number, so cells grow instead."


class Runs(NamedTuple):
    """One row a run: a and b within range at every slice from `first` to `last`."""

    a: Ints
    b: Ints
    first: Ints
    last: Ints


def pairs_within(slices: Ints, x: Floats, y: Floats, range_m: float) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of rows of one slice at most `range_m` apart, each pair once, in portions.

    `slices` must not decrease: the rows stand in order of time.
    """
    start, count = 0, len(slices)
    while start < count:
        end = min(start + ROWS_AT_ONCE, count)
        if end < count:  # a slice is searched as a whole
            end = int(np.searchsorted(slices, slices[end - 1], side="right"))
        chunk = slice(start, end)
        for i, j in _pairs_in_chunk(slices[chunk] - slices[start], x[chunk], y[chunk], range_m):
            yield i + start, j + start
        start = end


def _pairs_in_chunk(slices: Ints, x: Floats, y: Floats, range_m: float) -> Iterator[tuple[Ints, Ints]]:
    left, low = float(x.min()), float(y.min())
    cell_m = max(range_m, (float(x.max()) - left) / WIDEST_GRID, (float(y.max()) - low) / WIDEST_GRID)
    column = np.floor((x - left) / cell_m).astype(np.int64) + 1
    row = np.floor((y - low) / cell_m).astype(np.int64) + 1
    width, height = int(column.max()) + 2, int(row.max()) + 2  # an empty border: no neighbour wraps round
    cell = (slices * height + row) * width + column
    order = np.argsort(cell, kind="stable")
    cell, x, y = cell[order], x[order], y[order]
    here = np.arange(len(cell))
    # Cells of one row of the grid have consecutive numbers: what is left of a node's neighbourhood is
    # two stretches, the rest of its own cell with the next one, and three cells of the row above.
    ahead = np.searchsorted(cell, cell + 1, side="right")
    above_from = np.searchsorted(cell, cell + (width - 1), side="left")
    above_to = np.searchsorted(cell, cell + (width + 1), side="right")
    for begin, end in ((here + 1, ahead), (above_from, above_to)):
        for i, j in _stretches(begin, end):
            dx, dy = x[i] - x[j], y[i] - y[j]
            near = np.flatnonzero(dx * dx + dy * dy <= range_m * range_m)
            yield order[i[near]], order[j[near]]


def _stretches(begin: Ints, end: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Every i with every j from begin[i] to end[i], some millions at a time."""
    counts = end - begin
    totals = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(totals[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(totals, done + CANDIDATES_AT_ONCE, side="right")))
        part = counts[start:stop]
        i = np.repeat(np.arange(start, stop), part)
        j = np.arange(len(i)) + np.repeat(begin[start:stop] - (totals[start:stop] - part - done), part)
        yield i, j
        start = stop


def runs_of_pairs(slices: Ints, nodes: Ints, x: Floats, y: Floats, range_m: float, times: Floats, gap_s: float) -> Runs:
    """Runs of slices in which two nodes stay within range, no two of its slices more than `gap_s` apart.

    Rows stand in order of `slices`, which number the entries of `times`. a < b in every run.
    """
    # One number a meeting, (a, b, slice) from its high bits to its low ones: sorting it sorts them all.
    slice_bits = max(1, int(len(times) - 1).bit_length())
    node_bits = max(1, int(nodes.max()).bit_length()) if len(nodes) else 1
    keys: list[Ints] = []
    for i, j in pairs_within(slices, x, y, range_m):
        a, b = nodes[i], nodes[j]
        key = (((np.minimum(a, b) << node_bits) | np.maximum(a, b)) << slice_bits) | slices[i]
        other = a != b  # a node seen twice in one slice is not its own company
        keys.append(key if other.all() else key[other])
    met = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    met.sort()
    at = met & ((1 << slice_bits) - 1)
    when = times[at]
    parted = np.ones(len(met), dtype=bool)
    parted[1:] = (met[1:] >> slice_bits != met[:-1] >> slice_bits) | (when[1:] - when[:-1] > gap_s)
    first = np.flatnonzero(parted)
    last = np.append(first[1:], len(met)) - 1 if len(met) else first
    pair = met[first] >> slice_bits
    return Runs(pair >> node_bits, pair & ((1 << node_bits) - 1), at[first], at[last])
