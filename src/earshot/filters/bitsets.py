"""Bit sets on the wire: plain where they are dense, Rice-coded gaps where they are sparse.

A set of `width` bits becomes one byte that says how, then its bits. Reading stops at what cannot
be: a peer's bytes never make us allocate more than `width` bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
        coded = self.data[self.at :]
        # One byte a bit, so that the end of a run of ones is a search; past the end all are zeros.
        bits = np.unpackbits(np.frombuffer(coded, np.uint8), bitorder="little").tobytes() + b"\0"
        at, position, positions = 0, -1, []
        for _ in range(members):
            end = bits.find(0, at)
            low = int.from_bytes(coded[end + 1 >> 3 : (end + 1 + power >> 3) + 1], "little") >> (end + 1 & 7)
            position += 1 + (end - at << power) + (low & (1 << power) - 1)
            at = end + 1 + power
            if position >= width or at > len(bits) - 1:
                raise MalformedPacket(f"the {self.what} sets a bit beyond {width}")
            positions.append(position)
        self.at += (at + 7) // 8
        found = np.zeros((width + 7) // 8 * 8, np.uint8)
        found[positions] = 1
        return np.packbits(found, bitorder="little").tobytes()

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
    coded = _rice(positions, power)
    return (power, coded) if len(coded) < len(plain) else (_PLAIN, plain)


def _rice(positions: npt.NDArray[np.int64], power: int) -> bytes:
    """The number of members, then each gap: its high part in unary (ones ended by a zero), its low part plain."""
    writer = Writer()
    writer.count(len(positions))
    gaps = np.diff(positions, prepend=-1) - 1
    highs, lows = gaps >> power, gaps & (1 << power) - 1
    ends = np.cumsum(highs + 1 + power)
    starts = ends - (highs + 1 + power)
    bits = np.zeros(int(ends[-1]), np.uint8)
    before = np.cumsum(highs) - highs
    bits[np.repeat(starts - before, highs) + np.arange(int(highs.sum()))] = 1
    for bit in range(power):
        bits[ends - power + bit] = lows >> bit & 1
    return bytes(writer.data) + np.packbits(bits, bitorder="little").tobytes()
