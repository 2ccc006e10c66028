"""Rules between events and messages: topics, payloads, areas, and what is refused."""

import json
from pathlib import Path

import pytest

from earshot.errors import EarshotError, SettingsError
from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.live.bridge.mapping import FromMqtt, NoMessage, ToMqtt, read_mapping

SIREN = Event(
    "Siren",
    {"speed": 18.0, "road": "A/4"},
    id="car-1-7",
    source="car+1",
    position=Position(3.0, 4.0),
    time=12.5,
    area=Area(Circle(300.0), Position(3.0, 4.0)),
)


def test_a_topic_takes_values_of_the_event_and_writes_reserved_signs_apart() -> None:
    topic, _ = ToMqtt("Siren", "city/{type}/{source}/{content.road}").message(SIREN)
    assert topic == "city/Siren/car%2B1/A%2F4"


def test_an_event_as_json_is_read_back_with_its_content_and_area() -> None:
    topic, payload = ToMqtt("Siren", "city/sirens/{id}").message(SIREN)
    assert json.loads(payload)["position"] == {"x_m": 3.0, "y_m": 4.0}
    rule = FromMqtt("city/sirens/+", "Siren", payload="event")
    event, area = rule.event(rule.accepts(topic) or [], payload)
    assert (event.content, area) == (SIREN.content, SIREN.area)


@pytest.mark.parametrize(
    ("events", "expected"),
    [("Siren", True), ("Other", False), ("speed", False), ("Siren: speed > 20", False), ("speed > 3", True),
     ("/Siren", True), ("/Other", False), ("Siren/**", True)],
)  # fmt: skip
def test_a_rule_names_a_type_or_is_a_filter(events: str, expected: bool) -> None:
    """A word alone is a type, also where it could be a field; what begins with a slash is a path."""
    assert ToMqtt(events, "x").filter.matches(SIREN) is expected


def test_content_alone_and_documents_as_they_are() -> None:
    assert json.loads(ToMqtt("Siren", "x", payload="content").message(SIREN)[1]) == {"speed": 18.0, "road": "A/4"}
    document = Event.from_xml("<CD><price>18</price></CD>")
    _, payload = ToMqtt("/CD", "x", payload="xml").message(document)
    assert FromMqtt("x", "CD", payload="xml").event([], payload)[0].root == document.root


@pytest.mark.parametrize(
    ("rule", "topic", "stood_for"),
    [
        ("city/+/jam", "city/a/jam", ["a"]),
        ("city/+/jam", "city/jam", None),
        ("city/+", "city/a/jam", None),
        ("city/#", "city/a/jam", ["a/jam"]),
        ("city/#", "city", [""]),
        ("+/+", "a/b", ["a", "b"]),
        ("city/a", "city/a", []),
        ("#", "any/thing", ["any/thing"]),
    ],
)
def test_wildcards_stand_for_levels(rule: str, topic: str, stood_for: list[str] | None) -> None:
    assert FromMqtt(rule, "T").accepts(topic) == stood_for


def test_a_type_may_come_from_the_topic_and_an_area_from_the_message() -> None:
    rule = FromMqtt("city/+", "{1}", within="circle:500m", at_fields=("x", "y"), lifespan_s=60.0, priority=2)
    event, area = rule.event(["Closure"], b'{"x": 10, "y": 20.5, "road": "B1"}')
    assert (event.type, event.content["road"], event.lifespan_s, event.priority) == ("Closure", "B1", 60.0, 2)
    assert area == Area(Circle(500.0), Position(10.0, 20.5))
    fixed = FromMqtt("city", "Closure", within="circle:50m", at=(1.0, 2.0))
    assert fixed.event([], b"{}")[1] == Area(Circle(50.0), Position(1.0, 2.0))


@pytest.mark.parametrize(
    ("rule", "payload", "reason"),
    [
        (FromMqtt("t", "T"), b"\xff", "not JSON"),
        (FromMqtt("t", "T"), b"[1]", "not a JSON object, but list"),
        (FromMqtt("t", "T"), b'{"a": {"b": null}}', "'b' is null, which content cannot hold"),
        (FromMqtt("t", "T", payload="event"), b'{"type": "Other"}', "an event of type 'Other' came where 'T'"),
        (FromMqtt("t", "T", payload="xml"), b"<U/>", "a document with root 'U' came where 'T'"),
        (FromMqtt("t", "T", payload="xml"), b"<T>", ""),
        (FromMqtt("t", "T", within="circle:9m", at_fields=("x", "y")), b'{"x": "1"}', "lacks the numbers 'x' and 'y'"),
        (FromMqtt("t", "T"), b"x" * 1_000_001, "larger than 1,000,000"),
    ],
)
def test_a_message_that_is_no_event_says_why(rule: FromMqtt, payload: bytes, reason: str) -> None:
    with pytest.raises(EarshotError) as caught:
        rule.event([], payload)
    assert reason in str(caught.value)


