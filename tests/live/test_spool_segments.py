"""Segments of a spool: their names, their sizes and their folder."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from earshot.errors import UsageError
from earshot.live.spool import Spool, read_records
from earshot.records import Kind, Record

LINE = Record(1.0, "a", Kind.NOTE, detail="x")
LINE_BYTES = len(msgspec.json.encode(LINE)) + 1


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_segment_that_has_its_size_is_closed_and_the_next_begins_empty(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a", 1, segment_bytes=2 * LINE_BYTES)
    seen = []
    for _ in range(4):
        spool.write(LINE)
        spool.flush()
        seen.append(names(tmp_path))
    first, second, third = (f"a-1-0000{number}" for number in (1, 2, 3))
    assert seen == [
        [f"{first}.open.jsonl"],
        [f"{first}.jsonl", f"{second}.open.jsonl"],
        [f"{first}.jsonl", f"{second}.open.jsonl"],
        [f"{first}.jsonl", f"{second}.jsonl", f"{third}.open.jsonl"],
    ]
    spool.close()
    assert names(tmp_path) == [f"{first}.jsonl", f"{second}.jsonl"], "a segment without records is removed"
    spool.close()
    assert (len(list(read_records(tmp_path))), spool.lost) == (4, 0)


def test_a_segment_is_named_after_its_node_in_letters_that_every_disk_takes(tmp_path: Path) -> None:
    for node, life, stem in (
        ("á_B-9", 12, "á_B-9-12"), ("a b/c%", 3, "a%20b%2fc%25-3"), ("n" * 128, 4, "n" * 80 + "-4"),
    ):  # fmt: skip
        folder = tmp_path / "deep" / str(life)
        spool = Spool(folder, node, life)
        assert names(folder) == [f"{stem}-00001.open.jsonl"]
        spool.close()
    assert Spool(tmp_path / "deep", "a", 5).folder == tmp_path / "deep", "it may exist"


def test_records_of_all_folders_are_read_in_the_order_of_their_segments(tmp_path: Path) -> None:
    for folder, node in (("b", "x"), ("a", "y")):
        spool = Spool(tmp_path / folder, node, 1, segment_bytes=1)
        for number in range(11):
            spool.write(msgspec.structs.replace(LINE, node=node, time=float(number)))
            spool.flush()
    found = [(record.node, record.time) for record in read_records(tmp_path)]
    assert found == [(node, float(number)) for node in "yx" for number in range(11)]


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "spool"
    with pytest.raises(UsageError, match=re.escape(f"cannot write the spool {folder}: Not a directory")):
        Spool(folder, "a", 1)
