"""A tabletop network: machines connected by hand, for tests and for trying a protocol in a notebook.

No radio, no mobility, no loss: each link takes `delay_s`. The simulator is the real host; this one
is small enough to debug a failing test with.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any

from earshot.errors import EarshotError
from earshot.protocols.machine import (
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    Effect,
    Effects,
    JoinGroup,
    LeaveGroup,
    Machine,
    Note,
    Send,
    StartTimer,
    Timer,
)
from earshot.protocols.machine_failures import MOST_AT_ONE_TIME, checked_effects, failure, is_ours, livelock, short
from earshot.wire import Packet, decode, encode


class Tabletop:
    """Named machines and the links between them. Every packet is encoded and decoded on its way."""

    def __init__(self, machines: Iterable[Machine], links: Iterable[tuple[str, str]], delay_s: float = 0.001) -> None:
        self.machines = {machine.node: machine for machine in machines}
        self.links: dict[str, set[str]] = defaultdict(set)
        for a, b in links:
            self.link(a, b)
        self.delay_s = delay_s
        self.now = 0.0
        self.sent: list[tuple[str, Packet]] = []
        self.delivered: list[tuple[str, str, str]] = []
        "(node, event id, subscription id), in order"
        self.drops: list[tuple[str, str]] = []
        "(node, reason), in order"
        self.notes: list[tuple[str, str, str]] = []
        self._groups: dict[str, set[int]] = defaultdict(set)
        self._subscribed: dict[str, set[str]] = defaultdict(set)
        self._timers: dict[tuple[str, Timer], int] = {}
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._sequence = count()
        self._woken: Counter[str] = Counter()
        "How often each node's timers have fired at this time."
        for name in sorted(self.machines):
            self.do(name, "start")

    def link(self, a: str, b: str) -> None:
        """From now on the two nodes hear each other."""
        self.links[a].add(b)
        self.links[b].add(a)

    def cut(self, a: str, b: str) -> None:
        """From now on the two nodes do not hear each other."""
        self.links[a].discard(b)
        self.links[b].discard(a)

    def do(self, node: str, entry_point: str, *arguments: Any) -> Effects:
        """Call an entry point now and carry out its effects."""
        machine = self.machines[node]
        try:
            effects: Effects = getattr(machine, entry_point)(*arguments, self.now)
        except EarshotError:
            raise
        except Exception as error:
            shown = ", ".join(short(argument) for argument in arguments)
            raise failure(machine, node, error, self.now, entry_point, shown, "") from error
        if entry_point == "subscribe":
            self._subscribed[node].add(arguments[0].id)
        # Our own tests subscribe some machines before they come to the table.
        known = None if is_ours(type(machine)) else self._subscribed[node]
        checked_effects(machine, entry_point, effects, known, self.now)
        for effect in effects:
            self._carry_out(node, effect)
        return effects

    def run(self, until: float) -> None:
        """Advance the time to `until`, and do what is due on the way."""
        while self._queue and self._queue[0][0] <= until:
            at, _, action = heapq.heappop(self._queue)
            if at > self.now:
                self._woken.clear()
            self.now = at
            action()
        self.now = until

    def _later(self, at: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._queue, (at, next(self._sequence), action))

    def _carry_out(self, node: str, effect: Effect) -> None:
        match effect:
            case Broadcast(packet, group):
                self.sent.append((node, packet))
                for peer in sorted(self.links[node]):
                    if group is None or group in self._groups[peer]:
                        self._transmit(node, peer, packet)
            case Send(peer, packet):
                self.sent.append((node, packet))
                machine = self.machines[node]
                routed = machine.uses_routing(machine.settings) and peer in self.machines
                if routed or peer in self.links[node]:
                    self._transmit(node, peer, packet)
                else:
                    self._later(self.now + self.delay_s, lambda: self._do(node, "unreachable", packet, peer))
            case StartTimer(name, at):
                sequence = next(self._sequence)
                self._timers[node, name] = sequence
                fire: Callable[[], None] = partial(self._fire, node, name, sequence)
                heapq.heappush(self._queue, (max(at, self.now), sequence, fire))
            case CancelTimer(name):
                self._timers.pop((node, name), None)
            case Deliver(event, subscription):
                self.delivered.append((node, event.id, subscription))
            case Drop(reason):
                self.drops.append((node, reason))
            case JoinGroup(group):
                self._groups[node].add(group)
            case LeaveGroup(group):
                self._groups[node].discard(group)
            case Note(topic, detail):
                self.notes.append((node, topic, detail))

    def _do(self, node: str, entry_point: str, *arguments: Any) -> None:
        if node in self.machines:
            self.do(node, entry_point, *arguments)

    def _transmit(self, node: str, peer: str, packet: Packet) -> None:
        heard = decode(encode(packet))
        if heard != packet:
            what = f"the packet {short(packet)} became {short(heard)} on the wire; change its fields' types"
            wrong = ValueError(what)
            raise failure(self.machines[node], node, wrong, self.now, "its effects", "", "")
        self._later(self.now + self.delay_s, lambda: self._do(peer, "hear", heard, node))

    def _fire(self, node: str, name: Timer, sequence: int) -> None:
        if self._timers.get((node, name)) == sequence:
            del self._timers[node, name]
            self._woken[node] += 1
            if self._woken[node] > MOST_AT_ONE_TIME:
                raise livelock(self.machines[node], node, name, self.now, "")
            self._do(node, "wake", name)
