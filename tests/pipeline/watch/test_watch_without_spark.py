"""A whole watch without Spark: what its batches keep, judge, settle and forget, of records written by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from spark_on_duckdb import Session
from spool_cases import Recorder

from earshot import Event
from earshot.errors import LakeError, SparkFailure, UsageError
from earshot.geometry import Position
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.watch import batch_step, spools
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.pipeline.watch.spools import SpoolSummary, keep_spools, positions_in, take_in, with_community
from earshot.pipeline.watch.stream import Watch
from earshot.pipeline.watch.watch_state import Commit, WatchSettings
from earshot.records import Record

SETTINGS = WatchSettings(delay_s=3.0, patience_s=10.0, cell_m=500.0)
PLACES = {"a": 0.0, "b": 50.0, "c": 5000.0, "d": 7.0}


def position(node: str, time: float) -> Record:
    return Record(time, node, "position", x_m=PLACES[node], y_m=0.0)


def joined(node: str, time: float = 1000.0, protocol: str = "gossip") -> list[Record]:
    about = {"protocol": protocol, "settings": {"copies": 3}, "life": 1}
    return [Record(time, node, "join", detail=json.dumps(about)), position(node, time)]


def wanted(node: str, time: float = 1001.0) -> Record:
    return Record(time, node, "subscribe", subscription=f"{node}/s", detail="Siren: true")


def published(event: str, time: float, node: str = "a") -> list[Record]:
    whole = Event("Siren", {"n": 1}, id=event, source=node, time=time, position=Position(PLACES[node], 0.0))
    detail = whole.to_json().decode()
    return [
        Record(time, node, "publish", event=event, detail=detail, x_m=PLACES[node], y_m=0.0),
        Record(time, node, "send", event=event),
    ]


def delivered(event: str, time: float, node: str = "b") -> list[Record]:
    return [
        Record(time - 0.25, node, "receive", event=event),
        Record(time, node, "deliver", event=event, hops=1, subscription=f"{node}/s"),
    ]


FIRST = [
    *(one for node in "abc" for one in joined(node)), wanted("b"), wanted("c"),
    *published("old", 1010.0), *delivered("old", 1010.5), *published("new", 1055.0), *delivered("new", 1055.5),
    *(position(node, 1060.0) for node in "abc"),
]  # fmt: skip
"b is in range of a, c is not; both want Siren. The first event is 50 s old at the end, the second 5 s."


class Live:
    """Nodes that write spools, and a watch that follows them into a lake."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.lake = Lake(session, folder / "lake")  # type: ignore[arg-type]
        self.spools = str(folder / "spools")
        (folder / "spools").mkdir()
        self.recorder = Recorder(folder / "spools")
        self.commits: list[Commit] = []

    def watch(self, settings: WatchSettings = SETTINGS, subscriptions: Path | None = None) -> Watch:
        return Watch(self.lake, [self.spools], settings, subscriptions, self.commits.append)

    def follow(self, records: list[Record], **given: Any) -> Commit:
        """The records are written, and a watch reads all that is there."""
        self.recorder.write(records)
        with self.watch(**given).running(once=True) as query:
            query.awaitTermination()
        return self.commits[-1]

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        if not self.lake.has(table):
            return []
        return sorted(tuple(row[name] for name in columns) for row in self.lake.arrow.read(table).to_pylist())


@pytest.fixture
def live(quick_spark: Session, tmp_path: Path) -> Live:
    return Live(quick_spark, tmp_path)


PAIR = ("event", "node", "wanted", "got", "latency_s", "reason", "area")


