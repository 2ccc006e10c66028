"""Where nodes were in the window of a watch, as its tasks read it from the lake.

The driver sends the names of files; a worker reads each file once, keeps its positions while the window has it, and
makes trajectories of them. What leaves the window is folded into one file: each node's last place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from earshot.pipeline.lake.data_files import DataFile, DataFiles
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import arrow_schema, table_named
from earshot.records.trajectories import Trajectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Key = tuple[str, str, str]
"Network, protocol, and an event or a node."
PLACES = arrow_schema("watched_positions")
_read: dict[tuple[str, str], pa.Table] = {}
"A worker's positions by lake and file."
_built: dict[tuple[str, ...], dict[Key, Trajectory]] = {}
"And the trajectories of its last window: a worker runs several tasks of one batch."


@dataclass(frozen=True)
class WindowPositions:
    """The files that have the positions of a window. It is sent to the executors."""

    folder: Folder
    files: Sequence[DataFile]
    "Of `watched_positions` and `watched_log`."

    def rows(self) -> pa.Table:
        """All positions in the files."""
        wanted = {(self.folder.root, f"{file.table}/{file.path}"): file for file in self.files}
        for key in [key for key in _read if key[0] == self.folder.root and key not in wanted]:
            del _read[key]
        for key, file in wanted.items():
            if key not in _read:
                _read[key] = _positions(self.folder, file)
        return pa.concat_tables([PLACES.empty_table(), *(_read[key] for key in wanted)])

    def trajectories(self) -> dict[Key, Trajectory]:
        """Each node's."""
        key = (self.folder.root, *(file.path for file in self.files))
        if key not in _built:
            _built.clear()
            _built[key] = trajectories_of(self.rows())
        return _built[key]


def _positions(folder: Folder, file: DataFile) -> pa.Table:
    log = TableLog(folder, table_named(file.table))
    if file.table == "watched_positions":
        return log.read_file(file, PLACES.names)
    rows = log.read_file(file, [*PLACES.names, "late"])
    known = pc.and_(pc.is_finite(rows["x_m"]), pc.is_finite(rows["y_m"]))
    return rows.filter(pc.and_(known, pc.invert(rows["late"]))).select(PLACES.names).combine_chunks()


def trajectories_of(positions: pa.Table) -> dict[Key, Trajectory]:
    """Each node's trajectory, from rows of network, protocol, node, time, x_m and y_m in any order. A node is
    in one place at a time: the greatest recorded, as in the batch."""
    ordered = positions.sort_by([(name, "ascending") for name in PLACES.names])
    keys = list(zip(*(ordered[name].to_pylist() for name in PLACES.names[:3]), strict=True))
    time, x_m, y_m = (ordered[name].to_numpy() for name in PLACES.names[3:])
    starts = [number for number, key in enumerate(keys) if number == 0 or key != keys[number - 1]]
    found = {}
    for start, end in pairwise([*starts, len(keys)]):
        last_of_its_time = np.append(time[start : end - 1] != time[start + 1 : end], True)
        found[keys[start]] = Trajectory(
            keys[start][2], *(column[start:end][last_of_its_time] for column in (time, x_m, y_m))
        )
    return found


@dataclass(frozen=True)
class _Fold:
    """What the one task of a fold does."""

    positions: WindowPositions
    known: frozenset[Key]
    watch: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = trajectories_of(self.positions.rows())
            rows = [(*key, one.times[-1], one.xs[-1], one.ys[-1]) for key, one in found.items() if key in self.known]
            table = pa.Table.from_pylist([dict(zip(PLACES.names, row, strict=True)) for row in rows], schema=PLACES)
            file = DataFiles(self.positions.folder).write_table("watched_positions", table, watch=self.watch)
            yield pa.RecordBatch.from_pydict({"file": [json.dumps(asdict(file))]})


def fold_positions(session: SparkSession, positions: WindowPositions, known: Iterable[Key], watch: str) -> DataFile:
    """One file with the last place of each known node, written by a task and not committed."""
    task = _Fold(positions, frozenset(known), watch)
    row = session.range(0, 1, 1, 1).mapInArrow(task, "file string").collect()[0]
    found: Mapping[str, object] = json.loads(row["file"])
    return DataFile(**found)  # type: ignore[arg-type]
