"""The events a producer keeps, and the events a consumer has missed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steam_table import Course, Walk, stays

from earshot import Area, Circle, Event, EventType, Position
from earshot.protocols.steam.announcements import EventCache, LocalAnnouncement
from earshot.protocols.steam.beacon_pace import Pace
from earshot.protocols.steam.missed_events import Reception, Receptions, inside_since
from earshot.protocols.steam.packets import Advert, SteamSettings


def event(number: int) -> Event:
    return Event("Siren", id=str(number), time=float(number))


def test_a_cache_holds_the_latest_events_and_returns_those_raised_since_a_time() -> None:
    cache = EventCache(3)
    numbers = [cache.add(event(number)) for number in range(1, 6)]
    assert (numbers, cache.oldest, cache.latest) == ([1, 2, 3, 4, 5], 3, 5)
    assert cache.held([5, 1, 3, 9, 3], since=0.0) == [(3, event(3)), (5, event(5))]
    assert cache.held([3, 4, 5], since=4.0) == [(4, event(4)), (5, event(5))]


def test_a_cache_without_room_still_counts_events() -> None:
    cache = EventCache(0)
    cache.add(event(1))
    assert (cache.latest, cache.oldest, cache.held([1], since=0.0)) == (1, 2, [])


def test_skipped_numbers_are_missing_until_they_arrive() -> None:
    reception = Reception(0.0, highest=2, limit=10)
    reception.received(5)
    reception.received(3)
    assert (reception.highest, reception.missing) == (5, {4: 0})


def test_a_beacon_shows_which_events_are_missing_that_the_producer_still_holds() -> None:
    reception = Reception(0.0, highest=2, limit=10)
    reception.raised_up_to(latest=9, oldest=7)
    assert (reception.highest, sorted(reception.missing)) == (9, [7, 8, 9])


def test_an_event_is_given_up_after_enough_requests() -> None:
    reception = Reception(0.0, highest=0, limit=10)
    reception.raised_up_to(latest=2, oldest=1)
    asked = [reception.next_request(attempts=2)]
    reception.received(4)
    asked += [reception.next_request(attempts=2), reception.next_request(attempts=2)]
    assert asked == [([1, 2], []), ([1, 2, 3], []), ([3], [1, 2])]


@given(st.lists(st.integers(1, 60)), st.integers(1, 12))
def test_the_missing_events_are_the_newest_that_were_skipped_and_have_not_arrived(heard: list[int], limit: int) -> None:
    reception = Reception(0.0, highest=0, limit=limit)
    arrived: set[int] = set()
    for number in heard:
        reception.received(number)
        arrived.add(number)
        lacking = {k for k in range(1, max(arrived)) if k not in arrived}
        assert set(reception.missing) <= lacking
        assert len(reception.missing) <= limit
        if len(lacking) <= limit:
            assert set(reception.missing) == lacking or len(heard) > limit


def test_a_node_is_inside_since_it_last_crossed_the_border() -> None:
    area = Area(Circle(10.0))

    def since(course: Course, earliest: float = 0.0, now: float = 4.0) -> float:
        return inside_since(area, Walk(course), earliest, now, step_s=0.5)

    assert since(stays(5.0)) == 0.0
    assert since(stays(50.0)) == 4.0
    entered = since(lambda time: Position(40.0 - 10.0 * time, 0.0))
    assert entered == pytest.approx(3.0, abs=0.001)
    assert entered < 3.0
    assert since(lambda time: Position(40.0 - 10.0 * time, 0.0), earliest=3.5) == 3.5
    back = since(lambda time: Position(abs(20.0 * (time - 2.0)) if time > 1.0 else 5.0, 0.0), now=2.4)
    assert back == pytest.approx(1.5, abs=0.001), "it was inside, then outside, and has come back"


def test_a_long_memory_takes_bounded_work() -> None:
    asked: list[float] = []

    def course(time: float) -> Position:
        asked.append(time)
        return Position(0.0, 0.0)

    assert inside_since(Area(Circle(10.0)), Walk(course), 0.0, 1e6, step_s=0.5) == 0.0
    assert len(asked) < 300


def advert(subject: str, epoch: float = 1.0) -> Advert:
    made = LocalAnnouncement("p", EventType(subject), None, 0, epoch, EventCache(4), 0.0, pace=Pace(3, 5.0))
    return made.advert(Position(0.0, 0.0), SteamSettings(beacon_interval_s=0.5))


def test_the_announcement_that_was_followed_first_makes_room() -> None:
    followed = Receptions(2, 9)
    for subject in ("a", "b", "c"):
        followed.follow(advert(subject), 7)
    assert [followed.of(("p", subject), 1.0) is not None for subject in ("a", "b", "c")] == [False, True, True]
    found = followed.of(("p", "b"), 1.0)
    assert found is not None
    assert (found.highest, found.limit, followed.of(("p", "b"), 2.0)) == (7, 9, None)
    followed.forget(("p", "b"))
    followed.forget(("p", "unknown"))
    assert followed.of(("p", "b"), 1.0) is None
    nothing = Receptions(2, 0)
    nothing.follow(advert("a"), 7)
    assert nothing.of(("p", "a"), 1.0) is None


def test_a_beacon_says_when_the_next_one_comes() -> None:
    found = advert("a")
    assert (found.interval_s, found.margin_m, found.oldest, found.latest) == (1.5, 5.0, 1, 0)
