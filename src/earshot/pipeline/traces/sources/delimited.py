"""Tables with named columns: CSV in all its spellings, and Parquet.

CSV is read by Arrow in blocks and checked a column at a time; only values that do not read are looked
at one by one. A large file that is not compressed is read by several tasks. Parquet is read by Spark
itself.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from pyspark.sql.datasource import DataSourceReader, InputPartition

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.columns import Columns, is_number, resolve, told
from earshot.pipeline.traces.sources.readings import (
    COLUMNS,
    SCHEMA,
    FilePart,
    Reading,
    TraceSource,
    batches,
    break_in,
    files_of,
    is_address,
    local_path,
    open_trace,
    stem,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SPLIT_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
MILLISECONDS_FROM = 1e11
"A time past the year 5138 in seconds is one of today in milliseconds."

Floats = np.ndarray[Any, np.dtype[np.float64]]
Texts = np.ndarray[Any, np.dtype[np.object_]]


class TraceCsv(TraceSource):
    """`spark.read.format("trace-csv").load("buses.csv")`.

    Options: `columns` ("node=bus,time=when"), `geo` (x and y are longitude and latitude), `timeFormat`
    (as strptime writes it).
    """

    format_name = "trace-csv"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _CsvReader(files_of(self.options), dict(self.options))


class _CsvReader(DataSourceReader):
    def __init__(self, files: Sequence[str], options: Mapping[str, str]) -> None:
        self.files = list(files)
        # Spark hands options on in lower case.
        self.options = {name.lower(): value for name, value in options.items()}

    def partitions(self) -> Sequence[InputPartition]:
        return [part for file in self.files for part in _parts(file)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePart)
        yield from _read_part(partition, self.options)


def _parts(file: str) -> list[FilePart]:
    """The whole file; a large plain one in pieces that begin at a line."""
    if is_address(file) or not os.path.isfile(local_path(file)) or os.path.getsize(local_path(file)) <= SPLIT_BYTES:
        return [FilePart(file)]
    parts: list[FilePart] = []
    begin, line, lines = 0, 1, 0
    with open(local_path(file), "rb") as stream:
        if stream.read(2) in (b"\x1f\x8b", b"BZ", b"\xfd7"):
            return [FilePart(file)]
        stream.seek(0)
        at = 0
        while block := stream.read(min(8 << 20, SPLIT_BYTES)):
            if at + len(block) - begin >= SPLIT_BYTES and (end := block.rfind(b"\n") + 1):
                inside = block.count(b"\n", 0, end)
                parts.append(FilePart(file, begin, at + end, line))
                begin, line, lines = at + end, line + lines + inside, block.count(b"\n") - inside
            else:
                lines += block.count(b"\n")
            at += len(block)
    if begin < at:
        parts.append(FilePart(file, begin, at, line))
    return parts


def header_of(file: str) -> tuple[list[str], str]:
    """The names in the file's first line, and what stands between them."""
    with open_trace(file) as stream:
        first = stream.readline(1 << 20).decode("utf-8-sig", "replace").strip("\r\n")
        if not first and (why := break_in(stream)):
            raise TraceError(f"{file} cannot be unpacked: {why}")
    if not first.strip():
        raise TraceError(f"{file} is empty or begins with an empty line; its first line must name the columns")
    delimiter = max(";,\t|", key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    if len(names) < 3 or all(is_number(name) for name in names if name):
        raise TraceError(
            f"{file} has no column names in its first line ({first[:60]!r}); "
            "a CSV trace begins with a line like node,time,x,y"
        )
    return names, delimiter


def columns_of(file: str, options: Mapping[str, str]) -> Columns:
    """Which of the file's columns say what."""
    names, _ = header_of(file)
    return resolve(file, names, told(options.get("columns")), _is_true(options.get("geo")))


def _is_true(text: str | None) -> bool:
    return str(text).lower() == "true"


def _read_part(part: FilePart, options: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    names, delimiter = header_of(part.file)
    columns = resolve(part.file, names, told(options.get("columns")), _is_true(options.get("geo")))
    bad: list[tuple[int, str]] = []
    lines = _Lines(part.first_line)

    def skip(row: pacsv.InvalidRow) -> str:
        lines.leave_out(row.number)
        if row.text.strip():
            bad.append((row.number, f"{row.actual_columns} values for {row.expected_columns} columns"))
        return "skip"

    keys = [f"c{i}" for i in range(len(names))]
    wanted = [keys[names.index(name)] for name in columns.used]
    with _opened_part(part) as stream:
        try:
            reader = pacsv.open_csv(
                stream,
                pacsv.ReadOptions(
                    block_size=_BLOCK_BYTES,
                    column_names=keys,
                    skip_rows=1 if part.first_line == 1 else 0,
                    use_threads=False,
                ),
                pacsv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False, invalid_row_handler=skip),
                pacsv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(keys, pa.binary()), strings_can_be_null=False
                ),
            )
            for batch in reader:
                by_name = {name: _texts(batch.column(key)) for name, key in zip(columns.used, wanted, strict=True)}
                numbers = lines.take(batch.num_rows)
                yield _checked(part.file, by_name, numbers, columns, options.get("timeformat"))
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                bad.append((lines.next, f"no CSV from here on: {error}"))
        if why := break_in(stream):
            bad.append((lines.next, f"the file breaks off: {why}"))
    yield from batches(part.file, (Reading(line=line + part.first_line - 1, problem=why) for line, why in bad))


