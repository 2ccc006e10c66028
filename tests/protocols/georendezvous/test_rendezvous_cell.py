"""One member of a rendezvous cell by itself: what it orders for each packet, and what it keeps."""

from __future__ import annotations

import math
from random import Random

import pytest
from msgspec.structs import replace

from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.protocols.georendezvous.cell_hash_routing import Beacon, CellHashRouting, CellSettings, Heading
from earshot.protocols.georendezvous.cells import Cell
from earshot.protocols.georendezvous.rendezvous_cell import (
    Keep,
    Notify,
    NotifyAround,
    Prune,
    RendezvousCell,
    Request,
)
from earshot.protocols.georendezvous.rendezvous_table import Advertise, Subscribe
from earshot.protocols.machine import Broadcast, CancelTimer, Drop, Note, Send, StartTimer
from earshot.records import DropReason

HERE: Cell = (0, 0)
CARS = ("cars", 0)
EVENT = Event("cars").stamped(id="e1", source="p", time=0.0)


class Fixed(Random):
    """Chance that is always in the middle, and chooses the last."""

    def random(self) -> float:
        return 0.5

    def choice(self, seq):  # type: ignore[no-untyped-def]
        return seq[-1]


def cell_of(*neighbours: tuple[str, Cell], me: str = "me", **given: object) -> RendezvousCell:
    """A member of cell (0, 0) that hears these nodes; point i of a topic lies in cell (i, 0)."""
    routing = CellHashRouting(me, CellSettings(range_m=100.0, links="own"), Fixed())
    routing.listened()
    for name, cell in neighbours:
        routing.on_beacon(Beacon(cell, False), name, 0.0)
    return RendezvousCell(routing, lambda key: (key[1], 0), 35.0, 0.1, **given)  # type: ignore[arg-type]


def advert(owner: str = "p", at: float = 1.0, lifespan_s: float = 20.0, index: int = 0, **given: object) -> Advertise:
    return Advertise(Heading(HERE), 3, "cars", index, owner, (4, 4), at, lifespan_s, **given)  # type: ignore[arg-type]


def subscription(
    owner: str = "s", at: float = 1.0, lifespan_s: float = 20.0, index: int = 0, **given: object
) -> Subscribe:
    return Subscribe(Heading(HERE), 3, "cars", index, owner, (5, 5), at, lifespan_s, **given)  # type: ignore[arg-type]


REQUEST = Request(Heading((4, 4), "p"), 0, "cars", 0, HERE, 35.0)


def unwanted(now: float) -> Prune:
    return Prune(Heading((4, 4), "p"), 0, "cars", 0, "p", "", now)


def notify(hops: int = 4, **given: object) -> Notify:
    return Notify(Heading(HERE), hops, EVENT, "p", 0, (9, 9), **given)  # type: ignore[arg-type]


def test_the_first_match_asks_and_each_change_goes_to_the_other_members_in_one_broadcast() -> None:
    cell = cell_of(("other", HERE), me="a")
    assert cell.on_record(advert(), 1.0) == [Broadcast(Keep(HERE, (advert(),)))]
    asked = replace(advert(asked=True), lifespan_s=18.0)
    assert cell.on_record(subscription(), 3.0) == [REQUEST, Broadcast(Keep(HERE, (subscription(), asked)))]
    assert cell.on_record(subscription("t"), 4.0) == [Broadcast(Keep(HERE, (subscription("t"),)))]
    assert cell.on_record(subscription("t", at=0.5), 4.0) == [], "an earlier one"


def test_a_publisher_that_notifies_all_points_is_neither_asked_nor_pruned() -> None:
    cell = cell_of(asks_again=False)
    assert cell.on_record(advert(), 1.0) == []
    assert cell.on_record(subscription(), 2.0) == []
    assert cell.on_record(subscription(at=3.0, lifespan_s=0.0), 3.0) == []
    assert cell.on_event(notify(), 3.0) == [Drop(DropReason.NO_SUBSCRIBER, "e1")]


def test_the_last_subscriber_that_leaves_prunes_the_publisher() -> None:
    cell = cell_of()
    cell.on_record(advert(), 1.0)
    cell.on_record(subscription(), 1.0)
    assert cell.on_record(subscription(at=2.0, lifespan_s=0.0), 2.0) == [unwanted(2.0)]
    assert cell.on_event(notify(), 3.0) == [Drop(DropReason.NO_SUBSCRIBER, "e1"), unwanted(3.0)]


def test_records_go_to_each_member_in_packets_of_so_many() -> None:
    cell = cell_of(("x", HERE), ("y", HERE), ("z", (1, 0)), keep_records=2)
    cell.routing.homes[HERE] = 4.0
    assert cell.on_record(advert(), 5.0) == [
        Send(member, Keep(HERE, (advert(),), home_for_s=1.0)) for member in ("x", "y")
    ]
    records = [subscription(name) for name in "abcde"]
    parts = [tuple(records[:2]), tuple(records[2:4]), tuple(records[4:])]
    assert cell._share(records, None) == [Send(member, Keep(HERE, part)) for member in ("x", "y") for part in parts]
    assert cell._share([], None) == []


