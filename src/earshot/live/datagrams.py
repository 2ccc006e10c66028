"""Datagrams: what two hosts exchange. A frame names its sender and carries packets, or a fragment of one; a
challenge and its echo show that a host is at its address.

On the wire: two letters, a version, whether it is sealed, then msgpack (or a nonce and the encrypted
frame; see `trust.py`). Bytes from outside become a frame or `MalformedPacket`, nothing else. A packet
that is larger than a datagram is split into fragments, and reassembled in bounded buffers.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from earshot.errors import MalformedPacket
from earshot.events import MAX_SIGNATURE_BYTES
from earshot.geometry import Position
from earshot.records import DropReason
from earshot.wire import MAX_PACKET_BYTES

HEADER_BYTES = 4
PLAIN = b"ES\x01\x00"
SEALED = b"ES\x01\x01"
MAX_DATAGRAM_BYTES = 65_507
MAX_NAME = 128
MAX_PACKETS = 4096
"In one datagram; the numbers of transmissions depend on it."
MAX_ACKS = 512
COOKIE_BYTES = 8
DIGEST_BYTES = 4
PIECE_BYTES = 160
"About what a fragment takes beside its bytes."

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
_Word = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]


class Fragment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One piece of a packet that is too large for a datagram. `number` is the sequence of the first piece."""

    number: _Count
    index: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PACKETS)]
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_PACKETS)]
    piece: bytes


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One datagram of one host."""

    sender: _Name
    life: _Count
    "The time at which the sending host started, in nanoseconds: a restarted host numbers its frames from 1 again."
    sequence: _Count
    time: float
    plane: _Word
    "The origin of the sender's positions; hosts refuse frames of other planes."
    position: Position | None
    group: Annotated[int, msgspec.Meta(ge=0, lt=2**24)] | None
    to: _Word
    "The peer that this frame is for, which acknowledges it; empty for all hosts."
    acks: Annotated[list[int], msgspec.Meta(max_length=MAX_ACKS)]
    "Sequence numbers of the receiver's frames that have arrived here."
    packets: Annotated[list[bytes], msgspec.Meta(max_length=MAX_PACKETS)]
    fragment: Fragment | None = None
    signature: Annotated[bytes, msgspec.Meta(max_length=MAX_SIGNATURE_BYTES)] | None = None
    "The sender's signature, of a hello only; see `identity.py`."

    def transmission(self, index: int = 0) -> int:
        """The number of one packet's transmission, the same at its sender and at its receivers."""
        sequence = self.sequence if self.fragment is None else self.fragment.number
        return (self.life // 1_000_000 % 2**20) << 43 | (sequence * MAX_PACKETS + index) % 2**43


class Challenge(msgspec.Struct, frozen=True, gc=False):
    """Asks the host of one name and life to send the same bytes back as an echo. A challenge is smaller than any frame
    and as large as an echo, so that an attacker cannot make a host send more bytes than the attacker sent."""

    cookie: bytes
    digest: bytes
    "The digest of a name and a life: a host answers only if they are its own."


class Echo(msgspec.Struct, frozen=True, gc=False):
    """The answer to a challenge."""

    cookie: bytes
    digest: bytes


class Goodbye(msgspec.Struct, frozen=True, gc=False):
    """Says that the host of this name and life stops. (The cookie is not used.)"""

    digest: bytes
    cookie: bytes = bytes(COOKIE_BYTES)


Short = Challenge | Echo | Goodbye
_SHORT_KINDS: list[type[Short]] = [Challenge, Echo, Goodbye]
"In the order of their first bytes. (A frame is an array and begins with another byte.)"

SHORT_BYTES = 1 + COOKIE_BYTES + DIGEST_BYTES

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame | Short) -> bytes:
    """The bytes of a frame, a challenge, an echo or a goodbye, without the header."""
    if isinstance(frame, Frame):
        return _encoder.encode(frame)
    return bytes((_SHORT_KINDS.index(type(frame)),)) + frame.cookie + frame.digest


