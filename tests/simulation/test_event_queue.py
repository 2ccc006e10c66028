"""The event queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.simulation.event_queue import Priority, Queue


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5]), st.integers(0, 5))))
def test_calls_come_by_time_then_priority_then_in_the_order_they_were_added(entries: list[tuple[float, int]]) -> None:
    queue = Queue()
    made: list[tuple[float, int, int]] = []
    for number, (time, priority) in enumerate(entries):
        if priority == Priority.MEDIUM:
            queue.on_air(time, made.append, (time, priority, number))
        elif priority == Priority.FRAME_END:
            queue.off_air(time, made.append, (time, priority, number))
        else:
            queue.at(time, priority, made.append, (time, priority, number))
    assert (len(queue), queue.scheduled) == (len(entries), len(entries))
    queue.run(until=10.0)
    assert made == sorted((time, priority, number) for number, (time, priority) in enumerate(entries))


def test_a_call_may_add_others_even_for_the_same_time() -> None:
    queue = Queue()
    reported: list[tuple[str, float]] = []

    def send_word(word: str) -> None:
        reported.append((word, queue.now))
        if word == "first":
            queue.on_air(queue.now, send_word, "at once")
            queue.at(2.0, Priority.WORLD, send_word, "too late")

    queue.at(1.0, Priority.TIMER, send_word, "first")
    queue.at(1.0, Priority.TIMER, send_word, "second")
    queue.run(until=1.5)
    assert (reported, queue.now, len(queue)) == ([("first", 1.0), ("at once", 1.0), ("second", 1.0)], 1.5, 1)


def test_a_call_that_is_added_late_takes_the_place_it_was_given() -> None:
    queue = Queue()
    reported: list[str] = []
    queue.at(1.0, Priority.TIMER, reported.append, "first")
    place = queue.place()
    queue.at(1.0, Priority.TIMER, reported.append, "third")
    queue.at_place(1.0, Priority.TIMER, place, reported.append, "second")
    queue.run(until=1.0)
    assert (reported, queue.now, len(queue)) == (["first", "second", "third"], 1.0, 0)


def test_places_in_a_row_are_taken_in_their_order() -> None:
    queue = Queue()
    reported: list[str] = []
    first = queue.places(2)
    queue.on_air(1.0, reported.append, "third")
    queue.on_air_at_place(1.0, first + 1, reported.append, "second")
    queue.on_air_at_place(1.0, first, reported.append, "first")
    queue.run(until=1.0)
    assert reported == ["first", "second", "third"]


def test_after_a_call_that_failed_the_queue_goes_on_where_it_stopped() -> None:
    queue = Queue()
    reported: list[str] = []
    queue.at(1.0, Priority.TIMER, {}.__getitem__, "nothing there")
    queue.at(2.0, Priority.TIMER, reported.append, "then")
    queue.at(9.0, Priority.TIMER, reported.append, "and later")
    with pytest.raises(KeyError):
        queue.run(until=5.0)
    assert (reported, queue.now, len(queue)) == ([], 1.0, 2)
    queue.run(until=10.0)
    assert (reported, queue.now, len(queue)) == (["then", "and later"], 10.0, 0)


def test_at_one_time_nodes_come_first_then_the_medium_timers_applications_and_observers() -> None:
    queue = Queue()
    reported: list[str] = []
    names = ("OBSERVER", "APPLICATION", "TIMER", "MEDIUM", "FRAME_END", "WORLD")
    for name in names:
        queue.at(1.0, getattr(Priority, name), reported.append, name)
    queue.run(until=1.0)
    assert reported == list(reversed(names)), "and observers still see the last moment"


def test_a_queue_does_not_run_back() -> None:
    queue = Queue()
    reported: list[str] = []
    queue.run(until=5.0)
    queue.at(6.0, Priority.TIMER, reported.append, "later")
    queue.run(until=4.0)
    assert (queue.now, reported, len(queue)) == (5.0, [], 1)
    queue.run(until=5.0)
    assert (queue.now, reported) == (5.0, [])
