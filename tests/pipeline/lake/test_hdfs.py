"""Lakes and traces in HDFS: Hadoop's own servers, reached by Spark, delta-rs and tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from all_stages import ANSWERS, check_writers_at_once, inputs, run_stages
from hdfs import running_hdfs

from earshot.errors import TraceError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.folder import Folder
from earshot.traces.files import expanded, size_of

JARS = os.environ.get("EARSHOT_HDFS_JARS", "")


@pytest.mark.spark
@pytest.mark.skipif(not JARS, reason="no HDFS; name the folder of its jars in EARSHOT_HDFS_JARS (tests: hdfs.py)")
def test_every_stage_runs_on_hdfs(tmp_path: Path, wait_for: Callable[[Callable[[], object]], None]) -> None:
    with running_hdfs(tmp_path, JARS, wait_for) as address:
        folder = Folder(f"{address}/inputs")
        for name, text in inputs().items():
            folder.write(name, text.encode())
        traces = [f"{address}/inputs/traces/ann.csv", f"{address}/inputs/traces/bob.csv"]
        assert expanded([f"{address}/inputs/traces/*.csv"]) == expanded([f"{address}/inputs/traces"]) == traces
        assert size_of(traces[0]) == len(inputs()["traces/ann.csv"])
        with pytest.raises(TraceError, match=r"there is no trace file hdfs://.*/no\*\.csv"):
            expanded([f"{address}/inputs/traces/no*.csv"])

        check_writers_at_once(ArrowLake(f"{address}/commits"))

        done = run_stages({"master": "local[2]"}, f"{address}/lake", folder.root)
        assert {name: done[name] for name in ANSWERS} == ANSWERS
        kept = ArrowLake(f"{address}/lake").read("contacts")
        assert kept.select(["a", "b"]).to_pylist() == [{"a": "ann", "b": "bob"}]
