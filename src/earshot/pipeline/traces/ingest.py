"""Ingest: trace files into the lake's `positions`, what is wrong with them into `rejects`.

Nothing is lost: rows read = rows kept + rows rejected, and the summary counts the rejected by reason.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from earshot.errors import TraceError
from earshot.geometry import LocalPlane
from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.spark.tasks import are_few
from earshot.pipeline.traces.motion import resampled, rows_at_steps
from earshot.pipeline.traces.plausibility import (
    FarRows,
    TraceFigures,
    TraceUnits,
    breaks_off,
    doubts_about,
    far_times,
    mostly_rejected,
    outside_globe,
    wrong_clocks,
)
from earshot.pipeline.traces.positions import REASONS, checked
from earshot.traces.files import expanded, is_address, local_path, size_of, stem
from earshot.traces.formats import FoundFormat, find_format
from earshot.traces.lake_tables import longest_gap
from earshot.traces.sightings import TraceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from earshot.pipeline.lake.lake import Lake

MAX_SPEED_M_S = 100.0
"The default: 360 km/h. Faster than vehicles and people, slower than the jump of a bad satellite fix."

ROWS_A_FILE = 250_000
BYTES_A_ROW = 20
"The size of a row of text: few rows are shorter."
BYTES_A_DENSE_ROW = 4
"The size of a row of a compressed file or of Parquet."


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """How a trace is read."""

    format: str | None = None
    "None: detected from the files."
    columns: str = ""
    "For tables: which column has which role, as in `node=bus,time=when`."
    geo: bool = False
    "x and y are longitude and latitude."
    time_format: str = ""
    "For CSV: the format of its times, in strptime's notation."
    origin: tuple[float, float] | None = None
    "Latitude and longitude of the plane's origin; None: the median of the trace's."
    max_speed_m_s: float = MAX_SPEED_M_S
    interval_s: float | None = None
    "Interpolate positions at every multiple of this time; None: keep the trace's own."
    units: str = ""
    "Settles doubts: s, ms, us, ns; m, km, cm, mm, degrees; lonlat (latitude and longitude exchanged). As in `ms,km`."
    strict: bool = False
    "Whether a doubt about the trace is an error."

    def options(self) -> dict[str, str]:
        """The options as Spark's reader takes them."""
        units = TraceUnits.of(self.units)
        given = {
            "columns": self.columns,
            "geo": "true" if self.geo or units.degrees else "",
            "timeFormat": self.time_format,
            "swapped": "true" if units.swapped else "",
            "timeFactor": repr(units.time_factor) if "time" in units.settled else "",
            "others": "true",
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """The result of an ingest."""

    trace: str
    format: str
    files: list[str]
    rows_read: int
    rows_kept: int
    rejected: dict[str, int] = field(default_factory=dict)
    positions: int = 0
    nodes: int = 0
    start: float = 0.0
    end: float = 0.0
    interval_s: float | None = None
    common_times: bool = False
    motion: str = "samples"
    origin: tuple[float, float] | None = None
    box: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    "Least x, least y, most x, most y of the positions, in metres."
    content: str = ""
    "A hash of the positions: the same for the same ones."
    doubts: list[str] = field(default_factory=list)
    "What is probably wrong with it."

    def as_json(self) -> dict[str, Any]:
        """The summary as plain values."""
        return asdict(self)


def check_files(files: Sequence[str], settings: IngestSettings) -> None:
    """Raise what is wrong with the files before Spark is started for them."""
    find_format(expanded(files), settings.format, TraceOptions.of(settings.options()))


def read_trace(session: SparkSession, files: str | Sequence[str], settings: IngestSettings | None = None) -> DataFrame:
    """The good positions of a trace's files: node, time, x_m, y_m, speed_m_s, heading_deg, file and line.

    Where the files have degrees, they are laid on a plane around their median position.
    """
    paths = expanded([files] if isinstance(files, str) else files)
    with named_errors():
        checked_rows, *_ = _checked_rows(session, paths, settings or IngestSettings())
        return checked_rows.where("reason is null").drop(
            "until", "x_m_s", "y_m_s", "gap_s", "reason", "detail", "type", "others"
        )


def ingest(
    lake: Lake, files: Sequence[str], trace: str | None = None, settings: IngestSettings | None = None
) -> IngestSummary:
    """Read the files into the lake as one trace, replacing what it had under that name."""
    settings = settings or IngestSettings()
    files = expanded(files)
    with named_errors():
        rows, sightings, found, plane = _checked_rows(lake.session, files, settings)
        rows = _kept(rows, _rows_about(files, found.form))
        try:
            name = trace or stem(files[0])
            return _written(lake, name, files, found.format.name, found.format.motion, rows, plane, settings)
        finally:
            rows.unpersist()
            sightings.unpersist()


def source_of(files: Sequence[str], settings: IngestSettings) -> str:
    """A hash of what would be read, and how: the files' names, sizes and times of change, and the settings."""
    facts: list[Any] = [asdict(replace(settings, strict=False))]
    for file in files:
        path = os.path.abspath(local_path(file))
        known = None if is_address(file) or not os.path.exists(path) else os.stat(path)
        facts.append([file if known is None else path, known and known.st_size, known and known.st_mtime_ns])
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def trace_in_lake(lake: Lake, trace: str | Sequence[str], settings: IngestSettings | None = None) -> str:
    """The name of a trace that the lake has: `trace` itself, or the name under which the files that it stands for
    are in the lake. Files that were read as they are now are not read again."""
    paths = [trace] if isinstance(trace, str) else list(trace)
    if len(paths) == 1 and lake.has("traces", trace=paths[0]):
        return paths[0]
    settings = settings or IngestSettings()
    try:
        files = expanded(paths)
    except TraceError:
        if len(paths) == 1 and not os.path.splitext(paths[0])[1] and os.sep not in paths[0]:
            lake.read("traces", trace=paths[0])  # raises an error that says which traces there are
        raise
    name = stem(paths[0])
    if lake.has("traces", trace=name):
        (row,) = lake.arrow.read("traces", trace=name).to_pylist()
        if row["source"] == source_of(files, settings):
            return name
    return ingest(lake, files, name, settings).trace


def _checked_rows(
    session: SparkSession, files: Sequence[str], settings: IngestSettings
) -> tuple[DataFrame, DataFrame, FoundFormat, LocalPlane | None]:
    """The files' rows with the reason why one is rejected, the sightings they come from, and what was found."""
    from earshot.pipeline.traces.sources import read_sightings

    options = settings.options()
    found = find_format(files, settings.format, TraceOptions.of(options))
    sightings = read_sightings(session, files, found, options, settings.format)
    if (factor := TraceUnits.of(settings.units).length_factor) != 1.0:
        sightings = sightings.withColumns({name: sightings[name] * factor for name in ("x_m", "y_m")})
    if found.form == "text" and "timeFactor" in options:
        sightings = sightings.withColumn("time", sightings["time"] * float(options["timeFactor"]))
    plane, about = None, _rows_about(files, found.form)
    if found.geo:
        sightings = _kept(sightings, about)
        plane = _plane(sightings, settings, files)
    is_table = found.form == "parquet"
    check = checked(settings.max_speed_m_s, plane, rows=about, sort_by_time=is_table)
    return sightings.transform(check), sightings, found, plane


def _kept(frame: DataFrame, rows: int | None) -> DataFrame:
    """The frame, kept for the next job that reads it. A few rows are read again as fast as they are kept."""
    return frame if are_few(rows) else frame.persist()


def _rows_about(files: Sequence[str], form: str) -> int | None:
    """About how many rows the files have, by their sizes, rather too many than too few; None where a size is not
    to be had here."""
    rows = 0
    for file in files:
        size = size_of(file)
        if size is None:
            return None
        dense = form == "parquet" or file.endswith((".gz", ".bz2", ".xz"))
        rows += size // (BYTES_A_DENSE_ROW if dense else BYTES_A_ROW)
    return rows


def _plane(sightings: DataFrame, settings: IngestSettings, files: Sequence[str]) -> LocalPlane:
    from pyspark.sql import functions as F

    if settings.origin is not None:
        return LocalPlane(*settings.origin)
    middle = sightings.where("problem is null").agg(F.median("lat_deg"), F.median("lon_deg")).first()
    if middle is None or middle[0] is None:
        raise _nothing_in(
            files, sightings.where("problem is not null").select(F.col("problem").alias("detail"), "line")
        )
    return LocalPlane(round(middle[0], 6), round(middle[1], 6))


def _written(
    lake: Lake,
    trace: str,
    files: Sequence[str],
    format_name: str,
    motion: str,
    rows: DataFrame,
    plane: LocalPlane | None,
    settings: IngestSettings,
) -> IngestSummary:
    from pyspark.sql import functions as F

    kept, rejected = rows.where("reason is null"), rows.where("reason is not null")
    by_reason = rows.groupBy("reason").agg(
        F.count("*").alias("rows"),
        F.count_distinct("node").alias("nodes"),
        F.count_distinct("time").alias("moments"),
        F.min("time").alias("start"),
        F.max("time").alias("end"),
        F.percentile_approx("gap_s", 0.5, 10_000).alias("interval_s"),
        F.percentile_approx("time", [0.25, 0.75], 1000).alias("quartiles"),
        *(F.min(name).alias(f"least_{name}") for name in ("x_m", "y_m")),
        *(F.max(name).alias(f"most_{name}") for name in ("x_m", "y_m")),
        F.bit_xor(F.xxhash64("node", "time", "x_m", "y_m")).alias("content"),
        *_speeds(plane),
    )
    found = {row["reason"]: row for row in by_reason.collect()}
    reasons = {reason: found[reason]["rows"] for reason in REASONS if reason in found}
    if None not in found:
        raise _nothing_in(files, rejected)
    seen = found[None]
    box = tuple(seen[name] for name in ("least_x_m", "least_y_m", "most_x_m", "most_y_m"))
    far = _far_rows(kept, seen)
    doubts = _doubts(
        lake, trace, files, settings, seen, box, plane, rejected if reasons.get("unparsable") else None, far
    )
    if doubt := mostly_rejected(reasons, seen["rows"], seen["nodes"], len(files)):
        doubts = [doubt, *doubts]
    if doubts and settings.strict:
        raise TraceError("; ".join(doubts))
    positions, interval_s, count = kept, seen["interval_s"], seen["rows"]
    common = motion == "samples" and _share_moments(seen)
    if settings.interval_s is not None:
        gap_s, step_s = longest_gap(motion, interval_s), settings.interval_s
        made = rows_at_steps(count, seen["nodes"], seen["end"] - seen["start"], step_s, gap_s)
        types = kept.groupBy("node").agg(F.max("type").alias("type"))
        positions = kept.transform(resampled(step_s, gap_s, rows=made)).join(types, "node").persist()
        interval_s, common, motion, count = settings.interval_s, True, "samples", positions.count()
    lake.write(_in_files(positions, count, count, "time", "node"), "positions", trace=trace)
    bad = sum(reasons.values())
    if bad:
        lake.write(_in_files(rejected, bad, seen["rows"] + bad, "file", "line"), "rejects", trace=trace)
    else:
        lake.arrow.write_rows("rejects", [], trace=trace)
    positions.unpersist()
    summary = IngestSummary(
        trace=trace,
        format=format_name,
        files=list(files),
        rows_read=seen["rows"] + bad,
        rows_kept=seen["rows"],
        rejected=reasons,
        positions=count,
        nodes=seen["nodes"],
        start=seen["start"],
        end=seen["end"],
        interval_s=interval_s,
        common_times=common,
        motion=motion,
        origin=(plane.origin_lat_deg, plane.origin_lon_deg) if plane else None,
        box=box,
        content=hashlib.sha256(f"{seen['content']} {seen['rows']} {motion} {interval_s}".encode()).hexdigest()[:16],
        doubts=doubts,
    )
    # Last: a trace exists once it has this row.
    lake.arrow.write_rows("traces", [_trace_row(summary, source_of(files, settings))], trace=trace)
    return summary


def _speeds(plane: LocalPlane | None) -> list[Any]:
    """The median speed of legs that move: from row to row, as the trace says, and with the axes exchanged."""
    from pyspark.sql import functions as F

    east, north = F.col("x_m_s"), F.col("y_m_s")
    speed = F.hypot(east, north)
    moving = (speed > 0) & (F.col("until") > F.col("time"))
    lat, lon = (math.radians(plane.origin_lat_deg), math.radians(plane.origin_lon_deg)) if plane else (0.0, 0.0)
    exchanged = F.hypot(east / max(math.cos(lat), 1e-6), north * math.cos(lon))
    named = {"speed": speed, "given_speed": F.col("speed_m_s"), "swapped_speed": exchanged}
    return [F.percentile_approx(F.when(moving, one), 0.5, 1000).alias(name) for name, one in named.items()]


def _far_rows(kept: DataFrame, seen: Any) -> FarRows | None:
    """The rows that are far from all others in time, if there are any."""
    from pyspark.sql import functions as F

    if (between := far_times(seen["start"], seen["end"], seen["quartiles"])) is None:
        return None
    far = ~F.col("time").between(*between)
    first = F.min(F.when(far, F.struct("file", "line", "node", "time"))).alias("first")
    near = F.when(~far, F.col("time"))
    (row,) = kept.agg(
        F.count_if(far).alias("count"), first, F.min(near).alias("start"), F.max(near).alias("end")
    ).collect()
    shown = row["first"]
    return FarRows(
        row["count"],
        shown["node"],
        shown["time"],
        shown["file"],
        shown["line"],
        seen["rows"] - row["count"],
        row["start"],
        row["end"],
    )


def _doubts(
    lake: Lake,
    trace: str,
    files: Sequence[str],
    settings: IngestSettings,
    seen: Any,
    box: Any,
    plane: LocalPlane | None,
    unparsable: DataFrame | None,
    far: FarRows | None,
) -> list[str]:
    clocks = wrong_clocks(far) if far else ""
    figures = TraceFigures(
        geo=plane is not None,
        nodes=seen["nodes"],
        start=far.start if far and clocks else seen["start"],
        end=far.end if far and clocks else seen["end"],
        interval_s=seen["interval_s"],
        box=box,
        speed_m_s=seen["speed"],
        given_speed_m_s=seen["given_speed"],
        swapped_speed_m_s=seen["swapped_speed"] if plane else None,
    )
    doubts = [*([clocks] if clocks else []), *doubts_about(figures, TraceUnits.of(settings.units))]
    if unparsable is not None:
        broken = unparsable.where("detail like 'the file breaks off%'").select("file").distinct().limit(5).collect()
        doubts += [breaks_off(row["file"], seen["start"], seen["end"]) for row in broken]
    if lake.has("traces", trace=trace):
        (row,) = lake.arrow.read("traces", trace=trace).to_pylist()
        if row["source"] != source_of(files, settings):
            doubts.append(
                f"this replaces the trace {trace} of {row['nodes']:,} nodes, which was read from "
                f"{', '.join(row['files'][:2])}; `earshot ingest --trace NAME` keeps both"
            )
    return doubts


def _in_files(rows: DataFrame, count: int, among: int, *order: str) -> DataFrame:
    """In order, in files of a few hundred thousand rows: a period of time is then in few files. `count` rows are
    picked from `among`: from many they are picked by all tasks, also where one file holds them."""
    files = math.ceil(count / ROWS_A_FILE)
    if files > 1:
        rows = rows.repartitionByRange(files, *order)
    else:
        rows = rows.coalesce(1) if among <= ROWS_A_FILE else rows.repartition(1)
    return rows.sortWithinPartitions(*order)


def _share_moments(seen: Any) -> bool:
    """Whether all nodes are sampled at the same moments: there are at most as many moments as intervals."""
    if not seen["interval_s"]:
        return False
    return bool(seen["moments"] <= round((seen["end"] - seen["start"]) / seen["interval_s"]) + 1)


def _trace_row(summary: IngestSummary, source: str) -> dict[str, Any]:
    lat, lon = summary.origin or (None, None)
    return {
        "format": summary.format,
        "files": summary.files,
        "motion": summary.motion,
        "nodes": summary.nodes,
        "rows": summary.positions,
        "rejected": sum(summary.rejected.values()),
        "start": summary.start,
        "end": summary.end,
        "interval_s": summary.interval_s,
        "common_times": summary.common_times,
        "origin_lat_deg": lat,
        "origin_lon_deg": lon,
        **dict(zip(("west_m", "south_m", "east_m", "north_m"), summary.box, strict=True)),
        "content": summary.content,
        "source": source,
        "doubts": summary.doubts,
    }


def _nothing_in(files: Sequence[str], rejected: DataFrame) -> TraceError:
    named = files[0] if len(files) == 1 else f"any of the {len(files)} files"
    some = rejected.orderBy("line").limit(20).collect()
    if not some:
        return TraceError(f"there are no positions in {named}: the trace is empty")
    first = some[0]
    if hint := outside_globe([row["detail"] or "" for row in some]):
        return TraceError(f"there is no good position in {named}; in line {first['line']} {first['detail']}{hint}")
    return TraceError(
        f"there is no good position in {named}; the first problem is in line {first['line']}: {first['detail']}; "
        + _what_to_do(first["detail"] or "")
    )


def _what_to_do(problem: str) -> str:
    """About a problem that all rows seem to have."""
    if problem.endswith("is not a time"):
        return (
            "write times in seconds or as 2026-03-29T08:50:00Z, or give `earshot ingest` their format, as in "
            "--time-format '%d.%m.%Y %H:%M:%S'"
        )
    return "if it is of another format, name it with --format"
