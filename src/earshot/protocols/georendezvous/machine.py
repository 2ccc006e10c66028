"""GeoRendezvous, by N. Carvalho, F. Araújo and L. Rodrigues (DEBS 2006): topics hashed to places.

A topic hashes to n positions; the home cell of each is a rendezvous cell. Publishers advertise at
all of them, subscribers subscribe at the m nearest; where the two meet, the cell asks the publisher
for its notifications. The subscriber keeps the path with the fewest hops and prunes the others.
Everything is soft state, renewed by its owner.

How packets reach cells (section 2.1) is in `cell_hash_routing.py`, where topics hash to in `settings.py`, what a
rendezvous cell does in `rendezvous_cell.py`, which path a subscriber keeps in `path_choice.py`. Departures from the
paper: docs/papers/georendezvous.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from msgspec import structs

from earshot.errors import UsageError
from earshot.events import Event
from earshot.filters import Subscription
from earshot.filters.language.syntax import Always
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, event_types_of
from earshot.protocols.georendezvous.cell_hash_routing import (
    Beacon,
    CellAppeared,
    CellHashRouting,
    Heading,
    NodeEntered,
    RoutedPacket,
)
from earshot.protocols.georendezvous.cells import Cell, adjacent, cells_apart
from earshot.protocols.georendezvous.path_choice import Offer, PathChoice
from earshot.protocols.georendezvous.rendezvous_cell import (
    Keep,
    Notifications,
    Notify,
    NotifyAround,
    Prune,
    RendezvousCell,
    Request,
)
from earshot.protocols.georendezvous.rendezvous_table import Advertise, PointKey, Subscribe
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings, nearest_points
from earshot.protocols.georendezvous.shared_links import SharedLinks
from earshot.protocols.machine import (
    NOTHING,
    QUIET_CHANNEL,
    Announcement,
    Channel,
    Effect,
    Effects,
    Location,
    Machine,
    Send,
    Timer,
)
from earshot.protocols.tuning import Surroundings, Tunable, clamp, guess, rounded
from earshot.records import DropReason
from earshot.wire import Packet

BURST_S: Final = 0.05
"Between two packets of a burst, or as many as are sent together."
MOST_ARRIVALS: Final = 8
"A packet that arrives at this node may cause another that arrives here too: at most this number in a row."
FAR_CELLS: Final = 12
"With shared links, a subscriber this many cells from its point reports each second cell that it enters."
MOST_RENEWALS: Final = 8
"However far away its point is, a record is renewed every eighth time at least."


@dataclass(slots=True)
class AskingCell:
    """A rendezvous cell that has asked for a topic's notifications, and until when."""

    cell: Cell
    expires_at: float


@dataclass(slots=True)
class PublishedTopic:
    """A topic that this node publishes."""

    since: float
    announced: bool
    "False: it is advertised, without an announcement, for as long as events come."
    last_at: float
    advertised_from: Cell
    asking: dict[int, AskingCell] = field(default_factory=dict)
    "By index of the rendezvous point."
    held: list[tuple[Event, set[int]]] = field(default_factory=list)
    "Events of a fresh announcement, and through which points each has gone."


@dataclass(slots=True)
class SubscribedTopic:
    """A topic that this node subscribes to."""

    points: list[int]
    "The m nearest."
    leaving: dict[int, float]
    "Those that are no longer among them, and since when."
    subscribed_from: Cell
    "The cell this node was in when it last sent its subscriptions."
    chosen_from: Cell
    "The cell this node was in when it last began to choose paths."
    filters: tuple[str, ...]
    choices: dict[str, PathChoice] = field(default_factory=dict)
    "By publisher."


