"""Flooding: every node passes every new event on once. The baseline that reaches whom the network can reach.

A node tells its own people by exact filtering, so that flooding delivers what the subscriptions
ask for and nothing else; all other protocols are measured against its reach and its cost.
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
class FloodingSettings:
    """How far and how long an event goes."""

    hop_limit: int = 64
    "An event is transmitted over at most so many hops."
    lifespan_s: float = 60.0
    "For events that carry no lifespan of their own; older ones are let go."
    memory: int = 4096
    "How many events a node remembers having heard, oldest forgotten first."
    jitter_s: float = 0.0
    """A node waits an even draw from 0 to this before it passes an event on. Where neighbours share
    a channel they would all begin at once: 0.01 s is usual there. Without contention it only
    disturbs the order of hops, so it is off by default."""

    def __post_init__(self) -> None:
        if self.hop_limit < 1:
            raise SettingsError(f"hop_limit must be at least 1, got {self.hop_limit}")
        if not self.lifespan_s > 0:
            raise SettingsError(f"lifespan_s must be positive, got {self.lifespan_s}")
        if self.memory < 1:
            raise SettingsError(f"memory must be at least 1 event, got {self.memory}")
        if not self.jitter_s >= 0:
            raise SettingsError(f"jitter_s must not be negative, got {self.jitter_s}")


class Flood(Packet, frozen=True, tag="flood"):
    """An event on its way; `hops` counts the transmissions, this one included."""

    event: Event
    hops: int


class Flooding(Machine):
    name = "flooding"
    paper = "baseline: every node rebroadcasts every event once"
    medium = "radio"
    Settings = FloodingSettings

    def __init__(self, node: str, settings: FloodingSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: FloodingSettings = settings
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
        self.broadcast(Flood(event, hops=1))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is not Flood or packet.event.id in self.heard.keys:
            return NOTHING
        return self.on_new(packet, now)

    def wake(self, timer: Timer, now: float) -> Effects:
        self.soon.wake(timer)
        return self.effects()

    def on_new(self, flood: Flood, now: float) -> Effects:
        """Tell our own people, then pass it on while it is young and near enough."""
        event = flood.event
        self.heard.add(event.id)
        if outlived(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return self.effects()
        self.subscriptions.tell(self, event, flood.hops, now)
        if flood.hops >= self.settings.hop_limit:
            self.drop(DropReason.HOP_LIMIT, event.id)
        else:
            self.soon.send(Flood(event, flood.hops + 1), now)
        return self.effects()
