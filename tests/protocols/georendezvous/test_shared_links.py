"""What GeoRendezvous' defaults do beyond the paper: larger cells, shared links, one packet for several subscribers."""

import math
from random import Random
from typing import Any

import pytest

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.protocols.georendezvous.cell_hash_routing import (
    Beacon,
    CellAppeared,
    CellSettings,
    Heading,
    NodeEntered,
    RoutedPacket,
    Walk,
)
from earshot.protocols.georendezvous.cells import rank
from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.protocols.georendezvous.rendezvous_cell import Keep, Notifications, Notify, NotifyAround
from earshot.protocols.georendezvous.rendezvous_table import Subscribe
from earshot.protocols.georendezvous.settings import PAPER, GeoRendezvousSettings
from earshot.protocols.georendezvous.shared_links import RETURN_S, LinkBeacon, SharedLinks
from earshot.protocols.machine import Broadcast, Drop, FixedLocation, Send
from earshot.records import DropReason
from earshot.simulation import load_scenario, run, summarise

SETTINGS = CellSettings(range_m=160.0, cell_side_m=100.0)


def links() -> SharedLinks:
    """The routing of a node in the middle of cell (0, 0)."""
    routing = SharedLinks("me", SETTINGS, Random("me"))
    routing.start(Position(50.0, 50.0), 0.0)
    routing.listened()
    return routing


def test_cells_are_larger_where_the_papers_would_be_empty() -> None:
    sparse, middle, dense = (
        GeoRendezvousSettings(range_m=160.0, width_m=1000.0, height_m=1000.0, network_nodes=nodes)
        for nodes in (150, 200, 1000)
    )
    assert sparse.side_m == pytest.approx(160.0 / math.sqrt(2))
    assert middle.side_m == pytest.approx(math.sqrt(2.0 / 200e-6))
    assert dense.side_m == pytest.approx(160.0 / (2 * math.sqrt(2)))
    assert PAPER.side_m == pytest.approx(PAPER.range_m / (2 * math.sqrt(2)))


def test_a_user_learns_which_side_cells_have_and_why() -> None:
    def doubts(**given: Any) -> str:
        return " ".join(GeoRendezvous.doubts(GeoRendezvousSettings(range_m=160.0, **given)))

    assert "a side of 113 m and hold 1.9 nodes" in doubts(network_nodes=150)
    assert "give every node the same" in doubts()
    assert "hold 0.5 nodes on average: many are empty" in doubts(network_nodes=150, links="own")
    assert doubts(network_nodes=1000) == doubts(cell_side_m=80.0) == ""


def test_members_of_a_cell_must_hear_each_other() -> None:
    with pytest.raises(SettingsError, match="at most range / sqrt 2"):
        CellSettings(range_m=100.0, cell_side_m=80.0)


def test_a_packet_goes_over_a_neighbour_that_hears_a_closer_cell() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((-1, 0), False, 0), "behind", 0.0)
    routing.on_beacon(LinkBeacon((0, 1), False, 1 << 1), "beside", 0.0)  # it hears the cell north-east of its own
    found = routing.route(RoutedPacket(Heading((3, 0)), 0), 1.0)
    assert isinstance(found, Send)
    assert found.peer == "beside"


def test_a_packet_goes_to_its_node_as_soon_as_that_is_heard() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((1, 1), False, 0), "wanted", 0.0)
    found = routing.route(RoutedPacket(Heading((9, 9), "wanted"), 0), 1.0)
    assert found == Send("wanted", RoutedPacket(Heading((9, 9), "wanted"), 1))


def test_a_cell_next_to_an_empty_target_is_its_home_without_a_walk() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((-1, 0), False, 0), "behind", 0.0)
    packet = RoutedPacket(Heading((1, 1)), 0)
    assert routing.route(packet, 1.0) is packet


def test_a_member_whose_first_beacon_was_lost_is_a_newcomer_all_the_same() -> None:
    routing = links()
    assert routing.on_beacon(LinkBeacon((0, 0), False, 0), "late", 0.0) == NodeEntered("late")
    assert routing.on_beacon(LinkBeacon((0, 0), False, 0), "late", 1.0) is None


