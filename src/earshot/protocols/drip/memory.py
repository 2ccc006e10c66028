"""A broker's memory for events (section V.A.2): bounded; the least related to the subscriptions goes first."""

from __future__ import annotations

from dataclasses import dataclass, field

from earshot.events import Event


@dataclass(slots=True)
class Attempt:
    """A copy on its way to a broker that has not confirmed it yet."""

    until: float
    "So long it counts as on its way."
    tries: int
    carry: bool


@dataclass(slots=True)
class Held:
    """An event a broker holds, and what is left to be done about it."""

    event: Event
    until: float
    "The end of its life."
    relation: int
    "How many subscriptions it matched when it came."
    hops: int
    pending: set[str] = field(default_factory=set)
    "Destinations this broker is to bring it to."
    copies: int = 0
    "How many brokers it is to be spread to (m at its source, 0 elsewhere)."
    destinations: tuple[str, ...] = ()
    has: set[str] = field(default_factory=set)
    "Brokers known to have it."
    carriers: set[str] = field(default_factory=set)
    "Brokers that took it to carry it on."
    attempts: dict[str, Attempt] = field(default_factory=dict)
    at_source: bool = False
    "Whether this is the first broker that had it."
    flooded: bool = False
    "Whether it was flooded in this region."

    def is_on_its_way_to(self, peer: str, now: float) -> bool:
        attempt = self.attempts.get(peer)
        return attempt is not None and attempt.until > now

    def carriers_to_be(self, now: float) -> int:
        """Brokers that carry it on, and those that are being asked to."""
        return len(self.carriers) + sum(one.carry and one.until > now for one in self.attempts.values())

    def send_to(self, peer: str, carry: bool, now: float, wait_s: float) -> None:
        """A copy goes out; each time it was in vain it is waited for twice as long."""
        tries = self.attempts[peer].tries + 1 if peer in self.attempts else 0
        self.attempts[peer] = Attempt(now + wait_s * 2.0 ** min(tries, 6), tries, carry)

    def taken_by(self, peer: str) -> None:
        """The broker has confirmed its copy."""
        attempt = self.attempts.pop(peer, None)
        if attempt is not None and attempt.carry and peer not in self.has:
            self.carriers.add(peer)
        self.has.add(peer)
        self.pending.discard(peer)


class EventMemory:
    """The events a broker holds, by id, oldest publication first where it matters."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held: dict[str, Held] = {}

    def add(self, held: Held) -> list[Held]:
        """Keep an event; returns those that had to give way, perhaps itself."""
        self.held[held.event.id] = held
        gone = []
        while len(self.held) > self.capacity:
            least = min(self.held.values(), key=lambda one: (one.relation, one.event.time, one.event.id))
            del self.held[least.event.id]
            gone.append(least)
        return gone

    def forget(self, now: float) -> list[Held]:
        """Let go whose life is over."""
        over = [held for held in self.held.values() if held.until <= now]
        for held in over:
            del self.held[held.event.id]
        return over
