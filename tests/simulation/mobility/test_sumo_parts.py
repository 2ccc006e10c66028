"""SUMO's parts, with a libsumo written here: no SUMO is needed."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import ScenarioError
from earshot.events import Event, EventType
from earshot.records.trajectories import ALWAYS, Trajectory
from earshot.simulation import SettingsTable
from earshot.simulation.engine.coupling import Coupling, coupled
from earshot.simulation.event_queue import Queue
from earshot.simulation.extent import Extent, box_of
from earshot.simulation.mobility import sumo_child, sumo_process
from earshot.simulation.mobility.drivers import FAR_S, JamWarning, OutsideDrivers, Traffic
from earshot.simulation.mobility.sumo import Sumo, content_of, step_times
from earshot.simulation.mobility.sumo_process import SumoProcess, SumoStep, VehicleState

NOWHERE = -1073741824.0


class FakeSumo:
    """libsumo as far as it is used. Each step: the vehicles with their places, who entered, and who finds no room."""

    def __init__(self, steps: list[Any], begin_s: float = 0.0, end_s: float = -1.0, refuses: str = "") -> None:
        self.steps, self.number, self.refuses = steps, -1, refuses
        self.calls: list[Any] = []
        self.constants = types.SimpleNamespace(INVALID_DOUBLE_VALUE=-1073741824.0)
        self.simulation = types.SimpleNamespace(
            getDeltaT=lambda: 0.5,
            getTime=lambda: begin_s,
            getEndTime=lambda: end_s,
            getDepartedIDList=lambda: self.steps[self.number][1],
            getPendingVehicles=lambda: self.steps[self.number][2],
        )
        self.vehicle = types.SimpleNamespace(
            getIDList=lambda: list(self.steps[self.number][0]),
            getPosition=lambda name: self.steps[self.number][0][name],
            getSpeed=lambda _: 13.5,
            getRoadID=lambda name: f"road of {name}",
            getWaitingTime=lambda _: 2.0,
            getTypeID=lambda name: f"type of {name}",
            setSpeed=lambda name, speed: [name, speed],
        )

    def start(self, arguments: list[str]) -> None:
        self.calls.append(arguments)
        os.write(1, b"SUMO speaks\n")
        if self.refuses:
            os.write(2, b"first\nsecond\nthird\n  fourth  \n")
            raise RuntimeError(self.refuses)

    def simulationStep(self) -> None:
        self.number += 1


FAKE = inspect.getsource(FakeSumo)
STEPS = [
    ({"car.10": (0.0, 5.0)}, ["car.10"], ["late"]),
    ({"car.10": (10.0, 5.0), "car.2": (1.0, 1.0)}, ["car.2"], ["late"]),
    ({"car.10": (500.0, 5.0), "car.2": (1.0, 3.0)}, [], ["late"]),
    ({"car.2": (1.0, 5.0)}, [], ["late"]),
]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets processes of SUMO use the fake with this script."""

    def use(steps: list[Any], *more: Any, **named: Any) -> None:
        child = Path(sumo_child.__file__).read_text().replace("from __future__ import annotations", "")
        start = f"sys.modules['libsumo'] = FakeSumo(*{[steps, *more]!r}, **{named!r})"
        text = "\n".join(["import os, sys, types", "from typing import Any", FAKE, start, child])
        monkeypatch.setattr(sumo_process.inspect, "getsource", lambda _: text)

    return use


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "town.sumocfg"
    file.write_text("<configuration/>")
    return file


# The child.


def test_a_step_says_where_each_vehicle_is_and_leaves_out_who_is_nowhere() -> None:
    sumo = FakeSumo([({"a": (1.0, 2.0), "b": (NOWHERE, NOWHERE)}, ["a"], ["c"]), ({"a": (3.0, 2.0)}, [], [])])
    assert [sumo_child._answer(sumo, "step", []) for _ in range(2)] == [
        {"rows": [("a", 1.0, 2.0, 13.5, "road of a", 2.0)], "types": {"a": "type of a"}, "pending": ["c"]},
        {"rows": [("a", 3.0, 2.0, 13.5, "road of a", 2.0)], "types": {}, "pending": []},
    ]


