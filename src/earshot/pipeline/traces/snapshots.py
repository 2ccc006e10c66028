"""What a network looks like at a moment, and what can spread through it: the arithmetic of a trace's profile.

Plain arrays, without Spark: a task calls `measured` with the legs of one stretch of time. Pairs within the
largest range are found once a moment, and serve all ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.pairs import pairs_within
from earshot.records.trajectories import Legs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_LINKS = 3_000_000
"Of one moment: a denser crowd is thinned at random, and its neighbours are counted up again."
SOURCES = 64
"This number of nodes of a stretch spread something: one bit each."
WATCHED = 96
"The contacts of this number of nodes of a stretch are timed."


class FoundRow(NamedTuple):
    """One figure, with its weight: how often it was found, or among how many."""

    name: str
    range_m: float
    time: float
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is to be measured: moments `step_s` apart from `start` on."""

    start: float
    steps: int
    step_s: float
    network_every: int = 1
    "The whole network is measured once in this number of steps; contacts are timed at each."
    spreads: bool = False
    "Whether spreading and contacts are measured too; otherwise only moments."


def places_at_steps(legs: Legs, stretch: Stretch, max_gap_s: float) -> tuple[Ints, Ints]:
    """The rows of legs, and the steps at which the leg's node is there: in order of steps.

    A leg is there from its start until before its end; a node's last row is a leg of one moment, and is there then, as
    is a row before a gap.
    """
    first = np.ceil((legs.start - stretch.start) / stretch.step_s - 1e-9)
    ends = (legs.end <= legs.start) | (legs.end - legs.start > max_gap_s)
    own = np.floor((legs.start - stretch.start) / stretch.step_s + 1e-9)
    last = np.where(ends, own, np.ceil((legs.end - stretch.start) / stretch.step_s - 1e-9) - 1.0)
    first, last = np.maximum(first, 0.0), np.minimum(last, stretch.steps - 1.0)
    counts = np.maximum(0.0, last - first + 1.0).astype(np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    step = (
        np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts).astype(np.int64)
    )
    order = np.argsort(step, kind="stable")
    return rows[order], step[order]


def links_of(x_m: Floats, y_m: Floats, range_m: float) -> tuple[Ints, Ints, Floats]:
    """The pairs within range, and their distances."""
    a, b, _ = pairs_within(x_m, y_m, range_m)
    return a, b, np.hypot(x_m[a] - x_m[b], y_m[a] - y_m[b])


