"""Partitions by an area's border or by a line."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from shapely import LineString, Point
from small_networks import standing

from earshot.errors import SettingsError
from earshot.geometry import Area, Circle, Position
from earshot.simulation.faults import Partition, crosses
from earshot.simulation.media.links import Partitioned
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.mobility import Trajectories, Trajectory

points = st.tuples(st.integers(-4, 4), st.integers(-4, 4))


@given(points, points, points, points)
def test_ways_cross_as_shapely_has_it(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], d: tuple[int, int]
) -> None:
    assume(c != d)
    way = LineString([a, b]) if a != b else Point(a)
    assert crosses(a, b, c, d) == way.intersects(LineString([c, d]))


def test_an_area_cuts_links_across_its_border_while_it_lasts() -> None:
    nodes = standing((0, 0), (5, 0), (10, 0), (15, 0))
    partition = Partition(2.0, 4.0, area=Area(Circle(7.0), Position(0.0, 0.0)))
    links = Partitioned(nodes, neighbours_within(nodes, 100.0), [partition])
    everybody = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    halves = [[1], [0], [3], [2]]
    found = [[links.of(i, time) for i in range(4)] for time in (1.9, 2.0, 3.9, 4.0)]
    assert found == [everybody, halves, halves, everybody]


def test_a_line_cuts_the_links_that_cross_it() -> None:
    nodes = standing((0, 0), (5, 0), (10, 0), (10, 50))
    partition = Partition(0.0, 9.0, line=(Position(7.0, -10.0), Position(7.0, 10.0)))
    links = Partitioned(nodes, neighbours_within(nodes, 100.0), [partition])
    assert [links.of(i, 1.0) for i in range(4)] == [[1, 3], [0, 3], [3], [0, 1, 2]]


def test_a_node_that_crosses_the_border_changes_sides() -> None:
    nodes = Trajectories([Trajectory.standing("a", 0, 0), Trajectory.through("b", [(0, 5, 0), (10, 15, 0)])])
    partition = Partition(0.0, 100.0, area=Area(Circle(10.0), Position(0.0, 0.0)))
    links = Partitioned(nodes, neighbours_within(nodes, 100.0), [partition])
    assert [links.of(0, time) for time in (4.0, 6.0)] == [[1], []]


def test_a_partition_needs_an_area_or_a_line_and_time() -> None:
    area = Area(Circle(7.0))
    with pytest.raises(SettingsError, match=r"a partition must end after it starts, got 4\.0 to 2\.0"):
        Partition(4.0, 2.0, area=area)
    with pytest.raises(SettingsError, match="a partition needs an area or a line, one of the two"):
        Partition(1.0, 2.0)
    with pytest.raises(SettingsError, match="a partition needs an area or a line, one of the two"):
        Partition(1.0, 2.0, area=area, line=(Position(0, 0), Position(1, 1)))
