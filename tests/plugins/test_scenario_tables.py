"""Media, mobility models, workload generators and trace formats that are plug-ins."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from click.testing import CliRunner

from earshot.errors import ScenarioError
from earshot.simulation import Scenario, load_scenario, run

LAB = '''
import math

from earshot import Event, EventType
from earshot.records import DropReason
from earshot.simulation import Medium, OpenAir, SettingsTable, Trajectory, Transmission


class Orbit(SettingsTable, frozen=True):
    """Nodes circle around a point."""

    radius_m: float = 100.0
    "How far from the middle."
    period_s: float = 60.0
    "How long one round takes."

    def paths(self, names, extent, randoms, until_s):
        found = []
        for name, random in zip(names, randoms):
            phase = random.uniform(0.0, 2 * math.pi)
            moves = []
            for step in range(int(until_s) + 2):
                angle = phase + 2 * math.pi * step / self.period_s
                x_m, y_m = 500 + self.radius_m * math.cos(angle), 500 + self.radius_m * math.sin(angle)
                moves.append((float(step), x_m, y_m))
            found.append(Trajectory.through(name, moves))
        return found


class Sensors(SettingsTable, frozen=True):
    """Temperatures."""

    mean: float = 20.0

    def types(self):
        return (EventType("Temperature", {"celsius": "float"}),)

    def draw(self, random, number):
        return Event("Temperature", {"celsius": random.gauss(self.mean, 2.0)})


class EveryOther(SettingsTable, frozen=True):
    """A radio that loses every other frame."""

    range_m: float = 150.0
    latency_s: float = 0.002

    def open(self, air: OpenAir) -> Medium:
        return EveryOtherRadio(self, air)


class EveryOtherRadio:
    def __init__(self, settings, air):
        self.settings, self.air, self.sent = settings, air, 0
        self.neighbours = air.within(settings.range_m)

    def airtime_s(self, packet_bytes):
        return 0.0

    def broadcast(self, transmission):
        now = self.air.host.queue.now
        self.air.host.sent(transmission)
        transmission.receivers = self.neighbours.of(transmission.sender, now)
        self.sent += 1
        arrive = self.arrive if self.sent % 2 else self.lose
        self.air.host.queue.on_air(now + self.settings.latency_s, arrive, transmission)

    def arrive(self, transmission):
        self.air.host.received(transmission)

    def lose(self, transmission):
        self.air.host.lost(transmission, transmission.receivers, DropReason.FADED)

    def unicast(self, transmission):
        self.air.host.unreachable(transmission)

    def node_down(self, node, graceful):
        pass
'''

TOWN = """
base = "base"
duration_s = 60
[medium]
kind = "./lab.py:EveryOther"
range_m = 180
[nodes.node]
count = 20
mobility = { kind = "./lab.py:Orbit", radius_m = 200 }
[publish.news]
events = { kind = "./lab.py:Sensors", mean = 25 }
[subscribe.news]
filters = { kind = "written", texts = ["Temperature: celsius > 20"] }
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    (tmp_path / "lab.py").write_text(LAB)
    (tmp_path / "town.toml").write_text(TOWN)
    return tmp_path / "town.toml"


def test_a_scenario_takes_a_medium_a_mobility_model_and_events_from_a_file_beside_it(town: Path) -> None:
    scenario = load_scenario(town)
    assert scenario.table()["medium"] == {
        "kind": f"{town.parent}/lab.py:EveryOther", "routing": "ideal", "links": scenario.table()["medium"]["links"],
        "range_m": 180, "latency_s": 0.002,
    }  # fmt: skip
    assert scenario.medium.range_m == 180
    trajectories = scenario.trajectories(3)
    for number in range(20):
        x, y = trajectories.position(number, 7.0)
        assert (x - 500) ** 2 + (y - 500) ** 2 == pytest.approx(200.0**2)
    result = run(scenario, "flooding", seed=3)
    assert {event.type for event in result.published} == {"Temperature"}
    faded = result.counts.drops["faded"]
    received = sum(count.receives for count in result.counts.packets.values())
    assert faded > 0
    assert faded == pytest.approx(received, rel=0.1)


def test_such_a_scenario_is_written_read_changed_and_pickled_like_another(town: Path) -> None:
    scenario = load_scenario(town)
    again = Scenario.with_(scenario)
    assert again == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    changed = scenario.with_({"nodes.node.mobility.radius_m": 50, "medium.kind": "unit-disk"})
    assert changed.nodes["node"].mobility.settings.radius_m == 50
    assert (changed.medium.kind, changed.medium.range_m) == ("unit-disk", 180)
    back = changed.with_({"medium": f"{town.parent}/lab.py:EveryOther"})
    assert back.medium.settings.range_m == 150


def test_the_code_of_its_plug_ins_is_part_of_what_a_scenario_is(town: Path) -> None:
    before = load_scenario(town).canonical()
    assert load_scenario(town).canonical() == before
    lab = town.parent / "lab.py"
    lab.write_text(LAB.replace("math.cos", "math.sin"))
    after = load_scenario(town).canonical()
    assert after["nodes"]["node"]["mobility"]["code"] != before["nodes"]["node"]["mobility"]["code"]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("radius_m = 200", "radius_m = 'far'", r"nodes.node.mobility.settings.radius_m: must be a number of metres"),
        ("radius_m = 200", "radios_m = 2", r"radios_m: no such key; did you mean radius_m"),
        ("lab.py:Orbit", "lab.py:Sensors", r"lab.py:Sensors lacks paths; docs/extending.md"),
        ("lab.py:Orbit", "lab.py:EveryOtherRadio", "is not a table: derive a class from earshot.simulation"),
        ("./lab.py:Orbit", "./none.py:Orbit", "no such file or directory"),
        ("./lab.py:Orbit", "orbit", "no such choice as 'orbit'"),
    ],
)
def test_mistakes_in_such_tables_are_explained(town: Path, before: str, after: str, says: str) -> None:
    town.write_text(TOWN.replace(before, after))
    with pytest.raises(ScenarioError, match=says):
        load_scenario(town)


DIARY = """
from earshot.traces import Sighting, TraceFormat


def parse(stream, file, options):
    for number, line in enumerate(stream, 1):
        node, time, x, y = line.decode().split("|")
        try:
            yield Sighting(node, float(time), float(x), float(y), line=number)
        except ValueError as error:
            yield Sighting(line=number, problem=str(error))


DIARY = TraceFormat("diary", "lines of node|time|x|y", ("text",), parse)
"""


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_trace_format_of_ones_own_is_ingested(tmp_path: Path) -> None:
    from earshot.cli import earshot

    (tmp_path / "diary.py").write_text(DIARY)
    (tmp_path / "walk.txt").write_text("ann|0|0|0\nann|1|1|0\nbob|0|5|5\nbob|x|5|6\nbob|1|5|6\n")
    asked = ["ingest", str(tmp_path / "walk.txt"), "--format", f"{tmp_path}/diary.py:DIARY", "--json"]
    done = CliRunner().invoke(earshot, [*asked, "--lake", str(tmp_path / "lake")])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert (summary["nodes"], summary["positions"], summary["rejected"]) == (2, 4, {"unparsable": 1})
