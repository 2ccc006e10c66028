"""The parts of a watch that need no Spark: segments, sessions, running metrics, standing subscriptions."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable

from earshot.cli.watch import table_lines
from earshot.errors import SettingsError, UsageError
from earshot.live.spool import Spool
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.watch import spool_source
from earshot.pipeline.watch.running_metrics import RunningMetrics, percentiles, three_digits
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.pipeline.watch.spool_segments import (
    Offsets,
    ReadPosition,
    advance,
    find_segments,
    pieces_between,
    quiet_sessions,
    without,
)
from earshot.pipeline.watch.spool_source import rows_of
from earshot.pipeline.watch.standing_subscriptions import StandingFile
from earshot.pipeline.watch.watch_oracle import trajectories_of
from earshot.pipeline.watch.watch_state import Changes, Commit, State, StateLog, WatchSettings, read_state
from earshot.records import Record
from earshot.records.sessions import SubscriptionSpan

LATEST = 1e12


class Follower:
    """Reads a folder bit by bit, as a stream does; remembers every line it got."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.offsets: Offsets = {}
        self.read: dict[str, list[float]] = {}
        self.problems: list[str] = []
        self.more: dict[str, bool] = {}
        self.ended: Offsets = {}

    def look(self, most_bytes: int | None = None, retire: bool = False) -> None:
        found = find_segments(self.folder)
        end = advance(self.offsets, found, most_bytes, self.ended)
        if retire:
            quiet = quiet_sessions(self.offsets, end, found, math.inf, math.inf)
            for folder, sessions in quiet.items():
                self.ended.setdefault(folder, {}).update(sessions)
            end = without(end, quiet)
        for life, until, pieces in pieces_between(self.offsets, end, self.ended):
            self.more[life.rpartition("/")[2]] = until.more
            for piece in pieces:
                for *_, problem, _, line in rows_of(piece, LATEST):
                    if line is None:
                        self.problems.append(problem)
                    else:
                        self.read.setdefault(life.rpartition("/")[2], []).append(line.time)
        self.offsets = end


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "look", "retire", "restart"]), st.integers(1, 40), st.integers(0, 6000)),
        max_size=40,
    )
)
def test_every_record_is_read_once_however_segments_grow_and_close(
    tmp_path_factory: pytest.TempPathFactory, doings: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    written: dict[str, list[float]] = {"a-1": [], "b-1": []}
    lives = {"a": 1, "b": 1}
    spools = {node: Spool(folder, node, 1, segment_bytes=300) for node in lives}
    follower = Follower(folder)
    for doing, count, size in doings:
        if doing in lives:
            times = written[f"{doing}-{lives[doing]}"]
            for _ in range(count):
                times.append(float(len(times)))
                spools[doing].write(Record(times[-1], doing, "note", detail="x" * (size % 97)))
            spools[doing].flush()
        elif doing == "restart":
            node = "ab"[count % 2]
            spools[node].close()
            lives[node] += 1
            written[f"{node}-{lives[node]}"] = []
            spools[node] = Spool(folder, node, lives[node], segment_bytes=300)
        else:
            follower.look(size or None, retire=doing == "retire")
    for spool in spools.values():
        spool.close()
    follower.look()
    assert follower.read == {life: times for life, times in written.items() if times}
    assert follower.problems == []


def test_a_quota_leaves_more_and_cuts_after_whole_lines(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a", 1)
    for number in range(400):
        spool.write(Record(float(number), "a", "note", detail="x" * 50))
    spool.flush()
    follower = Follower(tmp_path)
    follower.look(most_bytes=1)
    assert len(follower.read["a-1"]) == 40
    assert follower.more == {"a-1": True}
    follower.look()
    assert (len(follower.read["a-1"]), follower.more) == (400, {"a-1": False})
    spool.close()


def test_a_torn_line_waits_for_its_end_and_a_line_longer_than_the_quota_is_read_whole(tmp_path: Path) -> None:
    segment = tmp_path / "a-1-00001.open.jsonl"
    long = json.dumps({"time": 1.0, "node": "a", "kind": "note", "detail": "x" * 9000}) + "\n"
    segment.write_text(long[:8000])
    follower = Follower(tmp_path)
    follower.look(most_bytes=1)
    assert follower.read == {}
    segment.write_text(long + '{"time":2.0,"no')
    follower.look(most_bytes=1)
    assert (follower.read, follower.more) == ({"a-1": [1.0]}, {"a-1": False})
    segment.rename(tmp_path / "a-1-00001.jsonl")
    follower.look(most_bytes=1)
    assert (follower.read, follower.problems) == ({"a-1": [1.0]}, [])


def test_segments_that_vanish_unread_are_reported(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a", 1, segment_bytes=10)
    for number in range(4):
        spool.write(Record(float(number), "a", "note"))
        spool.flush()
    spool.close()
    follower = Follower(tmp_path)
    os.unlink(tmp_path / "a-1-00002.jsonl")
    follower.look()
    assert follower.read == {"a-1": [0.0, 2.0, 3.0]}
    assert follower.problems == ["segment 2 and those up to the next are gone"]


def test_a_copied_spool_with_both_names_of_a_segment_is_read_once(tmp_path: Path) -> None:
    line = '{"time":1.0,"node":"a","kind":"note"}\n'
    (tmp_path / "a-1-00001.open.jsonl").write_text(line)
    (tmp_path / "a-1-00001.jsonl").write_text(line + line.replace("1.0", "2.0"))
    follower = Follower(tmp_path)
    follower.look()
    assert follower.read == {"a-1": [1.0, 2.0]}


def test_a_spool_is_read_once_from_wherever_one_looks(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "all" / "car", "a", 1)
    spool.write(Record(1.0, "a", "note"))
    spool.close()
    (tmp_path / "link").symlink_to(tmp_path / "all" / "car")
    follower = Follower(tmp_path / "all")
    follower.look()
    for other in (tmp_path / "all" / "car", tmp_path / "link"):
        follower.folder = str(other)
        follower.look()
    assert follower.read == {"a-1": [1.0]}


def test_offsets_hold_only_sessions_that_may_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_source, "LOOK_FOR_ENDED_S", 0.0)
    ended = (str(tmp_path / "lake"), "_watches/live/ended.json")
    for life in range(5):
        spool = Spool(tmp_path / "spools", "a", life)
        spool.write(Record(float(life), "a", "note"))
        spool.close()

    def reader() -> spool_source.SpoolStreamReader:
        return spool_source.SpoolStreamReader([str(tmp_path / "spools")], 1, 1 << 20, ended)

    def read(start: Offsets, end: Offsets) -> list[float]:
        rows = [batch for share in reader().partitions(start, end) for batch in reader().read(share)]
        return [row["time"] for batch in rows for row in batch.to_pylist() if row["kind"]]

    first = reader().latestOffset({}, ReadAllAvailable())
    assert sorted(read({}, first)) == [0.0, 1.0, 2.0, 3.0, 4.0]
    (folder,) = first
    for path in (tmp_path / "spools").iterdir():
        os.utime(path, (0.0, 0.0))
    going_on = Spool(tmp_path / "spools", "b", 1)
    going_on.write(Record(9.0, "b", "note"))
    going_on.flush()
    second = reader().latestOffset(first, ReadAllAvailable())
    assert list(second[folder]) == ["b-1"]
    assert read(first, second) == [9.0]
    assert reader().latestOffset(second, ReadAllAvailable()) == second
    # One that goes on after all is read from where it was, also when the batch is made again.
    with (tmp_path / "spools" / "a-2-00002.jsonl").open("w") as file_again:
        file_again.write('{"time":7.0,"node":"a","kind":"note"}\n')
    third = reader().latestOffset(second, ReadAllAvailable())
    assert (read(second, third), read(second, third)) == ([7.0], [7.0])
    going_on.close()


def test_read_positions_are_what_they_were_written_as() -> None:
    assert ReadPosition.parse(str(ReadPosition(3, 120, True))) == ReadPosition(3, 120, True)
    assert ReadPosition.parse(None) == ReadPosition(1, 0, False)


# -- sessions


def doing(life: str, time: float, kind: str, subscription: str = "", detail: str = "") -> dict[str, Any]:
    node = life.partition("-")[0]
    return {
        "life": life, "node": node, "time": time, "kind": kind, "subscription": subscription, "detail": detail
    }  # fmt: skip


def test_subscriptions_last_until_they_are_withdrawn_the_node_leaves_or_falls_silent() -> None:
    sessions = WatchedSessions()
    for life, last in (("a-1", 50.0), ("b-1", 60.0), ("c-1", 70.0)):
        sessions.seen(life, life[0], 0.0, last)
    sessions.read_rows(
        [
            doing("b-1", 60.0, "leave", detail="stopped"),
            *(doing(f"{node}-1", 0.0, "join", detail='{"protocol": "steam"}') for node in "abc"),
            doing("a-1", 1.0, "subscribe", "a/1", "Siren"),
            doing("a-1", 5.0, "unsubscribe", "a/1"),
            doing("b-1", 2.0, "subscribe", "b/1", "Siren"),
            doing("b-1", 3.0, "subscribe", "b/1", "Traffic"),
            doing("c-1", 4.0, "subscribe", "c/1", "Siren"),
        ]
    )
    assert sessions.spans("now-{1}".format) == {
        "now-steam": [
            SubscriptionSpan("a", "a/1", "Siren", None, 1.0, 5.0),
            SubscriptionSpan("b", "b/1", "Siren", None, 2.0, 3.0),
            SubscriptionSpan("b", "b/1", "Traffic", None, 3.0, 60.0),
            SubscriptionSpan("c", "c/1", "Siren", None, 4.0, 70.0),
        ]
    }
    sessions.forget(settled=4.0, silent_since=55.0)
    assert [(span.subscription, span.filter) for span in sessions.subscription_spans()] == [
        ("b/1", "Traffic"),
        ("c/1", "Siren"),
    ]
    sessions.forget(settled=61.0, silent_since=55.0)
    assert list(sessions.sessions) == ["c-1"]


def test_the_watermark_waits_for_those_of_whom_there_is_more() -> None:
    sessions = WatchedSessions()
    assert sessions.watermark(10.0) == -np.inf
    sessions.seen("a-1", "a", 0.0, 100.0)
    sessions.seen("b-1", "b", 0.0, 30.0)
    assert sessions.watermark(10.0) == 90.0
    sessions.has_more("b-1", True)
    assert sessions.watermark(10.0) == 30.0
    sessions.has_more("b-1", False)
    assert sessions.watermark(10.0) == 90.0


def test_a_node_is_in_one_place_at_a_time() -> None:
    import pyarrow as pa

    rows = [
        ("n", "p", "a", 2.0, 5.0, 0.0), ("n", "p", "a", 1.0, 0.0, 0.0), ("n", "p", "a", 2.0, 9.0, 0.0),
        ("n", "q", "a", 1.0, 7.0, 7.0), ("o", "p", "a", 1.0, 3.0, 3.0),
    ]  # fmt: skip
    names = ["network", "protocol", "node", "time", "x_m", "y_m"]
    found = trajectories_of(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]))
    assert {key: one.times.tolist() for key, one in found.items()} == {
        ("n", "p", "a"): [1.0, 2.0],
        ("n", "q", "a"): [1.0],
        ("o", "p", "a"): [1.0],
    }
    assert found["n", "p", "a"].xs.tolist() == [0.0, 9.0]


