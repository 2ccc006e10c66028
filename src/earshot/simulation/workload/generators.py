"""Event generators: what a publisher publishes. Each is one kind of `events` table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar, Literal, Protocol

from msgspec import Meta, field
from msgspec.structs import force_setattr

from earshot.documents import LIMITS
from earshot.errors import EventError, ScenarioError
from earshot.events import Element, Event, EventType, Value
from earshot.settings import AtLeastOne, Count, Finite, KindTable, NotNegative, Share
from earshot.simulation.draws import Span, zipf_rank
from earshot.simulation.settings_reader import PLUGIN, PluginTable, SpanSetting
from earshot.simulation.workload.codd_workload import CoddDocuments
from earshot.simulation.workload.dtd import BUILT_IN, MOST_LEVELS, Dtd, built_in_dtd, load_dtd
from earshot.simulation.workload.dtd_workload import DocumentShape, draw_document
from earshot.simulation.workload.workload_files import read_events


class Generator(Protocol):
    """Draws unstamped events of the types it names."""

    def types(self) -> tuple[EventType, ...]:
        """The event types it draws from, the most popular first."""
        ...

    def draw(self, random: Random, number: int) -> Event:
        """The event number `number` (from 0) of its publish entry."""
        ...


CD = EventType(
    "CD", {"id": "string", "timestamp": "time", "category": "string", "composer": "string", "price": "float"}
)

CATALOGUE: dict[str, tuple[str, ...]] = {
    "jazz": ("Davis", "Evans", "Coltrane", "Monk", "Mingus", "Ellington"),
    "classic": ("Bach", "Mozart", "Beethoven", "Schubert", "Brahms", "Ravel"),
    "pop": ("Lennon", "Simon", "Wonder", "Mitchell", "Bowie", "Gaye"),
    "folk": ("Guthrie", "Denny", "Drake", "Seeger"),
}
"The catalogue that `which = 'random'` draws from."


def _cd(id: str, timestamp: str, category: str, composer: str, price: str) -> Event:
    leaves = (("category", category), ("composer", composer), ("price", price))
    children = tuple(Element(name, {}, (text,)) for name, text in leaves)
    return Event("CD", Element("CD", {"id": id, "timestamp": timestamp}, children))


FIGURE_2 = (
    _cd("001", "1999-02-27T12:00:00.000-00:00", "jazz", "Evans", "18.00"),
    _cd("002", "1003-02-27T12:00:00.000-00:00", "jazz", "Davis", "10.00"),
    _cd("003", "1055-02-27T12:00:00.000-00:00", "classic", "Bach", "22.00"),
)
"The events of figure 2 of the content-based ODMRP paper, timestamps as printed."


class Cds(KindTable, frozen=True, tag="cd"):
    """XML events about CDs, as in the content-based ODMRP paper."""

    which: Literal["figure", "random"] = "figure"
    "The three events of the paper's figure 2 in turn, or CDs drawn from a small catalogue."

    def types(self) -> tuple[EventType, ...]:
        return (CD,)

    def draw(self, random: Random, number: int) -> Event:
        if self.which == "figure":
            return FIGURE_2[number % len(FIGURE_2)]
        category = list(CATALOGUE)[zipf_rank(random, len(CATALOGUE), 1.0)]
        composer = random.choice(CATALOGUE[category])
        moment = datetime(2004, 2, 27, tzinfo=UTC) + timedelta(seconds=number)
        return _cd(f"{number:03}", moment.isoformat(), category, composer, f"{random.randrange(500, 3000) / 100:.2f}")


class Numbers(KindTable, frozen=True, tag="numbers"):
    """One whole number in each event, as in the DRIP paper's number-interval model."""

    low: int = 1
    "The least value."
    high: int = 100
    "The greatest value."

    def validate(self) -> None:
        if self.low > self.high:
            raise ScenarioError(f"low must not exceed high, got {self.low} and {self.high}")

    def types(self) -> tuple[EventType, ...]:
        return (EventType("Number", {"value": "integer"}),)

    def draw(self, random: Random, number: int) -> Event:
        return Event("Number", {"value": random.randint(self.low, self.high)})


