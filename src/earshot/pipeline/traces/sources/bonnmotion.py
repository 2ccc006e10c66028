"""BonnMotion's own format: one line a node, its waypoints as `time x y time x y ...`.

Three-dimensional files have a z after each y; it is read and left out. A node's name is the number of
its line among the nodes, from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import IO

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.readings import Reading, TraceSource, text_lines
from earshot.pipeline.traces.sources.waypoints import readings_of, way_through

Numbers = list[float]


def parse_bonnmotion(stream: IO[bytes], file: str, _options: Mapping[str, str]) -> Iterator[Reading]:
    """The waypoints of every node."""
    lines: list[tuple[int, str, Numbers]] = []
    problems: list[Reading] = []
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
            problems.append(Reading(node, line=line, problem=f"not a line of numbers: {error}"))
    width = next((width for width in (3, 4) if lines and all(_fits(n, width) for _, _, n in lines)), None)
    if width is None:
        fitting = [sum(_fits(numbers, width) for _, _, numbers in lines) for width in (3, 4)]
        if not any(fitting):
            raise TraceError(f"{file} is not BonnMotion: no line is a list of 'time x y' with times that grow")
        width = 3 if fitting[0] >= fitting[1] else 4
    ways = []
    for line, node, numbers in lines:
        if _fits(numbers, width):
            ways.append(way_through(node, line, zip(*(numbers[i::width] for i in range(3)), strict=True)))
        else:
            why = "times go back" if len(numbers) % width == 0 else f"{len(numbers)} numbers are no 'time x y' each"
            problems.append(Reading(node, line=line, problem=why))
    yield from readings_of(ways)
    yield from problems


def _fits(numbers: Numbers, width: int) -> bool:
    times = numbers[::width]
    return bool(numbers) and len(numbers) % width == 0 and all(before <= after for before, after in pairwise(times))


class BonnMotion(TraceSource):
    """`spark.read.format("bonnmotion").load("scenario.movements.gz")`."""

    format_name = "bonnmotion"
    parse = staticmethod(parse_bonnmotion)
