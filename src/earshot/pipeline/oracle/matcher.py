"""Small questions to the oracle: subscription spans that a driver holds, and one node's place.

The watch sends a `Matcher` to its tasks with the spans that are in force, and `why` asks about one node.
Whole workloads go through `oracle.expected_receivers`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from earshot.filters import Oracle, Viewer
from earshot.filters.oracle import Numbers
from earshot.pipeline.oracle.workloads import events_of
from earshot.records.sessions import SubscriptionSpan
from earshot.records.trajectories import Trajectory

Spans = Mapping[str, Sequence[SubscriptionSpan]]
"The subscription spans of each workload."


class Matcher:
    """Spans that are sent to the executors; a worker builds its indexes once."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self.id = uuid.uuid4().hex

    def lookup(self) -> CandidateLookup:
        """A worker runs many tasks of one job: the indexes of the last jobs are kept."""
        if self.id not in _lookups:
            while len(_lookups) >= 2:
                del _lookups[next(iter(_lookups))]
            _lookups[self.id] = CandidateLookup(self.spans)
        return _lookups[self.id]


class CandidateLookup:
    """An oracle for each workload; a span is known by its number among all of them."""

    def __init__(self, spans: Spans) -> None:
        self._oracles: dict[str, tuple[int, Oracle]] = {}
        every: list[SubscriptionSpan] = []
        for workload, some in spans.items():
            self._oracles[workload] = (len(every), Oracle(some))
            every += some
        self.columns = {
            "subscription": pa.array([span.subscription for span in every], pa.string()),
            "filter": pa.array([span.filter for span in every], pa.string()),
        }

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


def trajectory_of(positions: pa.Table) -> Trajectory:
    """A node's rows of `positions`, in any order, as its trajectory."""
    ordered = positions.sort_by("time")
    return Trajectory("", *(ordered.column(name).to_numpy() for name in ("time", "x_m", "y_m")))


def viewer_at(trajectory: Trajectory, time: float) -> Viewer | None:
    """A recorded node as a consumer at that time; None before its first position and after its last."""
    known = trajectory.recorded_at(time)
    return None if known is None else Viewer(*known)
