"""DRIP's analysis (section V.C): how long multi-copy-multi-destination takes, as printed and as derived.

From equation (1), P(T < t) = (1 - exp(-lambda m t)) ** l, the expectation is H_l / (m lambda), H_l being
1 + 1/2 + ... + 1/l: the maximum of l exponential times, each of rate m lambda. The paper keeps the first
two terms of the expansion, which gives (5 l - l ** 2) / (4 m lambda), and prints (l ** 2 + 3 l) / (4 m lambda):
the sign of the second term is lost. See docs/papers/drip.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from earshot.errors import SettingsError


def exact_factor(l: int) -> float:  # noqa: E741 (the paper's symbol)
    """E[T] m lambda from equation (1)."""
    return math.fsum(1 / i for i in range(1, l + 1))


def series_factor(l: int) -> float:  # noqa: E741
    """The same from the two terms that the paper keeps. Exact for l = 1 and 2; not positive from 5 on."""
    return (5 * l - l**2) / 4


def printed_factor(l: int) -> float:  # noqa: E741
    """The same as the paper prints it."""
    return (l**2 + 3 * l) / 4


def reach(k: float, grid: float) -> float:
    """Symbol alpha: the distance over which two of k brokers can communicate, in steps of a grid of `grid` points."""
    return 2 * math.sqrt(grid / (math.pi * k))


def meeting_time(alpha: float, grid: float) -> float:
    """1 / lambda: steps until two random walks on a torus come within alpha of each other, after the paper's
    reference [9], whose term is alpha / (2 ** alpha - 1)."""
    # alpha / (2 ** alpha - 1), written so that a large alpha does not overflow.
    halvings = alpha * math.log(2)
    term = alpha * math.exp(-halvings) / -math.expm1(-halvings)
    return 0.5 * grid * (0.34 * math.log(grid) - 2 + term)


def printed_meeting_time(alpha: float, grid: float) -> float:
    """The same as equation (2) prints it, with alpha / (2 alpha - 1)."""
    return 0.5 * grid * (0.34 * math.log(grid) - 2 + alpha / (2 * alpha - 1))


def exact_delay(k: float, l: int, m: int, grid: float) -> float:  # noqa: E741
    """The expected delay from equation (1) and reference [9], in steps."""
    return exact_factor(l) / m * meeting_time(reach(k, grid), grid)


def printed_delay(k: float, l: int, m: int, grid: float) -> float:  # noqa: E741
    """Equation (2) as printed, in steps."""
    return printed_factor(l) / m * printed_meeting_time(reach(k, grid), grid)


@dataclass(frozen=True)
class BrokersFor:
    """The k that a formula gives for a wanted delay, or None, and the range of delays that it can give."""

    k: int | None
    least: float
    most: float


def brokers_for(
    delay: float,
    l: int,  # noqa: E741
    m: int,
    grid: float,
    formula: Callable[[float, int, int, float], float] = exact_delay,
) -> BrokersFor:
    """Section V.C: the largest k whose expected delay does not exceed the wanted one. Delay grows with k."""
    if not (delay > 0 and math.isfinite(delay)):
        raise SettingsError(f"the wanted delay must be a positive number of steps, got {delay}")
    if l < 1 or m < 1:
        raise SettingsError(f"nearest and copies must be at least 1, got {l} and {m}")
    if not (grid >= 4 and math.isfinite(grid)):
        raise SettingsError(f"the grid must have at least 4 points, got {grid}")
    low = l + m + 1
    # With more brokers two of them meet only on the same point: the formulas end here.
    high = int(4 * grid / math.pi)
    if low > high:
        raise SettingsError(f"l + m < k needs at least {low} brokers, more than a grid of {grid:g} points has room for")
    found = bisect_right(range(low, high + 1), delay, key=lambda k: formula(k, l, m, grid))
    return BrokersFor(low + found - 1 if found else None, formula(low, l, m, grid), formula(high, l, m, grid))
