"""A watch of live nodes' spools, held to the batch pipeline over the same spools."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from spool_cases import Recorder, recorded, write_spools

from earshot.cli import earshot
from earshot.errors import EarshotError, LakeError, UsageError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.oracle.oracle import expected_receivers
from earshot.pipeline.oracle.own_workloads import own_subscriptions
from earshot.pipeline.oracle.why import ask_why
from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.watch import batch_step
from earshot.pipeline.watch.running_metrics import three_digits
from earshot.pipeline.watch.spools import keep_spools
from earshot.pipeline.watch.stream import Watch
from earshot.pipeline.watch.watch_state import Commit, State, StateLog, WatchSettings
from earshot.records import COLUMNS, Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SETTINGS = WatchSettings(delay_s=3.0, patience_s=10.0, cell_m=500.0, most_bytes=400_000)
WANTED = "Siren: true\n# dispatch\nTraffic: severity > 2\n/CD\nspeed > 5\n"


def skewed(records: list[Record]) -> list[Record]:
    """Long after the epoch, by clocks that differ a little."""
    offsets = {node: 0.25 * (number % 3) for number, node in enumerate(sorted({one.node for one in records}))}
    for record in records:
        shift = 1000.0 + offsets[record.node]
        record.time += shift
        if record.kind == "publish":
            event = json.loads(record.detail)
            record.detail = json.dumps(event | {"time": event["time"] + shift})
    return sorted(records, key=lambda record: record.time)


@pytest.fixture(scope="module")
def spools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks, a folder each."""
    folder = tmp_path_factory.mktemp("stream")
    for protocol in ("gossip", "flooding"):
        write_spools(folder / "spools" / protocol, skewed(recorded(protocol, folder)))
    (folder / "wanted.txt").write_text(WANTED)
    return folder / "spools"


def watched(
    lake: Lake, spools: Path, settings: WatchSettings = SETTINGS, subscriptions: Path | None = None
) -> list[Commit]:
    """Catch up with the spools; the commits it took."""
    commits: list[Commit] = []
    watch = Watch(lake, [str(spools)], settings, subscriptions, commits.append)
    with named_errors(), watch.running(once=True) as query:
        query.awaitTermination()
    return commits


Tables = dict[str, list[tuple[Any, ...]]]


def content(lake: Lake) -> Tables:
    """All that a watch has written, without which batch it was in."""
    tables = {name: rows_of(lake, f"watched_{name}") for name in ("log", "matches", "late", "rejects", "losses")}
    tables["figures"] = rows_of(lake, "watched_figures")
    tables["pairs"] = sorted([*rows_of(lake, "watched_pairs"), *rows_of(lake, "watched_open")], key=repr)
    counts = lake.arrow.read("watches").drop_columns(["batch", "committed_at", "state"]).to_pylist()
    return tables | {"watches": [tuple(row.values()) for row in counts]}


