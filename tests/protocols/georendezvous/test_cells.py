import math
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from cell_field import home_cell
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import GeometryError, SettingsError
from earshot.geometry import Position
from earshot.protocols.georendezvous.cells import (
    HOME,
    PLANAR,
    SURE_OFFSETS,
    CellGrid,
    Perimeter,
    direction_to,
    greedy_direction,
    largest_side_m,
    neighbourhood,
    rank,
    route,
    sector,
    step,
    towards,
)
from earshot.studies.georendezvous.cell_routes import CellGraph, cells_of
from sizes import sized

E, NE, N, NW, W, SW, S, SE = range(8)


def cell_graph(populated):
    """All edges between populated cells that touch."""
    graph = nx.Graph()
    graph.add_nodes_from(populated)
    graph.add_edges_from((cell, other) for cell in populated for other in around(cell) if other in populated)
    return graph


def planar_graph(populated):
    graph = nx.Graph()
    graph.add_nodes_from(populated)
    for cell in populated:
        kept = PLANAR[neighbourhood(cell, populated)]
        graph.add_edges_from((cell, towards(cell, direction)) for direction in range(8) if kept >> direction & 1)
    return graph


def around(cell):
    return [towards(cell, direction) for direction in range(8)]


def largest_part(populated):
    return max(nx.connected_components(cell_graph(populated)), key=lambda part: (len(part), min(part)))


@st.composite
def scattered_cells(draw):
    """Populated cells on a small ground, from a few to nearly all of them."""
    width, height = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    share = draw(st.sampled_from([0.25, 0.45, 0.65, 0.85]))
    random = draw(st.randoms(use_true_random=False))
    cells = {cell for cell in product(range(width), range(height)) if random.random() < share}
    return cells or {(0, 0)}


connected_cells = scattered_cells().map(largest_part)
any_cell = st.tuples(st.integers(-3, 12), st.integers(-3, 12))


def test_at_the_largest_side_a_node_just_hears_the_far_corner_of_a_diagonal_neighbour():
    side_m = largest_side_m(100.0)
    assert math.hypot(2 * side_m, 2 * side_m) == pytest.approx(100.0)


def test_cells_are_counted_from_the_origin_and_own_their_west_and_south_borders():
    grid = CellGrid(10.0, Position(5.0, -5.0))
    assert [grid.cell_of(Position(x, y)) for x, y in [(5, -5), (14.9, 4.9), (15, 5), (4.9, -5.1)]] == [
        (0, 0),
        (0, 0),
        (1, 1),
        (-1, -1),
    ]
    assert grid.centre((1, 0)) == Position(20.0, 0.0)


@pytest.mark.parametrize("side_m", [0.0, -1.0, math.inf, math.nan])
def test_a_cell_without_a_size_is_refused(side_m):
    with pytest.raises(SettingsError, match="side must be a positive number"):
        CellGrid(side_m)


def test_cells_at_equal_distance_rank_by_column_and_row():
    ring = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    assert sorted(ring, key=lambda cell: rank(cell, (0, 0))) == [(-1, 0), (0, -1), (0, 1), (1, 0)]


def test_only_cells_that_touch_have_a_direction():
    assert [direction_to((4, 4), other) for other in around((4, 4))] == list(range(8))
    assert [direction_to((4, 4), other) for other in [(4, 4), (6, 4), (5, 6)]] == [None, None, None]


def test_a_sector_begins_at_its_direction_and_ends_before_the_next():
    for east, north in product(range(-6, 7), repeat=2):
        if (east, north) != (0, 0):
            assert sector(east, north) == int(math.degrees(math.atan2(north, east)) % 360 / 45 + 1e-9)


@given(st.integers(0, 255), any_cell, any_cell)
def test_a_greedy_step_goes_to_the_neighbour_of_lowest_rank_if_that_is_closer(neighbours, cell, target):
    candidates = [direction for direction in range(8) if neighbours >> direction & 1]
    best = min([*(towards(cell, direction) for direction in candidates), cell], key=lambda c: rank(c, target))
    expected = HOME if best == cell else direction_to(cell, best)
    assert greedy_direction(cell, neighbours, target) == expected


def test_a_diagonal_stays_only_between_empty_corners():
    assert PLANAR[1 << NE] == 1 << NE
    assert PLANAR[1 << NE | 1 << E] == 1 << E
    assert PLANAR[1 << NE | 1 << N] == 1 << N
    assert PLANAR[0b11111111] == 1 << E | 1 << N | 1 << W | 1 << S


@given(scattered_cells())
@settings(max_examples=sized(150, 5000))
def test_the_planar_graph_has_no_crossing_edges_and_joins_whatever_the_cell_graph_joins(populated):
    planar, full = planar_graph(populated), cell_graph(populated)
    assert set(map(frozenset, planar.edges)) <= set(map(frozenset, full.edges))
    for column, row in product(range(-1, 10), repeat=2):
        rising = planar.has_edge((column, row), (column + 1, row + 1))
        falling = planar.has_edge((column + 1, row), (column, row + 1))
        assert not (rising and falling)
    assert set(map(frozenset, nx.connected_components(planar))) == set(map(frozenset, nx.connected_components(full)))


