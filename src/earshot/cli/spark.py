"""What every Spark command shares: where the lake is, where Spark runs, and how progress looks."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import default_option, together

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake


@dataclass(frozen=True)
class LakeOptions:
    """The lake's folder, and the cluster where one is named."""

    lake: str = ""
    master: str | None = None
    remote: str | None = None

    def at(self, lake: str) -> LakeOptions:
        """The same cluster, another lake."""
        return replace(self, lake=lake)


def _as_lake(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets --lake, --master and --remote as one `lake`."""

    @functools.wraps(command)
    def with_lake(*args: Any, master: str | None, remote: str | None, lake_folder_: str = "", **kwargs: Any) -> Any:
        return command(*args, lake=LakeOptions(lake_folder_, master, remote), **kwargs)

    return with_lake


cluster_options = together(
    click.option("--master", metavar="URL", help="Run on a Spark cluster: spark://HOST:PORT."),
    click.option("--remote", metavar="sc://HOST:PORT", help="Run on a Spark Connect server."),
    _as_lake,
)
lake_options = together(
    default_option(
        "--lake",
        "lake_folder_",
        default="lake",
        envvar="EARSHOT_LAKE",
        metavar="DIR",
        help="The folder of tables, or any address Spark can write to.",
    ),
    cluster_options,
)


@contextmanager
def open_lake(options: LakeOptions) -> Iterator[Lake]:
    """The lake through a Spark session, with Spark's errors in our words."""
    from earshot.pipeline.lake.lake import Lake
    from earshot.pipeline.session import spark_session
    from earshot.pipeline.spark.failures import named_errors

    session = spark_session(options.master, options.remote, notice=_notice)
    with named_errors():
        yield Lake(session, options.lake)


def _notice(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Progress on a terminal, on one line of standard error that is empty again at the end of the `with` block;
    nothing if standard error is not a terminal."""

    def __init__(self, title: str, total: int) -> None:
        self.title = title
        self.total = total
        self.shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def say(self, stage: str) -> None:
        """Which stage begins."""
        self._show(f"{self.title}: {stage}")

    def runs(self, done: int, left: int, failed: int) -> None:
        """How many runs are done, left and failed."""
        share = done / self.total if self.total else 1.0
        filled = round(24 * min(1.0, share))
        words = f"{done} done, {left} left" + (f", {failed} failed" if failed else "")
        self._show(f"{self.title} [{'#' * filled}{'.' * (24 - filled)}] {words}")

    def _show(self, text: str) -> None:
        if self.shown:
            click.echo(f"\r\x1b[2K{text}", nl=False, err=True)

    def __exit__(self, *_: object) -> None:
        self._show("")
