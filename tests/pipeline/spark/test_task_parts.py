"""Work in tasks, without Spark: one task an item, how many tasks there are, and how rows are dealt to them."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from spark_on_duckdb import Session

from earshot.errors import SparkFailure, TraceError
from earshot.pipeline.spark import progress, tasks
from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.spark.progress import show_progress
from earshot.pipeline.spark.tasks import (
    are_few,
    coded,
    dealt,
    each_in_a_task,
    in_one_task,
    rows_of_items,
    table_of,
    tasks_for,
    whole_nodes,
)


class Frame:
    """Notes how its rows are dealt."""

    def __init__(self, cores: int = 3, version: str = "4.1.0") -> None:
        context = SimpleNamespace(defaultParallelism=cores)
        self.sparkSession = SimpleNamespace(_jsparkSession=None, sparkContext=context, version=version)
        self.steps: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Frame]:
        def step(*given: Any) -> Frame:
            self.steps.append((name, *given))
            return self

        return step


def test_answers_come_in_the_order_of_the_items(quick_spark: Session) -> None:
    session: Any = quick_spark
    items = [{"name": name} for name in "cab"]
    assert each_in_a_task(session, items, lambda item: item["name"] * 2) == ["cc", "aa", "bb"]
    assert each_in_a_task(session, [], lambda item: str(item)) == []


def test_answers_that_come_in_another_order_are_put_in_that_of_the_items() -> None:
    given: list[Any] = []
    rows = [{"item": 1, "answer": "b"}, {"item": 0, "answer": "a"}]
    table = SimpleNamespace(collect=lambda: rows)
    session: Any = SimpleNamespace(range=lambda *of: given.append(of) or SimpleNamespace(mapInArrow=lambda *_: table))
    assert each_in_a_task(session, ["x", "y"], str) == ["a", "b"]
    assert given == [(0, 2, 1, 2)]


class Running:
    """A session whose only job runs until it is interrupted or allowed to end."""

    def __init__(self, error: BaseException | None = None, **context: Any) -> None:
        self.ended = threading.Event()
        self.interrupted: list[str] = []
        self.error = error
        self.__dict__.update(context)

    def range(self, *_: Any) -> Any:
        return SimpleNamespace(mapInArrow=lambda *_: self)

    def collect(self) -> list[Any]:
        assert self.ended.wait(10.0)
        if self.error is not None:
            raise self.error
        return [{"item": 0, "answer": "done"}]

    def interruptAll(self) -> None:
        self.interrupted.append("interruptAll")
        self.ended.set()

    def cancelAllJobs(self) -> None:
        self.interrupted.append("cancelAllJobs")
        self.ended.set()


def test_progress_is_asked_for_while_the_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "POLL_S", 0.001)
    session: Any = Running()
    asked: list[int] = []

    def step() -> None:
        asked.append(1)
        if len(asked) == 3:
            session.ended.set()

    assert each_in_a_task(session, ["x"], str, step) == ["done"]
    assert len(asked) >= 3
    assert session.interrupted == []


@pytest.mark.parametrize("classic", [False, True])
def test_an_error_in_progress_ends_the_tasks(classic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "POLL_S", 0.001)
    session: Any = Running()
    if classic:
        session._sc = session

    def step() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each_in_a_task(session, ["x"], str, step)
    assert session.interrupted == (["cancelAllJobs"] if classic else ["interruptAll"])


def test_an_error_of_the_job_is_raised() -> None:
    session: Any = Running(TraceError("bad"))
    session.ended.set()
    with pytest.raises(TraceError, match="bad"):
        each_in_a_task(session, ["x"], str)


def test_each_item_gives_its_rows_in_a_task_of_its_own(quick_spark: Session) -> None:
    session: Any = quick_spark

    def read(item: str) -> Iterator[pa.RecordBatch]:
        for letter in item:
            yield pa.RecordBatch.from_pydict({"letter": [letter]})

    found = rows_of_items(session, ["ab", "", "c"], read, "letter string")
    assert [row["letter"] for row in found.collect()] == ["a", "b", "c"]
    assert rows_of_items(session, [], read, "letter string").collect() == []
    asked: list[Any] = []
    range_only: Any = SimpleNamespace(
        range=lambda *of: asked.append(of) or SimpleNamespace(mapInArrow=lambda _, ddl: ddl)
    )
    assert [rows_of_items(range_only, items, read, "x int") for items in (["a", "b"], [])] == ["x int", "x int"]
    assert asked == [(0, 2, 1, 2), (0, 1, 1, 1)]


@pytest.mark.parametrize(
    ("rows", "few", "count"),
    [(None, False, 12), (0, True, 1), (20_000, True, 1), (20_001, False, 3), (3_000_000, False, 3),
     (3_000_001, False, 4), (10**9, False, 1000)],
)  # fmt: skip
def test_tasks_grow_with_the_rows_and_are_at_least_one_a_core(rows: int | None, few: bool, count: int) -> None:
    frame: Any = Frame(cores=3)
    assert (are_few(rows), tasks_for(frame.sparkSession, rows)) == (few, count)
    in_one_task(frame, rows)
    assert frame.steps == ([("coalesce", 1)] if few else [])
    nodes: Any = Frame(cores=3)
    whole_nodes(nodes, rows)
    assert nodes.steps == ([("coalesce", 1)] if few else [("repartition", count, "node")])


@pytest.mark.parametrize(
    ("version", "count", "step"),
    [
        ("4.1.0", 1, ("coalesce", 1)),
        ("4.0.1", 1, ("coalesce", 1)),
        ("4.0.1", 5, ("repartition", 5, "key")),
        ("4.1.0", 5, ("repartitionById", 5, "key")),
        ("5.0.0-preview", 5, ("repartitionById", 5, "key")),
    ],
)
def test_rows_are_dealt_by_number_where_spark_can(version: str, count: int, step: tuple[Any, ...]) -> None:
    frame: Any = Frame(version=version)
    key: Any = "key"
    assert dealt(frame, count, key) is frame
    assert frame.steps == [step]


def test_the_batches_of_a_task_are_one_table_or_none() -> None:
    batches = [pa.RecordBatch.from_pydict({"x": pa.array(some, pa.int64())}) for some in ([], [1, 2], [], [3])]
    table = table_of(batches)
    assert table is not None
    assert table.to_pydict() == {"x": [1, 2, 3]}
    assert table_of(batches[:1]) is None
    assert table_of([]) is None


def test_texts_are_numbered_in_their_own_order_and_nulls_are_empty() -> None:
    column = pa.chunked_array([["c", "a", None], ["b", "a"]])
    numbers, texts = coded(column)
    assert (numbers.tolist(), texts) == ([3, 1, 0, 2, 1], ["", "a", "b", "c"])


# -- failures and progress


def test_what_spark_throws_is_named_and_all_else_passes_through() -> None:
    with pytest.raises(SparkFailure, match="Spark's own process has ended"), named_errors():
        raise ConnectionResetError("gone")
    for error in (TraceError("bad"), ValueError("no")):
        with pytest.raises(type(error)) as caught, named_errors():
            raise error
        assert caught.value is error


def test_progress_is_one_line_that_is_empty_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    handlers: list[Any] = []
    session: Any = SimpleNamespace(registerProgressHandler=handlers.append, removeProgressHandler=handlers.remove)

    class Terminal(io.StringIO):
        """Shows what was flushed."""

        shown = ""

        def flush(self) -> None:
            self.shown = self.getvalue()

    terminal = Terminal()
    with show_progress(session, terminal):
        now[0] = 107.4
        handlers[0](stages=[SimpleNamespace(num_completed_tasks=2, num_tasks=5)])
        assert terminal.shown == "\r\x1b[2KSpark: 2 of 5 tasks, 7 s"
    assert terminal.shown == "\r\x1b[2KSpark: 2 of 5 tasks, 7 s\r\x1b[2K"
    errors = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", errors)
    with pytest.raises(ValueError, match="no"), show_progress(session):
        raise ValueError("no")
    assert (errors.shown, handlers) == ("\r\x1b[2K", [])
