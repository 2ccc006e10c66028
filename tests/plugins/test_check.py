"""`earshot check` finds what a protocol does not hold; the built-in ones hold all of it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from outside import SHOUT

from earshot.cli import earshot
from earshot.cli.check import SimulatedLoop, check_by_name, checked_properties
from earshot.errors import UsageError
from earshot.live.host import Host
from earshot.live.location import Fixed
from earshot.live.network import NetworkSettings
from earshot.protocols import PROTOCOLS, protocol
from earshot.protocols.conformance import Nonconforming

HEAR = "        self.subscriptions.deliver_local(self, packet.event, 1, now)\n"
REMEMBER = (
    "        if packet.event.id in self.heard:\n            return NOTHING\n        self.heard.add(packet.event.id)\n"
)
WHOLE = (
    SHOUT.replace(HEAR, REMEMBER + HEAR)
    .replace("LocalSubscriptions, Machine, Packet", "LocalSubscriptions, Machine, Packet, RecentKeys")
    .replace("LocalSubscriptions()\n", "LocalSubscriptions()\n        self.heard = RecentKeys(1000)\n")
)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("asked", checked_properties())
def test_every_built_in_protocol_holds_every_property(name: str, asked: str) -> None:
    check_by_name(PROTOCOLS[name], asked)


@pytest.mark.parametrize(
    ("right", "wrong", "asked", "says"),
    [
        ("Shouted(event, 1)", "Shouted(event, id(event))", "repeats", "with the same seed one run sent"),
        ("        self.broadcast(Shouted(event, 1))\n", "", "delivers", "received none of three events"),
        (REMEMBER, "", "duplicates", "for the third time it asked for Deliver"),
        ("RecentKeys(1000)", "set()", "bounded", "bound what it remembers, as RecentKeys does"),
        (HEAR, HEAR + "        1 / min(packet.hops, 1)\n", "hostile", "raised ZeroDivisionError"),
        ("from earshot import Event", "import time\nfrom earshot import Event", "no-clock", "line 5 imports time"),
        # An event's id is "a-1" in the simulator and "a-0-1" live.
        (
            HEAR,
            f"        if len(packet.event.id) < 4:\n    {HEAR}",
            "hosts",
            "1 times in the simulator and 0",
        ),
    ],
)
def test_a_broken_protocol_fails_its_property(tmp_path: Path, right: str, wrong: str, asked: str, says: str) -> None:
    file = tmp_path / "shout.py"
    file.write_text(WHOLE)
    check_by_name(protocol(f"{file}:Shout"), asked)
    assert right in WHOLE
    file.write_text(WHOLE.replace(right, wrong))
    with pytest.raises(Nonconforming, match=says):
        check_by_name(protocol(f"{file}:Shout"), asked)


def test_the_command_prints_what_holds_and_exits_with_1_where_something_does_not(tmp_path: Path) -> None:
    file = tmp_path / "shout.py"
    file.write_text(WHOLE)
    done = CliRunner().invoke(earshot, ["check", f"{file}:Shout", "--json"])
    assert (done.exit_code, {one["holds"] for one in json.loads(done.stdout)}) == (0, {True})
    file.write_text(WHOLE.replace(REMEMBER, ""))
    done = CliRunner().invoke(earshot, ["check", f"{file}:Shout"])
    assert (done.exit_code, "duplicates  NO" in done.stdout) == (1, True)


def test_a_property_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match="no property 'speed'; there are repeats"):
        check_by_name(PROTOCOLS["flooding"], "speed")


WITHIN_PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v")


def test_pytest_runs_each_property_as_a_test(tmp_path: Path) -> None:
    (tmp_path / "shout.py").write_text(WHOLE.replace(REMEMBER, ""))
    (tmp_path / "pytest.ini").write_text("[pytest]\nearshot_protocols = ./shout.py:Shout\n")
    command = [*WITHIN_PYTEST, "-c", "pytest.ini", "--check-protocol", "flooding"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "./shout.py:Shout[duplicates] FAILED" in done.stdout
    assert "for the third time it asked for Deliver" in done.stdout
    count = len(checked_properties())
    assert f"1 failed, {2 * count - 1} passed" in done.stdout


RESTLESS = """

class Restless(Shout):
    def start(self, now):
        self.start_timer("again", now)
        return self.effects()

    def wake(self, timer, now):
        self.start_timer("again", now)
        return self.effects()
"""


def test_a_livelock_of_a_live_node_is_named_and_slowed_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "shout.py"
    file.write_text(WHOLE + RESTLESS)
    restless = protocol(f"{file}:Restless")
    loop = SimulatedLoop()

    async def live() -> Host:
        network = NetworkSettings(listen="127.0.0.1:0", keys=(bytes(32),))
        host = Host("a", restless, restless.Settings(), network, Fixed.on_plane(), clock=loop.time)
        host.start()
        await asyncio.sleep(2.5)
        host.stop()
        return host

    try:
        host = loop.run_until_complete(live())
    finally:
        loop.close()
    assert host.drops["machine-failure"] == 3  # once a second
    assert "Restless on node 'a' did wrong: it has woken 10,000 times without time passing" in caplog.text
    assert str(file) in caplog.text
