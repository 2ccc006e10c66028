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
"The usual budget of one table."
SMALL_TABLE_BYTES = TABLE_BYTES // 4
"The usual budget of a table that few things enter."
NAMES_BYTES = 3_000_000
"The usual budget of a table of names."
NAME_BYTES = 700
"What one name of 128 characters takes there at most, with its place and a time."
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


class TableBudgets:
    """The budgets of one machine's tables: the usual ones, or a share of them. A live host sets the share by the memory
    that it may use."""

    __slots__ = ("share", "table_bytes")

    def __init__(self) -> None:
        self.limit(1.0)

    def limit(self, share: float) -> None:
        """Give each table this share of its usual budget, before the machine hears anything."""
        self.share = share
        self.table_bytes = self.of(TABLE_BYTES)

    def of(self, usual_bytes: int) -> int:
        """The budget of a table that usually has this one."""
        return int(usual_bytes * self.share)

    def names(self, usual: int) -> int:
        """How many names a table may hold that usually holds this many, if all names have the greatest length."""
        return min(usual, self.of(NAMES_BYTES) // NAME_BYTES)


class BoundedTable(Generic[K, V]):
    """Values by key, at most a number of them and at most the budget; the oldest are forgotten first."""

    __slots__ = ("_budgets", "_entries", "_usual_bytes", "bytes", "capacity")

    def __init__(self, capacity: int, budgets: TableBudgets | None = None, usual_bytes: int = TABLE_BYTES) -> None:
        self.capacity = capacity
        self._budgets = budgets or TableBudgets()
        self._usual_bytes = usual_bytes
        self._entries: dict[K, V] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """The keys, the oldest first."""
        return iter(self._entries)

    def items(self) -> Iterator[tuple[K, V]]:
        """Keys and values, the oldest first."""
        return iter(self._entries.items())

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep the value; it is the latest now."""
        self.pop(key)
        self._entries[key] = value
        self.bytes += key_bytes(key) + key_bytes(value)
        most_bytes = self._budgets.of(self._usual_bytes)
        while len(self._entries) > self.capacity or self.bytes > most_bytes:
            self.pop(next(iter(self._entries)))

    def pop(self, key: K) -> None:
        """Remove the value, if there is one."""
        if key in self._entries:
            self.bytes -= key_bytes(key) + key_bytes(self._entries.pop(key))

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.bytes = 0

    def forget(self, is_over: Callable[[V], bool]) -> None:
        """Remove the oldest values as long as they are over."""
        for key, value in list(self._entries.items()):
            if not is_over(value):
                break
            self.pop(key)
