"""The lake: Delta tables under one folder, and the one module that reads and writes them through Spark.

::

    LAKE/positions/_delta_log/00000000000000000003.json      which files are the table, and since when
    LAKE/positions/trace=bologna/part-3f2a....parquet        rows of one partition
    LAKE/runs/part-77b0....parquet                           rows of many small partitions

- The tasks of a stage write files to their places. The driver commits them to the table's log in one step,
  after it has seen each with the size that its task counted: a stage that is killed leaves the table as it was.
- Readers read the files that the log names: Spark here, and whatever reads Delta tables (DuckDB, Polars, ...).
- Two commands may work on one lake: see `table_log`.

`lake.write(frame, "contacts", trace="bologna", range_m=100.0)` replaces that partition, even with an
empty frame. Partition columns that are not given come from the frame: `lake.write(log, "log")`
replaces one partition for each run in it.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from earshot.errors import LakeError
from earshot.pipeline.lake.arrow_lake import ArrowLake, asked, files_of
from earshot.pipeline.lake.data_files import STEM, DataFile, DataFiles, Value, folder_of
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import Table, table_named
from earshot.pipeline.spark.failures import lacks_file_system, named_errors
from earshot.pipeline.spark.session import is_connect, parallelism

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MOST_PATHS = 64
"Spark takes time by the square of the number of paths it is given: more files are picked from their folder."


class Lake:
    """One lake through one Spark session."""

    def __init__(self, session: SparkSession, root: str | os.PathLike[str]) -> None:
        self.session = session
        self.folder = Folder(root)
        self.name = os.fspath(root)
        self.arrow = ArrowLake(self.folder, self.name)
        "The same lake without Spark."
        self._is_shared = False
        self._readable: bool | None = None

    # -- reading

    def read(self, table: str, **partition: Value) -> DataFrame:
        """The table, or those of its partitions that are asked for; LakeError where there are none.

        The frame stays what the table is now, whatever is committed later.
        """
        return self.read_version(table, None, **partition)

    def read_version(self, table: str, version: int | None, **partition: Value) -> DataFrame:
        """As `read`, but as the table was at that version (see `earshot lake history`); None: now."""
        kind = table_named(table)
        wanted = asked(kind, partition)
        snapshot = self.arrow.snapshot(kind, version)
        files = files_of(kind, snapshot, wanted) if snapshot else []
        if not files or (kind.clustered and version is None and not self.has(table, **partition)):
            raise self.arrow.absent(kind, partition)
        return self._frame(kind, files, wanted)

    def read_or_empty(self, table: str, **partition: Value) -> DataFrame:
        """As `read`, but an empty frame of the table's columns where there is no such partition."""
        if self.has(table, **partition):
            return self.read(table, **partition)
        return self.session.createDataFrame([], table_named(table).ddl)

    def partitions(self, table: str, **partition: Value) -> list[dict[str, str]]:
        """The partitions there are (of those asked for), as texts, in order."""
        return self.arrow.partitions(table, **partition)

    def has(self, table: str, **partition: Value) -> bool:
        """Whether there is such a partition."""
        return self.arrow.has(table, **partition)

    def _frame(self, kind: Table, files: Sequence[DataFile], wanted: Mapping[str, str]) -> DataFrame:
        """The files as one frame."""
        from pyspark.sql import functions as F

        root = f"{self.folder.address}/{kind.name}"
        reader = self.session.read.schema(kind.ddl).option("basePath", root)
        with named_errors():
            if not self._spark_reads(f"{root}/{files[0].path}"):
                frame = self._read_by_tasks(kind, files)
            elif len(files) <= MOST_PATHS:
                frame = reader.parquet(*(_no_pattern(f"{root}/{file.path}") for file in files))
            else:
                leading = itertools.takewhile(wanted.__contains__, kind.folders_by)
                below = {name: wanted[name] for name in leading}
                names = [file.path.rpartition("/")[2] for file in files]
                frame = reader.parquet(_no_pattern(f"{root}/{folder_of(below)}")).where(
                    F.col("_metadata.file_name").isin(names)
                )
            if kind.clustered:
                for name, text in wanted.items():
                    frame = frame.where(F.col(name) == F.lit(text).cast(kind.columns[name]))
            return frame.select(*kind.columns)

    def _spark_reads(self, file: str) -> bool:
        """Whether Spark has a file system for the lake's address: those of object stores come in jars of their own."""
        if self._readable is None:
            self._readable = True
            if self.folder.local is None:
                try:
                    self.session.read.schema("x string").parquet(_no_pattern(file)).schema  # noqa: B018
                except Exception as error:
                    if not lacks_file_system(str(error)):
                        raise
                    self._readable = False
        return self._readable

    def _read_by_tasks(self, kind: Table, files: Sequence[DataFile]) -> DataFrame:
        """The files as tasks read them themselves, through delta-rs, one row for each file."""
        rows = [(json.dumps(asdict(file)),) for file in files]
        named = self.session.createDataFrame(rows, "file string").repartition(len(files))
        return named.mapInArrow(partial(_read, self.folder, kind.name), kind.ddl)

    # -- writing

    def write(self, frame: DataFrame, table: str, **partition: Value) -> list[dict[str, str]]:
        """Replace partitions with the frame's rows; returns which.

        Partition columns given by name say which partition; the others come from the frame. The
        frame may have more columns than the table, and in any order; it may not have fewer.
        """
        kind = table_named(table)
        fixed = asked(kind, partition)
        open_columns = [name for name in kind.partition_by if name not in fixed]
        if open_columns != list(kind.partition_by[len(fixed) :]):
            raise LakeError(f"{table} is partitioned by {', '.join(kind.partition_by)}: give them in that order")
        columns = [*open_columns, *kind.data_columns]
        lacking = [name for name in columns if name not in frame.columns]
        if needed := [name for name in lacking if name not in kind.optional]:
            raise LakeError(f"rows for {table} lack {', '.join(needed)}")
        files = self._write_files(kind, frame, fixed, lacking)
        if not files and not open_columns and not kind.clustered:
            files = [self.arrow.files.write_rows(table, [], **partition)]
        keys = self.arrow.replace(kind, files, () if open_columns else [tuple(fixed.values())])
        return [dict(zip(kind.partition_by, key, strict=True)) for key in sorted(keys)]

    def write_files(self, frame: DataFrame, table: str, stem: str, **partition: Value) -> list[DataFile]:
        """Write the frame's rows as files of one partition, whose names begin with the stem. They are not committed."""
        kind = table_named(table)
        return self._write_files(kind, frame, asked(kind, partition), (), stem)

    def _write_files(
        self, kind: Table, frame: DataFrame, fixed: Mapping[str, str], lacking: Sequence[str], stem: str = STEM
    ) -> list[DataFile]:
        from pyspark.sql import functions as F

        self.check_shared()
        known = {name: F.lit(text).cast(kind.columns[name]) for name, text in fixed.items()}
        known |= {name: F.lit(None).cast(kind.columns[name]) for name in lacking}
        typed = frame.select(
            *(known.get(name, F.col(name).cast(kind.columns[name])).alias(name) for name in kind.columns)
        )
        if by_rows := [name for name in kind.folders_by if name not in fixed]:
            typed = typed.sortWithinPartitions(*by_rows)
        with named_errors():
            task = partial(_write, self.arrow.files, kind.name, dict(fixed), stem)
            written = typed.mapInArrow(task, "file string").collect()
        return [DataFile(**json.loads(row["file"])) for row in written]

    def read_files(self, table: str, files: Sequence[DataFile]) -> DataFrame:
        """Some files of a table, at least one, as one frame."""
        return self._frame(table_named(table), files, {})

    def write_table(self, rows: pa.Table, table: str, **partition: Value) -> None:
        """Replace one small partition with the rows of an Arrow table, without a Spark job."""
        self.arrow.write_table(rows, table, **partition)

    def drop(self, table: str, **partition: Value) -> None:
        """Remove partitions, if they exist."""
        self.arrow.drop(table, **partition)

    def check_shared(self) -> None:
        """LakeError where the session's workers do not share the lake's folder with this machine: a worker with a disk
        of its own under the same path would write there, and nobody would find it."""
        if not self._is_shared:
            with named_errors():
                _probe_workers(self.session, self.folder)
            self._is_shared = True


