"""`where` to conditions: predicates over an event's named values and over places.

::

    condition  ::=  condition 'or' condition  |  condition 'and' condition  |  'not' condition
                 |  '(' condition ')'  |  'true'  |  'false'  |  term  |  an XPath filter
    term       ::=  name comparison literal  |  literal comparison name  |  name 'in' number '..' number
                 |  name 'contains' string  |  name 'starts with' string
                 |  'contains(' name ',' string ')'  |  'starts-with(' name ',' string ')'  |  name
                 |  'any(' name ',' condition ')'
                 |  'within' number ('m' | 'km')  |  'approaching'  |  'receding'  |  'inside' area
                 |  name 'within' number ('m' | 'km')  |  'approaching' name  |  'receding' name  |  name 'inside' area
    area       ::=  'circle(' x ',' y ',' radius ')'  |  'rectangle(' x ',' y ',' width ',' height angle? ')'
                 |  'ellipse(' x ',' y ',' half-axis ',' half-axis angle? ')'
                 |  'polygon(' x y (',' x y)* ('/' x y (',' x y)*)* ')'
    literal    ::=  string | number | 'true' | 'false'

`and` binds tighter than `or`, `not` tighter than both. A text is written in single or double quotes, its
own quote written twice. A name that is a word of the language or contains other signs is written in
backquotes: `` `within` = 3 ``. Areas are in metres on the network's plane, given by their centre,
angles in degrees counter-clockwise from east; what follows a slash in a polygon is a hole.

What a term means:

- A field is every value of that name: flat content has one, an XML document's root attributes and
  leaf elements may have several. A term holds if it holds for any of them, so it is false where
  there is none; `not` turns that around. `price in 10..20` is `price >= 10 and price <= 20`.
- In nested content a name leads down by dots (`vehicle.speed`), and a list gives the values of all its items, so
  `tags = "icy"` holds where any tag is that. `any(lanes, closed = true and speed < 3)` holds where one item meets the
  whole condition, in which names are the item's own; an item that is a plain value is called `value`.
- Against a number the value counts as XPath's number(): text is read, true is 1, anything else
  is NaN, which differs from everything and is neither less nor greater.
- Against a text, `=` and `!=` compare texts; `<`, `<=`, `>` and `>=` compare numbers, as XPath does. A
  value that is a time is compared with an ISO 8601 text as a time, by all six.
- Against `true` and `false` the value counts as a boolean: true or false, 1 or 0, or these as texts.
- A name alone holds where there is such a value other than the boolean false.
- `within` and `inside` are about the event's position, `within`, `approaching` and `receding` about
  the consumer too: without a position, or without a viewer, they are false, and `not` of them true.
- With a name they are about that value of the event instead, a position that does not move: `place within 500 m`,
  `approaching place`. They are false where the event has no position of that name.
"""

from __future__ import annotations

from math import isinf

from earshot.errors import GeometryError
from earshot.filters.language import xpath
from earshot.filters.language.parser import MIRRORED, Parser, disjunction, parenthesis
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Approaching,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    FieldPlace,
    Inside,
    Literal,
    Not,
    Receding,
    StartsWith,
    Within,
    leaves,
)
from earshot.geometry import Area, Circle, Corner, Ellipse, Polygon, Position, Rectangle

_LOGIC = ("and", "or", "not", "true", "false", "in", "contains", "starts", "starts-with")
_PLACES = ("within", "approaching", "receding", "inside")
WORDS = frozenset((*_LOGIC, *_PLACES))
"Words of the language: as names they are written in backquotes."
XPATH_CALLS = frozenset(xpath.FUNCTIONS) - WORDS
"A function of XPath with a parenthesis after it begins an XPath expression, as a slash does."
_TERMS = (
    'a term is like price < 20, category = "jazz", price in 10..20, name contains "x", within 200 m, approaching, '
    "receding or inside circle(0, 0, 100)"
)
_AREAS = "circle(x, y, radius), rectangle(x, y, width, height), ellipse(x, y, a, b) or polygon(x y, x y, x y)"


def parse(text: str) -> Condition:
    """The condition that a `where` text describes."""
    return condition(Parser(text))


