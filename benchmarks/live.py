"""Live nodes against Zenoh, MQTT and ZeroMQ: latency and messages a second on the loopback, in one run.

    pip install -e '.[benchmarks]' eclipse-zenoh paho-mqtt pyzmq     # and: apt install mosquitto
    python benchmarks/live.py [--systems earshot,zenoh] [--quick]

Messages of 200 bytes, from one process to one and to ten others. Latency is measured at a steady,
easy pace, all systems up at once and taking turns of a fifth of a second, so that whatever else the
machine does, it does to all of them. Messages a second are measured one system after the other, as
fast as the publisher can, and for Earshot, which runs over UDP, at the highest pace at which nothing
is lost. A system that is not installed is left out. `signed` is Earshot with a signature on every event
and subscribers that require it; `--signatures` prints what one signature costs, and nothing else.

    git worktree add --detach ../before COMMIT && python benchmarks/live.py --beside ../before [--rounds 6]

compares Earshot with an earlier Earshot. The side that is started first does better, so the two change
places from round to round. A side's figure is the geometric mean of two medians: of the rounds in which it was
started first, and of the others. (One median over all rounds would lie between two groups that differ several times.)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import resource
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

SIZE = 200
STAMP = struct.Struct("<qq")
PAD = b"x" * (SIZE - STAMP.size)
BODY = "x" * (SIZE - 40)
QUIET_S = 3.0
MOST_QUIETS = 60
TOPIC = "bench/tick"
TURN_S = 0.2
"How long one system publishes before it is the next one's turn."
REST_S = 0.05
"From one turn to the next."


class Tally:
    """What one subscriber saw."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.latencies_ns: list[int] = []
        self.count = 0
        self.first_ns = self.last_ns = 0
        self.done = threading.Event()

    def add(self, sent_ns: int, number: int) -> None:
        now = time.monotonic_ns()
        if not self.count:
            self.first_ns = now
        self.count += 1
        self.last_ns = now
        self.latencies_ns.append(now - sent_ns)
        if number == self.expected - 1:
            self.done.set()

    def report(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "span_s": (self.last_ns - self.first_ns) / 1e9,
            "latencies_ns": sorted(self.latencies_ns),
            "cpu_s": cpu_s(),
        }


def wait_for_end(tally: Tally) -> None:
    """Until the last message, or until none has come for a while after the first."""
    seen = -1
    for _ in range(MOST_QUIETS):
        if tally.done.wait(QUIET_S) or 0 < tally.count == seen:
            return
        seen = tally.count


_cpu_at_start_s = 0.0


def cpu_s() -> float:
    """This process's processor time since it was ready."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime - _cpu_at_start_s


def answer(what: Any) -> None:
    global _cpu_at_start_s
    if what == "ready":
        _cpu_at_start_s += cpu_s()
    # Not by `print`: where Python's output is unbuffered, a write that is interrupted loses the rest.
    with open(1, "wb", closefd=False) as out:
        out.write(json.dumps(what).encode() + b"\n")


class Pace:
    """When to publish: at a steady rate within this system's turns, or at once where the rate is 0."""

    def __init__(self, count: int, rate: float, turn: int, turns: int) -> None:
        self.count = count
        self._rate = rate
        self._a_turn = max(1, int(TURN_S * rate)) if turns > 1 else count
        self._turn, self._turns = turn, turns
        self._start_s = 0.0

    def wait_for_start(self) -> None:
        """The driver says when."""
        self._start_s = float(sys.stdin.readline())

    def ahead_s(self, number: int) -> float:
        """How long until this message is due."""
        if not self._rate:
            return 0.0
        before, place = divmod(number, self._a_turn)
        turn_s = (before * self._turns + self._turn) * (TURN_S + REST_S)
        return self._start_s + turn_s + place / self._rate - time.monotonic()

    def __iter__(self) -> Iterator[int]:
        """The messages' numbers, each when it is due."""
        for number in range(self.count):
            ahead_s = self.ahead_s(number)
            if ahead_s > 0:
                time.sleep(ahead_s)
            yield number


# Each system: how to subscribe, and how to publish.


def earshot_run(work: Coroutine[Any, Any, None]) -> None:
    from earshot.live import run

    run(work)


SOONEST_S = 0.001
"An event loop does not sleep for less: what is due sooner goes at once."


