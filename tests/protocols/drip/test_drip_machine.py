"""One node of DRIP by itself: what it does with each packet and each timer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest
from msgspec.structs import replace as replace_packet

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Position, Velocity
from earshot.protocols.drip.broker import Broker
from earshot.protocols.drip.machine import Drip, SimpleFramework
from earshot.protocols.drip.packets import (
    PAPER,
    BridgeReport,
    BrokerAnnouncement,
    DripSettings,
    InRegion,
    Notice,
    PlacedAnnouncement,
    PlacedRegistration,
    PublishedEvent,
    Quit,
    RegionCopy,
    Registration,
    Retirement,
)
from earshot.protocols.drip.region_broker import RegionBroker
from earshot.protocols.drip.sharing import Epidemic, Sharing
from earshot.protocols.machine import (
    Broadcast,
    CancelTimer,
    Channel,
    Deliver,
    Drop,
    FixedLocation,
    Note,
    Send,
    StartTimer,
)
from earshot.records import DropReason

SETTINGS = replace(PAPER, brokers=6, nearest=2, copies=2, jitter_s=0.0, memory_events=2)
EVENT = Event("N", {"v": 1}, id="e", source="p", time=10.5)


def node(settings: DripSettings = SETTINGS, kind: type[Drip] = Drip) -> Drip:
    return kind("me", settings, FixedLocation(Position(10.4, -3.6), Velocity(1.6, -0.4)), Random(1))


def announcement(broker: str, delay_s: float = 0.5, sequence: int = 1, hops: int = 2) -> BrokerAnnouncement:
    return BrokerAnnouncement(broker, sequence, 10.0 - delay_s, hops, broker, 0)


def attached(settings: DripSettings = SETTINGS, *, wants: bool = True) -> Drip:
    """A node that has heard broker b over neighbour x, and c, farther away, over y."""
    machine = node(settings)
    machine.hear(announcement("b"), "x", 10.0)
    machine.hear(announcement("c", delay_s=2.0), "y", 10.0)
    machine.wake("settle", 10.0)
    if wants:
        machine.subscribe(Subscription("s", "me", Filter.parse("N: v > 0")), 10.0)
    return machine


def kinds(effects: object) -> list[object]:
    return [one for one in effects if not isinstance(one, Note)]  # type: ignore[attr-defined]


def test_a_node_starts_with_numbers_and_timers_of_its_time() -> None:
    machine = node()
    effects = machine.start(2.5)
    assert machine.sequence == 2500
    timers = {one.name: one.at for one in effects if isinstance(one, StartTimer)}
    for name, interval_s in (("bridge", SETTINGS.bridge_interval_s), ("renew", SETTINGS.register_interval_s)):
        begins = 2.5 + SETTINGS.bootstrap_s
        assert begins <= timers[name] <= begins + interval_s


def test_a_node_attaches_to_the_nearest_broker_and_registers_with_it() -> None:
    machine = attached(wants=False)
    assert machine.local_broker == "b"
    found = machine.subscribe(Subscription("s", "me", Filter.parse("N: v > 0")), 11.0)
    registration = Registration("me", "b", "", 1, 11.0, 11.0, ("b", "c"), ("N: v > 0",), ())
    assert list(found) == [Send("x", registration)]
    assert machine.registered_at == 11.0
    placed = attached(replace(SETTINGS, brokers_know="regions"), wants=False)
    found = placed.subscribe(Subscription("s", "me", Filter.parse("N: v > 0")), 11.0)
    expected = PlacedRegistration("me", "b", "", 1, 11.0, 11.0, ("b", "c"), ("N: v > 0",), (), Position(10.4, -3.6))
    assert list(found) == [Send("x", expected)]
    assert list(machine.unsubscribe("unknown", 12.0)) == []
    assert list(machine.unsubscribe("s", 12.0)) == [
        Send("x", Registration("me", "b", "", 1, 12.0, 12.0, ("b", "c"), (), ()))
    ]


def test_a_subscriber_that_changes_its_broker_quits_the_old_one_and_says_what_it_has() -> None:
    machine = attached()
    machine.recent_events.append("had")
    found = machine.hear(announcement("c", delay_s=0.1, sequence=2), "y", 10.1)
    assert Note("attached", "c") in found
    assert [one for one in found if isinstance(one, Send)] == [
        Send("x", Quit("me", "b", "", 1, 10.1)),
        Send("y", Registration("me", "c", "", 1, 10.1, 10.0, ("c", "b"), ("N: v > 0",), ("had",))),
    ]


@pytest.mark.parametrize(("margin_s", "chosen"), [(0.39, "c"), (0.4, "b")])
def test_a_node_stays_with_its_broker_unless_another_is_nearer_by_the_margin(margin_s: float, chosen: str) -> None:
    machine = attached(replace(SETTINGS, handover_margin_s=margin_s, hop_delay_s=0.1))
    machine.hear(announcement("b", sequence=2, hops=6), "x", 11.0)
    machine.regions.brokers["b"].delay_s = 0.5
    machine.regions.brokers["c"].delay_s = 0.1
    machine.attach(11.0)
    assert machine.local_broker == chosen


def test_a_node_without_brokers_is_detached_since_then() -> None:
    machine = attached()
    machine.wake("expire", 10.0 + SETTINGS.expiry_s)
    assert (machine.local_broker, machine.election.detached_since) == ("", 10.0 + SETTINGS.expiry_s)


def test_an_announcement_goes_on_with_one_hop_more_and_the_forwarders_broker() -> None:
    machine = attached()
    found = machine.hear(announcement("b", sequence=2, hops=3), "x", 11.0)
    digest = machine.election.candidates.digest
    assert Broadcast(BrokerAnnouncement("b", 2, 9.5, 4, "b", digest)) in found
    limit = SETTINGS.hop_limit
    assert [
        one for one in machine.hear(announcement("b", sequence=3, hops=limit), "x", 11.0) if isinstance(one, Broadcast)
    ] == []
    assert [
        one
        for one in machine.hear(announcement("b", sequence=4, hops=limit - 1), "x", 11.0)
        if isinstance(one, Broadcast)
    ]


def test_an_announcement_that_was_heard_often_enough_is_not_forwarded() -> None:
    for copies, enough, forwarded in ((2, 3, True), (3, 3, False), (1, 1, False), (9, 0, True)):
        machine = attached(replace(SETTINGS, jitter_s=0.5, enough_copies=enough))
        machine.wake(("forward", "b"), 10.4)
        found = machine.hear(announcement("b", sequence=2), "x", 11.0)
        (timer,) = [one for one in found if isinstance(one, StartTimer) and one.name == ("forward", "b")]
        assert 11.0 <= timer.at <= 11.5
        for copy in range(copies - 1):
            assert list(machine.hear(announcement("b", sequence=2), f"z{copy}", 11.1)) == []
        sent = machine.wake(("forward", "b"), 11.3)
        assert [one.packet.sent_at for one in sent if isinstance(one, Broadcast)] == (
            [pytest.approx(9.5 + 0.3)] if forwarded else []
        )
        assert machine.forwarding.get("b") is None


def test_a_faster_copy_of_an_announcement_that_waits_takes_its_place() -> None:
    machine = attached(replace(SETTINGS, jitter_s=0.5))
    machine.wake(("forward", "b"), 10.4)
    machine.hear(announcement("b", delay_s=0.5, sequence=2), "x", 11.0)
    faster = BrokerAnnouncement("b", 2, 9.7, 2, "b", 0)
    machine.hear(replace_packet(faster, sent_at=9.4), "y", 11.0)
    assert machine.forwarding["b"][0].sent_at == 9.5
    machine.hear(replace_packet(faster, sent_at=9.5), "y", 11.0)
    machine.hear(replace_packet(faster, sent_at=9.5005), "z", 11.0)
    assert machine.forwarding["b"] == (replace_packet(faster, sent_at=9.5005), 11.0)


def test_a_placed_announcement_says_where_the_forwarder_is() -> None:
    machine = attached(replace(SETTINGS, next_hop="nearest"))
    placed = PlacedAnnouncement("b", 2, 9.5, 3, "b", 0, (500, 600), (50, 60, 1, 2))
    (onward,) = [one.packet for one in machine.hear(placed, "x", 11.0) if isinstance(one, Broadcast)]
    assert (onward.hops, onward.place, onward.motion) == (4, (500, 600), (10, -4, 2, 0))
    assert machine.regions.motions == {"x": ((50, 60, 1, 2), 11.0)}


@dataclass
class Busy(Channel):
    share: float = 0.0

    def busy_share(self, now: float) -> float:
        return self.share


@pytest.mark.parametrize(("busy", "stretch"), [(0.0, 1.0), (0.5, 1.0), (0.6, 1.25), (0.9, 1.5), (1.0, 1.5), (1.5, 1.5)])
def test_control_traffic_slows_down_where_less_than_half_of_the_channel_is_idle(busy: float, stretch: float) -> None:
    machine = node(replace(SETTINGS, channel_stretch=1.5))
    machine.channel = Busy(busy)  # type: ignore[abstract]
    assert machine.stretched(2.0, 1.0) == pytest.approx(2.0 * stretch)


def broker(settings: DripSettings = SETTINGS, kind: type[Drip] = Drip) -> Drip:
    machine = node(settings, kind)
    machine.start(0.0)
    machine._become_broker(10.0)
    machine.effects()
    return machine


def test_a_broker_announces_itself_again_and_again() -> None:
    machine = broker()
    before, digest = machine.sequence, machine.election.candidates.digest
    assert list(machine.wake("announce", 11.0)) == [
        Broadcast(BrokerAnnouncement("me", before + 1, 11.0, 1, "me", digest)),
        StartTimer("announce", 11.0 + SETTINGS.announce_interval_s),
    ]
    placed = broker(replace(SETTINGS, next_hop="nearest"))
    (announced,) = [one.packet for one in placed.wake("announce", 11.0) if isinstance(one, Broadcast)]
    assert (announced.place, announced.motion) == ((10, -4), (10, -4, 2, 0))
    assert list(node().wake("announce", 11.0)) == []


def test_each_kind_of_node_makes_its_kind_of_broker() -> None:
    plain, epidemic = broker().broker, broker(kind=SimpleFramework).broker
    assert isinstance(plain, Broker)
    assert isinstance(epidemic, Broker)
    assert (type(plain.sharing), type(epidemic.sharing)) == (Sharing, Epidemic)
    regional = replace(SETTINGS, brokers_know="regions")
    assert isinstance(broker(regional).broker, RegionBroker)
    assert type(broker(regional, SimpleFramework).broker) is Broker


def test_a_node_that_becomes_a_broker_says_so_and_contacts_others_at_once() -> None:
    machine = node()
    machine.start(0.0)
    machine._become_broker(10.0)
    found = machine.effects()
    assert [one for one in found if isinstance(one, Note)] == [Note("broker", "me"), Note("attached", "me")]
    timers = {one.name: one.at for one in found if isinstance(one, StartTimer)}
    assert timers["contact"] == 10.0
    assert 10.0 <= timers["announce"] <= 10.0 + SETTINGS.announce_interval_s / 2
    assert (machine.regions.is_broker, machine.local_broker) == (True, "me")


def test_a_broker_that_steps_down_retires_and_names_what_it_leaves() -> None:
    machine = broker()
    machine.hear(announcement("b"), "x", 10.0)
    assert machine.broker is not None
    machine.broker.receive(PublishedEvent("p", "me", "", 1, EVENT, 1), 10.0)
    machine.broker.events.held["e"].destinations = ("b",)
    machine.broker.events.held["e"].pending = {"b"}
    before = machine.sequence
    found = machine.stop(11.0)
    for expected in (
        Drop(DropReason.NO_LONGER_A_BROKER, "e"), Broadcast(Retirement("me", before + 1)), CancelTimer("announce"),
        CancelTimer("contact"), Note("broker", ""), Note("attached", "b"),
    ):  # fmt: skip
        assert expected in found
    assert (machine.broker, machine.regions.is_broker, machine.local_broker) == (None, False, "b")


def test_a_subscriber_that_stops_quits_its_broker_and_others_have_nothing_to_quit() -> None:
    assert Send("x", Quit("me", "b", "", 1, 12.0)) in attached().stop(12.0)
    assert [one for one in attached(wants=False).stop(12.0) if isinstance(one, Send)] == []


def test_a_retirement_goes_on_once_and_its_broker_is_left() -> None:
    machine = attached()
    retired = Retirement("b", 2)
    found = machine.hear(retired, "x", 11.0)
    assert Broadcast(retired) in found
    assert machine.local_broker == "c"
    assert list(machine.hear(retired, "x", 11.0)) == []


def test_a_registration_is_renewed_when_it_is_one_interval_old() -> None:
    machine = attached()
    interval_s = SETTINGS.register_interval_s
    assert list(machine.wake("renew", 9.9 + interval_s)) == [StartTimer("renew", 10.0 + interval_s)]
    found = machine.wake("renew", 10.0 + interval_s)
    assert found[0] == StartTimer("renew", 10.0 + 2 * interval_s)
    assert isinstance(found[1].packet, Registration)
    idle = attached(wants=False)
    assert list(idle.wake("renew", 30.0)) == [StartTimer("renew", 30.0 + interval_s)]


def test_events_wait_for_a_broker_up_to_the_memory_and_go_to_the_first() -> None:
    machine = node()
    events = [Event("N", {}, id=name, source="me", time=1.0) for name in "efg"]
    assert [list(machine.publish(one, 1.0)) for one in events] == [
        [], [], [Drop(DropReason.TOO_MANY_EVENTS_WAITING, "g")],
    ]  # fmt: skip
    sent = [one for one in machine.hear(announcement("b"), "x", 10.0) if isinstance(one, Send)]
    assert sent == [Send("x", PublishedEvent("me", "b", "", 1, one, 1)) for one in events[:2]]
    assert machine.waiting == {}


def test_events_that_wait_for_a_broker_are_dropped_when_their_life_ends() -> None:
    machine = node()
    for name, lifespan_s in (("e", 5.0), ("f", 50.0)):
        machine.publish(Event("N", {}, id=name, source="me", time=1.0, lifespan_s=lifespan_s), 1.0)
    assert Drop(DropReason.EXPIRED, "e") not in machine.wake("renew", 6.0)
    assert Drop(DropReason.EXPIRED, "e") in machine.wake("renew", 6.1)
    assert list(machine.waiting) == ["f"]


def test_a_flooded_event_is_delivered_once_and_goes_on_only_in_its_region() -> None:
    machine = attached()
    flooded = InRegion(EVENT, 3, "b")
    assert list(machine.hear(flooded, "x", 11.0)) == [Deliver(EVENT, "s", 3), Broadcast(InRegion(EVENT, 4, "b"))]
    assert list(machine.hear(flooded, "y", 11.0)) == []
    assert list(machine.hear(InRegion(EVENT, 3, "c"), "y", 11.0)) == [], "another region, delivered already"
    assert list(machine.recent_events) == ["e"]
    limit = SETTINGS.hop_limit
    for name, hops, goes_on in (("f", limit - 1, True), ("g", limit, False)):
        found = machine.hear(InRegion(Event("N", {"v": 0}, id=name, time=1.0), hops, "b"), "x", 11.0)
        assert [type(one) for one in found] == ([Broadcast] if goes_on else [])
    old = Event("N", {"v": 1}, id="old", time=10.5)
    assert list(machine.hear(InRegion(old, 1, "b"), "x", 10.6 + SETTINGS.lifespan_s)) == [
        Drop(DropReason.EXPIRED, "old")
    ]
    assert list(machine.hear(InRegion(EVENT, 1, "me"), "x", 11.0)) == []
    assert list(machine.recent_events) == ["e"], "only what was delivered"


def test_a_bridge_reports_to_its_broker_where_brokers_do_not_hear_each_other() -> None:
    machine = attached()
    machine.hear(announcement("c", delay_s=2.0, sequence=2, hops=2), "y", 10.5)
    machine.regions.hear_neighbour("y", "c", 10.5)
    again = StartTimer("bridge", 11.0 + SETTINGS.bridge_interval_s)
    assert list(machine.wake("bridge", 11.0)) == [again, Send("x", BridgeReport("me", "b", "", 1, "c"))]
    everybody = attached(replace(SETTINGS, announced_to="all"))
    everybody.regions.hear_neighbour("y", "c", 10.5)
    assert list(everybody.wake("bridge", 11.0)) == [again]


def test_a_node_forwards_few_reports_for_a_pair_of_regions() -> None:
    machine = attached()
    report = BridgeReport("z", "b", "", 1, "c")
    onward = [Send("x", replace_packet(report, legs=2))]
    half_s = SETTINGS.bridge_interval_s / 2
    assert [list(machine.hear(report, "w", now)) for now in (11.0, 11.0 + half_s, 11.1 + half_s)] == [
        onward,
        [],
        onward,
    ]
    other = BridgeReport("z", "b", "", 1, "d")
    assert list(machine.hear(other, "w", 11.0)) == [Send("x", replace_packet(other, legs=2))]


def test_a_node_forwards_as_many_reports_in_an_interval_as_the_settings_allow() -> None:
    machine = attached(replace(SETTINGS, bridge_reports=2))
    report = BridgeReport("z", "b", "", 1, "c")
    onward = [Send("x", replace_packet(report, legs=2))]
    assert [list(machine.hear(report, "w", 11.0)) for _ in range(3)] == [onward, onward, []]


def test_a_routed_packet_goes_on_with_one_leg_and_an_event_with_one_hop_more() -> None:
    machine = attached()
    quit = Quit("z", "b", "", 3, 1.0)
    assert list(machine.hear(quit, "w", 11.0)) == [Send("x", Quit("z", "b", "", 4, 1.0))]
    notice = Notice("b", "z", "", 1, EVENT, 5)
    assert list(machine.hear(notice, "x", 11.0)) == [Send("w", Notice("b", "z", "", 2, EVENT, 6))], "the way back"
    assert list(machine.hear(Quit("me", "b", "", 3, 1.0), "w", 11.0)) == [Drop(DropReason.NO_ROUTE)]
    assert list(machine.hear(Quit("z", "b", "", 0, 1.0), "w", 11.0)) == [Drop(DropReason.NO_RETURN_ROUTE)]
    limit = SETTINGS.hop_limit
    assert [type(one) for one in machine.hear(Quit("z", "b", "", limit - 1, 1.0), "w", 11.0)] == [Send]
    assert list(machine.hear(Quit("z", "b", "", limit, 1.0), "w", 11.0)) == [Drop(DropReason.HOP_LIMIT)]
    assert list(machine.hear(Quit("z", "nobody", "", 1, 1.0), "w", 11.0)) == [Drop(DropReason.NO_ROUTE)]


def test_what_only_a_broker_can_use_is_dropped_by_others() -> None:
    machine = attached()
    assert list(machine.hear(Quit("z", "me", "", 1, 1.0), "w", 11.0)) == [Drop(DropReason.NOT_A_BROKER)]
    event = PublishedEvent("z", "me", "", 1, EVENT, 1)
    assert list(machine.hear(event, "w", 11.0)) == [Send("x", replace_packet(event, target="b"))], "to its own broker"
    assert list(machine.hear(Notice("b", "me", "", 1, EVENT, 5), "x", 11.0)) == [Deliver(EVENT, "s", 5)]
    copy = RegionCopy(EVENT, 2, ("me", "b"))
    assert list(machine.hear(copy, "w", 11.0)) == [
        Drop(DropReason.NOT_A_BROKER, "e"), Send("x", RegionCopy(EVENT, 3, ("b",))),
    ]  # fmt: skip
    assert list(machine.hear(RegionCopy(EVENT, 0, ("b",)), "w", 11.0)) == [Drop(DropReason.HOP_LIMIT, "e")]


def test_a_packet_whose_next_hop_is_gone_takes_another_and_an_event_waits() -> None:
    machine = attached()
    machine.hear(announcement("b", delay_s=0.6), "w", 10.0)
    quit = Quit("me", "b", "", 1, 1.0)
    assert list(machine.unreachable(quit, "x", 11.0)) == [Send("w", quit)]
    assert list(machine.unreachable(quit, "w", 11.0)) == [Drop(DropReason.NO_ROUTE)]
    event = PublishedEvent("me", "b", "", 3, EVENT, 1)
    assert list(machine.unreachable(event, "w", 11.0)) == []
    assert machine.waiting == {"e": replace_packet(event, legs=1)}


def test_a_copy_for_regions_whose_next_hop_is_gone_goes_another_way() -> None:
    machine = attached()
    machine.hear(announcement("b", delay_s=0.6), "w", 10.0)
    assert list(machine.unreachable(RegionCopy(EVENT, 3, ("b",)), "x", 11.0)) == [
        Send("w", RegionCopy(EVENT, 3, ("b",)))
    ]


def test_over_network_routing_a_packet_goes_straight_to_its_target_or_bridge() -> None:
    machine = attached(replace(SETTINGS, routes="network"))
    machine.regions.hear_neighbour("y", "c", 10.5)
    assert list(machine.hear(Quit("z", "c", "", 1, 1.0), "w", 11.0)) == [Send("c", Quit("z", "c", "", 2, 1.0))]
    assert list(machine.hear(Quit("z", "c", "q", 1, 1.0), "w", 11.0)) == [Send("q", Quit("z", "c", "q", 2, 1.0))]
    assert list(machine.hear(Quit("z", "c", "me", 1, 1.0), "w", 11.0)) == [Send("y", Quit("z", "c", "", 2, 1.0))]
    assert list(machine.unreachable(Quit("me", "c", "q", 1, 1.0), "q", 11.0)) == [
        Send("c", Quit("me", "c", "", 2, 1.0))
    ]
    assert list(machine.unreachable(Quit("me", "c", "", 1, 1.0), "c", 11.0)) == [Drop(DropReason.NO_ROUTE)]
    assert (Drip.uses_routing(machine.settings), Drip.uses_routing(SETTINGS)) == (True, False)
