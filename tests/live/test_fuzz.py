"""Fuzzed datagrams through the real socket: a node lives, its machine never fails, and its memory stays flat.

A long run throws a million at each protocol. EARSHOT_FUZZ sets another number.
"""

import asyncio
import gc
import os
import select
import socket
from random import Random

import pytest
from desk import Desk, resident_bytes, until
from packets import packet, packet_classes

from earshot import wire
from earshot.geometry import Position
from earshot.live import datagrams
from earshot.live.datagrams import PLAIN, Challenge, Echo, Fragment, Frame
from earshot.live.node import Node
from earshot.protocols.catalogue import PROTOCOLS
from sizes import sized

DATAGRAMS = int(os.environ.get("EARSHOT_FUZZ", sized(3000, 1_000_000)))
POOL = 4000
IN_FLIGHT = 64


HOSTS = 8
"Hosts whose datagrams are whole, whatever packets they hold."
VANDALS = 2
"Hosts whose datagrams are damaged: their numbers and names cannot silence the others."


class Fuzzer:
    """Hosts that prove themselves, and then send what they like."""

    def __init__(self, victim: Node, random: Random) -> None:
        self.victim = victim.host.transport.address
        self.random = random
        self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(HOSTS + VANDALS)]
        for one in self.sockets:
            one.bind(("127.0.0.1", 0))
            one.setblocking(False)
        self.sequence = 0

    def answer(self) -> None:
        for one in self.sockets:
            while True:
                try:
                    data = one.recv(65_535)
                except BlockingIOError:
                    break
                short = datagrams.decode(data[4:])
                if isinstance(short, Challenge):
                    one.sendto(PLAIN + datagrams.encode(Echo(short.cookie, short.digest)), self.victim)

    def throw(self, by: int, *datas: bytes, fragment: Fragment | None = None, damage: bool = False) -> None:
        self.sequence += 1
        position = Position(self.random.uniform(-200.0, 200.0), 0.0)
        frame = Frame(f"m{by}", 1, self.sequence, 1.8e9, "", position, None, "", [], list(datas), fragment)
        data = bytearray(PLAIN + datagrams.encode(frame))
        if damage:
            for _ in range(self.random.randrange(1, 4)):
                data[self.random.randrange(len(data))] = self.random.getrandbits(8)
        self.sockets[by].sendto(data, self.victim)

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def fuzzed(random: Random, pool: list[bytes]) -> bytes:
    """A packet of the pool: as it is, damaged, cut, or joined with another."""
    data = random.choice(pool)
    match random.randrange(6):
        case 0 | 1:
            return data
        case 2 | 3:
            changed = bytearray(data)
            for _ in range(random.randrange(1, 5)):
                changed[random.randrange(len(changed))] = random.getrandbits(8)
            return bytes(changed)
        case 4:
            return data[: random.randrange(len(data) + 1)]
    other = random.choice(pool)
    return data[: random.randrange(len(data))] + other[random.randrange(len(other)) :]


async def read_all(victim: Node) -> None:
    """Wait until the node has read what was sent to it: what its socket has no room for would test nothing."""
    own = victim.host.transport._own
    while own is not None and select.select([own], [], [], 0)[0]:
        await asyncio.sleep(0)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_fuzzed_datagrams_do_no_harm(protocol: str) -> None:
    async def run() -> None:
        random = Random(f"{protocol}:{DATAGRAMS}")
        classes = packet_classes(protocol)
        # A sample for each class: small ones, and some of the largest that are accepted.
        pool = [wire.encode(packet(random, random.choice(classes), worst=number % 20 == 0)) for number in range(POOL)]
        pool = [data for data in pool if len(data) < 40_000]
        async with Desk(rate_limit=1e6).node("target", protocol=protocol) as target:
            target.subscribe("Siren")
            bell = await target.announce("Siren")
            fuzzer = Fuzzer(target, random)
            while sum(peer.both_ways for peer in target.peers()) < HOSTS + VANDALS:
                for by in range(HOSTS + VANDALS):
                    fuzzer.throw(by)
                await asyncio.sleep(0.05)
                fuzzer.answer()
            flat = 0
            for number in range(DATAGRAMS):
                by = number % HOSTS
                match random.randrange(12):
                    case 0:
                        fuzzer.sockets[by].sendto(random.randbytes(random.randrange(200)), fuzzer.victim)
                    case 1:
                        piece = Fragment(number, random.randrange(4), 4, random.choice(pool)[:1000])
                        fuzzer.throw(by, fragment=piece)
                    case 2:
                        fuzzer.throw(HOSTS + number % VANDALS, fuzzed(random, pool), damage=True)
                    case _:
                        fuzzer.throw(by, fuzzed(random, pool))
                if number % IN_FLIGHT == 0:
                    await read_all(target)
                    fuzzer.answer()
                if number % 5000 == 0:
                    await bell.publish(speed=12.0)
                if number == DATAGRAMS // 2:
                    gc.collect()
                    flat = resident_bytes()
            counts = target.host.counts
            await until(lambda: counts["receive"] + sum(target.drops.values()) > 0)
            await asyncio.sleep(0.2)
            fuzzer.close()
            gc.collect()
            grown = resident_bytes() - flat
            assert target.drops["machine-failure"] == 0
            assert counts["receive"] > DATAGRAMS // 5
            assert grown < 20_000_000, f"{protocol} grew by {grown / 1e6:.0f} MB"
            print(f"{protocol}: {counts['receive']:,} packets heard of {DATAGRAMS:,} datagrams, {grown / 1e6:+.1f} MB")

    asyncio.run(run())


def test_the_pool_reaches_every_packet_class() -> None:
    random = Random(1)
    for protocol in PROTOCOLS:
        classes = packet_classes(protocol)
        found = {type(packet(random, random.choice(classes))) for _ in range(60 * len(classes))}
        assert found == set(classes), protocol
        assert all(issubclass(cls, wire.Packet) for cls in classes)
