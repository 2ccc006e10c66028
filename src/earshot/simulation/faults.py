"""Faults: what goes wrong in a run, and when, drawn once from the seed.

Crashes and restarts, nodes that never forward, nodes that leave and return, partitions, wrong clocks and positions.
The engine carries the plan out; machines do not know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from earshot.errors import SettingsError
from earshot.geometry import Position
from earshot.settings import Finite, NotNegative, Positive, SettingsTable, Share
from earshot.simulation.settings_reader import AreaSetting

Point = tuple[float, float]


class Crash(SettingsTable, frozen=True):
    """A node loses its memory at `time_s`, without warning. It restarts `down_s` later; without that, never."""

    node: str
    "Which node."
    time_s: NotNegative
    "When it crashes."
    down_s: Positive | None = None
    "How long it stays down; by default forever."


class Churn(SettingsTable, frozen=True):
    """Every node stays for an exponential time and is away for another: Poisson leaves and joins."""

    mean_presence_s: Positive
    "How long a node stays, on average."
    mean_absence_s: Positive
    "How long it is away, on average."
    graceful: bool = True
    "Whether a machine is stopped in good order (`stop`) before its node leaves."
    start_s: NotNegative = 0.0
    "When churn starts; until then all nodes stay."


class Partition(SettingsTable, frozen=True):
    """From `start_s` until `end_s` no radio link crosses the border of `area`, or the line from
    `line[0]` to `line[1]`: give one of the two."""

    start_s: NotNegative
    "When it starts."
    end_s: Finite
    "When it ends."
    area: AreaSetting | None = None
    "No link crosses its border."
    line: tuple[Position, Position] | None = None
    "From its first point to its second; no link crosses it."

    def validate(self) -> None:
        if not self.end_s > self.start_s:
            raise SettingsError(f"a partition must end after it starts, got {self.start_s} to {self.end_s}")
        if (self.area is None) == (self.line is None):
            raise SettingsError("a partition needs an area or a line, one of the two")

    def separates(self, here: Point, there: Point) -> bool:
        """Whether the border lies between the two places."""
        if self.area is not None:
            return self.area.contains(Position(*here)) != self.area.contains(Position(*there))
        assert self.line is not None
        start, end = self.line
        return crosses(here, there, (start.x_m, start.y_m), (end.x_m, end.y_m))


def crosses(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the straight line from a to b crosses the line from c to d (touching it counts)."""
    of_a, of_b, of_c, of_d = _side(c, d, a), _side(c, d, b), _side(a, b, c), _side(a, b, d)
    if of_a == of_b == of_c == of_d == 0:
        return all(
            max(min(a[axis], b[axis]), min(c[axis], d[axis])) <= min(max(a[axis], b[axis]), max(c[axis], d[axis]))
            for axis in (0, 1)
        )
    return of_a * of_b <= 0 and of_c * of_d <= 0


def _side(start: Point, end: Point, point: Point) -> float:
    """Positive left of the line, negative right of it, 0 on it."""
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])


class FaultSettings(SettingsTable, frozen=True):
    """The faults of a run; by default none."""

    crashes: tuple[Crash, ...] = ()
    "Nodes that lose their memory."
    silent_share: Share = 0.0
    "This share of all nodes, drawn by the seed, receives the events of other nodes but never forwards them."
    silent_nodes: tuple[str, ...] = ()
    "These nodes never forward either."
    churn: Churn | None = None
    "Nodes that leave and return at random times."
    partitions: tuple[Partition, ...] = ()
    "Periods in which the network is partitioned."
    clock_skew_s: NotNegative = 0.0
    "Each node's clock has a constant error, drawn evenly from -clock_skew_s to clock_skew_s."
    position_error_m: NotNegative = 0.0
    "Each node believes to be elsewhere: a constant error east and north, normal with this standard deviation."


NO_FAULTS = FaultSettings()


@dataclass(frozen=True, slots=True)
class Outage:
    """A node goes down or comes back, and the cause."""

    time_s: float
    node: int
    cause: Literal["crash", "churn"]
    back: bool
    graceful: bool = False


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one run, by node number."""

    outages: tuple[Outage, ...]
    "In order of time."
    silent: frozenset[int]
    clock_offsets_s: tuple[float, ...]
    "By how much each node's clock is ahead of the true time."
    position_errors_m: tuple[tuple[float, float], ...] = ()
    "How far east and north of itself each node believes to be; empty: no node errs."


def plan(settings: FaultSettings, names: Sequence[str], duration_s: float, seed: int) -> FaultPlan:
    """Draw the faults of a run; each kind has its own random stream, so that one does not change another."""
    index = {name: i for i, name in enumerate(names)}
    for name in (*settings.silent_nodes, *(crash.node for crash in settings.crashes)):
        if name not in index:
            raise SettingsError(f"the faults name a node {name!r}, which the scenario does not have")
    outages = [*_crashes(settings, index), *_churn(settings, names, duration_s, seed)]
    outages.sort(key=lambda outage: (outage.time_s, outage.node, outage.back))
    return FaultPlan(
        outages=tuple(outages),
        silent=_silent(settings, names, index, seed),
        clock_offsets_s=_clock_offsets(settings, names, seed),
        position_errors_m=_position_errors(settings, names, seed),
    )


def _crashes(settings: FaultSettings, index: dict[str, int]) -> list[Outage]:
    found = []
    for crash in settings.crashes:
        node = index[crash.node]
        found.append(Outage(crash.time_s, node, "crash", back=False))
        if crash.down_s is not None:
            found.append(Outage(crash.time_s + crash.down_s, node, "crash", back=True))
    return found


def _churn(settings: FaultSettings, names: Sequence[str], duration_s: float, seed: int) -> list[Outage]:
    churn = settings.churn
    if churn is None:
        return []
    found = []
    for node, name in enumerate(names):
        random = Random(f"{seed}:churn:{name}")
        time, back = churn.start_s, False
        while True:
            time += random.expovariate(1.0 / (churn.mean_absence_s if back else churn.mean_presence_s))
            if time > duration_s:
                break
            found.append(Outage(time, node, "churn", back, churn.graceful))
            back = not back
    return found


def _silent(settings: FaultSettings, names: Sequence[str], index: dict[str, int], seed: int) -> frozenset[int]:
    count = round(settings.silent_share * len(names))
    drawn = Random(f"{seed}:silent").sample(range(len(names)), count)
    return frozenset([*drawn, *(index[name] for name in settings.silent_nodes)])


def _clock_offsets(settings: FaultSettings, names: Sequence[str], seed: int) -> tuple[float, ...]:
    if settings.clock_skew_s == 0.0:
        return (0.0,) * len(names)
    random = Random(f"{seed}:clocks")
    return tuple(random.uniform(-settings.clock_skew_s, settings.clock_skew_s) for _ in names)


def _position_errors(settings: FaultSettings, names: Sequence[str], seed: int) -> tuple[tuple[float, float], ...]:
    if settings.position_error_m == 0.0:
        return ()
    random, spread_m = Random(f"{seed}:positions"), settings.position_error_m
    return tuple((random.gauss(0.0, spread_m), random.gauss(0.0, spread_m)) for _ in names)
