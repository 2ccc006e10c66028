"""DRIP's settings and packets.

The settings are the paper's symbols, and a name for everything that the paper leaves open.
Announcements, abilities and events inside a region are broadcast. Everything else is a routed packet:
from one node to another, along the reverse path of an announcement or of an earlier routed packet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.geometry import Position
from earshot.settings import AtLeastOne, Count, NotNegative, Positive, check_bounds
from earshot.wire import FilterText, Packet, Whole, Word

DEFAULT_BROKERS = 10
"Symbol k where it is not set."


@dataclass(frozen=True, slots=True)
class DripSettings:
    brokers: int | None = None
    """Symbol k: this many nodes, the ablest, are brokers (section IV.A). Not given: 10, or every node of a
    network that is known to be smaller."""
    nearest: AtLeastOne = 4
    "Symbol l: a node keeps this many nearest brokers; they are the destinations of the events it wants (IV.B, V.B)."
    copies: AtLeastOne = 2
    "Symbol m: this many nearby brokers carry copies of an event; l + m < k (V.B)."
    network_nodes: int | None = field(default=None, metadata={"scenario": "node_count"})
    "The number of nodes in the network, where it is known: k cannot exceed it."
    selection: Literal["ability", "random"] = "ability"
    "Which nodes become brokers: the ablest, or (figure 4's baseline) those that draw the highest numbers."

    announce_interval_s: Positive = 3.0
    "A broker announces itself this often, the paper's low frequency (IV.B)."
    announced_to: Literal["nearest", "all"] = "all"
    """Who forwards an announcement: nodes that count the broker among their l nearest (IV.B), or all nodes, so that
    every node has a route to every broker, and brokers reach each other without bridges."""
    enough_copies: Count = 3
    """A node that has heard this many copies of an announcement before its turn to forward it does not forward it:
    its neighbours have it. 0: it always forwards it."""
    hop_delay_s: NotNegative = 0.002
    """A broker is this far away for each hop. 0: as far as its announcement took (IV.B), which on a busy channel
    changes with the queues from one announcement to the next."""
    expiry_periods: Annotated[float, Meta(gt=1)] = 2.7
    "A broker that has been silent for this many announcement intervals is removed from the nearest."
    improvement_s: NotNegative = 0.001
    "A node forwards a second copy of an announcement only if it was faster by this much."
    handover_margin_s: NotNegative = 0.003
    "A node changes to a broker that is nearer by more than this. 0: it always attaches to the nearest (IV.B)."
    channel_stretch: Annotated[float, Meta(ge=1, le=1.5)] = 1.5
    """On a channel that is busy for more than half of the time announcements and registrations come later, in inverse
    proportion to its idle time, by at most this factor, so that nothing expires. 1: they keep their intervals."""
    register_interval_s: Positive = 10.0
    """A subscriber submits its subscriptions and its nearest brokers this often. A registration that is not
    renewed for three intervals expires."""
    near_hops: Count = 2
    """A subscriber that is more hops away from its broker registers less often, in proportion, so that its
    registrations cost no more. 0: all register equally often."""

    bootstrap_s: Positive = 8.0
    "How long nodes gather abilities before the first brokers are elected (IV.A)."
    abilities_gather_s: NotNegative = 0.1
    "A node gathers changes of abilities for at most this long before it forwards them."
    spares: Count = 5
    "A node keeps this many candidates beyond the k ablest, as possible replacements."
    replace_after_s: Positive = 12.0
    "A broker that no other broker has heard for this long is replaced by the next able node."
    election_wait_s: NotNegative = 1.0
    "A node that ranks among the k ablest waits this long for objections before it becomes a broker."

    brokers_know: Literal["subscribers", "regions"] = "regions"
    """What brokers tell each other: every subscriber's record, so that copies are carried to the brokers it may move
    to (V.B.2), or what each region wants as a whole, so that an event goes straight to the regions that want it."""
    interest_filters: Count = 0
    "A region that wants an event type by more filters than this is taken to want all of that type."
    interest_renew_s: Positive = 30.0
    "A region that wants less than before says so after this time; one that wants more says so at once."
    place_margin_m: NotNegative = 200.0
    "A subscriber counts as near an event's area if it registered within this distance of it."
    stranded_wait_s: Positive = 1.0
    "A node that has no route for an event to another region tries again after this time."
    contact_interval_s: Positive = 0.2
    "A broker contacts one broker at a time: this long passes between two contacts (V.C)."
    contact_confirmed: bool = True
    """Whether the next contact begins as soon as all events of the last one are confirmed, and after the interval only
    where they are not. Otherwise a broker shares no more than `contact_events` events in an interval."""
    contact_events: AtLeastOne = 4
    "One contact carries at most this many events."
    contact_records: AtLeastOne = 8
    "One contact carries at most this many subscriber updates."
    exchange_interval_s: Positive = 3.0
    "Two brokers exchange subscriber updates at most this often."
    taken_wait_s: Positive = 1.0
    "A copy that is not confirmed within this time may be sent again; each failed attempt doubles the time."
    source_carries: bool = True
    "Whether the broker that spreads an event also hands it to the destinations that it can reach itself."
    destinations: Literal["each", "common"] = "each"
    """Where several subscribers want one event: the l brokers of each of them are destinations ("each"), or
    the l brokers that most of them name ("common")."""
    bridge_interval_s: Positive = 4.0
    "A bridge reports to its local broker this often; a report is valid for 1.5 intervals (V.B.1)."
    bridge_reports: AtLeastOne = 1
    "A node forwards at most this many bridge reports for one pair of regions in half an interval."
    routes: Literal["announcements", "network"] = "announcements"
    """How a packet finds its target: hop by hop against announcements and along earlier packets, or by the network's
    own routing, which looks for routes on demand where it is reactive (IV.B: a lightweight AODV)."""
    upstreams: AtLeastOne = 6
    "A node remembers this many neighbours as next hops to each broker."
    next_hop: Literal["fastest", "nearest"] = "nearest"
    """Which of them a packet goes to: the one whose announcement came first, or the one that should be nearest by now,
    because it is less likely to have moved away. Announcements then say where nodes are; a packet whose next hops
    are all gone goes to a neighbour that is nearer to the broker."""

    memory_events: AtLeastOne = 200
    "A broker holds at most this many events; those least related to the subscriptions go first, then the oldest."
    lifespan_s: Positive = 60.0
    "The lifespan of events that carry none; older events are dropped."
    known_events: Count = 8
    "A subscriber that registers names this many events that it received last, so that they are not sent again."
    memory: AtLeastOne = 4096
    "How many events, routes and subscribers a node remembers; the oldest are forgotten first."
    hop_limit: AtLeastOne = 64
    "No packet travels over more hops."
    jitter_s: NotNegative = 0.03
    """A node waits a uniform random time between 0 and this before it forwards a broadcast. Announcements do
    not count that time as delay."""

    def __post_init__(self) -> None:
        check_bounds(self)
        k = DEFAULT_BROKERS if self.brokers is None else self.brokers
        if self.nearest + self.copies >= k:
            raise SettingsError(
                f"nearest + copies must stay below brokers (l + m < k), got {self.nearest} + {self.copies} "
                f"of {k}: an event would go to every broker"
            )
        if self.brokers is not None and self.network_nodes is not None and self.brokers > self.network_nodes:
            raise SettingsError(
                f"brokers must not exceed the network's nodes, got {self.brokers} brokers of {self.network_nodes} nodes"
            )
        if self.replace_after_s <= self.expiry_s:
            raise SettingsError(
                f"replace_after_s must exceed expiry_periods announcement intervals ({self.expiry_s:g} s), "
                f"got {self.replace_after_s:g}"
            )

    @property
    def k(self) -> int:
        """The number of brokers."""
        if self.brokers is not None:
            return self.brokers
        return DEFAULT_BROKERS if self.network_nodes is None else min(DEFAULT_BROKERS, self.network_nodes)

    @property
    def expiry_s(self) -> float:
        """How long a broker stays among the nearest without a new announcement."""
        return self.expiry_periods * self.announce_interval_s

    def register_after_s(self, hops: int) -> float:
        """How long after one registration a subscriber that is this many hops from its broker sends the next."""
        hops = min(hops, self.hop_limit)
        return self.register_interval_s * max(1.0, hops / self.near_hops if self.near_hops else 1.0)

    def end_of_life(self, event: Event) -> float:
        """When an event expires."""
        return event.time + (self.lifespan_s if event.lifespan_s is None else event.lifespan_s)


AS_WRITTEN: Final[dict[str, Any]] = {
    "announce_interval_s": 2.0,
    "announced_to": "nearest",
    "enough_copies": 0,
    "hop_delay_s": 0.0,
    "expiry_periods": 1.7,
    "handover_margin_s": 0.0,
    "channel_stretch": 1.0,
    "register_interval_s": 5.0,
    "near_hops": 0,
    "bootstrap_s": 4.0,
    "abilities_gather_s": 0.25,
    "brokers_know": "subscribers",
    "contact_confirmed": False,
    "contact_records": 20,
    "hop_limit": 32,
    "upstreams": 3,
    "next_hop": "fastest",
    "jitter_s": 0.01,
}
"The settings in which the paper's protocol differs from the defaults, which are for larger and busier networks."

PAPER = DripSettings(**AS_WRITTEN)


class Candidate(NamedTuple):
    """What is known of a node that could be a broker."""

    node: Word
    ability: float
    alive_at: float
    "The node's latest known sign of life."
    gone: bool


class Abilities(Packet, frozen=True, tag="drip-abilities"):
    """Section IV.A: the abilities of nodes, as far as they decide which nodes become brokers."""

    candidates: tuple[Candidate, ...]
    digest: Whole
    "A digest of the k ablest nodes that the sender knows."


class BrokerAnnouncement(Packet, frozen=True, tag="drip-announcement"):
    """Section IV.B: a broker exists. Its name is its region's id."""

    broker: Word
    sequence: Whole
    sent_at: float
    "The source time-stamp, plus the time that forwarding nodes waited on purpose."
    hops: Whole
    attached: Word
    "The local broker of the node that forwards it: so neighbours learn each other's region."
    digest: Whole
    "A digest of the k ablest nodes that this node knows."