class Topics(KindTable, frozen=True, tag="topics"):
    """Events of many types with almost no content: topic-based publish/subscribe."""

    count: AtLeastOne = 20
    "How many topics there are: topic-1, topic-2 and so on."
    zipf: NotNegative = 1.0
    "How uneven their popularity is: the exponent of Zipf's law, 0 for even."
    payload_bytes: Count = 0
    "The size of an additional payload."

    def types(self) -> tuple[EventType, ...]:
        content = {"number": "integer"} | ({"payload": "string"} if self.payload_bytes else {})
        return tuple(EventType(f"topic-{i + 1}", content) for i in range(self.count))

    def draw(self, random: Random, number: int) -> Event:
        topic = f"topic-{zipf_rank(random, self.count, self.zipf) + 1}"
        return Event(topic, {"number": number} | _payload(self.payload_bytes))


class Integer(KindTable, frozen=True, tag="integer"):
    """A whole number, drawn evenly."""

    low: int
    "The least value."
    high: int
    "The greatest value."

    type: ClassVar[str] = "integer"

    def validate(self) -> None:
        if self.low > self.high:
            raise ScenarioError(f"low must not exceed high, got {self.low} and {self.high}")

    def draw(self, random: Random) -> Value:
        return random.randint(self.low, self.high)


class Number(KindTable, frozen=True, tag="float"):
    """A number, drawn evenly and rounded."""

    low: Finite
    "The least value."
    high: Finite
    "The greatest value."
    decimals: Annotated[int, Meta(ge=0, le=12)] = 2
    "Digits after the point."

    type: ClassVar[str] = "float"

    def validate(self) -> None:
        if self.low > self.high:
            raise ScenarioError(f"low must not exceed high, got {self.low} and {self.high}")

    def draw(self, random: Random) -> Value:
        return round(random.uniform(self.low, self.high), self.decimals)


class Choice(KindTable, frozen=True, tag="choice"):
    """One of several texts."""

    of: tuple[str, ...]
    "The texts, the most popular first."
    zipf: NotNegative = 0.0
    "How uneven their popularity is: the exponent of Zipf's law, 0 for even."

    type: ClassVar[str] = "string"

    def validate(self) -> None:
        if not self.of:
            raise ScenarioError("of needs at least one text")

    def draw(self, random: Random) -> Value:
        return self.of[zipf_rank(random, len(self.of), self.zipf)]


class Boolean(KindTable, frozen=True, tag="boolean"):
    """True or false."""

    chance: Share = 0.5
    "The chance of true."

    type: ClassVar[str] = "boolean"

    def draw(self, random: Random) -> Value:
        return random.random() < self.chance


Attribute = Integer | Number | Choice | Boolean


class Attributes(KindTable, frozen=True, tag="attributes"):
    """Flat events of one type, each attribute drawn independently."""

    type: str
    "The event type."
    attributes: dict[str, Attribute]
    "A table for each attribute: its kind (integer, float, choice, boolean) and that kind's keys."
    payload_bytes: Count = 0
    "The size of an additional payload."

    def validate(self) -> None:
        if not self.type:
            raise ScenarioError("type must not be empty")
        if not self.attributes:
            raise ScenarioError("attributes needs at least one attribute")
        if "payload" in self.attributes and self.payload_bytes:
            raise ScenarioError("payload_bytes adds an attribute named payload: rename yours, or leave it out")
        force_setattr(self, "attributes", dict(sorted(self.attributes.items())))

    def types(self) -> tuple[EventType, ...]:
        content = {name: attribute.type for name, attribute in self.attributes.items()}
        return (EventType(self.type, content | ({"payload": "string"} if self.payload_bytes else {})),)

    def draw(self, random: Random, number: int) -> Event:
        values: dict[str, Any] = {name: attribute.draw(random) for name, attribute in self.attributes.items()}
        return Event(self.type, values | _payload(self.payload_bytes))


class OwnEvents(KindTable, frozen=True, tag="file"):
    """Events from the user's file."""

    file: Path
    "A .jsonl file (one event on each line), an .xml document, or a folder of .xml documents."
    choose: Literal["in-turn", "random"] = "in-turn"
    "How the next event is chosen: in the order of the file, repeatedly, or at random."
    structure: dict[str, dict[str, str]] = field(default_factory=dict)
    "A table for each event type: its content's names and their types (integer, float, string, boolean, time, "
    "position), to type the values of XML documents. Event types that are left out keep the file's types."

    def validate(self) -> None:
        ordered = {name: dict(sorted(content.items())) for name, content in sorted(self.structure.items())}
        force_setattr(self, "structure", ordered)

    def types(self) -> tuple[EventType, ...]:
        found: dict[str, EventType] = {}
        for event in read_events(self.file):
            if event.type not in found:
                found[event.type] = self._type(event)
        return tuple(found.values())

    def draw(self, random: Random, number: int) -> Event:
        events = read_events(self.file)
        event = events[number % len(events)] if self.choose == "in-turn" else random.choice(events)
        if event.type in self.structure:
            try:
                return self._type(event).read(event)
            except EventError as error:
                raise ScenarioError(f"{self.file}: {error}") from None
        return event

    def _type(self, event: Event) -> EventType:
        if event.type in self.structure:
            return EventType(event.type, self.structure[event.type])
        return structure_of(event)


