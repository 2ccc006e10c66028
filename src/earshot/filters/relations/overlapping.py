"""How much two filters have in common, judged by their structure.

Each filter is split into its constraints on each field or path. Where both filters have one, the share is that of
their ranges, areas or texts; where only one has, it is a guess at how many events pass. The shares multiply;
each alternative is paired with the nearest one of the other filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf, isnan, prod

from shapely.errors import GEOSException

from earshot.filters.language.canonical_text import condition_text, path_text
from earshot.filters.language.event_types import is_type_pattern
from earshot.filters.language.syntax import (
    Always,
    And,
    Approaching,
    Axis,
    Compare,
    Comparison,
    Condition,
    Exists,
    Field,
    Inside,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    Receding,
    TypedCondition,
    Within,
)
from earshot.filters.language.values import number
from earshot.geometry import Area

RANGE_SHARE, EQUALITY_SHARE, EXISTENCE_SHARE, OTHER_SHARE = 0.5, 0.2, 0.8, 0.5
"Guesses: the share of events that pass a term which the other filter does not have."


def overlap(a: TypedCondition, b: TypedCondition) -> float:
    """An estimate, in 0..1, of how much of the two filters' events is common to both; 1 for equal ones."""
    if a == b:
        return 1.0
    left, right = _profiles(a), _profiles(b)
    if not left or not right:
        return 0.0
    shares = [[_share(one, other) for other in right] for one in left]
    nearest = [max(row) for row in shares] + [max(column) for column in zip(*shares, strict=True)]
    return sum(nearest) / len(nearest)


@dataclass(slots=True)
class _Constraint:
    """What a conjunction asks of one field or path."""

    low: float = -inf
    high: float = inf
    text: str | None = None
    others: set[str] = field(default_factory=set)
    areas: list[Area] = field(default_factory=list)

    @property
    def is_range(self) -> bool:
        return self.low > -inf or self.high < inf

    def share_alone(self) -> float:
        """The share of events that pass, where the other filter asks nothing."""
        shares = [OTHER_SHARE] * (len(self.others) + len(self.areas))
        if self.text is not None or (self.is_range and self.low == self.high):
            shares.append(EQUALITY_SHARE)
        elif self.is_range:
            shares.append(RANGE_SHARE)
        return prod(shares) if shares else EXISTENCE_SHARE


Profile = dict[str, _Constraint]
"Constraints by field or path."


@lru_cache(maxsize=1 << 12)
def _profiles(filter: TypedCondition) -> tuple[Profile, ...]:
    """One profile for each alternative; not to be changed."""
    found = []
    condition = filter.condition
    for branch in condition.terms if isinstance(condition, Or) else (condition,):
        if branch == Not(Always()):
            continue
        profile: Profile = {}
        if filter.type is not None and is_type_pattern(filter.type):
            _ask(profile, "its type").others.add(filter.type)
        elif filter.type is not None:
            _ask(profile, "its type").text = filter.type
        for term in branch.terms if isinstance(branch, And) else (branch,):
            _note(profile, term, ())
        found.append(profile)
    return tuple(found)


def _ask(profile: Profile, key: str) -> _Constraint:
    return profile.setdefault(key, _Constraint())


def _note(profile: Profile, term: Condition, above: tuple[PathStep, ...]) -> None:
    """Enter a term, found at the node that the steps above lead to."""
    match term:
        case Always():
            pass
        case Exists(Field(name)):
            _ask(profile, name)
        case Compare(Field(name), op, literal):
            _note_comparison(_ask(profile, name), op, literal, term)
        case Compare(LocationPath(steps=steps), op, literal):
            key = _note_path(profile, steps, above)
            _note_comparison(_ask(profile, key), op, literal, term)
        case LocationPath(steps=steps):
            _note_path(profile, steps, above)
        case Within(distance_m):
            asked = _ask(profile, "the distance")
            asked.low, asked.high = 0.0, min(asked.high, distance_m)
        case Approaching() | Receding():
            _ask(profile, "the movement").text = condition_text(term)
        case Inside(area):
            _ask(profile, "the area").areas.append(area)
        case _:
            _ask(profile, _key(above)).others.add(condition_text(term))


