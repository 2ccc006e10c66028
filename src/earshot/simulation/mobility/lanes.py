"""Vehicles on the lanes of a road, each at a speed of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from earshot.errors import ScenarioError
from earshot.simulation.extent import Ground, Span
from earshot.simulation.mobility.trajectories import ALWAYS, Interval, Path


@dataclass(frozen=True, slots=True)
class Lane:
    """One straight lane; vehicles go from its start to its end."""

    start_m: tuple[float, float]
    "[x, y] where vehicles enter."
    end_m: tuple[float, float]
    "[x, y] where they leave."
    speed_m_s: Span
    "A vehicle's speed, drawn evenly and kept."

    def __post_init__(self) -> None:
        if self.length_m == 0:
            raise ScenarioError(f"a lane must lead somewhere: start_m and end_m are both {list(self.start_m)}")
        if self.speed_m_s.low <= 0:
            raise ScenarioError(f"speed_m_s must begin above 0, got {self.speed_m_s.low:g}")

    @property
    def length_m(self) -> float:
        return math.hypot(self.end_m[0] - self.start_m[0], self.end_m[1] - self.start_m[1])

    def point(self, along_m: float) -> tuple[float, float]:
        share = along_m / self.length_m
        return (
            self.start_m[0] + share * (self.end_m[0] - self.start_m[0]),
            self.start_m[1] + share * (self.end_m[1] - self.start_m[1]),
        )


@dataclass(frozen=True, slots=True)
class Lanes:
    """Vehicles dealt to the lanes in turn, each keeping its lane and its speed."""

    kind: ClassVar[str] = "lanes"
    lanes: tuple[Lane, ...]
    "The road's lanes; two with opposite ends make a two-way road."
    spacing: Literal["even", "random"] = "random"
    "How the vehicles of a lane stand along it at first."
    at_end: Literal["wrap", "re-enter"] = "wrap"
    'At the end of its lane a vehicle is at once at its start again ("wrap": the number on the road stays), '
    'or leaves the network and enters anew ("re-enter").'
    away_s: Span = Span(10.0, 60.0)
    "How long a vehicle stays away before it enters anew."

    def __post_init__(self) -> None:
        if not self.lanes:
            raise ScenarioError("lanes needs at least one lane")
        if self.away_s.low <= 0:
            raise ScenarioError(f"away_s must begin above 0, got {self.away_s.low:g}")

    def paths(self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float) -> list[Path]:
        found = []
        for i, (name, random) in enumerate(zip(names, randoms, strict=True)):
            turn, number = divmod(i, len(self.lanes))
            lane = self.lanes[number]
            on_lane = len(range(number, len(names), len(self.lanes)))
            along = lane.length_m * ((turn + 0.5) / on_lane if self.spacing == "even" else random.random())
            found.append(self._drive(name, lane, along, random, until_s))
        return found

    def _drive(self, name: str, lane: Lane, along_m: float, random: Random, until_s: float) -> Path:
        speed = lane.speed_m_s.draw(random)
        entry = lane.point(0.0)
        now = (lane.length_m - along_m) / speed
        knots = [(0.0, *lane.point(along_m)), (now, *lane.end_m)]
        presence: list[Interval] = [(-math.inf, now)]
        while now < until_s:
            if self.at_end == "re-enter":
                now += self.away_s.draw(random)
                knots.append((now, *lane.end_m))
            knots.append((now, *entry))
            entered = now
            now += lane.length_m / speed
            knots.append((now, *lane.end_m))
            presence.append((entered, now))
        return Path.through(name, knots, tuple(presence) if self.at_end == "re-enter" else ALWAYS)
