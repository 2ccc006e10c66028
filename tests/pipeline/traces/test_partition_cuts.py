"""The parts of contacts that a partition leaves: at each of many moments, as asking where both nodes are then."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from earshot.geometry import Area, Circle, Ellipse, Polygon, Position, Rectangle
from earshot.pipeline.traces.exact_contacts import ContactColumns, _roots, contact_columns, uncut
from earshot.records.trajectories import Legs
from earshot.simulation.faults import Partition, crosses

LINE = (Position(-20.0, -5.0), Position(25.0, 10.0))
AREAS = (
    Area(Circle(30.0), Position(5.0, -3.0)),
    Area(Ellipse(50.0, 20.0, 30.0), Position(-4.0, 6.0)),
    Area(Rectangle(60.0, 40.0, 20.0), Position(3.0, 2.0)),
    Area(Polygon(((-30.0, -30.0), (40.0, -20.0), (10.0, 40.0)), (((-5.0, -5.0), (5.0, -5.0), (0.0, 5.0)),))),
)
PARTITIONS = [Partition(2.0, 7.0, line=LINE), *(Partition(2.0, 7.0, area=area) for area in AREAS)]


def legs(rows: list[tuple[float, float, float, float, float]]) -> Legs:
    """Pieces that begin at a time and a place, with a velocity."""
    start, x_m, y_m, x_m_s, y_m_s = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Legs(np.arange(len(rows)), start, start + 10.0, x_m, y_m, x_m_s, y_m_s)


def at(pieces: Legs, i: int, time: float) -> tuple[float, float]:
    passed = time - pieces.start[i]
    return float(pieces.x_m[i] + pieces.x_m_s[i] * passed), float(pieces.y_m[i] + pieces.y_m_s[i] * passed)


def is_cut(partition: Partition, here: tuple[float, float], there: tuple[float, float], time: float) -> bool:
    if not partition.start_s <= time < partition.end_s:
        return False
    if partition.area is not None:
        return partition.area.contains(Position(*here)) != partition.area.contains(Position(*there))
    assert partition.line is not None
    return crosses(here, there, *((end.x_m, end.y_m) for end in partition.line))


def spans(found: ContactColumns, i: int, j: int) -> list[tuple[float, float]]:
    mine = (found.a == i) & (found.b == j)
    return sorted(zip(found.start[mine].tolist(), found.end[mine].tolist(), strict=True))


@pytest.mark.parametrize("partition", PARTITIONS, ids=["line", "circle", "ellipse", "rectangle", "polygon"])
def test_a_contact_lasts_exactly_while_nothing_separates_the_nodes(partition: Partition) -> None:
    chance = Random(5)
    rows = [
        (chance.uniform(-1.0, 0.0), chance.uniform(-30, 30), chance.uniform(-30, 30), chance.uniform(-8, 8),
         chance.uniform(-8, 8))
        for _ in range(40)
    ]  # fmt: skip
    pieces = legs(rows)
    pairs = [(2 * k, 2 * k + 1) for k in range(20)]
    met = contact_columns([(i, j, 0.5, 9.0) for i, j in pairs])
    found = uncut(partition, pieces, met)
    cut = 0
    for i, j in pairs:
        linked = spans(found, i, j)
        assert all(start <= end for start, end in linked)
        assert all(before[1] <= after[0] for before, after in pairwise(linked))
        for _ in range(60):
            time = chance.uniform(0.0, 10.0)
            separated = is_cut(partition, at(pieces, i, time), at(pieces, j, time), time)
            assert any(start <= time <= end for start, end in linked) == (0.5 <= time <= 9.0 and not separated)
            cut += separated
    assert cut > 50


def test_nodes_on_two_sides_are_cut_from_the_start_until_the_end_of_the_partition() -> None:
    pieces = legs([(0.0, -10.0, 0.0, 0.0, 0.0), (0.0, 10.0, 0.0, 0.0, 0.0)])
    wall = Partition(2.0, 7.0, line=(Position(0.0, -5.0), Position(0.0, 5.0)))
    before = math.nextafter(2.0, -math.inf)
    for contact, expected in (
        ((0.0, 9.0), [(0.0, before), (7.0, 9.0)]),
        ((0.0, 2.0), [(0.0, before)]),
        ((2.0, 7.0), [(7.0, 7.0)]),
        ((3.0, 6.0), []),
        ((7.0, 9.0), [(7.0, 9.0)]),
        ((0.0, 1.0), [(0.0, 1.0)]),
        ((before, 2.0), [(before, before)]),
    ):
        assert spans(uncut(wall, pieces, contact_columns([(0, 1, *contact)])), 0, 1) == expected, contact


def test_a_node_that_walks_past_the_end_of_a_wall_is_linked_from_then_on() -> None:
    """The wall ends at y = 5; the second node walks along y, the line of sight passes the wall's end at 5 s."""
    pieces = legs([(0.0, -10.0, 5.0, 0.0, 0.0), (0.0, 10.0, 0.0, 0.0, 1.0)])
    wall = Partition(0.0, 8.0, line=(Position(0.0, -50.0), Position(0.0, 5.0)))
    assert spans(uncut(wall, pieces, contact_columns([(0, 1, 0.0, 7.5)])), 0, 1) == [(5.0, 7.5)]
    circle = Partition(0.0, 8.0, area=Area(Circle(3.0), Position(10.0, 0.0)))
    assert spans(uncut(circle, pieces, contact_columns([(0, 1, 0.0, 7.5)])), 0, 1) == [(3.0, 7.5)]


@pytest.mark.parametrize(
    ("square", "linear", "constant", "expected"),
    [
        (0.0, 2.0, -6.0, [3.0]),
        (0.0, 0.0, 5.0, []),
        (0.0, 0.0, 0.0, []),
        (1.0, -5.0, 6.0, [2.0, 3.0]),
        (2.0, -10.0, 12.0, [2.0, 3.0]),
        (1.0, -2.0, 1.0, [1.0, 1.0]),
        (1.0, 0.0, 1.0, []),
    ],
)
def test_roots(square: float, linear: float, constant: float, expected: list[float]) -> None:
    assert _roots(square, linear, constant) == expected
