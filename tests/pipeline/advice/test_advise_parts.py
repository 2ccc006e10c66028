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
from earshot.pipeline.advice import judge as judging
from earshot.pipeline.advice.advise import (
    Afforded,
    Budget,
    Question,
    Regret,
    _capacity,
    _finalists,
    _in_order,
    _left_out,
    _link_lifetime_s,
    _nothing_judged,
    advise,
    events_per_s,
    presence_in,
    regret_of,
)
from earshot.pipeline.advice.judge import JudgedRun, TraceJudge
from earshot.pipeline.advice.search import Measured, Round, SearchResult, Standing, TunedProtocol, standing_of
from earshot.pipeline.advice.verdict import Verdict
from earshot.pipeline.advice.windows import QUICK, THOROUGH, Lengths, TraceSlot, plan_windows
from earshot.pipeline.campaigns.capacity import ProtocolCapacity
from earshot.pipeline.traces.trace_scenario import EmptyWindow
from earshot.protocols.tuning import Surroundings
from earshot.simulation.scenario.scenario import NodeGroup, Scenario

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


def test_a_regret_of_delivery_and_cost_alone_has_none_of_latency() -> None:
    assert Regret(standing("best").candidate, 0.1, 0.2).latency == 0.0


def test_a_choice_that_was_judged_alone_has_no_regret_to_tell() -> None:
    assert regret_of(verdict(standing("own"))) is None
    assert regret_of(verdict(standing("own"), standing("other"))) is not None


# Who is judged on the unseen windows.


class Timed:
    """A judge that needs so many seconds for each candidate and window."""

    def __init__(self, seconds: float, failures: dict[TunedProtocol, str] | None = None) -> None:
        self.seconds = seconds
        self.failures = failures or {}
        self.results: dict[tuple[TunedProtocol, TraceSlot], Measured] = {}
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


def test_a_protocol_that_delivers_exactly_15_points_less_than_the_leader_is_judged() -> None:
    """Its place is the fifth, so that it is not judged as one of the four best of the last round."""
    field = [standing(name, delivery) for name, delivery in zip("abcde", (1.0, 0.92, 0.91, 0.9, 0.85), strict=True)]
    assert finalists(0.0, 100.0, *field) == ["a", "b", "c", "d", "e"]


def test_the_leader_and_its_rivals_are_judged_however_little_time_there_is() -> None:
    assert finalists(1000.0, 100.0, *FIELD) == ["a", "b", "a wait=2"]


def test_time_is_kept_for_the_report_and_for_a_second_judgement_of_the_rivals() -> None:
    # Four candidates on two windows take 8 s, a second judgement of the three rivals takes 6 s, the report 25 s.
    assert finalists(1.0, 39.0, *FIELD) == ["a", "b", "a wait=2", "c"]
    assert finalists(1.0, 38.9, *FIELD) == ["a", "b", "a wait=2"]
    assert finalists(1.0, 41.0, *FIELD) == ["a", "b", "a wait=2", "c", "d"]


# What there is time for.


PLAN = plan_windows([(0.0, 200.0), (300.0, 90.0), (600.0, 40.0)], 900.0, QUICK)
SIX = [TunedProtocol(name) for name in "abcdef"]


def afforded(left_s: float, seconds: float = 1.0, whole_s: float = 100.0, at_first: int | None = None) -> Afforded:
    """So much is left of the budget; each candidate takes so long on each window. Somebody was measured before."""
    judge = Timed(seconds)
    judge.results = {(TunedProtocol("before"), WINDOW): Measured(0.9, 0.1, 1.0, 2.0)}
    return Afforded(judge, Budget(whole_s, BEGAN - whole_s + left_s), PLAN, at_first)  # type: ignore[arg-type]


def names(some: Sequence[TunedProtocol]) -> str:
    return "".join(one.protocol for one in some)


def test_before_the_first_run_all_are_tried_or_as_many_as_was_said() -> None:
    for at_first, expected in ((None, "abcdef"), (4, "abcd")):
        first = afforded(0.0, at_first=at_first)
        first.judge.results.clear()
        assert names(first.in_round(SIX, PLAN.rungs[0])) == expected


def test_a_round_takes_six_tenths_of_what_two_judgements_and_the_report_leave_and_the_last_round_all() -> None:
    # Two judgements of four candidates on two windows each take 16 s, the report 25 s.
    brief, last = PLAN.rungs[0], PLAN.rungs[-1]
    assert (len(brief), len(last)) == (2, 5)
    assert names(afforded(41.0 + 20.0).in_round(SIX, brief)) == "abcdef", "12 s"
    assert names(afforded(41.0 + 19.9).in_round(SIX, brief)) == "abcde"
    assert names(afforded(41.0 + 30.0).in_round(SIX, last)) == "abcdef", "30 s"
    assert names(afforded(41.0 + 29.9).in_round(SIX, last)) == "abcde"


