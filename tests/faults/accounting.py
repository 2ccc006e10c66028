"""Every event of a fault run accounted for: who should have had it, who had it, and why the others had it not.

Expected receivers come from the one predicate, over what the harness itself knows: which processes were up, where
they were, and what they subscribed to. A pair of an event and a node that was expected and not delivered needs a
reason; so does one that was delivered and not expected. No pair may be delivered twice in one life of a node.

The weakest reason is that the protocol was still repairing its state. Faults follow each other so closely that one of
them is always recent; therefore no publisher may stay unheard at a receiver for longer than two repairs in a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from earshot.events import Event
from earshot.filters import Subscription, Viewer, accepts
from earshot.geometry import STILL, Position

SETTLE_S = 6.0
"An event is on its way for at most so long: sending again, waiting for a peer to return, recovering."


@dataclass(frozen=True)
class Session:
    """One life of a process."""

    node: str
    life: int
    started: float
    up: float
    "When all its subscriptions were in place."
    down: float
    killed: bool


@dataclass(frozen=True)
class Fault:
    """What was done to some nodes, and when."""

    kind: str
    "kill, pause, clock, partition, lose or disk."
    nodes: frozenset[str]
    start: float
    end: float

    def touches(self, start: float, end: float, *nodes: str) -> bool:
        return self.start <= end and self.end >= start and (not nodes or not self.nodes.isdisjoint(nodes))


@dataclass(frozen=True)
class Published:
    """An event, and when it was published by the harness's clock."""

    event: Event
    node: str
    at: float


@dataclass(frozen=True)
class Pair:
    """One event and one node."""

    event: str
    node: str
    expected: bool
    delivered: bool
    reason: str = ""
    "Why it was lost, or delivered though unexpected; `unexplained` if nothing explains it."


