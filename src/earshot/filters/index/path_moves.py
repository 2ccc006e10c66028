"""The steps of a location path as the automaton takes them: moves to a label, behind guards."""

from __future__ import annotations

from typing import NamedTuple

from earshot.filters.language.syntax import Comparison
from earshot.filters.language.values import COMPARE, number

Label = str | tuple[str, str]
"An element's name, or `attribute(name)`, or TEXT."
ANY = "*"
TEXT: Label = ("text", "")
UNKNOWN: Label = ("element", "")
"All names that no path mentions count as one."


def attribute(name: str) -> Label:
    """The label of an attribute; "*" for any."""
    return ("attribute", name)


ANY_ATTRIBUTE = attribute(ANY)


def wildcard_of(label: Label) -> Label | None:
    """The wildcard that includes this label."""
    if isinstance(label, str) or label == UNKNOWN:
        return ANY
    return None if label == TEXT else ANY_ATTRIBUTE


OWN_TEXT, POSITION, POSITION_OF_ALL = "", "[name]", "[*]"
"What a guard may ask of an element beside attributes: a text node, its position among siblings of its name, or all."

Property = tuple[str, str | int]
"What an element has: an attribute's name or one of the three above, and its text or position."


class Guard(NamedTuple):
    """A test on an element's own properties: `[@id]`, `[@id="x"]`, `[@id=5]`, `[text()="x"]` or `[2]`."""

    attribute: str
    wanted: str | float | None = None
    "The text or number it must be; None: there must be one."
    op: Comparison = Comparison.EQ
    "Of a position."

    def admits(self, value: str | int) -> bool:
        """Whether the guard holds for a property of its name."""
        if self.wanted is None:
            return True
        if isinstance(value, int):
            return COMPARE[self.op](value, self.wanted)
        return (value if isinstance(self.wanted, str) else number(value)) == self.wanted


Guards = tuple[Guard, ...]


class PathMove(NamedTuple):
    """One step of a path: to a child, or to anything below, that passes the guards."""

    below: bool
    label: Label
    guards: Guards = ()


PathMoves = tuple[PathMove, ...]
