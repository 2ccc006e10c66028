"""The series of network sizes in `benchmarks/sizes.py`, on tiny networks."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parent.parent / "benchmarks" / "sizes.py"


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sizes_benchmark", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["sizes_benchmark"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("nodes", [10, 37, 300])
def test_a_grown_city_keeps_its_density(sizes: ModuleType, nodes: int) -> None:
    city = sizes.grown_city(nodes, 60.0, 160.0)
    assert city.node_count == nodes
    assert nodes / (city.area.width_m * city.area.height_m) == pytest.approx(150e-6)


def test_each_size_is_one_row(
    sizes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "--nodes 10,14 --protocols flooding,steam@paper --duration 30 --json"
    monkeypatch.setattr(sys, "argv", ["sizes.py", *given.split()])
    sizes.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["protocol"], row["nodes"]) for row in rows] == [
        *(("flooding", 10), ("flooding", 14)),
        *(("steam@paper", 10), ("steam@paper", 14)),
    ]
    assert all(0.0 <= row["delivery_ratio"] <= 1.0 for row in rows)
    assert [row["control_bytes_per_node_s"] == 0 for row in rows] == [True, True, False, False]


def test_the_growth_is_the_largest_over_the_least(sizes: ModuleType) -> None:
    row = sizes.measure("steam", sizes.grown_city(10, 30.0, 160.0), [0], {})
    doubled = replace(row, control_bytes_per_node_s=2 * row.control_bytes_per_node_s, cpu_us_per_transmission=1.0)
    assert "control 2.00x" in sizes.growth([replace(row, cpu_us_per_transmission=3.0), doubled])
    assert "cpu/tx 3.00x" in sizes.growth([replace(row, cpu_us_per_transmission=3.0), doubled])


def test_a_preset_that_is_not_there_is_refused(sizes: ModuleType) -> None:
    with pytest.raises(SystemExit, match="there is no preset"):
        sizes.preset("flooding@paper")
