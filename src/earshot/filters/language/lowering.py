"""XPath expressions to conditions: tree patterns where an expression is one, and whole expressions elsewhere.

A tree pattern leads downwards, from the document or from a node, by `/` and `//`, with conditions on the way; the
index, the relations and the summaries take it apart. `//a[local-name() = "b"]`, `a/child::b`, `count(b) > 0` and
`a/b/..` are patterns too, written differently. What is none (a sibling, an ancestor, a computed value) becomes
`Holds`, which is evaluated whole; `loosened` is a pattern that holds wherever it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from earshot.events import Element
from earshot.filters.language.evaluation import evaluated
from earshot.filters.language.expressions import (
    ANYWHERE_BELOW,
    COMPARISONS,
    NAMED,
    NODE,
    PARENT,
    AxisStep,
    Constant,
    Expression,
    FunctionCall,
    Narrowed,
    Negative,
    Operation,
    PathExpression,
    is_nodes,
    is_number,
    is_positional,
    parts_of,
)
from earshot.filters.language.parser import MIRRORED, is_name
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
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    StartsWith,
    leaves,
)

ALWAYS = Always()
NEVER = Not(ALWAYS)
_SELF = LocationPath(False, (PathStep(Axis.CHILD, NodeKind.SELF),))
_NO_NODES = PathExpression(True, (AxisStep("self", NAMED, "*"),))
"It selects nothing: the document is not an element."
_ANY_EVENT = Element("", {}, (Element("a"),))


def condition(expression: Expression) -> Condition:
    """The expression as a condition on the document."""
    found = _lowered(expression, _at_document)
    assert found is not None, "what is no pattern is kept whole"
    return found


Lowering = Callable[[Expression], Condition | None]


def _lowered(expression: Expression, at: Lowering) -> Condition | None:
    """The expression with `and`, `or` and `not` as conditions; `at` lowers their operands. None where it cannot."""
    match expression:
        case Operation("or" | "|", operands):
            return _joined(Or, operands, at)
        case Operation("and", operands):
            return _joined(And, operands, at)
        case FunctionCall("not", (inner,)):
            found = _lowered(inner, at)
            return None if found is None else Not(found)
        case FunctionCall("boolean", (inner,)) if not is_number(inner):
            return _lowered(inner, at)
        case _:
            return at(expression)


def _joined(kind: type[And] | type[Or], operands: tuple[Expression, ...], at: Lowering) -> Condition | None:
    terms = [_lowered(operand, at) for operand in operands]
    found = tuple(term for term in terms if term is not None)
    return kind(found) if len(found) == len(terms) else None


def _at_document(expression: Expression) -> Condition:
    match expression:
        case _ if is_number(expression):
            expression = FunctionCall("boolean", (expression,))  # written as a predicate, a number is a position
        case PathExpression(True, (AxisStep("self", "node", _, (inner,)),)) if _is_closed(inner):
            return condition(inner)
        case Operation("=" | "!=" | "<" | "<=" | ">" | ">="):
            return _compared_with_document(expression)
    found = _pattern(expression)
    return Holds(expression) if found is None or not _is_at_document(found) else found


def _is_at_document(found: Condition) -> bool:
    return isinstance(found, Always | Not) or (isinstance(found, LocationPath) and found.absolute)


def _is_closed(expression: Expression) -> bool:
    """Whether the expression does not depend on a context node, position or size."""
    return not is_positional(expression) and all(
        part.absolute or part.start is not None
        if isinstance(part, PathExpression)
        else not (isinstance(part, FunctionCall) and not part.arguments and part.name not in ("true", "false"))
        for part in parts_of(expression)
    )


def _compared_with_document(expression: Operation) -> Condition:
    """`//price < 20` is `//price[. < 20]`."""
    match _pattern(expression):
        case Compare(LocationPath(True, (*steps, last)), op, literal):
            last = replace(last, predicates=(*last.predicates, Compare(_SELF, op, literal)))
            return LocationPath(True, (*steps, last))
        case (Always() | Not(Always()) | LocationPath(True) | Not(LocationPath(True))) as found:
            return found
        case _:
            return Holds(expression)


def _pattern(expression: Expression) -> Condition | None:
    """The expression as a condition on its context node; None where it is no tree pattern."""
    return _lowered(expression, _at_node)


def _at_node(expression: Expression) -> Condition | None:
    match expression:
        case FunctionCall("contains" | "starts-with" as name, (PathExpression() as path, Constant(str() as text))):
            operand = _path(path)
            if operand is None or operand.absolute:
                return None
            return Contains(operand, text) if name == "contains" else StartsWith(operand, text)
        case PathExpression(True, ()):
            return ALWAYS
        case PathExpression():
            return _path(expression)
        case Operation(op, (left, right)) if op in COMPARISONS:
            return _comparison(Comparison(op), left, right)
        case _:
            return _constant(expression)


def _constant(expression: Expression) -> Condition | None:
    """Always or never, where the expression asks nothing of the document."""
    asks = (PathExpression, Narrowed)
    if not _is_closed(expression) or any(isinstance(part, asks) for part in parts_of(expression)):
        return None
    return ALWAYS if evaluated(expression, _ANY_EVENT) else NEVER


def _comparison(op: Comparison, left: Expression, right: Expression) -> Condition | None:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right, op = right, left, MIRRORED[op]
    match left, right:
        case PathExpression(), Constant(literal):
            path = _path(left)
            return None if path is None else Compare(path, op, literal)
        case FunctionCall("count", (PathExpression() as counted,)), Constant(float() as number):
            some = _pattern(counted)
            zero, any_more = _passes(op, 0.0, number), [_passes(op, count, number) for count in (1.0, 2.0, 1e9)]
            if some is None or not (all(any_more) or not any(any_more)) or zero is any_more[0]:
                return None
            return some if any_more[0] else Not(some)
        case _:
            return _constant(Operation(op.value, (left, right)))


def _passes(op: Comparison, count: float, number: float) -> bool:
    return evaluated(Operation(op.value, (Constant(count), Constant(number))), _ANY_EVENT)


# Paths.


def _path(path: PathExpression) -> LocationPath | None:
    """The path as a tree pattern; None where it leads elsewhere than down."""
    if path.start is not None:
        return None
    steps: list[PathStep] = []
    anywhere = False
    for step in path.steps:
        if step.test == NAMED and step.axis == "child" and not step.predicates:
            steps.append(_child(Axis.DESCENDANT if anywhere else Axis.CHILD, step.name))
            anywhere = False
            continue
        if step == ANYWHERE_BELOW:
            anywhere = True
            continue
        if step == PARENT and len(steps) > 1 and not anywhere and steps[-1].axis is Axis.CHILD:
            below = steps.pop()  # a/b/.. is a[b]
            condition = LocationPath(False, (below,))
            steps[-1] = replace(steps[-1], predicates=(*steps[-1].predicates, condition))
            continue
        if step.axis == "self" and step.test == NODE and not path.absolute and not steps and not anywhere:
            if step.predicates:
                return None
            continue
        found = _step(step, anywhere)
        if found is None:
            return None
        steps.append(found)
        anywhere = False
    if anywhere or (path.absolute and not steps):
        return None
    return LocationPath(path.absolute, tuple(steps)) if steps else _SELF


@lru_cache(maxsize=1024)
def _child(axis: Axis, name: str) -> PathStep:
    """The step to elements of a name. Many paths have the same few, and share them."""
    return PathStep(axis, NodeKind.ELEMENT, name)


def _step(step: AxisStep, anywhere: bool) -> PathStep | None:
    shape = _shape(step)
    if shape is None:
        return None
    kind, name = shape
    if step.axis == "descendant" and any(map(is_positional, step.predicates)):
        return None  # it counts all nodes below, not those of each parent
    predicates: list[Condition] = []
    for predicate in step.predicates:
        if (named := _name_asked(predicate)) is not None and name == "*" and kind is NodeKind.ELEMENT:
            if any(isinstance(before, PositionTest) for before in predicates):
                return None
            name, predicate = named
        found = _predicate(predicate, kind)
        if found is None:
            return None
        predicates.append(found)
    axis = Axis.DESCENDANT if anywhere or step.axis == "descendant" else Axis.CHILD
    return PathStep(axis, kind, name, tuple(predicates))


def _shape(step: AxisStep) -> tuple[NodeKind, str] | None:
    """The kind and the name of the nodes that a step leads down to; None where it leads elsewhere."""
    if step.test == NODE or step.axis not in ("child", "descendant", "attribute"):
        return None
    if step.axis == "attribute":
        return (NodeKind.ATTRIBUTE, step.name) if step.test == NAMED else None
    return (NodeKind.ELEMENT, step.name) if step.test == NAMED else (NodeKind.TEXT, "")


def _predicate(predicate: Expression, kind: NodeKind) -> Condition | None:
    if not is_positional(predicate):
        found = _pattern(predicate)
        return None if found is None or _mentions_document(found) else found
    if kind is NodeKind.ATTRIBUTE:
        return None
    match predicate:
        case Constant(float() as number):
            return PositionTest(Comparison.EQ, number)
        case Operation(op, (FunctionCall("position"), Constant(float() as number))) if op in COMPARISONS:
            return PositionTest(Comparison(op), number)
        case Operation(op, (Constant(float() as number), FunctionCall("position"))) if op in COMPARISONS:
            return PositionTest(MIRRORED[Comparison(op)], number)
        case _:
            return None


def _mentions_document(found: Condition) -> bool:
    """Whether a condition on a node has a path that starts at the document instead."""
    paths = (leaf.operand if isinstance(leaf, Compare) else leaf for leaf in leaves(found))
    return any(isinstance(path, LocationPath) and path.absolute for path in paths)


def _name_asked(predicate: Expression) -> tuple[str, Expression] | None:
    """The name that a predicate of `*` asks for, and what else it asks: `*[local-name() = "a"]` is `a`."""
    match predicate:
        case Operation("=", (FunctionCall("local-name" | "name", ()), Constant(str() as name))) | Operation(
            "=", (Constant(str() as name), FunctionCall("local-name" | "name", ()))
        ) if is_name(name):
            return name, FunctionCall("true")
        case PathExpression(False, (AxisStep("self", "named", name, ()),)) if name != "*":
            return name, FunctionCall("true")
        case Operation("and", operands) if not is_positional(predicate):
            for operand in operands:
                if (found := _name_asked(operand)) is not None:
                    return found[0], Operation("and", tuple(each for each in operands if each is not operand))
    return None


# What an expression that is no pattern needs.


def loosened(condition: Holds | AnyItem) -> Condition:
    """What the document or the content has wherever the condition holds, as patterns and terms that stand alone."""
    if isinstance(condition, AnyItem):
        return _outside(condition.condition, condition.field.name)
    found = tuple(dict.fromkeys(_needs(condition.expression)))
    return And(found) if found else ALWAYS


def _outside(condition: Condition, items: str) -> Condition:
    """What a condition on one item of a list asks of all items together."""
    match condition:
        case And(terms):
            return And(tuple(_outside(term, items) for term in terms))
        case Or(terms):
            return Or(tuple(_outside(term, items) for term in terms))
        case Compare(Field() as field) | Contains(Field() as field) | StartsWith(Field() as field):
            return _either(replace(condition, operand=name) for name in _names_outside(field, items))
        case Exists(field):
            return _either(Exists(name) for name in _names_outside(field, items))
        case AnyItem(field, inner):
            return _either(_outside(inner, name.name) for name in _names_outside(field, items))
        case _:
            return ALWAYS if condition != NEVER else NEVER


def _names_outside(field: Field, items: str) -> list[Field]:
    """The names that an item's field has outside: that of the list itself too, where the items are plain values."""
    within = Field(f"{items}.{field.name}")
    return [within, Field(items)] if field.name == "value" else [within]


