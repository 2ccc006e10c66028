"""The report's charts: delivery against cost, ranked bars, lines with intervals, causes of losses, maps.

Each returns inline SVG. A chart is drawn as wide as it is shown; where a phone needs another one, the
page holds both and shows one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.reports.svg import (
    Axes,
    Mark,
    axes,
    line,
    log_range,
    n,
    polyline,
    rounded_range,
    svg,
    text,
    titled,
    width_of,
)
from earshot.words import amount, formatted, interval, seconds

LOG_FROM = 25.0
"A cost axis is logarithmic where the largest value is this many times the smallest."


@dataclass(frozen=True, slots=True)
class Spot:
    """One protocol in the picture of delivery against cost."""

    name: str
    mark: Mark
    delivery: Figure
    cost: Figure
    latency_s: float
    "NaN: not known; no bubble is drawn."
    on_front: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """What an axis shows: its name and the unit its numbers are written in."""

    title: str
    unit: str

    def label(self, value: float) -> str:
        return formatted(value, self.unit)

    def words(self, figure: Figure) -> str:
        """The mean, and its interval where there is one."""
        around = interval(figure.low, figure.high, self.unit)
        return f"{self.label(figure.mean)} ({around})" if around else self.label(figure.mean)


def delivery_against_cost(spots: Sequence[Spot], delivery: Measure, cost: Measure, width: float, height: float) -> str:
    """The picture: up is more delivered, left is cheaper; the front is what no other protocol dominates."""
    costs = [end for spot in spots for end in _ends(spot.cost) if end > 0] or [1.0]
    means = [spot.cost.mean for spot in spots]
    log = min(means) > 0 and max(means) / min(means) >= LOG_FROM
    x = log_range([max(value, min(means) / 3) for value in costs]) if log else rounded_range([0.0, *costs], 0.0)
    least = min(spot.delivery.mean for spot in spots)
    ends = [max(end, least - max(1 - least, 0.05)) for spot in spots for end in _ends(spot.delivery)]
    low, _ = rounded_range(ends, 0.0)  # of few seeds, an interval may be wider than all differences
    y = (low, 1.0 + (1.0 - low) * 0.06)
    paper = axes(width, height, x, y, (f"{cost.title} →", f"{delivery.title} ↑"),
                 labels=(cost.label, lambda value: delivery.label(value) if value <= 1 else ""),
                 log=(log, False))  # fmt: skip
    front = sorted((spot for spot in spots if spot.on_front), key=lambda spot: spot.cost.mean)
    parts = paper.drawn()
    parts.append(_front(paper, front))
    places = {spot.name: (paper.x(spot.cost.mean), paper.y(spot.delivery.mean)) for spot in spots}
    taken = [(px - 8, py - 8, px + 8, py + 8) for px, py in places.values()]
    labels = _placed(spots, places, taken, paper)
    for spot in sorted(spots, key=lambda spot: -_bubble(spot.latency_s)):
        px, py = places[spot.name]
        words = f"{spot.name}: {delivery.title} {delivery.words(spot.delivery)}, {cost.title} {cost.words(spot.cost)}"
        if not math.isnan(spot.latency_s):
            words += f", latency p95 {seconds(spot.latency_s)}"
        drawn = [f'<circle class="bubble" cx="{n(px)}" cy="{n(py)}" r="{n(_bubble(spot.latency_s))}"/>']
        drawn += _whiskers(paper, spot)
        drawn += [spot.mark.drawn(px, py, 6.5), labels[spot.name]]
        parts.append(titled(words, "".join(drawn), f"spot {spot.mark.css}", f' data-name="{escape(spot.name)}"'))
    return svg(width, height, f"{delivery.title} against {cost.title}", parts)


def _ends(figure: Figure) -> tuple[float, ...]:
    return (figure.low, figure.mean, figure.high) if figure.has_interval else (figure.mean,)


def _bubble(latency_s: float) -> float:
    """The radius of a bubble: 7 for a millisecond, 5 more for each ten times as long."""
    if math.isnan(latency_s):
        return 0.0
    return 7.0 + 5.0 * min(max(0.0, math.log10(max(latency_s, 1e-3)) + 3), 6.0)


def bubble_key() -> str:
    """What the bubbles' sizes mean."""
    parts, at = [], 4.0
    for latency_s in (0.001, 0.1, 10.0):
        radius, words = _bubble(latency_s), seconds(latency_s)
        parts.append(f'<circle class="bubble" cx="{n(at + radius)}" cy="30" r="{n(radius)}"/>')
        parts.append(text(at + 2 * radius + 4, 34, words, "start", "tick"))
        at += 2 * radius + 16 + width_of(words)
    drawn = "".join(parts)
    return f'<svg viewBox="0 0 {n(at)} 60" width="{n(at)}" height="60" aria-hidden="true">{drawn}</svg>'


