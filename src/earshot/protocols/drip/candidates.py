"""The roll: whom a node holds for the ablest of the network (section IV.A), and who of them is gone.

A node's standing is the news with the latest sign of life; of two with the same, "gone" is the later.
So everybody who has heard the same news, in whatever order and however often, has the same roll, and
a broker that was given up by mistake takes its place again by giving a sign of life.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from math import isfinite
from zlib import crc32

from earshot.protocols.drip.packets import Standing


class Roll:
    """The k ablest live nodes known, some spare ones, and those of higher ability who are gone."""

    def __init__(self, k: int, spares: int) -> None:
        self.k = k
        self._capacity = k + spares
        self._gone_capacity = 2 * (k + spares)
        self._known: dict[str, Standing] = {}
        self._live: list[tuple[float, str]] = []
        "(ability, name) of those who are not gone, the least able first."
        self._ablest: list[tuple[float, str]] = []
        "The last k of them."
        self.news: set[str] = set()
        "Whose standing has changed since it was last passed on."
        self.top: tuple[str, ...] = ()
        "The k ablest live ones, ablest first; another tuple only where they are others."
        self.digest = 0

    def learn(self, standings: Iterable[Standing]) -> bool:
        """Take in news; whether anything of it was new and matters."""
        changed = False
        for standing in standings:
            known = self._known.get(standing[0])
            if known is standing:
                continue  # most of what is told is known
            node, ability, alive_at, gone = standing
            if known is not None:
                if (alive_at, gone) <= known[2:]:
                    continue
            elif gone:
                if len(self._known) >= self._capacity + self._gone_capacity:
                    continue
            elif len(self._live) >= self._capacity and (ability, node) <= self._live[0]:
                continue
            if not (isfinite(ability) and isfinite(alive_at)):
                continue
            if known is not None and not known[3]:
                del self._live[bisect_left(self._live, (known[1], node))]
            self._known[node] = standing
            if not gone:
                insort(self._live, (ability, node))
            self.news.add(node)
            changed = True
        if changed:
            self._rank()
        return changed

    def declare_gone(self, node: str) -> bool:
        """Whoever this is has not been heard of for too long."""
        known = self._known.get(node)
        if known is None or known[3]:
            return False
        _, ability, alive_at, _ = known
        return self.learn([(node, ability, alive_at, True)])

    def declare_alive(self, node: str, at: float) -> bool:
        """A sign of life of one who was given up; whether that is news."""
        known = self._known.get(node)
        if known is None or not known[3] or at <= known[2]:
            return False
        return self.learn([(node, known[1], at, False)])

    def is_gone(self, node: str) -> bool:
        known = self._known.get(node)
        return known is not None and known[3]

    def alive_at(self, node: str) -> float | None:
        """The sign of life the node's standing rests on; None of a node that is not on the roll."""
        known = self._known.get(node)
        return known[2] if known is not None else None

    @property
    def names(self) -> Iterable[str]:
        """Everybody on the roll."""
        return self._known.keys()

    def standings(self, nodes: Iterable[str] | None = None) -> tuple[Standing, ...]:
        """The standing of these nodes, or of all on the roll."""
        chosen = sorted(self._known if nodes is None else (node for node in nodes if node in self._known))
        return tuple([self._known[node] for node in chosen])

    def _rank(self) -> None:
        live = self._live
        for _, name in live[: max(len(live) - self._capacity, 0)]:
            self._forget(name)
        del live[: max(len(live) - self._capacity, 0)]
        if len(self._known) - len(live) > self._gone_capacity:
            gone = sorted((known[2], name) for name, known in self._known.items() if known[3])
            for _, name in gone[: len(gone) - self._gone_capacity]:
                self._forget(name)
        ablest = live[-self.k :]
        if ablest != self._ablest:
            self._ablest = ablest
            self.top = tuple([name for _, name in reversed(ablest)])
            self.digest = crc32("\n".join(self.top).encode())

    def _forget(self, name: str) -> None:
        del self._known[name]
        self.news.discard(name)
