"""Parts of GeoRendezvous by themselves: beacons, edges of faces, what a cell keeps, and what is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace as replace_packet

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import STILL, Position, Velocity
from earshot.protocols.georendezvous import rendezvous_table
from earshot.protocols.georendezvous.cell_hash_routing import (
    Beacon,
    CellHashRouting,
    CellSettings,
    Heading,
    RoutedPacket,
    Walk,
)
from earshot.protocols.georendezvous.cells import HOME, NEXT_EDGE, Cell, cells_apart, towards
from earshot.protocols.georendezvous.machine import (
    BURST_S,
    MOST_ARRIVALS,
    MOST_RENEWALS,
    AskingCell,
    GeoRendezvous,
)
from earshot.protocols.georendezvous.rendezvous_cell import Notifications, Notify, NotifyAround, Prune, Request
from earshot.protocols.georendezvous.rendezvous_table import Advertise, RendezvousTable, Subscribe, weight
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings
from earshot.protocols.georendezvous.shared_links import LinkBeacon, SharedLinks
from earshot.protocols.machine import Announcement, Broadcast, Deliver, Drop, Effect, Send, StartTimer
from earshot.protocols.tuning import Surroundings
from earshot.records import DropReason
from earshot.wire import Packet

SETTINGS = CellSettings(
    range_m=160.0, cell_side_m=100.0, beacon_interval_s=4.0, neighbour_lifespan_s=9.0, home_memory_s=30.0
)


def links(settings: CellSettings = SETTINGS, seed: int = 1) -> SharedLinks:
    routing = SharedLinks("me", settings, Random(seed))
    routing.start(Position(50.0, 50.0), 0.0)
    routing.listened()
    return routing


def test_the_next_edge_is_the_first_counter_clockwise_and_the_one_it_came_by_last() -> None:
    for edges, after in product(range(256), range(8)):
        order = [*range(after + 1, 8), *range(after + 1)]
        assert NEXT_EDGE[edges][after] == next((one for one in order if edges >> one & 1), HOME)


def test_beacons_come_with_the_interval_a_tenth_earlier_or_later() -> None:
    waits = []
    for seed in range(200):
        packet, timer = links(seed=seed).on_beacon_timer(10.0)
        assert isinstance(packet, Broadcast)
        assert isinstance(packet.packet, Beacon)
        assert isinstance(timer, StartTimer)
        waits.append(timer.at - 10.0)
    assert 3.6 <= min(waits) < 3.62
    assert 4.38 < max(waits) <= 4.4


def test_a_neighbour_and_a_home_perimeter_are_forgotten_when_they_are_too_old() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((1, 0), False, 3), "n", 1.0)
    routing.homes[(5, 5)] = 1.0
    routing.on_beacon_timer(10.0)
    assert (list(routing.neighbours), routing.links) == (["n"], {"n": 3})
    routing.on_beacon_timer(10.1)
    assert (routing.neighbours, routing.links, list(routing.homes)) == ({}, {}, [(5, 5)])
    assert routing.lost_cells == {(1, 0): 1.0}
    routing.on_beacon_timer(30.9)
    assert list(routing.homes) == [(5, 5)]
    routing.on_beacon_timer(31.0)
    assert (routing.homes, routing.lost_cells) == ({}, {})


def test_what_was_lost_is_remembered_for_ten_seconds_and_only_in_the_same_cell() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((0, 0), False, 0), "member", 1.0)
    routing.on_beacon(LinkBeacon((1, 0), False, 0), "other", 1.0)
    routing.forget("member")
    routing.forget("other")
    routing.forget("stranger")
    assert (routing.lost_members, routing.lost_cells) == ({"member": 1.0}, {(0, 0): 1.0, (1, 0): 1.0})
    routing.on_beacon_timer(10.9)
    assert (routing.lost_members, routing.lost_cells) == ({"member": 1.0}, {(0, 0): 1.0, (1, 0): 1.0})
    assert routing.move_to(Position(60.0, 60.0)) is None
    assert routing.lost_members == {"member": 1.0}
    assert routing.move_to(Position(160.0, 60.0)) == (0, 0)
    assert (routing.lost_members, routing.lost_cells) == ({}, {})


def record(owner: str, at: float = 1.0, lifespan_s: float = 10.0, filters: tuple[str, ...] = ()) -> Subscribe:
    return Subscribe(Heading((0, 0)), 0, "cars", 0, owner, (0, 0), at=at, lifespan_s=lifespan_s, filters=filters)


def test_a_record_is_sent_on_with_the_rest_of_its_lifespan() -> None:
    stored = rendezvous_table.StoredRecord(record("a", lifespan_s=10.0), 1.0, 11.0)
    rest = [stored.remaining(now).lifespan_s for now in (1.0, 10.5, 11.0, 20.0)]
    assert rest == [10.0, 0.5, 0.0, 0.0], "one that has expired is withdrawn"
    assert stored.remaining(1.0) == record("a", lifespan_s=10.0)


def test_a_cell_keeps_records_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendezvous_table.MOST_BYTES == 8 * 1024 * 1024
    assert weight(record("a", filters=("x" * 100,))) == 1024 + 200
    assert weight(Advertise(Heading((0, 0)), 0, "cars", 0, "p", (0, 0), at=1.0, lifespan_s=1.0)) == 1024
    monkeypatch.setattr(rendezvous_table, "MOST_BYTES", 2048)
    table = RendezvousTable(35.0)
    assert [table.put(record(name), 0.0) for name in "abc"] == [True, True, False]
    assert (len(table), table.held_bytes) == (2, 2048)
    assert table.put(record("b", at=2.0), 1.0), "its owner's earlier record makes room"
    assert table.put(record("a", at=1.0), 1.0), "at the same time"
    assert table.put(record("a", at=2.0, lifespan_s=0.0), 1.0)
    assert (len(table), table.held_bytes, table.put(record("c"), 1.0)) == (1, 1024, True)


@pytest.mark.parametrize(("cells_away", "times"), [(0.0, 1), (3.9, 1), (4.0, 2), (11.9, 3)])
def test_records_at_far_points_skip_renewals(cells_away: float, times: int) -> None:
    assert GeoRendezvousSettings(renew_cells=4).renewals(cells_away) == times
    assert GeoRendezvousSettings(renew_cells=0).renewals(cells_away) == 1


AROUND = Surroundings(
    nodes=100, present=100.0, width_m=500.0, height_m=500.0, range_m=100.0, mean_neighbours=9.0, median_speed_m_s=1.0,
    link_lifetime_s=9.0, events_per_s=9.0,
)  # fmt: skip


def test_first_guesses_follow_the_ground_and_the_density() -> None:
    near = GeoRendezvous.tuning(AROUND)
    assert [(one.name, one.first, one.low, one.high) for one in near] == [
        ("rendezvous", 1, 1, 4), ("cell_side_m", 70.0, 25.0, 70.0),
    ]  # fmt: skip
    far = GeoRendezvous.tuning(replace(AROUND, width_m=800.1, height_m=0.1, mean_neighbours=99.0))
    assert [(one.name, one.first) for one in far] == [("rendezvous", 2), ("cell_side_m", 35.0)]
    middle = GeoRendezvous.tuning(replace(AROUND, mean_neighbours=20.0))
    assert middle[1].first == 55.0


@pytest.mark.parametrize(("height_m", "rendezvous"), [(640.0, 1), (640.1, 2)])
def test_ground_of_eight_ranges_across_is_not_yet_far(height_m: float, rendezvous: int) -> None:
    """480 m by 640 m is 800 m from corner to corner."""
    assert GeoRendezvous.tuning(replace(AROUND, width_m=480.0, height_m=height_m))[0].first == rendezvous


def test_the_first_beacon_comes_within_the_first_interval() -> None:
    waits = []
    for seed in range(200):
        beacon, _ = SharedLinks("me", SETTINGS, Random(seed)).start(Position(50.0, 50.0), 10.0)
        assert isinstance(beacon, StartTimer)
        waits.append(beacon.at - 10.0)
    assert 0.0 <= min(waits) < 0.1
    assert 3.9 < max(waits) <= 4.0


@pytest.mark.parametrize(("other", "apart"), [((3, 5), 0), ((4, 5), 1), ((3, 4), 1), ((-2, 7), 5), ((4, -5), 10)])
def test_cells_lie_apart_along_the_longer_side(other: tuple[int, int], apart: int) -> None:
    assert cells_apart((3, 5), other) == cells_apart(other, (3, 5)) == apart


def test_what_expires_or_is_dropped_makes_room() -> None:
    table = RendezvousTable(35.0)
    table.put(record("a", lifespan_s=10.0), 0.0)
    table.put(record("b", lifespan_s=20.0), 0.0)
    advert = Advertise(Heading((0, 0)), 0, "news", 1, "p", (0, 0), at=1.0, lifespan_s=10.0)
    table.put(advert, 0.0)
    assert (table.expire(9.9), table.held_bytes) == ([], 3 * 1024)
    assert (table.expire(10.0), table.held_bytes) == ([("cars", 0)], 1024)
    table.drop(("cars", 0))
    table.drop(("unknown", 0))
    assert (table.held_bytes, len(table)) == (0, 0)


def test_of_several_peers_the_one_heard_last_is_asked() -> None:
    routing = links()
    for name, now in (("early", 1.0), ("late", 3.0), ("middle", 2.0)):
        routing.on_beacon(LinkBeacon((1, 0), False, 0), name, now)
    assert routing._latest(["early", "late", "middle"]) == "late"


@dataclass
class Place:
    """A location that tests change."""

    at: Position = Position(50.0, 50.0)

    def position(self, time: float) -> Position:
        return self.at

    def velocity(self, time: float) -> Velocity:
        return STILL


WIDE = GeoRendezvousSettings(range_m=160.0, cell_side_m=100.0, width_m=1000.0, height_m=1000.0)


def node(settings: GeoRendezvousSettings = WIDE, *neighbours: tuple[str, Cell]) -> tuple[GeoRendezvous, Place]:
    """A node in cell (0, 0) that has heard these neighbours."""
    place = Place()
    machine = GeoRendezvous("me", settings, place, Random(1))
    machine.start(0.0)
    machine.wake("listened", 1.2)
    for name, cell in neighbours:
        machine.hear(LinkBeacon(cell, False, 0), name, 1.2)
    return machine, place


NEWS = Event("cars").stamped(id="e1", source="p", time=0.0)


@pytest.mark.parametrize(
    "packet",
    [
        Notifications(NEWS, "p", 0, (5, 5), 3, (("far", (9, 1)), ("too", (9, 1)))),
        NotifyAround(NEWS, "p", 0, 3),
        Notify(Heading((9, 1), "far"), 3, NEWS, "p", 0, (5, 5)),
    ],
    ids=lambda packet: type(packet).__name__,
)
def test_a_node_that_has_moved_says_so_before_it_handles_a_packet(packet: Packet) -> None:
    machine, place = node(WIDE, ("beside", (2, 1)))
    machine.hear(LinkBeacon((2, 1), False, 0), "beside", 2.0)
    machine.wake("beacon", 2.0)
    place.at = Position(150.0, 50.0)
    first, *_ = machine.hear(packet, "beside", 3.0)
    assert first == Broadcast(LinkBeacon((1, 0), True, 1 << 1))


def test_notifications_that_part_go_on_as_one_packet_for_each_next_hop() -> None:
    machine, _ = node(WIDE, ("east", (1, 0)), ("north", (0, 1)))
    three = Notifications(NEWS, "p", 1, (5, 5), 3, (("a", (9, 0)), ("b", (9, 0)), ("c", (0, 9))))
    assert machine.hear(three, "x", 2.0) == [
        Send("east", Notifications(NEWS, "p", 1, (5, 5), 4, (("a", (9, 0)), ("b", (9, 0))))),
        Send("north", Notify(Heading((0, 9), "c"), 4, NEWS, "p", 1, (5, 5))),
    ]
    together = Notifications(NEWS, "p", 1, (5, 5), 4, (("a", (9, 9)), ("c", (8, 9))))
    assert machine.unreachable(together, "east", 2.0) == [
        Send("north", Notifications(NEWS, "p", 1, (5, 5), 4, (("a", (9, 9)), ("c", (8, 9)))))
    ]


def test_packets_that_arrive_here_one_after_another_end() -> None:
    machine, _ = node()
    machine._arrivals = MOST_ARRIVALS
    prune = Prune(Heading((0, 0), "me"), 2, "cars", 0, "p", "", 1.0)
    assert machine.hear(prune, "x", 2.0) == [Drop(DropReason.HOP_LIMIT)]
    machine._arrivals = MOST_ARRIVALS - 1
    assert machine.hear(prune, "x", 2.0) == []
    assert machine._arrivals == MOST_ARRIVALS - 1


def test_a_node_notifies_every_rendezvous_cell_unless_it_was_pruned() -> None:
    machine, _ = node(replace(WIDE, rendezvous=3, nearest=1, burst_packets=0), ("east", (1, 1)))
    machine.announce(Announcement(EventType("cars")), 2.0)
    cells = [machine.target(("cars", index)) for index in range(3)]
    sent = machine.publish(NEWS, 3.0)
    assert [effect.packet for effect in sent if isinstance(effect, Send)] == [
        Notify(Heading(cell), 1, NEWS, "me", index, cell) for index, cell in enumerate(cells)
    ]
    assert StartTimer(("release", "cars"), at=8.0) in sent
    machine.hear(Prune(Heading((0, 0), "me"), 2, "cars", 1, "me", "", 1.0), "east", 4.0)
    machine.hear(Prune(Heading((0, 0), "me"), 2, "buses", 1, "me", "", 1.0), "east", 4.0)
    assert sorted(machine.published["cars"].asking) == [0, 2]


def test_events_are_held_for_cells_that_have_yet_to_ask() -> None:
    settings = replace(WIDE, rendezvous=2, asked_first=False, burst_packets=0)
    machine, _ = node(settings, ("east", (1, 1)))
    machine.announce(Announcement(EventType("cars")), 2.0)
    assert machine.publish(NEWS, 3.0) == [StartTimer(("release", "cars"), at=8.0)]
    request = Request(Heading((0, 0), "me"), 4, "cars", 1, (7, 7), 100.0)
    onward = [Send("east", Notify(Heading((7, 7)), 1, NEWS, "me", 1, (7, 7)))]
    assert machine.hear(request, "east", 4.0) == onward
    assert machine.hear(request, "east", 5.0) == []
    assert machine.published["cars"].asking == {1: AskingCell((7, 7), 105.0)}
    machine.wake(("release", "cars"), 8.0)
    machine.wake(("release", "buses"), 8.0)
    assert machine.hear(replace_packet(request, index=0, lifespan_s=1e9), "east", 8.0) == []
    assert machine.published["cars"].asking[0] == AskingCell((7, 7), 8.0 + 8 * settings.record_lifespan_s)
    late = Event("cars").stamped(id="e2", source="me", time=7.0)
    assert machine.publish(late, 7.0) == [
        Send("east", Notify(Heading((7, 7)), 1, late, "me", index, (7, 7))) for index in (0, 1)
    ], "events are no longer held after hold_s"
    assert machine.publish(replace_packet(late, id="e3"), 106.0)[0].packet.index == 0
    assert sorted(machine.published["cars"].asking) == [0], "the other has not asked again"


def test_a_node_that_publishes_no_longer_withdraws_when_a_cell_asks() -> None:
    machine, _ = node(WIDE, ("east", (1, 1)))
    request = Request(Heading((0, 0), "me"), 4, "cars", 1, (7, 7), 100.0)
    assert machine.hear(request, "east", 4.0) == [
        Send("east", Advertise(Heading((7, 7)), 1, "cars", 1, "me", (0, 0), 4.0, 0.0))
    ]


def test_a_node_without_the_subscription_withdraws_it_where_the_notification_came_from() -> None:
    machine, _ = node(WIDE, ("east", (1, 1)))
    target = machine.target(("cars", 1))
    assert machine.hear(Notify(Heading((0, 0), "me"), 4, NEWS, "p", 1, (7, 7)), "east", 4.0) == [
        Send("east", Subscribe(Heading(target), 1, "cars", 1, "me", (0, 0), 4.0, 0.0))
    ]


def reported(number: int, hops: int, index: int, publisher: str = "p") -> Notify:
    """A notification through the point of this index, whose rendezvous cell is (7, index)."""
    event = Event("cars").stamped(id=f"e{number}", source=publisher, time=3.0)
    return Notify(Heading((0, 0), "me"), hops, event, publisher, index, (7, index))


def subscriber_at_three_points() -> GeoRendezvous:
    machine, _ = node(replace(WIDE, rendezvous=3, nearest=3, burst_packets=0, choose_after_s=1.5), ("east", (1, 1)))
    machine.subscribe(Subscription("s", "me", Filter.of_type("cars")), 2.0)
    return machine


def pruned(effects: Sequence[Effect]) -> list[tuple[Cell, int, str]]:
    sent = [effect.packet for effect in effects if isinstance(effect, Send)]
    return [(one.heading.target, one.index, one.publisher) for one in sent if isinstance(one, Prune)]


def test_when_all_points_have_brought_an_event_the_longer_paths_are_pruned() -> None:
    machine = subscriber_at_three_points()
    first = machine.hear(reported(1, 6, 2), "east", 4.0)
    assert [one.event.id for one in first if isinstance(one, Deliver)] == ["e1"]
    assert StartTimer(("choose", "cars", "p"), at=5.5) in first
    assert machine.hear(reported(1, 5, 0), "east", 4.1) == [], "it is no longer new, and the timer runs already"
    assert pruned(machine.hear(reported(1, 4, 1), "east", 4.2)) == [((7, 0), 0, "p"), ((7, 2), 2, "p")]
    assert machine.wake(("choose", "cars", "p"), 5.5) == [], "it has chosen"


def test_a_path_that_brings_something_after_it_was_pruned_is_pruned_again() -> None:
    machine = subscriber_at_three_points()
    for index, hops in enumerate((4, 5, 6)):
        machine.hear(reported(1, hops, index), "east", 4.0)
    assert pruned(machine.hear(reported(2, 2, 2), "east", 5.0)) == [((7, 2), 2, "p")]
    assert pruned(machine.hear(reported(2, 4, 0), "east", 5.1)) == []


def test_paths_that_bring_nothing_in_time_are_not_waited_for() -> None:
    machine = subscriber_at_three_points()
    machine.hear(reported(1, 6, 2), "east", 4.0)
    machine.hear(reported(1, 4, 0), "east", 4.1)
    assert pruned(machine.wake(("choose", "cars", "p"), 5.5)) == [((7, 2), 2, "p")]
    late = machine.hear(reported(1, 3, 1), "east", 5.6)
    assert pruned(late) == [((7, 0), 0, "p")], "a better path that is new replaces the best"
    assert machine.wake(("choose", "cars", "stranger"), 5.7) == machine.wake(("choose", "buses", "p"), 5.7) == []


def test_each_publisher_has_a_path_of_its_own() -> None:
    machine = subscriber_at_three_points()
    for index, hops in enumerate((4, 5, 6)):
        machine.hear(reported(1, hops, index), "east", 4.0)
    other = machine.hear(reported(3, 4, 2, "q"), "east", 4.5)
    assert StartTimer(("choose", "cars", "q"), at=6.0) in other
    assert pruned(other) == []
    assert {name: choice.best for name, choice in machine.subscribed["cars"].choices.items()} == {"p": 0, "q": None}


def test_records_go_out_a_few_at_a_time_and_only_after_the_node_has_listened() -> None:
    settings = replace(WIDE, rendezvous=5, burst_packets=2)
    machine = GeoRendezvous("me", settings, Place(), Random(1))
    machine.start(0.0)
    first = machine.announce(Announcement(EventType("cars")), 0.5)
    assert [effect.name for effect in first] == ["burst", "renew"]
    assert 0.5 <= first[0].at <= 0.5 + BURST_S
    assert first[1].at == 0.5 + settings.renew_interval_s
    assert machine.wake("burst", 0.6) == [StartTimer("burst", at=0.6 + BURST_S)]
    machine.wake("listened", 1.2)
    machine.hear(LinkBeacon((1, 1), False, 0), "east", 1.2)
    for indexes, left, now in (([0, 1], 3, 2.0), ([2, 3], 1, 2.1), ([4], 0, 2.2)):
        sent = machine.wake("burst", now)
        assert [effect.packet.index for effect in sent if isinstance(effect, Send)] == indexes
        assert (len(machine.in_turn), StartTimer("burst", at=now + BURST_S) in sent) == (left, left > 0)


def test_a_renewal_goes_to_far_points_less_often() -> None:
    far = replace(WIDE, rendezvous=3, burst_packets=0, renew_cells=4, origin_x_m=900.0, width_m=1.0, height_m=1.0)
    machine, _ = node(far, ("west", (-8, 0)))  # the points lie some 850 m away: each third renewal

    def renewed(now: float) -> list[tuple[str, int, float]]:
        sent = [effect.packet for effect in machine.wake("renew", now) if isinstance(effect, Send)]
        return [(type(packet).__name__, packet.index, packet.lifespan_s) for packet in sent]

    machine.announce(Announcement(EventType("cars")), 2.0)
    machine.subscribe(Subscription("s", "me", Filter.of_type("cars")), 2.0)
    nearest = machine.subscribed["cars"].points[0]
    lifespan_s = 3 * far.record_lifespan_s
    for number in (1, 2, 3):
        index = -number % 3
        expected = [("Advertise", index, lifespan_s)]
        expected += [("Subscribe", nearest, lifespan_s)] if nearest == index else []
        assert renewed(20.0 * number) == expected
    assert machine.renewals("cars", 0, 0.0) == 3
    machine.location.at = Position(-9e4, 0.0)
    assert machine.renewals("cars", 0, 0.0) == MOST_RENEWALS


def test_a_cell_that_has_got_an_event_and_asks_again_does_not_get_it_twice() -> None:
    machine, _ = node(replace(WIDE, rendezvous=2, asked_first=False, burst_packets=0), ("east", (1, 1)))
    machine.announce(Announcement(EventType("cars")), 2.0)
    request = Request(Heading((0, 0), "me"), 4, "cars", 1, (7, 7), 100.0)
    machine.hear(request, "east", 2.5)
    assert Send("east", Notify(Heading((7, 7)), 1, NEWS, "me", 1, (7, 7))) in machine.publish(NEWS, 3.0)
    assert machine.hear(request, "east", 4.0) == []


def test_a_subscriber_near_its_point_reports_each_cell_that_it_enters() -> None:
    machine, place = node(replace(WIDE, burst_packets=0), ("east", (1, 1)))
    machine.subscribe(Subscription("s", "me", Filter.of_type("cars")), 2.0)
    place.at = Position(150.0, 50.0)
    sent = [one.packet for one in machine.wake("listened", 3.0) if isinstance(one, Send)]
    assert [(type(packet).__name__, packet.cell) for packet in sent] == [("Subscribe", (1, 0))]


def test_an_advertisement_says_that_its_cell_has_asked_only_while_that_holds_until_the_next_renewal() -> None:
    machine, _ = node(replace(WIDE, asked_first=True))
    machine.announce(Announcement(EventType("cars")), 2.0)
    machine.published["cars"].asking = {0: AskingCell((7, 7), 30.0)}
    interval_s = WIDE.renew_interval_s
    assert [machine.is_asked("cars", 0, now) for now in (29.9 - interval_s, 30.0 - interval_s)] == [True, False]
    assert not machine.is_asked("cars", 1, 0.0)


def test_a_topic_that_was_not_announced_ends_a_lifespan_after_its_last_event() -> None:
    machine, _ = node()
    machine.publish(NEWS, 3.0)
    machine.wake("renew", 3.0 + WIDE.record_lifespan_s - 0.1)
    assert list(machine.published) == ["cars"]
    assert machine.wake("renew", 3.0 + WIDE.record_lifespan_s) == []
    assert machine.published == {}


def test_a_publisher_is_forgotten_ten_lifespans_after_its_last_notification() -> None:
    machine, _ = node()
    machine.subscribe(Subscription("s", "me", Filter.of_type("cars")), 2.0)
    machine.hear(Notify(Heading((0, 0), "me"), 4, NEWS, "p", 1, (7, 7)), "east", 4.0)
    machine.wake("renew", 4.0 + 10 * WIDE.record_lifespan_s)
    assert list(machine.subscribed["cars"].choices) == ["p"]
    machine.wake("renew", 4.1 + 10 * WIDE.record_lifespan_s)
    assert machine.subscribed["cars"].choices == {}


def test_a_subscriber_in_another_cell_than_where_it_chose_chooses_again_at_its_renewal() -> None:
    machine, place = node()
    machine.subscribe(Subscription("s", "me", Filter.of_type("cars")), 2.0)
    machine.hear(Notify(Heading((0, 0), "me"), 4, NEWS, "p", 1, (7, 7)), "east", 4.0)
    machine.wake("renew", 20.0)
    assert list(machine.subscribed["cars"].choices) == ["p"]
    place.at = Position(150.0, 50.0)
    machine.wake("renew", 40.0)
    assert machine.subscribed["cars"].choices == {}
    assert machine.subscribed["cars"].chosen_from == (1, 0)


def test_a_point_that_is_left_is_unsubscribed_when_the_new_one_has_had_its_time() -> None:
    machine, _ = node(replace(WIDE, rendezvous=2, burst_packets=0), ("east", (1, 1)))
    machine.subscribe(Subscription("s", "me", Filter.of_type("cars")), 2.0)
    (kept,) = machine.subscribed["cars"].points
    machine.subscribed["cars"].leaving = {1 - kept: 19.0}
    withdrawn = Subscribe(
        Heading(machine.target(("cars", 1 - kept))), 1, "cars", 1 - kept, "me", (0, 0), 20.0, 0.0
    )  # fmt: skip
    assert Send("east", withdrawn) not in machine.wake("renew", 19.9)
    assert Send("east", withdrawn) in machine.wake("renew", 20.0)
    assert machine.subscribed["cars"].leaving == {}


def test_a_walk_that_could_not_go_on_is_taken_back_by_one_step() -> None:
    taken = Walk((9, 9), 3, at=(1, 1), before=(0, 1), steps=5, mark=((1, 1), 2))
    assert taken.as_received((1, 1)) == Walk((9, 9), 3, at=(0, 1), before=None, steps=4, mark=((9, 9), 3))
    assert taken.as_received((2, 2)) is None
    assert Walk((9, 9), 3, at=(1, 1), before=None, steps=1, mark=((1, 1), 2)).as_received((1, 1)) is None


def test_a_home_that_was_walked_around_is_known_for_its_time_and_an_empty_cell_hides_no_node() -> None:
    routing = CellHashRouting("me", CellSettings(links="own", home_memory_s=30.0), Random(1))
    routing.homes[(5, 5)] = 1.0
    assert [routing._need_not_walk(Heading((5, 5)), now) for now in (30.9, 31.0)] == [True, False]
    assert [routing._need_not_walk(Heading(cell, "n"), 1.0) for cell in ((1, 1), (2, 2))] == [True, False]
    assert not routing._need_not_walk(Heading((1, 1)), 1.0)


def test_the_edge_that_a_walk_marks_is_the_one_of_each_power_of_two() -> None:
    routing = CellHashRouting("me", CellSettings(links="own"), Random(1))
    routing.listened()
    routing.on_beacon(Beacon((-1, 0), False), "behind", 0.0)
    for steps, marks in ((1, True), (2, False), (3, True), (6, False), (7, True)):
        came = Walk((1, 1), 4, at=(0, 1), before=None, steps=steps, mark=((8, 8), 0))
        routing.on_beacon(Beacon((1, 1), False), "entry", 0.0)
        routing.neighbourhood = 1 << 4 | 1 << 1
        mark = ((0, 0), 4) if marks else ((8, 8), 0)
        onward = Walk((1, 1), 4, at=(0, 0), before=(0, 1), steps=steps + 1, mark=mark)
        found = routing.route(RoutedPacket(Heading((9, 0), walk=came), 5), 5.0)
        assert found == Send("behind", RoutedPacket(Heading((9, 0), "", onward), 6))


@pytest.mark.parametrize("came_from", range(8))
def test_a_walk_takes_the_next_edge_after_the_one_it_came_by_whichever_that_was(came_from: int) -> None:
    """The right-hand rule counts from the direction of the last cell, also where that cell is empty by now."""
    routing = CellHashRouting("me", CellSettings(links="own"), Random(1))
    routing.listened()
    first, second = (came_from + 1) % 8, (came_from + 4) % 8
    for name, direction in (("first", first), ("second", second)):
        routing.on_beacon(Beacon(towards((0, 0), direction), False), name, 0.0)
    routing.neighbourhood = 1 << first | 1 << second
    came = Walk((5, 5), 4, at=towards((0, 0), came_from), before=None, steps=2, mark=((8, 8), 0))
    found = routing.route(RoutedPacket(Heading((90, 90), walk=came), 5), 5.0)
    assert isinstance(found, Send)
    assert routing.neighbours[found.peer].cell == towards((0, 0), first)


def test_the_doubts_about_cells_name_both_sides_and_what_they_hold() -> None:
    def doubts(**given: Any) -> tuple[str, ...]:
        return GeoRendezvousSettings(range_m=160.0, width_m=1000.0, height_m=1000.0, **given).doubts()

    assert doubts(network_nodes=150) == (
        "georendezvous' cells have a side of 113 m and hold 1.9 nodes on average; the paper's side of 57 m would hold "
        "0.5 and leave many empty",
    )
    assert doubts(network_nodes=150, cell_side_m=100.0) == ()
    assert doubts(network_nodes=100, cell_side_m=100.0) == (), "one node a cell is enough"
    assert "cells of 100 m hold 1.0 nodes on average" in doubts(network_nodes=99, cell_side_m=100.0)[0]
    assert doubts(links="own") == doubts(cell_side_m=100.0) == ()


def test_points_lie_in_the_rectangle_north_east_of_the_origin() -> None:
    settings = GeoRendezvousSettings(origin_x_m=5000.0, origin_y_m=-300.0, width_m=10.0, height_m=20.0)
    for at in settings.points("cars"):
        assert 5000.0 <= at.x_m <= 5010.0
        assert -300.0 <= at.y_m <= -280.0
    assert settings.grid.origin == Position(5000.0, -300.0)


def test_a_network_of_unknown_density_keeps_the_papers_side() -> None:
    assert CellSettings(range_m=100.0).density_per_m2 == 0.0
    assert CellSettings(range_m=100.0).side_m == CellSettings(range_m=100.0, links="own").side_m


def test_the_reason_for_a_cells_side_is_how_many_nodes_it_holds() -> None:
    (_, side) = GeoRendezvous.tuning(replace(AROUND, mean_neighbours=20.0))
    assert side.reason == "a cell holds 2.0 nodes"


def test_a_changed_subscription_goes_to_every_point_at_once_however_far() -> None:
    far = replace(
        WIDE, rendezvous=3, nearest=3, burst_packets=0, renew_cells=4, origin_x_m=900.0, width_m=1.0, height_m=1.0,
        content_at_rendezvous=True,
    )  # fmt: skip
    machine, _ = node(far, ("west", (-8, 0)))

    def subscribed(effects: Sequence[Effect]) -> list[tuple[int, int]]:
        sent = [effect.packet for effect in effects if isinstance(effect, Send)]
        return sorted((one.index, len(one.filters)) for one in sent if isinstance(one, Subscribe))

    first = Subscription("s", "me", Filter.parse("cars: speed > 1"))
    assert subscribed(machine.subscribe(first, 2.0)) == [(0, 1), (1, 1), (2, 1)]
    second = Subscription("t", "me", Filter.parse("cars: speed < 0"))
    assert subscribed(machine.subscribe(second, 3.0)) == [(0, 2), (1, 2), (2, 2)]
    assert subscribed(machine.subscribe(replace(second, id="u"), 4.0)) == [], "nothing has changed"
    assert len(subscribed(machine.wake("renew", 22.0))) == 1, "a renewal goes to one of three"