@dataclass
class Run:
    """What happened in one network."""

    positions: dict[str, Position]
    subscriptions: dict[str, list[Subscription]]
    sessions: list[Session]
    faults: list[Fault]
    published: list[Published]
    delivered: Counter[tuple[str, str, int, int]]
    "How often each event was handed to the application: event, node, life, number of the subscription."
    delivered_at: dict[tuple[str, str], float] = field(default_factory=dict)
    "When a node first had an event."
    spooled: set[tuple[str, str]] = field(default_factory=set)
    "The deliveries that spools hold: event and node."
    lost: dict[tuple[str, str], str] = field(default_factory=dict)
    "Copies of events that the harness took from a node: event and node, and why."
    dropped: dict[tuple[str, str], str] = field(default_factory=dict)
    "Why a node's machine or host dropped an event, from its spool."
    repair_s: float = 0.0
    "For so long after a fault, or the start of a node, the protocol may still be repairing its state."
    through_others: bool = True
    "Whether events pass nodes other than the publisher and the receiver, so that their faults count too."

    def expected(self, one: Published, node: str) -> str:
        """`yes` if the node should have had the event, `no` if not, `starting` if it was just subscribing."""
        if node == one.node:
            return "no"
        viewer = Viewer(self.positions[node], STILL)
        if not any(accepts(one.event, subscription, viewer) for subscription in self.subscriptions[node]):
            return "no"
        for session in self.sessions:
            if session.node == node and session.started <= one.at < session.down:
                return "yes" if session.up <= one.at else "starting"
        return "no"

    def accounts(self) -> list[Pair]:
        """All pairs that were expected or delivered."""
        delivered = {(event, node) for event, node, _, _ in self.delivered}
        pairs = []
        for one in self.published:
            for node in self.positions:
                expected, got = self.expected(one, node), (one.event.id, node) in delivered
                if expected == "starting" or (expected == "no" and not got):
                    continue
                wanted = expected == "yes"
                reason = "" if wanted == got else self.why_lost(one, node) if wanted else self.why_unexpected(one, node)
                pairs.append(Pair(one.event.id, node, wanted, got, reason))
        return self.without_endless_repairs(pairs)

    def without_endless_repairs(self, pairs: list[Pair]) -> list[Pair]:
        """The same pairs, but `repairing` explains no loss by which a node has had nothing of a publisher for longer
        than two repairs: the second one because the first may be disturbed. A fault of the two nodes themselves
        begins anew."""
        published = {one.event.id: one for one in self.published}
        since: dict[tuple[str, str], float] = {}
        judged = []
        for pair in pairs:
            one = published[pair.event]
            path = (one.node, pair.node)
            if pair.delivered:
                since.pop(path, None)
            if not pair.reason.startswith("repairing"):
                judged.append(pair)
                continue
            ends = [fault.end for fault in self.faults if self.breaks(fault) and not fault.nodes.isdisjoint(path)]
            ends += [session.up for session in self.sessions if session.node in path]
            began = max([since.setdefault(path, one.at), *(end for end in ends if end <= one.at)])
            if one.at - began > 2 * self.repair_s:
                pair = replace(pair, reason="unexplained")
            judged.append(pair)
        return judged

    def breaks(self, fault: Fault) -> bool:
        """Whether a fault may damage the protocol's state. A full disk does not."""
        return fault.kind != "disk"

    def why_lost(self, one: Published, node: str) -> str:
        """Why an expected event was not delivered, the most certain reason first."""
        end = one.at + SETTLE_S
        for session in self.sessions:
            if session.killed and session.node in (node, one.node) and one.at <= session.down <= end:
                return "receiver went down" if session.node == node else "publisher went down"
        if reason := self.dropped.get((one.event.id, node)):
            return f"dropped: {reason}"
        if reason := self.dropped.get((one.event.id, one.node)):
            return f"dropped by its publisher: {reason}"
        for fault in self.faults:
            if fault.kind == "clock" and fault.touches(one.at - self.repair_s, end, node, one.node):
                return "clocks differed"
            parted = (node in fault.nodes) != (one.node in fault.nodes)
            if fault.kind == "partition" and parted and fault.touches(one.at, end):
                return "partition"
        if why := self.lost.get((one.event.id, node)):
            return why
        for fault in self.faults:
            if fault.kind == "pause" and fault.touches(one.at, end, node, one.node):
                return "paused"
        concerned = () if self.through_others else (node, one.node)
        for session in self.sessions if self.repair_s else ():
            if one.at - self.repair_s <= session.up <= end and (not concerned or session.node in concerned):
                return "repairing after a start"
        for fault in self.faults if self.repair_s else ():
            if self.breaks(fault) and fault.touches(one.at - self.repair_s, end, *concerned):
                return f"repairing after {fault.kind}"
        return "unexplained"

    def why_unexpected(self, one: Published, node: str) -> str:
        """Why an event was delivered that was not expected."""
        for fault in self.faults:
            if fault.kind == "clock" and fault.touches(0.0, self.delivered_at[one.event.id, node], node, one.node):
                return "clocks differed"
        return "unexplained"

    def twice(self) -> list[tuple[str, str, int, int]]:
        """What was delivered more than once in one life."""
        return [key for key, count in self.delivered.items() if count > 1]

    def missing_in_spool(self) -> list[tuple[str, str]]:
        """Deliveries that the application saw and the spool lacks, but for those while the disk was full."""
        full = [fault for fault in self.faults if fault.kind == "disk"]
        times = {one.event.id: one.at for one in self.published}
        return [
            (event, node)
            for event, node, _, _ in self.delivered
            if (event, node) not in self.spooled
            and not any(fault.touches(times[event], times[event] + SETTLE_S, node) for fault in full)
        ]


def table(pairs: Iterable[Pair]) -> Counter[str]:
    """How many pairs were delivered as expected, and how many were not, by reason."""
    counts: Counter[str] = Counter()
    for pair in pairs:
        if pair.expected and pair.delivered:
            counts["delivered"] += 1
        else:
            counts[("lost: " if pair.expected else "unexpected: ") + pair.reason] += 1
    return counts
