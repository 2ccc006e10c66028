"""Sessions and spans as records tell them, of simulated and of live nodes."""

import math

import msgspec

from earshot.events import EventType
from earshot.geometry import Circle, Position, Proximity
from earshot.records.details import JoinDetail, write_announcement, write_detail
from earshot.records.sessions import UNKNOWN, AnnouncementSpan, Session, SessionReader, SubscriptionSpan

LIVE = write_detail(JoinDetail("steam", {"a": 1}, emulate_range_m=150.0, life=1, reason="started"))


def read(*rows: tuple[float, str, str, str]) -> SessionReader:
    """Records of a node: time, kind, subscription, detail."""
    reader = SessionReader()
    for time, kind, subscription, detail in rows:
        reader.read(time, "a", kind, subscription, detail)
    return reader


def test_spans_of_a_live_node_end_with_its_session() -> None:
    reader = read(
        (0.0, "join", "", LIVE),
        (1.0, "subscribe", "s", '{"filter":"Siren: true"}'),
        (2.0, "announce", "", "Siren"),
        (3.0, "subscribe", "s", "Traffic: true"),
        (9.0, "leave", "", "stopped"),
    )
    assert list(reader.subscription_spans()) == [
        SubscriptionSpan("a", "s", "Siren: true", None, 1.0, 3.0),
        SubscriptionSpan("a", "s", "Traffic: true", None, 3.0, 9.0),
    ]
    assert list(reader.announcement_spans()) == [AnnouncementSpan("a", "Siren", None, 2.0, 9.0)]
    (session,) = reader
    assert (session.protocol, session.settings, session.range_m) == ("steam", {"a": 1}, 150.0)
    assert (session.start, session.end, session.first, session.last, session.left) == (0.0, 9.0, 0.0, 9.0, True)


def test_spans_of_a_killed_live_node_end_when_it_starts_again() -> None:
    reader = read((0.0, "join", "", LIVE), (1.0, "subscribe", "s", "Siren"), (5.0, "join", "", LIVE))
    assert [(one.start, one.end) for one in reader] == [(0.0, math.inf), (5.0, math.inf)]
    assert [(span.start, span.end) for span in reader.subscription_spans()] == [(1.0, 5.0)]


def test_spans_of_a_simulated_node_outlast_its_absence() -> None:
    back = write_detail(JoinDetail("steam", life=1, reason="after crash"))
    for again in (back, "after crash"):
        reader = read(
            (0.0, "join", "", "on the scene"),
            (1.0, "subscribe", "s", "Siren"),
            (4.0, "leave", "", "crash"),
            (6.0, "join", "", again),
            (8.0, "unsubscribe", "s", ""),
        )
        assert [(one.start, one.end) for one in reader] == [(0.0, 4.0), (6.0, math.inf)]
        assert list(reader.subscription_spans()) == [SubscriptionSpan("a", "s", "Siren", None, 1.0, 8.0)]


def test_a_session_without_its_join_began_before_all_records() -> None:
    (session,) = read((4.0, "leave", "", "crash"))
    assert (session.protocol, session.start, session.end) == (UNKNOWN, -math.inf, 4.0)


def test_sessions_are_the_same_after_a_night_in_json() -> None:
    reader = read((0.0, "join", "", LIVE), (1.0, "subscribe", "s", "Siren"), (2.0, "unsubscribe", "s", ""))
    reader.read(3.0, "a", "subscribe", "t", "Traffic")
    session = reader.current("a", "a")
    session.announce(AnnouncementSpan("a", "Siren", Proximity(Circle(3.0), Position(0.0, 0.0)), 1.0))
    assert msgspec.json.decode(msgspec.json.encode(session), type=Session) == session
    assert msgspec.json.decode(msgspec.json.encode(Session("b")), type=Session) == Session("b")


def test_the_parts_of_a_span_in_intervals() -> None:
    span = SubscriptionSpan("a", "s", "Siren", None, 2.0, 9.0)
    parts = span.during([(0.0, 3.0), (3.0, 3.5), (9.0, 12.0), (8.0, math.inf)])
    assert [(part.start, part.end) for part in parts] == [(2.0, 3.0), (3.0, 3.5), (8.0, 9.0)]


