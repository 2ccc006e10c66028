"""Scenarios: nodes, mobility, medium, faults, workload and duration, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot.geometry import Area, Position, Rectangle
from earshot.simulation.faults import FaultSettings
from earshot.simulation.medium import MediumSettings
from earshot.simulation.mobility import Trajectories
from earshot.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class Ground:
    """The rectangle the nodes live on: x from 0 to `width_m`, y from 0 to `height_m`."""

    width_m: float = 1000.0
    height_m: float = 1000.0

    @property
    def area(self) -> Area:
        return Area(Rectangle(self.width_m, self.height_m), Position(self.width_m / 2, self.height_m / 2))


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a run simulates, apart from the protocol and the seed."""

    name: str
    duration_s: float
    warm_up_s: float = 0.0
    "Metrics count what is published from here on; the run itself starts at 0."
    area: Ground = Ground()
    medium: MediumSettings = MediumSettings()
    faults: FaultSettings = FaultSettings()

    def trajectories(self, seed: int) -> Trajectories:
        """Every node's way under this seed."""
        return Trajectories([])

    def workload(self, seed: int) -> Workload:
        """What the applications do under this seed."""
        return Workload([])

    def abilities(self, seed: int) -> npt.NDArray[np.float64]:
        """Every node's ability (how much it can detect, hold or carry) under this seed."""
        return np.ones(len(self.trajectories(seed)))

    def canonical(self) -> dict[str, Any]:
        """All that decides the run, as plain JSON values: equal for scenarios that run alike."""
        return {}
