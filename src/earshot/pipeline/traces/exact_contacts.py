"""Exact contacts: from when until when two nodes on straight legs are within range, both ends included.

Unlike `contacts`, which compares samples, this solves for the moments at which a pair comes within range
and leaves it. Then what a scenario changes: partitions cut contacts, scripts make or forbid them. Without Spark; the
ceiling asks it for one stretch of time after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from earshot.geometry import Area, Circle, Ellipse, Position
from earshot.pairs import index_ranges, pairs_within, stable_order, times_within
from earshot.records.trajectories import Legs
from earshot.simulation.faults import Partition, Point
from earshot.simulation.media.links import LinkScript

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LONGEST_PIECE = 0.5
"Legs are searched in pieces in which no node moves by more than this share of the range."
PIECES_A_LEG = 64
"At most this number on average; where one node is much faster than the rest, the search takes larger circles."
ROWS_AT_ONCE = 4096
"Pieces searched together: small enough for the processor's cache, large enough for numpy."


class ContactColumns(NamedTuple):
    """One row a contact: nodes a and b, by number, are linked from start to end, both included."""

    a: Ints
    b: Ints
    start: Floats
    end: Floats


Columns = TypeVar("Columns", bound=tuple[Any, ...])


def rows_of(columns: Columns, rows: Any) -> Columns:
    """Some rows of a tuple of columns."""
    return type(columns)(*(column[rows] for column in columns))


def contact_columns(rows: Sequence[tuple[int, int, float, float]]) -> ContactColumns:
    """Rows as columns."""
    a, b, start, end = zip(*rows, strict=True) if rows else ((), (), (), ())
    return ContactColumns(np.array(a, np.int64), np.array(b, np.int64), np.array(start, float), np.array(end, float))


def joined(parts: Sequence[ContactColumns]) -> ContactColumns:
    """All rows of several."""
    columns: list[Any] = [np.concatenate(some) for some in zip(*parts, strict=True)]
    return ContactColumns(*columns)


def no_contacts() -> ContactColumns:
    """No rows."""
    return contact_columns([])


def legs_of(node: Ints, time: Floats, x: Floats, y: Floats, max_gap_s: float) -> Legs:
    """The legs between consecutive rows, which are in order of node and then of time.

    A node is away between two rows more than `max_gap_s` apart, and in a jump (two rows a rounding step
    apart). A row with no leg on either side is a leg of no length.
    """
    if not len(node):
        return Legs(node, *(np.zeros(0) for _ in range(6)))
    lasts = np.append(np.diff(time), 0.0)
    same = np.append(node[1:] == node[:-1], False)
    goes_on = same & (lasts <= max_gap_s) & (lasts > 4.0 * np.spacing(np.abs(time)))
    alone = ~goes_on & ~np.append(False, goes_on[:-1])
    # Of two rows that make a jump, the place before it stands for no time of its own.
    alone &= ~(same & (lasts <= 4.0 * np.spacing(np.abs(time))) & (lasts > 0))
    chosen = np.flatnonzero(goes_on | alone)
    after = np.where(goes_on[chosen], np.minimum(chosen + 1, len(node) - 1), chosen)
    span = time[after] - time[chosen]
    speeds = [
        np.divide(along[after] - along[chosen], span, out=np.zeros(len(chosen)), where=span > 0) for along in (x, y)
    ]
    return Legs(node[chosen], time[chosen], time[after], x[chosen], y[chosen], *speeds)


def legs_within(legs: Legs, node: Ints, start: Floats, end: Floats) -> Legs:
    """The parts of the legs that lie in the intervals [start, end) of their node; rows of both are in
    order of node, and the intervals of a node do not overlap."""
    low, high = np.searchsorted(node, legs.node, "left"), np.searchsorted(node, legs.node, "right")
    leg, interval = index_ranges(np.arange(len(legs.node)), low, high)
    last = np.where(np.isfinite(end), np.nextafter(end, -np.inf), end)
    return _cut(legs, leg, np.maximum(legs.start[leg], start[interval]), np.minimum(legs.end[leg], last[interval]))


def legs_in_slices(legs: Legs, origin: float, slice_s: float) -> tuple[Legs, Ints]:
    """The legs cut at origin + k * slice_s, and the number k of each piece, in order of k."""
    first = np.floor((legs.start - origin) / slice_s).astype(np.int64)
    last = np.maximum(first, np.ceil((legs.end - origin) / slice_s).astype(np.int64) - 1)
    if (first == last).all():
        order = stable_order(first - first.min(initial=0))
        return rows_of(legs, order), first[order]
    leg, number = index_ranges(np.arange(len(first)), first, last + 1)
    order = np.argsort(number, kind="stable")
    leg, number = leg[order], number[order]
    # The first piece begins where its leg does and the last ends there, whatever the rounding.
    start = np.where(number == first[leg], legs.start[leg], origin + number * slice_s)
    end = np.where(number == last[leg], legs.end[leg], origin + (number + 1) * slice_s)
    return _moved(legs, leg, start, np.maximum(start, end)), number


def _cut(legs: Legs, leg: Ints, start: Floats, end: Floats) -> Legs:
    real = start <= end
    return _moved(legs, leg[real], start[real], end[real])


def _moved(legs: Legs, leg: Ints, start: Floats, end: Floats) -> Legs:
    since = start - legs.start[leg]
    vx, vy = legs.x_m_s[leg], legs.y_m_s[leg]
    return Legs(legs.node[leg], start, end, legs.x_m[leg] + vx * since, legs.y_m[leg] + vy * since, vx, vy)


def contacts_of_legs(legs: Legs, range_m: float, partitions: Sequence[Partition] = ()) -> ContactColumns:
    """When two nodes are within range of each other. A contact may come as several that touch."""
    if not len(legs.node):
        return no_contacts()
    # Most legs of a trace that samples all nodes together begin at the same moments: cut there.
    middle = len(legs.start) // 2
    origin = float(np.partition(legs.start, middle)[middle])
    pieces, number = legs_in_slices(legs, origin, _slice_s(legs, range_m))
    found = list(_meetings(pieces, number, range_m, partitions))
    return _merged(joined(found))


def _slice_s(legs: Legs, range_m: float) -> float:
    """A leg is mostly one piece, and a piece is short beside the range."""
    lasts = legs.end - legs.start
    some = lasts[lasts > 0]
    if not len(some):
        return 1.0
    fastest_m_s = float(np.sqrt(legs.x_m_s**2 + legs.y_m_s**2).max())
    wanted = float(np.median(some))
    if fastest_m_s > 0:
        wanted = min(wanted, LONGEST_PIECE * range_m / fastest_m_s)
    return max(wanted, float(some.sum()) / (PIECES_A_LEG * len(legs.node)))


def _meetings(pieces: Legs, number: Ints, range_m: float, partitions: Sequence[Partition]) -> Iterator[ContactColumns]:
    """The contacts within each piece; a piece meets those of its own slice of time."""
    middle_s = (pieces.end - pieces.start) / 2
    x, y = pieces.x_m + pieces.x_m_s * middle_s, pieces.y_m + pieces.y_m_s * middle_s
    half_m = np.sqrt(pieces.x_m_s**2 + pieces.y_m_s**2) * middle_s
    begin, count = 0, len(number)
    while begin < count:
        end = min(begin + ROWS_AT_ONCE, count)
        if end < count:  # a slice is searched as a whole
            end = int(np.searchsorted(number, number[end - 1], side="right"))
        some = slice(begin, end)
        widest_m = float(half_m[some].max())
        i, j, squared = pairs_within(x[some], y[some], range_m + 2.0 * widest_m, number[some] - number[begin])
        # In order of slices: the pairs of several slices come mixed.
        in_time = stable_order(number[some][i] - number[begin])
        i, j, squared = i[in_time] + begin, j[in_time] + begin, squared[in_time]
        start, until = pieces.start[i], pieces.end[i]
        if not _side_by_side(pieces, number, some):
            start, until = np.maximum(start, pieces.start[j]), np.minimum(until, pieces.end[j])
            # Two pieces that only touch in time are followed by pieces that meet then, except those of no length.
            moment = (middle_s[i] == 0) | (middle_s[j] == 0)
            shared = (pieces.node[i] != pieces.node[j]) & ((start < until) | (moment & (start == until)))
            i, j, squared, start, until = (column[shared] for column in (i, j, squared, start, until))
        # Most pairs are so close that no movement parts them within the slice.
        border = np.flatnonzero(squared > max(range_m - 2.0 * widest_m, 0.0) ** 2)
        surely_m = range_m - half_m[i[border]] - half_m[j[border]]
        border = border[(surely_m < 0) | (squared[border] > surely_m * surely_m)]
        within = np.ones(len(i), dtype=bool)
        within[border], start[border], until[border] = _within_range(
            pieces, i[border], j[border], start[border], until[border], range_m
        )
        met = ContactColumns(i[within], j[within], start[within], until[within])
        for partition in partitions:
            met = uncut(partition, pieces, met)
        a, b = pieces.node[met.a], pieces.node[met.b]
        yield ContactColumns(np.minimum(a, b), np.maximum(a, b), met.start, met.end)
        begin = end


def _side_by_side(pieces: Legs, number: Ints, some: slice) -> bool:
    """Whether all pieces of a slice begin and end together. A node then has one piece in a slice."""
    start, end, same = pieces.start[some], pieces.end[some], np.diff(number[some]) == 0
    together = (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    return bool((together | ~same).all() and (start < end).all())


def _within_range(
    pieces: Legs, i: Ints, j: Ints, start: Floats, end: Floats, range_m: float
) -> tuple[npt.NDArray[np.bool_], Floats, Floats]:
    """Whether the pieces i and j come within range from start to end, from when and until when."""
    dx, dy = (
        at[i] + speed[i] * (start - pieces.start[i]) - at[j] - speed[j] * (start - pieces.start[j])
        for at, speed in ((pieces.x_m, pieces.x_m_s), (pieces.y_m, pieces.y_m_s))
    )
    vx, vy = pieces.x_m_s[i] - pieces.x_m_s[j], pieces.y_m_s[i] - pieces.y_m_s[j]
    return times_within(dx, dy, vx, vy, start, end, range_m)


def _merged(found: ContactColumns) -> ContactColumns:
    """Contacts of one pair that touch, as one."""
    if not len(found.a):
        return found
    pair = found.a * (int(found.b.max()) + 1) + found.b
    order = _by_pair(pair, found.start)
    pair, start, end = pair[order], found.start[order], found.end[order]
    parted = np.ones(len(pair), dtype=bool)
    parted[1:] = (pair[1:] != pair[:-1]) | (start[1:] != end[:-1])
    first = np.flatnonzero(parted)
    last = np.append(first[1:], len(pair)) - 1
    return ContactColumns(found.a[order[first]], found.b[order[first]], start[first], end[last])


def _by_pair(pair: Ints, start: Floats) -> Ints:
    """The order of pair and then of start. Contacts come in order of their slices of time, and so those of a pair
    nearly always in order of their start."""
    order = stable_order(pair)
    sorted_pair, sorted_start = pair[order], start[order]
    if ((sorted_pair[1:] != sorted_pair[:-1]) | (sorted_start[1:] >= sorted_start[:-1])).all():
        return order
    return np.lexsort((start, pair))


# Partitions: the parts of a contact in which no partition cuts it. While two nodes move straight, whether a line or an
# area's border separates them changes only at the roots of a few polynomials in time. Between two roots one moment
# decides.


def uncut(partition: Partition, pieces: Legs, met: ContactColumns) -> ContactColumns:
    """The contacts between pieces, by their numbers, without what the partition cuts off."""
    touched = (met.start < partition.end_s) & (met.end >= partition.start_s)
    kept: list[tuple[int, int, float, float]] = []
    last = math.nextafter(partition.start_s, -math.inf)
    for k in np.flatnonzero(touched).tolist():
        i, j, start, end = int(met.a[k]), int(met.b[k]), float(met.start[k]), float(met.end[k])
        if start <= last:
            kept.append((i, j, start, last))
        from_s, until_s = max(start, partition.start_s), min(end, math.nextafter(partition.end_s, -math.inf))
        kept.extend((i, j, *part) for part in _open_parts(partition, pieces, i, j, from_s, until_s))
        if end >= partition.end_s:
            kept.append((i, j, partition.end_s, end))
    return joined([rows_of(met, ~touched), contact_columns(kept)])


def _open_parts(
    partition: Partition, pieces: Legs, i: int, j: int, start: float, end: float
) -> list[tuple[float, float]]:
    """The parts of [start, end] in which the partition does not separate the two nodes."""
    here, there = _Motion(pieces, i), _Motion(pieces, j)
    roots = _line_roots(partition.line, here, there) if partition.line else []
    if partition.area is not None:
        roots = [*_border_roots(partition.area, here), *_border_roots(partition.area, there)]
    times = [start, *sorted(root for root in roots if start < root < end), end]
    found: list[tuple[float, float]] = []
    for low, high in pairwise(times):
        if not partition.separates(here.at((low + high) / 2), there.at((low + high) / 2)):
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
    return found


class _Motion:
    """One piece: where its node is at a time, x = x0 + vx t and y = y0 + vy t."""

    def __init__(self, pieces: Legs, i: int) -> None:
        self.vx, self.vy = float(pieces.x_m_s[i]), float(pieces.y_m_s[i])
        self.since = float(pieces.start[i])
        self.x, self.y = float(pieces.x_m[i]), float(pieces.y_m[i])

    def at(self, time: float) -> Point:
        return self.x + self.vx * (time - self.since), self.y + self.vy * (time - self.since)


def _line_roots(line: tuple[Position, Position], here: _Motion, there: _Motion) -> list[float]:
    """When a node passes the line, or the line's end passes between the nodes."""
    first, second = line
    base = here.since
    ax, ay = here.x, here.y
    bx, by = there.at(base)
    found = [
        *_side_roots((first.x_m, first.y_m), (second.x_m, second.y_m), here),
        *_side_roots((first.x_m, first.y_m), (second.x_m, second.y_m), there),
    ]
    # (b - a) x (c - a) = 0, where a and b move.
    dx, dy, dvx, dvy = bx - ax, by - ay, there.vx - here.vx, there.vy - here.vy
    for end in line:
        cx, cy = end.x_m - ax, end.y_m - ay
        square = -dvx * here.vy + dvy * here.vx
        linear = dvx * cy - dx * here.vy - dvy * cx + dy * here.vx
        found.extend(base + root for root in _roots(square, linear, dx * cy - dy * cx))
    return found


