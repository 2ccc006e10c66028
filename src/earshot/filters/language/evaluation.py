"""XPath 1.0 expressions, compiled: an expression becomes a function of its context (node, position, size).

Values are those of XPath: nodes (numbers in document order), texts, numbers and booleans, converted as the
recommendation says and, where it leaves room, as libxml2 does. A predicate that does not depend on positions is
evaluated once for each node, and a path from the document once. What remains is at worst quadratic in the document,
so one evaluation has a budget (`nodes.BUDGET`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Any, cast

from earshot.events import Element
from earshot.filters.language.expressions import (
    ANYWHERE_BELOW,
    COMPARISONS,
    NODE,
    AxisStep,
    Constant,
    Expression,
    FunctionCall,
    Narrowed,
    Negative,
    Operation,
    PathExpression,
    is_number,
    is_positional,
)
from earshot.filters.language.nodes import DocumentNodes, Evaluation, Numbers, axis_of_many, axis_of_one
from earshot.filters.language.syntax import Comparison
from earshot.filters.language.values import COMPARE, NAN, number

Value = bool | float | str | Numbers
Compiled = Callable[[Evaluation, int, int, int], Any]
"Evaluation, context node, its position, and how many nodes there are."

_numbers = count()
"For what is remembered: each compiled part has its own number."


def evaluated(expression: Expression, document: Element) -> bool:
    """XPath's boolean() of the expression, asked of a document."""
    return as_boolean(expression)(Evaluation(DocumentNodes(document)), 0, 1, 1)


def as_boolean(expression: Expression) -> Callable[[Evaluation, int, int, int], bool]:
    """The expression, converted to a boolean."""
    match expression:
        case Operation("or", operands):
            tests = list(map(as_boolean, operands))
            return lambda *context: any(test(*context) for test in tests)
        case Operation("and", operands):
            tests = list(map(as_boolean, operands))
            return lambda *context: all(test(*context) for test in tests)
        case FunctionCall("not", (inner,)):
            test = as_boolean(inner)
            return lambda *context: not test(*context)
    value = compiled(expression)
    return lambda *context: boolean_of(value(*context))


def as_number(expression: Expression) -> Callable[[Evaluation, int, int, int], float]:
    value = compiled(expression)
    return lambda evaluation, *context: number_from(evaluation, value(evaluation, *context))


def as_text(expression: Expression) -> Callable[[Evaluation, int, int, int], str]:
    value = compiled(expression)
    return lambda evaluation, *context: text_from(evaluation, value(evaluation, *context))


def compiled(expression: Expression) -> Compiled:
    """The expression, as a function that gives its value."""
    match expression:
        case Constant(value):
            return lambda *_: value
        case Operation("or" | "and"):
            return as_boolean(expression)
        case Operation("|", operands):
            several = list(map(compiled, operands))
            return lambda *context: sorted(set().union(*(nodes(*context) for nodes in several)))
        case Operation(op, (left, right)) if op in COMPARISONS:
            return _comparison(Comparison(op), compiled(left), compiled(right))
        case Operation(op, (left, right)):
            return _arithmetic(op, as_number(left), as_number(right))
        case Negative(operand):
            positive = as_number(operand)
            return lambda *context: -positive(*context)
        case Narrowed(nodes, predicates):
            return _narrowed(compiled(nodes), predicates)
        case PathExpression():
            return _path(expression)
        case FunctionCall(name, arguments):
            return _FUNCTIONS[name](*arguments)
        case _:
            raise TypeError(f"{expression} is not an expression")


# Conversions.


def boolean_of(value: Value) -> bool:
    """XPath's boolean(): NaN is false, and so are no nodes."""
    return bool(value) and not (isinstance(value, float) and math.isnan(value))


def number_from(evaluation: Evaluation, value: Value) -> float:
    """XPath's number()."""
    if isinstance(value, bool | float):
        return float(value)
    return number(text_from(evaluation, value))


