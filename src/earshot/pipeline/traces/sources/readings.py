"""Readings: what every trace format is read into, one row a sighting of a node, good or bad.

A reader loses nothing: what it cannot read is a row with a `problem`, its file and its line. Places
are metres on a plane (`x_m`, `y_m`) or degrees (`lat_deg`, `lon_deg`), whichever the trace has.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import itertools
import json
import lzma
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from earshot.errors import TraceError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = {
    "node": pa.string(),
    "time": pa.float64(),
    "x_m": pa.float64(),
    "y_m": pa.float64(),
    "lat_deg": pa.float64(),
    "lon_deg": pa.float64(),
    "speed_m_s": pa.float64(),
    "heading_deg": pa.float64(),
    "file": pa.string(),
    "line": pa.int64(),
    "problem": pa.string(),
}
SCHEMA = pa.schema(list(COLUMNS.items()))
_DDL_TYPES = {pa.string(): "string", pa.float64(): "double", pa.int64(): "bigint"}
DDL = ", ".join(f"{name} {_DDL_TYPES[kind]}" for name, kind in COLUMNS.items())
ROWS_A_BATCH = 20_000

_CUT_SHORT = (EOFError, zlib.error, lzma.LZMAError, OSError)
"What a compressed file that ends too early raises."


class Reading(NamedTuple):
    """One sighting; without a problem it has a node, a time and a place."""

    node: str | None = None
    time: float | None = None
    x_m: float | None = None
    y_m: float | None = None
    lat_deg: float | None = None
    lon_deg: float | None = None
    speed_m_s: float | None = None
    heading_deg: float | None = None
    line: int = 0
    problem: str | None = None


Parse = Callable[[IO[bytes], str, Mapping[str, str]], Iterable[Reading]]
"From an open file, its name and the source's options to readings."


def batches(file: str, readings: Iterable[Reading]) -> Iterator[pa.RecordBatch]:
    """Readings as Arrow batches."""
    rows = iter(readings)
    while some := list(itertools.islice(rows, ROWS_A_BATCH)):
        columns = dict(zip(Reading._fields, zip(*some, strict=True), strict=True))
        columns["file"] = (file,) * len(some)
        yield pa.record_batch([pa.array(columns[name], kind) for name, kind in COLUMNS.items()], schema=SCHEMA)


def number(text: str | None, what: str) -> float:
    """A finite number; ValueError says which one is none."""
    if text is None or not text.strip():
        raise ValueError(f"no {what}")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{what} {text[:40]!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value}")
    return value


def optional_number(text: str | None) -> float | None:
    """A finite number, or None: for what a trace may say beside the place."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def degrees(lat: str | None, lon: str | None) -> tuple[float, float]:
    """Latitude and longitude; ValueError where they lie outside the globe."""
    lat_deg, lon_deg = number(lat, "latitude"), number(lon, "longitude")
    if not -90.0 <= lat_deg <= 90.0:
        raise ValueError(f"latitude {lat_deg:g} is outside -90..90")
    if not -180.0 <= lon_deg <= 180.0:
        raise ValueError(f"longitude {lon_deg:g} is outside -180..180")
    return lat_deg, lon_deg


# -- files


def is_address(path: str) -> bool:
    """Whether the path names another file system than this machine's."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", path) is not None and not path.startswith("file:")


def local_path(path: str) -> str:
    """A local path, without `file:`."""
    return re.sub(r"^file:(//)?", "", path)


def stem(file: str) -> str:
    """A file's name without its folder and endings."""
    name = os.path.basename(file.rstrip("/"))
    return name.partition(".")[0] or name


def files_of(options: Mapping[str, str]) -> list[str]:
    """The files that `load(path)` or `load([paths])` names; a folder stands for the files in it."""
    given = json.loads(options["paths"]) if options.get("paths") else [options.get("path") or ""]
    return expanded(given)


def expanded(paths: Sequence[str]) -> list[str]:
    """Folders and patterns as the files they stand for; TraceError for what is not there."""
    if not paths or not all(paths):
        raise TraceError("no trace file was named")
    found: list[str] = []
    for path in paths:
        if is_address(path):
            found.append(path)
            continue
        path = local_path(path)
        if os.path.isdir(path):
            names = sorted(os.scandir(path), key=lambda entry: entry.name)
            inside = [entry.path for entry in names if entry.is_file() and not entry.name.startswith((".", "_"))]
        else:
            inside = [path] if os.path.exists(path) else sorted(glob.glob(path))
        if not inside:
            raise TraceError(f"there is no trace file {path}; check the path")
        found += inside
    return found


