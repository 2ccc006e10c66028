"""GOSSIP(d, p), as section 5.4 of the STEAM paper uses it: beyond distance d, forward with probability p.

Nodes within d of the source always pass an event on, so that it does not die out at once. Farther
away each node forwards by chance, which saves transmissions where enough neighbours carry the event.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from earshot.events import Event
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.protocols.machine import NOTHING, Effects, Location
from earshot.settings import NotNegative, Share
from earshot.wire import Packet


@dataclass(frozen=True, slots=True)
class GossipSettings(FloodingSettings):
    """Flooding's settings and the two parameters of G(d, p)."""

    distance_m: NotNegative = 200.0
    "d: nodes within this distance of the source always pass an event on."
    probability: Share = 0.8
    "p: nodes farther away pass an event on with this probability."


class Rumour(Packet, frozen=True, tag="rumour"):
    """An event; `hops` counts the transmissions, this one included."""

    event: Event
    hops: int


class Gossip(Flooding):
    """Flooding, except that a node far from the source forwards only with probability p."""

    name = "gossip"
    paper = "GOSSIP(d, p): Haas, Halpern and Li (INFOCOM 2002), as Meier and Cahill's STEAM (2010) uses it"
    Settings = GossipSettings
    EventPacket = Rumour

    def __init__(self, node: str, settings: GossipSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: GossipSettings = settings

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is not Rumour or packet.event.id in self.heard.keys:
            return NOTHING
        return self.on_new(packet.event, packet.hops, now)

    def chooses_to_forward(self, event: Event, now: float) -> bool:
        return self.within_distance(event, now) or self.random.random() < self.settings.probability

    def within_distance(self, event: Event, now: float) -> bool:
        """Whether this node is within d of the event's position; an event without a position counts as far away."""
        at = event.position
        return at is not None and at.distance_to(self.location.position(now)) <= self.settings.distance_m
