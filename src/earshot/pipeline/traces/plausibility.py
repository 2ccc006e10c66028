"""Plausibility: sentences about what is probably wrong with a trace that can be read.

Each doubt is a sentence that says what was found, what it may mean, and which option settles it. `ingest` prints
and records them; with --strict a doubt is an error, and nothing is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from earshot.errors import TraceError
from earshot.traces.xml_formats import header_of

EARTH_M = 40_075_000.0
"The circumference."
FEW_METRES = 20.0
DEGREE_M = EARTH_M / 360.0
"Of latitude."
SOUND_M_S = 340.0
"Nodes of a trace are slower than this."
SLOW_M_S = 0.05
"Vehicles and people that move are faster than this."
DAY_S = 86_400.0
FAR_SPANS = 10.0
"A row is far from the others in time if it lies this many times the span of their middle half away, and a day."
FEW_ROWS = 0.05
"The share of a trace's rows up to which rows that are far from the others are probably wrong."
DATES_FROM_S = 1e8
"Later times are shown as dates: they count since the epoch."
YEAR_2200_S = 7_258_118_400.0
MOST_DATE_S = 253_402_300_800.0
"The year 10000."
TIMES: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
LENGTHS: Mapping[str, float] = {"m": 1.0, "km": 1000.0, "cm": 0.01, "mm": 0.001}
UNITS = (*TIMES, *LENGTHS, "degrees", "lonlat")


@dataclass(frozen=True, slots=True)
class TraceUnits:
    """What a user says about a trace's units."""

    time_factor: float = 1.0
    length_factor: float = 1.0
    degrees: bool = False
    "x and y are longitude and latitude."
    swapped: bool = False
    "Latitude and longitude stand in each other's columns."
    settled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> TraceUnits:
        """`ms,km` as units; TraceError for anything else."""
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in UNITS:
                raise TraceError(f"there is no unit {name!r}; there are: {', '.join(UNITS)}")
        times, lengths = [n for n in names if n in TIMES], [n for n in names if n in LENGTHS]
        if len(times) > 1 or len(lengths) + ("degrees" in names) > 1:
            raise TraceError(f"units {text!r} contradict each other: name one for times and one for places")
        settled = ({"time"} if times else set()) | ({"place"} if lengths or "degrees" in names else set())
        return cls(
            TIMES[times[0]] if times else 1.0,
            LENGTHS[lengths[0]] if lengths else 1.0,
            "degrees" in names,
            "lonlat" in names,
            frozenset(settled | ({"order"} if "lonlat" in names else set())),
        )


