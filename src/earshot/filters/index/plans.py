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
from functools import lru_cache

import msgspec

from earshot.filters.filter import Filter
from earshot.filters.index.event_values import (
    Between,
    SameBoolean,
    SameNumber,
    SameText,
    SimpleTest,
)
from earshot.filters.index.path_moves import (
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
from earshot.filters.language.alternatives import (
    SOMEWHERE,
    TEXT_NODES,
    Alternatives,
    InDocument,
    Source,
    arrived,
)
from earshot.filters.language.syntax import (
    And,
    Axis,
    Compare,
    Comparison,
    Condition,
    Field,
    Literal,
    LocationPath,
    NodeKind,
    PathStep,
    PositionTest,
)
from earshot.filters.language.values import interval, moment


class Plan(msgspec.Struct, frozen=True):
    """One alternative of a filter."""

    moves: PathMoves | None = None
    "A path the document must have."
    tests: tuple[SimpleTest, ...] = ()
    "At most one of a kind and source."
    needs: tuple[Source, ...] = ()
    "Sources that must have a value, whatever it is; a test already asks for a value from its own source."
    exact: bool = True

    @property
    def is_path_alone(self) -> bool:
        """Whether the plan is a path and nothing else."""
        return self.moves is not None and self.exact and not self.tests and not self.needs


_UNKNOWN = Plan(exact=False)
_EQ, _SELF, _ELEMENT, _DESCENDANT = Comparison.EQ, NodeKind.SELF, NodeKind.ELEMENT, Axis.DESCENDANT
"Found here in a fifth of the time: every term and step of every new filter asks for them."


def plans_of(filter: Filter) -> tuple[Plan, ...]:
    """The filter's alternatives, each once; none where it never holds. Made once for all indexes."""
    plans: tuple[Plan, ...] | None = filter._plans
    if plans is None:
        plans = tuple(_plans.of(filter.condition))
        object.__setattr__(filter, "_plans", plans)
    return plans


class _Plans(Alternatives[Plan]):
    def of(self, condition: Condition, here: InDocument = SOMEWHERE) -> list[Plan]:
        """The plans of a condition. Comparisons of fields that must all hold, the usual filter, are read in one go."""
        plan = _of_comparisons(condition.terms) if isinstance(condition, And) else None
        return super().of(condition, here) if plan is None else [plan]

    def joined(self, several: tuple[Plan, ...]) -> Plan:
        return several[0] if len(several) == 1 else _together(several)

    def present(self, source: Source) -> Plan:
        return Plan(needs=(source,), exact=False) if _is_gathered(source) else _UNKNOWN

    def compared(self, source: Source, op: Comparison, literal: Literal) -> Plan:
        test = _test(source, op, literal) if _is_gathered(source) else None
        if test is None:
            return self.present(source)
        return Plan(tests=(test,), exact=isinstance(source, str))

    def of_path(self, path: LocationPath, here: InDocument) -> list[Plan]:
        """Of an absolute path its moves, with the predicates that are guards."""
        if not path.absolute or any(step.kind is _SELF for step in path.steps):
            return super().of_path(path, here)
        moves = tuple([_move_of(step) for step in path.steps])
        if not any(step.predicates for step in path.steps):
            return [Plan(moves)]
        inner: list[list[Plan]] = []
        for step in path.steps:
            here = arrived(step, here)
            inner += [
                self.of(predicate, here)
                for predicate, guard in zip(step.predicates, _guards(step), strict=True)
                if guard is None
            ]
        return self.all([[Plan(moves, exact=not inner)], *inner])


_plans = _Plans(Plan(), _UNKNOWN)


def _is_gathered(source: Source) -> bool:
    """Whether `EventValues` has the source's values."""
    return isinstance(source, str) or (source != SOMEWHERE and source.attribute != TEXT_NODES)


def _test(source: Source, op: Comparison, literal: Literal) -> SimpleTest | None:
    if isinstance(literal, str):
        is_text = isinstance(source, InDocument) or moment(literal) is None
        return SameText(source, literal) if op is _EQ and is_text else None
    if isinstance(literal, bool):
        return SameBoolean(source, literal) if op is _EQ else None
    numbers = interval(op, literal)
    if numbers is None or not math.isfinite(literal):
        return None
    return SameNumber(source, literal) if op is _EQ else Between(source, *numbers)


def _move_of(step: PathStep) -> PathMove:
    if step.kind is _ELEMENT and not step.predicates:
        return _move(step.axis is _DESCENDANT, step.name)
    guards = _guards(step)
    label = attribute(step.name) if step.kind is NodeKind.ATTRIBUTE else step.name
    if step.kind is NodeKind.TEXT:
        label = TEXT
    return _move(step.axis is _DESCENDANT, label, tuple(guard for guard in guards if guard is not None))


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


_Tests = dict[tuple[type[SimpleTest], Source], SimpleTest]
"One test of a kind and source."


def _of_comparisons(terms: tuple[Condition, ...]) -> Plan | None:
    """The plan of comparisons of fields that must all hold; None where there is any other term."""
    exact = True
    tests: _Tests = {}
    needs: dict[Source, None] = {}
    for term in terms:
        if not isinstance(term, Compare) or not isinstance(term.operand, Field):
            return None
        name = term.operand.name
        test = _test(name, term.op, term.literal)
        if test is None:
            needs[name] = None
            exact = False
        elif not _include(test, tests):
            exact = False
    return Plan(None, tuple(tests.values()), tuple(needs), exact)


def _together(plans: tuple[Plan, ...]) -> Plan:
    """All of the plans as one."""
    moves: PathMoves | None = None
    exact = True
    tests: _Tests = {}
    needs: dict[Source, None] = {}
    for plan in plans:
        exact = exact and plan.exact and (plan.moves is None or moves is None)
        moves = moves or plan.moves
        for test in plan.tests:
            exact = _include(test, tests) and exact
        for source in plan.needs:
            needs[source] = None
    return Plan(moves, tuple(tests.values()), tuple(needs), exact)


def _include(test: SimpleTest, tests: _Tests) -> bool:
    """Add a test that must hold too; False where the tests no longer say all."""
    kind = (type(test), test.source)
    known = tests.setdefault(kind, test)
    if known is test:
        return True
    if isinstance(known, Between) and isinstance(test, Between):
        low, high = max(known.low, test.low), min(known.high, test.high)
        in_order = low <= high
        # Bounds in the wrong order: only several values can meet both tests; their span includes both.
        tests[kind] = Between(test.source, low, high) if in_order else Between(test.source, high, low)
        return in_order
    return known == test
