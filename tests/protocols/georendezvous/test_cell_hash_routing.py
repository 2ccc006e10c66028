from collections import Counter
from random import Random
from typing import Any

import pytest
from cell_field import Field, Footing, home_cell, in_cells, scattered
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import SettingsError
from earshot.protocols.georendezvous.cell_hash_routing import (
    Beacon,
    CellAppeared,
    CellHashRouting,
    CellSettings,
    Heading,
    NodeEntered,
    RoutedPacket,
    Walk,
)
from earshot.protocols.georendezvous.cells import largest_side_m, route
from earshot.protocols.machine import Broadcast, Drop, Machine, Send
from earshot.studies.georendezvous.cell_routes import CellGraph
from sizes import sized

RANGE_M = 100.0


def paper_cells(**given: Any) -> CellSettings:
    """The paper's cells: as small as it takes for all nodes of neighbouring cells to hear each other."""
    written = {"links": "own", "neighbour_lifespan_s": 3.5, "home_memory_s": 10.0, "hop_limit": 2000}
    return CellSettings(**{**written, **given})


GRID = paper_cells(range_m=RANGE_M).grid


class Letter(RoutedPacket, frozen=True, tag="test-letter"):
    """A packet that notes the cells it has been in, as tests may."""

    number: int


class Walker(Machine):
    """A machine with nothing but Cell Hash Routing; it keeps what arrives and what its routing reports."""

    name = "walker"
    Settings = CellSettings

    def __init__(self, node, settings, location, random):
        super().__init__(node, settings, location, random)
        self.routing = CellHashRouting(node, settings, random)
        self.got = []
        self.reported = []

    def start(self, now):
        return self.routing.start(self.location.position(now), now)

    def hear(self, packet, sender, now):
        if isinstance(packet, Beacon):
            change = self.routing.on_beacon(packet, sender, now)
            self.reported += [] if change is None else [change]
            return []
        return self.post(packet, now)

    def wake(self, timer, now):
        self.update_cell(now)
        if timer == "beacon":
            return [*self.effects(), *self.routing.on_beacon_timer(now)]
        return [*self.effects(), *(effect for packet in self.routing.listened() for effect in self.post(packet, now))]

    def unreachable(self, packet, peer, now):
        self.routing.forget(peer)
        return self.take_step(self.routing.unreachable(packet, now)) if isinstance(packet, RoutedPacket) else []

    def post(self, letter, now):
        self.update_cell(now)
        return [*self.effects(), *self.take_step(self.routing.route(letter, now))]

    def update_cell(self, now):
        left = self.routing.move_to(self.location.position(now))
        if left is not None:
            self.broadcast(self.routing.beacon())
            self.reported.append(("left", left, left not in self.routing.members))

    def take_step(self, step):
        if isinstance(step, RoutedPacket):
            self.got.append(step)
            return []
        return [] if step is None else [step]

    def stop(self, now):
        return [Broadcast(Beacon(None))]


def walkers(places, **changed):
    chosen = paper_cells(range_m=RANGE_M, **changed)
    field = Field(places, RANGE_M, lambda node, footing, random: Walker(node, chosen, footing, random))
    field.run(1.5)
    return field


