"""The networks of the content-based ODMRP study: the paper's trees and moving links, and larger ones.

The paper draws its topologies as pictures that its text does not spell out; how they are read here
is in docs/papers/content-odmrp.md.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.interests import FIGURE_3

SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "extended": ("content-odmrp", {}),
    "extended, broadcast": ("content-odmrp", {"acknowledged": False}),
    "one channel": ("odmrp", {}),
    "N channels": ("odmrp", {"channels": list(FIGURE_3)}),
    "flooding": ("flooding", {}),
}
"Section IV.A's three systems, and flooding: protocol and settings."

ROUTERS = ("F1", "F2", "F3", "F4", "F5")
ABOVE = ("F3", "F3", "F4", "F5", "F5")
"The router above receivers 1 to 5; further receivers follow in turn."
MESSAGES = 100
WARM_UP_S = 10.0


@cache
def _built_in(name: str) -> Scenario:
    """A scenario of the library, cached for thousands of small cases."""
    return load_scenario(name)


def tree(subscribers: int = 5, interval_s: float = 0.5, messages: int = MESSAGES) -> Scenario:
    """Figure 4: a source, a tree of routers, receivers with the subscriptions of figure 3 in turn."""
    receivers = [f"R{index + 1}" for index in range(subscribers)]
    links = [["S", "F1"], ["S", "F2"], ["F1", "F3"], ["F1", "F4"], ["F2", "F5"]]
    links += [[ABOVE[index % 5], receiver] for index, receiver in enumerate(receivers)]
    names = ["S", *ROUTERS, *receivers]
    return _built_in("odmrp").with_(
        {
            "name": f"odmrp-tree-{subscribers}",
            "duration_s": WARM_UP_S + messages * interval_s + 15.0,
            "medium.links.graph": links,
            "nodes.broker.names": names,
            "nodes.broker.mobility.at_m": [[10.0 * index, 0.0] for index in range(len(names))],
            "publish.cds.when.interval_s": interval_s,
            "publish.cds.limit": messages,
            "subscribe.cds.nodes": receivers,
        }
    )


def on_one_channel(scenario: Scenario) -> Scenario:
    """The same over a shared radio channel of 2 Mbit/s after 802.11, where traffic takes time."""
    return scenario.with_({"medium.kind": "contention"})


def _moving(name: str, links: dict[str, Any], names: list[str], start_s: float, messages: int) -> Scenario:
    """A receiver R1 that wants every event, and links that come and go."""
    return _built_in("odmrp-mobile").with_(
        {
            "name": name,
            "duration_s": WARM_UP_S + start_s + messages * 0.5 + 15.0,
            "medium.links.graph": links["graph"],
            "medium.links.rotations": links["rotations"],
            "nodes.broker.names": names,
            "nodes.broker.mobility.at_m": [[10.0 * index, 0.0] for index in range(len(names))],
            "publish.cds.from_s": WARM_UP_S + start_s,
            "publish.cds.limit": messages,
            "subscribe.cds.nodes": [name for name in names if name.startswith("R")],
            "subscribe.cds.filters": {"kind": "written", "texts": ["/CD"], "choose": "in-turn"},
        }
    )


def alternating(step_s: float, start_s: float, messages: int = MESSAGES) -> Scenario:
    """Figure 9A: the receiver moves back and forth; its links 1 and 2 alternate every `step_s`."""
    links = {
        "graph": [["S", "F1"], ["S", "F2"], ["F1", "F2"]],
        "rotations": [{"links": [["F1", "R1"], ["F2", "R1"]], "interval_s": step_s}],
    }
    return _moving("odmrp-alternating", links, ["S", "F1", "F2", "R1"], start_s, messages)


def flapping(step_s: float, start_s: float, messages: int = MESSAGES) -> Scenario:
    """Figure 9A again: the receiver stays with F1; link 3, source to F1, breaks and is repaired every `step_s`."""
    links = {
        "graph": [["F1", "R1"], ["S", "F2"], ["F1", "F2"]],
        "rotations": [{"links": [["S", "F1"]], "interval_s": step_s, "pauses": 1}],
    }
    return _moving("odmrp-flapping", links, ["S", "F1", "F2", "R1"], start_s, messages)


def flapping_mesh(step_s: float, start_s: float, messages: int = MESSAGES) -> Scenario:
    """The same with another receiver behind F2, so that both are forwarding nodes, as the figure calls them."""
    links = {
        "graph": [["F1", "R1"], ["S", "F2"], ["F1", "F2"], ["F2", "R2"]],
        "rotations": [{"links": [["S", "F1"]], "interval_s": step_s, "pauses": 1}],
    }
    return _moving("odmrp-flapping-mesh", links, ["S", "F1", "F2", "R1", "R2"], start_s, messages)


def walking(step_s: float, start_s: float, messages: int = MESSAGES) -> Scenario:
    """Figure 9B: the receiver walks past nodes 1 to 9, always linked to two neighbours of them."""
    nodes = [f"N{index}" for index in range(1, 10)]
    routers = ["A", "B", "C"]
    graph = [["S", router] for router in routers]
    graph += [[routers[index // 3], node] for index, node in enumerate(nodes)]
    links = {
        "graph": graph,
        "rotations": [{"links": [[node, "R1"] for node in nodes], "interval_s": step_s, "together": 2}],
    }
    return _moving("odmrp-walking", links, ["S", *routers, *nodes, "R1"], start_s, messages)


DEGREE = 14.0
"The average number of neighbours in the large networks."
RANGE_M = 200.0


def city(brokers: int, subscriptions: int, publishers: int = 5) -> Scenario:
    """Brokers that walk and cycle on open ground at constant density. Events have three attributes,
    subscriptions constrain two of them: an event matches about one subscription in 100."""
    side_m = math.sqrt(brokers * math.pi * RANGE_M**2 / DEGREE)

    def words(letter: str, count: int) -> dict[str, Any]:
        return {"kind": "choice", "of": [f"{letter}{index}" for index in range(count)]}

    return _built_in("base").with_(
        {
            "name": f"brokers-{brokers}-{subscriptions}",
            "duration_s": 60.0,
            "warm_up_s": 10.0,
            "cool_down_s": 5.0,
            "area.width_m": side_m,
            "area.height_m": side_m,
            "medium.range_m": RANGE_M,
            "nodes.node.count": brokers,
            "publish.news.count": publishers,
            "publish.news.events": {
                "kind": "attributes",
                "type": "CD",
                "attributes": {
                    "category": words("c", 20),
                    "composer": words("m", 50),
                    "price": {"kind": "float", "low": 0.0, "high": 30.0},
                },
                "payload_bytes": 100,
            },
            "publish.news.when": {"kind": "periodic", "interval_s": 1.0},
            "subscribe.news.share": 1.0,
            "subscribe.news.each": [subscriptions, subscriptions],
            "subscribe.news.filters": {"kind": "conjunctions", "of": "news", "terms": [2, 2]},
        }
    )