Motion = tuple[Whole, Whole, Whole, Whole]
"Where a node is, in metres, and how it moves, in metres per second: x, y, then the velocity's x and y."


class PlacedAnnouncement(BrokerAnnouncement, frozen=True, tag="drip-announcement-at"):
    """An announcement that says where the broker is, where the node that forwards it is, and how that one moves."""

    place: tuple[Whole, Whole]
    motion: Motion


class Retirement(Packet, frozen=True, tag="drip-retirement"):
    """A node is no longer a broker: it leaves, or an abler node came back."""

    broker: Word
    sequence: Whole


class InRegion(Packet, frozen=True, tag="drip-in-region"):
    """Section V.A.3: an event that is flooded in one broker's region."""

    event: Event
    hops: Whole
    region: Word


class RoutedPacket(Packet, frozen=True):
    """From one node to another; `via` names the bridge that it has yet to cross."""

    origin: Word
    target: Word
    via: Word
    legs: Whole
    "Transmissions from its origin, this one included; packets with an event count from the publisher in `hops`."


class Registration(RoutedPacket, frozen=True, tag="drip-register"):
    """Section V.A.1: a subscriber's subscriptions and its nearest brokers."""

    stamp: float
    since: float
    "When the subscriber first had exactly these subscriptions."
    nearest: tuple[Word, ...]
    subscriptions: tuple[FilterText, ...]
    "Filters as text. Only the subscriber itself evaluates conditions on its position."
    known: tuple[Word, ...]
    "Events that the subscriber received recently, if it comes from another region."


