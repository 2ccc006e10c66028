"""A run in step with SUMO: events change traffic, and traffic changes who hears whom.

At each step's begin, before anything else at that time, drivers act on what their nodes have received and publish;
then SUMO simulates the step, so that its vehicles' motion until the step's end is known. A reaction thus shows one
step after the event at the latest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Protocol

from earshot.errors import EarshotError, ScenarioError
from earshot.events import Event
from earshot.protocols.machine import Announcement
from earshot.records.trajectories import Trajectory
from earshot.simulation.engine.schedule import Schedule
from earshot.simulation.event_queue import Priority, Queue
from earshot.simulation.mobility import Sumo
from earshot.simulation.mobility.drivers import DriverSettings, OutsideDrivers, Traffic
from earshot.simulation.mobility.stepped import SteppedTrajectories
from earshot.simulation.mobility.sumo import step_times
from earshot.simulation.mobility.sumo_process import SumoProcess, SumoStep
from earshot.simulation.scenario.scenario import Scenario


class CoupledRun(Protocol):
    """What a coupling asks of the engine."""

    queue: Queue
    schedule: Schedule


class Coupling:
    """SUMO, the drivers, and the trajectories that grow step by step."""

    def __init__(
        self,
        settings: Sumo,
        drivers: DriverSettings,
        sumo: SumoProcess,
        planned: list[Trajectory],
        vehicles: list[int],
        seed: int,
        until_s: float,
    ) -> None:
        self._settings = settings
        self._sumo = sumo
        self._drivers = drivers.open(Random(f"{seed}:drivers"))
        self._kind = drivers.use if isinstance(drivers, OutsideDrivers) else drivers.kind
        self._types = drivers.types()
        self._traffic = Traffic(sumo)
        self._number = {planned[i].name: i for i in vehicles}
        self._names = {i: name for name, i in self._number.items()}
        self._times = step_times(sumo.step_s, until_s).tolist()
        self._delivered: list[tuple[str, Event]] = []
        self._announced: set[int] = set()
        self.trajectories = SteppedTrajectories(
            planned, vehicles, step_times(sumo.step_s, until_s), settings.fastest_m_s
        )

    def attach(self, engine: CoupledRun) -> None:
        """Put the steps into the engine's queue, before everything else at their times."""
        self._engine = engine
        first = engine.queue.places(len(self._times))
        for k, time in enumerate(self._times[:-1]):
            engine.queue.at_place(time, Priority.WORLD, first + k, self._step, k)

    def delivered(self, node: int, event: Event) -> None:
        """A node has received an event; its driver acts on it before the next step."""
        if node in self._names:
            self._delivered.append((self._names[node], event))

    def _step(self, k: int) -> None:
        if k == 0:
            self._take(0.0, self._sumo.step())
        self._drive(self._times[k])
        self._take(self._times[k + 1], self._sumo.step())

    def _drive(self, now: float) -> None:
        received, self._delivered = self._delivered, []
        try:
            for name, event in received:
                if name in self._traffic.vehicles:  # others have left
                    self._drivers.delivered(self._traffic.vehicles[name], event, now)
            published = list(self._drivers.step(self._traffic, now))
        except EarshotError:
            raise
        except Exception as error:
            raise ScenarioError(
                f"drivers: {self._kind} failed at {now:g} s: {type(error).__name__}: {error}"
            ) from error
        for name, event in published:
            if not isinstance(event, Event):
                raise ScenarioError(f"drivers: {self._kind} must publish events, got {event!r}")
            if name in self._number:
                self._engine.queue.at(now, Priority.APPLICATION, self._publish, (self._number[name], event))

    def _publish(self, what: tuple[int, Event]) -> None:
        self._engine.schedule.carry_out(*what)

    def _take(self, end: float, step: SumoStep) -> None:
        """The step that has begun ends with the vehicles there."""
        places = {
            self._number[one.name]: self._settings.placed(one.x_m, one.y_m)
            for one in step.vehicles
            if one.name in self._number
        }
        gone, new = self.trajectories.advance(end, places)
        for i in gone:
            self._engine.schedule.vanish(i)
        for i in new:
            self._engine.queue.at(end, Priority.WORLD, self._appear, i)
        self._traffic.at(end, step.vehicles)

    def _appear(self, i: int) -> None:
        if not self.trajectories.present(i, self._engine.queue.now):
            return  # it was there for one moment only
        self._engine.schedule.appear(i)
        if i not in self._announced:
            self._announced.add(i)
            for event_type in self._types:
                self._engine.schedule.carry_out(i, Announcement(event_type))


@contextmanager
def coupled(scenario: Scenario, seed: int) -> Iterator[Coupling | None]:
    """The coupling of a scenario whose drivers react; None for others."""
    reacting = [
        (group, nodes.mobility, nodes.mobility.drivers)
        for group, nodes in scenario.nodes.items()
        if isinstance(nodes.mobility, Sumo) and nodes.mobility.drivers is not None
    ]
    if len(reacting) > 1:
        raise ScenarioError(f"nodes.{reacting[1][0]}: only one group of nodes may have drivers")
    if not reacting:
        yield None
        return
    group, mobility, drivers = reacting[0]
    members, planned = set(scenario.members(group)), scenario.paths(seed)
    vehicles = [i for i, one in enumerate(planned) if one.name in members]
    with mobility.started(seed, scenario.duration_s) as sumo:
        yield Coupling(mobility, drivers, sumo, planned, vehicles, seed, scenario.duration_s)
