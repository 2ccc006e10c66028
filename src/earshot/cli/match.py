"""`earshot match` and `earshot explain`: filters against events in files."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from earshot.cli.options import POINT, json_option, together
from earshot.documents import LIMITS
from earshot.errors import EventError, FilterSyntaxError, UsageError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.geometry import STILL, Position, Velocity

MATCHED, NOTHING_MATCHED, TROUBLE = 0, 1, 2
"Exit codes, as those of grep."

Found = tuple[str, Event | UsageError]
"Where an event was found, and the event or its error."


event_files = together(
    click.argument("events", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True)),
    click.option(
        "--at", "position", type=POINT, help="The consumer's position in metres, for terms such as within 200 m."
    ),
    click.option("--moving", "velocity", type=POINT, help="The consumer's velocity in m/s. [default: 0,0]"),
    json_option("Print one JSON object per line, for every event."),
)
"The arguments and options that both commands share."


@click.command(short_help="Match events against one filter or a file of filters.")
@click.option(
    "--filter",
    "-f",
    "text",
    metavar="TEXT",
    help="One filter: XPath if it begins with a slash, otherwise a where filter.",
)
@click.option(
    "--filters",
    "-F",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with one filter per line; blank lines and # comments are skipped.",
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
    """Print the EVENTS that a filter matches, or which filters of a file match each event.

    EVENTS are files: .xml (one event), .json (one event), .jsonl (one event per line), or - for
    standard input in any of these forms. An event is named by its file, and by its line in a .jsonl.

    \b
    Examples:
      earshot match --filter 'category = "jazz" and price < 20' cd.json
      earshot match --filter '/CD[category="jazz"][price < 20]' *.xml
      earshot match --filter 'Siren: speed > 10 and within 200 m' --at 120,80 events.jsonl
      earshot match --filters wanted.txt events.jsonl      # events.jsonl:3: 1 7 12
      producer | earshot match --filters wanted.txt --json -

    With --filters, each event that any filter matches is printed with the line numbers of those
    filters. Exit code: 0 if any event matched, 1 if none did, 2 after an error.
    """
    if (text is None) == (file is None):
        raise click.UsageError("give one filter with --filter, or a file of filters with --filters")
    viewer = _viewer(position, velocity)
    if file is None:
        wanted = Filter.parse(text or "")
        return _print_all(
            events, as_json, _matches(wanted, viewer), lambda name, _, found: (name, {"matches": bool(found)})
        )
    index = _index(file)
    return _print_all(
        events,
        as_json,
        lambda event: sorted(index.match(event, viewer)),
        lambda name, _, found: (f"{name}: {' '.join(map(str, found))}", {"matches": found}),
    )


@click.command(short_help="Explain why a filter matches an event, or which term failed.")
@click.option("--filter", "-f", "text", required=True, metavar="TEXT", help="The filter.")
@event_files
def explain(
    text: str,
    events: tuple[str, ...],
    position: tuple[float, float] | None,
    velocity: tuple[float, float] | None,
    as_json: bool,
) -> int:
    """Explain for each of the EVENTS why the filter matches it, or which term failed.

    EVENTS are files as for `earshot match`.

    \b
    Examples:
      earshot explain --filter 'price > 20' cd.json
      earshot explain --filter '/CD[price < 20]/title' cd.xml
      earshot explain --filter 'within 200 m and approaching' --at 0,0 --moving 3,0 events.jsonl

    Exit code: 0 if any event matched, 1 if none did, 2 after an error.
    """
    filter, viewer = Filter.parse(text), _viewer(position, velocity)

    def explained(name: str, event: Event, found: list[int]) -> tuple[str, dict[str, Any]]:
        why = filter.explain(event, viewer)
        return f"{name}: {why}", {"matches": bool(found), "explanation": why}

    return _print_all(events, as_json, _matches(filter, viewer), explained, always=True)


def _matches(filter: Filter, viewer: Viewer | None) -> Callable[[Event], list[int]]:
    """A single filter counts as line 1 of a file."""
    return lambda event: [1] if filter.matches(event, viewer) else []


def _viewer(position: tuple[float, float] | None, velocity: tuple[float, float] | None) -> Viewer | None:
    if position is None:
        if velocity is not None:
            raise click.UsageError("--moving needs --at, the consumer's position")
        return None
    return Viewer(Position(*position), Velocity(*velocity) if velocity else STILL)


Describe = Callable[[str, Event, list[int]], tuple[str, dict[str, Any]]]
"An event's name, the event and the matching line numbers -> the line to print, and the same as JSON."


def _print_all(
    files: Iterable[str],
    as_json: bool,
    matching: Callable[[Event], list[int]],
    describe: Describe,
    always: bool = False,
) -> int:
    """Print the result for each event as it is read; returns the exit code."""
    status = NOTHING_MATCHED
    for name, event in _events(files):
        if isinstance(event, UsageError):
            click.echo(f"earshot: {name}: {event}", err=True)
            status = TROUBLE
            continue
        found = matching(event)
        if found and status is NOTHING_MATCHED:
            status = MATCHED
        line, values = describe(name, event, found)
        if as_json:
            stamp = {"event": name, "type": event.type} | ({"id": event.id} if event.id else {})
            click.echo(json.dumps(stamp | values, ensure_ascii=False))
        elif found or always:
            click.echo(line)
    return status


# Filters from a file.


def _index(file: Path) -> FilterIndex:
    """The filters by line number. All lines that are not filters are reported together."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from None
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
    """The events in one file. If its suffix does not say what it holds, its first character does: < for XML,
    { for JSON. If the first line is a whole event, each line is one."""
    if suffix == ".jsonl":
        yield from _read_lines(name, stream, b"")
        return
    if suffix in (".xml", ".json"):
        yield name, _event(_whole(stream, b""), Event.from_xml if suffix == ".xml" else Event.from_json)
        return
    first = b""
    while not first.strip() and (line := stream.readline(LIMITS.bytes + 1)):
        first += line
    if first.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<"):
        yield name, _event(_whole(stream, first), Event.from_xml)
    elif isinstance(_event(first, Event.from_json), Event):
        yield from _read_lines(name, stream, first)
    else:
        yield name, _event(_whole(stream, first), Event.from_json)


def _read_lines(name: str, stream: BinaryIO, first: bytes) -> Iterator[Found]:
    """One event per line, each as soon as it is read; `first` has been read already."""
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
    """The whole stream, up to the size limit of an event."""
    return first + stream.read(LIMITS.bytes + 1 - len(first)) if len(first) <= LIMITS.bytes else first


def _event(document: bytes, read: Callable[[bytes], Event]) -> Event | UsageError:
    if len(document) > LIMITS.bytes:
        return EventError(f"too large: an event has at most {LIMITS.bytes:,} bytes")
    try:
        return read(document)
    except UsageError as error:
        return error
