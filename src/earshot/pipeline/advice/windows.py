"""Windows of a trace: which parts the search may see, and which it is judged on.

The trace is cut into slots. Those that the search sees, those that judge its choice, and those that are kept back
for a second judgement are each spread over the trace's phases: slots in order of how many nodes are present; the
search also sees the slot where that changes most. Every rung of the search has windows of at least two slots. A trace
that is too short for two slots is one slot; what the search does not see are then other seeds, and the answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from earshot.errors import TraceError
from earshot.pipeline.traces.plausibility import as_span


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
    change: float = 0.0
    "By how much the number of nodes changes from its start to its end, as a share of the most there are."

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    def __str__(self) -> str:
        seed = f", seed {self.seed}" if self.seed > 1 else ""
        nodes = "node" if round(self.present) == 1 else "nodes"
        return f"{as_span(self.start_s, self.end_s)} ({self.phase}, {self.present:.0f} {nodes}{seed})"


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long windows last, warm-up and cool-down included, and how many there are."""

    brief_s: float
    "Where everybody begins."
    short_s: float
    long_s: float
    seen: int
    unseen: int
    warm_up_s: float
    cool_down_s: float

    def warm_up_of(self, window: TraceSlot) -> float:
        """At most a third of the window."""
        return min(self.warm_up_s, window.duration_s / 3.0)

    def cool_down_of(self, window: TraceSlot) -> float:
        """At most a tenth of the window."""
        return min(self.cool_down_s, window.duration_s / 10.0)

    def times(self, factor: float) -> Lengths:
        """Windows that last longer by this factor."""
        return replace(self, brief_s=self.brief_s * factor, short_s=self.short_s * factor, long_s=self.long_s * factor)


QUICK = Lengths(brief_s=22.0, short_s=32.0, long_s=50.0, seen=3, unseen=2, warm_up_s=12.0, cool_down_s=3.0)
THOROUGH = Lengths(brief_s=30.0, short_s=40.0, long_s=75.0, seen=4, unseen=3, warm_up_s=15.0, cool_down_s=5.0)
LEAST_S = 10.0
"A shorter window holds no workload worth judging."
WORTHWHILE_S = 30.0
"A short trace is cut into two slots rather than into four that are shorter than this."
WELL_ATTENDED, WORTH_JUDGING, MOST_TIMES = 30.0, 10.0, 20.0
"Where fewer nodes are present, or fewer events fall into a brief window, windows last longer; at most this many times."
RUSH = 0.3
"A slot in which the number of nodes changes by this share of the most there are is a rush."


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """What the search sees, rung by rung, and what it is judged on."""

    rungs: tuple[tuple[TraceSlot, ...], ...]
    unseen: tuple[tuple[TraceSlot, ...], ...]
    "Groups of windows. Each judges one choice; those after the first only where the one before overturned it."
    lengths: Lengths
    "As they fit the trace."
    whole: bool
    "Whether seen and unseen windows are different parts of the trace; else they differ by their seeds only."

    def where(self, has_nodes: Callable[[TraceSlot], bool]) -> WindowPlan:
        """The plan without windows that have no nodes: the profile looks at moments, so a gap between them may hold
        a window. Where all windows of the first judgement go, those that were kept back take their place."""
        rungs, unseen = (
            tuple(some for group in groups if (some := tuple(window for window in group if has_nodes(window))))
            for groups in (self.rungs, self.unseen)
        )
        if not rungs or not unseen:
            raise TraceError(
                "the trace, or the chosen window of it, has no nodes for most of its time: choose a part of it with "
                "--window in which nodes are present"
            )
        return replace(self, rungs=rungs, unseen=(*unseen, ())[:2])


def plan_windows(
    presence: Sequence[tuple[float, float]], end_s: float, lengths: Lengths, events_per_s: float = math.inf
) -> WindowPlan:
    """`presence`: from each time on, in order, how many nodes are there; the last lasts until `end_s`."""
    if not presence or end_s - presence[0][0] < LEAST_S:
        lasts = end_s - presence[0][0] if presence else 0.0
        raise TraceError(
            f"the trace, or the chosen window of it, lasts {lasts:g} s; advice needs at least {LEAST_S:g} s of "
            "positions: choose a longer window, or record for longer"
        )
    start_s = presence[0][0]
    present = mean_between(presence, start_s, end_s, end_s)
    fitted = _fitted(lengths, end_s - start_s, present, events_per_s)
    count = max(1, int((end_s - start_s) / fitted.long_s + 1e-9))
    gap_s = (end_s - start_s - count * fitted.long_s) / max(1, count - 1)
    starts = [start_s + number * (fitted.long_s + gap_s) for number in range(count)]
    slots = _with_phases([(begin_s, begin_s + fitted.long_s) for begin_s in starts], presence, end_s)
    if count < 2:
        groups = [[_reseeded(slots[0], 101 + 100 * n + m) for m in range(lengths.unseen)] for n in range(2)]
        return WindowPlan(_rungs(slots[:1], fitted), tuple(map(tuple, groups)), fitted, whole=False)
    seen, unseen, spare = _dealt(slots, lengths)
    first = tuple(_reseeded(slot, 1) for slot in sorted(unseen, key=_start))
    # Where the trace has no slot left, a second judgement takes other events in the slots of the first.
    second = tuple(_reseeded(slot, 1) for slot in sorted(spare, key=_start)) or tuple(
        _reseeded(slot, 4) for slot in first
    )
    return WindowPlan(_rungs(seen, fitted), (first, second), fitted, whole=True)


