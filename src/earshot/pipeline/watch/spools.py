"""The spools of live nodes as runs in the lake: what `stream` does continuously, done once.

Each network and protocol in the spools becomes a run, `NAME-PROTOCOL` or, where several networks have the
protocol, `NAME-PROTOCOL-NETWORK`, with its `log`, `events`, `subscriptions`,
`announcements` and `positions`; the oracle and the metrics are those of simulated runs.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as F

from earshot.errors import UsageError
from earshot.events import Event
from earshot.pipeline.campaigns.flow import ask_oracle, measure
from earshot.pipeline.lake.tables import ANNOUNCEMENTS, EVENTS, RUNS, SUBSCRIPTIONS, Table
from earshot.pipeline.oracle.workloads import EVENTS_ARROW, event_row, subscription_row
from earshot.pipeline.spark.session import parallelism
from earshot.pipeline.watch import spool_source as source
from earshot.pipeline.watch.sessions import Community, WatchedSessions
from earshot.pipeline.watch.spool_segments import check_folders
from earshot.pipeline.watch.watch_state import Changes
from earshot.records import COLUMNS, Kind
from earshot.records.details import UNKNOWN_NETWORK, read_join
from earshot.records.sessions import SESSION_KINDS, UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from earshot.pipeline.lake.lake import Lake


@dataclass(frozen=True, slots=True)
class SpoolSummary:
    """The result of an ingest of spools."""

    name: str
    runs: list[str]
    nodes: int
    records: int
    rejected: int
    start: float
    end: float

    def as_json(self) -> dict[str, Any]:
        """The summary as plain values."""
        return asdict(self)


def keep_spools(lake: Lake, folders: Sequence[str], name: str) -> SpoolSummary:
    """Everything in the spools as runs in the lake, judged and measured. It replaces what the lake had under
    that name."""
    rows = read_spools(lake.session, check_folders(folders, may_be_empty=False)).persist()
    try:
        return _kept(lake, rows, name)
    finally:
        rows.unpersist()


def read_spools(session: SparkSession, folders: Sequence[str]) -> DataFrame:
    """Every line of the spools, as `earshot.pipeline.watch.spool_source` has them."""
    given = {source.FOLDERS: json.dumps(list(folders)), source.TASKS: str(2 * parallelism(session))}
    session.dataSource.register(source.SpoolSource)
    return session.read.format(source.FORMAT).options(**given).load()


def _kept(lake: Lake, rows: DataFrame, name: str) -> SpoolSummary:
    sessions = WatchedSessions()
    counts = take_in(sessions, rows)
    if not counts.records:
        raise UsageError(f"the spools hold no valid record; {counts.rejects} lines are not records")
    runs = run_names(name, sessions.communities)
    log = with_community(rows.where("problem is null and more is null"), sessions)
    named = lake.session.createDataFrame(
        [(*community, run) for community, run in runs.items()], "network string, protocol string, run string"
    )
    log = log.join(F.broadcast(named), ["network", "protocol"])
    written = lake.write(log, "log")
    events = log.where(F.col("kind") == Kind.PUBLISH).withColumn("workload", F.col("run"))
    positions = positions_in(log).withColumn("trace", F.col("run"))
    session = lake.session

    def workload_of(network: str, protocol: str) -> str:
        return runs[network, protocol]

    wanted = [subscription_row(key, span) for key, spans in sessions.spans(workload_of).items() for span in spans]
    announced = sessions.announcement_rows(workload_of)
    for table, frame, by in (
        ("events", events.transform(published_events), "workload"),
        ("positions", positions, "trace"),
        ("subscriptions", _frame(session, wanted, SUBSCRIPTIONS), "workload"),
        ("announcements", _frame(session, announced, ANNOUNCEMENTS), "workload"),
    ):
        there = {partition[by] for partition in lake.write(frame, table)}
        for run in {*runs.values()} - there:
            lake.write(frame.limit(0), table, **{by: run})
    _reject(lake, rows, name)
    lake.write(
        _frame(session, [_run_row(sessions, name, run, community) for community, run in runs.items()], RUNS), "runs"
    )
    ids = sorted(partition["run"] for partition in written)
    ask_oracle(lake, ids, again=True)
    measure(lake, ids, again=True)
    known = [session for session in sessions if session.first <= session.last]
    return SpoolSummary(
        name,
        ids,
        len({session.node for session in known}),
        counts.records,
        counts.rejects,
        min(session.first for session in known),
        max(session.last for session in known),
    )


@dataclass(frozen=True, slots=True)
class LineCounts:
    """The number of lines of each kind."""

    records: int
    rejects: int
    publications: int
    oldest: float
    "The earliest and the latest time of any record; infinite where there is none."
    newest: float


Earlier = Callable[[Sequence[str]], Iterable[Mapping[str, Any]]]
"The records of `SESSION_KINDS` that were read of these nodes before, with their network and protocol."


def take_in(
    sessions: WatchedSessions, rows: DataFrame, changes: Changes | None = None, earlier: Earlier = lambda _: ()
) -> LineCounts:
    """Read the sessions from these rows of spools, and note what changed. `earlier` is asked about nodes that write
    again after they were forgotten."""
    of_sessions = F.col("problem").isNull() & F.col("kind").isin(list(SESSION_KINDS))
    found = rows.where(F.col("more").isNotNull() | of_sessions).select("life", "more", *COLUMNS).collect()
    sums = [
        (row, msgspec.json.decode(row["detail"], type=source.SessionSum)) for row in found if row["more"] is not None
    ]
    records = [row.asDict() for row in found if row["more"] is None]
    records = [*_returned(sessions, sums, records, earlier), *records]
    for row, whole in sums:
        if whole.first is not None and whole.last is not None:
            sessions.seen(row["life"], whole.node, whole.first, whole.last)
        sessions.has_more(row["life"], row["more"])
        if changes is not None:
            changes.read_to(row["life"], whole.node, whole.first, whole.last, row["more"])
    sessions.read_rows(records)
    if changes is not None:
        changes.changed(sessions, sorted({row["life"] for row in records}))
    return LineCounts(
        sum(whole.records for _, whole in sums),
        sum(whole.rejects for _, whole in sums),
        sum(whole.publications for _, whole in sums),
        min((whole.first for _, whole in sums if whole.first is not None), default=math.inf),
        max((whole.last for _, whole in sums if whole.last is not None), default=-math.inf),
    )


def _returned(
    sessions: WatchedSessions,
    sums: Sequence[tuple[Row, source.SessionSum]],
    records: Sequence[Mapping[str, Any]],
    earlier: Earlier,
) -> list[dict[str, Any]]:
    """What was read before of spools that are not known and do not begin now: from their last join on."""
    joined = {row["life"] for row in records if row["kind"] == Kind.JOIN}
    back = [
        (row["life"], whole.node, whole.first)
        for row, whole in sums
        if whole.first is not None and row["life"] not in sessions.sessions and row["life"] not in joined
    ]
    known = sorted(earlier(sorted({node for _, node, _ in back})) if back else (), key=lambda row: float(row["time"]))
    return [
        {**row, "life": spool}
        for spool, node, first in back
        for row in _of_spool(spool, [row for row in known if row["node"] == node and row["time"] <= first])
    ]


def _of_spool(spool: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of a node, in order of time, from the last join of this spool on. (Another network may have a node of
    the same name; a spool's name ends with the life that its join states.)"""
    joins = [row for row in rows if row["kind"] == Kind.JOIN]
    lives = [read_join(row["detail"]).life for row in joins]
    own = [row for row, life in zip(joins, lives, strict=True) if life is None or spool.endswith(f"-{life}")]
    if not own:
        return []
    last, keys = own[-1], ("network", "protocol")
    return [
        last,
        *(
            row
            for row in rows
            if row["kind"] != Kind.JOIN and row["time"] >= last["time"] and all(row[key] == last[key] for key in keys)
        ),
    ]


