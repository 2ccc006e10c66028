"""What every Spark command shares: where the lake is, where Spark runs, and how progress looks.

Progress goes to standard error: a line that changes on a terminal, elsewhere a plain line every few seconds.
EARSHOT_PROGRESS=off turns it off.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import default_option, together
from earshot.errors import UsageError

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake


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

    def clear(self) -> None:
        """Empty the line, so that something else can be printed."""
        if self.live and not self.silent:
            click.echo("\r\x1b[2K", nl=False, err=True)

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
        self.clear()


def duration_words(seconds: float) -> str:
    """A time as people say it: 40 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(done: int, total: int) -> str:
    filled = round(WIDTH * min(1.0, done / total if total else 1.0))
    return f"[{'#' * filled}{'.' * (WIDTH - filled)}]"


@dataclass(frozen=True)
class LakeOptions:
    """The lake's folder, and the cluster, if one is named."""

    lake: str = ""
    master: str | None = None
    remote: str | None = None
    conf: tuple[str, ...] = ()
    "Spark's own settings, as in `spark.executor.memory=4g`."

    def at(self, lake: str) -> LakeOptions:
        """The same cluster, another lake."""
        return replace(self, lake=lake)


def _as_lake(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass --lake, --master, --remote and --conf to the command as one argument, `lake`."""

    @functools.wraps(command)
    def with_lake(
        *args: Any,
        master: str | None,
        remote: str | None,
        conf: tuple[str, ...],
        lake_folder_: str = "",
        **kwargs: Any,
    ) -> Any:
        return command(*args, lake=LakeOptions(lake_folder_, master, remote, conf), **kwargs)

    return with_lake


cluster_options = together(
    click.option("--master", metavar="URL", help="Run on a Spark cluster: spark://HOST:PORT, yarn, k8s://..."),
    click.option("--remote", metavar="sc://HOST:PORT", help="Run on a Spark Connect server."),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's own; repeatable."),
    _as_lake,
)
lake_option = default_option(
    "--lake",
    "lake_folder_",
    default="lake",
    envvar="EARSHOT_LAKE",
    metavar="DIR",
    help="The folder of tables, or any address Spark can write to.",
)
lake_options = together(lake_option, cluster_options)


@contextmanager
def open_lake(
    options: LakeOptions, reads: Sequence[str] | None = None, bar: ProgressBar | None = None
) -> Iterator[Lake]:
    """The lake through a Spark session, with Spark's errors as our own. `reads` are the files that the command reads,
    if its work depends only on them and on the lake; if these are small, Spark starts with settings for little work.
    `bar` shows the progress of Spark's jobs."""
    from earshot.pipeline.lake.lake import Lake
    from earshot.pipeline.session import holds_little
    from earshot.pipeline.spark.failures import named_errors
    from earshot.pipeline.spark.progress import watch_jobs
    from earshot.pipeline.spark.session import start_session

    settings = spark_settings(options.conf)
    small = reads is not None and holds_little([options.lake, *reads])
    session = start_session(options.master, options.remote, settings, notice=_notice, small=small)
    with named_errors(), watch_jobs(session, bar.tasks) if bar is not None else nullcontext():
        yield Lake(session, options.lake)


def spark_settings(conf: Iterable[str]) -> dict[str, str]:
    """The values of --conf by their names."""
    found = {}
    for text in conf:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise UsageError(f"--conf takes a setting of Spark's, as in spark.executor.memory=4g, not {text!r}")
        found[name] = value
    return found


def _notice(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)
