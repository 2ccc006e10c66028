"""The oracle: who should have received what, computed apart from every protocol.

A node is expected to receive an event when one of its subscriptions stands at the time of
publication and agrees with it in type, content and place: the filter, the publisher's area around
the node, the subscriber's region around the event. Where the node was is interpolated from
`positions`. The publisher itself is never a receiver.

Content comes first, through a `FilterIndex` in each Spark task; place is asked only of the few who
could want the event by content, beside that node's own positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from earshot.errors import LakeError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.filters.relaxing import needs_viewer, relaxed
from earshot.geometry import Area, Position, Velocity, parse_shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXPECTED_COLUMNS = "workload string, event string, time double, node string, subscription string, why string"
_CANDIDATE_COLUMNS = f"{EXPECTED_COLUMNS}, document string, filter string, region string"
_EXPECTED_ARROW = pa.schema(
    [
        ("workload", pa.string()),
        ("event", pa.string()),
        ("time", pa.float64()),
        ("node", pa.string()),
        ("subscription", pa.string()),
        ("why", pa.string()),
    ]
)
_CANDIDATE_ARROW = pa.schema(
    [
        *_EXPECTED_ARROW,
        pa.field("document", pa.string()),
        pa.field("filter", pa.string()),
        pa.field("region", pa.string()),
    ]
)


@dataclass(frozen=True)
class Wish:
    """One row of `subscriptions`: wanted by `node` from `start` until just before `end`."""

    workload: str
    subscription: str
    node: str
    filter: str
    region: str
    start: float
    end: float


def expected_receivers(
    subscriptions: DataFrame, positions: DataFrame | None = None
) -> Callable[[DataFrame], DataFrame]:
    """`events.transform(expected_receivers(subscriptions, positions))` gives `expected`."""
    wishes = tuple(
        Wish(*row)
        for row in subscriptions.select(
            "workload", "subscription", "node", "filter", F.coalesce("region", F.lit("")), "start", "end"
        ).collect()
    )

    def transform(events: DataFrame) -> DataFrame:
        by_content = tuple(wish for wish in wishes if not _asks_for_place(wish))
        by_place = tuple(wish for wish in wishes if _asks_for_place(wish))
        everywhere = events.where(~F.col("has_area"))
        settled = everywhere.mapInArrow(_matcher(by_content, candidates=False), EXPECTED_COLUMNS)
        placed: list[DataFrame] = []
        if by_place:
            placed.append(everywhere.mapInArrow(_matcher(by_place, candidates=True), _CANDIDATE_COLUMNS))
        somewhere = events.where("has_area")
        if not somewhere.isEmpty():
            placed.append(somewhere.mapInArrow(_matcher(wishes, candidates=True), _CANDIDATE_COLUMNS))
        for candidates in placed:
            if positions is None:
                raise LakeError("these events or subscriptions ask for places: the oracle needs the positions table")
            settled = settled.unionByName(candidates.transform(_at_their_places(positions)))
        return settled

    return transform


def _asks_for_place(wish: Wish) -> bool:
    return bool(wish.region) or needs_viewer(_parsed(wish.filter))


@lru_cache(maxsize=200_000)
def _parsed(text: str) -> Filter:
    return Filter.parse(text)


@lru_cache(maxsize=10_000)
def parse_region(text: str) -> Area:
    """A region as tables write it: a shape and where it lies, `circle:300m at 120,80`."""
    shape, _, at = text.partition(" at ")
    x, y = at.split(",")
    return Area(parse_shape(shape), Position(float(x), float(y)))


def write_region(region: Area | None) -> str:
    """What `parse_region` reads; empty for none."""
    return "" if region is None else f"{region.shape} at {region.at.x_m!r},{region.at.y_m!r}"


class _Matcher:
    """Events in, (event, wish) pairs out. Travels to the executors; builds its indexes there once."""

    def __init__(self, wishes: Sequence[Wish], candidates: bool) -> None:
        self.wishes = wishes
        self.candidates = candidates

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lookup = _WishLookup(self.wishes)
        for batch in batches:
            yield from self._match(batch, lookup)

    def _match(self, batch: pa.RecordBatch, lookup: _WishLookup) -> Iterator[pa.RecordBatch]:
        workloads = batch.column("workload").to_pylist()
        documents = batch.column("document").to_pylist()
        times = batch.column("time").to_pylist()
        rows: list[int] = []
        found: list[int] = []
        for row, (workload, document, time) in enumerate(zip(workloads, documents, times, strict=True)):
            keys = lookup.wanting(workload, Event.from_json(document), time)
            found += keys
            rows += [row] * len(keys)
        yield self._pairs(batch, np.array(rows, dtype=np.int64), np.array(found, dtype=np.int64), lookup)

    def _pairs(
        self, batch: pa.RecordBatch, rows: np.ndarray[Any, Any], found: np.ndarray[Any, Any], lookup: _WishLookup
    ) -> pa.RecordBatch:
        events = {name: batch.column(name).take(pa.array(rows)) for name in ("workload", "event", "time")}
        picked = pa.array(found)
        columns = {
            **events,
            "node": lookup.nodes.take(picked),
            "subscription": lookup.subscriptions.take(picked),
            "why": pa.array(["content and place" if self.candidates else "content"] * len(rows), pa.string()),
        }
        if self.candidates:
            columns["document"] = batch.column("document").take(pa.array(rows))
            columns["filter"] = lookup.filters.take(picked)
            columns["region"] = lookup.regions.take(picked)
        schema = _CANDIDATE_ARROW if self.candidates else _EXPECTED_ARROW
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _matcher(wishes: Sequence[Wish], candidates: bool) -> _Matcher:
    return _Matcher(wishes, candidates)


class _WishLookup:
    """The wishes of each workload, indexed by content."""

    def __init__(self, wishes: Sequence[Wish]) -> None:
        self.nodes = pa.array([wish.node for wish in wishes], pa.string())
        self.subscriptions = pa.array([wish.subscription for wish in wishes], pa.string())
        self.filters = pa.array([wish.filter for wish in wishes], pa.string())
        self.regions = pa.array([wish.region for wish in wishes], pa.string())
        self._wishes = wishes
        self._indexes: dict[str, FilterIndex] = {}
        self._always = all(wish.start == -np.inf and wish.end == np.inf for wish in wishes)
        for number, wish in enumerate(wishes):
            index = self._indexes.setdefault(wish.workload, FilterIndex())
            index.add(number, relaxed(_parsed(wish.filter)))

    def wanting(self, workload: str, event: Event, time: float) -> list[int]:
        """The numbers of the wishes that stand at that time and agree with the event's content."""
        index = self._indexes.get(workload)
        if index is None:
            return []
        return [
            number
            for number in sorted(index.match(event))
            if (wish := self._wishes[number]).start <= time < wish.end and wish.node != event.source
        ]