def _side_roots(start: Point, end: Point, node: _Motion) -> list[float]:
    """When the node is on the endless line through the two points."""
    ex, ey = end[0] - start[0], end[1] - start[1]
    roots = _roots(0.0, ex * node.vy - ey * node.vx, ex * (node.y - start[1]) - ey * (node.x - start[0]))
    return [node.since + root for root in roots]


def _border_roots(area: Area, node: _Motion) -> list[float]:
    """When the node passes the area's border, among others."""
    shape = area.shape
    if isinstance(shape, Circle | Ellipse):
        a_m, b_m, angle = (
            (shape.radius_m, shape.radius_m, 0.0)
            if isinstance(shape, Circle)
            else (shape.a_m, shape.b_m, math.radians(shape.angle_deg))
        )
        cos, sin, centre = math.cos(angle), math.sin(angle), area.centre
        x, y = node.x - centre.x_m, node.y - centre.y_m
        along, across = (x * cos + y * sin) / a_m, (y * cos - x * sin) / b_m
        v_along, v_across = (node.vx * cos + node.vy * sin) / a_m, (node.vy * cos - node.vx * sin) / b_m
        roots = _roots(v_along**2 + v_across**2, 2 * (along * v_along + across * v_across), along**2 + across**2 - 1.0)
        return [node.since + root for root in roots]
    outline = area.polygon()
    rings = [list(ring.coords) for ring in (outline.exterior, *outline.interiors)]
    return [
        root
        for ring in rings
        for one, other in pairwise(ring)
        for root in _side_roots((one[0], one[1]), (other[0], other[1]), node)
    ]


