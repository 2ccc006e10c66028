"""The Spark session of the pipeline: started, or found running, with our data sources registered."""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.pipeline.spark.session import start_session
from earshot.traces.files import is_address, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    small: bool = False,
    keep_archive: bool = True,
    notice: Callable[[str], None] | None = None,
) -> SparkSession:
    """A session with our data sources registered; the one already running in this process, if any.

    `master` and `remote` name a cluster. Without either, Spark's own environment does (SPARK_REMOTE,
    MASTER, PYSPARK_SUBMIT_ARGS, spark-defaults.conf in SPARK_CONF_DIR); without that it is local[*].
    `settings` are Spark's, and override ours. `small` says that there is little data (some megabytes): a local
    session then compiles less, and has no MLlib. The first local session writes a class-data archive for faster
    starts when it ends, and calls `notice` with a text about it; `keep_archive=False` skips this.
    """
    session = start_session(master, remote, settings or {}, keep_archive, notice, small)
    register_sources(session)
    return session


def register_sources(session: SparkSession) -> None:
    """Make our formats known to `session.read.format(...)`: traces, and the spools of live nodes."""
    from earshot.pipeline.traces.sources import TRACE_SOURCES

    for source in TRACE_SOURCES:
        session.dataSource.register(source)
    if importlib.util.find_spec("pyspark.sql.streaming.datasource"):  # Spark 4.2 has it: `watch` needs it
        from earshot.pipeline.watch.spool_source import SpoolSource

        session.dataSource.register(SpoolSource)


LITTLE_BYTES = 8 << 20


def holds_little(paths: Iterable[str]) -> bool:
    """Whether the local files and folders hold only a few megabytes together. An address may hold anything."""
    bytes_found = 0
    for path in paths:
        if is_address(path):
            return False
        found = [local_path(path)] if os.path.exists(local_path(path)) else glob.glob(local_path(path))
        for root in map(Path, found):
            for file in (root,) if root.is_file() else root.rglob("*"):
                if file.suffix not in (".json", ".html"):  # a lake's logs and pages are no data
                    bytes_found += file.stat().st_size if file.is_file() else 0
                if bytes_found > LITTLE_BYTES:
                    return False
    return True
