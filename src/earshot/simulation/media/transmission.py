"""A transmission: one packet on its way from one node, and what media and engine say to each other."""

from __future__ import annotations

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
    """What a machine asked to be sent. The same one may go on air again: each time gets a new number.

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
    "Who is to hear a broadcast; None: everybody."
    peer: int = -1
    "Who is to hear a unicast; -1: a broadcast, or a name no node has."
    peer_name: str = ""
    life: int = 0
    "Of a unicast: which of its sender's lives asked for it. A restarted machine knows nothing of it."
    number: int = -1
    "The number of the last time it went on air."
    receivers: list[int] = []
    "Who has it, once the medium knows."


class Host(Protocol):
    """What a medium asks of the engine."""

    queue: Queue
    up: list[bool]
    "Which nodes are there."

    def orphaned(self, transmission: Transmission) -> bool:
        """Whether the machine that asked for it is gone."""

    def sent(self, transmission: Transmission) -> None:
        """It goes on air now."""

    def received(self, transmission: Transmission) -> None:
        """Its `receivers` have it whole now."""

    def lost(self, transmission: Transmission, nodes: list[int], reason: DropReason) -> None:
        """These nodes might have had it, but for this reason did not."""

    def refuse(self, transmission: Transmission, why: str) -> None:
        """The machine asked for what this medium does not have: the run ends."""

    def dropped(self, transmission: Transmission, reason: DropReason) -> None:
        """It never went on air, for this reason."""

    def unreachable(self, transmission: Transmission, reason: DropReason = DropReason.UNREACHABLE) -> None:
        """A unicast was given up."""


class Medium(Protocol):
    """What the engine asks of a medium."""

    def broadcast(self, transmission: Transmission) -> None:
        """Bring it to whom it reaches."""

    def unicast(self, transmission: Transmission) -> None:
        """Bring it to its peer, or call it unreachable."""

    def node_down(self, node: int, graceful: bool) -> None:
        """The node is gone; one that crashed with all it had yet to send."""
