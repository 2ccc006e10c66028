"""Expected receivers of a simulated run: the oracle, asked with the run's own trajectories and faults."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from earshot.events import Event
from earshot.filters import Oracle, Viewer
from earshot.geometry import Position, Velocity
from earshot.records.sessions import Interval, SubscriptionSpan
from earshot.records.trajectories import Trajectories
from earshot.simulation.faults import FaultPlan


def up_intervals(trajectories: Trajectories, faults: FaultPlan) -> list[list[Interval]]:
    """For each node the intervals in which it is there, and not down for any reason."""
    down: dict[int, list[Interval]] = defaultdict(list)
    failed: dict[tuple[int, str], float] = {}
    for outage in faults.outages:
        key = (outage.node, outage.cause)
        if not outage.back:
            failed.setdefault(key, outage.time_s)
        elif key in failed:
            down[outage.node].append((failed.pop(key), outage.time_s))
    for (node, _), since in failed.items():
        down[node].append((since, math.inf))
    return [_without(there, down.get(node, ())) for node, there in enumerate(trajectories.presence)]


def is_up(intervals: Iterable[Interval], time: float) -> bool:
    """Whether a node that is up in those intervals is up at that time."""
    return any(start <= time < end for start, end in intervals)


def _without(intervals: Sequence[Interval], holes: Iterable[Interval]) -> list[Interval]:
    left = list(intervals)
    for start, end in holes:
        parts = [((a, min(b, start)), (max(a, end), b)) for a, b in left]
        left = [part for pair in parts for part in pair if part[0] < part[1]]
    return sorted(left)


class RunOracle:
    """Says for each event of a run which nodes should receive it; nodes by their number."""

    def __init__(
        self, spans: Iterable[SubscriptionSpan], trajectories: Trajectories, up: Sequence[Sequence[Interval]]
    ) -> None:
        self._trajectories = trajectories
        self._number = {name: i for i, name in enumerate(trajectories.names)}
        self._oracle = Oracle(part for span in spans for part in span.during(up[self._number[span.node]]))

    def receivers(self, event: Event, time: float) -> set[int]:
        """The numbers of the nodes that should receive an event published at that time."""
        return {self._number[name] for name in self._oracle.receivers(event, time, self._viewer)}

    def _viewer(self, node: str, time: float) -> Viewer:
        i, trajectories = self._number[node], self._trajectories
        return Viewer(Position(*trajectories.position(i, time)), Velocity(*trajectories.velocity(i, time)))
