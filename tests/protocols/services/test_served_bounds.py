"""A machine with services: what it passes on, what it holds at most, and what happens at the edges of its times."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from earshot import Event, EventType, Filter, Position
from earshot.filters import Subscription
from earshot.geometry import Circle, Proximity, Velocity
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.machine import (
    Announcement,
    Broadcast,
    Deliver,
    Drop,
    Effects,
    FixedLocation,
    Machine,
    StartTimer,
)
from earshot.protocols.services import announced_types, served
from earshot.protocols.services.announced_types import Announced, AnnouncedTypes, statement_bytes
from earshot.protocols.services.fences import AreasWanted
from earshot.protocols.services.history import DeliverPast, PastEvent, PastWanted
from earshot.protocols.services.served import Served
from earshot.wire import Packet

AT, STILL = Position(3.0, 4.0), Velocity(0.0, 0.0)
KEY = ("p", "Tick")
TICK = Filter.of_type("Tick")
RELIABLE = {"reliability": "reliable"}


class Middle(Random):
    """Every random time is the middle of its span."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2.0


def node(name: str = "a", protocol: type[Machine] = Flooding) -> Served:
    return Served(protocol(name, FloodingSettings(), FixedLocation(AT), Middle(name)), "flooding", Middle(name))


def stated(time: float = 5.0, **changed: Any) -> Announced:
    says = Announced("p", time, "Tick", {}, {"history": "3"}, None, Position(0.0, 0.0), STILL, 0.0, (), False, 1)
    return msgspec.structs.replace(says, **changed)


def tick(n: int, **stamp: Any) -> Event:
    return Event("Tick", {"n": n}, **{"id": f"p-{n:03}", "source": "p", "time": float(n), **stamp})


def timer(*what: Any, at: float) -> StartTimer:
    return StartTimer(("service", *what), pytest.approx(at))


def wakes(machine: Served, *what: Any, now: float) -> list[Any]:
    return list(machine.wake(("service", *what), now))


def subscribe(machine: Served, now: float = 1.0, filter: Filter = TICK, id: str = "a/s") -> list[Any]:
    return list(machine.subscribe(Subscription(id, "a", filter), now))


# What the protocol's own machine hears.


