"""Tuning: which settings of a protocol are worth trying in given surroundings, and where to begin.

A protocol's `tuning(surroundings)` gives its tunable settings, each with a first guess, a range and the reason for
the guess. The rules are short and stand beside each protocol's settings; a search decides what they are worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from earshot.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known about a network before it runs."""

    nodes: int
    "All nodes that ever come."
    present: float
    "How many of them are there at a time, on average."
    width_m: float
    height_m: float
    range_m: float
    mean_neighbours: float
    median_speed_m_s: float
    link_lifetime_s: float
    "How long two nodes stay in range, typically."
    events_per_s: float
    packet_airtime_s: float = 0.0
    "How long an event's packet keeps the channel busy; 0 where that is not known."
    fewest_nodes: float = math.inf
    "The nodes of the smallest network that the settings must fit, where a protocol runs on parts of the trace."

    @property
    def density_per_m2(self) -> float:
        """Nodes a square metre where nodes are: roads are denser than the area around them."""
        return (self.mean_neighbours + 1.0) / (math.pi * self.range_m**2)

    def speaking_time_s(self, low: float, high: float) -> float:
        """A time in which all neighbours could send one packet each and leave half of the channel idle."""
        return clamp(2.0 * (self.mean_neighbours + 1.0) * self.packet_airtime_s, low, high)


@dataclass(frozen=True, slots=True)
class Tunable:
    """A setting that is worth trying: where to begin, how far to go, and why."""

    name: str
    first: float
    "The first guess; a whole number where the setting is one."
    low: float
    high: float
    reason: str
    step: float = 2.0
    "The next values to try are the first guess times and divided by this."
    follows: Mapping[str, float] = field(default_factory=dict)
    "Settings that must keep their proportion: each is this many times the value."

    def __post_init__(self) -> None:
        if not (0 < self.low <= self.first <= self.high < math.inf and self.step > 1):
            raise SettingsError(
                f"{self.name}: the first guess must lie between low and high, and the step must exceed 1, "
                f"got {self.first}, {self.low}, {self.high} and {self.step}"
            )

    def values(self) -> list[float]:
        """The first guess, then a smaller and a larger value, where the range has room for them."""
        found = [self.first]
        for value in (self.first / self.step, self.first * self.step):
            if (near := self.near(value)) not in found:
                found.append(near)
        return found

    def near(self, value: float) -> float:
        """The nearest value that is worth trying: of two digits, or whole, and in the range."""
        return clamp(max(1, round(value)) if isinstance(self.first, int) else rounded(value), self.low, self.high)

    def settings(self, value: float) -> dict[str, Any]:
        """The settings that this value stands for, those that follow it included."""
        return {self.name: value, **{name: rounded(times * value) for name, times in self.follows.items()}}


def clamp(value: float, low: float, high: float) -> float:
    """The nearest value between the two bounds."""
    return min(high, max(low, value))


def rounded(value: float) -> float:
    """Two digits: a setting that people read, and that chance does not change."""
    return float(f"{value:.2g}")


def guess(value: float, low: float, high: float) -> float:
    """A first guess of two digits within bounds."""
    return clamp(rounded(clamp(value, low, high)), low, high)
