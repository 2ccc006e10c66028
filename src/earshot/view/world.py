"""The world of some runs: what is the same for all protocols. Extent, nodes and their trajectories,
events, subscriptions and announcements, and which nodes should have received which events.

A page gets it packed: compressed (gzip), four bytes with the length of a JSON text, the text, then arrays of numbers,
each on a multiple of eight bytes. The text has the plain values under "meta" and under "arrays" each array's type,
length and place. The same data give the same bytes at any time.
"""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot.events import Element, Event, value_text
from earshot.geometry import AnyShape, Area, Position, Proximity
from earshot.records.sessions import AnnouncementSpan, Interval, SubscriptionSpan
from earshot.records.trajectories import ALWAYS, Trajectory

Array = npt.NDArray[Any]
TYPES = {"float32": "<f4", "float64": "<f8", "int32": "<i4", "uint16": "<u2", "uint8": "|u1"}


def pack(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The bytes of a page's data."""
    places: dict[str, list[Any]] = {}
    pieces: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        kind = array.dtype.name
        data = np.ascontiguousarray(array, dtype=TYPES[kind]).tobytes()
        places[name] = [kind, len(array), at]
        padding = -len(data) % 8
        pieces += [data, bytes(padding)]
        at += len(data) + padding
    text = msgspec.json.encode({"meta": meta, "arrays": places})
    text += b" " * (-(len(text) + 4) % 8)
    return gzip.compress(len(text).to_bytes(4, "little") + text + b"".join(pieces), compresslevel=6, mtime=0)


def unpack(packed: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `pack` was given."""
    whole = gzip.decompress(packed)
    length = int.from_bytes(whole[:4], "little")
    found = msgspec.json.decode(whole[4 : 4 + length])
    start = 4 + length
    arrays = {
        name: np.frombuffer(whole, dtype=TYPES[kind], count=count, offset=start + at)
        for name, (kind, count, at) in found["arrays"].items()
    }
    return found["meta"], arrays


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

LONGEST_CONTENT = 2000
"The page keeps this many characters of an event's content."
STEPS_ACROSS = 4000
"A simplified trajectory errs by at most the extent's width divided by this: a quarter of a pixel on a wide screen."
LEAST_ACROSS_M = 20.0
"The least width of the map if no extent is given: nodes may all be at one place, and GPS is not more exact than this."


@dataclass(frozen=True)
class TrajectoryColumns:
    """All nodes' trajectories as columns: the knots of node i are `first[i]:first[i + 1]`."""

    first: Ints
    time: Floats
    x_m: Floats
    y_m: Floats

    @classmethod
    def of(cls, count: int, node: Array, time: Array, x_m: Array, y_m: Array) -> TrajectoryColumns:
        """From rows in any order; `node` is a number from 0 to `count` - 1. A row without a place is skipped."""
        known = np.isfinite(x_m) & np.isfinite(y_m) & (node >= 0)
        node, time, x_m, y_m = (np.asarray(column)[known] for column in (node, time, x_m, y_m))
        order = np.lexsort((time, node))
        first = np.searchsorted(node[order], np.arange(count + 1)).astype(np.int32)
        return cls(first, *(np.asarray(column, dtype=np.float64)[order] for column in (time, x_m, y_m)))

    @property
    def node(self) -> Ints:
        """The node of each knot."""
        return np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))

    def trajectory(self, node: int, name: str = "", presence: tuple[Interval, ...] = ALWAYS) -> Trajectory | None:
        """One node's trajectory; None for a node without a knot."""
        knots = slice(self.first[node], self.first[node + 1])
        if knots.start == knots.stop:
            return None
        return Trajectory(name, self.time[knots], self.x_m[knots], self.y_m[knots], presence)

    def at(self, nodes: Array, times: Array) -> tuple[Floats, Floats]:
        """Where those nodes are at those times; NaN for a node without a knot."""
        x, y = np.full(len(nodes), np.nan), np.full(len(nodes), np.nan)
        for node in np.unique(nodes):
            knots = slice(self.first[node], self.first[node + 1])
            if knots.start < knots.stop:
                asked = nodes == node
                x[asked] = np.interp(times[asked], self.time[knots], self.x_m[knots])
                y[asked] = np.interp(times[asked], self.time[knots], self.y_m[knots])
        return x, y

    def simplified(self, within_m: float) -> TrajectoryColumns:
        """Fewer knots, with every node within this distance of its true position at all times.

        Each pass looks at every second knot and drops it if straight motion between its neighbours comes
        close enough to it. Each pass allows half the error of the pass before, so that the sum of all errors
        stays within the bound.
        """
        kept_knots, allowed = self, within_m / 2
        while allowed > within_m / 1000:
            kept = kept_knots._needed(allowed)
            if kept.all():
                break
            node = kept_knots.node[kept]
            first = np.searchsorted(node, np.arange(len(kept_knots.first))).astype(np.int32)
            columns = (kept_knots.time[kept], kept_knots.x_m[kept], kept_knots.y_m[kept])
            kept_knots, allowed = TrajectoryColumns(first, *columns), allowed / 2
        return kept_knots

    def _needed(self, allowed_m: float) -> npt.NDArray[np.bool_]:
        kept = np.ones(len(self.time), dtype=bool)
        if len(self.time) < 3:
            return kept
        node, place = self.node, np.arange(len(self.time)) - self.first[self.node]
        middle = np.flatnonzero(place % 2 == 1)
        middle = middle[middle + 1 < len(self.time)]
        middle = middle[node[middle + 1] == node[middle]]
        before, after = middle - 1, middle + 1
        lasting = self.time[after] - self.time[before]
        share = np.divide(self.time[middle] - self.time[before], lasting, out=np.zeros(len(middle)), where=lasting > 0)
        dx = self.x_m[before] + share * (self.x_m[after] - self.x_m[before]) - self.x_m[middle]
        dy = self.y_m[before] + share * (self.y_m[after] - self.y_m[before]) - self.y_m[middle]
        kept[middle[np.hypot(dx, dy) <= allowed_m]] = False
        return kept


