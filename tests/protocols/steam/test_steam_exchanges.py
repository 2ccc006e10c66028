"""STEAM, packet by packet: what a node does in each step, as a whole. Chance is replaced by one half."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import msgspec
import pytest

from earshot import Area, Circle, Event, EventType, Filter, Position, Proximity, Rectangle, Velocity
from earshot.errors import SettingsError
from earshot.filters import Subscription
from earshot.protocols.machine import (
    Announcement,
    Broadcast,
    Deliver,
    Drop,
    Effects,
    FixedLocation,
    JoinGroup,
    LeaveGroup,
    Location,
    Send,
    StartTimer,
)
from earshot.protocols.steam import machine as steam_machine
from earshot.protocols.steam.announcements import Announcements, EventCache, LocalAnnouncement
from earshot.protocols.steam.beacon_pace import Pace, is_nearest, pace
from earshot.protocols.steam.group_ids import description, group_id
from earshot.protocols.steam.machine import MAX_SUBJECTS, Steam
from earshot.protocols.steam.missed_events import Reception
from earshot.protocols.steam.packets import (
    MAX_DESCRIPTION,
    MAX_NAME,
    RECOVERING,
    Advert,
    ProximityBeacon,
    ProximityQuestion,
    Raised,
    Recovered,
    RecoveryRequest,
    SteamSettings,
)
from earshot.protocols.steam.relevant_proximities import Change, RelevantProximities, RelevantProximity
from earshot.protocols.tuning import Surroundings
from earshot.records import DropReason

STEADY = replace(RECOVERING, beacon_jitter=0.0)
RELAYING = SteamSettings(beacon_jitter=0.0)
HERE = Position(0.0, 0.0)
AROUND = Proximity(Circle(100), HERE)
WIDE = Proximity(Circle(500), HERE)
MOBILE = Proximity(Circle(100), HERE, mobile=True)
GROUP = group_id("Siren", AROUND)
WANTS = Subscription("s", "c", Filter.of_type("Siren"))
RECOVER = ("recover", "p", "Siren")
PLAIN = Pace(1, 0.0)


class Half(Random):
    """Chance that always answers one half."""

    def random(self) -> float:
        return 0.5


def node(name: str = "c", settings: SteamSettings = STEADY, location: Location | None = None) -> Steam:
    return Steam(name, settings, location or FixedLocation(HERE), Half())


def advert(**change: object) -> Advert:
    plain = Advert("p", "Siren", {}, {}, AROUND, HERE, 0.0, 1, False, 1, 0, 0.0)
    return msgspec.structs.replace(plain, **change)


def beacon(**change: object) -> ProximityBeacon:
    return ProximityBeacon((advert(**change),))


def siren(number: int = 1, **change: object) -> Event:
    event = Event("Siren", {}, f"p:{number}", "p", HERE, None, 1.0 + number / 10, AROUND.area())
    return msgspec.structs.replace(event, **change)


def raised(number: int, **change: object) -> Raised:
    return msgspec.structs.replace(Raised(siren(number), GROUP, 0.0, number, False), **change)


def member(settings: SteamSettings = STEADY, **change: object) -> Steam:
    """A consumer that heard the producer's beacon from r, and is a member of the group."""
    machine = node(settings=settings)
    machine.subscribe(WANTS, 0.0)
    machine.hear(beacon(**change), "r", 0.1)
    return machine


def entry(producer: str = "p", *, hops: int = 0, group: int = GROUP, **change: object) -> RelevantProximity:
    listed = advert(producer=producer, hops=hops, **change)
    return RelevantProximity(listed, EventType(listed.subject), group, producer, 0.0)


# A consumer that has missed events.


def test_a_gap_is_asked_for_along_the_beacons_route_until_it_is_filled() -> None:
    machine = member()
    assert machine.hear(raised(1), "r", 1.2) == [Deliver(siren(1), "s", 1)]
    assert machine.hear(raised(3), "r", 1.4) == [StartTimer(RECOVER, 1.4 + 0.25 + 0.125), Deliver(siren(3), "s", 1)]
    assert machine.hear(raised(5), "r", 1.6) == [Deliver(siren(5), "s", 1)], "a request is due already"
    request = RecoveryRequest("p", "Siren", 0.0, (2, 4), 0.0, ("c",))
    assert machine.wake(RECOVER, 1.8) == [Send("r", request), StartTimer(RECOVER, 2.8)]
    assert machine.hear(Recovered(siren(2), 0.0, 2, 2, (), hops=3), "r", 2.0) == [Deliver(siren(2), "s", 3)]
    assert machine.wake(RECOVER, 2.8) == [
        Send("r", msgspec.structs.replace(request, sequences=(4,))), StartTimer(RECOVER, 3.8),
    ]  # fmt: skip
    assert machine.hear(Recovered(siren(4), 0.0, 4, 4, (), hops=3), "r", 3.0) == [Deliver(siren(4), "s", 3)]
    assert machine.wake(RECOVER, 3.8) == []


def test_what_nobody_sends_again_is_given_up_after_three_requests() -> None:
    machine = member()
    machine.hear(raised(3), "r", 1.4)
    asked = [[type(effect) for effect in machine.wake(RECOVER, 2.0 + k)] for k in range(4)]
    assert asked == [[Send, StartTimer]] * 3 + [[Drop, Drop]]
    assert machine.wake(RECOVER, 7.0) == []


