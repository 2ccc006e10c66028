"""What a node keeps of publishers that promise a history or reliability."""

import pytest

from earshot import Event
from earshot.protocols.services.history import MOST_PUBLISHERS, Asking, History, expired
from earshot.quality import PLAIN, Quality

KEY = ("p", "Tick")


def tick(n: int, source: str = "p", lifespan_s: float | None = None) -> Event:
    return Event("Tick", {"n": n}, id=f"{source}-{n:02}", source=source, time=float(n), lifespan_s=lifespan_s)


def kept(quality: Quality, *events: Event) -> History:
    history = History()
    for event in events:
        history.keep(event, quality)
    return history


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


def test_the_last_events_are_kept_in_order_of_time_and_each_once() -> None:
    history = kept(Quality(history=3), *(tick(n) for n in (2, 5, 1, 5, 4, 3)))
    assert ids(history.kept[KEY]) == ["p-03", "p-04", "p-05"]


def test_a_type_that_promises_nothing_is_not_kept() -> None:
    assert kept(PLAIN, tick(1)).kept == {}


def test_of_a_reliable_type_32_events_are_kept_or_as_many_as_its_history() -> None:
    events = [tick(n) for n in range(60)]
    assert ids(kept(Quality("reliable"), *events).kept[KEY]) == ids(events[28:])
    assert ids(kept(Quality("reliable", history=40), *events).kept[KEY]) == ids(events[20:])


def test_the_publisher_that_was_silent_longest_is_forgotten() -> None:
    history = kept(Quality(history=1), *(tick(1, f"s{k}") for k in range(MOST_PUBLISHERS)))
    history.keep(tick(2, "s0"), Quality(history=1))
    assert len(history.kept) == MOST_PUBLISHERS == 1024
    history.keep(tick(1, "new"), Quality(history=1))
    gone = {f"s{k}" for k in range(MOST_PUBLISHERS)} - {source for source, _ in history.kept}
    assert (len(history.kept), gone) == (1024, {"s1"})


def test_the_oldest_is_that_of_the_last_events() -> None:
    history = kept(Quality(history=5), *(tick(n) for n in range(1, 6)))
    assert [history.oldest(KEY, depth) for depth in (0, 1, 2, 9)] == [None, 5.0, 4.0, 1.0]
    assert history.oldest(("q", "Tick"), 3) is None


def test_recent_are_the_last_32_that_live() -> None:
    history = kept(Quality(history=50), *(tick(n) for n in range(39)), tick(39, lifespan_s=2.0))
    assert history.recent(KEY, 41.0) == [f"p-{n:02}" for n in range(8, 40)]
    assert history.recent(KEY, 41.1) == [f"p-{n:02}" for n in range(8, 39)]


def test_missing_are_those_that_were_not_heard() -> None:
    history = kept(Quality(history=5), tick(1), tick(2))
    assert history.missing(KEY, ["p-01", "p-02", "p-03"]) == ["p-03"]
    assert history.missing(("q", "Tick"), ["p-01"]) == ["p-01"]


def test_events_before_a_time_are_those_published_earlier_that_live() -> None:
    history = kept(Quality(history=5), tick(1, lifespan_s=1.0), tick(2), tick(3))
    assert [ids(history.before(KEY, time, 2.0)) for time in (3.0, 3.1)] == [["p-01", "p-02"], ["p-01", "p-02", "p-03"]]
    assert ids(history.before(KEY, 3.0, 2.1)) == ["p-02"]


@pytest.mark.parametrize(("lifespan_s", "now", "gone"), [(None, 1e9, False), (2.0, 7.0, False), (2.0, 7.1, True)])
def test_an_event_lives_as_long_as_its_own_lifespan(lifespan_s: float | None, now: float, gone: bool) -> None:
    assert expired(tick(5, lifespan_s=lifespan_s), now) == gone


@pytest.mark.parametrize(
    ("rounds", "before_round", "over"),
    [(1, -1, False), (1, 1, False), (2, 0, False), (2, 1, True), (3, 0, True), (3, 1, True), (4, 0, True)],
)
def test_asking_ends_after_three_rounds_or_one_that_brought_nothing(rounds: int, before_round: int, over: bool) -> None:
    asking = Asking("s", 9.0, 2, rounds, {"p-01": tick(1)}, before_round)
    assert asking.over() == over


def test_the_last_events_gathered_come_the_oldest_first() -> None:
    asking = Asking("s", 9.0, 2, gathered={event.id: event for event in (tick(3), tick(1), tick(2))})
    assert ids(asking.last_events()) == ["p-02", "p-03"]
