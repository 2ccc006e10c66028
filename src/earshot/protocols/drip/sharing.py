"""The events that a broker holds (section V.A.2), and how brokers share them (section V.B.2): in multiple copies to
multiple destinations, or as an epidemic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from earshot.events import Event
from earshot.protocols.drip.packets import DripSettings, EventCopy
from earshot.protocols.drip.subscribers import Subscriber


@dataclass(frozen=True, slots=True)
class UnconfirmedCopy:
    """A copy that was sent to a broker and is not confirmed yet."""

    until: float
    "Until then the copy counts as on its way."
    retries: int
    carry: bool


@dataclass(slots=True)
class HeldEvent:
    """An event that a broker holds, and what is left to do with it."""

    event: Event
    until: float
    "The end of its life."
    relation: int
    "How many subscriptions it matched when it arrived."
    hops: int
    pending: set[str] = field(default_factory=set)
    "Destinations that this broker has yet to bring it to."
    copies: int = 0
    "How many brokers are to carry it (m at its source, 0 elsewhere)."
    destinations: tuple[str, ...] = ()
    holders: set[str] = field(default_factory=set)
    "Brokers known to have it."
    carriers: set[str] = field(default_factory=set)
    "Brokers that accepted to carry it."
    unconfirmed: dict[str, UnconfirmedCopy] = field(default_factory=dict)
    at_source: bool = False
    "Whether this is the first broker that had it."
    flooded: bool = False
    "Whether it was flooded in this region."

    def is_on_its_way_to(self, peer: str, now: float) -> bool:
        copy = self.unconfirmed.get(peer)
        return copy is not None and copy.until > now

    def planned_carriers(self, now: float) -> int:
        """Brokers that carry it, and brokers that have been asked to."""
        return len(self.carriers) + sum(copy.carry and copy.until > now for copy in self.unconfirmed.values())

    def send_to(self, peer: str, carry: bool, now: float, wait_s: float) -> None:
        """A copy is sent; each failed attempt doubles the time to wait for the confirmation."""
        retries = self.unconfirmed[peer].retries + 1 if peer in self.unconfirmed else 0
        self.unconfirmed[peer] = UnconfirmedCopy(now + wait_s * 2.0 ** min(retries, 6), retries, carry)

    def confirm(self, peer: str) -> None:
        """The broker has confirmed its copy."""
        copy = self.unconfirmed.pop(peer, None)
        if copy is not None and copy.carry and peer not in self.holders:
            self.carriers.add(peer)
        self.holders.add(peer)
        self.pending.discard(peer)


class EventMemory:
    """The events that a broker holds, by id, in the order of their arrival."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held: dict[str, HeldEvent] = {}

    def add(self, held: HeldEvent) -> list[HeldEvent]:
        """Section V.A.2: keep an event; returns the least related events, perhaps itself, that make room for it."""
        self.held[held.event.id] = held
        removed = []
        while len(self.held) > self.capacity:
            least = min(self.held.values(), key=lambda one: (one.relation, one.event.time, one.event.id))
            removed.append(self.held.pop(least.event.id))
        return removed

    def expire(self, now: float) -> list[HeldEvent]:
        """Remove and return the events whose life is over."""
        return [self.held.pop(held.event.id) for held in list(self.held.values()) if held.until <= now]


class Sharing:
    """Section V.B.2, multi-copy-multi-destination: m nearby brokers carry copies of an event to the l brokers nearest
    to each subscriber."""

    shares_subscriptions = True
    "Whether brokers must know the subscriptions of other regions."

    def __init__(self, settings: DripSettings) -> None:
        self.settings = settings

    def at_source(self, held: HeldEvent, elsewhere: Sequence[Subscriber], broker: str) -> None:
        """This is the event's first broker; these subscribers of other regions may want it."""
        new = destinations_of(elsewhere, broker, self.settings)
        if new:
            held.destinations = tuple(sorted({*held.destinations, *new}))
            held.copies = self.settings.copies
            if self.settings.source_carries:
                held.pending |= set(new) - held.holders

    def at_receiver(self, held: HeldEvent, copy: EventCopy, broker: str) -> None:
        """A copy has come from another broker."""
        held.holders.add(copy.origin)
        if copy.carry:
            held.destinations = tuple(sorted({*held.destinations, *copy.destinations}))
            held.pending |= set(copy.destinations) - {broker} - held.holders

    def is_due(self, held: HeldEvent, peer: str, now: float) -> bool:
        """Whether a reachable broker must get the event now."""
        return not held.is_on_its_way_to(peer, now) and (peer in held.pending or self.carries(held, peer, now))

    def carries(self, held: HeldEvent, peer: str, now: float) -> bool:
        """Whether that broker must carry it to other brokers."""
        return held.copies > 0 and peer not in held.holders and held.planned_carriers(now) < held.copies

    def is_done(self, held: HeldEvent) -> bool:
        """Whether nothing is left to do with it."""
        return not held.pending and len(held.carriers) >= held.copies


class Epidemic(Sharing):
    """Section VI.A, the paper's SF: every broker passes every event to every broker that lacks it."""

    shares_subscriptions = False

    def at_source(self, held: HeldEvent, elsewhere: Sequence[Subscriber], broker: str) -> None:
        pass

    def carries(self, held: HeldEvent, peer: str, now: float) -> bool:
        return peer not in held.holders

    def is_done(self, held: HeldEvent) -> bool:
        return False


def destinations_of(subscribers: Sequence[Subscriber], broker: str, settings: DripSettings) -> tuple[str, ...]:
    """The brokers whose regions the subscribers may be in, without the broker that matched the event."""
    named = Counter(name for one in subscribers for name in one.record.nearest[: settings.nearest])
    del named[broker]
    if settings.destinations == "each":
        return tuple(sorted(named))
    most = sorted(named, key=lambda name: (-named[name], name))
    return tuple(sorted(most[: settings.nearest]))
