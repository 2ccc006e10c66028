"""A matrix of bits that changes in place: rows are and-ed whole, slots are set and cleared one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 6144
"A slot costs a bit a row: at most 768 bytes."

_WORD = np.dtype("<u8")
"Little-endian on every machine: then bit i of a word is bit i % 8 of its byte i // 8."
_BYTE = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)
_ONES = ~np.uint64(0)
_BIT = [np.uint8(1 << bit) for bit in range(8)]
_OTHERS = [~bit for bit in _BIT]
_MANY_BYTES = 3200
_unpack = np.unpackbits

Words = NDArray[np.uint64]
Rows = int | NDArray[np.intp]


class Bits:
    """Rows of bits, one bit a slot. It grows by an eighth where it must, so that growing is rare.

    New rows and new slots are ones: nothing is known of a slot until it is cleared somewhere.
    """

    def __init__(self) -> None:
        self.words: Words = np.full((32, 1), _ONES, _WORD)
        self.bytes = self.words.view(_BYTE)
        "The same rows in bytes."
        self._used = 0
        self._free: list[int] = []

    @property
    def slots(self) -> int:
        return int(self.words.shape[1]) * 64

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
                self._resize(rows=row + row // 8 + 1)
            self._used += 1
        self.words[row] = _ONES if like is None else self.words[like]
        return row

    def free_row(self, row: int) -> None:
        self._free.append(row)

    def add_slots(self) -> None:
        words = int(self.words.shape[1])
        self._resize(words=words + words // 8 + 1)

    def set(self, rows: Rows, slot: int) -> None:
        self.bytes[rows, slot >> 3] |= _BIT[slot & 7]

    def clear(self, rows: Rows, slot: int) -> None:
        self.bytes[rows, slot >> 3] &= _OTHERS[slot & 7]

    def _resize(self, rows: int = 0, words: int = 0) -> None:
        old = self.words
        self.words = np.full((max(old.shape[0], rows), max(old.shape[1], words)), _ONES, _WORD)
        self.words[: old.shape[0], : old.shape[1]] = old
        self.bytes = self.words.view(_BYTE)


def slots_of(row: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The slots whose bits are set."""
    if len(row) <= _MANY_BYTES:
        # To index by a mask would take three times as long as to ask it for its ones.
        return _unpack(row, None, None, "little").view(_BOOL).nonzero()[0]
    # Few words of many have any: only those are unpacked.
    words = row.view(_WORD)
    busy = words.nonzero()[0]
    bits = _unpack(words[busy].view(_BYTE), None, None, "little").view(_BOOL).nonzero()[0]
    slots: NDArray[np.intp] = (busy[bits >> 6] << 6) + (bits & 63)
    return slots
