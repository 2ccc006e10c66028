"""`earshot match` and `earshot explain`: filters against events in files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO

import click

from earshot.documents import LIMITS
from earshot.errors import EventError, FilterSyntaxError, UsageError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.geometry import STILL, Position, Velocity

MATCHED, NOTHING_MATCHED, TROUBLE = 0, 1, 2
"Exit codes, as grep's."

Found = tuple[str, Event | UsageError]
"Where an event was found, and the event or what is wrong with it."


def _pair(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """Two numbers: `120,80`."""
    if value is None:
        return None
    try:
        x, y = (float(part) for part in value.split(","))
    except ValueError:
        x = y = inf
    if not (isfinite(x) and isfinite(y)):
        raise click.BadParameter(f"{value!r} is not two numbers, as in 120,80")
    return x, y


def event_files(command: Callable[..., int]) -> Callable[..., int]:
    """The arguments and options both commands share."""
    path = click.Path(exists=True, dir_okay=False, allow_dash=True)
    for decorate in (
        click.argument("events", nargs=-1, required=True, type=path),
        click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for every event."),
        click.option(
            "--moving",
            "velocity",
            metavar="X,Y",
            callback=_pair,
            help="The consumer's velocity in m/s east and north; still, if not given.",
        ),
        click.option(
            "--at",
            "position",
            metavar="X,Y",
            callback=_pair,
            help="The consumer's position in metres, for terms like within 200 m.",
        ),
    ):
        command = decorate(command)
    return command


@click.command(short_help="Match events against one filter or a file of them.")
@click.option("--filter", "-f", "text", metavar="TEXT", help="One filter: XPath if it begins with a slash, else where.")
@click.option(
    "--filters",
    "-F",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of filters, one a line; blank lines and # comments are skipped.",
)
@event_files
def match(
    text: str | None,
    file: Path | None,
    events: tuple[str, ...],
    position: tuple[float, float] | None,
    velocity: tuple[float, float] | None,
    as_json: bool,
) -> int:
    """Print the EVENTS that a filter matches, or which filters of a file match each of them.

    EVENTS are files: .xml (one event a file), .json (one event), .jsonl (one event a line), or - for
    standard input in any of these forms. An event is named by its file, and its line in a .jsonl.

    \b
    Examples:
      earshot match --filter 'category = "jazz" and price < 20' cd.json
      earshot match --filter '/CD[category="jazz"][price < 20]' *.xml
      earshot match --filter 'Siren: speed > 10 and within 200 m' --at 120,80 events.jsonl
      earshot match --filters wanted.txt events.jsonl      # events.jsonl:3: 1 7 12
      producer | earshot match --filters wanted.txt --json -

    With --filters, each event that any filter matches is printed with the line numbers of those
    filters. Exit code: 0 if anything matched, 1 if nothing did, 2 if something was wrong.
    """
    if (text is None) == (file is None):
        raise click.UsageError("give one filter with --filter, or a file of them with --filters")
    viewer = _viewer(position, velocity)
    if text is not None:
        filter = Filter.parse(text)
        return _print_all(events, as_json, lambda event: [1] if filter.matches(event, viewer) else [], _one_filter)
    index = _index(_lines(Path(str(file))), str(file))
    return _print_all(events, as_json, lambda event: sorted(index.match(event, viewer)), _many_filters)


@click.command(short_help="Say why a filter matches an event, or which term failed.")
@click.option("--filter", "-f", "text", required=True, metavar="TEXT", help="The filter.")
@event_files
def explain(
    text: str,
    events: tuple[str, ...],
    position: tuple[float, float] | None,
    velocity: tuple[float, float] | None,
    as_json: bool,
) -> int:
    """Say of each of the EVENTS why the filter matches it, or which of its terms failed.

    EVENTS are files as for `earshot match`.

    \b
    Examples:
      earshot explain --filter 'price > 20' cd.json
      earshot explain --filter '/CD[price < 20]/title' cd.xml
      earshot explain --filter 'within 200 m and approaching' --at 0,0 --moving 3,0 events.jsonl

    Exit code: 0 if anything matched, 1 if nothing did, 2 if something was wrong.
    """
    filter, viewer = Filter.parse(text), _viewer(position, velocity)

    def told(name: str, event: Event, found: list[int]) -> tuple[str, dict[str, Any]]:
        why = filter.explain(event, viewer)
        return f"{name}: {why}", {"matches": bool(found), "explanation": why}

    return _print_all(events, as_json, lambda event: [1] if filter.matches(event, viewer) else [], told, always=True)


def _viewer(position: tuple[float, float] | None, velocity: tuple[float, float] | None) -> Viewer | None:
    if position is None:
        if velocity is not None:
            raise click.UsageError("--moving needs --at: where the consumer is")
        return None
    return Viewer(Position(*position), Velocity(*velocity) if velocity else STILL)


Telling = Callable[[str, Event, list[int]], tuple[str, dict[str, Any]]]
"An event's name, the event and the matching line numbers -> the line to print, and the same as JSON."


def _one_filter(name: str, _event: Event, found: list[int]) -> tuple[str, dict[str, Any]]:
    return name, {"matches": bool(found)}


def _many_filters(name: str, _event: Event, found: list[int]) -> tuple[str, dict[str, Any]]:
    return f"{name}: {' '.join(map(str, found))}", {"matches": found}


def _print_all(
    files: Iterable[str],
    as_json: bool,
    matching: Callable[[Event], list[int]],
    telling: Telling,
    always: bool = False,
) -> int:
    """Print what is found of each event, as it is read; the exit code."""
    status = NOTHING_MATCHED
    for name, event in _events(files):
        if isinstance(event, UsageError):
            click.echo(f"earshot: {name}: {event}", err=True)
            status = TROUBLE
            continue
        found = matching(event)
        if found and status is NOTHING_MATCHED:
            status = MATCHED
        line, values = telling(name, event, found)
        if as_json:
            stamp = {"event": name, "type": event.type} | ({"id": event.id} if event.id else {})
            click.echo(json.dumps(stamp | values, ensure_ascii=False))
        elif found or always:
            click.echo(line)
    return status


# Filters from a file.


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not a text in UTF-8: {error.reason} at byte {error.start}") from None


def _index(lines: list[str], file: str) -> FilterIndex:
    """The filters by line number; all lines that are no filters are told at once."""
    index = FilterIndex()
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            index.add(number, Filter.parse(line))
        except FilterSyntaxError as error:
            wrong.append(f"{file}:{number}: {error}")
    if wrong:
        raise UsageError("\n".join(wrong))
    return index


# Events from files.


def _events(files: Iterable[str]) -> Iterator[Found]:
    for file in files:
        if file == "-":
            yield from _read("-", sys.stdin.buffer, "")
            continue
        try:
            with open(file, "rb") as stream:
                yield from _read(file, stream, Path(file).suffix.lower())
        except OSError as error:
            yield file, EventError(f"cannot be read: {error.strerror}")


def _read(name: str, stream: BinaryIO, suffix: str) -> Iterator[Found]:
    """The events in one file. Where its name does not tell, its first sign does: < for XML, { for JSON,
    one event a line if the first line is a whole one."""
    if suffix == ".jsonl":
        yield from _read_lines(name, stream, b"")
        return
    if suffix in (".xml", ".json"):
        yield name, _event(_whole(stream, b""), Event.from_xml if suffix == ".xml" else Event.from_json)
        return
    first = b""
    while not first.strip() and (line := stream.readline(LIMITS.bytes + 1)):
        first += line
    if first.lstrip().startswith(b"<"):
        yield name, _event(_whole(stream, first), Event.from_xml)
    elif isinstance(_event(first, Event.from_json), Event):
        yield from _read_lines(name, stream, first)
    else:
        yield name, _event(_whole(stream, first), Event.from_json)


def _read_lines(name: str, stream: BinaryIO, first: bytes) -> Iterator[Found]:
    """One event a line, each as soon as it is there; `first` has been read already."""
    number = len(first.splitlines())
    if first:
        yield f"{name}:{number}", _event(first, Event.from_json)
    while line := stream.readline(LIMITS.bytes + 1):
        number += 1
        if line.strip():
            yield f"{name}:{number}", _event(line, Event.from_json)
        while len(line) > LIMITS.bytes and not line.endswith(b"\n"):
            line = stream.readline(LIMITS.bytes + 1)  # the rest of a line that is too long


def _whole(stream: BinaryIO, first: bytes) -> bytes:
    """All there is, as far as an event may be long."""
    return first + stream.read(LIMITS.bytes + 1 - len(first)) if len(first) <= LIMITS.bytes else first


def _event(document: bytes, read: Callable[[bytes], Event]) -> Event | UsageError:
    if len(document) > LIMITS.bytes:
        return EventError(f"larger than an event may be: at most {LIMITS.bytes:,} bytes are read")
    try:
        return read(document)
    except UsageError as error:
        return error
