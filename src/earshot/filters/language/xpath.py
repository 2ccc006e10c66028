"""XPath 1.0 to conditions.

::

    filter     ::=  expression, in which every path begins with '/', '//' or '.'
    expression ::=  expression operator expression  |  '-' expression  |  path  |  literal  |  call
                 |  '(' expression ')' predicate* (('/' | '//') path)?
    operator   ::=  'or' | 'and' | '=' | '!=' | '<' | '<=' | '>' | '>=' | '+' | '-' | '*' | 'div' | 'mod' | '|'
    path       ::=  ('/' | '//')? step (('/' | '//') step)*
    step       ::=  (axis '::' | '@')? (name | '*' | 'text()' | 'node()') predicate*  |  '.'  |  '..'
    predicate  ::=  '[' expression ']'
    literal    ::=  string | number

A filter matches a document for which XPath's boolean() of the expression is true: a path that selects at least one
node. Every comparison converts as XPath 1.0 does. Names are local names: a prefix is read and left out, as
namespaces are in documents. Outside predicates, a path that begins with `.` starts at the root element. Beyond XPath
1.0, a literal may hold its own quote, written twice. What is refused is refused with its column and with what to write
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from earshot.filters.language import lowering
from earshot.filters.language.expressions import (
    ANYWHERE_BELOW,
    AXES,
    NAMED,
    NODE,
    PARENT,
    PRECEDENCE,
    SELF,
    TEXT,
    AxisStep,
    Constant,
    Expression,
    FunctionCall,
    Narrowed,
    Negative,
    Operation,
    PathExpression,
    is_nodes,
)
from earshot.filters.language.parser import Parser
from earshot.filters.language.syntax import Condition

_STEPS = "a step is a name, *, @name, text(), node(), . or .., or one of these after an axis like ancestor::"
_CONDITIONS = "a condition holds paths, literals, functions and operators, as in [price < 20 and not(@sold)]"
_BEGIN = "begin with / (the document), // (anywhere) or ./ (below the root element)"

FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("true", "false", "position", "last"), (0, 0)),
    **dict.fromkeys(("local-name", "name", "string", "number", "string-length", "normalize-space"), (0, 1)),
    **dict.fromkeys(("not", "boolean", "count", "sum", "floor", "ceiling", "round"), (1, 1)),
    **dict.fromkeys(("contains", "starts-with", "substring-before", "substring-after"), (2, 2)),
    "substring": (2, 3),
    "translate": (3, 3),
    "concat": (2, 99),
}
"XPath's functions that are supported, and how many arguments each takes at least and at most."
_OF_NODES = ("count", "sum", "local-name", "name")
"Functions whose argument is a path."
_INSTEAD = {
    "id": 'write //*[@id = "x"]',
    "lang": 'write ancestor-or-self::*[@xml:lang][1][@xml:lang = "en"]',
    "namespace-uri": "namespaces are ignored: leave it out, or compare local-name()",
    "comment": "comments are no part of an event",
    "processing-instruction": "processing instructions are no part of an event",
    "ends-with": "write substring(x, string-length(x) - 2) = 'end', with the text's length less 1",
    "lower-case": "write translate(x, 'ABC...', 'abc...')",
    "upper-case": "write translate(x, 'abc...', 'ABC...')",
    "matches": "there are no regular expressions: write contains() or starts-with()",
    "exists": "write the path alone",
    "empty": "write not(path)",
    "key": "write a path with a predicate",
    "document": "a filter reads the event alone",
    "current": "write . or a path",
}
"What to write instead of what stays out."


def parse(text: str, namespaces: Mapping[str, str] | None = None) -> Condition:
    """The condition that an XPath expression describes. With `namespaces`, only prefixes in it are allowed."""
    parser = Parser(text)
    parser.enter()  # the depth of the same path inside a `where` text, in which filters are written back
    grammar = _Grammar(parser, namespaces)
    expression = grammar.expression()
    if not parser.ended:
        parser.fail(f"expected an operator, /, [ or the end, found {parser.here()}")
    return lowering.condition(expression)


def term(parser: Parser) -> Condition:
    """Read an expression up to an `and` or `or`, as a term of a `where` text."""
    return lowering.condition(_Grammar(parser, None).comparison())


class _Grammar:
    """XPath's grammar, one method a rule."""

    def __init__(self, parser: Parser, namespaces: Mapping[str, str] | None) -> None:
        self.parser = parser
        self._namespaces = namespaces
        self._predicates = 0
        "How many predicates are open: outside of all, paths start at the document."

    def expression(self) -> Expression:
        return self._several("or", lambda: self._several("and", self.comparison))

    def _several(self, word: str, operand: Callable[[], Expression]) -> Expression:
        """Operands with `and` or `or` between them."""
        found = [operand()]
        while self.parser.take_word(word):
            found.append(operand())
        return _flat(word, found)

    def comparison(self) -> Expression:
        """An expression without `and` and `or`."""
        return self._binary(2)

    def _binary(self, least: int) -> Expression:
        """Operations from this level of precedence on, from left to right; those that bind most come first."""
        parser = self.parser
        left = self._unary()
        op = parser.operator()
        level = len(PRECEDENCE)
        while level > least and op is not None:
            level -= 1
            chained = 0
            while op is not None and op in PRECEDENCE[level]:
                parser.take(op)
                parser.enter()
                chained += 1
                left = Operation(op, _with_local_name(left, self._binary(level + 1)))
                op = parser.operator()
            parser.leave(chained)
        return left

    def _unary(self) -> Expression:
        if not self.parser.take("-"):
            return self._union()
        self.parser.enter()
        operand = self._unary()
        self.parser.leave()
        match operand:
            case Constant(float() as value) if value:
                return Constant(-value)
            case _:
                return Negative(operand)

    def _union(self) -> Expression:
        start = self.parser.at
        found = [self._operand()]
        while self.parser.take("|"):
            found.append(self._operand())
            if not all(map(is_nodes, found)):
                self.parser.fail("| stands between two paths", start)
        return _flat("|", found)

    def _operand(self) -> Expression:
        """A literal, a call, an expression in parentheses or a path."""
        parser = self.parser
        if parser.sees("/"):
            return self._path()
        if (text := parser.string()) is not None:
            return Constant(text)
        if (number := parser.number()) is not None:
            return Constant(number)
        if parser.sees("("):
            return self._parenthesis()
        if parser.sees("$"):
            parser.fail("a filter has no variables: write the value itself")
        if (name := parser.word()) and name not in (TEXT, NODE) and self._is_called(name):
            return self._call()
        return self._path()

    def _is_called(self, name: str) -> bool:
        start = self.parser.at
        self.parser.take(name)
        called = self.parser.sees("(")
        self.parser.at = start
        return called

    def _parenthesis(self) -> Expression:
        parser = self.parser
        start = parser.at
        parser.take("(")
        parser.enter()
        inner = self.expression()
        parser.leave()
        parser.expect(")", "to close the parenthesis")
        if not (parser.sees("[") or parser.sees("/")):
            return inner
        if not is_nodes(inner):
            parser.fail("only a path in parentheses takes predicates and steps", start)
        if predicates := self._predicate_list():
            inner = Narrowed(inner, predicates)
        if not parser.sees("/"):
            return inner
        anywhere = parser.take("//")
        steps = self._steps([ANYWHERE_BELOW] if anywhere or not parser.take("/") else [])
        if isinstance(inner, PathExpression):
            return PathExpression(inner.absolute, _tidy([*inner.steps, *steps], inner.absolute), inner.start)
        return PathExpression(False, _tidy(steps, absolute=True), inner)

    def _call(self) -> Expression:
        parser = self.parser
        start = parser.at
        name = str(parser.name())
        if name not in FUNCTIONS:
            parser.fail(f"{name}() is not supported; {_INSTEAD.get(name, f'there are {_names()}')}", start)
        parser.take("(")
        parser.enter()
        arguments: list[Expression] = []
        while not parser.sees(")"):
            if arguments:
                parser.expect(",", f"between the arguments of {name}()")
            arguments.append(self.expression())
        parser.take(")")
        parser.leave()
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            count = f"{least}" if least == most else f"{least} to {most}" if most < 99 else f"at least {least}"
            parser.fail(f"{name}() takes {count} argument{'s' * (count != '1')}, here are {len(arguments)}", start)
        if not arguments and not self._predicates and name not in ("true", "false"):
            instead = f"write {name}(/)" if most else f"it stands in a predicate, as in //a[{name}() = 2]"
            parser.fail(f"{name}() asks about a node, and here is none; {instead}", start)
        if name in _OF_NODES and arguments and not is_nodes(arguments[0]):
            parser.fail(f"{name}() takes a path", start)
        return FunctionCall(name, tuple(arguments))

    def _path(self) -> PathExpression:
        parser = self.parser
        if parser.take("//"):
            return PathExpression(True, _tidy(self._steps([ANYWHERE_BELOW]), absolute=True))
        if parser.take("/"):
            if parser.word() is None and not any(map(parser.sees, "*@.")):
                return PathExpression(True, ())
            return PathExpression(True, _tidy(self._steps([]), absolute=True))
        if not (parser.word() or any(map(parser.sees, "*@."))):
            what = _CONDITIONS if self._predicates else f"an XPath filter starts at the document: {_BEGIN}"
            parser.fail(f"expected {'a condition' if self._predicates else 'a path'}, found {parser.here()}; {what}")
        if self._predicates:
            return PathExpression(False, _tidy(self._steps([]), absolute=False))
        if not parser.sees(".") or parser.sees(".."):
            parser.fail(f"an XPath filter starts at the document: {_BEGIN}")
        return PathExpression(True, _tidy([AxisStep("child", NAMED, "*"), *self._steps([])], absolute=True))

    def _steps(self, before: list[AxisStep]) -> list[AxisStep]:
        """Steps joined by slashes, after those given."""
        parser = self.parser
        steps = list(before)
        levels = 0
        while True:
            parser.enter()
            levels += 1
            start = parser.at
            step = self._step()
            above = steps[-1] if steps else None
            if above is not None and _is_leaf(above) and step.axis in ("child", "attribute", "descendant"):
                parser.fail(f"{'an attribute' if above.axis == 'attribute' else 'text()'} has nothing below it", start)
            steps.append(step)
            if parser.take("//"):
                steps.append(ANYWHERE_BELOW)
            elif not parser.take("/"):
                parser.leave(levels)
                return steps

    def _step(self) -> AxisStep:
        parser = self.parser
        if (plain := parser.plain_step()) is not None:
            return _child(plain)
        for symbol, step in (("..", PARENT), (".", SELF)):
            if parser.take(symbol):
                if parser.sees("["):
                    parser.fail(f"the step {symbol} takes no predicate in XPath 1.0: write {step.axis}::node()[...]")
                return step
        axis = "attribute" if parser.take("@") else self._axis()
        test, name = self._node_test()
        return AxisStep(axis, test, name, self._predicate_list())

    def _axis(self) -> str:
        parser = self.parser
        start = parser.at
        name = parser.name()
        if name is None or not parser.take("::"):
            parser.at = start
            return "child"
        if name not in AXES:
            parser.fail(f"there is no axis {name}::; there are {', '.join(AXES)}", start)
        return name

    def _node_test(self) -> tuple[str, str]:
        parser = self.parser
        start = parser.at
        if parser.take("*"):
            return NAMED, "*"
        name = parser.name()
        if name is None:
            parser.fail(f"expected a step, found {parser.here()}; {_STEPS}")
        if parser.sees("("):
            if name not in (TEXT, NODE):
                parser.fail(f"{name}() is not a step; {_INSTEAD.get(name, _STEPS)}", start)
            parser.take("(")
            parser.expect(")", f"after {name}(")
            return name, ""
        if parser.sees(":") and not parser.sees("::"):
            return NAMED, self._without_prefix(name, start)
        return NAMED, name

    def _without_prefix(self, prefix: str, start: int) -> str:
        parser = self.parser
        if self._namespaces is not None and prefix not in self._namespaces and prefix != "xml":
            known = ", ".join(sorted(self._namespaces)) or "none"
            parser.fail(f"the prefix {prefix}: is not declared; the declared ones are: {known}", start)
        parser.take(":")
        name = "*" if parser.take("*") else parser.name()
        if name is None:
            parser.fail(f"expected a name after {prefix}:, found {parser.here()}")
        if parser.sees("("):
            parser.fail(f"{prefix}:{name}() is not supported; there are XPath 1.0's own functions", start)
        return name

    def _predicate_list(self) -> tuple[Expression, ...]:
        parser = self.parser
        found: list[Expression] = []
        while parser.take("["):
            self._predicates += 1
            parser.enter()
            found.append(self.expression())
            parser.leave()
            self._predicates -= 1
            if not parser.take("]"):
                parser.fail(f"expected ']' to close the predicate, or and, or, found {parser.here()}; {_CONDITIONS}")
        return tuple(found)


