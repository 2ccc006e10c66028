"""Generated filters and events that meet often enough to test summaries with."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from earshot import Event, EventType, Filter, Position
from earshot.events import Element
from earshot.filters import Viewer
from earshot.geometry import Velocity

TYPES = ["a", "b", "CD"]
NAMES = ["a", "b", "c", "price", "CD", "id"]
WORDS = ["jazz", "jazz band", "pop", "Evans", "", "1", "0", "true", "false", "20", " 20 ", "18.00", "2004-03-01", "é…"]
NUMBERS = [0.0, 1.0, -1.0, 0.1, 10.0, 18.0, 20.0, 20.5, 1e9, -1e-3, 16777217.0, 1e300, 2.0**60]

words = st.sampled_from(WORDS) | st.text("jazpo 1", max_size=12)
numbers = st.sampled_from(NUMBERS) | st.integers(-30, 30).map(float)
times = st.integers(0, 3).map(lambda days: datetime(2004, 3, 1, tzinfo=UTC) + timedelta(days=days))
values = (
    words
    | numbers
    | st.booleans()
    | st.integers(-30, 30)
    | times
    | st.sampled_from([math.nan, math.inf, 2**60 - 1, 2**63 - 1])
    | st.builds(Position, numbers, numbers)
)
positions = st.none() | st.builds(Position, st.floats(-300, 300), st.floats(-300, 300))
velocities = st.none() | st.builds(Velocity, st.floats(-20, 20), st.floats(-20, 20))
viewers = st.none() | st.builds(
    Viewer,
    st.builds(Position, st.floats(-300, 300), st.floats(-300, 300)),
    st.builds(Velocity, st.floats(-20, 20), st.floats(-20, 20)),
)


def _element(name: str, attributes: dict[str, str], children: list[Element | str]) -> Element:
    return Element(name, attributes, tuple(child for child in children if child != ""))


leaves = st.builds(_element, st.sampled_from(NAMES), st.just({}), st.lists(words, max_size=1))
elements = st.recursive(
    leaves,
    lambda inner: st.builds(
        _element,
        st.sampled_from(NAMES),
        st.dictionaries(st.sampled_from(NAMES), words, max_size=2),
        st.lists(inner | words, max_size=4),
    ),
    max_leaves=10,
)


def _tree_event(
    type: str, attributes: dict[str, str], children: list[Element | str], typed: bool, **stamp: object
) -> Event:
    event = Event(type=type, content=_element(type, attributes, children), **stamp)  # type: ignore[arg-type]
    if typed and event.fields and all(values == ("2004-03-01",) for values in event.fields.values()):
        EventType(type, dict.fromkeys(event.fields, "time")).read(event)
    return event


stamps = {"position": positions, "velocity": velocities}
flat_events = st.builds(
    Event, type=st.sampled_from(TYPES), content=st.dictionaries(st.sampled_from(NAMES), values, max_size=5), **stamps
)
tree_events = st.builds(
    _tree_event,
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(NAMES), words, max_size=2),
    st.lists(elements | words, max_size=4),
    st.booleans(),
    **stamps,
)
events = flat_events | tree_events


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


literals = words.map(quoted) | numbers.filter(lambda number: abs(number) < 1e15).map(lambda number: f"{number:f}")
comparisons = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">="])

steps = st.sampled_from([*NAMES, "*", "@id", "@a", "@*", "text()"])
inner_steps = st.sampled_from([*NAMES, "*"])
relative_paths = st.one_of(
    st.just("."),
    steps,
    st.builds(lambda way, step: f"{way}{step}", st.sampled_from([".//", "a/", "b//", "*/"]), steps),
)


def _joined(inner: st.SearchStrategy[str], left: str, right: str) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=2, max_size=3)
    joined = st.builds(
        lambda word, terms: left + f" {word} ".join(terms) + right, st.sampled_from(["and", "or"]), several
    )
    return joined


path_conditions = st.recursive(
    st.one_of(
        relative_paths,
        st.builds(lambda path, op, literal: f"{path} {op} {literal}", relative_paths, comparisons, literals),
        st.builds(
            lambda how, path, text: f"{how}({path}, {quoted(text)})",
            st.sampled_from(["contains", "starts-with"]),
            relative_paths,
            words,
        ),
    ),
    lambda inner: st.one_of(
        _joined(inner, "(", ")"),
        inner.map(lambda term: f"not({term})"),
        st.builds(lambda name, term: f"{name}[{term}]", inner_steps, inner),
    ),
    max_leaves=5,
)
predicates = st.lists(path_conditions.map(lambda term: f"[{term}]") | st.just("[1]"), max_size=2).map("".join)
xpath_texts = st.builds(
    lambda start, root, first, rest: start + root + first + rest,
    st.sampled_from(["/", "/", "/", "//"]),
    st.sampled_from([*TYPES, *TYPES, "*"]),
    predicates,
    st.just("") | st.builds(lambda axis, step: axis + step, st.sampled_from(["/", "//"]), steps),
)

places = st.sampled_from(["within 200 m", "approaching", "receding", "inside circle(0, 0, 150)"])
field_terms = st.one_of(
    st.builds(lambda name, op, literal: f"{name} {op} {literal}", st.sampled_from(NAMES), comparisons, literals),
    st.builds(
        lambda name, how, text: f"{name} {how} {quoted(text)}",
        st.sampled_from(NAMES),
        st.sampled_from(["contains", "starts with"]),
        words,
    ),
    st.builds(
        lambda name, low, more: f"{name} in {low}..{low + more}",
        st.sampled_from(NAMES),
        st.integers(-30, 30),
        st.integers(0, 20),
    ),
    st.builds(lambda name, literal: f"{name} = {literal}", st.sampled_from(NAMES), st.sampled_from(["true", "false"])),
    st.sampled_from([*NAMES, "true", "false"]),
    places,
)
where_texts = st.recursive(
    field_terms,
    lambda inner: _joined(inner, "(", ")") | inner.map(lambda term: f"not ({term})"),
    max_leaves=6,
)
filters = st.one_of(
    xpath_texts.map(Filter.xpath),
    st.builds(Filter.where, where_texts, st.none() | st.sampled_from(TYPES)),
)


def _named_texts(event: Event) -> list[tuple[str, str]]:
    """Every name of the event with a text that stands for it: string values, pieces of text, attributes."""
    found: list[tuple[str, str]] = []
    waiting = [event.root]
    while waiting:
        element = waiting.pop()
        found.append((element.name, element.text))
        found += [(f"{element.name}/text()", piece) for piece in element.children if isinstance(piece, str)]
        found += [(f"@{name}", text) for name, text in element.attributes.items()]
        waiting += element.elements
    return found


def _number(text: str, by: float) -> str:
    try:
        number = float(text) + by
    except ValueError:
        return quoted(text)
    return f"{number:.3f}" if math.isfinite(number) else quoted(text)


@st.composite
def aimed_filters(draw: st.DrawFn, event: Event) -> Filter:
    """A conjunction whose terms mostly hold for the event: as XPath, or as `where` on flat names."""
    named = [(name, text) for name, text in _named_texts(event) if len(text) < 300]
    terms = []
    for _ in range(draw(st.integers(1, 4))):
        name, text = draw(st.sampled_from(named)) if named else ("a", "")
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, len(text)))
        terms.append((name, text, text[start:end], draw(st.integers(0, 8)), draw(st.sampled_from([0, 0.5, 3]))))
    if draw(st.booleans()):
        joined = " and ".join(_path_term(*term) for term in terms)
        return Filter.xpath(f"/{event.type}[{joined}]")
    joined = " and ".join(_field_term(*term) for term in terms)
    return Filter.where(joined, draw(st.sampled_from([None, event.type])))


def _path_term(name: str, text: str, piece: str, kind: int, by: float) -> str:
    path = f".//{name}"
    return [
        f"{path} = {quoted(text)}",
        f"{path} = {_number(text, 0)}",
        f"{path} < {_number(text, by + 0.001)}",
        f"{path} >= {_number(text, -by)}",
        f"contains({path}, {quoted(piece)})",
        f"starts-with({path}, {quoted(text[: len(piece)])})",
        f"({path} = {quoted(text)} or not({path}))",
        f".//*[{path} = {quoted(text)}] or {path}[. != {quoted(piece)}]",
        f".//text() = {quoted(text)}",
    ][kind]


def _field_term(name: str, text: str, piece: str, kind: int, by: float) -> str:
    field = name.removeprefix("@").removesuffix("/text()")
    return [
        f"{field} = {quoted(text)}",
        f"{field} = {_number(text, 0)}",
        f"{field} <= {_number(text, by)}",
        f"{field} > {_number(text, -by - 0.001)}",
        f"{field} contains {quoted(piece)}",
        f"{field} starts with {quoted(text[: len(piece)])}",
        f"({field} = {quoted(text)} or not {field} = {quoted(piece)})",
        field,
        f"{field} != {quoted(piece)}",
    ][kind]


aimed_cases = events.flatmap(
    lambda event: st.tuples(st.just(event), st.lists(aimed_filters(event), min_size=1, max_size=3))
)
"An event, and filters that mostly match it."
