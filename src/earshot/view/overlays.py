"""Overlays: what the page draws of each protocol's own structures.

=============  ==============================================================================
cells          GeoRendezvous: the grid and the topics' rendezvous points, from the settings
links          which node is attached to which, while it lasts: dissemination trees, and brokers with
               their clients, from the machines' notes; a mesh, from the routes of deliveries
brokers        DRIP: which nodes are brokers when; the page draws their Voronoi regions
=============  ==============================================================================

Proximities need no overlay: the world has the announcements. How each is derived: docs/view.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earshot.protocols.georendezvous.cell_hash_routing import CellSettings
from earshot.protocols.georendezvous.cells import largest_side_m
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings
from earshot.view.world import Array, Floats, Ints, World

Note = tuple[float, int, str, str]
"Time, node, topic and detail."

USED_FOR_S = 10.0
"A route that led to a delivery is drawn for this long, where the protocol's settings have no such time."
MOST_TOPICS = 24
"Rendezvous points are drawn for at most this many topics, those with most events first."
TREE, MESH, ROUTES, BROKERS = "tree", "mesh", "routes", "brokers"


@dataclass(frozen=True)
class Hops:
    """The first time that each event came to each node, and from which sender; in order of time."""

    event: Ints
    node: Ints
    sender: Ints
    time: Floats
    depth: Ints
    "The number of transmissions from the publisher on."
    parent: Ints
    "The hop by which the sender received the event; -1 if the sender published it, or no hop is known."

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Overlays:
    """What the page draws below the nodes: plain values and columns."""

    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)


def overlays_of(
    protocol: str,
    settings: Any,
    world: World,
    hops: Hops,
    deliveries: tuple[Ints, Ints, Floats],
    notes: Sequence[Note],
) -> Overlays:
    """The overlays that this protocol has."""
    meta: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    if isinstance(settings, CellSettings):
        meta["cells"] = _cells(settings, world)
    parents, attached = _parents(world, notes), _attached(world, notes)
    if parents is not None:
        kind, (meta["trees"], columns) = TREE, parents
    elif attached is not None:
        kind, columns = BROKERS, attached
        arrays["broker_node"], arrays["broker_start"], arrays["broker_end"] = _brokers(world, notes)
    else:
        lasting = getattr(settings, "forwarding_timeout_s", USED_FOR_S)
        kind = MESH if protocol in ("odmrp", "content-odmrp") else ROUTES
        columns = _routes_of_deliveries(world, hops, deliveries, lasting)
        meta["lasting_s"] = lasting
    meta["links"] = kind
    for name, column in zip(LINK_COLUMNS, columns, strict=True):
        arrays[name] = np.asarray(column)
    return Overlays(meta, arrays)


def _cells(settings: CellSettings, world: World) -> dict[str, Any]:
    """The grid, and each topic's points: hash(topic, i) as every node computes it."""
    side_m = settings.cell_side_m or largest_side_m(settings.range_m)
    cells: dict[str, Any] = {"side_m": side_m, "origin": [settings.origin_x_m, settings.origin_y_m], "topics": []}
    if isinstance(settings, GeoRendezvousSettings):
        counts = dict.fromkeys(world.types, 0)
        for event in world.events:
            counts[event.type] += 1
        busiest = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_TOPICS]
        cells["topics"] = [
            [world.types.index(topic), [round(v, 1) for at in settings.points(topic) for v in (at.x_m, at.y_m)]]
            for topic in busiest
        ]
    return cells


Columns = tuple[Ints, Ints, Ints, Floats, Floats]
LINK_COLUMNS = ("link_a", "link_b", "link_group", "link_start", "link_end")
"From node, to node, in which tree or under which broker, start and end."
Link = tuple[int, int, int, float, float]


class _OpenLinks:
    """Links that have not ended yet: one for each key."""

    def __init__(self) -> None:
        self.found: list[Link] = []
        self._open: dict[tuple[int, str], tuple[int, int, float]] = {}

    def begin(self, key: tuple[int, str], peer: int, group: int, time: float) -> None:
        self.end(key, time)
        if peer >= 0:
            self._open[key] = (peer, group, time)

    def end(self, key: tuple[int, str], time: float) -> None:
        if key in self._open:
            peer, group, since = self._open.pop(key)
            self.found.append((key[0], peer, group, since, time))

    def columns(self, end: float) -> Columns:
        for key in list(self._open):
            self.end(key, end)
        return _columns(self.found)


