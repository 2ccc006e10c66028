"""Why an event did, or did not, reach a node: the oracle's answer beside the log's.

Pure functions over the few records of one event in one run; `earshot why` fetches them through Spark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from earshot.events import Event
from earshot.filters import Filter, Viewer
from earshot.pipeline.oracle.oracle import Wish
from earshot.pipeline.oracle.workloads import area_of
from earshot.records import Kind

Record = Mapping[str, Any]
"One row of the log, as a mapping from its columns."


@dataclass(frozen=True)
class Hop:
    """One transmission on the way: who sent it to whom, when it was heard, in which packet."""

    time: float
    sender: str
    receiver: str
    packet: str


@dataclass(frozen=True)
class Answer:
    """Whether the node was expected to get the event, whether it did, and why."""

    event: str
    node: str
    expected: bool
    delivered: bool
    reasons: Sequence[str]
    "For each subscription of the node, in words, why it wants the event or does not."
    path: Sequence[Hop] = ()
    "The way the event took to the node, from the publisher on; empty where it never arrived."
    losses: Sequence[str] = field(default=())
    "Where it was lost, and for which reason, as far as the log tells."

    def as_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {
            "event": self.event,
            "node": self.node,
            "expected": self.expected,
            "delivered": self.delivered,
            "reasons": list(self.reasons),
            "path": [hop.__dict__ for hop in self.path],
            "losses": list(self.losses),
        }


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
        """What there is to say of an event that was not delivered to the node."""
        if node in self.drops:
            return [f"{node} dropped it: {reason}" for reason in sorted(self.drops[node])]
        if node in self.first and node != source:
            return [f"{node} heard the event and did not deliver it"]
        holders, senders = len(self.first.keys() | {source}), len(self.senders)
        told = [f"{holders} nodes had the event, {senders} sent it on; none of them reached {node}"]
        return told + [
            f"dropped on the way: {reason} ({count} times)" for reason, count in self._dropped_anywhere.most_common(5)
        ]

    @cached_property
    def _dropped_anywhere(self) -> Counter[str]:
        total = Counter[str]()
        for reasons in self.drops.values():
            total.update(reasons)
        return total


def explain_receiver(
    event: Event, node: str, wishes: Iterable[Wish], viewer: Viewer | None, records: Iterable[Record] | EventLog
) -> Answer:
    """The whole answer for one event and one node; `viewer` is the node at the time of publication."""
    log = records if isinstance(records, EventLog) else EventLog(records)
    expected, reasons = expectation(event, node, wishes, viewer)
    delivered = node in log.delivered
    path = log.path_to(node, event.source)
    losses = [] if delivered else log.losses_before(node, event.source)
    return Answer(event.id, node, expected, delivered, reasons, path, losses)


def expectation(event: Event, node: str, wishes: Iterable[Wish], viewer: Viewer | None) -> tuple[bool, list[str]]:
    """Whether any subscription of the node wants the event, and in words what each says."""
    if node == event.source:
        return False, [f"{node} published the event itself"]
    own = [wish for wish in wishes if wish.node == node]
    if not own:
        return False, [f"{node} has no subscription"]
    verdicts = [_verdict(event, wish, viewer) for wish in own]
    return any(wanted for wanted, _ in verdicts), [
        f"{wish.subscription}: {why}" for wish, (_, why) in zip(own, verdicts, strict=True)
    ]


def _verdict(event: Event, wish: Wish, viewer: Viewer | None) -> tuple[bool, str]:
    if not wish.start <= event.time < wish.end:
        return False, f"did not stand at {event.time:.3f} s (from {wish.start:.10g} s until {wish.end:.10g} s)"
    if event.area is not None:
        if viewer is None:
            return False, "the node's position at that time is not known, and the event has an area"
        if not event.area.contains(viewer.position):
            distance_m = viewer.position.distance_to(event.area.at)
            return False, f"the node was outside the event's area {event.area.shape}, {distance_m:.0f} m from its naval"
    region = area_of(wish.region)
    if region is not None and (event.position is None or not region.contains(event.position)):
        return False, f"the event happened outside the region of interest, {region.shape} at {region.at}"
    filter = Filter.parse(wish.filter)
    return filter.matches(event, viewer), filter.explain(event, viewer)
