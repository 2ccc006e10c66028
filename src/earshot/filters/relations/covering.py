"""Does one filter include another, and which filter includes both?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from earshot.errors import FilterSyntaxError
from earshot.filters.language import where
from earshot.filters.language.canonical_text import condition_text
from earshot.filters.language.parser import is_name
from earshot.filters.language.syntax import (
    Always,
    And,
    Axis,
    Compare,
    Comparison,
    Condition,
    Field,
    LocationPath,
    NodeKind,
    Or,
    PathStep,
    TypedCondition,
)
from earshot.filters.relations.implying import implies
from earshot.filters.relations.normal_form import conjunction, disjunction

MAX_ALTERNATIVES = 16
"A merged filter with more alternatives is loosened to what they have in common."
MAX_TERMS = 16
"At most this many common terms are kept of a loosened filter."

Branch = frozenset[Condition]
"A conjunction, as the set of its terms."


def covers(general: TypedCondition, special: TypedCondition) -> bool:
    """True only if every event that meets `special` meets `general`. False where that cannot be proved."""
    if general.type is not None and special.type is None and not implies((special.condition,), _of_type(general.type)):
        return False
    if general.type is not None and special.type not in (None, general.type):
        return False
    known = [special.condition]
    if special.type is not None:
        known.append(_of_type(special.type))
    return implies(known, general.condition)


def _of_type(type: str) -> Condition:
    """That an event is of a type, as a condition: the root element's name is the type."""
    return LocationPath(True, (PathStep(Axis.CHILD, NodeKind.ELEMENT, type),))


def merge(a: TypedCondition, b: TypedCondition) -> TypedCondition:
    """A condition that covers both: exactly their union while that is short, else what both have in common."""
    type = a.type if a.type == b.type else None
    branches = _without_covered([*_branches(a, type), *_branches(b, type)])
    branches = _united(branches)
    exact = _factored(branches)
    if len(branches) <= MAX_ALTERNATIVES and _reads_back(exact):
        return TypedCondition(exact, type)
    loose = _in_common(branches)
    return TypedCondition(loose if _reads_back(loose) else Always(), type)


def _branches(filter: TypedCondition, type: str | None) -> Iterable[Branch]:
    """The filter's alternatives; each includes the type where the merged filter has none."""
    shared = {*_terms(filter.condition)} - {Always()}
    if type is None and filter.type is not None and is_name(filter.type):
        shared.add(_of_type(filter.type))
    longest = max((term for term in shared if isinstance(term, Or)), key=lambda term: len(term.terms), default=None)
    if longest is None:
        return [frozenset(shared)]
    return [frozenset({*(shared - {longest}), *_terms(branch)}) for branch in longest.terms]


def _terms(condition: Condition) -> tuple[Condition, ...]:
    return condition.terms if isinstance(condition, And) else (condition,)


def _reads_back(condition: Condition) -> bool:
    """Whether the condition's text can be parsed: it may exceed the parser's limits."""
    try:
        where.parse(condition_text(condition))
    except FilterSyntaxError:
        return False
    return True


def _without_covered(branches: Sequence[Branch]) -> list[Branch]:
    kept: list[Branch] = []
    for branch in branches:
        if not any(implies(branch, conjunction(other)) for other in kept):
            kept = [other for other in kept if not implies(other, conjunction(branch))]
            kept.append(branch)
    return kept


def _factored(branches: Sequence[Branch]) -> Condition:
    """What all branches share, once, and the rest of each as an alternative."""
    common = frozenset.intersection(*branches)
    return conjunction((*common, disjunction(conjunction(branch - common) for branch in branches)))


def _in_common(branches: Sequence[Branch]) -> Condition:
    """The terms that follow from every branch: of ranges on one field, the widest bounds."""
    candidates = sorted({term for branch in branches for term in branch}, key=condition_text)
    common = [term for term in candidates if all(implies(branch, term) for branch in branches)]
    for term in list(common):
        if implies([other for other in common if other != term], term):
            common.remove(term)
    return conjunction(common[:MAX_TERMS])


# Ranges that meet are united: price in 10..20 or price in 15..30 is price in 10..30.


@dataclass(frozen=True, slots=True)
class _Range:
    """The numbers between two bounds; a bound is a number and whether it is left out."""

    low: tuple[float, bool] = (-inf, True)
    high: tuple[float, bool] = (inf, True)

    def meets(self, other: _Range) -> bool:
        """Whether there is no gap between the two."""
        return not (_before(self, other) or _before(other, self))

    def united(self, other: _Range) -> _Range:
        return _Range(min(self.low, other.low), max(self.high, other.high, key=lambda end: (end[0], not end[1])))

    def terms(self, field: Field) -> list[Condition]:
        (low, above), (high, below) = self.low, self.high
        bounds: list[Condition] = []
        if low > -inf:
            bounds.append(Compare(field, Comparison.GT if above else Comparison.GE, low))
        if high < inf:
            bounds.append(Compare(field, Comparison.LT if below else Comparison.LE, high))
        return bounds


def _before(a: _Range, b: _Range) -> bool:
    """Whether `a` ends before `b` begins, with a gap."""
    return a.high[0] < b.low[0] or (a.high[0] == b.low[0] and a.high[1] and b.low[1])


def _united(branches: list[Branch]) -> list[Branch]:
    """The branches, with any two that differ only in ranges of one field that meet replaced by one."""
    for a, b in combinations(branches, 2):
        if (one := _one_for(a, b)) is not None:
            rest = [branch for branch in branches if branch is not a and branch is not b]
            return _united(_without_covered([*rest, one]))
    return branches


def _one_for(a: Branch, b: Branch) -> Branch | None:
    fields = {term.operand for term in a ^ b if isinstance(term, Compare)}
    if len(fields) != 1:
        return None
    (field,) = fields
    left, right = _range(a - b), _range(b - a)
    if not isinstance(field, Field) or left is None or right is None or not left.meets(right):
        return None
    bounds = left.united(right).terms(field)
    return (a & b) | frozenset(bounds) if bounds else None


def _range(terms: Branch) -> _Range | None:
    """The range the terms give; None where they are not one lower and one upper bound at most."""
    found: dict[str, tuple[float, bool]] = {}
    for term in terms:
        match term:
            case Compare(_, (Comparison.GT | Comparison.GE) as op, float() as number) if "low" not in found:
                found["low"] = (number, op is Comparison.GT)
            case Compare(_, (Comparison.LT | Comparison.LE) as op, float() as number) if "high" not in found:
                found["high"] = (number, op is Comparison.LT)
            case Compare(_, Comparison.EQ, float() as number) if not found:
                found = {"low": (number, False), "high": (number, False)}
            case _:
                return None
    return _Range(**found) if found else None
