"""Tables with named columns, CSV or Parquet: which column has which role, and its values checked.

Roles are guessed from the names that people use, or given. Names are compared in lower case without
spaces and signs: "Vehicle ID", "vehicle_id" and "vehicleId" are one name. Values are checked a
column at a time; every row keeps its first problem.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError
from earshot.traces.files import break_in, delta_files, open_trace, stem
from earshot.traces.sightings import (
    ROLES,
    Floats,
    Sighting,
    Sightings,
    TraceOptions,
    epoch_seconds,
    in_blocks,
    is_number,
    others_text,
)

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN: dict[str, tuple[str, ...]] = {
    "node": (
        *("node", "nodeid", "vehicleid", "personid", "vehicle", "vehid", "deviceid", "device", "busid", "tripid"),
        *("mmsi", "tagid", "userid", "user", "uid", "trackid", "trajid", "trajectoryid", "objectid", "name", "id"),
        *("trace", "busno", "bus", "vehicleno", "vehiclenumber", "car", "carid", "taxi", "taxiid", "drone", "droneid"),
        *("agent", "agentid", "unit", "unitid", "asset", "assetid", "imei", "callsign", "icao24"),
    ),
    "time": (
        *("time", "timesteptime", "timestamp", "timestamputc", "t", "ts", "datetime", "datetimeutc", "gpstime"),
        *("utc", "utctime", "epoch", "unixtime", "seconds", "times", "date"),
        *("recordedat", "observedat"),
    ),
    "x": ("x", "xm", "vehiclex", "personx", "posx", "xpos", "positionx", "easting", "utmx"),
    "y": ("y", "ym", "vehicley", "persony", "posy", "ypos", "positiony", "northing", "utmy"),
    "lat": ("lat", "latitude", "latdeg", "latitudedeg", "gpslat", "gpslatitude", "positionlat", "locationlat"),
    "lon": (
        *("lon", "lng", "long", "longitude", "londeg", "longitudedeg", "gpslon", "gpslng", "gpslong", "gpslongitude"),
        *("positionlong", "positionlon", "locationlon", "locationlng", "locationlong"),
    ),
    "speed": ("speed", "speedms", "vehiclespeed", "personspeed", "velocity", "speedkmh", "speedkph", "spdkmh"),
    "heading": ("heading", "headingdeg", "bearing", "course", "vehicleangle", "personangle", "angle", "cog"),
    "type": ("type", "nodetype", "vehicletype", "persontype", "vehtype", "vtype", "vehicleclass", "vclass", "mode"),
}
"In the order in which they are tried: in a table with vehicle_id and id, vehicle_id is the node."

MILLISECONDS_FROM, MICROSECONDS_FROM, NANOSECONDS_FROM = 1e11, 1e14, 1e17
"""Larger times are in milliseconds, microseconds or nanoseconds since the epoch: each of these limits is in the year
1973 by its own unit, and after the year 5138 by the unit before."""

_KILOMETRES_AN_HOUR = {"speedkmh", "speedkph", "spdkmh"}
_MEASURED = ("time", "x", "y", "lat", "lon", "speed", "heading")
_SUMO = ("vehicle", "person", "container")
_BLOCK_BYTES = 4 << 20
EMPTY_LINE = "an empty line"
"The problem of a row without any value."

Values = Sequence[str | None] | Floats
"A column's values: texts (blank or None if there is no value) or numbers (NaN for unknown ones)."


@dataclass(frozen=True, slots=True)
class TableColumns:
    """For each role the columns that may hold it: in each row, the first column with a value counts."""

    by_role: Mapping[str, tuple[str, ...]]
    geo: bool
    "Positions are latitude and longitude."
    speed_factor: float = 1.0
    "From the column's unit to metres a second."
    time_factor: float | None = None
    "From the column's unit to seconds, if the unit is known."
    others: tuple[str, ...] = ()
    "Columns without a role whose values are kept."

    def of(self, role: str) -> tuple[str, ...]:
        """The columns for a role; empty if the table has none."""
        return self.by_role.get(role, ())

    @property
    def used(self) -> list[str]:
        """Every column that has a role, each once."""
        return list(dict.fromkeys(name for names in self.by_role.values() for name in names))


def plain(name: str) -> str:
    """A column's name in lower case, without spaces and other signs."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_columns(file: str, names: Sequence[str], options: TraceOptions) -> TableColumns:
    """The columns for every role, given or guessed; TraceError if there is none for time or position.

    Our own `x_m` and `y_m` win over degrees; degrees win over any other x and y.
    """
    given = options.columns
    by_plain = {plain(name): name for name in reversed(names)}
    found: dict[str, tuple[str, ...]] = {}
    for role, name in given.items():
        if name not in names:
            raise TraceError(f"{file} has no column {name!r}; it has {', '.join(names)}")
        found[role] = (name,)
    for role in ROLES:
        if role not in found and (guess := next((known for known in KNOWN[role] if known in by_plain), None)):
            found[role] = (by_plain[guess],)
    if "timesteptime" in by_plain:  # SUMO: vehicles, persons and containers each have columns of their own
        endings = {"node": "id", "x": "x", "y": "y", "speed": "speed", "heading": "angle", "type": "type"}
        for role, ending in endings.items():
            columns = tuple(by_plain[kind + ending] for kind in _SUMO if kind + ending in by_plain)
            if columns and role not in given:
                found[role] = columns
    if options.geo:
        found["lon"], found["lat"] = found.pop("x", ()), found.pop("y", ())
    if options.swapped:
        found["lat"], found["lon"] = found.get("lon", ()), found.get("lat", ())
    in_metres = "x" in given or "y" in given or (found.get("x") == ("x_m",) and found.get("y") == ("y_m",))
    on_globe = bool(found.get("lat") and found.get("lon")) and not in_metres
    place = ("lat", "lon") if on_globe else ("x", "y")
    for role in ("time", *place):
        if not found.get(role):
            raise TraceError(
                f"{file} has no column that could be the {'place' if role != 'time' else 'time'} among "
                f"{', '.join(names)}; name it with --columns, as in node=NAME,time=NAME,lat=NAME,lon=NAME"
            )
    wanted = ("node", "time", *place, "speed", "heading", "type")
    speed = plain(found["speed"][0]) if found.get("speed") else ""
    by_role = {role: found[role] for role in wanted if found.get(role)}
    used = {"", *(name for some in by_role.values() for name in some)}
    return TableColumns(
        by_role,
        geo=on_globe,
        speed_factor=1 / 3.6 if speed in _KILOMETRES_AN_HOUR else 1.0,
        time_factor=options.time_factor,
        others=tuple(dict.fromkeys(name for name in names if name not in used)) if options.others else (),
    )


