"""One batch of a watch: from new records to a commit.

1. the records go to `watched_log`, late ones flagged;
2. the window (what may still change) is read back, and the oracle says which nodes should have received its events;
3. events older than the patience are settled: their pairs are final, and added to the running metrics;
4. figures are those of settled and open events together, and one row of `watches` commits the batch.

A batch is written under its own number, and what it writes replaces what a killed run of the same
batch left. `watches` says how far the watch is, `watched_state` and `watched_positions` what the next batch needs, so
a batch counts wholly and once. The driver holds sessions, subscription spans and sums; records, positions and pairs
stay with the tasks, which read and write them in the lake.

The watermark is behind every session that has more to be read, and `delay_s` behind the newest record. A
record older than it is late: it is kept and reported, not counted. An event is settled `patience_s` behind
the watermark; a delivery later than that is reported as overdue.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as F

from earshot.errors import EarshotError, SparkFailure
from earshot.pipeline.lake.arrow_lake import files_of
from earshot.pipeline.lake.batch_files import BatchFiles, batches_of, stem_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.tables import arrow_schema, table_named
from earshot.pipeline.oracle.matcher import Matcher
from earshot.pipeline.spark.failures import named_error
from earshot.pipeline.watch.housekeeping import GROWING, Housekeeping
from earshot.pipeline.watch.running_metrics import RunningMetrics
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.pipeline.watch.spools import LineCounts, published_events, take_in, with_community
from earshot.pipeline.watch.standing_subscriptions import MATCHES, StandingFile, StandingMatcher
from earshot.pipeline.watch.watch_oracle import COUNT, READ, Judge, WindowPositions, fold_positions, judged, workload_of
from earshot.pipeline.watch.watch_state import TABLE as STATE
from earshot.pipeline.watch.watch_state import Changes, Commit, Report, State, StateLog, WatchSettings, read_state
from earshot.records import COLUMNS, Kind
from earshot.records.sessions import SESSION_KINDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake

FOLD_AT = 16
"This number of batches leaves the window at a time: then where nodes were last is written again."


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The oracle's results for a window."""

    metrics: RunningMetrics
    "Of settled and open events."
    open_events: int


