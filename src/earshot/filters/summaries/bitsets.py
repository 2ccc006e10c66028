"""Bit sets on the wire: plain where they are dense, Rice-coded gaps where they are sparse.

A set of `width` bits becomes one byte that says how, then its bits. Reading stops at what cannot
be: a peer's bytes never make us allocate more than `width` bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from earshot.errors import MalformedPacket
from earshot.filters.index.bits import slots_of

_PLAIN = 31
"The code byte of plain bits; 0 to 15 are Rice parameters."


class BitWriter:
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


class BitReader:
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


@lru_cache(maxsize=256)
def _packed(data: bytes, width: int) -> tuple[int, bytes]:
    """The code byte and the coded bits, the shorter way of the two. A summary that is made to fit is
    written again and again with most of its vectors unchanged: they are remembered."""
    plain = data[: (width + 7) // 8].ljust((width + 7) // 8, b"\0")
    members = int.from_bytes(plain, "little").bit_count()
    if members == 0:
        return 0, b"\0"
    if members * 3 > width:
        return _PLAIN, plain
    power = min(15, (width // members).bit_length() - 1)
    words = np.frombuffer(plain.ljust((width + 63) // 64 * 8, b"\0"), np.uint8)
    coded = _rice(slots_of(words), power, shorter_than=len(plain))
    return (_PLAIN, plain) if coded is None else (power, coded)


def _rice(positions: npt.NDArray[np.intp], power: int, shorter_than: int) -> bytes | None:
    """The number of members, then each gap: its high part in unary (ones ended by a zero), its low part plain.
    None where that takes too many bytes."""
    writer = BitWriter()
    writer.count(len(positions))
    gaps = positions.copy()
    gaps[1:] -= positions[:-1] + 1
    ends = ((gaps >> power) + 1 + power).cumsum()
    if len(writer.data) + (int(ends[-1]) + 7) // 8 >= shorter_than:
        return None
    bits = np.ones(int(ends[-1]), np.uint8)
    bits[ends - power - 1] = 0
    for bit in range(power):
        bits[ends - power + bit] = gaps >> bit & 1
    return bytes(writer.data) + np.packbits(bits, bitorder="little").tobytes()
