"""The trace formats: their names, how a file's first bytes show its format, and one reader for all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError
from earshot.plugins import PluginError, named
from earshot.traces.files import break_in, expanded, open_trace
from earshot.traces.sightings import Floats, Parse, Sighting, Sightings, TraceOptions, in_blocks, is_number
from earshot.traces.tables import csv_header, find_columns, parquet_columns, parse_csv, parse_parquet, plain
from earshot.traces.text_formats import parse_bonnmotion, parse_ns2, parse_one
from earshot.traces.xml_formats import header_of, parse_fcd, parse_gpx, says_geo

_HEAD_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A trace format as users name it."""

    name: str
    about: str
    forms: tuple[str, ...]
    "What a file of it may be: `xml`, `text`, `csv` or `parquet`."
    parse: Parse | None = None
    "Reads its `xml` or `text`; tables have readers of their own."
    motion: str = "samples"
    "`samples`, or `waypoints`: the node moves straight from row to row, also over a long time."


FORMATS: dict[str, TraceFormat] = {
    form.name: form
    for form in (
        TraceFormat("sumo-fcd", "SUMO floating car data, as XML, CSV or Parquet", ("xml", "csv", "parquet"), parse_fcd),
        TraceFormat("ns2", "ns-2 and ns-3 movement files (setdest)", ("text",), parse_ns2, "waypoints"),
        TraceFormat("bonnmotion", "BonnMotion movements", ("text",), parse_bonnmotion, "waypoints"),
        TraceFormat("one", "The ONE's external movement", ("text",), parse_one),
        TraceFormat("gpx", "GPX tracks with times", ("xml",), parse_gpx),
        TraceFormat(
            "csv", "tables with named columns, as CSV or Parquet: node, time and x, y or lat, lon", ("csv", "parquet")
        ),
    )
}


def trace_format(name: str) -> TraceFormat:
    """The format with this name: one of ours, or a plug-in that is a `TraceFormat`."""
    return named("traces", name, FORMATS, _checked)


def _checked(name: str, value: object) -> TraceFormat:
    if not isinstance(value, TraceFormat) or value.parse is None:
        raise PluginError(f"{name} is not a trace format: write NAME = TraceFormat(..., parse=...)")
    if value.forms not in (("text",), ("xml",)):
        raise PluginError(f'{name}: forms must be ("text",) or ("xml",), got {value.forms}')
    return value


class FoundFormat(NamedTuple):
    """The format of a trace's files, and their form."""

    format: TraceFormat
    form: str
    geo: bool


def find_format(files: Sequence[str], name: str | None, options: TraceOptions) -> FoundFormat:
    """The format of these files: the format `name`, if the files can have it; without a name, what they look like."""
    if name is not None:
        trace_format(name)
    found = [_find_one(file, name, options) for file in files]
    kinds = sorted({f"{kind.format.name} ({'degrees' if kind.geo else 'metres'}, {kind.form})" for kind in found})
    if len(kinds) > 1:
        raise TraceError(f"the files are of several kinds, {' and '.join(kinds)}; ingest them one kind at a time")
    return found[0]


def _find_one(file: str, name: str | None, options: TraceOptions) -> FoundFormat:
    guess = guess_format(file)
    if name is None:
        if guess is None:
            raise TraceError(f"cannot detect the format of {file}; name it with --format: {', '.join(FORMATS)}")
        name, form = guess
        if form == "parquet" and any(plain(column) == "timesteptime" for column in parquet_columns(file)):
            name = "sumo-fcd"
    else:
        forms = trace_format(name).forms
        if name not in FORMATS:
            return FoundFormat(trace_format(name), forms[0], options.geo)
        form = guess[1] if guess and guess[1] in forms else forms[0]
        if guess is not None and not (guess[0] == name or (guess[1] in forms and guess[1] in ("csv", "parquet"))):
            raise TraceError(f"{file} looks like {guess[0]}, not like {name}; try --format {guess[0]}")
    if form in ("csv", "parquet"):
        names = csv_header(file, options.columns.values()).names if form == "csv" else parquet_columns(file)
        geo = find_columns(file, names, options).geo
    else:
        geo = name == "gpx" or options.geo or (name == "sumo-fcd" and says_geo(header_of(file)))
    return FoundFormat(FORMATS[name], form, geo)