def _roots(square: float, linear: float, constant: float) -> list[float]:
    """Where square s² + linear s + constant = 0; none where it holds everywhere."""
    if square == 0.0:
        return [-constant / linear] if linear != 0.0 else []
    inside = linear * linear - 4 * square * constant
    if inside < 0:
        return []
    root = math.sqrt(inside)
    return [(-linear - root) / (2 * square), (-linear + root) / (2 * square)]


# Scripts: contacts that a scenario makes or forbids, whatever the distance.


Interval = tuple[float, float]
"Both ends included."


def with_script(
    contacts: ContactColumns, legs: Legs, names: Sequence[str], script: LinkScript, until_s: float
) -> ContactColumns:
    """The contacts under a script. Where it gives the whole graph, pass none. A link that is held up is a
    contact while both nodes have legs."""
    number = {name: i for i, name in enumerate(names)}
    rows: list[tuple[int, int, float, float]] = []
    scripted = np.zeros(len(contacts.a), dtype=bool)
    for (one, other), (up, free) in link_intervals(script, until_s).items():
        if one not in number or other not in number:
            continue  # neither is there in this stretch of time
        a, b = sorted((number[one], number[other]))
        ours = (contacts.a == a) & (contacts.b == b)
        scripted |= ours
        by_radio = list(zip(contacts.start[ours].tolist(), contacts.end[ours].tolist(), strict=True))
        held_up = _shared(_shared(_presence(legs, a), _presence(legs, b)), up)
        rows.extend((a, b, *part) for part in [*_shared(by_radio, free), *held_up])
    return joined([rows_of(contacts, ~scripted), contact_columns(rows)])