def _with_local_name(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Two operands; a text that name() is compared with loses its prefix, as every name does."""
    match left, right:
        case FunctionCall("name"), Constant(str() as name):
            return left, Constant(name.rpartition(":")[2])
        case Constant(str() as name), FunctionCall("name"):
            return Constant(name.rpartition(":")[2]), right
        case _:
            return left, right


def _names() -> str:
    return ", ".join(f"{name}()" for name in sorted(FUNCTIONS))


def _flat(op: str, operands: list[Expression]) -> Expression:
    """One operation, with the operands of inner ones of the same kind as its own."""
    if len(operands) == 1:
        return operands[0]
    found: list[Expression] = []
    for operand in operands:
        found += operand.operands if isinstance(operand, Operation) and operand.op == op else (operand,)
    return Operation(op, tuple(found))


@lru_cache(maxsize=1024)
def _child(name: str) -> AxisStep:
    """The step to children of a name. Many paths have the same few, and share them."""
    return AxisStep("child", NAMED, name)


def _is_leaf(step: AxisStep) -> bool:
    return step.axis == "attribute" or step.test == TEXT


def _tidy(steps: list[AxisStep], absolute: bool) -> tuple[AxisStep, ...]:
    """Without steps that change nothing: `a/./b` is `a/b`, and `//` twice is `//`."""
    tidy: list[AxisStep] = []
    for step in steps:
        if step.test == NODE and (step == SELF or (step == ANYWHERE_BELOW and tidy and tidy[-1] == ANYWHERE_BELOW)):
            continue
        tidy.append(step)
    if not absolute and (not tidy or tidy[0] == ANYWHERE_BELOW):
        tidy.insert(0, SELF)
    return tuple(tidy)
