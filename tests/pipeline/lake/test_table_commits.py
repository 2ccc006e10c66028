"""What a commit writes for other programs, what its history says, and how a log and its files are kept small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from earshot.errors import LakeError
from earshot.pipeline.lake import table_log
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.table_log import Snapshot, TableLog
from earshot.pipeline.lake.tables import CONTACTS, RUNS, TABLES, WATCHES, Table, arrow_schema


@pytest.fixture
def lake(tmp_path: Path) -> ArrowLake:
    return ArrowLake(tmp_path)


def put(lake: ArrowLake, trace: str, *nodes: str) -> DataFile:
    """Replace a partition of contacts; its file."""
    file = lake.files.write_rows("contacts", [{"a": node} for node in nodes], trace=trace, range_m=1)
    lake.commit([file])
    return file


def log_of(lake: ArrowLake, kind: Table = CONTACTS) -> TableLog:
    return TableLog(lake.folder, kind)


def snapshot_of(lake: ArrowLake, kind: Table = CONTACTS) -> Snapshot:
    found = lake.snapshot(kind)
    assert found is not None
    return found


WATCH_TABLES = {name for name in TABLES if name.startswith("watch")}
CLUSTERED = {"traces", "profiles", "scenarios", "runs", "metrics"}


@pytest.mark.parametrize("name", TABLES)
def test_a_tables_files_and_log_are_as_its_readers_find_them(lake: ArrowLake, name: str) -> None:
    """Tables of small partitions share files; tables of a watch promise their versions for an hour, and keep their log
    for 20 s; all others for a week, and as long as Delta Lake does."""
    kind = TABLES[name]
    values = {column: 2.0 if kind.columns[column] == "double" else "x" for column in kind.partition_by}
    lake.write_rows(name, [{}], **values)
    folders = "" if name in CLUSTERED else "".join(f"{column}={value}/" for column, value in values.items())
    (file,) = snapshot_of(lake, kind).files
    assert file.path.rpartition("part-")[0] == folders
    found = deltalake.DeltaTable(f"{lake.folder.root}/{name}").metadata()
    assert found.partition_columns == ([] if name in CLUSTERED else list(kind.partition_by))
    assert found.configuration == (
        {
            "delta.deletedFileRetentionDuration": "interval 1 hours",
            "delta.logRetentionDuration": "interval 20 seconds",
            "delta.checkpointInterval": "10",
        }
        if name in WATCH_TABLES
        else {"delta.deletedFileRetentionDuration": "interval 168 hours"}
    )


def test_less_than_an_hour_is_promised_as_an_hour(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "contacts", replace(CONTACTS, keep_h=0.1))
    lake.write_rows("contacts", [], trace="x", range_m=1)
    found = deltalake.DeltaTable(f"{lake.folder.root}/contacts").metadata()
    assert found.configuration == {"delta.deletedFileRetentionDuration": "interval 1 hours"}


def test_a_commit_names_the_files_that_came_and_went_as_addresses(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = put(lake, "o'er", "a")
    monkeypatch.setattr(table_log, "time", SimpleNamespace(time=lambda: 1234.5678, monotonic=lambda: 0.0))
    new = put(lake, "o'er", "b", "c")
    lines = (Path(lake.folder.root) / "contacts" / "_delta_log" / f"{2:020d}.json").read_text().splitlines()
    actions = {name: value for line in lines for name, value in json.loads(line).items()}
    assert {name: actions["add"][name] for name in ("path", "size", "modificationTime", "dataChange", "stats")} == {
        "path": quote(new.path, safe="/="), "size": new.size_bytes, "modificationTime": 1_234_567, "dataChange": True,
        "stats": '{"numRecords": 2}',
    }  # fmt: skip
    assert {name: actions["remove"][name] for name in ("path", "size", "deletionTimestamp", "dataChange")} == {
        "path": quote(old.path, safe="/="), "size": old.size_bytes, "deletionTimestamp": 1_234_567, "dataChange": True,
    }  # fmt: skip
    assert actions["add"]["partitionValues"] == actions["remove"]["partitionValues"] == dict(new.partition)
    assert json.loads(actions["commitInfo"]["earshot"]) == {
        "change": "replace", "files": 1, "rows": 2, "bytes": new.size_bytes, "files_replaced": 1,
    }  # fmt: skip


def test_a_history_says_what_each_commit_did_the_newest_first(lake: ArrowLake) -> None:
    log = log_of(lake)
    assert log.history() == []
    first = put(lake, "city", "a", "b")
    second = put(lake, "sea", "c")
    log.replace([], [("city", "1.0")], "drop")
    deltalake.DeltaTable(f"{lake.folder.root}/contacts").delete("trace = 'sea'")  # by another program
    found = log.history()
    stamps = deltalake.DeltaTable(f"{lake.folder.root}/contacts").history()
    assert [one.pop("time") for one in found] == [one["timestamp"] / 1000.0 for one in stamps]
    assert found == [
        {"version": 4, "change": "delete"},
        {"version": 3, "change": "drop", "files": 0, "rows": 0, "bytes": 0, "files_replaced": 1},
        {"version": 2, "change": "replace", "files": 1, "rows": 1, "bytes": second.size_bytes, "files_replaced": 0},
        {"version": 1, "change": "replace", "files": 1, "rows": 2, "bytes": first.size_bytes, "files_replaced": 0},
        {"version": 0, "change": "create table"},
    ]


def test_a_log_is_there_once_its_table_was_made(lake: ArrowLake) -> None:
    log = log_of(lake)
    assert (log.exists(), log.snapshot(), log.compact(), log.vacuum(0.0)) == (False, None, (0, 0), [])
    assert log.replace([]) == set()
    assert not log.exists(), "nothing to replace, no commit"
    file = put(lake, "city", "a")
    assert (log.exists(), log.snapshot()) == (True, Snapshot(1, [file], list(CONTACTS.columns)))


def test_what_the_last_commit_replaced_is_known(lake: ArrowLake) -> None:
    log = log_of(lake)
    first, second = put(lake, "city", "a"), put(lake, "sea", "b")
    assert log.removed == ()
    log.replace([], [("city", "1.0"), ("land", "1.0")])
    assert log.removed == [first]
    log.replace([], [("sea", "1.0")])
    assert log.removed == [second]


def test_files_are_in_the_order_of_their_paths(lake: ArrowLake) -> None:
    for trace in "cab":
        put(lake, trace, "x")
    assert [file.partition["trace"] for file in snapshot_of(lake).files] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("keep_h", "version", "vacuums"),
    [
        (1.0, 64, [1.0]),
        (1.0, 128, [1.0]),
        (1.0, 63, []),
        (1.0, 65, []),
        (23.9, 64, [23.9]),
        (24.0, 64, []),
        (168.0, 64, []),
    ],
)
def test_a_table_that_forgets_within_a_day_is_vacuumed_every_64_commits(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch, keep_h: float, version: int, vacuums: list[float]
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(TableLog, "vacuum", lambda _, hours: asked.append(hours))
    TableLog(lake.folder, replace(WATCHES, keep_h=keep_h))._keep_small(version)
    assert asked == vacuums


def test_a_commit_vacuums_at_its_own_version(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    versions: list[int] = []
    monkeypatch.setattr(TableLog, "_keep_small", lambda _, version: versions.append(version))
    for _ in range(3):
        lake.write_rows("watches", [], watch="live")
    assert versions == [1, 2, 3] == [*range(1, snapshot_of(lake, WATCHES).version + 1)]


@pytest.mark.parametrize(("keep_h", "hours"), [(0.0, 0), (0.1, 1), (1.0, 1), (1.5, 2), (48.0, 48)])
def test_a_vacuum_keeps_whole_hours_whatever_the_table_promises(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch, keep_h: float, hours: int
) -> None:
    asked: list[Any] = []
    table = SimpleNamespace(vacuum=lambda *given, **named: asked.append((given, named)) or ["gone"])
    monkeypatch.setattr(TableLog, "_open", lambda _: table)
    assert log_of(lake).vacuum(keep_h) == ["gone"]
    log_of(lake).vacuum(keep_h, True)
    named = {"enforce_retention_duration": False, "full": True}
    assert asked == [((hours,), {"dry_run": dry_run, **named}) for dry_run in (False, True)]


def test_a_vacuum_removes_what_was_never_committed(lake: ArrowLake) -> None:
    put(lake, "city", "a")
    torn = lake.files.write_rows("contacts", [], trace="city", range_m=1)
    assert log_of(lake).vacuum(0.0, dry_run=True) == [torn.path]
    assert log_of(lake).vacuum(1.0) == []
    assert log_of(lake).vacuum(0.0) == [torn.path]
    assert [path for path in lake.folder.files("contacts") if path.endswith(torn.path)] == []
    assert lake.read("contacts")["a"].to_pylist() == ["a"]


def test_small_files_of_a_partition_are_joined(lake: ArrowLake) -> None:
    files = [lake.files.write_rows("contacts", [{"a": node}], trace="city", range_m=1) for node in "abc"]
    lake.commit(files)
    put(lake, "sea", "d")
    assert log_of(lake).compact() == (3, 1)
    assert log_of(lake).compact() == (0, 0)
    assert sorted(lake.read("contacts")["a"].to_pylist()) == ["a", "b", "c", "d"]


def compacting(monkeypatch: pytest.MonkeyPatch, failures: int, clock: list[float]) -> None:
    """Other commands' commits come first that many times; the clock goes on by 50 s at each look."""
    left = [failures]

    def compact(**_: Any) -> dict[str, Any]:
        left[0] -= 1
        if left[0] >= 0:
            raise CommitFailedError("overtaken")
        return {"numFilesRemoved": 5, "numFilesAdded": "2"}

    def monotonic() -> float:
        clock[0] += 50.0
        return clock[0]

    monkeypatch.setattr(TableLog, "_open", lambda _: SimpleNamespace(optimize=SimpleNamespace(compact=compact)))
    monkeypatch.setattr(table_log, "time", SimpleNamespace(monotonic=monotonic))


