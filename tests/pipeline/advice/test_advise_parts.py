"""The parts of advice by themselves, without Spark: who is judged again, what is regretted, which load is tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from earshot import Event
from earshot.errors import ScenarioError, TraceError
from earshot.pipeline.advice import advise as advising
from earshot.pipeline.advice.advise import (
    Budget,
    Question,
    Regret,
    _capacity,
    _finalists,
    _in_order,
    _left_out,
    _link_lifetime_s,
    _nothing_judged,
    events_per_s,
    presence_in,
    regret_of,
)
from earshot.pipeline.advice.judge import TraceJudge
from earshot.pipeline.advice.search import Measured, Round, SearchResult, Standing, TunedProtocol, standing_of
from earshot.pipeline.advice.verdict import Verdict
from earshot.pipeline.advice.windows import QUICK, TraceSlot, plan_windows
from earshot.pipeline.campaigns.capacity import ProtocolCapacity

WINDOW = TraceSlot(100.0, 150.0, 7, 40.0, "dense")


def standing(name: str, delivery: float = 0.9, cost: float = 0.1, latency_s: float = 1.0, **chosen: float) -> Standing:
    candidate = TunedProtocol(name, tuple(sorted(chosen.items())), dict(chosen))
    return standing_of(candidate, {WINDOW: Measured(delivery, cost, latency_s, 2.0)})


def verdict(chosen: Standing, *others: Standing) -> Verdict:
    """Of these, best first, the given one was chosen."""
    return Verdict(chosen.candidate, (WINDOW,), (*others, chosen))


BEGAN = 1000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time on the clock, as a list of one: it stands still."""
    now = [BEGAN]
    monkeypatch.setattr(advising, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_budget_is_spent_from_the_moment_it_is_made(clock: list[float]) -> None:
    budget = Budget(60.0, BEGAN)
    clock[0] += 25.0
    assert (budget.spent_s, budget.left_s) == (25.0, 35.0)
    clock[0] += 50.0
    assert budget.left_s == -15.0


# What the choice lacks.


def test_regret_is_what_the_best_in_hindsight_delivers_more_and_by_which_share_it_is_cheaper_and_faster() -> None:
    own, best = standing("own", 0.8, 0.3, 4.0), standing("best", 0.9, 0.2, 1.0)
    found = regret_of(verdict(own, best))
    assert found == Regret(best.candidate, pytest.approx(0.1), pytest.approx(0.5), pytest.approx(3.0))


def test_what_the_choice_does_better_than_the_best_is_no_regret() -> None:
    own, best = standing("own", 0.9, 0.1, 1.0), standing("best", 0.8, 0.2, 2.0)
    assert regret_of(verdict(own, best)) == Regret(best.candidate, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("theirs", [0.0, math.inf])
def test_a_price_of_nothing_or_without_end_is_not_exceeded(theirs: float) -> None:
    own, best = standing("own", 0.9, 0.3, 4.0), standing("best", 0.9, theirs, theirs)
    assert regret_of(verdict(own, best)) == Regret(best.candidate, 0.0, 0.0, 0.0)


def test_a_choice_that_was_judged_alone_has_no_regret_to_tell() -> None:
    assert regret_of(verdict(standing("own"))) is None
    assert regret_of(verdict(standing("own"), standing("other"))) is not None


# Who is judged on the unseen windows.


class Timed:
    """A judge that needs so many seconds for each candidate and window."""

    def __init__(self, seconds: float, failures: dict[TunedProtocol, str] | None = None) -> None:
        self.seconds = seconds
        self.failures = failures or {}
        self.overhead_s = 0.0

    def estimate_s(self, candidates: Sequence[TunedProtocol], windows: Sequence[TraceSlot]) -> float:
        return self.seconds * len(candidates) * len(windows)

    within = TraceJudge.within


def finalists(seconds: float, budget_s: float, *standings: Standing) -> list[str]:
    """As names of protocols; there are two unseen windows, and two more for a second judgement."""
    plan = plan_windows([(0.0, 200.0), (300.0, 90.0), (600.0, 40.0)], 900.0, QUICK)
    assert [len(group) for group in plan.unseen] == [2, 2]
    found = SearchResult(standings[0].candidate, (Round((WINDOW,), standings, ()),), "all its windows are used")
    return [str(one) for one in _finalists(found, Timed(seconds), plan, Budget(budget_s, BEGAN))]  # type: ignore[arg-type]


FIELD = (
    standing("a"),
    standing("b", 0.88),
    standing("a", 0.86, wait=2.0),
    standing("c", 0.80),
    standing("d", 0.7501),
    standing("e", 0.7499),
)


def test_with_time_the_rivals_each_protocols_best_within_15_points_and_the_four_best_are_judged() -> None:
    assert finalists(0.0, 100.0, *FIELD) == ["a", "b", "a wait=2", "c", "d"]


def test_the_leader_and_its_rivals_are_judged_however_little_time_there_is() -> None:
    assert finalists(1000.0, 100.0, *FIELD) == ["a", "b", "a wait=2"]


def test_time_is_kept_for_the_report_and_for_a_second_judgement_of_the_rivals() -> None:
    # Four candidates on two windows take 8 s, a second judgement of the three rivals takes 6 s, the report 25 s.
    assert finalists(1.0, 39.0, *FIELD) == ["a", "b", "a wait=2", "c"]
    assert finalists(1.0, 38.9, *FIELD) == ["a", "b", "a wait=2"]
    assert finalists(1.0, 41.0, *FIELD) == ["a", "b", "a wait=2", "c", "d"]


# Protocols.


def test_hearsay_is_tried_first_and_the_others_in_the_order_they_were_asked_for() -> None:
    assert _in_order(["steam", "cbf", "hearsay", "drip"]) == ["hearsay", "steam", "cbf", "drip"]


def searched(*rounds: Sequence[Standing]) -> SearchResult:
    every = tuple(Round((WINDOW,), tuple(one), ()) for one in rounds)
    return SearchResult(rounds[-1][0].candidate, every, "its time is spent")


def test_protocols_that_no_round_judged_are_left_out_with_the_reason() -> None:
    slow = TunedProtocol("drip", (("brokers", 9.0),))
    judge = Timed(0.0, {slow: "it failed", TunedProtocol("cbf"): "only once"})
    found = searched([standing("cbf"), standing("steam")], [standing("cbf")])
    question = Question("town", protocols=("cbf", "steam", "drip", "codd"))
    assert _left_out(question, found, judge) == {  # type: ignore[arg-type]
        "drip": "it failed",
        "codd": "there was no time for it",
    }


def test_where_nothing_could_be_judged_the_first_three_failures_are_told() -> None:
    failures = {TunedProtocol(name): f"why {name}" for name in ("a", "b", "c", "d")}
    found = _nothing_judged(Question("town"), Timed(0.0, failures))  # type: ignore[arg-type]
    assert isinstance(found, ScenarioError)
    assert str(found) == "no protocol could be judged on trace town: a: why a; b: why b; c: why c"


def test_where_no_run_failed_nobody_was_to_receive_anything() -> None:
    found = _nothing_judged(Question("town"), Timed(0.0))  # type: ignore[arg-type]
    assert isinstance(found, TraceError)
    assert str(found).startswith("nobody was to receive anything in the first window of trace town: choose a workload")


# The load.


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the search for the capacity was asked."""
    found: list[dict[str, Any]] = []

    def find(*given: Any, **named: Any) -> SimpleNamespace:
        names = ("lake", "scenario", "protocols", "seeds", "share", "most")
        found.append({**dict(zip(names, given, strict=True)), **named})
        return SimpleNamespace(protocols=[ProtocolCapacity("own", 4.0, False, ()), None])

    monkeypatch.setattr(advising, "find_capacity", find)
    return found


def capacity(
    budget_s: float, took_s: float = 2.0, delivery: float = 0.9, quick: bool = False, overhead_s: float = 0.0
) -> ProtocolCapacity | None:
    candidate = TunedProtocol("own", (("wait", 2.0),), {"wait": 2.0})
    own = standing_of(candidate, {WINDOW: Measured(delivery, 0.1, 1.0, took_s)})
    judge = Timed(0.0)
    judge.overhead_s = overhead_s
    question = Question("town", quick=quick)
    lake, scenario, said = "lake", "scenario", print
    return _capacity(
        lake, question, scenario, WINDOW, verdict(own), Budget(budget_s, BEGAN), judge, said  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_choices_capacity_is_sought_on_its_window_with_its_settings_and_its_share(
    tried: list[dict[str, Any]],
) -> None:
    assert capacity(12.5 + 100.0) == ProtocolCapacity("own", 4.0, False, ())
    (asked,) = tried
    assert asked == {
        "lake": "lake", "scenario": "scenario", "protocols": {"own": {"wait": 2.0}}, "seeds": [7],
        "share": pytest.approx(0.95 * 0.9), "most": 16.0, "say": print, "narrow": 1.5, "most_s": 50.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left_s", "took_s", "quick", "most", "most_s"),
    [
        (100.0, 2.0, False, 16.0, 50.0),  # 50 runs: at most 16 times
        (100.0, 2.0, True, 4.0, 50.0),
        (31.9, 2.0, False, 8.0, 15.95),  # below 16 runs
        (32.0, 2.0, False, 16.0, 16.0),
        (8.0, 2.0, False, 4.0, 10.0),
        (9.0, 0.1, False, 8.0, 10.0),  # a run counts as a second at least
    ],
)
def test_the_highest_load_is_a_power_of_two_that_there_is_time_for(
    tried: list[dict[str, Any]], left_s: float, took_s: float, quick: bool, most: float, most_s: float
) -> None:
    assert capacity(12.5 + left_s, took_s, quick=quick) is not None
    assert (tried[0]["most"], tried[0]["most_s"]) == (most, pytest.approx(most_s))
    assert tried[0]["narrow"] == (2.0 if quick else 1.5)


def test_without_time_for_four_runs_or_without_deliveries_there_is_no_capacity(tried: list[dict[str, Any]]) -> None:
    assert capacity(12.5 + 7.9) is None
    assert capacity(12.5 + 100.0, delivery=0.0) is None
    assert capacity(12.5 + 10.0 + 7.9, overhead_s=5.0) is None, "the stages around two more rounds take their time"
    assert tried == []
    assert capacity(12.5 + 10.0 + 8.0, overhead_s=5.0) is not None


# What the trace says.


def profile(present: Sequence[tuple[float, int]], **more: Any) -> Any:
    start, end = more.pop("start", 0.0), more.pop("end", 40.0)
    return SimpleNamespace(present_over_time=tuple(present), span_s=end - start, **more)


def test_each_moment_of_the_profile_stands_for_the_part_of_the_trace_around_it() -> None:
    found = profile([(105.0, 3), (115.0, 5), (125.0, 7), (135.0, 9)], start=100.0, end=140.0)
    assert presence_in(found, 100.0, 140.0) == [(100.0, 3.0), (110.0, 5.0), (120.0, 7.0), (130.0, 9.0)]
    assert presence_in(found, 114.0, 126.0) == [(114.0, 5.0), (120.0, 7.0)]
    assert presence_in(found, 110.0, 120.0) == [(110.0, 5.0)], "parts that only touch the window have no share in it"


def test_a_link_lasts_as_long_as_the_median_contact_or_the_way_through_the_range() -> None:
    def lasts(p50: float | None, speed_m_s: float) -> float:
        contact = None if p50 is None else SimpleNamespace(p50=p50)
        asked = []

        def at(range_m: float) -> SimpleNamespace:
            asked.append(range_m)
            return SimpleNamespace(contact_s=contact)

        found = _link_lifetime_s(SimpleNamespace(at=at, speed_m_s=SimpleNamespace(p50=speed_m_s)), 200.0)  # type: ignore[arg-type]
        assert asked == [200.0]
        return found

    assert [lasts(12.0, 4.0), lasts(None, 4.0), lasts(None, 0.0)] == [12.0, 50.0, pytest.approx(2000.0)]


def test_the_event_rate_counts_events_only_between_warm_up_and_cool_down() -> None:
    asked = []
    actions = [SimpleNamespace(what=what) for what in (Event("News", {}), "subscribe", Event("News", {}), None)]

    def workload(seed: int) -> SimpleNamespace:
        asked.append(seed)
        return SimpleNamespace(actions=actions)

    scenario: Any = SimpleNamespace(workload=workload, duration_s=60.0, warm_up_s=15.0, cool_down_s=5.0)
    assert (events_per_s(scenario), events_per_s(scenario, 3), asked) == (0.05, 0.05, [0, 3])


def test_a_question_asks_for_delivery_of_all_protocols_in_twelve_minutes_unless_told_otherwise() -> None:
    asked = []
    additions = SimpleNamespace(scenario=lambda *given: asked.append(given))
    question = replace(Question("town"), additions=additions)  # type: ignore[arg-type]
    question.scenario("lake", WINDOW)
    assert asked == [("lake", "town", 100.0, 150.0)]
    assert (question.window, question.budget_s, question.quick) == (None, 12 * 60.0, False)
