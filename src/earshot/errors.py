"""Every error Earshot raises, and whose fault it is.

`UsageError`: the caller made a mistake; the message says what to do. `PeerError`: a packet from the network
is wrong; it is counted and dropped, never raised into the application. `MachineFailure`: a protocol raised an
exception. `SparkFailure`: a Spark job failed, and the caller is not at fault.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class EarshotError(Exception):
    """The base of all errors of Earshot."""


class UsageError(EarshotError):
    """The caller made a mistake; the message says what to do."""


class FilterSyntaxError(UsageError):
    """A filter's text is not in the language. `column` counts from 1."""

    def __init__(self, reason: str, text: str, column: int) -> None:
        shown, before = _surroundings(text, column - 1)
        super().__init__(f"{reason} (column {column})\n  {shown}\n  {' ' * before}^")
        self.reason = reason
        self.text = text
        self.column = column

    def __reduce__(self) -> tuple[type[FilterSyntaxError], tuple[str, str, int]]:
        return FilterSyntaxError, (self.reason, self.text, self.column)


def _surroundings(text: str, at: int) -> tuple[str, int]:
    """The part of a text around an index, on one line, and the index in that part."""
    start, end = max(at - 60, 0), at + 40
    front, back = "..." if start else "", "..." if end < len(text) else ""
    plain = "".join(sign if sign.isprintable() else " " for sign in text[start:end])
    return f"{front}{plain}{back}", len(front) + at - start


class FilterTooCostly(UsageError):
    """A filter whose evaluation on one document exceeds its budget; the message says how to make it cheaper."""


class EventError(UsageError):
    """An event that cannot be built."""


class ContentMismatch(EventError):
    """Content that differs from its event type's structure."""


class XmlError(EventError):
    """An XML document that was refused, with its position where known."""


class XmlMalformed(XmlError):
    """Not well formed."""


class XmlTooLarge(XmlError):
    """More bytes than allowed."""


class XmlTooDeep(XmlError):
    """Nested deeper than allowed."""


class XmlTooManyElements(XmlError):
    """More elements, or more attributes on one element, than allowed."""


class XmlEntityRefused(XmlError):
    """The document declares or uses entities of its own."""


class QualityError(UsageError):
    """A quality of service that cannot be kept, or that differs from another node's."""


class DtdError(UsageError, ValueError):
    """A document type definition that was refused."""


class DtdMalformed(DtdError):
    """Not well formed."""


class DtdTooLarge(DtdError):
    """More bytes, elements or nesting than allowed, in the file or after its entities are expanded."""


class DtdEndless(DtdError):
    """No finite document can match it."""


class DtdEntityRefused(DtdError):
    """The DTD refers to something outside its own file."""


class GeometryError(UsageError):
    """An impossible shape, area or coordinate."""


class SettingsError(UsageError, ValueError):
    """Settings do not make sense. (A ValueError too, so that msgspec reports where it was raised.)"""


class ScenarioError(SettingsError):
    """A scenario file is wrong; the message names the key and the file."""


class UnknownName(UsageError):
    """No such protocol, scenario, study or table."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no {what} named {name!r}; {nearest_name(name, sorted(known))}")
        self.name = name


MOST_LISTED = 30


def nearest_name(name: str, known: Iterable[str], most: int = MOST_LISTED) -> str:
    """What to write instead of an unknown name: the nearest known name, or a list of them."""
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"there are: {listed(names, most)}"


def listed(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """Names with commas between them; a list of more than `most` ends in `and 2,192 more`."""
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more:,} more"


class TraceError(UsageError):
    """A trace file of the wrong format, empty or missing."""


class RunTooSlow(EarshotError):
    """A simulation took more processor time than its limit."""


class LakeError(UsageError):
    """A lake does not have the requested table or run."""


class NetworkUnavailable(UsageError):
    """A live node cannot use its network: no such interface, port or peer, or no multicast."""


class LocationUnavailable(UsageError):
    """A live node's location service gives no position."""


class SparkUnavailable(UsageError):
    """No Spark session can be started: no Java, no such master, workers without a package."""


class PeerError(EarshotError):
    """Bytes from the network are wrong."""


class MalformedPacket(PeerError):
    """Bytes that are not one of our packets."""


class MachineFailure(EarshotError):
    """A protocol raised an exception in an entry point. The message has node, time, packet and seed to repeat it."""


class SparkFailure(EarshotError):
    """A Spark job failed; the message is the cause, without Java's stack trace."""
