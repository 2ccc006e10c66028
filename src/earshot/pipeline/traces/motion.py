"""Interpolation: positions at even steps between samples.

Between two samples of a node it is taken to move straight and evenly: exact where a trace is made of
waypoints, an estimate where it was sampled. A node is present from its first sample to its last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError
from earshot.pipeline.spark.tasks import coded, table_of, whole_nodes
from earshot.records.trajectories import legs_from

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Floats = npt.NDArray[np.float64]
Transform = Callable[["DataFrame"], "DataFrame"]
_ROWS_A_BATCH = 65_536
_NEAR = 1e-9
"In steps: a sample this close to a step is at the step; times are rounded."


def resampled(step_s: float, max_gap_s: float = math.inf, *, rows: int | None = None) -> Transform:
    """Positions at every multiple of `step_s` that lies between two samples of a node at most
    `max_gap_s` apart, with the speed and heading of the leg. Columns: trace (where there is one), node,
    time, x_m, y_m, speed_m_s, heading_deg, and until, x_m_s, y_m_s to the next of them. `rows`: about how many
    are read or made (`rows_at_steps`), where that is known; tasks are then sized by it."""
    if not (math.isfinite(step_s) and step_s > 0):
        raise TraceError(f"step_s must be a positive number of seconds, got {step_s}")
    if not max_gap_s > 0:
        raise TraceError(f"max_gap_s must be a positive number of seconds, got {max_gap_s}")

    def transform(positions: DataFrame) -> DataFrame:
        traces = ["trace"] if "trace" in positions.columns else []
        names = [*traces, "node"]
        schema = ", ".join(f"{name} string" for name in names)
        return whole_nodes(positions.select(*names, "time", "x_m", "y_m"), rows).mapInArrow(
            partial(_resample_nodes, step_s, max_gap_s, names),
            f"{schema}, time double, x_m double, y_m double, speed_m_s double, heading_deg double, "
            "until double, x_m_s double, y_m_s double",
        )

    return transform


def rows_at_steps(rows: int, nodes: int, lasts_s: float, step_s: float, max_gap_s: float) -> int:
    """At most how many rows interpolation reads or makes, of a trace with these rows, nodes and span."""
    present_throughout = nodes * (lasts_s / step_s + 1.0)
    return max(rows, math.ceil(min(present_throughout, rows * (max_gap_s / step_s + 1.0))))


def _resample_nodes(
    step_s: float, max_gap_s: float, names: list[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: the steps of whole nodes."""
    import pyarrow as pa

    table = table_of(batches)
    if table is None:
        return
    codes = [coded(table.column(name)) for name in names]
    whole = codes[0][0]
    for more, texts in codes[1:]:
        whole = whole * len(texts) + more
    time, x, y = (table.column(name).to_numpy() for name in ("time", "x_m", "y_m"))
    known = np.flatnonzero(np.isfinite(time) & np.isfinite(x) & np.isfinite(y))
    order = known[np.lexsort((time[known], whole[known]))]
    legs, at = legs_at_steps(whole[order], time[order], step_s, max_gap_s)
    time, x, y = time[order], x[order], y[order]
    columns: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(code[order[legs]]), pa.array(texts)).cast(pa.string())
        for name, (code, texts) in zip(names, codes, strict=True)
    }
    places = _places(legs, at, time, x, y, _following(legs, time, whole[order], max_gap_s))
    following = legs_from(whole[order[legs]], at, places["x_m"], places["y_m"])
    columns |= places | dict(zip(("until", "x_m_s", "y_m_s"), following, strict=True))
    yield from pa.table(columns).to_batches(max_chunksize=_ROWS_A_BATCH)


def legs_at_steps(
    node: npt.NDArray[np.int64], time: Floats, step_s: float, max_gap_s: float
) -> tuple[npt.NDArray[np.int64], Floats]:
    """For each node (rows in order of node, then time) the multiples of the step within its presence: the
    row that begins the leg, and the time. A step at a row belongs to the leg that begins there."""
    count = len(time)
    if not count:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    goes_on = np.zeros(count, dtype=bool)
    goes_on[:-1] = node[1:] == node[:-1]
    until = np.where(goes_on, np.append(time[1:], 0.0), time)
    first = np.ceil(time / step_s - _NEAR)
    # The leg ends before the next row's own step; a node's last row has only itself.
    last = np.where(goes_on, np.ceil(until / step_s - _NEAR) - 1.0, np.floor(time / step_s + _NEAR))
    too_far = goes_on & (until - time > max_gap_s)
    last[too_far] = np.floor(time[too_far] / step_s + _NEAR)
    steps = np.maximum(0, last - first + 1.0).astype(np.int64)
    legs = np.repeat(np.arange(count), steps)
    number = np.arange(len(legs)) - np.repeat(np.cumsum(steps) - steps, steps) + np.repeat(first, steps)
    return legs, number * step_s


def _following(
    leg: npt.NDArray[np.int64], time: Floats, node: npt.NDArray[np.int64], max_gap_s: float
) -> npt.NDArray[np.int64]:
    """The row that ends a leg; the leg's own row where none of the node follows within the gap."""
    after = np.minimum(leg + 1, len(time) - 1)
    return np.where((node[after] == node[leg]) & (time[after] - time[leg] <= max_gap_s), after, leg)


def _places(
    leg: npt.NDArray[np.int64], when: Floats, time: Floats, x: Floats, y: Floats, end: npt.NDArray[np.int64]
) -> dict[str, Any]:
    import pyarrow as pa

    lasts = time[end] - time[leg]
    moving = lasts > 0
    share = np.divide(when - time[leg], lasts, out=np.zeros(len(leg)), where=moving).clip(0.0, 1.0)
    dx, dy = x[end] - x[leg], y[end] - y[leg]
    speed = np.divide(np.hypot(dx, dy), lasts, out=np.zeros(len(leg)), where=moving)
    heading = np.degrees(np.arctan2(dx, dy)) % 360.0
    return {
        "time": when,
        "x_m": x[leg] + dx * share,
        "y_m": y[leg] + dy * share,
        "speed_m_s": speed,
        "heading_deg": pa.array(heading, pa.float64(), mask=speed <= 0),
    }