def _read(folder: Folder, table: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: read the files that the rows name."""
    kind = table_named(table)
    log = TableLog(folder, kind)
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield from log.batches_of(DataFile(**json.loads(text)), kind.columns)


def _write(
    files: DataFiles, table: str, fixed: dict[str, str], stem: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: write the rows to files, and return what was counted."""
    import pyarrow as pa

    for file in files.write_batches(table, batches, fixed, stem):
        yield pa.RecordBatch.from_pydict({"file": [json.dumps(asdict(file))]})


def _no_pattern(path: str) -> str:
    """The path so that Spark does not take it for a pattern. (Two paths with its option against patterns are four.)"""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _probe_workers(session: SparkSession, folder: Folder) -> None:
    """LakeError where a worker does not read what the driver writes there, or the driver what a worker writes."""
    if not is_connect(session) and str(session.sparkContext.master).startswith("local"):
        return
    probe = f"_probes/{uuid.uuid4().hex}"
    folder.write(f"{probe}/driver", probe.encode())
    try:
        tasks = 2 * parallelism(session)
        rows = session.range(0, tasks, 1, tasks).mapInArrow(
            partial(_probe, folder, probe), "task long, host string, problem string"
        )
        for row in rows.collect():
            problem = row["problem"]
            if not problem and folder.read(f"{probe}/{row['task']}") != row["host"].encode():
                problem = "what it writes there is not seen here"
            if problem:
                raise LakeError(
                    f"the worker on {row['host']} does not share the lake {folder.root} with this machine: {problem}; "
                    "put the lake on a disk that every machine of the cluster mounts at the same path, or in an object "
                    "store (s3a://...)"
                )
    finally:
        folder.delete(probe)


def _probe(folder: Folder, probe: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: read the driver's file, and write one back."""
    import pyarrow as pa

    host = platform.node()
    for batch in batches:
        for task in batch.column(0).to_pylist():
            problem = ""
            try:
                if folder.read(f"{probe}/driver") != probe.encode():
                    problem = "it does not see what this machine writes there"
                else:
                    folder.write(f"{probe}/{task}", host.encode())
            except OSError as error:
                problem = f"it cannot read or write there ({error.strerror or error})"
            yield pa.RecordBatch.from_pydict({"task": [task], "host": [host], "problem": [problem]})
