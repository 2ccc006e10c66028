"""The play: what one protocol did on a scene, read off its log.

From some hundred thousand records the page needs few: the first time each event came to each node
and from whom (its hops), the deliveries, who was up when, how busy the air was, and what the
protocol's own picture is made of (`overlays`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot.protocols.catalogue import PROTOCOLS
from earshot.records import Kind
from earshot.view.overlays import Overlays, overlays_of
from earshot.view.packing import Array, pack
from earshot.view.world import Floats, Ints, Scene

KINDS = tuple(Kind)
CODE = {kind: code for code, kind in enumerate(KINDS)}
BINS = 240
"Columns of the timeline's picture."
DEEPEST = 200
"Hops are counted up to this: clocks of live nodes may differ, and then a way may seem to run in circles."


@dataclass(frozen=True)
class Records:
    """A log as columns. Nodes, peers and events by their number in the scene, -1 where there is none."""

    time: Floats
    kind: npt.NDArray[np.int8]
    "An index into `KINDS`."
    node: Ints
    peer: Ints
    event: Ints
    detail: Sequence[str]
    "The texts that `said` numbers."
    said: Ints
    packets: Sequence[str]
    "The tags that `packet` numbers."
    packet: Ints

    def of(self, kind: Kind) -> npt.NDArray[np.int64]:
        """The places of the rows of that kind."""
        return np.flatnonzero(self.kind == CODE[kind])


@dataclass(frozen=True)
class Hops:
    """The first time an event came to a node, and from whom; in order of time."""

    event: Ints
    node: Ints
    sender: Ints
    time: Floats
    depth: Ints
    "How many transmissions from the publisher on."
    parent: Ints
    "The hop by which the sender had it; -1 where the sender published it, or nobody knows."

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Why:
    """The oracle's answer for one pair, in words."""

    event: int
    node: int
    reasons: Sequence[str]
    losses: Sequence[str]