@dataclass(frozen=True)
class World:
    """One trace and one workload."""

    key: str
    "Identifies the world; runs with the same key can be shown side by side."
    name: str
    seed: int
    start: float
    end: float
    counted_from: float
    "Events published before this time (in the warm-up) are not measured."
    range_m: float | None
    "The radio's range; None if there is no radio, or its range is not known."
    extent: tuple[float, float] | None
    "Width and height from the origin; None: as far as the nodes go."
    nodes: Sequence[str]
    trajectories: TrajectoryColumns
    events: Sequence[Event]
    "In order of publication."
    subscriptions: Sequence[SubscriptionSpan]
    announcements: Sequence[AnnouncementSpan]
    expected: tuple[Ints, Ints] = field(default_factory=lambda: (_none(), _none()))
    "Pairs (event, node), by number: which node should have received which event."
    notes: Sequence[str] = ()
    "What the reader should know, such as a range that was guessed."

    @cached_property
    def number_of_node(self) -> dict[str, int]:
        """Node names to their numbers."""
        return {name: i for i, name in enumerate(self.nodes)}

    @cached_property
    def number_of_event(self) -> dict[str, int]:
        """Event ids to their numbers."""
        return {event.id: i for i, event in enumerate(self.events)}

    def numbered(self, pairs: Iterable[tuple[str, str]]) -> tuple[Ints, Ints]:
        """Pairs of an event's id and a node's name as numbers, each once; unknown events and nodes are left out."""
        events, nodes = self.number_of_event, self.number_of_node
        known = {(events[event], nodes[node]) for event, node in pairs if event in events and node in nodes}
        numbers = np.array(sorted(known), dtype=np.int32).reshape(len(known), 2)
        return numbers[:, 0].copy(), numbers[:, 1].copy()

    @cached_property
    def subscriptions_of(self) -> dict[str, list[SubscriptionSpan]]:
        """The subscriptions of each node."""
        found: dict[str, list[SubscriptionSpan]] = {}
        for span in self.subscriptions:
            found.setdefault(span.node, []).append(span)
        return found

    @cached_property
    def types(self) -> list[str]:
        """Every event type that is published, announced or not, in order."""
        return sorted({event.type for event in self.events} | {span.type for span in self.announcements})

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north of all that is shown."""
        width_m, height_m = self.extent or (None, None)
        west, east = _side(self.trajectories.x_m, width_m)
        south, north = _side(self.trajectories.y_m, height_m)
        return west, south, east, north

    def packed(self) -> bytes:
        """The world as the page reads it; times count from its start."""
        west, south, east, north = self.bounds
        shown = self.trajectories.simplified(max(east - west, north - south) / STEPS_ACROSS)
        types = {name: i for i, name in enumerate(self.types)}
        number = self.number_of_node
        meta = {
            "key": self.key,
            "name": self.name,
            "seed": self.seed,
            "start": self.start,
            "end": self.end - self.start,
            "counted_from": self.counted_from - self.start,
            "range_m": self.range_m,
            "bounds": [west, south, east, north],
            "extent": self.extent,
            "nodes": list(self.nodes),
            "types": self.types,
            "events": [self._event(event, types, number) for event in self.events],
            "subscriptions": [
                [number[s.node], s.subscription, s.filter, _area(s.region), s.start - self.start, self._until(s.end)]
                for s in self.subscriptions
                if s.node in number
            ],
            "announcements": [
                [number[a.node], types[a.type], _proximity(a.proximity), a.start - self.start, self._until(a.end)]
                for a in self.announcements
                if a.node in number
            ],
            "notes": list(self.notes),
        }
        arrays: dict[str, Array] = {
            "first": shown.first,
            "time": (shown.time - self.start).astype(np.float32),
            "x": shown.x_m.astype(np.float32),
            "y": shown.y_m.astype(np.float32),
            "expected_event": self.expected[0].astype(np.int32),
            "expected_node": self.expected[1].astype(np.int32),
        }
        return pack(meta, arrays)

    def _until(self, end: float) -> float | None:
        return end - self.start if math.isfinite(end) else None

    def _event(self, event: Event, types: dict[str, int], number: dict[str, int]) -> list[Any]:
        at = event.position
        return [
            event.id,
            types[event.type],
            number.get(event.source, -1),
            event.time - self.start,
            [at.x_m, at.y_m] if at else None,
            _area(event.area),
            content_text(event)[:LONGEST_CONTENT],
        ]


def _side(places_m: Floats, extent_m: float | None) -> tuple[float, float]:
    """From the first to the last place along one axis; a given extent is always shown whole."""
    seen = [] if extent_m is None else [0.0, extent_m]
    if len(places_m):
        seen += [float(places_m.min()), float(places_m.max())]
    low, high = min(seen, default=0.0), max(seen, default=0.0)
    short = max(0.0, LEAST_ACROSS_M - (high - low)) if extent_m is None else 0.0
    return low - short / 2, high + short / 2


def _none() -> Ints:
    return np.zeros(0, dtype=np.int32)


def content_text(event: Event) -> str:
    """An event's content for people to read."""
    if isinstance(event.content, Element):
        return event.to_xml().decode()
    return ", ".join(f"{name} = {value_text(value)}" for name, value in event.content.items())


