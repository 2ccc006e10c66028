"""The segments of spools: where they lie, how far each session has been read, and what to read next.

A spool is a folder, searched with all folders below it, of segments `NODE-LIFE-00001.jsonl`; one that
still grows is called `.open.jsonl` and keeps its number when it is renamed. A session is one node from
start to stop; its segments follow each other by number. How far it was read is a `ReadPosition`: segment,
byte, and whether more was there already. Positions lie at the end of a line, so a line is read once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from earshot.errors import UsageError
from earshot.records import Record

_SEGMENT = re.compile(r"(?P<session>.+?)(?:-(?P<number>\d{5,9}))?(?P<open>\.open)?\.jsonl")
_CHUNK = 1 << 20
LEAST_BYTES = 1 << 12
"Read of each session that has something to read, in one batch: a line is seldom longer."

Offsets = dict[str, dict[str, str]]
"Folder -> session -> its read position as text: what a checkpoint holds."
Positions = Mapping[str, Mapping[str, str]]


class ReadPosition(NamedTuple):
    """How far a session was read."""

    segment: int = 1
    byte: int = 0
    more: bool = False

    @classmethod
    def parse(cls, text: str | None) -> ReadPosition:
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
    modified_at: float


Found = dict[str, dict[int, Segment]]
"Session -> number -> segment."


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one segment; `end` None: all of it. Without a path: segments that are missing."""

    session: str
    path: str
    start: int
    end: int | None
    number: int


def check_folders(folders: Sequence[str], may_be_empty: bool) -> list[str]:
    """The spools' folders as absolute paths, each once; UsageError for what is not a folder."""
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
    """The segments by the real path of their folder, which does not depend on the path that was given."""
    found: dict[str, Found] = {}
    for here, below, _ in os.walk(os.path.realpath(root)):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if segments := segments_in(here):
            found[here] = segments
    return found


def is_spool(folder: str) -> bool:
    """Whether nodes recorded into this folder, or into one below it: its first segment begins with a record."""
    found = find_segments(folder) if os.path.isdir(folder) else {}
    for segments in (segments for sessions in found.values() for segments in sessions.values()):
        first = segments[min(segments)]
        with first.path.open("rb") as file:
            try:
                msgspec.json.decode(file.readline(_CHUNK), type=Record)
            except msgspec.MsgspecError:
                return False
            return True
    return False


def find_all(roots: Sequence[str]) -> dict[str, Found]:
    """The segments below any of these folders."""
    return {folder: segments for root in roots for folder, segments in find_segments(root).items()}


def segments_in(folder: str) -> Found:
    """The segments in one folder, by session and number; none where it is gone."""
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
            seen = path.stat()
        except FileNotFoundError:  # just renamed; the next search finds it
            continue
        number, closed = int(match["number"] or 1), match["open"] is None
        segments = found.setdefault(match["session"], {})
        if number not in segments or closed:
            segments[number] = Segment(path, closed, seen.st_size, seen.st_mtime)
    return found


def advance(
    start: Positions, found: Mapping[str, Found], most_bytes: int | None, ended: Positions | None = None
) -> Offsets:
    """The offsets after the next batch, which reads about the same amount of each session. Those of `ended` are not in
    the offsets, unless they have something new."""
    ended = ended or {}
    waiting = sum(
        _is_behind(_position(start, ended, folder, session), segments)
        for folder, sessions in found.items()
        for session, segments in sessions.items()
    )
    quota = None if most_bytes is None else max(LEAST_BYTES, most_bytes // max(1, waiting))
    offsets: Offsets = {folder: dict(sessions) for folder, sessions in start.items()}
    for folder, sessions in found.items():
        known = offsets.setdefault(folder, {})
        for session, segments in sessions.items():
            before = _position(start, ended, folder, session)
            after = _advanced(before, segments, quota)
            if session in known or session not in ended.get(folder, {}) or after != before:
                known[session] = str(after)
    return {folder: dict(sorted(sessions.items())) for folder, sessions in sorted(offsets.items())}


def _position(start: Positions, ended: Positions, folder: str, session: str) -> ReadPosition:
    return ReadPosition.parse(start.get(folder, {}).get(session) or ended.get(folder, {}).get(session))


def quiet_sessions(
    start: Positions, end: Offsets, found: Mapping[str, Found], open_since: float, closed_since: float
) -> Offsets:
    """The sessions that this batch reads nothing of and whose segments nobody has written since a time: one for
    sessions with an open segment, another for those without."""
    quiet: Offsets = {}
    for folder, sessions in end.items():
        for session, text in sessions.items():
            segments = found.get(folder, {}).get(session, {})
            unread = start.get(folder, {}).get(session) == text
            since = closed_since if all(segment.closed for segment in segments.values()) else open_since
            if unread and all(segment.modified_at < since for segment in segments.values()):
                quiet.setdefault(folder, {})[session] = text
    return quiet


def without(offsets: Offsets, sessions: Positions) -> Offsets:
    """The offsets without those sessions."""
    return {
        folder: {session: text for session, text in some.items() if session not in sessions.get(folder, {})}
        for folder, some in offsets.items()
    }


def _is_behind(position: ReadPosition, segments: Mapping[int, Segment]) -> bool:
    return any(
        number > position.segment or (number == position.segment and segment.bytes > position.byte)
        for number, segment in segments.items()
    )


def _advanced(position: ReadPosition, segments: Mapping[int, Segment], quota: int | None) -> ReadPosition:
    number, byte, _ = position
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
                return ReadPosition(number, byte, _end_of_line(segment.path, byte, segment.bytes, segment.bytes) > byte)
        later = [other for other in segments if other > number]
        # What follows the last newline of a closed segment is not a record.
        if not later:
            return ReadPosition(number, byte, False)
        if left is not None and left <= 0:
            return ReadPosition(number, byte, True)
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


def pieces_between(
    start: Positions, end: Offsets, ended: Positions | None = None
) -> Iterator[tuple[str, ReadPosition, list[Piece]]]:
    """For each session with new bytes: its name, its new position, and the pieces between."""
    for folder, sessions in end.items():
        found: Found | None = None
        for session, text in sessions.items():
            before = start.get(folder, {}).get(session) or (ended or {}).get(folder, {}).get(session)
            if before == text:
                continue
            if found is None:
                found = segments_in(folder)
            since, until = ReadPosition.parse(before), ReadPosition.parse(text)
            name = f"{folder}/{session}"
            yield name, until, list(_pieces(name, since, until, found.get(session, {})))


def _pieces(session: str, since: ReadPosition, until: ReadPosition, segments: Mapping[int, Segment]) -> Iterator[Piece]:
    number = since.segment
    while number <= until.segment:
        first = since.byte if number == since.segment else 0
        last = until.byte if number == until.segment else None
        if number in segments:
            if last is None or last > first:
                yield Piece(session, str(segments[number].path), first, last, number)
            number += 1
        elif last is not None and last <= first:
            break
        else:
            following = min((other for other in segments if other > number), default=until.segment + 1)
            yield Piece(session, "", first, None, number)
            number = min(following, until.segment + 1)
