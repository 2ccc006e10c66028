"""STEAM, by R. Meier and V. Cahill (IEEE Transactions on Software Engineering, 2010): events for whoever is near.

A producer announces an event type with a proximity and beacons the pair inside it; consumers subscribe
to types, never to places, and are members of a group exactly while they stand in a proximity of a type
they want. Events go to the group in one hop where the producer's radio covers the proximity, and are
passed on by members where it does not. Readings and departures: docs/papers/steam.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Literal

import msgspec

from earshot.errors import ContentMismatch, EventError, SettingsError, UnknownName
from earshot.events import Event, EventType
from earshot.geometry import Position
from earshot.protocols.announcements import Announced, Announcements
from earshot.protocols.group_ids import group_id
from earshot.protocols.machine import NOTHING, Announcement, Effects, Location, Machine, Subscription, Timer
from earshot.protocols.missed_events import MissedEvents
from earshot.protocols.parts import LocalSubscriptions, RecentKeys
from earshot.protocols.proximity_discovery import MAX_NAME, Advert, Key, Relevant, RelevantProximities
from earshot.protocols.trail import Trail
from earshot.protocols.wanted_types import WantedTypes, could_match
from earshot.wire import Packet

MOST_ASKED = 4096
"Events in one request; a consumer asks for no more than its `cache_size`."


@dataclass(frozen=True, slots=True)
class SteamSettings:
    range_m: float = 200.0
    "T_R, section 5: this node's own radio range; decides between one hop and many."
    beacon_interval_s: float = 1.0
    "Section 4.5: the period of the beacons, application-specific."
    beacon_gather_s: float = 0.05
    """How long a node gathers what it passes on, so that many producers' announcements share a beacon;
    0: each beacon is passed on by itself, at once."""
    beacon_copies: int = 3
    "Heard so often again while it was gathered, an announcement is not passed on: the neighbours have done it."
    beacon_jitter: float = 0.1
    "The share by which one period may be longer or shorter, so that producers do not beacon in step."
    expiry_s: float = 3.5
    "A proximity whose beacons have stopped for so long is taken off the list."
    forwarding: Literal["flood", "gossip"] = "flood"
    "How members pass events on, section 4.3; gossip is section 5.4.1's."
    gossip_distance_m: float = 200.0
    "d of G(d, p): who stands nearer to the producer always passes on."
    gossip_probability: float = 0.8
    "p of G(d, p): who stands farther does so with this probability."
    hop_limit: int = 32
    "A net under the proximity's own bound."
    lifespan_s: float = 60.0
    "How long an event that names no lifespan of its own is worth passing on or recovering."
    cache_size: int = 64
    "Events a producer holds for recovery, for each announcement; 0: nothing is recovered."
    recovery_delay_s: float = 0.25
    "How long a gap may be mere disorder before it is asked for."
    recovery_attempts: int = 3
    proximity_limit: int = 2048
    "The list of relevant proximities holds no more."
    announcement_limit: int = 1024
    "One producer has no more of them: on this node, and in its list."
    adverts_per_beacon: int = 16
    "More announcements make more beacons, not larger ones."
    seen_limit: int = 65_536
    "Event ids remembered against duplicates."

    def __post_init__(self) -> None:
        for name in ("range_m", "beacon_interval_s", "expiry_s", "lifespan_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingsError(f"{name} must be positive, got {value}")
        if not 0.0 <= self.gossip_probability <= 1.0:
            raise SettingsError(f"gossip_probability must lie between 0 and 1, got {self.gossip_probability}")
        if not 0.0 <= self.beacon_jitter < 1.0:
            raise SettingsError(f"beacon_jitter must be at least 0 and below 1, got {self.beacon_jitter}")
        if self.expiry_s <= self.beacon_interval_s * (1 + self.beacon_jitter):
            raise SettingsError(
                f"expiry_s must be longer than a beacon's period of up to "
                f"{self.beacon_interval_s * (1 + self.beacon_jitter):g} s, got {self.expiry_s}"
            )
        if self.forwarding not in ("flood", "gossip"):
            raise SettingsError(f"forwarding must be flood or gossip, got {self.forwarding!r}")
        for name in ("recovery_delay_s", "beacon_gather_s", "gossip_distance_m"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise SettingsError(f"{name} must be 0 or more, got {getattr(self, name)}")
        for name in (
            "hop_limit",
            "proximity_limit",
            "announcement_limit",
            "adverts_per_beacon",
            "seen_limit",
            "beacon_copies",
        ):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.cache_size > MOST_ASKED:
            raise SettingsError(f"cache_size must be at most {MOST_ASKED}, got {self.cache_size}")
        for name in ("cache_size", "recovery_attempts"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must be 0 or more, got {getattr(self, name)}")


class Beacon(Packet, frozen=True, array_like=True, tag="steam-beacon"):
    """What producers announce, to everybody in their proximities: the well-known discovery group."""

    adverts: tuple[Advert, ...]


class Raised(Packet, frozen=True, array_like=True, tag="steam-event"):
    """An event, to the members of its group."""

    event: Event
    group: int
    epoch: float
    sequence: int
    multi_hop: bool
    hops: int = 0


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
    hops: int = 0


@dataclass(slots=True)
class Onward:
    """An announcement waiting to be passed on, and how often it has been heard since."""

    advert: Advert
    heard_again: int = 0


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
        self.relevant = RelevantProximities(settings.proximity_limit, settings.announcement_limit)
        self.trail = Trail(min(1024, math.ceil(settings.lifespan_s / settings.beacon_interval_s) + 2))
        self.missed = MissedEvents(settings.cache_size, settings.proximity_limit, settings.lifespan_s, self.trail)
        self.recovering: set[Key] = set()
        self.seen = RecentKeys(settings.seen_limit)
        self.answered = RecentKeys(settings.seen_limit)
        self.onward: dict[Key, Onward] = {}
        self.rounds_run = False

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case Raised():
                if packet.event.id in self.seen.keys:
                    return NOTHING
                self.on_event(packet, now)
            case Beacon():
                self.on_beacon(packet, sender, now)
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
                self.send_onward()
            case ("recover", str(producer), str(subject)):
                self.recover((producer, subject), now)
        return self.effects()

    # Announcing and raising: the producer, sections 3.2 and 4.3.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """Section 3.2: the pair of event type and proximity stands until it is unannounced, wherever we go."""
        announced = self.announcements.add(announcement, self.location.position(now), now)
        self.advertise([announced], now)
        self.run_rounds(now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        """No more beacons: the others forget it after `expiry_s`."""
        self.announcements.remove(subject)
        if (entry := self.relevant.by_key.get((self.node, subject))) is not None:
            self.forget(entry)
        return self.effects()

    def publish(self, event: Event, now: float) -> Effects:
        """Raise, section 4.1: to the group, in one hop or passed on by its members, section 4.3."""
        position = self.location.position(now)
        announced, event = self.announcements.for_raising(event, position)
        if announced.out_of_reach(position, self.settings.range_m):
            self.drop("producer out of reach of its proximity", event.id)
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
                self.become_member(entry)
                self.missed.follow(entry)
        self.trail.add(now, self.location.position(now))
        self.run_rounds(now)
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
                if self.relevant.unwant(entry):
                    self.leave_group(entry.group)

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
            self.recover_later(entry, now)
        viewer = self.viewer(now)
        if not entry.was_raised_around(event, viewer.position):
            self.drop("outside the proximity", event.id)
            return
        self.seen.add(event.id)
        typed = self.type_checked(entry, event)
        if typed is None:
            return
        for subscription in self.subscriptions.accepting(typed, viewer):
            self.deliver(typed, subscription, raised.hops + 1)
        if raised.multi_hop and self.chooses_to_forward(event, viewer.position):
            if raised.hops + 1 < self.settings.hop_limit:
                self.broadcast(msgspec.structs.replace(raised, hops=raised.hops + 1), raised.group)
            else:
                self.drop("hop limit", event.id)

    def entry_of(self, raised: Raised) -> Relevant | None:
        """Section 4.4: the run-time type check. Texts that share an identifier share a group; what is
        not of a type this member joined for is discarded."""
        members = self.relevant.groups.get(raised.group)
        if members is None:
            self.drop("not a member of the group", raised.event.id)
            return None
        entry = members.get((raised.event.source, raised.event.type))
        if entry is None:
            entry = next((one for one in members.values() if one.advert.subject == raised.event.type), None)
        if entry is None:
            self.drop("unwanted type in a group of the same identifier", raised.event.id)
        return entry

    def type_checked(self, entry: Relevant, event: Event) -> Event | None:
        """The event with its values as the announced type has them."""
        if not entry.event_type.content:
            return event
        try:
            return entry.event_type.read(event)
        except ContentMismatch:
            self.drop("content differs from the announced type", event.id)
            return None

    def chooses_to_forward(self, event: Event, position: Position) -> bool:
        """Section 5.4.1, G(d, p): beyond the distance d from the producer only with probability p."""
        if self.settings.forwarding == "flood" or event.position is None:
            return True
        if event.position.distance_to(position) <= self.settings.gossip_distance_m:
            return True
        return self.random.random() < self.settings.gossip_probability

    def unfit(self, event: Event, now: float) -> str:
        """Why an event is not worth a look; empty where it is."""
        if len(event.id) > MAX_NAME:
            return "event id too long"
        return "lifespan over" if self.outlived(event, now) else ""

    def outlived(self, event: Event, now: float) -> bool:
        lifespan_s = self.settings.lifespan_s if event.lifespan_s is None else event.lifespan_s
        return now - event.time > lifespan_s

    # Discovering proximities: section 4.5.

    def start(self, now: float) -> Effects:
        self.rounds_run = False
        self.onward.clear()
        self.recovering.clear()
        if self.has_rounds():
            self.run_rounds(now)
        return self.effects()

    def stop(self, now: float) -> Effects:
        for entry in list(self.relevant.by_key.values()):
            self.forget(entry)
        if self.onward:
            self.onward.clear()
            self.cancel_timer("onward")
        if self.rounds_run:
            self.rounds_run = False
            self.cancel_timer("round")
        return self.effects()

    def has_rounds(self) -> bool:
        return bool(self.announcements.by_subject or self.subscriptions.by_id or self.relevant.by_key)

    def run_rounds(self, now: float) -> None:
        if not self.rounds_run:
            self.rounds_run = True
            self.start_next_round(now)

    def start_next_round(self, now: float) -> None:
        jitter = self.settings.beacon_jitter * (2 * self.random.random() - 1)
        self.start_timer("round", now + self.settings.beacon_interval_s * (1 + jitter))

    def on_round(self, now: float) -> None:
        """Section 4.5.2: verify the list against where we are now, and advertise our own announcements."""
        position = self.location.position(now)
        if self.subscriptions.by_id:
            self.trail.add(now, position)
        for entry in list(self.relevant.by_key.values()):
            if entry.advert.producer == self.node:
                continue
            if now - entry.heard_at > self.settings.expiry_s:
                self.forget(entry, gone_silent=True)
            elif not entry.mobile and not entry.advert.contains(position):
                self.forget(entry)
        self.advertise(list(self.announcements.by_subject.values()), now)
        if self.has_rounds():
            self.start_next_round(now)
        else:
            self.rounds_run = False

    def advertise(self, announcements: list[Announced], now: float) -> None:
        """Steps 1 and 3 of section 4.5.1: each with its latest naval, to whom the radio reaches."""
        position = self.location.position(now)
        adverts = []
        for announced in announcements:
            announced.beacon += 1
            announced.cache.let_go(lambda event: self.outlived(event, now))
            advert = announced.advert(self.node, position, self.settings.range_m)
            self.locate(advert, self.node, position, now)
            if not announced.out_of_reach(position, self.settings.range_m):
                adverts.append(advert)
        self.beacon(adverts)

    def beacon(self, adverts: list[Advert]) -> None:
        size = self.settings.adverts_per_beacon
        for first in range(0, len(adverts), size):
            self.broadcast(Beacon(tuple(adverts[first : first + size])))

    def on_beacon(self, beacon: Beacon, sender: str, now: float) -> None:
        """Section 4.5.3: note what is relevant here, and pass it on where it reaches farther than its producer."""
        by_key, onward = self.relevant.by_key, self.onward
        position: Position | None = None
        for advert in beacon.adverts:
            known = by_key.get((advert.producer, advert.subject))
            if known is not None and not advert.newer_than(known.advert):
                if onward:
                    self.heard_again(advert)
            elif advert.producer != self.node:
                position = position or self.location.position(now)
                entry = self.locate(advert, sender, position, now)
                if entry is not None and advert.multi_hop and self.may_pass_on(entry, now):
                    self.pass_on(entry, now)
        if self.onward and self.settings.beacon_gather_s == 0.0:
            self.send_onward()

    def heard_again(self, advert: Advert) -> None:
        """Once enough neighbours have passed it on, we need not."""
        waiting = self.onward.get(advert.key)
        if waiting is not None and waiting.advert.beacon == advert.beacon:
            waiting.heard_again += 1
            if waiting.heard_again >= self.settings.beacon_copies:
                del self.onward[advert.key]

    def may_pass_on(self, entry: Relevant, now: float) -> bool:
        """However fast a producer beacons, nobody multiplies more than two of them a period."""
        if entry.advert.hops + 1 >= self.settings.hop_limit:
            self.drop("hop limit")
            return False
        return now - entry.forwarded_at >= self.settings.beacon_interval_s / 2

    def pass_on(self, entry: Relevant, now: float) -> None:
        """Towards the proximity's boundary, together with what else is on its way."""
        entry.forwarded_at = now
        if not self.onward and self.settings.beacon_gather_s > 0.0:
            self.start_timer("onward", now + self.settings.beacon_gather_s * (0.5 + self.random.random() / 2))
        self.onward[entry.key] = Onward(msgspec.structs.replace(entry.advert, hops=entry.advert.hops + 1))

    def send_onward(self) -> None:
        self.beacon([waiting.advert for waiting in self.onward.values()])
        self.onward.clear()

    def locate(self, advert: Advert, via: str, position: Position, now: float) -> Relevant | None:
        """Step 4 of section 4.5.1: list it if we are inside, forget it if we are not."""
        known = self.relevant.by_key.get(advert.key)
        again = known is not None and known.advert.epoch == advert.epoch
        if known is not None and again and not advert.same_announcement(known.advert):
            self.drop("announcement changed without being announced anew")
            return None
        inside = advert.contains(position)
        if known is not None and not (inside and again):
            self.forget(known)
        if not inside:
            return None
        if known is None or not again:
            return self.discover(advert, via, position, now)
        known.advert, known.via, known.heard_at = advert, via, now
        if known.wanted and self.missed.told(known, now, position):
            self.recover_later(known, now)
        return known

    def discover(self, advert: Advert, via: str, position: Position, now: float) -> Relevant | None:
        """A proximity that is new here."""
        wanted = advert.subject in self.wanted_types
        event_type = self.described_type(advert)
        reason = advert.fault() or self.relevant.no_room_for(advert.producer, wanted)
        if event_type is None or reason:
            self.drop(reason or "announcement of an impossible type")
            return None
        entry = Relevant(advert, event_type, group_id(advert.subject, advert.proximity), via, now)
        if self.relevant.add(entry) is not None:
            self.drop("list of proximities full")
        if wanted:
            self.become_member(entry)
            if via != self.node and self.missed.catch_up(entry, now, position):
                self.recover_later(entry, now)
        self.run_rounds(now)
        return entry

    def described_type(self, advert: Advert) -> EventType | None:
        """The type as advertised; none where it is none, or is not what we ourselves announce by that name."""
        try:
            described = EventType(advert.subject, advert.content, advert.attributes)
        except EventError:
            return None
        own = self.announcements.by_subject.get(advert.subject)
        return described if own is None or own.event_type.content == described.content else None

    def become_member(self, entry: Relevant) -> None:
        """Step 6 of section 4.5.1: join the group, for there is a subscription."""
        if self.relevant.want(entry):
            self.join_group(entry.group)

    def forget(self, entry: Relevant, gone_silent: bool = False) -> None:
        """Off the list. Who leaves a proximity misses nothing that is raised there after; who merely
        stopped hearing its beacons may."""
        self.onward.pop(entry.key, None)
        if not gone_silent:
            self.missed.forget(entry.key)
        if self.relevant.remove(entry):
            self.leave_group(entry.group)

    # Recovering missed events: section 4.3.

    def recover_later(self, entry: Relevant, now: float) -> None:
        """Ask for what is missing, once it cannot be mere disorder."""
        if entry.key not in self.recovering:
            self.recovering.add(entry.key)
            patience_s = self.settings.recovery_delay_s * (1 + self.random.random())
            self.start_timer(("recover", *entry.key), now + patience_s)

    def recover(self, key: Key, now: float) -> None:
        """Send the request towards the producer, and again after a beacon's period while something is missing."""
        self.recovering.discard(key)
        entry = self.relevant.by_key.get(key)
        if entry is None or not entry.wanted:
            return
        wanted, given_up = self.missed.ask(key, self.settings.recovery_attempts)
        for _ in given_up:
            self.drop("missed and not recovered")
        if not wanted:
            return
        since = self.missed.owed_since(entry, now, self.location.position(now))
        self.send(entry.via, Request(*key, entry.advert.epoch, tuple(wanted), since, (self.node,)))
        self.recovering.add(key)
        self.start_timer(("recover", *key), now + self.settings.beacon_interval_s)

    def on_request(self, request: Request, now: float) -> None:
        """Pass a consumer's request on towards the producer, or answer it."""
        if not 1 <= len(request.route) <= self.settings.hop_limit or self.node in request.route:
            self.drop("request went astray")
        elif len(request.sequences) > MOST_ASKED or len(request.route[0]) > MAX_NAME:
            self.drop("request for too much")
        elif request.producer == self.node:
            self.answer(request, now)
        elif (entry := self.relevant.by_key.get((request.producer, request.subject))) is None:
            self.drop("no way to the producer")
        else:
            self.send(entry.via, msgspec.structs.replace(request, route=(*request.route, self.node)))

    def answer(self, request: Request, now: float) -> None:
        """From the cache, no event twice within half a beacon's period to one consumer."""
        announced = self.announcements.by_subject.get(request.subject)
        if announced is None or announced.epoch != request.epoch:
            self.drop("asked for what is no longer announced")
            return
        found = announced.cache.held(request.sequences, request.since)
        held = [(sequence, event) for sequence, event in found if not self.outlived(event, now)]
        if not held:
            self.drop("asked for what is no longer held")
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
            if recovered.hops + 1 < self.settings.hop_limit:
                self.send(neighbour, msgspec.structs.replace(recovered, route=tuple(back), hops=recovered.hops + 1))
            else:
                self.drop("hop limit", event.id)
            return
        key = (event.source, event.type)
        self.missed.heard(key, recovered.epoch, recovered.sequence)
        self.missed.nothing_before(key, recovered.epoch, recovered.oldest)
        if event.id in self.seen.keys:
            return
        entry = self.relevant.by_key.get(key)
        if entry is None or not entry.wanted:
            self.drop("recovered too late", event.id)
        elif (typed := self.type_checked(entry, event)) is not None:
            self.deliver_late(entry, typed, recovered.hops + 1, now)

    def deliver_late(self, entry: Relevant, event: Event, hops: int, now: float) -> None:
        """To a subscription that stood when the event was raised, of a node that was inside then and is now."""
        viewer = self.viewer(now)
        self.trail.add(now, viewer.position)
        then = self.trail.at(event.time)
        if reason := self.unfit(event, now):
            self.drop(reason, event.id[:MAX_NAME])
        elif not (entry.was_raised_around(event, viewer.position) and entry.advert.contains(viewer.position)):
            self.drop("outside the proximity", event.id)
        elif then is None or not entry.was_raised_around(event, then):
            self.drop("raised before this node came in", event.id)
        else:
            self.seen.add(event.id)
            for subscription in self.subscriptions.accepting(event, viewer):
                if self.subscribed_at[subscription] <= event.time:
                    self.deliver(event, subscription, hops)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """The neighbour is gone: a request is sent again after the next beacon has shown another way."""
        match packet:
            case Recovered():
                self.drop("way back to the consumer broken", packet.event.id)
            case Request():
                self.drop("way to the producer broken")
        return self.effects()


PAPER = SteamSettings(cache_size=0, beacon_gather_s=0.0)
"The prototype of section 5: best effort, nothing recovered, beacons passed on one by one."
