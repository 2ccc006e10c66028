"""Siena at its edges: places after a loss, neighbours without patience, events that come back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.machine import Announcement, Broadcast, Deliver, Drop, FixedLocation, Send, StartTimer
from earshot.protocols.siena.machine import (
    Advertise,
    Bye,
    Connect,
    Control,
    Enter,
    NoNeighbour,
    Notify,
    Place,
    Siena,
    SienaSettings,
    Subscribe,
)
from earshot.records import DropReason

SETTINGS = SienaSettings(agents=("a",), clients=3, retry_s=5.0, patience_s=20.0)
CHEAP, DEAR = (str(Filter.where(text, type="Document")) for text in ("price < 10", "price > 20"))
ALL = Subscription("n/1", "n", Filter.of_type("Document"))


def broker(*clients: str, settings: SienaSettings = SETTINGS) -> Siena:
    """A broker below b, with these clients."""
    found = Siena("n", settings, FixedLocation(), Random(1))
    found.hear(Place(True, "b"), "a", 0.0)
    for client in clients:
        found.hear(Connect(False), client, 0.1)
    return found


def document(id: str = "e", source: str = "s") -> Event:
    return Event("Document", {"price": 5}, id, source, time=1.0)


def test_a_broker_that_is_gone_counts_no_more_when_the_next_is_chosen() -> None:
    """One node in three is a broker: with c, d and b there is one, and b becomes its client."""
    control = Control(SienaSettings(clients=2), Random(1))
    assert [control.place(name, "").broker for name in "abcd"] == [True, False, False, True]
    assert control.place("b", "a") == Place(False, "d")
    assert control.members == {"b": "d", "c": "a", "d": "d"}


def test_a_control_chooses_among_all_brokers_that_have_room() -> None:
    chosen = set()
    for seed in range(40):
        control = Control(SienaSettings(clients=2), Random(seed))
        for name in "abcdef":
            control.place(name, "")
        for gone in ("b", "e"):
            control.members.pop(gone)
        chosen.add(control.place("x", "").above)
    assert chosen == {"a", "d"}


def test_without_patience_a_neighbour_that_cannot_be_reached_is_gone_at_once() -> None:
    one = broker("c", settings=replace(SETTINGS, patience_s=0.0))
    assert one.unreachable(Subscribe(1, (CHEAP,)), "c", 10.0) == []
    assert list(one.links) == ["b"]
    assert one.unreachable(Bye(), "unknown", 10.0) == []
    assert one.unreachable(Bye(), "b", 10.0) == [StartTimer("enter", 15.0), Send("a", Enter("b"))]
    assert one.links == {}


def test_only_its_own_timer_sends_again_what_waits() -> None:
    one = broker("c")
    one.unreachable(Subscribe(1, (CHEAP,)), "c", 10.0)
    assert one.wake(("other", "c"), 15.0) == []
    assert one.wake(("again", "c"), 15.0)[0] == Send("c", Subscribe(1, (CHEAP,)))


def test_a_node_that_asks_all_waits_a_twentieth_to_a_half_of_the_time_between_questions() -> None:
    waits = []
    for seed in range(200):
        one = Siena("m", SienaSettings(retry_s=5.0), FixedLocation(), Random(seed))
        [asked, question, elect] = one.announce(Announcement(EventType("Document")), 10.0)
        assert (asked, question) == (StartTimer("enter", 15.0), Broadcast(Enter("")))
        assert isinstance(elect, StartTimer)
        waits.append(elect.at - 10.0)
    assert 0.25 <= min(waits) < 0.3
    assert 2.4 < max(waits) <= 2.5


def test_what_a_broker_wanted_before_its_node_connected_again_counts_no_more() -> None:
    one = broker()
    one.hear(Subscribe(1, (DEAR,)), "b", 1.0)
    assert list(one.texts.holders) == [DEAR]
    assert one.hear(NoNeighbour(), "b", 2.0) == [Send("b", Connect(True))]
    assert (one.texts.holders, one.links["b"].heard, one.links["b"].broker) == ({}, 0, True)


def test_an_event_that_comes_back_to_its_publisher_goes_nowhere() -> None:
    one = broker("c")
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    one.subscribe(ALL, 1.0)
    one.announce(Announcement(EventType("Document")), 1.0)
    assert one.publish(document(source="n"), 2.0) == [Send("c", Notify(document(source="n"), 1))]
    assert one.hear(Notify(document(source="n"), 2), "b", 3.0) == []
    assert (one.transfers, one.extraneous) == (0, 0)


def test_an_event_is_heard_once_whoever_sends_it() -> None:
    one = broker("c")
    one.subscribe(ALL, 0.5)
    assert one.hear(Notify(document(), 2), "b", 2.0) == [Deliver(document(), "n/1", 2)]
    assert one.hear(Notify(document(), 2), "c", 3.0) == []
    assert (one.transfers, one.extraneous) == (1, 0)


def test_an_event_without_a_name_is_dropped() -> None:
    one = broker()
    one.subscribe(ALL, 0.5)
    assert one.hear(Notify(document(id=""), 2), "b", 2.0) == [Drop(DropReason.MALFORMED_DOCUMENT)]
    assert one.transfers == 0


@pytest.mark.parametrize("types", [("Document",), ()])
def test_a_node_that_publishes_nothing_advertises_nothing_to_a_new_neighbour(types: tuple[str, ...]) -> None:
    one = broker()
    for subject in types:
        one.announce(Announcement(EventType(subject)), 1.0)
    expected = [Send("c", Advertise(1, "n", types))] if types else []
    assert one.hear(Connect(False), "c", 2.0) == expected