def text_from(evaluation: Evaluation, value: Value) -> str:
    """XPath's string(): of nodes, that of the first."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_as_text(value)
    return evaluation.text(value[0]) if value else ""


def number_as_text(value: float) -> str:
    """A number as libxml2 writes it: about fifteen digits, with an exponent where it is large or small."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0.0:
        return "0"
    if value.is_integer() and -(2**31) < value < 2**31 - 1:
        return str(int(value))
    if 1e-5 <= abs(value) <= 1e9:
        place = int(math.log10(abs(value)))
        text = f"{value:.{15 - place - 1 if place > 0 else 15 - place}f}"
        return text.rstrip("0").rstrip(".")
    mantissa, exponent = f"{value:.14e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"


# Comparisons and arithmetic.


def _comparison(op: Comparison, left: Compiled, right: Compiled) -> Compiled:
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op.value, op.value)

    def holds(evaluation: Evaluation, *context: int) -> bool:
        one, other = left(evaluation, *context), right(evaluation, *context)
        if _are_nodes(one) and _are_nodes(other):
            return _nodes_compared(evaluation, op, one, other)
        if _are_nodes(one):
            return _nodes_and_value(evaluation, op, one, other)
        if _are_nodes(other):
            return _nodes_and_value(evaluation, Comparison(mirrored), other, one)
        return _values_compared(evaluation, op, one, other)

    return holds


def _are_nodes(value: Value) -> bool:
    return not isinstance(value, bool | float | str)


