"""Mobility models: nodes that stand still, follow a script, drive along lanes, or walk at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Literal

from earshot.errors import ScenarioError
from earshot.records.trajectories import ALWAYS, Interval, Trajectory
from earshot.settings import AtLeastOne, Finite, KindTable, NotNegative, SettingsTable
from earshot.simulation.draws import Span
from earshot.simulation.extent import Box, Extent, box_of
from earshot.simulation.settings_reader import PLUGIN, PluginTable, SpanSetting


class Uniform(KindTable, frozen=True, tag="uniform"):
    """Every place is equally likely, for each node independently."""

    box_m: Box | None = None
    "Where: [least x, least y, most x, most y]; by default the whole area."

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        x0, y0, x1, y1 = box_of(self.box_m, extent)
        return [
            Trajectory.standing(name, random.uniform(x0, x1), random.uniform(y0, y1))
            for name, random in zip(names, randoms, strict=True)
        ]


class Grid(KindTable, frozen=True, tag="grid"):
    """Rows and columns, as square as the box allows, each node in the middle of its cell."""

    box_m: Box | None = None
    "Where: [least x, least y, most x, most y]; by default the whole area."
    columns: AtLeastOne | None = None
    "Nodes in a row; by default chosen so that the cells are nearly square."
    jitter_m: NotNegative = 0.0
    "How far from the middle of its cell a node may stand, in x and in y."

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        x0, y0, x1, y1 = box_of(self.box_m, extent)
        count = len(names)
        columns = self.columns or max(1, round(math.sqrt(count * (x1 - x0) / (y1 - y0))))
        rows = max(1, math.ceil(count / columns))
        wide, high = (x1 - x0) / columns, (y1 - y0) / rows
        found = []
        for i, (name, random) in enumerate(zip(names, randoms, strict=True)):
            row, column = divmod(i, columns)
            x = x0 + (column + 0.5) * wide + random.uniform(-self.jitter_m, self.jitter_m)
            y = y0 + (row + 0.5) * high + random.uniform(-self.jitter_m, self.jitter_m)
            found.append(Trajectory.standing(name, min(max(x, x0), x1), min(max(y, y0), y1)))
        return found


class Given(KindTable, frozen=True, tag="given"):
    """Each node at a given place."""

    at_m: tuple[tuple[Finite, Finite], ...]
    "One [x, y] for each node."

    @property
    def count(self) -> int:
        return len(self.at_m)

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        return [Trajectory.standing(name, x, y) for name, (x, y) in zip(names, self.at_m, strict=True)]


class OutsideMobility(PluginTable, frozen=True, tag=PLUGIN):
    """A mobility model of yours. Its class has a method `paths(names, extent, randoms, until_s)`, which returns a
    `Trajectory` for each name, drawn from the node's own random source."""

    group = "mobility"
    methods = ("paths",)

    @property
    def count(self) -> int | None:
        given: int | None = getattr(self.settings, "count", None)
        return given

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        found: list[Trajectory] = list(self.settings.paths(names, extent, randoms, until_s))
        if [trajectory.name for trajectory in found] != list(names):
            raise ScenarioError(f"mobility: {self.use} must give one trajectory for each name, in their order")
        return found


# Scripted moves: each node through its own list of places and times.


class Scripted(KindTable, frozen=True, tag="scripted"):
    """Straight, even motion from one given place to the next; a node waits before its first and after its last."""

    moves: tuple[tuple[tuple[Finite, Finite, Finite], ...], ...]
    "For each node a list of [time in s, x in m, y in m], in order of time; the same time twice is a jump."

    def validate(self) -> None:
        for number, moves in enumerate(self.moves):
            if not moves:
                raise ScenarioError(f"moves[{number}] is empty; a node needs at least one [time, x, y]")
            times = [move[0] for move in moves]
            if times != sorted(times):
                raise ScenarioError(f"moves[{number}] goes back in time; order its [time, x, y] by time")

    @property
    def count(self) -> int:
        return len(self.moves)

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        return [Trajectory.through(name, moves) for name, moves in zip(names, self.moves, strict=True)]


