"""Live events stay within their bounds, and the least useful go first."""

from hypothesis import given
from hypothesis import strategies as st

from earshot.events import Event
from earshot.protocols.hearsay.digest import DigestSpan, HeldDigest, make_digest
from earshot.protocols.hearsay.held_events import LiveEvent, LiveEvents


def live(name: str, expires: float = 60.0, size: int = 100, priority: int = 0) -> LiveEvent:
    return LiveEvent(Event("CD", id=name, source="x", priority=priority), 1, 0.0, expires, size)


def held(events: LiveEvents) -> list[str]:
    return [one.id for one in events.by_id.values() if one.event is not None]


def test_beyond_the_budget_the_least_useful_go_first_but_stay_known() -> None:
    events = LiveEvents(100, 400)
    given = [("short", 5.0, 100, 0), ("urgent", 5.0, 100, 20), ("long", 60.0, 100, 0), ("large", 60.0, 300, 0)]
    for one in given:
        events.add(live(*one), 0.0)
    assert held(events) == ["urgent", "long"]
    events.add(live("more"), 0.0)
    assert held(events) == ["urgent", "long", "more"]
    assert events.by_id["short"].event is None
    assert len(events) == 5


def test_events_are_forgotten_when_their_lifespan_ends() -> None:
    events = LiveEvents(100, 1000)
    events.add(live("a", expires=5.0), 0.0)
    events.add(live("b", expires=6.0), 0.0)
    events.forget(5.5)
    assert list(events.by_id) == ["b"]
    assert events.held_bytes == 100


@given(st.lists(st.tuples(st.floats(0.0, 1e9), st.integers(1, 500), st.integers(-2, 9)), max_size=80))
def test_bytes_and_memory_are_bounded(given: list[tuple[float, int, int]]) -> None:
    events = LiveEvents(20, 2000)
    for k, (expires, size, priority) in enumerate(given):
        events.add(live(f"x-{k}", expires, size, priority), float(k))
        assert len(events) <= 20
        assert len(events._ends) <= 41
        assert (
            events.held_bytes == sum(one.size_bytes for one in events.by_id.values() if one.event is not None) <= 2000
        )


def test_events_beyond_the_memory_replace_the_oldest() -> None:
    events = LiveEvents(2, 1000)
    for name in "abc":
        events.add(live(name), 0.0)
    assert (list(events.by_id), events.held_bytes) == (["b", "c"], 200)


def test_an_event_is_forgotten_at_the_end_of_its_lifespan() -> None:
    events = LiveEvents(9, 1000)
    events.add(live("a", expires=5.0), 0.0)
    events.forget(4.9)
    assert list(events.by_id) == ["a"]
    events.forget(5.0)
    assert (list(events.by_id), events.held_bytes) == ([], 0)


def test_an_event_that_came_again_lives_until_its_later_end() -> None:
    events = LiveEvents(1, 1000)
    events.add(live("a", expires=5.0), 0.0)
    events.add(live("b", expires=5.0), 0.0)
    events.add(live("a", expires=9.0), 0.0)
    events.forget(5.0)
    assert list(events.by_id) == ["a"]


def test_the_budget_may_be_filled_and_then_an_eighth_is_freed() -> None:
    events = LiveEvents(99, 800)
    for k in range(8):
        events.add(live(f"x-{k}", expires=60.0 + k), 0.0)
    assert (len(held(events)), events.held_bytes) == (8, 800)
    events.add(live("y", expires=99.0), 0.0)
    assert (held(events), events.held_bytes) == ([f"x-{k}" for k in range(2, 8)] + ["y"], 700)


def test_of_two_events_the_one_with_more_time_left_for_its_bytes_and_priority_stays() -> None:
    def stays(now: float, *given: tuple[str, float, int, int]) -> list[str]:
        events = LiveEvents(9, 150)
        for one in given:
            events.add(live(*one), now)
        return held(events)

    assert stays(0.0, ("a", 60.0, 100, 0), ("b", 61.0, 100, 0)) == ["b"]
    assert stays(0.0, ("a", 60.0, 100, 1), ("b", 61.0, 100, 0)) == ["a"]
    assert stays(0.0, ("a", 60.0, 100, 1), ("b", 119.0, 100, 0)) == ["a"], "priority 1 counts twice"
    assert stays(0.0, ("a", 60.0, 100, 1), ("b", 121.0, 100, 0)) == ["b"]
    assert stays(0.0, ("a", 60.0, 100, -5), ("b", 59.0, 100, 0)) == ["a"], "a negative priority counts as none"
    assert stays(0.0, ("a", 60.0, 100, 0), ("b", 60.0, 60, 0)) == ["b"]
    assert stays(50.0, ("a", 60.0, 100, 0), ("b", 54.0, 60, 0)) == ["a"]


def bits_of(names: list[str], salt: int, size: int) -> int:
    return int.from_bytes(make_digest(names, salt, size), "big")


def test_masks_have_the_bits_of_all_live_events_while_they_change() -> None:
    events = LiveEvents(3, 1000)
    expected: list[str] = []
    for name in "abcde":
        events.add(live(name, expires=60.0), 0.0)
        expected = [*expected, name][-3:]
        assert events.masks(7, 16).of_all == bits_of(expected, 7, 16)
        assert events.masks(7, 16).by_id == {one: bits_of([one], 7, 16) for one in expected}
    events.forget(60.0)
    assert (events.masks(7, 16).of_all, events.masks(7, 0).of_all) == (0, 0)


def test_masks_are_remembered_for_three_digests() -> None:
    events = LiveEvents(3, 1000)
    events.add(live("a"), 0.0)
    for salt in range(4):
        assert events.masks(salt, 8).of_all == bits_of(["a"], salt, 8)
    assert list(events._masks) == [(salt, 8) for salt in range(1, 4)]


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.integers(0, 3), st.sampled_from([0, 8, 16]))
def test_a_digest_of_all_or_some_live_events_is_made_of_just_these(names: list[str], salt: int, size: int) -> None:
    events = LiveEvents(9, 1000)
    for name in names:
        events.add(live(name), 0.0)
    assert events.digest(names, salt, size) == make_digest(names, salt, size)
    assert events.digest(names[1:], salt, size) == make_digest(names[1:], salt, size)


@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    st.integers(0, 3),
    st.integers(0, 4),
)
def test_the_lacked_events_are_those_in_the_span_that_the_digest_lacks(
    ours: list[str], theirs: list[str], salt: int, size: int
) -> None:
    events = LiveEvents(9, 1000)
    digest = HeldDigest(make_digest(theirs, salt, size), salt, DigestSpan(2, 6))
    events.lacked(digest)
    for name in ours:
        events.add(LiveEvent(Event("CD", id=name, time="abcdefgh".index(name) / 4.0), 1, 0.0, 60.0, 9), 0.0)
    expected = [name for name in ours if name in "cdef" and digest.lacks(name)]
    assert [one.id for one in events.lacked(digest)] == expected
    assert all(name not in theirs for name in expected) or size == 0
