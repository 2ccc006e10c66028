"""Square cells and routes from cell to cell: the geometry under Cell Hash Routing, without nodes or packets.

A populated cell is one virtual node at its centre; its neighbours are the populated ones of the
eight cells around it. A neighbourhood is eight bits, one per direction, counter-clockwise from east.

`rank` orders all cells by their distance from the target, ties broken by column and row, so one populated
cell ranks first: the home cell. Routing always ends there; the proof is in docs/papers/georendezvous.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from earshot.errors import SettingsError
from earshot.geometry import ORIGIN, Position
from earshot.wire import Whole

Cell = tuple[Whole, Whole]
"Column and row, counted from the grid's origin."

DIRECTIONS: Final[tuple[Cell, ...]] = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
"The eight neighbours, counter-clockwise from east; even ones share a side, odd ones a corner."

_DIRECTION_OF: Final = {offset: direction for direction, offset in enumerate(DIRECTIONS)}
HOME: Final = -1
"The direction of a packet that has arrived."


def largest_side_m(range_m: float) -> float:
    """The largest side at which any node hears every node of the eight neighbouring cells."""
    return range_m / (2 * math.sqrt(2))


@dataclass(frozen=True, slots=True)
class CellGrid:
    """The cells that all nodes agree on, by their size and one origin."""

    side_m: float
    origin: Position = ORIGIN

    def __post_init__(self) -> None:
        if not (math.isfinite(self.side_m) and self.side_m > 0):
            raise SettingsError(f"a cell's side must be a positive number of metres, got {self.side_m}")

    def cell_of(self, position: Position) -> Cell:
        """The cell around this position; its west and south borders belong to it."""
        return (
            math.floor((position.x_m - self.origin.x_m) / self.side_m),
            math.floor((position.y_m - self.origin.y_m) / self.side_m),
        )

    def centre(self, cell: Cell) -> Position:
        """Where the cell's virtual node stands."""
        return self.origin.moved((cell[0] + 0.5) * self.side_m, (cell[1] + 0.5) * self.side_m)


def rank(cell: Cell, target: Cell) -> tuple[int, int, int]:
    """How close the cell is to the target: squared distance in cells, then column and row."""
    return (cell[0] - target[0]) ** 2 + (cell[1] - target[1]) ** 2, cell[0], cell[1]


def towards(cell: Cell, direction: int) -> Cell:
    """The neighbouring cell in that direction."""
    dx, dy = DIRECTIONS[direction]
    return cell[0] + dx, cell[1] + dy


def direction_to(cell: Cell, neighbour: Cell) -> int | None:
    """The direction of a neighbouring cell; None where it is not one of the eight."""
    return _DIRECTION_OF.get((neighbour[0] - cell[0], neighbour[1] - cell[1]))


def adjacent(a: Cell, b: Cell) -> bool:
    """Whether the two are the same cell, or neighbours."""
    return a == b or direction_to(a, b) is not None


def cells_apart(a: Cell, b: Cell) -> int:
    """How many cells lie from one to the other, along the longer side: 1 for neighbours."""
    return max(abs(a[0] - b[0]), abs(a[1] - b[1]))


def neighbourhood(cell: Cell, populated: Collection[Cell]) -> int:
    """The populated neighbours, one bit per direction."""
    return sum(1 << direction for direction in range(8) if towards(cell, direction) in populated)


def _planar(neighbours: int) -> int:
    kept = neighbours & 0b01010101
    for diagonal in (1, 3, 5, 7):
        corners = 1 << (diagonal - 1) | 1 << ((diagonal + 1) % 8)
        if neighbours >> diagonal & 1 and not neighbours & corners:
            kept |= 1 << diagonal
    return kept


def _next_edge(edges: int, after: int) -> int:
    turns = ((after + turn) % 8 for turn in range(1, 9))
    return next((direction for direction in turns if edges >> direction & 1), HOME)


PLANAR: Final[tuple[int, ...]] = tuple(_planar(neighbours) for neighbours in range(256))
"The neighbours that a cell keeps in the planar graph; both ends of an edge decide the same."

NEXT_EDGE: Final[tuple[tuple[int, ...], ...]] = tuple(
    tuple(_next_edge(edges, after) for after in range(8)) for edges in range(256)
)
"The right-hand rule: the first edge counter-clockwise after a direction, that direction itself last."


def greedy_direction(cell: Cell, neighbours: int, target: Cell) -> int:
    """The neighbour closest to the target, if it is closer than the cell itself; otherwise HOME."""
    best, least = HOME, rank(cell, target)
    for direction in range(8):
        if neighbours >> direction & 1 and (closer := rank(towards(cell, direction), target)) < least:
            best, least = direction, closer
    return best


def sector(east: int, north: int) -> int:
    """The direction at, or the last one clockwise of, the line to a point at that offset."""
    if north > 0 or (north == 0 and east > 0):
        if east > 0:
            return 0 if north < east else 1
        return 2 if -east < north else 3
    if east < 0:
        return 4 if north > east else 5
    return 6 if east < -north else 7


SURE_OFFSETS: Final = ((1, 0), (0, 1))
"""Where the target lies from a cell that is home if it is a local minimum (footnote 1): every cell that
would rank before it is one of its own neighbours, so it need not walk the home perimeter."""


class Perimeter(NamedTuple):
    """Perimeter mode: the local minimum where it began, and the first edge taken there."""

    entry: Cell
    first: int


def step(
    cell: Cell, neighbours: int, target: Cell, perimeter: Perimeter | None, came_from: int
) -> tuple[int, Perimeter | None]:
    """One routing decision: the direction to go on (HOME: the packet has arrived) and the mode to go in.

    `came_from` is the direction of the cell the packet came from; only perimeter mode reads it.
    """
    if perimeter is not None and rank(cell, target) >= rank(perimeter.entry, target):
        onward = NEXT_EDGE[PLANAR[neighbours]][came_from]
        if cell == perimeter.entry and _passes(came_from, onward, perimeter.first):
            return HOME, None
        return onward, perimeter
    onward = greedy_direction(cell, neighbours, target)
    if onward != HOME:
        return onward, None
    east, north = target[0] - cell[0], target[1] - cell[1]
    if cell == target or (east, north) in SURE_OFFSETS:
        return HOME, None
    first = NEXT_EDGE[PLANAR[neighbours]][sector(east, north)]
    return first, None if first == HOME else Perimeter(cell, first)


def _passes(start: int, end: int, edge: int) -> bool:
    """Whether a counter-clockwise turn from `start` to `end` reaches or passes over the edge.

    On a static graph it reaches it; an edge that has gone since is passed over.
    """
    return (edge - start - 1) % 8 <= (end - start - 1) % 8


def route(start: Cell, target: Cell, populated: Collection[Cell]) -> list[Cell]:
    """The cells a packet passes, from its first to the target's home cell, on a static cell graph."""
    path = [start]
    perimeter: Perimeter | None = None
    came_from = 0
    while True:
        cell = path[-1]
        direction, perimeter = step(cell, neighbourhood(cell, populated), target, perimeter, came_from)
        if direction == HOME:
            return path
        path.append(towards(cell, direction))
        came_from = (direction + 4) % 8
