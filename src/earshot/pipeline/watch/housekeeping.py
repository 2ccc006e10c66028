"""What keeps the tables of a watch readable: small files are joined, old rows are removed, and so are files that no
version of a table needs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles, batches_of
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import TABLES
from earshot.pipeline.watch.watch_state import State, WatchSettings, day_of

GROWING = ("watched_log", "watched_pairs", "watched_matches", "watched_late", "watched_rejects")
"Tables that each batch adds to."
EVERY_S = 3600.0
EVERY_BATCHES = 1800
"All small files are joined after this many seconds or batches, whichever comes first."
SOME_BATCHES = 50
"This number of one-batch files is joined at a time: a row is written at most three times in an hour."
ORPHANS_H = 1.0
GRACE_S = 60.0
"A file that was replaced stays this long, for those that still read it."


class Housekeeping:
    """Of one watch; asked after every commit, and at the end."""

    def __init__(self, lake: ArrowLake, settings: WatchSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.lake = lake
        self.settings = settings
        self._clock = clock
        self._done_at = clock()
        self._replaced: deque[tuple[float, str]] = deque()
        self._joined_until: int | None = None
        "The last batch at the last join of all files."
        self._some_joined_until = -1
        lake.replaced = []

    def after(self, state: State) -> None:
        """A batch was committed: do what is due."""
        if self._joined_until is None:  # where the watch before this one left off
            log = self._files("watched_log").files()
            small = [first for first, last in map(batches_of, log) if first == last]
            self._joined_until = min(small, default=state.batch)
        if state.batch - self._joined_until >= EVERY_BATCHES or self._clock() - self._done_at >= EVERY_S:
            self.tidy(state)
        elif state.batch - max(self._joined_until, self._some_joined_until) >= SOME_BATCHES:
            self._join(state, single=True)
        self._delete()

    def tidy(self, state: State) -> None:
        """Join small files and remove old rows."""
        self._done_at, self._joined_until = self._clock(), state.batch
        if self.settings.keep_s is not None and state.newest is not None:
            for table in GROWING:
                self._files(table).keep_since(day_of(state.newest - self.settings.keep_s))
        self._join(state)
        for kind in TABLES.values():
            if kind.keep_log_s is not None:  # what killed processes left
                TableLog(self.lake.folder, kind).vacuum(ORPHANS_H)
        self._delete()

    def _join(self, state: State, single: bool = False) -> None:
        """Of the log, batches that the watch still reads stay as they are."""
        self._some_joined_until = state.batch
        for table in GROWING:
            reads = min(state.window, default=state.batch + 1) if table == "watched_log" else state.batch + 1
            self._files(table).compact(reads, single)

    def _files(self, table: str) -> BatchFiles:
        return BatchFiles(self.lake, table, self.settings.name)

    def end(self, state: State) -> None:
        """The watch ends: leave few files."""
        if self._joined_until is not None and state.batch - self._joined_until >= SOME_BATCHES:
            self.tidy(state)
        self._delete(GRACE_S)

    def _delete(self, early_s: float = 0.0) -> None:
        now = self._clock() + early_s
        assert self.lake.replaced is not None
        self._replaced.extend((self._clock(), path) for path in self.lake.replaced)
        self.lake.replaced.clear()
        while self._replaced and self._replaced[0][0] <= now - GRACE_S:
            self.lake.folder.delete(self._replaced.popleft()[1])
