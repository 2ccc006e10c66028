"""One process a watch: a second one of the same name is refused, wherever the lake is.

On a disk that is a lock of the system, which ends with the process. In an object store it is a lease, a row of
`watch_leases` that its owner renews: Delta's commits let only one of two take it. Where a process was killed, its lease
ends by itself.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from earshot.errors import EarshotError, LakeError, UsageError
from earshot.pipeline.lake.arrow_lake import ArrowLake, files_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.table_log import Snapshot, TableLog
from earshot.pipeline.lake.tables import arrow_schema, table_named

LEASE_S = 60.0
TABLE = "watch_leases"


@contextmanager
def alone(lake: ArrowLake, name: str) -> Iterator[Callable[[], None]]:
    """Refuse a second process for the watch of that name. Yields a check: LakeError where another may have begun."""
    if lake.folder.local is None:
        lease = Lease(lake, name)
        with lease.held():
            yield lease.check
    else:
        with _lock(lake, name):
            yield _nothing


def _nothing() -> None:
    """A lock is held as long as the process lives."""


def _runs_already(lake: ArrowLake, name: str, where: str = "") -> UsageError:
    return UsageError(f"the watch {name!r} of {lake.name} runs already{where}; take another --name")


@contextmanager
def _lock(lake: ArrowLake, name: str) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    assert lake.folder.local is not None
    folder = lake.folder.local / "_watches" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LakeError(f"cannot write the lake {lake.name}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise _runs_already(lake, name) from None
    try:
        yield
    finally:
        os.close(file)


class Lease:
    """A watch's row of `watch_leases`."""

    def __init__(self, lake: ArrowLake, name: str, clock: Callable[[], float] = time.time) -> None:
        self.lake, self.name = lake, name
        self.owner = uuid.uuid4().hex
        self._clock = clock
        self._until = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take it, renew it until the end of the context, and give it back."""
        self.take()
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(LEASE_S / 4):
                try:
                    self.take()
                except EarshotError:
                    continue  # what the watch does next says so, once the lease is over

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.give_back()

    def take(self) -> None:
        """Take or renew it; UsageError where another process has it."""
        until = self._clock() + LEASE_S
        self._commit([{"owner": self.owner, "host": platform.node(), "until": until}])
        self._until = until

    def give_back(self) -> None:
        """Let others take it at once."""
        if self._clock() < self._until:
            self._commit([{"owner": self.owner, "host": "", "until": 0.0}])

    def check(self) -> None:
        """LakeError where the lease is over, so that another process may have begun."""
        if self._clock() >= self._until:
            raise LakeError(
                f"the watch {self.name!r} could not renew its lease in {self.lake.name}, and another process may "
                "run it now; start it again"
            )

    def _commit(self, rows: list[dict[str, object]]) -> None:
        kind = table_named(TABLE)
        table = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE))
        file = self.lake.files.write_table(TABLE, table, watch=self.name)
        log = TableLog(self.lake.folder, kind)

        def change(snapshot: Snapshot) -> tuple[Sequence[DataFile], Sequence[DataFile]]:
            before = files_of(kind, snapshot, {"watch": self.name})
            for old in before:
                for row in log.read_file(old, kind.data_columns).to_pylist():
                    if row["owner"] != self.owner and row["until"] > self._clock():
                        raise _runs_already(self.lake, self.name, f" on {row['host']}")
            return before, [file]

        try:
            log.rewrite(change, [file], "lease")
        except EarshotError:
            self.lake.folder.delete(f"{TABLE}/{file.path}")
            raise
        for removed in log.removed:
            self.lake.folder.delete(f"{TABLE}/{removed.path}")
