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
from earshot.live.location import RecentFixes, TrackedLocation
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


def test_a_trace_of_one_node_needs_no_name_and_a_trace_of_none_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "town.csv"
    trace.write_text("time,node,x_m,y_m\n5,car,0,0\n7,car,20,0\n")
    service = TracePlayback(trace)
    started(service, LocalPlane(53.0, -3.0))
    assert (service.fix(1001.0).position, service.plane) == (Position(10.0, 0.0), LocalPlane(53.0, -3.0))
    trace.write_text("time,node,x_m,y_m\n")
    with pytest.raises(LocationUnavailable, match=r"has no position of any node|no position"):
        started(TracePlayback(trace))


def test_a_trace_in_degrees_is_on_the_plane_around_its_first_place(tmp_path: Path) -> None:
    trace = tmp_path / "town.csv"
    trace.write_text("time,node,lat_deg,lon_deg\n7,car,53.6,-2.4\n5,car,53.4,-2.97\n")
    service = TracePlayback(trace)
    started(service)
    assert service.plane == LocalPlane(53.0, -3.0)
    assert service.fix(1000.0).position == LocalPlane(53.0, -3.0).position(53.4, -2.97)


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


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        ((5.0, 5.0, 4.0), [5.0]),
        ((0.0, 0.1, 0.2), [0.0, 0.2]),
        ((0.0, 0.1, 0.25), [0.0, 0.1, 0.25]),
        ((0.0, 0.1, 0.2, 0.3), [0.0, 0.2, 0.3]),
        ((0.0, 10.0, 129.9), [0.0, 10.0, 129.9]),
        ((0.0, 10.0, 130.0), [10.0, 130.0]),
        ((0.0, 500.0), [0.0, 500.0]),
    ],
)
def test_fixes_are_remembered_for_two_minutes_and_a_quarter_of_a_second_apart(
    times: tuple[float, ...], kept: list[float]
) -> None:
    """What is older than two minutes is needed as long as the next fix is younger: the node was between them."""
    recent = RecentFixes()
    for time_s in times:
        recent.add(Fix(Position(time_s, 0.0), STILL, time_s))
    assert [fix.time for fix in recent._fixes] == kept


def test_between_two_fixes_a_node_has_the_velocity_of_the_earlier_one() -> None:
    recent = RecentFixes()
    for time_s, x_m, y_m in ((10.0, 0.0, 8.0), (14.0, 40.0, 0.0)):
        recent.add(Fix(Position(x_m, y_m), Velocity(time_s, 0.0), time_s))
    first, last = (
        Fix(Position(0.0, 8.0), Velocity(10.0, 0.0), 10.0),
        Fix(Position(40.0, 0.0), Velocity(14.0, 0.0), 14.0),
    )
    assert [recent.at(time_s) for time_s in (9.0, 14.0, 15.0)] == [first, last, last]
    assert recent.at(10.0) == first
    assert recent.at(11.0) == Fix(Position(10.0, 6.0), Velocity(10.0, 0.0), 11.0)


def test_a_service_is_asked_once_for_each_time_and_a_fixed_one_once() -> None:
    asked: list[float] = []

    class Counting(Reporting):
        def fix(self, now: float) -> Fix:
            asked.append(now)
            return super().fix(now)

    where = TrackedLocation(Counting(lambda now: Position(now, 0.0)), [].append)
    for now in (1.0, 1.0, 2.0):
        assert (where.position(now), where.velocity(now)) == (Position(now, 0.0), Velocity(1.0, 0.0))
    assert asked == [1.0, 2.0]
    asked.clear()
    assert (where.velocity(3.0), where.position(3.0), asked) == (Velocity(1.0, 0.0), Position(3.0, 0.0), [3.0])

    class CountingFixed(Fixed):
        def fix(self, now: float) -> Fix:
            asked.append(now)
            return super().fix(now)

    still = TrackedLocation(CountingFixed(0.0, 0.0), [].append)
    asked.clear()
    assert (still.position(5.0), still.velocity(6.0), asked) == (Position(0.0, 0.0), STILL, [])


