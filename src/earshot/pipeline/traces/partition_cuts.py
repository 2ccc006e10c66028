"""Partitions: the parts of a contact in which no partition cuts it, exactly.

While two nodes move straight, whether a line or an area's border separates them changes only at the roots
of a few polynomials in time. Between two roots one moment decides.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from earshot.geometry import Area, Circle, Ellipse, Position
from earshot.pipeline.traces.contact_columns import ContactColumns, contact_columns, joined, rows_of
from earshot.records.trajectories import Legs
from earshot.simulation.faults import Partition, Point


def uncut(partition: Partition, pieces: Legs, met: ContactColumns) -> ContactColumns:
    """The contacts between pieces, by their numbers, without what the partition cuts off."""
    touched = (met.start < partition.end_s) & (met.end >= partition.start_s)
    kept: list[tuple[int, int, float, float]] = []
    last = math.nextafter(partition.start_s, -math.inf)
    for k in np.flatnonzero(touched).tolist():
        i, j, start, end = int(met.a[k]), int(met.b[k]), float(met.start[k]), float(met.end[k])
        if start <= last:
            kept.append((i, j, start, last))
        from_s, until_s = max(start, partition.start_s), min(end, math.nextafter(partition.end_s, -math.inf))
        kept.extend((i, j, *part) for part in _open_parts(partition, pieces, i, j, from_s, until_s))
        if end >= partition.end_s:
            kept.append((i, j, partition.end_s, end))
    return joined([rows_of(met, ~touched), contact_columns(kept)])


def _open_parts(
    partition: Partition, pieces: Legs, i: int, j: int, start: float, end: float
) -> list[tuple[float, float]]:
    """The parts of [start, end] in which the partition does not separate the two nodes."""
    here, there = _Motion(pieces, i), _Motion(pieces, j)
    roots = _line_roots(partition.line, here, there) if partition.line else []
    if partition.area is not None:
        roots = [*_border_roots(partition.area, here), *_border_roots(partition.area, there)]
    times = [start, *sorted(root for root in roots if start < root < end), end]
    found: list[tuple[float, float]] = []
    for low, high in pairwise(times):
        if not partition.separates(here.at((low + high) / 2), there.at((low + high) / 2)):
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
    return found


class _Motion:
    """One piece: where its node is at a time, x = x0 + vx t and y = y0 + vy t."""

    def __init__(self, pieces: Legs, i: int) -> None:
        self.vx, self.vy = float(pieces.x_m_s[i]), float(pieces.y_m_s[i])
        self.since = float(pieces.start[i])
        self.x, self.y = float(pieces.x_m[i]), float(pieces.y_m[i])

    def at(self, time: float) -> Point:
        return self.x + self.vx * (time - self.since), self.y + self.vy * (time - self.since)


def _line_roots(line: tuple[Position, Position], here: _Motion, there: _Motion) -> list[float]:
    """When a node passes the line, or the line's end passes between the nodes."""
    first, second = line
    base = here.since
    ax, ay = here.x, here.y
    bx, by = there.at(base)
    found = [
        *_side_roots((first.x_m, first.y_m), (second.x_m, second.y_m), here),
        *_side_roots((first.x_m, first.y_m), (second.x_m, second.y_m), there),
    ]
    # (b - a) x (c - a) = 0, where a and b move.
    dx, dy, dvx, dvy = bx - ax, by - ay, there.vx - here.vx, there.vy - here.vy
    for end in line:
        cx, cy = end.x_m - ax, end.y_m - ay
        square = -dvx * here.vy + dvy * here.vx
        linear = dvx * cy - dx * here.vy - dvy * cx + dy * here.vx
        found.extend(base + root for root in _roots(square, linear, dx * cy - dy * cx))
    return found


def _side_roots(start: Point, end: Point, node: _Motion) -> list[float]:
    """When the node is on the endless line through the two points."""
    ex, ey = end[0] - start[0], end[1] - start[1]
    roots = _roots(0.0, ex * node.vy - ey * node.vx, ex * (node.y - start[1]) - ey * (node.x - start[0]))
    return [node.since + root for root in roots]


def _border_roots(area: Area, node: _Motion) -> list[float]:
    """When the node passes the area's border, among others."""
    shape = area.shape
    if isinstance(shape, Circle | Ellipse):
        a_m, b_m, angle = (
            (shape.radius_m, shape.radius_m, 0.0)
            if isinstance(shape, Circle)
            else (shape.a_m, shape.b_m, math.radians(shape.angle_deg))
        )
        cos, sin, centre = math.cos(angle), math.sin(angle), area.centre
        x, y = node.x - centre.x_m, node.y - centre.y_m
        along, across = (x * cos + y * sin) / a_m, (y * cos - x * sin) / b_m
        v_along, v_across = (node.vx * cos + node.vy * sin) / a_m, (node.vy * cos - node.vx * sin) / b_m
        roots = _roots(v_along**2 + v_across**2, 2 * (along * v_along + across * v_across), along**2 + across**2 - 1.0)
        return [node.since + root for root in roots]
    outline = area.polygon()
    rings = [list(ring.coords) for ring in (outline.exterior, *outline.interiors)]
    return [
        root
        for ring in rings
        for one, other in pairwise(ring)
        for root in _side_roots((one[0], one[1]), (other[0], other[1]), node)
    ]


def _roots(square: float, linear: float, constant: float) -> list[float]:
    """Where square s² + linear s + constant = 0; none where it holds everywhere."""
    if square == 0.0:
        return [-constant / linear] if linear != 0.0 else []
    inside = linear * linear - 4 * square * constant
    if inside < 0:
        return []
    root = math.sqrt(inside)
    return [(-linear - root) / (2 * square), (-linear + root) / (2 * square)]
