"""Each mobility model keeps its promises: places, speeds, pauses, steady states."""

import math
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import stats

from earshot.errors import ScenarioError
from earshot.simulation import SettingsTable
from earshot.simulation.draws import Span
from earshot.simulation.extent import Extent
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