def test_events_before_the_oldest_that_the_producer_sends_are_no_longer_asked_for() -> None:
    machine = member()
    machine.hear(raised(5), "r", 1.6)
    assert machine.hear(Recovered(siren(3), 0.0, 3, 3, ()), "r", 2.0) == [Deliver(siren(3), "s", 1)]
    assert machine.wake(RECOVER, 2.1)[0] == Send("r", RecoveryRequest("p", "Siren", 0.0, (4,), 0.0, ("c",)))


def test_a_copy_of_an_event_that_came_meanwhile_is_no_longer_asked_for() -> None:
    machine = member()
    machine.hear(raised(1), "r", 1.2)
    machine.hear(raised(3), "r", 1.4)
    machine.hear(raised(2), "q", 1.5)
    assert machine.hear(Recovered(siren(2), 0.0, 2, 2, ()), "r", 1.6) == []
    assert machine.wake(RECOVER, 1.8) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"event": siren(2, content={"speed": "fast"})}, "content-differs-from-type"),
        ({"event": siren(2, content={"speed": 1.0}, lifespan_s=0.5)}, "expired"),
        ({"event": siren(2, content={"speed": 1.0}, area=AROUND.area(), time=0.05)}, None),
        ({"event": siren(2, content={"speed": 1.0}, id="x" * 257)}, "event-id-too-long"),
        ({"event": siren(2, content={"speed": 1.0}, type="News")}, "recovered-too-late"),
    ],
)
def test_a_recovered_event_that_does_not_fit_is_dropped(change: dict[str, Event], reason: str | None) -> None:
    machine = node()
    machine.subscribe(WANTS, 0.01)
    machine.hear(beacon(content={"speed": "float"}), "r", 0.1)
    event = change["event"]
    expected = [Drop(DropReason(reason), event.id[:MAX_NAME])] if reason else [Deliver(event, "s", 1)]
    assert machine.hear(Recovered(event, 0.0, 2, 2, ()), "r", 2.0) == expected
    again = machine.hear(Recovered(event, 0.0, 2, 2, ()), "r", 2.1)
    assert again == ([] if reason is None else expected), "only what was delivered is remembered"


def test_a_recovered_event_goes_to_nodes_that_were_inside_when_it_was_raised() -> None:
    machine = member(proximity=MOBILE)
    elsewhere = siren(2, area=Area(Circle(100), Position(100.5, 0.0)))
    assert machine.hear(Recovered(elsewhere, 0.0, 2, 2, ()), "r", 2.0) == [Drop("raised-before-arrival", "p:2")]
    there = siren(3, area=Area(Circle(100), Position(99.5, 0.0)))
    assert machine.hear(Recovered(there, 0.0, 3, 3, ()), "r", 2.0) == [Deliver(there, "s", 1)]


def test_a_consumer_that_left_meanwhile_asks_no_more_and_drops_what_comes() -> None:
    machine = member()
    machine.hear(raised(3), "r", 1.4)
    machine.unsubscribe("s", 1.5)
    assert machine.wake(RECOVER, 1.8) == []
    assert machine.hear(Recovered(siren(1), 0.0, 1, 1, ()), "r", 1.9) == [Drop("recovered-too-late", "p:1")]


# What beacons show to be missing.


def test_a_beacon_shows_the_member_which_events_it_missed() -> None:
    machine = member()
    assert machine.hear(beacon(beacon=2, latest=2, raised_at=1.0), "r", 1.1) == [StartTimer(RECOVER, 1.1 + 0.375)]
    request = RecoveryRequest("p", "Siren", 0.0, (1, 2), 0.0, ("c",))
    assert machine.wake(RECOVER, 1.5) == [Send("r", request), StartTimer(RECOVER, 2.5)]


def test_a_newcomer_asks_for_what_was_raised_since_it_subscribed_without_waiting() -> None:
    machine = node()
    machine.subscribe(WANTS, 2.0)
    first = machine.hear(beacon(latest=3, oldest=2, raised_at=2.0), "r", 2.5)
    assert first == [JoinGroup(GROUP), StartTimer(RECOVER, 2.5 + 0.125)]
    assert machine.wake(RECOVER, 2.625)[0] == Send("r", RecoveryRequest("p", "Siren", 0.0, (2, 3), 2.0, ("c",)))


@pytest.mark.parametrize("raised_at", [1.9, 1.0])
def test_what_was_raised_before_the_subscription_is_not_missing(raised_at: float) -> None:
    machine = node()
    machine.subscribe(WANTS, 2.0)
    assert machine.hear(beacon(latest=3, raised_at=raised_at), "r", 2.5) == [JoinGroup(GROUP)]