def walk(field, start, target, node=""):
    """Post a letter and give the nodes it visits after its start."""
    before = len(field.sent)
    field.do(start, "post", Letter(Heading(target, node), 0, before))
    field.run(field.now + 0.5)
    return [sender for sender, packet in field.sent[before:] if isinstance(packet, Letter)]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"range_m": 0.0}, "range_m must be a positive number of metres, got 0.0"),
        ({"cell_side_m": 36.0}, "cell_side_m = 36 is too large for range_m = 100.* at most .* = 35.3553"),
        ({"cell_side_m": -1.0}, "cell_side_m must be a positive number"),
        ({"origin_x_m": float("nan")}, "origin_x_m must be a number of metres, got nan"),
        ({"beacon_interval_s": 0.0}, "beacon_interval_s must be a positive number"),
        ({"neighbour_lifespan_s": 1.0}, "neighbour_lifespan_s must be longer than 1.1 beacon intervals"),
        ({"home_memory_s": -1.0}, "home_memory_s must not be negative, got -1.0"),
        ({"hop_limit": 0}, "hop_limit must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_the_reason(wrong, reason):
    with pytest.raises(SettingsError, match=reason):
        paper_cells(**wrong)


def test_the_default_side_is_the_largest_that_the_range_allows():
    assert paper_cells(range_m=80.0).grid.side_m == largest_side_m(80.0)
    assert paper_cells(range_m=80.0, cell_side_m=20.0).grid.side_m == 20.0


def test_beacons_show_which_nodes_are_in_which_cell():
    field = walkers(in_cells({"a": (0, 0), "b": (0, 0), "c": (1, 1), "d": (5, 5)}, GRID))
    routing = field.machines["a"].routing
    assert {cell: sorted(members) for cell, members in routing.members.items()} == {(0, 0): ["b"], (1, 1): ["c"]}
    assert routing.neighbourhood == 0b10
    assert (routing.others(), routing.leads(), field.machines["b"].routing.leads()) == (["b"], True, False)


def test_a_known_neighbour_in_its_known_cell_costs_no_more_than_a_look_up():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0)}, GRID))
    assert field.do("a", "hear", Beacon((1, 0)), "b") == []
    assert field.machines["a"].routing.neighbours["b"].heard_at == field.now


def test_a_neighbour_that_falls_silent_is_forgotten():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0)}, GRID))
    field.crash("b")
    field.run(3.0)
    assert field.machines["a"].routing.neighbourhood == 1
    field.run(7.0)
    assert field.machines["a"].routing.neighbourhood == 0


def test_a_node_that_sends_a_farewell_is_forgotten_at_once():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0)}, GRID))
    assert field.do("b", "stop") == [Broadcast(Beacon(None))]
    field.run(field.now + 0.01)
    assert field.machines["a"].routing.neighbours == {}


def test_nodes_listen_before_they_route():
    places = in_cells({"a": (0, 0), "b": (1, 0)}, GRID)
    chosen = paper_cells(range_m=RANGE_M)
    field = Field(places, RANGE_M, lambda node, footing, random: Walker(node, chosen, footing, random))
    assert field.do("a", "post", Letter(Heading((1, 0)), 0, 1)) == []
    field.run(1.5)
    assert field.machines["b"].got == [Letter(Heading((1, 0)), 1, 1)]


def test_the_next_hop_is_a_random_member_of_the_next_cell():
    places = in_cells({"a": (0, 0), "b1": (1, 0), "b2": (1, 0), "b3": (1, 0)}, GRID)
    field = walkers(places)
    for number in range(60):
        field.do("a", "post", Letter(Heading((1, 0)), 0, number))
    field.run(2.0)
    got = Counter({node: len(field.machines[node].got) for node in ("b1", "b2", "b3")})
    assert sum(got.values()) == 60
    assert min(got.values()) > 10


def test_a_packet_for_a_node_goes_straight_to_it_from_the_cell_next_to_it():
    places = in_cells({"a": (0, 0), "b1": (1, 0), "c1": (2, 0), "c2": (2, 0), "c3": (2, 0)}, GRID)
    field = walkers(places)
    for _ in range(10):
        assert walk(field, "a", (2, 0), node="c2") == ["a", "b1"]
    assert len(field.machines["c2"].got) == 10


def test_a_packet_for_a_node_of_the_same_cell_takes_one_hop():
    field = walkers(in_cells({"a": (0, 0), "b": (0, 0)}, GRID))
    assert walk(field, "a", (0, 0), node="b") == ["a"]
    assert field.machines["b"].got == [Letter(Heading((0, 0), "b"), 1, field.machines["b"].got[0].number)]


def test_a_node_that_moved_next_door_is_still_found_and_one_that_went_far_is_a_logged_loss():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0), "c": (2, 0), "roamer": (2, 0)}, GRID))
    field.move("roamer", GRID.centre((3, 0)))
    field.run(field.now + 1.2)
    walk(field, "a", (2, 0), node="roamer")
    assert len(field.machines["roamer"].got) == 1
    field.move("roamer", GRID.centre((30, 0)))
    field.run(field.now + 5.0)
    walk(field, "a", (2, 0), node="roamer")
    assert field.drops == [("c", "receiver-moved")]


