"""NMEA 0183: the sentences of GPS receivers, read from a device, or from a log that is played back in real time."""

from __future__ import annotations

import asyncio
import math
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import xor
from pathlib import Path

from earshot.errors import LocationUnavailable
from earshot.geometry import ORIGIN, STILL, LocalPlane, Velocity
from earshot.live.location import Fix, plane_near
from earshot.live.trace_location import Track

KNOT_M_S = 1852.0 / 3600.0
FIRST_FIX_S = 30.0
MAX_LINE = 256


@dataclass(frozen=True, slots=True)
class Reading:
    """One position that a receiver reported: `time` in seconds since the epoch, the course in degrees from north."""

    time: float
    lat_deg: float
    lon_deg: float
    speed_m_s: float = 0.0
    course_deg: float = 0.0

    @property
    def velocity(self) -> Velocity:
        """From the speed over ground and the course."""
        if not self.speed_m_s or not (math.isfinite(self.speed_m_s) and math.isfinite(self.course_deg)):
            return STILL
        course = math.radians(self.course_deg)
        return Velocity(self.speed_m_s * math.sin(course), self.speed_m_s * math.cos(course))


def parse_line(line: str) -> Reading | None:
    """The position in an RMC sentence with a valid fix; None for any other line and for a damaged one."""
    line = line.strip()
    body, star, checksum = line[1:].partition("*")
    if not line.startswith("$"):
        return None
    fields = body.split(",")
    if len(fields) < 10 or fields[0][-3:] != "RMC" or fields[2] != "A":
        return None
    try:
        if star and int(checksum[:2], 16) != reduce(xor, map(ord, body), 0):
            return None
        moment = datetime.strptime(fields[9] + fields[1][:6], "%d%m%y%H%M%S").replace(tzinfo=UTC)
        part = float(f"0{fields[1][6:]}") if fields[1][6:] else 0.0
        lat_deg, lon_deg = _degrees(fields[3], 2, fields[4] == "S"), _degrees(fields[5], 3, fields[6] == "W")
        speed = float(fields[7]) * KNOT_M_S if fields[7] else 0.0
        course = float(fields[8]) if fields[8] else 0.0
    except ValueError:
        return None
    if not (abs(lat_deg) <= 90.0 and abs(lon_deg) <= 180.0 and part < 1.0):
        return None
    return Reading((moment + timedelta(seconds=part)).timestamp(), lat_deg, lon_deg, speed, course)


def _degrees(text: str, digits: int, negative: bool) -> float:
    """Degrees and minutes, ddmm.mmmm, to degrees."""
    degrees = int(text[:digits]) + float(text[digits:]) / 60.0
    return -degrees if negative else degrees


class Receiver:
    """A GPS receiver whose readings arrive while the node runs: the base of its location services."""

    def __init__(self, first_fix_s: float) -> None:
        self.plane: LocalPlane | None = None
        self._first_fix_s = first_fix_s
        self._first = asyncio.Event()
        self._latest = Fix(ORIGIN, STILL, 0.0)

    def fix(self, now: float) -> Fix:
        return self._latest

    async def stop(self) -> None:
        """Stop reading."""

    def _report(self, reading: Reading | None, at: float) -> None:
        """Take a reading that arrived at this time of the host's clock."""
        if reading is not None:
            self.plane = self.plane or plane_near(reading.lat_deg, reading.lon_deg)
            self._latest = Fix(self.plane.position(reading.lat_deg, reading.lon_deg), reading.velocity, at)
            self._first.set()

    async def _first_fix(self, source: str) -> None:
        """Wait for the first fix; stop if none comes."""
        try:
            async with asyncio.timeout(self._first_fix_s):
                await self._first.wait()
        except BaseException as error:
            await self.stop()
            if not isinstance(error, TimeoutError):
                raise
            raise LocationUnavailable(
                f"{source} gave no fix within {self._first_fix_s:g} s; check the receiver's view of the sky"
            ) from None


class NmeaFile(Receiver):
    """A receiver's sentences: a log file is played back, a device or a pipe is read as data arrive."""

    def __init__(self, path: str | Path, first_fix_s: float = FIRST_FIX_S) -> None:
        super().__init__(first_fix_s)
        self._path = Path(path)
        self._track: Track | None = None
        self._file = -1
        self._rest = b""

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        self.plane = plane
        try:
            if stat.S_ISREG(self._path.stat().st_mode):
                self._play_back(clock())
            else:
                self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
                asyncio.get_running_loop().add_reader(self._file, self._read, clock)
                await self._first_fix(str(self._path))
        except OSError as error:
            raise LocationUnavailable(f"cannot read {self._path}: {error.strerror}") from None

    def _play_back(self, started_at: float) -> None:
        with self._path.open(encoding="ascii", errors="replace") as lines:
            readings = [reading for line in lines if (reading := parse_line(line)) is not None]
        if not readings:
            raise LocationUnavailable(f"{self._path} holds no NMEA position: no RMC sentence with a valid fix")
        self.plane = self.plane or plane_near(readings[0].lat_deg, readings[0].lon_deg)
        rows = [(reading.time, reading.lat_deg, reading.lon_deg) for reading in readings]
        self._track = Track(rows, self.plane, started_at)

    def _read(self, clock: Callable[[], float]) -> None:
        data = os.read(self._file, 4096)
        if not data:
            # The pipe's writer has gone; the last fix grows older.
            asyncio.get_running_loop().remove_reader(self._file)
            return
        *lines, self._rest = (self._rest[-MAX_LINE:] + data).split(b"\n")
        for line in lines:
            self._report(parse_line(line.decode("ascii", "replace")), clock())

    async def stop(self) -> None:
        if self._file >= 0:
            asyncio.get_running_loop().remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def fix(self, now: float) -> Fix:
        return self._latest if self._track is None else self._track.fix(now)
