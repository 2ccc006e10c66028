"""A summary's section as bytes and back. Numbers travel in 32 bits, rounded outwards."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from earshot.errors import MalformedPacket
from earshot.filters.summaries.bitsets import BitReader, BitWriter
from earshot.filters.summaries.bloom import Bloom, BloomShape
from earshot.filters.summaries.facts import Span
from earshot.filters.summaries.sections import EVERYTHING, Pieces, PieceVectors, Ranges, TypeSection, joined
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

_WHOLE, _ROWS, _COMBINATIONS = 1, 2, 4
"Flags of a section: wants everything; has an association list; has combinations."
_NO_BOUND, _CLOSED, _OPEN, _SINGLE = 0, 1, 2, 3
"How a range's bound travels; a single value travels once, as its lower bound."

_MOST_COLUMNS = 1 << 14
_MOST_ROW_BITS = 1 << 20
_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def write_section(writer: BitWriter, section: TypeSection) -> None:
    """Flags, names with what is asked of them, rows, ranges, vectors."""
    if section.unconstrained:
        writer.unsigned(_WHOLE, 1)
        return
    writer.unsigned(
        (_ROWS if section.rows is not None else 0) | (_COMBINATIONS if section.combinations is not None else 0), 1
    )
    kinds: dict[int, int] = {}
    for one in section.columns:
        kinds[one >> 2] = kinds.get(one >> 2, 0) | 1 << (one & 3)
    writer.count(len(kinds))
    for key, asked in sorted(kinds.items()):
        writer.unsigned(key, 2)
        writer.unsigned(asked, 1)
    if section.rows is None:
        writer.count(section.least)
    else:
        _write_rows(writer, section.columns, section.rows)
    for one in section.columns:
        key, kind = one >> 2, one & 3
        if kind == NUMBER:
            _write_ranges(writer, section.ranges[key])
        elif kind == EQUALS:
            _write_vector(writer, section.equals[key])
        elif kind == HOLDS:
            _write_pieces(writer, section.pieces[key].prefix)
            _write_pieces(writer, section.pieces[key].substring)
    if section.combinations is not None:
        _write_combinations(writer, section.columns, section.combinations)


def read_section(reader: BitReader, shape: BloomShape) -> TypeSection:
    """The section that `write_section` wrote; MalformedPacket where it cannot be one."""
    flags = reader.unsigned(1)
    if flags == _WHOLE:
        return EVERYTHING
    if flags & ~(_ROWS | _COMBINATIONS):
        raise MalformedPacket(f"a summary's section with flags unknown here: {flags}")
    columns = _read_columns(reader)
    rows: frozenset[Row] | None = None
    if flags & _ROWS:
        rows = _read_rows(reader, columns)
        least = min(map(len, rows))
    else:
        least = reader.count(len(columns))
    if least == 0:
        raise MalformedPacket("a summary's section that asks for nothing must say so")
    ranges: dict[int, Ranges] = {}
    equals: dict[int, Bloom] = {}
    pieces: dict[int, PieceVectors] = {}
    for one in columns:
        key, kind = one >> 2, one & 3
        if kind == NUMBER:
            ranges[key] = _read_ranges(reader)
        elif kind == EQUALS:
            equals[key] = _read_vector(reader, shape)
        elif kind == HOLDS:
            pieces[key] = PieceVectors(_read_pieces(reader, shape), _read_pieces(reader, shape))
    combinations = _read_combinations(reader, columns, shape) if flags & _COMBINATIONS else None
    return TypeSection(columns, rows, least, ranges, equals, pieces, combinations)


def _read_columns(reader: BitReader) -> tuple[ColumnKey, ...]:
    columns: list[ColumnKey] = []
    for _ in range(reader.count(_MOST_COLUMNS)):
        key, asked = reader.unsigned(2), reader.unsigned(1)
        if not 1 <= asked <= 15 or (columns and columns[-1] >> 2 >= key):
            raise MalformedPacket("a summary whose names are out of order")
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
        raise MalformedPacket(f"a summary's section of {count} rows")
    bits = int.from_bytes(reader.bits(count * width), "little")
    rows = set()
    for index in range(count):
        mask = bits >> index * width & ((1 << width) - 1)
        rows.add(tuple(one for place, one in enumerate(columns) if mask >> place & 1))
    return frozenset(rows)


def _write_ranges(writer: BitWriter, ranges: Ranges) -> None:
    writer.count(len(ranges))
    for low, high in ranges:
        if low == high and rounded_down(low) == low:
            writer.unsigned(_SINGLE | _SINGLE << 2, 1)
            writer.data += struct.pack("<f", low)
            continue
        how_low, low_bytes = _bound(low, rounded_down, -math.inf)
        how_high, high_bytes = _bound(high, rounded_up, math.inf)
        writer.unsigned(how_low | how_high << 2, 1)
        writer.data += low_bytes + high_bytes


def _bound(value: float, rounded: Callable[[float], float], outwards: float) -> tuple[int, bytes]:
    """A bound as it is where 32 bits hold it, else the one beyond it, itself left out: of `price < 20`
    that is 20 exactly."""
    outer = rounded(value)
    if math.isinf(outer) and outer == outwards:
        return _NO_BOUND, b""
    return _CLOSED if outer == value else _OPEN, struct.pack("<f", outer)


def _read_ranges(reader: BitReader) -> Ranges:
    spans: list[Span] = []
    for _ in range(reader.count(1 << 14)):
        how = reader.unsigned(1)
        how_low, how_high = how & 3, how >> 2
        if how_low == how_high == _SINGLE:
            value = _float(reader)
            spans.append((value, value))
        elif how_low <= _OPEN and how_high <= _OPEN:
            low = -math.inf if how_low == _NO_BOUND else _float(reader)
            high = math.inf if how_high == _NO_BOUND else _float(reader)
            spans.append(
                (
                    math.nextafter(low, math.inf) if how_low == _OPEN else low,
                    math.nextafter(high, -math.inf) if how_high == _OPEN else high,
                )
            )
        else:
            raise MalformedPacket(f"a summary's range of a kind unknown here: {how}")
    return joined(spans)


def _float(reader: BitReader) -> float:
    value = float(struct.unpack("<f", reader.raw(4))[0])
    if math.isnan(value):
        raise MalformedPacket("a summary's range without a number")
    return value


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


def _write_pieces(writer: BitWriter, pieces: Pieces) -> None:
    """The lengths that occur, and where there are any the vector."""
    writer.unsigned(pieces.lengths, 1)
    if pieces.lengths:
        _write_vector(writer, pieces.vector)


def _read_pieces(reader: BitReader, shape: BloomShape) -> Pieces:
    lengths = reader.unsigned(1)
    return Pieces(_read_vector(reader, shape) if lengths else Bloom.empty(shape), lengths)


def _write_vector(writer: BitWriter, vector: Bloom) -> None:
    writer.unsigned(vector.shape.bits.bit_length() - 1, 1)
    writer.bits(vector.data, vector.shape.bits)


def _read_vector(reader: BitReader, shape: BloomShape) -> Bloom:
    power = reader.unsigned(1)
    if not 3 <= power <= shape.bits.bit_length() - 1:
        raise MalformedPacket(f"a summary's vector of 2^{power} bits in a network of {shape.bits}")
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
