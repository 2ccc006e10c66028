"""The judge: runs candidates on windows of a trace, each run in one Spark task, and measures them against the oracle
and the ceiling.

Runs and metrics are kept in the lake like any others, so a repeated question goes on from what is there.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from earshot.pipeline.advice.search import Measured, TunedProtocol
from earshot.pipeline.advice.windows import TraceSlot
from earshot.pipeline.campaigns.campaigns import Campaign, Run
from earshot.pipeline.campaigns.flow import LakeRows, Say, run_campaign, whole_run_figures
from earshot.pipeline.campaigns.leaderboard import COST, DELIVERY
from earshot.pipeline.campaigns.sweeps import Outcome, Progress, outcomes_in
from earshot.pipeline.spark.session import parallelism
from earshot.simulation.scenario.scenario import Scenario

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

FEWEST_S = 1.0
"Less processor time says nothing about how busy the machine is."
USED = ("delivery_of_reachable", "ceiling", "delivery_ratio", "airtime_mean", "bytes_per_delivery", "latency_p95_s")
TOO_SLOW = "RunTooSlow"
SLACK = 1.15
"Runs take this much longer than the mean of those before."


@dataclass(frozen=True, slots=True)
class Effort:
    """What was simulated to find an answer."""

    runs: int
    simulated_s: float
    "Seconds of the trace, over all runs."
    took_s: float
    "By the clock, over all runs."
    processor_s: float

    @property
    def slowdown(self) -> float:
        """How many times their processor time the runs took: about 1 on a quiet machine."""
        return max(1.0, self.took_s / self.processor_s) if self.processor_s >= FEWEST_S else 1.0


@dataclass
class TraceJudge:
    """Measures candidates on windows, remembers what it measured, and how long runs take."""

    lake: Lake
    title: str
    scenario: Callable[[TraceSlot], Scenario]
    most_per_s: float = math.inf
    "The processor time that a run may take for each second of its window."
    say: Say = lambda words: None  # noqa: ARG005
    progress: Progress | None = None
    results: dict[tuple[TunedProtocol, TraceSlot], Measured] = field(default_factory=dict)
    runs: dict[tuple[TunedProtocol, TraceSlot], Run] = field(default_factory=dict)
    "What was run and finished."
    failures: dict[TunedProtocol, str] = field(default_factory=dict)
    "Why the last run of a candidate failed, by candidate."
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    "By run, failed ones too."
    overhead_s: float = 5.0
    "What the stages around the simulations took in the last round."

    def __call__(
        self, candidates: Sequence[TunedProtocol], windows: Sequence[TraceSlot]
    ) -> Mapping[tuple[TunedProtocol, TraceSlot], Measured]:
        began = time.monotonic()
        most_s = self.most_per_s * max(window.duration_s for window in windows)
        scenarios = {window: self.scenario(window) for window in windows}
        asked = {
            (candidate, window): Run(scenarios[window], candidate.protocol, candidate.settings, window.seed)
            for candidate in candidates
            for window in windows
        }
        hopeless = self._known_too_slow([run.id for run in asked.values()], most_s)
        wanted = [run for run in asked.values() if run.id not in hopeless]
        outcomes = run_campaign(self.lake, Campaign(self.title, wanted), self.say, self.progress, most_s)
        by_run = {outcome.run: outcome for outcome in [*outcomes, *hopeless.values()]}
        self.outcomes |= by_run
        figures = self._figures([run.id for run in wanted if by_run[run.id].status == "done"])
        for place, run in asked.items():
            outcome = by_run[run.id]
            if outcome.status != "done":
                self.failures[place[0]] = _reason(outcome)
            elif (measured := _measured(figures.get(run.id, {}), outcome.took_s)) is not None:
                self.results[place] = measured
                self.runs[place] = run
        simulated_s = math.fsum(outcome.took_s for outcome in outcomes) / parallelism(self.lake.session)
        self.overhead_s = max(2.0, time.monotonic() - began - simulated_s)
        return {place: self.results[place] for place in asked if place in self.results}

    @property
    def effort(self) -> Effort:
        """What was simulated so far."""
        some = self.outcomes.values()
        timed = [outcome for outcome in some if outcome.processor_s is not None]
        return Effort(
            len(some),
            math.fsum(outcome.duration_s for outcome in some if outcome.status == "done"),
            math.fsum(outcome.took_s for outcome in timed),
            math.fsum(outcome.processor_s or 0.0 for outcome in timed),
        )

    def estimate_s(self, candidates: Sequence[TunedProtocol], windows: Sequence[TraceSlot]) -> float:
        """How long it would take to measure these, from what runs took so far; what is measured takes no time."""
        spent: dict[str, list[float]] = defaultdict(list)
        for (candidate, window), measured in self.results.items():
            spent[candidate.protocol].append(measured.took_s / window.duration_s)
        usual = [rate for rates in spent.values() for rate in rates] or [0.5]
        runs_s = [
            window.duration_s * _mean(spent.get(candidate.protocol, usual))
            for candidate in candidates
            for window in windows
            if (candidate, window) not in self.results
        ]
        cores = parallelism(self.lake.session)
        return max([math.fsum(runs_s) / cores, *runs_s]) * SLACK + self.overhead_s if runs_s else 0.0

    def within(
        self, candidates: Sequence[TunedProtocol], windows: Sequence[TraceSlot], seconds: float
    ) -> Sequence[TunedProtocol]:
        """The first candidates, as many as can be measured on these windows in this time."""
        count = len(candidates)
        while count and self.estimate_s(candidates[:count], windows) > seconds:
            count -= 1
        return candidates[:count]

    def _known_too_slow(self, runs: Sequence[str], most_s: float) -> dict[str, Outcome]:
        """The runs that were stopped before after as much processor time as they would get now."""
        asked = {*runs}
        kept = outcomes_in(self.lake, "failed")
        stopped = [outcome for outcome in kept if outcome.run in asked and (outcome.error or "").startswith(TOO_SLOW)]
        return {outcome.run: outcome for outcome in stopped if (outcome.processor_s or outcome.took_s) >= most_s}

    def _figures(self, runs: Sequence[str]) -> dict[str, dict[str, float]]:
        return whole_run_figures(self.lake, runs, USED)


def _measured(figures: Mapping[str, float], took_s: float) -> Measured | None:
    """None where nothing was expected of anybody, or nothing of it was reachable."""
    if "delivery_of_reachable" not in figures and "ceiling" in figures:
        return None
    delivery = next((figures[name] for name in DELIVERY if name in figures), None)
    if delivery is None:
        return None
    cost = next((figures[name] for name in COST if name in figures), 0.0)
    return Measured(delivery, cost, figures.get("latency_p95_s", math.inf), took_s)


def _reason(outcome: Outcome) -> str:
    if (outcome.error or "").startswith(TOO_SLOW):
        return f"a run takes more than {outcome.processor_s or outcome.took_s:.0f} s of processor time here"
    return outcome.error or "it failed"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run on an unseen window: which window, and what the candidate is called beside the others."""

    window: int
    name: str


def as_one_point(rows: LakeRows, runs: Mapping[str, JudgedRun], words: str) -> LakeRows:
    """The rows as if the windows of these runs were seeds of one point, so that figures are means over windows, with
    the candidates' short names. `words` name all the windows."""
    same = {"point": words, "window": words, "changed": "{}", "base": "{}"}
    of_windows = [
        {**row, **same, "seed": runs[row["run"]].window, "variant": runs[row["run"]].name} for row in rows.runs
    ]
    return replace(rows, runs=of_windows)


def short_names(candidates: Sequence[TunedProtocol]) -> dict[TunedProtocol, str]:
    """The protocol's name; a number behind that of its second candidate."""
    found: dict[TunedProtocol, str] = {}
    for candidate in candidates:
        earlier = sum(other.protocol == candidate.protocol for other in found)
        found[candidate] = candidate.protocol if not earlier else f"{candidate.protocol} ({earlier + 1})"
    return found