class Course:
    """A location that jumps from 150 m to 50 m at 10 s."""

    def position(self, time: float) -> Position:
        return Position(50.0 if time >= 10.0 else 150.0, 0.0)

    def velocity(self, time: float) -> Velocity:
        return Velocity(0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "since"),
    [
        ({}, 10.0),
        ({"proximity": None}, 5.0),
        ({"proximity": MOBILE}, 5.0),
        ({"proximity": MOBILE, "at": Position(200.0, 0.0), "margin_m": 60.0}, 20.0),
        ({"proximity": Proximity(Circle(200), HERE)}, 5.0),
    ],
)
def test_events_are_for_a_node_since_it_is_inside_and_subscribed(change: dict[str, object], since: float) -> None:
    """A mobile proximity's earlier places are not known: its consumer is taken to have been inside."""
    machine = node(location=Course())
    for name, wanted, begun in (("s", "Siren", 7.0), ("t", "Siren", 5.0), ("u", "News", 1.0)):
        machine.subscribe(Subscription(name, "c", Filter.of_type(wanted)), begun)
    listed = entry(**change)
    assert machine.recovery.inside_since(listed, 20.0) == pytest.approx(since, abs=0.001)
    assert machine.recovery.inside_since(listed, 200.0) == pytest.approx(200.0 if since == 20.0 else 140.0)


# The way to the producer and back.


def test_a_request_is_passed_on_to_the_neighbour_from_which_the_beacon_came() -> None:
    relay = node("m", replace(STEADY, hop_limit=3))
    relay.hear(beacon(), "r", 0.1)
    for route, effect in (
        (("c", "b"), Send("r", RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, ("c", "b", "m")))),
        (("d", "c", "b"), Send("r", RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, ("d", "c", "b", "m")))),
        (("e", "d", "c", "b"), Drop(DropReason.REQUEST_MISROUTED)),
        (("c" * 256,), Send("r", RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, ("c" * 256, "m")))),
        (("c" * 257,), Drop(DropReason.REQUEST_TOO_LARGE)),
    ):
        assert relay.hear(RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, route), "b", 1.0) == [effect]


def producer(settings: SteamSettings = STEADY) -> Steam:
    """It raised an event at 1.1, 1.2, 1.3 and 1.4 s."""
    machine = node("p", settings)
    machine.announce(Announcement(EventType("Siren"), AROUND), 0.0)
    for number in (1, 2, 3, 4):
        machine.publish(siren(number), 1.0 + number / 10)
    return machine


def test_a_producer_sends_what_it_holds_back_along_the_route() -> None:
    def answers(request: RecoveryRequest, now: float = 2.0) -> Effects:
        return producer().hear(request, "r", now)

    wanted = RecoveryRequest("p", "Siren", 0.0, (4, 2, 3, 9), 1.25, ("c", "b", "r"))
    assert answers(wanted) == [
        Send("r", Recovered(siren(number), 0.0, number, 3, ("c", "b"))) for number in (3, 4)
    ]  # fmt: skip
    assert answers(msgspec.structs.replace(wanted, since=1.2))[0] == Send(
        "r", Recovered(siren(2), 0.0, 2, 2, ("c", "b"))
    )
    assert answers(msgspec.structs.replace(wanted, since=1.45)) == [Drop("no-longer-held")]
    assert answers(msgspec.structs.replace(wanted, epoch=1.0)) == [Drop("no-longer-announced")]
    late = answers(wanted, 61.35)
    assert late == [Send("r", Recovered(siren(4), 0.0, 4, 4, ("c", "b")))], "the third has expired"


def test_a_consumer_gets_one_answer_in_each_half_period() -> None:
    machine = producer(replace(STEADY, beacon_interval_s=3.0))
    request = RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, ("c",))
    other = msgspec.structs.replace(request, route=("d",))
    counts = [len(machine.hear(request, "c", now)) for now in (3.0, 4.4, 4.5, 5.9, 6.0)]
    assert (counts, len(machine.hear(other, "d", 6.0))) == ([1, 0, 1, 0, 1], 1)


def test_a_broken_route_is_counted() -> None:
    machine = node()
    request = RecoveryRequest("p", "Siren", 0.0, (1,), 0.0, ("c",))
    assert machine.unreachable(request, "r", 1.0) == [Drop("route-to-producer-broken")]
    assert machine.unreachable(Recovered(siren(1), 0.0, 1, 1, ()), "r", 1.0) == [
        Drop("route-to-consumer-broken", "p:1")
    ]


# A producer's announcements.


def announced(proximity: Proximity | None, pace: Pace = PLAIN) -> LocalAnnouncement:
    reach_m = math.inf if proximity is None else proximity.shape.reach_m
    return LocalAnnouncement("p", EventType("Siren"), proximity, 7, 0.0, EventCache(4), reach_m, pace=pace)


@pytest.mark.parametrize(
    ("proximity", "x_m", "naval_x_m", "slack_m", "multi_hop", "out_of_reach"),
    [
        (AROUND, 0.0, 0.0, 100.0, False, False),
        (AROUND, 100.0, 0.0, 0.0, False, False),
        (AROUND, 100.5, 0.0, -0.5, True, False),
        (AROUND, 300.0, 0.0, -200.0, True, False),
        (AROUND, 300.5, 0.0, -200.5, True, True),
        (MOBILE, 300.5, 300.5, 100.0, False, False),
        (None, 300.5, 300.5, -math.inf, True, False),
    ],
)
def test_from_where_a_radio_reaches_a_proximity(
    proximity: Proximity | None, x_m: float, naval_x_m: float, slack_m: float, multi_hop: bool, out_of_reach: bool
) -> None:
    """The proximity's radius is 100 m and the radio's range 200 m."""
    one, at = announced(proximity), Position(x_m, 0.0)
    assert (one.naval(at).x_m, one.slack_m(at, 200.0), one.multi_hop(at, 200.0), one.out_of_reach(at, 200.0)) == (
        naval_x_m, slack_m, multi_hop, out_of_reach,
    )  # fmt: skip


