"""The four structures of a subscription summary, by E. Yoneki and J. Bacon, section III.C, in the paper's order.

1. Event Type Name (ETN): the hash of the name that identifies the event type.
2. Element Association List (EAL): which elements and attributes belong together in a subscription.
3. Arithmetic Element Constraint (AEC): which numbers an element may be.
4. String Element Constraint (SEC): which texts an element may be; three bit vectors.

All subscriptions' constraints on one element are pooled, so that AEC and SEC no longer show which values belong
together. That is not in the paper's structures: `value_combinations.py` adds it. `sections.py` holds the four together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from earshot.filters.summaries.bloom import Bloom, BloomShape, fingerprint
from earshot.filters.summaries.clauses import Span, Values
from earshot.filters.summaries.value_combinations import ColumnKey, Row, asks_for_values

# 1. Event Type Name: `bloom.type_key` of the event type (an XML event's root element), the key of `Summary.sections`.


# 2. Element Association List.


@dataclass(frozen=True)
class AssociationList:
    """EAL: an array of bits. Columns are elements and attributes and what is asked of them; each row is a set of
    columns that one subscription, or several, ask for together.

    The paper's columns are the schema's. Brokers share no schema here: a column is a hashed name, in the order of the
    hashes.
    """

    columns: tuple[ColumnKey, ...]
    "In order; without those that no row asks for."
    rows: frozenset[Row] | None
    "None where the rows were given up: then any `least` columns must hold."
    least: int
    "The columns of the shortest row."

    @classmethod
    def of(cls, rows: frozenset[Row]) -> AssociationList:
        columns = sorted({one for row in rows for one in row})
        return cls(tuple(columns), rows, min(map(len, rows), default=1))

    def met(self, holding: int) -> Iterator[Row]:
        """The rows of which every column holds; bit n of `holding` stands for column n."""
        missing = ~holding
        return (row for mask, row in self._masks if not mask & missing)

    @cached_property
    def _masks(self) -> list[tuple[int, Row]]:
        """Rows as bits over the columns."""
        place = {one: index for index, one in enumerate(self.columns)}
        return [(sum(1 << place[one] for one in row), row) for row in sorted(self.rows or ())]

    def merged(self, other: AssociationList, with_combinations: bool) -> AssociationList:
        """What either asks for."""
        if self.rows is not None and other.rows is not None:
            return AssociationList.of(needed(self.rows | other.rows, with_combinations))
        columns = tuple(sorted({*self.columns, *other.columns}))
        return AssociationList(columns, None, min(self.least, other.least))

    def without_rows(self) -> AssociationList:
        return replace(self, rows=None)


def needed(rows: Iterable[Row], with_combinations: bool = False) -> frozenset[Row]:
    """The rows without redundant ones, which ask for everything that another row asks for, and more.

    With combinations, a row that asks for values wants certain values together, so it makes no other row redundant.
    """
    kept: list[Row] = []
    standing: list[frozenset[ColumnKey]] = []
    for row in sorted(set(rows), key=len):
        asked = frozenset(row)
        if any(other <= asked for other in standing if len(other) < len(asked)):
            continue
        kept.append(row)
        if not (with_combinations and asks_for_values(row)):
            standing.append(asked)
    return frozenset(kept)


# 3. Arithmetic Element Constraint.


@dataclass(frozen=True, slots=True)
class NumberConstraint:
    """AEC of one element: sub-ranges that do not overlap, in order.

    The paper has a second array for values that must be equalled and lie in no sub-range. Here such a value is a
    sub-range with two equal ends in the same order: one search finds either.
    """

    spans: tuple[Span, ...]

    @classmethod
    def of(cls, spans: Iterable[Span]) -> NumberConstraint:
        """The same numbers as sub-ranges that do not overlap."""
        found: list[Span] = []
        for low, high in sorted(spans):
            if found and low <= math.nextafter(found[-1][1], math.inf):
                found[-1] = (found[-1][0], max(found[-1][1], high))
            else:
                found.append((low, high))
        return cls(tuple(found))

    def holds(self, values: Values) -> bool:
        """Whether one of the element's numbers may lie in a sub-range."""
        if values.span is None:
            return False
        low, high = values.span
        return any(start <= high and low <= end for start, end in self.spans)

    def merged(self, other: NumberConstraint) -> NumberConstraint:
        return NumberConstraint.of((*self.spans, *other.spans))

    def bridged(self, most: int) -> NumberConstraint:
        """Sub-ranges joined over their narrowest gaps until at most `most` are left."""
        spans = self.spans
        if len(spans) <= most:
            return self
        gaps = sorted(range(1, len(spans)), key=lambda index: (spans[index][0] - spans[index - 1][1], index))
        bridged = set(gaps[: len(spans) - most])
        found = [spans[0]]
        for index in range(1, len(spans)):
            if index in bridged:
                found[-1] = (found[-1][0], spans[index][1])
            else:
                found.append(spans[index])
        return NumberConstraint(tuple(found))