# Vehicles on the lanes of a road.


class Lane(SettingsTable, frozen=True):
    """One straight lane; vehicles go from its start to its end."""

    start_m: tuple[Finite, Finite]
    "[x, y] where vehicles enter."
    end_m: tuple[Finite, Finite]
    "[x, y] where they leave."
    speed_m_s: SpanSetting
    "A vehicle's constant speed, drawn evenly."

    def validate(self) -> None:
        if self.length_m == 0:
            raise ScenarioError(f"a lane must lead somewhere: start_m and end_m are both {list(self.start_m)}")
        if self.speed_m_s.low <= 0:
            raise ScenarioError(f"speed_m_s must begin above 0, got {self.speed_m_s.low:g}")

    @property
    def length_m(self) -> float:
        return math.hypot(self.end_m[0] - self.start_m[0], self.end_m[1] - self.start_m[1])

    def point(self, along_m: float) -> tuple[float, float]:
        share = along_m / self.length_m
        return (
            self.start_m[0] + share * (self.end_m[0] - self.start_m[0]),
            self.start_m[1] + share * (self.end_m[1] - self.start_m[1]),
        )


class Lanes(KindTable, frozen=True, tag="lanes"):
    """Vehicles assigned to the lanes in turn; each keeps its lane and its speed."""

    lanes: tuple[Lane, ...]
    "The road's lanes; two with opposite ends make a two-way road."
    spacing: Literal["even", "random"] = "random"
    "Where the vehicles of a lane are at the start."
    at_end: Literal["wrap", "re-enter"] = "wrap"
    'At the end of its lane a vehicle jumps to the start ("wrap": the number of vehicles stays the same), '
    'or leaves the network and enters again later ("re-enter").'
    away_s: SpanSetting = Span(10.0, 60.0)
    "How long a vehicle stays away before it enters again."

    def validate(self) -> None:
        if not self.lanes:
            raise ScenarioError("lanes needs at least one lane")
        if self.away_s.low <= 0:
            raise ScenarioError(f"away_s must begin above 0, got {self.away_s.low:g}")

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        found = []
        for i, (name, random) in enumerate(zip(names, randoms, strict=True)):
            turn, number = divmod(i, len(self.lanes))
            lane = self.lanes[number]
            on_lane = len(range(number, len(names), len(self.lanes)))
            along = lane.length_m * ((turn + 0.5) / on_lane if self.spacing == "even" else random.random())
            found.append(self._drive(name, lane, along, random, until_s))
        return found

    def _drive(self, name: str, lane: Lane, along_m: float, random: Random, until_s: float) -> Trajectory:
        speed = lane.speed_m_s.draw(random)
        entry = lane.point(0.0)
        now = (lane.length_m - along_m) / speed
        knots = [(0.0, *lane.point(along_m)), (now, *lane.end_m)]
        presence: list[Interval] = [(-math.inf, now)]
        while now < until_s:
            if self.at_end == "re-enter":
                now += self.away_s.draw(random)
                knots.append((now, *lane.end_m))
            knots.append((now, *entry))
            entered = now
            now += lane.length_m / speed
            knots.append((now, *lane.end_m))
            presence.append((entered, now))
        return Trajectory.through(name, knots, tuple(presence) if self.at_end == "re-enter" else ALWAYS)


# Random waypoint, in its steady state from the first moment on.
#
# A node goes straight to a place drawn evenly from the box, at a speed drawn evenly for that leg, pauses
# there, and goes on. Runs that start every node at the start of a leg spend their first minutes too fast
# and too evenly spread. W. Navidi and T. Camp (Stationary Distributions for the Random Waypoint Mobility
# Model, IEEE TMC 3(1), 2004) give the model's steady-state distribution; the first state is drawn from it:
# legs in proportion to the time they take.


Knot = tuple[float, float, float]


