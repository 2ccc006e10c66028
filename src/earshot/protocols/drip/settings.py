"""DRIP's settings: the paper's symbols, and a name for everything the paper leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from earshot.errors import SettingsError

BROKERS = 10
"Symbol k where nobody says."


@dataclass(frozen=True, slots=True)
class DripSettings:
    brokers: int | None = None
    """Symbol k: so many nodes, the ablest, are brokers (section IV.A). Not given: 10, or every node of a
    network that is known to be smaller."""
    nearest: int = 4
    "Symbol l: a node keeps its so many nearest brokers; they are the destinations of what it wants (IV.B, V.B)."
    copies: int = 2
    "Symbol m: so many nearby brokers carry copies of an event; l + m < k (V.B)."
    network_nodes: int | None = field(default=None, metadata={"scenario": "node_count"})
    "How many nodes there are, where that is known: k cannot be more."
    selection: Literal["ability", "random"] = "ability"
    "Who becomes a broker: the ablest, or (figure 4's baseline) whoever draws the highest numbers."

    announce_interval_s: float = 2.0
    "A broker announces itself so often, the paper's low frequency (IV.B)."
    expiry_periods: float = 1.7
    "A broker not heard of for so many announcement intervals is no longer among the nearest."
    improvement_s: float = 0.001
    "A copy of an announcement that was passed on already goes on again only if it was faster by this much."
    handover_margin_s: float = 0.0
    "A node changes to a broker nearer by more than this. 0: it always attaches to the nearest (IV.B)."
    register_interval_s: float = 5.0
    "A subscriber submits its subscriptions and its nearest brokers anew this often; thrice as long without is gone."

    bootstrap_s: float = 4.0
    "How long abilities are gathered before the first brokers come forward (IV.A)."
    roll_gather_s: float = 0.25
    "News of abilities is gathered for up to so long before it is passed on."
    spares: int = 5
    "So many nodes beyond the k ablest are known as those who would be next."
    replace_after_s: float = 12.0
    "A broker no broker has heard of for so long is replaced by the next able node."
    election_wait_s: float = 1.0
    "Who finds itself among the k ablest waits so long for an objection before it comes forward."

    contact_interval_s: float = 0.2
    "A broker contacts one broker at a time: so long lies between two contacts (V.C)."
    contact_events: int = 4
    "One contact carries at most so many events."
    contact_records: int = 8
    "And at most so many news of subscribers."
    exchange_interval_s: float = 3.0
    "Two brokers tell each other news of subscribers this often at most."
    taken_wait_s: float = 1.0
    "A copy not confirmed by then may be sent again; each time in vain doubles it."
    source_carries: bool = True
    "Whether the broker that spreads an event also hands it to the destinations it can talk to itself."
    destinations: Literal["each", "common"] = "each"
    """Where several subscribers want one event: the l brokers of each of them are destinations ("each"), or
    the l brokers named by most of them ("common")."""
    bridge_interval_s: float = 4.0
    "A bridge reports to its local broker so often; a report holds for half as long again (V.B.1)."
    bridge_reports: int = 1
    "A node passes on at most so many bridges' reports for one pair of regions in that time."
    upstreams: int = 3
    "A node remembers so many neighbours on the way to each broker."

    memory_events: int = 200
    "A broker holds at most so many events; those least related to the subscriptions go first, then the oldest."
    lifespan_s: float = 60.0
    "For events that carry no lifespan of their own; older ones are let go."
    known_events: int = 8
    "A subscriber that registers names so many events it had last, so that it is not sent them again."
    memory: int = 4096
    "How many events, routes and subscribers a node remembers, oldest forgotten first."
    hop_limit: int = 32
    "Nothing goes over more hops."
    jitter_s: float = 0.01
    """A node waits an even draw from 0 to this before it passes a broadcast on. Announcements do not count
    that time as delay."""

    def __post_init__(self) -> None:
        for name in ("nearest", "copies"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        wanted = BROKERS if self.brokers is None else self.brokers
        if self.nearest + self.copies >= wanted:
            raise SettingsError(
                f"nearest + copies must stay below brokers (l + m < k), got {self.nearest} + {self.copies} "
                f"of {wanted}: an event would go to every broker"
            )
        if None not in (self.network_nodes, self.brokers) and self.brokers > self.network_nodes:  # type: ignore[operator]
            raise SettingsError(
                f"brokers must not exceed the network's nodes, got {self.brokers} brokers of {self.network_nodes} nodes"
            )
        for name in (
            "announce_interval_s",
            "register_interval_s",
            "bootstrap_s",
            "replace_after_s",
            "contact_interval_s",
            "exchange_interval_s",
            "bridge_interval_s",
            "taken_wait_s",
            "lifespan_s",
        ):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("improvement_s", "handover_margin_s", "roll_gather_s", "election_wait_s", "jitter_s"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in (
            "contact_events",
            "contact_records",
            "bridge_reports",
            "upstreams",
            "memory_events",
            "memory",
            "hop_limit",
        ):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("spares", "known_events"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must not be negative, got {getattr(self, name)}")
        if not self.expiry_periods > 1:
            raise SettingsError(f"expiry_periods must exceed 1, got {self.expiry_periods}")
        if self.replace_after_s <= self.expiry_s:
            raise SettingsError(
                f"replace_after_s must exceed expiry_periods announcement intervals ({self.expiry_s:g} s), "
                f"got {self.replace_after_s:g}"
            )

    @property
    def k(self) -> int:
        """How many brokers there are to be."""
        if self.brokers is not None:
            return self.brokers
        return BROKERS if self.network_nodes is None else min(BROKERS, self.network_nodes)

    @property
    def expiry_s(self) -> float:
        """How long a broker is among the nearest without being heard of again."""
        return self.expiry_periods * self.announce_interval_s


PAPER = DripSettings()
