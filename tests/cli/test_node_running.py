"""How a command that runs a node begins and ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import pytest

from earshot.cli.nodes import run_node, until_stopped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_node_stops_in_good_order_when_it_is_asked_to_end(number: signal.Signals) -> None:
    async def run() -> None:
        before = signal.getsignal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        async with until_stopped() as stopped:
            assert not stopped.is_set()
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stopped.wait(), 60.0)
        assert [loop.remove_signal_handler(one) for one in (signal.SIGINT, signal.SIGTERM)] == [False, False]
        signal.signal(signal.SIGTERM, before)

    asyncio.run(run())


def test_what_a_node_warns_of_goes_to_standard_error_with_the_programs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **given: asked.append(given))
    ran: list[str] = []

    async def work() -> None:
        ran.append("done")

    run_node(work())
    assert asked == [{"format": "earshot: %(message)s", "stream": sys.stderr, "level": logging.WARNING}]
    assert ran == ["done"]


def test_a_node_that_is_stopped_before_it_begins_leaves_nothing_that_was_never_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        raise AssertionError("it does not begin")

    def interrupted(_: Coroutine[Any, Any, None]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("earshot.live.run", interrupted)
    never = work()
    with pytest.raises(KeyboardInterrupt):
        run_node(never)
    assert inspect.getcoroutinestate(never) == inspect.CORO_CLOSED
