"""A client of gpsd, the daemon that talks to GPS receivers: its JSON protocol over TCP."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from earshot.errors import LocationUnavailable
from earshot.geometry import LocalPlane
from earshot.live.nmea import FIRST_FIX_S, Reading, Receiver

logger = logging.getLogger("earshot.live")

WATCH = b'?WATCH={"enable":true,"json":true}\n'
MAX_LINE_BYTES = 1 << 16
RETRY_S = 2.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def parse_report(line: bytes) -> Reading | None:
    """The position in a TPV report with at least a 2D fix; None for any other line."""
    try:
        report: Any = json.loads(line, parse_int=float)  # An integer may be too large for a float.
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("class") != "TPV" or report.get("mode", 0) not in (2, 3):
        return None
    values = [report.get("lat"), report.get("lon"), report.get("speed", 0.0), report.get("track", 0.0)]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return None
    lat_deg, lon_deg, speed_m_s, course_deg = map(float, values)
    if not (abs(lat_deg) <= 90.0 and abs(lon_deg) <= 180.0):
        return None
    return Reading(0.0, lat_deg, lon_deg, speed_m_s, course_deg)


class Gpsd(Receiver):
    """The position that gpsd reports. A lost connection is opened again; until then the last fix grows older."""

    def __init__(self, host: str = "127.0.0.1", port: int = 2947, first_fix_s: float = FIRST_FIX_S) -> None:
        super().__init__(first_fix_s)
        self._address = (host, port)
        self._task: asyncio.Task[None] | None = None

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        self.plane = plane
        host, port = self._address
        try:
            connection = await self._connect()
        except OSError as error:
            reason = error.strerror or str(error)
            raise LocationUnavailable(f"no gpsd at {host}:{port} ({reason}); start it, or name another") from None
        self._task = asyncio.create_task(self._follow(connection, clock))
        await self._first_fix(f"gpsd at {host}:{port}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _connect(self) -> Connection:
        return await asyncio.open_connection(*self._address, limit=MAX_LINE_BYTES)

    async def _follow(self, connection: Connection | None, clock: Callable[[], float]) -> None:
        while True:
            if connection is not None:
                reader, writer = connection
                try:
                    writer.write(WATCH)
                    await writer.drain()
                    while line := await reader.readline():
                        self._report(parse_report(line), clock())
                except (OSError, ValueError) as error:
                    logger.warning("gpsd: %s", error)
                finally:
                    writer.close()
                connection = None
            await asyncio.sleep(RETRY_S)
            with suppress(OSError):
                connection = await self._connect()