def test_a_start_passes_the_arguments_on_and_says_the_times() -> None:
    sumo = FakeSumo([], 100.0, 400.0)
    assert sumo_child._answer(sumo, "start", [["-c", "x"]]) == {"step_s": 0.5, "begin_s": 100.0, "end_s": 400.0}
    assert sumo.calls == [["sumo", "-c", "x"]]


def test_any_other_function_is_called_by_its_name() -> None:
    assert sumo_child._answer(FakeSumo([]), "vehicle.setSpeed", ["a", 3.0]) == ["a", 3.0]


class System:
    """The operating system as the child sees it: its answers go to a copy of the standard output."""

    def __init__(self) -> None:
        self.environ: dict[str, str] = {}
        self.did: list[tuple[Any, ...]] = []
        self.lines: list[str] = []
        self.flushed: list[str] = []

    def dup(self, number: int) -> str:
        self.did.append(("dup", number))
        return f"a copy of {number}"

    def dup2(self, number: int, to: int) -> None:
        self.did.append(("dup2", number, to))

    def fdopen(self, number: str, mode: str, encoding: str) -> System:
        self.did.append(("fdopen", number, mode, encoding))
        return self

    def write(self, text: str) -> None:
        self.lines.append(text)

    def flush(self) -> None:
        self.flushed = list(self.lines)


def test_the_child_answers_each_request_with_a_line_apart_from_what_sumo_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = System()
    seen: list[list[str]] = []

    def requests() -> Iterator[str]:
        for request in ('["start", ["-c", "x"]]', '["vehicle.fly"]', '["vehicle.setSpeed", "a", 3.0]'):
            yield request + "\n"
            seen.append(system.flushed)

    monkeypatch.setattr(sumo_child, "os", system)
    monkeypatch.setitem(sys.modules, "libsumo", FakeSumo([], 100.0, 400.0))
    monkeypatch.setattr(sumo_child, "sys", types.SimpleNamespace(stdin=requests()))
    sumo_child.main()
    assert system.did == [("dup", 1), ("fdopen", "a copy of 1", "w", "utf-8"), ("dup2", 2, 1)]
    assert [json.loads(line) for line in system.lines[::2]] == [
        {"answer": {"step_s": 0.5, "begin_s": 100.0, "end_s": 400.0}},
        {"answer": ["a", 3.0]},
    ]
    assert json.loads(system.lines[1])["error"].startswith("vehicle.fly: ")
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in system.lines)
    assert [len(lines) for lines in seen] == [1, 2, 3], "each answer leaves at once"
    assert system.environ == {"LIBSUMO_AS_TRACI": "quiet"}


def test_a_child_without_libsumo_says_why_and_ends_with_its_own_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sumo_child, "os", System())
    monkeypatch.setitem(sys.modules, "libsumo", None)
    with pytest.raises(SystemExit) as ended:
        sumo_child.main()
    assert ended.value.code == sumo_child.NO_LIBSUMO
    assert ended.value.code not in (0, 1, 2), "which Python itself ends with"
    assert "libsumo" in capsys.readouterr().err


# The process.


def test_a_process_starts_steps_and_answers_while_sumo_prints(fake: Callable[..., None]) -> None:
    fake(STEPS, 100.0)
    with SumoProcess(Path("town.sumocfg"), 2**31 + 7, ["--more"]) as sumo:
        assert (sumo.step_s, sumo.begin_s, sumo.end_s) == (0.5, 100.0, None)
        assert sumo.step() == SumoStep(
            [VehicleState("car.10", 0.0, 5.0, 13.5, "road of car.10", 2.0)], {"car.10": "type of car.10"}, ["late"]
        )
        assert sumo.ask("vehicle.setSpeed", "a", 2.0) == ["a", 2.0]
        with pytest.raises(ScenarioError, match=r"^town.sumocfg: SUMO refused vehicle.fly: .*fly.*: SUMO speaks$"):
            sumo.ask("vehicle.fly")
        sumo._process.kill()
        with pytest.raises(ScenarioError, match=r"town.sumocfg: SUMO ended after 1 steps \(exit status -9\)"):
            sumo.step()


def test_sumo_gets_its_configuration_and_a_seed_that_it_takes(fake: Callable[..., None]) -> None:
    fake([])
    with SumoProcess(Path("town.sumocfg"), 2**31 + 7, ["--more"]) as sumo:
        (arguments,) = sumo.ask("calls.copy")
    about = ["-c", "town.sumocfg", "--seed", "7", "--no-step-log", "--duration-log.disable"]
    assert arguments == ["sumo", *about, "--more"]


