"""How often an announcement is beaconed, how far around its proximity, and which beacons need not be passed on.

The paper beacons every announcement in every period, inside its proximity (section 4.5, the preset `PAPER`). On
a real radio the beacons of many or of large proximities then fill the channel. These are our rules against it:

1. Reach. A proximity is announced over a margin around it, and the next beacon is due before a consumer can cross
   the margin: it learns of the proximity before it is inside. A large proximity has a wide margin and thus a long
   period. Nobody can come into a proximity that is everywhere: it has the longest period.
2. Age. The periods of a new announcement begin short and double, as in RFC 6206 (Trickle): a beacon that is lost
   in the beginning is sent again after a short time.
3. Channel. A busy channel stretches all periods: they last as long as if only its idle time passed.
4. One a group. Producers that announce the same type for the same fixed area share a group, and a consumer needs
   one of them to find it. A node passes on only the beacons of the nearest one.

A node that comes later does not wait for the next beacon: it asks its neighbours (`ProximityQuestion`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from earshot.protocols.steam.packets import SteamSettings
from earshot.protocols.steam.relevant_proximities import RelevantProximity

BUSIEST = 0.875
"A channel that is busier than this stretches periods no further: by 8 times."


class Pace(NamedTuple):
    """How an announcement is beaconed for now."""

    rounds: int
    "Its next beacon is due in this many rounds of `beacon_interval_s`."
    margin_m: float
    "It is announced this far around its proximity."


def pace(
    reach_m: float, slack_m: float, naval_m_s: float, beacons: int, busy_share: float, settings: SteamSettings
) -> Pace:
    """The pace of an announcement after this number of beacons.

    `reach_m` is the farthest point of the proximity from its naval, `slack_m` how far the producer's radio reaches
    beyond it (negative: not that far), `naval_m_s` the naval's speed.
    """
    if not settings.stretches_beacons:
        return Pace(1, 0.0)
    closing_m_s = settings.consumer_speed_m_s + naval_m_s
    margin_m = settings.margin_share * reach_m
    if slack_m >= 0.0:
        margin_m = min(margin_m, slack_m)  # beacons that go one hop stay so
    rounds = margin_m / closing_m_s / settings.beacon_interval_s
    rounds = min(rounds, 2.0 ** min(beacons, 30))
    rounds = rounds / (1.0 - min(busy_share, BUSIEST))
    whole = max(1, math.floor(min(rounds, settings.beacon_stretch)))
    if math.isinf(reach_m):
        return Pace(whole, 0.0)
    covered_m = closing_m_s * whole * settings.longest_round_s
    return Pace(whole, min(covered_m, slack_m) if slack_m >= 0.0 else covered_m)


def is_nearest(entry: RelevantProximity, of_its_group: Iterable[RelevantProximity]) -> bool:
    """Whether no other producer of the group is fewer hops away. A mobile proximity is a place of its own."""
    if entry.mobile:
        return True
    hops, key = entry.advert.hops, entry.key
    # Hops are compared first: keys matter only between equals, and a group may have many producers.
    return not any(
        one.advert.hops <= hops and (one.advert.hops, one.key) < (hops, key) and not one.mobile for one in of_its_group
    )
