"""How the judge estimates time, counts effort and names runs, without Spark."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.pipeline.advice import judge as judging
from earshot.pipeline.advice.judge import Effort, JudgedRun, TraceJudge, _reason, as_one_point, short_names
from earshot.pipeline.advice.search import Measured, TunedProtocol
from earshot.pipeline.advice.windows import TraceSlot
from earshot.pipeline.campaigns.flow import LakeRows
from earshot.pipeline.campaigns.sweeps import Outcome

RELAY, FLOOD = TunedProtocol("relay"), TunedProtocol("flood")
SLOW_RELAY = TunedProtocol("relay", (("wait", 2.0),))
SHORT, LONG = TraceSlot(0.0, 10.0), TraceSlot(0.0, 40.0)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> TraceJudge:
    """On two cores; the stages around the runs take five seconds."""
    monkeypatch.setattr(judging, "parallelism", lambda _session: 2)
    return TraceJudge(SimpleNamespace(session=None), "a title", lambda slot: slot)  # type: ignore[arg-type,return-value]


def took(seconds: float) -> Measured:
    return Measured(0.9, 0.1, 1.0, seconds)


def test_before_any_run_a_second_of_the_trace_is_expected_to_take_half_a_second(judge: TraceJudge) -> None:
    assert judge.estimate_s([RELAY], [SHORT]) == pytest.approx(5.0 * 1.15 + 5.0)
    assert judge.estimate_s([], [SHORT]) == judge.estimate_s([RELAY], []) == 0.0


def test_runs_share_the_cores_but_take_at_least_as_long_as_the_longest(judge: TraceJudge) -> None:
    assert judge.estimate_s([RELAY, FLOOD], [SHORT, SHORT]) == pytest.approx(4 * 5.0 / 2 * 1.15 + 5.0)
    assert judge.estimate_s([RELAY], [SHORT, LONG]) == pytest.approx(20.0 * 1.15 + 5.0)


def test_a_protocol_takes_what_its_runs_took_another_what_all_took_and_what_is_known_nothing(
    judge: TraceJudge,
) -> None:
    judge.results = {(RELAY, SHORT): took(1.0), (SLOW_RELAY, SHORT): took(3.0)}
    assert judge.estimate_s([RELAY], [SHORT]) == 0.0
    assert judge.estimate_s([RELAY], [LONG]) == pytest.approx(40.0 * 0.2 * 1.15 + 5.0)
    judge.results[FLOOD, SHORT] = took(8.0)
    assert judge.estimate_s([FLOOD], [LONG]) == pytest.approx(40.0 * 0.8 * 1.15 + 5.0)
    assert judge.estimate_s([TunedProtocol("other")], [LONG]) == pytest.approx(40.0 * 0.4 * 1.15 + 5.0)


def test_as_many_candidates_are_within_a_time_as_fit_exactly(judge: TraceJudge) -> None:
    three = [RELAY, FLOOD, SLOW_RELAY]
    two_s = judge.estimate_s(three[:2], [SHORT])
    assert judge.estimate_s(three, [SHORT]) > two_s
    assert judge.within(three, [SHORT], two_s) == three[:2]
    assert judge.within(three, [SHORT], math.inf) == three
    assert judge.within(three, [SHORT], 1.0) == []


@pytest.mark.parametrize(
    ("took_s", "processor_s", "slowdown"), [(3.0, 1.0, 3.0), (3.0, 0.99, 1.0), (3.0, 6.0, 1.0), (0.0, 0.0, 1.0)]
)
def test_a_slowdown_is_reported_by_a_second_of_work_and_never_below_one(
    took_s: float, processor_s: float, slowdown: float
) -> None:
    assert Effort(1, 10.0, took_s, processor_s).slowdown == slowdown


def outcome(run: str, status: str, **more: Any) -> Outcome:
    return SimpleNamespace(run=run, status=status, **more)  # type: ignore[return-value]


def test_effort_counts_all_runs_the_trace_of_those_that_finished_and_the_time_of_those_that_were_timed(
    judge: TraceJudge,
) -> None:
    judge.outcomes = {
        "a": outcome("a", "done", duration_s=10.0, took_s=2.0, processor_s=1.5),
        "b": outcome("b", "failed", duration_s=20.0, took_s=4.0, processor_s=3.0),
        "c": outcome("c", "done", duration_s=40.0, took_s=8.0, processor_s=None),
    }
    assert judge.effort == Effort(3, 50.0, 6.0, 4.5)


def test_runs_that_were_stopped_after_as_much_time_are_not_tried_again(
    judge: TraceJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "RunTooSlow: it takes too long"
    kept = [
        outcome("a", "failed", error=slow, took_s=9.0, processor_s=5.0),
        outcome("b", "failed", error=slow, took_s=9.0, processor_s=4.9),
        outcome("c", "failed", error=slow, took_s=5.0, processor_s=None),
        outcome("d", "failed", error="KeyError", took_s=9.0, processor_s=9.0),
        outcome("e", "failed", error=None, took_s=9.0, processor_s=9.0),
        outcome("not asked for", "failed", error=slow, took_s=9.0, processor_s=9.0),
    ]
    monkeypatch.setattr(judging, "outcomes_in", lambda _lake, status: kept if status == "failed" else [])
    assert sorted(judge._known_too_slow(["a", "b", "c", "d", "e"], 5.0)) == ["a", "c"]


@pytest.mark.parametrize(
    ("error", "processor_s", "words"),
    [
        ("RunTooSlow: 12 s", 7.4, "a run takes more than 7 s of processor time here"),
        ("RunTooSlow: 12 s", None, "a run takes more than 12 s of processor time here"),
        ("KeyError: x", 7.4, "KeyError: x"),
        (None, 7.4, "it failed"),
    ],
)
def test_why_a_run_failed(error: str | None, processor_s: float | None, words: str) -> None:
    assert _reason(outcome("a", "failed", error=error, took_s=12.0, processor_s=processor_s)) == words


class Swept:
    """A campaign in which every run takes four seconds by the clock, two at a time; those of `flood` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, list[str], float]] = []
        self.figures_of: list[str] = []
        self.now = 100.0
        self.around_s = 7.0
        "What the stages around the runs take."
        monkeypatch.setattr(judging, "Run", self.run)
        monkeypatch.setattr(judging, "Campaign", lambda title, runs: SimpleNamespace(title=title, runs=runs))
        monkeypatch.setattr(judging, "run_campaign", self.campaign)
        monkeypatch.setattr(judging, "whole_run_figures", self.figures)
        monkeypatch.setattr(judging, "time", SimpleNamespace(monotonic=lambda: self.now))
        stopped = outcome("relay 10 2.0", "failed", error="RunTooSlow: 90 s", took_s=90.0, processor_s=90.0)
        monkeypatch.setattr(judging, "outcomes_in", lambda _lake, _status: [stopped])

    def run(self, scenario: TraceSlot, protocol: str, settings: dict[str, float], seed: int) -> SimpleNamespace:
        assert seed == scenario.seed
        wait = settings.get("wait", "")
        return SimpleNamespace(id=f"{protocol} {scenario.duration_s:.0f} {wait}".strip())

    def campaign(self, lake: object, campaign: Any, say: object, progress: object, most_s: float) -> list[Outcome]:
        del lake, say, progress
        self.asked.append((campaign.title, [run.id for run in campaign.runs], most_s))
        self.now += 4.0 * len(campaign.runs) / 2 + self.around_s
        return [
            outcome(
                run.id,
                "failed" if "flood" in run.id else "done",
                took_s=4.0,
                error="KeyError: x",
                processor_s=3.0,
            )
            for run in campaign.runs
        ]

    def figures(self, _lake: object, runs: list[str], names: tuple[str, ...]) -> dict[str, dict[str, float]]:
        assert {"delivery_of_reachable", "airtime_mean", "latency_p95_s"} <= set(names)
        self.figures_of = list(runs)
        figures = {"delivery_of_reachable": 0.8, "airtime_mean": 0.1, "latency_p95_s": 1.0}
        return {run: figures if run.endswith("10") else {"ceiling": 0.0} for run in runs}