def test_an_event_without_what_its_topic_needs_is_refused() -> None:
    with pytest.raises(NoMessage, match="has no 'lane', which its topic needs"):
        ToMqtt("Siren", "x/{content.lane}").message(SIREN)
    with pytest.raises(NoMessage, match="more than 1,000 bytes"):
        ToMqtt("Siren", "x/{content.road}").message(Event("Siren", {"road": "r" * 2000}, id="e"))


RULES = """
[[to_mqtt]]
events = "Siren: speed > 10"
topic = "city/sirens/{source}"
retain = true

[[from_mqtt]]
topic = "city/closures/+"
type = "Closure"
within = "circle:500m"
at_fields = ["x_m", "y_m"]
"""


def test_rules_come_from_a_file_and_from_arrows(tmp_path: Path) -> None:
    path = tmp_path / "office.toml"
    path.write_text(RULES)
    mapping = read_mapping(path, ("Hazard -> city/hazards",), ("city/news -> News",))
    assert [rule.topic for rule in mapping.to_mqtt] == ["city/sirens/{source}", "city/hazards"]
    assert [(rule.topic, rule.type) for rule in mapping.from_mqtt] == [
        ("city/closures/+", "Closure"),
        ("city/news", "News"),
    ]
    assert mapping.to_mqtt[0].retain
    assert mapping.to_mqtt[0].filter.matches(SIREN)
    found = mapping.rule_for("city/closures/north")
    assert found is not None
    assert (found[0].type, found[1]) == ("Closure", ["north"])
    assert mapping.rule_for("city/other") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1", "'x' is not known; write [[to_mqtt]] and [[from_mqtt]]"),
        ("x = ", "not TOML"),
        ("", "nothing to bridge"),
        ('[to_mqtt]\nevents = "A"', "write it as a list of tables"),
        ('[[to_mqtt]]\nevents = "A"\ntopic = "a/+"', "to_mqtt, rule 1: topic: cannot send to 'a/+'"),
        ('[[to_mqtt]]\nevents = "A"\ntopic = "a/{name}"', "{name} is not known"),
        ('[[to_mqtt]]\nevents = "A: ("\ntopic = "a"', "rule 1: events:"),
        ('[[to_mqtt]]\nevents = "A"\ntopic = "a"\nqos = 2', "qos"),
        ('[[from_mqtt]]\ntopic = "a/b+"\ntype = "A"', "is not a topic filter"),
        ('[[from_mqtt]]\ntopic = "a/+"\ntype = "{2}"', "{2} is not known; the topic has 1 wildcards"),
        ('[[from_mqtt]]\ntopic = "a"\ntype = "A"\nat = [1.0, 2.0]', "needs `within`"),
        ('[[from_mqtt]]\ntopic = "a"\ntype = "A"\nwithin = "circle"', "rule 1"),
        ('[[from_mqtt]]\ntopic = "a"\ntipe = "A"', "tipe"),
    ],
)
def test_a_rule_that_cannot_be_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_mapping(path)
    assert reason in str(caught.value)


def test_an_arrow_needs_both_sides() -> None:
    with pytest.raises(SettingsError, match="write 'TYPE -> TOPIC'"):
        read_mapping(None, ("Siren city",))


@pytest.mark.parametrize(("extra", "fits"), [(0, True), (1, False)])
def test_a_topic_has_1000_bytes_and_a_payload_a_million_at_most(extra: int, fits: bool) -> None:
    event = Event("Siren", {"road": "r" * (998 + extra)}, id="e")
    payload = b'{"a": "' + b"x" * (999_991 + extra) + b'"}'
    if fits:
        assert len(ToMqtt("Siren", "x/{content.road}").message(event)[0]) == 1000
        assert len(FromMqtt("t", "T").event([], payload)[0].content["a"]) == 999_991
    else:
        with pytest.raises(NoMessage, match="more than 1,000 bytes"):
            ToMqtt("Siren", "x/{content.road}").message(event)
        with pytest.raises(NoMessage, match="larger than 1,000,000"):
            FromMqtt("t", "T").event([], payload)


