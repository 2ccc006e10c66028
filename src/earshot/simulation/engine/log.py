"""The run log: records as `earshot.records` has them, kept in columns, in memory or on disk.

The hot path appends one packed entry for each transmission and each group of receptions; node
numbers go into one flat array. When a chunk is full, its entries are expanded into columns (texts
become numbers into a dictionary) and go to memory or to the file. Memory stays bounded: one chunk,
and the metadata of a Parquet file's row groups.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from earshot.errors import UsageError
from earshot.records import COLUMNS, Kind
from earshot.simulation.media.transmission import Transmission

NOWHERE = float("nan")
KINDS = tuple(kind.value for kind in Kind)
_CODE = {kind: code for code, kind in enumerate(Kind)}
_SEND, _RECEIVE, _DROP = _CODE[Kind.SEND], _CODE[Kind.RECEIVE], _CODE[Kind.DROP]

_ENTRY = struct.Struct("<dqdd8iI")
_pack = _ENTRY.pack
_ENTRY_TYPE = np.dtype(
    [
        ("time", "<f8"),
        ("transmission", "<i8"),
        ("x_m", "<f8"),
        ("y_m", "<f8"),
        ("kind", "<i4"),
        ("packet", "<i4"),
        ("bytes", "<i4"),
        ("peer", "<i4"),
        ("event", "<i4"),
        ("subscription", "<i4"),
        ("hops", "<i4"),
        ("detail", "<i4"),
        ("rows", "<u4"),
    ]
)


class TextCodes:
    """Texts numbered in the order they came; the empty text is 0."""

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[str, int] = {"": 0}

    def code(self, text: str) -> int:
        """The text's number."""
        return self.codes.setdefault(text, len(self.codes))


class Chunk:
    """Some rows as columns: numbers as they are, texts as indexes into `words[column]`."""

    __slots__ = ("columns", "words")

    def __init__(self, columns: dict[str, npt.NDArray[Any]], words: dict[str, list[str]]) -> None:
        self.columns = columns
        self.words = words

    def __len__(self) -> int:
        return len(self.columns["time"])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row by row, with texts."""
        plain = {
            name: [self.words[name][code] for code in self.columns[name].tolist()]
            if name in self.words
            else self.columns[name].tolist()
            for name in COLUMNS
        }
        for values in zip(*plain.values(), strict=True):
            yield dict(zip(plain, values, strict=True))

    def to_arrow(self) -> Any:
        """The rows as a pyarrow record batch, texts dictionary-encoded."""
        import pyarrow as pa

        arrays = [
            pa.DictionaryArray.from_arrays(pa.array(self.columns[name]), pa.array(self.words[name], pa.string()))
            if name in self.words
            else pa.array(self.columns[name], COLUMNS[name])
            for name in COLUMNS
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema())


def arrow_schema() -> Any:
    """The log's columns as a pyarrow schema, texts dictionary-encoded."""
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([(name, text if kind == "string" else kind) for name, kind in COLUMNS.items()])


class Sink(Protocol):
    """Receives full chunks."""

    def write(self, chunk: Chunk) -> None: ...

    def close(self) -> None: ...

    def discard(self) -> None: ...


