"""The positions and movements of STEAM's experiments, and one simulated run with them.

As section 5 describes them; docs/papers/steam.md chooses what the paper leaves open.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import ORIGIN, Circle, Position, Proximity
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import SteamSettings
from earshot.records import Kind
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.faults import FaultSettings
from earshot.simulation.media.medium_settings import UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload

RANGE_M = 200.0
"T_R."
ROAD_M = 1400.0
LANES_M = (-1.75, 1.75)
"The lanes' distances from the road's axis."
RADIUS_M = ROAD_M / 2
MILE_AN_HOUR = 0.44704
RADIO = UnitDisk(range_m=RANGE_M, latency_s=1e-5)
PRODUCER = "producer"
WARNING = EventType("Warning", {"text": str})

Point = tuple[float, float]


def on_a_road(count: int, random: Random) -> list[Point]:
    """Uniform random positions on random lanes, with the road's centre at the origin."""
    return [(random.uniform(-RADIUS_M, RADIUS_M), random.choice(LANES_M)) for _ in range(count)]


def on_two_roads(count: int, random: Random) -> list[Point]:
    """Half of them on one road, half on another that crosses it in the middle."""
    along = on_a_road(count - count // 2, random)
    return along + [(y, x) for x, y in on_a_road(count // 2, random)]


def in_a_disc(count: int, random: Random) -> list[Point]:
    """Uniform random positions within the radius."""
    found: list[Point] = []
    while len(found) < count:
        x, y = random.uniform(-RADIUS_M, RADIUS_M), random.uniform(-RADIUS_M, RADIUS_M)
        if math.hypot(x, y) <= RADIUS_M:
            found.append((x, y))
    return found


def in_a_square(count: int, random: Random) -> list[Point]:
    """Uniform random positions in the square inside the disc."""
    half_m = RADIUS_M / math.sqrt(2)
    return [(random.uniform(-half_m, half_m), random.uniform(-half_m, half_m)) for _ in range(count)]


def on_a_grid(count: int, _: Random) -> list[Point]:
    """The points of a square grid in the disc, half a spacing off its centre. The grid may have a few points
    too many; then the outermost are left out."""
    spacing = math.sqrt(math.pi * RADIUS_M**2 / count)
    while len(points := _grid_points(spacing)) < count:
        spacing *= 0.999
    return sorted(points, key=lambda point: (math.hypot(*point), point))[:count]


def _grid_points(spacing: float) -> list[Point]:
    steps = [(k + 0.5) * spacing for k in range(-int(RADIUS_M / spacing) - 1, int(RADIUS_M / spacing) + 1)]
    return [(x, y) for x in steps for y in steps if math.hypot(x, y) <= RADIUS_M]


SQUARE = "D in a square"
LAYOUTS: dict[str, Callable[[int, Random], list[Point]]] = {
    "A": on_a_road,
    "B": on_a_road,
    "C": on_two_roads,
    "D": in_a_disc,
    "E": on_a_grid,
    SQUARE: in_a_square,
}
"Where the consumers are in figure 13's scenarios; the last is another reading of D."


def driving(name: str, point: Point, at_s: float, speed_m_s: float, until_s: float) -> Trajectory:
    """A vehicle that is at that point at that time, drives in its lane's direction, and re-enters at the
    other end."""
    x, y = point
    speed = speed_m_s if y > 0 else -speed_m_s
    entry, end = (-RADIUS_M, RADIUS_M) if speed > 0 else (RADIUS_M, -RADIUS_M)
    lap = ROAD_M / speed_m_s
    entered = at_s - (x - entry) / speed
    while entered > 0.0:
        entered -= lap
    knots = []
    while entered < until_s:
        knots += [(entered, entry, y), (entered + lap, end, y)]
        entered += lap
    return Trajectory.through(name, knots)


def passing_the_centre(name: str, at_s: float, speed_m_s: float, until_s: float) -> Trajectory:
    """A vehicle on the road's axis that is at its centre at that time."""
    return Trajectory.through(name, [(0.0, -speed_m_s * at_s, 0.0), (until_s, speed_m_s * (until_s - at_s), 0.0)])


def road_scenario(
    scenario: str, points: Sequence[Point], at_s: float, speed_m_s: float, until_s: float
) -> list[Trajectory]:
    """Scenario A or B, the producer first: consumers at these points at that time, the producer at the centre."""
    names = [f"consumer-{k:03d}" for k in range(len(points))]
    if scenario == "A":
        drivers = [driving(name, point, at_s, speed_m_s, until_s) for name, point in zip(names, points, strict=True)]
        return [Trajectory.standing(PRODUCER, 0.0, 0.0), *drivers]
    return [passing_the_centre(PRODUCER, at_s, speed_m_s, until_s), *standing(names, points)]


def standing(names: Sequence[str], points: Sequence[Point]) -> list[Trajectory]:
    """Nodes that do not move, at these points."""
    return [Trajectory.standing(name, *point) for name, point in zip(names, points, strict=True)]


@dataclass
class SteamRun:
    """The result of one run, event by event, in order of publication."""

    trajectories: Trajectories
    published: list[Event]
    sends: list[int]
    "Transmissions of each event, if they were counted."
    reached: list[set[int]]
    "The nodes that delivered each event."
    beacons: list[float] = field(default_factory=list)
    "When beacons were sent."


def warn(
    trajectories: Trajectories,
    proximity: Proximity,
    raise_at: Sequence[float],
    settings: SteamSettings,
    seed: int,
    silent: Sequence[str] = (),
    settle_s: float = 0.4,
) -> SteamRun:
    """The first node announces warnings in this proximity at the start and raises one at each of these
    times; all others subscribe to them. The run ends `settle_s` after the last warning."""
    wanted = Filter.of_type("Warning")
    names = trajectories.names
    actions = [Action(0.0, k, Subscription("warnings", name, wanted)) for k, name in enumerate(names) if k]
    actions.append(Action(0.0, 0, Announcement(WARNING, proximity)))
    actions += [Action(time, 0, Event("Warning", {"text": "slow down"})) for time in raise_at]
    return simulate(trajectories, actions, max(raise_at) + settle_s, settings, seed, silent, Log())


def simulate(
    trajectories: Trajectories,
    actions: Sequence[Action],
    duration_s: float,
    settings: SteamSettings,
    seed: int,
    silent: Sequence[str] = (),
    log: Log | None = None,
) -> SteamRun:
    """One run of STEAM over a lossless radio; with a log, transmissions are counted."""
    engine = Engine(
        lambda node, location, random, channel: Steam(node, settings, location, random, channel),
        trajectories,
        RADIO,
        Workload(actions),
        duration_s=duration_s,
        faults=FaultSettings(silent_nodes=tuple(silent)),
        seed=seed,
        log=log,
    )
    engine.run()
    reached: list[set[int]] = [set() for _ in engine.published]
    for node, event in zip(engine.deliveries.node, engine.deliveries.event, strict=True):
        reached[event].add(node)
    sent = [row for row in log.rows() if row["kind"] == Kind.SEND] if log is not None else []
    counts = Counter(row["event"] for row in sent)
    beacons = [row["time"] for row in sent if row["packet"] == "steam-beacon"]
    return SteamRun(trajectories, engine.published, [counts[event.id] for event in engine.published], reached, beacons)


def inside(run: SteamRun, number: int) -> set[int]:
    """The consumers in the event's proximity when it was raised."""
    event = run.published[number]
    places = run.trajectories.positions(event.time).tolist()
    return {k for k, place in enumerate(places) if k and (event.area is None or event.area.contains(Position(*place)))}


def covered(run: SteamRun, number: int) -> set[int]:
    """The consumers inside that a chain of consumers inside connects to the producer: breadth-first search."""
    event = run.published[number]
    places = run.trajectories.positions(event.time)
    left, found, edge = inside(run, number), set[int](), [0]
    while edge and left:
        rest = np.array(sorted(left))
        apart = np.linalg.norm(places[rest][:, None, :] - places[np.array(edge)][None, :, :], axis=2)
        edge = rest[(apart <= RANGE_M).any(axis=1)].tolist()
        found.update(edge)
        left.difference_update(edge)
    return found


def around(radius_m: float, mobile: bool = False, at: Position = ORIGIN) -> Proximity:
    """A circle: the proximity of all these experiments."""
    return Proximity(Circle(radius_m), at, mobile)
