"""`earshot check`: does a protocol keep the rules for all protocols?

One rule is that its effects are the same in both hosts: one script runs through the simulator and through live hosts,
and is compared node by node. The live hosts run in simulated time, on an event loop whose clock jumps to the next
timer, and exchange their packets in memory: what differs then is a difference between the two hosts, never the speed
of the machine it runs on.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import sys
from collections import Counter
from dataclasses import fields
from random import Random
from types import SimpleNamespace
from typing import Any

import click

from earshot.cli.options import json_option
from earshot.cli.tables import print_json, print_table
from earshot.errors import EarshotError, UsageError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.live.host import Host
from earshot.live.location import Fixed
from earshot.live.network import NetworkSettings
from earshot.protocols.catalogue import build_settings
from earshot.protocols.conformance import FACTS, NODES, SIREN, SPACING_M, Nonconforming
from earshot.protocols.machine import (
    Announcement,
    Broadcast,
    Channel,
    Deliver,
    Drop,
    Effects,
    Location,
    Machine,
    Send,
)
from earshot.simulation.engine.engine import Engine
from earshot.simulation.media.medium_settings import UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload
from earshot.wire import Packet, encode, tag_of

LATENCY_S = 0.001
PUBLISHED_AT_S = (10.0, 20.0, 30.0)
DURATION_S = 39.537
"No timer expires at this time: its effects could happen in one host and not in the other."
ENTRY_POINTS = ("start", "subscribe", "announce", "publish", "hear", "wake", "unreachable")
FILTER = Filter.where("n > 0", "Siren")

Seen = Counter[tuple[Any, ...]]
"How often a node asked for each effect. Effects are described without what the two hosts name differently."


def same_in_both_hosts(cls: type[Machine]) -> None:
    """The same script has the same effects in the simulator and in live hosts.

    How often a packet is repeated, and over how many hops it came, may differ: what happens at one moment has no
    order between hosts."""
    facts = {
        setting.name: FACTS[path]
        for setting in fields(cls.Settings)
        if (path := setting.metadata.get("scenario")) in FACTS
    }
    settings = build_settings(cls.Settings, facts)
    simulated, live = _simulated(cls, settings), _live(cls, settings)
    for effect in sorted(simulated.keys() | live.keys(), key=str):
        there, here = simulated[effect], live[effect]
        if (there != here) if effect[1] == "Deliver" else (not there or not here):
            node, *what = effect
            raise Nonconforming(
                f"node {node} asked for {tuple(what)} {there} times in the simulator and "
                f"{here} times as a live node, after the same script"
            )


def _overheard(machine: Machine, into: Seen) -> Machine:
    """The machine; every effect that it returns is noted."""

    def wrapped(entry_point: Any) -> Any:
        def call(*arguments: Any) -> Effects:
            effects: Effects = entry_point(*arguments)
            into.update((machine.node, *_described(effect)) for effect in effects or () if _described(effect))
            return effects

        return call

    for name in ENTRY_POINTS:
        setattr(machine, name, wrapped(getattr(machine, name)))
    return machine


def _described(effect: Any) -> tuple[Any, ...]:
    match effect:
        case Broadcast(packet) | Send(_, packet):
            event = getattr(packet, "event", None)
            return type(effect).__name__, tag_of(packet), _number(event) if isinstance(event, Event) else None
        case Deliver(event, subscription):
            return "Deliver", _number(event), subscription
        case Drop(reason):
            return "Drop", str(reason)
    return ()


def _number(event: Event) -> Any:
    return event.content["n"] if isinstance(event.content, dict) else None


def _simulated(cls: type[Machine], settings: Any) -> Seen:
    seen: Seen = Counter()

    def make(node: str, location: Location, random: Random, channel: Channel) -> Machine:
        return _overheard(cls(node, settings, location, random, channel), seen)

    places = [Trajectory.standing(name, SPACING_M * k, 0.0) for k, name in enumerate(NODES)]
    actions = [Action(0.0, k, Subscription(f"{name}/s", name, FILTER)) for k, name in enumerate(NODES)]
    actions.append(Action(0.0, 0, Announcement(SIREN)))
    actions += [Action(at, 0, Event("Siren", {"n": k + 1})) for k, at in enumerate(PUBLISHED_AT_S)]
    medium = UnitDisk(range_m=100.0, latency_s=LATENCY_S)
    Engine(make, Trajectories(places), medium, Workload(actions), duration_s=DURATION_S).run()
    return seen


def _live(cls: type[Machine], settings: Any) -> Seen:
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(_exchange(cls, settings, loop))
    finally:
        loop.close()


async def _exchange(cls: type[Machine], settings: Any, loop: SimulatedLoop) -> Seen:
    seen: Seen = Counter()
    hosts: list[Host] = []
    network = NetworkSettings(keys=(bytes(32),))  # any key: without one a host warns
    for k, name in enumerate(NODES):
        host = Host(name, cls, settings, network, Fixed.on_plane(SPACING_M * k, 0.0), clock=loop.time)
        _overheard(host.machine, seen)
        host.transport = _Memory(k, hosts, loop)  # type: ignore[assignment]
        hosts.append(host)
    for host in hosts:
        host.start()
    for host in hosts:
        host.subscribe(Subscription(f"{host.name}/s", host.name, FILTER), lambda _: None)
    hosts[0].announce(Announcement(SIREN))
    for number, at in enumerate(PUBLISHED_AT_S):
        await asyncio.sleep(at - loop.time())
        hosts[0].publish_new("Siren", {"n": number + 1})
    await asyncio.sleep(DURATION_S - loop.time())
    return Counter(seen)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self._time_s = 0.0

    def time(self) -> float:
        return self._time_s

    def _run_once(self) -> None:
        inner: Any = self
        scheduled = inner._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not inner._ready and scheduled:
            self._time_s = max(self._time_s, scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


class _Memory:
    """In place of a transport: neighbours in the row get each packet after the simulator's latency."""

    def __init__(self, number: int, hosts: list[Host], loop: SimulatedLoop) -> None:
        self._number, self._hosts, self._loop = number, hosts, loop
        self.joined: set[int] = set()

    def open(self) -> None:
        pass

    def broadcast(self, packet: Packet, group: int | None = None) -> None:
        near = [k for k in (self._number - 1, self._number + 1) if 0 <= k < len(self._hosts)]
        hearing = [k for k in near if group is None or group in self._hosts[k].transport.joined]
        self._loop.call_later(LATENCY_S, self._arrive, encode(packet), hearing)

    def send(self, peer: str, packet: Packet) -> None:
        near = [k for k in (self._number - 1, self._number + 1) if 0 <= k < len(self._hosts)]
        reached = [k for k in near if self._hosts[k].name == peer]
        if reached:
            self._loop.call_later(LATENCY_S, self._arrive, encode(packet), reached)
        else:
            self._loop.call_later(LATENCY_S, self._hosts[self._number].unreachable, packet, peer)

    def _arrive(self, data: bytes, hearing: list[int]) -> None:
        frame: Any = SimpleNamespace(sender=self._hosts[self._number].name)
        for k in hearing:
            self._hosts[k].heard([data], frame, self._hosts[k].now())

    def join(self, group: int) -> None:
        self.joined.add(group)

    def leave(self, group: int) -> None:
        self.joined.discard(group)


