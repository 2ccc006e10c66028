"""Expected receivers: who should receive an event, by a plain and exact rule.

A live node is expected to receive an event when one of the subscriptions it holds at the time of
publication accepts it, seen from where the node is at that time: type, content and place all agree.
The publisher itself is never a receiver. Nothing here looks at what a protocol did.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.geometry import Position, Velocity
from earshot.simulation.engine.result import Wish
from earshot.simulation.faults import FaultPlan
from earshot.simulation.mobility import Interval, Trajectories


class Lives:
    """When each node is there and running."""

    def __init__(self, trajectories: Trajectories, faults: FaultPlan) -> None:
        down: dict[int, list[Interval]] = defaultdict(list)
        fell: dict[tuple[int, str], float] = {}
        for outage in faults.outages:
            key = (outage.node, outage.cause)
            if not outage.back:
                fell.setdefault(key, outage.time_s)
            elif key in fell:
                down[outage.node].append((fell.pop(key), outage.time_s))
        for (node, _), since in fell.items():
            down[node].append((since, math.inf))
        self.up: list[list[Interval]] = [
            _without(there, down.get(node, ())) for node, there in enumerate(trajectories.presence)
        ]
        "For each node the intervals [from, until) in which it is there, and not down for any reason."

    def alive(self, node: int, time: float) -> bool:
        """Whether the node is there and running."""
        return any(start <= time < end for start, end in self.up[node])

    def during(self, node: int, start: float, end: float) -> Iterator[Interval]:
        """The parts of an interval in which the node is there and running."""
        for since, until in self.up[node]:
            if max(since, start) < min(until, end):
                yield max(since, start), min(until, end)


def _without(intervals: Sequence[Interval], holes: Iterable[Interval]) -> list[Interval]:
    left = list(intervals)
    for start, end in holes:
        parts = [((a, min(b, start)), (max(a, end), b)) for a, b in left]
        left = [part for pair in parts for part in pair if part[0] < part[1]]
    return sorted(left)


class Oracle:
    """Says for each event which nodes should receive it.

    Content comes first: every distinct filter, without its consumer, is in one index. Where the
    consumer is matters only to those whose filter the event could meet.
    """

    def __init__(self, wishes: Sequence[Wish], trajectories: Trajectories, lives: Lives) -> None:
        self._trajectories = trajectories
        self._lives = lives
        self._index = FilterIndex()
        self._wishes: list[list[Wish]] = []
        "Of each distinct filter, by its number in the index."
        numbers: dict[Filter, int] = {}
        for wish in wishes:
            loose = wish.subscription.filter.without_viewer_terms()
            number = numbers.setdefault(loose, len(self._wishes))
            if number == len(self._wishes):
                self._index.add(number, loose)
                self._wishes.append([])
            self._wishes[number].append(wish)
        self._number = {name: i for i, name in enumerate(trajectories.names)}

    def receivers(self, event: Event, time: float) -> set[int]:
        """The numbers of the nodes that should receive an event published at that time."""
        source = self._number.get(event.source, -1)
        found: set[int] = set()
        for number in self._index.match(event):
            for wish in self._wishes[number]:
                if wish.node != source and wish.node not in found and self._wanted(wish, event, time):
                    found.add(wish.node)
        return found

    def _wanted(self, wish: Wish, event: Event, time: float) -> bool:
        if not wish.since_s <= time < (wish.until_s if wish.until_s is not None else float("inf")):
            return False
        if not self._lives.alive(wish.node, time):
            return False
        here = Position(*self._trajectories.position(wish.node, time))
        if event.area is not None and not event.area.contains(here):
            return False
        region = wish.subscription.region
        if region is not None and (event.position is None or not region.contains(event.position)):
            return False
        if not wish.subscription.filter.needs_viewer:
            return True
        viewer = Viewer(here, Velocity(*self._trajectories.velocity(wish.node, time)))
        return wish.subscription.filter.matches(event, viewer)