def rows_of(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    """In the order of the columns' names."""
    rows = lake.arrow.read(table)
    names = sorted(set(rows.column_names) - {"watch", "day", "batch"})
    columns = [[_plain(value) for value in rows.column(name).to_pylist()] for name in names]
    return sorted(zip(*columns, strict=True), key=repr)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


@pytest.fixture(scope="module")
def caught_up(spark: SparkSession, spools: Path, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """One watch, never disturbed, and the batch pipeline over the same spools as `b-...`."""
    lake = Lake(spark, tmp_path_factory.mktemp("undisturbed") / "lake")
    commits = watched(lake, spools, subscriptions=spools.parent / "wanted.txt")
    assert len(commits) >= 3
    assert commits[-1].counts["late"] == commits[-1].counts["rejects"] == 0
    keep_spools(lake, [str(spools)], "b")
    return lake


@pytest.fixture(scope="module")
def truth(caught_up: Lake) -> Tables:
    return content(caught_up)


def test_figures_are_those_of_the_batch_pipeline(caught_up: Lake) -> None:
    stream = {
        (row["protocol"], row["metric"], row["by"], row["key"]): row["value"]
        for row in caught_up.read("watched_figures").where("by in ('all', 'type', 'minute')").collect()
    }
    batch = {
        (row["run"].removeprefix("b-"), row["metric"], row["by"], row["key"]): row["value"]
        for row in caught_up.read("metrics").collect()
    }
    shared = stream.keys() & batch.keys()
    assert {key[:3] for key in shared} >= set(
        itertools.product(
            ("gossip", "flooding"),
            ("expected", "delivered", "delivery_ratio", "precision", "hops", "latency_p50_s", "latency_p99_s"),
            ("all", "type", "minute"),
        )
    )
    exact = {key for key in shared if not key[1].startswith("latency")}
    assert {key: stream[key] for key in exact} == {key: batch[key] for key in exact}
    rounded = shared - exact
    assert {key: stream[key] for key in rounded} == pytest.approx({key: batch[key] for key in rounded}, rel=0.006)
    ours = ("expected", "delivered", "delivery_ratio", "precision", "hops", "latency_p50_s")
    missed = {key for key in batch.keys() - stream.keys() if key[1] in ours and key[2] in ("all", "type", "minute")}
    assert missed == set()


def test_pairs_areas_and_reasons_are_what_the_oracle_and_the_log_say(caught_up: Lake) -> None:
    pairs = [
        row
        for name in ("watched_pairs", "watched_open")
        for row in caught_up.read(name).toArrow().to_pylist()
    ]  # fmt: skip
    expected = caught_up.read("expected").select("workload", "event", "node").distinct().collect()
    assert Counter((f"b-{row['protocol']}", row["event"], row["node"]) for row in pairs if row["wanted"]) == Counter(
        map(tuple, expected)
    )
    lost = [row for row in pairs if row["reason"] is not None]
    assert {row["reason"] for row in lost} >= {"never heard"}
    for row in lost[:3]:
        answer = ask_why(caught_up.arrow, f"b-{row['protocol']}", row["event"], row["node"])
        assert (answer.expected, answer.delivered) == (True, False)
        assert row["reason"] != "never heard" or answer.losses[0].endswith(f"none of them reached {row['node']}")
    places = {
        row["event"]: (math.floor(row["x_m"] / 500.0) * 500, math.floor(row["y_m"] / 500.0) * 500)
        for row in caught_up.read("watched_log").where("kind = 'publish'").collect()
    }
    assert {row["area"] for row in pairs} == {f"{x},{y}" for x, y in {places[row["event"]] for row in pairs}}
    by_area = Counter((row["protocol"], row["area"]) for row in pairs if row["wanted"])
    figures = caught_up.read("watched_figures").where("by = 'area' and metric = 'expected' and value > 0").collect()
    assert {(row["protocol"], row["key"]): row["value"] for row in figures} == by_area
    losses = caught_up.read("watched_losses").collect()
    assert {(row["protocol"], row["type"], row["area"], row["reason"]): row["lost"] for row in losses} == Counter(
        (row["protocol"], row["type"], row["area"], row["reason"]) for row in lost
    )
    assert {three_digits(row["latency_s"]) for row in pairs if row["got"]} > {0.001}


def test_the_log_is_every_record_once(caught_up: Lake) -> None:
    stream = caught_up.read("watched_log").select("protocol", *COLUMNS).toArrow().to_pylist()
    batch = caught_up.read("log").toArrow().to_pylist()
    assert Counter(tuple(_plain(value) for value in row.values()) for row in stream) == Counter(
        (row.pop("run").removeprefix("b-"), *(_plain(value) for value in row.values())) for row in batch
    )


def test_matches_are_those_of_the_oracle_over_the_same_subscriptions(caught_up: Lake, spools: Path) -> None:
    wanted = own_subscriptions(caught_up.session, "w", spools.parent / "wanted.txt")
    found = []
    for protocol in ("gossip", "flooding"):
        events = caught_up.read("events", workload=f"b-{protocol}").selectExpr(
            "'w' workload", "* except (workload, area)", "cast(null as string) area"
        )
        expected = events.transform(expected_receivers(wanted)).select("event", "subscription").collect()
        found += [(protocol, row["event"], row["subscription"]) for row in expected]
    rows = caught_up.read("watched_matches").collect()
    assert len(found) > 50
    assert Counter((row["protocol"], row["event"], row["subscription"]) for row in rows) == Counter(found)
    assert {(row["subscription"], row["filter"]) for row in rows} <= {
        ("line-1", "Siren: true"), ("line-3", "Traffic: severity > 2"), ("line-4", "/CD"), ("line-5", "speed > 5")
    }  # fmt: skip


def test_what_was_settled_is_final_and_catching_up_again_changes_nothing(
    caught_up: Lake, spools: Path, truth: Tables
) -> None:
    assert watched(caught_up, spools, subscriptions=spools.parent / "wanted.txt") == []
    assert content(caught_up) == truth
    row = caught_up.read("watches").first()
    assert row is not None
    assert row["settled_until"] == row["watermark"] - 10.0 == row["newest"] - 13.0
    pairs = caught_up.read("watched_pairs").selectExpr("max(published_at)", "count(*)").first()
    assert pairs is not None
    assert pairs[0] <= row["settled_until"]
    assert pairs[1] > 20


class Crash(EarshotError):
    pass


class CrashingLake(Lake):
    """Fails just before or just after it writes one of its tables, as a kill at that moment would."""

    def __init__(self, session: SparkSession, root: Path, crash: tuple[str, str]) -> None:
        super().__init__(session, root)
        self.crash = crash
        outer = self

        class CrashingArrowLake(ArrowLake):
            """Commits of files that tasks wrote."""

            def note_replaced(self, log: TableLog) -> None:
                super().note_replaced(log)
                outer._pass("after", log.kind.name)

        self.arrow = CrashingArrowLake(self.folder, self.name)

    def _pass(self, moment: str, table: str) -> None:
        if self.crash == (moment, table):
            raise Crash("here it ends")

    def write_files(self, frame: Any, table: str, stem: str, **partition: Any) -> list[DataFile]:
        self._pass("before", table)
        return super().write_files(frame, table, stem, **partition)

    def write_table(self, rows: Any, table: str, **partition: Any) -> None:
        self._pass("before", table)
        super().write_table(rows, table, **partition)


def test_a_crash_around_any_write_neither_loses_nor_doubles_a_row(
    spark: SparkSession, spools: Path, truth: Tables, tmp_path: Path
) -> None:
    batches = []
    for crash in (
        ("after", "watched_log"),
        ("after", "watched_state"),
        ("before", "watches"),
        ("after", "watches"),
        ("after", "watched_open"),
    ):
        lake = CrashingLake(spark, tmp_path / "lake", crash)
        with pytest.raises(EarshotError):
            watched(lake, spools, subscriptions=spools.parent / "wanted.txt")
        batches.append([row["batch"] for row in lake.read_or_empty("watches").collect()])
    # The fourth crash came after our commit and before Spark's own: that batch must not be made again.
    assert batches == [[], [], [], [0], [0]]
    watched(Lake(spark, tmp_path / "lake"), spools, subscriptions=spools.parent / "wanted.txt")
    assert content(Lake(spark, tmp_path / "lake")) == truth


@pytest.mark.slow
def test_killed_several_times_it_ends_with_the_same_tables(
    spark: SparkSession, spools: Path, truth: Tables, tmp_path: Path, wait_for: Callable[[Callable[[], object]], None]
) -> None:
    lake = tmp_path / "lake"
    script = Path(__file__).with_name("killed_watch.py")
    arguments = [str(lake), str(spools), str(spools.parent / "wanted.txt"), str(SETTINGS.most_bytes)]

    def logged(batch: int) -> bool:
        return bool(BatchFiles(ArrowLake(lake), "watched_log", "live").files(batch))

    def files() -> int:
        return len(list(lake.rglob("*.parquet")))

    def killed(when: str) -> bool:
        """Whether it was killed then; a process may also end by itself where the machine is overloaded."""
        with subprocess.Popen([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            before = files()
            try:
                if process.stdout.readline() != "started\n":
                    return False
                if when == "the log of the first batch is there":
                    wait_for(lambda: logged(0) or process.poll() is not None)
                elif when == "it has just committed":
                    return process.stdout.readline() == "commit\n"
                else:
                    wait_for(lambda: (files() > before) or process.poll() is not None)
                return process.poll() is None
            finally:
                process.kill()

    for when in ("the log of the first batch is there", "it has just committed", "a batch is being written"):
        assert any(killed(when) for _ in range(3))
    assert len(watched(Lake(spark, lake), spools, subscriptions=spools.parent / "wanted.txt")) >= 1
    assert content(Lake(spark, lake)) == truth


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_killed_twenty_times_at_random_moments_it_ends_with_the_same_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every second time it is killed some time after a commit, so that it also goes on from what it had committed."""
    spools, lake, random = tmp_path / "spools", tmp_path / "lake", Random(5)
    write_spools(spools, skewed(recorded("flooding", tmp_path, duration_s=600.0)))
    (wanted := tmp_path / "wanted.txt").write_text(WANTED)
    undisturbed = Lake(spark, tmp_path / "undisturbed")
    watched(undisturbed, spools, subscriptions=wanted)
    script = Path(__file__).with_name("killed_watch.py")
    # Small batches, 4 kB of each node: enough of them that the twentieth kill finds it at work.
    arguments = [str(lake), str(spools), str(wanted), "1"]
    kills = commits = 0
    for _ in range(60):
        with subprocess.Popen([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            if kills % 2 and process.stdout.readline() == "commit\n":
                commits += 1
            try:
                process.wait(random.uniform(0.0, 2.0 if kills % 2 else 8.0))
            except subprocess.TimeoutExpired:
                kills += 1
            process.kill()
        if kills == 20:
            break
    assert kills == 20
    assert commits >= 10
    assert watched(Lake(spark, lake), spools, subscriptions=wanted)
    assert content(Lake(spark, lake)) == content(undisturbed)


def test_what_comes_behind_the_watermark_is_reported_and_not_counted(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    records = skewed(recorded("gossip", tmp_path))
    withheld = "car-1"
    recorder = Recorder(tmp_path / "spools")
    recorder.write(record for record in records if record.node != withheld and record.time < 1040.0)
    whole = replace(SETTINGS, most_bytes=1 << 30)
    (first,) = watched(lake, tmp_path / "spools", whole)
    watermark = first.counts["watermark"]
    # Of the one who was away, what is within the watermark counts and the rest is late; so is nobody else.
    recorder.write(record for record in records if record.node == withheld or record.time >= 1040.0)
    (wanted := tmp_path / "wanted.txt").write_text("Siren: true\n")
    (second,) = watched(lake, tmp_path / "spools", whole, subscriptions=wanted)
    recorder.close()
    behind = [one for one in records if one.node == withheld and one.time < watermark]
    assert len(behind) > 3
    rows = lake.read("watched_late").toArrow().to_pylist()
    assert Counter((row["time"], row["kind"]) for row in rows if row["reason"] == "behind the watermark") == Counter(
        (one.time, str(one.kind)) for one in behind
    )
    assert {row["behind_s"] > 0 for row in rows if row["reason"] == "behind the watermark"} == {True}
    assert {row["node"] for row in rows if row["reason"] == "behind the watermark"} == {withheld}
    flagged = lake.read("watched_log").where("late").count()
    assert (flagged, second.counts["records"]) == (len(behind), len(records))
    assert second.counts["late"] == len(rows)
    # Standing subscriptions get what is late too.
    since = [one for one in records if one.kind == "publish" and (one.node == withheld or one.time >= 1040.0)]
    sirens = {one.event for one in since if json.loads(one.detail)["type"] == "Siren"}
    assert {row["event"] for row in lake.read("watched_matches").collect()} == sirens


def test_deliveries_past_patience_and_of_unknown_events_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    join = '{"protocol": "flooding", "settings": {}}'
    event = '{{"type":"Siren","id":"{0}","source":"a","time":{1}}}'

    def ticks(node: str, start: int, end: int) -> list[Record]:
        return [Record(float(second), node, "position", x_m=0.0, y_m=0.0) for second in range(start, end)]

    recorder = Recorder(tmp_path / "spools")
    recorder.write([Record(0.0, "a", "join", detail=join), Record(0.0, "b", "join", detail=join)])
    recorder.write([Record(0.0, "b", "subscribe", subscription="b/1", detail="Siren: true")])
    recorder.write([Record(1.0, "a", "publish", event="e1", detail=event.format("e1", 1.0))])
    recorder.write([*ticks("a", 1, 40), *ticks("b", 1, 40)])
    lake = Lake(spark, tmp_path / "lake")
    (first,) = watched(lake, tmp_path / "spools")
    assert (first.counts["settled_until"], first.counts["open_events"]) == (26.0, 0)
    recorder.write([Record(40.0, "b", "deliver", event="e1", subscription="b/1", hops=1)])
    recorder.write([Record(41.0, "b", "deliver", event="nobody's", subscription="b/1", hops=1)])
    recorder.write([*ticks("a", 41, 80), *ticks("b", 41, 80)])
    (tmp_path / "spools" / "c-1-00001.jsonl").write_text('{"time":1.0,"node":"c","kind":"dance"}\nnonsense\n')
    (second,) = watched(lake, tmp_path / "spools")
    recorder.close()
    rows = [row.asDict() for row in lake.read("watched_late").drop("watch", "day", "batch").orderBy("time").collect()]
    same = {"network": "unknown", "protocol": "flooding", "node": "b", "kind": "deliver"}
    assert rows == [
        {**same, "reason": "overdue", "time": 40.0, "event": "e1", "behind_s": 29.0},
        {**same, "reason": "unknown event", "time": 41.0, "event": "nobody's", "behind_s": None},
    ]
    assert (second.counts["late"], second.counts["rejects"]) == (2, 2)
    rejects = [
        row.asDict() for row in lake.read("watched_rejects").drop("watch", "day", "batch").orderBy("at_byte").collect()
    ]
    assert [(Path(row["file"]).name, row["at_byte"], row["reason"]) for row in rejects] == [
        ("c-1-00001.jsonl", 0, "no kind of record"),
        ("c-1-00001.jsonl", 39, "not a record"),
    ]
    assert [(row["reason"], row["lost"]) for row in second.losses] == [("never sent", 1)]


def test_two_networks_of_one_protocol_are_judged_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Each has a node `a` that publishes and others that want it nearby: in the north b, which gets it, in the south c,
    which does not, while the b of the south is far away."""
    north, south = ({"group": f"239.0.0.{number}:4000", "keys": ["ab"]} for number in (1, 2))

    def history(network: dict[str, Any], id: str, **places: float) -> list[Record]:
        join = json.dumps({"protocol": "flooding", "settings": {}, "network": network})
        event = {"type": "Siren", "id": id, "source": "a", "time": 1.0, "position": {"x_m": 0.0, "y_m": 0.0}}
        moved = [
            Record(float(second), node, "position", x_m=x_m, y_m=0.0)
            for second in range(1, 40)
            for node, x_m in {"a": 0.0, **places}.items()
        ]
        return [
            Record(0.0, "a", "join", detail=join, x_m=0.0, y_m=0.0),
            *(Record(0.0, node, "join", detail=join) for node in places),
            *(Record(0.5, node, "subscribe", subscription=node, detail="Siren: within 100 m") for node in places),
            Record(1.0, "a", "publish", event=id, detail=json.dumps(event), x_m=0.0, y_m=0.0),
            *moved,
        ]

    got = Record(1.25, "b", "deliver", event="n-1", subscription="b", hops=1)
    write_spools(tmp_path / "spools" / "north", sorted([*history(north, "n-1", b=50.0), got], key=lambda one: one.time))
    write_spools(tmp_path / "spools" / "south", history(south, "s-1", b=500.0, c=60.0))
    lake = Lake(spark, tmp_path / "lake")
    (commit,) = watched(lake, tmp_path / "spools", subscriptions=None)
    figures = {(row["network"], row["metric"]): row["value"] for row in commit.figures if row["by"] == "all"}
    names = ("239.0.0.1:4000#ab", "239.0.0.2:4000#ab")
    counted = {key: value for key, value in figures.items() if key[1] in ("events", "expected", "met")}
    assert counted == {
        (names[0], "events"): 1, (names[0], "expected"): 1, (names[0], "met"): 1,
        (names[1], "events"): 1, (names[1], "expected"): 1, (names[1], "met"): 0,
    }  # fmt: skip
    assert [(row["network"], row["reason"], row["lost"]) for row in commit.losses] == [(names[1], "never sent", 1)]
    assert {row["network"] for row in lake.read("watched_log").select("network").distinct().collect()} == set(names)
    kept = keep_spools(lake, [str(tmp_path / "spools")], "b")
    assert kept.runs == ["b-flooding-239.0.0.1-4000-ab", "b-flooding-239.0.0.2-4000-ab"]
    batch = {
        (names[kept.runs.index(row["run"])], row["metric"]): row["value"]
        for row in lake.read("metrics").where("by = 'all' and metric in ('expected', 'delivery_ratio')").collect()
    }
    assert batch == {key: value for key, value in figures.items() if key[1] in ("expected", "delivery_ratio")}


def test_the_state_expires(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_step, "FOLD_AT", 1)
    join = '{"protocol": "flooding", "settings": {}}'
    lake = Lake(spark, tmp_path / "lake")
    settings = WatchSettings(delay_s=1.0, patience_s=2.0, forget_s=60.0)
    recorder = Recorder(tmp_path / "spools")
    sizes = []
    for visitor in range(3):
        name, start = f"visitor-{visitor}", 100.0 * visitor
        wish = Record(start, name, "subscribe", subscription=f"{name}/1", detail="Siren: true")
        leave = [Record(start + 5.0, name, "leave")] if visitor % 2 else []
        recorder.write([Record(start, name, "join", detail=join, x_m=1.0, y_m=1.0), wish, *leave])
        recorder.write([Record(start + 50.0, "clock", "position", x_m=0.0, y_m=0.0)])
        watched(lake, tmp_path / "spools", settings)
        row = lake.read("watches").select("state").first()
        assert row is not None
        state = msgspec.json.decode(row["state"], type=State)
        sessions, _, _ = StateLog(lake.arrow, "live").read({})
        sizes.append((len(sessions.sessions), len(state.window), lake.read_or_empty("watched_positions").count()))
    recorder.close()
    # The clock, and a visitor that was killed and may still come back; the one before is forgotten.
    assert sizes == [(2, 1, 0), (1, 1, 1), (2, 1, 1)]


def test_nodes_that_write_again_after_they_were_forgotten_are_judged_as_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Their spools came late, say. Both networks have an a and a b; the b of the north wants sirens, the b of the south
    traffic, and it joined later."""
    networks = {1: {"group": "239.0.0.1:4000", "keys": ["ab"]}, 2: {"group": "239.0.0.2:4000", "keys": ["ab"]}}
    settings = WatchSettings(delay_s=1.0, patience_s=2.0, forget_s=60.0)
    lake = Lake(spark, tmp_path / "lake")
    recorders = {life: Recorder(tmp_path / f"spools/{life}", life) for life in networks}
    for life, recorder in recorders.items():
        join = json.dumps({"protocol": "flooding", "settings": {}, "life": life, "network": networks[life]})
        start, first, then = 0.25 * life, *(("Traffic", "Siren") if life == 1 else ("Siren", "Traffic"))
        recorder.write([Record(start, node, "join", detail=join, x_m=0.0, y_m=0.0) for node in ("a", "b")])
        recorder.write([Record(start, "b", "subscribe", subscription="b/1", detail=f"{first}: true")])
        recorder.write([Record(start + 0.5, "b", "unsubscribe", subscription="b/1")])
        recorder.write([Record(start + 1.0, "b", "subscribe", subscription="b/2", detail=f"{then}: true")])
        recorder.write([Record(float(second), "a", "position", x_m=0.0, y_m=0.0) for second in range(2, 100)])
    watched(lake, tmp_path / "spools", settings)
    sessions, _, _ = StateLog(lake.arrow, "live").read({})
    assert [session.node for session in sessions] == ["a", "a"]
    for life, recorder in recorders.items():
        for number, type in enumerate(("Siren", "Traffic", "Traffic")):
            event = json.dumps({"type": type, "id": f"{life}-{number}", "source": "a", "time": 100.0 + number})
            recorder.write([Record(100.0 + number, "a", "publish", event=f"{life}-{number}", detail=event)])
        got = Record(100.2 if life == 1 else 101.2, "b", "deliver", event=f"{life}-{life - 1}", subscription="b/2")
        recorder.write([got])
        ticks = [(float(second), node) for second in range(103, 110) for node in "ab"]
        recorder.write([Record(time, node, "position", x_m=0.0, y_m=0.0) for time, node in ticks])
    *_, commit = watched(lake, tmp_path / "spools", settings)
    for recorder in recorders.values():
        recorder.close()
    figures = {(row["network"], row["metric"]): row["value"] for row in commit.figures if row["by"] == "all"}
    names = ("239.0.0.1:4000#ab", "239.0.0.2:4000#ab")
    assert {network for network, _ in figures} == set(names)
    assert [[figures[name, metric] for metric in ("events", "expected", "met")] for name in names] == [
        [3, 1, 1],
        [3, 2, 1],
    ]
    assert {row["network"] for row in lake.read("watched_log").select("network").collect()} == set(names)


def test_a_watch_that_goes_on_takes_what_comes_and_new_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    recorder = Recorder(tmp_path / "spools")
    (wanted := tmp_path / "wanted.txt").write_text("Siren: speed > 10\n")
    reported: list[Commit] = []

    def publish(number: int) -> None:
        event = json.dumps({"type": "Siren", "id": f"e{number}", "source": "a", "content": {"speed": 20}})
        recorder.write([Record(float(number), "a", "publish", event=f"e{number}", detail=event)])

    (tmp_path / "spools").mkdir()
    watch = Watch(lake, [str(tmp_path / "spools")], SETTINGS, wanted, reported.append)
    with watch.running() as query:
        with pytest.raises(UsageError, match="runs already"), Watch(lake, [str(tmp_path)], SETTINGS).running():
            pass
        query.processAllAvailable()  # nothing is there yet
        publish(1)
        query.processAllAvailable()
        wanted.write_text("speed >\nspeed > 15\nSiren: speed > 30\n")
        publish(2)
        query.processAllAvailable()
    assert not query.isActive
    recorder.close()
    assert [(commit.batch, commit.counts["records"], len(commit.wrong)) for commit in reported] == [
        (0, 0, 0), (1, 1, 0), (2, 2, 1)
    ]  # fmt: skip
    rows = lake.read("watched_matches").orderBy("event").collect()
    assert [(row["event"], row["subscription"], row["filter"]) for row in rows] == [
        ("e1", "line-1", "Siren: speed > 10"),
        ("e2", "line-2", "speed > 15"),
    ]
    last = watch.last()
    assert last is not None
    assert {**last.counts, "watch": None} == {**reported[-1].counts, "watch": None}
    shutil.rmtree(tmp_path / "lake/_watches/live/checkpoint")
    with pytest.raises(LakeError, match="take another --name"), watch.running():
        pass


def test_mistakes_on_the_command_line_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.txt").write_text("speed >\n")

    def stated(*arguments: str) -> str:
        done = CliRunner().invoke(earshot, ["watch", *arguments], standalone_mode=False)
        assert isinstance(done.exception, UsageError)
        return str(done.exception)

    assert stated(str(tmp_path / "absent")).startswith("no such folder")
    assert stated(str(tmp_path / "empty"), "--once").startswith("no spool in")
    assert stated(str(tmp_path / "empty"), "--subscriptions", str(tmp_path / "bad.txt")).startswith(
        f"{tmp_path / 'bad.txt'}:1: "
    )
    assert "No such file" in stated(str(tmp_path / "empty"), "--subscriptions", str(tmp_path / "absent.txt"))
