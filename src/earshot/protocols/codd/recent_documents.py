"""The documents that came recently, and bitmaps of their numbers (section 3.1).

A bitmap is an int; bit i stands for the document number `first + i` of the source.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from earshot.events import Event

MOST_BITS = 1 << 16
"The most bits of a bitmap, for all numbers that a peer may send."


def bitmap(numbers: Iterable[int], first: int) -> int:
    """The bitmap of these numbers, without those before `first`."""
    bits = 0
    for number in numbers:
        if 0 <= number - first < MOST_BITS:
            bits |= 1 << (number - first)
    return bits


class RecentBitmap:
    """The bitmap of the last numbers that were added, at least `capacity` of them."""

    __slots__ = ("_bits", "_capacity", "_first")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._first = 0
        self._bits = 0

    def add(self, number: int) -> None:
        if number >= self._first + 2 * self._capacity:
            first = number - self._capacity
            self._bits >>= first - self._first
            self._first = first
        if number >= self._first:
            self._bits |= 1 << (number - self._first)

    def since(self, first: int) -> int:
        """The bitmap that begins with this number."""
        shift = first - self._first
        if shift >= 0:
            return self._bits >> shift
        return self._bits << -shift if -shift < MOST_BITS else 0


class HeldDocument(NamedTuple):
    """A document that came recently."""

    number: int
    event: Event
    hops: int


class HeldDocuments:
    """The documents that came recently, kept for children that come from elsewhere. The oldest are dropped."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._by_number: dict[int, HeldDocument] = {}
        "In the order in which they came."

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    @property
    def numbers(self) -> list[int]:
        """In the order in which they came."""
        return list(self._by_number)

    def add(self, number: int, event: Event, hops: int) -> HeldDocument:
        if len(self._by_number) >= self.capacity:
            del self._by_number[next(iter(self._by_number))]
        held = self._by_number[number] = HeldDocument(number, event, hops)
        return held

    def get(self, number: int | None) -> HeldDocument | None:
        return None if number is None else self._by_number.get(number)

    def since(self, first: int) -> list[HeldDocument]:
        """The documents from a number on, in order of their numbers."""
        return sorted((held for held in self._by_number.values() if held.number >= first), key=attrgetter("number"))
