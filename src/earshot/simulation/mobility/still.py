"""Nodes that stay where they are: strewn evenly at random, on a grid, or at given places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from earshot.errors import ScenarioError
from earshot.simulation.extent import Box, Ground, box_of
from earshot.simulation.mobility.trajectories import Path


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every place is equally likely, for each node apart from the others."""

    kind: ClassVar[str] = "uniform"
    box_m: Box | None = None
    "Where: [least x, least y, most x, most y]; the whole area where not given."

    def paths(self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float) -> list[Path]:
        x0, y0, x1, y1 = box_of(self.box_m, ground)
        return [
            Path.standing(name, random.uniform(x0, x1), random.uniform(y0, y1))
            for name, random in zip(names, randoms, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows and columns, as near to square as the box allows, each node in the middle of its field."""

    kind: ClassVar[str] = "grid"
    box_m: Box | None = None
    "Where: [least x, least y, most x, most y]; the whole area where not given."
    columns: int | None = None
    "Nodes in a row; chosen to make the fields square where not given."
    jitter_m: float = 0.0
    "How far from the middle of its field a node may stand, in x and in y."

    def __post_init__(self) -> None:
        if self.columns is not None and self.columns < 1:
            raise ScenarioError(f"columns must be at least 1, got {self.columns}")
        if self.jitter_m < 0:
            raise ScenarioError(f"jitter_m must not be negative, got {self.jitter_m}")

    def paths(self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float) -> list[Path]:
        x0, y0, x1, y1 = box_of(self.box_m, ground)
        count = len(names)
        columns = self.columns or max(1, round(math.sqrt(count * (x1 - x0) / (y1 - y0))))
        rows = max(1, math.ceil(count / columns))
        wide, high = (x1 - x0) / columns, (y1 - y0) / rows
        found = []
        for i, (name, random) in enumerate(zip(names, randoms, strict=True)):
            row, column = divmod(i, columns)
            x = x0 + (column + 0.5) * wide + random.uniform(-self.jitter_m, self.jitter_m)
            y = y0 + (row + 0.5) * high + random.uniform(-self.jitter_m, self.jitter_m)
            found.append(Path.standing(name, min(max(x, x0), x1), min(max(y, y0), y1)))
        return found


@dataclass(frozen=True, slots=True)
class Given:
    """Each node at its own written place."""

    kind: ClassVar[str] = "given"
    at_m: tuple[tuple[float, float], ...]
    "One [x, y] a node."

    @property
    def count(self) -> int:
        return len(self.at_m)

    def paths(self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float) -> list[Path]:
        return [Path.standing(name, x, y) for name, (x, y) in zip(names, self.at_m, strict=True)]