def open_trace(path: str, by_line: bool = False) -> IO[bytes]:
    """The file's bytes, unpacked where it is compressed (by its first bytes, not its name).

    A compressed file that was cut short ends where it can no longer be unpacked, with `by_line` after
    its last whole line; `break_in` says so afterwards.
    """
    try:
        raw = _opened(path)
        head = raw.read(6)
        raw.seek(0)
    except FileNotFoundError:
        raise TraceError(f"there is no trace file {path} (on a cluster every worker must see it)") from None
    except (OSError, pa.ArrowInvalid) as error:
        raise TraceError(f"cannot read {path}: {error}") from None
    if head.startswith(b"\x1f\x8b"):
        packed: io.BufferedIOBase = gzip.GzipFile(fileobj=raw)
    elif head.startswith(b"BZh"):
        packed = bz2.BZ2File(raw)
    elif head.startswith(b"\xfd7zXZ\x00"):
        packed = lzma.LZMAFile(raw)  # noqa: SIM115 - closed with what is returned
    else:
        return raw
    return cast(IO[bytes], io.BufferedReader(_Unpacked(raw, packed, by_line), 1 << 16))


class _Unpacked(io.RawIOBase):
    """What can be unpacked of a file, and why it ends there if it ends too early."""

    def __init__(self, raw: IO[bytes], packed: io.BufferedIOBase, by_line: bool) -> None:
        self.raw_file = raw
        self.packed = packed
        self.by_line = by_line
        self.broken: str | None = None
        self.ready = b""
        self.rest = b""
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready and not self.ended:
            self._unpack()
        size = min(len(buffer), len(self.ready))
        buffer[:size] = self.ready[:size]
        self.ready = self.ready[size:]
        return size

    def _unpack(self) -> None:
        try:
            block = self.packed.read1(1 << 16)
        except _CUT_SHORT as error:
            self.broken, self.ended = str(error), True
            return
        if not block:
            self.ready, self.ended = self.rest, True
        elif self.by_line:
            whole, line_end, self.rest = (self.rest + block).rpartition(b"\n")
            self.ready = whole + line_end
        else:
            self.ready = block

    def close(self) -> None:
        self.packed.close()
        self.raw_file.close()
        super().close()


def break_in(stream: IO[bytes]) -> str | None:
    """Why the file ended too early; None where it did not."""
    return getattr(getattr(stream, "raw", None), "broken", None)


def _opened(path: str) -> IO[bytes]:
    if not is_address(path):
        return open(local_path(path), "rb")
    from pyarrow import fs

    system, inside = fs.FileSystem.from_uri(re.sub(r"^s3[an]:", "s3:", path))
    return cast(IO[bytes], system.open_input_file(inside))


def text_lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends."""
    for count, raw in enumerate(stream, 1):
        yield count, raw.decode("utf-8", "replace").strip()


def size_of(path: str) -> int:
    """The file's bytes on disk; 0 where nobody can say."""
    try:
        return 0 if is_address(path) else os.path.getsize(local_path(path))
    except OSError:
        return 0


# -- the Spark side


@dataclass
class FilePart(InputPartition):
    """One task's share: a whole file unless a source can split it."""

    file: str
    begin: int = 0
    end: int | None = None
    first_line: int = 1


class TraceReader(DataSourceReader):
    """Reads files with a parser, one file a task."""

    def __init__(self, files: Sequence[str], parse: Parse, by_line: bool, options: Mapping[str, str]) -> None:
        self.files = list(files)
        self.parse = parse
        self.by_line = by_line
        self.options = dict(options)

    def partitions(self) -> Sequence[InputPartition]:
        return [FilePart(file) for file in self.files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePart)
        with open_trace(partition.file, self.by_line) as stream:
            yield from batches(partition.file, self._readings(stream, partition.file))

    def _readings(self, stream: IO[bytes], file: str) -> Iterator[Reading]:
        line = 0
        for reading in self.parse(stream, file, self.options):
            line = max(line, reading.line)
            yield reading
        if self.by_line and (why := break_in(stream)):
            yield Reading(line=line + 1, problem=f"the file breaks off: {why}")


class TraceSource(DataSource):
    """A trace format as a Spark data source: `spark.read.format(name).load(path)`."""

    format_name = "trace"
    by_line = True
    "Of text: a line cut short is not read. XML sees for itself where it breaks off."
    parse: Parse

    @classmethod
    def name(cls) -> str:
        return cls.format_name

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return TraceReader(files_of(self.options), type(self).parse, self.by_line, dict(self.options))
