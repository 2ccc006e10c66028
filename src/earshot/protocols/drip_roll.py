"""The roll: whom a node holds for the ablest of the network (section IV.A), and who of them is gone.

A node's standing is the news with the latest sign of life; of two with the same, "gone" is the later.
So everybody who has heard the same news, in whatever order and however often, has the same roll, and
a broker that was given up by mistake takes its place again by giving a sign of life.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from zlib import crc32

from earshot.protocols.drip_packets import Standing


@dataclass(slots=True)
class _Known:
    ability: float
    alive_at: float
    gone: bool


class Roll:
    """The k ablest live nodes known, some spare ones, and those of higher ability who are gone."""

    def __init__(self, k: int, spares: int) -> None:
        self.k = k
        self._capacity = k + spares
        self._gone_capacity = 2 * (k + spares)
        self._known: dict[str, _Known] = {}
        self.news: set[str] = set()
        "Whose standing has changed since it was last passed on."
        self.top: tuple[str, ...] = ()
        "The k ablest live ones, ablest first."
        self.digest = 0

    def learn(self, standings: Iterable[Standing]) -> bool:
        """Take in news; whether anything of it was new and matters."""
        changed = False
        for node, ability, alive_at, gone in standings:
            if not (isfinite(ability) and isfinite(alive_at)):
                continue
            known = self._known.get(node)
            if known is not None and (alive_at, gone) <= (known.alive_at, known.gone):
                continue
            if known is None and not gone and not self._would_count(node, ability):
                continue
            if known is None and gone and len(self._known) >= self._capacity + self._gone_capacity:
                continue
            self._known[node] = _Known(ability, alive_at, gone)
            self.news.add(node)
            changed = True
        if changed:
            self._rank()
        return changed

    def declare_gone(self, node: str) -> bool:
        """Whoever this is has not been heard of for too long."""
        known = self._known.get(node)
        if known is None or known.gone:
            return False
        return self.learn([(node, known.ability, known.alive_at, True)])

    def declare_alive(self, node: str, at: float) -> bool:
        """A sign of life of one who was given up; whether that is news."""
        known = self._known.get(node)
        if known is None or not known.gone or at <= known.alive_at:
            return False
        return self.learn([(node, known.ability, at, False)])

    def is_gone(self, node: str) -> bool:
        known = self._known.get(node)
        return known is not None and known.gone

    def alive_at(self, node: str) -> float | None:
        """The sign of life the node's standing rests on; None of a node that is not on the roll."""
        known = self._known.get(node)
        return known.alive_at if known is not None else None

    def standings(self, nodes: Iterable[str] | None = None) -> tuple[Standing, ...]:
        """The standing of these nodes, or of all on the roll."""
        chosen = sorted(self._known if nodes is None else (node for node in nodes if node in self._known))
        return tuple(
            (node, known.ability, known.alive_at, known.gone) for node in chosen for known in [self._known[node]]
        )

    def _would_count(self, node: str, ability: float) -> bool:
        live = [(known.ability, name) for name, known in self._known.items() if not known.gone]
        return len(live) < self._capacity or (ability, node) > min(live)

    def _rank(self) -> None:
        live = sorted(((known.ability, name) for name, known in self._known.items() if not known.gone), reverse=True)
        for _, name in live[self._capacity :]:
            del self._known[name]
            self.news.discard(name)
        gone = sorted((known.alive_at, name) for name, known in self._known.items() if known.gone)
        for _, name in gone[: max(len(gone) - self._gone_capacity, 0)]:
            del self._known[name]
            self.news.discard(name)
        self.top = tuple(name for _, name in live[: self.k])
        self.digest = crc32("\n".join(self.top).encode())
