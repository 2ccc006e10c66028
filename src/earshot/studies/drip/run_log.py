"""The log of one run of DRIP or SF, read into coverage, delays, meetings and the fate of each event."""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from earshot.records import DropReason, Kind
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.oracle import RunOracle, up_intervals
from earshot.simulation.engine.result import RunResult
from earshot.simulation.faults import plan
from earshot.simulation.scenario.scenario import Scenario

RANGE_M = 120.0
"Section VI.A: the transmission range, with every radio of the study."
SAMPLE_S = 5.0
"How often it is asked which broker is nearest."


class NoteLog(Log):
    """A log of notes and dropped events: transmissions are not needed and would fill it."""

    keeps_transmissions = False

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[float, int, str, str]] = []
        "(time, node, topic, detail)"
        self.drops: dict[str, list[str]] = defaultdict(list)
        "For each event why nodes dropped it."

    def row(self, kind: Kind, time: float, node: int, **columns: Any) -> None:
        if kind is Kind.NOTE:
            topic, _, detail = columns["detail"].partition(": ")
            self.notes.append((time, node, topic, detail))
        elif kind is Kind.LEAVE:
            self.notes.append((time, node, "broker", ""))
        elif kind is Kind.DROP and columns.get("event"):
            self.drops[columns["event"]].append(columns["detail"])