def test_a_member_that_is_heard_again_lacks_only_what_has_changed() -> None:
    routing = links()
    beacon = LinkBeacon((0, 0), False, 0)
    routing.on_beacon(beacon, "back", 1.0)
    routing.forget("back")  # it did not answer
    routing.on_beacon_timer(2.0)
    assert routing.on_beacon(beacon, "back", 2.5) == NodeEntered("back", since=1.0)
    routing.forget("back")
    routing.on_beacon_timer(2.5 + RETURN_S)
    assert routing.on_beacon(beacon, "back", 13.0) == NodeEntered("back")
    routing.forget("back")
    assert routing.on_beacon(LinkBeacon((0, 0), True, 0), "back", 14.0) == NodeEntered("back")  # it has been elsewhere
    routing.on_beacon(LinkBeacon((1, 0), False, 0), "back", 15.0)
    assert routing.on_beacon(beacon, "back", 16.0) == NodeEntered("back")


def test_a_neighbouring_cell_that_is_heard_again_is_not_new() -> None:
    routing = links()
    beacon = LinkBeacon((1, 0), False, 0)
    assert routing.on_beacon(beacon, "beside", 1.0) == CellAppeared((1, 0))
    routing.forget("beside")
    routing.on_beacon_timer(2.0)
    assert routing.on_beacon(beacon, "beside", 3.0) is None
    assert routing.neighbourhood == 1
    routing.forget("beside")
    routing.on_beacon_timer(3.0 + RETURN_S)
    assert routing.on_beacon(beacon, "beside", 14.0) == CellAppeared((1, 0))


def test_one_member_hands_a_newcomer_what_it_lacks_and_tells_the_others() -> None:
    machine = GeoRendezvous("me", GeoRendezvousSettings(range_m=160.0, cell_side_m=100.0), FixedLocation(), Random(1))
    machine.routing.on_beacon(LinkBeacon((0, 0), False, 0), "late", 0.0)
    cell = machine.rendezvous
    old, new = (Subscribe(Heading((0, 0)), 0, "cars", 0, owner, (5, 0), 0.0, 60.0) for owner in ("old", "new"))
    cell.on_record(old, 1.0)
    cell.on_record(new, 4.0)
    for since, owners in ((-math.inf, ["new", "old"]), (2.0, ["new"])):
        cell.newcomer("late", 5.0, since)
        reported, *handed = cell.hand_keys_to("late", 5.0)
        assert reported == Broadcast(Keep((0, 0), (), "late"))
        assert [(effect.peer, [one.owner for one in effect.packet.records]) for effect in handed] == [("late", owners)]
    cell.newcomer("late", 6.0, 5.5)
    assert cell.hand_keys_to("late", 6.0) == []


def test_a_subscriber_far_from_its_point_reports_every_second_cell() -> None:
    wide = GeoRendezvousSettings(range_m=160.0, cell_side_m=100.0, width_m=4000.0, height_m=4000.0)
    machine = GeoRendezvous("me", wide, FixedLocation(), Random(1))
    found = {}
    for topic in (f"topic {k}" for k in range(20)):
        away_m = min(machine.location.position(0.0).distance_to(point) for point in wide.points(topic))
        found[topic] = machine.reported_move(topic, 0.0)
        assert found[topic] == (2 if away_m >= 1200.0 else 1)
    assert set(found.values()) == {1, 2}


def test_a_walk_that_is_too_long_returns_to_where_it_began() -> None:
    routing = links()
    routing.on_beacon(LinkBeacon((-1, 0), False, 0), "behind", 0.0)
    walk = Walk((-3, 0), 0, at=(-1, 0), before=None, steps=SETTINGS.walk_limit, mark=((-1, 0), 0))
    found = routing.route(RoutedPacket(Heading((-9, 9), walk=walk), 20), 1.0)
    assert found == Send("behind", RoutedPacket(Heading((-3, 0)), 21))


