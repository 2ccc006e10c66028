"""The segments of spools: where they lie, how far each life has been read, and what to read next.

A spool is a folder, searched with all folders below it, of segments `NODE-LIFE-00001.jsonl`; one that
still grows is called `.open.jsonl` and keeps its place when it is renamed. A *life* is one node from
start to stop; its segments follow each other by number. How far it was read is a `Place`: segment,
byte, and whether more was there already. Places lie at the end of a line, so a line is read once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from earshot.errors import UsageError

_SEGMENT = re.compile(r"(?P<life>.+?)(?:-(?P<number>\d{5,9}))?(?P<open>\.open)?\.jsonl")
_CHUNK = 1 << 20
LEAST_BYTES = 1 << 12
"Of each life with something to read, in one batch: a line is seldom longer."

Places = dict[str, dict[str, str]]
"Folder -> life -> its place as text: what a checkpoint holds."


class Place(NamedTuple):
    """How far a life was read."""

    segment: int = 1
    byte: int = 0
    more: bool = False

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """What `str` made of it; the beginning for None."""
        if text is None:
            return cls()
        segment, byte, more = text.split(":")
        return cls(int(segment), int(byte), more == "1")

    def __str__(self) -> str:
        return f"{self.segment}:{self.byte}:{int(self.more)}"


class Segment(NamedTuple):
    """One file as it was found; at most `bytes` of it are looked at."""

    path: Path
    closed: bool
    bytes: int


Found = dict[str, dict[int, Segment]]
"Life -> number -> segment."


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one segment; `end` None: all of it. Without a path: segments that are not there."""

    life: str
    path: str
    start: int
    end: int | None
    number: int


def check_folders(folders: Sequence[str], may_be_empty: bool) -> list[str]:
    """The spools' folders as absolute paths, each once; UsageError for what is none."""
    known: set[str] = set()
    for folder in folders:
        path = Path(folder).expanduser().absolute()
        if not path.exists():
            raise UsageError(f"no such folder: {folder}; nodes make it when they start with --spool {folder}")
        if not path.is_dir():
            raise UsageError(f"{folder} is a file; give the folder that nodes record into (--spool)")
        if not may_be_empty and not find_segments(str(path)):
            raise UsageError(f"no spool in {folder}: it has no segment (*.jsonl)")
        known.add(str(path))
    if not known:
        raise UsageError("no spool was given: name the folders that nodes record into")
    return sorted(known)


def find_segments(root: str) -> dict[str, Found]:
    """The segments there are, by the folder they lie in: named by itself, whoever looks from where."""
    found: dict[str, Found] = {}
    for here, below, _ in os.walk(os.path.realpath(root)):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if segments := segments_in(here):
            found[here] = segments
    return found


def find_all(roots: Sequence[str]) -> dict[str, Found]:
    """The segments below any of these folders."""
    return {folder: segments for root in roots for folder, segments in find_segments(root).items()}


def segments_in(folder: str) -> Found:
    """The segments in one folder, by life and number; none where it is gone."""
    found: Found = {}
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return found
    for name in names:
        match = _SEGMENT.fullmatch(name)
        if match is None or name.startswith("."):
            continue
        path = Path(folder, name)
        try:
            size = path.stat().st_size
        except FileNotFoundError:  # renamed this moment; the next look finds it
            continue
        number, closed = int(match["number"] or 1), match["open"] is None
        segments = found.setdefault(match["life"], {})
        if number not in segments or closed:
            segments[number] = Segment(path, closed, size)
    return found


def advance(start: Mapping[str, Mapping[str, str]], found: Mapping[str, Found], most_bytes: int | None) -> Places:
    """The places after the next batch: of each life about as much as of any other."""
    waiting = sum(
        _is_behind(Place.parse(start.get(folder, {}).get(life)), segments)
        for folder, lives in found.items()
        for life, segments in lives.items()
    )
    quota = None if most_bytes is None else max(LEAST_BYTES, most_bytes // max(1, waiting))
    places: Places = {folder: dict(lives) for folder, lives in start.items()}
    for folder, lives in found.items():
        known = places.setdefault(folder, {})
        for life, segments in lives.items():
            known[life] = str(_advanced(Place.parse(known.get(life)), segments, quota))
    return {folder: dict(sorted(lives.items())) for folder, lives in sorted(places.items())}


def _is_behind(place: Place, segments: Mapping[int, Segment]) -> bool:
    return any(
        number > place.segment or (number == place.segment and segment.bytes > place.byte)
        for number, segment in segments.items()
    )


def _advanced(place: Place, segments: Mapping[int, Segment], quota: int | None) -> Place:
    number, byte, _ = place
    left = quota
    while True:
        segment = segments.get(number)
        if segment is not None and byte < segment.bytes:
            most = segment.bytes if left is None else min(segment.bytes, byte + left)
            end = _end_of_line(segment.path, byte, most, segment.bytes)
            if left is not None:
                left -= end - byte
            byte = end
            if most < segment.bytes:
                return Place(number, byte, _end_of_line(segment.path, byte, segment.bytes, segment.bytes) > byte)
        later = [other for other in segments if other > number]
        # A closed segment without a last newline: what follows the last one is no record.
        if not later:
            return Place(number, byte, False)
        if left is not None and left <= 0:
            return Place(number, byte, True)
        number, byte = min(later), 0


def _end_of_line(path: Path, start: int, most: int, size: int) -> int:
    """Just after the last newline in start..most; where there is none, after the next one before size;
    `start` where there is none at all."""
    try:
        file = open_segment(path)
    except FileNotFoundError:
        return start
    with file:
        end = most
        while end > start:
            begin = max(start, end - _CHUNK)
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
        file.seek(most)
        end = most
        while end < size and (chunk := file.read(min(_CHUNK, size - end))):
            at = chunk.find(b"\n")
            if at >= 0:
                return end + at + 1
            end += len(chunk)
    return start


def open_segment(path: Path) -> BinaryIO:
    """The file, by its new name where it has been closed since it was found."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return path.with_name(path.name.replace(".open.jsonl", ".jsonl")).open("rb")


def pieces_between(start: Mapping[str, Mapping[str, str]], end: Places) -> Iterator[tuple[str, Place, list[Piece]]]:
    """For each life that went on: its name, where it is now, and what lies between."""
    for folder, lives in end.items():
        found: Found | None = None
        for life, text in lives.items():
            before = start.get(folder, {}).get(life)
            if before == text:
                continue
            if found is None:
                found = segments_in(folder)
            since, until = Place.parse(before), Place.parse(text)
            name = f"{folder}/{life}"
            yield name, until, list(_pieces(name, since, until, found.get(life, {})))


def _pieces(life: str, since: Place, until: Place, segments: Mapping[int, Segment]) -> Iterator[Piece]:
    number = since.segment
    while number <= until.segment:
        first = since.byte if number == since.segment else 0
        last = until.byte if number == until.segment else None
        if number in segments:
            if last is None or last > first:
                yield Piece(life, str(segments[number].path), first, last, number)
            number += 1
        elif last is not None and last <= first:
            break
        else:
            following = min((other for other in segments if other > number), default=until.segment + 1)
            yield Piece(life, "", first, None, number)
            number = min(following, until.segment + 1)
