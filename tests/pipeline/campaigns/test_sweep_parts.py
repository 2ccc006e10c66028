"""Sweeps and runs without Spark: each task runs here, one after the other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import RunTooSlow, ScenarioError
from earshot.pipeline.campaigns import sweeps
from earshot.pipeline.campaigns.campaigns import Run, _seeds, campaign, changed_keys, read_campaign
from earshot.pipeline.campaigns.sweeps import _limit, _planned, _Receipts, outcomes_in, sweep
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.simulation.scenario.library import load_scenario

SHORT = load_scenario("base").with_({"duration_s": 6.0, "warm_up_s": 1.0, "cool_down_s": 1.0, "nodes.node.count": 20})


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def in_turn(_session: object, items: Sequence[Any], work: Callable[[Any], str], show: Callable[[], None]) -> None:
        for item in items:
            work(item)
            show()

    monkeypatch.setattr(sweeps, "each_in_a_task", in_turn)
    arrow = ArrowLake(tmp_path / "lake")
    return SimpleNamespace(arrow=arrow, folder=arrow.folder, session=None, check_shared=lambda: None)


def test_a_sweep_runs_what_the_lake_lacks_and_keeps_what_failed_as_a_row(lake: Any) -> None:
    runs = [Run(SHORT, "flooding", {}, 0), Run(SHORT, "flooding", {}, 1), Run(SHORT, "flooding", {}, 0)]
    shown: list[tuple[int, int, int, str]] = []
    first = sweep(lake, "c", runs[:1])
    assert [(one.run, one.status, one.error, one.campaign) for one in first] == [(runs[0].id, "done", None, "c")]
    broken = Run(SHORT, "gossip", {"probability": 7.0}, 0)
    found = sweep(lake, "d", [*runs, broken], lambda *given: shown.append(given))
    assert [(one.seed, one.status, one.campaign) for one in found] == [
        (0, "done", "c"),
        (1, "done", "d"),
        (0, "failed", "d"),
    ]
    assert shown[-1] == (2, 0, 1, "")
    failed = found[-1]
    assert failed.error == "probability: must be from 0 to 1, got 7.0"
    assert failed.traceback is not None
    assert failed.traceback.endswith(f": {failed.error}\n")
    assert (failed.took_s > 0.0, failed.processor_s is not None) == (True, True)
    assert sorted(one.run for one in outcomes_in(lake, "done")) == sorted([runs[0].id, runs[1].id])
    assert [one.run for one in outcomes_in(lake, "failed")] == [broken.id]
    for run in runs[:2]:
        assert lake.arrow.rows("log", {"kind": "join"}, run=run.id)
    assert not list(lake.folder.files("_receipts")), "receipts are removed"


def test_a_run_ends_after_its_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(sweeps, "time", SimpleNamespace(process_time=lambda: now[0]))
    assert _limit(None) is None
    check = _limit(5.0)
    assert check is not None
    now[0] = 105.0
    check(3.0)
    now[0] = 105.1
    with pytest.raises(RunTooSlow, match=r"^stopped at 3 s after 5 s of processor time$"):
        check(3.0)


def test_what_is_finished_is_committed_every_two_seconds_and_over_a_long_sweep_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(sweeps, "time", SimpleNamespace(monotonic=lambda: now[0]))
    looked: list[float] = []
    folder = SimpleNamespace(files=lambda _path: looked.append(now[0]) or [])
    receipts = _Receipts(SimpleNamespace(folder=folder), "r")  # type: ignore[arg-type]
    for moment in (1.9, 2.0, 3.9, 4.0, 100.0, 104.0, 105.2, 105.3):
        now[0] = moment
        receipts.commit_some()
    assert looked == [2.0, 4.0, 100.0, 105.3], "a twentieth of the time so far"


def test_a_run_names_its_network_range_trace_and_what_was_changed() -> None:
    far = SHORT.with_({"medium.range_m": 77.0})
    planned = _planned("c", Run(far, "gossip", {"probability": 0.6, "hop_limit": 7}, 3, SHORT))
    assert (planned.campaign, planned.scenario, planned.seed, planned.status) == ("c", "base", 3, "planned")
    assert (json.loads(planned.changed), json.loads(planned.base)) == (
        {"medium.range_m": 77.0},
        {"medium.range_m": SHORT.medium.range_m},
    )
    assert planned.variant == "gossip hop_limit=7 probability=0.6"
    assert planned.settings == '{"hop_limit": 7, "probability": 0.6}'
    assert (planned.range_m, planned.trace, planned.window, planned.assumes) == (77.0, "", "", "")
    assert (planned.duration_s, planned.warm_up_s, planned.took_s, planned.processor_s) == (6.0, 1.0, 0.0, None)
    assert Run(SHORT, "gossip").changes == ({}, {})
    assert changed_keys(SHORT, SHORT.with_({"name": "other", "description": "x"})) == ({}, {})
    routed = Run(SHORT, "siena")
    assert routed.assumes
    assert routed.range_m == SHORT.medium.range_m
    assert routed.network != Run(SHORT, "flooding").network or routed.assumes != Run(SHORT, "flooding").assumes


def test_ids_depend_on_what_decides_the_outcome_and_on_nothing_else() -> None:
    run = Run(SHORT, "gossip", {"probability": 0.6}, 3)
    assert run.point == Run(SHORT, "flooding", {}, 9).point
    assert (
        run.workload == Run(SHORT, "flooding", {}, 3).workload != Run(SHORT, "gossip", {"probability": 0.6}, 4).workload
    )
    assert run.id == Run(SHORT, "gossip", {"probability": 0.6}, 3, SHORT).id
    assert {len(run.id), len(run.point), len(run.workload)} == {16}


@pytest.mark.parametrize(("value", "seeds"), [(3, [0, 1, 2]), (1, [0]), ([4, 2], [4, 2])])
def test_seeds_are_a_number_or_a_list(value: Any, seeds: list[int]) -> None:
    assert _seeds(Path("c.toml"), value) == seeds
    for wrong in (0, -1, True, [], ["a"], 2.5, "3"):
        with pytest.raises(ScenarioError, match=r"^c\.toml: seeds must be a number of seeds"):
            _seeds(Path("c.toml"), wrong)


def test_a_campaign_file_has_five_seeds_and_the_files_name_unless_it_says_so(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('scenarios = ["base"]\nprotocols = ["flooding"]\n')
    found = read_campaign(file)
    assert (found.name, [run.seed for run in found.runs], found.metrics) == ("mine", [0, 1, 2, 3, 4], ())
    assert found.runs[0].named is not None
    file.write_text(
        'name = "other"\nscenarios = ["base"]\nprotocols = ["flooding"]\nseeds = [7]\n[set]\nduration_s = 99\n'
    )
    other = read_campaign(file)
    assert (other.name, [run.seed for run in other.runs]) == ("other", [7])
    assert other.runs[0].changes[0] == {"duration_s": 99.0}
    for text, says in (
        ('scenarios = ["base"]\nprotocols = []', "protocols must be a list of names"),
        ('scenarios = [3]\nprotocols = ["flooding"]', "scenarios must be a list of names"),
        ('scenarios = ["base"]\nprotocols = ["flooding"]\nset = 3', "set must be a table"),
        ('scenarios = ["base"]\nprotocols = ["flooding"]\n[settings]\nflooding = 3', "flooding must be a table"),
    ):
        file.write_text(text)
        with pytest.raises(ScenarioError, match=says):
            read_campaign(file)


def test_every_combination_of_lists_is_run_and_a_value_alone_counts_as_one() -> None:
    runs = campaign("c", [SHORT], {"gossip": {"probability": [0.5, 0.6], "hop_limit": 7}, "flooding": {}}, [0, 1]).runs
    assert [(run.protocol, dict(run.settings), run.seed) for run in runs] == [
        ("gossip", {"probability": 0.5, "hop_limit": 7}, 0), ("gossip", {"probability": 0.5, "hop_limit": 7}, 1),
        ("gossip", {"probability": 0.6, "hop_limit": 7}, 0), ("gossip", {"probability": 0.6, "hop_limit": 7}, 1),
        ("flooding", {}, 0), ("flooding", {}, 1),
    ]  # fmt: skip
    assert all(run.named is None for run in runs)
    assert math.isfinite(runs[0].range_m)