def checked_block(
    file: str,
    by_name: Mapping[str, Values],
    lines: npt.NDArray[np.int64],
    columns: TableColumns,
    time_format: str | None,
) -> Sightings:
    """Columns of values as sightings, each row with its first problem."""
    count = len(lines)
    problems: list[str | None] = [None] * count
    node: list[str | None] = [stem(file)] * count
    if columns.of("node"):
        node = _texts(_filled(by_name, columns, "node"))
        if None in node:
            _mark(problems, np.fromiter((name is None for name in node), bool, count), lambda _: "no node")
    values = {"time": _times(_filled(by_name, columns, "time"), time_format, problems, columns.time_factor)}
    places = (("lon", "lon_deg"), ("lat", "lat_deg")) if columns.geo else (("x", "x_m"), ("y", "y_m"))
    for role, column in places:
        texts = _filled(by_name, columns, role)
        values[column], unread = _numbers(texts)
        what = {"lon": "longitude", "lat": "latitude"}.get(role, role)
        _mark(problems, unread, lambda i, texts=texts, what=what: _problem(texts[i], what, "a number"))
    if columns.geo:
        for column, limit, what in (("lat_deg", 90.0, "latitude"), ("lon_deg", 180.0, "longitude")):
            place = values[column]
            with np.errstate(invalid="ignore"):
                outside = np.abs(place) > limit
            _mark(problems, outside, lambda i, p=place, w=what, m=limit: f"{w} {p[i]:g} is outside {-m:g}..{m:g}")
    if columns.of("speed"):
        values["speed_m_s"] = _numbers(_filled(by_name, columns, "speed"))[0] * columns.speed_factor
    if columns.of("heading"):
        values["heading_deg"] = _numbers(_filled(by_name, columns, "heading"))[0]
    for i, problem in enumerate(problems):
        if problem is not None and all(_is_blank(by_name[name][i]) for name in columns.used):
            problems[i] = EMPTY_LINE
    types = _texts(_filled(by_name, columns, "type")) if columns.of("type") else None
    return Sightings(node, lines, problems, values, types, _others(by_name, columns.others))


def _others(by_name: Mapping[str, Values], names: Sequence[str]) -> list[str | None] | None:
    """The values of the columns without a role, row by row."""
    if not names:
        return None
    rows = zip(*(_texts(by_name[name]) for name in names), strict=True)
    return [others_text(zip(names, row, strict=True)) for row in rows]


def _is_blank(value: str | float | None) -> bool:
    return not value.strip() if isinstance(value, str) else value is None or math.isnan(value)


