"""A lake without Spark: what it reads, counts, finds, replaces and says of what is not there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from earshot.errors import LakeError, UnknownName
from earshot.pipeline.lake.arrow_lake import ArrowLake, asked, files_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.table_log import Snapshot
from earshot.pipeline.lake.tables import CONTACTS, METRICS, RUNS, arrow_schema


@pytest.fixture
def lake(tmp_path: Path) -> ArrowLake:
    return ArrowLake(tmp_path / "lake")


def meets(lake: ArrowLake, trace: str, range_m: float, *nodes: str) -> None:
    rows = [{"a": node, "b": "z", "start": float(number), "end": 9.0} for number, node in enumerate(nodes)]
    lake.write_rows("contacts", rows, trace=trace, range_m=range_m)


@pytest.fixture
def filled(lake: ArrowLake) -> ArrowLake:
    meets(lake, "city", 50, "a", "b")
    meets(lake, "city", 100, "c")
    meets(lake, "sea", 50, "d", "e", "f")
    for seed in range(2):
        lake.write_rows("runs", [{"run": f"{name}{seed}", "seed": seed, "protocol": name} for name in ("cbf", "drip")])
    return lake


def test_a_lake_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder("lake")
    assert ArrowLake("lake").name == "lake"
    assert ArrowLake(Path("lake")).name == "lake"
    assert ArrowLake("lake", "mine").name == ArrowLake(folder, "mine").name == "mine"
    assert ArrowLake(folder).name == f"{tmp_path}/lake"
    assert ArrowLake(folder).folder is folder
    assert ArrowLake("lake").folder.root == f"{tmp_path}/lake"


def test_partitions_are_those_asked_for_in_order(filled: ArrowLake) -> None:
    city = [{"trace": "city", "range_m": "100.0"}, {"trace": "city", "range_m": "50.0"}]
    sea = {"trace": "sea", "range_m": "50.0"}
    assert filled.partitions("contacts") == [*city, sea]
    assert filled.partitions("contacts", trace="city") == city
    assert filled.partitions("contacts", range_m=50) == [city[1], sea]
    assert filled.partitions("contacts", range_m=50, trace="sea") == [sea]
    assert filled.partitions("contacts", trace="land") == filled.partitions("positions") == []
    assert filled.keys("contacts", trace="sea") == {("sea", "50.0")}
    assert filled.keys("runs") == {("cbf0",), ("cbf1",), ("drip0",), ("drip1",)}
    assert (filled.has("runs", run="cbf1"), filled.has("runs", run="cbf2"), filled.has("positions")) == (
        True, False, False,
    )  # fmt: skip
    with pytest.raises(LakeError, match="contacts is partitioned by trace, range_m, not by node"):
        filled.has("contacts", node="a")
    with pytest.raises(UnknownName, match="contacts"):
        filled.partitions("contact")


def test_rows_are_read_with_their_partitions_as_the_types_of_the_table(filled: ArrowLake) -> None:
    found = filled.read("contacts", range_m=50.0, trace="city")
    assert found.schema == arrow_schema("contacts", with_partitions=True)
    assert found.to_pylist() == [
        {"trace": "city", "range_m": 50.0, "a": "a", "b": "z", "start": 0.0, "end": 9.0},
        {"trace": "city", "range_m": 50.0, "a": "b", "b": "z", "start": 1.0, "end": 9.0},
    ]
    assert sorted(filled.read("contacts", range_m=50)["a"].to_pylist()) == ["a", "b", "d", "e", "f"]
    for nothing in (filled.read("contacts", trace="land"), filled.read("positions")):
        assert (nothing.num_rows, nothing.schema.names[0]) == (0, "trace")


def test_rows_of_one_run_are_picked_from_the_file_they_share(filled: ArrowLake) -> None:
    (snapshot,) = [filled.snapshot(RUNS)]
    assert snapshot is not None
    assert [file.rows for file in snapshot.files] == [2, 2]
    assert [(row["run"], row["seed"]) for row in filled.read("runs", run="drip1").to_pylist()] == [("drip1", 1)]
    batches = list(filled.batches("runs", ["seed", "run"], run="cbf0"))
    assert [(batch.schema.names, batch.to_pylist()) for batch in batches if batch.num_rows] == [
        (["seed", "run"], [{"seed": 0, "run": "cbf0"}])
    ]
    assert sum(batch.num_rows for batch in filled.batches("runs", ["run"])) == 4


def test_rows_are_counted_by_files(filled: ArrowLake) -> None:
    assert filled.count_rows("contacts") == 6
    assert filled.count_rows("contacts", trace="sea") == 3
    assert filled.count_rows("contacts", trace="city", range_m=100) == 1
    assert filled.count_rows("contacts", trace="land") == filled.count_rows("positions") == 0
    assert filled.count_rows("runs", run="cbf0") == 4, "of a clustered table, at most"


def test_rows_with_values_are_found_where_the_partition_is_there(filled: ArrowLake) -> None:
    found = filled.rows("contacts", {"b": "z", "start": 1.0}, range_m=50)
    assert sorted((row["trace"], row["a"]) for row in found) == [("city", "b"), ("sea", "e")]
    assert filled.rows("contacts", {"a": "a", "start": 1.0}, trace="city") == []
    assert [row["seed"] for row in filled.rows("runs", {"protocol": "drip"}, run="drip1")] == [1]
    assert len(filled.rows("runs", {})) == 4
    with pytest.raises(LakeError, match="has no contacts of trace land, only of trace city"):
        filled.rows("contacts", {}, trace="land")


def test_what_is_absent_is_said_with_what_is_there(filled: ArrowLake) -> None:
    def said(**partition: str | float) -> str:
        return str(filled.absent(CONTACTS, partition)).replace(filled.name, "HERE")

    assert said(trace="land", range_m=2.5) == (
        "the lake HERE has no contacts of trace land, range_m 2.5, only of trace city, range_m 100.0, "
        "trace city, range_m 50.0, trace sea, range_m 50.0; run: earshot contacts land --range 2.5 --lake HERE"
    )
    assert said() == "the lake HERE has no contacts; run: earshot contacts TRACE --range RANGE_M --lake HERE"


def test_many_others_are_named_by_five(lake: ArrowLake) -> None:
    for number in range(7):
        lake.write_rows("profiles", [{"trace": f"t{number}"}])
    text = str(lake.absent(lake.logs()[0].kind, {"trace": "x"}))
    assert [f"t{number}" in text for number in range(7)] == [True] * 5 + [False] * 2


def test_a_table_that_is_emptied_is_still_a_table(filled: ArrowLake) -> None:
    filled.drop("contacts", range_m=50)
    assert filled.partitions("contacts") == [{"trace": "city", "range_m": "100.0"}]
    filled.drop("contacts")
    filled.drop("contacts")
    assert (filled.partitions("contacts"), filled.read("contacts").num_rows) == ([], 0)
    changes = [
        (one["version"], one["change"], one.get("files_replaced")) for one in filled.logs("contacts")[0].history()
    ]
    assert changes[:2] == [(5, "drop", 1), (4, "drop", 2)]
    text = str(filled.absent(CONTACTS, {"trace": "x"}))
    assert "has no contacts; run: earshot contacts x --range RANGE_M" in text


def test_files_become_parts_of_their_tables_one_commit_each(lake: ArrowLake) -> None:
    first = lake.files.write_rows("contacts", [{"a": "a"}], trace="city", range_m=1)
    other = lake.files.write_rows("positions", [{"node": "a"}], trace="city")
    second = lake.files.write_rows("contacts", [{"a": "b"}], trace="city", range_m=1)
    assert lake.tables() == []
    lake.commit([first, other, second])
    sizes = first.size_bytes + second.size_bytes
    assert lake.tables() == [
        {"table": "positions", "version": 1, "partitions": 1, "files": 1, "rows": 1, "bytes": other.size_bytes},
        {"table": "contacts", "version": 1, "partitions": 1, "files": 2, "rows": 2, "bytes": sizes},
    ]
    lake.commit([])
    assert [one["version"] for one in lake.tables()] == [1, 1]


def test_replaced_partitions_are_those_of_the_files_and_those_named(filled: ArrowLake) -> None:
    file = filled.files.write_rows("contacts", [{"a": "x"}], trace="city", range_m=50)
    filled.replaced = ["earlier"]
    snapshot = filled.snapshot(CONTACTS)
    assert snapshot is not None
    gone = [f"contacts/{one.path}" for one in snapshot.files if one.partition["range_m"] == "50.0"]
    assert filled.replace(CONTACTS, [file], [("sea", "50.0"), ("land", "1.0")]) == {
        ("city", "50.0"), ("sea", "50.0"), ("land", "1.0"),
    }  # fmt: skip
    assert sorted(filled.read("contacts")["a"].to_pylist()) == ["c", "x"]
    assert filled.replaced == ["earlier", *gone]


def test_what_was_replaced_is_not_collected_unless_asked_for(filled: ArrowLake) -> None:
    meets(filled, "city", 50, "x")
    assert filled.replaced is None


def test_rows_of_a_clustered_table_name_their_partition_or_get_it(lake: ArrowLake) -> None:
    lake.write_rows("metrics", [{"run": "r", "metric": "m", "value": 1.0}, {"run": "s", "metric": "m", "value": 2.0}])
    lake.write_rows("metrics", [{"metric": "n", "value": 3.0}], run="s")
    lake.write_rows("metrics", [], run="r")
    assert [(row["run"], row["metric"], row["value"]) for row in lake.read("metrics").to_pylist()] == [("s", "n", 3.0)]


def test_a_partition_that_is_not_named_whole_is_refused(lake: ArrowLake) -> None:
    with pytest.raises(LakeError, match=r"^contacts is partitioned by trace, range_m: name the partition$"):
        lake.write_table(pa.table({"a": ["x"]}), "contacts", trace="city")
    assert not lake.folder.exists()


def test_logs_are_of_the_tables_there_are(filled: ArrowLake, tmp_path: Path) -> None:
    assert [log.kind.name for log in filled.logs()] == ["contacts", "runs"]
    assert [log.kind.name for log in filled.logs("runs")] == ["runs"]
    with pytest.raises(LakeError, match=rf"^the lake {filled.name} has no positions$"):
        filled.logs("positions")
    with pytest.raises(
        LakeError, match=r"^there is no lake at .*/no; give the folder that a command had as its --lake$"
    ):
        ArrowLake(tmp_path / "no").logs("runs")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LakeError, match=r"/empty has no tables$"):
        ArrowLake(tmp_path / "empty").logs()


def test_an_earlier_version_is_a_snapshot_too(filled: ArrowLake) -> None:
    versions = [filled.snapshot(CONTACTS, version) for version in range(4)]
    assert [(one.version, len(one.files)) for one in versions if one] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert filled.snapshot(METRICS) is None


def test_what_is_asked_for_is_text_and_folders_say_which_files_may_have_it() -> None:
    assert asked(CONTACTS, {"range_m": 5, "trace": "city"}) == {"range_m": "5.0", "trace": "city"}
    partitions = [{"trace": trace, "range_m": text} for trace in ("city", "sea") for text in ("5.0", "6.0")]
    files = [DataFile("contacts", f"{number}", 1, 1, one) for number, one in enumerate(partitions)]
    snapshot = Snapshot(1, files, [])
    assert files_of(CONTACTS, snapshot, {}) == files
    assert files_of(CONTACTS, snapshot, {"trace": "sea"}) == files[2:]
    assert files_of(CONTACTS, snapshot, {"range_m": "6.0"}) == [files[1], files[3]]
    assert files_of(CONTACTS, snapshot, {"range_m": "6.0", "trace": "land"}) == []
    clustered = [DataFile("runs", "0", 1, 1, {})]
    assert files_of(RUNS, Snapshot(1, clustered, []), {"run": "r"}) == clustered
