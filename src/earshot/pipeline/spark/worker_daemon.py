"""Spark's Python daemon with our packages loaded. Workers are forked from it, so that none has to load them again.

For local mode, where the daemon runs on our own interpreter (`spark.python.daemon.module`).
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401 - Spark's workers load it
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import earshot.pipeline.spark.tasks  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # Spark collects a worker's garbage in full after every task
    manager()
