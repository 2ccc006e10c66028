"""The query of a watch by its parts: read positions in files, batches one after the other, and how Spark is asked."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from earshot import Event
from earshot.errors import LakeError, SettingsError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.watch import stream, watch_oracle
from earshot.pipeline.watch.alone import LEASE_S, Lease
from earshot.pipeline.watch.running_metrics import RunningMetrics
from earshot.pipeline.watch.spool_source import problem_of
from earshot.pipeline.watch.stream import Checkpoint, ConnectQuery, Watch
from earshot.pipeline.watch.watch_oracle import PLACES, WindowPositions, fold_positions
from earshot.pipeline.watch.watch_state import State, WatchSettings, day_of
from earshot.records import Record


def checkpoint(root: Path) -> Checkpoint:
    return Checkpoint(Folder(root), "_watches/live/checkpoint")


def test_read_positions_are_kept_as_spark_keeps_them(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path)
    assert (kept.batches(), kept.read(-1)) == ([], {})
    first: Any = {"spools": {"a-1": [1, 5]}}
    kept.begin(0, first)
    kept.begin(1, {})
    (tmp_path / "_watches/live/checkpoint/offsets/.1.crc").write_text("x")
    assert (kept.batches(), kept.read(0), kept.read(1)) == ([0, 1], first, {})
    text = (tmp_path / "_watches/live/checkpoint/offsets/0").read_text().splitlines()
    assert (text[0], json.loads(text[2])) == ("v1", first)
    about = json.loads(text[1])
    assert (about["batchWatermarkMs"], about["conf"], about["batchTimestampMs"] > 1e12) == (0, {}, True)
    assert list(json.loads((tmp_path / "_watches/live/checkpoint/metadata").read_text())) == ["id"]
    kept.end(0)
    done = (tmp_path / "_watches/live/checkpoint/commits/0").read_text().splitlines()
    assert (done[0], json.loads(done[1])) == ("v1", {"nextBatchWatermarkMs": 0})


@pytest.mark.parametrize("text", ["", "v1\n{}", "v2\n{}\n{}", "v1\n{}\n{}\n{}"])
def test_read_positions_that_cannot_be_read_are_refused(text: str, tmp_path: Path) -> None:
    kept = checkpoint(tmp_path)
    kept.begin(0, {})
    (tmp_path / "_watches/live/checkpoint/offsets/0").write_text(text)
    with pytest.raises(LakeError, match=r"the read positions of batch 0 in .* cannot be read"):
        kept.read(0)


def test_the_last_ten_batches_stay(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path)
    for batch in range(12):
        kept.begin(batch, {})
        (tmp_path / f"_watches/live/checkpoint/commits/.{batch}.crc").parent.mkdir(exist_ok=True)
        (tmp_path / f"_watches/live/checkpoint/commits/.{batch}.crc").write_text("x")
        kept.end(batch)
    assert kept.batches() == list(range(2, 12))
    names = {path.name for path in (tmp_path / "_watches/live/checkpoint/commits").iterdir()}
    assert names == {name for batch in range(2, 12) for name in (str(batch), f".{batch}.crc")}


# -- the query


class Spools:
    """A reader of spools that hold one more line at each look, up to an end."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.prepared = 0
        self.looked = threading.Event()

    def getDefaultReadLimit(self) -> str:
        return "limit"

    def prepareForTriggerAvailableNow(self) -> None:
        self.prepared += 1

    def latestOffset(self, start: dict[str, int], limit: str) -> dict[str, int]:
        assert limit == "limit"
        at = start.get("line", 0)
        if at >= self.end:
            self.looked.set()
        return {"line": min(at + 1, self.end)} if self.end else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[tuple[int, int]]:
        return [(start.get("line", 0), end["line"])]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The batches that are made."""
    found: list[Any] = []
    monkeypatch.setattr(stream, "rows_of_items", lambda session, shares, *_: (session, *shares))
    return found


def query(made: list[Any], root: Path, reader: Spools, every_s: float | None = None, step: Any = None) -> ConnectQuery:
    session: Any = SimpleNamespace(interruptAll=lambda: made.append("interrupted"))
    step = step or (lambda rows, batch: made.append((batch, rows[1])) if rows[0] is session else None)
    given: Any = reader
    return ConnectQuery(session, given, checkpoint(root), step, every_s)


def test_all_that_is_there_is_read_batch_by_batch_and_a_batch_that_may_not_be_whole_again(
    made: list[Any], tmp_path: Path
) -> None:
    reader = Spools(3)
    query(made, tmp_path, reader).awaitTermination()
    assert made == [(0, (0, 1)), (1, (1, 2)), (2, (2, 3))]
    assert reader.prepared == 1
    assert checkpoint(tmp_path).read(2) == {"line": 3}
    assert (tmp_path / "_watches/live/checkpoint/commits/2").is_file()
    made.clear()
    again = query(made, tmp_path, Spools(4))
    again.awaitTermination()
    assert made == [(2, (2, 3)), (3, (3, 4))]
    assert (again.isActive, again.exception()) == (False, None)
    again.stop()
    assert made[-1] != "interrupted"


def test_a_query_that_goes_on_looks_again_until_it_is_stopped(
    made: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LEAST_PAUSE_S", 0.001)
    reader = Spools(2)
    running = query(made, tmp_path, reader, every_s=0.0)
    assert reader.looked.wait(10.0)
    assert running.isActive
    running.stop()
    assert (running.isActive, running.exception(), reader.prepared) == (False, None, 0)
    assert made == [(0, (0, 1)), (1, (1, 2)), "interrupted"]


def test_what_fails_in_a_batch_is_raised_to_who_waits_unless_the_query_was_stopped(
    made: list[Any], tmp_path: Path
) -> None:
    def fail(*_: Any) -> None:
        raise LakeError("full")

    failed = query(made, tmp_path / "a", Spools(1), step=fail)
    with pytest.raises(LakeError, match="full"):
        failed.awaitTermination()
    assert isinstance(failed.exception(), LakeError)
    assert not (tmp_path / "a/_watches/live/checkpoint/commits").exists()
    begun, stopped = threading.Event(), threading.Event()

    def interrupted(*_: Any) -> None:
        begun.set()
        assert stopped.wait(10.0)
        raise LakeError("interrupted")

    running = query(made, tmp_path / "b", Spools(1), step=interrupted)
    running._session.interruptAll = stopped.set  # type: ignore[method-assign]
    assert begun.wait(10.0)
    running.stop()
    assert running.exception() is None


class Stream:
    """Spark's own reader and writer of streams, which note what they are asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.dataSource = SimpleNamespace(register=lambda source: self.asked.append(("register", source.name())))
        self.conf = SimpleNamespace(set=lambda *given: self.asked.append(("set", *given)))
        self.readStream = self.writeStream = self
        self._jsparkSession = None
        self.sparkContext = SimpleNamespace(defaultParallelism=3)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            self.asked.append((name, *given, named) if named else (name, *given))
            return self

        return step


