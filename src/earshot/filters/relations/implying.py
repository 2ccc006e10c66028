"""Does one condition imply another? A yes is proof, a no may only mean that no proof was found.

Terms about one field or one node are compared by the values that meet them: ranges, equalities,
prefixes. Location paths are compared as tree patterns, by a homomorphism from the wanted pattern
into the known one: a `/` maps to a `/`, a `//` to any path downwards, a `*` to any name, and what a wanted
node asks must follow from what is known of the node it maps to. A term holds if it holds for any of
its values, so two terms about one field need not concern the same value.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import isnan
from typing import TypeVar

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
    Inside,
    Literal,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    StartsWith,
    Within,
)
from earshot.filters.language.values import COMPARE, NAN, moment, number, string_test, text_of, value_test
from earshot.filters.relations.normal_form import normal

BUDGET = 1_500
"A proof is given up after this many comparisons of two conditions."

EQ, NE = Comparison.EQ, Comparison.NE
LE, GE = Comparison.LE, Comparison.GE
Known = tuple[Condition, ...]
"Conditions that all hold at one node (or for one event)."
_SELF = LocationPath(False, (PathStep(Axis.CHILD, NodeKind.SELF),))


def implies(known: Iterable[Condition], wanted: Condition) -> bool:
    """True only if everything that meets all of `known` meets `wanted`; all in normal form."""
    return Proof(BUDGET).follows(tuple(known), wanted)


class Proof:
    """A search for proofs, and how many comparisons it has left; without any left the answer is no."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def follows(self, known: Known, wanted: Condition) -> bool:
        """Whether `wanted` follows from all of `known` together, at one node."""
        return self._follows(_facts(known), wanted)

    def _follows(self, facts: Known, wanted: Condition) -> bool:
        if self.left <= 0:
            return False
        if wanted in facts:
            return True
        match wanted:
            case Always():
                return True
            case And(terms):
                return all(self._follows(facts, term) for term in terms)
            case Or(terms) if any(self._follows(facts, term) for term in terms):
                return True
        return any(self._fact_gives(fact, facts, wanted) for fact in facts)

    def _fact_gives(self, fact: Condition, facts: Known, wanted: Condition) -> bool:
        self.left -= 1
        match fact, wanted:
            case Not(Always()), _:
                return True
            case Or(branches), _:
                if not all(_concerns(branch, wanted) for branch in branches):
                    return False  # a case that says nothing of it is proved by the other facts, or not at all
                others = tuple(other for other in facts if other is not fact)
                return all(self.follows((branch, *others), wanted) for branch in branches)
            case Not(denied), Not(unwanted):
                return self.follows((unwanted,), denied)
            case AnyItem(items, known), AnyItem(wanted_items, asked) if items == wanted_items:
                return self.follows((known,), asked)
            case Within(near), Within(far):
                return near <= far
            case Inside(small), Inside(large):
                return large.includes(small)
        if (field := _field(fact)) is not None and field == _field(wanted):
            return _value_follows(fact, wanted)
        if _is_at_node(fact) and _is_at_node(wanted):
            return _text_follows(fact, wanted)
        return self._leads_alike(fact, wanted)

    # Paths.

    def _leads_alike(self, fact: Condition, wanted: Condition) -> bool:
        """Whether the node that `fact` promises is one that `wanted` asks for."""
        there, asked = _unfolded(fact), _unfolded(wanted)
        if there is None or asked is None:
            return False
        (step, below), (wanted_step, wanted_below) = there, asked
        facts = tuple(predicate for predicate in step.predicates if not isinstance(predicate, PositionTest)) + below
        if (
            (wanted_step.axis is Axis.DESCENDANT or step.axis is Axis.CHILD)
            and self._step_serves(step, facts, wanted_step)
            and all(self.follows(facts, each) for each in wanted_below)
        ):
            return True
        # A `//` may also skip this node: what lies below it lies below where the path began.
        return wanted_step.axis is Axis.DESCENDANT and self.follows(facts, wanted)

    def _step_serves(self, step: PathStep, facts: Known, wanted: PathStep) -> bool:
        if step.kind is not wanted.kind or wanted.name not in ("*", step.name):
            return False
        counted = _up_to_last_position(wanted)
        if counted and (wanted.name != step.name or step.predicates[: len(counted)] != counted):
            return False  # a position counts the nodes that exactly this step and these predicates select
        return all(self.follows(facts, predicate) for predicate in wanted.predicates[len(counted) :])


