from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_exception_reaches_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A live test fails on any exception that reaches an event loop, whether a handler logs it or not."""
    reached: list[str] = []
    handle = asyncio.BaseEventLoop.call_exception_handler

    def noted(loop: asyncio.BaseEventLoop, context: dict[str, Any]) -> None:
        reached.append(str(context.get("exception") or context["message"]))
        handle(loop, context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_exception_handler", noted)
    yield
    assert reached == []
