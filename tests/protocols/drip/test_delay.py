"""DRIP's analysis against numerical integration and random walks."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from earshot.errors import SettingsError
from earshot.protocols.drip.delay import (
    brokers_for,
    exact_delay,
    exact_factor,
    meeting_time,
    printed_delay,
    printed_factor,
    printed_meeting_time,
    reach,
    series_factor,
)


@pytest.mark.parametrize("l", [1, 2, 3, 4, 5, 8])
def test_the_factors_are_the_integrals_of_one_minus_the_distribution(l: int) -> None:  # noqa: E741
    """E[T] = integral of 1 - P(T < t), in units of 1 / (m lambda)."""
    exact, _ = quad(lambda t: 1 - (1 - math.exp(-t)) ** l, 0, math.inf)
    two_terms, _ = quad(lambda t: l * math.exp(-t) - l * (l - 1) / 2 * math.exp(-2 * t), 0, math.inf)
    assert exact_factor(l) == pytest.approx(exact)
    assert series_factor(l) == pytest.approx(two_terms)
    assert (printed_factor(l) == pytest.approx(two_terms)) is (l == 1)


def test_the_printed_factor_is_a_quarter_of_the_square_and_three_times_the_number() -> None:
    assert [printed_factor(l) for l in (1, 2, 3, 4)] == [1.0, 2.5, 4.5, 7.0]  # noqa: E741


def walk_until_met(side: int, within: int, runs: int, seed: int) -> float:
    """The mean time until two random walks on a torus are at most `within` steps apart, from random positions."""
    random = np.random.default_rng(seed)
    steps = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    apart = random.integers(0, side, (runs, 2))
    time = np.zeros(runs)
    while True:
        folded = np.minimum(apart % side, side - apart % side).sum(axis=1)
        left = folded > within
        if not left.any():
            return float(time.mean())
        count = int(left.sum())
        apart[left] += steps[random.integers(0, 4, count)] - steps[random.integers(0, 4, count)]
        time[left] += 1


def test_random_walks_meet_as_the_reference_says_and_not_as_equation_2_prints_it() -> None:
    """From within 2 to within 5 steps the meeting time falls to a third; the printed term barely falls."""
    walked = walk_until_met(20, 5, 2000, 1) / walk_until_met(20, 2, 2000, 2)
    assert walked == pytest.approx(1 / 3, abs=0.06)
    assert meeting_time(5, 400) / meeting_time(2, 400) == pytest.approx(walked, abs=0.1)
    assert printed_meeting_time(5, 400) / printed_meeting_time(2, 400) > 0.8


def test_the_broker_number_for_a_delay_is_the_largest_that_keeps_it() -> None:
    found = brokers_for(150.0, 4, 2, 400)
    assert found.k is not None
    assert exact_delay(found.k, 4, 2, 400) <= 150.0 < exact_delay(found.k + 1, 4, 2, 400)
    assert exact_delay(7, 4, 2, 400) == found.least


def test_a_delay_below_what_any_number_gives_has_no_answer() -> None:
    found = brokers_for(150.0, 4, 2, 400, printed_delay)
    assert (found.k, found.least > 150.0) == (None, True)


def test_a_delay_that_every_number_keeps_gives_the_most_brokers_the_grid_has_room_for() -> None:
    assert brokers_for(1e6, 4, 2, 400).k == 509
    assert reach(509, 400) == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 4, 2, 400), "the wanted delay must be a positive number of steps, got 0.0"),
        ((1.0, 0, 2, 400), "nearest and copies must be at least 1, got 0 and 2"),
        ((1.0, 4, 2, 1), "the grid must have at least 4 points, got 1"),
        ((1.0, 8, 2, 4), "l + m < k needs at least 11 brokers, more than a grid of 4 points has room for"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: tuple[float, int, int, float], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        brokers_for(*arguments)
    assert str(caught.value) == message


def test_the_meeting_time_as_equation_2_prints_it() -> None:
    for alpha, grid in ((2.0, 100.0), (5.0, 400.0)):
        expected = 0.5 * grid * (0.34 * math.log(grid) - 2.0 + alpha / (2.0 * alpha - 1.0))
        assert printed_meeting_time(alpha, grid) == pytest.approx(expected)
    assert printed_meeting_time(2.0, 100.0) == pytest.approx(11.621, abs=1e-3)


def test_twice_the_copies_halve_the_delay() -> None:
    for delay, factor, meets in (
        (exact_delay, exact_factor, meeting_time),
        (printed_delay, printed_factor, printed_meeting_time),
    ):
        assert delay(10, 4, 1, 400.0) == pytest.approx(factor(4) * meets(reach(10, 400.0), 400.0))
        assert delay(10, 4, 2, 400.0) == pytest.approx(delay(10, 4, 1, 400.0) / 2.0)


def test_one_nearest_broker_and_one_copy_are_enough_to_ask_for() -> None:
    assert brokers_for(1e6, 1, 1, 400).k == 509
    assert brokers_for(1e6, 1, 1, 4).k == 5
