"""Does an event meet a condition, seen from a consumer?

A condition is compiled once, into functions that call each other: here those over an event's values
and places, in `paths.py` those over its tree. `where.py` says what each term means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from earshot.events import Element, Event, Value
from earshot.filters.language.evaluation import as_boolean
from earshot.filters.language.event_types import is_type_pattern, type_matches
from earshot.filters.language.nodes import DocumentNodes, Evaluation
from earshot.filters.language.paths import Memo, all_of, any_of, candidate_test, node_test
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Approaching,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    FieldPlace,
    Holds,
    Inside,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    Receding,
    StartsWith,
    Within,
    leaves,
)
from earshot.filters.language.values import COMPARE, number, number_of, text_of, value_test
from earshot.geometry import STILL, Position, Velocity, closing_speed_m_s


class Viewer(msgspec.Struct, frozen=True, gc=False):
    """A consumer: where it is and how it moves."""

    position: Position
    velocity: Velocity = STILL


Predicate = Callable[[Event, Viewer | None], bool]


def compiled(condition: Condition, type: str | None = None) -> Predicate:
    """A condition on events of a type (None: of any), compiled."""
    meets = predicate(condition)
    if type is None:
        return meets
    if is_type_pattern(type):
        return lambda event, viewer: type_matches(type, event.type) and meets(event, viewer)
    return lambda event, viewer: event.type == type and meets(event, viewer)


def predicate(condition: Condition) -> Predicate:
    """A condition on events, compiled."""
    match condition:
        case And(terms):
            return all_of([predicate(term) for term in terms])
        case Or(terms):
            return any_of([predicate(term) for term in terms])
        case Not(term):
            inner = predicate(term)
            return lambda event, viewer: not inner(event, viewer)
        case Compare(Field(name), op, float() as limit):
            return _any_number(name, op, limit)
        case Compare(Field(name), Comparison.EQ, str() as text):
            return _any_text(name, text)
        case Compare(Field(name), op, literal):
            return _any_value(name, value_test(op, literal))
        case Contains(Field(name), text):
            return _any_value(name, lambda value: text in text_of(value))
        case StartsWith(Field(name), text):
            return _any_value(name, lambda value: text_of(value).startswith(text))
        case AnyItem(Field(name), inner_condition):
            meets_inner = predicate(inner_condition)
            return lambda event, _: any(meets_inner(item, None) for item in event.items(name))
        case Exists(Field(name)):
            return _any_value(name, lambda value: value is not False)
        case Within(distance_m):
            return lambda event, viewer: (
                viewer is not None
                and event.position is not None
                and viewer.position.distance_to(event.position) <= distance_m
            )
        case Approaching():
            return lambda event, viewer: closing_m_s(event, viewer) > 0.0
        case Receding():
            return lambda event, viewer: closing_m_s(event, viewer) < 0.0
        case Inside(area):
            return lambda event, _: event.position is not None and area.contains(event.position)
        case FieldPlace(Field(name), term):
            meets_there = predicate(term)
            return lambda event, viewer: any(meets_there(there, viewer) for there in _placed(event, name))
        case Always():
            return lambda _event, _viewer: True
        case Holds(expression):
            test_document = as_boolean(expression)
            return lambda event, _: test_document(Evaluation(nodes_of(event)), 0, 1, 1)
        case LocationPath(absolute=True, steps=(PathStep(Axis.CHILD, NodeKind.ELEMENT, name, ()),)) if name != "*":
            return lambda event, _: event.type == name
        case LocationPath():
            return _path_predicate(condition)
        case _:
            test = node_test(condition)
            return lambda event, _: test(event.document, Memo(event.document))


def _path_predicate(path: LocationPath) -> Predicate:
    """A path, asked only of documents that have all its words."""
    test, words = node_test(path), words_of(path)
    first = path.steps[0]
    name = first.name if first.axis is Axis.DESCENDANT and first.name != "*" else ""
    is_counted = any(isinstance(predicate, PositionTest) for predicate in first.predicates)
    from_named = candidate_test(path.steps) if name and first.kind is NodeKind.ELEMENT and not is_counted else None

    def meets(event: Event, _viewer: Viewer | None) -> bool:
        kept = event.__dict__
        known = kept.get("_words") or _words_if_worth(event)
        document = kept.get("document") or event.document
        if known is None:
            return test(document, Memo(document))
        if not words <= known.words:
            return False
        if from_named is None:
            return test(document, Memo(document))
        memo = Memo(document)
        return any(from_named(element, memo) for element in known.by_name.get(name, ()))

    return meets


WORTH_GATHERING = 16
"A document's words are gathered when this many filters have asked for it."


def _words_if_worth(event: Event) -> DocumentWords | None:
    asked = event.__dict__["_asked"] = event.__dict__.get("_asked", 0) + 1
    if asked < WORTH_GATHERING:
        return None
    words = event.__dict__["_words"] = DocumentWords(event.root)
    return words


def nodes_of(event: Event) -> DocumentNodes:
    """The numbered nodes of an event's document, made once."""
    known = event.__dict__.get("_nodes")
    if not isinstance(known, DocumentNodes):
        known = event.__dict__["_nodes"] = DocumentNodes(event.document)
    return known


