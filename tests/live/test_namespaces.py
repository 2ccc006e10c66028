"""Separate hosts: network namespaces on a bridge that lets the two outer ones reach only the middle one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from desk import PATIENCE_S

HOSTS = ("left", "middle", "right")
QUICK = ["--setting", "beacon_interval_s=0.2", "--setting", "expiry_s=1.0", "--setting", "range_m=100"]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Lab:
    """Three hosts, and processes on them whose lines are read as they come."""

    def __init__(self) -> None:
        self.tag = f"es{os.getpid() % 100_000}"
        self.running: list[Process] = []

    def build(self) -> None:
        hub = f"{self.tag}-hub"
        ip("netns", "add", hub)
        ip("-n", hub, "link", "add", "name", "bridge0", "type", "bridge", "mcast_snooping", "0")
        ip("-n", hub, "link", "set", "bridge0", "up")
        for number, host in enumerate(HOSTS, 1):
            ip("netns", "add", self.space(host))
            ip(
                "-n",
                hub,
                "link",
                "add",
                "name",
                host,
                "type",
                "veth",
                "peer",
                "name",
                "radio",
                "netns",
                self.space(host),
            )
            ip("-n", hub, "link", "set", host, "master", "bridge0", "up")
            ip("-n", self.space(host), "address", "add", f"10.83.0.{number}/24", "dev", "radio")
            ip("-n", self.space(host), "link", "set", "radio", "up")
            ip("-n", self.space(host), "link", "set", "lo", "up")
        for outer in ("left", "right"):
            subprocess.run(["bridge", "-n", hub, "link", "set", "dev", outer, "isolated", "on"], check=True)

    def space(self, host: str) -> str:
        return f"{self.tag}-{host}"

    def link(self, host: str, state: str) -> None:
        """Cut a host off, or let it back."""
        ip("-n", f"{self.tag}-hub", "link", "set", host, state)

    def lossy(self, host: str) -> None:
        """A tenth of what goes to that host is lost, the rest is late."""
        netem = ["netem", "loss", "10%", "delay", "5ms"]
        command = ["tc", "-n", f"{self.tag}-hub", "qdisc", "add", "dev", host, "root", *netem]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this kernel has no tc netem: {done.stderr.strip()}")

    def start(self, host: str, *arguments: str, protocol: str = "flooding") -> "Process":
        command = ["ip", "netns", "exec", self.space(host), sys.executable, "-m", "earshot", *arguments]
        process = Process([*command, "--interface", "radio", "--protocol", protocol, "--json"])
        self.running.append(process)
        return process

    def remove(self) -> None:
        for process in self.running:
            process.kill()
        for space in ("hub", *HOSTS):
            subprocess.run(["ip", "netns", "del", f"{self.tag}-{space}"], capture_output=True)


class Process:
    """A command whose JSON lines gather in `lines`."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(json.loads(line))

    def numbers(self) -> list[int]:
        """The n of every event printed so far."""
        return [line["content"]["n"] for line in list(self.lines)]

    def wait(self) -> None:
        assert self._process.wait(PATIENCE_S) == 0
        self._reader.join(PATIENCE_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join(PATIENCE_S)


def until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.01)


@pytest.fixture
def lab() -> Iterator[Lab]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if shutil.which("ip") is None or shutil.which("bridge") is None:
        pytest.skip("network namespaces need iproute2")
    made = Lab()
    try:
        try:
            made.build()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        yield made
    finally:
        made.remove()


def test_events_pass_through_the_one_host_that_reaches_both_sides(lab: Lab) -> None:
    reader = lab.start("right", "sub", "Siren", "--name", "right")
    relay = lab.start("middle", "node", "--name", "middle")
    until(lambda: relay.lines)
    left = lab.start("left", "pub", "Siren", "n=1", "--every", "100ms", "--name", "left")
    until(lambda: reader.lines)
    seen = lab.start("right", "peers", "--for", "1500ms", "--name", "looking")
    seen.wait()
    assert {line["name"] for line in seen.lines} == {"middle", "right"}
    relay.kill()
    came = len(reader.lines)
    assert left.numbers()
    again = lab.start("middle", "node", "--name", "middle")
    until(lambda: again.lines)
    until(lambda: len(reader.lines) > came + 2)


def owed(reader: Process, writer: Process) -> list[str]:
    """The events from the earliest one that the reader has, which it may have recovered after a later one."""
    ids = [line["id"] for line in list(writer.lines)]
    return ids[min(ids.index(line["id"]) for line in list(reader.lines)) :]


def test_steam_recovers_events_lost_in_a_partition(lab: Lab) -> None:
    reader = lab.start("middle", "sub", "Siren", "--name", "reader", *QUICK, protocol="steam")
    series = ["--within", "circle:50m", "--every", "100ms", "--count", "60", "--linger", "15s"]
    writer = lab.start("left", "pub", "Siren", "n=1", *series, "--name", "writer", *QUICK, protocol="steam")
    until(lambda: len(reader.lines) >= 3)
    lab.link("left", "down")
    before = len(reader.lines)
    cut_at = len(writer.lines)
    until(lambda: len(writer.lines) >= cut_at + 15)
    assert len(reader.lines) <= before + 1
    lab.link("left", "up")
    until(lambda: len(writer.lines) == 60)
    until(lambda: {line["id"] for line in list(reader.lines)} >= set(owed(reader, writer)))
    assert sorted(line["id"] for line in reader.lines) == sorted(owed(reader, writer))


def test_steam_recovers_events_lost_by_a_bad_radio(lab: Lab) -> None:
    lab.lossy("middle")
    reader = lab.start("middle", "sub", "Siren", "--name", "reader", *QUICK, protocol="steam")
    series = ["--within", "circle:50m", "--every", "20ms", "--count", "100", "--linger", "5s"]
    writer = lab.start("left", "pub", "Siren", "n=1", *series, "--name", "writer", *QUICK, protocol="steam")
    until(lambda: len(writer.lines) == 100 and reader.lines)
    until(lambda: {line["id"] for line in list(reader.lines)} >= set(owed(reader, writer)))
