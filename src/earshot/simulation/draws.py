"""Draws that Python's random module does not make itself: Zipf ranks, choices by weight."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random


def by_weight(random: Random, cumulative: Sequence[float]) -> int:
    """An index, each in proportion to its own share of the running sum."""
    return min(bisect_right(cumulative, random.random() * cumulative[-1]), len(cumulative) - 1)


def zipf_rank(random: Random, count: int, exponent: float) -> int:
    """A rank from 0 to count - 1, in proportion to 1 / (rank + 1) ** exponent; exponent 0 is even."""
    if exponent == 0:
        return random.randrange(count)
    return by_weight(random, _zipf_sums(count, exponent))


@lru_cache(maxsize=64)
def _zipf_sums(count: int, exponent: float) -> tuple[float, ...]:
    return tuple(accumulate((rank + 1) ** -exponent for rank in range(count)))
