"""Spark's Python daemon with our packages loaded. Workers are forked from it, so that none has to load them again.

For local mode, where the daemon runs on our own interpreter (`spark.python.daemon.module`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from pathlib import Path


def without_archives(paths: Iterable[str]) -> list[str]:
    """The places to import from, without the archives of PySpark whose code is also installed in one of them. Spark
    names the archives first, and Python would compile what it takes from them again in every process."""
    known = list(paths)
    installed = {Path(path) / "pyspark" / "python" / "lib" for path in known}
    return [path for path in known if Path(path).suffix != ".zip" or Path(path).resolve().parent not in installed]


def load_packages() -> None:
    """What the workers would load themselves."""
    import pandas  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pyspark.sql.pandas.serializers
    import pyspark.worker  # noqa: F401

    import earshot.pipeline.spark.tasks  # noqa: F401


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    load_packages()
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()  # Spark collects a worker's garbage in full after every task
    manager()