def test_a_fix_of_just_the_age_that_is_allowed_is_not_stale() -> None:
    warnings: list[str] = []
    where = TrackedLocation(Moving(), warnings.append, stale_s=5.0)
    assert (where.velocity(5.0), where.exact(5.0), where.stale) == (Velocity(10.0, 0.0), Position(150.0, 0.0), False)
    assert (where.velocity(5.5), where.exact(5.5), where.stale) == (STILL, Position(150.0, 0.0), True)
    assert TrackedLocation(Moving(), warnings.append).stale_s == 10.0


def test_after_a_clock_was_set_back_a_node_asks_for_its_place_anew() -> None:
    where = TrackedLocation(Reporting(lambda now: Position(now, 0.0)), [].append)
    assert where.position(500.0) == Position(500.0, 0.0)
    assert where.position(3.0) == Position(500.0, 0.0), "before its oldest fix it was there"
    where.forget()
    assert (where.position(3.0), len(where._recent)) == (Position(3.0, 0.0), 1)


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
        b'{"class":"TPV","mode":3,"lat":1,"lon":1' + b"0" * 400 + b"}",
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


class Wire:
    """A connection to gpsd that gives these lines and then ends, or waits forever."""

    def __init__(self, *lines: bytes, ends: bool = True) -> None:
        self.lines, self.ends = list(lines), ends
        self.sent: list[bytes] = []
        self.closed = 0

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    async def drain(self) -> None: ...

    async def readline(self) -> bytes:
        if not self.lines and not self.ends:
            await asyncio.Event().wait()
        return self.lines.pop(0) if self.lines else b""

    def close(self) -> None:
        self.closed += 1


def test_a_lost_gpsd_is_asked_for_every_two_seconds_and_then_watched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Wire(b'{"class":"TPV","mode":3,"lat":1,"lon":2}\n', b"noise\n"), Wire(ends=False)
    answers: list[Wire | OSError] = [first, OSError("nobody"), OSError("nobody"), second]
    waits: list[float] = []

    async def open_connection(host: str, port: int, limit: int) -> tuple[Wire, Wire]:
        assert (host, port, limit) == ("127.0.0.1", 2947, 65_536)
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer, answer

    sleep = asyncio.sleep

    async def no_sleep(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    monkeypatch.setattr("earshot.live.gpsd.asyncio.sleep", no_sleep)

    async def run() -> None:
        service = Gpsd()
        plane = LocalPlane(1.0, 2.0)
        await service.start(lambda: 77.0, plane)
        assert service.fix(0.0) == Fix(plane.position(1.0, 2.0), STILL, 77.0)
        while not second.sent:
            await sleep(0)
        assert (waits, first.sent, first.closed, second.sent, second.closed) == (
            [2.0, 2.0, 2.0], [b'?WATCH={"enable":true,"json":true}\n'], 1, first.sent, 0,
        )  # fmt: skip
        await service.stop()
        assert second.closed == 1, "a service that stops leaves gpsd"
        await service.stop()

    asyncio.run(run())


def test_a_receiver_waits_half_a_minute_for_its_first_fix() -> None:
    assert (Gpsd()._first_fix_s, NmeaFile("gps")._first_fix_s) == (30.0, 30.0)


def test_a_device_that_ends_is_no_longer_read_and_a_line_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence has at most 82 characters: of a line without end the last 256 are kept for what follows."""
    removed: list[int] = []

    async def run() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "remove_reader", removed.append)
        service = NmeaFile("gps")
        service._file, writer = os.pipe()

        def arrives(data: bytes, at: float) -> None:
            os.write(writer, data)
            service._read(lambda: at)

        arrives(b"x" * 4000, 5.0)
        assert len(service._rest) == 4000
        arrives(b"y" * 300, 5.0)
        assert len(service._rest) == 256 + 300
        arrives(b"\n" + rmc(1, 24.0)[:30].encode(), 6.0)
        arrives(rmc(1, 24.0)[30:].encode(), 7.0)
        assert (service.fix(0.0).time, removed) == (7.0, [])
        os.close(writer)
        service._read(lambda: 8.0)
        assert (service.fix(0.0).time, removed) == (7.0, [service._file])
        await service.stop()

    asyncio.run(run())


def test_a_log_is_played_on_the_plane_around_its_first_place(tmp_path: Path) -> None:
    log = tmp_path / "drive.nmea"
    log.write_text(rmc(0, 24.0) + rmc(10, 31.0))
    service = NmeaFile(log)
    started(service)
    assert service.plane == LocalPlane(53.0, -3.0)


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
