"""The lake's tables: one schema each, and the columns each is partitioned by.

A partition is what a stage replaces as a whole: a trace, a workload, a run. A new column is null in the
rows that were written before it; a column never changes its type. Times are seconds: of
the simulation, or since the epoch (UTC) where a trace or a live node gives the time of day.
Unknown numbers are null, except in `log`, which follows `earshot.records` (NaN, -1, "").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from earshot import records
from earshot.errors import UnknownName

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


KEEP_WATCH_LOG_S = 20.0
"Tables of a watch get a commit or more each batch: what their log's last checkpoint holds is removed quickly."


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the lake."""

    name: str
    columns: Mapping[str, str]
    "Column name to Spark SQL type; the partition columns stand first."
    partition_by: tuple[str, ...]
    made_by: str
    "The command that makes it, as errors name it; {x} is what the partition column x was asked to be."
    clustered: bool = False
    "Its partitions are a few rows each: many share a file, and their columns are in the file."
    optional: tuple[str, ...] = ()
    "Columns that rows may lack when they are written: they are null then."
    keep_h: float = 168.0
    "For how many hours an earlier version stays readable, at least."
    keep_log_s: float | None = None
    "For how many seconds commits before the log's last checkpoint are kept; None: as Delta Lake does, 30 days."

    @property
    def ddl(self) -> str:
        """The schema as Spark SQL writes it."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())

    @property
    def schema(self) -> StructType:
        """The schema as a Spark type; asks the running session to read it."""
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(self.ddl)
        assert isinstance(schema, StructType)
        return schema

    @property
    def data_columns(self) -> tuple[str, ...]:
        """All columns but those of the partition."""
        return tuple(name for name in self.columns if name not in self.partition_by)

    @property
    def folders_by(self) -> tuple[str, ...]:
        """The columns that folders name, and not files."""
        return () if self.clustered else self.partition_by

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns inside the files."""
        return tuple(name for name in self.columns if name not in self.folders_by)


_LOG_TYPES = {"float64": "double", "int64": "bigint", "int32": "int", "string": "string"}

TRACES = Table(
    "traces",
    {
        "trace": "string",
        "format": "string",
        "files": "array<string>",
        "motion": "string",  # "samples": seen now and then; "waypoints": straight and even between two rows
        "nodes": "bigint",
        "rows": "bigint",  # in positions
        "rejected": "bigint",  # in rejects
        "start": "double",  # the first and the last row's time
        "end": "double",
        "interval_s": "double",  # median time between two rows of a node
        "common_times": "boolean",  # all nodes are seen at the same moments, one interval apart
        "origin_lat_deg": "double",  # the plane the positions lie on; null where the trace is in metres
        "origin_lon_deg": "double",
        "west_m": "double",  # the bounding box of the positions
        "south_m": "double",
        "east_m": "double",
        "north_m": "double",
        "content": "string",  # a hash of the positions: the same for the same ones
        "source": "string",  # a hash of the files' names, sizes and times, and of how they were read
        "doubts": "array<string>",  # what is probably wrong with it, in words
    },
    partition_by=("trace",),
    made_by="earshot ingest FILE --trace {trace}",
    clustered=True,
)

POSITIONS = Table(
    "positions",
    {
        "trace": "string",
        "node": "string",
        "time": "double",
        "x_m": "double",
        "y_m": "double",
        "speed_m_s": "double",  # null where the trace does not say
        "heading_deg": "double",  # clockwise from north; null where the trace does not say
        "until": "double",  # the time of the node's next row; of its last row, its own time; null: look it up
        "x_m_s": "double",  # straight and even to the next row; of the last row, as before it
        "y_m_s": "double",
        "type": "string",  # what kind of node it is, as the trace calls it; null where it does not say
        "others": "string",  # what else the trace's row says: a JSON object of texts, by its own names; null: nothing
    },
    partition_by=("trace",),
    optional=("type", "others"),
    made_by="earshot ingest FILE --trace {trace}",
)

