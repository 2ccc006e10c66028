"""Events: what happened, of which type, with which content, where and when.

Content is either a set of named, typed values, which may nest as JSON does, or an XML document's tree of
elements; both answer the same questions: `event.root` gives the tree an XPath filter walks, `event.fields` the
named values a `where` filter compares, `event.items` the items of a list.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from operator import is_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, cast

import msgspec

from earshot.documents import Element as Element
from earshot.documents import read_xml, write_xml
from earshot.errors import ContentMismatch, EventError
from earshot.geometry import Area, Position, Velocity, parse_shape
from earshot.quality import NAMES as QUALITY_NAMES
from earshot.quality import Quality, attribute_text, quality_of
from earshot.wire import Whole, Word

Value = bool | int | float | str | datetime | Position

_TYPE_NAMES: dict[Any, str] = {
    int: "integer",
    float: "float",
    str: "string",
    bool: "boolean",
    datetime: "time",
    Position: "position",
}
VALUE_TYPES = tuple(_TYPE_NAMES.values())
_PLAIN_TYPES = frozenset(_TYPE_NAMES) - {datetime}
"Values of these types are kept as they are."
_LEAST, _MOST = -(2**63), 2**64 - 1
"The whole numbers that the wire carries."
MAX_SIGNATURE_BYTES = 1024


if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """Like functools.cached_property, without its lock, which before Python 3.12 costs more than our work."""

        def __init__(self, compute):
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, event, owner=None):
            if event is None:
                return self
            found = event.__dict__[self.name] = self.compute(event)
            return found


class Event(msgspec.Struct, frozen=True, array_like=True, dict=True, weakref=True):
    """Something that happened.

    The publisher gives only `type` and `content`; `id`, `source`, `position`, `velocity`,
    `time` and `area` are stamped by the publishing node. `area` is where the event is of
    interest: its publisher's proximity at that moment, None for everywhere. `lifespan_s` counts
    from `time`; None means the protocol's own default.
    """

    type: Word
    content: dict[str, Any] | Element = msgspec.field(default_factory=dict)
    "Named `Value`s, or objects and lists of them. (Any: msgspec cannot distinguish a time from a text in a union.)"
    id: Word = ""
    source: Word = ""
    position: Position | None = None
    velocity: Velocity | None = None
    time: float = 0.0
    area: Area | None = None
    lifespan_s: float | None = None
    priority: Whole = 0
    signature: Annotated[bytes, msgspec.Meta(max_length=MAX_SIGNATURE_BYTES)] | None = None
    "The source's signature, and perhaps a certificate. Machines carry these bytes without change."

    verified: ClassVar[bool] = False
    "Whether the receiving host verified the source's signature; set by live nodes."
    late_s: ClassVar[float] = 0.0
    "By how many seconds the event missed its type's deadline; set by live nodes."

    def __post_init__(self) -> None:
        if not self.type or not isinstance(self.type, str):
            raise EventError(f"an event needs a type that is not an empty text, got {self.type!r}")
        content = self.content
        if isinstance(content, dict):
            for name, value in content.items():
                kind = type(value)
                if type(name) is not str or (kind is int and not _LEAST <= value <= _MOST) or kind not in _PLAIN_TYPES:
                    plain = {name: _plain_value(name, value) for name, value in content.items()}
                    msgspec.structs.force_setattr(self, "content", plain)
                    return
        elif not isinstance(content, Element):
            raise EventError(f"content is a dict of named values or an Element, got {type(content).__name__}")
        elif content.name != self.type:
            raise EventError(f"the root element {content.name!r} must name the event type {self.type!r}")

    @cached_property
    def root(self) -> Element:
        """The content as a tree; each named value, and each item of a list, becomes a child element."""
        if isinstance(self.content, Element):
            return self.content
        return Element(self.type, {}, _children(self.content))

    @cached_property
    def document(self) -> Element:
        """The node above the root, where absolute paths start."""
        return Element("", {}, (self.root,))

    @cached_property
    def fields(self) -> Mapping[str, tuple[Value, ...]]:
        """The content as named values. Flat content stays as it is; nested content gets names with dots, and a list
        gives several values; a tree gives the root's attributes and its leaf elements (an element may repeat). A schema
        gives the values their types (`EventType.read`)."""
        if not isinstance(self.content, Element):
            if self.is_nested:
                return {name: tuple(values) for name, values in _dotted(self.content).items()}
            return {name: (value,) for name, value in self.content.items()}
        found: dict[str, tuple[Value, ...]] = {name: (text,) for name, text in self.content.attributes.items()}
        repeated: dict[str, list[Value]] = {}
        for child in self.content.elements:
            if not child.elements:
                repeated.setdefault(child.name, []).append(child.text)
        for name, texts in repeated.items():
            found[name] = (*found.get(name, ()), *texts)
        return found

    @property
    def is_nested(self) -> bool:
        """Whether the content has objects or lists of values."""
        if isinstance(self.content, Element):
            return False
        kinds = set(map(type, self.content.values()))
        return dict in kinds or list in kinds

    def items(self, name: str) -> tuple[Event, ...]:
        """The items of the list with that name, each as an event with its own content. An object, or an element of a
        tree, is one item; a plain value gets the name `value`."""
        known: dict[str, tuple[Event, ...]] = self.__dict__.setdefault("_items", {})
        if name not in known:
            found = _named(self.content, name)
            known[name] = tuple(self._item(item) for item in found)
        return known[name]

    def _item(self, item: Any) -> Event:
        if isinstance(item, Element):
            if item.elements:
                return Event(item.name, item)
            return Event(self.type, {**item.attributes, "value": item.text})
        return Event(self.type, item if isinstance(item, dict) else {"value": item})

    def stamped(
        self,
        *,
        id: str,
        source: str,
        time: float,
        position: Position | None = None,
        velocity: Velocity | None = None,
        area: Area | None = None,
    ) -> Event:
        """This event as its publishing node sends it."""
        return msgspec.structs.replace(
            self, id=id, source=source, time=time, position=position, velocity=velocity, area=area
        )

    @classmethod
    def from_xml(cls, document: bytes | str, schema: EventType | None = None, **stamp: Any) -> Event:
        """Read an XML document; its root element's local name is the type. See `earshot.documents`."""
        root = read_xml(document)
        event = cls(type=root.name, content=root, **stamp)
        if schema is not None:
            schema.read(event)
        return event

    def to_xml(self) -> bytes:
        """The content as an XML document, encoded in UTF-8."""
        return write_xml(self.root)

    @classmethod
    def from_json(cls, document: bytes | str, schema: EventType | None = None) -> Event:
        """Read `{"type": ..., "content": {...}, ...}`, or an XML document as `"xml"` instead of `"content"`.

        In content a time is `{"time": "2026-01-31T12:00:00+00:00"}`, a position
        `{"x_m": ..., "y_m": ...}`, a number that JSON cannot write `{"number": "nan"}`; a schema also reads
        a time from plain ISO 8601 text.
        """
        bare = document.removeprefix("\ufeff") if isinstance(document, str) else document.removeprefix(BOM_UTF8)
        if not bare.strip():
            raise EventError("there is no event: the text is empty")
        try:
            raw = _json_event_decoder.decode(bare)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            example = next((one for key, one in _JSON_EXAMPLES.items() if key in str(error)), _JSON_EXAMPLE)
            there_are = "" if "unknown field" not in str(error) or "`$" in str(error) else f"; there are: {_JSON_NAMES}"
            raise EventError(f"not an event in JSON, as in {example}: {error}{there_are}") from None
        if raw.xml is not None and raw.content is not None:
            raise EventError('an event has either "content" or "xml", not both')
        flat = {name: _value_from_json(name, value) for name, value in (raw.content or {}).items()}
        event = cls(
            type=raw.type,
            content=flat if raw.xml is None else read_xml(raw.xml),
            id=raw.id,
            source=raw.source,
            position=Position(raw.position.x_m, raw.position.y_m) if raw.position else None,
            velocity=Velocity(raw.velocity.x_m_s, raw.velocity.y_m_s) if raw.velocity else None,
            time=raw.time,
            area=Area(parse_shape(raw.area.shape), Position(raw.area.x_m, raw.area.y_m)) if raw.area else None,
            lifespan_s=raw.lifespan_s,
            priority=raw.priority,
            signature=raw.signature,
        )
        return schema.read(event) if schema is not None else event

    def to_json(self) -> bytes:
        """The event as JSON; `from_json` reads the same event back."""
        tree = isinstance(self.content, Element)
        position, velocity, area = self.position, self.velocity, self.area
        written = _JsonEvent(
            type=self.type,
            content=_value_to_json(self.content) if not tree else None,
            xml=self.to_xml().decode() if tree else None,
            id=self.id,
            source=self.source,
            position=_JsonPosition(position.x_m, position.y_m) if position else None,
            velocity=_JsonVelocity(velocity.x_m_s, velocity.y_m_s) if velocity else None,
            time=self.time,
            area=_JsonArea(str(area.shape), area.at.x_m, area.at.y_m) if area else None,
            lifespan_s=self.lifespan_s,
            priority=self.priority,
            signature=self.signature,
        )
        return msgspec.json.encode(written)


