"""Where a node has been at which time."""

from __future__ import annotations

import pytest

from earshot import Area, Circle, Position, Velocity
from earshot.protocols.steam.position_history import PositionHistory


def walked(
    *places: tuple[float, float], length: int = 10, spacing_s: float = 0.0, speed_m_s: float = 30.0
) -> PositionHistory:
    history = PositionHistory(length, spacing_s)
    for time, x in places:
        history.add(time, Position(x, 0.0), Velocity(speed_m_s, 0.0))
    return history


def test_a_node_moved_straight_between_two_positions() -> None:
    history = walked((1.0, 0.0), (3.0, 20.0))
    assert [history.at(time) for time in (0.9, 1.0, 1.5, 3.0, 3.1)] == [
        None,
        Position(0.0, 0.0),
        Position(5.0, 0.0),
        Position(20.0, 0.0),
        None,
    ]


def test_the_oldest_positions_are_forgotten() -> None:
    history = walked(*((float(time), float(time)) for time in range(20)), length=5)
    assert (history.start, history.at(14.0)) == (15.0, None)


def test_a_second_position_at_one_time_replaces_the_first() -> None:
    history = walked((1.0, 0.0), (1.0, 8.0))
    assert history.at(1.0) == Position(8.0, 0.0)


def test_a_node_is_inside_since_it_last_crossed_the_border() -> None:
    area = Area(Circle(10.0))
    crossed = walked((0.0, 0.0), (1.0, 50.0), (2.0, 9.0), (3.0, 8.0)).inside_since(area)
    assert crossed == pytest.approx(1.0 + 40.0 / 41.0, abs=0.001)
    assert crossed < 1.0 + 40.0 / 41.0
    assert walked((0.0, 5.0), (1.0, 6.0)).inside_since(area) == 0.0
    assert walked((0.0, 5.0), (1.0, 60.0)).inside_since(area) is None
    assert PositionHistory(3).inside_since(area) is None


def test_nothing_is_known_between_the_two_ends_of_a_jump() -> None:
    history = walked((0.0, 690.0), (1.0, -695.0), (2.0, -665.0))
    assert [history.at(time) for time in (0.0, 0.5, 1.0, 1.5)] == [
        Position(690.0, 0.0),
        None,
        Position(-695.0, 0.0),
        Position(-680.0, 0.0),
    ]
    assert history.inside_since(Area(Circle(700.0))) == 0.0
    assert history.inside_since(Area(Circle(693.0))) == pytest.approx(1.0 + 2.0 / 30.0, abs=0.001)


def test_positions_too_close_in_time_replace_each_other() -> None:
    history = walked(*((0.1 * k, 3.0 * k) for k in range(31)), length=10, spacing_s=0.5)
    assert history.start == 0.0
    assert history.at(1.7) == pytest.approx(Position(51.0, 0.0))


def test_a_jump_among_replaced_positions_is_not_forgotten() -> None:
    history = walked((0.0, 0.0), (0.5, 900.0), (0.6, 903.0), length=8, spacing_s=0.7)
    assert history.at(0.3) is None