class PlacedRegistration(Registration, frozen=True, tag="drip-register-at"):
    """A registration that says where the subscriber is, for brokers that know what regions want."""

    position: Position | None

    @property
    def is_possible(self) -> bool:
        """Whether the position is a place."""
        return self.position is None or (isfinite(self.position.x_m) and isfinite(self.position.y_m))


class RegionInterest(RoutedPacket, frozen=True, tag="drip-interest"):
    """What the subscribers of the origin's region want, as a superset, and the rectangle that they are in."""

    version: Whole
    filters: tuple[FilterText, ...]
    box: tuple[float, float, float, float]


class Quit(RoutedPacket, frozen=True, tag="drip-quit"):
    """Section V.A.1: the subscriber has left the region."""

    stamp: float


class BridgeReport(RoutedPacket, frozen=True, tag="drip-bridge"):
    """Section V.B.1: the origin is a bridge from its local broker, the target, to another broker."""

    other: Word


class PublishedEvent(RoutedPacket, frozen=True, tag="drip-publication"):
    """Section V.A.2: an event on its way to its publisher's local broker."""

    event: Event
    hops: Whole


class EventCopy(RoutedPacket, frozen=True, tag="drip-copy"):
    """Section V.B.2: an event from broker to broker."""

    event: Event
    hops: Whole
    destinations: tuple[Word, ...]
    carry: bool
    "Whether the receiver is one of the m brokers that carry it to the destinations."


class RegionCopy(Packet, frozen=True, tag="drip-region-copy"):
    """An event on its way to several brokers whose regions want it; it divides where their routes do."""

    event: Event
    hops: Whole
    targets: tuple[Word, ...]


class Confirmation(RoutedPacket, frozen=True, tag="drip-taken"):
    """A broker confirms what another broker sent: a copy of an event, or subscriber updates up to a version."""

    event_id: Word
    version: Whole = 0


class SubscriberRecord(Packet, frozen=True):
    """What brokers know of a subscriber. Without subscriptions: they are unchanged, the subscriber has moved."""

    subscriber: Word
    stamp: float
    broker: Word
    nearest: tuple[Word, ...]
    subscriptions: tuple[FilterText, ...] | None
    since: float
    "When the subscriber first had exactly these subscriptions."


class Exchange(RoutedPacket, frozen=True, tag="drip-exchange"):
    """Section V.B.2: brokers share what they know of subscribers, and when they last heard other brokers."""

    version: Whole
    records: tuple[SubscriberRecord, ...]
    brokers: dict[Word, float]
    "For each broker the latest announcement that is known."
    held: tuple[Word, ...] = ()
    "The events that the origin holds; only the epidemic uses it."


class Notice(RoutedPacket, frozen=True, tag="drip-notice"):
    """An event for one subscriber: one that came into the region after the event, or the broker itself."""

    event: Event
    hops: Whole