def test_joining_is_tried_again_for_two_minutes(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    compacting(monkeypatch, 2, clock := [1000.0])
    assert (log_of(lake).compact(), clock) == ((5, 2), [1150.0])
    compacting(monkeypatch, 3, clock)
    with pytest.raises(LakeError, match=r"^cannot use contacts in the lake .*: overtaken$"):
        log_of(lake).compact()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DeltaError("first\nsecond"), "first"), (OSError("\n  no disk \n"), "no disk"), (OSError(), "OSError"),
        (DeltaError(" "), "DeltaError"),
    ],
)  # fmt: skip
def test_an_error_of_the_table_or_the_disk_is_one_line(lake: ArrowLake, error: Exception, line: str) -> None:
    with pytest.raises(LakeError) as caught, log_of(lake)._errors():
        raise error
    assert str(caught.value) == f"cannot use contacts in the lake {lake.folder.root}: {line}"


def test_an_error_of_ours_and_a_fault_of_the_code_stay_what_they_are(lake: ArrowLake) -> None:
    for error in (LakeError("ours"), ZeroDivisionError()):
        with pytest.raises(type(error)) as caught, log_of(lake)._errors():
            raise error
        assert caught.value is error


def test_a_table_with_other_partitions_is_refused(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "contacts", replace(CONTACTS, partition_by=("trace",)))
    lake.write_rows("contacts", [], trace="city")
    monkeypatch.undo()
    with pytest.raises(LakeError) as caught:
        lake.read("contacts")
    assert str(caught.value) == (
        f"contacts in {lake.folder.root} was written with other partitions than this version reads; "
        "make it again in a new lake, with: earshot contacts TRACE --range RANGE_M"
    )


