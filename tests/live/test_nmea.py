"""Sentences of GPS receivers, at the edges of what is a position."""

import pytest

from earshot.geometry import STILL
from earshot.live.nmea import Reading, parse_line

FIELDS = ["GPRMC", "120000", "A", "5330.0000", "N", "00254.0000", "W", "10.0", "90.0", "260126"]


def sentence(**changed: str) -> str:
    names = ("kind", "time", "status", "lat", "ns", "lon", "ew", "knots", "course", "date")
    return "$" + ",".join(changed.get(name, text) for name, text in zip(names, FIELDS, strict=True))


def read(**changed: str) -> Reading:
    found = parse_line(sentence(**changed))
    assert found is not None
    return found


def test_degrees_minutes_knots_and_fractions_are_read() -> None:
    found = read(time="120000.25")
    assert (found.time, found.lat_deg, found.lon_deg) == (1769428800.25, 53.5, -2.9)
    assert (found.speed_m_s, found.course_deg) == (pytest.approx(10 * 1852 / 3600), 90.0)
    assert read().time == 1769428800.0
    assert (read(ns="S").lat_deg, read(ew="E").lon_deg) == (-53.5, 2.9)


def test_a_receiver_that_stands_has_no_speed_or_course() -> None:
    found = read(knots="", course="")
    assert (found.speed_m_s, found.course_deg, found.velocity) == (0.0, 0.0, STILL)


@pytest.mark.parametrize(
    ("course", "x_m_s", "y_m_s"), [("0", 0.0, 1.0), ("90", 1.0, 0.0), ("180", 0.0, -1.0), ("270", -1.0, 0.0)]
)
def test_the_course_is_clockwise_from_north(course: str, x_m_s: float, y_m_s: float) -> None:
    velocity = read(knots=str(3600 / 1852), course=course).velocity
    assert (velocity.x_m_s, velocity.y_m_s) == pytest.approx((x_m_s, y_m_s), abs=1e-12)


@pytest.mark.parametrize("wrong", [{"knots": "inf"}, {"course": "nan"}])
def test_a_motion_that_is_not_finite_is_none(wrong: dict[str, str]) -> None:
    assert read(**wrong).velocity == STILL


@pytest.mark.parametrize(
    ("changed", "is_reading"),
    [
        ({"lat": "9000.0", "lon": "18000.0"}, True),
        ({"lat": "9000.1"}, False),
        ({"lon": "18000.1"}, False),
        ({"status": "V"}, False),
        ({"kind": "GNRMC"}, True),
        ({"kind": "GPGGA"}, False),
        ({"date": ""}, False),
        ({"lat": ""}, False),
        ({"time": "120000.999"}, True),
        ({"time": "1200001"}, False),
        ({"time": "1200001e99"}, False),
    ],
)
def test_a_reading_is_a_valid_place_on_the_globe(changed: dict[str, str], is_reading: bool) -> None:
    assert (parse_line(sentence(**changed)) is not None) == is_reading


def test_a_checksum_is_the_exclusive_or_of_what_stands_between() -> None:
    body = sentence()[1:]
    checksum = 0
    for sign in body:
        checksum ^= ord(sign)
    assert parse_line(f"${body}*{checksum:02X}\r\n") == parse_line(f"${body}")
    assert parse_line(f"${body}*{checksum ^ 1:02X}") is None
    assert parse_line(body) is None
    assert parse_line("$" + ",".join(FIELDS[:9])) is None
