"""The bytes of summaries and digests, field by field: nodes of two versions read each other's."""

from __future__ import annotations

import math
import struct

import pytest

from earshot import Event, Filter
from earshot.errors import MalformedPacket
from earshot.filters.language.values import text_of
from earshot.filters.summaries.bloom import Bloom, BloomShape, fingerprint, name_key, type_key
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import MAX_SUMMARY_BYTES, Summary
from earshot.filters.summaries.summary_bytes import (
    BitReader,
    BitWriter,
    read_section,
    rounded_down,
    rounded_up,
    write_section,
)

SMALL = BloomShape(64, 2)
T = type_key("T").to_bytes(4, "little")
P, Q = (name_key(name).to_bytes(2, "little") for name in "pq")
ONE_ROW = b"\x01\x1f\x01"
"One row, written as plain bits, of which the first is set."
LARGEST = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def summary(*texts: str, shape: BloomShape = SMALL) -> Summary:
    return Summary.of([Filter.where(text, "T") for text in texts], shape)


def float32(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


@pytest.mark.parametrize(
    ("bits", "hashes", "byte"), [(8, 1, 0x00), (64, 2, 0x31), (1024, 7, 0x76), (8192, 1, 0xA0), (65_536, 16, 0xDF)]
)
def test_a_summary_begins_with_its_version_its_shape_and_its_number_of_types(bits: int, hashes: int, byte: int) -> None:
    shape = BloomShape(bits, hashes)
    written = summary("p", shape=shape).to_bytes()
    assert written == bytes([1, byte, 1]) + T + b"\x02\x01" + P + b"\x01" + ONE_ROW
    assert Summary.from_bytes(written, shape) == summary("p", shape=shape)
    for other in (BloomShape(bits * 2 if bits < 65_536 else 8, hashes), BloomShape(bits, hashes % 16 + 1)):
        with pytest.raises(MalformedPacket, match="another shape"):
            Summary.from_bytes(written, other)


@pytest.mark.parametrize(
    ("wanted", "ranges"),
    [
        ("p <= 20", b"\x01\x04" + float32(20)),
        ("p < 20", b"\x01\x08" + float32(20)),
        ("p >= 20", b"\x01\x01" + float32(20)),
        ("p > 20", b"\x01\x02" + float32(20)),
        ("p = 20", b"\x01\x0f" + float32(20)),
        ("p in 10..20", b"\x01\x05" + float32(10, 20)),
        ("p in 0.1..20", b"\x01\x06" + float32(rounded_down(0.1), 20)),
        ("p in 10..10.1", b"\x01\x09" + float32(10, rounded_up(10.1))),
        ("p = 0.1", b"\x01\x0a" + float32(rounded_down(0.1), rounded_up(0.1))),
        ("p < 5 or p > 9", b"\x02\x08" + float32(5) + b"\x02" + float32(9)),
        ("p >= -1e39 and p <= 20", b"\x01\x04" + float32(20)),
        ("p >= 20 and p <= 1e39", b"\x01\x01" + float32(20)),
    ],
)
def test_a_range_is_written_with_how_it_ends_and_its_ends_rounded_outwards(wanted: str, ranges: bytes) -> None:
    without = summary(wanted).without_combinations()
    written = without.to_bytes()
    assert written == b"\x01\x31\x01" + T + b"\x02\x01" + P + b"\x02" + ONE_ROW + ranges
    assert Summary.from_bytes(written, SMALL).to_bytes() == written


@pytest.mark.parametrize(
    ("wanted", "asked", "texts"),
    [
        ('p = "jazz"', 4, ("jazz",)),
        ('p contains "zz"', 8, (None, "zz")),
        ('p starts with "jazz"', 8, ("jazz", None)),
        ('p starts with "a longer text"', 8, ("a longer", None)),
        ('p = "jazz" or p contains "zz"', 12, ("jazz", None, "zz")),
    ],
)
def test_texts_are_written_as_vectors_and_pieces_with_their_lengths(
    wanted: str, asked: int, texts: tuple[str | None, ...]
) -> None:
    written = summary(wanted).without_combinations().to_bytes()
    assert written.startswith(b"\x01\x31\x01" + T + b"\x02\x01" + P + bytes([asked]))
    expected = BitWriter()
    for number, text in enumerate(texts):
        if not asked & 4 or number:
            expected.unsigned(1 << len(text) - 1 if text else 0, 1)
        if text:
            expected.unsigned(6, 1)
            expected.bits(Bloom.of(SMALL, {fingerprint(text)}).data, 64)
    assert written.endswith(bytes(expected.data))
    assert len(written) == 12 + len(ONE_ROW) + len(expected.data)
    assert Summary.from_bytes(written, SMALL).to_bytes() == written


def test_what_wants_everything_takes_a_byte_and_its_type() -> None:
    whole = Summary.of([Filter.of_type("T")], SMALL)
    assert whole.to_bytes() == b"\x01\x31\x01" + T + b"\x01"
    assert Summary.of_everything(SMALL).to_bytes() == b"\x01\x31\x01" + bytes(4) + b"\x01"
    assert Summary.from_bytes(whole.to_bytes(), SMALL) == whole


def test_which_values_belong_together_is_written_with_the_widths_of_their_cells() -> None:
    both = summary('p in 10..20 and q = "x"', "p in 100..101 and q in 7..8")
    section = both.sections[type_key("T")]
    assert section.combinations is not None
    assert section.combinations.widths == {name_key("p"): (1, 4), name_key("q"): (1,)}
    writer = BitWriter()
    write_section(writer, section)
    ending = BitWriter()
    for one in sorted((name_key("p"), name_key("q"))):
        ending.data += {name_key("p"): b"\x02\x81\x84", name_key("q"): b"\x01\x81"}[one]
    ending.unsigned(9, 1)
    ending.bits(section.combinations.marks.data, 512)
    assert bytes(writer.data).endswith(bytes(ending.data))
    assert read_section(BitReader(bytes(writer.data), "summary"), SMALL) == section


# What a peer may not write.


def section_bytes(*parts: bytes) -> bytes:
    return b"\x01\x31\x01" + T + b"".join(parts)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (section_bytes(b"\x08\x00"), "unknown flags: 8"),
        (section_bytes(b"\x03\x00"), "unknown flags: 3"),
        (section_bytes(b"\x00\x01", P, b"\x01\x00"), "asks for nothing"),
        (section_bytes(b"\x02\x01", P, b"\x01\x01\x1f\x00"), "asks for nothing"),
        (section_bytes(b"\x02\x01", P, b"\x01\x00"), "has 0 rows"),
        (section_bytes(b"\x02\x01", P, b"\x00"), "out of order"),
        (section_bytes(b"\x02\x01", P, b"\x10"), "out of order"),
        (section_bytes(b"\x02\x02", P, b"\x01", P, b"\x01"), "out of order"),
        (section_bytes(b"\x00\x01", P, b"\x01\x02"), "a count of more than 1"),
        (section_bytes(b"\x02\x01", P, b"\x02", ONE_ROW, b"\x01\x07", bytes(8)), "unknown kind: 7"),
        (section_bytes(b"\x02\x01", P, b"\x02", ONE_ROW, b"\x01\x0d", bytes(8)), "unknown kind: 13"),
        (section_bytes(b"\x02\x01", P, b"\x02", ONE_ROW, b"\x01\x0f\0\0\xc0\x7f"), "NaN"),
        (section_bytes(b"\x02\x01", P, b"\x04", ONE_ROW, b"\x02\x1f\x01"), "2\\^2 bits"),
        (section_bytes(b"\x02\x01", P, b"\x04", ONE_ROW, b"\x07\x1f", bytes(16)), "2\\^7 bits"),
        (b"\x01\x31\x02" + (T + b"\x01") * 2, "one type twice"),
        (section_bytes(b"\x01\x00"), "1 extra bytes"),
    ],
)
def test_a_section_that_cannot_be_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(MalformedPacket, match=problem):
        Summary.from_bytes(data, SMALL)


