"""A lake's tables, read without Spark: playback of a trace and of a workload that are in a lake.

Only what a window of time needs is read: the files and row groups of `positions` are in order of time, and
Parquet knows the least and the greatest time of each.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError, listed
from earshot.traces.files import is_address, local_path
from earshot.traces.sightings import Floats

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class LakeTable:
    """One partition of one table of a lake, as it was when it was opened."""

    lake: str
    table: str
    by: str
    "The column that names the partition."
    name: str
    files: tuple[str, ...]
    "File names are never used twice, so they identify the content."

    def read(self, columns: Sequence[str], where: Any = None) -> pa.Table:
        """The rows with these columns; columns that an older lake lacks are left out."""
        with _reading(self.lake, self.table):
            dataset = _delta(self.lake, self.table).to_pyarrow_dataset(file_pruning_predicate=self._partition)
            chosen = [name for name in columns if name in dataset.schema.names]
            return dataset.to_table(columns=chosen, filter=where)

    @property
    def _partition(self) -> list[tuple[str, str, str]]:
        return [(self.by, "=", self.name)]


def open_table(lake: str, table: str, by: str, name: str, made_by: str) -> LakeTable:
    """The partition of this name. If there is none, TraceError says what the lake has, and which command makes it."""
    with _reading(lake, table):
        opened = _delta(lake, table)
        actions = opened.get_add_actions(flatten=True)
        keys = _column(actions, f"partition.{by}")
        files = tuple(path for path, key in zip(_column(actions, "path"), keys, strict=True) if key == name)
    if not files:
        others = sorted({key for key in keys if key is not None})
        raise TraceError(
            f"the lake {lake} has no {by} {name!r}"
            + (f", only {listed(others, 5)}" if others else "")
            + f"; run: {made_by}"
        )
    return LakeTable(lake, table, by, name, tuple(sorted(files)))


def _column(actions: Any, name: str) -> list[Any]:
    import pyarrow as pa

    values: list[Any] = pa.table(actions).column(name).to_pylist()
    return values


def _delta(lake: str, table: str) -> Any:
    from deltalake import DeltaTable

    root = lake if is_address(lake) else str(Path(local_path(lake)).expanduser().absolute())
    return DeltaTable(f"{root}/{table}".replace("s3a://", "s3://"))


@contextmanager
def _reading(lake: str, table: str) -> Iterator[None]:
    """Report a missing package or table with our own errors."""
    try:
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise TraceError("to read a lake, run: pip install 'earshot[pipeline]'") from None
    try:
        yield
    except (DeltaError, OSError) as error:
        raise TraceError(
            f"cannot read the table {table} of the lake {lake}: {error}; `earshot ingest FILE --lake {lake}` fills it"
        ) from None


# -- traces


@dataclass(frozen=True, slots=True)
class TraceAbout:
    """What the table `traces` says about one trace."""

    motion: str
    start: float
    end: float
    interval_s: float | None
    box: tuple[float, float, float, float] | None
    "Least x, least y, greatest x, greatest y; None in a lake of an earlier version."
    content: str
    "A digest: equal for equal positions."

    @property
    def longest_gap_s(self) -> float:
        """As `longest_gap` says."""
        return longest_gap(self.motion, self.interval_s)


def longest_gap(motion: str, interval_s: float | None) -> float:
    """How far apart two rows of a node may be to interpolate between them: any time for waypoints, a few intervals for
    samples."""
    return math.inf if motion == "waypoints" or interval_s is None else 5.0 * interval_s


def trace_about(lake: str, trace: str) -> TraceAbout:
    """What the lake knows about the trace."""
    import pyarrow.dataset as ds

    with _reading(lake, "traces"):
        rows = _delta(lake, "traces").to_pyarrow_dataset().to_table(filter=ds.field("trace") == trace).to_pylist()
    positions = _positions(lake, trace)
    row = rows[0] if rows else {}
    box = tuple(row.get(name) for name in ("west_m", "south_m", "east_m", "north_m"))
    times = (row["start"], row["end"]) if row else _times(positions)
    return TraceAbout(
        motion=row.get("motion") or "samples",
        start=times[0],
        end=times[1],
        interval_s=row.get("interval_s"),
        box=None if None in box else box,  # type: ignore[arg-type]
        content=row.get("content") or hashlib.sha256("\n".join(positions.files).encode()).hexdigest()[:16],
    )


def _times(positions: LakeTable) -> tuple[float, float]:
    import pyarrow.compute as pc

    spread = pc.min_max(positions.read(["time"]).column("time")).as_py()
    return spread["min"], spread["max"]


def _positions(lake: str, trace: str) -> LakeTable:
    return open_table(lake, "positions", "trace", trace, f"earshot ingest FILE --trace {trace} --lake {lake}")


@dataclass(frozen=True, slots=True, eq=False)
class TraceRows:
    """A trace's rows by node, then time. Node i has the rows first[i]:first[i + 1]."""

    names: tuple[str, ...]
    first: npt.NDArray[np.int64]
    time: Floats
    x_m: Floats
    y_m: Floats
    motion: str
    start: float
    "The time of the first row of the whole trace."
    types: Mapping[str, str] = field(default_factory=dict)
    "The type of each node, if the trace has types."


