"""Intervals over seeds: they stay within bounds, and hold the truth about as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.pipeline.campaigns.intervals import AMOUNT, SHARE, differ, difference, exact, figure_of, ratio


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_a_shares_interval_holds_its_mean_and_stays_between_0_and_1(values: list[float]) -> None:
    figure = figure_of(by_seed(*values), SHARE)
    assert 0 <= figure.low <= figure.mean + 1e-12
    assert figure.mean - 1e-12 <= figure.high <= 1


@given(st.lists(st.floats(1e3, 1e6), min_size=2, max_size=30))
def test_an_unbounded_interval_is_students(values: list[float]) -> None:
    from scipy import stats

    figure = figure_of(by_seed(*values))
    error = float(stats.sem(values))
    if error > 1e-6:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=error)
        assert (figure.low, figure.high) == (pytest.approx(low, rel=1e-6, abs=1), pytest.approx(high, rel=1e-6, abs=1))


def test_equal_values_have_an_interval_without_width() -> None:
    figure = figure_of(by_seed(0.1, 0.1, 0.1), SHARE)
    assert (figure.low, figure.high) == (figure.mean, figure.mean)


def test_an_amount_is_never_below_0() -> None:
    assert figure_of(by_seed(0.0, 10.0), AMOUNT).low == 0.0


@pytest.mark.parametrize("law", [(8.0, 2.0), (30.0, 1.5), (2.0, 2.0)], ids=["about 0.8", "near 1", "anywhere"])
def test_students_interval_covers_better_than_a_bootstrap_of_five_seeds(law: tuple[float, float]) -> None:
    """The comment in `intervals` rests on this."""
    random = np.random.default_rng(7)
    truth = law[0] / sum(law)
    samples = random.beta(*law, size=(1500, 5))
    ours = [figure_of(by_seed(*values), SHARE) for values in samples]
    covered = float(np.mean([one.low <= truth <= one.high for one in ours]))
    drawn = samples[:, random.integers(0, 5, (400, 5))].mean(axis=2)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
    bootstrapped = float(np.mean((low <= truth) & (truth <= high)))
    assert covered > 0.9 > 0.88 > bootstrapped


def test_differences_are_paired_by_seed() -> None:
    one, other = figure_of({0: 0.5, 1: 0.7, 2: 0.9}), figure_of({1: 0.6, 2: 0.8, 3: 0.1})
    apart = difference(one, other)
    assert apart is not None
    assert (apart.mean, apart.seeds) == (pytest.approx(0.1), 2)
    assert differ(one, other)


def test_without_common_seeds_the_intervals_decide() -> None:
    one, near, far = figure_of({0: 0.5, 1: 0.52}), figure_of({2: 0.51, 3: 0.53}), figure_of({2: 9.0, 3: 9.01})
    assert difference(one, near) is None
    assert not differ(one, near)
    assert differ(one, far)


def test_single_seeds_differ_unless_they_are_equal() -> None:
    assert differ(figure_of({0: 0.5}), figure_of({0: 0.6}))
    assert not differ(figure_of({0: 0.5}), figure_of({0: 0.5}))
    assert math.isnan(figure_of({0: 0.5}).low)


def test_values_of_busy_and_calm_parts_differ_by_a_factor_and_not_by_an_amount() -> None:
    busy, twice = figure_of(by_seed(0.2, 0.001)), figure_of(by_seed(0.4, 0.00202))
    assert not differ(busy, twice)
    assert differ(busy, twice, by_ratio=True)
    times = ratio(twice, busy)
    assert times is not None
    assert times.mean == pytest.approx(math.log(2 * 1.01**0.5))
    assert not differ(busy, figure_of(by_seed(0.4, 0.0009)), by_ratio=True)
    assert not differ(busy, busy, by_ratio=True)
    assert differ(figure_of({1: 0.2}), figure_of({1: 0.3}), by_ratio=True), "of one seed, any difference counts"
    assert not differ(figure_of({1: 0.2}), figure_of({1: 0.2}), by_ratio=True)


def test_a_value_of_nothing_or_without_end_has_no_ratio_and_amounts_decide() -> None:
    nothing, some = figure_of(by_seed(0.0, 0.0)), figure_of(by_seed(1.0, 1.0))
    assert ratio(some, nothing) is None
    assert ratio(figure_of({1: 1.0}), figure_of({2: 1.0})) is None
    assert ratio(figure_of({1: math.inf}), figure_of({1: 1.0})) is None
    assert differ(some, nothing, by_ratio=True)


@pytest.mark.parametrize(
    ("values", "mean", "half"),
    [
        ((1.0, 3.0), 2.0, 12.706),  # t of one degree of freedom, times a standard error of 1
        ((1.0, 2.0, 3.0), 2.0, 4.303 / math.sqrt(3)),
        ((2.0, 4.0, 4.0, 4.0, 6.0), 4.0, 2.776 * math.sqrt(2 / 5)),
    ],
)
def test_intervals_of_the_text_book(values: tuple[float, ...], mean: float, half: float) -> None:
    figure = figure_of(by_seed(*values))
    assert (figure.mean, figure.seeds, figure.has_interval) == (mean, len(values), True)
    assert (mean - figure.low, figure.high - mean) == (pytest.approx(half, rel=1e-3), pytest.approx(half, rel=1e-3))
    cut = figure_of(by_seed(*values), (mean - 0.1, mean + 0.2))
    assert (cut.low, cut.high) == (mean - 0.1, mean + 0.2)


@pytest.mark.parametrize(
    ("ours", "theirs", "apart"),
    [
        ((2.0, 3.0, 4.0), (1.0, 2.0, 3.0), True),  # every seed says the same
        ((1.0, 2.0, 3.0), (2.0, 3.0, 4.0), True),
        ((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), False),
        ((1.0, 2.0, 3.0), (1.0, 2.0, 3.0 + 1e-10), False),  # a rounding error
        ((1.0, 5.0, 3.0), (2.0, 2.0, 2.0), False),  # the seeds contradict each other
        ((9.0, 9.5, 10.0), (2.0, 2.0, 2.0), True),
        ((2.0, 2.0, 2.0), (9.0, 9.5, 10.0), True),
    ],
)
def test_two_figures_differ_where_the_interval_of_their_difference_leaves_out_nothing(
    ours: tuple[float, ...], theirs: tuple[float, ...], apart: bool
) -> None:
    one, other = figure_of(by_seed(*ours)), figure_of(by_seed(*theirs))
    assert differ(one, other) is apart
    assert differ(other, one) is apart
    assert differ(one, other, by_ratio=True) is differ(other, one, by_ratio=True)


def test_figures_without_common_seeds_differ_where_their_intervals_are_apart() -> None:
    low, high = figure_of({0: 1.0, 1: 1.01, 2: 1.02}), figure_of({3: 2.0, 4: 2.01, 5: 2.02})
    assert differ(low, high)
    assert differ(high, low)
    wide = figure_of({6: 1.0, 7: 3.0, 8: 2.0})
    assert not differ(low, wide)
    assert not differ(wide, low)


def test_intervals_that_touch_are_not_apart() -> None:
    one, other = figure_of({0: 1.0, 1: 1.0}), figure_of({2: 1.0, 3: 1.0})
    assert (one.low, one.high) == (other.low, other.high) == (1.0, 1.0)
    assert not differ(one, other)
    assert not differ(other, one)


@pytest.mark.parametrize(
    ("theirs", "apart"),
    [((1.5, 1.52, 1.48), True), ((0.66, 0.67, 0.65), True), ((1.1, 0.9, 1.05), False), ((0.9, 1.1, 0.95), False)],
)
def test_two_figures_differ_by_a_factor_where_its_interval_leaves_out_one(
    theirs: tuple[float, ...], apart: bool
) -> None:
    ours = figure_of(by_seed(1.0, 1.0, 1.0))
    assert differ(ours, figure_of(by_seed(*theirs)), by_ratio=True) is apart
    assert differ(figure_of(by_seed(*theirs)), ours, by_ratio=True) is apart


def test_an_exact_value_has_no_interval() -> None:
    figure = exact(0.7)
    assert (figure.mean, figure.seeds, figure.has_interval, math.isnan(figure.high)) == (0.7, 1, False, True)
