"""Writing a table's Parquet files: what tasks do. A file counts once the table's log names it.

A file goes straight to its place, under a name that no other file has. So a task may run twice, or be
killed while it writes: what it leaves is in no log, is read by nobody and is removed by `earshot lake vacuum`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from earshot.errors import LakeError
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.tables import Table, arrow_schema, table_named

if TYPE_CHECKING:
    import pyarrow as pa

_UNSAFE = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
ROWS_A_GROUP = 1 << 19
"Rows of a Parquet row group; a task holds no more of them."
STEM = "part"
"How a file's name begins."
Value = str | float | int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as the task that wrote it counted it."""

    table: str
    path: str
    "Below the table's folder."
    rows: int
    size_bytes: int
    partition: Mapping[str, str]
    "The values that its folder names, as texts."


def partition_text(kind: Table, name: str, value: Value) -> str:
    """A partition value as its folder and the log name it."""
    if name not in kind.partition_by:
        raise LakeError(f"{kind.name} is partitioned by {', '.join(kind.partition_by)}, not by {name}")
    text = str(float(value)) if kind.columns[name] == "double" else str(value)
    text = "Infinity" if text == "inf" else text  # as Spark, Delta Lake and DuckDB read it
    if not text:
        raise LakeError(f"{name} must not be empty")
    return text


def folder_of(partition: Mapping[str, str]) -> str:
    """`name=value/...`, escaped as Hive and Spark do."""
    escaped = {name: _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text) for name, text in partition.items()}
    return "".join(f"{name}={text}/" for name, text in escaped.items())


@dataclass(slots=True)
class Draft:
    """A file being written from outside."""

    path: Path
    file: DataFile | None = None
    "Known when the file is whole."


class DataFiles:
    """Writes files into a lake's tables. It is pickled into tasks."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def write_rows(self, table: str, rows: Sequence[Mapping[str, Any]], **partition: Value) -> DataFile:
        """Write some rows of one partition; columns that a row lacks are null."""
        import pyarrow as pa

        return self.write_table(table, pa.Table.from_pylist(list(rows), schema=arrow_schema(table)), **partition)

    def write_table(self, table: str, rows: pa.Table, **partition: Value) -> DataFile:
        """Write the rows of one partition. They have at least the table's other columns."""
        return self.write_file(table, rows, partition, STEM)

    def write_file(self, table: str, rows: pa.Table, partition: Mapping[str, Value], stem: str) -> DataFile:
        """As `write_table`, to a file whose name begins with the stem."""
        import pyarrow as pa

        kind = table_named(table)
        texts = {name: partition_text(kind, name, value) for name, value in partition.items()}
        for name in (name for name in kind.file_columns if name in texts):
            rows = rows.append_column(name, pa.repeat(pa.scalar(texts[name]), rows.num_rows))
        file = _OpenFile(self.folder, kind, {name: texts[name] for name in kind.folders_by}, stem)
        try:
            file.write(rows)
            return file.close()
        except BaseException:
            file.abandon()
            raise

    @contextmanager
    def draft(self, table: str, **partition: Value) -> Iterator[Draft]:
        """A path on a local disk for a writer of its own; afterwards the file is in its place, as `draft.file`."""
        import pyarrow.parquet as pq

        kind = table_named(table)
        texts = {name: partition_text(kind, name, partition[name]) for name in kind.folders_by}
        path = f"{folder_of(texts)}part-{uuid.uuid4().hex}.parquet"
        with TemporaryDirectory(prefix="earshot-") as temporary:
            at = Path(temporary) / "part.parquet"
            if self.folder.local is not None:
                at = self.folder.local / kind.name / path
                at.parent.mkdir(parents=True, exist_ok=True)
            draft = Draft(at)
            try:
                yield draft
                if self.folder.local is None:
                    self.folder.write(f"{kind.name}/{path}", at.read_bytes())
            except BaseException:
                at.unlink(missing_ok=True)
                raise
            draft.file = DataFile(kind.name, path, pq.read_metadata(at).num_rows, at.stat().st_size, texts)

    def write_batches(
        self, table: str, batches: Iterable[pa.RecordBatch], fixed: Mapping[str, str], stem: str = STEM
    ) -> list[DataFile]:
        """Write a task's rows, one file for each partition. Rows of one partition follow each other."""
        import pyarrow as pa

        kind = table_named(table)
        open_columns = [name for name in kind.folders_by if name not in fixed]
        written: list[DataFile] = []
        file: _OpenFile | None = None
        try:
            for batch in batches:
                for texts, rows in _by_partition(kind, pa.Table.from_batches([batch]), open_columns):
                    texts = {name: {**fixed, **texts}[name] for name in kind.folders_by}
                    if file is None or file.partition != texts:
                        written += [file.close()] if file else []
                        file = _OpenFile(self.folder, kind, texts, stem)
                    file.write(rows)
            return [*written, *([file.close()] if file else [])]
        except BaseException:
            if file is not None:
                file.abandon()
            for one in written:
                self.folder.delete(f"{table}/{one.path}")
            raise


class _OpenFile:
    """One Parquet file, written in row groups of an even size."""

    def __init__(self, folder: Folder, kind: Table, partition: Mapping[str, str], stem: str) -> None:
        import pyarrow.parquet as pq

        self.folder, self.kind, self.partition = folder, kind, dict(partition)
        self.path = f"{folder_of(partition)}{stem}-{uuid.uuid4().hex}.parquet"
        self.schema = file_schema(kind)
        self.rows = 0
        self._waiting: list[pa.Table] = []
        self._at = f"{kind.name}/{self.path}"
        folder.system.create_dir(self._at.rpartition("/")[0], recursive=True)
        self._writer = pq.ParquetWriter(self._at, self.schema, filesystem=folder.system, compression="zstd")

    def write(self, rows: pa.Table) -> None:
        self._waiting.append(rows.select(self.schema.names).cast(self.schema))
        self.rows += rows.num_rows
        if sum(one.num_rows for one in self._waiting) >= ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=ROWS_A_GROUP)
            self._waiting.clear()

    def close(self) -> DataFile:
        self._flush()
        self._writer.close()
        (size,) = self.folder.sizes([self._at])
        if size is None:
            raise LakeError(
                f"{self.folder.root}/{self._at} was written and is gone; is something cleaning that folder?"
            )
        return DataFile(self.kind.name, self.path, self.rows, size, self.partition)

    def abandon(self) -> None:
        self._writer.close()
        self.folder.delete(self._at)


def file_schema(kind: Table) -> pa.Schema:
    """The columns inside a table's files, as Arrow types."""
    import pyarrow as pa

    whole = arrow_schema(kind.name, with_partitions=True)
    return pa.schema([whole.field(name) for name in kind.file_columns])


def _by_partition(kind: Table, rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """The runs of rows that have the same values in those columns."""
    import pyarrow.compute as pc

    if not rows.num_rows:
        return
    starts = {0}
    for name in columns:
        column = rows.column(name).combine_chunks()
        changed = pc.fill_null(pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)), True)
        starts.update(int(at) + 1 for at in changed.to_numpy(zero_copy_only=False).nonzero()[0])
    bounds = [*sorted(starts), rows.num_rows]
    for first, last in pairwise(bounds):
        values = {name: rows.column(name)[first].as_py() for name in columns}
        if any(value is None or value == "" for value in values.values()):
            raise LakeError(f"a row for {kind.name} has no value in {' or '.join(columns)}")
        yield (
            {name: partition_text(kind, name, value) for name, value in values.items()},
            rows.slice(first, last - first),
        )
