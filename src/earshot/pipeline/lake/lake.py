"""The lake: partitioned Parquet tables under one folder, and the one module that reads and writes them.

::

    LAKE/positions/trace=bologna/version=176..-3f2a/part-*.parquet   one version of one partition
                                                   /_COMMITTED-1b2c3d4e   ... which is whole
    LAKE/_staging/...    what is being written       LAKE/_leases/...    who reads and writes what

- A stage writes a partition beside the tables, moves it in as a new version, marks it with
  `_COMMITTED` and only then removes the version it replaces. Readers see the newest version with a
  mark: a stage that is killed leaves nothing to be seen, and no partition is ever missing.
- Two commands may work on one lake. Each writes its own version; the last to finish is what is read.
  What a live command reads or writes is not removed under it (`leases`); what a killed one left is
  removed by the next write. On Hadoop addresses, which have no locks, the version before the newest
  is kept for readers and unfinished work is removed after a day.
- The mark names the schema: a partition written with other columns is not misread.

`lake.write(frame, "contacts", trace="bologna", range_m=100.0)` replaces that partition, even with an
empty frame. Partition columns that are not given come from the frame: `lake.write(log, "log")`
replaces one partition for each run in it.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from earshot.errors import LakeError
from earshot.pipeline.lake.leases import Leases, leases_of
from earshot.pipeline.lake.storage import LocalStorage, storage_at
from earshot.pipeline.lake.tables import Table, table_named
from earshot.pipeline.lake.task_commits import TaskCommits
from earshot.pipeline.lake.versions import (
    MARK,
    VERSION,
    Key,
    Value,
    Version,
    commit,
    committed,
    folder_name,
    partition_key,
    partition_text,
    prefix_of,
    versions_in,
)
from earshot.pipeline.spark.failures import named_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

STALE_S = 86_400.0


class Lake:
    """One lake folder, local or at any address Hadoop knows, through one Spark session."""

    def __init__(self, session: SparkSession, root: str | os.PathLike[str]) -> None:
        self.session = session
        self.storage = storage_at(root, session)
        self.name = os.fspath(root)
        self._leases: Leases | None = None
        if isinstance(self.storage, LocalStorage) and Leases.work_here():
            self._leases = leases_of(self.storage)

    # -- reading

    def read(self, table: str, **partition: Value) -> DataFrame:
        """The table, or those of its partitions that are asked for; LakeError where there are none."""
        kind = table_named(table)
        for _ in range(10):
            found = committed(self.storage, kind, partition)
            if not found:
                raise self._absent(kind, partition)
            self._check_schema(kind, found)
            paths = [version.path for version in found.values()]
            if self._leases is None:
                break
            # A version may have been replaced and removed since it was found: once it is leased and
            # still marked, it stays.
            self._leases.take(*paths)
            if all(self._marked(version) for version in found.values()):
                break
            self._leases.release(*paths)
        else:
            raise LakeError(f"{kind.name} in {self.name} keeps being replaced; wait for the other command to end")
        return self._frame(kind, prefix_of(kind, partition), found.values())

    def read_or_empty(self, table: str, **partition: Value) -> DataFrame:
        """As `read`, but an empty frame of the table's columns where there is no such partition."""
        if self.partitions(table, **partition):
            return self.read(table, **partition)
        return self.session.createDataFrame([], table_named(table).ddl)

    def partitions(self, table: str, **partition: Value) -> list[dict[str, str]]:
        """The partitions there are (of those asked for), as texts, in order."""
        return [dict(key) for key in sorted(committed(self.storage, table_named(table), partition))]

    def has(self, table: str, **partition: Value) -> bool:
        """Whether there is such a partition."""
        return bool(committed(self.storage, table_named(table), partition))

    # -- writing

    def write(self, frame: DataFrame, table: str, **partition: Value) -> list[dict[str, str]]:
        """Replace partitions with the frame's rows; returns which.

        Partition columns given by name say which partition; the others come from the frame. The
        frame may have more columns than the table, and in any order; it may not have fewer.
        """
        kind = table_named(table)
        fixed = {name: partition_text(kind, name, value) for name, value in partition.items()}
        open_columns = [name for name in kind.partition_by if name not in fixed]
        if open_columns != list(kind.partition_by[len(fixed) :]):
            raise LakeError(f"{table} is partitioned by {', '.join(kind.partition_by)}: give them in that order")
        columns = [*open_columns, *kind.data_columns]
        if lacking := [name for name in columns if name not in frame.columns]:
            raise LakeError(f"rows for {table} lack {', '.join(lacking)}")
        typed = frame.select(*(frame[name].cast(kind.columns[name]).alias(name) for name in columns))
        with self.staging() as staging:
            with named_errors():
                typed.write.partitionBy(*open_columns).parquet(f"{self.storage.address}/{staging}")
            folders = self._leaf_folders(staging, len(open_columns))
            prefix = [folder_name(name, value) for name, value in fixed.items()]
            targets = ["/".join([kind.name, *prefix, *([leaf] if leaf else [])]) for leaf in folders]
            for leaf, target in zip(folders, targets, strict=True):
                commit(self.storage, kind, f"{staging}/{leaf}".rstrip("/"), target)
        self._sweep_up(kind, targets)
        return [dict(partition_key(target.split("/")[1:])) for target in targets]

    def write_table(self, rows: pa.Table, table: str, **partition: Value) -> None:
        """Replace one small partition with the rows of an Arrow table, without a Spark job."""
        kind = table_named(table)
        with self.task_commits() as commits:
            commits.commit_table(table, rows, **partition)
        self._sweep_up(kind, ["/".join(prefix_of(kind, partition))])

    @contextmanager
    def staging(self) -> Iterator[str]:
        """A folder to write in, which no other command removes; it is deleted afterwards."""
        staging = f"_staging/{self._leases.name if self._leases else 'any'}-{uuid.uuid4().hex[:12]}"
        if self._leases:
            self._leases.take(staging)
        try:
            yield staging
        finally:
            self.storage.delete(staging)
            if self._leases:
                self._leases.release(staging)

    @contextmanager
    def task_commits(self) -> Iterator[TaskCommits]:
        """For tasks that commit partitions themselves; they may do so until the context ends."""
        with self.staging() as staging:
            root = str(getattr(self.storage, "root", self.storage.address))
            yield TaskCommits(root, isinstance(self.storage, LocalStorage), staging)

    def drop(self, table: str, **partition: Value) -> None:
        """Remove partitions, if they exist."""
        kind = table_named(table)
        for version in committed(self.storage, kind, partition).values():
            self.storage.delete(f"{version.path}/{MARK}{version.digest}")
        self._sweep_up(kind, ["/".join(prefix_of(kind, partition))])

    def _sweep_up(self, kind: Table, targets: Iterable[str]) -> None:
        """Remove what the new versions replace and what killed commands left behind."""
        kept = 1 if self._leases else 2
        obsolete: list[str] = []
        for target in targets:
            versions: dict[str, list[Version]] = {}
            for version in sorted(versions_in(self.storage, kind, target), reverse=True):
                versions.setdefault(version.path.rpartition("/")[0], []).append(version)
            for old in itertools.chain.from_iterable(group[kept:] for group in versions.values()):
                # First the mark, then the look at the leases: a reader does it the other way round.
                self.storage.delete(f"{old.path}/{MARK}{old.digest}")
                obsolete.append(old.path)
            if self._leases:
                obsolete += self._unmarked(kind, target)
        obsolete += [f"_staging/{name}" for name in self.storage.folders("_staging")]
        if self._leases:
            used = self._leases.in_use()
            obsolete = [path for path in obsolete if path not in used]
        else:
            obsolete = [
                path for path in obsolete if not path.startswith("_staging/") or self.storage.age_s(path) > STALE_S
            ]
        for path in obsolete:
            self.storage.delete(path)

    def _unmarked(self, kind: Table, target: str) -> list[str]:
        """Versions moved in but never marked (their writer was killed in between), or replaced while read."""
        marked, all_of_them = set(), set()
        depth = 1 + len(kind.partition_by)
        for path in self.storage.files(target):
            parts = path.split("/")
            if len(parts) >= depth + 2:
                folder = "/".join(parts[: depth + 1])
                all_of_them.add(folder)
                if parts[-1].startswith(MARK):
                    marked.add(folder)
        return sorted(all_of_them - marked)

    def _leaf_folders(self, staging: str, depth: int) -> list[str]:
        leaves = [""]
        for _ in range(depth):
            leaves = [
                f"{leaf}/{name}".lstrip("/")
                for leaf in leaves
                for name in self.storage.folders(f"{staging}/{leaf}")
                if "=" in name
            ]
        return leaves

    # -- finding

    def _frame(self, kind: Table, folders: list[str], versions: Iterable[Version]) -> DataFrame:
        """These versions as one frame. The folder is read as one path and the versions picked as
        partitions: Spark takes time by the square of the number of paths it is given."""
        from pyspark.sql import functions as F

        with named_errors():
            return (
                self.session.read.schema(f"{kind.ddl}, `{VERSION}` string")
                .option("basePath", f"{self.storage.address}/{kind.name}")
                .option("__globPaths__", "false")
                .parquet("/".join([self.storage.address, *folders]))
                .where(F.col(VERSION).isin([version.stamp for version in versions]))
                .select(*kind.columns)
            )

    def _marked(self, version: Version) -> bool:
        return any(file.endswith(f"{MARK}{version.digest}") for file in self.storage.files(version.path))

    # -- errors

    def _check_schema(self, kind: Table, found: Mapping[Key, Version]) -> None:
        for key, version in found.items():
            if version.digest != kind.digest:
                raise LakeError(
                    f"{kind.name} of {_in_words(key)} in {self.name} was written with other columns than "
                    f"this version reads; run: {_command(kind, dict(key), self.name)}"
                )

    def _absent(self, kind: Table, partition: Mapping[str, Value]) -> LakeError:
        command = _command(kind, partition, self.name)
        if not self.storage.exists():
            return LakeError(f"there is no lake at {self.name}; run: {command}")
        others = self.partitions(kind.name)
        if not partition or not others:
            return LakeError(f"the lake {self.name} has no {kind.name}; run: {command}")
        names = [_in_words(other.items()) for other in others]
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        asked = _in_words(partition.items())
        return LakeError(f"the lake {self.name} has no {kind.name} of {asked}, only of {shown}; run: {command}")


def _in_words(pairs: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _command(kind: Table, partition: Mapping[str, Any], lake: str) -> str:
    shown = {name: partition.get(name, name.upper()) for name in kind.partition_by}
    return f"{kind.made_by.format(**shown)} --lake {lake}"
