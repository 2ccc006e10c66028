"""Mobility traces as Spark data sources: `earshot.traces` parses, one file or piece of a file a task.

`spark.read.format("ns2-mobility").load(path)` and the same for `sumo-fcd`, `bonnmotion`,
`one-movement`, `gpx` and `trace-csv` give sightings, good and bad (see `earshot.traces.sightings`).
Options: `columns` ("node=bus,time=when"), `geo` (x and y are longitude and latitude), `timeFormat`
(strptime's notation), `others` (true: keep what else each row says, as JSON).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from earshot.pipeline.spark.tasks import rows_of_items
from earshot.plugins import Plugin, install, shipment
from earshot.traces.files import FilePiece, expanded, is_address, local_path, opened, size_of
from earshot.traces.formats import FORMATS, FoundFormat, sightings_in, trace_format
from earshot.traces.sightings import NUMBERS, Sightings, TraceOptions
from earshot.traces.tables import TableColumns, checked_arrow, find_columns, parse_csv
from earshot.traces.xml_formats import header_of, says_geo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SPLIT_BYTES = 64 << 20
"A larger CSV file that is not compressed is read by several tasks."
_COMPRESSED = (b"\x1f\x8b", b"BZ", b"\xfd7")

_DATES = ("DateType", "TimestampNTZType", "TimestampType", "TimeType")
_PLAIN = (
    *(types.BooleanType, types.NumericType, types.StringType),
    *(getattr(types, name) for name in _DATES if hasattr(types, name)),  # Spark 4.0 has no TimeType
)
"Columns of Parquet files whose values are texts of a few characters."

DDL = ", ".join(
    [
        "node string",
        *(f"{name} double" for name in NUMBERS),
        *("file string", "line bigint", "problem string", "type string", "others string"),
    ]
)
_SCHEMA = pa.schema(
    [
        ("node", pa.string()),
        *((name, pa.float64()) for name in NUMBERS),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("problem", pa.string()),
        ("type", pa.string()),
        ("others", pa.string()),
    ]
)


def _batch(file: str, block: Sightings) -> pa.RecordBatch:
    """A block of sightings as Arrow; unknown numbers are null."""
    numbers = [pa.array(block.number(name), pa.float64(), from_pandas=True) for name in NUMBERS]
    node, problem = (pa.array(texts, pa.string()) for texts in (block.node, block.problem))
    files = pa.repeat(pa.scalar(file, pa.string()), len(block.node))
    texts = (
        pa.nulls(len(block.node), pa.string()) if some is None else pa.array(some, pa.string())
        for some in (block.type, block.others)
    )
    return pa.record_batch([node, *numbers, files, pa.array(block.line), problem, *texts], schema=_SCHEMA)


@dataclass
class FilePart(InputPartition):
    """One task's share: a whole file, or a piece of it that begins at a line."""

    file: str
    begin: int = 0
    end: int | None = None
    first_line: int = 1


class TraceReader(DataSourceReader):
    """Reads the files of one format."""

    def __init__(self, files: Sequence[str], found: FoundFormat, options: TraceOptions) -> None:
        self.files = list(files)
        self.found = found
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        if self.found.form == "csv":
            return [part for file in self.files for part in csv_parts(file)]
        return [FilePart(file) for file in self.files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePart)
        file = partition.file
        if partition.end is None:
            for block in sightings_in(file, self.found, self.options):
                yield _batch(file, block)
            return
        piece = FilePiece(file, partition.begin, partition.end)
        with io.BufferedReader(piece, 1 << 20) as stream:
            for block in parse_csv(stream, file, self.options, partition.first_line):
                yield _batch(file, block)


def csv_parts(file: str) -> list[FilePart]:
    """The whole file; a large plain one in pieces that begin at a line."""
    if (size_of(file) or 0) <= SPLIT_BYTES:
        return [FilePart(file)]
    parts: list[FilePart] = []
    begin, line, lines = 0, 1, 0
    with opened(file) as stream:
        if stream.read(2) in _COMPRESSED:
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


class TraceSource(DataSource):
    """A trace format as a Spark data source."""

    source_name: str
    format_name: str
    form: str

    @classmethod
    def name(cls) -> str:
        return cls.source_name

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        paths = self.options.get("paths")  # of load([...]); `path` is load("...")'s
        files = expanded(json.loads(paths) if paths else [self.options.get("path") or ""])
        geo = self.format_name == "sumo-fcd" and any(says_geo(header_of(file)) for file in files[:1])
        found = FoundFormat(FORMATS[self.format_name], self.form, geo)
        return TraceReader(files, found, TraceOptions.of(self.options))


