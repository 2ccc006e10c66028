"""Spools of live nodes as a Spark data source, for batches and for streams.

`spark.read.format("earshot-spool").load(folder)` gives every record there is, and
`spark.readStream` follows them as they are written, segments that still grow included. A reader
loses nothing: a line that is not a record is a row with a `problem`, its file and its byte. After the
records of a session one row without a kind sums them up (`detail`, a `SessionSum`) and says whether
`more` of the session was waiting when the batch was cut.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from earshot.errors import EarshotError
from earshot.events import Event
from earshot.filters import Filter
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.watch.spool_segments import (
    Found,
    Offsets,
    Piece,
    Positions,
    advance,
    check_folders,
    find_all,
    open_segment,
    pieces_between,
    quiet_sessions,
    without,
)
from earshot.records import COLUMNS, Kind, Record
from earshot.records.details import read_join, read_subscribe

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "earshot-spool"
FOLDERS, MOST_BYTES, TASKS, ENDED = "folders", "mostBytes", "tasks", "ended"
DEFAULT_BYTES = 64 << 20
FUTURE_S = 86_400.0
"A record dated later than tomorrow comes from a broken clock: it would make all others late."

_ARROW = {"float64": pa.float64(), "int64": pa.int64(), "int32": pa.int32(), "string": pa.string()}
_SQL = {"float64": "double", "int64": "bigint", "int32": "int", "string": "string"}
_OWN = {"life": "string", "file": "string", "at_byte": "bigint", "problem": "string", "more": "boolean"}
_OWN_ARROW = {"string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_()}
DDL = ", ".join(
    f"`{name}` {kind}" for name, kind in (_OWN | {name: _SQL[kind] for name, kind in COLUMNS.items()}).items()
)
SCHEMA = pa.schema(
    [(name, _OWN_ARROW[kind]) for name, kind in _OWN.items()] + [(name, _ARROW[kind]) for name, kind in COLUMNS.items()]
)
ENDED_AFTER_S = 3600.0
CLOSED_AFTER_S = 60.0
"""A session that was read to its end counts as ended when its segments did not change for this long; the second where
they are all closed."""
LOOK_FOR_ENDED_S = 60.0
ROWS_A_BATCH = 20_000

_decoder = msgspec.json.Decoder(Record)
_KINDS = frozenset(Kind)
_NUMBERS = tuple(name for name, kind in COLUMNS.items() if kind == "float64" and name != "time")


def problem_of(line: Record, latest: float) -> str | None:
    """What is wrong with a record that could be read; None for a good one."""
    if line.kind not in _KINDS:
        return f"no kind of record: {line.kind!r}"
    if not line.node:
        return "a record without its node"
    if not math.isfinite(line.time) or line.time > latest:
        return f"a time in the future: {line.time:g}"
    try:
        match line.kind:
            case Kind.PUBLISH:
                if Event.from_json(line.detail).id != line.event:
                    return "the event is another than the record's"
            case Kind.SUBSCRIBE:
                Filter.parse(read_subscribe(line.detail).filter)
            case Kind.JOIN:
                if not read_join(line.detail).protocol:
                    return "a start without its protocol"
    except (EarshotError, ValueError, KeyError, TypeError, RecursionError) as error:
        return f"{line.kind}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return None


def rows_of(piece: Piece, latest: float) -> Iterator[tuple[Any, ...]]:
    """(session, file, at_byte, problem, more, record or None) for each line of a piece."""
    if not piece.path:
        yield piece.session, piece.session, 0, f"segment {piece.number} and those up to the next are gone", None, None
        return
    try:
        file = open_segment(Path(piece.path))
    except OSError as error:
        yield piece.session, piece.path, piece.start, f"the segment cannot be read: {error.strerror}", None, None
        return
    with file:
        file.seek(piece.start)
        at = piece.start
        while piece.end is None or at < piece.end:
            text = file.readline()
            if not text.endswith(b"\n"):
                if piece.end is not None:
                    yield piece.session, piece.path, at, "the segment is shorter than it was", None, None
                break
            try:
                line = _decoder.decode(text)
                problem = problem_of(line, latest)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                line, problem = None, f"not a record: {error}"
            yield piece.session, piece.path, at, problem, None, line if problem is None else None
            at += len(text)


_NO_RECORD = Record(math.nan, "", "")


def arrow_batches(rows: Iterator[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """What `rows_of` gives, in the source's columns; unknown numbers are NaN, as in every log."""
    while some := list(itertools.islice(rows, ROWS_A_BATCH)):
        sessions, files, bytes_, problems, more, lines = zip(*some, strict=True)
        records = [line or _NO_RECORD for line in lines]
        columns: dict[str, Any] = {
            "life": sessions,
            "file": files,
            "at_byte": bytes_,
            "problem": problems,
            "more": more,
        }
        columns |= {name: [getattr(line, name) for line in records] for name in COLUMNS}
        for name in _NUMBERS:
            columns[name] = [math.nan if value is None else value for value in columns[name]]
        yield pa.record_batch([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


class SessionSum(msgspec.Struct):
    """The sums over a session's records in one batch; times None where there are none."""

    node: str = ""
    first: float | None = None
    last: float | None = None
    records: int = 0
    rejects: int = 0
    publications: int = 0

    def add(self, line: Record | None) -> None:
        """Add one record; None: a line that is not a record."""
        if line is None:
            self.rejects += 1
            return
        self.node = line.node
        self.first = line.time if self.first is None else min(self.first, line.time)
        self.last = line.time if self.last is None else max(self.last, line.time)
        self.records += 1
        self.publications += line.kind == Kind.PUBLISH


@dataclass
class Share(InputPartition):
    """What one task reads: pieces of some sessions, and whether there was more of each."""

    sessions: list[tuple[str, bool, list[Piece]]]


def shares(start: Offsets, end: Offsets, tasks: int, ended: Positions | None = None) -> list[Share]:
    """The pieces between two offsets, spread over the tasks; a session stays together."""
    work = [(name, until.more, pieces) for name, until, pieces in pieces_between(start, end, ended)]
    work.sort(key=lambda session: (-sum((piece.end or 0) - piece.start for piece in session[2]), session[0]))
    dealt: list[list[tuple[str, bool, list[Piece]]]] = [[] for _ in range(max(1, tasks))]
    for number, session in enumerate(work):
        dealt[number % len(dealt)].append(session)
    return [Share(sessions) for sessions in dealt if sessions]


def read_share(share: Share) -> Iterator[pa.RecordBatch]:
    """A task's work."""
    latest = time.time() + FUTURE_S

    def rows() -> Iterator[tuple[Any, ...]]:
        for name, more, pieces in share.sessions:
            whole = SessionSum()
            for piece in pieces:
                for row in rows_of(piece, latest):
                    whole.add(row[-1])
                    yield row
            yield name, name, 0, None, more, Record(math.nan, "", "", detail=msgspec.json.encode(whole).decode())

    return arrow_batches(rows())


class EndedSessions:
    """How far the sessions were read that are over, in a file of their own: offsets are written with every batch, and
    hold only sessions that may go on. One that does go on is read from where it was."""

    def __init__(self, root: str, name: str) -> None:
        self._folder, self._name = Folder(root), name
        self._known: Offsets | None = None
        self._looked_at = -math.inf

    @property
    def positions(self) -> Offsets:
        """By folder and session."""
        if self._known is None:
            found = self._folder.read(self._name) if self._name else None
            self._known = json.loads(found) if found else {}
        return self._known

    def move(self, start: Offsets, end: Offsets, found: dict[str, Found]) -> Offsets:
        """The end's offsets without the sessions that are over; these are in the file then."""
        now = time.time()
        if not self._name or now - self._looked_at < LOOK_FOR_ENDED_S:
            return end
        self._looked_at = now
        quiet = quiet_sessions(start, end, found, now - ENDED_AFTER_S, now - CLOSED_AFTER_S)
        if not quiet:
            return end
        for folder, sessions in quiet.items():
            self.positions.setdefault(folder, {}).update(sessions)
        # Before the offsets without them are written: a session is in one of the two, or in both.
        self._folder.write(self._name, json.dumps(self.positions).encode())
        return without(end, quiet)


class SpoolReader(DataSourceReader):
    """Reads all records that are there now."""

    def __init__(self, folders: Sequence[str], tasks: int) -> None:
        self.folders = check_folders(folders, may_be_empty=False)
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return shares({}, advance({}, find_all(self.folders), None), self.tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return read_share(partition)


class SpoolStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads all records that are there and those that are added later; offsets are the read positions of sessions."""

    def __init__(self, folders: Sequence[str], tasks: int, most_bytes: int, ended: Sequence[str] = ("", "")) -> None:
        self.folders = check_folders(folders, may_be_empty=True)
        self.ended = EndedSessions(*ended)
        self.tasks = tasks
        self.most_bytes = most_bytes
        self.all_there_is: dict[str, Found] | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self.most_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self.all_there_is = find_all(self.folders)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        found = find_all(self.folders) if self.all_there_is is None else self.all_there_is
        most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        end = advance(start, found, most_bytes, self.ended.positions)
        # Spark makes no batch where the offsets are what they were.
        return end if end == start else self.ended.move(start, end, found)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Share]:
        return shares(start, end, self.tasks, self.ended.positions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return read_share(partition)


class SpoolSource(DataSource):
    """`spark.read` or `spark.readStream`, `.format("earshot-spool")`, with the folders as a JSON list."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return SpoolReader(self._folders(), self._tasks())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        most_bytes = int(self.options.get(MOST_BYTES, DEFAULT_BYTES))
        return SpoolStreamReader(
            self._folders(), self._tasks(), most_bytes, json.loads(self.options.get(ENDED, '["", ""]'))
        )

    def _folders(self) -> list[str]:
        if FOLDERS in self.options:
            return list(json.loads(self.options[FOLDERS]))
        return [self.options["path"]] if "path" in self.options else []

    def _tasks(self) -> int:
        return int(self.options.get(TASKS, 2))
