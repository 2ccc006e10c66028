"""ODMRP, by C. Chiang, M. Gerla and S. Lee (WCNC 1999): a mesh of forwarding nodes, made on demand.

A source floods Join Requests while it has something to send; each node learns its way back to the
source from them. Members answer with Join Tables that name the next node on that way; whoever is
named becomes a forwarding node and names the next. Data goes from forwarding node to forwarding
node. All of it is soft: what is not refreshed is forgotten, nobody ever leaves explicitly.

Without `channels` there is one well-known channel and every broker filters for itself; with them,
one channel a predefined filter, as section IV.A compares. Departures: docs/papers/content-odmrp.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from random import Random

from earshot.errors import FilterSyntaxError, SettingsError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.machine import NOTHING, Effects, Location, Machine, Timer
from earshot.records import DropReason
from earshot.wire import Packet

REST = 0
"The channel of events that no predefined channel is for; without predefined channels, the only one."


@dataclass(frozen=True)
class OdmrpSettings:
    refresh_interval_s: float = 5.0
    "Section IV: how often a source that has something to send floods a Join Request."
    forwarding_timeout_s: float = 25.0
    "Section IV: how long a forwarding flag, a route and a membership last without being refreshed."
    channels: tuple[str, ...] = ()
    "A filter for each predefined channel; none: one channel for everything."
    hop_limit: int = 32
    "Join Requests and data go over at most so many hops."
    lifespan_s: float = 60.0
    "For events that carry no lifespan of their own; older ones are let go."
    memory: int = 4096
    "How many packets a node remembers having heard, and how many sources it knows."
    jitter_s: float = 0.0
    """A node waits an even draw from 0 to this before it passes anything on or answers. Where neighbours
    share a channel they would all begin at once: 0.01 s is usual there."""

    def __post_init__(self) -> None:
        for name in ("refresh_interval_s", "forwarding_timeout_s", "lifespan_s"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        if self.forwarding_timeout_s <= self.refresh_interval_s:
            raise SettingsError(
                f"forwarding_timeout_s must exceed refresh_interval_s, got {self.forwarding_timeout_s:g} "
                f"and {self.refresh_interval_s:g}"
            )
        for name in ("hop_limit", "memory"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.jitter_s >= 0:
            raise SettingsError(f"jitter_s must not be negative, got {self.jitter_s}")
        object.__setattr__(self, "channels", tuple(self.channels))
        for text, filter in zip(self.channels, self.filters, strict=True):
            if filter.needs_viewer:
                raise SettingsError(f"a channel cannot depend on where its consumer is: {text!r}")

    @cached_property
    def filters(self) -> tuple[Filter, ...]:
        """The predefined channels' filters: channel n + 1 is the n-th."""
        try:
            return tuple(Filter.parse(text) for text in self.channels)
        except FilterSyntaxError as error:
            raise SettingsError(f"channels: {error}") from None

    def channels_of(self, event: Event) -> list[int]:
        """The channels an event is published on: all that it matches."""
        found = [number for number, filter in enumerate(self.filters, 1) if filter.matches(event)]
        return found or [REST]

    def channels_for(self, filter: Filter) -> list[int]:
        """The channels a subscriber joins: one that covers its filter, or all, the rest included."""
        covering = [number for number, channel in enumerate(self.filters, 1) if channel.covers(filter)]
        return covering[:1] or list(range(len(self.filters) + 1))


class JoinRequest(Packet, frozen=True, tag="odmrp-join-request"):
    """Floods from a source that has something to send; carries it where it was the reason to send."""

    source: str
    channel: int
    sequence: int
    hops: int
    event: Event | None = None


class JoinTable(Packet, frozen=True, tag="odmrp-join-table"):
    """From members and forwarding nodes: for each source, who is next on the way to it."""

    channel: int
    next_hops: dict[str, str]


class Data(Packet, frozen=True, tag="odmrp-data"):
    """An event on its way through the mesh; `hops` counts the transmissions, this one included."""

    channel: int
    event: Event
    hops: int


@dataclass(frozen=True, slots=True)
class Route:
    """How a Join Request came: the way back to its source."""

    upstream: str
    sequence: int


