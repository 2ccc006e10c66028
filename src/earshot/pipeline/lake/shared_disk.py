"""Whether a cluster's workers see the lake's folder as the driver does. Asked before work starts.

A worker with a disk of its own under the same path would write there, and nobody would find it.
"""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.errors import LakeError
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.spark.session import is_connect, parallelism

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def check_shared(session: SparkSession, folder: Folder) -> None:
    """LakeError where a worker does not read what the driver writes there, or the driver what a worker writes."""
    if not is_connect(session) and str(session.sparkContext.master).startswith("local"):
        return
    probe = f"_probes/{uuid.uuid4().hex}"
    folder.write(f"{probe}/driver", probe.encode())
    try:
        tasks = 2 * parallelism(session)
        rows = session.range(0, tasks, 1, tasks).mapInArrow(
            _Probe(folder, probe), "task long, host string, problem string"
        )
        for row in rows.collect():
            problem = row["problem"]
            if not problem and folder.read(f"{probe}/{row['task']}") != row["host"].encode():
                problem = "what it writes there is not seen here"
            if problem:
                raise LakeError(
                    f"the worker on {row['host']} does not share the lake {folder.root} with this machine: {problem}; "
                    "put the lake on a disk that every machine of the cluster mounts at the same path, or in an object "
                    "store (s3a://...)"
                )
    finally:
        folder.delete(probe)


class _Probe:
    """What a task does: read the driver's file, and write one back."""

    def __init__(self, folder: Folder, probe: str) -> None:
        self.folder = folder
        self.probe = probe

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        host = platform.node()
        for batch in batches:
            for task in batch.column(0).to_pylist():
                problem = ""
                try:
                    if self.folder.read(f"{self.probe}/driver") != self.probe.encode():
                        problem = "it does not see what this machine writes there"
                    else:
                        self.folder.write(f"{self.probe}/{task}", host.encode())
                except OSError as error:
                    problem = f"it cannot read or write there ({error.strerror or error})"
                yield pa.RecordBatch.from_pydict({"task": [task], "host": [host], "problem": [problem]})
