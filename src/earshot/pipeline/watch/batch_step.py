"""One batch of a watch: from new records to a commit.

1. the records go to `watched_log`, late ones flagged;
2. the window (what may still change) is read back, and the oracle says which nodes should have received its events;
3. events older than the patience are settled: their pairs are final, and added to the running metrics;
4. figures are those of settled and open events together, and one row of `watches` commits the batch.

A batch is written under its own number, and what it writes replaces what a killed run of the same
batch left. `watches` carries the state that the next batch needs, so a batch counts wholly and once.

The watermark is behind every session that has more to be read, and `delay_s` behind the newest record. A
record older than it is late: it is kept and reported, not counted. An event is settled `patience_s` behind
the watermark; a delivery later than that is reported as overdue.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Observation
from pyspark.sql import functions as F

from earshot.errors import EarshotError, SparkFailure
from earshot.pipeline.lake.tables import TABLES, arrow_schema
from earshot.pipeline.spark.failures import named_error
from earshot.pipeline.watch.running_metrics import RunningMetrics
from earshot.pipeline.watch.sessions import WatchedSessions
from earshot.pipeline.watch.spools import LineCounts, published_events, take_in, with_community
from earshot.pipeline.watch.standing_subscriptions import MATCHES, StandingFile, StandingMatcher
from earshot.pipeline.watch.watch_oracle import (
    COUNT,
    LATE,
    PAIR,
    READ,
    Judge,
    Key,
    judged,
    trajectories_of,
    workload_of,
)
from earshot.pipeline.watch.watch_state import Commit, KnownPosition, Report, State, WatchSettings, read_state
from earshot.records import Kind
from earshot.records.networks import UNKNOWN_NETWORK
from earshot.records.trajectories import Trajectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake

_LATE = arrow_schema("watched_late")
_BY_BATCH = [table.name for table in TABLES.values() if table.partition_by == ("watch", "batch")]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The oracle's results for a window."""

    metrics: RunningMetrics
    "Of settled and open events."
    open_events: int
    trajectories: Mapping[Key, Trajectory]


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
        self.state = State()
        self._matcher = StandingMatcher(standing.now) if standing else None

    def resume(self) -> None:
        """Continue from the last commit."""
        name = self.settings.name
        if self.lake.has("watches", watch=name):
            row = self.lake.read("watches", watch=name).select("state").first()
            assert row is not None
            self.state = read_state(row["state"])
        for table in _BY_BATCH:  # what a killed batch left is written again
            self.lake.drop(table, watch=name, batch=self.state.batch + 1)

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
        self.report(replace(commit, batch_s=time.monotonic() - began))

    def _batch(self, rows: DataFrame, batch: int) -> Commit:
        old = self.state
        sessions = WatchedSessions(old.sessions, old.waiting, dict(old.networks))
        counts = take_in(sessions, rows)
        watermark = max(_or_never(old.watermark), sessions.watermark(self.settings.delay_s))
        settled = max(_or_never(old.settled), watermark - self.settings.patience_s)
        window = dict(old.window)
        if counts.records:
            self._keep_log(rows, sessions, batch, _or_never(old.watermark))
            window[batch] = counts.newest
        if counts.rejects:
            bad = rows.where("problem is not null").select("file", "at_byte", F.col("problem").alias("detail"))
            reason = F.split_part("detail", F.lit(":"), F.lit(1))
            self._write(bad.withColumn("reason", reason), "watched_rejects", batch)
        wrong, matches = self._match(rows, sessions, batch, counts)
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
            sessions=sessions.sessions,
            networks=sessions.networks.by_mark,
            positions=old.positions,
            window=window,
            metrics=old.metrics,
        )
        verdict = self._judge(old, state, sessions, is_late=counts.oldest < _or_never(old.watermark))
        state.window = {
            number: newest for number, newest in window.items() if newest >= settled - self.settings.memory_s
        }
        sessions.forget(settled, _or_never(state.newest) - self.settings.forget_s)
        state.waiting = sorted(sessions.waiting)
        state.positions = _last_positions(verdict.trajectories, settled, sessions)
        return self._commit(state, verdict, wrong)

    # -- 1: the log

    def _keep_log(self, rows: DataFrame, sessions: WatchedSessions, batch: int, watermark: float) -> None:
        log = with_community(rows.where("problem is null and more is null"), sessions)
        self._write(log.withColumn("late", F.col("time") < F.lit(watermark)), "watched_log", batch)

    def _write(self, frame: DataFrame, table: str, batch: int) -> None:
        self.lake.write(frame, table, watch=self.settings.name, batch=batch)

    def _match(
        self, rows: DataFrame, sessions: WatchedSessions, batch: int, counts: LineCounts
    ) -> tuple[Sequence[str], int]:
        """Every event of the batch, late or not, against the standing subscriptions."""
        if self.standing is None or self._matcher is None:
            return (), 0
        changes = self.standing.changes
        wrong = self.standing.refresh()
        if self.standing.changes != changes:
            self._matcher = StandingMatcher(self.standing.now)
        if not counts.publications or not self.standing.now.subscriptions:
            return wrong, 0
        published = rows.where((F.col("kind") == Kind.PUBLISH) & F.col("problem").isNull())
        named = with_community(published, sessions).withColumn("workload", F.to_json(F.array("network", "protocol")))
        matched = named.transform(published_events).mapInArrow(self._matcher, MATCHES)
        counted = Observation()
        self._write(matched.observe(counted, F.count("*").alias("matches")), "watched_matches", batch)
        return wrong, int(counted.get["matches"])

    # -- 2, 3: the oracle

    def _judge(self, old: State, state: State, sessions: WatchedSessions, is_late: bool) -> _Verdict:
        """The metrics of settled and open events. Those of the settled ones go into the state."""
        metrics = state.metrics.metrics()
        if not state.window:
            return _Verdict(metrics, 0, {})
        log = self._window(state.window)
        trajectories = self._trajectories(log, old)
        settled_before, settled = _or_never(old.settled), _or_never(state.settled)
        judge = Judge.of(
            sessions.spans(workload_of),
            trajectories,
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
        metrics.add(row for row in counted if row["is_settled"])
        metrics.forget_minutes()
        state.metrics = metrics.stored()
        whole = metrics.copy()
        whole.add(row for row in counted if not row["is_settled"])
        return _Verdict(whole, sum(row["events"] for row in counted if not row["is_settled"]), trajectories)

    def _keep_pairs(self, pairs: pa.Table, batch: int) -> None:
        settled = pairs.filter(pairs["is_settled"])
        if settled.num_rows:
            self._keep(settled, "watched_pairs", batch=batch)
        still_open = pairs.filter(pc.invert(pairs["is_settled"]))
        self._keep(still_open.append_column("batch", pa.repeat(pa.scalar(batch), len(still_open))), "watched_open")

    def _keep(self, rows: pa.Table, table: str, **batch: int) -> None:
        self.lake.write_table(rows, table, watch=self.settings.name, **batch)

    def _window(self, batches: Mapping[int, float]) -> DataFrame:
        """The records of those batches."""
        log = self.lake.read("watched_log", watch=self.settings.name)
        return log.where(F.col("batch").isin(sorted(batches))).fillna(UNKNOWN_NETWORK, ["network"]).select(*READ)

    def _trajectories(self, log: DataFrame, old: State) -> dict[Key, Trajectory]:
        """Where every node was in the window, from the last place before it on."""
        known = log.where("not late and not isnan(x_m) and not isnan(y_m)")
        rows = known.select("network", "protocol", "node", "time", "x_m", "y_m").toArrow()
        if old.positions:
            columns = zip(*old.positions, strict=True)
            before = [pa.array(column, field.type) for column, field in zip(columns, rows.schema, strict=True)]
            rows = pa.concat_tables([pa.table(before, rows.schema), rows])
        return trajectories_of(rows)

    def _behind(self, log: DataFrame, old: State, batch: int) -> pa.Table:
        """The records of this batch that came after the watermark had passed them."""
        late = log.where(F.col("late") & (F.col("batch") == batch)).withColumns(
            {
                "reason": F.lit("behind the watermark"),
                "behind_s": F.lit(_or_never(old.watermark)) - F.col("time"),
            }
        )
        return late.select(*_LATE.names).toArrow()

    # -- 4: the commit

    def _commit(self, state: State, verdict: _Verdict, wrong: Sequence[str]) -> Commit:
        figures, losses = verdict.metrics.figure_rows(state.batch), verdict.metrics.loss_rows(state.batch)
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
            "nodes": len(WatchedSessions(state.sessions).present_nodes()),
            "records": state.records,
            "events": state.events,
            "open_events": verdict.open_events,
            "rejects": state.rejects,
            "late": state.late,
            "subscriptions": len(self.standing.now.subscriptions) if self.standing else 0,
            "matches": state.matches,
        }
        row = {**counts, "state": msgspec.json.encode(state).decode()}
        self._keep(_table([row], "watches"), "watches")
        self.state = state
        return Commit(state.batch, counts, figures, losses, wrong, verdict.metrics)


def _table(rows: Sequence[Mapping[str, Any]], table: str) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(table))


def _of_role(verdict: pa.Table, role: str) -> pa.Table:
    return verdict.filter(pc.equal(verdict["role"], role))


def _last_positions(
    trajectories: Mapping[Key, Trajectory], settled: float, sessions: WatchedSessions
) -> list[KnownPosition]:
    """Where each node that is still known was at that time."""
    known = {(session.network, session.protocol, session.node) for session in sessions}
    positions: list[KnownPosition] = []
    for key, one in trajectories.items():
        at = int(np.searchsorted(one.times, settled, side="right")) - 1
        if at >= 0 and key in known:
            positions.append((*key, float(one.times[at]), float(one.xs[at]), float(one.ys[at])))
    return positions


def _or_never(time: float | None) -> float:
    return -math.inf if time is None else time


def _or_none(time: float) -> float | None:
    return None if time == -math.inf else time