def decode(data: bytes | memoryview) -> Frame | Short:
    """What these bytes without their header are; MalformedPacket if they are neither a frame nor a challenge, an echo
    or a goodbye."""
    if len(data) == SHORT_BYTES and data[0] < len(_SHORT_KINDS):
        cookie, digest = bytes(data[1 : 1 + COOKIE_BYTES]), bytes(data[1 + COOKIE_BYTES :])
        return _SHORT_KINDS[data[0]](cookie=cookie, digest=digest)
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
        raise MalformedPacket("a fragment's index must be below its count")
    if frame.signature is not None and (frame.packets or frame.fragment or frame.to or frame.acks):
        raise MalformedPacket("a signed frame is a hello and carries nothing")
    return frame


Key = tuple[str, int, int]
"The sender, when it started, and the number of the packet."


def split(packet: bytes, piece_bytes: int) -> list[bytes]:
    """The packet in pieces, in order."""
    return [packet[start : start + piece_bytes] for start in range(0, len(packet), piece_bytes)]


@dataclass(slots=True)
class _Partial:
    started_at: float
    count: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    bytes: int = 0


@dataclass(slots=True, eq=False)
class Reassembly:
    """Fragments that wait for the rest of their packet. One sender holds at most `sender_bytes`, all senders at
    most `total_bytes`; beyond that, the sender that holds most loses its oldest packet."""

    dropped: Callable[[DropReason], None]
    sender_bytes: int = 2 * MAX_PACKET_BYTES
    total_bytes: int = 16 * MAX_PACKET_BYTES
    partial_limit: int = 256
    finished_limit: int = MAX_PACKETS
    piece_bytes: int = PIECE_BYTES
    patience_s: float = 5.0
    held_bytes: int = 0
    _partials: OrderedDict[Key, _Partial] = field(default_factory=OrderedDict)
    _held: Counter[str] = field(default_factory=Counter)
    _finished: OrderedDict[Key, None] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._partials)

    def add(self, sender: str, life: int, fragment: Fragment, now: float) -> bytes | None:
        """The whole packet, if this was its last missing fragment."""
        key = (sender, life, fragment.number)
        self.expire(now)
        partial = self._partials.get(key)
        if partial is None:
            if key in self._finished:
                return None
            partial = self._partials[key] = _Partial(now, fragment.count)
        if partial.count != fragment.count or fragment.index in partial.pieces:
            return None
        size = len(fragment.piece)
        if partial.bytes + size > MAX_PACKET_BYTES:
            self._forget(key)
            self.dropped(DropReason.PACKET_TOO_LARGE)
            return None
        partial.pieces[fragment.index] = fragment.piece
        partial.bytes += size
        self._held[sender] += size + self.piece_bytes
        self.held_bytes += size + self.piece_bytes
        if len(partial.pieces) == partial.count:
            self._forget(key)
            self._finished[key] = None
            if len(self._finished) > self.finished_limit:
                self._finished.popitem(last=False)
            return b"".join(partial.pieces[index] for index in range(partial.count))
        self._make_room(sender)
        return None

    def expire(self, now: float) -> None:
        """Drop the packets that have waited too long."""
        while self._partials:
            key, partial = next(iter(self._partials.items()))
            if now - partial.started_at <= self.patience_s:
                return
            self._forget(key)
            self.dropped(DropReason.FRAGMENTS_MISSING)

    def _make_room(self, sender: str) -> None:
        while self._held[sender] > self.sender_bytes:
            self._drop_oldest_of(sender)
        while self.held_bytes > self.total_bytes or len(self._partials) > self.partial_limit:
            count = Counter(name for name, _, _ in self._partials)
            self._drop_oldest_of(max(count, key=lambda name: (self._held[name], count[name])))

    def _drop_oldest_of(self, sender: str) -> None:
        self._forget(next(key for key in self._partials if key[0] == sender))
        self.dropped(DropReason.FRAGMENT_BUFFER_FULL)

    def _forget(self, key: Key) -> None:
        partial = self._partials.pop(key)
        held_bytes = partial.bytes + self.piece_bytes * len(partial.pieces)
        self.held_bytes -= held_bytes
        self._held[key[0]] -= held_bytes
        if not self._held[key[0]]:
            del self._held[key[0]]
