"""The ceiling: which expected (event, node) pairs any protocol could have served.

`events.transform(reachable(expected, positions, plans))` gives one row for each expected pair. Its `reach`
is "at once" (publisher and node are in one component of the contact graph when the event is published),
"by carrying" (a path over contacts in order of time, within the event's lifespan; nodes keep the event
between contacts) or "no". An event without a lifespan lives until the positions end.

It is exact for trajectories of straight legs, and the most favourable answer to each open question: passing on takes no
time, a radio that loses packets is taken at its outer range, and a node that leaves and returns still has
the event.

How it is found. Legs go to tasks by node, then by stretches of time; each stretch gives its exact contacts.
Contacts go to tasks by chunks of events: a chunk gets those that touch its time. Both travel packed, many to
a Spark row, with the names of only the nodes in them. How many stretches and chunks there are follows from counts,
which `reach_plans` asks Spark for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from earshot.pipeline.lake.tables import REACHABLE
from earshot.pipeline.oracle.spreading import (
    AT_ONCE,
    BY_CARRYING,
    EVENTS_AT_ONCE,
    REACHES,
    PublishedColumns,
    reach_of_pairs,
)
from earshot.pipeline.spark.session import parallelism
from earshot.pipeline.spark.tasks import coded, dealt, table_of
from earshot.pipeline.traces.exact_contacts import (
    ContactColumns,
    contacts_of_legs,
    legs_in_slices,
    legs_of,
    legs_within,
    no_contacts,
    rows_of,
    with_script,
)
from earshot.records.trajectories import Legs
from earshot.simulation.faults import Partition, plan
from earshot.simulation.media.links import LinkScript
from earshot.simulation.scenario.scenario import Scenario

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Transform = Callable[[DataFrame], DataFrame]

ROWS_A_STRETCH = 50_000
"Positions in one stretch of time, about: what a task searches for contacts at once."
STRETCHES_A_TASK = 8
ROWS_A_TASK = (20_000, 1_000_000)
"Positions of a task that cuts legs: enough to be worth a task, and few enough for a worker's memory."
_COLUMNS = REACHABLE.ddl
_PACKED = "task int, workload string, number int, packed binary"
_PACKED_ARROW = pa.schema(
    [("task", pa.int32()), ("workload", pa.string()), ("number", pa.int32()), ("packed", pa.binary())]
)


@dataclass(frozen=True, slots=True)
class ContactNetwork:
    """What decides which nodes of a workload are linked, and which pass nothing on."""

    range_m: float
    "Nodes within it are linked; infinite: every node reaches every other."
    max_gap_s: float = math.inf
    "A node whose positions are farther apart in time is away between them."
    links: LinkScript = LinkScript()
    partitions: tuple[Partition, ...] = ()
    silent: frozenset[str] = frozenset()
    "Nodes that pass on only what they publish themselves."
    until_s: float = math.inf
    "Scripts end here."
    infrastructure: bool = False
    "Whether every node reaches every other besides, whatever the range."

    @property
    def reaches_everywhere(self) -> bool:
        """Whether every node reaches every other at any time."""
        return self.infrastructure or (self.range_m == math.inf and self.links.graph is None)


def radio_range_m(scenario: Scenario) -> float:
    """The range of a scenario's radio; infinite where infrastructure or an overlay reaches everywhere."""
    if getattr(scenario, "infrastructure", None):
        return math.inf
    return float(getattr(scenario.medium, "range_m", math.inf))


