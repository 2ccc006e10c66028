"""The source of spools by its parts: lines of a piece, sums over a session, shares of tasks, and sessions that end."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from earshot.pipeline.watch import spool_source
from earshot.pipeline.watch.spool_segments import Piece, ReadPosition
from earshot.pipeline.watch.spool_source import (
    EndedSessions,
    SessionSum,
    Share,
    SpoolReader,
    SpoolSource,
    SpoolStreamReader,
    arrow_batches,
    read_share,
    rows_of,
    shares,
)
from earshot.records import Record

GOOD = '{"time": 5.0, "node": "n", "kind": "position", "x_m": 1.5, "y_m": 2.0}\n'
LATE = '{"time": 99.0, "node": "n", "kind": "position"}\n'


def piece(path: Path, text: str, start: int = 0, end: int | None = None) -> Piece:
    path.write_text(text)
    return Piece("folder/n-1", str(path), start, end, 1)


def lines(some: Piece, latest: float = 50.0) -> list[tuple[Any, ...]]:
    """At which byte, the problem, and the time of the record."""
    found = list(rows_of(some, latest))
    assert {(row[0], row[1], row[4]) for row in found} <= {(some.session, some.path or some.session, None)}
    return [(row[2], row[3], None if row[5] is None else row[5].time) for row in found]


def test_each_line_of_a_piece_is_a_record_or_a_problem_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    size = len(GOOD)
    assert lines(piece(path, GOOD + GOOD)) == [(0, None, 5.0), (size, None, 5.0)]
    assert lines(piece(path, GOOD + GOOD, start=size)) == [(size, None, 5.0)]
    assert lines(piece(path, GOOD + GOOD, end=size)) == [(0, None, 5.0)]
    assert lines(piece(path, GOOD + LATE)) == [(0, None, 5.0), (size, "a time in the future: 99", None)]
    assert lines(piece(path, GOOD + "torn")) == [(0, None, 5.0)]
    assert lines(piece(path, GOOD, end=size + 1)) == [
        (0, None, 5.0), (size, "the segment is shorter than it was", None),
    ]  # fmt: skip
    ((at, problem, time),) = lines(piece(path, "nonsense\n"))
    assert (at, problem[:14], time) == (0, "not a record: ", None)


def test_segments_that_are_gone_or_cannot_be_read_are_a_problem_each(tmp_path: Path) -> None:
    assert lines(Piece("s", "", 7, None, 3)) == [(0, "segment 3 and those up to the next are gone", None)]
    assert lines(Piece("s", str(tmp_path), 7, None, 3)) == [
        (7, "the segment cannot be read: Is a directory", None)
    ]  # fmt: skip


def test_sums_are_over_records_with_their_earliest_and_latest_time() -> None:
    whole = SessionSum()
    for line in (Record(5.0, "n", "join"), None, Record(3.0, "n", "publish"), Record(4.0, "n", "publish"), None):
        whole.add(line)
    assert whole == SessionSum("n", 3.0, 5.0, records=3, rejects=2, publications=2)


def test_a_task_gives_its_lines_and_then_the_sums_of_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_source.time, "time", lambda: 5.0 - 86_400.0)
    some = piece(tmp_path / "s.jsonl", GOOD + LATE)
    rows = [row for batch in read_share(Share([("folder/n-1", True, [some])])) for row in batch.to_pylist()]
    assert [(row["life"], row["at_byte"], row["problem"], row["more"]) for row in rows[:2]] == [
        ("folder/n-1", 0, None, None), ("folder/n-1", len(GOOD), "a time in the future: 99", None),
    ]  # fmt: skip
    assert (rows[0]["time"], math.isnan(rows[1]["time"])) == (5.0, True)
    assert (rows[0]["x_m"], rows[0]["y_m"], rows[0]["file"]) == (1.5, 2.0, some.path)
    last = rows[2]
    assert (last["life"], last["file"], last["more"], last["node"], last["kind"]) == (
        "folder/n-1", "folder/n-1", True, "", "",
    )  # fmt: skip
    assert json.loads(last["detail"]) == {
        "node": "n", "first": 5.0, "last": 5.0, "records": 1, "rejects": 1, "publications": 0,
    }  # fmt: skip


def test_rows_come_in_batches_with_unknown_places_as_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_source, "ROWS_A_BATCH", 2)
    rows = [("s", "f", number, None, None, Record(1.0, "n", "send")) for number in range(5)]
    found = list(arrow_batches(iter(rows)))
    assert [batch.num_rows for batch in found] == [2, 2, 1]
    assert all(math.isnan(value) for batch in found for value in batch.column("x_m").to_pylist())


def test_sessions_are_dealt_to_tasks_the_largest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 10, "b": 30, "c": 20, "d": 20}
    between = [
        (name, ReadPosition(1, 0, name == "b"), [Piece(name, "p", 5, 5 + size, 1)]) for name, size in sizes.items()
    ]
    given: list[Any] = []
    monkeypatch.setattr(spool_source, "pieces_between", lambda *some: given.append(some) or between)
    start: Any = {"start": {}}
    end: Any = {"end": {}}
    dealt = shares(start, end, 3, {"ended": {}})
    assert [[(name, more) for name, more, _ in share.sessions] for share in dealt] == [
        [("b", True), ("a", False)], [("c", False)], [("d", False)],
    ]  # fmt: skip
    assert [len(shares(start, end, tasks)) for tasks in (0, 1, 9)] == [1, 1, 4]
    assert given[0] == (start, end, {"ended": {}})


def test_sessions_that_are_quiet_leave_the_offsets_for_a_file_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [10_000.0]
    asked: list[Any] = []
    quiet: dict[str, dict[str, str]] = {"f": {"old": "1:5"}}
    monkeypatch.setattr(spool_source.time, "time", lambda: now[0])
    monkeypatch.setattr(spool_source, "quiet_sessions", lambda *some: asked.append(some) or quiet)
    ended = EndedSessions(str(tmp_path), "own/ended.json")
    assert ended.positions == {}
    start: Any = {"f": {"old": "1:5"}}
    end: Any = {"f": {"old": "1:5", "new": "1:9"}}
    assert ended.move(start, end, {}) == {"f": {"new": "1:9"}}
    assert asked == [(start, end, {}, 6_400.0, 9_940.0)]
    assert json.loads((tmp_path / "own" / "ended.json").read_text()) == quiet
    assert EndedSessions(str(tmp_path), "own/ended.json").positions == quiet
    now[0] += 59.0
    assert ended.move(start, end, {}) == end
    now[0] += 1.0
    quiet = {}
    assert ended.move(start, end, {}) == end
    assert len(asked) == 2
    nowhere = EndedSessions("", "")
    assert (nowhere.positions, nowhere.move(start, end, {}), len(asked)) == ({}, end, 2)


def spool(folder: Path) -> Path:
    folder.mkdir()
    (folder / "n-1-00001.jsonl").write_text(GOOD * 3)
    return folder


def test_the_source_reads_its_options(tmp_path: Path) -> None:
    folder = str(spool(tmp_path / "spool"))
    reader: Any = SpoolSource({"folders": json.dumps([folder]), "tasks": "7"}).reader(None)  # type: ignore[arg-type]
    assert (type(reader), reader.folders, reader.tasks) == (SpoolReader, [folder], 7)
    (share,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(share)) == 4
    plain: Any = SpoolSource({"path": folder}).reader(None)  # type: ignore[arg-type]
    assert (plain.folders, plain.tasks) == ([folder], 2)
    stream: Any = SpoolSource({"path": folder}).streamReader(None)  # type: ignore[arg-type]
    assert (stream.folders, stream.tasks, stream.most_bytes, stream.ended.positions) == ([folder], 2, 64 << 20, {})
    given = {"path": folder, "mostBytes": "9", "ended": json.dumps([str(tmp_path), "ended.json"])}
    limited: Any = SpoolSource(given).streamReader(None)  # type: ignore[arg-type]
    (tmp_path / "ended.json").write_text('{"f": {}}')
    assert (limited.most_bytes, limited.ended.positions) == (9, {"f": {}})
    assert limited.getDefaultReadLimit().max_bytes == 9


def test_a_stream_reads_to_what_is_there_now_or_was_when_it_was_prepared(tmp_path: Path) -> None:
    folder = spool(tmp_path / "spool")
    reader = SpoolStreamReader([str(folder)], 2, 1 << 20)
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert len(reader.partitions({}, first)) == 1
    assert reader.partitions(first, first) == []
    reader.prepareForTriggerAvailableNow()
    (folder / "m-1-00001.jsonl").write_text(GOOD)
    assert reader.latestOffset(first, ReadMaxBytes(1 << 20)) == first
    reader.all_there_is = None
    later = reader.latestOffset(first, ReadMaxBytes(1 << 20))
    assert sorted(later[str(folder)]) == ["m-1", "n-1"]
    rows = [
        row for share in reader.partitions(first, later) for batch in reader.read(share) for row in batch.to_pylist()
    ]
    assert [row["life"] for row in rows] == [f"{folder}/m-1"] * 2
