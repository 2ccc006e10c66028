"""The path that a subscriber keeps from a publisher, of those that its notifications come by (section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from earshot.protocols.georendezvous.cells import Cell


class Offer(NamedTuple):
    """A path through one rendezvous point, as a notification has shown it; the least one is best."""

    hops: int
    distance_m: float
    "From the subscriber to the rendezvous point: breaks ties between equal hops."
    point: int
    rendezvous: Cell


@dataclass(slots=True)
class PathChoice:
    """The paths from one publisher to this subscriber, and the one that is kept (section 2.3)."""

    offers: dict[int, Offer] = field(default_factory=dict)
    "The paths in use, by rendezvous point."
    best: int | None = None
    "The point of the chosen one."
    pruned: set[int] = field(default_factory=set)
    "The points whose paths have been pruned."
    heard_at: float = 0.0
    "When the publisher's last notification came."

    def offer(self, offer: Offer) -> list[Offer]:
        """A notification came by this path; after the choice, the worse of two paths is to be pruned.

        A notification on a pruned path was ahead of the prune, or the prune is lost. To choose that path
        now would leave none: it ends at the prune, and the best one would be pruned for it.
        """
        if offer.point in self.pruned:
            return [offer]
        self.offers[offer.point] = offer
        return [] if self.best is None else self.choose()

    def choose(self) -> list[Offer]:
        """Keep the path with the fewest hops; the others are to be pruned."""
        best, *others = sorted(self.offers.values())
        self.best = best.point
        self.offers = {best.point: best}
        self.pruned.update(offer.point for offer in others)
        return others
