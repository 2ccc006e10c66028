"""The tabletop: a host in which every link takes the same time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from earshot.errors import MachineFailure
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.flooding import Flood
from earshot.protocols.machine import Effects, FixedLocation, Machine, Timer
from earshot.protocols.tabletop import Tabletop
from earshot.records import DropReason
from earshot.wire import Packet

EVENT = Event("Ping", id="e", source="a")
FLOOD = Flood(EVENT, 1)
MOST = 100
"Timers of one node at one time."


class Puppet(Machine):
    """Does what a test tells it, and writes down what happens to it."""

    def __init__(self, node: str, routed: bool = False) -> None:
        super().__init__(node, None, FixedLocation(), Random(1))
        self.routed = routed
        self.calls: list[tuple[Any, ...]] = []
        self.when_woken: Callable[[Puppet, Timer, float], None] = lambda *_: None

    def uses_routing(self, _: Any) -> bool:  # type: ignore[override]
        return self.routed

    def act(self, do: Callable[[Puppet], None], _: float) -> Effects:
        do(self)
        return self.effects()

    def start(self, now: float) -> Effects:
        self.calls.append(("start", now))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        self.calls.append(("hear", packet, sender, now))
        return self.effects()

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        self.calls.append(("unreachable", packet, peer, now))
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        self.calls.append(("wake", timer, now))
        self.when_woken(self, timer, now)
        return self.effects()

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.calls.append(("subscribe", subscription.id, now))
        return self.effects()


def table(*links: str, routed: bool = False) -> tuple[Tabletop, Callable[[str], list[tuple[Any, ...]]]]:
    """Nodes a to d with these links, and what has happened to a node since it was last asked."""
    host = Tabletop([Puppet(name, routed) for name in "dcba"], [(link[0], link[1]) for link in links], delay_s=0.5)

    def happened(node: str) -> list[tuple[Any, ...]]:
        puppet = host.machines[node]
        assert isinstance(puppet, Puppet)
        found, puppet.calls = puppet.calls, []
        return found

    for name in "abcd":
        assert happened(name) == [("start", 0.0)]
    return host, happened


def test_a_broadcast_is_heard_by_those_with_a_link_after_the_delay() -> None:
    host, happened = table("ab", "ca")
    host.do("a", "act", lambda puppet: puppet.broadcast(FLOOD))
    host.run(0.49)
    assert [happened(name) for name in "abcd"] == [[], [], [], []]
    host.run(0.5)
    assert [happened(name) for name in "abcd"] == [[], [("hear", FLOOD, "a", 0.5)], [("hear", FLOOD, "a", 0.5)], []]
    assert (host.sent, host.now) == ([("a", FLOOD)], 0.5)


def test_a_link_may_come_and_go_in_both_directions() -> None:
    host, happened = table()
    host.link("a", "b")
    host.do("b", "act", lambda puppet: puppet.broadcast(FLOOD))
    host.run(1.0)
    assert happened("a") == [("hear", FLOOD, "b", 0.5)]
    host.cut("b", "a")
    host.cut("b", "a")
    for name in "ab":
        host.do(name, "act", lambda puppet: puppet.broadcast(FLOOD))
    host.run(2.0)
    assert (happened("a"), happened("b")) == ([], [])


def test_a_group_is_heard_by_its_members() -> None:
    host, happened = table("ab", "ac")
    host.do("b", "act", lambda puppet: puppet.join_group(5))
    host.do("a", "act", lambda puppet: puppet.broadcast(FLOOD, group=5))
    host.run(1.0)
    assert (happened("b"), happened("c")) == ([("hear", FLOOD, "a", 0.5)], [])
    host.do("b", "act", lambda puppet: puppet.leave_group(5))
    host.do("a", "act", lambda puppet: puppet.broadcast(FLOOD, group=5))
    host.run(2.0)
    assert happened("b") == []


@pytest.mark.parametrize(
    ("routed", "peer", "arrives"),
    [(False, "b", True), (False, "c", False), (True, "c", True), (True, "b", True), (True, "nobody", False)],
)
def test_a_send_arrives_over_a_link_or_by_routing_and_else_comes_back(routed: bool, peer: str, arrives: bool) -> None:
    host, happened = table("ab", routed=routed)
    host.do("a", "act", lambda puppet: puppet.send(peer, FLOOD))
    host.run(0.4)
    assert happened("a") == []
    host.run(1.0)
    assert happened("a") == ([] if arrives else [("unreachable", FLOOD, peer, 0.5)])
    if peer != "nobody":
        assert happened(peer) == ([("hear", FLOOD, "a", 0.5)] if arrives else [])
    assert host.sent == [("a", FLOOD)]


def test_a_timer_fires_once_as_it_was_last_set_and_not_in_the_past() -> None:
    host, happened = table()
    host.run(1.0)

    def start(puppet: Puppet) -> None:
        puppet.start_timer("early", 0.2)
        puppet.start_timer("twice", 5.0)
        puppet.start_timer("twice", 3.0)
        puppet.start_timer("later", 2.0)
        puppet.start_timer("later", 4.0)
        puppet.start_timer("never", 2.5)
        puppet.cancel_timer("never")
        puppet.cancel_timer("unknown")

    host.do("a", "act", start)
    host.run(10.0)
    assert happened("a") == [("wake", "early", 1.0), ("wake", "twice", 3.0), ("wake", "later", 4.0)]
    assert (happened("b"), host.now) == ([], 10.0)


def test_deliveries_drops_and_notes_are_kept_in_order() -> None:
    host, happened = table()
    host.do("b", "subscribe", Subscription("s", "b", Filter.of_type("Ping")))
    assert happened("b") == [("subscribe", "s", 0.0)]

    def act(puppet: Puppet) -> None:
        puppet.deliver(EVENT, "s", hops=1)
        puppet.drop(DropReason.EXPIRED, "e")
        puppet.note("broker", "b")

    host.do("b", "act", act)
    assert (host.delivered, host.drops, host.notes) == ([("b", "e", "s")], [("b", "expired")], [("b", "broker", "b")])
    with pytest.raises(MachineFailure, match="subscription 's', which nobody made here"):
        host.do("a", "act", lambda puppet: puppet.deliver(EVENT, "s"))


def test_a_machine_that_raises_is_named_with_the_call() -> None:
    host, _ = table()
    host.run(2.0)
    with pytest.raises(MachineFailure, match=r"Puppet on node 'a' raised KeyError: 'x'\n  at 2.0 s, in act\(<function"):
        host.do("a", "act", lambda _: {}["x"])


class Rounded(Packet, frozen=True, tag="rounded of the tests"):
    number: tuple[Any, ...]


def test_a_packet_that_changes_on_the_wire_is_refused() -> None:
    host, _ = table("ab")
    with pytest.raises(
        MachineFailure, match=r"the packet Rounded\(.*\) became Rounded\(.*\) on the wire; change its fi"
    ):
        host.do("a", "act", lambda puppet: puppet.broadcast(Rounded(((1, 2),))))


def test_timers_without_end_at_one_time_are_a_livelock_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.protocols.tabletop.MOST_AT_ONE_TIME", MOST)
    host, happened = table()

    def again(puppet: Puppet, timer: Timer, now: float) -> None:
        if len(puppet.calls) < MOST:
            puppet.start_timer(timer, at=now)

    puppet = host.machines["a"]
    assert isinstance(puppet, Puppet)
    puppet.when_woken = again
    for now in (1.0, 2.0):
        host.do("a", "act", lambda puppet, now=now: puppet.start_timer("tick", now))
        host.run(now)
        assert len(happened("a")) == MOST, "the most that is allowed at each time"
    puppet.when_woken = lambda puppet, timer, now: puppet.start_timer(timer, at=now)
    host.do("a", "act", lambda puppet: puppet.start_timer("tick", 3.0))
    with pytest.raises(
        MachineFailure, match="Puppet on node 'a' did wrong: it has woken 10,000 times without time pas"
    ):
        host.run(3.0)
    assert len(happened("a")) == MOST


def test_a_link_takes_a_millisecond_where_nothing_else_is_said() -> None:
    host = Tabletop([Puppet("a"), Puppet("b")], [("a", "b")])
    host.do("a", "act", lambda puppet: puppet.broadcast(FLOOD))
    host.run(1.0)
    heard = host.machines["b"]
    assert isinstance(heard, Puppet)
    assert heard.calls[1:] == [("hear", FLOOD, "a", 0.001)]


def test_a_packet_for_a_node_that_has_left_is_heard_by_nobody() -> None:
    host, happened = table("ab", "ac")
    host.do("a", "act", lambda puppet: puppet.broadcast(FLOOD))
    del host.machines["b"]
    host.run(1.0)
    assert happened("c") == [("hear", FLOOD, "a", 0.5)]
