"""The report's part about capacity: how many times the event rate each protocol carries."""

from __future__ import annotations

from collections.abc import Mapping

from earshot.pipeline.campaigns.capacity import CapacityComparison, ProtocolCapacity
from earshot.pipeline.campaigns.intervals import Figure, exact
from earshot.pipeline.reports.charts import ChartLine, Measure, bar, line_chart
from earshot.pipeline.reports.page import PageBlock, PageCell, PageFigure, PageTable, PageVerdict
from earshot.pipeline.reports.svg import Mark
from earshot.words import amount, percent, share

LOAD = Measure("multiple of the scenario's event rate", "x")


def capacity_words(found: CapacityComparison) -> str:
    """Who carries most, in a sentence."""
    able = [row for row in found.protocols if row.capacity is not None]
    if not able:
        never = [words for row in found.protocols if (words := row.never_words(found.share))]
        return ". ".join(never or [f"No protocol delivers {percent(found.share)} of the reachable at any load"]) + "."
    best, *others = able
    words = f"{best.protocol} carries {capacity_text(best)} the event rate"
    words += f" with {percent(found.share)} of the reachable delivered"
    if others:
        words += f", the next, {others[0].protocol}, {capacity_text(others[0])}"
    return f"{words}."


def capacity_text(row: ProtocolCapacity) -> str:
    """A capacity as people read it."""
    if row.capacity is None:
        return "not known" if row.error else "none"
    return f"{amount(row.capacity)} ×" + (" or more" if row.exceeds else "")


def capacity_blocks(found: CapacityComparison, marks: Mapping[str, Mark]) -> list[PageBlock]:
    """The sentence, ranked bars, delivery against load, and airtime at each load."""
    best = next((row for row in found.protocols if row.capacity is not None), None)
    headline = f"{best.protocol} carries most: {capacity_text(best)} the event rate" if best else ""
    blocks: list[PageBlock] = [
        PageVerdict("", headline, marks[best.protocol] if best else None, capacity_words(found)),
        PageFigure("capacity: more is better", shown=_bars(found, marks)),
    ]
    rows = [(row.protocol, marks[row.protocol], row) for row in found.protocols if row.points]
    delivery = [ChartLine(name, mark, _delivered(row)) for name, mark, row in rows]
    airtime = [ChartLine(name, mark, points) for name, mark, row in rows if (points := _airtime(row))]
    keys = [(name, mark, "") for name, mark, _ in rows]
    delivered = Measure("delivery of the reachable", "share")
    drawn = line_chart(delivery, LOAD, delivered, log_x=True, bounded=True, goal=found.share)
    note = f"The dashed line is the wanted share, {share(found.share)}."
    blocks.append(PageFigure("delivery against load", drawn, keys=keys, note=note, table=_points(found)))
    if airtime:
        drawn = line_chart(airtime, LOAD, Measure("airtime", "percent"), log_x=True)
        blocks.append(PageFigure("airtime against load", drawn, keys=keys))
    return blocks


def _delivered(row: ProtocolCapacity) -> list[tuple[float, Figure]]:
    return [(point.multiple, exact(point.delivery_of_reachable)) for point in row.points]


def _airtime(row: ProtocolCapacity) -> list[tuple[float, Figure]]:
    return [(point.multiple, exact(point.airtime_mean)) for point in row.points if point.airtime_mean is not None]


def _bars(found: CapacityComparison, marks: Mapping[str, Mark]) -> PageTable:
    most = max((row.capacity or 0.0 for row in found.protocols), default=0.0)
    lines = [
        [
            PageCell(row.protocol, mark=marks[row.protocol], note=row.error or row.never_words(found.share)),
            PageCell(row.capacity, " ", drawing=bar(exact(row.capacity or 0.0), most, marks[row.protocol])),
            PageCell(row.capacity, capacity_text(row), css="number"),
        ]
        for row in found.protocols
    ]
    return PageTable("capacity", ["protocol", "", "capacity"], lines, css="bars", data=_points(found))


def _points(found: CapacityComparison) -> PageTable:
    header = ["protocol", "multiple", "events a second", "delivery of the reachable", "delivery ratio"]
    header += ["airtime", "airtime, busiest", "seeds"]
    lines = [
        [
            row.protocol,
            point.multiple,
            point.events_per_s,
            point.delivery_of_reachable,
            point.delivery_ratio,
            "" if point.airtime_mean is None else point.airtime_mean,
            "" if point.airtime_busiest is None else point.airtime_busiest,
            point.seeds,
        ]
        for row in found.protocols
        for point in row.points
    ]
    return PageTable("capacity", header, lines)
