"""Packets to bytes and back, and what is not one of ours."""

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import defstruct

from earshot.errors import MalformedPacket
from earshot.events import Element, Event
from earshot.geometry import Area, Circle, Ellipse, Position, Rectangle, Velocity
from earshot.wire import (
    MAX_PACKET_BYTES,
    WIRE_VERSION,
    FilterText,
    NodeName,
    Packet,
    Whole,
    Word,
    check_tags,
    decode,
    encode,
    size,
    tag_of,
)


class Letter(Packet, frozen=True, tag="letter of the wire tests"):
    event: Event | None
    hops: int
    names: tuple[str, ...] = ()


EVENT = Event(
    type="Siren",
    content={"speed": 12.5, "lanes": 2, "wet": True, "road": "A1", "at": Position(1.0, 2.0)},
    id="n1-7",
    source="n1",
    position=Position(3.0, 4.0),
    velocity=Velocity(0.5, 0.0),
    time=9.25,
    area=Area(Circle(300.0), Position(3.0, 4.0)),
    lifespan_s=30.0,
)
XML = Event(type="CD", content=Element("CD", {"id": "1"}, ("text", Element("price", {}, ("18",)))))

texts = st.text(max_size=20)
letters = st.builds(Letter, st.sampled_from([None, EVENT, XML]), st.integers(-(2**60), 2**60), st.tuples(texts, texts))


@given(letters)
def test_a_packet_comes_back_as_it_went(letter: Letter) -> None:
    assert decode(encode(letter)) == letter
    assert size(letter) == len(encode(letter))
    assert tag_of(letter) == "letter of the wire tests"


@given(letters, st.data())
def test_cut_or_changed_bytes_are_a_packet_or_malformed_and_nothing_else(letter: Letter, data: st.DataObject) -> None:
    good = bytearray(encode(letter))
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255))
    cut = bytes(good[: data.draw(st.integers(0, len(good)))])
    with contextlib.suppress(MalformedPacket):
        assert isinstance(decode(cut), Packet)


@given(st.binary(max_size=200))
def test_noise_is_malformed(noise: bytes) -> None:
    with contextlib.suppress(MalformedPacket):
        assert isinstance(decode(bytes([WIRE_VERSION]) + noise), Packet)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no bytes, so no wire version"),
        (
            b"\x01abc",
            "a packet of wire version 1, this node speaks 2: its sender runs an older Earshot; "
            "run the same version everywhere",
        ),
        (
            b"\x07abc",
            "a packet of wire version 7, this node speaks 2: its sender runs a newer Earshot; "
            "run the same version everywhere",
        ),
        (bytes([WIRE_VERSION]) + b"\x91\xa3odd", "no packet is tagged 'odd'"),
        (bytes([WIRE_VERSION]) + b"\x90", "no packet is tagged ''"),
        (b"x" * (MAX_PACKET_BYTES + 1), "1,200,001 bytes are more than a packet's 1,200,000"),
    ],
)
def test_bytes_that_are_no_packet_say_why(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        decode(data)
    assert str(caught.value) == reason


def test_a_field_of_the_wrong_type_is_malformed() -> None:
    wrong = encode(Letter(None, "seven"))  # type: ignore[arg-type]
    with pytest.raises(MalformedPacket, match="not a packet: Expected `int`, got `str`"):
        decode(wrong)


def test_an_event_that_cannot_be_is_malformed() -> None:
    empty = Event(type="x")
    data = encode(Letter(empty, 1)).replace(b"\x9b\xa1x", b"\x9b\xa0")
    with pytest.raises(MalformedPacket, match="an event needs a type"):
        decode(data)


def test_an_event_is_an_array_without_the_names_of_its_fields_and_without_defaults_of_its_area() -> None:
    area = Area(Circle(300.0), Position(100.5, 20.5))
    data = encode(Letter(Event(type="x", content={"speed": 18.0}, position=Position(1.5, 2.5), area=area), 1))
    for name in (b"type", b"content", b"source", b"position", b"lifespan_s", b"priority", b"reference"):
        assert name not in data
    assert b"speed" in data
    packet = decode(data)
    assert isinstance(packet, Letter)
    assert packet.event is not None
    assert packet.event.area == area


@pytest.mark.parametrize(
    "area",
    [
        Area(Circle(300.0, Position(0.0, 0.0)), Position(0.0, 0.0)),
        Area(Rectangle(30.0, 20.0, float("0")), Position(5.0, 5.0)),
        Area(Ellipse(30.0, 20.0, 0, Position(0.0, 0.0))),
    ],
)
def test_an_event_takes_as_many_bytes_after_it_was_copied_to_another_process(area: Area) -> None:
    plain = Letter(Event(type="x", area=area), 1)
    copied, decoded = pickle.loads(pickle.dumps(plain)), decode(encode(plain))
    assert encode(plain) == encode(copied) == encode(decoded)
    for name in (b"reference", b"angle_deg"):
        assert name not in encode(plain)


def test_a_tag_belongs_to_one_packet() -> None:
    class One(Packet, frozen=True, tag="twice in the wire tests"):
        pass

    class Two(Packet, frozen=True, tag="twice in the wire tests"):
        pass

    with pytest.raises(TypeError, match="two packets are tagged 'twice in the wire tests'"):
        decode(encode(One()))


class OfAPeer(Packet, frozen=True, tag="bounds of the wire tests"):
    node: NodeName = "n"
    word: Word = ""
    filter: FilterText = ""
    number: Whole = 0


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("node", "n" * 128, "n" * 129),
        ("node", "n", ""),
        ("word", "w" * 256, "w" * 257),
        ("filter", "f" * 20_000, "f" * 20_001),
        ("number", 2**62, 2**62 + 1),
        ("number", -(2**62), -(2**62) - 1),
    ],
)
def test_what_a_peer_sends_is_bounded(name: str, right: object, wrong: object) -> None:
    """Names of 128 and words of 256 letters are read, and whole numbers to which a hop more can be added."""
    packet = OfAPeer(**{name: right})  # type: ignore[arg-type]
    assert decode(encode(packet)) == packet
    with pytest.raises(MalformedPacket, match="not a packet"):
        decode(encode(OfAPeer(**{name: wrong})))  # type: ignore[arg-type]


