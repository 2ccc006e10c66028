"""Which values belong together in one subscription, which is lost when values are pooled by name.

Every subscription leaves one mark, or a few, in one Bloom vector: its row's columns, the texts it
asks for and the cells that contain its ranges of numbers. A cell is as wide as its range or up to twice
as wide, so a range lies in at most two. An event meets a row when one combination of its own
texts and cells is marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from earshot.filters.summaries.bloom import LARGEST_BITS, MOST_HASHES, Bloom, BloomShape, combined
from earshot.filters.summaries.clauses import KnownFacts, Span, Values

PRESENT, NUMBER, EQUALS, HOLDS = range(4)
"What a column asks of its name: to be present, to be a number in range, to equal or to contain a wanted text."

ColumnKey = int
"A name's key and what is asked of it: `key << 2 | kind`."

Row = tuple[ColumnKey, ...]
"A line of the association list: columns that must all hold, in order."

MOST_COMBINATIONS = 64
"Of an event's texts and cells; with more, a row counts as met."
MOST_SPLIT = 6
"Ranges of one clause that lie in two cells; each doubles the clause's marks, so further ones count as unbounded."
MOST_CELLS = 4
"That contain the numbers of one name; with more, they count as unknown."

NARROWEST, WIDEST, UNBOUNDED = -20, 126, 127
"Widths are powers of two; an unbounded range, or a wider one, lies in one cell of everything."
_PRECISION = 20
"Significant bits of a number; a digest's numbers have a few more."

Cell = tuple[int, int]
"A width and the cell's number at that width."


def combinations_shape(shape: BloomShape) -> BloomShape:
    """The shape of a section's vector of combinations. One more hash, because every row may give a false positive."""
    return BloomShape(min(shape.bits * 8, LARGEST_BITS), min(shape.hashes + 1, MOST_HASHES))


def asks_for_values(row: Row) -> bool:
    """Whether the row asks for values that can be combined."""
    return any(one & 3 in (NUMBER, EQUALS) for one in row)


def width_of(span: Span) -> int:
    """The power of two that is at least as wide as the range, and not finer than a number's significant bits."""
    low, high = span
    if math.isinf(low) or math.isinf(high) or math.isinf(high - low):
        return UNBOUNDED
    precision = math.ldexp(max(abs(low), abs(high)), -_PRECISION)
    # frexp gives the exponent of the next power of two above.
    exponent = math.frexp(max(high - low, precision))[1]
    return max(exponent, NARROWEST) if exponent <= WIDEST else UNBOUNDED


def cells_of(span: Span, width: int) -> list[int] | None:
    """The cells of this width that contain the range; None where there are too many."""
    if width == UNBOUNDED:
        return [0]
    low, high = span
    if math.isinf(low) or math.isinf(high):
        return None
    first, last = math.floor(math.ldexp(low, -width)), math.floor(math.ldexp(high, -width))
    return list(range(first, last + 1)) if last - first < MOST_CELLS else None


def with_few_split(spans: Mapping[int, Sequence[Span]]) -> dict[int, Sequence[Span]]:
    """One clause's ranges by their names' keys, with further split ones made unbounded."""
    found: dict[int, Sequence[Span]] = {}
    split = 0
    for key, several in sorted(spans.items()):
        split += sum(len(_range_cells(span)) - 1 for span in several)
        found[key] = several if split <= MOST_SPLIT else [(-math.inf, math.inf)]
    return found


def marks_of(row: Row, texts: Mapping[int, Sequence[int]], spans: Mapping[int, Sequence[Span]]) -> set[int]:
    """The marks of one clause: its fingerprints and ranges by the keys of its row's names."""
    choices: list[list[tuple[int, ...]]] = []
    for one in row:
        if one & 3 == EQUALS:
            choices.append([(text,) for text in texts[one >> 2]])
        elif one & 3 == NUMBER:
            choices.append([cell for span in spans[one >> 2] for cell in _range_cells(span)])
    return {_mark(row, parts) for parts in product(*choices)}


def _range_cells(span: Span) -> list[tuple[int, ...]]:
    width = width_of(span)
    cells = cells_of(span, width)
    assert cells is not None, "a range lies in at most two cells of its own width"
    return [(width, cell) for cell in cells]


def _mark(row: Row, parts: Iterable[tuple[int, ...]]) -> int:
    return combined((*row, *(number for part in parts for number in part)))


@dataclass(frozen=True, slots=True)
class ValueCombinations:
    """The marks, and by name the widths that occur among them."""

    marks: Bloom
    widths: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, shape: BloomShape, marks: set[int], spans: Mapping[int, Iterable[Span]]) -> ValueCombinations:
        """These marks; `spans` are all ranges by their names' keys."""
        widths = {key: tuple(sorted(set(map(width_of, several)))) for key, several in spans.items()}
        return cls(Bloom.of(combinations_shape(shape), marks), widths)

    def merged(self, other: ValueCombinations) -> ValueCombinations:
        widths = {
            key: tuple(sorted({*self.widths.get(key, ()), *other.widths.get(key, ())}))
            for key in self.widths | other.widths
        }
        return ValueCombinations(self.marks.merged(other.marks), widths)

    def folded(self) -> ValueCombinations:
        return ValueCombinations(self.marks.folded(), self.widths)

    def trimmed(self, keys: set[int]) -> ValueCombinations:
        """Without the widths of other names."""
        return ValueCombinations(self.marks, {key: widths for key, widths in self.widths.items() if key in keys})

    def hold(self, row: Row, facts: KnownFacts) -> bool:
        """Whether the event's values may occur together in a subscription with this row."""
        choices: list[list[tuple[int, ...]]] = []
        for one in row:
            if one & 3 not in (NUMBER, EQUALS):
                continue
            values = facts.values(one >> 2)
            if values is None or values.anything:
                return True
            found: list[tuple[int, ...]] | None = [(text,) for text in values.fingerprints]
            if one & 3 == NUMBER:
                found = self._cells(one >> 2, values)
            if found is None:
                return True
            choices.append(found)
        if not choices or math.prod(map(len, choices)) > MOST_COMBINATIONS:
            return True
        return any(_mark(row, parts) in self.marks for parts in product(*choices))

    def _cells(self, key: int, values: Values) -> list[tuple[int, ...]] | None:
        """The cells of the numbers of this name, at every width in use."""
        if values.span is None:
            return []
        found: list[tuple[int, ...]] = []
        for width in self.widths.get(key, ()):
            cells = cells_of(values.span, width)
            if cells is None:
                return None
            found += [(width, cell) for cell in cells]
        return found
