"""Progress of Spark jobs, as a notebook shows it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from earshot.pipeline.spark.progress import show_progress, tasks_of_jobs, watch_jobs

pytestmark = pytest.mark.spark


def test_tasks_are_counted_while_a_job_runs(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    gate = str(tmp_path / "seen")

    def waiting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        for batch in batches:
            end = time.monotonic() + 60.0
            while batch.column(0)[0].as_py() == 2 and not os.path.exists(gate) and time.monotonic() < end:
                time.sleep(0.05)  # the last task waits until the first two were seen to be done
            yield batch

    def show(done: int, total: int) -> None:
        seen.append((done, total))
        if (done, total) == (2, 3):
            Path(gate).touch()

    with watch_jobs(spark, show):
        # Collected, not counted: a count is a second stage, whose task counts or not, as Spark plans it.
        assert len(spark.range(0, 3, 1, 3).mapInArrow(waiting, "id long").collect()) == 3
    assert (2, 3) in seen
    assert tasks_of_jobs(spark) == (0, 0)


def test_progress_is_one_line_that_is_empty_at_the_end(spark: SparkSession) -> None:
    shown = io.StringIO()
    with show_progress(spark, shown):
        spark.range(10).collect()
    assert shown.getvalue().endswith("\r\x1b[2K")
    assert "\n" not in shown.getvalue()