@pytest.mark.parametrize(("margin_m", "multi_hop"), [(0.0, False), (100.0, False), (100.5, True)])
def test_a_beacon_is_passed_on_where_its_margin_lies_beyond_the_range(margin_m: float, multi_hop: bool) -> None:
    assert announced(AROUND, Pace(2, margin_m)).advert(HERE, STEADY).multi_hop is multi_hop


def test_a_cache_forgets_what_has_expired_and_nothing_else() -> None:
    cache = EventCache(9)
    for number in (1, 2, 3, 4):
        cache.add(siren(number, time=float(number)))
    cache.forget_expired(2.0, 5.0)
    assert (cache.oldest, [number for number, _ in cache.held(range(9), 0.0)]) == (3, [3, 4])
    cache.forget_expired(2.0, 9.0)
    assert (cache.oldest, cache.latest, cache.held(range(9), 0.0)) == (5, 4, [])


def test_a_round_forgets_expired_events_so_that_beacons_do_not_offer_them() -> None:
    machine = producer()
    [effect, _] = machine.wake("round", 61.25)
    assert effect == Broadcast(beacon(beacon=2, oldest=3, latest=4, raised_at=1.4))


def test_several_announcements_of_a_subject_have_epochs_of_their_own() -> None:
    known = Announcements("p", replace(STEADY, announcement_limit=2))
    found = {
        name: known.add(Announcement(EventType("Siren"), AROUND, name), HERE, 5.0).epoch for name in ("a", "b", "a")
    }
    assert found == {"a": 5.0, "b": math.nextafter(5.0, math.inf)}
    assert list(known.by_name) == ["Siren#a", "Siren#b"]
    assert known.of(("p#b", "Siren")) is known.by_name["Siren#b"]
    assert (known.of(("p", "Siren")), known.of(("p#b", "News")), known.type_of("News")) == (None, None, None)
    known.remove("Siren#a")
    assert known.type_of("Siren") == EventType("Siren")
    known.remove("Siren#b")
    assert known.type_of("Siren") is None
    known.add(Announcement(EventType("Siren", {"speed": float}), AROUND), HERE, 6.0)


def test_an_event_is_raised_with_the_area_of_its_announcement() -> None:
    machine = node("p")
    machine.announce(Announcement(EventType("Siren"), AROUND), 0.0)
    for area in (None, Area(Circle(9), HERE), AROUND.area()):
        [effect] = machine.publish(siren(1, area=area), 0.5)
        assert isinstance(effect, Broadcast)
        assert isinstance(effect.packet, Raised)
        assert effect.packet.event == siren(1)


# What a node lists.


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"producer": "p" * MAX_NAME}, None),
        ({"producer": "p" * (MAX_NAME + 1)}, "announcement-incomplete"),
        ({"raised_at": math.inf}, "announcement-impossible-numbers"),
        ({"at": Position(0.0, math.nan)}, "announcement-impossible-numbers"),
        ({"interval_s": math.inf}, "announcement-impossible-numbers"),
        ({"interval_s": 0.0}, "announcement-impossible-numbers"),
        ({"interval_s": 0.1}, None),
        ({"margin_m": math.inf}, "announcement-impossible-numbers"),
        ({"margin_m": -0.1}, "announcement-impossible-numbers"),
    ],
)
def test_a_node_lists_only_what_can_be(change: dict[str, object], fault: str | None) -> None:
    assert advert(**change).fault() == fault


def test_a_description_has_exactly_the_greatest_length() -> None:
    room = MAX_DESCRIPTION - len(description("Siren", AROUND))
    for length, fault in ((room, None), (room + 1, "announcement-too-long")):
        names = {"content": {"a": "b" * (length - 10)}, "attributes": {"c" * 4: "d" * 5}}
        assert advert(**names).fault() == fault


@pytest.mark.parametrize(
    ("proximity", "margin_m", "x_m", "contains", "is_near"),
    [
        (AROUND, 0.0, 100.0, True, True),
        (AROUND, 0.0, 100.5, False, False),
        (AROUND, 20.0, 120.0, False, True),
        (AROUND, 20.0, 120.5, False, False),
        (Proximity(Rectangle(20.0, 200.0), HERE), 0.0, 50.0, False, False),
        (Proximity(Rectangle(20.0, 200.0), HERE), 1.0, 50.0, False, True),
        (None, 0.0, 1e9, True, True),
    ],
)
def test_a_proximity_is_near_inside_and_in_its_margin(
    proximity: Proximity | None, margin_m: float, x_m: float, contains: bool, is_near: bool
) -> None:
    one, at = advert(proximity=proximity, margin_m=margin_m), Position(x_m, 0.0)
    assert (one.contains(at), one.is_near(at)) == (contains, is_near)


def test_a_silence_must_last_longer_than_the_longest_period() -> None:
    with pytest.raises(SettingsError, match=r"longer than a beacon's period of up to 1\.1 s"):
        SteamSettings(expiry_s=SteamSettings().longest_round_s)
    assert [SteamSettings(beacon_stretch=stretch).stretches_beacons for stretch in (1.0, 1.5)] == [False, True]


