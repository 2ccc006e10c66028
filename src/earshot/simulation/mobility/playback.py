"""Playback of a recorded trace: rows of node, time and position, straight lines between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from random import Random
from typing import Any

import numpy as np

from earshot.errors import ScenarioError, TraceError
from earshot.geometry import LocalPlane
from earshot.records.trajectories import Floats, Interval, Trajectory
from earshot.settings import Finite, KindTable, Positive
from earshot.simulation.extent import Extent
from earshot.traces import Trace, read_trace
from earshot.traces.lake_tables import TraceRows, ordered_rows, trace_about, trace_rows
from earshot.traces.tables import EMPTY_LINE


class Playback(KindTable, frozen=True, tag="playback"):
    """Nodes that go where a trace says they went; they come and go with their rows."""

    file: FilePath | None = None
    "A trace of any format that `earshot ingest` reads, or a folder of Parquet files. Tables need columns "
    "for node, time and x, y or lat, lon; further columns are not read."
    lake: str | None = None
    "Instead of a file: the lake that `earshot ingest` read the trace into."
    trace: str | None = None
    "The name of the trace in that lake."
    start_s: Finite | None = None
    "The trace's time that becomes the run's 0; by default that of its first row."
    end_s: Finite | None = None
    "Only nodes that are there between start_s and end_s take part; by default all."
    type: str | None = None
    "Only nodes of this type take part, where a trace in a lake has types; by default all."
    max_gap_s: Positive = 30.0
    "A node without a row for longer than this has left the network, and joins again with its next row. "
    "A trace of waypoints (ns-2, BonnMotion) has no such gaps."
    origin_lat_deg: Finite | None = None
    "For a file, the plane's origin for latitudes and longitudes; by default the trace's median place, as for `ingest`."
    origin_lon_deg: Finite | None = None
    "See origin_lat_deg."
    shift_m: tuple[Finite, Finite] = (0.0, 0.0)
    "[x, y] to add to every position, to lay the trace on the area."

    def validate(self) -> None:
        if (self.lake is None) != (self.trace is None):
            raise ScenarioError("lake and trace belong together: write both, or file instead")
        if (self.file is None) == (self.lake is None):
            raise ScenarioError("write one of file (a trace's file) and lake (with trace: its name there)")
        if (self.origin_lat_deg is None) != (self.origin_lon_deg is None):
            raise ScenarioError("origin_lat_deg and origin_lon_deg belong together: write both or neither")
        if self.lake is not None and self.origin_lat_deg is not None:
            raise ScenarioError("origin_lat_deg is for a file: a trace in a lake lies on its plane already")
        if self.type is not None and self.lake is None:
            raise ScenarioError("type is for a trace in a lake, which keeps the types that a trace has")
        if self.start_s is not None and self.end_s is not None and self.end_s <= self.start_s:
            raise ScenarioError(f"end_s must come after start_s, got {self.end_s:g} and {self.start_s:g}")

    @property
    def source(self) -> str:
        """What is played back, in a word: the trace's name, or the file's."""
        return self.trace if self.trace is not None else FilePath(self.file or "").name

    def span(self) -> tuple[float, float]:
        """The times of the whole trace's first and last row."""
        if self.lake is not None and self.trace is not None:
            about = trace_about(self.lake, self.trace)
            return about.start, about.end
        whole = self._file_rows(None, None)
        return whole.start, float(whole.time.max())

    def content(self) -> dict[str, Any]:
        """What a trace in a lake is, in place of where it is."""
        if self.lake is None or self.trace is None:
            return {}
        return {"lake": None, "trace": None, "content": trace_about(self.lake, self.trace).content}

    def names(self, until_s: float = math.inf) -> tuple[str, ...]:
        """The trace's nodes, in order; end_s says which, not the run's end."""
        rows = self._rows()
        if self.type is None:
            return rows.names
        return tuple(name for name in rows.names if rows.types.get(name) == self.type)

    def types(self, until_s: float = math.inf) -> Mapping[str, str]:
        """What kind of node each is, where the trace says so."""
        return self._rows().types

    def time_present_s(self, until_s: float) -> Mapping[str, float]:
        """For how long each node is in the network before `until_s`."""
        return {
            path.name: sum(min(end, until_s) - max(start, 0.0) for start, end in path.presence)
            for path in self.paths(self.names(), Extent(), (), until_s)
        }

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        rows = self._rows()
        time = rows.time - (rows.start if self.start_s is None else self.start_s)
        x, y = rows.x_m + self.shift_m[0], rows.y_m + self.shift_m[1]
        wanted = set(names)
        max_gap_s = math.inf if rows.motion == "waypoints" else self.max_gap_s
        return [
            self._path(name, time[first:last], x[first:last], y[first:last], max_gap_s, until_s)
            for name, first, last in zip(rows.names, rows.first[:-1], rows.first[1:], strict=True)
            if name in wanted
        ]

    def _path(self, name: str, time: Floats, x: Floats, y: Floats, max_gap_s: float, until_s: float) -> Trajectory:
        steps = np.diff(time)
        if np.any(steps == 0):
            at = float(time[np.flatnonzero(steps == 0)[0]])
            raise TraceError(f"{self.source}: node {name!r} is at two places {at:g} s after the trace's start")
        breaks = np.flatnonzero(steps > max_gap_s)
        pieces = np.split(np.arange(len(time)), breaks + 1)
        presence = tuple((float(time[piece[0]]), float(time[piece[-1]])) for piece in pieces)
        # Through a gap the node stands where it was last seen, and jumps when it is seen again.
        rows = np.insert(np.arange(len(time)), breaks + 1, breaks)
        times = np.insert(time, breaks + 1, time[breaks + 1])
        return Trajectory(name, times, x[rows], y[rows], _within(presence, until_s))

    def _rows(self) -> TraceRows:
        if self.lake is not None and self.trace is not None:
            return trace_rows(self.lake, self.trace, self.start_s, self.end_s)
        return self._file_rows(self.start_s, self.end_s)

    def _file_rows(self, start_s: float | None, end_s: float | None) -> TraceRows:
        assert self.file is not None
        origin = None
        if self.origin_lat_deg is not None and self.origin_lon_deg is not None:
            origin = self.origin_lat_deg, self.origin_lon_deg
        changed = self.file.stat().st_mtime_ns if self.file.exists() else 0
        return _file_rows(self.file, changed, origin, start_s, end_s)


