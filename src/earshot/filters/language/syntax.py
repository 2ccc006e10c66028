"""The filter language as values: what both texts, XPath and `where`, are parsed into.

::

    Filter.xpath("/CD[category='jazz']")       ->  LocationPath
    Filter.where("price < 20 and approaching") ->  a condition over `Field`s and location terms

Everything is frozen and hashable; `matching.py` evaluates it, `canonical_text.py` writes it back, the
relations compare it and the index looks it up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from earshot.filters.language.expressions import Expression
from earshot.geometry import Area


class Axis(StrEnum):
    """How a step leads down from its context."""

    CHILD = "/"
    DESCENDANT = "//"
    "descendant-or-self::node()/child::, as XPath's // means"


class NodeKind(StrEnum):
    """What kind of node a step selects."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text"
    SELF = "self"
    "the step `.`"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a location path. `name` is "*" for any; empty for text() and `.`.

    Predicates apply in order, as in XPath: a `PositionTest` counts the nodes that passed the ones before it.
    """

    axis: Axis
    kind: NodeKind
    name: str = ""
    predicates: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class LocationPath:
    """A location path. Absolute paths start at the document; relative ones at the context node.
    As a condition it holds when it selects at least one node."""

    absolute: bool
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A named value of an event's flat content (`where` only)."""

    name: str


class Comparison(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


Literal = str | float | bool
"Numbers are floats; booleans occur in `where` only."


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """`operand op literal`, the literal always on the right; holds if any selected value does."""

    operand: LocationPath | Field
    op: Comparison
    literal: Literal

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Compare)
            and self.literal == other.literal
            and self.op is other.op
            and self.operand == other.operand
            and isinstance(self.literal, bool) is isinstance(other.literal, bool)  # to Python, True == 1.0
        )

    def __hash__(self) -> int:
        return hash((self.operand, self.op, self.literal))


@dataclass(frozen=True, slots=True)
class Contains:
    """The text contains the literal. For a path it is the text of its first node, "" without a node, as in
    XPath 1.0. For a field it is any of its values, so the term is false without a value."""

    operand: LocationPath | Field
    literal: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text begins with the literal; the text is as for `Contains`."""

    operand: LocationPath | Field
    literal: str


@dataclass(frozen=True, slots=True)
class Exists:
    """The content has a value of that name other than the boolean false (`where` only)."""

    field: Field


@dataclass(frozen=True, slots=True)
class AnyItem:
    """Some item of a list meets the condition, whose fields are the item's own (`where` only)."""

    field: Field
    condition: Condition


@dataclass(frozen=True, slots=True)
class PositionTest:
    """`[2]` or `[position() < 3]`: the node's position among the siblings that passed the step's name and
    the predicates before this one. It is always a whole predicate of a step."""

    op: Comparison
    number: float


@dataclass(frozen=True, slots=True)
class Holds:
    """XPath's boolean() of an expression that is no tree pattern, asked of the document. Only events meet or fail
    it: it is never a predicate of a `LocationPath`."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: Condition


@dataclass(frozen=True, slots=True)
class Within:
    """The event's position is at most this far from the consumer."""

    distance_m: float


@dataclass(frozen=True, slots=True)
class Approaching:
    """The distance between the consumer and the event's source decreases."""


@dataclass(frozen=True, slots=True)
class Receding:
    """The distance between the consumer and the event's source increases."""


@dataclass(frozen=True, slots=True)
class Inside:
    """The event's position lies in a fixed area."""

    area: Area


@dataclass(frozen=True, slots=True)
class Always:
    """Every event."""


LocationTerm = Within | Approaching | Receding | Inside


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """A location term about a parameter of the event that is a position, instead of the event's own position. What
    stands there does not move."""

    field: Field
    term: LocationTerm


Condition = (
    LocationPath
    | Compare
    | Contains
    | StartsWith
    | Exists
    | AnyItem
    | PositionTest
    | Holds
    | And
    | Or
    | Not
    | LocationTerm
    | Always
    | FieldPlace
)


def leaves(condition: Condition) -> Iterator[Condition]:
    """The conditions that this one joins by and, or and not."""
    match condition:
        case And(terms) | Or(terms):
            for term in terms:
                yield from leaves(term)
        case Not(term):
            yield from leaves(term)
        case _:
            yield condition


class TypedCondition(NamedTuple):
    """A condition, and the event type it is confined to (None: any type)."""

    condition: Condition
    type: str | None = None
