"""Why an event did, or did not, reach a node: the oracle's answer beside the log's.

Pure functions over the few records of one event in one run, and `ask_why`, which finds them in a lake without Spark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from earshot.errors import LakeError
from earshot.events import Event
from earshot.filters import Viewer
from earshot.filters.subscription import explain_acceptance, subscription_of
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.oracle.matcher import trajectory_of, viewer_at
from earshot.pipeline.oracle.workloads import event_of, span_of
from earshot.records import Kind
from earshot.records.sessions import SubscriptionSpan
from earshot.words import counted

Record = Mapping[str, Any]
"One row of the log, as a mapping from its columns."


MISSES = {
    "no": "impossible: no contacts led from the publisher to the node while the event lived",
    "by carrying": "needed carrying: the node could get it only from a node that kept it until a later contact",
    "at once": "lost: when the event was published, a path of contacts led to the node",
}
"What a miss means, by how the node could be reached."


@dataclass(frozen=True)
class Hop:
    """One transmission: who sent it to which node, when it was heard, in which packet."""

    time: float
    sender: str
    receiver: str
    packet: str


@dataclass(frozen=True)
class Explanation:
    """Whether the node was expected to get the event, whether it did, and why."""

    event: str
    node: str
    expected: bool
    delivered: bool
    reasons: Sequence[str]
    "For each subscription of the node, in words, why it accepts the event or does not."
    path: Sequence[Hop] = ()
    "The hops by which the event came to the node, from the publisher on; empty where it never arrived."
    losses: Sequence[str] = field(default=())
    "Where it was lost, and for which reason, as far as the log says."
    reach: str | None = None
    "Of an expected event: whether any protocol could have delivered it: at once, by carrying, or no."

    def as_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return asdict(self)


class EventLog:
    """What a log says of one event: read once, asked for any node."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.first: dict[str, Record] = {}
        "The first receipt at each node."
        self.delivered: set[str] = set()
        self.senders: set[str] = set()
        self.drops: dict[str, Counter[str]] = defaultdict(Counter)
        for record in sorted(records, key=lambda record: (record["time"], record["transmission"])):
            match record["kind"]:
                case Kind.RECEIVE:
                    self.first.setdefault(record["node"], record)
                case Kind.DELIVER:
                    self.delivered.add(record["node"])
                case Kind.SEND:
                    self.senders.add(record["node"])
                case Kind.DROP:
                    self.drops[record["node"]][record["detail"]] += 1

    def path_to(self, node: str, source: str) -> list[Hop]:
        """The transmissions by which the event first came to the node, from its source on."""
        path: list[Hop] = []
        here = node
        while here in self.first and here != source and len(path) <= len(self.first):
            heard = self.first[here]
            path.append(Hop(heard["time"], heard["peer"], here, heard["packet"]))
            here = heard["peer"]
        return path[::-1]

    def losses_before(self, node: str, source: str) -> list[str]:
        """Why the event was not delivered to the node, as far as the log says."""
        if node in self.drops:
            return [f"{node} dropped it: {reason}" for reason in sorted(self.drops[node])]
        if node in self.first and node != source:
            return [f"{node} heard the event and did not deliver it"]
        holders, senders = len(self.first.keys() | {source}), len(self.senders)
        found = [f"{counted(holders, 'node')} had the event, {senders} sent it on; none of them reached {node}"]
        return found + [
            f"other nodes lost copies of it: {reason} ({'once' if count == 1 else f'{count} times'})"
            for reason, count in self._dropped_anywhere.most_common(5)
        ]

    @cached_property
    def _dropped_anywhere(self) -> Counter[str]:
        total = Counter[str]()
        for reasons in self.drops.values():
            total.update(reasons)
        return total


def explain_receiver(
    event: Event,
    node: str,
    spans: Iterable[SubscriptionSpan],
    viewer: Viewer | None,
    records: Iterable[Record] | EventLog,
    reach: str | None = None,
) -> Explanation:
    """The whole answer for one event and one node; `viewer` is the node at the time of publication."""
    log = records if isinstance(records, EventLog) else EventLog(records)
    expected, reasons = expectation(event, node, spans, viewer)
    delivered = node in log.delivered
    path = log.path_to(node, event.source)
    losses = [] if delivered else log.losses_before(node, event.source)
    if expected and not delivered and reach is not None:
        losses = [MISSES[reach], *losses]
    return Explanation(event.id, node, expected, delivered, reasons, path, losses, reach if expected else None)


def expectation(
    event: Event, node: str, spans: Iterable[SubscriptionSpan], viewer: Viewer | None
) -> tuple[bool, list[str]]:
    """Whether any subscription of the node accepts the event, and in words what each says."""
    if node == event.source:
        return False, [f"{node} published the event itself"]
    own = [span for span in spans if span.node == node]
    if not own:
        return False, [f"{node} has no subscription"]
    verdicts = [_verdict(event, span, viewer) for span in own]
    return any(accepted for accepted, _ in verdicts), [
        f"{span.subscription}: {why}" for span, (_, why) in zip(own, verdicts, strict=True)
    ]


def _verdict(event: Event, span: SubscriptionSpan, viewer: Viewer | None) -> tuple[bool, str]:
    if not span.start <= event.time < span.end:
        return False, f"was not in force at {event.time:.3f} s (from {span.start:.10g} s until {span.end:.10g} s)"
    return explain_acceptance(event, subscription_of(span), viewer)


def ask_why(lake: ArrowLake, run: str, event: str, node: str) -> Explanation:
    """Whether the node should have received the event in that run, whether it did, and why."""
    row = _finished_run(lake, run)
    workload = str(row["workload"])
    found = lake.rows("events", {"event": event}, workload=workload)
    if not found:
        raise LakeError(f"run {row['run']} published no event {event!r}; the table events lists those it published")
    places = lake.rows("positions", {"node": node}, trace=workload)
    if not places:
        raise LakeError(f"run {row['run']} has no node {node!r}")
    published = event_of(found[0])
    spans = [span_of(one) for one in lake.rows("subscriptions", {"node": node}, workload=workload)]
    viewer = viewer_at(trajectory_of(pa.Table.from_pylist(places)), published.time)
    reach = None
    range_m = row["range_m"]  # None: nobody knows how far the radios of a live run reached
    if range_m is not None and lake.has("reachable", workload=workload, range_m=range_m):
        pair = {"event": event, "node": node}
        answers = lake.rows("reachable", pair, workload=workload, range_m=range_m)
        reach = answers[0]["reach"] if answers else None
    log = lake.rows("log", {"event": event}, run=str(row["run"]))
    return explain_receiver(published, node, spans, viewer, log, reach)


def _finished_run(lake: ArrowLake, run: str) -> Record:
    """The row of `runs` whose id begins with this text; LakeError where there is none or more than one."""
    rows = [row for row in lake.rows("runs", {}) if row["run"].startswith(run)]
    if not rows:
        raise LakeError(f"the lake {lake.name} has no run {run!r}; see them in the report: earshot report {lake.name}")
    if len(rows) > 1:
        raise LakeError(f"{len(rows)} runs begin with {run!r}; write more of the id")
    if rows[0]["status"] != "done":
        raise LakeError(f"run {rows[0]['run']} failed: {rows[0]['error']}")
    return rows[0]
