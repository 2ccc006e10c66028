"""GeoRendezvous, by N. Carvalho, F. Araújo and L. Rodrigues (DEBS 2006): topics hashed to places.

A topic hashes to n positions; the home cell of each is a rendezvous cell. Publishers advertise at
all of them, subscribers subscribe at the m nearest; where the two meet, the cell asks the publisher
for its notifications. The subscriber keeps the path with the fewest hops and prunes the others.
Everything is soft state, renewed by its owner. Departures from the paper: docs/papers/georendezvous.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from earshot.errors import UsageError
from earshot.events import Event
from earshot.filters import Subscription
from earshot.filters.language.syntax import Always
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys
from earshot.protocols.georendezvous.cell_hash_routing import Beacon, CellHashRouting, Heading, RoutedPacket
from earshot.protocols.georendezvous.cells import Cell, direction_to
from earshot.protocols.georendezvous.path_choice import Offer, PathChoice
from earshot.protocols.georendezvous.rendezvous_cell import Keep, Notify, Prune, RendezvousCell, Request
from earshot.protocols.georendezvous.rendezvous_points import nearest_points, topics_of
from earshot.protocols.georendezvous.rendezvous_table import Advertise, Key, Subscribe
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings
from earshot.protocols.machine import NOTHING, Announcement, Effects, Location, Machine, Timer
from earshot.wire import Packet


@dataclass(slots=True)
class Way:
    """A rendezvous cell that has asked for a topic's notifications, and until when."""

    cell: Cell
    expires_at: float


@dataclass(slots=True)
class Publication:
    """A topic this node publishes."""

    since: float
    announced: bool
    "False: nobody announced it; it is advertised for as long as events come."
    last_at: float
    advertised_from: Cell
    ways: dict[int, Way] = field(default_factory=dict)
    held: list[tuple[Event, set[int]]] = field(default_factory=list)
    "Events of a fresh announcement, and through which points each has gone."


@dataclass(slots=True)
class Interest:
    """A topic this node subscribes to."""

    points: list[int]
    "The m nearest,"
    leaving: dict[int, float]
    "those that were so until that time,"
    subscribed_from: Cell
    "where this node was when it last said so,"
    chosen_from: Cell
    "and when it last began to choose."
    filters: tuple[str, ...]
    choices: dict[str, PathChoice] = field(default_factory=dict)
    "By publisher."


