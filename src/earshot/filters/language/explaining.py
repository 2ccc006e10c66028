"""Why an event meets a filter, or which of its terms it fails, in words.

Every explanation is one line: a verdict, then each term that decided it with what was found, as in
`it does not match: price < 20 failed (price is 25); category = "jazz" held`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from earshot.events import Event
from earshot.filters.language.canonical_text import condition_text, expression_text, path_text
from earshot.filters.language.evaluation import compiled, text_from
from earshot.filters.language.event_types import type_matches
from earshot.filters.language.expressions import (
    COMPARISONS,
    Constant,
    Expression,
    Operation,
    PathExpression,
    is_nodes,
)
from earshot.filters.language.matching import Viewer, closing_m_s, nodes_of, predicate
from earshot.filters.language.nodes import Evaluation
from earshot.filters.language.parser import quoted
from earshot.filters.language.paths import Memo, Node, node_test, selector, string_value
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Approaching,
    Compare,
    Condition,
    Contains,
    Exists,
    Field,
    FieldPlace,
    Holds,
    Inside,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    Receding,
    StartsWith,
    Within,
)
from earshot.filters.language.values import text_of
from earshot.geometry import Position

_SHOWN = 3
"At most this many values or alternatives are shown."

Verdict = Callable[[Condition], bool]
Finding = Callable[[Condition], str]


def explanation(condition: Condition, type: str | None, event: Event, viewer: Viewer | None) -> str:
    """Why the event meets a condition on events of a type (None: of any), or which term it fails."""
    if type is not None and not type_matches(type, event.type):
        return one_line(f"it does not match: its type is {event.type}, not {type}")
    of_type = [] if type is None else [f"its type is {event.type}"]

    def holds(term: Condition) -> bool:
        return predicate(term)(event, viewer)

    def finding(term: Condition) -> str:
        return _event_finding(term, event, viewer)

    met = holds(condition)
    verdict = "it matches" if met else "it does not match"
    return one_line(f"{verdict}: {'; '.join([*of_type, *_reasons(condition, met, holds, finding)])}")


def one_line(text: str) -> str:
    """The text with every sign that does not print written as an escape: a value may hold line breaks."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _reasons(condition: Condition, met: bool, holds: Verdict, finding: Finding) -> list[str]:
    """The terms that decided, failed ones first."""
    match condition:
        case And(terms):
            failed = [term for term in terms if not holds(term)]
            reasons = [reason for term in failed for reason in _reasons(term, False, holds, finding)]
            return reasons + [_described(term, True, holds, finding) for term in terms if term not in failed]
        case Or(terms) if met:
            return [next(_described(term, True, holds, finding) for term in terms if holds(term))]
        case Or(terms):
            tried = [_described(term, False, holds, finding) for term in terms[:_SHOWN]]
            more = len(terms) - len(tried)
            return [f"none of {len(terms)} alternatives held: {', '.join(tried)}{f', and {more} more' if more else ''}"]
        case _:
            return [_described(condition, met, holds, finding)]


def _described(condition: Condition, met: bool, holds: Verdict, finding: Finding) -> str:
    """One term, whether it held, and what was found."""
    match condition:
        case Always():
            return "every event meets true"
        case Not(Always()):
            return "no event meets false"
        case Not(term):
            inner = "; ".join(_reasons(term, not met, holds, finding))
            return f"{condition_text(condition)} {'held' if met else 'failed'} ({inner})"
        case And() | Or():
            return f"({'; '.join(_reasons(condition, met, holds, finding))})"
        case _:
            found = finding(condition)
            return f"{condition_text(condition)} {'held' if met else 'failed'}{f' ({found})' if found else ''}"


def _event_finding(condition: Condition, event: Event, viewer: Viewer | None) -> str:
    """What the event has that a term is about."""
    match condition:
        case Exists(Field(name)) if name == event.type and not event.fields.get(name):
            return f'{name} alone asks for a value of that name; the event type is Filter.of_type("{name}")'
        case Compare(Field(name)) | Contains(Field(name)) | StartsWith(Field(name)) | Exists(Field(name)):
            return _shown(name, [text_of(value) for value in event.fields.get(name, ())])
        case AnyItem(Field(name), inner):
            return _item_finding(name, inner, event)
        case Within() | Approaching() | Receding() | Inside():
            return _place_finding(condition, event, viewer)
        case FieldPlace(Field(name), term):
            places = [value for value in event.fields.get(name, ()) if isinstance(value, Position)]
            if not places:
                return f"the event has no position called {name}"
            there = Event(event.type, position=places[0])
            return _place_finding(term, there, viewer).replace("the event is at", f"{name} is")
        case LocationPath(steps=steps):
            return _path_finding(steps, event.document)
        case Holds(expression):
            return _expression_finding(expression, event)
        case _:
            return ""


def _item_finding(name: str, condition: Condition, event: Event) -> str:
    """How many items there are, and what decided in the first that meets the condition, else in the first."""
    items = event.items(name)
    if not items:
        return f"there is no {name}"
    meets = predicate(condition)
    met = next((item for item in items if meets(item, None)), None)
    shown = met or items[0]
    reasons = _reasons(
        condition, met is not None, lambda term: predicate(term)(shown, None), lambda t: _event_finding(t, shown, None)
    )
    which = f"of {len(items)}, one:" if met is not None else f"of {len(items)}, none; in the first,"
    return f"{which} {'; '.join(reasons)}"