class Probe(Machine):
    """Notes each call."""

    def noted(self, *call: object) -> Effects:
        self.note("call", " ".join(map(str, call)))
        return self.effects()

    def start(self, now: float) -> Effects:
        return self.noted("start", now)

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        return self.noted("subscribe", subscription.id, now)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        return self.noted("unsubscribe", subscription, now)

    def announce(self, announcement: Announcement, now: float) -> Effects:
        return self.noted("announce", announcement.name, now)

    def unannounce(self, subject: str, now: float) -> Effects:
        return self.noted("unannounce", subject, now)

    def publish(self, event: Event, now: float) -> Effects:
        return self.noted("publish", event.id, now)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        return self.noted("hear", type(packet).__name__, sender, now)

    def wake(self, timer: Any, now: float) -> Effects:
        return self.noted("wake", timer, now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        return self.noted("unreachable", type(packet).__name__, peer, now)

    def stop(self, now: float) -> Effects:
        return self.noted("stop", now)


def test_everything_is_passed_on_to_the_protocol_as_it_came() -> None:
    machine, flood = node(protocol=Probe), Flood(tick(1), 1)
    calls = [
        machine.start(1.0),
        subscribe(machine, 2.0),
        machine.unsubscribe("a/s", 3.0),
        machine.announce(Announcement(EventType("Tick")), 4.0),
        machine.unannounce("Tick", 5.0),
        machine.publish(tick(1), 6.0),
        machine.hear(flood, "b", 7.0),
        machine.wake("timer", 8.0),
        machine.wake((), 8.5),
        machine.unreachable(flood, "c", 9.0),
        machine.stop(10.0),
    ]
    assert [[effect.detail for effect in effects] for effects in calls] == [
        ["start 1.0"], ["subscribe a/s 2.0"], ["unsubscribe a/s 3.0"], ["announce Tick 4.0"], ["unannounce Tick 5.0"],
        ["publish p-001 6.0"], ["hear Flood b 7.0"], ["wake timer 8.0"], ["wake () 8.5"], ["unreachable Flood c 9.0"],
        ["stop 10.0"],
    ]  # fmt: skip


def test_what_the_services_ask_for_follows_what_the_protocol_asks_for() -> None:
    machine = node("p", Probe)
    found = machine.announce(Announcement(EventType("Tick", {}, {"history": 2})), 5.0)
    assert [type(effect).__name__ for effect in found] == ["Note", "Broadcast", "StartTimer"]
    assert [type(effect).__name__ for effect in machine.stop(6.0)] == ["Note", "Broadcast"]


# Stating.


def test_one_timer_states_all_types() -> None:
    machine = node("p")
    for subject, timers in (("Tick", 1), ("Tock", 0)):
        found = machine.announce(Announcement(EventType(subject, {}, {"history": 2})), 5.0)
        assert sum(isinstance(effect, StartTimer) for effect in found) == timers
    again = wakes(machine, "state", now=9.5)
    assert [one.packet.subject for one in again if isinstance(one, Broadcast)] == ["Tick", "Tock"]
    assert [one for one in again if isinstance(one, StartTimer)] == [timer("state", at=14.0)]


def test_areas_are_not_stated_before_somebody_wants_them_even_at_the_very_beginning() -> None:
    near = Proximity(Circle(9.0), Position(0.0, 0.0))
    assert node("p").announce(Announcement(EventType("Tick"), near), 0.0) == []


def test_a_question_for_areas_starts_no_second_timer_where_types_are_stated_already() -> None:
    machine = node("p")
    machine.announce(Announcement(EventType("Tick", {}, {"history": 2})), 5.0)
    assert machine.hear(AreasWanted("b", 1, 1), "b", 6.0) == [timer("pass on", "b", at=6.025)]


@pytest.mark.parametrize(("now", "is_new"), [(64.9, False), (65.0, True)])
def test_questions_for_areas_are_forgotten_when_no_areas_are_wanted(now: float, is_new: bool) -> None:
    machine = node()
    machine.hear(AreasWanted("b", 1, 1), "b", 5.0)
    machine.forget(now)
    assert bool(machine.hear(AreasWanted("b", 1, 1), "b", now)) == is_new


def test_a_host_lets_a_node_forget_what_was_not_renewed() -> None:
    machine = node()
    machine.hear(stated(), "b", 5.0)
    machine.forget(21.0)
    assert list(machine.types.heard) == [KEY]
    machine.forget(21.1)
    assert machine.types.heard == {}


def test_the_end_of_a_type_is_passed_on_and_asks_for_nothing() -> None:
    machine = node()
    subscribe(machine)
    end = stated(attributes=RELIABLE, recent=("p-002",), ended=True)
    assert machine.hear(end, "b", 5.0) == [timer("pass on", KEY, at=5.025)]


# What waits to be passed on.


def test_what_waits_to_be_passed_on_counts_its_bytes_until_it_is() -> None:
    machine = node()
    longer = stated(6.0, recent=("p-001",))
    for packet in (stated(), longer):
        machine.hear(packet, "b", 6.0)
        assert machine._passing_bytes == statement_bytes(packet), "a later statement takes the place of the one before"
    machine.hear(AreasWanted("b", 1, 1), "b", 6.0)
    assert machine._passing_bytes == statement_bytes(longer) + 1024
    wakes(machine, "pass on", "b", now=6.1)
    assert machine._passing_bytes == statement_bytes(longer)
    wakes(machine, "pass on", KEY, now=6.1)
    assert machine._passing_bytes == 0


def test_what_waits_to_be_passed_on_may_fill_a_table_and_no_more() -> None:
    machine = node()
    machine.budgets.table_bytes = 2 * 1024
    asked = [machine.hear(AreasWanted(name, 1, 1), "b", 5.0) for name in "xyz"]
    assert asked == [
        [timer("pass on", "x", at=5.025)], [timer("pass on", "y", at=5.025)], [Drop("too-many-packets-waiting")],
    ]  # fmt: skip


def test_statements_may_fill_their_table_and_no_more() -> None:
    known, one = AnnouncedTypes("flooding", frozenset(("history",)), budgets := TableBudgets()), stated()
    budgets.share = 3 * statement_bytes(one) / announced_types.MOST_BYTES
    for name in "wxyz":
        known.hear(msgspec.structs.replace(one, source=name), 5.0)
    assert ([source for source, _ in known.heard], known.bytes) == (["x", "y", "z"], 3 * statement_bytes(one))


# Deadlines.


def test_an_event_at_its_very_deadline_is_not_late() -> None:
    machine = node()
    subscribe(machine)
    machine.hear(stated(attributes={"deadline_s": "2"}), "b", 5.0)
    assert next(iter(machine.hear(Flood(tick(6), 1), "b", 8.0))) == Deliver(tick(6), "a/s", 1)


# History.


def test_at_most_256_questions_for_the_past_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert served.MOST_ASKING == 256
    monkeypatch.setattr(served, "MOST_ASKING", 2)
    machine = node()
    for source in "pqr":
        machine.hear(stated(source=source), "b", 5.0)
    asked = [one.packet.source for one in subscribe(machine, 6.0) if isinstance(one, Broadcast)]
    assert (asked, len(machine._asking)) == (["p", "q"], 2)
    assert [source for source in "pqr" if (source, "Tick") in machine._asked["a/s"]] == ["p", "q"]
    machine.unsubscribe("a/s", 6.1)
    assert machine._asked == {}


def test_200_past_events_are_gathered_and_named_in_a_question() -> None:
    machine = node()
    machine.hear(stated(attributes={"history": "100"}), "b", 5.0)
    subscribe(machine, 900.0)
    for n in range(300):
        machine.hear(PastEvent(tick(n)), "b", 900.1)
    asking = machine._asking["a/s", KEY]
    assert list(asking.gathered) == [f"p-{n:03}" for n in range(200)]
    (again, _) = wakes(machine, "gather", "a/s", KEY, now=900.5)
    assert again == Broadcast(PastWanted(*KEY, (), 900.0, tuple(f"p-{n:03}" for n in range(200))))


def test_past_events_are_for_where_the_subscriber_is_now() -> None:
    machine = node()
    machine.hear(stated(), "b", 5.0)
    subscribe(machine, 6.0, Filter.where("within 10 m", type="Tick"))
    near, far = tick(2, position=Position(0.0, 0.0)), tick(3, position=Position(90.0, 0.0))
    for event in (near, far):
        machine.hear(PastEvent(event), "b", 6.1)
    wakes(machine, "gather", "a/s", KEY, now=6.5)
    assert wakes(machine, "gather", "a/s", KEY, now=7.0) == [DeliverPast(near, "a/s")]


def test_past_events_of_a_publisher_that_is_no_longer_heard_are_not_delivered() -> None:
    machine = node()
    machine.hear(stated(), "b", 5.0)
    subscribe(machine, 6.0)
    machine.hear(PastEvent(tick(2)), "b", 6.1)
    wakes(machine, "gather", "a/s", KEY, now=6.5)
    machine.forget(21.1)
    assert wakes(machine, "gather", "a/s", KEY, now=21.2) == []


# Reliability.


def test_a_statement_that_comes_while_events_are_recovered_starts_no_second_timer() -> None:
    machine = node()
    subscribe(machine)
    machine.hear(stated(attributes=RELIABLE, recent=("p-002",)), "b", 5.0)
    again = machine.hear(stated(5.1, attributes=RELIABLE, recent=("p-002", "p-003")), "b", 5.1)
    assert again == [timer("pass on", KEY, at=5.125)]
    assert wakes(machine, "recover", KEY, now=5.75)[0] == Broadcast(PastWanted(*KEY, ("p-002", "p-003"), 0.0, ()))


def test_the_events_of_a_bounded_number_of_publishers_are_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "MOST_ASKING", 1)
    machine, timers = node(), []
    for source in "pqr":
        found = machine.hear(stated(source=source, attributes=RELIABLE, recent=("e",)), "b", 5.0)
        timers.append(timer("recover", (source, "Tick"), at=5.75) in found)
    assert timers == [True, True, False]


def test_a_publisher_that_is_no_longer_heard_is_asked_for_nothing() -> None:
    machine = node()
    subscribe(machine)
    machine.hear(stated(attributes=RELIABLE, recent=("p-002",)), "b", 5.0)
    machine.forget(21.1)
    assert wakes(machine, "recover", KEY, now=21.2) == []


def test_the_tables_of_the_services_have_these_places() -> None:
    machine = node()
    subscribe(machine)
    tables: list[Any] = [machine._delivered, machine._asked["a/s"], machine._answered, machine._areas_asked]
    tables += [machine._here, machine.types.ended]
    assert [table.capacity for table in tables] == [8192, 4096, 1024, 4096, 4096, 4096]
