"""Recent documents, and extensional statistics (section 3.1): which of them came, and which a query wants.

A bitmap is an int; bit i stands for the document number `first + i` of the source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter

from earshot.protocols.codd_packets import Document
from earshot.protocols.filter_answers import read_filter


def bitmap(numbers: Sequence[int], first: int) -> int:
    """The bitmap of these numbers, which rise but for a few that came late; earlier ones are left out."""
    bits = 0
    for number in reversed(numbers):
        if number >= first:
            bits |= 1 << (number - first)
        elif number < first - 1000:
            break
    return bits


class HeldDocuments:
    """The documents that came lately, kept for those who come from elsewhere: bounded, oldest forgotten
    first. Whether one is held is `number in held.numbers`."""

    __slots__ = ("capacity", "documents", "numbers")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.documents: deque[Document] = deque()
        "In the order in which they came."
        self.numbers: set[int] = set()

    def add(self, document: Document) -> None:
        """Keep one whose number is new."""
        if len(self.documents) >= self.capacity:
            self.numbers.remove(self.documents.popleft().number)
        self.documents.append(document)
        self.numbers.add(document.number)

    def since(self, first: int) -> list[Document]:
        """Those from a number on, in order of their numbers."""
        return sorted((one for one in self.documents if one.number >= first), key=attrgetter("number"))


class RecentDocuments:
    """The numbers of the documents that came to a node, and of those its own query wants."""

    __slots__ = ("_bitmap", "came", "wanted")

    def __init__(self) -> None:
        self.came: list[int] = []
        self.wanted: list[int] = []
        self._bitmap = (0, 0, 0)
        "How many were wanted when it was last asked for, from which number on, and the bitmap."

    def wanted_since(self, first: int) -> int:
        """The bitmap of those wanted: nodes that look for a parent ask for it many times between two documents."""
        count, known_from, bits = self._bitmap
        if count != len(self.wanted) or first < known_from:
            known_from, bits = first, bitmap(self.wanted, first)
            self._bitmap = (len(self.wanted), first, bits)
        return bits >> (first - known_from)

    def forget(self, keep: int) -> None:
        """Only the latest so many matter."""
        for numbers in (self.came, self.wanted):
            if len(numbers) > 2 * keep:
                del numbers[:-keep]
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
