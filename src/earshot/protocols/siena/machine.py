"""Siena, by A. Carzaniga, D. Rosenblum and A. Wolf (TOCS 2001), as CoDD's paper emulates it (section 4).

One node in f + 1 becomes a broker; brokers form a balanced tree, every other node is the client of a broker drawn at
random. Advertisements spread over the brokers. Subscriptions follow them back, unless one that was forwarded before
covers them; events take the subscriptions' paths in reverse. The central control that Siena assumes is a node that
all others know. Readings: docs/papers/codd.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass, field
from random import Random

from earshot.events import Event
from earshot.filters import FilterIndex, Subscription
from earshot.protocols.common.byte_budget import SMALL_TABLE_BYTES, BoundedTable, text_bytes
from earshot.protocols.common.filter_texts import FilterTexts, LocalFilterTexts, could_match_any, read_filter
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.machine import QUIET_CHANNEL, Announcement, Channel, Effects, Location, Machine, Timer
from earshot.protocols.tuning import Surroundings, Tunable, clamp
from earshot.records import DropReason
from earshot.settings import AtLeastOne, Count, NotNegative, Positive, check_bounds
from earshot.wire import FilterText, Packet, Whole, Word


@dataclass(frozen=True)
class SienaSettings:
    agents: tuple[str, ...] = field(default=(), metadata={"scenario": "first_nodes"})
    "The nodes that may set the network up; the first of them does. In a simulation, where not given, the "
    "scenario's first nodes, of a trace those that stay longest; elsewhere a node in range that finds none."
    clients: AtLeastOne = 6
    "Symbol f: the number of clients of a broker."
    broker_fan_out: Count = 2
    "The number of children of a broker in the brokers' tree; 0: as many as clients."
    retry_s: Positive = 5.0
    "How long a node without a place waits before it asks again."
    patience_s: NotNegative = 20.0
    """What a broker above could not be sent is sent again, every `retry_s`, for this long; then the broker counts as
    gone. A neighbour below is kept ten times as long: it would not notice that it is forgotten. 0: a neighbour that
    cannot be reached is gone at once."""
    memory: AtLeastOne = 4096
    "How many events a node remembers as seen."

    def __post_init__(self) -> None:
        object.__setattr__(self, "agents", tuple(self.agents))
        check_bounds(self)


MOST_TEXT = 1 << 20
"A broker usually keeps at most this many bytes of its neighbours' subscriptions (see `byte_budget`)."
MOST_LINKS = 1024
PATIENCE_BELOW = 10
"A neighbour below is kept this many times as long as the broker above."
MOST_TYPES = 256
"Event types that one publisher advertises."


class Enter(Packet, frozen=True, tag="siena-enter"):
    """Give me a place; `gone` is a neighbour that does not answer."""

    gone: Word = ""


class Place(Packet, frozen=True, tag="siena-place"):
    """You are a broker, or a client, below this one ("": you are the root)."""

    broker: bool
    above: Word


class Elected(Packet, frozen=True, tag="siena-elected"):
    """No central control is named: I am the control."""


class Connect(Packet, frozen=True, tag="siena-connect"):
    broker: bool


class Bye(Packet, frozen=True, tag="siena-bye"):
    """I leave."""


class NoNeighbour(Packet, frozen=True, tag="siena-no-neighbour"):
    """You are no neighbour of mine: perhaps I have started again."""


class Advertise(Packet, frozen=True, tag="siena-advertise"):
    order: Whole
    publisher: Word
    types: tuple[Word, ...]


class Subscribe(Packet, frozen=True, tag="siena-subscribe"):
    order: Whole
    texts: tuple[FilterText, ...]


class Unsubscribe(Packet, frozen=True, tag="siena-unsubscribe"):
    order: Whole
    texts: tuple[FilterText, ...]


class Notify(Packet, frozen=True, tag="siena-notify"):
    event: Event
    hops: Whole


class Control:
    """The central control that Siena assumes: it gives every node its place."""

    def __init__(self, settings: SienaSettings, random: Random) -> None:
        self.settings = settings
        self.random = random
        self.members: dict[str, str] = {}
        "By node, its broker. A broker has itself."
        self.brokers: list[str] = []
        "In the order of the balanced tree; empty where one is gone."

    def place(self, node: str, gone: str) -> Place:
        """A place for a node that is new, or whose neighbour is gone."""
        if gone in self.brokers and gone != node:
            self.brokers[self.brokers.index(gone)] = ""
            self.members.pop(gone, None)
        if node in self.brokers:
            return Place(True, self._above(self.brokers.index(node)))
        self.members.pop(node, None)
        present = [broker for broker in self.brokers if broker]
        if len(present) * (self.settings.clients + 1) <= len(self.members):
            self.members[node] = node
            self.brokers.append(node)
            return Place(True, self._above(len(self.brokers) - 1))
        clients = dict.fromkeys(present, 0)
        for member, broker in self.members.items():
            if member != broker and broker in clients:
                clients[broker] += 1
        with_room = [broker for broker in present if clients[broker] < self.settings.clients]
        broker = self.members[node] = self.random.choice(with_room or present)
        return Place(False, broker)

    def _above(self, index: int) -> str:
        """The nearest broker above that is present; where the root is gone, the first that is present, so that there is
        one root. It always has a lower index, so there is no cycle."""
        above = index
        while above > 0:
            above = (above - 1) // (self.settings.broker_fan_out or self.settings.clients)
            if self.brokers[above]:
                return self.brokers[above]
        return next((broker for broker in self.brokers[:index] if broker), "")


def packet_bytes(packet: Packet) -> int:
    """About how many bytes of texts a packet of a neighbour keeps in memory."""
    match packet:
        case Subscribe() | Unsubscribe():
            return text_bytes(packet.texts)
        case Advertise():
            return text_bytes(packet.types)
    return 0


@dataclass(slots=True)
class BrokerLink:
    """What a node knows about a neighbour. One of the two is a broker."""

    broker: bool
    "Whether the neighbour is a broker."
    wants: dict[str, None] = field(default_factory=dict)
    "What the neighbour, and what lies behind it, wants."
    advertised: dict[str, tuple[str, ...]] = field(default_factory=dict)
    "By publisher, the types that are published there."
    forwarded: dict[str, None] = field(default_factory=dict)
    "The subscriptions forwarded to it."
    sent: int = 0
    "The number of the last message sent to it."
    heard: int = 0
    "The number of the last message from it that came in order."
    early: dict[int, Packet] = field(default_factory=dict)
    "Messages that came before their turn: messages of a pair may overtake each other."
    unsent: list[Packet] = field(default_factory=list)
    "What waits until it can be reached again."
    failing_since: float | None = None
    "Since when it cannot be reached; None while it can."
    failed: bool = False
    "Whether the last attempt to reach it has failed."

    def next_order(self) -> int:
        """The number of the next message to it."""
        self.sent += 1
        return self.sent


class Siena(Machine):
    """One node: client or broker, and the central control where it is the first agent."""

    name = "siena"
    paper = "Carzaniga, Rosenblum, Wolf: Siena (TOCS 2001), as Chawathe and Anand emulate it"
    needs_routing = True
    needs_two_way_links = True
    Settings = SienaSettings

    def __init__(
        self,
        node: str,
        settings: SienaSettings,
        location: Location,
        random: Random,
        channel: Channel = QUIET_CHANNEL,
        new_index: Callable[[], FilterIndex] = FilterIndex,
    ) -> None:
        """`new_index` makes the index of a node's filters: a host that runs many machines may share one."""
        super().__init__(node, settings, location, random, channel)
        self.settings: SienaSettings = settings
        self.local = LocalFilterTexts()
        self.own_types: tuple[str, ...] = ()
        self.broker = False
        self.above: str | None = None
        "The broker above; empty for the root, None without a place."
        self.links: dict[str, BrokerLink] = {}
        self.texts = FilterTexts(new_index())
        "What any neighbour, or this node, wants."
        self.seen = RecentKeys(settings.memory, self.budgets)
        self.transfers = self.extraneous = self.unwanted = 0
        "Events sent to this node; those of them that its own subscriptions do not ask for; and those that neither "
        "it nor one of its clients asks for."
        self.waiting: list[Event] = []
        "Published before this node had a place."
        self.early: list[tuple[Packet, str]] = []
        "Packets of future neighbours, where the control answered them first."
        self.early_bytes = 0
        "Characters in the packets that wait for their turn, here and at the links."
        self.control = Control(settings, random)
        self.elected = ""
        "The control, where the settings name none."
        self.strangers: BoundedTable[str, float] = BoundedTable(MOST_LINKS, self.budgets, SMALL_TABLE_BYTES)
        "Nodes that count this one as their neighbour and are not known as neighbours, and since when."
        self.askers: dict[str, str] = {}
        "Nodes that look for a control too, and the neighbour that each has lost."
        self._asking = False

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        first = round(clamp(around.present**0.4, 3, 12))
        return (Tunable("clients", first, 2, 24, f"{around.present:.0f} nodes, brokers of {first} clients each"),)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case Notify():
                self.on_notify(packet, sender, now)
                self.note_stranger(sender, now)
            case Enter():
                self.on_enter(packet, sender)
                if sender == self.above and not packet.gone:
                    self.connect()
            case Elected():
                self.on_elected(sender, now)
            case Place():
                if sender in self.settings.agents or not self.settings.agents:
                    self.on_place(packet)
            case Bye():
                self.lost(sender, now)
            case NoNeighbour():
                self.on_no_neighbour(sender)
            case _ if self.above is None and self.has_room(packet, self.early):
                self.keep_early(packet, sender)
            case _:
                self.on_neighbour(packet, sender)
                self.note_stranger(sender, now)
        return self.effects()

    def note_stranger(self, sender: str, now: float) -> None:
        """A node that is no neighbour sends what neighbours send. Either its Connect is on its way, or this node has
        started again and has forgotten it: then this node says so."""
        if self.above is None or sender in self.links:
            self.strangers.pop(sender)
        elif (since := self.strangers.get(sender)) is None:
            self.strangers.put(sender, now)
        elif now - since >= self.settings.retry_s:
            self.strangers.pop(sender)
            # It begins anew, so that what it sent until now is void.
            void = [packet for packet, source in self.early if source == sender]
            self.early = [(packet, source) for packet, source in self.early if source != sender]
            self.early_bytes -= sum(map(packet_bytes, void))
            self.send(sender, NoNeighbour())

    def on_no_neighbour(self, sender: str) -> None:
        """A neighbour has forgotten this node: connect again if it is the broker above, else forget it too."""
        if sender == self.above:
            self.connect()
        else:
            self.cut(sender)

    def on_neighbour(self, packet: Packet, sender: str) -> None:
        match packet:
            case Connect():
                self.on_connect(packet, sender)
            case Advertise() | Subscribe() | Unsubscribe() if sender in self.links:
                link = self.links[sender]
                following: Packet | None = packet
                if packet.order != link.heard + 1:
                    following = None
                    if (
                        packet.order > link.heard
                        and packet.order not in link.early
                        and self.has_room(packet, link.early)
                    ):
                        link.early[packet.order] = packet
                        self.early_bytes += packet_bytes(packet)
                while following is not None:
                    link.heard += 1
                    match following:
                        case Advertise():
                            self.on_advertise(following, sender)
                        case Subscribe():
                            self.add(following.texts, sender)
                        case Unsubscribe():
                            self.remove(following.texts, sender)
                    following = link.early.pop(link.heard + 1, None)
                    self.early_bytes -= 0 if following is None else packet_bytes(following)
            case _ if self.has_room(packet, self.early):
                self.keep_early(packet, sender)  # its Connect has not come yet
            case _:
                self.drop(DropReason.NOT_CONNECTED)

    def has_room(self, packet: Packet, early: Sized) -> bool:
        """Whether one more packet may wait for its turn."""
        return len(early) < self.settings.memory and self.early_bytes + packet_bytes(packet) <= self.budgets.of(
            MOST_TEXT
        )

    def keep_early(self, packet: Packet, sender: str) -> None:
        self.early.append((packet, sender))
        self.early_bytes += packet_bytes(packet)

    def wake(self, timer: Timer, now: float) -> Effects:
        if timer == "enter":
            self._asking = False
            if self.elected != self.node:
                self.elected = ""  # it has not answered
            self.enter(now)
        elif timer == "elect" and self.above is None:
            self.elect(now)
        elif timer == "elected" and self.elected == self.node:
            self.claim_control(now)
        elif isinstance(timer, tuple) and timer[0] == "again":
            self.send_again(str(timer[1]), now)
        return self.effects()

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        if isinstance(packet, Enter | Place):
            self.drop(DropReason.NO_CONTROL)
            self.elected = "" if peer == self.elected else self.elected
        elif peer in self.links and self.settings.patience_s:
            self.keep_unsent(packet, peer, now)
        else:
            self.lost(peer, now)
        return self.effects()

    def stop(self, now: float) -> Effects:
        for name in self.links:
            self.send(name, Bye())
        return self.effects()

    # Neighbours that cannot be reached for a while.

    def send_to(self, name: str, packet: Packet) -> None:
        """Send a neighbour this, or keep it until the neighbour can be reached again."""
        link = self.links.get(name)
        if link is None or link.failing_since is None:
            self.send(name, packet)
        elif len(link.unsent) < self.settings.memory:
            link.unsent.append(packet)
        else:
            self.drop(DropReason.TOO_MANY_PACKETS_WAITING)

    def keep_unsent(self, packet: Packet, name: str, now: float) -> None:
        link = self.links[name]
        if len(link.unsent) < self.settings.memory:
            link.unsent.append(packet)
        link.failed = True
        if link.failing_since is None:
            link.failing_since = now
            self.start_timer(("again", name), at=now + self.settings.retry_s)

    def send_again(self, name: str, now: float) -> None:
        """Send what waits. Where nothing has failed since the last time, the neighbour is back."""
        link = self.links.get(name)
        if link is None or link.failing_since is None:
            return
        patience_s = self.settings.patience_s * (1 if name == self.above else PATIENCE_BELOW)
        if link.failed and now - link.failing_since > patience_s:
            self.lost(name, now)
            return
        unsent, link.unsent = link.unsent, []
        for packet in unsent:
            self.send(name, packet)
        if link.failed:
            link.failed = False
            self.start_timer(("again", name), at=now + self.settings.retry_s)
        else:
            link.failing_since = None

    # A place in the network.

    def enter(self, now: float, gone: str = "") -> None:
        """Ask the central control for a place, again after each `retry_s`."""
        if self.above is not None or self._asking:
            return
        self._asking = True
        self.start_timer("enter", at=now + self.settings.retry_s)
        agent = self.settings.agents[0] if self.settings.agents else self.elected
        if agent == self.node:
            self.on_place(self.control.place(self.node, gone))
        elif self.settings.agents or (agent and agent != gone):
            self.send(agent, Enter(gone))
        else:
            self.broadcast(Enter(gone))
            self.start_timer("elect", at=now + self.settings.retry_s * self.random.uniform(0.05, 0.5))

    def on_enter(self, packet: Enter, sender: str) -> None:
        if self.settings.agents and self.node != self.settings.agents[0]:
            self.drop(DropReason.NOT_AN_AGENT)
        elif self.settings.agents or self.elected == self.node:
            self.give_place(sender, packet.gone)
        elif self.above is None and len(self.askers) < self.settings.memory:
            self.askers[sender] = packet.gone

    def give_place(self, name: str, gone: str) -> None:
        """As the control. A node that could not reach this one for a while may name it: it is here all the same."""
        self.send(name, self.control.place(name, "" if gone == self.node else gone))

    def elect(self, now: float) -> None:
        """No node has answered: this node becomes the control, and answers the nodes that have asked."""
        self.elected = self.node
        self._asking = False
        self.claim_control(now)
        self.enter(now)
        for name, gone in self.askers.items():
            self.give_place(name, gone)
        self.askers.clear()

    def claim_control(self, now: float) -> None:
        """Tell all nodes, again after each `retry_s`: two controls that did not hear each other then find out."""
        self.broadcast(Elected())
        self.start_timer("elected", at=now + self.settings.retry_s)

    def on_elected(self, sender: str, now: float) -> None:
        """Of two controls the one whose name sorts first stays."""
        if self.settings.agents or (self.elected == self.node and sender > self.node):
            return
        stepped_down = self.elected == self.node
        self.elected = sender
        if stepped_down:
            self.part(self.links)
            self.above = None
            self.enter(now)

    def on_place(self, place: Place) -> None:
        if self.above is not None:
            return
        self.cancel_timer("enter")
        self.cancel_timer("elect")
        self._asking = False
        self.broker, self.above = place.broker, place.above
        self.note("place", f"{'broker' if place.broker else 'client'} below {place.above or 'nobody'}")
        if not self.broker:
            self.part(other for other in self.links if other != self.above)  # It may have been a broker before.
        self.connect()
        self.hear_early()
        for event in self.waiting if self.above else ():
            self.send(self.above, Notify(event, 1))  # it knows already what others want
        self.waiting.clear()

    def part(self, names: Iterable[str]) -> None:
        """Leave these neighbours: they need another broker."""
        for name in list(names):
            self.send(name, Bye())
            self.cut(name)

    def connect(self) -> None:
        """Connect to the broker above, if there is one: for the first time, or because it asks for a place itself and
        may have forgotten this node."""
        if self.above:
            self.cut(self.above)
            self.send(self.above, Connect(self.broker))
            self.meet(self.above, BrokerLink(broker=True))

    def on_connect(self, packet: Connect, sender: str) -> None:
        if not self.broker or (len(self.links) >= MOST_LINKS and sender not in self.links):
            self.send(sender, Bye())
            return
        if sender in self.links:
            self.cut(sender)
        self.meet(sender, BrokerLink(packet.broker))
        self.hear_early()

    def hear_early(self) -> None:
        """Handle the packets that came before there was a link."""
        early, self.early = self.early, []
        self.early_bytes -= sum(packet_bytes(packet) for packet, _ in early)
        for packet, sender in early:
            self.on_neighbour(packet, sender)

    def meet(self, name: str, link: BrokerLink) -> None:
        """A new neighbour: advertise what is published on this side, and forward what is wanted."""
        self.links[name] = link
        if self.own_types:
            self.send_to(name, Advertise(link.next_order(), self.node, self.own_types))
        if link.broker:
            others = [other for known, other in self.links.items() if known != name]
            for publisher, types in [item for other in others for item in other.advertised.items()]:
                self.send_to(name, Advertise(link.next_order(), publisher, types))
        self.offer(name, self.texts.holders)

    def lost(self, name: str, now: float) -> None:
        """A neighbour is gone. Where it was the broker above, this node needs another place."""
        self.cut(name)
        if name == self.above:
            self.above = None
            self.enter(now, gone=name)

    def cut(self, name: str) -> None:
        link = self.links.get(name)
        if link is not None:
            self.remove(tuple(link.wants), name)
            self.early_bytes -= sum(map(packet_bytes, link.early.values()))
            link.early.clear()
            del self.links[name]

    # What is published.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        self.be_publisher(announcement.event_type.subject, now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        self.own_types = tuple(known for known in self.own_types if known != subject)
        self.advertise_own()
        return self.effects()

    def be_publisher(self, subject: str, now: float) -> None:
        if subject not in self.own_types:
            self.own_types = (*self.own_types, subject)
            self.advertise_own()
            self.enter(now)

    def advertise_own(self) -> None:
        for name, link in self.links.items():
            self.send_to(name, Advertise(link.next_order(), self.node, self.own_types))

    def on_advertise(self, packet: Advertise, sender: str) -> None:
        """Pass it on to all other brokers; subscriptions follow it back."""
        link = self.links[sender]
        if link.advertised.get(packet.publisher) == packet.types or packet.publisher == self.node:
            return
        if len(link.advertised) >= self.settings.memory or len(packet.types) > MOST_TYPES:
            self.drop(DropReason.BROKER_MEMORY)
            return
        link.advertised[packet.publisher] = packet.types
        if self.broker:
            for name, other in self.links.items():
                if name != sender and other.broker:
                    self.send_to(name, Advertise(other.next_order(), packet.publisher, packet.types))
        self.offer(sender, self.texts.holders)

    # What is wanted.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        replaced = self.local.texts.get(subscription.id)
        self.local.add(subscription, now)
        text = self.local.texts[subscription.id]
        if replaced != text:
            self.add((text,), "")
            if replaced is not None:
                self.remove((replaced,), "")
        self.enter(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        text = self.local.texts.get(subscription)
        if text is not None:
            self.local.remove(subscription)
            self.remove((text,), "")
        return self.effects()

    def add(self, texts: tuple[str, ...], source: str) -> None:
        """A neighbour, or this node (""), wants these."""
        link = self.links.get(source)
        if link is not None:
            new = (text for text in dict.fromkeys(texts) if text not in link.wants)
            texts = tuple(text for text in new if read_filter(text) is not None and self._has_room(text))
            link.wants.update(dict.fromkeys(texts))
        self.texts.hold(texts)
        for name in self.links:
            if name != source:
                self.offer(name, texts)

    def _has_room(self, text: str) -> bool:
        """Whether one more subscription can be kept. The texts of all links count, with some room for each."""
        if self.texts.length + len(text) <= self.budgets.of(MOST_TEXT):
            return True
        self.drop(DropReason.BROKER_MEMORY)
        return False

    def offer(self, name: str, texts: Iterable[str]) -> None:
        """Forward the subscriptions that something advertised there could match, unless one that was forwarded
        before covers them."""
        link = self.links[name]
        if not link.broker:
            return
        types = {one for types in link.advertised.values() for one in types}
        new = []
        for text in list(texts):
            # A client forwards everything to its broker.
            if text in link.forwarded or (self.broker and not could_match_any(text, types)):
                continue
            if not self._others_want(text, name):
                continue
            if not any(covers(forwarded, text) for forwarded in link.forwarded):
                link.forwarded[text] = None
                new.append(text)
        if new:
            self.send_to(name, Subscribe(link.next_order(), tuple(new)))

    def _others_want(self, text: str, name: str) -> bool:
        """Whether this node, or a neighbour other than that one, wants it."""
        return self.texts.holders.get(text, 0) > (text in self.links[name].wants)

    def remove(self, texts: tuple[str, ...], source: str) -> None:
        """A neighbour, or this node (""), no longer wants these. What a withdrawn text covered is forwarded now."""
        link = self.links.get(source)
        if link is not None:
            texts = tuple(text for text in dict.fromkeys(texts) if text in link.wants)
            for text in texts:
                del link.wants[text]
        self.texts.release(texts)
        for name, other in self.links.items():
            withdrawn = [text for text in texts if text in other.forwarded and not self._others_want(text, name)]
            if name != source and withdrawn:
                for text in withdrawn:
                    del other.forwarded[text]
                self.send_to(name, Unsubscribe(other.next_order(), tuple(withdrawn)))
                self.offer(name, self.texts.holders)

    # Events.

    def publish(self, event: Event, now: float) -> Effects:
        self.be_publisher(event.type, now)
        self.seen.add(event.id)
        if self.above is None:
            self.waiting = [*self.waiting, event][-self.settings.memory :]
        else:
            self.forward(event, 0, "", self.texts.matching(event))
        return self.effects()

    def on_notify(self, packet: Notify, sender: str, now: float) -> None:
        event = packet.event
        if not event.id:
            self.drop(DropReason.MALFORMED_DOCUMENT)
            return
        if not self.seen.add(event.id):
            return
        self.transfers += 1
        met = self.texts.matching(event)
        if not met.isdisjoint(self.local.texts.values()):
            self.local.deliver_local(self, event, packet.hops, now)
        else:
            self.extraneous += 1
            self.unwanted += all(link.broker or met.isdisjoint(link.wants) for link in self.links.values())
        if self.broker:
            self.forward(event, packet.hops, sender, met)

    def forward(self, event: Event, hops: int, sender: str, met: set[str]) -> None:
        """A client sends it to its broker, a broker to every neighbour that wants it."""
        packet = Notify(event, hops + 1)
        for name, link in self.links.items():
            if name != sender and (not self.broker or not met.isdisjoint(link.wants)):
                self.send_to(name, packet)


def covers(general: str, special: str) -> bool:
    one, other = read_filter(general), read_filter(special)
    return one is not None and other is not None and one.covers(other)
