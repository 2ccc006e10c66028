"""The list of relevant proximities."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import pytest

from earshot import Circle, EventType, Polygon, Position, Proximity
from earshot.protocols.machine import JoinGroup, LeaveGroup
from earshot.protocols.steam.packets import Advert
from earshot.protocols.steam.relevant_proximities import (
    TRANSITIONS,
    Change,
    Membership,
    RelevantProximities,
    RelevantProximity,
)

HERE = Position(0.0, 0.0)
ADVERT = Advert("p", "Siren", {"speed": "float"}, {}, Proximity(Circle(100), HERE), HERE, 1.0, 1, False, 1, 0, 0.0)


def entry(producer: str, subject: str = "Siren", group: int = 1) -> RelevantProximity:
    advert = msgspec.structs.replace(ADVERT, producer=producer, subject=subject)
    return RelevantProximity(advert, EventType(subject), group, producer, 0.0)


def test_a_group_is_joined_with_its_first_member_entry_and_left_with_its_last() -> None:
    listed = RelevantProximities(10, 10)
    first, second = entry("a"), entry("b")
    listed.add(first)
    listed.add(second)
    changes = [(first, Change.WANTED), (second, Change.WANTED), (first, Change.UNWANTED), (second, Change.LOST)]
    assert [listed.change(*change) for change in changes] == [JoinGroup(1), None, None, LeaveGroup(1)]
    assert (list(listed.by_key), listed.groups) == ([("a", "Siren")], {})


def test_the_memberships_change_by_this_table_only() -> None:
    unlisted, relevant, member = Membership.UNLISTED, Membership.RELEVANT, Membership.MEMBER
    assert {(state, change): TRANSITIONS.get((state, change)) for state in Membership for change in Change} == {
        (unlisted, Change.DISCOVERED): relevant,
        (unlisted, Change.WANTED): None,
        (unlisted, Change.UNWANTED): None,
        (unlisted, Change.LOST): None,
        (relevant, Change.DISCOVERED): None,
        (relevant, Change.WANTED): member,
        (relevant, Change.UNWANTED): None,
        (relevant, Change.LOST): unlisted,
        (member, Change.DISCOVERED): None,
        (member, Change.WANTED): None,
        (member, Change.UNWANTED): relevant,
        (member, Change.LOST): unlisted,
    }


def test_an_entry_is_in_the_index_of_its_state() -> None:
    listed = RelevantProximities(10, 10)
    one = entry("a")
    listed.add(one)
    seen = [(one.membership, len(listed), bool(listed.groups))]
    for change in (Change.WANTED, Change.UNWANTED, Change.LOST):
        listed.change(one, change)
        seen.append((one.membership, len(listed), bool(listed.groups)))
    assert seen == [
        (Membership.RELEVANT, 1, False),
        (Membership.MEMBER, 1, True),
        (Membership.RELEVANT, 1, False),
        (Membership.UNLISTED, 0, False),
    ]
    with pytest.raises(KeyError):
        listed.change(one, Change.WANTED)


def test_an_unwanted_proximity_makes_room_for_a_wanted_one_only() -> None:
    listed = RelevantProximities(2, 2)
    first, second, third = entry("a"), entry("b"), entry("c")
    listed.add(first)
    listed.change(first, Change.WANTED)
    listed.add(second)
    assert listed.no_room_for("c", wanted=False) == "proximity-list-full"
    assert listed.no_room_for("c", wanted=True) is None
    assert listed.add(third) is second
    listed.change(third, Change.WANTED)
    assert listed.no_room_for("d", wanted=True) == "proximity-list-full"
    assert sorted(listed.by_key) == [("a", "Siren"), ("c", "Siren")]


def test_one_producer_gets_at_most_its_share_of_the_list() -> None:
    listed = RelevantProximities(10, 2)
    for subject in ("One", "Two"):
        listed.add(entry("a", subject))
    assert listed.no_room_for("a", wanted=True) == "too-many-announcements"
    listed.change(listed.by_key["a", "One"], Change.LOST)
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
def test_an_invalid_announcement_is_refused(change: dict[str, object], fault: str | None) -> None:
    assert msgspec.structs.replace(ADVERT, **change).fault() == fault


def test_a_later_beacon_or_a_later_announcement_is_newer() -> None:
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
