"""Text formats of network simulators: ns-2 and ns-3 (setdest), BonnMotion, The ONE.

ns-2 and BonnMotion say where a node turns (its knots), not where it is every second: between two knots it moves
straight at an even speed. Their sightings are the knots, each with the speed and heading with which
the node leaves it. Every node also gets a knot at the trace's end, so that it stays until then.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import IO

from earshot.errors import TraceError
from earshot.traces.files import text_lines
from earshot.traces.sightings import Sighting, TraceOptions, number


@dataclass(frozen=True, slots=True)
class Knot:
    """A position at a time, and the speed and heading with which the node leaves it."""

    time: float
    x_m: float
    y_m: float
    line: int
    speed_m_s: float = 0.0
    heading_deg: float | None = None


@dataclass(slots=True)
class KnotPath:
    """One node's knots, in order of time."""

    node: str
    knots: list[Knot] = field(default_factory=list)

    def add(self, knot: Knot) -> None:
        """Append a knot; it replaces the last knot if that has the same time."""
        if self.knots and self.knots[-1].time == knot.time:
            self.knots[-1] = knot
        else:
            self.knots.append(knot)


def knot_sightings(paths: Iterable[KnotPath]) -> Iterator[Sighting]:
    """The knots of every path. Each path is extended to the end of the longest."""
    paths = list(paths)
    end = max((path.knots[-1].time for path in paths), default=0.0)
    for path in paths:
        last = path.knots[-1]
        if last.time < end:
            path.add(Knot(end, last.x_m, last.y_m, last.line))
        for knot in path.knots:
            yield Sighting(
                path.node,
                knot.time,
                knot.x_m,
                knot.y_m,
                speed_m_s=knot.speed_m_s,
                heading_deg=knot.heading_deg,
                line=knot.line,
            )


def _heading_deg(dx: float, dy: float) -> float | None:
    """Clockwise from north; None if there is no movement."""
    return math.degrees(math.atan2(dx, dy)) % 360.0 if dx or dy else None


# -- ns-2 and ns-3: starting positions and `setdest` orders in Tcl
#
#    $node_(0) set X_ 150.0
#    $ns_ at 2.5 "$node_(0) setdest 170.0 110.0 50.4"

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_NODE = r"\$\w+\(\s*([^)\s]+)\s*\)"
_PLACE = re.compile(rf"{_NODE}\s+set\s+([XYZ])_\s+{_NUMBER}\s*;?$")
_ORDER = re.compile(rf'\$\w+\s+at\s+{_NUMBER}\s+"{_NODE}\s+setdest\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s*"\s*;?$')
_NOT_MOTION = re.compile(r"#|\$god_|set\s|puts\s|\$\w+\s+at\s+\S+\s+\"\$god_", re.IGNORECASE)
"Comments, and lines of ns-2 scripts that do not concern motion."


@dataclass(frozen=True, slots=True)
class SetDestination:
    """ns-2's setdest: at `time` the node starts towards (x, y) in a straight line at `speed_m_s`."""

    time: float
    x_m: float
    y_m: float
    speed_m_s: float
    line: int


def parse_ns2(stream: IO[bytes], file: str, _options: TraceOptions) -> Iterator[Sighting]:
    """The knots of every node's path. Orders are executed by their time, as ns-2's scheduler does."""
    places: dict[str, dict[str, tuple[float, int]]] = {}
    orders: dict[str, list[SetDestination]] = {}
    problems: list[Sighting] = []
    for line, text in text_lines(stream):
        if found := _PLACE.match(text):
            places.setdefault(found[1], {})[found[2]] = (float(found[3]), line)
        elif order := _ORDER.match(text):
            time, x_m, y_m, speed = (float(order[group]) for group in (1, 3, 4, 5))
            if time < 0.0 or speed < 0.0 or not math.isfinite(time + x_m + y_m + speed):
                what = "time" if time < 0.0 else "speed"
                problems.append(Sighting(order[2], line=line, problem=f"a {what} below zero: {text[:80]}"))
            else:
                orders.setdefault(order[2], []).append(SetDestination(time, x_m, y_m, speed, line))
        elif text and not _NOT_MOTION.match(text):
            problems.append(Sighting(line=line, problem=f"not an order of motion: {text[:80]}"))
    if not places and not orders:
        raise TraceError(
            f"{file} is not an ns-2 movement file: no line places or moves a node ('$node_(0) set X_ 1.0', "
            "'$ns_ at 0.0 \"$node_(0) setdest ...\"')"
        )
    paths = []
    for node in [*places, *(node for node in orders if node not in places)]:
        place = places.get(node, {})
        if "X" in place and "Y" in place:
            start = Knot(0.0, place["X"][0], place["Y"][0], place["X"][1])
            paths.append(path_of_destinations(node, start, orders.get(node, ())))
        else:
            lines = [order.line for order in orders.get(node, ())] or [line for _, line in place.values()]
            problems += [Sighting(node, line=line, problem=f"node {node} has no starting place") for line in lines]
    yield from knot_sightings(paths)
    yield from problems


