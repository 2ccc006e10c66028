"""Committing partitions from inside a Spark task, where there is no session.

The driver opens an outpost on its lake and hands it to the tasks; each commits whole partitions of
its own, by the same staging, rename and mark as the lake itself (`lake.commit`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

from earshot.pipeline.lake.lake import Value, commit, is_committed, prefix_of
from earshot.pipeline.lake.storage import ArrowStorage, LocalStorage, Storage
from earshot.pipeline.lake.tables import table_named

if TYPE_CHECKING:
    import pyarrow as pa

    from earshot.pipeline.lake.lake import Lake


class Outpost:
    """A lake's hand inside tasks. Use as a context manager on the driver; pickles into tasks."""

    def __init__(self, root: str, local: bool, staging: str = "") -> None:
        self.root = root
        self.local = local
        self.staging = staging
        self._open = ExitStack()

    @classmethod
    def of(cls, lake: Lake) -> Outpost:
        """An outpost of that lake; enter it before tasks use it."""
        outpost = cls(str(getattr(lake.storage, "root", lake.storage.address)), isinstance(lake.storage, LocalStorage))
        outpost._open.enter_context(_staged(lake, outpost))
        return outpost

    def __enter__(self) -> Outpost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root, "local": self.local, "staging": self.staging}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

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
        target = "/".join(prefix_of(kind, partition))
        storage = self.storage
        staged = f"{self.staging}/{folder.name}"
        if isinstance(storage, ArrowStorage):
            storage.upload(folder, staged)
        commit(storage, kind, staged, target)

    def commit_rows(self, table: str, rows: Sequence[dict[str, Any]], **partition: Value) -> None:
        """A small partition from rows."""
        import pyarrow as pa

        self.commit_table(table, pa.Table.from_pylist(list(rows), schema=arrow_schema(table)), **partition)

    def commit_table(self, table: str, rows: pa.Table, **partition: Value) -> None:
        """A partition from an Arrow table that has the table's columns, and maybe more."""
        import pyarrow.parquet as pq

        schema = arrow_schema(table)
        with self.draft() as folder:
            pq.write_table(rows.select(schema.names).cast(schema), folder / "part-0.parquet", compression="zstd")
            self.commit(table, folder, **partition)

    def has(self, table: str, **partition: Value) -> bool:
        """Whether the partition has been committed."""
        return is_committed(self.storage, table_named(table), partition)


def arrow_schema(table: str) -> pa.Schema:
    """The columns inside a table's files."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "double": pa.float64(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "boolean": pa.bool_(),
    }
    kind = table_named(table)
    return pa.schema([(name, types[kind.columns[name]]) for name in kind.data_columns])


@contextmanager
def _staged(lake: Lake, outpost: Outpost) -> Iterator[None]:
    with lake.staging() as staging:
        outpost.staging = staging
        yield
