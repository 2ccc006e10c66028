"""Summaries as bytes and back: bit sets, numbers in 32 bits, and a summary's sections.

A set of `width` bits becomes one byte that names the form, then its bits: plain where they are dense, Rice-coded
gaps where they are sparse. Numbers are rounded outwards. Reading refuses what cannot be: a peer's bytes never make us
allocate more than `width` bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from earshot.errors import MalformedPacket
from earshot.filters.index.bits import slots_of
from earshot.filters.summaries.bloom import Bloom, BloomShape
from earshot.filters.summaries.clauses import Span
from earshot.filters.summaries.sections import EVERYTHING, TypeSection
from earshot.filters.summaries.structures import AssociationList, NumberConstraint, Pieces, TextConstraint
from earshot.filters.summaries.value_combinations import (
    EQUALS,
    HOLDS,
    NUMBER,
    UNBOUNDED,
    ColumnKey,
    Row,
    ValueCombinations,
    combinations_shape,
)

_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_PLAIN = 31
"The code byte of plain bits; 0 to 15 are Rice parameters."


class BitWriter:
    """Bytes, written front to back."""

    def __init__(self) -> None:
        self.data = bytearray()

    def unsigned(self, value: int, size: int) -> None:
        self.data += value.to_bytes(size, "little")

    def count(self, value: int) -> None:
        """A number that is usually small: seven bits a byte."""
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def number(self, value: float) -> None:
        """A number that 32 bits hold."""
        self.data += struct.pack("<f", value)

    def bits(self, data: bytes, width: int) -> None:
        """A set of `width` bits, given as little-endian bytes."""
        code, coded = _packed(data, width)
        self.data.append(code)
        self.data += coded


class BitReader:
    """Bytes, read front to back; MalformedPacket where they end too early."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.at = 0
        self.what = what

    def raw(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise MalformedPacket(f"the {self.what} ends after {len(self.data)} bytes, too early")
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
                raise MalformedPacket(f"the {self.what} has a count of more than {most}")
            if byte < 0x80:
                return value
            shift += 7

    def number(self) -> float:
        value = float(struct.unpack("<f", self.raw(4))[0])
        if math.isnan(value):
            raise MalformedPacket(f"the {self.what} holds NaN for a number")
        return value

    def bits(self, width: int) -> bytes:
        code = self.unsigned(1)
        if code == _PLAIN:
            data = self.raw((width + 7) // 8)
            if int.from_bytes(data, "little") >> width:
                raise MalformedPacket(f"the {self.what} sets a bit beyond {width}")
            return data
        if code > 15:
            raise MalformedPacket(f"the {self.what} has an unknown code for its bits: {code}")
        return self._gaps(width, code)

    def _gaps(self, width: int, power: int) -> bytes:
        members = self.count(width)
        coded = self.data[self.at :]
        # One byte a bit: the end of a run of ones is found by a search, and the added zero ends the last run.
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
            raise MalformedPacket(f"the {self.what} has {len(self.data) - self.at} extra bytes")


@lru_cache(maxsize=256)
def _packed(data: bytes, width: int) -> tuple[int, bytes]:
    """The code byte and the coded bits, in the shorter of the two forms. A summary that is coarsened to fit is
    written many times with most of its vectors unchanged, so results are remembered."""
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
    None where that is not shorter."""
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


def rounded_down(value: float) -> float:
    """The greatest number of 32 bits that is not above the value."""
    return -rounded_up(-value)


def rounded_up(value: float) -> float:
    """The smallest number of 32 bits that is not below the value."""
    if math.isinf(value):
        return value
    if value > _FLOAT_MAX:
        return math.inf
    if value < -_FLOAT_MAX:
        return -float(_FLOAT_MAX)
    nearest = float(struct.unpack("<f", struct.pack("<f", value))[0])
    if nearest >= value:
        return nearest
    bits = struct.unpack("<i", struct.pack("<f", nearest))[0]
    if nearest == 0.0:
        bits = 1
    else:
        bits += 1 if nearest > 0 else -1
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


# Sections.

_WHOLE, _ROWS, _COMBINATIONS = 1, 2, 4
"Flags of a section: wants everything; has an association list; has combinations."
_NO_BOUND, _CLOSED, _OPEN, _SINGLE = 0, 1, 2, 3
"How a range's bound is written; a single value is written once, as its lower bound."

_MOST_COLUMNS = 1 << 14
_MOST_ROW_BITS = 1 << 20


def write_section(writer: BitWriter, section: TypeSection) -> None:
    """Flags, names with what is asked of them, rows, ranges, vectors."""
    if section.unconstrained:
        writer.unsigned(_WHOLE, 1)
        return
    eal = section.eal
    writer.unsigned(
        (_ROWS if eal.rows is not None else 0) | (_COMBINATIONS if section.combinations is not None else 0), 1
    )
    kinds: dict[int, int] = {}
    for one in eal.columns:
        kinds[one >> 2] = kinds.get(one >> 2, 0) | 1 << (one & 3)
    writer.count(len(kinds))
    for key, asked in sorted(kinds.items()):
        writer.unsigned(key, 2)
        writer.unsigned(asked, 1)
    if eal.rows is None:
        writer.count(eal.least)
    else:
        _write_rows(writer, eal.columns, eal.rows)
    for one in eal.columns:
        key, kind = one >> 2, one & 3
        if kind == NUMBER:
            _write_ranges(writer, section.aec[key])
        elif kind == EQUALS:
            _write_vector(writer, section.sec[key].equal)
        elif kind == HOLDS:
            _write_pieces(writer, section.sec[key].prefix)
            _write_pieces(writer, section.sec[key].substring)
    if section.combinations is not None:
        _write_combinations(writer, eal.columns, section.combinations)


def read_section(reader: BitReader, shape: BloomShape) -> TypeSection:
    """The section that `write_section` wrote; MalformedPacket where it cannot be one."""
    flags = reader.unsigned(1)
    if flags == _WHOLE:
        return EVERYTHING
    if flags & ~(_ROWS | _COMBINATIONS):
        raise MalformedPacket(f"a summary's section has unknown flags: {flags}")
    columns = _read_columns(reader)
    rows: frozenset[Row] | None = None
    if flags & _ROWS:
        rows = _read_rows(reader, columns)
        least = min(map(len, rows))
    else:
        least = reader.count(len(columns))
    if least == 0:
        raise MalformedPacket("a summary's section asks for nothing and lacks the flag for it")
    aec: dict[int, NumberConstraint] = {}
    sec: dict[int, TextConstraint] = {}
    for one in columns:
        key, kind = one >> 2, one & 3
        if kind == NUMBER:
            aec[key] = _read_ranges(reader)
        elif kind == EQUALS:
            sec[key] = TextConstraint(_read_vector(reader, shape))
        elif kind == HOLDS:
            texts = TextConstraint(None, _read_pieces(reader, shape), _read_pieces(reader, shape))
            sec[key] = sec[key].merged(texts) if key in sec else texts
    combinations = _read_combinations(reader, columns, shape) if flags & _COMBINATIONS else None
    return TypeSection(AssociationList(columns, rows, least), aec, sec, combinations)


def _read_columns(reader: BitReader) -> tuple[ColumnKey, ...]:
    columns: list[ColumnKey] = []
    for _ in range(reader.count(_MOST_COLUMNS)):
        key, asked = reader.unsigned(2), reader.unsigned(1)
        if not 1 <= asked <= 15 or (columns and columns[-1] >> 2 >= key):
            raise MalformedPacket("a summary's names are out of order")
        columns += [key << 2 | kind for kind in range(4) if asked >> kind & 1]
    return tuple(columns)


def _write_rows(writer: BitWriter, columns: tuple[ColumnKey, ...], rows: frozenset[Row]) -> None:
    """All rows as one set of bits."""
    width = len(columns)
    place = {one: index for index, one in enumerate(columns)}
    bits = 0
    for index, row in enumerate(sorted(rows)):
        bits |= sum(1 << place[one] for one in row) << index * width
    writer.count(len(rows))
    size = width * len(rows)
    writer.bits(bits.to_bytes((size + 7) // 8, "little"), size)


def _read_rows(reader: BitReader, columns: tuple[ColumnKey, ...]) -> frozenset[Row]:
    width = len(columns)
    count = reader.count(1 << 16)
    if count == 0 or count * width > _MOST_ROW_BITS:
        raise MalformedPacket(f"a summary's section has {count} rows")
    bits = int.from_bytes(reader.bits(count * width), "little")
    rows = set()
    for index in range(count):
        mask = bits >> index * width & ((1 << width) - 1)
        rows.add(tuple(one for place, one in enumerate(columns) if mask >> place & 1))
    return frozenset(rows)


def _write_ranges(writer: BitWriter, numbers: NumberConstraint) -> None:
    writer.count(len(numbers.spans))
    for low, high in numbers.spans:
        if low == high and rounded_down(low) == low:
            writer.unsigned(_SINGLE | _SINGLE << 2, 1)
            writer.number(low)
            continue
        how_low, low_bytes = _bound(low, rounded_down, -math.inf)
        how_high, high_bytes = _bound(high, rounded_up, math.inf)
        writer.unsigned(how_low | how_high << 2, 1)
        writer.data += low_bytes + high_bytes


def _bound(value: float, rounded: Callable[[float], float], outwards: float) -> tuple[int, bytes]:
    """A bound as it is where 32 bits hold it; else the next number outwards, excluded: for `price < 20`
    that is exactly 20."""
    outer = rounded(value)
    if math.isinf(outer) and outer == outwards:
        return _NO_BOUND, b""
    return _CLOSED if outer == value else _OPEN, struct.pack("<f", outer)


def _read_ranges(reader: BitReader) -> NumberConstraint:
    spans: list[Span] = []
    for _ in range(reader.count(1 << 14)):
        how = reader.unsigned(1)
        how_low, how_high = how & 3, how >> 2
        if how_low == how_high == _SINGLE:
            value = reader.number()
            spans.append((value, value))
        elif how_low <= _OPEN and how_high <= _OPEN:
            low = -math.inf if how_low == _NO_BOUND else reader.number()
            high = math.inf if how_high == _NO_BOUND else reader.number()
            spans.append(
                (
                    math.nextafter(low, math.inf) if how_low == _OPEN else low,
                    math.nextafter(high, -math.inf) if how_high == _OPEN else high,
                )
            )
        else:
            raise MalformedPacket(f"a summary's range has an unknown kind: {how}")
    return NumberConstraint.of(spans)


def _write_pieces(writer: BitWriter, pieces: Pieces | None) -> None:
    """The lengths that occur, and where there are any the vector."""
    assert pieces is not None, "a column asks for these texts"
    writer.unsigned(pieces.lengths, 1)
    if pieces.lengths:
        _write_vector(writer, pieces.vector)


def _read_pieces(reader: BitReader, shape: BloomShape) -> Pieces:
    lengths = reader.unsigned(1)
    return Pieces(_read_vector(reader, shape) if lengths else Bloom.empty(shape), lengths)


def _write_vector(writer: BitWriter, vector: Bloom | None) -> None:
    assert vector is not None, "a column asks for these texts"
    writer.unsigned(vector.shape.bits.bit_length() - 1, 1)
    writer.bits(vector.data, vector.shape.bits)


def _read_vector(reader: BitReader, shape: BloomShape) -> Bloom:
    power = reader.unsigned(1)
    if not 3 <= power <= shape.bits.bit_length() - 1:
        raise MalformedPacket(f"a summary's vector has 2^{power} bits, this network's have {shape.bits}")
    return Bloom(BloomShape(1 << power, shape.hashes), reader.bits(1 << power))


def _write_combinations(writer: BitWriter, columns: tuple[ColumnKey, ...], combinations: ValueCombinations) -> None:
    """For each column of numbers the widths in use, then the marks."""
    for one in columns:
        if one & 3 == NUMBER:
            widths = combinations.widths[one >> 2]
            writer.count(len(widths))
            for width in widths:
                writer.unsigned(width + 128, 1)
    _write_vector(writer, combinations.marks)


def _read_combinations(reader: BitReader, columns: tuple[ColumnKey, ...], shape: BloomShape) -> ValueCombinations:
    widths: dict[int, tuple[int, ...]] = {}
    for one in columns:
        if one & 3 == NUMBER:
            found = [reader.unsigned(1) - 128 for _ in range(reader.count(UNBOUNDED + 129))]
            widths[one >> 2] = tuple(sorted(set(found)))
    return ValueCombinations(_read_vector(reader, combinations_shape(shape)), widths)
