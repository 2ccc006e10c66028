"""What a value counts as in a comparison: a number, a time, a boolean."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from earshot.events import Value

NAN = float("nan")

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?:[eE][+-]?)?[ \t\r\n]*")
"XPath's number, and the exponent that libxml2 reads too: `1e3`, and `1e` for 1."


def number(text: str) -> float:
    """XPath's number() of a text: NaN where it is none."""
    found = _NUMBER.fullmatch(text)
    return float(found[1]) if found else NAN


def number_of(value: Value) -> float:
    """A value as a number: text is read, true is 1, times and positions are NaN."""
    if isinstance(value, str):
        return number(value)
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return NAN


@lru_cache(maxsize=1024)
def moment(text: str) -> datetime | None:
    """The time an ISO 8601 text names; one without a zone is in UTC."""
    try:
        return aware(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None


def aware(time: datetime) -> datetime:
    """The time with its zone: UTC where it says none."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_BOOLEANS: dict[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def boolean_of(value: Value) -> bool | None:
    """A value as a boolean: true, false, 1 or 0, or these as text; None for any other."""
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip())
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    return None