def _either(conditions: Iterable[Condition]) -> Condition:
    found = tuple(conditions)
    return found[0] if len(found) == 1 else Or(found)


def _needs(expression: Expression) -> list[Condition]:
    """Absolute patterns without which the expression does not hold, at whichever node it is asked."""
    match expression:
        case PathExpression():
            return _path_needs(expression)
        case Narrowed(nodes, predicates):
            return [*_needs(nodes), *(need for predicate in predicates for need in _needs(predicate))]
        case Operation("and", operands):
            return [need for operand in operands for need in _needs(operand)]
        case Operation(op, operands) if op in COMPARISONS and any(map(is_nodes, operands)):
            if any(map(_is_boolean, operands)):
                return []
            return [need for operand in operands if is_nodes(operand) for need in _needs(operand)]
        case FunctionCall("boolean", (inner,)):
            return _needs(inner)
        case _:
            return _needs_of_value(expression)


def _is_boolean(expression: Expression) -> bool:
    """Whether an operand is a boolean: compared with one, no nodes count as false."""
    match expression:
        case Operation(op):
            return op in COMPARISONS or op in ("and", "or")
        case FunctionCall(name):
            return name in ("not", "boolean", "true", "false", "contains", "starts-with")
        case _:
            return False


def _needs_of_value(expression: Expression) -> list[Condition]:
    """A value computed from one path: if it does not hold without nodes, the path must select some."""
    paths = [part for part in parts_of(expression) if isinstance(part, PathExpression)]
    if len(paths) != 1 or paths[0].start is not None:
        return []
    without = _replaced(expression, paths[0])
    if not _is_closed(without) or evaluated(without, _ANY_EVENT):
        return []
    return _path_needs(paths[0])