def network_of(scenario: Scenario, seed: int, range_m: float) -> ContactNetwork:
    """The network of a simulated workload at this range; beside a radio, what reaches everywhere has no links of
    its own to script or to cut."""
    medium, faults = scenario.medium, scenario.faults
    if getattr(scenario, "infrastructure", None) or (range_m == math.inf and hasattr(medium, "range_m")):
        return ContactNetwork(range_m, infrastructure=True)
    silent = plan(faults, names := scenario.names(), scenario.duration_s, seed).silent
    return ContactNetwork(
        range_m,
        links=medium.links,
        partitions=faults.partitions,
        silent=frozenset(names[i] for i in silent),
        until_s=scenario.duration_s,
    )


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How many expected (event, node) pairs are reachable, and how."""

    expected: int
    at_once: int
    by_carrying: int

    @property
    def share(self) -> float:
        """The reachable share of what is expected; 1 of nothing."""
        return (self.at_once + self.by_carrying) / self.expected if self.expected else 1.0

    @property
    def share_at_once(self) -> float:
        """The share that is reachable at once."""
        return self.at_once / self.expected if self.expected else 1.0

    def __str__(self) -> str:
        return f"reachable at all: {100 * self.share:.1f} % (at once {100 * self.share_at_once:.1f} %)"


def ceiling_of(rows: DataFrame) -> Ceiling:
    """The ceiling of these rows of `reachable`."""
    counts = {row["reach"]: row["count"] for row in rows.groupBy("reach").count().collect()}
    return Ceiling(sum(counts.values()), counts.get(REACHES[AT_ONCE], 0), counts.get(REACHES[BY_CARRYING], 0))


def reachable(
    expected: DataFrame,
    positions: DataFrame,
    plans: Mapping[str, ReachPlan],
    sessions: DataFrame | None = None,
) -> Transform:
    """From `events` to `reachable`, for the workloads that have a plan (`reach_plans`). `positions` have the workload
    as their trace. Nodes are away outside of their `sessions`, where there are any; else outside of their
    positions."""
    everywhere = {name: one.network.range_m for name, one in plans.items() if one.network.reaches_everywhere}
    moving = {name: one for name, one in plans.items() if name not in everywhere}

    def transform(events: DataFrame) -> DataFrame:
        placed = sorted(moving)
        pairs = expected.select("workload", "event", "node")
        found = (
            pairs.where(F.col("workload").isin(list(everywhere)))
            .distinct()
            .withColumns({"range_m": _by_workload(everywhere), "reach": F.lit(REACHES[AT_ONCE])})
        )
        if not placed:
            return found
        chosen = events.where(F.col("workload").isin(placed))
        where = positions.where(F.col("trace").isin(placed)).select("trace", "node", "time", "x_m", "y_m")
        spark = events.sparkSession
        cores = parallelism(spark)
        rows = where.withColumn("until", F.lit(None).cast("double"))
        if sessions is not None:
            nothing = F.lit(None).cast("double")
            of_nodes = sessions.where(F.col("workload").isin(placed)).select(
                F.col("workload").alias("trace"),
                "node",
                F.col("start").alias("time"),
                nothing.alias("x_m"),
                nothing.alias("y_m"),
                F.coalesce("end", F.lit(math.inf)).alias("until"),
            )
            rows = rows.unionByName(of_nodes)
        node_tasks = _tasks(sum(one.rows for one in moving.values()), cores, ROWS_A_TASK)
        stretch_tasks = _tasks(sum(one.stretches for one in moving.values()), cores, (1, STRETCHES_A_TASK))
        chunk_tasks = _tasks(sum(one.chunks for one in moving.values()), cores, (1, 1))
        legs = rows.repartition(node_tasks, "trace", "node").mapInArrow(
            partial(_cut_legs, moving, stretch_tasks), _PACKED
        )
        contacts = dealt(legs, stretch_tasks, F.col("task")).mapInArrow(
            partial(_find_contacts, moving, chunk_tasks), _PACKED
        )
        wanted = (
            pairs.join(chosen.select("workload", "event", "source", "time", "lifespan_s"), ["workload", "event"])
            .join(F.broadcast(_chunks(spark, moving)), "workload")
            .withColumn("number", F.least("last_chunk", F.floor((F.col("time") - F.col("first")) / F.col("chunk_s"))))
            .select(
                ((F.col("number") + F.col("before")) % chunk_tasks).cast("int").alias("task"),
                "workload",
                F.col("number").cast("int").alias("number"),
                "event",
                "node",
                "source",
                "time",
                (F.col("time") + F.coalesce("lifespan_s", F.lit(math.inf))).alias("deadline"),
            )
        )
        both = dealt(contacts.unionByName(wanted, allowMissingColumns=True), chunk_tasks, F.col("task"))
        return found.unionByName(both.mapInArrow(partial(_answer, moving), _COLUMNS))

    return transform


def _tasks(count: int, cores: int, least_and_most: tuple[int, int]) -> int:
    """How many tasks share `count` things, each between the least and the most of them; four a core are enough."""
    least, most = least_and_most
    return max(1, min(count // least, 4 * cores), math.ceil(count / most))


def _by_workload(values: Mapping[str, float]) -> Column:
    """The value of a row's workload."""
    known = [F.lit(part) for pair in values.items() for part in pair]
    return F.create_map(*known)[F.col("workload")] if known else F.lit(math.inf)


