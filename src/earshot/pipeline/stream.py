"""The stream: what live nodes record, judged by the oracle as it comes.

A Structured Streaming query follows the spools; each of its batches goes through `Step`:

1. the records go to `watched_log`, whoever is late flagged;
2. the window (what may still change) is read back, and the oracle says who should have got its events;
3. events older than patience are settled: their pairs are final, and added to the tallies;
4. figures are those of the settled and of the open ones, and one row of `watches` commits it all.

A batch is written under its own number, and what it writes replaces what a killed run of the same
batch left. `watches` carries the state that the next batch needs: so a batch is in it wholly, once.

The watermark is behind every life that has more to be read, and `delay_s` behind the newest record. A
row older than it is late: it is kept and reported, not counted. An event is settled `patience_s` behind
the watermark; a delivery later than that is reported as overdue.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Observation
from pyspark.sql import functions as F

from earshot.errors import EarshotError, LakeError, SettingsError, SparkFailure, UsageError
from earshot.pipeline.failures import named_error
from earshot.pipeline.judging import COUNT, LATE, PAIR, READ, Judge, Key, judged, ways_of
from earshot.pipeline.lake import committed
from earshot.pipeline.lives import Life, Lives
from earshot.pipeline.oracle import Way
from earshot.pipeline.outposts import arrow_schema
from earshot.pipeline.session import is_connect, parallelism
from earshot.pipeline.sources import spools as source
from earshot.pipeline.sources.segments import check_folders
from earshot.pipeline.spools import Counts, of_their_protocols, published_events, take_in
from earshot.pipeline.standing import MATCHES, StandingFile, StandingMatcher
from earshot.pipeline.storage import LocalStorage
from earshot.pipeline.tables import WATCHED_LOG
from earshot.pipeline.tallies import KeptTallies, Tallies
from earshot.records import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from earshot.pipeline.lake import Lake

Place = tuple[str, str, float, float, float]
"Protocol, node, time, x_m, y_m."


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How a watch counts."""

    name: str = "live"
    delay_s: float = 10.0
    "How far a node's records may be behind the newest ones."
    patience_s: float = 30.0
    "How long after its publication an event's delivery counts."
    cell_m: float = 1000.0
    "The side of the squares that areas are."
    every_s: float = 2.0
    forget_s: float = 3600.0
    "A node that neither left nor wrote for so long is forgotten."
    most_bytes: int = source.DEFAULT_BYTES
    "Read in one batch."

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise SettingsError(f"a watch is named by letters, digits, '.', '-' and '_', got {self.name!r}")
        for name in ("delay_s", "patience_s", "forget_s", "most_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        if not 1.0 <= self.cell_m < math.inf:
            raise SettingsError(f"cell_m must be at least 1, got {self.cell_m}")

    @property
    def memory_s(self) -> float:
        """How long settled events are remembered, to know overdue deliveries."""
        return self.delay_s + self.patience_s


class State(msgspec.Struct):
    """What one batch leaves for the next; times None: nothing was read yet."""

    batch: int = -1
    watermark: float | None = None
    settled: float | None = None
    newest: float | None = None
    records: int = 0
    events: int = 0
    rejects: int = 0
    late: int = 0
    matches: int = 0
    lives: dict[str, Life] = {}
    ways: list[Place] = []
    "Where each node last was, before what is open."
    window: dict[int, float] = {}
    "Batches whose records may still matter, and their latest time."
    tallies: KeptTallies = msgspec.field(default_factory=KeptTallies)


@dataclass(frozen=True, slots=True)
class Commit:
    """What a committed batch came to, for people to look at."""

    batch: int
    counts: Mapping[str, Any]
    figures: Sequence[Mapping[str, Any]]
    losses: Sequence[Mapping[str, Any]]
    wrong: Sequence[str] = ()
    "What is wrong with the standing subscriptions since they changed."


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a window came to."""

    tallies: Tallies
    "Of settled and open events."
    open_events: int
    ways: Mapping[Key, Way]


_LATE = arrow_schema("watched_late")

Tell = Callable[[Commit], None]


class Watch:
    """One watch of some spools into one lake."""

    def __init__(
        self,
        lake: Lake,
        folders: Sequence[str],
        settings: WatchSettings | None = None,
        subscriptions: Path | None = None,
        tell: Tell | None = None,
    ) -> None:
        if is_connect(lake.session):
            raise UsageError("a watch needs a Spark session of its own: run it with --master, or on this machine")
        self.lake = lake
        self.settings = settings or WatchSettings()
        self.folders = check_folders(folders, may_be_empty=True)
        standing = StandingFile(subscriptions) if subscriptions is not None else None
        self.step = Step(lake, self.settings, self.folders, standing, tell or _nobody)

    @property
    def checkpoint(self) -> str:
        """Where Spark keeps how far it has read."""
        return f"{self.lake.storage.address}/_watches/{self.settings.name}/checkpoint"

    @contextmanager
    def running(self, once: bool = False) -> Iterator[StreamingQuery]:
        """The query, started; stopped afterwards, however that comes."""
        with _alone(self.lake, self.settings.name):
            self.step.resume()
            if self.step.state.batch >= 0 and not any(self.lake.storage.files(f"{self._own}/checkpoint/offsets")):
                raise LakeError(
                    f"the lake {self.lake.name} has a watch {self.settings.name!r}, but how far it had read is lost "
                    f"({self.checkpoint}); take another --name"
                )
            # What goes wrong in a batch is raised; this one would also write its stack trace to the terminal.
            logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)
            query = self._start(once)
            try:
                yield query
            finally:
                query.stop()

    def last(self) -> Commit | None:
        """The last commit, as the tables have it; None where there is none yet."""
        if not self.lake.has("watches", watch=self.settings.name):
            return None

        def rows(table: str) -> list[dict[str, Any]]:
            found = self.lake.read(table, watch=self.settings.name).drop("watch")
            return [row.asDict() for row in found.collect()]

        (counts,) = rows("watches")
        del counts["state"]
        return Commit(counts["batch"], counts, rows("watched_figures"), rows("watched_losses"))

    @property
    def _own(self) -> str:
        return f"_watches/{self.settings.name}"

    def _start(self, once: bool) -> StreamingQuery:
        session = self.lake.session
        given = {
            source.FOLDERS: json.dumps(self.folders),
            source.TASKS: str(parallelism(session)),
            source.MOST_BYTES: str(self.settings.most_bytes),
        }
        rows = session.readStream.format(source.FORMAT).options(**given).load()
        writer = rows.writeStream.foreachBatch(self.step).option("checkpointLocation", self.checkpoint)
        trigger: dict[str, Any] = {"availableNow": True}
        if not once:
            trigger = {"processingTime": f"{max(0, round(self.settings.every_s * 1000))} milliseconds"}
        return writer.trigger(**trigger).start()


def _nobody(commit: Commit) -> None:
    del commit


@contextmanager
def _alone(lake: Lake, name: str) -> Iterator[None]:
    """Nobody else runs the watch of that name; the lock ends with the process."""
    if not isinstance(lake.storage, LocalStorage):
        yield
        return
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder = lake.storage.root / "_watches" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LakeError(f"cannot write the lake {lake.name}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(f"the watch {name!r} of {lake.name} runs already; take another --name") from None
    try:
        yield
    finally:
        os.close(file)


class Step:
    """What is done with each batch."""

    def __init__(
        self, lake: Lake, settings: WatchSettings, folders: Sequence[str], standing: StandingFile | None, tell: Tell
    ) -> None:
        self.lake = lake
        self.settings = settings
        self.folders = folders
        self.standing = standing
        self.tell = tell
        self.state = State()
        self._matcher = StandingMatcher(standing.now) if standing else None

    def resume(self) -> None:
        """Go on from the last commit."""
        name = self.settings.name
        if self.lake.has("watches", watch=name):
            row = self.lake.read("watches", watch=name).select("state").first()
            assert row is not None
            self.state = msgspec.json.decode(row["state"], type=State)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if batch <= self.state.batch:
            return  # it was committed; the process ended before Spark wrote that down
        rows = rows.persist()
        try:
            commit = self._batch(rows, batch)
        except Exception as error:
            if isinstance(error, EarshotError) or named_error(error) is not None:
                raise
            # Spark would tell no more of it than that something failed.
            raise SparkFailure(f"batch {batch} of the watch failed: {type(error).__name__}: {error}") from error
        finally:
            rows.unpersist()
        self.tell(commit)

    def _batch(self, rows: DataFrame, batch: int) -> Commit:
        old = self.state
        lives = Lives(old.lives)
        counts = take_in(lives, rows)
        watermark = max(_or_never(old.watermark), lives.watermark(self.settings.delay_s))
        settled = max(_or_never(old.settled), watermark - self.settings.patience_s)
        window = dict(old.window)
        if counts.records:
            self._keep_log(rows, lives, batch, _or_never(old.watermark))
            window[batch] = counts.newest
        if counts.rejects:
            bad = rows.where("problem is not null").select("file", "at_byte", F.col("problem").alias("detail"))
            reason = F.split_part("detail", F.lit(":"), F.lit(1))
            self._write(bad.withColumn("reason", reason), "watched_rejects", batch)
        wrong, matches = self._match(rows, lives, batch, counts)
        state = State(
            batch=batch,
            watermark=_or_none(watermark),
            settled=_or_none(settled),
            newest=_or_none(max(_or_never(old.newest), counts.newest)),
            records=old.records + counts.records,
            events=old.events + counts.publications,
            rejects=old.rejects + counts.rejects,
            late=old.late,
            matches=old.matches + matches,
            lives=lives.lives,
            ways=old.ways,
            window=window,
            tallies=old.tallies,
        )
        verdict = self._judge(old, state, lives, is_late=counts.oldest < _or_never(old.watermark))
        state.window = {
            number: newest for number, newest in window.items() if newest >= settled - self.settings.memory_s
        }
        lives.forget(settled, _or_never(state.newest) - self.settings.forget_s)
        state.ways = _last_places(verdict.ways, settled, lives)
        return self._commit(state, verdict, wrong)

    # -- 1: the log

    def _keep_log(self, rows: DataFrame, lives: Lives, batch: int, watermark: float) -> None:
        log = of_their_protocols(rows.where("problem is null and more is null"), lives)
        self._write(log.withColumn("late", F.col("time") < F.lit(watermark)), "watched_log", batch)

    def _write(self, frame: DataFrame, table: str, batch: int) -> None:
        self.lake.write(frame, table, watch=self.settings.name, batch=batch)

    def _match(self, rows: DataFrame, lives: Lives, batch: int, counts: Counts) -> tuple[Sequence[str], int]:
        """Every event of the batch, late or not, against the standing subscriptions."""
        if self.standing is None or self._matcher is None:
            return (), 0
        changes = self.standing.changes
        wrong = self.standing.refresh()
        if self.standing.changes != changes:
            self._matcher = StandingMatcher(self.standing.now)
        if not counts.publications or not self.standing.now.wishes:
            return wrong, 0
        published = rows.where((F.col("kind") == Kind.PUBLISH) & F.col("problem").isNull())
        named = of_their_protocols(published, lives).withColumnRenamed("protocol", "workload")
        matched = named.transform(published_events).mapInArrow(self._matcher, MATCHES)
        counted = Observation()
        self._write(matched.observe(counted, F.count("*").alias("matches")), "watched_matches", batch)
        return wrong, int(counted.get["matches"])

    # -- 2, 3: the oracle

    def _judge(self, old: State, state: State, lives: Lives, is_late: bool) -> _Verdict:
        """The tallies of settled and open events. Those of the settled ones go into the state."""
        tallies = state.tallies.tallies()
        if not state.window:
            return _Verdict(tallies, 0, {})
        log = self._window(state.window)
        ways = self._ways(log, old)
        settled_before, settled = _or_never(old.settled), _or_never(state.settled)
        judge = Judge.of(
            list(lives.wishes()),
            ways,
            batch=state.batch,
            settled_before=settled_before,
            settled=settled,
            patience_s=self.settings.patience_s,
            cell_m=self.settings.cell_m,
        )
        verdict = log.transform(judged(judge)).toArrow()
        counted = _of_role(verdict, COUNT).to_pylist()
        self._keep_pairs(_of_role(verdict, PAIR), state.batch)
        late = _of_role(verdict, LATE)
        if is_late:
            behind = self._behind(log, old, state.batch)
            late = pa.concat_tables([one.select(_LATE.names).cast(_LATE) for one in (late, behind)])
        if late.num_rows:
            state.late += late.num_rows
            self._keep(late, "watched_late", batch=state.batch)
        tallies.add(row for row in counted if row["is_settled"])
        tallies.forget_minutes()
        state.tallies = tallies.kept()
        whole = tallies.copy()
        whole.add(row for row in counted if not row["is_settled"])
        return _Verdict(whole, sum(row["events"] for row in counted if not row["is_settled"]), ways)

    def _keep_pairs(self, pairs: pa.Table, batch: int) -> None:
        settled = pairs.filter(pairs["is_settled"])
        if settled.num_rows:
            self._keep(settled, "watched_pairs", batch=batch)
        still_open = pairs.filter(pc.invert(pairs["is_settled"]))
        self._keep(still_open.append_column("batch", pa.repeat(pa.scalar(batch), len(still_open))), "watched_open")

    def _keep(self, rows: pa.Table, table: str, **batch: int) -> None:
        self.lake.write_table(rows, table, watch=self.settings.name, **batch)

    def _window(self, batches: Mapping[int, float]) -> DataFrame:
        """The records of those batches. Only this watch replaces them, so nothing has to be leased."""
        storage = self.lake.storage
        found = [
            version.path
            for number in sorted(batches)
            for version in committed(storage, WATCHED_LOG, {"watch": self.settings.name, "batch": number}).values()
        ]
        return (
            self.lake.session.read.schema(f"{WATCHED_LOG.ddl}, version string")
            .option("basePath", f"{storage.address}/{WATCHED_LOG.name}")
            .option("__globPaths__", "false")
            .parquet(*(f"{storage.address}/{path}" for path in found))
            .select(*READ)
        )

    def _ways(self, log: DataFrame, old: State) -> dict[Key, Way]:
        """Where every node was in the window, from the last place before it on."""
        known = log.where("not late and not isnan(x_m) and not isnan(y_m)")
        rows = known.select("protocol", "node", "time", "x_m", "y_m").toArrow()
        if old.ways:
            columns = zip(*old.ways, strict=True)
            before = [pa.array(column, field.type) for column, field in zip(columns, rows.schema, strict=True)]
            rows = pa.concat_tables([pa.table(before, rows.schema), rows])
        return ways_of(rows)

    def _behind(self, log: DataFrame, old: State, batch: int) -> pa.Table:
        """What of this batch the watermark had passed before it came."""
        late = log.where(F.col("late") & (F.col("batch") == batch)).withColumns(
            {
                "reason": F.lit("behind the watermark"),
                "behind_s": F.lit(_or_never(old.watermark)) - F.col("time"),
            }
        )
        return late.select(*_LATE.names).toArrow()

    # -- 4: the commit

    def _commit(self, state: State, verdict: _Verdict, wrong: Sequence[str]) -> Commit:
        figures, losses = verdict.tallies.figure_rows(state.batch), verdict.tallies.loss_rows(state.batch)
        self._keep(_table(figures, "watched_figures"), "watched_figures")
        self._keep(_table(losses, "watched_losses"), "watched_losses")
        counts = {
            "batch": state.batch,
            "committed_at": time.time(),
            "spools": json.dumps(self.folders),
            "watermark": state.watermark,
            "settled_until": state.settled,
            "newest": state.newest,
            "cell_m": self.settings.cell_m,
            "nodes": len({life.node for life in state.lives.values() if not life.left}),
            "records": state.records,
            "events": state.events,
            "open_events": verdict.open_events,
            "rejects": state.rejects,
            "late": state.late,
            "subscriptions": len(self.standing.now.wishes) if self.standing else 0,
            "matches": state.matches,
        }
        row = {**counts, "state": msgspec.json.encode(state).decode()}
        self._keep(_table([row], "watches"), "watches")
        self.state = state
        return Commit(state.batch, counts, figures, losses, wrong)


def _table(rows: Sequence[Mapping[str, Any]], table: str) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(table))


def _of_role(verdict: pa.Table, role: str) -> pa.Table:
    return verdict.filter(pc.equal(verdict["role"], role))


def _last_places(ways: Mapping[Key, Way], settled: float, lives: Lives) -> list[Place]:
    """Where each node that is still known last was, at that time."""
    known = {(life.protocol, life.node) for life in lives.lives.values()}
    places: list[Place] = []
    for (protocol, node), way in ways.items():
        at = int(np.searchsorted(way.time, settled, side="right")) - 1
        if at >= 0 and (protocol, node) in known:
            places.append((protocol, node, float(way.time[at]), float(way.x_m[at]), float(way.y_m[at])))
    return places


def _or_never(time: float | None) -> float:
    return -math.inf if time is None else time


def _or_none(time: float) -> float | None:
    return None if time == -math.inf else time