def with_quality(event: Event, quality: Quality) -> Event:
    """The event with its type's lifespan and priority, if it has none of its own."""
    lifespan_s = quality.lifespan_s if event.lifespan_s is None else event.lifespan_s
    return msgspec.structs.replace(event, lifespan_s=lifespan_s, priority=event.priority or quality.priority)


MOST_LEVELS = 16
"Content nests at most this deep."


def _plain_value(name: Any, value: Any, level: int = 1) -> Any:
    """A value of one of the six types, or objects and lists of them. A list of two numbers, as on the wire, becomes a
    position; a time without a zone is UTC. Anything else is refused."""
    if not isinstance(name, str):
        raise EventError(f"names in content must be texts, got {name!r}")
    match value:
        case bool() | Position():
            return value
        case int() if not _LEAST <= value <= _MOST:
            raise EventError(f"{name!r} must be an integer of at most 64 bits, got {value.bit_length()} bits")
        case int() | float() | str():
            return next(plain(value) for plain in (int, float, str) if isinstance(value, plain))
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case [float() | int() as x, float() | int() as y] if not isinstance(x, bool) and not isinstance(y, bool):
            return Position(float(x), float(y))
        case dict() | list() | tuple() if level == MOST_LEVELS:
            raise EventError(f"{name!r} nests deeper than {MOST_LEVELS} levels")
        case dict():
            return {inner: _plain_value(inner, item, level + 1) for inner, item in value.items()}
        case list() | tuple():
            return [_plain_value(name, item, level + 1) for item in value]
        case _:
            kinds = f"{', '.join(VALUE_TYPES)}, or an object or a list of these"
            raise EventError(f"{name!r} must be one of {kinds}, got {type(value).__name__}")


