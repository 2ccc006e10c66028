"""The oracle: who should have received what, computed apart from every protocol.

A node is expected to receive an event when one of its subscriptions stands at the time of
publication and agrees with it in type, content and place: the filter, the publisher's area around
the node, the subscriber's region around the event. Where the node was is interpolated from
`positions`. The publisher itself is never a receiver.

Content comes first, through a `FilterIndex` in each Spark task; place is asked only of the few who
could want the event by content, beside that node's own positions.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from earshot.errors import LakeError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.geometry import Area
from earshot.pipeline.lake.tables import EVENTS, EXPECTED
from earshot.pipeline.oracle.workloads import area_of, event_of, events_of
from earshot.records.trajectories import Trajectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXPECTED_COLUMNS = EXPECTED.ddl
_CANDIDATE_COLUMNS = "workload string, node string, subscription string, filter string, region string, " + ", ".join(
    f"`{name}` {kind}" for name, kind in EVENTS.columns.items() if name != "workload"
)
_TEXT = pa.string()
Numbers = npt.NDArray[np.int64]
_EXPECTED_ARROW = pa.schema([(name, _TEXT) for name in EXPECTED.columns])
_EVENT_COLUMNS = tuple(name for name in EVENTS.columns if name != "workload")


@dataclass(frozen=True)
class Wish:
    """One row of `subscriptions`: wanted by `node` from `start` until just before `end`."""

    workload: str
    subscription: str
    node: str
    filter: str
    region: str | None
    start: float
    end: float


def wishes_of(subscriptions: DataFrame) -> list[Wish]:
    """The rows of `subscriptions`; one that is never withdrawn ends in infinity."""
    end = F.coalesce("end", F.lit(math.inf))
    rows = subscriptions.select("workload", "subscription", "node", "filter", "region", "start", end.alias("end"))
    return [Wish(*row) for row in rows.collect()]


def expected_receivers(
    subscriptions: DataFrame, positions: DataFrame | None = None
) -> Callable[[DataFrame], DataFrame]:
    """`events.transform(expected_receivers(subscriptions, positions))` gives `expected`."""
    return receivers_among(wishes_of(subscriptions), positions)


def receivers_among(wishes: Sequence[Wish], positions: DataFrame | None = None) -> Callable[[DataFrame], DataFrame]:
    """The same, where the subscriptions are at hand."""

    def transform(events: DataFrame) -> DataFrame:
        by_content = [wish for wish in wishes if not asks_for_place(wish)]
        by_place = [wish for wish in wishes if asks_for_place(wish)]
        everywhere = events.where("area is null")
        settled = everywhere.mapInArrow(Matcher(by_content, candidates=False), EXPECTED_COLUMNS)
        placed: list[DataFrame] = []
        if by_place:
            placed.append(everywhere.mapInArrow(Matcher(by_place, candidates=True), _CANDIDATE_COLUMNS))
        somewhere = events.where("area is not null")
        if not somewhere.isEmpty():
            placed.append(somewhere.mapInArrow(Matcher(wishes, candidates=True), _CANDIDATE_COLUMNS))
        for candidates in placed:
            if positions is None:
                raise LakeError("these events or subscriptions ask for places: the oracle needs the positions table")
            settled = settled.unionByName(candidates.transform(_at_their_places(positions)))
        return settled

    return transform


def asks_for_place(wish: Wish) -> bool:
    """Whether it depends on where its node or the event is."""
    return wish.region is not None or parsed(wish.filter).needs_viewer


@lru_cache(maxsize=200_000)
def parsed(text: str) -> Filter:
    """A filter by its text; each is read once."""
    return Filter.parse(text)


@lru_cache(maxsize=10_000)
def region(text: str | None) -> Area | None:
    """A region of interest by its text; each is read once."""
    return area_of(text)


class Matcher:
    """Events in, (event, wish) pairs out. Travels to the executors; a worker builds its indexes once."""

    def __init__(self, wishes: Sequence[Wish], candidates: bool) -> None:
        self.wishes = wishes
        self.candidates = candidates
        self.id = uuid.uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lookup = self.lookup()
        for batch in batches:
            rows, found = lookup.wanting(batch)
            yield self._pairs(batch, pa.array(rows), pa.array(found), lookup)

    def lookup(self) -> WishLookup:
        """A worker runs many tasks of one job: the index of the last jobs is kept."""
        if self.id not in _lookups:
            while len(_lookups) >= 2:
                del _lookups[next(iter(_lookups))]
            _lookups[self.id] = WishLookup(self.wishes)
        return _lookups[self.id]

    def _pairs(self, batch: pa.RecordBatch, rows: pa.Array, found: pa.Array, lookup: WishLookup) -> pa.RecordBatch:
        of_the_wish = {"node": lookup.nodes.take(found), "subscription": lookup.subscriptions.take(found)}
        workload = {"workload": batch.column("workload").take(rows)}
        if not self.candidates:
            event = {"event": batch.column("event").take(rows)}
            why = {"why": pa.repeat(pa.scalar("content", _TEXT), len(rows))}
            return pa.RecordBatch.from_pydict({**workload, **event, **of_the_wish, **why}, schema=_EXPECTED_ARROW)
        asked = {"filter": lookup.filters.take(found), "region": lookup.regions.take(found)}
        event = {name: batch.column(name).take(rows) for name in _EVENT_COLUMNS}
        return pa.RecordBatch.from_pydict({**workload, **of_the_wish, **asked, **event})


class WishLookup:
    """The wishes of each workload, indexed by content."""

    def __init__(self, wishes: Sequence[Wish]) -> None:
        self.nodes = pa.array([wish.node for wish in wishes], pa.string())
        self.subscriptions = pa.array([wish.subscription for wish in wishes], pa.string())
        self.filters = pa.array([wish.filter for wish in wishes], pa.string())
        self.regions = pa.array([wish.region for wish in wishes], pa.string())
        self._node_codes = {name: code for code, name in enumerate(dict.fromkeys(wish.node for wish in wishes))}
        self._node = np.array([self._node_codes[wish.node] for wish in wishes], dtype=np.int64)
        self._start = np.array([wish.start for wish in wishes], dtype=np.float64)
        self._end = np.array([wish.end for wish in wishes], dtype=np.float64)
        self._indexes: dict[str, FilterIndex] = {}
        for number, wish in enumerate(wishes):
            index = self._indexes.setdefault(wish.workload, FilterIndex())
            index.add(number, parsed(wish.filter).without_viewer_terms())

    def wanting(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """(row, wish) for each event of the batch and each wish that stands at its time, agrees with its
        content and is not its publisher's own."""
        found: list[int] = []
        counts: list[int] = []
        for workload, event in zip(batch.column("workload").to_pylist(), events_of(batch), strict=True):
            index = self._indexes.get(workload)
            keys = cast("set[int]", index.match(event)) if index is not None else ()
            found.extend(keys)
            counts.append(len(keys))
        rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        wishes = np.array(found, dtype=np.int64)
        times = batch.column("time").to_numpy()[rows]
        sources = [self._node_codes.get(name, -1) for name in batch.column("source").to_pylist()]
        own = np.array(sources, dtype=np.int64)[rows] == self._node[wishes]
        kept = (self._start[wishes] <= times) & (times < self._end[wishes]) & ~own
        return rows[kept], wishes[kept]


