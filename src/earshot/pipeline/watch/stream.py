"""The stream: what live nodes record, judged by the oracle as it comes.

A Structured Streaming query follows the spools (over Spark Connect: a `ConnectQuery`), and each of its batches goes
through a `BatchStep`.
Spark's checkpoint says which bytes of which segments a batch is made of; a row of `watches` says that
it is in the lake. A batch is in both, or is made again of the same bytes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.errors import LakeError
from earshot.pipeline.spark.session import is_connect, parallelism
from earshot.pipeline.watch import spool_source as source
from earshot.pipeline.watch.alone import alone
from earshot.pipeline.watch.batch_step import BatchStep
from earshot.pipeline.watch.connect_query import Checkpoint, ConnectQuery
from earshot.pipeline.watch.spool_segments import check_folders
from earshot.pipeline.watch.standing_subscriptions import StandingFile
from earshot.pipeline.watch.watch_state import Commit, Report, WatchSettings

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from earshot.pipeline.lake.lake import Lake

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
