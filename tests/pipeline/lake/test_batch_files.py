"""Files of a watch, by the batches they hold: put, replaced, dropped, expired and joined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from earshot.pipeline.lake import batch_files
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles, batches_of, stem_of
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.tables import WATCHED_REJECTS, arrow_schema

TABLE = WATCHED_REJECTS.name


@pytest.fixture
def lake(tmp_path: Path) -> ArrowLake:
    return ArrowLake(tmp_path)


@pytest.fixture
def files(lake: ArrowLake) -> BatchFiles:
    return BatchFiles(lake, TABLE, "live")


def written(
    lake: ArrowLake, first: int, last: int | None = None, day: str = "d1", watch: str = "live", note: str = ""
) -> DataFile:
    """A file with one row for each of its batches, which is not committed."""
    batches = range(first, (first if last is None else last) + 1)
    rows = [{"batch": batch, "file": note or f"of {batch}"} for batch in batches]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE))
    return lake.files.write_file(TABLE, table, {"watch": watch, "day": day}, stem_of(first, last))


def put(lake: ArrowLake, *spans: tuple[int, int], day: str = "d1", watch: str = "live") -> None:
    """Commit files with those first and last batches."""
    added = [written(lake, *span, day=day, watch=watch) for span in spans]
    lake.log_to_write(WATCHED_REJECTS).rewrite(lambda _: ([], added), added, "append")


def spans(files: BatchFiles, **bounds: int) -> list[tuple[int, int]]:
    return [batches_of(file) for file in files.files(**bounds)]


def rows(lake: ArrowLake, **partition: str) -> list[tuple[str, str, int, str]]:
    names = ("watch", "day", "batch", "file")
    return sorted(tuple(row[name] for name in names) for row in lake.read(TABLE, **partition).to_pylist())


def last_commit(lake: ArrowLake) -> Mapping[str, object]:
    (log,) = lake.logs()
    return {name: log.history()[0][name] for name in ("change", "files", "rows", "files_replaced")}


def test_a_files_name_begins_with_its_batches() -> None:
    assert (stem_of(17), stem_of(0, 899), stem_of(7, 0)) == ("b17-17", "b0-899", "b7-0")


@pytest.mark.parametrize(
    ("path", "batches"),
    [
        ("watch=live/day=2026-11-16/b17-17-00ff.parquet", (17, 17)),
        ("b0-899-3f2a.parquet", (0, 899)),
        ("watch=b1-2-aa.parquet/b3-4-bb.parquet", (3, 4)),
        ("part-3f2a.parquet", None),
        ("b1-2-xyz.parquet", None),
        ("b1-2-aa.parquet.crc", None),
        ("ab1-2-aa.parquet", None),
    ],
)
def test_batches_are_read_from_a_files_name(path: str, batches: tuple[int, int] | None) -> None:
    file = DataFile(TABLE, path, 1, 1, {})
    if batches is None:
        with pytest.raises(AssertionError, match=path):
            batches_of(file)
    else:
        assert batches_of(file) == batches


def test_a_watch_without_a_table_has_no_files(lake: ArrowLake, files: BatchFiles) -> None:
    assert files.files() == []
    files.put([], 0)
    files.drop_after(0)
    assert (files.keep_since("d9"), files.compact(9)) == (0, (0, 0))
    assert lake.tables() == []


def test_files_are_those_of_one_watch_that_reach_into_the_batches_in_order(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (7, 7), (0, 3), (4, 6), (10, 10))
    put(lake, (5, 5), watch="other")
    assert spans(files) == [(0, 3), (4, 6), (7, 7), (10, 10)]
    assert spans(files, since=3) == [(0, 3), (4, 6), (7, 7), (10, 10)]
    assert spans(files, since=4) == spans(files, since=6) == [(4, 6), (7, 7), (10, 10)]
    assert spans(files, since=11) == []
    assert spans(files, until=0) == spans(files, until=3) == [(0, 3)]
    assert spans(files, until=4) == [(0, 3), (4, 6)]
    assert spans(files, since=4, until=7) == spans(files, since=5, until=9) == [(4, 6), (7, 7)]


def test_a_batch_that_is_put_again_replaces_its_own_file_only(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 2), (3, 3))
    put(lake, (2, 2), watch="other")
    for note in ("first", "second"):
        files.put([written(lake, 2, note=note), written(lake, 2, day="d2", note=note)], 2)
    assert spans(files) == [(0, 2), (2, 2), (2, 2), (3, 3)]
    assert rows(lake, watch="live") == [
        ("live", "d1", 0, "of 0"),
        ("live", "d1", 1, "of 1"),
        ("live", "d1", 2, "of 2"),
        ("live", "d1", 2, "second"),
        ("live", "d1", 3, "of 3"),
        ("live", "d2", 2, "second"),
    ]
    assert rows(lake, watch="other") == [("other", "d1", 2, "of 2")]
    assert last_commit(lake) == {"change": "append", "files": 2, "rows": 2, "files_replaced": 2}


def test_putting_no_files_leaves_what_the_batch_had(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (2, 2))
    files.put([], 2)
    assert spans(files) == [(2, 2)]
    assert lake.tables()[0]["version"] == 1


def test_a_file_put_instead_replaces_all_batches_up_to_its_last(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 2), (3, 3), (4, 5), (4, 4))
    put(lake, (1, 1), watch="other")
    files.put_instead(written(lake, 4, note="base"))
    assert rows(lake) == [
        ("live", "d1", 4, "base"),
        ("live", "d1", 4, "of 4"),
        ("live", "d1", 5, "of 5"),
        ("other", "d1", 1, "of 1"),
    ]
    assert last_commit(lake) == {"change": "replace", "files": 1, "rows": 1, "files_replaced": 3}


def test_batches_after_one_are_dropped(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 2), (3, 3), (4, 6))
    put(lake, (9, 9), watch="other")
    files.drop_after(6)
    assert lake.tables()[0]["version"] == 2, "nothing to drop, no commit"
    files.drop_after(3)
    assert spans(files) == [(0, 2), (3, 3)]
    assert last_commit(lake) == {"change": "drop", "files": 0, "rows": 0, "files_replaced": 1}
    files.drop_after(2)
    assert spans(files) == [(0, 2)]
    assert rows(lake, watch="other") == [("other", "d1", 9, "of 9")]


def test_a_file_that_holds_a_batch_and_later_ones_is_not_dropped(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 4), (5, 5))
    files.drop_after(2)
    assert spans(files) == [(0, 4)]


def test_files_of_earlier_days_expire(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 0), (1, 1), day="2026-01-09")
    put(lake, (2, 2), day="2026-01-10")
    put(lake, (3, 3), day="2026-01-11")
    put(lake, (0, 0), day="2026-01-01", watch="other")
    version = lake.tables()[0]["version"]
    assert files.keep_since("2026-01-09") == 0
    assert lake.tables()[0]["version"] == version, "nothing to expire, no commit"
    assert files.keep_since("2026-01-10") == 2
    assert spans(files) == [(2, 2), (3, 3)]
    assert last_commit(lake) == {"change": "expire", "files": 0, "rows": 0, "files_replaced": 2}
    assert len(rows(lake, watch="other")) == 1


def test_small_files_of_a_day_before_a_batch_become_one(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 2), (3, 3), (4, 5), (6, 6))
    put(lake, (3, 3), (4, 4), day="d2")
    put(lake, (4, 4), day="d3")
    put(lake, (0, 0), (1, 1), watch="other")
    before = rows(lake)
    assert files.compact(before=5) == (4, 2)
    assert [(file.partition, batches_of(file), file.rows) for file in files.files()] == [
        ({"watch": "live", "day": "d1"}, (0, 3), 4),
        ({"watch": "live", "day": "d2"}, (3, 4), 2),
        ({"watch": "live", "day": "d3"}, (4, 4), 1),
        ({"watch": "live", "day": "d1"}, (4, 5), 2),
        ({"watch": "live", "day": "d1"}, (6, 6), 1),
    ]
    assert rows(lake) == before
    assert last_commit(lake) == {"change": "compact", "files": 1, "rows": 2, "files_replaced": 2}
    assert spans(BatchFiles(lake, TABLE, "other")) == [(0, 0), (1, 1)]
    assert files.compact(before=5) == (0, 0), "one file a day is left"
    assert files.compact(before=6) == (2, 1), "the last batch of a file decides"


def test_files_of_one_batch_are_joined_alone_where_asked(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 2), (3, 3), (4, 4), (5, 6))
    assert files.compact(before=9, single=True) == (2, 1)
    assert spans(files) == [(0, 2), (3, 4), (5, 6)]


def test_large_files_are_not_joined(lake: ArrowLake, files: BatchFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    put(lake, (0, 0), (1, 1), (2, 2))
    sizes = {file.size_bytes for file in files.files()}
    put(lake, (3, 40))
    (large,) = files.files(since=3)
    assert large.size_bytes > max(sizes)
    monkeypatch.setattr(batch_files, "SMALL_BYTES", large.size_bytes)
    assert files.compact(before=99) == (3, 1)
    assert spans(files) == [(0, 2), (3, 40)]


@pytest.mark.parametrize(("size_bytes", "is_small"), [((32 << 20) - 1, True), (32 << 20, False)])
def test_a_file_is_small_below_32_mebibytes(
    files: BatchFiles, monkeypatch: pytest.MonkeyPatch, size_bytes: int, is_small: bool
) -> None:
    found = [DataFile(TABLE, f"b{batch}-{batch}-aa.parquet", 1, size_bytes, {"day": "d"}) for batch in range(2)]
    monkeypatch.setattr(BatchFiles, "files", lambda _, until: found)  # noqa: ARG005
    assert list(files._small(9, False)) == ([found] if is_small else [])


def test_what_batches_replaced_is_noted_for_deletion(lake: ArrowLake, files: BatchFiles) -> None:
    put(lake, (0, 0), (1, 1))
    (first, second) = files.files()
    lake.replaced = ["earlier"]
    files.drop_after(0)
    files.put([written(lake, 0, note="again")], 0)
    assert lake.replaced == ["earlier", f"{TABLE}/{second.path}", f"{TABLE}/{first.path}"]
