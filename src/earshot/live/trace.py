"""Trace playback: a live node that goes where a node of a recorded trace went, at the trace's own pace."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from earshot.errors import LocationUnavailable, UnknownName
from earshot.geometry import LocalPlane, Position
from earshot.live.location import Fix, plane_near
from earshot.live.nmea import Track

TIME = ("time", "time_s", "timestep_time", "t", "timestamp")
NODE = ("node", "id", "vehicle_id", "vehicle", "trace", "name")
X = ("x_m", "x", "vehicle_x")
Y = ("y_m", "y", "vehicle_y")
LAT = ("lat_deg", "lat", "latitude")
LON = ("lon_deg", "lon", "lng", "longitude")


class TracePlayback:
    """Plays back one node of a CSV trace (columns time, node, and x_m, y_m in metres or lat, lon in degrees).

    SUMO's floating-car data as CSV has these columns too. Without a node's name the trace must have one node.
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
            opened = gzip.open if self._path.suffix == ".gz" else open
            with opened(self._path, "rt", encoding="utf-8", newline="") as lines:
                degrees, readings = self._read(lines)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise LocationUnavailable(f"cannot read the trace {self._path}: {error}") from None
        ordered = sorted(readings.items())
        self._plane = plane
        if degrees:
            self._plane = plane or plane_near(*ordered[0][1])
            positions = [self._plane.position(*at) for _, at in ordered]
        else:
            positions = [Position(*at) for _, at in ordered]
        self._track = Track([time for time, _ in ordered], positions, clock())

    def _read(self, lines: Iterable[str]) -> tuple[bool, dict[float, tuple[float, float]]]:
        """Whether it is in degrees, and the node's readings by time."""
        rows = iter(lines)
        header = next(rows, "")
        delimiter = max(";,\t", key=header.count)
        names = [name.strip().strip('"').lower() for name in header.rstrip("\r\n").split(delimiter)]
        time, node = _column(names, TIME), _column(names, NODE)
        x, y = _column(names, X), _column(names, Y)
        degrees = x is None or y is None
        if degrees:
            x, y = _column(names, LAT), _column(names, LON)
        if time is None or x is None or y is None:
            raise LocationUnavailable(
                f"the trace {self._path} needs columns time, node and x_m, y_m or lat, lon; it has {', '.join(names)}"
            )
        seen: set[str] = set()
        found: dict[float, tuple[float, float]] = {}
        for row in csv.reader(rows, delimiter=delimiter):
            if len(row) < len(names):
                continue
            name = row[node] if node is not None else ""
            seen.add(name)
            if self._node and name != self._node:
                continue
            try:
                values = float(row[time]), float(row[x]), float(row[y])
            except ValueError:
                continue
            if all(map(math.isfinite, values)):
                found[values[0]] = values[1], values[2]
        if self._node and self._node not in seen:
            raise UnknownName(f"node in {self._path}", self._node, sorted(seen)[:1000])
        if not self._node and len(seen) > 1:
            some = ", ".join(sorted(seen)[:5])
            raise LocationUnavailable(
                f"{self._path} has {len(seen)} nodes; say which: trace:{self._path}#NODE ({some})"
            )
        if not found:
            raise LocationUnavailable(f"the trace {self._path} has no position of {self._node or 'any node'}")
        return degrees, found

    async def stop(self) -> None:
        return None

    def fix(self, now: float) -> Fix:
        assert self._track is not None
        return self._track.fix(now)


def _column(names: list[str], known: tuple[str, ...]) -> int | None:
    return next((names.index(name) for name in known if name in names), None)
