"""Sightings to positions: projected onto a plane, checked, and every row that fails kept with its reason.

A sighting is rejected as

- `unparsable`: the source could not read it;
- `duplicate`: the node has a row of that time already;
- `unordered`: it lies before the node's last row, by the order of files and lines. Tables, as in Parquet files, have
  no order of their own: their rows are put in order of time, and none is rejected for that;
- `impossible`: it is further from the node's last row than `max_speed_m_s` allows.

Each is judged against the last row that was kept, with two exceptions. A first row that the second cannot follow,
while the third can follow the second, is itself the impossible one: receivers start with a bad fix. A row that lies
after the next two rows, while they follow the row before it in order, is itself the unordered one: its clock was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError
from earshot.geometry import LocalPlane
from earshot.pipeline.spark.tasks import coded, table_of, whole_nodes
from earshot.records.trajectories import legs_from

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Floats = npt.NDArray[np.float64]
Transform = Callable[["DataFrame"], "DataFrame"]

REASONS = ("unparsable", "duplicate", "unordered", "impossible")
_KEPT, _UNPARSABLE, _DUPLICATE, _UNORDERED, _IMPOSSIBLE = range(5)
_ROWS_A_BATCH = 65_536

CHECKED = (
    "node string, time double, x_m double, y_m double, speed_m_s double, heading_deg double, "
    "until double, x_m_s double, y_m_s double, gap_s double, file string, line bigint, reason string, detail string, "
    "type string, others string"
)
"`reason` is null in the rows that are kept; `gap_s` is the time since the node's row before."


def checked(
    max_speed_m_s: float = math.inf,
    plane: LocalPlane | None = None,
    *,
    rows: int | None = None,
    sort_by_time: bool = False,
) -> Transform:
    """Sightings to checked rows (`CHECKED`). With a plane, latitude and longitude are laid on it. `rows`: about how
    many there are, where that is known; tasks are then sized by it. With `sort_by_time` the order of files and lines
    decides only between rows of the same time."""
    if not max_speed_m_s > 0:
        raise TraceError(f"max_speed_m_s must be positive, got {max_speed_m_s}")

    def transform(sightings: DataFrame) -> DataFrame:
        return whole_nodes(sightings, rows).mapInArrow(partial(_check, max_speed_m_s, plane, sort_by_time), CHECKED)

    return transform


def _check(
    max_speed_m_s: float, plane: LocalPlane | None, sort_by_time: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: whole nodes."""
    import pyarrow as pa

    table = table_of(batches)
    if table is None:
        return
    node, _ = coded(table.column("node"))
    file_number, line = (table.column(name).to_numpy() for name in ("file_number", "line"))
    time = _floats(table, "time")
    bad = table.column("problem").is_valid().to_numpy()
    # By node, then as the files have them. Waypoints of one line keep their order by time.
    order = np.lexsort((line, file_number, time, node) if sort_by_time else (time, line, file_number, node))
    table = table.take(pa.array(order))
    node, time, bad = node[order], time[order], bad[order]
    x, y = _places(plane, table)
    verdict = np.full(len(node), _UNPARSABLE)
    gap = np.full(len(node), np.nan)
    good = np.flatnonzero(~bad)
    for rows in np.split(good, np.flatnonzero(np.diff(node[good])) + 1):
        if len(rows):
            verdict[rows] = judged(time[rows], x[rows], y[rows], max_speed_m_s)
            kept = rows[verdict[rows] == _KEPT]
            gap[kept[1:]] = np.diff(time[kept])
    kept = np.flatnonzero(verdict == _KEPT)
    until, x_m_s, y_m_s = (np.full(len(node), np.nan) for _ in range(3))
    until[kept], x_m_s[kept], y_m_s[kept] = legs_from(node[kept], time[kept], x[kept], y[kept])
    legs = {"until": until, "x_m_s": x_m_s, "y_m_s": y_m_s}
    yield from _result(table, x, y, legs, gap, verdict).to_batches(max_chunksize=_ROWS_A_BATCH)


def _places(plane: LocalPlane | None, table: pa.Table) -> tuple[Floats, Floats]:
    if plane is None:
        return _floats(table, "x_m"), _floats(table, "y_m")
    lat, lon = _floats(table, "lat_deg"), _floats(table, "lon_deg")
    x, y = np.full(len(lat), np.nan), np.full(len(lat), np.nan)
    there = np.isfinite(lat) & np.isfinite(lon)
    x[there], y[there] = plane.positions(lat[there], lon[there])
    return x, y