class _Lines:
    """Which line each row stood on, rows left out by the parser counted."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.next = 2 if first == 1 else 1
        self.left_out: set[int] = set()

    def leave_out(self, number: int) -> None:
        self.left_out.add(number)

    def take(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The lines of the next `count` rows."""
        gone = sorted(number for number in self.left_out if number >= self.next)
        numbers = np.arange(self.next, self.next + count + len(gone), dtype=np.int64)
        numbers = numbers[~np.isin(numbers, gone)][:count] if gone else numbers
        if count:
            self.next = int(numbers[-1]) + 1
        return numbers + (self.first - 1)


def _opened_part(part: FilePart) -> IO[bytes]:
    if part.end is None:
        return open_trace(part.file, by_line=True)
    stream = open(local_path(part.file), "rb")  # noqa: SIM115 - closed by the caller's with
    stream.seek(part.begin)
    return cast(IO[bytes], io.BufferedReader(_Piece(stream, part.end - part.begin), 1 << 20))


class _Piece(io.RawIOBase):
    """The next so many bytes of a file."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self.stream = stream
        self.left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(min(len(buffer), self.left))
        buffer[: len(data)] = data
        self.left -= len(data)
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


def _texts(column: pa.Array) -> pa.Array:
    """Bytes as trimmed text; empty text as null. Bytes that are no UTF-8 are replaced, not refused."""
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid:
        text = pa.array([value.decode("utf-8", "replace") for value in column.to_pylist()], pa.string())
    text = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _checked(
    file: str, by_name: Mapping[str, pa.Array], lines: Any, columns: Columns, time_format: str | None
) -> pa.RecordBatch:
    """Text columns as readings, each row with its first problem."""
    count = len(lines)
    problems: Texts = np.full(count, None, dtype=object)

    def filled(role: str) -> pa.Array:
        return pc.coalesce(*(by_name[name] for name in columns.of(role)))

    node = filled("node") if columns.of("node") else pa.array([stem(file)] * count, pa.string())
    nothing = np.logical_and.reduce([pc.is_null(text).to_numpy(zero_copy_only=False) for text in by_name.values()])
    _mark(problems, nothing, lambda _: "an empty line")
    _mark(problems, pc.is_null(node).to_numpy(zero_copy_only=False), lambda _: "no node")
    time = _times(filled("time"), time_format, problems)
    values: dict[str, Any] = {"node": node, "time": time}
    across, up = columns.place
    for role, column in ((across, "lon_deg" if columns.geo else "x_m"), (up, "lat_deg" if columns.geo else "y_m")):
        text = filled(role)
        values[column], unread = _numbers(text)
        what = {"lon": "longitude", "lat": "latitude"}.get(role, role)
        _mark(problems, unread, lambda i, text=text, what=what: _said(text[i].as_py(), what))
    if columns.geo:
        for column, limit, what in (("lat_deg", 90.0, "latitude"), ("lon_deg", 180.0, "longitude")):
            place = values[column]
            with np.errstate(invalid="ignore"):
                outside = np.abs(place) > limit
            _mark(problems, outside, lambda i, p=place, w=what, m=limit: f"{w} {p[i]:g} is outside {-m:g}..{m:g}")
    if columns.of("speed"):
        values["speed_m_s"] = _numbers(filled("speed"))[0] * columns.speed_factor
    if columns.of("heading"):
        values["heading_deg"] = _numbers(filled("heading"))[0]
    values |= {"file": pa.array([file] * count, pa.string()), "line": lines, "problem": problems}
    arrays = [
        pa.array(values[name], kind, from_pandas=True) if name in values else pa.nulls(count, kind)
        for name, kind in COLUMNS.items()
    ]
    return pa.record_batch(arrays, schema=SCHEMA)


def _mark(problems: Texts, mask: Any, why: Any) -> None:
    for i in np.flatnonzero(mask):
        if problems[i] is None:
            problems[i] = why(int(i))


def _said(text: str | None, what: str) -> str:
    return f"no {what}" if text is None else f"{what} {text[:40]!r} is not a number"


def _numbers(text: pa.Array) -> tuple[Floats, Any]:
    """The texts as finite numbers, NaN for the rest, and which are the rest."""
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:
        numbers = pa.array([_number_or_none(value) for value in text.to_pylist()], pa.float64())
    values = np.array(pc.fill_null(numbers, float("nan")).to_numpy(zero_copy_only=False), dtype=np.float64)
    unread = ~np.isfinite(values)
    values[unread] = np.nan
    return values, unread


def _number_or_none(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _times(text: pa.Array, time_format: str | None, problems: Texts) -> Floats:
    """Seconds: numbers as they are (milliseconds where they are too large), dates since the epoch."""
    values, unread = (np.full(len(text), np.nan), np.ones(len(text), bool)) if time_format else _numbers(text)
    if unread.any():
        left = np.flatnonzero(unread)
        values[left] = _moments(text.take(pa.array(left)), time_format)
    with np.errstate(invalid="ignore"):
        values = np.where(np.abs(values) >= MILLISECONDS_FROM, values / 1000.0, values)
    _mark(
        problems,
        ~np.isfinite(values),
        lambda i: "no time" if text[i].as_py() is None else f"time {text[i].as_py()[:40]!r} is not a time",
    )
    return values


def _moments(text: pa.Array, time_format: str | None) -> Floats:
    """Seconds since the epoch of dates and times; NaN for what is none. Without a zone they are UTC."""
    if time_format is None:
        try:
            micros = text.cast(pa.timestamp("us")).cast(pa.int64())
            return np.array(pc.fill_null(pc.divide(micros.cast(pa.float64()), 1e6), float("nan")))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return np.array([_moment(value, time_format) for value in text.to_pylist()], dtype=np.float64)


def _moment(text: str | None, time_format: str | None) -> float:
    if text is None:
        return float("nan")
    try:
        when = datetime.strptime(text, time_format) if time_format else datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


# -- Parquet


def parquet_readings(session: SparkSession, files: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Readings of Parquet files with named columns, as SUMO writes them among others."""
    from pyspark.sql import functions as F

    frame = session.read.parquet(*files)
    columns = resolve(files[0], frame.columns, told(options.get("columns")), _is_true(options.get("geo")))
    kinds = dict(frame.dtypes)

    def number(name: str) -> Any:
        return F.col(f"`{name}`").try_cast("double")

    def seconds(name: str) -> Any:
        if kinds[name].startswith("timestamp"):
            return F.unix_micros(F.col(f"`{name}`").cast("timestamp")) / 1e6
        dated = F.unix_micros(F.col(f"`{name}`").cast("string").try_cast("timestamp")) / 1e6
        value = F.coalesce(number(name), dated)
        return F.when(F.abs(value) >= MILLISECONDS_FROM, value / 1000.0).otherwise(value)

    def first(role: str, read: Any) -> Any:
        values = [read(name) for name in columns.of(role)]
        return F.coalesce(*values) if values else F.lit(None).cast("double")

    def finite(value: Any) -> Any:
        return F.when(value.isNotNull() & ~F.isnan(value) & (F.abs(value) < float("inf")), value)

    texts = [F.nullif(F.trim(F.col(f"`{name}`").cast("string")), F.lit("")) for name in columns.of("node")]
    across, up = columns.place
    nothing = F.lit(None).cast("double")
    x, y = (finite(first(role, number)) for role in (across, up))
    out_of_bounds = (F.abs("lat_deg") > 90.0) | (F.abs("lon_deg") > 180.0)
    problem = (
        F.when(F.col("node").isNull(), "no node")
        .when(F.col("time").isNull(), "no time")
        .when(F.col("lon_deg" if columns.geo else "x_m").isNull(), f"no {across}")
        .when(F.col("lat_deg" if columns.geo else "y_m").isNull(), f"no {up}")
        .when(out_of_bounds, "latitude or longitude is outside the globe")
    )
    return frame.select(
        (F.coalesce(*texts) if texts else F.lit(stem(files[0]))).alias("node"),
        finite(first("time", seconds)).alias("time"),
        (nothing if columns.geo else x).alias("x_m"),
        (nothing if columns.geo else y).alias("y_m"),
        (y if columns.geo else nothing).alias("lat_deg"),
        (x if columns.geo else nothing).alias("lon_deg"),
        (finite(first("speed", number)) * columns.speed_factor).alias("speed_m_s"),
        finite(first("heading", number)).alias("heading_deg"),
        F.col("_metadata.file_path").alias("file"),
        (F.col("_metadata.row_index") + 1).alias("line"),
    ).withColumn("problem", problem)
