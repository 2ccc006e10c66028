"""The loop that live nodes run on."""

import asyncio
import sys

import pytest

from earshot.live import run


async def loop_module() -> str:
    await asyncio.sleep(0)
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_nodes_run_on_uvloop_where_it_is_installed() -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed (the extra `fast`)")
    assert run(loop_module()) == "uvloop"


def test_nodes_run_on_the_loop_of_python_itself_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run(loop_module()) == "asyncio"
