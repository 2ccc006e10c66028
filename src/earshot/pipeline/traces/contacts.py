"""Contacts: who was within range of whom, from when until when.

`positions.transform(contacts_within(range_m=100))` gives one row a contact: a, b (a < b), start and
end, and the trace where the positions have that column (each trace for itself).

What a contact is. Positions are samples. Two nodes meet at a moment at which both were sampled at
most `range_m` apart (the border included). Meetings of one pair at most `interval_s` apart (the
trace's sampling interval) are one contact, from the first meeting to the last: a contact of one
meeting has start == end, and a missed sample ends a contact. Nodes that are sampled at different
moments never meet: with `step_s`, every node's position is first interpolated at multiples of it,
between two of its samples at most `max_gap_s` apart.

How it is found. Rows go to tasks by stretches of time, each stretch whole in one task, which takes one
after the other (Spark sorts them), finds the pairs and joins them into runs. Runs that touch an end of
their stretch go on, by pair, to be stitched. Runs travel packed, many to a Spark row: Spark's cost is by
the row.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError
from earshot.pairs import pairs_within
from earshot.pipeline.spark.tasks import coded, dealt, tasks_for
from earshot.pipeline.traces.motion import resampled

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Transform = Callable[["DataFrame"], "DataFrame"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SLICES_A_STRETCH = 32
"A stretch has at most this number of moments. The more it has, the fewer contacts touch one of its ends."
ROWS_A_STRETCH = 500_000
"At most, about, where the number of nodes is known: a stretch is held in a task's memory."
_SLACK = 1.0 + 1e-6
"Times are floats: 0.1 s steps are not quite 0.1 s apart."
_RUNS_AT_ONCE = 500_000
ROWS_HELD = 250_000
"Rows of whole stretches that a task gathers before it searches them: numpy and Arrow cost by the call."
ROWS_AT_ONCE = 32_768
"Rows searched together: small enough for the processor's cache, large enough for numpy."


def contacts_within(
    range_m: float,
    *,
    interval_s: float | None = None,
    step_s: float | None = None,
    max_gap_s: float = math.inf,
    rows: int | None = None,
    nodes: int | None = None,
) -> Transform:
    """Positions to contacts. Without `interval_s` the query measures it in a pass of its own. `rows`: about
    how many positions there are, interpolated ones included, where that is known; tasks are then sized by it. `nodes`:
    about how many are there at once; what a task holds at a time is then bounded by it."""
    slices = SLICES_A_STRETCH if not nodes else max(1, min(SLICES_A_STRETCH, ROWS_A_STRETCH // nodes))
    if not (math.isfinite(range_m) and range_m > 0):
        raise TraceError(f"range_m must be a positive number of metres, got {range_m}")
    for name, value in (("interval_s", interval_s), ("step_s", step_s)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise TraceError(f"{name} must be a positive number of seconds, got {value}")

    def transform(positions: DataFrame) -> DataFrame:
        if step_s is not None:
            positions = positions.transform(resampled(step_s, max_gap_s, rows=rows))
            interval: float | None = step_s
        else:
            interval = interval_s
        return _contacts(positions, float(range_m), interval, tasks_for(positions.sparkSession, rows), slices)

    return transform


def _measured_interval(positions: DataFrame) -> DataFrame:
    """One row, `interval_s`: the median time between two samples of one node; 1 where no node has two."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    by_node = Window.partitionBy("node", *(["trace"] if "trace" in positions.columns else [])).orderBy("time")
    gaps = positions.select((F.col("time") - F.lag("time").over(by_node)).alias("gap_s"))
    return gaps.where("gap_s > 0").agg(F.coalesce(F.median("gap_s"), F.lit(1.0)).alias("interval_s"))


def _contacts(positions: DataFrame, range_m: float, interval_s: float | None, tasks: int, slices: int) -> DataFrame:
    from pyspark.sql import functions as F

    traces = ["trace"] if "trace" in positions.columns else []
    names = ", ".join(f"{name} string" for name in traces)
    rows = positions.select(*traces, "node", "time", "x_m", "y_m")
    interval = F.lit(interval_s)
    if interval_s is None:
        rows = rows.crossJoin(F.broadcast(_measured_interval(positions)))
        interval = F.col("interval_s")
    stretch = F.floor(F.col("time") / (interval * slices))
    runs = (
        dealt(rows, tasks, F.pmod(stretch, F.lit(tasks)).cast("int"))
        .sortWithinPartitions(stretch)
        .mapInArrow(
            partial(_search, range_m, interval_s, slices, tasks), "task int, trace string, runs binary, gap_s double"
        )
    )
    return dealt(runs, tasks, F.col("task")).mapInArrow(
        _Stitch(bool(traces)),
        f"{names + ', ' if names else ''}a string, b string, start double, end double",
    )


