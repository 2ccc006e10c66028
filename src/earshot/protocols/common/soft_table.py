"""Soft state: entries that are forgotten unless they are heard of again, and never more than so many."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SoftTable(Generic[K, V]):
    """Values by key, each until a time of its own; the one that ends first gives way to a new one."""

    __slots__ = ("_entries", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: dict[K, tuple[float, V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: K, value: V, until: float) -> K | None:
        """Keep the value until then; returns the key that had to give way, if one had."""
        gone = None
        if key not in self._entries and len(self._entries) >= self.capacity:
            gone = min(self._entries, key=lambda known: self._entries[known][0])
            del self._entries[gone]
        self._entries[key] = (until, value)
        return gone

    def get(self, key: K, now: float) -> V | None:
        """The value, unless its time is over."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > now else None

    def holds(self, key: K, now: float) -> bool:
        """Whether there is a live entry."""
        entry = self._entries.get(key)
        return entry is not None and entry[0] > now

    def pop(self, key: K) -> None:
        """Forget the entry at once."""
        self._entries.pop(key, None)

    def items(self, now: float) -> Iterator[tuple[K, V]]:
        """The live entries, in the order they came."""
        return ((key, value) for key, (until, value) in self._entries.items() if until > now)

    def forget(self, now: float) -> None:
        """Let go what is over."""
        over = [key for key, (until, _) in self._entries.items() if until <= now]
        for key in over:
            del self._entries[key]

    @property
    def first_end(self) -> float:
        """When the first entry ends; infinite where there is none."""
        return min((until for until, _ in self._entries.values()), default=float("inf"))
