import asyncio
import errno
import fcntl
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from desk import Desk, acquainted, taken

from earshot.errors import UsageError
from earshot.events import Event, EventType
from earshot.geometry import Circle
from earshot.live.spool import Spool, close_abandoned, read_records, read_spool
from earshot.records import COLUMNS, Kind, Record


def record(number: int) -> Record:
    return Record(float(number), "a", Kind.NOTE, detail=f"number {number}")


def test_segments_are_closed_by_rename_and_read_back_in_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a/b", 7, segment_bytes=200)
    for number in range(20):
        spool.write(record(number))
        spool.flush()
    assert [path.name for path in tmp_path.glob("*.open.jsonl")] == ["a%2fb-7-00006.open.jsonl"]
    assert [one.detail for one in read_records(tmp_path)] == [f"number {number}" for number in range(20)]
    spool.close()
    assert list(tmp_path.glob("*.open.jsonl")) == []
    rows = list(read_spool(tmp_path))
    assert [row["time"] for row in rows] == [float(number) for number in range(20)]
    assert list(rows[0]) == list(COLUMNS)
    assert math.isnan(rows[0]["x_m"])
    assert (rows[0]["bytes"], rows[0]["peer"]) == (-1, "")


def test_a_torn_last_record_is_absent_and_the_segment_is_closed_by_the_next_node(tmp_path: Path) -> None:
    (tmp_path / "a-1-00001.open.jsonl").write_bytes(b'{"time":1.0,"node":"a","kind":"note"}\n{"time":2.0,"no')
    (tmp_path / "a-2-00001.open.jsonl").write_bytes(b'{"ti')
    assert [one.time for one in read_records(tmp_path)] == [1.0]
    living = Spool(tmp_path, "b", 3)
    assert close_abandoned(tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-1-00001.jsonl", "b-3-00001.open.jsonl"]
    assert [one.time for one in read_records(tmp_path)] == [1.0]
    living.close()


def test_a_folder_that_is_not_a_spool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no spool in"):
        list(read_spool(tmp_path))
    (tmp_path / "a-1-00001.jsonl").write_text("nonsense\n")
    with pytest.raises(UsageError, match="line 1: not a record"):
        list(read_spool(tmp_path))
    with pytest.raises(UsageError, match="cannot write the spool"):
        Spool(tmp_path / "a-1-00001.jsonl", "a", 1)


WRITER = """
import sys
from earshot.live.spool import Record, Spool
spool = Spool(sys.argv[1], "victim", 1, segment_bytes=50_000)
number = 0
while True:
    spool.write(Record(float(number), "victim", "note", detail="x" * (number % 997)))
    number += 1
    if number % 7 == 0:
        spool.flush()
    if number == 2000:
        print("going", flush=True)
"""


def test_after_a_kill_every_record_is_whole_or_absent(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "going\n"
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    records = list(read_records(tmp_path))
    assert len(records) >= 1995
    assert [one.time for one in records] == [float(number) for number in range(len(records))]
    assert all(len(one.detail) == number % 997 for number, one in enumerate(records))
    close_abandoned(tmp_path)
    assert list(read_records(tmp_path)) == records


def test_a_live_exchange_is_recorded_as_the_simulator_records_it(tmp_path: Path) -> None:
    async def run() -> Event:
        desk = Desk(spool=tmp_path)
        async with desk.node("a", 10.0, 20.0) as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren", where="speed > 10")
            sent = await (await a.announce(EventType("Siren", {"speed": float}), within=Circle(300))).publish(speed=11)
            assert await taken(wanted, 1) == [sent]
            return sent

    sent = asyncio.run(run())
    rows = [row for row in read_spool(tmp_path) if row["kind"] not in ("position", "note")]
    seen = [(row["kind"], row["node"], row["peer"], row["packet"]) for row in rows if row["event"] == sent.id]
    assert seen[:4] == [
        ("publish", "a", "", ""),
        ("send", "a", "", "flood"),
        ("receive", "b", "a", "flood"),
        ("deliver", "b", "", ""),
    ]
    published, transmitted, received, delivered = [row for row in rows if row["event"] == sent.id][:4]
    assert Event.from_json(published["detail"]) == sent
    assert (published["x_m"], published["y_m"]) == (10.0, 20.0)
    assert transmitted["transmission"] == received["transmission"] > 0
    assert transmitted["bytes"] == received["bytes"] > 100
    assert (delivered["subscription"], delivered["hops"], received["hops"]) == ("b/1", 1, 1)
    assert {row["kind"] for row in rows} >= {"join", "leave", "announce", "subscribe"}
    assert [path.name for path in tmp_path.glob("*.open.jsonl")] == []


def test_only_its_owner_reads_a_spool_and_one_that_others_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "spool"
    Spool(folder, "a", 1).close()
    one = Spool(folder, "a", 2)
    one.write(Record(1.0, "a", Kind.JOIN))
    one.close()
    (segment,) = folder.glob("*.jsonl")
    assert (segment.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not caplog.records
    segment.chmod(0o644)
    Spool(folder, "a", 3).close()
    assert "1 segments of the spool" in caplog.text


class FullDisk:
    """Stands for `os.write` on a disk with so many bytes left."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.write = os.write

    def __call__(self, file: int, data: memoryview) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self.write(file, data[: self.room])
        self.room -= done
        return done


def test_a_full_disk_is_reported_once_tried_again_and_leaves_only_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    spool = Spool(tmp_path, "a", 1, trouble=reported.append)
    disk = FullDisk(100)
    monkeypatch.setattr("earshot.live.spool.AGAIN_S", 0.0)
    monkeypatch.setattr("earshot.live.spool.WAITING_BYTES", 2000)
    with monkeypatch.context() as full:
        full.setattr("os.write", disk)
        for number in range(60):
            spool.write(record(number))
            spool.flush()
        (segment,) = tmp_path.glob("*.open.jsonl")
        assert segment.read_bytes().endswith(b"}\n")
        written = len(list(read_records(tmp_path)))
        assert written == 1
        assert [message.partition(":")[0] for message in reported] == [f"cannot write the spool {tmp_path}"]
        assert spool.lost > 0
    spool.write(record(60))
    spool.flush()
    assert reported[1:] == [f"the spool is written again; {spool.lost:,} records are lost in all"]
    assert len(list(read_records(tmp_path))) + spool.lost == 61
    spool.close()


def test_while_the_disk_is_full_four_megabytes_of_records_wait_and_it_is_tried_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, "a", 1, trouble=lambda _: None)
    clock = [100.0]
    monkeypatch.setattr("earshot.live.spool.time.monotonic", lambda: clock[0])
    tried: list[float] = []

    def no_room(*_: object) -> int:
        tried.append(clock[0])
        raise OSError(errno.ENOSPC, "No space left on device")

    kilobyte = msgspec.structs.replace(record(1), detail="x" * 1024)
    size = len(msgspec.json.encode(kilobyte)) + 1
    with monkeypatch.context() as full:
        full.setattr("os.write", no_room)
        while not spool.lost:
            spool.write(kilobyte)
        assert 4 * 1024 * 1024 - size <= len(spool._buffer) <= 4 * 1024 * 1024
        assert tried == [100.0]
        for now in (100.99, 101.0, 101.5, 102.0):
            clock[0] = now
            spool.flush()
    assert tried == [100.0, 101.0, 102.0]
    clock[0] = 103.0
    spool.close()
    assert sum(1 for _ in read_records(tmp_path)) == (4 * 1024 * 1024 - 1) // size


def test_records_are_written_when_sixty_four_kilobytes_wait(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a", 1)
    line = msgspec.structs.replace(record(1), detail="x" * 900)
    size = len(msgspec.json.encode(line)) + 1
    for _ in range(-(-65_536 // size) - 1):
        spool.write(line)
    assert list(read_records(tmp_path)) == []
    spool.write(line)
    assert len(list(read_records(tmp_path))) == -(-65_536 // size)
    assert spool._segment_bytes == 16 * 1024 * 1024
    spool.close()


def test_a_disk_that_stays_full_until_the_end_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, "a", 1, trouble=lambda _: None)
    monkeypatch.setattr("os.write", FullDisk(10))
    spool.write(record(1))
    spool.close()
    assert spool.lost == 1
    assert list(tmp_path.iterdir()) == []


def test_a_node_with_a_full_disk_hears_delivers_and_moves_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b", spool=tmp_path) as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            siren = await a.announce("Siren")
            with monkeypatch.context() as full:
                full.setattr("earshot.live.spool.AGAIN_S", 0.0)
                full.setattr("earshot.live.spool.WAITING_BYTES", 3000)
                full.setattr("os.write", FullDisk(0))
                for number in range(50):
                    sent = await siren.publish(number=number)
                    assert await taken(wanted, 1) == [sent]
                assert b.drops["spool-not-written"] > 0
                assert b.drops["machine-failure"] == 0
            bell = await b.announce("Bell")
            rung = await bell.publish(n=1)
            assert rung.id in [one.event for one in read_records(tmp_path) if one.kind == Kind.PUBLISH]

    asyncio.run(run())


def test_a_damaged_line_is_stepped_over_and_named(tmp_path: Path) -> None:
    for folder in ("x", "y/z"):
        spool = Spool(tmp_path / folder, "a", 1)
        for number in range(3):
            spool.write(record(number))
        spool.close()
    (damaged,) = (tmp_path / "x").glob("*.jsonl")
    lines = damaged.read_bytes().splitlines(keepends=True)
    damaged.write_bytes(lines[0] + b"\x00\x00garbage\n" + lines[2])
    wrong: list[str] = []
    assert [one.time for one in read_records(tmp_path, wrong)] == [0.0, 2.0, 0.0, 1.0, 2.0]
    assert [one.partition(": not a record")[0] for one in wrong] == [f"{damaged}, line 2"]


def test_a_segment_that_is_being_opened_is_not_taken_for_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node that starts at that moment removed it, and all records of this life were lost."""
    lock = fcntl.flock

    def lock_late(*given: int) -> None:
        monkeypatch.setattr("fcntl.flock", lock)
        assert close_abandoned(tmp_path) == 0
        lock(*given)

    monkeypatch.setattr("fcntl.flock", lock_late)
    one = Spool(tmp_path, "a", 1)
    one.write(record(1))
    one.close()
    assert list(read_records(tmp_path)) == [record(1)]
