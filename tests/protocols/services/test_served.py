"""A machine with services, beside flooding: each service sends its packets when it must, and no others."""

from random import Random
from typing import Any

import msgspec
import pytest

from earshot import Circle, Event, EventType, Filter, Position, Proximity
from earshot.errors import QualityError, UsageError
from earshot.filters import Subscription
from earshot.geometry import Velocity
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.hearsay.machine import Hearsay
from earshot.protocols.hearsay.packets import AlsoSaid, HearsaySettings, SaidTogether
from earshot.protocols.machine import NOTHING, Announcement, Broadcast, Deliver, Drop, FixedLocation, StartTimer
from earshot.protocols.services import served
from earshot.protocols.services.announced_types import Announced
from earshot.protocols.services.fences import AreasWanted, Crossed, Crossing, Fence, Here
from earshot.protocols.services.history import DeliverPast, PastEvent, PastWanted
from earshot.protocols.services.served import Late, Served, Warn

AT, STILL = Position(3.0, 4.0), Velocity(0.0, 0.0)
KEY = ("p", "Tick")
TICK = Filter.of_type("Tick")


class Middle(Random):
    """Every random time is the middle of its span."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2.0


def node(name: str = "a", neighbours: Any = None) -> Served:
    protocol = Flooding(name, FloodingSettings(), FixedLocation(AT), Middle(name))
    return Served(protocol, "flooding", Middle(name), neighbours)


def stated(time: float = 5.0, **changed: Any) -> Announced:
    says = Announced("p", time, "Tick", {}, {"history": "3"}, None, Position(0.0, 0.0), STILL, 0.0, (), False, 1)
    return msgspec.structs.replace(says, **changed)


def tick(n: int, **stamp: Any) -> Event:
    return Event("Tick", {"n": n}, **{"id": f"p-{n}", "source": "p", "time": float(n), **stamp})


def timer(*what: Any, at: float) -> StartTimer:
    return StartTimer(("service", *what), pytest.approx(at))


def hears(machine: Served, packet: Any, now: float, sender: str = "b") -> list[Any]:
    return list(machine.hear(packet, sender, now))


def wakes(machine: Served, *what: Any, now: float) -> list[Any]:
    return list(machine.wake(("service", *what), now))


def subscribed(machine: Served, now: float = 1.0, filter: Filter = TICK) -> list[Any]:
    return list(machine.subscribe(Subscription("a/s", "a", filter), now))


# Stating types.


def test_a_type_with_attributes_is_stated_at_once_and_every_few_seconds() -> None:
    machine = node("p")
    kind = EventType("Tick", {"n": int}, {"history": 2})
    says = Announced("p", 5.0, "Tick", {"n": "integer"}, {"history": "2"}, None, AT, STILL, 5.0, (), False, 1)
    assert machine.announce(Announcement(kind), 5.0) == [Broadcast(says), timer("state", at=9.5)]
    for n in (6, 7, 8):
        machine.publish(tick(n), float(n))
    again = msgspec.structs.replace(says, time=9.5, past_since=7.0)
    assert wakes(machine, "state", now=9.5) == [Broadcast(again), timer("state", at=14.0)]
    ended = msgspec.structs.replace(again, time=10.0, ended=True)
    assert machine.unannounce("Tick", 10.0) == [Broadcast(ended)]
    assert wakes(machine, "state", now=14.0) == []


def test_a_reliable_type_states_its_last_events() -> None:
    machine = node("p")
    machine.announce(Announcement(EventType("Tick", {}, {"reliability": "reliable"})), 5.0)
    machine.publish(tick(6), 6.0)
    (sent, _) = wakes(machine, "state", now=9.5)
    assert (sent.packet.recent, sent.packet.past_since) == (("p-6",), 9.5)
    (last,) = machine.stop(10.0)
    assert (last.packet.ended, last.packet.recent) == (True, ("p-6",))


def test_a_type_without_attributes_is_not_stated() -> None:
    machine = node("p")
    assert machine.announce(Announcement(EventType("Tick", {"n": int})), 5.0) == []
    assert machine.unannounce("Tick", 6.0) == []
    machine.announce(Announcement(EventType("Tick", {"n": int})), 7.0)
    assert machine.stop(8.0) == []


def test_a_protocol_that_knows_one_producer_of_a_type_refuses_others() -> None:
    machine = node()
    with pytest.raises(UsageError, match="flooding has one producer of a type on a node, got 'north'"):
        machine.announce(Announcement(EventType("Tick"), producer="north"), 5.0)
    assert machine.types.own == {}


def test_a_type_of_several_producers_is_stated_until_the_last_of_them_ends() -> None:
    class Several(Flooding):
        several_producers = True

    machine = Served(Several("p", FloodingSettings(), FixedLocation(AT), Middle("p")), "several", Middle("p"), None)
    kind = EventType("Tick", {}, {"history": 2})
    machine.announce(Announcement(kind, producer="north"), 5.0)
    machine.announce(Announcement(kind, producer="south"), 6.0)
    assert machine.unannounce("Tick#south", 7.0) == []
    assert machine.types.own == {"Tick": Announcement(kind, producer="north")}
    (last,) = machine.unannounce("Tick#north", 8.0)
    assert (last.packet.ended, machine.types.own) == (True, {})


def test_a_type_that_differs_from_what_others_announce_is_refused() -> None:
    machine = node()
    hears(machine, stated(), 5.0)
    with pytest.raises(QualityError):
        machine.announce(Announcement(EventType("Tick", {}, {"history": 1})), 6.0)
    with pytest.raises(QualityError):
        machine.declare("a/s", EventType("Tick", {}, {"history": 1}))
    assert (machine.types.own, machine.types.declared) == ({}, {})


def test_a_new_statement_is_passed_on_once() -> None:
    machine = node()
    assert hears(machine, stated(), 5.0) == [timer("pass on", KEY, at=5.025)]
    assert hears(machine, stated(hops=2), 5.01) == []
    assert wakes(machine, "pass on", KEY, now=5.025) == [Broadcast(stated(hops=2))]
    assert wakes(machine, "pass on", KEY, now=5.03) == []
    assert hears(machine, stated(source="a"), 5.04) == []


@pytest.mark.parametrize(("hops", "passed_on"), [(31, True), (32, False)])
def test_a_statement_stops_at_its_hop_limit(hops: int, passed_on: bool) -> None:
    assert bool(hears(node(), stated(hops=hops), 5.0)) == passed_on


def test_a_statement_is_not_carried_out_of_its_area() -> None:
    near = Proximity(Circle(1.0), Position(0.0, 0.0))
    assert hears(node(), stated(proximity=near), 5.0) == []


def test_the_statements_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert served.MOST_WAITING == 1024
    monkeypatch.setattr(served, "MOST_WAITING", 1)
    machine = node()
    hears(machine, stated(), 5.0)
    assert hears(machine, stated(source="q"), 5.0) == [Drop("too-many-packets-waiting")]


RELIABLE = {"reliability": "reliable"}


def test_a_reliable_statement_is_repeated_unless_others_did() -> None:
    machine = node()
    one = stated(attributes=RELIABLE)
    assert hears(machine, one, 5.0) == [timer("pass on", KEY, at=5.025), timer("state", at=9.5)]
    hears(machine, one, 5.1)
    assert wakes(machine, "state", now=9.5) == [timer("state", at=14.0), Broadcast(stated(attributes=RELIABLE, hops=2))]
    for _ in range(2):
        hears(machine, one, 10.0)
    assert wakes(machine, "state", now=14.0) == [timer("state", at=18.5)]
    assert Broadcast(stated(attributes=RELIABLE, hops=2)) in wakes(machine, "state", now=18.5)
    assert wakes(machine, "state", now=23.0) == []


def test_a_reliable_statement_is_not_repeated_outside_its_area() -> None:
    machine = node()
    hears(machine, stated(attributes=RELIABLE, proximity=Proximity(Circle(1.0), Position(0.0, 0.0))), 5.0)
    assert wakes(machine, "state", now=9.5) == [timer("state", at=14.0)]


# Deadlines, lifespans, and types that differ.


def test_a_late_delivery_is_marked_with_how_late_it_is() -> None:
    machine = node()
    subscribed(machine)
    hears(machine, stated(attributes={"deadline_s": "2"}), 5.0)
    on_time, late = tick(6), tick(7)
    assert Deliver(on_time, "a/s", 1) in hears(machine, Flood(on_time, 1), 8.0)
    found = hears(machine, Flood(late, 1), 9.5)
    assert found[:2] == [Late(late, "a/s", 0.5), Deliver(late, "a/s", 1)]


def test_a_delivery_after_the_events_lifespan_is_dropped() -> None:
    machine = node()
    subscribed(machine)
    short = [tick(n, lifespan_s=2.0) for n in (6, 7)]
    given = machine._judged([Deliver(short[0], "a/s", 1), Deliver(short[1], "a/s", 1)], 8.5)
    assert given == [Deliver(short[1], "a/s", 1), Drop("expired", "p-6")]


def test_an_event_is_delivered_to_a_subscription_once() -> None:
    machine = node()
    twice = [Deliver(tick(6), "a/s", 1), Deliver(tick(6), "a/t", 1), Deliver(tick(6), "a/s", 2)]
    assert machine._judged(twice, 6.5) == twice[:2]
    assert machine._judged(NOTHING, 6.5) is NOTHING


def test_events_of_a_type_that_differs_are_dropped_and_the_user_is_warned_once() -> None:
    machine = node()
    machine.declare("a/s", EventType("Tick", {}, {"history": 1}))
    subscribed(machine)
    why = "Tick: p has history = 3, this node history = 1; all nodes must use one list of attributes for a type"
    assert hears(machine, stated(), 5.0)[1:] == [Drop("attributes-differ"), Warn(why)]
    assert hears(machine, stated(6.0), 6.0) == [timer("pass on", KEY, at=6.025)]
    assert Drop("attributes-differ", "p-7") in hears(machine, Flood(tick(7), 1), 7.5)
    machine.unsubscribe("a/s", 8.0)
    assert (machine.types.declared, bool(machine.types.heard)) == ({}, True)


# History.


def test_a_late_subscriber_asks_gathers_and_delivers_the_last_events() -> None:
    machine = node()
    hears(machine, stated(past_since=2.0), 5.0)
    hears(machine, Flood(tick(4), 1), 5.5)
    gather = ("gather", "a/s", KEY)
    assert subscribed(machine, 6.0) == [Broadcast(PastWanted(*KEY, (), 6.0, ("p-4",))), timer(*gather, at=6.5)]
    for n in (1, 3, 2, 6):
        hears(machine, PastEvent(tick(n)), 6.1)
    assert wakes(machine, *gather, now=6.5) == [
        Broadcast(PastWanted(*KEY, (), 6.0, ("p-1", "p-2", "p-3", "p-4"))), timer(*gather, at=7.0),
    ]  # fmt: skip
    assert wakes(machine, *gather, now=7.0) == [DeliverPast(tick(n), "a/s") for n in (2, 3, 4)]
    assert hears(machine, stated(8.0), 8.0) == [timer("pass on", KEY, at=8.025)]


def test_all_events_of_a_packet_are_kept() -> None:
    machine = Served(Hearsay("a", HearsaySettings(), FixedLocation(AT), Middle("a")), "hearsay", Middle("a"), None)
    hears(machine, stated(past_since=2.0), 5.0)
    hears(machine, SaidTogether(tick(3), 1, None, (AlsoSaid(tick(4), 1),)), 5.5)
    assert Broadcast(PastWanted(*KEY, (), 6.0, ("p-3", "p-4"))) in subscribed(machine, 6.0)


def test_what_is_older_than_the_publishers_history_is_not_delivered() -> None:
    machine = node()
    hears(machine, stated(past_since=2.0), 5.0)
    subscribed(machine, 6.0)
    for n in (1, 2):
        hears(machine, PastEvent(tick(n)), 6.1)
    wakes(machine, "gather", "a/s", KEY, now=6.5)
    assert wakes(machine, "gather", "a/s", KEY, now=7.0) == [DeliverPast(tick(2), "a/s")]


def test_a_late_subscriber_asks_three_times_at_most() -> None:
    machine = node()
    hears(machine, stated(), 5.0)
    subscribed(machine, 9.0)
    asked = 0
    for n in range(5):
        hears(machine, PastEvent(tick(n)), 9.1)
        found = wakes(machine, "gather", "a/s", KEY, now=10.0 + n)
        asked += any(isinstance(one, Broadcast) for one in found)
        if any(isinstance(one, DeliverPast) for one in found):
            break
    assert (asked, found) == (2, [DeliverPast(tick(n), "a/s") for n in (0, 1, 2)])


def test_past_events_are_filtered_and_typed() -> None:
    machine = node()
    hears(machine, stated(content={"n": "integer"}), 5.0)
    subscribed(machine, 6.0, Filter.where("n > 1", type="Tick"))
    for event in (tick(1), tick(2), Event("Tick", {"m": 3}, id="p-3", source="p", time=3.0)):
        hears(machine, PastEvent(event), 6.1)
    wakes(machine, "gather", "a/s", KEY, now=6.5)
    assert wakes(machine, "gather", "a/s", KEY, now=7.0) == [DeliverPast(tick(2), "a/s")]


def test_only_subscriptions_that_the_type_could_match_ask() -> None:
    machine = node()
    hears(machine, stated(), 5.0)
    assert subscribed(machine, 6.0, Filter.of_type("Tock")) == []
    other = node()
    hears(other, stated(attributes={"priority": "1"}), 5.0)
    assert subscribed(other, 6.0) == []


def test_who_unsubscribes_gets_no_past_events() -> None:
    machine = node()
    hears(machine, stated(), 5.0)
    subscribed(machine, 6.0)
    hears(machine, PastEvent(tick(2)), 6.1)
    machine.unsubscribe("a/s", 6.2)
    assert (wakes(machine, "gather", "a/s", KEY, now=6.5), machine._asking) == ([], {})


def keeping(name: str = "a") -> Served:
    """A node that has kept the ticks 1 to 3."""
    machine = node(name)
    hears(machine, stated(), 0.5)
    for n in (1, 2, 3):
        hears(machine, Flood(tick(n), 1), n + 0.1)
    return machine


def test_a_neighbour_answers_soon_with_what_is_lacked() -> None:
    machine = keeping()
    assert hears(machine, PastWanted(*KEY, (), 3.0, ("p-1",)), 5.0) == [timer("answer", at=5.1)]
    assert wakes(machine, "answer", now=5.1) == [Broadcast(PastEvent(tick(2)))]
    assert wakes(machine, "answer", now=5.2) == []


def test_the_publisher_answers_before_others() -> None:
    machine = node("p")
    machine.announce(Announcement(EventType("Tick", {}, {"history": 2})), 0.5)
    machine.publish(tick(1), 1.0)
    assert hears(machine, PastWanted(*KEY, (), 3.0, ()), 5.0) == [timer("answer", at=5.025)]


def test_missed_events_are_answered_whenever_they_were_published() -> None:
    machine = keeping()
    hears(machine, PastWanted(*KEY, ("p-3", "p-1", "p-9"), 0.0, ()), 5.0)
    assert wakes(machine, "answer", now=5.1) == [Broadcast(PastEvent(tick(n))) for n in (1, 3)]


def test_a_neighbour_that_asks_again_at_once_is_not_answered_again() -> None:
    machine = keeping()
    wanted = PastWanted(*KEY, (), 3.0, ())
    hears(machine, wanted, 5.0)
    wakes(machine, "answer", now=5.1)
    assert hears(machine, wanted, 5.39) == []
    assert hears(machine, wanted, 5.39, sender="c") == [timer("answer", at=5.49)]
    wakes(machine, "answer", now=5.5)
    assert hears(machine, wanted, 5.4) == [timer("answer", at=5.5)]


def test_what_another_answers_with_is_left_out() -> None:
    machine = keeping()
    hears(machine, PastWanted(*KEY, (), 4.0, ()), 5.0)
    hears(machine, PastEvent(tick(2)), 5.05)
    assert wakes(machine, "answer", now=5.1) == [Broadcast(PastEvent(tick(n))) for n in (1, 3)]


def test_nobody_answers_who_has_nothing_or_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = keeping()
    assert hears(machine, PastWanted("q", "Tick", (), 4.0, ()), 5.0) == []
    monkeypatch.setattr(served, "MOST_WAITING", 2)
    assert hears(machine, PastWanted(*KEY, (), 4.0, ()), 5.0) == []
    assert hears(machine, PastWanted(*KEY, (), 4.0, ("p-1",)), 5.0) == [timer("answer", at=5.1)]


# Reliability.


def test_a_missed_reliable_event_is_asked_for_and_delivered_once() -> None:
    machine = node()
    subscribed(machine, 1.0)
    says = stated(attributes=RELIABLE, recent=("p-2", "p-3"))
    assert hears(machine, says, 5.0)[2:] == [timer("recover", KEY, at=5.75)]
    assert wakes(machine, "recover", KEY, now=5.75) == [
        Broadcast(PastWanted(*KEY, ("p-2", "p-3"), 0.0, ())), timer("recover", KEY, at=6.5),
    ]  # fmt: skip
    assert hears(machine, PastEvent(tick(2)), 6.0) == [Deliver(tick(2), "a/s")]
    assert hears(machine, PastEvent(tick(2)), 6.1) == []
    assert Deliver(tick(2), "a/s", 1) not in hears(machine, Flood(tick(2), 1), 6.2)
    asked = [wakes(machine, "recover", KEY, now=6.5 + n) for n in range(3)]
    wanted = [Broadcast(PastWanted(*KEY, ("p-3",), 0.0, ()))]
    assert [found[:1] for found in asked] == [wanted, wanted, []]


def test_a_statement_lets_a_node_ask_three_times_again() -> None:
    machine = node()
    subscribed(machine, 1.0)
    for time in (5.0, 10.0):
        hears(machine, stated(time, attributes=RELIABLE, recent=("p-3",)), time)
        asked = [wakes(machine, "recover", KEY, now=time + n) for n in range(1, 5)]
        assert [bool(found) for found in asked] == [True, True, True, False]


def test_a_reliable_event_that_passed_through_is_delivered_without_asking() -> None:
    machine = node()
    subscribed(machine, 1.0)
    hears(machine, stated(attributes=RELIABLE, recent=("p-2",)), 5.0)
    machine.history.keep(tick(2), machine.types.heard[KEY].event_type.quality)
    assert wakes(machine, "recover", KEY, now=5.75) == [Deliver(tick(2), "a/s")]


@pytest.mark.parametrize(
    ("event", "now"),
    [
        (tick(0), 6.0),
        (tick(2, lifespan_s=3.0), 6.0),
        (Event("Tick", {"m": 2}, id="p-2", source="p", time=2.0), 6.0),
        (Event("Tock", {"n": 2}, id="p-2", source="p", time=2.0), 6.0),
    ],
    ids=["before the subscription", "expired", "of other content", "of another type"],
)
def test_a_recovered_event_that_should_not_be_delivered_is_not(event: Event, now: float) -> None:
    machine = node()
    subscribed(machine, 1.0)
    hears(machine, stated(attributes=RELIABLE, content={"n": "integer"}), 5.0)
    assert hears(machine, PastEvent(event), now) == []
    assert hears(machine, PastEvent(tick(1)), now) == [Deliver(tick(1), "a/s")]


def test_an_event_of_a_type_that_is_not_reliable_is_not_delivered_late() -> None:
    machine = node()
    subscribed(machine, 1.0)
    hears(machine, stated(), 5.0)
    assert hears(machine, PastEvent(tick(2)), 6.0) == []


# Fences.


def test_a_node_with_fences_looks_often_and_asks_for_areas() -> None:
    machine = node()
    assert machine.fence(Fence("f", "Tick"), 1.0) == [timer("look", at=1.0), timer("areas", at=1.0)]
    assert machine.fence(Fence("g", near_m=9.0), 1.0) == []
    asked = [wakes(machine, "areas", now=now) for now in (1.0, 21.0)]
    assert asked == [
        [timer("areas", at=now + 20.0), Broadcast(AreasWanted("a", n, 1))] for n, now in ((1, 1.0), (2, 21.0))
    ]
    hears(machine, stated(proximity=Proximity(Circle(9.0), Position(0.0, 0.0))), 5.0)
    assert wakes(machine, "look", now=5.25) == [timer("look", at=5.5), Crossed("f", Crossing.ENTER, "p", "Tick")]
    assert wakes(machine, "look", now=21.1) == [timer("look", at=21.35), Crossed("f", Crossing.LEAVE, "p", "Tick")]
    machine.unfence("f", 22.0)
    assert wakes(machine, "areas", now=41.0) == [timer("areas", at=61.0)]
    machine.unfence("g", 42.0)
    assert [wakes(machine, what, now=61.0) for what in ("look", "areas")] == [[], []]


def test_areas_that_are_wanted_are_stated_for_a_minute() -> None:
    machine = node("p")
    near = Proximity(Circle(9.0), Position(0.0, 0.0))
    assert machine.announce(Announcement(EventType("Tick"), near), 1.0) == []
    assert machine.announce(Announcement(EventType("Tock")), 1.0) == []
    wanted = AreasWanted("a", 1, 1)
    assert hears(machine, wanted, 5.0) == [timer("state", at=5.025), timer("pass on", "a", at=5.025)]
    assert hears(machine, wanted, 5.01) == []
    assert wakes(machine, "pass on", "a", now=5.025) == [Broadcast(AreasWanted("a", 1, 2))]
    (sent, again) = wakes(machine, "state", now=5.025)
    assert (sent.packet.subject, sent.packet.proximity, again) == ("Tick", near, timer("state", at=9.525))
    assert len(wakes(machine, "state", now=64.9)) == 2
    assert wakes(machine, "state", now=65.0) == []


def test_a_question_for_areas_stops_at_its_source_and_its_hop_limit() -> None:
    machine = node("a")
    assert hears(machine, AreasWanted("a", 1, 1), 5.0) == []
    assert hears(machine, AreasWanted("b", 1, 32), 5.0) == []
    assert hears(machine, AreasWanted("b", 2, 31), 5.0) == [timer("pass on", "b", at=5.025)]


def test_nodes_tell_each_other_where_they_are_every_second() -> None:
    machine = node()
    assert machine.state_position(1.0) == [timer("here", at=1.5)]
    assert wakes(machine, "here", now=1.5) == [Broadcast(Here(AT)), timer("here", at=2.5)]


def test_a_neighbour_that_is_not_heard_for_three_and_a_half_seconds_is_far() -> None:
    machine = node()
    machine.fence(Fence("f", near_m=9.0), 1.0)
    hears(machine, Here(Position(0.0, 0.0)), 2.0)
    found = [wakes(machine, "look", now=now)[1:] for now in (2.1, 5.5, 5.6)]
    assert found == [[Crossed("f", Crossing.NEARBY, "b")], [], [Crossed("f", Crossing.FARAWAY, "b")]]


def test_a_host_that_knows_its_neighbours_is_asked() -> None:
    machine = node(neighbours=lambda: [("c", Position(0.0, 0.0))])
    machine.fence(Fence("f", near_m=9.0), 1.0)
    hears(machine, Here(Position(0.0, 0.0)), 2.0)
    assert wakes(machine, "look", now=2.1)[1:] == [Crossed("f", Crossing.NEARBY, "c")]


def test_where_neighbours_are_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "MOST_STATEMENTS", 2)
    machine = node()
    for now, sender in ((1.0, "b"), (3.0, "c"), (4.5, "c"), (4.5, "d")):
        hears(machine, Here(AT), now, sender)
    assert list(machine._here) == ["c", "d"]
    hears(machine, Here(AT), 4.6, "e")
    assert list(machine._here) == ["d", "e"]
    machine.forget(9.0)
    assert (list(machine._here), machine._here.bytes) == ([], 0)