@pytest.mark.parametrize(
    ("listed", "others", "nearest"),
    [
        (entry("p", hops=2), [], True),
        (entry("p", hops=2), [entry("q", hops=1)], False),
        (entry("p", hops=2), [entry("q", hops=2)], True),
        (entry("q", hops=2), [entry("p", hops=2)], False),
        (entry("q", hops=2), [entry("p", hops=3)], True),
        (entry("p", hops=2), [entry("q", hops=1, proximity=MOBILE)], True),
        (entry("p", hops=2, proximity=MOBILE), [entry("q", hops=1)], True),
        (entry("p", hops=2, proximity=None), [entry("q", hops=1, proximity=None)], False),
    ],
)
def test_of_a_group_the_producer_with_the_fewest_hops_is_nearest_then_the_first_by_name(
    listed: RelevantProximity, others: list[RelevantProximity], nearest: bool
) -> None:
    assert is_nearest(listed, [listed, *others]) is nearest


def test_an_event_belongs_to_the_announcement_of_its_node_type_and_time() -> None:
    listed = RelevantProximities(9, 9)
    for name, epoch in (("p", 1.0), ("p#a", 2.0), ("q#a", 3.0)):
        listed.add(entry(name, epoch=epoch))
    assert [listed.key_of(siren(), epoch)[0] for epoch in (1.0, 2.0, 3.0)] == ["p", "p#a", "p"]
    assert listed.key_of(siren(source="q"), 3.0) == ("q#a", "Siren")
    assert listed.key_of(siren(source="q", type="News"), 3.0) == ("q", "News")


