from __future__ import annotations

import gc
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
    "view/test_browser.py",
    "test_base_install.py",
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


SPARK, COMPUTES, WAITS = range(3)
WAITING = ("tests/faults/", "tests/live/")
"Their tests wait for other processes and for timers most of the time."
WORTH_A_SESSION = 4
"One more session takes as long to start as a file or two of tests."


def first_kind(place: int) -> int:
    """Which kind of files the process at this place takes first."""
    return place if place in (SPARK, WAITS) else COMPUTES


class ByKind(LoadFileScheduling):
    """The first process takes the files that use Spark, the third those that wait for timers, and all others the rest;
    one that has finished helps.

    A session takes long to start and becomes faster while it is used: one process has it, and not each. The second
    starts another one only if several files are left for it, and those after it never do.
    """

    def _place(self, node: WorkerController) -> int:
        return sorted(int(one.gateway.id.removeprefix("gw")) for one in self.nodes).index(
            int(node.gateway.id.removeprefix("gw"))
        )

    def _assign_work_unit(self, node: WorkerController) -> None:
        kinds = (first_kind(self._place(node)), COMPUTES, WAITS, SPARK)
        file = next(file for kind in kinds for file in self.workqueue if kind_of(file) == kind)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        only_spark = all(kind_of(file) == SPARK for file in self.workqueue)
        if only_spark and not self._may_use_spark(node) and not node.shutting_down:
            node.shutdown()
        else:
            super()._reschedule(node)

    def _may_use_spark(self, node: WorkerController) -> bool:
        place = self._place(node)
        return place == SPARK or (place == COMPUTES and len(self.workqueue) >= WORTH_A_SESSION)


@cache
def kind_of(file: str) -> int:
    """Which process takes the file, which is named from the project's folder."""
    text = (TESTS.parent / file).read_text()
    if "pytest.mark.spark" in text or 'getfixturevalue("spark")' in text:
        return SPARK
    return WAITS if file.startswith(WAITING) else COMPUTES


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return ByKind(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path))
    if not LONG:
        for item in items:
            if "long" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="a long test; run it with EARSHOT_TEST_SIZE=long"))


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # what was loaded stays to the end: no garbage collection needs to look at it again
    gc.set_threshold(10_000)  # seldom: a test leaves little in cycles, and those of memory collect it themselves
    worker = getattr(session.config, "workerinput", {}).get("workerid", "")
    if worker and first_kind(int(worker.removeprefix("gw"))) == COMPUTES and hasattr(os, "nice"):
        os.nice(5)  # the tests that take long by themselves go first, and these fill what they leave of the processors


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