def test_a_table_that_another_command_makes_at_the_same_time_is_used(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = deltalake.DeltaTable.create

    def overtaken(*given: Any, **named: Any) -> None:
        make(*given, **named)
        raise DeltaError("it is there")

    monkeypatch.setattr(deltalake.DeltaTable, "create", overtaken)
    put(lake, "city", "a")
    assert lake.read("contacts")["a"].to_pylist() == ["a"]

    def broken(*_: Any, **__: Any) -> None:
        raise DeltaError("no room")

    monkeypatch.setattr(deltalake.DeltaTable, "create", broken)
    with pytest.raises(LakeError, match=r"cannot use runs in the lake .*: no room"):
        lake.write_rows("runs", [{"run": "r"}])


def test_a_commit_whose_answer_was_lost_is_not_made_twice(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    write = TableLog._write

    def unheard(self: TableLog, *given: Any) -> None:
        write(self, *given)
        raise CommitFailedError("no answer")

    monkeypatch.setattr(TableLog, "_write", unheard)
    put(lake, "city", "a")
    assert (snapshot_of(lake).version, lake.read("contacts")["a"].to_pylist()) == (1, ["a"])


def test_each_failed_attempt_waits_longer_up_to_a_fifth_of_a_second(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    write = TableLog._write

    def overtaken(self: TableLog, *given: Any) -> None:
        if len(waits) < 42:
            raise CommitFailedError("overtaken")
        write(self, *given)

    monkeypatch.setattr(TableLog, "_write", overtaken)
    monkeypatch.setattr(table_log, "random", SimpleNamespace(uniform=lambda least, most: most - least))
    clock = SimpleNamespace(sleep=waits.append, monotonic=lambda: 0.0, time=lambda: 0.0)
    monkeypatch.setattr(table_log, "time", clock)
    put(lake, "city", "a")
    assert waits == pytest.approx([0.005 * attempt for attempt in range(1, 41)] + [0.2, 0.2])


@pytest.mark.parametrize(("late_s", "is_given_up"), [(120.0, False), (120.1, True)])
def test_a_commit_is_tried_for_two_minutes(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch, late_s: float, is_given_up: bool
) -> None:
    put(lake, "city", "old")
    write, times = TableLog._write, [1000.0, 1000.0 + late_s]

    def overtaken(self: TableLog, *given: Any) -> None:
        if times:
            raise CommitFailedError("overtaken")
        write(self, *given)

    monkeypatch.setattr(TableLog, "_write", overtaken)
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=lambda: times.pop(0), time=lambda: 0.0)
    monkeypatch.setattr(table_log, "time", clock)
    if is_given_up:
        with pytest.raises(LakeError) as caught:
            put(lake, "city", "new")
        assert str(caught.value) == (
            f"contacts in {lake.folder.root} keeps being changed by other commands (overtaken); wait for them to end"
        )
    else:
        put(lake, "city", "new")
    assert lake.read("contacts")["a"].to_pylist() == ["old" if is_given_up else "new"]


def test_a_clustered_commit_that_is_overtaken_leaves_no_file_of_its_attempt(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.write_rows("runs", [{"run": run} for run in "abc"])
    write, failed = TableLog._write, []

    def once(self: TableLog, *given: Any) -> None:
        if not failed:
            failed.append(True)
            raise CommitFailedError("overtaken")
        write(self, *given)

    monkeypatch.setattr(TableLog, "_write", once)
    lake.write_rows("runs", [{"run": "b", "seed": 7}])
    assert sorted((row["run"], row["seed"]) for row in lake.read("runs").to_pylist()) == [
        ("a", None), ("b", 7), ("c", None),
    ]  # fmt: skip
    there = {path for path in lake.folder.files("runs") if path.endswith(".parquet")}
    (old,) = log_of(lake, RUNS).vacuum(0.0, dry_run=True)
    assert there == {f"runs/{file.path}" for file in snapshot_of(lake, RUNS).files} | {f"runs/{old}"}


MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "joined"),
    [
        ([1] * 7, []),
        ([1] * 8, range(8)),
        ([1] * 7 + [32 * MEBIBYTE] * 5, []),
        ([1] * 7 + [32 * MEBIBYTE - 1, 32 * MEBIBYTE], range(8)),
    ],
)
def test_a_ninth_file_below_32_mebibytes_joins_the_small_ones(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch, sizes: list[int], joined: range
) -> None:
    log = log_of(lake, RUNS)
    files = [DataFile("runs", f"{number}", 1, size, {}) for number, size in enumerate(sizes)]
    monkeypatch.setattr(log, "keys", lambda some: {file.path: {(f"r{file.path}",)} for file in some})
    rows = [{**dict.fromkeys(RUNS.columns), "run": name} for name in "xy"]
    table = pa.Table.from_pylist(rows, schema=arrow_schema("runs", with_partitions=True))
    monkeypatch.setattr(log, "read_file", lambda *_: table)
    new = DataFile("runs", "new", 2, 1, {})
    removed, added = log._recluster(Snapshot(1, files, []), {("new",)}, [new])
    assert [int(file.path) for file in removed] == [*joined]
    assert [file.rows for file in added] == ([2 * len(joined) + 2] if joined else [2])