def _note_path(profile: Profile, steps: tuple[PathStep, ...], above: tuple[PathStep, ...]) -> str:
    """Enter each step and its predicates; the key of the last one. The root counts by its name, the type."""
    for step in steps:
        if step.kind is not NodeKind.SELF:
            above = (*above, replace(step, predicates=()))
            if len(above) == 1 and step.axis is Axis.CHILD and step.name != "*":
                _ask(profile, "its type").text = step.name
            else:
                _ask(profile, _key(above))
            for predicate in step.predicates:
                _note(profile, predicate, above)
    return _key(above)


def _key(above: tuple[PathStep, ...]) -> str:
    return path_text(LocationPath(True, above))


def _note_comparison(asked: _Constraint, op: Comparison, literal: object, term: Condition) -> None:
    limit = literal if isinstance(literal, float) else None
    match op:
        case Comparison.EQ if limit is not None:
            asked.low, asked.high = max(asked.low, limit), min(asked.high, limit)
        case Comparison.EQ if isinstance(literal, str):
            asked.text = literal
        case Comparison.LT | Comparison.LE if limit is not None:
            asked.high = min(asked.high, limit)
        case Comparison.GT | Comparison.GE if limit is not None:
            asked.low = max(asked.low, limit)
        case _:
            asked.others.add(condition_text(term))


def _share(a: Profile, b: Profile) -> float:
    return prod(_key_share(a.get(key), b.get(key)) for key in sorted({*a, *b}))


def _key_share(a: _Constraint | None, b: _Constraint | None) -> float:
    if a is None or b is None:
        alone = a or b
        return alone.share_alone() if alone else 1.0
    return _value_share(a, b) * _set_share(a.others, b.others) * _area_share(a.areas, b.areas)


def _value_share(a: _Constraint, b: _Constraint) -> float:
    if a.text is not None and b.text is not None:
        return float(a.text == b.text)
    if a.text is None and b.text is None:
        return _range_share(a, b)
    texts, others = (a, b) if a.text is not None else (b, a)
    value = number(texts.text or "")
    if not others.is_range:
        return EQUALITY_SHARE
    return EQUALITY_SHARE if not isnan(value) and others.low <= value <= others.high else 0.0


def _range_share(a: _Constraint, b: _Constraint) -> float:
    """The common part of two ranges, relative to their union; an open end extends as far as the bounds are large."""
    if not a.is_range and not b.is_range:
        return 1.0
    if not a.is_range or not b.is_range:
        return RANGE_SHARE
    if a.low > b.high or b.low > a.high:
        return 0.0
    ends = (a.low, a.high, b.low, b.high)
    unit = max(abs(end) for end in ends if abs(end) < inf) or 1.0  # the sums below stay finite
    a_low, a_high, b_low, b_high = (end / unit for end in ends)
    bounds = [bound for bound in (a_low, a_high, b_low, b_high) if abs(bound) < inf]
    reach = max(max(bounds) - min(bounds), *map(abs, bounds)) or 1.0
    first, last = min(bounds) - reach, max(bounds) + reach
    common = min(a_high, b_high, last) - max(a_low, b_low, first)
    together = max(min(a_high, last), min(b_high, last)) - min(max(a_low, first), max(b_low, first))
    if together == 0.0:
        return 1.0
    return common / together if common > 0.0 else EQUALITY_SHARE


def _set_share(a: Iterable[str], b: Iterable[str]) -> float:
    one, other = set(a), set(b)
    return (1 + len(one & other)) / (1 + len(one | other))


def _area_share(a: list[Area], b: list[Area]) -> float:
    if not a and not b:
        return 1.0
    if not a or not b:
        return OTHER_SHARE
    left, right = a[0].polygon(), b[0].polygon()
    try:
        together = left.union(right).area
        share = left.intersection(right).area / together if together > 0 else float(left.equals(right))
    except GEOSException:  # areas too large for the geometry library's numbers
        return OTHER_SHARE
    return float(share) if 0.0 <= share <= 1.0 else OTHER_SHARE