def _front(paper: Axes, front: Sequence[Spot]) -> str:
    """A staircase: what can be had for a given cost."""
    if not front:
        return ""
    points = [(paper.x(front[0].cost.mean), paper.y.start)]
    for spot in front:
        points += [(paper.x(spot.cost.mean), points[-1][1]), (paper.x(spot.cost.mean), paper.y(spot.delivery.mean))]
    points.append((paper.x.end, points[-1][1]))
    return polyline(points, "front")


def _whiskers(paper: Axes, spot: Spot) -> list[str]:
    px, py = paper.x(spot.cost.mean), paper.y(spot.delivery.mean)
    parts = []
    if spot.delivery.has_interval:
        parts.append(line(px, paper.y(spot.delivery.low), px, paper.y(spot.delivery.high), "whisker"))
    if spot.cost.has_interval:
        parts.append(line(paper.x(spot.cost.low), py, paper.x(spot.cost.high), py, "whisker"))
    return parts


Box = tuple[float, float, float, float]


def _placed(
    spots: Sequence[Spot], places: Mapping[str, tuple[float, float]], taken: list[Box], paper: Axes
) -> dict[str, str]:
    """A label beside each point where it covers no other; one that stands further away repeats the point's mark."""
    labels: dict[str, str] = {}
    for spot in sorted(spots, key=lambda spot: (-spot.on_front, -spot.delivery.mean, spot.name)):
        px, py = places[spot.name]
        others = [place for name, place in places.items() if name != spot.name]
        free = [
            label
            for label in _tries(px, py, width_of(spot.name, 13) + 2)
            if label.inside(paper) and not any(_overlap(label.box, other) for other in taken)
        ]
        own = [
            label
            for label in free
            if all(math.dist(label.anchor, (px, py)) < math.dist(label.anchor, place) for place in others)
        ]
        chosen = next(iter([*own, *free]), _LabelPlace(px, py, 11, 0, "start", width_of(spot.name, 13)))
        taken.append(chosen.box)
        labels[spot.name] = chosen.drawn(spot)
    return labels


@dataclass(frozen=True, slots=True)
class _LabelPlace:
    """Where a label may stand: beside its point, on one side, so far up or down."""

    x: float
    y: float
    reach: float
    down: float
    side: str
    wide: float

    @property
    def is_far(self) -> bool:
        return abs(self.down) > 15

    @property
    def anchor(self) -> tuple[float, float]:
        """The end of the label that is next to its point."""
        return (self.x + self.reach if self.side == "start" else self.x - self.reach), self.y + self.down

    @property
    def box(self) -> Box:
        x, y = self.anchor
        wide = self.wide + 12 * self.is_far
        return (x if self.side == "start" else x - wide, y - 8, x + wide if self.side == "start" else x, y + 6)

    def inside(self, paper: Axes) -> bool:
        left, top, right, bottom = self.box
        return left >= paper.x.start and right <= paper.x.end + 12 and top >= 20 and bottom <= paper.y.start

    def drawn(self, spot: Spot) -> str:
        x, y = self.anchor
        css = "label on-front" if spot.on_front else "label"
        if not self.is_far:
            return text(x, y + 4, spot.name, self.side, css)
        towards = 1 if self.side == "start" else -1
        leader = line(self.x, self.y, x, y, "leader") + spot.mark.drawn(x + 5 * towards, y, 4)
        return leader + text(x + 12 * towards, y + 4, spot.name, self.side, css)


def _tries(x: float, y: float, wide: float) -> list[_LabelPlace]:
    """Places for a label, the best first."""
    return [
        _LabelPlace(x, y, reach, down, side, wide)
        for reach, downs in ((9, (-11, 11)), (11, (0,)), (14, (-27, 27, -41, 41, -55, 55, 69, -69, 83, 97, 111, 125)))
        for down in downs
        for side in ("start", "end")
    ]


