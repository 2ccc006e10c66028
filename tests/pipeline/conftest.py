from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from spark_on_duckdb import Session, instead_of_spark


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
