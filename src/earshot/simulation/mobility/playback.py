"""Playback of a recorded trace: rows of node, time and position, straight lines between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from random import Random

import numpy as np

from earshot.errors import ScenarioError, TraceError
from earshot.geometry import LocalPlane
from earshot.records.trajectories import Floats, Interval, Trajectory
from earshot.settings import Finite, KindTable, Positive
from earshot.simulation.extent import Extent
from earshot.traces import Trace, read_trace
from earshot.traces.tables import EMPTY_LINE


class Playback(KindTable, frozen=True, tag="playback"):
    """Nodes that go where a trace says they went; they come and go with their rows."""

    file: FilePath
    "A trace of any format that `earshot ingest` reads, or a folder of Parquet files. Tables need columns "
    "for node, time and x, y or lat, lon; further columns are not read."
    start_s: Finite | None = None
    "The trace's time that becomes the run's 0; by default that of its first row."
    max_gap_s: Positive = 30.0
    "A node without a row for longer than this has left the network, and joins again with its next row. "
    "A trace of waypoints (ns-2, BonnMotion) has no such gaps."
    origin_lat_deg: Finite | None = None
    "The plane's origin for latitudes and longitudes; by default the trace's south-west corner."
    origin_lon_deg: Finite | None = None
    "See origin_lat_deg."
    shift_m: tuple[Finite, Finite] = (0.0, 0.0)
    "[x, y] to add to every position, to lay the trace on the area."

    def validate(self) -> None:
        if (self.origin_lat_deg is None) != (self.origin_lon_deg is None):
            raise ScenarioError("origin_lat_deg and origin_lon_deg belong together: write both or neither")

    def names(self) -> tuple[str, ...]:
        """The trace's nodes, in order."""
        return tuple(str(name) for name in np.unique(self._rows().node))

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        rows = self._rows()
        x, y = self._plane(rows)
        start_s = float(rows.time.min()) if self.start_s is None else self.start_s
        order = np.lexsort((rows.time, rows.node))
        node, time = rows.node[order], rows.time[order] - start_s
        x, y = x[order] + self.shift_m[0], y[order] + self.shift_m[1]
        firsts = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
        lasts = np.append(firsts[1:], len(node))
        wanted = set(names)
        max_gap_s = math.inf if rows.motion == "waypoints" else self.max_gap_s
        return [
            self._path(str(node[first]), time[first:last], x[first:last], y[first:last], max_gap_s, until_s)
            for first, last in zip(firsts, lasts, strict=True)
            if str(node[first]) in wanted
        ]

    def _path(self, name: str, time: Floats, x: Floats, y: Floats, max_gap_s: float, until_s: float) -> Trajectory:
        steps = np.diff(time)
        if np.any(steps == 0):
            at = float(time[np.flatnonzero(steps == 0)[0]])
            raise TraceError(f"{self.file}: node {name!r} is at two places {at:g} s after the trace's start")
        breaks = np.flatnonzero(steps > max_gap_s)
        pieces = np.split(np.arange(len(time)), breaks + 1)
        presence = tuple((float(time[piece[0]]), float(time[piece[-1]])) for piece in pieces)
        # Through a gap the node stands where it was last seen, and jumps when it is seen again.
        rows = np.insert(np.arange(len(time)), breaks + 1, breaks)
        times = np.insert(time, breaks + 1, time[breaks + 1])
        return Trajectory(name, times, x[rows], y[rows], _within(presence, until_s))

    def _plane(self, trace: Trace) -> tuple[Floats, Floats]:
        if not trace.geo:
            return trace.x_m, trace.y_m
        lat, lon = trace.lat_deg, trace.lon_deg
        if self.origin_lat_deg is not None and self.origin_lon_deg is not None:
            plane = LocalPlane(self.origin_lat_deg, self.origin_lon_deg)
        else:
            plane = LocalPlane(float(lat.min()), float(lon.min()))
        x, y = plane.positions(lat, lon)
        return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def _rows(self) -> Trace:
        return _read(self.file, self.file.stat().st_mtime_ns if self.file.exists() else 0)


def _within(presence: tuple[Interval, ...], until_s: float) -> tuple[Interval, ...]:
    """The intervals that overlap the run: a node that was present before 0 is present at 0."""
    return tuple((start, end) for start, end in presence if end > max(start, 0.0) and start < until_s)


@lru_cache(maxsize=4)
def _read(path: FilePath, _changed: int) -> Trace:
    """The trace; kept, because names and paths are asked for separately and for every seed."""
    if not path.exists():
        raise TraceError(f"{path}: there is no such trace; check the path")
    trace = read_trace(path)
    for file, line, problem in trace.problems:
        if problem != EMPTY_LINE:
            raise TraceError(
                f"{file}: line {line}: {problem}; `earshot ingest` keeps the good rows of a trace: "
                "play back LAKE/positions/trace=NAME"
            )
    if not len(trace.time):
        raise TraceError(f"{path}: the trace has no rows")
    return trace