def components_of(count: int, a: Ints, b: Ints) -> Ints:
    """The number of each node's connected component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def thinned(x_m: Floats, y_m: Floats, range_m: float, seed: int) -> tuple[Ints, float]:
    """The nodes to look at, and their share: all of them, but for a crowd in which too many pairs are in range."""
    from scipy.spatial import cKDTree

    everybody = np.arange(len(x_m))
    if len(x_m) * (len(x_m) - 1) / 2 <= MOST_LINKS:
        return everybody, 1.0
    tree = cKDTree(np.column_stack((x_m, y_m)))
    pairs = (tree.count_neighbors(tree, range_m) - len(x_m)) / 2
    if pairs <= MOST_LINKS:
        return everybody, 1.0
    share = math.sqrt(MOST_LINKS / pairs)
    chosen = np.random.default_rng(seed).choice(len(x_m), max(2, int(share * len(x_m))), replace=False)
    return np.sort(chosen), share


def measured(legs: Legs, stretch: Stretch, ranges_m: Sequence[float], max_gap_s: float) -> Iterator[FoundRow]:
    """All figures of a stretch."""
    rows, step = places_at_steps(legs, stretch, max_gap_s)
    if not len(rows):
        yield from (
            FoundRow("present", 0.0, stretch.start + k * stretch.step_s, 0.0, 1.0) for k in range(stretch.steps)
        )
        return
    nodes, node = np.unique(legs.node, return_inverse=True)
    spreads = [_Spread(len(nodes), ranges_m, span) for span in HORIZON_GROUPS] if stretch.spreads else []
    contacts = _Contacts(len(nodes), ranges_m) if stretch.spreads else None
    firsts = np.searchsorted(step, np.arange(stretch.steps + 1))
    for k in range(stretch.steps):
        at = rows[firsts[k] : firsts[k + 1]]
        now = stretch.start + k * stretch.step_s
        passed = now - legs.start[at]
        x, y = legs.x_m[at] + legs.x_m_s[at] * passed, legs.y_m[at] + legs.y_m_s[at] * passed
        there = node[at]
        if contacts is not None:
            contacts.look(there, x, y, now)
        if k % stretch.network_every:
            continue
        if not stretch.spreads:
            yield FoundRow("present", 0.0, now, float(len(at)), 1.0)
            yield from _counted("speed", 0.0, now, np.round(np.hypot(legs.x_m_s[at], legs.y_m_s[at]), 1))
        yield from _network(there, x, y, now, ranges_m, spreads)
        for spread in spreads:
            yield from spread.reached(now, stretch.step_s * stretch.network_every)
    if contacts is not None:
        yield from contacts.found(stretch.start + (stretch.steps - 1) * stretch.step_s)


def _network(
    there: Ints, x: Floats, y: Floats, now: float, ranges_m: Sequence[float], spreads: Sequence[_Spread]
) -> Iterator[FoundRow]:
    """The network at one moment: what spreads in it, or its neighbours and components."""
    if not len(there):
        return
    chosen, share = thinned(x, y, max(ranges_m), seed=len(there))
    there, x, y = there[chosen], x[chosen], y[chosen]
    a, b, distance = links_of(x, y, max(ranges_m))
    count = len(there)
    for number, range_m in enumerate(ranges_m):
        near = distance <= range_m
        label = components_of(count, a[near], b[near])
        for spread in spreads:
            spread.step(number, there, label, now)
        if not spreads:
            sizes = np.bincount(label)
            degrees = np.bincount(a[near], minlength=count) + np.bincount(b[near], minlength=count)
            yield from _counted("neighbours", range_m, now, np.round(degrees / share))
            yield FoundRow("components", range_m, now, float(len(sizes)), 1.0)
            yield FoundRow("largest", range_m, now, float(sizes.max() / count), 1.0)
            if count > 1:
                pairs = float((sizes * (sizes - 1.0)).sum() / (count * (count - 1.0)))
                yield FoundRow("at once", range_m, now, pairs, count * (count - 1.0))


def _counted(name: str, range_m: float, now: float, values: npt.NDArray[Any]) -> Iterator[FoundRow]:
    for value, count in zip(*np.unique(values, return_counts=True), strict=True):
        yield FoundRow(name, range_m, now, float(value), float(count))


HORIZONS_S = (10.0, 60.0, 600.0)
HORIZON_GROUPS = ((10.0, 60.0), (10.0, 60.0, 600.0))
"Spreading begins again when the last horizon of a group is reached."


class _Spread:
    """What some nodes have at the start, who gets it from them when, by range. A bit for each of them."""

    def __init__(self, nodes: int, ranges_m: Sequence[float], horizons_s: Sequence[float]) -> None:
        self.ranges_m = ranges_m
        self.horizons_s = (0.0, *horizons_s)
        self.has = np.zeros((len(ranges_m), nodes), dtype=np.uint64)
        self.there: Ints = np.zeros(0, dtype=np.int64)
        "The nodes that were there when it began."
        self.sources: Ints = np.zeros(0, dtype=np.int64)
        self.began = math.nan
        self.left_s: list[float] = []
        self.unreached = [1.0] * len(ranges_m)
        "By range, the share of pairs that were not reached at the horizon before."

    def step(self, number: int, there: Ints, label: Ints, now: float) -> None:
        """Everybody in a component gets what anybody in it has."""
        if not self.left_s:
            self.began, self.there, self.left_s = now, there, list(self.horizons_s)
            self.sources = np.random.default_rng(len(there)).permutation(there)[:SOURCES]
            self.has[:] = 0
            self.has[:, self.sources] = np.uint64(1) << np.arange(len(self.sources), dtype=np.uint64)
        order = np.argsort(label, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(label[order]) != 0))
        together = np.bitwise_or.reduceat(self.has[number, there[order]], starts)
        self.has[number, there[order]] = np.repeat(together, np.diff(np.append(starts, len(order))))

    def reached(self, now: float, step_s: float) -> Iterator[FoundRow]:
        """When a horizon is reached: of the pairs (a source, a node that was there at the start) that were not
        reached at the horizon before, the share that is reached now. At once is the first horizon."""
        while self.left_s and now + step_s > self.began + self.left_s[0] + 1e-9:
            horizon_s = self.left_s.pop(0)
            pairs = float(len(self.sources) * (len(self.there) - 1))
            if not pairs:
                continue
            # The sources are drawn among all nodes, and stand for all of them.
            weight = float(len(self.there) * (len(self.there) - 1))
            for number, range_m in enumerate(self.ranges_m):
                before = 1.0 if horizon_s == 0.0 else self.unreached[number]
                bits = int(np.unpackbits(self.has[number, self.there].view(np.uint8)).sum()) - len(self.sources)
                self.unreached[number] = unreached = 1.0 - bits / pairs
                if horizon_s > 0.0:
                    newly = 1.0 - unreached / before if before > 0.0 else 0.0
                    yield FoundRow(f"carried {horizon_s:g}", range_m, self.began, newly, weight * before)


@dataclass
class _PairTimes:
    """The contacts of watched nodes at one range."""

    since: dict[int, float] = field(default_factory=dict)
    "NaN: in contact when the watching began, so nobody knows since when."
    ended: dict[int, float] = field(default_factory=dict)
    lengths: list[tuple[float, bool]] = field(default_factory=list)
    "In seconds, and whether the contact's end was seen."
    between: list[float] = field(default_factory=list)

    def look(self, keys: set[int], now: float, first: bool) -> None:
        for key in self.since.keys() - keys:
            began = self.since.pop(key)
            self.ended[key] = now
            if not math.isnan(began):
                self.lengths.append((now - began, True))
        for key in keys - self.since.keys():
            self.since[key] = math.nan if first else now
            if key in self.ended:
                self.between.append(now - self.ended.pop(key))


class _Contacts:
    """The contacts of some nodes with all others, timed at every step."""

    def __init__(self, nodes: int, ranges_m: Sequence[float]) -> None:
        self.nodes = nodes
        self.ranges_m = ranges_m
        chosen = np.random.default_rng(nodes).permutation(nodes)[:WATCHED]
        self.watched = np.zeros(nodes, dtype=bool)
        self.watched[chosen] = True
        self.by_range = [_PairTimes() for _ in ranges_m]
        self.first = True

    def look(self, there: Ints, x: Floats, y: Floats, now: float) -> None:
        """Who is in contact now."""
        from scipy.spatial import cKDTree

        mine = np.flatnonzero(self.watched[there])
        keys, distance = np.zeros(0, dtype=np.int64), np.zeros(0)
        if len(mine):
            places = np.column_stack((x, y))
            near = cKDTree(places[mine]).sparse_distance_matrix(
                cKDTree(places), max(self.ranges_m), output_type="coo_matrix"
            )
            one, other, distance = there[mine[near.row]], there[near.col], near.data
            once = (one != other) & (~self.watched[other] | (one < other))
            keys, distance = one[once] * self.nodes + other[once], distance[once]
        for times, range_m in zip(self.by_range, self.ranges_m, strict=True):
            times.look(set(keys[distance <= range_m].tolist()), now, self.first)
        self.first = False

    def found(self, end: float) -> Iterator[FoundRow]:
        for times, range_m in zip(self.by_range, self.ranges_m, strict=True):
            for length, seen in times.lengths:
                yield FoundRow("contact", range_m, 0.0, length, 1.0 if seen else 0.0)
            for began in times.since.values():
                if not math.isnan(began):
                    yield FoundRow("contact", range_m, 0.0, end - began, 0.0)
            for length in times.between:
                yield FoundRow("between", range_m, 0.0, length, 1.0)


def quantiles(values: Floats, counts: Floats, shares: Sequence[float]) -> list[float]:
    """Quantiles of values, each of which was found this many times."""
    order = np.argsort(values)
    reached = np.cumsum(counts[order]) / counts.sum()
    places = np.searchsorted(reached, np.array(shares) - 1e-12)
    return [float(value) for value in values[order][np.minimum(places, len(values) - 1)]]


def lifetimes(lengths: Floats, seen: npt.NDArray[np.bool_], shares: Sequence[float]) -> tuple[float, list[float]]:
    """The mean and quantiles of lengths of which some ended unseen (Kaplan and Meier, 1958). A quantile that is not
    reached is the longest length."""
    order = np.argsort(lengths)
    lengths, ended = lengths[order], seen[order].astype(np.float64)
    alive = np.cumprod(1.0 - ended / np.arange(len(lengths), 0, -1))
    places = np.searchsorted(-alive, np.array(shares) - 1.0 - 1e-12)
    mean = float(np.sum(np.diff(np.append(0.0, lengths)) * np.append(1.0, alive[:-1])))
    return mean, [float(length) for length in lengths[np.minimum(places, len(lengths) - 1)]]
