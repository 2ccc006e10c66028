"""From a trace to a recommendation: profile, candidates, search, and the verdict on windows the search did not see."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from earshot.errors import ScenarioError, SettingsError, TraceError
from earshot.pipeline.advice.judge import Effort, JudgedRun, TraceJudge, as_one_point, short_names
from earshot.pipeline.advice.search import (
    FEWEST_JUDGED,
    Goal,
    HalvingSearch,
    SearchResult,
    Standing,
    TunedProtocol,
    contenders,
)
from earshot.pipeline.advice.verdict import Verdict, judge_choice
from earshot.pipeline.advice.windows import QUICK, THOROUGH, Lengths, TraceSlot, WindowPlan, plan_windows
from earshot.pipeline.campaigns.capacity import ProtocolCapacity, find_capacity
from earshot.pipeline.campaigns.flow import LakeRows, Say, lake_rows
from earshot.pipeline.campaigns.leaderboard import WHOLE_AND_BY_TYPE, BoardRow, Ranking
from earshot.pipeline.campaigns.sweeps import Progress
from earshot.pipeline.oracle.reachable import radio_range_m
from earshot.pipeline.traces.trace_profile import RANGES_M, Profile, profile_trace
from earshot.pipeline.traces.trace_scenario import EmptyWindow, TraceAdditions, relative_window, window_of
from earshot.protocols.catalogue import PROTOCOLS, protocol
from earshot.protocols.tuning import Surroundings
from earshot.simulation.engine.run import settings_in
from earshot.simulation.media.radios import radio_of
from earshot.simulation.scenario.scenario import Scenario
from earshot.traces.lake_tables import trace_about

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

QUICK_BUDGET_S, BUDGET_S = 240.0, 720.0
"The time for everything after the profile."
FIRST = ("hearsay",)
"These are tried before the others, so that they are tried even if time is short."
PACKET_BYTES = 200
"The size of an event's packet, about."
SAMPLE_S = 30.0
"The event rate is that of this many seconds around the middle of the trace, on either side."
RESERVE_S = 25.0
"Time kept for the report and other work at the end."
FINALISTS = 4
"How many of the last round are judged on the unseen windows, beside each protocol's best."
OVERTIME = 0.25
"The last judgement may exceed the budget by this share of it, where it could not compare the choice with any other."
CAPACITY_RUNS = 16.0
"Further windows are judged only if the time of this many of the choice's runs is left to find its capacity."
SLOWEST = 1.0 / 12.0
"A protocol whose run on a long window takes more than this share of the budget of processor time is left out."
SHARE = 0.6
"A round that is not the last takes at most this share of the search's time that is left."
WORTH = 0.15
"A protocol whose delivery was further below the leader's is not worth judging again."
KEEPS = 0.95
"A load is held while this share of what is delivered at the given rate is still delivered."


@dataclass(frozen=True)
class Question:
    """What is asked."""

    trace: str
    "The name of a trace in the lake."
    window: tuple[float, float] | None = None
    "Only this part of it, in seconds since the trace's start."
    additions: TraceAdditions = TraceAdditions()
    goal: Goal = Goal.DELIVERY
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    budget_s: float = BUDGET_S
    quick: bool = False

    def scenario(self, lake: str, window: TraceSlot) -> Scenario:
        """The scenario that plays this part of the trace back."""
        return self.additions.scenario(lake, self.trace, window.start_s, window.end_s)


@dataclass(frozen=True)
class Regret:
    """How much less the chosen candidate gave, on the unseen windows, than the best in hindsight."""

    best: TunedProtocol
    delivery: float
    "Points of delivery, as a share; 0 where the chosen one delivers more."
    cost: float
    "The share by which its airtime (or bytes a delivery) exceeds the best one's; 0 where it does not."
    latency: float = 0.0
    "The same of its latency."


@dataclass(frozen=True)
class Advice:
    """The answer, as facts. `advice_text` puts it into words."""

    question: Question
    surroundings: Surroundings
    plan: WindowPlan
    search: SearchResult
    verdict: Verdict
    "What was chosen, and who was judged on which unseen windows."
    ranking: Ranking
    "The same with all figures: means over windows, with their intervals."
    regret: Regret | None
    "None where nobody else was judged on the unseen windows."
    losses: Mapping[str, float]
    "The chosen candidate's lost deliveries by cause, as shares of all that were expected."
    capacity: ProtocolCapacity | None
    left_out: Mapping[str, str]
    "Protocols that could not be judged, each with the reason."
    failed: Mapping[TunedProtocol, str]
    "Candidates of the other protocols that had a run which failed, each with the reason. They count nowhere after it."
    names: Mapping[TunedProtocol, str]
    "What each candidate that was judged on the unseen windows is called there."
    runs: Mapping[str, JudgedRun]
    "The runs on the unseen windows."
    effort: Effort
    took_s: float
    "By the clock, without the profile."

    @property
    def chosen(self) -> TunedProtocol:
        """What to use."""
        return self.verdict.chosen

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Who was judged on the unseen windows, best first."""
        return self.verdict.standings

    @property
    def row(self) -> BoardRow:
        """The chosen candidate's figures on the unseen windows."""
        return self.row_of(self.chosen)

    def row_of(self, candidate: TunedProtocol) -> BoardRow:
        """A candidate's figures on the unseen windows."""
        return next(row for row in self.ranking.rows if row.variant == self.names[candidate])