def test_a_home_cell_asks_the_other_cells_around_the_point() -> None:
    settings = GeoRendezvousSettings(range_m=160.0, cell_side_m=100.0)
    machine = GeoRendezvous("me", settings, FixedLocation(), Random(1))
    column, row = machine.target(("cars", 0))
    machine.routing.cell = (column - 1, row)
    machine.routing.on_beacon(LinkBeacon((column + 1, row), False, 0), "beyond", 0.0)
    machine.routing.on_beacon(LinkBeacon((column - 3, row), False, 0), "elsewhere", 0.0)
    event = Event("cars").stamped(id="e1", source="p", time=0.0)
    orders = machine.rendezvous.on_event(Notify(Heading((column, row)), 4, event, "p", 0, (column, row)), 1.0)
    assert orders[0] == Send("beyond", NotifyAround(event, "p", 0, 5))


def test_a_cell_around_the_point_notifies_the_subscribers_that_it_knows() -> None:
    machine = GeoRendezvous("me", GeoRendezvousSettings(cell_side_m=50.0), FixedLocation(), Random(1))
    event = Event("cars").stamped(id="e1", source="p", time=0.0)
    assert machine.rendezvous.on_event_around(NotifyAround(event, "p", 0, 5), 1.0) == []
    machine.rendezvous.on_record(Subscribe(Heading((0, 0)), 0, "cars", 0, "s", (5, 0), 0.0, 60.0), 0.0)
    notified = [Notify(Heading((5, 0), "s"), 5, event, "p", 0, (0, 0))]
    assert machine.rendezvous.on_event_around(NotifyAround(event, "p", 0, 5), 1.0) == notified


def test_notifications_are_one_packet_and_become_single_ones_again() -> None:
    event = Event("cars").stamped(id="e1", source="p", time=0.0)
    singles = [Notify(Heading((3, i), f"s{i}"), 2, event, "p", 0, (1, 1)) for i in range(3)]
    assert Notifications.of(singles).each() == singles


def test_a_rendezvous_cell_leaves_out_subscribers_far_from_an_events_area() -> None:
    settings = GeoRendezvousSettings(range_m=160.0, cell_side_m=100.0)
    machine = GeoRendezvous("me", settings, FixedLocation(), Random(1))
    event = Event("cars", area=Area(Circle(300.0), Position(50.0, 50.0)))
    near, far = (Subscribe(Heading((0, 0)), 0, "cars", 0, "s", (x, 0), 0.0, 60.0) for x in (5, 9))
    assert machine.rendezvous.may_reach(event, near)
    assert not machine.rendezvous.may_reach(event, far)


WEST, SOUTH = 1 << 4, 1 << 6
"Bits of directions."


def at_home(*beacons: tuple[str, tuple[int, int], int]) -> SharedLinks:
    """Routing in cell (0, 0) that has heard these nodes, in these cells, with these links, one second apart."""
    routing = links()
    for second, (name, cell, bits) in enumerate(beacons):
        routing.on_beacon(LinkBeacon(cell, False, bits), name, float(second))
    return routing


def test_a_beacon_names_the_cells_that_its_sender_hears_itself() -> None:
    routing = at_home(("member", (0, 0), SOUTH), ("beside", (-1, 0), 0))
    assert routing.beacon() == LinkBeacon((0, 0), True, WEST)
    assert routing.beacon() == LinkBeacon((0, 0), False, WEST)
    assert routing.shared_neighbourhood() == WEST | SOUTH
    routing.on_beacon(Beacon((0, 0), False), "plain", 3.0)
    assert routing.shared_neighbourhood() == WEST | SOUTH


def test_only_the_eight_bits_of_a_neighbours_links_count() -> None:
    assert at_home(("far", (2, 2), 0x1FF)).links == {"far": 0xFF}


def test_of_two_cells_at_the_same_distance_the_one_that_ranks_after_is_no_step_ahead() -> None:
    routing = at_home(("aside", (0, 2), 0))
    assert routing._closer_peer((-3, 1), rank((0, 0), (-3, 1))) == ""
    assert routing._rank_ahead("aside", (-3, 1)) == rank((0, 2), (-3, 1))
    routing.on_beacon(Beacon((0, 3), False), "without links", 3.0)
    assert routing._rank_ahead("without links", (9, 3)) == rank((0, 3), (9, 3))


