"""How many bytes one table of a machine may hold of what peers sent, and how they are counted.

The count depends on the texts alone, not on the interpreter, so that a simulated run forgets the same things on every
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

TABLE_BYTES = 2_000_000
"The budget of one table."
ENTRY_BYTES = 64
"About what a text takes beside its characters."


def text_bytes(texts: Iterable[str]) -> int:
    """About how many bytes these texts take."""
    return sum(ENTRY_BYTES + (len(text) if text.isascii() else 4 * len(text)) for text in texts)


def key_bytes(key: Hashable) -> int:
    """About how many bytes a key takes: a text, or a tuple that may hold texts."""
    if type(key) is str:
        return ENTRY_BYTES + (len(key) if key.isascii() else 4 * len(key))
    if type(key) is tuple:
        return ENTRY_BYTES + sum(map(key_bytes, key))
    return ENTRY_BYTES


class BoundedTable(Generic[K, V]):
    """Values by key, at most a number of them and at most the budget; the oldest are forgotten first."""

    __slots__ = ("_entries", "bytes", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: dict[K, V] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """The keys, the oldest first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep the value; it is the latest now."""
        self.pop(key)
        self._entries[key] = value
        self.bytes += key_bytes(key) + key_bytes(value)
        while len(self._entries) > self.capacity or self.bytes > TABLE_BYTES:
            self.pop(next(iter(self._entries)))

    def pop(self, key: K) -> None:
        """Remove the value, if there is one."""
        if key in self._entries:
            self.bytes -= key_bytes(key) + key_bytes(self._entries.pop(key))

    def forget(self, is_over: Callable[[V], bool]) -> None:
        """Remove the oldest values as long as they are over."""
        for key, value in list(self._entries.items()):
            if not is_over(value):
                break
            self.pop(key)