# Nested content: objects and lists of values.


def _children(content: dict[str, Any]) -> tuple[Element | str, ...]:
    """Named values as elements; the items of a list become elements with the list's name."""
    found: list[Element | str] = []
    for name, value in content.items():
        for item in _flat(value):
            if isinstance(item, dict):
                found.append(Element(name, {}, _children(item)))
            else:
                text = value_text(item)
                found.append(Element(name, {}, (text,) if text else ()))
    return tuple(found)


def _flat(value: Any) -> list[Any]:
    """A value as a list without lists in it."""
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]


def _dotted(content: dict[str, Any], above: str = "", found: dict[str, list[Value]] | None = None) -> Any:
    """All values by their full names, from the top and joined by dots."""
    found = {} if found is None else found
    for name, value in content.items():
        for item in _flat(value):
            if isinstance(item, dict):
                _dotted(item, f"{above}{name}.", found)
            else:
                found.setdefault(above + name, []).append(item)
    return found


def _named(content: Any, name: str) -> list[Any]:
    """The items found by a name with dots."""
    found: list[Any] = []
    if isinstance(content, Element):
        named = [(child.name, child) for child in content.elements]
    else:
        named = list(content.items()) if isinstance(content, dict) else []
    for inner, value in named:
        if name == inner:
            found += _flat(value)
        elif name.startswith(f"{inner}."):
            found += [item for part in _flat(value) for item in _named(part, name[len(inner) + 1 :])]
    return found


