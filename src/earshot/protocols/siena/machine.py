"""Siena, by A. Carzaniga, D. Rosenblum and A. Wolf (TOCS 2001), as CoDD's paper emulates it (section 4).

One node in f + 1 becomes a broker; brokers form a balanced tree, every other node is the client of a
broker drawn at random. Advertisements spread over the brokers, subscriptions follow them back, only
where none that was forwarded before covers them; events take the subscriptions' way in reverse.
The central control that Siena assumes is a node that all others know. Readings: docs/papers/codd.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from earshot.events import Event
from earshot.filters import FilterIndex, Subscription
from earshot.protocols.common.filter_texts import FilterTexts, LocalFilterTexts, read_filter
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.common.wanted_types import could_match
from earshot.protocols.machine import (
    Announcement,
    Effects,
    Location,
    Machine,
    Timer,
)
from earshot.protocols.siena.control import Control, SienaSettings
from earshot.protocols.siena.packets import (
    Advertise,
    Bye,
    Connect,
    Elected,
    Enter,
    Notify,
    Place,
    Subscribe,
    Unsubscribe,
)
from earshot.records import DropReason
from earshot.wire import Packet


def _covers(general: str, special: str) -> bool:
    one, other = read_filter(general), read_filter(special)
    return one is not None and other is not None and one.covers(other)


@dataclass(slots=True)
class Link:
    """What a node knows of a neighbour."""

    broker: bool
    wants: dict[str, None] = field(default_factory=dict)
    "What lies behind it wants this,"
    advertised: dict[str, tuple[str, ...]] = field(default_factory=dict)
    "and publishes these types, by publisher."
    told: dict[str, None] = field(default_factory=dict)
    "The subscriptions forwarded to it."
    said: int = 0
    "How many messages it was sent,"
    heard: int = 0
    "and how many have come from it, in order;"
    early: dict[int, Packet] = field(default_factory=dict)
    "and those that came before their turn: messages of a pair may overtake each other."

    @property
    def turn(self) -> int:
        """The number of the next message to it."""
        self.said += 1
        return self.said


class Siena(Machine):
    """One node: client or broker, and the central control where it is the first agent."""

    name = "siena"
    paper = "Carzaniga, Rosenblum, Wolf: Siena (TOCS 2001), as Chawathe and Anand emulate it"
    medium = "overlay"
    Settings = SienaSettings

    def __init__(
        self,
        node: str,
        settings: SienaSettings,
        location: Location,
        random: Random,
        new_index: Callable[[], FilterIndex] = FilterIndex,
    ) -> None:
        """`new_index` makes the index of a node's filters: a host that runs many machines may share one."""
        super().__init__(node, settings, location, random)
        self.settings: SienaSettings = settings
        self.local = LocalFilterTexts()
        self.own_types: tuple[str, ...] = ()
        self.broker = False
        self.above: str | None = None
        "The broker above; empty for the root, None without a place."
        self.links: dict[str, Link] = {}
        self.texts = FilterTexts(new_index())
        "What any link, or this node, wants."
        self.interest = FilterTexts(new_index())
        "What this node, and a broker's clients, want."
        self.seen = RecentKeys(settings.memory)
        self.transfers = self.extraneous = 0
        self.waiting: list[Event] = []
        "Published before this node had a place."
        self.early: list[tuple[Packet, str]] = []
        "What neighbours to be have said before: the control may have told them first."
        self.control = Control(settings, random)
        self.elected = ""
        "The control where the settings name none;"
        self.askers: dict[str, str] = {}
        "and those who look for it too, with the neighbour each has lost."
        self._asking = False

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case Notify():
                self.on_notify(packet, sender, now)
            case Enter():
                self.on_enter(packet, sender)
            case Elected():
                self.on_elected(sender, now)
            case Place():
                if sender in self.settings.agents or not self.settings.agents:
                    self.on_place(packet)
            case Bye():
                self.lost(sender, now)
            case _ if self.above is None and len(self.early) < self.settings.memory:
                self.early.append((packet, sender))
            case _:
                self.on_neighbour(packet, sender)
        return self.effects()

    def on_neighbour(self, packet: Packet, sender: str) -> None:
        match packet:
            case Connect():
                self.on_connect(packet, sender)
            case Advertise() | Subscribe() | Unsubscribe() if sender in self.links:
                link = self.links[sender]
                if packet.order > link.heard and len(link.early) < self.settings.memory:
                    link.early[packet.order] = packet
                while (following := link.early.pop(link.heard + 1, None)) is not None:
                    link.heard += 1
                    self.in_turn(following, sender)
            case _ if len(self.early) < self.settings.memory:
                self.early.append((packet, sender))  # its Connect is still under way
            case _:
                self.drop(DropReason.NOT_CONNECTED)

    def in_turn(self, packet: Packet, sender: str) -> None:
        match packet:
            case Advertise():
                self.on_advertise(packet, sender)
            case Subscribe():
                self.add(packet.texts, sender)
            case Unsubscribe():
                self.remove(packet.texts, sender)

    def wake(self, timer: Timer, now: float) -> Effects:
        if timer == "enter":
            self._asking = False
            if self.elected != self.node:
                self.elected = ""  # it has not answered
            self.enter(now)
        elif timer == "elect" and self.above is None:
            self.elect(now)
        return self.effects()

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        if isinstance(packet, Enter | Place):
            self.drop(DropReason.NO_CONTROL)
            self.elected = "" if peer == self.elected else self.elected
        else:
            self.lost(peer, now)
        return self.effects()

    def stop(self, now: float) -> Effects:
        for name in self.links:
            self.send(name, Bye())
        return self.effects()

    # A place in the network.

    def enter(self, now: float, gone: str = "") -> None:
        """Ask the central control for a place, again and again until there is one."""
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
            self.send(sender, self.control.place(sender, packet.gone))
        elif self.above is None and len(self.askers) < self.settings.memory:
            self.askers[sender] = packet.gone

    def elect(self, now: float) -> None:
        """Nobody has answered: this node is the control, and gives those a place who have asked in vain."""
        self.elected = self.node
        self._asking = False
        self.broadcast(Elected())
        self.enter(now)
        for name, gone in self.askers.items():
            self.send(name, self.control.place(name, gone))
        self.askers.clear()

    def on_elected(self, sender: str, now: float) -> None:
        """Of two controls the one with the lesser name stays."""
        if self.settings.agents or (self.elected == self.node and sender > self.node):
            return
        stepped_down = self.elected == self.node
        self.elected = sender
        if stepped_down:
            for name in list(self.links):
                self.send(name, Bye())
                self.cut(name)
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
        if self.above:
            self.send(self.above, Connect(self.broker))
            self.meet(self.above, Link(broker=True))
        self.hear_early()
        for event in self.waiting if self.above else ():
            self.send(self.above, Notify(event, 1))  # who knows already what others want
        self.waiting.clear()

    def on_connect(self, packet: Connect, sender: str) -> None:
        if not self.broker:
            self.send(sender, Bye())
            return
        if sender in self.links:
            self.cut(sender)
        self.meet(sender, Link(packet.broker))
        self.hear_early()

    def hear_early(self) -> None:
        """What was said before there was a link."""
        early, self.early = self.early, []
        for packet, sender in early:
            self.on_neighbour(packet, sender)

    def meet(self, name: str, link: Link) -> None:
        """A new neighbour: tell it what is published, and what is wanted, on this side."""
        self.links[name] = link
        if self.own_types:
            self.send(name, Advertise(link.turn, self.node, self.own_types))
        if link.broker:
            for other in self.others(name):
                for publisher, types in other.advertised.items():
                    self.send(name, Advertise(link.turn, publisher, types))
        self.offer(name, self.texts.holders)

    def lost(self, name: str, now: float) -> None:
        """A neighbour is gone; where it was the one above, this node needs another place."""
        self.cut(name)
        if name == self.above:
            self.above = None
            self.enter(now, gone=name)

    def cut(self, name: str) -> None:
        link = self.links.get(name)
        if link is not None:
            self.remove(tuple(link.wants), name)
            del self.links[name]

    def others(self, name: str) -> Iterator[Link]:
        return (link for other, link in self.links.items() if other != name)

    # What is published.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        self._be_publisher(announcement.event_type.subject, now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        self.own_types = tuple(known for known in self.own_types if known != subject)
        self.advertise_own()
        return self.effects()

    def _be_publisher(self, subject: str, now: float) -> None:
        if subject not in self.own_types:
            self.own_types = (*self.own_types, subject)
            self.advertise_own()
            self.enter(now)

    def advertise_own(self) -> None:
        for name, link in self.links.items():
            self.send(name, Advertise(link.turn, self.node, self.own_types))

    def on_advertise(self, packet: Advertise, sender: str) -> None:
        """To all other brokers; subscriptions follow it back."""
        link = self.links[sender]
        if link.advertised.get(packet.publisher) == packet.types or packet.publisher == self.node:
            return
        link.advertised[packet.publisher] = packet.types
        if self.broker:
            for name, other in self.links.items():
                if name != sender and other.broker:
                    self.send(name, Advertise(other.turn, packet.publisher, packet.types))
        self.offer(sender, self.texts.holders)

    # What is wanted.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        replaced = self.local.texts.get(subscription.id)
        self.local.add(subscription)
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
        """A link, or this node ("") wants these."""
        link = self.links.get(source)
        if link is not None:
            texts = tuple(text for text in texts if text not in link.wants and read_filter(text) is not None)
            link.wants.update(dict.fromkeys(texts))
        if link is None or not link.broker:
            self.interest.hold(texts)
        self.texts.hold(texts)
        for name in self.links:
            if name != source:
                self.offer(name, texts)

    def offer(self, name: str, texts: Iterator[str] | dict[str, int] | tuple[str, ...]) -> None:
        """Forward those that lead to something advertised there and that nothing told before covers."""
        link = self.links[name]
        if not link.broker:
            return
        types = {one for types in link.advertised.values() for one in types}
        new = []
        for text in list(texts):
            if text in link.told or not self._leads_there(text, types) or not self._wanted_beside(text, name):
                continue
            if not any(_covers(told, text) for told in link.told):
                link.told[text] = None
                new.append(text)
        if new:
            self.send(name, Subscribe(link.turn, tuple(new)))

    def _leads_there(self, text: str, types: set[str]) -> bool:
        """A client tells its broker everything."""
        if not self.broker:
            return True
        filter = read_filter(text)
        return filter is not None and any(could_match(filter, subject) for subject in types)

    def _wanted_beside(self, text: str, name: str) -> bool:
        """Whether somebody other than that neighbour wants it."""
        return self.texts.holders.get(text, 0) > (text in self.links[name].wants)

    def remove(self, texts: tuple[str, ...], source: str) -> None:
        """They no longer do; what was covered by a text that is taken back is forwarded now."""
        link = self.links.get(source)
        if link is not None:
            texts = tuple(text for text in texts if text in link.wants)
            for text in texts:
                del link.wants[text]
        if link is None or not link.broker:
            self.interest.release(texts)
        self.texts.release(texts)
        for name, other in self.links.items():
            taken = [text for text in texts if text in other.told and not self._wanted_beside(text, name)]
            if name != source and taken:
                for text in taken:
                    del other.told[text]
                self.send(name, Unsubscribe(other.turn, tuple(taken)))
                self.offer(name, self.texts.holders)

    # Events.

    def publish(self, event: Event, now: float) -> Effects:
        self._be_publisher(event.type, now)
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
        met = self.texts.matching(event)
        self.transfers += 1
        mine = not met.isdisjoint(self.local.texts.values())
        if not mine and (self.settings.broker_interest == "own" or met.isdisjoint(self.interest.holders)):
            self.extraneous += 1
        if mine:
            self.local.deliver_local(self, event, packet.hops, now)
        if self.broker:
            self.forward(event, packet.hops, sender, met)

    def forward(self, event: Event, hops: int, sender: str, met: set[str]) -> None:
        """A client sends it to its broker, a broker to every neighbour that wants it."""
        packet = Notify(event, hops + 1)
        for name, link in self.links.items():
            if name != sender and (not self.broker or not met.isdisjoint(link.wants)):
                self.send(name, packet)
