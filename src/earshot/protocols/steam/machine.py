"""STEAM, by R. Meier and V. Cahill (IEEE Transactions on Software Engineering, 2010): events for whoever is near.

A producer announces an event type with a proximity and beacons the pair inside it; consumers subscribe
to types, never to places, and are members of a group exactly while they stand in a proximity of a type
they want. Events go to the group in one hop where the producer's radio covers the proximity, and are
passed on by members where it does not. Readings and departures: docs/papers/steam.md.
"""

from __future__ import annotations

import math
from random import Random

import msgspec

from earshot.errors import ContentMismatch, UnknownName
from earshot.events import Event
from earshot.filters import Subscription
from earshot.geometry import Position
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.common.wanted_types import WantedTypes, could_match
from earshot.protocols.machine import NOTHING, Announcement, Effects, Location, Machine, Timer
from earshot.protocols.steam.announcements import Announcements
from earshot.protocols.steam.missed_events import MissedEvents
from earshot.protocols.steam.position_history import Trail
from earshot.protocols.steam.proximity_discovery import Beacon, ProximityDiscovery
from earshot.protocols.steam.relevant_proximities import MAX_NAME, Key, Relevant
from earshot.protocols.steam.settings import MOST_ASKED, SteamSettings
from earshot.records import DropReason
from earshot.wire import Packet


class Raised(Packet, frozen=True, array_like=True, tag="steam-event"):
    """An event, to the members of its group; `hops` counts the transmissions, this one included."""

    event: Event
    group: int
    epoch: float
    sequence: int
    multi_hop: bool
    hops: int = 1


class Request(Packet, frozen=True, array_like=True, tag="steam-request"):
    """A consumer asks a producer for events it missed. The route is who passed it on, the consumer first."""

    producer: str
    subject: str
    epoch: float
    sequences: tuple[int, ...]
    since: float
    route: tuple[str, ...]


class Recovered(Packet, frozen=True, array_like=True, tag="steam-recovered"):
    """A missed event on its way back along the route; `oldest` is the first the producer had to give."""

    event: Event
    epoch: float
    sequence: int
    oldest: int
    route: tuple[str, ...]
    hops: int = 1


