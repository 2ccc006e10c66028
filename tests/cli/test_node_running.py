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
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli.nodes import run_node, until_stopped
from earshot.errors import UsageError


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


def test_every_option_of_a_node_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def refuse(options: dict[str, Any]) -> Any:
        asked.append(options)
        raise UsageError("enough")

    monkeypatch.setattr("earshot.cli.live.make_node", refuse)
    nothing = {
        "name": None, "protocol": None, "settings_file": None, "settings": (), "location": None, "origin": None,
        "interface": "", "group": None, "peers": (), "listen": "", "emulate_range": None, "key_file": None,
        "identity": None, "trust": None, "require_signed": False, "precision": None, "memory": None,
        "rate_limit": None, "bit_rate": None, "spool": None, "as_json": False,
    }  # fmt: skip
    everything = {
        "name": "car", "protocol": "gossip", "settings_file": "s.toml", "settings": ("a=1", "b=2"), "location": "gpsd",
        "origin": (53.4, -2.9), "interface": "lo", "group": "239.0.0.1", "peers": ("h:1", "h:2"), "listen": "5",
        "emulate_range": 200.0, "key_file": "k", "identity": "i", "trust": "t", "require_signed": True,
        "precision": 100.0, "memory": 64e6, "rate_limit": 9.5, "bit_rate": 6e6, "spool": "d", "as_json": True,
    }  # fmt: skip
    arguments = (
        "--name car -p gossip --settings s.toml --setting a=1 --setting b=2 --location gpsd --origin 53.4,-2.9 "
        "--interface lo --group 239.0.0.1 --peer h:1 --peer h:2 --listen 5 --emulate-range 200m --key-file k "
        "--identity i --trust t --require-signed --precision 100m --memory 64MB --rate-limit 9.5 --bit-rate 6000000 "
        "--spool d --json"
    )
    for given in ([], arguments.split()):
        assert isinstance(CliRunner().invoke(earshot, ["peers", "--for", "0", *given]).exception, UsageError)
    assert asked == [nothing, everything]