def ordered_rows(names: Sequence[str], node: Any, time: Floats, x_m: Floats, y_m: Floats, **about: Any) -> TraceRows:
    """The rows, which may come in any order; `node` are indices into `names`, which are sorted."""
    order = np.lexsort((time, node))
    node = np.asarray(node)[order]
    there, first = np.unique(node, return_index=True)
    return TraceRows(
        tuple(names[i] for i in there.tolist()),
        np.append(first, len(node)),
        time[order],
        x_m[order],
        y_m[order],
        **about,
    )


def trace_rows(lake: str, trace: str, start_s: float | None = None, end_s: float | None = None) -> TraceRows:
    """The rows of a trace that say where its nodes are between two times."""
    return _trace_rows(_positions(lake, trace), trace_about(lake, trace), start_s, end_s)


@lru_cache(maxsize=4)
def _trace_rows(positions: LakeTable, about: TraceAbout, start_s: float | None, end_s: float | None) -> TraceRows:
    """Cached, because names and paths are needed separately and for every seed."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    where = None
    if start_s is not None:
        where = (ds.field("until") >= start_s) | ds.field("until").is_null()
    if end_s is not None:
        before = ds.field("time") <= end_s
        where = before if where is None else where & before
    table = positions.read(["node", "time", "x_m", "y_m", "until", "x_m_s", "y_m_s", "type"], where)
    encoded = pc.fill_null(table.column("node"), "").combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    by_name = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), dtype=np.int64)
    rank[by_name] = np.arange(len(texts))
    node = rank[encoded.indices.to_numpy()]
    time, x, y, until, x_m_s, y_m_s = (
        np.asarray(pc.fill_null(table.column(name), float("nan")).to_numpy(), dtype=np.float64)
        for name in ("time", "x_m", "y_m", "until", "x_m_s", "y_m_s")
    )
    if end_s is not None:
        # A leg that continues after the window ends at the node's next row, which is outside the window.
        crossing = np.flatnonzero(until > end_s)
        passed = until[crossing] - time[crossing]
        node = np.append(node, node[crossing])
        x = np.append(x, x[crossing] + x_m_s[crossing] * passed)
        y = np.append(y, y[crossing] + y_m_s[crossing] * passed)
        time = np.append(time, until[crossing])
    names = [texts[i] for i in by_name]
    types = {}
    if "type" in table.column_names:
        rows = table.select(["node", "type"]).group_by("node").aggregate([("type", "max")]).to_pylist()
        types = {row["node"]: row["type_max"] for row in rows if row["type_max"]}
    return ordered_rows(names, node, time, x, y, motion=about.motion, start=about.start, types=types)
