"""Honest traffic under a flood, for every protocol: latency and loss with and without an attacker.

    python benchmarks/live.py --flood [--protocols steam,flooding] [--quick]

Three processes on the loopback: a publisher at a steady, easy pace, a subscriber, and an attacker without a key.
The attacker overhears the network, and sends what it overheard back, to the group and to the subscriber: under new
names, with new numbers and event ids, whole or damaged, 20,000 datagrams a second. It takes turns with silence, so
that whatever else the machine does, it does to both. `p99` is over all turns; `turn` is the median of the turns' p99,
which does not depend on a turn in which the machine stood still (a virtual one without its processor).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import struct
import subprocess
import sys
import time
from random import Random
from typing import Any

GROUP = "239.255.69.83"
RATE_HZ = 100.0
TURN_S = 2.0
FLOOD_HZ = 20_000
WARM_UP_S = 40.0
SOCKETS = 16
SETTINGS: dict[str, dict[str, Any]] = {"codd": {"agents": ("pub",)}, "siena": {"agents": ("pub",)}}


def node(name: str, protocol: str, port: int) -> Any:
    from earshot.live import Node

    place = {"interface": "lo", "group": f"{GROUP}:{port}"}
    return Node(name, protocol=protocol, settings=SETTINGS.get(protocol, {}), **place)


def publish(protocol: str, port: int, turns: int) -> None:
    """Publish until the subscriber has heard something, then at a steady pace, through turns of silence and flood."""

    async def work() -> None:
        async with node("pub", protocol, port) as publisher, asyncio.timeout(WARM_UP_S + 4 * turns * TURN_S + 30):
            tick = await publisher.announce("Tick")
            lines = asyncio.Queue[str]()
            loop = asyncio.get_running_loop()

            def read_commands() -> None:
                for line in sys.stdin:
                    loop.call_soon_threadsafe(lines.put_nowait, line.strip())

            loop.run_in_executor(None, read_commands)
            while lines.empty():
                await tick.publish(t=time.monotonic_ns(), turn=-1)
                await asyncio.sleep(0.2)
            counts = []
            for turn in range(2 * turns):
                start, count = time.monotonic(), int(TURN_S * RATE_HZ)
                for number in range(count):
                    await asyncio.sleep(max(0.0, start + number / RATE_HZ - time.monotonic()))
                    await tick.publish(t=time.monotonic_ns(), turn=turn)
                counts.append(count)
                await asyncio.sleep(0.5)
                print(f"turn {turn}", flush=True)
                await lines.get()
            await asyncio.sleep(1.0)

    asyncio.run(work())
    os._exit(0)  # The thread that reads the commands does not end by itself.


def subscribe(protocol: str, port: int) -> None:
    """Print each delivery: the turn and the latency."""

    async def work() -> None:
        async with node("sub", protocol, port) as subscriber:
            print(f"address {subscriber.host.transport.address[1]}", flush=True)

            honest: set[str] = set()

            def heard(event: Any) -> None:
                if not event.id.startswith("pub-") or event.id in honest:
                    return  # Without a key anyone can publish: the attacker's events are not what is measured.
                honest.add(event.id)
                late_us = (time.monotonic_ns() - event.content["t"]) / 1000
                sys.stdout.write(f"{event.content['turn']} {late_us:.0f}\n")
                if event.content["turn"] < 0:
                    sys.stdout.flush()

            subscriber.call(heard, "Tick")
            await asyncio.to_thread(sys.stdin.readline)
            sys.stdout.flush()
            failed = subscriber.drops["machine-failure"]
            print(f"end {failed}", flush=True)

    asyncio.run(work())


def attack(port: int, victim_port: int) -> None:
    """Overhear the network; at each line of input, flood it for one turn with what was overheard."""
    from earshot.live import datagrams
    from earshot.live.datagrams import PLAIN, Frame

    random = Random(1)
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.bind((GROUP, port))
    here = struct.pack("=4s4s", socket.inet_aton(GROUP), socket.inet_aton("127.0.0.1"))
    ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, here)
    ear.setblocking(False)
    mouths = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(SOCKETS)]
    for mouth in mouths:
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    targets = [(GROUP, port), ("127.0.0.1", victim_port)]
    for _ in sys.stdin:
        overheard: list[Frame] = []
        while len(overheard) < 2000:
            try:
                overheard.append(datagrams.decode(ear.recv(65_535)[4:]))
            except BlockingIOError:
                break
            except Exception:
                continue
        useful = [frame for frame in overheard if frame.packets] or overheard
        if not useful:
            print("0", flush=True)
            continue
        made = []
        for number in range(4000):
            frame = random.choice(useful)
            packets = [_altered(random, data) for data in frame.packets]
            false = Frame(f"x{number}", number, number, time.time(), "", frame.position, frame.group, "", [], packets)
            datagram = bytearray(PLAIN + datagrams.encode(false))
            if number % 4 == 0:
                datagram[random.randrange(len(datagram))] ^= 1 << random.randrange(8)
            made.append(bytes(datagram))
        start, sent = time.monotonic(), 0
        while (passed := time.monotonic() - start) < TURN_S:
            while sent < passed * FLOOD_HZ:
                mouths[sent % SOCKETS].sendto(made[sent % len(made)], targets[sent // SOCKETS % 2])
                sent += 1
            time.sleep(0.0005)
        print(sent, flush=True)


def _altered(random: Random, data: bytes) -> bytes:
    """A packet with another event id, where it holds one of the publisher's; sometimes damaged."""
    changed = bytearray(data)
    at = changed.find(b"pub-")
    if at >= 0:
        changed[at : at + 4] = b"%04x" % random.getrandbits(16)
    if random.random() < 0.3:
        changed[random.randrange(len(changed))] = random.getrandbits(8)
    return bytes(changed)


