"""Contention-based forwarding, as ETSI GeoNetworking has it (EN 302 636-4-1, annexes D, E.3 and F.3).

Who hears an event waits before passing it on: the farther the event came, the shorter. Who hears it again while
waiting falls silent, for somebody else has passed it on. Outside the event's area the event came as far as it got
nearer to the area (greedy forwarding); inside, as far as the sender is away (area forwarding). No node knows its
neighbours. Vehicles run this today: the baseline of the field.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from earshot.events import Event
from earshot.filters import Subscription
from earshot.geometry import Position
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.machine import NOTHING, QUIET_CHANNEL, Channel, Effects, Location, Machine, Timer
from earshot.protocols.tuning import Surroundings, Tunable, guess
from earshot.records import DropReason
from earshot.settings import AtLeastOne, Positive, check_bounds
from earshot.wire import Packet, Whole


@dataclass(frozen=True, slots=True)
class CbfSettings:
    """The standard's constants, under the names of what they are."""

    range_m: Positive = field(default=1000.0, metadata={"scenario": "medium.range_m"})
    "DIST_MAX: how far the radio reaches; who is that far away waits the shortest. A scenario gives its radio's range."
    shortest_wait_s: Positive = 0.001
    "TO_CBF_MIN."
    longest_wait_s: Positive = 0.1
    "TO_CBF_MAX."
    hop_limit: AtLeastOne = 10
    "An event is transmitted over at most this many hops (itsGnDefaultHopLimit)."
    lifespan_s: Positive = 60.0
    "For events without a lifespan of their own (itsGnDefaultPacketLifetime); older events are dropped."
    memory: AtLeastOne = 4096
    "How many heard events a node remembers, and how many may wait; the oldest are forgotten first."

    def __post_init__(self) -> None:
        check_bounds(self)


class Forwarded(Packet, frozen=True, tag="cbf"):
    """An event; `hops` counts the transmissions, this one included, and `at` is where this one was sent."""

    event: Event
    hops: Whole
    at: Position


class Cbf(Machine):
    name = "cbf"
    paper = "baseline: contention-based forwarding of ETSI GeoNetworking (EN 302 636-4-1)"
    Settings = CbfSettings
    settings: CbfSettings

    def __init__(
        self, node: str, settings: CbfSettings, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.subscriptions = LocalSubscriptions()
        self.heard = RecentKeys(settings.memory, self.budgets)
        self.waiting: dict[str, Forwarded] = {}
        "What was heard once and is passed on when its wait ends, by the event's id; `hops` as heard."

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        first = guess(2.0 * around.speaking_time_s(0.01, 0.1), 0.01, 0.5)
        hops = max(2, min(64, math.ceil(2.0 * math.hypot(around.width_m, around.height_m) / around.range_m)))
        reason = f"{around.mean_neighbours:.0f} neighbours take turns, the farthest first"
        return (
            Tunable("longest_wait_s", first, 0.01, 0.5, reason),
            Tunable("hop_limit", hops, 2, 64, "an event may have to cross the area"),
        )

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription, now)
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.subscriptions.remove(subscription)
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        self.heard.add(event.id)
        self.broadcast(Forwarded(event, 1, self.location.position(now)))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is not Forwarded:
            return NOTHING
        event = packet.event
        if self.heard.add(event.id):
            self._first(packet, now)
        elif event.id in self.waiting:
            del self.waiting[event.id]
            self.cancel_timer(("pass on", event.id))
            self.drop(DropReason.PASSED_ON_BY_ANOTHER, event.id)
        else:
            return NOTHING
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        """A wait has ended, and nobody else has passed the event on."""
        packet = self.waiting.pop(timer[1], None) if isinstance(timer, tuple) else None
        if packet is not None:
            self.broadcast(Forwarded(packet.event, packet.hops + 1, self.location.position(now)))
        return self.effects()

    def _first(self, packet: Forwarded, now: float) -> None:
        """Deliver the event, and wait with it where this node may pass it on."""
        event, settings = packet.event, self.settings
        if has_expired(event, settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return
        self.subscriptions.deliver_local(self, event, packet.hops, now)
        if packet.hops >= settings.hop_limit:
            self.drop(DropReason.HOP_LIMIT, event.id)
            return
        advance_m = self._advance_m(packet, self.location.position(now))
        if advance_m is None:
            self.drop(DropReason.NOT_NEARER, event.id)
        elif len(self.waiting) >= settings.memory:
            self.drop(DropReason.TOO_MANY_PACKETS_WAITING, event.id)
        else:
            self.waiting[event.id] = packet
            self.start_timer(("pass on", event.id), at=now + self.wait_s(advance_m))

    def _advance_m(self, packet: Forwarded, here: Position) -> float | None:
        """How far the event came with this transmission, or None where this node must not pass it on: it is
        outside the area and no nearer to it, or the event has already been inside (annex D)."""
        area = packet.event.area
        if area is None or area.contains(here):
            return here.distance_to(packet.at)
        if area.contains(packet.at):
            return None
        progress_m = area.centre.distance_to(packet.at) - area.centre.distance_to(here)
        return progress_m if progress_m > 0 else None

    def wait_s(self, advance_m: float) -> float:
        """The longest wait for no advance, the shortest from the radio's range on, a straight line between."""
        settings = self.settings
        if not advance_m < settings.range_m:
            return settings.shortest_wait_s
        span_s = settings.longest_wait_s - settings.shortest_wait_s
        return settings.longest_wait_s - span_s * advance_m / settings.range_m