REJECTS = Table(
    "rejects",
    {
        "trace": "string",
        "file": "string",
        "line": "bigint",  # from 1; of Parquet: the row
        "node": "string",
        "time": "double",
        "reason": "string",  # one of earshot.pipeline.traces.positions.REASONS
        "detail": "string",  # what exactly was wrong
    },
    partition_by=("trace",),
    made_by="earshot ingest FILE --trace {trace}",
)

CONTACTS = Table(
    "contacts",
    {
        "trace": "string",
        "range_m": "double",
        "a": "string",  # a < b
        "b": "string",
        "start": "double",
        "end": "double",
    },
    partition_by=("trace", "range_m"),
    made_by="earshot contacts {trace} --range {range_m}",
)

PROFILES = Table(
    "profiles",
    {
        "trace": "string",
        "content": "string",  # of the positions it is about: see traces
        "described": "string",  # the profile as JSON
    },
    partition_by=("trace",),
    made_by="earshot profile {trace}",
    clustered=True,
)

SCENARIOS = Table(
    "scenarios",
    {
        "workload": "string",
        "scenario": "string",  # its name
        "seed": "bigint",
        "described": "string",  # the whole scenario as JSON, every default written out
    },
    partition_by=("workload",),
    made_by="earshot workload {workload}",
    clustered=True,
)

EVENTS = Table(
    "events",
    {
        "workload": "string",
        "event": "string",
        "type": "string",
        "source": "string",  # the publishing node
        "time": "double",
        "x_m": "double",  # where the publisher was; null: unknown
        "y_m": "double",
        "x_m_s": "double",  # its velocity; null: unknown, counts as still
        "y_m_s": "double",
        "area": "string",  # where it is of interest, as JSON; null: everywhere
        "lifespan_s": "double",
        "priority": "int",
        "format": "string",  # of content: "json" (flat values) or "xml"
        "content": "string",
    },
    partition_by=("workload",),
    made_by="earshot workload {workload}",
)

SUBSCRIPTIONS = Table(
    "subscriptions",
    {
        "workload": "string",
        "subscription": "string",
        "node": "string",
        "filter": "string",
        "region": "string",  # the region of interest, as JSON; null: everywhere
        "start": "double",
        "end": "double",  # null: never withdrawn
    },
    partition_by=("workload",),
    made_by="earshot workload {workload}",
)

SESSIONS = Table(
    "sessions",
    {
        "workload": "string",
        "node": "string",
        "start": "double",  # the node is there from start until before end
        "end": "double",  # null: it stays
    },
    partition_by=("workload",),
    made_by="earshot workload {workload}",
)

ANNOUNCEMENTS = Table(
    "announcements",
    {
        "workload": "string",
        "node": "string",
        "type": "string",
        "proximity": "string",  # as JSON; null: everywhere
        "start": "double",
        "end": "double",
    },
    partition_by=("workload",),
    made_by="earshot workload {workload}",
)

EXPECTED = Table(
    "expected",
    {"workload": "string", "event": "string", "node": "string", "subscription": "string", "why": "string"},
    partition_by=("workload",),
    made_by="earshot oracle {workload}",
)

REACHABLE = Table(
    "reachable",
    {
        "workload": "string",
        "range_m": "double",  # of the radios; infinite: every node reaches every other
        "event": "string",
        "node": "string",
        "reach": "string",  # "at once", "by carrying" or "no"
    },
    partition_by=("workload", "range_m"),
    made_by="earshot oracle {workload} --range {range_m}",
)

RUNS = Table(
    "runs",
    {
        "run": "string",  # the hash of what it runs
        "campaign": "string",
        "scenario": "string",
        "point": "string",  # the hash of everything that decides it but protocol, settings and seed
        "network": "string",  # what carried the packets; runs over different networks are never ranked together
        "assumes": "string",  # what the protocol was given beyond it, as in "ideal routing"
        "range_m": "double",  # of its radios; infinite: every node reaches every other; null: unknown
        "changed": "string",  # the keys in which the scenario differs from the one it is named after, as JSON
        "base": "string",  # the values of these keys in the scenario it is named after, as JSON
        "trace": "string",  # the trace files that were played back; "": none
        "window": "string",  # which part of them, as in "600 to 900 s"
        "workload": "string",
        "protocol": "string",
        "variant": "string",  # the protocol and the settings it was given, as reports name it
        "settings": "string",  # as JSON
        "seed": "bigint",
        "duration_s": "double",
        "warm_up_s": "double",  # what is published before does not count
        "status": "string",  # "done" or "failed"
        "error": "string",
        "traceback": "string",
        "took_s": "double",  # by the clock
        "processor_s": "double",  # much less than took_s on a busy machine; null in runs of older versions
    },
    partition_by=("run",),
    made_by="earshot sweep CAMPAIGN.toml",
    clustered=True,
)

