"""The bridge to MQTT beside mosquitto's own bridge between two brokers: events a second one way, in one run.

    pip install -e '.[dev]'     # and: apt install mosquitto
    python benchmarks/bridge.py [--seconds 5]

Earshot: a node in one process publishes at growing paces; the bridge in another sends each event to the broker at
quality of service 1; a subscriber in a third counts. The figure is the highest pace at which nothing is lost and the
last event arrives within a second of the others' time. mosquitto: a client publishes to one broker at growing paces,
its bridge forwards to a second, a subscriber counts there. Beside it stands what an event costs the process that
bridges: on a busy machine the pace says more about the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event as Flag
from pathlib import Path
from typing import Any

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from earshot.cli.tables import print_table
from earshot.live import Node
from earshot.live.bridge import Bridge, Mapping, MqttBroker, ToMqtt

PACES = (1000, 2000, 3000, 5000, 7000, 10_000, 14_000, 20_000)
ASKED = 5000
TOPIC = "bench/ticks"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start_broker(folder: Path, port: int, *lines: str) -> subprocess.Popen[bytes]:
    config = folder / f"{port}.conf"
    config.write_text(
        "\n".join([f"listener {port} 127.0.0.1", "allow_anonymous true", "max_queued_messages 0", *lines, ""])
    )
    broker = shutil.which("mosquitto", path="/usr/sbin:/usr/bin")
    assert broker, "apt install mosquitto"
    process = subprocess.Popen([broker, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.02)
    raise SystemExit("mosquitto did not start")


class Counter:
    """Counts messages on the broker at this port."""

    def __init__(self, port: int) -> None:
        self.count, self.last = 0, 0.0
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda *_: self._client.subscribe(TOPIC, 1)
        self._client.on_message = self._on_message
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        time.sleep(0.5)

    def _on_message(self, *_: Any) -> None:
        self.count += 1
        self.last = time.monotonic()

    def settled(self, expected: int) -> bool:
        """Wait for the rest; whether all came."""
        until = time.monotonic() + 5.0
        while self.count < expected and time.monotonic() < until:
            time.sleep(0.01)
        return self.count >= expected

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def cpu_s(pid: int | None) -> float:
    """What a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


Carried = tuple[bool, float]
"Whether nothing was lost or late, and the seconds that an event cost the bridging process."


def run_bridge(mqtt_port: int, mesh_port: int, folder: str, ready: Flag, stop: Flag) -> None:
    async def work() -> None:
        node = Node("gate", protocol="flooding", interface="lo", group=f"239.255.69.92:{mesh_port}", rate_limit=1e6)
        mapping = Mapping(to_mqtt=(ToMqtt("Tick", TOPIC),))
        async with node, Bridge(node, MqttBroker("127.0.0.1", mqtt_port), mapping, Path(folder) / "q.db") as bridge:
            while not bridge.connected:
                await asyncio.sleep(0.01)
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.05)

    from earshot.live import run

    run(work())


def publish_events(mesh_port: int, pace: int, count: int) -> None:
    async def work() -> None:
        node = Node("car", protocol="flooding", interface="lo", group=f"239.255.69.92:{mesh_port}")
        async with node:
            tick = await node.announce("Tick")
            await asyncio.sleep(1.5)
            await paced(pace, count, lambda number: tick.publish(number=number, pad="x" * 120))
            await asyncio.sleep(0.2)

    from earshot.live import run

    run(work())


async def paced(pace: int, count: int, publish: Callable[[int], Any]) -> None:
    start = time.monotonic()
    for number in range(count):
        await publish(number)
        ahead_s = start + number / pace - time.monotonic()
        if ahead_s > 0.001:
            await asyncio.sleep(ahead_s)


def earshot_carries(pace: int, seconds: float, folder: Path) -> Carried:
    mqtt_port, mesh_port, count = free_port(), free_port(), int(pace * seconds)
    broker = start_broker(folder, mqtt_port)
    ready, stop = multiprocessing.Event(), multiprocessing.Event()
    with tempfile.TemporaryDirectory() as queue:
        bridge = multiprocessing.Process(target=run_bridge, args=(mqtt_port, mesh_port, queue, ready, stop))
        bridge.start()
        ready.wait(20)
        counter = Counter(mqtt_port)
        before = cpu_s(bridge.pid)
        publisher = multiprocessing.Process(target=publish_events, args=(mesh_port, pace, count))
        publisher.start()
        publisher.join()
        ended = time.monotonic()
        carried = counter.settled(count) and counter.last - ended < 1.0
        spent = cpu_s(bridge.pid) - before
        stop.set()
        bridge.join()
        counter.close()
    broker.terminate()
    broker.wait()
    return carried, spent / count


def mosquitto_carries(pace: int, seconds: float, folder: Path) -> Carried:
    near, far, count = free_port(), free_port(), int(pace * seconds)
    second = start_broker(folder, far)
    lines = ("connection b", f"address 127.0.0.1:{far}", f"topic {TOPIC} out 1")
    first = start_broker(folder, near, *lines)
    time.sleep(1.0)
    counter = Counter(far)
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(200)
    client.connect("127.0.0.1", near)
    client.loop_start()
    payload = json.dumps({"pad": "x" * 200})
    before = cpu_s(first.pid)

    async def publish(_number: int) -> None:
        client.publish(TOPIC, payload, 1)

    asyncio.run(paced(pace, count, publish))
    ended = time.monotonic()
    carried = counter.settled(count) and counter.last - ended < 1.0
    spent = cpu_s(first.pid) - before
    client.disconnect()
    client.loop_stop()
    counter.close()
    for broker in (first, second):
        broker.terminate()
        broker.wait()
    return carried, spent / count


def highest(carries: Callable[[int, float, Path], Carried], seconds: float, folder: Path) -> tuple[int, float]:
    """The highest pace, and what an event cost there."""
    best, cost_s = 0, 0.0
    for pace in PACES:
        for _ in range(2):
            carried, spent_s = carries(pace, seconds, folder)
            if carried:
                best, cost_s = pace, spent_s
                break
        else:
            break
    return best, cost_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each pace is held")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        ours, our_cost_s = highest(earshot_carries, seconds, Path(folder))
        theirs, their_cost_s = highest(mosquitto_carries, seconds, Path(folder))
    rows = [
        ("earshot bridge", f"{ours:,}", f"{ours / ASKED:.2f}", f"{1e6 * our_cost_s:.0f}"),
        ("mosquitto's bridge", f"{theirs:,}", f"{theirs / ASKED:.2f}", f"{1e6 * their_cost_s:.0f}"),
        ("ours / theirs", f"{ours / theirs:.2f}" if theirs else "-", "", ""),
    ]
    headings = ("one way, quality of service 1", "events a second", f"of {ASKED:,} asked", "CPU an event, µs")
    print_table(headings, rows)


if __name__ == "__main__":
    main()
