"""What a value counts as in a comparison (a number, a time, a boolean, a text), and the comparisons themselves."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from math import inf, nextafter
from typing import Any

from earshot.events import Value, value_text
from earshot.filters.language.syntax import Comparison, Literal

NAN = float("nan")

COMPARE: dict[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}

_MANTISSA = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_NUMBER = re.compile(rf"[ \t\r\n]*(?:({_MANTISSA}[eE][+-]?[0-9]+)|({_MANTISSA})(?:[eE][+-]?)?)[ \t\r\n]*")
"XPath's number, and the exponent that libxml2 reads too: `1e3`, and `1e` for 1."
_BOOLEANS: dict[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def number(text: str) -> float:
    """XPath's number() of a text: NaN where the text is not a number."""
    return _short_number(text) if len(text) <= 24 else _number(text)


def _number(text: str) -> float:
    found = _NUMBER.fullmatch(text)
    return float(found[1] or found[2]) if found else NAN


_short_number = lru_cache(maxsize=4096)(_number)
"Documents have the same few numbers again and again."


def number_of(value: Value) -> float:
    """A value as a number: text is read, true is 1, times and positions are NaN."""
    if isinstance(value, str):
        return number(value)
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return inf if value > 0 else -inf
    return NAN


@lru_cache(maxsize=1024)
def moment(text: str) -> datetime | None:
    """The time an ISO 8601 text names; one without a zone is in UTC."""
    try:
        return aware(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None


def aware(time: datetime) -> datetime:
    """The time with its zone: UTC if it has none."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def boolean_of(value: Value) -> bool | None:
    """A value as a boolean: true, false, 1 or 0, or these as text; None for any other."""
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip())
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    return None


def text_of(value: Value) -> str:
    """A value as text."""
    return value if isinstance(value, str) else value_text(value)


def value_test(op: Comparison, literal: Literal) -> Callable[[Value], bool]:
    """A field's comparison with a literal, for one of its values."""
    compare = COMPARE[op]
    if isinstance(literal, bool):
        return lambda value: compare(boolean_of(value), literal)
    if isinstance(literal, float):
        return lambda value: compare(value if type(value) is float else number_of(value), literal)
    test = _text_test(op, literal)
    time = moment(literal)
    if time is None:
        return test
    return lambda value: compare(aware(value), time) if isinstance(value, datetime) else test(value)


def _text_test(op: Comparison, literal: str) -> Callable[[Value], bool]:
    if op is Comparison.EQ:
        return lambda value: (value if type(value) is str else value_text(value)) == literal
    if op is Comparison.NE:
        return lambda value: text_of(value) != literal
    compare, limit = COMPARE[op], number(literal)
    return lambda value: compare(number_of(value), limit)


def string_test(op: Comparison, literal: Literal) -> Callable[[str], bool]:
    """XPath's comparison of one node's string value with a literal: `=` and `!=` with a text compare
    texts, everything else compares numbers."""
    compare = COMPARE[op]
    if isinstance(literal, str):
        if op in (Comparison.EQ, Comparison.NE):
            return lambda text: compare(text, literal)
        literal = number(literal)
    return lambda text: compare(number(text), literal)


_INTERVALS: dict[Comparison, Callable[[float], tuple[float, float]]] = {
    Comparison.EQ: lambda limit: (limit, limit),
    Comparison.LT: lambda limit: (-inf, nextafter(limit, -inf)),
    Comparison.LE: lambda limit: (-inf, limit),
    Comparison.GT: lambda limit: (nextafter(limit, inf), inf),
    Comparison.GE: lambda limit: (limit, inf),
}


def interval(op: Comparison, limit: float) -> tuple[float, float] | None:
    """The numbers that are `op limit`, as a smallest and a greatest one; None for `!=`."""
    numbers = _INTERVALS.get(op)
    return None if numbers is None else numbers(limit)
