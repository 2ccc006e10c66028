from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from earshot.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One local session for all tests of a process; it ends with the process."""
    quick = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    }
    return spark_session("local[2]", keep_archive=False, settings=quick)


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], object]], None]:
    """Look until something is so: for what other processes do in their own time."""

    def wait(condition: Callable[[], object], most_s: float = 240.0) -> None:
        until = time.monotonic() + most_s
        pause = threading.Event()
        while not condition():
            assert time.monotonic() < until, f"it did not happen within {most_s:g} s"
            pause.wait(0.05)

    return wait
