"""What brokers of the extended ODMRP send each other."""

from __future__ import annotations

import msgspec

from earshot.events import Event
from earshot.geometry import Position, Velocity
from earshot.protocols.content_odmrp.reports import Report
from earshot.wire import Packet


class Motion(msgspec.Struct, frozen=True, array_like=True):
    """Where a sender is, how it moves, and how long the way from the source to it will last."""

    position: Position
    velocity: Velocity
    lifetime_s: float


class JoinRequest(Packet, frozen=True, tag="content-odmrp-join-request"):
    """Floods from a source: its groups with the digests they stand for, the event where one is due."""

    source: str
    sequence: int
    hops: int
    offers: tuple[tuple[int, bytes], ...]
    event: Event | None = None
    motion: Motion | None = None


class JoinTable(Packet, frozen=True, tag="content-odmrp-join-table"):
    """Goes back to a source by way of `next_hop`: groups that are joined, summaries of who joins or might."""

    source: str
    next_hop: str
    groups: tuple[int, ...]
    reports: tuple[Report, ...]
    lifetime_s: float | None = None


class Data(Packet, frozen=True, tag="content-odmrp-data"):
    """An event on its way through its group's mesh; `hops` counts the transmissions, this one included."""

    group: int
    event: Event
    hops: int
