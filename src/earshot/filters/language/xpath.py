"""XPath to conditions: the part of XPath 1.0 that selects documents.

::

    path       ::=  ('/' | '//') step (('/' | '//') step)*
    step       ::=  (name | '*' | '@' name | '@*' | 'text()' | '.') predicate*
    predicate  ::=  '[' condition ']'  |  '[' number ']'  |  '[' 'position()' comparison number ']'
    condition  ::=  condition ('and' | 'or') condition  |  'not(' condition ')'  |  '(' condition ')'
                 |  relative  |  relative comparison literal  |  literal comparison relative
                 |  'contains(' relative ',' string ')'  |  'starts-with(' relative ',' string ')'
    relative   ::=  '.'  |  ('.//')? step (('/' | '//') step)*
    comparison ::=  '=' | '!=' | '<' | '<=' | '>' | '>='
    literal    ::=  string | number

A filter matches a document from which XPath would select at least one node; every comparison
converts as XPath 1.0 does. Names are local names. A path's text and attribute steps are its last
ones. Beyond XPath 1.0, a literal may hold its own quote, written twice. What is not in the table is
refused with its column.
"""

from __future__ import annotations

from earshot.filters.language.parser import MIRRORED, Parser, disjunction, parenthesis
from earshot.filters.language.syntax import (
    Always,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    LocationPath,
    NodeKind,
    Not,
    PathStep,
    PositionTest,
    StartsWith,
)

_STEPS = "a step is a name, *, @name, text() or ."
_CONDITIONS = (
    "a predicate holds paths, comparisons of a path with a literal, and, or, not(), contains(), starts-with(), "
    "or a position alone"
)
_SELF = LocationPath(False, (PathStep(Axis.CHILD, NodeKind.SELF),))


def parse(text: str) -> Condition:
    """The condition that an XPath expression describes."""
    parser = Parser(text)
    if not parser.sees("/"):
        parser.fail("an XPath filter starts at the document: begin with / or //")
    parser.enter()  # the depth of the same path inside a `where` text, in which filters are written back
    condition = absolute_path(parser)
    if not parser.ended:
        parser.fail(f"expected /, [ or the end after a step, found {parser.here()}; a filter is one location path")
    return condition


def absolute_path(parser: Parser) -> Condition:
    """Read a path that begins with a slash; `/` alone is met by every document."""
    axis = Axis.DESCENDANT if parser.take("//") else Axis.CHILD
    if axis is Axis.CHILD:
        parser.take("/")
        if parser.word() is None and not any(map(parser.sees, "*@.")):
            return Always()
    steps = _steps(parser, axis)
    return LocationPath(True, steps) if steps else Always()


def _relative_path(parser: Parser) -> LocationPath:
    if parser.sees("/"):
        parser.fail("a path inside a predicate starts at its own node: write name, .//name or @name")
    steps = _steps(parser, Axis.CHILD)
    return LocationPath(False, steps) if steps else _SELF


def _steps(parser: Parser, axis: Axis) -> tuple[PathStep, ...]:
    """Read steps joined by slashes. The step `.` selects its own node and is left out."""
    steps: list[PathStep] = []
    levels = 0
    while True:
        parser.enter()
        levels += 1
        if steps and steps[-1].kind is not NodeKind.ELEMENT:
            parser.fail(f"{'an attribute' if steps[-1].kind is NodeKind.ATTRIBUTE else 'text()'} has nothing below it")
        if _is_self(parser):
            if axis is Axis.DESCENDANT:
                parser.fail("// is followed by a name, *, @name or text()")
            parser.take(".")
            if parser.sees("["):
                parser.fail("the step . takes no predicate, in XPath 1.0")
        else:
            steps.append(_step(parser, axis))
        if parser.take("//"):
            axis = Axis.DESCENDANT
        elif parser.take("/"):
            axis = Axis.CHILD
        else:
            parser.leave(levels)
            return tuple(steps)


def _is_self(parser: Parser) -> bool:
    if parser.sees(".."):
        parser.fail(f"paths lead downwards only, .. is not supported; {_STEPS}")
    return parser.sees(".")