class BatchStep:
    """What a watch does with each batch."""

    def __init__(
        self, lake: Lake, settings: WatchSettings, folders: Sequence[str], standing: StandingFile | None, report: Report
    ) -> None:
        self.lake = lake
        self.settings = settings
        self.folders = folders
        self.standing = standing
        self.report = report
        self.check_alone: Callable[[], object] = bool
        "Raises where another process may have begun to run this watch."
        self.state = State()
        self.sessions = WatchedSessions()
        self.metrics = RunningMetrics()
        "Of settled events."
        self.housekeeping = Housekeeping(lake.arrow, settings)
        self._log = StateLog(lake.arrow, settings.name)
        self._matcher = StandingMatcher(standing.now) if standing else None

    def resume(self) -> None:
        """Continue from the last commit."""
        name = self.settings.name
        self.state = State()
        if self.lake.has("watches", watch=name):
            row = self.lake.arrow.read("watches", watch=name).to_pylist()[0]
            self.state = read_state(row["state"])
        for table in (*GROWING, STATE):  # what a killed batch left is written again
            self._files(table).drop_after(self.state.batch)
        self.sessions, self.metrics, _ = self._log.read(dict(self.state.networks))

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if batch <= self.state.batch:
            return  # it was committed; the process ended before Spark recorded that
        began = time.monotonic()
        rows = rows.persist()
        try:
            commit = self._batch(rows, batch)
        except Exception as error:
            if isinstance(error, EarshotError) or named_error(error) is not None:
                raise
            # Spark would report only that something failed.
            raise SparkFailure(f"batch {batch} of the watch failed: {type(error).__name__}: {error}") from error
        finally:
            rows.unpersist()
        self.housekeeping.after(self.state)
        self.report(replace(commit, batch_s=time.monotonic() - began))

    def _batch(self, rows: DataFrame, batch: int) -> Commit:
        old, sessions, changes = self.state, self.sessions, Changes()
        self._log.rebase(sessions, self.metrics, old.batch)
        counts = take_in(sessions, rows, changes, self._session_records)
        watermark = max(_or_never(old.watermark), sessions.watermark(self.settings.delay_s))
        settled = max(_or_never(old.settled), watermark - self.settings.patience_s)
        state = State(
            batch=batch,
            watermark=_or_none(watermark),
            settled=_or_none(settled),
            newest=_or_none(max(_or_never(old.newest), counts.newest)),
            records=old.records + counts.records,
            events=old.events + counts.publications,
            rejects=old.rejects + counts.rejects,
            late=old.late,
            matches=old.matches,
            networks=sessions.networks.by_mark,
            window=dict(old.window),
        )
        if counts.records:
            self._keep_log(rows, state, _or_never(old.watermark))
            state.window[batch] = counts.newest
        if counts.rejects:
            bad = rows.where("problem is not null").select("file", "at_byte", F.col("problem").alias("detail"))
            reason = F.split_part("detail", F.lit(":"), F.lit(1))
            self._write(bad.withColumn("reason", reason), "watched_rejects", state)
        wrong = self._match(rows, state, counts)
        verdict = self._judge(old, state, changes, is_late=counts.oldest < _or_never(old.watermark))
        known = set(sessions.sessions)
        sessions.forget(settled, _or_never(state.newest) - self.settings.forget_s)
        changes.forgotten(sorted(known - set(sessions.sessions)))
        self._leave_window(state, settled)
        self._log.add(changes, batch)
        return self._commit(state, verdict, wrong)

    def _session_records(self, nodes: Sequence[str]) -> list[dict[str, Any]]:
        """What the log has of the sessions of these nodes."""
        log = self.lake.read_or_empty("watched_log", watch=self.settings.name)
        found = log.where(F.col("node").isin(list(nodes)) & F.col("kind").isin(list(SESSION_KINDS)))
        return [row.asDict() for row in found.select("network", "protocol", *COLUMNS).collect()]

    # -- 1: the log

    def _keep_log(self, rows: DataFrame, state: State, watermark: float) -> None:
        log = with_community(rows.where("problem is null and more is null"), self.sessions)
        self._write(log.withColumn("late", F.col("time") < F.lit(watermark)), "watched_log", state)

    def _write(self, frame: DataFrame, table: str, state: State) -> int:
        """Write the batch's rows of a table; returns how many they are."""
        files = self._written(frame, table, state)
        self._put(table, files, state)
        return sum(file.rows for file in files)

    def _written(self, frame: DataFrame, table: str, state: State) -> list[DataFile]:
        numbered = frame.withColumn("batch", F.lit(state.batch))
        return self.lake.write_files(numbered, table, stem_of(state.batch), watch=self.settings.name, day=state.day)

    def _put(self, table: str, files: Sequence[DataFile], state: State) -> None:
        self._files(table).put(files, state.batch)

    def _files(self, table: str) -> BatchFiles:
        return BatchFiles(self.lake.arrow, table, self.settings.name)

    def _match(self, rows: DataFrame, state: State, counts: LineCounts) -> Sequence[str]:
        """Every event of the batch, late or not, against the standing subscriptions; what is wrong with these."""
        if self.standing is None or self._matcher is None:
            return ()
        changes = self.standing.changes
        wrong = self.standing.refresh()
        if self.standing.changes != changes:
            self._matcher = StandingMatcher(self.standing.now)
        if counts.publications and self.standing.now.subscriptions:
            published = rows.where((F.col("kind") == Kind.PUBLISH) & F.col("problem").isNull())
            community = F.to_json(F.array("network", "protocol"))
            named = with_community(published, self.sessions).withColumn("workload", community)
            matched = named.transform(published_events).mapInArrow(self._matcher, MATCHES)
            state.matches += self._write(matched, "watched_matches", state)
        return wrong

    # -- 2, 3: the oracle

    def _judge(self, old: State, state: State, changes: Changes, is_late: bool) -> _Verdict:
        """The metrics of settled and open events. Those of the settled ones are added to what is kept."""
        counted: list[dict[str, Any]] = []
        files: list[DataFile] = []
        if state.window:
            log, window = self._window(state)
            judge = Judge(
                Matcher(self.sessions.spans(workload_of)),
                window,
                watch=self.settings.name,
                day=state.day,
                batch=state.batch,
                settled_before=_or_never(old.settled),
                settled=_or_never(state.settled),
                patience_s=self.settings.patience_s,
                cell_m=self.settings.cell_m,
            )
            for row in log.transform(judged(judge)).collect():
                if row["role"] == COUNT:
                    counted.append(json.loads(row["value"]))
                else:
                    files.append(DataFile(**json.loads(row["value"])))
            if is_late:
                files += self._behind(log, old, state)
        by_table: dict[str, list[DataFile]] = {"watched_open": [], "watched_pairs": [], "watched_late": []}
        for file in files:
            by_table[file.table].append(file)
        self.lake.arrow.replace(table_named("watched_open"), by_table.pop("watched_open"), [(self.settings.name,)])
        state.late += sum(file.rows for file in by_table["watched_late"])
        for table, some in by_table.items():
            self._put(table, some, state)
        changes.counted(counted)
        self.metrics.add(row for row in counted if row["is_settled"])
        self.metrics.forget_minutes()
        whole = self.metrics.copy()
        whole.add(row for row in counted if not row["is_settled"])
        return _Verdict(whole, sum(row["events"] for row in counted if not row["is_settled"]))

    def _window(self, state: State) -> tuple[DataFrame, WindowPositions]:
        """The records of the window, and where their nodes were, from the last place before it on."""
        log = [
            file for file in self._files("watched_log").files(min(state.window)) if batches_of(file)[0] in state.window
        ]
        frame = self.lake.read_files("watched_log", log).select(*READ)
        return frame, WindowPositions(self.lake.folder, [*self._earlier_positions(), *log])

    def _earlier_positions(self) -> list[DataFile]:
        kind = table_named("watched_positions")
        snapshot = self.lake.arrow.snapshot(kind)
        return files_of(kind, snapshot, {"watch": self.settings.name}) if snapshot is not None else []

    def _behind(self, log: DataFrame, old: State, state: State) -> list[DataFile]:
        """The records of this batch that came after the watermark had passed them."""
        late = log.where(F.col("late") & (F.col("batch") == state.batch)).withColumns(
            {
                "reason": F.lit("behind the watermark"),
                "behind_s": F.lit(_or_never(old.watermark)) - F.col("time"),
            }
        )
        return self._written(late, "watched_late", state)

    def _leave_window(self, state: State, settled: float) -> None:
        """Drop batches that no longer matter from the window, many at a time, and keep where their nodes were."""
        leaving = [number for number, newest in state.window.items() if newest < settled - self.settings.memory_s]
        if not leaving or (len(leaving) < FOLD_AT and len(leaving) < len(state.window)):
            return
        log = [file for file in self._files("watched_log").files(min(leaving)) if batches_of(file)[0] in leaving]
        known = {(session.network, session.protocol, session.node) for session in self.sessions}
        positions = WindowPositions(self.lake.folder, [*self._earlier_positions(), *log])
        file = fold_positions(self.lake.session, positions, known, self.settings.name)
        self.lake.arrow.replace(table_named("watched_positions"), [file])
        for number in leaving:
            del state.window[number]

    # -- 4: the commit

    def _commit(self, state: State, verdict: _Verdict, wrong: Sequence[str]) -> Commit:
        figures, losses = verdict.metrics.figure_rows(state.batch), verdict.metrics.loss_rows(state.batch)
        self._keep(figures, "watched_figures")
        self._keep(losses, "watched_losses")
        counts = {
            "batch": state.batch,
            "committed_at": time.time(),
            "spools": json.dumps(self.folders),
            "watermark": state.watermark,
            "settled_until": state.settled,
            "newest": state.newest,
            "cell_m": self.settings.cell_m,
            "nodes": len(self.sessions.present_nodes()),
            "records": state.records,
            "events": state.events,
            "open_events": verdict.open_events,
            "rejects": state.rejects,
            "late": state.late,
            "subscriptions": len(self.standing.now.subscriptions) if self.standing else 0,
            "matches": state.matches,
        }
        self.check_alone()
        row = {**counts, "state": msgspec.json.encode(state).decode()}
        self._keep([row], "watches")
        self.state = state
        return Commit(state.batch, counts, figures, losses, wrong, verdict.metrics)

    def _keep(self, rows: Sequence[Mapping[str, Any]], table: str) -> None:
        """Replace what the table has of this watch."""
        found = pa.Table.from_pylist(list(rows), schema=arrow_schema(table))
        self.lake.write_table(found, table, watch=self.settings.name)


def _or_never(time: float | None) -> float:
    return -math.inf if time is None else time


def _or_none(time: float) -> float | None:
    return None if time == -math.inf else time
