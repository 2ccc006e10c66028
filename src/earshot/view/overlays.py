"""Overlays: what each protocol's picture of the network is made of.

=============  ==============================================================================
cells          GeoRendezvous: the grid and the topics' rendezvous points, from the settings
links          who hangs on whom, while it lasts: a dissemination tree, brokers and those they
               serve, from the machines' notes; a mesh, from the ways that led to deliveries
regions        DRIP: the brokers at each time, whose Voronoi regions the page draws
=============  ==============================================================================

Proximities need no overlay of their own: the scene has the announcements. How each is derived:
docs/view.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from earshot.protocols.cell_hash_routing import CellSettings
from earshot.protocols.cells import largest_side_m
from earshot.protocols.georendezvous_settings import GeoRendezvousSettings
from earshot.view.packing import Array

if TYPE_CHECKING:
    from earshot.view.plays import Hops
    from earshot.view.scenes import Floats, Ints, Scene

Note = tuple[float, int, str, str]
"When, which node, about what, and what it said."

USED_FOR_S = 10.0
"A way that led to a delivery is drawn for so long, where the protocol has no time of its own for it."
MOST_TOPICS = 24
"Rendezvous points are drawn for so many topics, those with most events first."
TREE, MESH, WAYS, BROKERS = "tree", "mesh", "ways", "brokers"
LINK_TOPICS = {"parent": TREE, "broker": BROKERS}
"Notes that name another node: what the link to it is. An empty name, or the node's own, ends it."


@dataclass(frozen=True)
class Overlays:
    """What the page draws beneath the nodes: plain values and columns."""

    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)


def overlays_of(
    protocol: str,
    settings: Any,
    scene: Scene,
    hops: Hops,
    deliveries: tuple[Ints, Ints, Floats],
    notes: Sequence[Note],
) -> Overlays:
    """Whatever this protocol has."""
    meta: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    if isinstance(settings, CellSettings):
        meta["cells"] = _cells(settings, scene)
    links = _noted_links(scene, notes)
    if links is not None:
        kind, columns = links
    else:
        lasting = getattr(settings, "forwarding_timeout_s", USED_FOR_S)
        kind = MESH if protocol in ("odmrp", "content-odmrp") else WAYS
        columns = _ways_that_led_to_deliveries(scene, hops, deliveries, lasting)
        meta["lasting_s"] = lasting
    meta["links"] = kind
    arrays["link_a"], arrays["link_b"], arrays["link_start"], arrays["link_end"] = columns
    return Overlays(meta, arrays)


def _cells(settings: CellSettings, scene: Scene) -> dict[str, Any]:
    """The grid, and each topic's points: hash(topic, i) as every node computes it."""
    side_m = settings.cell_side_m or largest_side_m(settings.range_m)
    cells: dict[str, Any] = {"side_m": side_m, "origin": [settings.origin_x_m, settings.origin_y_m], "topics": []}
    if isinstance(settings, GeoRendezvousSettings):
        counts = dict.fromkeys(scene.types, 0)
        for event in scene.events:
            counts[event.type] += 1
        busiest = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_TOPICS]
        cells["topics"] = [
            [scene.types.index(topic), [round(v, 1) for at in settings.points(topic) for v in (at.x_m, at.y_m)]]
            for topic in busiest
        ]
    return cells


Columns = tuple["Ints", "Ints", "Floats", "Floats"]


def _noted_links(scene: Scene, notes: Sequence[Note]) -> tuple[str, Columns] | None:
    """Links that machines told of: each lasts until the node names another."""
    number = scene.number_of_node
    found: list[tuple[int, int, float, float]] = []
    kind = ""
    hangs_on: dict[int, tuple[int, float]] = {}
    for time, node, topic, detail in notes:
        if topic not in LINK_TOPICS:
            continue
        kind = LINK_TOPICS[topic]
        if node in hangs_on:
            peer, since = hangs_on.pop(node)
            found.append((node, peer, since, time))
        peer = number.get(detail, -1)
        if peer >= 0:
            hangs_on[node] = (peer, time)
    if not kind:
        return None
    found += [(node, peer, since, scene.end) for node, (peer, since) in hangs_on.items()]
    return kind, _columns(found)


def _columns(links: Sequence[tuple[int, int, float, float]]) -> Columns:
    table = np.array(links, dtype=np.float64).reshape(len(links), 4)
    return table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2], table[:, 3]


def _ways_that_led_to_deliveries(
    scene: Scene, hops: Hops, deliveries: tuple[Ints, Ints, Floats], lasting_s: float
) -> Columns:
    """Edges over which an event came to a node that delivered it, or that passed it on to one that did;
    each lasts so long after its last use."""
    useful = _useful(scene, hops, deliveries)
    count = max(1, len(scene.nodes))
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
    a, b = edge[begins] // count, edge[begins] % count
    return a.astype(np.int32), b.astype(np.int32), time[begins], time[lasts] + lasting_s


def _useful(scene: Scene, hops: Hops, deliveries: tuple[Ints, Ints, Floats]) -> Array:
    """Which hops led to a delivery: those at nodes that delivered, and the hops before them."""
    count = max(1, len(scene.nodes))
    delivered = np.unique(deliveries[0].astype(np.int64) * count + deliveries[1])
    useful = np.isin(hops.event.astype(np.int64) * count + hops.node, delivered)
    front = np.flatnonzero(useful)
    while len(front):
        before = np.unique(hops.parent[front])
        before = before[before >= 0]
        front = before[~useful[before]].astype(np.int64)
        useful[front] = True
    return useful
