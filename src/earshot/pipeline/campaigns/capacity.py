"""Capacity: the highest multiple of the event rate at which enough of the reachable deliveries arrive.

At light load every flood looks good; protocols differ in how much they carry. For each protocol the rate is doubled
until too little arrives (or halved, where the base rate is too much already), then the gap between the last rate that
was carried and the first that was not is divided until it is narrow. All protocols' next probes run as one campaign,
so that every core is busy; runs are kept in the lake like any others, and a repeated search goes on from what is
there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from earshot.errors import ScenarioError
from earshot.pipeline.campaigns.campaigns import Campaign, Run
from earshot.pipeline.campaigns.flow import Say, run_campaign, whole_run_figures
from earshot.pipeline.spark.session import parallelism
from earshot.protocols.catalogue import build_settings, protocol
from earshot.simulation.scenario.scenario import Scenario

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

NARROW = 1.1
"The search ends when the lowest rate that was not carried is at most this many times the highest that was."
LEAST = 1.0 / 16.0
"A protocol that carries no more than this share of the scenario's rate has no capacity."
MEASURED = ("events", "delivery_of_reachable", "delivery_ratio", "airtime_mean", "airtime_busiest")


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What a protocol did at one multiple of the event rate; means over seeds."""

    multiple: float
    events_per_s: float
    delivery_of_reachable: float
    delivery_ratio: float
    airtime_mean: float | None
    "The share of time in which a node found the channel busy; None on media without a channel."
    airtime_busiest: float | None
    seeds: int


@dataclass(frozen=True, slots=True)
class ProtocolCapacity:
    """One protocol's capacity, and its curve of delivery against load."""

    protocol: str
    capacity: float | None
    "The highest multiple that was carried; None where not even the least was."
    exceeds: bool
    "It carried the highest multiple that was tried: the capacity is that or more."
    points: tuple[LoadPoint, ...]
    "In order of the multiple."
    error: str | None = None
    "Why the search ended early: a run failed."

    def never_words(self, share: float) -> str:
        """Why there is no capacity: what arrived at the base rate, and at the load where most did. Empty where there
        is one, or where the search ended early."""
        if self.capacity is not None or self.error is not None or not self.points:
            return ""
        base = max(self.points, key=lambda point: point.multiple)
        best = max(self.points, key=lambda point: (point.delivery_of_reachable, point.multiple))
        words = f"{self.protocol} never reaches {100 * share:g} %: at {_rate(base)} {_arrives(base)} of the reachable"
        if best is not base:
            return f"{words} arrives, at {_rate(best)} {_arrives(best)}, and no more at any load that was tried"
        return f"{words} arrives" + (", and no more at lower loads" if len(self.points) > 1 else "")

    @property
    def at_capacity(self) -> LoadPoint | None:
        """The point at the capacity."""
        return next((point for point in self.points if point.multiple == self.capacity), None)


def _rate(point: LoadPoint) -> str:
    return "the base rate" if point.multiple == 1.0 else f"{point.multiple:.3g} times the base rate"


def _arrives(point: LoadPoint) -> str:
    return f"{100 * point.delivery_of_reachable:.1f} %"


