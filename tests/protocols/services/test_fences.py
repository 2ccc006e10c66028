"""Fences report each crossing once, on either side."""

import pytest

from earshot import Circle, EventType, Position, Proximity
from earshot.errors import UsageError
from earshot.geometry import Velocity
from earshot.protocols.services.announced_types import Announced, Key, Statement
from earshot.protocols.services.fences import Crossed, Crossing, Fence, Fences

STILL = Velocity(0.0, 0.0)


def areas(*sources: str, subject: str = "city/jam", radius_m: float = 100.0) -> dict[Key, Statement]:
    found = {}
    for source in sources:
        near = Proximity(Circle(radius_m), Position(0.0, 0.0))
        stated = Announced(source, 1.0, subject, {}, {}, near, Position(0.0, 0.0), STILL, 1.0, (), False, 1)
        found[source, subject] = Statement(stated, EventType(subject), 1.0)
    return found


def fences(*some: Fence) -> Fences:
    found = Fences()
    for fence in some:
        found.add(fence)
    return found


def looks(held: Fences, *places_m: float, **others: float) -> list[list[Crossed]]:
    near = [(name, Position(at, 0.0)) for name, at in others.items()]
    return [list(held.look(Position(at, 0.0), areas("q", "p"), near, 2.0)) for at in places_m]


@pytest.mark.parametrize("pattern", ["**", "city/*", "city/jam"])
def test_an_area_is_entered_once_and_left_once(pattern: str) -> None:
    entered, left = (
        [Crossed("f", crossing, source, "city/jam") for source in "pq"] for crossing in (Crossing.ENTER, Crossing.LEAVE)
    )
    assert looks(fences(Fence("f", pattern)), 150.0, 50.0, 60.0, 150.0, 160.0) == [[], entered, [], left, []]


def test_an_area_that_is_no_longer_stated_is_left() -> None:
    held = fences(Fence("f", "city/jam"))
    at = Position(0.0, 0.0)
    assert list(held.look(at, areas("p"), (), 2.0)) == [Crossed("f", Crossing.ENTER, "p", "city/jam")]
    assert list(held.look(at, {}, (), 3.0)) == [Crossed("f", Crossing.LEAVE, "p", "city/jam")]


def test_areas_of_other_types_and_types_without_an_area_are_no_crossings() -> None:
    held = fences(Fence("f", "city/fire"), Fence("near", near_m=5.0))
    everywhere = Statement(
        Announced("e", 1.0, "city/fire", {}, {}, None, Position(0.0, 0.0), STILL, 1.0, (), False, 1),
        EventType("city/fire"),
        1.0,
    )
    statements = {**areas("p"), ("e", "city/fire"): everywhere}
    assert list(held.look(Position(0.0, 0.0), statements, (), 2.0)) == []


def test_a_node_is_near_within_the_distance_and_far_beyond_a_tenth_more() -> None:
    held = fences(Fence("f", near_m=100.0))
    seen = [looks(held, 0.0, b=metres)[0] for metres in (100.1, 100.0, 109.9, 110.1, 105.0)]
    near, far = Crossed("f", Crossing.NEARBY, "b"), Crossed("f", Crossing.FARAWAY, "b")
    assert seen == [[], [near], [], [far], []]
    assert looks(held, 0.0, b=1.0) == [[near]]
    assert looks(held, 0.0) == [[far]]


def test_a_fence_that_is_removed_tells_no_more() -> None:
    held = fences(Fence("f", "**"), Fence("g", near_m=10.0))
    held.remove("f")
    held.remove("f")
    assert (len(held), looks(held, 0.0, b=1.0)) == (1, [[Crossed("g", Crossing.NEARBY, "b")]])
    held.add(Fence("f", "**"))
    assert len(looks(held, 0.0, b=1.0)[0]) == 2


@pytest.mark.parametrize("near_m", [0.0, -1.0, float("inf"), float("nan")])
def test_a_distance_is_a_positive_number(near_m: float) -> None:
    with pytest.raises(UsageError, match="near_m must be a positive number of metres"):
        Fence("f", near_m=near_m)


@pytest.mark.parametrize("near_m", [0.01, 1.0])
def test_a_distance_may_be_as_small_as_one_likes(near_m: float) -> None:
    held = fences(Fence("f", near_m=near_m))
    assert looks(held, 0.0, b=near_m) == [[Crossed("f", Crossing.NEARBY, "b")]]


def test_a_fence_has_a_type_or_a_distance() -> None:
    with pytest.raises(UsageError, match="a fence needs an event type"):
        Fence("f")


def test_a_fence_that_was_removed_reports_nothing_and_begins_anew_when_it_comes_back() -> None:
    held = fences(Fence("f", "city/jam"), Fence("g", "city/jam"))
    entered = [Crossed("g", Crossing.ENTER, source, "city/jam") for source in "pq"]
    assert len(looks(held, 50.0)[0]) == 4
    held.remove("f")
    held.remove("f")
    held.remove("unknown")
    assert (len(held), list(held.by_id)) == (1, ["g"])
    held.remove("g")
    assert (len(held), looks(held, 50.0)) == (0, [[]])
    held.add(Fence("g", "city/jam"))
    assert looks(held, 50.0) == [entered]
