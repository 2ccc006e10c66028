"""Tables that grow batch by batch, as those of a watch: one watch's files, named by the batches they hold.

A file's name says which batches are in it: `b17-17-....parquet` is of one batch, `b0-899-....parquet` was made of
many. So a batch is replaced or removed as a whole without a folder of its own, and small files are joined into
large ones: `compact` does that for batches that nobody changes. Rows stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from earshot.pipeline.lake.arrow_lake import ArrowLake, files_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.table_log import SMALL_BYTES, Snapshot, TableLog
from earshot.pipeline.lake.tables import table_named

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"(?:.*/)?b(\d+)-(\d+)-[0-9a-f]+\.parquet")


def stem_of(first: int, last: int | None = None) -> str:
    """How the name of a file with those batches begins."""
    return f"b{first}-{first if last is None else last}"


def batches_of(file: DataFile) -> tuple[int, int]:
    """The first and the last batch of a file."""
    found = _NAME.fullmatch(file.path)
    assert found is not None, file.path
    return int(found[1]), int(found[2])


class BatchFiles:
    """One watch's files in one table."""

    def __init__(self, lake: ArrowLake, table: str, watch: str) -> None:
        self.lake = lake
        self.kind = table_named(table)
        self.watch = watch

    def files(self, since: int = 0, until: int | None = None) -> list[DataFile]:
        """Those with batches of since..until, in order."""
        snapshot = self.lake.snapshot(self.kind)
        found = self._own(snapshot) if snapshot is not None else []
        return [
            file for file in found if batches_of(file)[1] >= since and (until is None or batches_of(file)[0] <= until)
        ]

    def put(self, files: Sequence[DataFile], batch: int) -> None:
        """Make the files the rows of a batch, in place of what it had."""
        if files:
            self._commit(lambda file: batches_of(file) == (batch, batch), files, "append")

    def put_instead(self, file: DataFile) -> None:
        """Make the file all that there is of the batches up to its last one."""
        last = batches_of(file)[1]
        self._commit(lambda one: batches_of(one)[1] <= last, [file], "replace")

    def drop_after(self, batch: int) -> None:
        """Remove later batches, as a killed process left them."""
        if self.files(since=batch + 1):
            self._commit(lambda file: batches_of(file)[0] > batch, [], "drop")

    def keep_since(self, day: str) -> int:
        """Remove the files of earlier days; returns how many they were."""
        old = [file for file in self.files() if file.partition["day"] < day]
        if old:
            self._commit(_one_of(old), [], "expire")
        return len(old)

    def compact(self, before: int, single: bool = False) -> tuple[int, int]:
        """Join the small files of each day that hold only batches before that one; how many became how many.
        `single`: only those of one batch each."""
        became = [0, 0]
        for some in self._small(before, single):
            self._commit(_one_of(some), [self._joined(some)], "compact")
            became[0] += len(some)
            became[1] += 1
        return became[0], became[1]

    def _small(self, before: int, single: bool) -> Iterator[list[DataFile]]:
        by_day: dict[str, list[DataFile]] = {}
        for file in self.files(until=before - 1):
            first, last = batches_of(file)
            if last < before and file.size_bytes < SMALL_BYTES and (first == last or not single):
                by_day.setdefault(file.partition["day"], []).append(file)
        for some in by_day.values():
            if len(some) > 1:
                yield some

    def _joined(self, files: Sequence[DataFile]) -> DataFile:
        """One file with the rows of all; no more of them than a row group are in memory."""
        log = TableLog(self.lake.folder, self.kind)
        columns = self.kind.file_columns

        def batches() -> Iterator[pa.RecordBatch]:
            for file in files:
                yield from log.batches_of(file, columns)

        first, last = min(batches_of(file)[0] for file in files), max(batches_of(file)[1] for file in files)
        partition = dict(files[0].partition)
        (joined,) = self.lake.files.write_batches(self.kind.name, batches(), partition, stem_of(first, last))
        return joined

    def _own(self, snapshot: Snapshot) -> list[DataFile]:
        return sorted(files_of(self.kind, snapshot, {"watch": self.watch}), key=batches_of)

    def _commit(self, is_replaced: Callable[[DataFile], bool], files: Sequence[DataFile], note: str) -> None:
        """Put the files in place of this watch's files that are replaced."""

        def change(snapshot: Snapshot) -> tuple[Sequence[DataFile], Sequence[DataFile]]:
            return [file for file in self._own(snapshot) if is_replaced(file)], files

        log = self.lake.log_to_write(self.kind)
        log.rewrite(change, files, note)
        self.lake.note_replaced(log)


def _one_of(files: Iterable[DataFile]) -> Callable[[DataFile], bool]:
    paths = {file.path for file in files}
    return lambda file: file.path in paths
