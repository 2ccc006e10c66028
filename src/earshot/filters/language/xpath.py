"""XPath to filters: the part of XPath 1.0 that says which documents are wanted.

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

from earshot.filters.language.parser import MIRRORED, Reader, disjunction
from earshot.filters.language.syntax import (
    Always,
    At,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    Literal,
    Not,
    Path,
    StartsWith,
    Step,
    Test,
)

_STEPS = "a step is a name, *, @name, text() or ."
_CONDITIONS = (
    "a predicate holds paths, comparisons of a path with a literal, and, or, not(), contains(), starts-with(), "
    "or a position alone"
)
_SELF = Path(False, (Step(Axis.CHILD, Test.SELF),))


def parse(text: str) -> Condition:
    """The condition an XPath expression stands for."""
    reader = Reader(text)
    if not reader.sees("/"):
        reader.fail("an XPath filter starts at the document: begin with / or //")
    reader.enter()  # as deep as the same path stands in a `where` text, which is how filters are written back
    condition = absolute_path(reader)
    if not reader.ended:
        reader.fail(f"expected /, [ or the end after a step, found {reader.here()}; a filter is one location path")
    return condition


def absolute_path(reader: Reader) -> Condition:
    """Read a path that begins with a slash; `/` alone is met by every document."""
    axis = Axis.DESCENDANT if reader.take("//") else Axis.CHILD
    if axis is Axis.CHILD:
        reader.take("/")
        if reader.word() is None and not any(map(reader.sees, "*@.")):
            return Always()
    steps = _steps(reader, axis)
    return Path(True, steps) if steps else Always()


def _relative_path(reader: Reader) -> Path:
    if reader.sees("/"):
        reader.fail("a path inside a predicate starts at its own node: write name, .//name or @name")
    steps = _steps(reader, Axis.CHILD)
    return Path(False, steps) if steps else _SELF


def _steps(reader: Reader, axis: Axis) -> tuple[Step, ...]:
    """Read steps as far as slashes join them. The step `.` stays where it is and is left out."""
    steps: list[Step] = []
    levels = 0
    while True:
        reader.enter()
        levels += 1
        if steps and steps[-1].test is not Test.ELEMENT:
            reader.fail(f"{'an attribute' if steps[-1].test is Test.ATTRIBUTE else 'text()'} has nothing below it")
        if _is_self(reader):
            if axis is Axis.DESCENDANT:
                reader.fail("// is followed by a name, *, @name or text()")
            reader.take(".")
            if reader.sees("["):
                reader.fail("the step . takes no predicate, in XPath 1.0")
        else:
            steps.append(_step(reader, axis))
        if reader.take("//"):
            axis = Axis.DESCENDANT
        elif reader.take("/"):
            axis = Axis.CHILD
        else:
            reader.leave(levels)
            return tuple(steps)


def _is_self(reader: Reader) -> bool:
    if reader.sees(".."):
        reader.fail(f"a path only goes down, .. is not supported; {_STEPS}")
    return reader.sees(".")


def _step(reader: Reader, axis: Axis) -> Step:
    test, name = _node_test(reader)
    predicates: list[Condition] = []
    while reader.sees("["):
        start = reader.at
        reader.take("[")
        predicate = _predicate(reader)
        if isinstance(predicate, At) and test is Test.ATTRIBUTE:
            reader.fail("attributes have no order: a position cannot be asked of them", start)
        predicates.append(predicate)
        reader.expect("]", "to close the predicate")
    return Step(axis, test, name, tuple(predicates))


def _node_test(reader: Reader) -> tuple[Test, str]:
    if reader.take("@"):
        if reader.take("*"):
            return Test.ATTRIBUTE, "*"
        return Test.ATTRIBUTE, _local_name(reader)
    if reader.take("*"):
        return Test.ELEMENT, "*"
    start = reader.at
    name = _local_name(reader)
    if reader.sees("("):
        if name != "text":
            reader.fail(f"{name}() is not supported here; {_STEPS}", start)
        reader.take("(")
        reader.expect(")", "after text(")
        return Test.TEXT, ""
    return Test.ELEMENT, name


def _local_name(reader: Reader) -> str:
    start = reader.at
    name = reader.name()
    if name is None:
        reader.fail(f"expected a step, found {reader.here()}; {_STEPS}")
    if reader.sees("::"):
        reader.fail(f"the axis {name}:: is not supported; {_STEPS}", start)
    if reader.sees(":"):
        reader.fail(f"names are local names: leave out the prefix {name}:", start)
    return name


def _predicate(reader: Reader) -> Condition:
    position = _position(reader)
    return position if position is not None else disjunction(reader, _term)


def _position(reader: Reader) -> At | None:
    """Read a predicate that is a position and nothing else; otherwise stay where it began."""
    start = reader.at
    number = reader.number()
    if number is not None:
        if reader.sees("]"):
            return At(Comparison.EQ, number)
        op = reader.comparison()
        if op is not None and _take_position_call(reader):
            return At(MIRRORED[op], number)
    elif _take_position_call(reader):
        op = reader.comparison()
        number = reader.number() if op else None
        if op is None or number is None:
            reader.fail("position() is compared with a number, as in [position() < 3]")
        return At(op, number)
    reader.at = start
    return None


def _take_position_call(reader: Reader) -> bool:
    start = reader.at
    if reader.take_word("position") and reader.take("(") and reader.take(")"):
        return True
    reader.at = start
    return False


def _term(reader: Reader) -> Condition:
    start = reader.at
    reader.enter()
    term = _grouped(reader) or _called(reader) or _compared(reader)
    reader.leave()
    if not (reader.ended or any(map(reader.sees, "])")) or reader.word() in ("and", "or")):
        if reader.comparison() is not None:
            reader.fail("a comparison stands between one path and one literal", start)
        reader.fail(f"expected and, or or ], found {reader.here()}; {_CONDITIONS}")
    return term


def _grouped(reader: Reader) -> Condition | None:
    if not reader.take("("):
        return None
    inner = disjunction(reader, _term)
    reader.expect(")", "to close the parenthesis")
    return inner


def _called(reader: Reader) -> Condition | None:
    """Read a function's call; a name without a parenthesis after it is a step, whatever it is called."""
    start = reader.at
    name = reader.name()
    if name is None or name == "text" or not reader.take("("):
        reader.at = start
        return None
    match name:
        case "not":
            inner = disjunction(reader, _term)
            reader.expect(")", "after the condition of not(")
            return Not(inner)
        case "contains" | "starts-with":
            operand = _relative_path(reader)
            reader.expect(",", f"between the path and the text of {name}()")
            literal = reader.string()
            if literal is None:
                reader.fail(f'{name}() looks for a quoted text, as in {name}(title, "x")')
            reader.expect(")", f"after the text of {name}(")
            return Contains(operand, literal) if name == "contains" else StartsWith(operand, literal)
        case "position":
            reader.fail("position() stands alone in its predicate, as in [position() < 3]", start)
        case _:
            reader.fail(f"{name}() is not supported; {_CONDITIONS}", start)


def _compared(reader: Reader) -> Condition:
    start = reader.at
    literal = reader.literal()
    if literal is not None:
        op = reader.comparison()
        if op is None:
            reader.fail("a literal alone is no condition here; compare a path with it", start)
        return Compare(_relative_path(reader), MIRRORED[op], literal)
    if not (reader.word() or any(map(reader.sees, "*@./"))):
        reader.fail(f"expected a condition, found {reader.here()}; {_CONDITIONS}")
    operand = _relative_path(reader)
    op = reader.comparison()
    if op is None:
        return operand
    return Compare(operand, op, _right_literal(reader))


def _right_literal(reader: Reader) -> Literal:
    literal = reader.literal()
    if literal is None:
        reader.fail(f"expected a quoted text or a number, found {reader.here()}; two paths cannot be compared")
    return literal