def measure(protocol: str, turns: int) -> dict[str, Any]:
    """Latencies in turns without and with the flood."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]

    def process(*role: str) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, "--role", *role]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True)

    quiet = subprocess.DEVNULL
    subscriber = process("subscribe", protocol, str(port))
    assert subscriber.stdout
    assert subscriber.stdin
    victim = subscriber.stdout.readline().split()[1]
    publisher = process("publish", protocol, str(port), str(turns))
    attacker = process("attack", str(port), victim)
    processes = (subscriber, publisher, attacker)
    assert publisher.stdout
    assert publisher.stdin
    assert attacker.stdin
    assert attacker.stdout
    flooded = 0
    try:
        if not subscriber.stdout.readline():
            raise RuntimeError(f"{protocol}: nothing was delivered")
        publisher.stdin.write("start\n")
        publisher.stdin.flush()
        for turn in range(2 * turns):
            publisher.stdout.readline()
            if turn % 2:
                flooded += int(attacker.stdout.readline())
            elif turn < 2 * turns - 1:
                attacker.stdin.write("flood\n")
                attacker.stdin.flush()
            publisher.stdin.write("go\n")
            publisher.stdin.flush()
        time.sleep(0.5)
        subscriber.stdin.write("end\n")
        subscriber.stdin.flush()
        late: dict[int, list[float]] = {turn: [] for turn in range(2 * turns)}
        for line in subscriber.stdout:
            first, second = line.split()
            if first == "end":
                failures = int(second)
                break
            if int(first) >= 0:
                late[int(first)].append(float(second))
    finally:
        for one in processes:
            one.kill()
            one.wait()
    expected = turns * int(TURN_S * RATE_HZ)

    def figures(parity: int) -> tuple[float, float, float, int]:
        by_turn = [late[turn] for turn in range(parity, 2 * turns, 2)]
        found = [one for some in by_turn for one in some]
        typical = statistics.median(percentile(some, 99) for some in by_turn)
        return percentile(found, 50), percentile(found, 99), typical, expected - len(found)

    return {"quiet": figures(0), "flood": figures(1), "flooded": flooded, "failures": failures}


def percentile(found: list[float], percent: int) -> float:
    return statistics.quantiles(found, n=100)[percent - 1] if len(found) > 1 else 0.0


def main(protocols: str = "", quick: bool = False) -> None:
    from earshot.protocols.catalogue import PROTOCOLS

    turns = 2 if quick else 6
    print(f"{FLOOD_HZ:,} hostile datagrams a second; {RATE_HZ:.0f} honest events a second, {os.cpu_count()} processors")
    head = f"{'p50 us':>8} {'p99 us':>8} {'turn us':>8} {'lost':>5}"
    print(f"{'protocol':15} {head} | {head} {'p99 x':>6} {'turn x':>6} {'failures':>8}  (without | with the flood)")
    for protocol in protocols.split(",") if protocols else sorted(PROTOCOLS):
        try:
            reported = measure(protocol, turns)
        except RuntimeError as error:
            print(f"{protocol:15} {error}", flush=True)
            continue
        quiet, flood = reported["quiet"], reported["flood"]
        left, right = (f"{p50:8.0f} {p99:8.0f} {turn:8.0f} {lost:5}" for p50, p99, turn, lost in (quiet, flood))
        ratios = " ".join(f"{flood[at] / quiet[at] if quiet[at] else 0.0:6.1f}" for at in (1, 2))
        print(f"{protocol:15} {left} | {right} {ratios} {reported['failures']:8}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    role = parser.parse_args().role or [""]
    match role:
        case ["publish", protocol, port, turns]:
            publish(protocol, int(port), int(turns))
        case ["subscribe", protocol, port]:
            subscribe(protocol, int(port))
        case ["attack", port, victim]:
            attack(int(port), int(victim))
        case _:
            main()
