"""Playback: a live node that goes where a recorded node went, at the recording's own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from earshot.errors import LocationUnavailable, TraceError, UnknownName, listed
from earshot.geometry import STILL, LocalPlane, Position
from earshot.live.location import Fix, plane_near
from earshot.records.trajectories import Trajectory
from earshot.traces import read_trace


class Track:
    """Recorded positions that are played back in real time from the start of the node."""

    def __init__(self, rows: Iterable[tuple[float, float, float]], plane: LocalPlane | None, started_at: float) -> None:
        """From rows of a time and degrees, or of a time and metres if there is no plane. If two rows have the same
        time, the later row counts."""
        ordered = sorted({time: (float(a), float(b)) for time, a, b in rows}.items())
        places = [Position(*at) if plane is None else plane.position(*at) for _, at in ordered]
        times = [started_at + time - ordered[0][0] for time, _ in ordered]
        self._first, self._last = places[0], Fix(places[-1], STILL, times[-1])
        knots = [(time, place.x_m, place.y_m) for time, place in zip(times, places, strict=True)]
        self._trajectory = Trajectory.through("", knots)

    def fix(self, now: float) -> Fix:
        """The position between two rows; after the last one the fix grows older."""
        if now >= self._last.time:
            return self._last
        position, velocity = self._trajectory.recorded_at(now) or (self._first, STILL)
        return Fix(position, velocity, now)


class TracePlayback:
    """Plays back one node of a trace, in any format that Earshot reads; rows that cannot be read are left out.

    Without a node's name the trace must have one node.
    """

    def __init__(self, path: str | Path, node: str = "") -> None:
        self.plane: LocalPlane | None = None
        self._path = Path(path)
        self._node = node
        self._track: Track | None = None

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        try:
            trace = read_trace(self._path)
        except (TraceError, OSError) as error:
            hint = "; here, write the names into the file's first line" if "--columns" in str(error) else ""
            raise LocationUnavailable(f"cannot read the trace {self._path}: {error}{hint}") from None
        nodes = np.unique(trace.node).tolist()
        if self._node and self._node not in nodes:
            raise UnknownName(f"node in {self._path}", self._node, nodes)
        if not self._node and len(nodes) > 1:
            raise LocationUnavailable(
                f"{self._path} has {len(nodes):,} nodes; say which: trace:{self._path}#NODE ({listed(nodes)})"
            )
        if not nodes:
            raise LocationUnavailable(f"the trace {self._path} has no position of any node")
        mine = trace.node == self._node if self._node else slice(None)
        first, second = (trace.lat_deg, trace.lon_deg) if trace.geo else (trace.x_m, trace.y_m)
        rows = np.column_stack((trace.time, first, second))[mine].tolist()
        self.plane = plane or plane_near(*min(rows)[1:]) if trace.geo else plane
        self._track = Track(rows, self.plane if trace.geo else None, clock())

    async def stop(self) -> None:
        return None

    def fix(self, now: float) -> Fix:
        assert self._track is not None
        return self._track.fix(now)
