"""NMEA 0183: the sentences of GPS receivers, read from a device, or from a log that is played back in real time."""

from __future__ import annotations

import asyncio
import math
import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from earshot.errors import LocationUnavailable
from earshot.geometry import ORIGIN, STILL, LocalPlane, Position, Velocity
from earshot.live.location import Fix, plane_near

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

    def fix(self, plane: LocalPlane, at: float) -> Fix:
        """The fix on a plane, with a time of this host's clock."""
        return Fix(plane.position(self.lat_deg, self.lon_deg), velocity(self.speed_m_s, self.course_deg), at)


def velocity(speed_m_s: float, course_deg: float) -> Velocity:
    """The velocity from speed over ground and course from north."""
    if not speed_m_s or not (math.isfinite(speed_m_s) and math.isfinite(course_deg)):
        return STILL
    course = math.radians(course_deg)
    return Velocity(speed_m_s * math.sin(course), speed_m_s * math.cos(course))


def parse_line(line: str) -> Reading | None:
    """The position in an RMC sentence with a valid fix; None for any other line and for a damaged one."""
    line = line.strip()
    body, star, checksum = line[1:].partition("*")
    if not line.startswith("$") or (star and not _has_checksum(body, checksum)):
        return None
    fields = body.split(",")
    if len(fields) < 10 or fields[0][-3:] != "RMC" or fields[2] != "A":
        return None
    try:
        moment = datetime.strptime(fields[9] + fields[1][:6], "%d%m%y%H%M%S").replace(tzinfo=UTC)
        part = float(f"0{fields[1][6:]}") if fields[1][6:] else 0.0
        lat_deg, lon_deg = _degrees(fields[3], 2, fields[4] == "S"), _degrees(fields[5], 3, fields[6] == "W")
        speed = float(fields[7]) * KNOT_M_S if fields[7] else 0.0
        course = float(fields[8]) if fields[8] else 0.0
    except ValueError:
        return None
    if not (abs(lat_deg) <= 90.0 and abs(lon_deg) <= 180.0):
        return None
    return Reading((moment + timedelta(seconds=part)).timestamp(), lat_deg, lon_deg, speed, course)


def _has_checksum(body: str, checksum: str) -> bool:
    total = 0
    for character in body:
        total ^= ord(character)
    try:
        return int(checksum[:2], 16) == total
    except ValueError:
        return False


def _degrees(text: str, digits: int, negative: bool) -> float:
    """Degrees and minutes, ddmm.mmmm, to degrees."""
    degrees = int(text[:digits]) + float(text[digits:]) / 60.0
    return -degrees if negative else degrees


class Track:
    """Positions that are played back in real time from the start of the node."""

    def __init__(self, times: list[float], positions: list[Position], started_at: float) -> None:
        self._times = [started_at + time - times[0] for time in times]
        self._positions = positions

    def fix(self, now: float) -> Fix:
        """The position between two readings; after the last one the fix grows older."""
        k = bisect_right(self._times, now)
        if k == 0:
            return Fix(self._positions[0], STILL, now)
        if k == len(self._times):
            return Fix(self._positions[-1], STILL, self._times[-1])
        start, end = self._times[k - 1], self._times[k]
        a, b = self._positions[k - 1], self._positions[k]
        moving = Velocity((b.x_m - a.x_m) / (end - start), (b.y_m - a.y_m) / (end - start))
        since = now - start
        return Fix(a.moved(moving.x_m_s * since, moving.y_m_s * since), moving, now)


def track_of(readings: Iterable[Reading], plane: LocalPlane, started_at: float) -> Track:
    """A track through readings in order of time; of two readings at one time the later one counts."""
    ordered = sorted({reading.time: reading for reading in readings}.values(), key=lambda reading: reading.time)
    positions = [plane.position(reading.lat_deg, reading.lon_deg) for reading in ordered]
    return Track([reading.time for reading in ordered], positions, started_at)


class NmeaFile:
    """A receiver's sentences: a log file is played back, a device or a pipe is read as data arrive."""

    def __init__(self, path: str | Path, first_fix_s: float = FIRST_FIX_S) -> None:
        self._path = Path(path)
        self._first_fix_s = first_fix_s
        self._plane: LocalPlane | None = None
        self._track: Track | None = None
        self._latest = Fix(ORIGIN, STILL, 0.0)
        self._file = -1
        self._rest = b""

    @property
    def plane(self) -> LocalPlane | None:
        return self._plane

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        try:
            if stat.S_ISREG(self._path.stat().st_mode):
                self._play_back(clock, plane)
            else:
                await self._listen(clock, plane)
        except OSError as error:
            raise LocationUnavailable(f"cannot read {self._path}: {error.strerror}") from None

    def _play_back(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        with self._path.open(encoding="ascii", errors="replace") as lines:
            readings = [reading for line in lines if (reading := parse_line(line)) is not None]
        if not readings:
            raise LocationUnavailable(f"{self._path} holds no NMEA position: no RMC sentence with a valid fix")
        self._plane = plane or plane_near(readings[0].lat_deg, readings[0].lon_deg)
        self._track = track_of(readings, self._plane, clock())

    async def _listen(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        self._plane = plane
        self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        first = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._file, self._read, clock, first)
        try:
            async with asyncio.timeout(self._first_fix_s):
                await first
        except TimeoutError:
            await self.stop()
            raise LocationUnavailable(
                f"{self._path} gave no fix within {self._first_fix_s:g} s; check the receiver's view of the sky"
            ) from None

    def _read(self, clock: Callable[[], float], first: asyncio.Future[None]) -> None:
        data = os.read(self._file, 4096)
        if not data:
            # The pipe's writer has gone; the last fix grows older.
            asyncio.get_running_loop().remove_reader(self._file)
            return
        *lines, self._rest = (self._rest[-MAX_LINE:] + data).split(b"\n")
        for line in lines:
            reading = parse_line(line.decode("ascii", "replace"))
            if reading is not None:
                self._plane = self._plane or plane_near(reading.lat_deg, reading.lon_deg)
                self._latest = reading.fix(self._plane, clock())
                if not first.done():
                    first.set_result(None)

    async def stop(self) -> None:
        if self._file >= 0:
            asyncio.get_running_loop().remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def fix(self, now: float) -> Fix:
        return self._latest if self._track is None else self._track.fix(now)
