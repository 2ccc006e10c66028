"""The state of a watch between two batches: sessions and sums, as rows of `watched_state`.

Each batch adds what it changed: the spools it read, the sessions that changed, the counts of what it settled. Now and
then, before a batch begins, all that is known is written once, as a base, in place of what it was made of. So a batch
costs what it brings, and a start reads one base and the changes since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles, stem_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import arrow_schema
from earshot.pipeline.watch.running_metrics import MetricSums, RunningMetrics
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.records.sessions import Session

SESSIONS, SEEN, GONE, SUMS, LOST, COUNTED, OPEN = "sessions", "seen", "gone", "sums", "lost", "counted", "open"
"""Kinds of rows: a spool's sessions, how far it was read, that it was forgotten; the sums of a group and the number of
losses of one reason (of a base); counts to be added to the sums, and counts of open events, which are not added."""
BASE_EVERY = 50
"Batches between two bases."
TABLE = "watched_state"


@dataclass
class Changes:
    """What one batch adds to the state."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def read_to(self, spool: str, node: str, first: float | None, last: float | None, more: bool) -> None:
        """The spool was read, perhaps not to its end."""
        self._add(SEEN, spool, (node, first, last, more))

    def changed(self, sessions: WatchedSessions, spools: Iterable[str]) -> None:
        """The sessions of these spools are others now."""
        for spool in spools:
            self._add(SESSIONS, spool, sessions.sessions[spool])

    def forgotten(self, spools: Iterable[str]) -> None:
        """Nothing is known of these spools any more."""
        for spool in spools:
            self._add(GONE, spool, None)

    def counted(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of counts, of settled and of open events."""
        for row in rows:
            self._add(COUNTED if row["is_settled"] else OPEN, "", row)

    def _add(self, kind: str, key: str, value: Any) -> None:
        self.rows.append((kind, key, msgspec.json.encode(value).decode()))


class StateLog:
    """One watch's rows of `watched_state`."""

    def __init__(self, lake: ArrowLake, watch: str) -> None:
        self.lake = lake
        self.files = BatchFiles(lake, TABLE, watch)
        self._base_due = 0
        "The first batch before which a base may be written again."

    def read(self, networks: dict[str, str]) -> tuple[WatchedSessions, RunningMetrics, RunningMetrics]:
        """The sessions, the sums of settled events, and those of settled and open events."""
        sessions, metrics = WatchedSessions(networks=networks), RunningMetrics()
        opened: list[Mapping[str, Any]] = []
        last = -1
        for batch, kind, key, value in self._rows():
            if batch != last:
                opened, last = [], batch
            match kind:
                case "sessions":
                    sessions.sessions[key] = msgspec.json.decode(value, type=list[Session])
                case "seen":
                    node, first, end, more = msgspec.json.decode(value)
                    if end is not None:
                        sessions.seen(key, node, first, end)
                    sessions.has_more(key, more)
                case "gone":
                    sessions.sessions.pop(key, None)
                    sessions.waiting.discard(key)
                case "sums":
                    group = msgspec.json.decode(key, type=tuple[str, str, str, str])
                    metrics.groups[group] = msgspec.json.decode(value, type=MetricSums)
                case "lost":
                    loss = msgspec.json.decode(key, type=tuple[str, str, str, str, str])
                    metrics.losses[loss] = int(value)
                case "counted":
                    metrics.add([msgspec.json.decode(value)])
                case "open":
                    opened.append(msgspec.json.decode(value))
        metrics.forget_minutes()
        whole = metrics.copy()
        whole.add(opened)
        return sessions, metrics, whole

    def add(self, changes: Changes, batch: int) -> None:
        """Write a batch's changes."""
        self.files.put([self._write(changes.rows, batch, batch)] if changes.rows else [], batch)

    def rebase(self, sessions: WatchedSessions, metrics: RunningMetrics, batch: int) -> None:
        """Write all that is known after that batch, which is committed, where the last base is old."""
        if batch < self._base_due:
            return
        self._base_due = batch + BASE_EVERY
        base = Changes()
        base.changed(sessions, sessions.sessions)
        for spool in sorted(sessions.waiting):
            base.read_to(spool, "", None, None, True)
        rows = base.rows
        rows += [
            (SUMS, msgspec.json.encode(group).decode(), msgspec.json.encode(sums).decode())
            for group, sums in metrics.groups.items()
        ]
        rows += [(LOST, msgspec.json.encode(loss).decode(), str(count)) for loss, count in metrics.losses.items()]
        if rows:
            self.files.put_instead(self._write(rows, 0, batch))

    def size(self) -> Counter[str]:
        """How many rows of each kind there are."""
        return Counter(kind for _, kind, _, _ in self._rows())

    def _rows(self) -> Iterable[tuple[int, str, str, str]]:
        log = TableLog(self.lake.folder, self.files.kind)
        names = ("batch", "kind", "key", "value")
        for file in self.files.files():
            table = log.read_file(file, names)
            yield from zip(*(table[name].to_pylist() for name in names), strict=True)

    def _write(self, rows: list[tuple[str, str, str]], first: int, last: int) -> DataFile:
        kinds, keys, values = zip(*rows, strict=True)
        columns = [[last] * len(rows), kinds, keys, values]
        table = pa.table([pa.array(column, kind) for column, kind in zip(columns, _TYPES, strict=True)], _SCHEMA)
        return self.lake.files.write_file(TABLE, table, {"watch": self.files.watch}, stem_of(first, last))


_SCHEMA = arrow_schema(TABLE)
_TYPES = _SCHEMA.types
