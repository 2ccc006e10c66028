"""What the properties of every protocol notice, on small protocols that break one of them just so much."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from earshot import Event, Position
from earshot.filters import Subscription
from earshot.protocols import NOTHING, LocalSubscriptions, Machine, Packet, RecentKeys, conformance, protocol
from earshot.protocols.conformance import (
    EXTREMES,
    NODES,
    PROPERTIES,
    Nonconforming,
    _broken,
    _objects_in,
    _with_extremes,
    bounded,
    check_property,
    delivers,
    duplicates,
    exchange,
    hostile,
    machine_on,
    no_clock,
    repeats,
)
from earshot.wire import encode


@dataclass(frozen=True)
class RelaySettings:
    """What a simulation would fill in."""

    range_m: float = field(default=1.0, metadata={"scenario": "medium.range_m"})
    nodes: int = field(default=0, metadata={"scenario": "node_count"})
    first: tuple[str, ...] = field(default=(), metadata={"scenario": "first_nodes"})
    width_m: float = field(default=7.0, metadata={"scenario": "area.width_m"})
    plain: float = 3.0


class Relayed(Packet, frozen=True, tag="test-conformance-reported"):
    event: Event
    hops: int


class Relay(Machine):
    """Floods events; each node passes an event on once."""

    name: ClassVar[str] = "relay"
    Settings = RelaySettings

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.subscriptions = LocalSubscriptions()
        self.heard: Any = RecentKeys(50)
        self.calls: list[tuple[str, Any, float]] = []

    def subscribe(self, subscription: Subscription, now: float) -> Any:
        self.calls.append(("subscribe", str(subscription.filter), now))
        self.subscriptions.add(subscription, now)
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Any:
        self.calls.append(("unsubscribe", subscription, now))
        self.subscriptions.remove(subscription)
        return NOTHING

    def announce(self, announcement: Any, now: float) -> Any:
        self.calls.append(("announce", announcement.event_type.subject, now))
        return NOTHING

    def publish(self, event: Event, now: float) -> Any:
        self.calls.append(("publish", (event.id, event.content["n"], event.time), now))
        self.heard.add(event.id)
        self.broadcast(Relayed(event, 1))
        return self.effects()

    def stop(self, now: float) -> Any:
        self.calls.append(("stop", None, now))
        return NOTHING

    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        if isinstance(packet, Relayed) and self.is_new(packet):
            self.subscriptions.deliver_local(self, packet.event, packet.hops, now)
            if packet.hops < 99:
                self.pass_on(packet)
        return self.effects()

    def is_new(self, packet: Relayed) -> bool:
        if packet.event.id in self.heard:
            return False
        self.heard.add(packet.event.id)
        return True

    def pass_on(self, packet: Relayed) -> None:
        self.broadcast(Relayed(packet.event, packet.hops + 1))


def test_a_flood_holds_every_property() -> None:
    for name in PROPERTIES:
        check_property(Relay, name)


def test_a_node_stands_in_its_place_of_the_row_and_knows_what_a_scenario_would_say() -> None:
    found = machine_on(Relay, "c", seed=5)
    assert found.location.position(0.0) == Position(160.0, 0.0)
    assert found.settings == RelaySettings(100.0, 6, ("a", "b", "c"))
    again, another = machine_on(Relay, "c", seed=5), machine_on(Relay, "c", seed=6)
    draws = [one.random.random() for one in (found, again, another)]
    assert (draws[0] == draws[1], draws[0] == draws[2]) == (True, False)


def test_all_subscribe_the_first_publishes_three_events_ten_seconds_apart_and_the_last_unsubscribes() -> None:
    table = exchange(Relay)
    asked = [("subscribe", "Siren: n > 0", 0.0)]
    assert table.machines["b"].calls == asked
    assert table.machines["f"].calls == [*asked, ("unsubscribe", "f/s", 40.0)]
    reported = [("publish", (f"a-{number}", number, 10.0 * number), 10.0 * number) for number in (1, 2, 3)]
    assert table.machines["a"].calls == [*asked, ("announce", "Siren", 0.0), *reported, ("stop", None, 40.0)]
    assert sorted(table.delivered) == [(node, f"a-{n}", f"{node}/s") for node in "bcdef" for n in (1, 2, 3)]
    assert table.links == {name: {*NODES[max(0, n - 1) : n + 2]} - {name} for n, name in enumerate(NODES)}


RUNS = count()


class Forgetful(Relay):
    """Sends something else in each run."""

    def pass_on(self, packet: Relayed) -> None:
        self.broadcast(Relayed(packet.event, 50 + next(RUNS) % 40))


class Ever(Relay):
    """Sends the same packets as before, and then one more in each run."""

    def stop(self, now: float) -> Any:
        for _ in range(next(RUNS)):
            self.broadcast(Relayed(Event("Siren", {"n": 9}, "a-9", "a", time=40.0), 98))
        return self.effects()


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (Forgetful, r"with the same seed one run sent Relayed\(.*, the other Relayed\("),
        (Ever, "two runs with the same seed sent or delivered differently"),
    ],
)
def test_two_runs_with_one_seed_must_be_the_same(cls: type[Machine], says: str) -> None:
    with pytest.raises(Nonconforming, match=says):
        repeats(cls)


class Deaf(Relay):
    """Only the nodes further away receive something."""

    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        effects = super().hear(packet, sender, now)
        return [one for one in effects if not hasattr(one, "subscription") or self.node != "b"]


class Insistent(Relay):
    """Each node delivers what its neighbour passes on as well."""

    def is_new(self, packet: Relayed) -> bool:
        return self.heard.add((packet.event.id, packet.hops))


def test_the_neighbour_must_receive_something() -> None:
    with pytest.raises(Nonconforming, match="the publisher's neighbour subscribed and received none of three events"):
        delivers(Deaf)


def test_nothing_may_be_delivered_twice() -> None:
    with pytest.raises(Nonconforming, match=r"a-1 was delivered twice to [a-f] for the subscription [a-f]/s"):
        delivers(Insistent)


class Patient(Relay):
    """Passes on what it hears for the first times."""

    times = 2

    def is_new(self, packet: Relayed) -> bool:
        self.seen = [*getattr(self, "seen", []), packet.event.id]
        return self.seen.count(packet.event.id) <= self.times


class Impatient(Patient):
    times = 3


def test_the_third_time_a_packet_has_no_effect_and_the_second_may_have_one() -> None:
    duplicates(Patient)
    with pytest.raises(Nonconforming, match=r"on hearing Relayed\(.*\) for the third time it asked for Deliver\("):
        duplicates(Impatient)


class Repeater(Impatient):
    """Delivers nothing again, but passes it on."""

    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        return [one for one in super().hear(packet, sender, now) if not hasattr(one, "subscription")]


def test_what_is_heard_for_the_third_time_is_not_passed_on() -> None:
    with pytest.raises(Nonconforming, match=r"for the third time it asked for Broadcast\("):
        duplicates(Repeater)


class Hoarder(Relay):
    """Remembers every event."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard = set()


