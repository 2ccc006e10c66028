"""A field of nodes that hear each other within range, and may walk: a tabletop for cell tests."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from earshot.geometry import STILL, Position
from earshot.protocols.georendezvous.cells import Cell, CellGrid, rank
from earshot.protocols.machine import Machine
from earshot.protocols.tabletop import Tabletop


@dataclass
class Footing:
    """A node's location; tests put it elsewhere."""

    at: Position

    def position(self, time):
        return self.at

    def velocity(self, time):
        return STILL


class Field(Tabletop):
    """Machines at places, linked where they are within range of each other."""

    def __init__(
        self, places: dict[str, Position], range_m: float, machine: Callable[[str, Footing, Random], Machine]
    ) -> None:
        self.footings = {node: Footing(at) for node, at in sorted(places.items())}
        self.range_m = range_m
        machines = [machine(node, footing, Random(f"7:{node}")) for node, footing in self.footings.items()]
        super().__init__(machines, self.pairs_in_range())

    def pairs_in_range(self):
        nodes = list(self.footings)
        return [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if self.hear_each_other(a, b)]

    def hear_each_other(self, a: str, b: str) -> bool:
        return self.footings[a].at.distance_to(self.footings[b].at) <= self.range_m

    def move(self, node: str, at: Position) -> None:
        """From now on the node is there."""
        self.footings[node].at = at
        for other in self.machines:
            if other != node:
                (self.link if self.hear_each_other(node, other) else self.cut)(node, other)

    def crash(self, node: str) -> None:
        """The node stops without a farewell."""
        del self.machines[node]
        for other in list(self.links[node]):
            self.cut(node, other)


def home_cell(target: Cell, populated: Iterable[Cell]) -> Cell:
    """The populated cell responsible for the target: what routing finds without knowing them all."""
    return min(populated, key=lambda cell: rank(cell, target))


def in_cells(cells: dict[str, Cell], grid: CellGrid) -> dict[str, Position]:
    """Nodes at the centres of these cells."""
    return {node: grid.centre(cell) for node, cell in cells.items()}


def scattered(nodes: int, degree: float, range_m: float, random: Random) -> tuple[dict[str, Position], float]:
    """Nodes spread evenly over a square whose side gives them this average number of neighbours."""
    side_m = math.sqrt(nodes * math.pi * range_m**2 / degree)
    names = [f"n{number:04d}" for number in range(nodes)]
    return {name: Position(random.uniform(0, side_m), random.uniform(0, side_m)) for name in names}, side_m