def test_a_batch_settles_what_is_older_than_the_patience_and_keeps_the_rest_open(live: Live) -> None:
    commit = live.follow(FIRST)
    assert live.rows("watched_pairs", *PAIR) == [
        ("old", "b", True, True, 0.5, None, "0,0"), ("old", "c", True, False, None, "never heard", "0,0"),
    ]  # fmt: skip
    assert live.rows("watched_open", *PAIR) == [
        ("new", "b", True, True, 0.5, None, "0,0"), ("new", "c", True, False, None, "never heard", "0,0"),
    ]  # fmt: skip
    counts = dict(commit.counts)
    assert counts.pop("committed_at") > 1e9
    assert counts == {
        "batch": 0, "spools": json.dumps([live.spools]), "watermark": 1057.0, "settled_until": 1047.0, "newest": 1060.0,
        "cell_m": 500.0, "nodes": 3, "records": 19, "events": 2, "open_events": 1, "rejects": 0, "late": 0,
        "subscriptions": 0, "matches": 0,
    }  # fmt: skip
    figures = {(row["by"], row["key"], row["metric"]): row["value"] for row in commit.figures}
    assert (figures["all", "", "events"], figures["all", "", "expected"], figures["all", "", "met"]) == (2.0, 4.0, 2.0)
    assert [(row["reason"], row["lost"]) for row in commit.losses] == [("never heard", 2)]
    assert live.rows("watched_figures", "batch", "by", "key", "metric", "value") == sorted(
        (0, *key, value) for key, value in figures.items()
    )
    kept = live.rows("watched_log", "batch", "network", "protocol", "late", "time", "node", "kind")
    assert kept == sorted((0, "unknown", "gossip", False, one.time, one.node, one.kind) for one in FIRST)


SECOND = [
    position("b", 1056.0),  # behind the watermark of the first batch
    *published("late", 1056.5, "b"), *delivered("late", 1058.0, "c"), *delivered("unknown", 1058.5, "c"),
    *delivered("old", 1059.0, "c"), *delivered("new", 1059.5, "c"),
    *(position(node, 1080.0) for node in "abc"),
]  # fmt: skip


def test_late_records_are_kept_and_reported_and_not_counted(live: Live) -> None:
    live.follow(FIRST)
    commit = live.follow(SECOND)
    assert (commit.counts["watermark"], commit.counts["settled_until"]) == (1077.0, 1067.0)
    late = [("behind the watermark", 1056.0, "b", "position", "", 1.0),
            ("behind the watermark", 1056.5, "b", "publish", "late", 0.5),
            ("behind the watermark", 1056.5, "b", "send", "late", 0.5),
            ("of a late event", 1058.0, "c", "deliver", "late", None),
            ("overdue", 1059.0, "c", "deliver", "old", 39.0),
            ("unknown event", 1058.5, "c", "deliver", "unknown", None)]  # fmt: skip
    assert live.rows("watched_late", "reason", "time", "node", "kind", "event", "behind_s") == late
    assert (commit.counts["late"], commit.counts["records"], commit.counts["events"]) == (6, 33, 3)
    assert live.rows("watched_open", *PAIR) == []
    assert live.rows("watched_pairs", "batch", *PAIR) == [
        (0, "old", "b", True, True, 0.5, None, "0,0"), (0, "old", "c", True, False, None, "never heard", "0,0"),
        (1, "new", "b", True, True, 0.5, None, "0,0"), (1, "new", "c", True, True, 4.5, None, "0,0"),
    ]  # fmt: skip
    figures = {row["metric"]: row["value"] for row in commit.figures if row["by"] == "all"}
    assert (figures["events"], figures["expected"], figures["met"], figures["delivery_ratio"]) == (2.0, 4.0, 3.0, 0.75)
    third = live.follow([position("a", 1100.0)])
    assert (third.batch, third.counts["late"], len(live.rows("watched_late", "reason"))) == (2, 6, 6)


def test_lines_that_are_no_records_are_rejected_with_their_place(live: Live) -> None:
    live.recorder.write([*joined("a"), position("a", 1005.0)])
    (segment,) = Path(live.spools).rglob("*.jsonl*")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b'nonsense\n{"time": 1006.0, "node": "a", "kind": "position", "hops": "x"}\n')
    commit = live.follow([])
    assert (commit.counts["rejects"], commit.counts["records"]) == (2, 3)
    (first, second) = live.rows("watched_rejects", "at_byte", "file", "batch", "reason", "detail")
    assert (first[:3], second[:3]) == ((size, str(segment), 0), (size + 9, str(segment), 0))
    for _, _, _, reason, detail in (first, second):
        assert detail.partition(":")[0] == reason != detail