@pytest.mark.parametrize("power", [3, 6])
def test_a_vector_may_be_folded_down_to_eight_bits(power: int) -> None:
    bits = bytes([1]) + bytes((1 << power) // 8 - 1)
    data = section_bytes(b"\x02\x01", P, b"\x04", ONE_ROW, bytes([power, 31]), bits)
    (section,) = Summary.from_bytes(data, SMALL).sections.values()
    assert section.sec[name_key("p")].equal == Bloom(BloomShape(1 << power, 2), bits)


def test_without_rows_a_section_says_how_many_columns_must_hold() -> None:
    data = section_bytes(b"\x00\x01", P, b"\x09\x02\x02\x06\x1f", Bloom.of(SMALL, {fingerprint("ja")}).data, b"\x00")
    read = Summary.from_bytes(data, SMALL)
    assert [read.may_match(Event("T", {"p": text})) for text in ("jazz", "pop")] == [True, False]


def test_the_largest_summary_is_read_and_one_byte_more_is_not() -> None:
    with pytest.raises(MalformedPacket, match="at most 65,536 are read"):
        Summary.from_bytes(bytes(MAX_SUMMARY_BYTES + 1), SMALL)
    with pytest.raises(MalformedPacket, match="version 0"):
        Summary.from_bytes(bytes(MAX_SUMMARY_BYTES), SMALL)


def test_a_section_has_at_most_a_million_bits_of_rows() -> None:
    """All of these rows are empty, which is said only once they were read."""
    for names, rows, problem in ((4, 65_536, "asks for nothing"), (5, 52_429, "has 52429 rows")):
        writer = BitWriter()
        writer.count(names)
        for key in range(1, names + 1):
            writer.unsigned(key, 2)
            writer.unsigned(0x0F, 1)
        writer.count(rows)
        data = section_bytes(b"\x02", bytes(writer.data), b"\x00\x00")
        with pytest.raises(MalformedPacket, match=problem):
            Summary.from_bytes(data, SMALL)


# Sets of bits.


def written(positions: list[int], width: int) -> bytes:
    writer = BitWriter()
    writer.bits(sum(1 << at for at in positions).to_bytes((width + 7) // 8, "little"), width)
    return bytes(writer.data)


@pytest.mark.parametrize(
    ("positions", "width", "data"),
    [
        ([], 64, b"\x00\x00"),
        ([0], 64, b"\x06\x01\x00"),  # a zero ends no ones, then six bits: 0
        ([63], 64, b"\x06\x01\x7e"),  # a zero, then six ones
        ([5, 6], 64, b"\x05\x02\x0a\x00"),  # gaps of 5 and 0, in five bits each
        ([40, 41], 64, b"\x05\x02\x21\x00"),  # a one and a zero for 32, then 8; then 0
        ([0, 2, 4], 9, b"\x1f\x15\x00"),  # a third is no longer sparse
        ([8], 9, b"\x1f\x00\x01"),  # gaps would take two bytes too
    ],
)
def test_few_bits_are_written_as_gaps_and_many_as_they_are(positions: list[int], width: int, data: bytes) -> None:
    assert written(positions, width) == data
    assert BitReader(data, "set").bits(width) == sum(1 << at for at in positions).to_bytes((width + 7) // 8, "little")


def test_a_third_of_the_bits_is_written_as_gaps_where_that_is_shorter() -> None:
    together = list(range(100))
    assert len(written(together, 300)) == 1 + 1 + 2 * 100 // 8
    assert written(together, 299)[0] == 31


@pytest.mark.parametrize(
    ("data", "width", "problem"),
    [
        (b"\x1f\x20", 5, "sets a bit beyond 5"),
        (b"\x10\x00", 64, "unknown code for its bits: 16"),
        (b"\x1e\x00", 64, "unknown code for its bits: 30"),
        (b"\x06\x01\x7e", 63, "sets a bit beyond 63"),
        (b"\x05\x41\x00", 64, "a count of more than 64"),
        (b"\x05\x02\x0a", 64, "sets a bit beyond 64"),
    ],
)
def test_a_set_that_cannot_be_is_refused(data: bytes, width: int, problem: str) -> None:
    with pytest.raises(MalformedPacket, match=problem):
        BitReader(data, "set").bits(width)


@pytest.mark.parametrize("code", [0, 15])
def test_every_code_of_gaps_is_read(code: int) -> None:
    assert BitReader(bytes([code, 1, 0, 0]), "set").bits(65_536) == b"\x01" + bytes(8191)


# Numbers of 32 bits.


@pytest.mark.parametrize(
    ("number", "below", "above"),
    [
        (0.0, 0.0, 0.0),
        (1.5, 1.5, 1.5),
        (-1.5, -1.5, -1.5),
        (16_777_217.0, 16_777_216.0, 16_777_218.0),
        (-16_777_217.0, -16_777_218.0, -16_777_216.0),
        (16_777_219.0, 16_777_218.0, 16_777_220.0),
        (0.5 + 2.0**-30, 0.5, 0.5 + 2.0**-24),
        (-0.5 - 2.0**-30, -0.5 - 2.0**-24, -0.5),
        (1e-50, 0.0, 2.0**-149),
        (-1e-50, -(2.0**-149), 0.0),
        (LARGEST, LARGEST, LARGEST),
        (-LARGEST, -LARGEST, -LARGEST),
        (math.nextafter(LARGEST, math.inf), LARGEST, math.inf),
        (math.nextafter(-LARGEST, -math.inf), -math.inf, -LARGEST),
        (1e300, LARGEST, math.inf),
        (math.inf, math.inf, math.inf),
        (-math.inf, -math.inf, -math.inf),
    ],
)
def test_a_number_is_rounded_to_its_neighbours_of_32_bits(number: float, below: float, above: float) -> None:
    assert (rounded_down(number), rounded_up(number)) == (below, above)


# Digests.


def entry(name: str, text: str, *number: float) -> bytes:
    return name_key(name).to_bytes(2, "little") + fingerprint(text).to_bytes(3, "little") + float32(*number)


def test_a_digest_is_its_version_its_type_its_counts_and_its_entries() -> None:
    header = b"\x01" + T
    assert Digest.of(Event("T")).data == header + bytes(2)
    assert Digest.of(Event("T", {"p": "jazz"})).data == header + b"\x01\x00" + entry("p", "jazz")
    assert Digest.of(Event("T", {"p": 18.5})).data == header + b"\x10\x00" + entry("p", "18.5", 18.5)
    about = Digest.of(Event("T", {"p": 0.1})).data
    assert about == header + b"\x00\x01" + entry("p", "0.1", rounded_down(0.1))
    assert Digest.of(Event("T", {"p": 1e300})).data == header + b"\x00\x01" + entry("p", text_of(1e300), LARGEST)
    parts = Digest.of(Event.from_xml("<T><p><q>jazz</q></p></T>")).data
    assert parts == header + b"\x01\x10" + entry("q", "jazz") + P
    several = Digest.of(Event.from_xml("<T><p>2</p><p>5</p></T>")).data
    first, second = sorted(("2", "5"), key=fingerprint)
    assert several == header + b"\x21\x00" + entry("p", second) + entry("p", first, 2) + entry("p", first, 5)


def test_an_advertisement_is_its_version_with_a_flag_and_its_type() -> None:
    assert Digest.of_type("T").data == b"\x11" + T
    assert [Digest.of_type("T").open, Digest.of(Event("T")).open] == [True, False]


def entries_of(digest: Digest) -> list[int]:
    """How many texts, numbers, rounded numbers and mere names a digest holds."""
    counts = int.from_bytes(digest.data[5:7], "little")
    return [counts >> shift & 15 for shift in (0, 4, 8, 12)]


@pytest.mark.parametrize(
    ("names", "size", "entries"),
    [
        (11, 62, [11, 0, 0, 0]),  # 7 bytes, and five a text
        (12, 63, [8, 0, 0, 0]),  # the others stand in a vector of 16 bytes
        (40, 63, [8, 0, 0, 0]),
    ],
)
def test_names_that_do_not_fit_stand_in_a_vector(names: int, size: int, entries: list[int]) -> None:
    event = Event("T", {f"n{number}": "x" for number in range(names)})
    digest = Digest.of(event)
    assert (len(digest.data), entries_of(digest)) == (size, entries)
    assert digest.data[0] == (0x01 if names == 11 else 0x21)
    assert Digest.from_bytes(digest.data) == digest
    if names > 11:
        left = {name_key(f"n{number}") for number in range(8, names)}
        assert digest.data.endswith(Bloom.of(BloomShape(128, 2), left).data)
    known = [digest.values(name_key(f"n{number}")) for number in range(names)]
    assert all(values is not None for values in known)
    assert sum(values is not None and not values.anything for values in known) >= entries[0] - 2


@pytest.mark.parametrize(("names", "flags", "entries"), [(15, 0x01, 15), (16, 0x21, 15), (25, 0x21, 15)])
def test_of_each_kind_a_digest_counts_fifteen_entries(names: int, flags: int, entries: int) -> None:
    inside = "".join(f"<n{number}><p/></n{number}>" for number in range(names))
    digest = Digest.of(Event.from_xml(f"<T>{inside}</T>"))
    assert (digest.data[0], entries_of(digest)) == (flags, [1, 0, 0, entries])
    assert all(digest.values(name_key(f"n{number}")) is not None for number in range(names))


def test_fifteen_entries_of_a_kind_leave_room_for_others() -> None:
    inside = "".join(f"<n{number}><p/></n{number}>" for number in range(15))
    digest = Digest.of(Event.from_xml(f"<T>{inside}<q>x</q><r>y</r></T>"))
    assert (digest.data[0], entries_of(digest), len(digest.data)) == (0x01, [3, 0, 0, 15], 7 + 3 * 5 + 15 * 2)


def test_a_rounded_number_may_be_any_between_its_neighbours() -> None:
    values = Digest.of(Event("T", {"p": 16_777_217.0})).values(name_key("p"))
    assert values is not None
    assert values.span == (16_777_215.0, 16_777_218.0)
    exact = Digest.of(Event("T", {"p": 16_777_216.0})).values(name_key("p"))
    assert exact is not None
    assert exact.span == (16_777_216.0, 16_777_216.0)
    several = Digest.of(Event.from_xml("<T><p>2</p><p>5</p><p>3</p></T>")).values(name_key("p"))
    assert several is not None
    assert (several.span, several.texts) == ((2.0, 5.0), None)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x02" + T + bytes(2), "version 2"),
        (b"\x41" + T + bytes(2), "version 65"),
        (b"\x11" + T + b"\x00", "1 extra bytes"),
        (b"\x01" + T + bytes(3), "1 extra bytes"),
        (b"\x21" + T + bytes(17), "too early"),
        (b"\x01" + T + bytes(60), "has 65 bytes; at most 64"),
    ],
)
def test_a_digest_that_cannot_be_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(MalformedPacket, match=problem):
        Digest.from_bytes(data)


def test_a_digest_that_fits_exactly_leaves_no_name_out() -> None:
    texts = "".join(f"<n{number}>x</n{number}>" for number in range(10))
    digest = Digest.of(Event.from_xml(f"<T>{texts}<p><q>x</q></p></T>"))
    assert (len(digest.data), digest.data[0], entries_of(digest)) == (64, 0x01, [11, 0, 0, 1])


def test_a_full_digest_is_read() -> None:
    names = b"".join(number.to_bytes(2, "little") for number in range(1, 4))
    data = b"\x21" + T + b"\x00\x30" + names + bytes(16)
    assert Digest.from_bytes(data).values(2) is not None
    assert Digest.from_bytes(data).values(4) is None