def _filled(by_name: Mapping[str, Values], columns: TableColumns, role: str) -> Values:
    """The role's value in each row: the value of its first column that is not blank."""
    values, *others = (by_name[name] for name in columns.of(role))
    for other in others:
        if isinstance(values, np.ndarray) and isinstance(other, np.ndarray):
            values = np.where(np.isnan(values), other, values)
        else:
            values = [value or fallback for value, fallback in zip(_texts(values), _texts(other), strict=True)]
    return values


def _texts(values: Values) -> list[str | None]:
    """The values as texts, None if they are blank."""
    if isinstance(values, np.ndarray):
        return [None if math.isnan(value) else repr(value) for value in values.tolist()]
    return [text.strip() or None if text is not None else None for text in values]


def _mark(problems: list[str | None], mask: npt.NDArray[np.bool_], why: Callable[..., str]) -> None:
    for i in np.flatnonzero(mask).tolist():
        if problems[i] is None:
            problems[i] = why(i)


def _problem(text: Any, what: str, wanted: str) -> str:
    if not isinstance(text, str) or not text.strip():
        return f"no {what}"
    return f"{what} {text.strip()[:40]!r} is not {wanted}"


def _numbers(values: Values) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The values as finite numbers, with NaN for all others, and which values are the others."""
    if isinstance(values, np.ndarray):
        numbers = values.copy()
    else:
        try:
            numbers = np.array([float(text) for text in values], dtype=np.float64)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            numbers = np.array([float(text) if text and is_number(text) else math.nan for text in values])
    unread = ~np.isfinite(numbers)
    numbers[unread] = np.nan
    return numbers, unread


def _times(values: Values, time_format: str | None, problems: list[str | None], factor: float | None = None) -> Floats:
    """Times in seconds: numbers are in seconds (or milliseconds, microseconds or nanoseconds, if too large), or are
    multiplied by the factor; dates count since the epoch."""
    times, unread = (np.full(len(values), np.nan), np.ones(len(values), bool)) if time_format else _numbers(values)
    with np.errstate(invalid="ignore"):
        times = _seconds(times) if factor is None else times * factor
    for i in np.flatnonzero(unread).tolist():
        text = values[i]
        if isinstance(text, str):
            with suppress(ValueError):
                times[i] = epoch_seconds(text.strip(), time_format)
    _mark(problems, ~np.isfinite(times), lambda i: _problem(values[i], "time", "a time"))
    return times


def _seconds(times: Floats) -> Floats:
    """Times in seconds; their size shows which unit they have."""
    limits = (MILLISECONDS_FROM, MICROSECONDS_FROM, NANOSECONDS_FROM)
    units_a_second = np.array([1.0, 1e3, 1e6, 1e9])
    return np.asarray(times / units_a_second[np.searchsorted(limits, np.abs(times), side="right")])


# -- CSV


class CsvHeader(NamedTuple):
    """What the first line of a CSV file says."""

    names: list[str]
    "The columns' names; their numbers, from 1, where the first line is a row of values."
    delimiter: str
    named: bool


def csv_header(file: str, given: Collection[str] = ()) -> CsvHeader:
    """The file's columns, and the delimiter between them. `given` are the columns that the user named: a file without
    names has its columns numbered."""
    with open_trace(file) as stream:
        first = stream.readline(1 << 20).decode("utf-8-sig", "replace").strip("\r\n")
        if not first and (why := break_in(stream)):
            raise TraceError(f"{file} cannot be unpacked: {why}")
    if not first.strip():
        raise TraceError(f"{file} is empty or begins with an empty line; its first line must name the columns")
    delimiter = max(";,\t|", key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    if len(names) >= 3 and not _are_values(names, delimiter):
        return CsvHeader(names, delimiter, named=True)
    numbers = [str(number) for number in range(1, len(names) + 1)]
    if len(names) < 3 or not given or not set(given) <= set(numbers):
        raise TraceError(
            f"{file} has no column names in its first line ({first[:60]!r}); a CSV trace begins with a line like "
            "node,time,x,y, or has its columns numbered, as in --columns node=1,time=2,x=3,y=4"
        )
    return CsvHeader(numbers, delimiter, named=False)


def _are_values(cells: Sequence[str], delimiter: str) -> bool:
    """Whether this is a row of values: half of it is numbers, and nothing in it names a role."""
    known = {name for names in KNOWN.values() for name in names}
    numbers = sum(is_number(_with_point(cell, delimiter)) for cell in cells)
    return 2 * numbers >= len([cell for cell in cells if cell]) and not any(plain(cell) in known for cell in cells)


def _with_point(text: str, delimiter: str) -> str:
    """A number as Python reads it. Files with semicolons write 9,99 where others write 9.99."""
    return text.replace(",", ".") if delimiter == ";" else text


def parse_csv(stream: IO[bytes], file: str, options: TraceOptions, first_line: int = 1) -> Iterator[Sightings]:
    """The rows of a CSV file, or of a piece of it that begins with line `first_line`."""
    names, delimiter, named = csv_header(file, options.columns.values())
    columns = find_columns(file, names, options)
    measured = {name for role in _MEASURED for name in columns.of(role)} if delimiter == ";" else set()
    places = {name: names.index(name) for name in (*columns.used, *columns.others)}
    line = first_line
    bad: list[Sighting] = []
    if first_line == 1 and named:
        stream.readline()
        line = 2
    while raw := stream.readlines(_BLOCK_BYTES):
        values, lines, wrong = _split(raw, line, delimiter, len(names))
        line += len(raw)
        bad += wrong
        by_name = {name: values[i :: len(names)] for name, i in places.items()}
        for name in measured:
            by_name[name] = [_with_point(text, delimiter) for text in by_name[name]]
        yield checked_block(file, by_name, lines, columns, options.time_format)
    if why := break_in(stream):
        bad.append(Sighting(line=line, problem=f"the file breaks off: {why}"))
    yield from in_blocks(bad)


def _split(
    raw: Sequence[bytes], first_line: int, delimiter: str, width: int
) -> tuple[list[str], npt.NDArray[np.int64], list[Sighting]]:
    """The values of all rows in one list, the rows' line numbers, and the lines with too few or too many values.

    A value does not span lines. Lines with quotes come last. One list for all rows, instead of one for each row,
    saves time in Python's garbage collector.
    """
    lines = (
        b"".join(raw)
        .decode("utf-8", "replace")
        .removeprefix("\ufeff")
        .replace("\r\n", "\n")
        .removesuffix("\n")
        .split("\n")
    )
    plain_lines, numbers, others, wrong = [], [], [], []
    for number, text in enumerate(lines, first_line):
        if text.count(delimiter) == width - 1 and '"' not in text:
            plain_lines.append(text)
            numbers.append(number)
        elif len(values := _unquoted(text, delimiter) if text.strip() else [""] * width) == width:
            others.append((number, values))
        else:
            wrong.append(Sighting(line=number, problem=f"{len(values)} values for {width} columns"))
    flat = delimiter.join(plain_lines).split(delimiter) if plain_lines else []
    flat += [value for _, values in others for value in values]
    return flat, np.array([*numbers, *(number for number, _ in others)], dtype=np.int64), wrong


def _unquoted(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:  # a value is too long
        return [line]


# -- Parquet


def parquet_columns(file: str) -> list[str]:
    """The names of a Parquet file's columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_trace(file) as stream:
        try:
            return list(pq.read_schema(stream).names)
        except pa.ArrowInvalid as error:
            raise TraceError(f"{file} is not a whole Parquet file: {error}") from None


