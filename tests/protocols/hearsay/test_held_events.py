"""Live events stay within their bounds, and the least useful go first."""

from hypothesis import given
from hypothesis import strategies as st

from earshot.events import Event
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
