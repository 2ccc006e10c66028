"""How `earshot check` compares the simulator with live hosts, and what it prints."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from earshot.cli import check as module
from earshot.cli import earshot
from earshot.cli.check import SimulatedLoop, check_by_name
from earshot.errors import UsageError
from earshot.events import Event
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.conformance import Nonconforming
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.machine import Broadcast, Deliver, Drop, JoinGroup, Send, StartTimer
from earshot.records import DropReason
from earshot.wire import encode

EVENT = Event("Siren", {"n": 7}, id="x", source="a", time=1.0)


def test_both_hosts_see_each_of_three_events_flooded_and_delivered_along_the_row() -> None:
    wanted = {(name, "Deliver", number, f"{name}/s"): 1 for name in "bcdef" for number in (1, 2, 3)}
    sent = {(name, "Broadcast", "flood", number) for name in "abcdef" for number in (1, 2, 3)}
    for seen in (module._simulated(Flooding, FloodingSettings()), module._live(Flooding, FloodingSettings())):
        delivered = {effect: count for effect, count in seen.items() if effect[1] == "Deliver" and effect[0] != "a"}
        assert delivered == wanted
        assert {effect for effect in seen if effect[1] == "Broadcast"} == sent


@pytest.mark.parametrize(
    ("effect", "described"),
    [
        (Broadcast(Flood(EVENT, 1)), ("Broadcast", "flood", 7)),
        (Send("b", Flood(EVENT, 1)), ("Send", "flood", 7)),
        (Deliver(EVENT, "b/s", 3), ("Deliver", 7, "b/s")),
        (Drop(DropReason.EXPIRED), ("Drop", "expired")),
        (JoinGroup(5), ()),
        (StartTimer("x", 1.0), ()),
    ],
)
def test_an_effect_is_described_by_what_both_hosts_name_alike(effect: Any, described: tuple[Any, ...]) -> None:
    assert module._described(effect) == described


def test_a_simulated_loop_jumps_to_the_next_timer_that_was_not_cancelled() -> None:
    loop = SimulatedLoop()
    called: list[tuple[str, float]] = []
    try:
        loop.call_later(50.0, called.append, ("never", 0.0)).cancel()
        for name, at in (("later", 3000.0), ("first", 1000.0)):
            loop.call_later(at, lambda name=name: called.append((name, loop.time())))
        loop.call_soon(lambda: called.append(("now", loop.time())))
        loop.run_until_complete(asyncio.sleep(4000.0))
        assert (called, loop.time()) == ([("now", 0.0), ("first", 1000.0), ("later", 3000.0)], 4000.0)
    finally:
        loop.close()


class Row:
    """Three hosts in a row, in place of real ones: they note what reaches them and when."""

    def __init__(self) -> None:
        self.later: list[tuple[Any, ...]] = []
        self.got: list[tuple[Any, ...]] = []
        loop: Any = SimpleNamespace(call_later=lambda *call: self.later.append(call))
        hosts: list[Any] = []
        for number, name in enumerate("abc"):
            hosts.append(
                SimpleNamespace(
                    name=name,
                    now=lambda number=number: 100.0 + number,
                    transport=module._Memory(number, hosts, loop),
                    heard=lambda datas, frame, now, name=name: self.got.append((name, datas, frame.sender, now)),
                    unreachable=lambda packet, peer, name=name: self.got.append((name, packet, peer)),
                )
            )
        self.hosts = hosts

    def arrive(self) -> list[tuple[Any, ...]]:
        """What arrives after the latency."""
        calls, self.later, self.got = self.later, [], []
        for delay_s, call, *given in calls:
            assert delay_s == 0.001
            call(*given)
        return self.got


def test_packets_in_memory_reach_the_neighbours_in_the_row() -> None:
    row, packet = Row(), Flood(EVENT, 1)
    data = [encode(packet)]
    a, b, c = (host.transport for host in row.hosts)
    a.broadcast(packet)
    assert row.arrive() == [("b", data, "a", 101.0)]
    b.broadcast(packet)
    assert row.arrive() == [("a", data, "b", 100.0), ("c", data, "b", 102.0)]
    c.broadcast(packet)
    assert row.arrive() == [("b", data, "c", 101.0)]
    b.send("c", packet)
    a.send("b", packet)
    assert row.arrive() == [("c", data, "b", 102.0), ("b", data, "a", 101.0)]
    a.send("c", packet)
    b.send("b", packet)
    assert row.arrive() == [("a", packet, "c"), ("b", packet, "b")], "they are not neighbours"


def test_packets_for_a_group_reach_the_neighbours_that_have_joined_it() -> None:
    row, packet = Row(), Flood(EVENT, 1)
    a, b, c = (host.transport for host in row.hosts)
    for one in (a, c):
        one.open()
        one.join(5)
    c.join(6)
    b.broadcast(packet, 5)
    assert [name for name, *_ in row.arrive()] == ["a", "c"]
    a.leave(5)
    a.leave(5)
    b.broadcast(packet, 5)
    b.broadcast(packet, 7)
    assert [name for name, *_ in row.arrive()] == ["c"]


def test_a_property_is_checked_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    monkeypatch.setattr(module, "same_in_both_hosts", checked.append)
    check_by_name(Flooding, "hosts")
    assert checked == [Flooding]
    with pytest.raises(UsageError, match=r"no property 'speed'; there are repeats, .*hosts"):
        check_by_name(Flooding, "speed")


def test_a_check_prints_each_property_and_fails_where_one_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def holds(_: Any) -> None:
        """It is
        quick."""

    def fails(cls: Any) -> None:
        """It is right."""
        raise Nonconforming(f"{cls.__name__} is wrong")

    monkeypatch.setattr(module, "checked_properties", lambda: {"quick": holds, "right": fails})
    done = CliRunner().invoke(earshot, ["check", "flooding", "--json"])
    assert (done.exit_code, json.loads(done.stdout)) == (1, [
        {"property": "quick", "holds": True, "what": "It is quick."},
        {"property": "right", "holds": False, "what": "Flooding is wrong"},
    ])  # fmt: skip
    printed = CliRunner().invoke(earshot, ["check", "flooding"])
    assert (printed.exit_code, [line.split() for line in printed.stdout.splitlines()]) == (1, [
        ["property", "holds"], ["--------", "-----", "-" * len("Flooding is wrong")],
        ["quick", "yes", "It", "is", "quick."], ["right", "NO", "Flooding", "is", "wrong"],
    ])  # fmt: skip
    monkeypatch.setattr(module, "checked_properties", lambda: {"quick": holds})
    assert CliRunner().invoke(earshot, ["check", "flooding"]).exit_code == 0


def test_facts_of_the_row_become_settings_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for host in ("_simulated", "_live"):
        monkeypatch.setattr(
            module, host, lambda cls, settings, host=host: asked.append((host, cls, settings)) or Counter()
        )
    module.same_in_both_hosts(PROTOCOLS["cbf"])
    assert [(host, cls, settings.range_m) for host, cls, settings in asked] == [
        ("_simulated", PROTOCOLS["cbf"], 100.0), ("_live", PROTOCOLS["cbf"], 100.0),
    ]  # fmt: skip
