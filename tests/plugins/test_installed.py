"""The package that `earshot new protocol` writes, installed as a distribution, used as a researcher would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

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
