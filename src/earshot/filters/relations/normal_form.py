"""One form for conditions that obviously mean the same, so that equal filters compare and hash equal.

Conjunctions and disjunctions are flat, sorted by their text and without repeats; constants and
double negations are resolved; `[a][b]` and `[a and b]` are one; XPath's `price < "20"` is
`price < 20`; an area's reference point is its centre. Nothing here changes what a condition matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isnan

import msgspec

from earshot.filters.language.canonical_text import condition_text
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Compare,
    Comparison,
    Condition,
    Contains,
    Field,
    Inside,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    StartsWith,
    Within,
)
from earshot.filters.language.values import moment, number
from earshot.geometry import ORIGIN, Area, Polygon, Position

ALWAYS = Always()
NEVER = Not(ALWAYS)


def normal(condition: Condition) -> Condition:
    """The condition's normal form."""
    match condition:
        case And(terms):
            return conjunction(map(normal, terms))
        case Or(terms):
            return disjunction(map(normal, terms))
        case Not(term):
            inner = normal(term)
            return inner.term if isinstance(inner, Not) else Not(inner)
        case LocationPath():
            found = _path(condition)
            if found is None:
                return NEVER
            return ALWAYS if not found.steps or found.steps[0].kind is NodeKind.SELF else found
        case Compare():
            return _comparison(condition)
        case Contains(operand, literal) | StartsWith(operand, literal):
            if isinstance(operand, Field):
                return condition
            path = _path(operand)
            if literal == "":
                return ALWAYS
            return NEVER if path is None else type(condition)(path, literal)
        case AnyItem(field, inner):
            asked = normal(inner)
            return NEVER if asked == NEVER else AnyItem(field, asked)
        case Within(distance_m):
            return Within(float(distance_m))
        case Inside(area):
            return Inside(_centred(area))
        case _:
            return condition


def conjunction(terms: Iterable[Condition]) -> Condition:
    """All of the terms, each in normal form."""
    found = {part for term in terms for part in (term.terms if isinstance(term, And) else (term,))}
    found.discard(ALWAYS)
    if NEVER in found:
        return NEVER
    return _one_or(And, found, ALWAYS)


def disjunction(terms: Iterable[Condition]) -> Condition:
    """Any of the terms, each in normal form."""
    found = {part for term in terms for part in (term.terms if isinstance(term, Or) else (term,))}
    found.discard(NEVER)
    if ALWAYS in found:
        return ALWAYS
    return _one_or(Or, found, NEVER)


def _one_or(kind: type[And] | type[Or], terms: set[Condition], empty: Condition) -> Condition:
    if len(terms) > 1:
        return kind(tuple(sorted(terms, key=condition_text)))
    return terms.pop() if terms else empty


def _comparison(condition: Compare) -> Condition:
    operand, op, literal = condition.operand, condition.op, condition.literal
    if isinstance(literal, (int, float)) and not isinstance(literal, bool):
        literal = float(literal) + 0.0
    elif isinstance(literal, str) and op not in (Comparison.EQ, Comparison.NE):
        value = number(literal)
        if not isnan(value) and (isinstance(operand, LocationPath) or moment(literal) is None):
            literal = value + 0.0
    if isinstance(operand, LocationPath):
        path = _path(operand)
        return NEVER if path is None else Compare(path, op, literal)
    return Compare(operand, op, literal)


def _path(path: LocationPath) -> LocationPath | None:
    """The path with its predicates in normal form; None where it never selects anything."""
    if not any(step.predicates for step in path.steps):
        return path
    steps: list[PathStep] = []
    for step in path.steps:
        predicates = list(_predicates(step.predicates))
        if NEVER in predicates:
            return None
        steps.append(replace(step, predicates=tuple(predicates)))
    return LocationPath(path.absolute, tuple(steps))


def _predicates(predicates: tuple[Condition, ...]) -> Iterator[Condition]:
    """Conjuncts sorted by their text, but never moved past a position, which counts what precedes it."""
    run: list[Condition] = []
    for predicate in predicates:
        if isinstance(predicate, PositionTest):
            yield from _conjuncts(run)
            yield PositionTest(predicate.op, float(predicate.number) + 0.0)
            run = []
        else:
            run.append(normal(predicate))
    yield from _conjuncts(run)


def _conjuncts(run: list[Condition]) -> tuple[Condition, ...]:
    joined = conjunction(run)
    if joined == ALWAYS:
        return ()
    return joined.terms if isinstance(joined, And) else (joined,)


def _centred(area: Area) -> Area:
    """The same area with its reference point at its centre (of a polygon: at the plane's origin)."""
    shape = area.shape
    if isinstance(shape, Polygon):
        if area.at == ORIGIN:
            return area
        x, y = area.at.x_m, area.at.y_m
        rings = [tuple((cx + x, cy + y) for cx, cy in ring) for ring in (shape.corners, *shape.holes)]
        return Area(Polygon(rings[0], tuple(rings[1:])))
    if shape.reference == ORIGIN:
        return area
    at = Position(area.at.x_m - shape.reference.x_m, area.at.y_m - shape.reference.y_m)
    return Area(msgspec.structs.replace(shape, reference=ORIGIN), at)
