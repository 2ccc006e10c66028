from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from sizes import LONG, QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("EARSHOT_PROGRESS", "off")
settings.register_profile("short", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("short"), max_examples=10)
settings.load_profile("long" if LONG else "quick" if QUICK else "short")


SLOW_FIRST = (
    "pipeline/watch/test_stream.py",
    "test_docs.py",
    "pipeline/campaigns",
    "pipeline/spark",
    "pipeline",
    "studies",
    "faults",
    "live",
    "cli",
)
"Files that take long start first: otherwise one process works alone at the end."


TESTS = Path(__file__).parent


@cache
def _rank(path: Path) -> int:
    file = path.relative_to(TESTS).as_posix()
    return next((i for i, start in enumerate(SLOW_FIRST) if file.startswith(start)), len(SLOW_FIRST))


class SparkInOneProcess(LoadFileScheduling):
    """The first process takes the files that use Spark, the others take the rest; the one that has finished helps.

    A session takes long to start and becomes faster while it is used: one process has it, and not each.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        spark = node is next(iter(self.assigned_work))
        if own := next((file for file in self.workqueue if uses_spark(file) == spark), None):
            self.workqueue.move_to_end(own, last=False)
        super()._assign_work_unit(node)


@cache
def uses_spark(file: str) -> bool:
    """Whether tests of the file ask for a session; the file is named from the project's folder."""
    text = (TESTS.parent / file).read_text()
    return "pytest.mark.spark" in text or 'getfixturevalue("spark")' in text


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return SparkInOneProcess(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path))
    if not LONG:
        for item in items:
            if "long" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="a long test; run it with EARSHOT_TEST_SIZE=long"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real inputs, made by others: EARSHOT_DATA, or shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("EARSHOT_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}; name its folder in EARSHOT_DATA")
    return folder


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One local session for all tests of a process; it ends with the process."""
    from earshot.pipeline import spark_session

    # Room for what a query leaves behind: otherwise a tenth of the time goes into collecting garbage.
    java = "-XX:ReservedCodeCacheSize=240m -Xmn400m"
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": java}
    return spark_session("local[2]", small=True, keep_archive=False, settings=quick)