def test_a_packet_goes_to_the_neighbour_nearest_to_the_target_and_of_equals_to_the_one_heard_last() -> None:
    routing = at_home(("b", (1, 1), 0), ("a", (1, 1), 0), ("c", (1, 0), 0))
    found = routing.route(RoutedPacket(Heading((9, 9)), 3), 5.0)
    assert found == Send("a", RoutedPacket(Heading((9, 9)), 4))


def test_a_packet_at_the_hop_limit_is_lost() -> None:
    routing = at_home(("b", (1, 1), 0))
    assert isinstance(routing.route(RoutedPacket(Heading((9, 9)), SETTINGS.hop_limit - 1), 5.0), Send)
    assert routing.route(RoutedPacket(Heading((9, 9)), SETTINGS.hop_limit), 5.0) == Drop(DropReason.HOP_LIMIT)


def test_a_walk_begins_at_a_local_minimum_and_goes_on_around_the_face() -> None:
    routing = at_home(("behind", (-1, 0), 0))
    begun = Walk((0, 0), 4, at=(0, 0), before=None, steps=1, mark=((0, 0), 4))
    assert routing.route(RoutedPacket(Heading((9, 0)), 0), 5.0) == Send(
        "behind", RoutedPacket(Heading((9, 0), "", begun), 1)
    )
    came = Walk((1, 1), 4, at=(0, 1), before=(1, 1), steps=3, mark=((1, 1), 4))
    onward = Walk((1, 1), 4, at=(0, 0), before=(0, 1), steps=4, mark=((0, 0), 4))
    assert routing.route(RoutedPacket(Heading((9, 0), walk=came), 5), 5.0) == Send(
        "behind", RoutedPacket(Heading((9, 0), "", onward), 6)
    )
    last = Walk((1, 1), 4, at=(0, 1), before=(1, 1), steps=SETTINGS.walk_limit - 1, mark=((1, 1), 4))
    found = routing.route(RoutedPacket(Heading((9, 0), walk=last), 5), 5.0)
    assert isinstance(found, Send)
    assert found.packet.heading.walk.steps == SETTINGS.walk_limit


def test_a_walk_turns_counter_clockwise_from_where_it_came() -> None:
    """From the north the first edge counter-clockwise is the one to the west, from the south the one to the east."""
    for at, peer, direction in (((0, 1), "west", 4), ((0, -1), "east", 0)):
        routing = at_home(("west", (-1, 0), 0), ("east", (1, 0), 0))
        walk = Walk((2, 2), 4, at=at, before=(1, 1), steps=2, mark=((2, 2), 4))
        onward = Walk((2, 2), 4, at=(0, 0), before=at, steps=3, mark=((0, 0), direction))
        assert routing.route(RoutedPacket(Heading((2, 5), walk=walk), 5), 5.0) == Send(
            peer, RoutedPacket(Heading((2, 5), "", onward), 6)
        )


def test_a_walk_goes_greedily_again_only_where_it_comes_closer_than_it_began() -> None:
    walk = Walk((2, 0), 4, at=(0, 1), before=(1, 1), steps=3, mark=((2, 0), 4))
    for cell, greedy in (((1, 0), False), ((2, 0), False), ((3, 0), True)):
        routing = at_home(("behind", (-1, 0), 0), ("ahead", cell, 0))
        found = routing.route(RoutedPacket(Heading((9, 0), walk=walk), 5), 5.0)
        assert isinstance(found, Send)
        assert (found.peer == "ahead" and found.packet.heading.walk is None) is greedy


def test_a_walk_from_a_cell_that_is_not_beside_this_one_begins_again() -> None:
    routing = at_home(("behind", (-1, 0), 0))
    strange = Walk((5, 5), 4, at=(5, 5), before=(6, 6), steps=7, mark=((5, 5), 4))
    begun = Walk((0, 0), 4, at=(0, 0), before=None, steps=1, mark=((0, 0), 4))
    assert routing.route(RoutedPacket(Heading((9, 0), walk=strange), 5), 5.0) == Send(
        "behind", RoutedPacket(Heading((9, 0), "", begun), 6)
    )


def test_a_step_into_a_cell_that_only_another_member_hears_goes_over_that_member() -> None:
    routing = at_home(("hears it", (0, 0), WEST), ("does not", (0, 0), 0))
    packet = RoutedPacket(Heading((9, 0)), 2)
    assert routing.route(packet, 5.0) == Send("hears it", RoutedPacket(Heading((9, 0)), 3))


