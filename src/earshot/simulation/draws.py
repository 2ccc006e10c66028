"""Random draws: spans of numbers, Zipf ranks, choices by weight."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random

from earshot.errors import ScenarioError


@dataclass(frozen=True, slots=True)
class Span:
    """A number drawn evenly between `low` and `high`; always the same number if they are equal."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ScenarioError(f"a span needs finite numbers, got [{self.low}, {self.high}]")
        if self.low > self.high:
            raise ScenarioError(f"a span is [low, high], got [{self.low:g}, {self.high:g}]")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def draw(self, random: Random) -> float:
        return self.low if self.low == self.high else random.uniform(self.low, self.high)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2


def by_weight(random: Random, cumulative: Sequence[float]) -> int:
    """An index, drawn in proportion to its weight; `cumulative` is the running sum of weights."""
    return min(bisect_right(cumulative, random.random() * cumulative[-1]), len(cumulative) - 1)


def zipf_rank(random: Random, count: int, exponent: float) -> int:
    """A rank from 0 to count - 1, in proportion to 1 / (rank + 1) ** exponent; exponent 0 is even."""
    if exponent == 0:
        return random.randrange(count)
    return by_weight(random, _zipf_sums(count, exponent))


@lru_cache(maxsize=64)
def _zipf_sums(count: int, exponent: float) -> tuple[float, ...]:
    return tuple(accumulate((rank + 1) ** -exponent for rank in range(count)))
