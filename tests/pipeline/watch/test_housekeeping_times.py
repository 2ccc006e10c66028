"""When a watch joins its files, removes old ones, and what it leaves alone; without a lake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from earshot.pipeline.watch import housekeeping
from earshot.pipeline.watch.housekeeping import GROWING, Housekeeping
from earshot.pipeline.watch.watch_state import State, WatchSettings


class Files:
    """What stands for the files of one table: spans of batches, and what was asked."""

    def __init__(self, spans: list[tuple[int, int]], asked: list[Any], table: str) -> None:
        self._spans, self._asked, self._table = spans, asked, table

    def files(self) -> list[tuple[int, int]]:
        return self._spans

    def compact(self, before: int, single: bool) -> None:
        self._asked.append((self._table, before, single))


class Keeper(Housekeeping):
    """Housekeeping that notes what it would do."""

    def __init__(self, spans: list[tuple[int, int]] | None = None) -> None:
        self.now = 1000.0
        self.did: list[Any] = []
        self.asked: list[Any] = []
        self.deleted: list[str] = []
        self.spans = spans or []
        lake: Any = SimpleNamespace(folder=SimpleNamespace(delete=self.deleted.append), replaced=["earlier"])
        super().__init__(lake, WatchSettings(), lambda: self.now)

    def _files(self, table: str) -> Any:
        return Files(self.spans, self.asked, table)

    def tidy(self, state: State) -> None:
        self.did.append(("all", state.batch))
        self._done_at, self._joined_until = self.now, state.batch

    def _join(self, state: State, single: bool = False) -> None:
        self.did.append(("some" if single else "every", state.batch))
        super()._join(state, single)


@pytest.fixture(autouse=True)
def _files_are_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "batches_of", lambda file: file)


def did(keeper: Keeper, *batches: int) -> list[Any]:
    before = len(keeper.did)
    for batch in batches:
        keeper.after(State(batch=batch))
    return keeper.did[before:]


def test_files_of_one_batch_are_joined_after_every_fifty() -> None:
    keeper = Keeper([(0, 9), (12, 12), (10, 10), (11, 11)])
    assert did(keeper, 59, 60, 61, 109, 110) == [("some", 60), ("some", 110)]


def test_a_watch_without_small_files_counts_from_its_first_batch() -> None:
    assert did(Keeper([(0, 9)]), 100, 149, 150) == [("some", 150)]


def test_all_files_are_joined_after_1800_batches() -> None:
    keeper = Keeper()
    assert did(keeper, 0, 1799, 1800) == [("some", 1799), ("all", 1800)]
    assert did(keeper, 1849, 1850, 3599, 3600) == [("some", 1850), ("some", 3599), ("all", 3600)]


def test_all_files_are_joined_after_an_hour() -> None:
    keeper = Keeper()
    keeper.now += 3599.9
    assert did(keeper, 0) == []
    keeper.now += 0.1
    assert did(keeper, 1, 2) == [("all", 1)]


def test_of_the_log_the_window_stays_as_it_is() -> None:
    keeper = Keeper()
    keeper._join(State(batch=9, window={7: 0.0, 8: 0.0, 9: 0.0}), single=True)
    assert keeper.asked == [(table, 7 if table == "watched_log" else 10, True) for table in GROWING]
    keeper.asked.clear()
    keeper._join(State(batch=9))
    assert keeper.asked == [(table, 10, False) for table in GROWING]


@pytest.mark.parametrize(("batch", "tidied"), [(59, []), (60, [("all", 60)])])
def test_a_watch_that_ends_leaves_few_files(batch: int, tidied: list[Any]) -> None:
    keeper = Keeper([(10, 10)])
    did(keeper, 11)
    keeper.end(State(batch=batch))
    assert keeper.did == tidied


def test_a_watch_that_ends_before_its_first_batch_joins_nothing() -> None:
    keeper = Keeper()
    keeper.end(State(batch=500))
    assert keeper.did == []


def test_a_file_that_was_replaced_stays_a_minute_unless_the_watch_ends() -> None:
    keeper = Keeper()
    assert keeper.lake.replaced == []
    keeper.lake.replaced.append("a")
    did(keeper, 1)
    keeper.now += 59.9
    keeper.lake.replaced.append("b")
    did(keeper, 2)
    assert keeper.deleted == []
    keeper.now += 0.1
    did(keeper, 3)
    assert keeper.deleted == ["a"]
    keeper.end(State(batch=4))
    assert (keeper.deleted, keeper.lake.replaced) == (["a", "b"], [])