class XmlDocuments(KindTable, frozen=True, tag="xml"):
    """Valid XML documents drawn from a DTD, as in the CoDD paper."""

    dtd: Literal["news", "protein", "customer"] | None = None
    "A built-in DTD, similar in shape to those in the paper: 132, 66 and 78 elements on 12, 9 and 6 levels."
    file: Path | None = None
    "Instead of dtd, the user's .dtd file."
    root: str | None = None
    "The root element; by default the only element that is in no other."
    optional: Share = 0.5
    "The chance that an optional part is present."
    repeats: SpanSetting = Span(0.0, 3.0)
    "How often a repeatable part occurs."
    attributes: Share = 0.5
    "The chance that an optional attribute is present."
    words: SpanSetting = Span(1.0, 8.0)
    "How many words a text has."
    max_depth: Annotated[int, Meta(ge=1, le=MOST_LEVELS)] = 12
    "A document has at most this many levels: a DTD may be recursive."
    max_elements: Annotated[int, Meta(ge=1, le=LIMITS.elements)] = 500
    "A document has at most this many elements."

    def validate(self) -> None:
        if (self.dtd is None) == (self.file is None):
            raise ScenarioError(f"write one of dtd ({', '.join(BUILT_IN)}) and file")
        for name, span, most in (("repeats", self.repeats, 1000), ("words", self.words, 10_000)):
            if not (span.low >= 0 and span.high <= most and span.low.is_integer() and span.high.is_integer()):
                raise ScenarioError(
                    f"{name} must be whole numbers from 0 to {most:,}, got {span.low:g} to {span.high:g}"
                )
        dtd = self.document_type()
        least = dtd.least(dtd.root, self.max_depth)
        if least == inf:
            raise ScenarioError(f"max_depth must be larger: no {dtd.root!r} is complete on {self.max_depth} levels")
        if least > self.max_elements:
            raise ScenarioError(f"max_elements must be at least {least:g}: the smallest {dtd.root!r} has that many")

    def document_type(self) -> Dtd:
        """The DTD as its file says now."""
        return load_dtd(self.file if self.file is not None else built_in_dtd(self.dtd or ""), self.root)

    def types(self) -> tuple[EventType, ...]:
        return (EventType(self.document_type().root),)

    def draw(self, random: Random, number: int) -> Event:
        shape = DocumentShape(
            optional=self.optional,
            repeats=(int(self.repeats.low), int(self.repeats.high)),
            attributes=self.attributes,
            words=(int(self.words.low), int(self.words.high)),
            max_depth=self.max_depth,
            max_elements=self.max_elements,
        )
        document = draw_document(self.document_type(), shape, random)
        return Event(document.name, document)


class OutsideEvents(PluginTable, frozen=True, tag=PLUGIN):
    """An event generator of yours. Its class has the methods `types()`, the event types it draws from, the most
    popular first, and `draw(random, number)`, the event with this number (from 0) of its publish entry."""

    group = "workload"
    methods = ("draw", "types")

    def types(self) -> tuple[EventType, ...]:
        return tuple(self.settings.types())

    def draw(self, random: Random, number: int) -> Event:
        event = self.settings.draw(random, number)
        if not isinstance(event, Event):
            raise ScenarioError(f"events: {self.use} drew {event!r}, which is not an Event")
        return event


def structure_of(event: Event) -> EventType:
    """The event type that an event's values imply."""
    return EventType(event.type, {name: type(values[0]) for name, values in event.fields.items()})


def _payload(size: int) -> dict[str, Any]:
    return {"payload": "x" * size} if size else {}


EventGenerator = Cds | Numbers | Topics | Attributes | CoddDocuments | XmlDocuments | OwnEvents | OutsideEvents
"Every kind of `events` table; a new built-in generator is a new member."

Generators = Mapping[str, Generator]
