"""One event type's part of a summary: which names belong together, and what each of them may be.

The paper's structures: the element association list (EAL) is `rows`, arithmetic element constraints
(AEC) are `ranges`, string element constraints (SEC) are `equals` and `pieces`: three bit vectors a
name, for texts to equal, to begin with and to contain. A column of the list is a name and what is
asked of it. All subscriptions' constraints on a name are pooled, so they no longer show which values belong
together; `combinations`, one more vector, records that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TypeVar

from earshot.filters.summaries.bloom import Bloom, BloomShape, fingerprint, name_key
from earshot.filters.summaries.clauses import (
    EQUAL,
    PREFIX,
    SUBSTRING,
    Clause,
    KnownFacts,
    PresenceTerm,
    RangeTerm,
    Span,
    Term,
    TextTerm,
    Values,
)
from earshot.filters.summaries.value_combinations import (
    EQUALS,
    HOLDS,
    NUMBER,
    PRESENT,
    ColumnKey,
    Row,
    ValueCombinations,
    asks_for_values,
    marks_of,
)

LONGEST_PIECE = 8
"Prefixes and substrings are kept to this many characters."
LONGEST_TEXT = 4096
"Longer texts are not searched for substrings; they count as matching."

Ranges = tuple[Span, ...]
"Sub-ranges that do not touch, in order; a single value where both ends are equal."


@dataclass(frozen=True, slots=True)
class Pieces:
    """Beginnings or parts of texts, and the lengths that occur among them (bit n: length n + 1)."""

    vector: Bloom
    lengths: int = 0

    def merged(self, other: Pieces) -> Pieces:
        return Pieces(self.vector.merged(other.vector), self.lengths | other.lengths)

    def folded(self) -> Pieces:
        return Pieces(self.vector.folded(), self.lengths)

    def sizes(self) -> list[int]:
        return [length for length in range(1, LONGEST_PIECE + 1) if self.lengths >> (length - 1) & 1]


@dataclass(frozen=True, slots=True)
class PieceVectors:
    """Beginnings and parts that a name's texts may have."""

    prefix: Pieces
    substring: Pieces

    def merged(self, other: PieceVectors) -> PieceVectors:
        return PieceVectors(self.prefix.merged(other.prefix), self.substring.merged(other.substring))

    def folded(self) -> PieceVectors:
        return PieceVectors(self.prefix.folded(), self.substring.folded())

    def hold(self, values: Values) -> bool:
        """Whether one of the texts may begin with or contain one of ours."""
        if values.texts is None:
            return True
        return any(self._begins(text) or self._contains(text) for text in values.texts)

    def _begins(self, text: str) -> bool:
        vector = self.prefix.vector
        return any(len(text) >= size and fingerprint(text[:size]) in vector for size in self.prefix.sizes())

    def _contains(self, text: str) -> bool:
        if not self.substring.lengths:
            return False
        if len(text) > LONGEST_TEXT:
            return True
        vector = self.substring.vector
        return any(
            fingerprint(text[at : at + size]) in vector
            for size in self.substring.sizes()
            for at in range(len(text) - size + 1)
        )


@dataclass(frozen=True)
class TypeSection:
    """What the subscriptions to one event type want, pooled."""

    columns: tuple[ColumnKey, ...]
    "In order; without those that no row asks for."
    rows: frozenset[Row] | None
    "None where the association list was given up: then any `least` columns must hold."
    least: int
    ranges: dict[int, Ranges] = field(default_factory=dict)
    "By the name's key."
    equals: dict[int, Bloom] = field(default_factory=dict)
    pieces: dict[int, PieceVectors] = field(default_factory=dict)
    combinations: ValueCombinations | None = None
    "Which texts and ranges occur together in a row; None where that was given up or no row has any."

    @classmethod
    def of(cls, clauses: Iterable[Clause], shape: BloomShape) -> TypeSection:
        """The section of these clauses, regardless of their types."""
        builder = _SectionBuilder()
        for clause in clauses:
            builder.add(clause)
        return builder.section(shape)

    @property
    def unconstrained(self) -> bool:
        """Whether every event of the type passes."""
        return self.least == 0

    def passes(self, facts: KnownFacts) -> bool:
        """Whether an event of this type, known by these facts, may be wanted."""
        if self.least == 0:
            return True
        holding = 0
        for index, one in enumerate(self.columns):
            if self._holds(one, facts.values(one >> 2)):
                holding |= 1 << index
        if self.rows is None:
            return holding.bit_count() >= self.least
        missing, combinations = ~holding, self.combinations
        return any(
            not mask & missing and (combinations is None or combinations.hold(row, facts)) for mask, row in self._masks
        )

    @cached_property
    def _masks(self) -> list[tuple[int, Row]]:
        """Rows as bits over the columns."""
        place = {one: index for index, one in enumerate(self.columns)}
        return [(sum(1 << place[one] for one in row), row) for row in sorted(self.rows or ())]

    def _holds(self, one: ColumnKey, values: Values | None) -> bool:
        if values is None:
            return False
        kind = one & 3
        if kind == PRESENT or values.anything:
            return True
        if kind == NUMBER:
            if values.span is None:
                return False
            low, high = values.span
            return any(start <= high and low <= end for start, end in self.ranges[one >> 2])
        if kind == HOLDS:
            return self.pieces[one >> 2].hold(values)
        vector = self.equals[one >> 2]
        return any(text in vector for text in values.fingerprints)

    @property
    def _combinations_lost(self) -> bool:
        return self.combinations is None and bool(self.equals or self.ranges)

    def merged(self, other: TypeSection) -> TypeSection:
        """What either wants."""
        if self.unconstrained or other.unconstrained:
            return EVERYTHING
        if self.rows is None or other.rows is None:
            rows, combinations = None, None
        elif self._combinations_lost or other._combinations_lost:
            rows, combinations = needed(self.rows | other.rows), None
        else:
            given = [one.combinations for one in (self, other) if one.combinations is not None]
            combinations = reduce(ValueCombinations.merged, given) if given else None
            rows = needed(self.rows | other.rows, with_combinations=combinations is not None)
        return TypeSection(
            columns=tuple(sorted({*self.columns, *other.columns})),
            rows=rows,
            least=min(self.least, other.least),
            ranges=_united(self.ranges, other.ranges, lambda a, b: joined((*a, *b))),
            equals=_united(self.equals, other.equals, Bloom.merged),
            pieces=_united(self.pieces, other.pieces, PieceVectors.merged),
            combinations=combinations,
        ).trimmed()

    def without_combinations(self) -> TypeSection:
        """The same without its combinations, as in the paper."""
        if self.combinations is None or self.rows is None:
            return self
        return replace(self, rows=needed(self.rows), combinations=None).trimmed()

    def without_rows(self) -> TypeSection:
        """The same without its association list."""
        return replace(self, rows=None, combinations=None)

    def trimmed(self) -> TypeSection:
        """Without the columns and constraints that no row asks for."""
        if self.rows is None:
            return self
        used = {one for row in self.rows for one in row}
        if len(used) == len(self.columns):
            return self
        return replace(
            self,
            columns=tuple(one for one in self.columns if one in used),
            ranges={key: ranges for key, ranges in self.ranges.items() if key << 2 | NUMBER in used},
            equals={key: vector for key, vector in self.equals.items() if key << 2 | EQUALS in used},
            pieces={key: vectors for key, vectors in self.pieces.items() if key << 2 | HOLDS in used},
            combinations=self.combinations.trimmed({one >> 2 for one in used})
            if self.combinations is not None and asks_for_values(tuple(used))
            else None,
        )


