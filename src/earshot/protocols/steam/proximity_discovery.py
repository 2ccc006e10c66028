"""The proximity discovery service: beacons, and the list of proximities relevant where this node stands.

STEAM, section 4.5, on every node whether it produces, consumes or neither. Beacons go to everybody
inside a proximity and are passed on to its boundary; groups are joined only for what is wanted here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from earshot.errors import EventError
from earshot.events import EventType
from earshot.geometry import Position
from earshot.protocols.machine import Machine
from earshot.protocols.steam.announcements import Announced, Announcements
from earshot.protocols.steam.group_ids import group_id
from earshot.protocols.steam.relevant_proximities import Advert, Key, Relevant, RelevantProximities
from earshot.protocols.steam.settings import SteamSettings
from earshot.records import DropReason
from earshot.wire import Packet


class Beacon(Packet, frozen=True, array_like=True, tag="steam-beacon"):
    """What producers announce, to everybody in their proximities: the well-known discovery group."""

    adverts: tuple[Advert, ...]


@dataclass(slots=True)
class Onward:
    """An announcement waiting to be passed on, and how often it has been heard since."""

    advert: Advert
    heard_again: int = 0


class Client(Protocol):
    """Who is told of the proximities that are wanted here, as they come, speak and go."""

    def wants(self, subject: str) -> bool:
        """Whether a subscription here matches that type."""
        ...

    def discovered(self, entry: Relevant, now: float) -> None:
        """A wanted proximity is new here, or back; its group is joined."""
        ...

    def heard_from(self, entry: Relevant, now: float) -> None:
        """A wanted proximity has sent another beacon."""
        ...

    def lost(self, entry: Relevant, gone_silent: bool) -> None:
        """It is no longer here: we left it, or its beacons stopped."""
        ...


class ProximityDiscovery:
    """The service of one node. `machine` carries out what it asks; `client` is told."""

    def __init__(self, machine: Machine, client: Client, announcements: Announcements, settings: SteamSettings) -> None:
        self.machine = machine
        self.client = client
        self.announcements = announcements
        self.settings = settings
        self.relevant = RelevantProximities(settings.proximity_limit, settings.announcement_limit)
        self.onward: dict[Key, Onward] = {}
        self.rounds_run = False

    # Advertising event types: section 4.5.2.

    def run_rounds(self, now: float) -> None:
        """See to it that rounds go on, from now if they do not."""
        if not self.rounds_run:
            self.rounds_run = True
            self._start_next_round(now)

    def _start_next_round(self, now: float) -> None:
        jitter = self.settings.beacon_jitter * (2 * self.machine.random.random() - 1)
        self.machine.start_timer("round", now + self.settings.beacon_interval_s * (1 + jitter))

    def on_round(self, position: Position, now: float, needed: bool) -> None:
        """Verify the list against where we are now, and advertise our own announcements. Rounds go on while
        they are `needed` for other reasons, or there is something to verify or to advertise."""
        for entry in list(self.relevant.by_key.values()):
            if entry.advert.producer == self.machine.node:
                continue
            if now - entry.heard_at > self.settings.expiry_s:
                self.forget(entry, gone_silent=True)
            elif not entry.mobile and not entry.advert.contains(position):
                self.forget(entry)
        self.advertise(self.announcements.by_subject.values(), position, now)
        if needed or self.announcements.by_subject or self.relevant.by_key:
            self._start_next_round(now)
        else:
            self.rounds_run = False

    def advertise(self, announcements: Iterable[Announced], position: Position, now: float) -> None:
        """Steps 1 and 3 of section 4.5.1: each with its latest naval, to whom the radio reaches."""
        adverts = []
        for announced in announcements:
            announced.beacon += 1
            advert = announced.advert(self.machine.node, position, self.settings.range_m)
            self.locate(advert, self.machine.node, position, now)
            if not announced.out_of_reach(position, self.settings.range_m):
                adverts.append(advert)
        self._beacon(adverts)

    def _beacon(self, adverts: list[Advert]) -> None:
        size = self.settings.adverts_per_beacon
        for first in range(0, len(adverts), size):
            self.machine.broadcast(Beacon(tuple(adverts[first : first + size])))

    # Locating event types: section 4.5.3.

    def on_beacon(self, beacon: Beacon, sender: str, now: float) -> None:
        """Note what is relevant here, and pass it on where it reaches farther than its producer."""
        by_key, onward, here = self.relevant.by_key, self.onward, self.machine.node
        position: Position | None = None
        for advert in beacon.adverts:
            known = by_key.get((advert.producer, advert.subject))
            if known is not None and not advert.newer_than(known.advert):
                if onward:
                    self._heard_again(advert)
            elif advert.producer != here:
                position = position or self.machine.location.position(now)
                entry = self.locate(advert, sender, position, now)
                if entry is not None and advert.multi_hop and self._may_pass_on(entry, now):
                    self._pass_on(entry, now)
        if onward and self.settings.beacon_gather_s == 0.0:
            self.send_onward()

    def locate(self, advert: Advert, via: str, position: Position, now: float) -> Relevant | None:
        """Step 4 of section 4.5.1: list it if we are inside, forget it if we are not."""
        known = self.relevant.by_key.get(advert.key)
        again = known is not None and known.advert.epoch == advert.epoch
        if known is not None and again and not advert.same_announcement(known.advert):
            self.machine.drop(DropReason.ANNOUNCEMENT_CHANGED)
            return None
        inside = advert.contains(position)
        if known is not None and not (inside and again):
            self.forget(known)
        if not inside:
            return None
        if known is None or not again:
            return self._discover(advert, via, now)
        known.advert, known.via, known.heard_at = advert, via, now
        if known.wanted:
            self.client.heard_from(known, now)
        return known

    def _discover(self, advert: Advert, via: str, now: float) -> Relevant | None:
        """A proximity that is new here."""
        wanted = self.client.wants(advert.subject)
        event_type = self._described_type(advert)
        reason = advert.fault() or self.relevant.no_room_for(advert.producer, wanted)
        if event_type is None or reason:
            self.machine.drop(reason or DropReason.IMPOSSIBLE_TYPE)
            return None
        entry = Relevant(advert, event_type, group_id(advert.subject, advert.proximity), via, now)
        if self.relevant.add(entry) is not None:
            self.machine.drop(DropReason.PROXIMITY_LIST_FULL)
        if wanted:
            self.join(entry)
            self.client.discovered(entry, now)
        self.run_rounds(now)
        return entry

    def _described_type(self, advert: Advert) -> EventType | None:
        """The type as advertised; none where it is none, or is not what we ourselves announce by that name."""
        try:
            described = EventType(advert.subject, advert.content, advert.attributes)
        except EventError:
            return None
        own = self.announcements.by_subject.get(advert.subject)
        return described if own is None or own.event_type.content == described.content else None

    # Passing beacons on to a proximity's boundary: section 4.5.

    def _heard_again(self, advert: Advert) -> None:
        """Once enough neighbours have passed it on, we need not."""
        waiting = self.onward.get(advert.key)
        if waiting is not None and waiting.advert.beacon == advert.beacon:
            waiting.heard_again += 1
            if waiting.heard_again >= self.settings.beacon_copies:
                del self.onward[advert.key]

    def _may_pass_on(self, entry: Relevant, now: float) -> bool:
        """However fast a producer beacons, nobody multiplies more than two of them a period."""
        if entry.advert.hops + 1 >= self.settings.hop_limit:
            self.machine.drop(DropReason.HOP_LIMIT)
            return False
        return now - entry.forwarded_at >= self.settings.beacon_interval_s / 2

    def _pass_on(self, entry: Relevant, now: float) -> None:
        """Together with what else is on its way."""
        entry.forwarded_at = now
        if not self.onward and self.settings.beacon_gather_s > 0.0:
            patience_s = self.settings.beacon_gather_s * (0.5 + self.machine.random.random() / 2)
            self.machine.start_timer("onward", now + patience_s)
        self.onward[entry.key] = Onward(msgspec.structs.replace(entry.advert, hops=entry.advert.hops + 1))

    def send_onward(self) -> None:
        """What has been gathered goes out."""
        self._beacon([waiting.advert for waiting in self.onward.values()])
        self.onward.clear()

    # Groups: step 6 of section 4.5.1.

    def join(self, entry: Relevant) -> None:
        """A subscription matches it."""
        if self.relevant.want(entry):
            self.machine.join_group(entry.group)

    def leave(self, entry: Relevant) -> None:
        """No subscription matches it any more."""
        if self.relevant.unwant(entry):
            self.machine.leave_group(entry.group)

    def forget(self, entry: Relevant, gone_silent: bool = False) -> None:
        """Off the list."""
        self.onward.pop(entry.key, None)
        self.client.lost(entry, gone_silent)
        if self.relevant.remove(entry):
            self.machine.leave_group(entry.group)

    def start(self, now: float, needed: bool) -> None:
        """The node comes up, without any timer running."""
        self.rounds_run = False
        self.onward.clear()
        if needed or self.announcements.by_subject or self.relevant.by_key:
            self.run_rounds(now)

    def stop(self) -> None:
        """The node goes down in good order."""
        for entry in list(self.relevant.by_key.values()):
            self.forget(entry)
        if self.onward:
            self.onward.clear()
            self.machine.cancel_timer("onward")
        if self.rounds_run:
            self.rounds_run = False
            self.machine.cancel_timer("round")
