"""STEAM, by R. Meier and V. Cahill (IEEE Transactions on Software Engineering, 2010): events for nearby nodes.

A producer announces an event type with a proximity and beacons the pair inside it. Consumers
subscribe to types, not to places, and are members of a group exactly while they are inside a
proximity of a type they want. Events reach the group in one hop if the producer's radio covers the
proximity; otherwise members pass them on. Readings and departures: docs/papers/steam.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

import msgspec

from earshot.errors import EventError, UnknownName
from earshot.events import Event, EventType
from earshot.filters import Subscription
from earshot.geometry import Position
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, could_match, event_types_of
from earshot.protocols.machine import NOTHING, QUIET_CHANNEL, Announcement, Channel, Effects, Location, Machine, Timer
from earshot.protocols.steam.announcements import Announcements, LocalAnnouncement
from earshot.protocols.steam.beacon_pace import is_nearest, pace
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.location_updates import UpdatedLocation
from earshot.protocols.steam.packets import (
    MAX_NAME,
    Advert,
    Key,
    ProximityBeacon,
    ProximityQuestion,
    Raised,
    Recovered,
    RecoveryRequest,
    SteamSettings,
    node_of,
)
from earshot.protocols.steam.recovery import Recovery, unfit
from earshot.protocols.steam.relevant_proximities import Change, RelevantProximities, RelevantProximity
from earshot.protocols.tuning import Surroundings, Tunable, guess
from earshot.records import DropReason
from earshot.wire import Packet

MAX_FORWARDING = 4096
"Events that wait to be passed on; more are passed on at once."
MAX_SUBJECTS = 64
"Types in one question."


@dataclass(slots=True)
class GatheredAdvert:
    """An announcement that waits to be passed on, and how many copies have been heard meanwhile."""

    advert: Advert
    copies: int = 0


@dataclass(slots=True)
class WaitingEvent:
    """An event that waits to be passed on, and how many copies have been heard meanwhile."""

    raised: Raised
    copies: int = 0


class Steam(Machine):
    name = "steam"
    several_producers = True
    paper = "Meier and Cahill, On Event-Based Middleware for Location-Aware Mobile Applications, IEEE TSE 2010"
    Settings = SteamSettings

    def __init__(
        self, node: str, settings: SteamSettings, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        if settings.location_interval_s > 0.0:
            phase_s = settings.location_interval_s * random.random()
            location = UpdatedLocation(location, settings.location_interval_s, phase_s)
        super().__init__(node, settings, location, random, channel)
        self.settings: SteamSettings = settings
        self.announcements = Announcements(node, settings)
        self.subscriptions = LocalSubscriptions()
        self.relevant = RelevantProximities(settings.proximity_limit, settings.announcement_limit)
        self.gathered: dict[Key, GatheredAdvert] = {}
        self.forwarding: dict[str, WaitingEvent] = {}
        self.asked = 0
        self.rounds_run = False
        self.recent_events = RecentKeys(settings.seen_limit, self.budgets)
        self.recovery = Recovery(
            node,
            settings,
            location,
            random,
            self.budgets,
            self.announcements,
            self.relevant,
            self.subscriptions,
            self.recent_events,
        )
        "What the prototype did not have."

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        """Section 4.5 leaves the period to the application: a node should not cross much of a range within it."""
        speed = max(around.median_speed_m_s, 0.1)
        period = guess(around.range_m / (20.0 * speed), 0.5, 4.0)
        moving = f"nodes move at {speed:.2g} m/s and cross a twentieth of the range in a period"
        waiting = guess(around.speaking_time_s(0.02, 0.2), 0.01, 0.5)
        return (
            Tunable("forward_copies", 4, 1, 8, "copies of an event tell a node that its neighbours have it"),
            Tunable("beacon_interval_s", period, 0.25, 8.0, moving, follows={"expiry_s": 3.5}),
            Tunable("forward_jitter_s", waiting, 0.01, 0.5, f"{around.mean_neighbours:.0f} neighbours take turns"),
        )

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case Raised():
                if packet.event.id in self.recent_events.keys:
                    if packet.event.id in self.forwarding:
                        self.count_event_copy(packet.event.id)
                    return NOTHING
                self.on_event(packet, now)
            case ProximityBeacon():
                self.on_beacon(packet, sender, now)
            case ProximityQuestion():
                self.on_question(packet, now)
            case RecoveryRequest():
                self._effects += self.recovery.on_request(packet, now)
            case Recovered():
                self._effects += self.recovery.on_recovered(packet, now)
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case "round":
                self.on_round(now)
            case "onward":
                self.send_gathered()
            case "ask":
                self.ask(now)
            case ("forward", str(event)):
                self.forward(event)
            case ("recover", str(producer), str(subject)):
                self._effects += self.recovery.recover((producer, subject), now)
        return self.effects()

    # Announcing and raising: the producer, sections 3.2 and 4.3.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """Section 3.2: the pair of event type and proximity is valid until it is unannounced, wherever we go."""
        position = self.location.position(now)
        announced = self.announcements.add(announcement, position, now)
        self.advertise([announced], position, now)
        self.run_rounds(now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        """Stop the beacons: other nodes forget the proximity after `expiry_s`."""
        announced = self.announcements.remove(subject)
        if (entry := self.relevant.by_key.get((announced.producer, announced.event_type.subject))) is not None:
            self.forget(entry)
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
        self.recent_events.add(event.id)
        self.broadcast_event(Raised(event, announced.group, announced.epoch, sequence, multi_hop))
        if self.settings.deliver_own:
            # Section 4.1: consumers on the producer's own device, if they are inside the proximity.
            self.subscriptions.deliver_local(self, event, 0, now)
        return self.effects()

    def broadcast_event(self, raised: Raised) -> None:
        """To the group; to all nodes in range if nodes that are not members are to pass it on."""
        self.broadcast(raised, None if self.settings.relays and raised.multi_hop else raised.group)

    # Subscribing and delivering: the consumer, sections 3.3 and 3.4.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """Section 3.2: to a type, at all places. The groups of the proximities we are inside of are joined at once."""
        if subscription.id in self.subscriptions.by_id:
            self.withdraw(subscription.id)
        self.subscriptions.add(subscription, now)
        for entry in list(self.relevant.by_key.values()):
            if not entry.member and could_match(subscription.filter, entry.advert.subject):
                self.change_membership(entry, Change.WANTED)
                self.recovery.receptions.follow(entry.advert, heard_up_to=entry.advert.latest)
        self.run_rounds(now)
        self.ask_shortly(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        if subscription not in self.subscriptions.by_id:
            raise UnknownName("subscription", subscription, self.subscriptions.by_id)
        self.withdraw(subscription)
        return self.effects()

    def withdraw(self, subscription_id: str) -> None:
        """Remove the subscription, and leave the groups that no other subscription wants."""
        self.subscriptions.remove(subscription_id)
        for entry in list(self.relevant.by_key.values()):
            if entry.member and not self.subscriptions.could_match(entry.advert.subject):
                self.recovery.receptions.forget(entry.key)
                self.change_membership(entry, Change.UNWANTED)

    def change_membership(self, entry: RelevantProximity, change: Change) -> None:
        """Section 4.5.1, step 6: join or leave the proximity's group."""
        if (effect := self.relevant.change(entry, change)) is not None:
            self._effects.append(effect)

    def on_event(self, raised: Raised, now: float) -> None:
        """Figure 4: a member that was inside when the event was raised delivers it; one that is inside now passes
        it on if the proximity extends beyond the producer's own range."""
        event = raised.event
        entry = self.entry_of(raised)
        if entry is None:
            return
        if reason := unfit(event, self.settings.lifespan_s, now):
            self.drop(reason, event.id[:MAX_NAME])
            return
        self._effects += self.recovery.on_event(entry, raised, now)
        viewer, position = self.viewer_at(event, now), self.location.position(now)
        was_inside, is_inside = (entry.was_raised_around(event, one) for one in (viewer.position, position))
        if not (was_inside or is_inside):
            self.drop_wanted(DropReason.OUTSIDE_PROXIMITY, event)
            return
        self.recent_events.add(event.id)
        if entry.member:
            typed = entry.typed(event)
            if typed is None:
                self.drop(DropReason.CONTENT_DIFFERS_FROM_TYPE, event.id)
                return
            if was_inside:
                for subscription in self.subscriptions.accepting(typed, viewer):
                    self.deliver(typed, subscription, raised.hops)
        if is_inside and raised.multi_hop and self.chooses_to_forward(event, position):
            if raised.hops < self.settings.hop_limit:
                self.forward_later(msgspec.structs.replace(raised, hops=raised.hops + 1), now)
            else:
                self.drop(DropReason.HOP_LIMIT, event.id)

    def forward_later(self, raised: Raised, now: float) -> None:
        """Pass the event on after a random time, unless enough neighbours do so first."""
        if self.settings.forward_jitter_s == 0.0 or len(self.forwarding) >= MAX_FORWARDING:
            self.broadcast_event(raised)
        else:
            self.forwarding[raised.event.id] = WaitingEvent(raised)
            wait_s = self.random.uniform(0.0, self.settings.forward_jitter_s)
            self.start_timer(("forward", raised.event.id), now + wait_s)

    def count_event_copy(self, event: str) -> None:
        """If enough neighbours have passed an event on, we do not."""
        waiting = self.forwarding[event]
        waiting.copies += 1
        if waiting.copies >= self.settings.forward_copies:
            del self.forwarding[event]

    def forward(self, event: str) -> None:
        if (waiting := self.forwarding.pop(event, None)) is not None:
            self.broadcast_event(waiting.raised)

    def entry_of(self, raised: Raised) -> RelevantProximity | None:
        """Section 4.4: the run-time type check. Types that share an identifier share a group; a member drops
        events of types it did not join for."""
        listed = self.relevant.by_group if self.settings.relays else self.relevant.groups
        members = listed.get(raised.group)
        if members is None:
            self.drop_wanted(DropReason.NOT_A_GROUP_MEMBER, raised.event)
            return None
        event = raised.event
        entry = members.get((event.source, event.type))
        if entry is None or entry.advert.epoch != raised.epoch:
            same_type = [one for one in members.values() if one.advert.subject == event.type]
            others = [entry] if entry is not None else same_type
            entry = next((one for one in same_type if one.announced(event, raised.epoch)), next(iter(others), None))
        if entry is None:
            self.drop(DropReason.GROUP_ID_COLLISION, raised.event.id)
        return entry

    def drop_wanted(self, reason: DropReason, event: Event) -> None:
        """An event that is sent to all nodes in range is dropped only where one wants its type; elsewhere it is
        ignored."""
        if not self.settings.relays or self.subscriptions.could_match(event.type):
            self.drop(reason, event.id[:MAX_NAME])

    def chooses_to_forward(self, event: Event, position: Position) -> bool:
        """Section 5.4.1, G(d, p): beyond the distance d from the producer only with probability p."""
        if self.settings.forwarding == "flood" or event.position is None:
            return True
        if event.position.distance_to(position) <= self.settings.gossip_distance_m:
            return True
        return self.random.random() < self.settings.gossip_probability

    # Advertising event types, and rounds that verify the list: section 4.5.2.

    def start(self, now: float) -> Effects:
        self.recovery.recovering.clear()
        self.gathered.clear()
        self.forwarding.clear()
        self.rounds_run = False
        if self.needs_rounds():
            self.run_rounds(now)
        return self.effects()

    def stop(self, now: float) -> Effects:
        if self.gathered:
            self.gathered.clear()
            self.cancel_timer("onward")
        for entry in list(self.relevant.by_key.values()):
            self.forget(entry)
        if self.rounds_run:
            self.rounds_run = False
            self.cancel_timer("round")
        return self.effects()

    def needs_rounds(self) -> bool:
        """Whether there is anything to advertise or to verify, or a consumer that may have it later."""
        return bool(self.subscriptions.by_id or self.announcements.by_name or self.relevant.by_key)

    def run_rounds(self, now: float) -> None:
        """Start the rounds unless they run already."""
        if not self.rounds_run:
            self.rounds_run = True
            self.start_next_round(now)

    def start_next_round(self, now: float) -> None:
        jitter = self.settings.beacon_jitter * (2 * self.random.random() - 1)
        self.start_timer("round", now + self.settings.beacon_interval_s * (1 + jitter))

    def on_round(self, now: float) -> None:
        """Each period: verify the list at our present position, and advertise our own announcements."""
        position = self.location.position(now)
        for announced in self.announcements.by_name.values():
            announced.cache.forget_expired(self.settings.lifespan_s, now)
        for entry in list(self.relevant.by_key.values()):
            if entry.node == self.node:
                continue
            if now > entry.expires_at and not (self.settings.keep_stationary and entry.stationary):
                self.forget(entry, fell_silent=True)
            elif entry.stationary and not entry.advert.is_near(position):
                self.forget(entry)
        due = []
        for announced in self.announcements.by_name.values():
            announced.rounds_left -= 1
            if announced.rounds_left <= 0:
                due.append(announced)
        self.advertise(due, position, now)
        if self.needs_rounds():
            self.start_next_round(now)
        else:
            self.rounds_run = False

    def advertise(self, announcements: Iterable[LocalAnnouncement], position: Position, now: float) -> None:
        """Steps 1 and 3 of section 4.5.1: each with its latest naval, if the radio reaches the proximity."""
        adverts = []
        for announced in announcements:
            mobile = announced.proximity is not None and announced.proximity.mobile
            announced.pace = pace(
                announced.reach_m,
                announced.slack_m(position, self.settings.range_m),
                self.location.velocity(now).speed_m_s if mobile else 0.0,
                announced.beacon,
                self.channel.busy_share(now),
                self.settings,
            )
            announced.rounds_left = announced.pace.rounds
            announced.beacon += 1
            advert = announced.advert(position, self.settings)
            self.locate(advert, self.node, position, now)
            if not announced.out_of_reach(position, self.settings.range_m):
                adverts.append(advert)
        self.send_beacons(adverts)

    def send_beacons(self, adverts: list[Advert]) -> None:
        size = self.settings.adverts_per_beacon
        for first in range(0, len(adverts), size):
            self.broadcast(ProximityBeacon(tuple(adverts[first : first + size])))

    # Locating event types: section 4.5.3.

    def on_beacon(self, beacon: ProximityBeacon, sender: str, now: float) -> None:
        """List what is relevant here, and pass it on if its proximity extends beyond the producer's range."""
        for advert in beacon.adverts:
            known = self.relevant.by_key.get(advert.key)
            if known is not None and not advert.newer_than(known.advert):
                self.count_copy(advert)
            elif node_of(advert.producer) != self.node:
                entry = self.locate(advert, sender, self.location.position(now), now)
                if entry is not None and advert.multi_hop and self.may_pass_on(entry, now):
                    self.pass_on(entry, now)
        if self.settings.beacon_gather_s == 0.0:
            self.send_gathered()

    def locate(self, advert: Advert, via: str, position: Position, now: float) -> RelevantProximity | None:
        """Step 4 of section 4.5.1: list the proximity if we are inside, forget it if we are not."""
        known = self.relevant.by_key.get(advert.key)
        renewed = known is not None and known.advert.epoch == advert.epoch
        if known is not None and renewed and known.advert.announcement != advert.announcement:
            self.drop(DropReason.ANNOUNCEMENT_CHANGED)
            return None
        near = advert.is_near(position)
        if known is not None and renewed and near:
            known.advert, known.via = advert, via
            known.expires_at = now + self.settings.expires_after_s(advert.interval_s)
            self._effects += self.recovery.on_beacon(known, now)
            return known
        if known is not None:
            self.forget(known)
        return self.discover(advert, via, now) if near else None

    def discover(self, advert: Advert, via: str, now: float) -> RelevantProximity | None:
        """List a proximity that is new here, and join its group if a subscription matches its type."""
        wanted = self.subscriptions.could_match(advert.subject)
        event_type = self.described_type(advert)
        reason = advert.fault() or self.relevant.no_room_for(advert.producer, wanted)
        if event_type is None or reason:
            self.drop(reason or DropReason.IMPOSSIBLE_TYPE)
            return None
        group, expires_at = (
            group_id(advert.subject, advert.proximity),
            now + self.settings.expires_after_s(advert.interval_s),
        )
        entry = RelevantProximity(advert, event_type, group, via, expires_at)
        if self.relevant.add(entry) is not None:
            self.drop(DropReason.PROXIMITY_LIST_FULL)
        if wanted:
            self.change_membership(entry, Change.WANTED)
            self._effects += self.recovery.catch_up(entry, now)
        self.run_rounds(now)
        return entry

    def described_type(self, advert: Advert) -> EventType | None:
        """The advertised event type; None if it is invalid, or differs from what we announce under its name. Section
        3.2: the types of one subject have one content structure and one list of attributes."""
        try:
            described = EventType(advert.subject, advert.content, advert.attributes)
        except EventError:
            return None
        own = self.announcements.type_of(advert.subject)
        return described if own is None or own == described else None

    def forget(self, entry: RelevantProximity, fell_silent: bool = False) -> None:
        """Remove a proximity from the list. A node that left it misses nothing that is raised there later;
        a node that only stopped hearing its beacons may."""
        self.gathered.pop(entry.key, None)
        if not fell_silent:
            self.recovery.receptions.forget(entry.key)
        self.change_membership(entry, Change.LOST)

    # Passing beacons on to a proximity's boundary: section 4.5.

    def count_copy(self, advert: Advert) -> None:
        """If enough neighbours have passed an announcement on, we do not."""
        waiting = self.gathered.get(advert.key)
        if waiting is not None and waiting.advert.beacon == advert.beacon:
            waiting.copies += 1
            if waiting.copies >= self.settings.beacon_copies:
                del self.gathered[advert.key]

    def may_pass_on(self, entry: RelevantProximity, now: float) -> bool:
        """At most two beacons a period are passed on, however fast a producer beacons."""
        if entry.advert.hops + 1 >= self.settings.hop_limit:
            self.drop(DropReason.HOP_LIMIT)
            return False
        if self.settings.stretches_beacons and not self.is_nearest(entry):
            return False
        return now - entry.forwarded_at >= self.settings.beacon_interval_s / 2

    def is_nearest(self, entry: RelevantProximity) -> bool:
        return is_nearest(entry, self.relevant.by_group[entry.group].values())

    def pass_on(self, entry: RelevantProximity, now: float, copies: int = 0) -> None:
        """Gather the announcement, to be sent together with others."""
        entry.forwarded_at = now
        if not self.gathered and self.settings.beacon_gather_s > 0.0:
            delay_s = self.settings.beacon_gather_s * (0.5 + self.random.random() / 2)
            self.start_timer("onward", now + delay_s)
        advert = msgspec.structs.replace(entry.advert, hops=entry.advert.hops + 1)
        self.gathered[entry.key] = GatheredAdvert(advert, copies)

    def send_gathered(self) -> None:
        self.send_beacons([waiting.advert for waiting in self.gathered.values()])
        self.gathered.clear()

    # Asking for proximities: for a consumer that comes between two beacons.

    def ask_shortly(self, now: float) -> None:
        """Ask within a period, if we then still know no proximity of a type that we want."""
        self.asked = 0
        if self.settings.questions and next(self.unlisted_types(), None) is not None:
            self.start_timer("ask", now + self.settings.beacon_interval_s * self.random.random())

    def unlisted_types(self) -> Iterator[frozenset[str]]:
        """For each subscription of whose types no proximity is listed, the newest first: its types, empty if it wants
        any type."""
        listed = {entry.advert.subject for entry in self.relevant.by_key.values()}
        for subscription in reversed(self.subscriptions.by_id.values()):
            if not any(could_match(subscription.filter, subject) for subject in listed):
                types = event_types_of(subscription.filter)
                if types is None or types:
                    yield types or frozenset()

    def unknown_subjects(self) -> tuple[str, ...] | None:
        """The types that a subscription wants and of which no proximity is listed; empty if one wants any type, None
        if there is no such type."""
        unknown: set[str] = set()
        for types in self.unlisted_types():
            if not types:
                return ()
            unknown |= types
        return tuple(sorted(unknown)[:MAX_SUBJECTS]) or None

    def ask(self, now: float) -> None:
        """Ask, and again after twice the time."""
        subjects = self.unknown_subjects()
        if subjects is not None:
            self.broadcast(ProximityQuestion(self.location.position(now), subjects))
            self.asked += 1
            if self.asked < self.settings.questions:
                self.start_timer("ask", now + self.settings.beacon_interval_s * 2.0**self.asked)

    def on_question(self, question: ProximityQuestion, now: float) -> None:
        """Send a beacon of what is relevant there, unless a neighbour does so first. However many ask, an
        announcement is sent at most once a period."""
        subjects, answers = set(question.subjects[:MAX_SUBJECTS]), 0
        for entry in self.relevant.by_key.values():
            wanted = not subjects or entry.advert.subject in subjects
            rested = now - entry.forwarded_at >= self.settings.beacon_interval_s
            if wanted and rested and entry.advert.is_near(question.at) and self.is_nearest(entry):
                self.pass_on(entry, now, copies=self.settings.beacon_copies - 1)
                answers += 1
            if answers >= self.settings.adverts_per_beacon:
                return

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        self._effects += self.recovery.unreachable(packet)
        return self.effects()
