"""Trajectories that become known step by step, beside some that are known from the start."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot.records.trajectories import Trajectory
from earshot.simulation.mobility.stepped import AWAY_M, JUMP_M, StepHistory, SteppedTrajectories, away

BUS = Trajectory.through("bus", [(0.0, 0.0, 0.0), (1.0, 5.0, 0.0), (3.0, 5.0, 8.0)], ((0.0, 2.5),))


def stepped() -> SteppedTrajectories:
    """A bus whose way is known, and two cars: steps of one second, 20 m/s at most."""
    planned = [Trajectory.standing("car-0", 1.0, 1.0), BUS, Trajectory.standing("car-2", 2.0, 2.0)]
    return SteppedTrajectories(planned, [2, 0], np.arange(5.0), 20.0)


def driven() -> SteppedTrajectories:
    found = stepped()
    assert found.advance(0.0, {0: (0.0, 10.0)}) == ([], [0])
    assert found.advance(1.0, {0: (10.0, 10.0), 2: (50.0, 50.0)}) == ([], [2])
    assert found.advance(2.0, {0: (31.0, 10.0), 2: (50.0, 70.0)}) == ([], [])
    assert found.advance(3.0, {2: (50.0, 70.0)}) == ([0], [])
    return found


def rows(trajectory: Trajectory) -> list[tuple[float, float, float]]:
    columns = (trajectory.times, trajectory.xs, trajectory.ys)
    return [(float(time), float(x_m), float(y_m)) for time, x_m, y_m in zip(*columns, strict=True)]


def test_what_is_known_of_each_node_can_be_taken_out() -> None:
    """car-0 seems to go 21 m in a second: it stands and jumps, and leaves at 2 s; car-2 goes exactly 20 m/s."""
    found = driven()
    assert rows(found.trajectory(0)) == [(0.0, 0.0, 10.0), (1.0, 10.0, 10.0), (2.0, 10.0, 10.0), (2.0, 31.0, 10.0)]
    assert rows(found.trajectory(1)) == rows(BUS)
    assert rows(found.trajectory(2)) == [(1.0, 50.0, 50.0), (2.0, 50.0, 70.0), (3.0, 50.0, 70.0)]
    assert [found.trajectory(i).name for i in range(3)] == ["car-0", "bus", "car-2"]
    assert found.presence == (((0.0, 2.0),), ((0.0, 2.5),), ((1.0, math.inf),))
    finished = found.finished()
    assert (finished.names, finished.presence) == (found.names, found.presence)
    assert found.knots(1, 0.0, 9.0) == finished.knots(1, 0.0, 9.0)


def test_places_within_the_present_step_and_before_it() -> None:
    found = driven()
    assert found.positions(2.5).tolist() == [[31.0, 10.0], [5.0, 6.0], [50.0, 70.0]]
    assert found.positions(1.5).tolist() == [[10.0, 10.0], [5.0, 2.0], [50.0, 60.0]]
    assert found.velocities(1.5).tolist() == [[0.0, 0.0], [0.0, 4.0], [0.0, 20.0]]
    assert (found.position(2, 1.25), found.velocity(2, 1.25)) == ((50.0, 55.0), (0.0, 20.0))
    assert found.position(2, 0.5) == away(2), "before it came"
    assert found.advance(4.0, {2: (40.0, 60.0)}) == ([], [])
    assert found.positions(3.5).tolist() == [list(away(0)), [5.0, 8.0], [45.0, 65.0]]
    assert found.position(0, 3.5) == away(0)


def test_legs_of_the_present_step() -> None:
    found = driven()
    found.advance(4.0, {2: (40.0, 60.0)})
    legs = found.legs(3.25, 3.75)
    columns = (legs.node, legs.x_m, legs.y_m, legs.x_m_s, legs.y_m_s)
    reported = [tuple(map(float, row)) for row in zip(*columns, strict=True)]
    assert reported == [(0, *away(0), 0, 0), (1, 5.0, 8.0, 0, 0), (2, 47.5, 67.5, -10.0, -10.0)]
    for start, end in ((2.9, 3.5), (3.5, 4.1)):
        with pytest.raises(AssertionError, match="not within the present step"):
            found.legs(start, end)


def test_steps_count_as_jumps_and_the_fastest_bounds_the_speed() -> None:
    found = stepped()
    assert (found.jump_times.tolist(), found.max_speed_m_s, found.static) == ([0.0, 1.0, 2.0, 3.0, 4.0], 20.0, False)
    assert found.positions(0.0).tolist() == [list(away(0)), [0.0, 0.0], list(away(2))]
    assert away(0)[1] == away(2)[1] == AWAY_M
    assert away(2)[0] - away(0)[0] == 20_000.0


@pytest.mark.parametrize(
    ("off_m", "expected"),
    [
        (JUMP_M, [(0.0, 0.0, 0.0), (1.0, JUMP_M, 0.0)]),
        (2 * JUMP_M, [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 2 * JUMP_M, 0.0)]),
    ],
)
def test_an_end_that_is_off_by_rounding_is_no_jump(off_m: float, expected: list[tuple[float, float, float]]) -> None:
    history = StepHistory(1)
    history.add(0.0, (0.0, 0.0))
    assert history.knots(1.0, (off_m, 0.0)) == expected
    assert StepHistory(1).knots(1.0, None) == [(0.0, 0.0, 0.0)], "it never came"
