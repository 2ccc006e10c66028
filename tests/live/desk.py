"""Many nodes on one desk: real sockets on the loopback, a port of their own for each test."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from earshot.events import Event
from earshot.live.location import Fixed
from earshot.live.node import Node, Stream

PATIENCE_S = 60.0


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident_bytes() -> int:
    """What this process holds in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Desk:
    """Makes nodes that share one multicast port on the loopback."""

    def __init__(self, **options: Any) -> None:
        self.group = f"239.255.69.83:{free_port()}"
        self.options = options

    def node(self, name: str, x_m: float = 0.0, y_m: float = 0.0, **options: Any) -> Node:
        location = options.pop("location", None) or Fixed.on_plane(x_m, y_m)
        shared = {"protocol": "flooding", "interface": "lo", "group": self.group}
        return Node(name, location=location, **{**shared, **self.options, **options})


async def until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> None:
    """Wait until it holds; fail where it does not in good time."""
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(0.002)


async def acquainted(*nodes: Node) -> None:
    """Wait until each has heard all the others."""
    names = {node.name for node in nodes}
    await until(lambda: all({peer.name for peer in node.peers()} >= names - {node.name} for node in nodes))


async def taken(stream: Stream, count: int) -> list[Event]:
    """The next `count` events."""
    async with asyncio.timeout(PATIENCE_S):
        return [await anext(stream) for _ in range(count)]