def earshot_node(name: str, port: int, **credentials: Any) -> Any:
    from earshot.live.node import Node

    return Node(
        name,
        protocol="flooding",
        settings={"hop_limit": 1, "memory": 4096},
        interface="lo",
        group=f"239.255.69.83:{port}",
        rate_limit=1e9,
        **credentials,
    )


def earshot_subscribe(port: int, tally: Tally, **credentials: Any) -> None:
    async def run() -> None:
        async with earshot_node(f"sub-{os.getpid()}", port, **credentials) as node:

            def heard(event: Any) -> None:
                tally.add(event.content["t"], event.content["n"])

            node.call(heard, "Tick")
            answer("ready")
            await asyncio.to_thread(wait_for_end, tally)

    earshot_run(run())


def earshot_publish(port: int, pace: Pace, **credentials: Any) -> None:
    async def run() -> None:
        async with earshot_node("pub", port, **credentials) as node:
            tick = await node.announce("Tick")
            answer("ready")
            await asyncio.to_thread(pace.wait_for_start)
            for number in range(pace.count):
                ahead_s = pace.ahead_s(number)
                if ahead_s > SOONEST_S:
                    await asyncio.sleep(ahead_s)
                await tick.publish(t=time.monotonic_ns(), n=number, body=BODY)
            await asyncio.sleep(0.5)

    earshot_run(run())


def publisher_files(port: int) -> tuple[Path, Path]:
    """The publisher's identity and a trust file that names it, the same in every process of one run."""
    from base64 import urlsafe_b64encode

    from earshot.live.identity import read_identity
    from earshot.live.signatures import trust_line

    folder = Path(tempfile.mkdtemp())
    identity, trust = folder / "pub.identity", folder / "trust"
    identity.touch(mode=0o600)
    identity.write_text(f"name pub\nprivate {urlsafe_b64encode(port.to_bytes(32, 'big')).decode()}\n")
    trust.write_text(trust_line("node", read_identity(identity).public_key, "pub"))
    return identity, trust


def signed_subscribe(port: int, tally: Tally) -> None:
    earshot_subscribe(port, tally, trust=publisher_files(port)[1], require_signed=True)


def signed_publish(port: int, pace: Pace) -> None:
    earshot_publish(port, pace, identity=publisher_files(port)[0])