class GeoRendezvous(Machine):
    """One node: publisher, subscriber, member of rendezvous cells and forwarder."""

    name = "georendezvous"
    paper = "Carvalho, Araújo, Rodrigues: Reducing Latency in Rendezvous-Based Publish-Subscribe Systems (DEBS 2006)"
    needs_two_way_links = True
    Settings = GeoRendezvousSettings

    def __init__(
        self,
        node: str,
        settings: GeoRendezvousSettings,
        location: Location,
        random: Random,
        channel: Channel = QUIET_CHANNEL,
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.settings: GeoRendezvousSettings = settings
        self.routing = (
            SharedLinks(node, settings, random)
            if settings.links == "shared"
            else CellHashRouting(node, settings, random)
        )
        margin_m = settings.place_margin_cells * settings.side_m if settings.content_at_rendezvous else math.inf
        self.rendezvous = RendezvousCell(
            self.routing,
            self.target,
            settings.record_lifespan_s * (MOST_RENEWALS if settings.renew_cells else 1),
            settings.handover_delay_s,
            settings.keep_records,
            margin_m,
            asks_again=not settings.asked_first,
            budgets=self.budgets,
        )
        self.renewed = 0
        "How often this node has renewed its records."
        self.published: dict[str, PublishedTopic] = {}
        self.subscribed: dict[str, SubscribedTopic] = {}
        self.local = LocalSubscriptions()
        self.seen = RecentKeys(settings.remembered_events, self.budgets)
        self._renewing = False
        self._arrivals = 0
        "How many packets that arrived here have caused the one that is handled now."
        self.in_turn: deque[RoutedPacket] = deque()
        "Records that wait for their turn to be sent."

    @classmethod
    def doubts(cls, settings: GeoRendezvousSettings) -> tuple[str, ...]:
        return settings.doubts()

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        """Cells that are seldom empty, and as few replicas of a topic as a subscriber has to go far for."""
        smallest, largest = rounded(around.range_m / 4.0), float(math.floor(around.range_m / math.sqrt(2.0)))
        occupied = math.sqrt(2.0 / around.density_per_m2)
        side = clamp(occupied, around.range_m / (2.0 * math.sqrt(2.0)), largest)
        held = around.density_per_m2 * side**2
        far = math.hypot(around.width_m, around.height_m) > 8.0 * around.range_m
        return (
            Tunable("rendezvous", 2 if far else 1, 1, 4, "each replica costs every publisher its advertisements"),
            Tunable("cell_side_m", guess(side, smallest, largest), smallest, largest, f"a cell holds {held:.1f} nodes"),
        )

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        # Ordered by how often they come; most beacons change nothing.
        if isinstance(packet, Beacon):
            self.on_beacon(packet, sender, now)
        elif isinstance(packet, RoutedPacket):
            self.update_cell(now)
            self.route(packet, now)
        elif type(packet) is Notifications:
            self.update_cell(now)
            self.notify_all(packet.each(), now)
        elif type(packet) is NotifyAround:
            self.update_cell(now)
            self.notify_all(self.rendezvous.on_event_around(packet, now), now)
        elif type(packet) is Keep:
            self.carry_out(self.rendezvous.on_keep(packet, now), now)
        return self.effects() if self._effects else NOTHING

    def arrived(self, packet: RoutedPacket, now: float) -> None:
        """A packet for this node, or for the home cell that it is a member of."""
        match packet:
            case Advertise() | Subscribe():
                self.carry_out(self.rendezvous.on_record(packet, now), now)
            case Request():
                self.on_request(packet, now)
            case Notify() if packet.heading.node:
                self.on_notification(packet, now)
            case Notify() if self.settings.links == "shared":
                self.notify_all(self.rendezvous.on_event(packet, now), now)
            case Notify():
                self.carry_out(self.rendezvous.on_event(packet, now), now)
            case Prune() if packet.subscriber:
                self.carry_out(self.rendezvous.on_prune(packet, now), now)
            case Prune():
                self.on_path_unwanted(packet)

    def wake(self, timer: Timer, now: float) -> Effects:
        self.update_cell(now)
        match timer:
            case "beacon":
                self.carry_out(self.rendezvous.expire(now), now)
                self.carry_out(self.routing.on_beacon_timer(now), now)
            case "listened":
                self.carry_out(self.routing.listened(), now)
            case "burst":
                self.route_burst(now)
            case "renew":
                self.renew(now)
            case ("choose", str() as topic, str() as publisher):
                self.choose(topic, publisher, now)
            case ("release", str() as topic):
                if topic in self.published:
                    self.published[topic].held.clear()
            case ("hand", str() as newcomer):
                self.carry_out(self.rendezvous.hand_keys_to(newcomer, now), now)
        return self.effects()

    def start(self, now: float) -> Effects:
        return self.routing.start(self.location.position(now), now)

    def stop(self, now: float) -> Effects:
        """Withdraw this node's records; the last member of a cell hands its keys over."""
        self.update_cell(now)
        for topic in sorted(self.published):
            self.advertise(topic, now, withdraw=True)
        for topic in sorted(self.subscribed):
            self.withdraw(topic, now)
        self.broadcast(Beacon(cell=None))
        self.carry_out(self.rendezvous.stop(now), now)
        return self.effects()

    # Section 2.1: cells and routing.

    def target(self, key: PointKey) -> Cell:
        """The cell that a rendezvous point lies in."""
        return self.routing.grid.cell_of(self.settings.point(*key))

    def route(self, packet: RoutedPacket, now: float) -> None:
        """To the packet's next hop, or to this node where it has arrived."""
        self.take_step(self.routing.route(packet, now), now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        self.update_cell(now)
        self.routing.forget(peer)
        if isinstance(packet, RoutedPacket):
            self.take_step(self.routing.unreachable(packet, now), now)
        elif isinstance(packet, Notifications):
            self.take_steps([self.routing.unreachable(single, now) for single in packet.each()], now)
        return self.effects()

    def notify_all(self, orders: Sequence[Effect | RoutedPacket], now: float) -> None:
        """Carry out these orders; notifications of one event with the same next hop go there as one packet."""
        singles = [order for order in orders if isinstance(order, Notify) and order.heading.node]
        self.carry_out([order for order in orders if order not in singles], now)
        self.take_steps([self.routing.route(single, now) for single in singles], now)

    def take_steps(self, steps: Sequence[Effect | RoutedPacket | None], now: float) -> None:
        by_peer: dict[str, list[Notify]] = {}
        for step in steps:
            if isinstance(step, Send) and isinstance(step.packet, Notify) and step.packet.heading.walk is None:
                by_peer.setdefault(step.peer, []).append(step.packet)
            else:
                self.take_step(step, now)
        for peer, group in by_peer.items():
            self.send(peer, group[0] if len(group) == 1 else Notifications.of(group))

    def take_step(self, step: Effect | RoutedPacket | None, now: float) -> None:
        if isinstance(step, RoutedPacket):
            if self._arrivals >= MOST_ARRIVALS:
                self.drop(DropReason.HOP_LIMIT)
                return
            self._arrivals += 1
            try:
                self.arrived(step, now)
            finally:
                self._arrivals -= 1
        elif step is not None:
            self._effects.append(step)

    def carry_out(self, orders: Sequence[Effect | RoutedPacket], now: float) -> None:
        """What the node's parts have decided: hand effects to the host, and route packets."""
        for order in orders:
            if isinstance(order, RoutedPacket):
                self.route(order, now)
            else:
                self._effects.append(order)

    def on_beacon(self, beacon: Beacon, sender: str, now: float) -> None:
        match self.routing.on_beacon(beacon, sender, now):
            case CellAppeared(cell):
                self.carry_out(self.rendezvous.cell_appeared(cell, now), now)
            case NodeEntered(node, since):
                self.carry_out(self.rendezvous.newcomer(node, now, since), now)

    def update_cell(self, now: float) -> None:
        """In another cell than before: send a beacon at once, and tell the rendezvous cells when the members of
        the cell they know, who hear the cells next to theirs, can no longer find this node."""
        left = self.routing.move_to(self.location.position(now))
        if left is None:
            return
        self.broadcast(self.routing.beacon())
        self.carry_out(self.rendezvous.cell_left(left not in self.routing.members, now), now)
        here = self.routing.cell
        for topic, published in sorted(self.published.items()):
            # With shared links only the next renewal says where a publisher is: its notifications find their way.
            if self.settings.links == "own" and not adjacent(published.advertised_from, here):
                self.advertise(topic, now)
        for topic, subscribed in sorted(self.subscribed.items()):
            if cells_apart(subscribed.subscribed_from, here) >= self.reported_move(topic, now):
                self.send_subscriptions(topic, now)

    def reported_move(self, topic: str, now: float) -> int:
        """How many cells a subscriber may move before it reports that. Reports to distant points cost the most."""
        if self.settings.links == "own":
            return 2
        position = self.location.position(now)
        away_m = min(position.distance_to(point) for point in self.settings.points(topic))
        return 2 if away_m >= FAR_CELLS * self.routing.grid.side_m else 1

    # Sections 2.2 and 2.3: the publisher.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """Section 2.3: an advertisement to each of the n rendezvous points."""
        self.update_cell(now)
        self.published_topic(announcement.event_type.subject, now).announced = True
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        if subject in self.published:
            self.update_cell(now)
            self.advertise(subject, now, withdraw=True)
            del self.published[subject]
        return self.effects()

    def publish(self, event: Event, now: float) -> Effects:
        """To every rendezvous cell that has asked. This node's own applications know the event already."""
        self.update_cell(now)
        published = self.published_topic(event.type, now)
        published.last_at = now
        self.seen.add(event.id)
        sent: set[int] = set()
        if now < published.since + self.settings.hold_s:
            published.held.append((event, sent))
            self.start_timer(("release", event.type), at=now + self.settings.hold_s)
        for index, asking in sorted(published.asking.items()):
            if asking.expires_at > now:
                sent.add(index)
                self.notify(event, index, asking.cell, now)
            else:
                published.asking.pop(index, None)
        return self.effects()

    def published_topic(self, topic: str, now: float) -> PublishedTopic:
        """What this node knows of a topic that it publishes; a new one is advertised first."""
        known = self.published.get(topic)
        if known is None:
            known = PublishedTopic(now, announced=False, last_at=now, advertised_from=self.routing.cell)
            self.published[topic] = known
            if self.settings.asked_first:
                points = range(self.settings.rendezvous)
                known.asking = {index: AskingCell(self.target((topic, index)), math.inf) for index in points}
            self.advertise(topic, now)
            self.keep_renewing(now)
        return known

    def renewals(self, topic: str, index: int, now: float) -> int:
        """Of the renewals of a record at this point only each n-th one is sent. Returns n."""
        away_m = self.location.position(now).distance_to(self.settings.point(topic, index))
        return min(self.settings.renewals(away_m / self.routing.grid.side_m), MOST_RENEWALS)

    def advertise(self, topic: str, now: float, withdraw: bool = False, renewal: bool = False) -> None:
        """Section 2.3: to all n points, or as a renewal to those whose turn it is; or withdraw it."""
        cell = self.routing.cell
        self.published[topic].advertised_from = cell
        for index in range(self.settings.rendezvous):
            every = self.renewals(topic, index, now)
            if renewal and (self.renewed + index) % every:
                continue
            lifespan_s = 0.0 if withdraw else self.settings.record_lifespan_s * every
            heading = Heading(self.target((topic, index)))
            # Where the publisher says that it has been asked, the rendezvous cell need not ask it again.
            asked = self.settings.asked_first and self.is_asked(topic, index, now)
            record = Advertise(heading, 0, topic, index, self.node, cell, now, lifespan_s, asked)
            if withdraw:
                self.route(record, now)
            else:
                self.route_in_turn(record, now)

    def is_asked(self, topic: str, index: int, now: float) -> bool:
        """Whether that rendezvous cell has asked for notifications."""
        asking = self.published[topic].asking.get(index)
        return asking is not None and asking.expires_at > now + self.settings.renew_interval_s

    def route_in_turn(self, packet: RoutedPacket, now: float) -> None:
        """Route a record: at once, or after those that wait already."""
        if not self.settings.burst_packets:
            self.route(packet, now)
            return
        if not self.in_turn:
            self.start_timer("burst", at=now + BURST_S * self.random.random())
        self.in_turn.append(packet)

    def route_burst(self, now: float) -> None:
        """The next records in turn, once the node has heard its neighbours."""
        for _ in range(0 if self.routing.is_listening else min(self.settings.burst_packets, len(self.in_turn))):
            self.route(self.in_turn.popleft(), now)
        if self.in_turn:
            self.start_timer("burst", at=now + BURST_S)

    def notify(self, event: Event, index: int, rendezvous: Cell, now: float) -> None:
        self.route(Notify(Heading(rendezvous), 0, event, self.node, index, rendezvous), now)

    def on_request(self, request: Request, now: float) -> None:
        """Section 2.2: the rendezvous cell has forwarded its first subscription."""
        topic, index, cell = request.topic, request.index, request.rendezvous
        published = self.published.get(topic)
        if published is None:
            withdrawn = Advertise(Heading(cell), 0, topic, index, self.node, self.routing.cell, now, 0.0)
            self.route(withdrawn, now)
            return
        lifespan_s = min(request.lifespan_s, self.rendezvous.record_lifespan_s)
        published.asking[index] = AskingCell(cell, now + lifespan_s)
        for event, sent in published.held:
            if index not in sent:
                sent.add(index)
                self.notify(event, index, cell, now)

    def on_path_unwanted(self, prune: Prune) -> None:
        """Section 2.3: no subscriber is left behind that rendezvous cell."""
        published = self.published.get(prune.topic)
        if published is not None:
            published.asking.pop(prune.index, None)

    # Sections 2.3 and 2.4: the subscriber.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """Section 2.4: a subscription to each of the m nearest rendezvous points."""
        topics = event_types_of(subscription.filter)
        if topics is None:
            raise UsageError(
                f"GeoRendezvous hashes a topic to its places, so a subscription must name its event type; "
                f"{str(subscription.filter)!r} could match any: write it as 'Type: condition' or '/Type[condition]'"
            )
        self.update_cell(now)
        replaced = self.local.by_id.get(subscription.id)
        if replaced is not None:
            topics |= event_types_of(replaced.filter) or frozenset()
        self.local.add(subscription, now)
        for topic in sorted(topics):
            self.on_subscriptions_changed(topic, now)
        self.keep_renewing(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        known = self.local.remove(subscription)
        if known is not None:
            self.update_cell(now)
            for topic in sorted(event_types_of(known.filter) or ()):
                self.on_subscriptions_changed(topic, now)
        return self.effects()

    def on_subscriptions_changed(self, topic: str, now: float) -> None:
        """Send the rendezvous cells what matters to them of the local subscriptions to this topic."""
        filters = self.filters(topic)
        known = self.subscribed.get(topic)
        if filters is None:
            if known is not None:
                self.withdraw(topic, now)
                del self.subscribed[topic]
        elif known is None:
            cell = self.routing.cell
            self.subscribed[topic] = SubscribedTopic([], {}, cell, cell, filters)
            self.send_subscriptions(topic, now)
        elif known.filters != filters:
            known.filters = filters
            self.send_subscriptions(topic, now)

    def filters(self, topic: str) -> tuple[str, ...] | None:
        """What this node wants of the topic: () for all of it, None for nothing.

        Only the consumer itself can evaluate terms about its own place.
        """
        local = (known.filter for known in self.local.by_id.values())
        wanted = [filter.without_viewer_terms() for filter in local if topic in (event_types_of(filter) or ())]
        if not wanted:
            return None
        if not self.settings.content_at_rendezvous or any(filter.condition == Always() for filter in wanted):
            return ()
        return tuple(sorted({str(filter) for filter in wanted}))

    def send_subscriptions(self, topic: str, now: float, renewal: bool = False) -> None:
        """To the m points nearest to where this node is now; as a renewal, to those whose turn it is."""
        subscribed = self.subscribed[topic]
        here = self.location.position(now)
        points = nearest_points(self.settings.points(topic), here, self.settings.nearest)
        new = set(points) - set(subscribed.points)
        for index in subscribed.points:
            if index not in points:
                subscribed.leaving[index] = now
        for index in points:
            subscribed.leaving.pop(index, None)
        subscribed.points = points
        subscribed.subscribed_from = self.routing.cell
        for index in (*points, *sorted(subscribed.leaving)):
            every = self.renewals(topic, index, now)
            if renewal and index not in new and (self.renewed + index) % every:
                continue
            pruned = sorted(publisher for publisher, choice in subscribed.choices.items() if index in choice.pruned)
            record = self.subscription(topic, index, now, self.settings.record_lifespan_s * every)
            self.route_in_turn(structs.replace(record, filters=subscribed.filters, pruned=tuple(pruned)), now)

    def subscription(self, topic: str, index: int, now: float, lifespan_s: float = 0.0) -> Subscribe:
        """A subscription at one point; without a lifespan it is withdrawn there."""
        heading = Heading(self.target((topic, index)))
        return Subscribe(heading, 0, topic, index, self.node, self.routing.cell, now, lifespan_s)

    def withdraw(self, topic: str, now: float) -> None:
        """Unsubscribe at every point."""
        subscribed = self.subscribed[topic]
        for index in (*subscribed.points, *sorted(subscribed.leaving)):
            self.route(self.subscription(topic, index, now), now)

    def on_notification(self, packet: Notify, now: float) -> None:
        """Section 2.3: the first comes through all points; the path with the fewest hops stays."""
        topic, publisher = packet.event.type, packet.publisher
        subscribed = self.subscribed.get(topic)
        if subscribed is None:
            self.route(self.subscription(topic, packet.index, now), now)
            return
        if self.seen.add(packet.event.id):
            self.local.deliver_local(self, packet.event, packet.hops, now)
        choice = subscribed.choices.setdefault(publisher, PathChoice())
        choice.heard_at = now
        distance_m = self.location.position(now).distance_to(self.settings.point(topic, packet.index))
        first = not choice.offers
        unwanted = choice.offer(Offer(packet.hops, distance_m, packet.index, packet.rendezvous))
        self.prune(topic, publisher, unwanted, now)
        if choice.best is None:
            if choice.offers.keys() >= set(subscribed.points):
                self.prune(topic, publisher, choice.choose(), now)
            elif first:
                self.start_timer(("choose", topic, publisher), at=now + self.settings.choose_after_s)

    def choose(self, topic: str, publisher: str, now: float) -> None:
        """Some paths have brought nothing in time: choose among those that have."""
        subscribed = self.subscribed.get(topic)
        choice = subscribed.choices.get(publisher) if subscribed is not None else None
        if choice is not None and choice.best is None:
            self.prune(topic, publisher, choice.choose(), now)

    def prune(self, topic: str, publisher: str, offers: list[Offer], now: float) -> None:
        for offer in offers:
            self.route(Prune(Heading(offer.rendezvous), 0, topic, offer.point, publisher, self.node, now), now)

    # Section 2.2: clients that fail to renew are removed.

    def keep_renewing(self, now: float) -> None:
        if not self._renewing:
            self._renewing = True
            self.start_timer("renew", at=now + self.settings.renew_interval_s)

    def renew(self, now: float) -> None:
        """Renew all records; subscribers that have moved choose their points and paths again."""
        self._renewing = False
        self.renewed += 1
        for topic, published in sorted(self.published.items()):
            if published.announced or now - published.last_at < self.settings.record_lifespan_s:
                self.advertise(topic, now, renewal=True)
            else:
                del self.published[topic]
        forgotten = now - 10 * self.settings.record_lifespan_s
        for topic, subscribed in sorted(self.subscribed.items()):
            for index, since in sorted(subscribed.leaving.items()):
                if since <= now - self.settings.choose_after_s:
                    del subscribed.leaving[index]
                    self.route(self.subscription(topic, index, now), now)
            for publisher in [name for name, choice in subscribed.choices.items() if choice.heard_at < forgotten]:
                del subscribed.choices[publisher]
            if subscribed.chosen_from != self.routing.cell:
                subscribed.chosen_from = self.routing.cell
                subscribed.choices.clear()
            self.send_subscriptions(topic, now, renewal=True)
        if self.published or self.subscribed:
            self.keep_renewing(now)
