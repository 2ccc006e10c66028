"""Messages that wait for the broker, in a file: they are kept while the broker is away or the bridge is killed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from earshot.errors import UsageError


@dataclass(frozen=True, slots=True)
class Message:
    """One message for the broker."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    event: str
    "The event's id, which travels with the message."


class QueueFailed(Exception):
    """The file could not be written, perhaps because the disk is full."""


class WaitingMessages:
    """A queue in a SQLite file, in order, bounded by bytes: a full queue loses its oldest messages, and counts them.

    `add` writes a batch and returns when it is safe from a kill of the process. A message stays until `remove`.
    """

    def __init__(self, path: str | Path, most_bytes: int) -> None:
        self.lost = 0
        "How many messages were lost because the queue was full."
        self._most_bytes = most_bytes
        try:
            if not Path(path).exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            self._file = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT, "
                "payload BLOB, qos INTEGER, retain INTEGER, event TEXT)"
            )
            self._recount()
        except sqlite3.OperationalError as error:
            raise UsageError(
                f"{path}: the queue cannot be opened ({error}); another bridge may use it: give each its own file"
            ) from None
        except (sqlite3.DatabaseError, OSError) as error:
            raise UsageError(f"{path}: not a queue of a bridge: {error}") from None

    def __len__(self) -> int:
        return self._count

    def add(self, messages: Iterable[Message]) -> None:
        """Append messages."""
        rows = [(message.topic, message.payload, message.qos, message.retain, message.event) for message in messages]
        with self._whole():
            self._file.executemany(
                "INSERT INTO waiting (topic, payload, qos, retain, event) VALUES (?, ?, ?, ?, ?)", rows
            )
            self._count += len(rows)
            self._bytes += sum(len(row[0]) + len(row[1]) for row in rows)
            if self._bytes > self._most_bytes:
                self._lose_oldest()

    def after(self, number: int, limit: int) -> list[tuple[int, Message]]:
        """At most `limit` messages after the one with this number, in order, with their numbers."""
        rows = self._file.execute(
            "SELECT number, topic, payload, qos, retain, event FROM waiting WHERE number > ? ORDER BY number LIMIT ?",
            (number, limit),
        )
        return [(row[0], Message(row[1], row[2], row[3], bool(row[4]), row[5])) for row in rows]

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove these messages: the broker has them."""
        with self._whole():
            for number in numbers:
                row = self._file.execute(
                    "DELETE FROM waiting WHERE number = ? RETURNING length(payload) + length(topic)", (number,)
                ).fetchone()
                if row is not None:
                    self._count -= 1
                    self._bytes -= row[0]

    def close(self) -> None:
        """Close the file; waiting messages stay in it."""
        self._file.close()

    def _lose_oldest(self) -> None:
        """Remove the oldest messages until a tenth of the space is free."""
        rows = self._file.execute("SELECT number, length(payload) + length(topic) FROM waiting ORDER BY number")
        last = 0
        for number, size in rows:
            if self._bytes <= 0.9 * self._most_bytes or self._count <= 1:
                break
            last = number
            self._count -= 1
            self._bytes -= size
            self.lost += 1
        rows.close()
        self._file.execute("DELETE FROM waiting WHERE number <= ?", (last,))

    def _recount(self) -> None:
        found = self._file.execute("SELECT count(*), coalesce(sum(length(payload) + length(topic)), 0) FROM waiting")
        count, size = found.fetchone()
        self._count, self._bytes = int(count), int(size)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Write all changes or none; `QueueFailed` if the disk cannot be written."""
        try:
            self._file.execute("BEGIN")
            yield
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            self._recount()
            raise QueueFailed(str(error)) from None