def print_signature_costs() -> None:
    """What one signature costs: bytes, and processor time to sign, to verify, and to know a copy again."""
    from earshot.events import Event
    from earshot.live.identity import Identity, read_identity
    from earshot.live.signatures import Verifier, read_trust
    from earshot.protocols.flooding import Flood
    from earshot.wire import decode, encode

    path, trust = publisher_files(1)
    identity = read_identity(path)
    certificate = identity.certify("pub", identity.public_key, 2**31).encoded()
    certified = Identity("pub", identity.private_key, certificate)
    events = [
        Event("Tick", {"t": number, "body": BODY}).stamped(id=f"pub-{number}", source="pub", time=float(number))
        for number in range(2000)
    ]
    plain, signed = len(encode(Flood(events[0], 1))), len(encode(Flood(identity.sign_event(events[0]), 1)))
    print(f"event of {plain} bytes; signed +{signed - plain}", end="")
    print(f", with a certificate +{len(encode(Flood(certified.sign_event(events[0]), 1))) - plain}")

    def per_event_us(what: str, work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        before = time.process_time_ns()
        made = [work(item) for item in items]
        print(f"{what:32} {(time.process_time_ns() - before) / len(items) / 1000:8.1f} us")
        return made

    packets = [Flood(event, 1) for event in per_event_us("sign", identity.sign_event, events)]
    verifier = Verifier(True, read_trust(trust))
    copies = [decode(encode(packet)) for packet in packets]
    per_event_us("verify", lambda packet: verifier.check_packet(packet, "relay", 1.0), packets)
    per_event_us("know a copy again", lambda packet: verifier.check_packet(packet, "relay", 1.0), copies)


def zenoh_session(mode: str, port: int) -> Any:
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5(f"{mode}/endpoints", f'["tcp/127.0.0.1:{port}"]')
    return zenoh.open(config)


def zenoh_subscribe(port: int, tally: Tally) -> None:
    with zenoh_session("connect", port) as session:
        kept = session.declare_subscriber(
            TOPIC, lambda sample: tally.add(*STAMP.unpack_from(sample.payload.to_bytes()))
        )
        answer("ready")
        wait_for_end(tally)
        kept.undeclare()


def zenoh_publish(port: int, pace: Pace) -> None:
    import zenoh

    with zenoh_session("listen", port) as session:
        publisher = session.declare_publisher(TOPIC, congestion_control=zenoh.CongestionControl.BLOCK)
        answer("ready")
        pace.wait_for_start()
        for number in pace:
            publisher.put(STAMP.pack(time.monotonic_ns(), number) + PAD)
        time.sleep(1.0)


def mqtt_subscribe(port: int, tally: Tally) -> None:
    import paho.mqtt.client as mqtt

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_message = lambda _client, _data, message: tally.add(*STAMP.unpack_from(message.payload))
    client.on_subscribe = lambda *_: answer("ready")
    client.connect("127.0.0.1", port)
    client.subscribe(TOPIC)
    client.loop_start()
    wait_for_end(tally)
    client.loop_stop()


def mqtt_publish(port: int, pace: Pace) -> None:
    import paho.mqtt.client as mqtt

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    answer("ready")
    pace.wait_for_start()
    sent = None
    for number in pace:
        sent = client.publish(TOPIC, STAMP.pack(time.monotonic_ns(), number) + PAD)
    if sent is not None:
        sent.wait_for_publish(60)
    time.sleep(0.5)
    client.loop_stop()


def zeromq_subscribe(port: int, tally: Tally) -> None:
    import zmq

    with zmq.Context() as context, context.socket(zmq.SUB) as ear:
        ear.set_hwm(0)
        ear.connect(f"tcp://127.0.0.1:{port}")
        ear.subscribe(b"")
        ear.rcvtimeo = int(QUIET_S * 1000)
        answer("ready")
        waited = 0
        while not tally.done.is_set() and waited < MOST_QUIETS:
            try:
                tally.add(*STAMP.unpack_from(ear.recv()))
            except zmq.Again:
                waited += MOST_QUIETS if tally.count else 1


def zeromq_publish(port: int, pace: Pace) -> None:
    import zmq

    with zmq.Context() as context, context.socket(zmq.PUB) as mouth:
        mouth.set_hwm(0)
        mouth.bind(f"tcp://127.0.0.1:{port}")
        answer("ready")
        pace.wait_for_start()
        for number in pace:
            mouth.send(STAMP.pack(time.monotonic_ns(), number) + PAD)
        time.sleep(1.0)


SYSTEMS: dict[str, tuple[Callable[..., None], Callable[..., None], str]] = {
    "earshot": (earshot_subscribe, earshot_publish, "earshot"),
    "signed": (signed_subscribe, signed_publish, "earshot"),
    "zenoh": (zenoh_subscribe, zenoh_publish, "zenoh"),
    "mqtt": (mqtt_subscribe, mqtt_publish, "paho.mqtt.client"),
    "zeromq": (zeromq_subscribe, zeromq_publish, "zmq"),
}


# The driver.


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Broker:
    """Mosquitto on a port of its own; nothing for the systems without a broker."""

    def __init__(self, system: str) -> None:
        self.port = free_port()
        self.process = None
        if system == "mqtt":
            self.folder = Path(tempfile.mkdtemp())
            settings = self.folder / "mosquitto.conf"
            settings.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n")
            binary = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
            self.process = subprocess.Popen(
                [binary, "-c", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for _ in range(200):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                        return
                time.sleep(0.05)
            raise SystemExit("mosquitto does not answer")

    def close(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            shutil.rmtree(self.folder)


class Network:
    """One system's processes: a publisher, a number of subscribers, and its broker where it has one."""

    def __init__(
        self,
        system: str,
        subscribers: int,
        count: int,
        rate: float,
        turn: int = 0,
        turns: int = 1,
        checkout: Path | None = None,
    ) -> None:
        self._broker = Broker(system)
        self._environment = dict(os.environ)
        if checkout is not None:
            self._environment["PYTHONPATH"] = str(checkout.resolve() / "src")
        self._arguments = [system, str(self._broker.port), str(count), str(rate), str(turn), str(turns)]
        (self._publisher,) = self._open("publish", 1)
        self._subscribers = self._open("subscribe", subscribers)

    def _open(self, role: str, count: int) -> list[subprocess.Popen[str]]:
        """Start this many, and wait until all are ready."""
        command = [sys.executable, __file__, "--role", role, *self._arguments]
        pipe = subprocess.PIPE
        started = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=self._environment) for _ in range(count)
        ]
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        return started

    def go(self, start_s: float) -> None:
        """Tell the publisher when to begin."""
        assert self._publisher.stdin is not None
        self._publisher.stdin.write(f"{start_s}\n")
        self._publisher.stdin.flush()

    def reports(self) -> tuple[list[dict[str, Any]], float]:
        """What each subscriber saw, and the publisher's processor time."""
        tallies = [json.loads(one.communicate(timeout=300)[0]) for one in self._subscribers]
        return tallies, json.loads(self._publisher.communicate(timeout=60)[0])["cpu_s"]

    def close(self) -> None:
        for one in (self._publisher, *self._subscribers):
            if one.poll() is None:
                one.kill()
                one.wait()
        self._broker.close()


def percentile(ordered: list[int], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def latencies(
    sides: dict[str, Path | None], subscribers: int, count: int, system: str = ""
) -> dict[str, dict[str, Any]]:
    """Of all sides, taking turns: systems, or checkouts of one system."""
    networks: dict[str, Network] = {}
    try:
        for turn, (side, checkout) in enumerate(sides.items()):
            networks[side] = Network(system or side, subscribers, count, 500.0, turn, len(sides), checkout)
        start_s = time.monotonic() + 1.5
        for network in networks.values():
            network.go(start_s)
        return {side: latency(*network.reports(), count) for side, network in networks.items()}
    finally:
        for network in networks.values():
            network.close()


def latency(tallies: list[dict[str, Any]], publisher_cpu_s: float, count: int) -> dict[str, Any]:
    everything = sorted(value for tally in tallies for value in tally["latencies_ns"])
    return {
        "p50_us": percentile(everything, 0.5) / 1000,
        "p99_us": percentile(everything, 0.99) / 1000,
        "lost": len(tallies) * count - sum(tally["count"] for tally in tallies),
        "publisher_cpu_us": publisher_cpu_s / count * 1e6,
        "subscriber_cpu_us": statistics.mean(tally["cpu_s"] for tally in tallies) / count * 1e6,
    }


def throughput(system: str, subscribers: int, count: int, checkout: Path | None = None) -> dict[str, Any]:
    """As fast as it can; for Earshot, the highest pace at which nothing is lost, to within some 4 %."""
    found = attempt(system, subscribers, count, 0.0, checkout)
    if system != "earshot" or not found["lost"]:
        return found
    too_fast = float(found["per_s"])
    for _ in range(SLOWER_AT_MOST):
        found = attempt(system, subscribers, count, too_fast * SLOWER, checkout)
        if not found["lost"]:
            break
        too_fast *= SLOWER
    slow_enough = too_fast * SLOWER
    for _ in range(0 if found["lost"] else HALVINGS):
        between = attempt(system, subscribers, count, (slow_enough + too_fast) / 2, checkout)
        if between["lost"]:
            too_fast = (slow_enough + too_fast) / 2
        else:
            slow_enough, found = (slow_enough + too_fast) / 2, between
    return found


SLOWER = 0.85
SLOWER_AT_MOST = 6
HALVINGS = 2


def attempt(system: str, subscribers: int, count: int, rate: float, checkout: Path | None) -> dict[str, Any]:
    """This many messages at this rate, or as fast as the publisher can where it is 0."""
    network = Network(system, subscribers, count, rate, checkout=checkout)
    try:
        time.sleep(1.5)
        network.go(time.monotonic())
        tallies, publisher_cpu_s = network.reports()
    finally:
        network.close()
    speeds = [(tally["count"] - 1) / tally["span_s"] for tally in tallies if tally["span_s"]]
    return {
        "per_s": min(speeds, default=0.0),
        "lost": subscribers * count - sum(tally["count"] for tally in tallies),
        "publisher_cpu_us": publisher_cpu_s / count * 1e6,
        "subscriber_cpu_us": statistics.mean(tally["cpu_s"] for tally in tallies) / count * 1e6,
    }


def compare_with_checkout(other: Path, rounds: int, few: int, many: int) -> None:
    """This Earshot beside the one of another checkout, changing places from round to round."""
    here = Path(__file__).resolve().parent.parent
    checkouts: dict[str, Path | None] = {"this": here, "other": other}
    print(f"{'':10} {'to':>3} {'this':>10} {'other':>10} {'ratio':>6}   each round, this and other")
    for subscribers in (1, 10):
        rows: dict[str, list[dict[str, Any]]] = {"this": [], "other": []}
        for number in range(rounds):
            order = dict(sorted(checkouts.items(), reverse=number % 2 == 0))
            reported = latencies(order, subscribers, few, "earshot")
            for side, checkout in order.items():
                fastest = throughput("earshot", subscribers, many // (1 if subscribers == 1 else 4), checkout)
                rows[side].append({**reported[side], **fastest})
        for what in ("p50_us", "p99_us", "per_s", "publisher_cpu_us", "subscriber_cpu_us", "lost"):
            this, that = ([float(row[what]) for row in rows[side]] for side in ("this", "other"))
            middles = both_places(this), both_places(that)
            ratio = f"{middles[0] / middles[1]:6.2f}" if middles[1] else f"{'-':>6}"
            each = ", ".join(f"{one:.0f}/{two:.0f}" for one, two in zip(this, that, strict=True))
            name = what.replace("publisher_cpu", "pub cpu").replace("subscriber_cpu", "sub cpu").replace("_", " ")
            print(f"{name:10} {subscribers:3} {middles[0]:10,.1f} {middles[1]:10,.1f} {ratio}   {each}", flush=True)


def both_places(rounds: Sequence[float]) -> float:
    """The geometric mean of the medians of every other round: a side is first in one half of them."""
    return math.sqrt(statistics.median(rounds[::2]) * statistics.median(rounds[1::2]))


def installed(system: str) -> bool:
    import importlib.util

    try:
        there = importlib.util.find_spec(SYSTEMS[system][2]) is not None
    except ModuleNotFoundError:
        there = False
    return there and (system != "mqtt" or shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin") is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--quick", action="store_true", help="fewer messages")
    parser.add_argument("--signatures", action="store_true", help="print what one signature costs")
    parser.add_argument("--flood", action="store_true", help="honest traffic under a flood: see live_flood.py")
    parser.add_argument("--protocols", default="", help="with --flood: these, not all")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with Earshot of another checkout")
    parser.add_argument("--rounds", type=int, default=6, help="with --beside: how often, an even number")
    parser.add_argument("--role", nargs=7, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role:
        play(given.role)
        return
    if given.signatures:
        print_signature_costs()
        return
    if given.flood:
        import live_flood

        live_flood.main(given.protocols, given.quick)
        return
    few, many = (500, 20_000) if given.quick else (2000, 200_000)
    if given.beside:
        if not (given.beside / "src" / "earshot").is_dir():
            raise SystemExit(f"--beside: {given.beside} is not a checkout of Earshot")
        if given.rounds < 2 or given.rounds % 2:
            raise SystemExit("--rounds must be an even number: each side comes first in half of the rounds")
        compare_with_checkout(given.beside, given.rounds, few, many)
        return
    chosen = [system for system in given.systems.split(",") if installed(system)]
    left_out = [system for system in given.systems.split(",") if system not in chosen]
    if left_out:
        print(f"not installed, left out: {', '.join(left_out)}")
    print(f"messages of {SIZE} bytes, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    columns = f"{'pub cpu us':>11} {'sub cpu us':>11}"
    print(f"{'system':10} {'to':>3} {'p50 us':>9} {'p99 us':>9} {'lost':>8} {columns}")
    for subscribers in (1, 10):
        for system, reported in latencies(dict.fromkeys(chosen), subscribers, few).items():
            figures = f"{reported['p50_us']:9.0f} {reported['p99_us']:9.0f}"
            print(f"{system:10} {subscribers:3} {figures} {rest(reported)}", flush=True)
    print(f"\n{'system':10} {'to':>3} {'per s':>19} {'lost':>8} {columns}")
    for subscribers in (1, 10):
        for system in chosen:
            reported = throughput(system, subscribers, many // (1 if subscribers == 1 else 4))
            print(f"{system:10} {subscribers:3} {reported['per_s']:19,.0f} {rest(reported)}", flush=True)


def rest(reported: dict[str, Any]) -> str:
    return f"{reported['lost']:8,} {reported['publisher_cpu_us']:11.1f} {reported['subscriber_cpu_us']:11.1f}"


def play(role: list[str]) -> None:
    """One process of a run."""
    what, system, port, count, rate, turn, turns = role
    if what == "subscribe":
        tally = Tally(int(count))
        SYSTEMS[system][0](int(port), tally)
        answer(tally.report())
    else:
        SYSTEMS[system][1](int(port), Pace(int(count), float(rate), int(turn), int(turns)))
        answer({"cpu_s": cpu_s()})


if __name__ == "__main__":
    main()
