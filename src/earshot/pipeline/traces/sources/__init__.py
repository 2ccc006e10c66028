"""Mobility traces as Spark data sources.

`register_sources(spark)` (our own sessions do it) makes `spark.read.format("ns2-mobility").load(path)`
work, and the same for `sumo-fcd`, `bonnmotion`, `one-movement`, `gpx` and `trace-csv`. Each gives
readings: see `earshot.pipeline.traces.sources.readings`. `earshot-spool` reads what live nodes record: see
`earshot.pipeline.watch.spool_source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from earshot.errors import TraceError, UnknownName
from earshot.pipeline.traces.sources.columns import Columns, resolve, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Format:
    """A trace format as users name it."""

    name: str
    about: str
    forms: Mapping[str, str]
    "What a file of it may be (`xml`, `csv`, `parquet`, `text`) to the Spark source that reads it."
    motion: str = "samples"


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format(
            "sumo-fcd",
            "SUMO floating car data, as XML, CSV or Parquet",
            {"xml": "sumo-fcd", "csv": "trace-csv", "parquet": "parquet"},
        ),
        Format("ns2", "ns-2 and ns-3 movement files (setdest)", {"text": "ns2-mobility"}, motion="waypoints"),
        Format("bonnmotion", "BonnMotion movements", {"text": "bonnmotion"}, motion="waypoints"),
        Format("one", "The ONE's external movement", {"text": "one-movement"}),
        Format("gpx", "GPX tracks with times", {"xml": "gpx"}),
        Format(
            "csv",
            "tables with named columns, as CSV or Parquet: node, time and x, y or lat, lon",
            {"csv": "trace-csv", "parquet": "parquet"},
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Found:
    """What a trace's files are."""

    format: Format
    source: str
    geo: bool


def register_sources(session: SparkSession) -> None:
    """Let `session.read.format(...)` know our formats."""
    from earshot.pipeline.traces.sources.bonnmotion import BonnMotion
    from earshot.pipeline.traces.sources.delimited import TraceCsv
    from earshot.pipeline.traces.sources.fcd import SumoFcd
    from earshot.pipeline.traces.sources.gpx import Gpx
    from earshot.pipeline.traces.sources.ns2 import Ns2Mobility
    from earshot.pipeline.traces.sources.one import OneMovement
    from earshot.pipeline.watch.spool_source import SpoolSource

    for source in (SumoFcd, Ns2Mobility, BonnMotion, OneMovement, Gpx, TraceCsv, SpoolSource):
        session.dataSource.register(source)


def find_format(files: Sequence[str], name: str | None, options: Mapping[str, str]) -> Found:
    """The format of these files: the one named, where they can be of it, else the one they look like."""
    if name is not None and name not in FORMATS:
        raise UnknownName("trace format", name, FORMATS)
    found = [_found_one(file, name, options) for file in files]
    kinds = sorted({f"{one.format.name} ({'degrees' if one.geo else 'metres'}, {one.source})" for one in found})
    if len(kinds) > 1:
        raise TraceError(f"the files are of several kinds, {' and '.join(kinds)}; ingest them one kind at a time")
    return found[0]


def _found_one(file: str, name: str | None, options: Mapping[str, str]) -> Found:
    from earshot.pipeline.traces.sources.delimited import columns_of
    from earshot.pipeline.traces.sources.guess import guess_format

    guess = guess_format(file)
    if name is None:
        if guess is None:
            raise TraceError(f"cannot tell the format of {file}; name it with --format: {', '.join(FORMATS)}")
        name, form = guess
        if form == "parquet" and _is_sumo_parquet(file):
            name = "sumo-fcd"
    else:
        forms = FORMATS[name].forms
        form = guess[1] if guess and guess[1] in forms else next(iter(forms))
        if guess is not None and not (guess[0] == name or (guess[1] in forms and guess[1] in ("csv", "parquet"))):
            raise TraceError(f"{file} looks like {guess[0]}, not like {name}; try --format {guess[0]}")
    source = FORMATS[name].forms[form]
    geo = source == "gpx" or str(options.get("geo", "")).lower() == "true"
    if source == "trace-csv":
        geo = columns_of(file, options).geo
    elif source == "parquet":
        geo = _parquet_columns(file, options).geo
    return Found(FORMATS[name], source, geo)


def _is_sumo_parquet(file: str) -> bool:
    return any(name.replace("_", "").lower() == "timesteptime" for name in _parquet_names(file))


def _parquet_names(file: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from earshot.pipeline.traces.sources.readings import open_trace

    with open_trace(file) as stream:
        try:
            return list(pq.read_schema(stream).names)
        except pa.ArrowInvalid as error:
            raise TraceError(f"{file} is no whole Parquet file: {error}") from None


def _parquet_columns(file: str, options: Mapping[str, str]) -> Columns:
    return resolve(file, _parquet_names(file), told(options.get("columns")), options.get("geo") == "true")


def read_traces(session: SparkSession, files: Sequence[str], found: Found, options: Mapping[str, str]) -> DataFrame:
    """The files' readings, with `file_number` in the order the files were given."""
    from pyspark.sql import functions as F

    from earshot.pipeline.traces.sources.delimited import parquet_readings

    if found.source == "parquet":
        frame = parquet_readings(session, files, options)
    else:
        frame = session.read.format(found.source).options(**options).load(list(files))
    order = F.create_map(*(F.lit(part) for number, file in enumerate(files) for part in (file, number)))
    return frame.withColumn("file_number", F.coalesce(order[F.col("file")], F.lit(0)))
