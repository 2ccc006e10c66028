"""One table's Delta log: which files are the table, and the commits that change it.

A commit is one file of the log, made by delta-rs only if no other commit took its number: a reader sees the
table before it or after it, whole. A writer that came second looks at the new table and tries again, so of
two that replace one partition the last wins, and writers of different partitions do not disturb each other.

A commit first checks that this machine sees every file with the size that the task counted. What it replaces
stays on the disk, for readers and for earlier versions, until a vacuum.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from earshot.errors import LakeError
from earshot.pipeline.lake.data_files import DataFile, DataFiles, partition_text
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.tables import Table, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

Key = tuple[str, ...]
"A partition: its values as texts, in the order of its columns."
PATIENCE_S = 120.0
"How long a commit tries again when other commits come first."
MOST_FILES = 8
"A clustered table with more small files than this gets one instead of them with the next commit."
SMALL_BYTES = 32 << 20
VACUUM_EVERY = 64
"Commits between two vacuums of a table whose earlier versions are not needed for long."


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one version."""

    version: int
    files: Sequence[DataFile]
    columns: Sequence[str]


class TableLog:
    """The log of one table of one lake."""

    def __init__(self, folder: Folder, kind: Table) -> None:
        self.folder = folder
        self.kind = kind
        self.removed: Sequence[DataFile] = ()
        "The files that the last commit replaced: readers of earlier versions still need them."

    # -- reading

    def exists(self) -> bool:
        """Whether there is a log; a look at the disk, which reads none of it."""
        return self.folder.exists(f"{self.kind.name}/_delta_log")

    def snapshot(self, version: int | None = None) -> Snapshot | None:
        """The table now, or at that version; None where there is no table."""
        with self._errors():
            table = self._open(version)
            return None if table is None else self._snapshot(table)

    def _open(self, version: int | None = None) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self.folder.delta_address(self.kind.name), version=version)
        except TableNotFoundError:
            return None

    def _snapshot(self, table: DeltaTable) -> Snapshot:
        import pyarrow as pa

        self._check_schema(table)
        kind, found = self.kind, []
        for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
            partition = {name: partition_text(kind, name, row[f"partition.{name}"]) for name in kind.folders_by}
            found.append(
                DataFile(kind.name, unquote(row["path"]), row["num_records"] or 0, row["size_bytes"], partition)
            )
        found.sort(key=lambda file: file.path)
        return Snapshot(table.version(), found, [field.name for field in table.schema().fields])

    def _check_schema(self, table: DeltaTable) -> None:
        from deltalake import Schema

        kind = self.kind
        wanted = Schema.from_arrow(arrow_schema(kind.name, with_partitions=True))
        types = {field.name: field.type for field in wanted.fields}
        other = [field.name for field in table.schema().fields if types.get(field.name, field.type) != field.type]
        if other or tuple(table.metadata().partition_columns) != kind.folders_by:
            what = f"other types of {', '.join(other)}" if other else "other partitions"
            command = kind.made_by.format(**{name: name.upper() for name in kind.partition_by})
            raise LakeError(
                f"{kind.name} in {self.folder.root} was written with {what} than this version reads; "
                f"make it again in a new lake, with: {command}"
            )

    def keys(self, files: Sequence[DataFile]) -> dict[str, set[Key]]:
        """Which partitions each file, by its path, has rows of."""
        names = self.kind.partition_by
        if not self.kind.clustered:
            return {file.path: {tuple(file.partition[name] for name in names)} for file in files}
        return {file.path: set(self._row_keys(self.read_file(file, names))) for file in files}

    def _row_keys(self, rows: pa.Table) -> list[Key]:
        names = self.kind.partition_by
        columns = (rows.column(name).to_pylist() for name in names)
        return [
            tuple(partition_text(self.kind, name, value) for name, value in zip(names, values, strict=True))
            for values in zip(*columns, strict=True)
        ]

    def read_file(self, file: DataFile, columns: Iterable[str]) -> pa.Table:
        """Those columns of a file, the ones its folder names included; null where it was written without one."""
        import pyarrow as pa

        types = arrow_schema(self.kind.name, with_partitions=True)
        schema = pa.schema([types.field(name) for name in columns])
        return pa.Table.from_batches(list(self.batches_of(file, columns)), schema)

    def batches_of(self, file: DataFile, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """As `read_file`, piece by piece."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = arrow_schema(self.kind.name, with_partitions=True)
        with self.folder.system.open_input_file(f"{self.kind.name}/{file.path}") as source:
            parquet = pq.ParquetFile(source)
            inside = [name for name in columns if name in parquet.schema_arrow.names and name not in file.partition]
            for batch in parquet.iter_batches(1 << 17, columns=inside):
                arrays = []
                for name in columns:
                    if name in inside:
                        arrays.append(batch.column(name).cast(types.field(name).type))
                    else:
                        value = pa.scalar(file.partition.get(name)).cast(types.field(name).type)
                        arrays.append(pa.repeat(value, batch.num_rows))
                yield pa.RecordBatch.from_arrays(arrays, [*columns])

    # -- committing

    def replace(self, files: Sequence[DataFile], keys: Iterable[Key] = (), note: str = "replace") -> set[Key]:
        """Make the files the rows of the partitions they have rows of, and of those named, in place of what these were;
        returns which."""
        self._check_seen(files)
        replaced = set(keys).union(*self.keys(files).values())

        def change(snapshot: Snapshot) -> tuple[Sequence[DataFile], Sequence[DataFile]]:
            if not self.kind.clustered:
                inside = self.keys(snapshot.files)
                return [file for file in snapshot.files if inside[file.path] & replaced], files
            return self._recluster(snapshot, replaced, files)

        if replaced:
            self._commit(change, files, note)
        return replaced

    def rewrite(
        self,
        change: Callable[[Snapshot], tuple[Sequence[DataFile], Sequence[DataFile]]],
        files: Sequence[DataFile],
        note: str,
    ) -> None:
        """Commit what `change` says of the table as it is now: the files to remove and those to add, among them the
        given ones. It may be asked again, of a newer table; what it raises ends the commit."""
        self._check_seen(files)
        self._commit(change, files, note)

    def _check_seen(self, files: Sequence[DataFile]) -> None:
        sizes = self.folder.sizes([f"{self.kind.name}/{file.path}" for file in files])
        for file, size in zip(files, sizes, strict=True):
            if size != file.size_bytes:
                seen = "sees no such file" if size is None else f"sees {size} bytes"
                raise LakeError(
                    f"nothing was written to {self.kind.name} in {self.folder.root}: a task wrote {file.path} "
                    f"({file.rows} rows, {file.size_bytes} bytes), but this machine {seen}; put the lake on a disk "
                    "that every machine of the cluster mounts at the same path, or in an object store (s3a://...)"
                )

    def _recluster(
        self, snapshot: Snapshot, replaced: set[Key], files: Sequence[DataFile]
    ) -> tuple[Sequence[DataFile], Sequence[DataFile]]:
        """Rewrite the files that have rows of those partitions, without them, and the small ones if they are many."""
        inside = self.keys(snapshot.files)
        changed = [file for file in snapshot.files if inside[file.path] & replaced]
        small = [file for file in snapshot.files if file.size_bytes < SMALL_BYTES]
        is_many = len(small) + len(files) > MOST_FILES
        if is_many:
            changed = list({file.path: file for file in (*changed, *small)}.values())
        kept = [self._without(file, replaced) for file in changed if not inside[file.path] <= replaced]
        if is_many:
            kept += [self.read_file(file, self.kind.columns) for file in files]
            files = []
        if not sum(len(one) for one in kept):
            return changed, files
        import pyarrow as pa

        together = pa.concat_tables(kept).sort_by([(name, "ascending") for name in self.kind.partition_by])
        return changed, [*files, DataFiles(self.folder).write_table(self.kind.name, together)]

    def _without(self, file: DataFile, replaced: set[Key]) -> pa.Table:
        import pyarrow as pa

        rows = self.read_file(file, self.kind.columns)
        return rows.filter(pa.array([key not in replaced for key in self._row_keys(rows)], pa.bool_()))

    def _commit(
        self,
        change: Callable[[Snapshot], tuple[Sequence[DataFile], Sequence[DataFile]]],
        files: Sequence[DataFile],
        note: str,
    ) -> None:
        from deltalake.exceptions import CommitFailedError

        own = {file.path for file in files}
        until = time.monotonic() + PATIENCE_S
        for attempt in range(1, 1_000_000):
            with self._errors():
                added: Sequence[DataFile] = ()
                try:
                    table = self._open_or_create()
                    snapshot = self._snapshot(table)
                    if own and own <= {file.path for file in snapshot.files}:
                        return  # the last try did succeed
                    removed, added = change(snapshot)
                    self._write(table, removed, added, note)
                except CommitFailedError as error:
                    for file in added:
                        if file.path not in own:
                            self.folder.delete(f"{self.kind.name}/{file.path}")
                    if time.monotonic() > until:
                        raise LakeError(
                            f"{self.kind.name} in {self.folder.root} keeps being changed by other commands ({error}); "
                            "wait for them to end"
                        ) from None
                else:
                    for one in own - {file.path for file in added}:
                        self.folder.delete(f"{self.kind.name}/{one}")  # its rows are in another file now
                    self.removed = removed
                    self._keep_small(snapshot.version + 1)
                    return
            time.sleep(random.uniform(0.0, 0.005 * min(attempt, 40)))
        raise AssertionError

    def _write(self, table: DeltaTable, removed: Sequence[DataFile], added: Sequence[DataFile], note: str) -> None:
        from deltalake.transaction import AddAction, CommitProperties, RemoveAction

        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                file.path, file.size_bytes, dict(file.partition), now_ms, True, json.dumps({"numRecords": file.rows})
            )
            for file in added
        ]
        actions += [RemoveAction(file.path, True, now_ms, file.size_bytes, dict(file.partition)) for file in removed]
        counted = {
            "change": note,
            "files": len(added),
            "rows": sum(file.rows for file in added),
            "bytes": sum(file.size_bytes for file in added),
            "files_replaced": len(removed),
        }
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            list(self.kind.folders_by),
            # No retries: it is decided here, and for this version of the table, which files are replaced.
            commit_properties=CommitProperties(max_commit_retries=0, custom_metadata={"earshot": json.dumps(counted)}),
        )

    def _open_or_create(self) -> DeltaTable:
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import DeltaError

        wanted = arrow_schema(self.kind.name, with_partitions=True)
        table = self._open()
        if table is None:
            configuration: dict[str, str | None] = {
                "delta.deletedFileRetentionDuration": f"interval {max(1, round(self.kind.keep_h))} hours"
            }
            if self.kind.keep_log_s is not None:
                configuration |= {
                    "delta.logRetentionDuration": f"interval {round(self.kind.keep_log_s)} seconds",
                    "delta.checkpointInterval": "10",
                }
            try:
                DeltaTable.create(
                    self.folder.delta_address(self.kind.name),
                    Schema.from_arrow(wanted),
                    mode="ignore",
                    partition_by=list(self.kind.folders_by),
                    configuration=configuration,
                )
            except DeltaError:
                if self._open() is None:
                    raise  # not because another command made it at the same time
            table = self._open()
            assert table is not None
        there = {field.name for field in table.schema().fields}
        if new := [field for field in Schema.from_arrow(wanted).fields if field.name not in there]:
            self._check_schema(table)
            table.alter.add_columns(new)
            table = self._open()
            assert table is not None
        return table

    # -- maintenance

    def history(self) -> list[dict[str, Any]]:
        """The commits, the newest first: version, time (seconds since the epoch), what it did and counted."""
        with self._errors():
            table = self._open()
            found = table.history() if table is not None else []
        rows = []
        for one in found:
            counted = json.loads(one.get("earshot") or "{}")
            rows.append(
                {
                    "version": one["version"],
                    "time": one["timestamp"] / 1000.0,
                    "change": counted.pop("change", one["operation"].lower()),
                    **counted,
                }
            )
        return rows

    def compact(self) -> tuple[int, int]:
        """Join small files of the same partition; returns how many became how many. Readers see no difference."""
        from deltalake import WriterProperties
        from deltalake.exceptions import CommitFailedError

        until = time.monotonic() + PATIENCE_S
        while True:
            with self._errors():
                table = self._open()
                if table is None:
                    return 0, 0
                try:
                    done = table.optimize.compact(writer_properties=WriterProperties(compression="ZSTD"))
                    return int(done["numFilesRemoved"]), int(done["numFilesAdded"])
                except CommitFailedError:
                    if time.monotonic() > until:
                        raise

    def vacuum(self, keep_h: float, dry_run: bool = False) -> list[str]:
        """Remove files that no version of the last hours has, and those of writes that never ended; returns them."""
        with self._errors():
            table = self._open()
            if table is None:
                return []
            # Without the check, delta-rs refuses fewer hours than the table promises; here the caller decides.
            return table.vacuum(math.ceil(keep_h), dry_run=dry_run, enforce_retention_duration=False, full=True)

    def _keep_small(self, version: int) -> None:
        if self.kind.keep_h < 24 and version % VACUUM_EVERY == 0:
            self.vacuum(self.kind.keep_h)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What delta-rs and the disk raise, as our own error."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise LakeError(f"cannot use {self.kind.name} in the lake {self.folder.root}: {line}") from error
