"""Each mobility model keeps its promises: places, speeds, pauses, steady states."""

import math
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from earshot.errors import ScenarioError
from earshot.geometry import Position
from earshot.simulation import SettingsTable
from earshot.simulation.draws import Span
from earshot.simulation.extent import Extent, box_of
from earshot.simulation.mobility import (
    Given,
    Grid,
    Lane,
    Lanes,
    OutsideMobility,
    RandomWaypoint,
    Scripted,
    Trajectories,
    Trajectory,
    Uniform,
)
from earshot.simulation.mobility.models import mean_leg_m
from sizes import sized

GROUND = Extent(1000.0, 600.0)


def trajectories(model: object, count: int, until_s: float = 300.0, seed: int = 1) -> Trajectories:
    names = [f"n{i}" for i in range(count)]
    randoms = [Random(f"{seed}:{i}") for i in range(count)]
    return Trajectories(model.paths(names, GROUND, randoms, until_s))  # type: ignore[attr-defined]


def test_uniform_nodes_stand_anywhere_in_their_box() -> None:
    from scipy import stats

    still = trajectories(Uniform(box_m=(100, 200, 300, 500)), 2000)
    x, y = still.positions(0.0).T
    assert still.static
    assert stats.kstest(x, "uniform", (100, 200)).pvalue > 0.01
    assert stats.kstest(y, "uniform", (200, 300)).pvalue > 0.01


def test_a_grid_fills_its_box_row_by_row() -> None:
    six = trajectories(Grid(columns=3), 6).positions(0.0)
    assert six.tolist() == pytest.approx(
        np.array([[x, y] for y in (150.0, 450.0) for x in (1000 / 6, 500.0, 5000 / 6)])
    )


def test_a_grid_is_as_square_as_its_box_and_jitter_stays_in_the_box() -> None:
    fifteen = trajectories(Grid(), 15).positions(0.0)
    assert sorted({round(x) for x, _ in fifteen}) == [100, 300, 500, 700, 900]
    shaken = trajectories(Grid(jitter_m=400.0), 200).positions(0.0)
    assert shaken.min() >= 0
    assert (shaken <= (1000, 600)).all()


def test_given_nodes_stand_where_they_are_put() -> None:
    given = Given(((1, 2), (3, 4)))
    assert given.count == 2
    assert trajectories(given, 2).positions(99.0).tolist() == [[1, 2], [3, 4]]


WALK = RandomWaypoint(speed_m_s=Span(1.0, 20.0), pause_s=Span(0.0, 60.0))
WALKERS = sized(3000, 20_000)


def test_random_waypoint_never_leaves_its_box_nor_its_speeds() -> None:
    boxed = RandomWaypoint(speed_m_s=Span(5.0, 10.0), pause_s=Span(1.0, 2.0), box_m=(200, 100, 700, 400))
    walk = trajectories(boxed, 100)
    slack = 1e-9
    for t in np.linspace(0, 300, 200):
        places = walk.positions(t)
        assert (places >= np.array((200, 100)) - slack).all()
        assert (places <= np.array((700, 400)) + slack).all()
        speeds = np.hypot(*walk.velocities(t).T)
        moving = speeds[speeds > 0]
        assert ((moving >= 5.0 - 1e-6) & (moving <= 10.0 + 1e-6)).all()
    assert walk.max_speed_m_s <= 10.0 + 1e-6