@dataclass(frozen=True, slots=True)
class TraceFigures:
    """What the doubts are about."""

    geo: bool
    nodes: int
    start: float
    end: float
    interval_s: float | None
    box: tuple[float, float, float, float]
    speed_m_s: float | None
    "The median of what nodes that move need from row to row."
    given_speed_m_s: float | None = None
    "The median of the trace's own speeds in these rows, where it has any."
    swapped_speed_m_s: float | None = None
    "As `speed_m_s`, with latitude and longitude exchanged."

    @property
    def width_m(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def height_m(self) -> float:
        return self.box[3] - self.box[1]


@dataclass(frozen=True, slots=True)
class FarRows:
    """A few rows that lie far from all others in time, and the range of the others."""

    count: int
    node: str
    "Of the first of them, as are time, file and line."
    time: float
    file: str
    line: int
    others: int
    start: float
    end: float


def far_times(start: float, end: float, quartiles: Sequence[float]) -> tuple[float, float] | None:
    """The times between which a trace's rows are expected, by the quartiles of their times; None where all of them,
    from `start` to `end`, lie between."""
    far_s = max(FAR_SPANS * (quartiles[1] - quartiles[0]), DAY_S)
    least, most = quartiles[0] - far_s, quartiles[1] + far_s
    return None if least <= start and end <= most else (least, most)


def wrong_clocks(far: FarRows) -> str:
    """The doubt about rows that are far from all others in time; empty where they are many."""
    if far.count > max(1.0, FEW_ROWS * (far.count + far.others)):
        return ""
    lies, its, first = ("lies", "its", "") if far.count == 1 else ("lie", "their", "first ")
    return (
        f"{far.count:,} of {far.count + far.others:,} rows {lies} far from all others in time: {first}node {far.node} "
        f"at {as_date(far.time)} ({far.file}, line {far.line}); all others lie between {as_date(far.start)} and "
        f"{as_date(far.end)}; {its} clock may have been wrong: correct or remove {'it' if far.count == 1 else 'them'}"
    )


def as_date(time_s: float) -> str:
    """A time of a trace in words: a date where it counts since the epoch, otherwise seconds."""
    if DATES_FROM_S <= time_s < MOST_DATE_S:
        return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{time_s:.12g} s"


def as_span(start_s: float, end_s: float) -> str:
    """A part of a trace in words: dates where its times count since the epoch, otherwise seconds."""
    if not DATES_FROM_S <= start_s <= end_s < MOST_DATE_S:
        return f"{round(start_s, 1):.12g} to {round(end_s, 1):.12g} s"
    start, end = as_date(round(start_s)), as_date(round(end_s))
    day, _, clock = end.partition(" ")
    return f"{start} to {clock if start.startswith(day) else end} UTC"


def doubts_about(found: TraceFigures, units: TraceUnits) -> list[str]:
    """What is implausible, the likeliest reason first."""
    doubts: list[str] = []
    extent = max(found.width_m, found.height_m)
    shape = f"{found.width_m:,.3g} x {found.height_m:,.3g} m"
    slow = found.speed_m_s is not None and 0 < found.speed_m_s < SLOW_M_S
    in_kilometres = ""
    if "place" not in units.settled:
        if not found.geo and extent < 5.0 and (in_kilometres := _kilometres(found)):
            doubts.append(
                f"x and y look like kilometres: all positions lie within {shape}, and {in_kilometres}; read them with "
                "--units km, or settle it with --units m or --units degrees"
            )
        elif not found.geo and extent < 5.0 and _could_be_degrees(found.box) and (slow or found.nodes > 2):
            doubts.append(
                f"x and y look like degrees: all positions lie within {shape}, from {found.box[0]:g} to "
                f"{found.box[2]:g} and from {found.box[1]:g} to {found.box[3]:g}; read them with --units degrees, or "
                "settle it with --units km or --units m"
            )
        elif extent < FEW_METRES and found.nodes > 1:
            doubts.append(
                f"all positions of {found.nodes:,} nodes lie within {shape}: they may be kilometres or degrees; "
                "settle it with --units km, --units degrees or --units m"
            )
        if not found.geo and extent > EARTH_M:
            doubts.append(
                f"the positions extend over {extent / 1000:,.0f} km, more than the earth's circumference: they may be "
                "centimetres or millimetres; settle it with --units cm, --units mm or --units m"
            )
    if "time" not in units.settled and not in_kilometres and (why := _milliseconds(found)):
        doubts.append(f"times look like milliseconds: {why}; read them with --units ms, or settle it with --units s")
    if "time" not in units.settled and found.end >= YEAR_2200_S:
        doubts.append(
            f"times reach until {as_date(found.end)}, after the year 2200: their unit may be another, or they may not "
            "count since 1970; settle it with --units s, ms, us or ns"
        )
    if found.geo and "order" not in units.settled and (why := _swapped(found)):
        doubts.append(f"latitude and longitude look swapped: {why}; read them with --units lonlat")
    return doubts


def _could_be_degrees(box: Sequence[float]) -> bool:
    return abs(box[0]) <= 180 and abs(box[2]) <= 180 and abs(box[1]) <= 90 and abs(box[3]) <= 90 and any(box)


def _kilometres(found: TraceFigures) -> str:
    """Why x and y are rather kilometres than degrees or metres, by how fast nodes move; empty where they are not."""
    per_s = found.speed_m_s
    if not per_s or per_s >= SLOW_M_S or DEGREE_M * per_s < SOUND_M_S:
        return ""
    return f"from row to row nodes would move at {1000.0 * per_s:.1f} m/s (as degrees at {DEGREE_M * per_s:,.0f} m/s)"


def _milliseconds(found: TraceFigures) -> str:
    given, needed = found.given_speed_m_s, found.speed_m_s
    if given and needed and 300 < given / needed < 3000:
        return f"the trace's own speeds ({given:.1f} m/s) are about 1000 times those from row to row ({needed:.3g} m/s)"
    if needed and found.interval_s and found.interval_s >= 100 and 0 < needed < SLOW_M_S:
        return f"rows are {found.interval_s:g} s apart, and a node that moves takes {1 / needed:,.0f} s for a metre"
    return ""


def _swapped(found: TraceFigures) -> str:
    given, needed, swapped = found.given_speed_m_s, found.speed_m_s, found.swapped_speed_m_s
    if not given or not needed or not swapped:
        return ""
    off, off_swapped = abs(math.log(needed / given)), abs(math.log(swapped / given))
    if off > 0.1 and off_swapped < off / 3.0:
        return (
            f"from row to row nodes move at {needed:.1f} m/s (median), exchanged at {swapped:.1f} m/s, and the trace's "
            f"own speeds say {given:.1f} m/s"
        )
    return ""


def outside_globe(problems: Sequence[str]) -> str:
    """The hint for a trace whose rows are all refused because their latitudes lie outside -90..90."""
    if problems and all(re.match(r"latitude \S+ is outside", one) for one in problems):
        return "; latitude and longitude may be swapped: --units lonlat"
    return ""


def mostly_rejected(rejected: Mapping[str, int], kept: int, nodes: int, files: int) -> str:
    """What a trace says of which more than half is rejected; empty for another."""
    bad = sum(rejected.values())
    if bad <= kept:
        return ""
    if 2 * rejected.get("duplicate", 0) > bad and nodes <= files:
        return (
            f"{rejected['duplicate']:,} of {kept + bad:,} rows have the time of another row of the same node: no "
            "column says which node a row is about, so each file counts as one node; name it with --columns node=NAME"
        )
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in rejected.items())
    return f"{bad:,} of {kept + bad:,} rows are rejected ({reasons}): the table `rejects` says why, row by row"


def breaks_off(file: str, start: float, last: float) -> str:
    """How much of a file that ends too early is missing."""
    try:
        end = float(header_of(file).get("end", "nan"))
    except (TraceError, OSError, ValueError):
        end = math.nan
    if end > last:
        missing = end - last
        return (
            f"{file} breaks off: it should last until {end:g} s and ends at {last:g} s, so {missing:,.0f} s "
            f"({missing / max(end - start, 1e-9):.0%} of the span) are missing"
        )
    return f"{file} breaks off at {last:.12g} s; how much is missing is not known"
