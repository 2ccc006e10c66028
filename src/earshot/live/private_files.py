"""Files that only their owner may read: keys, identities and spools."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from earshot.errors import UsageError

logger = logging.getLogger("earshot.live")


def read_text(path: str | Path, what: str, encoding: str = "utf-8") -> str:
    """The text of a file that the user named; `what` is what the file should be."""
    try:
        return Path(path).read_text(encoding=encoding)
    except OSError as error:
        raise UsageError(f"cannot read {what} {path}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {what} {path}: it is not a text file") from None


def make_private(path: str | Path, content: bytes) -> None:
    """Write a new file that only its owner can read; an existing file is never replaced."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{path} exists; remove it first, or name another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    with os.fdopen(file, "wb") as opened:
        opened.write(content)


def readable_by_others(path: str | Path) -> bool:
    """Whether users other than the owner may read the file, or the folder or a file in it."""
    try:
        return bool(os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def warn_if_readable(path: str | Path, what: str) -> None:
    """Warn if users other than the owner can read the file."""
    if readable_by_others(path):
        logger.warning("%s %s can be read by other users; run: chmod 600 %s", what, path, path)


class WatchedFile:
    """A file that may change while a node runs."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._seen = self._stamp()

    def changed(self) -> bool:
        """Whether the file has changed since the last call. A file that is missing has not."""
        stamp = self._stamp()
        if stamp is None or stamp == self._seen:
            return False
        self._seen = stamp
        return True

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
