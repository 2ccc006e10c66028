"""What a producer holds and what a consumer lacks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from earshot import Event
from earshot.protocols.steam.missed_events import EventCache, Reception


def event(number: int) -> Event:
    return Event("Siren", id=str(number), time=float(number))


def test_a_cache_holds_the_latest_and_gives_what_was_raised_since() -> None:
    cache = EventCache(3)
    numbers = [cache.add(event(number)) for number in range(1, 6)]
    assert (numbers, cache.oldest, cache.latest) == ([1, 2, 3, 4, 5], 3, 5)
    assert cache.held([5, 1, 3, 9, 3], since=0.0) == [(3, event(3)), (5, event(5))]
    assert cache.held([3, 4, 5], since=4.0) == [(4, event(4)), (5, event(5))]


def test_a_cache_of_nothing_still_counts() -> None:
    cache = EventCache(0)
    cache.add(event(1))
    assert (cache.latest, cache.oldest, cache.held([1], since=0.0)) == (1, 2, [])


def test_skipped_numbers_are_missing_until_they_arrive() -> None:
    reception = Reception(0.0, highest=2)
    reception.heard(5, limit=10)
    reception.heard(3, limit=10)
    assert (reception.highest, reception.missing) == (5, {4: 0})


def test_a_beacon_tells_what_is_missing_as_far_as_the_producer_holds_it() -> None:
    reception = Reception(0.0, highest=2)
    reception.told(latest=9, oldest=7, limit=10)
    assert (reception.highest, sorted(reception.missing)) == (9, [7, 8, 9])


def test_what_was_asked_for_often_enough_is_given_up() -> None:
    reception = Reception(0.0, highest=0)
    reception.told(latest=2, oldest=1, limit=10)
    asked = [reception.ask(attempts=2)]
    reception.heard(4, limit=10)
    asked += [reception.ask(attempts=2), reception.ask(attempts=2)]
    assert asked == [([1, 2], []), ([1, 2, 3], []), ([3], [1, 2])]


@given(st.lists(st.integers(1, 60)), st.integers(1, 12))
def test_missing_is_what_lies_between_and_has_not_come_bounded_by_the_newest(heard: list[int], limit: int) -> None:
    reception = Reception(0.0, highest=0)
    arrived: set[int] = set()
    for number in heard:
        reception.heard(number, limit)
        arrived.add(number)
        lacking = {k for k in range(1, max(arrived)) if k not in arrived}
        assert set(reception.missing) <= lacking
        assert len(reception.missing) <= limit
        if len(lacking) <= limit:
            assert set(reception.missing) == lacking or len(heard) > limit