def _values_compared(evaluation: Evaluation, op: Comparison, one: Value, other: Value) -> bool:
    if op not in (Comparison.EQ, Comparison.NE):
        return COMPARE[op](number_from(evaluation, one), number_from(evaluation, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return COMPARE[op](boolean_of(one), boolean_of(other))
    if isinstance(one, float) or isinstance(other, float):
        return COMPARE[op](number_from(evaluation, one), number_from(evaluation, other))
    return COMPARE[op](one, other)


def _nodes_and_value(evaluation: Evaluation, op: Comparison, nodes: Numbers, value: Value) -> bool:
    """Whether the comparison with a value holds for any node; a boolean is compared with whether there are nodes."""
    if isinstance(value, bool):
        return _values_compared(evaluation, op, bool(nodes), value)
    compare = COMPARE[op]
    if isinstance(value, str) and op in (Comparison.EQ, Comparison.NE):
        return any(compare(evaluation.text(node), value) for node in nodes)
    limit = number_from(evaluation, value)
    return any(compare(number(evaluation.text(node)), limit) for node in nodes)


def _nodes_compared(evaluation: Evaluation, op: Comparison, some: Numbers, others: Numbers) -> bool:
    """Whether the comparison holds for any node of the one and any node of the other."""
    if not some or not others:
        return False
    left, right = set(map(evaluation.text, some)), set(map(evaluation.text, others))
    if op is Comparison.EQ:
        return not left.isdisjoint(right)
    if op is Comparison.NE:
        return len(left | right) > 1
    low, high = list(filter(_is_number, map(number, left))), list(filter(_is_number, map(number, right)))
    if not low or not high:
        return False
    if op in (Comparison.LT, Comparison.LE):
        return COMPARE[op](min(low), max(high))
    return COMPARE[op](max(low), min(high))


def _is_number(value: float) -> bool:
    return value == value


def _arithmetic(op: str, left: Callable[..., float], right: Callable[..., float]) -> Compiled:
    operation = _ARITHMETIC[op]
    return lambda *context: operation(left(*context), right(*context))


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if one != one or one == 0.0 or other != other:
        return NAN
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def _remainder(one: float, other: float) -> float:
    if other == 0.0 or math.isinf(one) or one != one or other != other:
        return NAN
    return math.fmod(one, other)


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "div": _quotient,
    "mod": _remainder,
}


# Paths.

Selection = Callable[[Evaluation, Numbers], Numbers]


def _path(path: PathExpression) -> Compiled:
    selections = [_selection(step) for step in _with_descendants(path.steps)]

    def select(evaluation: Evaluation, nodes: Numbers) -> Numbers:
        for selection in selections:
            if not nodes:
                return ()
            nodes = selection(evaluation, nodes)
        return nodes

    if path.start is not None:
        start = compiled(path.start)
        return lambda evaluation, *context: select(evaluation, start(evaluation, *context))
    if not path.absolute:
        return lambda evaluation, node, _position, _size: select(evaluation, (node,))
    key = next(_numbers)

    def from_document(evaluation: Evaluation, *_context: int) -> Numbers:
        known = evaluation.memo.setdefault(key, {})
        if 0 not in known:
            known[0] = select(evaluation, (0,))
        return cast(Numbers, known[0])

    return from_document


def _with_descendants(steps: tuple[AxisStep, ...]) -> list[AxisStep]:
    """The steps, with `//a` as one step where no position is counted among siblings."""
    found: list[AxisStep] = []
    for step in steps:
        counts = any(map(is_positional, step.predicates))
        if found and found[-1] == ANYWHERE_BELOW and step.axis == "child" and not counts:
            found[-1] = AxisStep("descendant", step.test, step.name, step.predicates)
        else:
            found.append(step)
    return found


def _selection(step: AxisStep) -> Selection:
    """A step as a function from nodes to nodes, in document order."""
    if not any(map(is_positional, step.predicates)):
        reached, tests = axis_of_many(step), [_remembered(predicate) for predicate in step.predicates]

        def select(evaluation: Evaluation, nodes: Numbers) -> Numbers:
            found = reached(evaluation, nodes)
            for test in tests:
                found = [node for node in found if test(evaluation, node)]
            return found

        return select
    reached_of_one, narrow = axis_of_one(step), _narrowing(step.predicates)

    def select_counting(evaluation: Evaluation, nodes: Numbers) -> Numbers:
        found = [narrow(evaluation, reached_of_one(evaluation, node)) for node in nodes]
        return sorted(set().union(*found))

    return select_counting


def _remembered(predicate: Expression) -> Callable[[Evaluation, int], bool]:
    """A predicate that does not depend on positions, evaluated once for each node."""
    test, key = as_boolean(predicate), next(_numbers)

    def holds(evaluation: Evaluation, node: int) -> bool:
        known = evaluation.memo.setdefault(key, {})
        found = known.get(node)
        if found is None:
            evaluation.spend(1)
            found = known[node] = test(evaluation, node, 1, 1)
        return bool(found)

    return holds


def _narrowing(predicates: tuple[Expression, ...]) -> Selection:
    """Predicates in turn, each of which may count the nodes that passed those before it."""
    tests = [_position_test(predicate) for predicate in predicates]

    def narrow(evaluation: Evaluation, nodes: Numbers) -> Numbers:
        for test in tests:
            size = len(nodes)
            evaluation.spend(size)
            nodes = [node for position, node in enumerate(nodes, 1) if test(evaluation, node, position, size)]
        return nodes

    return narrow


def _position_test(predicate: Expression) -> Callable[[Evaluation, int, int, int], bool]:
    if is_number(predicate):
        wanted = as_number(predicate)
        return lambda evaluation, node, position, size: wanted(evaluation, node, position, size) == position
    if is_positional(predicate):
        return as_boolean(predicate)
    remembered = _remembered(predicate)
    return lambda evaluation, node, _position, _size: remembered(evaluation, node)


def _narrowed(nodes: Compiled, predicates: tuple[Expression, ...]) -> Compiled:
    narrow = _narrowing(predicates)
    return lambda evaluation, *context: narrow(evaluation, nodes(evaluation, *context))


# Functions.

_BLANKS = re.compile("[ \t\r\n]+")


def _of_texts(function: Callable[..., Value]) -> Callable[..., Compiled]:
    """A function of texts; without an argument, of the context node's text."""

    def build(*arguments: Expression) -> Compiled:
        texts = [as_text(argument) for argument in arguments or (_CONTEXT,)]
        return lambda *context: function(*(text(*context) for text in texts))

    return build


def _of_numbers(function: Callable[[float], float]) -> Callable[..., Compiled]:
    def build(argument: Expression) -> Compiled:
        value = as_number(argument)
        return lambda *context: function(value(*context))

    return build


def _number(*arguments: Expression) -> Compiled:
    return as_number(*(arguments or (_CONTEXT,)))


def _count(argument: Expression) -> Compiled:
    nodes = compiled(argument)
    return lambda *context: float(len(nodes(*context)))


def _sum(argument: Expression) -> Compiled:
    nodes = compiled(argument)
    return lambda evaluation, *context: sum(
        (number(evaluation.text(node)) for node in nodes(evaluation, *context)), 0.0
    )


def _name(*arguments: Expression) -> Compiled:
    nodes = compiled(*(arguments or (_CONTEXT,)))

    def name(evaluation: Evaluation, *context: int) -> str:
        found = nodes(evaluation, *context)
        return evaluation.nodes.names[found[0]] if found else ""

    return name


def _substring(text: str, first: float, length: float) -> str:
    """The characters at the positions from `first` on that are below `first + length`, counted from 1."""
    start, end = _rounded(first), _rounded(first) + _rounded(length)
    if start != start or end != end:
        return ""
    low, high = max(start, 1.0) - 1.0, min(end, len(text) + 1.0) - 1.0
    return text[int(low) : int(high)] if low < high else ""


def _part(*arguments: Expression) -> Compiled:
    text, first = as_text(arguments[0]), as_number(arguments[1])
    length = as_number(arguments[2]) if len(arguments) == 3 else lambda *_: math.inf
    return lambda *context: _substring(text(*context), first(*context), length(*context))


def _rounded(value: float) -> float:
    return value if not math.isfinite(value) else float(math.floor(value + 0.5)) if value % 1 != 0.5 else value + 0.5


def _ceiling(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


def _floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


@lru_cache(maxsize=256)
def _translation(old: str, new: str) -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for index, sign in enumerate(old):
        table.setdefault(ord(sign), new[index] if index < len(new) else None)
    return table


_CONTEXT = PathExpression(False, (AxisStep("self", NODE),))

_FUNCTIONS: dict[str, Callable[..., Compiled]] = {
    "true": lambda: lambda *_: True,
    "false": lambda: lambda *_: False,
    "position": lambda: lambda _evaluation, _node, position, _size: float(position),
    "last": lambda: lambda _evaluation, _node, _position, size: float(size),
    "not": lambda argument: as_boolean(FunctionCall("not", (argument,))),
    "boolean": lambda argument: as_boolean(argument),
    "number": _number,
    "string": _of_texts(lambda text: text),
    "count": _count,
    "sum": _sum,
    "local-name": _name,
    "name": _name,
    "floor": _of_numbers(_floor),
    "ceiling": _of_numbers(_ceiling),
    "round": _of_numbers(_rounded),
    "concat": _of_texts(lambda *texts: "".join(texts)),
    "contains": _of_texts(lambda text, part: part in text),
    "starts-with": _of_texts(lambda text, part: text.startswith(part)),
    "substring": _part,
    "substring-before": _of_texts(lambda text, part: text.partition(part)[0] if part and part in text else ""),
    "substring-after": _of_texts(lambda text, part: text.partition(part)[2] if part else text),
    "string-length": _of_texts(lambda text: float(len(text))),
    "normalize-space": _of_texts(lambda text: _BLANKS.sub(" ", text).strip(" ")),
    "translate": _of_texts(lambda text, old, new: text.translate(_translation(old, new))),
}
