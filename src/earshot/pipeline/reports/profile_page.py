"""A trace's profile on the page: the answer in words, the network over time by range, and a map of density."""

from __future__ import annotations

import math
from collections.abc import Sequence

from earshot.pipeline.campaigns.intervals import Figure, exact
from earshot.pipeline.reports.charts import ChartLine, Measure, line_chart
from earshot.pipeline.reports.page import PageBlock, PageFigure, PageSection, PageTable, ReportPage
from earshot.pipeline.reports.svg import Mark, marks_of, n, svg, titled
from earshot.pipeline.traces.profile_text import RANGE_HEADER, RANGE_NOTE, facts_rows, profile_words, range_rows
from earshot.pipeline.traces.trace_profile import Profile, RangeProfile

MAP_WIDTH = 520.0
_SINCE = Measure("time since the trace's start", "s")


def profile_page(found: Profile) -> ReportPage:
    """A page about one trace alone."""
    return ReportPage(f"Earshot profile: {found.trace}", f"{found.nodes:,} nodes", [profile_section(found)])


def profile_section(found: Profile) -> PageSection:
    """What a report says about a trace."""
    return PageSection(f"The trace {found.trace}", profile_words(found), profile_blocks(found))


def profile_blocks(found: Profile) -> list[PageBlock]:
    """Tables, figures over time and the map."""
    marks = marks_of([f"{of_range.range_m:g} m" for of_range in found.ranges])
    return [
        PageTable("what the trace holds", ["", ""], facts_rows(found)),
        PageTable("by the radios' range", RANGE_HEADER, range_rows(found), note=RANGE_NOTE),
        _over_time(found, marks, "largest component", "largest_share", Measure("share of nodes", "share"), True),
        _over_time(found, marks, "connected components", "components", Measure("components", ""), False),
        _present(found),
        PageFigure(
            "where the nodes are",
            density_map(found),
            note=f"Nodes in a square of {found.cell_m:g} m, on average over the trace. The darker, the more.",
            table=_density_table(found),
        ),
    ]


def _over_time(found: Profile, marks: dict[str, Mark], title: str, name: str, y: Measure, bounded: bool) -> PageFigure:
    lines = [
        ChartLine(f"{of_range.range_m:g} m", marks[f"{of_range.range_m:g} m"], _points(found, of_range, name))
        for of_range in found.ranges
    ]
    rows = [
        [f"{moment.time - found.start:.1f}", f"{of_range.range_m:g}", getattr(moment, name)]
        for of_range in found.ranges
        for moment in of_range.over_time
    ]
    return PageFigure(
        f"{title} over time, by range",
        line_chart(lines, _SINCE, y, bounded=bounded),
        keys=[(line.name, line.mark, "") for line in lines],
        table=PageTable(title, ["time_s", "range_m", name], rows),
    )


def _points(found: Profile, of_range: RangeProfile, name: str) -> list[tuple[float, Figure]]:
    return [(moment.time - found.start, exact(float(getattr(moment, name)))) for moment in of_range.over_time]


def _present(found: Profile) -> PageFigure:
    mark = marks_of(["nodes"])["nodes"]
    points = [(time - found.start, exact(float(count))) for time, count in found.present_over_time]
    table = PageTable("nodes", ["time_s", "nodes"], [[f"{time:.1f}", round(figure.mean)] for time, figure in points])
    drawing = line_chart([ChartLine("nodes", mark, points)], _SINCE, Measure("nodes", ""))
    return PageFigure("nodes over time", drawing, table=table)


def density_map(found: Profile) -> str:
    """The squares of the map, the darker the more nodes are in one."""
    if not found.density:
        return ""
    side = found.cell_m
    wide_m, high_m = max(found.width_m, side), max(found.height_m, side)
    scale = min((MAP_WIDTH - 2) / wide_m, (MAP_WIDTH - 2) / high_m)
    wide, high = wide_m * scale + 2, high_m * scale + 2
    most = max(cell.nodes for cell in found.density)
    parts = [f'<rect class="ground" x="0.5" y="0.5" width="{n(wide - 1)}" height="{n(high - 1)}"/>']
    for cell in found.density:
        left, top = cell.x_m - found.box[0], found.box[3] - cell.y_m - side
        x, y = 1 + left * scale, max(1.0, 1 + top * scale)
        across, down = min(side * scale, wide - 1 - x), min(1 + (top + side) * scale, high - 1) - y
        depth = 0.08 + 0.87 * math.sqrt(cell.nodes / most)
        words = f"{cell.x_m:.0f} to {cell.x_m + side:.0f} m east, {cell.y_m:.0f} m north: {cell.nodes:.2f} nodes"
        square = (
            f'<rect class="cell" x="{n(x)}" y="{n(y)}" width="{n(across)}" height="{n(down)}" '
            f'fill-opacity="{depth:.2f}"/>'
        )
        parts.append(titled(words, square))
    return svg(wide, high, "where the nodes are", parts, f"map {marks_of(['nodes'])['nodes'].css}")


def _density_table(found: Profile) -> PageTable:
    rows: Sequence[Sequence[object]] = [[cell.x_m, cell.y_m, f"{cell.nodes:.4f}"] for cell in found.density]
    return PageTable("density", ["x_m", "y_m", "nodes"], rows)
