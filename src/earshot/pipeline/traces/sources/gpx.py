"""GPX: the points of its tracks that carry a time, streamed.

A file with one track is one node, named after the file; with several, each track is a node of its
own, `file/track name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.readings import (
    Reading,
    TraceSource,
    break_in,
    degrees,
    open_trace,
    optional_number,
    stem,
)
from earshot.pipeline.traces.sources.streamed_xml import BreaksOff, elements


def parse_gpx(stream: IO[bytes], file: str, _options: Mapping[str, str]) -> Iterator[Reading]:
    """Readings of a GPX file's track points."""
    name = stem(file)
    with open_trace(file) as again:
        several = _tracks_in(again) > 1
    track, title = 0, ""
    path: list[str] = []
    point: dict[str, str] = {}
    line = 0
    try:
        for element in elements(stream, file, root="gpx", expected="GPX"):
            if element.starts:
                path.append(element.name)
                if element.name == "trk":
                    track, title = track + 1, ""
                elif element.name == "trkpt":
                    point, line = dict(element.attributes), element.line
                continue
            path.pop()
            if element.name == "trkpt":
                yield _reading(point, f"{name}/{title or track}" if several else name, line)
            elif "trkpt" in path:
                point.setdefault(element.name, element.text)
            elif element.name == "name" and path[-1:] == ["trk"]:
                title = element.text
    except BreaksOff as error:
        if not line:
            raise TraceError(f"{file} is not GPX: {error}") from None
        yield Reading(line=error.line, problem=f"the file breaks off: {break_in(stream) or error}")


def _tracks_in(stream: IO[bytes]) -> int:
    """How many tracks the file has, 2 for several: found by their tags, without parsing."""
    count, tail = 0, b""
    while count < 2 and (block := stream.read(1 << 20)):
        text = tail + block
        count += text.count(b"<trk>") + text.count(b"<trk ")
        tail = text[-4:]
    return count


def _reading(said: Mapping[str, str], node: str, line: int) -> Reading:
    try:
        if not said.get("time"):
            raise ValueError("no time")
        lat_deg, lon_deg = degrees(said.get("lat"), said.get("lon"))
        speed, course = optional_number(said.get("speed")), optional_number(said.get("course"))
        return Reading(node, moment(said["time"]), None, None, lat_deg, lon_deg, speed, course, line)
    except ValueError as error:
        return Reading(node, line=line, problem=str(error))


def moment(text: str) -> float:
    """Seconds since the epoch of an ISO 8601 time; without a zone it is UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"time {text[:40]!r} is not a date and time") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


class Gpx(TraceSource):
    """`spark.read.format("gpx").load("tracks/*.gpx")`."""

    format_name = "gpx"
    by_line = False
    parse = staticmethod(parse_gpx)
