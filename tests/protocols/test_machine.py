"""The machine's base: entry points that do nothing, and the verbs."""

import math
from random import Random

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription, Viewer
from earshot.geometry import Position, Velocity
from earshot.protocols.flooding import Flood
from earshot.protocols.machine import (
    NOTHING,
    Announcement,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    FixedLocation,
    JoinGroup,
    LeaveGroup,
    Machine,
    Note,
    Send,
    StartTimer,
)

EVENT = Event(type="Ping", id="a-0", source="a")


def machine() -> Machine:
    return Machine("a", None, FixedLocation(Position(1.0, 2.0), Velocity(3.0, 4.0)), Random(1))


def test_a_machine_without_a_protocol_does_nothing_whatever_happens() -> None:
    node = machine()
    returned = [
        node.start(0.0),
        node.subscribe(Subscription("s", "a", Filter.of_type("Ping")), 0.0),
        node.unsubscribe("s", 0.0),
        node.announce(Announcement(EventType("Ping")), 0.0),
        node.unannounce("Ping", 0.0),
        node.publish(EVENT, 0.0),
        node.hear(Flood(EVENT, 1), "b", 0.0),
        node.wake("timer", 0.0),
        node.unreachable(Flood(EVENT, 1), "b", 0.0),
        node.stop(0.0),
    ]
    assert all(effects is NOTHING for effects in returned)
    assert NOTHING == []


def test_the_verbs_make_effects_in_order_and_hand_them_over_once() -> None:
    node = machine()
    flood = Flood(EVENT, 1)
    node.broadcast(flood)
    node.broadcast(flood, group=7)
    node.send("b", flood)
    node.start_timer("tick", at=2.0)
    node.cancel_timer(("tick", 3))
    node.deliver(EVENT, "s", hops=2)
    node.drop("expired", "a-0")
    node.join_group(7)
    node.leave_group(7)
    node.note("parent", "b")
    assert node.effects() == [
        Broadcast(flood),
        Broadcast(flood, 7),
        Send("b", flood),
        StartTimer("tick", 2.0),
        CancelTimer(("tick", 3)),
        Deliver(EVENT, "s", 2),
        Drop("expired", "a-0"),
        JoinGroup(7),
        LeaveGroup(7),
        Note("parent", "b"),
    ]
    assert node.effects() == []


def test_effects_are_values() -> None:
    assert Broadcast(Flood(EVENT, 1)) == Broadcast(Flood(EVENT, 1), None) != Broadcast(Flood(EVENT, 2))
    assert JoinGroup(7) != LeaveGroup(7)
    assert {StartTimer("tick", 1.0), StartTimer("tick", 1.0)} == {StartTimer("tick", 1.0)}


def test_effects_can_be_taken_apart_by_a_match() -> None:
    match Send("b", Flood(EVENT, 1)):
        case Send(peer, Flood(event, hops)):
            assert (peer, event, hops) == ("b", EVENT, 1)


class Walking:
    """One metre a second to the east, faster each second."""

    def position(self, time: float) -> Position:
        return Position(time, 0.0)

    def velocity(self, time: float) -> Velocity:
        return Velocity(1.0 + time, 0.0)


def test_a_machine_sees_an_event_from_where_it_was_when_the_event_was_published() -> None:
    made = machine()
    made.location = Walking()
    seen = made.viewer_at(Event("Siren", time=5.0), now=60.0)
    assert seen == Viewer(Position(5.0, 0.0), Velocity(6.0, 0.0))
    ahead = made.viewer_at(Event("Siren", time=70.0), now=60.0)
    assert ahead.position == Position(60.0, 0.0), "a clock ahead of ours does not make us look into the future"
    assert made.viewer_at(Event("Siren", time=math.nan), now=60.0) == made.viewer_at(
        Event("Siren", time=60.0), now=60.0
    )


def test_a_delivery_whose_hops_nobody_counted_says_minus_one() -> None:
    assert Deliver(EVENT, "s").hops == -1


def test_a_machine_that_counts_no_hops_delivers_with_minus_one() -> None:
    node = machine()
    node.deliver(EVENT, "s")
    assert node.effects() == [Deliver(EVENT, "s", -1)]


def test_a_location_that_nobody_gave_is_the_origin_at_rest() -> None:
    assert (FixedLocation().position(3.0), FixedLocation().velocity(3.0)) == (Position(0.0, 0.0), Velocity(0.0, 0.0))


def test_history_and_reliability_need_neighbours_and_thus_no_routing() -> None:
    """The other attributes of a type are kept by each host for itself."""
    alone = {"lifespan_s", "priority", "deadline_s"}
    assert Machine.kept_qualities(None) == {*alone, "reliability", "history"}
    assert type("Routed", (Machine,), {"needs_routing": True}).kept_qualities(None) == alone  # type: ignore[attr-defined]


def test_a_machine_without_a_protocol_needs_nothing_and_has_nothing_to_tune() -> None:
    assert (Machine.uses_routing(None), Machine.doubts(None), Machine.tuning(None)) == (False, (), ())  # type: ignore[arg-type]
    assert (Machine.needs_routing, Machine.needs_two_way_links, Machine.several_producers) == (False, False, False)


def test_a_channel_that_nobody_measures_is_quiet_and_takes_no_time() -> None:
    node = machine()
    assert (node.channel.busy_share(5.0), node.channel.airtime_s(1000)) == (0.0, 0.0)
