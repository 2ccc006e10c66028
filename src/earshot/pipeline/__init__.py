"""The data pipeline on Spark: traces, contacts, workloads, the oracle, campaigns, metrics, reports.

Importing it lets the session that runs, if any, read our trace formats; a session made later asks
`register_sources` (our own, from `earshot.pipeline.spark.session.spark_session`, does).
"""

from __future__ import annotations

import sys

from earshot.pipeline.traces.sources import register_sources

__all__ = ["register_sources"]


def _register_with_the_running_session() -> None:
    if "pyspark.sql" in sys.modules:
        session = sys.modules["pyspark.sql"].SparkSession.getActiveSession()
        if session is not None:
            register_sources(session)


_register_with_the_running_session()