@dataclass(frozen=True, slots=True)
class ReachPlan:
    """How a workload is cut: positions into stretches of time, events into chunks of time."""

    network: ContactNetwork
    rows: int
    origin: float
    stretch_s: float
    stretches: int
    first: float
    chunk_s: float
    chunks: int
    longest_s: float
    "The longest lifespan; infinite where an event has none."
    stretches_before: int
    "The stretches and chunks of the workloads before it: numbers them all."
    chunks_before: int

    def chunks_touching(self, start: Floats, end: Floats) -> tuple[Ints, Ints]:
        """For each contact the first chunk, and the one after the last, whose time it touches."""
        early = np.floor((start - self.longest_s - self.first) / self.chunk_s)
        late = np.floor((end - self.first) / self.chunk_s)
        # One chunk more on either side: rounding must not lose a contact.
        return (
            np.clip(early - 1, 0, self.chunks).astype(np.int64),
            np.clip(late + 2, 0, self.chunks).astype(np.int64),
        )


Plans = Mapping[str, ReachPlan]
"By workload."


def reach_plans(
    events: DataFrame, positions: DataFrame, networks: Mapping[str, ContactNetwork]
) -> dict[str, ReachPlan]:
    """How `reachable` cuts the workloads that have a network and events. Two Spark jobs count events and positions."""
    events = events.where(F.col("workload").isin(list(networks)))
    positions = positions.where(F.col("trace").isin(list(networks)))
    lifespan = F.coalesce("lifespan_s", F.lit(math.inf))
    timed = events.groupBy("workload").agg(F.count("*"), F.min("time"), F.max("time"), F.max(lifespan)).collect()
    placed = positions.groupBy("trace").agg(F.count("*"), F.min("time"), F.max("time")).collect()
    of_positions = {row[0]: row[1:] for row in placed}
    plans: dict[str, ReachPlan] = {}
    stretches = chunks = 0
    for workload, count, first, last, longest_s in sorted(tuple(row) for row in timed):
        rows, begin, end = of_positions.get(workload, (0, 0.0, 0.0))
        one = _plan(networks[workload], rows, begin, end, count, first, last, longest_s, stretches, chunks)
        plans[workload] = one
        stretches += one.stretches
        chunks += one.chunks
    return plans