def test_a_mobile_proximity_was_where_the_event_says_or_else_where_the_last_beacon_says() -> None:
    one = entry(proximity=MOBILE, at=Position(300.0, 0.0))
    event, without = siren(area=Area(Circle(100), HERE)), siren(area=None)
    assert [one.was_raised_around(event, Position(x_m, 0.0)) for x_m in (50.0, 250.0)] == [True, False]
    assert [one.was_raised_around(without, Position(x_m, 0.0)) for x_m in (50.0, 250.0)] == [False, True]
    assert [(entry(proximity=kind).mobile, entry(proximity=kind).stationary) for kind in (None, AROUND, MOBILE)] == [
        (False, False), (False, True), (True, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("latest", "oldest", "missing"),
    [(5, 0, [1, 4, 5]), (5, 2, [4, 5]), (8, 0, [6, 7, 8]), (8, 8, [8]), (3, 0, [1]), (3, 2, []), (6, 5, [5, 6])],
)
def test_of_the_missing_events_the_newest_that_are_held_are_wanted(
    latest: int, oldest: int, missing: list[int]
) -> None:
    """Heard were 2 and 3 of at most three missing events."""
    reception = Reception(0.0, highest=0, limit=3)
    assert (reception.received(2), reception.received(3)) == (True, True)
    assert reception.raised_up_to(latest, oldest) is bool(missing)
    assert (sorted(reception.missing), reception.highest) == (missing, max(latest, 3))


def test_a_consumer_that_left_for_more_than_half_a_period_has_missed_nothing_before() -> None:
    class Gone(Course):
        def position(self, time: float) -> Position:
            return Position(150.0 if 10.05 < time < 10.65 else 50.0, 0.0)

    machine = node(location=Gone())
    machine.subscribe(WANTS, 5.0)
    assert machine.recovery.inside_since(entry(), 12.0) == pytest.approx(10.65, abs=0.001)


def test_a_producer_that_lost_a_place_in_the_list_gets_one_again_and_no_more() -> None:
    listed = RelevantProximities(9, 2)
    for subject in ("One", "Two"):
        listed.add(entry(subject=subject))
    listed.change(listed.by_key["p", "One"], Change.LOST)
    listed.add(entry(subject="Three"))
    assert listed.no_room_for("p", wanted=True) == "too-many-announcements"
    for subject in ("Two", "Three"):
        listed.change(listed.by_key["p", subject], Change.LOST)
    assert (listed.no_room_for("p", wanted=True), len(listed)) == (None, 0)


def test_a_margin_covers_the_longest_round_between_two_beacons() -> None:
    wide = pace(300.0, -100.0, 0.0, 30, 0.0, SteamSettings(beacon_jitter=0.5, beacon_interval_s=2.0, expiry_s=9.0))
    assert wide == Pace(2, 15.0 * 2 * 2.0 * 1.5)


# Listing, round by round.


def test_place_is_taken_as_of_an_update_at_a_random_phase() -> None:
    seldom = Steam("c", replace(STEADY, location_interval_s=4.0), Course(), Half())
    found = [seldom.location.position(time).x_m for time in (9.9, 10.0, 13.9, 14.0)]
    assert found == [150.0, 50.0, 50.0, 50.0], "it updates at 2, 6, 10 s"
    later = Steam("c", replace(STEADY, location_interval_s=6.0), Course(), Half())
    assert [later.location.position(time).x_m for time in (10.0, 14.9, 15.0)] == [150.0, 150.0, 50.0]


def test_a_round_removes_what_was_silent_for_too_long_and_what_was_left() -> None:
    machine = member()
    assert machine.wake("round", 3.6) == [StartTimer("round", 4.6)], "it expires after 3.5 s"
    assert machine.wake("round", 3.75) == [LeaveGroup(GROUP), StartTimer("round", 4.75)]
    gone = node(location=Course())
    gone.subscribe(WANTS, 0.0)
    gone.hear(beacon(at=Position(150.0, 0.0), proximity=Proximity(Circle(20), Position(150.0, 0.0))), "r", 9.0)
    assert len(gone.relevant) == 1
    gone.wake("round", 9.9)
    assert len(gone.relevant) == 1
    gone.wake("round", 10.0)
    assert len(gone.relevant) == 0, "at 10 s it has left the place"


def test_a_kept_stationary_proximity_does_not_expire_but_others_do() -> None:
    keeping = replace(STEADY, keep_stationary=True)
    for proximity, kept in ((AROUND, 1), (MOBILE, 0), (None, 0)):
        machine = member(keeping, proximity=proximity)
        machine.wake("round", 99.0)
        assert len(machine.relevant) == kept


def test_a_producer_lists_its_own_proximity_however_long_it_is_silent() -> None:
    machine = node("p", replace(RELAYING, beacon_stretch=8.0))
    machine.announce(Announcement(EventType("Siren"), None), 0.0)
    machine.wake("round", 99.0)
    assert list(machine.relevant.by_key) == [("p", "Siren")]
    assert machine.unannounce("Siren", 99.5) == []
    assert machine.relevant.by_key == {}


def test_a_node_that_starts_again_has_nothing_on_its_way() -> None:
    machine = member(RELAYING, proximity=WIDE, multi_hop=True)
    machine.hear(raised(1, event=siren(area=WIDE.area()), group=group_id("Siren", WIDE), multi_hop=True), "r", 1.2)
    machine.hear(raised(3, event=siren(3, area=WIDE.area()), group=group_id("Siren", WIDE)), "r", 1.4)
    assert (bool(machine.gathered), bool(machine.forwarding), bool(machine.recovery.recovering)) == (True, True, True)
    assert machine.start(9.0) == [StartTimer("round", 10.0)]
    assert (machine.gathered, machine.forwarding, machine.recovery.recovering) == ({}, {}, set())


def test_periods_vary_by_the_jitter() -> None:
    class First(Half):
        def random(self) -> float:
            return 0.0

    settings = replace(STEADY, beacon_jitter=0.25, beacon_interval_s=2.0)
    found = [
        Steam("p", settings, FixedLocation(HERE), chance).announce(Announcement(EventType("Siren"), AROUND), 5.0)[0]
        for chance in (Half(), First())
    ]
    assert found == [StartTimer("round", 7.0), StartTimer("round", 6.5)]


def test_a_mobile_producer_beacons_the_more_often_the_faster_it_is() -> None:
    def rounds(proximity: Proximity, speed_m_s: float) -> int:
        machine = Steam("p", RELAYING, FixedLocation(HERE, Velocity(speed_m_s, 0.0)), Half())
        machine.announce(Announcement(EventType("Siren"), proximity), 0.0)
        for now in range(1, 40):
            machine.wake("round", float(now))
        return machine.announcements.by_name["Siren"].pace.rounds

    wide = Proximity(Circle(600), HERE, mobile=True)
    assert [rounds(wide, speed) for speed in (0.0, 15.0, 60.0)] == [10, 5, 2]
    assert rounds(Proximity(Circle(600), HERE), 60.0) == 10


# Beacons and events that are passed on.


def test_a_beacon_is_passed_on_with_one_more_hop_after_it_was_gathered() -> None:
    machine = node(settings=replace(STEADY, beacon_gather_s=0.4))
    heard = ProximityBeacon(
        (advert(multi_hop=True, hops=2), advert(producer="q", multi_hop=True), advert(producer="z"))
    )
    assert machine.hear(heard, "r", 1.0) == [StartTimer("round", 2.0), StartTimer("onward", 1.0 + 0.3)]
    passed = ProximityBeacon((advert(multi_hop=True, hops=3), advert(producer="q", multi_hop=True, hops=1)))
    assert machine.wake("onward", 1.3) == [Broadcast(passed)]
    assert machine.wake("onward", 1.4) == []


def test_a_beacon_that_was_just_passed_on_is_passed_on_again_after_half_a_period() -> None:
    machine = node(settings=replace(STEADY, beacon_gather_s=0.0, beacon_interval_s=2.0, expiry_s=9.0))
    counts = []
    for number, now in enumerate((1.0, 1.9, 2.0, 2.9, 3.0)):
        effects = machine.hear(beacon(beacon=number, multi_hop=True), "r", now)
        counts.append(sum(isinstance(effect, Broadcast) for effect in effects))
    assert counts == [1, 0, 1, 0, 1]


def test_copies_of_an_earlier_beacon_do_not_count() -> None:
    machine = node()
    machine.hear(beacon(beacon=5, multi_hop=True), "r", 1.0)
    for _ in range(5):
        machine.hear(beacon(beacon=4, multi_hop=True), "q", 1.01)
    assert machine.wake("onward", 1.1) == [Broadcast(beacon(beacon=5, multi_hop=True, hops=1))]


def test_a_beacon_is_passed_on_up_to_the_hop_limit() -> None:
    for hops, expected in ((1, []), (2, [Drop("hop-limit")])):
        machine = node(settings=replace(STEADY, hop_limit=3, beacon_gather_s=0.0))
        effects = machine.hear(beacon(multi_hop=True, hops=hops), "r", 1.0)
        assert [effect for effect in effects if isinstance(effect, Drop)] == expected
        assert any(isinstance(effect, Broadcast) for effect in effects) is (hops == 1)


def test_a_relay_waits_and_then_sends_to_all_in_range() -> None:
    machine = node("m", RELAYING)
    machine.hear(beacon(proximity=WIDE, multi_hop=True), "r", 0.1)
    far = raised(1, event=siren(area=WIDE.area()), group=group_id("Siren", WIDE), multi_hop=True, hops=2)
    assert machine.hear(far, "r", 1.2) == [StartTimer(("forward", "p:1"), 1.2 + 0.03)]
    assert machine.wake(("forward", "p:1"), 1.23) == [Broadcast(msgspec.structs.replace(far, hops=3), None)]
    assert machine.wake(("forward", "p:1"), 1.24) == []


def test_where_too_many_events_wait_the_next_is_passed_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steam_machine, "MAX_FORWARDING", 2)
    machine = node("m", RELAYING)
    machine.hear(beacon(proximity=WIDE, multi_hop=True), "r", 0.1)
    kinds = []
    for number in (1, 2, 3):
        far = raised(number, event=siren(number, area=WIDE.area()), group=group_id("Siren", WIDE), multi_hop=True)
        kinds += [type(effect) for effect in machine.hear(far, "r", 2.0)]
    assert kinds == [StartTimer, StartTimer, Broadcast]