def test_random_waypoint_starts_in_its_steady_state() -> None:
    """Places, speeds and the share of pausing nodes at 0 are distributed as they are much later."""
    from scipy import stats

    walk = trajectories(WALK, WALKERS, until_s=2000.0)
    now, later = walk.positions(0.0), walk.positions(1900.0)
    speeds_now = np.hypot(*walk.velocities(0.0).T)
    speeds_later = np.hypot(*walk.velocities(1900.0).T)
    for axis in (0, 1):
        assert stats.ks_2samp(now[:, axis], later[:, axis]).pvalue > 0.005
    assert stats.ks_2samp(speeds_now[speeds_now > 0], speeds_later[speeds_later > 0]).pvalue > 0.005
    # Long legs are met more often, and from amid them there is some way to go.
    keeping = [
        (np.abs(walk.velocities(t + 15.0) - walk.velocities(t)).max(axis=1) < 1e-9).mean() for t in (0.0, 1900.0)
    ]
    assert keeping[0] == pytest.approx(keeping[1], abs=4 * math.sqrt(0.5 / WALKERS))
    pausing = [(speeds == 0).mean() for speeds in (speeds_now, speeds_later)]
    expected = WALK.share_pausing((0, 0, 1000, 600))
    spread = 4 * math.sqrt(expected * (1 - expected) / WALKERS)
    assert pausing == pytest.approx([expected, expected], abs=spread)


def test_a_start_at_the_beginning_of_a_leg_would_be_noticed() -> None:
    """The same test refuses the naive start: evenly spread, all moving, speeds drawn evenly."""
    from scipy import stats

    walk = trajectories(WALK, WALKERS, until_s=2000.0)
    speeds = np.hypot(*walk.velocities(1900.0).T)
    naive = np.array([Random(f"naive:{i}").uniform(1.0, 20.0) for i in range(WALKERS)])
    assert stats.ks_2samp(naive, speeds[speeds > 0]).pvalue < 1e-6


@pytest.mark.parametrize(("width", "height", "mean"), [(1.0, 1.0, 0.5214054331647207), (1000.0, 1.0, 1000 / 3)])
def test_the_mean_leg_of_known_rectangles(width: float, height: float, mean: float) -> None:
    assert mean_leg_m(width, height) == pytest.approx(mean, rel=1e-4)


def test_more_nodes_do_not_move_the_others() -> None:
    few, many = trajectories(WALK, 3), trajectories(WALK, 9)
    assert many.positions(123.0)[:3].tolist() == few.positions(123.0).tolist()


EAST = Lane((0, 4), (1000, 4), Span(20, 30))
WEST = Lane((1000, 8), (0, 8), Span(25, 25))


def test_vehicles_keep_their_lane_and_their_speed() -> None:
    road = trajectories(Lanes((EAST, WEST)), 40)
    speeds = road.velocities(0.0)
    assert (speeds[0::2, 0] >= 20 - 1e-9).all()
    assert (speeds[0::2, 0] <= 30 + 1e-9).all()
    for t in np.linspace(0, 299, 60):
        assert road.positions(t)[:, 1].tolist() == pytest.approx([4, 8] * 20)
        assert road.velocities(t)[:, 0] == pytest.approx(speeds[:, 0])
        assert (road.positions(t)[:, 0] >= -1e-6).all()
        assert (road.positions(t)[:, 0] <= 1000 + 1e-6).all()
    assert road.velocities(0.0)[1::2].tolist() == pytest.approx(np.tile([-25.0, 0.0], (20, 1)))
    assert road.presence == (((-math.inf, math.inf),),) * 40


def test_a_wrapped_vehicle_is_at_once_at_the_start_again() -> None:
    lane = Lane((0, 0), (100, 0), Span(10, 10))
    road = trajectories(Lanes((lane,), spacing="even"), 1, until_s=50)
    assert [road.position(0, t) for t in (0.0, 4.0, 5.0, 6.0, 15.0)] == [
        pytest.approx((x, 0.0)) for x in (50.0, 90.0, 0.0, 10.0, 0.0)
    ]
    assert road.jump_times[0] == 5.0


def test_even_spacing_is_even_in_each_lane() -> None:
    road = trajectories(Lanes((EAST, WEST), spacing="even"), 5)
    assert road.positions(0.0)[:, 0] == pytest.approx([1000 / 6, 750, 500, 250, 5000 / 6])


def test_a_vehicle_that_re_enters_is_away_in_between() -> None:
    lane = Lane((0, 0), (100, 0), Span(10, 10))
    road = trajectories(Lanes((lane,), spacing="even", at_end="re-enter", away_s=Span(3, 3)), 1, until_s=25)
    assert road.presence == (((-math.inf, 5.0), (8.0, 18.0), (21.0, 31.0)),)
    assert road.position(0, 6.0) == (100.0, 0.0)
    assert road.position(0, 8.0) == (0.0, 0.0)
    assert road.max_speed_m_s == pytest.approx(10.0)


