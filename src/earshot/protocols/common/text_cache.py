"""A cache of what texts and bytes from peers mean, bounded by their length: a flood of long ones must not fill it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K", bound=str | bytes)
V = TypeVar("V")


class TextCache(Generic[K, V]):
    """Calls `read` once for each text, while the texts it remembers have at most `length` characters in all."""

    def __init__(self, read: Callable[[K], V], length: int) -> None:
        self._read: Callable[[K], V] = read
        self._length = length
        self._held = 0
        self._found: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def __call__(self, text: K) -> V:
        try:
            found = self._found[text]
        except KeyError:
            found = self._found[text] = self._read(text)
            # An entry takes some room besides its text.
            self._held += len(text) + 64
            while self._held > self._length:
                self._held -= len(self._found.popitem(last=False)[0]) + 64
            return found
        self._found.move_to_end(text)
        return found
