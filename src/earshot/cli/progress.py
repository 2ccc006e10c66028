"""Progress on standard error: a line that changes on a terminal, elsewhere a plain line every few seconds.

`say` names the stage that begins, `runs` says how far a campaign is, `tasks` how far any Spark job is.
EARSHOT_PROGRESS=off turns it off.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import AbstractContextManager

import click

EVERY_S = 5.0
"Between two plain lines."
WIDTH = 24


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """The progress of one command. On a terminal its line is empty again at the end of the `with` block."""

    def __init__(self, title: str, total: int = 0) -> None:
        self.title = title
        self.total = total
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.silent = os.environ.get("EARSHOT_PROGRESS") == "off"
        self.stage = ""
        self._line_at = time.monotonic()
        self._began: tuple[object, float, int] | None = None
        self._counts_runs = False
        self._lock = threading.Lock()

    def say(self, stage: str) -> None:
        """Show that this stage begins."""
        self.stage, self._counts_runs = stage, False
        self._show(stage, now=self.live)

    def runs(self, done: int, left: int, failed: int, slow: str = "") -> None:
        """Show how many runs are done, left and failed, and which protocols are slow."""
        self._counts_runs = left > 0
        words = f"{done} done, {left} left" + (f", {failed} failed" if failed else "")
        total = self.total or done + left + failed
        self._show(f"{_bar(done, total)} {words}{self._time_left('runs', done, left)}" + (f"; {slow}" if slow else ""))

    def tasks(self, done: int, total: int) -> None:
        """Show how many tasks of the running Spark jobs are done."""
        if total > 1 and not self._counts_runs:
            left = self._time_left((self.stage, total), done, total - done)
            self._show(f"{self.stage} {_bar(done, total)} {done} of {total} tasks{left}")

    def _time_left(self, of: object, done: int, left: int) -> str:
        """The estimated time left, by what was done since this progress was first shown."""
        now = time.monotonic()
        if self._began is None or self._began[0] != of or done < self._began[2]:
            self._began = of, now, done
        passed_s, new = now - self._began[1], done - self._began[2]
        if not new or not left:
            return ""
        return f", about {duration_words(passed_s / new * left)} left"

    def _show(self, words: str, now: bool = False) -> None:
        if self.silent:
            return
        with self._lock:
            at = time.monotonic()
            if self.live:
                click.echo(f"\r\x1b[2K{self.title}: {words}", nl=False, err=True)
            elif now or at - self._line_at >= EVERY_S:
                self._line_at = at
                click.echo(f"{self.title}: {words}", err=True)

    def __exit__(self, *_: object) -> None:
        if self.live and not self.silent:
            click.echo("\r\x1b[2K", nl=False, err=True)


def duration_words(seconds: float) -> str:
    """A time as people say it: 40 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(done: int, total: int) -> str:
    filled = round(WIDTH * min(1.0, done / total if total else 1.0))
    return f"[{'#' * filled}{'.' * (WIDTH - filled)}]"
