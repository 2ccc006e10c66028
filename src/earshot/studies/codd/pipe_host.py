"""A host like the CoDD paper's own simulator: machines joined by local pipes, time counted in documents.

A message takes no time and arrives in the order in which it was sent; timers run when time passes. Nothing is encoded
or logged, so that 10,000 documents over hundreds of nodes take a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.protocols.codd.packets import Add, Document
from earshot.protocols.common.filter_texts import LocalFilterTexts
from earshot.protocols.machine import Deliver, Effect, Effects, Machine, Note, Send
from earshot.protocols.siena.machine import Notify
from earshot.protocols.tabletop import Tabletop

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


class SharedLocal(LocalFilterTexts):
    """A node's own subscriptions, matched by the index that all machines share. No query here asks for a place."""

    def __init__(self, index: SharedIndex) -> None:
        super().__init__()
        self._shared = index

    def accepting(self, event: Event, viewer: Viewer) -> list[str]:
        met = self._shared.match(event)
        return sorted(id for id, text in self.texts.items() if text in met and self.since[id] <= event.time)


class Pipes(Tabletop):
    """Named machines that reach each other by name."""

    def __init__(self, machines: Sequence[Machine], on_note: OnNote) -> None:
        self.control = 0
        "Messages other than documents."
        self.adds = 0
        "TYPE_ADD messages among them: a newcomer's to its seeds, and those passed on."
        self.deliveries = 0
        self.depth_sums = {machine.node: 0 for machine in machines}
        "By node, the hops of all documents that were sent to it, repeated ones among them."
        self.sent_to = dict.fromkeys(self.depth_sums, 0)
        "By node, the number of these documents."
        self._on_note = on_note
        super().__init__(machines, links=(), delay_s=0.0)

    def call(self, node: str, entry_point: str, argument: Any) -> None:
        """Call an entry point, and deliver all messages that follow from it."""
        self.do(node, entry_point, argument)
        self.run(self.now)

    def do(self, node: str, entry_point: str, *arguments: Any) -> Effects:
        """As at a table, but effects are not checked again: tests hold these machines to them."""
        effects: Effects = getattr(self.machines[node], entry_point)(*arguments, self.now)
        for effect in effects:
            self._carry_out(node, effect)
        return effects

    def _carry_out(self, node: str, effect: Effect) -> None:
        match effect:
            case Send(peer, packet):
                if type(packet) is Document or type(packet) is Notify:
                    self.depth_sums[peer] += packet.hops
                    self.sent_to[peer] += 1
                else:
                    self.control += 1
                    self.adds += type(packet) is Add
                self._later(self.now, partial(self.do, peer, "hear", packet, node))
            case Deliver():
                self.deliveries += 1
            case Note(topic, detail):
                self._on_note(node, topic, detail)
            case _:
                super()._carry_out(node, effect)