def _fitted(lengths: Lengths, span_s: float, present: float, events_per_s: float) -> Lengths:
    """The lengths, longer where nodes or events are few, then shortened for a short trace so that it has six slots;
    or four, or two, where more would be too short."""
    judged_s = lengths.brief_s - lengths.warm_up_s / 2.0 - lengths.cool_down_s
    few = max(WELL_ATTENDED / max(present, 1.0), WORTH_JUDGING / (judged_s * max(events_per_s, 1e-9)))
    wanted = lengths.times(min(MOST_TIMES, max(1.0, few)))
    slots = min(6, max(2, int(span_s / wanted.brief_s)))
    if slots < 4 and span_s / 4 >= WORTHWHILE_S:
        slots = 4
    long_s = min(wanted.long_s, span_s / slots if span_s >= 4.0 * LEAST_S else span_s)
    return replace(wanted, brief_s=min(wanted.brief_s, long_s), short_s=min(wanted.short_s, long_s), long_s=long_s)


def _dealt(slots: Sequence[TraceSlot], lengths: Lengths) -> tuple[list[TraceSlot], list[TraceSlot], list[TraceSlot]]:
    """Slots that the search sees, that judge its choice, and that are kept back, each from dense to sparse."""
    chosen = _spread(slots, lengths.seen + 2 * lengths.unseen)
    count = len(chosen)
    unseen_count = min(lengths.unseen, max(1, round(count / 3)))
    spare_count = min(unseen_count, max(0, count - unseen_count - max(2, math.ceil(count / 3))))
    seen = _spread(chosen, min(lengths.seen, count - unseen_count - spare_count))
    rest = [slot for slot in chosen if slot not in seen]
    unseen = _spread(rest, unseen_count)
    rest = [slot for slot in rest if slot not in unseen]
    spare = _spread(rest, spare_count) if spare_count else []
    rush = max(slots, key=lambda slot: slot.change)
    if len(seen) > 2 and rush.phase == "rush" and rush not in (*seen, *unseen, *spare):
        seen[len(seen) // 2] = rush
    return seen, unseen, spare


def _rungs(seen: Sequence[TraceSlot], lengths: Lengths) -> tuple[tuple[TraceSlot, ...], ...]:
    """Brief windows of the densest and the sparsest slot, short ones of three slots, then all of the long ones, then
    the densest and the sparsest of these with another seed as well."""
    slots = list(seen) if len(seen) > 1 else [seen[0], _reseeded(seen[0], 1)]
    brief = [_shortened(slot, lengths.brief_s) for slot in (slots[0], slots[-1])]
    short = [_shortened(slot, lengths.short_s) for slot in _spread(slots, 3)]
    again = [_reseeded(slot, slot.seed + 2) for slot in (slots[0], slots[-1])]
    return (*brief,), (*short,), (*slots,), (*slots, *again)


def _shortened(slot: TraceSlot, duration_s: float) -> TraceSlot:
    start_s = slot.start_s + max(0.0, slot.duration_s - duration_s) / 2.0
    return replace(slot, start_s=start_s, end_s=start_s + min(duration_s, slot.duration_s))


def _reseeded(slot: TraceSlot, seed: int) -> TraceSlot:
    return replace(slot, seed=seed)


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
        change = abs(last - first) / most if most else 0.0
        phase = "usual"
        if change >= RUSH:
            phase = "rush"
        elif high > low:
            phase = "dense" if mean >= high else "sparse" if mean <= low else "usual"
        found.append(TraceSlot(start, end, 0, mean, phase, change))
    return found


def mean_between(presence: Sequence[tuple[float, float]], start_s: float, end_s: float, last_s: float) -> float:
    """How many nodes are present between two times, on average."""
    ends = [*(time for time, _ in presence[1:]), last_s]
    lasted = [
        (count, max(0.0, min(end_s, end) - max(start_s, time)))
        for (time, count), end in zip(presence, ends, strict=True)
    ]
    whole = math.fsum(duration for _, duration in lasted)
    return math.fsum(count * duration for count, duration in lasted) / whole if whole else 0.0


def _at(presence: Sequence[tuple[float, float]], time_s: float) -> float:
    return next((count for time, count in reversed(presence) if time <= time_s), presence[0][1])


def _spread(slots: Sequence[TraceSlot], count: int) -> list[TraceSlot]:
    """Choose this number of slots, evenly spread from the densest to the sparsest. Slots without nodes are left out
    where there are others."""
    some = [slot for slot in slots if slot.present > 0]
    ordered = sorted(some if len(some) >= 2 else slots, key=lambda slot: (-slot.present, slot.start_s))
    count = min(count, len(ordered))
    if count == 1:
        return ordered[:1]
    places = [round(number * (len(ordered) - 1) / (count - 1)) for number in range(count)]
    return [ordered[place] for place in dict.fromkeys(places)]
