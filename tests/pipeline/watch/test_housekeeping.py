"""The files of a watch: joined, expired, deleted; what they hold stays the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from watched_lake import put_batch

from earshot.pipeline.lake import tables
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles, batches_of
from earshot.pipeline.watch import housekeeping, watch_state
from earshot.pipeline.watch.housekeeping import GROWING, Housekeeping
from earshot.pipeline.watch.running_metrics import RunningMetrics
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.pipeline.watch.watch_state import Changes, State, StateLog, WatchSettings

DAY_S = 86_400.0


def row(table: str, number: int) -> dict[str, Any]:
    return {"file": f"f{number}"} if table == "watched_rejects" else {"event": f"e{number}"}


def rows_in(lake: ArrowLake, table: str, watch: str = "live") -> list[tuple[int, str]]:
    name = "file" if table == "watched_rejects" else "event"
    return sorted((one["batch"], one[name]) for one in lake.read(table, watch=watch).to_pylist())


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.sampled_from(["batch", "batch", "batch", "again", "compact", "other", "torn"]), max_size=12))
@settings(max_examples=8)
def test_batches_are_kept_once_however_they_are_replaced_and_joined(
    tmp_path_factory: pytest.TempPathFactory, doings: list[str]
) -> None:
    lake = ArrowLake(tmp_path_factory.mktemp("lake"))
    files = BatchFiles(lake, "watched_late", "live")
    truth: dict[int, str] = {}
    others = 0
    for number, what in enumerate(doings):
        last = len(truth) - 1
        if what == "batch":
            truth[last + 1] = f"e{number}"
            put_batch(lake, "watched_late", [row("watched_late", number)], last + 1)
        elif what == "again" and truth:
            files.drop_after(last - 1)
            if batches_of(files.files()[-1])[1] < last if files.files() else True:
                truth[last] = f"e{number}"
                put_batch(lake, "watched_late", [row("watched_late", number)], last)
        elif what == "compact":
            files.compact(before=last)  # the last batch may still change
        elif what == "other":
            others += 1
            put_batch(lake, "watched_late", [row("watched_late", number)], others, watch="other")
        elif what == "torn":
            put_batch(lake, "watched_late", [row("watched_late", number)], last + 1)
            files.drop_after(last)
        assert rows_in(lake, "watched_late") == sorted(truth.items())
    assert len(rows_in(lake, "watched_late", "other")) == others


@pytest.mark.parametrize(
    ("hours", "batches"),
    [(3, 10), (2, 20), *[pytest.param(*size, marks=pytest.mark.long) for size in ((3, 20), (2, 40), (24, 80))]],
)
def test_an_hour_leaves_the_same_few_files_whatever_its_batches_and_the_hours_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, batches: int
) -> None:
    """A day at one batch each 2 s is 24 hours of 1,800 batches. Here an hour has few, and other times are as much
    shorter."""
    monkeypatch.setattr(housekeeping, "EVERY_BATCHES", batches)
    monkeypatch.setattr(housekeeping, "SOME_BATCHES", 5)
    monkeypatch.setattr(housekeeping, "GRACE_S", 4.0)
    monkeypatch.setattr(watch_state, "BASE_EVERY", 10)
    for name in (*GROWING, "watches", "watched_state"):
        monkeypatch.setitem(tables.TABLES, name, replace(tables.TABLES[name], keep_log_s=0.0))
    lake, clock = ArrowLake(tmp_path), Clock()
    keeper = Housekeeping(lake, WatchSettings(), clock)
    log = StateLog(lake, "live")
    sessions = WatchedSessions()
    sessions.seen("a-1", "a", 0.0, 1.0)
    most: Counter[str] = Counter()
    left: list[Counter[str]] = []
    for batch in range(hours * batches + 1):
        clock.now += 2.0
        log.rebase(sessions, RunningMetrics(), batch - 1)
        for table in GROWING[:2]:
            put_batch(lake, table, [row(table, batch)], batch, day="2026-11-16")
        changes = Changes()
        changes.read_to("a-1", "a", clock.now, clock.now, False)
        log.add(changes, batch)
        lake.write_rows("watches", [{"batch": batch}], watch="live")
        state = State(batch=batch, newest=clock.now, window=dict.fromkeys(range(max(0, batch - 4), batch + 1), 0.0))
        keeper.after(state)
        most |= data_files(tmp_path)
        if batch and batch % batches == 0:
            clock.now += housekeeping.GRACE_S
            keeper.after(state)
            left.append(data_files(tmp_path))
    for table in GROWING[:2]:
        assert [one for one, _ in rows_in(lake, table)] == list(range(hours * batches + 1))
    # The window's five batches are not joined. The state is one base and the changes since.
    assert left == [Counter({"watched_log": 6, "watched_pairs": 1, "watched_state": 11, "watches": 1})] * hours
    # While it runs, at most: what is to be joined, what was replaced in the last four seconds, and what was joined.
    joined = batches // 5
    assert most["watched_log"] <= 5 + 5 + 5 + joined
    assert most["watched_pairs"] <= 5 + 5 + joined
    assert most["watched_state"] <= 10 + 12
    assert most["watches"] <= 3
    logs = Counter(path.parent.parent.name for path in tmp_path.rglob("_delta_log/*") if path.is_file())
    assert max(logs.values()) <= 24  # a checkpoint each ten commits; what is older goes with it


def data_files(root: Path) -> Counter[str]:
    return Counter(
        path.relative_to(root).parts[0] for path in root.rglob("*.parquet") if "_delta_log" not in path.parts
    )


def test_batches_of_the_window_are_not_joined(tmp_path: Path) -> None:
    lake = ArrowLake(tmp_path)
    keeper = Housekeeping(lake, WatchSettings(), Clock())
    for batch in range(10):
        put_batch(lake, "watched_log", [row("watched_log", batch)], batch)
    keeper.tidy(State(batch=9, newest=5.0, window={7: 0.0, 8: 0.0, 9: 0.0}))
    found = [batches_of(file) for file in BatchFiles(lake, "watched_log", "live").files()]
    assert found == [(0, 6), (7, 7), (8, 8), (9, 9)]


def test_rows_of_days_that_are_over_expire(tmp_path: Path) -> None:
    lake = ArrowLake(tmp_path)
    keeper = Housekeeping(lake, WatchSettings(keep_s=2 * DAY_S), Clock())
    for batch, day in enumerate(["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-05"]):
        put_batch(lake, "watched_pairs", [row("watched_pairs", batch)], batch, day)
        put_batch(lake, "watched_pairs", [row("watched_pairs", batch)], batch, day, watch="other")
    keeper.tidy(State(batch=3, newest=4.5 * DAY_S))
    assert [batch for batch, _ in rows_in(lake, "watched_pairs")] == [2, 3]
    assert [batch for batch, _ in rows_in(lake, "watched_pairs", "other")] == [0, 1, 2, 3]


def test_files_that_were_replaced_stay_for_their_readers_and_go(tmp_path: Path) -> None:
    lake, clock = ArrowLake(tmp_path), Clock()
    keeper = Housekeeping(lake, WatchSettings(), clock)
    for number in range(3):
        lake.write_rows("watches", [{"batch": number}], watch="live")
        keeper.after(State(batch=number))
    there = list((tmp_path / "watches").glob("watch=live/*.parquet"))
    assert len(there) == 3
    clock.now += housekeeping.GRACE_S
    keeper.after(State(batch=3))
    assert len(list((tmp_path / "watches").glob("watch=live/*.parquet"))) == 1
    assert lake.read("watches").to_pylist()[0]["batch"] == 2


def test_new_columns_are_added_without_a_rewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that an earlier version wrote has fewer columns: old files stay, and have nulls there."""
    kind = tables.WATCHED_LATE
    older = {name: type for name, type in kind.columns.items() if name != "behind_s"}
    lake = ArrowLake(tmp_path)
    with monkeypatch.context() as before:
        before.setitem(tables.TABLES, kind.name, replace(kind, columns=older))
        put_batch(lake, kind.name, [row(kind.name, 0)], 0)
    (first,) = BatchFiles(lake, kind.name, "live").files()
    put_batch(lake, kind.name, [{**row(kind.name, 1), "behind_s": 2.0}], 1)
    assert [one["behind_s"] for one in lake.read(kind.name).to_pylist()] == [None, 2.0]
    assert first in BatchFiles(lake, kind.name, "live").files()
    BatchFiles(lake, kind.name, "live").compact(before=2)
    assert sorted(one["behind_s"] or 0.0 for one in lake.read(kind.name).to_pylist()) == [0.0, 2.0]