EVERYTHING = TypeSection((), frozenset(((),)), 0)

Kept = TypeVar("Kept")


def _united(ours: dict[int, Kept], theirs: dict[int, Kept], merged: Callable[[Kept, Kept], Kept]) -> dict[int, Kept]:
    found = dict(ours)
    for key, their in theirs.items():
        found[key] = merged(found[key], their) if key in found else their
    return found


class _SectionBuilder:
    """Collects clauses for a section."""

    def __init__(self) -> None:
        self.rows: set[Row] = set()
        self.spans: dict[int, list[Span]] = {}
        self.texts: dict[str, dict[int, set[str]]] = {EQUAL: {}, PREFIX: {}, SUBSTRING: {}}
        self.marks: dict[Row, set[int]] = {}

    def add(self, clause: Clause) -> None:
        row = tuple(sorted({_column_of(term) for term in clause.terms}))
        self.rows.add(row)
        # Two names may share a key; then the value of either may meet a term.
        texts: dict[int, list[int]] = {}
        spans: dict[int, list[Span]] = {}
        for term in clause.terms:
            key = name_key(term.name)
            if isinstance(term, RangeTerm):
                self.spans.setdefault(key, []).append((term.low, term.high))
                spans.setdefault(key, []).append((term.low, term.high))
            elif isinstance(term, TextTerm):
                text = term.text if term.how == EQUAL else term.text[:LONGEST_PIECE]
                self.texts[term.how].setdefault(key, set()).add(text)
                if term.how == EQUAL:
                    texts.setdefault(key, []).append(fingerprint(text))
        if asks_for_values(row):
            self.marks.setdefault(row, set()).update(marks_of(row, texts, spans))

    def section(self, shape: BloomShape) -> TypeSection:
        rows = needed(self.rows, with_combinations=True)
        if () in rows:
            return EVERYTHING
        equals = {key: _vector(texts, shape) for key, texts in self.texts[EQUAL].items()}
        prefixes, substrings = self.texts[PREFIX], self.texts[SUBSTRING]
        marks = {mark for row in rows for mark in self.marks.get(row, ())}
        return TypeSection(
            columns=tuple(sorted({one for row in self.rows for one in row})),
            rows=rows,
            least=min(map(len, rows), default=1),
            ranges={key: joined(spans) for key, spans in self.spans.items()},
            equals=equals,
            pieces={
                key: PieceVectors(_pieces(prefixes.get(key, set()), shape), _pieces(substrings.get(key, set()), shape))
                for key in prefixes | substrings
            },
            combinations=ValueCombinations.of(shape, marks, self.spans) if marks else None,
        ).trimmed()


def _column_of(term: Term) -> ColumnKey:
    match term:
        case PresenceTerm():
            kind = PRESENT
        case RangeTerm():
            kind = NUMBER
        case TextTerm(how=how):
            kind = EQUALS if how == EQUAL else HOLDS
    return name_key(term.name) << 2 | kind


def _vector(texts: set[str], shape: BloomShape) -> Bloom:
    return Bloom.of(shape, set(map(fingerprint, texts)))


def _pieces(texts: set[str], shape: BloomShape) -> Pieces:
    return Pieces(_vector(texts, shape), sum({1 << (len(text) - 1) for text in texts}))


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


def joined(spans: Iterable[Span]) -> Ranges:
    """The same numbers as sub-ranges that do not overlap, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= math.nextafter(found[-1][1], math.inf):
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)
