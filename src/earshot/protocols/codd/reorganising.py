"""CoDD's reorganisation protocol (section 3.3, figure 6): which requests the source accepts, and the mover's search
for a better parent."""

from __future__ import annotations

from collections import deque

from earshot.protocols.codd.packets import Granted, Overhead, Reorganize
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.machine import CancelTimer, Effect, Send, StartTimer


class MoveRequests:
    """At a source, which is the tree's system agent here: the nodes that ask to move. Methods return effects."""

    def __init__(self, tree: str, settings: CoddSettings) -> None:
        self.tree = tree
        self.settings = settings
        self.pending: dict[str, float] = {}
        "By node, the overhead that it causes."
        self.accepted: deque[str] = deque()
        self.moving = ""
        "The node that is moving now."

    def on_reorganize(self, packet: Reorganize, sender: str, now: float) -> list[Effect]:
        """TYPE_REORGANIZE: requests gather for some time."""
        first = not self.pending
        self.pending[sender] = packet.overhead
        return [StartTimer(("gather", self.tree), now + self.settings.gather_s)] if first else []

    def accept(self, now: float) -> list[Effect]:
        """The policy top-c: accept the pending requests with the highest overheads."""
        order = sorted(self.pending, key=lambda name: (-self.pending[name], name))
        self.pending.clear()
        self.accepted.extend(order if self.settings.top is None else order[: self.settings.top])
        return [] if self.moving else self.grant_next(now)

    def grant_next(self, now: float) -> list[Effect]:
        """One at a time, so that two nodes never move below each other."""
        self.moving = self.accepted.popleft() if self.accepted else ""
        if not self.moving:
            return []
        return [Send(self.moving, Granted(self.tree)), StartTimer(("grant", self.tree), now + self.settings.silence_s)]

    def on_moved(self, sender: str, now: float) -> list[Effect]:
        return [CancelTimer(("grant", self.tree)), *self.grant_next(now)] if self.moving == sender else []


class Search:
    """Figure 6: a node searches the tree breadth-first from the root for the parent to which it would cause the
    least overhead."""

    def __init__(self, node: str, parent: str, source: str, first: int, bits: int, delta: float | None) -> None:
        self.first = first
        self.bits = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
        "The recent documents that came to the node: a bitmap from the number `first` on."
        self.asked = ""
        self.request = 0
        self.best = ""
        self.best_overhead = float("inf")
        self._delta = delta
        self._present: float | None = None
        "The overhead that the node causes where it is."
        self._prospective = deque([source] if delta is None else [parent, source])
        self._visited = {node, source}

    def next_prospective(self) -> str:
        """The next node to ask; empty where the search is over."""
        self.asked = self._prospective.popleft() if self._prospective else ""
        return self.asked

    def on_overhead(self, packet: Overhead, parent: str) -> None:
        """The node that was asked answers: keep the best, and prune what cannot be better."""
        if self._delta is not None and self._present is None:
            self._present = packet.overhead
        elif packet.spare:
            if packet.overhead < self.best_overhead and self.asked != parent:
                self.best, self.best_overhead = self.asked, packet.overhead
        elif 2 * packet.overhead < self.best_overhead:
            new = [name for name in packet.children if name not in self._visited]
            self._visited.update(new)
            self._prospective.extend(dict.fromkeys(new))

    def is_worth_moving(self, last: int) -> bool:
        """The policy delta-threshold: the overhead that the move saves, as a share of the recent documents."""
        if self._delta is None or not self.best:
            return bool(self.best)
        if self._present is None:
            return False
        return (self._present - self.best_overhead) / max(1, last - self.first + 1) > self._delta