def test_a_filter_that_cannot_be_read_is_dropped_by_record_and_by_keep() -> None:
    cell = cell_of()
    broken = subscription("b", filters=("cars: (",))
    assert cell.on_record(broken, 1.0) == [Drop(DropReason.MALFORMED_FILTER)]
    cell.on_keep(Keep(HERE, (broken, subscription()), home_for_s=2.0), 5.0)
    assert [record.owner for record in cell.table.records(CARS, 5.0)] == ["s"]
    assert cell.routing.homes == {HERE: 3.0}


@pytest.mark.parametrize(("now", "arrives"), [(9.9, True), (10.0, True), (10.1, False)])
def test_an_event_goes_on_until_its_lifespan_ends(now: float, arrives: bool) -> None:
    cell = cell_of()
    cell.on_record(subscription(), 0.0)
    event = Event("cars", lifespan_s=6.0).stamped(id="e1", source="p", time=4.0)
    onward = [Notify(Heading((5, 5), "s"), 4, event, "p", 0, HERE)] if arrives else []
    late = [] if arrives else [Drop(DropReason.EXPIRED, "e1")]
    assert cell.on_event(replace(notify(), event=event), now) == onward + late
    assert cell.on_event_around(NotifyAround(event, "p", 0, 4), now) == onward


def test_an_event_goes_to_those_that_want_it_and_not_back_to_its_publisher() -> None:
    cell = cell_of()
    for record in (
        subscription("p"), subscription("pruned", pruned=("p",)), subscription("other", filters=("cars: speed > 5",)),
        subscription("all"), subscription("one", filters=("cars: speed > 5", "cars: speed < 5")),
    ):  # fmt: skip
        cell.on_record(record, 1.0)
    event = Event("cars", {"speed": 3}).stamped(id="e1", source="p", time=0.0)
    expected = [Notify(Heading((5, 5), name), 4, event, "p", 0, HERE) for name in ("all", "one")]
    assert cell.on_event(replace(notify(), event=event), 2.0) == expected
    assert cell.on_event_around(NotifyAround(event, "p", 0, 4), 2.0) == expected


def test_a_subscriber_as_far_from_an_area_as_the_margin_still_gets_the_event() -> None:
    cell = cell_of(place_margin_m=10.0)
    centre = cell.routing.grid.centre((5, 5))
    for reach_m, reached in ((90.0, True), (89.9, False)):
        event = Event("cars", area=Area(Circle(reach_m), Position(centre.x_m - 100.0, centre.y_m)))
        assert cell.may_reach(event, subscription()) is reached
    assert cell.may_reach(EVENT, subscription())


def test_a_member_without_keys_passes_an_event_on_once_then_to_their_home_then_drops_it() -> None:
    cell = cell_of(("x", HERE), ("y", HERE))
    assert cell.on_event(notify(), 1.0) == [Send("y", notify(5, passed=True))]
    assert cell.on_event(notify(passed=True), 1.0) == [Drop(DropReason.UNKNOWN_TOPIC, "e1")]
    moved = replace(notify(passed=True), heading=Heading((7, 7)))
    assert cell.on_event(moved, 1.0) == [notify()]
    alone = cell_of()
    assert alone.on_event(replace(moved, passed=False), 1.0) == [notify()]


def test_a_prune_is_kept_with_the_subscription_and_the_last_one_goes_on_to_the_publisher() -> None:
    cell = cell_of()
    cell.on_record(advert(), 1.0)
    cell.on_record(subscription(pruned=("z",)), 1.0)
    prune = Prune(Heading(HERE), 0, "cars", 0, "p", "s", 0.9)
    assert cell.on_prune(prune, 2.0) == [], "it is older than the subscription"
    assert cell.on_prune(replace(prune, at=1.0), 2.0) == [unwanted(2.0)]
    assert cell.table.subscribed(CARS, 2.0) == [subscription(pruned=("p", "z"), lifespan_s=19.0)]


def test_a_prune_for_keys_that_have_moved_follows_them() -> None:
    cell = cell_of()
    prune = Prune(Heading((7, 7)), 2, "cars", 0, "p", "s", 1.0)
    assert cell.on_prune(prune, 2.0) == [replace(prune, heading=Heading(HERE))]
    assert cell.on_prune(replace(prune, heading=Heading(HERE)), 2.0) == []


