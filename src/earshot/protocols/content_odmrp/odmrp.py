"""ODMRP, by C. Chiang, M. Gerla and S. Lee (WCNC 1999): a mesh of forwarding nodes, made on demand.

A source floods Join Requests while it has something to send; each node learns its route back to the
source from them. Members answer with Join Tables that name the next node on that route; a node that is
named becomes a forwarding node and names the next. Data goes from forwarding node to forwarding
node. All of it is soft state (`forwarding_mesh.py`): no node leaves explicitly.

Without `channels` there is one well-known channel and every broker filters for itself; with them,
one channel per predefined filter, as section IV.A compares. Departures: docs/papers/content-odmrp.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from random import Random

from earshot.errors import FilterSyntaxError, SettingsError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.content_odmrp.forwarding_mesh import ForwardingMesh, MeshSettings, RouteBack, mesh_tuning
from earshot.protocols.machine import NOTHING, QUIET_CHANNEL, Channel, Effects, Location, Machine, Timer
from earshot.protocols.tuning import Surroundings, Tunable
from earshot.records import DropReason
from earshot.wire import Packet, Whole, Word

REST = 0
"The channel of events that match no predefined channel; without predefined channels, the only one."


@dataclass(frozen=True)
class OdmrpSettings(MeshSettings):
    channels: tuple[str, ...] = ()
    "A filter for each predefined channel; none: one channel for everything."

    def __post_init__(self) -> None:
        MeshSettings.__post_init__(self)
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
        """The channels a subscriber joins: one that covers its filter, or all of them."""
        covering = [number for number, channel in enumerate(self.filters, 1) if channel.covers(filter)]
        return covering[:1] or list(range(len(self.filters) + 1))


class JoinRequest(Packet, frozen=True, tag="odmrp-join-request"):
    """Floods from a source that has something to send; carries the event that caused it."""

    source: Word
    channel: Whole
    sequence: Whole
    hops: Whole
    event: Event | None = None


class JoinTable(Packet, frozen=True, tag="odmrp-join-table"):
    """From members and forwarding nodes: for each source, the next node on the route to it."""

    channel: Whole
    next_hops: dict[Word, Word]


class Data(Packet, frozen=True, tag="odmrp-data"):
    """An event on its way through the mesh; `hops` counts the transmissions, this one included."""

    channel: Whole
    event: Event
    hops: Whole


class Odmrp(Machine):
    name = "odmrp"
    paper = "Chiang, Gerla, Lee: On-Demand Multicast Routing Protocol (WCNC 1999)"
    Settings = OdmrpSettings

    def __init__(
        self, node: str, settings: OdmrpSettings, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.settings: OdmrpSettings = settings
        self.mesh: ForwardingMesh[tuple[str, int], RouteBack, int] = ForwardingMesh(
            settings, random, self.budgets, routes_limit=settings.memory, flags_limit=len(settings.channels) + 1
        )
        "Routes by source and channel, flags by channel."
        self.subscriptions = LocalSubscriptions()
        self.joined: Counter[int] = Counter()
        "How many local subscriptions need each channel."
        self.requested_at: dict[int, float] = {}
        "When this source last flooded a Join Request, by channel."
        self.delivered = RecentKeys(settings.memory, self.budgets)
        "Events that local subscribers have got: an event may come on several channels."

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        return mesh_tuning(around, {"forwarding_timeout_s": 5.0})

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        # Ordered by how often they come; most are duplicates, or for other nodes.
        if type(packet) is Data:
            if not self.mesh.heard.add((packet.channel, packet.event.id)):
                return NOTHING
            self.on_data(packet, now)
        elif type(packet) is JoinRequest:
            if not self.mesh.heard.add((packet.source, packet.channel, packet.sequence)):
                return NOTHING
            self.on_join_request(packet, sender, now)
        elif type(packet) is JoinTable and self.node in packet.next_hops.values():
            self.on_join_table(packet, now)
        else:
            return NOTHING
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        if timer == "forget":
            self._effects += self.mesh.expire(now)
        else:
            self._effects += self.mesh.jittered.wake(timer)
        return self.effects()

    # What applications do.

    def start(self, now: float) -> Effects:
        self.mesh.start(now)
        return NOTHING

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.unsubscribe(subscription.id, now)
        self.subscriptions.add(subscription, now)
        self.joined.update(self.settings.channels_for(subscription.filter))
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        known = self.subscriptions.remove(subscription)
        if known is not None:
            self.joined -= Counter(self.settings.channels_for(known.filter))
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        """On each of its channels: with a Join Request where one is due, otherwise over the mesh."""
        self.delivered.add(event.id)
        for channel in self.settings.channels_of(event):
            self.mesh.heard.add((channel, event.id))
            requested_at = self.requested_at.get(channel)
            if requested_at is None or now - requested_at >= self.settings.refresh_interval_s:
                self.send_join_request(channel, event, now)
            else:
                self.broadcast(Data(channel, event, 1))
        return self.effects()

    def send_join_request(self, channel: int, event: Event, now: float) -> None:
        self.requested_at[channel] = now
        self.mesh.sequence += 1
        self.mesh.heard.add((self.node, channel, self.mesh.sequence))
        self.broadcast(JoinRequest(self.node, channel, self.mesh.sequence, 1, event))

    # What packets bring.

    def on_join_request(self, request: JoinRequest, sender: str, now: float) -> None:
        """Remember the route back, pass the request on, answer it where this node is a member."""
        source, channel, event = request.source, request.channel, request.event
        self._effects += self.mesh.keep_route((source, channel), RouteBack(sender, request.sequence), now)
        if event is not None:
            self.mesh.heard.add((channel, event.id))
            self.deliver_once(event, request.hops, now)
        onward = JoinRequest(source, channel, request.sequence, request.hops + 1, event)
        self._effects.append(self.mesh.pass_on(onward, request.hops, event, now))
        if channel in self.joined:
            self.send_join_table(channel, [source], now)

    def on_join_table(self, table: JoinTable, now: float) -> None:
        """A node that is named becomes a forwarding node, and names the next."""
        if not 0 <= table.channel <= len(self.settings.channels):
            self.drop(DropReason.UNKNOWN_CHANNEL)
            return
        onward = []
        for source in sorted(source for source, next_hop in table.next_hops.items() if next_hop == self.node):
            if self.mesh.routes.holds((source, table.channel), now):
                self.mesh.flags.put(table.channel, True, self.mesh.until(now))
                onward.append(source)
            elif source != self.node:
                self.drop(DropReason.UNKNOWN_SOURCE)
        self.send_join_table(table.channel, onward, now)

    def send_join_table(self, channel: int, sources: list[str], now: float) -> None:
        """A Join Table for those sources whose latest request has not been answered yet."""
        next_hops = {}
        for source in sources:
            route = self.mesh.routes.get((source, channel), now)
            if route is not None and self.mesh.heard.add((source, channel, route.sequence, "answered")):
                next_hops[source] = route.upstream
        if next_hops:
            self._effects.append(self.mesh.jittered.send(JoinTable(channel, next_hops), now))

    def on_data(self, data: Data, now: float) -> None:
        """Deliver to local subscribers; pass on while the channel's forwarding flag is set."""
        if self.deliver_once(data.event, data.hops, now) and self.mesh.flags.holds(data.channel, now):
            onward = Data(data.channel, data.event, data.hops + 1)
            self._effects.append(self.mesh.pass_on(onward, data.hops, data.event, now))

    def deliver_once(self, event: Event, hops: int, now: float) -> bool:
        """To local subscribers, on whichever channel it comes first; False where it is too old to go on."""
        if has_expired(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return False
        if self.delivered.add(event.id):
            self.subscriptions.deliver_local(self, event, hops, now)
        return True
