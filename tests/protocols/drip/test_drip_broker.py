"""One broker of DRIP by itself: what it answers to each packet, and whom it contacts with what."""

from __future__ import annotations

from dataclasses import replace

from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.drip.broker import IDLE_S, Broker
from earshot.protocols.drip.packets import (
    PAPER,
    BridgeReport,
    BrokerAnnouncement,
    Confirmation,
    EventCopy,
    Exchange,
    InRegion,
    Notice,
    PlacedRegistration,
    PublishedEvent,
    Quit,
    RegionCopy,
    RegionInterest,
    Registration,
    SubscriberRecord,
)
from earshot.protocols.drip.region_broker import RegionBroker
from earshot.protocols.drip.region_interests import EVERYWHERE
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import Epidemic, Sharing
from earshot.protocols.machine import Broadcast, Drop, Note, StartTimer
from earshot.records import DropReason

SETTINGS = replace(PAPER, brokers=6, nearest=2, copies=2, memory_events=3, lifespan_s=60.0, contact_events=2)
EVENT = Event("N", {"v": 1}, id="e", source="p", time=1.0)


def broker(settings: object = SETTINGS, *near: str, epidemic: bool = False) -> Broker:
    """A broker that hears these brokers itself, the first of them nearest."""
    regions = Regions("me", settings)  # type: ignore[arg-type]
    regions.set_broker(True)
    for place, name in enumerate(near):
        regions.hear(BrokerAnnouncement(name, 1, 10.0 - place, 1, name, 0), name, 10.0)
        regions.hear_neighbour(name, name, 10.0)
    sharing = (Epidemic if epidemic else Sharing)(settings)  # type: ignore[arg-type]
    return Broker("me", settings, regions, sharing, RecentKeys(9), 0.0)  # type: ignore[arg-type]


def registered(origin: str = "s", *, known: tuple[str, ...] = (), stamp: float = 2.0) -> Registration:
    return Registration(origin, "me", "", 1, stamp, 0.5, ("me", "b"), ("N: v > 0",), known)


def shared(name: str, broker: str, nearest: tuple[str, ...], stamp: float = 2.0) -> SubscriberRecord:
    return SubscriberRecord(name, stamp, broker, nearest, ("N: v > 0",), 0.5)


def contact(now: float) -> StartTimer:
    return StartTimer("contact", now)


def published(event: Event = EVENT, hops: int = 3) -> PublishedEvent:
    return PublishedEvent("p", "me", "", 2, event, hops)


OWN = Notice("me", "me", "", 1, EVENT, 2)
FLOODED = Broadcast(InRegion(EVENT, 3, "me"))


def test_a_newcomer_gets_the_events_that_waited_here_and_one_who_renews_does_not() -> None:
    me = broker()
    me.receive(published(), 5.0)
    assert me.receive(registered(), 6.0) == [Notice("me", "s", "", 1, EVENT, 3), contact(6.0)]
    assert me.receive(registered(stamp=3.0), 7.0) == [contact(7.0)]
    assert me.receive(registered(stamp=3.0), 7.0) == [], "the same again"
    assert me.receive(registered("t", known=("e",)), 7.0) == [contact(7.0)]
    assert me.receive(registered("me"), 7.0) == [contact(7.0)]
    me.events.held["e"].until = 8.0
    assert me.receive(registered("late"), 8.0) == [contact(8.0)]


def test_a_registration_keeps_where_its_subscriber_is_and_how_often_it_renews() -> None:
    me = broker(replace(SETTINGS, near_hops=2))
    placed = PlacedRegistration("s", "me", "", 3, 2.0, 0.5, ("me", "b"), ("N: v > 0",), (), Position(7.0, 8.0))
    me.receive(placed, 6.0)
    subscriber = me.subscribers.table["s"]
    assert (subscriber.position, subscriber.renew_s) == (Position(7.0, 8.0), SETTINGS.register_interval_s * 1.5)
    assert subscriber.record == shared("s", "me", ("me", "b"))
    nowhere = PlacedRegistration("t", "me", "", 3, 2.0, 0.5, (), (), (), Position(float("inf"), 8.0))
    assert me.receive(nowhere, 6.0) == []
    assert list(me.subscribers.table) == ["s"]


