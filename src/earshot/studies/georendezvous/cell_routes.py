"""Many routes at once over one static network: the steps of `cells.step`, as array operations.

The study needs the lengths of millions of routes; this gives exactly the hops and the home cells that
machines on the same network would find, which tests check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from earshot.errors import GeometryError
from earshot.protocols.georendezvous.cells import DIRECTIONS, NEXT_EDGE, PLANAR, SURE_OFFSETS, Cell, CellGrid

Cells = npt.NDArray[np.int64]
"An array of cells, one per row: column and row."
Counts = npt.NDArray[np.int64]

_CHUNK: Final = 1024
"Routes that are computed together: few enough for their arrays to stay in a core's cache."

_OFFSETS: Final = np.array(DIRECTIONS, dtype=np.int64)
_EAST, _NORTH = _OFFSETS.T.copy()
_PLANAR: Final = np.array(PLANAR, dtype=np.int64)
_NEXT_EDGE: Final = np.array(NEXT_EDGE, dtype=np.int64)
_BITS: Final = 1 << np.arange(8, dtype=np.int64)
_PRESENT: Final = -(np.arange(256, dtype=np.int64) >> np.arange(8, dtype=np.int64)[:, None] & 1)
"For each direction and neighbourhood: all bits set where there is a neighbour, otherwise none."
_EARLIER: Final = {offset: place - 4 for place, offset in enumerate(sorted((*DIRECTIONS, (0, 0))))}
_SCORES: Final = [(16 * (dx * dx + dy * dy) + _EARLIER[dx, dy], -32 * dx, -32 * dy) for dx, dy in DIRECTIONS]
"""(a, b, c) for each direction: a + b * east + c * north orders the neighbours as `cells.rank` does, for a
target at that offset in cells; the cell itself scores 0."""
_CONSTANT, _BY_EAST, _BY_NORTH = 8 * np.array(_SCORES, dtype=np.int64).T[:, :, None]
_CONSTANT[:, 0] += np.arange(8)
_NEVER: Final = np.iinfo(np.int64).max


def cells_of(positions: npt.NDArray[np.float64], grid: CellGrid) -> Cells:
    """The cell of each position (rows of x and y in metres), as `CellGrid.cell_of` gives it."""
    origin = np.array([grid.origin.x_m, grid.origin.y_m])
    cells: Cells = np.floor((positions - origin) / grid.side_m).astype(np.int64)
    return cells


@dataclass(frozen=True)
class CellGraph:
    """The populated cells of a static network. `populated` has no cell twice and is sorted."""

    populated: Cells

    @classmethod
    def of(cls, cells: Cells | Iterable[Cell]) -> CellGraph:
        """The graph of these cells; a cell may come once for each node in it."""
        rows = cells if isinstance(cells, np.ndarray) else np.array(sorted(cells), dtype=np.int64).reshape(-1, 2)
        if len(rows) == 0:
            raise GeometryError("a cell graph needs at least one populated cell")
        return cls(np.unique(rows, axis=0))

    def __len__(self) -> int:
        return len(self.populated)

    @cached_property
    def _corner(self) -> Cells:
        """One cell south-west of everything: the table below has an empty border on all sides."""
        corner: Cells = self.populated.min(axis=0) - 1
        return corner

    @cached_property
    def _rows(self) -> int:
        return int(self.populated[:, 1].max() - self._corner[1]) + 2

    def _index(self, cells: Cells) -> Counts:
        """The place of a cell in the table: in the order of column and row."""
        index: Counts = (cells[:, 0] - self._corner[0]) * self._rows + cells[:, 1] - self._corner[1]
        return index

    def _cell(self, index: Counts) -> Cells:
        return np.stack((index // self._rows, index % self._rows), axis=1) + self._corner

    @cached_property
    def _moves(self) -> Counts:
        """What each direction adds to an index."""
        moves: Counts = _OFFSETS[:, 0] * self._rows + _OFFSETS[:, 1]
        return moves

    @cached_property
    def _neighbours(self) -> Counts:
        """The neighbourhood of each place in the table; -1 where the cell is empty."""
        columns = int(self.populated[:, 0].max() - self._corner[0]) + 2
        here = self._index(self.populated)
        full = np.zeros(columns * self._rows, dtype=np.int64)
        full[here] = 1
        table = np.full_like(full, -1)
        table[here] = (full[here[:, None] + self._moves] * _BITS).sum(axis=1)
        return table

    def contains(self, cells: Cells) -> npt.NDArray[np.bool_]:
        """Which of these cells are populated."""
        low, high = self._corner, self.populated.max(axis=0)
        inside = ((cells > low) & (cells <= high)).all(axis=1)
        found = np.zeros(len(cells), dtype=np.bool_)
        found[inside] = self._neighbours[self._index(cells[inside])] >= 0
        return found

    def components(self) -> Counts:
        """Which part of the network each populated cell belongs to, the largest part first (0)."""
        here = self._index(self.populated)
        number = np.full(len(self._neighbours), -1)
        number[here] = np.arange(len(here))
        around = number[here[:, None] + self._moves]
        cell, direction = np.nonzero(around >= 0)
        links = csr_matrix((np.ones(len(cell)), (cell, around[cell, direction])), shape=(len(here), len(here)))
        _, part = connected_components(links, directed=False)
        largest_first = np.argsort(-np.bincount(part), kind="stable")
        by_size: Counts = np.argsort(largest_first)[part]
        return by_size

    def largest_part(self) -> CellGraph:
        """The largest connected part of the network."""
        return CellGraph(self.populated[self.components() == 0])

    def routes(self, starts: Cells, targets: Cells) -> tuple[Counts, Cells]:
        """Hops from each start (a populated cell) to its target's home cell, and that home cell."""
        if len(starts) != len(targets):
            raise GeometryError(f"each start needs one target, got {len(starts)} and {len(targets)}")
        if not self.contains(starts).all():
            raise GeometryError("a route starts at a populated cell; at least one of these starts is empty")
        hops = np.empty(len(starts), dtype=np.int64)
        homes = np.empty((len(starts), 2), dtype=np.int64)
        for begin in range(0, len(starts), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            hops[part], homes[part] = self._routes(starts[part], targets[part])
        return hops, homes

    def _routes(self, starts: Cells, targets: Cells) -> tuple[Counts, Cells]:
        """`cells.step` for all routes at once; routes that have arrived are removed."""
        hops = np.zeros(len(starts), dtype=np.int64)
        homes = self._index(starts)
        table, moves, places = self._neighbours, self._moves, len(self._neighbours)
        route = np.arange(len(starts))
        at = homes.copy()
        east, north = (targets - starts).T.copy()
        entry = np.full(len(starts), _NEVER)
        first = np.zeros(len(starts), dtype=np.int64)
        came_from = np.zeros(len(starts), dtype=np.int64)
        taken = 0
        while len(route):
            neighbours = table[at]
            ranks = (east * east + north * north) * places + at
            walking = ranks >= entry
            onward = _greedy(neighbours, east, north)
            stuck = (onward < 0) & ~walking
            entry = np.where(walking, entry, np.where(stuck, ranks, _NEVER))
            arrived = np.zeros(len(route), dtype=np.bool_)
            if walking.any():
                onward[walking] = _NEXT_EDGE[_PLANAR[neighbours[walking]], came_from[walking]]
                arrived = walking & (ranks == entry) & (onward == first)
            if stuck.any():
                sectors = _sector(east[stuck], north[stuck])
                onward[stuck] = first[stuck] = _NEXT_EDGE[_PLANAR[neighbours[stuck]], sectors]
                sure = ((east == 0) & (north == 0)) | (onward < 0)
                for offset in SURE_OFFSETS:
                    sure |= (east == offset[0]) & (north == offset[1])
                arrived |= stuck & sure
            if arrived.any():
                homes[route[arrived]] = at[arrived]
                hops[route[arrived]] = taken
                left = ~arrived
                route, at, onward = route[left], at[left], onward[left]
                east, north, entry, first = east[left], north[left], entry[left], first[left]
            taken += 1
            at = at + moves[onward]
            east = east - _EAST[onward]
            north = north - _NORTH[onward]
            came_from = (onward + 4) % 8
        return hops, self._cell(homes)


def _greedy(neighbours: Counts, east: Counts, north: Counts) -> Counts:
    """`cells.greedy_direction` for all: the least score below 0; the last bits of a score hold its direction."""
    scores = _BY_EAST * east
    scores += _BY_NORTH * north
    scores += _CONSTANT
    scores &= _PRESENT.take(neighbours, axis=1)
    least = scores.min(axis=0)
    return np.where(least < 0, least & 7, -1)


def _sector(east: Counts, north: Counts) -> Counts:
    """`cells.sector` for all."""
    upper = np.where(east > 0, np.where(north < east, 0, 1), np.where(-east < north, 2, 3))
    lower = np.where(east < 0, np.where(north > east, 4, 5), np.where(east < -north, 6, 7))
    return np.where((north > 0) | ((north == 0) & (east > 0)), upper, lower)
