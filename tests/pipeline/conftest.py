from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from earshot.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One local session for all tests of a process; it ends with the process."""
    return spark_session("local[2]", keep_archive=False)
