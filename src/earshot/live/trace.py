"""Trace playback: a live node that goes where a node of a recorded trace went, at the trace's own pace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from earshot.errors import LocationUnavailable, TraceError, UnknownName
from earshot.geometry import LocalPlane, Position
from earshot.live.location import Fix, plane_near
from earshot.live.nmea import Track
from earshot.traces import read_trace


class TracePlayback:
    """Plays back one node of a trace, in any format that Earshot reads; rows that cannot be read are left out.

    Without a node's name the trace must have one node.
    """

    def __init__(self, path: str | Path, node: str = "") -> None:
        self._path = Path(path)
        self._node = node
        self._plane: LocalPlane | None = None
        self._track: Track | None = None

    @property
    def plane(self) -> LocalPlane | None:
        return self._plane

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        try:
            trace = read_trace(self._path)
        except (TraceError, OSError) as error:
            raise LocationUnavailable(f"cannot read the trace {self._path}: {error}") from None
        nodes = np.unique(trace.node).tolist()
        if self._node and self._node not in nodes:
            raise UnknownName(f"node in {self._path}", self._node, nodes[:1000])
        if not self._node and len(nodes) > 1:
            some = ", ".join(nodes[:5])
            raise LocationUnavailable(
                f"{self._path} has {len(nodes)} nodes; say which: trace:{self._path}#NODE ({some})"
            )
        if not nodes:
            raise LocationUnavailable(f"the trace {self._path} has no position of any node")
        mine = np.flatnonzero(trace.node == self._node) if self._node else np.arange(len(trace.time))
        first, second = (trace.lat_deg, trace.lon_deg) if trace.geo else (trace.x_m, trace.y_m)
        # Of two rows of one time the later row counts.
        rows = dict(zip(trace.time[mine].tolist(), zip(first[mine], second[mine], strict=True), strict=True))
        ordered = [(time, (float(a), float(b))) for time, (a, b) in sorted(rows.items())]
        self._plane = plane
        if trace.geo:
            self._plane = plane or plane_near(*ordered[0][1])
            positions = [self._plane.position(*at) for _, at in ordered]
        else:
            positions = [Position(*at) for _, at in ordered]
        self._track = Track([time for time, _ in ordered], positions, clock())

    async def stop(self) -> None:
        return None

    def fix(self, now: float) -> Fix:
        assert self._track is not None
        return self._track.fix(now)
