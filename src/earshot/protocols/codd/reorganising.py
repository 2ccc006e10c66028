"""CoDD's reorganisation protocol (section 3.3, figure 6).

A node whose overhead is too high asks the child that causes most of it to move. That child asks the
source, which accepts requests one at a time, the highest overhead first; it then searches the tree
from the root, breadth first, for the parent to whom it would cause the least overhead.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from earshot.protocols.codd.dissemination_tree import Tree
from earshot.protocols.codd.packets import GetOverhead, Granted, Move, Moved, Overhead, Reorganize
from earshot.protocols.codd.recent_documents import bitmap, overhead_of
from earshot.records import DropReason

if TYPE_CHECKING:
    from earshot.protocols.codd.machine import Codd


@dataclass(slots=True)
class Search:
    """A node looking for a better parent."""

    first: int
    bits: bytes
    "The recent documents that came to it: a bitmap from the number `first` on."
    prospective: deque[str]
    visited: set[str]
    asked: str = ""
    request: int = 0
    current: float | None = None
    "The overhead it causes where it is."
    best: str = ""
    best_overhead: float = float("inf")


@dataclass(slots=True)
class Requests:
    """At a source: who wants to move."""

    pending: dict[str, float] = field(default_factory=dict)
    "By node, the overhead that it causes."
    accepted: deque[str] = field(default_factory=deque)
    moving: str = ""


class Reorganising:
    """A node's part in reorganising its trees."""

    def __init__(self, codd: Codd) -> None:
        self.codd = codd
        self.settings = codd.settings
        self.searches: dict[str, Search] = {}
        self.requests: dict[str, Requests] = {}
        self._requests = 0

    def forget(self, tree: Tree) -> None:
        self.searches.pop(tree.id, None)
        self.requests.pop(tree.id, None)

    # The node with the overhead.

    def look(self, tree: Tree, now: float) -> None:
        """Once in `reorganise_every` documents, or on demand: is the overhead above the threshold?"""
        settings = self.settings
        every = settings.reorganise_every
        period_over = tree.number >= tree.next_look
        transfers, extraneous = tree.transfers - tree.looked_at[0], tree.extraneous - tree.looked_at[1]
        overhead = extraneous / transfers if transfers else 0.0
        if period_over:
            tree.looked_at = (tree.transfers, tree.extraneous)
        tree.next_look = tree.number + 1 if settings.on_demand else (tree.number // every + 1) * every
        tree.wanted.forget(settings.window_documents)
        rested = tree.asked_at is None or tree.number - tree.asked_at >= settings.rest_documents
        enough = transfers >= settings.enough_documents
        interior = tree.parent != "" and tree.fan_out > 0
        too_much = enough and overhead > settings.overhead_threshold
        if settings.reorganise and interior and rested and too_much:
            tree.asked_at = tree.number // every * every if period_over else tree.number
            mover = self.codd.node if settings.mover == "self" else self.least_overlap_child(tree)
            self.codd.note("reorganise", f"{tree.id} {overhead:.4f} {mover}")
            if mover == self.codd.node:
                self.request(tree, overhead, now)
            else:
                self.codd.send(mover, Move(tree.id, overhead))

    def least_overlap_child(self, tree: Tree) -> str:
        """The child that contributes most to this node's overhead."""
        first = self.window(tree)
        wanted = tree.wanted.bitmap(first)
        costs = {
            name: overhead_of(bitmap(child.sent, first), wanted)
            for name, child in sorted(tree.children.items())
            if not child.guest
        }
        return max(costs, key=lambda name: costs[name])

    def window(self, tree: Tree) -> int:
        """The number of the first document that counts as recent."""
        return max(0, tree.number - self.settings.window_documents + 1)

    def request(self, tree: Tree, overhead: float, now: float) -> None:
        """TYPE_REORGANIZE, to the system agent: here the source."""
        if tree.id not in self.searches and tree.parent:
            self.codd.send(tree.source, Reorganize(tree.id, overhead))

    # The source.

    def on_reorganize(self, packet: Reorganize, tree: Tree, sender: str, now: float) -> None:
        if not tree.is_root:
            self.codd.drop(DropReason.NOT_THE_SOURCE)
            return
        requests = self.requests.setdefault(tree.id, Requests())
        if not requests.pending:
            self.codd.start_timer(("gather", tree.id), at=now + self.settings.gather_s)
        requests.pending[sender] = packet.overhead

    def accept(self, tree: Tree, now: float) -> None:
        """The policy top-c: of the pending requests those with the highest overhead."""
        requests = self.requests.get(tree.id)
        if requests is None:
            return
        order = sorted(requests.pending, key=lambda name: (-requests.pending[name], name))
        requests.pending.clear()
        requests.accepted.extend(order if self.settings.top is None else order[: self.settings.top])
        if not requests.moving:
            self.grant_next(tree, now)

    def grant_next(self, tree: Tree, now: float) -> None:
        """One at a time, so that two never move below each other."""
        requests = self.requests.get(tree.id)
        if requests is None:
            return
        requests.moving = requests.accepted.popleft() if requests.accepted else ""
        if requests.moving:
            self.codd.send(requests.moving, Granted(tree.id))
            self.codd.start_timer(("grant", tree.id), at=now + self.settings.silence_s)

    def on_moved(self, tree: Tree, sender: str, now: float) -> None:
        requests = self.requests.get(tree.id)
        if requests is not None and requests.moving == sender:
            self.codd.cancel_timer(("grant", tree.id))
            self.grant_next(tree, now)

    # The node that moves: figure 6.

    def on_granted(self, tree: Tree, now: float) -> None:
        first = self.window(tree)
        bits = bitmap(tree.held.numbers, first)
        if not tree.parent or tree.id in self.codd.membership.attempts or tree.id in self.searches or not bits:
            self.codd.send(tree.source, Moved(tree.id, moved=False))
            return
        size = (bits.bit_length() + 7) // 8
        search = Search(first, bits.to_bytes(size, "little"), deque([tree.source]), {self.codd.node, tree.source})
        self.searches[tree.id] = search
        if self.settings.delta is None:
            self.ask_next(tree, now)
        else:
            self.ask(tree, search, tree.parent, now)

    def ask(self, tree: Tree, search: Search, peer: str, now: float) -> None:
        self._requests += 1
        search.asked, search.request = peer, self._requests
        self.codd.send(peer, GetOverhead(tree.id, search.request, search.first, search.bits))
        self.codd.start_timer(("search", tree.id), at=now + self.settings.candidate_wait_s)

    def on_get_overhead(self, packet: GetOverhead, tree: Tree, sender: str) -> None:
        """compute_overhead(this, n), and who else might be asked."""
        theirs = int.from_bytes(packet.bits[: self.settings.window_documents], "little")
        if tree.is_root:
            overhead = 0
        else:
            mine = tree.wanted.bitmap(packet.first)
            if self.settings.overhead_against == "aggregate":
                for name, child in tree.children.items():
                    if name != sender:
                        mine |= bitmap(child.sent, packet.first)
            overhead = overhead_of(theirs, mine)
        if sender in tree.ancestors or not tree.is_in:
            self.codd.send(sender, Overhead(tree.id, packet.request, float(overhead), spare=False, children=()))
            return
        names = [name for name, child in tree.children.items() if not child.guest]
        spare = len(names) < self.settings.fan_out
        self.codd.send(sender, Overhead(tree.id, packet.request, float(overhead), spare, tuple(names)))

    def on_overhead(self, packet: Overhead, tree: Tree, sender: str, now: float) -> None:
        search = self.searches.get(tree.id)
        if search is None or search.asked != sender or packet.request != search.request:
            return
        if self.settings.delta is not None and search.current is None:
            search.current = packet.overhead
        elif packet.spare:
            if packet.overhead < search.best_overhead and sender != tree.parent:
                search.best, search.best_overhead = sender, packet.overhead
        elif 2 * packet.overhead < search.best_overhead:
            for name in packet.children:
                if name not in search.visited:
                    search.visited.add(name)
                    search.prospective.append(name)
        self.ask_next(tree, now)

    def no_answer(self, tree: Tree, now: float, request: int | None = None) -> None:
        """A prospective parent that does not answer is none."""
        search = self.searches.get(tree.id)
        if search is not None and (request is None or request == search.request):
            self.ask_next(tree, now)

    def ask_next(self, tree: Tree, now: float) -> None:
        search = self.searches[tree.id]
        if search.prospective:
            self.ask(tree, search, search.prospective.popleft(), now)
            return
        self.codd.cancel_timer(("search", tree.id))
        if search.best and self._worth(tree, search) and tree.id not in self.codd.membership.attempts:
            search.asked = ""
            self.codd.membership.ask(tree, search.best, now)
        else:
            self.ended(tree, moved=False)

    def _worth(self, tree: Tree, search: Search) -> bool:
        """The policy delta-threshold: what the move is expected to spare, as a share of recent documents."""
        if self.settings.delta is None:
            return True
        if search.current is None:
            return False
        recent = max(1, tree.number - search.first + 1)
        return (search.current - search.best_overhead) / recent > self.settings.delta

    def ended(self, tree: Tree, moved: bool) -> None:
        """The search is over: the source may accept the next."""
        if self.searches.pop(tree.id, None) is not None:
            self.codd.cancel_timer(("search", tree.id))
            self.codd.note("moved" if moved else "stays", tree.id)
            self.codd.send(tree.source, Moved(tree.id, moved))
