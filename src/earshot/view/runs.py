"""A replayed run: what one protocol did in a world, read from its log.

From some hundred thousand records the page needs few: the first time that each event came to each node
and from which sender (its hops), the deliveries, the nodes' sessions, how busy the air was, and the
protocol's own structures (`overlays`). A `Catalogue` says where worlds and runs come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from earshot.protocols.catalogue import needs_routing
from earshot.records import Kind
from earshot.records.sessions import Session, SessionReader
from earshot.view.overlays import Hops, Overlays, overlays_of
from earshot.view.world import Array, Floats, Ints, World, pack


@dataclass(frozen=True)
class RunEntry:
    """A run that the page can request."""

    key: str
    title: str


@dataclass(frozen=True)
class WorldEntry:
    """A world that the page can request, and the runs in it, which the page shows side by side."""

    key: str
    title: str
    runs: Sequence[RunEntry]

    def as_json(self) -> dict[str, Any]:
        """Plain values for the page."""
        return asdict(self)


class Catalogue(Protocol):
    """What a page can show."""

    def worlds(self) -> Sequence[WorldEntry]:
        """All worlds, in the order in which the page lists them; at least one world, with at least one run."""

    def world(self, key: str) -> World:
        """The world of that key; KeyError if there is none."""

    def run(self, world: str, key: str) -> ReplayedRun:
        """The run of that key in that world; KeyError if there is none."""

    def why(self, world: str, run: str, event: str, node: str) -> Mapping[str, Any]:
        """The oracle's answer for an event and a node; KeyError if one of them is unknown."""

    def updates(self) -> Mapping[str, Any] | None:
        """The present state of a watched network; None if no network is watched."""


KINDS = tuple(Kind)
CODE = {kind: code for code, kind in enumerate(KINDS)}
BINS = 240
"Columns of the timeline's picture."
DEEPEST = 200
"Hops are counted up to this: if the clocks of live nodes differ, a route may seem to run in a circle."


@dataclass(frozen=True)
class Records:
    """A log as columns. Nodes, peers and events are given by their number in the world, or -1 for none."""

    time: Floats
    kind: npt.NDArray[np.int8]
    "An index into `KINDS`."
    node: Ints
    peer: Ints
    event: Ints
    details: Sequence[str]
    "The texts that `detail` numbers."
    detail: Ints
    packets: Sequence[str]
    "The tags that `packet` numbers."
    packet: Ints

    def of(self, kind: Kind) -> npt.NDArray[np.int64]:
        """The numbers of the rows of that kind."""
        return np.flatnonzero(self.kind == CODE[kind])


@dataclass(frozen=True)
class Why:
    """The oracle's answer for one pair, in words."""

    event: int
    node: int
    reasons: Sequence[str]
    losses: Sequence[str]


