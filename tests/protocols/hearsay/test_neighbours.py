"""Where a neighbour is, from its hellos, and who makes room."""

from typing import Any

import pytest

from earshot.protocols.hearsay.held_events import Copy
from earshot.protocols.hearsay.neighbours import KnownNeighbours, Neighbour


class Greeting:
    """What a neighbour reads of a hello."""

    number = 7

    def __init__(self, at: tuple[int, int] | None, velocity: tuple[int, int]) -> None:
        self.at, self.velocity = at, velocity


def neighbour(at: tuple[int, int] | None = (100, 200), velocity: tuple[int, int] = (30, -50)) -> Neighbour:
    greeting: Any = Greeting(at, velocity)
    return Neighbour(greeting, 10.0, 20.0)


def test_a_neighbour_goes_straight_on_at_tenths_of_a_metre_a_second() -> None:
    one = neighbour()
    assert (one.number, one.placed, one.greeted_at, one.expires) == (7, True, 10.0, 20.0)
    assert [one.place(time) for time in (8.0, 10.0, 14.0)] == [
        pytest.approx((94.0, 210.0)), (100.0, 200.0), pytest.approx((112.0, 180.0)),
    ]  # fmt: skip


def test_a_neighbours_distance_is_from_where_it_was_when_the_copy_was_said() -> None:
    """At 14 s it was at (112, 180): three metres east and four metres north of the copy."""
    assert neighbour().distance_m(Copy(14.0, 109.0, 176.0)) == pytest.approx(5.0)


def test_what_a_neighbour_says_later_puts_it_there() -> None:
    one = neighbour(at=None)
    assert not one.placed
    one.seen_at((5, 6), 12.0)
    assert (one.placed, one.greeted_at, one.place(12.0), one.place(13.0)) == (True, 10.0, (5.0, 6.0), (8.0, 1.0))


def test_the_neighbour_that_greeted_longest_ago_makes_room() -> None:
    known = KnownNeighbours(2)
    first, second = neighbour(), neighbour()
    assert (known.greeted("a", first), known.greeted("b", second), known.greeted("a", second)) == (None, None, first)
    assert (known.greeted("c", first), [name for name, _ in known], len(known)) == (None, ["a", "c"], 2)
