"""The result of a run, in addition to its log: counts, publications, subscriptions and deliveries."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from earshot.events import Event
from earshot.records.sessions import SubscriptionSpan
from earshot.records.trajectories import Trajectories
from earshot.simulation.media.transmission import PacketCount


class Deliveries:
    """Columns, one place a delivery, in order of time."""

    __slots__ = ("event", "hops", "node", "subscription", "time")

    def __init__(self) -> None:
        self.time = array("d")
        self.node = array("i")
        self.event = array("i")
        "Into `RunResult.published`; -1 for an event that was not published."
        self.subscription: list[str] = []
        self.hops = array("i")

    def __len__(self) -> int:
        return len(self.time)

    def add(self, time: float, node: int, event: int, subscription: str, hops: int) -> None:
        self.time.append(time)
        self.node.append(node)
        self.event.append(event)
        self.subscription.append(subscription)
        self.hops.append(hops)


@dataclass(slots=True)
class Counts:
    """What was sent, received and dropped."""

    packets: dict[str, PacketCount] = field(default_factory=dict)
    "By tag."
    drops: Counter[str] = field(default_factory=Counter)
    "By reason; a lost transmission counts at each receiver."

    @property
    def sends(self) -> int:
        return sum(packet.sends for packet in self.packets.values())

    @property
    def receives(self) -> int:
        return sum(packet.receives for packet in self.packets.values())

    @property
    def bytes_sent(self) -> int:
        return sum(packet.bytes_sent for packet in self.packets.values())

    def snapshot(self) -> Counts:
        """These counts as they are now."""
        return Counts({tag: copy(packet) for tag, packet in self.packets.items()}, Counter(self.drops))

    def since(self, earlier: Counts) -> Counts:
        """What has been added since then."""
        packets = {}
        for tag, packet in self.packets.items():
            before = earlier.packets.get(tag, PacketCount(tag, packet.carries_event, packet.counts_hops))
            packets[tag] = PacketCount(
                tag,
                packet.carries_event,
                packet.counts_hops,
                packet.sends - before.sends,
                packet.bytes_sent - before.bytes_sent,
                packet.receives - before.receives,
            )
        return Counts(packets, self.drops - earlier.drops)


@dataclass(slots=True)
class RunResult:
    """One run: what was run, and its results."""

    scenario: str
    protocol: str
    settings: Mapping[str, Any]
    seed: int
    duration_s: float
    warm_up_s: float
    nodes: tuple[str, ...]
    counts: Counts
    "Of the whole run."
    warm_up: Counts
    "Of the time before `warm_up_s`; `counts.since(warm_up)` is what metrics look at."
    published: list[Event]
    "In order of time, stamped."
    subscriptions: list[SubscriptionSpan]
    "Every subscription any application ever had, in order of time."
    deliveries: Deliveries
    queue_calls: int
    trajectories: Trajectories | None = field(default=None, compare=False, repr=False)
    "Where the nodes were, so that nobody has to draw it from the scenario again."

    @property
    def events(self) -> int:
        """Simulated events: transmissions and receptions."""
        return self.counts.sends + self.counts.receives