def run_names(name: str, communities: Iterable[Community]) -> dict[Community, str]:
    """The run of each network and protocol; the network is in its name where the protocol alone is not enough."""
    known = list(communities)
    networks = Counter(protocol for _, protocol in known)
    return {
        (network, protocol): f"{name}-{protocol}"
        if networks[protocol] == 1
        else f"{name}-{protocol}-{re.sub(r'[^A-Za-z0-9.]+', '-', network)}"
        for network, protocol in known
    }


def with_community(rows: DataFrame, sessions: WatchedSessions) -> DataFrame:
    """The rows with the `network` and `protocol` of their session."""
    known = rows.sparkSession.createDataFrame(sessions.community_of(), "life string, network string, protocol string")
    joined = rows.join(F.broadcast(known), "life", "left")
    return joined.withColumns(
        {
            "network": F.coalesce("network", F.lit(UNKNOWN_NETWORK)),
            "protocol": F.coalesce("protocol", F.lit(UNKNOWN)),
        }
    )


def positions_in(log: DataFrame) -> DataFrame:
    """Where nodes were, from all records that have a position; a node is in one place at a time."""
    known = log.where("not isnan(x_m) and not isnan(y_m)")
    keys = [column for column in ("run", "protocol", "node", "time") if column in log.columns]
    here = known.groupBy(*keys).agg(F.max(F.struct("x_m", "y_m")).alias("at"))
    nothing = F.lit(None).cast("double")
    return here.select(
        *keys,
        F.col("at.x_m").alias("x_m"),
        F.col("at.y_m").alias("y_m"),
        *(nothing.alias(name) for name in ("speed_m_s", "heading_deg", "until", "x_m_s", "y_m_s")),
    )


