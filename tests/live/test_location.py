import asyncio
import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from desk import Desk, acquainted, free_port, taken, until

from earshot.cli.nodes import parse_location
from earshot.errors import LocationUnavailable, UnknownName
from earshot.geometry import STILL, LocalPlane, Position, Velocity
from earshot.live import Fix, Fixed, Gpsd, NmeaFile, TracePlayback
from earshot.live.gpsd import parse_report
from earshot.live.location import TrackedLocation
from earshot.live.nmea import KNOT_M_S, Reading, parse_line

LIVERPOOL = (53.4, -2.97)


def checksummed(body: str) -> str:
    total = 0
    for sign in body:
        total ^= ord(sign)
    return f"${body}*{total:02X}\r\n"


def rmc(second: int, lat_minutes: float, knots: float = 10.0, course: float = 0.0) -> str:
    return checksummed(f"GPRMC,1200{second:02},A,53{lat_minutes:07.4f},N,00258.2000,W,{knots},{course},150126,,")


def test_a_recommended_minimum_sentence_is_a_reading() -> None:
    assert parse_line("$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A") == Reading(
        764426119.0, 48 + 7.038 / 60, 11 + 31 / 60, 22.4 * KNOT_M_S, 84.4
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "$",
        "$GPRMC",
        "$GPRMC,123519,V,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W",
        "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6B",
        "$GPRMC,123519,A,xx07.038,N,01131.000,E,022.4,084.4,230394,003.1,W",
        "$GPRMC,999999,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W",
        "$GPRMC,123519,A,9907.038,N,01131.000,E,022.4,084.4,230394,003.1,W",
        "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47",
        "\x00\xff$GPRMC",
    ],
)
def test_other_and_damaged_sentences_are_not_readings(line: str) -> None:
    assert parse_line(line) is None


def started(service: Fixed | NmeaFile | TracePlayback, plane: LocalPlane | None = None, at: float = 1000.0) -> None:
    asyncio.run(service.start(lambda: at, plane))


def test_an_nmea_log_is_played_back_in_real_time_and_then_its_fix_grows_older(tmp_path: Path) -> None:
    log = tmp_path / "drive.nmea"
    log.write_text("noise\n" + rmc(0, 24.0) + rmc(10, 24.1))
    plane = LocalPlane(53.4, -2.97)
    service = NmeaFile(log)
    started(service, plane)
    a = plane.position(53.4, -(2 + 58.2 / 60))
    b = plane.position(53 + 24.1 / 60, -(2 + 58.2 / 60))
    halfway = service.fix(1005.0)
    assert halfway.position.distance_to(Position((a.x_m + b.x_m) / 2, (a.y_m + b.y_m) / 2)) < 1e-6
    assert halfway.velocity.y_m_s == pytest.approx((b.y_m - a.y_m) / 10)
    assert service.fix(1000.0).age_s(1000.0) == 0.0
    assert service.fix(1025.0) == Fix(b, STILL, 1010.0)
    assert service.fix(1025.0).age_s(1025.0) == 15.0


def test_a_device_is_read_as_data_arrive(tmp_path: Path) -> None:
    pipe = tmp_path / "gps"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)

    async def run() -> None:
        service = NmeaFile(pipe)
        os.write(held, rmc(0, 24.0).encode() + rmc(1, 24.0)[:20].encode())
        await service.start(time.time, None)
        assert service.plane == LocalPlane(53.0, -3.0)
        first = service.fix(time.time())
        os.write(held, rmc(1, 24.0)[20:].encode() + rmc(2, 25.0, 20.0, 90.0).encode())
        await until(lambda: service.fix(0.0).position != first.position)
        assert service.fix(0.0).velocity.x_m_s == pytest.approx(20.0 * KNOT_M_S)
        await service.stop()

    asyncio.run(run())
    os.close(held)


def test_a_trace_is_played_back_for_one_of_its_nodes(tmp_path: Path) -> None:
    trace = tmp_path / "town.csv"
    trace.write_text("time,node,x_m,y_m\n5,car,0,0\n5,bus,9,9\n7,car,20,0\nbroken,car,1,1\n7,bus,9\n")
    service = TracePlayback(trace, "car")
    started(service)
    assert service.fix(1001.0) == Fix(Position(10.0, 0.0), Velocity(10.0, 0.0), 1001.0)
    assert service.fix(1002.5) == Fix(Position(20.0, 0.0), STILL, 1002.0)
    with pytest.raises(UnknownName, match="did you mean 'car'"):
        started(TracePlayback(trace, "cat"))
    with pytest.raises(LocationUnavailable, match="2 nodes; say which"):
        started(TracePlayback(trace))


