"""Location terms about a parameter of the event: STEAM's own example filter (section 5.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot import Event, Filter, Position
from earshot.errors import FilterSyntaxError
from earshot.filters import filter_text
from earshot.filters.language.matching import Viewer
from earshot.filters.summaries.summary import Summary
from earshot.geometry import STILL, Velocity

EAST = Velocity(10.0, 0.0)
LIGHT = Event("Traffic Light", {"place": Position(100.0, 0.0), "approach": 1}, position=Position(0.0, 900.0))


def holds(text: str, x_m: float = 0.0, velocity: Velocity = STILL, event: Event = LIGHT) -> bool:
    return Filter.where(text).matches(event, Viewer(Position(x_m, 0.0), velocity))


@pytest.mark.parametrize(
    ("text", "x_m", "velocity", "expected"),
    [
        ("place within 100 m", 0.0, STILL, True),
        ("place within 0.09 km", 0.0, STILL, False),
        ("within 100 m", 0.0, STILL, False),  # that is about the event's own position
        ("approaching place", 0.0, EAST, True),
        ("approaching place", 200.0, EAST, False),
        ("receding place", 200.0, EAST, True),
        ("approaching place and approach = 1", 0.0, EAST, True),
        ("approach = 1 and (approaching place or place within 1 m)", 200.0, EAST, False),
        ("not approaching place", 200.0, EAST, True),
        ("place inside circle(100, 0, 5)", 0.0, STILL, True),
        ("approaching elsewhere", 0.0, EAST, False),
        ("approach within 5 km", 0.0, STILL, False),  # a number is no place
        ("approaching `place`", 0.0, EAST, True),
    ],
)
def test_a_place_in_the_event(text: str, x_m: float, velocity: Velocity, expected: bool) -> None:
    assert holds(text, x_m, velocity) is expected


def test_without_a_viewer_a_place_is_only_tested_against_areas() -> None:
    assert not Filter.where("place within 5 km").matches(LIGHT)
    assert Filter.where("place within 5 km").needs_viewer
    assert Filter.where("place inside circle(100, 0, 5)").matches(LIGHT)
    assert not Filter.where("place inside circle(100, 0, 5)").needs_viewer


@pytest.mark.parametrize(
    "text", ["place within 500 m", "approaching place", "receding `and`", "place inside circle(1, 2, 3)", "approaching"]
)
def test_its_text_is_read_back(text: str) -> None:
    filter = Filter.where(f"{text} and x < 3", type="Light")
    assert Filter.parse(filter_text(filter)) == filter


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-50, 50), st.floats(-50, 50))
def test_about_a_parameter_is_as_about_an_event_that_stands_there(
    x: float, y: float, east: float, north: float
) -> None:
    viewer = Viewer(Position(1.0, 2.0), Velocity(east, north))
    there = Position(x, y)
    for own, about in (
        ("within 300 m", "p within 300 m"),
        ("approaching", "approaching p"),
        ("receding", "receding p"),
        ("inside circle(0, 0, 500)", "p inside circle(0, 0, 500)"),
    ):
        asked = Filter.where(about).matches(Event("T", {"p": there}, position=Position(5e5, 5e5)), viewer)
        assert asked == Filter.where(own).matches(Event("T", position=there), viewer)


def test_why_names_the_parameter() -> None:
    viewer = Viewer(Position(0.0, 0.0), STILL)
    assert "the distance is 100 m" in str(Filter.where("place within 50 m").explain(LIGHT, viewer))
    assert "no position called elsewhere" in str(Filter.where("elsewhere within 50 m").explain(LIGHT, viewer))


def test_covering_and_summaries_are_safe() -> None:
    near, far = Filter.where("place within 5 m"), Filter.where("place within 9 m")
    assert near.covers(near)
    assert not near.covers(far)
    assert not Filter.where("within 9 m").covers(near)
    assert Summary.of([near]).may_match(LIGHT)


def test_a_distance_is_needed() -> None:
    with pytest.raises(FilterSyntaxError, match="within takes a distance"):
        Filter.where("place within reach")