def condition(parser: Parser) -> Condition:
    """Read a condition, to the end of the text."""
    if parser.ended:
        parser.fail(f"the filter is empty; {_TERMS}")
    found = disjunction(parser, _term)
    if not parser.ended:
        parser.fail(f"expected and, or or the end, found {parser.here()}")
    return found


def _term(parser: Parser) -> Condition:
    parser.enter()
    term = parenthesis(parser, _term) or _structure(parser) or _place(parser) or _content(parser)
    parser.leave()
    return term


def _structure(parser: Parser) -> Condition | None:
    """Read a negation, a constant or a path."""
    if parser.sees("/") or _sees_xpath_call(parser):
        return xpath.term(parser)
    if (items := _items(parser)) is not None:
        return items
    if parser.take_word("not"):
        return Not(parenthesis(parser, _term) or _term(parser))
    start = parser.at
    for word, constant in (("true", Always()), ("false", Not(Always()))):
        if parser.take_word(word):
            if parser.comparison() is None:
                return constant
            parser.at = start
    return None


def _sees_xpath_call(parser: Parser) -> bool:
    word = parser.word()
    return word in XPATH_CALLS and _sees_call(parser, word)


def _sees_call(parser: Parser, word: str) -> bool:
    start = parser.at
    called = parser.take_word(word) and parser.sees("(")
    parser.at = start
    return called


def _items(parser: Parser) -> AnyItem | None:
    """Read `any(lanes, closed = true)`."""
    if not _sees_call(parser, "any"):
        return None
    parser.take_word("any")
    parser.take("(")
    field = _field(parser)
    parser.expect(",", "between the list and the condition of any()")
    start = parser.at
    inner = disjunction(parser, _term)
    parser.expect(")", "after the condition of any(")
    if not _is_about_values(inner):
        parser.fail("any() asks for an item's values; write places and paths outside of it", start)
    return AnyItem(field, inner)


def _is_about_values(condition: Condition) -> bool:
    return all(
        isinstance(leaf.operand, Field)
        if isinstance(leaf, Compare | Contains | StartsWith)
        else isinstance(leaf, Exists | AnyItem | Always)
        for leaf in leaves(condition)
    )


def _place(parser: Parser) -> Condition | None:
    if parser.take_word("within"):
        return Within(_distance_m(parser))
    for word, term in (("approaching", Approaching()), ("receding", Receding())):
        if parser.take_word(word):
            return FieldPlace(_field(parser), term) if _sees_field(parser) else term
    if parser.take_word("inside"):
        return Inside(_area(parser))
    return None


def _sees_field(parser: Parser) -> bool:
    """Whether a name follows that is no word between conditions."""
    return parser.sees("`") or ((word := parser.word()) is not None and word not in ("and", "or", ""))


def _distance_m(parser: Parser) -> float:
    start = parser.at
    number = parser.number()
    if number is None or number < 0:
        parser.fail("within takes a distance, as in within 200 m; a field of that name is written in backquotes", start)
    for unit, metres in (("m", 1.0), ("km", 1000.0)):
        if parser.take_word(unit):
            if isinf(number * metres):
                parser.fail("the distance is too large", start)
            return number * metres
    parser.fail(f"a distance is in m or km, found {parser.here()}")


def _area(parser: Parser) -> Area:
    start = parser.at
    kind = parser.name()
    if kind not in ("circle", "rectangle", "ellipse", "polygon"):
        parser.fail(f"inside takes {_AREAS}; a field of that name is written in backquotes", start)
    parser.expect("(", f"after {kind}")
    try:
        area = _polygon(parser) if kind == "polygon" else _centred(parser, kind, start)
    except GeometryError as error:
        parser.fail(str(error), start)
    parser.expect(")", f"to close the {kind}")
    return area


def _centred(parser: Parser, kind: str, start: int) -> Area:
    numbers = [_coordinate(parser)]
    while parser.take(","):
        numbers.append(_coordinate(parser))
    match kind, numbers:
        case "circle", [x, y, radius]:
            return Area(Circle(radius), Position(x, y))
        case "rectangle", [x, y, width, height, *angle] if len(angle) <= 1:
            return Area(Rectangle(width, height, sum(angle)), Position(x, y))
        case "ellipse", [x, y, a, b, *angle] if len(angle) <= 1:
            return Area(Ellipse(a, b, sum(angle)), Position(x, y))
        case _:
            parser.fail(f"{kind} has the wrong number of values: {_AREAS}", start)


