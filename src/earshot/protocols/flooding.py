"""Flooding: every node passes every new event on once. The baseline that reaches every node that can be reached.

A node delivers by exact filtering, so that flooding delivers what the subscriptions ask for and
nothing else; all other protocols are measured against its reach and its cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar

from msgspec import Meta

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.machine import NOTHING, QUIET_CHANNEL, Channel, Effects, Location, Machine, Timer
from earshot.protocols.tuning import Surroundings, Tunable, guess
from earshot.records import DropReason
from earshot.settings import AtLeastOne, NotNegative, check_bounds
from earshot.wire import Packet, Whole


@dataclass(frozen=True, slots=True)
class FloodingSettings:
    """How far and how long an event travels."""

    hop_limit: AtLeastOne = 64
    "An event is transmitted over at most this many hops."
    lifespan_s: Annotated[float, Meta(gt=0)] = 60.0
    "For events without a lifespan of their own; older events are dropped."
    memory: AtLeastOne = 4096
    "How many heard events a node remembers; the oldest are forgotten first."
    jitter_s: NotNegative = 0.0
    """A node waits a uniform random time between 0 and this before it passes an event on. Neighbours
    that share a channel would otherwise all begin at once: 0.01 s is usual there. Without contention
    it only changes the order of hops, so it is off by default."""

    def __post_init__(self) -> None:
        check_bounds(self)


class Flood(Packet, frozen=True, tag="flood"):
    """An event; `hops` counts the transmissions, this one included."""

    event: Event
    hops: Whole


class Flooding(Machine):
    name = "flooding"
    paper = "baseline: every node rebroadcasts every event once"
    Settings = FloodingSettings
    settings: FloodingSettings
    EventPacket: ClassVar[type[Flood]] = Flood
    "The packet that carries an event and its hops."

    def __init__(
        self,
        node: str,
        settings: FloodingSettings,
        location: Location,
        random: Random,
        channel: Channel = QUIET_CHANNEL,
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self._packet_type = self.EventPacket  # The instance's own attribute is found faster: every packet asks for it.
        self.subscriptions = LocalSubscriptions()
        self.heard = RecentKeys(settings.memory, self.budgets)
        self.jittered = Jitter(settings.jitter_s, random, settings.memory)

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        first = guess(around.speaking_time_s(0.004, 0.1), 0.001, 0.3)
        reason = f"{around.mean_neighbours:.0f} neighbours pass an event on and must not all begin at once"
        return (Tunable("jitter_s", first, 0.001, 0.3, reason, step=3.0),)

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription, now)
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.subscriptions.remove(subscription)
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        self.heard.add(event.id)
        self.broadcast(self.EventPacket(event, hops=1))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is not self._packet_type or packet.event.id in self.heard.keys:
            return NOTHING
        return self.on_new(packet.event, packet.hops, now)

    def wake(self, timer: Timer, now: float) -> Effects:
        self._effects += self.jittered.wake(timer)
        return self.effects()

    def on_new(self, event: Event, hops: int, now: float) -> Effects:
        """Deliver to the local subscriptions, then pass the event on unless it is too old or has come too far."""
        self.heard.add(event.id)
        if has_expired(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return self.effects()
        self.subscriptions.deliver_local(self, event, hops, now)
        if hops >= self.settings.hop_limit:
            self.drop(DropReason.HOP_LIMIT, event.id)
        elif self.chooses_to_forward(event, now):
            self._effects.append(self.jittered.send(self.EventPacket(event, hops + 1), now))
        else:
            self.drop(DropReason.GOSSIP, event.id)
        return self.effects()

    def chooses_to_forward(self, event: Event, now: float) -> bool:
        """Flooding always does; gossip tosses a coin."""
        return True