_lookups: dict[str, WishLookup] = {}


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
    trajectory = trajectory_of(positions)
    events: dict[str, Event] = {}
    kept = []
    for number, row in enumerate(candidates.to_pylist()):
        viewer = viewer_at(trajectory, row["time"])
        if viewer is None:
            continue
        event = events.get(row["event"]) or events.setdefault(row["event"], event_of(row))
        if accepts(event, parsed(row["filter"]), region(row["region"]), viewer):
            kept.append(number)
    chosen = candidates.take(pa.array(kept, pa.int64()))
    why = pa.repeat(pa.scalar("content and place", _TEXT), len(kept))
    return chosen.append_column("why", why).select(_EXPECTED_ARROW.names).cast(_EXPECTED_ARROW)


def accepts(event: Event, filter: Filter, region: Area | None, viewer: Viewer) -> bool:
    """The whole predicate, as a node's last hop applies it: type, content and place."""
    if event.area is not None and not event.area.contains(viewer.position):
        return False
    if region is not None and (event.position is None or not region.contains(event.position)):
        return False
    return filter.matches(event, viewer)


def trajectory_of(positions: pa.Table, node: str = "") -> Trajectory:
    """A node's rows of `positions`, in any order, as its trajectory."""
    ordered = positions.sort_by("time")
    return Trajectory(node, *(ordered.column(name).to_numpy() for name in ("time", "x_m", "y_m")))


def viewer_at(trajectory: Trajectory, time: float) -> Viewer | None:
    """A recorded node as a consumer at that time; None before its first position and after its last."""
    known = trajectory.recorded_at(time)
    return None if known is None else Viewer(*known)
