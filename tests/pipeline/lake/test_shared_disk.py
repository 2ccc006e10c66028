"""A cluster whose worker has a disk of its own under the lake's path: an error that says so, and an untouched lake."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cluster import QUICK, running_cluster

from earshot.pipeline.lake.arrow_lake import ArrowLake

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]


def own_mounts() -> list[str]:
    """The command before another that gives it a mount namespace of its own."""
    tool = shutil.which("unshare")
    options = ["--mount", "--propagation", "private"]
    for more in ([], ["--map-root-user"]):
        if tool and subprocess.run([tool, *more, *options, "true"], capture_output=True, check=False).returncode == 0:
            return [tool, *more, *options]
    pytest.skip("this machine allows no mount namespaces (unshare --mount)")


WRITE = """
import sys
master, root, quick = sys.argv[1:]
from earshot.errors import LakeError
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.session import spark_session

settings = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": quick, "spark.driver.memory": "512m"}
lake = Lake(spark_session(master=master, settings=settings), root)
for is_shared in (False, True):
    # Without the probe, the commit itself must see that the files are not there.
    lake._is_shared = is_shared
    rows = lake.session.range(0, 8, 1, 2).selectExpr("'x' a", "'y' b", "1.0 start", "2.0 end")
    try:
        lake.write(rows, "contacts", trace="city", range_m=1)
    except LakeError as error:
        print(str(error).replace(lake.folder.root, "LAKE"))
"""


@pytest.mark.slow
def test_workers_that_do_not_share_the_lake_are_refused_and_it_stays_as_it_was(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    lake = ArrowLake(shared / "lake")
    row = {"a": "p", "b": "q", "start": 0.0, "end": 1.0}
    lake.write_rows("contacts", [row], trace="city", range_m=1.0)
    before = sorted(str(path) for path in shared.rglob("*"))
    hidden = [*own_mounts(), "sh", "-c", f'mount -t tmpfs none "{shared}" && exec "$@"', "sh"]
    with running_cluster(tmp_path / "spark", workers=1, worker_prefix=hidden) as cluster:
        first, second = cluster.run(WRITE, shared / "lake", QUICK).splitlines()
    assert first.startswith("the worker on ")
    assert "does not share the lake LAKE with this machine: it does not see what this machine writes there" in first
    assert first.endswith(
        "put the lake on a disk that every machine of the cluster mounts at the same path, or in an "
        "object store (s3a://...)"
    )
    assert second.startswith("nothing was written to contacts in LAKE: a task wrote trace=city/range_m=1.0/part-")
    assert "but this machine sees no such file; put the lake on a disk" in second
    assert sorted(str(path) for path in shared.rglob("*") if "_probes" not in path.parts) == before
    assert lake.read("contacts").select(list(row)).to_pylist() == [row]
