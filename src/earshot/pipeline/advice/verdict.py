"""The verdict: what the search chose, on windows that it did not see, and what follows if another does better there.

Where another candidate is clearly better on the unseen windows, these windows have something to say, and they are
used: the choice is made again from all windows so far, and a further group of unseen windows judges it. A candidate
that delivered clearly less in the search does not count as better: the unseen windows may leave out the phase in which
it fails. What is reported comes from windows that had no part in the choice. Where nothing speaks against the choice
and there is time for it, the further group judges it too: with more windows, fewer differences can be chance. There is
no Spark here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from earshot.errors import TraceError
from earshot.pipeline.advice.search import (
    Goal,
    Judge,
    Results,
    Standing,
    TunedProtocol,
    Window,
    contenders,
    ranked,
    standing_of,
)

CLEARLY = 0.10
"Of about the same delivery, a candidate whose price is lower by more than this share is clearly better."

Afforded = Callable[[Sequence[TunedProtocol], Sequence[Window], int], Sequence[TunedProtocol]]
"""Given candidates, the most needed first, those that there is time to judge on these windows: at least this many, or
none."""


@dataclass(frozen=True)
class Overturned:
    """A choice that unseen windows spoke against."""

    candidate: TunedProtocol
    by: TunedProtocol
    delivery: float
    "How much less it delivered than the best of those judged with it, as a share."
    price: float
    "The share by which its price exceeded that of the one that was better."


@dataclass(frozen=True)
class Verdict:
    """The choice, and everybody's figures on windows that had no part in it."""

    chosen: TunedProtocol
    windows: tuple[Window, ...]
    standings: tuple[Standing, ...]
    "Best first."
    overturned: tuple[Overturned, ...] = ()
    "Choices that earlier unseen windows spoke against, in order."
    fell_short: Mapping[TunedProtocol, float] = field(default_factory=dict)
    "Candidates that delivered clearly less than the choice on all windows so far, and by how much, as a share."

    @property
    def windows_words(self) -> str:
        """What the windows are called together."""
        return f"{len(self.windows)} unseen windows" if len(self.windows) > 1 else "1 unseen window"

    @property
    def own(self) -> Standing:
        """The chosen candidate's figures."""
        return next(standing for standing in self.standings if standing.candidate == self.chosen)


def judge_choice(
    finalists: Sequence[TunedProtocol],
    groups: Sequence[Sequence[Window]],
    judge: Judge,
    measured: Results,
    goal: Goal,
    affords: Afforded,
    affords_more: Callable[[Sequence[TunedProtocol], Sequence[Window]], bool] = lambda some, windows: False,  # noqa: ARG005
) -> Verdict:
    """The first of the finalists is the choice. `measured` has what the search measured, and gets no part in the
    figures; `affords` decides how many are judged again after a choice was overturned; `affords_more` whether there is
    time to judge these, the choice first, on further windows if it was not."""
    known = dict(measured)
    verdict: Verdict | None = None
    overturned: tuple[Overturned, ...] = ()
    for group in filter(None, groups):
        if verdict is not None:
            against = _against(verdict, goal)
            if against is None:
                return _on_more_windows(verdict, group, judge, goal, affords_more)
            holding = [standing.candidate for standing in _holding(verdict)]
            # Who fell short is not chosen, but judged again: the regret must not leave it out.
            again = [
                *_on_common_windows(holding, known, goal),
                *_on_common_windows(list(verdict.fell_short), known, goal),
            ]
            needed = contenders(again)
            wanted = list(dict.fromkeys([*needed, *(standing.candidate for standing in again)]))
            finalists = affords(wanted, group, len(needed))
            if not finalists:
                break
            overturned = (*overturned, against)
        results = judge(finalists, group)
        known |= results
        latest = _verdict(finalists, group, results, goal, overturned)
        if latest is None:
            break
        verdict = replace(latest, fell_short=_fell_short(latest, known, goal))
    if verdict is None:
        raise TraceError(
            "no event had an expected receiver in the windows that the search did not see: choose a workload that more "
            "nodes subscribe to (--workload news), a longer range, or a longer part of the trace"
        )
    return verdict