def test_a_quit_and_silence_are_noted() -> None:
    me = broker()
    me.receive(registered(), 6.0)
    assert me.receive(Quit("s", "me", "", 1, 1.9), 7.0) == []
    assert me.receive(Quit("s", "me", "", 1, 2.1), 7.0) == [Note("quit", "s")]
    me.receive(registered(stamp=8.0), 8.0)
    assert me.expire_subscribers(8.0 + 3 * SETTINGS.register_interval_s) == []
    assert me.expire_subscribers(8.1 + 3 * SETTINGS.register_interval_s) == [Note("silent", "s")]


def test_an_event_is_held_given_to_the_own_node_and_flooded_where_somebody_here_wants_it() -> None:
    me = broker()
    assert me.receive(published(), 5.0) == [Note("copy", "e"), OWN, contact(5.0)]
    assert me.receive(published(), 5.0) == [], "it is held already"
    me = broker()
    me.receive(registered("me"), 4.0)
    assert FLOODED not in me.receive(published(), 5.0), "the own node has it already"
    me = broker()
    me.receive(registered(), 4.0)
    assert me.receive(published(), 5.0) == [Note("copy", "e"), OWN, FLOODED, contact(5.0)]
    old = Event("N", {"v": 1}, id="old", source="p", time=-55.0)
    assert me.receive(published(old), 5.0) == [Drop(DropReason.EXPIRED, "old")]


def test_an_event_for_other_regions_names_who_wants_it_and_goes_to_the_brokers_they_named() -> None:
    me = broker()
    me.receive(Exchange("b", "me", "", 1, 7, (shared("s", "b", ("b", "c")),), {}), 4.0)
    assert me.receive(published(), 5.0) == [Note("copy", "e"), OWN, Note("wanted", "e by s near b c"), contact(5.0)]
    held = me.events.held["e"]
    assert (held.destinations, held.pending, held.copies, held.at_source, held.hops, held.relation) == (
        ("b", "c"), {"b", "c"}, 2, True, 2, 1,
    )  # fmt: skip


def test_a_full_memory_drops_the_least_wanted_event_by_name() -> None:
    me = broker(replace(SETTINGS, memory_events=1))
    me.receive(registered(), 4.0)
    me.receive(published(Event("Other", {}, id="o", source="p", time=1.0)), 5.0)
    assert Drop(DropReason.BROKER_MEMORY, "o") in me.receive(published(), 5.0)


def test_a_copy_is_confirmed_held_and_carried_on_where_it_says_so() -> None:
    me = broker()
    me.receive(registered(), 4.0)
    copy = EventCopy("b", "me", "", 1, EVENT, 2, ("c", "me"), True)
    confirmed = Confirmation("me", "b", "", 1, "e")
    assert me.receive(copy, 5.0) == [confirmed, Note("copy", "e"), OWN, FLOODED, contact(5.0)]
    held = me.events.held["e"]
    assert (held.pending, held.holders, held.copies, held.at_source) == ({"c"}, {"b"}, 0, False)
    assert me.receive(copy, 6.0) == [confirmed, contact(6.0)]
    del me.events.held["e"]
    assert me.receive(copy, 7.0) == [confirmed], "it was here before"
    late = EventCopy("b", "me", "", 1, Event("N", {}, id="x", source="p", time=-55.0), 2, (), False)
    assert me.receive(late, 5.0) == [Confirmation("me", "b", "", 1, "x"), Drop(DropReason.EXPIRED, "x")]


def test_a_contact_hands_the_events_that_are_due_to_the_nearest_broker_and_waits_for_its_answer() -> None:
    me = broker(SETTINGS, "b", "c")
    me.receive(Exchange("b", "me", "", 1, 7, (shared("s", "x", ("b", "c")),), {}), 9.0)
    for name in ("e", "f", "g"):
        me.receive(published(Event("N", {"v": 1}, id=name, source="p", time=1.0)), 9.5)
    found = me.contact(10.0)
    assert found[:2] == [Note("meets", "b"), Note("meets", "c")]
    copies = [one for one in found if isinstance(one, EventCopy)]
    assert [(one.target, one.event.id, one.hops, one.destinations, one.carry) for one in copies] == [
        ("b", "e", 3, ("b", "c"), True), ("b", "f", 3, ("b", "c"), True),
    ]  # fmt: skip
    assert found[-1] == contact(10.0 + SETTINGS.contact_interval_s)
    assert me.contact_timer(10.0) == contact(10.0 + SETTINGS.contact_interval_s)
    second = [one for one in me.contact(10.2) if isinstance(one, EventCopy)]
    assert [(one.target, one.event.id) for one in second] == [("c", "e"), ("c", "f")]
    for peer in "bc":
        me.receive(Confirmation(peer, "me", "", 1, "e"), 10.3)
    assert (me.events.held["e"].holders, me.events.held["e"].pending) == ({"b", "c"}, set())
    assert me.receive(Confirmation("b", "me", "", 1, "unknown"), 10.3) == []


