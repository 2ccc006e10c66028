"""The search for a protocol and its settings: successive halving over windows of a trace.

All protocols begin on brief windows of two phases, each with its defaults and with the first guesses for its
surroundings. Those that do well go on to more and longer windows; their settings are varied one at a time, then the
changes that helped are combined and taken a step further. The search ends when the leader is separated from all
others, when it has used all its windows, or when its time is spent, and says which. On a single window only delivery
counts: where everybody delivers everything, the cheapest may be the one that fails on all other windows.

There is no Spark here. A judge measures candidates on windows; the search decides what is worth measuring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations
from typing import Any

from earshot.pipeline.campaigns.intervals import Figure, difference, figure_of, ratio
from earshot.protocols.tuning import Tunable

Window = Any
"Whatever the judge measures on; it must be hashable."


@dataclass(frozen=True)
class TunedProtocol:
    """A protocol with settings."""

    protocol: str
    chosen: tuple[tuple[str, float], ...] = ()
    "The tunable settings that differ from the defaults, by name."
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)
    "The same with the settings that follow them, as the protocol takes them."

    def __str__(self) -> str:
        return " ".join([self.protocol, *(f"{name}={value:g}" for name, value in self.chosen)])


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of a candidate amounted to."""

    delivery: float
    "Of what is reachable."
    cost: float
    "Airtime; bytes a delivery on media without a channel."
    latency_s: float
    took_s: float = 0.0


class Goal(Enum):
    """What counts most. Candidates whose delivery is within the goal's tolerance are compared by the goal's price."""

    DELIVERY = "delivery"
    LATENCY = "latency"
    AIRTIME = "airtime"

    @property
    def tolerance(self) -> float:
        """Who delivers less than the best by more than this is worse, whatever it costs."""
        return 0.01 if self is Goal.DELIVERY else 0.05

    def price(self, measured: Measured) -> float:
        """What decides between candidates of about the same delivery: less is better."""
        return measured.latency_s if self is Goal.LATENCY else measured.cost


MARGIN = 0.02
"The delivery that advice may lack against the best in hindsight."
FEWEST_JUDGED = 3
"A choice is judged beside two others at least: alone it is always the best."
ALIKE = 0.05
"Candidates of about the same delivery whose prices differ by less than this share are as good as each other."
FEWEST_WINDOWS = 3
"Fewer windows separate nobody."
FEWEST_PRICED = 2
"On fewer windows, a lower price does not make up for any delivery."
FEWEST_PROTOCOLS = 3
"At least this number of protocols have their settings varied, whatever the first windows show."
NEAR = 0.05
"A protocol whose delivery on the first windows is that close to the best stays in the search."

Results = Mapping[tuple[TunedProtocol, Window], Measured]
"What was measured; a run that failed, or had nothing to deliver, is missing."
Judge = Callable[[Sequence[TunedProtocol], Sequence[Window]], Results]


@dataclass(frozen=True)
class Standing:
    """A candidate's means over the windows it was judged on."""

    candidate: TunedProtocol
    mean: Measured
    by_window: Mapping[Window, Measured] = field(repr=False)


@dataclass(frozen=True)
class Round:
    """One round of the search."""

    windows: tuple[Window, ...]
    standings: tuple[Standing, ...]
    "Best first."
    failed: tuple[TunedProtocol, ...]
    "Candidates that could not be judged on all windows."


@dataclass(frozen=True)
class SearchResult:
    """Who leads, by which rounds, and why the search ended."""

    leader: TunedProtocol
    rounds: tuple[Round, ...]
    ended: str

    @property
    def finalists(self) -> list[TunedProtocol]:
        """Everybody of the last round, best first."""
        return [standing.candidate for standing in self.rounds[-1].standings]

    @property
    def best_standings(self) -> list[Standing]:
        """Everybody of the last round, best first, then each other protocol's best of the last round it was in."""
        found = list(self.rounds[-1].standings)
        for earlier in reversed(self.rounds[:-1]):
            for standing in earlier.standings:
                if all(standing.candidate.protocol != other.candidate.protocol for other in found):
                    found.append(standing)
        return found

    @property
    def tried(self) -> int:
        """How many candidates were judged."""
        return len({standing.candidate for search_round in self.rounds for standing in search_round.standings})


Accepts = Callable[[str, Mapping[str, Any]], bool]
"Whether a protocol takes these settings together."