class Log:
    """One run's records.

    `Log()` keeps them in memory; `Log("run.parquet")` and `Log("run.arrow")` stream them to that
    file, under a temporary name that becomes the real one at `close()`. As a context manager it
    closes at the end, or removes the unfinished file where the run failed.

    `positions_every_s` adds the position of every live node at that interval (None: never).
    """

    keeps_transmissions = True
    "Whether the log records what is sent and received, and how busy the channel is with it."

    def __init__(
        self, path: str | Path | None = None, *, positions_every_s: float | None = None, chunk_rows: int = 1 << 17
    ) -> None:
        if positions_every_s is not None and not positions_every_s > 0:
            raise UsageError(f"positions_every_s must be a positive number of seconds, got {positions_every_s}")
        if chunk_rows < 1:
            raise UsageError(f"chunk_rows must be at least 1, got {chunk_rows}")
        self.path = None if path is None else Path(path)
        self.positions_every_s = positions_every_s
        self.rows_written = 0
        self._chunk_rows = chunk_rows
        self._kept: list[Chunk] = []
        self._sink = None if self.path is None else _sink(self.path)
        self._names: tuple[str, ...] | None = None
        self._closed = False
        self._start_chunk()

    def _start_chunk(self) -> None:
        self._entries = bytearray()
        self._nodes: list[int] = []
        self._packets, self._events, self._subscriptions, self._details = (
            TextCodes(),
            TextCodes(),
            TextCodes(),
            TextCodes(),
        )
        self._strangers = TextCodes()
        "Peers that are not nodes of the run: a machine may send to any name."

    def begin(self, names: Sequence[str]) -> None:
        """Give the nodes' names: rows refer to nodes by number. A log belongs to one run."""
        if self._names is not None:
            raise UsageError("a log belongs to one run; start another for the next")
        self._names = tuple(names)

    # Called by the engine.

    def send(self, time: float, transmission: Transmission) -> None:
        """A transmission goes on air."""
        self._nodes.append(transmission.sender)
        packets, events = self._packets.codes, self._events.codes
        peer = transmission.peer
        if peer < 0 and transmission.peer_name:
            peer = self._stranger(transmission.peer_name)
        self._entries += _pack(
            time,
            transmission.number,
            NOWHERE,
            NOWHERE,
            _SEND,
            packets.setdefault(transmission.kind.tag, len(packets)),
            transmission.bytes,
            peer,
            events.setdefault(transmission.event, len(events)),
            0,
            -1,
            0,
            1,
        )
        if len(self._nodes) >= self._chunk_rows:
            self._flush()

    def receive(
        self, time: float, transmission: Transmission, nodes: list[int], lost: str = "", detail: str = ""
    ) -> None:
        """A transmission at all nodes that receive it; with `lost`, at those that do not, and why."""
        self._nodes += nodes
        packets, events = self._packets.codes, self._events.codes
        self._entries += _pack(
            time,
            transmission.number,
            NOWHERE,
            NOWHERE,
            _DROP if lost else _RECEIVE,
            packets.setdefault(transmission.kind.tag, len(packets)),
            transmission.bytes,
            transmission.sender,
            events.setdefault(transmission.event, len(events)),
            0,
            transmission.hops,
            self._details.code(lost or detail) if lost or detail else 0,
            len(nodes),
        )
        if len(self._nodes) >= self._chunk_rows:
            self._flush()

    def row(
        self,
        kind: Kind,
        time: float,
        node: int,
        *,
        number: int = -1,
        packet: str = "",
        size: int = -1,
        peer: int | str = -1,
        event: str = "",
        subscription: str = "",
        hops: int = -1,
        detail: str = "",
        at: tuple[float, float] = (NOWHERE, NOWHERE),
    ) -> None:
        """A record of any kind."""
        self._nodes.append(node)
        self._entries += _pack(
            time,
            number,
            at[0],
            at[1],
            _CODE[kind],
            self._packets.code(packet),
            size,
            peer if isinstance(peer, int) else self._stranger(peer),
            self._events.code(event),
            self._subscriptions.code(subscription),
            hops,
            self._details.code(detail),
            1,
        )
        if len(self._nodes) >= self._chunk_rows:
            self._flush()

    def _stranger(self, name: str) -> int:
        """Numbers below -1 stand for strangers."""
        return -1 - self._strangers.code(name)

    # Reading and closing.

    def chunks(self) -> Iterator[Chunk]:
        """All rows of a log in memory."""
        if self._sink is not None:
            raise UsageError(f"this log streams to {self.path}; read it there")
        self._flush()
        yield from self._kept

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows of a log in memory, as dicts."""
        for chunk in self.chunks():
            yield from chunk.rows()

    def to_arrow(self) -> Any:
        """All rows of a log in memory, as a pyarrow table."""
        _pyarrow()
        import pyarrow as pa

        table = pa.Table.from_batches([chunk.to_arrow() for chunk in self.chunks()], arrow_schema())
        return table.unify_dictionaries()

    def close(self) -> None:
        """Write the rest; the file appears under its name."""
        if not self._closed:
            self._flush()
            self._closed = True
            if self._sink is not None:
                self._sink.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        if not self._closed:
            self._closed = True
            if self._sink is not None:
                self._sink.discard()

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _flush(self) -> None:
        if not len(self._nodes):
            return
        if self._names is None:
            raise UsageError("begin the log with the nodes' names before its first row")
        chunk = self._spread(self._names)
        self.rows_written += len(chunk)
        self._start_chunk()
        if self._sink is None:
            self._kept.append(chunk)
        else:
            self._sink.write(chunk)

    def _spread(self, names: tuple[str, ...]) -> Chunk:
        """The chunk's entries as columns, one value for each row."""
        entries = np.frombuffer(self._entries, dtype=_ENTRY_TYPE)
        rows = entries["rows"].copy()
        columns = {name: entries[name].copy().repeat(rows) for name in _ENTRY_TYPE.names or () if name != "rows"}
        nobody = len(names)
        columns["peer"] = np.where(columns["peer"] >= 0, columns["peer"], nobody - 1 - columns["peer"])
        columns["node"] = np.array(self._nodes, dtype=np.int32)
        words = {
            "node": list(names),
            "peer": [*names, "", *list(self._strangers.codes)[1:]],
            "kind": list(KINDS),
            "packet": list(self._packets.codes),
            "event": list(self._events.codes),
            "subscription": list(self._subscriptions.codes),
            "detail": [*map(str, self._details.codes)],
        }
        return Chunk(columns, words)


def _pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError('writing a log needs pyarrow: pip install "earshot[pipeline]"') from None


def _sink(path: Path) -> Sink:
    if path.suffix not in (".parquet", ".arrow"):
        raise UsageError(f"a log's name ends in .parquet or .arrow, got {path.name!r}")
    _pyarrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    return _ParquetFile(path) if path.suffix == ".parquet" else _ArrowFile(path)


class _File:
    """A file that appears under its name only when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        self._writer = self._open(str(self._draft))

    def _open(self, draft: str) -> Any:
        raise TypeError(f"{type(self).__name__} is not a file of its own")  # pragma: no cover

    def close(self) -> None:
        self._writer.close()
        self._draft.replace(self._path)

    def discard(self) -> None:
        self._writer.close()
        self._draft.unlink(missing_ok=True)


class _ParquetFile(_File):
    def _open(self, draft: str) -> Any:
        import pyarrow.parquet as pq

        texts = [name for name, kind in COLUMNS.items() if kind == "string"]
        # Readers skip row groups by time; statistics of other columns would only cost time.
        return pq.ParquetWriter(
            draft, arrow_schema(), compression="zstd", use_dictionary=texts, write_statistics=["time"]
        )

    def write(self, chunk: Chunk) -> None:
        self._writer.write_batch(chunk.to_arrow())


class _ArrowFile(_File):
    """Arrow's file format allows one dictionary per column for the whole file; plain texts keep memory bounded."""

    def _open(self, draft: str) -> Any:
        import pyarrow as pa

        self._schema = pa.schema(list(COLUMNS.items()))
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        return pa.ipc.new_file(draft, self._schema, options=options)

    def write(self, chunk: Chunk) -> None:
        self._writer.write_batch(chunk.to_arrow().cast(self._schema))
