"""Who is within range of whom, against the distance of every pair."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.pairs import pairs_within
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.mobility import Trajectories, Trajectory
from sizes import LONG

places = st.tuples(st.floats(-500.0, 500.0), st.floats(-500.0, 500.0))


@given(st.lists(places, max_size=60), st.floats(0.5, 400.0))
def test_the_grid_finds_every_pair_once(points: list[tuple[float, float]], distance_m: float) -> None:
    where = np.array(points).reshape(-1, 2)
    a, b, squared = pairs_within(where[:, 0], where[:, 1], distance_m)
    found = sorted(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
    assert found == [
        (i, j) for i in range(len(where)) for j in range(i + 1, len(where)) if near(where, i, j, distance_m)
    ]
    assert squared.tolist() == [float(((where[i] - where[j]) ** 2).sum()) for i, j in zip(a, b, strict=True)]


def near(points: np.ndarray[Any, Any], i: int, j: int, distance_m: float) -> bool:
    dx, dy = points[i] - points[j]
    return bool(dx * dx + dy * dy <= distance_m * distance_m)


def test_nodes_that_stand_still_have_their_neighbours_in_order() -> None:
    nodes = Trajectories([Trajectory.standing(str(k), 10.0 * k, 0.0) for k in range(5)])
    neighbours = neighbours_within(nodes, 20.0)
    assert [neighbours.of(i, 3.0) for i in range(5)] == [[1, 2], [0, 2, 3], [0, 1, 3, 4], [1, 2, 4], [2, 3]]


@st.composite
def paths(draw: st.DrawFn) -> list[Trajectory]:
    """Nodes that go, stand and jump."""
    found = []
    for node in range(draw(st.integers(2, 10))):
        steps = draw(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 1.0, 7.0, 60.0]), places), min_size=1, max_size=6))
        times = np.cumsum([step for step, _ in steps])
        knots = [(float(time), x, y) for time, (_, (x, y)) in zip(times, steps, strict=True)]
        found.append(Trajectory.through(f"n{node}", knots))
    return found


@settings(max_examples=2000 if LONG else 150)
@given(
    paths(),
    st.floats(20.0, 400.0),
    st.lists(st.one_of(st.floats(0.0, 200.0), st.sampled_from([0.1, 1.0, 7.0, 8.0, 60.0])), min_size=1, max_size=40),
)
def test_moving_nodes_have_the_neighbours_their_distance_gives(
    ways: list[Trajectory], range_m: float, times: list[float]
) -> None:
    nodes = Trajectories(ways)
    neighbours = neighbours_within(nodes, range_m)
    for time in sorted(times):
        where = nodes.positions(time)
        for i in range(len(nodes)):
            apart = np.sqrt(((where - where[i]) ** 2).sum(axis=1))
            sure = {j for j in range(len(nodes)) if j != i and apart[j] < range_m - 1e-6}
            possible = {j for j in range(len(nodes)) if j != i and apart[j] < range_m + 1e-6}
            found = neighbours.of(i, time)
            assert sure <= set(found) <= possible
            assert found == sorted(set(found))


@pytest.mark.parametrize("step_s", [0.003, 0.4, 9.0])
def test_bursts_and_steady_questions_give_the_same_neighbours(step_s: float) -> None:
    """However the windows fall, the answer at one time is one and the same."""
    chance = np.random.default_rng(7)
    ways = [
        Trajectory.through(f"n{i}", [(float(t), *chance.uniform(0, 300, 2)) for t in range(0, 100, 10)])
        for i in range(30)
    ]
    nodes = Trajectories(ways)
    asked = neighbours_within(nodes, 60.0)
    for time in np.arange(0.0, min(90.0, 500 * step_s), step_s).tolist():
        fresh = neighbours_within(nodes, 60.0)
        assert [asked.of(i, time) for i in range(30)] == [fresh.of(i, time) for i in range(30)]


def test_a_list_once_handed_out_stays_as_it_is() -> None:
    nodes = Trajectories([Trajectory.standing("a", 0, 0), Trajectory.through("b", [(0, 5, 0), (10, 105, 0)])])
    neighbours = neighbours_within(nodes, 50.0)
    before = neighbours.of(0, 0.0)
    assert (before, neighbours.of(0, 0.1), neighbours.of(0, 9.0), before) == ([1], [1], [], [1])


def test_a_jump_is_seen_at_once() -> None:
    nodes = Trajectories(
        [
            Trajectory.standing("a", 0, 0),
            Trajectory.through("b", [(0, 900, 0), (5.0, 900, 0), (5.0, 10, 0), (7.0, 10, 0), (7.0, 900, 0)]),
        ]
    )
    neighbours = neighbours_within(nodes, 100.0)
    found = [neighbours.of(0, time) for time in (0.0, 4.99, 5.0, 5.01, 6.99, 7.0, 7.01)]
    assert found == [[], [], [1], [1], [1], [], []]


@pytest.mark.parametrize("range_m", [0.5, 1.0, 1.9, 30.0])
def test_a_short_range_is_left_at_the_moment_its_distance_says(range_m: float) -> None:
    """b leaves a at the range a second, however the windows fall in which it is asked for."""
    nodes = Trajectories(
        [Trajectory.standing("a", 0, 0), Trajectory.through("b", [(0, 0, 0), (2, 2 * range_m, 0), (4, 0, 0)])]
    )
    for step_s in (0.01, 0.03, 0.11):
        asked = neighbours_within(nodes, range_m)
        times = [step_s / 2 + k * step_s for k in range(int(4 / step_s))]
        found = [asked.of(0, time) for time in times]
        assert found == [[1] if time <= 1.0 or time >= 3.0 else [] for time in times]
