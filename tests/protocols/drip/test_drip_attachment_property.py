"""Section IV.B's requirements: every node is attached, and to the nearest broker, soon after any change.

The truth is a breadth-first search from the brokers that live: on the tabletop every hop takes the same
time, so the nearest by delay are the nearest by hops.
"""

import math
from dataclasses import replace
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.packets import PAPER
from earshot.protocols.machine import FixedLocation
from earshot.protocols.tabletop import Tabletop
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario
from sizes import sized

SETTINGS = replace(PAPER, brokers=6, nearest=3, copies=2, jitter_s=0.0)
PERIOD_S = SETTINGS.announce_interval_s
UP_S = SETTINGS.bootstrap_s + 3 * PERIOD_S
ELECTED_S = 4 * SETTINGS.replace_after_s
"Longer than it takes to give up a broker, then the next ablest, who cannot be reached, and elect the one after."


def wrongly_attached(
    machines: dict[str, Any], graph: nx.Graph, slack: int = 0
) -> dict[str, tuple[str, dict[str, int]]]:
    """Nodes that could reach a broker and are not attached to one of the nearest, with what they chose."""
    brokers = sorted(name for name, machine in machines.items() if machine.broker is not None)
    wrong = {}
    for name, machine in machines.items():
        hops = nx.single_source_shortest_path_length(graph, name)
        away = {broker: hops[broker] for broker in brokers if broker in hops}
        if away and away.get(machine.local_broker, math.inf) > min(away.values()) + slack:
            wrong[name] = (machine.local_broker, away)
    return wrong


@st.composite
def networks(draw: st.DrawFn) -> nx.Graph:
    seed, count = draw(st.integers(0, 10**6)), draw(st.integers(8, 30))
    graph = nx.random_geometric_graph(count, draw(st.sampled_from([0.25, 0.35, 0.5])), seed=seed)
    return nx.relabel_nodes(graph, {number: f"n{number:02d}" for number in graph})


def table_of(graph: nx.Graph, seed: int) -> Tabletop:
    machines = []
    for name in sorted(graph):
        machine = Drip(name, SETTINGS, FixedLocation(), Random(f"{seed}:{name}"))
        machine.ability = Random(f"{seed}:ability:{name}").random()
        machines.append(machine)
    return Tabletop(machines, sorted(graph.edges))


@given(networks(), st.data())
@settings(max_examples=sized(25, 500), deadline=None)
def test_on_a_still_network_every_node_is_attached_to_the_nearest_within_two_periods_of_a_change(
    graph: nx.Graph, data: st.DataObject
) -> None:
    table = table_of(graph, data.draw(st.integers(0, 1000)))
    table.run(UP_S)
    assert wrongly_attached(table.machines, graph) == {}
    for _ in range(data.draw(st.integers(1, 4))):
        names = sorted(graph)
        brokers = [name for name in names if table.machines[name].broker is not None]  # type: ignore[attr-defined]
        match data.draw(st.sampled_from(["crash", "crash-broker", "cut", "link"])):
            case "crash":
                gone = data.draw(st.sampled_from(names))
            case "crash-broker" if brokers:
                gone = data.draw(st.sampled_from(brokers))
            case "cut" if graph.edges:
                a, b = data.draw(st.sampled_from(sorted(graph.edges)))
                graph.remove_edge(a, b)
                table.cut(a, b)
                gone = ""
            case _:
                a, b = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
                if a != b:
                    graph.add_edge(a, b)
                    table.link(a, b)
                gone = ""
        if gone and len(names) > 2:
            graph.remove_node(gone)
            del table.machines[gone]
            for peer in sorted(table.links[gone]):
                table.cut(gone, peer)
        run_until_calm(table, 2 * PERIOD_S)
        assert wrongly_attached(table.machines, graph) == {}
        # Give up who is gone, elect the next, and look again.
        run_until_calm(table, ELECTED_S)
        assert wrongly_attached(table.machines, graph) == {}