@pytest.mark.parametrize(
    ("every_s", "once", "trigger"),
    [(2.5, False, {"processingTime": "2500 milliseconds"}), (2.5, True, {"availableNow": True}),
     (-1.0, False, {"processingTime": "0 milliseconds"})],
)  # fmt: skip
def test_spark_reads_the_spools_as_the_settings_say(
    every_s: float, once: bool, trigger: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "spools").mkdir()
    session: Any = Stream()
    arrow = ArrowLake(tmp_path / "lake")
    lake: Any = SimpleNamespace(session=session, arrow=arrow, folder=arrow.folder, has=lambda *_, **__: False)
    watch = Watch(lake, [str(tmp_path / "spools")], WatchSettings(every_s=every_s, most_bytes=77))
    with watch.running(once) as running:
        assert running is session
    options = {"folders": json.dumps([str(tmp_path / "spools")]), "tasks": "3", "mostBytes": "77",
               "ended": json.dumps([arrow.folder.root, "_watches/live/ended.json"])}  # fmt: skip
    assert session.asked == [
        ("set", "spark.sql.streaming.minBatchesToRetain", "10"), ("register", "earshot-spool"),
        ("format", "earshot-spool"), ("options", options), ("load",), ("foreachBatch", watch.step),
        ("option", "checkpointLocation", watch.checkpoint), ("trigger", trigger), ("start",), ("stop",),
    ]  # fmt: skip


# -- bounds


