"""A lake's tables as Arrow tables: straight from a local disk, without Spark; any other through it.

A page that people wait for should not wait for a JVM, and a page that follows a network reads every
second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from earshot.errors import LakeError
from earshot.pipeline.lake.leases import Leases, leases_of
from earshot.pipeline.lake.storage import LocalStorage
from earshot.pipeline.lake.tables import Table, arrow_schema, table_named
from earshot.pipeline.lake.versions import Key, Value, Version, committed

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

Batches = Iterator[pa.RecordBatch]
_TRIES = 10


class Tables(Protocol):
    """A lake to be read."""

    name: str

    def partitions(self, table: str) -> list[dict[str, str]]:
        """The partitions there are."""

    def read(self, table: str, **partition: Value) -> pa.Table:
        """The rows of those partitions; no rows where there are none."""

    def batches(self, table: str, columns: list[str], **partition: Value) -> Batches:
        """Some columns of those partitions, piece by piece: for tables larger than memory."""


class LocalTables:
    """A lake on a local disk."""

    def __init__(self, root: str | Path) -> None:
        self.name = str(root)
        self.storage = LocalStorage(Path(root))

    def partitions(self, table: str) -> list[dict[str, str]]:
        return [dict(key) for key in sorted(committed(self.storage, table_named(table), {}))]

    def read(self, table: str, **partition: Value) -> pa.Table:
        kind = table_named(table)
        schema = arrow_schema(table, with_partitions=True)
        parts = []
        with self._held(kind, partition) as found:
            for key, version in found.items():
                for file in self._files(version):
                    part = pq.ParquetFile(file).read(columns=[*kind.data_columns])
                    for name, text in key:
                        part = part.append_column(name, pa.repeat(pa.scalar(text), part.num_rows))
                    parts.append(part.select(schema.names).cast(schema))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def batches(self, table: str, columns: list[str], **partition: Value) -> Batches:
        kind = table_named(table)
        with self._held(kind, partition) as found:
            for version in found.values():
                for file in self._files(version):
                    yield from pq.ParquetFile(file).iter_batches(1 << 17, columns=columns)

    def _files(self, version: Version) -> list[Path]:
        folder = self.storage.root / version.path
        return sorted(path for path in folder.iterdir() if path.suffix == ".parquet" and path.name[0] not in "._")

    @contextlib.contextmanager
    def _held(self, kind: Table, partition: Mapping[str, Value]) -> Iterator[dict[Key, Version]]:
        """The newest versions; they are not removed while they are read."""
        leases = leases_of(self.storage) if Leases.work_here() and self.storage.exists() else None
        for _ in range(_TRIES):
            found = committed(self.storage, kind, partition)
            paths = [version.path for version in found.values()]
            if leases is not None:
                leases.take(*paths)
            try:
                # A version may have been replaced since it was found; once it is leased and still the
                # newest, it stays.
                if leases is None or committed(self.storage, kind, partition) == found:
                    self._check(kind, found)
                    yield found
                    return
            finally:
                if leases is not None:
                    leases.release(*paths)
        raise LakeError(f"{kind.name} in {self.name} keeps being replaced; wait for the other command to end")

    def _check(self, kind: Table, found: Mapping[Any, Version]) -> None:
        if any(version.digest != kind.digest for version in found.values()):
            raise LakeError(
                f"{kind.name} in {self.name} was written with other columns than this version reads; "
                "make it again, in a new lake"
            )


class SparkTables:
    """Any lake, through Spark."""

    def __init__(self, lake: Lake) -> None:
        self.name = lake.name
        self._lake = lake

    def partitions(self, table: str) -> list[dict[str, str]]:
        return self._lake.partitions(table)

    def read(self, table: str, **partition: Value) -> pa.Table:
        return self._lake.read_or_empty(table, **partition).toArrow()

    def batches(self, table: str, columns: list[str], **partition: Value) -> Batches:
        frame = self._lake.read_or_empty(table, **partition).select(*columns)
        yield from frame.toArrow().to_batches()