def test_a_node_that_remembers_every_event_is_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "FLOOD", 300)
    bounded(Relay)
    with pytest.raises(Nonconforming, match=r"after 600 events it held [\d,]+ objects, after 900 [\d,]+: bound what"):
        bounded(Hoarder)


class Starting(Relay):
    """Hears nothing before it has started."""

    started = False

    def start(self, now: float) -> Any:
        assert (now, self.calls) == (0.0, [])
        self.started = True
        return NOTHING

    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        assert self.started
        return super().hear(packet, sender, now)


def test_a_machine_starts_first_whatever_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "FLOOD", 30)
    monkeypatch.setattr(conformance, "MUTATIONS", 3)
    for name in PROPERTIES:
        check_property(Starting, name)


def test_the_neighbour_that_fills_a_memory_sends_events_of_many_sources_that_were_published_just_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = []

    class Listener(Relay):
        def hear(self, packet: Packet, sender: str, now: float) -> Any:
            if isinstance(packet, Relayed) and packet.event.id.startswith("z"):
                heard.append((self.node, packet.event.id, packet.event.source, packet.event.time, now))
            return super().hear(packet, sender, now)

    monkeypatch.setattr(conformance, "FLOOD", 2)
    bounded(Listener)
    assert heard == [("b", f"z-{third}-{n}", f"s{n}", 50.0, 50.0) for third in (0, 1, 2) for n in (0, 1)]