def test_candidates_are_measured_by_runs_that_finish_and_those_that_fail_are_remembered(
    judge: TraceJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = Swept(monkeypatch)
    judge.most_per_s = 2.0
    slow = TunedProtocol("relay", (("wait", 2.0),), {"wait": 2.0})
    found = judge([RELAY, FLOOD, slow], [SHORT, LONG])
    runs = ["relay 10", "relay 40", "flood 10", "flood 40", "relay 40 2.0"]
    assert swept.asked == [("a title", runs, 2.0 * 40.0)], "and not what was stopped before after as long"
    assert swept.figures_of == ["relay 10", "relay 40", "relay 40 2.0"]
    assert found == judge.results == {(RELAY, SHORT): Measured(0.8, 0.1, 1.0, 4.0)}, "nothing is reachable in the other"
    assert {place: run.id for place, run in judge.runs.items()} == {(RELAY, SHORT): "relay 10"}
    assert judge.failures == {FLOOD: "KeyError: x", slow: "a run takes more than 90 s of processor time here"}
    assert sorted(judge.outcomes) == sorted([*runs, "relay 10 2.0"])
    assert judge.overhead_s == 7.0
    swept.around_s = 1.0
    assert judge([FLOOD], [SHORT]) == {}, "only what was asked for"
    assert judge.overhead_s == 2.0, "at least"


def test_the_second_candidate_of_a_protocol_gets_a_number() -> None:
    third = TunedProtocol("relay", (("wait", 3.0),))
    assert short_names([RELAY, FLOOD, SLOW_RELAY, third]) == {
        RELAY: "relay", FLOOD: "flood", SLOW_RELAY: "relay (2)", third: "relay (3)",
    }  # fmt: skip


def test_windows_of_runs_become_seeds_of_one_point() -> None:
    row = {"run": "r1", "seed": 7, "variant": "relay wait=2", "point": "p", "window": "0 to 9 s", "changed": '{"a": 1}'}
    rows = LakeRows([{**row, "base": '{"a": 0}', "scenario": "town"}], {})
    assert as_one_point(rows, {"r1": JudgedRun(3, "relay (2)")}, "2 unseen windows").runs == [
        {
            "run": "r1", "seed": 3, "variant": "relay (2)", "point": "2 unseen windows", "window": "2 unseen windows",
            "changed": "{}", "base": "{}", "scenario": "town",
        }
    ]  # fmt: skip