def _step(parser: Parser, axis: Axis) -> PathStep:
    test, name = _node_test(parser)
    predicates: list[Condition] = []
    while parser.sees("["):
        start = parser.at
        parser.take("[")
        predicate = _position(parser) or disjunction(parser, _term)
        if isinstance(predicate, PositionTest) and test is NodeKind.ATTRIBUTE:
            parser.fail("attributes have no order: a position cannot be asked of them", start)
        predicates.append(predicate)
        parser.expect("]", "to close the predicate")
    return PathStep(axis, test, name, tuple(predicates))


def _node_test(parser: Parser) -> tuple[NodeKind, str]:
    if parser.take("@"):
        if parser.take("*"):
            return NodeKind.ATTRIBUTE, "*"
        return NodeKind.ATTRIBUTE, _local_name(parser)
    if parser.take("*"):
        return NodeKind.ELEMENT, "*"
    start = parser.at
    name = _local_name(parser)
    if parser.sees("("):
        if name != "text":
            parser.fail(f"{name}() is not supported here; {_STEPS}", start)
        parser.take("(")
        parser.expect(")", "after text(")
        return NodeKind.TEXT, ""
    return NodeKind.ELEMENT, name


def _local_name(parser: Parser) -> str:
    start = parser.at
    name = parser.name()
    if name is None:
        parser.fail(f"expected a step, found {parser.here()}; {_STEPS}")
    if parser.sees("::"):
        parser.fail(f"the axis {name}:: is not supported; {_STEPS}", start)
    if parser.sees(":"):
        parser.fail(f"names are local names: leave out the prefix {name}:", start)
    return name


def _position(parser: Parser) -> PositionTest | None:
    """Read a predicate that is only a position; otherwise read nothing."""
    start = parser.at
    number = parser.number()
    if number is not None:
        if parser.sees("]"):
            return PositionTest(Comparison.EQ, number)
        op = parser.comparison()
        if op is not None and _take_position_call(parser):
            return PositionTest(MIRRORED[op], number)
    elif _take_position_call(parser):
        op = parser.comparison()
        number = parser.number() if op else None
        if op is None or number is None:
            parser.fail("position() is compared with a number, as in [position() < 3]")
        return PositionTest(op, number)
    parser.at = start
    return None


def _take_position_call(parser: Parser) -> bool:
    start = parser.at
    if parser.take_word("position") and parser.take("(") and parser.take(")"):
        return True
    parser.at = start
    return False


def _term(parser: Parser) -> Condition:
    start = parser.at
    parser.enter()
    term = parenthesis(parser, _term) or _called(parser) or _compared(parser)
    parser.leave()
    if not (parser.ended or any(map(parser.sees, "])")) or parser.word() in ("and", "or")):
        if parser.comparison() is not None:
            parser.fail("a comparison stands between one path and one literal", start)
        parser.fail(f"expected and, or or ], found {parser.here()}; {_CONDITIONS}")
    return term


def _called(parser: Parser) -> Condition | None:
    """Read a function call; a name without a parenthesis after it is a step."""
    start = parser.at
    name = parser.name()
    if name is None or name == "text" or not parser.take("("):
        parser.at = start
        return None
    match name:
        case "not":
            inner = disjunction(parser, _term)
            parser.expect(")", "after the condition of not(")
            return Not(inner)
        case "contains" | "starts-with":
            operand = _relative_path(parser)
            parser.expect(",", f"between the path and the text of {name}()")
            literal = parser.string()
            if literal is None:
                parser.fail(f'{name}() looks for a quoted text, as in {name}(title, "x")')
            parser.expect(")", f"after the text of {name}(")
            return Contains(operand, literal) if name == "contains" else StartsWith(operand, literal)
        case "position":
            parser.fail("position() stands alone in its predicate, as in [position() < 3]", start)
        case _:
            parser.fail(f"{name}() is not supported; {_CONDITIONS}", start)


def _compared(parser: Parser) -> Condition:
    start = parser.at
    literal = parser.literal()
    if literal is not None:
        op = parser.comparison()
        if op is None:
            parser.fail("a literal alone is not a condition; compare a path with it", start)
        return Compare(_relative_path(parser), MIRRORED[op], literal)
    if not (parser.word() or any(map(parser.sees, "*@./"))):
        parser.fail(f"expected a condition, found {parser.here()}; {_CONDITIONS}")
    operand = _relative_path(parser)
    op = parser.comparison()
    if op is None:
        return operand
    literal = parser.literal()
    if literal is None:
        parser.fail(f"expected a quoted text or a number, found {parser.here()}; two paths cannot be compared")
    return Compare(operand, op, literal)
