"""GeoRendezvous' experiments with machines: the cost of an unused rendezvous cell, and what the paper leaves
out: nodes that move, nodes that crash, networks of 30,000 nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import numpy as np

from earshot.errors import ScenarioError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.protocols.georendezvous.rendezvous_cell import Notify, Prune, Request
from earshot.protocols.georendezvous.rendezvous_table import Subscribe
from earshot.protocols.georendezvous.settings import AS_WRITTEN, PAPER, GeoRendezvousSettings
from earshot.protocols.machine import Announcement, FixedLocation
from earshot.protocols.tabletop import Tabletop
from earshot.records import Kind
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.mobility import Trajectories
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.studies.figures import Row
from earshot.studies.georendezvous.cell_routes import CellGraph, Cells, cells_of
from earshot.studies.georendezvous.paths import RANGE_M, StillNetwork, draw_network, range_share
from earshot.studies.study import Case

FEW_BEACONS: dict[str, Any] = {"beacon_interval_s": 30.0, "neighbour_lifespan_s": 100.0}
"Settings for nodes that do not move: few beacons are enough."


def messages(case: Case) -> Sequence[Row]:
    """Section 4: messages for rendezvous cells that a new subscriber tries and does not keep, where the
    publisher is notifying all of them already. A message counts once, however many hops it takes."""
    n, seed = case["n"], case["seed"]
    quiet = {**FEW_BEACONS, "renew_interval_s": 500.0, "record_lifespan_s": 1000.0}
    settings = replace(PAPER, rendezvous=n, nearest=n, range_m=RANGE_M, **quiet)
    table, names = _table(case["nodes"], seed, settings)
    random = Random(f"{seed}:messages")
    publisher, *others = random.sample(names, len(names))
    background, others = others[: case["background"]], others[case["background"] :]
    table.run(40.0)
    machine = table.machines[publisher]
    assert isinstance(machine, GeoRendezvous)
    # The setting asks for a publisher that notifies all its rendezvous cells: look for such a topic.
    for number in range(20):
        topic = f"topic {number}"
        table.do(publisher, "announce", Announcement(EventType(topic)))
        table.run(table.now + 1.0)
        for node in background:
            _subscribe(table, node, topic)
        table.run(table.now + 1.0)
        _publish(table, publisher, topic, f"{topic}, first")
        table.run(table.now + 4.0)
        if len(machine.published[topic].asking) == n:
            break
    # A member of a rendezvous cell need not send a message there, so newcomers are not members.
    keepers = {node for node in others if _keeps(table, node, topic)}
    newcomers = [node for node in others if node not in keepers][: case["newcomers"]]
    rows: list[Row] = []
    for node in newcomers:
        notified = set(machine.published[topic].asking)
        before = len(table.sent)
        _subscribe(table, node, topic)
        table.run(table.now + 1.0)
        _publish(table, publisher, topic, f"for {node}")
        table.run(table.now + 2.0)
        new = [packet for _, packet in table.sent[before:]]
        subscriber = table.machines[node]
        assert isinstance(subscriber, GeoRendezvous)
        kept = subscriber.subscribed[topic].choices[publisher].best
        unused = notified - {kept}
        points = {
            "subscriptions": {p.index for p in new if isinstance(p, Subscribe) and p.owner == node},
            "notifications": {p.index for p in new if isinstance(p, Notify) and p.heading.node == node},
            "prunes": {p.index for p in new if isinstance(p, Prune) and p.subscriber == node},
        }
        unnecessary = {kind: len(indexes & unused) for kind, indexes in points.items()}
        rows.append(
            {
                "notified": len(notified),
                **unnecessary,
                "unnecessary": sum(unnecessary.values()),
                "expected": 3 * len(unused),
                "to_publisher": sum(isinstance(p, Request | Prune) and p.heading.node == publisher for p in new),
            }
        )
    return rows


def _table(nodes: int, seed: int, settings: GeoRendezvousSettings) -> tuple[Tabletop, list[str]]:
    """A still network of machines."""
    network = draw_network(nodes, seed)
    settings = replace(settings, width_m=network.side_m, height_m=network.side_m)
    places = {f"n{i:05d}": Position(float(x), float(y)) for i, (x, y) in enumerate(network.positions)}
    machines = [
        GeoRendezvous(node, settings, FixedLocation(at), Random(f"{seed}:{node}")) for node, at in places.items()
    ]
    names = list(places)
    away = np.linalg.norm(network.positions[:, None] - network.positions[None], axis=2)
    links = [(names[a], names[b]) for a, b in np.argwhere(np.triu(away <= RANGE_M, 1)).tolist()]
    return Tabletop(machines, links), names


def _keeps(table: Tabletop, node: str, topic: str) -> bool:
    """Whether the node is a member of one of the topic's rendezvous cells."""
    machine = table.machines[node]
    assert isinstance(machine, GeoRendezvous)
    return any((topic, index) in machine.rendezvous.table for index in range(machine.settings.rendezvous))


def _subscribe(table: Tabletop, node: str, topic: str) -> None:
    table.do(node, "subscribe", Subscription(f"{node}/{topic}", node, Filter.of_type(topic)))