@given(scattered_cells())
def test_both_ends_of_an_edge_agree_that_it_is_kept(populated):
    for cell in populated:
        for direction in range(8):
            if PLANAR[neighbourhood(cell, populated)] >> direction & 1:
                other = towards(cell, direction)
                assert PLANAR[neighbourhood(other, populated)] >> (direction + 4) % 8 & 1


def test_a_cell_is_home_without_a_walk_exactly_where_all_closer_cells_are_its_neighbours():
    block = list(product(range(-6, 7), repeat=2))

    def sure(offset):
        closer = {cell for cell in block if rank(cell, offset) < rank((0, 0), offset)}
        return closer <= set(around((0, 0)))

    assert [offset for offset in product(range(-3, 4), repeat=2) if sure(offset) and offset != (0, 0)] == sorted(
        SURE_OFFSETS
    )


def test_a_packet_walks_around_a_gap_and_then_goes_straight_again():
    wall = {(column, row) for column, row in product(range(7), range(7)) if column != 3 or row == 6}
    around_the_gap = [(2, 3), (2, 4), (2, 5), (2, 6), (3, 6), (4, 6)]
    assert route((1, 3), (5, 3), wall) == [(1, 3), *around_the_gap, (4, 5), (5, 4), (5, 3)]


def test_a_home_cell_that_is_sure_of_itself_does_not_walk_its_perimeter():
    assert route((1, 1), (0, 0), set(around((0, 0)))) == [(1, 1), (0, 1), (-1, 0)]


def test_a_walk_of_the_home_perimeter_ends_at_the_first_edge_not_at_the_first_return():
    half_ring = {(-1, 1), (0, 1), (1, 1), (1, 0), (1, -1)}
    there_and_back = [(1, 1), (1, 0), (1, -1), (1, 0), (1, 1), (0, 1)]
    assert route((0, 1), (0, 0), half_ring) == [(0, 1), *there_and_back, (-1, 1), (0, 1)]


def test_an_edge_that_has_gone_during_the_walk_still_ends_it():
    east_only = 1 << E
    assert step((0, 0), east_only, (-4, 1), Perimeter((0, 0), first=W), came_from=E) == (HOME, None)


@given(connected_cells, any_cell)
@settings(max_examples=sized(200, 10_000))
def test_from_every_cell_routing_ends_and_finds_the_one_home_cell(populated, target):
    home = home_cell(target, populated)
    assert {route(start, target, populated)[-1] for start in populated} == {home}


@given(connected_cells, any_cell)
def test_each_step_of_a_route_goes_to_a_populated_neighbour(populated, target):
    for start in populated:
        path = route(start, target, populated)
        assert all(direction_to(a, b) is not None and b in populated for a, b in pairwise(path))


@given(scattered_cells(), any_cell)
@settings(max_examples=sized(150, 5000))
def test_in_a_network_of_several_parts_each_part_has_its_own_home_cell(populated, target):
    for part in nx.connected_components(cell_graph(populated)):
        assert {route(start, target, populated)[-1] for start in part} == {home_cell(target, part)}


@given(connected_cells, st.lists(any_cell, min_size=1, max_size=8))
@settings(max_examples=sized(150, 5000))
def test_many_routes_at_once_are_the_routes_one_by_one(populated, targets):
    pairs = list(product(sorted(populated), targets))
    hops, homes = CellGraph.of(populated).routes(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))
    paths = [route(start, target, populated) for start, target in pairs]
    assert hops.tolist() == [len(path) - 1 for path in paths]
    assert list(map(tuple, homes.tolist())) == [path[-1] for path in paths]


@given(scattered_cells())
def test_the_parts_of_a_cell_graph_are_its_connected_components_largest_first(populated):
    graph = CellGraph.of(populated)
    parts = {}
    for cell, part in zip(map(tuple, graph.populated.tolist()), graph.components().tolist(), strict=True):
        parts.setdefault(part, set()).add(cell)
    assert sorted(map(sorted, parts.values())) == sorted(map(sorted, nx.connected_components(cell_graph(populated))))
    assert [len(parts[part]) for part in sorted(parts)] == sorted(map(len, parts.values()), reverse=True)
    assert set(map(tuple, graph.largest_part().populated.tolist())) == parts[0]


@given(st.lists(st.tuples(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4)), min_size=1, max_size=20))
def test_cells_of_many_positions_are_the_cells_of_each(positions):
    grid = CellGrid(35.355, Position(-12.0, 7.5))
    one_by_one = [grid.cell_of(Position(x, y)) for x, y in positions]
    assert list(map(tuple, cells_of(np.array(positions), grid).tolist())) == one_by_one


def test_routes_that_cannot_be_are_refused():
    with pytest.raises(GeometryError, match="at least one populated cell"):
        CellGraph.of([])
    graph = CellGraph.of([(0, 0), (1, 1)])
    with pytest.raises(GeometryError, match="starts at a populated cell"):
        graph.routes(np.array([[5, 5]]), np.array([[0, 0]]))
    with pytest.raises(GeometryError, match="one target"):
        graph.routes(np.array([[0, 0]]), np.array([[0, 0], [1, 1]]))