def test_a_contact_with_nothing_to_send_comes_again_after_a_while() -> None:
    me = broker()
    assert me.contact(10.0) == [contact(10.0 + IDLE_S)]
    slow = broker(replace(SETTINGS, contact_interval_s=3.0))
    assert slow.contact(10.0) == [contact(13.0)]


def test_an_epidemic_hands_each_event_once_to_each_broker_that_lacks_it() -> None:
    """What the baseline costs: one copy for each other broker, and none for one that said that it has the event."""
    me = broker(SETTINGS, "b", "c", epidemic=True)
    me.receive(published(), 9.5)
    sent = []
    for step in range(20):
        now = 10.0 + 0.2 * step
        copies = [one for one in me.contact(now) if isinstance(one, EventCopy)]
        sent += [(one.target, one.event.id) for one in copies]
        for one in copies:
            me.receive(Confirmation(one.target, "me", "", 1, one.event.id), now)
    assert sent == [("b", "e"), ("c", "e")]
    me = broker(SETTINGS, "b", "c", epidemic=True)
    me.receive(published(), 9.5)
    me.receive(Exchange("b", "me", "", 1, 7, (), {}, ("e", "unknown")), 9.6)
    found = me.contact(10.0)
    assert [(one.target, one.event.id) for one in found if isinstance(one, EventCopy)] == [("c", "e")]


def test_brokers_exchange_what_the_other_lacks_and_not_again_before_its_time() -> None:
    me = broker(SETTINGS, "b")
    me.receive(registered(), 9.0)
    me.on_sign_of_life("x", 5.0, 9.0)
    me.on_sign_of_life("gone", 10.0 - SETTINGS.replace_after_s, 9.0)
    (exchange,) = [one for one in me.contact(10.0) if isinstance(one, Exchange)]
    assert exchange == Exchange("me", "b", "", 1, 1, (shared("s", "me", ("me", "b")),), {"x": 5.0, "me": 10.0})
    me.receive(Confirmation("b", "me", "", 1, "", 99), 10.1)
    assert me.peers["b"].confirmed_version == 0, "of another version"
    me.receive(Confirmation("b", "me", "", 1, "", 1), 10.1)
    assert (me.peers["b"].confirmed_version, me.peers["b"].confirmed) == (1, {("s", 0.5)})
    me.receive(replace_nearest(registered(stamp=40.0), ("me", "c")), 11.0)
    interval_s = SETTINGS.exchange_interval_s
    assert not [one for one in me.contact(9.9 + interval_s) if isinstance(one, Exchange)]
    (exchange,) = [one for one in me.contact(10.0 + interval_s) if isinstance(one, Exchange)]
    assert exchange.records == (SubscriberRecord("s", 40.0, "me", ("me", "c"), None, 0.5),), "it knows the filters"


def replace_nearest(one: Registration, nearest: tuple[str, ...]) -> Registration:
    return Registration(
        one.origin, one.target, one.via, one.legs, one.stamp, one.since, nearest, one.subscriptions, one.known
    )


def test_an_exchange_without_updates_waits_for_an_announcement_interval() -> None:
    settings = replace(SETTINGS, exchange_interval_s=1.0, announce_interval_s=5.0)
    me = broker(settings, "b")
    assert [one.version for one in me.contact(10.0) if isinstance(one, Exchange)] == [0]
    assert not [one for one in me.contact(14.9) if isinstance(one, Exchange)]
    assert [one.target for one in me.contact(15.0) if isinstance(one, Exchange)] == ["b"]


def test_updates_beyond_the_limit_come_with_the_next_exchange() -> None:
    me = broker(replace(SETTINGS, contact_records=2), "b")
    for name in "stu":
        me.receive(registered(name), 9.0)
    (first,) = [one for one in me.contact(10.0) if isinstance(one, Exchange)]
    assert ([one.subscriber for one in first.records], first.version) == (["s", "t"], 2)
    me.receive(Confirmation("b", "me", "", 1, "", 2), 10.1)
    (second,) = [one for one in me.contact(20.0) if isinstance(one, Exchange)]
    assert ([one.subscriber for one in second.records], second.version) == (["u"], 3)


