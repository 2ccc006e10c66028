"""The ONE simulator's external movement: a header of bounds, then `time id x y`, one sighting a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.readings import Reading, TraceSource, number, text_lines


def parse_one(stream: IO[bytes], file: str, _options: Mapping[str, str]) -> Iterator[Reading]:
    """Readings as the file has them; The ONE's own shift to the bounds' corner is not made."""
    header_seen = False
    for line, text in text_lines(stream):
        if not text or text.startswith("#"):
            continue
        words = text.split()
        if not header_seen:
            header_seen = True
            _check_header(words, file)
            continue
        yield _reading(words, line)


def _check_header(words: list[str], file: str) -> None:
    try:
        bounds = [float(word) for word in words]
    except ValueError:
        bounds = []
    if len(bounds) not in (6, 8):
        raise TraceError(
            f"{file} is no external movement of The ONE: its first line must be "
            "'minTime maxTime minX maxX minY maxY minZ maxZ'"
        )


def _reading(words: list[str], line: int) -> Reading:
    node = words[1] if len(words) > 1 else None
    try:
        if len(words) not in (4, 5):  # a z may follow; it is left out
            raise ValueError(f"{len(words)} words, not 'time id x y'")
        return Reading(node, number(words[0], "time"), number(words[2], "x"), number(words[3], "y"), line=line)
    except ValueError as error:
        return Reading(node, line=line, problem=str(error))


class OneMovement(TraceSource):
    """`spark.read.format("one-movement").load("movement.txt")`."""

    format_name = "one-movement"
    parse = staticmethod(parse_one)