def _search(
    range_m: float, interval_s: float | None, slices: int, tasks: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task of the first stage: positions to packed runs. Without an interval, the rows say it, each the same."""
    some = (batch for batch in batches if batch.num_rows)
    for first in some:
        measured_s = interval_s or first.column("interval_s")[0].as_py()
        search = _Search(range_m, measured_s * _SLACK, measured_s * slices, tasks)
        yield from search.runs(chain([first], some))


@dataclass(frozen=True, slots=True)
class _Search:
    """From positions in order of stretches to packed runs."""

    range_m: float
    gap_s: float
    stretch_s: float
    tasks: int

    def runs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_stretches(batches, self.stretch_s):
            for trace, rows in _by_trace(table):
                yield from self._of_trace(trace, rows)

    def _of_trace(self, trace: str | None, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        time, x, y = (rows.column(name).to_numpy() for name in ("time", "x_m", "y_m"))
        codes, names = coded(rows.column("node"))
        texts = pa.array(names, pa.string())
        pair_hash = np.array([zlib.crc32(name.encode()) for name in names], dtype=np.int64)
        known = np.isfinite(time) & np.isfinite(x) & np.isfinite(y)
        order = np.flatnonzero(known)
        order = order[np.argsort(time[order], kind="stable")]
        stretch = np.floor(time[order] / self.stretch_s)
        ends: list[int] = [*(np.flatnonzero(np.diff(stretch)) + 1), len(order)] if len(order) else []
        begin = 0
        for end in ends:
            part = order[begin:end]
            times, slices = np.unique(time[part], return_inverse=True)
            found = runs_of_pairs(
                slices.astype(np.int64), codes[part], x[part], y[part], self.range_m, times, self.gap_s
            )
            number = float(stretch[begin])
            start, last = times[found.first], times[found.last]
            touching = ~parted(number * self.stretch_s, start, self.gap_s) | ~parted(
                last, (number + 1.0) * self.stretch_s, self.gap_s
            )
            home = np.where(
                touching, (pair_hash[found.a] * 31 + pair_hash[found.b]) % self.tasks, int(number) % self.tasks
            )
            by_home = np.argsort(home, kind="stable")
            for rows_here in np.split(by_home, np.flatnonzero(np.diff(home[by_home])) + 1):
                for at in range(0, len(rows_here), _RUNS_AT_ONCE):
                    some = rows_here[at : at + _RUNS_AT_ONCE]
                    packed = _packed(texts, found.a[some], found.b[some], start[some], last[some], touching[some])
                    yield _row(int(home[some[0]]), trace, packed, self.gap_s)
            begin = end


def whole_stretches(batches: Iterable[pa.RecordBatch], stretch_s: float) -> Iterator[pa.Table]:
    """Rows that come in order of stretches as tables of whole stretches, of `ROWS_HELD` rows and the rest of the
    stretch: what a task holds does not grow with its rows."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    count, last = 0, math.nan
    for batch in batches:
        if not batch.num_rows:
            continue
        stretch = np.floor(batch.column("time").to_numpy(zero_copy_only=False) / stretch_s)
        begin = 0
        for cut in np.flatnonzero(np.diff(stretch, prepend=last)).tolist():
            if count + cut - begin >= ROWS_HELD:
                yield pa.Table.from_batches([*held, batch.slice(begin, cut - begin)])
                held, count, begin = [], 0, cut
        held.append(batch.slice(begin))
        count, last = count + batch.num_rows - begin, stretch[-1]
    if held:
        yield pa.Table.from_batches(held)


def parted(before: Any, after: Any, gap_s: float) -> Any:
    """Whether more than `gap_s` lies between two times. At epoch times a float is only right to 0.24 us: what
    rounding may have added is no gap."""
    return after - before > gap_s + 2.0 * np.spacing(np.abs(after))


class PairRuns(NamedTuple):
    """One row for each run: a and b within range at every slice from `first` to `last`."""

    a: Ints
    b: Ints
    first: Ints
    last: Ints


def runs_of_pairs(
    slices: Ints, nodes: Ints, x: Floats, y: Floats, range_m: float, times: Floats, gap_s: float
) -> PairRuns:
    """Runs of slices in which two nodes stay within range, at most `gap_s` from one slice to the next.

    Rows are in order of `slices`, which number the entries of `times`. a < b in every run.
    """
    # One number a meeting, (a, b, slice) from its high bits to its low ones: sorting it sorts them all.
    slice_bits = max(1, int(len(times) - 1).bit_length())
    node_bits = max(1, int(nodes.max()).bit_length()) if len(nodes) else 1
    keys: list[Ints] = []
    for i, j in pairs_in_slices(slices, x, y, range_m):
        a, b = nodes[i], nodes[j]
        key = (((np.minimum(a, b) << node_bits) | np.maximum(a, b)) << slice_bits) | slices[i]
        other = a != b  # a node with two rows in one slice does not meet itself
        keys.append(key if other.all() else key[other])
    met = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    met.sort()
    at = met & ((1 << slice_bits) - 1)
    when = times[at]
    begins = np.ones(len(met), dtype=bool)
    begins[1:] = (met[1:] >> slice_bits != met[:-1] >> slice_bits) | parted(when[:-1], when[1:], gap_s)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(met)) - 1 if len(met) else first
    pair = met[first] >> slice_bits
    return PairRuns(pair >> node_bits, pair & ((1 << node_bits) - 1), at[first], at[last])


