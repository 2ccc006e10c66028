"""The stream: what live nodes record, judged by the oracle as it comes.

A Structured Streaming query follows the spools, and each of its batches goes through a `BatchStep`. Spark's
checkpoint says which bytes of which segments a batch is made of; a row of `watches` says that it is in the lake. A
batch is in both, or is made again of the same bytes.

Over Spark Connect the command cuts the batches itself (`ConnectQuery`), and each batch runs as jobs on the server: a
stream of the server's own would run far from the terminal, and go on after the command has ended. Read positions are
kept in the files of Spark's checkpoint, so a watch can change between a server and a session of its own.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.errors import LakeError
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.spark.session import is_connect, parallelism
from earshot.pipeline.spark.tasks import rows_of_items
from earshot.pipeline.watch import spool_source as source
from earshot.pipeline.watch.alone import alone
from earshot.pipeline.watch.batch_step import BatchStep
from earshot.pipeline.watch.spool_segments import Offsets, check_folders
from earshot.pipeline.watch.spool_source import DDL, SpoolStreamReader, read_share
from earshot.pipeline.watch.standing_subscriptions import StandingFile
from earshot.pipeline.watch.watch_state import Commit, Report, WatchSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from earshot.pipeline.lake.lake import Lake


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
        self._step(rows_of_items(self._session, shares, read_share, DDL), batch)
        self._checkpoint.end(batch)


DRIVER_MEMORY = "1g"
"Enough for Spark's own process: records, positions and pairs are in Python's workers and on the disk."


class Watch:
    """One watch of some spools into one lake."""

    def __init__(
        self,
        lake: Lake,
        folders: Sequence[str],
        settings: WatchSettings | None = None,
        subscriptions: Path | None = None,
        report: Report | None = None,
    ) -> None:
        self.lake = lake
        self.settings = settings or WatchSettings()
        self.folders = check_folders(folders, may_be_empty=True)
        standing = StandingFile(subscriptions) if subscriptions is not None else None
        self.step = BatchStep(lake, self.settings, self.folders, standing, report or _no_report)

    @property
    def checkpoint(self) -> str:
        """Where Spark keeps how far it has read."""
        return f"{self.lake.folder.address}/_watches/{self.settings.name}/checkpoint"

    @contextmanager
    def running(self, once: bool = False) -> Iterator[StreamingQuery | ConnectQuery]:
        """Start the query, and stop it at the end of the context in every case."""
        with alone(self.lake.arrow, self.settings.name) as self.step.check_alone:
            self.step.resume()
            if self.step.state.batch >= 0 and not self.lake.folder.files(f"{self._own}/checkpoint/offsets"):
                raise LakeError(
                    f"the lake {self.lake.name} has a watch {self.settings.name!r}, but its read positions are lost "
                    f"({self.checkpoint}); take another --name"
                )
            # An error in a batch is raised; this logger would also write its stack trace to the terminal.
            logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)
            query = self._start(once)
            try:
                yield query
            finally:
                query.stop()
            self.step.housekeeping.end(self.step.state)

    def last(self) -> Commit | None:
        """The last commit, as the tables have it; None where there is none yet."""
        if not self.lake.has("watches", watch=self.settings.name):
            return None

        def rows(table: str) -> list[dict[str, Any]]:
            found = self.lake.read(table, watch=self.settings.name).drop("watch")
            return [row.asDict() for row in found.collect()]

        (counts,) = rows("watches")
        del counts["state"]
        return Commit(counts["batch"], counts, rows("watched_figures"), rows("watched_losses"))

    @property
    def _own(self) -> str:
        return f"_watches/{self.settings.name}"

    def _start(self, once: bool) -> StreamingQuery | ConnectQuery:
        session, tasks = self.lake.session, parallelism(self.lake.session)
        ended = (self.lake.folder.root, f"{self._own}/ended.json")
        if is_connect(session):
            reader = source.SpoolStreamReader(self.folders, tasks, self.settings.most_bytes, ended)
            checkpoint = Checkpoint(self.lake.folder, f"{self._own}/checkpoint")
            return ConnectQuery(session, reader, checkpoint, self.step, None if once else self.settings.every_s)
        given = {
            source.FOLDERS: json.dumps(self.folders),
            source.TASKS: str(tasks),
            source.MOST_BYTES: str(self.settings.most_bytes),
            source.ENDED: json.dumps(ended),
        }
        session.conf.set("spark.sql.streaming.minBatchesToRetain", "10")  # fewer files; one is enough to resume
        session.dataSource.register(source.SpoolSource)
        rows = session.readStream.format(source.FORMAT).options(**given).load()
        writer = rows.writeStream.foreachBatch(self.step).option("checkpointLocation", self.checkpoint)
        trigger: dict[str, Any] = {"availableNow": True}
        if not once:
            trigger = {"processingTime": f"{max(0, round(self.settings.every_s * 1000))} milliseconds"}
        return writer.trigger(**trigger).start()


def _no_report(commit: Commit) -> None:
    del commit