class HalvingSearch:
    """Successive halving over rungs of windows, each with more or longer windows than the one before."""

    def __init__(
        self,
        tunables: Mapping[str, Sequence[Tunable]],
        rungs: Sequence[Sequence[Window]],
        judge: Judge,
        goal: Goal = Goal.DELIVERY,
        affords: Callable[[Sequence[TunedProtocol], Sequence[Window]], Sequence[TunedProtocol]] = lambda some, _: some,
        accepts: Accepts = lambda protocol, settings: True,  # noqa: ARG005
    ) -> None:
        """`tunables` by protocol, in the order in which the protocols are tried. `affords` is given candidates
        in order of promise and returns those that there is time for."""
        self.tunables = tunables
        self.rungs = rungs
        self.judge = judge
        self.goal = goal
        self.affords = affords
        self.accepts = accepts
        self.rounds: list[Round] = []
        self.bases: dict[str, dict[str, float]] = {}
        "The values around which each protocol's settings are varied."

    def run(self) -> SearchResult | None:
        """The result; None where nothing could be judged."""
        wanted = self._entrants()
        ended = "all its windows are used"
        for windows in self.rungs:
            affordable = list(self.affords(wanted, windows))
            if not affordable or (self.rounds and len(affordable) < 2 <= len(wanted)):
                ended = "its time is spent"
                break
            done = self._round(affordable, windows)
            if not done.standings:
                return self._result("no run finished") if self.rounds else None
            self.rounds.append(done)
            if len(self.rounds) > 1 and self.is_settled():
                ended = "the leader is separated from all others"
                break
            wanted = self._next()
        return self._result(ended)

    def _result(self, ended: str) -> SearchResult | None:
        if not self.rounds:
            return None
        return SearchResult(self.rounds[-1].standings[0].candidate, tuple(self.rounds), ended)

    def _entrants(self) -> list[TunedProtocol]:
        """Every protocol's first guess, then every protocol's defaults."""
        guesses = [
            self._candidate(name, {tunable.name: tunable.first for tunable in tunables})
            for name, tunables in self.tunables.items()
        ]
        defaults = [TunedProtocol(name) for name in self.tunables]
        return list(dict.fromkeys([*(candidate for candidate in guesses if candidate is not None), *defaults]))

    def _candidate(self, protocol: str, chosen: Mapping[str, float]) -> TunedProtocol | None:
        """The candidate with these values; None where the protocol refuses them together."""
        settings: dict[str, Any] = {}
        for tunable in self.tunables[protocol]:
            if tunable.name in chosen:
                settings |= tunable.settings(chosen[tunable.name])
        if not self.accepts(protocol, settings):
            return None
        return TunedProtocol(protocol, tuple(sorted(chosen.items())), settings)

    def _round(self, candidates: Sequence[TunedProtocol], windows: Sequence[Window]) -> Round:
        results = self.judge(candidates, windows)
        useful = [window for window in windows if any((candidate, window) in results for candidate in candidates)]
        whole = (
            [candidate for candidate in candidates if all((candidate, window) in results for window in useful)]
            if useful
            else []
        )
        found = [
            standing_of(candidate, {window: results[candidate, window] for window in useful}) for candidate in whole
        ]
        failed = tuple(candidate for candidate in candidates if candidate not in whole)
        return Round(tuple(useful), tuple(ranked(found, self.goal)), failed)

    # What is worth measuring next.

    def _next(self) -> list[TunedProtocol]:
        """The better half, then what their settings suggest, in order of promise."""
        order = self.rounds[-1].standings
        if len(self.rounds) == 1:
            kept = self._protocols_to_keep(order)
            self.bases = {standing.candidate.protocol: dict(standing.candidate.chosen) for standing in kept}
            new = [varied for standing in kept for varied in self._varied(standing.candidate)]
        else:
            kept = list(order[: max(2, math.ceil(len(order) / 2))])
            new = self._combined(kept[0].candidate)
        return list(dict.fromkeys([*(standing.candidate for standing in kept), *new]))

    def _protocols_to_keep(self, order: Sequence[Standing]) -> list[Standing]:
        """The best of each protocol: the better half of them, and those near the best."""
        best: dict[str, Standing] = {}
        for standing in order:
            best.setdefault(standing.candidate.protocol, standing)
        ahead = max(FEWEST_PROTOCOLS, math.ceil(len(best) / 2))
        most = max(standing.mean.delivery for standing in best.values())
        return [
            standing
            for place, standing in enumerate(best.values())
            if place < ahead or most - standing.mean.delivery <= NEAR
        ]

    def _varied(self, base: TunedProtocol) -> list[TunedProtocol]:
        """One setting at a time: the other values worth trying."""
        found = []
        for tunable in self.tunables[base.protocol]:
            for value in tunable.values():
                varied = self._candidate(base.protocol, {**dict(base.chosen), tunable.name: value})
                if varied is not None and varied != base:
                    found.append(varied)
        return found

    def _combined(self, leader: TunedProtocol) -> list[TunedProtocol]:
        """The leader's settings a step further in the direction that helped, and the best changes together."""
        seen = {standing.candidate for search_round in self.rounds for standing in search_round.standings}
        found = [*self._further(leader), *self._together(leader)]
        return [candidate for candidate in dict.fromkeys(found) if candidate not in seen]

    def _further(self, leader: TunedProtocol) -> list[TunedProtocol]:
        """The leader's values that lie at an end of what was tried, one more step beyond it."""
        found = []
        chosen = dict(leader.chosen)
        for tunable in self.tunables[leader.protocol]:
            value = chosen.get(tunable.name)
            if value is None or value == tunable.first:
                continue
            step = tunable.step if value > tunable.first else 1.0 / tunable.step
            beyond = tunable.near(value * step)
            further = self._candidate(leader.protocol, {**chosen, tunable.name: beyond})
            if further is not None:
                found.append(further)
        return found

    def _together(self, leader: TunedProtocol) -> list[TunedProtocol]:
        """The changes of two of the best candidates of the leader's protocol in one."""
        base = self.bases[leader.protocol]
        order = [
            standing.candidate
            for standing in self.rounds[-1].standings
            if standing.candidate.protocol == leader.protocol
        ]
        changed = [
            {name: value for name, value in candidate.chosen if base.get(name) != value} for candidate in order[:3]
        ]
        both = [self._candidate(leader.protocol, {**base, **b, **a}) for a, b in combinations(changed, 2)]
        return [candidate for candidate in both if candidate is not None]

    # When to stop.

    def is_settled(self) -> bool:
        """Whether the leader is separated from everybody else of the last round who is not as good as it, and its
        settings suggest nothing that was not tried."""
        leader, *others = self.rounds[-1].standings
        apart = all(
            as_good(leader, standing, self.goal) or is_separated(leader, standing, self.goal) for standing in others
        )
        return apart and not self._combined(leader.candidate)