def _concerns(fact: Condition, wanted: Condition) -> bool:
    """Whether a fact may be needed for a proof: both have one field, or paths that may meet, or are of one kind."""
    match fact, wanted:
        case ((And(terms) | Or(terms)), _):
            return any(_concerns(term, wanted) for term in terms)
        case _, (And(terms) | Or(terms)):
            return any(_concerns(fact, term) for term in terms)
        case ((Holds() | AnyItem()), _):
            return True
    if _field(fact) is not None or _field(wanted) is not None:
        return _field(fact) == _field(wanted)
    there, asked = _unfolded(fact), _unfolded(wanted)
    if there is None or asked is None:
        return type(fact) is type(wanted) or isinstance(fact, Contains | StartsWith)
    return asked[0].axis is Axis.DESCENDANT or asked[0].name in ("*", there[0].name)


def _facts(known: Known) -> Known:
    """What is known, term by term, with what follows directly."""
    facts: list[Condition] = []
    for condition in known:
        match condition:
            case And(terms):
                facts.extend(_facts(terms))
            case Holds() | AnyItem():
                needed = _facts((normal(loosened(condition)),))
                # An alternative would be taken apart, and then be found here again.
                facts.extend((condition, *(fact for fact in needed if not isinstance(fact, Or))))
            case Contains(LocationPath() as path) | StartsWith(LocationPath() as path) if path != _SELF:
                facts.extend((condition, path))  # a text that is not empty comes from a node
            case _:
                facts.append(condition)
    return tuple(dict.fromkeys(facts)) if len(facts) > 1 else tuple(facts)


def _unfolded(condition: Condition) -> tuple[PathStep, Known] | None:
    """A path, or a comparison with one, as its first step and what then holds at the step's node."""
    match condition:
        case LocationPath(steps=(step, *rest)) if step.kind is not NodeKind.SELF:
            return step, (LocationPath(False, tuple(rest)),) if rest else ()
        case Compare(LocationPath(steps=(step, *rest)), op, literal) if step.kind is not NodeKind.SELF:
            return step, (Compare(LocationPath(False, tuple(rest)) if rest else _SELF, op, literal),)
        case Contains(LocationPath(steps=(step, *rest)), literal) | StartsWith(
            LocationPath(steps=(step, *rest)), literal
        ) if _is_single(step):
            return step, (type(condition)(_SELF, literal),)
        case _:
            return None


def _is_single(step: PathStep) -> bool:
    """Whether the step selects at most one node, so that XPath's "first node" is any node."""
    return step.kind is NodeKind.ATTRIBUTE and step.axis is Axis.CHILD and step.name != "*"


def _up_to_last_position(step: PathStep) -> tuple[Condition, ...]:
    places = [place for place, predicate in enumerate(step.predicates) if isinstance(predicate, PositionTest)]
    return step.predicates[: places[-1] + 1] if places else ()


# One value, of a field or of a node.


def _field(condition: Condition) -> Field | None:
    match condition:
        case Compare(Field() as field) | Contains(Field() as field) | StartsWith(Field() as field) | Exists(field):
            return field
        case _:
            return None


def _is_at_node(condition: Condition) -> bool:
    match condition:
        case Compare(operand) | Contains(operand) | StartsWith(operand):
            return operand == _SELF
        case _:
            return False


