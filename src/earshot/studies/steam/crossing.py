"""Section 5.2: the crossing of North Circular Road and Prussia Street, and its traffic light.

One model for all lanes, written in docs/papers/steam.md before the first run: straight lanes
through the light, one speed, two events at each whole second, a beacon every tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.packets import PAPER, SteamSettings
from earshot.records import Kind
from earshot.simulation.engine.log import Log
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action
from earshot.studies.figures import Row
from earshot.studies.steam.runs import MILE_AN_HOUR, RANGE_M, SteamRun, around, simulate
from earshot.studies.study import Case


@dataclass(frozen=True)
class LaneRow:
    """One column of table 1: a lane and its counts."""

    approach: int
    number: int
    vehicles: int
    unfiltered: int
    filtered: int
    decrease: float
    "Relative, in percent."

    @property
    def name(self) -> str:
        return f"approach {self.approach} lane {self.number}"


TABLE_1 = (
    LaneRow(1, 1, 6652, 469_945, 24_139, 94.9),
    LaneRow(1, 2, 3320, 235_093, 11_905, 94.9),
    LaneRow(1, 3, 3728, 264_557, 13_553, 94.9),
    LaneRow(2, 1, 3038, 210_114, 9_436, 95.5),
    LaneRow(2, 2, 1383, 95_743, 4_488, 95.3),
    LaneRow(2, 3, 2802, 193_931, 8_805, 95.5),
    LaneRow(2, 4, 1135, 78_730, 3_543, 95.5),
)

SPEED_M_S = 25 * MILE_AN_HOUR
SCENE_M = 210.0
"A vehicle enters this far before the light and leaves this far behind it."
LANE_WIDTH_M = 3.0
PROXIMITY_M = 40.0
DAY_S = 24 * 3600.0
STRETCH_S = 600.0
"The part of the day that one run covers."
CYCLE_S = 100.0
GREEN = {1: (0.0, 45.0), 2: (45.0, 100.0)}
"The seconds of the cycle in which each approach has green: a split of 45 to 55."
ACROSS_S = SCENE_M / SPEED_M_S
LIGHT = EventType("Traffic Light", {"status": str, "approach": int, "location": Position})
SETTINGS = replace(PAPER, beacon_interval_s=0.1, expiry_s=0.5)


def crossing(case: Case) -> Sequence[Row]:
    """A part of the day: for each lane the vehicles, and the events delivered to them."""
    start = case["stretch"] * STRETCH_S
    passing = [
        (lane, time - start + ACROSS_S)
        for lane in TABLE_1
        for time in passing_times(lane, case["seed"])
        if start <= time < start + STRETCH_S
    ]
    unfiltered = delivered(passing, RANGE_M, anything_from_the_light, case["seed"])
    filtered = delivered(passing, PROXIMITY_M, approaching_the_light, case["seed"])
    return [
        {
            "lane": number,
            "vehicles": sum(lane is other for other, _ in passing),
            "unfiltered": unfiltered[number],
            "filtered": filtered[number],
        }
        for number, lane in enumerate(TABLE_1)
    ]


@cache
def passing_times(lane: LaneRow, seed: int) -> tuple[float, ...]:
    """When the lane's vehicles pass the light in 24 hours: uniform over the green seconds of its approach."""
    random = Random(f"{seed}:{lane.name}")
    start, end = GREEN[lane.approach]
    cycles = int(DAY_S / CYCLE_S)
    times = (random.randrange(cycles) * CYCLE_S + random.uniform(start, end) for _ in range(lane.vehicles))
    return tuple(sorted(times))


def anything_from_the_light(_: LaneRow) -> Filter:
    """A filter on the event type only."""
    return Filter.of_type("Traffic Light")


def approaching_the_light(lane: LaneRow) -> Filter:
    """The vehicle's content filter: events of its own approach, while the distance decreases."""
    return Filter.where(f"approach = {lane.approach} and approaching location", type="Traffic Light")


def delivered(
    passing: Sequence[tuple[LaneRow, float]], proximity_m: float, filter_of: Callable[[LaneRow], Filter], seed: int
) -> list[int]:
    """Events delivered on each lane while these vehicles pass at these times."""
    paths = [Trajectory.standing("light", 0.0, 0.0)]
    paths += [vehicle_path(f"vehicle-{k}", lane, time) for k, (lane, time) in enumerate(passing)]
    until_s = STRETCH_S + 2 * ACROSS_S
    actions = [Action(0.0, 0, Announcement(LIGHT, around(proximity_m)))]
    actions += [
        Action(time - ACROSS_S, k + 1, Subscription("light", paths[k + 1].name, filter_of(lane)))
        for k, (lane, time) in enumerate(passing)
    ]
    actions += [Action(float(second), 0, status(approach)) for second in range(int(until_s)) for approach in GREEN]
    run = simulate(Trajectories(paths), actions, until_s, SETTINGS, seed)
    counts = dict.fromkeys(range(len(TABLE_1)), 0)
    for nodes in run.reached:
        for node in nodes:
            counts[TABLE_1.index(passing[node - 1][0])] += 1
    return list(counts.values())


