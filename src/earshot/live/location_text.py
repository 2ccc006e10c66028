"""Location services by their names on a command line."""

from __future__ import annotations

from earshot.errors import LocationUnavailable
from earshot.live.gpsd import Gpsd
from earshot.live.location import Fixed, LocationService
from earshot.live.nmea import NmeaFile
from earshot.live.trace import TracePlayback

FORMS = "fixed:LAT,LON, plane:X,Y, gpsd[:HOST:PORT], nmea:FILE or trace:FILE#NODE"


def parse_location(text: str) -> LocationService:
    """Read `fixed:53.4,-2.97`, `plane:10,20`, `gpsd`, `gpsd:HOST:PORT`, `nmea:FILE` or `trace:FILE#NODE`."""
    kind, _, rest = text.partition(":")
    match kind:
        case "fixed":
            return Fixed(*_pair(rest, text))
        case "plane":
            return Fixed.on_plane(*_pair(rest, text))
        case "gpsd":
            host, _, port = rest.rpartition(":")
            if not rest:
                return Gpsd()
            if host and port.isdigit():
                return Gpsd(host, int(port))
        case "nmea" if rest:
            return NmeaFile(rest)
        case "trace" if rest:
            path, _, node = rest.partition("#")
            return TracePlayback(path, node)
    raise LocationUnavailable(f"cannot read the location {text!r}; write {FORMS}")


def _pair(rest: str, text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in rest.split(","))
    except ValueError:
        raise LocationUnavailable(f"cannot read the location {text!r}; write {FORMS}") from None
    return first, second
