"""What the index can look up of a filter: its alternatives, each a path and simple tests that must all hold.

::

    category = "jazz" and price < 20         ->  one plan: SameText, Between; exact
    speed > 10 or alarm = true               ->  two plans; exact
    /CD[category="jazz"]/track               ->  one plan: the path /CD/track, SameText; to be checked
    price < 20 and not approaching           ->  one plan: Between; to be checked

Every event the filter matches meets at least one plan. The converse is true of an exact
plan, for events that have no field twice; any other plan only gives a candidate, and the filter itself decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from weakref import ref

import msgspec

from earshot.filters.filter import Filter
from earshot.filters.index.event_values import (
    Between,
    InDocument,
    SameBoolean,
    SameNumber,
    SameText,
    SimpleTest,
    Source,
)
from earshot.filters.index.prefix_tree import (
    ANY,
    OWN_TEXT,
    POSITION,
    POSITION_OF_ALL,
    TEXT,
    Guard,
    PathMove,
    PathMoves,
    attribute,
)
from earshot.filters.language.lowering import loosened
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    Holds,
    Literal,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    StartsWith,
)
from earshot.filters.language.values import interval, moment

MOST_PLANS = 16
"A part of a filter with more alternatives than this is checked instead of looked up."


class Plan(msgspec.Struct, frozen=True):
    """One alternative of a filter."""

    moves: PathMoves | None = None
    "A path the document must have."
    tests: tuple[SimpleTest, ...] = ()
    "At most one of a kind and source."
    needs: tuple[Source, ...] = ()
    "Sources that must have a value, those of the tests among them."
    exact: bool = True

    @property
    def is_path_alone(self) -> bool:
        """Whether the plan is a path and nothing else."""
        return self.moves is not None and self.exact and not self.needs


_ANYTHING = Plan()
_UNKNOWN = Plan(exact=False)


class _Planned(ref[Filter]):
    """A filter's plans, kept as long as the filter exists."""

    __slots__ = ("key", "plans")
    key: int
    plans: tuple[Plan, ...]


_planned: dict[int, _Planned] = {}
"By the filter's identity: hashing a filter costs a third of planning it."


def plans_of(filter: Filter) -> tuple[Plan, ...]:
    """The filter's alternatives, each once; none where it never holds. Made once for all indexes."""
    known = _planned.get(id(filter))
    if known is None:
        known = _Planned(filter, _forget)
        known.key = id(filter)
        known.plans = tuple(dict.fromkeys(_alternatives(filter.condition, ANY)))
        _planned[known.key] = known
    return known.plans


def _forget(planned: ref[Filter]) -> None:
    assert isinstance(planned, _Planned)
    del _planned[planned.key]


def _alternatives(condition: Condition, here: str) -> list[Plan]:
    """`here` is the name of the element a predicate is asked of."""
    match condition:
        case Compare(Field(name), op, literal):
            return [_compared_field(name, op, literal)]
        case And(terms):
            return _all([_alternatives(term, here) for term in terms])
        case Or(terms):
            found = [plan for term in terms for plan in _alternatives(term, here)]
            return found if len(found) <= MOST_PLANS else [_UNKNOWN]
        case LocationPath(absolute=True, steps=steps) if all(step.kind is not NodeKind.SELF for step in steps):
            inner = [
                _alternatives(predicate, _name(step))
                for step in steps
                for predicate, guard in zip(step.predicates, _guards(step), strict=True)
                if guard is None
            ]
            return _all([[Plan(moves=tuple(map(_move_of, steps)), exact=not inner)], *inner])
        case LocationPath(absolute=False):
            return _walked(condition, here)
        case Compare(LocationPath() as path, op, literal):
            return _compared_path(path, op, literal, here)
        case Contains(LocationPath() as path, literal) | StartsWith(LocationPath() as path, literal) if literal:
            return _walked(path, here)
        case Contains(Field(name), _) | StartsWith(Field(name), _) | Exists(Field(name)):
            return [_present(name)]
        case Holds() | AnyItem():
            return _all([[_UNKNOWN], _alternatives(loosened(condition), here)])
        case Always():
            return [_ANYTHING]
        case Not(Always()):
            return []
        case _:
            return [_UNKNOWN]


def _present(source: Source) -> Plan:
    return Plan(needs=(source,), exact=False)


def _tested(test: SimpleTest, exact: bool) -> Plan:
    return Plan(tests=(test,), needs=(test.source,), exact=exact)


def _compared_field(name: str, op: Comparison, literal: Literal) -> Plan:
    if isinstance(literal, bool):
        return _tested(SameBoolean(name, literal), exact=True) if op is Comparison.EQ else _present(name)
    if isinstance(literal, float):
        test = _numeric(name, op, literal)
        return _present(name) if test is None else _tested(test, exact=True)
    if op is Comparison.EQ and moment(literal) is None:
        return _tested(SameText(name, literal), exact=True)
    return _present(name)


