"""Generated `where` filters and events, of few names and values, so that they often meet."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from earshot import Element, Event, Position, Velocity, Viewer

NAMES = ("price", "name", "live", "within", "odd name", "t")
TYPES = ("CD", "Siren", "road/a/jam", "road/b")
TYPE_FILTERS = ("CD", "Siren", "road/*/jam", "road/**", "road/b", "*/b")
TIMES = ("2026-01-31", "2026-01-31T12:00:00+00:00", "20260131")

written_names = st.sampled_from(
    ["price", "price", "name", "live", "`within`", "`odd name`", "t", "car.price", "car.name", "tags", "value"]
)
numbers = st.sampled_from(["0", "1", "5", "10", "20", "-3", "2.5", "20260131"])
texts = st.sampled_from(
    ['"jazz"', "'ja'", '"5"', '"true"', '"false"', "'it''s'", '"say ""hi"""', *(f'"{time}"' for time in TIMES)]
)
literals = st.one_of(numbers, numbers, texts, st.sampled_from(["true", "false"]))
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def _comparison(name: str, op: str, literal: str, mirrored: bool) -> str:
    if literal in ("true", "false") and op not in ("=", "!="):
        op = "="
    return f"{literal} {op} {name}" if mirrored else f"{name} {op} {literal}"


def _range(name: str, low: int, width: int) -> str:
    return f"{name} in {low}..{low + width}"


terms = st.one_of(
    st.builds(_comparison, written_names, comparisons, literals, st.booleans()),
    st.builds(_range, written_names, st.integers(-3, 12), st.integers(0, 9)),
    st.builds("{} {} {}".format, written_names, st.sampled_from(["contains", "starts with", "starts-with"]), texts),
    st.builds("{}({}, {})".format, st.sampled_from(["contains", "starts-with"]), written_names, texts),
    written_names,
    st.sampled_from(["within 200 m", "within 0.1 km", "within 50 m", "approaching", "receding", "true", "false"]),
    st.sampled_from(
        [
            "inside circle(0, 0, 100)",
            "inside circle(10, 0, 50)",
            "inside rectangle(0, 0, 120, 80)",
            "inside rectangle(0, 0, 120, 80, 30)",
            "inside ellipse(0, 0, 80, 40)",
            "inside polygon(-60 -60, 60 -60, 60 60, -60 60 / -5 -5, 5 -5, 5 5)",
            "/CD",
            "/CD[price < 20]",
            "//price[. = 5]",
        ]
    ),
)
item_terms = st.recursive(
    st.one_of(
        st.builds(_comparison, written_names, comparisons, literals, st.booleans()),
        st.builds("{} {} {}".format, written_names, st.sampled_from(["contains", "starts with"]), texts),
        written_names,
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=2).map(" and ".join),
        st.lists(inner, min_size=2, max_size=2).map(" or ".join),
        inner.map("not ({})".format),
        inner.map("any(car, {})".format),
    ),
    max_leaves=3,
)
items = st.builds("any({}, {})".format, st.sampled_from(["lanes", "tags", "car", "car.lanes", "price"]), item_terms)
wheres = st.recursive(
    st.one_of(terms, terms, items),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" and ".join),
        st.lists(inner, min_size=2, max_size=3).map(" or ".join),
        inner.map("({})".format),
        inner.map("not ({})".format),
    ),
    max_leaves=6,
)
"`where` texts, at every corner of the language."

values = st.one_of(
    st.sampled_from([0, 1, 5, 10, 20, -3, 20260131, 2.5, 5.0, float("inf"), float("nan")]),
    st.sampled_from(["jazz", "ja", "5", " 5 ", "it's", 'say "hi"', "true", "false", "2026-01-31", "20260131", ""]),
    st.booleans(),
    st.sampled_from([datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31, 12), datetime(2026, 2, 1, tzinfo=UTC)]),
    st.just(Position(1.0, 2.0)),
)
places = st.sampled_from([Position(x, y) for x in (-60.0, 0.0, 3.0, 55.0, 150.0) for y in (0.0, 35.0, 90.0)])
velocities = st.sampled_from([Velocity(0.0, 0.0), Velocity(5.0, 0.0), Velocity(-3.0, 1.0)])
viewers = st.one_of(st.none(), st.builds(Viewer, places, velocities))


def _tree(type: str, attributes: dict[str, str], leaves: list[tuple[str, str]]) -> Element:
    return Element(type, attributes, tuple(Element(name, {}, (text,)) for name, text in leaves))


_plain_names = st.sampled_from(["price", "name", "live", "t"])
_plain_texts = st.sampled_from(["5", "20", "jazz", "true", "2026-01-31", " 5 "])
_objects = st.recursive(
    st.dictionaries(st.sampled_from(["price", "name", "live", "value"]), values, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["car", "lanes", "tags", "price"]),
        st.one_of(inner, st.lists(st.one_of(inner, values))),
        max_size=2,
    ),
    max_leaves=5,
)
nested = st.builds(
    lambda flat, car, lanes, tags: {**flat, "car": car, "lanes": lanes, "tags": tags},
    st.dictionaries(st.sampled_from(NAMES), values, max_size=2),
    _objects,
    st.lists(_objects, max_size=3),
    st.lists(values, max_size=3),
)
contents = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), values, max_size=4),
    nested,
    st.builds(
        _tree,
        st.just(""),
        st.dictionaries(_plain_names, _plain_texts, max_size=1),
        st.lists(st.tuples(_plain_names, _plain_texts), max_size=4),
    ),
)


def _event(type: str, content: object, position: Position | None, velocity: Velocity | None) -> Event:
    if isinstance(content, Element):
        type = type.partition("/")[0]
        content = Element(type, content.attributes, content.children)
    return Event(type=type, content=content, position=position, velocity=velocity)


events = st.builds(
    _event, st.sampled_from(TYPES), contents, st.one_of(st.none(), places), st.one_of(st.none(), velocities)
)
"Flat events with typed values, and documents whose elements repeat."
