"""STEAM: announcing, discovering, raising, delivering."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import msgspec
import pytest
from steam_table import SteamTable, goes, stays

from earshot import Area, Circle, Event, EventType, Filter, Polygon, Position, Proximity, Rectangle
from earshot.errors import ContentMismatch, EventError, GeometryError, SettingsError, UnknownName, UsageError
from earshot.filters import Subscription
from earshot.protocols.machine import (
    Announcement,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    FixedLocation,
    JoinGroup,
    LeaveGroup,
    Send,
    StartTimer,
)
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import (
    MAX_REQUESTED,
    RECOVERING,
    Advert,
    ProximityBeacon,
    Raised,
    Recovered,
    RecoveryRequest,
    SteamSettings,
)
from earshot.records import DropReason
from earshot.wire import decode, encode

STEADY = replace(RECOVERING, beacon_jitter=0.0)
SIREN = EventType("Siren", {"speed": float})
HERE = Position(0.0, 0.0)
AROUND = Proximity(Circle(100), HERE)
AREA = AROUND.area()


def node(name: str = "n", at: Position = HERE, settings: SteamSettings = STEADY) -> Steam:
    return Steam(name, settings, FixedLocation(at), Random(1))


def siren(number: int = 1, **change: object) -> Event:
    event = Event("Siren", {"speed": 18.0}, f"p:{number}", "p", HERE, None, 0.5, AREA)
    return msgspec.structs.replace(event, **change)


def advert(**change: object) -> Advert:
    plain = Advert("p", "Siren", {"speed": "float"}, {}, AROUND, HERE, 0.0, 1, False, 1, 0, 0.0)
    return msgspec.structs.replace(plain, **change)


GROUP = group_id("Siren", AROUND)
WANTS_SIREN = Subscription("s", "n", Filter.of_type("Siren"))


# The producer.


def test_announcing_beacons_the_type_and_its_proximity_at_once_and_again_each_period() -> None:
    machine = node("p")
    assert machine.announce(Announcement(SIREN, AROUND), 0.0) == [
        StartTimer("round", 1.0),
        Broadcast(ProximityBeacon((advert(),))),
    ]
    assert machine.wake("round", 1.0) == [Broadcast(ProximityBeacon((advert(beacon=2),))), StartTimer("round", 2.0)]


def test_an_event_goes_to_the_group_in_one_hop_if_the_radio_covers_the_proximity() -> None:
    machine = node("p")
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    event = siren()
    assert machine.publish(event, 0.5) == [Broadcast(Raised(event, GROUP, 0.0, 1, multi_hop=False), GROUP)]


def test_an_event_reaches_consumers_on_the_producers_own_device_without_a_hop() -> None:
    machine = node("p", settings=replace(STEADY, deliver_own=True))
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    machine.subscribe(WANTS_SIREN, 0.1)
    assert machine.publish(siren(), 0.5)[1:] == [Deliver(siren(), "s", hops=0)]


@pytest.mark.parametrize(
    ("radius_m", "producer_x_m", "multi_hop"),
    [(200.0, 0.0, False), (200.1, 0.0, True), (150.0, 50.0, False), (150.0, 51.0, True), (700.0, 0.0, True)],
)
def test_beyond_the_radio_range_members_pass_on(radius_m: float, producer_x_m: float, multi_hop: bool) -> None:
    machine = node("p", Position(producer_x_m, 0.0))
    machine.announce(Announcement(SIREN, Proximity(Circle(radius_m), HERE)), 0.0)
    (effect,) = machine.publish(siren(), 0.5)
    assert isinstance(effect, Broadcast)
    assert isinstance(effect.packet, Raised)
    assert effect.packet.multi_hop is multi_hop


def test_an_event_that_goes_everywhere_is_always_passed_on() -> None:
    machine = node("p")
    machine.announce(Announcement(SIREN), 0.0)
    event = siren(area=None)
    group = group_id("Siren", None)
    assert machine.publish(event, 0.5) == [Broadcast(Raised(event, group, 0.0, 1, multi_hop=True), group)]


def test_a_mobile_proximity_moves_with_its_producer_and_keeps_its_group() -> None:
    table = SteamTable({"p": goes(0.0, 10.0)}, STEADY)
    mobile = Proximity(Circle(100), HERE, mobile=True)
    table.announce("p", SIREN, mobile)
    table.run(5.0)
    event = table.publish("p", "Siren", {"speed": 1.0})
    adverts = [packet.adverts[0] for _, packet in table.table.sent if isinstance(packet, ProximityBeacon)]
    (raised,) = [packet for _, packet in table.table.sent if isinstance(packet, Raised)]
    assert [(one.at.x_m, one.proximity) for one in adverts] == [(10.0 * k, mobile) for k in range(6)]
    assert (raised.group, raised.event.area) == (
        group_id("Siren", mobile),
        Area(Circle(100), Position(50.0, 0.0)),
    )
    assert table.events[event].area == raised.event.area


def test_a_producer_that_cannot_reach_its_proximity_drops_the_event() -> None:
    machine = node("p", Position(301.0, 0.0))
    assert machine.announce(Announcement(SIREN, AROUND), 0.0) == [StartTimer("round", 1.0)]
    assert machine.publish(siren(), 0.5) == [Drop("producer-outside-proximity", "p:1")]


def test_many_announcements_make_many_beacons_of_a_bounded_size() -> None:
    machine = node("p")
    for k in range(1000):
        machine.announce(Announcement(EventType(f"Type {k:04d}", {"value": float}), AROUND), 0.0)
    beacons = [effect.packet for effect in machine.wake("round", 1.0) if isinstance(effect, Broadcast)]
    assert len(beacons) == math.ceil(1000 / 16)
    assert max(len(encode(beacon)) for beacon in beacons) < 4096


# What callers get wrong.


def test_an_event_of_an_unannounced_type_is_an_error() -> None:
    with pytest.raises(EventError, match="'Siren' are not announced on this node; announce the type"):
        node("p").publish(siren(), 0.0)


@pytest.mark.parametrize("content", [{}, {"speed": "fast"}, {"speed": 1.0, "colour": "blue"}, {"velocity": 1.0}])
def test_content_that_differs_from_the_announced_structure_is_an_error(content: dict[str, object]) -> None:
    machine = node("p")
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    with pytest.raises(ContentMismatch, match="Siren: "):
        machine.publish(siren(content=content), 0.0)


def test_events_of_a_type_announced_without_content_are_not_checked() -> None:
    machine = node("p")
    machine.announce(Announcement(EventType("Siren"), AROUND), 0.0)
    assert len(machine.publish(siren(content={"anything": 1}), 0.5)) == 1


def test_one_type_has_one_structure() -> None:
    machine = node("p")
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    with pytest.raises(ContentMismatch, match="events of one type have one structure: unannounce it before"):
        machine.announce(Announcement(EventType("Siren", {"speed": int}), AROUND), 1.0)


@pytest.mark.parametrize("shape", [lambda: Circle(0.0), lambda: Rectangle(0.0, 5.0), lambda: Polygon(((0, 0),) * 3)])
def test_a_proximity_of_zero_size_is_an_error(shape: object) -> None:
    with pytest.raises(GeometryError):
        node("p").announce(Announcement(SIREN, Proximity(shape(), HERE)), 0.0)  # type: ignore[operator]


def test_a_naval_that_is_not_a_point_is_an_error() -> None:
    with pytest.raises(GeometryError, match="naval of 'Siren' must be a point"):
        node("p").announce(Announcement(SIREN, Proximity(Circle(10), Position(math.nan, 0.0))), 0.0)


def test_too_many_or_too_long_announcements_are_an_error() -> None:
    machine = node("p", settings=replace(STEADY, announcement_limit=1))
    with pytest.raises(UsageError, match=r"An announcement was too long\. Use a simpler shape"):
        machine.announce(Announcement(EventType("x" * 5000), AROUND), 0.0)
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    with pytest.raises(UsageError, match="announces 1 event types already: increase announcement_limit"):
        machine.announce(Announcement(EventType("News"), AROUND), 0.0)


def test_withdrawing_an_unknown_announcement_or_subscription_is_an_error() -> None:
    with pytest.raises(UnknownName, match="no announced event type named 'Siren'"):
        node().unannounce("Siren", 0.0)
    with pytest.raises(UnknownName, match="no subscription named 's'"):
        node().unsubscribe("s", 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"range_m": 0.0}, "range_m must be a positive number of metres, got 0.0"),
        ({"beacon_interval_s": math.inf}, "beacon_interval_s must be a positive number of seconds, got inf"),
        ({"expiry_s": 1.05}, "expiry_s must be longer than a beacon's period of up to 1.1 s, got 1.05"),
        ({"gossip_probability": 1.5}, "gossip_probability must be from 0 to 1, got 1.5"),
        ({"forwarding": "shout"}, "forwarding: no such choice as 'shout'; there are: flood, gossip"),
        ({"hop_limit": 0}, "hop_limit must be at least 1, got 0"),
        ({"cache_size": -1}, "cache_size must be from 0 to 4,096, got -1"),
        ({"beacon_jitter": 1.0}, "beacon_jitter must be at least 0 and below 1, got 1.0"),
        ({"gossip_distance_m": -1.0}, "gossip_distance_m must not be negative, got -1.0"),
        ({"recovery_delay_s": -1.0}, "recovery_delay_s must not be negative, got -1.0"),
        ({"beacon_gather_s": -1.0}, "beacon_gather_s must not be negative, got -1.0"),
    ],
)
def test_settings_check_themselves(change: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message.replace("(", r"\(")):
        SteamSettings(**change)  # type: ignore[arg-type]


# The consumer.


def test_a_subscriber_inside_a_proximity_joins_its_group_and_leaves_with_its_subscription() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    assert machine.hear(ProximityBeacon((advert(),)), "p", 0.1) == [JoinGroup(GROUP)]
    assert machine.unsubscribe("s", 0.2) == [LeaveGroup(GROUP)]


def test_the_list_does_not_depend_on_subscriptions_and_a_later_subscriber_joins_at_once() -> None:
    machine = node()
    assert machine.hear(ProximityBeacon((advert(),)), "p", 0.1) == [StartTimer("round", 1.1)]
    assert list(machine.relevant.by_key) == [("p", "Siren")]
    assert machine.subscribe(WANTS_SIREN, 0.2) == [JoinGroup(GROUP)]


def test_a_node_outside_a_proximity_does_not_list_it() -> None:
    machine = node(at=Position(101.0, 0.0))
    machine.subscribe(WANTS_SIREN, 0.0)
    assert machine.hear(ProximityBeacon((advert(),)), "p", 0.1) == []
    assert len(machine.relevant) == 0


def test_a_member_delivers_once_and_does_not_pass_on_what_one_hop_covers() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    raised = Raised(siren(), GROUP, 0.0, 1, multi_hop=False)
    assert machine.hear(raised, "p", 0.5) == [Deliver(siren(), "s", 1)]
    assert machine.hear(raised, "q", 0.6) == []


def test_a_member_passes_on_what_goes_beyond_one_hop() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    raised = Raised(siren(), GROUP, 0.0, 1, multi_hop=True, hops=2)
    assert machine.hear(raised, "q", 0.5) == [
        Deliver(siren(), "s", 2),
        Broadcast(msgspec.structs.replace(raised, hops=3), GROUP),
    ]


def test_nothing_is_passed_on_beyond_the_hop_limit() -> None:
    machine = node(settings=replace(STEADY, hop_limit=3))
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    assert machine.hear(Raised(siren(), GROUP, 0.0, 1, True, hops=3), "q", 0.5) == [
        Deliver(siren(), "s", 3),
        Drop("hop-limit", "p:1"),
    ]
    assert machine.hear(ProximityBeacon((advert(beacon=2, multi_hop=True, hops=2),)), "q", 1.1) == [Drop("hop-limit")]


def test_a_node_that_is_not_a_member_ignores_an_event() -> None:
    machine = node()
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    raised = Raised(siren(), GROUP, 0.0, 1, multi_hop=True)
    assert machine.hear(raised, "p", 0.5) == [Drop("not-a-group-member", "p:1")]


def colliding_subjects() -> tuple[str, str]:
    """Two types whose announcements in one proximity share an identifier."""
    by_group: dict[int, str] = {}
    for number in range(1_000_000):
        subject = f"Traffic event {number}"
        other = by_group.setdefault(group_id(subject, AROUND), subject)
        if other != subject:
            return other, subject
    raise AssertionError("no collision among a million")


def test_an_unwanted_type_that_shares_the_identifier_is_discarded_and_counted() -> None:
    wanted, unwanted = colliding_subjects()
    table = SteamTable({"p": stays(0.0), "q": stays(10.0), "c": stays(20.0)}, STEADY)
    table.announce("p", wanted, AROUND)
    table.announce("q", unwanted, AROUND)
    table.subscribe(["c"], wanted)
    table.run(0.5)
    events = [table.publish("p", wanted), table.publish("q", unwanted)]
    table.run(0.9)
    assert [table.receivers(event) for event in events] == [["c"], []]
    assert table.reasons("c") == ["group-id-collision"]


def test_content_that_differs_from_the_announced_type_is_discarded_and_counted() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    wrong = siren(content={"colour": "blue"})
    assert machine.hear(Raised(wrong, GROUP, 0.0, 1, multi_hop=True), "p", 0.5) == [
        Drop("content-differs-from-type", "p:1")
    ]


def test_another_producer_in_the_same_group_is_heard_before_its_own_beacon() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    event = siren(source="q", id="q:1")
    assert machine.hear(Raised(event, GROUP, 0.3, 1, multi_hop=False), "q", 0.5) == [Deliver(event, "s", 1)]


def test_an_expired_event_is_dropped() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    assert machine.hear(Raised(siren(lifespan_s=1.0), GROUP, 0.0, 1, True), "p", 1.6) == [Drop("expired", "p:1")]


def test_a_filter_sees_the_content_and_the_movement_of_the_consumer() -> None:
    table = SteamTable({"light": stays(0.0), "coming": goes(-90.0, 10.0), "going": goes(10.0, 10.0)}, STEADY)
    table.announce("light", EventType("Light", {"green": bool}), AROUND)
    table.subscribe(["coming", "going"], Filter.where("green = true and approaching", type="Light"))
    table.run(2.0)
    red, green = (table.publish("light", "Light", {"green": green}) for green in (False, True))
    table.run(3.0)
    assert (table.receivers(red), table.receivers(green)) == ([], ["coming"])


def test_a_consumer_may_name_its_own_region_and_both_must_agree() -> None:
    table = SteamTable({"p": goes(0.0, 10.0), "near": stays(20.0), "picky": stays(30.0)}, STEADY)
    table.announce("p", SIREN, Proximity(Circle(100), HERE, mobile=True))
    table.subscribe(["near"], "Siren")
    table.subscribe(["picky"], "Siren", region=Area(Circle(15), Position(30.0, 0.0)))
    events = []
    for second in (1.0, 2.5):
        table.run(second)
        events.append(table.publish("p", "Siren", {"speed": 10.0}))
    table.run(4.0)
    assert [table.receivers(event) for event in events] == [["near"], ["near", "picky"]]


# Moving.


def test_a_consumer_joins_with_the_first_beacon_inside_and_leaves_in_the_first_round_outside() -> None:
    table = SteamTable({"p": stays(0.0), "c": goes(-150.0, 20.0)}, STEADY)
    table.announce("p", SIREN, AROUND)
    table.subscribe(["c"], "Siren")
    inside = []
    for second in range(14):
        table.run(second + 0.5)
        inside.append(bool(table.machines["c"].relevant.groups))
    assert inside == [False] * 3 + [True] * 10 + [False]


def test_a_mobile_proximity_that_drives_past_is_joined_and_left() -> None:
    table = SteamTable({"p": goes(-300.0, 50.0), "c": stays(0.0)}, STEADY)
    table.announce("p", SIREN, Proximity(Circle(100), Position(-300.0, 0.0), mobile=True))
    table.subscribe(["c"], "Siren")
    joined = []
    for second in range(12):
        table.run(second + 0.5)
        joined.append(bool(table.machines["c"].relevant.groups))
    assert joined == [False] * 4 + [True] * 5 + [False] * 3


def test_a_proximity_whose_beacons_stop_is_forgotten() -> None:
    table = SteamTable({"p": stays(0.0), "c": stays(10.0)}, STEADY)
    table.announce("p", SIREN, AROUND)
    table.subscribe(["c"], "Siren")
    table.run(2.5)
    table.table.do("p", "unannounce", "Siren")
    table.run(5.0)
    still = len(table.machines["c"].relevant)
    table.run(7.1)
    assert (still, len(table.machines["c"].relevant), table.machines["c"].relevant.groups) == (1, 0, {})


def test_a_member_that_has_just_left_is_not_delivered_even_before_it_notices() -> None:
    table = SteamTable({"p": stays(0.0), "c": goes(50.0, 20.0)}, STEADY)
    table.announce("p", SIREN, AROUND)
    table.subscribe(["c"], "Siren")
    table.run(2.6)
    event = table.publish("p", "Siren", {"speed": 1.0})
    table.run(2.7)
    assert (table.receivers(event), table.reasons("c")) == ([], ["outside-proximity"])


def test_a_new_announcement_of_the_same_type_replaces_the_proximity() -> None:
    table = SteamTable({"p": stays(0.0), "near": stays(50.0), "far": stays(150.0)}, STEADY)
    table.announce("p", SIREN, AROUND)
    table.subscribe(["near", "far"], "Siren")
    table.run(0.5)
    first = table.publish("p", "Siren", {"speed": 1.0})
    table.run(0.6)
    table.announce("p", SIREN, Proximity(Circle(160), HERE))
    table.run(0.7)
    second = table.publish("p", "Siren", {"speed": 1.0})
    table.run(0.8)
    assert (table.receivers(first), table.receivers(second)) == (["near"], ["far", "near"])


def test_nested_and_overlapping_proximities_each_reach_their_own() -> None:
    table = SteamTable({"large": stays(0.0), "small": stays(20.0), "other": stays(150.0), "c": stays(60.0)}, STEADY)
    table.announce("large", "News", Proximity(Circle(190), HERE))
    table.announce("small", "News", Proximity(Rectangle(60, 60), Position(20.0, 0.0)))
    table.announce("other", "Siren", Proximity(Circle(100), Position(150.0, 0.0)))
    table.subscribe(["large", "small", "other", "c"], Filter.where("true"))
    table.run(0.5)
    events = [table.publish("large", "News"), table.publish("small", "News"), table.publish("other", "Siren")]
    table.run(0.9)
    assert [table.receivers(event) for event in events] == [["c", "other", "small"], ["large"], ["c"]]


# Many hops.


def test_beacons_and_events_reach_the_boundary_over_members_and_stop_there() -> None:
    chain = {f"n{k}": stays(150.0 * k) for k in range(6)}
    table = SteamTable(chain, STEADY)
    table.announce("n0", SIREN, Proximity(Circle(460), HERE))
    table.subscribe(chain, "Siren")
    table.run(0.5)
    event = table.publish("n0", "Siren", {"speed": 1.0})
    table.run(0.9)
    assert table.receivers(event) == ["n1", "n2", "n3"]
    assert table.senders("steam-event") == ["n0", "n1", "n2", "n3"]
    assert table.senders("steam-beacon") == ["n0", "n1", "n2", "n3"]


def test_a_node_without_subscriptions_passes_on_beacons_but_not_events() -> None:
    table = SteamTable({f"n{k}": stays(150.0 * k) for k in range(3)}, STEADY)
    table.announce("n0", SIREN, Proximity(Circle(460), HERE))
    table.subscribe(["n2"], "Siren")
    table.run(0.5)
    event = table.publish("n0", "Siren", {"speed": 1.0})
    table.run(0.9)
    assert bool(table.machines["n2"].relevant.groups)
    assert (table.receivers(event), table.senders("steam-event")) == ([], ["n0"])


@pytest.mark.parametrize(("distance_m", "least", "most"), [(200.0, 400, 400), (200.1, 290, 350)])
def test_gossip_passes_on_for_certain_up_to_d_and_with_p_beyond(distance_m: float, least: int, most: int) -> None:
    machine = node(at=Position(distance_m, 0.0), settings=replace(STEADY, forwarding="gossip"))
    machine.subscribe(WANTS_SIREN, 0.0)
    wide = Proximity(Circle(700), HERE)
    machine.hear(ProximityBeacon((advert(proximity=wide, multi_hop=True),)), "q", 0.1)
    sent = 0
    for number in range(400):
        raised = Raised(siren(number, area=wide.area()), group_id("Siren", wide), 0.0, number + 1, True)
        sent += sum(isinstance(effect, Broadcast) for effect in machine.hear(raised, "q", 0.5))
    assert least <= sent <= most


# Bounds.


def test_a_thousand_overlapping_proximities_are_listed_and_no_more_than_the_limit() -> None:
    machine = node(settings=replace(STEADY, proximity_limit=1500))
    for k in range(1000):
        machine.hear(ProximityBeacon((advert(producer=f"p{k}"),)), f"p{k}", 0.1)
    assert (len(machine.relevant), len(machine.relevant.groups)) == (1000, 0)
    for k in range(1000, 3000):
        machine.hear(ProximityBeacon((advert(producer=f"p{k}"),)), f"p{k}", 0.1)
    assert len(machine.relevant) == 1500


def test_a_flood_of_unwanted_announcements_does_not_keep_out_a_wanted_one() -> None:
    machine = node(settings=replace(STEADY, proximity_limit=50))
    machine.subscribe(WANTS_SIREN, 0.0)
    for k in range(10_000):
        machine.hear(ProximityBeacon((advert(producer=f"x{k}", subject=f"Junk {k}"),)), f"x{k}", 0.1)
    assert machine.hear(ProximityBeacon((advert(),)), "p", 0.2) == [Drop("proximity-list-full"), JoinGroup(GROUP)]
    assert machine.hear(Raised(siren(), GROUP, 0.0, 1, False), "p", 0.5) == [Deliver(siren(), "s", 1)]
    assert len(machine.relevant) == 50


def test_one_producer_cannot_fill_the_list() -> None:
    machine = node(settings=replace(STEADY, announcement_limit=10))
    adverts = tuple(advert(producer="x", subject=f"Junk {k}") for k in range(100))
    reasons = [effect.reason for effect in machine.hear(ProximityBeacon(adverts), "x", 0.1) if isinstance(effect, Drop)]
    assert (len(machine.relevant), reasons) == (10, ["too-many-announcements"] * 90)


def test_the_announcements_of_many_producers_are_gathered_and_passed_on_in_few_beacons() -> None:
    machine = node(settings=replace(STEADY, proximity_limit=2000))
    effects = []
    for k in range(1000):
        effects += machine.hear(ProximityBeacon((advert(producer=f"p{k}", multi_hop=True),)), f"p{k}", 0.01)
    timers = [effect for effect in effects if isinstance(effect, StartTimer) and effect.name == "onward"]
    sent = [effect.packet for effect in machine.wake("onward", timers[0].at) if isinstance(effect, Broadcast)]
    assert (len(timers), len(sent), 0.035 <= timers[0].at <= 0.06) == (1, math.ceil(1000 / 16), True)
    assert {(one.producer, one.hops) for beacon in sent for one in beacon.adverts} == {
        (f"p{k}", 1) for k in range(1000)
    }
    assert machine.wake("onward", 0.2) == []


def test_an_announcement_that_enough_neighbours_passed_on_is_not_passed_on_again() -> None:
    machine = node()
    for producer, heard_again in (("p", 3), ("q", 2)):
        for _ in range(1 + heard_again):
            machine.hear(ProximityBeacon((advert(producer=producer, multi_hop=True),)), "r", 0.01)
    assert machine.wake("onward", 0.06) == [Broadcast(ProximityBeacon((advert(producer="q", multi_hop=True, hops=1),)))]


def test_beacons_are_passed_on_at_most_twice_a_period_however_fast_they_come() -> None:
    machine = node(settings=replace(STEADY, beacon_gather_s=0.0))
    sent = 0
    for k in range(1000):
        effects = machine.hear(ProximityBeacon((advert(beacon=k + 1, multi_hop=True),)), "p", k * 0.01)
        sent += sum(isinstance(effect, Broadcast) for effect in effects)
    assert sent == 20


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"subject": ""}, "announcement-incomplete"),
        ({"content": {"speed": "furlongs"}}, "impossible-type"),
        ({"epoch": math.inf}, "announcement-impossible-numbers"),
        ({"subject": "x" * 9000}, "announcement-too-long"),
    ],
)
def test_an_invalid_announcement_is_dropped_with_its_reason(change: dict[str, object], reason: str) -> None:
    assert node().hear(ProximityBeacon((advert(**change),)), "p", 0.1) == [Drop(reason)]


def test_an_announcement_of_our_own_type_with_another_structure_is_refused() -> None:
    machine = node()
    machine.announce(Announcement(EventType("Siren", {"volume": int}), AROUND), 0.0)
    assert machine.hear(ProximityBeacon((advert(),)), "p", 0.1) == [Drop("impossible-type")]


def test_an_announcement_cannot_change_under_its_epoch() -> None:
    machine = node()
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    changed = advert(beacon=2, proximity=Proximity(Circle(1e6), HERE))
    assert machine.hear(ProximityBeacon((changed,)), "p", 1.1) == [Drop("announcement-changed")]


def test_packets_are_the_same_after_encoding_and_decoding() -> None:
    packets = [
        ProximityBeacon((advert(proximity=None), advert(proximity=Proximity(Polygon(((0, 0), (9, 0), (0, 9))), HERE)))),
        Raised(siren(), GROUP, 0.0, 1, multi_hop=True),
    ]
    assert [decode(encode(packet)) for packet in packets] == packets


# Coming up and going down.


def test_a_node_that_stops_leaves_its_groups_and_starts_again_where_it_was() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(),)), "p", 0.1)
    stopped = machine.stop(0.5)
    assert [type(effect).__name__ for effect in stopped] == ["LeaveGroup", "CancelTimer"]
    assert machine.start(9.0) == [StartTimer("round", 10.0)]


def test_a_node_that_stops_forgets_what_it_gathered_and_cancels_its_timers() -> None:
    machine = node()
    machine.subscribe(WANTS_SIREN, 0.0)
    machine.hear(ProximityBeacon((advert(multi_hop=True),)), "r", 0.1)
    assert machine.stop(0.2) == [CancelTimer("onward"), LeaveGroup(GROUP), CancelTimer("round")]
    assert (machine.gathered, machine.stop(0.3), machine.wake("onward", 0.3)) == ({}, [], [])


def test_a_node_with_nothing_to_do_sets_no_timer() -> None:
    machine = node()
    assert machine.start(0.0) == []
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    machine.unannounce("Siren", 0.5)
    assert machine.wake("round", 1.0) == []


# Recovery and questions at their bounds.


def test_a_request_may_name_exactly_the_most_events() -> None:
    machine = node("p")
    machine.announce(Announcement(SIREN, AROUND), 0.0)
    for count, reason in (
        (MAX_REQUESTED, DropReason.NO_LONGER_HELD),
        (MAX_REQUESTED + 1, DropReason.REQUEST_TOO_LARGE),
    ):
        request = RecoveryRequest("p", "Siren", 0.0, tuple(range(1, count + 1)), 0.0, ("c",))
        assert machine.hear(request, "c", 1.0) == [Drop(reason)]


def test_a_recovered_event_goes_back_along_its_route_up_to_the_hop_limit() -> None:
    machine = node("r")
    recovered = Recovered(siren(), 0.0, 1, 1, ("c", "b"), hops=STEADY.hop_limit - 1)
    passed = msgspec.structs.replace(recovered, route=("c",), hops=STEADY.hop_limit)
    assert machine.hear(recovered, "p", 1.0) == [Send("b", passed)]
    too_far = msgspec.structs.replace(recovered, hops=STEADY.hop_limit)
    assert machine.hear(too_far, "p", 1.0) == [Drop(DropReason.HOP_LIMIT, "p:1")]


def test_a_consumer_asks_for_proximities_only_where_questions_are_allowed_and_none_is_listed() -> None:
    def asks(machine: Steam) -> bool:
        effects = machine.subscribe(WANTS_SIREN, 1.0)
        return any(isinstance(effect, StartTimer) and effect.name == "ask" for effect in effects)

    asking = replace(STEADY, questions=2)
    assert [asks(node()), asks(node(settings=asking))] == [False, True]
    knows = node(settings=asking)
    knows.hear(ProximityBeacon((advert(),)), "p", 0.5)
    assert not asks(knows)