def test_a_subscriber_that_becomes_known_gets_the_events_that_began_here() -> None:
    me = broker()
    me.receive(published(), 5.0)
    me.receive(EventCopy("b", "me", "", 1, Event("N", {"v": 1}, id="carried", time=1.0), 2, (), False), 5.0)
    records = (shared("s", "b", ("b", "c")), shared("own", "me", ("d", "e")))
    assert me.receive(Exchange("b", "me", "", 1, 7, records, {"x": 6.0, "y": 99.0}), 6.0) == [
        Confirmation("me", "b", "", 1, "", 7), contact(6.0),
    ]  # fmt: skip
    assert me.events.held["e"].destinations == ("b", "c")
    assert me.events.held["carried"].destinations == ()
    assert me.signs_of_life == {"x": 6.0}, "times in the future are ignored"
    assert [held.event.id for held in me.unfinished()] == ["e"]


def test_an_event_is_unfinished_while_a_destination_lacks_it() -> None:
    """A broker that steps down says by name what it leaves undone, and nothing else."""
    me = broker(replace(SETTINGS, copies=1), "b", "c")
    me.receive(Exchange("b", "me", "", 1, 7, (shared("s", "b", ("b",)),), {}), 4.0)
    me.receive(published(), 11.0)
    me.receive(published(Event("Unwanted", {}, id="local", source="p", time=1.0)), 11.0)
    assert [held.event.id for held in me.unfinished()] == ["e"]
    (copy,) = [one for one in me.contact(12.0) if isinstance(one, EventCopy)]
    me.receive(Confirmation(copy.target, "me", "", 1, "e"), 12.1)
    assert me.unfinished() == [], "its one destination has it and carries it"
    epidemic = broker(SETTINGS, "b", epidemic=True)
    epidemic.receive(published(), 11.0)
    assert epidemic.unfinished() == [], "an epidemic names no destinations"


def test_signs_of_life_only_get_later_and_are_bounded() -> None:
    me = broker(replace(SETTINGS, memory=2))
    interval_s = SETTINGS.announce_interval_s
    for name, at in (("a", 5.0), ("a", 4.0), ("b", 6.0 + interval_s), ("c", 6.0), ("a", 5.5)):
        me.on_sign_of_life(name, at, 6.0)
    assert me.signs_of_life == {"a": 5.5, "b": 6.0 + interval_s}
    me.on_sign_of_life("b", 6.1 + interval_s, 6.0)
    assert me.signs_of_life["b"] == 6.0 + interval_s


def test_a_broker_is_reached_over_the_bridge_that_reported_last_unless_it_is_a_neighbour() -> None:
    me = broker(SETTINGS, "b")
    for origin, other in (("x", "c"), ("y", "c"), ("z", "b"), ("w", "me")):
        me.receive(BridgeReport(origin, "me", "", 1, other), 10.0)
    assert [me._bridge_to(name, 10.0) for name in ("c", "b", "me", "unknown")] == ["y", "", "", ""]
    assert me._look_for_peers(10.0) == (["b", "c"], [Note("meets", "b"), Note("meets", "c")])
    later = 10.0 + 1.5 * SETTINGS.bridge_interval_s
    assert me._bridge_to("c", later - 0.01) == "y"
    assert me._look_for_peers(later) == (["b"], [Note("parts", "c")])


# Brokers that know regions.


def region_broker(*near: str, **changes: object) -> RegionBroker:
    settings = replace(SETTINGS, brokers_know="regions", announced_to="all", **changes)  # type: ignore[arg-type]
    regions = Regions("me", settings)
    regions.set_broker(True)
    for name in near:
        regions.hear(BrokerAnnouncement(name, 1, 10.0, 1, name, 0), name, 10.0)
    return RegionBroker("me", settings, regions, RecentKeys(9), 2.0)


def interest(origin: str, version: int, *texts: str) -> RegionInterest:
    return RegionInterest(origin, "me", "", 1, version, texts, EVERYWHERE)


