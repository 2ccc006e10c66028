"""The settings of a watch, its state between two batches, and what it reports of a batch.

`State` has a fixed size and stands in a row of `watches`. Sessions and sums are rows of `watched_state` (`StateLog`):
each batch adds what it changed, and now and then all that is known is written once, as a base, in place of what it was
made of. So the cost of a batch depends on its own size, and a start reads one base and the changes since.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from earshot.errors import SettingsError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles, stem_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import arrow_schema
from earshot.pipeline.watch import spool_source as source
from earshot.pipeline.watch.running_metrics import MetricSums, RunningMetrics
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.records.sessions import Session

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How a watch counts."""

    name: str = "live"
    delay_s: float = 10.0
    "How late a node's records may be, compared with the newest ones."
    patience_s: float = 30.0
    "How long after its publication an event's delivery counts."
    cell_m: float = 1000.0
    "The side of the squares in the counts by area."
    every_s: float = 2.0
    forget_s: float = 3600.0
    "A node that did not leave and wrote nothing for this long is forgotten."
    most_bytes: int = source.DEFAULT_BYTES
    "Read in one batch."
    keep_s: float | None = None
    "Rows of days that ended longer ago, compared with the newest record, are removed; None: none are."

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise SettingsError(f"a watch is named by letters, digits, '.', '-' and '_', got {self.name!r}")
        for name in ("delay_s", "patience_s", "forget_s", "most_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        if self.keep_s is not None and not DAY_S <= self.keep_s < math.inf:
            raise SettingsError(
                f"rows are removed by the day: keep them for one day at least, as in --keep 30d, not {self.keep_s:g} s"
            )
        if not 1.0 <= self.cell_m < math.inf:
            raise SettingsError(f"cell_m must be at least 1, got {self.cell_m}")

    @property
    def memory_s(self) -> float:
        """How long settled events are remembered, to know overdue deliveries."""
        return self.delay_s + self.patience_s


class State(msgspec.Struct):
    """Where a watch is, after a batch; times None: nothing was read yet. It does not grow: `StateLog` and the tables
    hold what does."""

    batch: int = -1
    watermark: float | None = None
    settled: float | None = None
    newest: float | None = None
    records: int = 0
    events: int = 0
    rejects: int = 0
    late: int = 0
    matches: int = 0
    networks: dict[str, str] = {}
    "The name of each network, by its marks."
    window: dict[int, float] = {}
    "Batches whose records may still matter, and their latest time."

    @property
    def day(self) -> str:
        """The day of the newest record, in UTC: the partition of what the batch writes."""
        return day_of(0.0 if self.newest is None else self.newest)


def day_of(time: float) -> str:
    """The date of a time, in UTC."""
    return datetime.fromtimestamp(max(0.0, time), UTC).date().isoformat()


def read_state(text: str) -> State:
    """The state as a row of `watches` holds it."""
    return msgspec.json.decode(text, type=State)


@dataclass(frozen=True, slots=True)
class Commit:
    """The results of a committed batch, for display."""

    batch: int
    counts: Mapping[str, Any]
    figures: Sequence[Mapping[str, Any]]
    losses: Sequence[Mapping[str, Any]]
    wrong: Sequence[str] = ()
    "What is wrong with the standing subscriptions since they changed."
    metrics: RunningMetrics | None = None
    "The sums behind the figures; None for a commit that was read back."
    batch_s: float = 0.0
    "How long the batch took."


Report = Callable[[Commit], None]


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
        """Forget all that is known of these spools."""
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
        sessions, metrics = WatchedSessions(networks), RunningMetrics()
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
