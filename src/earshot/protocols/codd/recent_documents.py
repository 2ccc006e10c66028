"""Recent documents, and extensional statistics (section 3.1): which of them came, and which a query wants.

A bitmap is an int; bit i stands for the document number `first + i` of the source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from earshot.events import Event
from earshot.protocols.common.filter_answers import read_filter


def bitmap(numbers: Sequence[int], first: int) -> int:
    """The bitmap of these numbers, which rise but for a few that came late; earlier ones are left out."""
    bits = 0
    for number in reversed(numbers):
        if number >= first:
            bits |= 1 << (number - first)
        elif number < first - 1000:
            break
    return bits


class Held(NamedTuple):
    """A document that came lately."""

    number: int
    event: Event
    hops: int


class HeldDocuments:
    """The documents that came lately, kept for those who come from elsewhere: bounded, oldest forgotten first.

    Every document that comes is added, few are asked for: so they are kept flat, without an object each.
    """

    __slots__ = ("_flat", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._flat: deque[Any] = deque(maxlen=len(Held._fields) * capacity)
        "In the order in which they came: number, event, hops, number, event, ..."

    @property
    def numbers(self) -> list[int]:
        """In the order in which they came."""
        return list(islice(self._flat, 0, None, len(Held._fields)))

    def add(self, number: int, event: Event, hops: int) -> None:
        """Keep one whose number is new."""
        self._flat.extend((number, event, hops))

    def since(self, first: int) -> list[Held]:
        """Those from a number on, in order of their numbers."""
        values = iter(self._flat)
        found = [Held(*one) for one in zip(values, values, values, strict=True) if one[0] >= first]
        return sorted(found, key=attrgetter("number"))


class WantedDocuments:
    """The numbers of the documents that came to a node and that its own query wants."""

    __slots__ = ("_bitmap", "numbers")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._bitmap = (0, 0, 0)
        "How many there were when it was last asked for, from which number on, and the bitmap."

    def bitmap(self, first: int) -> int:
        """Kept until another comes: nodes that look for a parent ask for it many times in between."""
        count, known_from, bits = self._bitmap
        if count != len(self.numbers) or first < known_from:
            known_from, bits = first, bitmap(self.numbers, first)
            self._bitmap = (len(self.numbers), first, bits)
        return bits >> (first - known_from)

    def forget(self, keep: int) -> None:
        """Only the latest so many matter."""
        if len(self.numbers) > 2 * keep:
            del self.numbers[:-keep]
            self._bitmap = (0, 0, 0)


def overhead_of(child: int, parent: int) -> int:
    """compute_overhead(p, n): how many documents the parent would receive for the child alone."""
    return (child & ~parent).bit_count()


@lru_cache(maxsize=1 << 18)
def _structural(a: str, b: str) -> float:
    one, other = read_filter(a), read_filter(b)
    return 0.0 if one is None or other is None else one.overlap(other)


MOST_COMPARED = 16
"Filters of one aggregate that a filter is compared with by structure, where it is not among them."


def structural_overlap(query: Collection[str], aggregate: Collection[str]) -> float:
    """The intensional overlap: how near each filter of the query is to the nearest of the aggregate."""
    if not query or not aggregate:
        return 0.0
    some = list(islice(aggregate, MOST_COMPARED))
    shares = [1.0 if text in aggregate else max(_structural(text, other) for other in some) for text in query]
    return sum(shares) / len(shares)
