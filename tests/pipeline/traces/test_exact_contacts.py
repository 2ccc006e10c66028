"""Exact contacts against the simulator's own neighbours, at many moments."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from earshot.pipeline.oracle.workloads import knot_rows
from earshot.pipeline.traces.exact_contacts import (
    ContactColumns,
    _meetings,
    _merged,
    contact_columns,
    contacts_of_legs,
    joined,
    legs_in_slices,
    legs_of,
    legs_within,
    no_contacts,
    rows_of,
    with_script,
)
from earshot.records.trajectories import Legs, Trajectories, Trajectory
from earshot.simulation.engine.oracle import is_up, up_intervals
from earshot.simulation.faults import plan
from earshot.simulation.media.links import LinkChange, LinkScript, Partitioned, scripted
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.scenario.library import load_scenario

END_S = 60.0
RANGE_M = 70.0
SMALL = {
    "duration_s": END_S,
    "warm_up_s": 0.0,
    "cool_down_s": 0.0,
    "area": {"width_m": 300.0, "height_m": 300.0},
    "medium": {"kind": "unit-disk", "range_m": RANGE_M},
    "nodes.node.count": 14,
    "nodes.node.mobility": {"kind": "random-waypoint", "speed_m_s": [1.0, 15.0], "pause_s": [0.0, 5.0]},
}
CASES: dict[str, dict[str, Any]] = {
    "a plain radio": {},
    "churn": {"faults.churn": {"mean_presence_s": 15.0, "mean_absence_s": 5.0}},
    "a line": {"faults.partitions": [{"start_s": 10.0, "end_s": 45.0, "line": [[150, 40], [140, 250]]}]},
    "a circle": {"faults.partitions": [{"start_s": 5.0, "end_s": 40.0, "area": "circle:80m at 100,120"}]},
    "an ellipse": {"faults.partitions": [{"start_s": 5.0, "end_s": 40.0, "area": "ellipse:120x50m@30 at 150,150"}]},
    "a polygon": {
        "faults.partitions": [{"start_s": 0.0, "end_s": 60.0, "area": "polygon:0,0 200,20 180,200 100,90 at 40,40"}]
    },
    "links": {
        "medium.links.changes": [
            {"time_s": 5.0, "a": "node-00", "b": "node-01", "state": "up"},
            {"time_s": 20.0, "a": "node-00", "b": "node-01", "state": "down"},
            {"time_s": 30.0, "a": "node-01", "b": "node-00", "state": "free"},
        ],
        "medium.links.rotations": [
            {"links": [["node-02", "node-03"], ["node-02", "node-04"]], "interval_s": 3.0, "pauses": 1}
        ],
    },
    "a graph": {
        "medium.links.graph": [["node-00", "node-01"], ["node-01", "node-02"]],
        "medium.links.changes": [{"time_s": 8.0, "a": "node-00", "b": "node-01", "state": "down"},
                                 {"time_s": 18.0, "a": "node-00", "b": "node-01", "state": "free"},
                                 {"time_s": 18.0, "a": "node-05", "b": "node-01", "state": "up"}],
    },
}  # fmt: skip


def legs_from(trajectories: Trajectories, end_s: float = END_S) -> Legs:
    number = {name: i for i, name in enumerate(trajectories.names)}
    rows = sorted(
        (number[row["node"]], row["time"], row["x_m"], row["y_m"]) for row in knot_rows("", trajectories, end_s)
    )
    node, time, x, y = (np.array(column) for column in zip(*rows, strict=True))
    return legs_of(node.astype(np.int64), time, x, y, math.inf)


def linked(contacts: ContactColumns, time: float) -> set[tuple[int, int]]:
    now = (contacts.start <= time) & (time <= contacts.end)
    return {(min(pair), max(pair)) for pair in zip(contacts.a[now].tolist(), contacts.b[now].tolist(), strict=True)}


@pytest.mark.parametrize("case", CASES)
def test_contacts_are_the_simulators_neighbours(case: str) -> None:
    scene = load_scenario("base").with_({**SMALL, **CASES[case]})
    trajectories, moments = scene.trajectories(seed=4), sorted(Random(5).uniform(0, END_S) for _ in range(400))
    neighbours = neighbours_within(trajectories, RANGE_M)
    if scene.medium.links:
        neighbours = scripted(trajectories.names, neighbours, scene.medium.links)
    if scene.faults.partitions:
        neighbours = Partitioned(trajectories, neighbours, scene.faults.partitions)
    up = up_intervals(trajectories, plan(scene.faults, trajectories.names, END_S, 4))
    spans = [(node, *span) for node, some in enumerate(up) for span in some]
    node, start, end = (np.array(column) for column in zip(*spans, strict=True))
    legs = legs_within(legs_from(trajectories), node.astype(np.int64), start, end)
    contacts = no_contacts()
    if scene.medium.links.graph is None:
        contacts = contacts_of_legs(legs, RANGE_M, scene.faults.partitions)
    if scene.medium.links:
        contacts = with_script(contacts, legs, trajectories.names, scene.medium.links, END_S)
    seen = 0
    for now in moments:
        there = [i for i in range(len(trajectories)) if is_up(up[i], now)]
        truth = {(i, j) for i in there for j in neighbours.of(i, now) if i < j and j in there}
        assert linked(contacts, now) == truth
        seen += len(truth)
    assert seen > 300


def test_cutting_time_into_stretches_changes_no_link() -> None:
    scene = load_scenario("base").with_(SMALL)
    legs = legs_from(scene.trajectories(seed=1))
    whole = contacts_of_legs(legs, RANGE_M)
    pieces, numbers = legs_in_slices(legs, 0.0, 7.0)
    parts = [contacts_of_legs(rows_of(pieces, numbers == number), RANGE_M) for number in np.unique(numbers)]
    for now in np.linspace(0.0, END_S, 241):  # the cuts too
        assert set().union(*(linked(part, now) for part in parts)) == linked(whole, now)


def test_the_border_of_the_range_and_the_moments_of_coming_and_going() -> None:
    still = Trajectory.standing("a", 0.0, 0.0)
    passing = Trajectory.through("b", [(0.0, -200.0, 0.0), (40.0, 200.0, 0.0)])
    touching = Trajectory.through("c", [(0.0, -500.0, 100.0), (10.0, -500.0, 100.0), (50.0, 500.0, 100.0)])
    found = contacts_of_legs(legs_from(Trajectories([still, passing])), 100.0)
    assert [tuple(row) for row in zip(*found, strict=True)] == [(0, 1, 10.0, 30.0)]
    found = contacts_of_legs(legs_from(Trajectories([still, touching])), 100.0)
    assert linked(found, 30.0) == {(0, 1)}
    assert linked(found, 29.99) == linked(found, 30.01) == set()


def test_a_jump_meets_nobody_on_its_way() -> None:
    jumping = Trajectory.through("a", [(0.0, 0.0, 0.0), (5.0, 0.0, 0.0), (5.0, 1000.0, 0.0), (9.0, 1000.0, 0.0)])
    others = [Trajectory.standing(name, x, 0.0) for name, x in (("b", 0.0), ("c", 500.0), ("d", 1000.0))]
    found = contacts_of_legs(legs_from(Trajectories([jumping, *others]), 10.0), 100.0)
    assert linked(found, 4.999) == {(0, 1)}
    assert linked(found, 5.0) == linked(found, 10.0) == {(0, 3)}
    assert {(a, b) for a, b in zip(found.a, found.b, strict=True)} == {(0, 1), (0, 3)}


def test_a_node_is_away_in_a_long_gap_and_there_at_a_single_sample() -> None:
    node = np.array([0, 0, 0, 1, 1, 2], np.int64)
    time = np.array([0.0, 1.0, 60.0, 0.0, 60.0, 60.0])
    place = np.zeros(6)
    legs = legs_of(node, time, place, place, max_gap_s=59.5)
    found = contacts_of_legs(legs, 10.0)
    assert linked(found, 0.5) == set(), "node 1 is seen at 0 and at 60, and away between"
    assert linked(found, 0.0) == {(0, 1)}
    assert linked(found, 60.0) == {(0, 1), (0, 2), (1, 2)}
    assert linked(found, 30.0) == set()


@pytest.mark.parametrize("samples", ["together", "each at its own time", "some missing"])
def test_a_sampled_walk_has_the_contacts_of_every_pair_of_legs(samples: str) -> None:
    """Nodes that are all sampled together are found by a shorter way; each way agrees with all pairs tried."""
    chance = np.random.default_rng(8)
    nodes, steps = 12, 15
    node, time = np.repeat(np.arange(nodes), steps), np.tile(np.arange(float(steps)), nodes)
    if samples == "each at its own time":
        time += chance.uniform(0, 0.9, nodes)[node]
    x, y = np.cumsum(chance.normal(0, 25.0, (2, nodes, steps)), axis=2).reshape(2, -1)
    kept = chance.random(len(node)) > (0.2 if samples == "some missing" else 0.0)
    legs = legs_of(node[kept], time[kept], x[kept], y[kept], math.inf)
    found = contacts_of_legs(legs, RANGE_M)
    for moment in chance.uniform(1, steps - 1, 300):
        here = (legs.start <= moment) & (moment < legs.end)
        at = {
            int(who): (x_m + (moment - start) * east, y_m + (moment - start) * north)
            for who, start, _, x_m, y_m, east, north in zip(*rows_of(legs, here), strict=True)
        }
        near = {(a, b) for a in at for b in at if a < b and math.dist(at[a], at[b]) <= RANGE_M}
        assert linked(found, moment) == near
    ends, starts = (
        set(zip(found.a.tolist(), found.b.tolist(), column.tolist(), strict=True))
        for column in (found.end, found.start)
    )
    assert not ends & starts  # contacts that touch are one


def test_the_meetings_of_a_pair_are_found_in_order_of_time() -> None:
    """Joining them then takes no sort by time, which would be a third of the whole search."""
    chance = np.random.default_rng(9)
    nodes, steps = 12, 15
    node, time = np.repeat(np.arange(nodes), steps), np.tile(np.arange(float(steps)), nodes)
    x, y = np.cumsum(chance.normal(0, 25.0, (2, nodes, steps)), axis=2).reshape(2, -1)
    pieces, number = legs_in_slices(legs_of(node, time, x, y, math.inf), 0.0, 1.0)
    found = joined(list(_meetings(pieces, number, RANGE_M, ())))
    starts: dict[tuple[int, int], list[float]] = {}
    for a, b, start, _ in zip(*(column.tolist() for column in found), strict=True):
        starts.setdefault((a, b), []).append(start)
    assert all(times == sorted(times) for times in starts.values())
    assert max(map(len, starts.values())) > 5


def test_contacts_of_one_pair_are_joined_in_whatever_order_they_were_found() -> None:
    """Within a slice of time the legs of a node need not be in order of time."""
    parts = contact_columns([(0, 1, 2.0, 3.0), (2, 1, 0.0, 9.0), (0, 1, 0.0, 1.0), (0, 1, 1.0, 2.0), (0, 1, 4.0, 5.0)])
    merged = _merged(parts)
    rows = list(zip(*(column.tolist() for column in merged), strict=True))
    assert rows == [(0, 1, 0.0, 3.0), (0, 1, 4.0, 5.0), (2, 1, 0.0, 9.0)]


def test_a_row_with_no_leg_on_either_side_is_a_leg_of_no_length_even_the_first() -> None:
    node, time = np.array([0, 1, 1, 2]), np.array([5.0, 0.0, 10.0, 7.0])
    legs = legs_of(node, time, np.array([1.0, 0.0, 20.0, 4.0]), np.zeros(4), 60.0)
    assert (legs.node.tolist(), legs.start.tolist(), legs.end.tolist()) == (
        [0, 1, 2],
        [5.0, 0.0, 7.0],
        [5.0, 10.0, 7.0],
    )
    assert (legs.x_m.tolist(), legs.x_m_s.tolist()) == ([1.0, 0.0, 4.0], [0.0, 2.0, 0.0])


def test_a_script_holds_links_up_and_down_while_both_nodes_are_there_and_leaves_the_rest_to_the_radio() -> None:
    """a and b are near from 0 to 10 s, c is there from 4 to 8 s; a node d that the script names is not there."""
    before = math.nextafter(2.0, -math.inf)
    legs = Legs(*(np.array(column, dtype=float) for column in zip(
        (0, 0, 10, 0, 0, 0, 0), (1, 0, 10, 1, 0, 0, 0), (2, 4, 8, 500, 0, 0, 0), strict=True
    )))  # fmt: skip
    by_radio = contact_columns([(0, 1, 0.0, 10.0)])

    def found(script: LinkScript, until_s: float = 99.0) -> list[tuple[Any, ...]]:
        contacts = with_script(by_radio, legs, ["a", "b", "c"], script, until_s)
        return sorted(zip(*(column.tolist() for column in contacts), strict=True))

    changes = (
        LinkChange(time_s=5.0, a="b", b="a", state="free"), LinkChange(time_s=2.0, a="a", b="b", state="down"),
        LinkChange(time_s=7.0, a="c", b="a", state="up"), LinkChange(time_s=1.0, a="a", b="d", state="up"),
    )  # fmt: skip
    assert found(LinkScript(changes=changes)) == [
        (0, 1, 0.0, before), (0, 1, 5.0, 10.0), (0, 2, 7.0, 8.0),
    ]  # fmt: skip
    assert found(LinkScript(changes=changes), until_s=5.0) == [(0, 1, 0.0, before), (0, 1, 5.0, 10.0)]
    assert found(LinkScript(changes=changes), until_s=4.9) == [(0, 1, 0.0, before)]
    assert found(LinkScript(changes=changes[1:2])) == [(0, 1, 0.0, before)]
    nothing = with_script(no_contacts(), legs, ["a", "b", "c"], LinkScript(graph=(("c", "b"), ("d", "a"))), 9.0)
    assert sorted(zip(*(column.tolist() for column in nothing), strict=True)) == [(1, 2, 4.0, 8.0)]
    of_graph = LinkScript(graph=(("a", "b"),), changes=(LinkChange(time_s=2.0, a="a", b="b", state="down"),))
    graphed = with_script(no_contacts(), legs, ["a", "b", "c"], of_graph, 9.0)
    assert sorted(zip(*(column.tolist() for column in graphed), strict=True)) == [(0, 1, 0.0, before)]
