"""The lake through a session of Spark's kind, without a JVM: what it writes, reads, refuses and asks of workers."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from spark_on_duckdb import Frame, Session

from earshot.errors import LakeError, UnknownName
from earshot.pipeline.lake import lake as lake_module
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.lake import Lake, _no_pattern, _probe, _probe_workers
from earshot.pipeline.lake.tables import CONTACTS

COLUMNS = "a string, b string, start double, end double"


@pytest.fixture
def lake(quick_spark: Session, tmp_path: Path) -> Lake:
    return Lake(quick_spark, tmp_path / "a lake [1]")  # type: ignore[arg-type]


def contacts(lake: Lake, *nodes: str) -> Any:
    return lake.session.createDataFrame([(node, "z", 0.0, 1.0) for node in nodes], COLUMNS)


def nodes(frame: Any) -> list[str]:
    return sorted("{}@{}:{}".format(*tuple(row)[:3]) for row in frame.collect())


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.write(contacts(lake, "a", "b"), "contacts", trace="o'er/the=sea", range_m=50)
    lake.write(contacts(lake, "c"), "contacts", trace="city", range_m=math.inf)
    lake.write(contacts(lake, "d"), "contacts", trace="city", range_m=50)
    return lake


def test_a_partition_is_replaced_and_the_others_stay(filled: Lake) -> None:
    assert filled.name == filled.arrow.name == str(filled.folder.root)
    assert filled.write(contacts(filled, "x", "y"), "contacts", trace="city", range_m=50) == [
        {"trace": "city", "range_m": "50.0"}
    ]
    assert nodes(filled.read("contacts")) == [
        "city@50.0:x", "city@50.0:y", "city@inf:c", "o'er/the=sea@50.0:a", "o'er/the=sea@50.0:b",
    ]  # fmt: skip
    assert nodes(filled.read("contacts", trace="city")) == ["city@50.0:x", "city@50.0:y", "city@inf:c"]
    assert nodes(filled.read("contacts", trace="city", range_m=math.inf)) == ["city@inf:c"]
    assert filled.read("contacts").columns == list(CONTACTS.columns)
    assert filled.partitions("contacts", range_m=math.inf) == [{"trace": "city", "range_m": "Infinity"}]
    filled.drop("contacts", trace="city")
    assert (filled.has("contacts", trace="city"), filled.has("contacts")) == (False, True)


def test_an_empty_partition_is_a_partition_and_an_empty_run_is_none(lake: Lake) -> None:
    assert lake.write(contacts(lake), "contacts", trace="lonely", range_m=1) == [{"trace": "lonely", "range_m": "1.0"}]
    assert nodes(lake.read("contacts", trace="lonely")) == []
    metrics = lake.session.createDataFrame([], "metric string, by string, key string, value double")
    assert lake.write(metrics, "metrics", run="r") == [{"run": "r"}]
    assert not lake.has("metrics")


def test_partitions_come_from_the_rows_where_they_are_not_named(lake: Lake) -> None:
    rows = [("sea", 2.0, "a"), ("city", 1.0, "b"), ("sea", 1.0, "c"), ("city", 1.0, "d")]
    frame = lake.session.createDataFrame(
        [(*row, "z", 0.0, 1.0) for row in rows], f"trace string, range_m double, {COLUMNS}"
    )
    assert lake.write(frame, "contacts") == [
        {"trace": "city", "range_m": "1.0"}, {"trace": "sea", "range_m": "1.0"}, {"trace": "sea", "range_m": "2.0"},
    ]  # fmt: skip
    (snapshot,) = [lake.arrow.snapshot(CONTACTS)]
    assert [file.rows for file in snapshot.files] == [2, 1, 1], "a file for each partition"  # type: ignore[union-attr]
    assert lake.write(frame.drop("trace"), "contacts", trace="land") == [
        {"trace": "land", "range_m": "1.0"}, {"trace": "land", "range_m": "2.0"},
    ]  # fmt: skip
    assert nodes(lake.read("contacts", range_m=1)) == [
        "city@1.0:b", "city@1.0:d", "land@1.0:b", "land@1.0:c", "land@1.0:d", "sea@1.0:c",
    ]  # fmt: skip
    assert lake.write(frame.limit(0), "contacts") == []


def test_rows_of_one_run_are_read_from_the_file_that_runs_share(lake: Lake) -> None:
    rows = [(run, "m", "all", "", float(number)) for number, run in enumerate("abab")]
    frame = lake.session.createDataFrame(rows, "run string, metric string, by string, key string, value double")
    lake.write(frame, "metrics")
    assert sorted(row["value"] for row in lake.read("metrics", run="b").collect()) == [1.0, 3.0]
    assert len(lake.read("metrics").collect()) == 4
    with pytest.raises(LakeError, match=r"has no metrics of run c, only of run a, run b; run: earshot sweep"):
        lake.read("metrics", run="c")


def test_the_frame_may_have_more_columns_in_any_order_and_other_types(lake: Lake) -> None:
    rows = [(7, 2, "b", "a", 1)]
    frame = lake.session.createDataFrame(rows, "more int, end int, b string, a string, start int")
    lake.write(frame, "contacts", trace="city", range_m=1)
    assert [tuple(row) for row in lake.read("contacts").collect()] == [("city", 1.0, "a", "b", 1.0, 2.0)]


def test_columns_that_rows_may_lack_are_null_and_others_are_asked_for(lake: Lake) -> None:
    places = "node string, time double, x_m double, y_m double, speed_m_s double, heading_deg double"
    more = f"{places}, until double, x_m_s double, y_m_s double"
    lake.write(lake.session.createDataFrame([("a", *[0.0] * 8)], more), "positions", trace="city")
    (row,) = lake.read("positions").collect()
    assert (row["type"], row["others"], row["node"]) == (None, None, "a")
    with pytest.raises(LakeError, match=r"^rows for positions lack until, x_m_s, y_m_s$"):
        lake.write(lake.session.createDataFrame([], places), "positions", trace="city")
    with pytest.raises(LakeError, match=r"^contacts is partitioned by trace, range_m: give them in that order$"):
        lake.write(contacts(lake), "contacts", range_m=1)


def test_an_earlier_version_stays_readable(filled: Lake) -> None:
    assert nodes(filled.read_version("contacts", 1)) == ["o'er/the=sea@50.0:a", "o'er/the=sea@50.0:b"]
    filled.write(contacts(filled, "e"), "contacts", trace="city", range_m=50)
    assert nodes(filled.read_version("contacts", 3, trace="city", range_m=50)) == ["city@50.0:d"]
    filled.write_table(pa.table({"run": ["r"], "metric": ["m"], "by": [""], "key": [""], "value": [1.0]}), "metrics")
    filled.drop("metrics", run="r")
    assert [row["run"] for row in filled.read_version("metrics", 1, run="r").collect()] == ["r"]


def test_what_is_not_there_is_said_or_is_an_empty_frame(filled: Lake) -> None:
    with pytest.raises(LakeError, match=r"has no positions; run: earshot ingest FILE --trace city --lake"):
        filled.read("positions", trace="city")
    with pytest.raises(UnknownName, match="did you mean 'contacts'"):
        filled.read("contact")
    nothing = filled.read_or_empty("contacts", trace="land")
    assert (nothing.columns, nothing.collect()) == (list(CONTACTS.columns), [])
    assert nodes(filled.read_or_empty("contacts", range_m=math.inf)) == ["city@inf:c"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_more_files_than_paths_are_picked_from_their_folder(
    filled: Lake, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """What was replaced lies in the same folders, and is not read."""
    filled.write(contacts(filled, "x"), "contacts", trace="city", range_m=50)
    monkeypatch.setattr(lake_module, "MOST_PATHS", most)
    assert nodes(filled.read("contacts")) == [
        "city@50.0:x", "city@inf:c", "o'er/the=sea@50.0:a", "o'er/the=sea@50.0:b",
    ]  # fmt: skip
    assert nodes(filled.read("contacts", trace="city")) == ["city@50.0:x", "city@inf:c"]
    assert nodes(filled.read("contacts", range_m=50)) == ["city@50.0:x", "o'er/the=sea@50.0:a", "o'er/the=sea@50.0:b"]


def test_files_are_written_without_a_commit_and_read_by_themselves(filled: Lake) -> None:
    files = filled.write_files(contacts(filled, "x", "y"), "contacts", "mine", trace="city", range_m=50)
    assert [(file.rows, file.path.rpartition("/")[2].partition("-")[0]) for file in files] == [(2, "mine")]
    assert nodes(filled.read("contacts", trace="city", range_m=50)) == ["city@50.0:d"]
    assert nodes(filled.read_files("contacts", files)) == ["city@50.0:x", "city@50.0:y"]


@pytest.mark.parametrize("pattern", ["a[1]*{b,c}?\\d", "plain/name=x"])
def test_a_path_is_no_pattern(pattern: str) -> None:
    assert _no_pattern(pattern).replace("\\", "") == pattern.replace("\\", "")
    assert _no_pattern("a[1]*{b}?\\") == "a\\[1\\]\\*\\{b\\}\\?\\\\"
    assert _no_pattern("plain/name=x") == "plain/name=x"


# Object stores: Spark may have no file system for them.


class NoStore(Session):
    """A session that reads no address of an object store."""

    def __init__(self, says: str) -> None:
        super().__init__()
        self.says = says
        self.asked: list[str] = []

    @property
    def read(self) -> Any:
        def parquet(path: str) -> Any:
            self.asked.append(path)
            raise ValueError(self.says)

        reader = SimpleNamespace(option=lambda *_: reader, parquet=parquet)
        return SimpleNamespace(schema=lambda _: reader)


def test_where_spark_has_no_file_system_tasks_read_the_files_themselves(filled: Lake) -> None:
    session: Any = NoStore("ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")
    found = filled.arrow.snapshot(CONTACTS)
    assert found is not None
    lake = Lake(session, filled.folder.root)
    lake.folder.local = None  # its address is looked at, and its files are found as before
    lake.folder.__dict__["system"] = filled.folder.system
    frame = lake._frame(CONTACTS, found.files, {})
    assert nodes(frame) == ["city@50.0:d", "city@inf:c", "o'er/the=sea@50.0:a", "o'er/the=sea@50.0:b"]
    lake._frame(CONTACTS, found.files[:1], {})
    assert len(session.asked) == 1, "it is tried once"


@pytest.mark.usefixtures("quick_spark")
def test_another_error_of_a_read_is_raised() -> None:
    lake = Lake(NoStore("no permission"), "memory:///lake")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no permission"):
        lake._frame(CONTACTS, [DataFile("contacts", "x", 1, 1, {})], {})


# Workers that do not share the folder.


def probed(folder: Folder, tasks: Iterable[int]) -> list[dict[str, Any]]:
    batches = [pa.RecordBatch.from_pydict({"id": [task]}) for task in tasks]
    return [row for batch in _probe(folder, "_probes/p", iter(batches)) for row in batch.to_pylist()]


def test_a_worker_that_shares_the_folder_answers_with_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: "worker-7")
    folder = Folder(tmp_path)
    folder.write("_probes/p/driver", b"_probes/p")
    good = {"host": "worker-7", "problem": ""}
    assert probed(folder, [0, 3]) == [{"task": 0, **good}, {"task": 3, **good}]
    assert folder.files("") == ["_probes/p/0", "_probes/p/3", "_probes/p/driver"]
    assert folder.read("_probes/p/3") == b"worker-7"


def test_a_worker_that_does_not_see_the_drivers_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    for before in (None, b"of another lake"):
        if before is not None:
            folder.write("_probes/p/driver", before)
        assert [row["problem"] for row in probed(folder, [0])] == ["it does not see what this machine writes there"]

    def broken(error: OSError) -> Callable[..., None]:
        def read(*_: Any) -> None:
            raise error

        return read

    for error, cause in ((OSError(errno.EACCES, "Permission denied"), "Permission denied"), (OSError("gone"), "gone")):
        monkeypatch.setattr(Folder, "read", broken(error))
        assert [row["problem"] for row in probed(folder, [0])] == [f"it cannot read or write there ({cause})"]


class Cluster(Session):
    """A session with workers of its own: each sees the folder or not."""

    def __init__(self, answer: Callable[[int], str] = lambda _: "") -> None:
        super().__init__()
        self._jsparkSession = None
        self.sparkContext = SimpleNamespace(master="spark://m:7077", defaultParallelism=2)
        self.answer = answer
        self.jobs: list[int] = []

    def range(self, first: int, last: int, step: int, tasks: int) -> Frame:
        self.jobs.append(tasks)
        found = super().range(first, last, step, tasks)
        task = found.mapInArrow

        def map_in_arrow(work: Any, ddl: str) -> Frame:
            def answered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for batch in work(batches):
                    (row,) = batch.to_pylist()
                    problem = self.answer(row["task"])
                    yield pa.RecordBatch.from_pylist([{**row, "problem": problem}], schema=batch.schema)

            return task(answered, ddl)

        found.mapInArrow = map_in_arrow  # type: ignore[method-assign]
        return found


def test_a_cluster_whose_workers_share_the_lake_is_asked_once(tmp_path: Path) -> None:
    session: Any = Cluster()
    lake = Lake(session, tmp_path)
    lake.check_shared()
    lake.check_shared()
    assert session.jobs == [4], "two tasks a core"
    assert lake.folder.files("") == [], "the probes are gone"


@pytest.mark.parametrize("says", ["it does not see it", "what it writes there is not seen here"])
def test_a_worker_with_a_disk_of_its_own_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    monkeypatch.setattr("platform.node", lambda: "worker-7")
    session: Any = Cluster(lambda task: says if task == 3 and says.startswith("it") else "")
    if says.startswith("what"):
        read = Folder.read
        monkeypatch.setattr(Folder, "read", lambda self, path: None if path.endswith("/2") else read(self, path))
    lake = Lake(session, tmp_path)
    for _ in range(2):
        with pytest.raises(LakeError) as caught:
            lake.check_shared()
        assert str(caught.value) == (
            f"the worker on worker-7 does not share the lake {tmp_path} with this machine: {says}; "
            "put the lake on a disk that every machine of the cluster mounts at the same path, or in an object "
            "store (s3a://...)"
        )
    assert session.jobs == [4, 4], "it is asked again after a failure"
    assert lake.folder.files("") == []


def test_workers_of_this_machine_are_not_asked(tmp_path: Path) -> None:
    session: Any = Cluster()
    session.sparkContext.master = "local-cluster[2,1,1024]"
    _probe_workers(session, Folder(tmp_path))
    assert session.jobs == []


def test_tasks_return_what_they_counted(filled: Lake) -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"trace": trace, "range_m": 1.0, "a": trace, "b": "z", "start": 0.0, "end": 1.0} for trace in ("x", "y")]
    )
    found = list(lake_module._write(filled.arrow.files, "contacts", {"range_m": "1.0"}, "mine", iter([batch])))
    files = [DataFile(**json.loads(row["file"])) for one in found for row in one.to_pylist()]
    assert [(file.partition["trace"], file.rows) for file in files] == [("x", 1), ("y", 1)]
    assert nodes(filled.read_files("contacts", files)) == ["x@1.0:x", "y@1.0:y"]