@dataclass(frozen=True)
class ReplayedRun:
    """One run in a world."""

    key: str
    "The run's id."
    title: str
    protocol: str
    settings: Mapping[str, Any]
    hops: Hops
    deliveries: tuple[Ints, Ints, Floats]
    "First deliveries: event, node, time."
    sessions: Sequence[Session]
    "When each node was there."
    air: tuple[Ints, Ints]
    "Transmissions with and without an event, for each column of the timeline."
    overlays: Overlays
    radio: bool = True
    "Whether it runs over a radio; over an overlay every node reaches every other."
    why: Sequence[Why] = field(default=())
    "Answers that travel with the page, for pages without a server."
    answers: bool = False
    "Whether the page can request further answers from its server."

    def packed(self, world: World, most_hops: int | None = None) -> bytes:
        """The run as the page reads it. With a bound on hops, some events lose all their hops, evenly chosen."""
        hops, kept = thinned(self.hops, len(world.events), most_hops)
        texts: dict[str, int] = {}

        def number(text: str) -> int:
            return texts.setdefault(text, len(texts))

        why = [
            [answer.event, answer.node, [*map(number, answer.reasons)], [*map(number, answer.losses)]]
            for answer in self.why
        ]
        meta = {
            "key": self.key,
            "world": world.key,
            "title": self.title,
            "protocol": self.protocol,
            "radio": self.radio,
            "settings": {name: _shown(value) for name, value in self.settings.items()},
            "answers": self.answers,
            "events_with_hops": kept,
            "why": why,
            "texts": list(texts),
            "overlays": self.overlays.meta,
        }
        changes = presence_changes(self.sessions, world.number_of_node)
        small = np.uint16 if len(world.nodes) < 0xFFFF else np.int32
        arrays: dict[str, Array] = {
            "hop_event": hops.event,
            "hop_node": hops.node.astype(small),
            "hop_sender": hops.sender.astype(small),
            "hop_time": (hops.time - world.start).astype(np.float32),
            "hop_depth": np.minimum(hops.depth, 255).astype(np.uint8),
            "got_event": self.deliveries[0],
            "got_node": self.deliveries[1],
            "got_time": (self.deliveries[2] - world.start).astype(np.float32),
            "session_node": changes[:, 1].astype(np.int32),
            "session_time": (changes[:, 0] - world.start).astype(np.float32),
            "session_up": changes[:, 2].astype(np.uint8),
            "air_data": self.air[0],
            "air_control": self.air[1],
        }
        for name, array in self.overlays.arrays.items():
            in_time = name.endswith(("_start", "_end"))
            arrays[f"overlay_{name}"] = (array - world.start).astype(np.float32) if in_time else array
        return pack(meta, arrays)


def _shown(value: Any) -> str:
    return "not set" if value is None else str(value)


def replayed_run(
    world: World, records: Records, key: str, title: str, protocol: str, settings: Any, shown: Mapping[str, Any]
) -> ReplayedRun:
    """What the log says. `settings` are the protocol's own, `shown` how to print them."""
    hops = hops_of(world, records)
    deliveries = deliveries_of(world, records)
    return ReplayedRun(
        key=key,
        title=title,
        protocol=protocol,
        settings=shown,
        hops=hops,
        deliveries=deliveries,
        sessions=sessions_of(world, records),
        air=air_of(world, records),
        overlays=overlays_of(protocol, settings, world, hops, deliveries, notes_of(records)),
        radio=not needs_routing(protocol),
    )


def hops_of(world: World, records: Records) -> Hops:
    """The first receptions; a publisher that hears its own event does not count."""
    rows = records.of(Kind.RECEIVE)
    rows = rows[(records.event[rows] >= 0) & (records.node[rows] >= 0) & (records.peer[rows] >= 0)]
    number = world.number_of_node
    source = np.array([number.get(event.source, -1) for event in world.events], dtype=np.int64)
    rows = rows[source[records.event[rows]] != records.node[rows]] if len(source) else rows[:0]
    rows = rows[np.argsort(records.time[rows], kind="stable")]
    count = max(1, len(world.nodes))
    pairs = records.event[rows].astype(np.int64) * count + records.node[rows]
    seen, firsts = np.unique(pairs, return_index=True)
    order = np.argsort(firsts)
    rows, place_of = rows[np.sort(firsts)], np.empty(len(seen), dtype=np.int64)
    place_of[order] = np.arange(len(seen))
    event, node, sender = records.event[rows], records.node[rows], records.peer[rows]
    wanted = event.astype(np.int64) * count + sender
    found = np.searchsorted(seen, wanted)
    found[found == len(seen)] = 0
    known = (seen[found] == wanted) & (source[event] != sender) if len(seen) else np.zeros(0, dtype=bool)
    parent = np.where(known, place_of[found], -1) if len(seen) else np.zeros(0, dtype=np.int64)
    return Hops(event, node, sender, records.time[rows], _depths(parent), parent.astype(np.int32))