def test_floating_car_data_of_sumo_is_a_trace(shared_data: Path) -> None:
    service = TracePlayback(shared_data / "sumo-bologna" / "acosta_1800_2100.fcd.csv.gz")
    with pytest.raises(LocationUnavailable, match="1,305 nodes; say which"):
        started(service)


def test_degrees_become_metres_on_the_plane_around_the_nearest_whole_degree() -> None:
    service = Fixed(*LIVERPOOL)
    started(service)
    assert service.plane == LocalPlane(53.0, -3.0)
    assert service.fix(7.0) == Fix(LocalPlane(53.0, -3.0).position(*LIVERPOOL), STILL, 7.0)


@pytest.mark.parametrize("text", ["", "fixed", "fixed:1", "fixed:a,b", "plane:1,2,3", "gpsd:", "gpsd:x:y", "mars:1,2"])
def test_a_location_that_cannot_be_read_is_refused_with_the_forms_there_are(text: str) -> None:
    if text == "gpsd:":
        assert isinstance(parse_location(text), Gpsd)
        return
    with pytest.raises(LocationUnavailable, match="fixed:LAT,LON"):
        parse_location(text)


class Moving:
    """A service whose one fix is as old as it is."""

    plane = None
    at = Fix(Position(100.0, 0.0), Velocity(10.0, 0.0), 0.0)

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None: ...

    async def stop(self) -> None: ...

    def fix(self, now: float) -> Fix:
        return self.at


def test_a_stale_fix_is_reported_once_and_no_longer_extrapolated() -> None:
    warnings: list[str] = []
    service = Moving()
    where = TrackedLocation(service, warnings.append, stale_s=5.0)
    assert (where.position(2.0), where.velocity(2.0)) == (Position(120.0, 0.0), Velocity(10.0, 0.0))
    assert warnings == []
    assert (where.position(60.0), where.velocity(60.0)) == (Position(150.0, 0.0), STILL)
    assert warnings == ["stale-fix: 60 s old"]
    assert where.fix(60.0).age_s(60.0) == 60.0
    assert where.position(1.0) == Position(110.0, 0.0), "where it was while the fix was fresh"
    assert warnings[1:] == []
    service.at = Fix(Position(900.0, 0.0), STILL, 61.0)
    assert where.position(62.0) == Position(900.0, 0.0)
    assert warnings[1:] == ["fresh-fix: the location is known again"]


class Reporting(Moving):
    """A service that has a new fix each time it is asked."""

    def __init__(self, course: Callable[[float], Position]) -> None:
        self.course = course

    def fix(self, now: float) -> Fix:
        return Fix(self.course(now), Velocity(1.0, 0.0), now)


def test_a_node_knows_where_it_was_for_two_minutes() -> None:
    where = TrackedLocation(Reporting(lambda now: Position(now * now, 0.0)), [].append)
    for second in range(400):
        where.fix(float(second))
    for past in (280.0, 281.5, 398.25):
        before = math.floor(past)
        line = before**2 + (past - before) * (2 * before + 1)
        assert where.position(past).x_m == pytest.approx(line)
    assert where.position(399.0) == Position(399.0**2, 0.0)
    oldest = where.position(0.0)
    assert oldest == where.position(100.0), "before the oldest fix the node was there"
    assert oldest.x_m <= 280.0**2


def test_many_fixes_a_second_take_bounded_memory() -> None:
    where = TrackedLocation(Reporting(lambda now: Position(now, 0.0)), [].append)
    for step in range(40_000):
        where.fix(step / 100.0)
    assert len(where._recent) <= 2 + 2 * 120 / 0.25
    assert where.position(300.123).x_m == pytest.approx(300.123)


def test_a_past_position_is_rounded_to_the_precision_too() -> None:
    where = TrackedLocation(Reporting(lambda now: Position(now, 0.0)), [].append, precision_m=10.0)
    for second in range(100):
        where.fix(float(second))
    assert where.position(47.0) == Position(50.0, 0.0)


