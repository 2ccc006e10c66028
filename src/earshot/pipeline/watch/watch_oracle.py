"""The oracle of a watch: judges the open events of a stream in Spark tasks.

`log.transform(judged(judge))` brings all records of an event together and says which nodes should have
received it (by the oracle), which did, why not, and which deliveries came too late. The tasks write these rows to
files of the lake; the driver gets the names of the files, and counts. What all events share travels with the
tasks: the subscription spans, and where to read the nodes' positions.

A worker reads each file of positions once, keeps it while the window has it, and makes trajectories of it. What leaves
the window is folded into one file: each node's last place.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from earshot.events import Event
from earshot.filters import Viewer
from earshot.pipeline.campaigns.run_figures import area_of
from earshot.pipeline.campaigns.run_pairs import loss_cause
from earshot.pipeline.lake.batch_files import stem_of
from earshot.pipeline.lake.data_files import DataFile, DataFiles
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import arrow_schema, table_named
from earshot.pipeline.oracle.matcher import Matcher, viewer_at
from earshot.pipeline.spark.tasks import table_of
from earshot.pipeline.watch.running_metrics import three_digits
from earshot.pipeline.watch.sessions import Community
from earshot.records import Kind
from earshot.records.trajectories import Trajectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Key = tuple[str, str, str]
"Network, protocol, and an event or a node."
PLACES = arrow_schema("watched_positions")
_read: dict[tuple[str, str], pa.Table] = {}
"A worker's positions by lake and file."
_built: dict[tuple[str, ...], dict[Key, Trajectory]] = {}
"And the trajectories of its last window: a worker runs several tasks of one batch."


@dataclass(frozen=True)
class WindowPositions:
    """The files that have the positions of a window. It is sent to the executors."""

    folder: Folder
    files: Sequence[DataFile]
    "Of `watched_positions` and `watched_log`."

    def rows(self) -> pa.Table:
        """All positions in the files."""
        wanted = {(self.folder.root, f"{file.table}/{file.path}"): file for file in self.files}
        for key in [key for key in _read if key[0] == self.folder.root and key not in wanted]:
            del _read[key]
        for key, file in wanted.items():
            if key not in _read:
                _read[key] = _positions(self.folder, file)
        return pa.concat_tables([PLACES.empty_table(), *(_read[key] for key in wanted)])

    def trajectories(self) -> dict[Key, Trajectory]:
        """Each node's."""
        key = (self.folder.root, *(file.path for file in self.files))
        if key not in _built:
            _built.clear()
            _built[key] = trajectories_of(self.rows())
        return _built[key]


def _positions(folder: Folder, file: DataFile) -> pa.Table:
    log = TableLog(folder, table_named(file.table))
    if file.table == "watched_positions":
        return log.read_file(file, PLACES.names)
    rows = log.read_file(file, [*PLACES.names, "late"])
    known = pc.and_(pc.is_finite(rows["x_m"]), pc.is_finite(rows["y_m"]))
    return rows.filter(pc.and_(known, pc.invert(rows["late"]))).select(PLACES.names).combine_chunks()


def trajectories_of(positions: pa.Table) -> dict[Key, Trajectory]:
    """Each node's trajectory, from rows of network, protocol, node, time, x_m and y_m in any order. A node is
    in one place at a time: the greatest recorded, as in the batch."""
    ordered = positions.sort_by([(name, "ascending") for name in PLACES.names])
    keys = list(zip(*(ordered[name].to_pylist() for name in PLACES.names[:3]), strict=True))
    time, x_m, y_m = (ordered[name].to_numpy() for name in PLACES.names[3:])
    starts = [number for number, key in enumerate(keys) if number == 0 or key != keys[number - 1]]
    found = {}
    for start, end in pairwise([*starts, len(keys)]):
        last_of_its_time = np.append(time[start : end - 1] != time[start + 1 : end], True)
        found[keys[start]] = Trajectory(
            keys[start][2], *(column[start:end][last_of_its_time] for column in (time, x_m, y_m))
        )
    return found


