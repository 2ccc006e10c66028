"""SUMO as mobility, alone and in step with a run. Where libsumo is not installed these tests are skipped."""

import importlib.util
import math
import re
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from earshot.errors import ScenarioError
from earshot.events import Event, EventType
from earshot.simulation import Log, SettingsTable, load_scenario, run, summarise
from earshot.simulation.mobility.sumo import content_of
from earshot.simulation.mobility.sumo_process import SumoProcess
from earshot.traces import read_trace

JAM = Path(__file__).parents[3] / "examples" / "jam" / "jam.toml"
CONFIG = JAM.with_name("jam.sumocfg")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("libsumo") is None, reason="libsumo is not installed: pip install 'earshot[sumo]'"
)


def jam(**changes):
    return load_scenario(str(JAM)).with_({"duration_s": 90.0, **changes})


def driven_by(name: str):
    return jam(**{"nodes.car.mobility.drivers": f"{__file__}:{name}"})


class Idle(SettingsTable, frozen=True):
    """Drivers who do nothing."""

    def types(self):
        return ()

    def open(self, random):
        return self

    def delivered(self, vehicle, event, now):
        pass

    def step(self, traffic, now):
        return ()


class Careful(SettingsTable, frozen=True):
    """Every car publishes once, when it enters; who receives that drives slowly for a while."""

    def types(self):
        return (EventType("Here", {"car": str}),)

    def open(self, random):
        return CarefulDrivers()


class CarefulDrivers:
    def __init__(self):
        self.reported, self.seen = [], set()

    def delivered(self, vehicle, event, now):
        self.reported.append((vehicle.name, event.source))
        vehicle.slow_down(to_m_s=3.0, for_s=20.0)

    def step(self, traffic, now):
        for name in [name for name in traffic.vehicles if name not in self.seen]:
            self.seen.add(name)
            yield name, Event("Here", {"car": name})


class Broken(Idle, frozen=True):
    def step(self, traffic, now):
        return 1 / 0


def test_nodes_go_where_sumo_says_that_its_vehicles_go(tmp_path) -> None:
    """SUMO's own output of positions is the truth."""
    output = tmp_path / "positions.xml"
    with SumoProcess(
        CONFIG, 7, ["--fcd-output", str(output), "--fcd-output.attributes", "x,y", "--precision", "6"]
    ) as sumo:
        for _ in range(91):
            sumo.step()
        sumo.ask("simulation.close")
    trace = read_trace(output)
    assert len(trace.time) > 300
    trajectories = jam(**{"nodes.car.mobility.drivers": None}).trajectories(7)
    number = {name: i for i, name in enumerate(trajectories.names)}
    for node, time, x_m, y_m in zip(trace.node, trace.time, trace.x_m, trace.y_m, strict=True):
        assert trajectories.position(number[str(node)], float(time)) == pytest.approx((x_m, y_m), abs=1e-5)
        assert trajectories.present(number[str(node)], float(time)) or time == trace.time[trace.node == node].max()


def log_of(scenario, folder: Path, seed: int = 1) -> bytes:
    file = folder / f"{len(list(folder.iterdir()))}.arrow"
    with Log(file) as log:
        run(scenario, "flooding", seed=seed, log=log)
    return file.read_bytes()


def test_the_same_seed_gives_the_same_log(tmp_path) -> None:
    scenario = jam()
    first = log_of(scenario, tmp_path)
    assert first == log_of(scenario, tmp_path)
    assert first != log_of(scenario, tmp_path, seed=2)


def test_in_step_with_idle_drivers_a_run_is_as_if_sumo_had_run_before() -> None:
    chatter = {
        "publish.chatter": {
            "nodes": "car",
            "events": {"kind": "topics", "count": 3},
            "when": {"kind": "poisson", "rate_per_s": 2.0},
        },
        "subscribe.jams": {"filters": {"kind": "types", "of": "chatter"}},
    }
    before = jam(**chatter, **{"nodes.car.mobility.drivers": None})
    in_step = jam(**chatter, **{"nodes.car.mobility.drivers": f"{__file__}:Idle"})
    results = [run(one, "flooding", seed=3) for one in (before, in_step)]
    summaries = [summarise(one, result).as_dict() for one, result in zip((before, in_step), results, strict=True)]
    assert summaries[0] == summaries[1]
    assert summaries[0]["delivered"] > 50
    assert results[0].trajectories.presence == results[1].trajectories.presence
    for time in np.arange(0.0, 90.0, 7.3):
        assert np.allclose(results[0].trajectories.positions(time), results[1].trajectories.positions(time), atol=1e-6)


def test_drivers_who_are_warned_slow_down() -> None:
    alone, slowed = run(driven_by("Idle"), "flooding", seed=1), run(driven_by("Careful"), "flooding", seed=1)
    assert len(slowed.published) > 10
    assert len(slowed.deliveries) == 0, "nobody subscribes to Here"
    listening = driven_by("Careful").with_({"subscribe.jams.filters.texts": ["Here: true"]})
    slowed = run(listening, "flooding", seed=1)
    assert len(slowed.deliveries) > 10
    moved = [[abs(t.velocity(i, 89.5)[0]) for i in range(len(t))] for t in (alone.trajectories, slowed.trajectories)]
    assert sum(0 < speed <= 3.0 + 1e-6 for speed in moved[1]) > sum(0 < speed <= 3.0 for speed in moved[0])


