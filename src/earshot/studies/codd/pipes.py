"""A host like the CoDD paper's own simulator: machines joined by local pipes, time counted in documents.

A message takes no time and arrives in the order in which it was sent; timers run when time passes. Nothing is encoded
or logged, so that 10,000 documents over hundreds of nodes take a minute.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.protocols.codd.packets import Document
from earshot.protocols.machine import CancelTimer, Deliver, Effects, Machine, Note, Send, StartTimer, Timer
from earshot.protocols.siena.machine import Notify

OnNote = Callable[[str, str, str], None]
"Called with a node, its note's topic and detail."


class SharedIndex(FilterIndex):
    """One index of filters for all machines: a document is matched once, not again at each of a thousand nodes.

    A machine that asks for its own filters gets those of all machines that the document meets.
    """

    def __init__(self) -> None:
        super().__init__()
        self._holders: Counter[Hashable] = Counter()
        self._event: Event | None = None
        self._met: set[Any] = set()

    def add(self, key: Hashable, filter: Filter) -> None:
        self._holders[key] += 1
        if self._holders[key] == 1:
            super().add(key, filter)
            self._event = None

    def remove(self, key: Hashable) -> None:
        self._holders[key] -= 1
        if not self._holders[key]:
            super().remove(key)
            self._event = None

    def match(self, event: Event, viewer: Viewer | None = None) -> set[Any]:
        if event is not self._event:
            self._event, self._met = event, super().match(event, viewer)
        return self._met


class Pipes:
    """Named machines that reach each other by name."""

    def __init__(self, machines: Iterable[Machine], on_note: OnNote | None = None) -> None:
        self.machines = {machine.node: machine for machine in machines}
        self.now = 0.0
        self.sent = 0
        "Messages other than documents."
        self.deliveries = 0
        self.depth_sums: dict[str, int] = dict.fromkeys(self.machines, 0)
        "By node, the hops of all documents that were sent to it."
        self._on_note = on_note
        self._queue: deque[tuple[str, Effects]] = deque()
        "Senders, in order, and effects that include messages."
        self._timers: list[tuple[float, int, str, Timer]] = []
        self._running: dict[tuple[str, Timer], int] = {}
        self._sequence = 0
        for name in self.machines:
            self.do(name, "start")

    def do(self, node: str, entry_point: str, *arguments: Any) -> None:
        """Call an entry point, and deliver all messages that follow from it."""
        self._carry_out(node, getattr(self.machines[node], entry_point)(*arguments, self.now))
        self._settle()

    def let_pass(self, seconds: float) -> None:
        """Let time pass: timers run."""
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            at, sequence, node, name = heapq.heappop(self._timers)
            if self._running.get((node, name)) == sequence:
                del self._running[node, name]
                self.now = max(self.now, at)
                self.do(node, "wake", name)
        self.now = until

    def _settle(self) -> None:
        queue, machines, depths, now = self._queue, self.machines, self.depth_sums, self.now
        while queue:
            sender, effects = queue.popleft()
            for effect in effects:
                if type(effect) is not Send:
                    continue
                peer, packet = effect.peer, effect.packet
                if type(packet) is Document or type(packet) is Notify:
                    depths[peer] += packet.hops
                else:
                    self.sent += 1
                machine = machines.get(peer)
                if machine is None:
                    self._carry_out(sender, machines[sender].unreachable(packet, peer, now))
                elif following := machine.hear(packet, sender, now):
                    self._carry_out(peer, following)

    def _carry_out(self, node: str, effects: Effects) -> None:
        """Messages wait for their turn; other effects happen at once."""
        sends = False
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                sends = True
            elif kind is Deliver:
                self.deliveries += 1
            elif type(effect) is StartTimer:
                self._sequence += 1
                self._running[node, effect.name] = self._sequence
                heapq.heappush(self._timers, (effect.at, self._sequence, node, effect.name))
            elif type(effect) is CancelTimer:
                self._running.pop((node, effect.name), None)
            elif type(effect) is Note and self._on_note is not None:
                self._on_note(node, effect.topic, effect.detail)
        if sends:
            self._queue.append((node, effects))
