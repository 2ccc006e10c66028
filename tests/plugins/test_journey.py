"""A researcher's journey: an own protocol as a distribution, from the template to figures, clusters and live nodes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import QUICK, running_cluster
from installing import wheel_of

import earshot

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]

CAMPAIGN = """
scenarios = ["thrifty/scenario.toml"]
protocols = ["thrifty"]
seeds = 1
[set]
duration_s = 16
warm_up_s = 4
cool_down_s = 4
"nodes.car.count" = 10
"medium.range_m" = [250]
"""


class Environment:
    """A virtual environment that sees the packages that Earshot needs, and has nothing else; a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
        self.python = folder / "env" / "bin" / "python"
        (site,) = (folder / "env" / "lib").glob("python*/site-packages")
        shared = [path for path in sys.path if path.endswith("site-packages")]
        source = str(Path(earshot.__file__).parents[1])
        (site / "shared.pth").write_text("\n".join([source, *shared, sysconfig.get_path("purelib")]))
        self.variables = {**os.environ, "PYTHONSAFEPATH": "1", "XDG_CACHE_HOME": str(folder / "cache")}
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *words: object) -> subprocess.Popen[str]:
        started = subprocess.Popen(
            [self.python, *map(str, words)],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(started)
        return started

    def run(self, *words: object) -> str:
        done = self.start(*words)
        stated, errors = done.communicate(timeout=900)
        assert done.returncode == 0, stated + errors
        return stated

    def earshot(self, *words: object) -> str:
        return self.run("-m", "earshot", *words)

    def install(self) -> None:
        wheel = wheel_of(self.folder / "thrifty")
        self.run("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", wheel)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    made = Environment(tmp_path)
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def swept(environment: Environment, lake: str, *options: str) -> dict[str, dict[str, Any]]:
    """The runs of the campaign, by their id."""
    found = json.loads(environment.earshot("sweep", "campaign.toml", "--lake", lake, "--json", *options))["runs"]
    assert [(one["status"], one["protocol"], one["medium.range_m"]) for one in found] == [("done", "thrifty", 250)]
    return {one["run"]: one for one in found}


def points(environment: Environment, lake: str, *options: str) -> list[str]:
    """What `earshot plot` draws, as lines of CSV."""
    wanted = ("--x", "medium.range_m", "--y", "cost", "--csv", f"{lake}.csv")
    environment.earshot("plot", lake, *wanted, *options)
    return (environment.folder / f"{lake}.csv").read_text().splitlines()


def test_a_researchers_journey(environment: Environment) -> None:
    # From the template to a distribution that is installed, listed, checked and simulated.
    environment.earshot("new", "protocol", "thrifty")
    environment.install()
    (found,) = json.loads(environment.earshot("plugins", "--json"))
    assert (found["name"], found["origin"]) == ("thrifty", "thrifty 0.1.0")
    environment.earshot("check", "thrifty")
    short = ("--set", "duration_s=16", "--set", "warm_up_s=4", "--set", "cool_down_s=4", "--set", "nodes.car.count=10")
    alone = json.loads(environment.earshot("simulate", "thrifty/scenario.toml", "-p", "thrifty", *short, "--json"))
    assert alone["delivered"] > 0

    # A sweep on a cluster whose workers do not have the distribution, and the same one here.
    (environment.folder / "campaign.toml").write_text(CAMPAIGN)
    with running_cluster(environment.folder / "spark", workers=1) as cluster:
        environment.variables["PYSPARK_PYTHON"] = sys.executable
        small = ("spark.executor.memory=512m", f"spark.executor.extraJavaOptions={QUICK}", "spark.driver.memory=512m")
        conf = [word for one in small for word in ("--conf", one)]
        there = swept(environment, "there", "--master", cluster.master, *conf)
        del environment.variables["PYSPARK_PYTHON"]
    here = swept(environment, "here")
    assert there.keys() == here.keys()

    # The figure, and its data: the same from both.
    drawn = points(environment, "here", "--out", "figure.svg")
    assert "<svg" in (environment.folder / "figure.svg").read_text()
    assert len(drawn) == 2
    assert points(environment, "there") == drawn

    # Live nodes, recorded, and replayed in the simulator.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        group = f"239.255.69.83:{free.getsockname()[1]}"
    network = ("--interface", "lo", "--group", group, "--protocol", "thrifty", "--spool", "spool")
    hears = environment.start("-m", "earshot", "sub", "Siren", "--name", "b", "--count", 1, "--json", *network)
    says = environment.start("-m", "earshot", "pub", "Siren", "n=1", "--name", "a", "--every", "300ms", *network)
    heard, errors = hears.communicate(timeout=600)
    assert hears.returncode == 0, errors
    assert json.loads(heard)["content"] == {"n": 1}
    says.send_signal(signal.SIGTERM)
    says.communicate(timeout=600)
    replay = environment.start("-m", "earshot", "replay", "spool", "--json")
    stated, errors = replay.communicate(timeout=600)
    assert replay.returncode in (0, 1), errors  # 1 where the subscriber left just before an event came
    assert json.loads(stated)["both"] >= 1

    # Changed code is another protocol: its runs run again, and the figure shows it.
    machine = environment.folder / "thrifty" / "src" / "thrifty" / "machine.py"
    before = machine.read_text()
    line = next(one for one in before.splitlines() if "self.broadcast(" in one)
    machine.write_text(before.replace(line, f"{line}\n{line}"))
    environment.install()
    (environment.folder / "campaign.toml").write_text(f'name = "changed"\n{CAMPAIGN}')
    changed = swept(environment, "here")
    assert not changed.keys() & here.keys()
    assert points(environment, "here", "--where", "campaign=changed") != drawn
    assert points(environment, "here", "--where", "campaign=campaign") == drawn
