"""GOSSIP(d, p), as section 5.4 of the STEAM paper uses it: beyond distance d, forward with probability p.

Nodes within d of the source always pass an event on, so that it does not die out at once; farther
away the toss of a coin spares transmissions where enough neighbours remain to carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, outlived
from earshot.protocols.machine import NOTHING, Effects, Location, Machine, Timer
from earshot.records import DropReason
from earshot.wire import Packet


@dataclass(frozen=True, slots=True)
class GossipSettings:
    """The two parameters of G(d, p), and how far and how long an event goes."""

    distance_m: float = 200.0
    "d: nodes this near to the source always pass an event on."
    probability: float = 0.8
    "p: nodes farther away do so with this probability."
    hop_limit: int = 64
    "An event is transmitted over at most so many hops."
    lifespan_s: float = 60.0
    "For events that carry no lifespan of their own; older ones are let go."
    memory: int = 4096
    "How many events a node remembers having heard, oldest forgotten first."
    jitter_s: float = 0.0
    "A node waits an even draw from 0 to this before it passes an event on; see flooding."

    def __post_init__(self) -> None:
        if not self.distance_m >= 0:
            raise SettingsError(f"distance_m must not be negative, got {self.distance_m}")
        if not 0.0 <= self.probability <= 1.0:
            raise SettingsError(f"probability must lie between 0 and 1, got {self.probability}")
        if self.hop_limit < 1:
            raise SettingsError(f"hop_limit must be at least 1, got {self.hop_limit}")
        if not self.lifespan_s > 0:
            raise SettingsError(f"lifespan_s must be positive, got {self.lifespan_s}")
        if self.memory < 1:
            raise SettingsError(f"memory must be at least 1 event, got {self.memory}")
        if not self.jitter_s >= 0:
            raise SettingsError(f"jitter_s must not be negative, got {self.jitter_s}")


class Rumour(Packet, frozen=True, tag="rumour"):
    """An event on its way; `hops` counts the transmissions, this one included."""

    event: Event
    hops: int


class Gossip(Machine):
    name = "gossip"
    paper = "GOSSIP(d, p): Haas, Halpern and Li (INFOCOM 2002), as Meier and Cahill's STEAM (2010) uses it"
    medium = "radio"
    Settings = GossipSettings

    def __init__(self, node: str, settings: GossipSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: GossipSettings = settings
        self.subscriptions = LocalSubscriptions()
        self.heard = RecentKeys(settings.memory)
        self.soon = Jitter(self, settings.jitter_s, random, settings.memory)

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription)
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.subscriptions.remove(subscription)
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        self.heard.add(event.id)
        self.broadcast(Rumour(event, hops=1))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is not Rumour or packet.event.id in self.heard.keys:
            return NOTHING
        return self.on_new(packet, now)

    def wake(self, timer: Timer, now: float) -> Effects:
        self.soon.wake(timer)
        return self.effects()

    def on_new(self, rumour: Rumour, now: float) -> Effects:
        """Tell our own people; pass it on near the source always, farther away by chance."""
        event = rumour.event
        self.heard.add(event.id)
        if outlived(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return self.effects()
        self.subscriptions.tell(self, event, rumour.hops, now)
        if rumour.hops >= self.settings.hop_limit:
            self.drop(DropReason.HOP_LIMIT, event.id)
        elif self.within_distance(event, now) or self.random.random() < self.settings.probability:
            self.soon.send(Rumour(event, rumour.hops + 1), now)
        else:
            self.drop(DropReason.GOSSIP, event.id)
        return self.effects()

    def within_distance(self, event: Event, now: float) -> bool:
        """Whether we are within d of where the event was raised; one without a place is far away."""
        at = event.position
        return at is not None and at.distance_to(self.location.position(now)) <= self.settings.distance_m