@dataclass(frozen=True, slots=True)
class CapacityComparison:
    """The capacities of several protocols on one scenario, the highest first."""

    scenario: str
    share: float
    "What share of the reachable deliveries must arrive."
    seeds: int
    most: float
    protocols: tuple[ProtocolCapacity, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass
class CapacitySearch:
    """The search for one protocol's capacity: it asks for multiples and learns what share arrived."""

    share: float
    most: float
    narrow: float = NARROW
    arrived: dict[float, float] = field(default_factory=dict)
    "The share of the reachable that arrived, by multiple."
    empty: set[float] = field(default_factory=set)
    "Multiples at which nothing was to be delivered: they say nothing, and lower ones would not either."

    @property
    def carried(self) -> float | None:
        """The highest multiple below which none failed; None where there is none."""
        failed = self.failed
        good = [one for one, share in self.arrived.items() if share >= self.share and (failed is None or one < failed)]
        return max(good, default=None)

    @property
    def failed(self) -> float | None:
        """The lowest multiple that was not carried; None where there is none."""
        return min((one for one, share in self.arrived.items() if share < self.share), default=None)

    def wanted(self, count: int = 1) -> list[float]:
        """Up to `count` multiples to try next, of six digits; none where the search has ended."""
        least = max(self.empty, default=0.0)
        wanted = {float(f"{multiple:.6g}") for multiple in self._wanted(count)} - self.arrived.keys()
        return sorted(multiple for multiple in wanted if multiple > least)

    def _wanted(self, count: int) -> list[float]:
        carried, failed = self.carried, self.failed
        if carried is None and failed is None:
            return [min(1.0, self.most)]
        if failed is None:
            assert carried is not None
            return [min(carried * 2.0**step, self.most) for step in range(1, count + 1)]
        if carried is None:
            return [one for step in range(1, count + 1) if (one := failed / 2.0**step) >= LEAST]
        if failed <= carried * self.narrow:
            return []
        return [carried * (failed / carried) ** (step / (count + 1)) for step in range(1, count + 1)]


def find_capacity(
    lake: Lake,
    scenario: Scenario,
    protocols: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int] = range(2),
    share: float = 0.95,
    most: float = 64.0,
    named: Scenario | None = None,
    say: Say | None = None,
    narrow: float = NARROW,
    most_s: float | None = None,
) -> CapacityComparison:
    """Every protocol's capacity on this scenario. `named` is the scenario as its name stands for it, where keys
    were changed. `say` is called with what each round tries, and how far it is. `narrow` is how close the search comes,
    `most_s` the processor time that a run may take: a load that needs more ends the search."""
    _check(protocols)
    searches = {name: CapacitySearch(share, most, narrow) for name in protocols}
    points: dict[str, dict[float, LoadPoint]] = {name: {} for name in protocols}
    errors: dict[str, str] = {}
    cores = parallelism(lake.session)
    while True:
        open_ones = [name for name in protocols if name not in errors and searches[name].wanted()]
        if not open_ones:
            break
        count = max(1, cores // (len(open_ones) * len(seeds)))
        probes = {name: searches[name].wanted(count) for name in open_ones}
        runs = {
            (name, one): [_run(scenario, one, name, protocols[name], seed, named or scenario) for seed in seeds]
            for name, some in probes.items()
            for one in some
        }
        for (name, multiple), found in _probed(lake, scenario, runs, say, most_s).items():
            if found is None:
                searches[name].empty.add(multiple)
            elif isinstance(found, str):
                errors[name] = found
            else:
                points[name][multiple] = found
                searches[name].arrived[multiple] = found.delivery_of_reachable
    rows = [
        ProtocolCapacity(
            name,
            searches[name].carried,
            searches[name].failed is None and name not in errors,
            tuple(points[name][one] for one in sorted(points[name])),
            errors.get(name),
        )
        for name in protocols
    ]
    rows.sort(key=lambda row: (-(row.capacity or 0.0), -_delivered(row), row.protocol))
    return CapacityComparison(scenario.name, share, len(seeds), most, tuple(rows))


def _delivered(row: ProtocolCapacity) -> float:
    return row.points[0].delivery_of_reachable if row.points else 0.0


def _check(protocols: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse what no run could be made of, before the first one."""
    for name, settings in protocols.items():
        build_settings(protocol(name).Settings, settings)


Runs = Mapping[tuple[str, float], Sequence[Run]]
"The runs of a round, one for each seed, by protocol and multiple."


def _run(
    scenario: Scenario, multiple: float, name: str, settings: Mapping[str, Any], seed: int, named: Scenario
) -> Run:
    loaded = scenario if multiple == 1.0 else scenario.with_(event_rate=scenario.event_rate * multiple)
    return Run(loaded, name, settings, seed, named)


def _probed(
    lake: Lake, scenario: Scenario, runs: Runs, say: Say | None, most_s: float | None
) -> dict[tuple[str, float], LoadPoint | str | None]:
    """One campaign of all runs; for each probe what was measured, or the error of a run that failed; None where the
    load is so low that nothing was to be delivered."""
    words = _in_words(runs)
    everything = [run for some in runs.values() for run in some]

    def stage(name: str) -> None:
        if say is not None:
            say(f"{words}: {name}")

    def count(done: int, left: int, failed: int, slow: str) -> None:
        stage(f"{done} of {done + left + failed} runs done" + (f"; {slow}" if slow else ""))

    outcomes = run_campaign(lake, Campaign(f"capacity-{scenario.name}", everything), stage, count, most_s)
    failures = {outcome.run: str(outcome.error) for outcome in outcomes if outcome.status == "failed"}
    figures = whole_run_figures(lake, [run.id for run in everything if run.id not in failures], MEASURED)
    found: dict[tuple[str, float], LoadPoint | str | None] = {}
    for probe, some in runs.items():
        error = next((failures[run.id] for run in some if run.id in failures), None)
        found[probe] = error or _point(scenario, probe[1], [figures.get(run.id, {}) for run in some])
    if any(point is None and multiple >= 1.0 for (_, multiple), point in found.items()):
        raise ScenarioError(
            f"{scenario.name}: no delivery is both expected and reachable, so no load can be judged; "
            "let nodes within reach subscribe to what is published"
        )
    return found


def _in_words(runs: Runs) -> str:
    names, multiples = sorted({name for name, _ in runs}), sorted({multiple for _, multiple in runs})
    who = ", ".join(names) if len(names) < 4 else f"{len(names)} protocols"
    loads = f"{multiples[0]:.3g}x" + (f" to {multiples[-1]:.3g}x" if len(multiples) > 1 else "")
    return f"{who} at {loads}"


def _point(scenario: Scenario, multiple: float, figures: Sequence[Mapping[str, float]]) -> LoadPoint | None:
    """The means over the runs; None where no run had anything to deliver."""

    def mean(metric: str) -> float | None:
        values = [one[metric] for one in figures if metric in one]
        return math.fsum(values) / len(values) if values else None

    delivered, ratio = mean("delivery_of_reachable"), mean("delivery_ratio")
    if delivered is None or ratio is None:
        return None
    publishing_s = scenario.duration_s - scenario.warm_up_s - scenario.cool_down_s
    return LoadPoint(
        multiple,
        (mean("events") or 0.0) / publishing_s,
        delivered,
        ratio,
        mean("airtime_mean"),
        mean("airtime_busiest"),
        len(figures),
    )