def guess_format(file: str) -> tuple[str, str] | None:
    """(format, form): form is "xml", "csv", "parquet" or "text". None if the bytes do not say."""
    with open_trace(file) as stream:
        head = stream.read(_HEAD_BYTES)
        why = break_in(stream)
    if not head.strip():
        raise TraceError(f"{file} cannot be unpacked: {why}" if why else f"{file} is empty: there is no trace in it")
    if head.startswith(b"PAR1"):
        return "csv", "parquet"
    text = head.decode("utf-8-sig", "replace")
    if text.lstrip().startswith(("{", "[")):
        raise TraceError(
            f"{file} looks like JSON, which is no trace format here; write its positions as CSV, with a header such as "
            "node,time,lat,lon"
        )
    if text.lstrip().startswith("<"):
        root = re.search(r"<(?:\w+:)?([A-Za-z][\w-]*)[\s>/]", re.sub(r"<!--.*?-->|<[?!][^>]*>", "", text, flags=re.S))
        return {"fcd-export": ("sumo-fcd", "xml"), "gpx": ("gpx", "xml")}.get(root[1] if root else "")
    if re.search(r'^\s*\$\w+\([^)]+\)\s+set\s+[XYZ]_|^\s*\$\w+\s+at\s+\S+\s+"\$\w+\([^)]+\)\s+setdest', text, re.M):
        return "ns2", "text"
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    first = lines[0] if lines else ""
    words = first.split()
    if words and all(is_number(word) for word in words):
        second = lines[1].split() if len(lines) > 1 else []
        if len(words) in (6, 8) and len(second) in (4, 5):
            return "one", "text"
        if len(words) >= 3 and (len(words) % 3 == 0 or len(words) % 4 == 0):
            return "bonnmotion", "text"
        return None
    if any(sign in first for sign in ";,\t|"):
        names = {plain(name) for name in re.split(r"[;,\t|]", first)}
        return ("sumo-fcd" if "timesteptime" in names else "csv"), "csv"
    return None


class TraceProblem(NamedTuple):
    """A row that cannot be read."""

    file: str
    line: int
    problem: str


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A whole trace in memory, in the order of its rows."""

    node: npt.NDArray[np.str_]
    time: Floats
    x_m: Floats
    "NaN if the trace is in degrees."
    y_m: Floats
    lat_deg: Floats
    "NaN if the trace is in metres."
    lon_deg: Floats
    geo: bool
    "Positions are degrees."
    motion: str
    "`samples` or `waypoints`."
    problems: tuple[TraceProblem, ...] = ()


def read_trace(path: str | os.PathLike[str], format: str | None = None, options: TraceOptions | None = None) -> Trace:
    """Read a trace: a file, a pattern, or a folder of files of one kind. Bad rows are its `problems`."""
    options = options or TraceOptions()
    name = os.fspath(path)
    if os.path.isdir(name) and (format is None or "parquet" in trace_format(format).forms) and _holds_parquet(name):
        files = [name]
        found = FoundFormat(trace_format(format or "csv"), "parquet", False)
    else:
        files = expanded([name])
        found = find_format(files, format, options)
    blocks = [(file, block) for file in files for block in sightings_in(file, found, options)]
    good = [np.array([problem is None for problem in block.problem], dtype=bool) for _, block in blocks]
    problems = [
        TraceProblem(file, int(line), problem)
        for file, block in blocks
        for line, problem in zip(block.line, block.problem, strict=True)
        if problem is not None
    ]
    columns = {
        column: np.concatenate(
            [np.zeros(0), *(block.number(column)[kept] for (_, block), kept in zip(blocks, good, strict=True))]
        )
        for column in ("time", "x_m", "y_m", "lat_deg", "lon_deg")
    }
    nodes = [
        name
        for (_, block), kept in zip(blocks, good, strict=True)
        for name, keep in zip(block.node, kept, strict=True)
        if keep
    ]
    geo = found.geo or not np.isnan(columns["lat_deg"]).all()
    return Trace(
        np.array(nodes, dtype=np.str_), geo=geo, motion=found.format.motion, problems=tuple(problems), **columns
    )


def _holds_parquet(folder: str) -> bool:
    return any(name.endswith(".parquet") for _, _, names in os.walk(folder) for name in names)


def sightings_in(file: str, found: FoundFormat, options: TraceOptions) -> Iterator[Sightings]:
    """One file's sightings, in blocks."""
    if found.form == "parquet":
        yield from parse_parquet(file, options)
    elif found.form == "csv":
        with open_trace(file, by_line=True) as stream:
            yield from parse_csv(stream, file, options)
    else:
        assert found.format.parse is not None
        options = replace(options, geo=found.geo or options.geo)
        yield from in_blocks(_parsed(file, found.format.parse, found.form == "text", options))


def _parsed(file: str, parse: Parse, by_line: bool, options: TraceOptions) -> Iterator[Sighting]:
    """A file's rows. The last line of a text that was cut short is not read; XML itself shows where it breaks off."""
    line = 0
    with open_trace(file, by_line) as stream:
        for row in parse(stream, file, options):
            line = max(line, row.line)
            yield row
        if by_line and (why := break_in(stream)):
            yield Sighting(line=line + 1, problem=f"the file breaks off: {why}")