def test_a_jam_warning_shortens_travel_times() -> None:
    """The breakdown is on the only fast road; every car leaves before the end, so that all times are whole."""
    base = load_scenario(str(JAM))
    means = {}
    for heed in (0.0, 1.0):
        result = run(base.with_({"nodes.car.mobility.drivers.heed": heed}), "flooding", seed=1)
        assert all(len(one) == 1 and not math.isinf(one[0][1]) for one in result.trajectories.presence)
        assert result.published
        means[heed] = mean(end - start for ((start, end),) in result.trajectories.presence)
    assert means[1.0] < 0.85 * means[0.0]


def test_the_drivers_of_the_guide_drive_slowly_where_ice_is_reported(tmp_path) -> None:
    guide = (JAM.parents[2] / "docs" / "extending.md").read_text()
    (block,) = re.findall(r"```python\n(.*?class Winter.*?)```", guide, re.DOTALL)
    (tmp_path / "winter.py").write_text(block)
    changes = {
        "nodes.car.mobility.drivers": f"{tmp_path}/winter.py:Winter",
        "subscribe.jams.filters.texts": ["Ice: true"],
    }
    result = run(jam(**changes), "flooding", seed=1)
    assert {event.type for event in result.published} == {"Ice"}
    warned = {result.nodes[i] for i in result.deliveries.node}
    slow = {
        name for i, name in enumerate(result.nodes) if 0 < abs(result.trajectories.velocity(i, 89.5)[0]) <= 8.0 + 1e-6
    }
    assert slow & warned


def test_a_changed_network_is_another_scenario(tmp_path) -> None:
    for file in JAM.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = tmp_path / "jam.sumocfg"
    assert content_of(config) == content_of(CONFIG)
    routes = tmp_path / "jam.rou.xml"
    routes.write_text(routes.read_text().replace('endPos="500"', 'endPos="400"'))
    assert content_of(config) != content_of(CONFIG)
    assert load_scenario(str(tmp_path / "jam.toml")).canonical() != load_scenario(str(JAM)).canonical()


# Mistakes.


def copied(folder: Path, file: str, old: str, new: str) -> str:
    """A copy of the example in which one file is changed."""
    for one in JAM.parent.iterdir():
        (folder / one.name).write_bytes(one.read_bytes())
    (folder / file).write_text((folder / file).read_text().replace(old, new))
    return str(folder / "jam.toml")


def test_a_missing_configuration_is_named(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"nodes.car.mobility.config: no such file: .*gone.sumocfg"):
        load_scenario(copied(tmp_path, "jam.toml", "jam.sumocfg", "gone.sumocfg"))


def test_a_missing_network_is_named(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"cannot read .*gone.net.xml"):
        load_scenario(copied(tmp_path, "jam.sumocfg", "jam.net.xml", "gone.net.xml"))


def test_what_sumo_says_about_a_broken_route_is_passed_on(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"SUMO.*nowhere"):
        load_scenario(copied(tmp_path, "jam.rou.xml", "main1 main2", "nowhere main2"))


def test_a_run_that_outlasts_sumo_is_refused(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"SUMO ends after 300 s, but the run lasts 700 s"):
        load_scenario(copied(tmp_path, "jam.sumocfg", '<end value="700"/>', '<end value="300"/>'))


def test_vehicles_that_depend_on_chance_need_a_seed(tmp_path) -> None:
    path = copied(tmp_path, "jam.rou.xml", 'period="5"', 'probability="0.2"')
    with pytest.raises(ScenarioError, match=r"depends on SUMO's seed; set mobility.seed"):
        run(load_scenario(path), "flooding", seed=5)
    seeded = load_scenario(path).with_({"nodes.car.mobility.seed": 4, "duration_s": 60.0})
    assert run(seeded, "flooding", seed=5).nodes == run(seeded, "flooding", seed=6).nodes


def test_a_sumo_that_dies_is_an_error_with_its_step() -> None:
    with SumoProcess(CONFIG, 1) as sumo:
        sumo.step()
        sumo._process.kill()
        with pytest.raises(ScenarioError, match=r"SUMO ended after 1 steps"):
            sumo.step()


def test_a_failing_driver_is_named_with_its_time() -> None:
    with pytest.raises(ScenarioError, match=r"drivers: .*Broken failed at 0 s: ZeroDivisionError"):
        run(driven_by("Broken"), "flooding", seed=1)


def test_without_sumo_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(
        "earshot.simulation.mobility.sumo_process.inspect.getsource",
        lambda module: (
            "import sys; sys.modules['libsumo'] = None\n"
            + Path(module.__file__).read_text().replace("from __future__ import annotations", "")
        ),
    )
    with pytest.raises(ScenarioError, match=r"SUMO is not installed; install it with: pip install 'earshot\[sumo\]'"):
        SumoProcess(CONFIG, 1)