class Odmrp(Machine):
    name = "odmrp"
    paper = "Chiang, Gerla, Lee: On-Demand Multicast Routing Protocol (WCNC 1999)"
    medium = "radio"
    Settings = OdmrpSettings

    def __init__(self, node: str, settings: OdmrpSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: OdmrpSettings = settings
        self.subscriptions = LocalSubscriptions()
        self.joined: Counter[int] = Counter()
        "How many of its subscriptions had the node join a channel."
        self.sequence = 0
        self.requested_at: dict[int, float] = {}
        "When this source last flooded a Join Request, by channel."
        self.routes: SoftTable[tuple[str, int], Route] = SoftTable(settings.memory)
        "By source and channel: the member table and the routing table in one."
        self.flags: SoftTable[int, bool] = SoftTable(len(settings.channels) + 1)
        "FG_Flag, by channel."
        self.heard = RecentKeys(settings.memory)
        "Join Requests, data and tables that were dealt with."
        self.soon = Jitter(self, settings.jitter_s, random, settings.memory)
        self.forgetting = False
        "Whether the timer that clears the tables runs."
        self.told = RecentKeys(settings.memory)
        "Events our own people were told of: one may come on several channels."

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        # The order of how often they come; most are duplicates, or not for us.
        if type(packet) is Data:
            if not self.heard.add((packet.channel, packet.event.id)):
                return NOTHING
            self.on_data(packet, now)
        elif type(packet) is JoinRequest:
            if not self.heard.add((packet.source, packet.channel, packet.sequence)):
                return NOTHING
            self.on_join_request(packet, sender, now)
        elif type(packet) is JoinTable and self.node in packet.next_hops.values():
            self.on_join_table(packet, now)
        else:
            return NOTHING
        return self.effects()

    # What applications do.

    def start(self, now: float) -> Effects:
        # Numbers go on rising through a restart, so that nobody takes new requests for old ones.
        self.sequence = int(now * 1000)
        return NOTHING

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.unsubscribe(subscription.id, now)
        self.subscriptions.add(subscription)
        self.joined.update(self.settings.channels_for(subscription.filter))
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        known = self.subscriptions.remove(subscription)
        if known is not None:
            self.joined -= Counter(self.settings.channels_for(known.filter))
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        """On each of its channels: with a Join Request where one is due, else over the mesh."""
        self.told.add(event.id)
        for channel in self.settings.channels_of(event):
            self.heard.add((channel, event.id))
            requested_at = self.requested_at.get(channel)
            if requested_at is None or now - requested_at >= self.settings.refresh_interval_s:
                self.sequence += 1
                self.requested_at[channel] = now
                self.heard.add((self.node, channel, self.sequence))
                self.broadcast(JoinRequest(self.node, channel, self.sequence, 1, event))
            else:
                self.broadcast(Data(channel, event, 1))
        return self.effects()

    # What packets bring.

    def on_join_request(self, request: JoinRequest, sender: str, now: float) -> None:
        """Remember the way back, pass the request on, answer it where we are a member."""
        key = (request.source, request.channel)
        if self.routes.put(key, Route(sender, request.sequence), now + self.settings.forwarding_timeout_s):
            self.drop(DropReason.TOO_MANY_SOURCES)
        self._forget_later(now)
        if request.event is not None:
            self.heard.add((request.channel, request.event.id))
            self._tell(request.event, request.hops, now)
        if request.hops < self.settings.hop_limit:
            hops = request.hops + 1
            self.soon.send(JoinRequest(*key, request.sequence, hops, request.event), now)
        else:
            self.drop(DropReason.HOP_LIMIT, request.event.id if request.event else "")
        if request.channel in self.joined:
            self._answer(request.channel, [request.source], now)

    def on_join_table(self, table: JoinTable, now: float) -> None:
        """Whoever is named is a forwarding node from now on, and names the next."""
        named = sorted(source for source, next_hop in table.next_hops.items() if next_hop == self.node)
        until = now + self.settings.forwarding_timeout_s
        if not 0 <= table.channel <= len(self.settings.channels):
            self.drop(DropReason.UNKNOWN_CHANNEL)
            return
        onwards = []
        for source in named:
            if self.routes.holds((source, table.channel), now):
                self.flags.put(table.channel, True, until)
                onwards.append(source)
            elif source != self.node:
                self.drop(DropReason.UNKNOWN_SOURCE)
        self._answer(table.channel, onwards, now)

    def _answer(self, channel: int, sources: list[str], now: float) -> None:
        """A Join Table for those sources whose present request has not been answered yet."""
        next_hops = {}
        for source in sources:
            route = self.routes.get((source, channel), now)
            if route is not None and self.heard.add((source, channel, route.sequence, "answered")):
                next_hops[source] = route.upstream
        if next_hops:
            self.soon.send(JoinTable(channel, next_hops), now)

    def on_data(self, data: Data, now: float) -> None:
        """Tell our own people; pass it on where the forwarding flag of its channel stands."""
        if not self._tell(data.event, data.hops, now) or not self.flags.holds(data.channel, now):
            return
        if data.hops < self.settings.hop_limit:
            self.soon.send(Data(data.channel, data.event, data.hops + 1), now)
        else:
            self.drop(DropReason.HOP_LIMIT, data.event.id)

    def _tell(self, event: Event, hops: int, now: float) -> bool:
        """Deliver the event where it is wanted; False where it is too old to go on."""
        if has_expired(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return False
        if self.told.add(event.id):
            self.subscriptions.deliver_local(self, event, hops, now)
        return True

    # Forgetting.

    def _forget_later(self, now: float) -> None:
        if not self.forgetting:
            self.forgetting = True
            self.start_timer("forget", at=now + self.settings.forwarding_timeout_s)

    def wake(self, timer: Timer, now: float) -> Effects:
        """Send what has waited; let go what was not refreshed."""
        if timer != "forget":
            self.soon.wake(timer)
            return self.effects()
        self.routes.forget(now)
        self.flags.forget(now)
        first_end = min(self.routes.first_end, self.flags.first_end)
        self.forgetting = first_end < float("inf")
        if self.forgetting:
            self.start_timer("forget", at=first_end)
        return self.effects()
