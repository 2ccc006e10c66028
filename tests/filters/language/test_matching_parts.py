"""How far a filter reaches, what it asks of the consumer, and what is kept of an event that many filters ask."""

from __future__ import annotations

import pytest

from earshot import Event, Filter, Position, Velocity, Viewer
from earshot.filters.language.matching import closing_m_s


@pytest.mark.parametrize(
    ("filter", "reach_m"),
    [
        ("within 200 m", 200.0),
        ("within 2 km", 2000.0),
        ("within 200 m and within 50 m and v = 1", 50.0),
        ("within 200 m or within 50 m", 200.0),
        ("within 200 m or v = 1", None),
        ("(within 200 m or within 50 m) and within 100 m", 100.0),
        ("(within 200 m or v = 1) and approaching", None),
        ("v = 1", None),
        ("not within 200 m", None),
        ("place within 200 m", None),
        ("approaching", None),
    ],
)
def test_a_filter_reaches_as_far_as_its_distances_allow(filter: str, reach_m: float | None) -> None:
    assert Filter.where(filter).reach_m == reach_m


@pytest.mark.parametrize(
    ("filter", "without"),
    [
        ("v = 1 and within 200 m", "v = 1"),
        ("v = 1 and (w = 2 and approaching)", "v = 1 and w = 2"),
        ("v = 1 or approaching", "true"),
        ("v = 1 or (w = 2 and receding)", "v = 1 or w = 2"),
        ("v = 1 and not within 200 m", "v = 1"),
        ("v = 1 and not (w = 2 and within 5 m)", "v = 1"),
        ("v = 1 and not w = 2 and within 5 m", "v = 1 and not w = 2"),
        ("v = 1 and place within 5 m", "v = 1"),
        ("place inside circle(0, 0, 5) and within 5 m", "place inside circle(0, 0, 5)"),
        ("inside circle(0, 0, 5) and approaching place", "inside circle(0, 0, 5)"),
    ],
)
def test_a_filter_without_its_terms_about_the_consumer_keeps_the_others(filter: str, without: str) -> None:
    asked, expected = Filter.where(filter), Filter.where(without)
    assert (asked.needs_viewer, asked.without_viewer_terms()) == (True, expected)
    assert (expected.needs_viewer, expected.without_viewer_terms() is expected) == (False, True)


EAST = Velocity(3.0, 0.0)


@pytest.mark.parametrize(
    ("position", "velocity", "viewer", "closing"),
    [
        (Position(0.0, 0.0), EAST, Viewer(Position(90.0, 0.0)), 3.0),
        (Position(0.0, 0.0), EAST, Viewer(Position(-90.0, 0.0)), -3.0),
        (Position(0.0, 0.0), EAST, Viewer(Position(90.0, 0.0), Velocity(5.0, 0.0)), -2.0),
        (Position(0.0, 0.0), None, Viewer(Position(90.0, 0.0), Velocity(5.0, 0.0)), -5.0),
        (Position(0.0, 0.0), EAST, Viewer(Position(0.0, 90.0)), 0.0),
        (None, EAST, Viewer(Position(90.0, 0.0)), 0.0),
        (Position(0.0, 0.0), EAST, None, 0.0),
    ],
)
def test_a_consumer_and_a_source_close_in_by_both_their_movements(
    position: Position | None, velocity: Velocity | None, viewer: Viewer | None, closing: float
) -> None:
    event = Event("T", position=position, velocity=velocity)
    assert closing_m_s(event, viewer) == pytest.approx(closing)
    assert Filter.where("approaching").matches(event, viewer) is (closing > 0)
    assert Filter.where("receding").matches(event, viewer) is (closing < 0)


def test_the_words_of_a_document_are_gathered_when_the_sixteenth_path_asks() -> None:
    event = Event.from_xml("<a><b/><c><b>x</b></c></a>")
    gathered = []
    for number in range(20):
        assert Filter.xpath(f'//b[. = "x" or . = "{number}"]').matches(event)
        gathered.append("_words" in event.__dict__)
    assert gathered == [False] * 15 + [True] * 5