LOG = Table(
    "log",
    {"run": "string"} | {name: _LOG_TYPES[kind] for name, kind in records.COLUMNS.items()},
    partition_by=("run",),
    made_by="earshot sweep CAMPAIGN.toml",
)

METRICS = Table(
    "metrics",
    {
        "run": "string",
        "metric": "string",
        # "all", "type", "node", "minute", "area", "cause", "reason" or "packet"; "about": of a plug-in's metric
        "by": "string",
        "key": "string",  # which type, node, ...; "" for the whole run
        "value": "double",  # what cannot be measured (a ratio of nothing) has no row
    },
    partition_by=("run",),
    made_by="earshot sweep CAMPAIGN.toml",
    clustered=True,
)

_PAIR = {
    "network": "string",  # of which group and key, or peers; see `earshot.records.details`
    "protocol": "string",
    "event": "string",
    "type": "string",
    "area": "string",  # the square it was published in, by its south-west corner: "2000,-1000"; "" where unknown
    "source": "string",  # the publisher
    "published_at": "double",
    "node": "string",
    "wanted": "boolean",  # the oracle expects the node to get it
    "got": "boolean",
    "delivered_at": "double",
    "latency_s": "double",
    "hops": "int",
    "receptions": "bigint",
    "reason": "string",  # of what is wanted and not got: why it was lost
}

