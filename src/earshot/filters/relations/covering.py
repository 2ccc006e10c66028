"""Does one filter include another, and which filter includes both?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from earshot.errors import FilterSyntaxError
from earshot.filters.language import where
from earshot.filters.language.canonical_text import condition_text
from earshot.filters.language.event_types import type_includes
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
from earshot.filters.relations.implying import Proof, implies
from earshot.filters.relations.normal_form import conjunction, disjunction

MAX_ALTERNATIVES = 16
"A merged filter with more alternatives is loosened to what they have in common."
MAX_TERMS = 16
"At most this many common terms are kept of a loosened filter."

MERGE_BUDGET = 20_000
"Uniting, and then loosening, makes at most this many comparisons of two conditions; what is not yet proved stays out."

Branch = frozenset[Condition]
"A conjunction, as the set of its terms."


def covers(general: TypedCondition, special: TypedCondition) -> bool:
    """True only if every event that meets `special` meets `general`. False where that cannot be proved."""
    same_types = special.type is not None and general.type is not None and type_includes(general.type, special.type)
    if general.type is not None and not same_types:
        of_type = _of_type(general.type)
        if special.type is not None or of_type is None or not implies((special.condition,), of_type):
            return False
    known = [special.condition]
    if special.type is not None and (of_type := _of_type(special.type)) is not None:
        known.append(of_type)
    return implies(known, general.condition)


def _of_type(type: str) -> Condition | None:
    """That an event is of a type, as a condition: the root element's name is the type. None where no element
    can have that name."""
    return LocationPath(True, (PathStep(Axis.CHILD, NodeKind.ELEMENT, type),)) if is_name(type) else None


def merge(a: TypedCondition, b: TypedCondition) -> TypedCondition:
    """A condition that covers both: exactly their union while that is short, else what both have in common."""
    type = _type_of_both(a.type, b.type)
    proof = Proof(MERGE_BUDGET)
    branches = _without_covered([*_branches(a, type), *_branches(b, type)], proof)
    branches = _without_covered(_united(branches), proof)
    if len(branches) <= MAX_ALTERNATIVES and _reads_back(exact := _factored(branches)):
        return TypedCondition(exact, type)
    loose = _in_common(branches, Proof(MERGE_BUDGET))
    return TypedCondition(loose if _reads_back(loose) else Always(), type)


def _type_of_both(a: str | None, b: str | None) -> str | None:
    """The type that includes both, if one of them does."""
    if a is None or b is None:
        return None
    return a if type_includes(a, b) else b if type_includes(b, a) else None


def _branches(filter: TypedCondition, type: str | None) -> Iterable[Branch]:
    """The filter's alternatives; each includes the type where the merged filter has none."""
    shared = {*_terms(filter.condition)} - {Always()}
    if type is None and filter.type is not None and (of_type := _of_type(filter.type)) is not None:
        shared.add(of_type)
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


def _without_covered(branches: Sequence[Branch], proof: Proof) -> list[Branch]:
    kept: dict[Branch, Condition] = {}
    for branch in branches:
        whole = conjunction(branch)
        if not any(proof.follows(tuple(branch), other) for other in kept.values()):
            kept = {other: condition for other, condition in kept.items() if not proof.follows(tuple(other), whole)}
            kept[branch] = whole
    return list(kept)


def _factored(branches: Sequence[Branch]) -> Condition:
    """What all branches share, once, and the rest of each as an alternative."""
    common = frozenset.intersection(*branches)
    return conjunction((*common, disjunction(conjunction(branch - common) for branch in branches)))


def _in_common(branches: Sequence[Branch], proof: Proof) -> Condition:
    """The terms that follow from every branch: of ranges on one field, the widest bounds."""
    candidates = sorted({term for branch in branches for term in branch}, key=condition_text)
    common = [term for term in candidates if all(proof.follows(tuple(branch), term) for branch in branches)]
    for term in list(common):
        if proof.follows(tuple(other for other in common if other != term), term):
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


def _united(branches: Sequence[Branch]) -> list[Branch]:
    """The branches, with any two that differ only in ranges of one field that meet replaced by one."""
    united: list[Branch] = []
    waiting = list(branches)
    while waiting:
        a = waiting.pop(0)
        for place, b in enumerate(united):
            if (one := _one_for(a, b)) is not None:
                del united[place]
                waiting.append(one)
                break
        else:
            united.append(a)
    return united


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
