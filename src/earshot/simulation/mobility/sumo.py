"""Mobility from SUMO: the nodes are the vehicles of a traffic simulation.

Without drivers SUMO runs once, before the run, and its vehicles' trajectories are known. With drivers that react
SUMO runs in step with the run (`engine/coupling.py`); what is known before then is the traffic without reactions,
from which the scenario's own events and subscriptions are drawn.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

import lxml.etree
import numpy as np

from earshot.errors import ScenarioError
from earshot.records.trajectories import Floats, Trajectory
from earshot.settings import Count, Finite, KindTable, Positive
from earshot.simulation.extent import Extent
from earshot.simulation.mobility.drivers import DriverSettings
from earshot.simulation.mobility.stepped import Place, SteppedTrajectories, away
from earshot.simulation.mobility.sumo_process import SumoProcess, SumoStep


class Sumo(KindTable, frozen=True, tag="sumo"):
    """The vehicles of a SUMO simulation, under SUMO's names. They come and go as SUMO lets them."""

    config: Path
    "SUMO's configuration (.sumocfg). Its begin is the run's 0, its step-length the length of a step."
    seed: Count | None = None
    "SUMO's seed; by default the run's. Flows that depend on chance need a seed here, since the nodes of a scenario "
    "are the same in every run."
    drivers: DriverSettings | None = None
    "What drivers do with the events that they receive; by default nothing."
    fastest_m_s: Positive = 100.0
    "A vehicle that seems faster was moved by SUMO (teleported): it jumps."
    shift_m: tuple[Finite, Finite] = (0.0, 0.0)
    "[x, y] to add to every position, to lay SUMO's network on the area."

    def content(self) -> dict[str, str]:
        """SUMO's files by what is in them."""
        return {"config": content_of(self.config)}

    def names(self, until_s: float) -> tuple[str, ...]:
        """The vehicles that enter, or should, before `until_s`."""
        return self._alone(self.seed or 0, until_s).names

    def types(self, until_s: float) -> Mapping[str, str]:
        """Each vehicle's type."""
        return self._alone(self.seed or 0, until_s).types

    def paths(
        self, names: Sequence[str], extent: Extent, randoms: Sequence[Random], until_s: float, seed: int
    ) -> list[Trajectory]:
        seed = self.seed if self.seed is not None else seed
        traffic = self._alone(seed, until_s)
        if set(names) - set(traffic.names) or len(self.names(until_s)) != len(traffic.names):
            raise ScenarioError(
                f"{self.config.name}: which vehicles enter depends on SUMO's seed; set mobility.seed, "
                "or let the flows have a period instead of a probability"
            )
        number = {name: i for i, name in enumerate(names)}
        standing = [Trajectory.standing(name, *away(i)) for i, name in enumerate(names)]
        stepped = SteppedTrajectories(standing, range(len(names)), traffic.times, self.fastest_m_s)
        for time, places in zip(traffic.times.tolist(), traffic.places, strict=True):
            stepped.advance(time, {number[name]: self.placed(*at) for name, at in places.items() if name in number})
        found = [stepped.trajectory(i) for i in range(len(names))]
        if self.drivers is None:
            return found
        # Where drivers react, a vehicle that found no room without them may find it: it subscribes when it is due.
        return [
            trajectory
            if trajectory.presence
            else Trajectory(
                trajectory.name,
                trajectory.times,
                trajectory.xs,
                trajectory.ys,
                ((traffic.due[trajectory.name], math.inf),),
            )
            for trajectory in found
        ]

    def placed(self, x_m: float, y_m: float) -> Place:
        """A place of SUMO's network on the area."""
        return x_m + self.shift_m[0], y_m + self.shift_m[1]

    def started(self, seed: int, until_s: float) -> SumoProcess:
        """SUMO, before its first step."""
        return _started(self.config, self.seed if self.seed is not None else seed, until_s)

    def _alone(self, seed: int, until_s: float) -> TrafficAlone:
        return _traffic_alone(self.config, content_of(self.config), seed, until_s)


@dataclass(frozen=True, slots=True)
class TrafficAlone:
    """A run of SUMO in which nobody reacts."""

    names: tuple[str, ...]
    types: Mapping[str, str]
    due: Mapping[str, float]
    "When each vehicle enters, or should."
    times: Floats
    "Of the steps, from 0."
    places: list[dict[str, Place]]
    "Where the vehicles are at each of these times."


def step_times(step_s: float, until_s: float) -> Floats:
    """The times of all steps of a run, one beyond its end."""
    return np.arange(math.floor(until_s / step_s) + 2, dtype=np.float64) * step_s


def _started(config: Path, seed: int, until_s: float) -> SumoProcess:
    sumo = SumoProcess(config, seed)
    if sumo.end_s is not None and sumo.end_s - sumo.begin_s < until_s:
        sumo.close()
        raise ScenarioError(
            f"{config.name}: SUMO ends after {sumo.end_s - sumo.begin_s:g} s, but the run lasts {until_s:g} s: "
            "raise the configuration's end, or shorten duration_s"
        )
    return sumo


@lru_cache(maxsize=4)
def _traffic_alone(config: Path, _content: str, seed: int, until_s: float) -> TrafficAlone:
    """Kept, because names and paths are asked for separately."""
    due: dict[str, float] = {}
    types: dict[str, str] = {}
    places: list[dict[str, Place]] = []
    with _started(config, seed, until_s) as sumo:
        times = step_times(sumo.step_s, until_s)
        for time in times.tolist():
            step: SumoStep = sumo.step()
            types.update(step.types)
            places.append({vehicle.name: (vehicle.x_m, vehicle.y_m) for vehicle in step.vehicles})
            if time <= until_s:
                for name in (*places[-1], *step.pending):
                    due.setdefault(name, time)
    if not due:
        raise ScenarioError(f"{config.name}: no vehicle enters within {until_s:g} s; check its routes")
    names = tuple(sorted(due, key=_counted))
    return TrafficAlone(names, types, due, times, places)


def _counted(name: str) -> list[tuple[int, str]]:
    """For sorting: car.2 before car.10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


FILE_OPTIONS = ("net-file", "route-files", "additional-files", "weight-files")
"The options of a configuration that name files."


def content_of(config: Path) -> str:
    """A hash of the configuration and of the files that it names."""
    digest = hashlib.sha256()
    for file in (config, *_files_of(config)):
        try:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        except OSError as error:
            raise ScenarioError(f"{config.name}: cannot read {file}: {error.strerror}") from None
    return digest.hexdigest()


def _files_of(config: Path) -> list[Path]:
    try:
        tree = lxml.etree.parse(str(config), lxml.etree.XMLParser(resolve_entities=False, no_network=True))
    except (lxml.etree.XMLSyntaxError, OSError) as error:
        raise ScenarioError(f"{config.name}: not a configuration of SUMO: {error}") from None
    values = [option.get("value", "") for name in FILE_OPTIONS for option in tree.iter(name)]
    return [config.parent / name.strip() for value in values for name in value.split(",") if name.strip()]
