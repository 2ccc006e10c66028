"""A transmission: one packet sent by one node, and the interface between media and engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from earshot.records import DropReason
from earshot.simulation.event_queue import Queue
from earshot.wire import Packet


@dataclass(slots=True)
class PacketCount:
    """How often a kind of packet was sent and received."""

    tag: str
    carries_event: bool
    counts_hops: bool
    sends: int = 0
    bytes_sent: int = 0
    receives: int = 0


class Transmission(msgspec.Struct, eq=False, gc=False):
    """What a machine asked to send. The same one may go on air several times: each time gets a new number.

    A struct without garbage collection, because there is one for every packet: it never points back
    to anything that points to it.
    """

    sender: int
    packet: Packet
    kind: PacketCount
    bytes: int
    event: str
    "The id of the event it carries, if any."
    hops: int
    group: int | None = None
    "The group that a broadcast is for; None: every node."
    peer: int = -1
    "The node that a unicast is for; -1: a broadcast, or a name that no node has."
    peer_name: str = ""
    session: int = 0
    "Of a unicast: the session of its sender that asked for it. A restarted machine does not know it."
    priority: int = 0
    "The priority of the event it carries: a radio with a queue sends higher ones first."
    number: int = -1
    "The number it got when it last went on air."
    receivers: list[int] = []
    "The nodes that receive it, when the medium has decided."


Frame = tuple[float, float, int, Sequence[int]]
"When it begins and ends, its sender, and the nodes that sense it; the sender may be among them."


class MediumHost(Protocol):
    """What a medium needs from the engine."""

    queue: Queue
    up: list[bool]
    "Which nodes are present and running."

    on_channel: Callable[[Frame], None]
    "Called with every frame that keeps the channel busy."

    def orphaned(self, transmission: Transmission) -> bool:
        """Whether the machine that asked for it no longer exists."""

    def sent(self, transmission: Transmission) -> None:
        """It goes on air now."""

    def received(self, transmission: Transmission) -> None:
        """Its `receivers` have received it now."""

    def lost(self, transmission: Transmission, nodes: list[int], reason: DropReason) -> None:
        """These nodes did not receive it, for this reason."""

    def refuse(self, transmission: Transmission, why: str) -> None:
        """The machine asked for something that this medium does not have: the run ends."""

    def dropped(self, transmission: Transmission, reason: DropReason) -> None:
        """It was not sent, for this reason."""

    def unreachable(self, transmission: Transmission, reason: DropReason = DropReason.UNREACHABLE) -> None:
        """A unicast could not be delivered."""


class RoutingHost(MediumHost, Protocol):
    """What a medium that routes packets over others needs besides."""

    presence: int
    "Changes whenever a node comes or goes."

    def control_kind(self, tag: str) -> PacketCount:
        """The count of the routing's own frames of this kind."""

    def withholds(self, node: int, transmission: Transmission) -> bool:
        """Whether the node passes on no events of others."""

    def relayed(self, transmission: Transmission) -> list[int]:
        """Nodes have received it now, but not their machines; returns those that are present."""

    def arrived(self, transmission: Transmission, origin: int) -> None:
        """Its receivers have received it now, and their machines hear it from `origin`."""

    def failed(self, transmission: Transmission) -> None:
        """The machine that asked for this unicast learns that its peer could not be reached."""


class Medium(Protocol):
    """What the engine needs from a medium."""

    def airtime_s(self, packet_bytes: int) -> float:
        """How long a packet of that size keeps the channel busy; 0 if the medium does not know."""

    def broadcast(self, transmission: Transmission) -> None:
        """Send it to all nodes that it reaches."""

    def unicast(self, transmission: Transmission) -> None:
        """Send it to its peer, or call `unreachable`."""

    def node_down(self, node: int, graceful: bool) -> None:
        """The node has left. After a crash its queued packets are lost."""
