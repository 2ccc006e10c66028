"""DRIP, by Q. Yuan and J. Wu (ICDCS Workshops 2007): brokers by ability, regions by delay, copies for those who moved.

The k ablest nodes become brokers and announce themselves; every node attaches to the broker whose
announcements reach it first, and so regions form and move with the nodes. A broker matches events
against all subscriptions, floods them in its own region where they are wanted, and spreads m copies
that are carried to the l brokers nearest to each other subscriber. Departures: docs/papers/drip.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from random import Random

from msgspec import structs

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.common.byte_budget import BoundedTable
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.drip import packets
from earshot.protocols.drip.broker import Action, Broker
from earshot.protocols.drip.delay import brokers_for
from earshot.protocols.drip.election import Election, Role
from earshot.protocols.drip.packets import DripSettings, RoutedPacket
from earshot.protocols.drip.region_broker import RegionBroker
from earshot.protocols.drip.region_copies import RegionCopies
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import Epidemic, Sharing
from earshot.protocols.machine import QUIET_CHANNEL, Channel, Effects, Location, Machine, Timer
from earshot.protocols.tuning import Surroundings, Tunable, clamp
from earshot.records import DropReason
from earshot.wire import Packet

ENOUGH_IDLE = 0.5
"A channel that is idle for at least this share of the time has room for all control traffic."
WANTED_DELAY_S = 30.0
"What the first guess of the number of brokers aims at."


class Drip(Machine):
    name = "drip"
    paper = "Yuan, Wu: DRIP, a Dynamic Voronoi Regions-Based Publish/Subscribe Protocol (ICDCS Workshops 2007)"
    needs_two_way_links = True
    Settings = DripSettings
    ability: float = 1.0
    "Symbol xi: this node's detecting ability, set by its host."

    def __init__(
        self, node: str, settings: DripSettings, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.settings: DripSettings = settings
        self.subscriptions = LocalSubscriptions()
        self.election = Election(node, settings, random)
        self.regions = Regions(node, settings, self.budgets)
        self.broker: Broker | None = None
        "What only brokers have; not None exactly while `election.role.is_broker`."
        self.local_broker = ""
        "The broker that this node is attached to; a broker is its own."
        self.sequence = 0
        self.jittered = Jitter(settings.jitter_s, random, settings.memory)
        self.forwarding: dict[str, tuple[packets.BrokerAnnouncement, float]] = {}
        "For each broker the announcement that waits to be forwarded, and since when."
        self.copies_heard: dict[str, int] = {}
        "How often each announcement that waits to be forwarded has been heard."
        self.settling = False
        "Whether a timer runs to choose the local broker again."
        self.submitted: tuple[str, ...] = ()
        "The subscriptions as brokers receive them."
        self.since = 0.0
        "When the subscriptions last changed."
        self.registered_at = -math.inf
        self.waiting: dict[str, packets.PublishedEvent] = {}
        "Published events that wait for a broker."
        self.flooded = RecentKeys(settings.memory, self.budgets)
        "Events heard in a region's flood: (event, region)."
        self.delivered = RecentKeys(settings.memory, self.budgets)
        "Events that this node's subscriptions have been matched with."
        self.recent_events: deque[str] = deque(maxlen=settings.known_events)
        "The last events that were delivered here."
        self.brokered = RecentKeys(settings.memory, self.budgets)
        "Events that this node has held as a broker."
        self.copies = RegionCopies(settings, self.budgets)
        self.reported: BoundedTable[tuple[str, str], tuple[float, int]] = BoundedTable(settings.memory, self.budgets)
        "Bridge reports forwarded for each pair of regions: since when, and how many."

    @classmethod
    def uses_routing(cls, settings: DripSettings) -> bool:
        return settings.routes == "network"

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        """Section V.C: the most brokers (k) whose copies arrive in time, if nodes walk half a range in a step; never
        more than the smallest network has nodes."""
        usual, most = DripSettings(), math.floor(min(around.present, around.fewest_nodes))
        fewest = usual.nearest + usual.copies + 1
        if most <= fewest:
            return ()
        step_m = around.range_m / 2.0
        grid = max(4.0 * fewest, around.width_m * around.height_m / step_m**2)
        steps = max(1.0, WANTED_DELAY_S * around.median_speed_m_s / step_m)
        analysed = brokers_for(steps, usual.nearest, usual.copies, grid).k
        brokers = round(clamp(analysed if analysed is not None else fewest, fewest, most))
        reason = f"copies arrive within {WANTED_DELAY_S:g} s" if analysed is not None else "fewest brokers, least delay"
        return (
            Tunable("brokers", brokers, fewest, most, f"{reason}, by the paper's analysis"),
            Tunable("copies", usual.copies, 1, 4, "symbol m: more copies arrive sooner and cost more"),
            Tunable("nearest", usual.nearest, 2, 6, "symbol l: a subscriber that moves needs more destinations"),
        )

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case packets.BrokerAnnouncement():
                self.on_announcement(packet, sender, now)
            case packets.Retirement():
                self.on_retirement(packet, now)
            case packets.Abilities():
                self.on_abilities(packet, sender, now)
            case packets.InRegion():
                self.on_in_region(packet, now)
            case packets.RegionCopy():
                self.on_region_copy(packet, sender, now)
            case RoutedPacket():
                self.on_routed(packet, sender, now)
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case "forward-abilities":
                self.carry_out(self.election.forward(), now)
            case "elect":
                self.on_elect(now)
            case "watch":
                self.on_watch(now)
            case "announce" if self.broker is not None:
                self.announce_broker(now)
            case ("forward", str(broker)):
                self.forward_announcement(broker, now)
            case "settle":
                self.settling = False
                self.attach(now)
            case "expire":
                self.regions.forget(now)
                self.attach(now)
            case "renew":
                self.on_renew(now)
            case "bridge":
                self.on_bridge_time(now)
            case "contact" if self.broker is not None:
                self.carry_out(self.broker.contact(now), now)
            case "stranded":
                self.carry_out(self.copies.try_again(self._next_hops(now), now), now)
            case _:
                self._effects += self.jittered.wake(timer)
        return self.effects()

    def start(self, now: float) -> Effects:
        settings = self.settings
        # Numbers keep growing through a restart, so that new announcements are not taken for old ones.
        self.sequence = int(now * 1000)
        self.carry_out(self.election.start(self.ability, now), now)
        for timer, interval_s in (("bridge", settings.bridge_interval_s), ("renew", settings.register_interval_s)):
            self.start_timer(timer, at=now + settings.bootstrap_s + self.random.random() * interval_s)
        return self.effects()

    def stop(self, now: float) -> Effects:
        """Leave in good order: others take over what this node did for them."""
        if self.broker is not None:
            self._step_down(now)
        elif self.subscriptions.by_id and self.local_broker:
            self.route(packets.Quit(self.node, self.local_broker, "", 1, now), now)
        self.carry_out(self.election.stop(now), now)
        return self.effects()

    def carry_out(self, actions: Iterable[Action], now: float) -> None:
        """Do what a part of this machine has decided: hand effects to the host, and route packets."""
        for action in actions:
            if isinstance(action, RoutedPacket):
                self.route(action, now)
            elif isinstance(action, packets.RegionCopy):
                self.spread(action, now, again=True)
            else:
                self._effects.append(action)

    # Section IV.A: the k ablest nodes become brokers.

    def on_abilities(self, packet: packets.Abilities, sender: str, now: float) -> None:
        if self.election.role is not Role.GATHERING and not self.local_broker:
            # Without brokers there are no announcements to learn the neighbours from.
            self.regions.hear_neighbour(sender, "", now)
        self.carry_out(self.election.on_abilities(packet, self._sign_of_life, now), now)

    def _sign_of_life(self, node: str) -> float:
        """When this node last learned that the other one is a broker and lives; never: minus infinity."""
        nearby = self.regions.brokers.get(node)
        announced_at = -math.inf if nearby is None else nearby.sent_at
        if self.broker is None:
            return announced_at
        return max(announced_at, self.broker.signs_of_life.get(node, -math.inf))

    def on_elect(self, now: float) -> None:
        """The k ablest become brokers; a broker that is no longer among them steps down."""
        self.carry_out(self.election.decide(now), now)
        if self.election.role.is_broker and self.broker is None:
            self._become_broker(now)
        elif not self.election.role.is_broker and self.broker is not None:
            self._step_down(now)

    def _become_broker(self, now: float) -> None:
        self.regions.set_broker(True)
        self.broker = self.make_broker(now)
        self.note("broker", self.node)
        self.attach(now)
        # Brokers that are elected together do not all announce themselves at once.
        self.start_timer("announce", at=now + self.random.random() * self.settings.announce_interval_s / 2)
        self.carry_out([self.broker.contact_timer(now)], now)

    def _step_down(self, now: float) -> None:
        assert self.broker is not None
        for held in self.broker.unfinished():
            self.drop(DropReason.NO_LONGER_A_BROKER, held.event.id)
        self.broker = None
        self.regions.set_broker(False)
        self.sequence += 1
        self.broadcast(packets.Retirement(self.node, self.sequence))
        self.cancel_timer("announce")
        self.cancel_timer("contact")
        self.note("broker", "")
        self.attach(now)

    def make_broker(self, now: float) -> Broker:
        """A broker that shares events as this protocol's brokers do."""
        if self.settings.brokers_know == "regions":
            return RegionBroker(self.node, self.settings, self.regions, self.brokered, now)
        return Broker(self.node, self.settings, self.regions, Sharing(self.settings), self.brokered, now)

    def on_watch(self, now: float) -> None:
        """Once an announcement interval: remove subscribers and replace brokers that have fallen silent."""
        self.regions.forget(now)
        self.reported.forget(lambda report: now - report[0] > self.settings.bridge_interval_s / 2)
        signs: dict[str, float] = {}
        if self.broker is not None:
            self.carry_out(self.broker.expire_subscribers(now), now)
            signs = self.broker.signs_of_life
        self.carry_out(self.election.watch(signs, self.regions.neighbours, self.local_broker, now), now)

    # Section IV.B: announcements and attachment.

    def announce_broker(self, now: float) -> None:
        """A broker periodically broadcasts that it exists."""
        self.sequence += 1
        digest = self.election.candidates.digest
        stated = (self.node, self.sequence, now, 1, self.node, digest)
        if self.settings.next_hop == "nearest":
            motion = self.motion(now)
            self.broadcast(packets.PlacedAnnouncement(*stated, motion[:2], motion))
        else:
            self.broadcast(packets.BrokerAnnouncement(*stated))
        self.start_timer("announce", at=now + self.stretched(self.settings.announce_interval_s, now))

    def stretched(self, interval_s: float, now: float) -> float:
        """The interval on the channel as this node has found it: a busy one slows control traffic."""
        idle_share = 1.0 - min(self.channel.busy_share(now), 1.0)
        stretch = self.settings.channel_stretch
        return interval_s * min(max(1.0, ENOUGH_IDLE / idle_share if idle_share else stretch), stretch)

    def on_announcement(self, announcement: packets.BrokerAnnouncement, sender: str, now: float) -> None:
        """Discard it unless it improves the list of the nearest brokers; otherwise forward it."""
        broker = announcement.broker
        self.regions.hear_neighbour(sender, announcement.attached, now)
        if isinstance(announcement, packets.PlacedAnnouncement):
            self.regions.hear_motion(sender, announcement.motion, now)
        if announcement.digest != self.election.candidates.digest:
            self.carry_out(self.election.compare(announcement.digest, now), now)
        if self.broker is not None:
            self.broker.on_sign_of_life(broker, announcement.sent_at, now)
        waiting = self.forwarding.get(broker)
        if waiting is not None and announcement.sequence == waiting[0].sequence:
            self.copies_heard[broker] += 1
        if not self.regions.hear(announcement, sender, now):
            if waiting is not None:
                known, since = waiting
                if announcement.sequence == known.sequence and now - announcement.sent_at < since - known.sent_at:
                    self.forwarding[broker] = (announcement, now)  # a slightly faster copy of the one that waits
            return
        self.carry_out(self.election.on_sign_of_life(broker, announcement.sent_at, now), now)
        self._settle(now)
        if announcement.hops >= self.settings.hop_limit:
            return
        self.forwarding[broker] = (announcement, now)
        if waiting is None or announcement.sequence != waiting[0].sequence:
            self.copies_heard[broker] = 1
        if self.settings.jitter_s == 0.0:
            self.forward_announcement(broker, now)
        elif waiting is None:
            self.start_timer(("forward", broker), at=now + self.random.random() * self.settings.jitter_s)

    def forward_announcement(self, broker: str, now: float) -> None:
        """The wait does not count as delay: the time-stamp moves with it."""
        if waiting := self.forwarding.pop(broker, None):
            announcement, since = waiting
            if 0 < self.settings.enough_copies <= self.copies_heard.pop(broker, 0):
                return
            onward = structs.replace(
                announcement,
                sent_at=announcement.sent_at + (now - since),
                hops=announcement.hops + 1,
                attached=self.local_broker,
                digest=self.election.candidates.digest,
            )
            if isinstance(onward, packets.PlacedAnnouncement):
                onward = structs.replace(onward, motion=self.motion(now))
            self.broadcast(onward)

    def motion(self, now: float) -> packets.Motion:
        """Where this node is and how it moves, in whole metres."""
        at, velocity = self.location.position(now), self.location.velocity(now)
        return round(at.x_m), round(at.y_m), round(velocity.x_m_s), round(velocity.y_m_s)

    def on_retirement(self, retirement: packets.Retirement, now: float) -> None:
        """A node is no longer a broker: each node that had it on its list removes it and forwards this."""
        if self.regions.retire(retirement.broker, retirement.sequence, now):
            self.forwarding.pop(retirement.broker, None)
            self._effects.append(self.jittered.send(retirement, now))
            self._settle(now)

    def _settle(self, now: float) -> None:
        """Choose the local broker again when the other copies of this announcement have arrived."""
        if self.settings.jitter_s == 0.0:
            self.attach(now)
        elif not self.settling:
            self.settling = True
            # A copy over a faster path may have waited longer.
            self.start_timer("settle", at=now + 6 * self.settings.jitter_s)

    def attach(self, now: float) -> None:
        """Always attach to the nearest broker. A broker is its own."""
        chosen = ""
        if self.broker is not None:
            chosen = self.node
        elif nearest := self.regions.nearest():
            present = self.regions.brokers.get(self.local_broker, nearest)
            is_nearer = present.delay_s - nearest.delay_s > self.settings.handover_margin_s
            chosen = nearest.broker if is_nearer else present.broker
            self.start_timer("expire", at=self.regions.next_expiry(now))
        if chosen != self.local_broker:
            self._hand_over(chosen, now)
        if self.local_broker and self.waiting:
            waiting, self.waiting = self.waiting, {}
            for packet in waiting.values():
                self._submit(packet, now)

    # Section V.A.1: subscription.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription, now)
        self._subscriptions_changed(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        if self.subscriptions.remove(subscription) is not None:
            self._subscriptions_changed(now)
        return self.effects()

    def _subscriptions_changed(self, now: float) -> None:
        self.submitted = tuple(sorted({str(one.filter) for one in self.subscriptions.by_id.values()}))
        self.since = now
        self.register(now)

    def _hand_over(self, chosen: str, now: float) -> None:
        """Quit the old broker and register with the new one."""
        before, self.local_broker = self.local_broker, chosen
        if not chosen:
            self.election.detached_since = now
        self.note("attached", chosen)
        if self.subscriptions.by_id:
            if before and before != self.node:
                self.route(packets.Quit(self.node, before, "", 1, now), now)
            self.register(now, self.recent_events)

    def register(self, now: float, known: Iterable[str] = ()) -> None:
        """Submit the subscriptions and the nearest brokers to the local broker."""
        if self.local_broker:
            self.registered_at = now
            nearest = self.regions.nearest_names()
            addressed = (self.node, self.local_broker, "", 1)
            stated = (*addressed, now, self.since, nearest, self.submitted, tuple(known))
            if self.settings.brokers_know == "regions":
                self.route(packets.PlacedRegistration(*stated, self.location.position(now)), now)
            else:
                self.route(packets.Registration(*stated), now)

    def on_renew(self, now: float) -> None:
        """Register again when the last registration is one interval old."""
        self._forget_waiting(now)
        interval_s = self.stretched(self.settings.register_after_s(self.regions.hops_to(self.local_broker)), now)
        due_at = self.registered_at + interval_s
        self.start_timer("renew", at=due_at if due_at > now else now + interval_s)
        if self.subscriptions.by_id and due_at <= now:
            self.register(now)

    # Section V.A.2: publication.

    def publish(self, event: Event, now: float) -> Effects:
        self.delivered.add(event.id)
        self._submit(packets.PublishedEvent(self.node, "", "", 1, event, 1), now)
        return self.effects()

    def _submit(self, packet: packets.PublishedEvent, now: float) -> None:
        """Send an event to the local broker, or keep it until there is one."""
        if self.local_broker:
            self.route(structs.replace(packet, target=self.local_broker), now)
        else:
            self._keep_waiting(packet)

    def _keep_waiting(self, packet: packets.PublishedEvent) -> None:
        if len(self.waiting) >= self.settings.memory_events:
            self.drop(DropReason.TOO_MANY_EVENTS_WAITING, packet.event.id)
        else:
            self.waiting[packet.event.id] = packet

    def _forget_waiting(self, now: float) -> None:
        """Drop the events whose life ended before a broker was found."""
        for id, packet in list(self.waiting.items()):
            if now > self.settings.end_of_life(packet.event):
                del self.waiting[id]
                self.drop(DropReason.EXPIRED, id)

    # Section V.A.3: notification.

    def on_in_region(self, packet: packets.InRegion, now: float) -> None:
        """Deliver the event here and forward it inside its region."""
        event = packet.event
        if packet.region == self.node or not self.flooded.add((event.id, packet.region)):
            return
        if has_expired(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return
        self.deliver_local(event, packet.hops, now)
        if packet.region == self.local_broker and packet.hops < self.settings.hop_limit:
            self._effects.append(self.jittered.send(structs.replace(packet, hops=packet.hops + 1), now))

    def deliver_local(self, event: Event, hops: int, now: float) -> None:
        """Deliver the event once to this node's subscriptions that accept it."""
        if self.subscriptions.by_id and self.delivered.add(event.id):
            accepting = self.subscriptions.accepting(event, self.viewer_at(event, now))
            for subscription in accepting:
                self.deliver(event, subscription, hops)
            if accepting:
                self.recent_events.append(event.id)

    # Section V.B.1: bridges, and packets that are routed to one node.

    def on_bridge_time(self, now: float) -> None:
        """A bridge periodically reports to its local broker, unless brokers hear each other's announcements."""
        self.start_timer("bridge", at=now + self.settings.bridge_interval_s)
        if self.settings.announced_to == "all":
            return
        if other := self.regions.bridged_broker(now):
            self.route(packets.BridgeReport(self.node, self.local_broker, "", 1, other), now)

    def route(self, packet: RoutedPacket, now: float, sender: str = "") -> None:
        """Send a packet to its next hop, but not back to its sender. Receive a packet for this node at once."""
        if packet.target == self.node:
            self.receive(packet, now)
        elif packet.legs > self.settings.hop_limit:
            self._give_up(packet, DropReason.HOP_LIMIT, now)
        elif self.settings.routes == "network":
            # From a bridge to its neighbour in the other region is one hop (V.B.1).
            across = self.regions.foreign_neighbour(packet.target, now) if packet.via == self.node else packet.via
            onward = structs.replace(packet, via="") if packet.via == self.node else packet
            self.send(across or packet.target, onward)
        elif next_hop := self.regions.next_hop(packet, now, sender, self.location.position(now)):
            self.send(next_hop, structs.replace(packet, via="") if packet.via == self.node else packet)
        else:
            self._give_up(packet, DropReason.NO_ROUTE, now)

    def on_routed(self, packet: RoutedPacket, sender: str, now: float) -> None:
        if packet.origin == self.node:
            # Routes have changed since it was sent, and it came back.
            self._give_up(packet, DropReason.NO_ROUTE, now)
            return
        if packet.legs < 1:
            self.drop(DropReason.NO_RETURN_ROUTE)
            return
        self.regions.learn_return_route(packet.origin, sender, now)
        if packet.target == self.node:
            self.receive(packet, now)
        elif not isinstance(packet, packets.BridgeReport) or self._forwards_report(packet, now):
            onward = structs.replace(packet, legs=packet.legs + 1)
            if isinstance(onward, packets.PublishedEvent | packets.EventCopy | packets.Notice):
                onward = structs.replace(onward, hops=onward.hops + 1)
            self.route(onward, now, sender)

    def _forwards_report(self, report: packets.BridgeReport, now: float) -> bool:
        """A few bridges are enough for two regions: a node forwards no more reports in this interval."""
        pair = (report.target, report.other)
        since, count = self.reported.get(pair) or (-math.inf, 0)
        if now - since > self.settings.bridge_interval_s / 2:
            since, count = now, 0
        self.reported.put(pair, (since, count + 1))
        return count < self.settings.bridge_reports

    def receive(self, packet: RoutedPacket, now: float) -> None:
        """A packet has reached its target. Most are for brokers."""
        broker = self.broker
        match packet:
            case packets.Notice():
                self.deliver_local(packet.event, packet.hops, now)
            case packets.PublishedEvent() if broker is None:
                self._submit(packet, now)
            case _ if broker is None:
                self.drop(DropReason.NOT_A_BROKER, _event_id(packet))
            case _:
                self.carry_out(broker.receive(packet, now), now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """A neighbour has moved away: try the packet's next route."""
        if isinstance(packet, RoutedPacket):
            self.regions.lose_neighbour(peer, (packet.target, packet.via))
            if self.settings.routes == "announcements":
                self.route(packet, now)
            elif peer == packet.target:
                self._give_up(packet, DropReason.NO_ROUTE, now)
            else:
                self.route(structs.replace(packet, via="", legs=packet.legs + 1), now)  # without that bridge
        elif isinstance(packet, packets.RegionCopy):
            self.regions.lose_neighbour(peer, packet.targets)
            self.spread(structs.replace(packet, hops=packet.hops - 1), now, again=True)
        return self.effects()

    # Beyond the paper: copies for several regions.

    def on_region_copy(self, copy: packets.RegionCopy, sender: str, now: float) -> None:
        if copy.hops < 1:
            self.drop(DropReason.HOP_LIMIT, copy.event.id)
            return
        onward = tuple(target for target in copy.targets if target != self.node)
        if len(onward) < len(copy.targets):
            if isinstance(self.broker, RegionBroker):
                self.carry_out(self.broker.on_region_copy(copy, now), now)
            else:
                self.drop(DropReason.NOT_A_BROKER, copy.event.id)
        if onward:
            self.spread(structs.replace(copy, targets=onward), now, sender)

    def spread(self, copy: packets.RegionCopy, now: float, sender: str = "", again: bool = False) -> None:
        self.carry_out(self.copies.divide(copy, self._next_hops(now, sender), now, again), now)

    def _next_hops(self, now: float, sender: str = "") -> Callable[[str], str]:
        """The next hop to each broker, not back to the sender."""
        here = self.location.position(now)
        return lambda target: self.regions.nearest_hop(target, now, (sender,), here)

    def _give_up(self, packet: RoutedPacket, reason: DropReason, now: float) -> None:
        """Drop a packet that has no route; a published event goes to another broker, or waits here for one."""
        if not isinstance(packet, packets.PublishedEvent):
            self.drop(reason, _event_id(packet))
        elif reason == DropReason.NO_ROUTE and self.local_broker not in ("", packet.target):
            self.route(structs.replace(packet, target=self.local_broker), now)
        else:
            self._keep_waiting(structs.replace(packet, legs=1))


def _event_id(packet: RoutedPacket) -> str:
    event = getattr(packet, "event", None)
    return event.id if isinstance(event, Event) else ""


class SimpleFramework(Drip):
    """Section VI.A: SF, the baseline. The same regions, but brokers share every event as an epidemic, whether or
    not a subscriber in another region wants it."""

    name = "drip-sf"
    paper = "Yuan, Wu: the simple framework SF of the DRIP paper, an epidemic between brokers (2007)"

    def make_broker(self, now: float) -> Broker:
        return Broker(self.node, self.settings, self.regions, Epidemic(self.settings), self.brokered, now)