# -- running metrics


@given(st.lists(st.floats(0.0001, 100.0), min_size=1, max_size=200))
def test_percentiles_of_counts_are_those_of_the_numbers(latencies: list[float]) -> None:
    rounded = [three_digits(latency) for latency in latencies]
    counts = {value: rounded.count(value) for value in rounded}
    shares = [0.0, 0.5, 0.95, 0.99, 1.0]
    assert percentiles(counts, shares) == pytest.approx(list(np.quantile(rounded, shares)))
    assert percentiles(counts, shares) == pytest.approx(list(np.quantile(latencies, shares)), rel=0.0051)


def pair_row(**changed: Any) -> dict[str, Any]:
    row = {
        "network": "n", "protocol": "steam", "type": "Siren", "area": "0,0", "minute": "1", "wanted": True, "got": True,
        "latency_s": 0.25, "reason": None, "pairs": 2, "hops": 6, "hops_counted": 2, "events": 0,
    }  # fmt: skip
    return row | changed


def test_running_metrics_are_the_same_after_a_night_in_the_lake(tmp_path: Path) -> None:
    metrics, log = RunningMetrics(), StateLog(ArrowLake(tmp_path), "live")
    batches = [
        [pair_row(), pair_row(got=False, latency_s=None, reason="never heard", pairs=1, hops=0, hops_counted=0)],
        [pair_row(pairs=0, events=3, hops=0, hops_counted=0, wanted=None, got=None, minute="500")],
    ]
    for batch, rows in enumerate(batches):
        changes = Changes()
        changes.counted([{**row, "is_settled": True} for row in rows])
        changes.counted([{**pair_row(pairs=9), "is_settled": False}])
        log.add(changes, batch)
        metrics.add(rows)
    metrics.forget_minutes()
    _, kept, whole = log.read({})
    assert whole.groups["n", "steam", "all", ""].met == kept.groups["n", "steam", "all", ""].met + 9
    assert kept.figure_rows(7) == metrics.figure_rows(7)
    log.rebase(WatchedSessions(), kept, 1)
    assert len(log.files.files()) == 1
    _, kept, _ = StateLog(ArrowLake(tmp_path), "live").read({})
    found = {(row["by"], row["key"], row["metric"]): row["value"] for row in kept.figure_rows(7)}
    assert {key: value for key, value in found.items() if key[0] == "all"} == {
        ("all", "", "events"): 3.0,
        ("all", "", "expected"): 3.0,
        ("all", "", "delivered"): 2.0,
        ("all", "", "met"): 2.0,
        ("all", "", "lost"): 1.0,
        ("all", "", "delivery_ratio"): 2 / 3,
        ("all", "", "precision"): 1.0,
        ("all", "", "hops"): 3.0,
        ("all", "", "latency_p50_s"): 0.25,
        ("all", "", "latency_p95_s"): 0.25,
        ("all", "", "latency_p99_s"): 0.25,
    }
    assert {key[1] for key in found if key[0] == "minute"} == {"500"}
    assert kept.loss_rows(7) == [
        {
            "batch": 7,
            "network": "n",
            "protocol": "steam",
            "type": "Siren",
            "area": "0,0",
            "reason": "never heard",
            "lost": 1,
        }
    ]