class _JsonPosition(msgspec.Struct, forbid_unknown_fields=True):
    x_m: float
    y_m: float


class _JsonVelocity(msgspec.Struct, forbid_unknown_fields=True):
    x_m_s: float
    y_m_s: float


class _JsonArea(msgspec.Struct, forbid_unknown_fields=True):
    shape: str
    x_m: float = 0.0
    y_m: float = 0.0


class _JsonEvent(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An event as JSON; the types of its fields are checked when it is read."""

    type: str
    content: dict[str, Any] | None = None
    xml: str | None = None
    id: str = ""
    source: str = ""
    position: _JsonPosition | None = None
    velocity: _JsonVelocity | None = None
    time: float = 0.0
    area: _JsonArea | None = None
    lifespan_s: float | None = None
    priority: int = 0
    signature: bytes | None = None


_JSON_EXAMPLE = '{"type": "CD", "content": {"price": 18}}'
_JSON_EXAMPLES = {
    "`$.position": '{"type": "CD", "position": {"x_m": 0, "y_m": 0}}',
    "`$.velocity": '{"type": "CD", "velocity": {"x_m_s": 3, "y_m_s": 0}}',
    "`$.area": '{"type": "CD", "area": {"shape": "circle:300m", "x_m": 0, "y_m": 0}}',
}
"Examples by the place of an error, as msgspec names it."
_JSON_NAMES = ", ".join(_JsonEvent.__struct_fields__)
_json_event_decoder = msgspec.json.Decoder(_JsonEvent)


def _value_from_json(name: str, value: Any, level: int = 1) -> Any:
    match value:
        case bool() | int() | float() | str():
            return value
        case {"x_m": int() | float() as x, "y_m": int() | float() as y, **rest} if not rest:
            return Position(float(x), float(y))
        case {"time": str() as text, **rest} if not rest:
            try:
                return value_of("time", text)
            except ValueError:
                raise EventError(f"{name!r} is not a time: {text[:60]!r}") from None
        case {"number": ("nan" | "inf" | "-inf") as text, **rest} if not rest:
            return float(text)
        case dict() | list() if level == MOST_LEVELS:
            raise EventError(f"{name!r} nests deeper than {MOST_LEVELS} levels")
        case dict():
            return {inner: _value_from_json(inner, item, level + 1) for inner, item in value.items()}
        case list():
            return [_value_from_json(name, item, level + 1) for item in value]
        case None:
            raise EventError(f"{name!r} is null, which content cannot hold: leave the name out where nothing is known")
        case _:
            raise EventError(f"{name!r} must be a number, a text, true, false, a time or a position, got {value!r:.60}")


def _value_to_json(value: Any) -> Any:
    match value:
        case dict():
            return {name: _value_to_json(item) for name, item in value.items()}
        case list():
            return [_value_to_json(item) for item in value]
        case Position(x_m=x, y_m=y):
            return {"x_m": x, "y_m": y}
        case datetime():
            return {"time": value.isoformat()}
        case float() if not isfinite(value):
            return {"number": str(value)}
        case _:
            return value


def value_text(value: Value) -> str:
    """A value as XML text: what an XPath filter sees of flat content."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e16:
            return str(int(value))
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def value_of(type_name: str, text: str) -> Value:
    """A typed value from its text; raises ValueError if the text is not of that type."""
    if type_name == "string":
        return text
    text = text.strip()
    match type_name:
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "float" if _FLOAT.fullmatch(text):
            return float(text)
        case "boolean" if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        case "time":
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        case "position":
            x, y = (value_of("float", part) for part in text.split(","))
            return Position(cast(float, x), cast(float, y))
    raise ValueError(f"{text[:60]!r} is not of type {type_name}")


def _type_name(given: Any) -> str:
    name = given if isinstance(given, str) else _TYPE_NAMES.get(given)
    if name not in VALUE_TYPES:
        raise EventError(f"a content type is one of {', '.join(VALUE_TYPES)} (or int, float, str, bool), got {given!r}")
    return str(name)


@dataclass(frozen=True, slots=True)
class EventType:
    """A subject, and the content structure that all its events have.

    `content` maps names to types: Python's `int`, `float`, `str`, `bool`, `datetime`, `Position`, or
    the words integer, float, string, boolean, time, position. `attributes` are the non-functional
    attributes of the type as a whole: its quality of service (`earshot.quality`).
    """

    subject: str
    content: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    "Names and their values as texts; a value may be given as a number."
    quality: Quality = field(init=False, repr=False, compare=False)
    "What the attributes promise."

    def __post_init__(self) -> None:
        if not self.subject:
            raise EventError("an event type needs a subject")
        object.__setattr__(self, "content", {name: _type_name(given) for name, given in self.content.items()})
        attributes = {name: attribute_text(value) for name, value in self.attributes.items()}
        object.__setattr__(self, "quality", quality_of(self.subject, attributes))
        others = {name: text for name, text in attributes.items() if name not in QUALITY_NAMES}
        object.__setattr__(self, "attributes", {**others, **self.quality.attributes()})

    def __hash__(self) -> int:
        return hash((self.subject, tuple(self.content.items()), tuple(sorted(self.attributes.items()))))

    def event(self, content: Mapping[str, Value], **stamp: Any) -> Event:
        """An event of this type with checked, typed content."""
        return self.read(Event(type=self.subject, content=dict(content), **stamp))

    def read(self, event: Event) -> Event:
        """The event with values of the types in this structure; ContentMismatch if they differ from it."""
        if event.type != self.subject:
            raise ContentMismatch(f"an event of type {event.type!r} is not of type {self.subject!r}")
        if event.fields.keys() != self.content.keys():
            self._refuse(event)
        content = event.content
        if isinstance(content, Element) or event.is_nested:
            named = event.fields.items()
            event.__dict__["fields"] = {
                name: tuple(self._typed(name, value) for value in values) for name, values in named
            }
            return event
        plain = {name: self._typed(name, value) for name, value in content.items()}
        if all(map(is_, plain.values(), content.values())):
            return event
        typed = msgspec.structs.replace(event, content=plain)
        if event.verified:
            typed.__dict__["verified"] = True
        return typed

    def _refuse(self, event: Event) -> NoReturn:
        missing = [name for name in self.content if name not in event.fields]
        unknown = [name for name in event.fields if name not in self.content]
        wrong = [f"lacks {name!r}" for name in missing] + [f"has an unknown {name!r}" for name in unknown]
        raise ContentMismatch(f"{self.subject}: the event {' and '.join(wrong)}; the type has {list(self.content)}")

    def _typed(self, name: str, value: Value) -> Value:
        wanted = self.content[name]
        if isinstance(value, str) and wanted != "string":
            try:
                return value_of(wanted, value)
            except ValueError:
                raise ContentMismatch(f"{self.subject}: {name!r} must be {wanted}, got {value[:60]!r}") from None
        if wanted == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        found = "time" if isinstance(value, datetime) else _TYPE_NAMES[type(value)]
        if found != wanted:
            raise ContentMismatch(f"{self.subject}: {name!r} must be {wanted}, got {found} {value!r}")
        return value
