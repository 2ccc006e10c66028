"""One mark a protocol, the same in every chart and table: a colour, and a shape for those who see no colours.

The colours were searched for: in light and dark, for full colour vision and for each kind of colour
blindness, the two nearest ones are as far apart as twelve colours can be. A test measures it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from earshot.pipeline.reports.svg import n

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


def _regular(corners: int, turn: float = 0.0, inner: float = 1.0) -> tuple[tuple[float, float], ...]:
    """A regular polygon, or with an inner radius a star, that points up."""
    count = corners if inner == 1.0 else 2 * corners
    angles = [turn + 2 * math.pi * number / count for number in range(count)]
    radii = [1.0 if number % 2 == 0 else inner for number in range(count)]
    return tuple((r * math.sin(a), -r * math.cos(a)) for r, a in zip(radii, angles, strict=True))


def _cross(turn: float, arm: float = 0.36, reach: float = 1.05) -> tuple[tuple[float, float], ...]:
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
