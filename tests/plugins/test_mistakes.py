"""Mistakes of a protocol's author: each is a failure that says what is wrong, where, and how to repeat it."""

from pathlib import Path
from random import Random

import pytest
from outside import SHOUT

from earshot import Event, Filter
from earshot.errors import MachineFailure
from earshot.protocols import NOTHING, FixedLocation, Subscription, Tabletop, protocol
from earshot.simulation import load_scenario, run

BROADCAST = "        self.broadcast(Shouted(event, 1))\n        return self.effects()\n"
DELIVER = "        self.subscriptions.deliver_local(self, packet.event, 1, now)\n        return self.effects()\n"
MISTAKES = [
    (
        BROADCAST,
        "        return Broadcast(Shouted(event, 1))\n",
        r"it returned Broadcast\(.* instead of a list of effects",
    ),
    (BROADCAST, "        self.broadcast(Shouted(event, 1))\n", r"it returned None instead of a list"),
    (BROADCAST, "        return [Shouted(event, 1)]\n", r"it returned Shouted\(.* among its effects"),
    (
        BROADCAST,
        "        self.start_timer('x', at='soon')\n        return self.effects()\n",
        "timer 'x' at 'soon'; a time is",
    ),
    (
        BROADCAST,
        "        self.start_timer('x', at=float('nan'))\n        return self.effects()\n",
        "at nan; a time is a finite",
    ),
    (
        BROADCAST,
        "        self.start_timer([1], at=now)\n        return self.effects()\n",
        "use a word or a tuple of words",
    ),
    (
        BROADCAST,
        "        self.start_timer('x', at=now)\n        return self.effects()\n",
        "without time passing.*timer 'x'",
    ),
    (
        BROADCAST,
        "        self.broadcast(Shouted(event, 1))\n        return NOTHING\n",
        "then returned NOTHING, which loses it",
    ),
    (BROADCAST, "        NOTHING.append(1)\n", "NOTHING is shared and stays empty"),
    (
        BROADCAST,
        "        self.deliver(event, 'none')\n        return self.effects()\n",
        "subscription 'none', which nobody made",
    ),
    (BROADCAST, "        self.broadcast({'event': event})\n        return self.effects()\n", "which is not a packet"),
    (BROADCAST, "        self.send('', Shouted(event, 1))\n        return self.effects()\n", "to the peer ''"),
    (BROADCAST, "        self.drop('bored')\n        return self.effects()\n", "a reason is a member of DropReason"),
    (BROADCAST, "        return self.lost_hope\n", "AttributeError.*lost_hope"),
    (DELIVER, "        self.deliver(packet.event, 'none')\n        return NOTHING\n", "then returned NOTHING"),
    (DELIVER, "        return 1 / 0\n", "ZeroDivisionError"),
]
WAKE = "\n    def wake(self, timer, now):\n        self.start_timer(timer, at=now)\n        return self.effects()\n"


@pytest.mark.parametrize(("right", "wrong", "says"), MISTAKES, ids=[says for _, _, says in MISTAKES])
def test_a_mistake_is_named_in_the_simulator_and_on_a_tabletop(
    tmp_path: Path, right: str, wrong: str, says: str
) -> None:
    file = tmp_path / "shout.py"
    text = SHOUT.replace("import NOTHING,", "import NOTHING, Broadcast,").replace(right, wrong) + WAKE
    assert text != SHOUT + WAKE
    file.write_text(text)
    entry_point = "hear" if right == DELIVER else "wake" if "without time" in says else "publish"
    line = text[: text.index(f"def {entry_point}")].count("\n") + 1
    machine = protocol(f"{file}:Shout")
    with pytest.raises(MachineFailure, match=says) as simulated:
        run(load_scenario("base").with_({"duration_s": 60.0}), machine, seed=5)
    reported = str(simulated.value)
    assert "Shout on node 'node-" in reported
    assert f"in {entry_point}(" in reported
    assert "with seed 5" in reported
    if "raised" in reported:
        assert f"{file}, line {line + wrong.rstrip().count(chr(10)) + (2 if right == DELIVER else 0) + 1}" in reported
    else:
        assert f"{file}, line {line})" in reported

    table = Tabletop([machine(name, machine.Settings(), FixedLocation(), Random(1)) for name in "ab"], [("a", "b")])
    table.do("b", "subscribe", Subscription("s", "b", Filter.where("n > 0")))

    def publish() -> None:
        table.do("a", "publish", Event("Siren", {"n": 1}, id="a-0", source="a"))
        table.run(until=1.0)

    with pytest.raises(MachineFailure, match=says):
        publish()


def test_nothing_cannot_be_changed() -> None:
    for change in ("append", "extend", "insert", "__iadd__", "__setitem__"):
        with pytest.raises(TypeError, match="stays empty"):
            getattr(NOTHING, change)(0, 0) if change in ("insert", "__setitem__") else getattr(NOTHING, change)([1])
    assert NOTHING == []


def test_timers_of_many_nodes_at_one_time_are_no_livelock() -> None:
    assert run(load_scenario("base").with_({"duration_s": 60.0}), "content-odmrp", seed=1).published