def test_a_walk_that_has_come_round_makes_the_cell_a_home_and_the_next_packet_need_not_walk() -> None:
    routing = at_home(("behind", (-1, 0), 0))
    round_ = Walk((0, 0), 4, at=(-1, 0), before=(-2, 0), steps=4, mark=((0, 0), 4))
    packet = RoutedPacket(Heading((9, 0), walk=round_), 5)
    assert routing.route(packet, 5.0) is packet
    assert routing.homes == {(9, 0): 5.0}
    new = RoutedPacket(Heading((9, 0)), 0)
    assert routing.route(new, 5.0 + SETTINGS.home_memory_s - 0.1) is new
    assert isinstance(routing.route(new, 5.0 + SETTINGS.home_memory_s), Send)


def test_a_cell_without_any_neighbour_is_home_and_has_walked_nothing() -> None:
    routing = at_home()
    packet = RoutedPacket(Heading((9, 0)), 0)
    assert routing.route(packet, 5.0) is packet
    assert routing.homes == {}


def test_a_packet_for_a_node_that_is_not_heard_asks_one_other_member_and_is_then_lost() -> None:
    routing = at_home(("other", (0, 0), 0))
    asked = Walk((0, 0), 0, at=(0, 0), before=None, steps=SETTINGS.walk_limit, mark=((0, 0), 0))
    packet = RoutedPacket(Heading((0, 0), "gone"), 2)
    assert routing.route(packet, 5.0) == Send("other", RoutedPacket(Heading((0, 0), "gone", asked), 3))
    moved = Drop(DropReason.RECEIVER_MOVED)
    assert routing.route(RoutedPacket(Heading((0, 0), "gone", asked), 3), 5.0) == moved
    assert routing.route(RoutedPacket(Heading((1, 0), "gone"), 2), 5.0) == moved
    assert at_home().route(packet, 5.0) == moved


def test_a_too_long_walk_for_a_node_is_lost_and_one_at_its_entry_has_arrived() -> None:
    routing = at_home(("behind", (-1, 0), 0))

    def walk(entry: tuple[int, int]) -> Walk:
        return Walk(entry, 2, at=(0, 1), before=None, steps=SETTINGS.walk_limit, mark=((5, 5), 0))

    found = routing.route(RoutedPacket(Heading((9, 0), "gone", walk((1, 1))), 5), 5.0)
    assert found == Drop(DropReason.RECEIVER_MOVED)
    here = RoutedPacket(Heading((9, 0), walk=walk((0, 0))), 5)
    assert routing._end_walk(here, walk((0, 0)), 5.0) is here


def test_of_each_cell_around_a_point_the_member_that_was_heard_last_is_asked() -> None:
    routing = at_home(
        ("own", (0, 0), 0), ("b", (2, 1), 0), ("a", (2, 1), 0), ("target", (1, 1), 0), ("corner", (2, 2), 0),
        ("far", (3, 1), 0),
    )  # fmt: skip
    assert routing.cells_around((1, 1)) == ["target", "a", "corner"]


def test_the_members_of_a_new_cell_are_asked_for_the_keys_of_the_right_time() -> None:
    routing = at_home(("member", (0, 0), 3))
    assert routing.on_beacon(LinkBeacon((1, 0), False, 0), "member", 5.0) == CellAppeared((1, 0))
    assert routing.lost_members == {}
    assert routing.links == {"member": 0}
    assert routing.on_beacon(Beacon(None), "member", 6.0) is None
    assert (routing.links, routing.lost_cells) == ({}, {(0, 0): 0.0, (1, 0): 5.0})


def test_a_hundred_nodes_of_the_city_share_a_channel() -> None:
    scenario = load_scenario("city").with_(
        {"duration_s": 40.0, "medium": {"kind": "contention", "range_m": 160.0, "bit_rate_bps": 2e6}}
    )
    ratio = summarise(scenario, run(scenario, "georendezvous", seed=1)).delivery_ratio
    assert ratio is not None
    assert ratio >= 0.8