def test_events_match_standing_subscriptions_late_or_not(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "wanted.txt"
    file.write_text("# dispatch\nSiren: n > 0\nSiren: n > 5\n")
    first = live.follow(FIRST, subscriptions=file)
    assert (first.counts["subscriptions"], first.counts["matches"], first.wrong) == (2, 2, ())
    second = live.follow(SECOND, subscriptions=file)
    assert (second.counts["subscriptions"], second.counts["matches"]) == (2, 3)
    found = live.rows("watched_matches", "batch", "network", "protocol", "event", "source", "subscription", "filter")
    about = ("unknown", "gossip")
    assert found == [
        (0, *about, "new", "a", "line-2", "Siren: n > 0"), (0, *about, "old", "a", "line-2", "Siren: n > 0"),
        (1, *about, "late", "b", "line-2", "Siren: n > 0"),
    ]  # fmt: skip


def test_subscriptions_that_change_between_batches_are_read_again(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "wanted.txt"
    file.write_text("Siren: n > 5\n")
    watch = live.watch(subscriptions=file)

    def batch(records: list[Record]) -> Commit:
        live.recorder.write(records)
        with watch.running(once=True) as query:
            query.awaitTermination()
        return live.commits[-1]

    assert (batch(FIRST).counts["matches"], live.rows("watched_matches", "event")) == (0, [])
    file.write_text("Siren: n > 0\nSiren: n >\n")
    commit = batch(SECOND)
    assert (commit.counts["matches"], commit.counts["subscriptions"], len(commit.wrong)) == (1, 1, 1)
    assert live.rows("watched_matches", "event", "subscription") == [("late", "line-1")]


def test_a_watch_goes_on_from_its_last_commit_and_drops_what_a_killed_batch_left(live: Live) -> None:
    live.follow(FIRST)
    step = live.watch().step
    step.resume()
    assert (step.state.batch, step.state.records, step.state.window) == (0, 19, {0: 1060.0})
    assert {session.node for session in step.sessions} == {"a", "b", "c"}
    killed = msgspec.structs.replace(step.state, batch=1)
    step._keep_log(live_rows(live, [position("a", 1070.0)]), killed, math.inf)
    assert (1, "a") in live.rows("watched_log", "batch", "node")
    step.resume()
    assert {batch for (batch,) in live.rows("watched_log", "batch")} == {0}
    made = len(live.commits)
    step(live_rows(live, [position("a", 1070.0)]), 0)
    assert (len(live.commits), len(live.rows("watched_log", "batch"))) == (made, 19)


def live_rows(live: Live, records: list[Record]) -> Any:
    """Rows of spools, as their source has them."""
    live.recorder.write(records)
    return spools.read_spools(live.lake.session, [live.spools]).where(f"time > 1060.0 and node = '{records[0].node}'")


def test_what_fails_in_a_batch_is_named_with_the_batch(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    rows: Any = type("Rows", (), {"persist": lambda self: kept.append("persist") or self,
                                  "unpersist": lambda _: kept.append("unpersist")})()  # fmt: skip
    step = live.watch().step
    for error, kind, words in (
        (ValueError("no"), SparkFailure, "^batch 4 of the watch failed: ValueError: no$"),
        (UsageError("wrong"), UsageError, "^wrong$"),
        (ConnectionError("gone"), ConnectionError, "^gone$"),
    ):

        def fail(*_: Any, error: Exception = error) -> Commit:
            raise error

        monkeypatch.setattr(step, "_batch", fail)
        with pytest.raises(kind, match=words):
            step(rows, 4)
    assert kept == ["persist", "unpersist"] * 3
    assert live.commits == []


def test_batches_leave_the_window_some_at_a_time_and_leave_where_nodes_were(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window remembers 13 s behind what is settled, which is 13 s behind the newest record."""
    monkeypatch.setattr(batch_step, "FOLD_AT", 2)
    live.follow(FIRST)

    def window() -> dict[int, float]:
        step = live.watch().step
        step.resume()
        return step.state.window

    live.follow([position("a", 1070.0)])
    live.follow([Record(1086.0, "b", "position", x_m=60.0, y_m=1.0)])
    assert window() == {0: 1060.0, 1: 1070.0, 2: 1086.0}  # settled until 1073, remembered from 1060 on
    live.follow([position("a", 1087.0)])
    assert window() == {0: 1060.0, 1: 1070.0, 2: 1086.0, 3: 1087.0}  # only the first could leave
    assert live.rows("watched_positions", "node") == []
    live.follow([position("a", 1097.0)])
    assert window() == {2: 1086.0, 3: 1087.0, 4: 1097.0}
    assert live.rows("watched_positions", "network", "protocol", "node", "time", "x_m", "y_m") == [
        ("unknown", "gossip", "a", 1070.0, 0.0, 0.0),
        ("unknown", "gossip", "b", 1060.0, 50.0, 0.0),
        ("unknown", "gossip", "c", 1060.0, 5000.0, 0.0),
    ]


def test_a_node_that_is_silent_for_long_is_forgotten_and_known_again_by_its_log(live: Live) -> None:
    settings = replace(SETTINGS, forget_s=100.0)
    live.follow(FIRST, settings=settings)
    live.follow([position("a", 1200.0), *published("lonely", 1201.0)], settings=settings)
    watch = live.watch(settings).step
    watch.resume()
    assert {session.node for session in watch.sessions} == {"a"}
    live.follow(
        [position("b", 1210.0), *published("again", 1211.0), *delivered("again", 1211.5), position("a", 1240.0),
         position("b", 1240.0)], settings=settings,
    )  # fmt: skip
    assert [row for row in live.rows("watched_pairs", *PAIR) if row[0] == "again"] == [
        ("again", "b", True, True, 0.5, None, "0,0")
    ]


def test_a_watch_says_what_it_last_committed(live: Live) -> None:
    assert live.watch().last() is None
    commit = live.follow(FIRST)
    last = live.watch().last()
    assert last is not None
    assert (last.batch, last.counts["records"], "state" in last.counts) == (0, 19, False)
    assert sorted(map(repr, last.figures)) == sorted(map(repr, commit.figures))
    assert sorted(map(repr, last.losses)) == sorted(map(repr, commit.losses))


def test_a_watch_whose_read_positions_are_lost_is_refused(live: Live) -> None:
    live.follow(FIRST)
    for offset in Path(live.lake.folder.root, "_watches/live/checkpoint/offsets").iterdir():
        offset.unlink()
    with pytest.raises(LakeError, match="its read positions are lost"), live.watch().running(once=True):
        pass
    assert live.watch().checkpoint == f"{live.lake.folder.address}/_watches/live/checkpoint"


# -- spools as runs


def test_spools_become_runs_of_the_lake(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for name in ("ask_oracle", "measure"):
        monkeypatch.setattr(spools, name, lambda _, ids, again, name=name: asked.append((name, ids, again)))
    live.recorder.write(
        [*FIRST, *joined("d", 1002.0, "flooding"), Record(1003.0, "d", "announce", detail='{"subject": "Siren"}'),
         *published("theirs", 1004.0, "d"), Record(1050.0, "d", "leave")]
    )  # fmt: skip
    (segment,) = Path(live.spools).rglob("d-*.jsonl*")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b"nonsense\n")
    summary = keep_spools(live.lake, [live.spools], "b")
    assert summary == SpoolSummary("b", ["b-flooding", "b-gossip"], 4, 25, 1, 1000.0, 1060.0)
    assert asked == [("ask_oracle", ["b-flooding", "b-gossip"], True), ("measure", ["b-flooding", "b-gossip"], True)]
    assert live.rows("events", "workload", "event") == [
        ("b-flooding", "theirs"), ("b-gossip", "new"), ("b-gossip", "old"),
    ]  # fmt: skip
    assert live.rows("subscriptions", "workload", "node", "start", "end") == [
        ("b-gossip", "b", 1001.0, 1060.0), ("b-gossip", "c", 1001.0, 1060.0),
    ]  # fmt: skip
    assert live.lake.has("subscriptions", workload="b-flooding")
    assert live.rows("announcements", "workload", "node", "type") == [("b-flooding", "d", "Siren")]
    assert live.rows("positions", "trace", "node", "time", "x_m")[:2] == [
        ("b-flooding", "d", 1002.0, 7.0), ("b-flooding", "d", 1004.0, 7.0),
    ]  # fmt: skip
    ((line, node, time, file_name, reason, detail),) = live.rows(
        "rejects", "line", "node", "time", "file", "reason", "detail"
    )
    assert (line, node, time, file_name, reason) == (None, None, None, str(segment), "unparsable")
    assert detail.startswith(f"byte {size}: ")
    run = {row["run"]: row for row in live.lake.arrow.read("runs").to_pylist()}["b-flooding"]
    assert {name: value for name, value in run.items() if value not in ("", None, "{}")} == {
        "run": "b-flooding", "campaign": "b", "scenario": "b", "point": "b", "network": "live",
        "workload": "b-flooding", "protocol": "flooding", "variant": "flooding", "settings": '{"copies": 3}',
        "seed": 0, "duration_s": 48.0, "warm_up_s": 0.0, "status": "done", "took_s": 0.0,
    }  # fmt: skip
    assert {(row["run"], row["kind"]) for row in live.lake.arrow.read("log", run="b-flooding").to_pylist()} == {
        ("b-flooding", kind) for kind in ("join", "position", "announce", "publish", "send", "leave")
    }


def test_spools_without_a_record_are_refused(live: Live) -> None:
    live.recorder.write(joined("a"))
    (segment,) = Path(live.spools).rglob("*.jsonl*")
    segment.write_bytes(b"nonsense\nmore\n")
    with pytest.raises(UsageError, match="the spools hold no valid record; 2 lines are not records"):
        keep_spools(live.lake, [live.spools], "b")


def test_lines_are_counted_by_kind_with_their_earliest_and_latest_time(live: Live) -> None:
    live.recorder.write([*joined("a"), *published("e", 1002.0), *joined("b", 1001.0), position("b", 1007.0)])
    sessions = WatchedSessions()
    counts = take_in(sessions, spools.read_spools(live.lake.session, [live.spools]))
    assert (counts.records, counts.rejects, counts.publications, counts.oldest, counts.newest) == (
        7, 0, 1, 1000.0, 1007.0,
    )  # fmt: skip
    assert {(session.node, session.first, session.last) for session in sessions} == {
        ("a", 1000.0, 1002.0), ("b", 1001.0, 1007.0),
    }  # fmt: skip
    nothing = take_in(WatchedSessions(), spools.read_spools(live.lake.session, [live.spools]).limit(0))
    assert (nothing.records, nothing.oldest, nothing.newest) == (0, math.inf, -math.inf)


def test_a_record_of_an_unknown_spool_has_no_network_and_no_protocol(live: Live) -> None:
    live.recorder.write([*joined("a"), *joined("b")])
    rows = spools.read_spools(live.lake.session, [live.spools])
    sessions = WatchedSessions()
    take_in(sessions, rows.where("node = 'a'"))
    found = with_community(rows.where("more is null"), sessions).collect()
    assert {(row["node"], row["network"], row["protocol"]) for row in found} == {
        ("a", "unknown", "gossip"), ("b", "unknown", "unknown"),
    }  # fmt: skip


def test_a_node_is_in_one_place_at_a_time_the_greatest_recorded(quick_spark: Session) -> None:
    nan = math.nan
    rows = [("r", "a", 1.0, 5.0, 1.0), ("r", "a", 1.0, 5.0, 2.0), ("r", "a", 1.0, 4.0, 9.0), ("r", "a", 2.0, nan, 1.0),
            ("r", "a", 3.0, 1.0, nan), ("s", "a", 1.0, 0.0, 0.0)]  # fmt: skip
    log: Any = quick_spark.createDataFrame(rows, "run string, node string, time double, x_m double, y_m double")
    found = positions_in(log)
    assert found.columns == [
        "run", "node", "time", "x_m", "y_m", "speed_m_s", "heading_deg", "until", "x_m_s", "y_m_s",
    ]  # fmt: skip
    assert sorted(tuple(row)[:5] for row in found.collect()) == [("r", "a", 1.0, 5.0, 2.0), ("s", "a", 1.0, 0.0, 0.0)]
    assert {value for row in found.collect() for value in tuple(row)[5:]} == {None}
