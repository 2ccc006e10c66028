"""DRIP, by Q. Yuan and J. Wu (ICDCS Workshops 2007): brokers by ability, regions by delay, copies for those who moved.

The k ablest nodes become brokers and announce themselves; every node attaches to the one whose
announcements reach it soonest, and so regions form and move with the nodes. A broker matches events
against all subscriptions, floods them in its own region where they are wanted, and spreads m copies
that are carried to the l brokers nearest to each other subscriber. Departures: docs/papers/drip.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable
from random import Random

from msgspec import structs

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys
from earshot.protocols.drip.broker import Broker
from earshot.protocols.drip.election import Election
from earshot.protocols.drip.packets import (
    Abilities,
    Announcement,
    Bridge,
    Copy,
    Exchange,
    InRegion,
    Letter,
    Notice,
    Publication,
    Quit,
    Register,
    Retirement,
    Taken,
)
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.settings import DripSettings
from earshot.protocols.drip.sharing import MultiCopyMultiDestination, Sharing
from earshot.protocols.machine import NOTHING, Effects, Location, Machine, Timer
from earshot.records import DropReason
from earshot.wire import Packet


class Drip(Machine):
    name = "drip"
    paper = "Yuan, Wu: DRIP, a Dynamic Voronoi Regions-Based Publish/Subscribe Protocol (ICDCS Workshops 2007)"
    medium = "radio"
    Settings = DripSettings
    ability: float = 1.0
    "Symbol xi: how able this node is; its host says."

    def __init__(self, node: str, settings: DripSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: DripSettings = settings
        self.subscriptions = LocalSubscriptions()
        self.election = Election(self)
        self.roll = self.election.roll
        self.regions = Regions(node, settings)
        self.broker: Broker | None = None
        "What only brokers have."
        self.local_broker = ""
        "The broker this node is attached to; a broker is its own."
        self.heard = RecentKeys(settings.memory)
        "Events that were flooded in a region, and retirements: (event, region)."
        self.told = RecentKeys(settings.memory)
        "Events our own people were told of."
        self.had: deque[str] = deque(maxlen=settings.known_events)
        "The last of them."
        self.brokered = RecentKeys(settings.memory)
        "Events this node has had as a broker."
        self.unsent: dict[str, Publication] = {}
        "Publications that wait for a broker."
        self.soon = Jitter(self, settings.jitter_s, random, settings.memory)
        self.passing: dict[Hashable, tuple[Announcement, float]] = {}
        "Of each broker the announcement that waits to be passed on, and since when."
        self.sequence = 0
        self.settling = False
        "Whether the choice of a broker is about to be looked at again."
        self.submitted: tuple[str, ...] = ()
        "What is wanted, as brokers get it."
        self.since = 0.0
        "When the present subscriptions were first wanted."
        self.registered_at = -math.inf
        self.reported: dict[tuple[str, str], tuple[float, int]] = {}
        "Bridges' reports passed on for each pair of regions: since when, and how many."

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is Announcement:
            regions = self.regions
            if packet.roll == self.roll.digest and sender in regions.neighbours:
                known = regions.brokers.get(packet.broker)
                if known is not None:
                    if packet.sequence == known.sequence and now - packet.sent_at >= known.delay_s:
                        # Most of what is heard: a copy of what is known, and no faster.
                        regions.neighbours[sender] = (packet.attached, now)
                        if packet.hops <= known.hops and len(known.upstreams) < self.settings.upstreams:
                            regions.also_over(sender, known)
                        return NOTHING
                elif (
                    self.broker is None
                    and packet.broker not in self.passing
                    and regions.turns_away(packet, sender, now - packet.sent_at, now)
                ):
                    # And most of the rest: news of a broker that is none of the nearest.
                    regions.neighbours[sender] = (packet.attached, now)
                    return NOTHING
            self.on_announcement(packet, sender, now)
        elif isinstance(packet, Letter):
            self.on_letter(packet, sender, now)
        elif type(packet) is InRegion:
            self.on_in_region(packet, now)
        elif type(packet) is Abilities:
            self.election.on_abilities(packet, sender, now)
        elif type(packet) is Retirement:
            self.on_retirement(packet, now)
        else:
            return NOTHING
        return self.effects() if self._effects else NOTHING

    # What applications do.

    def start(self, now: float) -> Effects:
        settings = self.settings
        # Numbers go on rising through a restart, so that nobody takes new announcements for old ones.
        self.sequence = int(now * 1000)
        self.election.start(now)
        self.start_timer("bridge", at=now + settings.bootstrap_s + self.random.random() * settings.bridge_interval_s)
        self.start_timer("renew", at=now + settings.bootstrap_s + self.random.random() * settings.register_interval_s)
        return self.effects()

    def stop(self, now: float) -> Effects:
        """Leave in good order: what this node was for others, others can be."""
        if self.broker is not None:
            self._step_down(now)
        elif self.subscriptions.by_id and self.local_broker:
            self.post(Quit(self.node, self.local_broker, "", 1, now), now)
        self.election.stop(now)
        return self.effects()

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription)
        self._wants_now(now)
        self.register(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        if self.subscriptions.remove(subscription) is not None:
            self._wants_now(now)
            self.register(now)
        return self.effects()

    def publish(self, event: Event, now: float) -> Effects:
        """Section V.A.2: to the local broker."""
        self.told.add(event.id)
        self._publish(Publication(self.node, self.local_broker, "", 1, event, 1), now)
        return self.effects()

    def _publish(self, letter: Publication, now: float) -> None:
        event = letter.event
        if self.broker is not None:
            self.broker.on_event(event, letter.hops - 1, now)
        elif self.local_broker:
            self.post(letter, now)
        else:
            self._keep_unsent(letter)

    def _keep_unsent(self, letter: Publication) -> None:
        if len(self.unsent) >= self.settings.memory_events:
            self.drop(DropReason.TOO_MANY_EVENTS_WAITING, letter.event.id)
        else:
            self.unsent[letter.event.id] = letter

    # Section IV.A: who is a broker.

    def on_elect(self, now: float) -> None:
        """The k ablest come forward, whoever is not one of them any more steps down."""
        chosen = self.election.chooses(now)
        if chosen and self.broker is None:
            self._come_forward(now)
        elif not chosen and self.broker is not None:
            self._step_down(now)

    def _come_forward(self, now: float) -> None:
        self.regions.centre(is_broker=True)
        self.broker = Broker(self, self.sharing(), now)
        self.note("broker", self.node)
        self._attach(now)
        # Brokers that come forward together do not all announce themselves at once.
        self.start_timer("announce", at=now + self.random.random() * self.settings.announce_interval_s / 2)
        self.broker.contact_soon(now)

    def _step_down(self, now: float) -> None:
        assert self.broker is not None
        for held in self.broker.events.held.values():
            if held.destinations and not self.broker.sharing.is_done(held):
                self.drop(DropReason.NO_LONGER_A_BROKER, held.event.id)
        self.broker = None
        self.regions.centre(is_broker=False)
        self.sequence += 1
        self.broadcast(Retirement(self.node, self.sequence))
        self.cancel_timer("announce")
        self.cancel_timer("contact")
        self.note("broker", "")
        self._attach(now)

    def sharing(self) -> Sharing:
        """How this protocol's brokers share events."""
        return MultiCopyMultiDestination(self.settings)

    def on_watch(self, now: float) -> None:
        """Once an announcement interval: who has fallen silent?"""
        self.regions.forget(now)
        if self.broker is not None:
            self.broker.look_around(now)
        self.election.watch(now)

    # Section IV.B: announcements and attachment.

    def on_announce(self, now: float) -> None:
        self.sequence += 1
        self.broadcast(Announcement(self.node, self.sequence, now, 1, self.node, self.roll.digest))
        self.start_timer("announce", at=now + self.settings.announce_interval_s)

    def on_announcement(self, announcement: Announcement, sender: str, now: float) -> None:
        """Discard it unless it improves the list of the nearest; otherwise pass it on."""
        self.regions.sees(sender, announcement.attached, now)
        if announcement.roll != self.roll.digest:
            self.election.compare(announcement.roll, now)
        broker = announcement.broker
        if self.broker is not None:
            self.broker.heard(broker, announcement.sent_at, now)
        if not self.regions.hear(announcement, sender, now):
            if broker in self.passing and announcement.sequence == self.passing[broker][0].sequence:
                self._improve(announcement, now)
            return
        self.election.on_sign_of_life(broker, announcement.sent_at, now)
        self._settle(now)
        if announcement.hops >= self.settings.hop_limit:
            return
        if self.settings.jitter_s == 0.0:
            self._pass_on(announcement, now, now)
        else:
            if broker not in self.passing:
                self.start_timer(("pass", broker), at=now + self.random.random() * self.settings.jitter_s)
            self.passing[broker] = (announcement, now)

    def _improve(self, announcement: Announcement, now: float) -> None:
        """A faster copy of what waits to be passed on."""
        waiting, since = self.passing[announcement.broker]
        if now - announcement.sent_at < since - waiting.sent_at:
            self.passing[announcement.broker] = (announcement, now)

    def _pass_on(self, announcement: Announcement, since: float, now: float) -> None:
        sent_at = announcement.sent_at + (now - since)
        self.broadcast(
            Announcement(
                announcement.broker,
                announcement.sequence,
                sent_at,
                announcement.hops + 1,
                self.local_broker,
                self.roll.digest,
            )
        )

    def on_retirement(self, retirement: Retirement, now: float) -> None:
        """A broker is none any more: whoever had it on its list drops it and passes that on."""
        if not self.regions.drop(retirement.broker, retirement.sequence, now):
            return
        self.passing.pop(retirement.broker, None)
        self.soon.send(retirement, now)
        self._settle(now)

    def _settle(self, now: float) -> None:
        """Look at the choice of a broker again, once the copies of this announcement have come."""
        if self.settings.jitter_s == 0.0:
            self._attach(now)
        elif not self.settling:
            self.settling = True
            # A faster copy may have waited longer on its way.
            self.start_timer("settle", at=now + 6 * self.settings.jitter_s)

    def _attach(self, now: float) -> None:
        """Section IV.B: always to the nearest."""
        if self.broker is not None:
            chosen = self.node
        else:
            chosen, nearest = "", self.regions.nearest()
            if nearest is not None:
                present = self.regions.brokers.get(self.local_broker, nearest)
                by_far = present.delay_s - nearest.delay_s > self.settings.handover_margin_s
                chosen = nearest.broker if by_far else present.broker
                self.start_timer("expire", at=self.regions.next_end(now))
        if chosen != self.local_broker:
            self._hand_over(chosen, now)
        if self.local_broker and self.unsent:
            waiting, self.unsent = list(self.unsent.values()), {}
            for letter in waiting:
                self._publish(structs.replace(letter, target=self.local_broker), now)

    def _hand_over(self, chosen: str, now: float) -> None:
        """Section V.A.1: quit the old broker, register with the new one."""
        before, self.local_broker = self.local_broker, chosen
        if not chosen:
            self.election.alone_since = now
        self.note("attached", chosen)
        if self.subscriptions.by_id:
            if before and before != self.node:
                self.post(Quit(self.node, before, "", 1, now), now)
            self.register(now, self.had)

    def register(self, now: float, known: Iterable[str] = ()) -> None:
        """Section V.A.1: submit the subscriptions and the nearest brokers to the local broker."""
        if not self.local_broker:
            return
        self.registered_at = now
        letter = Register(
            self.node,
            self.local_broker,
            "",
            1,
            now,
            self.since,
            self.regions.nearest_names(),
            self.submitted,
            tuple(known),
        )
        if self.broker is not None:
            self.broker.on_register(letter, now)
        else:
            self.post(letter, now)

    def _wants_now(self, now: float) -> None:
        """What is wanted has changed: write it down as brokers get it."""
        self.submitted = tuple(sorted({str(one.filter) for one in self.subscriptions.by_id.values()}))
        self.since = now

    # Section V.B.1: bridges.

    def on_bridge_time(self, now: float) -> None:
        self.start_timer("bridge", at=now + self.settings.bridge_interval_s)
        if other := self.regions.bridges_to(now):
            self.post(Bridge(self.node, self.local_broker, "", 1, other), now)

    # Letters.

    def post(self, letter: Letter, now: float, sender: str = "") -> None:
        """Send a letter on its way, not back to whom it came from; what is for this node itself is read at once."""
        if letter.target == self.node:
            self._read(letter, now)
        elif letter.legs > self.settings.hop_limit:
            self._give_up(letter, DropReason.HOP_LIMIT, now)
        elif next_hop := self.regions.next_hop(letter, now, sender):
            self.send(next_hop, structs.replace(letter, via="") if letter.via == self.node else letter)
        else:
            self._give_up(letter, DropReason.NO_ROUTE, now)

    def on_letter(self, letter: Letter, sender: str, now: float) -> None:
        if letter.origin == self.node:
            # Routes have changed under it, and it came back.
            self._give_up(letter, DropReason.NO_ROUTE, now)
            return
        if letter.legs < 1:
            self.drop(DropReason.NO_RETURN_ROUTE)
            return
        self.regions.came(letter, sender, now)
        if letter.target == self.node:
            self._read(letter, now)
        elif type(letter) is not Bridge or self._passes_report(letter, now):
            onward = structs.replace(letter, legs=letter.legs + 1)
            if isinstance(onward, Publication | Copy | Notice):
                onward = structs.replace(onward, hops=onward.hops + 1)
            self.post(onward, now, sender)

    def _passes_report(self, letter: Bridge, now: float) -> bool:
        """A few bridges are enough for two regions: further reports of this interval end here."""
        pair = (letter.target, letter.other)
        since, count = self.reported.get(pair, (-math.inf, 0))
        if now - since > self.settings.bridge_interval_s / 2:
            since, count = now, 0
        if len(self.reported) >= self.settings.memory:
            self.reported.clear()
        self.reported[pair] = (since, count + 1)
        return count < self.settings.bridge_reports

    def _read(self, letter: Letter, now: float) -> None:
        if type(letter) is Notice:
            self.tell(letter.event, letter.hops, now)
        elif type(letter) is Publication:
            # Meant for a broker; whoever is none any more knows one.
            self._publish(structs.replace(letter, target=self.local_broker), now)
        elif self.broker is None:
            self.drop(DropReason.NOT_A_BROKER, _event_of(letter))
        elif type(letter) is Copy:
            self.broker.on_copy(letter, now)
        elif type(letter) is Taken:
            self.broker.on_taken(letter, now)
        elif type(letter) is Register:
            self.broker.on_register(letter, now)
        elif type(letter) is Quit:
            self.broker.on_quit(letter, now)
        elif type(letter) is Bridge:
            self.broker.on_bridge(letter, now)
        elif type(letter) is Exchange:
            self.broker.on_exchange(letter, now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """A neighbour is gone: try the next way the letter could go."""
        if isinstance(packet, Letter):
            self.regions.lost(peer, packet)
            self.post(packet, now)
        return self.effects()

    def _give_up(self, letter: Letter, reason: DropReason, now: float) -> None:
        if type(letter) is Publication:
            # Any broker will do: the local one of whoever has the event now.
            if self.local_broker not in ("", letter.target) and reason == DropReason.NO_ROUTE:
                self.post(structs.replace(letter, target=self.local_broker), now)
            else:
                self._keep_unsent(structs.replace(letter, legs=1))
        else:
            self.drop(reason, _event_of(letter))

    # Section V.A.3: notification.

    def on_in_region(self, packet: InRegion, now: float) -> None:
        """Tell our own people; pass it on inside its region."""
        event = packet.event
        if not self.heard.add((event.id, packet.region)):
            return
        if now - event.time > self.lifespan_s(event):
            self.drop(DropReason.EXPIRED, event.id)
            return
        self.tell(event, packet.hops, now)
        if packet.region == self.local_broker and packet.hops < self.settings.hop_limit:
            self.soon.send(InRegion(event, packet.hops + 1, packet.region), now)

    def tell(self, event: Event, hops: int, now: float) -> None:
        """Deliver the event once, where it is wanted on this node."""
        if self.subscriptions.by_id and self.told.add(event.id):
            wanted = self.subscriptions.accepting(event, self.viewer(now))
            for subscription in wanted:
                self.deliver(event, subscription, hops)
            if wanted:
                self.had.append(event.id)

    def lifespan_s(self, event: Event) -> float:
        return self.settings.lifespan_s if event.lifespan_s is None else event.lifespan_s

    # Timers.

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case ("pass", broker):
                if waiting := self.passing.pop(broker, None):
                    self._pass_on(*waiting, now)
            case "settle":
                self.settling = False
                self._attach(now)
            case "expire":
                self.regions.forget(now)
                self._attach(now)
            case "contact":
                if self.broker is not None:
                    self.broker.contact(now)
            case "announce":
                if self.broker is not None:
                    self.on_announce(now)
            case "bridge":
                self.on_bridge_time(now)
            case "renew":
                due_at = self.registered_at + self.settings.register_interval_s
                self.start_timer("renew", at=due_at if due_at > now else now + self.settings.register_interval_s)
                if self.subscriptions.by_id and due_at <= now:
                    self.register(now)
            case "roll":
                self.election.tell(now)
            case "elect":
                self.on_elect(now)
            case "watch":
                self.on_watch(now)
            case _:
                self.soon.wake(timer)
        return self.effects() if self._effects else NOTHING


def _event_of(letter: Letter) -> str:
    event = getattr(letter, "event", None)
    return event.id if isinstance(event, Event) else ""