def checked_properties() -> dict[str, Any]:
    """Every property by name, those of one machine first."""
    from earshot.protocols.conformance import PROPERTIES

    return {**PROPERTIES, "hosts": same_in_both_hosts}


def check_by_name(cls: type[Machine], name: str) -> None:
    """Raise `Nonconforming`, or the failure of the machine, where the protocol does not hold the property."""
    known = checked_properties()
    if name not in known:
        raise UsageError(f"no property {name!r}; there are {', '.join(known)}")
    known[name](cls)


@click.command()
@click.argument("protocol")
@json_option("Print what was found as JSON.")
def check(protocol: str, as_json: bool) -> None:
    """Check that PROTOCOL keeps the rules for all protocols; exit code 1 if it does not.

    PROTOCOL is a built-in name, module:Class or ./file.py:Class. Six nodes in a row exchange events. The same seed must
    give the same packets, a duplicate must cost nothing, a stream of new events must not fill the memory, damaged
    packets must not raise, the source must not read a clock, and the effects must be the same in the simulator and on
    live nodes.

    \b
    Examples:
      earshot check flooding
      earshot check ./frugal.py:Frugal
    """
    from earshot.protocols.catalogue import protocol as protocol_named

    machine = protocol_named(protocol)
    found: list[tuple[str, bool, str]] = []
    for name, holds in checked_properties().items():
        what = " ".join((inspect.getdoc(holds) or "").split())
        try:
            check_by_name(machine, name)
        except EarshotError as error:
            found.append((name, False, str(error)))
        else:
            found.append((name, True, what))
    if as_json:
        print_json([{"property": name, "holds": holds, "what": what} for name, holds, what in found])
    else:
        print_table(("property", "holds", ""), [(name, "yes" if holds else "NO", what) for name, holds, what in found])
    sys.exit(0 if all(holds for _, holds, _ in found) else 1)
