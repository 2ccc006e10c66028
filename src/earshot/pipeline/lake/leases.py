"""Who uses what in a lake on a local disk.

Each process that opens a lake holds one small file under a lock and writes into it the folders it
reads or is writing. The lock ends with the process, even if it is killed, so a folder that no valid lease
names is unused and safe to remove. Without such locks (Hadoop addresses, Windows) the
lake goes by age instead.
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path

from earshot.pipeline.lake.storage import LocalStorage

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Leases:
    """This process's lease on one lake, and what the leases of other processes name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._used: dict[str, int] = {}

    @staticmethod
    def work_here() -> bool:
        """Whether this system has the locks leases need."""
        return fcntl is not None

    def take(self, *paths: str) -> None:
        """Say that this process uses the paths."""
        with self._lock:
            for path in paths:
                self._used[path] = self._used.get(path, 0) + 1
            self._write()

    def release(self, *paths: str) -> None:
        """The process no longer uses the paths (as often as it took them)."""
        with self._lock:
            for path in paths:
                self._used[path] = self._used.get(path, 1) - 1
                if self._used[path] <= 0:
                    del self._used[path]
            self._write()

    def in_use(self) -> set[str]:
        """Every path that a running process uses, this one included. Leases of ended processes are removed."""
        with self._lock:
            used = set(self._used)
        if not self.folder.is_dir():
            return used
        for entry in sorted(self.folder.iterdir()):
            if entry.name == self.name:
                continue
            try:
                handle = os.open(entry, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                entry.unlink(missing_ok=True)
            except BlockingIOError:
                used.update(line for line in os.pread(handle, 1 << 26, 0).decode().split("\n") if line)
            finally:
                os.close(handle)
        return used

    def _write(self) -> None:
        """The whole list in one write: a reader sees the old list or the new one's beginning, and the
        new one begins with everything the old one still names."""
        while self._handle is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / self.name, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Between making the file and locking it, a cleaner may have taken it for a dead one's.
            if (self.folder / self.name).exists():
                self._handle = handle
            else:
                os.close(handle)
        content = "\n".join([*self._used, ""]).encode()
        os.pwrite(self._handle, content, 0)
        os.ftruncate(self._handle, len(content))

    def close(self) -> None:
        """Release all paths."""
        with self._lock:
            self._used.clear()
            if self._handle is not None:
                (self.folder / self.name).unlink(missing_ok=True)
                os.close(self._handle)
                self._handle = None


_open_leases: dict[str, Leases] = {}
_opening = threading.Lock()


def leases_of(storage: LocalStorage) -> Leases:
    """One lease for each process and lake; released when the process ends."""
    with _opening:
        folder = storage.root / "_leases"
        return _open_leases.setdefault(str(folder), Leases(folder))
