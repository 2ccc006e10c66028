"""XML formats: SUMO's floating car data and GPX, as a stream of tags and never a tree.

A file of any size takes the memory of one block. Expat knows the line of every element (libxml2 loses
count at 65,535). Against hostile input: entities that the document declares are refused, nothing
outside it is loaded, depth and the size of one tag are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import IO, NamedTuple
from xml.parsers import expat

from earshot.errors import TraceError
from earshot.traces.files import break_in, open_trace, stem
from earshot.traces.sightings import (
    Sighting,
    TraceOptions,
    degrees,
    epoch_seconds,
    number,
    optional_number,
    others_text,
)

MAX_DEPTH = 250
MAX_TAG_BYTES = 8 << 20
_BLOCK_BYTES = 1 << 17
_HEADER_BYTES = 1 << 16


class XmlTag(NamedTuple):
    """The start of an element, with its attributes, or its end, with the text directly in it."""

    starts: bool
    name: str
    attributes: Mapping[str, str]
    text: str
    line: int


class BreaksOff(ValueError):
    """The document is not well formed from `line` on."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def xml_tags(stream: IO[bytes], file: str, *, root: str, expected: str) -> Iterator[XmlTag]:
    """Every element's start and end, by local name.

    TraceError if the document is of another kind, BreaksOff if it is not well formed.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    found: list[XmlTag] = []
    texts: list[list[str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if not texts and local != root:
            raise TraceError(f"{file} is not {expected}: its root element is <{local}>, not <{root}>")
        texts.append([])
        if len(texts) > MAX_DEPTH:
            raise TraceError(f"{file} is nested deeper than {MAX_DEPTH} elements, line {parser.CurrentLineNumber}")
        found.append(XmlTag(True, local, attributes, "", parser.CurrentLineNumber))

    def end(name: str) -> None:
        text = "".join(texts.pop()).strip()
        found.append(XmlTag(False, name.rpartition(":")[2], {}, text, parser.CurrentLineNumber))

    def refuse(*_declaration: object) -> None:
        raise TraceError(f"{file} declares entities of its own; they are never expanded")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda data: texts[-1].append(data)
    parser.EntityDeclHandler = refuse
    bytes_without_tag = 0
    while True:
        block = stream.read(_BLOCK_BYTES)
        try:
            parser.Parse(block, not block)
        except expat.ExpatError as error:
            yield from found
            raise BreaksOff(str(error), error.lineno) from None
        bytes_without_tag = 0 if found else bytes_without_tag + len(block)
        if bytes_without_tag > MAX_TAG_BYTES:
            raise TraceError(f"{file} has a tag or text of more than {MAX_TAG_BYTES >> 20} MB")
        yield from found
        found.clear()
        if not block:
            return


# -- SUMO's floating car data: timesteps of vehicles, persons and containers

MOVING = ("vehicle", "person", "container")


def parse_fcd(stream: IO[bytes], file: str, options: TraceOptions) -> Iterator[Sighting]:
    """Sightings of an FCD export."""
    time: str | None = None
    line = 0
    try:
        for tag in xml_tags(stream, file, root="fcd-export", expected="SUMO FCD"):
            if not tag.starts:
                continue
            if tag.name == "timestep":
                time = tag.attributes.get("time")
            elif tag.name in MOVING:
                line = tag.line
                found = _fcd_sighting(tag.attributes, time, line, options)
                yield found._replace(type=_fcd_type(tag), others=_others(tag.attributes, _FCD_ROLES, options))
    except BreaksOff as error:
        if not line:
            raise TraceError(f"{file} is not SUMO FCD: {error}") from None
        yield Sighting(line=error.line, problem=f"the file breaks off: {break_in(stream) or error}")


_FCD_ROLES = frozenset(("id", "x", "y", "speed", "angle", "type"))
_GPX_ROLES = frozenset(("lat", "lon", "time", "speed", "course"))


def _others(attributes: Mapping[str, str], roles: Set[str], options: TraceOptions) -> str | None:
    """Further values of the attributes, if they are kept."""
    return (
        others_text((name, text) for name, text in attributes.items() if name not in roles) if options.others else None
    )


def _fcd_type(tag: XmlTag) -> str | None:
    """The node's type; for a person or container without a type, `person` or `container`."""
    named = tag.attributes.get("type", "").strip()
    if named and not named.startswith("DEFAULT_"):
        return named
    return None if tag.name == "vehicle" else tag.name