def test_a_refusal_says_the_last_three_lines_that_sumo_printed(fake: Callable[..., None]) -> None:
    fake([], refuses="it")
    with pytest.raises(ScenarioError, match=r"^town.sumocfg: SUMO refused start: it: second third fourth$"):
        SumoProcess(Path("town.sumocfg"), 1)


def test_an_end_at_zero_is_an_end_and_a_negative_one_is_none(fake: Callable[..., None]) -> None:
    for end_s, expected in ((-1.0, None), (0.0, 0.0), (5.0, 5.0)):
        fake([], 0.0, end_s)
        with SumoProcess(Path("town.sumocfg"), 1) as sumo:
            assert sumo.end_s == expected


def test_a_sumo_that_does_not_start_leaves_no_process(
    fake: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def popen(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **named))
        return started[-1]

    fake([], refuses="no")
    monkeypatch.setattr(sumo_process, "subprocess", types.SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE))
    with pytest.raises(ScenarioError, match="SUMO refused start: no"):
        SumoProcess(Path("town.sumocfg"), 1)
    (process,) = started
    assert process.returncode is not None
    assert process.stdin is not None
    assert process.stdin.closed


def test_a_libsumo_that_cannot_be_imported_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Path(sumo_child.__file__).read_text().replace("from __future__ import annotations", "")
    text = f"import sys; sys.modules['libsumo'] = None\n{child}"
    monkeypatch.setattr(sumo_process.inspect, "getsource", lambda _: text)
    with pytest.raises(ScenarioError, match=r"pip install 'earshot\[sumo\]': import of libsumo halted"):
        SumoProcess(Path("town.sumocfg"), 1)


# Mobility.


def test_the_vehicles_of_a_run_in_which_nobody_reacts(fake: Callable[..., None], config: Path) -> None:
    fake(STEPS)
    traffic = Sumo(config)._alone(3, 1.0)
    assert traffic.names == ("car.2", "car.10", "late")
    assert traffic.types == {"car.2": "type of car.2", "car.10": "type of car.10"}
    assert traffic.due == {"car.10": 0.0, "late": 0.0, "car.2": 0.5}
    assert traffic.times.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert traffic.places == [step[0] for step in STEPS]


def test_who_enters_after_the_end_is_no_node(fake: Callable[..., None], config: Path) -> None:
    steps = [({}, [], []), ({"a": (0.0, 0.0)}, ["a"], []), ({"b": (0.0, 0.0)}, ["b"], [])]
    fake(steps)
    assert Sumo(config).names(0.5) == ("a",)
    fake([({}, [], [])] * 3)
    config.write_text("<configuration><!-- another --></configuration>")
    with pytest.raises(ScenarioError, match=r"town.sumocfg: no vehicle enters within 0.5 s; check its routes"):
        Sumo(config).names(0.5)


def test_vehicles_move_jump_wait_and_leave(fake: Callable[..., None], config: Path) -> None:
    """car.10 is moved 490 m in half a second: it stands, jumps there and leaves."""
    fake(STEPS)
    model = Sumo(config, shift_m=(100.0, 1000.0))
    names = model.names(1.0)
    two, ten, late = model.paths(names, Extent(), [Random(1)] * 3, 1.0, 0)
    assert [one.name for one in (two, ten, late)] == list(names)
    rows = [[list(map(float, row)) for row in zip(one.times, one.xs, one.ys, strict=True)] for one in (two, ten)]
    assert rows == [
        [[0.5, 101.0, 1001.0], [1.0, 101.0, 1003.0], [1.5, 101.0, 1005.0]],
        [[0.0, 100.0, 1005.0], [0.5, 110.0, 1005.0], [1.0, 110.0, 1005.0], [1.0, 600.0, 1005.0]],
    ]
    assert (two.presence, ten.presence, late.presence) == (((0.5, math.inf),), ((0.0, 1.0),), ())


def test_a_vehicle_without_room_may_find_it_where_drivers_react(fake: Callable[..., None], config: Path) -> None:
    fake(STEPS)
    model = Sumo(config, drivers=JamWarning())
    two, ten, late = model.paths(("car.2", "car.10", "late"), Extent(), [Random(1)] * 3, 1.0, 0)
    assert (two.presence, ten.presence, late.presence) == (((0.5, math.inf),), ((0.0, 1.0),), ((0.0, math.inf),))