def run_until_calm(table: Tabletop, for_s: float) -> None:
    """Until for so long nobody has come forward or stepped down: where parts meet, brokers give way to abler
    ones, and where a part was cut off, its spares on the other side are found gone one after another."""
    for _ in range(20):
        seen = len(table.notes)
        table.run(table.now + for_s)
        if not any(topic == "broker" for _, topic, _ in table.notes[seen:]):
            return
    raise AssertionError("the election comes to no end")


@given(networks(), st.integers(0, 1000))
@settings(max_examples=sized(25, 500), deadline=None)
def test_in_every_connected_part_the_ablest_are_the_brokers_and_are_replaced_when_they_crash(
    graph: nx.Graph, seed: int
) -> None:
    table = table_of(graph, seed)
    table.run(UP_S)
    for _ in range(2):
        expected = set()
        parts = list(nx.connected_components(graph))
        alone = {name for part in parts if len(part) == 1 for name in part}  # nobody to be a broker for
        for part in parts:
            expected |= set(sorted(part, key=lambda name: table.machines[name].ability)[-6:])  # type: ignore[attr-defined]
        brokers = {name for name, machine in table.machines.items() if machine.broker is not None}  # type: ignore[attr-defined]
        assert brokers - alone == expected - alone
        if len(graph) <= 2 or not brokers:
            return
        gone = max(sorted(brokers), key=lambda name: (graph.degree(name), name))
        graph.remove_node(gone)
        del table.machines[gone]
        for peer in sorted(table.links[gone]):
            table.cut(gone, peer)
        run_until_calm(table, ELECTED_S)


@pytest.mark.parametrize("seed", range(sized(2, 40)))
def test_on_a_slow_network_every_node_is_attached_to_a_broker_that_was_nearest_within_two_periods(seed: int) -> None:
    """At walking pace, against the graph of who is in range, four times a second. An announcement is a
    few milliseconds on its way and brokers announce at different times, hence one hop of grace."""
    range_m, step_s, steps_back = 150.0, 0.25, int(2 * PERIOD_S / 0.25)
    scenario = load_scenario("base").with_(
        {
            "duration_s": 60.0,
            "area": {"width_m": 600.0, "height_m": 600.0},
            "medium.radio": "ideal",
            "medium.range_m": range_m,
            "nodes.node.count": 40,
            "nodes.node.mobility": {"kind": "random-waypoint", "speed_m_s": [0.5, 2.0], "pause_s": [0.0, 5.0]},
            "ability.kind": "uniform",
        }
    )
    log = Log()
    run(scenario, "drip", {"brokers": 6, "nearest": 3, "jitter_s": 0.0}, seed, log)
    notes = [row for chunk in log.chunks() for row in chunk.rows() if row["kind"] == "note"]
    trajectories = scenario.trajectories(seed)
    names = trajectories.names
    attached, brokers, waiting = dict.fromkeys(names, ""), set(), notes[::-1]
    recent: list[dict[str, set[str]]] = []
    checked = 0
    for step in range(int(scenario.duration_s / step_s)):
        now = step * step_s
        while waiting and waiting[-1]["time"] <= now:
            row = waiting.pop()
            topic, _, what = row["detail"].partition(": ")
            if topic == "attached":
                attached[row["node"]] = what
            elif topic == "broker":
                (brokers.add if what else brokers.discard)(row["node"])
        places = trajectories.positions(now)
        graph = nx.Graph()
        graph.add_nodes_from(names)
        away = np.linalg.norm(places[:, None] - places[None], axis=2)
        graph.add_edges_from((names[a], names[b]) for a, b in np.argwhere(np.triu(away <= range_m, 1)))
        near: dict[str, set[str]] = {}
        hops = {broker: nx.single_source_shortest_path_length(graph, broker) for broker in sorted(brokers)}
        for name in names:
            reached = {broker: found[name] for broker, found in hops.items() if name in found}
            near[name] = {broker for broker, count in reached.items() if count <= min(reached.values()) + 1}
        recent = [*recent[-steps_back:], near]
        if now > UP_S:
            for name in names:
                if all(name in one and one[name] for one in recent):
                    checked += 1
                    assert any(attached[name] in one[name] for one in recent), (now, name, attached[name])
    assert checked > 5000