def _fold(
    positions: WindowPositions, known: frozenset[Key], watch: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In the one task of a fold: the last places, as a file."""
    for _ in batches:
        found = trajectories_of(positions.rows())
        rows = [
            (*key, trajectory.times[-1], trajectory.xs[-1], trajectory.ys[-1])
            for key, trajectory in found.items()
            if key in known
        ]
        table = pa.Table.from_pylist([dict(zip(PLACES.names, row, strict=True)) for row in rows], schema=PLACES)
        file = DataFiles(positions.folder).write_table("watched_positions", table, watch=watch)
        yield pa.RecordBatch.from_pydict({"file": [json.dumps(asdict(file))]})


def fold_positions(session: SparkSession, positions: WindowPositions, known: Iterable[Key], watch: str) -> DataFile:
    """One file with the last place of each known node, written by a task and not committed."""
    task = partial(_fold, positions, frozenset(known), watch)
    row = session.range(0, 1, 1, 1).mapInArrow(task, "file string").collect()[0]
    found: Mapping[str, object] = json.loads(row["file"])
    return DataFile(**found)  # type: ignore[arg-type]


FILE, COUNT = "file", "count"
"What a row of the verdict is: a file that a task wrote, or a count of equal pairs; its value is JSON."
DDL = "role string, value string"
SCHEMA = pa.schema([("role", pa.string()), ("value", pa.string())])
PAIRS, OPEN_PAIRS, LATE = arrow_schema("watched_pairs"), arrow_schema("watched_open"), arrow_schema("watched_late")
Row = dict[str, Any]
READ = ("network", "protocol", "batch", "late", "time", "node", "kind", "event", "hops", "detail", "x_m", "y_m")


@dataclass(frozen=True)
class Judge:
    """What all events share. It is sent to the executors."""

    matcher: Matcher
    positions: WindowPositions
    watch: str
    day: str
    batch: int
    settled_before: float
    "What was published up to then is settled already."
    settled: float
    "What was published up to then is settled now."
    patience_s: float
    cell_m: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = table_of(batches)
        if table is None:
            return
        pairs, counts, late = self.verdict(_Records(table))
        kept = [
            ("watched_pairs", PAIRS, [pair for pair in pairs if pair["is_settled"]], {"day": self.day}),
            ("watched_open", OPEN_PAIRS, [pair for pair in pairs if not pair["is_settled"]], {}),
            ("watched_late", LATE, late, {"day": self.day}),
        ]
        found = []
        for name, schema, rows, partition in kept:
            if rows:
                table = pa.Table.from_pylist(rows, schema=schema)
                own = {"watch": self.watch, **partition}
                file = DataFiles(self.positions.folder).write_file(name, table, own, stem_of(self.batch))
                found.append((FILE, json.dumps(asdict(file))))
        found += [(COUNT, json.dumps(row)) for row in counts]
        yield pa.RecordBatch.from_pylist([{"role": role, "value": value} for role, value in found], schema=SCHEMA)

    def verdict(self, records: _Records) -> tuple[list[Row], list[Row], list[Row]]:
        """The pairs of open events and of those that are settled now, counts of equal pairs, and late deliveries."""
        opened = {
            key: publication
            for key, publication in records.published.items()
            if not publication["late"] and publication["time"] > self.settled_before
        }
        expected = self._expected(opened)
        pairs: list[Row] = []
        counts: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
        for key, publication in opened.items():
            about = self._about(key, publication)
            group = tuple(about[name] for name in ("network", "protocol", "type", "area", "minute", "is_settled"))
            counts[*group, None, None, None, None]["events"] += 1
            for node in sorted(expected[key] | records.delivered_to(key)):
                pair = {**about, **records.pair(key, node, publication["time"], node in expected[key])}
                pairs.append(pair)
                met = pair["wanted"] and pair["got"]
                latency = three_digits(pair["latency_s"]) if met else None
                alike = counts[*group, pair["wanted"], pair["got"], pair["reason"], latency]
                alike["pairs"] += 1
                if pair["hops"] is not None:
                    alike["hops"] += pair["hops"]
                    alike["hops_counted"] += 1
        names = ("network", "protocol", "type", "area", "minute", "is_settled", "wanted", "got", "reason", "latency_s")
        counted = [
            dict(zip(names, group, strict=True))
            | {name: amounts[name] for name in ("events", "pairs", "hops", "hops_counted")}
            for group, amounts in counts.items()
        ]
        return pairs, counted, list(self._late(records))

    def _about(self, key: Key, publication: Mapping[str, Any]) -> dict[str, Any]:
        at = publication["time"]
        return {
            "network": key[0],
            "protocol": key[1],
            "event": key[2],
            "batch": self.batch,
            "type": publication["published"].type,
            "area": area_of(publication["x_m"], publication["y_m"], self.cell_m),
            "source": publication["node"],
            "published_at": at,
            "minute": str(math.floor(at / 60.0)),
            "is_settled": at <= self.settled,
        }

    def _expected(self, opened: Mapping[Key, Mapping[str, Any]]) -> dict[Key, set[str]]:
        """The oracle's answer: for each event the nodes that should get it."""
        lookup = self.matcher.lookup()
        trajectories = self.positions.trajectories() if opened else {}

        def viewer(community: Community, node: str, time: float) -> Viewer | None:
            trajectory = trajectories.get((*community, node))
            return None if trajectory is None else viewer_at(trajectory, time)

        expected: dict[Key, set[str]] = {}
        for key, publication in opened.items():
            event: Event = publication["published"]
            oracle = lookup.oracle(workload_of(*key[:2]))
            expected[key] = oracle.receivers(event, event.time, partial(viewer, key[:2])) if oracle else set()
        return expected

    def _late(self, records: _Records) -> Iterator[dict[str, Any]]:
        """Deliveries that came too late to count, and those whose event does not count."""
        for key, delivery in records.deliveries():
            publication = records.published.get(key)
            crossing = self.settled_before < delivery["time"] <= self.settled
            reason, behind_s = None, None
            if publication is None:
                reason = "unknown event" if crossing else None
            elif publication["late"]:
                reason = "of a late event" if crossing else None
            elif delivery["batch"] == self.batch and publication["time"] <= self.settled_before:
                reason, behind_s = "overdue", delivery["time"] - publication["time"] - self.patience_s
            if reason is not None:
                row = {
                    "network": key[0],
                    "protocol": key[1],
                    "event": key[2],
                    "time": delivery["time"],
                    "node": delivery["node"],
                }
                more = {"batch": self.batch, "kind": Kind.DELIVER, "reason": reason, "behind_s": behind_s}
                yield {**row, **more}


class _Records:
    """The records of some events. What came too late is left out of everything but the publications."""

    def __init__(self, table: pa.Table) -> None:
        self.published: dict[Key, dict[str, Any]] = {}
        for row in self._of(table, Kind.PUBLISH):
            row["published"] = Event.from_json(row["detail"])
            self.published.setdefault((row["network"], row["protocol"], row["event"]), row)
        counting = table.filter(pc.invert(table["late"]))
        by_node = ["network", "protocol", "event", "node"]
        received = counting.filter(pc.equal(counting["kind"], Kind.RECEIVE)).group_by(by_node)
        self._receptions = {
            (row["network"], row["protocol"], row["event"], row["node"]): row["count_all"]
            for row in received.aggregate([([], "count_all")]).to_pylist()
        }
        self._deliveries: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for row in self._of(counting, Kind.DELIVER):
            self._deliveries[row["network"], row["protocol"], row["event"]].append(row)
        dropped = counting.filter(pc.equal(counting["kind"], Kind.DROP)).group_by([*by_node, "detail"])
        self._drops: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
        for row in dropped.aggregate([]).to_pylist():
            self._drops[row["network"], row["protocol"], row["event"], row["node"]].append(row["detail"])
        sent = counting.filter(pc.equal(counting["kind"], Kind.SEND)).group_by(["network", "protocol", "event"])
        self._sent = {(row["network"], row["protocol"], row["event"]) for row in sent.aggregate([]).to_pylist()}

    @staticmethod
    def _of(table: pa.Table, kind: Kind) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = table.filter(pc.equal(table["kind"], kind)).to_pylist()
        return rows

    def deliveries(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        for key, rows in self._deliveries.items():
            for row in rows:
                yield key, row

    def delivered_to(self, key: Key) -> set[str]:
        return {row["node"] for row in self._deliveries.get(key, ())}

    def pair(self, key: Key, node: str, published_at: float, wanted: bool) -> dict[str, Any]:
        """The columns of a pair that come from its records."""
        ours = [row for row in self._deliveries.get(key, ()) if row["node"] == node]
        delivered_at = min((row["time"] for row in ours), default=None)
        return {
            "node": node,
            "wanted": wanted,
            "got": delivered_at is not None,
            "delivered_at": delivered_at,
            "latency_s": None if delivered_at is None else delivered_at - published_at,
            "hops": min((row["hops"] for row in ours if row["hops"] >= 0), default=None),
            "receptions": self._receptions.get((*key, node), 0),
            "reason": self._loss(key, node) if wanted and delivered_at is None else None,
        }

    def _loss(self, key: Key, node: str) -> str:
        drops = self._drops.get((*key, node))
        dropped = ", ".join(sorted(drops)) if drops else None
        return loss_cause(dropped, (*key, node) in self._receptions, key in self._sent)


def workload_of(network: str, protocol: str) -> str:
    """The oracle's name for the nodes of one network and protocol."""
    return f"{network} {protocol}"


def judged(judge: Judge) -> Callable[[DataFrame], DataFrame]:
    """Records of events to the rows of their verdict (`COLUMNS`)."""

    def transform(log: DataFrame) -> DataFrame:
        needed = F.col("kind").isin([Kind.PUBLISH, Kind.DROP])
        of_events = log.where("event != ''").withColumn("detail", F.when(needed, F.col("detail")).otherwise(""))
        together = of_events.select(*READ).repartition("network", "protocol", "event")
        return together.mapInArrow(judge, DDL)

    return transform
