"""Group identifiers."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot import Circle, Ellipse, Polygon, Position, Proximity, Rectangle
from earshot.protocols.steam.group_ids import description, group_id, hashed

PLACE = Position(12.5, -3.0)


@pytest.mark.parametrize(
    ("proximity", "text"),
    [
        (Proximity(Circle(200), PLACE), "Siren|stationary|circle|200.0|0.0,0.0|12.5,-3.0"),
        (Proximity(Circle(200), PLACE, mobile=True), "Siren|mobile|circle|200.0|0.0,0.0|12.5,-3.0"),
        (
            Proximity(Rectangle(40, 20, 30.0, Position(1, 2)), PLACE),
            "Siren|stationary|rectangle|40.0,20.0,30.0|1.0,2.0|12.5,-3.0",
        ),
        (Proximity(Ellipse(8, 4), PLACE), "Siren|stationary|ellipse|8.0,4.0,0.0|0.0,0.0|12.5,-3.0"),
        (
            Proximity(Polygon(((0, 0), (9, 0), (0, 9)), (((1, 1), (2, 1), (1, 2)),)), PLACE),
            "Siren|stationary|polygon|0.0,0.0,9.0,0.0,0.0,9.0/1.0,1.0,2.0,1.0,1.0,2.0|12.5,-3.0",
        ),
        (None, "Siren|everywhere"),
    ],
)
def test_a_description_names_type_shape_dimensions_reference_and_naval(proximity: Proximity | None, text: str) -> None:
    assert description("Siren", proximity) == text


def test_the_hash_is_a_polynomial_in_the_multiplier_reduced_to_its_upper_bits() -> None:
    multiplier = 2_654_435_769
    polynomial = ord("a") * multiplier**2 + ord("b") * multiplier + ord("c")
    assert hashed("abc") == (polynomial * multiplier % 2**32) // 2**8


def test_nodes_agree_on_a_group_whatever_kind_of_number_the_producer_wrote() -> None:
    written = Proximity(Circle(300), Position(5, 7))
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(written), type=Proximity)
    assert group_id("Siren", written) == group_id("Siren", received)


finite = st.floats(-1e7, 1e7, allow_nan=False)
sizes = st.floats(0.01, 1e6)
places = st.builds(Position, finite, finite)
shapes = st.one_of(
    st.builds(Circle, sizes, places),
    st.builds(Rectangle, sizes, sizes, finite, places),
    st.builds(Ellipse, sizes, sizes, finite, places),
)
proximities = st.builds(Proximity, shapes, places, st.booleans())


@given(proximities, proximities)
def test_different_proximities_have_different_descriptions(one: Proximity, other: Proximity) -> None:
    same = msgspec.msgpack.encode(one) == msgspec.msgpack.encode(other)
    assert (description("Siren", one) == description("Siren", other)) == same


@given(st.text(min_size=1), proximities)
def test_an_identifier_has_24_bits(subject: str, proximity: Proximity) -> None:
    assert 0 <= group_id(subject, proximity) < 2**24


def subjects(count: int, seed: int) -> list[str]:
    """Distinct event types of 14 to 18 characters, as in section 5.3.1."""
    random = Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        length = random.randint(14, 18)
        found["".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=length))] = None
    return list(found)


def test_forty_announcements_in_one_proximity_do_not_collide() -> None:
    proximity = Proximity(Circle(200), PLACE)
    collisions = [40 - len({group_id(subject, proximity) for subject in subjects(40, seed)}) for seed in range(100)]
    assert collisions == [0] * 100


def test_forty_thousand_collide_as_often_as_random_identifiers() -> None:
    proximity = Proximity(Circle(200), PLACE)
    lost = 40_000 - len({hashed(description(subject, proximity)) for subject in subjects(40_000, 7)})
    by_chance = 40_000**2 / 2 / 2**24
    assert by_chance / 2 < lost < by_chance * 2