def test_objects_are_counted_once_and_code_is_not() -> None:
    class Holding(Machine):
        def __init__(self, *held: Any) -> None:
            self.held = held

    shared = [object()]
    assert _objects_in(Holding()) == 1, "the empty tuple"
    assert _objects_in(Holding(shared, shared)) == 3
    assert _objects_in(Holding(math.sqrt, Machine, math, lambda: None, machine_on)) == 1
    reported = Relayed(Event("Siren", {}, "an-id"), 12345)
    assert _objects_in(Holding(reported)) > 4, "what a packet holds counts too"


class Fragile(Relay):
    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        if isinstance(packet, Relayed) and packet.hops < 0:
            raise KeyError("below nothing")
        return super().hear(packet, sender, now)


class Muddled(Relay):
    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        if isinstance(packet, Relayed) and packet.hops > 1e9:
            self.deliver(packet.event, "nobody's")
        return super().hear(packet, sender, now)


class Lasting(Relay):
    """Fails on the second broken packet only: a node that has heard others."""

    def hear(self, packet: Packet, sender: str, now: float) -> Any:
        if isinstance(packet, Relayed) and packet.hops <= 0:
            self.broken = getattr(self, "broken", 0) + 1
            1 / (2 - self.broken)
        return super().hear(packet, sender, now)


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (Fragile, r"hearing Relayed\(.*raised KeyError: 'below nothing'"),
        (Muddled, r"hearing Relayed\(.*: it delivered .* to the subscription \"nobody's\", which nobody made here"),
        (Lasting, "raised ZeroDivisionError"),
    ],
)
def test_a_broken_packet_must_not_raise_or_lead_to_something_impossible(cls: type[Machine], says: str) -> None:
    with pytest.raises(Nonconforming, match=says):
        hostile(cls)


def test_each_inner_value_is_set_to_each_extreme_and_the_value_itself_stays_as_it_is() -> None:
    value = {"a": [1, {"b": 2}], "c": 3}
    found = list(_with_extremes(value))
    places = [("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",)]
    assert len(found) == len(places) * len(EXTREMES)
    assert value == {"a": [1, {"b": 2}], "c": 3}
    assert [one for one in found if one["a"] == [1, {"b": -1}]] == [{"a": [1, {"b": -1}], "c": 3}]
    assert [one for one in found if one["c"] == "x" * 2000] == [{"a": [1, {"b": 2}], "c": "x" * 2000}]


def test_broken_copies_begin_with_the_packet_and_still_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Relayed(Event("Siren", {"n": 1}, "a-1", "a"), 1)
    monkeypatch.setattr(conformance, "MUTATIONS", 0)
    found = list(_broken(encode(reported), Random(1)))
    assert found[0] == reported
    assert {one.hops for one in found if isinstance(one, Relayed)} >= {1, 0, -1, 2**62}
    assert {type(one) for one in found} == {Relayed}
    monkeypatch.setattr(conformance, "MUTATIONS", 200)
    assert len(list(_broken(encode(reported), Random(1)))) > len(found)


SOURCE = """
{line}
from dataclasses import dataclass
from earshot.protocols import Machine


@dataclass(frozen=True)
class Nothing:
    pass


class Made(Machine):
    name = "made"
    paper = "an example of the tests"
    Settings = Nothing
"""


@pytest.mark.parametrize(
    ("line", "imports"),
    [
        ("from random import Random", None),
        ("import math, heapq", None),
        ("from os import path", None),
        ("from random import Random, random", "random"),
        ("from random import random", "random"),
        ("import random", "random"),
        ("import math, time", "time"),
        ("from time import monotonic", "time"),
        ("import asyncio.events", "asyncio"),
        ("from asyncio.events import get_event_loop", "asyncio"),
        ("from datetime import datetime as Random", "datetime"),
    ],
)
def test_clocks_and_global_chance_are_not_imported(tmp_path: Path, line: str, imports: str | None) -> None:
    file = tmp_path / "made.py"
    file.write_text(SOURCE.format(line=line))
    made = protocol(f"{file}:Made")
    if imports is None:
        no_clock(made)
    else:
        with pytest.raises(Nonconforming, match=rf"^made\.py, line 2 imports {imports}: use `now`, self\.random"):
            no_clock(made)
