"""The spool: an append-only log of what happened on a live node, in the schema of `earshot.records`.

It is a folder with segments of JSON lines. A segment grows as `.open.jsonl` and is closed by renaming it
to `.jsonl`. Each record ends with a newline; a last line without one, after a kill, is not a record.
Empty columns are left out of a line; `read_spool` adds them again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from earshot.errors import UsageError
from earshot.live.private_files import readable_by_others
from earshot.records import Kind, Record

logger = logging.getLogger("earshot.live")

SEGMENT_BYTES = 16 << 20
BUFFER_BYTES = 1 << 16
WAITING_BYTES = 4 << 20
"The largest size of the records that wait while the disk is full."
AGAIN_S = 1.0


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class Spool:
    """Writes one node's records into a folder, which several nodes may share.

    A disk that is full or broken does not stop the node: records wait in a bounded buffer, further records are counted
    as lost, and writing is tried again every second. `trouble` is called when this begins and when it ends.
    """

    def __init__(
        self,
        folder: str | Path,
        node: str,
        life: int,
        segment_bytes: int = SEGMENT_BYTES,
        trouble: Callable[[str], None] = logger.warning,
    ) -> None:
        self.folder = Path(folder)
        self.lost = 0
        "How many records could not be written."
        self._stem = f"{_file_name(node)}-{life}"
        self._segment_bytes = segment_bytes
        self._trouble = trouble
        self._segment = 0
        self._written = 0
        self._buffer = bytearray()
        self._file: int | None = None
        self._failing = False
        self._again_at = 0.0
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            close_abandoned(self.folder)
            warn_of_readable(self.folder)
            self._file = self._open()
        except OSError as error:
            raise UsageError(f"cannot write the spool {folder}: {error.strerror}") from None

    def _open(self) -> int:
        self._path = self.folder / f"{self._stem}-{self._segment + 1:05}.open.jsonl"
        unlocked = self._path.with_suffix(".new")
        file = os.open(unlocked, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._segment += 1
        # A process that can lock a segment knows that its writer is gone; so a segment has its name only when locked.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlocked.rename(self._path)
        self._written = 0
        return file

    def write(self, record: Record) -> None:
        """Add a record; it is in the file after the next `flush`."""
        line = _encoder.encode(record)
        if len(self._buffer) + len(line) >= WAITING_BYTES:
            self.lost += 1
            return
        self._buffer += line
        self._buffer += b"\n"
        if len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered records to the file, unless that failed within the last second."""
        if not self._buffer or (self._failing and time.monotonic() < self._again_at):
            return
        try:
            self._write_out()
        except OSError as error:
            self._again_at = time.monotonic() + AGAIN_S
            if not self._failing:
                self._failing = True
                self._trouble(
                    f"cannot write the spool {self.folder}: {error.strerror}; the node continues, and tries again "
                    "every second"
                )
        else:
            if self._failing:
                self._failing = False
                self._trouble(f"the spool is written again; {self.lost:,} records are lost in all")

    def _write_out(self) -> None:
        if self._file is None:
            self._file = self._open()
        begun, data = 0, memoryview(bytes(self._buffer))
        try:
            while begun < len(data):
                begun += os.write(self._file, data[begun:])
        finally:
            # Whatever happened: the file ends with a whole record, and the rest waits.
            whole = self._buffer.rfind(b"\n", 0, begun) + 1
            self._written += whole
            if whole < begun:
                os.ftruncate(self._file, self._written)
            del self._buffer[:whole]
        if self._written >= self._segment_bytes:
            self._finish()
            self._file = self._open()

    def close(self) -> None:
        """Flush, and close the last segment."""
        self._again_at = 0.0
        self.flush()
        self.lost += self._buffer.count(b"\n")
        try:
            self._finish()
        except OSError as error:
            self._trouble(f"cannot close the spool {self.folder}: {error.strerror}")

    def _finish(self) -> None:
        if self._file is None:
            return
        os.close(self._file)
        self._file = None
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


def read_records(folder: str | Path, damaged: list[str] | None = None) -> Iterator[Record]:
    """All records in a spool, in order for each node, including those of open segments and of folders below.

    Lines that are not records are left out: `damaged` says which. UsageError if there is no record.
    """
    paths = sorted(Path(folder).rglob("*.jsonl"), key=lambda path: str(path).replace(".open.jsonl", ".jsonl"))
    if not paths:
        raise UsageError(f"no spool in {folder}: it has no segment (*.jsonl)")
    wrong: list[str] = [] if damaged is None else damaged
    found = False
    for path in paths:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    record = _decoder.decode(line)
                    Kind(record.kind)
                except (msgspec.DecodeError, ValueError, RecursionError) as error:
                    wrong.append(f"{path}, line {number}: not a record: {error}")
                    continue
                found = True
                yield record
    if wrong and not found:
        raise UsageError(wrong[0])


def read_spool(folder: str | Path) -> Iterator[dict[str, Any]]:
    """All records as rows with every column, in order of time, like the simulator's `Log.rows`."""
    for record in sorted(read_records(folder), key=lambda record: record.time):
        yield record.row()
