"""Datagrams: what two hosts exchange. A frame says who sends it and carries packets, or a piece of one.

On the wire: two letters, a version, whether it is sealed, then msgpack (or a nonce and what it
hides; see `trust.py`). Bytes from outside become a frame or `MalformedPacket`, nothing else.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from earshot.errors import MalformedPacket
from earshot.geometry import Position

HEADER_BYTES = 4
PLAIN = b"ES\x01\x00"
SEALED = b"ES\x01\x01"
MAX_DATAGRAM_BYTES = 65_507
MAX_NAME = 128
MAX_PACKETS = 4096
"In one datagram; transmissions are numbered by it."
MAX_ACKS = 512

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
_Word = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]


class Fragment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One piece of a packet that is too large for a datagram. `number` is the first piece's sequence."""

    number: _Count
    index: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PACKETS)]
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_PACKETS)]
    piece: bytes


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One datagram of one host."""

    sender: _Name
    life: _Count
    "When the sending host started, in nanoseconds: a restarted host begins a new count."
    sequence: _Count
    time: float
    plane: _Word
    "The origin its positions are measured from; hosts of different planes do not understand each other."
    position: Position | None
    group: Annotated[int, msgspec.Meta(ge=0, lt=2**24)] | None
    to: _Word
    "The peer it is for, who acknowledges it; empty for all who hear it."
    acks: Annotated[list[int], msgspec.Meta(max_length=MAX_ACKS)]
    "Sequences of the receiver's frames that have arrived."
    packets: Annotated[list[bytes], msgspec.Meta(max_length=MAX_PACKETS)]
    fragment: Fragment | None = None

    def transmission(self, index: int = 0) -> int:
        """The number of one packet's transmission, the same at its sender and at its receivers."""
        sequence = self.sequence if self.fragment is None else self.fragment.number
        return (self.life // 1_000_000 % 2**20) << 43 | (sequence * MAX_PACKETS + index) % 2**43


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    """The frame's bytes, without the header."""
    return _encoder.encode(frame)


def decode(data: bytes | memoryview) -> Frame:
    """The frame in these bytes, without their header; MalformedPacket where there is none."""
    try:
        frame = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise MalformedPacket(f"not a frame: {error}") from None
    at = frame.position
    if at is not None and not (math.isfinite(at.x_m) and math.isfinite(at.y_m)):
        raise MalformedPacket("a position must be finite")
    if not math.isfinite(frame.time):
        raise MalformedPacket("a time must be finite")
    if frame.fragment is not None and frame.fragment.index >= frame.fragment.count:
        raise MalformedPacket("a fragment beyond its packet's last")
    return frame