class RunLog:
    """What happened to brokers and events in one run."""

    def __init__(self, scenario: Scenario, result: RunResult, log: NoteLog) -> None:
        self.scenario, self.result, self.drops = scenario, result, log.drops
        self.k = int(result.settings["brokers"])
        self.copies: dict[str, dict[str, float]] = defaultdict(dict)
        "For each event when each broker first held it."
        self.wanted: dict[tuple[str, str], tuple[float, str, tuple[str, ...]]] = {}
        "(event, subscriber): when its source broker matched it, that broker, and the subscriber's brokers."
        self.attached: dict[int, list[tuple[float, str]]] = defaultdict(list)
        "Each node's brokers over time."
        self.meetings: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
        "For each pair of brokers when they became reachable (True) and unreachable (False)."
        self.elected: list[tuple[float, str]] = []
        self.terms: dict[str, list[list[float]]] = defaultdict(list)
        "For each node the times from which and until which it was a broker."
        for time, node, topic, detail in log.notes:
            name = result.nodes[node]
            if topic == "copy":
                self.copies[detail].setdefault(name, time)
            elif topic == "wanted":
                event, _, rest = detail.partition(" by ")
                subscriber, _, near = rest.partition(" near ")
                self.wanted.setdefault((event, subscriber), (time, name, tuple(near.split())))
            elif topic == "attached":
                self.attached[node].append((time, detail))
            elif topic in ("meets", "parts"):
                self.meetings[name, detail].append((time, topic == "meets"))
            elif topic == "broker" and detail:
                self.elected.append((time, name))
                self.terms[name].append([time, result.duration_s])
            elif topic == "broker" and self.terms[name]:
                self.terms[name][-1][1] = min(time, self.terms[name][-1][1])
        self.expected = self._expected()
        self.first, self.times_delivered = self._deliveries()

    def _expected(self) -> dict[tuple[int, int], float]:
        """(event, node) pairs that count, and when the event was published."""
        result = self.result
        trajectories = self.scenario.trajectories(result.seed)
        faults = plan(self.scenario.faults, trajectories.names, self.scenario.duration_s, result.seed)
        oracle = RunOracle(result.subscriptions, trajectories, up_intervals(trajectories, faults))
        return {
            (number, node): event.time
            for number, event in enumerate(result.published)
            if event.time >= result.warm_up_s
            for node in oracle.receivers(event, event.time)
        }

    def _deliveries(self) -> tuple[dict[tuple[int, int], float], Counter[tuple[int, int, str]]]:
        found = self.result.deliveries
        first: dict[tuple[int, int], float] = {}
        count: Counter[tuple[int, int, str]] = Counter()
        for time, node, event, subscription in zip(
            found.time, found.node, found.event, found.subscription, strict=True
        ):
            first.setdefault((event, node), time)
            count[event, node, subscription] += 1
        return {pair: time for pair, time in first.items() if pair in self.expected}, count

    def delays(self) -> list[float]:
        """Publication to delivery, in order of size."""
        return sorted(time - self.expected[pair] for pair, time in self.first.items())

    def copies_then(self) -> Iterator[tuple[int, int]]:
        """For each delivery its event, and how many brokers had held that by then."""
        for (event, _), time in self.first.items():
            held = self.copies[self.result.published[event].id]
            yield event, sum(since <= time for since in held.values())

    def copies_in_the_end(self) -> dict[int, int]:
        """For each delivered event how many brokers held it at some time of the run."""
        delivered = {event for event, _ in self.first}
        return {event: len(self.copies[self.result.published[event].id]) for event in sorted(delivered)}

    def of_one_subscriber(self) -> set[int]:
        """The events that one node wants, and no other."""
        wanted = Counter(event for event, _ in self.expected)
        return {event for event, receivers in wanted.items() if receivers == 1}

    def hops_beyond_nearest(self) -> Counter[int]:
        """For nodes that are no brokers, every few seconds after the warm-up: by how many hops their local broker is
        farther than the nearest one."""
        trajectories = self.scenario.trajectories(self.result.seed)
        beyond: Counter[int] = Counter()
        time = self.result.warm_up_s
        while time <= self.result.duration_s:
            brokers = [name for name, terms in self.terms.items() if any(a <= time < b for a, b in terms)]
            places = trajectories.positions(time)
            near = np.linalg.norm(places[:, None] - places[None], axis=2) <= RANGE_M
            rows = [self.result.nodes.index(name) for name in brokers]
            hops = dict(zip(brokers, dijkstra(near, unweighted=True, indices=rows), strict=True)) if rows else {}
            for node, name in enumerate(self.result.nodes):
                local = self._broker_at(node, time)
                if name not in hops and local in hops and math.isfinite(hops[local][node]):
                    beyond[int(hops[local][node] - min(of[node] for of in hops.values()))] += 1
            time += SAMPLE_S
        return beyond

    def _broker_at(self, node: int, time: float) -> str:
        changes = self.attached[node]
        at = bisect.bisect_right([since for since, _ in changes], time)
        return changes[at - 1][1] if at else ""

    def destination_delays(self) -> tuple[list[float], int]:
        """T_mcmd: for each subscriber in another region, the time from the match until all its brokers had the
        event; and for how many subscribers that never happened."""
        found, unreached = [], 0
        for (event, _), (time, source, near) in self.wanted.items():
            held = self.copies[event]
            destinations = [broker for broker in near if broker != source]
            if not destinations or time < self.result.warm_up_s:
                continue
            if all(broker in held for broker in destinations):
                found.append(max(held[broker] for broker in destinations) - time)
            else:
                unreached += 1
        return found, unreached

    def mean_meeting_s(self) -> float:
        """1 / lambda: the mean time, from any moment at which both are brokers, until a broker can reach a given other
        broker. A wait ends with the term of one of the two: a node that is no broker meets no broker."""
        start, end = self.result.warm_up_s, self.result.duration_s
        waited = shared = 0.0
        for one, other in permutations(sorted(self.terms), 2):
            for (a, b), (c, d) in product(self.terms[one], self.terms[other]):
                begin, until = max(a, c, start), min(b, d, end)
                if begin < until:
                    waited += _total_wait(self.meetings.get((one, other), []), begin, until)
                    shared += until - begin
        return waited / shared if shared else math.nan

    def attached_share(self) -> float:
        """The share of all nodes' time, after the warm-up, in which they had a local broker."""
        start, end = self.result.warm_up_s, self.result.duration_s
        without = 0.0
        for node in range(len(self.result.nodes)):
            changes = [(0.0, ""), *self.attached[node], (end, "")]
            without += sum(max(0.0, min(b, end) - max(a, start)) for (a, name), (b, _) in pairwise(changes) if not name)
        return 1.0 - without / (len(self.result.nodes) * (end - start))

    def handovers(self) -> int:
        """Changes from one broker to another after the warm-up."""
        return sum(
            time >= self.result.warm_up_s and bool(before) and bool(after)
            for changes in self.attached.values()
            for (_, before), (time, after) in pairwise(changes)
        )

    def fates(self) -> tuple[Counter[str], Counter[str]]:
        """What became of each expected delivery, of all of them and of those whose receiver changed its broker while
        the event was on its way."""
        every: Counter[str] = Counter()
        across: Counter[str] = Counter()
        lifespan_s = float(self.result.settings["lifespan_s"])
        subscriptions = defaultdict(list)
        for span in self.result.subscriptions:
            subscriptions[span.node].append(span.subscription)
        for (event, node), published_at in self.expected.items():
            until = self.first.get((event, node), min(published_at + lifespan_s, self.result.duration_s))
            if (event, node) in self.first:
                most = max(self.times_delivered[event, node, id] for id in subscriptions[self.result.nodes[node]])
                fate = "delivered once" if most == 1 else "delivered twice"
            else:
                fate = f"lost: {self._reason(event, node, published_at, until)}"
            every[fate] += 1
            across[fate] += self._changed(node, published_at, until)
        return every, +across

    def _changed(self, node: int, start: float, end: float) -> bool:
        return any(start < time <= end for time, _ in self.attached[node])

    def _reason(self, event: int, node: int, start: float, end: float) -> str:
        """Why an event did not reach a node, from the last step that is known."""
        id, name = self.result.published[event].id, self.result.nodes[node]
        held = self.copies[id]
        if not held:
            why = self.drops.get(id)
            return f"no broker had it ({why[-1] if why else 'still on its way at the end'})"
        changes = self.attached[node]
        first = max(bisect.bisect_right([time for time, _ in changes], start) - 1, 0)
        own = [(max(time, start), broker) for time, broker in changes[first:] if time <= end]
        ends = [*(time for time, _ in own[1:]), end]
        if any(broker in held and held[broker] <= until for (_, broker), until in zip(own, ends, strict=True)):
            return "its broker had the event, but it was not received from there"
        source = min(held, key=lambda broker: held[broker])
        if (id, name) not in self.wanted and all(broker != source for _, broker in own):
            return "its subscription was not known where the event was matched"
        if DropReason.BROKER_MEMORY in self.drops.get(id, ()):
            return "a broker's memory was full"
        return "no copy reached one of its brokers"


def _total_wait(changes: list[tuple[float, bool]], start: float, end: float) -> float:
    """The time, added up over all moments from start to end, until the two can communicate."""
    total, apart_since = 0.0, start
    together = False
    for time, meets in [*changes, (end, True)]:
        time = min(max(time, start), end)
        if meets and not together:
            total += (time - apart_since) ** 2 / 2
        elif not meets:
            apart_since = time
        together = meets
    return total
