"""Still networks as GeoRendezvous' evaluation draws them: nodes spread evenly over a square, with a given
average number of neighbours, and the hops that cell routing takes between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from earshot.geometry import Position
from earshot.protocols.georendezvous.cells import Cell, CellGrid, largest_side_m
from earshot.protocols.georendezvous.settings import rendezvous_point
from earshot.studies.georendezvous.cell_routes import CellGraph, Cells, Counts, cells_of

Points = npt.NDArray[np.float64]
"One row per point: x and y in metres."
RANGE_M = 100.0
DEGREE = 45.0


def range_share(nodes: int, degree: float = DEGREE) -> float:
    """The range, as a share of the square's side, that gives nodes this average number of neighbours.

    Two even draws from a unit square lie within r <= 1 of each other with the probability
    pi r^2 - 8/3 r^3 + r^4 / 2, which counts the borders, unlike a plain density.
    """
    wanted = min(degree / (nodes - 1), 0.97)
    low, high = 0.0, 1.0
    for _ in range(60):
        r = (low + high) / 2
        if math.pi * r**2 - 8 / 3 * r**3 + r**4 / 2 < wanted:
            low = r
        else:
            high = r
    return (low + high) / 2


@dataclass(frozen=True)
class StillNetwork:
    """Nodes that stay where they are. Those outside the largest part of the cell graph are left out:
    nothing is routed to or from them."""

    side_m: float
    positions: Points
    left_out: int
    grid: ClassVar[CellGrid] = CellGrid(largest_side_m(RANGE_M))

    @cached_property
    def cells(self) -> Cells:
        """The cell of each node."""
        return cells_of(self.positions, self.grid)

    @cached_property
    def graph(self) -> CellGraph:
        return CellGraph.of(self.cells)

    @cached_property
    def members(self) -> dict[Cell, list[int]]:
        """The nodes in each populated cell."""
        members: dict[Cell, list[int]] = {}
        for node, (column, row) in enumerate(self.cells.tolist()):
            members.setdefault((column, row), []).append(node)
        return members

    def __len__(self) -> int:
        return len(self.positions)

    def points(self, topic: str, count: int) -> Points:
        """The topic's rendezvous points, as the protocol hashes them."""
        origin = Position(0.0, 0.0)
        found = [rendezvous_point(topic, index, origin, self.side_m, self.side_m) for index in range(count)]
        return np.array([(point.x_m, point.y_m) for point in found])

    def homes(self, points: Points) -> Cells:
        """The home cell of each point."""
        anywhere = np.repeat(self.graph.populated[:1], len(points), axis=0)
        _, homes = self.graph.routes(anywhere, cells_of(points, self.grid))
        return homes

    def hops(self, starts: Cells, targets: Cells) -> Counts:
        """Hops from cell to populated cell."""
        hops, _ = self.graph.routes(starts, targets)
        return hops

    def direct_hops(self, publishers: Counts, subscribers: Counts) -> Counts:
        """Hops between different nodes: within a cell it is one."""
        return np.maximum(self.hops(self.cells[publishers], self.cells[subscribers]), 1)

    def last_hops(self, homes: Cells, subscribers: Counts, publishers: Counts, random: Generator) -> Counts:
        """Hops from a rendezvous cell to a subscriber.

        In the subscriber's own cell one more hop is needed, unless the member that the notification
        reached, a random one or the publisher itself, is the subscriber.
        """
        hops = self.hops(homes, self.cells[subscribers])
        for i in np.flatnonzero(hops == 0):
            members = self.members[int(homes[i, 0]), int(homes[i, 1])]
            forwarder = publishers[i] if publishers[i] in members else members[random.integers(len(members))]
            hops[i] = int(forwarder != subscribers[i])
        return hops

    def pairs(self, count: int, random: Generator) -> tuple[Counts, Counts]:
        """Publishers, each with a subscriber other than itself."""
        publishers = random.integers(len(self), size=count)
        subscribers = (publishers + random.integers(1, len(self), size=count)) % len(self)
        return publishers, subscribers


def draw_network(nodes: int, seed: int, degree: float = DEGREE) -> StillNetwork:
    """A random network; the same seed gives the same one."""
    random = np.random.default_rng([nodes, seed])
    side_m = RANGE_M / range_share(nodes, degree)
    positions = random.random((nodes, 2)) * side_m
    cells = cells_of(positions, StillNetwork.grid)
    kept = CellGraph.of(cells).largest_part().contains(cells)
    return StillNetwork(side_m, positions[kept], int(nodes - kept.sum()))