class GeoRendezvous(Machine):
    """One node: publisher, subscriber, member of rendezvous cells and forwarder alike."""

    name = "georendezvous"
    paper = "Carvalho, Araújo, Rodrigues: Reducing Latency in Rendezvous-Based Publish-Subscribe Systems (DEBS 2006)"
    medium = "radio"
    Settings = GeoRendezvousSettings

    def __init__(self, node: str, settings: GeoRendezvousSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: GeoRendezvousSettings = settings
        self.routing = CellHashRouting(self, self, settings)
        self.rendezvous = RendezvousCell(
            self, self.routing, self.target, settings.record_lifespan_s, settings.handover_delay_s
        )
        self.publications: dict[str, Publication] = {}
        self.interests: dict[str, Interest] = {}
        self.local = LocalSubscriptions()
        self.seen = RecentKeys(settings.remembered_events)
        self._renewing = False

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        # The order of how often they come; most beacons say nothing new.
        if type(packet) is Beacon:
            self.routing.on_beacon(packet, sender, now)
        elif isinstance(packet, RoutedPacket):
            self.routing.look_where(now)
            self.routing.route(packet, now)
        elif type(packet) is Keep:
            self.rendezvous.on_keep(packet, now)
        return self.effects() if self._effects else NOTHING

    def arrived(self, packet: RoutedPacket, now: float) -> None:
        """A packet for this node, or for the home cell that it is a member of."""
        match packet:
            case Advertise() | Subscribe():
                self.rendezvous.on_record(packet, now)
            case Request():
                self.on_request(packet, now)
            case Notify() if packet.heading.node:
                self.on_notification(packet, now)
            case Notify():
                self.rendezvous.on_event(packet, now)
            case Prune() if packet.subscriber:
                self.rendezvous.on_prune(packet, now)
            case Prune():
                self.on_path_unwanted(packet)

    def wake(self, timer: Timer, now: float) -> Effects:
        self.routing.look_where(now)
        match timer:
            case "beacon":
                self.rendezvous.sweep(now)
                self.routing.wake("beacon", now)
            case "listened":
                self.routing.wake("listened", now)
            case "renew":
                self.renew(now)
            case ("choose", str() as topic, str() as publisher):
                self.choose(topic, publisher, now)
            case ("release", str() as topic):
                if topic in self.publications:
                    self.publications[topic].held.clear()
            case ("hand", str() as newcomer):
                self.rendezvous.hand_keys_to(newcomer, now)
        return self.effects()

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        self.routing.look_where(now)
        self.routing.unreachable(packet, peer, now)
        return self.effects()

    def start(self, now: float) -> Effects:
        self.routing.start(now)
        return self.effects()

    def stop(self, now: float) -> Effects:
        """Take back what is this node's; the last of a cell hands its keys over."""
        self.routing.look_where(now)
        for topic in sorted(self.publications):
            self.advertise(topic, now, lifespan_s=0.0)
        for topic in sorted(self.interests):
            self.take_back(topic, now)
        self.routing.stop()
        self.rendezvous.stop(now)
        return self.effects()

    # The publisher.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """Section 2.3: an advertisement to each of the n rendezvous points."""
        topic = announcement.event_type.subject
        self.routing.look_where(now)
        self.publication(topic, now).announced = True
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        if subject in self.publications:
            self.routing.look_where(now)
            self.advertise(subject, now, lifespan_s=0.0)
            del self.publications[subject]
        return self.effects()

    def publish(self, event: Event, now: float) -> Effects:
        """To every rendezvous cell that has asked. This node's own applications know it already."""
        self.routing.look_where(now)
        publication = self.publication(event.type, now)
        publication.last_at = now
        self.seen.add(event.id)
        sent: set[int] = set()
        if now < publication.since + self.settings.hold_s:
            publication.held.append((event, sent))
            self.start_timer(("release", event.type), at=now + self.settings.hold_s)
        for index, way in sorted(publication.ways.items()):
            if way.expires_at > now:
                sent.add(index)
                self.notify(event, index, way.cell, now)
            else:
                publication.ways.pop(index, None)
        return self.effects()

    def publication(self, topic: str, now: float) -> Publication:
        """What this node knows of a topic of its own; an unknown one is advertised first."""
        known = self.publications.get(topic)
        if known is None:
            known = Publication(now, announced=False, last_at=now, advertised_from=self.routing.cell)
            self.publications[topic] = known
            self.advertise(topic, now)
            self.keep_renewing(now)
        return known

    def advertise(self, topic: str, now: float, lifespan_s: float | None = None) -> None:
        """Section 2.3: to all n points; a lifespan of nothing takes it back."""
        lifespan_s = self.settings.record_lifespan_s if lifespan_s is None else lifespan_s
        cell = self.routing.cell
        self.publications[topic].advertised_from = cell
        for index in range(self.settings.rendezvous):
            heading = Heading(self.target((topic, index)))
            self.routing.route(Advertise(heading, 0, topic, index, self.node, cell, now, lifespan_s), now)

    def notify(self, event: Event, index: int, rendezvous: Cell, now: float) -> None:
        self.routing.route(Notify(Heading(rendezvous), 0, event, self.node, index, rendezvous), now)

    def on_request(self, request: Request, now: float) -> None:
        """Section 2.2: the rendezvous cell has forwarded its first subscription."""
        publication = self.publications.get(request.topic)
        if publication is None:
            gone = Advertise(
                Heading(request.rendezvous), 0, request.topic, request.index, self.node, self.routing.cell, now, 0.0
            )
            self.routing.route(gone, now)
            return
        publication.ways[request.index] = Way(
            request.rendezvous, now + min(request.lifespan_s, self.settings.record_lifespan_s)
        )
        for event, sent in publication.held:
            if request.index not in sent:
                sent.add(request.index)
                self.notify(event, request.index, request.rendezvous, now)

    def on_path_unwanted(self, prune: Prune) -> None:
        """Section 2.3: no subscriber is left behind that rendezvous cell."""
        publication = self.publications.get(prune.topic)
        if publication is not None:
            publication.ways.pop(prune.index, None)

    # The subscriber.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """Section 2.4: a subscription to each of the m nearest rendezvous points."""
        topics = topics_of(subscription.filter)
        if topics is None:
            raise UsageError(
                f"GeoRendezvous hashes a topic to its places, so a subscription must name its event type; "
                f"{str(subscription.filter)!r} could match any: write it as 'Type: condition' or '/Type[condition]'"
            )
        self.routing.look_where(now)
        replaced = self.local.by_id.get(subscription.id)
        if replaced is not None:
            topics |= topics_of(replaced.filter) or frozenset()
        self.local.add(subscription)
        for topic in sorted(topics):
            self.want(topic, now)
        self.keep_renewing(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        known = self.local.remove(subscription)
        if known is not None:
            self.routing.look_where(now)
            for topic in sorted(topics_of(known.filter) or ()):
                self.want(topic, now)
        return self.effects()

    def want(self, topic: str, now: float) -> None:
        """The local subscriptions to this topic have changed: tell the rendezvous cells what matters to them."""
        filters = self.filters(topic)
        known = self.interests.get(topic)
        if filters is None:
            if known is not None:
                self.take_back(topic, now)
                del self.interests[topic]
        elif known is None:
            cell = self.routing.cell
            self.interests[topic] = Interest([], {}, cell, cell, filters)
            self.send_subscriptions(topic, now)
        elif known.filters != filters:
            known.filters = filters
            self.send_subscriptions(topic, now)

    def filters(self, topic: str) -> tuple[str, ...] | None:
        """What this node wants of the topic: () for all of it, None for nothing.

        Terms about the consumer's own place are left to the consumer.
        """
        mine = (known.filter for known in self.local.by_id.values())
        wanted = [filter.without_viewer_terms() for filter in mine if topic in (topics_of(filter) or ())]
        if not wanted:
            return None
        if not self.settings.content_at_rendezvous or any(filter.condition == Always() for filter in wanted):
            return ()
        return tuple(sorted({str(filter) for filter in wanted}))

    def send_subscriptions(self, topic: str, now: float) -> None:
        """To the m points nearest to where this node is now."""
        interest = self.interests[topic]
        here = self.location.position(now)
        points = nearest_points(self.settings.points(topic), here, self.settings.nearest)
        for index in interest.points:
            if index not in points:
                interest.leaving[index] = now
        for index in points:
            interest.leaving.pop(index, None)
        interest.points = points
        interest.subscribed_from = self.routing.cell
        for index in (*points, *sorted(interest.leaving)):
            pruned = sorted(publisher for publisher, choice in interest.choices.items() if index in choice.pruned)
            self.send_subscription(topic, index, now, self.settings.record_lifespan_s, interest.filters, tuple(pruned))

    def send_subscription(
        self,
        topic: str,
        index: int,
        now: float,
        lifespan_s: float,
        filters: tuple[str, ...] = (),
        pruned: tuple[str, ...] = (),
    ) -> None:
        heading = Heading(self.target((topic, index)))
        cell = self.routing.cell
        self.routing.route(Subscribe(heading, 0, topic, index, self.node, cell, now, lifespan_s, filters, pruned), now)

    def take_back(self, topic: str, now: float) -> None:
        """Unsubscribe at every point."""
        interest = self.interests[topic]
        for index in (*interest.points, *sorted(interest.leaving)):
            self.send_subscription(topic, index, now, lifespan_s=0.0)

    def on_notification(self, packet: Notify, now: float) -> None:
        """Section 2.3: the first comes through all points; the path with the fewest hops stays."""
        topic = packet.event.type
        interest = self.interests.get(topic)
        if interest is None:
            self.send_subscription(topic, packet.index, now, lifespan_s=0.0)
            return
        self.take(packet.event, packet.hops, now)
        choice = interest.choices.setdefault(packet.publisher, PathChoice())
        choice.heard_at = now
        distance_m = self.location.position(now).distance_to(self.settings.point(topic, packet.index))
        first = not choice.offers
        self.prune(choice.offer(Offer(packet.hops, distance_m, packet.index, packet.rendezvous)), packet, now)
        if choice.best is None:
            if choice.offers.keys() >= set(interest.points):
                self.prune(choice.choose(), packet, now)
            elif first:
                self.start_timer(("choose", topic, packet.publisher), at=now + self.settings.choose_after_s)

    def take(self, event: Event, hops: int, now: float) -> None:
        """To the applications here, once."""
        if self.seen.add(event.id):
            self.local.deliver_local(self, event, hops, now)

    def choose(self, topic: str, publisher: str, now: float) -> None:
        """Some paths have brought nothing in time: choose among those that have."""
        interest = self.interests.get(topic)
        choice = interest.choices.get(publisher) if interest is not None else None
        if choice is not None and choice.best is None:
            for offer in choice.choose():
                self.send_prune(topic, publisher, offer, now)

    def prune(self, offers: list[Offer], packet: Notify, now: float) -> None:
        for offer in offers:
            self.send_prune(packet.event.type, packet.publisher, offer, now)

    def send_prune(self, topic: str, publisher: str, offer: Offer, now: float) -> None:
        heading = Heading(offer.rendezvous)
        self.routing.route(Prune(heading, 0, topic, offer.point, publisher, self.node, now), now)

    # Both of them, as time passes and as they move.

    def keep_renewing(self, now: float) -> None:
        if not self._renewing:
            self._renewing = True
            self.start_timer("renew", at=now + self.settings.renew_interval_s)

    def renew(self, now: float) -> None:
        """Section 2.2: clients that fail to renew are removed; moving subscribers choose again."""
        self._renewing = False
        for topic, publication in sorted(self.publications.items()):
            if publication.announced or now - publication.last_at < self.settings.record_lifespan_s:
                self.advertise(topic, now)
            else:
                del self.publications[topic]
        forgotten = now - 10 * self.settings.record_lifespan_s
        for topic, interest in sorted(self.interests.items()):
            for index, since in sorted(interest.leaving.items()):
                if since <= now - self.settings.choose_after_s:
                    del interest.leaving[index]
                    self.send_subscription(topic, index, now, lifespan_s=0.0)
            for publisher in [name for name, choice in interest.choices.items() if choice.heard_at < forgotten]:
                del interest.choices[publisher]
            if interest.chosen_from != self.routing.cell:
                interest.chosen_from = self.routing.cell
                interest.choices.clear()
            self.send_subscriptions(topic, now)
        if self.publications or self.interests:
            self.keep_renewing(now)

    def cell_left(self, cell: Cell, last: bool, now: float) -> None:
        """Owners say where they are when the members of the cell they gave, who hear the cells next
        to theirs, no longer know it."""
        self.rendezvous.cell_left(last, now)
        here = self.routing.cell
        for topic, publication in sorted(self.publications.items()):
            if not _adjacent(publication.advertised_from, here):
                self.advertise(topic, now)
        for topic, interest in sorted(self.interests.items()):
            if not _adjacent(interest.subscribed_from, here):
                self.send_subscriptions(topic, now)

    def cell_appeared(self, cell: Cell, now: float) -> None:
        self.rendezvous.cell_appeared(cell, now)

    def newcomer(self, node: str, now: float) -> None:
        self.rendezvous.newcomer(node, now)

    def target(self, key: Key) -> Cell:
        """The cell that a rendezvous point lies in."""
        return self.routing.grid.cell_of(self.settings.point(*key))


def _adjacent(a: Cell, b: Cell) -> bool:
    return a == b or direction_to(a, b) is not None
