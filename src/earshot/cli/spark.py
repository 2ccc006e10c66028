"""What every Spark command shares: where the lake is, where Spark runs, and how progress looks."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import default_option, together
from earshot.cli.progress import ProgressBar as ProgressBar
from earshot.errors import UsageError

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake


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
