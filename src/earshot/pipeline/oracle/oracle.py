"""Expected receivers in Spark: the oracle over the events, subscriptions and positions of a lake.

Content comes first: each Spark task asks an `Oracle` for an event's candidates. Place is asked only of
the candidates it matters to, beside their node's own positions. A recorded node has no place before
its first position and after its last.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from earshot.errors import LakeError
from earshot.events import Event
from earshot.filters import Oracle, Subscription, Viewer, accepts, parsed
from earshot.filters.oracle import Numbers
from earshot.pipeline.lake.tables import EVENTS, EXPECTED
from earshot.pipeline.oracle.workloads import area_json, area_of, event_of, events_of
from earshot.records.sessions import SubscriptionSpan
from earshot.records.trajectories import Trajectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Spans = Mapping[str, Sequence[SubscriptionSpan]]
"The subscription spans of each workload."
EXPECTED_COLUMNS = EXPECTED.ddl
_EVENT_COLUMNS = tuple(name for name in EVENTS.columns if name != "workload")
_CANDIDATE_COLUMNS = "workload string, node string, subscription string, filter string, region string, " + ", ".join(
    f"`{name}` {EVENTS.columns[name]}" for name in _EVENT_COLUMNS
)
_TEXT = pa.string()
_EXPECTED_ARROW = pa.schema([(name, _TEXT) for name in EXPECTED.columns])


def spans_of(subscriptions: DataFrame) -> Spans:
    """The rows of `subscriptions` by workload; one that is never withdrawn ends in infinity."""
    end = F.coalesce("end", F.lit(math.inf))
    rows = subscriptions.select("workload", "node", "subscription", "filter", "region", "start", end.alias("end"))
    found: dict[str, list[SubscriptionSpan]] = {}
    for workload, node, subscription, filter, region, start, until in rows.collect():
        span = SubscriptionSpan(node, subscription, filter, region_of(region), start, until)
        found.setdefault(workload, []).append(span)
    return found


region_of = lru_cache(maxsize=10_000)(area_of)


def expected_receivers(
    subscriptions: DataFrame, positions: DataFrame | None = None
) -> Callable[[DataFrame], DataFrame]:
    """`events.transform(expected_receivers(subscriptions, positions))` gives `expected`."""

    def transform(events: DataFrame) -> DataFrame:
        by_content, by_place = _split(spans := spans_of(subscriptions))
        everywhere = events.where("area is null")
        settled = everywhere.mapInArrow(Matcher(by_content, candidates=False), EXPECTED_COLUMNS)
        placed: list[DataFrame] = []
        if by_place:
            placed.append(everywhere.mapInArrow(Matcher(by_place, candidates=True), _CANDIDATE_COLUMNS))
        somewhere = events.where("area is not null")
        if not somewhere.isEmpty():
            placed.append(somewhere.mapInArrow(Matcher(spans, candidates=True), _CANDIDATE_COLUMNS))
        for candidates in placed:
            if positions is None:
                raise LakeError("these events or subscriptions ask for places: the oracle needs the positions table")
            settled = settled.unionByName(candidates.transform(_in_place(positions)))
        return settled

    return transform


def _split(spans: Spans) -> tuple[Spans, Spans]:
    """The spans for which content alone decides where the event has no area, and the others."""
    found: tuple[dict[str, list[SubscriptionSpan]], dict[str, list[SubscriptionSpan]]] = ({}, {})
    for workload, some in spans.items():
        for span in some:
            asks_for_place = span.region is not None or parsed(span.filter).needs_viewer
            found[asks_for_place].setdefault(workload, []).append(span)
    return found


class Matcher:
    """Events to pairs of an event and a span. It is sent to the executors; a worker builds its indexes once."""

    def __init__(self, spans: Spans, candidates: bool) -> None:
        self.spans = spans
        self.candidates = candidates
        self.id = uuid.uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lookup = self.lookup()
        for batch in batches:
            rows, found = lookup.candidates(batch)
            yield self._pairs(batch, pa.array(rows, pa.int64()), pa.array(found, pa.int64()), lookup)

    def lookup(self) -> CandidateLookup:
        """A worker runs many tasks of one job: the indexes of the last jobs are kept."""
        if self.id not in _lookups:
            while len(_lookups) >= 2:
                del _lookups[next(iter(_lookups))]
            _lookups[self.id] = CandidateLookup(self.spans)
        return _lookups[self.id]

    def _pairs(self, batch: pa.RecordBatch, rows: pa.Array, found: pa.Array, lookup: CandidateLookup) -> pa.RecordBatch:
        workload = {"workload": batch.column("workload").take(rows)}
        of_the_span = {name: lookup.columns[name].take(found) for name in ("node", "subscription")}
        if not self.candidates:
            event = {"event": batch.column("event").take(rows)}
            why = {"why": pa.repeat(pa.scalar("content", _TEXT), len(rows))}
            return pa.RecordBatch.from_pydict({**workload, **event, **of_the_span, **why}, schema=_EXPECTED_ARROW)
        asked = {name: lookup.columns[name].take(found) for name in ("filter", "region")}
        event = {name: batch.column(name).take(rows) for name in _EVENT_COLUMNS}
        return pa.RecordBatch.from_pydict({**workload, **of_the_span, **asked, **event})


class CandidateLookup:
    """An oracle for each workload; a span is known by its number among all of them."""

    def __init__(self, spans: Spans) -> None:
        self._oracles: dict[str, tuple[int, Oracle]] = {}
        every: list[SubscriptionSpan] = []
        for workload, some in spans.items():
            self._oracles[workload] = (len(every), Oracle(some))
            every += some
        texts = {
            "node": [span.node for span in every],
            "subscription": [span.subscription for span in every],
            "filter": [span.filter for span in every],
            "region": [area_json(span.region) for span in every],
        }
        self.columns = {name: pa.array(column, _TEXT) for name, column in texts.items()}

    def oracle(self, workload: str) -> Oracle | None:
        """The oracle of a workload; None where it has no subscription."""
        return self._oracles[workload][1] if workload in self._oracles else None

    def candidates(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """(row, span) for each event of the batch and each of its candidates."""
        workloads, events = batch.column("workload").to_pylist(), list(events_of(batch))
        found: list[tuple[Numbers, Numbers]] = []
        for workload in dict.fromkeys(workloads):
            if workload in self._oracles:
                rows = np.array([row for row, other in enumerate(workloads) if other == workload], dtype=np.int64)
                first, oracle = self._oracles[workload]
                ours = [events[row] for row in rows]
                places, spans = oracle.candidates(ours, [event.time for event in ours])
                found.append((rows[places], spans + first))
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate([rows for rows, _ in found]), np.concatenate([spans for _, spans in found])


_lookups: dict[str, CandidateLookup] = {}


def _in_place(positions: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """Of candidates, joined with their nodes' positions, those that accept the event at that place."""

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
        subscription = Subscription(row["subscription"], row["node"], parsed(row["filter"]), region_of(row["region"]))
        if accepts(event, subscription, viewer):
            kept.append(number)
    chosen = candidates.take(pa.array(kept, pa.int64()))
    why = pa.repeat(pa.scalar("content and place", _TEXT), len(kept))
    return chosen.append_column("why", why).select(_EXPECTED_ARROW.names).cast(_EXPECTED_ARROW)


def trajectory_of(positions: pa.Table, node: str = "") -> Trajectory:
    """A node's rows of `positions`, in any order, as its trajectory."""
    ordered = positions.sort_by("time")
    return Trajectory(node, *(ordered.column(name).to_numpy() for name in ("time", "x_m", "y_m")))


def viewer_at(trajectory: Trajectory, time: float) -> Viewer | None:
    """A recorded node as a consumer at that time; None before its first position and after its last."""
    known = trajectory.recorded_at(time)
    return None if known is None else Viewer(*known)
