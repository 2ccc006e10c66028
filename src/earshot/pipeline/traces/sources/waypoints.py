"""Ways given by waypoints: straight and even motion between two knots.

ns-2 and BonnMotion say where a node turns, not where it is every second. Their readings are the
knots: where a leg begins, with its speed and heading. Every node also gets a knot at the trace's end,
where it stands by then: it does not vanish with its last turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from earshot.pipeline.traces.sources.readings import Reading


@dataclass(frozen=True, slots=True)
class Knot:
    """A place at a time, and the speed and heading with which the node leaves it."""

    time: float
    x_m: float
    y_m: float
    line: int
    speed_m_s: float = 0.0
    heading_deg: float | None = None


@dataclass(slots=True)
class Way:
    """One node's knots, in order of time."""

    node: str
    knots: list[Knot] = field(default_factory=list)

    def to(self, knot: Knot) -> None:
        """Append a knot; one at the time of the last takes its place."""
        if self.knots and self.knots[-1].time == knot.time:
            self.knots[-1] = knot
        else:
            self.knots.append(knot)


@dataclass(frozen=True, slots=True)
class SetDestination:
    """ns-2's setdest: at `time` the node sets out for (x, y) in a straight line at `speed_m_s`."""

    time: float
    x_m: float
    y_m: float
    speed_m_s: float
    line: int


def heading_deg(dx: float, dy: float) -> float | None:
    """Clockwise from north; None of no movement."""
    return math.degrees(math.atan2(dx, dy)) % 360.0 if dx or dy else None


def way_of_destinations(node: str, start: Knot, orders: Iterable[SetDestination]) -> Way:
    """The way a node goes that stands at `start` and follows these orders.

    A new order meets the node wherever it is; having arrived, it stands; a speed of 0 stops it.
    """
    way = Way(node, [start])
    leg: SetDestination | None = None
    arrival = start.time
    for order in sorted(orders, key=lambda order: order.time):
        here = _place_at(way, leg, arrival, order.time)
        leg = order
        distance = math.hypot(order.x_m - here.x_m, order.y_m - here.y_m)
        if order.speed_m_s <= 0.0 or distance == 0.0:
            leg, arrival = None, order.time
            way.to(replace(here, line=order.line))
        else:
            arrival = order.time + distance / order.speed_m_s
            heading = heading_deg(order.x_m - here.x_m, order.y_m - here.y_m)
            way.to(replace(here, line=order.line, speed_m_s=order.speed_m_s, heading_deg=heading))
    if leg is not None:
        way.to(Knot(arrival, leg.x_m, leg.y_m, leg.line))
    return way


def _place_at(way: Way, leg: SetDestination | None, arrival: float, time: float) -> Knot:
    """Where the node is at `time`; a leg that has ended by then gets its last knot."""
    last = way.knots[-1]
    if leg is None:
        return Knot(time, last.x_m, last.y_m, last.line)
    if arrival <= time:
        way.to(Knot(arrival, leg.x_m, leg.y_m, leg.line))
        return Knot(time, leg.x_m, leg.y_m, leg.line)
    share = (time - last.time) / (arrival - last.time)
    return Knot(
        time,
        last.x_m + (leg.x_m - last.x_m) * share,
        last.y_m + (leg.y_m - last.y_m) * share,
        leg.line,
    )


def way_through(node: str, line: int, knots: Iterable[tuple[float, float, float]]) -> Way:
    """The way through these (time, x, y)."""
    way = Way(node)
    for time, x_m, y_m in knots:
        if way.knots:
            last = way.knots[-1]
            if time > last.time:
                dx, dy = x_m - last.x_m, y_m - last.y_m
                speed = math.hypot(dx, dy) / (time - last.time)
                way.knots[-1] = replace(last, speed_m_s=speed, heading_deg=heading_deg(dx, dy))
        way.to(Knot(time, x_m, y_m, line))
    return way


def readings_of(ways: Iterable[Way]) -> Iterator[Reading]:
    """Every way's knots, each way carried on to the end of the last."""
    ways = list(ways)
    end = max((way.knots[-1].time for way in ways), default=0.0)
    for way in ways:
        last = way.knots[-1]
        if last.time < end:
            way.to(Knot(end, last.x_m, last.y_m, last.line))
        for knot in way.knots:
            yield Reading(
                way.node,
                knot.time,
                knot.x_m,
                knot.y_m,
                speed_m_s=knot.speed_m_s,
                heading_deg=knot.heading_deg,
                line=knot.line,
            )
