"""The parts of a chart: scales, axes, marks and text, as inline SVG without any library.

Each protocol has one mark, the same in every chart and table: a colour, and a shape for those who see no colours. The
colours were searched for: in light and dark, for full colour vision and for each kind of colour blindness, the two
nearest ones are as far apart as twelve colours can be. A test measures it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from earshot.words import amount

TEXT = 12.0
"The size of a chart's text; drawings are made as wide as they are shown, so that it stays readable."
_WIDTH_OF_A_LETTER = 0.56

Labels = Callable[[float], str]


def n(value: float) -> str:
    """A coordinate, short."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0") if shown != "-0.0" else "0"


def width_of(words: str, size: float = TEXT) -> float:
    """About how wide a text is."""
    return len(words) * size * _WIDTH_OF_A_LETTER


def text(x: float, y: float, words: str, anchor: str = "middle", css: str = "") -> str:
    """A text at a point."""
    kind = f' class="{css}"' if css else ""
    return f'<text x="{n(x)}" y="{n(y)}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """A straight line."""
    return f'<line class="{css}" x1="{n(x1)}" y1="{n(y1)}" x2="{n(x2)}" y2="{n(y2)}"/>'


def polyline(points: Iterable[tuple[float, float]], css: str) -> str:
    """A line through points."""
    return f'<polyline class="{css}" points="{" ".join(f"{n(x)},{n(y)}" for x, y in points)}"/>'


def titled(words: str, drawn: str, css: str = "", more: str = "") -> str:
    """A group that shows words when it is pointed at, and says them to a screen reader."""
    return f'<g class="{css}"{more}><title>{escape(words)}</title>{drawn}</g>'