class RandomWaypoint(KindTable, frozen=True, tag="random-waypoint"):
    """From one random place to the next, with pauses."""

    speed_m_s: SpanSetting
    "The speed of a leg, drawn evenly."
    pause_s: SpanSetting = Span(0.0, 0.0)
    "The pause after a leg, drawn evenly."
    box_m: Box | None = None
    "Where: [least x, least y, most x, most y]; by default the whole area."

    def validate(self) -> None:
        if self.speed_m_s.low <= 0:
            raise ScenarioError(
                f"speed_m_s must begin above 0, got {self.speed_m_s.low:g}: with a least speed of 0 "
                "legs become longer and longer and the model has no steady state"
            )
        if self.pause_s.low < 0:
            raise ScenarioError(f"pause_s must not be negative, got {self.pause_s.low:g}")

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float
    ) -> list[Trajectory]:
        box = box_of(self.box_m, extent)
        pausing = self.share_pausing(box)
        return [
            Trajectory.through(name, self._knots(box, pausing, random, until_s))
            for name, random in zip(names, randoms, strict=True)
        ]

    def share_pausing(self, box: Box) -> float:
        """The share of time, and so of nodes, spent in pauses."""
        travel_s = mean_leg_m(box[2] - box[0], box[3] - box[1]) * self._mean_slowness()
        return self.pause_s.mean / (self.pause_s.mean + travel_s)

    def _mean_slowness(self) -> float:
        """The mean of 1 / speed."""
        low, high = self.speed_m_s.low, self.speed_m_s.high
        return 1 / low if low == high else math.log(high / low) / (high - low)

    def _knots(self, box: Box, pausing: float, random: Random, until_s: float) -> list[Knot]:
        knots = self._paused_start(box, random) if random.random() < pausing else self._moving_start(box, random)
        now, x, y = knots[-1]
        while now < until_s:
            now, x, y = self._leg(knots, now, x, y, box, random)
        return knots

    def _leg(self, knots: list[Knot], now: float, x: float, y: float, box: Box, random: Random) -> Knot:
        """Go to a new place and pause there."""
        to_x, to_y = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
        now += math.hypot(to_x - x, to_y - y) / self.speed_m_s.draw(random)
        knots.append((now, to_x, to_y))
        if (pause := self.pause_s.draw(random)) > 0:
            now += pause
            knots.append((now, to_x, to_y))
        return now, to_x, to_y

    def _paused_start(self, box: Box, random: Random) -> list[Knot]:
        """In a pause: pauses in proportion to their length, each moment equally likely."""
        x, y = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
        low, high = self.pause_s.low, self.pause_s.high
        pause = math.sqrt(low * low + random.random() * (high * high - low * low))
        return [(0.0, x, y), (pause * random.random(), x, y)]

    def _moving_start(self, box: Box, random: Random) -> list[Knot]:
        """On a leg: legs in proportion to length / speed, each point equally likely."""
        longest = math.hypot(box[2] - box[0], box[3] - box[1])
        while True:
            x0, y0 = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
            x1, y1 = random.uniform(box[0], box[2]), random.uniform(box[1], box[3])
            length = math.hypot(x1 - x0, y1 - y0)
            if random.random() * longest < length:
                break
        low, high = self.speed_m_s.low, self.speed_m_s.high
        speed = low * math.pow(high / low, random.random())
        left = random.random()
        arrival = left * length / speed
        knots = [(0.0, x1 + left * (x0 - x1), y1 + left * (y0 - y1)), (arrival, x1, y1)]
        if (pause := self.pause_s.draw(random)) > 0:
            knots.append((arrival + pause, x1, y1))
        return knots


def mean_leg_m(width_m: float, height_m: float) -> float:
    """The mean distance between two random points of a rectangle."""
    a, b = width_m, height_m
    diagonal = math.hypot(a, b)
    return (
        a**3 / b**2
        + b**3 / a**2
        + diagonal * (3 - a**2 / b**2 - b**2 / a**2)
        + 2.5 * (b**2 / a * math.log((a + diagonal) / b) + a**2 / b * math.log((b + diagonal) / a))
    ) / 15