def _parents(world: World, notes: Sequence[Note]) -> tuple[list[str], Columns] | None:
    """CoDD: "parent: TREE NODE DEPTH" until another parent in that tree, or "orphan: TREE"."""
    links, trees = _OpenLinks(), dict[str, int]()
    for time, node, topic, detail in notes:
        if topic == "parent":
            tree, parent = _tree_and_parent(detail.rpartition(" ")[0], world.number_of_node)
            links.begin((node, tree), parent, trees.setdefault(tree, len(trees)), time)
        elif topic == "orphan":
            links.end((node, detail), time)
    return (list(trees), links.columns(world.end)) if trees else None


def _tree_and_parent(text: str, number: Mapping[str, int]) -> tuple[str, int]:
    """The tree and the parent in a note. Names may have spaces: the parent is the longest end of the text that is a
    node's name."""
    at = text.find(" ")
    while at >= 0:
        if text[at + 1 :] in number:
            return text[:at], number[text[at + 1 :]]
        at = text.find(" ", at + 1)
    return text.rpartition(" ")[0], -1


def _attached(world: World, notes: Sequence[Note]) -> Columns | None:
    """DRIP: "attached: BROKER" until the next such note; no link if the note names no broker."""
    links, any_noted = _OpenLinks(), False
    for time, node, topic, detail in notes:
        if topic == "attached":
            any_noted = True
            broker = world.number_of_node.get(detail, -1)
            links.begin((node, ""), broker, max(0, broker), time)
    return links.columns(world.end) if any_noted else None


def _brokers(world: World, notes: Sequence[Note]) -> tuple[Ints, Floats, Floats]:
    """DRIP: "broker: ITSELF" until it steps down."""
    links = _OpenLinks()
    for time, node, topic, detail in notes:
        if topic == "broker":
            links.begin((node, ""), node if detail else -1, node, time)
    who, _, _, start, end = links.columns(world.end)
    return who, start, end


def _columns(links: Sequence[Link]) -> Columns:
    table = np.array(links, dtype=np.float64).reshape(len(links), 5)
    a, b, group = (table[:, i].astype(np.int32) for i in range(3))
    return a, b, group, table[:, 3], table[:, 4]


def _routes_of_deliveries(world: World, hops: Hops, deliveries: tuple[Ints, Ints, Floats], lasting_s: float) -> Columns:
    """Edges over which an event came to a node that delivered it, or that forwarded it towards such a node;
    each edge lasts this long after its last use."""
    useful = _useful(world, hops, deliveries)
    count = max(1, len(world.nodes))
    low = np.minimum(hops.sender, hops.node)[useful].astype(np.int64)
    high = np.maximum(hops.sender, hops.node)[useful].astype(np.int64)
    time = hops.time[useful]
    order = np.lexsort((time, low * count + high))
    edge, time = (low * count + high)[order], time[order]
    if not len(edge):
        return _columns([])
    new = np.concatenate(([True], (edge[1:] != edge[:-1]) | (time[1:] - time[:-1] > lasting_s)))
    begins = np.flatnonzero(new)
    lasts = np.append(begins[1:], len(edge)) - 1
    a, b = (edge[begins] // count).astype(np.int32), (edge[begins] % count).astype(np.int32)
    return a, b, np.zeros_like(a), time[begins], time[lasts] + lasting_s


def _useful(world: World, hops: Hops, deliveries: tuple[Ints, Ints, Floats]) -> Array:
    """Which hops led to a delivery: those at nodes that delivered, and the hops before them."""
    count = max(1, len(world.nodes))
    delivered = np.unique(deliveries[0].astype(np.int64) * count + deliveries[1])
    useful = np.isin(hops.event.astype(np.int64) * count + hops.node, delivered)
    front = np.flatnonzero(useful)
    while len(front):
        before = np.unique(hops.parent[front])
        before = before[before >= 0]
        front = before[~useful[before]].astype(np.int64)
        useful[front] = True
    return useful