def _overlap(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def bar(figure: Figure, most: float, mark: Mark, ceiling: float = math.nan) -> str:
    """One bar of a ranking, from 0 to `most`, with its interval, and a line where the ceiling is."""

    def at(value: float) -> str:
        return n(1000 * min(value / most, 1.0)) if most > 0 else "0"

    parts = [f'<rect class="mark" x="0" y="4" width="{at(figure.mean)}" height="16"/>']
    if figure.has_interval and figure.high > figure.low:
        low, high = at(figure.low), at(figure.high)
        parts.append(f'<path class="whisker" d="M{low} 12H{high}M{low} 7V17M{high} 7V17"/>')
    if not math.isnan(ceiling):
        parts.append(f'<path class="ceiling" d="M{at(ceiling)} 0V24"/>')
    drawn = "".join(parts)
    return (
        f'<svg class="bar {mark.css}" viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    )


def stacked(parts: Sequence[tuple[str, str, float]], most: float, mark: Mark) -> str:
    """One bar made of parts (css class, words, value), from 0 to `most`."""
    drawn, at = [], 0.0
    for css, words, value in parts:
        width = 1000 * value / most if most > 0 else 0.0
        drawn.append(titled(words, f'<rect class="{css}" x="{n(at)}" y="3" width="{n(width)}" height="18"/>'))
        at += width
    return (
        f'<svg class="bar {mark.css}" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape("; ".join(words for _, words, _ in parts))}">{"".join(drawn)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line of a chart: values over an axis."""

    name: str
    mark: Mark
    points: Sequence[tuple[float, Figure]]
    dashes: int = 0
    "Which dash pattern: lines of one protocol differ by it."
    note: str = ""
    "What the line's dashes stand for."
    connected: bool = True
    "False: only marks, as for a paper's own figures."


def line_chart(
    lines: Sequence[ChartLine], x: Measure, y: Measure, *, width: float = 520, height: float = 300,
    log_x: bool = False, bounded: bool = False, goal: float = math.nan,
) -> str:  # fmt: skip
    """Lines with intervals; `bounded` values are shares, whose axis ends at 1; `goal` is drawn across."""
    xs = sorted({point for series in lines for point, _ in series.points})
    ys = [end for series in lines for _, figure in series.points for end in _ends(figure) if math.isfinite(end)]
    if not xs or not ys:
        return ""
    log_x = log_x and xs[0] > 0
    x_range = (log_range(xs) if xs[0] < xs[-1] else (xs[0] / 2, xs[0] * 2)) if log_x else rounded_range(xs)
    y_range = rounded_range([*ys, *([] if math.isnan(goal) else [goal])])
    if min(ys) >= 0:
        y_range = (0.0, y_range[1]) if not bounded or y_range[0] < 0.5 else y_range
        y_range = (max(0.0, y_range[0]), y_range[1])
    if bounded:
        y_range = (y_range[0], 1.0 if max(ys) <= 1 else y_range[1])
    few = xs if len(xs) <= 8 else None
    paper = axes(width, height, x_range, y_range, (x.title, y.title), labels=(x.label, y.label), log=(log_x, False),
                 x_values=few)  # fmt: skip
    parts = paper.drawn()
    if not math.isnan(goal):
        parts.append(line(paper.x.start, paper.y(goal), paper.x.end, paper.y(goal), "goal"))
    for number, series in enumerate(lines):
        aside = (number - (len(lines) - 1) / 2) * min(3.0, 24 / max(len(lines), 1)) if few else 0.0
        parts.append(_series(series, paper, x, y, aside))
    return svg(width, height, f"{y.title} by {x.title}", parts)


def dash_key(dashes: int, words: str) -> str:
    """What a dash pattern means."""
    drawn = line(2, 10, 32, 10, f"line dash-{dashes % 4}")
    # The words stand outside of the drawing: a browser's font may be wider than ours, and would be cut off.
    return f'<span class="dashes"><svg viewBox="0 0 34 20" width="34" height="20">{drawn}</svg> {escape(words)}</span>'


def _series(series: ChartLine, paper: Axes, x: Measure, y: Measure, aside: float) -> str:
    name = f"{series.name} ({series.note})" if series.note else series.name
    places = [(paper.x(value) + aside, paper.y(figure.mean)) for value, figure in series.points]
    drawn = [polyline(places, f"line dash-{series.dashes % 4}")] if series.connected else []
    for (px, py), (value, figure) in zip(places, series.points, strict=True):
        inner = line(px, paper.y(figure.low), px, paper.y(figure.high), "whisker") if figure.has_interval else ""
        drawn.append(
            titled(f"{name}, {x.title} {x.label(value)}: {y.words(figure)}", inner + series.mark.drawn(px, py, 4.5))
        )
    css = f"series {series.mark.css}" if series.connected else f"series open {series.mark.css}"
    return f'<g class="{css}" data-name="{escape(series.name)}">{"".join(drawn)}</g>'


@dataclass(frozen=True, slots=True)
class AreaCell:
    """A square of the map, by its south-west corner."""

    x_m: float
    y_m: float
    expected: float
    lost: float


Track = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Ground:
    """The part of the plane that maps of one network show, and what is drawn under them."""

    left_m: float
    bottom_m: float
    wide_m: float
    high_m: float
    tracks: Sequence[Track]
    id: str
    "The drawing of the tracks, which all maps share."

    WIDTH: ClassVar[float] = 240.0

    @property
    def scale(self) -> float:
        return (self.WIDTH - 2) / max(self.wide_m, self.high_m, 1.0)

    def place(self, x_m: float, y_m: float) -> tuple[float, float]:
        return 1 + (x_m - self.left_m) * self.scale, 1 + (self.bottom_m + self.high_m - y_m) * self.scale

    def drawn(self, first: bool) -> str:
        """The tracks; after the first map only a reference to them."""
        if not first:
            return f'<use href="#{self.id}"/>'
        lines = [polyline((self.place(*point) for point in track), "track") for track in self.tracks if len(track) > 1]
        return f'<g id="{self.id}">{"".join(lines)}</g>'


def ground_of(cells: Iterable[AreaCell], side_m: float, tracks: Sequence[Track], name: str) -> Ground:
    """The ground that holds all these squares and tracks."""
    ends = [end for cell in cells for end in ((cell.x_m, cell.y_m), (cell.x_m + side_m, cell.y_m + side_m))]
    ends += [point for track in tracks for point in track]
    left, bottom = min(x for x, _ in ends), min(y for _, y in ends)
    return Ground(left, bottom, max(x for x, _ in ends) - left, max(y for _, y in ends) - bottom, tracks, name)


def area_map(
    cells: Sequence[AreaCell], side_m: float, ground: Ground, mark: Mark, name: str, most: float, first: bool
) -> str:
    """Where deliveries were lost, by the place of publication: the darker, the larger the share, up to `most`."""
    wide, high = ground.wide_m * ground.scale + 2, ground.high_m * ground.scale + 2
    parts = [
        f'<rect class="ground" x="0.5" y="0.5" width="{n(wide - 1)}" height="{n(high - 1)}"/>',
        ground.drawn(first),
    ]
    size = n(side_m * ground.scale)
    for cell in cells:
        px, py = ground.place(cell.x_m, cell.y_m + side_m)
        part = cell.lost / cell.expected if cell.expected else 0.0
        words = (
            f"{name}, {cell.x_m:.0f} to {cell.x_m + side_m:.0f} m east, {cell.y_m:.0f} to {cell.y_m + side_m:.0f} m "
            f"north: lost {amount(cell.lost)} of {amount(cell.expected)} expected"
        )
        depth = 0.15 + 0.8 * min(part / most, 1.0) if part and most else 0.0
        square = (
            f'<rect class="cell" x="{n(px)}" y="{n(py)}" width="{size}" height="{size}" fill-opacity="{depth:.2f}"/>'
        )
        parts.append(titled(words, square))
    return svg(wide, high, f"{name}: where deliveries were lost", parts, f"map {mark.css}")


def track_map(tracks: Iterable[Track], label: str) -> str:
    """Where the nodes went."""
    kept = [list(track) for track in tracks if track]
    xs, ys = [x for track in kept for x, _ in track], [y for track in kept for _, y in track]
    if not xs:
        return ""
    wide_m, high_m = max(max(xs) - min(xs), 1.0), max(max(ys) - min(ys), 1.0)
    width = 520.0
    height = min(max(width * high_m / wide_m, 160.0), 620.0)
    scale = min((width - 16) / wide_m, (height - 44) / high_m)

    def place(x_m: float, y_m: float) -> tuple[float, float]:
        return 8 + (x_m - min(xs)) * scale, height - 36 - (y_m - min(ys)) * scale

    parts = [
        polyline((place(*point) for point in track), "track")
        if len(track) > 1
        else f'<circle class="still" cx="{n(place(*track[0])[0])}" cy="{n(place(*track[0])[1])}" r="2"/>'
        for track in kept
    ]
    bar_m = 10.0 ** math.floor(math.log10(wide_m / 3))
    bar_m *= next(factor for factor in (5, 2, 1) if bar_m * factor <= wide_m / 2.5 or factor == 1)
    words = f"{bar_m:.0f} m" if bar_m < 1000 else f"{bar_m / 1000:.0f} km"
    parts += [
        line(8, height - 14, 8 + bar_m * scale, height - 14, "axis"),
        text(14 + bar_m * scale, height - 10, words, "start", "tick"),
    ]
    return svg(width, height, label, parts)
