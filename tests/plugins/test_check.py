"""`earshot check` finds what a protocol does not hold; the built-in ones hold all of it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from outside import SHOUT

from earshot.cli import earshot
from earshot.protocols import PROPERTIES, PROTOCOLS, check_property, protocol
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
@pytest.mark.parametrize("asked", PROPERTIES)
def test_every_built_in_protocol_holds_every_property(name: str, asked: str) -> None:
    check_property(PROTOCOLS[name], asked)


@pytest.mark.parametrize(
    ("right", "wrong", "asked", "says"),
    [
        ("Shouted(event, 1)", "Shouted(event, id(event))", "repeats", "with the same seed one run sent"),
        ("        self.broadcast(Shouted(event, 1))\n", "", "delivers", "received none of three events"),
        (REMEMBER, "", "duplicates", "for the third time it asked for Deliver"),
        ("RecentKeys(1000)", "set()", "bounded", "bound what it remembers, as RecentKeys does"),
        (HEAR, HEAR + "        1 / min(packet.hops, 1)\n", "hostile", "raised ZeroDivisionError"),
        ("from earshot import Event", "import time\nfrom earshot import Event", "no-clock", "line 5 imports time"),
    ],
)
def test_a_broken_protocol_fails_its_property(tmp_path: Path, right: str, wrong: str, asked: str, says: str) -> None:
    file = tmp_path / "shout.py"
    file.write_text(WHOLE)
    check_property(protocol(f"{file}:Shout"), asked)
    assert right in WHOLE
    file.write_text(WHOLE.replace(right, wrong))
    with pytest.raises(Nonconforming, match=says):
        check_property(protocol(f"{file}:Shout"), asked)


def test_the_command_prints_what_holds_and_exits_with_1_where_something_does_not(tmp_path: Path) -> None:
    file = tmp_path / "shout.py"
    file.write_text(WHOLE)
    done = CliRunner().invoke(earshot, ["check", f"{file}:Shout", "--json"])
    assert (done.exit_code, {one["holds"] for one in json.loads(done.stdout)}) == (0, {True})
    file.write_text(WHOLE.replace(REMEMBER, ""))
    done = CliRunner().invoke(earshot, ["check", f"{file}:Shout"])
    assert (done.exit_code, "duplicates  NO" in done.stdout) == (1, True)
