"""SUMO's floating car data as XML: timesteps of vehicles, persons and containers, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.readings import (
    Reading,
    TraceSource,
    break_in,
    degrees,
    number,
    optional_number,
)
from earshot.pipeline.traces.sources.streamed_xml import BreaksOff, elements

MOVING = ("vehicle", "person", "container")


def parse_fcd(stream: IO[bytes], file: str, options: Mapping[str, str]) -> Iterator[Reading]:
    """Readings of an FCD export. With the option `geo`, x and y are longitude and latitude."""
    geo = str(options.get("geo", "false")).lower() == "true"
    time: str | None = None
    line = 0
    try:
        for element in elements(stream, file, root="fcd-export", expected="SUMO FCD"):
            if not element.starts:
                continue
            if element.name == "timestep":
                time = element.attributes.get("time")
            elif element.name in MOVING:
                line = element.line
                yield _reading(element.attributes, time, line, geo)
    except BreaksOff as error:
        if not line:
            raise TraceError(f"{file} is not SUMO FCD: {error}") from None
        yield Reading(line=error.line, problem=f"the file breaks off: {break_in(stream) or error}")


def _reading(said: Mapping[str, str], time: str | None, line: int, geo: bool) -> Reading:
    node = said.get("id")
    try:
        if not node:
            raise ValueError("no id")
        at = number(time, "time")
        speed, heading = optional_number(said.get("speed")), optional_number(said.get("angle"))
        if geo:
            lat_deg, lon_deg = degrees(said.get("y"), said.get("x"))
            return Reading(node, at, None, None, lat_deg, lon_deg, speed, heading, line)
        x_m, y_m = number(said.get("x"), "x"), number(said.get("y"), "y")
        return Reading(node, at, x_m, y_m, None, None, speed, heading, line)
    except ValueError as error:
        return Reading(node, line=line, problem=str(error))


class SumoFcd(TraceSource):
    """`spark.read.format("sumo-fcd").load("trace.xml.gz")`."""

    format_name = "sumo-fcd"
    by_line = False
    parse = staticmethod(parse_fcd)
