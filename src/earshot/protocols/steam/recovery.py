"""Recovery of missed events, which STEAM's prototype did not have (section 4.3 describes it, section 5 is without it).

Beacons carry the number of the latest event; a consumer that sees a gap, or hears beacons again after a silence, asks
the producer back along the beacons' route, and the events come back along the request's. `cache_size = 0` (`PAPER`)
switches it off: no reception is followed, so nothing is ever missing. What is missing is kept in `missed_events.py`.
"""

from __future__ import annotations

from random import Random

import msgspec

from earshot.events import Event
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, could_match, has_expired
from earshot.protocols.machine import Deliver, Drop, Effect, Location, Send, StartTimer, viewer_at
from earshot.protocols.steam.announcements import Announcements
from earshot.protocols.steam.missed_events import Receptions, inside_since
from earshot.protocols.steam.packets import (
    MAX_NAME,
    MAX_REQUESTED,
    Key,
    Raised,
    Recovered,
    RecoveryRequest,
    SteamSettings,
    node_of,
)
from earshot.protocols.steam.relevant_proximities import RelevantProximities, RelevantProximity
from earshot.records import DropReason
from earshot.wire import Packet


class Recovery:
    """One node's recovery, as a consumer, as a producer and on the way between them.

    Methods return effects for the machine to carry out.
    """

    def __init__(
        self,
        node: str,
        settings: SteamSettings,
        location: Location,
        random: Random,
        budgets: TableBudgets,
        announcements: Announcements,
        relevant: RelevantProximities,
        subscriptions: LocalSubscriptions,
        recent_events: RecentKeys,
    ) -> None:
        self.node = node
        self.settings = settings
        self.location = location
        self.random = random
        self.announcements = announcements
        self.relevant = relevant
        self.subscriptions = subscriptions
        self.recent_events = recent_events
        self.receptions = Receptions(settings.proximity_limit, settings.cache_size)
        self.recovering: set[Key] = set()
        "Announcements for which a request is due."
        self.recent_answers = RecentKeys(settings.seen_limit, budgets)

    # What the machine reports.

    def on_event(self, entry: RelevantProximity, raised: Raised, now: float) -> list[Effect]:
        """An event arrived; those that it skipped are missing."""
        reception = self.receptions.of(entry.key, raised.epoch)
        if entry.node == raised.event.source and reception is not None and reception.received(raised.sequence):
            return self.recover_later(entry, now, self.settings.recovery_delay_s)
        return []

    def on_beacon(self, entry: RelevantProximity, now: float) -> list[Effect]:
        """A beacon of a known proximity arrived; it may show that events are missing."""
        if entry.member and self.misses_events(entry, now):
            return self.recover_later(entry, now, self.settings.recovery_delay_s)
        return []

    def catch_up(self, entry: RelevantProximity, now: float) -> list[Effect]:
        """Ask for events raised since we came in: before we knew of the proximity, or while we heard nothing."""
        if entry.via == self.node:
            return []
        if self.receptions.of(entry.key, entry.advert.epoch) is None:
            self.receptions.follow(entry.advert, heard_up_to=0)
        return self.recover_later(entry, now, delay_s=0.0) if self.misses_events(entry, now) else []

    def misses_events(self, entry: RelevantProximity, now: float) -> bool:
        """Whether its latest beacon shows that events are missing that were raised while we were inside."""
        reception = self.receptions.of(entry.key, entry.advert.epoch)
        if reception is None or not reception.raised_up_to(entry.advert.latest, entry.advert.oldest):
            return False
        if entry.advert.raised_at < self.inside_since(entry, now):
            reception.missing.clear()
        return bool(reception.missing)

    def inside_since(self, entry: RelevantProximity, now: float) -> float:
        """Events raised before this time are not for us: they have expired, nobody here had subscribed, or we were
        not inside yet."""
        subject, area = entry.advert.subject, entry.advert.area()
        begun = [
            self.subscriptions.since[id]
            for id, subscription in self.subscriptions.by_id.items()
            if could_match(subscription.filter, subject)
        ]
        earliest = max(now - self.settings.lifespan_s, min(begun, default=now))
        if area is None:
            return earliest
        if entry.mobile:
            return earliest if area.contains(self.location.position(now)) else now
        return inside_since(area, self.location, earliest, now, self.settings.beacon_interval_s / 2)

    def recover_later(self, entry: RelevantProximity, now: float, delay_s: float) -> list[Effect]:
        """Ask for missing events after a delay, in which they may still arrive, and not all nodes at once."""
        if entry.key in self.recovering:
            return []
        self.recovering.add(entry.key)
        spread_s = self.settings.recovery_delay_s * self.random.random()
        return [StartTimer(("recover", *entry.key), now + delay_s + spread_s)]

    def recover(self, key: Key, now: float) -> list[Effect]:
        """Send the request towards the producer, and again each beacon period while events are missing."""
        self.recovering.discard(key)
        entry = self.relevant.by_key.get(key)
        if entry is None or not entry.member:
            return []
        reception = self.receptions.of(key, entry.advert.epoch)
        if reception is None:
            return []
        wanted, given_up = reception.next_request(self.settings.recovery_attempts)
        dropped = [Drop(DropReason.MISSED_NOT_RECOVERED) for _ in given_up]
        if not wanted:
            return [*dropped]
        since = self.inside_since(entry, now)
        request = RecoveryRequest(*key, entry.advert.epoch, tuple(wanted), since, (self.node,))
        self.recovering.add(key)
        next_attempt = StartTimer(("recover", *key), now + self.settings.beacon_interval_s)
        return [*dropped, Send(entry.via, request), next_attempt]

    def on_request(self, request: RecoveryRequest, now: float) -> list[Effect]:
        """Pass a consumer's request on towards the producer, or answer it."""
        if not 1 <= len(request.route) <= self.settings.hop_limit or self.node in request.route:
            return [Drop(DropReason.REQUEST_MISROUTED)]
        if len(request.sequences) > MAX_REQUESTED or len(request.route[0]) > MAX_NAME:
            return [Drop(DropReason.REQUEST_TOO_LARGE)]
        if node_of(request.producer) == self.node:
            return self.answer(request, now)
        entry = self.relevant.by_key.get((request.producer, request.subject))
        if entry is None:
            return [Drop(DropReason.NO_ROUTE_TO_PRODUCER)]
        return [Send(entry.via, msgspec.structs.replace(request, route=(*request.route, self.node)))]

    def answer(self, request: RecoveryRequest, now: float) -> list[Effect]:
        """Send events from the cache, each at most once per half beacon period to one consumer."""
        announced = self.announcements.of((request.producer, request.subject))
        if announced is None or announced.epoch != request.epoch:
            return [Drop(DropReason.NO_LONGER_ANNOUNCED)]
        found = announced.cache.held(request.sequences, request.since)
        held = [(number, event) for number, event in found if not has_expired(event, self.settings.lifespan_s, now)]
        if not held:
            return [Drop(DropReason.NO_LONGER_HELD)]
        *back, neighbour = request.route
        half_period = int(2 * now / self.settings.beacon_interval_s)
        return [
            Send(neighbour, Recovered(event, request.epoch, sequence, held[0][0], tuple(back)))
            for sequence, event in held
            if self.recent_answers.add((request.route[0], event.id, half_period))
        ]

    def on_recovered(self, recovered: Recovered, now: float) -> list[Effect]:
        """A missed event, for us or for a node farther down the route."""
        event = recovered.event
        if recovered.route:
            *back, neighbour = recovered.route
            if recovered.hops >= self.settings.hop_limit:
                return [Drop(DropReason.HOP_LIMIT, event.id)]
            return [Send(neighbour, msgspec.structs.replace(recovered, route=tuple(back), hops=recovered.hops + 1))]
        key = self.relevant.key_of(event, recovered.epoch)
        reception = self.receptions.of(key, recovered.epoch)
        if reception is not None:
            reception.received(recovered.sequence)
            reception.nothing_before(recovered.oldest)
        if event.id in self.recent_events.keys:
            return []
        entry = self.relevant.by_key.get(key)
        if entry is None or not entry.member:
            return [Drop(DropReason.RECOVERED_TOO_LATE, event.id)]
        typed = entry.typed(event)
        if typed is None:
            return [Drop(DropReason.CONTENT_DIFFERS_FROM_TYPE, event.id)]
        return self.deliver_recovered(entry, typed, recovered.hops, now)

    def deliver_recovered(self, entry: RelevantProximity, event: Event, hops: int, now: float) -> list[Effect]:
        """Deliver if we were inside when the event was raised."""
        viewer = viewer_at(self.location, event, now)
        if reason := unfit(event, self.settings.lifespan_s, now):
            return [Drop(reason, event.id[:MAX_NAME])]
        if not entry.was_raised_around(event, viewer.position):
            return [Drop(DropReason.RAISED_BEFORE_ARRIVAL, event.id)]
        self.recent_events.add(event.id)
        return [Deliver(event, subscription, hops) for subscription in self.subscriptions.accepting(event, viewer)]

    def unreachable(self, packet: Packet) -> list[Effect]:
        """The neighbour is gone. A request is sent again after the next beacon has shown another route."""
        match packet:
            case Recovered():
                return [Drop(DropReason.ROUTE_TO_CONSUMER_BROKEN, packet.event.id)]
            case RecoveryRequest():
                return [Drop(DropReason.ROUTE_TO_PRODUCER_BROKEN)]
        return []


def unfit(event: Event, lifespan_s: float, now: float) -> DropReason | None:
    """Why an event is dropped without further tests; None if it is not."""
    if len(event.id) > MAX_NAME:
        return DropReason.EVENT_ID_TOO_LONG
    return DropReason.EXPIRED if has_expired(event, lifespan_s, now) else None
