"""The record dialect: what is written is read back, and older or hostile details are read as far as possible."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.events import EventType
from earshot.geometry import Area, Circle, Position, Proximity
from earshot.records.details import (
    AirtimeDetail,
    AnnounceDetail,
    JoinDetail,
    SubscribeDetail,
    read_airtime,
    read_announce,
    read_join,
    read_subscribe,
    write_announcement,
    write_detail,
)

SIREN = EventType("Siren", {"speed": float}, {"lane": "left"})
AROUND = Proximity(Circle(300.0), Position(1.0, 2.0), mobile=True)


@dataclass(frozen=True)
class Settings:
    hello_interval_s: float = 2.0


def test_details_are_read_as_they_were_written() -> None:
    join = JoinDetail("steam", Settings(), "51.5,-0.1", 150.0, 17, "started")
    assert read_join(write_detail(join)) == JoinDetail(
        "steam", {"hello_interval_s": 2.0}, "51.5,-0.1", 150.0, 17, "started"
    )
    wanted = SubscribeDetail("Siren: speed > 10", Area(Circle(50.0), Position(3.0, 4.0)))
    assert read_subscribe(write_detail(wanted)) == wanted
    announced = read_announce(write_announcement(SIREN, AROUND))
    assert (announced.event_type, announced.proximity) == (SIREN, AROUND)


def test_older_details_are_read() -> None:
    assert read_join("after crash") == JoinDetail(reason="after crash")
    older = read_join('{"protocol": "steam", "settings": {"a": 1}, "plane": "", "emulate_range_m": 99, "life": 3}')
    assert older == JoinDetail("steam", {"a": 1}, "", 99.0, 3)
    assert older.starts_applications
    assert not read_join("after crash").starts_applications
    assert read_subscribe("Siren: speed > 10") == SubscribeDetail("Siren: speed > 10")
    assert read_subscribe("/CD[price < 20]") == SubscribeDetail("/CD[price < 20]")
    assert read_announce("Siren within circle:300m of 1,2") == AnnounceDetail("Siren")
    flat = '{"subject": "Siren", "content": {"speed": "float"}, "attributes": {"lane": "left"}, %s}'
    announced = read_announce(flat % '"shape": "circle:300m", "x_m": 1, "y_m": 2, "mobile": true')
    assert (announced.event_type, announced.proximity) == (SIREN, AROUND)


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "3", '{"protocol": 5, "settings": [], "emulate_range_m": true}', "{" * 5000],
)
def test_hostile_joins_are_read_as_unknown(text: str) -> None:
    join = read_join(text)
    assert (join.protocol, join.settings, join.emulate_range_m) == ("", {}, None)


def test_an_announcement_whose_proximity_is_impossible_keeps_its_subject() -> None:
    for wrong in ('"shape": "circle:-3m", "x_m": 0, "y_m": 0, "mobile": 1', '"shape": 7', '"proximity": {"shape": 1}'):
        assert read_announce(f'{{"subject": "Siren", {wrong}}}') == AnnounceDetail("Siren")


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.lists(inner)).map(str))
def test_reading_never_fails(text: str) -> None:
    read_join(text)
    read_subscribe(text)
    read_announce(text)
    read_airtime(text)


def test_an_airtime_is_read_as_it_was_written() -> None:
    airtime = AirtimeDetail(span_s=10.0, busy_s=2.5, sent_s=0.25)
    assert read_airtime(write_detail(airtime)) == airtime
    assert read_airtime("busy") is None