def test_where_its_share_is_too_little_for_four_a_round_takes_all_the_time_for_up_to_four() -> None:
    brief = PLAN.rungs[0]
    assert names(afforded(41.0 + 40.0 / 3.0 + 0.01).in_round(SIX, brief)) == "abcd", "8 s is its share"
    assert names(afforded(41.0 + 13.0).in_round(SIX, brief)) == "abcd", "of 13 s, not six tenths of it"
    assert names(afforded(41.0 + 8.0).in_round(SIX, brief)) == "abcd"
    assert names(afforded(41.0 + 7.9).in_round(SIX, brief)) == "abc"
    assert names(afforded(41.0).in_round(SIX, brief)) == ""


def test_after_a_choice_was_overturned_all_are_judged_that_leave_time_for_the_report() -> None:
    assert names(afforded(25.0 + 12.0).again(SIX, PLAN.unseen[1], 3)) == "abcdef"
    assert names(afforded(25.0 + 11.9).again(SIX, PLAN.unseen[1], 3)) == "abcde"
    assert names(afforded(25.0 + 6.0).again(SIX, PLAN.unseen[1], 3)) == "abc"


def test_those_who_are_needed_are_judged_a_quarter_of_the_budget_over_time_and_fewer_than_three_not_at_all() -> None:
    second = PLAN.unseen[1]
    assert names(afforded(25.0 + 5.9).again(SIX, second, 4)) == "abcd"
    assert names(afforded(8.0 - 25.0).again(SIX, second, 4)) == "abcd", "25 s are a quarter"
    assert names(afforded(7.9 - 25.0).again(SIX, second, 4)) == "abc"
    assert names(afforded(5.9 - 25.0).again(SIX, second, 4)) == ""
    assert names(afforded(4.0 - 25.0).again(SIX, second, 2)) == "ab", "two are enough where two are needed"
    assert names(afforded(3.9 - 25.0).again(SIX, second, 2)) == ""
    assert names(afforded(8.0 - 50.0, whole_s=200.0).again(SIX, second, 4)) == "abcd"


def test_further_windows_are_judged_if_the_choices_capacity_and_the_report_still_have_their_time() -> None:
    def enough(left_s: float, *took_s: float) -> bool:
        found = afforded(left_s)
        found.judge.results |= {
            (SIX[0], window): Measured(0.9, 0.1, 1.0, seconds)
            for window, seconds in zip(PLAN.unseen[0], took_s, strict=False)
        }
        return found.more_windows(SIX[:3], PLAN.unseen[1])

    assert [enough(25.0 + 6.0), enough(25.0 + 5.9)] == [True, False]
    assert [enough(left_s, 0.5, 2.0) for left_s in (25.0 + 6.0 + 32.0, 25.0 + 6.0 + 31.9)] == [True, False], "16 runs"


class MadeUp(TraceJudge):
    """A judge without Spark: `cbf` delivers 0.9, `flooding` 0.6, `gossip` is too slow. All runs take a second."""

    def __call__(self, candidates: Sequence[TunedProtocol], windows: Sequence[TraceSlot]) -> Any:
        assert self.title == "advise-town"
        for candidate in candidates:
            if candidate.protocol == "gossip" or dict(candidate.chosen).get("retries") == 9:
                self.failures[candidate] = "too slow"
                continue
            for window in windows:
                delivery = {"cbf": 0.9, "flooding": 0.6}[candidate.protocol] - 0.01 * len(candidate.chosen)
                place = candidate, window
                self.results[place] = Measured(delivery, 0.1, 1.0, 1.0)
                self.runs[place] = SimpleNamespace(id=f"{candidate} from {window.start_s:.0f}")  # type: ignore[assignment]
        every = ((candidate, window) for candidate in candidates for window in windows)
        return {place: self.results[place] for place in every if place in self.results}


