"""How far Spark's jobs are: shown on one line, in a notebook or on a terminal, on a session of any kind.

::

    with show_progress(spark):
        ingest(lake, ["buses.csv"], "buses")
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from earshot.pipeline.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Show = Callable[[int, int], None]
"Called with how many tasks are done and how many there are, of the jobs that run."
POLL_S = 0.5


@contextmanager
def watch_jobs(session: SparkSession, show: Show) -> Iterator[None]:
    """Call `show` a few times a second while jobs of the session run, until the `with` block ends."""
    if is_connect(session):

        def handle(stages: Iterable[Any] | None, **_: object) -> None:
            known = list(stages or ())
            show(sum(stage.num_completed_tasks for stage in known), sum(stage.num_tasks for stage in known))

        handler: Any = handle
        session.registerProgressHandler(handler)
        try:
            yield
        finally:
            session.removeProgressHandler(handler)
        return
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(POLL_S):
            done, total = tasks_of_jobs(session)
            if total:
                show(done, total)

    watcher = threading.Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def tasks_of_jobs(session: SparkSession) -> tuple[int, int]:
    """How many tasks of the jobs that run are done, and how many there are. A stage that has not been planned yet
    does not count."""
    tracker = session.sparkContext.statusTracker()
    done = total = 0
    for job in tracker.getActiveJobsIds():
        known = tracker.getJobInfo(job)
        for stage in known.stageIds if known else ():
            if about := tracker.getStageInfo(stage):
                done += about.numCompletedTasks
                total += about.numTasks
    return done, total


@contextmanager
def show_progress(session: SparkSession, to: TextIO | None = None) -> Iterator[None]:
    """Show how far the session's jobs are, on one line of `to` (standard error), which is empty again at the end."""
    out = to or sys.stderr
    started = time.monotonic()

    def show(done: int, total: int) -> None:
        out.write(f"\r\x1b[2KSpark: {done} of {total} tasks, {time.monotonic() - started:.0f} s")
        out.flush()

    try:
        with watch_jobs(session, show):
            yield
    finally:
        out.write("\r\x1b[2K")
        out.flush()