def _expression_finding(expression: Expression, event: Event) -> str:
    """What the operands of a comparison are, or the first step of a path that selects nothing."""

    def value(part: Expression) -> Any:
        return compiled(part)(Evaluation(nodes_of(event)), 0, 1, 1)

    match expression:
        case Operation(op, operands) if op in COMPARISONS:
            asked = [operand for operand in operands if not isinstance(operand, Constant)]
            return " and ".join(_operand_finding(operand, value(operand), event) for operand in asked)
        case PathExpression(absolute, steps, start):
            for done in range(len(steps)):
                if not value(PathExpression(absolute, steps[: done + 1], start)):
                    before = PathExpression(absolute, steps[:done], start)
                    missing = expression_text(steps[done])
                    return f"{expression_text(before)} has no {missing}" if done else f"there is no {missing}"
    return ""


def _operand_finding(operand: Expression, value: Any, event: Event) -> str:
    evaluation = Evaluation(nodes_of(event))
    nodes = value if is_nodes(operand) else ()
    texts = [evaluation.text(node) for node in nodes] if is_nodes(operand) else [text_from(evaluation, value)]
    return _shown(expression_text(operand), texts)


def _place_finding(condition: Condition, event: Event, viewer: Viewer | None) -> str:
    if event.position is None:
        return "the event has no position"
    if isinstance(condition, Inside):
        return f"the event is at {event.position}"
    if viewer is None:
        return "that needs the consumer's position, and none was given"
    if isinstance(condition, Within):
        return f"the distance is {viewer.position.distance_to(event.position):.6g} m"
    closing = closing_m_s(event, viewer)
    if closing == 0.0:
        return "the distance stays the same"
    return f"the distance {'decreases' if closing > 0 else 'increases'} by {abs(closing):.3g} m/s"


def _shown(what: str, values: list[str]) -> str:
    """`price is 25`, or that there is none."""
    if not values:
        return f"there is no {what}"
    shown = [_value(value) for value in values[:_SHOWN]]
    more = len(values) - len(shown)
    return f"{what} is {' and '.join(shown)}{f' and {more} more' if more else ''}"


def _value(text: str) -> str:
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return short if short.replace(".", "", 1).lstrip("-").isdigit() else quoted(short)


# XPath: which step or predicate of a path failed.


def _path_finding(steps: tuple[PathStep, ...], start: Node) -> str:
    """What the steps selected, or the step or predicate that selected nothing."""
    for done, step in enumerate(steps):
        before = steps[:done]
        bare = replace(step, predicates=())
        candidates = selector((*before, bare))(start, Memo(start))
        if not candidates:
            return _nothing(before, step)
        for tried, condition in enumerate(step.predicates):
            narrowed = replace(step, predicates=step.predicates[: tried + 1])
            passed = selector((*before, narrowed))(start, Memo(start))
            if not passed:
                return _predicate_finding(condition, candidates, _plain((*before, step)))
            candidates = passed
    if not steps[-1].predicates:
        return ""
    return "; ".join(_held(steps[-1].predicates, candidates[0]))


def _nothing(before: tuple[PathStep, ...], step: PathStep) -> str:
    """That a step found nothing, after the steps before it found something."""
    missing = _plain((step,))
    return f"{_plain(before)} has no {missing}" if before else f"there is no {missing}"


def _plain(steps: tuple[PathStep, ...]) -> str:
    """Steps without their predicates, as a path's text."""
    return path_text(LocationPath(False, tuple(replace(step, predicates=()) for step in steps)))


def _predicate_finding(condition: Condition, candidates: list[Node], where: str) -> str:
    """Why none of the candidates passed a predicate: what was found in the first of them."""
    count = f"of {len(candidates)} {where}, none passed; in the first, " if len(candidates) > 1 else ""
    if isinstance(condition, PositionTest):
        return f"there {'is' if len(candidates) == 1 else 'are'} {len(candidates)} {where}"
    return count + "; ".join(_node_reasons(condition, False, candidates[0]))


def _held(conditions: Iterable[Condition], node: Node) -> list[str]:
    conditions = [condition for condition in conditions if not isinstance(condition, PositionTest)]
    return [reason for condition in conditions for reason in _node_reasons(condition, True, node)]


def _node_reasons(condition: Condition, met: bool, node: Node) -> list[str]:
    return _reasons(
        condition,
        met,
        lambda term: node_test(term)(node, Memo(node)),
        lambda term: _node_finding(term, node),
    )


def _node_finding(condition: Condition, node: Node) -> str:
    """What a node has that a condition on it is about."""
    match condition:
        case Compare(LocationPath() as path) | Contains(LocationPath() as path) | StartsWith(LocationPath() as path):
            values = [string_value(found) for found in selector(path.steps)(node, Memo(node))]
            what = "it" if path.steps[0].kind is NodeKind.SELF else path_text(path)
            return _shown(what, values)
        case LocationPath(steps=steps):
            return _path_finding(steps, node)
        case _:
            return ""
