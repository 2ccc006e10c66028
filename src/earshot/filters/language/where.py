"""`where` to filters: predicates over an event's named values and over places, as people write them.

::

    condition  ::=  condition 'or' condition  |  condition 'and' condition  |  'not' condition
                 |  '(' condition ')'  |  'true'  |  'false'  |  term  |  an XPath filter
    term       ::=  name comparison literal  |  literal comparison name  |  name 'in' number '..' number
                 |  name 'contains' string  |  name 'starts with' string
                 |  'contains(' name ',' string ')'  |  'starts-with(' name ',' string ')'  |  name
                 |  'within' number ('m' | 'km')  |  'approaching'  |  'receding'  |  'inside' area
    area       ::=  'circle(' x ',' y ',' radius ')'  |  'rectangle(' x ',' y ',' width ',' height angle? ')'
                 |  'ellipse(' x ',' y ',' half-axis ',' half-axis angle? ')'
                 |  'polygon(' x y (',' x y)* ('/' x y (',' x y)*)* ')'
    literal    ::=  string | number | 'true' | 'false'

`and` binds tighter than `or`, `not` tighter than both. A text stands in single or double quotes, its
own quote written twice. A name that is a word of the language or holds odd signs stands in
backquotes: `` `within` = 3 ``. Areas are in metres on the network's plane, given by their centre,
angles in degrees counter-clockwise from east; what follows a slash in a polygon is a hole.

What a term means:

- A field is every value of that name: flat content has one, an XML document's root attributes and
  leaf elements may have several. A term holds if it holds for any of them, so it is false where
  there is none; `not` turns that around. `price in 10..20` is `price >= 10 and price <= 20`.
- Against a number the value counts as XPath's number(): text is read, true is 1, what is no number
  is NaN, which differs from everything and is neither less nor greater.
- Against a text, `=` and `!=` compare texts; `<`, `<=`, `>` and `>=` compare numbers, as XPath does. A
  value that is a time is compared with an ISO 8601 text as a time, by all six.
- Against `true` and `false` the value counts as a boolean: true or false, 1 or 0, or these as texts.
- A name alone holds where there is such a value other than the boolean false.
- `within` and `inside` are about the event's position, `within`, `approaching` and `receding` about
  the consumer too: without a position, or without a viewer, they are false, and `not` of them true.
"""

from __future__ import annotations

from typing import NoReturn

from earshot.errors import GeometryError
from earshot.filters.language import xpath
from earshot.filters.language.parser import MIRRORED, Reader, disjunction
from earshot.filters.language.syntax import (
    Always,
    And,
    Approaching,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    Inside,
    Literal,
    Not,
    Receding,
    StartsWith,
    Within,
)
from earshot.geometry import Area, Circle, Corner, Ellipse, Polygon, Position, Rectangle

_LOGIC = ("and", "or", "not", "true", "false", "in", "contains", "starts", "starts-with")
_PLACES = ("within", "approaching", "receding", "inside")
WORDS = frozenset((*_LOGIC, *_PLACES))
"Words of the language: as names they stand in backquotes."
_TERMS = (
    'a term is like price < 20, category = "jazz", price in 10..20, name contains "x", within 200 m, approaching, '
    "receding or inside circle(0, 0, 100)"
)
_AREAS = "circle(x, y, radius), rectangle(x, y, width, height), ellipse(x, y, a, b) or polygon(x y, x y, x y)"


def parse(text: str) -> Condition:
    """The condition a `where` text stands for."""
    return condition(Reader(text))


def condition(reader: Reader) -> Condition:
    """Read a condition, to the end of the text."""
    if reader.ended:
        reader.fail(f"the filter is empty; {_TERMS}")
    found = disjunction(reader, _term)
    if not reader.ended:
        reader.fail(f"expected and, or or the end, found {reader.here()}")
    return found


def _term(reader: Reader) -> Condition:
    reader.enter()
    term = _structure(reader) or _place(reader) or _content(reader)
    reader.leave()
    return term


def _structure(reader: Reader) -> Condition | None:
    """Read a parenthesis, a negation, a constant or a path."""
    if reader.sees("("):
        return _grouped(reader)
    if reader.sees("/"):
        return xpath.absolute_path(reader)
    if reader.take_word("not"):
        return Not(_grouped(reader) if reader.sees("(") else _term(reader))
    start = reader.at
    for word, constant in (("true", Always()), ("false", Not(Always()))):
        if reader.take_word(word):
            if reader.comparison() is None:
                return constant
            reader.at = start
    return None


def _grouped(reader: Reader) -> Condition:
    reader.take("(")
    inner = disjunction(reader, _term)
    reader.expect(")", "to close the parenthesis")
    return inner


def _place(reader: Reader) -> Condition | None:
    if reader.take_word("within"):
        return Within(_distance_m(reader))
    if reader.take_word("approaching"):
        return Approaching()
    if reader.take_word("receding"):
        return Receding()
    if reader.take_word("inside"):
        return Inside(_area(reader))
    return None


def _distance_m(reader: Reader) -> float:
    start = reader.at
    number = reader.number()
    if number is None or number < 0:
        reader.fail("within takes a distance, as in within 200 m; a field of that name stands in backquotes", start)
    for unit, metres in (("m", 1.0), ("km", 1000.0)):
        if reader.take_word(unit):
            return number * metres
    reader.fail(f"a distance is in m or km, found {reader.here()}")


