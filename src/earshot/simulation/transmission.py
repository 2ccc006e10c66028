"""A transmission: one packet on its way from one node, and what media and engine say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from earshot.simulation.queue import Queue
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


class Transmission:
    """What a machine asked to be sent. The same one may go on air again: each time gets a new number."""

    __slots__ = (
        "bytes",
        "event",
        "group",
        "hops",
        "kind",
        "life",
        "number",
        "packet",
        "peer",
        "peer_name",
        "sender",
    )

    def __init__(
        self,
        sender: int,
        packet: Packet,
        kind: PacketCount,
        size: int,
        event: str,
        hops: int,
        group: int | None = None,
        peer: int = -1,
        peer_name: str = "",
        life: int = 0,
    ) -> None:
        self.sender = sender
        self.packet = packet
        self.kind = kind
        self.bytes = size
        self.event = event
        self.hops = hops
        self.group = group
        "Who is to hear a broadcast; None: everybody."
        self.peer = peer
        "Who is to hear a unicast; -1: a broadcast, or a name no node has."
        self.peer_name = peer_name
        self.life = life
        "Which of its sender's lives asked for it: a restarted machine knows nothing of it."
        self.number = -1


class Host(Protocol):
    """What a medium asks of the engine."""

    queue: Queue
    up: list[bool]
    "Which nodes are there."

    def orphaned(self, transmission: Transmission) -> bool:
        """Whether the machine that asked for it is gone."""

    def sent(self, transmission: Transmission) -> None:
        """It goes on air now."""

    def received(self, transmission: Transmission, receivers: list[int]) -> None:
        """These nodes have it whole now."""

    def lost(self, transmission: Transmission, nodes: list[int], reason: str) -> None:
        """These nodes might have had it, but for this reason did not."""

    def dropped(self, transmission: Transmission, reason: str) -> None:
        """It never went on air, for this reason."""

    def unreachable(self, transmission: Transmission, reason: str = "unreachable") -> None:
        """A unicast was given up."""


class Medium(Protocol):
    """What the engine asks of a medium."""

    def broadcast(self, transmission: Transmission) -> None:
        """Bring it to whom it reaches."""

    def unicast(self, transmission: Transmission) -> None:
        """Bring it to its peer, or call it unreachable."""

    def node_down(self, node: int, graceful: bool) -> None:
        """The node is gone; one that crashed with all it had yet to send."""
