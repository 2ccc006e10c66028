"""The neighbours: where each was, how it moves, and when it was last heard."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from earshot.protocols.hearsay.held_events import Copy
from earshot.protocols.hearsay.packets import Hello


class Neighbour:
    """A neighbour as its hellos show it."""

    __slots__ = ("at_s", "expires", "greeted_at", "number", "placed", "vx", "vy", "x", "y")

    def __init__(self, hello: Hello, now: float, expires: float) -> None:
        self.number = hello.number
        self.greeted_at = self.at_s = now
        "When its last hello came, and when it was at its place."
        self.expires = expires
        self.placed = hello.at is not None
        x, y = hello.at or (0, 0)
        self.x, self.y = float(x), float(y)
        self.vx, self.vy = hello.velocity[0] / 10.0, hello.velocity[1] / 10.0

    def place(self, time: float) -> tuple[float, float]:
        """Where it is or was, if it goes straight on."""
        ahead_s = time - self.at_s
        return self.x + self.vx * ahead_s, self.y + self.vy * ahead_s

    def distance_m(self, copy: Copy) -> float:
        """How far from a copy of an event it was when that was said."""
        ahead_s = copy.time - self.at_s
        return hypot(self.x + self.vx * ahead_s - copy.x, self.y + self.vy * ahead_s - copy.y)

    def seen_at(self, at: tuple[int, int], now: float) -> None:
        """It said something, and from where."""
        self.placed = True
        self.x, self.y = float(at[0]), float(at[1])
        self.at_s = now


class KnownNeighbours:
    """All neighbours by name, at most `capacity`: the one that has been silent longest makes room."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.by_name: dict[str, Neighbour] = {}

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[tuple[str, Neighbour]]:
        return iter(self.by_name.items())

    def greeted(self, name: str, neighbour: Neighbour) -> Neighbour | None:
        """Remember what its hello says; returns what was known before."""
        known = self.by_name.pop(name, None)
        if known is None and len(self.by_name) >= self.capacity:
            del self.by_name[next(iter(self.by_name))]  # in the order of their hellos
        self.by_name[name] = neighbour
        return known