def _depths(parent: npt.NDArray[np.int64]) -> Ints:
    depth = np.ones(len(parent), dtype=np.int32)
    for _ in range(DEEPEST):
        deeper = np.where(parent >= 0, depth[parent] + 1, 1).astype(np.int32) if len(parent) else depth
        if np.array_equal(deeper, depth):
            break
        depth = deeper
    return depth


def deliveries_of(world: World, records: Records) -> tuple[Ints, Ints, Floats]:
    """The first delivery of each event at each node, in order of time."""
    rows = records.of(Kind.DELIVER)
    rows = rows[(records.event[rows] >= 0) & (records.node[rows] >= 0)]
    rows = rows[np.argsort(records.time[rows], kind="stable")]
    pairs = records.event[rows].astype(np.int64) * max(1, len(world.nodes)) + records.node[rows]
    rows = rows[np.sort(np.unique(pairs, return_index=True)[1])]
    return records.event[rows], records.node[rows], records.time[rows]


def sessions_of(world: World, records: Records) -> list[Session]:
    """When each node was there, by its joins and leaves."""
    rows = np.flatnonzero((records.kind == CODE[Kind.JOIN]) | (records.kind == CODE[Kind.LEAVE]))
    rows = rows[records.node[rows] >= 0]
    reader = SessionReader()
    for row in rows[np.argsort(records.time[rows], kind="stable")].tolist():
        kind, detail = KINDS[records.kind[row]], records.details[records.detail[row]]
        reader.read(float(records.time[row]), world.nodes[records.node[row]], kind, "", detail)
    return list(reader)


def presence_changes(sessions: Sequence[Session], number_of_node: Mapping[str, int]) -> Floats:
    """Rows of time, node and presence (1 or 0), in order of time."""
    changes = [
        (time, number_of_node[session.node], up)
        for session in sessions
        for time, up in ((session.start, 1.0), (session.end, 0.0))
        if math.isfinite(time)
    ]
    changes.sort(key=lambda change: change[0])
    return np.array(changes, dtype=np.float64).reshape(len(changes), 3)


def air_of(world: World, records: Records) -> tuple[Ints, Ints]:
    """How many transmissions there were, with an event and without one."""
    rows = records.of(Kind.SEND)
    lasting = max(world.end - world.start, 1e-9)
    column = np.clip((records.time[rows] - world.start) / lasting * BINS, 0, BINS - 1).astype(np.int64)
    data = records.event[rows] >= 0
    return (
        np.bincount(column[data], minlength=BINS).astype(np.int32),
        np.bincount(column[~data], minlength=BINS).astype(np.int32),
    )


def notes_of(records: Records) -> list[tuple[float, int, str, str]]:
    """The notes of the machines: time, node, topic, detail."""
    found = []
    for row in records.of(Kind.NOTE):
        topic, sign, detail = records.details[records.detail[row]].partition(": ")
        if sign and records.node[row] >= 0:
            found.append((float(records.time[row]), int(records.node[row]), topic, detail))
    return found


def thinned(hops: Hops, events: int, most: int | None) -> tuple[Hops, list[int] | None]:
    """At most this many hops: all hops of some events, evenly chosen; and which events kept their hops (None: all)."""
    if most is None or len(hops) <= most:
        return hops, None
    sizes = np.bincount(hops.event, minlength=events)
    stride = 2
    while sizes[::stride].sum() > most and stride < events:
        stride += 1
    chosen = np.zeros(events, dtype=bool)
    chosen[::stride] = True
    kept = chosen[hops.event]
    lost = np.full(len(hops), -1, dtype=np.int32)
    lost[kept] = np.arange(int(kept.sum()), dtype=np.int32)
    parent = np.where(hops.parent[kept] >= 0, lost[hops.parent[kept]], -1).astype(np.int32)
    few = Hops(hops.event[kept], hops.node[kept], hops.sender[kept], hops.time[kept], hops.depth[kept], parent)
    return few, np.flatnonzero(chosen).tolist()
