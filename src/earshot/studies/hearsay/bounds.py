"""What full knowledge could do: which deliveries are reachable, and with how many transmissions.

`bounds` asks no protocol. For each event it looks at who is in range of whom when the event is published:

- *least*: no fewer transmissions than hops to the farthest receiver, and no fewer than there are receivers of which no
  node reaches two. Nobody that delivers at once needs less.
- *omniscient*: a heuristic that knows every place, every subscription and every link, and loses nothing, needs this.
- *everybody*: the same heuristic where subscriptions are unknown: all nodes in the event's area must be reached.

None of them pays for hellos, repair or collisions. A transmission has the bytes of flooding's packet, the smallest that
carries an event.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable

import pyarrow as pa

from earshot.geometry import Position
from earshot.pipeline.lake.tables import arrow_schema
from earshot.pipeline.oracle.reachable import network_of, radio_range_m, reach_in_one_task
from earshot.pipeline.oracle.whole_workloads import expected_of
from earshot.pipeline.oracle.workloads import events_of, workload_tables
from earshot.protocols.flooding import Flood
from earshot.simulation.engine.oracle import is_up, up_intervals
from earshot.simulation.faults import plan
from earshot.simulation.media.open_medium import neighbours_in
from earshot.studies.figures import Row
from earshot.studies.hearsay.runs import scenario_of, trace_file
from earshot.studies.study import Case
from earshot.wire import size

Linked = Callable[[int], Iterable[int]]
"The nodes that hear what a node says; nobody, if it passes nothing on."


def hops_from(source: int, linked: Linked) -> dict[int, int]:
    """By node, the fewest transmissions that bring an event there; nodes out of reach are absent."""
    hops, due = {source: 0}, deque([source])
    while due:
        one = due.popleft()
        for other in linked(one):
            if other not in hops:
                hops[other] = hops[one] + 1
                due.append(other)
    return hops


def least_transmissions(source: int, receivers: Iterable[int], linked: Linked) -> int:
    """Nobody reaches these receivers with fewer."""
    hops = hops_from(source, linked)
    farthest = max((hops[one] for one in receivers), default=0)
    speakers: dict[int, set[int]] = defaultdict(set)
    for one in hops:
        for other in linked(one):
            speakers[other].add(one)
    taken: set[int] = set()
    apart = 0
    for one in sorted((one for one in receivers if one != source), key=lambda one: (len(speakers[one]), one)):
        if taken.isdisjoint(speakers[one]):
            taken |= speakers[one]
            apart += 1
    return max(farthest, apart)


def omniscient_transmissions(source: int, receivers: Iterable[int], linked: Linked) -> int:
    """What a greedy choice of speakers needs: next the node that reaches most new receivers, or leads towards one."""
    lacking = {one for one in receivers if one != source}
    reached, spoken, speaker = {source}, set[int](), source
    while lacking:
        spoken.add(speaker)
        heard = set(linked(speaker))
        reached |= heard
        lacking -= heard
        ready = sorted(reached - spoken)
        gains = {one: len(lacking.intersection(linked(one))) for one in ready}
        best = max(ready, key=lambda one: (gains[one], -one), default=source)
        speaker = best if gains.get(best) else _towards(lacking, ready, linked)
    return len(spoken)


def _towards(lacking: set[int], ready: Iterable[int], linked: Linked) -> int:
    """Of the nodes that have the event, the one from which the fewest hops lead to a node that lacks it."""
    first = {one: one for one in ready}
    due = deque(first)
    while due:
        one = due.popleft()
        for other in linked(one):
            if other in lacking:
                return first[one]
            if other not in first:
                first[other] = first[one]
                due.append(other)
    return -1


def bounds(case: Case) -> list[Row]:
    """The ceiling of a scenario and seed, and the transmissions and bytes that full knowledge needs."""
    if "trace" in case and trace_file(case["trace"]) is None:
        return []
    scenario, seed = scenario_of(case), case["seed"]
    drawn = workload_tables("bounds", scenario, seed)
    events, subscriptions, positions, sessions = (
        pa.Table.from_pylist(list(rows), schema=arrow_schema(table, with_partitions=True))
        for table, rows in (
            ("events", [row for row in drawn.events if row["time"] >= scenario.warm_up_s]),
            ("subscriptions", drawn.subscriptions),
            ("positions", drawn.positions),
            ("sessions", drawn.sessions),
        )
    )
    expected = expected_of(events, subscriptions, positions)
    network = network_of(scenario, seed, radio_range_m(scenario))
    reach = reach_in_one_task("bounds", network, events, expected, positions, sessions).column("reach").to_pylist()
    wanted: dict[str, set[str]] = defaultdict(set)
    for event, node in zip(*(expected.column(name).to_pylist() for name in ("event", "node")), strict=True):
        wanted[event].add(node)

    trajectories = scenario.trajectories(seed)
    names = trajectories.names
    number = {name: i for i, name in enumerate(names)}
    up = up_intervals(trajectories, plan(scenario.faults, names, scenario.duration_s, seed))
    neighbours = neighbours_in(scenario.medium, trajectories, scenario.faults.partitions)  # type: ignore[arg-type]
    pairs, sums = 0, Counter[str]()
    published = sorted(events_of(events), key=lambda event: event.time)
    for event in published:
        source, time, area = number[event.source], event.time, event.area

        def linked(one: int, source: int = source, time: float = time) -> list[int]:
            if one != source and names[one] in network.silent:
                return []
            return [other for other in neighbours.of(one, time) if is_up(up[other], time)]

        inside = {
            one
            for one in hops_from(source, linked)
            if area is None or area.contains(Position(*trajectories.position(one, time)))
        }
        receivers = {number[name] for name in wanted[event.id]} & inside
        pairs += len(receivers)
        for what, transmissions in (
            ("least", least_transmissions(source, receivers, linked)),
            ("omniscient", omniscient_transmissions(source, receivers, linked)),
            ("everybody", omniscient_transmissions(source, inside, linked)),
        ):
            sums[what] += transmissions
            sums[f"{what}_bytes"] += transmissions * size(Flood(event, 1))
    row: dict[str, float] = {
        "expected": len(reach),
        "reachable": sum(one != "no" for one in reach) / max(len(reach), 1),
        "at_once": sum(one == "at once" for one in reach) / max(len(reach), 1),
    }
    for what in ("least", "omniscient", "everybody"):
        row[what] = sums[what] / max(len(published), 1)
        row[f"{what}_bytes"] = sums[f"{what}_bytes"] / max(pairs, 1)
    return [row]
