"""The spool: an append-only log of what happened on a live node, in the schema of `earshot.records`.

It is a folder with segments of JSON lines. A segment grows as `.open.jsonl` and is closed by renaming it
to `.jsonl`. Each record ends with a newline; a last line without one, after a kill, is not a record.
Empty columns are left out of a line; `read_spool` adds them again.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from earshot.errors import UsageError
from earshot.live.private_files import readable_by_others
from earshot.records import Kind, Record

logger = logging.getLogger("earshot.live")

SEGMENT_BYTES = 16 << 20
BUFFER_BYTES = 1 << 16


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class Spool:
    """Writes one node's records into a folder, which several nodes may share."""

    def __init__(self, folder: str | Path, node: str, life: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = Path(folder)
        self._stem = f"{_file_name(node)}-{life}"
        self._segment_bytes = segment_bytes
        self._segment = 0
        self._written = 0
        self._buffer = bytearray()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            close_abandoned(self.folder)
            warn_of_readable(self.folder)
            self._open()
        except OSError as error:
            raise UsageError(f"cannot write the spool {folder}: {error.strerror}") from None

    def _open(self) -> None:
        self._segment += 1
        self._path = self.folder / f"{self._stem}-{self._segment:05}.open.jsonl"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        # A process that can lock a segment knows that its writer is gone.
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._written = 0

    def write(self, record: Record) -> None:
        """Add a record; it is in the file after the next `flush`."""
        self._buffer += _encoder.encode(record)
        self._buffer += b"\n"
        if len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered records to the file."""
        while self._buffer:
            done = os.write(self._file, self._buffer)
            del self._buffer[:done]
            self._written += done
        if self._written >= self._segment_bytes:
            self._finish()
            self._open()

    def close(self) -> None:
        """Flush, and close the last segment."""
        self.flush()
        self._finish()

    def _finish(self) -> None:
        os.close(self._file)
        if self._written:
            self._path.rename(_closed(self._path))
        else:
            self._path.unlink()


def _file_name(node: str) -> str:
    """A node's name as part of a file name: unusual characters are written as their codes."""
    return "".join(
        character if character.isalnum() or character in "-_" else f"%{ord(character):x}" for character in node
    )[:80]


def _closed(path: Path) -> Path:
    return path.with_name(path.name.replace(".open.jsonl", ".jsonl"))


def warn_of_readable(folder: Path) -> None:
    """Warn of segments that other users can read: they hold the node's exact positions and its events."""
    found = sum(readable_by_others(path) for path in folder.glob("*.jsonl"))
    if found:
        logger.warning(
            "%d segments of the spool %s can be read by other users; run: chmod -R go= %s", found, folder, folder
        )


def close_abandoned(folder: Path) -> int:
    """Close segments that killed nodes left open: cut them after the last whole record and rename them.
    Returns how many there were."""
    found = 0
    for path in sorted(folder.glob("*.open.jsonl")):
        try:
            file = os.open(path, os.O_RDWR)
        except PermissionError:  # Another user's.
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            whole = path.read_bytes().rfind(b"\n") + 1
            os.truncate(file, whole)
            path.rename(_closed(path)) if whole else path.unlink()
            found += 1
        finally:
            os.close(file)
    return found


def read_records(folder: str | Path) -> Iterator[Record]:
    """All records in a spool, in order for each node, including those of open segments."""
    paths = sorted(Path(folder).glob("*.jsonl"), key=lambda path: path.name.replace(".open.jsonl", ".jsonl"))
    if not paths:
        raise UsageError(f"no spool in {folder}: it has no segment (*.jsonl)")
    for path in paths:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    record = _decoder.decode(line)
                    Kind(record.kind)
                except (msgspec.DecodeError, ValueError) as error:
                    raise UsageError(f"{path}, line {number}: not a record: {error}") from None
                yield record


def read_spool(folder: str | Path) -> Iterator[dict[str, Any]]:
    """All records as rows with every column, in order of time, like the simulator's `Log.rows`."""
    for record in sorted(read_records(folder), key=lambda record: record.time):
        yield record.row()
