"""Random waypoint, in its steady state from the first moment on.

A node goes straight to a place drawn evenly from the box, at a speed drawn evenly for that leg,
pauses there, and goes on. Runs that start every node at the start of a leg spend their first
minutes too fast and too evenly spread; W. Navidi and T. Camp (Stationary Distributions for the
Random Waypoint Mobility Model, IEEE TMC 3(1), 2004) give the distribution the model settles in,
and the first state is drawn from that: legs in proportion to the time they take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from earshot.errors import ScenarioError
from earshot.simulation.extent import Box, Ground, Span, box_of
from earshot.simulation.mobility.trajectories import Path

Knot = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class RandomWaypoint:
    """From one random place to the next, with pauses."""

    kind: ClassVar[str] = "random-waypoint"
    speed_m_s: Span
    "The speed of a leg, drawn evenly."
    pause_s: Span = Span(0.0, 0.0)
    "The pause after a leg, drawn evenly."
    box_m: Box | None = None
    "Where: [least x, least y, most x, most y]; the whole area where not given."

    def __post_init__(self) -> None:
        if self.speed_m_s.low <= 0:
            raise ScenarioError(
                f"speed_m_s must begin above 0, got {self.speed_m_s.low:g}: with a least speed of 0 legs "
                "last ever longer and the model never settles"
            )
        if self.pause_s.low < 0:
            raise ScenarioError(f"pause_s must not be negative, got {self.pause_s.low:g}")

    def paths(self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float) -> list[Path]:
        box = box_of(self.box_m, ground)
        pausing = self.share_pausing(box)
        return [
            Path.through(name, self._knots(box, pausing, random, until_s))
            for name, random in zip(names, randoms, strict=True)
        ]

    def share_pausing(self, box: Box) -> float:
        """The share of time, and so of nodes, spent in pauses."""
        travel_s = mean_leg_m(box[2] - box[0], box[3] - box[1]) * self._mean_slowness()
        return self.pause_s.mean / (self.pause_s.mean + travel_s)

    def _mean_slowness(self) -> float:
        """The mean of 1 / speed."""
        low, high = self.speed_m_s.low, self.speed_m_s.high
        return 1 / low if low == high else math.log(high / low) / (high - low)

    def _knots(self, box: Box, pausing: float, random: Random, until_s: float) -> list[Knot]:
        knots = self._paused_start(box, random) if random.random() < pausing else self._moving_start(box, random)
        now, x, y = knots[-1]
        while now < until_s:
            now, x, y = self._leg(knots, now, x, y, box, random)
        return knots

    def _leg(self, knots: list[Knot], now: float, x: float, y: float, box: Box, random: Random) -> Knot:
        """Go to a new place and pause there."""
        to_x, to_y = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
        now += math.hypot(to_x - x, to_y - y) / self.speed_m_s.draw(random)
        knots.append((now, to_x, to_y))
        if (pause := self.pause_s.draw(random)) > 0:
            now += pause
            knots.append((now, to_x, to_y))
        return now, to_x, to_y

    def _paused_start(self, box: Box, random: Random) -> list[Knot]:
        """Amid a pause: pauses in proportion to their length, any moment of one as likely as another."""
        x, y = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
        low, high = self.pause_s.low, self.pause_s.high
        pause = math.sqrt(low * low + random.random() * (high * high - low * low))
        return [(0.0, x, y), (pause * random.random(), x, y)]

    def _moving_start(self, box: Box, random: Random) -> list[Knot]:
        """Amid a leg: legs in proportion to length / speed, any point of one as likely as another."""
        longest = math.hypot(box[2] - box[0], box[3] - box[1])
        while True:
            x0, y0 = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
            x1, y1 = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
            length = math.hypot(x1 - x0, y1 - y0)
            if random.random() * longest < length:
                break
        low, high = self.speed_m_s.low, self.speed_m_s.high
        speed = low * math.pow(high / low, random.random())
        left = random.random()
        arrival = left * length / speed
        knots = [(0.0, x1 + left * (x0 - x1), y1 + left * (y0 - y1)), (arrival, x1, y1)]
        if (pause := self.pause_s.draw(random)) > 0:
            knots.append((arrival + pause, x1, y1))
        return knots


def mean_leg_m(width_m: float, height_m: float) -> float:
    """The mean distance between two random points of a rectangle."""
    a, b = width_m, height_m
    diagonal = math.hypot(a, b)
    return (
        a**3 / b**2
        + b**3 / a**2
        + diagonal * (3 - a**2 / b**2 - b**2 / a**2)
        + 2.5 * (b**2 / a * math.log((a + diagonal) / b) + a**2 / b * math.log((b + diagonal) / a))
    ) / 15