def published_events(publications: DataFrame) -> DataFrame:
    """Records of publications, with their `workload`, to rows of `events`."""
    return publications.select("workload", "detail").mapInArrow(_read_events, EVENTS.ddl)


def _read_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        pairs = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
        rows = [event_row(workload, Event.from_json(detail)) for workload, detail in pairs]
        yield pa.RecordBatch.from_pylist(rows, schema=EVENTS_ARROW)


def _reject(lake: Lake, rows: DataFrame, name: str) -> None:
    bad = rows.where("problem is not null").select(
        "file",
        F.lit(None).cast("bigint").alias("line"),
        F.lit(None).cast("string").alias("node"),
        F.lit(None).cast("double").alias("time"),
        F.lit("unparsable").alias("reason"),
        F.concat(F.lit("byte "), F.col("at_byte"), F.lit(": "), F.col("problem")).alias("detail"),
    )
    lake.write(bad.coalesce(1), "rejects", trace=name)


def _run_row(sessions: WatchedSessions, name: str, run: str, community: Community) -> dict[str, Any]:
    network, protocol = community
    ours = [session for session in sessions if (session.network, session.protocol) == community]
    return {
        "run": run,
        "campaign": name,
        "scenario": name,
        "point": name,
        "network": "live" if network == UNKNOWN_NETWORK else f"live {network}",
        "assumes": "",
        "range_m": None,
        "changed": "{}",
        "base": "{}",
        "trace": "",
        "window": "",
        "workload": run,
        "protocol": protocol,
        "variant": protocol,
        "settings": json.dumps(ours[0].settings, sort_keys=True),
        "seed": 0,
        "duration_s": max(session.last for session in ours) - min(session.first for session in ours),
        "warm_up_s": 0.0,
        "status": "done",
        "error": None,
        "traceback": None,
        "took_s": 0.0,
        "processor_s": None,
    }


def _frame(session: SparkSession, rows: Iterable[Mapping[str, Any]], table: Table) -> DataFrame:
    return session.createDataFrame([tuple(row[column] for column in table.columns) for row in rows], table.ddl)