def test_a_member_that_does_not_answer_is_replaced_by_another():
    field = walkers(in_cells({"a": (0, 0), "b1": (1, 0), "b2": (1, 0), "b3": (1, 0)}, GRID))
    field.crash("b1")
    field.crash("b3")
    for number in range(8):
        field.do("a", "post", Letter(Heading((1, 0)), 0, number))
    field.run(field.now + 0.1)
    assert sorted(letter.number for letter in field.machines["b2"].got) == list(range(8))
    assert {letter.hops for letter in field.machines["b2"].got} == {1}


def test_a_cell_whose_last_member_does_not_answer_is_walked_around():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0), "above": (1, 1), "c": (2, 0)}, GRID))
    field.crash("b")
    assert walk(field, "a", (2, 0)) == ["a", "a", "above"]
    assert len(field.machines["c"].got) == 1


def test_in_perimeter_mode_too_a_member_that_does_not_answer_is_replaced():
    wall = {f"{column}-{row}": (column, row) for column in range(5) for row in range(5) if column != 2 or row == 4}
    field = walkers(in_cells({**wall, "spare": (1, 4)}, GRID))
    field.crash("1-4")
    walk(field, "0-2", (4, 2))
    assert len(field.machines["4-2"].got) == 1
    assert field.machines["4-2"].got[0].hops == len(route((0, 2), (4, 2), set(wall.values()))) - 1


CORNER = {"1-2": (1, 2), "2-2": (2, 2), "2-1": (2, 1), "2-0": (2, 0)}
"Cells around (1, 1), whose home is (1, 2)."


def test_a_cell_that_has_walked_its_home_perimeter_remembers_that_it_is_home():
    field = walkers(in_cells(CORNER, GRID), home_memory_s=3.0)
    home = field.machines["1-2"]
    first, second = walk(field, "2-2", (1, 1)), walk(field, "2-2", (1, 1))
    assert (first, second) == (["2-2", "1-2", "2-2", "2-1", "2-0", "2-1", "2-2"], ["2-2"])
    assert (list(home.routing.homes), len(home.got)) == ([(1, 1)], 2)
    field.run(field.now + 4.5)
    assert home.routing.homes == {}
    assert walk(field, "2-2", (1, 1)) == first


def test_a_packet_for_a_node_that_left_an_empty_cell_behind_is_not_walked_around_it():
    field = walkers(in_cells(CORNER, GRID))
    assert walk(field, "2-2", (1, 1), node="roamer") == ["2-2"]
    assert field.drops == [("1-2", "receiver-moved")]


def test_a_node_that_leaves_its_cell_forgets_what_that_was_home_to():
    field = walkers(in_cells(CORNER, GRID), home_memory_s=60.0)
    walk(field, "2-2", (1, 1))
    assert list(field.machines["1-2"].routing.homes) == [(1, 1)]
    field.move("1-2", GRID.centre((1, 3)))
    field.run(field.now + 1.2)
    assert field.machines["1-2"].routing.homes == {}


def test_a_walk_that_goes_in_circles_starts_again():
    ring = {f"{x},{y}": (x, y) for x in range(-3, 4) for y in range(-3, 4) if max(abs(x), abs(y)) == 3}
    field = walkers(in_cells(ring, GRID))
    gone = Walk(entry=(1, 0), first=0, at=(3, 1), before=None, steps=1, mark=((1, 0), 0))
    field.do("3,0", "hear", Letter(Heading((0, 0), "", gone), 7, 1), "3,1")
    field.run(field.now + 1.0)
    assert field.drops == []
    home = home_cell((0, 0), ring.values())
    assert [len(machine.got) for node, machine in field.machines.items() if ring[node] == home] == [1]


