"""A run in step with SUMO: where vehicles are, what drivers publish, and what they do wrong."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import ScenarioError, SettingsError
from earshot.events import Event, EventType
from earshot.records.trajectories import Trajectory
from earshot.settings import SettingsTable
from earshot.simulation.engine.coupling import Coupling
from earshot.simulation.event_queue import Queue
from earshot.simulation.mobility import Sumo
from earshot.simulation.mobility.drivers import JamWarning, JamWarningDrivers, OutsideDrivers
from earshot.simulation.mobility.sumo_process import SumoStep, VehicleState

Places = dict[str, tuple[float, float]]


class Script:
    """SUMO with steps of half a second, as far as a coupling asks it."""

    step_s = 0.5
    begin_s = 0.0

    def __init__(self, *steps: Places, waiting_s: float = 0.0) -> None:
        self.steps, self.waiting_s = list(steps), waiting_s

    def step(self) -> SumoStep:
        places = self.steps.pop(0)
        return SumoStep([VehicleState(name, *at, 10.0, "e", self.waiting_s) for name, at in places.items()], {}, [])


class Doing(SettingsTable, frozen=True):
    """Drivers that do in each step what a test says."""

    act: Any

    def types(self) -> tuple[EventType, ...]:
        return (EventType("Here"), EventType("There"))

    def open(self, random: Random) -> Any:
        return Acting(self.act, random)


class Acting:
    def __init__(self, act: Any, random: Random) -> None:
        self.step, self.random = act, random
        self.delivered_to: list[str] = []

    def delivered(self, vehicle: Any, event: Event, now: float) -> None:
        self.delivered_to.append(vehicle.name)


class Steps:
    """A run that only notes what the coupling does."""

    def __init__(self) -> None:
        self.queue, self.schedule = Queue(), self
        self.done: list[tuple[Any, ...]] = []

    def carry_out(self, node: int, what: Any) -> None:
        self.done.append((self.queue.now, node, what.type if isinstance(what, Event) else what.event_type.subject))

    def appear(self, node: int) -> None:
        self.done.append((self.queue.now, node, "appears"))

    def vanish(self, node: int) -> None:
        self.done.append((self.queue.now, node, "vanishes"))


def coupled_run(drivers: Any, *steps: Places, until_s: float = 1.0, **more: Any) -> tuple[Coupling, Steps]:
    """A tower and two cars; SUMO knows a stranger too."""
    planned = [Trajectory.standing(name, 0.0, 0.0) for name in ("tower", "car-1", "car-2")]
    settings = Sumo(Path("town.sumocfg"), drivers=drivers, shift_m=(100.0, 7.0))
    found = Coupling(settings, drivers, Script(*steps, **more), planned, [1, 2], 5, until_s)  # type: ignore[arg-type]
    run = Steps()
    found.attach(run)  # type: ignore[arg-type]
    return found, run


def doing(act: Any) -> OutsideDrivers:
    return OutsideDrivers("mine.py:Doing", Doing(act))


def nothing(*_: Any) -> list[Any]:
    return []


def test_vehicles_are_laid_on_the_area_and_move_between_steps() -> None:
    steps: list[Places] = [{"car-1": (0.0, 50.0)}, {"car-1": (5.0, 50.0), "x": (1.0, 1.0)}, {"car-1": (5.0, 58.0)}, {}]
    found, run = coupled_run(doing(nothing), *steps)
    places = []
    for time in (0.25, 0.75):
        run.queue.run(time)
        places.append(found.trajectories.positions(time)[1].tolist())
    assert places == [[102.5, 57.0], [105.0, 61.0]]
    run.queue.run(1.0)
    assert found.trajectories.presence[1] == ((0.0, 1.0),)
    assert run.done == [(0.0, 1, "appears"), (0.0, 1, "Here"), (0.0, 1, "There"), (1.0, 1, "vanishes")]


def test_a_vehicle_that_comes_back_does_not_announce_again() -> None:
    """At 0.5 s it is away; it was first there from 0 to 0.5 s."""
    here: Places = {"car-2": (0.0, 0.0)}
    found, run = coupled_run(doing(nothing), here, here, {}, here, here, {}, until_s=2.0)
    run.queue.run(1.75)
    assert run.done == [
        (0.0, 2, "appears"), (0.0, 2, "Here"), (0.0, 2, "There"), (0.5, 2, "vanishes"), (1.5, 2, "appears"),
    ]  # fmt: skip
    assert found.trajectories.presence[2] == ((0.0, 0.5), (1.5, math.inf))


def test_a_vehicle_that_is_there_for_one_moment_never_appears() -> None:
    here: Places = {"car-2": (0.0, 0.0)}
    _, run = coupled_run(doing(nothing), here, {}, here, {}, {})
    run.queue.run(1.0)
    assert "appears" not in [what for _, _, what in run.done]


def test_drivers_publish_for_vehicles_that_are_nodes_only() -> None:
    def act(traffic: Any, now: float) -> list[Any]:
        return [(name, Event("Here")) for name in sorted(traffic.vehicles)] if now == 0.5 else []

    here: Places = {"car-1": (0.0, 0.0), "stranger": (9.0, 9.0)}
    _, run = coupled_run(doing(act), here, here, here, here)
    run.queue.run(1.0)
    assert [one for one in run.done if one[0] > 0.0] == [(0.5, 1, "Here")]


def test_an_event_reaches_the_driver_of_a_vehicle_that_is_still_there() -> None:
    here: Places = {"car-1": (0.0, 0.0), "car-2": (9.0, 9.0)}
    found, run = coupled_run(doing(nothing), here, here, {"car-2": (9.0, 9.0)}, {"car-2": (9.0, 9.0)}, {}, until_s=1.5)
    run.queue.run(0.75)
    for node in (0, 1, 2):
        found.delivered(node, Event("Here"))
    run.queue.run(1.25)
    assert found._drivers.delivered_to == ["car-2"], "the tower has no driver, and car-1 has left"  # type: ignore[attr-defined]
    run.queue.run(1.5)
    assert found._drivers.delivered_to == ["car-2"], "once"  # type: ignore[attr-defined]


def test_drivers_have_a_source_of_chance_of_their_own() -> None:
    found, _ = coupled_run(doing(nothing), {})
    assert found._drivers.random.random() == Random("5:drivers").random()  # type: ignore[attr-defined]


def test_what_drivers_do_wrong_names_them_and_the_time() -> None:
    def fails(_: Any, now: float) -> list[Any]:
        return [1 / (0.5 - now)] if now else []

    def refuses(*_: Any) -> list[Any]:
        raise SettingsError("no such edge")

    for act, problem in (
        (fails, "drivers: mine.py:Doing failed at 0.5 s: ZeroDivisionError: float division by zero"),
        (lambda *_: [("car-1", "Here")], "drivers: mine.py:Doing must publish events, got 'Here'"),
        (refuses, "no such edge"),
    ):
        _, run = coupled_run(doing(act), *[{"car-1": (0.0, 0.0)}] * 4)
        with pytest.raises((ScenarioError, SettingsError)) as refused:
            run.queue.run(1.0)
        assert str(refused.value).startswith(problem)


def test_drivers_of_ours_are_named_by_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(*_: Any) -> list[Any]:
        return [math.sqrt(-1)]

    monkeypatch.setattr(JamWarningDrivers, "step", step)
    _, run = coupled_run(JamWarning(), *[{"car-1": (0.0, 0.0)}] * 4)
    with pytest.raises(ScenarioError, match="drivers: jam-warning failed at 0 s: ValueError"):
        run.queue.run(1.0)