def test_a_node_ignores_what_it_does_not_want_unless_it_is_a_member_of_its_group() -> None:
    """With relays an event is sent to all in range: only who wants the type counts it as dropped."""
    stranger = raised(1, group=GROUP + 1)
    long = raised(1, group=GROUP + 1, event=siren(id="x" * 300))
    for settings, wanted, expected in (
        (STEADY, False, [Drop("not-a-group-member", "p:1")]),
        (RELAYING, False, []),
        (RELAYING, True, [Drop("not-a-group-member", "p:1")]),
    ):
        machine = node(settings=settings)
        if wanted:
            machine.subscribe(WANTS, 0.0)
        assert machine.hear(stranger, "r", 1.2) == expected
    assert node().hear(long, "r", 1.2) == [Drop("not-a-group-member", "x" * 256)]


@pytest.mark.parametrize(
    ("source", "epoch", "listed"),
    [("p", 1.0, "p"), ("p", 2.0, "p#a"), ("p", 9.0, "p"), ("q", 3.0, "q#a"), ("q", 9.0, "p"), ("z", 9.0, "p")],
)
def test_an_event_is_judged_by_its_own_announcement_or_by_another_of_its_type(
    source: str, epoch: float, listed: str
) -> None:
    machine = node()
    machine.subscribe(WANTS, 0.0)
    listing = (("p", 1.0), ("p#a", 2.0), ("q#a", 3.0))
    machine.hear(ProximityBeacon(tuple(advert(producer=name, epoch=time) for name, time in listing)), "r", 0.1)
    found = machine.entry_of(raised(1, event=siren(source=source), epoch=epoch))
    assert found is not None
    assert found.advert.producer == listed
    assert machine.entry_of(raised(1, event=siren(type="News"))) is None
    assert machine.effects() == [Drop("group-id-collision", "p:1")]


# Asking for proximities.

ASKING = replace(STEADY, questions=3, beacon_interval_s=2.0, expiry_s=9.0)


def test_a_consumer_asks_again_after_twice_the_time_as_often_as_allowed() -> None:
    machine = node(settings=ASKING)
    assert machine.subscribe(WANTS, 1.0) == [StartTimer("round", 3.0), StartTimer("ask", 2.0)]
    question = Broadcast(ProximityQuestion(HERE, ("Siren",)))
    assert machine.wake("ask", 2.0) == [question, StartTimer("ask", 6.0)]
    assert machine.wake("ask", 6.0) == [question, StartTimer("ask", 14.0)]
    assert machine.wake("ask", 14.0) == [question]
    again = machine.subscribe(Subscription("t", "c", Filter.of_type("News")), 20.0)
    assert again == [StartTimer("ask", 21.0)]
    assert machine.wake("ask", 21.0)[0] == Broadcast(ProximityQuestion(HERE, ("News", "Siren")))
    machine.hear(beacon(), "r", 21.1)
    assert machine.wake("ask", 25.0)[0] == Broadcast(ProximityQuestion(HERE, ("News",)))


def test_a_question_names_at_most_so_many_types_and_none_if_any_is_wanted() -> None:
    machine = node(settings=ASKING)
    for number in range(MAX_SUBJECTS + 1):
        machine.subscribe(Subscription(f"s{number}", "c", Filter.of_type(f"Type {number:03}")), 1.0)
    assert machine.unknown_subjects() == tuple(f"Type {number:03}" for number in range(MAX_SUBJECTS))
    machine.subscribe(Subscription("any", "c", Filter.where("speed > 1")), 1.0)
    assert machine.unknown_subjects() == ()
    known = node(settings=ASKING)
    assert known.unknown_subjects() is None


