"""A location service that updates now and then: section 5.2's does so once a second."""

from __future__ import annotations

import math
from dataclasses import dataclass

from earshot.geometry import Position, Velocity
from earshot.protocols.machine import Location


@dataclass(frozen=True, slots=True)
class UpdatedLocation:
    """The place and movement of another location, as of its last update."""

    exact: Location
    interval_s: float
    phase_s: float = 0.0
    "When its first update comes: devices do not update in step."

    def position(self, time: float) -> Position:
        return self.exact.position(self._update_before(time))

    def velocity(self, time: float) -> Velocity:
        return self.exact.velocity(self._update_before(time))

    def _update_before(self, time: float) -> float:
        return math.floor((time - self.phase_s) / self.interval_s) * self.interval_s + self.phase_s