def _area(reader: Reader) -> Area:
    start = reader.at
    kind = reader.name()
    if kind not in ("circle", "rectangle", "ellipse", "polygon"):
        reader.fail(f"inside takes {_AREAS}; a field of that name stands in backquotes", start)
    reader.expect("(", f"after {kind}")
    try:
        area = _polygon(reader) if kind == "polygon" else _centred(reader, kind, start)
    except GeometryError as error:
        reader.fail(str(error), start)
    reader.expect(")", f"to close the {kind}")
    return area


def _centred(reader: Reader, kind: str, start: int) -> Area:
    numbers = [_coordinate(reader)]
    while reader.take(","):
        numbers.append(_coordinate(reader))
    match kind, numbers:
        case "circle", [x, y, radius]:
            return Area(Circle(radius), Position(x, y))
        case "rectangle", [x, y, width, height, *angle] if len(angle) <= 1:
            return Area(Rectangle(width, height, sum(angle)), Position(x, y))
        case "ellipse", [x, y, a, b, *angle] if len(angle) <= 1:
            return Area(Ellipse(a, b, sum(angle)), Position(x, y))
        case _:
            reader.fail(f"{kind} has other numbers: {_AREAS}", start)


def _polygon(reader: Reader) -> Area:
    rings = [_ring(reader)]
    while reader.take("/"):
        rings.append(_ring(reader))
    return Area(Polygon(rings[0], tuple(rings[1:])))


def _ring(reader: Reader) -> tuple[Corner, ...]:
    corners = [(_coordinate(reader), _coordinate(reader))]
    while reader.take(","):
        corners.append((_coordinate(reader), _coordinate(reader)))
    return tuple(corners)


def _coordinate(reader: Reader) -> float:
    number = reader.number()
    if number is None:
        reader.fail(f"expected a number of metres, found {reader.here()}; an area is {_AREAS}")
    return number


def _content(reader: Reader) -> Condition:
    start = reader.at
    for word, kind in (("contains", Contains), ("starts-with", StartsWith)):
        if reader.take_word(word):
            reader.expect("(", f"after {word}; a field of that name stands in backquotes")
            field = _field(reader)
            reader.expect(",", f"between the name and the text of {word}()")
            term = kind(field, _string(reader, word))
            reader.expect(")", f"after the text of {word}(")
            return term
    literal = _literal(reader)
    if literal is not None:
        op = reader.comparison()
        if op is None:
            reader.fail(f"a literal alone is no condition; {_TERMS}", start)
        return _compare(reader, _field(reader), MIRRORED[op], literal, start)
    return _about(reader, _field(reader), start)


def _about(reader: Reader, field: Field, start: int) -> Condition:
    """Read what is said of a field."""
    if reader.take_word("in"):
        return _range(reader, field)
    if reader.take_word("contains"):
        return Contains(field, _string(reader, "contains"))
    if reader.take_word("starts-with"):
        return StartsWith(field, _string(reader, "starts-with"))
    if reader.take_word("starts"):
        if not reader.take_word("with"):
            reader.fail('expected with, as in name starts with "x"')
        return StartsWith(field, _string(reader, "starts with"))
    op = reader.comparison()
    if op is None:
        return Exists(field)
    literal = _literal(reader)
    if literal is None:
        reader.fail(f"expected a quoted text, a number, true or false, found {reader.here()}")
    return _compare(reader, field, op, literal, start)


def _compare(reader: Reader, field: Field, op: Comparison, literal: Literal, start: int) -> Compare:
    if isinstance(literal, bool) and op not in (Comparison.EQ, Comparison.NE):
        reader.fail("true and false are compared by = and != only", start)
    return Compare(field, op, literal)


def _range(reader: Reader, field: Field) -> Condition:
    start = reader.at
    low = reader.number()
    if low is None or not reader.take(".."):
        _no_range(reader, start)
    high = reader.number()
    if high is None:
        _no_range(reader, start)
    if low > high:
        reader.fail("the range is empty: its first number is the smaller one", start)
    return And((Compare(field, Comparison.GE, low), Compare(field, Comparison.LE, high)))


def _no_range(reader: Reader, start: int) -> NoReturn:
    reader.fail("in takes a range of numbers, as in price in 10..20", start)


def _field(reader: Reader) -> Field:
    if reader.sees("`"):
        return Field(reader.backquoted())
    word = reader.word()
    if word is None:
        reader.fail(f"expected a term, found {reader.here()}; {_TERMS}")
    if word in WORDS:
        reader.fail(f"{word} is a word of the language; as a name it stands in backquotes: `{word}`")
    reader.take(word)
    if reader.sees("("):
        reader.fail(f"{word}() is not supported; there are contains() and starts-with()")
    return Field(word)


def _string(reader: Reader, what: str) -> str:
    literal = reader.string()
    if literal is None:
        reader.fail(f"{what} looks for a quoted text, found {reader.here()}")
    return literal


def _literal(reader: Reader) -> Literal | None:
    if reader.take_word("true"):
        return True
    if reader.take_word("false"):
        return False
    return reader.literal()
