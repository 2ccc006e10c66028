"""Real processes on the loopback: the commands as people use them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import PATIENCE_S, free_port, until

from earshot.cli import main
from earshot.errors import listed
from earshot.live.node import Node
from earshot.live.spool import read_records


class Terminal:
    """Starts commands on one network of their own, and ends what is left of them."""

    def __init__(self) -> None:
        self.network = ["--interface", "lo", "--group", f"239.255.69.83:{free_port()}"]
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, protocol: str = "flooding", stdin: Any = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "earshot", *arguments, *self.network, "--protocol", protocol]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, text=True, bufsize=1)
        self.running.append(process)
        return process

    def run(self, *arguments: str, protocol: str = "flooding", given: str | None = None) -> str:
        if arguments[0] == "pub":
            arguments = (*arguments, "--settle", "300ms", "--linger", "100ms")
        process = self.start(*arguments, protocol=protocol, stdin=subprocess.PIPE if given is not None else None)
        output, errors = process.communicate(given, timeout=PATIENCE_S)
        assert process.returncode == 0, errors
        return output

    def await_peers(self, *names: str, protocol: str = "flooding") -> None:
        """Wait until all of them are on the network."""

        async def watch() -> None:
            async with Node("watch", protocol=protocol, interface="lo", group=self.network[3]) as node:
                await until(lambda: {peer.name for peer in node.peers()} >= set(names))

        asyncio.run(watch())


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


@pytest.mark.parametrize("protocol", ["flooding", "hearsay", "steam"])
def test_what_one_process_publishes_others_print(terminal: Terminal, protocol: str) -> None:
    fast = terminal.start("sub", "Siren", "--where", "speed > 10", "--json", "--name", "fast", protocol=protocol)
    every = terminal.start("sub", "Siren", "--name", "all", "--count", "2", protocol=protocol)
    terminal.await_peers("fast", "all", protocol=protocol)
    stationary = ["--within", "circle:300m", "--at", "10,10"]
    for speed in ("5", "18"):
        terminal.run("pub", "Siren", f"speed={speed}", "loud=true", "tune=yelp", *stationary, protocol=protocol)
    event = line_of(fast)
    assert event["content"] == {"speed": 18, "loud": True, "tune": "yelp"}
    assert event["area"] == {"shape": "circle:300m", "x_m": 10.0, "y_m": 10.0}
    printed, complained = every.communicate(timeout=PATIENCE_S)
    assert [line.split(" ", 2)[2] for line in printed.splitlines()] == [
        "Siren speed=5 loud=true tune=yelp at 0,0".replace("true", "True"),
        "Siren speed=18 loud=true tune=yelp at 0,0".replace("true", "True"),
    ]
    assert "no network key" in complained


def test_lines_become_events_and_a_count_ends_a_series(terminal: Terminal) -> None:
    reader = terminal.start("sub", "Reading", "--json", "--name", "reader", "--count", "5")
    terminal.await_peers("reader")
    (row,) = terminal.run("peers", "--for", "1500ms", "--json").splitlines()
    assert (json.loads(row)["name"], json.loads(row)["x_m"]) == ("reader", 0.0)
    terminal.run("pub", "Reading", "--stdin", given='{"celsius": 21.5}\n\ncelsius=22 room=hall\n')
    terminal.run("pub", "Reading", "n=1", "--every", "10ms", "--count", "3")
    printed, _ = reader.communicate(timeout=PATIENCE_S)
    contents = [json.loads(line)["content"] for line in printed.splitlines()]
    assert contents == [{"celsius": 21.5}, {"celsius": 22, "room": "hall"}, {"n": 1}, {"n": 1}, {"n": 1}]


def test_a_middle_process_relays_is_killed_and_comes_back(terminal: Terminal, tmp_path: Path) -> None:
    near = ["--emulate-range", "150m"]
    middle = ["node", "--name", "middle", "--location", "plane:100,0", "--spool", str(tmp_path), "--json", *near]
    far = terminal.start("sub", "Siren", "--json", "--name", "far", "--location", "plane:200,0", *near)
    relay = terminal.start(*middle)
    assert line_of(relay)["node"] == "middle"
    terminal.await_peers("far", "middle")
    terminal.run("pub", "Siren", "n=1", "--name", "one", *near)
    assert line_of(far)["content"] == {"n": 1}
    os.kill(relay.pid, signal.SIGKILL)
    relay.wait()
    terminal.run("pub", "Siren", "n=2", "--name", "two", *near)
    again = terminal.start(*middle)
    assert line_of(again)["node"] == "middle"
    terminal.run("pub", "Siren", "n=3", "--name", "three", *near)
    assert line_of(far)["content"] == {"n": 3}
    again.send_signal(signal.SIGTERM)
    printed = json.loads(again.communicate(timeout=PATIENCE_S)[0])
    assert again.returncode == 0
    assert printed["counts"]["receive"] >= 1
    kinds = [record.kind for record in read_records(tmp_path) if record.kind in ("join", "leave")]
    assert kinds == ["join", "join", "leave"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["pub", "Siren", "speed"], "write name=value"),
        (["pub", "Siren", "--at", "1,2"], "--at needs --within"),
        (["pub", "Siren", "--within", "circle"], "circle:300m"),
        (["pub", "Siren", "--every", "soon"], "'soon' is not a duration"),
        (["pub", "Siren", "a=1", "--stdin"], "--stdin gives the values"),
        (["sub", "Siren", "--where", "speed >"], "column"),
        (["sub"], "say what to subscribe to"),
        (["node", "--location", "mars"], "fixed:LAT,LON"),
        (["node", "--emulate-range", "far"], "'far' is not a length"),
        (["node", "--key-file", "none"], "cannot read the key file"),
        (["node", "--origin", "1"], "write LAT,LON"),
        (["node", "--interface", "nowhere0"], "nowhere0"),
        (["node", "--setting", "hops=1"], "hops: no such key"),
    ],
)
def test_mistakes_are_reported_in_one_line_with_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from earshot.cli import main

    network = ["--interface", "lo"] if "--interface" not in arguments else []
    with pytest.raises(SystemExit) as left:
        main([*arguments, *network])
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["pub", "Siren", "--count", "3"], "needs --every or --stdin"),
        (["node", "--group", "239.1.1.1", "--peer", "127.0.0.1:9"], "--group is not used with --peer"),
        (["sub", "Siren", "--memory", "1MB"], "--memory must be at least 16MB, got 1MB"),
        (["sub", "Siren", "--memory", "much"], "is not a size"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["node"], ["pub", "Siren", "--every", "1s"], ["sub", "Siren"]])
def test_every_command_ends_after_its_time(arguments: list[str]) -> None:
    place = ["--interface", "lo", "--group", f"239.255.69.83:{free_port()}"]
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "earshot", *arguments, *place, "--for", "1s"], check=True, timeout=60)
    assert time.monotonic() - began < 50


def test_long_lists_of_names_end_in_a_count() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([f"n{number}" for number in range(2222)]).endswith(", n28, n29 and 2,192 more")


INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from earshot.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("command", "importing"),
    [(["node"], "earshot.live"), (["node"], "uvloop"), (["sub", "Siren"], "earshot.live"), (["peers"], "earshot.live")],
)
def test_ctrl_c_before_a_node_is_up_says_that_it_stopped_and_nothing_else(command: list[str], importing: str) -> None:
    arguments = [importing, *command, "--interface", "lo", "--group", f"239.255.69.83:{free_port()}"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "stopped")