def test_a_document_as_content_is_written_as_an_event() -> None:
    document = Event.from_xml("<CD><price>18</price></CD>", id="e")
    assert ToMqtt("/CD", "x", payload="content").message(document) == ("x", document.to_json())


def test_an_events_own_lifespan_priority_and_area_count_before_the_rules() -> None:
    rule = FromMqtt("t", "T", payload="event", within="circle:9m", at=(1.0, 2.0), lifespan_s=60.0, priority=2)
    plain, area = rule.event([], b'{"type": "T"}')
    assert (plain.lifespan_s, plain.priority, area) == (60.0, 2, Area(Circle(9.0), Position(1.0, 2.0)))
    own = Event("T", lifespan_s=5.0, priority=1, area=Area(Circle(7.0), Position(0.0, 0.0)))
    event, area = rule.event([], own.to_json())
    assert (event.lifespan_s, event.priority, area) == (5.0, 1, own.area)
    document, _ = FromMqtt("t", "T", payload="xml", lifespan_s=60.0, priority=2).event([], b"<T/>")
    assert (document.lifespan_s, document.priority) == (60.0, 2)


def test_an_area_without_a_place_is_around_the_bridge() -> None:
    assert FromMqtt("t", "T", within="circle:9m").event([], b"{}")[1] is None
    missing = FromMqtt("t", "T", within="circle:9m", at_fields=("x", "y"))
    for payload in (b'{"x": 1}', b'{"y": 1}', b'{"x": 1, "y": "2"}'):
        with pytest.raises(NoMessage, match="lacks the numbers"):
            missing.event([], payload)


@pytest.mark.parametrize(
    ("topic", "type", "ok"),
    [
        ("a/#", "{1}", True), ("#", "T", True), ("+/+/#", "{1}{3}", True), ("a/#/b", "T", False), ("a#", "T", False),
        ("", "T", False), ("a/+b", "T", False), ("+/a", "{0}", False), ("+/a", "{2}", False), ("+/a", "{x}", False),
    ],
)  # fmt: skip
def test_a_topic_filter_has_its_wildcards_alone_and_the_rest_at_the_end(topic: str, type: str, ok: bool) -> None:
    if ok:
        assert FromMqtt(topic, type).topic == topic
    else:
        with pytest.raises(SettingsError):
            FromMqtt(topic, type)


@pytest.mark.parametrize(("topic", "ok"), [("a/{id}/{content.x}", True), ("", False), ("a/#", False), ("a/{id", False)])
def test_events_go_to_a_topic_without_wildcards(topic: str, ok: bool) -> None:
    if ok:
        assert ToMqtt("Siren", topic).topic == topic
    else:
        with pytest.raises(SettingsError, match="cannot send to"):
            ToMqtt("Siren", topic)


def test_an_empty_value_in_a_topic_is_refused_and_signs_are_escaped() -> None:
    with pytest.raises(NoMessage, match="has an empty source, which its topic needs"):
        ToMqtt("Siren", "x/{source}").message(Event("Siren", id="e"))
    topic, _ = ToMqtt("Siren", "x/{content.road}").message(Event("Siren", {"road": "a#%\n\x7f~"}, id="e"))
    assert topic == "x/a%23%25%0A%7F~"


def test_a_file_of_rules_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_mapping(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="it is not UTF-8"):
        read_mapping(tmp_path / "bytes.toml")
    for arrow in ("-> T", "T ->", "T -> "):
        with pytest.raises(SettingsError, match="cannot read"):
            read_mapping(None, (arrow,))


def test_a_rule_that_gives_no_more_than_topic_and_type_makes_a_plain_event_for_everywhere() -> None:
    event, area = FromMqtt("news", "News").event([], b'{"n": 1}')
    assert (event.type, event.content, event.lifespan_s, event.priority, event.area, area) == (
        "News", {"n": 1}, None, 0, None, None,
    )  # fmt: skip
    rule, other = FromMqtt("news", "News"), ToMqtt("News", "news")
    assert (rule.qos, rule.payload, other.qos, other.retain, other.payload) == (1, "content", 1, False, "event")
