"""What DRIP's nodes tell each other.

Announcements, news of abilities and events inside a region are broadcast. Everything else is a
letter: from one node to another, over the reverse path of an announcement or of an earlier letter.
"""

from __future__ import annotations

from earshot.events import Event
from earshot.wire import Packet

Standing = tuple[str, float, float, bool]
"Of a node: its name, its ability, when it last gave a sign of life as far as was known, and whether it is gone."


class Announcement(Packet, frozen=True, tag="drip-announcement"):
    """Section IV.B: a broker exists. Its region's id is its own."""

    broker: str
    sequence: int
    sent_at: float
    "The source time-stamp, moved on by what nodes on the way have waited on purpose."
    hops: int
    attached: str
    "The local broker of the node that passes it on: how neighbours learn who lives in which region."
    roll: int
    "A digest of whom that node holds for the k ablest."


class Retirement(Packet, frozen=True, tag="drip-retirement"):
    """A broker is one no longer: it goes, or an abler node came back."""

    broker: str
    sequence: int


class Abilities(Packet, frozen=True, tag="drip-abilities"):
    """Section IV.A: who is how able, as far as it matters to who becomes a broker."""

    standings: tuple[Standing, ...]
    roll: int
    "A digest of whom the sender holds for the k ablest."


class InRegion(Packet, frozen=True, tag="drip-in-region"):
    """Section V.A.3: an event, flooded in one broker's region."""

    event: Event
    hops: int
    region: str


class Letter(Packet, frozen=True):
    """From one node to another; `via` is the bridge it is to cross, until it has."""

    origin: str
    target: str
    via: str
    legs: int
    "Transmissions from its origin, this one included; what carries an event counts from the publisher as `hops`."


class Register(Letter, frozen=True, tag="drip-register"):
    """Section V.A.1: a subscriber's subscriptions, and the brokers it is nearest to."""

    stamp: float
    since: float
    "When it first wanted what it wants now."
    nearest: tuple[str, ...]
    subscriptions: tuple[str, ...]
    "What it wants: filters as text. Places are left to the subscriber itself."
    known: tuple[str, ...]
    "Events it had lately, where it comes from another region."


class Quit(Letter, frozen=True, tag="drip-quit"):
    """Section V.A.1: the subscriber has left the region."""

    stamp: float


class Bridge(Letter, frozen=True, tag="drip-bridge"):
    """Section V.B.1: the origin is a bridge from its local broker, the target, to this one."""

    other: str


class Publication(Letter, frozen=True, tag="drip-publication"):
    """Section V.A.2: an event, on its way to its publisher's local broker."""

    event: Event
    hops: int


class Copy(Letter, frozen=True, tag="drip-copy"):
    """Section V.B.2: an event from broker to broker."""

    event: Event
    hops: int
    destinations: tuple[str, ...]
    carry: bool
    "Whether the receiver is one of the m that carry it to the destinations."


class Taken(Letter, frozen=True, tag="drip-taken"):
    """What one broker sent another has arrived: a copy of an event, or news up to a version."""

    event_id: str
    version: int = 0


class Record(Packet, frozen=True):
    """What brokers know of a subscriber. Without subscriptions: as they were, only where it is has changed."""

    subscriber: str
    stamp: float
    broker: str
    nearest: tuple[str, ...]
    subscriptions: tuple[str, ...] | None
    since: float
    "When it first wanted what it wants now."


class Exchange(Letter, frozen=True, tag="drip-exchange"):
    """Section V.B.2: brokers that can talk share what they know of subscribers, and of each other's life."""

    version: int
    records: tuple[Record, ...]
    brokers: dict[str, float]
    "Of each broker the latest announcement anyone has told of."
    held: tuple[str, ...] = ()
    "The events the origin holds; only an epidemic asks."


class Notice(Letter, frozen=True, tag="drip-notice"):
    """An event for one subscriber, who came into the region after it."""

    event: Event
    hops: int
