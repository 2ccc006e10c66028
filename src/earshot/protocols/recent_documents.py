"""Extensional statistics (section 3.1): which recent documents came, and which of them a query wants.

A bitmap is an int; bit i stands for the document number `first + i` of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice

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


class RecentDocuments:
    """The numbers of the documents that came to a node, and of those its own query wants."""

    __slots__ = ("came", "wanted")

    def __init__(self) -> None:
        self.came: list[int] = []
        self.wanted: list[int] = []

    def forget(self, keep: int) -> None:
        """Only the latest so many matter."""
        for numbers in (self.came, self.wanted):
            if len(numbers) > 2 * keep:
                del numbers[:-keep]


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
