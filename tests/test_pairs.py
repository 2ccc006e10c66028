"""Pairs within range, in one moment and in many; and when two moving points are within range."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from earshot import pairs
from earshot.pairs import index_ranges, pairs_within, stable_order, times_within

places = st.tuples(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0))


def found_pairs(
    points: list[tuple[float, float]], range_m: float, slices: list[int] | None = None
) -> list[tuple[int, int]]:
    x, y = np.array(points).reshape(-1, 2).T
    a, b, _ = pairs_within(x, y, range_m, None if slices is None else np.array(slices, dtype=np.int64))
    return sorted((min(one), max(one)) for one in zip(a.tolist(), b.tolist(), strict=True))


def true_pairs(points: list[tuple[float, float]], range_m: float, slices: list[int]) -> list[tuple[int, int]]:
    def apart(i: int, j: int) -> float:
        return (points[i][0] - points[j][0]) ** 2 + (points[i][1] - points[j][1]) ** 2

    every = combinations(range(len(points)), 2)
    return [(i, j) for i, j in every if slices[i] == slices[j] and apart(i, j) <= range_m * range_m]


@given(st.lists(st.tuples(places, st.integers(0, 3)), max_size=30), st.floats(0.5, 60.0))
def test_points_of_one_slice_are_paired_and_those_of_two_are_not(
    points: list[tuple[tuple[float, float], int]], range_m: float
) -> None:
    where, slices = [point for point, _ in points], [number for _, number in points]
    assert found_pairs(where, range_m, slices) == true_pairs(where, range_m, slices)


def test_two_slices_side_by_side_stay_apart() -> None:
    """The last column of one slice and the first of the next: both full, and neither pairs with the other."""
    points = [(0.0, 0.0), (95.0, 0.0), (0.0, 0.0), (95.0, 0.0), (5.0, 5.0), (90.0, 5.0)]
    assert found_pairs(points, 10.0, [0, 0, 1, 1, 0, 1]) == [(0, 4), (3, 5)]


def test_both_ends_of_the_range_count() -> None:
    assert found_pairs([(0.0, 0.0), (3.0, 4.0), (6.0, 8.0)], 5.0) == [(0, 1), (1, 2)]
    assert found_pairs([(0.0, 0.0), (3.0, 4.0)], math.nextafter(5.0, 0.0)) == []
    assert (found_pairs([], 5.0), found_pairs([(1.0, 1.0)], 5.0)) == ([], [])
    assert found_pairs([(1.0, 1.0), (1.0, 1.0)], 5.0) == [(0, 1)]


def test_pairs_are_the_same_however_many_candidates_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(3)
    points = [(float(x), float(y)) for x, y in chance.uniform(0, 40, (40, 2))]
    expected = true_pairs(points, 12.0, [0] * 40)
    assert len(expected) > 100
    cut, counted = pairs._parts, []

    def parts(counts: pairs.Ints) -> list[slice]:
        counted.append(len(found := cut(counts)))
        return found

    monkeypatch.setattr(pairs, "_parts", parts)
    for at_once in (1, 2, 7, *range(40, 800, 20)):
        monkeypatch.setattr(pairs, "CANDIDATES_AT_ONCE", at_once)
        assert found_pairs(points, 12.0) == expected
    assert {1, 2, 3} < set(counted), "in one part, in two, and in many"


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=12), st.integers(1, 15))
@example([3, 3, 3, 3], 6)
@example([3, 3, 1, 3], 6)
def test_the_parts_cover_all_and_hold_no_more_than_allowed_unless_one_count_does(counts: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pairs, "CANDIDATES_AT_ONCE", most)
        parts = pairs._parts(np.array(counts, dtype=np.int64))
    covered = [k for part in parts for k in range(len(counts))[part]]
    assert covered == list(range(len(counts)))
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        inside = [max(count, 0) for count in counts[part]]
        assert sum(inside) <= most or len(inside) == 1
        if following is not None:
            assert sum(inside) + max(counts[following][0], 0) > most, "no smaller than needed"


def test_a_wide_plane_has_no_more_cells_than_their_numbers_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    far = 1e12
    points = [(0.0, 0.0), (0.5, 0.5), (far, far), (far - 0.5, far), (far, -far)]
    assert found_pairs(points, 1.0) == [(0, 1), (2, 3)]
    monkeypatch.setattr(pairs, "WIDEST_GRID", 3)
    chance = np.random.default_rng(5)
    many = [(float(x), float(y)) for x, y in chance.uniform(0, 90, (30, 2))]
    assert found_pairs(many, 9.0) == true_pairs(many, 9.0, [0] * 30)


def test_a_long_plane_has_no_more_cells_than_their_numbers_can_hold() -> None:
    """Its longer side bounds the cells: by its shorter side, the numbers of these cells would exceed 64 bits."""
    long_m, short_m = 1e13, 1e6
    points = [(0.0, 0.0), (0.5, 0.5), (long_m, short_m), (long_m - 0.5, short_m)]
    assert found_pairs(points, 1.0) == [(0, 1), (2, 3)]
    assert found_pairs([(y, x) for x, y in points], 1.0) == [(0, 1), (2, 3)]


def test_ranges_of_numbers_are_written_out_and_empty_ones_left_out() -> None:
    own, number = index_ranges(np.array([7, 8, 9, 6]), np.array([2, 5, 4, 0]), np.array([4, 5, 1, 3]))
    assert (own.tolist(), number.tolist()) == ([7, 7, 6, 6, 6], [2, 3, 0, 1, 2])


@given(st.lists(st.sampled_from([0, 1, 2, 65_535, 65_536, 65_537, 2**32 - 1, 2**32, 2**48 + 1, 2**62]), max_size=20))
def test_numbers_of_any_size_are_sorted_and_equal_ones_stay_in_order(keys: list[int]) -> None:
    assert stable_order(np.array(keys, dtype=np.int64)).tolist() == sorted(range(len(keys)), key=lambda k: keys[k])


# Moving points.


def within(dx: float, dy: float, vx: float, vy: float, end: float, range_m: float) -> tuple[bool, float, float]:
    columns = [np.array([value]) for value in (dx, dy, vx, vy, 10.0, end)]
    is_within, comes, goes = times_within(*columns, range_m)  # type: ignore[call-arg]
    return bool(is_within[0]), float(comes[0]), float(goes[0])


@pytest.mark.parametrize(
    ("motion", "expected"),
    [
        ((20.0, 0.0, -1.0, 0.0, 60.0), (True, 20.0, 40.0)),
        ((20.0, 0.0, -1.0, 0.0, 30.0), (True, 20.0, 30.0)),
        ((0.0, 20.0, 0.0, -2.0, 60.0), (True, 15.0, 25.0)),
        ((20.0, 10.0, -1.0, 0.0, 60.0), (True, 30.0, 30.0)),
        ((5.0, 0.0, 1.0, 0.0, 60.0), (True, 10.0, 15.0)),
        ((10.0, 0.0, 1.0, 0.0, 60.0), (True, 10.0, 10.0)),
        ((6.0, 8.0, 0.0, 0.0, 60.0), (True, 10.0, 60.0)),
        ((14.0, 8.0, -1.0, 0.0, 60.0), (True, 18.0, 30.0)),
    ],
    ids=["through", "until the end", "along y", "touching", "leaving", "leaving from the border", "still", "aside"],
)
def test_two_points_are_within_range_from_when_they_come_until_they_go(
    motion: tuple[float, float, float, float, float], expected: tuple[bool, float, float]
) -> None:
    assert within(*motion, 10.0) == (expected[0], pytest.approx(expected[1]), pytest.approx(expected[2]))


@pytest.mark.parametrize(
    "motion",
    [
        (20.0, 0.0, 1.0, 0.0, 60.0),
        (10.01, 0.0, 1.0, 0.0, 60.0),
        (20.0, 10.1, -1.0, 0.0, 60.0),
        (20.0, 0.0, -1.0, 0.0, 19.9),
        (6.0, 8.1, 0.0, 0.0, 60.0),
    ],
    ids=["going away", "just gone", "passing by", "too late", "still"],
)
def test_two_points_that_do_not_meet_are_not_within_range(motion: tuple[float, float, float, float, float]) -> None:
    assert within(*motion, 10.0)[0] is False
