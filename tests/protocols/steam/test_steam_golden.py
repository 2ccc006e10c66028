"""STEAM in the simulator: the same seed gives the same log, to the byte, in any process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

from earshot import Circle, Event, EventType, Filter, Position, Proximity
from earshot.filters import Subscription
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import SteamSettings
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.media.medium_settings import Lossy
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload

GOLDEN = "7b3bf46bea9dc0ba"


def digest() -> str:
    """Twenty nodes move in a square with a lossy radio; two of them announce, all subscribe."""
    chance = Random("golden")
    paths = [
        Trajectory.through(
            f"n{node}", [(6.0 * k, float(chance.randrange(400)), float(chance.randrange(400))) for k in range(4)]
        )
        for node in range(20)
    ]
    mobile = Proximity(Circle(250.0), Position(0.0, 0.0), mobile=True)
    fixed = Proximity(Circle(150.0), Position(200.0, 200.0))
    wanted = Filter.where("value < 8")
    actions = [Action(0.0, node, Subscription(f"s{node}", f"n{node}", wanted)) for node in range(20)]
    for node, subject, proximity in ((0, "Mobile", mobile), (1, "Fixed", fixed)):
        actions.append(Action(0.5, node, Announcement(EventType(subject, {"value": int}), proximity)))
        actions += [Action(1.0 + 0.5 * k, node, Event(subject, {"value": k % 10})) for k in range(30)]
    log = Log()
    Engine(
        lambda node, location, random, channel: Steam(node, SteamSettings(range_m=120.0), location, random, channel),
        Trajectories(paths),
        Lossy(range_m=120.0, certain_m=60.0),
        Workload(actions),
        duration_s=18.0,
        seed=3,
        log=log,
    ).run()
    rows = "\n".join(repr(row) for row in log.rows())
    assert "steam-recovered" in rows
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


def test_the_golden_log() -> None:
    """A change here changes every published figure: make sure that it is intended, then write the new digest here."""
    assert digest() == GOLDEN


def test_another_process_writes_the_same_log() -> None:
    script = "import test_steam_golden; print(test_steam_golden.digest())"
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == GOLDEN
