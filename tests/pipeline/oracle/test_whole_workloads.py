"""Workloads that one task holds: which those are, and that what tasks found becomes part of the lake."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot import Event, Position
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.oracle import whole_workloads
from earshot.pipeline.oracle.reachable import ContactNetwork
from earshot.pipeline.oracle.whole_workloads import ask_whole, fits_one_task, reach_whole
from earshot.pipeline.oracle.workloads import event_row


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lake with one workload, whose tasks run here: a publishes what b, beside it, and c, far away, want."""
    arrow = ArrowLake(tmp_path / "lake")
    event = Event("Siren", {"speed": 18}, id="a-0", source="a", time=5.0, position=Position(0, 0))
    arrow.write_rows("events", [event_row("w", event)], workload="w")
    wants = {"filter": "Siren: true", "region": None, "start": 0.0, "end": None}
    arrow.write_rows("subscriptions", [wants | {"node": n, "subscription": f"{n}/1"} for n in "bc"], workload="w")
    places = (("a", 0.0), ("b", 10.0), ("c", 900.0))
    positions = [
        {"node": node, "time": time, "x_m": x_m, "y_m": 0.0} for node, x_m in places for time in (0.0, 9.0)
    ]  # fmt: skip
    arrow.write_rows("positions", positions, trace="w")
    monkeypatch.setattr(whole_workloads, "each_in_a_task", lambda _, items, work: [work(item) for item in items])
    return SimpleNamespace(arrow=arrow, folder=arrow.folder, session=None, check_shared=lambda: None)


def test_what_tasks_found_is_in_the_lake(lake: Any) -> None:
    ask_whole(lake, ["w"])
    assert sorted(row["node"] for row in lake.arrow.read("expected", workload="w").to_pylist()) == ["b", "c"]
    reach_whole(lake, {"w": ContactNetwork(range_m=100.0)}, has_sessions=False)
    found = lake.arrow.read("reachable", workload="w").to_pylist()
    assert sorted((row["node"], row["reach"], row["range_m"]) for row in found) == [
        ("b", "at once", 100.0), ("c", "no", 100.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("candidates", "positions", "fits"), [(2, 6, True), (1, 6, False), (2, 5, False), (3, 7, True)]
)
def test_a_workload_fits_one_task_up_to_its_bounds(
    lake: Any, monkeypatch: pytest.MonkeyPatch, candidates: int, positions: int, fits: bool
) -> None:
    monkeypatch.setattr(whole_workloads, "MOST_CANDIDATES", candidates)
    monkeypatch.setattr(whole_workloads, "MOST_POSITIONS", positions)
    assert fits_one_task(lake, "w") is fits
    assert fits_one_task(lake, "w", "other trace") is (candidates >= 2), "whose positions are none"