def pairs_in_slices(slices: Ints, x: Floats, y: Floats, range_m: float) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of rows of one slice at most `range_m` apart, each pair once, some whole slices at a time.

    `slices` must not decrease: the rows are in order of time.
    """
    start, count = 0, len(slices)
    while start < count:
        end = min(start + ROWS_AT_ONCE, count)
        if end < count:  # a slice is searched as a whole
            end = int(np.searchsorted(slices, slices[end - 1], side="right"))
        chunk = slice(start, end)
        i, j, _ = pairs_within(x[chunk], y[chunk], range_m, slices[chunk] - slices[start])
        yield i + start, j + start
        start = end


class _Stitch:
    """The second stage's work in one task: packed runs to contacts."""

    def __init__(self, with_trace: bool) -> None:
        self.with_trace = with_trace

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        touching: dict[str | None, list[pa.Table]] = {}
        gap_s = 0.0
        for batch in batches:
            gap_s = max(gap_s, pc.max(batch.column(3)).as_py() or 0.0)  # the same in every row
            for trace, packed in zip(batch.column(1).to_pylist(), batch.column(2), strict=True):
                table = pa.ipc.open_stream(packed.as_buffer()).read_all()
                mask = table.column("touching").to_numpy()
                if not mask.all():
                    yield from self._emitted(trace, table.filter(pa.array(~mask)))
                if mask.any():
                    touching.setdefault(trace, []).append(table.filter(pa.array(mask)))
        for trace, tables in touching.items():
            whole = pa.concat_tables(tables).unify_dictionaries()
            yield from self._emitted(trace, self._stitched(whole, gap_s))

    def _stitched(self, table: pa.Table, gap_s: float) -> pa.Table:
        import pyarrow as pa

        table = table.combine_chunks()
        a, b = (table.column(name).chunk(0) for name in ("a", "b"))
        start, end = (table.column(name).to_numpy() for name in ("start", "end"))
        pair = a.indices.to_numpy().astype(np.int64) * max(1, len(b.dictionary)) + b.indices.to_numpy()
        order = np.lexsort((start, pair))
        pair, start, end = pair[order], start[order], end[order]
        begins = np.ones(len(pair), dtype=bool)
        begins[1:] = (pair[1:] != pair[:-1]) | parted(end[:-1], start[1:], gap_s)
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(pair)) - 1
        picked = pa.array(order[first])
        return pa.table({"a": a.take(picked), "b": b.take(picked), "start": start[first], "end": end[last]})

    def _emitted(self, trace: str | None, table: pa.Table) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        columns: dict[str, Any] = {name: table.column(name).cast(pa.string()) for name in ("a", "b")}
        columns |= {name: table.column(name) for name in ("start", "end")}
        if self.with_trace:
            columns = {"trace": pa.array([trace] * table.num_rows, pa.string()), **columns}
        yield from pa.table(columns).to_batches(max_chunksize=65_536)


def _by_trace(table: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    import pyarrow.compute as pc

    if "trace" not in table.column_names:
        yield None, table
        return
    for trace in pc.unique(table.column("trace")).to_pylist():
        yield trace, table.filter(pc.equal(table.column("trace"), trace))


def _packed(names: pa.Array, a: Ints, b: Ints, start: Floats, end: Floats, touching: Any) -> bytes:
    """Runs as one value, with the names of their own nodes only: all names in each would outweigh the runs."""
    import pyarrow as pa

    used, numbers = np.unique(np.concatenate((a, b)), return_inverse=True)
    numbers, texts = pa.array(numbers.astype(np.int32)), names.take(pa.array(used))
    batch = pa.record_batch(
        {
            "a": pa.DictionaryArray.from_arrays(numbers[: len(a)], texts),
            "b": pa.DictionaryArray.from_arrays(numbers[len(a) :], texts),
            "start": start,
            "end": end,
            "touching": touching,
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _row(task: int, trace: str | None, packed: bytes, gap_s: float) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.record_batch(
        {
            "task": pa.array([task], pa.int32()),
            "trace": pa.array([trace], pa.string()),
            "runs": pa.array([packed], pa.binary()),
            "gap_s": pa.array([gap_s], pa.float64()),
        }
    )
