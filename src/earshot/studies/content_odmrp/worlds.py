"""The networks of the content-based ODMRP study: the paper's trees and moving links, and larger ones.

The paper draws its topologies as pictures that its text does not spell out; how they are read here
is in docs/papers/content-odmrp.md.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from earshot.protocols.content_odmrp.machine import AS_WRITTEN
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.interests import FIGURE_3

SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "as written": ("content-odmrp", AS_WRITTEN),
    "least constrained": ("content-odmrp", {**AS_WRITTEN, "group_choice": "least-constrained"}),
    "acknowledged": ("content-odmrp", {**AS_WRITTEN, "acknowledged": True}),
    "ours": ("content-odmrp", {"jitter_s": 0.0, "spare_slow_sources": False}),
    "ours, acknowledged": ("content-odmrp", {"jitter_s": 0.0, "spare_slow_sources": False, "acknowledged": True}),
    "one channel": ("odmrp", {"jitter_s": 0.0}),
    "N channels": ("odmrp", {"jitter_s": 0.0, "channels": list(FIGURE_3)}),
    "flooding": ("flooding", {}),
}
"""Protocol and settings: the extension as written, with the other reading of its groups, with acknowledged Join Tables,
and with our defaults, except that every source builds routes; section IV.A's two plain systems; flooding."""

ROUTERS = ("F1", "F2", "F3", "F4", "F5")
ABOVE = ("F3", "F3", "F4", "F5", "F5")
"The router above receivers 1 to 5; further receivers follow in turn."
MESSAGES = 100
WARM_UP_S = 10.0


@cache
def _built_in(name: str) -> Scenario:
    """A scenario of the library, cached for thousands of small cases."""
    return load_scenario(name)


def tree(subscribers: int = 5, interval_s: float = 0.5) -> Scenario:
    """Figure 4: a source, a tree of routers, receivers with the subscriptions of figure 3 in turn."""
    receivers = [f"R{index + 1}" for index in range(subscribers)]
    links = _pairs("S-F1 S-F2 F1-F3 F1-F4 F2-F5")
    links += [[ABOVE[index % 5], receiver] for index, receiver in enumerate(receivers)]
    return _built_in("odmrp").with_(
        {
            "name": f"odmrp-tree-{subscribers}",
            "duration_s": WARM_UP_S + MESSAGES * interval_s + 15.0,
            "medium.links.graph": links,
            **_brokers(["S", *ROUTERS, *receivers]),
            "publish.cds.when.interval_s": interval_s,
            "publish.cds.limit": MESSAGES,
            "subscribe.cds.nodes": receivers,
        }
    )


def on_one_channel(scenario: Scenario) -> Scenario:
    """The same over a shared radio channel of 2 Mbit/s after 802.11, where traffic takes time."""
    return scenario.with_({"medium.kind": "contention"})


class MovingLinks(NamedTuple):
    """Links of a small network, as "S-F1 S-F2": those that last, and those that take turns."""

    names: str
    lasting: str
    in_turn: str
    together: int = 1
    pauses: int = 0


MOVING = {
    # Figure 9A: the receiver moves back and forth; its links 1 and 2 alternate.
    "alternating": MovingLinks("S F1 F2 R1", "S-F1 S-F2 F1-F2", "F1-R1 F2-R1"),
    # Figure 9A again: the receiver stays with F1; link 3, source to F1, breaks and is repaired.
    "flapping": MovingLinks("S F1 F2 R1", "F1-R1 S-F2 F1-F2", "S-F1", pauses=1),
    # The same with another receiver behind F2, so that both are forwarding nodes, as the figure calls them.
    "flapping mesh": MovingLinks("S F1 F2 R1 R2", "F1-R1 S-F2 F1-F2 F2-R2", "S-F1", pauses=1),
    # Figure 9B: the receiver walks past nodes 1 to 9, always linked to two neighbours of them.
    "walking": MovingLinks(
        "S A B C N1 N2 N3 N4 N5 N6 N7 N8 N9 R1",
        "S-A S-B S-C A-N1 A-N2 A-N3 B-N4 B-N5 B-N6 C-N7 C-N8 C-N9",
        "N1-R1 N2-R1 N3-R1 N4-R1 N5-R1 N6-R1 N7-R1 N8-R1 N9-R1",
        together=2,
    ),
}