def judged(time: Floats, x: Floats, y: Floats, max_speed_m_s: float) -> npt.NDArray[np.int64]:
    """One node's rows in the order of its files: 0 for a row to keep, else which reason it fails by."""
    ahead = _ahead(time)
    if ahead.any():
        verdict = np.full(len(time), _UNORDERED)
        verdict[~ahead] = _judged_in_turn(time[~ahead], x[~ahead], y[~ahead], max_speed_m_s)
        return verdict
    return _judged_in_turn(time, x, y, max_speed_m_s)


def _ahead(time: Floats) -> npt.NDArray[np.bool_]:
    """The rows of a wrong clock: one lies after the next two rows, and these follow the row before it in order."""
    ahead = np.zeros(len(time), dtype=bool)
    before, following, second = np.concatenate(([-np.inf], time[:-3])), time[1:-1], time[2:]
    ahead[:-2] = (before[: len(second)] < following) & (following < second) & (second < time[:-2])
    return ahead


def _judged_in_turn(time: Floats, x: Floats, y: Floats, max_speed_m_s: float) -> npt.NDArray[np.int64]:
    newer = np.ones(len(time), dtype=bool)
    newer[1:] = time[1:] > np.maximum.accumulate(time)[:-1]
    way = np.flatnonzero(newer)
    gap = np.diff(time[way])
    with np.errstate(over="ignore", invalid="ignore"):
        fast = np.hypot(np.diff(x[way]), np.diff(y[way])) > gap * max_speed_m_s * (1.0 + 1e-9)
    if fast.any():
        return _judged_one_by_one(time, x, y, max_speed_m_s)
    verdict = np.full(len(time), _KEPT)
    late = np.flatnonzero(~newer)
    kept_times = time[way]  # they grow, and none that is kept later is as small as a late one
    same = kept_times[np.searchsorted(kept_times, time[late])] == time[late]
    verdict[late] = np.where(same, _DUPLICATE, _UNORDERED)
    return verdict


def _judged_one_by_one(time: Floats, x: Floats, y: Floats, max_speed_m_s: float) -> npt.NDArray[np.int64]:
    """`_judged_in_turn` where a jump is impossible: each row's verdict then depends on the one before."""
    verdict = np.full(len(time), _KEPT)

    def reachable(i: int, j: int) -> bool:
        return bool(math.hypot(x[j] - x[i], y[j] - y[i]) <= (time[j] - time[i]) * max_speed_m_s * (1.0 + 1e-9))

    last = 0
    in_order = len(time) > 2 and time[0] < time[1] < time[2]
    if in_order and not reachable(0, 1) and not reachable(0, 2) and reachable(1, 2):
        verdict[0], last = _IMPOSSIBLE, 1
    seen = {time[last]}
    for i in range(last + 1, len(time)):
        if time[i] in seen:
            verdict[i] = _DUPLICATE
        elif time[i] < time[last]:
            verdict[i] = _UNORDERED
        elif not reachable(last, i):
            verdict[i] = _IMPOSSIBLE
        else:
            last = i
            seen.add(time[i])
    return verdict


def _floats(table: pa.Table, name: str) -> Floats:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(table.column(name), float("nan")).to_numpy(), dtype=np.float64)


def _result(
    table: pa.Table, x: Floats, y: Floats, legs: dict[str, Floats], gap: Floats, verdict: npt.NDArray[np.int64]
) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    reason = pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(verdict - 1, 0), mask=verdict == _KEPT), pa.array(REASONS)
    ).cast(pa.string())
    detail = pc.if_else(
        pa.array(verdict == _UNPARSABLE),
        table.column("problem"),
        pc.if_else(pa.array(verdict == _KEPT), pa.scalar(None, pa.string()), _places_text(x, y, verdict)),
    )
    columns: dict[str, Any] = {
        "node": table.column("node"),
        "time": table.column("time"),
        "x_m": pa.array(x, from_pandas=True),
        "y_m": pa.array(y, from_pandas=True),
        "speed_m_s": table.column("speed_m_s"),
        "heading_deg": table.column("heading_deg"),
        **{name: pa.array(column, from_pandas=True) for name, column in legs.items()},
        "gap_s": pa.array(gap, from_pandas=True),
        "file": table.column("file"),
        "line": table.column("line"),
        "reason": reason,
        "detail": detail,
        **{
            name: table.column(name) if name in table.column_names else pa.nulls(len(table), pa.string())
            for name in ("type", "others")
        },
    }
    return pa.table(columns)


def _places_text(x: Floats, y: Floats, verdict: npt.NDArray[np.int64]) -> pa.Array:
    """Where a rejected row would have put the node."""
    import pyarrow as pa

    texts = np.full(len(x), None, dtype=object)
    for i in np.flatnonzero(verdict > _UNPARSABLE):
        texts[i] = f"at {x[i]:.1f},{y[i]:.1f} m"
    return pa.array(texts, pa.string())