def test_only_the_first_member_by_name_settles_what_another_shares() -> None:
    first, second = cell_of(("me2", HERE)), cell_of(("a", HERE))
    for cell, orders in ((first, [REQUEST, Broadcast(Keep(HERE, (advert(asked=True),)))]), (second, [])):
        assert cell.on_keep(Keep((1, 0), (advert(), subscription())), 1.0) == []
        assert len(cell.table) == 0, "it is another cell's"
        assert cell.on_keep(Keep(HERE, (advert(), subscription())), 1.0) == orders
        assert len(cell.table) == 2
        assert cell.routing.homes == {}


def test_a_newcomer_gets_what_it_lacks_after_half_of_the_delay_and_once() -> None:
    cell = cell_of(("new", HERE), ("z", HERE))
    assert cell.newcomer("new", 1.0) == [], "there is nothing to hand over"
    cell.on_record(subscription(), 1.0)
    assert cell.newcomer("new", 2.0, 5.0) == [StartTimer(("hand", "new"), at=2.05)]
    cell.newcomer("new", 2.0, 0.5)
    cell.newcomer("new", 2.0, 9.0)
    assert cell._handing == {"new": 0.5}
    assert cell.hand_keys_to("new", 3.0) == [Broadcast(Keep(HERE, (subscription(lifespan_s=18.0),), "new"))]
    assert cell._handing == {}
    assert cell.hand_keys_to("gone", 3.0) == []
    cell.newcomer("new", 4.0)
    assert cell.on_keep(Keep(HERE, (), "new"), 4.0) == [CancelTimer(("hand", "new"))]
    assert cell.on_keep(Keep(HERE, (), "new"), 4.0) == []


def test_the_last_to_leave_takes_all_keys_home_with_the_rest_of_their_lifespan() -> None:
    home = replace(subscription(index=2, lifespan_s=15.0), hops=0, heading=Heading((2, 0)))
    fresh = replace(advert(lifespan_s=15.0), hops=0)
    for last, asks_again, expected in (
        (True, True, [fresh, home]),
        (True, False, [replace(fresh, asked=True), home]),
        (False, True, []),
    ):
        cell = cell_of(asks_again=asks_again)
        cell.on_record(advert(asked=True), 0.0)
        cell.on_record(subscription(index=2), 0.0)
        cell.table.mark_asked(advert(), True, 0.0)
        assert cell.cell_left(last, 5.0) == expected
        assert len(cell.table) == 0


def test_keys_move_to_a_neighbour_that_is_closer_and_only_the_first_member_moves_them() -> None:
    for others, moves in (((), True), ((("a", HERE),), False)):
        cell = cell_of(*others)
        for index in (0, 1, 2):
            cell.on_record(subscription(index=index), 0.0)
        orders = cell.cell_appeared((1, 0), 5.0)
        home = [
            replace(subscription(index=index, lifespan_s=15.0), hops=0, heading=Heading((index, 0))) for index in (1, 2)
        ]
        assert orders == (home if moves else [])
        assert cell.table.points() == ([CARS] if moves else [CARS, ("cars", 1), ("cars", 2)])
    cell = cell_of()
    cell.on_record(subscription(), 0.0)
    assert cell.cell_appeared((1, 0), 5.0) == []


def test_the_last_to_stop_sends_each_key_to_the_neighbouring_cell_nearest_to_its_point() -> None:
    around = (("w", (-1, 0)), ("e", (1, 0)), ("e2", (1, 0)), ("far", (2, 0)))
    cell = cell_of(*around)
    cell.on_record(subscription(index=3), 0.0)
    cell.on_record(subscription(index=-3), 0.0)
    assert cell.stop(5.0) == [
        Send("w", replace(subscription(index=-3, lifespan_s=15.0), hops=1, heading=Heading((-3, 0)))),
        Send("e2", replace(subscription(index=3, lifespan_s=15.0), hops=1, heading=Heading((3, 0)))),
    ]
    with_others, alone = cell_of(*around, ("x", HERE)), cell_of(("far", (2, 0)))
    for other in (with_others, alone):
        other.on_record(subscription(), 0.0)
        assert other.stop(5.0) == []


def test_how_much_a_cell_keeps_is_noted_when_it_changes() -> None:
    cell = cell_of()
    assert cell.expire(0.0) == []
    cell.on_record(advert(lifespan_s=math.inf), 0.0)
    assert cell.expire(1.0) == [Note("records", "0,0: 1")]
    assert cell.expire(2.0) == []
    cell.on_record(subscription(), 0.0)
    assert cell.expire(3.0) == [Note("records", "0,0: 2")]
    assert cell.expire(20.0) == [unwanted(20.0), Note("records", "0,0: 1")]
    assert cell.expire(35.0) == [Note("records", "0,0: 0")], "no record stays longer than the cell allows"


def test_what_expires_is_settled_by_the_first_member_by_name_alone() -> None:
    cell = cell_of(("a", HERE))
    cell.on_record(advert(), 0.0)
    cell.on_record(subscription(lifespan_s=5.0), 0.0)
    assert cell.expire(5.0) == [Note("records", "0,0: 1")]
