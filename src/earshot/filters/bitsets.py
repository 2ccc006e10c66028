"""Bit sets on the wire: plain where they are dense, Rice-coded gaps where they are sparse.

A set of `width` bits becomes one byte that says how, then its bits. Reading stops at what cannot
be: a peer's bytes never make us allocate more than `width` bits.
"""

from __future__ import annotations

import numpy as np

from earshot.errors import MalformedPacket

_PLAIN = 31
"The code byte of plain bits; 0 to 15 are Rice parameters."


class Writer:
    """Bytes, written front to back."""

    def __init__(self) -> None:
        self.data = bytearray()

    def unsigned(self, value: int, size: int) -> None:
        self.data += value.to_bytes(size, "little")

    def count(self, value: int) -> None:
        """A number that is mostly small: seven bits a byte."""
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def bits(self, data: bytes, width: int) -> None:
        """A set of `width` bits, given as little-endian bytes."""
        code, coded = _packed(data, width)
        self.data.append(code)
        self.data += coded


class Reader:
    """Bytes, read front to back; MalformedPacket where they end too soon."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.at = 0
        self.what = what

    def raw(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise MalformedPacket(f"the {self.what} ends after {len(self.data)} bytes, in the middle of something")
        self.at += size
        return self.data[self.at - size : self.at]

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.raw(size), "little")

    def count(self, most: int) -> int:
        value = shift = 0
        while True:
            byte = self.unsigned(1)
            value |= (byte & 0x7F) << shift
            if value > most or shift > 28:
                raise MalformedPacket(f"the {self.what} counts more than {most} of something")
            if byte < 0x80:
                return value
            shift += 7

    def bits(self, width: int) -> bytes:
        code = self.unsigned(1)
        if code == _PLAIN:
            data = self.raw((width + 7) // 8)
            if int.from_bytes(data, "little") >> width:
                raise MalformedPacket(f"the {self.what} sets a bit beyond {width}")
            return data
        if code > 15:
            raise MalformedPacket(f"the {self.what} codes its bits in a way unknown here: {code}")
        return self._gaps(width, code)

    def _gaps(self, width: int, power: int) -> bytes:
        members = self.count(width)
        stream = int.from_bytes(self.data[self.at :], "little")
        limit = (len(self.data) - self.at) * 8
        at, position, found = 0, -1, bytearray((width + 7) // 8)
        for _ in range(members):
            zeros = ~(stream >> at)
            run = (zeros & -zeros).bit_length() - 1
            at += run + 1
            position += 1 + (run << power) + (stream >> at & ((1 << power) - 1))
            at += power
            if position >= width or at > limit:
                raise MalformedPacket(f"the {self.what} sets a bit beyond {width}")
            found[position >> 3] |= 1 << (position & 7)
        self.at += (at + 7) // 8
        return bytes(found)

    def end(self) -> None:
        if self.at != len(self.data):
            raise MalformedPacket(f"the {self.what} has {len(self.data) - self.at} bytes too many")


def _packed(data: bytes, width: int) -> tuple[int, bytes]:
    """The code byte and the coded bits, the shorter way of the two."""
    plain = bytes(data[: (width + 7) // 8]).ljust((width + 7) // 8, b"\0")
    members = int.from_bytes(plain, "little").bit_count()
    if members == 0:
        return 0, b"\0"
    if members * 3 > width:
        return _PLAIN, plain
    power = min(15, (width // members).bit_length() - 1)
    positions = np.flatnonzero(np.unpackbits(np.frombuffer(plain, np.uint8), bitorder="little"))
    coded = _rice(positions.tolist(), power)
    return (power, coded) if len(coded) < len(plain) else (_PLAIN, plain)


def _rice(positions: list[int], power: int) -> bytes:
    """The number of members, then each gap: its high part in unary (ones ended by a zero), its low part plain."""
    writer = Writer()
    writer.count(len(positions))
    stream = at = 0
    last = -1
    for position in positions:
        gap = position - last - 1
        high = gap >> power
        stream |= ((1 << high) - 1 | (gap & ((1 << power) - 1)) << high + 1) << at
        at += high + 1 + power
        last = position
    return bytes(writer.data) + stream.to_bytes((at + 7) // 8, "little")
