"""Committing partitions from inside a Spark task, where there is no session.

The driver opens `lake.task_commits()` and sends it to the tasks. Each commits whole partitions, by the
same staging, rename and mark as the lake itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from earshot.pipeline.lake.storage import ArrowStorage, LocalStorage, Storage
from earshot.pipeline.lake.tables import arrow_schema, table_named
from earshot.pipeline.lake.versions import Value, commit, is_committed, prefix_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TaskCommits:
    """Writes partitions of one lake. It is pickled into tasks."""

    root: str
    local: bool
    "The lake is on a disk that every worker has."
    staging: str
    "The folder of the lake in which drafts are written."

    @property
    def storage(self) -> Storage:
        """The lake's folder as a task reaches it."""
        return LocalStorage(Path(self.root)) if self.local else ArrowStorage(self.root)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """A local folder to write a partition's files in; on the lake's own disk where that is local."""
        if self.local:
            folder = Path(self.root) / self.staging / uuid.uuid4().hex
            folder.mkdir(parents=True)
            yield folder
        else:
            with TemporaryDirectory(prefix="earshot-") as temporary:
                yield Path(temporary)

    def commit(self, table: str, folder: Path, **partition: Value) -> None:
        """Make a draft's files the partition's newest version."""
        kind = table_named(table)
        storage = self.storage
        staged = f"{self.staging}/{folder.name}"
        if isinstance(storage, ArrowStorage):
            storage.upload(folder, staged)
        commit(storage, kind, staged, "/".join(prefix_of(kind, partition)))

    def commit_rows(self, table: str, rows: Sequence[dict[str, Any]], **partition: Value) -> None:
        """Commit a small partition from rows."""
        import pyarrow as pa

        self.commit_table(table, pa.Table.from_pylist(list(rows), schema=arrow_schema(table)), **partition)

    def commit_table(self, table: str, rows: pa.Table, **partition: Value) -> None:
        """Commit a partition from an Arrow table that has at least the table's columns."""
        import pyarrow.parquet as pq

        schema = arrow_schema(table)
        with self.draft() as folder:
            pq.write_table(rows.select(schema.names).cast(schema), folder / "part-0.parquet", compression="zstd")
            self.commit(table, folder, **partition)

    def has(self, table: str, **partition: Value) -> bool:
        """Whether the partition has been committed."""
        return is_committed(self.storage, table_named(table), partition)
