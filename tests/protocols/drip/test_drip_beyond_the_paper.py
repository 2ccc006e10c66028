"""What DRIP's defaults do beyond the paper: regions' interests, copies for several regions, distance in hops."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position
from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.packets import (
    PAPER,
    DripSettings,
    InRegion,
    PlacedAnnouncement,
    RegionCopy,
    RegionInterest,
)
from earshot.protocols.drip.region_copies import RegionCopies
from earshot.protocols.drip.region_interests import (
    EVERYWHERE,
    Interest,
    Interests,
    box_around,
    is_near,
    summary_of,
)
from earshot.protocols.drip.regions import Regions
from earshot.protocols.machine import FixedLocation, Send, StartTimer
from earshot.protocols.tabletop import Tabletop
from earshot.simulation import load_scenario, run, summarise

SETTINGS = DripSettings(brokers=4, nearest=2, copies=1, jitter_s=0.0)
LINE = [f"n{i:02d}" for i in range(12)]
ABLE = {"n01": 9.0, "n04": 8.0, "n07": 7.0, "n10": 6.0}
"On the line of twelve, 100 m apart, four regions of three."


def line(settings: DripSettings = SETTINGS) -> Tabletop:
    machines = []
    for number, name in enumerate(LINE):
        made = Drip(name, settings, FixedLocation(Position(100.0 * number, 0.0)), Random(name))
        made.ability = ABLE.get(name, 1.0)
        machines.append(made)
    table = Tabletop(machines, list(pairwise(LINE)))
    table.run(settings.bootstrap_s + 3 * settings.announce_interval_s)
    return table


def publish(table: Tabletop, node: str, id: str, area: Area | None = None, value: int = 50) -> None:
    stamp: dict[str, Any] = {"id": id, "source": node, "time": table.now}
    table.do(node, "publish", replace(Event("Number", {"value": value}).stamped(**stamp), area=area))


def subscribe(table: Tabletop, node: str, text: str = "Number: value > 10") -> None:
    table.do(node, "subscribe", Subscription(f"{node}/1", node, Filter.parse(text)))


def announcement(broker: str, hops: int, x_m: int, sequence: int = 1, sent_at: float = 0.0) -> PlacedAnnouncement:
    return PlacedAnnouncement(broker, sequence, sent_at, hops, broker, 0, (1000, 0), (x_m, 0, 0, 0))


# The channel.


class BusyChannel:
    """A channel of which this share is busy."""

    def __init__(self, share: float) -> None:
        self.share = share

    def busy_share(self, now: float) -> float:
        return self.share

    def airtime_s(self, size_bytes: int) -> float:
        return 0.001


@pytest.mark.parametrize(("busy", "expected_s"), [(0.0, 3.0), (0.5, 3.0), (0.6, 3.75), (0.9, 4.5), (1.0, 4.5)])
def test_a_busy_channel_slows_announcements(busy: float, expected_s: float) -> None:
    node = Drip("b", DripSettings(), FixedLocation(), Random(1), BusyChannel(busy))
    node.announce_broker(10.0)
    assert node.effects()[-1] == StartTimer("announce", 10.0 + expected_s)


def test_the_papers_announcements_do_not_ask_the_channel() -> None:
    node = Drip("b", PAPER, FixedLocation(), Random(1), BusyChannel(0.9))
    assert node.stretched(2.0, 0.0) == 2.0


# Interests.

TEXTS = [
    "Number: value > 10",
    "Number: value < 5",
    "Siren: true",
    "Siren: lane = 2",
    "/cd[price > 3]",
    "value > 99",
]
texts = st.lists(st.sampled_from(TEXTS), max_size=6)
events = st.builds(
    lambda type, value: Event(type, {"value": value, "lane": value % 3}),
    st.sampled_from(["Number", "Siren", "Other"]),
    st.integers(0, 120),
)


@given(texts, st.integers(0, 3), events)
def test_a_summary_wants_whatever_one_of_its_filters_wants(filters: list[str], most: int, event: Event) -> None:
    wanted = any(Filter.parse(text).matches(event) for text in filters)
    assert not wanted or Interest(summary_of(filters, most)).wants(event)


def test_a_type_with_more_filters_than_allowed_is_wanted_whole() -> None:
    assert summary_of(["Number: value > 10", "Number: value < 5", "Siren: lane = 2"], 1) == (
        "Number: true",
        "Siren: lane = 2",
    )
    assert summary_of(["value > 99"], 0) == ("true",)


places = st.builds(Position, st.floats(-2000, 2000), st.floats(-2000, 2000))


@given(st.lists(places, min_size=1, max_size=5), places, st.floats(1, 500))
def test_an_area_that_contains_a_subscriber_is_near_its_region(
    subscribers: list[Position], at: Position, radius_m: float
) -> None:
    event = replace(Event("Number"), area=Area(Circle(radius_m), at))
    inside = any(event.area is not None and event.area.contains(place) for place in subscribers)
    assert not inside or is_near(event, box_around(subscribers, 0.0), 0.0)


def test_a_region_with_an_unknown_place_is_everywhere() -> None:
    assert box_around([Position(1.0, 1.0), None], 0.0) == EVERYWHERE


def test_more_is_shared_at_once_and_less_after_the_renewal_time() -> None:
    interests = Interests(SETTINGS, version=1)
    box = (0.0, 0.0, 100.0, 100.0)
    interests.update(Interest(("Number: true",), box), now=0.0)
    assert interests.version == 2
    interests.update(Interest(("Number: value > 3",), box), now=3.0)
    assert interests.version == 2
    interests.update(Interest(("Number: true", "Siren: true"), box), now=6.0)
    assert (interests.version, interests.own.filters) == (3, ("Number: true", "Siren: true"))
    interests.update(Interest(("Siren: true",), box), now=SETTINGS.interest_renew_s + 6.0)
    assert (interests.version, interests.own.filters) == (4, ("Siren: true",))


def test_an_interest_is_offered_until_it_is_confirmed_each_time_after_a_longer_wait() -> None:
    interests = Interests(SETTINGS, version=1)
    assert interests.due_to(["a", "b"], now=0.0) == "a"
    interests.offer_to("a", now=0.0)
    assert interests.due_to(["a"], now=0.5) == ""
    assert interests.due_to(["a"], now=1.0) == "a"
    interests.offer_to("a", now=1.0)
    assert interests.due_to(["a"], now=2.5) == ""
    interests.on_confirmed("a", 1)
    assert interests.due_to(["a"], now=100.0) == ""


def test_a_region_that_is_not_known_yet_may_want_everything() -> None:
    interests = Interests(SETTINGS, version=1)
    interests.learn(RegionInterest("a", "me", "", 1, 1, ("Siren: true",), EVERYWHERE))
    assert interests.wanting(Event("Number"), ["a", "b"]) == ["b"]


def test_an_older_interest_is_ignored() -> None:
    interests = Interests(SETTINGS, version=1)
    interests.learn(RegionInterest("a", "me", "", 1, 5, ("Siren: true",), EVERYWHERE))
    assert not interests.learn(RegionInterest("a", "me", "", 1, 4, (), EVERYWHERE))
    assert interests.others["a"].filters == ("Siren: true",)


# Copies.


def test_a_copy_divides_where_the_routes_do() -> None:
    copies = RegionCopies(SETTINGS)
    event = Event("Number").stamped(id="e1", source="s", time=0.0)
    routes = {"a": "left", "b": "right", "c": "left"}
    found = copies.divide(RegionCopy(event, 2, ("a", "b", "c")), routes.__getitem__, now=1.0)
    assert found == [Send("left", RegionCopy(event, 3, ("a", "c"))), Send("right", RegionCopy(event, 3, ("b",)))]


def test_a_copy_without_a_route_waits_for_one() -> None:
    copies = RegionCopies(SETTINGS)
    event = Event("Number").stamped(id="e1", source="s", time=0.0)
    routes = {"a": ""}
    copy = RegionCopy(event, 2, ("a",))
    assert copies.divide(copy, routes.__getitem__, now=1.0) == [StartTimer("stranded", 1.0 + SETTINGS.stranded_wait_s)]
    routes["a"] = "left"
    assert copies.try_again(routes.__getitem__, now=2.0) == [Send("left", RegionCopy(event, 3, ("a",)))]
    assert copies.try_again(routes.__getitem__, now=3.0) == []


def test_a_copy_that_comes_back_waits_instead_of_going_in_circles() -> None:
    copies = RegionCopies(SETTINGS)
    event = Event("Number").stamped(id="e1", source="s", time=0.0)
    copy = RegionCopy(event, 2, ("a",))
    routes = {"a": "left"}
    copies.divide(copy, routes.__getitem__, now=1.0)
    assert copies.divide(copy, routes.__getitem__, now=1.1) == [StartTimer("stranded", 1.1 + 1.0)]


# Routes.


def test_a_packet_goes_to_the_nearest_of_the_next_hops() -> None:
    regions = Regions("me", SETTINGS)
    for name, x_m in (("far", 150), ("near", 40)):
        regions.hear_neighbour(name, "b", 0.0)
        regions.hear_motion(name, (x_m, 0, 0, 0), 0.0)
        regions.hear(announcement("b", 2, x_m), name, 0.0)
    assert regions.nearest_hop("b", 1.0, (), Position(0.0, 0.0)) == "near"
    regions.lose_neighbour("near", ("b",))
    assert regions.nearest_hop("b", 1.0, (), Position(0.0, 0.0)) == "far"


def test_without_a_next_hop_a_packet_goes_to_a_neighbour_nearer_to_the_broker() -> None:
    regions = Regions("me", SETTINGS)
    for name, x_m in (("gone", 90), ("ahead", 60), ("behind", -100)):
        regions.hear_neighbour(name, "b", 0.0)
        regions.hear_motion(name, (x_m, 0, 0, 0), 0.0)
    regions.hear(announcement("b", 2, 90), "gone", 0.0)
    regions.lose_neighbour("gone", ("b",))
    assert regions.nearest_hop("b", 1.0, (), Position(0.0, 0.0)) == "ahead"


def test_a_detour_of_one_announcement_does_not_move_a_broker_far_away() -> None:
    regions = Regions("me", SETTINGS)
    regions.hear(announcement("b", 2, 0), "x", 0.0)
    regions.hear(announcement("b", 9, 0, sequence=2, sent_at=3.0), "x", 3.0)
    assert regions.brokers["b"].delay_s == pytest.approx(3 * SETTINGS.hop_delay_s)


# The whole.


def test_an_event_crosses_several_regions_to_a_distant_subscriber_at_once() -> None:
    table = line()
    subscribe(table, "n11")
    table.run(table.now + 4.0)
    publish(table, "n00", "e1")
    table.run(table.now + 0.5)
    assert table.delivered == [("n11", "e1", "n11/1")]


def test_an_event_is_not_flooded_where_its_area_does_not_reach() -> None:
    table = line()
    for node in ("n02", "n11"):
        subscribe(table, node)
    table.run(table.now + 8.0)
    before = len(table.sent)
    publish(table, "n00", "e1", Area(Circle(250.0), Position(0.0, 0.0)))
    table.run(table.now + 0.5)
    floods = {packet.region for _, packet in table.sent[before:] if isinstance(packet, InRegion)}
    assert floods == {drip.local_broker for drip in [table.machines["n02"]] if isinstance(drip, Drip)}
    assert table.delivered == [("n02", "e1", "n02/1")]


def test_a_hundred_nodes_of_the_city_share_a_channel() -> None:
    scenario = load_scenario("city").with_(
        {"duration_s": 40.0, "medium": {"kind": "contention", "range_m": 160.0, "bit_rate_bps": 2e6}}
    )
    ratio = summarise(scenario, run(scenario, "drip", seed=1)).delivery_ratio
    assert ratio is not None
    assert ratio >= 0.95