def standing_of(candidate: TunedProtocol, by_window: Mapping[Window, Measured]) -> Standing:
    """The candidate's means over these windows."""
    some = list(by_window.values())

    def mean(values: Iterable[float]) -> float:
        return math.fsum(values) / len(some)

    return Standing(
        candidate,
        Measured(
            mean(measured.delivery for measured in some),
            mean(measured.cost for measured in some),
            mean(measured.latency_s for measured in some),
            mean(measured.took_s for measured in some),
        ),
        by_window,
    )


def ranked(standings: Iterable[Standing], goal: Goal) -> list[Standing]:
    """Best first: of those whose delivery is about that of the best, the one with the least price; then the next.
    On fewer than two windows delivery decides, and the price only between equals."""
    left = sorted(standings, key=lambda standing: str(standing.candidate))
    order: list[Standing] = []
    while left:
        most = max(standing.mean.delivery for standing in left)
        tolerance = goal.tolerance if len(left[0].by_window) >= FEWEST_PRICED else 0.0
        close = [standing for standing in left if most - standing.mean.delivery <= tolerance]
        best = min(close, key=lambda standing: (goal.price(standing.mean), -standing.mean.delivery))
        order.append(best)
        left.remove(best)
    return order


def contenders(standings: Sequence[Standing]) -> list[TunedProtocol]:
    """Whom a judgement of the first of these candidates needs, in order: the first, the second, the best of another
    protocol, and the cheapest whose delivery is nearly that of the first; at least three, if there are three."""
    first, *others = standings
    close = [standing for standing in others if standing.mean.delivery >= first.mean.delivery - MARGIN]
    rivals = [
        *others[:1],
        *[standing for standing in others if standing.candidate.protocol != first.candidate.protocol][:1],
        *sorted(close, key=lambda standing: standing.mean.cost)[:1],
    ]
    found = list(dict.fromkeys(standing.candidate for standing in [first, *rivals]))
    rest = [standing.candidate for standing in others if standing.candidate not in found]
    return [*found, *rest[: max(0, FEWEST_JUDGED - len(found))]]


def as_good(leader: Standing, other: Standing, goal: Goal) -> bool:
    """Whether it makes no practical difference which of the two is chosen."""
    apart = abs(leader.mean.delivery - other.mean.delivery)
    ours, theirs = goal.price(leader.mean), goal.price(other.mean)
    return apart <= goal.tolerance and abs(theirs - ours) <= ALIKE * max(ours, theirs)


def is_separated(leader: Standing, other: Standing, goal: Goal) -> bool:
    """Whether the windows show that the leader delivers more, or as much at a lower price (95 %, paired)."""
    if len(leader.by_window) < FEWEST_WINDOWS:
        return False

    def both(value: Callable[[Measured], float]) -> tuple[Figure, Figure]:
        ours = figure_of({n: value(measured) for n, measured in enumerate(leader.by_window.values())})
        return ours, figure_of({n: value(measured) for n, measured in enumerate(other.by_window.values())})

    delivery = difference(*both(lambda measured: measured.delivery))
    prices = both(goal.price)
    price = ratio(*prices) or difference(*prices)
    assert delivery is not None
    assert price is not None
    return delivery.low > goal.tolerance or (delivery.low > -goal.tolerance and price.high < 0.0)
