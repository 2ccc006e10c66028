"""Packets to bytes and back.

A packet is a msgspec struct with a tag. Its bytes are one version byte, then msgpack: an array of
the tag and the fields. Version 2 writes an event as an array too, which saves about 100 of 290 bytes;
packets of other versions are refused. The simulator bills `size(packet)`; the live host sends `encode(packet)`.
Bytes from outside become a packet or `MalformedPacket`, nothing else.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from earshot.errors import EarshotError, MalformedPacket

WIRE_VERSION = 2
MAX_PACKET_BYTES = 1_200_000
"Enough for an event of 1 MB. A larger packet is refused before it is decoded."
MAX_NAME = 128
MAX_WORD = 256
MAX_FILTER_TEXT = 20_000

# Packets from outside are refused if a field is out of these bounds, so that what a machine keeps of them is bounded
# in bytes, and what it passes on can be encoded again. The decoder checks them; values made here are not checked.
NodeName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
"The name of a node."
Word = Annotated[str, msgspec.Meta(max_length=MAX_WORD)]
"An event's id or type, or the name of a node; empty if there is none."
FilterText = Annotated[str, msgspec.Meta(max_length=MAX_FILTER_TEXT)]
"A filter as text; a longer text cannot be parsed."
Whole = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
"A whole number, small enough that adding to it does not exceed what the wire carries."

_decoders: dict[bytes, msgspec.msgpack.Decoder[Any]] = {}
"By the tag's bytes on the wire."
_classes: dict[str, type[Packet]] = {}
_declared: list[type[Packet]] = []
_encoder = msgspec.msgpack.Encoder()
_tag_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_str_decoder = msgspec.msgpack.Decoder(str)
_VERSION_BYTE = bytes([WIRE_VERSION])
_SHORT_TEXT = 0xA0
"The first byte of a text in msgpack, plus its length, if it has at most 31 bytes."


class Packet(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What machines exchange. A protocol declares its own: `class Hello(Packet, tag="hello")`.

    A packet that carries an event calls that field `event`, so that hosts can log what it is about.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _declared.append(cls)


def _register() -> None:
    """Learn the tags of newly declared packets. A class has its tag only after `__init_subclass__`, so this
    happens at the next decoding."""
    while _declared:
        cls = _declared.pop(0)  # in order: of two versions the later one stays
        tag = cls.__struct_config__.tag
        if not isinstance(tag, str):
            continue
        known = _classes.setdefault(tag, cls)
        modules = {known.__module__, cls.__module__}
        ours = any(name.startswith("earshot.") for name in modules)
        # Two versions of a plug-in may be loaded side by side: the later one is decoded.
        if known.__qualname__ != cls.__qualname__ or (ours and len(modules) > 1):
            raise TypeError(f"two packets are tagged {tag!r}: {known.__module__} and {cls.__module__}")
        _classes[tag] = cls
        _decoders.pop(_encoder.encode(tag), None)


def check_tags() -> None:
    """Raise TypeError if two packets declare the same tag."""
    if _declared:
        _register()


def tag_of(packet: Packet) -> str:
    """The packet's tag, as logs name it."""
    return str(type(packet).__struct_config__.tag)


def encode(packet: Packet) -> bytes:
    """The packet's bytes on the wire."""
    return _VERSION_BYTE + _encoder.encode(packet)


def size(packet: Packet) -> int:
    """How many bytes the packet takes on the wire."""
    return len(_encoder.encode(packet)) + 1


def _decoder_for(data: bytes) -> msgspec.msgpack.Decoder[Any]:
    """The decoder for the packet in these bytes, chosen by its tag."""
    parts = _tag_decoder.decode(memoryview(data)[1:])
    tag = _str_decoder.decode(parts[0]) if parts else ""
    if tag not in _classes:
        raise MalformedPacket(f"no packet is tagged {tag[:40]!r}")
    key = _encoder.encode(tag)
    if key not in _decoders:
        _decoders[key] = msgspec.msgpack.Decoder(_classes[tag])
    return _decoders[key]


def _other_version(data: bytes) -> str:
    """Why bytes that do not begin with this node's version are refused."""
    if not data:
        return "no bytes, so no wire version"
    which = "an older" if data[0] < WIRE_VERSION else "a newer"
    return (
        f"a packet of wire version {data[0]}, this node speaks {WIRE_VERSION}: its sender runs {which} Earshot; "
        "run the same version everywhere"
    )


def decode(data: bytes) -> Packet:
    """The packet in these bytes; MalformedPacket if they are not a packet."""
    if len(data) > MAX_PACKET_BYTES:
        raise MalformedPacket(f"{len(data):,} bytes are more than a packet's {MAX_PACKET_BYTES:,}")
    if not data or data[0] != WIRE_VERSION:
        raise MalformedPacket(_other_version(data))
    if _declared:
        _register()
    try:
        # A short packet begins with the version, one byte for the array, and its tag. The decoder checks all of it.
        tag = data[2 : data[2] - _SHORT_TEXT + 3] if len(data) > 2 else b""
        packet: Packet = (_decoders.get(tag) or _decoder_for(data)).decode(data[1:])
    except (msgspec.DecodeError, EarshotError, ValueError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, MalformedPacket):
            raise
        raise MalformedPacket(f"not a packet: {error}") from None
    return packet
