"""DRIP's settings: the paper's symbols, and a name for everything the paper leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from earshot.errors import SettingsError
from earshot.events import Event

DEFAULT_BROKERS = 10
"Symbol k where it is not set."


@dataclass(frozen=True, slots=True)
class DripSettings:
    brokers: int | None = None
    """Symbol k: this many nodes, the ablest, are brokers (section IV.A). Not given: 10, or every node of a
    network that is known to be smaller."""
    nearest: int = 4
    "Symbol l: a node keeps this many nearest brokers; they are the destinations of the events it wants (IV.B, V.B)."
    copies: int = 2
    "Symbol m: this many nearby brokers carry copies of an event; l + m < k (V.B)."
    network_nodes: int | None = field(default=None, metadata={"scenario": "node_count"})
    "The number of nodes in the network, where it is known: k cannot exceed it."
    selection: Literal["ability", "random"] = "ability"
    "Which nodes become brokers: the ablest, or (figure 4's baseline) those that draw the highest numbers."

    announce_interval_s: float = 2.0
    "A broker announces itself this often, the paper's low frequency (IV.B)."
    expiry_periods: float = 1.7
    "A broker that has been silent for this many announcement intervals is removed from the nearest."
    improvement_s: float = 0.001
    "A node forwards a second copy of an announcement only if it was faster by this much."
    handover_margin_s: float = 0.0
    "A node changes to a broker that is nearer by more than this. 0: it always attaches to the nearest (IV.B)."
    register_interval_s: float = 5.0
    """A subscriber submits its subscriptions and its nearest brokers this often. A registration that is not
    renewed for three intervals expires."""

    bootstrap_s: float = 4.0
    "How long nodes gather abilities before the first brokers are elected (IV.A)."
    abilities_gather_s: float = 0.25
    "A node gathers changes of abilities for at most this long before it forwards them."
    spares: int = 5
    "A node keeps this many candidates beyond the k ablest, as possible replacements."
    replace_after_s: float = 12.0
    "A broker that no other broker has heard for this long is replaced by the next able node."
    election_wait_s: float = 1.0
    "A node that ranks among the k ablest waits this long for objections before it becomes a broker."

    contact_interval_s: float = 0.2
    "A broker contacts one broker at a time: this long passes between two contacts (V.C)."
    contact_events: int = 4
    "One contact carries at most this many events."
    contact_records: int = 8
    "One contact carries at most this many subscriber updates."
    exchange_interval_s: float = 3.0
    "Two brokers exchange subscriber updates at most this often."
    taken_wait_s: float = 1.0
    "A copy that is not confirmed within this time may be sent again; each failed attempt doubles the time."
    source_carries: bool = True
    "Whether the broker that spreads an event also hands it to the destinations that it can reach itself."
    destinations: Literal["each", "common"] = "each"
    """Where several subscribers want one event: the l brokers of each of them are destinations ("each"), or
    the l brokers that most of them name ("common")."""
    bridge_interval_s: float = 4.0
    "A bridge reports to its local broker this often; a report is valid for 1.5 intervals (V.B.1)."
    bridge_reports: int = 1
    "A node forwards at most this many bridge reports for one pair of regions in half an interval."
    upstreams: int = 3
    "A node remembers this many neighbours as next hops to each broker."

    memory_events: int = 200
    "A broker holds at most this many events; those least related to the subscriptions go first, then the oldest."
    lifespan_s: float = 60.0
    "The lifespan of events that carry none; older events are dropped."
    known_events: int = 8
    "A subscriber that registers names this many events that it received last, so that they are not sent again."
    memory: int = 4096
    "How many events, routes and subscribers a node remembers; the oldest are forgotten first."
    hop_limit: int = 32
    "No packet travels over more hops."
    jitter_s: float = 0.01
    """A node waits a uniform random time between 0 and this before it forwards a broadcast. Announcements do
    not count that time as delay."""

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} must not be negative, got {getattr(self, name)}")
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
        if not self.expiry_periods > 1:
            raise SettingsError(f"expiry_periods must exceed 1, got {self.expiry_periods}")
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

    def end_of_life(self, event: Event) -> float:
        """When an event expires."""
        return event.time + (self.lifespan_s if event.lifespan_s is None else event.lifespan_s)


_AT_LEAST_ONE = (
    *("nearest", "copies", "contact_events", "contact_records", "bridge_reports", "upstreams"),
    *("memory_events", "memory", "hop_limit"),
)
_POSITIVE = (
    *("announce_interval_s", "register_interval_s", "bootstrap_s", "replace_after_s", "contact_interval_s"),
    *("exchange_interval_s", "bridge_interval_s", "taken_wait_s", "lifespan_s"),
)
_NOT_NEGATIVE = (
    *("improvement_s", "handover_margin_s", "abilities_gather_s", "election_wait_s", "jitter_s"),
    *("spares", "known_events"),
)

PAPER = DripSettings()