@dataclass
class Budget:
    """How much time there is, and what must be left at the end."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self.began

    @property
    def left_s(self) -> float:
        return self.seconds - self.spent_s


@dataclass(frozen=True)
class Afforded:
    """What there is time for, from what runs took so far."""

    judge: TraceJudge
    budget: Budget
    plan: WindowPlan
    at_first: int | None = None
    "Before any run took its time, at most this many are tried; None: all."

    def in_round(self, some: Sequence[TunedProtocol], windows: Sequence[TraceSlot]) -> Sequence[TunedProtocol]:
        """Those of a round of the search: at most a share of the time is for it, unless that is too little for four."""
        if not self.judge.results:
            return some[: self.at_first]
        # There must be time left for two judgements of the leader and its strongest rivals.
        unseen_s = [self.judge.estimate_s(some[:FINALISTS], group) for group in self.plan.unseen]
        left_s = self.budget.left_s - RESERVE_S - math.fsum(unseen_s)
        share_s = left_s if windows == self.plan.rungs[-1] else SHARE * left_s
        within = self.judge.within(some, windows, share_s)
        return within if len(within) >= FINALISTS else self.judge.within(some[:FINALISTS], windows, left_s)

    def again(
        self, some: Sequence[TunedProtocol], windows: Sequence[TraceSlot], fewest: int
    ) -> Sequence[TunedProtocol]:
        """Those of the judgement after a choice was overturned; none where a choice could be compared with too few."""
        within = self.judge.within(some, windows, self.budget.left_s - RESERVE_S)
        if len(within) < fewest:
            overtime_s = OVERTIME * self.budget.seconds
            within = self.judge.within(some[:fewest], windows, self.budget.left_s + overtime_s)
        return within if len(within) >= min(fewest, FEWEST_JUDGED) else ()

    def more_windows(self, some: Sequence[TunedProtocol], windows: Sequence[TraceSlot]) -> bool:
        """Whether these can be judged on further windows, and the capacity of the first still be found."""
        known = [(some[0], window) for window in self.plan.unseen[0] if (some[0], window) in self.judge.results]
        capacity_s = CAPACITY_RUNS * max((self.judge.results[place].took_s for place in known), default=0.0)
        return self.judge.estimate_s(some, windows) <= self.budget.left_s - RESERVE_S - capacity_s


def advise(lake: Lake, question: Question, say: Say | None = None, progress: Progress | None = None) -> Advice:
    """The answer to the question. Runs are kept in the lake: the same question goes on from what is there."""
    say = say or (lambda _: None)
    presence, end_s, surroundings = _surroundings(lake, question, say)
    budget = Budget(question.budget_s)
    plan = plan_windows(presence, end_s, QUICK if question.quick else THOROUGH, surroundings.events_per_s)
    scenario = Scenarios(lake.folder.root, question, plan.lengths)
    plan = plan.where(scenario.has_nodes)
    most_per_s = question.budget_s * SLOWEST / plan.lengths.long_s
    judge = TraceJudge(lake, f"advise-{question.trace}", scenario, most_per_s, say, progress)
    smallest = min(scenario.made, key=lambda made: made.node_count)
    # Settings that fit the window with the fewest nodes fit all of them.
    surroundings = replace(surroundings, fewest_nodes=smallest.node_count)
    tunables = {name: protocol(name).tuning(surroundings) for name in _in_order(question.protocols)}
    afforded = Afforded(judge, budget, plan, len(tunables) if question.quick else None)
    say("trying protocols")
    search = HalvingSearch(
        tunables,
        plan.rungs,
        judge,
        question.goal,
        afforded.in_round,
        lambda name, given: _accepts(smallest, name, given),
    )
    found = search.run()
    if found is None:
        raise _nothing_judged(question, judge)
    say("judging on windows that the search did not see")
    finalists = _finalists(found, judge, plan, budget)
    verdict = judge_choice(
        finalists, plan.unseen, judge, dict(judge.results), question.goal, afforded.again, afforded.more_windows
    )
    chosen, standings = verdict.chosen, verdict.standings
    names = short_names([chosen, *(standing.candidate for standing in standings if standing.candidate != chosen)])
    runs = {
        judge.runs[standing.candidate, window].id: JudgedRun(number, names[standing.candidate])
        for number, window in enumerate(verdict.windows)
        for standing in standings
    }
    rows = lake_rows(lake, list(runs), {**WHOLE_AND_BY_TYPE, "cause": ("lost",)})
    ranking = as_one_point(rows, runs, verdict.windows_words).leaderboard.rankings[0]
    densest = max(verdict.windows, key=lambda slot: slot.present)
    capacity = _capacity(lake, question, scenario(densest), densest, verdict, budget, judge, say)
    left_out = _left_out(question, found, judge)
    return Advice(
        question,
        surroundings,
        plan,
        found,
        verdict,
        ranking,
        regret_of(verdict),
        losses_by_cause(rows, {judge.runs[chosen, window].id for window in verdict.windows}),
        capacity,
        left_out,
        {candidate: reason for candidate, reason in judge.failures.items() if candidate.protocol not in left_out},
        names,
        runs,
        judge.effort,
        budget.spent_s,
    )


def _surroundings(lake: Lake, question: Question, say: Say) -> tuple[list[tuple[float, float]], float, Surroundings]:
    """Who is there over the trace, or the chosen part of it, its end, and what protocols learn about it."""
    root = lake.folder.root
    about = trace_about(root, question.trace)
    start_s, end_s = relative_window(about, question.window)
    window = window_of(root, question.trace, about, about.start if start_s is None else start_s, end_s)
    middle = (window.start_s + window.end_s) / 2.0
    sample = TraceSlot(max(window.start_s, middle - SAMPLE_S), min(window.end_s, middle + SAMPLE_S))
    try:
        scenario = question.scenario(root, sample)
    except EmptyWindow:
        scenario = question.scenario(root, TraceSlot(window.start_s, window.end_s))
    radio = radio_of(question.additions.radio)
    range_m = radio_range_m(scenario)
    profile = profile_trace(lake, question.trace, sorted({*RANGES_M, range_m}), lambda words: say(f"profile: {words}"))
    return (
        presence_in(profile, window.start_s, window.end_s),
        window.end_s,
        Surroundings(
            nodes=profile.nodes,
            present=profile.mean_present,
            width_m=scenario.area.width_m,
            height_m=scenario.area.height_m,
            range_m=range_m,
            mean_neighbours=profile.at(range_m).mean_neighbours,
            median_speed_m_s=profile.speed_m_s.p50,
            link_lifetime_s=_link_lifetime_s(profile, range_m),
            events_per_s=events_per_s(scenario),
            packet_airtime_s=radio.airtime_s(PACKET_BYTES) if radio else 0.0,
        ),
    )


def presence_in(profile: Profile, start_s: float, end_s: float) -> list[tuple[float, float]]:
    """How many nodes are there in each part of a window: the profile looks at the middle of each part."""
    moments = profile.present_over_time
    lasts_s = profile.span_s / len(moments)
    parts = [(time - lasts_s / 2.0, float(count)) for time, count in moments]
    return [(max(time, start_s), count) for time, count in parts if start_s < time + lasts_s and time < end_s]


def _link_lifetime_s(profile: Profile, range_m: float) -> float:
    """How long a contact lasts; where the trace has none, the time to cross the range."""
    contact_s = profile.at(range_m).contact_s
    return contact_s.p50 if contact_s is not None else range_m / max(profile.speed_m_s.p50, 0.1)


class Scenarios:
    """The scenario of each window; made once."""

    def __init__(self, lake: str, question: Question, lengths: Lengths) -> None:
        self.lake = lake
        self.question = question
        self.lengths = lengths
        self._made: dict[tuple[float, float], Scenario] = {}

    def __call__(self, window: TraceSlot) -> Scenario:
        place = window.start_s, window.end_s
        if place not in self._made:
            made = self.question.scenario(self.lake, window)
            self._made[place] = made.with_(
                warm_up_s=self.lengths.warm_up_of(window), cool_down_s=self.lengths.cool_down_of(window)
            )
        return self._made[place]

    def has_nodes(self, window: TraceSlot) -> bool:
        """Whether the trace has anybody in this window; its scenario is made."""
        try:
            self(window)
        except EmptyWindow:
            return False
        return True

    @property
    def made(self) -> list[Scenario]:
        """All that were made so far."""
        return list(self._made.values())


def _in_order(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: (name not in FIRST, list(names).index(name)))


def _accepts(scenario: Scenario, name: str, given: Mapping[str, Any]) -> bool:
    try:
        settings_in(scenario, protocol(name), given)
    except SettingsError:
        return False
    return True


def _nothing_judged(question: Question, judge: TraceJudge) -> Exception:
    if judge.failures:
        some = "; ".join(f"{candidate}: {reason}" for candidate, reason in list(judge.failures.items())[:3])
        return ScenarioError(f"no protocol could be judged on trace {question.trace}: {some}")
    return TraceError(
        f"no event had an expected receiver in the first window of trace {question.trace}: choose a workload that more "
        "nodes subscribe to (--workload news), a longer range, or another window"
    )


def _finalists(found: SearchResult, judge: TraceJudge, plan: WindowPlan, budget: Budget) -> list[TunedProtocol]:
    """The leader and its strongest rivals in any case; as far as there is time, each other protocol's best that is
    worth it, and the best of the last round."""
    best = found.best_standings
    needed = contenders(best)
    by_protocol: dict[str, Standing] = {}
    for standing in best:
        by_protocol.setdefault(standing.candidate.protocol, standing)
    most = best[0].mean.delivery
    others = [standing.candidate for standing in by_protocol.values() if standing.mean.delivery >= most - WORTH]
    wanted = list(dict.fromkeys([*needed, *others, *found.finalists[:FINALISTS]]))
    second_s = judge.estimate_s(needed, plan.unseen[1])
    afforded = judge.within(wanted, plan.unseen[0], budget.left_s - RESERVE_S - second_s)
    return wanted[: max(len(needed), len(afforded))]


def regret_of(verdict: Verdict) -> Regret | None:
    """What the choice lacks against the best in hindsight; None where nobody else was judged."""
    best, own = verdict.standings[0], verdict.own
    if len(verdict.standings) < 2:
        return None
    return Regret(
        best.candidate,
        max(0.0, best.mean.delivery - own.mean.delivery),
        _excess(own.mean.cost, best.mean.cost),
        _excess(own.mean.latency_s, best.mean.latency_s),
    )


def _excess(ours: float, theirs: float) -> float:
    """The share by which a price exceeds another; 0 where it does not, or the other is none."""
    return max(0.0, ours / theirs - 1.0) if 0.0 < theirs < math.inf else 0.0


def losses_by_cause(rows: LakeRows, runs: set[str]) -> dict[str, float]:
    """By cause, the share of the expected deliveries that was lost: the mean of the runs, as all figures of the advice
    are. The most frequent cause comes first."""
    expected = {
        row["run"]: row["value"]
        for row in rows.metrics["all"]
        if row["metric"] == "expected" and row["run"] in runs and row["value"] > 0
    }
    lost: dict[str, float] = defaultdict(float)
    for row in rows.metrics["cause"]:
        if row["run"] in expected:
            lost[row["key"]] += row["value"] / expected[row["run"]] / len(expected)
    return dict(sorted(lost.items(), key=lambda item: -item[1]))


def _capacity(
    lake: Lake,
    question: Question,
    scenario: Scenario,
    window: TraceSlot,
    verdict: Verdict,
    budget: Budget,
    judge: TraceJudge,
    say: Say,
) -> ProtocolCapacity | None:
    """How many times the event rate the chosen candidate holds on this window, the densest unseen one: where few
    nodes are, chance decides. None where there is no time left to find out."""
    chosen, measured = verdict.chosen, verdict.own.by_window[window]
    left_s = budget.left_s - RESERVE_S / 2.0 - 2.0 * judge.overhead_s
    if measured.delivery <= 0.0 or left_s < 4.0 * measured.took_s:
        return None
    most = min(4.0 if question.quick else 16.0, 2.0 ** math.floor(math.log2(left_s / max(measured.took_s, 1.0))))
    found = find_capacity(
        lake,
        scenario,
        {chosen.protocol: chosen.settings},
        [window.seed],
        KEEPS * measured.delivery,
        most,
        say=say,
        narrow=2.0 if question.quick else 1.5,
        most_s=max(10.0, left_s / 2.0),
    )
    return found.protocols[0]


def _left_out(question: Question, found: SearchResult, judge: TraceJudge) -> dict[str, str]:
    judged = {standing.candidate.protocol for search_round in found.rounds for standing in search_round.standings}
    missing = [name for name in question.protocols if name not in judged]
    reasons = {candidate.protocol: reason for candidate, reason in judge.failures.items()}
    return {name: reasons.get(name, "there was no time for it") for name in missing}


def events_per_s(scenario: Scenario, seed: int = 0) -> float:
    """How many events a second the scenario publishes, with this seed."""
    from earshot.events import Event

    events = sum(isinstance(action.what, Event) for action in scenario.workload(seed).actions)
    return events / (scenario.duration_s - scenario.warm_up_s - scenario.cool_down_s)
