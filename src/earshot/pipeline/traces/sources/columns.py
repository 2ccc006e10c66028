"""Which column of a table says what: guessed from the names people use, or told.

Names are compared in lower case without spaces and signs: "Vehicle ID", "vehicle_id" and "vehicleId"
are one name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earshot.errors import TraceError, UnknownName

ROLES = ("node", "time", "x", "y", "lat", "lon", "speed", "heading")
_SUMO = ("vehicle", "person", "container")

KNOWN: dict[str, tuple[str, ...]] = {
    "node": (
        *("node", "nodeid", "vehicleid", "personid", "vehicle", "vehid", "deviceid", "device", "busid", "tripid"),
        *("mmsi", "tagid", "userid", "user", "uid", "trackid", "trajid", "trajectoryid", "objectid", "name", "id"),
    ),
    "time": (
        *("time", "timesteptime", "timestamp", "timestamputc", "t", "ts", "datetime", "datetimeutc", "gpstime"),
        *("utc", "utctime", "epoch", "unixtime", "seconds", "times", "date"),
    ),
    "x": ("x", "xm", "vehiclex", "personx", "posx", "xpos", "positionx", "easting", "utmx"),
    "y": ("y", "ym", "vehicley", "persony", "posy", "ypos", "positiony", "northing", "utmy"),
    "lat": ("lat", "latitude", "latdeg", "gpslat", "positionlat"),
    "lon": ("lon", "lng", "long", "longitude", "londeg", "gpslon", "positionlong"),
    "speed": ("speed", "speedms", "vehiclespeed", "personspeed", "velocity", "speedkmh", "speedkph"),
    "heading": ("heading", "headingdeg", "bearing", "course", "vehicleangle", "personangle", "angle", "cog"),
}
"In the order they are tried: a table with vehicle_id and id means the former."

_KILOMETRES_AN_HOUR = {"speedkmh", "speedkph"}


@dataclass(frozen=True, slots=True)
class Columns:
    """For each role the columns that may hold it: the first that is filled counts."""

    by_role: Mapping[str, tuple[str, ...]]
    geo: bool
    "Places are latitude and longitude."
    speed_factor: float = 1.0
    "From the column's unit to metres a second."

    def of(self, role: str) -> tuple[str, ...]:
        """The columns for a role; none where the table does not say."""
        return self.by_role.get(role, ())

    @property
    def place(self) -> tuple[str, str]:
        """The roles that hold the place, x before y."""
        return ("lon", "lat") if self.geo else ("x", "y")

    @property
    def used(self) -> list[str]:
        """Every column that is read, in no role twice."""
        return list(dict.fromkeys(name for names in self.by_role.values() for name in names))


def plain(name: str) -> str:
    """A column's name without case, spaces and signs."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_number(text: str) -> bool:
    """Whether it is a value rather than a name."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def told(text: str | None) -> dict[str, str]:
    """`node=bus,time=when` as a mapping; TraceError for what is not one."""
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


def resolve(file: str, names: Sequence[str], given: Mapping[str, str], geo: bool = False) -> Columns:
    """Columns for every role, told or guessed; TraceError where time or place are not to be found.

    `geo` says that x and y are longitude and latitude, as SUMO writes them with --fcd-output.geo.
    """
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
        endings = {"node": "id", "x": "x", "y": "y", "speed": "speed", "heading": "angle"}
        for role, ending in endings.items():
            columns = tuple(by_plain[kind + ending] for kind in _SUMO if kind + ending in by_plain)
            if columns and role not in given:
                found[role] = columns
    if geo:
        found["lon"], found["lat"] = found.pop("x", ()), found.pop("y", ())
    on_globe = bool(found.get("lat") and found.get("lon"))
    if "x" in given or "y" in given or (found.get("x") and found.get("y") and not on_globe):
        on_globe = False
    place = ("lat", "lon") if on_globe else ("x", "y")
    for role in ("time", *place):
        if not found.get(role):
            raise TraceError(
                f"{file} has no column that could be the {'place' if role != 'time' else 'time'} among "
                f"{', '.join(names)}; name it with --columns, as in node=NAME,time=NAME,lat=NAME,lon=NAME"
            )
    wanted = ("node", "time", *place, "speed", "heading")
    speed = plain(found["speed"][0]) if found.get("speed") else ""
    return Columns(
        {role: found[role] for role in wanted if found.get(role)},
        geo=on_globe,
        speed_factor=1 / 3.6 if speed in _KILOMETRES_AN_HOUR else 1.0,
    )
