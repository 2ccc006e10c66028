"""Receivers of positions: before their first reading, while they are played back, and when they are closed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from earshot.errors import LocationUnavailable
from earshot.geometry import ORIGIN, STILL, LocalPlane, Position
from earshot.live.gpsd import Gpsd
from earshot.live.location import Fix
from earshot.live.nmea import NmeaFile, Reading
from earshot.live.trace_location import Track


def rmc(second: int, lat: str, lon: str = "00258.0000,W") -> str:
    return f"$GPRMC,1200{second:02},A,{lat},N,{lon},0.0,0.0,260126\n"


def test_before_its_first_reading_a_receiver_is_at_the_origin_at_no_time() -> None:
    assert [service.fix(9.0) for service in (Gpsd(), NmeaFile("gps"))] == [Fix(ORIGIN, STILL, 0.0)] * 2


def test_the_first_reading_chooses_the_plane_and_a_plane_that_is_given_stays() -> None:
    free, bound = Gpsd(), Gpsd()
    bound.plane = LocalPlane(50.0, 0.0)
    for service in (free, bound):
        service._report(None, 1.0)
        assert not service._first.is_set()
        service._report(Reading(0.0, 53.4, -2.9), 2.0)
        service._report(Reading(0.0, 54.4, -2.9), 3.0)
        assert service._first.is_set()
    assert (free.plane, bound.plane) == (LocalPlane(53.0, -3.0), LocalPlane(50.0, 0.0))
    assert free.fix(9.0) == Fix(LocalPlane(53.0, -3.0).position(54.4, -2.9), STILL, 3.0)


def test_a_log_that_crosses_into_another_degree_stays_on_the_plane_of_its_first_reading(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("noise\n" + rmc(0, "5320.0000") + rmc(1, "5340.0000"))
    service = NmeaFile(log)
    asyncio.run(service.start(lambda: 100.0, None))
    assert service.plane == LocalPlane(53.0, -3.0)
    lon_deg = -(2 + 58 / 60)
    assert service.fix(100.0).position == service.plane.position(53 + 20 / 60, lon_deg)
    assert service.fix(101.0) == Fix(service.plane.position(53 + 40 / 60, lon_deg), STILL, 101.0)
    asyncio.run(service.stop())


def test_a_device_is_closed_once_when_the_node_stops(tmp_path: Path) -> None:
    pipe = tmp_path / "gps"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)

    async def run() -> None:
        service = NmeaFile(pipe)
        os.write(held, rmc(0, "5320.0000").encode())
        await service.start(lambda: 7.0, None)
        opened = service._file
        os.fstat(opened)
        for _ in range(2):
            await service.stop()
            assert service._file == -1
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(opened)

    asyncio.run(run())
    os.close(held)


def test_a_device_without_a_fix_is_closed_and_says_how_long_it_was_awaited(tmp_path: Path) -> None:
    pipe = tmp_path / "gps"
    os.mkfifo(pipe)
    service = NmeaFile(pipe, first_fix_s=0.0)
    with pytest.raises(LocationUnavailable) as caught:
        asyncio.run(service.start(lambda: 7.0, None))
    assert str(caught.value) == f"{pipe} gave no fix within 0 s; check the receiver's view of the sky"
    assert service._file == -1
    with pytest.raises(LocationUnavailable, match=f"cannot read {tmp_path}/none: No such file"):
        asyncio.run(NmeaFile(tmp_path / "none").start(lambda: 7.0, None))


def test_a_track_begins_when_the_node_does_and_of_two_rows_of_one_time_the_later_counts() -> None:
    rows = [(12.0, 30.0, 0.0), (10.0, 0.0, 0.0), (13.0, 21.0, 9.0), (12.0, 20.0, 4.0)]
    track = Track(rows, None, 500.0)
    early, between, last, late = (track.fix(now) for now in (499.0, 501.0, 503.0, 510.0))
    assert (early.position, early.velocity, early.time) == (Position(0.0, 0.0), STILL, 499.0)
    assert (between.position, between.time) == (Position(10.0, 2.0), 501.0)
    assert (between.velocity.x_m_s, between.velocity.y_m_s) == (10.0, 2.0)
    assert last == late == Fix(Position(21.0, 9.0), STILL, 503.0)