def declared(module: str, tag: str, name: str = "Same") -> type[Packet]:
    """A packet of another module."""
    return defstruct(name, [("text", str)], bases=(Packet,), frozen=True, tag=tag, module=module)


def test_the_later_of_two_versions_of_a_plug_in_is_decoded() -> None:
    first = declared("plugin_one", "versions in the wire tests")
    assert type(decode(encode(first("a")))) is first  # type: ignore[call-arg]
    second = declared("plugin_two", "versions in the wire tests")
    assert type(decode(encode(first("a")))) is second  # type: ignore[call-arg]
    declared("plugin_one", "versions in the wire tests")
    last = declared("plugin_two", "versions in the wire tests")
    assert type(decode(encode(first("a")))) is last, "of two that came at once too"  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("modules", "names"),
    [(("earshot.one", "plugin"), ("Same", "Same")), (("plugin", "plugin"), ("One", "Two")),
     (("earshot.one", "earshot.two"), ("Same", "Same"))],
    ids=["ours and a plug-in's", "two of one plug-in", "two of ours"],
)  # fmt: skip
def test_two_packets_with_one_tag_are_found_when_tags_are_checked(
    modules: tuple[str, str], names: tuple[str, str]
) -> None:
    tag = f"checked in the wire tests: {modules} {names}"
    declared(modules[0], tag, names[0])
    check_tags()
    declared(modules[1], tag, names[1])
    with pytest.raises(TypeError, match=r"two packets are tagged .*checked in the wire tests"):
        check_tags()
    check_tags()


def test_a_packet_is_read_whose_base_has_no_tag() -> None:
    class Base(Packet, frozen=True):
        hops: int

    class Leaf(Base, frozen=True, tag="with a base in the wire tests"):
        pass

    assert decode(encode(Leaf(3))) == Leaf(3)


def test_tags_longer_than_the_short_form_of_the_wire_are_read() -> None:
    """Up to 31 bytes a text has one byte before it; a longer one has two."""
    for length in (1, 31, 32, 300):
        long = declared("plugin_tags", "t" * length)
        assert decode(encode(long("x"))) == long("x")  # type: ignore[call-arg]
        assert decode(encode(long("x"))) == long("x"), "the decoder is known by now"  # type: ignore[call-arg]


@pytest.mark.parametrize("data", [bytes([WIRE_VERSION]), bytes([WIRE_VERSION, 0x91]), bytes([WIRE_VERSION, 0xC1, 0])])
def test_bytes_that_break_off_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedPacket, match="not a packet"):
        decode(data)
