"""GOSSIP(d, p), as section 5.4 of the STEAM paper uses it: beyond distance d, forward with probability p.

Nodes within d of the source always pass an event on, so that it does not die out at once. Farther
away each node forwards by chance, which saves transmissions where enough neighbours carry the event.
"""

from __future__ import annotations

from dataclasses import dataclass

from earshot.events import Event
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.tuning import Surroundings, Tunable, guess
from earshot.settings import NotNegative, Share

ENOUGH_NEIGHBOURS = 6.0
"An event stays alive where this number of neighbours pass it on."


@dataclass(frozen=True, slots=True)
class GossipSettings(FloodingSettings):
    """Flooding's settings and the two parameters of G(d, p)."""

    distance_m: NotNegative = 200.0
    "d: nodes within this distance of the source always pass an event on."
    probability: Share = 0.8
    "p: nodes farther away pass an event on with this probability."


class Rumour(Flood, frozen=True, tag="rumour"):
    """As flooding's packet, for nodes that gossip."""


class Gossip(Flooding):
    """Flooding, except that a node far from the source forwards only with probability p."""

    name = "gossip"
    paper = "GOSSIP(d, p): Haas, Halpern and Li (INFOCOM 2002), as Meier and Cahill's STEAM (2010) uses it"
    Settings = GossipSettings
    settings: GossipSettings
    EventPacket = Rumour

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        """An event dies out where on average fewer than some six neighbours pass it on."""
        first = guess(ENOUGH_NEIGHBOURS / max(around.mean_neighbours, 1.0), 0.2, 1.0)
        reason = f"about {ENOUGH_NEIGHBOURS:g} of {around.mean_neighbours:.0f} neighbours should pass an event on"
        near = guess(around.range_m, 1.0, 1e6)
        always = Tunable("distance_m", near, near / 2.0, near * 2.0, "the source's own neighbours always pass it on")
        return (Tunable("probability", first, 0.2, 1.0, reason, step=1.5), *super().tuning(around), always)

    def chooses_to_forward(self, event: Event, now: float) -> bool:
        """Within d of the event's position always; an event without a position counts as far away."""
        at = event.position
        near = at is not None and at.distance_to(self.location.position(now)) <= self.settings.distance_m
        return near or self.random.random() < self.settings.probability