def test_the_table_in_the_terminal() -> None:
    metrics = RunningMetrics()
    metrics.add(
        [pair_row(), pair_row(got=False, latency_s=None, reason="never heard", pairs=1, hops=0, hops_counted=0)]
    )
    counts = {
        "batch": 4, "nodes": 2, "records": 1234, "events": 9, "open_events": 1, "late": 3, "rejects": 0,
        "subscriptions": 2, "matches": 5,
    }  # fmt: skip
    assert table_lines(Commit(4, counts, metrics.figure_rows(4), metrics.loss_rows(4))) == [
        "batch 4, 2 nodes, 1,234 records, 9 events (1 open), 3 late, 5 matches of 2 subscriptions",
        "         events  expected  got  ratio  p50 ms  p95 ms  p99 ms  lost",
        "n steam       0         3    2  0.667   250.0   250.0   250.0     1",
        "  Siren       0         3    2  0.667   250.0   250.0   250.0     1",
        "lost: never heard 1",
    ]


# -- standing subscriptions, settings


def test_standing_subscriptions_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "wanted.txt"
    file.write_text("# what we want\nSiren\n\n/CD[price < 20]\n")
    standing = StandingFile(file)
    assert [(span.subscription, span.filter) for span in standing.now.subscriptions] == [
        ("line-2", "Siren"),
        ("line-4", "/CD[price < 20]"),
    ]
    assert standing.refresh() == ()
    file.write_text("Traffic: severity > 2\nspeed >\nwithin 200 m\n")
    first, second = standing.refresh()
    assert first.startswith(f"{file}:2: ")
    assert second == f"{file}:3: it depends on the consumer's position, and a standing subscription has none"
    assert [span.filter for span in standing.now.subscriptions] == ["Traffic: severity > 2"]
    file.unlink()
    assert standing.refresh() == (
        f"cannot read the subscriptions {file}: No such file or directory; the subscriptions from before stay in force",
    )
    assert len(standing.now.subscriptions) == 1