def needs_viewer(condition: Condition) -> bool:
    """Whether the answer depends on the consumer's position or movement."""
    terms = (leaf.term if isinstance(leaf, FieldPlace) else leaf for leaf in leaves(condition))
    return any(isinstance(term, Within | Approaching | Receding) for term in terms)


def without_viewer_terms(condition: Condition) -> Condition:
    """A condition that needs no consumer and holds wherever the given one holds for some consumer."""
    if not needs_viewer(condition):
        return condition
    match condition:
        case And(terms):
            return And(tuple(map(without_viewer_terms, terms)))
        case Or(terms):
            return Or(tuple(map(without_viewer_terms, terms)))
        case _:
            return Always()


def reach_m(condition: Condition) -> float | None:
    """How far from the event's position a consumer may be at most; None where the condition sets no bound."""
    match condition:
        case Within(distance_m):
            return distance_m
        case And(terms):
            return min((reach for term in terms if (reach := reach_m(term)) is not None), default=None)
        case Or(terms):
            reaches = [reach_m(term) for term in terms]
            return None if None in reaches else max(reach for reach in reaches if reach is not None)
        case _:
            return None


def _placed(event: Event, name: str) -> list[Event]:
    """The event as if it were at each position of this name, and stood still."""
    values = event.fields.get(name, ())
    return [Event(event.type, position=value) for value in values if isinstance(value, Position)]


def _any_value(name: str, test: Callable[[Value], bool]) -> Predicate:
    def some(event: Event, _viewer: Viewer | None) -> bool:
        for value in event.fields.get(name, ()):  # noqa: SIM110
            if test(value):
                return True
        return False

    return some


def _any_text(name: str, text: str) -> Predicate:
    """`_any_value` for equality with a text: a field of a document may have many values, nearly all of them texts."""
    test = value_test(Comparison.EQ, text)

    def some(event: Event, _viewer: Viewer | None) -> bool:
        values = event.fields.get(name, ())
        if text in values:
            return True
        for value in values:  # noqa: SIM110
            if type(value) is not str and test(value):
                return True
        return False

    return some


def _any_number(name: str, op: Comparison, limit: float) -> Predicate:
    """`_any_value` for a comparison with a number, the most frequent term, without an inner call."""
    compare = COMPARE[op]

    def some(event: Event, _viewer: Viewer | None) -> bool:
        for value in event.fields.get(name, ()):
            if compare(value if type(value) is float else number_of(value), limit):
                return True
        return False

    return some


def closing_m_s(event: Event, viewer: Viewer | None) -> float:
    """How fast the consumer and the event's source approach each other, in metres a second; 0 where unknown."""
    if viewer is None or event.position is None:
        return 0.0
    return closing_speed_m_s(viewer.position, viewer.velocity, event.position, event.velocity or STILL)


# The words of paths and documents: a path selects nothing in a document that lacks one of its words.
#
# A document that many filters ask has its words gathered once. Then most filters are answered by one comparison of
# sets, and a path that begins with `//name` starts at the elements of that name.
#
# Words are the names of elements and attributes, and attributes with their text or their number: `a`, `id`,
# `("id", "5")`, `("id", 5.0)`.

Word = str | tuple[str, str | float]

_number = lru_cache(maxsize=1 << 14)(number)
"Documents have the same few texts again and again."


class DocumentWords:
    """All words of a document, and its elements by their names."""

    __slots__ = ("by_name", "words")

    def __init__(self, root: Element) -> None:
        self.by_name: dict[str, list[Element]] = {}
        attributes: set[tuple[str, str]] = set()
        stack = [root]
        while stack:
            element = stack.pop()
            self.by_name.setdefault(element.name, []).append(element)
            attributes.update(element.attributes.items())
            stack += element.elements
        numbers = {(name, value) for name, text in attributes if (value := _number(text)) == value}
        self.words: frozenset[Word] = frozenset().union(self.by_name, attributes, numbers, dict(attributes))


def words_of(path: LocationPath) -> frozenset[Word]:
    """The words that a document needs for the path to select something."""
    return frozenset(_needed(path, None))


def _needed(path: LocationPath, wanted: str | float | None) -> Iterator[Word]:
    """The words of a path whose last node is this text or number, where one is given."""
    for step in path.steps:
        if step.name not in ("", "*"):
            yield step.name
        for predicate in step.predicates:
            yield from _needed_by(predicate)
    last = path.steps[-1] if path.steps else None
    if wanted is not None and _is_named_attribute(last):
        assert last is not None
        yield last.name, wanted


def _is_named_attribute(step: PathStep | None) -> bool:
    return step is not None and step.kind is NodeKind.ATTRIBUTE and step.name != "*"


def _needed_by(predicate: Condition) -> Iterator[Word]:
    match predicate:
        case LocationPath():
            yield from _needed(predicate, None)
        case Compare(LocationPath() as path, op, literal):
            yield from _needed(path, literal if op is Comparison.EQ else None)