def test_nodes_that_do_not_enter_with_this_seed_are_refused(fake: Callable[..., None], config: Path) -> None:
    fake(STEPS)
    for names in (("car.2", "car.10", "late", "other"), ("other",)):
        with pytest.raises(ScenarioError, match="which vehicles enter depends on SUMO's seed"):
            Sumo(config).paths(names, Extent(), [Random(1)], 1.0, 0)
    assert len(Sumo(config).paths(("car.2",), Extent(), [Random(1)], 1.0, 0)) == 1


def test_sumo_must_last_as_long_as_the_run_counted_from_its_begin(fake: Callable[..., None], config: Path) -> None:
    fake([], 100.0, 400.0)
    Sumo(config).started(1, 300.0).close()
    with pytest.raises(ScenarioError, match=r"SUMO ends after 300 s, but the run lasts 301 s"):
        Sumo(config).started(1, 301.0)


@pytest.mark.parametrize(("own", "expected"), [(None, 7), (0, 0), (4, 4)])
def test_a_seed_of_its_own_comes_before_the_runs(
    own: int | None, expected: int, monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    asked: list[int] = []
    started = types.SimpleNamespace(end_s=None)
    monkeypatch.setattr("earshot.simulation.mobility.sumo.SumoProcess", lambda _, seed: asked.append(seed) or started)
    Sumo(config, seed=own).started(7, 10.0)
    assert asked == [expected]


def test_steps_go_one_beyond_the_end() -> None:
    assert step_times(0.5, 1.0).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert step_times(0.5, 1.2).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert step_times(1.0, 0.5).tolist() == [0.0, 1.0]


def test_what_is_in_the_named_files_counts(config: Path) -> None:
    first, second = config.with_name("a.xml"), config.with_name("b.xml")
    config.write_text('<configuration><input><route-files value="a.xml, b.xml"/></input></configuration>')
    with pytest.raises(ScenarioError, match=r"town.sumocfg: cannot read .*a.xml: No such file"):
        content_of(config)
    first.write_text("1")
    second.write_text("2")
    before = content_of(config)
    second.write_text("3")
    assert content_of(config) != before
    second.write_text("2")
    assert content_of(config) == before
    config.write_text("no xml")
    with pytest.raises(ScenarioError, match=r"town.sumocfg: not a configuration of SUMO"):
        content_of(config)


# Drivers.


class Asked:
    """SUMO, which only notes what it is asked."""

    begin_s = 100.0

    def __init__(self, route: list[str], after: list[str] | None = None) -> None:
        self.route, self.after = route, after or route
        self.calls: list[tuple[Any, ...]] = []

    def ask(self, function: str, *arguments: Any) -> Any:
        if function == "vehicle.getRouteIndex":
            return 1
        if function == "vehicle.getRoute":
            return self.route
        self.calls.append((function, *arguments))
        self.route = self.after
        return None


def traffic_of(sumo: Asked, now: float = 10.0, waiting_s: float = 0.0, *names: str) -> Traffic:
    traffic = Traffic(sumo)  # type: ignore[arg-type]
    traffic.at(now, [VehicleState(name, 1.0, 2.0, 13.5, "e1", waiting_s) for name in names or ("a",)])
    return traffic


def test_a_driver_sees_its_vehicle() -> None:
    vehicle = traffic_of(Asked(["e0", "e1", "e2", "e3"]), 10.0, 4.0).vehicles["a"]
    assert (vehicle.name, vehicle.edge, vehicle.speed_m_s, vehicle.waiting_s) == ("a", "e1", 13.5, 4.0)
    assert vehicle.edges_ahead() == ("e2", "e3")


def test_a_driver_avoids_only_an_edge_ahead_and_says_whether_there_is_another_way() -> None:
    sumo = Asked(["e0", "e1", "e2"], ["e0", "e1", "x"])
    vehicle = traffic_of(sumo).vehicles["a"]
    assert (vehicle.avoid("e1", 60.0), vehicle.avoid("gone", 60.0), sumo.calls) == (False, False, [])
    assert vehicle.avoid("e2", 60.0) is True
    assert sumo.calls == [
        ("vehicle.setAdaptedTraveltime", "a", "e2", FAR_S, 110.0, 170.0),
        ("vehicle.rerouteTraveltime", "a", False),
    ]
    assert traffic_of(Asked(["e0", "e1", "e2"])).vehicles["a"].avoid("e2", 60.0) is False


def test_a_driver_who_slowed_down_goes_on_when_the_time_is_over_or_has_left() -> None:
    sumo = Asked([])
    traffic = traffic_of(sumo, 10.0, 0.0, "a", "b")
    traffic.vehicles["a"].slow_down(3.0, for_s=5.0)
    traffic.vehicles["b"].slow_down(4.0, for_s=9.0)
    slowed = [("vehicle.setSpeed", "a", 3.0), ("vehicle.setSpeed", "b", 4.0)]
    states = [vehicle.state for vehicle in traffic.vehicles.values()]
    traffic.at(14.5, states)
    assert sumo.calls == slowed
    traffic.at(15.0, states)
    assert sumo.calls == [*slowed, ("vehicle.setSpeed", "a", -1.0)]
    traffic.at(16.0, states[:1])  # b has left
    traffic.at(30.0, states)
    assert sumo.calls == [*slowed, ("vehicle.setSpeed", "a", -1.0)]


def jam(edge: object, type: str = "Jam") -> Event:
    return Event(type, {"edge": edge})


def test_who_stands_long_enough_publishes_its_jam_and_again_later() -> None:
    drivers = JamWarning(stands_s=20.0, every_s=30.0).open(Random(1))
    sumo = Asked(["e0", "e1"])

    def published(now: float, waiting_s: float) -> list[tuple[str, Event]]:
        return list(drivers.step(traffic_of(sumo, now, waiting_s), now))

    assert published(10.0, 19.5) == []
    assert published(11.0, 20.0) == [("a", jam("e1"))]
    assert published(40.5, 49.5) == []
    assert published(41.0, 50.0) == [("a", jam("e1"))]
    drivers.delivered(traffic_of(sumo).vehicles["a"], jam("e1"), 60.0)
    assert published(89.5, 98.5) == [], "it has heard of it in the meantime"
    assert published(90.0, 99.0) == [("a", jam("e1"))]


@pytest.mark.parametrize(("heed", "avoided"), [(1.0, True), (0.0, False)])
def test_who_heeds_a_warning_avoids_the_edge(heed: float, avoided: bool) -> None:
    sumo = Asked(["e0", "e1", "e2"])
    drivers = JamWarning(heed=heed, avoid_s=300.0).open(Random(1))
    vehicle = traffic_of(sumo).vehicles["a"]
    for other in (jam("e2", "Ice"), jam(7), Event("Jam", {})):
        drivers.delivered(vehicle, other, 10.0)
    assert sumo.calls == []
    drivers.delivered(vehicle, jam("e2"), 10.0)
    expected = ("vehicle.setAdaptedTraveltime", "a", "e2", FAR_S, 110.0, 410.0)
    assert sumo.calls[:1] == ([expected] if avoided else [])


def test_a_configuration_cannot_name_files_by_entities_from_elsewhere(config: Path) -> None:
    """A configuration may come from a stranger: what it includes by an entity is not read."""
    secret = config.parent / "secret.xml"
    secret.write_text('<net-file value="secret.net.xml"/>')
    config.write_text(f'<!DOCTYPE c [<!ENTITY e SYSTEM "{secret}">]><configuration><input>&e;</input></configuration>')
    assert content_of(config), "else it would look for secret.net.xml, which is missing"


# In step with a run.


class Shouting(SettingsTable, frozen=True):
    """Drivers of which each publishes once, and who note what reaches them."""

    def types(self) -> tuple[EventType, ...]:
        return (EventType("Here"),)

    def open(self, _random: Random) -> Any:
        return ShoutingDrivers()


class ShoutingDrivers:
    def __init__(self) -> None:
        self.reported: list[tuple[str, str, float]] = []

    def delivered(self, vehicle: Any, event: Event, now: float) -> None:
        self.reported.append((vehicle.name, event.type, now))

    def step(self, traffic: Traffic, now: float) -> list[tuple[str, Event]]:
        return [(name, Event("Here")) for name in traffic.vehicles] if now == 0.5 else []


class Steps:
    """A run that only notes what the coupling does."""

    def __init__(self) -> None:
        self.queue, self.schedule = Queue(), self
        self.done: list[tuple[Any, ...]] = []

    def carry_out(self, node: int, what: Any) -> None:
        self.done.append((self.queue.now, node, type(what).__name__))

    def appear(self, node: int) -> None:
        self.done.append((self.queue.now, node, "appears"))

    def vanish(self, node: int) -> None:
        self.done.append((self.queue.now, node, "vanishes"))


def coupling_of(fake: Callable[..., None], config: Path, steps: list[Any]) -> tuple[Coupling, Steps, SumoProcess]:
    fake(steps)
    drivers, process = OutsideDrivers(f"{__file__}:Shouting", Shouting()), SumoProcess(config, 1)
    planned = [Trajectory.standing(name, 0.0, 0.0) for name in ("tower", "car.10", "car.2")]
    found = Coupling(Sumo(config, drivers=drivers), drivers, process, planned, [1, 2], 1, 1.0)
    run = Steps()
    found.attach(run)
    return found, run, process


def test_a_vehicle_appears_announces_once_publishes_and_vanishes(fake: Callable[..., None], config: Path) -> None:
    steps = [
        ({"car.10": (0.0, 0.0)}, ["car.10"], []),
        ({"car.10": (1.0, 0.0), "car.2": (5.0, 5.0), "stranger": (9.0, 9.0)}, ["car.2"], []),
        ({"car.2": (6.0, 5.0)}, [], []),
        ({"car.2": (7.0, 5.0), "car.10": (3.0, 0.0)}, [], []),
    ]
    found, run, process = coupling_of(fake, config, steps)
    with process:
        run.queue.run(0.25)
        found.delivered(1, Event("Here"))
        found.delivered(0, Event("Here"))  # a tower has no driver
        run.queue.run(1.0)
    assert run.done == [
        (0.0, 1, "appears"), (0.0, 1, "Announcement"),
        (0.5, 1, "vanishes"), (0.5, 2, "appears"), (0.5, 2, "Announcement"), (0.5, 1, "Event"), (0.5, 2, "Event"),
    ]  # fmt: skip
    assert found._drivers.reported == [("car.10", "Here", 0.5)]
    assert found.trajectories.presence == (ALWAYS, ((0.0, 0.5), (1.5, math.inf)), ((0.5, math.inf),))


def test_one_group_of_nodes_may_have_drivers(fake: Callable[..., None], config: Path) -> None:
    fake([({"car.10": (0.0, 0.0)}, ["car.10"], [])])
    drivers = OutsideDrivers(f"{__file__}:Shouting", Shouting())
    reacting, others = (types.SimpleNamespace(mobility=Sumo(config, drivers=given)) for given in (drivers, None))
    planned = [Trajectory.standing(name, 0.0, 0.0) for name in ("tower", "car.10")]

    def scenario(**nodes: Any) -> Any:
        known = {"members": {"car": ["car.10"], "bus": []}.get, "paths": lambda _seed: planned, "duration_s": 1.0}
        return types.SimpleNamespace(nodes=nodes, **known)

    with coupled(scenario(bus=others, car=reacting), 1) as found:
        assert found is not None
        assert found._number == {"car.10": 1}
    with coupled(scenario(car=others), 1) as found:
        assert found is None
    with pytest.raises(ScenarioError, match=r"nodes\.bus: only one group of nodes may have drivers"):
        coupled(scenario(car=reacting, bus=reacting), 1).__enter__()


# The extent.


def test_a_box_may_fill_the_extent_and_not_exceed_it_on_any_side() -> None:
    extent = Extent(100.0, 50.0, 10.0, 20.0)
    assert extent.box == box_of(None, extent) == box_of((10.0, 20.0, 110.0, 70.0), extent) == (10.0, 20.0, 110.0, 70.0)
    for wrong in (
        (9.0, 20.0, 110.0, 70.0), (10.0, 19.0, 110.0, 70.0), (10.0, 20.0, 111.0, 70.0), (10.0, 20.0, 110.0, 71.0),
        (30.0, 20.0, 30.0, 70.0), (10.0, 30.0, 110.0, 30.0),
    ):  # fmt: skip
        with pytest.raises(ScenarioError, match=r"area of 100 x 50 m from \[10, 20\] on, got "):
            box_of(wrong, extent)
    with pytest.raises(ScenarioError, match=r"area of 1000 x 1000 m, got "):
        box_of((0.0, 0.0, 0.0, 1.0), Extent())
