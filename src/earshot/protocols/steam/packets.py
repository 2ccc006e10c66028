"""STEAM's settings and packets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import msgspec

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.geometry import Area, Position, Proximity
from earshot.protocols.steam.group_ids import description
from earshot.records import DropReason
from earshot.settings import AtLeastOne, Count, NotNegative, Positive, Share, check_bounds
from earshot.wire import FilterText, Packet, Whole, Word

MAX_REQUESTED = 4096
"Events in one recovery request; a consumer asks for at most its `cache_size`."

MAX_DESCRIPTION = 4096
"Characters: a polygon of about a hundred corners. A longer description is refused."

MAX_NAME = 256
"Characters of a producer's name and of an event's id. Nodes remember both."

Key = tuple[str, str]
"(producer, subject): a producer has one proximity for each of its event types."

SEPARATOR = "#"


def producer_name(node: str, producer: str) -> str:
    """The name by which other nodes know a producer: its node's, and its own if several produce there."""
    return f"{node}{SEPARATOR}{producer}" if producer else node


def node_of(producer: str) -> str:
    """The node that hosts a producer."""
    return producer.partition(SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class SteamSettings:
    """What the paper leaves to the application, and bounds against hostile peers."""

    range_m: Positive = field(default=200.0, metadata={"scenario": "medium.range_m"})
    "T_R, section 5: this node's radio range; decides between single-hop and multi-hop."
    beacon_interval_s: Positive = 1.0
    "Section 4.5: the period of the beacons, application-specific; with `beacon_stretch` the shortest one."
    beacon_stretch: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 32.0
    "How many times longer a beacon's period may become (`beacon_pace.py`); 1: each announcement in each period."
    margin_share: Share = 0.25
    "How far around a proximity it is announced, as a share of the proximity's reach, if its period is stretched."
    consumer_speed_m_s: Positive = 15.0
    "The speed up to which a consumer learns of a proximity before it is inside."
    beacon_gather_s: NotNegative = 0.2
    """How long a node gathers announcements before it passes them on in shared beacons; 0: it passes
    each beacon on by itself, at once."""
    beacon_copies: AtLeastOne = 3
    "A node that hears this many copies of an announcement while it gathers does not pass it on."
    beacon_jitter: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.1
    "Each period is longer or shorter by up to this share, so that producers do not beacon in step."
    expiry_s: Positive = 3.5
    "A proximity that has been silent for this long is removed from the list; a stretched period stretches this too."
    keep_stationary: bool = False
    """Section 4.5.2: a stationary proximity stays listed while this node is inside, even if its beacons stop. Off: it
    expires too, because a producer may be gone; what it announced last would take room for ever."""
    location_interval_s: NotNegative = 0.0
    "How often the location service updates; section 5.2: once a second. 0: at every question."
    deliver_own: bool = False
    """Section 4.1: consumers on the producer's own device receive its events. Off, because the publisher is not one of
    an event's receivers for any protocol here, nor for the oracle: the application that publishes has the event."""
    questions: Count = 2
    "How often a consumer asks its neighbours for proximities if it knows none of a type that it wants."
    relays: bool = True
    "Whether nodes inside a proximity pass its events on even if they do not want them; section 4.3: members only."
    forward_jitter_s: NotNegative = 0.06
    "Up to how long a node waits before it passes an event on, so that neighbours do not all send at once."
    forward_copies: AtLeastOne = 4
    "A node that hears this many copies of an event while it waits does not pass it on."
    forwarding: Literal["flood", "gossip"] = "flood"
    "How members pass events on, section 4.3; gossip is section 5.4.1's."
    gossip_distance_m: NotNegative = 200.0
    "d of G(d, p): a node within this distance of the producer always passes an event on."
    gossip_probability: Share = 0.8
    "p of G(d, p): a node farther away passes it on with this probability."
    hop_limit: AtLeastOne = 64
    "A bound in addition to the proximity."
    lifespan_s: Positive = 60.0
    "How long an event without a lifespan of its own is passed on and recovered."
    cache_size: Annotated[int, msgspec.Meta(ge=0, le=MAX_REQUESTED)] = 64
    "Events a producer keeps for recovery, per announcement; 0: nothing is recovered."
    recovery_delay_s: NotNegative = 0.25
    "How long a node waits for a missing event before it asks; requests are spread over as long again."
    recovery_attempts: Count = 3
    proximity_limit: AtLeastOne = 2048
    "At most this many relevant proximities are listed."
    announcement_limit: AtLeastOne = 1024
    "At most this many announcements per producer: on this node, and in its list."
    adverts_per_beacon: AtLeastOne = 16
    "More announcements make more beacons, not larger ones."
    seen_limit: AtLeastOne = 65_536
    "Event ids remembered against duplicates."

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.expiry_s <= self.longest_round_s:
            raise SettingsError(
                f"expiry_s must be longer than a beacon's period of up to {self.longest_round_s:g} s, "
                f"got {self.expiry_s}"
            )

    @property
    def longest_round_s(self) -> float:
        """`beacon_interval_s` with its jitter."""
        return self.beacon_interval_s * (1 + self.beacon_jitter)

    @property
    def stretches_beacons(self) -> bool:
        """Whether beacons have longer periods where they may."""
        return self.beacon_stretch > 1.0

    def expires_after_s(self, interval_s: float) -> float:
        """How long a proximity whose beacons have this period stays listed without one."""
        periods = min(max(interval_s / self.beacon_interval_s, 1.0), self.beacon_stretch)
        return self.expiry_s * periods


RECOVERING = SteamSettings(
    beacon_stretch=1.0, beacon_gather_s=0.05, questions=0, relays=False, forward_jitter_s=0.0, hop_limit=32
)
"As the paper describes it, with the recovery of section 4.3, which the prototype did not have."

PAPER = replace(RECOVERING, cache_size=0, beacon_gather_s=0.0, keep_stationary=True)
"""The prototype of section 5: best effort, no recovery, beacons passed on one by one, stationary proximities kept while
inside."""


class Advert(msgspec.Struct, frozen=True, array_like=True):
    """One event type and its proximity, as a beacon carries it."""

    producer: Word
    subject: Word
    content: dict[Word, Word]
    attributes: dict[Word, FilterText]
    proximity: Proximity | None
    "A mobile one with its first naval, which identifies it; None for everywhere."
    at: Position
    "Where the naval is now."
    epoch: float
    "When it was announced: a later announcement of the same type replaces this one."
    beacon: Whole
    multi_hop: bool
    oldest: Whole
    "The sequence number of the oldest event the producer still holds."
    latest: Whole
    "The sequence number of the latest event raised; 0 before the first."
    raised_at: float
    "When the latest event was raised."
    hops: Whole = 0
    "How often it has been passed on."
    interval_s: float = 1.0
    "When its next beacon is due."
    margin_m: float = 0.0
    "Nodes this far around the proximity list it too: until the next beacon they may come inside."

    @property
    def key(self) -> Key:
        return self.producer, self.subject

    def area(self) -> Area | None:
        """Where the proximity lies now; None for everywhere."""
        return None if self.proximity is None else self.proximity.area(self.at)

    def contains(self, position: Position) -> bool:
        """Whether the position is inside the proximity where it lies now."""
        return self.proximity is None or self.proximity.contains(position, self.at)

    def is_near(self, position: Position) -> bool:
        """Whether the position is inside the proximity or in the margin around it."""
        if self.contains(position):
            return True
        assert self.proximity is not None
        return self.margin_m > 0.0 and self.at.distance_to(position) <= self.proximity.shape.reach_m + self.margin_m

    def newer_than(self, other: Advert) -> bool:
        """Whether this is a later beacon, or a later announcement, than the other."""
        return self.beacon > other.beacon if self.epoch == other.epoch else self.epoch > other.epoch

    @property
    def announcement(self) -> tuple[Proximity | None, dict[str, str], dict[str, str]]:
        """What stays the same in all beacons of one announcement."""
        return self.proximity, self.content, self.attributes

    def fault(self) -> DropReason | None:
        """Why a node must not list it; None if it is valid."""
        if not self.subject or len(self.producer) > MAX_NAME:
            return DropReason.ANNOUNCEMENT_INCOMPLETE
        numbers = (self.epoch, self.raised_at, self.at.x_m, self.at.y_m, self.interval_s, self.margin_m)
        if not all(map(math.isfinite, numbers)) or self.interval_s <= 0.0 or self.margin_m < 0.0:
            return DropReason.ANNOUNCEMENT_IMPOSSIBLE_NUMBERS
        words = sum(len(name) + len(value) for name, value in (*self.content.items(), *self.attributes.items()))
        if words + len(description(self.subject, self.proximity)) > MAX_DESCRIPTION:
            return DropReason.ANNOUNCEMENT_TOO_LONG
        return None


class ProximityBeacon(Packet, frozen=True, array_like=True, tag="steam-beacon"):
    """What producers announce, to all nodes in their proximities: the well-known discovery group."""

    adverts: tuple[Advert, ...]


class ProximityQuestion(Packet, frozen=True, array_like=True, tag="steam-question"):
    """A consumer asks its neighbours for proximities at its place, of these types; of any type if there are none."""

    at: Position
    subjects: tuple[Word, ...]


class Raised(Packet, frozen=True, array_like=True, tag="steam-event"):
    """An event for the members of its group; `hops` counts the transmissions, this one included."""

    event: Event
    group: Whole
    epoch: float
    sequence: Whole
    multi_hop: bool
    hops: Whole = 1


class RecoveryRequest(Packet, frozen=True, array_like=True, tag="steam-request"):
    """A consumer asks a producer for events it missed. The route lists the senders, the consumer first."""

    producer: Word
    subject: Word
    epoch: float
    sequences: tuple[Whole, ...]
    since: float
    route: tuple[Word, ...]


class Recovered(Packet, frozen=True, array_like=True, tag="steam-recovered"):
    """A missed event on its way back along the route; `oldest` is the first one that the producer sends."""

    event: Event
    epoch: float
    sequence: Whole
    oldest: Whole
    route: tuple[Word, ...]
    hops: Whole = 1