def test_scripted_nodes_go_as_written() -> None:
    script = Scripted((((0, 0, 0), (10, 100, 0)), ((5, 7, 7),)))
    assert script.count == 2
    assert trajectories(script, 2).positions(4.0).tolist() == [[40, 0], [7, 7]]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: RandomWaypoint(speed_m_s=Span(0, 5)), "speed_m_s must begin above 0, got 0: with a least speed of 0"),
        (lambda: RandomWaypoint(Span(1, 2), Span(-1, 5)), "pause_s must not be negative, got -1"),
        (lambda: Lane((1, 1), (1, 1), Span(1, 1)), r"a lane must lead somewhere: .* both \[1, 1\]"),
        (lambda: Lane((1, 1), (2, 1), Span(0, 1)), "speed_m_s must begin above 0, got 0"),
        (lambda: Lanes(()), "lanes needs at least one lane"),
        (lambda: Lanes((EAST,), away_s=Span(0, 1)), "away_s must begin above 0, got 0"),
        (lambda: Grid(columns=0), "columns must be at least 1, got 0"),
        (lambda: Grid(jitter_m=-1), "jitter_m must not be negative, got -1"),
        (lambda: Scripted(((),)), r"moves\[0\] is empty"),
        (lambda: Scripted((((1, 0, 0), (0, 0, 0)),)), r"moves\[0\] goes back in time"),
        (lambda: Span(2, 1), r"a span is \[low, high\], got \[2, 1\]"),
        (lambda: Span(0, math.inf), "a span needs finite numbers"),
        (lambda: Extent(0, 1), "width_m must be a positive number of metres, got 0"),
        (lambda: trajectories(Uniform((0, 0, 2000, 10)), 1), "box_m must be .* inside the area of 1000 x 600 m"),
    ],
)
def test_what_cannot_be_is_refused(make: object, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        make()  # type: ignore[operator]


class Elsewhere(SettingsTable, frozen=True):
    """A mobility model of other people's: it names its nodes as it likes."""

    names: tuple[str, ...]

    def paths(self, *_: Any) -> list[Trajectory]:
        return [Trajectory.standing(name, 1.0, 2.0) for name in self.names]


def test_a_model_from_outside_gives_one_path_for_each_name_in_their_order() -> None:
    def paths(*given: str) -> list[Trajectory]:
        return OutsideMobility("mine.py:Elsewhere", Elsewhere(given)).paths(["a", "b"], Extent(), [], 1.0)

    assert [path.name for path in paths("a", "b")] == ["a", "b"]
    for wrong in (("b", "a"), ("a",), ("a", "b", "c"), ()):
        with pytest.raises(ScenarioError, match=r"mobility: mine\.py:Elsewhere must give one trajectory for each name"):
            paths(*wrong)


# The steady state of the random waypoint model, against what its definition gives.


@pytest.mark.parametrize(("width", "height"), [(2.0, 1.0), (3.0, 7.0), (1000.0, 600.0)])
def test_the_mean_leg_is_the_mean_distance_of_two_points(width: float, height: float) -> None:
    """Along each side the distance u has the density 2 (a - u) / a²: a sum over the middles of many cells."""
    cells = 400
    u, v = (side * (np.arange(cells) + 0.5) / cells for side in (width, height))
    weights = np.outer(width - u, height - v)
    mean = (weights * np.hypot(u[:, None], v[None, :])).sum() / weights.sum()
    assert mean_leg_m(width, height) == pytest.approx(mean, rel=1e-4)
    assert mean_leg_m(height, width) == pytest.approx(mean, rel=1e-4)


def test_the_share_of_pauses_is_their_part_of_the_time() -> None:
    box = (100.0, 200.0, 1100.0, 800.0)
    speeds = np.linspace(2.0, 10.0, 100_001)
    travel_s = mean_leg_m(1000.0, 600.0) * float((1 / speeds).mean())
    walk = RandomWaypoint(speed_m_s=Span(2.0, 10.0), pause_s=Span(10.0, 50.0))
    assert walk.share_pausing(box) == pytest.approx(30.0 / (30.0 + travel_s), rel=1e-4)
    even = RandomWaypoint(speed_m_s=Span(4.0, 4.0), pause_s=Span(30.0, 30.0))
    assert even.share_pausing(box) == pytest.approx(30.0 / (30.0 + mean_leg_m(1000.0, 600.0) / 4.0))
    assert RandomWaypoint(speed_m_s=Span(4.0, 4.0)).share_pausing(box) == 0.0, "by default nobody pauses"


def test_a_node_that_starts_in_a_pause_has_half_of_a_long_one_before_it() -> None:
    """Pauses are met in proportion to their length: what is left has the mean E[p²] / 2 E[p]."""
    walk, random = RandomWaypoint(speed_m_s=Span(1.0, 1.0), pause_s=Span(20.0, 100.0)), Random(5)
    starts = [walk._paused_start((100.0, 200.0, 300.0, 250.0), random) for _ in range(8000)]
    left = np.array([ends[0] for _, ends in starts])
    pauses = np.linspace(20.0, 100.0, 10_001)
    assert left.mean() == pytest.approx((pauses**2).mean() / (2 * pauses.mean()), rel=0.03)
    assert (left.min() >= 0.0, left.max() <= 100.0) == (True, True)
    assert all(begin[0] == 0.0 and begin[1:] == end[1:] for begin, end in starts)
    where = np.array([begin[1:] for begin, _ in starts])
    assert where.mean(axis=0) == pytest.approx((200.0, 225.0), abs=3.0)
    assert where.min(axis=0) == pytest.approx((100.0, 200.0), abs=1.0)
    assert where.max(axis=0) == pytest.approx((300.0, 250.0), abs=1.0)


def test_a_node_that_starts_on_a_leg_is_on_a_long_and_slow_one() -> None:
    """Legs are met in proportion to length / speed: speeds have the density 1 / v, and lengths that of v times it."""
    walk, random = RandomWaypoint(speed_m_s=Span(2.0, 20.0), pause_s=Span(5.0, 5.0)), Random(6)
    box = (100.0, 200.0, 1100.0, 800.0)
    starts = [walk._moving_start(box, random) for _ in range(8000)]
    assert {len(knots) for knots in starts} == {3}
    places = np.array([[knots[0][1:], knots[1][1:]] for knots in starts])
    arrivals = np.array([knots[1][0] for knots in starts])
    to_go = np.hypot(*(places[:, 1] - places[:, 0]).T)
    speeds = to_go / arrivals
    assert speeds.mean() == pytest.approx((20.0 - 2.0) / math.log(10.0), rel=0.02)
    assert (speeds.min() >= 2.0 - 1e-9, speeds.max() <= 20.0 + 1e-9) == (True, True)
    chance = np.random.default_rng(1)
    one, other = (chance.uniform((100, 200), (1100, 800), (200_000, 2)) for _ in range(2))
    lengths = np.hypot(*(one - other).T)
    assert to_go.mean() == pytest.approx((lengths**2).mean() / (2 * lengths.mean()), rel=0.03)
    for knots in starts:
        assert knots[0][0] == 0.0
        assert knots[2] == (pytest.approx(knots[1][0] + 5.0), *knots[1][1:])
    bounds = (places.min(axis=(0, 1)), places.max(axis=(0, 1)))
    assert np.concatenate(bounds) == pytest.approx(box, abs=15.0)


def test_a_walk_goes_on_from_where_it_was_until_the_end() -> None:
    walk = RandomWaypoint(speed_m_s=Span(5.0, 5.0), pause_s=Span(2.0, 2.0))
    (path,) = walk.paths(["a"], GROUND, [Random(3)], 500.0)
    steps = np.diff(path.times), np.hypot(np.diff(path.xs), np.diff(path.ys))
    for passed_s, went_m in zip(*steps, strict=True):
        assert went_m == pytest.approx(5.0 * passed_s) or (went_m, passed_s) == (0.0, pytest.approx(2.0, abs=2.0))
    assert path.times[-1] >= 500.0 > path.times[-3]


# Extents and boxes.


def test_an_extent_lies_east_and_north_of_its_corner() -> None:
    extent = Extent(1000.0, 600.0, 50.0, -20.0)
    assert extent.box == (50.0, -20.0, 1050.0, 580.0)
    corners = [(50.0, -20.0), (1050.0, 580.0), (49.0, 0.0), (1051.0, 0.0), (60.0, -21.0), (60.0, 581.0)]
    assert [extent.area.contains(Position(x, y)) for x, y in corners] == [True, True, False, False, False, False]
    assert Extent().box == (0.0, 0.0, 1000.0, 1000.0)


@pytest.mark.parametrize(
    ("box", "ok"),
    [
        ((50.0, -20.0, 1050.0, 580.0), True),
        ((60.0, -10.0, 60.1, -9.9), True),
        ((49.9, -20.0, 1050.0, 580.0), False),
        ((50.0, -20.1, 1050.0, 580.0), False),
        ((50.0, -20.0, 1050.1, 580.0), False),
        ((50.0, -20.0, 1050.0, 580.1), False),
        ((60.0, 0.0, 60.0, 10.0), False),
        ((60.0, 10.0, 70.0, 10.0), False),
        ((70.0, 0.0, 60.0, 10.0), False),
    ],
)
def test_a_box_lies_in_its_extent_and_encloses_something(box: tuple[float, float, float, float], ok: bool) -> None:
    extent = Extent(1000.0, 600.0, 50.0, -20.0)
    assert box_of(None, extent) == extent.box
    if ok:
        assert box_of(box, extent) == box
        return
    with pytest.raises(ScenarioError, match=r"inside the area of 1000 x 600 m from \[50, -20\] on"):
        box_of(box, extent)


def test_a_lane_is_walked_from_its_start_to_its_end() -> None:
    lane = Lane((10.0, 20.0), (13.0, 24.0), Span(1, 2))
    assert (lane.length_m, lane.point(0.0), lane.point(5.0)) == (5.0, (10.0, 20.0), (13.0, 24.0))
    assert lane.point(2.5) == pytest.approx((11.5, 22.0))


def test_vehicles_are_spread_at_random_over_their_lane_and_away_for_as_long_as_is_said() -> None:
    from scipy import stats

    lane = Lane((0, 0), (1000, 0), Span(10, 10))
    road = trajectories(Lanes((lane,)), 2000)
    assert stats.kstest(road.positions(0.0)[:, 0], "uniform", (0, 1000)).pvalue > 0.01
    leaving = trajectories(Lanes((lane,), at_end="re-enter"), 500, until_s=300.0)
    away_s = [after[0] - before[1] for spans in leaving.presence for before, after in pairwise(spans)]
    assert (min(away_s), max(away_s)) == (pytest.approx(10.0, abs=0.5), pytest.approx(60.0, abs=0.5))
    assert min(spans[-1][1] for spans in leaving.presence) >= 300.0


def test_a_grids_jitter_is_drawn_both_ways_in_x_and_y() -> None:
    middle = trajectories(Grid(), 60).positions(0.0)
    moved = trajectories(Grid(jitter_m=30.0), 60).positions(0.0) - middle
    assert (np.abs(moved).max() <= 30.0, (moved > 5.0).any(axis=0).all(), (moved < -5.0).any(axis=0).all()) == (
        True, True, True,
    )  # fmt: skip
    assert np.abs(np.corrcoef(moved.T)[0, 1]) < 0.5, "each by itself"


def test_a_high_draw_moves_a_node_of_a_grid_east_and_north() -> None:
    class Highest(Random):
        def uniform(self, a: float, b: float) -> float:
            return max(a, b)

    found = Grid(jitter_m=30.0).paths(["a"], GROUND, [Highest()], 10.0)
    assert Trajectories(found).positions(0.0).tolist() == [[530.0, 330.0]]
