"""DRIP's tables by themselves: nearest brokers, routes, held events, subscribers, interests of regions, copies."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.drip import subscribers
from earshot.protocols.drip.broker import Broker
from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.packets import (
    PAPER,
    BrokerAnnouncement,
    Candidate,
    Confirmation,
    DripSettings,
    EventCopy,
    Exchange,
    Quit,
    RegionCopy,
    RegionInterest,
    SubscriberRecord,
)
from earshot.protocols.drip.region_copies import RegionCopies
from earshot.protocols.drip.region_interests import (
    EVERYTHING,
    EVERYWHERE,
    Interest,
    Interests,
    box_around,
    is_near,
    summary_of,
    widened,
)
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import Epidemic, HeldEvent, Sharing, destinations_of
from earshot.protocols.drip.subscribers import Subscriber, Subscribers, parse_filters, record_bytes
from earshot.protocols.machine import Drop, FixedLocation, Send, StartTimer
from earshot.protocols.tuning import Surroundings
from earshot.records import DropReason

SETTINGS = replace(PAPER, brokers=6, nearest=2, copies=2, upstreams=2, improvement_s=0.5, memory=3, memory_events=2)
EXPIRY_S = SETTINGS.expiry_s


# Nearest brokers.


def regions(**changes: object) -> Regions:
    return Regions("me", replace(SETTINGS, **changes))  # type: ignore[arg-type]


def announcement(
    broker: str, delay_s: float, sequence: int = 1, hops: int = 1, now: float = 10.0
) -> BrokerAnnouncement:
    return BrokerAnnouncement(broker, sequence, now - delay_s, hops, "", 0)


def test_the_l_nearest_are_kept_and_the_nearest_that_was_rejected_comes_next() -> None:
    here = regions()
    assert here.hear(announcement("a", 3.0), "x", 10.0)
    assert here.hear(announcement("b", 2.0), "x", 10.0)
    assert not here.hear(announcement("c", 3.0), "x", 10.0), "as far as the farthest"
    assert here.hear(announcement("d", 1.0), "x", 10.0)
    assert ([one.broker for one in here.ordered()], here.nearest_names()) == (["d", "b"], ("d", "b"))
    assert not here.hear(announcement("e", 2.5), "x", 10.0)
    assert not here.hear(announcement("f", 9.0), "x", 10.0)
    assert here.next_nearest is not None
    assert here.next_nearest.broker == "e"
    assert here.retire("d", 2, 10.0)
    assert [one.broker for one in here.ordered()] == ["b", "e"]
    assert (here.next_nearest, here.retire("b", 1, 10.0), here.retire("unknown", 9, 10.0)) == (None, False, False)


def test_who_is_the_next_nearest() -> None:
    def next_after(*heard: tuple[str, float, int, float]) -> tuple[str, int]:
        here = regions()
        for name in "ab":
            here.hear(announcement(name, 0.5), "x", 10.0)
        for broker, delay_s, sequence, now in heard:
            here.hear(announcement(broker, delay_s, sequence, now=now), "x", now)
        assert here.next_nearest is not None
        return here.next_nearest.broker, here.next_nearest.sequence

    assert next_after(("c", 3.0, 1, 10.0), ("d", 2.0, 1, 10.0)) == ("d", 1)
    assert next_after(("c", 3.0, 1, 10.0), ("d", 3.0, 1, 10.0)) == ("c", 1)
    assert next_after(("c", 3.0, 1, 10.0), ("c", 4.0, 2, 10.0)) == ("c", 2)
    assert next_after(("c", 3.0, 2, 10.0), ("c", 4.0, 2, 10.0)) == ("c", 2)
    late = 10.0 + SETTINGS.announce_interval_s
    assert next_after(("c", 3.0, 1, 10.0), ("d", 4.0, 1, late)) == ("c", 1)
    assert next_after(("c", 3.0, 1, 10.0), ("d", 4.0, 1, late + 0.1)) == ("d", 1)


def test_another_copy_is_a_route_or_an_improvement() -> None:
    here = regions()
    here.hear(announcement("a", 3.0, hops=3), "x", 10.0)
    assert not here.hear(announcement("a", 3.0, hops=4), "far", 10.0)
    assert not here.hear(announcement("a", 3.0, hops=3), "y", 10.0)
    assert not here.hear(announcement("a", 3.0, hops=3), "z", 10.0)
    assert here.brokers["a"].upstreams == ["x", "y"], "at most two, none that is farther"
    assert not here.hear(announcement("a", 2.6, hops=2), "z", 10.0), "by less than half a second"
    assert (here.brokers["a"].upstreams, here.brokers["a"].hops) == (["z", "x"], 2)
    assert here.hear(announcement("a", 2.1, hops=2), "x", 10.0)
    assert (here.brokers["a"].upstreams, here.brokers["a"].delay_s) == (["x", "z"], pytest.approx(2.1))
    assert not here.hear(announcement("a", 0.1, sequence=0), "x", 10.0), "an older one"
    assert here.hear(announcement("a", 9.0, sequence=2), "x", 10.0)
    assert not here.hear(announcement("me", 0.1), "x", 10.0)


def test_delay_may_be_counted_in_hops_and_a_detour_adds_one() -> None:
    here = regions(hop_delay_s=0.5)
    here.hear(announcement("a", 9.0, hops=2), "x", 10.0)
    assert here.brokers["a"].delay_s == 1.0
    here.hear(announcement("a", 9.0, sequence=2, hops=9), "x", 11.0)
    assert here.brokers["a"].delay_s == 1.5
    assert regions().hear(announcement("a", -5.0), "x", 10.0), "a clock that runs ahead has no delay"


def test_brokers_and_neighbours_expire_and_the_timer_finds_them() -> None:
    here = regions()
    here.hear(announcement("a", 1.0), "x", 10.0)
    here.hear_neighbour("x", "a", 10.0)
    here.hear_motion("x", (1, 2, 3, 4), 10.0)
    here.hear_motion("stranger", (1, 2, 3, 4), 10.0)
    assert (here.next_expiry(99.0), list(here.motions)) == (10.0 + EXPIRY_S, ["x"])
    here.forget(10.0 + EXPIRY_S - 0.001)
    assert (list(here.brokers), list(here.neighbours)) == (["a"], ["x"])
    here.forget(10.0 + EXPIRY_S)
    assert (here.brokers, here.neighbours, here.motions, here.next_expiry(99.0)) == ({}, {}, {}, 99.0 + EXPIRY_S)


def test_a_broker_counts_itself_and_keeps_one_less() -> None:
    here = regions(nearest=3)
    for name, delay_s in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        here.hear(announcement(name, delay_s), "x", 10.0)
    here.set_broker(True)
    assert (list(here.brokers), here.nearest_names()) == (["a", "b"], ("me", "a", "b"))
    here.set_broker(False)
    assert (here.capacity, here.nearest_names(), here.hops_to("a"), here.hops_to("me")) == (3, ("a", "b"), 1, 0)
    assert regions(nearest=1).capacity == 2
    assert regions(announced_to="all").capacity == 12


def test_neighbours_are_bounded_and_those_that_are_silent_make_room() -> None:
    here = regions()
    for name, now in (("x", 0.0), ("y", 10.0), ("z", 10.0), ("w", 10.0)):
        here.hear_neighbour(name, "a", now)
    assert list(here.neighbours) == ["y", "z", "w"]
    here.hear_neighbour("v", "a", 10.0)
    assert list(here.neighbours) == ["y", "z", "w"]
    here.hear_neighbour("y", "y", 11.0)
    assert (here.neighbours["y"], here.neighbouring_brokers()) == (("y", 11.0), {"y"})
    assert (here.is_neighbouring_broker("y"), here.is_neighbouring_broker("z")) == (True, False)


def test_a_bridge_knows_a_neighbour_in_the_region_of_its_second_broker() -> None:
    here = regions()
    here.hear(announcement("a", 1.0), "x", 10.0)
    assert here.bridged_broker(10.0) == ""
    here.hear(announcement("b", 2.0), "y", 10.0)
    here.hear_neighbour("x", "a", 10.0)
    assert here.bridged_broker(10.0) == ""
    for name, now in (("v", 9.0), ("w", 9.5)):
        here.hear_neighbour(name, "b", now)
    assert (here.bridged_broker(10.0), here.foreign_neighbour("b", 10.0)) == ("b", "w"), "the one that was heard last"
    assert here.foreign_neighbour("b", 9.5 + EXPIRY_S) == ""
    assert here.foreign_neighbour("b", 9.4 + EXPIRY_S) == "w"
    del here.neighbours["v"]
    here.hear_neighbour("y", "b", 1.0)
    assert here.foreign_neighbour("b", 10.0) == "y", "a next hop to the broker comes first"
    here.set_broker(True)
    assert here.bridged_broker(10.0) == ""


# Routes.


def routed(target: str, via: str = "", origin: str = "o") -> Quit:
    return Quit(origin, target, via, 1, 0.0)


def test_return_routes_are_bounded_and_end_after_two_expiries() -> None:
    here = regions()
    for name in "pqrs":
        here.learn_return_route(name, "x", 10.0)
    assert list(here.return_routes) == ["q", "r", "s"]
    here.learn_return_route("q", "y", 0.0)
    assert list(here.return_routes) == ["r", "s", "q"]
    assert here.next_hop(routed("q"), 2 * EXPIRY_S) == "y"
    assert here.next_hop(routed("q"), 2 * EXPIRY_S + 0.1) == ""


def test_a_return_route_is_forgotten_when_it_is_older_than_two_expiries() -> None:
    here = regions()
    here.learn_return_route("q", "y", 0.0)
    kept = []
    for now in (2 * EXPIRY_S, 2 * EXPIRY_S + 0.1):
        here.forget(now)
        kept.append("q" in here.return_routes)
    assert kept == [True, False]


def test_a_hop_that_was_silent_for_long_is_used_only_where_there_is_no_other() -> None:
    here = regions()
    here.hear(announcement("a", 1.0), "x", 10.0)
    here.hear(announcement("a", 1.0), "y", 10.0)
    here.hear_neighbour("x", "", 10.0)
    here.hear_neighbour("y", "", 12.0)
    fresh_s = 3 * SETTINGS.announce_interval_s / SETTINGS.nearest
    assert here.next_hop(routed("a"), 9.9 + fresh_s) == "x"
    assert here.next_hop(routed("a"), 10.0 + fresh_s) == "y"
    assert here.next_hop(routed("a"), 12.0 + fresh_s) == "x"
    assert here.next_hop(routed("a"), 12.0, sender="x") == "y"
    assert here.next_hop(routed("a", origin="x"), 12.0) == "y"
    assert here.next_hop(routed("unknown"), 12.0) == ""


def test_a_packet_goes_over_its_bridge() -> None:
    here = regions()
    here.hear_neighbour("f", "b", 10.0)
    here.learn_return_route("bridge", "g", 10.0)
    assert here.next_hop(routed("b", via="me"), 10.0) == "f"
    assert here.next_hop(routed("b", via="bridge"), 10.0) == "f", "fresh"
    here.hear_neighbour("g", "", 10.0)
    assert here.next_hop(routed("b", via="bridge"), 10.0) == "g"


def test_routes_over_a_neighbour_that_is_gone_are_removed() -> None:
    here = regions()
    here.hear(announcement("a", 1.0), "x", 10.0)
    here.hear_neighbour("x", "a", 10.0)
    here.hear_motion("x", (0, 0, 0, 0), 10.0)
    for node, hop in (("p", "x"), ("q", "x"), ("r", "y")):
        here.learn_return_route(node, hop, 10.0)
    here.lose_neighbour("x", ("p", "r"))
    assert (here.neighbours, here.motions, here.brokers["a"].upstreams) == ({}, {}, [])
    assert list(here.return_routes) == ["q", "r"]


def test_the_nearest_hop_is_measured_where_it_should_be_by_now() -> None:
    here = regions(next_hop="nearest")
    here.hear(announcement("a", 1.0), "x", 10.0)
    here.hear(announcement("a", 1.0), "y", 10.0)
    for name, motion in (("x", (10, 0, 10, 0)), ("y", (0, 20, 0, 0))):
        here.hear_neighbour(name, "", 10.0)
        here.hear_motion(name, motion, 10.0)
    assert [here.next_hop(routed("a"), now) for now in (10.0, 10.9, 11.1)] == ["x", "x", "y"]
    assert here.next_hop(routed("a"), 10.0, sender="x") == "y"
    assert here.next_hop(routed("x"), 10.0) == "x"


# Held events.


def held(**more: object) -> HeldEvent:
    return HeldEvent(Event("N", {"v": 1}, id="e", source="s"), 100.0, 1, 1, **more)  # type: ignore[arg-type]


def test_each_failed_attempt_doubles_the_wait_up_to_64_times() -> None:
    one = held()
    waits = []
    for _ in range(9):
        one.send_to("p", True, 10.0, 1.5)
        waits.append(one.unconfirmed["p"].until - 10.0)
    assert waits == [1.5 * factor for factor in (1, 2, 4, 8, 16, 32, 64, 64, 64)]
    assert (one.is_on_its_way_to("p", 105.9), one.is_on_its_way_to("p", 106.0)) == (True, False)
    assert (one.planned_carriers(105.9), one.planned_carriers(106.0)) == (1, 0)


def test_a_confirmed_copy_makes_a_holder_and_a_carrier_if_it_was_to_carry() -> None:
    one = held(pending={"p", "q"})
    one.send_to("p", True, 0.0, 1.0)
    one.send_to("q", False, 0.0, 1.0)
    for peer in "pqr":
        one.confirm(peer)
    assert (one.holders, one.carriers, one.pending, one.unconfirmed) == ({"p", "q", "r"}, {"p"}, set(), {})


def test_what_is_left_to_do_with_an_event() -> None:
    sharing = Sharing(SETTINGS)
    one = held(pending={"p"}, copies=2, holders={"h"})
    assert [sharing.is_due(one, peer, 1.0) for peer in ("p", "q", "h")] == [True, True, False]
    one.send_to("p", True, 1.0, 1.0)
    assert (sharing.is_due(one, "p", 1.5), sharing.is_due(one, "p", 2.0)) == (False, True)
    one.carriers = {"x", "y"}
    assert [sharing.is_due(one, peer, 3.0) for peer in ("p", "q")] == [True, False]
    assert not sharing.is_done(one)
    one.pending.clear()
    assert sharing.is_done(one)
    one.copies = 3
    assert not sharing.is_done(one)
    assert (Epidemic(SETTINGS).carries(one, "h", 1.0), Epidemic(SETTINGS).carries(one, "z", 1.0)) == (False, True)


def test_a_receiver_carries_only_where_it_is_asked_to() -> None:
    event = held().event
    for carry, pending in ((True, {"p"}), (False, set())):
        one = held(holders={"q"})
        Sharing(SETTINGS).at_receiver(one, EventCopy("o", "me", "", 1, event, 1, ("me", "p", "q", "o"), carry), "me")
        assert (one.pending, one.holders) == (pending, {"q", "o"})
        assert one.destinations == (("me", "o", "p", "q") if carry else ())


# Subscribers.


def record(name: str, stamp: float, broker: str = "me", *texts: str, **more: object) -> SubscriberRecord:
    since = more.get("since", 0.0)
    return SubscriberRecord(name, stamp, broker, ("me", "b"), texts or ("N: v > 0",), since)  # type: ignore[arg-type]


def test_destinations_are_the_brokers_that_subscribers_name() -> None:
    some = [
        Subscriber(SubscriberRecord("s", 0.0, "", nearest, (), 0.0), 0.0, ())
        for nearest in (("me", "b", "c"), ("c", "d", "e"), ("c", "b", "e"))
    ]
    assert destinations_of(some, "me", SETTINGS) == ("b", "c", "d")
    assert destinations_of(some, "me", replace(SETTINGS, destinations="common")) == ("b", "c")


def test_a_registration_counts_once_and_a_later_one_replaces_it() -> None:
    table = Subscribers("me", 2, 30.0)
    first = table.learn(record("s", 1.0), 1.0)
    assert first is not None
    assert (first.version, first.known_by, first.renew_s) == (1, {""}, 0.0)
    assert table.learn(record("s", 1.0), 5.0, "p") is None
    assert (table.table["s"].heard_at, table.table["s"].known_by) == (5.0, {"", "p"})
    assert table.learn(record("s", 0.5), 6.0, "q") is None
    assert table.table["s"].heard_at == 5.0
    moved = table.learn(replace_record(record("s", 2.0), None), 7.0)
    assert moved is not None
    assert (moved.filters, moved.version) == (first.filters, 1), "nothing that others must know"
    assert table.learn(replace_record(record("s", 3.0, since=1.0), None), 7.0) is None, "of other subscriptions"
    for wrong in (record("s", math.inf), record("s", 4.0, since=math.nan), record("s", 4.0, "me", "not a filter <")):
        assert table.learn(wrong, 8.0) is None


def replace_record(one: SubscriberRecord, subscriptions: tuple[str, ...] | None) -> SubscriberRecord:
    return SubscriberRecord(one.subscriber, one.stamp, one.broker, one.nearest, subscriptions, one.since)


@pytest.mark.parametrize(
    ("later", "concerns"),
    [
        (record("s", 2.0), False),
        (record("s", 30.9), False),
        (record("s", 31.0), True),
        (record("s", 2.0, since=1.0), True),
        (record("s", 2.0, "me", "N: v > 5"), True),
        (record("s", 2.0, "b"), False),
        (record("s", 2.0, "c"), True),
    ],
)
def test_which_changes_other_brokers_must_know(later: SubscriberRecord, concerns: bool) -> None:
    table = Subscribers("me", 9, 30.0)
    table.learn(record("s", 1.0), 1.0)
    found = table.learn(later, 2.0, "p")
    assert found is not None
    assert (found.version, found.known_by) == ((2, {"p"}) if concerns else (1, {""}))


def test_the_table_is_bounded_and_the_least_recently_changed_makes_room() -> None:
    table = Subscribers("me", 2, 30.0)
    for name in "stu":
        table.learn(record(name, 1.0), 1.0)
    assert list(table.table) == ["t", "u"]
    event = Event("N", {"v": 1}, id="e", source="u", time=1.0)
    assert ([one.record.subscriber for one in table.matching(event)], table.relation(event)) == (["t"], 2)
    assert [one.record.subscriber for one in table.updates_for("p", 0, 9)] == ["t", "u"]
    assert [one.record.subscriber for one in table.updates_for("p", 2, 9)] == ["u"]
    assert [one.record.subscriber for one in table.updates_for("p", 0, 1)] == ["t"]
    assert table.updates_for("", 0, 9) == []


def test_a_subscriber_whose_change_others_must_know_is_the_last_to_make_room() -> None:
    table = Subscribers("me", 3, 30.0)
    for name in "stu":
        table.learn(record(name, 1.0), 1.0)
    table.learn(record("s", 2.0, "c"), 2.0)
    assert (list(table.table), [one.version for one in table.table.values()]) == (["t", "u", "s"], [2, 3, 4])
    table.learn(record("t", 2.0), 2.0)
    assert list(table.table) == ["t", "u", "s"], "nothing that others must know"
    table.learn(record("v", 3.0), 3.0)
    assert list(table.table) == ["u", "s", "v"]
    assert [one.record.subscriber for one in table.updates_for("p", 3, 9)] == ["s", "v"]


def test_the_texts_of_subscribers_may_take_all_bytes_of_the_table_and_one_subscriber_a_quarter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = record_bytes(record("s", 1.0))
    assert size == 3 * 64 + len("me") + len("b") + len("N: v > 0")
    monkeypatch.setattr(subscribers, "MOST_TEXT", 4 * size)
    table = Subscribers("me", 9, 30.0)
    for name in "stuv":
        assert table.learn(record(name, 1.0), 1.0) is not None
    assert (list(table.table), table.text) == ([*"stuv"], 4 * size)
    assert table.learn(record("w", 1.0, "me", "N: v > 00"), 1.0) is None, "one byte more than a quarter"
    table.learn(record("w", 1.0), 1.0)
    assert (list(table.table), table.text) == ([*"tuvw"], 4 * size)
    table.learn(record("t", 2.0, "me", "N: v"), 2.0)
    assert (list(table.table), table.text) == ([*"uvwt"], 4 * size - len(" > 0"))


def test_a_subscriber_quits_the_broker_that_it_left() -> None:
    table = Subscribers("me", 9, 30.0)
    table.learn(record("s", 1.0), 1.0)
    table.learn(record("elsewhere", 1.0, "b"), 1.0)
    assert [table.quit(*one) for one in (("s", 1.0), ("elsewhere", 2.0), ("unknown", 2.0))] == [False] * 3
    assert (table.quit("s", 1.1), table.table["s"].record.broker) == (True, "")


def test_silent_subscribers_leave_and_are_forgotten_four_times_later() -> None:
    table = Subscribers("me", 9, 30.0)
    for name in ("s", "slow", "me"):
        table.learn(record(name, 1.0), 1.0)
    table.table["slow"].renew_s = 5.0
    assert table.expire(11.0, 10.0) == []
    assert table.expire(11.1, 10.0) == ["s"]
    assert table.expire(16.1, 10.0) == ["slow"], "three of its own intervals"
    assert table.table["s"].filters
    table.expire(41.0, 10.0)
    assert table.table["s"].filters
    table.expire(41.1, 10.0)
    assert (table.table["s"].filters, table.table["me"].record.broker) == ((), "me")


def test_who_could_want_an_event() -> None:
    filters = parse_filters(("N: v > 0",))
    assert filters is not None
    one = Subscriber(record("s", 1.0, since=5.0), 0.0, filters)
    for value, source, time, wanted in (
        (1, "x", 5.0, True),
        (1, "x", 4.9, False),
        (1, "s", 5.0, False),
        (0, "x", 5.0, False),
    ):
        assert one.could_want(Event("N", {"v": value}, id="e", source=source, time=time)) == wanted
    assert parse_filters(("N: v >",)) is None


# Interests of regions.


def test_rectangles_end_at_blocks_around_the_margin() -> None:
    places = [Position(10.0, 20.0), Position(290.0, -150.0)]
    assert box_around(places, 0.0) == (0.0, -200.0, 300.0, 100.0)
    assert box_around(places, 50.0) == (-100.0, -200.0, 400.0, 100.0)
    assert box_around([*places, None], 0.0) == box_around([], 0.0) == EVERYWHERE
    assert widened((0.0, 1.0, 2.0, 3.0), 5.0) == (-5.0, -4.0, 7.0, 8.0)


def test_an_event_is_near_where_its_area_may_reach() -> None:
    def near(x: float, y: float, margin_m: float = 0.0) -> bool:
        event = Event("N", {}, area=Area(Circle(10.0), Position(x, y)))
        return is_near(event, (0.0, 0.0, 100.0, 200.0), margin_m)

    assert [near(*at) for at in ((50, 50), (110, 50), (110.1, 50), (-10, 50), (-10.1, 50))] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert [near(*at) for at in ((50, 210), (50, 210.1), (50, -10), (50, -10.1))] == [True, False, True, False]
    assert (near(106, 208), near(106.1, 208.1), near(113, 50, 3.0)) == (True, False, True)
    assert is_near(Event("N", {}), (0.0, 0.0, 0.0, 0.0), 0.0)


def test_a_type_with_more_filters_than_allowed_is_wanted_whole() -> None:
    texts = ("N: v > 0", "N: v > 5", "M: v > 0")
    assert summary_of(texts, 2) == tuple(sorted(texts))
    assert summary_of(texts, 1) == ("M: v > 0", "N: true")
    assert summary_of([*texts, EVERYTHING], 0) == tuple(sorted(("M: true", "N: true", EVERYTHING)))


def test_one_interest_includes_another() -> None:
    wide = Interest(("N: true",), (0.0, 0.0, 100.0, 100.0))
    assert wide.includes(Interest(("N: v > 5",), (0.0, 0.0, 100.0, 100.0)))
    assert wide.includes(Interest((), EVERYWHERE))
    assert not wide.includes(Interest(("M: true",), (1.0, 1.0, 2.0, 2.0)))
    for box in ((-1.0, 0.0, 9.0, 9.0), (0.0, -1.0, 9.0, 9.0), (0.0, 0.0, 101.0, 9.0), (0.0, 0.0, 9.0, 101.0)):
        assert not wide.includes(Interest(("N: true",), box))


def test_a_filter_that_cannot_be_read_asks_for_nothing() -> None:
    wide, unread = Interest(("N: true", "N: broken ("), EVERYWHERE), Interest(("another: broken (",), EVERYWHERE)
    assert wide.includes(unread)
    assert wide.includes(Interest(("N: v = 1", "N: broken ("), EVERYWHERE))
    assert not unread.includes(Interest(("N: v = 1",), EVERYWHERE))
    assert (wide.wants(Event("N", {"v": 1})), unread.wants(Event("N", {"v": 1}))) == (True, False)


def test_more_is_shared_at_once_and_less_after_a_while() -> None:
    found = Interests(SETTINGS, version=7)
    found.update(Interest(("N: true",), (0.0, 0.0, 100.0, 100.0)), 10.0)
    assert (found.version, found.own) == (8, Interest(("N: true",), (-100.0, -100.0, 200.0, 200.0)))
    found.update(Interest(("N: true",), (-100.0, 0.0, 100.0, 200.0)), 11.0)
    assert found.version == 8, "within the slack"
    found.update(Interest(("N: v > 5",), (0.0, 0.0, 100.0, 100.0)), 9.9 + SETTINGS.interest_renew_s)
    assert found.version == 8
    found.update(Interest(("N: v > 5",), (0.0, 0.0, 100.0, 100.0)), 10.0 + SETTINGS.interest_renew_s)
    assert (found.version, found.own.filters) == (9, ("N: v > 5",))
    found.update(Interest(("M: true",), (0.0, 0.0, 100.0, 100.0)), 10.5 + SETTINGS.interest_renew_s)
    assert found.version == 10


def test_an_interest_is_offered_until_it_is_confirmed() -> None:
    found = Interests(SETTINGS, version=1)
    waits = []
    now = 0.0
    for _ in range(9):
        assert found.due_to(["p"], now) == "p"
        found.offer_to("p", now)
        waits.append((found.offers["p"].until - now) / SETTINGS.taken_wait_s)
        assert found.due_to(["p"], found.offers["p"].until - 0.001) == ""
        now = found.offers["p"].until
    assert waits == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    found.on_confirmed("p", 99)
    assert (found.offers["p"].confirmed, found.due_to(["p"], now), found.due_to(["p", "q"], now)) == (1, "", "q")
    found.version = 2
    assert found.due_to(["p"], now) == "p"
    found.offer_to("p", now)
    assert found.offers["p"].attempts == 0
    found.on_confirmed("stranger", 2)


def test_interests_of_others_are_kept_by_version_within_bounds() -> None:
    found = Interests(SETTINGS, version=1)

    def heard(origin: str, version: int, filters: int = 1) -> bool:
        return found.learn(RegionInterest(origin, "me", "", 1, version, ("N: true",) * filters, EVERYWHERE))

    assert [heard("a", 2), heard("a", 2), heard("a", 1), heard("a", 3)] == [True, False, False, True]
    assert [heard("b", 1, filters=4), heard("b", 1, filters=3), heard("c", 1), heard("d", 1)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert found.wanting(Event("M", {}), ["a", "b", "unknown"]) == ["unknown"]
    assert found.wanting(Event("N", {}), ["a", "unknown"]) == ["a", "unknown"]


# Copies for regions.


def copy(time: float = 0.0, hops: int = 1, *targets: str, id: str = "e") -> RegionCopy:
    return RegionCopy(Event("N", {}, id=id, time=time, lifespan_s=10.0), hops, targets or ("a", "b", "c"))


def test_a_copy_divides_by_next_hop_and_waits_where_there_is_none() -> None:
    copies = RegionCopies(SETTINGS)
    hops = {"a": "x", "b": "y", "c": ""}
    one = copy()
    assert copies.divide(one, hops.__getitem__, 5.0) == [
        Send("x", RegionCopy(one.event, 2, ("a",))),
        Send("y", RegionCopy(one.event, 2, ("b",))),
        StartTimer("stranded", 5.0 + SETTINGS.stranded_wait_s),
    ]
    assert copies.divide(one, lambda _: "x", 5.0) == [], "it came again: its routes have changed"
    assert copies.stranded["e"].targets == {"a", "b", "c"}
    assert copies.try_again(lambda _: "z", 6.0) == [Send("z", RegionCopy(one.event, 2, ("a", "b", "c")))]
    assert copies.stranded == {}


def test_a_copy_ends_with_its_event_and_its_hops() -> None:
    copies = RegionCopies(SETTINGS)
    assert copies.divide(copy(), lambda _: "x", 10.1) == [Drop(DropReason.EXPIRED, "e")]
    assert isinstance(copies.divide(copy(), lambda _: "x", 10.0)[0], Send)
    limit = SETTINGS.hop_limit
    assert copies.divide(copy(0.0, limit), lambda _: "x", 5.0) == [Drop(DropReason.HOP_LIMIT, "e")]
    assert isinstance(copies.divide(copy(0.0, limit - 1, "d"), lambda _: "x", 5.0)[0], Send)


def test_a_bounded_number_of_copies_waits_for_a_route() -> None:
    copies = RegionCopies(SETTINGS)
    found = [copies.divide(copy(0.0, 1, "a", id=str(n)), lambda _: "", 5.0) for n in range(3)]
    assert found == [
        [StartTimer("stranded", 5.0 + SETTINGS.stranded_wait_s)], [], [Drop(DropReason.TOO_MANY_EVENTS_WAITING, "2")],
    ]  # fmt: skip


def test_the_brokers_of_all_waiting_copies_are_bounded() -> None:
    copies = RegionCopies(SETTINGS)
    waits = StartTimer("stranded", 5.0 + SETTINGS.stranded_wait_s)
    full = Drop(DropReason.TOO_MANY_EVENTS_WAITING, "e")
    assert copies.divide(copy(0.0, 1, "a", "b"), lambda _: "", 5.0) == [waits]
    assert copies.divide(copy(0.0, 1, "b", "c"), lambda _: "", 5.0) == []
    assert copies.divide(copy(0.0, 1, "d"), lambda _: "", 5.0) == [full]
    assert copies.stranded["e"].targets == {"a", "b", "c"}
    assert copies.try_again(lambda _: "", 5.0) == [waits]
    assert copies.divide(copy(0.0, 1, "f"), lambda _: "", 5.0) == [full], "those that wait still count"
    assert copies.try_again(lambda target: "x" if target == "a" else "", 5.0)[0] == Send(
        "x", RegionCopy(copy().event, 2, ("a",))
    )
    assert copies.divide(copy(0.0, 1, "g"), lambda _: "", 5.0) == [], "a has left"
    assert copies.try_again(lambda _: "x", 10.1) == [Drop(DropReason.EXPIRED, "e")]


@pytest.mark.parametrize(("near_hops", "hops", "interval_s"), [(0, 9, 5.0), (2, 2, 5.0), (2, 3, 7.5), (2, 0, 5.0)])
def test_subscribers_far_from_their_broker_register_less_often(near_hops: int, hops: int, interval_s: float) -> None:
    assert replace(SETTINGS, near_hops=near_hops).register_after_s(hops) == interval_s


def test_a_subscriber_that_was_forgotten_may_register_again() -> None:
    table = Subscribers("me", 9, 30.0)
    table.learn(record("s", 1.0), 1.0)
    table.quit("s", 2.0)
    table.expire(41.5, 10.0)
    assert (table.table["s"].filters, 1.0 < table.table["s"].record.stamp < 1.001) == ((), True)
    assert table.learn(record("s", 3.0), 50.0) is not None
    assert table.table["s"].filters


def test_an_event_that_expires_before_all_destinations_have_it_is_dropped_by_name() -> None:
    broker = Broker("me", SETTINGS, regions(), Sharing(SETTINGS), RecentKeys(9), 0.0)
    for name, destinations, pending in (("done", ("p",), set()), ("left", ("p",), {"p"}), ("nowhere", (), {"p"})):
        event = Event("N", {}, id=name)
        broker.events.add(HeldEvent(event, 100.0, 1, 1, pending=set(pending), destinations=destinations))
    dropped = [one for one in broker.contact(100.0) if isinstance(one, Drop)]
    assert dropped == [Drop(DropReason.EXPIRED_WITH_DESTINATIONS_LEFT, "left")]
    broker.next_contact = 7.0
    assert [broker.contact_timer(now) for now in (5.0, 9.0)] == [StartTimer("contact", 7.0), StartTimer("contact", 9.0)]


def test_a_broker_that_was_declared_gone_returns_with_its_announcement() -> None:
    node = Drip("me", SETTINGS, FixedLocation(), Random(1))
    node.start(0.0)
    node.election.candidates.learn([Candidate("b", 9.0, 1.0, True)])
    node.hear(announcement("b", 0.5), "x", 10.0)
    assert not node.election.candidates.is_gone("b")


AROUND = Surroundings(
    nodes=100, present=100.0, width_m=50.0, height_m=50.0, range_m=100.0, mean_neighbours=9.0, median_speed_m_s=1.0,
    link_lifetime_s=9.0, events_per_s=9.0,
)  # fmt: skip


def test_first_guesses_lie_between_the_fewest_brokers_and_all_nodes() -> None:
    usual = DripSettings()
    fewest = usual.nearest + usual.copies + 1
    found = {one.name: (one.low, one.high) for one in Drip.tuning(AROUND)}
    assert found == {"brokers": (fewest, 100), "copies": (1, 4), "nearest": (2, 6)}
    assert Drip.tuning(replace(AROUND, present=float(fewest))) == ()
    assert Drip.tuning(replace(AROUND, present=fewest + 1.0)) != ()


@pytest.mark.parametrize(("confirmed", "interval_s"), [(False, 0.2), (True, 0.0)])
def test_the_next_contact_begins_when_the_last_one_is_confirmed(confirmed: bool, interval_s: float) -> None:
    """SF shared at most 20 events a second, however fast brokers confirmed them, and lost the rest."""
    settings = replace(SETTINGS, contact_events=2, contact_interval_s=0.2, contact_confirmed=confirmed, memory_events=9)
    near = regions()
    near.hear_neighbour("p", "p", 0.0)
    broker = Broker("me", settings, near, Epidemic(settings), RecentKeys(9), 0.0)
    for name in "abc":
        broker.events.add(HeldEvent(Event("N", {}, id=name), 100.0, 1, 1))
    now, shared = 1.0, []
    for first, last in (("a", "b"), ("c", "c")):
        copies = [one.event.id for one in broker.contact(now) if isinstance(one, EventCopy)]
        shared.append(copies)
        assert broker.receive(Confirmation("q", "me", "", 1, last), now) == []
        assert broker.receive(Confirmation("p", "me", "", 1, "another"), now) == []
        if first != last:
            assert broker.receive(Confirmation("p", "me", "", 1, first), now) == []
        answer = broker.receive(Confirmation("p", "me", "", 1, last), now)
        assert answer == ([StartTimer("contact", now)] if confirmed else [])
        assert broker.contact_timer(now).at == pytest.approx(now + interval_s)
        now += interval_s
    assert shared == [["a", "b"], ["c"]]
    # Subscriber updates are confirmed too, and a contact without anything to send does not make the next event wait.
    (exchange,) = [one for one in broker.contact(now) if isinstance(one, Exchange)]
    assert broker.contact_timer(now).at == pytest.approx(now + 0.2)
    broker.receive(Confirmation("p", "me", "", 1, "", exchange.version), now)
    assert broker.contact_timer(now).at == pytest.approx(now + (0.0 if confirmed else 0.2))
    broker.contact(now)
    assert broker.contact_timer(now).at == pytest.approx(now + (0.0 if confirmed else 0.2))


def test_a_record_weighs_its_characters_and_64_more_for_each_text() -> None:
    assert record_bytes(SubscriberRecord("s", 0.0, "b", ("ab", "c"), ("N: true",), 0.0)) == 2 + 1 + 7 + 3 * 64
    assert record_bytes(SubscriberRecord("s", 0.0, "b", ("ab",), None, 0.0)) == 2 + 64


def test_settings_at_their_bounds() -> None:
    assert DripSettings(brokers=7, network_nodes=7).k == 7
    with pytest.raises(SettingsError, match="brokers must not exceed the network's nodes, got 8 brokers of 7 nodes"):
        DripSettings(brokers=8, network_nodes=7)
    usual = DripSettings()
    with pytest.raises(SettingsError, match="replace_after_s must exceed"):
        DripSettings(replace_after_s=usual.expiry_s)
    assert DripSettings(replace_after_s=usual.expiry_s + 0.1).replace_after_s > usual.expiry_s
    with pytest.raises(SettingsError, match=r"nearest \+ copies must stay below brokers"):
        DripSettings(brokers=6, nearest=4, copies=2)


def test_the_next_nearest_takes_a_free_place_until_it_has_been_silent_for_too_long() -> None:
    for later, taken in ((-0.01, True), (0.0, False)):
        here = regions()
        for name, delay_s in (("a", 0.5), ("b", 0.5), ("c", 3.0)):
            here.hear(announcement(name, delay_s), "x", 10.0)
        here.brokers["a"].heard_at = here.brokers["b"].heard_at = 99.0
        assert here.retire("a", 2, 10.0 + EXPIRY_S + later)
        assert ("c" in here.brokers) is taken


def test_a_neighbour_at_the_edge_of_what_is_safe_is_a_step_to_a_place() -> None:
    here = regions(next_hop="nearest")
    for name, x in (("far", 100), ("edge", 80), ("beyond", 81)):
        here.hear_neighbour(name, "", 10.0)
        here.hear_motion(name, (x, 0, 0, 0), 10.0)
    assert here._closer_hop(Position(500.0, 0.0), Position(0.0, 0.0), 10.0) == "edge"


def test_no_guess_has_more_brokers_than_the_smallest_network_has_nodes() -> None:
    small = replace(AROUND, fewest_nodes=12)
    brokers, *_ = Drip.tuning(small)
    assert (brokers.name, brokers.high) == ("brokers", 12)
    assert all(value <= 12 for value in brokers.values())
    assert Drip.tuning(replace(AROUND, fewest_nodes=7)) == ()


@pytest.mark.parametrize(
    ("motion", "place", "expected"),
    [
        ((3, 4, 0, 0), Position(0.0, 0.0), 5.0),
        ((3, 4, 0, 0), Position(3.0, 10.0), 6.0),
        ((3, 4, 0, 0), Position(9.0, 4.0), 6.0),
        ((0, 0, 3, 4), Position(0.0, 0.0), 10.0),
        ((10, 20, -2, 3), Position(6.0, 26.0), 0.0),
    ],
)
def test_a_neighbour_is_where_its_motion_has_brought_it(
    motion: tuple[int, int, int, int], place: Position, expected: float
) -> None:
    here = Regions("me", PAPER)
    here.hear_neighbour("x", "b", 10.0)
    here.hear_motion("x", motion, 10.0)
    assert here._distance_m("x", place, 12.0) == expected
    assert here._distance_m("y", place, 12.0) == math.inf
