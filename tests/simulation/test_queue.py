"""The event queue."""

from hypothesis import given
from hypothesis import strategies as st

from earshot.simulation.queue import Priority, Queue


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5]), st.integers(0, 4))))
def test_calls_come_by_time_then_priority_then_in_the_order_they_were_added(entries: list[tuple[float, int]]) -> None:
    queue = Queue()
    made: list[tuple[float, int, int]] = []
    for number, (time, priority) in enumerate(entries):
        queue.at(time, priority, made.append, (time, priority, number))
    queue.run(until=10.0)
    assert made == sorted((time, priority, number) for number, (time, priority) in enumerate(entries))


def test_a_call_may_add_others_even_for_the_same_time() -> None:
    queue = Queue()
    told: list[tuple[str, float]] = []

    def tell(word: str) -> None:
        told.append((word, queue.now))
        if word == "first":
            queue.at(queue.now, Priority.MEDIUM, tell, "at once")
            queue.at(2.0, Priority.WORLD, tell, "too late")

    queue.at(1.0, Priority.TIMER, tell, "first")
    queue.at(1.0, Priority.TIMER, tell, "second")
    queue.run(until=1.5)
    assert (told, queue.now, len(queue)) == ([("first", 1.0), ("at once", 1.0), ("second", 1.0)], 1.5, 1)