def test_a_walk_whose_entry_is_gone_starts_again():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0), "c": (2, 0)}, GRID))
    lost = Letter(Heading((5, 5), "", Walk((1, 1), 6, (0, 0), None, 1, ((1, 1), 6))), 9, 1)
    (sent,) = field.do("b", "hear", lost, "a")
    assert (sent.peer, sent.packet.heading) == ("c", Heading((5, 5)))


def test_the_hop_limit_ends_a_walk():
    field = walkers(in_cells({f"n{column}": (column, 0) for column in range(6)}, GRID), hop_limit=3)
    walk(field, "n0", (5, 0))
    assert field.drops == [("n3", "hop-limit")]
    field.do("n0", "hear", Letter(Heading((5, 0)), -(10**9), 1), "n1")
    assert field.drops[1:] == [("n0", "hop-limit")]
    assert field.machines["n0"].unreachable(Beacon((0, 0)), "nobody", field.now) == []


def test_a_node_that_enters_another_cell_sends_a_beacon_at_once():
    field = walkers(in_cells({"a": (0, 0), "b": (0, 0), "c": (1, 0)}, GRID))
    field.move("a", GRID.centre((1, 0)))
    letter = Letter(Heading((0, 0)), 0, 1)
    assert field.do("a", "post", letter) == [
        Broadcast(Beacon((1, 0), fresh=True)),
        Send("b", Letter(Heading((0, 0)), 1, 1)),
    ]
    field.run(field.now + 0.01)
    assert field.machines["a"].reported[-1] == ("left", (0, 0), False)
    assert field.machines["c"].reported[-1] == NodeEntered("a")


def test_the_last_of_a_cell_knows_that_it_is_and_neighbours_see_cells_appear():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0)}, GRID))
    field.move("a", GRID.centre((1, 1)))
    field.run(field.now + 1.2)
    assert field.machines["a"].reported[-1] == ("left", (0, 0), True)
    assert field.machines["b"].reported[-1] == CellAppeared((1, 1))


def test_a_sender_from_a_cell_that_does_not_touch_sends_the_packet_back_to_greedy_mode():
    field = walkers(in_cells({"a": (0, 0), "b": (1, 0)}, GRID))
    lost = Letter(Heading((4, 0), "", Walk((0, 0), 2, (7, 7), None, 1, ((0, 0), 2))), 5, 1)
    assert field.do("a", "hear", lost, "stranger") == [Send("b", Letter(Heading((4, 0)), 6, 1))]


@given(st.randoms(use_true_random=False), st.sampled_from([15.0, 25.0, 45.0]))
@settings(max_examples=sized(10, 400))
def test_machines_take_the_cells_that_the_pure_router_takes_and_all_find_one_home_cell(random, degree):
    places, side_m = scattered(random.choice([20, 50, 90]), degree, RANGE_M, random)
    cells = {node: GRID.cell_of(at) for node, at in places.items()}
    populated = set(map(tuple, CellGraph.of(cells.values()).largest_part().populated.tolist()))
    places = {node: at for node, at in places.items() if cells[node] in populated}
    field = walkers(places, home_memory_s=0.0)
    edge = int(side_m / GRID.side_m) + 1
    for _ in range(4):
        target = (random.randint(-1, edge), random.randint(-1, edge))
        for start in random.sample(sorted(places), min(5, len(places))):
            path = [cells[node] for node in walk(field, start, target)]
            expected = route(cells[start], target, populated)
            arrived = [node for node, machine in field.machines.items() if machine.got]
            assert [*path, *(cells[node] for node in arrived)] == expected
            assert [cells[node] for node in arrived] == [home_cell(target, populated)]
            field.machines[arrived[0]].got.clear()
    assert field.drops == []


def test_a_machine_can_stand_alone():
    walker = Walker("a", paper_cells(), Footing(GRID.centre((0, 0))), Random(1))
    walker.start(0.0)
    walker.wake("listened", 1.2)
    assert walker.post(Letter(Heading((9, 9)), 0, 1), 1.2) == []
    assert walker.got == [Letter(Heading((9, 9)), 0, 1)]
    assert walker.post(Letter(Heading((0, 0), "ghost"), 0, 2), 1.2) == [Drop("receiver-moved")]
