"""Conditions to text and back: the canonical text of a filter parses to an equal filter."""

from __future__ import annotations

from earshot.errors import FilterSyntaxError
from earshot.filters.language import where
from earshot.filters.language.expressions import (
    ANYWHERE_BELOW,
    NAMED,
    PARENT,
    PRECEDENCE,
    SELF,
    AxisStep,
    Constant,
    Expression,
    FunctionCall,
    Narrowed,
    Negative,
    Operation,
    PathExpression,
)
from earshot.filters.language.parser import Parser, is_levels, name_text, number_text, quoted
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Approaching,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    FieldPlace,
    Holds,
    Inside,
    Literal,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    Receding,
    StartsWith,
    TypedCondition,
    Within,
)
from earshot.geometry import Area, Circle, Corner, Ellipse, Polygon, Rectangle


def parse(text: str) -> TypedCondition:
    """The condition and the event type that a filter's text describes."""
    parser = Parser(text)
    type = _type_in_front(parser)
    return TypedCondition(where.condition(parser), type)


def _type_in_front(parser: Parser) -> str | None:
    """Read `Siren:`, if the text begins with a type."""
    start = parser.at
    try:
        name = parser.backquoted() if parser.sees("`") else parser.levels() or parser.name()
    except FilterSyntaxError:
        name = None
    if name is not None and parser.take(":"):
        return name
    parser.at = start
    return None


def write(condition: Condition, type: str | None) -> str:
    """The canonical text of a condition on events of a type (None: of any)."""
    body = condition_text(condition)
    if type is None:
        return body
    return f"{type if is_levels(type) else name_text(type)}: {body}"


def condition_text(condition: Condition) -> str:
    """A condition as text: `where`, with XPath where the condition is about paths."""
    match condition:
        case LocationPath():
            return path_text(condition)
        case Compare(operand, op, literal):
            return f"{_operand(operand)} {op} {_literal(literal)}"
        case Contains(operand, literal):
            return f"contains({_operand(operand)}, {quoted(literal)})"
        case StartsWith(operand, literal):
            return f"starts-with({_operand(operand)}, {quoted(literal)})"
        case Exists(field):
            return _operand(field)
        case AnyItem(field, inner):
            return f"any({_operand(field)}, {condition_text(inner)})"
        case Holds(expression):
            return _whole_text(expression)
        case PositionTest(Comparison.EQ, number):
            return number_text(number)
        case PositionTest(op, number):
            return f"position() {op} {number_text(number)}"
        case And(parts):
            return " and ".join(_conjunct(part) for part in parts)
        case Or(parts):
            return " or ".join(map(condition_text, parts))
        case Not(Always()):
            return "false"
        case Not(term):
            return f"not({condition_text(term)})"
        case Within(distance_m):
            return f"within {number_text(distance_m)} m"
        case Approaching():
            return "approaching"
        case Receding():
            return "receding"
        case Inside(area):
            return f"inside {_area(area)}"
        case FieldPlace(field, (Approaching() | Receding()) as term):
            return f"{condition_text(term)} {_operand(field)}"
        case FieldPlace(field, term):
            return f"{_operand(field)} {condition_text(term)}"
        case Always():
            return "true"


def _whole_text(expression: Expression) -> str:
    """An expression that `where` reads as XPath: by its first slash, or by its function's name."""
    text = expression_text(expression)
    is_call = any(text.startswith(f"{name}(") for name in where.XPATH_CALLS)
    return text if text.startswith("/") or is_call else f"/self::node()[{text}]"


def _conjunct(condition: Condition) -> str:
    text = condition_text(condition)
    return f"({text})" if isinstance(condition, Or) else text


def path_text(path: LocationPath) -> str:
    """A location path as XPath."""
    if not path.absolute and path.steps and path.steps[0].kind is NodeKind.SELF:
        return "."
    text = "".join(f"{step.axis}{_step(step)}" for step in path.steps)
    if path.absolute:
        return text or "/"
    return f".{text}" if path.steps[0].axis is Axis.DESCENDANT else text[1:]


