"""The Spark session of the pipeline: started, or found running, with our data sources registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from earshot.pipeline.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    keep_archive: bool = True,
    notice: Callable[[str], None] | None = None,
) -> SparkSession:
    """A session with our data sources registered; the one already running in this process, if any.

    `master` and `remote` name a cluster. Without either, Spark's own environment does (SPARK_REMOTE,
    MASTER, PYSPARK_SUBMIT_ARGS, spark-defaults.conf in SPARK_CONF_DIR); without that it is local[*].
    `settings` are Spark's, and override ours. The first local session writes a class-data archive for
    faster starts when it ends, and calls `notice` with a text about it; `keep_archive=False` skips this.
    """
    session = start_session(master, remote, settings or {}, keep_archive, notice)
    register_sources(session)
    return session


def register_sources(session: SparkSession) -> None:
    """Make our formats known to `session.read.format(...)`: traces, and the spools of live nodes."""
    from earshot.pipeline.traces.sources import TRACE_SOURCES
    from earshot.pipeline.watch.spool_source import SpoolSource

    for source in TRACE_SOURCES:
        session.dataSource.register(source)
    session.dataSource.register(SpoolSource)
