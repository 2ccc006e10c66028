"""ns-2 and ns-3 movement files: starting places and `setdest` orders in Tcl.

::

    $node_(0) set X_ 150.0
    $ns_ at 2.5 "$node_(0) setdest 170.0 110.0 50.4"
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import IO

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.readings import Reading, TraceSource, text_lines
from earshot.pipeline.traces.sources.waypoints import Knot, SetDestination, readings_of, way_of_destinations

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_NODE = r"\$\w+\(\s*([^)\s]+)\s*\)"
_PLACE = re.compile(rf"{_NODE}\s+set\s+([XYZ])_\s+{_NUMBER}\s*;?$")
_ORDER = re.compile(rf'\$\w+\s+at\s+{_NUMBER}\s+"{_NODE}\s+setdest\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s*"\s*;?$')
_NOT_MOTION = re.compile(r"#|\$god_|set\s|puts\s|\$\w+\s+at\s+\S+\s+\"\$god_", re.IGNORECASE)
"Comments, and what ns-2 scripts say of other things."


def parse_ns2(stream: IO[bytes], file: str, _options: Mapping[str, str]) -> Iterator[Reading]:
    """The knots of every node's way. Orders are taken by their time, as ns-2's scheduler does."""
    places: dict[str, dict[str, tuple[float, int]]] = {}
    orders: dict[str, list[SetDestination]] = {}
    problems: list[Reading] = []
    for line, text in text_lines(stream):
        if place := _PLACE.match(text):
            places.setdefault(place[1], {})[place[2]] = (float(place[3]), line)
        elif order := _ORDER.match(text):
            time, x_m, y_m, speed = (float(order[group]) for group in (1, 3, 4, 5))
            if time < 0.0 or speed < 0.0 or not math.isfinite(time + x_m + y_m + speed):
                what = "time" if time < 0.0 else "speed"
                problems.append(Reading(order[2], line=line, problem=f"a {what} below zero: {text[:80]}"))
            else:
                orders.setdefault(order[2], []).append(SetDestination(time, x_m, y_m, speed, line))
        elif text and not _NOT_MOTION.match(text):
            problems.append(Reading(line=line, problem=f"no order of motion: {text[:80]}"))
    if not places and not orders:
        raise TraceError(
            f"{file} is no ns-2 movement file: no line places or moves a node ('$node_(0) set X_ 1.0', "
            "'$ns_ at 0.0 \"$node_(0) setdest ...\"')"
        )
    ways = []
    for node in [*places, *(node for node in orders if node not in places)]:
        begins = places.get(node, {})
        if "X" in begins and "Y" in begins:
            start = Knot(0.0, begins["X"][0], begins["Y"][0], begins["X"][1])
            ways.append(way_of_destinations(node, start, orders.get(node, ())))
        else:
            lines = [order.line for order in orders.get(node, ())] or [line for _, line in begins.values()]
            problems += [Reading(node, line=line, problem=f"node {node} has no starting place") for line in lines]
    yield from readings_of(ways)
    yield from problems


class Ns2Mobility(TraceSource):
    """`spark.read.format("ns2-mobility").load("scenario.ns_movements")`."""

    format_name = "ns2-mobility"
    parse = staticmethod(parse_ns2)