def _plan(
    network: ContactNetwork,
    rows: int,
    begin: float,
    end: float,
    count: int,
    first: float,
    last: float,
    longest_s: float,
    stretches_before: int = 0,
    chunks_before: int = 0,
) -> ReachPlan:
    """How to cut these numbers of positions from `begin` to `end` and of events from `first` to `last`."""
    stretches, chunks = max(1, -(-rows // ROWS_A_STRETCH)), -(-count // EVENTS_AT_ONCE)
    stretch_s, chunk_s = (end - begin) / stretches or 1.0, (last - first) / chunks or 1.0
    return ReachPlan(
        network, rows, begin, stretch_s, stretches, first, chunk_s, chunks, longest_s, stretches_before, chunks_before
    )


def reach_in_one_task(
    workload: str,
    network: ContactNetwork,
    events: pa.Table,
    expected: pa.Table,
    positions: pa.Table,
    sessions: pa.Table | None = None,
) -> pa.Table:
    """The rows of `reachable` of one workload, from its tables: the steps of `reachable` one after the other."""
    schema = pa.schema([(name, pa.float64() if name == "range_m" else pa.string()) for name in REACHABLE.columns])
    pairs = expected.select(["workload", "event", "node"])
    if not pairs.num_rows:
        return schema.empty_table()
    if network.reaches_everywhere:
        found = pairs.group_by(pairs.column_names).aggregate([])
        for name, value in (("range_m", network.range_m), ("reach", REACHES[AT_ONCE])):
            found = found.append_column(name, pa.repeat(value, found.num_rows))
        return found.select(schema.names)
    time, lifespan = (events.column(name) for name in ("time", "lifespan_s"))
    span = (0.0, 0.0)
    if positions.num_rows:
        span = tuple(pc.min_max(positions.column("time")).as_py().values())
    longest_s = pc.max(pc.fill_null(lifespan, math.inf)).as_py()
    first, last = pc.min_max(time).as_py().values()
    one = _plan(network, positions.num_rows, *span, events.num_rows, first, last, longest_s)
    plans = {workload: one}
    nothing = pa.nulls(positions.num_rows, pa.float64())
    where = positions.select(["node", "time", "x_m", "y_m"]).append_column("until", nothing)
    if sessions is not None:
        ends = pc.fill_null(sessions.column("end"), math.inf)
        nothing = pa.nulls(sessions.num_rows, pa.float64())
        known = {"node": sessions.column("node"), "time": sessions.column("start")}
        where = pa.concat_tables([where, pa.table({**known, "x_m": nothing, "y_m": nothing, "until": ends})])
    where = where.append_column("trace", pa.repeat(workload, where.num_rows))
    legs = _cut_legs(plans, 1, where.combine_chunks().to_batches())
    contacts = pa.Table.from_batches(_find_contacts(plans, 1, legs), _PACKED_ARROW)
    published = events.select(["event", "source", "time"]).append_column(
        "deadline", pc.add(time, pc.fill_null(lifespan, math.inf))
    )
    wanted = pairs.join(published, "event", join_type="inner")
    number = np.floor((wanted.column("time").to_numpy() - one.first) / one.chunk_s)
    wanted = wanted.append_column("number", pa.array(np.minimum(number, one.chunks - 1).astype(np.int32)))
    both = pa.concat_tables([contacts, wanted], promote_options="default")
    return pa.Table.from_batches(_answer(plans, both.to_batches()), schema)


def _chunks(spark: Any, plans: Mapping[str, ReachPlan]) -> DataFrame:
    rows = [(name, one.first, one.chunk_s, one.chunks - 1, one.chunks_before) for name, one in plans.items()]
    frame: DataFrame = spark.createDataFrame(
        rows, "workload string, first double, chunk_s double, last_chunk bigint, before bigint"
    )
    return frame


def _cut_legs(plans: Plans, tasks: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task of nodes: their legs while they are there, packed by stretches of time."""
    table = table_of(batches)
    if table is None:
        return
    for workload in pc.unique(table.column("trace")).to_pylist():
        one = plans.get(workload)
        if one is not None:
            ours = table.filter(pc.equal(table.column("trace"), workload))
            yield from _legs_of_workload(workload, one, tasks, ours)


def _legs_of_workload(workload: str, one: ReachPlan, tasks: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    node, names = coded(table.column("node"))
    time, x, y, until = (table.column(name).to_numpy(zero_copy_only=False) for name in ("time", "x_m", "y_m", "until"))
    order = np.lexsort((time, node))
    placed = order[(np.isfinite(time) & np.isfinite(x) & np.isfinite(y))[order]]
    legs = legs_of(node[placed], time[placed], x[placed], y[placed], one.network.max_gap_s)
    there = order[~np.isnan(until[order])]
    if len(there):
        legs = legs_within(legs, node[there], time[there], until[there])
    if not len(legs.node):
        return
    pieces, numbers = legs_in_slices(legs, one.origin, one.stretch_s)
    for number in np.unique(numbers).tolist():
        some = slice(*np.searchsorted(numbers, [number, number + 1]).tolist())
        packed = _packed(names, ("node",), rows_of(pieces, some)._asdict())
        yield _row((number + one.stretches_before) % tasks, workload, number, packed)


def _find_contacts(plans: Plans, tasks: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task of stretches: the contacts in each, packed by the chunks of events they touch."""
    for (workload, _), parts in _by_number(batches).items():
        yield from _contacts_of_stretch(workload, plans[workload], tasks, parts)


def _contacts_of_stretch(workload: str, one: ReachPlan, tasks: int, parts: list[bytes]) -> Iterator[pa.RecordBatch]:
    names, columns = _unpacked(parts, ("node",))
    legs, network = Legs(**columns), one.network
    contacts = no_contacts()
    if network.links.graph is None:
        contacts = contacts_of_legs(legs, network.range_m, network.partitions)
    if network.links:
        contacts = with_script(contacts, legs, names, network.links, network.until_s)
    first, after = one.chunks_touching(contacts.start, contacts.end)
    for chunk in range(int(first.min(initial=one.chunks)), int(after.max(initial=0))):
        some = np.flatnonzero((first <= chunk) & (chunk < after))
        if len(some):
            packed = _packed(names, ("a", "b"), rows_of(contacts, some)._asdict())
            yield _row((chunk + one.chunks_before) % tasks, workload, chunk, packed)


def _answer(plans: Plans, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task of chunks: contacts and expected pairs to answers."""
    table = table_of(batches)
    if table is None:
        return
    contacts = _by_number(table.filter(table.column("packed").is_valid()).to_batches())
    pairs = table.filter(table.column("event").is_valid())
    for workload in pc.unique(pairs.column("workload")).to_pylist():
        ours = pairs.filter(pc.equal(pairs.column("workload"), workload))
        for number in pc.unique(ours.column("number")).to_pylist():
            some = ours.filter(pc.equal(ours.column("number"), number))
            yield _answer_chunk(workload, plans[workload].network, some, contacts.get((workload, number), []))


def _answer_chunk(workload: str, network: ContactNetwork, pairs: pa.Table, packed: list[bytes]) -> pa.RecordBatch:
    names, columns = _unpacked(packed, ("a", "b"))
    numbers = {name: i for i, name in enumerate(names)}
    events, event_names = coded(pairs.column("event"))
    nodes, sources = (
        _numbered(pairs.column(name), numbers) for name in ("node", "source")
    )  # a node without a contact gets a number of its own
    _, first = np.unique(events, return_index=True)
    time, deadline = (pairs.column(name).to_numpy()[first] for name in ("time", "deadline"))
    # An event may be expected by several subscriptions of a node.
    keys, chosen = np.unique(events * len(numbers) + nodes, return_index=True)
    silent = np.array([numbers[name] for name in network.silent if name in numbers], dtype=np.int64)
    reach = reach_of_pairs(
        len(numbers),
        ContactColumns(**columns) if packed else no_contacts(),
        PublishedColumns(sources[first], time, deadline),
        keys // len(numbers),
        nodes[chosen],
        silent if len(silent) else None,
    )
    return pa.record_batch(
        {
            "workload": pa.repeat(workload, len(chosen)),
            "range_m": pa.repeat(network.range_m, len(chosen)),
            "event": pa.array(event_names, pa.string()).take(pa.array(events[chosen])),
            "node": pairs.column("node").combine_chunks().take(pa.array(chosen)),
            "reach": pa.array(REACHES, pa.string()).take(pa.array(reach)),
        }
    )


def _numbered(column: pa.ChunkedArray, numbers: dict[str, int]) -> Ints:
    """The column's nodes by number; new ones are added."""
    codes, names = coded(column)
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)[codes]


def _by_number(batches: Iterable[pa.RecordBatch]) -> dict[tuple[str, int], list[bytes]]:
    found: dict[tuple[str, int], list[bytes]] = {}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("workload", "number", "packed"))
        for workload, number, packed in zip(*columns, strict=True):
            found.setdefault((workload, number), []).append(packed)
    return found


def _packed(names: list[str], of_nodes: tuple[str, ...], columns: Mapping[str, Any]) -> bytes:
    """The columns as bytes, with the names of the nodes in them."""
    used = np.unique(np.concatenate([columns[name] for name in of_nodes]))
    smaller = {name: np.searchsorted(used, columns[name]).astype(np.int32) for name in of_nodes}
    batch = pa.record_batch({**columns, **smaller})
    named = msgspec.json.encode([names[i] for i in used.tolist()])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema.with_metadata({"names": named})) as stream:
        stream.write_batch(batch.replace_schema_metadata({"names": named}))
    return bytes(sink.getvalue())


def _unpacked(parts: Iterable[bytes], of_nodes: tuple[str, ...]) -> tuple[list[str], dict[str, Any]]:
    """What `_packed` made, put together, with one number for each name."""
    numbers: dict[str, int] = {}
    tables = []
    for packed in parts:
        table = pa.ipc.open_stream(packed).read_all()
        names = msgspec.json.decode(table.schema.metadata[b"names"], type=list[str])
        number = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        tables.append({**columns, **{name: number[columns[name]] for name in of_nodes}})
    if not tables:
        return [], {}
    return list(numbers), {name: np.concatenate([one[name] for one in tables]) for name in tables[0]}


def _row(task: int, workload: str, number: int, packed: bytes) -> pa.RecordBatch:
    return pa.record_batch([[task], [workload], [number], [packed]], schema=_PACKED_ARROW)