def test_an_event_goes_in_one_copy_to_the_regions_that_want_it_or_have_not_said() -> None:
    me = region_broker("b", "c", "d")
    assert me.receive(interest("b", 1, "M: true"), 4.0) == [Confirmation("me", "b", "", 1, "", 1)]
    me.receive(interest("c", 1, "N: v > 0"), 4.0)
    assert me.receive(published(), 5.0) == [Note("copy", "e"), OWN, RegionCopy(EVENT, 2, ("c", "d"))]
    assert me.events.held["e"].destinations == ("c", "d")
    assert me.receive(interest("b", 2, "N: true"), 6.0) == [
        Confirmation("me", "b", "", 1, "", 2), RegionCopy(EVENT, 2, ("b",)),
    ]  # fmt: skip
    assert me.receive(interest("b", 3, "N: v > 0"), 6.0) == [Confirmation("me", "b", "", 1, "", 3)]
    me.events.held["e"].destinations = ()
    me.events.held["e"].until = 7.0
    assert me.receive(interest("b", 4, "N: true"), 7.0) == [Confirmation("me", "b", "", 1, "", 4)]


def test_a_copy_from_another_region_is_flooded_here_once() -> None:
    me = region_broker()
    me.receive(registered(), 4.0)
    copy = RegionCopy(EVENT, 2, ("me",))
    assert me.on_region_copy(copy, 5.0) == [Note("copy", "e"), OWN, FLOODED]
    assert me.on_region_copy(copy, 5.0) == []
    assert not me.events.held["e"].at_source
    old = RegionCopy(Event("N", {}, id="old", time=-55.0), 2, ("me",))
    assert me.on_region_copy(old, 5.0) == [Drop(DropReason.EXPIRED, "old")]


def test_a_subscriber_far_from_an_events_area_does_not_make_its_region_flood() -> None:
    me = region_broker(place_margin_m=10.0)
    me.receive(PlacedRegistration("s", "me", "", 1, 2.0, 0.5, (), ("N: v > 0",), (), Position(100.0, 0.0)), 4.0)
    for reach_m, flooded in ((90.0, True), (89.0, False)):
        area = Area(Circle(reach_m), Position(0.0, 0.0))
        event = Event("N", {"v": 1}, id=f"{reach_m}", source="p", time=1.0, area=area)
        found = me.receive(published(event), 5.0)
        assert any(isinstance(one, Broadcast) for one in found) is flooded


def test_what_a_region_wants_is_looked_at_each_exchange_interval() -> None:
    me = region_broker()
    interval_s = SETTINGS.exchange_interval_s
    for now, looked_at in ((2.0, 2.0), (1.9 + interval_s, 2.0), (2.0 + interval_s, 2.0 + interval_s)):
        me.contact(now)
        assert me.updated_at == looked_at, "the first contact looks at it, and then one contact an interval"


def test_the_epidemic_shares_events_and_no_subscriptions() -> None:
    me = broker(SETTINGS, "b", epidemic=True)
    me.receive(registered(), 9.0)
    me.receive(published(), 9.0)
    me.receive(Confirmation("b", "me", "", 1, "e"), 9.0)
    (exchange,) = [one for one in me.contact(10.0) if isinstance(one, Exchange)]
    assert (exchange.records, exchange.held) == ((), ("e",))


def test_a_new_broker_says_at_its_first_contact_what_its_subscribers_want() -> None:
    me = region_broker("b", interest_filters=2)
    me.receive(registered(), 2.0)
    (first,) = [one for one in me.contact(2.1) if isinstance(one, RegionInterest)]
    assert (first.target, first.filters) == ("b", ("N: v > 0",))


def test_a_region_says_what_its_subscribers_want_after_an_exchange_interval() -> None:
    me = region_broker("b", interest_filters=2)
    first = [one for one in me.contact(2.0) if isinstance(one, RegionInterest)]
    assert [(one.target, one.version, one.filters) for one in first] == [("b", 2001, ())]
    me.receive(Confirmation("b", "me", "", 1, "", 2001), 2.1)
    me.receive(registered(), 2.5)
    far = SubscriberRecord("far", 2.0, "b", ("b",), ("M: true",), 0.5)
    me.receive(Exchange("b", "me", "", 1, 7, (far,), {}), 2.5)
    early = 2.0 + SETTINGS.exchange_interval_s - 0.01
    assert me.present_interest().filters == ("N: v > 0",)
    assert not [one for one in me.contact(early) if isinstance(one, RegionInterest)]
    (second,) = [one for one in me.contact(early + 1.0) if isinstance(one, RegionInterest)]
    assert (second.target, second.version, second.filters) == ("b", 2002, ("N: v > 0",))
    me.receive(Confirmation("b", "me", "", 1, "", 2002), early + 1.1)
    assert not [one for one in me.contact(early + 99.0) if isinstance(one, RegionInterest)]