def svg(width: float, height: float, label: str, parts: Iterable[str], css: str = "") -> str:
    """A drawing that shrinks with its column and never grows beyond its own size."""
    return (
        f'<svg class="chart {css}" role="img" aria-label="{escape(label)}" viewBox="0 0 {n(width)} {n(height)}" '
        f'style="max-width:{n(width)}px">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places on the paper."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, here = (
            (math.log10(max(end, 1e-12)) for end in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        part = (here - low) / (high - low) if high > low else 0.5
        return self.start + min(max(part, -0.05), 1.05) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values inside the scale."""
        if self.log:
            return log_ticks(self.low, self.high, about)
        return ticks(self.low, self.high, about)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from low to high: multiples of 1, 2 or 5 and a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / max(about, 1)
    size: float = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Powers of ten, and between them 2 and 5 where there is room."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        found = [tick for tick in found if low * 0.999 <= tick <= high * 1.001]
        if len(found) <= about + 2 or factors == (1,):
            return found[:: max(1, math.ceil(len(found) / (about + 2)))]
    return []


def rounded_range(values: Sequence[float], floor: float = -math.inf) -> tuple[float, float]:
    """A range with a little air around the values, not below the floor."""
    low, high = min(values), max(values)
    air = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return max(floor, low - air), high + air


def log_range(values: Sequence[float]) -> tuple[float, float]:
    """A range of positive values with air on both sides, for a logarithmic scale."""
    low, high = min(values), max(values)
    air = max((high / low) ** 0.08, 1.25)
    return low / air, high * air


@dataclass(frozen=True, slots=True)
class Axes:
    """The paper of a chart: both scales, their titles and how their values read."""

    x: Scale
    y: Scale
    x_title: str
    y_title: str
    x_label: Labels = amount
    y_label: Labels = amount
    x_values: Sequence[float] | None = None
    "Where the x axis has ticks; by default at round values."

    def drawn(self) -> list[str]:
        """Grid, ticks and titles."""
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        parts = []
        for value in self.y.ticks(5):
            at = self.y(value)
            parts += [line(left, at, right, at, "grid"), text(left - 6, at + 4, self.y_label(value), "end", "tick")]
        last_end = -math.inf
        for value in self.x_values or self.x.ticks(6):
            at, words = self.x(value), self.x_label(value)
            half = width_of(words) / 2
            parts.append(line(at, bottom, at, bottom + 4, "axis"))
            if at - half > last_end + 4:
                parts.append(text(at, bottom + 17, words, css="tick"))
                last_end = at + half
        parts += [
            line(left, bottom, right, bottom, "axis"),
            text((left + right) / 2, bottom + 35, self.x_title, css="name"),
            text(0, top - 10, self.y_title, "start", "name"),
        ]
        return parts


def axes(
    width: float, height: float, x: tuple[float, float], y: tuple[float, float], titles: tuple[str, str], *,
    labels: tuple[Labels, Labels] = (amount, amount), log: tuple[bool, bool] = (False, False),
    x_values: Sequence[float] | None = None,
) -> Axes:  # fmt: skip
    """Axes that leave room for their labels."""
    y_scale = Scale(*y, height - 42, 26, log[1])
    left = max(width_of(labels[1](value)) for value in (*y_scale.ticks(5), y[0])) + 12
    return Axes(Scale(*x, left, width - 14, log[0]), y_scale, *titles, *labels, x_values)


COLOURS = (
    ("codd", "#1879b3", "#6ac0ff"),
    ("content-odmrp", "#d70a1f", "#dc1724"),
    ("drip", "#651cdb", "#7e46fc"),
    ("drip-sf", "#be57e5", "#d069f8"),
    ("flooding", "#272112", "#766f5e"),
    ("georendezvous", "#76c713", "#80d229"),
    ("gossip", "#aa8c14", "#fee077"),
    ("odmrp", "#742e02", "#d3845f"),
    ("siena", "#65affe", "#2c76c1"),
    ("steam", "#0ea98d", "#21b195"),
    ("hearsay", "#045155", "#b8fafd"),
    ("cbf", "#8f616d", "#ecb7c5"),
)
"Whose colour it is in every report, on white, and on a dark page."


@dataclass(frozen=True, slots=True)
class Mark:
    """How a protocol is drawn."""

    colour: int
    "Which of the colours."
    shape: int
    "Which of the shapes."

    @property
    def css(self) -> str:
        """The class that gives a drawing this colour."""
        return f"m{self.colour}"

    def drawn(self, x: float = 0.0, y: float = 0.0, radius: float = 6.0) -> str:
        """The shape at a point."""
        return f'<path class="mark" d="{_path(SHAPES[self.shape], x, y, radius)}"/>'

    def key(self) -> str:
        """The mark as it stands before a name."""
        return f'<svg class="key {self.css}" viewBox="-8 -8 16 16" aria-hidden="true">{self.drawn()}</svg>'


def _regular(corners: int, inner: float = 1.0) -> tuple[tuple[float, float], ...]:
    """A regular polygon, or with an inner radius a star, that points up."""
    count = corners if inner == 1.0 else 2 * corners
    angles = [2 * math.pi * number / count for number in range(count)]
    radii = [1.0 if number % 2 == 0 else inner for number in range(count)]
    return tuple((r * math.sin(a), -r * math.cos(a)) for r, a in zip(radii, angles, strict=True))


def _cross(turn: float) -> tuple[tuple[float, float], ...]:
    arm, reach = 0.36, 1.05
    corners = [(arm, -reach), (arm, -arm), (reach, -arm), (reach, arm), (arm, arm), (arm, reach)]
    corners += [(-x, -y) for x, y in corners]
    sine, cosine = math.sin(turn), math.cos(turn)
    return tuple((x * cosine - y * sine, x * sine + y * cosine) for x, y in corners)


SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    _regular(24),  # a circle
    ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    ((0.0, -1.2), (1.0, 0.0), (0.0, 1.2), (-1.0, 0.0)),
    ((0.0, -1.1), (1.1, 0.85), (-1.1, 0.85)),
    ((0.0, 1.1), (1.1, -0.85), (-1.1, -0.85)),
    _cross(0.0),
    _cross(math.pi / 4),
    _regular(5, inner=0.45),
    _regular(6),
    ((-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)),
    ((-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)),
    ((-1.0, -1.0), (1.0, -1.0), (0.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (0.0, 0.0)),
)


def _path(corners: Iterable[tuple[float, float]], x: float, y: float, radius: float) -> str:
    return "M" + "L".join(f"{n(x + radius * cx)} {n(y + radius * cy)}" for cx, cy in corners) + "Z"


def marks_of(names: Iterable[str]) -> dict[str, Mark]:
    """A mark for each name, no two alike; a protocol has the same one in every report.

    Names are protocols, perhaps with settings after a blank. The first name of a protocol takes its colour, others
    take colours that are free; more names than colours share a colour with another shape.
    """
    wanted = sorted(set(names))
    own = {name: Mark(number, number) for number, (name, *_) in enumerate(COLOURS) if name in wanted}
    for number, (protocol, *_) in enumerate(COLOURS):
        variants = [name for name in wanted if name.split(" ")[0] == protocol]
        if variants and protocol not in own:
            own[variants[0]] = Mark(number, number)
    used = {mark.colour for mark in own.values()}
    free = [Mark(number, number) for number in range(len(COLOURS)) if number not in used]
    free += [
        Mark(number, (number + turn) % len(SHAPES)) for turn in range(1, len(SHAPES)) for number in range(len(COLOURS))
    ]
    others = [name for name in wanted if name not in own]
    if len(others) > len(free):
        free *= math.ceil(len(others) / len(free))
    return own | dict(zip(others, free, strict=False))
