"""Sightings: what every trace format is read into. One row says where a node was, or why a row is bad.

A parser loses nothing: a row that it cannot read becomes a sighting with a `problem` and its line.
Positions are metres on a plane (`x_m`, `y_m`) or degrees (`lat_deg`, `lon_deg`), as in the trace.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.errors import TraceError, UnknownName

Floats = npt.NDArray[np.float64]
ROLES = ("node", "time", "x", "y", "lat", "lon", "speed", "heading", "type")
ROWS_A_BLOCK = 20_000


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What a user says about a trace, beyond its file and format."""

    columns: Mapping[str, str] = field(default_factory=dict)
    "For tables: role to column name; the other roles are guessed."
    geo: bool = False
    "x and y are longitude and latitude."
    time_format: str | None = None
    "For CSV: how times are written, in strptime's notation."
    swapped: bool = False
    "Latitude and longitude are exchanged."
    time_factor: float | None = None
    "Seconds in the trace's unit of time; None: the unit is a second, or a smaller one if times are very large."
    others: bool = False
    "Whether to keep further values of a row."

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TraceOptions:
        """From texts, as Spark passes them: `columns` is "node=bus,time=when"; names in any case."""
        texts = {name.lower(): value for name, value in options.items()}
        geo = str(texts.get("geo", "")).lower() == "true"
        factor = float(texts["timefactor"]) if texts.get("timefactor") else None
        swapped = str(texts.get("swapped", "")).lower() == "true"
        others = str(texts.get("others", "")).lower() == "true"
        return cls(named_columns(texts.get("columns")), geo, texts.get("timeformat") or None, swapped, factor, others)


def named_columns(text: str | None) -> dict[str, str]:
    """`node=bus,time=when` as a mapping; TraceError for anything else."""
    pairs: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        role, sign, name = part.partition("=")
        role, name = role.strip(), name.strip()
        if not sign or not name:
            raise TraceError(f"columns are given as role=name, as in node=vehicle_id,time=timestamp; got {part!r}")
        if role not in ROLES:
            raise UnknownName("column role", role, ROLES)
        pairs[role] = name
    return pairs


class Sighting(NamedTuple):
    """One row; without a problem it has a node, a time and a position."""

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
    type: str | None = None
    "The type of node in the words of the trace: bus, person."
    others: str | None = None
    "Further values of the row, as `others_text` writes them."


NUMBERS = ("time", "x_m", "y_m", "lat_deg", "lon_deg", "speed_m_s", "heading_deg")


@dataclass(slots=True)
class Sightings:
    """A block of sightings as columns. Unknown numbers are NaN; an absent column is all unknown."""

    node: Sequence[str | None]
    line: npt.NDArray[np.int64]
    problem: Sequence[str | None]
    numbers: Mapping[str, Floats]
    type: Sequence[str | None] | None = None
    "None: the trace has no types."
    others: Sequence[str | None] | None = None
    "Further values of each row, as `others_text` writes them; None: there are none, or they are not kept."

    def number(self, name: str) -> Floats:
        """One of the columns NUMBERS."""
        found = self.numbers.get(name)
        return np.full(len(self.node), np.nan) if found is None else found


Parse = Callable[[IO[bytes], str, TraceOptions], Iterable[Sighting]]
"Takes an open file, its name and the options; gives sightings."


def in_blocks(rows: Iterable[Sighting]) -> Iterator[Sightings]:
    """Rows as blocks of columns."""
    rest = iter(rows)
    while some := list(itertools.islice(rest, ROWS_A_BLOCK)):
        columns = dict(zip(Sighting._fields, zip(*some, strict=True), strict=True))
        numbers = {name: np.array(columns[name], dtype=np.float64) for name in NUMBERS}
        lines = np.array(columns["line"], dtype=np.int64)
        yield Sightings(columns["node"], lines, columns["problem"], numbers, columns["type"], columns["others"])


def others_text(values: Iterable[tuple[str, str | None]]) -> str | None:
    """Names and their values as a JSON object of texts, without those that are blank; None if all are."""
    parts = [f"{encode_basestring(name)}: {encode_basestring(value)}" for name, value in values if value]
    return f"{{{', '.join(parts)}}}" if parts else None


def is_number(text: str) -> bool:
    """Whether the text is a value rather than a name."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def number(text: str | None, what: str) -> float:
    """A finite number; ValueError says what is not one."""
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
    """A finite number, or None if there is none: for values that a trace may have beside the position."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def degrees(lat: str | None, lon: str | None) -> tuple[float, float]:
    """Latitude and longitude; ValueError if they lie outside the globe."""
    lat_deg, lon_deg = number(lat, "latitude"), number(lon, "longitude")
    if not -90.0 <= lat_deg <= 90.0:
        raise ValueError(f"latitude {lat_deg:g} is outside -90..90")
    if not -180.0 <= lon_deg <= 180.0:
        raise ValueError(f"longitude {lon_deg:g} is outside -180..180")
    return lat_deg, lon_deg


def epoch_seconds(text: str, time_format: str | None = None) -> float:
    """Seconds since the epoch of a date and time, in ISO 8601 or the given format; without a zone it is UTC."""
    try:
        when = datetime.strptime(text, time_format) if time_format else datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"time {text[:40]!r} is not a date and time") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