def path_of_destinations(node: str, start: Knot, orders: Iterable[SetDestination]) -> KnotPath:
    """The path of a node that stands at `start` and follows these orders.

    A new order takes effect at the node's present place. The node stops at its destination, or if its speed is 0.
    """
    path = KnotPath(node, [start])
    leg: SetDestination | None = None
    arrival = start.time
    for order in sorted(orders, key=lambda order: order.time):
        here = _place_at(path, leg, arrival, order.time)
        leg = order
        distance = math.hypot(order.x_m - here.x_m, order.y_m - here.y_m)
        if order.speed_m_s <= 0.0 or distance == 0.0:
            leg, arrival = None, order.time
            path.add(replace(here, line=order.line))
        else:
            arrival = order.time + distance / order.speed_m_s
            heading = _heading_deg(order.x_m - here.x_m, order.y_m - here.y_m)
            path.add(replace(here, line=order.line, speed_m_s=order.speed_m_s, heading_deg=heading))
    if leg is not None:
        path.add(Knot(arrival, leg.x_m, leg.y_m, leg.line))
    return path


def _place_at(path: KnotPath, leg: SetDestination | None, arrival: float, time: float) -> Knot:
    """Where the node is at `time`; a leg that has ended by then gets its last knot."""
    last = path.knots[-1]
    if leg is None:
        return Knot(time, last.x_m, last.y_m, last.line)
    if arrival <= time:
        path.add(Knot(arrival, leg.x_m, leg.y_m, leg.line))
        return Knot(time, leg.x_m, leg.y_m, leg.line)
    share = (time - last.time) / (arrival - last.time)
    x_m, y_m = last.x_m + (leg.x_m - last.x_m) * share, last.y_m + (leg.y_m - last.y_m) * share
    return Knot(time, x_m, y_m, leg.line)


# -- BonnMotion: one line for each node, its waypoints as `time x y time x y ...`


def parse_bonnmotion(stream: IO[bytes], file: str, _options: TraceOptions) -> Iterator[Sighting]:
    """The waypoints of every node, named by the number of its line among the nodes, from 0.

    Three-dimensional files have a z after each y, which is not used.
    """
    lines: list[tuple[int, str, list[float]]] = []
    problems: list[Sighting] = []
    count = 0
    for line, text in text_lines(stream):
        if not text or text.startswith("#"):
            continue
        node, count = str(count), count + 1
        try:
            numbers = [float(word) for word in text.split()]
            if not all(map(math.isfinite, numbers)):
                raise ValueError("a number is not finite")
            lines.append((line, node, numbers))
        except ValueError as error:
            problems.append(Sighting(node, line=line, problem=f"not a line of numbers: {error}"))
    width = next((width for width in (3, 4) if lines and all(_fits(n, width) for _, _, n in lines)), None)
    if width is None:
        fitting = [sum(_fits(numbers, width) for _, _, numbers in lines) for width in (3, 4)]
        if not any(fitting):
            raise TraceError(f"{file} is not BonnMotion: no line is a list of 'time x y' with times that grow")
        width = 3 if fitting[0] >= fitting[1] else 4
    paths = []
    for line, node, numbers in lines:
        if _fits(numbers, width):
            paths.append(_path_through(node, line, zip(*(numbers[i::width] for i in range(3)), strict=True)))
        else:
            why = "times go back" if len(numbers) % width == 0 else f"{len(numbers)} numbers are not 'time x y' each"
            problems.append(Sighting(node, line=line, problem=why))
    yield from knot_sightings(paths)
    yield from problems


def _fits(numbers: list[float], width: int) -> bool:
    times = numbers[::width]
    return bool(numbers) and len(numbers) % width == 0 and all(before <= after for before, after in pairwise(times))


def _path_through(node: str, line: int, points: Iterable[tuple[float, float, float]]) -> KnotPath:
    """The path through these (time, x, y)."""
    path = KnotPath(node)
    for time, x_m, y_m in points:
        if path.knots:
            last = path.knots[-1]
            if time > last.time:
                dx, dy = x_m - last.x_m, y_m - last.y_m
                speed = math.hypot(dx, dy) / (time - last.time)
                path.knots[-1] = replace(last, speed_m_s=speed, heading_deg=_heading_deg(dx, dy))
        path.add(Knot(time, x_m, y_m, line))
    return path


# -- The ONE's external movement: a header of bounds, then `time id x y`, one sighting a line


def parse_one(stream: IO[bytes], file: str, _options: TraceOptions) -> Iterator[Sighting]:
    """Sightings as the file has them, without The ONE's shift to the corner of the bounds."""
    header_seen = False
    for line, text in text_lines(stream):
        if not text or text.startswith("#"):
            continue
        words = text.split()
        if not header_seen:
            header_seen = True
            _check_header(words, file)
            continue
        node = words[1] if len(words) > 1 else None
        try:
            if len(words) not in (4, 5):  # a z may follow; it is not used
                raise ValueError(f"{len(words)} words, not 'time id x y'")
            yield Sighting(node, number(words[0], "time"), number(words[2], "x"), number(words[3], "y"), line=line)
        except ValueError as error:
            yield Sighting(node, line=line, problem=str(error))


def _check_header(words: list[str], file: str) -> None:
    try:
        bounds = [float(word) for word in words]
    except ValueError:
        bounds = []
    if len(bounds) not in (6, 8):
        raise TraceError(
            f"{file} is not an external movement of The ONE: its first line must be "
            "'minTime maxTime minX maxX minY maxY minZ maxZ'"
        )
