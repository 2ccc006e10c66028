"""The parts of following spools by themselves: which bytes a batch reads, what is missing, and what is quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.pipeline.watch import spool_segments
from earshot.pipeline.watch.spool_segments import (
    Piece,
    ReadPosition,
    Segment,
    _advanced,
    _end_of_line,
    _pieces,
    advance,
    check_folders,
    find_all,
    find_segments,
    is_spool,
    pieces_between,
    quiet_sessions,
    segments_in,
    without,
)


def segment(number: int, size: int = 100, closed: bool = True, modified_at: float = 50.0) -> Segment:
    return Segment(Path(f"/spool/s-{number}.jsonl"), closed, size, modified_at)


def pieces(since: tuple[int, int], until: tuple[int, int], *numbers: int) -> list[tuple[str, int, int | None, int]]:
    """As name, start, end and number; "" where segments are missing."""
    found = _pieces("x", ReadPosition(*since, False), ReadPosition(*until, False), {n: segment(n) for n in numbers})
    return [(Path(piece.path).name if piece.path else "", piece.start, piece.end, piece.number) for piece in found]


def test_a_batch_reads_from_where_the_last_ended_over_whole_segments() -> None:
    assert pieces((1, 10), (1, 60), 1) == [("s-1.jsonl", 10, 60, 1)]
    assert pieces((1, 60), (1, 60), 1) == []
    assert pieces((1, 60), (3, 5), 1, 2, 3) == [
        ("s-1.jsonl", 60, None, 1), ("s-2.jsonl", 0, None, 2), ("s-3.jsonl", 0, 5, 3),
    ]  # fmt: skip
    assert pieces((1, 60), (2, 0), 1, 2) == [("s-1.jsonl", 60, None, 1)]


def test_segments_that_are_gone_are_one_piece_without_a_path() -> None:
    assert pieces((1, 60), (4, 5), 1, 4) == [("s-1.jsonl", 60, None, 1), ("", 0, None, 2), ("s-4.jsonl", 0, 5, 4)]
    assert pieces((2, 60), (4, 5), 4) == [("", 60, None, 2), ("s-4.jsonl", 0, 5, 4)]
    assert pieces((2, 60), (3, 5)) == [("", 60, None, 2)]
    assert pieces((2, 60), (2, 60)) == [], "nothing of it was unread"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("start", "most", "end"),
    [(0, 9, 9), (0, 8, 6), (0, 5, 3), (0, 2, 3), (3, 4, 6), (6, 9, 9), (6, 7, 9), (9, 10, 9), (9, 11, 9)],
)
def test_a_piece_ends_after_a_whole_line(
    tmp_path: Path, start: int, most: int, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "s.jsonl", "ab\ncd\nef\ngh")
    for chunk in (1, 2, 1 << 16):
        monkeypatch.setattr(spool_segments, "_CHUNK", chunk)
        assert _end_of_line(path, start, most, 11) == end
    assert _end_of_line(tmp_path / "gone.jsonl", 4, 9, 11) == 4


def test_a_quota_ends_within_a_segment_or_before_the_next(tmp_path: Path) -> None:
    first, second = written(tmp_path, "s-1.jsonl", "ab\ncd\n"), written(tmp_path, "s-2.jsonl", "ef\n")
    both = {1: Segment(first, True, 6, 0.0), 2: Segment(second, False, 3, 0.0)}

    def after(byte: int, quota: int | None, number: int = 1) -> tuple[int, int, bool]:
        return tuple(_advanced(ReadPosition(number, byte, False), both, quota))  # type: ignore[return-value]

    assert after(0, None) == (2, 3, False)
    assert after(0, 3) == (1, 3, True), "more is there"
    assert after(0, 6) == (1, 6, True)
    assert after(0, 7) == (2, 3, False), "a line longer than what is left is read whole"
    assert after(6, 1) == (2, 3, False)
    assert after(3, None, number=2) == (2, 3, False)
    alone = {1: Segment(first, False, 6, 0.0)}
    assert tuple(_advanced(ReadPosition(1, 0, False), alone, 6)) == (1, 6, False)
    torn = {1: Segment(written(tmp_path, "t.jsonl", "ab\ncd"), False, 5, 0.0)}
    assert tuple(_advanced(ReadPosition(1, 0, False), torn, 4)) == (1, 3, False), "what follows is no whole line yet"


def test_sessions_share_what_a_batch_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_segments, "LEAST_BYTES", 3)
    lines = "ab\n" * 10
    found = {
        "f": {name: {1: Segment(written(tmp_path, f"{name}.jsonl", lines), False, 30, 0.0)} for name in ("a", "b")}
    }
    read = {name: ReadPosition.parse(text).byte for name, text in advance({}, found, 24)["f"].items()}
    assert read == {"a": 12, "b": 12}
    done = {"f": {"a": str(ReadPosition(1, 30, False))}}
    assert ReadPosition.parse(advance(done, found, 24)["f"]["b"]).byte == 24, "one waits alone"
    assert ReadPosition.parse(advance({}, found, 1)["f"]["a"]).byte == 3, "a little of each in any case"
    assert ReadPosition.parse(advance({}, found, None)["f"]["a"]).byte == 30
    ended = {"f": {"a": str(ReadPosition(1, 30, False)), "b": str(ReadPosition(1, 27, False))}}
    assert advance({}, found, None, ended) == {"f": {"b": str(ReadPosition(1, 30, False))}}, (
        "only what has something new"
    )


def test_a_session_is_quiet_where_nobody_wrote_since_and_nothing_was_read() -> None:
    found = {
        "f": {
            "closed": {1: segment(1, modified_at=40.0)}, "open": {1: segment(1, closed=False, modified_at=40.0)},
            "both": {1: segment(1, modified_at=1.0), 2: segment(2, closed=False, modified_at=40.0)},
            "busy": {1: segment(1, modified_at=90.0)}, "read": {1: segment(1, modified_at=1.0)},
        }
    }  # fmt: skip
    end = {"f": dict.fromkeys(found["f"], "1:100")}
    start = {"f": {**end["f"], "read": "1:50"}}
    assert quiet_sessions(start, end, found, 30.0, 41.0) == {"f": {"closed": "1:100"}}
    assert quiet_sessions(start, end, found, 41.0, 40.0) == {"f": {"open": "1:100", "both": "1:100"}}
    assert quiet_sessions(start, end, found, 40.0, 40.0) == {}
    assert without(end, {"f": {"closed": "", "busy": ""}}) == {"f": {"open": "1:100", "both": "1:100", "read": "1:100"}}


def test_of_two_names_of_a_segment_the_closed_one_counts(tmp_path: Path) -> None:
    for name in ("s.open.jsonl", "s.jsonl", ".hidden.jsonl", "notes.txt"):
        written(tmp_path, name, "ab\n")
    found = segments_in(str(tmp_path))
    assert [
        (session, number, one.closed, one.bytes) for session, some in found.items() for number, one in some.items()
    ] == [("s", 1, True, 3)]
    assert segments_in(str(tmp_path / "gone")) == {}


def test_a_segment_that_was_just_renamed_does_not_hide_those_after_it(tmp_path: Path) -> None:
    """A link to a file that is not there: listed, and gone where it is looked at."""
    (tmp_path / "a.open.jsonl").symlink_to(tmp_path / "gone")
    written(tmp_path, "b.jsonl", "ab\n")
    assert [(session, list(some)) for session, some in segments_in(str(tmp_path)).items()] == [("b", [1])]


def test_only_sessions_with_something_new_are_read(tmp_path: Path) -> None:
    written(tmp_path, "s.jsonl", "ab\ncd\n")
    folder = str(tmp_path)
    until = ReadPosition(1, 6, False)
    (reported,) = pieces_between({folder: {"s": str(ReadPosition(1, 3, False))}}, {folder: {"s": str(until)}})
    assert reported == (f"{folder}/s", until, [Piece(f"{folder}/s", str(tmp_path / "s.jsonl"), 3, 6, 1)])
    same = {folder: {"s": str(until)}}
    assert list(pieces_between(same, same)) == list(pieces_between({}, same, same)) == []
    ((_, _, (piece,)),) = pieces_between({}, same)
    assert (piece.start, piece.end) == (0, 6)


def test_spools_are_found_below_a_folder_by_their_real_path_and_not_in_hidden_ones(tmp_path: Path) -> None:
    for folder in ("b/deep", "a", ".hidden", "empty"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("b/deep/n-1-00001.jsonl", "a/m-1.open.jsonl", ".hidden/h-1.jsonl", "a/.p-1.jsonl", "a/notes.txt"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = find_segments(str(tmp_path))
    assert list(found) == [str(tmp_path / "a"), str(tmp_path / "b/deep")]
    assert find_segments(str(tmp_path / "link")) == {str(tmp_path / "a"): found[str(tmp_path / "a")]}
    assert find_all([str(tmp_path / "b"), str(tmp_path / "link")]) == found
    assert segments_in(str(tmp_path / "absent")) == {}


def test_a_folder_is_a_spool_if_its_first_segment_begins_with_a_record(tmp_path: Path) -> None:
    assert not is_spool(str(tmp_path / "absent"))
    assert not is_spool(str(tmp_path))
    later = written(tmp_path, "n-1-00002.jsonl", "nonsense\n")
    assert not is_spool(str(tmp_path))
    first = written(tmp_path, "n-1-00001.jsonl", '{"time": 1.0, "node": "n", "kind": "join"}\nnonsense\n')
    assert is_spool(str(tmp_path))
    assert not is_spool(str(later))
    first.write_text("nonsense\n")
    assert not is_spool(str(tmp_path))
    first.write_text("")
    assert not is_spool(str(tmp_path))


def test_folders_of_spools_are_named_once_and_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    file = written(tmp_path, "file", "")
    assert check_folders(["b", str(tmp_path / "a"), str(tmp_path / "b")], may_be_empty=True) == [
        str(tmp_path / "a"), str(tmp_path / "b"),
    ]  # fmt: skip
    for folders, words in (
        (["absent"], "no such folder: absent; nodes make it"),
        ([str(file)], "is a file; give the folder"),
        ([], "no spool was given"),
    ):
        with pytest.raises(UsageError, match=words):
            check_folders(folders, may_be_empty=True)
    with pytest.raises(UsageError, match="no spool in a: it has no segment"):
        check_folders(["a"], may_be_empty=False)
    written(tmp_path / "a", "n-1-00001.jsonl", "")
    assert check_folders(["a"], may_be_empty=False) == [str(tmp_path / "a")]