def header_of(file: str) -> dict[str, str]:
    """The options of the SUMO run that wrote the file, with their values, from the comment before the root."""
    with open_trace(file) as stream:
        head = stream.read(_HEADER_BYTES).decode("utf-8", "replace")
    comment = re.search(r"<!--.*?-->", head, re.S)
    return dict(re.findall(r'<([\w.-]+) value="([^"]*)"', comment[0])) if comment else {}


def says_geo(header: Mapping[str, str]) -> bool:
    """Whether x and y are degrees, according to the header's options."""
    return header.get("fcd-output.geo", "").strip().lower() in ("true", "1", "t", "yes", "x", "on")


def _fcd_sighting(attributes: Mapping[str, str], time: str | None, line: int, options: TraceOptions) -> Sighting:
    node = attributes.get("id")
    try:
        if not node:
            raise ValueError("no id")
        at = number(time, "time") * (options.time_factor or 1.0)
        speed, heading = optional_number(attributes.get("speed")), optional_number(attributes.get("angle"))
        if options.geo:
            order = ("x", "y") if options.swapped else ("y", "x")
            lat_deg, lon_deg = degrees(*(attributes.get(name) for name in order))
            return Sighting(node, at, None, None, lat_deg, lon_deg, speed, heading, line)
        x_m, y_m = number(attributes.get("x"), "x"), number(attributes.get("y"), "y")
        return Sighting(node, at, x_m, y_m, None, None, speed, heading, line)
    except ValueError as error:
        return Sighting(node, line=line, problem=str(error))


# -- GPX: the points of its tracks that have a time


def parse_gpx(stream: IO[bytes], file: str, options: TraceOptions) -> Iterator[Sighting]:
    """Sightings of a GPX file's track points.

    A file with one track is one node, named after the file; with several, each track is a node,
    `file/track name`.
    """
    name = stem(file)
    with open_trace(file) as again:
        several = _tracks_in(again) > 1
    track, title = 0, ""
    path: list[str] = []
    point: dict[str, str] = {}
    line = 0
    try:
        for tag in xml_tags(stream, file, root="gpx", expected="GPX"):
            if tag.starts:
                path.append(tag.name)
                if tag.name == "trk":
                    track, title = track + 1, ""
                elif tag.name == "trkpt":
                    point, line = dict(tag.attributes), tag.line
                continue
            path.pop()
            if tag.name == "trkpt":
                found = _gpx_sighting(point, f"{name}/{title or track}" if several else name, line)
                yield found._replace(others=_others(point, _GPX_ROLES, options))
            elif "trkpt" in path:
                point.setdefault(tag.name, tag.text)
            elif tag.name == "name" and path[-1:] == ["trk"]:
                title = tag.text
    except BreaksOff as error:
        if not line:
            raise TraceError(f"{file} is not GPX: {error}") from None
        yield Sighting(line=error.line, problem=f"the file breaks off: {break_in(stream) or error}")


def _tracks_in(stream: IO[bytes]) -> int:
    """How many tracks the file has (2 for several), found by their tags, without parsing."""
    count, tail = 0, b""
    while count < 2 and (block := stream.read(1 << 20)):
        text = tail + block
        count += text.count(b"<trk>") + text.count(b"<trk ")
        tail = text[-4:]
    return count


def _gpx_sighting(point: Mapping[str, str], node: str, line: int) -> Sighting:
    try:
        if not point.get("time"):
            raise ValueError("no time")
        lat_deg, lon_deg = degrees(point.get("lat"), point.get("lon"))
        speed, course = optional_number(point.get("speed")), optional_number(point.get("course"))
        return Sighting(node, epoch_seconds(point["time"]), None, None, lat_deg, lon_deg, speed, course, line)
    except ValueError as error:
        return Sighting(node, line=line, problem=str(error))
