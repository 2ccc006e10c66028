"""STEAM's bounds as numbers: what peers may send, what a node keeps, how far it looks back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from earshot import Circle, Event, EventType, Filter, Position, Proximity
from earshot.filters import Subscription
from earshot.protocols.machine import Announcement, Broadcast, Drop, FixedLocation, StartTimer
from earshot.protocols.steam.beacon_pace import Pace, pace
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.machine import Steam, WaitingEvent
from earshot.protocols.steam.missed_events import inside_since
from earshot.protocols.steam.packets import (
    Advert,
    ProximityBeacon,
    ProximityQuestion,
    Raised,
    RecoveryRequest,
    SteamSettings,
)
from earshot.protocols.steam.relevant_proximities import RelevantProximity
from earshot.records import DropReason

HERE = Position(0.0, 0.0)
AROUND = Proximity(Circle(100), HERE)
RELAYING = SteamSettings(forward_jitter_s=0.06)


def node(name: str = "c", settings: SteamSettings = RELAYING) -> Steam:
    return Steam(name, settings, FixedLocation(HERE), Random(name))


def advert(**change: object) -> Advert:
    plain = Advert("p", "Siren", {}, {}, AROUND, HERE, 0.0, 1, True, 1, 0, 0.0)
    return msgspec.structs.replace(plain, **change)


@pytest.mark.parametrize(("length", "fault"), [(256, None), (257, "announcement-incomplete")])
def test_a_producers_name_has_256_characters(length: int, fault: str | None) -> None:
    assert advert(producer="p" * length).fault() == fault


def test_a_description_with_its_words_has_4096_characters() -> None:
    """The type and its proximity are described by their text, here `Siren|everywhere`."""
    room = 4096 - len("Siren|everywhere") - len("name")
    assert advert(proximity=None, content={"name": "x" * room}).fault() is None
    assert advert(proximity=None, content={"name": "x" * (room + 1)}).fault() == "announcement-too-long"


@pytest.mark.parametrize(("count", "reason"), [(4096, DropReason.NO_LONGER_HELD), (4097, DropReason.REQUEST_TOO_LARGE)])
def test_a_request_names_4096_events(count: int, reason: DropReason) -> None:
    machine = node("p")
    machine.announce(Announcement(EventType("Siren"), AROUND), 0.0)
    request = RecoveryRequest("p", "Siren", 0.0, tuple(range(1, count + 1)), 0.0, ("c",))
    assert machine.hear(request, "c", 1.0) == [Drop(reason)]


def test_a_question_names_64_types_and_is_answered_for_its_first_64() -> None:
    machine = node()
    for number in range(66):
        machine.subscribe(Subscription(f"s{number}", "c", Filter.of_type(f"Type {number:03}")), 1.0)
    assert machine.unknown_subjects() == tuple(f"Type {number:03}" for number in range(64))
    for others, answered in ((63, True), (64, False)):
        asked = node("m", replace(RELAYING, expiry_s=99.0))
        asked.hear(ProximityBeacon((advert(),)), "r", 0.1)
        asked.wake("onward", 1.0)
        effects = asked.hear(ProximityQuestion(HERE, (*(["Weather"] * others), "Siren")), "c", 9.0)
        assert any(isinstance(effect, StartTimer) for effect in effects) == answered


@pytest.mark.parametrize(("waiting", "kind"), [(4095, StartTimer), (4096, Broadcast)])
def test_4096_events_wait_to_be_passed_on_and_more_go_on_at_once(waiting: int, kind: type) -> None:
    machine = node("m")
    machine.hear(ProximityBeacon((advert(),)), "r", 0.1)
    event = Event("Siren", {}, "p:1", "p", HERE, None, 1.0, AROUND.area())
    raised = Raised(event, group_id("Siren", AROUND), 0.0, 1, True)
    machine.forwarding = {f"e{number}": WaitingEvent(raised) for number in range(waiting)}
    [effect] = machine.hear(raised, "r", 1.2)
    assert type(effect) is kind


class Course(FixedLocation):
    """Counts how often it was asked."""

    asked = 0

    def position(self, time: float) -> Position:
        Course.asked += 1
        return self.at


def test_256_earlier_positions_are_looked_at_however_long_ago_the_first_is() -> None:
    Course.asked = 0
    assert inside_since(AROUND.area(), Course(), 0.0, 25600.0, 1.0) == 0.0
    assert Course.asked == 1 + 256


@pytest.mark.parametrize(
    ("left", "back", "since"), [(10.1, 10.45, 5.0), (9.1, 9.45, 5.0), (10.1, 10.6, 10.6), (9.9, 10.45, 10.45)]
)
def test_an_absence_between_two_looks_half_a_period_apart_goes_unnoticed(
    left: float, back: float, since: float
) -> None:
    class Away(FixedLocation):
        def position(self, time: float) -> Position:
            return Position(150.0 if left < time < back else 50.0, 0.0)

    machine = Steam("c", RELAYING, Away(), Random(1))
    machine.subscribe(Subscription("s", "c", Filter.of_type("Siren")), 5.0)
    listed = RelevantProximity(advert(), EventType("Siren"), group_id("Siren", AROUND), "p", 99.0)
    assert machine.recovery.inside_since(listed, 12.0) == pytest.approx(since, abs=0.001)


@pytest.mark.parametrize(("busy_share", "rounds"), [(0.0, 4), (0.5, 8), (0.875, 32), (0.95, 32), (1.0, 32)])
def test_a_busy_channel_stretches_periods_by_8_times_at_most(busy_share: float, rounds: int) -> None:
    settings = replace(SteamSettings(), beacon_stretch=99.0)
    assert pace(float("inf"), -1.0, 0.0, 2, busy_share, settings) == Pace(rounds, 0.0)