def _polygon(parser: Parser) -> Area:
    rings: list[tuple[Corner, ...]] = []
    while not rings or parser.take("/"):
        ring: list[Corner] = []
        while not ring or parser.take(","):
            ring.append((_coordinate(parser), _coordinate(parser)))
        rings.append(tuple(ring))
    return Area(Polygon(rings[0], tuple(rings[1:])))


def _coordinate(parser: Parser) -> float:
    number = parser.number()
    if number is None:
        parser.fail(f"expected a number of metres, found {parser.here()}; an area is {_AREAS}")
    return number


def _content(parser: Parser) -> Condition:
    start = parser.at
    for word, kind in (("contains", Contains), ("starts-with", StartsWith)):
        if parser.take_word(word):
            parser.expect("(", f"after {word}; a field of that name is written in backquotes")
            field = _field(parser)
            parser.expect(",", f"between the name and the text of {word}()")
            term = kind(field, _string(parser, word))
            parser.expect(")", f"after the text of {word}(")
            return term
    literal = _literal(parser)
    if literal is not None:
        op = parser.comparison()
        if op is None:
            parser.fail(f"a literal alone is not a condition; {_TERMS}", start)
        return _compare(parser, _field(parser), MIRRORED[op], literal, start)
    return _about(parser, _field(parser), start)


def _about(parser: Parser, field: Field, start: int) -> Condition:
    """Read the rest of a term about a field."""
    if parser.take_word("within"):
        return FieldPlace(field, Within(_distance_m(parser)))
    if parser.take_word("inside"):
        return FieldPlace(field, Inside(_area(parser)))
    if parser.take_word("in"):
        return _range(parser, field)
    if parser.take_word("contains"):
        return Contains(field, _string(parser, "contains"))
    if parser.take_word("starts-with"):
        return StartsWith(field, _string(parser, "starts-with"))
    if parser.take_word("starts"):
        if not parser.take_word("with"):
            parser.fail('expected with, as in name starts with "x"')
        return StartsWith(field, _string(parser, "starts with"))
    op = parser.comparison()
    if op is None:
        return Exists(field)
    literal = _literal(parser)
    if literal is None:
        parser.fail(f"expected a quoted text, a number, true or false, found {parser.here()}")
    return _compare(parser, field, op, literal, start)


def _compare(parser: Parser, field: Field, op: Comparison, literal: Literal, start: int) -> Compare:
    if isinstance(literal, bool) and op not in (Comparison.EQ, Comparison.NE):
        parser.fail("true and false are compared by = and != only", start)
    return Compare(field, op, literal)


def _range(parser: Parser, field: Field) -> Condition:
    start = parser.at
    low = parser.number()
    high = parser.number() if low is not None and parser.take("..") else None
    if low is None or high is None:
        parser.fail("in takes a range of numbers, as in price in 10..20", start)
    if low > high:
        parser.fail("the range is empty: its first number is the smaller one", start)
    return And((Compare(field, Comparison.GE, low), Compare(field, Comparison.LE, high)))


def _field(parser: Parser) -> Field:
    if parser.sees("`"):
        return Field(parser.backquoted())
    word = parser.word()
    if word is None:
        parser.fail(f"expected a term, found {parser.here()}; {_TERMS}")
    if word in WORDS:
        parser.fail(f"{word} is a word of the language; as a name it is written in backquotes: `{word}`")
    parser.take(word)
    if parser.sees("("):
        parser.fail(f"{word}() is not supported; there are contains() and starts-with()")
    return Field(word)


def _string(parser: Parser, what: str) -> str:
    literal = parser.string()
    if literal is None:
        parser.fail(f"{what} looks for a quoted text, found {parser.here()}")
    return literal


def _literal(parser: Parser) -> Literal | None:
    if parser.take_word("true"):
        return True
    if parser.take_word("false"):
        return False
    return parser.literal()
