"""Files that unpack to far more than a trace: refused by name, before they fill the memory."""

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from earshot.errors import TraceError
from earshot.traces import files
from earshot.traces.files import break_in, open_trace


@pytest.mark.parametrize(("piece", "reason"), [(b"0" * 1024, "a line of more than"), (b"0,a,1,2\n" * 128, "400 times")])
@pytest.mark.parametrize("by_line", [True, False])
def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path, piece: bytes, reason: str, by_line: bool) -> None:
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as out:
        out.write(b"time,node,x_m,y_m\n")
        for _ in range(100):
            out.write(piece * 1024)
    tracemalloc.start()
    with open_trace(str(bomb), by_line) as stream, pytest.raises(TraceError, match=reason if by_line else "400 times"):
        list(iter(lambda: len(stream.read(1 << 16)), 0))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000_000


def test_a_regular_trace_is_read(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv.gz"
    rows = b"".join(b"%d,car,%d,0\n" % (second, second * 7 % 1000) for second in range(200_000))
    with gzip.open(trace, "wb") as out:
        out.write(b"time,node,x_m,y_m\n" + rows)
    with open_trace(str(trace), by_line=True) as stream:
        assert len(stream.read()) == len(rows) + 18


def packed(folder: Path, text: bytes) -> str:
    path = folder / "t.gz"
    path.write_bytes(gzip.compress(text, 9))
    return str(path)


def test_beyond_what_may_be_unpacked_freely_the_multiple_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "UNPACKED_FREELY_BYTES", 1000)
    several = b"".join(b"%d,%d\n" % (n, n * 7919 % 1009) for n in range(20_000))
    with open_trace(packed(tmp_path, several)) as stream:
        assert stream.read() == several
    with open_trace(packed(tmp_path, b"0" * 1_000_000)) as stream, pytest.raises(TraceError, match="400 times"):
        stream.read()


def test_the_longest_line_has_16_mib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.LONGEST_LINE_BYTES == 16 * 1024 * 1024
    monkeypatch.setattr(files, "LONGEST_LINE_BYTES", 70_000)
    with open_trace(packed(tmp_path, b"x" * 70_000), by_line=True) as stream:
        assert len(stream.read()) == 70_000
    with (
        open_trace(packed(tmp_path, b"x" * 70_001), by_line=True) as stream,
        pytest.raises(TraceError, match="has a line of more than 70,000 bytes"),
    ):
        stream.read()


def test_a_file_that_was_cut_short_ends_after_its_last_whole_line_where_lines_are_read(tmp_path: Path) -> None:
    lines = b"".join(b"%d,%d\n" % (n, n * 7919 % 1009) for n in range(20_000))
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(lines)[:40_000])
    with open_trace(str(path)) as stream:
        everything = stream.read()
        assert break_in(stream) is not None
    with open_trace(str(path), by_line=True) as stream:
        whole = stream.read()
    assert everything.startswith(whole)
    assert whole.endswith(b"\n")
    assert lines.startswith(everything)
    assert 0 < len(everything) - len(whole) < 70_000


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_a_file_is_unpacked_by_its_first_bytes_and_not_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "plain.csv"
    path.write_bytes(pack(b"node,time\n"))
    with open_trace(str(path)) as stream:
        assert stream.read() == b"node,time\n"
        assert break_in(stream) is None


@pytest.mark.parametrize("by_line", [True, False])
def test_as_much_as_may_be_unpacked_is_read_and_one_byte_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_line: bool
) -> None:
    assert (files.UNPACKED_FREELY_BYTES, files.MOST_UNPACKED) == (64 * 1024 * 1024, 400)
    monkeypatch.setattr(files, "UNPACKED_FREELY_BYTES", 100_000)
    monkeypatch.setattr(files, "MOST_UNPACKED", 2)
    with open_trace(packed(tmp_path, b"0" * 100_000), by_line) as stream:
        assert len(stream.read()) == 100_000
    with (
        open_trace(packed(tmp_path, b"0" * 100_001), by_line) as stream,
        pytest.raises(TraceError, match=r"t\.gz unpacks to more than 2 times its size; it is not a trace"),
    ):
        stream.read()


@pytest.mark.parametrize(
    ("path", "expected"),
    [("s3a://bucket/a.csv", True), ("file:///a.csv", False), ("file://host/a", False), ("C:/a.csv", False),
     ("c://a.csv", False), ("/a//b.csv", False), ("hdfs://n:1/a", True), ("9p://a", False)],
)  # fmt: skip
def test_an_address_has_a_scheme_of_two_letters_and_more(path: str, expected: bool) -> None:
    assert files.is_address(path) is expected


@pytest.mark.parametrize(
    ("file", "name"),
    [("/a/walk.tr.gz", "walk"), ("walk", "walk"), (".hidden", ".hidden"), ("/a/table/", "table"), ("a.b/c.csv", "c")],
)
def test_a_stem_has_neither_folder_nor_endings(file: str, name: str) -> None:
    assert files.stem(file) == name


@pytest.mark.parametrize(
    ("path", "local"), [("file:///a", "/a"), ("file:/a", "/a"), ("file:a", "a"), ("/file:/a", "/file:/a")]
)
def test_a_local_path_has_no_scheme(path: str, local: str) -> None:
    assert files.local_path(path) == local


@pytest.mark.parametrize("none", [[], [""], ["a.csv", ""]])
def test_a_trace_without_a_name_is_refused(none: list[str]) -> None:
    with pytest.raises(TraceError, match=r"^no trace file was named$"):
        files.expanded(none)


def test_a_folder_stands_for_its_files_but_not_for_hidden_ones_and_folders(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", ".hidden", "_SUCCESS"):
        (tmp_path / name).touch()
    (tmp_path / "inner").mkdir()
    assert files.expanded([str(tmp_path)]) == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert files.expanded([f"file://{tmp_path}/b*", str(tmp_path / "a.csv")]) == [
        str(tmp_path / "b.csv"), str(tmp_path / "a.csv"),
    ]  # fmt: skip
    with pytest.raises(TraceError, match=r"there is no trace file .*/inner; check the path"):
        files.expanded([str(tmp_path / "inner")])
