"""A broker's work (section V): registrations, matching, notification, and contacts with other brokers.

A broker exists while its node has that role. Its methods return actions for the machine to carry out:
effects, and packets to route.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from msgspec import structs

from earshot.events import Event
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.drip import packets
from earshot.protocols.drip.packets import DripSettings, RoutedPacket, SubscriberRecord
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import EventMemory, HeldEvent, Sharing
from earshot.protocols.drip.subscribers import Subscriber, Subscribers
from earshot.protocols.machine import Broadcast, Drop, Effect, Note, StartTimer
from earshot.records import DropReason

IDLE_S = 1.0
"A broker with nothing to send looks for reachable brokers this often."

Action = Effect | RoutedPacket | packets.RegionCopy
"An effect, or a packet that the machine routes."


@dataclass(slots=True)
class PeerUpdates:
    """What another broker has received of this broker's subscriber updates."""

    offered_at: float = -math.inf
    offered_version: int = -1
    offered: tuple[tuple[str, float], ...] = ()
    "The subscriptions in the last updates: (subscriber, since when)."
    confirmed_version: int = 0
    confirmed: set[tuple[str, float]] = field(default_factory=set)


class Broker:
    """What only brokers do."""

    def __init__(
        self, node: str, settings: DripSettings, regions: Regions, sharing: Sharing, brokered: RecentKeys, now: float
    ) -> None:
        self.node = node
        self.settings = settings
        self.regions = regions
        self.sharing = sharing
        self.brokered = brokered
        "Events that this node has held as a broker, now or earlier."
        self.subscribers = Subscribers(node, settings.memory, 6 * settings.register_interval_s, regions.budgets)
        self.events = EventMemory(settings.memory_events)
        self.bridges: SoftTable[str, str] = SoftTable(settings.memory, regions.budgets)
        "For each broker the bridge that reported last."
        self.next_contact = now
        self.unconfirmed: set[tuple[str, str]] = set()
        "What the last contact sent and is not confirmed: (broker, event); subscriber updates have no event."
        self.is_confirmed = False
        "Whether all that the last contact sent is confirmed."
        self.peers: dict[str, PeerUpdates] = {}
        self.signs_of_life: dict[str, float] = {}
        "For each broker the latest announcement that is known."
        self.reachable: set[str] = set()

    def receive(self, packet: RoutedPacket, now: float) -> list[Action]:
        match packet:
            case packets.Registration():
                return self.on_registration(packet, now)
            case packets.Quit():
                return self.on_quit(packet)
            case packets.PublishedEvent():
                return self.on_published(packet, now)
            case packets.BridgeReport():
                return self.on_bridge_report(packet, now)
            case packets.EventCopy():
                return self.on_copy(packet, now)
            case packets.Confirmation():
                return self.on_confirmation(packet, now)
            case packets.Exchange():
                return self.on_exchange(packet, now)
        return []

    # Section V.A.1: subscriptions.

    def on_registration(self, registration: packets.Registration, now: float) -> list[Action]:
        origin = registration.origin
        if isinstance(registration, packets.PlacedRegistration) and not registration.is_possible:
            return []
        known = self.subscribers.table.get(origin)
        was_here = known is not None and known.record.broker == self.node
        stamp, since, nearest = registration.stamp, registration.since, registration.nearest
        record = SubscriberRecord(origin, stamp, self.node, nearest, registration.subscriptions, since)
        subscriber = self.subscribers.learn(record, now)
        if subscriber is None:
            return []
        if isinstance(registration, packets.PlacedRegistration):
            subscriber.position = registration.position
            subscriber.renew_s = self.settings.register_after_s(registration.legs)
        missed = [] if was_here or origin == self.node else self._missed(subscriber, registration.known, now)
        return [*missed, self.contact_timer(now)]

    def _missed(self, subscriber: Subscriber, known: tuple[str, ...], now: float) -> list[Action]:
        """Section V.B.2: a subscriber has come into the region and gets the events that waited for it here."""
        margin_m = self.settings.place_margin_m
        return [
            packets.Notice(self.node, subscriber.record.subscriber, "", 1, held.event, held.hops + 1)
            for held in self.events.held.values()
            if held.event.id not in known and held.until > now and subscriber.could_want(held.event)
            if subscriber.may_be_near(held.event, margin_m)
        ]

    def on_quit(self, quit: packets.Quit) -> list[Action]:
        return [Note("quit", quit.origin)] if self.subscribers.quit(quit.origin, quit.stamp) else []

    def expire_subscribers(self, now: float) -> list[Action]:
        """Remove the registrations that have not been renewed for three intervals."""
        silent = self.subscribers.expire(now, 3 * self.settings.register_interval_s)
        return [Note("silent", name) for name in silent]

    # Sections V.A.2 and V.A.3: publication and notification.

    def on_published(self, packet: packets.PublishedEvent, now: float) -> list[Action]:
        """An event has come from its publisher: match it, notify the region, share it with other brokers."""
        event = packet.event
        if event.id in self.events.held:
            return []
        held, actions = self._hold(event, packet.hops - 1, now)
        if held is None:
            return actions
        held.at_source = True
        matching = self.subscribers.matching(event)
        elsewhere = [one for one in matching if one.record.broker != self.node and one.record.subscriptions]
        self.sharing.at_source(held, elsewhere, self.node)
        actions += [
            Note("wanted", f"{event.id} by {one.record.subscriber} near {' '.join(one.record.nearest)}")
            for one in elsewhere
        ]
        return [*actions, *self._notify(held, matching), self.contact_timer(now)]

    def on_copy(self, copy: packets.EventCopy, now: float) -> list[Action]:
        """Section V.B.2: a copy from another broker."""
        event = copy.event
        actions: list[Action] = [packets.Confirmation(self.node, copy.origin, "", 1, event.id)]
        held = self.events.held.get(event.id)
        if held is None:
            if event.id in self.brokered:
                return actions  # it was here and has been removed since
            held, kept = self._hold(event, copy.hops, now)
            actions += kept
            if held is None:
                return actions
            actions += self._notify(held, self.subscribers.matching(event))
        self.sharing.at_receiver(held, copy, self.node)
        return [*actions, self.contact_timer(now)]

    def _hold(self, event: Event, hops: int, now: float) -> tuple[HeldEvent | None, list[Action]]:
        """Keep an event in memory, and give it to this node's own subscriptions."""
        until = self.settings.end_of_life(event)
        if not now < until:
            return None, [Drop(DropReason.EXPIRED, event.id)]
        self.brokered.add(event.id)
        held = HeldEvent(event, until, self.subscribers.relation(event), hops)
        removed = self.events.add(held)
        return held, [
            Note("copy", event.id),
            *(Drop(DropReason.BROKER_MEMORY, other.event.id) for other in removed),
            packets.Notice(self.node, self.node, "", 1, event, hops),
        ]

    def _notify(self, held: HeldEvent, matching: list[Subscriber]) -> list[Action]:
        """Section V.A.3: flood the event in the region if a subscriber there wants it."""
        others = [one for one in matching if one.record.broker == self.node and one.record.subscriber != self.node]
        margin_m = self.settings.place_margin_m
        if held.flooded or not any(one.may_be_near(held.event, margin_m) for one in others):
            return []
        held.flooded = True
        return [Broadcast(packets.InRegion(held.event, held.hops + 1, self.node))]

    # Section V.B.1: which brokers this broker can reach.

    def on_bridge_report(self, report: packets.BridgeReport, now: float) -> list[Action]:
        if report.other != self.node:
            self.bridges.put(report.other, report.origin, now + 1.5 * self.settings.bridge_interval_s)
        return []

    def _bridge_to(self, broker: str, now: float) -> str:
        """The bridge to take to a broker; empty if the broker is a neighbour."""
        if self.regions.is_neighbouring_broker(broker):
            return ""
        return self.bridges.get(broker, now) or ""

    def _look_for_peers(self, now: float) -> tuple[list[str], list[Action]]:
        """The brokers that can be reached, the nearest first; with notes of what has changed."""
        found = {other for other, _ in self.bridges.items(now)} | self.regions.neighbouring_brokers()
        if self.settings.announced_to == "all":
            found |= self.regions.brokers.keys()
        found.discard(self.node)
        changes: list[Action] = [
            Note("meets" if broker in found else "parts", broker) for broker in sorted(found ^ self.reachable)
        ]
        self.reachable = found
        rank = {nearby.broker: place for place, nearby in enumerate(self.regions.ordered())}
        return sorted(found, key=lambda broker: (rank.get(broker, len(rank)), broker)), changes

    # Sections V.B.2 and V.C: contacts, one broker at a time.

    def contact_timer(self, now: float) -> StartTimer:
        """The next contact: now, if the last one is long enough ago."""
        return StartTimer("contact", max(now, self.next_contact))

    def contact(self, now: float) -> list[Action]:
        """Contact one broker: one that the oldest event is due to, or one that lacks subscriber updates."""
        actions: list[Action] = [
            Drop(DropReason.EXPIRED_WITH_DESTINATIONS_LEFT, held.event.id)
            for held in self.events.expire(now)
            if held.destinations and not self.sharing.is_done(held)
        ]
        self.bridges.forget(now)
        peers, changes = self._look_for_peers(now)
        sent = self._hand_over(peers, now) or self._exchange(peers, now)
        interval_s = self.settings.contact_interval_s
        if sent or not self.is_confirmed:
            self.next_contact = now + interval_s
        again_at = self.next_contact if sent else now + max(IDLE_S, interval_s)
        return [*actions, *changes, *sent, StartTimer("contact", again_at)]

    def _hand_over(self, peers: list[str], now: float) -> list[Action]:
        """Copies of the events that are due to one broker, as many as one contact carries."""
        peer, due = self._due(peers, now)
        copies: list[Action] = []
        for held in due:
            carry = self.sharing.carries(held, peer, now)
            held.send_to(peer, carry, now, self.settings.taken_wait_s)
            bridge = self._bridge_to(peer, now)
            copies.append(
                packets.EventCopy(self.node, peer, bridge, 1, held.event, held.hops + 1, held.destinations, carry)
            )
        if copies:
            self._await_confirmation(peer, [held.event.id for held in due])
        return copies

    def _due(self, peers: list[str], now: float) -> tuple[str, list[HeldEvent]]:
        """The nearest broker that the oldest event is due to, and the events due there."""
        chosen = ""
        due: list[HeldEvent] = []
        for held in self.events.held.values():
            if self.sharing.is_done(held):
                continue
            for peer in [chosen] if chosen else peers:
                if self.sharing.is_due(held, peer, now):
                    chosen = peer
                    due.append(held)
                    break
            if len(due) == self.settings.contact_events:
                break
        return chosen, due

    def on_confirmation(self, confirmation: packets.Confirmation, now: float) -> list[Action]:
        """A broker has what was sent to it: a copy, or subscriber updates."""
        if confirmation.event_id:
            if held := self.events.held.get(confirmation.event_id):
                held.confirm(confirmation.origin)
            return self._end_contact(confirmation.origin, confirmation.event_id, now)
        peer = self.peers.get(confirmation.origin)
        if peer is not None and confirmation.version == peer.offered_version:
            peer.confirmed_version = peer.offered_version
            peer.confirmed.update(peer.offered)
        return self._end_contact(confirmation.origin, "", now)

    def _await_confirmation(self, peer: str, events: list[str]) -> None:
        self.unconfirmed, self.is_confirmed = {(peer, event) for event in events}, False

    def _end_contact(self, peer: str, event: str, now: float) -> list[Action]:
        """Something is confirmed: if it is the last of what the contact sent, the next contact may begin."""
        if (peer, event) not in self.unconfirmed:
            return []
        self.unconfirmed.remove((peer, event))
        if self.unconfirmed or not self.settings.contact_confirmed:
            return []
        self.is_confirmed, self.next_contact = True, now
        return [self.contact_timer(now)]

    def _exchange(self, peers: list[str], now: float) -> list[Action]:
        """Section V.B.2: subscriber updates for one broker, and when other brokers were last heard."""
        settings = self.settings
        limit = settings.contact_records if self.sharing.shares_subscriptions else 0
        for offered_at, name in sorted((self.peers.get(name, PeerUpdates()).offered_at, name) for name in peers):
            if now - offered_at < settings.exchange_interval_s:
                break
            peer = self.peers.setdefault(name, PeerUpdates())
            updates = self.subscribers.updates_for(name, peer.confirmed_version, limit)
            if not updates and now - offered_at < settings.announce_interval_s:
                continue
            records = [one.shared for one in updates if one.shared is not None]
            peer.offered_at = now
            peer.offered_version = updates[-1].version if len(updates) == limit > 0 else self.subscribers.version
            peer.offered = tuple((one.subscriber, one.since) for one in records)
            self._await_confirmation(name, [""])
            return [self._exchange_packet(name, records, now)]
        return []

    def _exchange_packet(self, name: str, records: list[SubscriberRecord], now: float) -> packets.Exchange:
        """Subscriptions that the other broker has confirmed are left out."""
        peer, recent = self.peers[name], self.settings.replace_after_s
        brokers = {broker: at for broker, at in sorted(self.signs_of_life.items()) if now - at < recent}
        offered = tuple(
            structs.replace(one, subscriptions=None) if (one.subscriber, one.since) in peer.confirmed else one
            for one in records
        )
        held = () if self.sharing.shares_subscriptions else tuple(self.events.held)
        addressed = (self.node, name, self._bridge_to(name, now), 1)
        return packets.Exchange(*addressed, peer.offered_version, offered, {**brokers, self.node: now}, held)

    def on_exchange(self, exchange: packets.Exchange, now: float) -> list[Action]:
        """Section V.B.2: what another broker knows."""
        for broker, at in exchange.brokers.items():
            self.on_sign_of_life(broker, at, now)
        for record in exchange.records:
            is_new = record.subscriber not in self.subscribers.table
            subscriber = self.subscribers.learn(record, now, exchange.origin)
            if is_new and subscriber is not None and record.broker != self.node:
                # A subscriber that was unknown until now may want events that are already here.
                for held in self.events.held.values():
                    if held.at_source and subscriber.could_want(held.event):
                        self.sharing.at_source(held, [subscriber], self.node)
        for event in exchange.held:
            if known := self.events.held.get(event):
                known.holders.add(exchange.origin)
        return [packets.Confirmation(self.node, exchange.origin, "", 1, "", exchange.version), self.contact_timer(now)]

    def on_sign_of_life(self, broker: str, sent_at: float, now: float) -> None:
        """Another broker's announcement, heard or reported. Times in the future are ignored."""
        signs = self.signs_of_life
        if not signs.get(broker, -math.inf) < sent_at <= now + self.settings.announce_interval_s:
            return
        if broker in signs or len(signs) < self.regions.budgets.names(self.settings.memory):
            signs[broker] = sent_at

    def unfinished(self) -> list[HeldEvent]:
        """The events that this broker has yet to share."""
        return [held for held in self.events.held.values() if held.destinations and not self.sharing.is_done(held)]