def link_intervals(script: LinkScript, until_s: float) -> dict[tuple[str, str], tuple[list[Interval], list[Interval]]]:
    """For each link that the script names: when it is held up, and when the radio decides."""
    of_graph = {_ordered(a, b) for a, b in script.graph or ()}
    turning = [link for rotation in script.rotations for link in rotation.links]
    changing = [(change.a, change.b) for change in script.changes]
    named = of_graph | {_ordered(a, b) for a, b in (*turning, *changing)}
    states: dict[tuple[str, str], list[tuple[float, str]]] = {link: [(-math.inf, "free")] for link in sorted(named)}
    for change in script.in_order():
        if change.time_s > until_s:
            break
        states[_ordered(change.a, change.b)].append((change.time_s, change.state))
    found: dict[tuple[str, str], tuple[list[Interval], list[Interval]]] = {}
    for link, changes in states.items():
        free = "free" if script.graph is None else "up" if link in of_graph else "down"
        ends = [time for time, _ in changes[1:]]
        intervals = [
            (start, math.nextafter(end, -math.inf), free if state == "free" else state)
            for (start, state), end in zip(changes, [*ends, math.inf], strict=True)
        ]
        up, by_radio = (
            [(start, end) for start, end, state in intervals if state == wanted and start <= end]
            for wanted in ("up", "free")
        )
        found[link] = (up, by_radio)
    return found


def _ordered(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _presence(legs: Legs, node: int) -> list[Interval]:
    ours = legs.node == node
    return list(zip(legs.start[ours].tolist(), legs.end[ours].tolist(), strict=True))


def _shared(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """The times that lie in an interval of both."""
    both = [(max(a, c), min(b, d)) for a, b in some for c, d in others]
    return [(start, end) for start, end in both if start <= end]
