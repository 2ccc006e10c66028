"""A location that updates now and then."""

import pytest

from earshot.geometry import Position, Velocity
from earshot.protocols.steam.location_updates import UpdatedLocation


class Going:
    """A location whose place and movement tell the time."""

    def position(self, time: float) -> Position:
        return Position(time, -time)

    def velocity(self, time: float) -> Velocity:
        return Velocity(time, 2.0 * time)


@pytest.mark.parametrize(
    ("phase_s", "time", "updated_at"),
    [(0.0, 10.0, 10.0), (0.0, 11.9, 10.0), (0.0, 12.0, 12.0), (0.5, 12.4, 10.5), (0.5, 12.5, 12.5), (0.5, 0.2, -1.5)],
)
def test_place_and_movement_are_those_of_the_last_update(phase_s: float, time: float, updated_at: float) -> None:
    found = UpdatedLocation(Going(), 2.0, phase_s)
    assert found.position(time) == Position(updated_at, -updated_at)
    assert found.velocity(time) == Velocity(updated_at, 2.0 * updated_at)


def test_without_a_phase_updates_come_at_multiples_of_the_interval() -> None:
    assert UpdatedLocation(Going(), 2.0).position(3.0) == Position(2.0, -2.0)
