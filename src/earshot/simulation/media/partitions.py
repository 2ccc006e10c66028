"""Partitions: for a while no link crosses the border of an area, or a line."""

from __future__ import annotations

from collections.abc import Sequence

from earshot.geometry import Position
from earshot.simulation.faults import Partition
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.mobility import Trajectories

Point = tuple[float, float]


class Partitioned:
    """Neighbours as another source has them, less the links a partition cuts."""

    def __init__(self, trajectories: Trajectories, under: Neighbours, partitions: Sequence[Partition]) -> None:
        self._trajectories = trajectories
        self._under = under
        self._partitions = partitions

    def of(self, i: int, t: float) -> list[int]:
        near = self._under.of(i, t)
        for partition in self._partitions:
            if partition.start_s <= t < partition.end_s:
                near = [j for j in near if not self._cut(partition, i, j, t)]
        return near

    def _cut(self, partition: Partition, i: int, j: int, t: float) -> bool:
        here, there = self._trajectories.position(i, t), self._trajectories.position(j, t)
        if partition.area is not None:
            return partition.area.contains(Position(*here)) != partition.area.contains(Position(*there))
        assert partition.line is not None
        start, end = partition.line
        return crosses(here, there, (start.x_m, start.y_m), (end.x_m, end.y_m))


def crosses(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the straight way from a to b crosses the line from c to d (touching it counts)."""
    of_a, of_b, of_c, of_d = _side(c, d, a), _side(c, d, b), _side(a, b, c), _side(a, b, d)
    if of_a == of_b == of_c == of_d == 0:
        return all(
            max(min(a[axis], b[axis]), min(c[axis], d[axis])) <= min(max(a[axis], b[axis]), max(c[axis], d[axis]))
            for axis in (0, 1)
        )
    return of_a * of_b <= 0 and of_c * of_d <= 0


def _side(start: Point, end: Point, point: Point) -> float:
    """Positive left of the line, negative right of it, 0 on it."""
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])