@pytest.mark.parametrize(
    ("quick", "lengths", "unseen_count"), [(True, QUICK, 4), (False, THOROUGH, 6)], ids=["quick", "thorough"]
)
def test_a_question_is_answered_with_the_best_of_the_search_on_windows_that_it_did_not_see(
    monkeypatch: pytest.MonkeyPatch,
    tried: list[dict[str, Any]],
    clock: list[float],
    quick: bool,
    lengths: Lengths,
    unseen_count: int,
) -> None:
    def made(_lake: str, _trace: str, start_s: float, end_s: float) -> SimpleNamespace:
        scenario = SimpleNamespace(start_s=start_s, node_count=40 + int(start_s > 500), span_s=end_s - start_s)
        scenario.with_ = lambda **changes: SimpleNamespace(**{**vars(scenario), **changes})
        return scenario

    given = Surroundings(200, 110.0, 900.0, 900.0, 100.0, 8.0, 1.0, 60.0, math.inf)
    presence = [(0.0, 90.0), (300.0, 200.0), (600.0, 40.0)]
    judges, asked, stated = [], [], []

    def judge(*given: Any) -> MadeUp:
        judges.append(MadeUp(*given))
        return judges[0]

    def rows_of(_lake: object, runs: list[str], wanted: dict[str, Any]) -> Any:
        asked.append((runs, set(wanted)))
        metrics = {
            "all": [{"run": run, "metric": "expected", "value": 10.0} for run in runs],
            "cause": [{"run": run, "key": "collided", "value": 5.0 if "flooding" in run else 1.0} for run in runs],
        }
        return SimpleNamespace(metrics=metrics)

    def one_point(_rows: object, runs: dict[str, JudgedRun], words: str) -> Any:
        names = sorted({run.name for run in runs.values()})
        rankings = [SimpleNamespace(words=words, rows=[SimpleNamespace(variant=name) for name in names]), None]
        return SimpleNamespace(leaderboard=SimpleNamespace(rankings=rankings))

    monkeypatch.setattr(advising, "_surroundings", lambda *_: (presence, 900.0, given))
    monkeypatch.setattr(advising, "TraceJudge", judge)
    monkeypatch.setattr(advising, "Budget", lambda seconds: Budget(seconds, BEGAN))
    monkeypatch.setattr(advising, "lake_rows", rows_of)
    monkeypatch.setattr(advising, "as_one_point", one_point)
    monkeypatch.setattr(advising, "_accepts", lambda *_: True)
    monkeypatch.setattr(judging, "parallelism", lambda _session: 2)
    lake: Any = SimpleNamespace(session=None, folder=SimpleNamespace(root="lake"))
    additions: Any = SimpleNamespace(scenario=made)
    question = Question("town", None, additions, protocols=("flooding", "cbf", "gossip"), budget_s=600.0, quick=quick)

    def say(words: str) -> None:
        stated.append(words)
        clock[0] += 10.0

    advice = advise(lake, question, say)
    assert advice.surroundings.fewest_nodes == 40, "of the window with the fewest nodes"
    assert judges[0].most_per_s == pytest.approx(600.0 / 12.0 / lengths.long_s), "a long window's run"
    assert advice.plan.lengths == lengths
    first_round = [standing.candidate for standing in advice.search.rounds[0].standings]
    assert (TunedProtocol("cbf") in first_round) is not quick, "a quick search begins with the first guesses alone"
    assert advice.chosen.protocol == "cbf"
    assert quick or not advice.chosen.chosen, "the defaults"
    assert advice.standings[0].candidate == advice.chosen
    assert advice.names[advice.chosen] == "cbf"
    assert (advice.row.variant, advice.ranking.words) == ("cbf", f"{unseen_count} unseen windows")  # type: ignore[attr-defined]
    assert {one.protocol for one in advice.names} == {"cbf", "flooding"}
    assert {run.window for run in advice.runs.values()} == set(range(unseen_count))
    unseen = [window for group in advice.plan.unseen for window in group]
    own = {f"{advice.chosen} from {window.start_s:.0f}": JudgedRun(n, "cbf") for n, window in enumerate(unseen)}
    assert own.items() <= advice.runs.items()
    assert asked == [(list(advice.runs), {"all", "type", "cause"})]
    assert advice.losses == {"collided": pytest.approx(0.1)}, "the choice's alone"
    assert advice.left_out == {"gossip": "too slow"}
    assert advice.failed == {}, "those of protocols that are left out are not reported twice"
    assert advice.regret is not None
    assert (advice.regret.best, advice.regret.delivery) == (advice.chosen, 0.0)
    assert advice.capacity == ProtocolCapacity("own", 4.0, False, ())
    densest = max(unseen, key=lambda window: window.present)
    assert (tried[0]["scenario"].start_s, tried[0]["seeds"]) == (densest.start_s, [densest.seed])
    assert (tried[0]["scenario"].warm_up_s, tried[0]["scenario"].cool_down_s) == (
        lengths.warm_up_s,
        lengths.cool_down_s,
    )
    assert stated == ["trying protocols", "judging on windows that the search did not see"]
    assert advice.took_s == 20.0


