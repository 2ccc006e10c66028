"""Windows of a trace: which parts the search may see, and which it is judged on.

The trace is cut into slots. Those that the search sees, and those that it does not, are both spread over the
trace's phases: slots in order of how many nodes are present, and the slot where that changes most. A trace that is
too short for two slots is one slot; what the search does not see are then other seeds, and the answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from earshot.errors import TraceError


@dataclass(frozen=True, slots=True)
class TraceSlot:
    """A part of a trace, by the trace's own times, with the seed of its workload."""

    start_s: float
    end_s: float
    seed: int = 0
    present: float = 0.0
    "How many nodes are present at a time, on average."
    phase: str = ""
    "`dense`, `sparse`, `rush` or `usual`."

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    def __str__(self) -> str:
        seed = f", seed {self.seed}" if self.seed > 1 else ""
        return f"{self.start_s:g} to {self.end_s:g} s ({self.phase}, {self.present:.0f} nodes{seed})"


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long windows last, warm-up and cool-down included, and how many there are."""

    short_s: float
    long_s: float
    seen: int
    unseen: int
    warm_up_s: float
    cool_down_s: float


QUICK = Lengths(short_s=32.0, long_s=50.0, seen=2, unseen=2, warm_up_s=12.0, cool_down_s=3.0)
THOROUGH = Lengths(short_s=40.0, long_s=75.0, seen=4, unseen=3, warm_up_s=15.0, cool_down_s=5.0)
LEAST_S = 10.0
"A shorter window holds no workload worth judging."
RUSH = 0.3
"A slot in which the number of nodes changes by this share of the most there are is a rush."


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """What the search sees, rung by rung, and what it is judged on."""

    rungs: tuple[tuple[TraceSlot, ...], ...]
    unseen: tuple[TraceSlot, ...]
    lengths: Lengths
    "As they fit the trace."
    whole: bool
    "Whether seen and unseen windows are different parts of the trace; else they differ by their seeds only."

    @property
    def unseen_words(self) -> str:
        """What the unseen windows are called together."""
        return f"{len(self.unseen)} unseen windows" if len(self.unseen) > 1 else "1 unseen window"


def plan_windows(presence: Sequence[tuple[float, float]], end_s: float, lengths: Lengths) -> WindowPlan:
    """`presence`: from each time on, in order, how many nodes are there; the last lasts until `end_s`."""
    if not presence or end_s - presence[0][0] < LEAST_S:
        lasts = end_s - presence[0][0] if presence else 0.0
        raise TraceError(
            f"the trace, or the chosen window of it, lasts {lasts:g} s; advice needs at least {LEAST_S:g} s of "
            "positions: choose a longer window, or record for longer"
        )
    start_s = presence[0][0]
    fitted = _fitted(lengths, end_s - start_s)
    count = max(1, int((end_s - start_s) / fitted.long_s + 1e-9))
    gap_s = (end_s - start_s - count * fitted.long_s) / max(1, count - 1)
    starts = [start_s + number * (fitted.long_s + gap_s) for number in range(count)]
    slots = _with_phases([(one, one + fitted.long_s) for one in starts], presence, end_s)
    if count < 2:
        seen = [slots[0]]
        unseen = [_reseeded(slots[0], 101 + number) for number in range(lengths.unseen)]
        return WindowPlan(_rungs(seen, fitted), tuple(unseen), fitted, whole=False)
    chosen = _spread(slots, min(count, lengths.seen + lengths.unseen))
    # Alternately, so that both sides have dense and sparse slots; at least one each.
    unseen = chosen[1::2][: lengths.unseen]
    seen = [one for one in chosen if one not in unseen][: lengths.seen]
    usual = _median([slot.present for slot in seen])
    seen.sort(key=lambda one: abs(one.present - usual))
    return WindowPlan(
        _rungs(seen, fitted), tuple(_reseeded(one, 1) for one in sorted(unseen, key=_start)), fitted, whole=True
    )


def _fitted(lengths: Lengths, span_s: float) -> Lengths:
    """The lengths, shortened where the trace has no room for one slot to see and one not to."""
    long_s = min(lengths.long_s, span_s / 2.0 if span_s >= 4.0 * LEAST_S else span_s)
    shorter = long_s / lengths.long_s
    short_s = min(lengths.short_s, max(LEAST_S, lengths.short_s * shorter, 0.5 * long_s), long_s)
    return Lengths(
        short_s,
        long_s,
        lengths.seen,
        lengths.unseen,
        min(lengths.warm_up_s, short_s / 3.0),
        min(lengths.cool_down_s, short_s / 10.0),
    )


def _rungs(seen: Sequence[TraceSlot], lengths: Lengths) -> tuple[tuple[TraceSlot, ...], ...]:
    """One short window, two, then all of the long ones, then these with another seed as well."""
    short = [_shortened(one, lengths.short_s) for one in seen]
    if len(short) == 1:
        short.append(_reseeded(short[0], 1))
    long = list(seen) if len(seen) > 1 else [seen[0], _reseeded(seen[0], 1)]
    again = [_reseeded(one, one.seed + 2) for one in long]
    return (short[0],), (*short[:2],), (*long,), (*long, *again)


def _shortened(slot: TraceSlot, duration_s: float) -> TraceSlot:
    start_s = slot.start_s + max(0.0, slot.duration_s - duration_s) / 2.0
    return TraceSlot(start_s, start_s + min(duration_s, slot.duration_s), slot.seed, slot.present, slot.phase)


def _reseeded(slot: TraceSlot, seed: int) -> TraceSlot:
    return TraceSlot(slot.start_s, slot.end_s, seed, slot.present, slot.phase)


def _start(slot: TraceSlot) -> float:
    return slot.start_s


def _with_phases(
    spans: Sequence[tuple[float, float]], presence: Sequence[tuple[float, float]], end_s: float
) -> list[TraceSlot]:
    means = [mean_between(presence, start, end, end_s) for start, end in spans]
    ordered = sorted(means)
    low, high = ordered[len(ordered) // 3], ordered[(2 * len(ordered)) // 3]
    most = max(count for _, count in presence)
    found = []
    for (start, end), mean in zip(spans, means, strict=True):
        first, last = (_at(presence, time) for time in (start, end - 1e-9))
        phase = "usual"
        if most and abs(last - first) >= RUSH * most:
            phase = "rush"
        elif high > low:
            phase = "dense" if mean >= high else "sparse" if mean <= low else "usual"
        found.append(TraceSlot(start, end, 0, mean, phase))
    return found


def mean_between(presence: Sequence[tuple[float, float]], start_s: float, end_s: float, last_s: float) -> float:
    """How many nodes are present between two times, on average."""
    ends = [*(time for time, _ in presence[1:]), last_s]
    lasted = [
        (count, max(0.0, min(end_s, end) - max(start_s, time)))
        for (time, count), end in zip(presence, ends, strict=True)
    ]
    whole = math.fsum(one for _, one in lasted)
    return math.fsum(count * one for count, one in lasted) / whole if whole else 0.0


def _at(presence: Sequence[tuple[float, float]], time_s: float) -> float:
    return next((count for time, count in reversed(presence) if time <= time_s), presence[0][1])


def _spread(slots: Sequence[TraceSlot], count: int) -> list[TraceSlot]:
    """So many slots, evenly over the order of their density: the densest and the sparsest among them. Slots in which
    nobody is present are left out where others are left."""
    some = [slot for slot in slots if slot.present > 0]
    ordered = sorted(some if len(some) >= 2 else slots, key=lambda slot: (-slot.present, slot.start_s))
    count = min(count, len(ordered))
    if count == 1:
        return ordered[:1]
    places = [round(number * (len(ordered) - 1) / (count - 1)) for number in range(count)]
    return [ordered[place] for place in dict.fromkeys(places)]


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
