"""The packets that DRIP's nodes exchange.

Announcements, abilities and events inside a region are broadcast. Everything else is a routed packet:
from one node to another, along the reverse path of an announcement or of an earlier routed packet.
"""

from __future__ import annotations

from typing import NamedTuple

from earshot.events import Event
from earshot.wire import Packet


class Candidate(NamedTuple):
    """What is known of a node that could be a broker."""

    node: str
    ability: float
    alive_at: float
    "The node's latest known sign of life."
    gone: bool


class Abilities(Packet, frozen=True, tag="drip-abilities"):
    """Section IV.A: the abilities of nodes, as far as they decide which nodes become brokers."""

    candidates: tuple[Candidate, ...]
    digest: int
    "A digest of the k ablest nodes that the sender knows."


class BrokerAnnouncement(Packet, frozen=True, tag="drip-announcement"):
    """Section IV.B: a broker exists. Its name is its region's id."""

    broker: str
    sequence: int
    sent_at: float
    "The source time-stamp, plus the time that forwarding nodes waited on purpose."
    hops: int
    attached: str
    "The local broker of the node that forwards it: so neighbours learn each other's region."
    digest: int
    "A digest of the k ablest nodes that this node knows."


class Retirement(Packet, frozen=True, tag="drip-retirement"):
    """A node is no longer a broker: it leaves, or an abler node came back."""

    broker: str
    sequence: int


class InRegion(Packet, frozen=True, tag="drip-in-region"):
    """Section V.A.3: an event that is flooded in one broker's region."""

    event: Event
    hops: int
    region: str


class RoutedPacket(Packet, frozen=True):
    """From one node to another; `via` names the bridge that it has yet to cross."""

    origin: str
    target: str
    via: str
    legs: int
    "Transmissions from its origin, this one included; packets with an event count from the publisher in `hops`."


class Registration(RoutedPacket, frozen=True, tag="drip-register"):
    """Section V.A.1: a subscriber's subscriptions and its nearest brokers."""

    stamp: float
    since: float
    "When the subscriber first had exactly these subscriptions."
    nearest: tuple[str, ...]
    subscriptions: tuple[str, ...]
    "Filters as text. Only the subscriber itself evaluates conditions on its position."
    known: tuple[str, ...]
    "Events that the subscriber received recently, if it comes from another region."


class Quit(RoutedPacket, frozen=True, tag="drip-quit"):
    """Section V.A.1: the subscriber has left the region."""

    stamp: float


class BridgeReport(RoutedPacket, frozen=True, tag="drip-bridge"):
    """Section V.B.1: the origin is a bridge from its local broker, the target, to another broker."""

    other: str


class PublishedEvent(RoutedPacket, frozen=True, tag="drip-publication"):
    """Section V.A.2: an event on its way to its publisher's local broker."""

    event: Event
    hops: int


class EventCopy(RoutedPacket, frozen=True, tag="drip-copy"):
    """Section V.B.2: an event from broker to broker."""

    event: Event
    hops: int
    destinations: tuple[str, ...]
    carry: bool
    "Whether the receiver is one of the m brokers that carry it to the destinations."


class Confirmation(RoutedPacket, frozen=True, tag="drip-taken"):
    """A broker confirms what another broker sent: a copy of an event, or subscriber updates up to a version."""

    event_id: str
    version: int = 0


class SubscriberRecord(Packet, frozen=True):
    """What brokers know of a subscriber. Without subscriptions: they are unchanged, the subscriber has moved."""

    subscriber: str
    stamp: float
    broker: str
    nearest: tuple[str, ...]
    subscriptions: tuple[str, ...] | None
    since: float
    "When the subscriber first had exactly these subscriptions."


class Exchange(RoutedPacket, frozen=True, tag="drip-exchange"):
    """Section V.B.2: brokers share what they know of subscribers, and when they last heard other brokers."""

    version: int
    records: tuple[SubscriberRecord, ...]
    brokers: dict[str, float]
    "For each broker the latest announcement that is known."
    held: tuple[str, ...] = ()
    "The events that the origin holds; only the epidemic uses it."


class Notice(RoutedPacket, frozen=True, tag="drip-notice"):
    """An event for one subscriber: one that came into the region after the event, or the broker itself."""

    event: Event
    hops: int