@pytest.mark.parametrize(
    ("window", "empty", "played"),
    [((100.0, 400.0), False, [(220.0, 280.0)]), ((100.0, 140.0), False, [(100.0, 140.0)]),
     ((100.0, 400.0), True, [(220.0, 280.0), (100.0, 400.0)])],
    ids=["a minute in the middle", "a short trace", "nobody in the middle"],
)  # fmt: skip
def test_what_protocols_learn_comes_from_the_profile_and_a_minute_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, window: tuple[float, float], empty: bool, played: list[tuple[float, float]]
) -> None:
    asked: list[tuple[float, float]] = []

    def made(_lake: str, _trace: str, start_s: float, end_s: float) -> Any:
        asked.append((start_s, end_s))
        if empty and len(asked) == 1:
            raise EmptyWindow("trace town has no node there")
        return SimpleNamespace(area=SimpleNamespace(width_m=900.0, height_m=700.0))

    def profiled(_lake: object, trace: str, ranges: Sequence[float], say: Any) -> Any:
        assert (trace, 160.0 in ranges, list(ranges)) == ("town", True, sorted({*ranges}))
        say("contacts")
        at = {160.0: SimpleNamespace(mean_neighbours=8.0, contact_s=SimpleNamespace(p50=20.0))}
        return profile(
            [(window[0] + 5.0, 3)], start=window[0], end=window[1], nodes=300, mean_present=80.0,
            speed_m_s=SimpleNamespace(p50=9.0), at=at.__getitem__,
        )  # fmt: skip

    begins = []

    def window_of(root: str, trace: str, about: Any, start_s: float, end_s: float) -> Any:
        begins.append((root, trace, about.start, start_s, end_s))
        return SimpleNamespace(start_s=window[0], end_s=window[1])

    monkeypatch.setattr(advising, "trace_about", lambda _root, _trace: SimpleNamespace(start=100.0))
    monkeypatch.setattr(advising, "relative_window", lambda _about, given: given or (None, window[1]))
    monkeypatch.setattr(advising, "window_of", window_of)
    monkeypatch.setattr(advising, "radio_range_m", lambda _scenario: 160.0)
    monkeypatch.setattr(advising, "profile_trace", profiled)
    monkeypatch.setattr(advising, "events_per_s", lambda _scenario: 0.5)
    radio = SimpleNamespace(airtime_s=lambda size: size / 1000.0)
    monkeypatch.setattr(advising, "radio_of", {"wifi": radio, "none": None}.__getitem__)
    stated: list[str] = []

    def ask(given: tuple[float, float] | None, radio: str) -> Any:
        asked.clear()
        additions: Any = SimpleNamespace(scenario=made, radio=radio)
        lake: Any = SimpleNamespace(folder=SimpleNamespace(root="lake"))
        return advising._surroundings(lake, Question("town", given, additions), stated.append)

    presence, end_s, around = ask(None, "wifi")
    assert (asked, end_s, stated) == (played, window[1], ["profile: contacts"])
    assert presence == presence_in(profiled(None, "town", [160.0], stated.append), *window)
    assert around == Surroundings(300, 80.0, 900.0, 700.0, 160.0, 8.0, 9.0, 20.0, 0.5, 0.2), "a packet of 200 bytes"
    assert ask((30.0, 60.0), "none")[2].packet_airtime_s == 0.0
    assert begins == [("lake", "town", 100.0, 100.0, window[1]), ("lake", "town", 100.0, 30.0, 60.0)]


def test_only_settings_that_a_protocol_takes_are_tried() -> None:
    scenario = Scenario(duration_s=10.0, nodes={"n": NodeGroup(count=3)})
    assert advising._accepts(scenario, "cbf", {})
    assert not advising._accepts(scenario, "cbf", {"nonsense": 1.0})


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


def test_where_nothing_could_be_judged_the_first_three_failures_are_reported() -> None:
    failures = {TunedProtocol(name): f"why {name}" for name in ("a", "b", "c", "d")}
    found = _nothing_judged(Question("town"), Timed(0.0, failures))  # type: ignore[arg-type]
    assert isinstance(found, ScenarioError)
    assert str(found) == "no protocol could be judged on trace town: a: why a; b: why b; c: why c"


def test_where_no_run_failed_nobody_was_to_receive_anything() -> None:
    found = _nothing_judged(Question("town"), Timed(0.0))  # type: ignore[arg-type]
    assert isinstance(found, TraceError)
    assert str(found).startswith(
        "no event had an expected receiver in the first window of trace town: choose a workload"
    )


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
    lake, scenario, stated = "lake", "scenario", print
    return _capacity(
        lake, question, scenario, WINDOW, verdict(own), Budget(budget_s, BEGAN), judge, stated  # type: ignore[arg-type]
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


def test_a_question_asks_for_delivery_of_all_protocols_in_twelve_minutes_unless_set_otherwise() -> None:
    asked = []
    additions = SimpleNamespace(scenario=lambda *given: asked.append(given))
    question = replace(Question("town"), additions=additions)  # type: ignore[arg-type]
    question.scenario("lake", WINDOW)
    assert asked == [("lake", "town", 100.0, 150.0)]
    assert (question.window, question.budget_s, question.quick) == (None, 12 * 60.0, False)
    assert advising.QUICK_BUDGET_S == 4 * 60.0
