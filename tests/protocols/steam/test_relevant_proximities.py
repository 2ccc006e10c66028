"""The list of relevant proximities."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import pytest

from earshot import Circle, EventType, Polygon, Position, Proximity
from earshot.protocols.steam.relevant_proximities import Advert, Relevant, RelevantProximities

HERE = Position(0.0, 0.0)
ADVERT = Advert("p", "Siren", {"speed": "float"}, {}, Proximity(Circle(100), HERE), HERE, 1.0, 1, False, 1, 0, 0.0)


def entry(producer: str, subject: str = "Siren", group: int = 1) -> Relevant:
    advert = msgspec.structs.replace(ADVERT, producer=producer, subject=subject)
    return Relevant(advert, EventType(subject), group, producer, 0.0)


def test_a_group_is_joined_with_its_first_member_entry_and_left_with_its_last() -> None:
    listed = RelevantProximities(10, 10)
    first, second = entry("a"), entry("b")
    listed.add(first)
    listed.add(second)
    assert [listed.want(first), listed.want(second), listed.unwant(first), listed.remove(second)] == [
        True,
        False,
        False,
        True,
    ]
    assert (list(listed.by_key), listed.groups) == ([("a", "Siren")], {})


def test_what_is_unwanted_makes_room_for_what_is_wanted_and_for_nothing_else() -> None:
    listed = RelevantProximities(2, 2)
    first, second, third = entry("a"), entry("b"), entry("c")
    listed.add(first)
    listed.want(first)
    listed.add(second)
    assert listed.no_room_for("c", wanted=False) == "proximity-list-full"
    assert listed.no_room_for("c", wanted=True) is None
    assert listed.add(third) is second
    listed.want(third)
    assert listed.no_room_for("d", wanted=True) == "proximity-list-full"
    assert sorted(listed.by_key) == [("a", "Siren"), ("c", "Siren")]


def test_one_producer_gets_its_share_of_the_list_and_no_more() -> None:
    listed = RelevantProximities(10, 2)
    for subject in ("One", "Two"):
        listed.add(entry("a", subject))
    assert listed.no_room_for("a", wanted=True) == "too-many-announcements"
    listed.remove(listed.by_key["a", "One"])
    assert listed.no_room_for("a", wanted=True) is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"proximity": None}, None),
        ({"subject": ""}, "announcement-incomplete"),
        ({"subject": "x" * 5000}, "announcement-too-long"),
        ({"content": {f"parameter {k}": "integer" for k in range(300)}}, "announcement-too-long"),
        ({"epoch": math.nan}, "announcement-impossible-numbers"),
        ({"at": Position(math.inf, 0.0)}, "announcement-impossible-numbers"),
        (
            {"proximity": Proximity(Polygon(tuple((math.cos(k / 500), math.sin(k / 500)) for k in range(3000))), HERE)},
            "announcement-too-long",
        ),
    ],
)
def test_an_announcement_nobody_could_mean_is_refused(change: dict[str, object], fault: str | None) -> None:
    assert msgspec.structs.replace(ADVERT, **change).fault() == fault


def test_a_later_beacon_or_a_later_announcement_is_news() -> None:
    later = [{"beacon": 2}, {"epoch": 2.0, "beacon": 0}, {"beacon": 1}, {"beacon": 0}, {"epoch": 0.5, "beacon": 9}]
    assert [msgspec.structs.replace(ADVERT, **change).newer_than(ADVERT) for change in later] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_mobile_proximity_is_where_its_latest_naval_is() -> None:
    moved = msgspec.structs.replace(
        ADVERT, proximity=Proximity(Circle(100), HERE, mobile=True), at=Position(500.0, 0.0)
    )
    assert (moved.contains(HERE), moved.contains(Position(450.0, 0.0))) == (False, True)
    fixed = msgspec.structs.replace(ADVERT, at=Position(500.0, 0.0))
    assert (fixed.contains(HERE), replace(entry("a"), advert=moved).mobile) == (True, True)