def _at_their_places(positions: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """Candidates, each beside its node's own positions, to those who really were in place."""

    def transform(candidates: DataFrame) -> DataFrame:
        where_they_were = positions.select(F.col("trace").alias("workload"), "node", "time", "x_m", "y_m")
        return (
            candidates.groupBy("workload", "node")
            .cogroup(where_they_were.groupBy("workload", "node"))
            .applyInArrow(_keep_in_place, EXPECTED_COLUMNS)
        )

    return transform


def _keep_in_place(candidates: pa.Table, positions: pa.Table) -> pa.Table:
    """One node's candidates and its positions."""
    if candidates.num_rows == 0 or positions.num_rows == 0:
        return _EXPECTED_ARROW.empty_table()
    way = Way.of(positions)
    events: dict[str, Event] = {}
    kept = []
    rows = zip(*(candidates.column(name).to_pylist() for name in ("document", "filter", "region", "time")), strict=True)
    for row, (document, text, region, time) in enumerate(rows):
        viewer = way.viewer(time)
        if viewer is None:
            continue
        event = events.get(document) or events.setdefault(document, Event.from_json(document))
        if accepts(event, _parsed(text), parse_region(region) if region else None, viewer):
            kept.append(row)
    return candidates.select(_EXPECTED_ARROW.names).take(kept)


def accepts(event: Event, filter: Filter, region: Area | None, viewer: Viewer) -> bool:
    """The whole predicate, as a node's last hop applies it: type, content and place."""
    if event.area is not None and not event.area.contains(viewer.position):
        return False
    if region is not None and (event.position is None or not region.contains(event.position)):
        return False
    return filter.matches(event, viewer)


@dataclass(frozen=True)
class Way:
    """One node's positions in order of time; straight lines between them."""

    time: np.ndarray[Any, Any]
    x_m: np.ndarray[Any, Any]
    y_m: np.ndarray[Any, Any]

    @classmethod
    def of(cls, positions: pa.Table) -> Way:
        """From rows in any order."""
        ordered = positions.sort_by("time")
        return cls(*(ordered.column(name).to_numpy() for name in ("time", "x_m", "y_m")))

    def viewer(self, time: float) -> Viewer | None:
        """The node as a consumer at that time; None before its first position and after its last."""
        if not self.time[0] <= time <= self.time[-1]:
            return None
        k = int(np.searchsorted(self.time, time, side="right")) - 1
        if k == len(self.time) - 1:
            return Viewer(Position(float(self.x_m[k]), float(self.y_m[k])), self._velocity(k - 1))
        velocity = self._velocity(k)
        passed = time - float(self.time[k])
        here = Position(float(self.x_m[k]) + velocity.x_m_s * passed, float(self.y_m[k]) + velocity.y_m_s * passed)
        return Viewer(here, velocity)

    def _velocity(self, k: int) -> Velocity:
        if k < 0 or (passed := float(self.time[k + 1] - self.time[k])) == 0.0:
            return Velocity(0.0, 0.0)
        return Velocity(float(self.x_m[k + 1] - self.x_m[k]) / passed, float(self.y_m[k + 1] - self.y_m[k]) / passed)
