"""Moves written by hand: each node through its own list of places and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from earshot.errors import ScenarioError
from earshot.simulation.extent import Ground
from earshot.simulation.mobility.trajectories import Path


@dataclass(frozen=True, slots=True)
class Scripted:
    """Straight and even motion from one written place to the next; a node waits before its first and after its last."""

    kind: ClassVar[str] = "scripted"
    moves: tuple[tuple[tuple[float, float, float], ...], ...]
    "One list a node of [time in s, x in m, y in m], in order of time; one time twice is a jump."

    def __post_init__(self) -> None:
        for number, moves in enumerate(self.moves):
            if not moves:
                raise ScenarioError(f"moves[{number}] is empty; a node needs at least one [time, x, y]")
            times = [move[0] for move in moves]
            if times != sorted(times):
                raise ScenarioError(f"moves[{number}] goes back in time; order its [time, x, y] by time")

    @property
    def count(self) -> int:
        return len(self.moves)

    def paths(self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float) -> list[Path]:
        return [Path.through(name, moves) for name, moves in zip(names, self.moves, strict=True)]
