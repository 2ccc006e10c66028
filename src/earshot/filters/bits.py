"""A matrix of bits that changes in place: rows are and-ed whole, slots are set and cleared one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 8192
"A slot costs a bit or two a row: at most 2 KB."

_ONES = ~np.uint64(0)
Rows = int | NDArray[np.intp]


class Bits:
    """Rows of bits, one bit a slot, in one plane, `possible`, or in two, `certain` below it.

    It grows by a quarter where it must, so that growing is rare. Nothing is known of a slot until it
    is cleared somewhere: new rows and new slots are ones.
    """

    def __init__(self) -> None:
        self.words: NDArray[np.uint64] = np.zeros((32, 1, 1), np.uint64)
        self._bytes = self.words.view(np.uint8)
        "The same memory: a slot's bit is found by its byte, so that the machine's byte order is no matter."
        self._used = 0
        self._free: list[int] = []

    @property
    def slots(self) -> int:
        return int(self.words.shape[2]) * 64

    @property
    def has_certain(self) -> bool:
        return int(self.words.shape[1]) == 2

    @property
    def is_full(self) -> bool:
        """Whether there may be no more rows."""
        return self._used - len(self._free) >= MOST_ROWS

    def new_row(self, like: int | None = None) -> int:
        """A row of ones, or a copy of another row."""
        if self._free:
            row = self._free.pop()
        else:
            row = self._used
            if row == self.words.shape[0]:
                self._resize(rows=row + row // 4 + 1)
            self._used += 1
        self.words[row] = _ONES if like is None else self.words[like]
        return row

    def free_row(self, row: int) -> None:
        self._free.append(row)

    def merge_row(self, row: int, other: int) -> None:
        """Make the row speak for both: possible where either is, certain where both are."""
        self.words[row, 0] |= self.words[other, 0]
        if self.has_certain:
            self.words[row, 1] &= self.words[other, 1]

    def add_slots(self) -> None:
        words = self.words.shape[2]
        self._resize(words=words + words // 4 + 1)

    def set(self, rows: Rows, slot: int) -> None:
        self._bytes[rows, :, slot >> 3] |= np.uint8(1 << (slot & 7))

    def clear(self, rows: Rows, slot: int) -> None:
        self._bytes[rows, :, slot >> 3] &= np.uint8(0xFF ^ (1 << (slot & 7)))

    def clear_certain(self, row: int, slot: int) -> None:
        """Leave it possible, but to be checked."""
        if not self.has_certain:
            self._resize(planes=2)
        self._bytes[row, 1, slot >> 3] &= np.uint8(0xFF ^ (1 << (slot & 7)))

    def _resize(self, rows: int = 0, planes: int = 0, words: int = 0) -> None:
        old = self.words
        shape = (max(old.shape[0], rows), max(old.shape[1], planes), max(old.shape[2], words))
        self.words = np.empty(shape, np.uint64)
        self.words[: old.shape[0], :, : old.shape[2]] = old  # A second plane starts as a copy of the first.
        self.words[:, :, old.shape[2] :] = _ONES
        self._bytes = self.words.view(np.uint8)


def slots_in(words: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The slots whose bits are set. Words without any are skipped: of many slots, few are set."""
    busy = words.nonzero()[0]
    bits = np.unpackbits(words[busy].view(np.uint8), bitorder="little").nonzero()[0]
    found: NDArray[np.intp] = (busy[bits >> 6] << 6) + (bits & 63)
    return found
