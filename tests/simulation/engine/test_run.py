"""Whole runs: the same bytes for the same seed, golden logs, what may run where."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import SettingsError, UnknownName
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.machine import Machine
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.faults import NO_FAULTS, Churn, FaultSettings
from earshot.simulation.media.medium_settings import Contention, Lossy, MediumSettings, UnitDisk
from earshot.simulation.media.open_medium import Network
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload


@dataclass(frozen=True)
class Square:
    """Twenty-five nodes that walk about a square, written here so that no other file changes the golden logs."""

    name: str = "square"
    duration_s: float = 20.0
    warm_up_s: float = 0.0
    medium: MediumSettings = field(default=UnitDisk(range_m=60.0))
    faults: FaultSettings = NO_FAULTS
    nodes: Mapping[str, Any] = field(default_factory=dict)
    "Groups whose drivers could react: none."

    def trajectories(self, seed: int) -> Trajectories:
        chance = Random(f"{seed}:ways")
        ways = []
        for node in range(25):
            knots = [(float(5 * k), float(chance.randrange(300)), float(chance.randrange(300))) for k in range(5)]
            ways.append(Trajectory.through(f"n{node}", knots))
        return Trajectories(ways)

    def network(self, machine: type[Machine], settings: Any) -> Network:
        return Network(self.medium, machine.uses_routing(settings))

    def workload(self, seed: int, trajectories: Trajectories) -> Workload:
        chance = Random(f"{seed}:work")
        wishes = [
            Action(0.0, node, Subscription(f"s{node}", f"n{node}", Filter.where(f"value < {node}")))
            for node in range(25)
        ]
        events = [
            Action(1.0 + k, chance.randrange(25), Event(type="Ping", content={"value": chance.randrange(25)}))
            for k in range(15)
        ]
        return Workload([*wishes, *events])


def digest(log: Log) -> str:
    """Of every value of every row, apart from the texts of events and filters: exact, and the same for
    every version of Arrow."""
    found = hashlib.sha256()
    for row in log.rows():
        if row["kind"] in ("publish", "subscribe"):
            row["detail"] = ""
        found.update(repr(tuple(row.values())).encode())
    return found.hexdigest()[:16]


def logged(scenario: Any, protocol: str = "flooding", seed: int = 1, **settings: Any) -> str:
    log = Log(positions_every_s=5.0)
    run(scenario, protocol, settings, seed, log)
    return digest(log)


BUSY = FaultSettings(silent_share=0.1, churn=Churn(15.0, 3.0), clock_skew_s=0.2)
GOLDEN = [
    ("flooding", Square(), {}, "21cd2aed360c04fb"),
    ("gossip", Square(), {"distance_m": 50.0, "probability": 0.6}, "0f430d78d635fce9"),
    ("flooding", Square(medium=Lossy(range_m=80.0, certain_m=40.0), faults=BUSY), {}, "9d19ca505c12ef98"),
    ("flooding", Square(medium=Contention(range_m=60.0)), {"jitter_s": 0.01}, "2742c835eb51b9c4"),
    ("hearsay", Square(medium=Contention(range_m=60.0), faults=BUSY), {}, "93e791f659e25f1d"),
]


@pytest.mark.parametrize(
    ("protocol", "scenario", "settings", "expected"), GOLDEN, ids=[f"{row[0]}-{row[1].medium.kind}" for row in GOLDEN]
)
def test_golden_logs(protocol: str, scenario: Any, settings: dict[str, Any], expected: str) -> None:
    """A change here changes every published figure: make sure it is meant, then write the new digest down."""
    assert logged(scenario, protocol, **settings) == expected


def test_another_seed_is_another_run() -> None:
    assert logged(Square(), seed=1) == logged(Square(), seed=1) != logged(Square(), seed=2)


ANOTHER_PROCESS = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_run import BUSY, Square
from earshot.simulation.engine.log import Log
from earshot.simulation.media.medium_settings import Contention
from earshot.simulation.engine.run import run
scenario = Square(medium=Contention(range_m=60.0), faults=BUSY)
for name in ("run.parquet", "run.arrow"):
    with Log(Path({folder!r}) / name, positions_every_s=2.0, chunk_rows=500) as log:
        run(scenario, "flooding", {{"jitter_s": 0.01}}, 3, log)
"""


def test_two_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        folder.mkdir()
        script = ANOTHER_PROCESS.format(tests=str(Path(__file__).parent), folder=str(folder))
        tests = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": tests}
        subprocess.run([sys.executable, "-c", script], check=True, env=environment)
        written.append([(folder / name).read_bytes() for name in ("run.parquet", "run.arrow")])
    assert written[0] == written[1]
    assert all(len(data) > 10_000 for data in written[0])


def test_the_log_changes_nothing() -> None:
    scenario = Square(medium=Contention(range_m=60.0), faults=BUSY, warm_up_s=5.0)
    without = run(scenario, "flooding", {"jitter_s": 0.01}, seed=4)
    log = Log(positions_every_s=0.5)
    with_log = run(scenario, "flooding", {"jitter_s": 0.01}, seed=4, log=log)
    assert (without.counts, without.warm_up, without.published) == (
        with_log.counts,
        with_log.warm_up,
        with_log.published,
    )
    assert list(without.deliveries.time) == list(with_log.deliveries.time)
    kinds = [row["kind"] for row in log.rows()]
    assert (kinds.count("send"), kinds.count("receive")) == (with_log.counts.sends, with_log.counts.receives)
    assert (kinds.count("deliver"), kinds.count("publish")) == (len(with_log.deliveries), len(with_log.published))
    assert kinds.count("drop") == with_log.counts.drops.total()


def test_a_result_says_what_ran() -> None:
    result = run(Square(warm_up_s=5.0), "gossip", {"probability": "0.5"}, seed=9)
    assert (result.scenario, result.protocol, result.seed, result.duration_s, result.warm_up_s) == (
        "square",
        "gossip",
        9,
        20.0,
        5.0,
    )
    assert (result.settings["probability"], result.settings["distance_m"]) == (0.5, 200.0)
    assert result.nodes == tuple(f"n{i}" for i in range(25))
    assert result.events == result.counts.sends + result.counts.receives > 100
    assert 0 < result.warm_up.sends < result.counts.sends
    assert len(result.subscriptions) == 25


def test_unknown_names_are_named() -> None:
    with pytest.raises(UnknownName, match=r"no protocol named 'gosip'; did you mean 'gossip'\?"):
        run(Square(), "gosip")
    with pytest.raises(SettingsError, match=r"probabilty: no such key; did you mean probability\?"):
        run(Square(), "gossip", {"probabilty": 0.5})