# 4. String Element Constraint.

LONGEST_PIECE = 8
"Prefixes and substrings are kept to this many characters."
LONGEST_TEXT = 4096
"Longer texts are not searched for substrings; they count as matching."


@dataclass(frozen=True, slots=True)
class Pieces:
    """Beginnings or parts of texts, and the lengths that occur among them (bit n: length n + 1)."""

    vector: Bloom
    lengths: int = 0

    @classmethod
    def of(cls, texts: set[str], shape: BloomShape) -> Pieces:
        return cls(_vector(texts, shape), sum({1 << (len(text) - 1) for text in texts}))

    def merged(self, other: Pieces) -> Pieces:
        return Pieces(self.vector.merged(other.vector), self.lengths | other.lengths)

    def folded(self) -> Pieces:
        return Pieces(self.vector.folded(), self.lengths)

    def sizes(self) -> list[int]:
        return [length for length in range(1, LONGEST_PIECE + 1) if self.lengths >> (length - 1) & 1]


@dataclass(frozen=True, slots=True)
class TextConstraint:
    """SEC of one element: three bit vectors, for texts to equal, to begin with and to contain: the string tests of
    the subscription language."""

    equal: Bloom | None = None
    "None where no row asks for it."
    prefix: Pieces | None = None
    substring: Pieces | None = None
    "Either both of these two exist or neither: one column asks for both."

    @classmethod
    def of(
        cls, equal: set[str] | None, prefix: set[str] | None, substring: set[str] | None, shape: BloomShape
    ) -> TextConstraint:
        asked = prefix is not None or substring is not None
        return cls(
            None if equal is None else _vector(equal, shape),
            Pieces.of(prefix or set(), shape) if asked else None,
            Pieces.of(substring or set(), shape) if asked else None,
        )

    def equals(self, values: Values) -> bool:
        """Whether one of the element's texts may equal one of ours."""
        vector = self.equal
        return vector is not None and any(text in vector for text in values.fingerprints)

    def holds(self, values: Values) -> bool:
        """Whether one of the element's texts may begin with or contain one of ours."""
        if values.texts is None:
            return True
        return any(self._begins(text) or self._contains(text) for text in values.texts)

    def _begins(self, text: str) -> bool:
        prefix = self.prefix
        if prefix is None:
            return False
        return any(len(text) >= size and fingerprint(text[:size]) in prefix.vector for size in prefix.sizes())

    def _contains(self, text: str) -> bool:
        substring = self.substring
        if substring is None or not substring.lengths:
            return False
        if len(text) > LONGEST_TEXT:
            return True
        return any(
            fingerprint(text[at : at + size]) in substring.vector
            for size in substring.sizes()
            for at in range(len(text) - size + 1)
        )

    def merged(self, other: TextConstraint) -> TextConstraint:
        return TextConstraint(
            _either(self.equal, other.equal, Bloom.merged),
            _either(self.prefix, other.prefix, Pieces.merged),
            _either(self.substring, other.substring, Pieces.merged),
        )

    def folded(self) -> TextConstraint:
        """Each vector in half its bits."""
        return TextConstraint(
            None if self.equal is None else self.equal.folded(),
            None if self.prefix is None else self.prefix.folded(),
            None if self.substring is None else self.substring.folded(),
        )


Vector = TypeVar("Vector")


def _either(ours: Vector | None, theirs: Vector | None, merged: Callable[[Vector, Vector], Vector]) -> Vector | None:
    """Both merged; where one is None, the other."""
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return merged(ours, theirs)


def _vector(texts: set[str], shape: BloomShape) -> Bloom:
    return Bloom.of(shape, set(map(fingerprint, texts)))