def test_a_question_is_answered_for_its_place_and_its_types_once_a_period() -> None:
    settings = replace(STEADY, beacon_interval_s=2.0, expiry_s=99.0, beacon_gather_s=0.4)
    machine = node("m", settings)
    elsewhere = Proximity(Circle(100), Position(90.0, 0.0))
    machine.hear(ProximityBeacon((advert(), advert(producer="q", subject="News", proximity=elsewhere))), "r", 0.1)

    def answered(at: Position, subjects: tuple[str, ...], now: float) -> list[str]:
        machine.hear(ProximityQuestion(at, subjects), "c", now)
        sent = [effect.packet for effect in machine.wake("onward", now + 0.3) if isinstance(effect, Broadcast)]
        return [one.subject for packet in sent if isinstance(packet, ProximityBeacon) for one in packet.adverts]

    assert answered(HERE, ("Siren",), 1.0) == ["Siren"]
    assert answered(HERE, (), 2.99) == ["News"]
    assert answered(HERE, (), 3.0) == ["Siren"]
    assert answered(Position(150.0, 0.0), (), 5.0) == ["News"]
    assert answered(HERE, ("Weather",), 9.0) == []
    assert answered(HERE, (*(["Weather"] * MAX_SUBJECTS), "Siren"), 9.0) == []
    assert machine.hear(ProximityQuestion(HERE, ("Siren",)), "c", 20.0) == [StartTimer("onward", 20.3)]
    machine.hear(beacon(), "b", 20.1)
    assert machine.wake("onward", 20.3) == [], "a neighbour has answered first"


def test_a_question_is_answered_with_one_beacon_at_most() -> None:
    machine = node("m", replace(STEADY, adverts_per_beacon=2))
    machine.hear(ProximityBeacon(tuple(advert(producer=name, subject=f"Type {name}") for name in "pqrs")), "r", 0.1)
    machine.hear(ProximityQuestion(HERE, ()), "c", 2.0)
    assert [key[0] for key in machine.gathered] == ["p", "q"]


# What only membership decides.


def test_a_subscription_with_the_same_name_replaces_the_one_before() -> None:
    machine = member()
    assert machine.subscribe(Subscription("s", "c", Filter.of_type("News")), 1.0) == [LeaveGroup(GROUP)]
    assert machine.hear(raised(1), "r", 1.2) == [Drop("not-a-group-member", "p:1")]


def test_a_group_is_left_with_the_last_subscription_that_wants_it() -> None:
    machine = member()
    machine.subscribe(Subscription("t", "c", Filter.of_type("Siren")), 0.2)
    assert machine.unsubscribe("s", 0.3) == []
    assert machine.unsubscribe("t", 0.4) == [LeaveGroup(GROUP)]


def test_a_later_subscriber_does_not_ask_for_what_was_raised_before() -> None:
    machine = node()
    machine.hear(beacon(latest=4, raised_at=0.05), "r", 0.1)
    assert machine.subscribe(WANTS, 0.2) == [JoinGroup(GROUP)]
    assert machine.hear(beacon(beacon=2, latest=4, raised_at=0.3), "r", 1.1) == []
    assert machine.hear(beacon(beacon=3, latest=5, raised_at=1.5), "r", 2.1) == [StartTimer(RECOVER, 2.1 + 0.375)]


def test_a_node_that_is_inside_now_passes_on_what_it_does_not_deliver() -> None:
    """It came in after the event was raised. An event of its past place is delivered and not passed on."""
    machine = Steam("c", STEADY, Course(), Half())
    machine.subscribe(WANTS, 0.0)
    machine.hear(beacon(), "r", 10.0)
    late = raised(1, event=siren(time=9.0), multi_hop=True)
    assert machine.hear(late, "r", 10.5) == [Broadcast(msgspec.structs.replace(late, hops=2), GROUP)]


def test_own_consumers_receive_inside_the_proximity_only() -> None:
    own = replace(STEADY, deliver_own=True)
    for proximity, x_m, receives in ((AROUND, 100.0, True), (AROUND, 150.0, False), (None, 150.0, True)):
        machine = Steam("p", own, FixedLocation(Position(x_m, 0.0)), Half())
        machine.announce(Announcement(EventType("Siren"), proximity), 0.0)
        machine.subscribe(WANTS, 0.1)
        effects = machine.publish(siren(1), 1.1)
        assert any(isinstance(effect, Deliver) for effect in effects) is receives


@pytest.mark.parametrize(
    ("range_m", "speed_m_s", "period_s"),
    [(200.0, 5.0, 2.0), (200.0, 50.0, 0.5), (200.0, 0.0, 4.0), (400.0, 10.0, 2.0), (10.0, 0.05, 4.0)],
)
def test_a_node_crosses_a_twentieth_of_the_range_in_a_period(range_m: float, speed_m_s: float, period_s: float) -> None:
    around = Surroundings(
        nodes=100, present=50.0, width_m=900.0, height_m=900.0, range_m=range_m, mean_neighbours=9.0,
        median_speed_m_s=speed_m_s, link_lifetime_s=9.0, events_per_s=9.0, packet_airtime_s=0.002,
    )  # fmt: skip
    copies, period, jitter = Steam.tuning(around)
    assert (period.name, period.first, period.follows) == ("beacon_interval_s", period_s, {"expiry_s": 3.5})
    assert jitter.first == 0.04, "ten nodes take turns of 2 ms, and leave half of the channel idle"
    assert [(one.name, one.low, one.high) for one in (copies, period, jitter)] == [
        ("forward_copies", 1, 8), ("beacon_interval_s", 0.25, 8.0), ("forward_jitter_s", 0.01, 0.5),
    ]  # fmt: skip
