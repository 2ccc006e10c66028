"""The queue on disk: in order, there after a restart, bounded."""

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from earshot.errors import UsageError
from earshot.live.bridge.waiting_messages import Message, QueueFailed, WaitingMessages


def message(number: int, size: int = 10) -> Message:
    return Message(f"t/{number % 3}", str(number).encode().ljust(size), 1, False, f"e-{number}")


def numbers(queue: WaitingMessages, after: int = 0) -> list[int]:
    return [int(found.payload) for _, found in queue.after(after, 100_000)]


def test_messages_wait_in_order_and_outlive_the_process(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1_000_000)
    queue.add(message(n) for n in range(5))
    rows = queue.after(0, 2)
    assert [found for _, found in rows] == [message(0), message(1)]
    queue.remove([rows[0][0]])
    assert numbers(queue, rows[1][0]) == [2, 3, 4]
    queue.close()
    again = WaitingMessages(tmp_path / "q.db", 1_000_000)
    assert (len(again), numbers(again)) == (4, [1, 2, 3, 4])
    again.add([message(5)])
    assert numbers(again)[-1] == 5
    again.remove(number for number, _ in again.after(0, 100))
    assert (len(again), again._bytes) == (0, 0)


def test_a_full_queue_loses_its_oldest_and_counts_them(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 10_000)
    for start in range(0, 300, 10):
        queue.add(message(n, size=97) for n in range(start, start + 10))
    left = numbers(queue)
    assert left == list(range(300 - len(left), 300))
    assert 85 <= len(left) <= 100
    assert len(queue) + queue.lost == 300


def test_only_its_owner_may_read_it_and_only_one_bridge_may_use_it(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    queue = WaitingMessages(path, 1000)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    queue.add([message(1)])
    with pytest.raises(UsageError, match="another bridge may use it"):
        WaitingMessages(path, 1000)


def test_a_file_that_is_no_queue_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    path.write_text("something else, long enough not to be empty" * 100)
    with pytest.raises(UsageError, match="not a queue of a bridge"):
        WaitingMessages(path, 1000)


def test_what_the_disk_refuses_is_not_half_there(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 10_000_000)
    queue.add([message(1)])
    pages = queue._file.execute("PRAGMA page_count").fetchone()[0]
    queue._file.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(QueueFailed, match="full"):
        queue.add(message(n, size=1000) for n in range(100))
    assert (len(queue), numbers(queue)) == (1, [1])
    queue._file.execute("PRAGMA max_page_count = 100000")
    queue.add([message(2)])
    assert numbers(queue) == [1, 2]
    assert isinstance(queue._file, sqlite3.Connection)


def test_a_queue_at_its_bound_keeps_everything_and_one_byte_more_frees_a_tenth(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    queue.add(message(n, size=97) for n in range(10))
    assert (len(queue), queue.lost, queue._bytes) == (10, 0, 1000)
    queue.add([message(10, size=2)])
    assert (numbers(queue), queue.lost, queue._bytes) == ([*range(2, 11)], 2, 805)


def test_the_newest_message_stays_even_if_it_is_too_large(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 100)
    queue.add([message(1), message(2, size=500)])
    assert (numbers(queue), queue.lost, len(queue)) == ([2], 1, 1)
    alone = WaitingMessages(tmp_path / "alone.db", 100)
    alone.add([message(1, size=500)])
    assert (numbers(alone), alone.lost, len(alone)) == ([1], 0, 1)


def test_removing_what_is_gone_changes_nothing(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    queue.add([message(1), message(2)])
    first = queue.after(0, 1)[0][0]
    queue.remove([first, first, 999])
    assert (len(queue), queue._bytes, numbers(queue)) == (1, 13, [2])
    queue.close()
    again = WaitingMessages(tmp_path / "q.db", 1000)
    assert (len(again), again._bytes, again.after(0, 5)[0][1]) == (1, 13, message(2))


def test_a_message_is_read_back_as_it_was(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    kept = Message("t", b"\x00\xff", 0, True, "e")
    queue.add([kept])
    assert [found for _, found in queue.after(0, 9)] == [kept]
    assert queue.after(0, 9)[0][1].retain is True


class FailingFile:
    """A database whose changes cannot be committed."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def execute(self, text: str, *values: Any) -> Any:
        if text == "COMMIT":
            raise sqlite3.OperationalError("the disk is full")
        return self._file.execute(text, *values)


def test_counts_are_those_of_the_file_after_a_change_that_failed(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    queue.add([message(1), message(2)])
    kept, queue._file = queue._file, FailingFile(queue._file)  # type: ignore[assignment]
    with pytest.raises(QueueFailed, match="the disk is full"):
        queue.remove([1])
    assert (len(queue), queue._bytes) == (2, 26)
    with pytest.raises(QueueFailed, match="the disk is full"):
        queue.add([message(3)])
    queue._file = kept
    assert (len(queue), queue._bytes, numbers(queue)) == (2, 26, [1, 2])
    queue.remove([1])
    assert (len(queue), queue._bytes, numbers(queue)) == (1, 13, [2])


def test_a_queue_that_has_a_tenth_free_loses_no_more(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    queue.add(message(n, size=147) for n in range(6))
    assert (queue._bytes, queue.lost) == (900, 0)
    queue.add([message(6, size=147)])
    assert (numbers(queue), queue.lost, queue._bytes) == ([*range(1, 7)], 1, 900)


def test_a_batch_is_written_to_the_log_of_the_file_so_that_a_kill_loses_none_of_it(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    asked = ("journal_mode", "synchronous", "locking_mode")
    assert [queue._file.execute(f"PRAGMA {one}").fetchone()[0] for one in asked] == ["wal", 1, "exclusive"]


def test_a_queue_that_another_bridge_uses_is_awaited_for_a_second(tmp_path: Path) -> None:
    queue = WaitingMessages(tmp_path / "q.db", 1000)
    assert queue._file.execute("PRAGMA busy_timeout").fetchone() == (1000,)