def corners(shape: AnyShape, at: Position) -> list[list[float]]:
    """A shape's outline as flat rings of x and y, the outer one first, rounded to a tenth of a metre."""
    outline = shape.polygon(at)
    rings = [outline.exterior, *outline.interiors]
    return [[round(value, 1) for x, y in list(ring.coords)[:-1] for value in (x, y)] for ring in rings]


def _area(area: Area | None) -> dict[str, Any] | None:
    return None if area is None else {"text": str(area.shape), "rings": corners(area.shape, area.at)}


def _proximity(proximity: Proximity | None) -> dict[str, Any] | None:
    """A proximity for the page. The rings of a mobile proximity are relative to its publisher."""
    if proximity is None:
        return None
    at = Position(0.0, 0.0) if proximity.mobile else proximity.naval
    return {"text": str(proximity.shape), "mobile": proximity.mobile, "rings": corners(proximity.shape, at)}


def node_names(*sources: Iterable[str]) -> list[str]:
    """All names, once, in the order people count: car2 before car10."""
    return sorted({name for source in sources for name in source if name}, key=_natural)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key for sorting in which groups of digits count as numbers."""
    parts = [part for part in re.split("([0-9]+)", name) if part]
    digits = [part.lstrip("0") if part[0] in "0123456789" else None for part in parts]
    return [
        (1, 0, part) if number is None else (0, len(number), number) for part, number in zip(parts, digits, strict=True)
    ] + [(0, 0, name)]
