"""`earshot sub` prints whatever decodes, each event on one line."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from earshot import wire
from earshot.cli.live import event_json, event_line
from earshot.documents import Element
from earshot.events import Event
from earshot.geometry import Position
from earshot.protocols.flooding import Flood

texts = st.text(max_size=12)
names = st.text(min_size=1, max_size=12)
values = (
    st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | texts
    | st.datetimes(timezones=st.just(UTC))
    | st.builds(Position, st.floats(), st.floats())
)
elements = st.recursive(
    st.builds(Element, names, st.dictionaries(texts, texts, max_size=2), st.tuples(texts)),
    lambda inner: st.builds(Element, names, st.just({}), st.tuples(inner, texts)),
    max_leaves=4,
)
stamps = {"id": texts, "source": texts, "time": st.floats(), "position": st.none() | st.builds(Position, st.floats())}
flat = st.builds(Event, names, st.dictionaries(texts, values, max_size=3), **stamps)
trees = elements.flatmap(lambda root: st.builds(Event, st.just(root.name), st.just(root), **stamps))


@given(flat | trees)
def test_every_event_that_decodes_prints_on_one_line(event: Event) -> None:
    heard = wire.decode(wire.encode(Flood(event, 1)))
    assert isinstance(heard, Flood)
    for line in (event_line(heard.event), event_json(heard.event)):
        assert len(line.splitlines()) == 1
    assert event_line(heard.event).isprintable()
    assert isinstance(json.loads(event_json(heard.event)), dict)


def test_a_line_end_in_content_forges_no_line() -> None:
    event = Event("Siren", {"text": "1\n2026-01-01 a Siren speed=99", "n": 1}, source="b", time=0.0)
    assert event_line(event) == '1970-01-01T00:00:00.000+00:00 b Siren text="1\\n2026-01-01 a Siren speed=99" n=1'


def test_a_time_past_all_calendars_prints() -> None:
    assert event_line(Event("Siren", {"n": 1}, source="b", time=1e20)) == "1e+20s b Siren n=1"
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert (
        event_line(Event("Siren", {"at": noon}, source="b", time=1e20))
        == '1e+20s b Siren at="2026-01-31 12:00:00+00:00"'
    )


def test_a_tree_that_is_not_xml_prints_its_text() -> None:
    event = Event("bad tag", Element("bad tag", {}, ("a\x00b", Element("x", {}, ("c",)))), source="b", time=1e20)
    assert event_line(event) == '1e+20s b "bad tag" a\\x00bc'
    assert json.loads(event_json(event))["unreadable"].startswith("cannot be written as XML")
