"""Parts of a watch without Spark: standing subscriptions that match, metrics that are forgotten, rows of sessions."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from spool_cases import write_spools

from earshot import Event
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.oracle.workloads import event_row
from earshot.pipeline.watch.running_metrics import MINUTES, MetricSums, RunningMetrics
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.pipeline.watch.spool_source import SpoolReader, SpoolSource
from earshot.pipeline.watch.spools import _run_row
from earshot.pipeline.watch.standing_subscriptions import StandingFile, StandingMatcher, read_standing
from earshot.pipeline.watch.stream import Watch
from earshot.records import Record
from earshot.records.sessions import Session


def test_a_standing_subscription_matches_events_of_every_network(tmp_path: Path) -> None:
    (tmp_path / "wanted").write_text("# two\nSiren: speed > 10\nSiren: true\n")
    matcher = StandingMatcher(read_standing(tmp_path / "wanted"))
    events = [("n", "a", 20.0), ("m", "b", 5.0)]
    rows = [
        event_row(json.dumps([network, "steam"]), Event("Siren", {"speed": speed}, id=id, source=f"c{id}", time=speed))
        for network, id, speed in events
    ]
    (found,) = matcher([pa.RecordBatch.from_pylist(rows)])
    names = ("network", "protocol", "event", "type", "source", "published_at", "subscription", "filter")
    assert sorted(tuple(row[name] for name in names) for row in found.to_pylist()) == [
        ("m", "steam", "b", "Siren", "cb", 5.0, "line-3", "Siren: true"),
        ("n", "steam", "a", "Siren", "ca", 20.0, "line-2", "Siren: speed > 10"),
        ("n", "steam", "a", "Siren", "ca", 20.0, "line-3", "Siren: true"),
    ]
    assert matcher.matcher.lookup() is matcher.matcher.lookup()


def test_changes_of_a_file_are_counted(tmp_path: Path) -> None:
    (file := tmp_path / "wanted").write_text("Siren\n")
    standing = StandingFile(file)
    seen = [standing.changes]
    for text in (None, "Traffic\n", "Traffic and more\n", None):
        if text is not None:
            file.write_text(text)
        standing.refresh()
        seen.append(standing.changes)
    assert seen == [0, 0, 1, 2, 2]


def counted(minute: int, **changed: Any) -> dict[str, Any]:
    row = {"network": "n", "protocol": "p", "type": "T", "area": "0,0", "minute": str(minute), "reason": None}
    pairs = {"events": 0, "pairs": 1, "wanted": True, "got": True, "latency_s": 0.5, "hops": 2, "hops_counted": 1}
    return {**row, **pairs, **changed}


def test_the_last_180_minutes_are_kept_and_all_else_that_is_no_minute() -> None:
    metrics = RunningMetrics()
    metrics.forget_minutes()
    metrics.add(counted(minute) for minute in (1, 2, 3, MINUTES + 2))
    metrics.forget_minutes()
    kept = [key for *_, by, key in metrics.groups if by == "minute"]
    assert (kept, MINUTES) == (["3", "182"], 180)
    assert {by for _, _, by, _ in metrics.groups} == {"all", "type", "area", "minute"}


def test_pairs_count_by_what_was_wanted_and_what_came() -> None:
    metrics = RunningMetrics()
    metrics.add(
        [
            counted(1, events=3, pairs=0),
            counted(1, pairs=4),
            counted(1, pairs=2, got=False, hops=0, hops_counted=0, reason="expired"),
            counted(1, pairs=1, wanted=False),
        ]
    )
    whole = metrics.groups["n", "p", "all", ""]
    assert whole == MetricSums(3, 6, 5, 4, 4, 2, {0.5: 4})
    figures = dict(whole.figures())
    assert (figures["lost"], figures["delivery_ratio"], figures["precision"], figures["hops"]) == (2, 4 / 6, 0.8, 2.0)
    assert metrics.losses == Counter({("n", "p", "T", "0,0", "expired"): 2})
    assert metrics.loss_rows(7) == [
        {"batch": 7, "network": "n", "protocol": "p", "type": "T", "area": "0,0", "reason": "expired", "lost": 2}
    ]
    row = {"batch": 7, "network": "n", "protocol": "p", "by": "all", "key": "", "metric": "events", "value": 3.0}
    assert row in metrics.figure_rows(7)
    assert dict(MetricSums(events=1).figures()) == {"events": 1, "expected": 0, "delivered": 0, "met": 0, "lost": 0}


def test_a_copy_of_the_metrics_does_not_change_with_them() -> None:
    metrics = RunningMetrics()
    metrics.add([counted(1, reason="expired")])
    copy = metrics.copy()
    metrics.add([counted(1, reason="expired")])
    assert copy.groups["n", "p", "all", ""].expected == 1
    assert list(copy.losses.values()) == [1]


def read(sessions: WatchedSessions, life: str, time: float, kind: str, detail: str = "") -> None:
    sessions.read_rows(
        [{"life": life, "node": life[0], "time": time, "kind": kind, "subscription": "", "detail": detail}]
    )


def test_announcements_last_until_the_sessions_last_record() -> None:
    sessions = WatchedSessions()
    read(sessions, "a-1", 0.0, "join", '{"protocol": "steam"}')
    read(sessions, "a-1", 1.0, "announce", "Siren")
    read(sessions, "a-1", 2.0, "announce", "Jam")
    read(sessions, "a-1", 3.0, "unannounce", "Jam")
    sessions.seen("a-1", "a", 0.0, 9.0)
    assert sessions.announcement_rows("{0}/{1}".format) == [
        {"workload": f"{network}/steam", "node": "a", "type": type, "proximity": None, "start": start, "end": end}
        for network in [next(iter(sessions)).network]
        for type, start, end in (("Siren", 1.0, 9.0), ("Jam", 2.0, 3.0))
    ]


def test_who_is_present_and_in_which_community() -> None:
    sessions = WatchedSessions()
    for life, protocol in (("a-1", "steam"), ("b-1", "drip"), ("c-1", "steam")):
        read(sessions, life, 0.0, "join", json.dumps({"protocol": protocol}))
    read(sessions, "c-1", 5.0, "leave", "stopped")
    network = next(iter(sessions)).network
    assert sessions.present_nodes() == {"a", "b"}
    assert sessions.communities == [(network, "drip"), (network, "steam")]
    assert sessions.community_of() == [("a-1", network, "steam"), ("b-1", network, "drip"), ("c-1", network, "steam")]


def test_sessions_that_can_no_longer_matter_are_forgotten() -> None:
    def left(settled: float, silent_since: float, waiting: tuple[str, ...] = ()) -> list[str]:
        sessions = WatchedSessions()
        sessions.waiting.update(waiting)
        for life in ("gone-1", "here-1"):
            read(sessions, life, 0.0, "join", '{"protocol": "steam"}')
        read(sessions, "gone-1", 10.0, "leave", "stopped")
        sessions.seen("here-1", "here", 0.0, 20.0)
        sessions.forget(settled, silent_since)
        return list(sessions.sessions)

    assert left(10.0, 20.0) == ["gone-1", "here-1"]
    assert left(10.1, 20.0) == ["here-1"]
    assert left(10.0, 20.1) == ["gone-1"]
    assert left(10.1, 20.1, ("gone-1",)) == ["gone-1"]


def test_the_watermark_is_the_delay_behind_the_newest_record_and_waits_for_sessions_that_are_not_read() -> None:
    sessions = WatchedSessions()
    assert sessions.watermark(5.0) == -math.inf
    for life, last in (("a-1", 100.0), ("b-1", 90.0)):
        read(sessions, life, 0.0, "join", '{"protocol": "steam"}')
        sessions.seen(life, life[0], 0.0, last)
    assert sessions.watermark(5.0) == 95.0
    sessions.waiting = ("b-1", "unknown")
    assert (sessions.watermark(5.0), sessions.watermark(20.0)) == (90.0, 80.0)
    sessions.waiting = ("a-1",)
    assert sessions.watermark(5.0) == 95.0


def test_the_source_of_spools_reads_its_options() -> None:
    plain = SpoolSource({"path": "/spools"})
    assert (plain._folders(), plain._tasks()) == (["/spools"], 2)
    reported = SpoolSource({"path": "/spools", "folders": '["/a", "/b"]', "tasks": "7"})
    assert (reported._folders(), reported._tasks()) == (["/a", "/b"], 7)
    assert SpoolSource({})._folders() == []


def test_a_folder_of_spools_is_read_whole_and_once(tmp_path: Path) -> None:
    write_spools(tmp_path / "car", [Record(time=float(n), node="a", kind="send") for n in range(3)])
    reader = SpoolReader([str(tmp_path)], tasks=2)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist() if row["more"] is None]
    assert [(row["time"], row["problem"]) for row in rows] == [(0.0, None), (1.0, None), (2.0, None)]


def test_a_recording_is_a_run_from_the_first_record_of_its_network_to_the_last() -> None:
    sessions: Any = [
        Session("a", protocol="cbf", settings={"b": 1, "a": 2}, network="x", first=5.0, last=8.0),
        Session("b", protocol="cbf", network="x", first=2.0, last=6.0),
        Session("c", protocol="cbf", network="y", first=0.0, last=99.0),
        Session("d", protocol="steam", network="x", first=0.0, last=99.0),
    ]
    row = _run_row(sessions, "monday", "monday-cbf", ("x", "cbf"))
    assert row == {
        "run": "monday-cbf", "campaign": "monday", "scenario": "monday", "point": "monday", "network": "live x",
        "assumes": "", "range_m": None, "changed": "{}", "base": "{}", "trace": "", "window": "",
        "workload": "monday-cbf", "protocol": "cbf", "variant": "cbf", "settings": '{"a": 2, "b": 1}', "seed": 0,
        "duration_s": 6.0, "warm_up_s": 0.0, "status": "done", "error": None, "traceback": None, "took_s": 0.0,
        "processor_s": None,
    }  # fmt: skip
    unknown: Any = [Session("a", protocol="cbf", first=0.0, last=1.0)]
    assert _run_row(unknown, "m", "m", (unknown[0].network, "cbf"))["network"] == "live"


def test_a_watch_runs_until_it_is_stopped_unless_it_is_set_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []
    (tmp_path / "spools").mkdir()
    lake: Any = SimpleNamespace(arrow=ArrowLake(tmp_path), folder=ArrowLake(tmp_path).folder, name="lake")
    ended: list[Any] = []
    step = SimpleNamespace(
        resume=lambda: None, state=SimpleNamespace(batch=-1), housekeeping=SimpleNamespace(end=ended.append)
    )
    monkeypatch.setattr("earshot.pipeline.watch.stream.BatchStep", lambda *_: step)
    monkeypatch.setattr(
        Watch, "_start", lambda _, once: begun.append(once) or SimpleNamespace(stop=lambda: ended.append("stopped"))
    )
    watch = Watch(lake, [str(tmp_path / "spools")])
    with watch.running():
        pass
    with watch.running(once=True):
        pass
    assert begun == [False, True]
    assert ended == ["stopped", step.state] * 2
