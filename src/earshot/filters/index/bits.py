"""A matrix of bits that changes in place, and the loops over it, compiled where numba is installed (extra `fast`).

Rows are intersected whole; slots are set and cleared one by one. Without a compiler bitarray intersects the rows: for
twenty rows of ten thousand slots its calls take a third of numpy's time. The compiled loops give the same slots in the
same order, and change a slot in a quarter of the time. A compiler takes long to load, so only large tables ask for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, partial, reduce
from operator import iand
from typing import Any, NamedTuple

import numpy as np
from bitarray import bitarray
from numpy.typing import NDArray

MOST_ROWS = 6144
"A slot costs one bit in each row: at most 768 bytes."
WORTH_COMPILING = 4096
"From this many slots on, it pays to load a compiler."

_WORD = np.dtype("<u8")
"Little-endian on every machine: then bit i of a word is bit i % 8 of its byte i // 8."
_BYTE = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)
_ONES = ~np.uint64(0)
_BIT = [np.uint8(1 << bit) for bit in range(8)]
_OTHERS = [~bit for bit in _BIT]
_MANY_BYTES = 3200
_unpack = np.unpackbits

and_all = np.bitwise_and.reduce
or_all = np.bitwise_or.reduce

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Rows = NDArray[np.intp]
Slots = NDArray[np.intp]
SlotNumbers = Slots | list[int]
"As `take` reads them: numpy reads a list as fast as bitarray's slots become an array."
Handle = Any
"A row as `intersection` takes it. When the matrix moves to other memory, it has other handles, in another list."


class Loops(NamedTuple):
    """The loops over the rows of one matrix."""

    handles: list[Handle]
    "By the number of the row."
    intersection: Callable[[Handle, Iterable[Handle]], SlotNumbers]
    "The slots that are set in a row and in all of the others."
    set_in: Callable[[Rows, int, int, int], None]
    "Set a slot in the rows from the first up to the last, and clear it in the others."


class Bits:
    """Rows of bits, one bit a slot. It grows by a sixteenth when it is full: it seldom grows, and rows stay short.

    New rows and new slots are ones: nothing is known of a slot until it is cleared somewhere.
    """

    def __init__(self) -> None:
        self._loops_over: Callable[[Bits], Loops] = plain_loops
        self._hold(np.full((32, 1), _ONES, _WORD))
        self._used = 0
        self._free: list[int] = []

    def _hold(self, words: Words) -> None:
        self.words = words
        self.bytes = words.view(_BYTE)
        "The same rows in bytes."
        self._flat, self._row_bytes = self.bytes.reshape(-1).data, self.bytes.shape[1]
        "The same bytes, one row after the other: a single byte is changed here in a third of the time."
        self.handles, self.intersection, self.set_in = self._loops_over(self)

    def compile(self) -> None:
        """Use compiled loops from now on, where there is a compiler."""
        self._loops_over = compiled_loops() or plain_loops
        self._hold(self.words)

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
                self._resize(rows=row + row // 16 + 1)
            self._used += 1
        self.words[row] = _ONES if like is None else self.words[like]
        return row

    def free_row(self, row: int) -> None:
        self._free.append(row)

    def add_slots(self) -> None:
        words = int(self.words.shape[1])
        self._resize(words=words + words // 16 + 1)

    def set(self, slot: int, rows: Iterable[int]) -> None:
        flat, row_bytes = self._flat, self._row_bytes
        place, bit = slot >> 3, 1 << (slot & 7)
        for row in rows:
            flat[row * row_bytes + place] |= bit

    def clear(self, slot: int, rows: Iterable[int]) -> None:
        flat, row_bytes = self._flat, self._row_bytes
        place, others = slot >> 3, ~(1 << (slot & 7))
        for row in rows:
            flat[row * row_bytes + place] &= others

    def _resize(self, rows: int = 0, words: int = 0) -> None:
        old = self.words
        self._hold(np.full((max(old.shape[0], rows), max(old.shape[1], words)), _ONES, _WORD))
        self.words[: old.shape[0], : old.shape[1]] = old


def slots_of(row: NDArray[np.uint8]) -> Slots:
    """The slots whose bits are set."""
    if len(row) <= _MANY_BYTES:
        # Indexing by a mask takes three times as long as nonzero().
        return _unpack(row, None, None, "little").view(_BOOL).nonzero()[0]
    # In a long row few words have any bit set: only those are unpacked.
    words = row.view(_WORD)
    busy = words.nonzero()[0]
    bits = _unpack(words[busy].view(_BYTE), None, None, "little").view(_BOOL).nonzero()[0]
    slots: Slots = (busy[bits >> 6] << 6) + (bits & 63)
    return slots


def _intersection(row: bitarray, others: Iterable[bitarray]) -> list[int]:
    return [*reduce(iand, others, row.copy()).search(1)]


def _set_in(of_rows: Bytes, rows: Rows, slot: int, first: int, last: int) -> None:
    of_slot = of_rows[:, slot >> 3]
    found = of_slot[rows] & _OTHERS[slot & 7]
    found[first:last] |= _BIT[slot & 7]
    of_slot[rows] = found


def plain_loops(bits: Bits) -> Loops:
    """Loops whose handles are rows of bitarray in the memory of the matrix."""
    handles = [bitarray(buffer=row, endian="little") for row in bits.bytes]
    return Loops(handles, _intersection, partial(_set_in, bits.bytes))


def compiled(loop: Callable[..., Any], *example: Any) -> Callable[..., Any] | None:
    """The same loop, compiled now for arguments like these, so that no event waits for it; None without a compiler."""
    try:
        from numba import njit
    except ImportError:
        return None
    if sys.byteorder != "little":  # Our words are little-endian everywhere; compiled code uses the machine's order.
        return None
    faster: Callable[..., Any] = njit(cache=True, nogil=True)(loop)
    faster(*example)
    return faster


@cache
def compiled_loops() -> Callable[[Bits], Loops] | None:
    """The same loops, compiled, whose handles are the numbers of rows in two bytes; None without a compiler."""
    words = Bits().words
    intersection = compiled(_intersection_loop, words, bytes(2))
    set_in = compiled(_set_in_loop, words.view(_BYTE), np.zeros(1, np.intp), 0, 0, 0)
    if intersection is None or set_in is None:
        return None

    def loops(bits: Bits) -> Loops:
        words = bits.words

        def of_rows(row: bytes, others: Iterable[bytes]) -> Any:
            return intersection(words, row + b"".join(others))

        handles = [row.to_bytes(2, "little") for row in range(len(words))]
        return Loops(handles, of_rows, partial(set_in, bits.bytes))

    return loops


def _set_in_loop(of_rows: Any, rows: Any, slot: int, first: int, last: int) -> None:
    place, bit = slot >> 3, np.uint8(1 << (slot & 7))
    for index in range(len(rows)):
        if first <= index < last:
            of_rows[rows[index], place] |= bit
        else:
            of_rows[rows[index], place] &= ~bit


def _intersection_loop(words: Any, handles: Any) -> Any:
    rows = np.empty(len(handles) // 2, np.intp)
    for place in range(len(rows)):
        rows[place] = handles[2 * place] + 256 * handles[2 * place + 1]
    met = words[rows[0]].copy()
    done = 1
    while done + 4 <= len(rows):  # Four rows at once: the words in between are read and written a quarter as often.
        a, b, c, d = words[rows[done]], words[rows[done + 1]], words[rows[done + 2]], words[rows[done + 3]]
        for place in range(len(met)):
            met[place] &= a[place] & b[place] & c[place] & d[place]
        done += 4
    for row in rows[done:]:
        of_row = words[row]
        for place in range(len(met)):
            met[place] &= of_row[place]
    one = np.uint64(1)
    count = 0
    for left in met:
        while left:
            left &= left - one
            count += 1
    slots = np.empty(count, np.intp)
    count = 0
    for place in range(len(met)):
        left = met[place]
        while left:
            # Find the lowest bit that is set by halving.
            bit = 0
            rest = left & (~left + one)
            for half in (32, 16, 8, 4, 2, 1):
                if rest >> np.uint64(half):
                    rest >>= np.uint64(half)
                    bit += half
            slots[count] = place * 64 + bit
            count += 1
            left &= left - one
    return slots