class SumoFcd(TraceSource):
    source_name, format_name, form = "sumo-fcd", "sumo-fcd", "xml"


class Ns2Mobility(TraceSource):
    source_name, format_name, form = "ns2-mobility", "ns2", "text"


class BonnMotion(TraceSource):
    source_name, format_name, form = "bonnmotion", "bonnmotion", "text"


class OneMovement(TraceSource):
    source_name, format_name, form = "one-movement", "one", "text"


class Gpx(TraceSource):
    source_name, format_name, form = "gpx", "gpx", "xml"


class TraceCsv(TraceSource):
    source_name, format_name, form = "trace-csv", "csv", "csv"


TRACE_SOURCES: tuple[type[TraceSource], ...] = (SumoFcd, Ns2Mobility, BonnMotion, OneMovement, Gpx, TraceCsv)


def read_sightings(
    session: SparkSession,
    files: Sequence[str],
    found: FoundFormat,
    options: Mapping[str, str],
    format_name: str | None = None,
) -> DataFrame:
    """The files' sightings, with `file_number` in the order the files were given.

    `format_name` is the name by which a format that is a plug-in is loaded. Local files are named by their
    absolute paths: Spark's processes may run in another folder.
    """
    from pyspark.sql import functions as F

    files = [file if is_address(file) else os.path.abspath(local_path(file)) for file in files]
    if found.format.name not in FORMATS or FORMATS[found.format.name] is not found.format:
        name = format_name or found.format.name
        read = partial(_parse_file, shipment(), name, found.geo, TraceOptions.of(options))
        frame = rows_of_items(session, files, read, DDL)
    elif found.form == "parquet":
        frame = _parquet_sightings(session, files, TraceOptions.of(options))
    else:
        name = "csv" if found.form == "csv" else found.format.name
        form = next(source for source in TRACE_SOURCES if source.format_name == name).form
        reader = TraceReader(files, FoundFormat(FORMATS[name], form, geo=False), TraceOptions.of(options))
        # As the data source would, without the Python processes in which Spark plans one.
        frame = rows_of_items(session, list(reader.partitions()), reader.read, DDL)
    order = F.create_map(*(F.lit(part) for number, file in enumerate(files) for part in (file, number)))
    return frame.withColumn("file_number", F.coalesce(order[F.col("file")], F.lit(0)))


def _parse_file(
    plugins: tuple[Plugin, ...], format_name: str, geo: bool, options: TraceOptions, file: str
) -> Iterator[pa.RecordBatch]:
    """In a task: a file in a format that is a plug-in, whose code comes along."""
    install(plugins)
    format = trace_format(format_name)
    for block in sightings_in(file, FoundFormat(format, format.forms[0], geo), options):
        yield _batch(file, block)


def _parquet_sightings(session: SparkSession, files: Sequence[str], options: TraceOptions) -> DataFrame:
    """Sightings of Parquet files with named columns. Spark reads them; tasks check the columns."""
    from pyspark.sql import functions as F

    frame = session.read.parquet(*files)
    columns = find_columns(files[0], frame.columns, options)
    plain = {field.name for field in frame.schema if isinstance(field.dataType, _PLAIN)}
    columns = replace(columns, others=tuple(name for name in columns.others if name in plain))
    used = [F.col(f"`{name}`") for name in columns.used]
    used += [F.col(f"`{name}`").cast("string").alias(name) for name in columns.others]
    place = [F.col("_metadata.file_path").alias("file path"), (F.col("_metadata.row_index") + 1).alias("row number")]
    return frame.select(*used, *place).mapInArrow(partial(_check_parquet, columns, options.time_format), DDL)


def _check_parquet(
    columns: TableColumns, time_format: str | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: rows of Parquet files to sightings."""
    for batch in batches:
        for address in batch.column("file path").unique().to_pylist():
            rows = batch.filter(pc.equal(batch.column("file path"), address))
            file = local_path(unquote(address)) if address.startswith("file:") else address
            lines = rows.column("row number").to_numpy()
            yield _batch(file, checked_arrow(file, rows, lines, columns, time_format))