def _compared_path(path: LocationPath, op: Comparison, literal: Literal, here: str) -> list[Plan]:
    walked = _walked(path, here)
    source = _end(path, here)
    if source is None:
        return walked
    if isinstance(literal, float):
        test = _numeric(source, op, literal)
    else:
        test = SameText(source, str(literal)) if op is Comparison.EQ else None
    return walked if test is None else _all([walked, [_tested(test, exact=False)]])


def _numeric(source: Source, op: Comparison, literal: float) -> SimpleTest | None:
    numbers = interval(op, literal)
    if numbers is None or not math.isfinite(literal):
        return None
    return SameNumber(source, literal) if op is Comparison.EQ else Between(source, *numbers)


def _walked(path: LocationPath, here: str) -> list[Plan]:
    """What a path inside a predicate needs: something of each name along it, and its own predicates."""
    parts = [[_UNKNOWN]]
    for index in range(len(path.steps)):
        source = _end(LocationPath(False, path.steps[: index + 1]), here)
        if source is not None:
            parts.append([_present(source)])
        step = path.steps[index]
        parts += [_alternatives(predicate, _name(step)) for predicate in step.predicates]
    return _all(parts)


def _name(step: PathStep) -> str:
    """The name of the elements a step selects; "*" for any name, or where it selects other nodes."""
    return step.name if step.kind is NodeKind.ELEMENT else ANY


def _end(path: LocationPath, here: str) -> InDocument | None:
    """The source of the path's values; None where its names do not determine it."""
    last = path.steps[-1] if path.steps else None
    if last is None or last.kind is NodeKind.SELF:
        return None if here == ANY else InDocument(here)
    if last.name == ANY or last.kind is NodeKind.TEXT:
        return None
    if last.kind is NodeKind.ELEMENT:
        return InDocument(last.name)
    if last.axis is Axis.DESCENDANT:
        return InDocument(ANY, last.name)
    return InDocument(path.steps[-2].name if len(path.steps) > 1 else here, last.name)


def _move_of(step: PathStep) -> PathMove:
    guards = _guards(step)
    label = attribute(step.name) if step.kind is NodeKind.ATTRIBUTE else step.name
    if step.kind is NodeKind.TEXT:
        label = TEXT
    return _move(step.axis is Axis.DESCENDANT, label, tuple(guard for guard in guards if guard is not None))


_move = lru_cache(maxsize=4096)(PathMove)
"Many paths have the same few moves, and share them."


def _guards(step: PathStep) -> list[Guard | None]:
    """Each predicate as a guard, where it is a test on the element itself."""
    if step.kind is not NodeKind.ELEMENT:
        return [None] * len(step.predicates)
    found = [_guard(predicate) for predicate in step.predicates]
    match step.predicates:
        case (PositionTest(op, number), *_):  # one that comes later counts only what passed before it
            found[0] = Guard(POSITION_OF_ALL if step.name == ANY else POSITION, number, op)
    return found


def _guard(predicate: Condition) -> Guard | None:
    match predicate:
        case LocationPath(False, (PathStep(Axis.CHILD, NodeKind.TEXT, "", ()),)):
            return Guard(OWN_TEXT)
        case Compare(LocationPath(False, (PathStep(Axis.CHILD, NodeKind.TEXT, "", ()),)), Comparison.EQ, literal):
            return Guard(OWN_TEXT, literal)
        case LocationPath(False, (PathStep(Axis.CHILD, NodeKind.ATTRIBUTE, name, ()),)) if name != ANY:
            return Guard(name)
        case Compare(
            LocationPath(False, (PathStep(Axis.CHILD, NodeKind.ATTRIBUTE, name, ()),)), Comparison.EQ, literal
        ) if name != ANY:
            return Guard(name, literal)
        case _:
            return None


def _all(parts: Iterable[list[Plan]]) -> list[Plan]:
    """The product of the parts' alternatives; a part that would make too many is left to be checked."""
    kept: list[list[Plan]] = []
    count = 1
    for part in parts:
        if count * len(part) > MOST_PLANS:
            part = [_UNKNOWN]
        count *= len(part)
        kept.append(part)
    return [_together(plans) for plans in product(*kept)]


def _together(plans: tuple[Plan, ...]) -> Plan:
    """All of the plans as one."""
    if len(plans) == 1:
        return plans[0]
    moves: PathMoves | None = None
    exact = True
    tests: dict[tuple[type[SimpleTest], Source], SimpleTest] = {}
    needs: dict[Source, None] = {}
    for plan in plans:
        exact = exact and plan.exact and (plan.moves is None or moves is None)
        moves = moves or plan.moves
        for test in plan.tests:
            kind = (type(test), test.source)
            known = tests.setdefault(kind, test)
            if known is test:
                continue
            if isinstance(known, Between) and isinstance(test, Between):
                low, high = max(known.low, test.low), min(known.high, test.high)
                # Bounds in the wrong order: only several values can meet both tests; their span includes both.
                exact = exact and low <= high
                tests[kind] = Between(test.source, min(low, high), max(low, high))
            else:
                exact = exact and known == test
        for source in plan.needs:
            needs[source] = None
    return Plan(moves, tuple(tests.values()), tuple(needs), exact)