def parse_parquet(file: str, options: TraceOptions) -> Iterator[Sightings]:
    """The rows of a Parquet file, or of all Parquet files below a folder."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError:
        raise TraceError(f"{file}: Parquet needs pyarrow: pip install 'earshot[pipeline]', or give a .csv") from None
    try:
        dataset = ds.dataset(delta_files(file) or file, format="parquet", partitioning="hive")
        columns = find_columns(file, dataset.schema.names, replace(options, others=False))
        table = dataset.to_table(columns=columns.used)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{file} is not a whole Parquet file: {error}") from None
    yield checked_arrow(file, table, np.arange(1, table.num_rows + 1, dtype=np.int64), columns, options.time_format)


def checked_arrow(
    file: str,
    table: pa.Table | pa.RecordBatch,
    lines: npt.NDArray[np.int64],
    columns: TableColumns,
    time_format: str | None,
) -> Sightings:
    """Arrow columns as sightings."""
    texts = {*columns.of("node"), *columns.others}
    by_name = {name: _arrow_values(table.column(name), name in texts) for name in (*columns.used, *columns.others)}
    return checked_block(file, by_name, lines, columns, time_format)


def _arrow_values(column: pa.Array | pa.ChunkedArray, as_text: bool) -> Values:
    """An Arrow column as texts or numbers; moments are seconds since the epoch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_timestamp(kind) and not as_text:
        micros = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        column = pc.divide(micros.cast(pa.float64()), 1e6)
    elif as_text or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        texts: list[str | None] = column.cast(pa.string()).to_pylist()
        return texts
    numbers = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan"))
    return np.array(numbers, dtype=np.float64)
