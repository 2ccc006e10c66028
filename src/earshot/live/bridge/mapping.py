"""Which events become which messages, and which messages become which events.

Rules are in a TOML file (docs/bridge.md) or on the command line, as in `Siren -> city/sirens/{source}`.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from earshot.errors import EventError, FilterSyntaxError, SettingsError, UsageError
from earshot.events import Element, Event
from earshot.filters import Filter
from earshot.geometry import Area, Position, parse_shape
from earshot.quality import MOST_PRIORITY
from earshot.settings import check_bounds, read_settings

Qos = Annotated[int, msgspec.Meta(ge=0, le=1)]
Payload = Literal["event", "content", "xml"]

MAX_PAYLOAD_BYTES = 1_000_000
"Larger messages are refused: a network carries no larger event."
MAX_TOPIC_BYTES = 1_000

_PLACE = re.compile(r"\{([^{}]*)\}")
_RESERVED = re.compile("[/+#%\x00-\x1f\x7f]")


class NoMessage(EventError):
    """An event that a rule cannot write as a message, or a message that is not an event; the text says why."""


@dataclass(frozen=True, slots=True)
class ToMqtt:
    """Events that go to the broker."""

    events: str
    "A type, or a filter: `Siren`, `Siren: speed > 10`, `/CD[price < 20]`."
    topic: str
    "The topic they go to. `{source}`, `{type}`, `{id}` and `{content.NAME}` stand for values of the event."
    qos: Qos = 1
    "1: the broker acknowledges each message. 0: sent once, and lost if the broker is away."
    retain: bool = False
    "Whether the broker keeps the last message of each topic for later subscribers."
    payload: Payload = "event"
    "`event`: JSON with type, content, position, time, area. `content`: JSON of the content alone. `xml`: the document."

    def __post_init__(self) -> None:
        check_bounds(self)
        _ = self.filter
        literal = _PLACE.sub("x", self.topic)
        if not self.topic or any(sign in literal for sign in "+#{}\x00"):
            raise SettingsError(
                f"topic: cannot send to {self.topic!r}; write a topic without wildcards, as in city/{{source}}"
            )
        for name in _PLACE.findall(self.topic):
            if name not in ("source", "type", "id") and not name.startswith("content."):
                raise SettingsError(
                    f"topic: {{{name}}} is not known; write {{source}}, {{type}}, {{id}} or {{content.NAME}}"
                )

    @property
    def filter(self) -> Filter:
        """The events as a filter."""
        return _filter(self.events)

    def message(self, event: Event) -> tuple[str, bytes]:
        """The topic and the payload of an event."""
        topic = _PLACE.sub(lambda found: _level(event, found[1]), self.topic)
        if len(topic.encode()) > MAX_TOPIC_BYTES:
            raise NoMessage(f"the topic of event {event.id!r} would have more than {MAX_TOPIC_BYTES:,} bytes")
        if self.payload == "xml":
            return topic, event.to_xml()
        if self.payload == "content" and not isinstance(event.content, Element):
            return topic, json.dumps(json.loads(event.to_json())["content"]).encode()
        return topic, event.to_json()


@dataclass(frozen=True, slots=True)
class FromMqtt:
    """Messages that come from the broker."""

    topic: str
    "Which messages: a topic, with `+` for one level and `#` for the rest."
    type: str
    "The type of their events; `{1}` is what the first wildcard stood for. The root element of XML must have this name."
    qos: Qos = 1
    "1: a message is acknowledged after it was published into the network."
    payload: Payload = "content"
    "`content`: a flat JSON object. `event`: JSON as the other direction writes it. `xml`: a document."
    within: str = ""
    "The area of the events, such as `circle:500m`, around `at`; empty: everywhere."
    at: tuple[float, float] | None = None
    "x and y in metres of the area's place; by default the area is around the bridge's own place."
    at_fields: tuple[str, str] | None = None
    "Instead of `at`: the names of two numbers in each message's content, x and y in metres."
    lifespan_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    "The events' lifespan; by default the protocol's own."
    priority: Annotated[int, msgspec.Meta(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0

    def __post_init__(self) -> None:
        check_bounds(self)
        levels = self.topic.split("/")
        if (
            not self.topic
            or any("#" in level for level in levels[:-1])
            or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels)
        ):
            raise SettingsError(
                f"topic: {self.topic!r} is not a topic filter; write + for one level, # for the rest at the end"
            )
        wildcards = sum(level in ("+", "#") for level in levels)
        for number in _PLACE.findall(self.type):
            if not number.isdigit() or not 1 <= int(number) <= wildcards:
                raise SettingsError(f"type: {{{number}}} is not known; the topic has {wildcards} wildcards")
        if (self.at is not None or self.at_fields is not None) and not self.within:
            raise SettingsError("at: needs `within`, the shape at that place")
        if self.within:
            parse_shape(self.within)

    def accepts(self, topic: str) -> list[str] | None:
        """What the wildcards stand for in this topic; None if the topic does not match."""
        found: list[str] = []
        wanted, levels = self.topic.split("/"), topic.split("/")
        for number, level in enumerate(wanted):
            if level == "#":
                return [*found, "/".join(levels[number:])]
            if number >= len(levels) or level not in ("+", levels[number]):
                return None
            if level == "+":
                found.append(levels[number])
        return found if len(wanted) == len(levels) else None

    def event(self, stood_for: list[str], payload: bytes) -> tuple[Event, Area | None]:
        """The event in a message, and the area where it is of interest; None: around the bridge, or everywhere."""
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise NoMessage(f"a message of {len(payload):,} bytes is larger than {MAX_PAYLOAD_BYTES:,}")
        kind = _PLACE.sub(lambda found: stood_for[int(found[1]) - 1], self.type)
        if self.payload == "event":
            event = Event.from_json(payload)
            if event.type != kind:
                raise NoMessage(f"an event of type {event.type!r} came where {kind!r} was expected")
            return msgspec.structs.replace(event, **self._stamp(event)), event.area or self._area(event)
        if self.payload == "xml":
            event = Event.from_xml(payload, lifespan_s=self.lifespan_s, priority=self.priority)
            if event.type != kind:
                raise NoMessage(f"a document with root {event.type!r} came where {kind!r} was expected")
        else:
            event = Event.from_json(msgspec.json.encode({"type": kind, "content": _object(payload)}))
            event = msgspec.structs.replace(event, **self._stamp(event))
        return event, self._area(event)

    def _stamp(self, event: Event) -> dict[str, Any]:
        return {
            "lifespan_s": self.lifespan_s if event.lifespan_s is None else event.lifespan_s,
            "priority": event.priority or self.priority,
        }

    def _area(self, event: Event) -> Area | None:
        if not self.within or (self.at is None and self.at_fields is None):
            return None
        if self.at_fields is None:
            assert self.at is not None
            return Area(parse_shape(self.within), Position(*self.at))
        x, y = (event.fields.get(name, (None,))[0] for name in self.at_fields)
        if not isinstance(x, int | float) or not isinstance(y, int | float):
            raise NoMessage(
                f"the message lacks the numbers {self.at_fields[0]!r} and {self.at_fields[1]!r} for its place"
            )
        return Area(parse_shape(self.within), Position(float(x), float(y)))


@dataclass(frozen=True, slots=True)
class Mapping:
    """All rules of a bridge. For a message, the first rule with a matching topic decides."""

    to_mqtt: tuple[ToMqtt, ...] = ()
    from_mqtt: tuple[FromMqtt, ...] = ()

    def __post_init__(self) -> None:
        if not self.to_mqtt and not self.from_mqtt:
            raise SettingsError(
                "nothing to bridge: write [[to_mqtt]] or [[from_mqtt]] rules, or give --out 'TYPE -> TOPIC' "
                "or --in 'TOPIC -> TYPE'"
            )

    def rule_for(self, topic: str) -> tuple[FromMqtt, list[str]] | None:
        """The rule for a message on this topic, and what its wildcards stand for."""
        for rule in self.from_mqtt:
            if (stood_for := rule.accepts(topic)) is not None:
                return rule, stood_for
        return None


def read_mapping(
    path: str | Path | None = None, outward: tuple[str, ...] = (), inward: tuple[str, ...] = ()
) -> Mapping:
    """The rules of a TOML file, and those written as `TYPE -> TOPIC` (outward) and `TOPIC -> TYPE` (inward)."""
    table: dict[str, Any] = {}
    if path is not None:
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(f"{path}: cannot be read: {why}; name a TOML file of rules (docs: bridge)") from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{path}: not TOML: {error}") from None
    for key in table:
        if key not in ("to_mqtt", "from_mqtt"):
            raise SettingsError(f"{path}: {key!r} is not known; write [[to_mqtt]] and [[from_mqtt]]")
    to_mqtt = _rules(ToMqtt, table.get("to_mqtt", []), f"{path}: to_mqtt")
    from_mqtt = _rules(FromMqtt, table.get("from_mqtt", []), f"{path}: from_mqtt")
    to_mqtt += [ToMqtt(*_arrow(text, "TYPE -> TOPIC")) for text in outward]
    from_mqtt += [FromMqtt(*_arrow(text, "TOPIC -> TYPE")) for text in inward]
    return Mapping(tuple(to_mqtt), tuple(from_mqtt))


def _rules(cls: Any, tables: Any, where: str) -> list[Any]:
    if not isinstance(tables, list):
        raise SettingsError(f"{where}: write it as a list of tables, [[to_mqtt]] or [[from_mqtt]]")
    rules = []
    for number, table in enumerate(tables, start=1):
        try:
            rules.append(read_settings(cls, table))
        except UsageError as error:
            raise SettingsError(f"{where}, rule {number}: {error}") from None
    return rules


def _arrow(text: str, form: str) -> tuple[str, str]:
    left, arrow, right = text.partition("->")
    if not arrow or not left.strip() or not right.strip():
        raise SettingsError(f"cannot read {text!r}; write '{form}'")
    return left.strip(), right.strip()


def _filter(text: str) -> Filter:
    if re.fullmatch(r"[\w.\-*/]+", text) and not text.startswith("/"):
        return Filter.of_type(text)
    try:
        return Filter.parse(text)
    except FilterSyntaxError as error:
        raise SettingsError(f"events: {error}") from None


def _level(event: Event, name: str) -> str:
    """A value of an event as part of a topic: characters with a meaning in topics are written as %2F and so on."""
    if name.startswith("content."):
        values = event.fields.get(name.removeprefix("content."), ())
        if not values:
            raise NoMessage(f"event {event.id!r} has no {name.removeprefix('content.')!r}, which its topic needs")
        value = str(values[0])
    else:
        value = str(getattr(event, name))
    if not value:
        raise NoMessage(f"event {event.id!r} has an empty {name}, which its topic needs")
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def _object(payload: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NoMessage(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise NoMessage(f"not a JSON object, but {type(found).__name__}")
    return found