def _replaced(expression: Expression, path: PathExpression) -> Expression:
    """The expression with a path that selects nothing in the place of this one."""
    match expression:
        case PathExpression() if expression is path:
            return _NO_NODES
        case FunctionCall(name, arguments):
            return FunctionCall(name, tuple(_replaced(each, path) for each in arguments))
        case Operation(op, operands):
            return Operation(op, tuple(_replaced(each, path) for each in operands))
        case Negative(operand):
            return Negative(_replaced(operand, path))
        case Narrowed(nodes, predicates):
            return Narrowed(_replaced(nodes, path), predicates)
        case _:
            return expression


def _path_needs(path: PathExpression) -> list[Condition]:
    """The longest beginning that is a pattern, and every name that is mentioned after it."""
    needs = [] if path.start is None else _needs(path.start)
    begun: list[PathStep] = []
    leads_down, anywhere = path.absolute, False
    for step in path.steps:
        if step == ANYWHERE_BELOW:
            anywhere = True
            continue
        shape = _shape(step)
        leads_down = leads_down and shape is not None
        found, others = _loose_step(step, anywhere or not leads_down)
        needs += others
        if found is not None and leads_down:
            begun.append(found)
        elif found is not None and found.name != "*":
            needs.append(LocationPath(True, (found,)))
        anywhere = False
    return [LocationPath(True, tuple(begun)), *needs] if begun else needs


def _loose_step(step: AxisStep, anywhere: bool) -> tuple[PathStep | None, list[Condition]]:
    """A step with those of its predicates that are patterns, and what the other predicates need."""
    kept: list[Condition] = []
    needs: list[Condition] = []
    name = step.name
    for predicate in step.predicates:
        if (named := _name_asked(predicate)) is not None and name == "*" and step.axis != "attribute":
            name, predicate = named
        found = None if is_positional(predicate) else _predicate(predicate, NodeKind.ELEMENT)
        if found is not None:
            kept.append(found)
        elif not is_positional(predicate):
            needs += _needs(predicate)
    if step.test != NAMED:
        return None, needs
    kind = NodeKind.ATTRIBUTE if step.axis == "attribute" else NodeKind.ELEMENT
    axis = Axis.DESCENDANT if anywhere or step.axis == "descendant" else Axis.CHILD
    return PathStep(axis, kind, name, tuple(kept)), needs
