"""Soft state: entries that expire unless they are renewed, and never more than a capacity."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from earshot.protocols.common.byte_budget import TableBudgets, key_bytes

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


VALUE_BYTES = 256


class SoftTable(Generic[K, V]):
    """Values by key, each with an expiry time; a new one replaces the one that expires first."""

    __slots__ = ("_budgets", "_entries", "bytes", "capacity")

    def __init__(self, capacity: int, budgets: TableBudgets | None = None) -> None:
        self.capacity = capacity
        self._budgets = budgets or TableBudgets()
        self._entries: dict[K, tuple[float, V]] = {}
        self.bytes = 0
        "Of the keys, and about as many as the values take."

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: K, value: V, until: float) -> K | None:
        """Keep the value until then; returns the key that was evicted to make room, if any."""
        evicted = None
        if key not in self._entries:
            self.bytes += key_bytes(key) + VALUE_BYTES
            while self._entries and (len(self._entries) >= self.capacity or self.bytes > self._budgets.table_bytes):
                evicted = min(self._entries, key=lambda known: self._entries[known][0])
                self.pop(evicted)
        self._entries[key] = (until, value)
        return evicted

    def has_bytes_for(self, *keys: K) -> bool:
        """Whether the budget allows these keys beside all that the table holds."""
        new_bytes = sum(key_bytes(key) + VALUE_BYTES for key in keys if key not in self._entries)
        return self.bytes + new_bytes <= self._budgets.table_bytes

    def get(self, key: K, now: float) -> V | None:
        """The value, unless it has expired."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > now else None

    def holds(self, key: K, now: float) -> bool:
        """Whether there is a live entry."""
        entry = self._entries.get(key)
        return entry is not None and entry[0] > now

    def pop(self, key: K) -> None:
        """Remove the entry now."""
        if self._entries.pop(key, None) is not None:
            self.bytes -= key_bytes(key) + VALUE_BYTES

    def items(self, now: float) -> Iterator[tuple[K, V]]:
        """The live entries, in insertion order."""
        return ((key, value) for key, (until, value) in self._entries.items() if until > now)

    def forget(self, now: float) -> None:
        """Remove the entries that have expired."""
        for key in [key for key, (until, _) in self._entries.items() if until <= now]:
            self.pop(key)

    @property
    def first_end(self) -> float:
        """When the first entry expires; infinite if there is none."""
        return min((until for until, _ in self._entries.values()), default=float("inf"))