def test_precision_rounds_every_position_that_leaves_the_node() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("shy", 149.0, 251.0, precision_m=100.0) as shy, desk.node("b") as b:
            await acquainted(shy, b)
            assert b.peers()[0].position == Position(100.0, 300.0)
            wanted = b.subscribe("Here")
            await (await shy.announce("Here")).publish()
            assert (await taken(wanted, 1))[0].position == Position(100.0, 300.0)
            assert shy.fix().position == Position(149.0, 251.0)

    asyncio.run(run())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"nonsense",
        b'{"class":"TPV","mode":1,"lat":1,"lon":2}',
        b'{"class":"TPV","mode":3,"lat":"x","lon":2}',
        b'{"class":"TPV","mode":3,"lat":NaN,"lon":2}',
        b'{"class":"TPV","mode":3,"lat":91,"lon":2}',
        b'{"class":"TPV","mode":3,"lat":1}',
        b'{"class":"SKY"}',
    ],
)
def test_reports_without_a_position_are_not_readings(line: bytes) -> None:
    assert parse_report(line) is None


def test_a_report_of_gpsd_is_a_reading_without_a_time_of_its_own() -> None:
    report = b'{"class":"TPV","mode":2,"lat":90,"lon":-180,"speed":2.5,"track":45}'
    assert parse_report(report) == Reading(0.0, 90.0, -180.0, 2.5, 45.0)
    assert parse_report(b'{"class":"TPV","mode":3,"lat":1,"lon":2}') == Reading(0.0, 1.0, 2.0, 0.0, 0.0)
    for outside in (b'{"class":"TPV","mode":3,"lat":90.1,"lon":2}', b'{"class":"TPV","mode":3,"lat":1,"lon":180.1}'):
        assert parse_report(outside) is None


def test_a_gpsd_that_goes_away_leaves_an_ageing_fix_and_is_found_again() -> None:
    async def run() -> None:
        writers: list[asyncio.StreamWriter] = []
        report = {"class": "TPV", "mode": 3, "lat": 53.4, "lon": -2.97, "speed": 2.0, "track": 90.0}

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b'{"class":"VERSION"}\n')
            assert b"?WATCH" in await reader.readline()
            writers.append(writer)
            writer.write(json.dumps(report).encode() + b"\n")

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        service = Gpsd("127.0.0.1", server.sockets[0].getsockname()[1])
        await service.start(time.time, None)
        first = service.fix(time.time())
        assert service.plane is not None
        assert first.position == service.plane.position(53.4, -2.97)
        assert first.velocity.x_m_s == pytest.approx(2.0)
        writers[0].close()
        await until(lambda: len(writers) == 2)
        await until(lambda: service.fix(0.0).time > first.time)
        await service.stop()
        server.close()

    asyncio.run(run())


def test_no_gpsd_and_a_gpsd_without_a_fix_are_reported() -> None:
    async def run() -> None:
        with pytest.raises(LocationUnavailable, match=r"no gpsd at 127\.0\.0\.1:1 "):
            await Gpsd("127.0.0.1", 1).start(time.time, None)

        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b'{"class":"TPV","mode":1}\n')

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        with pytest.raises(LocationUnavailable, match="no fix within"):
            await Gpsd("127.0.0.1", server.sockets[0].getsockname()[1], first_fix_s=0.05).start(time.time, None)
        server.close()

    asyncio.run(run())


def test_the_real_gpsd_replaying_a_log_moves_a_node(tmp_path: Path) -> None:
    if shutil.which("gpsfake") is None or shutil.which("gpsd") is None:
        pytest.skip("gpsd and gpsfake are not installed (Debian: gpsd, gpsd-clients)")
    log = tmp_path / "drive.nmea"
    log.write_text("".join(rmc(second, 24.0 + second * 0.01, 36.0) for second in range(60)))
    port = free_port()
    command = ["gpsfake", "-q", "-c", "0.05", "-P", str(port), str(log)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as replay:
        try:

            async def run() -> None:
                async with asyncio.timeout(30):
                    while True:
                        service = Gpsd("127.0.0.1", port, first_fix_s=20.0)
                        try:
                            await service.start(time.time, None)
                            break
                        except LocationUnavailable as error:
                            if replay.poll() is not None:
                                pytest.skip(
                                    f"gpsfake does not run here: {(replay.stderr and replay.stderr.read()) or error}"
                                )
                            await asyncio.sleep(0.05)
                first = service.fix(time.time())
                await until(lambda: service.fix(0.0).position != first.position)
                assert service.plane == LocalPlane(53.0, -3.0)
                lat_deg, lon_deg = service.plane.lat_lon(service.fix(0.0).position)
                assert 53.4 <= lat_deg < 53.42
                assert lon_deg == pytest.approx(-2.97, abs=1e-3)
                await service.stop()

            asyncio.run(run())
        finally:
            replay.terminate()
