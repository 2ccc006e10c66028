"""Reach: the chance that a packet is heard at a distance, learnt from what neighbours show to have heard or missed.

The curve begins as a disk with the radius that the settings believe in. Two things change it:

- Hellos are numbered. A hello that arrives is a hit at its distance, a number that was skipped a miss.
- Digests. An event that a neighbour lacks although we heard it said from some place is a miss at the distance
  between that place and the neighbour; one that it holds is a hit at the distance to the nearest such place.

Errors of position blur the curve's edge as they blur the distances, so the decisions see them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import hypot

from earshot.protocols.hearsay.neighbours import Neighbour

STEPS = 10
"Distances are counted in tenths of the believed range."
FARTHEST = 4 * STEPS
"Distances are counted up to four times that range."
RECENT = 64.0
"At each distance the last observations count, about this many."
UNKNOWN = 0.6
"""The chance that a node hears a neighbour of its neighbour, where a place is unknown: of two nodes in the same disk,
59 % are in each other's range."""


class Reach:
    """One node's curve."""

    __slots__ = ("_chances", "_hits", "_misses", "_recent", "_steps_per_m")

    def __init__(self, range_m: float, trust: float) -> None:
        """Begin with a disk that counts as this number of observations at each distance."""
        self._steps_per_m = STEPS / range_m
        self._recent = max(RECENT, 2.0 * trust)
        self._chances = [1.0] * STEPS + [0.0] * (FARTHEST - STEPS + 1)
        self._hits = [trust * chance for chance in self._chances]
        self._misses = [trust * (1.0 - chance) for chance in self._chances]

    def chances(self, x: float, y: float, neighbours: Iterable[Neighbour], now: float, unplaced: float) -> list[float]:
        """The chance of each neighbour to hear a packet that is sent at (x, y); `unplaced` where its place is unknown.
        (One loop without calls: most of a node's work is in this and the next method.)"""
        chances, steps_per_m, found = self._chances, self._steps_per_m, []
        for one in neighbours:
            if one.placed:
                ahead_s = now - one.at_s
                step = hypot(one.x + one.vx * ahead_s - x, one.y + one.vy * ahead_s - y) * steps_per_m
                found.append(chances[int(step)] if step < FARTHEST else 0.0)
            else:
                found.append(unplaced)
        return found

    def beyond(
        self,
        x: float,
        y: float,
        here: tuple[float, float],
        neighbours: Mapping[str, Neighbour],
        now: float,
        worth: float,
    ) -> list[tuple[str, Neighbour, float, float]]:
        """The neighbours that miss a packet that is sent at (x, y) and hear one that is sent here, with a chance of at
        least `worth`; the chance of each to miss the one, and to miss the one and hear the other."""
        chances, steps_per_m, found = self._chances, self._steps_per_m, []
        (here_x, here_y), most = here, 1.0 - worth
        for name, one in neighbours.items():
            if one.placed:
                ahead_s = now - one.at_s
                one_x, one_y = one.x + one.vx * ahead_s, one.y + one.vy * ahead_s
                step = hypot(one_x - x, one_y - y) * steps_per_m
                hears_it = chances[int(step)] if step < FARTHEST else 0.0
                if hears_it > most:
                    continue
                step = hypot(one_x - here_x, one_y - here_y) * steps_per_m
                hears_us = chances[int(step)] if step < FARTHEST else 0.0
            else:
                hears_it, hears_us = UNKNOWN, 1.0
            reached = (1.0 - hears_it) * hears_us
            if reached >= worth:
                found.append((name, one, 1.0 - hears_it, reached))
        return found

    def observe(self, distance_m: float, hits: float, misses: float) -> None:
        """Count packets that were heard and missed at that distance."""
        step = distance_m * self._steps_per_m
        at = int(step) if step < FARTHEST else FARTHEST
        self._hits[at] = heard = self._hits[at] + hits
        self._misses[at] = missed = self._misses[at] + misses
        total = heard + missed
        self._chances[at] = heard / total
        if total > self._recent:
            self._hits[at] = 0.5 * heard
            self._misses[at] = 0.5 * missed