class Steam(Machine):
    name = "steam"
    paper = "Meier and Cahill, On Event-Based Middleware for Location-Aware Mobile Applications, IEEE TSE 2010"
    Settings = SteamSettings

    def __init__(self, node: str, settings: SteamSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: SteamSettings = settings
        self.announcements = Announcements(node, settings.announcement_limit, settings.cache_size)
        self.subscriptions = LocalSubscriptions()
        self.subscribed_at: dict[str, float] = {}
        self.wanted_types = WantedTypes()
        self.discovery = ProximityDiscovery(self, self, self.announcements, settings)
        self.relevant = self.discovery.relevant
        looks = min(1024, math.ceil(settings.lifespan_s / settings.beacon_interval_s) * 2 + 2)
        self.trail = Trail(looks, spacing_s=settings.beacon_interval_s / 2)
        self.missed = MissedEvents(
            settings.cache_size, settings.proximity_limit, settings.lifespan_s, self.trail, self.look
        )
        self.recovering: set[Key] = set()
        self.seen = RecentKeys(settings.seen_limit)
        self.answered = RecentKeys(settings.seen_limit)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case Raised():
                if packet.event.id in self.seen.keys:
                    return NOTHING
                self.on_event(packet, now)
            case Beacon():
                self.discovery.on_beacon(packet, sender, now)
            case Request():
                self.on_request(packet, now)
            case Recovered():
                self.on_recovered(packet, now)
            case _:
                return NOTHING
        return self.effects() if self._effects else NOTHING

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case "round":
                self.on_round(now)
            case "onward":
                self.discovery.send_onward()
            case ("recover", str(producer), str(subject)):
                self.recover((producer, subject), now)
        return self.effects()

    # Announcing and raising: the producer, sections 3.2 and 4.3.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """Section 3.2: the pair of event type and proximity stands until it is unannounced, wherever we go."""
        position = self.location.position(now)
        announced = self.announcements.add(announcement, position, now)
        self.discovery.advertise([announced], position, now)
        self.discovery.run_rounds(now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        """No more beacons: the others forget it after `expiry_s`."""
        self.announcements.remove(subject)
        if (entry := self.relevant.by_key.get((self.node, subject))) is not None:
            self.discovery.forget(entry)
        return self.effects()

    def publish(self, event: Event, now: float) -> Effects:
        """Raise, section 4.1: to the group, in one hop or passed on by its members, section 4.3."""
        position = self.location.position(now)
        announced, event = self.announcements.for_raising(event, position)
        if announced.out_of_reach(position, self.settings.range_m):
            self.drop(DropReason.PRODUCER_OUTSIDE_PROXIMITY, event.id)
            return self.effects()
        announced.raised_at = now
        sequence = announced.cache.add(event)
        multi_hop = announced.multi_hop(position, self.settings.range_m)
        self.seen.add(event.id)
        self.broadcast(Raised(event, announced.group, announced.epoch, sequence, multi_hop), announced.group)
        return self.effects()

    # Subscribing and delivering: the consumer, sections 3.3 and 3.4.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """Section 3.2: to a type, at all places; the groups of the proximities we stand in are joined at once."""
        if subscription.id in self.subscriptions.by_id:
            self.withdraw(subscription.id)
        self.subscriptions.add(subscription)
        self.subscribed_at[subscription.id] = now
        self.wanted_types.add(subscription.id, subscription.filter)
        for entry in self.entries_for(subscription):
            if not entry.wanted and could_match(subscription.filter, entry.advert.subject):
                self.discovery.join(entry)
                self.missed.follow(entry)
        self.look(now)
        self.discovery.run_rounds(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        if subscription not in self.subscriptions.by_id:
            raise UnknownName("subscription", subscription, self.subscriptions.by_id)
        self.withdraw(subscription)
        return self.effects()

    def withdraw(self, subscription_id: str) -> None:
        subscription = self.subscriptions.by_id[subscription_id]
        self.subscriptions.remove(subscription_id)
        del self.subscribed_at[subscription_id]
        self.wanted_types.remove(subscription_id, subscription.filter)
        for entry in self.entries_for(subscription):
            if entry.wanted and entry.advert.subject not in self.wanted_types:
                self.missed.forget(entry.key)
                self.discovery.leave(entry)

    def entries_for(self, subscription: Subscription) -> list[Relevant]:
        """The listed proximities whose type this subscription could be about."""
        subject = subscription.filter.type
        found = self.relevant.by_key if subject is None else self.relevant.by_subject.get(subject, {})
        return list(found.values())

    def on_event(self, raised: Raised, now: float) -> None:
        """Figure 4: a member delivers, and passes on what goes beyond the producer's own range."""
        event = raised.event
        entry = self.entry_of(raised)
        if entry is None:
            return
        if reason := self.unfit(event, now):
            self.drop(reason, event.id[:MAX_NAME])
            return
        if self.missed.heard((event.source, event.type), raised.epoch, raised.sequence):
            self.recover_later(entry, now, self.settings.recovery_delay_s)
        viewer = self.viewer(now)
        if not entry.was_raised_around(event, viewer.position):
            self.drop(DropReason.OUTSIDE_PROXIMITY, event.id)
            return
        self.seen.add(event.id)
        typed = self.type_checked(entry, event)
        if typed is None:
            return
        for subscription in self.subscriptions.accepting(typed, viewer):
            self.deliver(typed, subscription, raised.hops)
        if raised.multi_hop and self.chooses_to_forward(event, viewer.position):
            if raised.hops < self.settings.hop_limit:
                self.broadcast(msgspec.structs.replace(raised, hops=raised.hops + 1), raised.group)
            else:
                self.drop(DropReason.HOP_LIMIT, event.id)

    def entry_of(self, raised: Raised) -> Relevant | None:
        """Section 4.4: the run-time type check. Texts that share an identifier share a group; what is
        not of a type this member joined for is discarded."""
        members = self.relevant.groups.get(raised.group)
        if members is None:
            self.drop(DropReason.NOT_A_GROUP_MEMBER, raised.event.id)
            return None
        entry = members.get((raised.event.source, raised.event.type))
        if entry is None:
            entry = next((one for one in members.values() if one.advert.subject == raised.event.type), None)
        if entry is None:
            self.drop(DropReason.GROUP_ID_COLLISION, raised.event.id)
        return entry

    def type_checked(self, entry: Relevant, event: Event) -> Event | None:
        """The event with its values as the announced type has them."""
        if not entry.event_type.content:
            return event
        try:
            return entry.event_type.read(event)
        except ContentMismatch:
            self.drop(DropReason.CONTENT_DIFFERS_FROM_TYPE, event.id)
            return None

    def chooses_to_forward(self, event: Event, position: Position) -> bool:
        """Section 5.4.1, G(d, p): beyond the distance d from the producer only with probability p."""
        if self.settings.forwarding == "flood" or event.position is None:
            return True
        if event.position.distance_to(position) <= self.settings.gossip_distance_m:
            return True
        return self.random.random() < self.settings.gossip_probability

    def unfit(self, event: Event, now: float) -> DropReason | None:
        """Why an event is not worth a look; None where it is."""
        if len(event.id) > MAX_NAME:
            return DropReason.EVENT_ID_TOO_LONG
        return DropReason.EXPIRED if has_expired(event, self.settings.lifespan_s, now) else None

    # Discovering proximities: section 4.5, `protocols/steam/proximity_discovery.py`.

    def start(self, now: float) -> Effects:
        self.recovering.clear()
        self.discovery.start(now, needed=bool(self.subscriptions.by_id))
        return self.effects()

    def stop(self, now: float) -> Effects:
        self.discovery.stop()
        return self.effects()

    def on_round(self, now: float) -> None:
        """Section 4.5.2, and what else is due each period: where we are, and what is too old to recover."""
        position = self.look(now)
        for announced in self.announcements.by_subject.values():
            announced.cache.let_go(lambda event: has_expired(event, self.settings.lifespan_s, now))
        self.discovery.on_round(position, now, needed=bool(self.subscriptions.by_id))

    def look(self, now: float) -> Position:
        """Where we are, kept on the trail while somebody here consumes."""
        position = self.location.position(now)
        if self.subscriptions.by_id:
            self.trail.add(now, position, self.location.velocity(now))
        return position

    def wants(self, subject: str) -> bool:
        return subject in self.wanted_types

    def discovered(self, entry: Relevant, now: float) -> None:
        """What was raised since we came in, before we knew of it or while we were cut off, is missed."""
        if entry.via != self.node and self.missed.catch_up(entry, now):
            self.recover_later(entry, now, patience_s=0.0)

    def heard_from(self, entry: Relevant, now: float) -> None:
        if self.missed.told(entry, now):
            self.recover_later(entry, now, self.settings.recovery_delay_s)

    def lost(self, entry: Relevant, gone_silent: bool) -> None:
        """Who leaves a proximity misses nothing that is raised there after; who merely stopped hearing its
        beacons may."""
        if not gone_silent:
            self.missed.forget(entry.key)

    # Recovering missed events: section 4.3.

    def recover_later(self, entry: Relevant, now: float, patience_s: float) -> None:
        """Ask for what is missing, once it cannot be mere disorder, and not all of us at once."""
        if entry.key not in self.recovering:
            self.recovering.add(entry.key)
            spread_s = self.settings.recovery_delay_s * self.random.random()
            self.start_timer(("recover", *entry.key), now + patience_s + spread_s)

    def recover(self, key: Key, now: float) -> None:
        """Send the request towards the producer, and again after a beacon's period while something is missing."""
        self.recovering.discard(key)
        entry = self.relevant.by_key.get(key)
        if entry is None or not entry.wanted:
            return
        wanted, given_up = self.missed.ask(key, self.settings.recovery_attempts)
        for _ in given_up:
            self.drop(DropReason.MISSED_NOT_RECOVERED)
        if not wanted:
            return
        since = self.missed.owed_since(entry, now)
        self.send(entry.via, Request(*key, entry.advert.epoch, tuple(wanted), since, (self.node,)))
        self.recovering.add(key)
        self.start_timer(("recover", *key), now + self.settings.beacon_interval_s)

    def on_request(self, request: Request, now: float) -> None:
        """Pass a consumer's request on towards the producer, or answer it."""
        if not 1 <= len(request.route) <= self.settings.hop_limit or self.node in request.route:
            self.drop(DropReason.REQUEST_MISROUTED)
        elif len(request.sequences) > MOST_ASKED or len(request.route[0]) > MAX_NAME:
            self.drop(DropReason.REQUEST_TOO_LARGE)
        elif request.producer == self.node:
            self.answer(request, now)
        elif (entry := self.relevant.by_key.get((request.producer, request.subject))) is None:
            self.drop(DropReason.NO_ROUTE_TO_PRODUCER)
        else:
            self.send(entry.via, msgspec.structs.replace(request, route=(*request.route, self.node)))

    def answer(self, request: Request, now: float) -> None:
        """From the cache, no event twice within half a beacon's period to one consumer."""
        announced = self.announcements.by_subject.get(request.subject)
        if announced is None or announced.epoch != request.epoch:
            self.drop(DropReason.NO_LONGER_ANNOUNCED)
            return
        found = announced.cache.held(request.sequences, request.since)
        held = [(sequence, event) for sequence, event in found if not has_expired(event, self.settings.lifespan_s, now)]
        if not held:
            self.drop(DropReason.NO_LONGER_HELD)
        *back, neighbour = request.route
        half_period = int(2 * now / self.settings.beacon_interval_s)
        for sequence, event in held:
            if self.answered.add((request.route[0], event.id, half_period)):
                self.send(neighbour, Recovered(event, request.epoch, sequence, held[0][0], tuple(back)))

    def on_recovered(self, recovered: Recovered, now: float) -> None:
        """A missed event, for us or for somebody farther down the route."""
        event = recovered.event
        if recovered.route:
            *back, neighbour = recovered.route
            if recovered.hops < self.settings.hop_limit:
                self.send(neighbour, msgspec.structs.replace(recovered, route=tuple(back), hops=recovered.hops + 1))
            else:
                self.drop(DropReason.HOP_LIMIT, event.id)
            return
        key = (event.source, event.type)
        self.missed.heard(key, recovered.epoch, recovered.sequence)
        self.missed.nothing_before(key, recovered.epoch, recovered.oldest)
        if event.id in self.seen.keys:
            return
        entry = self.relevant.by_key.get(key)
        if entry is None or not entry.wanted:
            self.drop(DropReason.RECOVERED_TOO_LATE, event.id)
        elif (typed := self.type_checked(entry, event)) is not None:
            self.deliver_late(entry, typed, recovered.hops, now)

    def deliver_late(self, entry: Relevant, event: Event, hops: int, now: float) -> None:
        """To a subscription that stood when the event was raised, of a node that was inside then and is now."""
        viewer = self.viewer(now)
        self.trail.add(now, viewer.position, viewer.velocity)
        then = self.trail.at(event.time)
        if reason := self.unfit(event, now):
            self.drop(reason, event.id[:MAX_NAME])
        elif not (entry.was_raised_around(event, viewer.position) and entry.advert.contains(viewer.position)):
            self.drop(DropReason.OUTSIDE_PROXIMITY, event.id)
        elif then is None or not entry.was_raised_around(event, then):
            self.drop(DropReason.RAISED_BEFORE_ARRIVAL, event.id)
        else:
            self.seen.add(event.id)
            for subscription in self.subscriptions.accepting(event, viewer):
                if self.subscribed_at[subscription] <= event.time:
                    self.deliver(event, subscription, hops)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """The neighbour is gone: a request is sent again after the next beacon has shown another way."""
        match packet:
            case Recovered():
                self.drop(DropReason.ROUTE_TO_CONSUMER_BROKEN, packet.event.id)
            case Request():
                self.drop(DropReason.ROUTE_TO_PRODUCER_BROKEN)
        return self.effects()
