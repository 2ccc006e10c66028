"""A watch over Spark Connect: the command cuts the batches itself, and each batch runs as jobs on the server.

A stream of the server's own would run the step in a process of the server, far from the terminal, and would go on
after the command has ended. Read positions are kept as Spark keeps them, in the files of its checkpoint: a watch
that began on a server can go on with a session of its own, and the other way round.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from earshot.errors import LakeError
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.watch.spool_segments import Offsets
from earshot.pipeline.watch.spool_source import DDL, Share, SpoolStreamReader, read_share

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

KEPT = 10
"Batches whose read positions stay; one is enough to resume."
LEAST_PAUSE_S = 0.05


class Checkpoint:
    """The read positions at the end of each of the last batches: `offsets/N`, and `commits/N` once it is done."""

    def __init__(self, folder: Folder, path: str) -> None:
        self.folder, self.path = folder, path

    def batches(self) -> list[int]:
        """Those that have read positions, in order."""
        names = (path.rpartition("/")[2] for path in self.folder.files(f"{self.path}/offsets"))
        return sorted(int(name) for name in names if name.isdigit())

    def read(self, batch: int) -> Offsets:
        """The read positions at the end of a batch; nothing was read before the first."""
        if batch < 0:
            return {}
        found = self.folder.read(f"{self.path}/offsets/{batch}")
        lines = found.decode().splitlines() if found else []
        if len(lines) != 3 or lines[0] != "v1":
            raise LakeError(
                f"the read positions of batch {batch} in {self.folder.root}/{self.path} cannot be read; "
                "start a watch of another --name"
            )
        offsets: Offsets = json.loads(lines[2])
        return offsets

    def begin(self, batch: int, end: Offsets) -> None:
        """Say what a batch is made of, before it is made."""
        if batch == 0:  # Spark reads no checkpoint without a name
            self.folder.write(f"{self.path}/metadata", json.dumps({"id": str(uuid.uuid4())}).encode())
        about = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        self._write(f"offsets/{batch}", about, end)

    def end(self, batch: int) -> None:
        """The batch is made."""
        self._write(f"commits/{batch}", {"nextBatchWatermarkMs": 0})
        for old in self.batches()[:-KEPT]:
            for kind in ("offsets", "commits"):
                self.folder.delete(f"{self.path}/{kind}/{old}")
                self.folder.delete(f"{self.path}/{kind}/.{old}.crc")

    def _write(self, name: str, *lines: Any) -> None:
        self.folder.write(f"{self.path}/{name}", "\n".join(["v1", *map(json.dumps, lines)]).encode())


class ConnectQuery:
    """As much of Spark's `StreamingQuery` as a watch needs, in a thread of this process."""

    def __init__(
        self,
        session: SparkSession,
        reader: SpoolStreamReader,
        checkpoint: Checkpoint,
        step: Callable[[DataFrame, int], None],
        every_s: float | None,
    ) -> None:
        """`every_s` None: read what is there now, then end."""
        self._session, self._reader, self._checkpoint, self._step = session, reader, checkpoint, step
        self._every_s = every_s
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="earshot-watch")
        self._thread.start()

    @property
    def isActive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        """Why it ended, where something failed."""
        return self._failure

    def awaitTermination(self) -> None:
        """Wait until it has ended; raises what failed."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End it, and the server's jobs of its batch. What that batch wrote is written again next time."""
        self._stopping.set()
        if self._thread.is_alive():
            self._session.interruptAll()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._read_all()
        except Exception as error:
            if not self._stopping.is_set():
                self._failure = error

    def _read_all(self) -> None:
        known = self._checkpoint.batches()
        batch = known[-1] if known else -1
        end = self._checkpoint.read(batch)
        if batch >= 0:  # it may not be whole; if it is, the step says so
            self._make(batch, self._checkpoint.read(batch - 1), end)
        if self._every_s is None:
            self._reader.prepareForTriggerAvailableNow()
        while not self._stopping.is_set():
            began = time.monotonic()
            start, end = end, self._reader.latestOffset(end, self._reader.getDefaultReadLimit())
            if end != start:
                batch += 1
                self._checkpoint.begin(batch, end)
                self._make(batch, start, end)
            elif self._every_s is None:
                return
            if self._every_s is not None:
                self._stopping.wait(max(LEAST_PAUSE_S, began + self._every_s - time.monotonic()))

    def _make(self, batch: int, start: Offsets, end: Offsets) -> None:
        shares = self._reader.partitions(start, end)
        tasks = max(1, len(shares))
        rows = self._session.range(0, tasks, 1, tasks).mapInArrow(_ReadShares(shares), DDL)
        self._step(rows, batch)
        self._checkpoint.end(batch)


class _ReadShares:
    """What the tasks of a batch do: each reads the share with its number."""

    def __init__(self, shares: Sequence[Any]) -> None:
        self.shares = list(shares)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if number < len(self.shares):
                    share: Share = self.shares[number]
                    yield from read_share(share)
