"""The package that `earshot new protocol` writes, installed as a distribution, used as a researcher would."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from installing import wheel_of

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs a command in an environment that has the distribution, and in a folder that has nothing."""
    folder = tmp_path_factory.mktemp("installed")
    environment = {**os.environ, "PYTHONPATH": str(folder / "site"), "PYTHONSAFEPATH": "1"}

    def run(*words: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
        )
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done

    run("-m", "earshot", "new", "protocol", "frugal-test")
    wheel = wheel_of(folder / "frugal-test")
    run("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder / "site"), str(wheel))
    return run


def test_it_is_found_and_listed_with_its_settings(command: Command) -> None:
    (found,) = json.loads(command("-m", "earshot", "plugins", "--json").stdout)
    assert found == {
        "kind": "protocols", "name": "frugal-test", "reference": "frugal_test.machine:FrugalTest",
        "origin": "frugal-test 0.1.0",
    }  # fmt: skip
    listed = json.loads(command("-m", "earshot", "protocols", "--json").stdout)
    (ours,) = [one for one in listed if one["name"] == "frugal-test"]
    assert [one["name"] for one in ours["settings"]] == ["hop_limit", "memory"]
    assert "at most this many hops" in ours["settings"][0]["doc"]


def test_its_own_tests_pass(command: Command) -> None:
    assert "7 passed" in command("-m", "pytest", "-p", "no:cacheprovider", "frugal-test/tests").stdout


def test_it_simulates_by_its_name(command: Command) -> None:
    asked = ("-m", "earshot", "simulate", "frugal-test/scenario.toml", "-p", "frugal-test", "--json")
    summary = json.loads(command(*asked, "--set", "duration_s=40").stdout)
    assert summary["protocol"] == "frugal-test"
    assert summary["delivery_ratio"] > 0.5


def test_a_name_that_is_taken_or_cannot_be_is_refused(command: Command) -> None:
    for name, says in (("flooding", "built-in"), ("Frugal", "small letters"), ("frugal-test", "exists already")):
        assert says in command("-m", "earshot", "new", "protocol", name, ok=False).stderr


OFFERED = {
    "earshot.media": "fog = labkit.lab:Fog",
    "earshot.mobility": "orbit = labkit.lab:Orbit",
    "earshot.workload": "temperatures = labkit.lab:Temperatures",
    "earshot.reception": "tunnel = labkit.tunnel:Tunnel",
    "earshot.traces": "diary = labkit.diary:DIARY",
    "earshot.metrics": "stale = labkit.stale:STALE",
    "earshot.figures": "dots = labkit.stale:DOTS",
}
TOWN = """
base = "base"
duration_s = 40
nodes.node = { count = 20, mobility = { kind = "orbit", radius_m = 200 } }
publish.news.events = { kind = "temperatures", mean = 25 }
subscribe.news.filters = { kind = "written", texts = ["Temperature: celsius > 20"] }
"""
NETWORKS = {
    "fog": 'medium = { kind = "fog", range_m = 180, loss = 0.2 }',
    "tunnel": 'medium = { kind = "contention", range_m = 200, reception = { kind = "tunnel", loss_db = 20 } }',
}


def test_the_examples_of_the_guide_work_as_an_installed_distribution(command: Command, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
    package = tmp_path / "labkit"
    (package / "src" / "labkit").mkdir(parents=True)
    (package / "src" / "labkit" / "__init__.py").touch()
    for name, text in re.findall(r"^cat > (lab|tunnel|diary|stale)\.py <<'END'\n(.*?)^END$", guide, re.M | re.S):
        (package / "src" / "labkit" / f"{name}.py").write_text(text)
    groups = [
        '[project.entry-points."{}"]\n{} = "{}"\n'.format(group, *one.split(" = ")) for group, one in OFFERED.items()
    ]
    (package / "pyproject.toml").write_text('[project]\nname = "labkit"\nversion = "0.1.0"\n' + "".join(groups))
    site = json.loads(command("-c", "import json, sys; print(json.dumps(sys.path))").stdout)
    target = next(path for path in site if path.endswith("/site"))
    command("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, str(wheel_of(package)))
    listed = json.loads(command("-m", "earshot", "plugins", "--json").stdout)
    assert {one["name"] for one in listed if one["origin"] == "labkit 0.1.0"} == {
        name.split()[0] for name in OFFERED.values()
    }
    for name, medium in NETWORKS.items():
        scenario = tmp_path / f"{name}.toml"
        scenario.write_text(TOWN + medium)
        summary = json.loads(command("-m", "earshot", "simulate", str(scenario), "-p", "frugal-test", "--json").stdout)
        assert summary["delivered"] > 0
