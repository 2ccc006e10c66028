"""Playback of a recorded trace: rows of node, time and place, straight lines between them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from random import Random
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from earshot.errors import ScenarioError, TraceError
from earshot.geometry import LocalPlane
from earshot.records.trajectories import Floats, Interval, Trajectory
from earshot.simulation.extent import Ground
from earshot.simulation.settings_schema import DataFile

PLANE = ("x_m", "y_m")
GLOBE = ("lat_deg", "lon_deg")


@dataclass(frozen=True, slots=True)
class Playback:
    """Nodes that go where a trace says they went; they come and go with their rows."""

    kind: ClassVar[str] = "playback"
    file: DataFile
    "A .csv or .parquet file (or a folder of Parquet files) with the columns node, time, x_m, y_m, "
    "or node, time, lat_deg, lon_deg; time in seconds. Further columns are not read."
    start_s: float | None = None
    "The trace's time that becomes the run's 0; its first row's where not given."
    max_gap_s: float = 30.0
    "A node without a row for longer than this has left the network, and joins again with its next row."
    origin_lat_deg: float | None = None
    "The plane's origin for latitudes and longitudes; the trace's south-west corner where not given."
    origin_lon_deg: float | None = None
    "See origin_lat_deg."
    shift_m: tuple[float, float] = (0.0, 0.0)
    "[x, y] to add to every position, to lay the trace on the area."

    def __post_init__(self) -> None:
        if self.max_gap_s <= 0:
            raise ScenarioError(f"max_gap_s must be positive, got {self.max_gap_s}")
        if (self.origin_lat_deg is None) != (self.origin_lon_deg is None):
            raise ScenarioError("origin_lat_deg and origin_lon_deg belong together: write both or neither")

    def names(self) -> tuple[str, ...]:
        """The trace's nodes, in order."""
        return tuple(str(name) for name in np.unique(self._rows().node))

    def paths(
        self, names: Sequence[str], ground: Ground, randoms: Sequence[Random], until_s: float
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
        return [
            self._path(str(node[first]), time[first:last], x[first:last], y[first:last], until_s)
            for first, last in zip(firsts, lasts, strict=True)
            if str(node[first]) in wanted
        ]

    def _path(self, name: str, time: Floats, x: Floats, y: Floats, until_s: float) -> Trajectory:
        steps = np.diff(time)
        if np.any(steps == 0):
            at = float(time[np.flatnonzero(steps == 0)[0]])
            raise TraceError(f"{self.file}: node {name!r} is at two places {at:g} s after the trace's start")
        breaks = np.flatnonzero(steps > self.max_gap_s)
        pieces = np.split(np.arange(len(time)), breaks + 1)
        presence = tuple((float(time[piece[0]]), float(time[piece[-1]])) for piece in pieces)
        # Through a gap the node stands where it was last seen, and jumps when it is seen again.
        rows = np.insert(np.arange(len(time)), breaks + 1, breaks)
        times = np.insert(time, breaks + 1, time[breaks + 1])
        return Trajectory(name, times, x[rows], y[rows], _within(presence, until_s))

    def _plane(self, rows: _Rows) -> tuple[Floats, Floats]:
        if rows.columns == PLANE:
            return rows.first, rows.second
        lat, lon = rows.first, rows.second
        if np.any(np.abs(lat) > 90) or np.any(np.abs(lon) > 180):
            raise TraceError(f"{self.file}: a latitude beyond 90 or a longitude beyond 180 degrees")
        if self.origin_lat_deg is not None and self.origin_lon_deg is not None:
            plane = LocalPlane(self.origin_lat_deg, self.origin_lon_deg)
        else:
            plane = LocalPlane(float(lat.min()), float(lon.min()))
        x, y = plane.positions(lat, lon)
        return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def _rows(self) -> _Rows:
        path = self.file.path
        return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


def _within(presence: tuple[Interval, ...], until_s: float) -> tuple[Interval, ...]:
    """The intervals the run sees any of: a node that was there before 0 is there at 0."""
    return tuple((start, end) for start, end in presence if end > max(start, 0.0) and start < until_s)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    node: npt.NDArray[np.str_]
    time: Floats
    first: Floats
    second: Floats
    columns: tuple[str, str]


@lru_cache(maxsize=4)
def _read(path: FilePath, _changed: int) -> _Rows:
    """The trace's rows; kept, for names and paths are asked for apart and for every seed."""
    if not path.exists():
        raise TraceError(f"{path}: no such trace")
    if path.is_dir() or path.suffix == ".parquet":
        table = _parquet(path)
    elif path.suffix == ".csv":
        table = _csv(path)
    else:
        raise TraceError(f"{path}: a trace is a .csv or a .parquet file; `earshot ingest` reads other formats")
    time, first, second = (_numbers(path, name, table[name]) for name in ("time", *_place(path, table)))
    if not len(time):
        raise TraceError(f"{path}: the trace has no rows")
    return _Rows(np.asarray(table["node"], dtype=np.str_), time, first, second, _place(path, table))


def _place(path: FilePath, columns: Any) -> tuple[str, str]:
    for pair in (PLANE, GLOBE):
        if all(name in columns for name in ("node", "time", *pair)):
            return pair
    raise TraceError(
        f"{path}: a trace needs the columns node, time and x_m, y_m (or lat_deg, lon_deg); "
        f"this one has {', '.join(columns) or 'none'}"
    )


def _numbers(path: FilePath, name: str, column: Any) -> Floats:
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{path}: the column {name} must hold numbers: {error}") from None
    if not np.isfinite(values).all():
        raise TraceError(f"{path}: the column {name} has {int((~np.isfinite(values)).sum())} rows without a number")
    return values


def _csv(path: FilePath) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            head = file.readline()
            delimiter = max(",;\t", key=head.count)
            header = [name.strip() for name in head.rstrip("\r\n").split(delimiter)]
            _place(path, header)
            wanted = [(name, i) for i, name in enumerate(header) if name in ("node", "time", *PLANE, *GLOBE)]
            columns: dict[str, list[str]] = {name: [] for name, _ in wanted}
            for line, row in enumerate(csv.reader(file, delimiter=delimiter), start=2):
                if not row:
                    continue
                if len(row) != len(header):
                    raise TraceError(f"{path}: line {line} has {len(row)} columns, the header {len(header)}")
                for name, i in wanted:
                    columns[name].append(row[i])
        except (UnicodeDecodeError, csv.Error) as error:
            raise TraceError(f"{path}: not a CSV file: {error}") from None
    return columns


def _parquet(path: FilePath) -> dict[str, Any]:
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError:
        raise TraceError(f"{path}: Parquet needs pyarrow: pip install 'earshot[pipeline]', or give a .csv") from None
    try:
        dataset = ds.dataset(path, format="parquet", partitioning="hive")
        names = dataset.schema.names
        table = dataset.to_table(columns=["node", "time", *_place(path, names)])
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{path}: not a Parquet file: {error}") from None
    node = table.column("node").cast(pa.string()).to_numpy(zero_copy_only=False)
    found: dict[str, Any] = {"node": node}
    for name in table.column_names[1:]:
        found[name] = table.column(name).to_numpy(zero_copy_only=False)
    return found
