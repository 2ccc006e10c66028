"""The one predicate: type, content, the event's area and the subscriber's region must all agree."""

import pytest

from earshot import Area, Circle, Event, Filter, Position, Viewer
from earshot.filters import Subscription, accepts
from earshot.filters.subscription import explain_acceptance, filter_text, parsed

FAST = Filter.where("speed > 10", type="Siren")
HERE, FAR = Viewer(Position(0.0, 0.0)), Viewer(Position(900.0, 0.0))
AROUND_ZERO, AROUND_FAR = Area(Circle(100.0)), Area(Circle(100.0), Position(900.0, 0.0))


def siren(speed: float = 18.0, area: Area | None = None, position: Position | None = HERE.position) -> Event:
    return Event("Siren", {"speed": speed}, position=position, area=area)


@pytest.mark.parametrize(
    ("event", "region", "viewer", "accepted"),
    [
        (siren(), None, HERE, True),
        (siren(), None, None, True),
        (siren(speed=3.0), None, HERE, False),
        (Event("Alarm", {"speed": 18.0}), None, HERE, False),
        (siren(area=AROUND_ZERO), None, HERE, True),
        (siren(area=AROUND_ZERO), None, FAR, False),
        (siren(area=AROUND_ZERO), None, None, False),
        (siren(), AROUND_ZERO, FAR, True),
        (siren(), AROUND_FAR, HERE, False),
        (siren(position=None), AROUND_ZERO, HERE, False),
    ],
)
def test_type_content_area_and_region_must_all_agree(
    event: Event, region: Area | None, viewer: Viewer | None, accepted: bool
) -> None:
    subscription = Subscription("fast", "car", FAST, region)
    assert accepts(event, subscription, viewer) is accepted
    assert explain_acceptance(event, subscription, viewer)[0] is accepted


def test_a_filters_text_gives_the_same_filter_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.filters.subscription._FILTERS", {})
    monkeypatch.setattr("earshot.filters.subscription._MOST_FILTERS", 2)
    first, second, third = (Filter.where(f"speed < {number}") for number in range(3))
    text = filter_text(first)
    assert (text, filter_text(first)) == (str(first), text)
    assert parsed(text) is first
    filter_text(second)
    filter_text(third)
    assert parsed(str(third)) is third
    again = parsed(text)
    assert (again, again is first) == (first, False), "the oldest of too many is forgotten, and parsed anew"
    assert parsed(text) is again


@pytest.mark.parametrize(
    ("event", "region", "viewer", "words"),
    [
        (
            siren(area=AROUND_ZERO),
            None,
            None,
            "the node's position at that time is not known, and the event has an area",
        ),
        (
            siren(area=AROUND_ZERO),
            None,
            FAR,
            f"the node was outside the event's area {Circle(100.0)}, 900 m from its naval",
        ),
        (
            siren(area=AROUND_FAR),
            None,
            HERE,
            f"the node was outside the event's area {Circle(100.0)}, 900 m from its naval",
        ),
        (siren(), AROUND_FAR, HERE, f"the event happened outside the region of interest, {Circle(100.0)} at 900,0"),
        (siren(speed=3.0), AROUND_ZERO, HERE, FAST.explain(siren(speed=3.0), HERE)),
        (siren(), AROUND_ZERO, None, FAST.explain(siren(), None)),
    ],
)
def test_the_part_that_failed_is_reported(event: Event, region: Area | None, viewer: Viewer | None, words: str) -> None:
    assert explain_acceptance(event, Subscription("fast", "car", FAST, region), viewer)[1] == words