def test_spans_that_ended_long_ago_are_forgotten() -> None:
    reader = read(
        (1.0, "subscribe", "old", "Siren: true"),
        (1.0, "subscribe", "open", "Siren: true"),
        (2.0, "announce", "", "Siren"),
        (3.0, "unsubscribe", "old", ""),
        (5.0, "unannounce", "", "Siren"),
    )
    (session,) = reader
    session.forget(3.0)
    assert (list(session.subscriptions), list(session.announcements)) == (["old", "open"], ["Siren"])
    session.forget(3.1)
    assert (list(session.subscriptions), list(session.announcements)) == (["open"], ["Siren"])
    session.forget(5.1)
    assert (list(session.subscriptions), list(session.announcements)) == (["open"], [])


def test_the_spans_of_several_producers_of_a_type_end_apart() -> None:
    north, south = (write_announcement(EventType("Light"), None, producer) for producer in ("north", "south"))
    reader = read(
        (1.0, "announce", "", north),
        (2.0, "announce", "", south),
        (3.0, "unannounce", "", "Light#north"),
    )
    (session,) = reader
    assert {name: [(span.start, span.end) for span in spans] for name, spans in session.announcements.items()} == {
        "Light#north": [(1.0, 3.0)],
        "Light#south": [(2.0, math.inf)],
    }


def test_a_span_is_cut_to_the_intervals_it_lies_in() -> None:
    span = SubscriptionSpan("a", "s", "Siren: true", None, 2.0, 8.0)
    found = list(span.during([(0.0, 2.0), (1.0, 3.0), (4.0, 5.0), (7.0, 9.0), (8.0, 9.0)]))
    assert found == [
        SubscriptionSpan("a", "s", "Siren: true", None, *part) for part in ((2.0, 3.0), (4.0, 5.0), (7.0, 8.0))
    ]


def test_a_session_is_kept_by_its_key_and_bears_its_nodes_name() -> None:
    reader = SessionReader()
    reader.read(1.0, "a", "subscribe", "s", "Siren", key="a#1")
    reader.read(2.0, "a", "join", "", LIVE, key="a#2")
    reader.read(3.0, "a", "join", "", LIVE, key="a#2")
    assert {key: [one.node for one in some] for key, some in reader.sessions.items()} == {
        "a#1": ["a"], "a#2": ["a", "a"],
    }  # fmt: skip
    assert [span.node for span in reader.subscription_spans()] == ["a"]


def test_a_span_that_says_nothing_lasts_from_the_begin_of_time() -> None:
    assert (SubscriptionSpan("a", "s", "Siren").start, SubscriptionSpan("a", "s", "Siren").end) == (0.0, math.inf)
    announced = AnnouncementSpan("a", "Siren")
    assert (announced.start, announced.end, announced.name) == (0.0, math.inf, "Siren")


def test_a_span_ends_once_and_only_if_it_is_open() -> None:
    session = Session("a")
    session.unsubscribe("s", 1.0)
    session.subscribe(SubscriptionSpan("a", "s", "Siren", None, 2.0))
    for time in (3.0, 4.0):
        session.unsubscribe("s", time)
        session.end_spans(time + 5.0)
    assert [(span.start, span.end) for span in session.subscriptions["s"]] == [(2.0, 3.0)]


def test_a_session_takes_over_what_is_open_and_leaves_what_has_ended() -> None:
    earlier, later = Session("a"), Session("a")
    earlier.subscribe(SubscriptionSpan("a", "s", "Siren", None, 1.0))
    earlier.subscribe(SubscriptionSpan("a", "s", "Traffic", None, 2.0))
    earlier.subscribe(SubscriptionSpan("a", "t", "Siren", None, 1.0, 1.5))
    later.take_over(earlier)
    assert [(span.filter, span.end) for span in later.subscriptions["s"]] == [("Traffic", math.inf)]
    assert list(later.subscriptions) == ["s"]
    assert [span.end for some in earlier.subscriptions.values() for span in some] == [2.0, 1.5]


def test_a_span_that_ends_at_the_time_is_not_forgotten() -> None:
    session = Session("a")
    for name, end in (("old", 4.9), ("new", 5.0), ("open", math.inf)):
        session.subscribe(SubscriptionSpan("a", name, "Siren", None, 1.0, end))
    session.forget(5.0)
    assert list(session.subscriptions) == ["new", "open"]
