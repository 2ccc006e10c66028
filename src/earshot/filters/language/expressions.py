"""XPath 1.0 expressions as values: what the parser reads before it is known how they are asked.

An expression that is a tree pattern becomes a `LocationPath` or a comparison with one (`lowering.py`), which the
index, the relations and the summaries take apart. Any other is kept whole and evaluated (`evaluation.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Constant:
    """A text or a number."""

    value: str | float


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of one of XPath's own functions."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """Operands with one operator between them: several for `or`, `and` and `|`, two for any other."""

    op: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Negative:
    """`-operand`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class AxisStep:
    """One step: along an axis, to nodes that pass a test (NAMED, NODE or TEXT) and then each predicate in turn."""

    axis: str
    test: str
    name: str = ""
    "Of a NAMED test; `*` for any."
    predicates: tuple[Expression, ...] = ()


NAMED: Final = "named"
NODE: Final = "node"
TEXT: Final = "text"


@dataclass(frozen=True, slots=True)
class PathExpression:
    """Steps from the document, from the context node, or from the nodes that another expression gives."""

    absolute: bool
    steps: tuple[AxisStep, ...]
    start: Expression | None = None


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Nodes of an expression in document order, narrowed by predicates: `(//a)[1]`."""

    nodes: Expression
    predicates: tuple[Expression, ...]


Expression = Constant | FunctionCall | Operation | Negative | AxisStep | PathExpression | Narrowed

AXES = (
    *("ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self"),
    *("following", "following-sibling", "parent", "preceding", "preceding-sibling", "self"),
)
REVERSE_AXES = frozenset(("ancestor", "ancestor-or-self", "preceding", "preceding-sibling"))

PRECEDENCE = (
    ("or",),
    ("and",),
    ("=", "!="),
    ("<=", ">=", "<", ">"),
    ("+", "-"),
    ("*", "div", "mod"),
)
"Operators, those that bind least first; the minus in front and then `|` bind tighter than all of them."
COMPARISONS = frozenset((*PRECEDENCE[2], *PRECEDENCE[3]))
ARITHMETIC = frozenset((*PRECEDENCE[4], *PRECEDENCE[5]))
NUMBER_FUNCTIONS = frozenset(
    ("position", "last", "count", "sum", "string-length", "number", "floor", "ceiling", "round")
)

ANYWHERE_BELOW = AxisStep("descendant-or-self", NODE)
"What the second slash of `//` stands for."
SELF = AxisStep("self", NODE)
PARENT = AxisStep("parent", NODE)


def is_nodes(expression: Expression) -> bool:
    """Whether the expression gives nodes."""
    return isinstance(expression, PathExpression | Narrowed) or (
        isinstance(expression, Operation) and expression.op == "|"
    )


def is_number(expression: Expression) -> bool:
    """Whether the expression gives a number; as a predicate it is then a position."""
    match expression:
        case Constant(value):
            return isinstance(value, float)
        case FunctionCall(name):
            return name in NUMBER_FUNCTIONS
        case Operation(op):
            return op in ARITHMETIC
        case _:
            return isinstance(expression, Negative)


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it that has the same context node: predicates are left out."""
    yield expression
    match expression:
        case FunctionCall(arguments=parts) | Operation(operands=parts):
            for part in parts:
                yield from parts_of(part)
        case Negative(inner) | Narrowed(nodes=inner) | PathExpression(start=inner) if inner is not None:
            yield from parts_of(inner)


def is_positional(predicate: Expression) -> bool:
    """Whether a predicate's answer depends on the node's position among the others."""
    return is_number(predicate) or any(
        isinstance(part, FunctionCall) and part.name in ("position", "last") for part in parts_of(predicate)
    )
