"""Pairs within range and their runs, against every pair tried."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meetings import contacts_by_brute_force
from scipy.spatial import cKDTree

from earshot import pairs as pairs_module
from earshot.pipeline.traces import contacts
from earshot.pipeline.traces.contacts import pairs_in_slices, runs_of_pairs
from sizes import sized

coordinates = st.one_of(
    st.integers(-40, 40).map(float), st.floats(-60, 60, allow_nan=False), st.sampled_from([1e9, -1e9, 3e14])
)
rows = st.lists(st.tuples(st.integers(0, 4), coordinates, coordinates), max_size=40)


def pairs(slices: np.ndarray, x: np.ndarray, y: np.ndarray, range_m: float) -> list[tuple[int, int]]:
    found = [
        (int(min(i, j)), int(max(i, j)))
        for some_i, some_j in pairs_in_slices(slices, x, y, range_m)
        for i, j in zip(some_i, some_j, strict=True)
    ]
    return sorted(found)


@given(rows=rows, range_m=st.sampled_from([0.5, 1.0, 7.0, 25.0, 1000.0]))
@settings(max_examples=sized(300, 5000))
def test_every_pair_of_a_slice_within_range_is_found_once(rows: list[tuple[int, float, float]], range_m: float) -> None:
    rows.sort(key=lambda row: row[0])
    slices = np.array([row[0] for row in rows], dtype=np.int64)
    x, y = (np.array([row[i] for row in rows], dtype=np.float64) for i in (1, 2))
    near = [
        (i, j)
        for i in range(len(rows))
        for j in range(i + 1, len(rows))
        if slices[i] == slices[j] and (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 <= range_m * range_m
    ]
    assert pairs(slices, x, y, range_m) == near


on_borders = st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=80)


@given(rows=on_borders, range_m=st.sampled_from([0.5, 2.0, 64.0]), offset=st.sampled_from([0.0, 0.25, 4096.0]))
@settings(max_examples=sized(200, 4000))
def test_points_on_the_borders_of_cells_have_the_pairs_of_a_tree(
    rows: list[tuple[int, int, int]], range_m: float, offset: float
) -> None:
    """Points are half a range apart: every second one is on a border, and many pairs are exactly at the range."""
    rows.sort()
    slices = np.array([row[0] for row in rows], dtype=np.int64)
    x, y = (np.array([row[i] for row in rows]) * range_m / 2 + offset for i in (1, 2))
    near = []
    for moment in np.unique(slices):
        here = np.flatnonzero(slices == moment)
        tree = cKDTree(np.column_stack((x[here], y[here])))
        near += [(int(here[i]), int(here[j])) for i, j in tree.query_pairs(range_m)]
    assert pairs(slices, x, y, range_m) == sorted(near)


def test_a_chunk_never_parts_a_slice_and_candidates_come_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(pairs_module, "CANDIDATES_AT_ONCE", 4)
    slices = np.repeat(np.arange(3), 5)
    x = np.tile(np.arange(5.0), 3)
    every_pair = [(5 * s + i, 5 * s + j) for s in range(3) for i in range(5) for j in range(i + 1, 5)]
    assert pairs(slices, x, np.zeros(15), 10.0) == every_pair


moves = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 12), st.integers(0, 12)),
    max_size=60,
    unique_by=lambda row: row[:2],
)


@given(moves=moves, range_m=st.sampled_from([1.0, 3.0, 5.0]), gap=st.sampled_from([1.0, 2.0]))
@settings(max_examples=sized(200, 3000))
def test_runs_agree_with_brute_force(moves: list[tuple[int, int, int, int]], range_m: float, gap: float) -> None:
    moves.sort(key=lambda row: row[1])
    times, slices = np.unique(np.array([row[1] for row in moves], dtype=np.float64), return_inverse=True)
    nodes, x, y = (np.array([row[i] for row in moves]) for i in (0, 2, 3))
    runs = runs_of_pairs(
        slices.astype(np.int64), nodes.astype(np.int64), x.astype(float), y.astype(float), range_m, times, gap
    )
    found = sorted((str(a), str(b), times[first], times[last]) for a, b, first, last in zip(*runs, strict=True))
    truth = contacts_by_brute_force(((str(n), float(t), float(x), float(y)) for n, t, x, y in moves), range_m, gap)
    assert found == truth


def test_a_node_seen_twice_at_once_does_not_meet_itself() -> None:
    runs = runs_of_pairs(
        np.zeros(3, dtype=np.int64), np.array([0, 0, 1]), np.zeros(3), np.zeros(3), 1.0, np.array([5.0]), 1.0
    )
    assert [list(column) for column in runs] == [[0], [1], [0], [0]]


@given(st.lists(st.integers(0, 2**40) | st.integers(0, 3) | st.integers(65_530, 65_545)))
def test_the_stable_order_of_numbers_of_any_size(keys: list[int]) -> None:
    column = np.array(keys, dtype=np.int64)
    assert pairs_module.stable_order(column).tolist() == sorted(range(len(keys)), key=keys.__getitem__)