@dataclass(frozen=True)
class Play:
    """One run on a scene."""

    key: str
    "The run's id."
    title: str
    protocol: str
    settings: Mapping[str, Any]
    hops: Hops
    deliveries: tuple[Ints, Ints, Floats]
    "First deliveries: event, node, time."
    lives: tuple[Ints, Floats, npt.NDArray[np.uint8]]
    "Comings and goings in order of time: node, time, up or not."
    air: tuple[Ints, Ints]
    "Transmissions with an event and without one, by columns of the timeline."
    overlays: Overlays
    radio: bool = True
    "Whether it runs over a radio; over an overlay everybody reaches everybody."
    why: Sequence[Why] = field(default=())
    "Answers that travel with the page, for where there is nobody to ask."
    answers: bool = False
    "Whether the page's server can be asked for others."

    def packed(self, scene: Scene, most_hops: int | None = None) -> bytes:
        """The play as the page reads it; with a bound, hops of whole events are left out evenly."""
        hops, kept = thinned(self.hops, len(scene.events), most_hops)
        texts: dict[str, int] = {}

        def number(text: str) -> int:
            return texts.setdefault(text, len(texts))

        why = [[one.event, one.node, [*map(number, one.reasons)], [*map(number, one.losses)]] for one in self.why]
        meta = {
            "key": self.key,
            "scene": scene.key,
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
        small = np.uint16 if len(scene.nodes) < 0xFFFF else np.int32
        arrays: dict[str, Array] = {
            "hop_event": hops.event,
            "hop_node": hops.node.astype(small),
            "hop_sender": hops.sender.astype(small),
            "hop_time": (hops.time - scene.start).astype(np.float32),
            "hop_depth": np.minimum(hops.depth, 255).astype(np.uint8),
            "got_event": self.deliveries[0],
            "got_node": self.deliveries[1],
            "got_time": (self.deliveries[2] - scene.start).astype(np.float32),
            "life_node": self.lives[0],
            "life_time": (self.lives[1] - scene.start).astype(np.float32),
            "life_up": self.lives[2],
            "air_data": self.air[0],
            "air_control": self.air[1],
        }
        for name, array in self.overlays.arrays.items():
            in_time = name.endswith(("_start", "_end"))
            arrays[f"overlay_{name}"] = (array - scene.start).astype(np.float32) if in_time else array
        return pack(meta, arrays)


def _shown(value: Any) -> str:
    return "not set" if value is None else str(value)


def play_of(
    scene: Scene, records: Records, key: str, title: str, protocol: str, settings: Any, shown: Mapping[str, Any]
) -> Play:
    """What the log says. `settings` are the protocol's own, `shown` how to print them."""
    hops = hops_of(scene, records)
    deliveries = deliveries_of(scene, records)
    return Play(
        key=key,
        title=title,
        protocol=protocol,
        settings=shown,
        hops=hops,
        deliveries=deliveries,
        lives=lives_of(records),
        air=air_of(scene, records),
        overlays=overlays_of(protocol, settings, scene, hops, deliveries, notes_of(records)),
        radio=protocol not in PROTOCOLS or PROTOCOLS[protocol].medium == "radio",
    )


def hops_of(scene: Scene, records: Records) -> Hops:
    """The first receipts; what a publisher hears of its own event is none."""
    rows = records.of(Kind.RECEIVE)
    rows = rows[(records.event[rows] >= 0) & (records.node[rows] >= 0) & (records.peer[rows] >= 0)]
    number = scene.number_of_node
    source = np.array([number.get(event.source, -1) for event in scene.events], dtype=np.int64)
    rows = rows[source[records.event[rows]] != records.node[rows]] if len(source) else rows[:0]
    rows = rows[np.argsort(records.time[rows], kind="stable")]
    count = max(1, len(scene.nodes))
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


def deliveries_of(scene: Scene, records: Records) -> tuple[Ints, Ints, Floats]:
    """The first delivery of each event at each node, in order of time."""
    rows = records.of(Kind.DELIVER)
    rows = rows[(records.event[rows] >= 0) & (records.node[rows] >= 0)]
    rows = rows[np.argsort(records.time[rows], kind="stable")]
    pairs = records.event[rows].astype(np.int64) * max(1, len(scene.nodes)) + records.node[rows]
    rows = rows[np.sort(np.unique(pairs, return_index=True)[1])]
    return records.event[rows], records.node[rows], records.time[rows]


def lives_of(records: Records) -> tuple[Ints, Floats, npt.NDArray[np.uint8]]:
    """Who came and went."""
    rows = np.flatnonzero((records.kind == CODE[Kind.JOIN]) | (records.kind == CODE[Kind.LEAVE]))
    rows = rows[records.node[rows] >= 0]
    rows = rows[np.argsort(records.time[rows], kind="stable")]
    return records.node[rows], records.time[rows], (records.kind[rows] == CODE[Kind.JOIN]).astype(np.uint8)


def air_of(scene: Scene, records: Records) -> tuple[Ints, Ints]:
    """How many transmissions there were, with an event and without one."""
    rows = records.of(Kind.SEND)
    lasting = max(scene.end - scene.start, 1e-9)
    column = np.clip((records.time[rows] - scene.start) / lasting * BINS, 0, BINS - 1).astype(np.int64)
    data = records.event[rows] >= 0
    return (
        np.bincount(column[data], minlength=BINS).astype(np.int32),
        np.bincount(column[~data], minlength=BINS).astype(np.int32),
    )


def notes_of(records: Records) -> list[tuple[float, int, str, str]]:
    """What machines said about themselves: time, node, topic, detail."""
    found = []
    for row in records.of(Kind.NOTE):
        topic, sign, detail = records.detail[records.said[row]].partition(": ")
        if sign and records.node[row] >= 0:
            found.append((float(records.time[row]), int(records.node[row]), topic, detail))
    return found


def thinned(hops: Hops, events: int, most: int | None) -> tuple[Hops, list[int] | None]:
    """At most so many hops, of whole events, evenly chosen; and which events kept theirs (None: all)."""
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