def moving(world: str, step_s: float, start_s: float) -> Scenario:
    """A receiver R1 that wants every event, and links that take turns every `step_s`."""
    links = MOVING[world]
    turns = {"interval_s": step_s, "together": links.together, "pauses": links.pauses}
    return _built_in("odmrp-mobile").with_(
        {
            "name": f"odmrp-{world.replace(' ', '-')}",
            "duration_s": WARM_UP_S + start_s + MESSAGES * 0.5 + 15.0,
            "medium.links.graph": _pairs(links.lasting),
            "medium.links.rotations": [{"links": _pairs(links.in_turn), **turns}],
            **_brokers(links.names.split()),
            "publish.cds.from_s": WARM_UP_S + start_s,
            "publish.cds.limit": MESSAGES,
            "subscribe.cds.nodes": [name for name in links.names.split() if name.startswith("R")],
            "subscribe.cds.filters": {"kind": "written", "texts": ["/CD"], "choose": "in-turn"},
        }
    )


def _pairs(links: str) -> list[list[str]]:
    return [link.split("-") for link in links.split()]


def _brokers(names: list[str]) -> dict[str, Any]:
    """Brokers at places of their own; who hears whom is up to the links."""
    return {
        "nodes.broker.names": names,
        "nodes.broker.mobility.at_m": [[10.0 * index, 0.0] for index in range(len(names))],
    }


DEGREE = 14.0
"The average number of neighbours in the large networks."
RANGE_M = 200.0


def _words(letter: str, count: int) -> dict[str, Any]:
    return {"kind": "choice", "of": [f"{letter}{index}" for index in range(count)]}


def _open_ground(
    name: str, brokers: int, subscriptions: int, attributes: dict[str, Any], terms: int, interval_s: float
) -> Scenario:
    """Brokers on open ground at constant density; five of them publish."""
    side_m = math.sqrt(brokers * math.pi * RANGE_M**2 / DEGREE)
    return _built_in("base").with_(
        {
            "name": name,
            "duration_s": 60.0,
            "warm_up_s": 10.0,
            "cool_down_s": 5.0,
            "area.width_m": side_m,
            "area.height_m": side_m,
            "medium.radio": "ideal",
            "medium.range_m": RANGE_M,
            "nodes.node.count": brokers,
            "publish.news.count": 5,
            "publish.news.events": {
                "kind": "attributes",
                "type": "CD",
                "attributes": attributes,
                "payload_bytes": 100,
            },
            "publish.news.when": {"kind": "periodic", "interval_s": interval_s},
            "subscribe.news.share": 1.0,
            "subscribe.news.each": [subscriptions, subscriptions],
            "subscribe.news.filters": {"kind": "conjunctions", "of": "news", "terms": [terms, terms]},
        }
    )


def city(brokers: int, subscriptions: int) -> Scenario:
    """Brokers that walk and cycle. Events have three attributes, subscriptions constrain two of them: an event
    matches about one subscription in 100."""
    attributes = {
        "category": _words("c", 20),
        "composer": _words("m", 50),
        "price": {"kind": "float", "low": 0.0, "high": 30.0},
    }
    return _open_ground(f"brokers-{brokers}-{subscriptions}", brokers, subscriptions, attributes, 2, 1.0)


def market(speed_m_s: float) -> Scenario:
    """30 brokers that all move at one speed. Events are of twelve kinds, each broker wants two of them: more audiences
    than a source has groups, so that groups are combined and split."""
    pace = {"kind": "random-waypoint", "speed_m_s": [speed_m_s, speed_m_s], "pause_s": [0.0, 0.0]}
    kinds = {"category": {**_words("c", 12), "zipf": 1.2}}
    return _open_ground(f"market-{speed_m_s:g}", 30, 2, kinds, 1, 0.5).with_(
        {"nodes.node.mobility": pace, "duration_s": 100.0}
    )