def _verdict(
    finalists: Sequence[TunedProtocol],
    group: Sequence[Window],
    results: Results,
    goal: Goal,
    overturned: tuple[Overturned, ...],
) -> Verdict | None:
    """From the windows on which anybody had something to deliver; None where there is none. Who fails there is out, and
    the next in order takes its place."""
    windows = tuple(window for window in group if any((who, window) in results for who in finalists))
    whole = [
        candidate for candidate in finalists if windows and all((candidate, window) in results for window in windows)
    ]
    if not whole:
        return None
    found = [standing_of(candidate, {window: results[candidate, window] for window in windows}) for candidate in whole]
    return Verdict(whole[0], windows, tuple(ranked(found, goal)), overturned)


def _on_more_windows(
    verdict: Verdict,
    group: Sequence[Window],
    judge: Judge,
    goal: Goal,
    affords_more: Callable[[Sequence[TunedProtocol], Sequence[Window]], bool],
) -> Verdict:
    """The verdict from its windows and these, where there is time to judge everybody there; else as it is."""
    others = [standing.candidate for standing in verdict.standings if standing.candidate != verdict.chosen]
    everybody = [verdict.chosen, *others]
    if not others or not affords_more(everybody, group):
        return verdict
    results = judge(everybody, group)
    known = {
        (standing.candidate, window): measured
        for standing in verdict.standings
        for window, measured in standing.by_window.items()
    }
    more = _verdict(everybody, [*verdict.windows, *group], {**known, **results}, goal, verdict.overturned)
    # The choice stands, so figures without it are none: it may have failed here.
    if more is None or more.chosen != verdict.chosen:
        return verdict
    return replace(more, fell_short=verdict.fell_short)


def _against(verdict: Verdict, goal: Goal) -> Overturned | None:
    """What speaks against the choice: somebody who delivers more, or about as much at a clearly lower price."""
    holding, own = _holding(verdict), verdict.own
    best = holding[0]
    lacks = max(standing.mean.delivery for standing in holding) - own.mean.delivery
    theirs = goal.price(best.mean)
    dearer = goal.price(own.mean) / theirs - 1.0 if theirs > 0 else 0.0
    if best is own or (lacks <= goal.tolerance and dearer <= CLEARLY):
        return None
    return Overturned(own.candidate, best.candidate, max(0.0, best.mean.delivery - own.mean.delivery), dearer)


def _holding(verdict: Verdict) -> list[Standing]:
    """Those who did not fall short, best first."""
    return [standing for standing in verdict.standings if standing.candidate not in verdict.fell_short]


def _fell_short(verdict: Verdict, known: Results, goal: Goal) -> dict[TunedProtocol, float]:
    """Who delivered less than the choice by more than the goal's tolerance, on all windows that show it."""
    ours = _deliveries(verdict.chosen, known)
    found = {}
    for standing in verdict.standings:
        pairs = [
            (ours[window], measured.delivery)
            for (candidate, window), measured in known.items()
            if candidate == standing.candidate and window in ours
        ]
        lacks = math.fsum(own - theirs for own, theirs in pairs) / len(pairs)
        if lacks > goal.tolerance:
            found[standing.candidate] = lacks
    return found


def _deliveries(candidate: TunedProtocol, known: Results) -> dict[Window, float]:
    """What the candidate delivered on each window; where it was not measured, its protocol's mean."""
    found: dict[Window, list[float]] = {}
    for (other, window), measured in known.items():
        if other.protocol == candidate.protocol:
            found.setdefault(window, []).append(measured.delivery)
    return {
        window: known[candidate, window].delivery if (candidate, window) in known else math.fsum(some) / len(some)
        for window, some in found.items()
    }


def _on_common_windows(candidates: Sequence[TunedProtocol], known: Results, goal: Goal) -> list[Standing]:
    """The candidates on all windows that all of them were measured on, best first."""
    windows = [
        window
        for window in dict.fromkeys(window for _, window in known)
        if all((candidate, window) in known for candidate in candidates)
    ]
    return ranked(
        [standing_of(candidate, {window: known[candidate, window] for window in windows}) for candidate in candidates],
        goal,
    )
