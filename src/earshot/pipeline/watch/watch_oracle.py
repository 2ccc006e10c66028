"""The oracle of a watch: judges the open events of a stream in Spark tasks.

`log.transform(judged(judge))` brings all records of an event together and says which nodes should have
received it (by the oracle), which did, why not, and which deliveries came too late. What all events
share travels with the tasks: the subscription spans and the trajectories.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from earshot.events import Event
from earshot.filters import Viewer
from earshot.pipeline.campaigns.metrics import area_of
from earshot.pipeline.lake.tables import WATCHED_LATE, WATCHED_PAIRS
from earshot.pipeline.oracle.matcher import Matcher, Spans, viewer_at
from earshot.pipeline.spark.tasks import table_of
from earshot.pipeline.watch.running_metrics import three_digits
from earshot.pipeline.watch.sessions import Community
from earshot.records import Kind
from earshot.records.trajectories import Trajectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAIR, COUNT, LATE = "pair", "count", "late"
"What a row of the verdict is: an (event, node) pair, a count of equal pairs, or a delivery that came too late."

_COUNTED = {
    "minute": "string",
    "is_settled": "boolean",
    "pairs": "bigint",
    "events": "bigint",
    "hops_counted": "bigint",
}
COLUMNS = (
    {"role": "string"}
    | {name: WATCHED_PAIRS.columns[name] for name in WATCHED_PAIRS.data_columns}
    | {name: WATCHED_LATE.columns[name] for name in WATCHED_LATE.data_columns}
    | _COUNTED
)
DDL = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
_ARROW = {
    "string": pa.string(),
    "double": pa.float64(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
}
SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in COLUMNS.items()])
READ = ("network", "protocol", "batch", "late", "time", "node", "kind", "event", "hops", "detail", "x_m", "y_m")
Key = tuple[str, str, str]
"Network, protocol, and an event or a node."


@dataclass(frozen=True)
class Judge:
    """What all events share. It is sent to the executors."""

    matcher: Matcher
    trajectories: Mapping[Key, Trajectory]
    batch: int
    settled_before: float
    "What was published up to then is settled already."
    settled: float
    "What was published up to then is settled now."
    patience_s: float
    cell_m: float

    @classmethod
    def of(cls, spans: Spans, trajectories: Mapping[Key, Trajectory], **times: Any) -> Judge:
        """With oracles over the spans; their workload is `workload_of` network and protocol."""
        return cls(Matcher(spans), trajectories, **times)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = table_of(batches)
        if table is not None:
            yield pa.RecordBatch.from_pylist(list(self._rows(_Records(table))), schema=SCHEMA)

    def _rows(self, records: _Records) -> Iterator[dict[str, Any]]:
        opened = {
            key: publication
            for key, publication in records.published.items()
            if not publication["late"] and publication["time"] > self.settled_before
        }
        expected = self._expected(opened)
        counts: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
        for key, publication in opened.items():
            about = self._about(key, publication)
            group = (
                about["network"],
                about["protocol"],
                about["type"],
                about["area"],
                about["minute"],
                about["is_settled"],
            )
            counts[*group, None, None, None, None]["events"] += 1
            for node in sorted(expected[key] | records.delivered_to(key)):
                pair = {**about, **records.pair(key, node, publication["time"], node in expected[key])}
                yield {"role": PAIR, **pair}
                met = pair["wanted"] and pair["got"]
                latency = three_digits(pair["latency_s"]) if met else None
                alike = counts[*group, pair["wanted"], pair["got"], pair["reason"], latency]
                alike["pairs"] += 1
                if pair["hops"] is not None:
                    alike["hops"] += pair["hops"]
                    alike["hops_counted"] += 1
        names = ("network", "protocol", "type", "area", "minute", "is_settled", "wanted", "got", "reason", "latency_s")
        for group, amounts in counts.items():
            sums = {name: amounts[name] for name in ("events", "pairs", "hops", "hops_counted")}
            yield {"role": COUNT, **dict(zip(names, group, strict=True)), **sums}
        yield from self._late(records)

    def _about(self, key: Key, publication: Mapping[str, Any]) -> dict[str, Any]:
        at = publication["time"]
        return {
            "network": key[0],
            "protocol": key[1],
            "event": key[2],
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
        expected: dict[Key, set[str]] = {}
        for key, publication in opened.items():
            event: Event = publication["published"]
            oracle = lookup.oracle(workload_of(*key[:2]))
            expected[key] = oracle.receivers(event, event.time, partial(self._viewer, key[:2])) if oracle else set()
        return expected

    def _viewer(self, community: Community, node: str, time: float) -> Viewer | None:
        trajectory = self.trajectories.get((*community, node))
        return None if trajectory is None else viewer_at(trajectory, time)

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
                yield {"role": LATE, **row, "kind": Kind.DELIVER, "reason": reason, "behind_s": behind_s}


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
        if drops := self._drops.get((*key, node)):
            return f"dropped: {', '.join(sorted(drops))}"
        if (*key, node) in self._receptions:
            return "heard, not delivered"
        return "never heard" if key in self._sent else "never sent"


def trajectories_of(positions: pa.Table) -> dict[Key, Trajectory]:
    """Each node's trajectory, from rows of network, protocol, node, time, x_m and y_m in any order. A node is
    in one place at a time: the greatest recorded, as in the batch."""
    names = ("network", "protocol", "node", "time", "x_m", "y_m")
    ordered = positions.sort_by([(name, "ascending") for name in names])
    keys = list(zip(*(ordered[name].to_pylist() for name in names[:3]), strict=True))
    time, x_m, y_m = (ordered[name].to_numpy() for name in names[3:])
    starts = [number for number, key in enumerate(keys) if number == 0 or key != keys[number - 1]]
    found = {}
    for start, end in pairwise([*starts, len(keys)]):
        last_of_its_time = np.append(time[start : end - 1] != time[start + 1 : end], True)
        found[keys[start]] = Trajectory(
            keys[start][2], *(column[start:end][last_of_its_time] for column in (time, x_m, y_m))
        )
    return found


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
