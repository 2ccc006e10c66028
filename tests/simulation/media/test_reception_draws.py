"""What becomes of single frames under a reception model: at the range, at a jump, by the model's defaults."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest
from small_networks import standing

from earshot.errors import SettingsError
from earshot.records.trajectories import Trajectories, Trajectory
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.media.reception import (
    Arrivals,
    Disk,
    LogDistance,
    LossyReception,
    Nakagami,
    Shadowing,
)
from earshot.simulation.media.reception_draws import ChanceDraws, Draw, StrengthDraws, Uniforms, reception_draws

RANGE_M = 100.0
CERTAIN = LossyReception(certain_m=RANGE_M)
"Every node within the range reads every frame, and no other node."


def draws(
    reception: Any, trajectories: Trajectories, by_distance: bool = True, powers: bool = False, carrier_m: float = 100.0
) -> Draw:
    return reception_draws(
        reception.open(RANGE_M, Random(0)),
        RANGE_M,
        carrier_m,
        trajectories,
        lambda range_m: neighbours_within(trajectories, range_m),
        Random(5),
        with_powers=powers,
        by_distance=by_distance,
    )


both_ways = pytest.mark.parametrize("by_distance", [True, False], ids=["by chances", "by strengths"])


@both_ways
def test_a_frame_that_is_lost_at_the_very_range_fades_and_beyond_it_nothing_was_to_be_read(by_distance: bool) -> None:
    drawn = draws(LossyReception(), standing((0, 0), (100, 0), (0, 100.5), (0, -50)), by_distance, carrier_m=200.0)
    assert drawn(0, 1.0)._replace(powers=[]) == ([1, 2, 3], [3], [1], [])
    assert drawn(1, 1.0).faded == [0], "in both directions"


@both_ways
def test_a_node_is_reached_from_the_moment_at_which_it_jumps_into_the_range(by_distance: bool) -> None:
    nodes = Trajectories([
        Trajectory.standing("a", 0, 0),
        Trajectory.through("b", [(0, 900, 0), (5.0, 900, 0), (5.0, 10, 0), (7.0, 10, 0), (7.0, 900, 0), (9.0, 900, 0)]),
    ])  # fmt: skip
    drawn = draws(CERTAIN, nodes, by_distance)
    assert [drawn(0, time).in_range for time in (0.0, 4.99, 5.0, 6.99, 7.0, 8.0)] == [[], [], [1], [1], [], []]
    late = draws(CERTAIN, nodes, by_distance)
    assert [late(0, time).in_range for time in (6.0, 8.0)] == [[1], []], "a first frame after a jump"


@both_ways
def test_a_node_that_moves_leaves_the_range_where_its_path_does(by_distance: bool) -> None:
    nodes = Trajectories([
        Trajectory.standing("a", 0, 0), Trajectory.through("b", [(0, 0, 0), (40.0, 400, 0)]),
    ])  # fmt: skip
    drawn = draws(CERTAIN, nodes, by_distance)
    found = [(time, drawn(0, time).in_range) for time in np.arange(0.0, 40.0, 0.125).tolist()]
    unsure_m = 0.05 * RANGE_M if by_distance else 1e-6
    assert all(near == [1] for time, near in found if 10 * time < RANGE_M - unsure_m)
    assert all(near == [] for time, near in found if 10 * time > RANGE_M + unsure_m)


@pytest.mark.parametrize(
    ("drawn", "read"),
    [(0.505, [True, False, False, False]), (0.485, [True, True, True, False]), (0.475, [True, True, True, True])],
)
def test_within_a_window_a_chance_falls_evenly_with_the_distance(drawn: float, read: list[bool]) -> None:
    """b goes away at 10 m/s; from 49 m on the chance of this model is 0.51, and 0.01 less each tenth of a second. A
    window lasts a quarter of a second."""
    nodes = Trajectories([
        Trajectory.standing("a", 0, 0), Trajectory.through("b", [(0, 0, 0), (20.0, 200, 0)]),
    ])  # fmt: skip
    draw = draws(LossyReception(certain_m=0.0, exponent=1.0), nodes)
    chances = draw.__self__  # type: ignore[attr-defined]
    chances._take = lambda count: np.full(count, drawn)
    found = [draw(0, 4.9 + after_s) for after_s in (0.0, 0.1, 0.2, 0.3)]
    assert [(one.in_range, one.faded) for one in found] == [([1], []) if each else ([], [1]) for each in read]


def test_chances_serve_where_distance_alone_decides_and_nobody_asks_for_powers() -> None:
    nodes = standing((0, 0), (50, 0))
    kinds = [
        type(draws(*given).__self__)  # type: ignore[attr-defined]
        for given in (
            (Nakagami(), nodes),
            (Nakagami(), nodes, False),
            (Nakagami(), nodes, True, True),
            (Nakagami(sigma_db=2.0), nodes),
            (Disk(), nodes),
        )
    ]
    assert kinds == [ChanceDraws, StrengthDraws, StrengthDraws, StrengthDraws, StrengthDraws]


def test_powers_are_those_of_the_nodes_that_sense_the_frame() -> None:
    """In free space power falls with the square of the distance; it is 1 at the range."""
    nodes = standing((0, 0), (50, 0), (0, 250), (0, -150), (-100, 0))
    sensed_by, in_range, faded, powers = draws(Disk(), nodes, True, True, 200.0)(0, 1.0)
    assert (sensed_by, in_range, faded) == ([1, 3, 4], [1, 4], [])
    assert powers == pytest.approx([4.0, 1 / 1.5**2, 1.0])
    assert draws(Disk(), nodes, True, False, 200.0)(0, 1.0).powers == []
    assert draws(Disk(), standing((0, 0), (900, 0)), True, True)(0, 1.0) == ([], [], [], [])


def test_random_numbers_come_in_the_same_order_however_many_are_taken_at_once() -> None:
    most = Uniforms.BLOCK
    one_by_one, at_once, large = Uniforms(Random(1)), Uniforms(Random(1)), Uniforms(Random(1))
    whole = at_once.take(most)
    assert (
        np.concatenate([one_by_one.take(1), one_by_one.take(2), one_by_one.take(most - 3)]).tolist() == whole.tolist()
    )
    assert large.take(most + 5)[:most].tolist() == whole.tolist()
    following = at_once.take(3).tolist()
    assert one_by_one.take(3).tolist() == following
    assert len({*whole.tolist(), *following}) == most + 3


# Models.


def arrivals(distances_m: list[float], take: Any = None) -> Arrivals:
    at = np.array(distances_m)
    nodes = np.arange(1, len(at) + 1)
    return Arrivals(0, nodes, at, (0.0, 0.0), (at, at * 0.0), take or Uniforms(Random(2)).take)


@pytest.mark.parametrize(
    ("steps", "expected_m"),
    [(((50.0, 3.0),), (3.0, 3.0, 1.0, 1.0, 1.0)), (((50.0, 3.0), (150.0, 1.5)), (3.0, 3.0, 1.5, 1.5, 1.0))],
    ids=["one step", "two steps"],
)
def test_a_stepped_model_draws_with_the_m_of_each_distance(
    steps: tuple[tuple[float, float], ...], expected_m: tuple[float, ...]
) -> None:
    distances_m = [20.0, 50.0, 51.0, 150.0, 151.0]
    stepped = Nakagami(m=1.0, m_steps=steps).open(RANGE_M, Random(0))
    alone = [Nakagami(m=m).open(RANGE_M, Random(0)) for m in expected_m]
    found = stepped.strengths_db(arrivals(distances_m))
    expected = [model.strengths_db(arrivals(distances_m))[place] for place, model in enumerate(alone)]
    assert found.tolist() == expected


def test_the_highest_gain_of_a_stepped_model_is_that_of_its_least_even_m() -> None:
    """Rayleigh fading lifts one frame of a thousand by 10 log10(ln 1000) dB or more."""
    rayleigh_db = 10 * math.log10(math.log(1000.0))
    for steps in (((50.0, 3.0),), ((50.0, 3.0), (80.0, 7.0))):
        assert Nakagami(m=1.0, m_steps=steps).open(RANGE_M, Random(0)).highest_gain_db() == pytest.approx(
            rayleigh_db, abs=0.02
        )
    assert Nakagami(m=3.0, m_steps=((50.0, 1.0),)).open(RANGE_M, Random(0)).highest_gain_db() == pytest.approx(
        rayleigh_db, abs=0.02
    )


def test_shadowing_lifts_hardly_a_frame_by_more_than_its_one_in_a_thousand() -> None:
    """Of a normal distribution one in a thousand lies 3.09 standard deviations above the mean."""
    assert Shadowing(sigma_db=4.0).open(RANGE_M, Random(0)).highest_gain_db() == pytest.approx(12.36)
    both = Nakagami(m=1.0, sigma_db=4.0).open(RANGE_M, Random(0)).highest_gain_db()
    assert both == pytest.approx(12.36 + 10 * math.log10(math.log(1000.0)), abs=0.02)
    assert LogDistance(RANGE_M, 2.0).highest_gain_db() == 0.0


def test_shadowing_and_fading_add_up() -> None:
    distances_m = [20.0, 60.0, 140.0]
    shadow = Shadowing(sigma_db=6.0).open(RANGE_M, Random(3)).strengths_db(arrivals(distances_m))
    fading = Nakagami(m=2.0).open(RANGE_M, Random(3)).strengths_db(arrivals(distances_m))
    both = Nakagami(m=2.0, sigma_db=6.0).open(RANGE_M, Random(3))
    mean_db = both.mean_db(np.array(distances_m))
    assert both.strengths_db(arrivals(distances_m)) == pytest.approx(shadow + fading - mean_db)


def test_the_models_defaults_are_those_of_the_documentation() -> None:
    lossy, shadowing, nakagami = LossyReception(), Shadowing(), Nakagami()
    assert (lossy.certain_m, lossy.exponent, lossy.path_loss_exponent) == (50.0, 2.0, 2.0)
    assert (shadowing.sigma_db, shadowing.decorrelation_m, shadowing.path_loss_exponent) == (4.0, 20.0, 2.0)
    assert (nakagami.m, nakagami.m_steps, nakagami.path_loss_exponent) == (1.0, (), 2.0)
    assert (nakagami.sigma_db, nakagami.decorrelation_m, Disk().path_loss_exponent) == (0.0, 20.0, 2.0)


@pytest.mark.parametrize("m", [0.1, 100.0])
def test_m_lies_between_a_tenth_and_a_hundred(m: float) -> None:
    assert Nakagami(m=m, m_steps=((50.0, m),)).m == m
    wrong = m * (0.99 if m < 1 else 1.01)
    for given in ({"m": wrong}, {"m_steps": ((50.0, wrong),)}):
        with pytest.raises(SettingsError, match=r"m must be from 0\.1 to 100"):
            Nakagami(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds_m", [(50.0, 50.0), (60.0, 50.0)])
def test_the_distances_of_m_steps_grow(bounds_m: tuple[float, float]) -> None:
    with pytest.raises(SettingsError, match="m_steps must have growing distances"):
        Nakagami(m_steps=tuple((until_m, 2.0) for until_m in bounds_m))