def _within(presence: tuple[Interval, ...], until_s: float) -> tuple[Interval, ...]:
    """The intervals that overlap the run: a node that was present before 0 is present at 0."""
    return tuple((start, end) for start, end in presence if end > max(start, 0.0) and start < until_s)


@lru_cache(maxsize=4)
def _file_rows(
    path: FilePath,
    _changed: int,
    origin: tuple[float, float] | None,
    start_s: float | None,
    end_s: float | None,
) -> TraceRows:
    """The rows of a trace file; kept, because names and paths are asked for separately and for every seed."""
    if not path.exists():
        raise TraceError(f"{path}: there is no such trace; check the path")
    trace = read_trace(path)
    for file, line, problem in trace.problems:
        if problem != EMPTY_LINE:
            raise TraceError(
                f"{file}: line {line}: {problem}; `earshot ingest` keeps the good rows of a trace: "
                "play back the trace in the lake (`earshot scenario from-trace`)"
            )
    if not len(trace.time):
        raise TraceError(f"{path}: the trace has no rows")
    x, y = _plane(trace, origin)
    names, node = np.unique(trace.node, return_inverse=True)
    whole = ordered_rows(
        [str(name) for name in names], node, trace.time, x, y, motion=trace.motion, start=float(trace.time.min())
    )
    return whole if end_s is None else _between(whole, start_s, end_s)


def _between(rows: TraceRows, start_s: float | None, end_s: float) -> TraceRows:
    """The nodes that have a row, or are between two rows, in that time."""
    first, last = rows.time[rows.first[:-1]], rows.time[rows.first[1:] - 1]
    there = (first <= end_s) & (last >= (rows.start if start_s is None else start_s))
    node = np.repeat(np.arange(len(rows.names)), np.diff(rows.first))
    kept = there[node]
    columns = (column[kept] for column in (rows.time, rows.x_m, rows.y_m))
    return ordered_rows(rows.names, node[kept], *columns, motion=rows.motion, start=rows.start)


def _plane(trace: Trace, origin: tuple[float, float] | None) -> tuple[Floats, Floats]:
    if not trace.geo:
        return trace.x_m, trace.y_m
    lat, lon = trace.lat_deg, trace.lon_deg
    middle = round(float(np.median(lat)), 6), round(float(np.median(lon)), 6)
    x, y = LocalPlane(*(origin or middle)).positions(lat, lon)
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