WATCHES = Table(
    "watches",
    {
        "watch": "string",
        "batch": "bigint",  # the last batch that is whole in every table
        "committed_at": "double",  # by this machine's clock
        "spools": "string",  # the folders, as a JSON list
        "watermark": "double",  # rows with an earlier time are late; null: nothing was read yet
        "settled_until": "double",  # what was published up to then is settled
        "newest": "double",  # the latest time of any record
        "cell_m": "double",  # the side of an area's square
        "nodes": "bigint",  # not known to have left
        "records": "bigint",  # of all batches, late ones included
        "events": "bigint",
        "open_events": "bigint",  # published, not settled
        "rejects": "bigint",
        "late": "bigint",
        "subscriptions": "bigint",  # standing ones, of --subscriptions
        "matches": "bigint",
        "state": "string",  # where the watch is, as JSON: its own, with `watched_state` and `watched_positions`
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

# Tables that grow batch by batch have a partition a day: that of the newest record when the batch was made (UTC).

WATCHED_LOG = Table(
    "watched_log",
    {"watch": "string", "day": "string", "batch": "bigint"}
    | {"network": "string", "protocol": "string", "late": "boolean"}
    | {name: _LOG_TYPES[kind] for name, kind in records.COLUMNS.items()},
    partition_by=("watch", "day"),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_PAIRS = Table(
    "watched_pairs",
    {"watch": "string", "day": "string", "batch": "bigint"} | _PAIR,
    partition_by=("watch", "day"),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_OPEN = Table(
    "watched_open",
    {"watch": "string", "batch": "bigint"} | _PAIR,
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_FIGURES = Table(
    "watched_figures",
    {
        "watch": "string",
        "batch": "bigint",  # as of which batch
        "network": "string",
        "protocol": "string",
        "by": "string",  # "all", "type", "area" or "minute"
        "key": "string",  # which type, area or minute; "" for all
        "metric": "string",
        "value": "double",  # what cannot be measured (a ratio of nothing) has no row
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_LOSSES = Table(
    "watched_losses",
    {
        "watch": "string",
        "batch": "bigint",
        "network": "string",
        "protocol": "string",
        "type": "string",
        "area": "string",
        "reason": "string",
        "lost": "bigint",  # expected (event, node) pairs without a delivery
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_MATCHES = Table(
    "watched_matches",
    {
        "watch": "string",
        "day": "string",
        "batch": "bigint",
        "network": "string",
        "protocol": "string",
        "event": "string",
        "type": "string",
        "source": "string",
        "published_at": "double",
        "subscription": "string",  # line-N of the file, as it was then
        "filter": "string",
    },
    partition_by=("watch", "day"),
    made_by="earshot watch SPOOL_DIR --name {watch} --subscriptions FILE",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_LATE = Table(
    "watched_late",
    {
        "watch": "string",
        "day": "string",
        "batch": "bigint",
        "network": "string",
        "protocol": "string",
        "reason": "string",  # "behind the watermark", "overdue" or "unknown event"
        "time": "double",
        "node": "string",
        "kind": "string",
        "event": "string",
        "behind_s": "double",  # the watermark, or the end of patience, less the row's time
    },
    partition_by=("watch", "day"),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_REJECTS = Table(
    "watched_rejects",
    {
        "watch": "string",
        "day": "string",
        "batch": "bigint",
        "file": "string",
        "at_byte": "bigint",
        "reason": "string",
        "detail": "string",
    },
    partition_by=("watch", "day"),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_ALERTS = Table(
    "watched_alerts",
    {
        "watch": "string",
        "alert": "string",  # as it was asked for; rows are those that hold now
        "network": "string",
        "protocol": "string",
        "by": "string",
        "key": "string",
        "value": "double",  # when it was raised
        "time": "double",  # of the newest record then
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch} --alert CONDITION",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_STATE = Table(
    "watched_state",
    {
        "watch": "string",
        "batch": "bigint",
        "kind": "string",  # see `earshot.pipeline.watch.watch_state`
        "key": "string",
        "value": "string",
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCHED_POSITIONS = Table(
    "watched_positions",
    {
        "watch": "string",
        "network": "string",
        "protocol": "string",
        "node": "string",
        "time": "double",  # where the node was last, before the records that a batch looks at
        "x_m": "double",
        "y_m": "double",
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

WATCH_LEASES = Table(
    "watch_leases",
    {
        "watch": "string",
        "owner": "string",
        "host": "string",
        "until": "double",  # nobody else may run this watch before then
    },
    partition_by=("watch",),
    made_by="earshot watch SPOOL_DIR --name {watch}",
    keep_h=1.0,
    keep_log_s=KEEP_WATCH_LOG_S,
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        TRACES,
        POSITIONS,
        REJECTS,
        CONTACTS,
        PROFILES,
        SCENARIOS,
        EVENTS,
        SUBSCRIPTIONS,
        ANNOUNCEMENTS,
        SESSIONS,
        EXPECTED,
        REACHABLE,
        RUNS,
        LOG,
        METRICS,
        WATCHES,
        WATCHED_ALERTS,
        WATCHED_STATE,
        WATCHED_POSITIONS,
        WATCH_LEASES,
        WATCHED_LOG,
        WATCHED_PAIRS,
        WATCHED_OPEN,
        WATCHED_FIGURES,
        WATCHED_LOSSES,
        WATCHED_MATCHES,
        WATCHED_LATE,
        WATCHED_REJECTS,
    )
}


def table_named(name: str) -> Table:
    """The table of that name."""
    if name not in TABLES:
        raise UnknownName("table", name, TABLES)
    return TABLES[name]


def arrow_schema(table: str, with_partitions: bool = False) -> pa.Schema:
    """A table's columns but those of the partition, as Arrow types; with them, all."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "double": pa.float64(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "boolean": pa.bool_(),
        "array<string>": pa.list_(pa.string()),
    }
    kind = table_named(table)
    names = kind.columns if with_partitions else kind.data_columns
    return pa.schema([(name, types[kind.columns[name]]) for name in names])


assert all(table.partition_by == tuple(table.columns)[: len(table.partition_by)] for table in TABLES.values())