def _publish(table: Tabletop, node: str, topic: str, id: str) -> None:
    table.do(node, "publish", Event(topic).stamped(id=id, source=node, time=table.now))


def moving(case: Case) -> Sequence[Row]:
    """Random waypoint at one speed, without pauses."""
    speed = case["speed_m_s"]
    changes: dict[str, Any] = {}
    if speed > 0:
        mobility = {"kind": "random-waypoint", "speed_m_s": [speed, speed], "pause_s": [0.0, 0.0]}
        changes["nodes.node.mobility"] = mobility
    return [_simulated(_scenario(case, changes), case["seed"], {})]


def crashing(case: Case) -> Sequence[Row]:
    """A share of all nodes, drawn by the seed, crash for good, evenly over the measured time."""
    scenario = _scenario(case, {})
    random = Random(f"{case['seed']}:crashes")
    names = scenario.names()
    gone = random.sample(names, round(case["share"] * len(names)))
    crashes = tuple(Crash(name, random.uniform(scenario.warm_up_s, scenario.duration_s)) for name in gone)
    return [_simulated(msgspec.structs.replace(scenario, faults=FaultSettings(crashes=crashes)), case["seed"], {})]


def growing(case: Case) -> Sequence[Row]:
    """Connected still networks up to 30,000 nodes, through the simulator."""
    changes = {"warm_up_s": 45.0, "duration_s": 75.0, "subscribe.news.share": None, "subscribe.news.count": 60}
    scenario = _scenario(case, changes)
    return [_simulated(scenario, _connected(scenario, case["seed"]), FEW_BEACONS)]


def _connected(scenario: Scenario, block: int) -> int:
    """The first seed of the block whose network's cell graph is connected."""
    for seed in range(1000 * block, 1000 * (block + 1)):
        if CellGraph.of(_cells(scenario.trajectories(seed), 0.0)).components().max() == 0:
            return seed
    raise ScenarioError(f"none of 1,000 networks of {len(scenario.names())} nodes has a connected cell graph")


def _scenario(case: Case, changes: dict[str, Any]) -> Scenario:
    """The paper's setting at this case's size: 45 neighbours per node."""
    nodes = case["nodes"]
    side_m = RANGE_M / range_share(nodes)
    sizes = {"nodes.node.count": nodes, "medium.range_m": RANGE_M, "area.width_m": side_m, "area.height_m": side_m}
    return load_scenario("georendezvous").with_({**sizes, **changes})


class _Notes(Log):
    """A log without what is sent and received, which would only fill it."""

    keeps_transmissions = False


def _simulated(scenario: Scenario, seed: int, settings: dict[str, Any]) -> Row:
    log = _Notes() if len(scenario.names()) <= 1000 else None
    result = run(scenario, "georendezvous", {**AS_WRITTEN, **settings}, seed, log)
    summary = summarise(scenario, result)
    return {
        "delivery_ratio": summary.delivery_ratio,
        "precision": summary.precision,
        "expected": summary.expected,
        "cost": summary.cost,
        "hops": summary.hops_mean,
        "stretch": _stretch(result),
        "control_bytes_per_node_s": summary.control_bytes / summary.nodes / summary.measured_s,
        "records_per_node": _records_per_node(log, result) if log is not None else None,
    }


def _stretch(result: RunResult) -> float | None:
    """Hops taken over hops of the direct route at the time of publishing, summed over first deliveries."""
    trajectories, deliveries = result.trajectories, result.deliveries
    assert trajectories is not None
    number = {name: i for i, name in enumerate(result.nodes)}
    seen: set[tuple[int, int]] = set()
    by_event: dict[int, list[tuple[int, int]]] = {}
    for node, event, hops in zip(deliveries.node, deliveries.event, deliveries.hops, strict=True):
        if event >= 0 and hops > 0 and (event, node) not in seen:
            seen.add((event, node))
            by_event.setdefault(event, []).append((node, hops))
    taken = direct = 0
    for event, receivers in sorted(by_event.items()):
        published = result.published[event]
        cells = _cells(trajectories, published.time)
        graph = CellGraph.of(cells)
        starts = np.repeat(cells[[number[published.source]]], len(receivers), axis=0)
        ends = cells[[node for node, _ in receivers]]
        straight_hops, homes = graph.routes(starts, ends)
        there = (homes == ends).all(axis=1).tolist()
        for (_, used), straight, reached in zip(receivers, straight_hops.tolist(), there, strict=True):
            if reached:
                taken += used
                direct += max(straight, 1)
    return taken / direct if direct else None


def _cells(trajectories: Trajectories, time: float) -> Cells:
    """The cell of every node at that time."""
    return cells_of(trajectories.positions(time), StillNetwork.grid)


def _records_per_node(log: Log, result: RunResult) -> float:
    """Records a node keeps at the end of the run, on average, as the nodes have noted."""
    last = {row["node"]: int(row["detail"].rpartition(" ")[2]) for row in log.rows() if row["kind"] == Kind.NOTE}
    return sum(last.values()) / len(result.nodes)