def _text_follows(fact: Condition, wanted: Condition) -> bool:
    """Whether a node's text that meets one term meets the other: XPath, where a value is its text."""
    match fact, wanted:
        case Compare(_, Comparison.EQ, str() as text), _:
            return _meets(text, wanted)
        case _, Compare(_, Comparison.NE, str() as text):
            return not _meets(text, fact)
        case Compare(_, op, literal), Compare(_, wanted_op, wanted_literal):
            limit, wanted_limit = _limit(op, literal), _limit(wanted_op, wanted_literal)
            return not isnan(limit + wanted_limit) and _range_in(op, limit, wanted_op, wanted_limit)
        case _:
            return _part_follows(fact, wanted)


def _meets(text: str, condition: Condition) -> bool:
    match condition:
        case Compare(_, op, literal):
            return string_test(op, literal)(text)
        case Contains(_, part):
            return part in text
        case StartsWith(_, part):
            return text.startswith(part)
        case _:
            return False


def _limit(op: Comparison, literal: Literal) -> float:
    """The number XPath compares with; NaN where it compares texts."""
    if isinstance(literal, str):
        return NAN if op in (EQ, NE) else number(literal)
    return float(literal)


Ordered = TypeVar("Ordered", float, datetime)


def _range_in(op: Comparison, limit: Ordered, wanted_op: Comparison, wanted: Ordered) -> bool:
    """Whether everything that is `op limit` is `wanted_op wanted`."""
    match op, wanted_op:
        case Comparison.EQ, _:
            return COMPARE[wanted_op](limit, wanted)
        case ((Comparison.LT | Comparison.LE), (Comparison.LT | Comparison.LE | Comparison.NE)):
            strict = op is LE and wanted_op is not LE
            return limit < wanted if strict else limit <= wanted
        case ((Comparison.GT | Comparison.GE), (Comparison.GT | Comparison.GE | Comparison.NE)):
            strict = op is GE and wanted_op is not GE
            return limit > wanted if strict else limit >= wanted
        case Comparison.NE, Comparison.NE:
            return limit == wanted
        case _:
            return False


def _part_follows(fact: Condition, wanted: Condition) -> bool:
    match fact, wanted:
        case ((Contains(_, part) | StartsWith(_, part)), Contains(_, wanted_part)):
            return wanted_part in part
        case StartsWith(_, part), StartsWith(_, wanted_part):
            return part.startswith(wanted_part)
        case _:
            return False


def _value_follows(fact: Condition, wanted: Condition) -> bool:
    """Whether a field's value that meets one term meets the other. A value may be typed: a boolean is 1 and also
    "true", a time equals several texts. Where types could differ there is no proof."""
    match fact, wanted:
        case _, Exists():
            return not _value_meets(False, fact)  # false, which does not meet a bare name, could meet the term
        case Compare(_, op, bool() as truth), Compare(_, wanted_op, bool() as wanted_truth):
            return op is EQ and COMPARE[wanted_op](truth, wanted_truth)
        case Compare(_, op, float() as limit), Compare(_, wanted_op, float() as wanted_limit):
            return _range_in(op, limit, wanted_op, wanted_limit)
        case Compare(_, Comparison.EQ, str() as text), _ if _is_plain(text):
            return _value_meets(text, wanted)
        case Compare(_, op, str() as text), Compare(_, wanted_op, str() as wanted_text):
            return _time_follows(op, text, wanted_op, wanted_text)
        case _:
            return _part_follows(fact, wanted)


def _is_plain(text: str) -> bool:
    """Whether a value with this text compares alike as every type."""
    return moment(text) is None and text not in ("true", "false")


def _value_meets(value: str | bool, wanted: Condition) -> bool:
    match wanted:
        case Compare(_, op, literal):
            return value_test(op, literal)(value)
        case _:
            return _meets(text_of(value), wanted)


def _time_follows(op: Comparison, text: str, wanted_op: Comparison, wanted_text: str) -> bool:
    """Times in order: only a time is before or after a text that is not a number."""
    limit, wanted = moment(text), moment(wanted_text)
    if limit is None or wanted is None or op in (EQ, NE) or not isnan(number(text)):
        return False
    return _range_in(op, limit, wanted_op, wanted)