def vehicle_path(name: str, lane: LaneRow, passes_at: float) -> Trajectory:
    """Straight past the light; the vehicle is present only from its entry to its exit."""
    lanes = [entry.number for entry in TABLE_1 if entry.approach == lane.approach]
    beside = (lane.number - (len(lanes) + 1) / 2) * LANE_WIDTH_M
    knots = []
    for time, along in ((passes_at - ACROSS_S, -SCENE_M), (passes_at + ACROSS_S, SCENE_M)):
        knots.append((time, along, beside) if lane.approach == 1 else (time, beside, along))
    return Trajectory.through(name, knots, ((passes_at - ACROSS_S, passes_at + ACROSS_S),))


def status(approach: int) -> Event:
    """The light's event for one approach."""
    return LIGHT.event({"status": "green", "approach": approach, "location": Position(0.0, 0.0)})


# Passing one proximity: events before braking, and what a beacon's period decides.

BRAKING_M = 16.0
"The braking distance."


def braking(case: Case) -> Sequence[Row]:
    """Vehicles that approach the light: how many of them get two events before the braking distance begins, and how
    many beacons each hears inside the proximity."""
    settings = replace(
        PAPER,
        beacon_interval_s=case["beacon_interval_s"],
        expiry_s=5 * case["beacon_interval_s"],
        location_interval_s=case["location_interval_s"],
    )
    random = Random(f"braking:{case['seed']}")
    count, lane = case["vehicles"], TABLE_1[1]
    passing = sorted(ACROSS_S + 1.0 + random.uniform(0.0, 60.0) for _ in range(count))
    log = Log()
    run = _past_the_light(
        passing, SPEED_M_S, PROXIMITY_M, 1.0, settings, case["seed"], log, approaching_the_light(lane)
    )
    events = [0] * count
    for event, nodes in zip(run.published, run.reached, strict=True):
        for node in nodes:
            events[node - 1] += (passing[node - 1] - event.time) * SPEED_M_S >= BRAKING_M
    names = {f"vehicle-{k}": time for k, time in enumerate(passing)}
    beacons = sum(
        row["kind"] == Kind.RECEIVE
        and row["packet"] == "steam-beacon"
        and abs(row["time"] - names[row["node"]]) * SPEED_M_S <= PROXIMITY_M
        for row in log.rows()
        if row["node"] in names
    )
    return [
        {"warned": sum(received >= 2 for received in events), "beacons": beacons / count, "events": sum(events) / count}
    ]


def discovery(case: Case) -> Sequence[Row]:
    """Section 4.5 and 5.1.2: of vehicles that pass a proximity, how many discover it and after how long, and how many
    beacons that takes. Ten events a second show who is a member."""
    settings = replace(PAPER, beacon_interval_s=case["beacon_interval_s"], expiry_s=5 * case["beacon_interval_s"])
    random = Random(f"discovery:{case['seed']}")
    speed = case["speed_mph"] * MILE_AN_HOUR
    first = RANGE_M / speed + 1.0
    passing = sorted(first + random.uniform(0.0, 40.0) for _ in range(case["vehicles"]))
    log = Log()
    run = _past_the_light(
        passing, speed, case["radius_m"], 0.1, settings, case["seed"], log, Filter.of_type("Traffic Light")
    )
    entered = [time - case["radius_m"] / speed for time in passing]
    known: dict[int, float] = {}
    for event, nodes in zip(run.published, run.reached, strict=True):
        for node in nodes:
            known.setdefault(node - 1, event.time)
    delays = [max(0.0, known[k] - entered[k]) for k in known]
    until_s = run.published[-1].time
    return [
        {
            "discovered": len(known) / len(passing),
            "delay_s": sum(delays) / len(delays) if delays else None,
            "beacons_per_s": len(run.beacons) / until_s,
        }
    ]


def _past_the_light(
    passing: Sequence[float],
    speed_m_s: float,
    radius_m: float,
    period_s: float,
    settings: SteamSettings,
    seed: int,
    log: Log,
    wanted: Filter,
) -> SteamRun:
    """Vehicles that pass the light at these times, and an event for approach 1 every period."""
    ahead_s = RANGE_M / speed_m_s
    paths = [Trajectory.standing("light", 0.0, 0.0)]
    for k, time in enumerate(passing):
        ends = ((time - ahead_s, -RANGE_M, 0.0), (time + ahead_s, RANGE_M, 0.0))
        paths.append(Trajectory.through(f"vehicle-{k}", ends, ((time - ahead_s, time + ahead_s),)))
    until_s = passing[-1] + ahead_s
    actions = [Action(0.0, 0, Announcement(LIGHT, around(radius_m)))]
    actions += [
        Action(time - ahead_s, k + 1, Subscription("light", f"vehicle-{k}", wanted)) for k, time in enumerate(passing)
    ]
    actions += [Action(number * period_s, 0, status(1)) for number in range(int(until_s / period_s))]
    return simulate(Trajectories(paths), actions, until_s, settings, seed, log=log)