def _step(step: PathStep) -> str:
    match step.kind:
        case NodeKind.ELEMENT:
            node = step.name
        case NodeKind.ATTRIBUTE:
            node = f"@{step.name}"
        case NodeKind.TEXT:
            node = "text()"
        case NodeKind.SELF:
            node = "."
    return node + "".join(f"[{condition_text(predicate)}]" for predicate in step.predicates)


def _operand(operand: LocationPath | Field) -> str:
    return path_text(operand) if isinstance(operand, LocationPath) else name_text(operand.name, where.WORDS)


def _literal(literal: Literal) -> str:
    match literal:
        case bool():
            return "true" if literal else "false"
        case str():
            return quoted(literal)
        case _:
            return number_text(literal)


def _area(area: Area) -> str:
    """An area in normal form, its reference point at its centre."""
    x, y = area.at.x_m, area.at.y_m
    match area.shape:
        case Circle(radius_m=radius):
            return _call("circle", x, y, radius)
        case Rectangle(width_m=width, height_m=height, angle_deg=angle):
            return _call("rectangle", x, y, width, height, *([angle] if angle else []))
        case Ellipse(a_m=a, b_m=b, angle_deg=angle):
            return _call("ellipse", x, y, a, b, *([angle] if angle else []))
        case Polygon(corners=corners, holes=holes):
            return f"polygon({' / '.join(_ring(ring) for ring in (corners, *holes))})"


def _call(kind: str, *numbers: float) -> str:
    return f"{kind}({', '.join(number_text(number) for number in numbers)})"


def _ring(corners: tuple[Corner, ...]) -> str:
    return ", ".join(f"{number_text(x)} {number_text(y)}" for x, y in corners)


# Expressions, as XPath.


def expression_text(expression: Expression, binding: int = 0) -> str:
    """XPath's text; in parentheses where an operator around it binds tighter than its own."""
    match expression:
        case Constant(float() as value):
            return number_text(value)
        case Constant(value):
            return quoted(str(value))
        case FunctionCall(name, arguments):
            return f"{name}({', '.join(map(expression_text, arguments))})"
        case Operation("|", operands):
            return " | ".join(expression_text(each, _UNION + 1) for each in operands)
        case Operation(op, operands):
            return _in_parentheses(f" {op} ", operands, _level(op), binding)
        case Negative(operand):
            return f"-{expression_text(operand, _UNARY)}"
        case Narrowed(nodes, predicates):
            return f"({expression_text(nodes)}){_predicates_text(predicates)}"
        case PathExpression():
            return _path_text(expression)
        case AxisStep():
            return _axis_step_text(expression)


_UNARY = len(PRECEDENCE)
_UNION = _UNARY + 1


def _level(op: str) -> int:
    return next(level for level, several in enumerate(PRECEDENCE) if op in several)


def _in_parentheses(op: str, operands: tuple[Expression, ...], level: int, binding: int) -> str:
    first, *others = operands
    text = op.join([expression_text(first, level), *(expression_text(each, level + 1) for each in others)])
    return f"({text})" if level < binding else text


def _path_text(path: PathExpression) -> str:
    start = "/" if path.absolute else ""
    if path.start is not None:
        start = expression_text(path.start, _UNION + 1)
        start = (start if isinstance(path.start, Narrowed) else f"({start})") + "/"
    text = start
    for index, step in enumerate(path.steps):
        doubled = step == ANYWHERE_BELOW and index + (start != "") > 0 and index + 1 < len(path.steps)
        text += "/" if doubled else _axis_step_text(step) + ("/" if index + 1 < len(path.steps) else "")
    return text


def _axis_step_text(step: AxisStep) -> str:
    if step == SELF:
        return "."
    if step == PARENT:
        return ".."
    axis = {"child": "", "attribute": "@"}.get(step.axis, f"{step.axis}::")
    test = step.name if step.test == NAMED else f"{step.test}()"
    return axis + test + _predicates_text(step.predicates)


def _predicates_text(predicates: tuple[Expression, ...]) -> str:
    return "".join(f"[{expression_text(predicate)}]" for predicate in predicates)