def test_a_file_of_bad_filters_is_refused_with_every_line(tmp_path: Path) -> None:
    file = tmp_path / "wanted.txt"
    file.write_text("Siren: speed >\n/CD[\n")
    with pytest.raises(UsageError, match=r"wanted.txt:1: (?s:.)*wanted.txt:2: "):
        StandingFile(file)
    with pytest.raises(UsageError, match="No such file"):
        StandingFile(tmp_path / "absent.txt")


def test_settings_check_themselves() -> None:
    for wrong in ({"delay_s": 0.0}, {"patience_s": -1.0}, {"cell_m": 0.5}, {"name": ""}, {"forget_s": np.inf}):
        with pytest.raises(SettingsError):
            WatchSettings(**wrong)


def test_a_watch_counts_so_unless_it_is_set_otherwise() -> None:
    found = WatchSettings()
    assert (found.name, found.delay_s, found.patience_s, found.cell_m, found.every_s, found.forget_s, found.keep_s) == (
        "live", 10.0, 30.0, 1000.0, 2.0, 3600.0, None,
    )  # fmt: skip
    assert found.memory_s == 40.0
    assert WatchSettings(cell_m=1.0, keep_s=86_400.0).keep_s == 86_400.0, "a metre and a day are enough"
    for wrong in ({"keep_s": 86_399.0}, {"cell_m": np.inf}, {"cell_m": 0.99}, {"most_bytes": 0}, {"name": "a/b"}):
        with pytest.raises(SettingsError):
            WatchSettings(**wrong)


