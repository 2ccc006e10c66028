"""A soak of a bounded length: many nodes, many events, kills and restarts, every delivery accounted for."""

import asyncio
import gc
import os
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from desk import Desk, acquainted, resident_bytes, until

from earshot.events import Event
from earshot.live.node import Node
from sizes import sized

NODES = sized(10, 50)
EVENTS = sized(500, 10_000)
A_ROUND = 50
RESTARTS = 2


class Member:
    """One node of the soak through its lives, and all it was handed."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.desk = desk
        self.name = name
        self.got: Counter[str] = Counter()

    async def start(self) -> None:
        self.node: Node = await self.desk.node(self.name).__aenter__()
        self.node.call(self.take, "Tick")
        self.tick = await self.node.announce("Tick")

    def take(self, event: Event) -> None:
        self.got[event.id] += 1

    def kill(self) -> None:
        """Killed: its sockets are closed, and it sends nothing more."""
        host = self.node.host
        for timer in (*host._timers.values(), *host.transport._timers.values(), host._ticking):
            if timer is not None:
                timer.cancel()
        host.transport._batches.clear()
        host.transport.close()
        host._loop = None


async def soak() -> None:
    random = Random(7)
    desk = Desk(settings={"hop_limit": 1, "memory": 256}, hello_interval_s=1.0)
    members = [Member(desk, f"n{number:02}") for number in range(NODES)]
    async with AsyncExitStack() as stack:
        for member in members:
            await member.start()
        await acquainted(*(member.node for member in members))
        resident: list[int] = []
        for start in range(0, EVENTS, A_ROUND):
            sent: list[tuple[Member, str]] = []
            for _ in range(A_ROUND):
                publisher = random.choice(members)
                sent.append((publisher, (await publisher.tick.publish(number=start, text="x" * 100)).id))
            await until(lambda sent=sent: all(len(one.got) >= _owed(one, sent) for one in members))  # type: ignore[misc]
            for one in members:
                assert one.got == Counter(id for publisher, id in sent if publisher is not one)
                one.got.clear()
            for victim in random.sample(members, RESTARTS):
                victim.kill()
                await victim.start()
                await until(lambda victim=victim: _is_known(victim, members))  # type: ignore[misc]
            gc.collect()
            resident.append(resident_bytes())
        assert resident[-1] - resident[len(resident) // 2] < 4_000_000
        for member in members:
            stack.push_async_exit(member.node)


def test_every_delivery_is_accounted_for_through_kills_and_restarts_and_memory_stays_flat() -> None:
    """In a process of its own: what other tests hold in memory does not count."""
    here = Path(__file__)
    paths = os.pathsep.join([str(here.parent), str(here.parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, str(here)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _is_known(victim: Member, members: list[Member]) -> bool:
    """Whether all others know a restarted node at its new address, and it knows them."""
    address = victim.node.host.transport.address
    others = [one.node for one in members if one is not victim]
    return len(victim.node.peers()) == NODES - 1 and all(
        any(peer.address == address for peer in node.peers()) for node in others
    )


def _owed(member: Member, sent: list[tuple[Member, str]]) -> int:
    return sum(publisher is not member for publisher, _ in sent)


async def soak_without_failures() -> None:
    """The soak; an exception that reaches the event loop ends it with an error."""
    reached: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reached.append(str(context)))
    await soak()
    assert reached == []


if __name__ == "__main__":
    asyncio.run(soak_without_failures())