def test_a_record_may_be_dated_up_to_the_latest_time() -> None:
    assert problem_of(Record(5.0, "a", "position"), 5.0) is None
    assert problem_of(Record(5.5, "a", "position"), 5.0) == "a time in the future: 5.5"
    assert problem_of(Record(math.nan, "a", "position"), 5.0) == "a time in the future: nan"
    assert problem_of(Record(5.0, "", "position"), 5.0) == "a record without its node"
    assert problem_of(Record(5.0, "a", "nap"), 5.0) == "no kind of record: 'nap'"
    other = Event("Siren", {}, id="other", source="a", time=1.0).to_json().decode()
    assert problem_of(Record(5.0, "a", "publish", event="e", detail=other), 9.0) == (
        "the event is another than the record's"
    )
    assert problem_of(Record(5.0, "a", "publish", event="other", detail=other), 9.0) is None
    assert problem_of(Record(5.0, "a", "join", detail='{"protocol": ""}'), 9.0) == "a start without its protocol"
    wrong = problem_of(Record(5.0, "a", "subscribe", detail="Siren: ("), 9.0)
    assert wrong is not None
    assert wrong.startswith("subscribe: ")


def test_settings_may_be_less_than_one_second_and_days_begin_at_the_epoch() -> None:
    small = WatchSettings(delay_s=0.5, patience_s=0.25, forget_s=0.5, most_bytes=1)
    assert small.memory_s == 0.75
    for name in ("delay_s", "patience_s", "forget_s", "most_bytes"):
        with pytest.raises(SettingsError, match=f"{name} must be positive, got 0"):
            WatchSettings(**{name: 0})  # type: ignore[arg-type]
    assert (State().day, day_of(-5.0), day_of(86_399.0), day_of(86_400.0)) == (
        "1970-01-01", "1970-01-01", "1970-01-01", "1970-01-02",
    )  # fmt: skip
    assert State(newest=86_400.0).day == "1970-01-02"


def test_a_lease_that_was_never_taken_is_over(tmp_path: Path) -> None:
    now = [0.0]
    lease = Lease(ArrowLake(tmp_path), "live", lambda: now[0])
    with pytest.raises(LakeError, match="could not renew its lease"):
        lease.check()
    lease.take()
    now[0] = LEASE_S - 0.5
    lease.check()
    lease.give_back()
    now[0] = 0.5
    Lease(ArrowLake(tmp_path), "live", lambda: now[0]).take()


def test_metrics_without_minutes_forget_nothing() -> None:
    whole = RunningMetrics()
    whole.forget_minutes()
    assert whole.figure_rows(0) == []


def test_positions_of_a_window_are_read_once_a_file_and_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def places(_: Any, file: Any) -> pa.Table:
        read.append(file.path)
        row = {"network": "n", "protocol": "p", "node": file.path, "time": 1.0, "x_m": 2.0, "y_m": 3.0}
        return pa.Table.from_pylist([row], schema=PLACES)

    monkeypatch.setattr(watch_oracle, "_positions", places)
    monkeypatch.setattr(watch_oracle, "_read", {})
    monkeypatch.setattr(watch_oracle, "_built", {})

    def window(*names: str, root: str = "lake") -> Any:
        folder: Any = SimpleNamespace(root=root)
        files: Any = [SimpleNamespace(table="watched_log", path=name) for name in names]
        return WindowPositions(folder, files)

    first = window("a", "b")
    assert first.rows()["node"].to_pylist() == ["a", "b"]
    assert sorted(first.trajectories()) == [("n", "p", "a"), ("n", "p", "b")]
    assert first.trajectories() is window("a", "b").trajectories()
    assert sorted(window("b", "c").trajectories()) == [("n", "p", "b"), ("n", "p", "c")]
    assert read == ["a", "b", "c"]
    assert window("a", root="other").rows().num_rows == 1
    assert window("b").rows().num_rows == 1
    assert read == ["a", "b", "c", "a"]
    assert window().rows().num_rows == 0
    assert sorted(watch_oracle._read) == [("other", "watched_log/a")]
    assert len(watch_oracle._built) == 1


def test_where_nodes_were_last_is_folded_in_one_task_and_names_its_file() -> None:
    file = {
        "table": "watched_positions",
        "path": "watch=live/part.parquet",
        "rows": 3,
        "size_bytes": 9,
        "partition": {},
    }
    given: list[Any] = []

    def collected(task: Any, ddl: str) -> Any:
        given.append((task.func.__name__, task.args[1:], ddl))
        return SimpleNamespace(collect=lambda: [{"file": json.dumps(file)}])

    session: Any = SimpleNamespace(range=lambda *of: given.append(of) or SimpleNamespace(mapInArrow=collected))
    positions: Any = object()
    known = [("n", "p", "a"), ("n", "p", "a")]
    found = fold_positions(session, positions, known, "live")
    assert (found.table, found.path, found.rows) == ("watched_positions", "watch=live/part.parquet", 3)
    assert given == [(0, 1, 1, 1), ("_fold", (frozenset(known), "live"), "file string")]