def test_a_watch_begins_before_its_first_batch_on_the_first_of_days() -> None:
    found = State()
    assert (found.batch, found.watermark, found.settled, found.newest, found.records) == (-1, None, None, None, 0)
    assert [found.day, State(newest=1e9).day, State(newest=-5.0).day] == ["1970-01-01", "2001-09-09", "1970-01-01"]
    assert read_state('{"batch": 3, "newest": 7.5}') == State(batch=3, newest=7.5)
    assert Commit(1, {}, [], []).batch_s == 0.0


def test_all_that_is_known_is_written_once_in_fifty_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, metrics = StateLog(ArrowLake(tmp_path), "live"), RunningMetrics()
    metrics.add([pair_row()])
    written = []
    monkeypatch.setattr(log.files, "put_instead", lambda file: written.append(file.path))
    monkeypatch.setattr(log, "_write", lambda _rows, first, last: SimpleNamespace(path=(first, last)))
    for batch in (0, 1, 49, 50, 51, 99, 100, 180, 181, 230):
        log.rebase(WatchedSessions(), metrics, batch)
    assert written == [(0, 0), (0, 50), (0, 100), (0, 180), (0, 230)]
    log.rebase(WatchedSessions(), RunningMetrics(), 999)
    assert len(written) == 5, "nothing is known, nothing is written"


def test_a_spool_that_is_gone_is_no_longer_waited_for(tmp_path: Path) -> None:
    log = StateLog(ArrowLake(tmp_path), "live")
    changes = Changes()
    changes.read_to("a-1", "a", 1.0, 2.0, True)
    changes.read_to("b-1", "b", None, None, True)
    changes.forgotten(["a-1", "never-known"])
    log.add(changes, 0)
    sessions, _, _ = log.read({})
    assert (set(sessions.sessions), sessions.waiting) == (set(), {"b-1"})


actions = st.tuples(
    st.sampled_from("abc"), st.sampled_from(["join", "seen", "subscribe", "leave", "wait", "base", "restart"])
)


@given(st.lists(st.lists(actions, max_size=4), max_size=6))
@settings(max_examples=10)
def test_sessions_read_back_are_those_that_were_held(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, str]]]
) -> None:
    """A watch that starts again at any moment knows what one knows that never stopped."""
    log = StateLog(ArrowLake(tmp_path_factory.mktemp("lake")), "live")
    sessions, metrics = WatchedSessions(), RunningMetrics()
    for batch, doings in enumerate(batches):
        now, changes, read = 10.0 * batch, Changes(), []
        for node, what in doings:
            spool = f"{node}-1"
            if what == "base":
                log._base_due = 0
            elif what == "restart":
                sessions, metrics, _ = log.read(sessions.networks.by_mark)
        log.rebase(sessions, metrics, batch - 1)
        for node, what in doings:
            spool = f"{node}-1"
            if what in ("seen", "wait"):
                sessions.seen(spool, node, now, now + 5.0)
                sessions.has_more(spool, what == "wait")
                changes.read_to(spool, node, now, now + 5.0, what == "wait")
            elif what in ("join", "subscribe", "leave"):
                detail = {"join": '{"protocol": "steam"}', "subscribe": "Siren", "leave": "stopped"}[what]
                read.append(doing(spool, now, what, f"{node}/1" if what == "subscribe" else "", detail))
        sessions.read_rows(read)
        changes.changed(sessions, sorted({row["life"] for row in read}))
        known = set(sessions.sessions)
        sessions.forget(now - 20.0, now - 30.0)
        changes.forgotten(sorted(known - set(sessions.sessions)))
        log.add(changes, batch)
        kept, _, _ = log.read({})
        kept.forget(now - 20.0, now - 30.0)
        assert (kept.sessions, kept.waiting) == (sessions.sessions, sessions.waiting)
