"""A table's Parquet files: their places, their rows, and what is left of one that could not be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from earshot.errors import LakeError
from earshot.pipeline.lake import data_files
from earshot.pipeline.lake.data_files import DataFile, DataFiles, Draft, file_schema, folder_of, partition_text
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.tables import CONTACTS, EXPECTED, METRICS, REACHABLE, arrow_schema


@pytest.fixture
def files(tmp_path: Path) -> DataFiles:
    return DataFiles(Folder(tmp_path))


def on_disk(files: DataFiles) -> list[str]:
    return files.folder.files("")


def contacts(*rows: tuple[str, float, str]) -> pa.RecordBatch:
    """Rows of contacts: trace, range and one of the two nodes."""
    found = [{"trace": trace, "range_m": range_m, "a": a} for trace, range_m, a in rows]
    return pa.RecordBatch.from_pylist(found, schema=arrow_schema("contacts", with_partitions=True))


def nodes_in(files: DataFiles, file: DataFile) -> list[str]:
    at = Path(files.folder.root) / file.table / file.path
    assert at.stat().st_size == file.size_bytes
    found = pq.ParquetFile(at).read()
    assert found.num_rows == file.rows
    return list(found.column("a").to_pylist())


@pytest.mark.parametrize(
    ("kind", "name", "value", "text"),
    [
        (CONTACTS, "range_m", 100, "100.0"),
        (CONTACTS, "range_m", "1e2", "100.0"),
        (CONTACTS, "range_m", 0.1, "0.1"),
        (REACHABLE, "range_m", float("inf"), "Infinity"),
        (REACHABLE, "range_m", "Infinity", "Infinity"),
        (CONTACTS, "trace", 100, "100"),
        (CONTACTS, "trace", "a/b=c", "a/b=c"),
    ],
)
def test_a_partition_value_is_a_text(kind: Any, name: str, value: Any, text: str) -> None:
    assert partition_text(kind, name, value) == text


def test_what_is_no_partition_is_refused() -> None:
    with pytest.raises(LakeError, match=r"^contacts is partitioned by trace, range_m, not by node$"):
        partition_text(CONTACTS, "node", "a")
    with pytest.raises(LakeError, match=r"^trace must not be empty$"):
        partition_text(CONTACTS, "trace", "")


def test_a_folder_names_its_partition_with_escapes() -> None:
    assert folder_of({}) == ""
    assert folder_of({"trace": "o'er/the=sea", "range_m": "1.0"}) == "trace=o%27er%2Fthe%3Dsea/range_m=1.0/"
    assert folder_of({"trace": "a\n\x7f{ü b}^.-_~!"}) == "trace=a%0A%7F%7Bü b}%5E.-_~!/"


def test_a_file_has_the_columns_that_its_folder_does_not_name() -> None:
    assert file_schema(CONTACTS).names == ["a", "b", "start", "end"]
    assert file_schema(METRICS).names == ["run", "metric", "by", "key", "value"]
    assert [str(kind) for kind in file_schema(METRICS).types] == ["string"] * 4 + ["double"]


def test_rows_of_a_partition_are_a_file_in_its_folder(files: DataFiles) -> None:
    file = files.write_rows("contacts", [{"a": "x", "start": 1}, {"a": "y"}], trace="o'er", range_m=50)
    assert (file.table, file.rows, file.partition) == ("contacts", 2, {"trace": "o'er", "range_m": "50.0"})
    assert file.path.startswith("trace=o%27er/range_m=50.0/part-")
    assert on_disk(files) == [f"contacts/{file.path}"]
    found = pq.ParquetFile(Path(files.folder.root) / "contacts" / file.path)
    assert found.read().to_pylist() == [
        {"a": "x", "b": None, "start": 1.0, "end": None},
        {"a": "y", "b": None, "start": None, "end": None},
    ]
    assert found.metadata.row_group(0).column(0).compression == "ZSTD"


def test_rows_of_a_clustered_table_keep_their_partition_in_the_file(files: DataFiles) -> None:
    rows = pa.table({"metric": ["m"], "value": [2], "more": ["left out"], "key": [""], "by": ["all"]})
    file = files.write_file("metrics", rows, {"run": "r"}, "mine")
    assert (file.partition, file.path.partition("-")[0]) == ({}, "mine")
    found = pq.ParquetFile(Path(files.folder.root) / "metrics" / file.path).read()
    assert found.to_pylist() == [{"run": "r", "metric": "m", "by": "all", "key": "", "value": 2.0}]


def test_a_table_without_a_column_leaves_no_file(files: DataFiles) -> None:
    with pytest.raises(KeyError, match="start"):
        files.write_table("contacts", pa.table({"a": ["x"], "b": ["y"]}), trace="city", range_m=1)
    assert on_disk(files) == []


def test_a_draft_is_written_by_others_and_is_a_file_afterwards(files: DataFiles) -> None:
    table = pa.table({"a": ["x", "y"]})
    with files.draft("contacts", range_m=50, trace="o'er") as draft:
        assert draft.file is None
        pq.write_table(table, draft.path)
        assert draft.path.parent == Path(files.folder.root) / "contacts" / "trace=o%27er" / "range_m=50.0"
    assert draft.file is not None
    assert (draft.file.rows, draft.file.partition) == (2, {"trace": "o'er", "range_m": "50.0"})
    assert on_disk(files) == [f"contacts/{draft.file.path}"]
    assert nodes_in(files, draft.file) == ["x", "y"]
    with files.draft("contacts", range_m=50, trace="o'er") as second:
        pq.write_table(table, second.path)
    assert len(on_disk(files)) == 2


def failed_draft(files: DataFiles, content: bytes | None) -> Draft:
    """A draft whose writer fails: after it wrote that, or before it wrote anything."""
    drafts = []
    with suppress(ZeroDivisionError), files.draft("contacts", trace="city", range_m=1) as draft:
        drafts.append(draft)
        if content is not None:
            draft.path.write_bytes(content)
        raise ZeroDivisionError
    return drafts[0]


@pytest.mark.parametrize("content", [b"half", None])
def test_a_draft_that_fails_leaves_no_file(files: DataFiles, content: bytes | None) -> None:
    draft = failed_draft(files, content)
    assert (draft.file, on_disk(files)) == (None, [])


def test_a_failed_draft_raises_what_its_writer_raised(files: DataFiles) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        files.draft("contacts", trace="city", range_m=1),
    ):
        raise ZeroDivisionError


def test_a_draft_for_an_object_store_is_written_on_this_machine_first() -> None:
    files = DataFiles(Folder("memory:///lake"))
    with files.draft("contacts", trace="city", range_m=1) as draft:
        pq.write_table(pa.table({"a": ["x", "y", "z"]}), draft.path)
        content = draft.path.read_bytes()
        assert on_disk(files) == []
    assert not draft.path.parent.exists()
    assert draft.file is not None
    assert (draft.file.rows, draft.file.size_bytes) == (3, len(content))
    assert files.folder.read(f"contacts/{draft.file.path}") == content
    failed = failed_draft(files, content)
    assert (len(on_disk(files)), failed.path.exists()) == (1, False)


def test_each_partition_of_a_tasks_rows_is_a_file(files: DataFiles) -> None:
    batches = [
        contacts(("city", 1.0, "a"), ("city", 1.0, "b"), ("city", 2.0, "c")),
        contacts(),
        contacts(("city", 2.0, "d"), ("sea", 2.0, "e"), ("sea", 2.0, "f")),
        contacts(("sea", 2.0, "g")),
    ]
    written = files.write_batches("contacts", iter(batches), {})
    assert [(list(file.partition.items()), nodes_in(files, file)) for file in written] == [
        ([("trace", "city"), ("range_m", "1.0")], ["a", "b"]),
        ([("trace", "city"), ("range_m", "2.0")], ["c", "d"]),
        ([("trace", "sea"), ("range_m", "2.0")], ["e", "f", "g"]),
    ]
    assert on_disk(files) == sorted(f"contacts/{file.path}" for file in written)
    assert files.write_batches("contacts", [], {}) == files.write_batches("contacts", [contacts()], {}) == []


def test_a_partition_that_is_given_does_not_come_from_the_rows(files: DataFiles) -> None:
    rows = [contacts(("ignored", 1.0, "a"), ("too", 2.0, "b"), ("three", 2.0, "c"))]
    written = files.write_batches("contacts", rows, {"trace": "city"}, "mine")
    assert [(list(file.partition.items()), nodes_in(files, file)) for file in written] == [
        ([("trace", "city"), ("range_m", "1.0")], ["a"]),
        ([("trace", "city"), ("range_m", "2.0")], ["b", "c"]),
    ]
    assert [file.path.rpartition("/")[2].partition("-")[0] for file in written] == ["mine", "mine"]
    (whole,) = files.write_batches("contacts", rows, {"range_m": "1.0", "trace": "city"})
    assert list(whole.partition.items()) == [("trace", "city"), ("range_m", "1.0")]
    assert nodes_in(files, whole) == ["a", "b", "c"]


def test_rows_of_many_runs_are_one_file_of_a_clustered_table(files: DataFiles) -> None:
    rows = [{"run": run, "metric": "m", "by": "all", "key": "", "value": 1.0} for run in "abc"]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema("metrics", with_partitions=True))
    (file,) = files.write_batches("metrics", [batch], {})
    assert (file.rows, file.partition) == (3, {})


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_row_without_its_partition_is_refused_and_no_file_stays(
    files: DataFiles, missing: str | None, at: int
) -> None:
    workloads: list[str | None] = ["v", "w", "x"]
    workloads[at] = missing
    schema = arrow_schema(EXPECTED.name, with_partitions=True)
    batches = [pa.RecordBatch.from_pylist([{"workload": one, "event": "e"}], schema=schema) for one in workloads]
    with pytest.raises(LakeError, match=r"^a row for expected has no value in workload$"):
        files.write_batches("expected", batches, {})
    assert on_disk(files) == []
    with pytest.raises(LakeError, match=r"^a row for contacts has no value in trace or range_m$"):
        files.write_batches("contacts", [contacts(("city", 1.0, "a"), ("city", None, "b"))], {})  # type: ignore[arg-type]
    assert on_disk(files) == []


def test_a_task_whose_rows_end_in_an_error_leaves_no_file(files: DataFiles) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield contacts(("city", 1.0, "a"), ("city", 2.0, "b"), ("city", 3.0, "c"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        files.write_batches("contacts", failing(), {})
    assert on_disk(files) == []


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [([2, 1, 1], [3, 1]), ([3, 3], [3, 3]), ([7], [3, 3, 1]), ([2, 5], [3, 3, 1]), ([2, 2, 2], [3, 1, 2])],
)
def test_rows_wait_for_a_whole_row_group(
    files: DataFiles, monkeypatch: pytest.MonkeyPatch, sizes: list[int], groups: list[int]
) -> None:
    monkeypatch.setattr(data_files, "ROWS_A_GROUP", 3)
    batches = [
        contacts(*[("city", 1.0, f"{number}-{row}") for row in range(size)]) for number, size in enumerate(sizes)
    ]
    (file,) = files.write_batches("contacts", batches, {})
    written = pq.ParquetFile(Path(files.folder.root) / "contacts" / file.path).metadata
    assert [written.row_group(number).num_rows for number in range(written.num_row_groups)] == groups
    assert nodes_in(files, file) == [one for batch in batches for one in batch.column("a").to_pylist()]


def test_a_file_that_vanishes_while_it_is_written_is_named(files: DataFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Folder, "sizes", lambda _, paths: [None for _ in paths])
    with pytest.raises(LakeError, match=r"/contacts/trace=city/range_m=1\.0/part-\w+\.parquet was written and is gone"):
        files.write_rows("contacts", [], trace="city", range_m=1)
