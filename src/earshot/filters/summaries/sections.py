"""One event type's part of a summary: the paper's structures (`structures.py`) held together.

The association list (EAL) says which columns a row needs; the arithmetic and string constraints (AEC, SEC) say
whether a column holds for an event. `combinations`, which the paper does not have, keeps which values belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeVar

from earshot.filters.summaries.bloom import BloomShape, fingerprint, name_key
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
from earshot.filters.summaries.structures import (
    LONGEST_PIECE,
    AssociationList,
    NumberConstraint,
    TextConstraint,
    needed,
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
    with_few_split,
)


@dataclass(frozen=True)
class TypeSection:
    """What the subscriptions to one event type want, pooled."""

    eal: AssociationList
    aec: dict[int, NumberConstraint] = field(default_factory=dict)
    "By the name's key."
    sec: dict[int, TextConstraint] = field(default_factory=dict)
    "By the name's key."
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
        return self.eal.least == 0

    def passes(self, facts: KnownFacts) -> bool:
        """Whether an event of this type, known by these facts, may be wanted."""
        if self.unconstrained:
            return True
        holding = 0
        for index, one in enumerate(self.eal.columns):
            if self._holds(one, facts.values(one >> 2)):
                holding |= 1 << index
        if self.eal.rows is None:
            return holding.bit_count() >= self.eal.least
        combinations = self.combinations
        return any(combinations is None or combinations.hold(row, facts) for row in self.eal.met(holding))

    def _holds(self, one: ColumnKey, values: Values | None) -> bool:
        if values is None:
            return False
        key, kind = one >> 2, one & 3
        if kind == PRESENT or values.anything:
            return True
        if kind == NUMBER:
            return self.aec[key].holds(values)
        return self.sec[key].holds(values) if kind == HOLDS else self.sec[key].equals(values)

    @property
    def _combinations_lost(self) -> bool:
        return self.combinations is None and any(one & 3 in (NUMBER, EQUALS) for one in self.eal.columns)

    def merged(self, other: TypeSection) -> TypeSection:
        """What either wants."""
        if self.unconstrained or other.unconstrained:
            return EVERYTHING
        combinations = None
        if None not in (self.eal.rows, other.eal.rows) and not (self._combinations_lost or other._combinations_lost):
            given = [one.combinations for one in (self, other) if one.combinations is not None]
            combinations = reduce(ValueCombinations.merged, given) if given else None
        return TypeSection(
            self.eal.merged(other.eal, with_combinations=combinations is not None),
            _united(self.aec, other.aec, NumberConstraint.merged),
            _united(self.sec, other.sec, TextConstraint.merged),
            combinations,
        ).trimmed()

    def without_combinations(self) -> TypeSection:
        """The same without its combinations, as in the paper."""
        if self.combinations is None or self.eal.rows is None:
            return self
        return replace(self, eal=AssociationList.of(needed(self.eal.rows)), combinations=None).trimmed()

    def without_rows(self) -> TypeSection:
        """The same without its association list."""
        return replace(self, eal=self.eal.without_rows(), combinations=None)

    def folded(self) -> TypeSection:
        """Every name's vectors in half their bits."""
        return replace(self, sec={key: one.folded() for key, one in self.sec.items()})

    def bridged(self, most: int) -> TypeSection:
        """At most `most` sub-ranges for each name."""
        return replace(self, aec={key: one.bridged(most) for key, one in self.aec.items()})

    def trimmed(self) -> TypeSection:
        """Without the constraints that no row asks for."""
        if self.eal.rows is None:
            return self
        used = set(self.eal.columns)
        sec = {key: _asked_for(one, key, used) for key, one in self.sec.items()}
        return replace(
            self,
            aec={key: one for key, one in self.aec.items() if key << 2 | NUMBER in used},
            sec={key: one for key, one in sec.items() if one != _NO_TEXTS},
            combinations=self.combinations.trimmed({one >> 2 for one in used})
            if self.combinations is not None and asks_for_values(tuple(used))
            else None,
        )


EVERYTHING = TypeSection(AssociationList((), frozenset(((),)), 0))
_NO_TEXTS = TextConstraint()

Kept = TypeVar("Kept")


def _asked_for(texts: TextConstraint, key: int, used: set[ColumnKey]) -> TextConstraint:
    pieces = key << 2 | HOLDS in used
    return TextConstraint(
        texts.equal if key << 2 | EQUALS in used else None,
        texts.prefix if pieces else None,
        texts.substring if pieces else None,
    )


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
        self.combined_spans: dict[int, list[Span]] = {}
        "The ranges of the combinations; some are widened to all numbers."
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
            few = with_few_split(spans)
            for key, several in few.items():
                self.combined_spans.setdefault(key, []).extend(several)
            self.marks.setdefault(row, set()).update(marks_of(row, texts, few))

    def section(self, shape: BloomShape) -> TypeSection:
        rows = needed(self.rows, with_combinations=True)
        if () in rows:
            return EVERYTHING
        marks = {mark for row in rows for mark in self.marks.get(row, ())}
        equal, prefix, substring = (self.texts[how] for how in (EQUAL, PREFIX, SUBSTRING))
        return TypeSection(
            AssociationList.of(rows),
            {key: NumberConstraint.of(spans) for key, spans in self.spans.items()},
            {
                key: TextConstraint.of(equal.get(key), prefix.get(key), substring.get(key), shape)
                for key in equal | prefix | substring
            },
            ValueCombinations.of(shape, marks, self.combined_spans) if marks else None,
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
