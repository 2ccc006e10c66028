"""A lake without Spark: its tables as Arrow tables, its commits and its maintenance.

A page that people wait for should not wait for a JVM, and a page that follows a network reads every second.
`Lake` is the same with Spark: it reads and writes DataFrames and commits here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from earshot.errors import LakeError, listed
from earshot.pipeline.lake.data_files import DataFile, DataFiles, Value, partition_text
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.old_lakes import is_old
from earshot.pipeline.lake.table_log import Key, Snapshot, TableLog
from earshot.pipeline.lake.tables import TABLES, Table, arrow_schema, table_named

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowLake:
    """One lake, on a local disk or at an address of an object store."""

    def __init__(self, root: str | os.PathLike[str] | Folder, name: str | None = None) -> None:
        self.folder = root if isinstance(root, Folder) else Folder(root)
        self.name = name or (self.folder.root if isinstance(root, Folder) else os.fspath(root))
        self.replaced: list[str] | None = None
        "Where this is a list, the files that commits replaced are added to it: they can be deleted before a vacuum."

    # -- reading

    def partitions(self, table: str, **partition: Value) -> list[dict[str, str]]:
        """The partitions there are (of those asked for), as texts, in order."""
        names = table_named(table).partition_by
        return [dict(zip(names, key, strict=True)) for key in sorted(self.keys(table, **partition))]

    def keys(self, table: str, **partition: Value) -> set[Key]:
        """The partitions there are (of those asked for), as tuples of texts."""
        kind = table_named(table)
        wanted = asked(kind, partition)
        snapshot = self.snapshot(kind)
        if snapshot is None:
            return set()
        found = set().union(*TableLog(self.folder, kind).keys(snapshot.files).values())
        return {key for key in found if wanted.items() <= dict(zip(kind.partition_by, key, strict=True)).items()}

    def has(self, table: str, **partition: Value) -> bool:
        """Whether there is such a partition."""
        return bool(self.keys(table, **partition))

    def read(self, table: str, **partition: Value) -> pa.Table:
        """The rows of those partitions; no rows where there are none."""
        import pyarrow as pa

        schema = arrow_schema(table, with_partitions=True)
        return pa.Table.from_batches(list(self.batches(table, schema.names, **partition)), schema)

    def batches(self, table: str, columns: Sequence[str], **partition: Value) -> Iterator[pa.RecordBatch]:
        """Some columns of those partitions, piece by piece: for tables larger than memory."""
        kind = table_named(table)
        log = TableLog(self.folder, kind)
        snapshot = self.snapshot(kind)
        wanted = asked(kind, partition)
        for file in files_of(kind, snapshot, wanted) if snapshot else ():
            if kind.clustered and wanted:
                yield from _rows_of(log.read_file(file, kind.columns), wanted).select(columns).to_batches()
            else:
                yield from log.batches_of(file, columns)

    def count_rows(self, table: str, **partition: Value) -> int:
        """How many rows those partitions have, by what the log says of their files; of a clustered table, at most."""
        kind = table_named(table)
        snapshot = self.snapshot(kind)
        return sum(file.rows for file in files_of(kind, snapshot, asked(kind, partition))) if snapshot else 0

    def rows(self, table: str, equal: Mapping[str, object], **partition: Value) -> list[dict[str, Any]]:
        """The rows of those partitions that have these values; LakeError where there are no such partitions."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = table_named(table)
        if not self.has(table, **partition):
            raise self.absent(kind, partition)
        found: list[dict[str, Any]] = []
        for batch in self.batches(table, list(kind.columns), **partition):
            some = pa.Table.from_batches([batch])
            for name, value in equal.items():
                some = some.filter(pc.equal(some.column(name), value))
            found += some.to_pylist()
        return found

    def absent(self, kind: Table, partition: Mapping[str, Value]) -> LakeError:
        """What to say where a table or its partition is not there."""
        command = _command(kind, partition, self.name)
        if not self.folder.exists():
            return LakeError(f"there is no lake at {self.name}; run: {command}")
        others = self.partitions(kind.name)
        if not partition or not others:
            return LakeError(f"the lake {self.name} has no {kind.name}; run: {command}")
        names = [_in_words(other.items()) for other in others]
        wanted, only = _in_words(partition.items()), listed(names, 5)
        if kind.name in (f"{name}s" for name in partition):  # the table of traces has no "traces of trace city"
            return LakeError(f"the lake {self.name} has no {wanted}, only {only}; run: {command}")
        return LakeError(f"the lake {self.name} has no {kind.name} of {wanted}, only of {only}; run: {command}")

    def snapshot(self, kind: Table, version: int | None = None) -> Snapshot | None:
        """The table now, or at that version; None where there is none. LakeError for a lake of the old form."""
        found = TableLog(self.folder, kind).snapshot(version)
        if found is None:
            self._refuse_old(kind)
        return found

    def _refuse_old(self, kind: Table) -> None:
        if is_old(self.folder, kind):
            raise LakeError(
                f"the lake {self.name} was written by an earlier version of earshot; "
                f"convert it once, with: earshot lake convert {self.name}"
            )

    # -- writing

    @property
    def files(self) -> DataFiles:
        """For tasks: what writes files, which `commit` then makes part of their tables."""
        return DataFiles(self.folder)

    def commit(self, files: Sequence[DataFile]) -> None:
        """Make files that tasks wrote the rows of the partitions they name: one commit a table, in their order.

        LakeError, and nothing changed in that table, where this machine does not see a file as it was counted.
        """
        by_table: dict[str, list[DataFile]] = {}
        for file in files:
            by_table.setdefault(file.table, []).append(file)
        for table, some in by_table.items():
            self.replace(table_named(table), some)

    def replace(self, kind: Table, files: Sequence[DataFile], keys: Iterable[Key] = ()) -> set[Key]:
        """Make the files the rows of their partitions, and of those named; returns which."""
        log = self.log_to_write(kind)
        found = log.replace(files, keys)
        self.note_replaced(log)
        return found

    def log_to_write(self, kind: Table) -> TableLog:
        """The log of a table; LakeError for a lake of the old form, which is not written into."""
        log = TableLog(self.folder, kind)
        if not log.exists():
            self._refuse_old(kind)
        return log

    def note_replaced(self, log: TableLog) -> None:
        """Remember what the log's last commit replaced."""
        if self.replaced is not None:
            self.replaced += [f"{log.kind.name}/{file.path}" for file in log.removed]

    def write_table(self, rows: pa.Table, table: str, **partition: Value) -> None:
        """Replace small partitions with the rows of an Arrow table: the one named, or of a clustered table those
        that the rows name."""
        kind = table_named(table)
        if len(partition) < len(kind.partition_by) and not kind.clustered:
            raise LakeError(f"{table} is partitioned by {', '.join(kind.partition_by)}: name the partition")
        keys = [tuple(asked(kind, partition).values())] if partition else []
        self.replace(kind, [self.files.write_table(table, rows, **partition)], keys)

    def write_rows(self, table: str, rows: Sequence[Mapping[str, Any]], **partition: Value) -> None:
        """As `write_table`, from dictionaries; columns that a row lacks are null."""
        import pyarrow as pa

        schema = arrow_schema(table, with_partitions=not partition)
        self.write_table(pa.Table.from_pylist(list(rows), schema=schema), table, **partition)

    def drop(self, table: str, **partition: Value) -> None:
        """Remove partitions, if they exist."""
        kind = table_named(table)
        if keys := self.keys(table, **partition):
            TableLog(self.folder, kind).replace([], keys, "drop")

    # -- maintenance

    def tables(self) -> list[dict[str, Any]]:
        """The tables there are: version, files, rows, bytes, partitions."""
        return [
            {
                "table": kind.name,
                "version": snapshot.version,
                "partitions": len(self.keys(kind.name)),
                "files": len(snapshot.files),
                "rows": sum(file.rows for file in snapshot.files),
                "bytes": sum(file.size_bytes for file in snapshot.files),
            }
            for kind in TABLES.values()
            if (snapshot := self.snapshot(kind)) is not None
        ]

    def logs(self, table: str | None = None) -> list[TableLog]:
        """The logs of the tables there are, or of that one; LakeError where there is none."""
        kinds = [table_named(table)] if table else list(TABLES.values())
        found = [TableLog(self.folder, kind) for kind in kinds if self.snapshot(kind) is not None]
        if not found and not self.folder.exists():
            raise LakeError(f"there is no lake at {self.name}; give the folder that a command had as its --lake")
        if not found:
            raise LakeError(f"the lake {self.name} has no {table or 'tables'}")
        return found


def asked(kind: Table, partition: Mapping[str, Value]) -> dict[str, str]:
    """The partition that is asked for, as texts."""
    return {name: partition_text(kind, name, value) for name, value in partition.items()}


def files_of(kind: Table, snapshot: Snapshot, wanted: Mapping[str, str]) -> list[DataFile]:
    """The files that have rows of those partitions, or (of a clustered table) may have some."""
    by_folder = {name: text for name, text in wanted.items() if name in kind.folders_by}
    return [file for file in snapshot.files if by_folder.items() <= file.partition.items()]


def _rows_of(rows: pa.Table, wanted: Mapping[str, str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, text in wanted.items():
        rows = rows.filter(pc.equal(rows.column(name), pa.scalar(text).cast(rows.schema.field(name).type)))
    return rows


def _in_words(pairs: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _command(kind: Table, partition: Mapping[str, Any], lake: str) -> str:
    shown = {name: partition.get(name, name.upper()) for name in kind.partition_by}
    return f"{kind.made_by.format(**shown)} --lake {lake}"
