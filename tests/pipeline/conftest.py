from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from spark_on_duckdb import Session, instead_of_spark

if TYPE_CHECKING:
    from duck_session import DuckSession


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], object]], None]:
    """Wait until a condition holds: for what other processes do. The limit only ends a test that hangs."""

    def wait(condition: Callable[[], object], most_s: float = 600.0) -> None:
        until = time.monotonic() + most_s
        pause = threading.Event()
        while not condition():
            assert time.monotonic() < until, f"it did not happen within {most_s:g} s"
            pause.wait(0.05)

    return wait


@pytest.fixture
def quick_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session whose queries DuckDB runs, without a JVM. What was persisted must be released."""
    session = instead_of_spark(monkeypatch)
    yield session
    assert session.persisted == []


@pytest.fixture
def duck(monkeypatch: pytest.MonkeyPatch) -> DuckSession:
    """What stages ask of a Spark session, computed by DuckDB: for fast tests of stages."""
    from duck_session import DuckSession
    from pyspark.sql import functions

    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # columns are then made without Java
    monkeypatch.setattr(functions, "broadcast", lambda frame: frame)
    return DuckSession()
