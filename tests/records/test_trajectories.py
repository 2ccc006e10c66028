"""Trajectories against numpy.interp, whatever is asked in whatever order."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.geometry import STILL, Position, Velocity
from earshot.records.trajectories import Trajectories, Trajectory, legs_from
from sizes import sized

metres = st.floats(-1e4, 1e4, allow_nan=False)
steps = st.floats(0.01, 50, allow_nan=False)


@st.composite
def trajectory_lists(draw: st.DrawFn) -> list[Trajectory]:
    found = []
    for i in range(draw(st.integers(1, 6))):
        count = draw(st.integers(1, 9))
        times = np.cumsum([draw(steps) for _ in range(count)]) - 5.0
        knots = [(float(time), draw(metres), draw(metres)) for time in times]
        found.append(Trajectory.through(f"n{i}", knots))
    return found


@settings(max_examples=sized(150, 20 * 150))
@given(trajectory_lists(), st.lists(st.floats(-20, 400, allow_nan=False), min_size=1, max_size=12), st.booleans())
def test_positions_are_the_straight_lines_between_knots(
    each: list[Trajectory], times: list[float], growing: bool
) -> None:
    trajectories = Trajectories(each)
    for t in sorted(times) if growing else times:
        true = np.array([(np.interp(t, one.times, one.xs), np.interp(t, one.times, one.ys)) for one in each])
        np.testing.assert_allclose(trajectories.positions(t), true, rtol=1e-9, atol=1e-6)
        for i in range(len(each)):
            assert trajectories.position(i, t) == tuple(trajectories.positions(t)[i])
            assert trajectories.velocity(i, t) == tuple(trajectories.velocities(t)[i])


@settings(max_examples=sized(60, 20 * 60))
@given(trajectory_lists(), st.floats(0, 300, allow_nan=False))
def test_velocity_leads_from_here_to_there(each: list[Trajectory], t: float) -> None:
    trajectories = Trajectories(each)
    for i, one in enumerate(each):
        later = one.times[one.times > t]
        inside = one.times[0] <= t and len(later)
        vx, vy = trajectories.velocity(i, t)
        if not inside:
            assert (vx, vy) == (0.0, 0.0)
            continue
        x, y = trajectories.position(i, t)
        end = trajectories.position(i, float(later[0]))
        assert x + vx * (later[0] - t) == pytest.approx(end[0], abs=1e-5)
        assert y + vy * (later[0] - t) == pytest.approx(end[1], abs=1e-5)
        assert math.hypot(vx, vy) <= trajectories.max_speed_m_s + 1e-9


def test_a_far_step_ahead_and_one_back_give_the_same_as_small_ones() -> None:
    zigzag = [(float(t), float(t % 7), float(t % 3)) for t in range(500)]
    far, near = Trajectories([Trajectory.through("a", zigzag)]), Trajectories([Trajectory.through("a", zigzag)])
    for t in np.arange(0, 480, 0.5):
        near.positions(float(t))
    assert far.positions(480.25).tolist() == near.positions(480.25).tolist()
    assert far.positions(3.5).tolist() == [[3.5, 0.5]]
    assert far.velocities(300.0).tolist() == [[-6.0, 1.0]], "at a knot the next leg has begun"
    assert far.positions(3.5).tolist() == [[3.5, 0.5]]
    assert far.positions(480.25).tolist() == near.positions(480.25).tolist()


def test_two_knots_at_one_time_are_a_jump_that_no_speed_counts() -> None:
    jumping = Trajectory.through("a", [(0, 0, 0), (10, 100, 0), (10, 0, 0), (20, 100, 0)])
    trajectories = Trajectories([jumping])
    assert trajectories.max_speed_m_s == 10.0
    assert trajectories.jump_times.tolist() == [10.0]
    assert not trajectories.static
    assert [trajectories.position(0, t) for t in (9.0, 10.0, 11.0)] == [(90.0, 0.0), (0.0, 0.0), (10.0, 0.0)]


def test_nodes_that_never_move_are_static() -> None:
    trajectories = Trajectories([Trajectory.standing("a", 1, 2), Trajectory.through("b", [(0, 3, 4), (9, 3, 4)])])
    assert trajectories.static
    assert trajectories.max_speed_m_s == 0.0
    assert len(trajectories.jump_times) == 0
    assert trajectories.names == ("a", "b")
    assert trajectories.positions(5.0).tolist() == [[1, 2], [3, 4]]


def test_spans_are_the_first_and_last_time_a_node_is_there() -> None:
    comes_and_goes = Trajectory.through("b", [(0, 0, 0)], presence=((2.0, 5.0), (8.0, 9.0)))
    trajectories = Trajectories([Trajectory.standing("a", 0, 0), comes_and_goes])
    assert trajectories.spans.tolist() == [[-math.inf, math.inf], [2.0, 9.0]]
    assert [trajectories.present(1, t) for t in (1.9, 2.0, 5.0, 8.5, 9.0)] == [False, True, False, True, False]


def test_no_nodes_are_no_trouble() -> None:
    empty = Trajectories([])
    assert empty.positions(3.0).shape == (0, 2)
    assert empty.spans.shape == (0, 2)
    assert empty.static


def test_trajectories_survive_pickling() -> None:
    trajectories = Trajectories([Trajectory.through("a", [(0, 0, 0), (10, 100, 0)])])
    trajectories.positions(7.0)
    assert pickle.loads(pickle.dumps(trajectories)).positions(3.0).tolist() == [[30.0, 0.0]]


@pytest.mark.parametrize(
    ("knots", "problem"),
    [
        ([(1, 0, 0), (0, 0, 0)], "a: a trajectory's times must not decrease"),
        ([(0, math.nan, 0)], "a: a trajectory's knots must be finite numbers"),
    ],
)
def test_an_impossible_trajectory_is_refused(knots: list[tuple[float, float, float]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Trajectory.through("a", knots)


def test_a_recorded_node_is_known_from_its_first_to_its_last_sample() -> None:
    recorded = Trajectory.through("a", [(10, 0, 0), (20, 100, 0), (20, 100, 50), (30, 100, 60)])
    assert recorded.recorded_at(9.9) is None
    assert recorded.recorded_at(10.0) == (Position(0.0, 0.0), Velocity(10.0, 0.0))
    assert recorded.recorded_at(15.0) == (Position(50.0, 0.0), Velocity(10.0, 0.0))
    assert recorded.recorded_at(20.0) == (Position(100.0, 50.0), Velocity(0.0, 1.0))
    assert recorded.recorded_at(30.0) == (Position(100.0, 60.0), Velocity(0.0, 1.0)), "that of the last leg"
    assert recorded.recorded_at(30.1) is None
    assert Trajectory.standing("b", 1, 2).recorded_at(0.0) == (Position(1.0, 2.0), STILL)


def test_of_two_last_samples_at_one_time_the_later_one_counts_and_the_node_stands() -> None:
    recorded = Trajectory.through("a", [(10, 0, 0), (20, 100, 0), (20, 130, 40)])
    assert recorded.recorded_at(20.0) == (Position(130.0, 40.0), STILL)
    assert recorded.recorded_at(19.0) == (Position(90.0, 0.0), Velocity(10.0, 0.0))
    assert recorded.recorded_at(20.1) is None


@given(trajectory_lists(), st.floats(-20, 100), st.floats(0.01, 100))
def test_legs_lead_without_gaps_from_the_start_to_the_end(each: list[Trajectory], start: float, lasting: float) -> None:
    end = start + lasting
    trajectories = Trajectories(each)
    legs = trajectories.legs(start, end)
    for i in range(len(each)):
        own = np.flatnonzero(legs.node == i)
        assert (legs.start[own[0]], legs.end[own[-1]]) == (start, end)
        assert (legs.end[own[:-1]] == legs.start[own[1:]]).all()
        for k in own:
            middle = (legs.start[k] + legs.end[k]) / 2.0
            for time in (legs.start[k], middle):
                here = np.array([legs.x_m[k], legs.y_m[k]]) + (time - legs.start[k]) * np.array(
                    [legs.x_m_s[k], legs.y_m_s[k]]
                )
                np.testing.assert_allclose(here, trajectories.position(i, time), rtol=1e-6, atol=1e-4)
    assert sorted(legs.node) == list(legs.node)


def test_legs_leave_out_jumps_and_are_cut_to_their_interval() -> None:
    moving = Trajectories([Trajectory.through("a", [(0, 0, 0), (10, 20, 0), (10, 50, 0), (20, 50, 30)])])
    legs = moving.legs(5.0, 15.0)
    assert [list(map(float, column)) for column in legs] == [
        [0, 0], [5, 10], [10, 15], [10, 50], [0, 0], [2, 0], [0, 3],
    ]  # fmt: skip
    assert [list(map(float, column)) for column in moving.legs(5.0, 10.0)] == [[0], [5], [10], [10], [0], [2], [0]]


def test_knots_are_those_between_with_the_positions_at_both_ends() -> None:
    jumping = Trajectories(
        [Trajectory.standing("b", 1, 2), Trajectory.through("a", [(0, 0, 0), (10, 20, 0), (10, 50, 0), (20, 50, 30)])]
    )
    before = math.nextafter(10.0, -math.inf)
    assert jumping.knots(1, 5.0, 15.0) == [(5.0, 10, 0), (before, 20, 0), (10.0, 50, 0), (15.0, 50, 15)]
    assert jumping.knots(1, 10.0, 20.0) == [(10.0, 50, 0), (20.0, 50, 30)]
    assert jumping.knots(1, 12.0, 12.0) == [(12.0, 50, 6)]
    assert jumping.knots(0, 1.0, 3.0) == [(1.0, 1, 2), (3.0, 1, 2)]


def test_a_node_is_present_from_the_begin_of_an_interval_until_just_before_its_end() -> None:
    there = Trajectories([Trajectory.through("a", [(0, 0, 0)], presence=((1.0, 2.0), (4.0, 5.0)))])
    assert [there.present(0, t) for t in (0.9, 1.0, 1.9, 2.0, 4.0, 5.0)] == [False, True, True, False, True, False]


def test_the_fastest_leg_counts_both_directions() -> None:
    assert Trajectories([Trajectory.through("a", [(0, 0, 0), (2, 6, -8)])]).max_speed_m_s == 5.0
    assert Trajectories([Trajectory.through("a", [(0, 0, 0), (0, 0, 0)])]).jump_times.size == 0
    assert list(Trajectories([Trajectory.through("a", [(3, 0, 0), (3, 0, 1)])]).jump_times) == [3.0]


def test_the_legs_of_rows_end_with_the_next_row_of_their_node() -> None:
    node = np.array([0, 0, 0, 1, 2, 2, 3, 3])
    time = np.array([0.0, 2.0, 6.0, 1.0, 3.0, 3.0, 4.0, 8.0])
    x, y = np.array([0.0, 4.0, 4.0, 9.0, 1.0, 5.0, 0.0, 4.0]), np.array([1.0, 1.0, 9.0, 9.0, 2.0, 2.0, 8.0, 0.0])
    assert [list(column) for column in legs_from(node, time, x, y)] == [
        [2, 6, 6, 1, 3, 3, 8, 8], [2, 0, 0, 0, 0, 0, 1, 1], [0, 2, 2, 0, 0, 0, -2, -2],
    ]  # fmt: skip


def test_one_node_is_asked_for_in_any_order_as_all_are() -> None:
    each = [
        Trajectory.through("a", [(0.0, 0.0, 0.0), (10.0, 100.0, 50.0), (20.0, 100.0, 0.0), (20.0, 7.0, 7.0)]),
        Trajectory.through("b", [(5.0, 900.0, 0.0), (6.0, 0.0, 0.0), (30.0, 240.0, 24.0)]),
    ]
    times = [0.0, 3.0, 9.9, 10.0, 15.0, 19.9, 20.0, 25.0, 5.0, 5.5, 6.0, 29.0, 31.0, -4.0, 12.0, 40.0, 0.5]
    asked = Trajectories(each)
    for time in times:
        fresh = Trajectories(each)
        assert [asked.position(i, time) for i in (0, 1)] == [tuple(row) for row in fresh.positions(time).tolist()]
        assert [asked.velocity(i, time) for i in (0, 1)] == [tuple(row) for row in fresh.velocities(time).tolist()]
